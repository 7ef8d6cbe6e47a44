//! Condition variables: a queue of waiting threads at the manager of each.
//!
//! A wait lets its lock go only after the manager has noted it: a signal of the next holder cannot come before the wait it is meant for. A thread that is
//! woken asks for its lock as any other.

use std::collections::{BTreeMap, VecDeque};

use super::{Machine, Trouble};
use crate::message::Message;
use crate::page::PageMemory;

/// Conditions at one process.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    /// At the manager: who waits.
    queues: BTreeMap<u32, VecDeque<(u16, u64)>>,
    /// Own threads and their locks.
    waits: BTreeMap<u64, u32>,
}

impl Conditions {
    pub(super) fn take_tickets(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.waits).into_keys().collect()
    }
}

/// How many of those who wait are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// Who has waited longest.
    One,
    /// Everyone.
    All,
}

impl<M: PageMemory> Machine<M> {
    /// Lets a held lock go and waits for a condition. The ticket is ready when it was signalled and the lock is held again.
    ///
    /// # Errors
    ///
    /// If the lock is not held here.
    pub fn wait_for(&mut self, lock: u32, condition: u32, ticket: u64) -> Result<(), Trouble> {
        if self.refuses(ticket) {
            return Ok(());
        }
        if !self.lock_state(lock).1 {
            return Err(Trouble::NotHeld { lock });
        }
        self.conditions.waits.insert(ticket, lock);
        let manager = self.manager_of(condition);
        self.send(manager, Message::ConditionWait { condition, ticket });
        Ok(())
    }

    /// Tells those who wait for a condition. The caller holds their lock.
    pub fn signal(&mut self, condition: u32, wakes: Wakes) {
        let manager = self.manager_of(condition);
        self.send(
            manager,
            Message::ConditionSignal {
                condition,
                all: u8::from(wakes == Wakes::All),
            },
        );
    }

    pub(super) fn note_wait(&mut self, from: u16, condition: u32, ticket: u64) {
        let queue = self.conditions.queues.entry(condition).or_default();
        queue.push_back((from, ticket));
        self.send(from, Message::ConditionNoted { ticket });
    }

    pub(super) fn let_go(&mut self, ticket: u64) {
        let lock = self.conditions.waits[&ticket];
        self.release(lock)
            .expect("a thread that begins to wait holds its lock");
    }

    pub(super) fn spread_signal(&mut self, condition: u32, all: u8) {
        let queue = self.conditions.queues.entry(condition).or_default();
        let count = if all == 1 {
            queue.len()
        } else {
            queue.len().min(1)
        };
        let wakes: Vec<(u16, u64)> = queue.drain(..count).collect();
        for (to, ticket) in wakes {
            self.send(to, Message::ConditionWake { ticket });
        }
    }

    pub(super) fn wake(&mut self, ticket: u64) {
        let lock = self
            .conditions
            .waits
            .remove(&ticket)
            .expect("only who waits is woken");
        self.acquire(lock, ticket);
    }
}
