//! Profiles of files: merging is associative, commutative and bounded, bytes come back as they were, views are
//! re-derived for another number of processes, and the image of every version can be read.

use advise::profile::travel::ProfileError;
use advise::profile::{Entry, MOST_BYTES, MOST_ENTRIES, Profile, Recorder};
use falls::FallsSet;
use layout::{ArrayType, FileOffset, View};
use proptest::prelude::*;

fn view(text: &str, array: &ArrayType) -> View {
    let layout: layout::Layout = text.parse().unwrap();
    let applied = layout.on_array(array).unwrap();
    View::new(FileOffset(0), applied.period(), applied.element(0).unwrap()).unwrap()
}

/// What a process did through a view: accesses of (writes, offset, length), all at one server.
fn entry(view: &View, text: &str, accesses: &[(bool, u64, u64)], near: Option<u64>) -> Entry {
    let recorder = Recorder::default();
    for &(writes, offset, len) in accesses {
        recorder.record(writes, offset, len);
        recorder.moved(recorder.slot(offset % 5), writes, len);
    }
    let mut entry = Entry::new(view, text, 1 << 20);
    [entry.read, entry.written] = recorder.take();
    entry.servers = recorder.take_servers();
    let mut one = Profile::default();
    one.add("one", 0, entry);
    let one = one.of_process(near, |_| 0);
    one.entries()[0].1.clone()
}

prop_compose! {
    fn profiles()(
        list in prop::collection::vec(
            (0_u64..3, 0_u64..400, 0_u64..4, any::<bool>(), 0_u64..1 << 40, 1_u64..1 << 20, 0_u64..3),
            0..40,
        )
    ) -> Profile {
        let mut profile = Profile::default();
        for (application, rank, v, writes, offset, len, near) in list {
            let set = FallsSet::segment(v, 1 + v).unwrap();
            let view = View::new(FileOffset(v), 8, set).unwrap();
            let name = format!("program {application}");
            profile.add(&name, rank, entry(&view, "", &[(writes, offset, len)], Some(near)));
        }
        profile
    }
}

fn merged(a: &Profile, b: &Profile) -> Profile {
    let mut sum = a.clone();
    sum.merge(b);
    sum
}

proptest! {
    #![proptest_config(testkit::laws::config(64))]

    #[test]
    fn merging_is_associative_and_commutative(a in profiles(), b in profiles(), c in profiles()) {
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &Profile::default()), a);
    }

    #[test]
    fn bytes_come_back_as_they_were(a in profiles()) {
        prop_assert_eq!(Profile::load(&a.save()), Ok(a));
    }

    #[test]
    fn damaged_bytes_are_refused_or_a_profile(a in profiles(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = a.save();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(read) = Profile::load(&bytes) {
            // What is read can be used and written.
            prop_assert_eq!(Profile::load(&read.save()), Ok(read));
        }
        prop_assert!(Profile::load(&bytes[..at]).is_err());
    }
}

/// More entries than are kept: the same ones stay whatever the order, with all that was counted for them.
#[test]
fn a_profile_is_bounded_and_its_sample_does_not_depend_on_the_order() {
    let array: ArrayType = "u8[64,64]".parse().unwrap();
    let one = |rank: u64| {
        let mut profile = Profile::default();
        let view = view(&format!("(block, *) onto 64 [{}]", rank % 64), &array);
        profile.add(
            "many",
            rank,
            entry(&view, "", &[(false, rank % 7, 10 + rank)], Some(rank % 16)),
        );
        profile
    };
    let parts: Vec<Profile> = (0..2000).chain(500..900).map(one).collect();
    let mut forwards = Profile::default();
    parts.iter().for_each(|p| forwards.merge(p));
    let mut backwards = Profile::default();
    parts.iter().rev().for_each(|p| backwards.merge(p));
    assert_eq!(forwards, backwards);
    assert_eq!(forwards.len(), MOST_ENTRIES);
    let bytes: u64 = (0..2000).chain(500..900).map(|rank| 10 + rank).sum();
    assert_eq!(forwards.total().read.bytes, bytes);
    assert!(forwards.kept_share() > 0.15 && forwards.kept_share() < 0.4);
    for (key, entry) in forwards.entries() {
        let times = 1 + u64::from((500..900).contains(&key.rank));
        assert_eq!(entry.read.count(), times, "{key:?}");
    }
    assert!(forwards.save().len() <= MOST_BYTES);
}

