//! Requests: reads and writes that go on beside the program, in its own memory.
//!
//! ```text
//!  begun --> waits for a thread --> runs --> done --> wait, test: told once, and the request is gone
//!                     \__ cancelled
//! ```
//!
//! Operations of one process run beside each other, eight at most; those of a team one after the other, in the order of the
//! calls. Memory belongs to the operation until it is done; closing a file waits for its operations.
//!
//! Left to others: how bytes travel (`client`), what a team is (`teams`).

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use client::{Jobs, Status};
use parking_lot::{Condvar, Mutex};

use crate::connect::Connection;
use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Address, ConstAddress, Out};
use crate::open::OpenFile;
use crate::patterns::Pattern;
use crate::streams::OpenStream;
use crate::table::{Handle, workers};
use crate::teams::Member;

/// Operations that run, counted.
#[derive(Debug, Default)]
pub(crate) struct OperationCount {
    count: Mutex<u64>,
    is_none: Condvar,
}

impl OperationCount {
    fn begin(&self) {
        *self.count.lock() += 1;
    }

    fn end(&self) {
        *self.count.lock() -= 1;
        self.is_none.notify_all();
    }

    /// Waits until there are none.
    pub(crate) fn wait(&self) {
        let mut count = self.count.lock();
        while *count > 0 {
            self.is_none.wait(&mut count);
        }
    }
}

/// How far an operation is.
#[derive(Debug)]
enum Stage {
    Waiting,
    Running,
    Cancelled,
    Done(Outcome<u64>),
}

/// A request of the program.
#[derive(Debug)]
pub(crate) struct Request {
    stage: Mutex<Stage>,
    changed: Condvar,
    /// Whether it may be cancelled: members of a team wait for each other's operations.
    is_alone: bool,
}

impl Request {
    fn begins(&self) -> bool {
        let mut stage = self.stage.lock();
        let begins = matches!(*stage, Stage::Waiting);
        if begins {
            *stage = Stage::Running;
        }
        begins
    }

    /// It is done, and counted no more: at once for those who wait for it and then close its file, and for those who close the file and
    /// then ask for it.
    fn ends(&self, outcome: Outcome<u64>, counted: OperationMark) {
        // What may be the last of file and team goes after the lock.
        let last = (counted.subject.clone(), counted.team.clone());
        let mut stage = self.stage.lock();
        *stage = Stage::Done(outcome);
        drop(counted);
        drop(stage);
        self.changed.notify_all();
        drop(last);
    }

    fn is_done(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Done(_) | Stage::Cancelled)
    }

    /// Waits for it: the bytes moved.
    fn outcome(&self) -> Outcome<u64> {
        let mut stage = self.stage.lock();
        loop {
            match &*stage {
                Stage::Done(outcome) => return outcome.clone(),
                Stage::Cancelled => return Ok(0),
                Stage::Waiting | Stage::Running => self.changed.wait(&mut stage),
            }
        }
    }
}

/// What an operation is done with.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    File(Arc<OpenFile>),
    Stream(Arc<OpenStream>),
}

impl Subject {
    fn running(&self) -> &OperationCount {
        match self {
            Subject::File(opened) => &opened.running,
            Subject::Stream(opened) => &opened.running,
        }
    }
}

/// Counts an operation of a file or stream, and of a team if it is one's, until it is dropped.
#[derive(Debug)]
pub(crate) struct OperationMark {
    subject: Subject,
    team: Option<Arc<Member>>,
}

impl OperationMark {
    pub(crate) fn new(subject: Subject, team: Option<&Arc<Member>>) -> OperationMark {
        subject.running().begin();
        if let Some(member) = team {
            member.running.begin();
        }
        OperationMark {
            subject,
            team: team.cloned(),
        }
    }
}

impl Drop for OperationMark {
    fn drop(&mut self) {
        self.subject.running().end();
        if let Some(member) = &self.team {
            member.running.end();
        }
    }
}

/// What an operation does.
type Work = Box<dyn FnOnce() -> Outcome<u64> + Send>;

