//! What the processes of a communicator tell each other when they open a file, and the team that they become.
//!
//! One exchange over MPI: whose file it is (rank 0 decides), whether all mean the same file in the same mode, and
//! what is wrong already. Everything after that goes through the team, which never needs MPI.
//!
//! Left to others: opening (`free::open`), what names mean (`service`).

use std::ffi::c_int;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use client::{Client, Team};

use crate::entry::Outcome;
use crate::failure::{Class, Failure};
use crate::ffi::Word;
use crate::host::Host;
use crate::progress;

/// Bytes that a process tells.
const SAID_BYTES: usize = 320;

/// Bytes for the name of a team that shares memory.
const NAME_BYTES: usize = 128;

/// Makes the team of processes of a host, of so many; what its name is.
pub(crate) type TeamMaker = fn(usize) -> client::Result<(Team, String)>;

/// What a process tells the others.
#[derive(Clone, Debug)]
pub(crate) struct RollCallAnswer {
    /// Whether the file is one of ours.
    pub(crate) is_ours: bool,
    pub(crate) amode: c_int,
    /// A number for what was named: the service and the path.
    pub(crate) target: u64,
    /// A number for the host, the user and the namespace of processes.
    place: u64,
    /// Something that nobody can guess; that of rank 0 names the team.
    secret: u128,
    /// Bytes of the hints for a new file, which rank 0 tells in a second exchange.
    hint_bytes: u32,
    /// What is wrong already.
    failure: Option<Failure>,
}

impl RollCallAnswer {
    /// What this process has to say.
    pub(crate) fn new(
        is_ours: bool,
        amode: c_int,
        target: u64,
        hint_bytes: usize,
        failure: Option<Failure>,
    ) -> RollCallAnswer {
        RollCallAnswer {
            is_ours,
            amode,
            target,
            place: if is_ours { place() } else { 0 },
            secret: if is_ours { secret() } else { 0 },
            hint_bytes: hint_bytes as u32,
            failure,
        }
    }

    fn put(&self) -> [u8; SAID_BYTES] {
        let mut out = [0; SAID_BYTES];
        out[0] = u8::from(self.is_ours);
        out[4..8].copy_from_slice(&self.amode.to_le_bytes());
        out[8..16].copy_from_slice(&self.target.to_le_bytes());
        out[16..24].copy_from_slice(&self.place.to_le_bytes());
        out[24..40].copy_from_slice(&self.secret.to_le_bytes());
        out[40..44].copy_from_slice(&self.hint_bytes.to_le_bytes());
        if let Some(failure) = &self.failure {
            out[1] = 1;
            out[2] = failure.class.index();
            let text = failure.text.as_bytes();
            let len = text.len().min(SAID_BYTES - 44);
            out[44..44 + len].copy_from_slice(&text[..len]);
        }
        out
    }

    fn read(bytes: &[u8]) -> RollCallAnswer {
        let part = |from: usize| bytes[from..from + 8].try_into().expect("8 bytes");
        let text = &bytes[44..];
        let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
        RollCallAnswer {
            is_ours: bytes[0] == 1,
            amode: c_int::from_le_bytes(bytes[4..8].try_into().expect("4 bytes")),
            target: u64::from_le_bytes(part(8)),
            place: u64::from_le_bytes(part(16)),
            secret: u128::from_le_bytes(bytes[24..40].try_into().expect("16 bytes")),
            hint_bytes: u32::from_le_bytes(bytes[40..44].try_into().expect("4 bytes")),
            failure: (bytes[1] == 1).then(|| {
                let text = String::from_utf8_lossy(&text[..end]);
                Failure::new(Class::of_index(bytes[2]), text)
            }),
        }
    }
}

/// What all processes said, and where this one is among them.
#[derive(Debug)]
pub(crate) struct RollCall {
    rank: usize,
    all: Vec<RollCallAnswer>,
}

impl RollCall {
    /// Tells and hears; all processes of the communicator call it.
    pub(crate) fn hold(host: &Host, comm: Word, said: &RollCallAnswer) -> Outcome<RollCall> {
        if comm == host.abi.comm_self {
            return Ok(RollCall {
                rank: 0,
                all: vec![said.clone()],
            });
        }
        let rank = host.comm_rank(comm)?;
        let all = host.allgather(&said.put(), comm)?;
        Ok(RollCall {
            rank,
            all: all
                .iter()
                .map(|bytes| RollCallAnswer::read(bytes))
                .collect(),
        })
    }

    /// Whether the file is one of ours, as rank 0 sees it.
    pub(crate) fn is_ours(&self) -> bool {
        self.all[0].is_ours
    }

