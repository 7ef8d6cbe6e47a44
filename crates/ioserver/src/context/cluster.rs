//! The way to others: the metadata manager, the members of the cluster, and the connections that are kept to them.
//!
//! Left to others: what is asked, and what a server answers itself without a socket ([`super::Others`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use wire::ServerId;
use wire::ask::AskError;
use wire::message::Request;
use wire::message::catalogue::{Member, MemberState};

use super::Reports;
use crate::gateway::Foes;
use crate::links::{Links, Peers, no_member};
use crate::moving::Lenders;

/// How long a question waits for a member that is not in the list.
const COMING: Duration = Duration::from_secs(1);
/// How long a question waits for a metadata manager that is being started again, and for how long nobody waits when it has not come.
const MANAGER_AWAY: Duration = Duration::from_secs(3);
const MANAGER_GIVEN_UP: Duration = Duration::from_secs(10);
/// Between two attempts to reach it.
const PAUSE: Duration = Duration::from_millis(20);

/// See the [module](self).
pub(crate) struct Cluster {
    pub(crate) manager: Links,
    pub(crate) peers: Peers,
    /// Connections for requests that this server forwards.
    pub(crate) foes: Foes,
    /// Connections to servers that lend memory.
    pub(crate) lenders: Lenders,
    pub(crate) reports: Arc<Reports>,
    members: Mutex<Arc<Vec<Member>>>,
    /// When the metadata manager did not come back while a request waited for it.
    given_up: Mutex<Option<Instant>>,
}

impl Cluster {
    pub(crate) fn new(
        manager: Links,
        peers: Peers,
        members: Vec<Member>,
        reports: Arc<Reports>,
    ) -> Self {
        Cluster {
            manager,
            peers,
            foes: Foes::default(),
            lenders: Lenders::default(),
            reports,
            members: Mutex::new(Arc::new(members)),
            given_up: Mutex::default(),
        }
    }

    /// Asks the metadata manager something that may be asked twice. One that is being started again is waited for, so that
    /// clients do not hear of it.
    pub(crate) fn ask_manager<R: Request>(&self, request: &R) -> Result<R::Answer, AskError> {
        let mut since = None;
        loop {
            let error = match self.manager.ask(request) {
                Err(error @ AskError::Link(_)) => error,
                other => return other,
            };
            let now = Instant::now();
            let mut given_up = self.given_up.lock();
            if given_up.is_some_and(|at| now.saturating_duration_since(at) < MANAGER_GIVEN_UP) {
                return Err(error);
            }
            let since = *since.get_or_insert(now);
            if now.saturating_duration_since(since) >= MANAGER_AWAY {
                *given_up = Some(now);
                return Err(error);
            }
            drop(given_up);
            if !serving::waiting(|| self.reports.wait_unless_stopping(PAUSE)) {
                return Err(error);
            }
        }
    }

    /// The list of members, as of the last report.
    pub(crate) fn members(&self) -> Arc<Vec<Member>> {
        Arc::clone(&self.members.lock())
    }

    /// Takes another list; the one before.
    pub(crate) fn replace_members(&self, members: Vec<Member>) -> Arc<Vec<Member>> {
        std::mem::replace(&mut *self.members.lock(), Arc::new(members))
    }

    /// Asks a member.
    pub(crate) fn ask_member<R: Request>(
        &self,
        server: ServerId,
        request: &R,
    ) -> Result<R::Answer, AskError> {
        let member = self.member(server)?;
        self.peers.to(&member)?.ask(request)
    }

    /// A member that is there. One that joined since the last report is found by another report.
    pub(crate) fn member(&self, server: ServerId) -> Result<Member, AskError> {
        let find = || {
            let members = self.members.lock();
            let mut members = members.iter();
            let found = members.find(|m| m.server == server && m.state != MemberState::Dead);
            found.cloned()
        };
        if let Some(member) = find() {
            return Ok(member);
        }
        self.reports.report_now(COMING);
        find().ok_or_else(|| no_member(server))
    }
}
