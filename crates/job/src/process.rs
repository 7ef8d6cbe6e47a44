//! Processes of this host: known by number and start, waited for by pidfd, looked into through
//! `/proc`.
//!
//! A number that was given out again is not the process that had it before. What another user's
//! process has in its environment cannot be read, and counts as nothing.
//!
//! A process has ended when all its threads have. While it ends, its first thread is often gone before the others, which still
//! hold its memory, locks and sockets: `/proc/PID/stat` calls it a zombie then. The pidfd tells.

use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long a process is waited for that is becoming another program.
const LONGEST_START: Duration = Duration::from_secs(10);

/// The flags of processes that exit and of threads of the kernel.
const EXITING: u64 = 0x4;
const KERNEL_THREAD: u64 = 0x20_0000;

/// A process of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub started: u64,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeCause {
    /// All processes have ended, or the one that counts for all.
    Ended,
    /// Another thread has written into the pipe.
    Told,
    /// The time is over.
    Late,
}

impl Process {
    /// The one that has this number now, unless it has ended.
    pub fn with_number(pid: u32) -> Option<Process> {
        let stat = Stat::of(pid)?;
        // One that ended and was not yet collected by its parent does nothing any more.
        let is_over = matches!(stat.state, 'Z' | 'X') && has_ended(pid);
        (!is_over).then_some(Process {
            pid,
            started: stat.started,
        })
    }

    /// This one.
    pub fn this() -> Process {
        let pid = std::process::id();
        Process::with_number(pid).unwrap_or(Process::ended(pid))
    }

    /// One that ended before anything but its number was known.
    pub fn ended(pid: u32) -> Process {
        Process { pid, started: 0 }
    }

    /// Whether it runs.
    pub fn is_running(self) -> bool {
        Process::with_number(self.pid) == Some(self)
    }

    /// The process that started it, or has taken it over.
    pub fn parent(self) -> Option<Process> {
        let parent = Stat::of(self.pid)?.parent;
        Process::with_number(parent).filter(|p| p.pid > 1)
    }

    /// Sends a signal; false if that is not allowed or it is gone.
    pub fn signal(self, signal: Signal) -> bool {
        let Some(fd) = self.pidfd() else {
            return false;
        };
        self.is_running() && pidfd_send_signal(&fd, signal).is_ok()
    }

    /// Asks it to end; false if that is not allowed or it is gone.
    pub fn terminate(self) -> bool {
        self.signal(Signal::TERM)
    }

    /// Waits until it has ended; false if the time is over before.
    pub fn wait_for_end(self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let Some(fd) = self.pidfd() else {
            return true;
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

    /// Its handle for waiting; nothing if it has ended.
    pub fn pidfd(self) -> Option<OwnedFd> {
        let fd = handle(self.pid)?;
        self.is_running().then_some(fd)
    }

    /// The value of a variable in the environment that it was started with.
    pub(crate) fn variable(self, name: &str) -> Option<String> {
        self.environment()?.split(|&b| b == 0).find_map(|entry| {
            let rest = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(rest).into_owned())
        })
    }

    /// The environment that it was started with; nothing if that cannot be read.
    ///
    /// A process that is just becoming another program has none for a moment, and the one that started it may run by
    /// then. It is waited for, not taken for one without any marks: its job would seem to be over.
    fn environment(self) -> Option<Vec<u8>> {
        let read = || fs::read(format!("/proc/{}/environ", self.pid)).ok();
        let is_starting = || Stat::of(self.pid).is_some_and(|stat| stat.is_starting());
        let found = read()?;
        if !found.is_empty() {
            return Some(found);
        }
        let deadline = Instant::now() + LONGEST_START;
        while is_starting() && Instant::now() < deadline {
            a_moment();
        }
        read()
    }

    /// All processes of this user that run now, this one aside.
    pub(crate) fn all_of_this_user() -> Vec<Process> {
        use std::os::unix::fs::MetadataExt;
        let user = rustix::process::geteuid().as_raw();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
                let is_ours = entry.metadata().ok()?.uid() == user;
                (is_ours && pid != std::process::id()).then(|| Process::with_number(pid))?
            })
            .collect()
    }
}

