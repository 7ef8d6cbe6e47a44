//! Laws of the pool: random programs against a plain list of what was handed out.
//!
//! They hold whatever the thread that tends the pool does meanwhile: it runs beside each program.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use super::*;

const MIB: u64 = 1 << 20;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

fn domain(number: u64) -> Domain {
    Domain {
        directory: number,
        ..Domain::default()
    }
}

fn options(limit_bytes: u64) -> PoolOptions {
    PoolOptions {
        limit_bytes,
        keep_warm_bytes: limit_bytes / 4,
        segment_bytes: 8 * MIB,
        segments: 32,
        least_reserve_bytes: limit_bytes / 8,
        most_reserve_bytes: limit_bytes / 2,
        pages: Pages::Small,
    }
}

fn is_zero(extent: &Extent, range: Range<u64>) -> bool {
    let mut bytes = vec![1; (range.end - range.start) as usize];
    extent.copy_out(range.start, &mut bytes);
    bytes.iter().all(|&byte| byte == 0)
}

/// Memory that all segments have by the kernel's count.
fn memory_of_segments(pool: &Pool) -> u64 {
    let state = pool.shared.lock();
    let blocks = |space: &SegmentSpace| {
        let stat = rustix::fs::fstat(space.segment.descriptor()).unwrap();
        stat.st_blocks as u64 * 512
    };
    state.segments.values().map(blocks).sum()
}

#[derive(Default)]
struct Model {
    held: Vec<Arc<Extent>>,
    domains: HashMap<u64, Domain>,
}

impl Model {
    fn check(&self, pool: &Pool) {
        let usage = pool.usage();
        let used = |aside: bool| -> u64 {
            let is_aside = |e: &&Arc<Extent>| e.is_aside.load(Ordering::SeqCst) == aside;
            self.held.iter().filter(is_aside).map(|e| e.len).sum()
        };
        assert_eq!(usage.used_bytes, used(false));
        assert_eq!(usage.aside_bytes, used(true));
        let all = usage.used_bytes + usage.warm_bytes + usage.ready_bytes;
        assert!(all <= usage.limit_bytes, "{usage:?}");
        assert!(usage.reserve_bytes <= usage.ready_bytes, "{usage:?}");
        assert_eq!(memory_of_segments(pool), all, "{usage:?}");
    }

    /// Nobody else has it, and its segment is of its domain alone.
    fn take(&mut self, extent: Arc<Extent>) {
        let range = |e: &Extent| e.at..e.at + e.len;
        for other in &self.held {
            let is_apart = other.segment.id() != extent.segment.id()
                || range(other).end <= extent.at
                || range(&extent).end <= other.at;
            assert!(is_apart, "two have the same memory");
        }
        let of = self.domains.entry(extent.segment.id());
        assert_eq!(*of.or_insert(extent.domain), extent.domain);
        self.held.push(extent);
    }
}

fn run_program(seed: u64, steps: u32) -> PoolUsage {
    let pool = Pool::new(options(24 * MIB));
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    let mut model = Model::default();
    if dice.roll(2) == 0 {
        pool.tended_by(|| {});
    }
    for _ in 0..steps {
        match dice.roll(12) {
            0..=3 => {
                let class = dice.roll(CLASSES as u64) as usize;
                let len = UNIT << class;
                let part = match dice.roll(3) {
                    0 => dice.roll(len / 2)..len / 2 + dice.roll(len / 2),
                    _ => 0..0,
                };
                let of = domain(dice.roll(3));
                let used = pool.usage().used_bytes;
                match pool.allocate_around(of, class, part.clone()) {
                    Ok(extent) => {
                        assert!(is_zero(&extent, 0..part.start), "before the part");
                        assert!(is_zero(&extent, part.end..len), "behind the part");
                        extent.copy_in(0, &vec![0xaa; len as usize]);
                        model.take(extent);
                    }
                    Err(error) => {
                        assert!(used + len > 24 * MIB, "{error} with {used} in use");
                    }
                }
            }
            4..=6 if !model.held.is_empty() => {
                let at = dice.roll(model.held.len() as u64) as usize;
                model.held.swap_remove(at);
            }
            7 if !model.held.is_empty() => {
                let at = dice.roll(model.held.len() as u64) as usize;
                model.held[at].set_aside();
            }
            8 => pool.let_time_pass(),
            9 if dice.roll(8) == 0 => pool.cool(),
            _ => {
                for _ in 0..dice.roll(6) {
                    pool.tend();
                }
            }
        }
        model.check(&pool);
        let live = pool.shared.lock();
        model.domains.retain(|id, _| live.segments.contains_key(id));
    }
    let usage = pool.usage();
    while pool.tend() {}
    model.check(&pool);
    model.held.clear();
    pool.cool();
    let end = pool.usage();
    assert_eq!((end.segments, end.used_bytes, end.ready_bytes), (0, 0, 0));
    usage
}

