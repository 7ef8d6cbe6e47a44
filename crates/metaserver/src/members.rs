//! Membership: the connections on which I/O servers joined.
//!
//! A member is alive as long as its connection, if it reports in time. A server that joins under a number has to
//! show that it is that server: it made an identity before its first join, of which the catalogue keeps a
//! seal. Then it replaces its earlier start, which finds out when it wants to go on. Members that
//! were alive when the metadata manager was started again have some time to come back before they
//! are declared dead.
//!
//! Joining and dying of members happen one at a time, so the end of an old connection cannot be taken
//! for the end of a new one.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::Instant;

use control::capability::seal;
use meta::catalogue::{Member, MemberState};
use parking_lot::{Mutex, MutexGuard};
use rustix::net::{Shutdown, shutdown};
use wire::message::Bytes;
use wire::message::catalogue::LocalAddress;
use wire::message::cluster::{Join, JoinAnswer, Report, ReportAnswer};
use wire::{ServerId, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session, Who};
use crate::mapping::Whereabouts;

/// Removals that one answer tells; the rest follows with later reports.
const REMOVALS: usize = 1024;
/// Longest name of a host and longest path that a member may announce for it.
const MAX_LOCAL_BYTES: usize = 4096;

#[derive(Debug)]
struct Live {
    /// Which connection of all.
    token: u64,
    incarnation: u64,
    reported: Instant,
    /// Where processes of its host reach it.
    local: Option<LocalAddress>,
    whereabouts: Whereabouts,
    /// To end the connection from outside.
    socket: OwnedFd,
}

#[derive(Debug, Default)]
struct Table {
    live: HashMap<ServerId, Live>,
    next_token: u64,
}

/// The members that are connected.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// Taken for as long as a server joins or dies.
    changing: Mutex<()>,
    table: Mutex<Table>,
}

impl Membership {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// How many are connected.
    pub(crate) fn len(&self) -> usize {
        self.lock().live.len()
    }

    /// The connection of this start of a server, if it is connected.
    pub(crate) fn token(&self, server: ServerId, incarnation: u64) -> Option<u64> {
        let table = self.lock();
        let live = table.live.get(&server)?;
        (live.incarnation == incarnation).then_some(live.token)
    }

    /// Whether a server is a member on this connection.
    pub(crate) fn is_token(&self, server: ServerId, token: u64) -> bool {
        let table = self.lock();
        let live = table.live.get(&server);
        live.is_some_and(|live| live.token == token)
    }

    /// Where those are that are connected, by server and start.
    pub(crate) fn whereabouts(&self) -> HashMap<(ServerId, u64), Whereabouts> {
        let table = self.lock();
        let live = table.live.iter();
        live.map(|(server, live)| ((*server, live.incarnation), live.whereabouts.clone()))
            .collect()
    }

    /// Whether this start of a server is connected.
    pub(crate) fn has(&self, server: ServerId, incarnation: u64) -> bool {
        let table = self.lock();
        table
            .live
            .get(&server)
            .is_some_and(|live| live.incarnation == incarnation)
    }
}

impl Manager {
    /// Those who were alive before this start have to come back.
    pub(crate) fn expect_members(&self, members: &[Member]) {
        for member in members.iter().filter(|m| m.state == MemberState::Alive) {
            let (server, incarnation) = (member.server, member.incarnation);
            let this = self.this();
            self.timer.after(self.member_timeout, move || {
                let Some(manager) = this.upgrade() else {
                    return;
                };
                let _changing = manager.members.change();
                if !manager.members.has(server, incarnation) {
                    manager.declare_dead(server, incarnation);
                }
            });
        }
    }

