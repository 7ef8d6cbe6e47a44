//! One process of the shared memory as a machine: faults, synchronisation and messages go in, messages and threads that may
//! go on come out.
//!
//! There are no sockets, threads or clocks here, so the same machine runs below real memory and in the simulator.
//!
//! Invariants (numbers of the specification of source 003, 5.18)
//! - I2: the own entry of the time is the number of own records.
//! - I3: a page that may be read or written has every version that was noticed.
//! - I4: a page has a twin exactly if it is dirty and at home elsewhere (home-based).
//! - I5: a page may be written only while it is in the dirty set.
//! - I8: a record is taken once and in order; messages that are ahead of their time wait in `deferred`.
//!
//! Left to others: what a page's bytes are (`PageMemory`), how messages travel, which thread a ticket stands for.

mod barriers;
mod check;
pub(crate) mod conditions;
pub(crate) mod files;
mod home;
mod homeless;
mod locks;
mod records;
mod sequential;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::message::{Message, Record};
use crate::page::{Access, Page, PageMemory, Permission, State, Waiter};
use crate::statistics::Statistics;
use crate::time::{VectorTime, Versions};

use barriers::Barriers;
use conditions::Conditions;
use locks::Lock;

/// How copies of pages are kept alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Every page has a home, to which changes go when an interval ends.
    HomeBased,
    /// Changes stay with who made them until they are asked for, as in TreadMarks.
    Homeless,
    /// One writer or many readers at any time: any program sees one order of all accesses.
    Sequential,
}

/// Ways to be wrong, for tests that have to notice.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// As it should be.
    None,
    /// The first page of a record is forgotten.
    DropNotice,
    /// Patches are applied last first.
    ReverseOrder,
    /// Runs of a diff bridge unchanged bytes.
    MergeRuns,
    /// Pages are compared with their twins while they may still be written.
    ProtectLate,
    /// A page that is older than what is noticed by now is taken nevertheless.
    AcceptStale,
}

/// What all processes of a memory agree on.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How many processes there are.
    pub processes: u16,
    /// How many pages.
    pub pages: u32,
    /// How copies are kept alike.
    pub protocol: Protocol,
    /// Threads of each process that come to barriers.
    pub threads: usize,
    /// Pages behind a missing one that are asked for with it, where they are missing too and have the same home.
    pub prefetch: u32,
    /// Records (home-based) or bytes of patches (homeless) that are kept before garbage is collected.
    pub kept_most: u64,
    /// For tests.
    #[doc(hidden)]
    pub mutation: Mutation,
}

impl Setting {
    /// The home-based protocol among so many processes, with so many pages.
    pub fn new(processes: u16, pages: u32) -> Setting {
        Setting {
            processes,
            pages,
            protocol: Protocol::HomeBased,
            threads: 1,
            prefetch: 0,
            kept_most: 1 << 20,
            mutation: Mutation::None,
        }
    }
}

/// Why nothing works any more, or why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A process ended while others counted on it.
    Lost {
        /// Which.
        process: u16,
    },
    /// The exchange with the other processes is broken.
    CutOff,
    /// A process came to another barrier than the others, or twice to one.
    BarriersDiffer {
        /// Which.
        process: u16,
    },
    /// A process changed pages while another replaced their contents by those of a file.
    Unsynchronised {
        /// Which.
        process: u16,
    },
    /// A lock was released that is not held here.
    NotHeld {
        /// Which.
        lock: u32,
    },
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Lost { process } => {
                write!(f, "process {process} of the shared memory has ended")
            }
            Trouble::CutOff => write!(f, "the exchange with the other processes is broken"),
            Trouble::BarriersDiffer { process } => {
                write!(
                    f,
                    "process {process} came to another barrier than process 0"
                )
            }
            Trouble::Unsynchronised { process } => {
                write!(
                    f,
                    "process {process} writes pages that another process fills from a file; have a barrier between them"
                )
            }
            Trouble::NotHeld { lock } => write!(f, "lock {lock} is released but not held"),
        }
    }
}

impl std::error::Error for Trouble {}

/// What a machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this.
    Send {
        /// To whom.
        to: u16,
        /// What.
        message: Message,
    },
    /// The layer above has post.
    Letter(files::Letter),
    /// The thread with this ticket may go on.
    Ready {
        /// Which.
        ticket: u64,
    },
    /// The thread with this ticket will wait in vain.
    Failed {
        /// Which.
        ticket: u64,
        /// Why.
        trouble: Trouble,
    },
}