#[test]
fn random_programs_get_zeros_of_their_own_domain_within_the_limit() {
    let (mut ready, mut recycled, mut fresh) = (0, 0, 0);
    for seed in 0..60 {
        let usage = run_program(seed, 150);
        ready += usage.ready;
        recycled += usage.recycled;
        fresh += usage.fresh;
    }
    // All ways to get memory were tried.
    assert!(
        ready > 100 && recycled > 100 && fresh > 100,
        "{ready} {recycled} {fresh}"
    );
}

#[test]
#[ignore = "long: many random programs"]
fn many_random_programs_get_zeros_of_their_own_domain_within_the_limit() {
    for seed in 1000..3000 {
        run_program(seed, 400);
    }
}

#[test]
fn threads_that_allocate_while_another_tends_get_zeros_within_the_limit() {
    const LIMIT: u64 = 32 * MIB;
    let pool = Pool::new(options(LIMIT));
    let is_over = AtomicBool::new(false);
    let left = AtomicUsize::new(3);
    pool.tended_by(|| {});
    let begin = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (pool, begin, left, is_over) = (&pool, &begin, &left, &is_over);
            scope.spawn(move || {
                let mut dice = Dice(thread + 77);
                let mut held = Vec::new();
                begin.wait();
                for _ in 0..400 {
                    let class = dice.roll(CLASSES as u64) as usize;
                    // Each has a share that all of them fit into.
                    if held.len() < 4 {
                        let extent = pool.allocate(domain(dice.roll(2)), class).unwrap();
                        assert!(is_zero(&extent, 0..extent.len));
                        extent.copy_in(0, &vec![0x55; extent.len as usize]);
                        held.push(extent);
                    } else {
                        held.swap_remove(dice.roll(4) as usize);
                    }
                    let usage = pool.usage();
                    let all = usage.used_bytes + usage.warm_bytes + usage.ready_bytes;
                    assert!(all <= LIMIT, "{usage:?}");
                }
                if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                    is_over.store(true, Ordering::SeqCst);
                }
            });
        }
        begin.wait();
        while !is_over.load(Ordering::SeqCst) {
            if !pool.tend() {
                std::thread::yield_now();
            }
        }
    });
    let usage = pool.usage();
    assert_eq!(usage.used_bytes, 0);
    while pool.tend() {}
    let usage = pool.usage();
    assert_eq!(
        memory_of_segments(&pool),
        usage.warm_bytes + usage.ready_bytes
    );
}

#[test]
fn a_new_domain_adopts_what_is_ready_and_nothing_is_committed_for_it() {
    let pool = Pool::new(PoolOptions {
        least_reserve_bytes: 32 * MIB,
        most_reserve_bytes: 32 * MIB,
        ..options(128 * MIB)
    });
    assert_eq!(pool.usage().segments, 0);
    while pool.tend() {}
    let usage = pool.usage();
    assert_eq!(
        (usage.reserve_bytes, usage.ready_bytes),
        (32 * MIB, 32 * MIB)
    );
    let (a, b) = (domain(1), domain(2));
    let of_a: Vec<_> = (0..4).map(|_| pool.allocate(a, 5).unwrap()).collect();
    let of_b = pool.allocate(b, 3).unwrap();
    let usage = pool.usage();
    assert_eq!((usage.ready, usage.fresh, usage.recycled), (5, 0, 0));
    assert_ne!(of_a[0].segment.id(), of_b.segment.id());
    // What a domain has adopted is its own.
    assert_eq!(usage.reserve_bytes, 16 * MIB);
    assert_eq!(usage.ready_bytes, 32 * MIB - usage.used_bytes);
}

#[test]
fn small_files_of_many_domains_leave_the_reserve_to_those_that_grow() {
    let pool = Pool::new(options(128 * MIB));
    while pool.tend() {}
    let before = pool.usage();
    let small: Vec<_> = (0..20)
        .map(|d| pool.allocate(domain(d), 0).unwrap())
        .collect();
    assert_eq!(pool.usage().reserve_bytes, before.reserve_bytes);
    drop(small);
}

