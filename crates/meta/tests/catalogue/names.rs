//! Names, permissions and handles by example: one test per rule that users meet.
//!
//! Everything runs on memory; what survives a crash is in `crash.rs`.

use control::capability::{Capability, CapabilityError, ClusterKey, RequestNeeds};
use meta::catalogue::{Caller, CreateOptions, Kind, OpenOptions, Removal, SetTime, UnlinkHow};
use meta::{ClientId, Rights, ServerId, Time};
use wire::Status;

use crate::fixture::{ALICE, BOB, Fixture, plain, refused, who};

#[test]
fn names_are_any_text_without_slash_and_nul() {
    let mut f = Fixture::new(1);
    let long = "ü".repeat(127) + "x";
    assert_eq!(long.len(), 255);
    let odd = [
        "with space",
        "名前",
        "🦀",
        "a\nb",
        "...",
        "\u{301}e",
        "..a",
        &long,
    ];
    for name in odd {
        f.create(ALICE, &format!("/{name}")).unwrap();
    }
    let mut sorted: Vec<&str> = odd.to_vec();
    sorted.sort_unstable();
    assert_eq!(f.names("/"), sorted);
    refused(
        f.create(ALICE, &format!("/{long}y")),
        Status::InvalidArgument,
    );
    refused(f.create(ALICE, "/a\0b"), Status::InvalidArgument);
    refused(f.create(ALICE, "relative"), Status::InvalidArgument);
    refused(f.create(ALICE, "/"), Status::InvalidArgument);
    refused(f.create(ALICE, "/x/.."), Status::InvalidArgument);
    refused(f.create(ALICE, "/."), Status::InvalidArgument);
    refused(f.create(ALICE, &"/n".repeat(2049)), Status::InvalidArgument);
    // Precomposed and combining letters are different names.
    f.create(ALICE, "/\u{e9}").unwrap();
    assert_eq!(f.status(ALICE, "/e\u{301}"), Status::NotFound);
    f.clean();
}

#[test]
fn dots_and_slashes_in_paths() {
    let mut f = Fixture::new(1);
    f.by(ALICE, |b, c| b.mkdir(c, "/d/", 0o755)).unwrap();
    f.create(ALICE, "/d/x").unwrap();
    for path in ["//d///x", "/./d/./x", "/d/../d/x", "/../../d/x"] {
        assert_eq!(f.status(ALICE, path), Status::Ok, "{path}");
    }
    assert_eq!(f.status(ALICE, "/d/x/"), Status::NotDirectory);
    assert_eq!(f.status(ALICE, "/d/x/y"), Status::NotDirectory);
    refused(f.create(ALICE, "/d/y/"), Status::IsDirectory);
    refused(f.create(ALICE, "/d/x/"), Status::NotDirectory);
    refused(f.create(ALICE, "/d/x/z"), Status::NotDirectory);
    refused(f.create(ALICE, "/no/z"), Status::NotFound);
}

#[test]
fn file_numbers_are_never_used_again() {
    let mut f = Fixture::new(1);
    let first = f.create(ALICE, "/a").unwrap();
    f.by(ALICE, |b, c| b.unlink(c, "/a", UnlinkHow::EvenIfOpen))
        .unwrap();
    let second = f.create(ALICE, "/a").unwrap();
    assert!(second > first);
    let mut f = f.restart();
    f.by(0, |b, _| b.end_recovery()).unwrap();
    f.by(ALICE, |b, c| b.unlink(c, "/a", UnlinkHow::EvenIfOpen))
        .unwrap();
    assert!(f.create(ALICE, "/a").unwrap() > second);
}

