//! Requests: non-blocking operations as generalised requests of the host.
//!
//! ```text
//!  call:    prepare -> [ quick: run here, request complete at once ]
//!                   -> [ else: request started, operation to a `queue` ]
//!  queue:   run -> outcome -> list of done                                    never calls MPI
//!  Wait, Test, ...: finish() tells the host of all that are done, on the caller's thread
//! ```
//!
//! Invariants
//! - [`PENDING`] counts requests that a completion call has to know: those that the host has not been told of, and those
//!   that failed and have not been given back. While it is 0 completion calls are the host's own.
//! - A file counts its requests until the host gives them back, that is until the program has completed them.
//! - The lock of the table is never held while the host is called: it calls back.
//! - A request whose owner gave it back stays until its operation is done, then the host frees it. (MPICH frees
//!   a generalised request at once, whatever still runs.)
//!
//! Left to others: waiting for requests (`free/completion`), threads (`queue`).

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use client::Team;
use parking_lot::Mutex;

use crate::entries::HostFiles;
use crate::entry::{Call, Outcome};
use crate::failure::{self, Class, Failure};
use crate::ffi::{HandleOut, StatusOut, Word};
use crate::host::{self, Host};
use crate::open_file::OpenFile;
use crate::operation::Operation;
use crate::progress;
use crate::queue;
use crate::table;

/// Bytes up to which an operation that goes directly is done at the call, contiguous on both sides. Handing it to
/// a thread and hearing of its end costs 6 to 8 us, in which so much is copied (measured on one host: 256 KiB at the
/// call 5.7 us, by the thread 12 us; a call that hands over returns after 0.7 us).
const QUICK: u64 = 256 << 10;

/// Bytes of such a call that lie apart, which are copied more slowly by far: the call is not to take long.
const QUICK_APART: u64 = 16 << 10;

/// See the invariants.
static PENDING: AtomicUsize = AtomicUsize::new(0);

/// Requests that are done and that the host has not been told of.
static DONE: AtomicUsize = AtomicUsize::new(0);

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

#[derive(Debug, Default)]
struct Table {
    /// By handle: not complete, or failed and not given back.
    requests: HashMap<usize, Arc<Request>>,
    done: Vec<Arc<Request>>,
}

/// A request of ours.
#[derive(Debug)]
pub(crate) struct Request {
    file: Arc<OpenFile>,
    /// The function that began it.
    name: &'static str,
    /// Whether it waits for the other processes.
    is_in_order: bool,
    handle: AtomicUsize,
    outcome: OnceLock<Outcome<u64>>,
    /// Whether the host has been told.
    is_complete: AtomicBool,
    /// Whether its owner has given it back before its end.
    is_abandoned: AtomicBool,
    /// Whether the host has given it back.
    is_freed: AtomicBool,
}

impl Request {
    fn new(call: &Call, way: Way) -> Request {
        Request {
            file: Arc::clone(&call.file),
            name: call.name,
            is_in_order: way == Way::InOrder,
            handle: AtomicUsize::new(0),
            outcome: OnceLock::new(),
            is_complete: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            is_freed: AtomicBool::new(false),
        }
    }

    fn word(&self) -> Word {
        Word(self.handle.load(Ordering::Acquire))
    }

    /// Whether the host knows that it is done.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    /// Why it failed, once the host has given it back: what the call that did so has to report.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        match self.is_freed.load(Ordering::Acquire) {
            true => self.failed(),
            false => None,
        }
    }

    /// Why it failed, if it is done and has.
    pub(crate) fn failed(&self) -> Option<&Failure> {
        self.outcome.get()?.as_ref().err()
    }

    /// Reports its failure as that of the function that began it, through the handler of its file; the code to return.
    pub(crate) fn raise(&self, host: &Host, failure: &Failure) -> c_int {
        let file = &*self.file;
        let is_open = table::find(file.handle).is_some_and(|found| Arc::ptr_eq(&found, &self.file));
        let handle = if is_open {
            file.handle
        } else {
            host.abi.file_null
        };
        failure::raise(host, handle, self.name, &file.name, failure)
    }
}

/// The host's own functions, while completion calls can be left to them.
#[inline(always)]
pub(crate) fn while_none_pending() -> Option<&'static HostFiles> {
    match PENDING.load(Ordering::Acquire) {
        0 => Some(&host::get()?.files),
        _ => None,
    }
}

/// How an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// At the call.
    Here,
    /// By a thread of ours, with those of all files.
    Apart,
    /// By a thread of ours, in the order of the calls on its file: the other processes take part.
    InOrder,
}

fn way_of(operation: &Operation) -> Way {
    if operation.needs_caller() || queue::is_over() {
        return Way::Here;
    }
    if operation.needs_others() {
        return Way::InOrder;
    }
    let is_contiguous =
        operation.memory.places().is_contiguous() && operation.view.bytes.bytes().is_everything();
    let quick = if is_contiguous { QUICK } else { QUICK_APART };
    match operation.memory.size() {
        0 => Way::Here,
        // Whether it will go directly is not known before; what went directly last will do so again.
        size if size <= quick && operation.file.file.last_access().is_direct => Way::Here,
        _ => Way::Apart,
    }
}

