//! Which servers are there: what the list of members means to the files.
//!
//! | the list says | the file's machines hear |
//! |---|---|
//! | dead | the server is gone |
//! | alive, and it was thought gone | it is back, and is told what it may have missed |
//! | alive, another start that keeps the bytes | gone, then back: it remembers no number and no fence; the start before is over |
//! | a start that does not keep the bytes | gone for good |
//!
//! A server that could not be asked is gone too; as long as the list calls it alive it is asked again, about every
//! second.

use std::collections::BTreeMap;

use control::sizes;
use wire::ServerId;
use wire::message::catalogue::{Member, MemberState};

use super::Owner;
use super::file::{Phase, State};
use super::statistics::Counters;
use super::work::Work;

impl Owner {
    /// The list of members, whenever a new one comes from the metadata manager. Asks servers that
    /// are back, so it is not for a thread that has no time.
    pub fn members_are(&self, members: &[Member]) {
        *self.members.lock() = members.iter().map(|m| (m.server, m.clone())).collect();
        self.for_all_files(|state, work| {
            state.members_are(&self.members.lock(), &self.counters, work);
        });
    }

    /// A server has died, or it cannot be reached.
    pub fn server_gone(&self, server: ServerId) {
        self.for_all_files(|state, work| {
            if state.servers.get(&server).is_some_and(|p| !p.is_gone) {
                state.server_gone(server, &self.counters, work);
            }
        });
    }

    /// A server is back with the bytes it had.
    pub fn server_back(&self, server: ServerId) {
        self.for_all_files(|state, work| state.server_back(server, &self.counters, work));
    }

    fn for_all_files(&self, change: impl Fn(&mut State, &mut Vec<Work>)) {
        for file in self.files() {
            let mut work = Vec::new();
            {
                let mut state = file.lock();
                if matches!(state.phase, Phase::Ready) {
                    change(&mut state, &mut work);
                }
            }
            file.changed.notify_all();
            self.drive(&file, work);
        }
    }
}

impl State {
    pub(super) fn members_are(
        &mut self,
        members: &BTreeMap<ServerId, Member>,
        counters: &Counters,
        work: &mut Vec<Work>,
    ) {
        let servers: Vec<ServerId> = self.servers.keys().copied().collect();
        for server in servers {
            let (Some(member), Some(part)) = (members.get(&server), self.servers.get_mut(&server))
            else {
                continue;
            };
            let before = part.member.replace(member.incarnation);
            let is_new_start = before.is_some_and(|i| i != member.incarnation);
            // A list that is older than the layout says nothing about loss.
            if part.incarnations.iter().all(|i| *i < member.kept_since) {
                self.server_lost(server, counters, work);
                continue;
            }
            let is_dead = member.state == MemberState::Dead;
            if !part.is_gone && (is_dead || is_new_start) {
                self.server_gone(server, counters, work);
            }
            if is_new_start {
                self.size_event(sizes::Event::ServerOver(server), work);
            }
            if !is_dead {
                self.server_back(server, counters, work);
            }
        }
    }

    /// A server says that this start of it has begun; the list of members may say so later, or has done so.
    pub(super) fn started_again(
        &mut self,
        server: ServerId,
        start: u64,
        counters: &Counters,
        work: &mut Vec<Work>,
    ) {
        let Some(part) = self.servers.get_mut(&server) else {
            return;
        };
        if part.member.is_some_and(|known| known >= start) && !part.is_gone {
            return;
        }
        part.member = part.member.max(Some(start));
        if !part.is_gone {
            self.server_gone(server, counters, work);
        }
        self.size_event(sizes::Event::ServerOver(server), work);
        self.server_back(server, counters, work);
    }
}
