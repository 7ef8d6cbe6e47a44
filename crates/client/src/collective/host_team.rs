//! Teams of processes of one host, which exchange bytes through memory.
//!
//! Rank 0 makes the assembly and tells its name to the others by whatever way they have; they attach, and
//! all meet. No member waits before that, so a member that cannot attach can say so and all take another kind of
//! team.
//!
//! Left to others: the memory and its protocol (`direct::Assembly`).

use std::sync::Arc;
use std::time::Duration;

use ::direct::{Apart, Assembly};
use wire::Status;

use crate::collective::team::{Drive, Exchange, Team, absent, late};
use crate::error::{Error, Result};

/// How long members wait for each other when they meet.
const MEETING: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Host {
    assembly: Arc<Assembly>,
}

impl Host {
    fn team(assembly: Assembly) -> Team {
        let assembly = Arc::new(assembly);
        let lanes = assembly.has_lanes().then(|| assembly.clone());
        Team::with_lanes(Arc::new(Host { assembly }), lanes)
    }
}

fn refused(error: std::io::Error) -> Error {
    Error::Refused {
        status: Status::Unreachable,
        text: format!("no team through the memory of the host: {error}"),
        server: None,
    }
}

pub(crate) fn apart(apart: Apart) -> Error {
    match apart {
        Apart::Left(rank) => absent(rank, "has ended"),
        Apart::Died(rank) => absent(rank, "has died"),
        Apart::Late(rank) => late(rank, MEETING),
        Apart::Nonsense(rank) => absent(rank, "wrote what cannot be into the memory of the team"),
        Apart::Forked => Error::Forked,
    }
}

impl Exchange for Host {
    fn rank(&self) -> usize {
        self.assembly.rank()
    }

    fn size(&self) -> usize {
        self.assembly.size()
    }

    fn allgather(&self, bytes: &[u8], drive: Drive<'_>) -> Result<Vec<Vec<u8>>> {
        self.assembly.allgather(bytes, drive, None).map_err(apart)
    }

    fn exchange(&self, parts: &[&[u8]], drive: Drive<'_>) -> Result<Vec<Vec<u8>>> {
        self.assembly.exchange(parts, drive, None).map_err(apart)
    }

    fn exchange_into(
        &self,
        parts: &[&[u8]],
        got: &mut Vec<Vec<u8>>,
        drive: Drive<'_>,
    ) -> Result<()> {
        let limit = None;
        self.assembly
            .exchange_into(parts, got, drive, limit)
            .map_err(apart)
    }

    fn is_near(&self) -> bool {
        true
    }

    fn meet(&self, drive: Drive<'_>) -> Result<()> {
        let limit = Some(MEETING);
        let came = self.assembly.allgather(&[], drive, limit).map_err(apart);
        self.assembly.forget_name();
        came?;
        // Processes of another process namespace cannot be watched.
        let sees_all = [u8::from(self.assembly.sees_all())];
        let all = self
            .assembly
            .allgather(&sees_all, drive, limit)
            .map_err(apart)?;
        match all.iter().position(|sees| sees[..] != [1]) {
            None => Ok(()),
            Some(rank) => Err(absent(rank, "does not see the processes of the others")),
        }
    }
}

impl Team {
    /// Makes a team of processes of this user on this host, and is its rank 0. The others
    /// [attach](Team::host_attach) with the name; then all [meet](Team::meet).
    pub fn host_create(size: usize) -> Result<(Team, String)> {
        let (assembly, name) = Assembly::create(size).map_err(refused)?;
        Ok((Host::team(assembly), name))
    }

    /// A team of this host whose members redistribute data: some 16 MiB of memory more.
    pub fn host_create_for_data(size: usize) -> Result<(Team, String)> {
        let (assembly, name) = Assembly::create_with_lanes(size).map_err(refused)?;
        Ok((Host::team(assembly), name))
    }

    /// Is a member of the team that rank 0 has made. Waits for nobody. Once all have met, members wait for
    /// each other for as long as all of them live.
    pub fn host_attach(name: &str, rank: usize, size: usize) -> Result<Team> {
        let assembly = Assembly::attach(name, rank, size).map_err(refused)?;
        Ok(Host::team(assembly))
    }
}