/// Has something done beside the program; the request goes with a client.
pub(crate) fn begin(
    request: Out<Handle<Request>>,
    owner: Handle<Connection>,
    counted: OperationMark,
    jobs: &Jobs<'static>,
    work: Work,
) -> Outcome {
    request.required("request")?.set(Handle::NULL);
    let made = Arc::new(Request {
        stage: Mutex::new(Stage::Waiting),
        changed: Condvar::new(),
        is_alone: counted.team.is_none(),
    });
    let entered = Handle::enter(Arc::clone(&made), owner)?;
    let job = Box::new(move || {
        if !made.begins() {
            return;
        }
        let done = catch_unwind(AssertUnwindSafe(work));
        let outcome = done.unwrap_or_else(|_| {
            let text = "the operation failed by a bug of the library";
            Err(Failure::new(Status::Internal, text))
        });
        made.ends(outcome, counted);
    });
    if let Err((job, error)) = jobs.submit(job) {
        drop(job);
        entered.close()?;
        let text = format!("no thread for the operation: {error}");
        return Err(Failure::new(Status::NoMemory, text));
    }
    request.set(entered);
    Ok(())
}

/// An operation of one process.
fn alone(
    request: Out<Handle<Request>>,
    file: Handle<OpenFile>,
    work: impl FnOnce(&OpenFile) -> Outcome<u64> + Send + 'static,
) -> Outcome {
    request.required("request")?.set(Handle::NULL);
    let (opened, counted) = file.with(|opened| {
        let counted = OperationMark::new(Subject::File(Arc::clone(opened)), None);
        Ok((Arc::clone(opened), counted))
    })?;
    let work = Box::new(move || work(&opened));
    begin(request, file.owner()?, counted, workers(), work)
}

/// Begins to read at an offset.
#[unsafe(no_mangle)]
extern "C" fn pario_iread_at(
    file: Handle<OpenFile>,
    offset: u64,
    buffer: Address,
    bytes: usize,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iread_at", || {
        let target = buffer.target("buffer", bytes)?;
        alone(request, file, move |opened| {
            Ok(opened.file.read_at_shared(offset, target)? as u64)
        })
    })
}

/// Begins to write at an offset.
#[unsafe(no_mangle)]
extern "C" fn pario_iwrite_at(
    file: Handle<OpenFile>,
    offset: u64,
    buffer: ConstAddress,
    bytes: usize,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iwrite_at", || {
        let source = buffer.source("buffer", bytes)?;
        alone(request, file, move |opened| {
            Ok(opened.file.write_at_shared(offset, source)? as u64)
        })
    })
}

/// Begins to read at an offset into memory that a pattern describes.
#[unsafe(no_mangle)]
extern "C" fn pario_iread_pattern_at(
    file: Handle<OpenFile>,
    offset: u64,
    base: Address,
    pattern: Handle<Pattern>,
    count: u64,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iread_pattern_at", || {
        let places = pattern.get()?.places(count)?;
        places.target(base)?;
        alone(request, file, move |opened| {
            Ok(opened.file.access_at(offset, places.target(base)?)? as u64)
        })
    })
}

/// Begins to write at an offset from memory that a pattern describes.
#[unsafe(no_mangle)]
extern "C" fn pario_iwrite_pattern_at(
    file: Handle<OpenFile>,
    offset: u64,
    base: ConstAddress,
    pattern: Handle<Pattern>,
    count: u64,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iwrite_pattern_at", || {
        let places = pattern.get()?.places(count)?;
        places.source(base)?;
        alone(request, file, move |opened| {
            Ok(opened.file.access_at(offset, places.source(base)?)? as u64)
        })
    })
}

/// Takes a place at the pointer of a file for so many bytes, which moves it at once.
fn take_place(file: Handle<OpenFile>, bytes: u64) -> Outcome<u64> {
    let opened = file.get()?;
    let _place = opened.pointer.lock();
    let at = opened.file.position();
    let next = at.saturating_add(bytes);
    opened.file.seek(std::io::SeekFrom::Start(next))?;
    Ok(at)
}

/// Begins to read at the pointer of the file, which is behind the bytes at once.
#[unsafe(no_mangle)]
extern "C" fn pario_iread(
    file: Handle<OpenFile>,
    buffer: Address,
    bytes: usize,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iread", || {
        request.required("request")?.set(Handle::NULL);
        let target = buffer.target("buffer", bytes)?;
        let at = take_place(file, bytes as u64)?;
        alone(request, file, move |opened| {
            Ok(opened.file.read_at_shared(at, target)? as u64)
        })
    })
}

