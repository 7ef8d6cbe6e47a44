//! What a server has counted since it started.
//!
//! Counters are relaxed atomics: each is right by itself, together they are a picture of about now.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::Status;
use wire::message::session::Counter;

/// Statuses that are counted.
const STATUSES: usize = 64;

/// Defines [`Statistics`] with a counter per line, and the name that it is listed under.
macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident as $name:literal,)*) => {
        /// All counters.
        #[derive(Default)]
        pub(crate) struct Statistics {
            $($(#[$doc])* pub(crate) $field: AtomicU64,)*
            refusals: Refusals,
        }

        impl Statistics {
            fn named(&self) -> impl Iterator<Item = (&'static str, &AtomicU64)> {
                [$(($name, &self.$field)),*].into_iter()
            }
        }
    };
}

counters! {
    requests as "requests",
    beats as "beats",
    reads as "reads",
    writes as "writes",
    bytes_read as "read_bytes",
    bytes_written as "written_bytes",
    straight as "straight_accesses",
    rounds as "rounds",
    buffer_waits as "buffer_waits",
    announced as "announced_writes",
    room_waits as "room_waits",
    pulled_bytes as "pulled_bytes",
    removals as "removals",
    write_back_errors as "write_back_errors",
    /// Writes that had to write back themselves, since too much was dirty.
    write_behind_waits as "write_behind_waits",
    ahead_loads as "ahead_loads",
    ahead_dropped as "ahead_dropped",
    ahead_hints as "ahead_hints",
    prefetches as "prefetches",
    prefetches_wrong as "prefetches_wrong",
    prefetches_void as "prefetches_void",
    prefetched_bytes as "prefetched_bytes",
    prefetch_hit_bytes as "prefetch_hit_bytes",
    prefetch_most_bytes as "prefetch_most_bytes",
    prefetch_exchanged_bytes as "prefetch_exchanged_bytes",
    server_requests as "requests_of_servers",
    server_bytes as "bytes_to_servers",
    /// Whole requests of clients, their bytes, those of them that were here, and where the rest went.
    whole as "whole_requests",
    whole_bytes as "whole_request_bytes",
    own_bytes as "whole_request_own_bytes",
    whole_broken as "whole_requests_broken",
    matching_millionths as "matching_sum_millionths",
    hops as "hops",
    internal as "internal_directed",
    between_bytes as "internal_bytes",
    remapped as "clients_remapped",
    /// Parts that other servers asked for.
    forwarded as "forwarded_requests",
    forwarded_bytes as "forwarded_bytes",
    /// Collective accesses that were directed here: how many, ranks that came, and what was done.
    directed as "directed_operations",
    directed_ranks as "directed_ranks",
    directed_blocks as "directed_blocks",
    directed_rounds as "directed_rounds",
    directed_packets as "directed_packets",
    directed_bytes as "directed_bytes",
    directed_overlaps as "directed_overlaps",
    directed_failed as "directed_failed",
    directed_most_bytes as "directed_most_bytes",
}

/// By status.
struct Refusals([AtomicU64; STATUSES]);

impl Default for Refusals {
    fn default() -> Self {
        Refusals(std::array::from_fn(|_| AtomicU64::new(0)))
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
        if let Some(counter) = self.refusals.0.get(usize::from(status.code())) {
            add(counter, 1);
        }
    }

    /// All of them by name; refusals only where there were any.
    pub(crate) fn list(&self) -> Vec<Counter> {
        // Owners stand in the layout, so no request is ever broadcast; counted for those who compare.
        let mut list = vec![counter("internal_broadcast", 0)];
        let named = self.named();
        list.extend(named.map(|(name, value)| counter(name, value.load(Ordering::Relaxed))));
        for &status in Status::ALL {
            let count = self.refusals.0.get(usize::from(status.code()));
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
