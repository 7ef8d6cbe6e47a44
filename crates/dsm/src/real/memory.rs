//! A process of a shared memory: its machine, its threads, and what a program calls.
//!
//! Three threads stand beside the program: one takes messages, one sends them, one serves faults. None of them waits for an answer of another
//! process: each hands what it has to the machine, which says at once what follows.

use std::collections::{HashMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use client::Team;
use parking_lot::{Condvar, Mutex};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;

use super::array::{Element, SharedArray};
use super::region::{Backing, Guard, PAGE_BYTES, Region, RegionPages};
use crate::codec::{Code, Reader};
use crate::machine::conditions::Wakes;
use crate::machine::files::Letter;
use crate::machine::{Machine, Output, Protocol, Setting, Trouble};
use crate::message::Message;
use crate::page::{Access, Permission};
use crate::statistics::Statistics;

/// The tag of messages among machines.
const TAG: u64 = 0x7061_7269_6f64_736d;
/// Tickets of faults; others are those of calls.
const OF_FAULT: u64 = 1 << 63;
/// Where the memory lies in all processes.
const COMMON: usize = 0x6a00_0000_0000;
/// After so long without a message it is asked whether the others are there.
const PROBE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Where the memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// At the same place in all processes, so that what points into it may be stored in it.
    Common,
    /// Anywhere: several members in one process.
    Any,
}

/// How a shared memory is made; the same at all processes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its size, rounded up to pages.
    pub bytes: usize,
    /// How copies are kept alike.
    pub protocol: Protocol,
    /// How accesses are noticed. Nothing: userfaultfd where it works, else mprotect.
    pub backing: Option<Backing>,
    /// Where it lies.
    pub address: Address,
    /// Pages asked for along with a missing one.
    pub prefetch: u32,
}

impl Options {
    /// The home-based protocol, with what the host offers to notice accesses.
    pub fn new(bytes: usize) -> Options {
        Options {
            bytes,
            protocol: Protocol::HomeBased,
            backing: None,
            address: Address::Common,
            prefetch: 0,
        }
    }
}

