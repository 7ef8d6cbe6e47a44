//! What every store must do, as checks that run against any of them.
//!
//! A check names the capabilities it needs; [`run`] runs those that apply and says how many there
//! were. A new store (an object tier, registered memory) gets a [`Harness`] and runs this suite
//! before anything else uses it.
//!
//! The oracle is a plain vector of bytes. Random checks draw from a seed, so that a failure repeats.

mod space;

use std::ops::Range;
use std::sync::Arc;

use crate::disk::twin::Random;
use crate::{
    Advice, Aside, Capabilities, Domain, Error, Grant, Identity, Location, Pins, Store,
    StoredPiece, Subfile, SubfileId,
};

/// A store under test and what can be done to it from outside.
pub trait Harness {
    /// The store.
    fn store(&self) -> &dyn Store;

    /// Kills the process and starts it again: what was flushed must be there. Stores that are not
    /// durable do nothing.
    fn restart(&mut self) {}

    /// Kills the process at this moment and has the next one adopt its memory: everything that was committed must be there.
    /// Whether there is anything to adopt; where there is not, this does nothing.
    fn kill(&mut self) -> bool {
        false
    }

    /// Lets go of everything in memory that can be had again.
    fn evict(&self) {}

    /// Whether bytes that are punched or cut off give their space back; not every file system can.
    fn frees(&self) -> bool {
        true
    }

    /// Whether space that is taken before there are bytes for it counts as taken.
    fn reserves(&self) -> bool {
        true
    }
}

/// One check.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Whether it applies to a store.
    pub applies: fn(&Capabilities) -> bool,
    /// The check itself; panics on failure.
    pub run: fn(&mut dyn Harness),
}

/// Applies to every store.
fn always(_: &Capabilities) -> bool {
    true
}

/// All checks.
pub const CHECKS: &[Check] = &[
    check("create_open_remove_list", always, create_open_remove_list),
    check("holes_cost_nothing", always, holes_cost_nothing),
    check("writes_are_read_back", always, writes_are_read_back),
    check("regrown_bytes_are_zero", always, regrown_bytes_are_zero),
    check("punched_bytes_are_zero", always, punched_bytes_are_zero),
    check("preallocation_raises_length", always, preallocation),
    check("grants_commit_or_vanish", always, grants_commit_or_vanish),
    check("overtaken_grants_are_refused", always, overtaken_grants),
    check("grants_apart_show_no_old_bytes", always, grants_apart),
    check("released_space_is_free", always, released_space_is_free),
    check("pins_outlive_truncation", always, pins_outlive_truncation),
    check("wrong_ranges_are_refused", always, wrong_ranges),
    check("domain_and_note_change", always, domain_and_note_change),
    check("random_operations_match_model", always, random_operations),
    check("threads_do_not_disturb", always, threads_do_not_disturb),
    check("located_memory_is_shared", |c| c.mappable, located_memory),
    check(
        "late_stores_are_seen_by_nobody",
        |c| c.mappable,
        late_stores,
    ),
    check(
        "what_others_store_into_extents_counts",
        |c| c.mappable,
        stored_by_others,
    ),
    check(
        "space_ahead_is_no_length",
        |c| c.mappable,
        space::space_ahead_is_no_length,
    ),
    check(
        "space_that_is_kept_ahead_stays_until_it_is_not",
        |_| true,
        space::space_kept_ahead,
    ),
    check("synced_bytes_survive", |c| c.durable, synced_bytes_survive),
    check(
        "flushed_bytes_survive",
        |c| c.durable,
        flushed_bytes_survive,
    ),
    check("scrub_reads_all_blocks", |c| c.durable, scrub_reads_all),
];

const fn check(
    name: &'static str,
    applies: fn(&Capabilities) -> bool,
    run: fn(&mut dyn Harness),
) -> Check {
    Check { name, applies, run }
}

/// Runs every check that applies on a fresh store each, and says which ran.
pub fn run(mut fresh: impl FnMut() -> Box<dyn Harness>) -> Vec<&'static str> {
    let mut ran = Vec::new();
    for check in CHECKS {
        let mut harness = fresh();
        if (check.applies)(&harness.store().capabilities()) {
            eprintln!("check {}", check.name); // shown only when a test fails
            (check.run)(&mut *harness);
            ran.push(check.name);
        }
    }
    ran
}

