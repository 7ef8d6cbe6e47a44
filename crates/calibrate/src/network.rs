//! The way to the servers: messages, stores, direct access and exchanges, measured with accesses to a file
//! of its own, which goes when it is closed.
//!
//! One server of every host stands for all of them. Times of accesses of several lengths and numbers of
//! messages are taken apart by least squares in the shape in which `advise::cost` puts them together, so
//! that what was measured is what is predicted. Accesses in pieces, which were not used for that, show what
//! the model is worth.

use std::collections::BTreeMap;
use std::sync::Arc;

use advise::cost::{Access, Home, Machine, Op, Process, StoreKind, Way, alternatives};
use advise::model::fit::{least_squares, least_squares_left_out};
use client::{Client, File, Hints, Member, MemberState, OpenOptions, Team, View};
use layout::{FileOffset, Partition};

use crate::{Cell, Fit, best_of};
use console::Error;
use console::refused;

/// Bytes of a stripe of the file: the longest access to one server.
const STRIPE: u64 = 2 << 20;
/// Lengths of accesses.
const LENGTHS: [u64; 6] = [8, 4 << 10, 64 << 10, 256 << 10, 1 << 20, STRIPE];
/// Longest message of accesses in several; the shortest that servers agree to.
const SHORT_MESSAGE: u64 = 64 << 10;
/// Most servers whose stripes the file has.
const MOST_SERVERS: usize = 16;
/// Bytes of a piece of the accesses that are only predicted.
const PIECES: [u64; 3] = [8, 64, 1024];

/// What was measured of the way to one host.
pub struct Pair {
    /// The servers' host.
    pub to: String,
    /// Servers there.
    pub servers: usize,
    /// Whether it is this host.
    pub is_near: bool,
    /// Numbers that were measured, by name.
    pub parameters: Vec<(&'static str, f64)>,
    /// How well its parts fit.
    pub fits: Vec<Fit>,
}

/// Measures all hosts; `machine` gets the numbers as they come.
pub fn measure(client: &Client, machine: &mut Machine) -> Result<Vec<Pair>, Error> {
    let here = client.host_name();
    let mut hosts: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    let members = client.members().map_err(refused)?;
    let alive = members
        .into_iter()
        .filter(|m| m.state == MemberState::Alive);
    for member in alive {
        hosts
            .entry(client.host_of(&member))
            .or_default()
            .push(member);
    }
    let count = hosts.values().map(Vec::len).sum::<usize>();
    if count == 0 {
        return Err("the service has no I/O server; start one with `pario serve io`".into());
    }
    let scratch = Scratch::create(client, count.min(MOST_SERVERS))?;
    let mut pairs = Vec::new();
    for (to, members) in &hosts {
        let Some((member, base)) = members
            .iter()
            .find_map(|m| Some((m, scratch.at(m.server.0)?)))
        else {
            // Not among the servers that the file is on.
            continue;
        };
        let mut pair = Pair {
            to: to.clone(),
            servers: members.len(),
            is_near: *to == here,
            parameters: Vec::new(),
            fits: Vec::new(),
        };
        let count = hosts.len();
        messages(&scratch, base, member, count, machine, &mut pair)?;
        if pair.is_near {
            direct(&scratch, base, machine, &mut pair)?;
            exchange(machine, &mut pair);
        }
        in_pieces(&scratch, &hosts, &here, machine, &mut pair)?;
        pairs.push(pair);
    }
    scratch.file.close().map_err(refused)?;
    Ok(pairs)
}

/// A file with a stripe on every server.
struct Scratch {
    file: File,
    partition: Partition,
    /// The server of each subfile.
    servers: Vec<u64>,
}

impl Scratch {
    fn create(client: &Client, servers: usize) -> Result<Scratch, Error> {
        let unique = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |t| t.as_nanos());
        let path = format!("/.calibrate-{}-{unique}", std::process::id());
        let options = OpenOptions::new()
            .read()
            .write()
            .create()
            .exclusive()
            .delete_on_close()
            .layout(format!("striped({STRIPE}) over {servers}"));
        let file = client.open(&path, &options).map_err(refused)?;
        let state = file.layout();
        let piece = state.pieces.first().ok_or("the file has no layout")?;
        let servers: Vec<u64> = piece
            .places
            .iter()
            .map(|places| places.first().map_or(u64::MAX, |place| place.server))
            .collect();
        let partition = piece.partition.clone();
        // Everything is there before anything is timed.
        let bytes = vec![7; STRIPE as usize];
        for i in 0..servers.len() as u64 {
            file.write_at(i * STRIPE, &bytes).map_err(refused)?;
        }
        Ok(Scratch {
            file,
            partition,
            servers,
        })
    }

