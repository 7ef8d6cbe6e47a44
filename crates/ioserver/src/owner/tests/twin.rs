//! A metadata manager and I/O servers in memory, with what tests of the owner need of them.
//!
//! A server keeps per file the epoch it has applied, the end of its bytes, the number it was told, and
//! a few cells that accesses read and write one after the other, letting others run in between, so
//! that an access which should have been excluded is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Barrier, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use layout::{Partition, Pattern};
use wire::message::Bytes;
use wire::message::catalogue::{Member, MemberState, StoreKind};
use wire::message::cluster::{
    ApplyTruncate, BeginTruncate, EndIs, Fence, FileStateIs, FinishTruncate, ReportSize, Tell,
};
use wire::{ClientId, FileId, LayoutState, Piece, Place, ServerId, SizeState, Status, Time};

use super::super::{Cluster, Owner, Refused};
use super::LIMIT;

pub(super) const FILE: FileId = FileId(7);
/// Another one of the same layout, which stays empty.
pub(super) const OTHER: FileId = FileId(8);
/// Bytes of a stripe; cell `i` is file byte `i`, at the server of its stripe.
pub(super) const CELLS: u64 = 8;

pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct ServerFile {
    pub(super) epoch: u64,
    pub(super) end: u64,
    pub(super) grows: bool,
    pub(super) told: u64,
    pub(super) cells: [u64; CELLS as usize],
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) is_up: bool,
    /// There, but does nothing in time.
    pub(super) is_slow: bool,
    pub(super) incarnation: u64,
    pub(super) kept_since: u64,
    pub(super) files: BTreeMap<FileId, ServerFile>,
    pub(super) fenced: BTreeSet<ClientId>,
    /// Questions of these names wait until they are removed here.
    gates: BTreeSet<&'static str>,
    /// How often it was asked what.
    pub(super) asked: BTreeMap<&'static str, usize>,
    running: BTreeMap<u64, (FileId, ClientId, Option<u64>)>,
}

#[derive(Debug)]
pub(super) struct Manager {
    pub(super) is_up: bool,
    /// So many answers get lost: what was asked is done, and the asker does not hear of it.
    pub(super) lost_answers: u32,
    /// The next answer is on its way from the first wait of two to the second.
    pub(super) slow_answer: Option<Arc<Barrier>>,
    pub(super) refusal: Option<Refused>,
    pub(super) layout: LayoutState,
    pub(super) size: SizeState,
    pub(super) modified: Time,
    pub(super) asked: BTreeMap<&'static str, usize>,
}

#[derive(Debug)]
pub(super) struct Inside {
    pub(super) manager: Manager,
    pub(super) servers: BTreeMap<ServerId, Server>,
    seed: u64,
    clock: i64,
    runs: u64,
}

/// Everybody but the owners.
#[derive(Debug)]
pub(super) struct World {
    inside: Mutex<Inside>,
    changed: Condvar,
}

/// The world as one server sees it.
struct Twin {
    world: Arc<World>,
    server: ServerId,
    incarnation: u64,
}

fn refused<T>(status: Status) -> Result<T, Refused> {
    Err(Refused::new(status, format!("twin: {status}")))
}

