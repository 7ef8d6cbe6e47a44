//! Work for others: what the machines want from the metadata manager and the file's servers.
//!
//! It is done without the file's mutex, by the thread whose event caused it, several servers at a
//! time; answers become events until nothing is left. A server that is not there is reported as
//! gone to the machines; one that is there but did not do it is asked again later
//! (`Owner::flush_dirty_sizes`), and until then whatever depends on it is not granted.

use std::collections::VecDeque;
use std::thread;

use control::{locks, sizes};
use wire::message::cluster::{ApplyTruncate, EndIs, Fence, FinishTruncate, Tell};
use wire::{ClientId, FileId, ServerId, Status};

use super::file::OwnedFile;
use super::{Owner, Refused};

/// Something to ask of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Fence {
        client: ClientId,
        servers: Vec<ServerId>,
    },
    Tell {
        number: u64,
        servers: Vec<ServerId>,
    },
    AskNumber(Vec<ServerId>),
    Apply {
        epoch: u64,
        to: u64,
        servers: Vec<ServerId>,
    },
    AskEnds(Vec<ServerId>),
    Finish {
        epoch: u64,
    },
    /// This server knows a later truncate than the owner.
    Learn(ServerId),
}

/// What an answer means to the machines.
enum Answer {
    End(EndIs),
    Size(sizes::Event),
    Lock(locks::Event),
}

impl Work {
    pub(super) fn servers(&self) -> &[ServerId] {
        match self {
            Work::Fence { servers, .. }
            | Work::Tell { servers, .. }
            | Work::AskNumber(servers)
            | Work::Apply { servers, .. }
            | Work::AskEnds(servers) => servers,
            Work::Finish { .. } | Work::Learn(_) => &[],
        }
    }

    fn servers_mut(&mut self) -> Option<&mut Vec<ServerId>> {
        match self {
            Work::Fence { servers, .. }
            | Work::Tell { servers, .. }
            | Work::AskNumber(servers)
            | Work::Apply { servers, .. }
            | Work::AskEnds(servers) => Some(servers),
            Work::Finish { .. } | Work::Learn(_) => None,
        }
    }

    /// Not for this server any more.
    pub(super) fn forget(&mut self, server: ServerId) {
        if let Some(servers) = self.servers_mut() {
            servers.retain(|s| *s != server);
        }
    }

    /// This work for one server alone.
    fn only_for(&self, server: ServerId) -> Work {
        let mut work = self.clone();
        if let Some(servers) = work.servers_mut() {
            *servers = vec![server];
        }
        work
    }

    fn is_about_size(&self) -> bool {
        matches!(self, Work::Apply { .. } | Work::AskEnds(_))
    }
}

impl Owner {
    /// Does work and what follows from it.
    pub(super) fn drive(&self, file: &OwnedFile, work: Vec<Work>) {
        let mut queue = VecDeque::from(work);
        while let Some(work) = queue.pop_front() {
            match work {
                Work::Finish { epoch } => {
                    // If it fails, it stays unfinished and is tried again.
                    let _ = self.finish(file, epoch);
                }
                Work::Learn(server) => queue.extend(self.learn_epoch(file, server)),
                work => queue.extend(self.ask_servers(file, &work)),
            }
        }
    }

    /// Asks the servers of a work, all at once, and says what follows.
    fn ask_servers(&self, file: &OwnedFile, work: &Work) -> Vec<Work> {
        let asked: Vec<(ServerId, u64, u64)> = {
            let state = file.lock();
            let known = |s: &ServerId| {
                let spell = state.servers.get(s)?.spell;
                Some((*s, spell, state.sizes.announcement(*s)))
            };
            work.servers().iter().filter_map(known).collect()
        };
        let servers: Vec<ServerId> = asked.iter().map(|(s, ..)| *s).collect();
        let answers = ask_all(&servers, |server| self.ask(file.id, work, server));
        let mut more = Vec::new();
        let mut state = file.lock();
        for ((server, spell, announcement), answer) in asked.into_iter().zip(answers) {
            if state.servers.get(&server).is_none_or(|p| p.spell != spell) {
                continue; // It went or came back meanwhile, and was asked again if need be.
            }
            match answer {
                Ok(Answer::End(end)) => state.end_is(server, announcement, &end, &mut more),
                Ok(Answer::Size(event)) => state.size_event(event, &mut more),
                Ok(Answer::Lock(event)) => {
                    if let locks::Event::Fenced { server, client } = event {
                        state.append_fenced(server, client);
                    }
                    state.lock_event(event, &self.counters, &mut more);
                }
                Err(Refused {
                    status: Status::Unreachable,
                    ..
                }) => {
                    state.server_gone(server, &self.counters, &mut more);
                }
                Err(refused) if work.is_about_size() => {
                    // It can be reached, so the size waits for it.
                    if let Some(part) = state.servers.get_mut(&server) {
                        part.late = Some((refused.status, refused.refusal.text));
                    }
                }
                Err(_) => state.again.push(work.only_for(server)),
            }
        }
        file.changed.notify_all();
        more
    }