fn handle(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Whether no thread is left of the process that has this number.
fn has_ended(pid: u32) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    handle(pid).is_none_or(|fd| {
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&now)), Ok(n) if n > 0)
    })
}

/// Lets a process that is starting go on; the kernel tells nobody when it has.
#[expect(
    clippy::disallowed_methods,
    reason = "there is nothing to wait for but the time"
)]
fn a_moment() {
    std::thread::sleep(Duration::from_micros(100));
}

/// What a line of `/proc/PID/stat` says; its second field may contain anything.
struct Stat {
    state: char,
    parent: u32,
    flags: u64,
    started: u64,
    /// Where its environment ends in its memory: nowhere before it has one.
    environment_end: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(line: &str) -> Option<Stat> {
        let (_, rest) = line.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        Some(Stat {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            flags: fields.nth(4)?.parse().ok()?,
            started: fields.nth(12)?.parse().ok()?,
            environment_end: fields.nth(28)?.parse().ok()?,
        })
    }

    /// Whether it has left its old program and not yet got the environment of the new one.
    fn is_starting(&self) -> bool {
        let is_over =
            matches!(self.state, 'Z' | 'X') || self.flags & (EXITING | KERNEL_THREAD) != 0;
        !is_over && self.environment_end == 0
    }
}

/// Waits until all of these or `launcher` have ended, another thread writes into the pipe, or the time is
/// over.
pub(crate) fn wait(
    processes: &[Process],
    launcher: Option<Process>,
    told: BorrowedFd<'_>,
    limit: Option<Duration>,
) -> io::Result<WakeCause> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut handles: Vec<OwnedFd> = processes.iter().filter_map(|p| p.pidfd()).collect();
    let above = match launcher.map(Process::pidfd) {
        Some(None) => return Ok(WakeCause::Ended),
        other => other.flatten(),
    };
    loop {
        if handles.is_empty() && !processes.is_empty() {
            return Ok(WakeCause::Ended);
        }
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        let mut fds = vec![PollFd::new(&told, PollFlags::IN)];
        fds.extend(handles.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        fds.extend(above.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        if !fds[0].revents().is_empty() {
            return Ok(WakeCause::Told);
        }
        let ended: Vec<bool> = fds[1..].iter().map(|f| !f.revents().is_empty()).collect();
        if above.is_some() && ended.last() == Some(&true) {
            return Ok(WakeCause::Ended);
        }
        let mut ended = ended.into_iter();
        handles.retain(|_| !ended.next().unwrap_or(false));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(WakeCause::Late);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_known_by_number_and_start() {
        let mut child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat starts");
        let process = Process::with_number(child.id()).expect("it runs");
        let other = Process {
            started: process.started + 1,
            ..process
        };
        assert!(process.is_running() && !other.is_running());
        assert!(!process.wait_for_end(Duration::from_millis(1)));
        assert!(
            !other.signal(Signal::TERM),
            "another process of that number"
        );
        drop(child.stdin.take());
        assert!(process.wait_for_end(Duration::from_secs(60)));
        assert!(!process.is_running(), "ended, though not collected");
        child.wait().expect("it was a child");
        assert!(!process.signal(Signal::TERM));
    }

    /// Its first thread is a zombie, and the other one has what the process has.
    #[test]
    fn a_process_runs_as_long_as_one_of_its_threads() {
        let program = "import ctypes, sys, threading\n\
            threading.Thread(target=sys.stdin.read).start()\n\
            ctypes.CDLL(None).pthread_exit(None)";
        let child = Command::new("python3")
            .args(["-c", program])
            .stdin(std::process::Stdio::piped())
            .spawn();
        let mut child = child.expect("python3 starts");
        let process = Process::with_number(child.id()).expect("it runs");
        let deadline = Instant::now() + Duration::from_secs(60);
        while Stat::of(process.pid).is_some_and(|stat| stat.state != 'Z') {
            assert!(Instant::now() < deadline, "its first thread does not end");
            a_moment();
        }
        assert!(process.is_running());
        assert!(!process.wait_for_end(Duration::from_millis(1)));
        drop(child.stdin.take());
        assert!(process.wait_for_end(Duration::from_secs(60)));
        assert!(!process.is_running());
        child.wait().expect("it was a child");
    }

    #[test]
    fn processes_are_waited_for_together() {
        let start = || {
            let mut command = Command::new("cat");
            let piped = std::process::Stdio::piped();
            command
                .stdin(piped)
                .env("PARIO_TEST_MARK", "x y")
                .spawn()
                .unwrap()
        };
        let (mut one, mut two) = (start(), start());
        let of = |child: &std::process::Child| Process::with_number(child.id()).unwrap();
        let both = [of(&one), of(&two)];
        assert_eq!(
            both[0].variable("PARIO_TEST_MARK").as_deref(),
            Some("x y"),
            "what it was started with"
        );
        assert_eq!(both[0].variable("PARIO_TEST"), None);
        assert_eq!(both[0].parent(), Some(Process::this()));
        assert!(Process::all_of_this_user().contains(&both[1]));
        let (read, mut write) = io::pipe().unwrap();
        let short = Some(Duration::from_millis(1));
        assert_eq!(
            wait(&both, None, read.as_fd(), short).unwrap(),
            WakeCause::Late
        );
        let (one_of, two_of) = (both[0], both[1]);
        one.kill().unwrap();
        assert_eq!(
            wait(&both, None, read.as_fd(), short).unwrap(),
            WakeCause::Late
        );
        let launched = wait(&[two_of], Some(one_of), read.as_fd(), None).unwrap();
        assert_eq!(launched, WakeCause::Ended, "the launcher counts for all");
        two.kill().unwrap();
        assert_eq!(
            wait(&both, None, read.as_fd(), None).unwrap(),
            WakeCause::Ended
        );
        io::Write::write_all(&mut write, b"x").unwrap();
        assert_eq!(
            wait(&[], None, read.as_fd(), None).unwrap(),
            WakeCause::Told
        );
        assert!(!both[0].is_running() && !both[0].signal(Signal::TERM));
        let (_, _) = (one.wait(), two.wait());
    }

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let between: Vec<String> = (23..=50).map(|n| n.to_string()).collect();
        let line = format!(
            "7 (a) b (c) S 1 5 6 7 8 4 10 11 12 13 14 15 16 17 18 19 20 21 99 {} 51 0",
            between.join(" ")
        );
        let stat = Stat::parse(&line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.started), ('S', 1, 99));
        assert_eq!((stat.flags, stat.environment_end), (4, 51));
    }

    #[test]
    fn a_process_that_is_becoming_another_program_is_waited_for() {
        let start = |command: &mut Command| {
            let piped = std::process::Stdio::piped();
            let child = command.stdin(piped).spawn().unwrap();
            // Looking it up first would take as long as what is waited for.
            let (pid, started) = (child.id(), 0);
            (child, Process { pid, started })
        };
        for round in 0..200 {
            let (mut child, started) = start(Command::new("cat").env("PARIO_TEST_MARK", "here"));
            let found = started.variable("PARIO_TEST_MARK");
            assert_eq!(found.as_deref(), Some("here"), "round {round}");
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        let (mut child, started) = start(Command::new("cat").env_clear());
        assert_eq!(started.environment(), Some(Vec::new()), "it has none");
        let stat = Stat::of(started.pid).unwrap();
        assert!(!stat.is_starting(), "one without marks has started, too");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
