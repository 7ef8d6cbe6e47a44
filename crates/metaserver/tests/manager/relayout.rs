//! Moving a file between layouts, with I/O servers that only write down what they are asked.
//!
//! Whether bytes arrive is the affair of real servers; here it is who is asked what, in which order, and
//! what becomes of the file when a server or the manager fails.

use std::sync::{Arc, Condvar, Mutex};

use metaserver::{Endpoint, MetaServer};
use serving::{Exchange, Keys, Outcome, Peer, Proven, Running, Service};
use wire::message::catalogue::*;
use wire::message::cluster::*;
use wire::message::session::{Hello, Role, Shutdown, Welcome};
use wire::message::{Bytes, Refusal, Request};
use wire::{ClientId, FileId, ServerId, Status};

use crate::fixture::*;

/// What a server is to do when it is told to pull.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pulls {
    AtOnce,
    Waits,
    Fails,
}

struct Asked {
    names: Vec<String>,
    pulls: Pulls,
    pulled: Option<PullWindows>,
    fences: Vec<FenceWindows>,
    /// A file that is not fenced here.
    refuses: Option<FileId>,
    size: u64,
}

pub(crate) struct FakeServer {
    asked: Mutex<Asked>,
    changed: Condvar,
}

impl Service for FakeServer {
    type Session = ();

    fn hello(
        &self,
        _: &Peer,
        hello: &Hello,
        _: &Proven,
    ) -> Result<((), Welcome), (Status, Refusal)> {
        let from_manager = matches!(
            &hello.role,
            Role::Server { server: ServerId::MANAGER, seal } if seal.0.len() == 32
        );
        if !from_manager {
            return Err((Status::Unauthenticated, Refusal::new("not the manager")));
        }
        let welcome = Welcome {
            client: ClientId(0),
            session: Bytes::default(),
            server: ServerId(9),
            incarnation: 1,
            rendezvous_bytes: 0,
            message_bytes: 0,
            proof: Bytes::default(),
        };
        Ok(((), welcome))
    }

    fn handle(&self, (): &mut (), exchange: &mut Exchange) -> Outcome {
        let kind = exchange.header().kind;
        let mut asked = self.asked.lock().unwrap();
        let name = wire::message::KINDS.iter().find(|k| k.number == kind);
        asked.names.push(name.unwrap().name.to_owned());
        self.changed.notify_all();
        match kind {
            FenceWindows::KIND => {
                let fence: FenceWindows = exchange.request().unwrap();
                if asked.refuses == Some(fence.file) {
                    drop(asked);
                    return exchange.refuse(Status::Io, &Refusal::new("it cannot"));
                }
                let end = if fence.asks_size { asked.size } else { 0 };
                asked.fences.push(fence);
                drop(asked);
                let size = SizeAtRest {
                    size: end,
                    epoch: 0,
                    end,
                };
                let pointers = Vec::new();
                exchange.answer(&FenceAnswer {
                    accesses: 0,
                    size,
                    pointers,
                })
            }
            PullWindows::KIND => {
                let pull: PullWindows = exchange.request().unwrap();
                let bytes = pull.windows.iter().map(|w| w.end - w.start).sum::<u64>();
                asked.pulled = Some(pull);
                self.changed.notify_all();
                asked = self
                    .changed
                    .wait_while(asked, |asked| asked.pulls == Pulls::Waits)
                    .unwrap();
                let fails = asked.pulls == Pulls::Fails;
                drop(asked);
                if fails {
                    return exchange.refuse(Status::NoSpace, &Refusal::new("it is full"));
                }
                exchange.answer(&bytes)
            }
            _ => {
                drop(asked);
                exchange.answer(&())
            }
        }
    }

    fn ended(&self, (): ()) {}
}

pub(crate) struct Fake {
    running: Running<FakeServer>,
    pub(crate) joiner: Joiner,
}