#[test]
fn list_goes_page_by_page_in_order() {
    let mut f = Fixture::new(1);
    f.by(ALICE, |b, c| b.mkdir(c, "/d", 0o755)).unwrap();
    f.by(ALICE, |b, c| {
        for i in 0..25 {
            b.create(c, &format!("/d/f{i:02}"), &plain())?;
        }
        b.mkdir(c, "/d/sub", 0o755)
    })
    .unwrap();
    let snapshot = f.catalogue.snapshot().unwrap();
    let (mut seen, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = snapshot
            .list(&who(BOB), "/d", after.as_deref(), 10)
            .unwrap();
        assert!(page.entries.len() <= 10);
        after = page.entries.last().map(|e| e.name.clone());
        seen.extend(page.entries);
        if !page.has_more {
            break;
        }
    }
    assert_eq!(seen.len(), 26);
    assert!(seen.is_sorted_by(|a, b| a.name < b.name));
    assert_eq!(seen[25].kind, Kind::Directory);
    let counts = snapshot.counts().unwrap();
    assert_eq!((counts.files, counts.directories), (25, 3));
}

#[test]
fn batch_gives_each_operation_its_own_result() {
    let mut f = Fixture::new(1);
    let credentials = who(ALICE);
    let caller = Caller {
        client: ClientId(1),
        credentials: &credentials,
        now: Time(5),
    };
    let (a, again, below, listed) = f
        .catalogue
        .transact(|b| {
            let exclusive = CreateOptions {
                exclusive: true,
                ..plain()
            };
            (
                b.create(&caller, "/a", &exclusive),
                b.create(&caller, "/a", &exclusive),
                b.create(&caller, "/no/b", &exclusive),
                b.mkdir(&caller, "/c", 0o700),
            )
        })
        .unwrap();
    assert!(a.unwrap().is_new);
    refused(again, Status::Exists);
    refused(below, Status::NotFound);
    listed.unwrap();
    assert_eq!(f.names("/"), ["a", "c"]);
    f.clean();
}

#[test]
fn permissions_are_those_of_posix() {
    let mut f = Fixture::new(1);
    f.by(ALICE, |b, c| b.mkdir(c, "/home", 0o750)).unwrap();
    f.create(ALICE, "/home/x").unwrap();
    // No search permission: nothing below exists for him.
    assert_eq!(f.status(BOB, "/home/x"), Status::PermissionDenied);
    assert_eq!(f.status(BOB, "/home"), Status::Ok);
    f.by(ALICE, |b, c| b.chmod(c, "/home", 0o751)).unwrap();
    assert_eq!(f.status(BOB, "/home/x"), Status::Ok);
    // Search alone does not list.
    let listed = f
        .catalogue
        .snapshot()
        .unwrap()
        .list(&who(BOB), "/home", None, 9);
    refused(listed, Status::PermissionDenied);
    refused(f.create(BOB, "/home/y"), Status::PermissionDenied);
    refused(
        f.open(BOB, "/home/x", Rights::WRITE),
        Status::PermissionDenied,
    );
    f.open(BOB, "/home/x", Rights::READ).unwrap();
    f.open(BOB, "/home/x", Rights::NONE).unwrap();
    refused(
        f.by(BOB, |b, c| b.unlink(c, "/home/x", UnlinkHow::EvenIfOpen)),
        Status::PermissionDenied,
    );
    // Attributes belong to the owner and to root.
    refused(
        f.by(BOB, |b, c| b.chmod(c, "/home/x", 0o777)),
        Status::PermissionDenied,
    );
    refused(
        f.by(ALICE, |b, c| b.chown(c, "/home/x", Some(BOB), None)),
        Status::PermissionDenied,
    );
    refused(
        f.by(ALICE, |b, c| b.chown(c, "/home/x", None, Some(BOB))),
        Status::PermissionDenied,
    );
    f.by(0, |b, c| b.chown(c, "/home/x", Some(BOB), Some(BOB)))
        .unwrap();
    f.open(BOB, "/home/x", Rights::BOTH).unwrap();
    // Who creates a file may write it, whatever its mode.
    let options = OpenOptions {
        rights: Rights::BOTH,
        create: Some(CreateOptions {
            mode: 0o400,
            exclusive: true,
            ..plain()
        }),
        ..OpenOptions::default()
    };
    f.by(ALICE, |b, c| b.open(c, "/home/mine", &options))
        .unwrap();
    refused(
        f.open(ALICE, "/home/mine", Rights::WRITE),
        Status::PermissionDenied,
    );
    f.open(0, "/home/mine", Rights::BOTH).unwrap();
}

