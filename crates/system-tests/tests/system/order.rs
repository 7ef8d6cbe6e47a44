//! What the bytes of overlapping accesses are: a client's own operations are in the order of its program, and in
//! atomic mode others see a write as a whole or not at all, on however many servers it lies.
//!
//! Real processes, directly and by message; what the locks do among themselves is tested at the owner.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use client::MoveOptions;
use system_tests::{Random, ServiceOptions, pattern_byte};

use crate::{create, open};

const LEN: usize = 120_000;
const LAYOUTS: [&str; 4] = [
    "striped(4KiB) over 3",
    "striped(1000) over 3 from 1",
    "striped(64KiB) over 2",
    "striped(17) over 3",
];

/// Ends whoever looks at it, however a test ends: one that fails does not wait for others for ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One client that writes and reads through two handles while another moves its file from layout to layout: every
/// read shows the client's own last writes, byte for byte.
#[test]
fn seed001_s74a_a_client_reads_its_own_writes_also_while_its_file_is_remapped() {
    for direct in [true, false] {
        let service = ServiceOptions::new(3).direct(direct).start();
        let client = service.client();
        let handles = [create(&client, "/f", None, LAYOUTS[0]), open(&client, "/f")];
        let mut random = Random::of_run(74 + u64::from(direct));
        let mut model = vec![0u8; LEN];
        handles[0].resize(LEN as u64).unwrap();
        let (is_over, moved) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let other = service.client();
            let (is_over, moved) = (&is_over, &moved);
            scope.spawn(move || {
                // Small windows, so that every moment has bytes in both layouts.
                let windows = MoveOptions {
                    window_bytes: 8192,
                    ..MoveOptions::default()
                };
                for layout in LAYOUTS.iter().cycle().skip(1) {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let moving = other.relayout_with("/f", layout, &windows).unwrap();
                    moving.wait().unwrap();
                    moved.fetch_add(1, Ordering::Relaxed);
                }
            });
            let _over = Over(is_over);
            let mut step = 0u64;
            // At least so many steps, and so many moves beside them.
            while step < 400 || moved.load(Ordering::Relaxed) < 8 {
                step += 1;
                let handle = &handles[random.index(2)];
                let at = random.index(LEN);
                let len = 1 + random.index((LEN - at).min(40_000));
                if random.below(2) == 0 {
                    let bytes = random.bytes(len);
                    assert_eq!(handle.write_at(at as u64, &bytes).unwrap(), len);
                    model[at..at + len].copy_from_slice(&bytes);
                    // The operation right behind it, too.
                    let mut back = vec![0; len];
                    assert_eq!(handle.read_at(at as u64, &mut back).unwrap(), len);
                    assert!(back == bytes, "step {step}: not its own write at {at}");
                } else {
                    let mut found = vec![0; len];
                    assert_eq!(handle.read_at(at as u64, &mut found).unwrap(), len);
                    let odd = (0..len).find(|&x| found[x] != model[at + x]);
                    assert_eq!(odd, None, "step {step}: {len} bytes at {at}");
                }
            }
        });
        assert!(moved.load(Ordering::Relaxed) >= 8);
    }
}

/// The tag that all bytes have; several if a read has seen parts of writes.
fn tags(bytes: &[u8], most: u64) -> BTreeSet<u64> {
    let all = (0..=most).filter(|&tag| bytes.iter().enumerate().all(|(x, b)| *b == stamp(tag, x)));
    all.collect()
}

/// What a write of a tag has at a place; all tags differ at every place.
fn stamp(tag: u64, x: usize) -> u8 {
    pattern_byte(0, x as u64).wrapping_add(tag as u8)
}

/// Writers and readers in atomic mode, each over the same bytes on three servers, directly and by message.
#[test]
fn seed001_s74_readers_in_atomic_mode_see_whole_writes_of_real_servers() {
    for direct in [true, false] {
        atomic_readers_see_whole_writes(direct);
    }
}

fn atomic_readers_see_whole_writes(direct: bool) {
    const WRITERS: u64 = 3;
    /// So many that accesses without locks are caught in the middle of each other.
    const ROUNDS: u64 = 150;
    let service = ServiceOptions::new(3).direct(direct).start();
    let client = service.client();
    let first = create(&client, "/f", None, "striped(4KiB) over 3");
    let whole = |tag: u64| (0..LEN).map(|x| stamp(tag, x)).collect::<Vec<u8>>();
    first.write_at(0, &whole(0)).unwrap();
    let atomic = || {
        let client = service.client();
        let file = open(&client, "/f");
        file.set_atomic(true).unwrap();
        (client, file)
    };
    let left = AtomicU64::new(WRITERS);
    let seen = std::thread::scope(|scope| {
        for k in 0..WRITERS {
            let (atomic, left) = (&atomic, &left);
            scope.spawn(move || {
                let (_client, file) = atomic();
                for round in 0..ROUNDS {
                    file.write_at(0, &whole(1 + k + WRITERS * (round % 20)))
                        .unwrap();
                }
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (atomic, left) = (&atomic, &left);
                scope.spawn(move || {
                    let (_client, file) = atomic();
                    let mut seen = BTreeSet::new();
                    while left.load(Ordering::Relaxed) > 0 {
                        let mut bytes = vec![0; LEN];
                        assert_eq!(file.read_at(0, &mut bytes).unwrap(), LEN);
                        let found = tags(&bytes, WRITERS * 20);
                        assert_eq!(
                            found.len(),
                            1,
                            "a read has seen parts of writes, direct {direct}"
                        );
                        seen.extend(found);
                    }
                    seen.len()
                })
            })
            .collect();
        readers.into_iter().map(|r| r.join().unwrap()).max()
    });
    assert!(seen > Some(2), "readers saw writes come and go: {seen:?}");
    // Nothing of this is a matter of luck with one server: the bytes lie on all three.
    assert_eq!(first.layout().pieces[0].places.len(), 3);
}
