//! What stays in memory when there is not room for everything: extents by how soon they come again.
//!
//! The policy is LIRS (Jiang and Zhang, 2002): what counts is the distance between the last two uses of
//! an extent, not the time since the last. Extents with short distances are *near* and keep most of the
//! memory; all others are *far* and pass through the rest, first in, first out. So a scan passes by
//! without taking anything away, and of a loop that is longer than memory a part stays instead of
//! nothing. What was evicted lately is remembered without its bytes: one that comes back soon enough is
//! near from then on. How memory is shared follows what happens (as in DLIRS, Li 2018): far extents that come
//! back get more of it for the far, near ones that had to go and are used again get it back.
//!
//! ```text
//!  stack   top = latest use                                   bottom
//!          far  near  near  gone  far  near ... gone  near          the bottom is always near
//!  queue   first = evicted next
//!          far  far  far                                             only what is in memory and far
//! ```
//!
//! Invariants
//! - Near and far extents have at least a sixteenth of the limit each; near ones take no more than the
//!   rest when the next one becomes near, unless one extent alone is more.
//! - Remembered extents that are gone are at most as many bytes as the limit, and at least a few.
//! - Whatever is in memory is either near (and in the stack) or in the queue.
//!
//! It decides nothing by itself: the thread that makes room asks for the order and evicts what nobody uses.
//! Costs: a map look-up and a few links per call; the order costs one pass over what is in memory.
//!
//! Compared with others in `examples/cache_policies.rs`; the figures are in ADR 0018.

use std::collections::BTreeMap;

/// Which extent: the subfile's number in its store, and its first byte.
pub type Key = (u64, u64);

const NONE: usize = usize::MAX;
/// Extents that may be remembered whatever their bytes.
const FEW: usize = 64;
/// The least share of memory that near extents have, and the least that far ones have: one in so many.
const LEAST_SHARE: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Near,
    Far,
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: usize,
    next: usize,
    is_in: bool,
}

const UNLINKED: Link = Link {
    previous: NONE,
    next: NONE,
    is_in: false,
};

#[derive(Debug)]
struct Entry {
    key: Key,
    bytes: u64,
    class: Class,
    stack: Link,
    /// In the queue if it is far, in the list of those that are gone if it is that.
    queue: Link,
    /// It was near until others took its place.
    is_demoted: bool,
}

/// A list through the entries.
#[derive(Debug)]
struct List {
    first: usize,
    last: usize,
    count: usize,
}

impl List {
    const fn new() -> List {
        List {
            first: NONE,
            last: NONE,
            count: 0,
        }
    }
}

/// Which of two links of an entry a list goes through.
type At = fn(&mut Entry) -> &mut Link;

fn stack(entry: &mut Entry) -> &mut Link {
    &mut entry.stack
}

fn queue(entry: &mut Entry) -> &mut Link {
    &mut entry.queue
}

impl List {
    fn push_back(&mut self, entries: &mut [Entry], i: usize, at: At) {
        debug_assert!(!at(&mut entries[i]).is_in);
        *at(&mut entries[i]) = Link {
            previous: self.last,
            next: NONE,
            is_in: true,
        };
        match self.last {
            NONE => self.first = i,
            last => at(&mut entries[last]).next = i,
        }
        self.last = i;
        self.count += 1;
    }

    fn remove(&mut self, entries: &mut [Entry], i: usize, at: At) {
        let link = std::mem::replace(at(&mut entries[i]), UNLINKED);
        if !link.is_in {
            return;
        }
        match link.previous {
            NONE => self.first = link.next,
            previous => at(&mut entries[previous]).next = link.next,
        }
        match link.next {
            NONE => self.last = link.previous,
            next => at(&mut entries[next]).previous = link.previous,
        }
        self.count -= 1;
    }
}

/// The order in which extents are given up.
///
/// ```
/// use store::policy::Policy;
/// let mut policy = Policy::new(160);
/// for start in 0..10 {
///     policy.insert((1, start), 10);
///     policy.touch((1, start)); // in use again and again
/// }
/// for start in 100..106 {
///     policy.insert((1, start), 10); // a scan
/// }
/// let first = policy.order()[0];
/// assert_eq!(first, (1, 105), "what passed by goes first");
/// ```
#[derive(Debug)]
pub struct Policy {
    limit_bytes: u64,
    entries: Vec<Entry>,
    free: Vec<usize>,
    index: BTreeMap<Key, usize>,
    /// First is the bottom.
    stack: List,
    queue: List,
    gone: List,
    near_bytes: u64,
    gone_bytes: u64,
    demoted: u64,
    /// Memory that is left to far extents.
    far_limit: u64,
    returned: u64,
}

