//! Processes by name: a number and the time of its start, so that a number that was given out again
//! is not taken for the process that had it before.
//!
//! Waiting for the end of a process that is not a child goes through its pidfd; nothing is polled.

use std::fs;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};

/// A process of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    started: u64,
}

impl Process {
    /// This one.
    pub fn this() -> Process {
        let pid = std::process::id();
        Process::with_number(pid).unwrap_or(Process::ended(pid))
    }

    /// The one that has this number now, unless it has ended.
    pub fn with_number(pid: u32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (state, started) = state_and_start(&stat)?;
        // A process that ended but was not yet collected by its parent does nothing any more.
        (!matches!(state, 'Z' | 'X')).then_some(Process { pid, started })
    }

    /// One that ended before anything but its number was known.
    pub fn ended(pid: u32) -> Process {
        Process { pid, started: 0 }
    }

    /// Whether it runs.
    pub fn is_running(self) -> bool {
        Process::with_number(self.pid) == Some(self)
    }

    /// Asks it to end; false if that is not allowed or it is gone.
    pub fn terminate(self) -> bool {
        self.is_running()
            && self
                .pidfd()
                .is_some_and(|fd| self.is_running() && pidfd_send_signal(&fd, Signal::TERM).is_ok())
    }

    /// Waits until it has ended; false if the time is over before.
    pub fn wait_for_end(self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let Some(fd) = self.pidfd() else {
            return !self.is_running();
        };
        while self.is_running() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let timeout = Timespec::try_from(left).ok();
            // Interrupted or not, the loop looks again.
            let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref());
        }
        true
    }

    fn pidfd(self) -> Option<rustix::fd::OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    }

    /// As it stands in `service.json`.
    pub fn to_json(self) -> Value {
        json!({ "pid": self.pid, "started_ticks": self.started })
    }

    /// From `service.json`.
    pub fn from_json(value: &Value) -> Option<Process> {
        Some(Process {
            pid: u32::try_from(value.get("pid")?.as_u64()?).ok()?,
            started: value.get("started_ticks")?.as_u64()?,
        })
    }
}

/// State and start time in a line of `/proc/PID/stat`, whose second field may contain anything.
fn state_and_start(stat: &str) -> Option<(char, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_number_and_start() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat starts");
        let process = Process::with_number(child.id()).expect("it runs");
        let other = Process {
            started: process.started + 1,
            ..process
        };
        assert!(process.is_running() && !other.is_running());
        assert_eq!(Process::from_json(&process.to_json()), Some(process));
        assert!(!process.wait_for_end(Duration::from_millis(1)));
        assert!(!other.terminate(), "another process of that number");
        drop(child.stdin.take());
        assert!(process.wait_for_end(Duration::from_secs(60)));
        assert!(!process.is_running(), "ended, though not collected");
        child.wait().expect("it was a child");
        assert!(!process.terminate());
    }

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let line = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99 20";
        assert_eq!(state_and_start(line), Some(('S', 99)));
        assert_eq!(state_and_start("7 (a"), None);
    }
}
