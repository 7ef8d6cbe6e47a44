//! Barriers: all processes come, then all know what all knew; homes of pages move and garbage is collected there.
//!
//! Process 0 manages. A barrier is named by its number and by how many barriers a process has left before, so that processes that come to different ones are told
//! (DSM-11). After a barrier every record is known everywhere, so none is kept.

use std::collections::BTreeMap;

use super::{Machine, Output, Protocol, Trouble};
use crate::message::{Message, Record};
use crate::page::{PageMemory, State};
use crate::time::VectorTime;

/// New homes: first page, count, process.
pub(super) type Homes = Vec<(u32, u32, u16)>;

/// A process that has come.
#[derive(Debug)]
struct Arrival {
    id: u32,
    epoch: u32,
    time: VectorTime,
    records: Vec<Record>,
    homes: Homes,
    kept_bytes: u64,
}

/// Barriers at one process.
#[derive(Debug)]
pub(super) struct Barriers {
    /// Barriers left.
    pub(super) epoch: u32,
    pub(super) tickets: Vec<u64>,
    /// The last own interval before the last barrier.
    index: u32,
    /// What this process wants to have at home elsewhere.
    homes: Homes,
    /// At process 0.
    arrivals: Vec<Option<Arrival>>,
    /// Pages whose contents are still to come to their new home here.
    pub(super) moving: usize,
    /// Pages kept here that are not up to date, while garbage is collected.
    pub(super) collecting: Option<usize>,
    /// At process 0: processes that have theirs.
    pub(super) collected: usize,
}

impl Barriers {
    pub(super) fn new(count: usize) -> Barriers {
        Barriers {
            epoch: 0,
            tickets: Vec::new(),
            index: 0,
            homes: Vec::new(),
            arrivals: (0..count).map(|_| None).collect(),
            moving: 0,
            collecting: None,
            collected: 0,
        }
    }

    pub(super) fn is_collecting(&self) -> bool {
        self.collecting.is_some()
    }
}

impl<M: PageMemory> Machine<M> {
    /// Pages `first .. first + count` get another home with the next barrier (home-based).
    pub fn set_home(&mut self, first: u32, count: u32, to: u16) {
        assert_eq!(
            self.setting.protocol,
            Protocol::HomeBased,
            "only the home-based protocol has homes that move"
        );
        assert!(
            to < self.setting.processes && first + count <= self.setting.pages,
            "a home outside the memory"
        );
        self.barriers.homes.push((first, count, to));
    }

    /// A thread comes to a barrier. The ticket is ready when all threads of all processes have come.
    pub fn arrive(&mut self, id: u32, ticket: u64) {
        if self.refuses(ticket) {
            return;
        }
        if self.barriers.tickets.len() >= self.setting.threads {
            let trouble = Trouble::BarriersDiffer { process: self.me };
            return self.outputs.push(Output::Failed { ticket, trouble });
        }
        self.barriers.tickets.push(ticket);
        if self.barriers.tickets.len() < self.setting.threads {
            return;
        }
        self.end_interval();
        let records = self.own_records_after(self.barriers.index);
        let kept_bytes = if self.setting.protocol == Protocol::Homeless {
            self.kept_bytes()
        } else {
            0
        };
        let message = Message::BarrierArrive {
            id,
            epoch: self.barriers.epoch,
            time: self.time.clone(),
            records,
            homes: std::mem::take(&mut self.barriers.homes),
            kept_bytes,
        };
        self.send(0, message);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    pub(super) fn note_arrival(
        &mut self,
        from: u16,
        id: u32,
        epoch: u32,
        time: VectorTime,
        records: Vec<Record>,
        homes: Homes,
        kept_bytes: u64,
    ) {
        let arrival = Arrival {
            id,
            epoch,
            time,
            records,
            homes,
            kept_bytes,
        };
        let before = self.barriers.arrivals[usize::from(from)].replace(arrival);
        assert!(before.is_none(), "a process comes to a barrier once");
        if self.barriers.arrivals.iter().any(Option::is_none) {
            return;
        }
        let arrivals: Vec<Arrival> = self
            .barriers
            .arrivals
            .iter_mut()
            .map_while(Option::take)
            .collect();
        let expected = (arrivals[0].id, arrivals[0].epoch);
        if let Some(process) = arrivals.iter().position(|a| (a.id, a.epoch) != expected) {
            return self.fail(Trouble::BarriersDiffer {
                process: process as u16,
            });
        }
        let kept_most = arrivals.iter().map(|a| a.kept_bytes).max().unwrap_or(0);
        let collect = u8::from(
            self.setting.protocol == Protocol::Homeless && kept_most > self.setting.kept_most,
        );
        let mut homes = Homes::new();
        let mut times = Vec::new();
        for arrival in arrivals {
            self.incorporate(arrival.records);
            homes.extend(arrival.homes);
            times.push(arrival.time);
        }
        // The last is this process: what it sends to itself it takes at once.
        for (to, time) in times.iter().enumerate().rev() {
            let records = self.records_beyond(time);
            let message = Message::BarrierDepart {
                time: self.time.clone(),
                records,
                homes: homes.clone(),
                collect,
            };
            self.send(to as u16, message);
        }
    }

    pub(super) fn depart(
        &mut self,
        time: VectorTime,
        records: Vec<Record>,
        homes: &Homes,
        collect: u8,
    ) {
        self.incorporate(records);
        assert_eq!(self.time, time, "after a barrier all know the same");
        self.barriers.epoch += 1;
        self.barriers.index = self.time.of(self.me);
        self.drop_records(&time);
        self.statistics.barriers += 1;
        self.move_homes(homes);
        if collect == 1 {
            self.begin_collection();
        } else if self.barriers.moving == 0 {
            self.leave_barrier();
        }
    }

    fn move_homes(&mut self, homes: &Homes) {
        // The last wish for a page counts.
        let wishes = homes
            .iter()
            .flat_map(|(first, count, to)| (*first..first + count).map(|page| (page, *to)));
        let wishes: BTreeMap<u32, u16> = wishes.collect();
        for (page, to) in wishes {
            let before = std::mem::replace(&mut self.page_mut(page).home, to);
            if to != self.me || before == self.me {
                continue;
            }
            self.statistics.homes_moved += 1;
            let entry = self.page(page);
            // A copy that is up to date is all there is; else the home before has, or will have, the rest.
            let is_held = !matches!(entry.state, State::Empty | State::Fetching);
            if !is_held || !entry.have.covers(&entry.need) {
                self.page_mut(page).is_moving = true;
                self.barriers.moving += 1;
                self.request(page, before);
            }
        }
    }

    pub(super) fn note_moved(&mut self) {
        self.barriers.moving -= 1;
        if self.barriers.moving == 0 {
            self.leave_barrier();
        }
    }

    pub(super) fn leave_barrier(&mut self) {
        for ticket in std::mem::take(&mut self.barriers.tickets) {
            self.ready(ticket);
        }
    }
}
