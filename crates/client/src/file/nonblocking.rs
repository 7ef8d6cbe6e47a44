//! Operations that go on while their caller does something else.
//!
//! ```text
//!  read_at_nonblocking, write_at_nonblocking   memory that the operation owns; threads of the client, 8 at most
//!  overlap                                     memory of the caller, described or not, alone and as a team;
//!                                              threads of the call
//! ```
//!
//! Each operation of one process runs in a thread with connections of its own, so it goes on whatever the caller does
//! and operations do not wait for each other. Operations of a team run one after the other, in the order of the
//! calls, on a thread of their own.
//!
//! Invariants: memory belongs to the operation until it is done; completion is told once.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};
use wire::Status;

use crate::access::memory::Memory;
use crate::collective::team::Team;
use crate::error::{Error, Result};
use crate::file::File;
use crate::transport::jobs::Jobs;

/// Most operations of one process that run at once.
pub(crate) const MOST_WORKERS: usize = 8;

/// Threads of a client for what runs beside its callers.
pub(crate) fn workers<'a>() -> Jobs<'a> {
    Jobs::new("pario-worker", MOST_WORKERS, || ())
}

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
#[derive(Debug)]
struct Slot<T> {
    outcome: Mutex<Option<T>>,
    is_done: Condvar,
}

impl<T> Slot<T> {
    fn new() -> Arc<Slot<T>> {
        Arc::new(Slot {
            outcome: Mutex::new(None),
            is_done: Condvar::new(),
        })
    }

    fn set(&self, outcome: T) {
        *self.outcome.lock() = Some(outcome);
        self.is_done.notify_all();
    }

    fn is_set(&self) -> bool {
        self.outcome.lock().is_some()
    }

    fn wait(&self) -> T {
        let mut outcome = self.outcome.lock();
        loop {
            if let Some(done) = outcome.take() {
                return done;
            }
            self.is_done.wait(&mut outcome);
        }
    }
}

/// A non-blocking operation. Dropping it does not stop the operation.
#[derive(Debug)]
pub struct Pending {
    slot: Arc<Slot<Outcome>>,
    pid: u32,
}

impl Pending {
    fn new() -> Pending {
        Pending {
            slot: Slot::new(),
            pid: std::process::id(),
        }
    }

    fn done(result: Result<usize>, buffer: Buffer) -> Pending {
        let pending = Pending::new();
        pending.slot.set((result, buffer));
        pending
    }

    /// Whether it is done. Never waits.
    pub fn test(&self) -> bool {
        // In a forked child nobody will ever finish it, which is told by `wait`.
        std::process::id() != self.pid || self.slot.is_set()
    }

    /// Waits until it is done: the bytes moved, and the buffer.
    pub fn wait(self) -> Outcome {
        if std::process::id() != self.pid {
            return (Err(Error::Forked), Buffer::Owned(Vec::new()));
        }
        self.slot.wait()
    }
}

enum Task {
    Read(Vec<u8>),
    Write(Buffer),
    /// For the buffer of the handle: range, version.
    Ahead(Range<u64>, u64, Vec<u8>),
}

pub(crate) fn read(file: &File, offset: u64, buffer: Vec<u8>) -> Pending {
    begin(file, offset, Task::Read(buffer))
}

pub(crate) fn write(file: &File, offset: u64, bytes: Buffer) -> Pending {
    begin(file, offset, Task::Write(bytes))
}

/// Reads a range for the buffer of a handle; where it cannot begin, the range does not arrive.
pub(crate) fn read_ahead(file: &File, range: Range<u64>, version: u64, bytes: Vec<u8>) {
    let offset = range.start;
    drop(begin(file, offset, Task::Ahead(range, version, bytes)));
}

fn begin(file: &File, offset: u64, task: Task) -> Pending {
    if let Err(error) = file.check() {
        return refused(file, error, task);
    }
    let pending = Pending::new();
    // Where it is found again if there is no thread for it.
    let task = Arc::new(Mutex::new(Some(task)));
    let (mine, taken, slot) = (file.clone(), Arc::clone(&task), pending.slot.clone());
    file.life.operations.begin();
    let job = move || {
        if let Some(task) = taken.lock().take() {
            run(mine, offset, task, &slot);
        }
    };
    match file.session.open_files.workers.submit(Box::new(job)) {
        Ok(()) => pending,
        Err((job, error)) => {
            let task = task.lock().take().expect("it did not run");
            file.life.operations.end();
            drop(job);
            refused(file, no_thread(&error), task)
        }
    }
}

fn no_thread(error: &io::Error) -> Error {
    Error::Refused {
        status: Status::NoMemory,
        text: format!("no thread for a non-blocking operation: {error}"),
        server: None,
    }
}

fn refused(file: &File, error: Error, task: Task) -> Pending {
    let buffer = match task {
        Task::Read(buffer) => Buffer::Owned(buffer),
        Task::Write(buffer) => buffer,
        Task::Ahead(range, version, bytes) => {
            file.ahead.arrive(&range, version, bytes, 0);
            Buffer::Owned(Vec::new())
        }
    };
    Pending::done(Err(error), buffer)
}