    /// A server joins on the connection of a session.
    pub(crate) fn join(
        &self,
        session: &mut Session,
        join: Join,
        socket: OwnedFd,
    ) -> Result<JoinAnswer, Refused> {
        match (session.who, join.server) {
            (Who::NewServer, _) => {}
            (Who::Server(own), Some(server)) if own == server => {}
            (Who::Server(own), _) => {
                let text = format!("server: this connection is that of {own}");
                return Err(Refused::new(Status::InvalidArgument, text));
            }
            (Who::Member { .. }, _) => {
                let text = "this connection has joined already; use another one";
                return Err(Refused::new(Status::InvalidArgument, text));
            }
            (Who::Client(_), _) => {
                let text = "clients do not join";
                return Err(Refused::new(Status::PermissionDenied, text));
            }
        }
        if let Err(e) = join.address.parse::<wire::url::Endpoint>() {
            return Err(Refused::new(
                Status::InvalidArgument,
                format!("address: {e}"),
            ));
        }
        if let Some(local) = &join.local
            && (local.host.len() > MAX_LOCAL_BYTES || local.address.len() > MAX_LOCAL_BYTES)
        {
            let text = "local: host and address have at most 4096 bytes";
            return Err(Refused::new(Status::InvalidArgument, text));
        }
        let Some(shown) = session.channel.unwrap("identity", &join.identity.0) else {
            let text = "identity: is not 32 bytes, or not for this connection";
            return Err(Refused::new(Status::InvalidArgument, text));
        };
        // The catalogue is no place for what only that server knows.
        let identity = Bytes(seal(b"pario server", &[&shown]).to_vec());
        let join = Join { identity, ..join };
        let local = join.local.clone();
        let changing = self.members.change();
        let member = self.committer.run(move |batch| Ok(batch.join(&join)?))?;
        let (server, incarnation) = (member.server, member.incarnation);
        let token = {
            let mut table = self.members.lock();
            table.next_token += 1;
            let live = Live {
                token: table.next_token,
                incarnation,
                reported: Instant::now(),
                local: local.clone(),
                whereabouts: session.whereabouts.clone(),
                socket,
            };
            let token = live.token;
            if let Some(old) = table.live.insert(server, live) {
                let _ = shutdown(&old.socket, Shutdown::Both);
                if old.incarnation != incarnation {
                    self.moves.server_died(server);
                }
            }
            token
        };
        drop(changing);
        tracing::info!(server = server.0, incarnation, "server joined");
        session.who = Who::Member {
            server,
            incarnation,
            token,
        };
        self.watch_reports(server, token, self.member_timeout);
        self.moves.server_joined();
        Ok(JoinAnswer {
            member: Member { local, ..member },
            key: Bytes(session.channel.wrap("cluster", self.key.secret())),
            members: self.members_now()?,
        })
    }

    /// All members, with the local addresses of those that are connected.
    pub(crate) fn members_now(&self) -> Result<Vec<Member>, Refused> {
        let mut members = self.snapshot()?.members()?;
        let table = self.members.lock();
        for member in &mut members {
            let live = table.live.get(&member.server);
            member.local = live.and_then(|live| live.local.clone());
        }
        Ok(members)
    }

    /// Declares a member dead that has not reported for too long.
    fn watch_reports(&self, server: ServerId, token: u64, wait: std::time::Duration) {
        let this = self.this();
        self.timer.after(wait, move || {
            let Some(manager) = this.upgrade() else {
                return;
            };
            let silent = {
                let table = manager.members.lock();
                match table.live.get(&server).filter(|live| live.token == token) {
                    Some(live) => live.reported.elapsed(),
                    None => return,
                }
            };
            match manager.member_timeout.checked_sub(silent) {
                Some(left) if !left.is_zero() => manager.watch_reports(server, token, left),
                _ => manager.member_gone(server, token),
            }
        });
    }

    /// The connection of a member has ended, or is to be ended.
    pub(crate) fn member_gone(&self, server: ServerId, token: u64) {
        if self.end_member(server, token) {
            tracing::warn!(server = server.0, "server is away and counts as dead");
        }
    }

    /// A member has said goodbye.
    pub(crate) fn member_left(&self, server: ServerId, token: u64) {
        if self.end_member(server, token) {
            tracing::info!(server = server.0, "server left");
        }
    }

    /// Whether it was a member until now.
    fn end_member(&self, server: ServerId, token: u64) -> bool {
        // Connections that end because this process does say nothing about the member.
        if self.is_ending() {
            return false;
        }
        let _changing = self.members.change();
        let live = {
            let mut table = self.members.lock();
            match table.live.get(&server) {
                Some(live) if live.token == token => table.live.remove(&server),
                _ => None,
            }
        };
        let is_new = live.is_some();
        if let Some(live) = live {
            let _ = shutdown(&live.socket, Shutdown::Both);
            self.declare_dead(server, live.incarnation);
        }
        is_new
    }

    fn declare_dead(&self, server: ServerId, incarnation: u64) {
        self.moves.server_died(server);
        // One that has started again since is not meant, and a store that failed has said so.
        let _ = self
            .committer
            .run(move |batch| Ok(batch.mark_dead(server, incarnation)?));
    }

    /// A member reports. An error closes the connection: another process is this server now.
    pub(crate) fn report(
        &self,
        session: &mut Session,
        report: Report,
    ) -> Result<ReportAnswer, Refused> {
        let Who::Member {
            server,
            incarnation,
            token,
        } = session.who
        else {
            let text = "only a connection that has joined reports";
            return Err(Refused::new(Status::PermissionDenied, text));
        };
        match self.members.lock().live.get_mut(&server) {
            Some(live) if live.token == token => live.reported = Instant::now(),
            _ => {
                let text = format!("{server} was declared dead or has started again; join again");
                return Err(Refused::new(Status::WrongIncarnation, text));
            }
        }
        self.committer.run(move |batch| {
            batch.report_room(
                server,
                incarnation,
                report.capacity_bytes,
                report.used_bytes,
                report.load,
            )?;
            for removal in &report.removed {
                batch.confirm_removal(server, removal)?;
            }
            Ok(())
        })?;
        let snapshot = self.snapshot()?;
        Ok(ReportAnswer {
            removals: snapshot.removals(server, None, REMOVALS)?,
            members: self.members_now()?,
        })
    }
}