/// What goes wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A process, a barrier or a lock.
    #[error("{0}")]
    Trouble(#[from] Trouble),
    /// The exchange among the processes is broken.
    #[error("the exchange among the processes of the shared memory is broken: {0}")]
    Team(#[from] client::Error),
    /// The operating system refuses to map the memory.
    #[error("cannot map a shared memory: {0}")]
    System(#[from] rustix::io::Errno),
    /// The memory has no room for an array.
    #[error("an array of {bytes} bytes does not fit: {left} bytes of the shared memory are left")]
    Full {
        /// What it takes.
        bytes: usize,
        /// What there is.
        left: usize,
    },
    /// A lock did not come in time.
    #[error("lock {lock} did not come within {} s", waited.as_secs_f64())]
    TimedOut {
        /// Which.
        lock: u32,
        /// How long.
        waited: Duration,
    },
}

type Result<T> = std::result::Result<T, Error>;

/// What threads of a process share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: Machine<RegionPages>,
    outbox: VecDeque<(u16, Message)>,
    finished: HashMap<u64, std::result::Result<(), Trouble>>,
    next_ticket: u64,
    /// Post of the layer above that nobody has taken: questions, and answers.
    pub(super) questions: VecDeque<Letter>,
    pub(super) answers: VecDeque<Letter>,
    /// Whether nobody takes questions any more.
    pub(super) is_desk_closed: bool,
    broken: Option<client::Error>,
    is_closing: bool,
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
    to_send: Condvar,
    pub(super) region: Arc<Region>,
    pub(super) team: Team,
    stop: OwnedFd,
}

impl Core {
    /// Does something to the machine, and what follows.
    pub(super) fn enter<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock();
        let result = act(&mut state);
        self.follow(&mut state);
        if state.machine.trouble().is_some() {
            // Who waits for post waits in vain.
            self.changed.notify_all();
        }
        result
    }

    pub(super) fn follow(&self, state: &mut State) {
        for output in state.machine.outputs() {
            match output {
                Output::Letter(posted) => self.put_down(state, posted),
                Output::Send { to, message } => {
                    state.outbox.push_back((to, message));
                    self.to_send.notify_one();
                }
                Output::Ready { ticket } if ticket & OF_FAULT != 0 => {
                    self.region.wake(ticket as u32)
                }
                Output::Failed { ticket, .. } if ticket & OF_FAULT != 0 => {
                    self.region.poison(ticket as u32)
                }
                Output::Ready { ticket } => {
                    state.finished.insert(ticket, Ok(()));
                    self.changed.notify_all();
                }
                Output::Failed { ticket, trouble } => {
                    state.finished.insert(ticket, Err(trouble));
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Keeps post for who takes it. Who asks where nobody answers any more gets an empty answer.
    fn put_down(&self, state: &mut State, posted: Letter) {
        if !posted.is_question {
            state.answers.push_back(posted);
        } else if state.is_desk_closed {
            state.machine.post_answer(posted.from, Vec::new());
            self.follow(state);
        } else {
            state.questions.push_back(posted);
        }
        self.changed.notify_all();
    }

    /// Does something with a new ticket and waits until that is ready.
    pub(super) fn complete(
        &self,
        act: impl FnOnce(&mut State, u64) -> std::result::Result<(), Trouble>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        state.next_ticket += 1;
        let ticket = state.next_ticket;
        act(&mut state, ticket)?;
        self.follow(&mut state);
        loop {
            if let Some(outcome) = state.finished.remove(&ticket) {
                return outcome.map_err(|trouble| self.explain(&state, trouble));
            }
            self.changed.wait(&mut state);
        }
    }

    /// What the exchange said, if it is why.
    pub(super) fn explain(&self, state: &State, trouble: Trouble) -> Error {
        match (&state.broken, trouble) {
            (Some(error), Trouble::CutOff) => Error::Team(error.clone()),
            _ => Error::Trouble(trouble),
        }
    }

    /// One access of a program whose memory is software: done while nothing else happens to the page.
    pub(super) fn access<R>(&self, at: usize, kind: Access, act: impl FnOnce(*mut u8) -> R) -> R {
        let page = (at / PAGE_BYTES) as u32;
        let enough = if kind == Access::Read {
            Permission::Reading
        } else {
            Permission::Writing
        };
        let mut state = self.state.lock();
        while state.machine.memory.allows(page) < enough {
            state.next_ticket += 1;
            let ticket = state.next_ticket;
            state.machine.fault(page, kind, ticket);
            self.follow(&mut state);
            let outcome = loop {
                match state.finished.remove(&ticket) {
                    Some(outcome) => break outcome,
                    None => self.changed.wait(&mut state),
                }
            };
            if let Err(trouble) = outcome {
                // As a page that is poisoned in hardware: there is no value to return.
                panic!("access to shared memory: {}", self.explain(&state, trouble));
            }
        }
        act(self.region.place(at))
    }

    fn serve_messages(&self) {
        loop {
            match self.team.try_receive(None, TAG) {
                Ok(Some(message)) if message.bytes.is_empty() => return,
                Ok(Some(message)) => self.take(&message),
                Ok(None) => {
                    let has_some = self.team.descriptor().map(|descriptor| {
                        let mut wanted = [PollFd::new(&descriptor, PollFlags::IN)];
                        poll(&mut wanted, Some(&PROBE)).is_ok_and(|count| count > 0)
                    });
                    if let Ok(false) = has_some {
                        self.probe();
                    }
                }
                Err(error) => {
                    return self.enter(|state| {
                        state.broken = Some(error);
                        state.machine.cut_off();
                    });
                }
            }
        }
    }

    fn take(&self, message: &client::Message) {
        let mut reader = Reader::new(&message.bytes);
        let from = message.from as u16;
        match Message::take(&mut reader).filter(|_| reader.is_empty()) {
            Some(message) => self.enter(|state| state.machine.receive(from, message)),
            None => self.enter(|state| state.machine.lose(from)),
        }
    }

    /// Asks after each process: one whose connection has ended is lost to all. A wait for a message of any process ends only with the last
    /// of them.
    fn probe(&self) {
        let me = self.team.rank();
        for rank in (0..self.team.size()).filter(|rank| *rank != me) {
            match self.team.try_receive(rank, TAG) {
                Ok(Some(message)) => self.take(&message),
                Ok(None) => {}
                Err(_) => self.enter(|state| state.machine.lose(rank as u16)),
            }
        }
    }

    fn send_messages(&self) {
        let mut bytes = Vec::new();
        let mut state = self.state.lock();
        loop {
            if let Some((to, message)) = state.outbox.pop_front() {
                parking_lot::MutexGuard::unlocked(&mut state, || {
                    bytes.clear();
                    message.put(&mut bytes);
                    // What cannot be sent is told to the thread that receives.
                    let _ = self.team.send(usize::from(to), TAG, &bytes);
                });
            } else if state.is_closing {
                return;
            } else {
                self.to_send.wait(&mut state);
            }
        }
    }

    fn serve_faults(&self) {
        let descriptor = match &self.region.guard {
            Guard::Userfault(userfault) => userfault.fd(),
            Guard::Protection(protection) => protection.fd(),
            Guard::Software => return,
        };
        loop {
            let mut wanted = [
                PollFd::new(&descriptor, PollFlags::IN),
                PollFd::new(&self.stop, PollFlags::IN),
            ];
            if poll(&mut wanted, None).is_err() {
                continue;
            }
            if !wanted[1].revents().is_empty() {
                return;
            }
            match &self.region.guard {
                Guard::Userfault(userfault) => {
                    for (page, kind) in userfault.faults() {
                        self.enter(|state| {
                            state.machine.fault(page, kind, OF_FAULT | u64::from(page))
                        });
                    }
                }
                Guard::Protection(protection) => {
                    let faults =
                        protection.faults(|page| self.state.lock().machine.memory.allows(page));
                    for (slot, page, kind) in faults {
                        self.enter(|state| {
                            state.machine.fault(page, kind, OF_FAULT | u64::from(slot))
                        });
                    }
                }
                Guard::Software => return,
            }
        }
    }
}

/// The right to access shared memory between two points of synchronisation. What is looked at with it cannot be looked at behind
/// the next one.
///
/// ```compile_fail,E0505
/// fn keeps_a_view(memory: &dsm::SharedMemory, epoch: dsm::Epoch, array: dsm::SharedArray<u64>) {
///     let view = memory.view(&epoch, array);
///     let epoch = memory.barrier(0, epoch).unwrap(); // `epoch` is borrowed by `view`
///     view.get(0);
/// }
/// ```
///
/// ```compile_fail,E0502
/// fn keeps_a_view_over_a_lock(memory: &dsm::SharedMemory, mut epoch: dsm::Epoch, array: dsm::SharedArray<u64>) {
///     let view = memory.view(&epoch, array);
///     let guard = memory.lock(0, &mut epoch).unwrap(); // taking a lock may change memory too
///     view.get(0);
/// }
/// ```
///
/// ```compile_fail,E0505
/// fn keeps_a_view_of_a_lock(memory: &dsm::SharedMemory, mut epoch: dsm::Epoch, array: dsm::SharedArray<u64>) {
///     let guard = memory.lock(0, &mut epoch).unwrap();
///     let view = memory.view(&guard, array);
///     drop(guard); // released while `view` looks
///     view.get(0);
/// }
/// ```
///
/// What is right compiles:
///
/// ```
/// fn sums(memory: &dsm::SharedMemory, mut epoch: dsm::Epoch, array: dsm::SharedArray<u64>) -> dsm::Result<dsm::Epoch> {
///     memory.view(&epoch, array).set(0, 1);
///     let guard = memory.lock(0, &mut epoch)?;
///     let view = memory.view(&guard, array);
///     view.set(1, view.get(1) + 1);
///     drop(guard);
///     memory.barrier(0, epoch)
/// }
/// ```
#[derive(Debug)]
pub struct Epoch {
    /// An epoch is of one thread.
    thread: PhantomData<*const ()>,
}

/// A lock that is held, and the epoch since it came. Dropping it lets the lock go.
#[derive(Debug)]
pub struct LockGuard<'a> {
    memory: &'a SharedMemory,
    lock: u32,
    epoch: Epoch,
    outer: PhantomData<&'a mut Epoch>,
}

impl std::ops::Deref for LockGuard<'_> {
    type Target = Epoch;

    fn deref(&self) -> &Epoch {
        &self.epoch
    }
}

impl std::ops::DerefMut for LockGuard<'_> {
    fn deref_mut(&mut self) -> &mut Epoch {
        &mut self.epoch
    }
}

impl LockGuard<'_> {
    /// Lets the lock go until a condition is signalled, and has it again when this returns.
    ///
    /// # Errors
    ///
    /// If a process has ended.
    pub fn wait(&mut self, condition: u32) -> Result<()> {
        let lock = self.lock;
        self.memory
            .core
            .complete(|state, ticket| state.machine.wait_for(lock, condition, ticket))
    }

    /// Tells those who wait for a condition.
    pub fn signal(&mut self, condition: u32, wakes: Wakes) {
        self.memory
            .core
            .enter(|state| state.machine.signal(condition, wakes));
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        // Only a memory that is broken refuses, and says so at the next call.
        let _ = self
            .memory
            .core
            .enter(|state| state.machine.release(self.lock));
    }
}

