//! Counters of one handle with one view, as an access path updates them.
//!
//! Every update is a plain load and a plain store of a word that this process alone has: no lock, no clock, no locked
//! instruction. Threads that share a handle may lose a count when they meet; a profile is a statistic, and an exact one
//! would cost every short access several times as much (measured: 2 ns against 16 ns with locked instructions).
//!
//! Left to others: who reads the clock to notice that counters got old, and handing them over.

use std::array::from_fn;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::record::ServerUse;
use super::tally::{Order, SIZES, Tally, TouchedBlocks, size_class};

/// Servers that a recorder tells apart; bytes of others are counted with the last.
pub const SERVER_SLOTS: usize = 8;

/// How often [`Recorder::record`] says that it is time to look at the clock.
const LOOK: u32 = 1 << 16;

#[derive(Debug, Default)]
struct Kind {
    bytes: AtomicU64,
    /// Counts between two times that they are handed over, which is often.
    sizes: [AtomicU32; SIZES],
    orders: [AtomicU64; 4],
    low: AtomicU64,
    high: AtomicU64,
    last_start: AtomicU64,
    last_end: AtomicU64,
    last_step: AtomicU64,
    shift: AtomicU32,
    bits: [AtomicU64; 4],
}

#[derive(Debug, Default)]
struct Slot {
    /// The server's number plus 1; 0 is free.
    server: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
}

/// Counts the accesses of one handle until they are handed over. A handle begins at offset 0, so that a first access there
/// goes on in sequence.
///
/// ```
/// use advise::profile::{Order, Recorder};
/// let recorder = Recorder::default();
/// (0..4).for_each(|i| drop(recorder.record(false, 100 * i, 100)));
/// let [read, written] = recorder.take();
/// assert_eq!((read.bytes, read.count(), read.hull), (400, 4, (0, 400)));
/// assert_eq!(read.orders[Order::Sequential as usize], 4);
/// assert!(written.is_empty() && recorder.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Recorder {
    kinds: [Kind; 2],
    slots: [Slot; SERVER_SLOTS],
}

#[inline]
fn add(counter: &AtomicU64, by: u64) -> u64 {
    let sum = counter.load(Relaxed).wrapping_add(by);
    counter.store(sum, Relaxed);
    sum
}

impl Recorder {
    /// Notes an access of `len > 0` bytes at a view offset. True now and then: a caller that can look at the clock does.
    #[inline]
    pub fn record(&self, writes: bool, offset: u64, len: u64) -> bool {
        let kind = &self.kinds[usize::from(writes)];
        let size = &kind.sizes[size_class(len)];
        let count = size.load(Relaxed).saturating_add(1);
        size.store(count, Relaxed);
        add(&kind.bytes, len);
        let (start, end) = (kind.last_start.load(Relaxed), kind.last_end.load(Relaxed));
        let next = offset.wrapping_add(len);
        let order = if offset == end {
            Order::Sequential
        } else {
            let step = offset.wrapping_sub(start);
            let before = kind.last_step.load(Relaxed);
            kind.last_step.store(step, Relaxed);
            if next == start {
                Order::Reverse
            } else if step == before {
                Order::Strided
            } else {
                Order::Random
            }
        };
        add(&kind.orders[order as usize], 1);
        kind.last_start.store(offset, Relaxed);
        kind.last_end.store(next, Relaxed);
        // High is kept as it is, low plus 1, so that 0 is none.
        let (low, high) = (kind.low.load(Relaxed), kind.high.load(Relaxed));
        if next > high {
            kind.high.store(next, Relaxed);
        }
        if offset < low.wrapping_sub(1) {
            kind.low.store(offset + 1, Relaxed);
        }
        let shift = kind.shift.load(Relaxed);
        let (first, last) = (offset >> shift, (next - 1) >> shift);
        if shift == 0 || last >= 256 {
            kind.widen(next);
            kind.touch(offset, next);
        } else if first == last {
            let (word, bit) = (&kind.bits[(first / 64) as usize], 1 << (first % 64));
            let bits = word.load(Relaxed);
            if bits & bit == 0 {
                word.store(bits | bit, Relaxed);
            }
        } else {
            kind.touch(offset, next);
        }
        count.is_multiple_of(LOOK)
    }

    /// The slot of a server, for [`Recorder::moved`].
    pub fn slot(&self, server: u64) -> usize {
        let number = server.wrapping_add(1);
        for (i, slot) in self.slots.iter().enumerate() {
            match slot.server.load(Relaxed) {
                0 if slot
                    .server
                    .compare_exchange(0, number, Relaxed, Relaxed)
                    .is_ok() =>
                {
                    return i;
                }
                there if there == number => return i,
                _ => {}
            }
        }
        SERVER_SLOTS - 1
    }

    /// Notes bytes that were moved from or to the server of a slot.
    #[inline]
    pub fn moved(&self, slot: usize, writes: bool, bytes: u64) {
        let slot = &self.slots[slot % SERVER_SLOTS];
        add(if writes { &slot.written } else { &slot.read }, bytes);
    }

