//! Threads that work off jobs while their caller does something else.
//!
//! Jobs begin in the order in which they come. With one thread at most they also end in it; with more they run beside
//! each other. Threads are started when there is work and no thread idle, with all signals blocked, and one that has
//! had nothing to do for some seconds ends.
//!
//! Invariants
//! - A job that panics ends neither its thread nor the others.
//! - After [`Jobs::stop`], and in a child that was forked off, nothing is taken any more; what was taken before is done.
//!
//! Left to others: what a job does, and how its outcome is told.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow};
use parking_lot::{Condvar, Mutex};

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(2);

/// Work for a thread of ours.
pub type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Jobs with the threads that do them. Clones are the same.
#[derive(Clone)]
pub struct Jobs<'a>(Arc<Pool<'a>>);

struct Pool<'a> {
    name: &'static str,
    most_threads: usize,
    /// Called by a thread after each job, and at its end.
    tell: fn(),
    pid: u32,
    state: Mutex<State<'a>>,
    changed: Condvar,
}

#[derive(Default)]
struct State<'a> {
    jobs: VecDeque<Job<'a>>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

impl fmt::Debug for Jobs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Jobs({})", self.0.name)
    }
}

impl<'a> Jobs<'a> {
    /// Without threads yet, of which there are `most_threads` at most, with this name. `tell` is called by a thread after
    /// each job and at its end.
    pub fn new(name: &'static str, most_threads: usize, tell: fn()) -> Jobs<'a> {
        Jobs(Arc::new(Pool {
            name,
            most_threads,
            tell,
            pid: std::process::id(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Whether all that was taken is done.
    pub fn is_idle(&self) -> bool {
        if self.is_forked() {
            return true;
        }
        let state = self.0.state.lock();
        state.jobs.is_empty() && state.threads == state.idle
    }

    /// Whether there are threads.
    pub fn has_threads(&self) -> bool {
        !self.is_forked() && self.0.state.lock().threads > 0
    }

    /// Takes nothing more. Threads end when what was taken is done.
    pub fn stop(&self) {
        if !self.is_forked() {
            self.0.state.lock().is_over = true;
            self.0.changed.notify_all();
        }
    }

    /// Whether there is no other clone; a thread has one.
    pub fn is_only(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn is_forked(&self) -> bool {
        std::process::id() != self.0.pid
    }

    /// Has a job done. `start` starts a thread that does nothing but [`Jobs::work`]. Gives the job back, with the reason,
    /// if there is no thread for it.
    fn submit_by(
        &self,
        job: Job<'a>,
        start: impl FnOnce(thread::Builder, Jobs<'a>) -> io::Result<()>,
    ) -> Result<(), (Job<'a>, io::Error)> {
        let over = || io::Error::other("the end of the process or of its parent has begun");
        if self.is_forked() {
            return Err((job, over()));
        }
        let mut state = self.0.state.lock();
        if state.is_over {
            return Err((job, over()));
        }
        if state.idle <= state.jobs.len() && state.threads < self.0.most_threads {
            let builder = thread::Builder::new().name(self.0.name.into());
            match with_signals_blocked(|| start(builder, self.clone())) {
                Ok(()) => state.threads += 1,
                // With other threads the job only waits longer.
                Err(error) if state.threads == 0 => return Err((job, error)),
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        drop(state);
        self.0.changed.notify_one();
        Ok(())
    }

    /// What a thread does.
    fn work(&self) {
        let mut state = self.0.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A job tells its own outcome, also of a panic inside.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.0.state.lock();
                // Those that wait for the end of all jobs look now, so this thread counts as idle meanwhile.
                state.idle += 1;
                drop(state);
                (self.0.tell)();
                state = self.0.state.lock();
                state.idle -= 1;
                continue;
            }
            if state.is_over {
                break;
            }
            state.idle += 1;
            let waited = self.0.changed.wait_for(&mut state, IDLE);
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        drop(state);
        (self.0.tell)();
    }
}

impl Jobs<'static> {
    /// Has a job done; gives it back, with the reason, if there is no thread for it.
    pub fn submit(&self, job: Job<'static>) -> Result<(), (Job<'static>, io::Error)> {
        self.submit_by(job, |builder, jobs| {
            builder.spawn(move || jobs.work()).map(drop)
        })
    }
}

impl<'scope> Jobs<'scope> {
    /// Has a job done by a thread of a scope, which waits for its threads at its end; see [`Jobs::stop`].
    pub(crate) fn submit_in(
        &self,
        scope: &'scope thread::Scope<'scope, '_>,
        job: Job<'scope>,
    ) -> Result<(), (Job<'scope>, io::Error)> {
        self.submit_by(job, |builder, jobs| {
            builder.spawn_scoped(scope, move || jobs.work()).map(drop)
        })
    }
}

/// Runs something with all signals blocked, which threads that it starts inherit.
fn with_signals_blocked<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let result = work();
    before.thread_set_mask()?;
    result
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use nix::sys::signal::Signal;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn nothing() {}

    #[test]
    fn jobs_of_one_thread_run_in_order_with_signals_blocked() {
        let jobs = Jobs::new("pario-test", 1, nothing);
        let (tell, told) = mpsc::channel();
        for number in 0..100 {
            let tell = tell.clone();
            let job = Box::new(move || {
                let is_blocked = SigSet::thread_get_mask().unwrap().contains(Signal::SIGINT);
                let thread = thread::current();
                let name = thread.name().map(str::to_owned);
                tell.send((number, thread.id(), name, is_blocked)).unwrap();
            });
            assert!(jobs.submit(job).is_ok());
        }
        let all: Vec<_> = told.iter().take(100).collect();
        assert!(all.iter().map(|(number, ..)| *number).eq(0..100));
        assert!(all.iter().all(|(_, id, name, is_blocked)| {
            *id == all[0].1 && name.as_deref() == Some("pario-test") && *is_blocked
        }));
        assert!(!SigSet::thread_get_mask().unwrap().contains(Signal::SIGUSR1));
    }

    #[test]
    fn jobs_that_panic_or_wait_hold_up_no_other() {
        static TOLD: AtomicUsize = AtomicUsize::new(0);
        let jobs = Jobs::new("pario-test", 2, || {
            TOLD.fetch_add(1, Ordering::SeqCst);
        });
        let (release, released) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let waits = move || released.recv_timeout(LIMIT).unwrap();
        assert!(jobs.submit(Box::new(waits)).is_ok());
        assert!(jobs.submit(Box::new(|| panic!("on purpose"))).is_ok());
        assert!(
            jobs.submit(Box::new(move || tell.send(()).unwrap()))
                .is_ok()
        );
        told.recv_timeout(LIMIT).unwrap();
        assert!(!jobs.is_idle());
        release.send(()).unwrap();
        jobs.stop();
        let begun = std::time::Instant::now();
        while jobs.has_threads() && begun.elapsed() < LIMIT {
            thread::yield_now();
        }
        assert!(jobs.is_idle() && !jobs.has_threads());
        assert!(TOLD.load(Ordering::SeqCst) >= 3);
        let (_, why) = jobs.submit(Box::new(|| ())).expect_err("it has ended");
        assert!(why.to_string().contains("end of the process"), "{why}");
    }
}
