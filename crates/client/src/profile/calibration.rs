//! What things cost from here: the machine of the cost model, as calibrations kept with the service say,
//! and whether it still predicts.
//!
//! ```text
//!  machine()  <-  calibrations of this host (asked for once per session), else Machine::HOST
//!  accesses by message of 64 KiB and more  ->  predicted : measured  ->  running error
//!                                                 beyond a factor of 4 over 64 of them  ->  stale, told at close
//! ```
//!
//! Invariants
//! - A session that never asked for its machine compares nothing and sends nothing.
//! - Comparing reads no clock and takes no lock that an access could wait for.
//! - Nothing here can fail an access or an opening: without calibrations the defaults hold.
//!
//! Left to others: measuring (`pario calibrate`), predicting (`advise::cost`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use advise::cost::Machine;
use parking_lot::Mutex;
use wire::message::calibration::{Calibration, GetCalibrations, PutCalibration};
use wire::message::catalogue::Member;

use crate::access::phases::Phases;
use crate::client::Client;
use crate::error::Result;
use crate::session::Session;

/// Shorter accesses say more about the moment than about the machine.
const COMPARED_BYTES: u64 = 64 << 10;
/// Each access counts so much in the running error.
const WEIGHT: f64 = 1.0 / 32.0;
/// Accesses before it says anything.
const ENOUGH: u64 = 64;
/// Natural logarithm of the factor from which the model no longer predicts.
const FAR_OFF: f64 = 1.386_294_361_119_890_6;

/// What a session knows about its machine.
#[derive(Debug, Default)]
pub(crate) struct Calibrated {
    known: Mutex<Option<Arc<Measurements>>>,
    is_known: AtomicBool,
    /// Bits of the mean logarithm of measured by predicted, and over how many accesses.
    error: AtomicU64,
    compared: AtomicU64,
    was_told: AtomicBool,
}

#[derive(Debug)]
struct Measurements {
    machine: Machine,
    rows: Vec<Calibration>,
    /// Whether a server is of this host.
    near: HashMap<u64, bool>,
}

/// How far measured times are from predicted ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Accesses that were compared.
    pub accesses: u64,
    /// Measured by predicted, a running geometric mean.
    pub factor: f64,
    /// Whether the model no longer predicts.
    pub is_stale: bool,
}

/// This host's name in calibrations.
pub(crate) fn host_name() -> String {
    std::env::var("PARIO_HOST")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| {
            let name = rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned();
            match name.is_empty() {
                true => "localhost".to_owned(),
                false => name,
            }
        })
}

impl Calibrated {
    /// Compares an access with what the machine would have said of it.
    pub(crate) fn compare(&self, phases: &Phases) {
        if phases.is_direct
            || phases.moved < COMPARED_BYTES
            || phases.gateway.is_some()
            || phases.collective.is_some()
            || !self.is_known.load(Ordering::Relaxed)
        {
            return;
        }
        // A thread that replaces what is known does not want to be compared with it.
        let Some(known) = self.known.try_lock().map(|known| known.clone()) else {
            return;
        };
        let Some(known) = known.filter(|known| !known.rows.is_empty()) else {
            return;
        };
        let predicted_s = known.predict_s(phases);
        let copied_ns = phases.servers.iter().map(|s| s.copied_ns).max();
        let measured_ns = phases
            .send_to_last_answer_ns
            .saturating_sub(copied_ns.unwrap_or(0));
        if predicted_s <= 0.0 || measured_ns == 0 {
            return;
        }
        let off = (measured_ns as f64 * 1e-9 / predicted_s).ln();
        let before = f64::from_bits(self.error.load(Ordering::Relaxed));
        let count = self.compared.fetch_add(1, Ordering::Relaxed);
        // The first ones are a plain mean. Racing threads may lose one another's; it is a mean all the same.
        let weight = WEIGHT.max(1.0 / (count + 1) as f64);
        let error = before + weight * (off - before);
        self.error.store(error.to_bits(), Ordering::Relaxed);
    }

    fn drift(&self) -> Drift {
        let error = f64::from_bits(self.error.load(Ordering::Relaxed));
        let accesses = self.compared.load(Ordering::Relaxed);
        Drift {
            accesses,
            factor: error.exp(),
            is_stale: accesses >= ENOUGH && error.abs() > FAR_OFF,
        }
    }

    /// Calibrations that have to be called stale, once.
    fn to_tell(&self) -> Vec<Calibration> {
        if !self.is_known.load(Ordering::Relaxed)
            || !self.drift().is_stale
            || self.was_told.swap(true, Ordering::Relaxed)
        {
            return Vec::new();
        }
        let known = self.known.lock().clone();
        let rows = known.map(|known| known.rows.clone()).unwrap_or_default();
        let stale = |row: Calibration| Calibration {
            is_stale: true,
            ..row
        };
        rows.into_iter().map(stale).collect()
    }

