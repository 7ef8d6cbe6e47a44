//! Reading ahead for independent readers: what the next accesses through a view will want, loaded before they come.
//!
//! Each registered view has a predictor that sees what is read through it. While it is right the reach grows,
//! in bytes from 256 KiB to 8 MiB or in accesses as far as a hint says; when it is wrong everything that was
//! planned for the view is forgotten and the reach begins anew. Hints name ranges outright.
//!
//! Invariants
//! - A range becomes loads of extents of the store and nothing else, so no byte that anybody reads depends on
//!   it: writes, cuts and changes of layout are the store's and the gate's affair as ever.
//! - What was loaded and not yet asked for is at most an eighth of the store's memory; jobs beyond are dropped,
//!   never waited for, and at most a few hundred wait.
//!
//! One thread loads. Stores without disk have nothing to load, and none is started.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use advise::predict::{Pattern, Predicted, Predictor};
use layout::ViewOffset;
use wire::message::ahead::{Collective, ReadAhead};

use crate::access::windows;
use crate::context::Context;
use crate::files::lock;
use crate::refused::Refused;
use crate::sessions::Session;
use crate::statistics::add;
use crate::views::Registered;

/// Reach at the beginning, in bytes.
const FIRST_REACH: u64 = 256 << 10;
/// Longest reach.
const MOST_REACH: u64 = 8 << 20;
/// Accesses that are predicted at a time, at most.
const MOST_STEPS: usize = 256;
/// Jobs that wait, at most.
const MOST_JOBS: usize = 512;
/// One part in so many of memory may wait for those it was read for.
const WAITING_SHARE: u64 = 8;
/// Subfile bytes that are loaded at a time.
const WINDOW: u64 = 2 << 20;

/// What a client wants for a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Accesses ahead; the largest number leaves it to us.
    depth: u64,
    collective: Collective,
    /// Of the buffer for collective reads; 0 leaves it to us.
    bytes: u64,
}

/// What is known about the reads through one view.
pub(crate) struct Reading {
    state: Mutex<State>,
    /// Raised when what was planned is void.
    round: AtomicU64,
}

struct State {
    predictor: Predictor,
    /// Accesses that were planned for and have not come, in order.
    planned: VecDeque<Predicted>,
    reach: u64,
    wanted: Wanted,
}

impl Default for Reading {
    fn default() -> Self {
        Reading {
            state: Mutex::new(State {
                predictor: Predictor::new(),
                planned: VecDeque::new(),
                reach: FIRST_REACH,
                wanted: Wanted {
                    depth: u64::MAX,
                    collective: Collective::Nothing,
                    bytes: 0,
                },
            }),
            round: AtomicU64::new(0),
        }
    }
}

impl State {
    /// An access was made: what should be loaded now, and whether what was planned before is void.
    fn observe(&mut self, lo: u64, hi: u64) -> (Vec<Range<u64>>, bool) {
        let is_expected = match self.planned.front() {
            Some(next) => next.offset == lo,
            None => true,
        };
        if is_expected {
            if self.planned.pop_front().is_some() {
                self.reach = (self.reach * 2).min(MOST_REACH);
            }
        } else {
            self.planned.clear();
            self.reach = FIRST_REACH;
        }
        self.predictor.observe(lo, hi - lo);
        (self.plan(hi - lo), !is_expected)
    }

    /// Predicts as far as the reach goes, unless half of it is planned already.
    fn plan(&mut self, size: u64) -> Vec<Range<u64>> {
        if matches!(
            self.predictor.pattern(),
            Pattern::Nothing | Pattern::Unknown
        ) {
            return Vec::new();
        }
        let steps = match self.wanted.depth {
            u64::MAX => self.reach.div_ceil(size.max(1)),
            depth => depth,
        };
        let steps = steps.clamp(1, MOST_STEPS as u64) as usize;
        if self.planned.len() > steps / 2 {
            return Vec::new();
        }
        let mut ahead = self.predictor.clone();
        for planned in &self.planned {
            ahead.observe(planned.offset, planned.size);
        }
        let mut ranges: Vec<Range<u64>> = Vec::new();
        while self.planned.len() < steps {
            let Some(next) = ahead.next() else { break };
            ahead.observe(next.offset, next.size);
            self.planned.push_back(next);
            let end = next.offset.saturating_add(next.size);
            match ranges.last_mut() {
                Some(last) if last.end == next.offset => last.end = end,
                _ => ranges.push(next.offset..end),
            }
        }
        ranges
    }
}

struct Job {
    view: Arc<Registered>,
    /// In view space.
    range: Range<u64>,
    /// The round it was planned in; `None` if somebody said so.
    round: Option<u64>,
}

/// What waits to be loaded.
#[derive(Default)]
pub(crate) struct Ahead {
    jobs: Mutex<Jobs>,
    wake: Condvar,
}

#[derive(Default)]
struct Jobs {
    list: VecDeque<Job>,
    is_stopping: bool,
}

impl Ahead {
    /// A view was read through.
    pub(crate) fn observe(&self, view: &Arc<Registered>, lo: u64, hi: u64) {
        let mut state = lock(&view.reading.state);
        if state.wanted.depth == 0 || lo >= hi {
            return;
        }
        let (ranges, is_void) = state.observe(lo, hi);
        drop(state);
        if is_void {
            view.reading.round.fetch_add(1, Ordering::SeqCst);
        }
        if !ranges.is_empty() {
            self.push(
                view,
                ranges,
                Some(view.reading.round.load(Ordering::SeqCst)),
            );
        }
    }

