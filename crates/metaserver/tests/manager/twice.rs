//! Requests that come twice, because their answer was lost: they are done once, also when the manager died in
//! between, and what others have done since stays. And rights that are taken back.

use wire::ask::AskError;
use wire::message::Bytes;
use wire::message::Request;
use wire::message::catalogue::*;
use wire::message::hints::{GetHints, HintText, SetHints};
use wire::message::trees::RemoveTree;
use wire::{Rights, Status};

use crate::fixture::*;

/// Asks, loses the answer with the connection, lets something happen, and asks again.
pub(crate) struct Loser {
    pub(crate) asker: Asker,
    pub(crate) number: u64,
}

impl Loser {
    #[track_caller]
    pub(crate) fn twice<R: Request>(
        &mut self,
        scratch: &Scratch,
        request: &R,
        meanwhile: impl FnOnce(),
    ) -> (R::Answer, R::Answer) {
        self.number += 1;
        let say = |e: AskError| panic!("{}: {} ({e})", R::NAME, e.status());
        let first = self.asker.try_ask_as(self.number, false, request);
        let first = first.unwrap_or_else(say);
        meanwhile();
        self.asker = self.asker.again(&scratch.socket()).unwrap();
        let second = self.asker.try_ask_as(self.number, true, request);
        (first, second.unwrap_or_else(say))
    }
}

pub(crate) fn loser(scratch: &Scratch) -> Loser {
    Loser {
        asker: Asker::client(&scratch.socket()),
        number: 100,
    }
}

fn exclusive(path: &str) -> Create {
    let mut request = create(path);
    request.options.exclusive = true;
    request
}

