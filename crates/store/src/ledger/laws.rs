//! The laws of the ledger: what was written is found by an adopter, a batch is whole or absent, and what is not
//! exactly right is refused.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use random::Random;

use super::format::{AREA_AT, Word};
use super::twin::{KeeperTwin, copy_memory};
use super::{Batch, KEPT, LEDGER_NAME, Ledger, MAX_KEY, MAX_VALUE, SLACK};
use crate::error::Error;

const STAMP: &[u8] = b"boot 1, server 7";

type Map = BTreeMap<(u8, Vec<u8>), Vec<u8>>;

/// A ledger with its keeper and a model of what it holds.
struct Book {
    twin: KeeperTwin,
    ledger: Ledger,
    model: Map,
}

impl Book {
    fn new() -> Book {
        let twin = KeeperTwin::new();
        let ledger = Ledger::new(twin.keeping(), STAMP).unwrap();
        Book {
            twin,
            ledger,
            model: Map::new(),
        }
    }

    /// A few random changes of few entries, in one batch.
    fn change(&mut self, random: &mut Random) {
        let mut batch = Batch::new();
        for _ in 0..1 + random.index(6) {
            let kind = 1 + random.index(3) as u8;
            let key = vec![random.index(40) as u8; random.index(MAX_KEY + 1)];
            if random.index(3) == 0 {
                batch.remove(kind, &key);
                self.model.remove(&(kind, key));
            } else {
                let len = match random.index(20) {
                    0 => random.index(3000),
                    _ => random.index(40),
                };
                let value = random.bytes(len);
                batch.set(kind, &key, &value);
                self.model.insert((kind, key), value);
            }
        }
        self.ledger.write(&batch);
    }
}

fn map_of(ledger: &Ledger) -> Map {
    let kinds = 1..=u8::MAX;
    let entries = kinds.flat_map(|kind| {
        let entries = ledger.entries(kind);
        entries
            .into_iter()
            .map(move |(key, value)| ((kind, key), value))
    });
    entries.collect()
}

fn adopt(descriptor: OwnedFd) -> crate::Result<Ledger> {
    Ledger::adopt(descriptor, KeeperTwin::new().keeping(), STAMP)
}

/// Why it is not adopted.
#[track_caller]
fn refusal(descriptor: OwnedFd) -> String {
    match adopt(descriptor) {
        Err(Error::Format { name, why }) if name == LEDGER_NAME => why,
        other => panic!("{other:?}"),
    }
}

/// A copy of the memory, with some bytes changed.
fn copy_with(ledger: &OwnedFd, at: u64, change: impl FnOnce(&mut [u8]), len: usize) -> OwnedFd {
    let copy = copy_memory(ledger.as_fd()).unwrap();
    let mut bytes = vec![0; len];
    assert_eq!(rustix::io::pread(&copy, &mut bytes, at).unwrap(), len);
    change(&mut bytes);
    assert_eq!(rustix::io::pwrite(&copy, &bytes, at).unwrap(), len);
    copy
}

#[test]
fn what_was_written_is_adopted() {
    for seed in 1..=20 {
        let mut random = Random::new(seed);
        let mut book = Book::new();
        let life = book.ledger.life();
        for _ in 0..5 {
            for _ in 0..60 {
                book.change(&mut random);
            }
            assert_eq!(map_of(&book.ledger), book.model, "seed {seed}");
            // The copy goes on as the original would.
            book.twin = book.twin.copy();
            let adopted = Ledger::adopt(book.twin.ledger(), book.twin.keeping(), STAMP).unwrap();
            assert_eq!(map_of(&adopted), book.model, "seed {seed}");
            let (old, new) = (&book.ledger.shared.journal, &adopted.shared.journal);
            assert_eq!(old.lock().mirror, new.lock().mirror, "the same places");
            assert_eq!(adopted.life(), life);
            book.ledger = adopted;
        }
        for ((kind, key), value) in &book.model {
            assert_eq!(book.ledger.get(*kind, key).as_ref(), Some(value));
        }
    }
}

