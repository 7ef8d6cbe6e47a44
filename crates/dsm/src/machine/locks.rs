//! Locks: a token that stays with its last holder, a manager that knows who asked last, and a queue of one at each process.
//!
//! Process `lock mod processes` manages a lock and holds its token at first. It sends each wish on to who asked before; so wishes are granted in
//! the order in which they came to the manager (DSM-10), and no process has more than one successor. Releasing a lock that nobody waits for
//! says nothing: the interval ends when the token leaves.

use std::collections::VecDeque;

use super::{Machine, Trouble};
use crate::message::{Message, Record};
use crate::page::PageMemory;
use crate::time::VectorTime;

/// One lock at one process.
#[derive(Debug)]
pub(super) struct Lock {
    has_token: bool,
    is_held: bool,
    was_requested: bool,
    successor: Option<(u16, VectorTime)>,
    /// Who asked last: known to the manager.
    tail: u16,
    /// Threads of this process, in the order in which they came.
    pub(super) waiting: VecDeque<u64>,
}

impl<M: PageMemory> Machine<M> {
    fn lock(&mut self, lock: u32) -> &mut Lock {
        let manager = self.manager_of(lock);
        let me = self.me;
        self.locks.entry(lock).or_insert_with(|| Lock {
            has_token: manager == me,
            is_held: false,
            was_requested: false,
            successor: None,
            tail: manager,
            waiting: VecDeque::new(),
        })
    }

    /// The process that manages a lock or a condition.
    pub(super) fn manager_of(&self, number: u32) -> u16 {
        (number % u32::from(self.setting.processes)) as u16
    }

    /// Wants a lock. The ticket is ready when it is held.
    pub fn acquire(&mut self, lock: u32, ticket: u64) {
        if self.refuses(ticket) {
            return;
        }
        let entry = self.lock(lock);
        if entry.has_token && !entry.is_held && entry.waiting.is_empty() {
            entry.is_held = true;
            return self.ready(ticket);
        }
        entry.waiting.push_back(ticket);
        self.ask(lock);
    }

    /// Takes a lock that is free and here. Otherwise the token is asked for, so that trying again succeeds before long.
    pub fn try_acquire(&mut self, lock: u32) -> Option<()> {
        let entry = self.lock(lock);
        let is_free = entry.has_token && !entry.is_held && entry.waiting.is_empty();
        if is_free {
            entry.is_held = true;
        } else {
            self.ask(lock);
        }
        is_free.then_some(())
    }

    /// A thread waits no longer for a lock. Nothing if it has it already: the ticket is or will be ready.
    pub fn abandon(&mut self, lock: u32, ticket: u64) -> Option<()> {
        let waiting = &mut self.lock(lock).waiting;
        let at = waiting.iter().position(|other| *other == ticket)?;
        waiting.remove(at);
        Some(())
    }

    fn ask(&mut self, lock: u32) {
        let manager = self.manager_of(lock);
        let entry = self.lock(lock);
        if entry.has_token || entry.was_requested {
            return;
        }
        entry.was_requested = true;
        let time = self.time.clone();
        self.send(manager, Message::LockRequest { lock, time });
    }

    /// Lets a lock go.
    ///
    /// # Errors
    ///
    /// If it is not held here.
    pub fn release(&mut self, lock: u32) -> Result<(), Trouble> {
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        let entry = self.lock(lock);
        if !entry.is_held {
            return Err(Trouble::NotHeld { lock });
        }
        entry.is_held = false;
        self.hand_on(lock);
        Ok(())
    }

    /// A free token goes to the successor, or to the next thread here.
    fn hand_on(&mut self, lock: u32) {
        let entry = self.lock(lock);
        if let Some((to, time)) = entry.successor.take() {
            self.grant(lock, to, &time);
            if !self.lock(lock).waiting.is_empty() {
                self.ask(lock);
            }
        } else if let Some(ticket) = entry.waiting.pop_front() {
            entry.is_held = true;
            self.ready(ticket);
        }
    }

    pub(super) fn manage_lock(&mut self, lock: u32, from: u16, time: VectorTime) {
        let last = std::mem::replace(&mut self.lock(lock).tail, from);
        self.send(
            last,
            Message::LockForward {
                lock,
                to: from,
                time,
            },
        );
    }

    pub(super) fn pass_lock(&mut self, lock: u32, to: u16, time: VectorTime) {
        let entry = self.lock(lock);
        assert!(
            entry.successor.is_none(),
            "a process has at most one successor for a lock"
        );
        entry.successor = Some((to, time));
        if entry.has_token && !entry.is_held {
            self.hand_on(lock);
        }
    }

    fn grant(&mut self, lock: u32, to: u16, time: &VectorTime) {
        self.end_interval();
        self.lock(lock).has_token = false;
        let records = self.records_beyond(time);
        let base = self.floor.clone();
        self.send(
            to,
            Message::LockGrant {
                lock,
                base,
                records,
            },
        );
    }

    pub(super) fn take_lock(&mut self, lock: u32, records: Vec<Record>) {
        self.incorporate(records);
        let entry = self.lock(lock);
        assert!(!entry.has_token, "a lock has one token");
        entry.has_token = true;
        entry.was_requested = false;
        if let Some(ticket) = entry.waiting.pop_front() {
            entry.is_held = true;
            self.ready(ticket);
        } else if entry.successor.is_some() {
            self.hand_on(lock);
        }
    }

    /// Whether the token of a lock is here, and whether a thread holds the lock.
    pub fn lock_state(&self, lock: u32) -> (bool, bool) {
        let at_first = self.manager_of(lock) == self.me;
        self.locks
            .get(&lock)
            .map_or((at_first, false), |l| (l.has_token, l.is_held))
    }
}