impl Policy {
    /// For so many bytes of memory.
    pub fn new(limit_bytes: u64) -> Policy {
        Policy {
            limit_bytes,
            entries: Vec::new(),
            free: Vec::new(),
            index: BTreeMap::new(),
            stack: List::new(),
            queue: List::new(),
            gone: List::new(),
            near_bytes: 0,
            gone_bytes: 0,
            demoted: 0,
            far_limit: limit_bytes / LEAST_SHARE,
            returned: 0,
        }
    }

    /// Most bytes that near extents take.
    fn near_limit(&self) -> u64 {
        self.limit_bytes - self.far_limit
    }

    /// Far extents get more memory: one came back that had been given up too early.
    fn more_far(&mut self, bytes: u64) {
        let weight = (self.demoted / (self.gone.count as u64).max(1)).max(1);
        let most = self.limit_bytes - self.limit_bytes / LEAST_SHARE;
        self.far_limit = (self.far_limit + bytes.saturating_mul(weight)).min(most);
    }

    /// Near extents get more memory: one is used again that was no longer counted among them.
    fn more_near(&mut self, bytes: u64) {
        let weight = (self.gone.count as u64 / self.demoted.max(1)).max(1);
        let least = self.limit_bytes / LEAST_SHARE;
        let less = self.far_limit.saturating_sub(bytes.saturating_mul(weight));
        self.far_limit = less.max(least);
    }

    /// How often an extent came back that was remembered.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// An extent came into memory because it was used.
    pub fn insert(&mut self, key: Key, bytes: u64) {
        let comes_back = self.take_gone(key);
        let i = self.add(key, bytes);
        if comes_back {
            self.returned += 1;
            self.more_far(bytes);
        }
        if comes_back || self.near_bytes + bytes <= self.near_limit() {
            self.make_near(i);
        } else {
            self.make_far(i);
            self.lift(i);
        }
    }

    /// An extent came into memory although nobody has used it yet.
    pub fn insert_ahead(&mut self, key: Key, bytes: u64) {
        // What it was before counts when it is used.
        let comes_back = self.take_gone(key);
        let i = self.add(key, bytes);
        self.make_far(i);
        if comes_back {
            self.lift(i);
        }
    }

    /// An extent in memory was used again.
    pub fn touch(&mut self, key: Key) {
        let Some(&i) = self.index.get(&key) else {
            return;
        };
        match self.entries[i].class {
            Class::Near => {
                self.lift(i);
                self.prune();
            }
            Class::Far => {
                if self.entries[i].is_demoted {
                    self.more_near(self.entries[i].bytes);
                    self.promoted(i);
                }
                let has_room = self.near_bytes + self.entries[i].bytes <= self.near_limit();
                if self.entries[i].stack.is_in || has_room {
                    self.make_near(i);
                } else {
                    self.lift(i);
                    self.queue.remove(&mut self.entries, i, queue);
                    self.queue.push_back(&mut self.entries, i, queue);
                }
            }
            Class::Gone => {}
        }
    }

    /// An extent was evicted; it is remembered.
    pub fn evicted(&mut self, key: Key) {
        let Some(&i) = self.index.get(&key) else {
            return;
        };
        match self.entries[i].class {
            Class::Near => self.near_bytes -= self.entries[i].bytes,
            Class::Far => {
                self.promoted(i);
                self.queue.remove(&mut self.entries, i, queue);
            }
            Class::Gone => return,
        }
        if !self.entries[i].stack.is_in {
            self.drop_entry(i);
            return;
        }
        self.entries[i].class = Class::Gone;
        self.gone.push_back(&mut self.entries, i, queue);
        self.gone_bytes += self.entries[i].bytes;
        self.prune();
        while self.gone.count > FEW && self.gone_bytes > self.limit_bytes {
            let oldest = self.gone.first;
            self.drop_entry(oldest);
        }
    }

    /// An extent is no more: its bytes were cut off, or its subfile removed.
    pub fn remove(&mut self, key: Key) {
        if let Some(&i) = self.index.get(&key) {
            self.drop_entry(i);
            self.prune();
        }
    }

    /// Everything of a subfile is no more.
    pub fn remove_all(&mut self, subfile: u64) {
        let all = self.index.range((subfile, 0)..=(subfile, u64::MAX));
        let all: Vec<usize> = all.map(|(_, i)| *i).collect();
        for i in all {
            self.drop_entry(i);
        }
        self.prune();
    }