#[test]
fn a_batch_that_a_kill_cut_short_is_left_out_as_a_whole() {
    let mut random = Random::new(5);
    let mut book = Book::new();
    (0..20).for_each(|_| book.change(&mut random));
    let before = book.twin.copy().ledger();
    let expected = map_of(&book.ledger);
    let from = book.ledger.shared.journal.lock().head;
    (0..3).for_each(|_| book.change(&mut random));
    assert_ne!(map_of(&book.ledger), expected);
    let to = book.ledger.shared.journal.lock().head;
    // What a process writes that dies at each byte before it raises the head.
    let mut written = vec![0; (to - from) as usize];
    rustix::io::pread(book.twin.ledger(), &mut written, AREA_AT + from).unwrap();
    for cut in 0..=written.len() {
        let copy = copy_memory(before.as_fd()).unwrap();
        rustix::io::pwrite(&copy, &written[..cut], AREA_AT + from).unwrap();
        let adopted = adopt(copy).unwrap();
        assert_eq!(map_of(&adopted), expected, "cut after {cut} bytes");
        // And what is written then is whole again.
        let mut batch = Batch::new();
        batch.set(9, b"behind", b"it");
        adopted.write(&batch);
        let again = copy_memory(adopted.shared.journal.lock().memory.descriptor()).unwrap();
        assert_eq!(adopt(again).unwrap().get(9, b"behind").unwrap(), b"it");
    }
    // A head that was raised over a batch that is not whole is damage, whatever is missing.
    let whole = book.twin.ledger();
    for cut in 0..written.len() {
        if written[cut..].iter().all(|&byte| byte == 0) {
            continue;
        }
        let rest = written.len() - cut;
        let copy = copy_with(&whole, AREA_AT + from + cut as u64, |b| b.fill(0), rest);
        refusal(copy);
    }
}

#[test]
fn any_flipped_bit_is_refused() {
    let mut random = Random::new(6);
    let mut book = Book::new();
    let mut batch = Batch::new();
    for i in 0..12u8 {
        batch.clear();
        batch.set(1 + i % 3, &[i; 5], &random.bytes(usize::from(i)));
        book.ledger.write(&batch);
    }
    book.ledger.shared.journal.lock().compact();
    batch.clear();
    batch.set(1, b"last", b"one");
    batch.remove(2, &[1; 5]);
    book.ledger.write(&batch);
    book.model = map_of(&book.ledger);
    let (area, head) = {
        let journal = book.ledger.shared.journal.lock();
        assert_eq!(journal.area, 1);
        (journal.base(1), journal.head)
    };
    let whole = book.twin.ledger();
    let header = (0..2056).chain(Word::Head(1).at()..Word::Head(1).at() + 8);
    let mut count = 0;
    for at in header.chain(area..area + head) {
        for bit in 0..8 {
            // In place, and back: adoption alone changes nothing.
            let mut byte = [0];
            rustix::io::pread(&whole, &mut byte, at).unwrap();
            rustix::io::pwrite(&whole, &[byte[0] ^ 1 << bit], at).unwrap();
            refusal(whole.try_clone().unwrap());
            rustix::io::pwrite(&whole, &byte, at).unwrap();
            count += 1;
        }
    }
    assert_eq!(count, 8 * (2056 + 8 + head));
    assert_eq!(map_of(&adopt(book.twin.ledger()).unwrap()), book.model);
    // What does not count may be anything: the head of the other area, and what lies behind the head of this one.
    for at in [Word::Head(0).at(), area + head, area + head + 9, AREA_AT] {
        let copy = copy_with(&whole, at, |bytes| bytes[0] ^= 1, 1);
        assert_eq!(map_of(&adopt(copy).unwrap()), book.model, "at {at}");
    }
}

