//! One client that shares memory: its page, and whether its process lives.
//!
//! Death is seen by a descriptor of the process, so a number that is given to another process later
//! deceives no one but itself. Left to others: what the page says.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ::direct::ServerPage;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use wire::Status;

use super::ends::FreeEnds;
use super::marks::FreeMarks;
use crate::kept::{FormerPage, Records};
use crate::refused::Refused;

/// A client with a page.
#[derive(Debug)]
pub(crate) struct AttachedClient {
    /// Differs for any two of a server.
    pub(super) number: u64,
    pub(super) page: ServerPage,
    pub(super) marks: Mutex<FreeMarks>,
    pub(super) ends: Mutex<FreeEnds>,
    process: OwnedFd,
    /// What the next start of the server has to know of it.
    pub(super) records: Records,
}

impl Drop for AttachedClient {
    fn drop(&mut self) {
        self.records.forget_client(self.number);
    }
}

impl AttachedClient {
    /// A page for the process at the other end of a Unix socket.
    pub(super) fn new(number: u64, pid: u64, records: Records) -> Result<AttachedClient, Refused> {
        let failed = |what: &str, e: std::io::Error| {
            Refused::new(
                Status::Unsupported,
                format!("{what}: {e}; no memory can be shared, go by message"),
            )
        };
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| {
            let unknown = std::io::ErrorKind::NotFound.into();
            failed("the process of the client", unknown)
        })?;
        let process = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|e| failed("the process of the client", e.into()))?;
        let page = ServerPage::new().map_err(|e| failed("a client page", e))?;
        records
            .keep_client(number, page.descriptor(), process.as_fd())
            .map_err(|e| failed("keeping a client page", e))?;
        Ok(AttachedClient {
            number,
            page,
            marks: Mutex::new(FreeMarks::new()),
            ends: Mutex::default(),
            process,
            records,
        })
    }

    /// A client of the process before, with the page that it had there.
    pub(super) fn adopt(former: FormerPage, records: Records) -> std::io::Result<AttachedClient> {
        Ok(AttachedClient {
            number: former.number,
            page: ServerPage::adopt(former.page)?,
            marks: Mutex::new(FreeMarks::new()),
            ends: Mutex::default(),
            process: former.process,
            records,
        })
    }

    /// Readable once the process is dead.
    pub(super) fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// Whether nothing of it can store any more.
    pub(super) fn is_dead(&self) -> bool {
        let mut fds = [PollFd::new(&self.process, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut fds, Some(&now)), Ok(n) if n > 0)
    }
}