impl Fake {
    fn new(scratch: &Scratch, name: &str) -> Fake {
        let endpoint = Endpoint::Unix(scratch.path().join(name));
        let listener = wire::link::Listener::bind(&endpoint).unwrap();
        let service = Arc::new(FakeServer {
            asked: Mutex::new(Asked {
                names: Vec::new(),
                pulls: Pulls::AtOnce,
                pulled: None,
                fences: Vec::new(),
                refuses: None,
                size: 1000,
            }),
            changed: Condvar::new(),
        });
        let running = serving::start(service, vec![listener], Keys::default()).unwrap();
        let joiner = Joiner::with(&scratch.socket(), join(&endpoint.to_string()));
        Fake { running, joiner }
    }

    /// Comes back with what it has, to a manager that was started again or has lost it.
    pub(crate) fn join_again(&mut self, scratch: &Scratch) {
        let before = self.joiner.joined.member.clone();
        let join = Join {
            server: Some(before.server),
            continues: Some(before.incarnation),
            ..join(&before.address)
        };
        self.joiner = Joiner::with(&scratch.socket(), join);
    }

    /// Does not let this file be fenced, or lets all.
    pub(crate) fn refuse(&self, file: Option<FileId>) {
        self.running.service().asked.lock().unwrap().refuses = file;
    }

    pub(crate) fn set(&self, pulls: Pulls) {
        self.running.service().asked.lock().unwrap().pulls = pulls;
        self.running.service().changed.notify_all();
    }

    /// Waits until it was asked exactly this since the last time.
    #[track_caller]
    fn expect(&self, names: &[&str]) {
        let service = self.running.service();
        let asked = service.asked.lock().unwrap();
        let (mut asked, _) = service
            .changed
            .wait_timeout_while(asked, PATIENCE, |asked| asked.names.len() < names.len())
            .unwrap();
        assert_eq!(asked.names, names);
        asked.names.clear();
    }

    /// The fences since the last time: what was fenced, and with which step.
    fn fences(&self) -> Vec<FenceWindows> {
        let mut asked = self.running.service().asked.lock().unwrap();
        asked.names.clear();
        std::mem::take(&mut asked.fences)
    }

    fn wait_for_pull(&self) -> PullWindows {
        let service = self.running.service();
        let asked = service.asked.lock().unwrap();
        let (asked, _) = service
            .changed
            .wait_timeout_while(asked, PATIENCE, |asked| asked.pulled.is_none())
            .unwrap();
        asked.pulled.clone().expect("it is told to pull")
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.set(Pulls::AtOnce);
        self.running.stop(PATIENCE);
    }
}

pub(crate) struct Setting {
    pub(crate) scratch: Scratch,
    pub(crate) manager: Option<MetaServer>,
    pub(crate) servers: Vec<Fake>,
    pub(crate) c: Asker,
    pub(crate) file: FileId,
}

/// Three servers, and a file on the first two of them.
pub(crate) fn setting(name: &str) -> Setting {
    let scratch = Scratch::new(name);
    let manager = scratch.start();
    let servers: Vec<Fake> = (0..3)
        .map(|i| Fake::new(&scratch, &format!("io{i}")))
        .collect();
    let mut c = Asker::client(&scratch.socket());
    let mut create = create("/f");
    create.options.layout.layout = Some("striped(4KiB) over [0,1]".into());
    let file = c.ask(&create).file;
    Setting {
        scratch,
        manager: Some(manager),
        servers,
        c,
        file,
    }
}

pub(crate) fn relayout(layout: &str) -> Relayout {
    Relayout {
        path: "/f".into(),
        layout: layout.into(),
        servers: Vec::new(),
        options: Default::default(),
    }
}

/// Waits for the end of the move.
pub(crate) fn ended(c: &mut Asker, file: FileId, state: MoveState) -> Progress {
    let over = c.wait(&RelayoutProgress { file }, |p| {
        p.as_ref().unwrap().state.is_over()
    });
    let progress = over.unwrap();
    assert_eq!(progress.state, state, "{}", progress.failure);
    progress
}