/// Runs an operation; a panic is a failure like others.
fn run(operation: &Operation, team: &Team) -> Outcome<u64> {
    catch_unwind(AssertUnwindSafe(|| operation.run(team)))
        .unwrap_or_else(|_| Err(Failure::new(Class::Intern, "the operation panicked")))
}

/// Has an operation run by a thread of ours, and `then` called there with its outcome.
fn dispatch(
    operation: Operation,
    way: Way,
    then: impl FnOnce(Outcome<u64>) + Send + 'static,
) -> Outcome {
    let queue = match way {
        Way::InOrder => operation.file.ordered.clone(),
        Way::Apart | Way::Here => queue::common().clone(),
    };
    let job = Box::new(move || {
        let outcome = run(&operation, &operation.file.team);
        // The file is let go before the program hears of the end, so that a close finds it idle.
        drop(operation);
        then(outcome);
    });
    queue.submit(job).map_err(|(_, error)| {
        let text = format!("no thread could be started for the operation: {error}");
        Failure::new(Class::NoMem, text)
    })
}

/// Begins an operation whose end is told by a request.
pub(crate) fn start(call: &Call, operation: Operation, out: HandleOut) -> Outcome {
    let host = call.host;
    let way = way_of(&operation);
    let request = Request::new(call, way);
    if way == Way::Here {
        let moved = operation.run(&call.file.driven)?;
        let _ = request.outcome.set(Ok(moved));
        let (handle, request) = start_on_host(host, request)?;
        request.is_complete.store(true, Ordering::Release);
        host.complete_request(handle)?;
        out.set(handle);
        return Ok(());
    }
    let (handle, request) = start_on_host(host, request)?;
    PENDING.fetch_add(1, Ordering::AcqRel);
    TABLE
        .lock()
        .get_or_insert_default()
        .requests
        .insert(handle.0, Arc::clone(&request));
    out.set(handle);
    let doing = Arc::clone(&request);
    if let Err(failure) = dispatch(operation, way, move |outcome| end(doing, outcome)) {
        // No thread: the request is complete at once, and the thread that waits for it hears why.
        end(request, Err(failure));
        finish(host);
    }
    Ok(())
}

/// Makes the host's request.
fn start_on_host(host: &Host, request: Request) -> Outcome<(Word, Arc<Request>)> {
    let request = Arc::new(request);
    let state = Arc::into_raw(Arc::clone(&request)).cast_mut();
    match host.start_request(query, free, cancel, state.cast()) {
        Ok(handle) => {
            request.handle.store(handle.0, Ordering::Release);
            request.file.pending.fetch_add(1, Ordering::AcqRel);
            Ok((handle, request))
        }
        Err(failure) => {
            // SAFETY: the host did not take it.
            drop(unsafe { Arc::from_raw(state) });
            Err(failure)
        }
    }
}

/// Takes note that an operation is done. Called by threads of ours.
fn end(request: Arc<Request>, outcome: Outcome<u64>) {
    let _ = request.outcome.set(outcome);
    TABLE.lock().get_or_insert_default().done.push(request);
    DONE.fetch_add(1, Ordering::AcqRel);
    progress::changed();
}

/// Tells the host of all requests that are done. For threads of the program, inside a call to MPI.
pub(crate) fn finish(host: &Host) {
    if DONE.load(Ordering::Acquire) == 0 {
        return;
    }
    let done = match &mut *TABLE.lock() {
        Some(table) => std::mem::take(&mut table.done),
        None => return,
    };
    DONE.fetch_sub(done.len(), Ordering::AcqRel);
    for request in done {
        let handle = request.word();
        let _ = host.complete_request(handle);
        if request.failed().is_none() {
            forget(&request);
        }
        request.is_complete.store(true, Ordering::SeqCst);
        // Swapped, so that of two threads that give it back one does.
        if request.is_abandoned.swap(false, Ordering::SeqCst) {
            let _ = host.free_request(handle);
        }
    }
}