/// Every request that changes something, twice, while another client undoes what the first has done.
#[track_caller]
fn each_is_done_once(scratch: &Scratch, is_restarted: bool, mut between: impl FnMut()) {
    let mut a = loser(scratch);
    let socket = scratch.socket();
    let other = || Asker::client(&socket);
    let text = |path: &str| path.to_owned();
    let has = |path: &str| other().try_ask(&stat(path)).is_ok();

    // Answers are the first ones, though the name exists.
    let mkdir = Mkdir {
        path: text("/d"),
        mode: 0o755,
    };
    a.twice(scratch, &mkdir, &mut between);
    let (first, second) = a.twice(scratch, &exclusive("/d/f"), &mut between);
    assert_eq!(first, second);
    assert!(second.is_new);

    // What another client has made since is not taken away.
    let unlink = Unlink {
        path: text("/d/f"),
        how: UnlinkHow::EvenIfOpen,
    };
    a.twice(scratch, &unlink, || {
        between();
        other().create("/d/f");
    });
    assert!(has("/d/f"), "the second file of that name was unlinked");
    let rename = Rename {
        from: text("/d/f"),
        to: text("/d/g"),
    };
    a.twice(scratch, &rename, || {
        between();
        other().create("/d/f");
    });
    assert!(has("/d/f") && has("/d/g"), "it was renamed twice");
    let rmdir = Rmdir { path: text("/e") };
    a.asker.ask(&Mkdir {
        path: text("/e"),
        mode: 0o755,
    });
    a.twice(scratch, &rmdir, || {
        between();
        other().ask(&Mkdir {
            path: text("/e"),
            mode: 0o755,
        });
    });
    assert!(has("/e"), "the second directory was removed");
    let remove_tree = RemoveTree { path: text("/e") };
    a.twice(scratch, &remove_tree, || {
        between();
        other().ask(&Mkdir {
            path: text("/e"),
            mode: 0o755,
        });
    });
    assert!(has("/e"), "the second directory was removed with all in it");

    let chmod = |mode| Chmod {
        path: text("/d/g"),
        mode,
    };
    a.twice(scratch, &chmod(0o600), || {
        between();
        other().ask(&chmod(0o644));
    });
    let found = stat_found(other().ask(&stat("/d/g"))).attributes;
    assert_eq!(found.mode, 0o644, "an old mode came back");
    let utimes = |seconds: i64| Utimes {
        path: text("/d/g"),
        accessed: SetTime::Keep,
        modified: SetTime::To(wire::Time(seconds)),
    };
    a.twice(scratch, &utimes(1), || {
        between();
        other().ask(&utimes(2));
    });
    let found = stat_found(other().ask(&stat("/d/g"))).attributes;
    assert_eq!(found.modified, wire::Time(2), "an old time came back");

    let values = |value: &[u8]| ChangeValues {
        path: text("/d/g"),
        put: vec![NamedValue {
            name: text("v"),
            value: Bytes(value.to_vec()),
        }],
        remove: Vec::new(),
    };
    a.twice(scratch, &values(b"old"), || {
        between();
        other().ask(&values(b"new"));
    });
    let kept = other().ask(&GetValues { path: text("/d/g") });
    assert_eq!(kept[0].value.0, b"new", "an old value came back");

    let view = |text: &str| PutView {
        path: "/d/g".into(),
        name: "v".into(),
        view: NamedView {
            text: text.into(),
            view: layout::View::new(layout::FileOffset(0), 8, "{(0,3)}".parse().unwrap()).unwrap(),
        },
    };
    a.twice(scratch, &view("first"), || {
        between();
        other().ask(&view("second"));
    });
    let kept = other().ask(&GetView {
        path: text("/d/g"),
        name: text("v"),
    });
    assert_eq!(kept.text, "second", "an old view came back");
    let remove = RemoveView {
        path: text("/d/g"),
        name: text("v"),
    };
    a.twice(scratch, &remove, &mut between);
    let hints = |value: &str| SetHints {
        path: "/d/g".into(),
        set: vec![HintText {
            name: "x_colour".into(),
            value: value.into(),
        }],
        unset: Vec::new(),
    };
    a.twice(scratch, &hints("red"), || {
        between();
        other().ask(&hints("blue"));
    });
    let kept = other().ask(&GetHints { path: text("/d/g") });
    let shown = format!("{kept:?}");
    assert!(shown.contains("blue") && !shown.contains("red"), "{shown}");

    // An opening that creates is not refused by what it has created, and a second one leaves no second handle.
    let mut create = open("/d/new", Rights::BOTH);
    create.options.create = Some(exclusive("/d/new").options);
    let (first, second) = a.twice(scratch, &create, &mut between);
    assert!(first.is_new && second.is_new);
    assert_eq!(first.attributes.file, second.attributes.file);
    a.asker.ask(&close(second.handle));
    if is_restarted {
        // What follows waits for clients to come back.
        return;
    }
    let mut alone = open("/d/new", Rights::BOTH);
    alone.options.unique = Some(0);
    let (_, second) = a.twice(scratch, &alone, &mut between);
    a.twice(scratch, &close(second.handle), || {});
    // No client has it open: one that wants it alone gets it.
    let mut third = other();
    let opened = third.ask(&alone);
    third.ask(&close(opened.handle));

    let layout = |text: &str| SetLayout {
        path: "/d/new".into(),
        spec: LayoutSpec {
            array: None,
            layout: Some(text.into()),
        },
    };
    let (_, second) = a.twice(scratch, &layout("striped(64) over 1"), || {
        between();
        other()
            .wait(&layout("striped(128) over 1"), |answer| answer.is_ok())
            .unwrap();
    });
    let now = other().ask(&GetLayout {
        path: text("/d/new"),
    });
    assert_eq!(now.text, "striped(128) over 1", "an old layout came back");
    assert_eq!(second, now.state);
}

#[test]
fn requests_whose_answers_were_lost_are_done_once() {
    let (scratch, _manager, _members) = with_members("once", 1);
    each_is_done_once(&scratch, false, || {});
}

#[test]
fn requests_whose_answers_were_lost_with_the_manager_are_done_once() {
    let scratch = Scratch::new("onced");
    let manager = std::cell::RefCell::new(Some(scratch.start()));
    let member = std::cell::RefCell::new(Some(Joiner::new(&scratch.socket())));
    let identity = member.borrow().as_ref().unwrap().joined.clone();
    each_is_done_once(&scratch, true, || {
        drop(manager.borrow_mut().take());
        *manager.borrow_mut() = Some(scratch.start());
        let again = wire::message::cluster::Join {
            server: Some(identity.member.server),
            continues: Some(identity.member.incarnation),
            ..join(&identity.member.address)
        };
        *member.borrow_mut() = Some(Joiner::with(&scratch.socket(), again));
    });
}

#[test]
fn only_so_many_answers_are_remembered_and_the_rest_is_refused() {
    let (scratch, _manager, _members) = with_members("window", 1);
    let mut c = Asker::client(&scratch.socket());
    let mkdir = |n: u64| Mkdir {
        path: format!("/{n}"),
        mode: 0o755,
    };
    let count = meta::catalogue::WINDOW as u64 + 10;
    for n in 1..=count {
        c.try_ask_as(n, false, &mkdir(n)).unwrap();
    }
    // The latest are known, the oldest are not, and neither is done again.
    for n in [count, count - 5, 11] {
        c.try_ask_as(n, true, &mkdir(n)).unwrap();
    }
    for is_repeated in [true, false] {
        let refused = c.try_ask_as(3, is_repeated, &mkdir(1000)).unwrap_err();
        assert_eq!(refused.status(), Status::Forgotten, "{refused}");
    }
    assert_eq!(
        c.refused(&stat("/1000"), Status::NotFound),
        "/1000: no such file or directory"
    );
    // Another client's numbers are its own.
    let mut other = Asker::client(&scratch.socket());
    other.try_ask_as(3, false, &mkdir(1000)).unwrap();
}