/// Waits for a state of a move that is not over.
pub(crate) fn in_state(c: &mut Asker, file: FileId, state: MoveState) -> Progress {
    // Another question might find it trying again.
    let there = c.wait(&RelayoutProgress { file }, |p| {
        p.as_ref().unwrap().state == state
    });
    there.unwrap()
}

pub(crate) fn control(file: FileId, what: MoveControl) -> ControlRelayout {
    ControlRelayout {
        file,
        what,
        limit_bytes: 0,
    }
}

pub(crate) fn layout_of(c: &mut Asker) -> LayoutAnswer {
    c.ask(&GetLayout { path: "/f".into() })
}

pub(crate) const NEW: &str = "striped(1KiB) over [1,2]";

#[test]
fn file_is_fenced_moved_and_let_go() {
    let mut s = setting("moved");
    for server in &s.servers {
        server.set(Pulls::Waits);
    }
    let progress = s.c.ask(&relayout(NEW));
    assert_eq!(progress.state, MoveState::Moving);
    assert_eq!((progress.file, progress.total_bytes), (s.file, 1000));
    let pull = s.servers[2].wait_for_pull();
    assert_eq!((pull.file, pull.step), (s.file, 2));
    let window = ByteRange {
        start: 0,
        end: 1000,
    };
    assert_eq!(pull.windows, std::slice::from_ref(&window));
    assert_eq!(s.servers[1].wait_for_pull(), pull);
    let state = layout_of(&mut s.c).state;
    assert_eq!((state.step, state.pieces.len()), (2, 2));
    assert_eq!(state.pieces[1].generation, progress.generation);
    s.c.refused(&relayout(NEW), Status::Busy);
    assert_eq!(stat_found(s.c.ask(&stat("/f"))).attributes.size, 1000);
    for server in &s.servers {
        server.set(Pulls::AtOnce);
    }
    let done = ended(&mut s.c, s.file, MoveState::Done);
    assert_eq!(done.moved_bytes, 1000);
    // Everything, twice, to find the end when all rest; then the window, and in the end nothing.
    let fences = s.servers[0].fences();
    let seen: Vec<(u64, bool, u64)> = fences
        .iter()
        .map(|f| {
            (
                f.step,
                f.is_settling,
                f.windows.first().map_or(0, |w| w.end),
            )
        })
        .collect();
    let all = (1, false, u64::MAX);
    assert_eq!(seen[..3], [all, all, (2, true, 1000)]);
    assert_eq!(seen.last(), Some(&(4, true, 0)), "{seen:?}");
    assert!(fences.windows(2).all(|w| w[0].round < w[1].round));
    // What has moved is told and given back with the next message, not before.
    let told: Vec<&FenceWindows> = fences.iter().filter(|f| !f.frees.is_empty()).collect();
    assert!(
        told.iter()
            .all(|f| f.step >= 3 && f.frees == [window.clone()])
    );
    let layout = layout_of(&mut s.c);
    assert_eq!((layout.text.as_str(), layout.state.pieces.len()), (NEW, 1));
    assert_eq!(layout.state.pieces[0].generation, done.generation);
    // The old bytes are to be removed.
    let removals = s.servers[0].joiner.report().removals;
    assert_eq!((removals.len(), removals[0].generation), (1, 1));
    // The layout it has is as good as any other.
    s.c.ask(&relayout(NEW));
    ended(&mut s.c, s.file, MoveState::Done);
    assert_eq!(s.c.ask(&Check {}), []);
}

