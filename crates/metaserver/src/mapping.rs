//! Which server a client begins with: its buddy, the next in turn, the master.
//!
//! Every connected client has exactly one buddy, chosen when it connects (or when the first server joins), and
//! chosen again when that server is gone. The counter of round robin is here and nowhere else, so
//! clients that open files at the same time, through whichever server, still take turns. Neither is
//! durable: after a restart clients connect again, and turns begin anew.
//!
//! Left to others: the rules (`advise`), and following the data from then on (I/O servers).

use std::sync::PoisonError;

use advise::mapping::{Candidate, choose_buddy};
use meta::catalogue::{Member, MemberState};
use wire::message::mapping::{Assign, Assignment, Buddy, BuddyIs};
use wire::{ClientId, ServerId, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session};

impl Manager {
    /// Members that are connected, ascending by number.
    fn present(&self) -> Result<Vec<Member>, Refused> {
        let mut members = self.snapshot()?.members()?;
        members
            .retain(|m| m.state == MemberState::Alive && self.members.has(m.server, m.incarnation));
        members.sort_by_key(|m| m.server);
        if members.is_empty() {
            return Err(Refused::new(
                Status::Unreachable,
                "no I/O server is connected; start one with `pario serve io`",
            ));
        }
        Ok(members)
    }

    /// Chooses the buddy of a client, unless it has one that is connected.
    pub(crate) fn choose_buddy(
        &self,
        client: ClientId,
        host: &str,
        wanted: Option<ServerId>,
    ) -> Result<BuddyIs, Refused> {
        let members = self.present()?;
        let hosts = self.members.hosts();
        let load = self.clients.buddies(client);
        let candidate = |m: &Member| Candidate {
            server: m.server.0,
            is_same_host: hosts
                .get(&(m.server, m.incarnation))
                .is_some_and(|theirs| !host.is_empty() && theirs == host),
            distance: m.distance,
            load: load.get(&m.server).copied().unwrap_or(0),
        };
        let candidates: Vec<Candidate> = members.iter().map(candidate).collect();
        let find = |server: ServerId| candidates.iter().find(|c| c.server == server.0);
        let chosen = match wanted {
            Some(server) => find(server).ok_or_else(|| {
                let names: Vec<String> = members.iter().map(|m| m.server.0.to_string()).collect();
                let text = format!(
                    "buddy: {server} is not connected; these are: {}",
                    names.join(", ")
                );
                Refused::new(Status::NotFound, text)
            })?,
            None => {
                let present = self.clients.buddy(client).and_then(find);
                let best = || choose_buddy(&candidates).and_then(|s| find(ServerId(s)));
                present.or_else(best).expect("there are candidates")
            }
        };
        let server = ServerId(chosen.server);
        self.clients.set_buddy(client, server);
        Ok(BuddyIs {
            client,
            server,
            is_same_host: chosen.is_same_host,
            distance: chosen.distance,
            clients: chosen.load + 1,
        })
    }

    pub(crate) fn buddy(&self, session: &mut Session, r: Buddy) -> Result<BuddyIs, Refused> {
        let client = session.client()?;
        self.choose_buddy(client, &session.host, r.wanted)
    }

    /// The server of one more client of a file.
    pub(crate) fn assign(&self, session: &mut Session, r: Assign) -> Result<ServerId, Refused> {
        session.client()?;
        let members = self.present()?;
        let index = match r.by {
            // All clients find the same one without asking each other.
            Assignment::Master => 0,
            Assignment::RoundRobin => {
                let counter = self.round_robin.lock();
                let mut counter = counter.unwrap_or_else(PoisonError::into_inner);
                counter.one(members.len() as u64) as usize
            }
        };
        Ok(members[index].server)
    }
}
