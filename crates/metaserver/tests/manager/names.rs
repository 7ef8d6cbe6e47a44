//! Every message of a client once, and who may do what.
//!
//! What the messages mean in every case is tested in `meta`; here it is that each arrives, does its
//! work for the right user, and that refusals carry status and text.

use layout::View;
use wire::message::Bytes;
use wire::message::catalogue::*;
use wire::message::session::{Goodbye, Ping, Statistics};
use wire::message::trees::RemoveTree;
use wire::{HandleId, Rights, Status, Time};

use crate::fixture::*;

fn laid_out(path: &str, array: Option<&str>, layout: &str) -> Create {
    Create {
        path: path.into(),
        options: CreateOptions {
            mode: 0o644,
            exclusive: true,
            layout: LayoutSpec {
                array: array.map(str::to_owned),
                layout: Some(layout.to_owned()),
            },
            ..CreateOptions::default()
        },
    }
}

fn list(path: &str, after: Option<&str>, limit: u32) -> List {
    List {
        path: path.into(),
        after: after.map(str::to_owned),
        limit,
        with_attributes: true,
        wants_stamps: false,
    }
}

fn a_view() -> NamedView {
    NamedView {
        text: "whole".into(),
        view: View::whole_file(),
    }
}

#[test]
fn every_message_of_a_client() {
    let (scratch, _manager, _members) = with_members("messages", 3);
    let mut c = Asker::client(&scratch.socket());
    assert_eq!(c.welcome.server, wire::ServerId::MANAGER);
    assert_eq!(c.welcome.incarnation, 1);
    assert_eq!(c.id().0 >> 32, 1);
    c.ask(&Ping {});
    c.ask(&Mkdir {
        path: "/d".into(),
        mode: 0o755,
    });
    let made = c.create("/d/ä");
    assert!(made.is_new);
    assert!(!c.create("/d/ä").is_new);
    let opened = c.open("/d/ä", Rights::BOTH);
    assert_eq!(opened.attributes.file, made.file);
    assert_eq!(opened.layout.pieces[0].places.len(), 3);
    let owner = opened.layout.owner;
    let state = c.ask(&GetState {
        handle: opened.handle,
    });
    assert_eq!(state, opened.layout);
    let renewed = c.ask(&RenewCapability {
        handle: opened.handle,
    });
    assert_eq!(renewed.0.len(), opened.capability.0.len());
    let found = stat_found(c.ask(&stat("/d/ä")));
    assert_eq!(found.attributes, opened.attributes);
    assert_eq!(found.owner, Some(owner));
    assert_eq!(stat_found(c.ask(&stat("/d"))).owner, None);
    c.ask(&laid_out("/d/b", Some("f64[64,64]"), "(block, *) onto 2"));
    let layout = c.ask(&GetLayout {
        path: "/d/b".into(),
    });
    assert_eq!(layout.text, "(block, *) onto 2");
    assert_eq!(layout.array.as_deref(), Some("f64[64,64]"));
    assert_eq!(
        (layout.state.pieces[0].places.len(), layout.lost),
        (2, vec![])
    );
    c.refused(&GetLayout { path: "/d".into() }, Status::IsDirectory);
    let set = c.ask(&SetLayout {
        path: "/d/b".into(),
        spec: LayoutSpec {
            array: None,
            layout: Some("(*, block) onto 3".into()),
        },
    });
    assert_eq!(set.pieces[0].places.len(), 3);
    c.ask(&Chmod {
        path: "/d/b".into(),
        mode: 0o600,
    });
    c.ask(&Chown {
        path: "/d/b".into(),
        owner: Some(ALICE),
        group: None,
    });
    c.ask(&Utimes {
        path: "/d/b".into(),
        accessed: SetTime::To(Time(-5)),
        modified: SetTime::Keep,
    });
    let changed = stat_found(c.ask(&stat("/d/b"))).attributes;
    assert_eq!(
        (changed.mode, changed.owner, changed.accessed),
        (0o600, ALICE, Time(-5))
    );
    let first = c.ask(&list("/d", None, 1));
    assert!(first.has_more);
    assert_eq!(first.entries[0].name, "b");
    assert_eq!(first.entries[0].attributes.as_ref(), Some(&changed));
    let rest = c.ask(&list("/d", Some("b"), u32::MAX));
    assert_eq!((rest.entries.len(), rest.has_more), (1, false));
    c.ask(&PutView {
        path: "/d/b".into(),
        name: "all".into(),
        view: a_view(),
    });
    let view = GetView {
        path: "/d/b".into(),
        name: "all".into(),
    };
    assert_eq!(c.ask(&view), a_view());
    let views = ListViews {
        path: "/d/b".into(),
        after: None,
        limit: 10,
    };
    assert_eq!(c.ask(&views)[0].text, "whole");
    c.ask(&RemoveView {
        path: "/d/b".into(),
        name: "all".into(),
    });
    c.refused(&view, Status::NotFound);
    let value = |name: &str| NamedValue {
        name: name.into(),
        value: Bytes(b"v".into()),
    };
    c.ask(&ChangeValues {
        path: "/d/b".into(),
        put: vec![value("one"), value("two")],
        remove: Vec::new(),
    });
    c.ask(&ChangeValues {
        path: "/d/b".into(),
        put: Vec::new(),
        remove: vec!["one".into()],
    });
    let values = GetValues {
        path: "/d/b".into(),
    };
    assert_eq!(c.ask(&values), [value("two")]);
    c.ask(&Rename {
        from: "/d/b".into(),
        to: "/b".into(),
    });
    c.refused(&Rmdir { path: "/d".into() }, Status::NotEmpty);
    c.ask(&Unlink {
        path: "/d/ä".into(),
        how: UnlinkHow::EvenIfOpen,
    });
    c.ask(&Rmdir { path: "/d".into() });
    assert!(c.ask(&close(opened.handle)).is_removed);
    c.refused(&close(opened.handle), Status::BadHandle);
    assert_eq!(c.ask(&Members {}).len(), 3);
    let counts = c.ask(&Count {});
    assert_eq!((counts.files, counts.directories), (1, 1));
    assert!(counts.removals >= 3);
    assert_eq!(c.ask(&Check {}), []);
    assert_eq!(c.statistic("requests_rename"), 1);
    assert_eq!(c.statistic("files"), 1);
    assert_eq!(c.statistic("members_alive"), 3);
    let names: Vec<String> = c.ask(&Statistics {}).into_iter().map(|c| c.name).collect();
    assert!(
        names.contains(&"requests_renew_capability".to_owned()),
        "{names:?}"
    );
    let reopen = Reopen {
        capability: opened.capability,
        unique: None,
    };
    c.refused(&reopen, Status::NotFound);
    c.refused(&RelayoutProgress { file: made.file }, Status::NotFound);
    c.ask(&Goodbye {});
    c.refused(&stat("/b"), Status::Fenced);
    c.refused(&create("/late"), Status::Fenced);
}