    /// Whether nothing was noted since the last [`Recorder::take`].
    pub fn is_empty(&self) -> bool {
        let none = |kind: &Kind| kind.sizes.iter().all(|n| n.load(Relaxed) == 0);
        self.kinds.iter().all(none)
    }

    /// Reads and writes so far; counters begin anew.
    pub fn take(&self) -> [Tally; 2] {
        from_fn(|i| self.kinds[i].take())
    }

    /// Bytes by server so far, ascending by number; counters begin anew. Which one is the nearest is known elsewhere.
    pub fn take_servers(&self) -> Vec<ServerUse> {
        let mut used: Vec<ServerUse> = Vec::new();
        for slot in &self.slots {
            let Some(server) = slot.server.load(Relaxed).checked_sub(1) else {
                continue;
            };
            let (read, written) = (slot.read.swap(0, Relaxed), slot.written.swap(0, Relaxed));
            if read + written > 0 {
                used.push(ServerUse {
                    server,
                    read,
                    written,
                    ..ServerUse::default()
                });
            }
        }
        used.sort_unstable_by_key(|u| u.server);
        used
    }
}

impl Kind {
    /// Longer blocks, so that the map reaches to `end`.
    #[cold]
    fn widen(&self, end: u64) {
        let present = TouchedBlocks {
            shift: self.shift.load(Relaxed).max(TouchedBlocks::default().shift),
            bits: from_fn(|i| self.bits[i].load(Relaxed)),
        };
        let wide = present.widened(TouchedBlocks::shift_for(end));
        for (word, bits) in self.bits.iter().zip(wide.bits) {
            word.store(bits, Relaxed);
        }
        self.shift.store(wide.shift, Relaxed);
    }

    fn touch(&self, offset: u64, end: u64) {
        let shift = self.shift.load(Relaxed);
        for block in offset >> shift..=((end - 1) >> shift).min(255) {
            let (word, bit) = (&self.bits[(block / 64) as usize], 1 << (block % 64));
            let bits = word.load(Relaxed);
            if bits & bit == 0 {
                word.store(bits | bit, Relaxed);
            }
        }
    }

    fn take(&self) -> Tally {
        let take = |counter: &AtomicU64| counter.swap(0, Relaxed);
        let mut tally = Tally {
            bytes: take(&self.bytes),
            sizes: from_fn(|i| u64::from(self.sizes[i].swap(0, Relaxed))),
            orders: from_fn(|i| take(&self.orders[i])),
            hull: (take(&self.low).saturating_sub(1), take(&self.high)),
            touched: TouchedBlocks {
                shift: self.shift.load(Relaxed).max(TouchedBlocks::default().shift),
                bits: from_fn(|i| take(&self.bits[i])),
            },
        };
        if tally.is_empty() {
            tally = Tally::default();
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observe(accesses: &[(u64, u64)]) -> Tally {
        let recorder = Recorder::default();
        for &(offset, len) in accesses {
            recorder.record(true, offset, len);
        }
        let [read, written] = recorder.take();
        assert!(read.is_empty());
        written
    }

    #[test]
    fn orders_are_told_apart() {
        let orders = |accesses: &[(u64, u64)]| observe(accesses).orders;
        assert_eq!(orders(&[(0, 10), (10, 5), (15, 1)]), [3, 0, 0, 0]);
        assert_eq!(orders(&[(90, 10), (80, 10), (70, 10)]), [0, 2, 0, 1]);
        assert_eq!(orders(&[(0, 1), (50, 1), (100, 1), (150, 1)]), [1, 0, 2, 1]);
        assert_eq!(orders(&[(7, 1), (900, 1), (33, 1)]), [0, 0, 0, 3]);
    }

    #[test]
    fn what_is_recorded_is_what_was_accessed() {
        let accesses = [(5_u64, 10_u64), (1 << 21, 70_000), (300, 1)];
        let tally = observe(&accesses);
        assert_eq!(tally.bytes, 70_011);
        assert_eq!(tally.count(), 3);
        assert_eq!(tally.hull, (5, (1 << 21) + 70_000));
        let mut touched = TouchedBlocks::default();
        for (offset, len) in accesses {
            touched.touch(offset..offset + len);
        }
        assert_eq!(tally.touched, touched);
    }

    #[test]
    fn bytes_are_counted_by_server() {
        let recorder = Recorder::default();
        for (server, bytes) in [(3, 10), (9, 20), (3, 5)] {
            recorder.moved(recorder.slot(server), false, bytes);
        }
        let used: Vec<(u64, u64)> = recorder
            .take_servers()
            .iter()
            .map(|u| (u.server, u.read))
            .collect();
        assert_eq!(used, [(3, 15), (9, 20)]);
        assert!(recorder.take_servers().is_empty());
        // More servers than slots: nothing is lost.
        for server in 0..100 {
            recorder.moved(recorder.slot(server), true, 1);
        }
        let sum: u64 = recorder.take_servers().iter().map(|u| u.written).sum();
        assert_eq!(sum, 100);
    }
}
