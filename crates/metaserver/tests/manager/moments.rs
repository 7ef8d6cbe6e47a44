//! An owner tells a size that is later than what the catalogue said of the file: an answer never mixes the two.
//!
//! The owner here lets a file be changed while it is asked, and then tells the size of after.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metaserver::Endpoint;
use serving::{Exchange, Keys, Outcome, Peer, Proven, Running, Service};
use wire::message::catalogue::*;
use wire::message::cluster::AskSizes;
use wire::message::file::SizeIs;
use wire::message::session::{Hello, Welcome};
use wire::message::{Bytes, Refusal, Request};
use wire::{ClientId, ServerId, Status};

use crate::fixture::*;

type Change = fn(&mut Asker);

/// Size and mode of a file; nothing if it is not there.
type Sight = Option<(u64, u32)>;

/// What happens, and what is seen then.
type Case = (&'static str, Change, Sight);

struct Owner {
    manager: Endpoint,
    /// What happens before the next answers.
    changes: Mutex<VecDeque<Change>>,
    questions: AtomicU64,
    size: AtomicU64,
}

impl Service for Owner {
    type Session = ();

    fn hello(&self, _: &Peer, _: &Hello, _: &Proven) -> Result<((), Welcome), (Status, Refusal)> {
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
        if exchange.header().kind != AskSizes::KIND {
            return exchange.answer(&());
        }
        self.questions.fetch_add(1, Ordering::SeqCst);
        let change = self.changes.lock().unwrap().pop_front();
        if let Some(change) = change {
            change(&mut Asker::client(&self.manager));
            // It is written to after the change.
            self.size.fetch_add(1, Ordering::SeqCst);
        }
        let size = self.size.load(Ordering::SeqCst);
        let AskSizes { files } = exchange.request().unwrap();
        let sizes: Vec<_> = files
            .iter()
            .map(|_| Some(SizeIs { size, epoch: 0 }))
            .collect();
        exchange.answer(&sizes)
    }

    fn ended(&self, (): ()) {}
}

/// A manager with one server, the files `/d/f` and `/d/g`, and a client.
struct Site {
    owner: Running<Owner>,
    _joiner: Joiner,
    client: Asker,
    _manager: metaserver::MetaServer,
    _scratch: Scratch,
}

impl Site {
    fn new() -> Site {
        let scratch = Scratch::new("moments");
        let manager = scratch.start();
        let endpoint = Endpoint::Unix(scratch.path().join("owner"));
        let listener = wire::link::Listener::bind(&endpoint).unwrap();
        let owner = Arc::new(Owner {
            manager: scratch.socket(),
            changes: Mutex::default(),
            questions: AtomicU64::new(0),
            size: AtomicU64::new(100),
        });
        let owner = serving::start(owner, vec![listener], Keys::default()).unwrap();
        let joiner = Joiner::with(&scratch.socket(), join(&endpoint.to_string()));
        let mut client = Asker::client(&scratch.socket());
        client.ask(&Mkdir {
            path: "/d".into(),
            mode: 0o755,
        });
        client.create("/d/f");
        Site {
            owner,
            _joiner: joiner,
            client,
            _manager: manager,
            _scratch: scratch,
        }
    }

    fn before_answers(&self, changes: impl IntoIterator<Item = Change>) {
        let owner = self.owner.service();
        owner.changes.lock().unwrap().extend(changes);
    }

    fn questions(&self) -> u64 {
        self.owner.service().questions.load(Ordering::SeqCst)
    }

    /// What is seen of `/d/f`, in the way asked for.
    fn see(&mut self, way: Way) -> Sight {
        let of = |found: &Attributes| (found.size, found.mode);
        match way {
            Way::Stat => {
                let asked = Stat {
                    with_latest_size: true,
                    wants_stamps: true,
                    ..stat("/d/f")
                };
                let found = self.client.ask(&asked).found;
                found.map(|found| {
                    assert!(found.is_latest);
                    of(&found.attributes)
                })
            }
            Way::List => {
                let listing = self.client.ask(&List {
                    path: "/d".into(),
                    after: None,
                    limit: 10,
                    with_attributes: true,
                    wants_stamps: true,
                });
                let mut entries = listing.entries.iter();
                let found = entries.find(|entry| entry.name == "f");
                found.map(|entry| of(entry.attributes.as_ref().unwrap()))
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Stat,
    List,
}

fn rename(c: &mut Asker, from: &str, to: &str) {
    c.ask(&Rename {
        from: from.into(),
        to: to.into(),
    });
}

fn chmod(c: &mut Asker, mode: u32) {
    c.ask(&Chmod {
        path: "/d/f".into(),
        mode,
    });
}

#[test]
fn an_answer_has_name_attributes_and_size_of_one_moment() {
    let changes: [Case; 5] = [
        ("another mode", |c| chmod(c, 0o600), Some((101, 0o600))),
        ("another name", |c| rename(c, "/d/f", "/d/h"), None),
        ("another directory", |c| rename(c, "/d", "/e"), None),
        (
            "another file",
            |c| {
                c.create("/d/g");
                chmod(c, 0o600);
                rename(c, "/d/g", "/d/f");
            },
            Some((101, 0o644)),
        ),
        (
            "nothing",
            |c| {
                c.ask(&Unlink {
                    path: "/d/f".into(),
                    how: UnlinkHow::EvenIfOpen,
                });
            },
            None,
        ),
    ];
    for (what, change, expected) in changes {
        for way in [Way::Stat, Way::List] {
            let mut site = Site::new();
            assert_eq!(site.see(way), Some((100, 0o644)));
            assert_eq!(site.questions(), 1);
            site.before_answers([change]);
            if what == "another directory"
                && let Way::List = way
            {
                // There is no such directory any more, as if it were asked for now.
                let text = site.client.refused(
                    &List {
                        path: "/d".into(),
                        after: None,
                        limit: 10,
                        with_attributes: true,
                        wants_stamps: true,
                    },
                    Status::NotFound,
                );
                assert!(text.contains("/d"), "{text}");
                continue;
            }
            assert_eq!(site.see(way), expected, "{what}, {way:?}");
            assert_eq!(site.client.statistic("looks_again"), 1, "{what}, {way:?}");
        }
    }
}

#[test]
fn a_file_that_changes_all_the_time_has_an_answer_all_the_same() {
    for way in [Way::Stat, Way::List] {
        let mut site = Site::new();
        let each: [Change; 2] = [|c| chmod(c, 0o600), |c| chmod(c, 0o640)];
        site.before_answers(each.into_iter().cycle().take(100));
        let (size, mode) = site.see(way).unwrap();
        assert!(size > 100 && [0o600, 0o640].contains(&mode));
        let looks = site.client.statistic("looks_again");
        assert!(looks > 3 && site.questions() == looks + 1, "{looks}");
        assert!(looks < 100);
    }
}
