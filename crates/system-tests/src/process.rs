//! What the kernel says about processes: whether they stand still, descriptors, mappings, memory.
//!
//! Everything is of one moment. Whoever waits for a value asks again ([`crate::until`]).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::waiting::{LIMIT, pause, until};

/// What a process holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// Open descriptors.
    pub descriptors: usize,
    /// Descriptors by what they are: `socket`, `anon_inode:[pidfd]`, `/memfd:pario-page`, paths.
    pub kinds: BTreeMap<String, usize>,
    /// Mappings.
    pub mappings: usize,
    /// Mappings of memory that servers share.
    pub shared_mappings: usize,
    /// Bytes of memory of its own.
    pub own_bytes: u64,
    /// Bytes of memory that others may have mapped too, as far as it touched them.
    pub shared_bytes: u64,
}

impl Holds {
    /// Kinds of which it has more descriptors than before: how many now, and how many then.
    pub fn beyond(&self, before: &Holds) -> BTreeMap<String, (usize, usize)> {
        let kinds = self.kinds.iter();
        let kinds = kinds.map(|(kind, now)| (kind.clone(), (*now, before.of_kind(kind))));
        kinds.filter(|(_, (now, then))| now > then).collect()
    }

    /// Descriptors of a kind.
    pub fn of_kind(&self, kind: &str) -> usize {
        self.kinds.get(kind).copied().unwrap_or(0)
    }
}

/// Looks at a process.
#[track_caller]
pub fn holds(pid: u32) -> Holds {
    let mut holds = Holds::default();
    let dir = format!("/proc/{pid}/fd");
    for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{dir}: {e}")) {
        // One that was closed since is none.
        let Some(link) = entry.ok().and_then(|e| std::fs::read_link(e.path()).ok()) else {
            continue;
        };
        let link = link.display().to_string();
        let kind = match link.split_once(":[") {
            Some((kind @ ("socket" | "pipe"), _)) => kind,
            _ => link.trim_end_matches(" (deleted)"),
        };
        *holds.kinds.entry(kind.to_owned()).or_default() += 1;
        holds.descriptors += 1;
    }
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
    holds.mappings = maps.lines().count();
    holds.shared_mappings = maps.lines().filter(|l| l.contains("/memfd:pario-")).count();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let bytes = |name: &str| -> u64 {
        let line = status.lines().find(|l| l.starts_with(name));
        let number = line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
        number.unwrap_or_else(|| panic!("{name}: {status}")) * 1024
    };
    holds.own_bytes = bytes("RssAnon:");
    holds.shared_bytes = bytes("RssShmem:") + bytes("RssFile:");
    holds
}

/// Waits until a process has no more descriptors of any kind than before.
#[track_caller]
pub fn wait_within(pid: u32, before: &Holds) {
    let end = Instant::now() + LIMIT / 4;
    loop {
        let beyond = holds(pid).beyond(before);
        if beyond.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "descriptors of {pid}: {beyond:?}");
        pause(Duration::from_millis(10));
    }
}

/// SIGSTOP: it does not move until what is returned is dropped. One that dies meanwhile does not move either.
#[track_caller]
pub fn stop(pid: u32) -> Stopped {
    signal(pid, Signal::STOP);
    let stopped = Stopped { pid };
    // The signal is on its way to its threads; until they have it they may go on.
    let tasks = format!("/proc/{pid}/task");
    until("a process that stands still", || {
        let threads = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        let mut states = threads.filter_map(|t| {
            let stat = std::fs::read_to_string(t.path().join("stat")).ok()?;
            stat.rsplit_once(") ")?.1.chars().next()
        });
        states.all(|state| matches!(state, 'T' | 'Z' | 'X'))
    });
    stopped
}

/// A process that stands still; it goes on when this is dropped, also when a test fails.
#[derive(Debug)]
pub struct Stopped {
    pid: u32,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.pid as i32) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

#[track_caller]
fn signal(pid: u32, signal: Signal) {
    let number = Pid::from_raw(pid as i32).expect("a process number");
    kill_process(number, signal).unwrap_or_else(|e| panic!("process {pid}: {signal:?}: {e}"));
}