    /// Where the stripe of a server begins.
    fn at(&self, server: u64) -> Option<u64> {
        (0..self.servers.len() as u64)
            .map(|i| i * STRIPE)
            .find(|&x| {
                let owner = self.partition.owner(FileOffset(x));
                owner.is_some_and(|(subfile, _)| self.servers[subfile] == server)
            })
    }

    fn hint(&self, name: &str, value: &str) -> Result<(), Error> {
        let hints = Hints::new().with(name, value).map_err(refused)?;
        self.file.set_hints(&hints).map_err(refused)
    }

    fn read_s(&self, at: u64, buffer: &mut [u8]) -> Result<f64, Error> {
        let mut failed = None;
        let seconds = best_of(9, 0.02, || {
            let outcome = self.file.read_at(at, buffer);
            failed = failed.take().or(outcome.err());
        });
        failed.map_or(Ok(seconds), |error| Err(refused(error)))
    }

    fn write_s(&self, at: u64, bytes: &[u8]) -> Result<f64, Error> {
        let mut failed = None;
        let seconds = best_of(9, 0.02, || {
            let outcome = self.file.write_at(at, bytes);
            failed = failed.take().or(outcome.err());
        });
        failed.map_or(Ok(seconds), |error| Err(refused(error)))
    }
}

/// Both ends of `messages` messages with `bytes` in all, as `advise::cost` lets them overlap.
fn columns(messages: f64, bytes: f64) -> [f64; 3] {
    let ends = 1.0 + 1.0 / messages;
    [1.0, ends * messages, ends * bytes]
}

fn messages(
    scratch: &Scratch,
    base: u64,
    member: &Member,
    hosts: usize,
    machine: &mut Machine,
    pair: &mut Pair,
) -> Result<(), Error> {
    scratch.hint("direct", "off")?;
    let mut buffer = vec![0; STRIPE as usize];
    let mut rows = Vec::new();
    let mut shown = Vec::new();
    for len in LENGTHS {
        let seconds = scratch.read_s(base, &mut buffer[..len as usize])?;
        let messages = scratch.file.last_access().messages().max(1) as f64;
        rows.push((columns(messages, len as f64), seconds));
        shown.push(format!("read/bytes={len}/messages={messages}"));
    }
    scratch.hint("message_bytes", &SHORT_MESSAGE.to_string())?;
    for len in [256 << 10, STRIPE] {
        let seconds = scratch.read_s(base, &mut buffer[..len as usize])?;
        let messages = scratch.file.last_access().messages().max(1) as f64;
        rows.push((columns(messages, len as f64), seconds));
        shown.push(format!("read/bytes={len}/messages={messages}"));
    }
    scratch.hint("message_bytes", &machine.message_bytes.to_string())?;
    // All servers at once, where they are all there: they compete with the client and each other.
    let servers = scratch.servers.len();
    if servers > 1 && servers <= pair.servers && hosts == 1 {
        let mut all = vec![0; servers * STRIPE as usize];
        let seconds = scratch.read_s(0, &mut all)?;
        let messages = scratch.file.last_access().messages().max(1) as f64;
        let each = messages / servers as f64;
        // As `advise::cost` lets them overlap: the client after the last server, or everybody on the cores.
        let client = servers as f64 + 1.0 / each;
        let units = client.max(2.0 * servers as f64 / machine.cores.max(1.0));
        rows.push(([1.0, units * each, units * STRIPE as f64], seconds));
        shown.push(format!("read/bytes={}/messages={messages}", all.len()));
    }
    let [round_trip_s, message_s, byte_s] = least_squares(&rows);
    let link = match pair.is_near {
        true => &mut machine.near,
        false => &mut machine.far,
    };
    (link.round_trip_s, link.message_s, link.byte_s) = (round_trip_s, message_s, byte_s);
    let names = match pair.is_near {
        true => ["near.round_trip_s", "near.message_s", "near.byte_s"],
        false => ["far.round_trip_s", "far.message_s", "far.byte_s"],
    };
    pair.parameters
        .extend(names.into_iter().zip([round_trip_s, message_s, byte_s]));
    let predict = |x: &[f64; 3]| x[0] * round_trip_s + x[1] * message_s + x[2] * byte_s;
    let cells = cells(&shown, &rows, predict);
    pair.fits.push(
        Fit::new(
            "messages",
            format!(
                "{:.1} us there and back, {:.1} us a message, {:.3} ns a byte on each end",
                round_trip_s * 1e6,
                message_s * 1e6,
                byte_s * 1e9
            ),
            cells,
        )
        .with_left_out(&least_squares_left_out(&rows)),
    );
    let mut beyond = Vec::new();
    for len in [64 << 10, 256 << 10, STRIPE] {
        let seconds = scratch.write_s(base, &buffer[..len as usize])?;
        let messages = scratch.file.last_access().messages().max(1) as f64;
        beyond.push((
            len as f64,
            seconds - predict(&columns(messages, len as f64)),
        ));
    }
    store(scratch, base, member, &beyond, machine, pair)
}