#[test]
fn client_that_is_late_is_told_that_its_requests_are_forgotten() {
    let scratch = Scratch::new("late");
    let options = || metaserver::Options {
        remembering: std::time::Duration::ZERO,
        ..scratch.options()
    };
    let manager = metaserver::start(options()).unwrap();
    let mut c = Asker::client(&scratch.socket());
    let mkdir = |path: &str| Mkdir {
        path: path.into(),
        mode: 0o755,
    };
    c.try_ask_as(50, false, &mkdir("/a")).unwrap();
    drop(manager);
    let _manager = metaserver::start(options()).unwrap();
    let mut other = Asker::client(&scratch.socket());
    // That time comes after the one of remembering.
    other.wait_for_statistic("is_recovering", 0);
    let mut c = c.again(&scratch.socket()).unwrap();
    let refused = c.try_ask_as(50, true, &mkdir("/a")).unwrap_err();
    assert_eq!(refused.status(), Status::Forgotten);
    let refused = c.try_ask_as(51, true, &mkdir("/b")).unwrap_err();
    assert_eq!(refused.status(), Status::Forgotten);
    // What is asked for the first time is done, and known from then on.
    c.try_ask_as(52, false, &mkdir("/c")).unwrap();
    c.try_ask_as(52, true, &mkdir("/c")).unwrap();
    let refused = c.try_ask_as(51, false, &mkdir("/b")).unwrap_err();
    assert_eq!(refused.status(), Status::Forgotten);
}

fn reopen(capability: &Bytes) -> Reopen {
    Reopen {
        capability: capability.clone(),
        unique: None,
    }
}

#[test]
fn rights_that_were_taken_back_are_gone_with_the_next_capability() {
    let (scratch, manager, _members) = with_members("rights", 1);
    let mut root = Asker::client(&scratch.socket());
    root.ask(&Chmod {
        path: "/".into(),
        mode: 0o777,
    });
    let mut alice = Asker::user(&manager, ALICE);
    let mut bob = Asker::user(&manager, BOB);
    alice.create("/f");
    let chmod = |mode| Chmod {
        path: "/f".into(),
        mode,
    };
    alice.ask(&chmod(0o666));
    let his = bob.open("/f", Rights::BOTH);
    let renew = RenewCapability { handle: his.handle };
    bob.ask(&renew);
    bob.ask(&reopen(&his.capability));
    let hers = alice.open("/f", Rights::BOTH);
    alice.ask(&chmod(0o644));
    // He may read but not write any more; the handle is for both.
    let why = bob.refused(&renew, Status::PermissionDenied);
    assert!(why.contains("write permission"), "{why}");
    bob.refused(&reopen(&his.capability), Status::PermissionDenied);
    let reads = bob.open("/f", Rights::READ);
    bob.ask(&RenewCapability {
        handle: reads.handle,
    });
    alice.ask(&chmod(0o000));
    bob.refused(&reopen(&reads.capability), Status::PermissionDenied);
    // The owner could give herself every right.
    alice.ask(&RenewCapability {
        handle: hers.handle,
    });
    alice.ask(&reopen(&hers.capability));
    // Until it is no longer hers.
    root.ask(&Chown {
        path: "/f".into(),
        owner: Some(BOB),
        group: None,
    });
    alice.refused(&reopen(&hers.capability), Status::PermissionDenied);
    bob.ask(&reopen(&his.capability));
}

#[test]
fn capability_that_has_expired_opens_nothing_again() {
    let scratch = Scratch::new("expired");
    let mut options = scratch.options();
    options.capability_seconds = 0;
    let _manager = metaserver::start(options).unwrap();
    let _member = Joiner::new(&scratch.socket());
    let mut c = Asker::client(&scratch.socket());
    c.create("/f");
    let opened = c.open("/f", Rights::READ);
    let refused = c.wait(&reopen(&opened.capability), Result::is_err);
    assert_eq!(refused.unwrap_err().status(), Status::ExpiredCapability);
}
