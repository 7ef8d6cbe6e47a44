//! Staging buffers: a bounded number, lent first come first served, for one round at a time.
//!
//! Borrowers that wait stand in a queue and none of them is overtaken, but by those whose client or user has no share left:
//! they let others pass until they have given a buffer back. Since a borrower gives its buffer back after each
//! round and queues again, a long request cannot keep others out. No thread holds a buffer while waiting for
//! another, so there is no deadlock however small the pool is.
//!
//! A borrower holds its buffer while its peer sends or takes the bytes, and a peer may stand still. As long as no other
//! needs the buffer that is its own affair. When a borrower has waited for long, the connections of borrowers whose
//! peers are overdue ([`Connection::waits_for`]) are ended, and their buffers come back.
//!
//! Invariants
//! - No more than `count` buffers exist, however many ask.
//! - A client has at most a quarter of them at a time and a user at most half, at least one each: others always
//!   find some. Other servers are not limited; they hold buffers for clients that are, elsewhere.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sessions::{Connection, Who};
use parking_lot::{Condvar, Mutex};

/// One part in so many is the most that a client, or a user, has at a time.
const CLIENT_SHARE: usize = 4;
const USER_SHARE: usize = 2;
/// Between two looks at who holds what others wait for.
const LOOK: Duration = Duration::from_millis(200);

/// Who borrows.
#[derive(Clone)]
pub(crate) struct Borrower {
    /// The client and its user; nothing for another server.
    pub(crate) who: Option<(u64, u32)>,
    pub(crate) connection: Arc<Connection>,
}

impl Borrower {
    /// A client or server, over its connection.
    pub(crate) fn new(who: Who, connection: &Arc<Connection>) -> Borrower {
        Borrower {
            who: match who {
                Who::Client { client, user } => Some((client.0, user)),
                Who::Server(_) => None,
            },
            connection: Arc::clone(connection),
        }
    }
}

#[derive(Default)]
struct State {
    free: Vec<Vec<u8>>,
    made: usize,
    next_ticket: u64,
    /// Those who wait, in the order of their coming.
    queue: VecDeque<(u64, Option<(u64, u32)>)>,
    /// Those who have one.
    held: Vec<(u64, Borrower)>,
    most_lent: usize,
}

impl State {
    fn lent(&self) -> usize {
        self.made - self.free.len()
    }
}

/// All staging buffers of a server.
pub(crate) struct Buffers {
    buffer_bytes: usize,
    count: usize,
    patience: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

/// A buffer that goes back when dropped.
pub(crate) struct BufferLoan<'a> {
    pool: &'a Buffers,
    ticket: u64,
    bytes: Vec<u8>,
}

impl Buffers {
    /// Buffers of `buffer_bytes`, as many as `total_bytes` allow and at least one. Who has waited for `patience` ends
    /// the connections of those who are overdue.
    pub(crate) fn new(buffer_bytes: usize, total_bytes: u64, patience: Duration) -> Self {
        let count = (total_bytes / buffer_bytes as u64).max(1);
        Buffers {
            buffer_bytes,
            count: usize::try_from(count).unwrap_or(usize::MAX),
            patience,
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
        self.state.lock().lent()
    }

    /// Most buffers that were lent at once, and how many there may be.
    pub(crate) fn most_lent(&self) -> (usize, usize) {
        (self.state.lock().most_lent, self.count)
    }

    /// Takes the memory of so many bytes now; how many are there then. The limit holds.
    pub(crate) fn make(&self, bytes: u64) -> u64 {
        let wanted = usize::try_from(bytes.div_ceil(self.buffer_bytes as u64));
        let wanted = wanted.unwrap_or(usize::MAX).min(self.count);
        loop {
            let mut state = self.state.lock();
            if state.made >= wanted {
                return (state.made * self.buffer_bytes) as u64;
            }
            state.made += 1;
            drop(state);
            // Written to, so that the system gives the memory now.
            let fresh = std::hint::black_box(vec![1u8; self.buffer_bytes]);
            self.state.lock().free.push(fresh);
            self.changed.notify_all();
        }
    }

    /// Bytes of all buffers that there are.
    pub(crate) fn made_bytes(&self) -> u64 {
        (self.state.lock().made * self.buffer_bytes) as u64
    }

    /// Whether this client and user may have another one.
    fn has_share(&self, state: &State, who: Option<(u64, u32)>) -> bool {
        let Some((client, user)) = who else {
            return true;
        };
        let of = |is: &dyn Fn((u64, u32)) -> bool| {
            let held = state.held.iter();
            held.filter(|(_, b)| b.who.is_some_and(is)).count()
        };
        of(&|(c, _)| c == client) < (self.count / CLIENT_SHARE).max(1)
            && of(&|(_, u)| u == user) < (self.count / USER_SHARE).max(1)
    }

    /// Whether it is the turn of a ticket: a buffer is there, and no earlier one could take it.
    fn is_turn(&self, state: &State, ticket: u64) -> bool {
        if state.free.is_empty() && state.made >= self.count {
            return false;
        }
        let mut able = state
            .queue
            .iter()
            .filter(|(_, who)| self.has_share(state, *who));
        able.next().is_some_and(|(first, _)| *first == ticket)
    }

    /// A buffer, when it is this caller's turn; and whether it had to wait.
    pub(crate) fn borrow(&self, borrower: &Borrower) -> (BufferLoan<'_>, bool) {
        let mut state = self.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let is_alone = state.queue.is_empty();
        state.queue.push_back((ticket, borrower.who));
        let mut since: Option<Instant> = None;
        while !self.is_turn(&state, ticket) {
            let since = *since.get_or_insert_with(Instant::now);
            let look = LOOK.min(self.patience);
            let timeout = serving::waiting(|| self.changed.wait_for(&mut state, look));
            if timeout.timed_out() && since.elapsed() >= self.patience {
                for (_, held) in &state.held {
                    if held.connection.is_overdue() {
                        held.connection.end();
                    }
                }
            }
        }
        state.queue.retain(|(waiting, _)| *waiting != ticket);
        let found = state.free.pop();
        if found.is_none() {
            state.made += 1;
        }
        state.held.push((ticket, borrower.clone()));
        state.most_lent = state.most_lent.max(state.lent());
        drop(state);
        if !is_alone {
            self.changed.notify_all();
        }
        let bytes = found.unwrap_or_else(|| vec![0; self.buffer_bytes]);
        let lent = BufferLoan {
            pool: self,
            ticket,
            bytes,
        };
        (lent, since.is_some())
    }
}

impl Drop for BufferLoan<'_> {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut state = self.pool.state.lock();
        state.free.push(bytes);
        let held = state.held.iter().position(|(t, _)| *t == self.ticket);
        if let Some(held) = held {
            state.held.swap_remove(held);
        }
        let others_wait = !state.queue.is_empty();
        drop(state);
        if others_wait {
            self.pool.changed.notify_all();
        }
    }
}

