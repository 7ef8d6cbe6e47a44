//! Machines in one thread whose messages are delivered at once, one after another: for tests that count.
//!
//! Messages wait in `held` while a test wants them to be on their way.

use std::collections::VecDeque;

use dsm::{Access, Machine, Message, Output, PageMemory, Permission, Setting, Trouble};

pub(crate) const PAGE: usize = 64;

pub(crate) struct Plain {
    bytes: Vec<u8>,
    pub(crate) allowed: Vec<Permission>,
}

impl PageMemory for Plain {
    fn allow(&mut self, page: u32, what: Permission) {
        self.allowed[page as usize] = what;
    }

    fn copy_out(&mut self, page: u32) -> Vec<u8> {
        self.bytes[page as usize * PAGE..][..PAGE].to_vec()
    }

    fn store(&mut self, page: u32, at: usize, bytes: &[u8]) {
        self.bytes[page as usize * PAGE + at..][..bytes.len()].copy_from_slice(bytes);
    }
}

pub(crate) struct Cluster {
    pub(crate) machines: Vec<Machine<Plain>>,
    flying: VecDeque<(u16, u16, Message)>,
    /// Kinds of messages that stay on their way.
    pub(crate) holds: Vec<&'static str>,
    pub(crate) held: Vec<(u16, u16, Message)>,
    /// What the layer above would have got, and where.
    pub(crate) posts: Vec<(u16, dsm::Letter)>,
    pub(crate) ready: Vec<(u16, u64)>,
    pub(crate) failed: Vec<(u16, u64, Trouble)>,
    ticket: u64,
}

impl Cluster {
    /// Page `p` of `n` processes is at home at process `p` modulo `n`.
    pub(crate) fn new(setting: &Setting) -> Cluster {
        let count = u32::from(setting.processes);
        Cluster::with_homes(setting, |page| (page % count) as u16)
    }

    pub(crate) fn with_homes(setting: &Setting, homes: impl Fn(u32) -> u16) -> Cluster {
        let pages = setting.pages as usize;
        let machines = (0..setting.processes).map(|me| {
            let memory = Plain {
                bytes: vec![0; pages * PAGE],
                allowed: vec![Permission::Nothing; pages],
            };
            Machine::new(me, setting.clone(), memory, &homes)
        });
        Cluster {
            machines: machines.collect(),
            flying: VecDeque::new(),
            holds: Vec::new(),
            held: Vec::new(),
            posts: Vec::new(),
            ready: Vec::new(),
            failed: Vec::new(),
            ticket: 0,
        }
    }

    pub(crate) fn settle(&mut self) {
        loop {
            for (from, machine) in self.machines.iter_mut().enumerate() {
                let from = from as u16;
                for output in machine.outputs() {
                    match output {
                        Output::Letter(posted) => self.posts.push((from, posted)),
                        Output::Ready { ticket } => self.ready.push((from, ticket)),
                        Output::Failed { ticket, trouble } => {
                            self.failed.push((from, ticket, trouble))
                        }
                        Output::Send { to, message } => self.flying.push_back((from, to, message)),
                    }
                }
            }
            let Some((from, to, message)) = self.flying.pop_front() else {
                return;
            };
            if self.holds.contains(&Message::KINDS[message.kind()]) {
                self.held.push((from, to, message));
            } else {
                self.machines[usize::from(to)].receive(from, message);
            }
        }
    }

    /// Delivers what was held.
    pub(crate) fn let_go(&mut self) {
        self.holds.clear();
        self.flying.extend(self.held.drain(..));
        self.settle();
    }

    /// Does something to one machine with a new ticket, and delivers what follows; returns the ticket.
    pub(crate) fn act(&mut self, process: u16, act: impl FnOnce(&mut Machine<Plain>, u64)) -> u64 {
        self.ticket += 1;
        act(&mut self.machines[usize::from(process)], self.ticket);
        self.settle();
        self.ticket
    }

    pub(crate) fn is_ready(&self, ticket: u64) -> bool {
        self.ready.iter().any(|(_, other)| *other == ticket)
    }

    pub(crate) fn machine(&self, process: u16) -> &Machine<Plain> {
        &self.machines[usize::from(process)]
    }

    #[track_caller]
    pub(crate) fn load(&mut self, process: u16, at: usize) -> u8 {
        self.open(process, at, Access::Read);
        self.machine(process).memory.bytes[at]
    }

    #[track_caller]
    pub(crate) fn store(&mut self, process: u16, at: usize, value: u8) {
        self.open(process, at, Access::Write);
        self.machines[usize::from(process)].memory.bytes[at] = value;
    }

    #[track_caller]
    fn open(&mut self, process: u16, at: usize, kind: Access) {
        let page = (at / PAGE) as u32;
        let enough = if kind == Access::Read {
            Permission::Reading
        } else {
            Permission::Writing
        };
        while self.machine(process).memory.allowed[page as usize] < enough {
            let ticket = self.act(process, |machine, ticket| machine.fault(page, kind, ticket));
            assert!(self.is_ready(ticket), "an access waits");
        }
    }

    #[track_caller]
    pub(crate) fn acquire(&mut self, process: u16, lock: u32) {
        let ticket = self.act(process, |machine, ticket| machine.acquire(lock, ticket));
        assert!(self.is_ready(ticket), "a lock waits");
    }

    #[track_caller]
    pub(crate) fn release(&mut self, process: u16, lock: u32) {
        self.act(process, |machine, _| {
            machine.release(lock).expect("a lock that is held")
        });
    }

    #[track_caller]
    pub(crate) fn barrier(&mut self, id: u32) {
        let tickets: Vec<u64> = (0..self.machines.len() as u16)
            .map(|process| self.act(process, |machine, ticket| machine.arrive(id, ticket)))
            .collect();
        assert!(
            tickets.iter().all(|ticket| self.is_ready(*ticket)),
            "a barrier waits"
        );
        for machine in &self.machines {
            machine.check().expect("invariants");
        }
    }

    pub(crate) fn messages(&self) -> u64 {
        self.machines
            .iter()
            .map(|machine| machine.statistics().all_messages())
            .sum()
    }

    /// How many messages something takes.
    pub(crate) fn counting(&mut self, what: impl FnOnce(&mut Cluster)) -> u64 {
        let before = self.messages();
        what(self);
        self.messages() - before
    }

    pub(crate) fn total(&self, count: impl Fn(&dsm::Statistics) -> u64) -> u64 {
        self.machines
            .iter()
            .map(|machine| count(machine.statistics()))
            .sum()
    }
}
