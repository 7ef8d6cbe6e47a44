//! The size of one file, at the server that owns it.
//!
//! The size grows by what writes report before they return and by what the file's servers have, and shrinks or jumps only by
//! a truncate. A server where bytes may be written behind the end without a report is a *grower*: it announces itself
//! before the first of them, and the owner asks all growers before it tells a client the size.
//! A truncate is an *intent* in the catalogue with a new *epoch*; servers apply it before they serve
//! anything of that epoch, and whatever is reported about an earlier epoch is void from then on, so a
//! write that was overtaken cannot bring the old size back.
//!
//! ```text
//! client --Truncate-->  lower the hint, ask for the intent
//! catalogue --Intended-->  epoch + 1, size = to, tell the servers
//! servers --Applied-->  all that may still store: answer; all: the intent is done
//! ```
//!
//! While a server that can be reached has not cut, no client is told the size: one that knew it could have others write
//! behind it, directly and in the earlier epoch, and those bytes would be cut off after they were acknowledged. For the
//! same reason the truncate is not answered as long as a server that cannot be reached may live: clients of its
//! host may store there. It is answered without such a server once its start is known to be over, since a later start
//! cuts before it serves.
//!
//! A grower says with each answer whether it still is one. One that has announced itself again since it was asked stays: its
//! answer may be from before.
//!
//! A server that is new to the file, or comes back to it with another layout, is taken for a grower until it has said otherwise, for it may
//! have announced itself before. An owner that starts again takes all servers for growers. It takes the largest of the durable size and the ends that the file's
//! servers report, each capped by the pending truncate if its server has not applied that yet.
//!
//! Invariants
//! - Within an epoch the size never falls.
//! - The hint that others cache is never above the size: it is lowered before a truncate begins and
//!   raised after the size.
//! - One truncate at a time, in order of arrival. A server that cannot be reached keeps the intent alive; a client that
//!   waits is not told that it is done, and may give up.
//! - An end counts in the epoch it was read in only: one of an earlier epoch is capped by the pending truncate or
//!   ignored, and after one of a later epoch that epoch is learnt and the server asked again.
//! - No I/O, no clock: [`Event`] in, [`Effect`]s out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::locks::Ticket;
use wire::{ServerId, SizeState};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A write that began in this epoch has ended here; the writer waits for the answer.
    Wrote {
        /// Whose write.
        ticket: Ticket,
        /// Of which epoch.
        epoch: u64,
        /// One past its last byte.
        end: u64,
    },
    /// A client sets the size.
    Truncate {
        /// Who.
        ticket: Ticket,
        /// To what.
        to: u64,
    },
    /// The client that set the size waits no longer; what has not asked for its intent yet is dropped, what has goes on.
    Withdrawn(Ticket),
    /// The catalogue has a newer epoch than this owner: an intent arrived whose answer was lost.
    Overtaken(SizeState),
    /// The catalogue has the intent durably.
    Intended {
        /// Its epoch.
        epoch: u64,
    },
    /// The catalogue refused the intent.
    IntentRefused,
    /// A server has applied the truncate of this epoch.
    Applied {
        /// The server.
        server: ServerId,
        /// The epoch.
        epoch: u64,
    },
    /// Bytes may be written at this server behind the end from now on without a report.
    Announced(ServerId),
    /// A server that was asked says how far its bytes reach.
    EndIs {
        /// The server.
        server: ServerId,
        /// The number of its last announcement when it was asked ([`SizeOwner::growers`]).
        announcement: u64,
        /// The last epoch it has applied.
        epoch: u64,
        /// One past its last byte of the file.
        end: u64,
        /// Whether it is a grower still.
        grows: bool,
    },
    /// A server cannot be reached; it may come back with its bytes.
    ServerGone(ServerId),
    /// It is back, with the bytes it had.
    ServerBack(ServerId),
    /// The start of it that had bytes of the file is over, with everything that ran there; a later one cuts before
    /// it serves.
    ServerOver(ServerId),
    /// Its bytes are gone for good, or it has none of the file any more.
    ServerLost(ServerId),
    /// A server has bytes of the file from now on; what it has is counted already. It may have announced itself when it had
    /// some before, and will not do so again: it is taken for a grower until it says otherwise.
    ServerAdded(ServerId),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The write counts; the size is at least its end.
    Counted(Ticket),
    /// The write is of an old epoch; its server has to apply the truncate first.
    TooOld {
        /// Whose write.
        ticket: Ticket,
        /// The present epoch.
        epoch: u64,
    },
    /// What others may cache as size.
    Hint(u64),
    /// The catalogue is to record the intent ([`Event::Intended`] answers).
    Intend {
        /// Who asked.
        ticket: Ticket,
        /// The new size.
        to: u64,
    },
    /// Servers are to cut at this size ([`Event::Applied`] answers).
    Apply {
        /// The epoch that begins.
        epoch: u64,
        /// The new size.
        to: u64,
        /// The servers.
        servers: Vec<ServerId>,
    },
    /// The catalogue may forget the intent of this epoch.
    Finish {
        /// The epoch.
        epoch: u64,
    },
    /// A truncate is done.
    Truncated(Ticket),
    /// A truncate was refused.
    NotTruncated(Ticket),
    /// Servers are to say how far their bytes reach ([`Event::EndIs`] answers).
    AskEnds(Vec<ServerId>),
    /// This server knows a later epoch; the catalogue is to say which ([`Event::Overtaken`] answers).
    Behind(ServerId),
}