/// Runs an operation; a panic is a failure like others.
fn guarded(operation: impl FnOnce() -> Result<usize>) -> Result<usize> {
    catch_unwind(AssertUnwindSafe(operation)).unwrap_or_else(|_| {
        Err(Error::Refused {
            status: Status::Internal,
            text: "the operation failed by a bug of the client".into(),
            server: None,
        })
    })
}

fn run(file: File, offset: u64, task: Task, slot: &Slot<Outcome>) {
    let outcome = match task {
        Task::Read(mut buffer) => (
            guarded(|| file.read_at(offset, &mut buffer)),
            Buffer::Owned(buffer),
        ),
        Task::Write(buffer) => (guarded(|| file.write_at(offset, &buffer)), buffer),
        Task::Ahead(range, version, mut bytes) => {
            let came = guarded(|| file.fetch_now(offset, &mut bytes)).unwrap_or(0) as u64;
            file.ahead.arrive(&range, version, bytes, came);
            (Ok(0), Buffer::Owned(Vec::new()))
        }
    };
    // The file is let go before completion is told: the caller that waits for that may drop it as the last.
    let operations = file.life.operations.clone();
    drop(file);
    slot.set(outcome);
    operations.end();
}

/// Operations on the memory of the caller that run beside it; made by [`File::overlap`].
#[derive(Debug)]
pub struct Overlap<'scope, 'env> {
    file: &'env File,
    scope: &'scope thread::Scope<'scope, 'env>,
    alone: Jobs<'scope>,
    together: Jobs<'scope>,
}

/// An operation of an [`Overlap`] that has begun.
#[derive(Debug)]
pub struct Operation<'scope> {
    slot: Arc<Slot<Result<usize>>>,
    memory: PhantomData<&'scope mut [u8]>,
}

impl Operation<'_> {
    /// Whether it is done. Never waits.
    pub fn test(&self) -> bool {
        self.slot.is_set()
    }

    /// Waits until it is done: the bytes moved.
    pub fn wait(self) -> Result<usize> {
        self.slot.wait()
    }
}

impl File {
    /// Has operations on memory of the caller run beside it. All of them are done when this returns; what an operation
    /// came to is told by its [`Operation`], and an error that was not asked for is lost, as with any request that is
    /// dropped.
    ///
    /// ```no_run
    /// # fn compute() {}
    /// # fn example(file: &client::File, next: &mut [u8], result: &[u8]) -> client::Result<()> {
    /// file.overlap(|beside| {
    ///     let written = beside.write_at(0, result);
    ///     let read = beside.read_at(1 << 20, next);
    ///     compute();
    ///     written.wait()?;
    ///     read.wait().map(drop)
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn overlap<'env, T>(
        &'env self,
        work: impl for<'scope> FnOnce(&Overlap<'scope, 'env>) -> T,
    ) -> T {
        thread::scope(|scope| {
            let overlap = Overlap {
                file: self,
                scope,
                alone: workers(),
                together: Jobs::new("pario-team", 1, || ()),
            };
            // Threads that have no more to do end at once, also if `work` panics: the scope waits for them.
            let _end = End(&overlap);
            work(&overlap)
        })
    }
}

/// Lets the threads of an overlap end.
struct End<'a, 'scope, 'env>(&'a Overlap<'scope, 'env>);

impl Drop for End<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.alone.stop();
        self.0.together.stop();
    }
}

impl<'scope, 'env: 'scope> Overlap<'scope, 'env> {
    /// Reads view bytes from `offset` on.
    pub fn read_at(&self, offset: u64, buffer: &'scope mut [u8]) -> Operation<'scope> {
        self.access_at(offset, buffer.into())
    }

    /// Writes view bytes from `offset` on.
    pub fn write_at(&self, offset: u64, bytes: &'scope [u8]) -> Operation<'scope> {
        self.access_at(offset, bytes.into())
    }

    /// Reads or writes memory as it is described; see [`File::access_at`].
    pub fn access_at(&self, offset: u64, memory: Memory<'scope>) -> Operation<'scope> {
        let file = self.file;
        self.begin(&self.alone, move || file.access_at(offset, memory))
    }

    /// Reads or writes together with all members of a team; see [`File::access_at_all`].
    /// Operations of teams run in the order of these calls, which has to be one at all members. The member does
    /// nothing else with its team until they are done.
    pub fn access_at_all(
        &self,
        team: &'scope Team,
        offset: u64,
        memory: Memory<'scope>,
    ) -> Operation<'scope> {
        let file = self.file;
        self.begin(&self.together, move || {
            file.access_at_all(team, offset, memory)
        })
    }

    fn begin(
        &self,
        jobs: &Jobs<'scope>,
        operation: impl FnOnce() -> Result<usize> + Send + 'scope,
    ) -> Operation<'scope> {
        let slot = Slot::new();
        let told = Arc::clone(&slot);
        let job = Box::new(move || told.set(guarded(operation)));
        if let Err((_, error)) = jobs.submit_in(self.scope, job) {
            slot.set(Err(no_thread(&error)));
        }
        Operation {
            slot,
            memory: PhantomData,
        }
    }
}
