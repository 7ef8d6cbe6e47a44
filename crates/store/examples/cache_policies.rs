//! Hit ratios of cache policies on traces of a parallel file service, for ADR 0018.
//!
//! `cargo run --release -p store --example cache_policies`. Everything is counted in extents of one size;
//! memory holds 1000. `lirs` is the policy of the disk store; the others are here to be compared with.

use random::Random;
use std::collections::{HashMap, HashSet, VecDeque};

use store::policy::Policy;

const ROOM: usize = 1000;

/// One access; whether it was a hit.
trait Cache {
    fn access(&mut self, key: u64) -> bool;
}

/// An ordered set by time of entry, with removal.
#[derive(Default)]
struct Queue {
    order: VecDeque<(u64, u64)>,
    stamp: HashMap<u64, u64>,
    next: u64,
}

impl Queue {
    fn len(&self) -> usize {
        self.stamp.len()
    }
    fn has(&self, key: u64) -> bool {
        self.stamp.contains_key(&key)
    }
    fn push(&mut self, key: u64) {
        self.next += 1;
        self.stamp.insert(key, self.next);
        self.order.push_back((key, self.next));
    }
    fn remove(&mut self, key: u64) -> bool {
        self.stamp.remove(&key).is_some()
    }
    fn pop(&mut self) -> Option<u64> {
        while let Some((key, stamp)) = self.order.pop_front() {
            if self.stamp.get(&key) == Some(&stamp) {
                self.stamp.remove(&key);
                return Some(key);
            }
        }
        None
    }
}

#[derive(Default)]
struct Lru(Queue);

impl Cache for Lru {
    fn access(&mut self, key: u64) -> bool {
        let hit = self.0.remove(key);
        if !hit && self.0.len() == ROOM {
            self.0.pop();
        }
        self.0.push(key);
        hit
    }
}

#[derive(Default)]
struct Clock {
    queue: Queue,
    used: HashSet<u64>,
}

impl Cache for Clock {
    fn access(&mut self, key: u64) -> bool {
        if self.queue.has(key) {
            self.used.insert(key);
            return true;
        }
        while self.queue.len() >= ROOM {
            let victim = self.queue.pop().expect("full");
            if self.used.remove(&victim) {
                self.queue.push(victim);
            }
        }
        self.queue.push(key);
        false
    }
}

/// 2Q (Johnson and Shasha 1994), full version: a quarter in, half as many remembered.
#[derive(Default)]
struct TwoQ {
    recent: Queue,
    main: Queue,
    gone: Queue,
}

impl TwoQ {
    fn reclaim(&mut self) {
        if self.recent.len() + self.main.len() < ROOM {
            return;
        }
        if self.recent.len() > ROOM / 4 {
            let victim = self.recent.pop().expect("not empty");
            self.gone.push(victim);
            if self.gone.len() > ROOM / 2 {
                self.gone.pop();
            }
        } else {
            self.main.pop();
        }
    }
}

impl Cache for TwoQ {
    fn access(&mut self, key: u64) -> bool {
        if self.main.remove(key) {
            self.main.push(key);
            return true;
        }
        if self.recent.has(key) {
            return true;
        }
        let was_gone = self.gone.remove(key);
        self.reclaim();
        match was_gone {
            true => self.main.push(key),
            false => self.recent.push(key),
        }
        false
    }
}

/// S3-FIFO (Yang and others 2023): a tenth small, the rest main, as many remembered as main holds.
#[derive(Default)]
struct S3Fifo {
    small: Queue,
    main: Queue,
    gone: Queue,
    uses: HashMap<u64, u8>,
}

impl S3Fifo {
    fn evict(&mut self) {
        if self.small.len() >= ROOM / 10 {
            while let Some(key) = self.small.pop() {
                if self.uses.get(&key).copied().unwrap_or(0) > 1 {
                    self.uses.insert(key, 0);
                    self.main.push(key);
                    if self.main.len() > ROOM * 9 / 10 {
                        self.evict_main();
                        return;
                    }
                } else {
                    self.uses.remove(&key);
                    self.gone.push(key);
                    if self.gone.len() > ROOM * 9 / 10 {
                        self.gone.pop();
                    }
                    return;
                }
            }
        }
        self.evict_main();
    }
    fn evict_main(&mut self) {
        while let Some(key) = self.main.pop() {
            let uses = self.uses.entry(key).or_insert(0);
            if *uses > 0 {
                *uses -= 1;
                self.main.push(key);
            } else {
                self.uses.remove(&key);
                return;
            }
        }
        self.small.pop();
    }
}

impl Cache for S3Fifo {
    fn access(&mut self, key: u64) -> bool {
        if self.small.has(key) || self.main.has(key) {
            let uses = self.uses.entry(key).or_insert(0);
            *uses = (*uses + 1).min(3);
            return true;
        }
        while self.small.len() + self.main.len() >= ROOM {
            self.evict();
        }
        match self.gone.remove(key) {
            true => self.main.push(key),
            false => self.small.push(key),
        }
        false
    }
}

/// ARC (Megiddo and Modha 2003).
#[derive(Default)]
struct Arc {
    once: Queue,
    often: Queue,
    once_gone: Queue,
    often_gone: Queue,
    target: usize,
}

impl Arc {
    fn replace(&mut self, is_often_gone: bool) {
        let once = self.once.len();
        if once > 0 && (once > self.target || (is_often_gone && once == self.target)) {
            let victim = self.once.pop().expect("not empty");
            self.once_gone.push(victim);
        } else if let Some(victim) = self.often.pop() {
            self.often_gone.push(victim);
        }
    }
}