/// A truncate that has its intent.
#[derive(Clone, Debug)]
struct PendingTruncate {
    /// Nobody waits when the owner found it after a restart.
    ticket: Option<Ticket>,
    to: u64,
    /// Servers that have not cut.
    left: BTreeSet<ServerId>,
    /// Those of them where clients may still store what will be cut off.
    live: BTreeSet<ServerId>,
}

/// The size of a file.
#[derive(Debug)]
pub struct SizeOwner {
    size: u64,
    epoch: u64,
    /// Servers that hold bytes of the file, and whether they can be reached.
    servers: BTreeMap<ServerId, bool>,
    /// Servers whose ends are not known yet, after a restart.
    asked: BTreeSet<ServerId>,
    /// Servers where bytes may be written without a report, and how many announcements there were with their last one.
    growers: BTreeMap<ServerId, u64>,
    /// Announcements of all servers. It never falls, so an answer to a question from before a server was lost cannot be
    /// taken for one about the time since it was added again.
    announcements: u64,
    queue: VecDeque<(Ticket, u64)>,
    /// The first of the queue waits for its intent.
    intending: bool,
    cutting: Option<PendingTruncate>,
}

impl SizeOwner {
    /// For a file as it was created.
    pub fn new(servers: impl IntoIterator<Item = ServerId>) -> Self {
        SizeOwner {
            size: 0,
            epoch: 0,
            servers: servers.into_iter().map(|s| (s, true)).collect(),
            asked: BTreeSet::new(),
            growers: BTreeMap::new(),
            announcements: 0,
            queue: VecDeque::new(),
            intending: false,
            cutting: None,
        }
    }

    /// For a file whose owner is gone, from what the catalogue has.
    pub fn restarted(
        durable: SizeState,
        servers: impl IntoIterator<Item = ServerId>,
    ) -> (Self, Vec<Effect>) {
        let mut owner = SizeOwner::new(servers);
        owner.size = durable.size;
        owner.epoch = durable.epoch;
        owner.asked = owner.servers.keys().copied().collect();
        owner.growers = owner.asked.iter().map(|server| (*server, 0)).collect();
        let servers: Vec<ServerId> = owner.asked.iter().copied().collect();
        let mut effects = vec![Effect::AskEnds(servers)];
        if let Some(to) = durable.truncate_to {
            owner.cut(None, to, &mut effects);
        }
        owner.proceed(&mut effects);
        (owner, effects)
    }

    /// For a file whose size is the durable one: nothing was written that the catalogue does not
    /// know. A truncate that is pending is applied.
    pub fn known(
        durable: SizeState,
        servers: impl IntoIterator<Item = ServerId>,
    ) -> (Self, Vec<Effect>) {
        let mut owner = SizeOwner::new(servers);
        let mut effects = Vec::new();
        owner.size = durable.size;
        owner.epoch = durable.epoch;
        if let Some(to) = durable.truncate_to {
            owner.cut(None, to, &mut effects);
        }
        owner.proceed(&mut effects);
        (owner, effects)
    }

    /// The size; `None` while it is being found out, or a server that can be reached has not cut yet.
    pub fn size(&self) -> Option<u64> {
        (self.asked.is_empty() && !self.is_cutting()).then_some(self.size)
    }

    /// Whether all servers that an owner which has started asks by itself have answered.
    pub fn has_heard_all(&self) -> bool {
        self.asked.is_empty()
    }

    /// The size as far as it was heard of; never more than it is.
    pub fn at_least(&self) -> u64 {
        self.size
    }

    /// Whether a server that can be reached has still to cut.
    fn is_cutting(&self) -> bool {
        let mut left = self.cutting.iter().flat_map(|c| &c.left);
        left.any(|server| self.servers.get(server) == Some(&true))
    }