/// One process.
#[derive(Debug)]
pub struct Machine<M> {
    me: u16,
    setting: Setting,
    /// The memory below.
    pub memory: M,
    time: VectorTime,
    /// Known records that another process may lack, by process and ascending.
    log: Vec<VecDeque<Record>>,
    /// Records up to here are no longer in the log.
    floor: VectorTime,
    poll: Option<(VectorTime, usize)>,
    dirty: BTreeSet<u32>,
    pages: Vec<Page>,
    locks: BTreeMap<u32, Lock>,
    barriers: Barriers,
    conditions: Conditions,
    /// Messages that came before what they stand on.
    deferred: Vec<(u16, Message)>,
    /// Requests for pages that lack versions here.
    unserved: Vec<(u16, Vec<(u32, Versions)>)>,
    /// Pages, first and count, that a ticket waits for until they have all that is noticed.
    settling: Vec<(u32, u32, u64)>,
    outputs: Vec<Output>,
    trouble: Option<Trouble>,
    statistics: Statistics,
    phase: u32,
}

impl<M: PageMemory> Machine<M> {
    /// Process `me`. Page `p` is at home at process `homes(p)`, which is to be the same function everywhere.
    pub fn new(me: u16, setting: Setting, memory: M, homes: impl Fn(u32) -> u16) -> Machine<M> {
        assert!(
            me < setting.processes,
            "process {me} of {}",
            setting.processes
        );
        let count = usize::from(setting.processes);
        let mut machine = Machine {
            me,
            memory,
            time: VectorTime::zero(count),
            log: vec![VecDeque::new(); count],
            floor: VectorTime::zero(count),
            poll: None,
            dirty: BTreeSet::new(),
            pages: (0..setting.pages)
                .map(|page| Page::new(homes(page)))
                .collect(),
            locks: BTreeMap::new(),
            barriers: Barriers::new(count),
            conditions: Conditions::default(),
            deferred: Vec::new(),
            unserved: Vec::new(),
            settling: Vec::new(),
            outputs: Vec::new(),
            trouble: None,
            statistics: Statistics::default(),
            phase: 0,
            setting,
        };
        for page in 0..machine.setting.pages {
            if machine.page(page).home == me {
                machine.page_mut(page).state = State::Invalid;
            }
        }
        machine
    }

    /// What is to be done since the last call.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Counters.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What this process knows.
    pub fn time(&self) -> &VectorTime {
        &self.time
    }

    /// How copies are kept alike.
    pub fn protocol(&self) -> Protocol {
        self.setting.protocol
    }

    /// Who is at home where: the home or manager of a page.
    pub fn home_of(&self, page: u32) -> u16 {
        self.page(page).home
    }

    /// The state of a page.
    pub fn state_of(&self, page: u32) -> State {
        self.page(page).state
    }

    /// Records that are kept for others.
    pub fn kept_records(&self) -> usize {
        self.log.iter().map(VecDeque::len).sum()
    }

    /// In which phases, of the first 64, the program read and wrote a page: one bit each.
    pub fn accesses_of(&self, page: u32) -> (u64, u64) {
        (self.page(page).was_read, self.page(page).was_written)
    }

    /// How often a page came from elsewhere.
    pub fn fetches_of(&self, page: u32) -> u32 {
        self.page(page).fetches
    }

    /// Begins the next phase of the program: accesses are noted apart from those before.
    pub fn begin_phase(&mut self) {
        self.phase += 1;
    }

    /// Why nothing works any more, if so.
    pub fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// The program touches a page that does not allow it. The ticket is ready when it may try again.
    pub fn fault(&mut self, page: u32, kind: Access, ticket: u64) {
        if self.refuses(ticket) {
            return;
        }
        let bit = 1 << self.phase.min(63);
        let entry = self.page_mut(page);
        match kind {
            Access::Read => entry.was_read |= bit,
            Access::Write => entry.was_written |= bit,
        }
        match kind {
            Access::Read => self.statistics.read_faults += 1,
            Access::Write => self.statistics.write_faults += 1,
        }
        let entry = self.page_mut(page);
        // What is judged is the page as it is now: the event may be older than that.
        match (entry.state, kind) {
            (State::Dirty, _) | (State::ReadOnly, Access::Read) => {
                return self.outputs.push(Output::Ready { ticket });
            }
            _ => entry.waiters.push(Waiter { kind, ticket }),
        }
        match self.setting.protocol {
            Protocol::HomeBased => self.open_at_home(page),
            Protocol::Homeless => self.open_homeless(page),
            Protocol::Sequential => self.open_sequential(page),
        }
    }

