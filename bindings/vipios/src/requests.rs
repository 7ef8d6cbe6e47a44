//! Requests: accesses that go on beside the program, in its own memory.
//!
//! ```text
//!  begun --> waits for a thread --> runs --> done --> asked for by wait or test --> forgotten, when many later ones were asked for
//! ```
//!
//! Any number of them may be outstanding, also of one file; each has a number and a count of its own (VP-Z35, VP-Z44).
//!
//! Left to others: how bytes travel (`client`).

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use border::entry::{Failure, Outcome};
use border::ffi::{Address, ConstAddress, Out};
use client::{Direction, Status};
use parking_lot::{Condvar, Mutex};

use crate::access::{Argument, StructAccess, not_done};
use crate::answer::{Number, code, not_negative, store, yes};
use crate::descriptor::Descriptor;
use crate::pattern::{Buffer, Pattern};
use crate::state::{Last, OpenFile, Position, file_of, new_number, state, unknown};

/// Requests that were asked for, and can be asked for again.
const KEPT: usize = 1 << 16;

/// A request of the program.
#[derive(Debug)]
pub(crate) struct Request {
    direction: Direction,
    pub(crate) requested: u64,
    outcome: Mutex<Option<Outcome<u64>>>,
    is_done: Condvar,
    /// Its file, until its outcome was asked for.
    opened: Mutex<Option<Arc<OpenFile>>>,
}

/// The requests of the process.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    all: HashMap<c_int, Arc<Request>>,
    /// Those that were asked for, the first of them first.
    asked: VecDeque<c_int>,
}

impl Request {
    fn done(&self) -> Option<Outcome<u64>> {
        self.outcome.lock().clone()
    }

    fn wait(&self) -> Outcome<u64> {
        let mut outcome = self.outcome.lock();
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            self.is_done.wait(&mut outcome);
        }
    }

    /// How it went; nothing while it is not done.
    pub(crate) fn last(&self) -> Option<Last> {
        Some(Last::new(self.direction, self.requested, &self.done()?))
    }

    /// Its outcome is asked for: it counts as the last access of its file.
    fn is_asked(&self, number: c_int, outcome: &Outcome<u64>) {
        let Some(opened) = self.opened.lock().take() else {
            return;
        };
        *opened.last.lock() = Last::new(self.direction, self.requested, outcome);
        let mut requests = state().requests.lock();
        requests.asked.push_back(number);
        if requests.asked.len() > KEPT
            && let Some(oldest) = requests.asked.pop_front()
        {
            requests.all.remove(&oldest);
        }
    }
}

/// A request by its number.
pub(crate) fn request_of(number: c_int) -> Outcome<Arc<Request>> {
    let found = state().requests.lock().all.get(&number).cloned();
    found.ok_or_else(|| unknown("request", number))
}

/// Has memory moved beside the program.
fn begin(
    opened: Arc<OpenFile>,
    position: Position,
    pattern: Arc<Pattern>,
    buffer: Buffer,
    reqid: Out<c_int>,
) -> Outcome {
    let number = new_number()?;
    let at = opened.take_place(position, buffer.len())?;
    let request = Arc::new(Request {
        direction: buffer.direction(),
        requested: buffer.len(),
        outcome: Mutex::default(),
        is_done: Condvar::new(),
        opened: Mutex::new(Some(Arc::clone(&opened))),
    });
    let mine = Arc::clone(&request);
    state().requests.lock().all.insert(number, request);
    opened.request_begins();
    let file = Arc::clone(&opened);
    let job = Box::new(move || {
        let work = || pattern.access(&file.file, at, buffer);
        let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            let text = "the request failed by a bug of the library";
            Err(Failure::new(Status::Internal, text))
        });
        // What may be the last of a side view goes before the file counts as quiet.
        drop(pattern);
        let mut done = mine.outcome.lock();
        *done = Some(outcome);
        file.request_ends();
        drop(done);
        mine.is_done.notify_all();
    });
    if let Err((job, error)) = state().workers.submit(job) {
        drop(job);
        opened.request_ends();
        state().requests.lock().all.remove(&number);
        let text = format!("no thread for the request: {error}");
        return Err(Failure::new(Status::NoMemory, text));
    }
    reqid.set(number);
    Ok(())
}