    /// Servers that have to be asked before the size is told, each with the number of its last announcement. Those whose ends
    /// are not known yet after a restart are asked already.
    pub fn growers(&self) -> impl Iterator<Item = (ServerId, u64)> {
        let growers = self.growers.iter().map(|(server, count)| (*server, *count));
        growers.filter(|(server, _)| !self.asked.contains(server))
    }

    /// The number of a server's last announcement; 0 if it is no grower.
    pub fn announcement(&self, server: ServerId) -> u64 {
        self.growers.get(&server).copied().unwrap_or(0)
    }

    /// Counts truncates; travels with every write.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Servers that cannot be reached and hold up the size, or the truncates in the queue.
    pub fn held_up_by(&self) -> Vec<ServerId> {
        let cutting = self.cutting.iter().flat_map(|c| &c.left);
        let all: BTreeSet<ServerId> = self.asked.iter().chain(cutting).copied().collect();
        all.into_iter()
            .filter(|s| self.servers.get(s) == Some(&false))
            .collect()
    }

    /// What the catalogue is to have at the next sync or close.
    pub fn report(&self) -> Option<(u64, u64)> {
        self.size().map(|size| (self.epoch, size))
    }

    /// Takes an event and says what is to be done.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Wrote { ticket, epoch, end } => {
                if epoch == self.epoch {
                    self.grow(end, &mut effects);
                    effects.push(Effect::Counted(ticket));
                } else {
                    let epoch = self.epoch;
                    effects.push(Effect::TooOld { ticket, epoch });
                }
            }
            Event::Truncate { ticket, to } => self.queue.push_back((ticket, to)),
            Event::Withdrawn(ticket) => {
                // The first has asked already if `intending`.
                let first = usize::from(self.intending);
                let found = self
                    .queue
                    .iter()
                    .skip(first)
                    .position(|(t, _)| *t == ticket);
                if let Some(at) = found {
                    self.queue.remove(first + at);
                    effects.push(Effect::NotTruncated(ticket));
                }
                if let Some(cutting) = &mut self.cutting {
                    cutting.ticket.take_if(|waiting| *waiting == ticket);
                }
            }
            Event::Overtaken(durable) => self.overtaken(durable, &mut effects),
            Event::Intended { epoch } => self.intended(epoch, &mut effects),
            Event::IntentRefused => {
                if std::mem::take(&mut self.intending)
                    && let Some((ticket, _)) = self.queue.pop_front()
                {
                    effects.push(Effect::Hint(self.size));
                    effects.push(Effect::NotTruncated(ticket));
                }
            }
            Event::Applied { server, epoch } => {
                if epoch == self.epoch
                    && let Some(cutting) = &mut self.cutting
                {
                    cutting.left.remove(&server);
                    cutting.live.remove(&server);
                }
            }
            Event::Announced(server) => self.expect_growth(server),
            Event::EndIs { server, epoch, .. } if epoch > self.epoch => {
                if self.asked.contains(&server) || self.growers.contains_key(&server) {
                    effects.push(Effect::Behind(server));
                }
            }
            Event::EndIs {
                server,
                announcement,
                epoch,
                end,
                grows,
            } => {
                let was_asked = self.asked.remove(&server);
                if was_asked || self.growers.contains_key(&server) {
                    self.size = self.size.max(self.believed(epoch, end));
                }
                if !grows && self.announcement(server) == announcement {
                    self.growers.remove(&server);
                }
            }
            Event::ServerGone(server) => {
                if let Some(reachable) = self.servers.get_mut(&server) {
                    *reachable = false;
                }
            }
            Event::ServerBack(server) => self.server_back(server, &mut effects),
            Event::ServerOver(server) => {
                if let Some(cutting) = &mut self.cutting {
                    cutting.live.remove(&server);
                }
            }
            Event::ServerLost(server) => {
                self.servers.remove(&server);
                self.asked.remove(&server);
                self.growers.remove(&server);
                if let Some(cutting) = &mut self.cutting {
                    cutting.left.remove(&server);
                    cutting.live.remove(&server);
                }
            }
            Event::ServerAdded(server) => {
                let is_new = self.servers.insert(server, true).is_none();
                if is_new {
                    self.expect_growth(server);
                }
                if let Some(cutting) = self.cutting.as_mut().filter(|_| is_new) {
                    cutting.left.insert(server);
                    cutting.live.insert(server);
                    effects.push(Effect::Apply {
                        epoch: self.epoch,
                        to: cutting.to,
                        servers: vec![server],
                    });
                }
            }
        }
        self.proceed(&mut effects);
        effects
    }

    /// [`Event::Wrote`] for a caller that needs neither ticket nor hint: whether it counts.
    /// Allocates nothing.
    pub fn wrote(&mut self, epoch: u64, end: u64) -> bool {
        let counts = epoch == self.epoch;
        if counts {
            self.size = self.size.max(end);
        }
        counts
    }

    /// The server is asked from now on, until it says that nothing grows there.
    fn expect_growth(&mut self, server: ServerId) {
        self.announcements += 1;
        self.growers.insert(server, self.announcements);
    }

    fn grow(&mut self, end: u64, effects: &mut Vec<Effect>) {
        if end > self.size {
            self.size = end;
            // While a truncate is on its way the hint stays low.
            if self.asked.is_empty() && !self.intending && !self.is_cutting() {
                effects.push(Effect::Hint(end));
            }
        }
    }

    /// How much of a reported end counts.
    fn believed(&self, epoch: u64, end: u64) -> u64 {
        match &self.cutting {
            _ if epoch == self.epoch => end,
            Some(cutting) => end.min(cutting.to),
            // It missed a truncate that is over: what it has is not to be believed.
            None => 0,
        }
    }

    fn intended(&mut self, epoch: u64, effects: &mut Vec<Effect>) {
        if !self.intending || epoch <= self.epoch {
            return;
        }
        self.intending = false;
        let Some((ticket, to)) = self.queue.pop_front() else {
            return;
        };
        self.epoch = epoch;
        self.size = to;
        self.cut(Some(ticket), to, effects);
    }

    fn overtaken(&mut self, durable: SizeState, effects: &mut Vec<Effect>) {
        // While an intent is asked for, the newer epoch is most likely its own, and its answer comes.
        if durable.epoch <= self.epoch || self.intending {
            return;
        }
        // A client that waited for a truncate of an earlier epoch has what it wanted: it is cut over.
        let waiting = self.cutting.take().and_then(|c| c.ticket);
        effects.extend(waiting.map(Effect::Truncated));
        self.epoch = durable.epoch;
        self.size = durable.size;
        effects.push(Effect::Hint(self.size));
        if !self.asked.is_empty() {
            // What they said was of an earlier epoch.
            let asked = self.asked.iter().copied();
            effects.push(Effect::AskEnds(
                asked
                    .filter(|s| self.servers.get(s) == Some(&true))
                    .collect(),
            ));
        }
        if let Some(to) = durable.truncate_to {
            self.cut(None, to, effects);
        }
    }

    /// Begins to apply the truncate of the present epoch everywhere.
    fn cut(&mut self, ticket: Option<Ticket>, to: u64, effects: &mut Vec<Effect>) {
        let left: BTreeSet<ServerId> = self.servers.keys().copied().collect();
        effects.push(Effect::Apply {
            epoch: self.epoch,
            to,
            servers: left.iter().copied().collect(),
        });
        self.cutting = Some(PendingTruncate {
            ticket,
            to,
            live: left.clone(),
            left,
        });
    }

    fn server_back(&mut self, server: ServerId, effects: &mut Vec<Effect>) {
        let Some(reachable) = self.servers.get_mut(&server) else {
            return;
        };
        *reachable = true;
        if let Some(cutting) = self.cutting.as_ref().filter(|c| c.left.contains(&server)) {
            effects.push(Effect::Apply {
                epoch: self.epoch,
                to: cutting.to,
                servers: vec![server],
            });
        }
        if self.asked.contains(&server) {
            effects.push(Effect::AskEnds(vec![server]));
        }
    }

    /// Does everything that has become possible.
    fn proceed(&mut self, effects: &mut Vec<Effect>) {
        if let Some(cutting) = &mut self.cutting {
            let waits = |s: &ServerId| self.servers.get(s) == Some(&true);
            if cutting.live.is_empty()
                && !cutting.left.iter().any(waits)
                && let Some(ticket) = cutting.ticket.take()
            {
                effects.push(Effect::Hint(self.size));
                effects.push(Effect::Truncated(ticket));
            }
            if cutting.left.is_empty() {
                self.cutting = None;
                effects.push(Effect::Finish { epoch: self.epoch });
            }
        }
        let idle = self.cutting.is_none() && !self.intending && self.asked.is_empty();
        if let Some(&(ticket, to)) = self.queue.front().filter(|_| idle) {
            self.intending = true;
            effects.push(Effect::Hint(self.size.min(to)));
            effects.push(Effect::Intend { ticket, to });
        }
    }
}

#[cfg(test)]
mod tests;