    /// Takes a message. Those of one process come in the order in which it sent them.
    pub fn receive(&mut self, from: u16, message: Message) {
        if self.trouble.is_some() {
            return;
        }
        if !self.is_due(&message) || self.is_behind(from, &message, self.deferred.len()) {
            return self.deferred.push((from, message));
        }
        self.handle(from, message);
        self.retry();
    }

    /// A process has ended.
    pub fn lose(&mut self, process: u16) {
        self.fail(Trouble::Lost { process });
    }

    /// No message will come or go any more: others find that out for themselves.
    pub fn cut_off(&mut self) {
        if self.trouble.is_none() {
            self.end(Trouble::CutOff);
        }
    }

    fn retry(&mut self) {
        let is_next = |machine: &Machine<M>, at: usize| {
            let (from, message) = &machine.deferred[at];
            machine.is_due(message) && !machine.is_behind(*from, message, at)
        };
        while let Some(at) = (0..self.deferred.len()).find(|at| is_next(self, *at)) {
            let (from, message) = self.deferred.remove(at);
            self.handle(from, message);
        }
    }

    /// Whether an earlier flush of the sender waits, among the first deferred messages: an older change must not come after a newer one.
    fn is_behind(&self, from: u16, message: &Message, first: usize) -> bool {
        let is_flush = |message: &Message| matches!(message, Message::Flush { .. });
        is_flush(message)
            && self.deferred[..first]
                .iter()
                .any(|(other, earlier)| *other == from && is_flush(earlier))
    }

    /// Whether all that a message stands on has happened here.
    fn is_due(&self, message: &Message) -> bool {
        let is_of_collection = matches!(
            message,
            Message::DiffRequest { .. }
                | Message::DiffReply { .. }
                | Message::CollectDone {}
                | Message::CollectGo {}
                | Message::Abort { .. }
        );
        if self.barriers.is_collecting() && !is_of_collection {
            // Processes that are done with it go on already; what they say is about a time that has not begun here.
            return false;
        }
        match message {
            Message::PageRequest { epoch, pages } => {
                *epoch <= self.barriers.epoch
                    && pages.iter().all(|(page, _)| !self.page(*page).is_moving)
            }
            Message::Flush { epoch, diffs, .. } => {
                *epoch <= self.barriers.epoch
                    && diffs.iter().all(|(page, _)| !self.page(*page).is_moving)
            }
            Message::LockGrant { base, .. } => self.time.covers(base),
            Message::Post { base, epoch, .. } => {
                // Homes are those of its barrier, and at home.
                self.time.covers(base) && *epoch <= self.barriers.epoch && self.barriers.moving == 0
            }
            _ => true,
        }
    }

    fn handle(&mut self, from: u16, message: Message) {
        match message {
            Message::PageRequest { pages, .. } => self.serve_pages(from, pages),
            Message::PageReply { pages } => self.take_pages(from, pages),
            Message::Flush { index, diffs, .. } => self.take_flush(from, index, diffs),
            Message::DiffRequest { page, have } => self.serve_patches(from, page, &have),
            Message::DiffReply { page, patches } => self.take_patches(page, patches),
            Message::LockRequest { lock, time } => self.manage_lock(lock, from, time),
            Message::LockForward { lock, to, time } => self.pass_lock(lock, to, time),
            Message::LockGrant { lock, records, .. } => self.take_lock(lock, records),
            Message::BarrierArrive {
                id,
                epoch,
                time,
                records,
                homes,
                kept_bytes,
            } => {
                self.note_arrival(from, id, epoch, time, records, homes, kept_bytes);
            }
            Message::BarrierDepart {
                time,
                records,
                homes,
                collect,
            } => {
                self.depart(time, records, &homes, collect);
            }
            Message::ConditionWait { condition, ticket } => self.note_wait(from, condition, ticket),
            Message::ConditionNoted { ticket } => self.let_go(ticket),
            Message::ConditionSignal { condition, all } => self.spread_signal(condition, all),
            Message::ConditionWake { ticket } => self.wake(ticket),
            Message::TimePoll {} => self.send(
                from,
                Message::TimeReply {
                    time: self.time.clone(),
                },
            ),
            Message::TimeReply { time } => self.take_time(&time),
            Message::CollectDone {} => self.note_collected(),
            Message::CollectGo {} => self.drop_garbage(),
            Message::GetShared { page } => self.note_wish(from, page, Access::Read),
            Message::GetExclusive { page } => self.note_wish(from, page, Access::Write),
            Message::Data {
                page,
                exclusive,
                bytes,
            } => self.take_data(page, exclusive, &bytes.0),
            Message::Recall { page, keep } => self.give_up(page, keep),
            Message::Yield { page, bytes } => self.take_back(page, &bytes.0),
            Message::Greeting {} => {}
            Message::Post {
                question,
                time,
                records,
                bytes,
                ..
            } => self.take_post(files::Letter {
                from,
                is_question: question == 1,
                time,
                records,
                bytes: bytes.0,
            }),
            Message::Abort { trouble, process } => self.end(match trouble {
                0 => Trouble::Lost { process },
                1 => Trouble::BarriersDiffer { process },
                _ => Trouble::Unsynchronised { process },
            }),
        }
    }