#[test]
fn what_belongs_to_others_is_refused() {
    let mut book = Book::new();
    book.change(&mut Random::new(1));
    let of = |stamp: &[u8]| {
        let twin = book.twin.copy();
        Ledger::adopt(twin.ledger(), twin.keeping(), stamp)
    };
    assert!(of(STAMP).is_ok());
    for stamp in [
        &b"boot 2, server 7"[..],
        b"boot 1, server",
        b"",
        b"boot 1, server 77",
    ] {
        let refused = of(stamp).unwrap_err().to_string();
        assert!(refused.contains("another server"), "{refused}");
    }
    let whole = book.twin.ledger();
    let newer = copy_with(&whole, 8, |version| version[0] = 2, 2);
    assert_eq!(refusal(newer), "has version 2; this program reads 1");
    let other = copy_with(&whole, 0, |magic| magic[0] = b'X', 8);
    assert_eq!(refusal(other), "is no ledger");
    // A batch of another life, at the same place.
    let mut foreign = Book::new();
    foreign.change(&mut Random::new(1));
    assert_ne!(foreign.ledger.life(), book.ledger.life());
    let head = book.ledger.shared.journal.lock().head as usize;
    let mut batch = vec![0; head];
    rustix::io::pread(foreign.twin.ledger(), &mut batch, AREA_AT).unwrap();
    let mixed = copy_with(&whole, AREA_AT, |bytes| bytes.copy_from_slice(&batch), head);
    assert!(refusal(mixed).contains("checksum"));
    // Memory whose length could change under a mapping, and a file that is none.
    let open = rustix::fs::memfd_create(c"x", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&open, 1 << 20).unwrap();
    assert!(adopt(open).is_err());
    assert!(adopt(std::fs::File::open("/dev/null").unwrap().into()).is_err());
}

#[test]
fn compaction_changes_nothing_that_is_found() {
    let mut random = Random::new(8);
    let twin = KeeperTwin::new();
    let ledger = Ledger::with_area(twin.keeping(), STAMP, 32 << 20).unwrap();
    let mut book = Book {
        twin,
        ledger,
        model: Map::new(),
    };
    for round in 0..40 {
        book.change(&mut random);
        let expected = book.model.clone();
        let area = book.ledger.shared.journal.lock().area;
        // Every moment of a compaction: before, while the other area is written, and after.
        let before = book.twin.copy();
        {
            let mut journal = book.ledger.shared.journal.lock();
            let mirror = std::mem::take(&mut journal.mirror);
            let (head, _) = journal.copy_to(1 - area, &mirror).unwrap();
            journal.mirror = mirror;
            drop(journal);
            assert_eq!(map_of(&adopt(book.twin.copy().ledger()).unwrap()), expected);
            let mut journal = book.ledger.shared.journal.lock();
            journal.store(Word::Head(1 - area), head);
            drop(journal);
            assert_eq!(map_of(&adopt(book.twin.copy().ledger()).unwrap()), expected);
        }
        assert!(book.ledger.shared.journal.lock().compact());
        assert_eq!(book.ledger.shared.journal.lock().area, 1 - area);
        assert_eq!(map_of(&book.ledger), expected);
        for twin in [before, book.twin.copy()] {
            let adopted = adopt(twin.ledger()).unwrap();
            assert_eq!(map_of(&adopted), expected, "round {round}");
        }
    }
}

#[test]
fn a_journal_grows_to_a_few_times_its_map_only() {
    let twin = KeeperTwin::new();
    let ledger = Ledger::new(twin.keeping(), STAMP).unwrap();
    let memory = || rustix::fs::fstat(twin.ledger()).unwrap().st_blocks as u64 * 512;
    let mut batch = Batch::new();
    let mut most = 0;
    for i in 0..600_000u64 {
        batch.clear();
        batch.set(3, &(i % 1000).to_le_bytes(), &[i as u8; 40]);
        ledger.write(&batch);
        if i % 1000 == 0 {
            most = most.max(memory());
        }
    }
    assert!(ledger.compactions() > 4, "{}", ledger.compactions());
    let bound = 2 * KEPT + SLACK;
    assert!(most <= bound, "{most} of {bound}");
    assert_eq!(ledger.entries(3).len(), 1000);
    let adopted = adopt(twin.ledger()).unwrap();
    assert_eq!(map_of(&adopted), map_of(&ledger));
}

