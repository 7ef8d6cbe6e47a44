//! Noticing the death of processes on this host.
//!
//! One thread waits on the pidfds of all watched processes and calls back when one has ended. A
//! descriptor that survived a fork does not keep anybody alive here: it is the process that counts.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, eventfd, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

type Callback = Box<dyn FnOnce() + Send>;

struct Watched {
    pidfd: Arc<OwnedFd>,
    callback: Callback,
}

struct Shared {
    is_over: AtomicBool,
    watched: Mutex<HashMap<u64, Watched>>,
    wake: OwnedFd,
}

/// Watches processes.
pub struct Watch {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Starts the thread that waits.
    pub fn start() -> io::Result<Watch> {
        let shared = Arc::new(Shared {
            is_over: AtomicBool::new(false),
            watched: Mutex::new(HashMap::new()),
            wake: eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?,
        });
        let theirs = Arc::clone(&shared);
        thread::Builder::new()
            .name("watch".into())
            .spawn(move || wait(&theirs))?;
        Ok(Watch { shared })
    }

    /// Calls back once when process `pid` has ended; at once, in the caller's thread, if there is no
    /// such process. `key` names the watch, and a second one of the same key replaces the first.
    pub fn add(
        &self,
        key: u64,
        pid: u64,
        callback: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let pid = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::SRCH) => {
                self.remove(key);
                callback();
                return Ok(());
            }
            Err(e) => return Err(e.into()),
        };
        let watched = Watched {
            pidfd: Arc::new(pidfd),
            callback: Box::new(callback),
        };
        self.lock().insert(key, watched);
        self.wake();
        Ok(())
    }

    /// Watches no longer. A callback that has begun runs to its end.
    pub fn remove(&self, key: u64) {
        self.lock().remove(&key);
        self.wake();
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<u64, Watched>> {
        self.shared.watched.lock()
    }

    fn wake(&self) {
        // The counter of an eventfd takes 2^64 - 2 wake-ups before it would block.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Watch {
    /// Nobody is called back any more, and the thread ends.
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.lock().clear();
        self.wake();
    }
}

fn wait(shared: &Shared) {
    while !shared.is_over.load(Ordering::SeqCst) {
        let pidfds: Vec<(u64, Arc<OwnedFd>)> = shared
            .watched
            .lock()
            .iter()
            .map(|(&key, w)| (key, Arc::clone(&w.pidfd)))
            .collect();
        let mut fds = vec![PollFd::from_borrowed_fd(shared.wake.as_fd(), PollFlags::IN)];
        fds.extend(
            pidfds
                .iter()
                .map(|(_, fd)| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)),
        );
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if !fds[0].revents().is_empty() {
            let mut count = [0; 8];
            let _ = rustix::io::read(&shared.wake, &mut count);
        }
        let ended: Vec<u64> = fds[1..]
            .iter()
            .zip(&pidfds)
            .filter(|(fd, _)| !fd.revents().is_empty())
            .map(|(_, (key, _))| *key)
            .collect();
        for (key, fd) in &pidfds {
            if !ended.contains(key) {
                continue;
            }
            let found = {
                let mut watched = shared.watched.lock();
                // It may have been replaced by a watch on another process meanwhile.
                let same = watched.get(key).is_some_and(|w| Arc::ptr_eq(&w.pidfd, fd));
                same.then(|| watched.remove(key)).flatten()
            };
            if let Some(found) = found {
                // A panic of one who is told is his bug, and no reason not to tell the others.
                let _ = catch_unwind(AssertUnwindSafe(found.callback));
            }
        }
    }
}