/// An identity for tests.
pub fn identity(file: u64) -> Identity {
    let id = SubfileId {
        file,
        generation: 1,
        index: 0,
    };
    Identity::new(id, Domain::default(), 7)
}

/// Bytes that differ from place to place and are never zero.
pub fn pattern(offset: u64, len: usize, salt: u64) -> Vec<u8> {
    let byte = |at: u64| (at.wrapping_mul(31).wrapping_add(at >> 8).wrapping_add(salt) % 255) as u8;
    (0..len as u64).map(|i| byte(offset + i) + 1).collect()
}

fn read(subfile: &dyn Subfile, range: Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0xee; (range.end - range.start) as usize];
    subfile.read_at(range.start, &mut bytes).expect("read");
    bytes
}

/// Compares without printing megabytes.
#[track_caller]
fn same(found: &[u8], expected: &[u8], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(at) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        panic!(
            "{what}: byte {at} is {}, expected {}",
            found[at], expected[at]
        );
    }
}

fn create_open_remove_list(harness: &mut dyn Harness) {
    let store = harness.store();
    assert!(store.list().unwrap().is_empty());
    let made = store.create(&identity(2)).unwrap();
    store.create(&identity(1)).unwrap();
    assert!(matches!(
        store.create(&identity(2)),
        Err(Error::Exists(id)) if id == identity(2).id
    ));
    assert_eq!(store.list().unwrap(), [identity(1), identity(2)]);
    made.write_at(0, b"abc").unwrap();
    let again = store.open(identity(2).id).unwrap();
    same(&read(&*again, 0..3), b"abc", "second handle");
    assert_eq!((again.len(), again.identity()), (3, identity(2)));
    store.remove(identity(2).id).unwrap();
    let gone = store.open(identity(2).id);
    assert!(matches!(gone, Err(Error::NotFound(_))));
    assert!(matches!(
        store.remove(identity(2).id),
        Err(Error::NotFound(_))
    ));
    // An old handle says so instead of reading zeros, and the name is free again.
    assert!(made.read_at(0, &mut [0; 3]).is_err());
    assert!(made.write_at(0, b"x").is_err());
    let fresh = store.create(&identity(2)).unwrap();
    same(&read(&*fresh, 0..3), &[0; 3], "new subfile");
}

fn holes_cost_nothing(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    let before = harness.store().usage().memory_bytes;
    subfile.truncate(1 << 40).unwrap();
    assert_eq!(subfile.len(), 1 << 40);
    let mut pins = Pins::new();
    subfile.pin(0..1 << 40, &mut pins).unwrap();
    let pieces: Vec<StoredPiece<'_>> = pins.pieces().collect();
    assert!(matches!(pieces[..], [StoredPiece::Hole { offset: 0, len }] if len == 1 << 40));
    drop(pieces);
    assert_eq!(harness.store().usage().memory_bytes, before);
    subfile.write_at(1 << 39, b"island").unwrap();
    pins.clear();
    subfile.pin(0..1 << 40, &mut pins).unwrap();
    let memory: u64 = pins
        .pieces()
        .map(|p| match p {
            StoredPiece::Bytes { bytes, .. } => bytes.len() as u64,
            StoredPiece::Hole { .. } => 0,
        })
        .sum();
    assert!(memory <= crate::UNIT, "{memory} bytes of memory pinned");
    assert!(subfile.allocated().unwrap() <= 1 << 20);
    let around = (1 << 39) - 3..(1 << 39) + 9;
    same(&read(&*subfile, around), b"\0\0\0island\0\0\0", "island");
}

