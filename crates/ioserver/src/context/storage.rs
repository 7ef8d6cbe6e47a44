//! Where bytes are and what they pass through: the store, buffers, stages, what is read ahead, and the limits on memory.
//!
//! A request that finds no room waits here a little: the metadata manager is told, which may have something removed,
//! and what is dirty is written back. Left to others: which file and which gate (`files`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Identity, Reports};
use crate::ahead::Ahead;
use crate::buffers::{Borrower, BufferLoan, Buffers};
use crate::failed_syncs::FailedSyncs;
use crate::gateway::Stages;
use crate::kept::KeptMemory;
use crate::limits::Limits;
use crate::sessions::{Connection, Sessions, Who};
use crate::statistics::{Statistics, add};
use crate::stored::SubfileStore;
use crate::taken_space::SpaceTakers;

/// How many files are asked for the space ahead of what they store, for one request.
const RECLAIMS: usize = 64;
/// How long memory takes to come back from a connection that was ended.
const COMING_BACK: Duration = Duration::from_millis(500);

/// See the [module](self).
pub(crate) struct Storage {
    /// Whose bytes they are.
    pub(crate) identity: Arc<Identity>,
    pub(crate) stored: SubfileStore,
    /// Its memory, if a keeper keeps it.
    pub(crate) kept: Option<Arc<KeptMemory>>,
    /// Who has taken space for files before writing them.
    pub(crate) space_takers: Arc<SpaceTakers>,
    /// What the next start has to know about the disks.
    pub(crate) failed_syncs: Arc<FailedSyncs>,
    pub(crate) buffers: Buffers,
    pub(crate) stages: Stages,
    pub(crate) ahead: Ahead,
    pub(crate) limits: Limits,
    pub(crate) rendezvous_bytes: u64,
    pub(crate) message_bytes: u64,
    pub(crate) write_through: bool,
    /// It was to have a keeper, and none could be started.
    pub(crate) lacks_keeper: bool,
    /// What a client is told where there is no memory.
    pub(crate) when_full: Option<String>,
    /// How long a write waits for room.
    pub(crate) room_wait: Duration,
    pub(crate) reports: Arc<Reports>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) statistics: Arc<Statistics>,
}

impl Storage {
    /// Whether clients may store into extents by themselves.
    pub(crate) fn allows_direct_writes(&self) -> bool {
        // Where a write is answered when its bytes are safe, storing alone is no write.
        !self.stored.is_durable() || !self.write_through
    }

    /// What bytes live and die with that are written here now, until they are synced.
    pub(crate) fn verifier(&self) -> u64 {
        let is_kept = self.stored.is_durable() && self.write_through;
        match is_kept && !self.failed_syncs.is_unnoted() {
            true => self.identity.verifiers.kept,
            false => self.identity.verifiers.life,
        }
    }

    /// A staging buffer, when it is the turn of a connection.
    pub(crate) fn borrow(&self, who: Who, connection: &Arc<Connection>) -> BufferLoan<'_> {
        let (lent, waited) = self.buffers.borrow(&Borrower::new(who, connection));
        if waited {
            add(&self.statistics.buffer_waits, 1);
        }
        lent
    }

    /// Does what can be done about a lack of room, until `try_again` has what it wants or the time
    /// is over. Memory that was pinned or granted for peers which stand still comes back when these are overdue: their
    /// connections are ended, and those that are waited for now are given the time to become so.
    pub(crate) fn with_room<T>(
        &self,
        mut try_again: impl FnMut() -> store::Result<T>,
    ) -> store::Result<T> {
        let mut result = try_again();
        for _ in 0..RECLAIMS {
            let is_full = matches!(result, Err(store::Error::NoSpace { .. }));
            if !is_full || !self.stored.reclaim() {
                break;
            }
            result = try_again();
        }
        let mut deadline = Instant::now() + self.room_wait;
        if self.stored.is_durable()
            && let Err(store::Error::NoSpace { .. }) = result
            && let Some(overdue_in) = self.sessions.last_overdue_in()
        {
            deadline = deadline.max(Instant::now() + overdue_in + COMING_BACK);
        }
        while let Err(store::Error::NoSpace { .. }) = result {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            add(&self.statistics.room_waits, 1);
            let pause = left.min(Duration::from_millis(100));
            serving::waiting(|| self.reports.report_now(pause));
            let _ = self.stored.store().write_back(16 << 20);
            self.sessions.end_overdue();
            result = try_again();
        }
        result
    }
}