/// What writing takes beyond the messages, and what a disk takes until it has the bytes.
fn store(
    scratch: &Scratch,
    base: u64,
    member: &Member,
    beyond: &[(f64, f64)],
    machine: &mut Machine,
    pair: &mut Pair,
) -> Result<(), Error> {
    let rows: Vec<([f64; 1], f64)> = beyond.iter().map(|&(x, y)| ([x], y)).collect();
    let [write_byte_s] = least_squares(&rows);
    let mut shown = format!("writes {:.3} ns a byte more than reads", write_byte_s * 1e9);
    let mut seen = Vec::new();
    match member.store {
        client::StoreKind::Memory => {
            machine.memory.write_byte_s = write_byte_s;
            pair.parameters.push(("memory.write_byte_s", write_byte_s));
        }
        client::StoreKind::Disk => {
            let bytes = vec![9; STRIPE as usize];
            let (mut rows, mut names) = (Vec::new(), Vec::new());
            for len in [4 << 10, 64 << 10, 256 << 10, STRIPE] {
                let mut failed = None;
                let seconds = best_of(3, 0.0, || {
                    let written = scratch.file.write_at(base, &bytes[..len as usize]);
                    let synced = written.and_then(|_| scratch.file.sync());
                    failed = failed.take().or(synced.err());
                });
                if let Some(error) = failed {
                    return Err(refused(error));
                }
                rows.push(([1.0, len as f64], seconds));
                names.push(format!("write and sync/bytes={len}"));
            }
            let [latency_s, byte_s] = least_squares(&rows);
            (machine.disk.latency_s, machine.disk.write_byte_s) = (latency_s, byte_s);
            pair.parameters.push(("disk.latency_s", latency_s));
            pair.parameters.push(("disk.write_byte_s", byte_s));
            shown = format!(
                "{:.2} ms until a disk has bytes, {:.3} ns a byte",
                latency_s * 1e3,
                byte_s * 1e9
            );
            let predict = |x: &[f64; 2]| x[0] * latency_s + x[1] * byte_s;
            seen = cells(&names, &rows, predict);
        }
    }
    pair.fits.push(Fit::new("store", shown, seen));
    Ok(())
}

fn direct(
    scratch: &Scratch,
    base: u64,
    machine: &mut Machine,
    pair: &mut Pair,
) -> Result<(), Error> {
    scratch.hint("direct", "on")?;
    let mut buffer = vec![0; STRIPE as usize];
    // The first access asks where bytes are.
    for _ in 0..3 {
        scratch.file.read_at(base, &mut buffer).map_err(refused)?;
    }
    if !scratch.file.last_access().is_direct {
        return Ok(());
    }
    let (mut rows, mut names) = (Vec::new(), Vec::new());
    for len in [4096, 64 << 10, 512 << 10, STRIPE] {
        let seconds = scratch.read_s(base, &mut buffer[..len as usize])?;
        rows.push(([1.0, len as f64], seconds));
        names.push(format!("read directly/bytes={len}"));
    }
    let [direct_s, byte_s] = least_squares(&rows);
    machine.direct_s = direct_s;
    // Pieces cost what they cost anywhere in memory; long ones what they cost here.
    machine.direct.c = byte_s;
    let Machine { direct, .. } = *machine;
    pair.parameters.extend([
        ("direct_s", direct_s),
        ("direct.a", direct.a),
        ("direct.b", direct.b),
        ("direct.c", direct.c),
    ]);
    let predict = |x: &[f64; 2]| x[0] * direct_s + x[1] * byte_s;
    let shown = format!(
        "{:.2} us an access, {:.3} ns a byte",
        direct_s * 1e6,
        byte_s * 1e9
    );
    let cells = cells(&names, &rows, predict);
    let left = least_squares_left_out(&rows);
    let fit = Fit::new("direct access", shown, cells).with_left_out(&left);
    pair.fits.push(fit);
    Ok(())
}

