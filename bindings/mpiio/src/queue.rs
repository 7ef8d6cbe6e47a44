//! Threads of ours that move bytes while the program goes on, and their end with MPI.
//!
//! Operations of one process alone share one [`Queue`]; those that need the other processes have one per file, so that
//! a file whose peers are late holds up no other. Each is worked off in order by one thread, named `pario-io`.
//!
//! Invariants
//! - These threads have all signals blocked and never call MPI.
//! - In a child that was forked off there are none: jobs are handed back.
//! - After [`stop`] no thread is started any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Once};
use std::time::{Duration, Instant};

use client::Jobs;
use parking_lot::Mutex;

use crate::progress;

/// Jobs in order, with the thread that does them.
pub(crate) type Queue = Jobs<'static>;

/// Whether no thread may be started: the end of MPI has begun, or this is a child that was forked off.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// All queues, for their end; those of files that are closed are dropped when there are twice as many.
static QUEUES: Mutex<(Vec<Queue>, usize)> = Mutex::new((Vec::new(), 64));

/// A queue of its own.
pub(crate) fn new() -> Queue {
    static FORKS: Once = Once::new();
    FORKS.call_once(|| {
        // SAFETY: the function stores into atomics only, which is allowed in a child.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    let queue = Jobs::new("pario-io", 1, progress::changed);
    let (queues, most) = &mut *QUEUES.lock();
    queues.push(queue.clone());
    if queues.len() > *most {
        queues.retain(|q| !q.is_only());
        *most = 2 * queues.len().max(32);
    }
    queue
}

/// The queue of operations that need no other process.
pub(crate) fn common() -> &'static Queue {
    static COMMON: LazyLock<Queue> = LazyLock::new(new);
    &COMMON
}

extern "C" fn forked() {
    IS_OVER.store(true, Ordering::Release);
    crate::requests::forget_in_child();
}

/// Whether this is a child that was forked off, or the end of MPI has begun.
pub(crate) fn is_over() -> bool {
    IS_OVER.load(Ordering::Acquire)
}

/// Ends all threads once they have done what they are at; threads that are at something for ever stay behind.
pub(crate) fn stop(limit: Duration) {
    IS_OVER.store(true, Ordering::Release);
    let queues = std::mem::take(&mut QUEUES.lock().0);
    for queue in &queues {
        queue.stop();
    }
    let begun = Instant::now();
    let is_ended = || queues.iter().all(|queue| !queue.has_threads());
    progress::wait_until(|| is_ended() || begun.elapsed() > limit);
}