fn writes_are_read_back(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    let places = [
        0,
        1,
        4095,
        4096,
        65_535,
        65_536,
        1 << 20,
        (2 << 20) - 1,
        5 << 20,
    ];
    for (k, &at) in places.iter().enumerate() {
        for len in [1, 2, 4096, 4097, 70_000] {
            let bytes = pattern(at, len, k as u64);
            subfile.write_at(at, &bytes).unwrap();
            harness.evict();
            same(&read(&*subfile, at..at + len as u64), &bytes, "read back");
        }
    }
    assert_eq!(subfile.len(), (5 << 20) + 70_000);
    // Empty accesses are no accesses.
    subfile.write_at(1 << 30, &[]).unwrap();
    subfile.read_at(1 << 30, &mut []).unwrap();
    assert_eq!(subfile.len(), (5 << 20) + 70_000);
}

fn regrown_bytes_are_zero(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    for cut in [0, 1, 4095, 4096, 5000, 65_536, 100_000, 299_999] {
        subfile.write_at(0, &pattern(0, 300_000, cut)).unwrap();
        if cut % 2 == 0 {
            subfile.sync().unwrap();
            harness.evict();
        }
        subfile.truncate(cut).unwrap();
        assert_eq!(subfile.len(), cut);
        subfile.write_at(400_000, b"end").unwrap();
        harness.evict();
        let mut expected = pattern(0, 300_000, cut);
        expected.truncate(cut as usize);
        expected.resize(400_000, 0);
        same(&read(&*subfile, 0..400_000), &expected, "regrown");
    }
}

fn punched_bytes_are_zero(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    let len = 5 << 20;
    let mut expected = pattern(0, len, 1);
    subfile.write_at(0, &expected).unwrap();
    subfile.sync().unwrap();
    let before = subfile.allocated().unwrap();
    let holes = [
        0..1,
        100..4096,
        8000..8200,
        70_000..200_000,
        (1 << 20)..(1 << 20) + 4096,
        (2 << 20)..(4 << 20) + 5,
        len as u64 - 10..len as u64 + 10,
    ];
    for hole in holes {
        harness.evict();
        subfile.punch(hole.clone()).unwrap();
        let to = (hole.end as usize).min(len);
        expected[hole.start as usize..to].fill(0);
    }
    same(&read(&*subfile, 0..len as u64), &expected, "punched");
    assert_eq!(subfile.len(), len as u64);
    subfile.sync().unwrap();
    harness.evict();
    same(&read(&*subfile, 0..len as u64), &expected, "after sync");
    harness.restart();
    if let Ok(subfile) = harness.store().open(identity(1).id) {
        same(&read(&*subfile, 0..len as u64), &expected, "after restart");
    }
    drop(subfile);
    let subfile = harness.store().open(identity(1).id).unwrap();
    let part = subfile.allocated().unwrap();
    assert!(
        part < before * 3 / 4 || !harness.frees(),
        "{part} bytes of {before} after punching"
    );
    subfile.truncate(0).unwrap();
    subfile.sync().unwrap();
    let rest = subfile.allocated().unwrap();
    assert!(
        rest < before / 20 || !harness.frees(),
        "{rest} bytes of {before} left"
    );
}

fn preallocation(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    subfile.write_at(10, b"abc").unwrap();
    subfile.preallocate(0..1 << 20).unwrap();
    assert_eq!(subfile.len(), 1 << 20);
    assert!(subfile.allocated().unwrap() >= 1 << 20 || harness.store().capabilities().durable);
    let mut expected = vec![0; 1 << 20];
    expected[10..13].copy_from_slice(b"abc");
    same(&read(&*subfile, 0..1 << 20), &expected, "preallocated");
    subfile.preallocate(0..100).unwrap();
    assert_eq!(subfile.len(), 1 << 20, "preallocation never shrinks");
}