impl Deref for BufferLoan<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for BufferLoan<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    const LONG: Duration = Duration::from_secs(600);

    fn server() -> Borrower {
        Borrower {
            who: None,
            connection: Arc::default(),
        }
    }

    fn of(client: u64, user: u32) -> Borrower {
        Borrower {
            who: Some((client, user)),
            ..server()
        }
    }

    /// Waits until so many have come.
    fn until_waiting(pool: &Buffers, count: usize) {
        while pool.state.lock().queue.len() < count {
            thread::yield_now();
        }
    }

    #[test]
    fn buffers_are_made_ahead_within_the_limit() {
        let pool = Buffers::new(1024, 4096, LONG);
        assert_eq!((pool.make(1500), pool.made_bytes()), (2048, 2048));
        let lent = pool.borrow(&server());
        assert_eq!((pool.lent(), pool.made_bytes()), (1, 2048));
        assert_eq!(pool.make(u64::MAX), 4096);
        drop(lent);
        assert_eq!((pool.lent(), pool.make(0)), (0, 4096));
    }

    #[test]
    fn seed004_s46_pool_keeps_its_limit_and_the_order_of_arrival() {
        let pool = Buffers::new(1024, 2048, LONG);
        let first = pool.borrow(&server());
        let second = pool.borrow(&server());
        assert!(!first.1 && !second.1);
        let (told, order) = mpsc::channel();
        thread::scope(|scope| {
            for i in 0..5usize {
                let (pool, told) = (&pool, told.clone());
                scope.spawn(move || {
                    let (lent, waited) = pool.borrow(&server());
                    assert!(waited);
                    told.send(i).unwrap();
                    drop(lent);
                });
                // The next one comes when this one has its ticket.
                until_waiting(pool, i + 1);
            }
            drop(first);
            let seen: Vec<usize> = order.iter().take(5).collect();
            assert_eq!(seen, [0, 1, 2, 3, 4]);
        });
        drop(second);
        assert_eq!(pool.most_lent(), (2, 2));
        assert_eq!(pool.state.lock().made, 2);
    }

    #[test]
    fn clients_and_users_have_shares_and_let_others_pass() {
        let pool = Buffers::new(1024, 8 << 10, LONG);
        // A client has two of eight, and its user four.
        let held: Vec<_> = (0..4).map(|i| pool.borrow(&of(i / 2, 7)).0).collect();
        let (told, order) = mpsc::channel();
        thread::scope(|scope| {
            for (number, who) in [of(0, 7), of(2, 7), of(9, 8)].into_iter().enumerate() {
                let (pool, told) = (&pool, told.clone());
                scope.spawn(move || {
                    let (lent, waited) = pool.borrow(&who);
                    // Before it is told: the count below is without it.
                    drop(lent);
                    told.send((number, waited)).unwrap();
                });
                if number < 2 {
                    until_waiting(pool, number + 1);
                }
            }
            // Another user passes both.
            assert_eq!(order.recv().unwrap(), (2, false));
            assert_eq!(pool.lent(), 4);
            drop(held);
            let mut rest = [order.recv().unwrap(), order.recv().unwrap()];
            rest.sort_unstable();
            assert_eq!(rest, [(0, true), (1, true)]);
        });
        assert_eq!((pool.lent(), pool.state.lock().held.len()), (0, 0));
    }
}
