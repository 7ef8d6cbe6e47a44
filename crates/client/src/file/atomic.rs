//! Atomic mode: a handle is admitted by the owner of the file, and its accesses carry the number it
//! was given; where views overlap they take a lock first, and so do accesses of several messages.
//!
//! A number that is no longer good (`StaleLease`) means that views were admitted or left meanwhile:
//! the handle asks again and repeats the access, with a lock if it is told so.

use std::ops::Range;
use std::time::Duration;

use control::moves::crash_point;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use wire::Status;
use wire::message::file::{Admit, Lock, Unlock};

use crate::access::memory::Direction;
use crate::access::request::How;
use crate::error::{Error, Result, Trouble};
use crate::file::File;
use crate::file::handle::Lease;
use crate::file::view::HandleView;
use crate::session::beats::Beating;
use crate::session::lane::Lane;
use crate::transport::patience::pause_for;

/// Before an owner that gave the same number again is asked once more.
const OWNER_PAUSE: Duration = Duration::from_millis(2);
/// Times an access asks to be admitted again.
pub(crate) const MOST_ADMISSIONS: u32 = 1000;

/// What a lock keeps out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockMode {
    /// Those who write.
    Shared,
    /// All others.
    Exclusive,
}

/// A range that is locked. The owner hears of the client for as long as this lives; it does not unlock.
#[derive(Debug)]
pub(crate) struct RangeLock {
    /// The server that gave the lock.
    owner: u64,
    /// The number of the lock.
    pub(crate) request: u64,
    _beating: Beating,
}

impl File {
    /// Enters atomic mode with a view, or asks for the present number.
    pub(crate) fn admit(&self, lane: &mut Lane, seen: &HandleView) -> Result<()> {
        tracing::debug!(
            file = self.identity.file.0,
            "lease wanted: new, or recalled by the owner"
        );
        let admitted = self.ask_owner(lane, seen, |view| Admit {
            view,
            handle: self.handle_id(),
        })?;
        let before = self.lease.lock().replace(Lease {
            number: admitted.number,
            use_locks: admitted.use_locks,
        });
        if before.is_some_and(|lease| lease.number == admitted.number) {
            // Another server gives the numbers now: a file that moves has got another owner, and the one that was
            // asked does not know yet.
            self.fetch_state(lane)?;
            pause_for(OWNER_PAUSE);
        }
        Ok(())
    }

    /// Runs an access as the mode of the handle wants it.
    pub(crate) fn guarded<T>(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        (lo, len): (u64, u64),
        direction: Direction,
        mut run: impl FnMut(&mut Lane, How) -> Result<T>,
    ) -> Result<T> {
        let mut left = MOST_ADMISSIONS;
        loop {
            let lease = *self.lease.lock();
            let Some(lease) = lease.filter(|_| len > 0) else {
                return run(lane, How::default());
            };
            let how = How {
                lease: lease.number,
                ..How::default()
            };
            // A lease may end between two messages, and others would see half of the access.
            let is_one = || self.is_one_message(seen, lo, len, direction);
            if lease.use_locks || !is_one() {
                return self.locked(lane, seen, (lo, len), direction, how, run);
            }
            match run(lane, how) {
                Err(e) if e.status() == Status::StaleLease && left > 0 => {
                    left -= 1;
                    self.admit(lane, seen)?;
                }
                other => return other,
            }
        }
    }

    /// Runs an access under a lock, which is kept while the access is repeated with a new number:
    /// released in between, others would see what the first attempt has done of it. If another server owns the
    /// file meanwhile the lock is gone, and taken there.
    fn locked<T>(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        (lo, len): (u64, u64),
        direction: Direction,
        mut how: How,
        mut run: impl FnMut(&mut Lane, How) -> Result<T>,
    ) -> Result<T> {
        let range = lo..lo.saturating_add(len).min(falls::MAX_OFFSET);
        let mode = match direction {
            Direction::Read => LockMode::Shared,
            Direction::Write => LockMode::Exclusive,
        };
        let mut left = MOST_ADMISSIONS;
        // Another owner than the one that admitted the handle does not know it.
        let mut take = |lane: &mut Lane| loop {
            match self.lock_range(lane, seen, range.clone(), mode) {
                Err(e) if e.status() == Status::StaleLease && left > 0 => {
                    left -= 1;
                    self.admit(lane, seen)?;
                }
                other => return other,
            }
        };
        let mut lock = take(lane)?;
        crash_point("client_after_lock");
        how.lease = self.lease.lock().map_or(0, |lease| lease.number);
        let mut left = MOST_ADMISSIONS;
        let result = loop {
            match run(lane, how) {
                Err(e) if e.status() == Status::StaleLease && left > 0 => {
                    left -= 1;
                    if let Err(error) = self.admit(lane, seen) {
                        break Err(error);
                    }
                    how.lease = self.lease.lock().map_or(0, |lease| lease.number);
                    if self.owner().server != lock.owner {
                        match take(lane) {
                            Ok(another) => lock = another,
                            Err(error) => break Err(error),
                        }
                    }
                }
                other => break other,
            }
        };
        // A lock that cannot be released ends with the connection or the session.
        let request = lock.request;
        let unlocked = self.ask_owner(lane, seen, |view| Unlock { view, request });
        let unlocked = match unlocked {
            // It ended with the duties of the server that had given it.
            Err(Error::Refused { .. }) if self.owner().server != lock.owner => Ok(()),
            other => other,
        };
        match result {
            Ok(value) => unlocked.map(|()| value),
            Err(error) => Err(error),
        }
    }

    /// Waits for a range, as long as the owner is there.
    pub(crate) fn lock_range(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        range: Range<u64>,
        mode: LockMode,
    ) -> Result<RangeLock> {
        let session = &self.session;
        let mut patience = session.patience();
        loop {
            let owner = self.owner();
            let request = session.number();
            let wanted = Lock {
                view: seen.number,
                handle: self.handle_id(),
                request,
                lo: range.start,
                hi: range.end,
                is_exclusive: mode == LockMode::Exclusive,
            };
            let number = session.number();
            let locked = self.ready(lane, seen, owner).and_then(|index| {
                session.count_message();
                let pipe = lane.pipe(index);
                pipe.put(number, &wanted)?;
                let mut list = [PollFd::from_borrowed_fd(pipe.fd(), PollFlags::IN)];
                loop {
                    match poll(&mut list, None) {
                        Err(Errno::INTR) => {}
                        Err(e) => return Err(Trouble::Broken(e.to_string())),
                        Ok(_) => break,
                    }
                }
                pipe.answer::<Lock>(number)
            });
            match locked {
                Ok(()) => {
                    return Ok(RangeLock {
                        owner: owner.server,
                        request,
                        _beating: Beating::begin(session, owner.server),
                    });
                }
                Err(trouble) => {
                    let is_broken = !matches!(trouble, Trouble::Refused(..));
                    self.repair(lane, seen, owner, trouble, &mut patience)?;
                    if is_broken {
                        // It may be held without our knowing.
                        let unlock = |view| Unlock { view, request };
                        match self.ask_owner(lane, seen, unlock) {
                            Ok(()) => {}
                            Err(Error::Refused { .. }) => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
            }
        }
    }
}