fn grants_commit_or_vanish(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    subfile.write_at(0, &pattern(0, 50_000, 0)).unwrap();
    subfile.sync().unwrap();
    harness.evict();
    // Several ranges in one grant, committed together.
    let mut grant = Grant::new();
    subfile.grant(100..200, &mut grant).unwrap();
    subfile.grant(40_000..60_000, &mut grant).unwrap();
    assert_eq!(grant.len(), 20_100);
    assert_eq!(subfile.len(), 50_000, "nothing is written before commit");
    grant.copy_from(&pattern(9, 20_100, 3));
    grant.commit().unwrap();
    let bytes = pattern(9, 20_100, 3);
    same(&read(&*subfile, 100..200), &bytes[..100], "first range");
    same(&read(&*subfile, 40_000..60_000), &bytes[100..], "second");
    assert_eq!(subfile.len(), 60_000);
    // One that is dropped changes no length and nothing around it.
    subfile.sync().unwrap();
    subfile.grant(30_000..90_000, &mut grant).unwrap();
    grant.abandon();
    assert_eq!(subfile.len(), 60_000);
    same(
        &read(&*subfile, 0..100),
        &pattern(0, 100, 0),
        "before the abandoned range",
    );
    subfile.write_at(100_000, b"z").unwrap();
    same(
        &read(&*subfile, 60_000..100_000),
        &[0; 40_000],
        "behind the length",
    );
}

fn grants_apart(harness: &mut dyn Harness) {
    // Memory that was used before.
    let old = harness.store().create(&identity(1)).unwrap();
    old.write_at(0, &pattern(7, 6 << 20, 7)).unwrap();
    old.truncate(0).unwrap();
    let subfile = harness.store().create(&identity(2)).unwrap();
    let zeros = |range: Range<u64>, what: &str| {
        let len = (range.end - range.start) as usize;
        same(&read(&*subfile, range), &vec![0; len], what);
    };
    let mut grant = Grant::new();
    subfile.grant_apart(70_000..3_000_000, &mut grant).unwrap();
    assert_eq!(grant.len(), 2_930_000);
    zeros(0..4 << 20, "granted only");
    grant.abandon();
    zeros(0..4 << 20, "abandoned");
    subfile.grant_apart(70_000..3_000_000, &mut grant).unwrap();
    let bytes = pattern(3, 2_930_000, 1);
    grant.copy_from(&bytes);
    grant.commit().unwrap();
    zeros(0..70_000, "before what was stored");
    same(&read(&*subfile, 70_000..3_000_000), &bytes, "stored");
    assert_eq!(subfile.len(), 3_000_000);
    subfile.write_at(6 << 20, b"z").unwrap();
    zeros(3_000_000..6 << 20, "behind what was stored");
    // Extents that were there before and some that another thread makes meanwhile.
    let bytes = pattern(5, 3 << 20, 2);
    subfile.grant_apart(2 << 20..5 << 20, &mut grant).unwrap();
    subfile.write_at(5 << 20, b"beside").unwrap();
    subfile.write_at((4 << 20) - 9, b"overlaps").unwrap();
    grant.copy_from(&bytes);
    grant.commit().unwrap();
    same(&read(&*subfile, 2 << 20..5 << 20), &bytes, "over others");
    same(&read(&*subfile, 5 << 20..(5 << 20) + 6), b"beside", "kept");
    same(
        &read(&*subfile, 70_000..2 << 20),
        &pattern(3, 2_930_000, 1)[..(2 << 20) - 70_000],
        "before",
    );
    // What a truncation overtakes does not count.
    subfile.grant_apart(8 << 20..9 << 20, &mut grant).unwrap();
    grant.copy_from(&pattern(1, 1 << 20, 1));
    subfile.truncate(100).unwrap();
    let refused = grant.commit().unwrap_err();
    assert!(matches!(refused, Error::Stale), "{refused}");
    assert_eq!(subfile.len(), 100);
}

fn released_space_is_free(harness: &mut dyn Harness) {
    // A whole number of extents, whatever their size.
    const SIZE: u64 = 2 << 20;
    let subfile = harness.store().create(&identity(1)).unwrap();
    let bytes = pattern(4, SIZE as usize, 4);
    subfile.write_at(0, &bytes).unwrap();
    subfile.sync().unwrap();
    let before = subfile.allocated().unwrap();
    subfile.release(0..SIZE - 1).unwrap();
    assert_eq!(subfile.len(), SIZE);
    let last = &bytes[SIZE as usize - 1..];
    same(&read(&*subfile, SIZE - 1..SIZE), last, "behind it");
    subfile.release(0..SIZE).unwrap();
    let is_in_memory = !harness.store().capabilities().durable;
    let after = subfile.allocated().unwrap();
    assert!(after < before || !is_in_memory, "nothing was freed");
    let zeros = vec![0; SIZE as usize];
    same(&read(&*subfile, 0..SIZE), &zeros, "no extent is left");
}