    /// What is wrong for all processes, because it is wrong for one of them or between them.
    pub(crate) fn check(&self) -> Outcome {
        let first = &self.all[0];
        let differs =
            |what: fn(&RollCallAnswer) -> u64| self.all.iter().position(|s| what(s) != what(first));
        if let Some(rank) = differs(|said| said.target) {
            return Err(Failure::new(
                Class::NotSame,
                format!("ranks 0 and {rank} named different files; all have to name the same"),
            ));
        }
        if let Some(rank) = differs(|said| said.amode as u64) {
            return Err(Failure::new(
                Class::NotSame,
                format!("ranks 0 and {rank} gave different amodes; all have to give the same"),
            ));
        }
        let failed = self.all.iter().enumerate();
        let failed = failed.filter_map(|(rank, said)| Some((rank, said.failure.as_ref()?)));
        match failed.min_by_key(|(rank, _)| *rank) {
            None => Ok(()),
            Some((rank, failure)) if rank == self.rank => Err(failure.clone()),
            Some((rank, failure)) => {
                let text = format!("rank {rank}: {}", failure.text);
                Err(Failure::new(failure.class, text))
            }
        }
    }

    /// A number that all have and that no other opening has.
    pub(crate) fn number(&self) -> u64 {
        // The other half names the team.
        self.all[0].secret as u64
    }

    /// The hints of rank 0 for a new file; all processes call it, each with its own.
    pub(crate) fn hints(&self, host: &Host, comm: Word, mine: Vec<u8>) -> Outcome<Vec<u8>> {
        let mut bytes = mine;
        if self.all.len() > 1 && self.all.iter().any(|said| said.hint_bytes > 0) {
            bytes.resize(self.all[0].hint_bytes as usize, 0);
            host.broadcast(&mut bytes, comm)?;
        }
        Ok(bytes)
    }

    /// The processes as a team; all of them call it.
    pub(crate) fn team(&self, host: &Host, comm: Word, client: &Client) -> Outcome<Team> {
        if let Some(team) = self.near_team(host, comm, Team::host_create)? {
            return Ok(team);
        }
        let size = self.all.len();
        let name = format!("mpi-{:032x}", self.all[0].secret);
        Ok(Team::processes_for(client, &name, self.rank, size, None)?)
    }

    /// What the processes of a communicator have to know of each other where no file is opened; all call it.
    pub(crate) fn of_processes(host: &Host, comm: Word) -> Outcome<RollCall> {
        RollCall::hold(host, comm, &RollCallAnswer::new(true, 0, 0, 0, None))
    }

    /// The team of processes if they share a host, also of one alone; nothing, for all of them, if they do not.
    pub(crate) fn near_team(
        &self,
        host: &Host,
        comm: Word,
        create: TeamMaker,
    ) -> Outcome<Option<Team>> {
        match self.all.len() {
            1 => Ok(Some(Team::alone())),
            _ if self.is_near() => self.host_team(host, comm, create),
            _ => Ok(None),
        }
    }

    fn is_near(&self) -> bool {
        self.all.iter().all(|said| said.place == self.all[0].place)
    }

    /// The team of processes that share memory; nothing, for all of them, if one of them cannot.
    fn host_team(&self, host: &Host, comm: Word, create: TeamMaker) -> Outcome<Option<Team>> {
        let size = self.all.len();
        let mut told = [0; NAME_BYTES];
        let mut team = None;
        if self.rank == 0
            && let Ok((created, name)) = create(size)
            && name.len() < NAME_BYTES
        {
            told[..name.len()].copy_from_slice(name.as_bytes());
            team = Some(created);
        }
        host.broadcast(&mut told, comm)?;
        let end = told.iter().position(|b| *b == 0).unwrap_or(0);
        let name = String::from_utf8_lossy(&told[..end]);
        if name.is_empty() {
            return Ok(None);
        }
        if self.rank != 0 {
            team = Team::host_attach(&name, self.rank, size).ok();
        }
        let have = host.allgather(&[u8::from(team.is_some())], comm)?;
        match team.filter(|_| have.iter().all(|one| one == &[1])) {
            Some(team) => Ok(team.meet().ok().map(|()| team)),
            None => Ok(None),
        }
    }
}

/// A member like `team`, whose waits drive the host.
pub(crate) fn driven(team: &Team) -> Team {
    match team.size() {
        1 => team.clone(),
        _ => team.driving(Arc::new(progress::drive)),
    }
}

/// The host, the user, and the namespace that process numbers are in.
fn place() -> u64 {
    let mut hasher = DefaultHasher::new();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let shared = fs::metadata("/dev/shm")
        .map(|m| m.dev())
        .unwrap_or_default();
    let user = fs::metadata("/proc/self")
        .map(|m| m.uid())
        .unwrap_or(u32::MAX);
    (boot, namespace, shared, user).hash(&mut hasher);
    hasher.finish()
}

fn secret() -> u128 {
    let mut bytes = [0; 16];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Ok(()) => u128::from_le_bytes(bytes),
        // Without it names differ still, but can be guessed.
        Err(_) => {
            let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
            (u128::from(std::process::id()) << 64) | now.as_nanos()
        }
    }
}
