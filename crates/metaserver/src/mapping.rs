//! Which server a client begins with: its buddy, the next in turn, the master.
//!
//! Every connected client has exactly one buddy, chosen when it connects (or when the first server joins), and
//! chosen again when that server is gone. The counter of round robin is here and nowhere else, so
//! clients that open files at the same time, through whichever server, still take turns. Neither is
//! durable: after a restart clients connect again, and turns begin anew.
//!
//! Left to others: the rules (`advise`), and following the data from then on (I/O servers).

use std::net::IpAddr;

use advise::mapping::{Candidate, choose_buddy};
use meta::catalogue::{Member, MemberState};
use wire::message::mapping::{Assign, Assignment, Buddy, BuddyIs};
use wire::{ClientId, ServerId, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session};

/// Where a process is, as far as that tells who is near to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Whereabouts {
    /// Its host, as it says: a kernel and the processes that see each other.
    pub(crate) host: String,
    /// The address that it comes from over a network. Containers of one kernel that have a network each are as far
    /// from each other as hosts are.
    pub(crate) address: Option<IpAddr>,
}

impl Whereabouts {
    /// Whether both are on one host. An address that is not known (a socket of the file system, the loopback), or one of
    /// the other family, is no difference.
    pub(crate) fn is_same_host(&self, other: &Whereabouts) -> bool {
        let is_elsewhere = match (self.address, other.address) {
            (Some(one), Some(two)) => one.is_ipv4() == two.is_ipv4() && one != two,
            _ => false,
        };
        !self.host.is_empty() && self.host == other.host && !is_elsewhere
    }
}

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
        whereabouts: &Whereabouts,
        wanted: Option<ServerId>,
    ) -> Result<BuddyIs, Refused> {
        let members = self.present()?;
        let theirs = self.members.whereabouts();
        let load = self.clients.buddies(client);
        let candidate = |m: &Member| Candidate {
            server: m.server.0,
            is_same_host: theirs
                .get(&(m.server, m.incarnation))
                .is_some_and(|theirs| theirs.is_same_host(whereabouts)),
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
        self.choose_buddy(client, &session.whereabouts, r.wanted)
    }

    /// The server of one more client of a file.
    pub(crate) fn assign(&self, session: &mut Session, r: Assign) -> Result<ServerId, Refused> {
        session.client()?;
        let members = self.present()?;
        let index = match r.by {
            // All clients find the same one without asking each other.
            Assignment::Master => 0,
            Assignment::RoundRobin => self.round_robin.lock().one(members.len() as u64) as usize,
        };
        Ok(members[index].server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_kernel_and_an_address() {
        let at = |host: &str, address: Option<&str>| Whereabouts {
            host: host.into(),
            address: address.map(|text| text.parse().expect("an address")),
        };
        let here = at("a", Some("10.0.0.1"));
        assert!(here.is_same_host(&at("a", Some("10.0.0.1"))));
        assert!(here.is_same_host(&at("a", None)), "by a socket of the host");
        assert!(here.is_same_host(&at("a", Some("fd00::1"))), "it has both");
        assert!(
            !here.is_same_host(&at("a", Some("10.0.0.2"))),
            "a container"
        );
        assert!(!here.is_same_host(&at("b", Some("10.0.0.1"))), "behind one");
        assert!(!at("", None).is_same_host(&at("", None)), "nobody knows");
    }
}
