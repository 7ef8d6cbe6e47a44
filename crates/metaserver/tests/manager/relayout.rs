//! Moving a file between layouts, with I/O servers that only write down what they are asked.
//!
//! Whether bytes arrive is the affair of real servers; here it is who is asked what, in which order, and
//! what becomes of the file when somebody fails.

use std::sync::{Arc, Condvar, Mutex};

use metaserver::{Endpoint, MetaServer};
use serving::{Exchange, Outcome, Peer, Running, Service};
use wire::message::catalogue::*;
use wire::message::cluster::*;
use wire::message::session::{Hello, Role, Shutdown, Welcome};
use wire::message::{Bytes, Refusal, Request};
use wire::{ClientId, FileId, ServerId, Status};

use crate::fixture::*;

/// What a server is to do when it is told to pull.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pulls {
    AtOnce,
    Waits,
    Fails,
}

struct Asked {
    names: Vec<String>,
    pulls: Pulls,
    pulled: Option<Pull>,
    size: u64,
}

struct FakeServer {
    asked: Mutex<Asked>,
    changed: Condvar,
}

impl Service for FakeServer {
    type Session = ();

    fn hello(&self, _: &Peer, hello: &Hello, _: bool) -> Result<((), Welcome), (Status, Refusal)> {
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
        };
        Ok(((), welcome))
    }

    fn handle(&self, (): &mut (), exchange: &mut Exchange) -> Outcome {
        let kind = exchange.header().kind;
        let mut asked = self.asked.lock().unwrap();
        let name = wire::message::KINDS.iter().find(|k| k.number == kind);
        if kind != PullProgress::KIND {
            asked.names.push(name.unwrap().name.to_owned());
        }
        self.changed.notify_all();
        match kind {
            Freeze::KIND => {
                let size = asked.size;
                drop(asked);
                let end = size;
                exchange.answer(&Frozen {
                    size,
                    epoch: 0,
                    end,
                })
            }
            Pull::KIND => {
                asked.pulled = Some(exchange.request().unwrap());
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
                exchange.answer(&())
            }
            PullProgress::KIND => {
                drop(asked);
                exchange.answer(&11u64)
            }
            _ => {
                drop(asked);
                exchange.answer(&())
            }
        }
    }

    fn ended(&self, (): ()) {}
}

