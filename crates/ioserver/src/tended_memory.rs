//! The memory of extents, and the thread that gets it ready before files need it.
//!
//! The pool says what there is to do, in small steps, and wakes the thread when that changes; here is when it is done: at
//! once, at a low priority, so that it is done by processors that have nothing else to do. A thread that waited for quiet would leave
//! the second half of a long write to itself, where another processor could have worked ahead.
//!
//! Invariant: a thread that has nothing to do sleeps. It wakes by itself only to let earlier growth count less.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use store::Pool;
use wire::message::session::Counter;

use crate::statistics::counter;

/// After so long earlier growth counts half.
const HALF_LIFE: Duration = Duration::from_secs(300);
/// How much the thread gives way to others.
const NICE: i32 = 10;

/// See the [module](self).
pub(crate) struct TendedMemory {
    pool: Pool,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    is_due: bool,
    is_stopping: bool,
}

impl TendedMemory {
    pub(crate) fn new(pool: Pool) -> Arc<TendedMemory> {
        let memory = Arc::new(TendedMemory {
            pool,
            state: Mutex::new(State {
                is_due: true,
                is_stopping: false,
            }),
            wake: Condvar::new(),
        });
        let theirs = Arc::downgrade(&memory);
        memory.pool.tended_by(move || {
            if let Some(memory) = theirs.upgrade() {
                memory.is_due();
            }
        });
        memory
    }

    /// There is something to do.
    fn is_due(&self) {
        let mut state = self.state.lock();
        if !state.is_due {
            state.is_due = true;
            self.wake.notify_all();
        }
    }

    /// Works until [`TendedMemory::stop`].
    pub(crate) fn run(&self) {
        // Who may not is as important as the others.
        let _ = rustix::process::setpriority_process(None, NICE);
        let mut halved = Instant::now();
        let mut state = self.state.lock();
        loop {
            let may_sleep = |state: &mut State| !state.is_due && !state.is_stopping;
            let until = halved + HALF_LIFE;
            self.wake.wait_while_until(&mut state, may_sleep, until);
            if state.is_stopping {
                break;
            }
            state.is_due = false;
            drop(state);
            if halved.elapsed() >= HALF_LIFE {
                self.pool.let_time_pass();
                halved = Instant::now();
            }
            while self.pool.tend() {
                if self.state.lock().is_stopping {
                    break;
                }
            }
            state = self.state.lock();
        }
        self.pool.is_left_alone();
    }

    pub(crate) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.wake.notify_all();
    }

    /// How often memory was only committed when it was needed.
    pub(crate) fn scarcity(&self) -> u64 {
        self.pool.usage().scarce
    }

    /// What there is of it, and what became of requests.
    pub(crate) fn statistics(&self) -> [Counter; 8] {
        let usage = self.pool.usage();
        let has_large_pages = self.pool.options().pages.are_large();
        [
            counter("large_pages", u64::from(has_large_pages)),
            counter("warm_bytes", usage.warm_bytes),
            counter("ready_bytes", usage.ready_bytes),
            counter("reserve_bytes", usage.reserve_bytes),
            counter("reserve_wanted_bytes", usage.wanted_reserve_bytes),
            counter("extents_ready", usage.ready),
            counter("extents_recycled", usage.recycled),
            counter("extents_fresh", usage.fresh),
        ]
    }
}