#[test]
fn sticky_root_protects_names() {
    let mut f = Fixture::new(1);
    f.create(ALICE, "/a").unwrap();
    f.create(BOB, "/b").unwrap();
    refused(
        f.by(BOB, |b, c| b.unlink(c, "/a", UnlinkHow::EvenIfOpen)),
        Status::PermissionDenied,
    );
    refused(
        f.by(BOB, |b, c| b.rename(c, "/a", "/c")),
        Status::PermissionDenied,
    );
    refused(
        f.by(BOB, |b, c| b.rename(c, "/b", "/a")),
        Status::PermissionDenied,
    );
    f.by(BOB, |b, c| b.rename(c, "/b", "/c")).unwrap();
    f.by(0, |b, c| b.unlink(c, "/a", UnlinkHow::EvenIfOpen))
        .unwrap();
    f.clean();
}

#[test]
fn group_is_inherited_below_a_setgid_directory() {
    let mut f = Fixture::new(1);
    f.by(0, |b, c| b.mkdir(c, "/team", 0o2777)).unwrap();
    f.by(0, |b, c| b.chown(c, "/team", None, Some(77))).unwrap();
    f.by(ALICE, |b, c| b.mkdir(c, "/team/sub", 0o755)).unwrap();
    f.create(ALICE, "/team/sub/x").unwrap();
    let snapshot = f.catalogue.snapshot().unwrap();
    let sub = snapshot.stat(&who(ALICE), "/team/sub").unwrap();
    assert_eq!((sub.group, sub.mode), (77, 0o2755));
    assert_eq!(snapshot.stat(&who(ALICE), "/team/sub/x").unwrap().group, 77);
}

#[test]
fn times_are_set_by_those_who_may() {
    let mut f = Fixture::new(1);
    f.create(ALICE, "/x").unwrap();
    let before = Time(-86_400_000_000_000);
    f.by(ALICE, |b, c| {
        b.utimes(c, "/x", SetTime::To(before), SetTime::Keep)
    })
    .unwrap();
    refused(
        f.by(BOB, |b, c| b.utimes(c, "/x", SetTime::Now, SetTime::Now)),
        Status::PermissionDenied,
    );
    f.by(ALICE, |b, c| b.chmod(c, "/x", 0o666)).unwrap();
    f.by(BOB, |b, c| b.utimes(c, "/x", SetTime::Keep, SetTime::Now))
        .unwrap();
    refused(
        f.by(BOB, |b, c| {
            b.utimes(c, "/x", SetTime::Keep, SetTime::To(before))
        }),
        Status::PermissionDenied,
    );
    let x = f
        .catalogue
        .snapshot()
        .unwrap()
        .stat(&who(ALICE), "/x")
        .unwrap();
    assert_eq!((x.accessed, x.modified), (before, Time(1_000)));
}

