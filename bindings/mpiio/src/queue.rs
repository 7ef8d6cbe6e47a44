//! Threads of ours that move bytes while the program goes on.
//!
//! A queue is worked off in order by one thread, named `pario-io`, which is started by the first job and ends
//! after some idle time. Operations of one process alone share one queue; those that need the other processes have
//! one per file, so that a file whose peers are late holds up no other.
//!
//! Invariants
//! - These threads have all signals blocked and never call MPI.
//! - In a child that was forked off there are none: jobs are handed back.
//! - After [`stop`] no thread is started any more.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once, Weak};
use std::thread;
use std::time::Duration;

use crate::progress;
use parking_lot::{Condvar, Mutex};

/// Work for a thread of ours.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(2);

/// Whether no thread may be started: the end of MPI has begun, or this is a child that was forked off.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Threads at present.
static THREADS: Mutex<usize> = Mutex::new(0);

/// Queues that had a thread, for waking them at the end. Locked after that of a queue, never before.
static QUEUES: Mutex<Vec<Weak<Queue>>> = Mutex::new(Vec::new());

/// Jobs in order, with the thread that does them.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    has_thread: bool,
    is_working: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

/// The queue of operations that need no other process.
pub(crate) fn common() -> &'static Arc<Queue> {
    static COMMON: LazyLock<Arc<Queue>> = LazyLock::new(Arc::default);
    &COMMON
}

impl Queue {
    /// Has a job done; gives it back if there can be no thread.
    pub(crate) fn submit(self: &Arc<Queue>, job: Job) -> Result<(), Job> {
        if IS_OVER.load(Ordering::Acquire) {
            return Err(job);
        }
        let mut state = self.state.lock();
        state.jobs.push_back(job);
        if !state.has_thread {
            if !start(self) {
                return state.jobs.pop_back().map_or(Ok(()), Err);
            }
            state.has_thread = true;
        }
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Whether all that was submitted is done.
    pub(crate) fn is_idle(&self) -> bool {
        if IS_OVER.load(Ordering::Acquire) {
            return true;
        }
        let state = self.state.lock();
        state.jobs.is_empty() && !state.is_working
    }

    /// What its thread does.
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.is_working = true;
                drop(state);
                // A job tells its own outcome, also of a panic inside; what is left ends with it.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.state.lock();
                state.is_working = false;
                drop(state);
                progress::changed();
                state = self.state.lock();
                continue;
            }
            if IS_OVER.load(Ordering::Acquire) {
                break;
            }
            let is_idle =
                |state: &mut State| state.jobs.is_empty() && !IS_OVER.load(Ordering::Acquire);
            let waited = self.changed.wait_while_for(&mut state, is_idle, IDLE);
            if waited.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.has_thread = false;
    }
}

/// Starts the thread of a queue; whether it could be.
fn start(queue: &Arc<Queue>) -> bool {
    static FORKS: Once = Once::new();
    FORKS.call_once(|| {
        // SAFETY: the function stores into atomics only, which is allowed in a child.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    let mine = Arc::clone(queue);
    *THREADS.lock() += 1;
    let started = with_signals_blocked(|| {
        thread::Builder::new()
            .name("pario-io".into())
            .spawn(move || {
                mine.work();
                *THREADS.lock() -= 1;
                progress::changed();
            })
    });
    match started {
        Ok(_detached) => {
            let mut queues = QUEUES.lock();
            queues
                .retain(|other| other.strong_count() > 0 && !other.ptr_eq(&Arc::downgrade(queue)));
            queues.push(Arc::downgrade(queue));
            true
        }
        Err(_) => {
            *THREADS.lock() -= 1;
            false
        }
    }
}

/// Runs something with all signals blocked, which threads that it starts inherit.
fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are locals that the calls fill in.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
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
    let queues = std::mem::take(&mut *QUEUES.lock());
    for queue in queues.iter().filter_map(Weak::upgrade) {
        drop(queue.state.lock());
        queue.changed.notify_all();
    }
    let begun = std::time::Instant::now();
    progress::wait_until(|| *THREADS.lock() == 0 || begun.elapsed() > limit);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn jobs_of_a_queue_run_in_order_on_one_thread_with_signals_blocked() {
        let queue: Arc<Queue> = Arc::default();
        let (tell, told) = mpsc::channel();
        for number in 0..100 {
            let tell = tell.clone();
            let job = Box::new(move || {
                let mut blocked: libc::sigset_t = nothing();
                // SAFETY: the set is a local that the call fills in.
                let is_blocked = unsafe {
                    libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &raw mut blocked);
                    libc::sigismember(&raw const blocked, libc::SIGINT) == 1
                };
                let name = thread::current().name().map(str::to_owned);
                tell.send((number, thread::current().id(), name, is_blocked))
                    .unwrap();
            });
            assert!(queue.submit(job).is_ok());
        }
        let all: Vec<_> = told.iter().take(100).collect();
        assert!(all.iter().map(|(number, ..)| *number).eq(0..100));
        assert!(all.iter().all(|(_, thread, ..)| *thread == all[0].1));
        assert!(
            all.iter()
                .all(|(.., name, _)| name.as_deref() == Some("pario-io"))
        );
        assert!(all.iter().all(|(.., is_blocked)| *is_blocked));
    }

    #[test]
    fn a_job_that_panics_ends_neither_the_thread_nor_the_queue() {
        let queue: Arc<Queue> = Arc::default();
        assert!(queue.submit(Box::new(|| panic!("on purpose"))).is_ok());
        let (tell, told) = mpsc::channel();
        let job = Box::new(move || tell.send(()).unwrap());
        assert!(queue.submit(job).is_ok());
        told.recv_timeout(Duration::from_secs(10)).unwrap();
        progress::wait_until(|| queue.is_idle());
    }

    #[test]
    fn a_queue_that_waits_holds_up_no_other() {
        let (late, other): (Arc<Queue>, Arc<Queue>) = (Arc::default(), Arc::default());
        let (release, released) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let job = Box::new(move || {
            // Or the end of the test.
            let _ = released.recv_timeout(Duration::from_secs(10));
        });
        assert!(late.submit(job).is_ok());
        let job = Box::new(move || tell.send(()).unwrap());
        assert!(other.submit(job).is_ok());
        told.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(!late.is_idle());
        release.send(()).unwrap();
        progress::wait_until(|| late.is_idle());
    }

    fn nothing() -> libc::sigset_t {
        // SAFETY: a set of signals is numbers.
        unsafe { std::mem::zeroed() }
    }
}