#[test]
fn the_reserve_follows_growth_and_shrinks_again() {
    let pool = Pool::new(PoolOptions {
        least_reserve_bytes: 4 * MIB,
        most_reserve_bytes: 40 * MIB,
        ..options(128 * MIB)
    });
    let settle = || {
        while pool.tend() {}
        pool.usage().reserve_bytes
    };
    assert_eq!(settle(), 4 * MIB);
    let held: Vec<_> = (0..12)
        .map(|_| pool.allocate(domain(0), 5).unwrap())
        .collect();
    assert_eq!(settle(), 24 * MIB, "as much as has grown");
    let more: Vec<_> = (0..16)
        .map(|_| pool.allocate(domain(0), 5).unwrap())
        .collect();
    assert_eq!(settle(), 40 * MIB, "not more than is allowed");
    // What is freed is used again by its domain, and is no growth.
    drop((held, more));
    assert_eq!(settle(), 40 * MIB);
    let fresh = pool.usage().fresh;
    drop(pool.allocate(domain(0), 5).unwrap());
    assert_eq!(pool.usage().fresh, fresh);
    pool.let_time_pass();
    assert_eq!(
        settle(),
        40 * MIB,
        "a little less is not given back at once"
    );
    for _ in 0..8 {
        pool.let_time_pass();
    }
    assert_eq!(settle(), 8 * MIB, "down to twice of what is wanted");
}

#[test]
fn files_get_the_memory_of_the_reserve_when_there_is_no_other() {
    let pool = Pool::new(options(16 * MIB));
    while pool.tend() {}
    assert!(pool.usage().reserve_bytes > 0);
    let held: Vec<_> = (0..256)
        .map(|_| pool.allocate(domain(0), 0).unwrap())
        .collect();
    let usage = pool.usage();
    assert_eq!((usage.used_bytes, usage.ready_bytes), (16 * MIB, 0));
    assert!(!pool.tend(), "nothing is left to be made ready");
    assert_eq!(memory_of_segments(&pool), 16 * MIB);
    assert!(pool.allocate(domain(0), 0).is_err());
    drop(held);
}

#[test]
fn who_tends_is_woken_by_growth_and_by_what_is_freed() {
    let pool = Pool::new(options(64 * MIB));
    let woken = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&woken);
    pool.tended_by(move || {
        theirs.fetch_add(1, Ordering::SeqCst);
    });
    while pool.tend() {}
    let extent = pool.allocate(domain(0), 5).unwrap();
    let after_growth = woken.load(Ordering::SeqCst);
    assert!(after_growth > 0);
    while pool.tend() {}
    drop(extent);
    assert!(woken.load(Ordering::SeqCst) > after_growth);
    assert_eq!(pool.usage().warm_bytes, 2 * MIB);
    assert!(pool.tend(), "zeroes it");
    assert_eq!(pool.usage().warm_bytes, 0);
    let again = pool.allocate(domain(0), 5).unwrap();
    assert!(is_zero(&again, 0..again.len));
}

#[test]
fn what_was_set_aside_is_not_ready_afterwards() {
    let pool = Pool::new(options(64 * MIB));
    let extent = pool.allocate(domain(0), 2).unwrap();
    extent.set_aside();
    // A client that was revoked still stores.
    extent.segment.copy_in(extent.at, &[7; 100]);
    drop(extent);
    let usage = pool.usage();
    assert_eq!(
        (usage.warm_bytes, usage.ready_bytes, usage.aside_bytes),
        (0, 0, 0)
    );
}

#[test]
fn large_pages_give_memory_to_whole_chunks() {
    for pages in [Pages::Huge, Pages::Joined] {
        whole_chunks_get_memory(pages);
    }
}

fn whole_chunks_get_memory(pages: Pages) {
    let pool = Pool::new(PoolOptions {
        pages,
        ..options(8 * MIB)
    });
    // Few bytes of a domain take no large page.
    let few = pool.allocate(domain(3), 0).unwrap();
    assert_eq!(memory_of_segments(&pool), UNIT);
    drop(few);
    pool.cool();
    assert_eq!(memory_of_segments(&pool), 0);
    let first = pool.allocate(domain(0), 2).unwrap();
    let usage = pool.usage();
    let (used, ready) = (usage.used_bytes, usage.ready_bytes);
    assert_eq!((used, ready), (4 * UNIT, CHUNK - 4 * UNIT));
    let second = pool.allocate(domain(0), 1).unwrap();
    assert_eq!(first.segment.id(), second.segment.id());
    assert_eq!(pool.usage().fresh, 2, "the second one found it ready");
    assert!(is_zero(&second, 0..second.len));
    assert_eq!(memory_of_segments(&pool), CHUNK);
    // Not where that would be more than is allowed.
    let rest: Vec<_> = (0..3)
        .map(|_| pool.allocate(domain(1), 5).unwrap())
        .collect();
    let last = pool.allocate(domain(2), 0).unwrap();
    let usage = pool.usage();
    assert!(usage.used_bytes + usage.ready_bytes <= 8 * MIB, "{usage:?}");
    drop((rest, last));
}