impl Cache for Arc {
    fn access(&mut self, key: u64) -> bool {
        if self.once.remove(key) || self.often.remove(key) {
            self.often.push(key);
            return true;
        }
        if self.once_gone.has(key) {
            let step = (self.often_gone.len() / self.once_gone.len()).max(1);
            self.target = (self.target + step).min(ROOM);
            self.replace(false);
            self.once_gone.remove(key);
            self.often.push(key);
        } else if self.often_gone.has(key) {
            let step = (self.once_gone.len() / self.often_gone.len()).max(1);
            self.target = self.target.saturating_sub(step);
            self.replace(true);
            self.often_gone.remove(key);
            self.often.push(key);
        } else {
            let first = self.once.len() + self.once_gone.len();
            let all = first + self.often.len() + self.often_gone.len();
            if first == ROOM {
                if self.once.len() < ROOM {
                    self.once_gone.pop();
                    self.replace(false);
                } else {
                    self.once.pop();
                }
            } else if all >= ROOM {
                if all == 2 * ROOM {
                    self.often_gone.pop();
                }
                self.replace(false);
            }
            self.once.push(key);
        }
        false
    }
}

struct Lirs {
    policy: Policy,
    held: HashSet<u64>,
}

impl Default for Lirs {
    fn default() -> Self {
        Lirs {
            policy: Policy::new(ROOM as u64),
            held: HashSet::new(),
        }
    }
}

impl Cache for Lirs {
    fn access(&mut self, key: u64) -> bool {
        if self.held.contains(&key) {
            self.policy.touch((0, key));
            return true;
        }
        if self.held.len() == ROOM {
            let victim = self.policy.first().expect("full");
            self.policy.evicted(victim);
            self.held.remove(&victim.1);
        }
        self.policy.insert((0, key), 1);
        self.held.insert(key);
        false
    }
}

/// Draws with probability proportional to 1/rank^skew.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(n: usize, skew: f64) -> Zipf {
        let mut sum = 0.0;
        let mut all: Vec<f64> = Vec::new();
        for rank in 1..=n {
            sum += (rank as f64).powf(-skew);
            all.push(sum);
        }
        all.iter_mut().for_each(|x| *x /= sum);
        Zipf(all)
    }
    fn draw(&self, chance: &mut Random) -> u64 {
        let x = chance.unit();
        self.0.partition_point(|p| *p < x) as u64
    }
}

fn traces() -> Vec<(&'static str, Vec<u64>)> {
    let mut c = Random::new(7);
    let mut list: Vec<(&'static str, Vec<u64>)> = Vec::new();
    let mut scan = 1_000_000;
    let mut trace = Vec::new();
    for _ in 0..100_000 {
        if c.below(2) == 0 {
            trace.push(c.below(600));
        } else {
            scan += 1;
            trace.push(scan);
        }
    }
    list.push(("hot 600 + endless scan", trace));
    let mut trace = Vec::new();
    for _ in 0..20 {
        (0..3000).for_each(|_| trace.push(c.below(800)));
        (0..5000).for_each(|_| {
            scan += 1;
            trace.push(scan);
        });
    }
    list.push(("hot 800, scans of 5000 between", trace));
    list.push(("loop of 1100", (0..30).flat_map(|_| 0..1100).collect()));
    list.push(("loop of 1500", (0..30).flat_map(|_| 0..1500).collect()));
    list.push(("loop of 4000", (0..30).flat_map(|_| 0..4000).collect()));
    let back_and_forth = (0..30).flat_map(|i| {
        let all: Box<dyn Iterator<Item = u64>> = match i % 2 {
            0 => Box::new(0..1500),
            _ => Box::new((0..1500).rev()),
        };
        all
    });
    list.push(("1500 forth and back", back_and_forth.collect()));
    let zipf = Zipf::new(10_000, 0.9);
    let trace = (0..200_000).map(|_| zipf.draw(&mut c)).collect();
    list.push(("zipf 0.9 over 10000", trace));
    let zipf = Zipf::new(2_000, 0.9);
    let mut at = 0;
    let trace = (0..200_000).map(|_| match c.below(10) {
        0..=3 => zipf.draw(&mut c),
        4..=8 => {
            at += 1;
            100_000 + at % 2500
        }
        _ => {
            scan += 1;
            scan
        }
    });
    list.push(("mixed: zipf, loop of 2500, scan", trace.collect()));
    let trace = (0..200_000u64).map(|i| i / 20_000 * 10_000 + c.below(900));
    list.push(("hot 900 that moves on", trace.collect()));
    // Four readers in step through a file twice as long as memory, each behind the other.
    let trace = (0..4000u64).flat_map(|i| (0..4).map(move |r| (i + 4000 - r * 200) % 2000));
    list.push(("four readers 200 apart", trace.collect()));
    list
}

fn main() {
    let names = ["lru", "clock", "2q", "s3fifo", "arc", "lirs"];
    println!("| trace | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    let mut sums = [0.0; 6];
    let all = traces();
    for (name, trace) in &all {
        let mut caches: [Box<dyn Cache>; 6] = [
            Box::<Lru>::default(),
            Box::<Clock>::default(),
            Box::<TwoQ>::default(),
            Box::<S3Fifo>::default(),
            Box::<Arc>::default(),
            Box::<Lirs>::default(),
        ];
        let mut row = String::new();
        for (cache, sum) in caches.iter_mut().zip(&mut sums) {
            let hits = trace.iter().filter(|key| cache.access(**key)).count();
            let ratio = hits as f64 / trace.len() as f64;
            *sum += ratio;
            row += &format!(" {ratio:.3} |");
        }
        println!("| {name} |{row}");
    }
    let mean: String = sums
        .iter()
        .map(|s| format!(" {:.3} |", s / all.len() as f64))
        .collect();
    println!("| mean |{mean}");
}
