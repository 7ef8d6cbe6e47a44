//! Simulated processes, their network and the flat memory they are compared with.
//!
//! One step lets a random thread do its next operation, or delivers a random message. The world stops with what is wrong: a load that differs from the
//! flat memory, an invariant that does not hold, threads that all wait.

use random::Random;

use super::program::{Operation, Program};
use crate::codec::{Code, Reader};
use crate::link::Link;
use crate::machine::{Machine, Output, Protocol, Setting, Trouble};
use crate::message::Message;
use crate::page::{Access, PageMemory, Permission};
use crate::statistics::Statistics;

/// A store that another thread of the process does as soon as it may.
#[derive(Clone, Copy, Debug)]
struct Racer {
    thread: usize,
    at: usize,
    value: u8,
}

/// The memory of a simulated process.
#[derive(Debug)]
pub(crate) struct SimulatedMemory {
    page_bytes: usize,
    bytes: Vec<u8>,
    allowed: Vec<Permission>,
    racers: Vec<Racer>,
    raced: Vec<Racer>,
}

impl PageMemory for SimulatedMemory {
    fn allow(&mut self, page: u32, what: Permission) {
        self.allowed[page as usize] = what;
    }

    fn copy_out(&mut self, page: u32) -> Vec<u8> {
        let start = page as usize * self.page_bytes;
        let copy = self.bytes[start..][..self.page_bytes].to_vec();
        if self.allowed[page as usize] == Permission::Writing {
            // Nothing keeps another thread from storing right after the copy was made.
            let here = |racer: &Racer| racer.at / self.page_bytes == page as usize;
            let (now, later) = std::mem::take(&mut self.racers).into_iter().partition(here);
            self.racers = later;
            for racer in &now {
                self.bytes[racer.at] = racer.value;
            }
            self.raced.extend(now);
        }
        copy
    }

    fn store(&mut self, page: u32, at: usize, bytes: &[u8]) {
        let start = page as usize * self.page_bytes + at;
        self.bytes[start..][..bytes.len()].copy_from_slice(bytes);
    }
}

/// A thread: where it is in its program, and whether it waits.
#[derive(Debug)]
struct Thread {
    process: u16,
    next: usize,
    waits: bool,
    kept: u8,
    trouble: Option<Trouble>,
}

/// A message on its way.
#[derive(Debug)]
struct Packet {
    from: u16,
    to: u16,
    number: u64,
    bytes: Vec<u8>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The flat memory at the end; every process loaded all of it and had the same.
    pub memory: Vec<u8>,
    /// Counters by process.
    pub statistics: Vec<Statistics>,
    /// Steps it took.
    pub steps: u64,
    /// Why threads failed, by thread.
    pub troubles: Vec<Option<Trouble>>,
    /// A number that depends on everything that happened.
    pub trace: u64,
}

/// All processes, and the network between them.
#[derive(Debug)]
pub struct World {
    program: Program,
    machines: Vec<Machine<SimulatedMemory>>,
    threads: Vec<Thread>,
    flat: Vec<u8>,
    packets: Vec<Packet>,
    numbers: Vec<u64>,
    links: Vec<Link<Vec<u8>>>,
    random: Random,
    trace: u64,
    protocol: Protocol,
    /// The process that ends, and after how many steps.
    loss: Option<(u16, u64)>,
    ended: Option<u16>,
}

impl World {
    /// Processes that are to run a program.
    pub fn new(program: Program, setting: &Setting, random: Random) -> World {
        let shape = program.shape.clone();
        let processes = usize::from(shape.processes);
        let machines = (0..shape.processes).map(|me| {
            let memory = SimulatedMemory {
                page_bytes: shape.page_bytes,
                bytes: vec![0; shape.bytes()],
                allowed: vec![Permission::Nothing; shape.pages],
                racers: Vec::new(),
                raced: Vec::new(),
            };
            let setting = Setting {
                processes: shape.processes,
                pages: shape.pages as u32,
                threads: shape.threads,
                ..setting.clone()
            };
            Machine::new(me, setting, memory, |page| {
                (page % u32::from(shape.processes)) as u16
            })
        });
        World {
            machines: machines.collect(),
            threads: (0..processes * shape.threads)
                .map(|thread| Thread {
                    process: (thread / shape.threads) as u16,
                    next: 0,
                    waits: false,
                    kept: 0,
                    trouble: None,
                })
                .collect(),
            flat: vec![0; shape.bytes()],
            packets: Vec::new(),
            numbers: vec![0; processes * processes],
            links: (0..processes * processes)
                .map(|_| Link::default())
                .collect(),
            random,
            trace: 0,
            protocol: setting.protocol,
            loss: None,
            ended: None,
            program,
        }
    }