/// A memory that the processes of a team share.
#[derive(Debug)]
pub struct SharedMemory {
    pub(super) core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
    end: Mutex<usize>,
    bytes: usize,
}

impl SharedMemory {
    /// Makes a memory of zeros that the members of a team share. All call it with the same options.
    ///
    /// # Errors
    ///
    /// If the memory cannot be mapped, or a member is missing.
    pub fn start(team: Team, options: &Options) -> Result<(SharedMemory, Epoch)> {
        assert!(options.bytes > 0, "a shared memory has bytes");
        let pages = u32::try_from(options.bytes.div_ceil(PAGE_BYTES))
            .map_err(|_| rustix::io::Errno::NOMEM)?;
        let processes = u16::try_from(team.size()).expect("fewer than 65536 processes");
        let address = (options.address == Address::Common).then_some(COMMON);
        let map = |backing| Region::new(pages, address, backing);
        let region = match options.backing {
            Some(backing) => map(backing)?,
            None => map(Backing::Userfault).or_else(|_| map(Backing::Protection))?,
        };
        let region = Arc::new(region);
        let setting = Setting {
            protocol: options.protocol,
            prefetch: options.prefetch,
            ..Setting::new(processes, pages)
        };
        // Homes are dealt in blocks: process 0 has the first pages.
        let share = pages.div_ceil(u32::from(processes)).max(1);
        let memory = RegionPages::new(region.clone(), pages);
        let machine = Machine::new(team.rank() as u16, setting, memory, |page| {
            (page / share) as u16
        });
        let me = team.rank() as u16;
        let others = (0..processes).filter(|to| *to != me);
        let state = State {
            machine,
            // The end of a process is seen on its connection, so there is one to each.
            outbox: others.map(|to| (to, Message::Greeting {})).collect(),
            finished: HashMap::new(),
            next_ticket: 0,
            questions: VecDeque::new(),
            answers: VecDeque::new(),
            is_desk_closed: false,
            broken: None,
            is_closing: false,
        };
        let core = Arc::new(Core {
            state: Mutex::new(state),
            changed: Condvar::new(),
            to_send: Condvar::new(),
            region,
            team,
            stop: eventfd(0, EventfdFlags::CLOEXEC)?,
        });
        let works = [
            ("dsm-receive", Core::serve_messages as fn(&Core)),
            ("dsm-send", Core::send_messages),
            ("dsm-faults", Core::serve_faults),
        ];
        let threads = works.map(|(name, work)| {
            let core = core.clone();
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread
                .spawn(move || work(&core))
                .expect("a thread of the shared memory")
        });
        let memory = SharedMemory {
            core,
            threads: threads.into(),
            end: Mutex::new(0),
            bytes: pages as usize * PAGE_BYTES,
        };
        Ok((
            memory,
            Epoch {
                thread: PhantomData,
            },
        ))
    }