#[test]
fn rename_replaces_as_posix_says() {
    let mut f = Fixture::new(1);
    f.by(ALICE, |b, c| {
        for d in ["/d", "/d/e", "/empty", "/full"] {
            b.mkdir(c, d, 0o755)?;
        }
        for x in ["/x", "/y", "/full/z"] {
            b.create(c, x, &plain())?;
        }
        Ok(())
    })
    .unwrap();
    let rename = |f: &mut Fixture, from: &str, to: &str| f.by(ALICE, |b, c| b.rename(c, from, to));
    refused(rename(&mut f, "/d", "/d/e/f"), Status::InvalidArgument);
    refused(rename(&mut f, "/d", "/d/inside"), Status::InvalidArgument);
    refused(rename(&mut f, "/d", "/x"), Status::NotDirectory);
    refused(rename(&mut f, "/x", "/d"), Status::IsDirectory);
    refused(rename(&mut f, "/d", "/full"), Status::NotEmpty);
    refused(rename(&mut f, "/nothing", "/x"), Status::NotFound);
    refused(rename(&mut f, "/x", "/no/x"), Status::NotFound);
    refused(rename(&mut f, "/x", "/q/"), Status::NotDirectory);
    rename(&mut f, "/x", "/x").unwrap();
    rename(&mut f, "/d", "/empty").unwrap();
    assert_eq!(f.names("/empty"), ["e"]);
    let y = f
        .catalogue
        .snapshot()
        .unwrap()
        .stat(&who(ALICE), "/y")
        .unwrap()
        .file;
    rename(&mut f, "/x", "/y").unwrap();
    assert_ne!(
        f.catalogue
            .snapshot()
            .unwrap()
            .stat(&who(ALICE), "/y")
            .unwrap()
            .file,
        y
    );
    assert_eq!(f.removals(0), [(y.0, 1)]);
    rename(&mut f, "/y", "/empty/e/deep").unwrap();
    assert_eq!(f.names("/"), ["empty", "full"]);
    let snapshot = f.catalogue.snapshot().unwrap();
    let deep = snapshot.stat(&who(ALICE), "/empty/e/deep").unwrap();
    assert_eq!(
        snapshot.path_of(deep.file).unwrap().unwrap(),
        "/empty/e/deep"
    );
    refused(f.by(ALICE, |b, c| b.rmdir(c, "/empty")), Status::NotEmpty);
    refused(
        f.by(ALICE, |b, c| b.rmdir(c, "/empty/e/deep")),
        Status::NotDirectory,
    );
    refused(
        f.by(ALICE, |b, c| b.unlink(c, "/empty", UnlinkHow::EvenIfOpen)),
        Status::IsDirectory,
    );
    f.clean();
}

