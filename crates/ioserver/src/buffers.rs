//! Staging buffers: a bounded number, lent first come first served, for one round at a time.
//!
//! Whoever waits holds a ticket; tickets are served in order, so nobody is overtaken, and since a
//! borrower gives its buffer back after each round and queues again, a long request cannot keep
//! others out. Nobody holds a buffer while waiting for another, so there is no deadlock however
//! small the pool is.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::files::lock;

#[derive(Default)]
struct State {
    free: Vec<Vec<u8>>,
    made: usize,
    next_ticket: u64,
    serving: u64,
    most_lent: usize,
}

/// All staging buffers of a server.
pub(crate) struct Buffers {
    buffer_bytes: usize,
    count: usize,
    state: Mutex<State>,
    changed: Condvar,
}

/// A buffer that goes back when dropped.
pub(crate) struct Lent<'a> {
    pool: &'a Buffers,
    bytes: Vec<u8>,
}

impl Buffers {
    /// Buffers of `buffer_bytes`, as many as `total_bytes` allow and at least one.
    pub(crate) fn new(buffer_bytes: usize, total_bytes: u64) -> Self {
        let count = (total_bytes / buffer_bytes as u64).max(1);
        Buffers {
            buffer_bytes,
            count: usize::try_from(count).unwrap_or(usize::MAX),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Bytes of one buffer.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Buffers that are lent now.
    pub(crate) fn lent(&self) -> usize {
        let state = lock(&self.state);
        state.made - state.free.len()
    }

    /// Most buffers that were lent at once, and how many there may be.
    pub(crate) fn most_lent(&self) -> (usize, usize) {
        (lock(&self.state).most_lent, self.count)
    }

    /// Takes the memory of so many bytes now; how many are there then. The limit holds.
    pub(crate) fn make(&self, bytes: u64) -> u64 {
        let wanted = usize::try_from(bytes.div_ceil(self.buffer_bytes as u64));
        let wanted = wanted.unwrap_or(usize::MAX).min(self.count);
        loop {
            let mut state = lock(&self.state);
            if state.made >= wanted {
                return (state.made * self.buffer_bytes) as u64;
            }
            state.made += 1;
            drop(state);
            // Written to, so that the system gives the memory now.
            let fresh = std::hint::black_box(vec![1u8; self.buffer_bytes]);
            lock(&self.state).free.push(fresh);
            self.changed.notify_all();
        }
    }

    /// Bytes of all buffers that there are.
    pub(crate) fn made_bytes(&self) -> u64 {
        (lock(&self.state).made * self.buffer_bytes) as u64
    }

    /// A buffer, when it is this caller's turn; and whether it had to wait.
    pub(crate) fn borrow(&self) -> (Lent<'_>, bool) {
        let mut state = lock(&self.state);
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let mut waited = false;
        while state.serving != ticket || (state.free.is_empty() && state.made == self.count) {
            waited = true;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.serving += 1;
        let found = state.free.pop();
        if found.is_none() {
            state.made += 1;
        }
        state.most_lent = state.most_lent.max(state.made - state.free.len());
        let others_wait = state.next_ticket != state.serving;
        drop(state);
        if others_wait {
            self.changed.notify_all();
        }
        let bytes = found.unwrap_or_else(|| vec![0; self.buffer_bytes]);
        (Lent { pool: self, bytes }, waited)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        lock(&self.pool.state).free.push(bytes);
        self.pool.changed.notify_all();
    }
}

impl Deref for Lent<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn buffers_are_made_ahead_within_the_limit() {
        let pool = Buffers::new(1024, 4096);
        assert_eq!((pool.make(1500), pool.made_bytes()), (2048, 2048));
        let lent = pool.borrow();
        assert_eq!((pool.lent(), pool.made_bytes()), (1, 2048));
        assert_eq!(pool.make(u64::MAX), 4096);
        drop(lent);
        assert_eq!((pool.lent(), pool.make(0)), (0, 4096));
    }

    #[test]
    fn seed004_s46_pool_keeps_its_limit_and_the_order_of_arrival() {
        let pool = Buffers::new(1024, 2048);
        let first = pool.borrow();
        let second = pool.borrow();
        assert!(!first.1 && !second.1);
        let (told, order) = mpsc::channel();
        thread::scope(|scope| {
            for i in 0..5u64 {
                let (pool, told) = (&pool, told.clone());
                scope.spawn(move || {
                    let (lent, waited) = pool.borrow();
                    assert!(waited);
                    told.send(i).unwrap();
                    drop(lent);
                });
                // The next one comes when this one has its ticket.
                while lock(&pool.state).next_ticket < 3 + i {
                    thread::yield_now();
                }
            }
            drop(first);
            let seen: Vec<u64> = order.iter().take(5).collect();
            assert_eq!(seen, [0, 1, 2, 3, 4]);
        });
        drop(second);
        assert_eq!(pool.most_lent(), (2, 2));
        assert_eq!(lock(&pool.state).made, 2);
    }
}
