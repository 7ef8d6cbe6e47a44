//! How many connections there may be, in all and of one user, and what their long messages may take.
//!
//! A connection is a thread and some descriptors, whatever goes over it, and has one request under way at a time. So
//! this bounds connections, threads and requests in flight at once.
//!
//! Invariants
//! - A user who has as many as he may is told so; others find room, since his share is less than all.
//! - Servers of the cluster belong to no user, and find room when users have none.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use wire::Status;
use wire::message::Refusal;

/// Connections beyond the limit that are served nevertheless: servers of the cluster, and those who are told that
/// there is no room.
pub(crate) const BEYOND: usize = 256;
/// Descriptors of a process that are not for connections, and those that a connection takes.
const OTHER_DESCRIPTORS: u64 = 256;
const DESCRIPTORS_EACH: u64 = 4;

/// What a client may have of something, all clients of a user together may have so many times.
pub const CLIENTS_OF_A_USER: usize = 16;

/// Most connections of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In all.
    pub connections: usize,
    /// Of one user.
    pub connections_per_user: usize,
    /// Bytes that control parts under way take beyond the first [`MAX_CONTROL_BYTES`](wire::frame::MAX_CONTROL_BYTES) of each; half
    /// of them for one user.
    pub long_message_bytes: usize,
    /// How long a peer may take to send each part of a long message, and to take what it is sent.
    pub patience: Duration,
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
            long_message_bytes: 256 << 20,
            patience: Duration::from_secs(60),
        }
    }

    /// How many of them may be there that have not introduced themselves.
    pub(crate) fn strangers(&self) -> usize {
        (self.connections / 8).max(16)
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
    /// The option that moves the limit, if there is one.
    option: Option<&'static str>,
    most: usize,
    most_in_all: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    users: HashMap<u32, usize>,
    in_all: usize,
}

/// What a user has of something; given back when dropped.
#[derive(Debug)]
pub struct Taken {
    of: Arc<PerUser>,
    user: u32,
    count: usize,
}

impl PerUser {
    /// For `what`, of which a user has at most `most`; `option` moves that.
    pub fn new(what: &'static str, option: &'static str, most: usize) -> Arc<PerUser> {
        PerUser::with(what, Some(option), most, usize::MAX)
    }

    /// [`PerUser::new`] with a limit that no option moves.
    pub fn fixed(what: &'static str, most: usize) -> Arc<PerUser> {
        PerUser::with(what, None, most, usize::MAX)
    }

    /// [`PerUser::new`] for what all users together have at most `most` of, and one of them half.
    pub fn shared(what: &'static str, option: &'static str, most: usize) -> Arc<PerUser> {
        PerUser::with(what, Some(option), most / 2, most)
    }

    /// [`PerUser::shared`] with limits that no option moves.
    pub fn fixed_and_shared(what: &'static str, most: usize) -> Arc<PerUser> {
        PerUser::with(what, None, most / 2, most)
    }

    fn with(
        what: &'static str,
        option: Option<&'static str>,
        most: usize,
        most_in_all: usize,
    ) -> Arc<PerUser> {
        Arc::new(PerUser {
            what,
            option,
            most,
            most_in_all,
            counts: Mutex::default(),
        })
    }

    /// How many all users have.
    pub fn in_all(&self) -> usize {
        self.counts.lock().in_all
    }

    /// One more for a user, unless he has as many as he may.
    pub fn take(self: &Arc<Self>, user: u32) -> Result<Taken, (Status, Refusal)> {
        self.take_many(user, 1)
    }

    /// So many more for a user, unless that is more than he may have.
    pub fn take_many(
        self: &Arc<Self>,
        user: u32,
        count: usize,
    ) -> Result<Taken, (Status, Refusal)> {
        let mut taken = Taken {
            of: Arc::clone(self),
            user,
            count: 0,
        };
        taken.grow(count)?;
        Ok(taken)
    }

    fn refusal(&self, who: &str, has: usize, most: usize) -> (Status, Refusal) {
        let mut text = format!("{who} {has} {} here, of at most {most}", self.what);
        if let Some(option) = self.option {
            text += &format!("; give some back, or start the server with more {option}");
        }
        (Status::QuotaExceeded, Refusal::new(text))
    }
}

impl Taken {
    /// Takes so many more.
    pub fn grow(&mut self, count: usize) -> Result<(), (Status, Refusal)> {
        let of = &*self.of;
        let mut counts = of.counts.lock();
        let has = counts.users.get(&self.user).copied().unwrap_or_default();
        if count > of.most.saturating_sub(has) {
            return Err(of.refusal(&format!("user {} has", self.user), has, of.most));
        }
        if count > of.most_in_all.saturating_sub(counts.in_all) {
            return Err(of.refusal("all users have", counts.in_all, of.most_in_all));
        }
        if count > 0 {
            counts.users.insert(self.user, has + count);
            counts.in_all += count;
            self.count += count;
        }
        Ok(())
    }

    /// Takes more or gives some back until there are so many.
    pub fn set(&mut self, count: usize) -> Result<(), (Status, Refusal)> {
        match count.checked_sub(self.count) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.count - count);
                Ok(())
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Gives so many back.
    pub fn shrink(&mut self, count: usize) {
        assert!(count <= self.count, "more than was taken");
        self.count -= count;
        let mut counts = self.of.counts.lock();
        counts.in_all -= count;
        if let Some(has) = counts.users.get_mut(&self.user) {
            *has -= count;
            if *has == 0 {
                counts.users.remove(&self.user);
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.shrink(self.count);
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
        let mut several = some.take_many(8, 0).unwrap();
        several.set(2).unwrap();
        several.set(3).unwrap_err();
        assert_eq!(several.count(), 2);
        several.set(1).unwrap();
        drop(some.take(8).unwrap());
        drop((second, several));
        assert!(some.counts.lock().users.is_empty());
    }

    #[test]
    fn all_users_together_have_as_much_as_they_may() {
        let pool = PerUser::shared("bytes", "--bytes", 100);
        let mut hers = pool.take_many(1, 40).unwrap();
        let (_, refusal) = hers.grow(11).unwrap_err();
        assert!(
            refusal.text.contains("user 1 has 40 bytes"),
            "{}",
            refusal.text
        );
        hers.grow(10).unwrap();
        let mut his = pool.take_many(2, 45).unwrap();
        let (_, refusal) = pool.take_many(3, 6).unwrap_err();
        assert!(
            refusal.text.contains("all users have 95"),
            "{}",
            refusal.text
        );
        his.shrink(1);
        drop(pool.take_many(3, 6).unwrap());
        drop((hers, his));
        let counts = pool.counts.lock();
        assert!(counts.users.is_empty() && counts.in_all == 0);
    }
}