#[test]
fn a_ledger_without_room_is_void_and_nobody_adopts_it() {
    let twin = KeeperTwin::new();
    let ledger = Ledger::with_area(twin.keeping(), STAMP, 64 << 10).unwrap();
    let mut batch = Batch::new();
    // More changes than there is room, but of few entries: compaction makes the room.
    for i in 0..20_000u64 {
        batch.clear();
        batch.set(3, &(i % 10).to_le_bytes(), &[7; 100]);
        ledger.write(&batch);
    }
    assert!(!ledger.is_void() && ledger.compactions() > 10);
    assert_eq!(map_of(&adopt(twin.copy().ledger()).unwrap()).len(), 10);
    // Entries that do not fit together.
    let mut written = 0u64;
    while !ledger.is_void() {
        batch.clear();
        batch.set(4, &written.to_le_bytes(), &[8; 1000]);
        ledger.write(&batch);
        written += 1;
    }
    assert!((55..66).contains(&written), "{written}");
    assert!(refusal(twin.ledger()).contains("given up"));
    // Writing goes on, for nobody.
    ledger.write(&batch);
    // One batch alone that is larger than an area.
    let ledger = Ledger::with_area(twin.keeping(), STAMP, 64 << 10).unwrap();
    batch.clear();
    batch.set(5, b"long", &vec![1; MAX_VALUE]);
    ledger.write(&batch);
    assert!(ledger.is_void());
    assert!(refusal(twin.ledger()).contains("given up"));
}

#[test]
fn a_ledger_that_nobody_keeps_is_none() {
    let twin = KeeperTwin::new();
    twin.close();
    let refused = Ledger::new(twin.keeping(), STAMP).unwrap_err();
    assert!(refused.to_string().contains("keeper"), "{refused}");
    let long = [1; 2000];
    let refused = Ledger::new(KeeperTwin::new().keeping(), &long).unwrap_err();
    assert!(matches!(refused, Error::Argument { name: "stamp", .. }));
}

#[test]
fn threads_write_batches_that_stay_whole() {
    let twin = KeeperTwin::new();
    let ledger = Ledger::new(twin.keeping(), STAMP).unwrap();
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3u8)
            .map(|me| {
                let ledger = ledger.clone();
                scope.spawn(move || {
                    let mut batch = Batch::new();
                    for i in 0..20_000u64 {
                        batch.clear();
                        // Two entries that always have the same value.
                        batch.set(1, &[me, 0], &i.to_le_bytes());
                        batch.set(1, &[me, 1], &i.to_le_bytes());
                        ledger.write(&batch);
                    }
                })
            })
            .collect();
        let looking = Arc::clone(&done);
        let copies = scope.spawn(move || {
            let mut seen = 0;
            while !looking.load(std::sync::atomic::Ordering::SeqCst) || seen == 0 {
                // Copied while others write: the head is read after what lies before it, so it may be a little old.
                let fd = twin.ledger();
                let mut head = [0; 8];
                rustix::io::pread(&fd, &mut head, Word::Head(0).at()).unwrap();
                let copy = copy_memory(fd.as_fd()).unwrap();
                rustix::io::pwrite(&copy, &head, Word::Head(0).at()).unwrap();
                let adopted = adopt(copy).unwrap();
                for me in 0..3 {
                    assert_eq!(adopted.get(1, &[me, 0]), adopted.get(1, &[me, 1]));
                }
                seen += 1;
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        copies.join().unwrap();
    });
}