fn overtaken_grants(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    let mut grant = Grant::new();
    subfile.grant(0..1 << 20, &mut grant).unwrap();
    grant.copy_from(&pattern(0, 1 << 20, 0));
    subfile.truncate(0).unwrap();
    let refused = grant.commit().unwrap_err();
    assert!(matches!(refused, Error::Stale), "{refused}");
    assert_eq!(refused.advice(), Advice::Now);
    assert_eq!(subfile.len(), 0);
    subfile.write_at(1 << 20, b"x").unwrap();
    same(&read(&*subfile, 0..1 << 20), &vec![0; 1 << 20], "zeros");
}

fn pins_outlive_truncation(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    let bytes = pattern(0, 1 << 20, 5);
    subfile.write_at(0, &bytes).unwrap();
    let mut pins = Pins::new();
    subfile.pin(0..1 << 20, &mut pins).unwrap();
    subfile.truncate(0).unwrap();
    // Space of the truncated bytes must not be given to others while it is pinned.
    let other = harness.store().create(&identity(2)).unwrap();
    other.write_at(0, &pattern(0, 3 << 20, 6)).unwrap();
    let mut old = vec![0; 1 << 20];
    pins.copy_to(&mut old);
    same(&old, &bytes, "pinned bytes");
}

fn wrong_ranges(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    let beyond = u64::MAX - 3;
    let argument = |e: Error| assert!(matches!(e, Error::Argument { .. }), "{e}");
    argument(subfile.read_at(beyond, &mut [0; 8]).unwrap_err());
    argument(subfile.write_at(beyond, &[0; 8]).unwrap_err());
    argument(subfile.truncate(u64::MAX).unwrap_err());
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = 5..3;
    argument(subfile.punch(reversed).unwrap_err());
    argument(subfile.set_note(&[0; crate::NOTE_BYTES + 1]).unwrap_err());
    assert_eq!(subfile.len(), 0);
    // The last byte of the space of offsets can be asked for.
    let last = crate::MAX_LEN - 1;
    same(&read(&*subfile, last..last + 1), &[0], "far away");
}

fn domain_and_note_change(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    let bytes = pattern(0, 300_000, 2);
    subfile.write_at(0, &bytes).unwrap();
    let domain = Domain {
        owner: 5,
        ..Domain::default()
    };
    subfile.set_domain(domain).unwrap();
    subfile.set_note(b"where it belongs").unwrap();
    same(&read(&*subfile, 0..300_000), &bytes, "moved");
    assert_eq!(subfile.identity().domain, domain);
    subfile.sync().unwrap();
    drop(subfile);
    harness.restart();
    if harness.store().capabilities().durable {
        let found = harness.store().list().unwrap();
        assert_eq!(found[0].domain, domain);
        assert_eq!(found[0].note, b"where it belongs");
        let subfile = harness.store().open(identity(1).id).unwrap();
        same(&read(&*subfile, 0..300_000), &bytes, "after restart");
    }
}

fn located_memory(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    let bytes = pattern(0, 200_000, 4);
    subfile.write_at(0, &bytes).unwrap();
    let mut pins = Pins::new();
    let locations = subfile.locate(0..200_000, &mut pins).unwrap();
    let mut at = 0;
    for location in &locations {
        assert_eq!(location.offset, at);
        // Read the segment as another process would: through a descriptor of its own.
        let file = std::fs::File::from(location.descriptor(false).unwrap());
        let mut found = vec![0; location.len as usize];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, location.segment_offset)
            .unwrap();
        same(
            &found,
            &bytes[at as usize..(at + location.len) as usize],
            "through a descriptor",
        );
        let refused = std::os::unix::fs::FileExt::write_at(&file, b"x", location.segment_offset);
        assert!(refused.is_err(), "the descriptor is for reading only");
        at += location.len;
    }
    assert_eq!(at, 200_000);
    // And write it so.
    let file = std::fs::File::from(locations[0].descriptor(true).unwrap());
    std::os::unix::fs::FileExt::write_all_at(&file, b"direct", locations[0].segment_offset)
        .unwrap();
    subfile.mark_written(0..6).unwrap();
    subfile.sync().unwrap();
    pins.clear();
    harness.evict();
    same(
        &read(&*subfile, 0..6),
        b"direct",
        "written through a mapping",
    );
    assert!(file.set_len(0).is_err(), "segments are sealed");
}