    /// Lets a process end after so many steps; the others hear of it some time later.
    pub fn losing(mut self, process: u16, steps: u64) -> World {
        self.loss = Some((process, steps));
        self
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    ///
    /// What is wrong, in words.
    pub fn run(mut self) -> Result<Outcome, String> {
        let mut steps = 0;
        let mut tell: Vec<u16> = Vec::new();
        loop {
            if let Some((process, _)) = self.loss.filter(|(_, after)| *after == steps) {
                self.ended = Some(process);
                self.packets.retain(|packet| packet.to != process);
                tell = (0..self.program.shape.processes)
                    .filter(|other| *other != process)
                    .collect();
            }
            let runnable: Vec<usize> = (0..self.threads.len())
                .filter(|t| self.is_runnable(*t))
                .collect();
            let choices = runnable.len() + self.packets.len() + tell.len();
            if choices == 0 {
                break;
            }
            let chosen = self.random.index(choices);
            if chosen < runnable.len() {
                self.step(runnable[chosen])?;
            } else if chosen < runnable.len() + self.packets.len() {
                self.deliver(chosen - runnable.len())?;
            } else {
                let process = tell.remove(chosen - runnable.len() - self.packets.len());
                let lost = self.ended.expect("a process has ended");
                self.machines[usize::from(process)].lose(lost);
                self.settle(process)?;
            }
            steps += 1;
            if steps % (8 * self.machines.len() as u64) == 0 {
                self.check()?;
            }
            if steps > 2_000_000 {
                return Err("goes on without an end".to_owned());
            }
        }
        self.check()?;
        for (number, thread) in self.threads.iter().enumerate() {
            let is_over = thread.next == self.program.threads[number].len();
            if !is_over && thread.trouble.is_none() && self.ended != Some(thread.process) {
                return Err(format!(
                    "thread {number} waits for ever at {:?}",
                    self.program.threads[number][thread.next]
                ));
            }
        }
        Ok(Outcome {
            memory: self.flat,
            statistics: self
                .machines
                .iter()
                .map(|m| m.statistics().clone())
                .collect(),
            steps,
            troubles: self.threads.iter().map(|thread| thread.trouble).collect(),
            trace: self.trace,
        })
    }

    fn is_runnable(&self, thread: usize) -> bool {
        let Thread {
            process,
            next,
            waits,
            trouble,
            ..
        } = &self.threads[thread];
        !waits
            && trouble.is_none()
            && self.ended != Some(*process)
            && *next < self.program.threads[thread].len()
    }

    /// Invariants of each process, and of all.
    fn check(&self) -> Result<(), String> {
        for machine in &self.machines {
            machine.check()?;
        }
        for lock in 0..self.program.shape.locks as u32 {
            let holders = self
                .machines
                .iter()
                .filter(|m| m.lock_state(lock).0)
                .count();
            if holders > 1 {
                return Err(format!("I1: lock {lock} has {holders} tokens"));
            }
        }
        Ok(())
    }

    fn note(&mut self, what: u64) {
        self.trace = random::mix(self.trace ^ what);
    }

    /// One thread does its next operation, as far as it can.
    fn step(&mut self, thread: usize) -> Result<(), String> {
        let operation = self.program.threads[thread][self.threads[thread].next];
        let process = self.threads[thread].process;
        self.note(thread as u64 + 1);
        self.arm(process, thread);
        let ticket = thread as u64;
        let machine = &mut self.machines[usize::from(process)];
        let kept = self.threads[thread].kept;
        match operation {
            Operation::Load { at } => self.access(thread, at, Access::Read)?,
            Operation::LoadIf { expected, at } if kept == expected => {
                self.access(thread, at, Access::Read)?
            }
            Operation::StoreIf { expected, at } if kept == expected => {
                self.access(thread, at, Access::Write)?
            }
            Operation::LoadIf { .. } | Operation::StoreIf { .. } => self.threads[thread].next += 1,
            Operation::Store { at, .. } | Operation::Add { at, .. } => {
                self.access(thread, at, Access::Write)?
            }
            Operation::Acquire { lock } => {
                machine.acquire(lock, ticket);
                self.pass_and_wait(thread);
            }
            Operation::Release { lock } => {
                self.threads[thread].next += 1;
                if let Err(trouble) = machine.release(lock) {
                    self.threads[thread].trouble = Some(trouble);
                }
            }
            Operation::SetHome { page, to } => {
                if self.protocol == Protocol::HomeBased {
                    machine.set_home(page, 1, to);
                }
                self.threads[thread].next += 1;
            }
            Operation::Barrier { id } => {
                machine.arrive(id, ticket);
                self.pass_and_wait(thread);
            }
        }
        self.settle(process)
    }

    /// The operation is over when the thread goes on.
    fn pass_and_wait(&mut self, thread: usize) {
        self.threads[thread].next += 1;
        self.threads[thread].waits = true;
    }

    fn access(&mut self, thread: usize, at: usize, kind: Access) -> Result<(), String> {
        let process = self.threads[thread].process;
        let page = at / self.program.shape.page_bytes;
        let machine = &mut self.machines[usize::from(process)];
        let enough = if kind == Access::Read {
            Permission::Reading
        } else {
            Permission::Writing
        };
        if machine.memory.allowed[page] < enough {
            self.threads[thread].waits = true;
            machine.fault(page as u32, kind, thread as u64);
            return Ok(());
        }
        let kept = self.threads[thread].kept;
        let operation = self.program.threads[thread][self.threads[thread].next];
        let there = machine.memory.bytes[at];
        let is_load = !matches!(
            operation,
            Operation::Store { .. } | Operation::StoreIf { .. }
        );
        if is_load && there != self.flat[at] {
            return Err(format!(
                "thread {thread} of process {process} loads {there} at {at}, {} was stored",
                self.flat[at]
            ));
        }
        let stored = match operation {
            Operation::Store { value, .. } => value,
            Operation::StoreIf { .. } => kept,
            Operation::Add { value, .. } => there.wrapping_add(value),
            _ => there,
        };
        if kind == Access::Write {
            machine.memory.bytes[at] = stored;
            self.flat[at] = stored;
        } else {
            self.threads[thread].kept = there;
        }
        self.note(u64::from(there) << 8 | at as u64);
        self.threads[thread].next += 1;
        Ok(())
    }

    /// Stores that other threads of the process are about to do: they may come in between.
    fn arm(&mut self, process: u16, stepping: usize) {
        let mut racers = Vec::new();
        for thread in (0..self.threads.len())
            .filter(|t| *t != stepping && self.threads[*t].process == process)
        {
            if self.is_runnable(thread)
                && let Operation::Store { at, value } =
                    self.program.threads[thread][self.threads[thread].next]
            {
                racers.push(Racer { thread, at, value });
            }
        }
        self.machines[usize::from(process)].memory.racers = racers;
    }

    fn deliver(&mut self, which: usize) -> Result<(), String> {
        let Packet {
            from,
            to,
            number,
            bytes,
        } = self.packets.swap_remove(which);
        self.note(number << 16 | u64::from(from) << 8 | u64::from(to));
        let pair = usize::from(to) * self.machines.len() + usize::from(from);
        for bytes in self.links[pair].take(number, bytes) {
            let mut reader = Reader::new(&bytes);
            let message = Message::take(&mut reader).filter(|_| reader.is_empty());
            let message = message.ok_or_else(|| "a message that cannot be read".to_owned())?;
            self.arm(to, usize::MAX);
            self.machines[usize::from(to)].receive(from, message);
            self.settle(to)?;
        }
        Ok(())
    }

    /// Does what a machine wants done.
    fn settle(&mut self, process: u16) -> Result<(), String> {
        for racer in std::mem::take(&mut self.machines[usize::from(process)].memory.raced) {
            self.flat[racer.at] = racer.value;
            self.threads[racer.thread].next += 1;
        }
        for output in self.machines[usize::from(process)].outputs() {
            match output {
                Output::Letter(_) => unreachable!("no layer above"),
                Output::Ready { ticket } => self.threads[ticket as usize].waits = false,
                Output::Failed { ticket, trouble } => {
                    self.threads[ticket as usize].trouble = Some(trouble)
                }
                Output::Send { to, message } => {
                    let pair = usize::from(process) * self.machines.len() + usize::from(to);
                    let number = self.numbers[pair];
                    self.numbers[pair] += 1;
                    if self.ended == Some(to) {
                        continue;
                    }
                    let mut bytes = Vec::new();
                    message.put(&mut bytes);
                    let copies = 1 + u64::from(self.random.below(16) == 0);
                    for _ in 0..copies {
                        self.packets.push(Packet {
                            from: process,
                            to,
                            number,
                            bytes: bytes.clone(),
                        });
                    }
                }
            }
        }
        Ok(())
    }
}