fn plain(fid: c_int, buffer: impl Argument, count: i64, offset: i64, reqid: Out<c_int>) -> Outcome {
    reqid.required("reqid")?.set(-1);
    let opened = file_of(fid)?;
    let buffer = buffer.buffer(not_negative("count", count)?)?;
    let position = Position::of("offset", offset)?;
    begin(opened, position, Arc::new(Pattern::WHOLE), buffer, reqid)
}

fn structured<N: Number>(
    fid: c_int,
    buffer: impl Argument,
    (len, desc, offset, at): (N, Descriptor<N>, N, N),
    reqid: Out<c_int>,
) -> Outcome {
    reqid.required("reqid")?.set(-1);
    let StructAccess {
        opened,
        pattern,
        buffer,
        position,
    } = StructAccess::new(fid, buffer, len, desc, offset, at)?;
    begin(opened, position, pattern, buffer, reqid)
}

macro_rules! plain_requests {
    ($($(#[$doc:meta])* $name:ident($of:ty, $number:ty);)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            fid: c_int,
            buf: $of,
            count: $number,
            offset: $number,
            reqid: Out<c_int>,
        ) -> bool {
            yes(stringify!($name), || plain(fid, buf, count.into(), offset.into(), reqid))
        }
    )*};
}

plain_requests! {
    /// Begins to read.
    ViPIOS_Iread(Address, i32);
    /// Begins to read.
    ViPIOS_Iread64(Address, i64);
    /// Begins to write.
    ViPIOS_Iwrite(ConstAddress, i32);
    /// Begins to write.
    ViPIOS_Iwrite64(ConstAddress, i64);
}

macro_rules! struct_requests {
    ($($(#[$doc:meta])* $name:ident($of:ty, $number:ty);)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            fid: c_int,
            buf: $of,
            len: $number,
            desc: Descriptor<$number>,
            offset: $number,
            at: $number,
            reqid: Out<c_int>,
        ) -> c_int {
            code(stringify!($name), || structured(fid, buf, (len, desc, offset, at), reqid))
        }
    )*};
}

struct_requests! {
    /// Begins to read bytes that a descriptor shows.
    ViPIOS_Iread_struct(Address, i32);
    /// Begins to read bytes that a descriptor shows.
    ViPIOS_Iread_struct64(Address, i64);
    /// Begins to write bytes that a descriptor shows.
    ViPIOS_Iwrite_struct(ConstAddress, i32);
    /// Begins to write bytes that a descriptor shows.
    ViPIOS_Iwrite_struct64(ConstAddress, i64);
}

/// Whether a request is done, without waiting.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_Test(reqid: c_int, flag: Out<c_int>) -> c_int {
    code("ViPIOS_File_Test", || {
        flag.required("flag")?.set(0);
        let request = request_of(reqid)?;
        let Some(outcome) = request.done() else {
            return Ok(());
        };
        flag.set(1);
        request.is_asked(reqid, &outcome);
        outcome.map(drop)
    })
}

/// Waits until a request is done.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_Wait(reqid: c_int) -> c_int {
    code("ViPIOS_File_Wait", || {
        let request = request_of(reqid)?;
        let outcome = request.wait();
        request.is_asked(reqid, &outcome);
        outcome.map(drop)
    })
}

fn get_count<N: Number>(reqid: c_int, count: Out<N>) -> Outcome {
    let outcome = request_of(reqid)?.done().ok_or_else(|| not_done(reqid))?;
    store(count.required("count")?, "count", outcome.unwrap_or(0))
}

/// The bytes that a request has moved.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Request_get_count(reqid: c_int, count: Out<c_int>) -> c_int {
    code("ViPIOS_Request_get_count", || get_count(reqid, count))
}

/// The bytes that a request has moved.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Request_get_count64(reqid: c_int, count: Out<i64>) -> c_int {
    code("ViPIOS_Request_get_count64", || get_count(reqid, count))
}