/// A client that has mapped extents stores into them after they were taken from it.
fn late_stores(harness: &mut dyn Harness) {
    let store = harness.store();
    let subfile = store.create(&identity(1)).unwrap();
    let bytes = pattern(0, 3_000_000, 8);
    subfile.write_at(0, &bytes).unwrap();
    let mapped = subfile.extents(0..3_000_000, 100, 1).unwrap();
    assert!(!mapped.is_empty());
    assert_eq!(subfile.extents(0..3_000_000, 1, 1).unwrap().len(), 1);
    let store_late = || {
        for location in &mapped {
            let file = std::fs::File::from(location.descriptor(true).unwrap());
            let late = vec![0xee; location.len as usize];
            std::os::unix::fs::FileExt::write_all_at(&file, &late, location.segment_offset)
                .unwrap();
        }
    };
    let used = store.usage().memory_bytes;
    let mut aside = Aside::new();
    subfile.unmap(2);
    // What begins behind the second MiB is not kept, and goes with the truncation.
    subfile
        .set_aside(0..3_000_000, 2 << 20, &mut aside)
        .unwrap();
    let kept = mapped.iter().map(|l| l.len).sum::<u64>();
    assert!(aside.bytes() >= kept);
    assert!(
        store.usage().memory_bytes <= used,
        "what is aside takes no memory"
    );
    store_late();
    subfile.truncate(2 << 20).unwrap();
    same(
        &read(&*subfile, 0..2 << 20),
        &bytes[..2 << 20],
        "what was kept",
    );
    // Grown again and written by others, the place is not theirs before the end of it.
    subfile.write_at(0, &bytes).unwrap();
    let second = store.create(&identity(2)).unwrap();
    second.write_at(0, &bytes).unwrap();
    store_late();
    same(&read(&*subfile, 0..3_000_000), &bytes, "written again");
    same(&read(&*second, 0..3_000_000), &bytes, "another subfile");
    aside.give_back();
    drop(aside);
    let third = store.create(&identity(3)).unwrap();
    third.preallocate(0..3_000_000).unwrap();
    let zeros = vec![0; 3_000_000];
    same(
        &read(&*third, 0..3_000_000),
        &zeros,
        "memory that is used again",
    );
}

/// A client that has mapped extents stores into them, beside writes that are committed and given up.
fn stored_by_others(harness: &mut dyn Harness) {
    let store = harness.store();
    let subfile = store.create(&identity(1)).unwrap();
    let bytes = pattern(0, 200_000, 8);
    subfile.write_at(0, &bytes).unwrap();
    subfile.sync().unwrap();
    harness.evict();
    subfile.reserve(0..300_000).unwrap();
    assert_eq!(subfile.len(), 200_000, "space alone is no length");
    same(&read(&*subfile, 0..200_000), &bytes, "nothing is lost");
    let mapped = subfile.extents(0..300_000, 100, 5).unwrap();
    let end = mapped.last().map_or(0, |l| l.offset + l.len);
    assert!(end >= 310_000, "all of it is in memory");
    assert!(mapped.iter().all(|l| subfile.let_store(l.offset, 5)));
    let store_at = |at: u64, data: &[u8]| {
        let holds = |l: &&Location| l.offset <= at && at + data.len() as u64 <= l.offset + l.len;
        let location = mapped.iter().find(holds).expect("in one extent");
        let file = std::fs::File::from(location.descriptor(true).unwrap());
        let at = location.segment_offset + at - location.offset;
        std::os::unix::fs::FileExt::write_all_at(&file, data, at).unwrap();
    };
    store_at(10, b"direct");
    store_at(305_000, b"far out");
    // A write over both that is given up leaves what was stored, since nothing was copied yet.
    let mut grant = Grant::new();
    subfile.grant(0..310_000, &mut grant).unwrap();
    drop(grant);
    same(
        &read(&*subfile, 10..16),
        b"direct",
        "after a write that was given up",
    );
    subfile.write_at(100, b"by message").unwrap();
    subfile.stored_to(305_007).unwrap();
    subfile.stored_to(10).unwrap();
    for location in &mapped {
        let range = location.offset..location.offset + location.len;
        subfile.mark_written(range).unwrap();
    }
    assert_eq!(subfile.len(), 305_007, "as far as a client has stored");
    subfile.sync().unwrap();
    subfile.unmap(6);
    harness.evict();
    let mut expected = bytes;
    expected[10..16].copy_from_slice(b"direct");
    expected[100..110].copy_from_slice(b"by message");
    expected.resize(305_000, 0);
    expected.extend(b"far out");
    same(
        &read(&*subfile, 0..305_007),
        &expected,
        "from memory or disk",
    );
    assert!(subfile.scrub().unwrap().damaged.is_empty());
}

