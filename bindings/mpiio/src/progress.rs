//! Waiting inside a call of ours: on a condition of our own, with back-off, and with the host kept going.
//!
//! A peer may be in a receive that needs this process to make progress before it comes to the collective call
//! that is waited for here. So between waits the host is driven: it is asked for the state of a request that never
//! completes. (A probe on a communicator with this process alone is no progress in MPICH: it looks at
//! messages to itself only, 6 ns, and a rendezvous stands still. The request costs 9 to 17 ns when there is nothing to do.)
//!
//! Invariants
//! - Nothing spins: a wait rests between drives, 50 us first, up to 1 ms; a drive ends when the host has
//!   nothing to move.
//! - Only threads of the program drive, inside a call that they made.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::ffi::{StatusOut, Word};
use crate::finalize;
use crate::host::{self, Host};
use parking_lot::{Condvar, Mutex};

/// The request that never completes; 0 before the first file and after the end of MPI.
static BEACON: AtomicUsize = AtomicUsize::new(0);

/// Whether the process is set up.
static IS_PREPARED: Mutex<bool> = Mutex::new(false);

/// Asks of the host before time is looked at. Few: a host that yields when it has nothing to do gives the processor away
/// with each of them, and what is waited for is not looked at meanwhile.
const BURST: usize = 4;

/// Thread time of a burst in which data was moved. One that finds nothing takes 0.1 us; in a host that yields about
/// 2 us, and up to 10 us where each yield switches to another process.
const BUSY: Duration = Duration::from_micros(24);

/// Bursts in a row, so that what is waited for is looked at now and then.
const MOST_BURSTS: usize = 32;

/// Sets the process up; called when a file is opened.
pub(crate) fn prepare() {
    let mut is_prepared = IS_PREPARED.lock();
    if *is_prepared {
        return;
    }
    if let Some(host) = host::get() {
        *is_prepared = true;
        finalize::prepare(host);
        if let Ok(request) = host.start_request(query, free, cancel, std::ptr::null_mut()) {
            BEACON.store(request.0, Ordering::Release);
        }
    }
}

/// Gives the request back at the end of MPI.
pub(crate) fn release(host: &Host) {
    let request = Word(BEACON.swap(0, Ordering::AcqRel));
    if request.0 != 0 && host.complete_request(request).is_ok() {
        let _ = host.free_request(request);
    }
}

/// Lets the host make progress. For threads of the program, inside a call to MPI.
pub(crate) fn drive() {
    drive_on();
}

/// Lets the host make progress for as long as it moves something; whether it did.
fn drive_on() -> bool {
    let request = Word(BEACON.load(Ordering::Acquire));
    let Some(host) = host::get().filter(|_| request.0 != 0) else {
        return false;
    };
    let mut before = thread_time();
    for burst in 0..MOST_BURSTS {
        for _ in 0..BURST {
            host.ask_request(request);
        }
        let after = thread_time();
        if after.saturating_sub(before) < BUSY {
            return burst > 0;
        }
        before = after;
    }
    true
}

/// Time that this thread has run: unlike the clock, it stands still while others have the processor.
fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place is a local; the clock is there in every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Counts what threads of ours have finished.
static CHANGES: Mutex<u64> = Mutex::new(0);
static CHANGED: Condvar = Condvar::new();

/// Wakes those that wait; called by threads of ours when an operation is done.
pub(crate) fn changed() {
    *CHANGES.lock() += 1;
    CHANGED.notify_all();
}

/// One wait: `look`, then check what is waited for, then `rest`, again and again.
#[derive(Debug)]
pub(crate) struct WaitLoop {
    seen: u64,
    limit: Duration,
}

impl WaitLoop {
    const FIRST: Duration = Duration::from_micros(50);
    const LONGEST: Duration = Duration::from_millis(1);

    /// A wait that begins.
    pub(crate) fn new() -> WaitLoop {
        WaitLoop {
            seen: 0,
            limit: WaitLoop::FIRST,
        }
    }

    /// Takes note of the changes so far. What changes from here on ends the next rest.
    pub(crate) fn look(&mut self) {
        self.seen = *CHANGES.lock();
    }

    /// Drives the host, then rests until something changes, for a bounded time.
    pub(crate) fn rest(&mut self) {
        if drive_on() {
            self.limit = WaitLoop::FIRST;
        }
        let mut changes = CHANGES.lock();
        CHANGED.wait_while_for(&mut changes, |now| *now == self.seen, self.limit);
        self.limit = (self.limit * 2).min(WaitLoop::LONGEST);
    }
}

/// Waits for something that threads of ours bring about.
pub(crate) fn wait_until(mut is_done: impl FnMut() -> bool) {
    let mut waiting = WaitLoop::new();
    loop {
        waiting.look();
        if is_done() {
            return;
        }
        waiting.rest();
    }
}

extern "C" fn query(_state: *mut c_void, status: StatusOut) -> c_int {
    if let Some(host) = host::get() {
        let _ = host.set_status(status, 0);
    }
    0
}

extern "C" fn free(_state: *mut c_void) -> c_int {
    0
}

extern "C" fn cancel(_state: *mut c_void, _is_complete: c_int) -> c_int {
    0
}
