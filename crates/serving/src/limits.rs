//! How many connections there may be, in all and of one user.
//!
//! A connection is a thread and some descriptors, whatever goes over it, and has one request under way at a time. So
//! this bounds connections, threads and requests in flight at once.
//!
//! Invariants
//! - A user who has as many as he may is told so; others find room, since his share is less than all.
//! - Servers of the cluster belong to no user, and find room when users have none.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use wire::Status;
use wire::message::Refusal;

/// Connections beyond the limit that are served nevertheless: servers of the cluster, and those who are told that
/// there is no room.
pub(crate) const BEYOND: usize = 256;
/// Descriptors of a process that are not for connections, and those that a connection takes.
const OTHER_DESCRIPTORS: u64 = 256;
const DESCRIPTORS_EACH: u64 = 4;

/// Most connections of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In all.
    pub connections: usize,
    /// Of one user.
    pub connections_per_user: usize,
}

impl Default for Limits {
    /// What the descriptors of this process are enough for, 16384 at most; three in four for one user.
    fn default() -> Self {
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let left = descriptors
            .unwrap_or(u64::MAX)
            .saturating_sub(OTHER_DESCRIPTORS);
        let connections = (left / DESCRIPTORS_EACH).clamp(64, 1 << 14) as usize;
        Limits::of(connections)
    }
}

impl Limits {
    /// So many in all, three in four of them for one user.
    pub fn of(connections: usize) -> Limits {
        Limits {
            connections,
            connections_per_user: (connections / 4 * 3).max(1),
        }
    }
}

/// What those hear who find no room.
pub(crate) fn full(limits: &Limits) -> (Status, Refusal) {
    let text = format!(
        "the server has {} connections, as many as it takes; close some, or start it with more --connections",
        limits.connections
    );
    (Status::QuotaExceeded, Refusal::new(text))
}

/// Counts something that users have, up to a limit.
#[derive(Debug)]
pub struct PerUser {
    what: &'static str,
    option: &'static str,
    most: usize,
    counts: Mutex<HashMap<u32, usize>>,
}

/// One of what a user has; given back when dropped.
#[derive(Debug)]
pub struct Taken {
    of: Arc<PerUser>,
    user: u32,
}

impl PerUser {
    /// For `what`, of which a user has at most `most`; `option` moves that.
    pub fn new(what: &'static str, option: &'static str, most: usize) -> Arc<PerUser> {
        Arc::new(PerUser {
            what,
            option,
            most,
            counts: Mutex::default(),
        })
    }

    /// One more for a user, unless he has as many as he may.
    pub fn take(self: &Arc<Self>, user: u32) -> Result<Taken, (Status, Refusal)> {
        let mut counts = self.counts.lock();
        let count = counts.entry(user).or_default();
        if *count >= self.most {
            let text = format!(
                "user {user} has {count} {} here, as many as one may; close some, or start the server with more {}",
                self.what, self.option
            );
            return Err((Status::QuotaExceeded, Refusal::new(text)));
        }
        *count += 1;
        Ok(Taken {
            of: Arc::clone(self),
            user,
        })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut counts = self.of.counts.lock();
        if let Some(count) = counts.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_as_many_as_they_may_and_nothing_is_left_behind() {
        let some = PerUser::new("connections", "--connections-per-user", 2);
        let first = some.take(7).unwrap();
        let second = some.take(7).unwrap();
        let (status, refusal) = some.take(7).unwrap_err();
        assert_eq!(status, Status::QuotaExceeded);
        assert!(
            refusal.text.contains("2 connections")
                && refusal.text.contains("--connections-per-user")
        );
        drop(some.take(8).unwrap());
        drop(first);
        drop(some.take(7).unwrap());
        drop(second);
        assert!(some.counts.lock().is_empty());
    }
}