fn synced_bytes_survive(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    let bytes = pattern(0, 3_000_000, 8);
    subfile.write_at(0, &bytes).unwrap();
    subfile.sync().unwrap();
    drop(subfile);
    for round in 0..3 {
        harness.restart();
        let subfile = harness.store().open(identity(1).id).unwrap();
        assert_eq!(subfile.len(), 3_000_000, "round {round}");
        same(&read(&*subfile, 0..3_000_000), &bytes, "after restart");
    }
}

fn flushed_bytes_survive(harness: &mut dyn Harness) {
    let mut expected = Vec::new();
    harness.store().create(&identity(1)).unwrap();
    for round in 0..6u64 {
        let subfile = harness.store().open(identity(1).id).unwrap();
        let at = round * 3000;
        let bytes = pattern(at, 9000, round);
        subfile.write_at(at, &bytes).unwrap();
        if round == 3 {
            subfile.sync().unwrap();
        }
        subfile.flush().unwrap();
        expected.resize(at as usize + 9000, 0);
        expected[at as usize..].copy_from_slice(&bytes);
        drop(subfile);
        harness.restart();
        let subfile = harness.store().open(identity(1).id).unwrap();
        same(
            &read(&*subfile, 0..subfile.len()),
            &expected,
            "flushed, then killed",
        );
    }
}

fn scrub_reads_all(harness: &mut dyn Harness) {
    let subfile = harness.store().create(&identity(1)).unwrap();
    subfile.write_at(0, &pattern(0, 10 * 4096, 1)).unwrap();
    subfile.write_at(7 << 20, b"far").unwrap();
    subfile.sync().unwrap();
    let found = subfile.scrub().unwrap();
    assert_eq!((found.blocks, found.damaged), (11, vec![]));
}

/// Four writers own every fourth stripe of one subfile, and stripes share blocks and extents;
/// meanwhile everything is written back, synced and evicted.
fn threads_do_not_disturb(harness: &mut dyn Harness) {
    const STRIPE: u64 = 1000;
    let store = harness.store();
    store.create(&identity(1)).unwrap();
    let (done, writers_done) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for me in 0..4u64 {
            let done = done.clone();
            scope.spawn(move || {
                let subfile = store.open(identity(1).id).unwrap();
                let stripes = || (0..300u64).map(|k| (k * 4 + me) * STRIPE);
                for round in 0..3 {
                    for at in stripes() {
                        let bytes = pattern(at, STRIPE as usize, me * 10 + round);
                        repeat(|| subfile.write_at(at, &bytes));
                    }
                    for at in stripes() {
                        let mut found = vec![0; STRIPE as usize];
                        repeat(|| subfile.read_at(at, &mut found));
                        let expected = pattern(at, STRIPE as usize, me * 10 + round);
                        same(&found, &expected, "own stripe");
                    }
                }
                done.send(()).unwrap();
            });
        }
        drop(done);
        let subfile = store.open(identity(1).id).unwrap();
        while writers_done.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
            store.write_back(50_000).unwrap();
            harness.evict();
            subfile.sync().unwrap();
        }
    });
}