    fn page(&self, page: u32) -> &Page {
        &self.pages[page as usize]
    }

    fn page_mut(&mut self, page: u32) -> &mut Page {
        &mut self.pages[page as usize]
    }

    /// Sends, or hands over at once what is for this process itself.
    fn send(&mut self, to: u16, message: Message) {
        if to == self.me {
            return self.receive(to, message);
        }
        self.statistics.sent(&message);
        self.outputs.push(Output::Send { to, message });
    }

    fn ready(&mut self, ticket: u64) {
        self.outputs.push(Output::Ready { ticket });
    }

    /// Whether all is over, in which case the ticket is told.
    fn refuses(&mut self, ticket: u64) -> bool {
        if let Some(trouble) = self.trouble {
            self.outputs.push(Output::Failed { ticket, trouble });
        }
        self.trouble.is_some()
    }

    /// Tells all processes and all threads that it is over.
    fn fail(&mut self, trouble: Trouble) {
        if self.trouble.is_some() {
            return;
        }
        let (code, process) = match trouble {
            Trouble::Lost { process } => (0, process),
            Trouble::BarriersDiffer { process } => (1, process),
            Trouble::Unsynchronised { process } => (2, process),
            Trouble::NotHeld { .. } | Trouble::CutOff => unreachable!("not told to others"),
        };
        let me = self.me;
        for to in (0..self.setting.processes)
            .filter(|to| *to != me && trouble != Trouble::Lost { process: *to })
        {
            self.send(
                to,
                Message::Abort {
                    trouble: code,
                    process,
                },
            );
        }
        self.end(trouble);
    }

    /// Lets every waiting thread fail.
    fn end(&mut self, trouble: Trouble) {
        self.trouble = Some(trouble);
        let mut tickets: Vec<u64> = Vec::new();
        for page in &mut self.pages {
            tickets.extend(page.waiters.drain(..).map(|waiter| waiter.ticket));
        }
        for lock in self.locks.values_mut() {
            tickets.extend(lock.waiting.drain(..));
        }
        tickets.append(&mut self.barriers.tickets);
        tickets.extend(self.conditions.take_tickets());
        tickets.extend(self.settling.drain(..).map(|(_, _, ticket)| ticket));
        let fails = tickets
            .into_iter()
            .map(|ticket| Output::Failed { ticket, trouble });
        self.outputs.extend(fails);
    }

    /// Lets those go on who waited for a page that is now complete. A writer among them makes it dirty.
    fn admit(&mut self, page: u32) {
        let waiters = std::mem::take(&mut self.page_mut(page).waiters);
        if waiters.iter().any(|waiter| waiter.kind == Access::Write) {
            self.make_dirty(page);
        } else if self.page(page).state != State::Dirty {
            self.page_mut(page).state = State::ReadOnly;
            self.memory.allow(page, Permission::Reading);
        }
        for waiter in waiters {
            self.ready(waiter.ticket);
        }
    }

    fn make_dirty(&mut self, page: u32) {
        let is_home =
            self.setting.protocol == Protocol::HomeBased && self.page(page).home == self.me;
        if !is_home && self.page(page).twin.is_none() {
            let twin = self.memory.copy_out(page);
            self.page_mut(page).twin = Some(twin);
            self.statistics.twins += 1;
        }
        self.page_mut(page).state = State::Dirty;
        self.dirty.insert(page);
        self.memory.allow(page, Permission::Writing);
    }

    /// Takes a page from the program; its contents stay.
    fn invalidate(&mut self, page: u32) {
        let entry = self.page_mut(page);
        if matches!(entry.state, State::ReadOnly | State::Dirty) {
            entry.state = State::Invalid;
            self.statistics.invalidations += 1;
            self.memory.allow(page, Permission::Nothing);
        }
    }
}

type SharedTime = Arc<VectorTime>;