    /// Asks one server; one that has just lost its connection gets a second chance.
    fn ask(&self, file: FileId, work: &Work, server: ServerId) -> Result<Answer, Refused> {
        match self.ask_once(file, work, server) {
            Err(Refused {
                status: Status::Unreachable,
                ..
            }) => self.ask_once(file, work, server),
            answer => answer,
        }
    }

    fn ask_once(&self, file: FileId, work: &Work, server: ServerId) -> Result<Answer, Refused> {
        let cluster = &*self.cluster;
        Ok(match *work {
            Work::Fence { client, .. } => {
                cluster.fence(server, &Fence { client })?;
                Answer::Lock(locks::Event::Fenced { server, client })
            }
            Work::Tell { number, .. } => {
                cluster.tell(server, &Tell { file, number })?;
                Answer::Lock(locks::Event::Told { server, number })
            }
            Work::AskNumber(_) => {
                let number = cluster.ask_number(server, file)?;
                Answer::Lock(locks::Event::NumberIs { server, number })
            }
            Work::Apply { epoch, to, .. } => {
                cluster.apply_truncate(server, &ApplyTruncate { file, epoch, to })?;
                Answer::Size(sizes::Event::Applied { server, epoch })
            }
            Work::AskEnds(_) | Work::Finish { .. } | Work::Learn(_) => {
                Answer::End(cluster.ask_end(server, file)?)
            }
        })
    }

    /// Asks the catalogue for the truncate that a server knows of and the owner does not. If that fails the server is
    /// asked again later.
    fn learn_epoch(&self, file: &OwnedFile, server: ServerId) -> Vec<Work> {
        let durable = self.cluster.file_state(file.id);
        let mut more = Vec::new();
        let mut state = file.lock();
        let before = state.sizes.epoch();
        if let Ok(told) = durable {
            state.size_event(sizes::Event::Overtaken(told.size), &mut more);
        }
        if state.sizes.epoch() == before
            && let Some(part) = state.servers.get_mut(&server)
        {
            part.late = Some((Status::Busy, "it knows of a later truncate".into()));
        }
        more
    }

    /// Tells the catalogue that a truncate is applied everywhere. Saying so twice is no mistake.
    pub(super) fn finish(&self, file: &OwnedFile, epoch: u64) -> Result<(), Refused> {
        let request = FinishTruncate {
            file: file.id,
            epoch,
        };
        let finished = self.cluster.finish_truncate(&request);
        self.heed(file.id, &finished);
        finished?;
        let mut state = file.lock();
        if state.unfinished == Some(epoch) {
            state.unfinished = None;
        }
        Ok(())
    }

    /// What servers did not do although they are there, and the ends of truncates.
    pub(super) fn do_again(&self, file: &OwnedFile) {
        let mut work;
        {
            let mut state = file.lock();
            work = std::mem::take(&mut state.again);
            let late = state.servers.iter_mut();
            let late: Vec<ServerId> = late
                .filter_map(|(server, part)| part.late.take().map(|_| *server))
                .collect();
            for server in late {
                state.size_event(sizes::Event::ServerBack(server), &mut work);
            }
            // One that could not be asked and that the list calls alive is asked again.
            if state.servers.values().any(|part| part.is_gone) {
                state.members_are(&self.members.lock(), &self.counters, &mut work);
            }
            if let Some(epoch) = state.unfinished {
                work.push(Work::Finish { epoch });
            }
        }
        self.drive(file, work);
    }
}

/// Asks several servers at a time; the answers in their order.
pub(super) fn ask_all<T: Send>(servers: &[ServerId], ask: impl Fn(ServerId) -> T + Sync) -> Vec<T> {
    if let [server] = servers {
        return vec![ask(*server)];
    }
    let ask = &ask;
    thread::scope(|scope| {
        let threads: Vec<_> = servers
            .iter()
            .map(|&server| {
                let started = thread::Builder::new()
                    .name("ask".into())
                    .spawn_scoped(scope, move || ask(server));
                // Without a thread to spare one asks by oneself.
                started.map_err(|_| ask(server))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread {
                Ok(thread) => match thread.join() {
                    Ok(answer) => answer,
                    Err(panic) => std::panic::resume_unwind(panic),
                },
                Err(answer) => answer,
            })
            .collect()
    })
}