    fn push(&self, view: &Arc<Registered>, ranges: Vec<Range<u64>>, round: Option<u64>) {
        let mut jobs = lock(&self.jobs);
        for range in ranges {
            if jobs.list.len() < MOST_JOBS {
                jobs.list.push_back(Job {
                    view: Arc::clone(view),
                    range,
                    round,
                });
            }
        }
        drop(jobs);
        self.wake.notify_one();
    }

    /// Loads until [`Ahead::stop`].
    pub(crate) fn run(&self, context: &Context) {
        loop {
            let job = {
                let mut jobs = lock(&self.jobs);
                loop {
                    if jobs.is_stopping {
                        return;
                    }
                    match jobs.list.pop_front() {
                        Some(job) => break job,
                        None => {
                            jobs = self.wake.wait(jobs).unwrap_or_else(PoisonError::into_inner);
                        }
                    }
                }
            };
            if load(context, &job) {
                add(&context.statistics.ahead_loads, 1);
            } else {
                add(&context.statistics.ahead_dropped, 1);
            }
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        lock(&self.jobs).is_stopping = true;
        self.wake.notify_all();
    }
}

/// Loads what a job wants; whether it came to the end. What cannot be read is for whoever wants it to hear.
fn load(context: &Context, job: &Job) -> bool {
    let view = &job.view;
    let is_void = || {
        job.round
            .is_some_and(|round| view.reading.round.load(Ordering::SeqCst) != round)
    };
    let Some(known) = view.entry.known() else {
        return false;
    };
    let range = ViewOffset(job.range.start)..ViewOffset(job.range.end);
    let Some(file) = view.view.file_range(range) else {
        return false;
    };
    let file = file.start.0..file.end.0;
    let shares = view.shares(&known);
    let mut slots = Vec::new();
    known.visit_meeting(&file, |slot| slots.push(slot));
    for slot in slots {
        let own = &known.own[slot];
        let Ok(Some(subfile)) = known.find(own, &context.stored) else {
            continue;
        };
        let share = shares.with(&view.view, &known, slot);
        let count = share.count(file.clone());
        for window in windows(share, &own.bytes, file.clone(), count, WINDOW) {
            if is_void() || !context.stored.may_read_ahead(WAITING_SHARE) {
                return false;
            }
            // Behind its end there is nothing, and the rest of the range lies farther behind.
            if window.subfile.start >= subfile.len() {
                break;
            }
            if subfile.read_ahead(window.subfile).is_err() {
                return false;
            }
        }
    }
    true
}

/// A client says what is to be read.
pub(crate) fn read_ahead(
    context: &Context,
    session: &Session,
    request: &ReadAhead,
) -> Result<(), Refused> {
    let view = session.client.view(request.view)?;
    let wanted = Wanted {
        depth: request.depth,
        collective: request.collective,
        bytes: request.bytes,
    };
    let mut state = lock(&view.reading.state);
    let is_new = std::mem::replace(&mut state.wanted, wanted) != wanted;
    if is_new {
        state.planned.clear();
    }
    drop(state);
    if is_new {
        view.reading.round.fetch_add(1, Ordering::SeqCst);
    }
    let Some(upcoming) = request.upcoming else {
        return Ok(());
    };
    add(&context.statistics.ahead_hints, 1);
    let end = upcoming.offset.saturating_add(upcoming.size);
    if context.stored.is_durable() && upcoming.size > 0 && view.rights.allow(wire::Rights::READ) {
        // A thread that knows nothing of the file yet asks here, not there.
        context.known(&view.entry)?;
        let ranges = vec![upcoming.offset..end.min(falls::MAX_OFFSET)];
        context.ahead.push(&view, ranges, None);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(depth: u64) -> State {
        let reading = Reading::default();
        let mut state = reading.state.into_inner().unwrap();
        state.wanted.depth = depth;
        state
    }

    #[test]
    fn the_reach_grows_while_predictions_come_true_and_begins_anew_when_not() {
        let mut state = state(u64::MAX);
        let size = 64 << 10;
        let mut planned_to = 0;
        for i in 0..40u64 {
            let (ranges, is_void) = state.observe(i * size, (i + 1) * size);
            assert!(!is_void);
            for range in ranges {
                assert!(range.start >= planned_to, "nothing is planned twice");
                planned_to = range.end;
            }
        }
        let ahead = planned_to - 40 * size;
        assert!((MOST_REACH / 2..=MOST_REACH).contains(&ahead), "{ahead}");
        let (_, is_void) = state.observe(1 << 40, (1 << 40) + size);
        assert!(is_void && state.planned.is_empty());
        assert_eq!(state.reach, FIRST_REACH);
    }

    #[test]
    fn a_hint_says_how_many_accesses() {
        let mut state = state(3);
        let mut got = Vec::new();
        for i in 0..6u64 {
            got.extend(state.observe(1000 * i, 1000 * i + 100).0);
        }
        assert!(state.planned.len() <= 3);
        assert!(got.contains(&(5000..5100)), "{got:?}");
        assert!(got.iter().all(|r| r.start <= 5000 + 3000), "{got:?}");
    }

    #[test]
    fn chance_is_not_followed() {
        let mut state = state(u64::MAX);
        let mut x = 7u64;
        let mut planned = 0;
        for _ in 0..200 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
            let at = x >> 30;
            planned += state.observe(at, at + 4096).0.len();
        }
        assert!(planned < 10, "{planned} ranges for random accesses");
    }
}