/// A view of many irregular pieces is kept as the blocks in which it lies.
#[test]
fn long_views_become_coarse() {
    let mut segments = Vec::new();
    let mut at = 7_u64;
    for i in 0..20_000_u64 {
        let len = 1 + i * i % 5;
        segments.push(falls::Segment::new(at, len).unwrap());
        at += len + 1 + i * 7 % 11;
    }
    let set = FallsSet::from_segments(&segments).unwrap();
    let view = View::new(FileOffset(0), at, set).unwrap();
    let entry = Entry::new(&view, "", at);
    assert!(entry.is_coarse);
    for segment in &segments {
        assert!(
            entry
                .view
                .bytes()
                .is_contiguous(segment.start()..segment.end())
        );
    }
    let mut profile = Profile::default();
    profile.add("mesh", 0, entry);
    assert!(profile.save().len() < 2048, "{}", profile.save().len());
}

fn learned(text: &str, array: &ArrayType, processes: u64, with_text: bool) -> Profile {
    let mut profile = Profile::default();
    for rank in 0..processes {
        let text = format!("{text} [{rank}]");
        let view = view(&text, array);
        let bytes = view.len_within(array.bytes());
        let text = if with_text { text.as_str() } else { "" };
        profile.add(
            "app",
            rank,
            entry(&view, text, &[(false, 0, bytes)], Some(rank % 4)),
        );
    }
    profile
}

/// Statement 50: what one run showed is of use to the next, also with another number of clients.
#[test]
fn seed001_s50_views_are_derived_anew_for_another_number_of_processes() {
    let array: ArrayType = "f64[48,36]".parse().unwrap();
    for (text, processes, other, expected) in [
        ("(block, *) onto 4", 4, 6, "(block, *) onto 6"),
        ("(*, cyclic) onto 3", 3, 5, "(*, cyclic) onto 5"),
        ("(block, block) onto 2x2", 4, 9, "(block, block) onto 3x3"),
        ("(cyclic(3), *) onto 4", 4, 2, "(cyclic(3), *) onto 2"),
        ("(block, cyclic) onto 2x3", 6, 4, "(block, cyclic) onto 2x2"),
    ] {
        // Whether the program has written the view as a text or has made it from a datatype.
        for with_text in [true, false] {
            let profile = learned(text, &array, processes, with_text);
            let origin = profile.origin("app", Some(&array), array.bytes());
            assert!(origin.is_some(), "{text}");
            let derived = profile.for_processes(other, Some(&array), array.bytes());
            let expected = learned(expected, &array, other, true);
            assert_eq!(derived.len() as u64, other, "{text}");
            for ((key, found), (_, wanted)) in derived.entries().iter().zip(expected.entries()) {
                let same = found
                    .view
                    .bytes()
                    .set()
                    .same_bytes(wanted.view.bytes().set());
                assert!(
                    same,
                    "{text} rank {}: {}",
                    key.rank,
                    found.view.bytes().set()
                );
                assert_eq!(found.read.hull, wanted.read.hull);
            }
            let share = derived.total().read.bytes as f64 / profile.total().read.bytes as f64;
            assert!((share - 1.0).abs() < 0.05, "{text}: {share} of the bytes");
        }
    }
    // The same number: nothing changes.
    let profile = learned("(block, *) onto 4", &array, 4, false);
    assert_eq!(
        profile.for_processes(4, Some(&array), array.bytes()),
        profile
    );
}

/// Statement 50: views that are no distribution are stretched over the ranks, and nothing of what was used is lost.
#[test]
fn seed001_s50_irregular_views_are_stretched() {
    let bytes = 1 << 20;
    let mut profile = Profile::default();
    let cuts = [0, 100_000, 350_000, 900_000, bytes];
    for rank in 0..4 {
        let (from, to) = (cuts[rank as usize], cuts[rank as usize + 1]);
        let whole = View::whole_file();
        profile.add(
            "app",
            rank,
            entry(&whole, "", &[(false, from, to - from)], None),
        );
    }
    assert_eq!(profile.origin("app", None, bytes), None);
    for other in [1, 2, 3, 7, 8] {
        let derived = profile.for_processes(other, None, bytes);
        let map = advise::profile::blocks::AccessMap::new(&derived, bytes);
        assert_eq!(map.processes.len() as u64, other);
        let (nobody, _, _) = map.sharing(4096);
        assert_eq!(nobody, 0, "{other} processes leave blocks out");
    }
}

#[test]
fn the_image_of_version_1_is_read() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/profile-v1.image"
    );
    let array: ArrayType = "f64[48,36]".parse().unwrap();
    let expected = learned("(block, cyclic) onto 2x3", &array, 6, true);
    if std::env::var_os("PARIO_BLESS").is_some() {
        std::fs::write(path, expected.save()).unwrap();
    }
    let image = std::fs::read(path).unwrap();
    assert_eq!(Profile::load(&image), Ok(expected));
    // A newer version says so.
    let mut newer = image;
    newer[b"pario file profile\n".len()] = 77;
    assert_eq!(Profile::load(&newer), Err(ProfileError::Newer(77)));
}
