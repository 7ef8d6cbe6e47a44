//! First come, first served: who waits for whom.
//!
//! A lock waits for every earlier one that conflicts with it, whether that one is held or waits
//! itself, and for nobody else. So
//! - no two conflicting locks are ever held, and nobody overtakes an earlier conflicting one;
//! - waiting goes from later to earlier only: there is no cycle, hence no deadlock, and a client that
//!   waits is granted when those before it are released;
//! - a released lock wakes all that waited for it alone, not just the first.
//!
//! A conflict is tested once per pair, when the later of the two arrives. The span index finds the
//! earlier locks whose spans meet a new one: it looks through those that start less than the longest
//! span before it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::conflict::Lock;
use super::{ClientId, Ticket};

#[derive(Debug)]
struct Entry {
    lock: Lock,
    waits_for: BTreeSet<u64>,
    waited_for_by: Vec<u64>,
}

/// All locks of a file, held or waiting, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    next: u64,
    entries: BTreeMap<u64, Entry>,
    by_ticket: HashMap<Ticket, u64>,
    /// Start of the span, arrival.
    spans: BTreeSet<(u64, u64)>,
    longest: u64,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn contains(&self, ticket: Ticket) -> bool {
        self.by_ticket.contains_key(&ticket)
    }

    /// Adds a lock; returns whether it is held at once.
    pub(crate) fn add(
        &mut self,
        lock: Lock,
        mut conflict: impl FnMut(&Lock, &Lock) -> bool,
    ) -> bool {
        let arrival = self.next;
        self.next += 1;
        let mut waits_for = BTreeSet::new();
        for earlier in self.meeting(&lock.span) {
            if conflict(&self.entries[&earlier].lock, &lock) {
                waits_for.insert(earlier);
            }
        }
        for earlier in &waits_for {
            if let Some(entry) = self.entries.get_mut(earlier) {
                entry.waited_for_by.push(arrival);
            }
        }
        if !lock.span.is_empty() {
            self.spans.insert((lock.span.start, arrival));
            self.longest = self.longest.max(lock.span.end - lock.span.start);
        }
        let held = waits_for.is_empty();
        self.by_ticket.insert(lock.ticket, arrival);
        let entry = Entry {
            lock,
            waits_for,
            waited_for_by: Vec::new(),
        };
        self.entries.insert(arrival, entry);
        held
    }

    /// Arrivals whose spans meet this one.
    fn meeting(&self, span: &Range<u64>) -> Vec<u64> {
        if span.is_empty() {
            return Vec::new();
        }
        let first = span.start.saturating_sub(self.longest);
        self.spans
            .range((first, 0)..(span.end, 0))
            .map(|(_, arrival)| *arrival)
            .filter(|arrival| self.entries[arrival].lock.span.end > span.start)
            .collect()
    }

    /// Removes a lock, held or waiting. Returns it, and who is granted by that, in order of arrival.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<(Lock, Vec<Ticket>)> {
        let arrival = self.by_ticket.remove(&ticket)?;
        let entry = self.entries.remove(&arrival)?;
        self.spans.remove(&(entry.lock.span.start, arrival));
        if self.spans.is_empty() {
            self.longest = 0;
        }
        for earlier in &entry.waits_for {
            if let Some(earlier) = self.entries.get_mut(earlier) {
                earlier.waited_for_by.retain(|later| *later != arrival);
            }
        }
        let mut granted = Vec::new();
        for later in entry.waited_for_by {
            let Some(waiting) = self.entries.get_mut(&later) else {
                continue;
            };
            waiting.waits_for.remove(&arrival);
            if waiting.waits_for.is_empty() {
                granted.push(waiting.lock.ticket);
            }
        }
        Some((entry.lock, granted))
    }

    /// Tickets of a client, in order of arrival, with whether each is held.
    pub(crate) fn of_client(&self, client: ClientId) -> Vec<(Ticket, bool)> {
        self.entries
            .values()
            .filter(|e| e.lock.ticket.client == client)
            .map(|e| (e.lock.ticket, e.waits_for.is_empty()))
            .collect()
    }

    /// Held tickets that another one waits for, in order of arrival.
    pub(crate) fn in_the_way_of(&self, ticket: Ticket) -> impl Iterator<Item = Ticket> + '_ {
        let entry = self.by_ticket.get(&ticket).map(|at| &self.entries[at]);
        let earlier = entry.into_iter().flat_map(|entry| &entry.waits_for);
        let earlier = earlier.map(|at| &self.entries[at]);
        let held = earlier.filter(|e| e.waits_for.is_empty());
        held.map(|e| e.lock.ticket)
    }

    /// Held tickets, in order of arrival.
    pub(crate) fn held(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.entries
            .values()
            .filter(|e| e.waits_for.is_empty())
            .map(|e| e.lock.ticket)
    }

    /// Waiting tickets, in order of arrival.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.entries
            .values()
            .filter(|e| !e.waits_for.is_empty())
            .map(|e| e.lock.ticket)
    }
}