#[test]
fn move_without_space_rests_until_it_is_resumed() {
    let mut s = setting("full");
    s.servers[2].set(Pulls::Fails);
    s.c.ask(&relayout(NEW));
    let paused = in_state(&mut s.c, s.file, MoveState::Paused);
    assert!(paused.failure.contains("it is full"), "{}", paused.failure);
    // Nothing is fenced, and nothing has moved.
    assert_eq!(s.servers[0].fences().last().unwrap().windows, []);
    let layout = layout_of(&mut s.c);
    assert_eq!(layout.text, "striped(4KiB) over [0,1]");
    assert_eq!(layout.state.pieces[0].ranges.len(), 1);
    s.servers[2].set(Pulls::AtOnce);
    let resumed = s.c.ask(&control(s.file, MoveControl::Resume));
    assert_eq!(resumed.state, MoveState::Moving);
    ended(&mut s.c, s.file, MoveState::Done);
    assert_eq!(layout_of(&mut s.c).text, NEW);
    // What cannot begin lets go of everything.
    s.servers[0].fences();
    s.c.refused(&relayout("striped(4KiB"), Status::InvalidArgument);
    assert!(s.servers[1].fences().last().unwrap().windows.is_empty());
    assert_eq!(s.c.ask(&Check {}), []);
}

#[test]
fn cancelled_move_ends_where_it_began() {
    let mut s = setting("cancelled");
    s.servers[2].set(Pulls::Fails);
    s.c.ask(&relayout(NEW));
    in_state(&mut s.c, s.file, MoveState::Paused);
    let cancelling = s.c.ask(&control(s.file, MoveControl::Cancel));
    assert_eq!(cancelling.state, MoveState::Cancelling);
    ended(&mut s.c, s.file, MoveState::Cancelled);
    let layout = layout_of(&mut s.c);
    assert_eq!(layout.text, "striped(4KiB) over [0,1]");
    assert_eq!(layout.state.pieces.len(), 1);
    assert_eq!(layout.state.pieces[0].generation, 1);
    let removals = s.servers[2].joiner.report().removals;
    assert_eq!((removals.len(), removals[0].generation), (1, 2));
    s.c.refused(
        &control(s.file, MoveControl::Cancel),
        Status::InvalidArgument,
    );
    assert_eq!(s.c.ask(&Check {}), []);
}

/// Waits until so many bytes have moved.
fn moved(c: &mut Asker, file: FileId, bytes: u64) {
    let progress = RelayoutProgress { file };
    let _ = c.wait(&progress, |p| p.as_ref().unwrap().moved_bytes == bytes);
}

#[test]
fn cancelled_move_rests_on_its_way_back_and_takes_a_limit_meanwhile() {
    let mut s = setting("back");
    let crawl = ControlRelayout {
        limit_bytes: 1,
        ..control(s.file, MoveControl::Limit)
    };
    // A window, and then a rest of minutes that ends when anything is asked of the move.
    let mut slow = relayout(NEW);
    slow.options.window_bytes = 400;
    slow.options.limit_bytes = 1;
    s.c.ask(&slow);
    moved(&mut s.c, s.file, 400);
    assert_eq!(s.c.ask(&crawl).state, MoveState::Moving);
    moved(&mut s.c, s.file, 800);
    for server in &s.servers {
        server.set(Pulls::Waits);
    }
    let cancelling = s.c.ask(&control(s.file, MoveControl::Cancel));
    assert_eq!(cancelling.state, MoveState::Cancelling);
    s.servers[0].wait_for_pull();
    let limited = s.c.ask(&crawl);
    assert_eq!(
        (limited.state, limited.limit_bytes),
        (MoveState::Cancelling, 1)
    );
    let paused = s.c.ask(&control(s.file, MoveControl::Pause));
    assert_eq!(paused.state, MoveState::Paused);
    for server in &s.servers {
        server.set(Pulls::AtOnce);
    }
    // What was under way ends, and then it rests, whatever its limit is.
    moved(&mut s.c, s.file, 400);
    let limited = s.c.ask(&control(s.file, MoveControl::Limit));
    assert_eq!((limited.state, limited.limit_bytes), (MoveState::Paused, 0));
    assert!(limited.failure.starts_with("paused by user"));
    let layout = layout_of(&mut s.c);
    assert_eq!(layout.state.pieces.len(), 2);
    let resumed = s.c.ask(&control(s.file, MoveControl::Resume));
    assert_eq!(
        (resumed.state, &resumed.failure[..]),
        (MoveState::Cancelling, "")
    );
    ended(&mut s.c, s.file, MoveState::Cancelled);
    assert_eq!(layout_of(&mut s.c).text, "striped(4KiB) over [0,1]");
    assert_eq!(s.c.ask(&Check {}), []);
}