#[test]
fn users_are_told_apart_and_mode_bits_hold() {
    let (_scratch, manager, _members) = with_members("users", 1);
    let mut alice = Asker::user(&manager, ALICE);
    let mut bob = Asker::user(&manager, BOB);
    alice.create("/hers");
    let hers = stat_found(alice.ask(&stat("/hers"))).attributes;
    assert_eq!((hers.owner, hers.group), (ALICE, ALICE));
    bob.open("/hers", Rights::READ);
    bob.refused(&open("/hers", Rights::WRITE), Status::PermissionDenied);
    alice.ask(&Chmod {
        path: "/hers".into(),
        mode: 0o600,
    });
    bob.refused(&open("/hers", Rights::READ), Status::PermissionDenied);
    let relayout = Relayout {
        path: "/hers".into(),
        layout: "striped(4KiB) over 1".into(),
        servers: Vec::new(),
        options: Default::default(),
    };
    bob.refused(&relayout, Status::PermissionDenied);
    // The root directory is sticky.
    let unlink = Unlink {
        path: "/hers".into(),
        how: UnlinkHow::EvenIfOpen,
    };
    bob.refused(&unlink, Status::PermissionDenied);
    bob.refused(&Check {}, Status::PermissionDenied);
    bob.refused(
        &wire::message::session::Shutdown {},
        Status::PermissionDenied,
    );
    alice.ask(&unlink);
}

