//! Operations that go on while their caller does something else.
//!
//! Each runs in a worker thread, with connections of its own, so it goes on whatever the caller does
//! and requests do not wait for each other. Workers are started when there is work and nobody idle, 8
//! at most, with all signals blocked; one that has had nothing to do for some seconds ends.
//!
//! Invariants: the buffer belongs to the operation until it is done; completion is told once.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::SigSet;
use parking_lot::{Condvar, Mutex};
use wire::Status;

use crate::error::{Error, Result};
use crate::file::File;

/// Most operations that run at once.
const MOST_WORKERS: usize = 8;
/// How long an idle worker waits for more.
const IDLE: Duration = Duration::from_secs(5);

/// Memory that a non-blocking operation holds until it is done.
#[derive(Clone, Debug)]
pub enum Buffer {
    /// Given away for the time of the operation.
    Owned(Vec<u8>),
    /// Shared with others who only read it.
    Shared(Arc<[u8]>),
}

impl Buffer {
    /// The bytes as a vector; copies only what is shared.
    pub fn into_vec(self) -> Vec<u8> {
        match self {
            Buffer::Owned(bytes) => bytes,
            Buffer::Shared(bytes) => bytes.to_vec(),
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Buffer::Owned(bytes) => bytes,
            Buffer::Shared(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Buffer::Owned(bytes)
    }
}

impl From<Arc<[u8]>> for Buffer {
    fn from(bytes: Arc<[u8]>) -> Self {
        Buffer::Shared(bytes)
    }
}

type Outcome = (Result<usize>, Buffer);

/// Where an operation leaves what came of it.
#[derive(Debug, Default)]
struct Slot {
    outcome: Mutex<Option<Outcome>>,
    is_done: Condvar,
}

/// A non-blocking operation. Dropping it does not stop the operation.
#[derive(Debug)]
pub struct Request {
    slot: Arc<Slot>,
    pid: u32,
}

impl Request {
    fn new() -> Request {
        Request {
            slot: Arc::default(),
            pid: std::process::id(),
        }
    }

    fn done(result: Result<usize>, buffer: Buffer) -> Request {
        let request = Request::new();
        *request.slot.outcome.lock() = Some((result, buffer));
        request
    }

    /// Whether it is done. Never waits.
    pub fn test(&self) -> bool {
        // In a forked child nobody will ever finish it, which is told by `wait`.
        std::process::id() != self.pid || self.slot.outcome.lock().is_some()
    }

    /// Waits until it is done: the bytes moved, and the buffer.
    pub fn wait(self) -> Outcome {
        if std::process::id() != self.pid {
            return (Err(Error::Forked), Buffer::Owned(Vec::new()));
        }
        let mut outcome = self.slot.outcome.lock();
        loop {
            if let Some(done) = outcome.take() {
                return done;
            }
            self.slot.is_done.wait(&mut outcome);
        }
    }
}

enum Task {
    Read(Vec<u8>),
    Write(Buffer),
    /// For the buffer of the handle: range, version.
    Ahead(Range<u64>, u64, Vec<u8>),
}

struct Job {
    file: File,
    offset: u64,
    task: Task,
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

/// Threads that run non-blocking operations.
#[derive(Default)]
pub(crate) struct Workers(Arc<(Mutex<Queue>, Condvar)>);

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workers({})", self.0.0.lock().threads)
    }
}

pub(crate) fn read(file: &File, offset: u64, buffer: Vec<u8>) -> Request {
    begin(file, offset, Task::Read(buffer))
}

pub(crate) fn write(file: &File, offset: u64, bytes: Buffer) -> Request {
    begin(file, offset, Task::Write(bytes))
}

/// Reads a range for the buffer of a handle; where it cannot begin, the range does not arrive.
pub(crate) fn read_ahead(file: &File, range: Range<u64>, version: u64, bytes: Vec<u8>) {
    let offset = range.start;
    drop(begin(file, offset, Task::Ahead(range, version, bytes)));
}

fn begin(file: &File, offset: u64, task: Task) -> Request {
    if let Err(error) = file.check() {
        return refused(file, error, task);
    }
    let request = Request::new();
    let shared = &file.session.workers.0;
    let mut queue = shared.0.lock();
    if queue.idle <= queue.jobs.len() && queue.threads < MOST_WORKERS {
        match start(shared.clone()) {
            Ok(()) => queue.threads += 1,
            // Without any thread nobody would ever run it; with some it only waits longer.
            Err(error) if queue.threads == 0 => {
                let error = Error::Refused {
                    status: Status::NoMemory,
                    text: format!("no thread for a non-blocking operation: {error}"),
                    server: None,
                };
                return refused(file, error, task);
            }
            Err(_) => {}
        }
    }
    file.pending.begin();
    queue.jobs.push_back(Job {
        file: file.clone(),
        offset,
        task,
        slot: request.slot.clone(),
    });
    drop(queue);
    shared.1.notify_one();
    request
}

fn refused(file: &File, error: Error, task: Task) -> Request {
    let buffer = match task {
        Task::Read(buffer) => Buffer::Owned(buffer),
        Task::Write(buffer) => buffer,
        Task::Ahead(range, version, bytes) => {
            file.ahead.arrive(&range, version, bytes, 0);
            Buffer::Owned(Vec::new())
        }
    };
    Request::done(Err(error), buffer)
}

/// Starts a worker that gets no signals: they are blocked before it exists and restored after.
fn start(shared: Arc<(Mutex<Queue>, Condvar)>) -> std::io::Result<()> {
    let before = SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
    let started = thread::Builder::new()
        .name("pario-worker".into())
        .spawn(move || work(&shared));
    before.thread_set_mask()?;
    started.map(drop)
}

fn work(shared: &(Mutex<Queue>, Condvar)) {
    loop {
        let mut queue = shared.0.lock();
        let job = loop {
            if let Some(job) = queue.jobs.pop_front() {
                break job;
            }
            queue.idle += 1;
            let waited = shared.1.wait_for(&mut queue, IDLE);
            queue.idle -= 1;
            if waited.timed_out() && queue.jobs.is_empty() {
                queue.threads -= 1;
                return;
            }
        };
        drop(queue);
        run(job);
    }
}

fn run(job: Job) {
    let Job {
        file,
        offset,
        task,
        slot,
    } = job;
    let (result, buffer) = match task {
        Task::Read(mut buffer) => (
            catch_unwind(AssertUnwindSafe(|| file.read_at(offset, &mut buffer))),
            Buffer::Owned(buffer),
        ),
        Task::Write(buffer) => (
            catch_unwind(AssertUnwindSafe(|| file.write_at(offset, &buffer))),
            buffer,
        ),
        Task::Ahead(range, version, mut bytes) => {
            let came = catch_unwind(AssertUnwindSafe(|| file.fetch_now(offset, &mut bytes)));
            let came = came.ok().and_then(Result::ok).unwrap_or(0) as u64;
            file.ahead.arrive(&range, version, bytes, came);
            (Ok(Ok(0)), Buffer::Owned(Vec::new()))
        }
    };
    let result = result.unwrap_or_else(|_| {
        Err(Error::Refused {
            status: Status::Internal,
            text: "the operation failed by a bug of the client".into(),
            server: None,
        })
    });
    // The file is let go before completion is told: whoever waits for that may drop it as the last.
    let pending = file.pending.clone();
    drop(file);
    *slot.outcome.lock() = Some((result, buffer));
    slot.is_done.notify_all();
    pending.end();
}
