//! Hints in the catalogue: they stay over restarts, go with what they belong to, and are refused from
//! strangers and in masses.
//!
//! Which of them count is tested in `advise`, what they do to layouts with the client.

use advise::hints::{Source, UseCounts};
use meta::Time;
use meta::catalogue::{Credentials, UnlinkHow};
use wire::message::hints::{HintOutcome, HintText};
use wire::{ServerId, Status};

use crate::fixture::{ALICE, BOB, Fixture, plain, refused};

fn text(name: &str, value: &str) -> HintText {
    HintText {
        name: name.into(),
        value: value.into(),
    }
}

#[test]
fn hints_stay_over_restarts_and_go_with_what_they_belong_to() {
    let mut fixture = Fixture::new(3);
    let set = [text("striping_unit", "4KiB"), text("io_node_list", "0,2")];
    let made = fixture.by(ALICE, |b, caller| {
        b.mkdir(caller, "/d", 0o755)?;
        b.set_hints(caller, "/d", &set, &[])?;
        let file = b.create(caller, "/d/f", &plain())?.file;
        let seen = UseCounts {
            sequential: 100,
            read_bytes: 1,
            ..UseCounts::default()
        };
        b.keep_observed(file, &seen)?;
        b.disk_failed(ServerId(1), "it clicks", false, Time(5))
    });
    made.unwrap();
    let mut fixture = fixture.restart();
    fixture.clean();
    let snapshot = fixture.catalogue.snapshot().unwrap();
    let hints = snapshot.hints(&Credentials::ROOT, "/d/f").unwrap();
    let names: Vec<&str> = hints.given.iter().map(|h| h.name.as_str()).collect();
    assert_eq!(names, ["server_list", "striping_unit", "access_style"]);
    let uses = hints.uses.iter();
    let uses: Vec<_> = uses.map(|u| (&*u.hint.name, u.outcome, &*u.why)).collect();
    let servers = ("server_list", HintOutcome::Used, "servers of the file");
    let unit = ("striping_unit", HintOutcome::Used, "how the file is cut");
    assert_eq!(uses, [servers, unit]);
    let file = snapshot.stat(&Credentials::ROOT, "/d/f").unwrap().file;
    let style = snapshot.hint(file, "access_style").unwrap().unwrap();
    assert_eq!(style.source, Source::Profile);
    assert_eq!(style.value, "read_mostly,sequential");
    let failed = snapshot.failed_servers().unwrap();
    assert_eq!((failed.len(), failed[0].since), (1, Time(5)));
    drop(snapshot);
    // A hint that names only a server that failed is passed over; once it is cleared it counts.
    let servers = |fixture: &mut Fixture, path: &str| {
        let file = fixture.create(ALICE, path).unwrap();
        let snapshot = fixture.catalogue.snapshot().unwrap();
        let state = snapshot.layout(file).unwrap().decode().unwrap();
        let places = state.pieces[0].places.iter().flatten();
        let mut servers: Vec<u64> = places.map(|p| p.server).collect();
        servers.sort_unstable();
        servers
    };
    let list = [text("server_list", "1")];
    let set = fixture.by(ALICE, |b, c| b.set_hints(c, "/d", &list, &[]));
    set.unwrap();
    assert_eq!(servers(&mut fixture, "/d/g"), [0, 2]);
    fixture
        .by(ALICE, |b, _| b.clear_failed(ServerId(1)))
        .unwrap();
    assert_eq!(servers(&mut fixture, "/d/h"), [1]);
    let gone = fixture.by(ALICE, |b, caller| {
        for path in ["/d/f", "/d/g", "/d/h"] {
            b.unlink(caller, path, UnlinkHow::EvenIfOpen)?;
        }
        b.rmdir(caller, "/d")
    });
    gone.unwrap();
    fixture.clean();
    let unknown = fixture.by(ALICE, |b, _| {
        b.disk_failed(ServerId(9), "?", false, Time(0))
    });
    refused(unknown, Status::InvalidArgument);
}

#[test]
fn hints_of_others_and_masses_of_them_are_refused() {
    let mut fixture = Fixture::new(1);
    fixture.by(ALICE, |b, c| b.mkdir(c, "/d", 0o777)).unwrap();
    let set = |fixture: &mut Fixture, user: u32, path: &str, set: &[HintText]| {
        fixture.by(user, |b, c| b.set_hints(c, path, set, &[]))
    };
    let many: Vec<HintText> = (0..300).map(|i| text(&format!("n{i}"), "")).collect();
    let long = [text("layout_of_others", &"x".repeat(70_000))];
    for list in [&many[..], &long] {
        refused(set(&mut fixture, ALICE, "/d", list), Status::TooLarge);
    }
    let longest = "n".repeat(255);
    let longer = "n".repeat(256);
    for (name, value) in [
        ("", "1"),
        (&longer[..], "1"),
        ("striping_unit", "x"),
        ("disk_failed", "0"),
    ] {
        let outcome = set(&mut fixture, ALICE, "/d", &[text(name, value)]);
        refused(outcome, Status::InvalidArgument);
    }
    set(&mut fixture, ALICE, "/d", &many[..255]).unwrap();
    set(&mut fixture, ALICE, "/d", &[text(&longest, "1")]).unwrap();
    let names = many.iter().map(|h| h.name.clone());
    let all: Vec<String> = names.chain([longest]).collect();
    let unset = fixture.by(ALICE, |b, c| b.set_hints(c, "/d", &[], &all));
    unset.unwrap();
    let snapshot = fixture.catalogue.snapshot().unwrap();
    assert_eq!(snapshot.hints(&Credentials::ROOT, "/d").unwrap().given, []);
    drop(snapshot);
    // Who may write a directory does not own it.
    let hint = [text("a", "b")];
    refused(
        set(&mut fixture, BOB, "/d", &hint),
        Status::PermissionDenied,
    );
    fixture.create(BOB, "/d/own").unwrap();
    set(&mut fixture, BOB, "/d/own", &hint).unwrap();
    fixture.clean();
}

#[test]
fn the_hint_that_a_layout_is_said_to_come_from_is_one_that_was_used() {
    let mut fixture = Fixture::new(3);
    let set = [text("layout", "striped(8KiB) over 3")];
    let made = fixture.by(ALICE, |b, caller| {
        b.mkdir(caller, "/d", 0o755)?;
        b.set_hints(caller, "/d", &[text("striping_factor", "2")], &[])?;
        b.mkdir(caller, "/d/e", 0o755)?;
        b.set_hints(caller, "/d/e", &set, &[])
    });
    made.unwrap();
    // The nearer of two; the other is not said to have decided anything.
    for (path, hint, place) in [
        ("/d/f", "striping_factor", "/d"),
        ("/d/e/f", "layout", "/d/e"),
    ] {
        let file = fixture.create(ALICE, path).unwrap();
        let snapshot = fixture.catalogue.snapshot().unwrap();
        let why = snapshot.distribution(file).unwrap();
        let expected = format!("given by the hint {hint} of directory {place}");
        assert_eq!(why, expected, "{path}");
    }
    fixture.clean();
}