#[test]
fn handles_belong_to_the_session_and_not_to_the_connection() {
    let (scratch, manager, _members) = with_members("lanes", 1);
    let mut one = Asker::client(&scratch.socket());
    let mut two = one.again(&scratch.socket()).unwrap();
    assert_eq!(one.id(), two.id());
    one.create("/f");
    let opened = one.open("/f", Rights::READ);
    drop(one);
    let state = two.ask(&GetState {
        handle: opened.handle,
    });
    assert_eq!(state, opened.layout);
    let mut other = Asker::user(&manager, ALICE);
    other.refused(&close(opened.handle), Status::BadHandle);
    two.refused(&close(HandleId(7)), Status::BadHandle);
    two.ask(&close(opened.handle));
}

#[test]
fn seed001_s16_files_are_created_with_one_set_of_parameters_or_not_at_all() {
    let (scratch, _manager, mut members) = with_members("s16", 4);
    let mut c = Asker::client(&scratch.socket());
    c.ask(&laid_out(
        "/m",
        Some("f64[64,64]"),
        "(block, block) onto 2x2",
    ));
    let state = c.ask(&GetLayout { path: "/m".into() }).state;
    let file = stat_found(c.ask(&stat("/m"))).attributes.file;
    // Every server of the file is told the same.
    let told: Vec<_> = members
        .iter_mut()
        .map(|m| m.asker.ask(&wire::message::cluster::FileState { file }))
        .collect();
    assert!(told.iter().all(|t| *t == told[0]));
    assert_eq!(told[0].layout, state);
    assert_eq!(state.pieces[0].places.len(), 4);
    // What cannot be created on all its servers is created on none.
    for (layout, status) in [
        ("striped(4KiB) over [0,1,9]", Status::Unreachable),
        ("(block, block) onto 2x2", Status::InvalidArgument),
        ("striped(4KiB", Status::InvalidArgument),
    ] {
        c.refused(&laid_out("/no", None, layout), status);
        c.refused(&stat("/no"), Status::NotFound);
    }
    assert_eq!(c.ask(&Count {}).files, 1);
    assert_eq!(c.ask(&Check {}), []);
}

#[test]
fn seed001_s17_metadata_is_the_same_from_every_connection_and_to_every_server() {
    let (scratch, manager, mut members) = with_members("s17", 3);
    let mut c = Asker::client(&scratch.socket());
    let file = c.create("/f").file;
    c.ask(&Chmod {
        path: "/f".into(),
        mode: 0o640,
    });
    members[0].asker.ask(&wire::message::cluster::ReportSize {
        file,
        epoch: 0,
        size: 77,
        modified: Time(i64::MAX / 2),
    });
    let attributes = stat_found(c.ask(&stat("/f"))).attributes;
    assert_eq!((attributes.size, attributes.mode), (77, 0o640));
    for _ in 0..3 {
        let mut other = Asker::user(&manager, ALICE);
        assert_eq!(stat_found(other.ask(&stat("/f"))).attributes, attributes);
        assert_eq!(
            other.ask(&list("/", None, 10)).entries[0].attributes,
            Some(attributes.clone())
        );
    }
    for member in &mut members {
        let told = member
            .asker
            .ask(&wire::message::cluster::FileState { file });
        assert_eq!(told.size.size, 77);
        assert_eq!((told.mode, told.directory.0), (0o640, 1));
        let note = metaserver::note::Note::decode(&told.note.0).unwrap();
        assert_eq!(note.path, "/f");
        assert_eq!(note.layout, attributes.layout);
    }
}