    fn replace(&self, known: Measurements) -> Machine {
        let machine = known.machine;
        *self.known.lock() = Some(Arc::new(known));
        self.error.store(0f64.to_bits(), Ordering::Relaxed);
        self.compared.store(0, Ordering::Relaxed);
        self.was_told.store(false, Ordering::Relaxed);
        self.is_known.store(true, Ordering::Relaxed);
        machine
    }
}

impl Measurements {
    /// Messages and payload of both ends, as [`advise::cost`] adds them up for accesses without pieces.
    fn predict_s(&self, phases: &Phases) -> f64 {
        let (mut process, mut server, mut wait, mut flow) = (0.0f64, 0.0f64, 0.0f64, 1u64);
        for part in &phases.servers {
            let link = match self.near.get(&part.server) {
                Some(true) => &self.machine.near,
                _ => &self.machine.far,
            };
            let travel = part.messages as f64 * link.message_s + part.bytes as f64 * link.byte_s;
            process += travel;
            server = server.max(travel);
            wait = wait.max(link.round_trip_s);
            flow = flow.max(part.messages);
        }
        wait + process.max(server) + process.min(server) / flow as f64
    }
}

impl Session {
    /// The name of a server's host in calibrations.
    pub(crate) fn host_of(&self, member: &Member) -> String {
        let host = member.local.as_ref().map(|local| local.host.as_str());
        server_host(host, &self.host, &member.address)
    }

    fn ask_machine(&self) -> Result<Machine> {
        let from = host_name();
        let rows = self.manager(|| GetCalibrations {
            from: Some(from.clone()),
        })?;
        let members = self.with_lane(|lane| self.members(lane))?;
        let near = members
            .iter()
            .map(|m| (m.server.0, self.host_of(m) == from));
        Ok(self.open_files.calibrated.replace(Measurements {
            machine: machine_of(&rows, &from),
            near: near.collect(),
            rows,
        }))
    }

    pub(crate) fn machine(&self) -> Machine {
        let known = self.open_files.calibrated.known.lock().clone();
        match known {
            Some(known) => known.machine,
            None => self.ask_machine().unwrap_or(Machine::HOST),
        }
    }

    /// Tells the service, if the model no longer predicts. Best effort.
    pub(crate) fn tell_drift(&self) {
        for calibration in self.open_files.calibrated.to_tell() {
            let put = || PutCalibration {
                calibration: calibration.clone(),
            };
            // It will be noticed again by others.
            let _ = self.manager(put);
        }
    }
}

/// The host of a server, by what it says of its own host (`said`), what this host says of itself (`here`),
/// and its address.
fn server_host(said: Option<&str>, here: &str, address: &str) -> String {
    if said == Some(here) {
        return host_name();
    }
    let by_address = address.strip_prefix("tcp:").map(|rest| {
        let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    });
    // Where one machine plays several hosts they have names; it is the third word.
    let by_name = said.and_then(|said| said.split(' ').nth(2));
    let other = by_name.filter(|name| !name.is_empty()).or(by_address);
    match (said, other) {
        (Some(_), Some(other)) => other.to_owned(),
        (None, Some(other)) if !is_loopback(other) && !other.is_empty() => other.to_owned(),
        // Sockets in the file system are of this host.
        _ => host_name(),
    }
}

fn is_loopback(host: &str) -> bool {
    let parsed: std::result::Result<std::net::IpAddr, _> = host.parse();
    host == "localhost" || parsed.is_ok_and(|address| address.is_loopback())
}

/// The defaults with what is known of this host, and of the way to others (the latest counts).
fn machine_of(rows: &[Calibration], here: &str) -> Machine {
    let mut machine = Machine::HOST;
    let mut ordered: Vec<&Calibration> = rows.iter().collect();
    ordered.sort_by_key(|row| (row.to == here, row.taken));
    for row in ordered {
        for parameter in &row.parameters {
            // What another host is like says nothing about this one, except the way there.
            if row.to == here || parameter.name.starts_with("far.") {
                machine.set(&parameter.name, f64::from_bits(parameter.bits));
            }
        }
    }
    machine
}

impl Client {
    /// What things cost from this host: as calibrated, else [`Machine::HOST`]. Asked of the service once.
    pub fn machine(&self) -> Machine {
        self.session().machine()
    }

    /// The name of this host in calibrations: `PARIO_HOST`, else the system's.
    pub fn host_name(&self) -> String {
        host_name()
    }