#[test]
fn move_waits_for_a_server_that_is_away() {
    let mut s = setting("dies");
    s.servers[0].set(Pulls::Waits);
    s.servers[2].set(Pulls::Waits);
    s.c.ask(&relayout(NEW));
    s.servers[2].wait_for_pull();
    // Its process hangs, but its membership is over.
    let before = s.servers[2].joiner.joined.member.clone();
    s.servers[2].joiner.asker.link.shutdown();
    let waiting = in_state(&mut s.c, s.file, MoveState::Waiting);
    assert!(!waiting.failure.is_empty());
    assert_eq!(layout_of(&mut s.c).state.pieces.len(), 2);
    s.servers[2].set(Pulls::AtOnce);
    s.servers[2].joiner = Joiner::with(
        &s.scratch.socket(),
        Join {
            server: Some(before.server),
            continues: Some(before.incarnation),
            ..join(&before.address)
        },
    );
    ended(&mut s.c, s.file, MoveState::Done);
}

#[test]
fn move_goes_on_when_the_manager_is_started_again() {
    let mut s = setting("restarted");
    for server in &s.servers {
        server.set(Pulls::Waits);
    }
    s.c.ask(&relayout(NEW));
    s.servers[2].wait_for_pull();
    s.servers[1].wait_for_pull();
    let last = s.servers[1].fences().last().unwrap().round;
    s.manager.take().unwrap().stop();
    let manager = s.scratch.start();
    let mut c = s.c.again(&s.scratch.socket()).unwrap();
    in_state(&mut c, s.file, MoveState::Waiting);
    for server in &mut s.servers {
        server.join_again(&s.scratch);
        server.set(Pulls::AtOnce);
    }
    ended(&mut c, s.file, MoveState::Done);
    let rounds = s.servers[1].fences();
    assert!(rounds.iter().all(|f| f.round > last), "rounds go on");
    assert_eq!(layout_of(&mut c).text, NEW);
    manager.stop();
}

/// A server that joins again has let accesses in, so what it took meanwhile would be lost.
#[test]
fn window_of_a_server_that_joins_again_is_moved_again() {
    // The first only has old bytes, the third only new ones.
    for index in [0, 2] {
        let mut s = setting(&format!("again-{index}"));
        for server in &s.servers {
            server.set(Pulls::Waits);
        }
        s.c.ask(&relayout(NEW));
        s.servers[1].wait_for_pull();
        let first = s.servers[2].wait_for_pull();
        s.servers[index].join_again(&s.scratch);
        for server in &s.servers {
            server.set(Pulls::AtOnce);
        }
        ended(&mut s.c, s.file, MoveState::Done);
        let again = s.servers[1].wait_for_pull();
        assert!(again.round > first.round, "{again:?}");
        assert_eq!((again.step, &again.windows), (2, &first.windows));
    }
}

/// Servers that have not come back to a manager that was started again could not be held.
#[test]
fn move_does_not_begin_before_servers_are_back() {
    let mut s = setting("not-back");
    s.manager.take().unwrap().stop();
    let manager = s.scratch.start();
    let mut c = s.c.again(&s.scratch.socket()).unwrap();
    let refused = c.refused(&relayout(NEW), Status::Unreachable);
    assert!(refused.contains("is away"), "{refused}");
    for server in &s.servers {
        server.expect(&[]);
    }
    manager.stop();
}

