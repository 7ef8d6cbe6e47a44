//! Reading ahead for independent readers: what the next accesses through a view will want, loaded before they come.
//!
//! Each registered view has a predictor that sees what is read through it. While it is right the reach grows,
//! in bytes from 256 KiB to 8 MiB or in accesses as far as a hint says; when it is wrong everything that was
//! planned for the view is forgotten and the reach begins anew. Hints name ranges outright.
//!
//! Invariants
//! - A range becomes loads of extents of the store and nothing else, so no byte that a client reads depends on
//!   it: writes, cuts and changes of layout are the store's and the gate's affair as ever.
//! - What was loaded and not yet asked for is at most an eighth of the store's memory; jobs beyond are dropped,
//!   never waited for, and at most a few hundred wait.
//!
//! One thread loads. Stores without disk have nothing to load, and none is started.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use advise::predict::Reach;
use layout::ViewOffset;
use parking_lot::{Condvar, Mutex};
use wire::message::ahead::{Collective, ReadAhead};

use crate::access::windows;
use crate::bounded::Search;
use crate::context::Storage;
use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::Session;
use crate::statistics::add;
use crate::views::RegisteredView;

/// Reach at the beginning, in bytes.
const FIRST_REACH: u64 = 256 << 10;
/// Longest reach.
const MOST_REACH: u64 = 8 << 20;
/// Jobs that wait, at most.
const MOST_JOBS: usize = 512;
/// One part in so many of memory may wait for those it was read for.
const WAITING_SHARE: u64 = 8;
/// Subfile bytes that are loaded at a time.
const WINDOW: u64 = 2 << 20;

/// What a client wants for a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadAheadTerms {
    /// Accesses ahead; the largest number leaves it to us.
    depth: u64,
    pub(crate) collective: Collective,
    /// Of the buffer for collective reads; 0 leaves it to us.
    pub(crate) bytes: u64,
}

/// What is known about the reads through one view.
pub(crate) struct ReadHistory {
    state: Mutex<State>,
    /// Raised when what was planned is void.
    round: AtomicU64,
}

impl ReadAheadTerms {
    /// Whether anything is done about collective reads.
    pub(crate) fn is_collective(&self) -> bool {
        self.collective != Collective::Nothing
    }
}

impl ReadHistory {
    /// What the client wants.
    pub(crate) fn wanted(&self) -> ReadAheadTerms {
        self.state.lock().wanted
    }
}

struct State {
    reach: Reach,
    wanted: ReadAheadTerms,
}

impl Default for ReadHistory {
    fn default() -> Self {
        ReadHistory {
            state: Mutex::new(State {
                reach: Reach::new(FIRST_REACH..MOST_REACH),
                wanted: ReadAheadTerms {
                    depth: u64::MAX,
                    collective: Collective::Nothing,
                    bytes: 0,
                },
            }),
            round: AtomicU64::new(0),
        }
    }
}

struct Job {
    view: Arc<RegisteredView>,
    /// In view space.
    range: Range<u64>,
    /// The round it was planned in; `None` if a client said so.
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
    pub(crate) fn observe(&self, view: &Arc<RegisteredView>, lo: u64, hi: u64) {
        let mut state = view.reading.state.lock();
        let ahead = state.reach.observe(lo, hi);
        drop(state);
        if ahead.is_void {
            view.reading.round.fetch_add(1, Ordering::SeqCst);
        }
        if !ahead.ranges.is_empty() {
            let round = view.reading.round.load(Ordering::SeqCst);
            self.push(view, ahead.ranges, Some(round));
        }
    }

    fn push(
        &self,
        view: &Arc<RegisteredView>,
        ranges: impl IntoIterator<Item = Range<u64>>,
        round: Option<u64>,
    ) {
        let mut jobs = self.jobs.lock();
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
    pub(crate) fn run(&self, storage: &Storage) {
        loop {
            let job = {
                let mut jobs = self.jobs.lock();
                loop {
                    if jobs.is_stopping {
                        return;
                    }
                    match jobs.list.pop_front() {
                        Some(job) => break job,
                        None => {
                            self.wake.wait(&mut jobs);
                        }
                    }
                }
            };
            if load(storage, &job) {
                add(&storage.statistics.ahead_loads, 1);
            } else {
                add(&storage.statistics.ahead_dropped, 1);
            }
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.jobs.lock().is_stopping = true;
        self.wake.notify_all();
    }
}

/// Loads what a job wants; whether it came to the end. What cannot be read is for the client that wants it to hear.
fn load(storage: &Storage, job: &Job) -> bool {
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
    let shares = view.shares(&known);
    let mut slots = Vec::new();
    known.visit_own(file.into(), |slot, file| slots.push((slot, file.raw())));
    for (slot, file) in slots {
        let own = &known.own[slot];
        let Ok(Some(subfile)) = known.find(own, &storage.stored) else {
            continue;
        };
        let share = known.share(&shares, slot);
        // Behind its end there is nothing to load.
        let end = own.bytes.select(subfile.len()).unwrap_or(file.end);
        let file = file.start..file.end.min(end).max(file.start);
        // A hint moves no bytes; what it takes long to find is not loaded ahead.
        let steps = storage.limits.search_steps;
        let mut searching = Search::new(steps, 0, view.description_bytes(), None);
        let most = storage.stored.store().usage().memory_limit_bytes;
        let Ok(count) = searching.count(share, file.clone(), most) else {
            return false;
        };
        for window in windows(share, &own.bytes, file.clone(), count, WINDOW) {
            if is_void() || !storage.stored.may_read_ahead(WAITING_SHARE) {
                return false;
            }
            // Behind its end there is nothing, and the rest of the range lies farther behind.
            if window.subfile.start.0 >= subfile.len() {
                break;
            }
            if subfile.read_ahead(window.subfile.raw()).is_err() {
                return false;
            }
        }
    }
    true
}

/// A client says what is to be read.
pub(crate) fn read_ahead(
    files: &Files,
    session: &Session,
    request: &ReadAhead,
) -> Result<(), Refused> {
    let storage = &files.storage;
    let view = session.client.view(request.view)?;
    let wanted = ReadAheadTerms {
        depth: request.depth,
        collective: request.collective,
        bytes: request.bytes,
    };
    let mut state = view.reading.state.lock();
    let is_new = std::mem::replace(&mut state.wanted, wanted) != wanted;
    if is_new {
        let depth = (request.depth != u64::MAX).then_some(request.depth);
        state.reach.set_depth(depth);
    }
    drop(state);
    if is_new {
        view.reading.round.fetch_add(1, Ordering::SeqCst);
    }
    let Some(upcoming) = request.upcoming else {
        return Ok(());
    };
    add(&storage.statistics.ahead_hints, 1);
    let end = upcoming.offset.saturating_add(upcoming.size);
    if storage.stored.is_durable() && upcoming.size > 0 && view.rights.allow(wire::Rights::READ) {
        // A thread that knows nothing of the file yet asks here, not there.
        files.known(&view.entry)?;
        let range = upcoming.offset..end.min(falls::MAX_OFFSET);
        storage.ahead.push(&view, Some(range), None);
    }
    Ok(())
}