/// Two ranks that give each other bytes, in threads of this process: the memory is shared as it is between
/// processes of a host.
fn exchange(machine: &mut Machine, pair: &mut Pair) {
    let lengths = [8usize, 64 << 10, 256 << 10, 1 << 20];
    let mut teams = Team::threads(2);
    let (Some(second), Some(first)) = (teams.pop(), teams.pop()) else {
        return;
    };
    let passes = 9;
    let turns = move |team: Team| -> Vec<f64> {
        let mut best = Vec::new();
        let mut got = Vec::new();
        for len in lengths {
            let part = vec![1u8; len];
            let parts = [&part[..], &part[..]];
            let mut least = f64::INFINITY;
            for _ in 0..passes {
                let start = std::time::Instant::now();
                if team.exchange_into(&parts, &mut got).is_err() {
                    return Vec::new();
                }
                least = least.min(start.elapsed().as_secs_f64());
            }
            best.push(least.max(1e-9));
        }
        best
    };
    let turns = Arc::new(turns);
    let other = Arc::clone(&turns);
    let times = std::thread::scope(|scope| {
        let beside = scope.spawn(move || other(second));
        let mine = turns(first);
        beside.join().map(|_| mine).unwrap_or_default()
    });
    if times.len() != lengths.len() {
        return;
    }
    let rows: Vec<([f64; 2], f64)> = lengths
        .iter()
        .zip(&times)
        .map(|(&len, &t)| ([1.0, 2.0 * len as f64], t))
        .collect();
    let [step_s, byte_s] = least_squares(&rows);
    (machine.exchange.round_trip_s, machine.exchange.byte_s) = (step_s, byte_s);
    pair.parameters.push(("exchange.round_trip_s", step_s));
    pair.parameters.push(("exchange.byte_s", byte_s));
    let names: Vec<String> = lengths
        .iter()
        .map(|len| format!("exchange/bytes={len}"))
        .collect();
    let cells = cells(&names, &rows, |x| x[0] * step_s + x[1] * byte_s);
    let shown = format!(
        "{:.1} us a step, {:.3} ns a byte",
        step_s * 1e6,
        byte_s * 1e9
    );
    pair.fits.push(Fit::new("exchange", shown, cells));
}

fn cells<const N: usize>(
    names: &[String],
    rows: &[([f64; N], f64)],
    predict: impl Fn(&[f64; N]) -> f64,
) -> Vec<Cell> {
    let cell = |(what, (x, y)): (&String, &([f64; N], f64))| Cell {
        what: what.clone(),
        measured_s: *y,
        predicted_s: predict(x),
    };
    names.iter().zip(rows).map(cell).collect()
}

/// Reads and writes in pieces, predicted before they are done.
fn in_pieces(
    scratch: &Scratch,
    hosts: &BTreeMap<String, Vec<Member>>,
    here: &str,
    machine: &Machine,
    pair: &mut Pair,
) -> Result<(), Error> {
    let numbers: Vec<u64> = hosts.values().flatten().map(|m| m.server.0).collect();
    let index_of = |server: u64| numbers.iter().position(|&n| n == server).unwrap_or(0);
    let host_index = |server: u64| {
        let host = hosts
            .values()
            .position(|members| members.iter().any(|m| m.server.0 == server));
        host.unwrap_or(0)
    };
    let servers: Vec<usize> = scratch.servers.iter().map(|&s| index_of(s)).collect();
    let home = Home {
        partition: &scratch.partition,
        servers: &servers,
        server_count: numbers.len(),
        hosts: &numbers.iter().map(|&s| host_index(s)).collect::<Vec<_>>(),
    };
    let near = hosts.get(here).and_then(|m| m.first()).map(|m| m.server.0);
    let len = STRIPE * scratch.servers.len() as u64 / 2;
    let mut buffer = vec![3; len as usize];
    let mut compared = Vec::new();
    for way in [Way::Packed, Way::Direct] {
        scratch.hint("direct", if way == Way::Direct { "on" } else { "off" })?;
        for n in PIECES {
            let set = falls::FallsSet::segment(0, n)?;
            let view = View::new(FileOffset(0), 2 * n, set)?;
            scratch.file.set_view(&view).map_err(refused)?;
            for op in [Op::Read, Op::Write] {
                let process = Process {
                    view: view.clone(),
                    lo: 0,
                    hi: len,
                    near: near.map(index_of),
                };
                let access = Access {
                    op,
                    processes: &[process],
                    is_collective: false,
                    store: StoreKind::Memory,
                };
                let seconds = match op {
                    Op::Read => scratch.read_s(0, &mut buffer)?,
                    Op::Write => scratch.write_s(0, &buffer)?,
                };
                if scratch.file.last_access().is_direct != (way == Way::Direct) {
                    continue;
                }
                let all = alternatives(machine, &access, &home);
                if let Some(found) = all.iter().find(|p| p.way == way) {
                    compared.push(Cell {
                        what: format!("{op:?}/{}/n={n}", way.word()).to_lowercase(),
                        measured_s: seconds,
                        predicted_s: found.seconds,
                    });
                }
            }
        }
    }
    scratch
        .file
        .set_view(&View::whole_file())
        .map_err(refused)?;
    let what = "reads and writes in pieces of 8 to 1024 bytes that were not fitted".to_owned();
    pair.fits.push(Fit::new("accesses", what, compared));
    Ok(())
}
