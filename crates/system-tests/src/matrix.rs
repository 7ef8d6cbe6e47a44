//! The matrix: services of every kind, and on each the cases that fall to it.
//!
//! Factors are the service (number of servers, and how it stores, is reached and run), the physical
//! layout, the view and the operation. A *selection* is a list of rows; rows of one service run on
//! one service.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use client::{Client, ConnectOptions, ServerId, ServiceUrl};

use crate::cases::{Bench, Case, OPERATIONS};
use crate::covering::covering;
use crate::layouts::{LOGICAL, PHYSICAL};
use crate::seed::{Random, seed};
use crate::service::{Mode, Service, ServiceOptions, Store, Transport, connect, said_direct};
use crate::waiting::until;
use crate::worker::Workers;
use testkit::TempDir;

/// Numbers of I/O servers.
pub const SERVERS: &[usize] = &[1, 2, 3, 4, 7];

/// How a service is made; embedded ones have disks, and choose their own sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Number of I/O servers.
    pub servers: usize,
    /// Where bytes are kept.
    pub store: Store,
    /// How servers are reached.
    pub transport: Transport,
    /// Who serves.
    pub mode: Mode,
}

impl Kind {
    /// Whether clients of this kind copy directly where they can. About half of the kinds do, which
    /// ones follows from the seed; `PARIO_DIRECT` decides for all.
    pub fn is_direct(&self) -> bool {
        let place = |found: Option<usize>| found.expect("it is there") as u64;
        let servers = place(SERVERS.iter().position(|n| *n == self.servers));
        let store = place(STORES.iter().position(|s| *s == self.store));
        let transport = place(TRANSPORTS.iter().position(|t| *t == self.transport));
        let turn = servers + store + transport + seed();
        said_direct().unwrap_or(turn % 2 == 1)
    }
}

const STORES: &[Store] = &[Store::Memory, Store::Disk];
const TRANSPORTS: &[Transport] = &[Transport::Unix, Transport::Tcp, Transport::TcpSecret];
const MODES: &[Mode] = &[Mode::Service, Mode::Embedded];

/// Which values of two factors go together: embedded means disk and Unix sockets.
fn may(one: (usize, usize), other: (usize, usize)) -> bool {
    let is_embedded =
        |(factor, value): (usize, usize)| factor == 3 && MODES[value] == Mode::Embedded;
    match (one, other) {
        ((1, store), mode) if is_embedded(mode) => STORES[store] == Store::Disk,
        ((2, transport), mode) if is_embedded(mode) => TRANSPORTS[transport] == Transport::Unix,
        _ => true,
    }
}

/// A covering selection: every two values of two factors meet in some case.
pub fn pairwise() -> BTreeMap<Kind, Vec<Case>> {
    let sizes = [
        SERVERS.len(),
        STORES.len(),
        TRANSPORTS.len(),
        MODES.len(),
        PHYSICAL.len(),
        LOGICAL.len(),
        OPERATIONS.len(),
    ];
    let mut selection: BTreeMap<Kind, Vec<Case>> = BTreeMap::new();
    for row in covering(&sizes, may, seed()) {
        let kind = Kind {
            servers: SERVERS[row[0]],
            store: STORES[row[1]],
            transport: TRANSPORTS[row[2]],
            mode: MODES[row[3]],
        };
        let case = Case {
            physical: row[4],
            logical: row[5],
            operation: row[6],
        };
        selection.entry(kind).or_default().push(case);
    }
    selection
}

/// Every kind of service.
pub fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for &servers in SERVERS {
        for &mode in MODES {
            for (s, &store) in STORES.iter().enumerate() {
                for (t, &transport) in TRANSPORTS.iter().enumerate() {
                    let m = MODES.iter().position(|x| *x == mode).expect("it is there");
                    if may((1, s), (3, m)) && may((2, t), (3, m)) {
                        kinds.push(Kind {
                            servers,
                            store,
                            transport,
                            mode,
                        });
                    }
                }
            }
        }
    }
    kinds
}

/// All cases of one service, in any order.
pub fn all_cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for physical in 0..PHYSICAL.len() {
        for logical in 0..LOGICAL.len() {
            for operation in 0..OPERATIONS.len() {
                cases.push(Case {
                    physical,
                    logical,
                    operation,
                });
            }
        }
    }
    random.shuffle(&mut cases);
    cases
}

/// Starts a service of a kind and runs cases on it until all are done or the time is over; how many
/// were run. Afterwards nothing is left of them.
pub fn run(kind: Kind, cases: &[Case], end: Option<Instant>) -> usize {
    let direct = kind.is_direct();
    println!("{kind:?} PARIO_DIRECT={}", u8::from(direct));
    let site = Site::start(kind);
    let mut bench = site.bench(kind);
    let mut done = 0;
    for case in cases {
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        let number =
            (case.physical * LOGICAL.len() + case.logical) * OPERATIONS.len() + case.operation;
        let drawn = Random::of_run(number as u64).draw();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| bench.run(case, drawn))) {
            let way = u8::from(direct);
            eprintln!(
                "{kind:?}\n{case}\nPARIO_SEED={:#x} PARIO_DIRECT={way}",
                seed()
            );
            eprintln!("{}", site.logs());
            resume_unwind(panic);
        }
        done += 1;
    }
    left_behind(&bench);
    done
}

/// What cases run on.
enum Site {
    Service(Box<Service>),
    /// Served by this process, which connects first.
    Directory(TempDir),
}

impl Site {
    fn start(kind: Kind) -> Site {
        match kind.mode {
            Mode::Service => {
                let options = ServiceOptions::new(kind.servers)
                    .store(kind.store)
                    .transport(kind.transport)
                    .direct(kind.is_direct())
                    .memory("64MiB");
                Site::Service(Box::new(options.start()))
            }
            Mode::Embedded => Site::Directory(TempDir::new()),
        }
    }

    fn client(&self, kind: Kind) -> Client {
        match self {
            Site::Service(service) => service.client(),
            Site::Directory(dir) => {
                let url = ServiceUrl::Directory(dir.path().to_owned());
                let options = ConnectOptions::default().with_direct(kind.is_direct());
                connect(&url, options, kind.servers).expect("a client")
            }
        }
    }

    fn bench(&self, kind: Kind) -> Bench {
        let client = self.client(kind);
        let mut ids: Vec<ServerId> = client
            .members()
            .expect("members")
            .iter()
            .map(|m| m.server)
            .collect();
        ids.sort_unstable();
        assert_eq!(ids.len(), kind.servers, "I/O servers");
        Bench {
            reader: self.client(kind),
            client,
            workers: match self {
                Site::Service(service) => service.workers(3),
                Site::Directory(dir) => {
                    let url = format!("dir:{}", dir.path().display());
                    Workers::start_how(3, &url, None, kind.is_direct())
                }
            },
            servers: ids,
        }
    }

    fn logs(&self) -> String {
        match self {
            Site::Service(service) => service.logs(),
            Site::Directory(_) => String::new(),
        }
    }
}

/// Nothing may be left: no file, no removal that waits, no subfile, no contradiction.
fn left_behind(bench: &Bench) {
    let counts = || bench.client.counts().expect("counts");
    assert_eq!(counts().files, 0);
    until("removals", || counts().removals == 0);
    for server in &bench.servers {
        let left = bench.client.subfiles(*server).expect("subfiles");
        assert!(left.is_empty(), "left at {server}: {left:?}");
    }
    let findings = bench.client.check().expect("checked");
    assert!(findings.is_empty(), "{findings:?}");
}
