//! What a server has counted since it started.
//!
//! Counters are relaxed atomics: each is right by itself, together they are a picture of about now.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::Status;
use wire::message::session::Counter;

/// Statuses that are counted.
const STATUSES: usize = 64;

/// All counters.
pub(crate) struct Statistics {
    pub(crate) requests: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) straight: AtomicU64,
    pub(crate) rounds: AtomicU64,
    pub(crate) buffer_waits: AtomicU64,
    pub(crate) announced: AtomicU64,
    pub(crate) room_waits: AtomicU64,
    pub(crate) pulled_bytes: AtomicU64,
    pub(crate) removals: AtomicU64,
    pub(crate) write_back_errors: AtomicU64,
    /// Writes that had to write back themselves, since too much was dirty.
    pub(crate) write_behind_waits: AtomicU64,
    pub(crate) ahead_loads: AtomicU64,
    pub(crate) ahead_dropped: AtomicU64,
    pub(crate) ahead_hints: AtomicU64,
    pub(crate) prefetches: AtomicU64,
    pub(crate) prefetches_wrong: AtomicU64,
    pub(crate) prefetches_void: AtomicU64,
    pub(crate) prefetched_bytes: AtomicU64,
    pub(crate) prefetch_hit_bytes: AtomicU64,
    pub(crate) prefetch_most_bytes: AtomicU64,
    pub(crate) prefetch_exchanged_bytes: AtomicU64,
    pub(crate) server_requests: AtomicU64,
    pub(crate) server_bytes: AtomicU64,
    /// Whole requests of clients, their bytes, those of them that were here, and where the rest went.
    pub(crate) whole: AtomicU64,
    pub(crate) whole_bytes: AtomicU64,
    pub(crate) own_bytes: AtomicU64,
    pub(crate) whole_broken: AtomicU64,
    pub(crate) matching_millionths: AtomicU64,
    pub(crate) hops: AtomicU64,
    pub(crate) internal: AtomicU64,
    pub(crate) between_bytes: AtomicU64,
    pub(crate) remapped: AtomicU64,
    /// Parts that other servers asked for.
    pub(crate) forwarded: AtomicU64,
    pub(crate) forwarded_bytes: AtomicU64,
    /// Collective accesses that were directed here: how many, ranks that came, and what was done.
    pub(crate) directed: AtomicU64,
    pub(crate) directed_ranks: AtomicU64,
    pub(crate) directed_blocks: AtomicU64,
    pub(crate) directed_rounds: AtomicU64,
    pub(crate) directed_packets: AtomicU64,
    pub(crate) directed_bytes: AtomicU64,
    pub(crate) directed_overlaps: AtomicU64,
    pub(crate) directed_failed: AtomicU64,
    pub(crate) directed_most_bytes: AtomicU64,
    refusals: [AtomicU64; STATUSES],
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics {
            requests: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            straight: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            buffer_waits: AtomicU64::new(0),
            announced: AtomicU64::new(0),
            room_waits: AtomicU64::new(0),
            pulled_bytes: AtomicU64::new(0),
            removals: AtomicU64::new(0),
            write_back_errors: AtomicU64::new(0),
            write_behind_waits: AtomicU64::new(0),
            ahead_loads: AtomicU64::new(0),
            ahead_dropped: AtomicU64::new(0),
            ahead_hints: AtomicU64::new(0),
            prefetches: AtomicU64::new(0),
            prefetches_wrong: AtomicU64::new(0),
            prefetches_void: AtomicU64::new(0),
            prefetched_bytes: AtomicU64::new(0),
            prefetch_hit_bytes: AtomicU64::new(0),
            prefetch_most_bytes: AtomicU64::new(0),
            prefetch_exchanged_bytes: AtomicU64::new(0),
            server_requests: AtomicU64::new(0),
            server_bytes: AtomicU64::new(0),
            whole: AtomicU64::new(0),
            whole_bytes: AtomicU64::new(0),
            own_bytes: AtomicU64::new(0),
            whole_broken: AtomicU64::new(0),
            matching_millionths: AtomicU64::new(0),
            hops: AtomicU64::new(0),
            internal: AtomicU64::new(0),
            between_bytes: AtomicU64::new(0),
            remapped: AtomicU64::new(0),
            forwarded: AtomicU64::new(0),
            forwarded_bytes: AtomicU64::new(0),
            directed: AtomicU64::new(0),
            directed_ranks: AtomicU64::new(0),
            directed_blocks: AtomicU64::new(0),
            directed_rounds: AtomicU64::new(0),
            directed_packets: AtomicU64::new(0),
            directed_bytes: AtomicU64::new(0),
            directed_overlaps: AtomicU64::new(0),
            directed_failed: AtomicU64::new(0),
            directed_most_bytes: AtomicU64::new(0),
            refusals: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl Statistics {
    /// An access was served, in so many rounds through a buffer.
    pub(crate) fn served(&self, is_write: bool, bytes: u64, rounds: u64) {
        let (count, total) = match is_write {
            true => (&self.writes, &self.bytes_written),
            false => (&self.reads, &self.bytes_read),
        };
        add(count, 1);
        add(total, bytes);
        add(&self.rounds, rounds);
        if rounds == 0 {
            add(&self.straight, 1);
        }
    }

    /// A request was refused.
    pub(crate) fn refused(&self, status: Status) {
        if let Some(counter) = self.refusals.get(usize::from(status.code())) {
            add(counter, 1);
        }
    }

    /// All of them by name; refusals only where there were any.
    pub(crate) fn list(&self) -> Vec<Counter> {
        let named = [
            ("requests", &self.requests),
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("read_bytes", &self.bytes_read),
            ("written_bytes", &self.bytes_written),
            ("straight_accesses", &self.straight),
            ("rounds", &self.rounds),
            ("buffer_waits", &self.buffer_waits),
            ("announced_writes", &self.announced),
            ("room_waits", &self.room_waits),
            ("pulled_bytes", &self.pulled_bytes),
            ("removals", &self.removals),
            ("write_back_errors", &self.write_back_errors),
            ("write_behind_waits", &self.write_behind_waits),
            ("ahead_loads", &self.ahead_loads),
            ("ahead_dropped", &self.ahead_dropped),
            ("ahead_hints", &self.ahead_hints),
            ("prefetches", &self.prefetches),
            ("prefetches_wrong", &self.prefetches_wrong),
            ("prefetches_void", &self.prefetches_void),
            ("prefetched_bytes", &self.prefetched_bytes),
            ("prefetch_hit_bytes", &self.prefetch_hit_bytes),
            ("prefetch_most_bytes", &self.prefetch_most_bytes),
            ("prefetch_exchanged_bytes", &self.prefetch_exchanged_bytes),
            ("requests_of_servers", &self.server_requests),
            ("bytes_to_servers", &self.server_bytes),
            ("whole_requests", &self.whole),
            ("whole_request_bytes", &self.whole_bytes),
            ("whole_request_own_bytes", &self.own_bytes),
            ("whole_requests_broken", &self.whole_broken),
            ("matching_sum_millionths", &self.matching_millionths),
            ("hops", &self.hops),
            ("internal_directed", &self.internal),
            ("internal_bytes", &self.between_bytes),
            ("clients_remapped", &self.remapped),
            ("forwarded_requests", &self.forwarded),
            ("forwarded_bytes", &self.forwarded_bytes),
            ("directed_operations", &self.directed),
            ("directed_ranks", &self.directed_ranks),
            ("directed_blocks", &self.directed_blocks),
            ("directed_rounds", &self.directed_rounds),
            ("directed_packets", &self.directed_packets),
            ("directed_bytes", &self.directed_bytes),
            ("directed_overlaps", &self.directed_overlaps),
            ("directed_failed", &self.directed_failed),
            ("directed_most_bytes", &self.directed_most_bytes),
        ];
        // Owners stand in the layout, so no request is ever broadcast; counted for those who compare.
        let mut list = vec![counter("internal_broadcast", 0)];
        let named = named
            .into_iter()
            .map(|(name, value)| counter(name, value.load(Ordering::Relaxed)));
        list.extend(named);
        for &status in Status::ALL {
            let count = self.refusals.get(usize::from(status.code()));
            let count = count.map_or(0, |c| c.load(Ordering::Relaxed));
            if count > 0 {
                let word = status.word().replace('-', "_");
                list.push(counter(&format!("refused_{word}"), count));
            }
        }
        list
    }
}

/// What a request counts for in a load, besides its bytes.
const REQUEST_BYTES: u64 = 4096;

/// How much a server had to do from one report to the next.
#[derive(Debug, Default)]
pub(crate) struct Load {
    before: u64,
}

impl Load {
    /// Bytes moved since the last time, and a page for each request.
    pub(crate) fn since(&mut self, now: &Statistics) -> u64 {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bytes = [&now.bytes_read, &now.bytes_written, &now.server_bytes];
        let sum = bytes.iter().fold(0u64, |sum, c| sum.wrapping_add(of(c)));
        let sum = sum.wrapping_add(of(&now.requests).wrapping_mul(REQUEST_BYTES));
        let since = sum.wrapping_sub(self.before);
        self.before = sum;
        since
    }
}

/// One counter.
pub(crate) fn counter(name: &str, value: u64) -> Counter {
    Counter {
        name: name.to_owned(),
        value,
    }
}