    /// The name of a server's host in calibrations.
    pub fn host_of(&self, member: &Member) -> String {
        self.session().host_of(member)
    }

    /// Calibrations from one client's host, or all.
    pub fn calibrations(&self, from: Option<&str>) -> Result<Vec<Calibration>> {
        self.session().manager(|| GetCalibrations {
            from: from.map(str::to_owned),
        })
    }

    /// Keeps a calibration with the service, and uses it from now on.
    pub fn keep_calibration(&self, calibration: &Calibration) -> Result<()> {
        self.session().manager(|| PutCalibration {
            calibration: calibration.clone(),
        })?;
        self.session().ask_machine().map(drop)
    }

    /// How well the machine has predicted accesses of this session by message.
    pub fn drift(&self) -> Drift {
        self.session().open_files.calibrated.drift()
    }
}

#[cfg(test)]
mod tests {
    use wire::Time;
    use wire::message::calibration::Parameter;

    use super::*;
    use crate::access::phases::ServerPhases;

    fn row(to: &str, name: &str, value: f64) -> Calibration {
        Calibration {
            from: "here".into(),
            to: to.into(),
            taken: Time(1),
            is_stale: false,
            parameters: vec![Parameter {
                name: name.into(),
                bits: value.to_bits(),
            }],
            fits: Vec::new(),
        }
    }

    #[test]
    fn other_hosts_say_only_how_far_they_are() {
        let rows = [
            row("here", "near.byte_s", 7e-10),
            row("there", "near.byte_s", 1.0),
            row("there", "far.byte_s", 3e-9),
            row("here", "unheard.of", 1.0),
            row("here", "pack.a", f64::NAN),
        ];
        let machine = machine_of(&rows, "here");
        assert_eq!((machine.near.byte_s, machine.far.byte_s), (7e-10, 3e-9));
        assert_eq!(machine.pack, Machine::HOST.pack);
    }

    #[test]
    fn hosts_are_told_apart_by_what_they_say_and_by_their_addresses() {
        let here = "boot net ";
        let mine = host_name();
        assert_eq!(server_host(Some(here), here, "tcp:10.0.0.7:99"), mine);
        assert_eq!(server_host(None, here, "unix:/tmp/io"), mine);
        assert_eq!(server_host(None, here, "tcp:127.0.0.1:99"), mine);
        assert_eq!(server_host(None, here, "tcp:[::1]:99"), mine);
        assert_eq!(server_host(None, here, "tcp:10.0.0.7:99"), "10.0.0.7");
        assert_eq!(
            server_host(Some("other net "), here, "tcp:node7:99"),
            "node7"
        );
        let played = server_host(Some("boot net second"), here, "tcp:127.0.0.1:99");
        assert_eq!(played, "second");
    }

    #[test]
    fn a_model_that_is_far_off_for_long_is_stale_and_says_so_once() {
        let calibrated = Calibrated::default();
        calibrated.replace(Measurements {
            machine: Machine::HOST,
            rows: vec![row("here", "near.byte_s", 4e-10)],
            near: HashMap::from([(1, true)]),
        });
        let access = |factor: f64| {
            let mut phases = Phases {
                moved: 1 << 20,
                servers: vec![ServerPhases {
                    server: 1,
                    bytes: 1 << 20,
                    messages: 1,
                    ..ServerPhases::default()
                }],
                ..Phases::default()
            };
            let known = calibrated.known.lock().clone().expect("was set");
            let predicted_ns = known.predict_s(&phases) * 1e9;
            phases.send_to_last_answer_ns = (predicted_ns * factor) as u64;
            phases
        };
        for _ in 0..200 {
            calibrated.compare(&access(1.5));
        }
        assert!((calibrated.drift().factor - 1.5).abs() < 0.01);
        assert!(calibrated.to_tell().is_empty(), "off, but not far");
        // One access in a crowded moment is no reason.
        calibrated.compare(&access(1000.0));
        assert!(!calibrated.drift().is_stale);
        for _ in 0..100 {
            calibrated.compare(&access(10.0));
        }
        assert!(calibrated.drift().is_stale);
        let told = calibrated.to_tell();
        assert!(told.len() == 1 && told[0].is_stale);
        assert!(calibrated.to_tell().is_empty(), "once");
        // Short and direct accesses are not compared.
        let before = calibrated.drift();
        calibrated.compare(&Phases {
            is_direct: true,
            ..access(10.0)
        });
        calibrated.compare(&Phases {
            moved: 4096,
            ..access(10.0)
        });
        assert_eq!(calibrated.drift(), before);
    }
}
