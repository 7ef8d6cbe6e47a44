//! Profiles in the catalogue: they add up, say in which order a file is used, outlive a restart and go with the file.
//! What an image of a profile looks like is tested in `advise`.

use advise::profile::{Entry, Profile, Tally};
use meta::catalogue::{AutoState, UnlinkHow};
use wire::Status;

use crate::fixture::{ALICE, BOB, Fixture, refused, who};

/// So many accesses of 10 bytes one behind the other, or at random.
fn tally(sequential: u64, random: u64) -> Tally {
    let mut tally = Tally {
        bytes: 10 * (sequential + random),
        orders: [sequential, 0, 0, random],
        hull: (0, 1000),
        ..Tally::default()
    };
    tally.sizes[0] = sequential + random;
    tally
}

fn profile(read: Tally, written: Tally) -> Profile {
    let mut profile = Profile::default();
    let entry = Entry {
        read,
        written,
        ..Entry::new(&layout::View::whole_file(), "all", 1000)
    };
    profile.add("app", 0, entry);
    profile
}

#[test]
fn profiles_add_up_and_say_in_which_order_a_file_is_used() {
    let mut fixture = Fixture::new(1);
    let none = Tally::default();
    let both = profile(tally(100, 0), tally(0, 100));
    for (path, profile, expected) in [
        ("/read", profile(tally(100, 0), none.clone()), "sequential"),
        ("/written", profile(none, tally(0, 100)), "random"),
        // The order of reads counts.
        ("/both", both, "sequential"),
    ] {
        let file = fixture.create(ALICE, path).unwrap();
        for _ in 0..2 {
            let merged = fixture.by(ALICE, |b, _| b.merge_profile(file, &profile));
            merged.unwrap();
        }
        let auto = AutoState {
            moves: 3,
            ..AutoState::default()
        };
        fixture
            .by(ALICE, |b, _| b.set_auto_state(file, &auto))
            .unwrap();
        fixture = fixture.restart();
        // Nobody has it open, so it goes with its name.
        fixture.by(ALICE, |b, _| b.end_recovery()).unwrap();
        fixture.clean();
        let snapshot = fixture.catalogue.snapshot().unwrap();
        let (found, kept) = snapshot.profile(&who(ALICE), path).unwrap();
        assert_eq!((found, kept.auto), (file, auto));
        let (once, twice) = (profile.total(), kept.profile.total());
        assert_eq!(twice.read.bytes, 2 * once.read.bytes);
        assert_eq!(twice.written.bytes, 2 * once.written.bytes);
        let style = snapshot.hint(file, "access_style").unwrap().unwrap();
        assert!(style.value.contains(expected), "{path}: {}", style.value);
        drop(snapshot);
        fixture
            .by(ALICE, |b, c| b.unlink(c, path, UnlinkHow::EvenIfOpen))
            .unwrap();
        let snapshot = fixture.catalogue.snapshot().unwrap();
        assert!(snapshot.profile_of(file).unwrap().profile.is_empty());
        drop(snapshot);
        // What comes for a file that is gone is dropped.
        let merged = fixture.by(ALICE, |b, _| b.merge_profile(file, &profile));
        merged.unwrap();
        fixture.clean();
    }
    fixture.by(ALICE, |b, c| b.mkdir(c, "/d", 0o700)).unwrap();
    let snapshot = fixture.catalogue.snapshot().unwrap();
    refused(snapshot.profile(&who(ALICE), "/d"), Status::IsDirectory);
    refused(
        snapshot.profile(&who(BOB), "/d/x"),
        Status::PermissionDenied,
    );
}
