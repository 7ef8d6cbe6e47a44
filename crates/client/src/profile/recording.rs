//! Recording how a handle is used, for the profile of the file.
//!
//! ```text
//!  access -> counters of the present view -> (view changes: kept per view) -> PutProfile at close, sync, or when old
//! ```
//!
//! Counted are the accesses of users in the bytes of their view, whichever way they go: a collective access that is
//! regrouped counts for the rank that asked, not for the one that moved the bytes. `PARIO_PROFILE=0` and the hint
//! `profile=off` switch it off; I/O servers then count what they see by message.
//!
//! Invariants
//! - A short access costs a few nanoseconds more: no clock, no lock, no allocation.
//! - Nothing here fails an access, a sync or a close, and nothing waits longer for the metadata manager than the close
//!   itself would.
//!
//! Left to others: what counters mean (`advise::profile`), where they are kept (`metaserver`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use advise::profile::{Entry, Profile, Recorder};
use layout::View;
use parking_lot::Mutex;
use wire::message::Bytes;
use wire::message::profile::PutProfile;

use crate::access::memory::Direction;
use crate::access::phases::Phases;
use crate::error::Result;
use crate::file::handle::Handle;
use crate::session::lane::Lane;

/// Counters that are older are handed over with the next access that looks at the clock.
const OLD: Duration = Duration::from_secs(30);
/// Syncs that follow each other sooner hand over once.
const SOON: Duration = Duration::from_millis(200);

/// What a handle has recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    is_on: AtomicBool,
    pub(crate) counters: Recorder,
    /// The present view as it was written, if it was.
    text: Mutex<String>,
    /// What was done through views before.
    kept: Mutex<Profile>,
    /// Rank and number of processes, each plus 1; 0 is unknown.
    rank: AtomicU64,
    processes: AtomicU64,
    since: Mutex<Option<Instant>>,
    /// How often something was handed over.
    reports: AtomicU64,
}

impl Recording {
    pub(crate) fn new(is_on: bool, rank: Option<(u64, u64)>) -> Recording {
        let recording = Recording {
            is_on: AtomicBool::new(is_on),
            counters: Recorder::default(),
            text: Mutex::default(),
            kept: Mutex::default(),
            rank: AtomicU64::new(0),
            processes: AtomicU64::new(0),
            since: Mutex::default(),
            reports: AtomicU64::new(0),
        };
        if let Some((rank, processes)) = rank {
            recording.set_rank(rank, processes);
        }
        recording
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub(crate) fn switch(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Which process of its application this is.
    pub(crate) fn set_rank(&self, rank: u64, processes: u64) {
        self.rank.store(rank.saturating_add(1), Ordering::Relaxed);
        self.processes.store(processes, Ordering::Relaxed);
    }

    /// The view that accesses go through from now on, as it was written.
    pub(crate) fn set_text(&self, text: &str) {
        let mut kept = self.text.lock();
        kept.clear();
        kept.push_str(text);
    }

    /// Keeps what was done through a view, and begins anew.
    fn turn(&self, application: &str, view: &View, file_bytes: u64) {
        if self.counters.is_empty() {
            return;
        }
        let mut entry = Entry::new(view, &self.text.lock(), file_bytes);
        [entry.read, entry.written] = self.counters.take();
        entry.servers = self.counters.take_servers();
        entry.processes = self.processes.load(Ordering::Relaxed);
        self.kept.lock().add(application, 0, entry);
    }
}

impl Handle {
    /// Notes an access of a user that went the long way.
    pub(crate) fn record(&self, direction: Direction, offset: u64, done: &Result<usize>) {
        let counters = &self.recording.counters;
        if let Ok(len @ 1..) = done
            && self.recording.is_on()
            && counters.record(direction.is_write(), offset, *len as u64)
        {
            self.hand_over_old();
        }
    }

    /// Notes which servers the bytes of an access were at.
    pub(crate) fn record_servers(&self, direction: Direction, phases: &Phases) {
        if !self.recording.is_on() {
            return;
        }
        let counters = &self.recording.counters;
        for part in phases.servers.iter().filter(|part| part.bytes > 0) {
            let slot = counters.slot(part.server);
            counters.moved(slot, direction.is_write(), part.bytes);
        }
    }

    /// The view changes: what was done so far belongs to the one before.
    pub(crate) fn turn_recording(&self) {
        let size = self.known.size().size;
        let view = &self.views.current().view;
        self.recording
            .turn(&self.session.options.application(), view, size);
    }

    /// Hands counters over if they are old. Called now and then.
    #[cold]
    pub(crate) fn hand_over_old(&self) {
        let since = *self.recording.since.lock().get_or_insert_with(Instant::now);
        if since.elapsed() > OLD && self.session.is_ours() {
            let _ = self.session.with_lane(|lane| {
                self.hand_over(lane);
                Ok(())
            });
        }
    }

    /// Hands over at a sync, unless that was just done.
    pub(crate) fn hand_over_at_sync(&self, lane: &mut Lane) {
        let since = *self.recording.since.lock();
        if since.is_none_or(|since| since.elapsed() > SOON) {
            self.hand_over(lane);
        }
    }

    /// Gives the metadata manager what was recorded since the last time.
    pub(crate) fn hand_over(&self, lane: &mut Lane) {
        let recording = &self.recording;
        self.turn_recording();
        let profile = std::mem::take(&mut *recording.kept.lock());
        if profile.is_empty() {
            return;
        }
        *recording.since.lock() = Some(Instant::now());
        recording.reports.fetch_add(1, Ordering::Relaxed);
        let bytes = profile.save();
        let rank = recording.rank.load(Ordering::Relaxed).checked_sub(1);
        // What is lost is a statistic.
        let _ = self.session.manager_on(lane, || PutProfile {
            handle: self.handle_id(),
            rank,
            profile: Bytes(bytes.clone()),
        });
    }
}