impl World {
    /// `count` servers numbered from 0, with one file over all of them that server 0 owns.
    pub(super) fn new(count: u64, seed: u64) -> Arc<World> {
        println!("seed {seed}");
        let servers: Vec<ServerId> = (0..count).map(ServerId).collect();
        let sets = (0..count)
            .map(|i| {
                format!(
                    "{{({},{},{},1)}}",
                    i * CELLS,
                    (i + 1) * CELLS - 1,
                    count * CELLS
                )
            })
            .map(|text| text.parse().unwrap())
            .collect();
        let pattern = Pattern::new(count * CELLS, sets).unwrap();
        let place = |s: &ServerId| Place {
            server: s.0,
            incarnation: 1,
        };
        let places = servers.iter().map(|s| vec![place(s)]).collect();
        let piece = Piece::whole(1, Partition::from_start(pattern), places);
        let layout = LayoutState::new(place(&servers[0]), piece);
        let server = |_: &ServerId| Server {
            is_up: true,
            is_slow: false,
            incarnation: 1,
            kept_since: 1,
            files: BTreeMap::new(),
            fenced: BTreeSet::new(),
            gates: BTreeSet::new(),
            asked: BTreeMap::new(),
            running: BTreeMap::new(),
        };
        Arc::new(World {
            inside: Mutex::new(Inside {
                manager: Manager {
                    is_up: true,
                    lost_answers: 0,
                    slow_answer: None,
                    refusal: None,
                    layout,
                    size: SizeState {
                        size: 0,
                        epoch: 0,
                        truncate_to: None,
                    },
                    modified: Time(0),
                    asked: BTreeMap::new(),
                },
                servers: servers.iter().map(|s| (*s, server(s))).collect(),
                seed,
                clock: 0,
                runs: 0,
            }),
            changed: Condvar::new(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap()
    }

    /// Changes something and lets everybody look.
    pub(super) fn change(&self, change: impl FnOnce(&mut Inside)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    pub(super) fn on_server(&self, server: u64, change: impl FnOnce(&mut Server)) {
        self.change(|inside| change(inside.servers.get_mut(&ServerId(server)).unwrap()));
    }

    /// Lets questions of this name to a server wait.
    pub(super) fn shut(&self, server: u64, name: &'static str) {
        self.on_server(server, |s| {
            s.gates.insert(name);
        });
    }

    /// Lets them go on.
    pub(super) fn open(&self, server: u64, name: &'static str) {
        self.on_server(server, |s| {
            s.gates.remove(name);
        });
    }

    /// A start of the owner at a server, with little patience.
    pub(super) fn owner(self: &Arc<Self>, server: u64) -> Owner {
        let server = ServerId(server);
        let incarnation = self.lock().servers[&server].incarnation;
        let world = Arc::clone(self);
        Owner::new(Arc::new(Twin {
            world,
            server,
            incarnation,
        }))
        .with_patience(Duration::from_secs(20))
    }

    pub(super) fn members(&self) -> Vec<Member> {
        let inside = self.lock();
        let member = |(&server, s): (&ServerId, &Server)| Member {
            server,
            address: String::new(),
            local: None,
            incarnation: s.incarnation,
            kept_since: s.kept_since,
            store: StoreKind::Memory,
            capacity_bytes: 0,
            used_bytes: 0,
            distance: 0,
            state: if s.is_up {
                MemberState::Alive
            } else {
                MemberState::Dead
            },
            is_draining: false,
        };
        inside.servers.iter().map(member).collect()
    }

    /// Lets other threads run for a random while.
    fn stagger(&self) {
        let turns = {
            let mut inside = self.lock();
            inside.seed = inside
                .seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (inside.seed >> 60) / 4
        };
        for _ in 0..turns {
            thread::yield_now();
        }
    }

    fn wait_while<'a>(
        &self,
        inside: MutexGuard<'a, Inside>,
        condition: impl FnMut(&mut Inside) -> bool,
    ) -> MutexGuard<'a, Inside> {
        let (inside, timeout) = self
            .changed
            .wait_timeout_while(inside, LIMIT, condition)
            .unwrap();
        assert!(!timeout.timed_out(), "a server waits for ever");
        inside
    }

    /// An access of a client to some cells at one server, one after the other.
    pub(super) fn access(
        &self,
        server: ServerId,
        client: ClientId,
        number: Option<u64>,
        cells: &[usize],
        mut each: impl FnMut(&mut u64),
    ) -> Result<(), Status> {
        let run = {
            let mut inside = self.lock();
            inside.runs += 1;
            let run = inside.runs;
            let found = inside.servers.get_mut(&server).unwrap();
            if !found.is_up {
                return Err(Status::Unreachable);
            }
            if found.fenced.contains(&client) {
                return Err(Status::Fenced);
            }
            let told = found.files.entry(FILE).or_default().told;
            if number.is_some_and(|n| n < told) {
                return Err(Status::StaleLease);
            }
            found.running.insert(run, (FILE, client, number));
            run
        };
        for &cell in cells {
            self.stagger();
            let mut inside = self.lock();
            let found = inside.servers.get_mut(&server).unwrap();
            each(&mut found.files.get_mut(&FILE).unwrap().cells[cell]);
        }
        self.change(|inside| {
            let found = inside.servers.get_mut(&server).unwrap();
            found.running.remove(&run);
        });
        Ok(())
    }

    /// A question to a server, after all gates.
    fn ask<T>(
        &self,
        server: ServerId,
        name: &'static str,
        answer: impl FnOnce(&mut Server) -> T,
    ) -> Result<T, Refused> {
        self.stagger();
        let mut inside = self.lock();
        if let Some(found) = inside.servers.get_mut(&server) {
            *found.asked.entry(name).or_default() += 1;
        }
        self.changed.notify_all();
        let is_shut = |i: &mut Inside| i.servers[&server].gates.contains(name);
        let mut inside = self.wait_while(inside, is_shut);
        let Some(found) = inside.servers.get_mut(&server).filter(|s| s.is_up) else {
            return refused(Status::Unreachable);
        };
        if found.is_slow {
            return refused(Status::TimedOut);
        }
        Ok(answer(found))
    }

    /// Waits until nothing of a kind runs at a server.
    fn drain(&self, server: ServerId, is_old: impl Fn(&(FileId, ClientId, Option<u64>)) -> bool) {
        let inside = self.lock();
        let runs = |i: &mut Inside| i.servers[&server].running.values().any(&is_old);
        drop(self.wait_while(inside, runs));
    }

    fn manager<T>(
        &self,
        name: &'static str,
        answer: impl FnOnce(&mut Manager) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        self.stagger();
        let mut inside = self.lock();
        let manager = &mut inside.manager;
        *manager.asked.entry(name).or_default() += 1;
        self.changed.notify_all();
        if !manager.is_up {
            return refused(Status::Unreachable);
        }
        let answer = answer(manager);
        if manager.lost_answers > 0 {
            manager.lost_answers -= 1;
            manager.is_up = manager.lost_answers == 0 && manager.is_up;
            return refused(Status::Unreachable);
        }
        let way = manager.slow_answer.take();
        drop(inside);
        if let Some(way) = way {
            way.wait();
            way.wait();
        }
        answer
    }
}

impl Cluster for Twin {
    fn own_server(&self) -> ServerId {
        self.server
    }

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn now(&self) -> Time {
        let mut inside = self.world.lock();
        inside.clock += 1;
        Time(inside.clock)
    }

    fn file_state(&self, file: FileId) -> Result<FileStateIs, Refused> {
        self.world.manager("file_state", |m| {
            if file != FILE && file != OTHER {
                return refused(Status::NotFound);
            }
            Ok(FileStateIs {
                layout: m.layout.clone(),
                size: m.size,
                owner: 0,
                group: 0,
                mode: 0o600,
                directory: FileId(0),
                note: Bytes::default(),
            })
        })
    }

    fn report_size(&self, request: &ReportSize) -> Result<SizeState, Refused> {
        self.world.manager("report_size", |m| {
            if request.epoch > m.size.epoch {
                return refused(Status::InvalidArgument);
            }
            if request.epoch == m.size.epoch {
                m.size.size = m.size.size.max(request.size);
                m.modified = m.modified.max(request.modified);
            }
            Ok(m.size)
        })
    }

    fn begin_truncate(&self, request: &BeginTruncate) -> Result<SizeState, Refused> {
        self.world.manager("begin_truncate", |m| {
            if let Some(refusal) = &m.refusal {
                return Err(refusal.clone());
            }
            if m.size.truncate_to.is_some() {
                return refused(Status::Busy);
            }
            m.size = SizeState {
                size: request.to,
                epoch: m.size.epoch + 1,
                truncate_to: Some(request.to),
            };
            Ok(m.size)
        })
    }

    fn finish_truncate(&self, request: &FinishTruncate) -> Result<SizeState, Refused> {
        self.world.manager("finish_truncate", |m| {
            if request.epoch == m.size.epoch {
                m.size.truncate_to = None;
            }
            Ok(m.size)
        })
    }

    fn apply_truncate(&self, server: ServerId, request: &ApplyTruncate) -> Result<(), Refused> {
        self.world.ask(server, "apply", |s| {
            let file = s.files.entry(request.file).or_default();
            if request.epoch > file.epoch {
                file.epoch = request.epoch;
                file.end = file.end.min(request.to);
            }
        })
    }

    fn ask_end(&self, server: ServerId, file: FileId) -> Result<EndIs, Refused> {
        self.world.ask(server, "ask_end", |s| {
            let file = s.files.entry(file).or_default();
            EndIs {
                epoch: file.epoch,
                end: file.end,
                grows: file.grows,
            }
        })
    }

    fn fence(&self, server: ServerId, request: &Fence) -> Result<(), Refused> {
        let client = request.client;
        self.world
            .ask(server, "fence", |s| s.fenced.insert(client))?;
        self.world.drain(server, |(_, c, _)| *c == client);
        Ok(())
    }

    fn tell(&self, server: ServerId, request: &Tell) -> Result<(), Refused> {
        let number = request.number;
        self.world.ask(server, "tell", |s| {
            let file = s.files.entry(request.file).or_default();
            file.told = file.told.max(number);
        })?;
        self.world.drain(server, |(file, _, n)| {
            *file == request.file && n.is_some_and(|n| n < number)
        });
        Ok(())
    }

    fn ask_number(&self, server: ServerId, file: FileId) -> Result<u64, Refused> {
        self.world.ask(server, "ask_number", |s| {
            s.files.entry(file).or_default().told
        })
    }
}