    /// For another thread of this process: it may access memory and take locks, and comes to no barrier.
    pub fn epoch_of_thread(&self) -> Epoch {
        Epoch {
            thread: PhantomData,
        }
    }

    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.core.team.rank()
    }

    /// How many processes share the memory.
    pub fn size(&self) -> usize {
        self.core.team.size()
    }

    /// The next array of the memory. All processes ask for the same arrays in the same order; it begins on a page of its own.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn array<T: Element>(&self, len: usize) -> Result<SharedArray<T>> {
        let mut end = self.end.lock();
        let bytes = len.saturating_mul(size_of::<T>());
        let left = self.bytes - *end;
        if bytes > left {
            return Err(Error::Full { bytes, left });
        }
        let array = SharedArray::new(*end, len);
        *end += bytes.next_multiple_of(PAGE_BYTES);
        Ok(array)
    }

    /// Where the memory begins in this process.
    pub fn address(&self) -> usize {
        self.core.region.place(0) as usize
    }

    /// Waits for all processes.
    ///
    /// # Errors
    ///
    /// If a process comes to another barrier, or has ended.
    pub fn barrier(&self, id: u32, epoch: Epoch) -> Result<Epoch> {
        self.core.complete(|state, ticket| {
            state.machine.arrive(id, ticket);
            Ok(())
        })?;
        Ok(epoch)
    }

    /// Waits for a lock.
    ///
    /// # Errors
    ///
    /// If a process has ended.
    pub fn lock<'a>(&'a self, lock: u32, _epoch: &'a mut Epoch) -> Result<LockGuard<'a>> {
        self.core.complete(|state, ticket| {
            state.machine.acquire(lock, ticket);
            Ok(())
        })?;
        Ok(self.guard(lock))
    }

    /// Takes a lock if it is free and here. Otherwise it is asked for, so that trying again succeeds before long.
    pub fn try_lock<'a>(&'a self, lock: u32, _epoch: &'a mut Epoch) -> Option<LockGuard<'a>> {
        self.core
            .enter(|state| state.machine.try_acquire(lock))
            .map(|()| self.guard(lock))
    }

    /// Waits for a lock, but not longer than this.
    ///
    /// # Errors
    ///
    /// If it did not come in time, or a process has ended.
    pub fn lock_for<'a>(
        &'a self,
        lock: u32,
        _epoch: &'a mut Epoch,
        time: Duration,
    ) -> Result<LockGuard<'a>> {
        let until = Instant::now() + time;
        let mut state = self.core.state.lock();
        state.next_ticket += 1;
        let ticket = state.next_ticket;
        state.machine.acquire(lock, ticket);
        self.core.follow(&mut state);
        loop {
            if let Some(outcome) = state.finished.remove(&ticket) {
                outcome.map_err(|trouble| self.core.explain(&state, trouble))?;
                return Ok(self.guard(lock));
            }
            let is_late = self.core.changed.wait_until(&mut state, until).timed_out();
            if is_late && state.machine.abandon(lock, ticket).is_some() {
                return Err(Error::TimedOut { lock, waited: time });
            }
        }
    }

    /// Lets a lock go whose guard was forgotten: for interfaces whose programs have no guards.
    ///
    /// # Errors
    ///
    /// If it is not held here.
    pub fn release(&self, lock: u32) -> Result<()> {
        let released = self.core.enter(|state| state.machine.release(lock));
        released.map_err(Error::Trouble)
    }

    /// As [`LockGuard::wait`], for a lock whose guard was forgotten.
    ///
    /// # Errors
    ///
    /// If it is not held here, or a process has ended.
    pub fn wait(&self, lock: u32, condition: u32) -> Result<()> {
        self.core
            .complete(|state, ticket| state.machine.wait_for(lock, condition, ticket))
    }

    /// As [`LockGuard::signal`], for a lock whose guard was forgotten.
    pub fn signal(&self, condition: u32, wakes: Wakes) {
        self.core
            .enter(|state| state.machine.signal(condition, wakes));
    }

    fn guard(&self, lock: u32) -> LockGuard<'_> {
        LockGuard {
            memory: self,
            lock,
            epoch: Epoch {
                thread: PhantomData,
            },
            outer: PhantomData,
        }
    }

    /// Pages of an array get another home with the next barrier (home-based protocol).
    pub fn set_home<T: Element>(
        &self,
        array: SharedArray<T>,
        elements: std::ops::Range<usize>,
        to: usize,
    ) {
        let (first, end) = array.pages(elements);
        let to = u16::try_from(to).expect("fewer than 65536 processes");
        self.core
            .enter(|state| state.machine.set_home(first, end - first, to));
    }

    /// Begins a phase of the program, for the record of accesses.
    pub fn begin_phase(&self) {
        self.core.enter(|state| state.machine.begin_phase());
    }

    /// In which phases this process read and wrote each page of an array: one bit per phase.
    pub fn accesses<T: Element>(&self, array: SharedArray<T>) -> Vec<(u64, u64)> {
        let (first, end) = array.pages(0..array.len());
        self.core.enter(|state| {
            (first..end)
                .map(|page| state.machine.accesses_of(page))
                .collect()
        })
    }

    /// Counters of this process.
    pub fn statistics(&self) -> Statistics {
        self.core.state.lock().machine.statistics().clone()
    }

    /// Leaves the memory together with all others.
    ///
    /// # Errors
    ///
    /// If a process has ended before.
    pub fn exit(self, epoch: Epoch) -> Result<()> {
        self.barrier(u32::MAX, epoch)?;
        let team = self.core.team.clone();
        drop(self);
        // From here on no thread takes messages, so that the team may share another memory.
        team.barrier().map_err(Error::Team)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        self.core.state.lock().is_closing = true;
        self.core.to_send.notify_all();
        let _ = rustix::io::write(&self.core.stop, &1u64.to_le_bytes());
        // An empty message ends the thread that takes messages, unless the team is broken, which ends it too.
        let _ = self.core.team.send(self.core.team.rank(), TAG, &[]);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