#[test]
fn seed001_s18_access_modes_exclude_each_other() {
    let mut f = Fixture::new(1);
    let open = |f: &mut Fixture, user: u32, options: OpenOptions| {
        f.by(user, |b, c| b.open(c, "/x", &options))
    };
    let exclusive = OpenOptions {
        rights: Rights::BOTH,
        create: Some(CreateOptions {
            exclusive: true,
            mode: 0o666,
            ..plain()
        }),
        ..OpenOptions::default()
    };
    let first = open(&mut f, ALICE, exclusive.clone()).unwrap();
    refused(open(&mut f, BOB, exclusive), Status::Exists);
    // A handle for reading shows I/O servers nothing that allows writing, nor changes the size.
    let reader = f.open(BOB, "/x", Rights::READ).unwrap();
    let key = ClusterKey::new([1; 32]);
    let token = reader.capability(1000).issue(&key);
    let wanted = |rights| RequestNeeds {
        file: reader.file,
        oldest_generation: 1,
        rights,
        client: ClientId(BOB.into()),
    };
    let verify = |rights| Capability::verify(&token, &key, 0, &wanted(rights));
    assert!(verify(Rights::READ).is_ok());
    assert_eq!(
        verify(Rights::WRITE),
        Err(CapabilityError::InsufficientRights)
    );
    refused(
        f.by(BOB, |b, c| b.begin_truncate(c, reader.handle, 0)),
        Status::BadHandle,
    );
    // Appending needs the right to write.
    let append = |rights| OpenOptions {
        rights,
        append: true,
        ..OpenOptions::default()
    };
    refused(
        open(&mut f, BOB, append(Rights::READ)),
        Status::InvalidArgument,
    );
    let appender = open(&mut f, BOB, append(Rights::WRITE)).unwrap();
    // Alone, or not at all.
    let unique = OpenOptions {
        rights: Rights::READ,
        unique: Some(0),
        ..OpenOptions::default()
    };
    refused(open(&mut f, ALICE, unique.clone()), Status::InUse);
    for (user, handle) in [
        (ALICE, first.handle),
        (BOB, reader.handle),
        (BOB, appender.handle),
    ] {
        assert!(!f.by(user, |b, c| b.close(c, handle)).unwrap());
    }
    let alone = open(&mut f, ALICE, unique.clone()).unwrap();
    refused(f.open(BOB, "/x", Rights::READ), Status::InUse);
    refused(open(&mut f, BOB, unique.clone()), Status::InUse);
    f.by(ALICE, |b, c| b.close(c, alone.handle)).unwrap();
    // Together with those who say the same number.
    let together = |number| OpenOptions {
        unique: Some(number),
        ..unique.clone()
    };
    let alice = open(&mut f, ALICE, together(7)).unwrap();
    let bob = open(&mut f, BOB, together(7)).unwrap();
    for stranger in [together(8), together(0)] {
        refused(open(&mut f, BOB, stranger), Status::InUse);
    }
    refused(f.open(BOB, "/x", Rights::READ), Status::InUse);
    for (user, opened) in [(ALICE, alice), (BOB, bob)] {
        f.by(user, |b, c| b.close(c, opened.handle)).unwrap();
    }
    // Delete on close: gone with the last handle, not before.
    let doomed = OpenOptions {
        rights: Rights::READ,
        delete_on_close: true,
        ..OpenOptions::default()
    };
    refused(open(&mut f, BOB, doomed.clone()), Status::PermissionDenied);
    let doomed = open(&mut f, ALICE, doomed).unwrap();
    let other = f.open(BOB, "/x", Rights::READ).unwrap();
    assert!(!f.by(ALICE, |b, c| b.close(c, doomed.handle)).unwrap());
    assert_eq!(f.status(BOB, "/x"), Status::Ok);
    assert!(f.by(BOB, |b, c| b.close(c, other.handle)).unwrap());
    assert_eq!(f.status(BOB, "/x"), Status::NotFound);
    f.clean();
}

#[test]
fn seed004_s33_removing_a_missing_and_an_open_file_differ() {
    let mut f = Fixture::new(1);
    let remove = |f: &mut Fixture| f.by(ALICE, |b, c| b.unlink(c, "/x", UnlinkHow::UnlessOpen));
    refused(remove(&mut f), Status::NotFound);
    f.create(ALICE, "/x").unwrap();
    let open = f.open(BOB, "/x", Rights::READ).unwrap();
    refused(remove(&mut f), Status::InUse);
    f.by(BOB, |b, c| b.close(c, open.handle)).unwrap();
    remove(&mut f).unwrap();
    refused(remove(&mut f), Status::NotFound);
}