/// Takes a request out of the table, unless its handle stands for another one by now.
fn forget(request: &Arc<Request>) {
    if let Some(table) = &mut *TABLE.lock()
        && let Some(found) = table.requests.get(&request.word().0)
        && Arc::ptr_eq(found, request)
    {
        table.requests.remove(&request.word().0);
        PENDING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Requests of ours in a list of the program that are not complete, or have failed, with their places.
pub(crate) fn among(list: HandleOut, count: usize) -> Vec<(usize, Arc<Request>)> {
    let table = TABLE.lock();
    let Some(table) = table.as_ref().filter(|t| !t.requests.is_empty()) else {
        return Vec::new();
    };
    let known = |index| {
        let request = table.requests.get(&list.at(index).0)?;
        Some((index, Arc::clone(request)))
    };
    (0..count).filter_map(known).collect()
}

/// The request of ours behind a handle, on the same terms.
pub(crate) fn find(handle: Word) -> Option<Arc<Request>> {
    TABLE.lock().as_ref()?.requests.get(&handle.0).cloned()
}

/// Notes that the owner of a request gives it back; whether it is one that is still under way.
pub(crate) fn abandon(handle: Word) -> bool {
    let Some(request) = find(handle).filter(|request| !request.is_complete()) else {
        return false;
    };
    request.is_abandoned.store(true, Ordering::SeqCst);
    // If it was completed meanwhile by another thread, one of the two gives it back.
    let is_complete = request.is_complete.load(Ordering::SeqCst);
    !(is_complete && request.is_abandoned.swap(false, Ordering::SeqCst))
}

/// Waits until all operations on a file are done. Requests stay for the program to complete, but for those that it gave
/// back.
pub(crate) fn settle_file(file: &OpenFile) {
    let Some(host) = host::get().filter(|_| file.pending.load(Ordering::Acquire) > 0) else {
        return;
    };
    let is_awaited = |request: &Arc<Request>| {
        std::ptr::eq(&*request.file, file)
            && (request.outcome.get().is_none() || request.is_abandoned.load(Ordering::Acquire))
    };
    progress::wait_until(|| {
        finish(host);
        let table = TABLE.lock();
        !table
            .as_ref()
            .is_some_and(|table| table.requests.values().any(is_awaited))
    });
}

/// Waits for all operations; for those that need other processes no longer than so.
pub(crate) fn settle(host: &Host, patience: Duration) {
    let begun = Instant::now();
    progress::wait_until(|| {
        finish(host);
        let is_over = begun.elapsed() > patience;
        let is_awaited =
            |r: &Arc<Request>| r.outcome.get().is_none() && !(r.is_in_order && is_over);
        let table = TABLE.lock();
        !table
            .as_ref()
            .is_some_and(|table| table.requests.values().any(is_awaited))
    });
}

/// Has a forked child know of no requests.
pub(crate) fn forget_in_child() {
    PENDING.store(0, Ordering::Release);
    DONE.store(0, Ordering::Release);
}

/// Waits until what was begun before on a file together with the other processes is done: what all processes
/// do with a file happens in the order of their calls.
pub(crate) fn take_turn(file: &OpenFile) {
    if !file.ordered.is_idle() {
        progress::wait_until(|| file.ordered.is_idle());
    }
}

/// A split collective operation that has begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitOperation(Arc<OnceLock<Outcome<u64>>>);

impl SplitOperation {
    /// Begins an operation.
    pub(crate) fn start(call: &Call, operation: Operation) -> Outcome<SplitOperation> {
        let running = SplitOperation::default();
        let way = way_of(&operation);
        if way == Way::Here {
            let outcome = run(&operation, &call.file.driven);
            let _ = running.0.set(outcome);
            return Ok(running);
        }
        let doing = running.clone();
        dispatch(operation, way, move |outcome| {
            let _ = doing.0.set(outcome);
            progress::changed();
        })?;
        Ok(running)
    }

    /// Waits for its end; bytes that were moved.
    pub(crate) fn wait(&self) -> Outcome<u64> {
        progress::wait_until(|| self.0.get().is_some());
        match self.0.get() {
            Some(outcome) => outcome.clone(),
            None => Err(Failure::new(Class::Intern, "the operation has no outcome")),
        }
    }
}

/// Takes part in an operation of all processes with nothing, at its turn: the arguments of this process were wrong, and
/// the others must not wait for it.
pub(crate) fn take_part_with_nothing(operation: Operation) {
    let way = way_of(&operation);
    if way == Way::InOrder {
        let _ = dispatch(operation, way, |_| ());
    }
}

/// The host asks for the status of a request that is complete. A failure is not told here but by the call
/// that completes the request: hosts differ in what they make of a code from here, and hand it to the handler of
/// MPI_COMM_WORLD instead of that of the file.
extern "C" fn query(state: *mut c_void, status: StatusOut) -> c_int {
    // SAFETY: the host hands over what it was given, and has not called `free` yet.
    let request = unsafe { &*state.cast_const().cast::<Request>() };
    let moved = match request.outcome.get() {
        Some(Ok(moved)) => *moved,
        _ => 0,
    };
    if let Some(host) = host::get() {
        let _ = host.set_status(status, moved);
    }
    0
}

/// The host gives a request back.
extern "C" fn free(state: *mut c_void) -> c_int {
    // SAFETY: the host hands over what it was given, once.
    let request = unsafe { Arc::from_raw(state.cast_const().cast::<Request>()) };
    if request.failed().is_some() {
        forget(&request);
    }
    request.file.pending.fetch_sub(1, Ordering::AcqRel);
    request.is_freed.store(true, Ordering::Release);
    0
}

/// What has begun is not cancelled, which the standard allows: the operation goes on to its end.
extern "C" fn cancel(_state: *mut c_void, _is_complete: c_int) -> c_int {
    0
}
