//! What this process has: connections, open files and requests, each with a number.
//!
//! Numbers are given once and never again, so a closed one is nobody else's. A child that was forked off has nothing of what
//! its parent had, and its numbers go on behind those of the parent.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use border::entry::{Failure, Outcome};
use border::process::{PerProcess, forks};
use client::{Client, Direction, File, Jobs, Status};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::answer::not_negative;
use crate::descriptor::Words;
use crate::pattern::{Buffer, Pattern};
use crate::requests::Requests;

/// Requests that run beside the program at the same time.
const WORKERS: usize = 8;

/// Patterns that a file keeps for the next access.
const KEPT_PATTERNS: usize = 16;

/// The numbers that were given.
static LAST_NUMBER: AtomicI32 = AtomicI32::new(0);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) connections: Mutex<Connections>,
    pub(crate) files: RwLock<HashMap<c_int, Arc<OpenFile>>>,
    pub(crate) requests: Mutex<Requests>,
    pub(crate) workers: Jobs<'static>,
}

/// Connections of the process. Calls that name none use that of `ViPIOS_Connect`.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub(crate) all: HashMap<c_int, Client>,
    pub(crate) of_calls: Option<c_int>,
}

static STATE: PerProcess<State> = PerProcess::new(|| State {
    connections: Mutex::default(),
    files: RwLock::default(),
    requests: Mutex::default(),
    workers: Jobs::new("vipios-worker", WORKERS, || ()),
});

/// That of this process.
pub(crate) fn state() -> &'static State {
    STATE.get()
}

/// A number that nothing has.
pub(crate) fn new_number() -> Outcome<c_int> {
    let next = |last: c_int| last.checked_add(1);
    let given = LAST_NUMBER.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    let last = given.map_err(|_| {
        let text = "2147483647 files and requests were opened; start the program again";
        Failure::new(Status::NoMemory, text)
    })?;
    Ok(last + 1)
}

/// Why a number stands for nothing.
#[cold]
pub(crate) fn unknown(what: &str, number: c_int) -> Failure {
    let text = match (state().connections.lock().all.is_empty(), forks()) {
        (true, 0) => format!("{what} {number}: not connected; call ViPIOS_Connect first"),
        (true, _) => format!(
            "{what} {number}: not connected; what the parent process had is not there after a fork, so call ViPIOS_Connect"
        ),
        (false, _) => format!("{what} {number} is closed, or never was one"),
    };
    Failure::new(Status::BadHandle, text)
}

/// An open file by its number.
pub(crate) fn file_of(number: c_int) -> Outcome<Arc<OpenFile>> {
    let found = state().files.read().get(&number).cloned();
    found.ok_or_else(|| unknown("file", number))
}

/// How the last access of a file went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Last {
    pub(crate) is_read: bool,
    pub(crate) requested: u64,
    pub(crate) moved: u64,
    pub(crate) failure: Option<Failure>,
}

impl Last {
    pub(crate) fn new(direction: Direction, requested: u64, outcome: &Outcome<u64>) -> Last {
        Last {
            is_read: direction == Direction::Read,
            requested,
            moved: *outcome.as_ref().unwrap_or(&0),
            failure: outcome.as_ref().err().cloned(),
        }
    }

    /// Whether the file ended before all bytes were read.
    pub(crate) fn is_end_of_file(&self) -> bool {
        self.is_read && self.failure.is_none() && self.moved < self.requested
    }
}

/// Where an access goes: at the pointer, or somewhere else.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Position {
    Pointer,
    At(u64),
}

impl Position {
    /// Of an argument: -1 is the pointer.
    pub(crate) fn of(name: &'static str, value: i64) -> Outcome<Position> {
        match value {
            -1 => Ok(Position::Pointer),
            _ => not_negative(name, value).map(Position::At).map_err(|_| {
                let text = format!("is {value}; give a place, or -1 for the pointer");
                Failure::argument(name, text)
            }),
        }
    }
}

/// Patterns of a file by what they are made of, the last used one last.
type KeptPatterns = Vec<(u64, Words, Arc<Pattern>)>;

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) connection: c_int,
    /// Whether writes at the pointer go behind the end of the file (`O_APPEND`).
    pub(crate) appends: bool,
    /// In bytes of the file, or of what a descriptor shows of it. Held while an access moves it.
    pub(crate) pointer: Mutex<u64>,
    pub(crate) last: Mutex<Last>,
    /// Requests that are not done.
    outstanding: Mutex<u64>,
    is_quiet: Condvar,
    patterns: Mutex<KeptPatterns>,
}

impl OpenFile {
    pub(crate) fn new(file: File, connection: c_int) -> OpenFile {
        OpenFile {
            file,
            connection,
            appends: false,
            pointer: Mutex::default(),
            last: Mutex::default(),
            outstanding: Mutex::default(),
            is_quiet: Condvar::new(),
            patterns: Mutex::default(),
        }
    }

    pub(crate) fn outstanding(&self) -> u64 {
        *self.outstanding.lock()
    }

    pub(crate) fn request_begins(&self) {
        *self.outstanding.lock() += 1;
    }

    pub(crate) fn request_ends(&self) {
        *self.outstanding.lock() -= 1;
        self.is_quiet.notify_all();
    }

    /// Closes it when its requests are done.
    pub(crate) fn close(&self) -> Outcome {
        let mut outstanding = self.outstanding.lock();
        while *outstanding > 0 {
            self.is_quiet.wait(&mut outstanding);
        }
        drop(outstanding);
        self.patterns.lock().clear();
        Ok(self.file.close()?)
    }

    /// What a descriptor shows of the file from a byte on; that of the last time if it was used before.
    pub(crate) fn pattern(&self, displacement: u64, words: Words) -> Outcome<Arc<Pattern>> {
        let mut kept = self.patterns.lock();
        let found = kept
            .iter()
            .position(|(at, known, _)| *at == displacement && *known == words);
        let entry = match found {
            Some(index) => kept.remove(index),
            None => {
                let made = Pattern::new(&self.file, displacement, words.describe()?)?;
                if kept.len() == KEPT_PATTERNS {
                    kept.remove(0);
                }
                (displacement, words, Arc::new(made))
            }
        };
        let pattern = Arc::clone(&entry.2);
        kept.push(entry);
        Ok(pattern)
    }

    /// Moves memory, and the pointer if it goes there; keeps how it went.
    pub(crate) fn access(&self, position: Position, pattern: &Pattern, buffer: Buffer) -> Outcome {
        let (direction, requested) = (buffer.direction(), buffer.len());
        let outcome = match position {
            Position::At(at) => pattern.access(&self.file, at, buffer),
            Position::Pointer => {
                let mut pointer = self.pointer.lock();
                let moved = pattern.access(&self.file, *pointer, buffer);
                *pointer += moved.as_ref().unwrap_or(&0);
                moved
            }
        };
        *self.last.lock() = Last::new(direction, requested, &outcome);
        outcome.map(drop)
    }

    /// Takes a place for so many bytes; the pointer moves behind them at once.
    pub(crate) fn take_place(&self, position: Position, bytes: u64) -> Outcome<u64> {
        match position {
            Position::At(at) => Ok(at),
            Position::Pointer => {
                let mut pointer = self.pointer.lock();
                let at = *pointer;
                *pointer = at.saturating_add(bytes);
                Ok(at)
            }
        }
    }
}