/// Does what a server does when memory is short: waits for others and tries again.
fn repeat(mut access: impl FnMut() -> crate::Result<()>) {
    loop {
        match access() {
            Err(e) if e.advice() != Advice::Never => std::thread::yield_now(),
            done => return done.unwrap(),
        }
    }
}

/// One subfile and its model.
struct Pair {
    subfile: Arc<dyn Subfile>,
    model: Vec<u8>,
}

fn random_operations(harness: &mut dyn Harness) {
    for seed in 1..=12 {
        let mut random = Random::new(seed);
        let mut pairs: Vec<Pair> = Vec::new();
        let base = seed * 10;
        for k in 0..3 {
            pairs.push(Pair {
                subfile: harness.store().create(&identity(base + k)).unwrap(),
                model: Vec::new(),
            });
        }
        for step in 0..120 {
            let k = random.index(pairs.len());
            random_step(harness, &mut pairs, k, base, &mut random);
            let pair = &pairs[k];
            let len = pair.model.len();
            assert_eq!(pair.subfile.len(), len as u64, "seed {seed} step {step}");
            let from = random.index(len + 1);
            let to = (from + random.index(100_000)).min(len);
            let found = read(&*pair.subfile, from as u64..to as u64);
            same(
                &found,
                &pair.model[from..to],
                &format!("seed {seed} step {step} from {from}"),
            );
        }
        if harness.kill() {
            reopen(harness, &mut pairs, base);
        }
        for (k, pair) in pairs.iter().enumerate() {
            let found = read(&*pair.subfile, 0..pair.model.len() as u64);
            assert_eq!(pair.subfile.len(), pair.model.len() as u64);
            same(&found, &pair.model, &format!("seed {seed} subfile {k}"));
        }
        drop(pairs);
        for k in 0..3 {
            harness.store().remove(identity(base + k).id).unwrap();
        }
    }
}

fn random_step(
    harness: &mut dyn Harness,
    pairs: &mut [Pair],
    k: usize,
    base: u64,
    random: &mut Random,
) {
    let pair = &mut pairs[k];
    let place = random.index(600_000);
    let len = match random.index(3) {
        0 => random.index(100),
        1 => random.index(10_000),
        _ => random.index(200_000),
    };
    match random.index(17) {
        0..=5 => {
            let bytes = pattern(place as u64, len, random.draw() % 1000);
            pair.subfile.write_at(place as u64, &bytes).unwrap();
            if len > 0 {
                pair.model.resize(pair.model.len().max(place + len), 0);
                pair.model[place..place + len].copy_from_slice(&bytes);
            }
        }
        6 | 7 => {
            pair.subfile
                .punch(place as u64..(place + len) as u64)
                .unwrap();
            let end = (place + len).min(pair.model.len());
            if place < end {
                pair.model[place..end].fill(0);
            }
        }
        8 | 9 => {
            pair.subfile.truncate(place as u64).unwrap();
            pair.model.resize(place, 0);
        }
        10 => {
            pair.subfile
                .preallocate(place as u64..(place + len) as u64)
                .unwrap();
            pair.model.resize(pair.model.len().max(place + len), 0);
        }
        11 => pair.subfile.sync().unwrap(),
        12 => {
            harness.store().write_back(100_000).unwrap();
        }
        13 => harness.evict(),
        14 => {
            let mut grant = Grant::new();
            let range = place as u64..(place + len) as u64;
            pair.subfile.grant(range, &mut grant).unwrap();
        }
        15 => {
            if harness.kill() {
                reopen(harness, pairs, base);
            }
        }
        _ => {
            if harness.store().capabilities().durable {
                for (n, pair) in pairs.iter().enumerate() {
                    if n % 2 == 0 {
                        pair.subfile.sync().unwrap();
                    } else {
                        pair.subfile.flush().unwrap();
                    }
                }
                harness.restart();
                reopen(harness, pairs, base);
            }
        }
    }
}

/// Handles of the process that lives now.
fn reopen(harness: &dyn Harness, pairs: &mut [Pair], base: u64) {
    for (n, pair) in pairs.iter_mut().enumerate() {
        let id = identity(base + n as u64).id;
        pair.subfile = harness.store().open(id).unwrap();
    }
}