/// Begins to write at the pointer of the file, which is behind the bytes at once.
#[unsafe(no_mangle)]
extern "C" fn pario_iwrite(
    file: Handle<OpenFile>,
    buffer: ConstAddress,
    bytes: usize,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iwrite", || {
        request.required("request")?.set(Handle::NULL);
        let source = buffer.source("buffer", bytes)?;
        let at = take_place(file, bytes as u64)?;
        alone(request, file, move |opened| {
            Ok(opened.file.write_at_shared(at, source)? as u64)
        })
    })
}

/// Begins to read at the pointer of the file into memory that a pattern describes; the pointer is behind the bytes at once.
#[unsafe(no_mangle)]
extern "C" fn pario_iread_pattern(
    file: Handle<OpenFile>,
    base: Address,
    pattern: Handle<Pattern>,
    count: u64,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iread_pattern", || {
        request.required("request")?.set(Handle::NULL);
        let places = pattern.get()?.places(count)?;
        places.target(base)?;
        let at = take_place(file, places.size())?;
        alone(request, file, move |opened| {
            Ok(opened.file.access_at(at, places.target(base)?)? as u64)
        })
    })
}

/// Begins to write at the pointer of the file from memory that a pattern describes; the pointer is behind the bytes at once.
#[unsafe(no_mangle)]
extern "C" fn pario_iwrite_pattern(
    file: Handle<OpenFile>,
    base: ConstAddress,
    pattern: Handle<Pattern>,
    count: u64,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iwrite_pattern", || {
        request.required("request")?.set(Handle::NULL);
        let places = pattern.get()?.places(count)?;
        places.source(base)?;
        let at = take_place(file, places.size())?;
        alone(request, file, move |opened| {
            Ok(opened.file.access_at(at, places.source(base)?)? as u64)
        })
    })
}

/// Waits for a request, which is gone then; a null request is done and has moved nothing.
fn complete(request: Out<Handle<Request>>, index: usize) -> Outcome<u64> {
    let handle = request.get_at("request", index)?;
    if handle.is_null() {
        return Ok(0);
    }
    let outcome = handle.get()?.outcome();
    // Another thread may have waited too; then the request is gone, and both know what it came to.
    let _ = handle.close();
    request.set_at(index, Handle::NULL);
    outcome
}

/// Waits until a request is done: what came of it, and the bytes moved.
#[unsafe(no_mangle)]
extern "C" fn pario_wait(request: Out<Handle<Request>>, moved: Out<u64>) -> c_int {
    answer("pario_wait", || {
        moved.set(0);
        moved.set(complete(request, 0)?);
        Ok(())
    })
}

/// Waits until all requests of a list are done; the first failure if there is one.
#[unsafe(no_mangle)]
extern "C" fn pario_wait_all(
    count: usize,
    requests: Out<Handle<Request>>,
    moved: Out<u64>,
) -> c_int {
    answer("pario_wait_all", || {
        let mut failure = None;
        for index in 0..count {
            match complete(requests, index) {
                Ok(bytes) => moved.set_at(index, bytes),
                Err(error) => {
                    moved.set_at(index, 0);
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    })
}

/// Whether a request is done, without waiting; if so it is as if it had been waited for.
#[unsafe(no_mangle)]
extern "C" fn pario_test(
    request: Out<Handle<Request>>,
    is_done: Out<c_int>,
    moved: Out<u64>,
) -> c_int {
    answer("pario_test", || {
        is_done.required("is_done")?.set(0);
        moved.set(0);
        let handle = request.get("request")?;
        if !handle.is_null() && !handle.get()?.is_done() {
            return Ok(());
        }
        is_done.set(1);
        moved.set(complete(request, 0)?);
        Ok(())
    })
}

/// Takes a request back if it has not begun; it has to be waited for in any case.
#[unsafe(no_mangle)]
extern "C" fn pario_cancel(request: Handle<Request>, is_cancelled: Out<c_int>) -> c_int {
    answer("pario_cancel", || {
        let request = request.get()?;
        let mut stage = request.stage.lock();
        if request.is_alone && matches!(*stage, Stage::Waiting) {
            *stage = Stage::Cancelled;
            request.changed.notify_all();
        }
        is_cancelled.set(c_int::from(matches!(*stage, Stage::Cancelled)));
        Ok(())
    })
}

/// Lets a request go, which goes on; its memory is free when the file is closed.
#[unsafe(no_mangle)]
extern "C" fn pario_request_free(request: Handle<Request>) -> c_int {
    answer("pario_request_free", || request.close().map(drop))
}
