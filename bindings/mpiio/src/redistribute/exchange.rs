//! The processes of a communicator as a team, for calls that need no service.
//!
//! Where all of them share a host they exchange through its memory; otherwise MPI carries the bytes. Either team is
//! made with a communicator once and kept with it.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

use client::{Drive, Exchange, Redistributions, Team};
use parking_lot::Mutex;

use crate::entry::Outcome;
use crate::failure::Failure;
use crate::ffi::Word;
use crate::host::Host;
use crate::progress;
use crate::roll_call::{self, RollCall};

/// Plans, with the team that has them, by a number that an attribute of the program's communicator has.
static TEAMS: Mutex<Option<HashMap<usize, Arc<Redistributions>>>> = Mutex::new(None);

/// The key of that attribute.
static KEY: OnceLock<c_int> = OnceLock::new();

/// The plans of a communicator; all its processes call it.
pub(super) fn plans(host: &'static Host, comm: Word) -> Outcome<Arc<Redistributions>> {
    let key = match KEY.get() {
        Some(key) => *key,
        None => *KEY.get_or_init(|| host.comm_keyval(forget).unwrap_or(c_int::MIN)),
    };
    if let Some(kept) = host.comm_attribute(comm, key)?
        && let Some(plans) = TEAMS.lock().as_ref().and_then(|teams| teams.get(&kept))
    {
        return Ok(Arc::clone(plans));
    }
    progress::prepare();
    let roll_call = RollCall::of_processes(host, comm)?;
    let team = match roll_call.near_team(host, comm, Team::host_create_for_data)? {
        Some(team) => roll_call::driven(&team),
        None => Team::of(Arc::new(OverMpi {
            host,
            comm: host.comm_dup(comm)?,
            rank: host.comm_rank(comm)?,
            size: host.comm_size(comm)?,
        })),
    };
    let plans = Arc::new(Redistributions::new(team));
    let mut teams = TEAMS.lock();
    let teams = teams.get_or_insert_default();
    let number = (1..).find(|n| !teams.contains_key(n)).unwrap_or(usize::MAX);
    teams.insert(number, Arc::clone(&plans));
    host.set_comm_attribute(comm, key, number)?;
    Ok(plans)
}

/// The communicator goes, and its team with it.
extern "C" fn forget(_comm: Word, _key: c_int, value: *mut c_void, _extra: *mut c_void) -> c_int {
    let team = TEAMS
        .lock()
        .as_mut()
        .and_then(|teams| teams.remove(&(value as usize)));
    drop(team);
    0
}

/// Bytes carried by MPI. For threads of the program only.
#[derive(Debug)]
struct OverMpi {
    host: &'static Host,
    comm: Word,
    rank: usize,
    size: usize,
}

fn refused(failure: Failure) -> client::Error {
    client::Error::Refused {
        status: client::Status::Io,
        text: failure.text,
        server: None,
    }
}

impl Exchange for OverMpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn allgather(&self, bytes: &[u8], _drive: Drive<'_>) -> client::Result<Vec<Vec<u8>>> {
        let parts = vec![bytes; self.size];
        self.exchange(&parts, None)
    }

    fn exchange(&self, parts: &[&[u8]], _drive: Drive<'_>) -> client::Result<Vec<Vec<u8>>> {
        self.host.exchange(parts, self.comm).map_err(refused)
    }
}

impl Drop for OverMpi {
    fn drop(&mut self) {
        if self.host.is_running() {
            // At the end of MPI it is freed anyway.
            let _ = self.host.comm_free(self.comm);
        }
    }
}