struct Fake {
    running: Running<FakeServer>,
    joiner: Joiner,
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
                size: 1000,
            }),
            changed: Condvar::new(),
        });
        let running = serving::start(service, vec![listener], None).unwrap();
        let joiner = Joiner::with(&scratch.socket(), join(&endpoint.to_string()));
        Fake { running, joiner }
    }

    fn set(&self, pulls: Pulls) {
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

    fn wait_for_pull(&self) -> Pull {
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

struct Setting {
    scratch: Scratch,
    manager: Option<MetaServer>,
    servers: Vec<Fake>,
    c: Asker,
    file: FileId,
}

/// Three servers, and a file on the first two of them.
fn setting(name: &str) -> Setting {
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

fn relayout(layout: &str) -> Relayout {
    Relayout {
        path: "/f".into(),
        layout: layout.into(),
        servers: Vec::new(),
        options: Default::default(),
    }
}

/// Waits for the end of the move.
fn ended(c: &mut Asker, file: FileId, state: MoveState) -> Progress {
    let progress = RelayoutProgress { file };
    c.wait(&progress, |p| {
        p.as_ref().unwrap().state != MoveState::Moving
    });
    let progress = c.ask(&progress);
    assert_eq!(progress.state, state, "{}", progress.failure);
    progress
}

const NEW: &str = "striped(1KiB) over [1,2]";

#[test]
fn file_is_frozen_moved_and_thawed() {
    let mut s = setting("moved");
    for server in &s.servers {
        server.set(Pulls::Waits);
    }
    let progress = s.c.ask(&relayout(NEW));
    assert_eq!(progress.state, MoveState::Moving);
    assert_eq!((progress.file, progress.total_bytes), (s.file, 1000));
    let pull = s.servers[2].wait_for_pull();
    assert_eq!((pull.file, pull.size), (s.file, 1000));
    assert_eq!(pull.state.pieces.len(), 2);
    assert_eq!(pull.state.pieces[1].generation, progress.generation);
    assert_eq!(s.servers[1].wait_for_pull(), pull);
    // Both say 11.
    let under_way = RelayoutProgress { file: s.file };
    assert_eq!(s.c.ask(&under_way).moved_bytes, 22);
    s.c.refused(&relayout(NEW), Status::Busy);
    assert_eq!(s.c.ask(&stat("/f")).attributes.size, 1000);
    for server in &s.servers {
        server.set(Pulls::AtOnce);
    }
    let done = ended(&mut s.c, s.file, MoveState::Done);
    assert_eq!(done.moved_bytes, 1000);
    s.servers[0].expect(&["Freeze", "Thaw"]);
    s.servers[1].expect(&["Freeze", "Pull", "Thaw"]);
    s.servers[2].expect(&["Freeze", "Pull", "Thaw"]);
    let layout = s.c.ask(&GetLayout { path: "/f".into() });
    assert_eq!(layout.text, NEW);
    assert_eq!(layout.state.pieces.len(), 1);
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
fn failed_move_leaves_the_file_as_it_was() {
    let mut s = setting("failed");
    s.servers[2].set(Pulls::Fails);
    s.c.ask(&relayout(NEW));
    let failed = ended(&mut s.c, s.file, MoveState::Failed);
    assert!(failed.failure.contains("it is full"), "{}", failed.failure);
    s.servers[0].expect(&["Freeze", "Thaw"]);
    s.servers[2].expect(&["Freeze", "Pull", "Thaw"]);
    let layout = s.c.ask(&GetLayout { path: "/f".into() });
    assert_eq!(layout.text, "striped(4KiB) over [0,1]");
    assert_eq!(layout.state.pieces.len(), 1);
    // What cannot begin freezes nothing.
    s.c.refused(&relayout("striped(4KiB"), Status::InvalidArgument);
    s.c.refused(&relayout("striped(4KiB) over [0,7]"), Status::Unreachable);
    s.servers[0].expect(&["Freeze", "Thaw"]);
    s.servers[2].expect(&[]);
    s.servers[2].set(Pulls::AtOnce);
    s.c.ask(&relayout(NEW));
    ended(&mut s.c, s.file, MoveState::Done);
    assert_eq!(s.c.ask(&Check {}), []);
}

#[test]
fn death_of_a_server_ends_the_move() {
    let mut s = setting("dies");
    s.servers[2].set(Pulls::Waits);
    s.c.ask(&relayout(NEW));
    s.servers[2].wait_for_pull();
    // Its process hangs, but its membership is over.
    s.servers[2].joiner.asker.link.shutdown();
    ended(&mut s.c, s.file, MoveState::Failed);
    s.servers[0].expect(&["Freeze", "Thaw"]);
    let layout = s.c.ask(&GetLayout { path: "/f".into() });
    assert_eq!(layout.state.pieces.len(), 1);
    s.c.refused(&relayout(NEW), Status::Unreachable);
}

#[test]
fn move_is_given_up_when_the_manager_is_started_again() {
    let mut s = setting("restarted");
    for server in &s.servers {
        server.set(Pulls::Waits);
    }
    s.c.ask(&relayout(NEW));
    s.servers[2].wait_for_pull();
    s.servers[1].wait_for_pull();
    s.manager.take().unwrap().stop();
    let manager = s.scratch.start();
    let mut c = s.c.again(&s.scratch.socket()).unwrap();
    let progress = c.ask(&RelayoutProgress { file: s.file });
    assert_eq!(progress.state, MoveState::Failed);
    let layout = c.ask(&GetLayout { path: "/f".into() });
    assert_eq!(layout.text, "striped(4KiB) over [0,1]");
    assert_eq!(layout.state.pieces.len(), 1);
    for (i, server) in s.servers.iter_mut().enumerate() {
        let before = server.joiner.joined.member.clone();
        server.joiner = Joiner::with(
            &s.scratch.socket(),
            Join {
                server: Some(before.server),
                continues: Some(before.incarnation),
                ..join(&before.address)
            },
        );
        let asked: &[&str] = match i {
            0 => &["Freeze", "Thaw"],
            _ => &["Freeze", "Pull", "Thaw"],
        };
        server.expect(asked);
        server.set(Pulls::AtOnce);
    }
    c.ask(&relayout(NEW));
    ended(&mut c, s.file, MoveState::Done);
    manager.stop();
}

/// A server that joins again serves what it was told to freeze, so what it took meanwhile would be lost.
#[test]
fn server_that_joins_again_in_a_move_ends_it() {
    // The first only has old bytes, the third only new ones.
    for index in [0, 2] {
        let mut s = setting(&format!("again-{index}"));
        for server in &s.servers {
            server.set(Pulls::Waits);
        }
        s.c.ask(&relayout(NEW));
        s.servers[1].wait_for_pull();
        s.servers[2].wait_for_pull();
        let before = s.servers[index].joiner.joined.member.clone();
        s.servers[index].joiner = Joiner::with(
            &s.scratch.socket(),
            Join {
                server: Some(before.server),
                continues: Some(before.incarnation),
                ..join(&before.address)
            },
        );
        for server in &s.servers {
            server.set(Pulls::AtOnce);
        }
        let failed = ended(&mut s.c, s.file, MoveState::Failed);
        assert!(
            failed.failure.contains("joined again"),
            "{}",
            failed.failure
        );
        s.c.ask(&relayout(NEW));
        ended(&mut s.c, s.file, MoveState::Done);
    }
}

/// Servers that have not come back to a manager that was started again could not be held.
#[test]
fn move_waits_until_servers_are_back_at_a_manager_that_was_started_again() {
    let mut s = setting("not-back");
    s.manager.take().unwrap().stop();
    let manager = s.scratch.start();
    let mut c = s.c.again(&s.scratch.socket()).unwrap();
    let refused = c.refused(&relayout(NEW), Status::Busy);
    assert!(refused.contains("has not come back"), "{refused}");
    for server in &s.servers {
        server.expect(&[]);
    }
    manager.stop();
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