#[test]
fn handles_belong_to_clients_and_end_with_them() {
    let mut f = Fixture::new(2);
    f.create(ALICE, "/x").unwrap();
    let a = f.open(ALICE, "/x", Rights::BOTH).unwrap();
    let b = f.open(BOB, "/x", Rights::READ).unwrap();
    assert_eq!(f.catalogue.handles_of(ClientId(BOB.into())), 1);
    assert_eq!(f.catalogue.handle_count(), 2);
    refused(
        f.by(BOB, |batch, c| batch.close(c, a.handle)),
        Status::BadHandle,
    );
    f.by(ALICE, |batch, c| {
        batch.unlink(c, "/x", UnlinkHow::EvenIfOpen)
    })
    .unwrap();
    assert_eq!(f.status(ALICE, "/x"), Status::NotFound);
    // Without a name it is still there for those who have it open.
    let snapshot = f.catalogue.snapshot().unwrap();
    assert!(!snapshot.stat_file(a.file).unwrap().is_linked);
    assert_eq!(snapshot.path_of(a.file).unwrap(), None);
    drop(snapshot);
    f.by(ALICE, |batch, c| batch.begin_truncate(c, a.handle, 10))
        .unwrap();
    f.clean();
    f.by(BOB, |batch, c| batch.close(c, b.handle)).unwrap();
    assert!(f.removals(0).is_empty());
    assert_eq!(
        f.by(0, |batch, _| batch.release(ClientId(ALICE.into())))
            .unwrap(),
        1
    );
    assert_eq!(f.removals(0), [(a.file.0, 1)]);
    assert_eq!(f.removals(1), [(a.file.0, 1)]);
    refused(
        f.by(ALICE, |batch, c| batch.close(c, a.handle)),
        Status::BadHandle,
    );
    refused(
        f.by(BOB, |batch, c| batch.close(c, b.handle)),
        Status::BadHandle,
    );
    // Servers confirm, as often as they like; a part is not all.
    let mut done = Removal {
        file: a.file,
        generation: 1,
        incarnation: 1,
        subfiles: vec![3],
    };
    f.by(0, |batch, _| batch.confirm_removal(ServerId(0), &done))
        .unwrap();
    assert_eq!(f.removals(0).len(), 1);
    done.subfiles.clear();
    for _ in 0..2 {
        f.by(0, |batch, _| batch.confirm_removal(ServerId(0), &done))
            .unwrap();
    }
    assert!(f.removals(0).is_empty());
    assert_eq!(f.catalogue.handle_count(), 0);
    f.clean();
}

#[test]
fn open_files_without_a_name_survive_a_restart() {
    let mut f = Fixture::new(1);
    let (kept, lost) = (
        f.create(ALICE, "/kept").unwrap(),
        f.create(ALICE, "/lost").unwrap(),
    );
    f.create(ALICE, "/doomed").unwrap();
    let old = f.open(ALICE, "/kept", Rights::BOTH).unwrap();
    f.open(ALICE, "/lost", Rights::BOTH).unwrap();
    let doomed = OpenOptions {
        rights: Rights::READ,
        delete_on_close: true,
        ..OpenOptions::default()
    };
    f.by(ALICE, |b, c| b.open(c, "/doomed", &doomed)).unwrap();
    for path in ["/kept", "/lost"] {
        f.by(ALICE, |b, c| b.unlink(c, path, UnlinkHow::EvenIfOpen))
            .unwrap();
    }
    let mut f = f.restart();
    assert!(f.catalogue.is_recovering());
    f.clean();
    // Until everybody had time to come back nothing is known to be unused.
    f.create(BOB, "/new").unwrap();
    refused(
        f.by(BOB, |b, c| b.unlink(c, "/new", UnlinkHow::UnlessOpen)),
        Status::Busy,
    );
    refused(
        f.by(ALICE, |b, c| b.close(c, old.handle)),
        Status::BadHandle,
    );
    let back = f
        .by(ALICE, |b, c| b.reopen(c, kept, Rights::BOTH, None))
        .unwrap();
    assert_ne!(back.handle, old.handle);
    assert_eq!(f.by(0, |b, _| b.end_recovery()).unwrap(), 2);
    assert_eq!(f.status(ALICE, "/doomed"), Status::NotFound);
    refused(
        f.by(ALICE, |b, c| b.reopen(c, lost, Rights::READ, None)),
        Status::NotFound,
    );
    assert_eq!(f.removals(0).len(), 2);
    assert!(f.by(ALICE, |b, c| b.close(c, back.handle)).unwrap());
    assert_eq!(f.removals(0).len(), 3);
    f.clean();
}

#[test]
fn ten_thousand_files_in_one_directory() {
    let mut f = Fixture::new(4);
    f.by(ALICE, |b, c| {
        for i in 0..10_000 {
            b.create(c, &format!("/{i}"), &plain())?;
        }
        Ok(())
    })
    .unwrap();
    let f = f.restart();
    assert_eq!(
        f.catalogue.snapshot().unwrap().counts().unwrap().files,
        10_000
    );
    assert_eq!(f.status(BOB, "/9999"), Status::Ok);
    f.clean();
}
