//! What the measurements of streams share: a service, a team of threads, memory with contents that can be checked, and trials.
//!
//! Invariants
//! - A trial opens, moves all bytes and closes; what was read is compared in the turn that is not counted.

use std::sync::Mutex;
use std::time::Instant;

use client::{Client, ConnectOptions, Error, Result, Team};
use streams::{Access, Context, Emulation, Mode, Shape, Stream, StreamOptions};

use super::BYTES;
use crate::site::{Site, Store, connect, wanted};

/// A service, a team, and memory.
pub(super) struct Lab {
    pub(super) store: Store,
    pub(super) servers: usize,
    pub(super) client: Client,
    pub(super) shape: Shape,
    teams: Vec<Team>,
    /// What each member writes: the number of its VP, again and again, as often as a call has room.
    sources: Vec<[Vec<u8>; 2]>,
    /// What each member reads into.
    rooms: Vec<Mutex<Vec<u8>>>,
    /// Ends last.
    _site: Site,
}

/// How VPs call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// All together, with one size.
    Scalar,
    /// All together, with a mask that is true for all.
    Masked,
    /// All together, with such a mask and a size of each.
    Sized,
    /// As [`Way::Scalar`], dealt to members one by one.
    Cyclic,
    /// Each for itself, from an elemental function.
    Elemental,
}

/// Whether what is read is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Contents,
    Nothing,
}

/// One way to write or read everything.
pub(super) struct Trial<'a> {
    pub(super) name: &'static str,
    path: &'a str,
    options: StreamOptions,
    /// Bytes of a VP per call.
    call: usize,
    way: Way,
    access: Access,
}

impl<'a> Trial<'a> {
    /// Writes all streams.
    pub(super) fn write(
        name: &'static str,
        path: &'a str,
        options: StreamOptions,
        call: usize,
        way: Way,
    ) -> Trial<'a> {
        Trial {
            name,
            path,
            options,
            call,
            way,
            access: Access::Write,
        }
    }

    /// Reads all streams.
    pub(super) fn read(name: &'static str, path: &'a str, call: usize, way: Way) -> Trial<'a> {
        Trial {
            name,
            path,
            options: StreamOptions::new(Access::Read),
            call,
            way,
            access: Access::Read,
        }
    }

    /// With other options, for the same access.
    pub(super) fn with(self, options: StreamOptions) -> Trial<'a> {
        Trial { options, ..self }
    }
}

/// What every VP writes: its number.
fn contents(emulation: &Emulation, call: usize) -> Vec<u8> {
    let mut memory = Vec::with_capacity(emulation.count() * call);
    for local in 0..emulation.count() {
        let number = emulation.vp(local).to_le_bytes();
        (0..call / 8).for_each(|_| memory.extend(number));
    }
    memory
}

impl Lab {
    pub(super) fn start(
        store: Store,
        servers: usize,
        vps: u64,
        members: usize,
    ) -> std::result::Result<Lab, console::Error> {
        // A dozen files, each with tables and directories.
        let bytes = vps * BYTES as u64 * 24 + (64 << 20);
        let site = Site::start(&wanted(store, servers, bytes), None)?;
        let client = connect(site.url(), ConnectOptions::default())?;
        let shape = Shape::new(&[vps]).map_err(console::refused)?;
        let teams = Team::threads(members);
        let mut sources = Vec::new();
        for team in &teams {
            let emulation = Emulation::block(&shape, team).map_err(console::refused)?;
            sources.push([8, BYTES].map(|call| contents(&emulation, call)));
        }
        let room = vps.div_ceil(members as u64) as usize * BYTES;
        Ok(Lab {
            store,
            servers,
            client,
            shape,
            rooms: teams.iter().map(|_| Mutex::new(vec![0; room])).collect(),
            teams,
            sources,
            _site: site,
        })
    }

    /// Bytes of all streams together.
    pub(super) fn bytes(&self) -> u64 {
        self.shape.count() * BYTES as u64
    }

    pub(super) fn options(&self, least: Mode) -> StreamOptions {
        StreamOptions::new(Access::Write).at_least(least)
    }

    /// What a member writes in a call.
    pub(super) fn source(&self, team: &Team, call: usize) -> &[u8] {
        &self.sources[team.rank()][usize::from(call != 8)]
    }

    /// Runs every member in a thread.
    pub(super) fn members<T: Send>(
        &self,
        member: impl Fn(&Team) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .teams
                .iter()
                .map(|team| scope.spawn(|| member(team)))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended
                .map(|done| done.unwrap_or(Err(Error::Closed)))
                .collect()
        })
    }

    pub(super) fn open(
        &self,
        team: &Team,
        path: &str,
        options: &StreamOptions,
        way: Way,
    ) -> Result<Stream> {
        let distribution = match way {
            Way::Cyclic => "(cyclic)",
            _ => "(block)",
        };
        let emulation = Emulation::new(&self.shape, distribution, team)?;
        Stream::open(&self.client, team, path, &emulation, options)
    }

    /// Seconds of a trial, from opening to closing.
    pub(super) fn time(&self, trial: &Trial<'_>, check: Check) -> Result<f64> {
        let begin = Instant::now();
        self.members(|team| match trial.access {
            Access::Read => self.read(team, trial, check),
            _ => self.write(team, trial),
        })?;
        Ok(begin.elapsed().as_secs_f64())
    }

    fn write(&self, team: &Team, trial: &Trial<'_>) -> Result<()> {
        let mut stream = self.open(team, trial.path, &trial.options, trial.way)?;
        let (memory, count) = (self.source(team, trial.call), stream.emulation().count());
        let everywhere = Context::everywhere();
        let all = everywhere.narrowed(count, |_| true);
        let sizes = vec![trial.call; count];
        for _ in 0..BYTES / trial.call {
            match trial.way {
                Way::Masked => stream.write(&all, memory, trial.call)?,
                Way::Sized => stream.write_each(&all, memory, &sizes)?,
                _ => stream.write(&everywhere, memory, trial.call)?,
            }
        }
        stream.close()
    }

    fn read(&self, team: &Team, trial: &Trial<'_>, check: Check) -> Result<()> {
        let mut stream = self.open(team, trial.path, &trial.options, trial.way)?;
        let (call, count) = (trial.call, stream.emulation().count());
        let mut room = self.rooms[team.rank()]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let everywhere = Context::everywhere();
        let all = everywhere.narrowed(count, |_| true);
        let sizes = vec![call; count];
        for _ in 0..BYTES / call {
            let room = &mut room[..count * call];
            match trial.way {
                Way::Masked => drop(stream.read(&all, &mut *room, call)?),
                Way::Sized => drop(stream.read_each(&all, &mut *room, &sizes)?),
                Way::Elemental => {
                    let done = stream.elemental(&everywhere, |vp| {
                        let at = vp.local() * call;
                        std::io::Read::read_exact(vp, &mut room[at..at + call])
                    });
                    done.map_err(|error| Error::Argument {
                        name: "vp",
                        text: error.to_string(),
                    })?;
                }
                _ => drop(stream.read(&everywhere, &mut *room, call)?),
            }
            if check == Check::Contents {
                let is_right = *room == contents(stream.emulation(), call);
                is_right.then_some(()).ok_or_else(|| Error::Argument {
                    name: "contents",
                    text: format!("{}: streams have other bytes than were written", trial.path),
                })?;
            }
        }
        stream.close()
    }
}