#[test]
fn seed001_s18_access_modes_exclude_each_other_between_clients() {
    let (scratch, manager, _members) = with_members("s18", 2);
    let mut c = Asker::client(&scratch.socket());
    let mut d = Asker::user(&manager, 0);
    let with = |path: &str, options: OpenOptions| Open {
        path: path.into(),
        options,
    };
    let exclusive = |path: &str| {
        let create = CreateOptions {
            mode: 0o644,
            exclusive: true,
            ..CreateOptions::default()
        };
        with(
            path,
            OpenOptions {
                rights: Rights::BOTH,
                create: Some(create),
                ..OpenOptions::default()
            },
        )
    };
    assert!(c.ask(&exclusive("/x")).is_new);
    d.refused(&exclusive("/x"), Status::Exists);
    // What was opened for reading is not for writing.
    let reader = d.open("/x", Rights::READ);
    assert_eq!(reader.rights, Rights::READ);
    let append = |rights| {
        with(
            "/x",
            OpenOptions {
                rights,
                append: true,
                ..OpenOptions::default()
            },
        )
    };
    d.refused(&append(Rights::READ), Status::InvalidArgument);
    let appender = d.ask(&append(Rights::WRITE));
    let unique = with(
        "/x",
        OpenOptions {
            rights: Rights::READ,
            unique: Some(0),
            ..OpenOptions::default()
        },
    );
    c.refused(&unique, Status::InUse);
    let delete = with(
        "/x",
        OpenOptions {
            rights: Rights::READ,
            delete_on_close: true,
            ..OpenOptions::default()
        },
    );
    let last = c.ask(&delete);
    for handle in [reader.handle, appender.handle] {
        assert!(!d.ask(&close(handle)).is_removed);
    }
    assert!(!c.ask(&close(last.handle)).is_removed, "the first is open");
    c.ask(&Goodbye {});
    d.refused(&stat("/x"), Status::NotFound);
    // Alone means alone.
    d.create("/y");
    let alone = Open {
        path: "/y".into(),
        ..unique
    };
    let held = d.ask(&alone);
    let mut e = Asker::client(&scratch.socket());
    e.refused(&open("/y", Rights::READ), Status::InUse);
    d.ask(&close(held.handle));
    e.open("/y", Rights::READ);
}

#[test]
fn seed004_s33_removing_a_missing_and_an_open_file_differ() {
    let (scratch, _manager, _members) = with_members("s33", 1);
    let mut c = Asker::client(&scratch.socket());
    let unlink = |path: &str| Unlink {
        path: path.into(),
        how: UnlinkHow::UnlessOpen,
    };
    let missing = c.refused(&unlink("/f"), Status::NotFound);
    c.create("/f");
    let opened = c.open("/f", Rights::READ);
    let in_use = c.refused(&unlink("/f"), Status::InUse);
    assert_ne!(missing, in_use);
    c.ask(&close(opened.handle));
    c.ask(&unlink("/f"));
}

#[test]
fn long_lists_come_in_parts_that_fit() {
    let (scratch, _manager, _members) = with_members("lists", 1);
    let mut c = Asker::client(&scratch.socket());
    c.ask(&Mkdir {
        path: "/d".into(),
        mode: 0o755,
    });
    // With names as long as they may be, these entries do not fit into one frame.
    let name = |i: usize| format!("{}{i:05}", "n".repeat(240));
    for i in 0..4000 {
        c.create(&format!("/d/{}", name(i)));
    }
    let mut names = Vec::new();
    let mut parts = 0;
    loop {
        let part = c.ask(&list("/d", names.last().map(String::as_str), u32::MAX));
        parts += 1;
        names.extend(part.entries.into_iter().map(|e| e.name));
        if !part.has_more {
            break;
        }
    }
    assert_eq!(names, (0..4000).map(name).collect::<Vec<_>>());
    assert!(parts > 1, "{parts}");
}