#[test]
fn drained_server_has_nothing_and_gets_nothing() {
    let mut s = setting("drained");
    let server = s.servers[0].joiner.joined.member.server;
    let drain = Drain {
        server,
        is_over: false,
        options: MoveOptions::default(),
    };
    // Nothing gets away before the answer.
    s.servers[2].set(Pulls::Waits);
    let draining = s.c.ask(&drain);
    assert!(draining.is_draining && draining.files == 1, "{draining:?}");
    s.servers[2].set(Pulls::AtOnce);
    let _ = s.c.wait(&DrainProgress { server }, |d| {
        d.as_ref().unwrap().files == 0
    });
    let layout = layout_of(&mut s.c);
    let servers: Vec<u64> = layout.state.pieces[0]
        .places
        .iter()
        .map(|p| p[0].server)
        .collect();
    assert_eq!(servers, [2, 1]);
    assert_eq!(
        layout.state.pieces[0].stores,
        [2, 1],
        "what stays keeps its bytes"
    );
    assert_eq!(layout.text, "striped(4KiB) over [2,1]");
    assert_ne!(layout.state.owner.server, server.0);
    assert!(
        s.servers[1]
            .running
            .service()
            .asked
            .lock()
            .unwrap()
            .pulled
            .is_none()
    );
    let mut create = create("/g");
    create.options.layout.layout = Some("striped(4KiB) over 3".into());
    s.c.ask(&create);
    let path = "/g".into();
    let state = s.c.ask(&GetLayout { path }).state;
    assert!(
        state.pieces[0]
            .places
            .iter()
            .flatten()
            .all(|p| p.server != server.0)
    );
    let back = s.c.ask(&Drain {
        is_over: true,
        ..drain
    });
    assert!(!back.is_draining);
    assert_eq!(s.c.ask(&Check {}), []);
}

#[test]
fn rebalancing_moves_single_subfiles() {
    let mut s = setting("balanced");
    let mut create = create("/b");
    create.options.layout.layout = Some("striped(1KiB) over [0,1]".into());
    s.c.ask(&create);
    s.c.ask(&Relayout {
        path: "/b".into(),
        ..relayout("striped(64) over 4")
    });
    let file = stat_found(s.c.ask(&stat("/b"))).attributes.file;
    ended(&mut s.c, file, MoveState::Done);
    let rebalance = Rebalance {
        path: "/b".into(),
        is_trial: true,
        options: MoveOptions::default(),
    };
    let plan = s.c.ask(&rebalance);
    // Four subfiles of some 250 bytes on three servers: nothing is better than two, one and one.
    assert_eq!(plan, []);
    s.c.ask(&Relayout {
        path: "/b".into(),
        servers: vec![0],
        ..relayout("")
    });
    ended(&mut s.c, file, MoveState::Done);
    let plan = s.c.ask(&rebalance);
    assert_eq!(plan.len(), 2, "{plan:?}");
    assert!(plan.iter().all(|m| m.from.0 == 0 && m.path == "/b"));
    let begun = s.c.ask(&Rebalance {
        is_trial: false,
        ..rebalance
    });
    assert_eq!(begun, plan);
    ended(&mut s.c, file, MoveState::Done);
    let path = "/b".into();
    let state = s.c.ask(&GetLayout { path }).state;
    for step in plan {
        let places = &state.pieces[0].places[step.subfile as usize];
        assert_eq!(places[0].server, step.to.0);
    }
}

#[test]
fn shutdown_reaches_the_servers() {
    let mut s = setting("all-end");
    s.c.ask(&Shutdown {});
    for server in &s.servers {
        server.expect(&["Shutdown"]);
    }
    s.manager.as_ref().unwrap().wait();
}