    /// Everything in memory, what should go first at the beginning.
    pub fn order(&self) -> Vec<Key> {
        self.first_bytes(u64::MAX)
    }

    /// The beginning of the order, about so many bytes of it.
    pub fn first_bytes(&self, bytes: u64) -> Vec<Key> {
        let mut found = Vec::new();
        let mut sum = 0;
        let mut i = self.queue.first;
        while i != NONE && sum < bytes {
            found.push(self.entries[i].key);
            sum += self.entries[i].bytes;
            i = self.entries[i].queue.next;
        }
        let mut i = self.stack.first;
        while i != NONE && sum < bytes {
            if self.entries[i].class == Class::Near {
                found.push(self.entries[i].key);
                sum += self.entries[i].bytes;
            }
            i = self.entries[i].stack.next;
        }
        found
    }

    /// The far ones of the order.
    pub fn passing(&self) -> Vec<Key> {
        let mut found = Vec::with_capacity(self.queue.count);
        let mut i = self.queue.first;
        while i != NONE {
            found.push(self.entries[i].key);
            i = self.entries[i].queue.next;
        }
        found
    }

    /// The first of the order.
    pub fn first(&self) -> Option<Key> {
        match (self.queue.first, self.stack.first) {
            (NONE, NONE) => None,
            (NONE, bottom) => Some(self.entries[bottom].key),
            (first, _) => Some(self.entries[first].key),
        }
    }