#[test]
fn capability_of_another_client_opens_nothing() {
    let (scratch, manager, _members) = with_members("caps", 1);
    let mut c = Asker::client(&scratch.socket());
    c.create("/f");
    let opened = c.open("/f", Rights::BOTH);
    let mut other = Asker::user(&manager, ALICE);
    let reopen = |capability| Reopen {
        capability,
        unique: None,
    };
    other.refused(&reopen(opened.capability.clone()), Status::BadCapability);
    let mut forged = opened.capability.0.clone();
    forged[17] ^= 1;
    c.refused(&reopen(Bytes(forged)), Status::BadCapability);
    c.refused(&reopen(Bytes(vec![1, 2])), Status::Malformed);
}

#[test]
fn long_texts_do_not_make_a_directory_unreadable() {
    let (scratch, _manager, _members) = with_members("texts", 1);
    let mut c = Asker::client(&scratch.socket());
    let spaces = " ".repeat(900_000);
    let long = format!("striped(4KiB){spaces}over 1");
    for i in 0..5 {
        c.ask(&laid_out(&format!("/f{i}"), None, &long));
    }
    let listing = c.ask(&list("/", None, 100));
    assert_eq!((listing.entries.len(), listing.has_more), (5, false));
    let attributes = listing.entries[0].attributes.clone().unwrap();
    assert_eq!(attributes.layout, None);
    assert_eq!(
        stat_found(c.ask(&stat("/f0"))).attributes.layout,
        Some(long.clone())
    );
    // Views are told as far as they fit; the rest is behind them.
    for i in 0..40 {
        c.ask(&PutView {
            path: "/f0".into(),
            name: format!("v{i:02}"),
            view: NamedView {
                text: spaces[..100_000].to_owned(),
                ..a_view()
            },
        });
    }
    let mut names: Vec<String> = Vec::new();
    loop {
        let part = c.ask(&ListViews {
            path: "/f0".into(),
            after: names.last().cloned(),
            limit: 100,
        });
        if part.is_empty() {
            break;
        }
        assert!(part.len() < 12);
        names.extend(part.into_iter().map(|v| v.name));
    }
    assert_eq!(names.len(), 40);
    assert_eq!(
        c.ask(&ListViews {
            path: "/f0".into(),
            after: None,
            limit: 3,
        })
        .len(),
        3
    );
}

#[test]
fn tree_is_removed_at_once_and_cleared_by_itself() {
    let (scratch, manager, _members) = with_members("trees", 2);
    let mut root = Asker::user(&manager, 0);
    let mut c = Asker::user(&manager, 1001);
    let mkdir = |path: &str, mode| Mkdir {
        path: path.into(),
        mode,
    };
    root.ask(&mkdir("/all", 0o777));
    root.ask(&Chmod {
        path: "/all".into(),
        mode: 0o777,
    });
    for path in ["/all/t", "/all/t/a", "/all/t/a/b"] {
        c.ask(&mkdir(path, 0o755));
        for k in 0..100 {
            c.create(&format!("{path}/{k}"));
        }
    }
    let before = c.ask(&Count {});
    let remove = RemoveTree {
        path: "/all/t".into(),
    };
    let mut stranger = Asker::user(&manager, 1002);
    let text = stranger.refused(&remove, Status::PermissionDenied);
    assert!(text.contains("/all/t"), "{text}");
    assert_eq!(c.ask(&Count {}), before);
    c.ask(&remove);
    assert!(c.ask(&list("/all", None, 10)).entries.is_empty());
    c.refused(&remove, Status::NotFound);
    c.refused(
        &RemoveTree {
            path: "/all/t/a".into(),
        },
        Status::NotFound,
    );
    c.wait_for_statistic("trees", 0);
    let after = c.ask(&Count {});
    assert_eq!((after.files, after.directories), (0, 2));
    // Servers are told of each file, and say later that they have nothing of it any more.
    assert_eq!(after.removals, 2 * 300);
    drop(scratch);
}
