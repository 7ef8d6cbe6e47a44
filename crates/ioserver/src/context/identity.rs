//! Who this server is: its number, the key of its cluster, which start of it runs, and what its bytes live and die with.
//!
//! Invariants: number, key and verifiers are those of one start. The start that the metadata manager counts, and the
//! earliest one whose bytes are still here, change only when the server joins again.

use std::sync::atomic::{AtomicU64, Ordering};

use control::capability::ClusterKey;
use wire::ServerId;
use wire::message::catalogue::Member;
use wire::message::file::Verifiers;

/// See the [module](self).
pub(crate) struct Identity {
    pub(crate) key: ClusterKey,
    pub(crate) server: ServerId,
    /// What bytes live and die with that are not synced.
    pub(crate) verifiers: Verifiers,
    incarnation: AtomicU64,
    kept_since: AtomicU64,
}

impl Identity {
    pub(crate) fn new(key: ClusterKey, member: &Member, verifiers: Verifiers) -> Self {
        Identity {
            key,
            server: member.server,
            verifiers,
            incarnation: AtomicU64::new(member.incarnation),
            kept_since: AtomicU64::new(member.kept_since),
        }
    }

    /// Which start of the server this is.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Acquire)
    }

    /// The earliest start whose bytes are still here.
    pub(crate) fn kept_since(&self) -> u64 {
        self.kept_since.load(Ordering::Acquire)
    }

    /// The metadata manager has taken the server again.
    pub(crate) fn rejoined(&self, member: &Member) {
        self.kept_since.store(member.kept_since, Ordering::Release);
        self.incarnation
            .store(member.incarnation, Ordering::Release);
    }
}