    fn add(&mut self, key: Key, bytes: u64) -> usize {
        self.remove(key);
        let entry = Entry {
            key,
            bytes,
            class: Class::Far,
            stack: UNLINKED,
            queue: UNLINKED,
            is_demoted: false,
        };
        let i = match self.free.pop() {
            Some(i) => {
                self.entries[i] = entry;
                i
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.index.insert(key, i);
        i
    }

    /// Forgets what is remembered of an extent; whether that was anything. Extents come back in other
    /// sizes: one that lay in a longer one counts as that.
    fn take_gone(&mut self, key: Key) -> bool {
        let Some((&(subfile, start), &i)) = self.index.range(..=key).next_back() else {
            return false;
        };
        let entry = &self.entries[i];
        let holds = subfile == key.0 && key.1 < start + entry.bytes.max(1);
        if !holds || entry.class != Class::Gone {
            return false;
        }
        if start == key.1 {
            self.drop_entry(i);
        }
        true
    }

    fn lift(&mut self, i: usize) {
        self.stack.remove(&mut self.entries, i, stack);
        self.stack.push_back(&mut self.entries, i, stack);
    }

    fn promoted(&mut self, i: usize) {
        if std::mem::take(&mut self.entries[i].is_demoted) {
            self.demoted -= 1;
        }
    }

    fn make_far(&mut self, i: usize) {
        self.entries[i].class = Class::Far;
        self.queue.push_back(&mut self.entries, i, queue);
    }

    fn make_near(&mut self, i: usize) {
        self.queue.remove(&mut self.entries, i, queue);
        self.entries[i].class = Class::Near;
        self.near_bytes += self.entries[i].bytes;
        self.lift(i);
        self.prune();
        while self.near_bytes > self.near_limit() && self.stack.first != i {
            let bottom = self.stack.first;
            self.near_bytes -= self.entries[bottom].bytes;
            self.stack.remove(&mut self.entries, bottom, stack);
            self.make_far(bottom);
            self.entries[bottom].is_demoted = true;
            self.demoted += 1;
            self.prune();
        }
    }

    /// The bottom of the stack is near: what lies below the last near one was used longer ago than any.
    fn prune(&mut self) {
        while self.stack.first != NONE {
            let bottom = self.stack.first;
            match self.entries[bottom].class {
                Class::Near => return,
                Class::Far => self.stack.remove(&mut self.entries, bottom, stack),
                Class::Gone => self.drop_entry(bottom),
            }
        }
    }

    fn drop_entry(&mut self, i: usize) {
        match self.entries[i].class {
            Class::Near => self.near_bytes -= self.entries[i].bytes,
            Class::Far => {
                self.promoted(i);
                self.queue.remove(&mut self.entries, i, queue);
            }
            Class::Gone => {
                self.gone.remove(&mut self.entries, i, queue);
                self.gone_bytes -= self.entries[i].bytes;
            }
        }
        self.stack.remove(&mut self.entries, i, stack);
        self.index.remove(&self.entries[i].key);
        self.free.push(i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    impl Policy {
        /// Everything that the header promises.
        fn check(&self) {
            let in_memory: Vec<&Entry> = self
                .index
                .values()
                .map(|i| &self.entries[*i])
                .filter(|e| e.class != Class::Gone)
                .collect();
            let near: u64 = in_memory
                .iter()
                .filter(|e| e.class == Class::Near)
                .map(|e| e.bytes)
                .sum();
            assert_eq!(near, self.near_bytes);
            let largest = in_memory.iter().map(|e| e.bytes).max().unwrap_or(0);
            let least = self.limit_bytes / LEAST_SHARE;
            assert!(near <= (self.limit_bytes - least).max(largest));
            assert!((least..=self.limit_bytes - least).contains(&self.far_limit));
            let demoted = in_memory.iter().filter(|e| e.is_demoted).count();
            assert_eq!(demoted as u64, self.demoted);
            for e in &in_memory {
                let is_near = e.class == Class::Near;
                assert_eq!(is_near, !e.queue.is_in);
                assert!(!is_near || e.stack.is_in);
            }
            if self.stack.first != NONE {
                assert_eq!(self.entries[self.stack.first].class, Class::Near);
            }
            let order = self.order();
            assert_eq!(order.len(), in_memory.len());
            assert_eq!(order.iter().collect::<HashSet<_>>().len(), order.len());
            let far = in_memory.iter().filter(|e| e.class != Class::Near).count();
            assert_eq!(self.passing()[..], order[..far]);
            assert!(self.gone.count <= FEW || self.gone_bytes <= self.limit_bytes);
        }
    }

    /// A cache of `limit` bytes over the policy; hits of a trace of keys.
    fn hits(limit: u64, trace: impl Iterator<Item = u64>) -> u64 {
        let mut policy = Policy::new(limit);
        let mut held = HashSet::new();
        let mut hits = 0;
        for start in trace {
            if held.contains(&start) {
                hits += 1;
                policy.touch((0, start));
                continue;
            }
            if held.len() as u64 == limit {
                let victim = policy.first().expect("full");
                policy.evicted(victim);
                held.remove(&victim.1);
            }
            policy.insert((0, start), 1);
            held.insert(start);
        }
        policy.check();
        hits
    }

    #[test]
    fn a_loop_longer_than_memory_keeps_a_part_of_it() {
        // 150 extents, 10 times, with room for 100: least-recently-used would hit never.
        let found = hits(100, (0..10).flat_map(|_| 0..150));
        assert!(found > 9 * 80, "{found} of {}", 9 * 150);
    }

    #[test]
    fn a_scan_does_not_take_the_hot_set_away() {
        let hot = |k: u64| k % 60;
        let warm = (0..600).map(hot);
        let scan = (0..3000).map(|k| 1000 + k);
        let after = (0..60).map(hot);
        let before = hits(100, (0..600).map(hot));
        let all = hits(100, warm.chain(scan).chain(after));
        assert_eq!(all - before, 60, "all of the hot set is still there");
    }

    #[test]
    fn what_was_loaded_ahead_is_not_taken_for_used() {
        let mut policy = Policy::new(160);
        for start in 0..15 {
            policy.insert((0, start), 10);
        }
        policy.insert_ahead((0, 100), 10);
        assert_eq!(policy.order()[0], (0, 100));
        policy.touch((0, 100));
        assert_eq!(policy.order()[0], (0, 100), "used once: still the first");
        policy.touch((0, 100));
        assert_ne!(policy.order()[0], (0, 100), "used twice");
        policy.check();
    }

    #[test]
    fn any_order_of_calls_keeps_the_promises() {
        let mut random = random::Random::new(12345);
        let mut next = |n: u64| random.below(n);
        let mut policy = Policy::new(1000);
        let mut held: HashSet<Key> = HashSet::new();
        for _ in 0..20_000 {
            let key = (next(3), next(40) * 64);
            match next(6) {
                0 | 1 if !held.contains(&key) => {
                    policy.insert(key, 1 + next(64));
                    held.insert(key);
                }
                2 if !held.contains(&key) => {
                    policy.insert_ahead(key, 1 + next(64));
                    held.insert(key);
                }
                3 => policy.touch(key),
                4 if held.remove(&key) => policy.evicted(key),
                5 if next(10) == 0 => {
                    policy.remove(key);
                    held.remove(&key);
                }
                _ => {}
            }
            policy.check();
        }
        policy.remove_all(1);
        held.retain(|key| key.0 != 1);
        let mut order = policy.order();
        order.sort_unstable();
        let mut held: Vec<Key> = held.into_iter().collect();
        held.sort_unstable();
        assert_eq!(order, held);
    }
}
