//! Reading ahead: what is said to servers about reads to come, and the buffer of a handle that is far from them.
//!
//! A handle with the hint `prefetch=on` predicts its next reads and reads them into a bounded buffer of its own
//! while the program computes, with threads of the non-blocking operations. A read that lies in the buffer is a
//! copy; one whose bytes are on their way waits for them.
//!
//! What a read may see is what MPI-IO says about non-atomic mode, and no less:
//! - Whatever this process writes to the file, through whichever handle, voids the buffers of all its handles
//!   of the file, before the write begins and after it ended. So does setting the size.
//! - `sync`, a new view, another mode and other hints void the handle's buffer. So what others wrote and synced
//!   before this process synced is seen.
//! - Atomic handles and direct accesses never use it. It is off unless a hint turns it on, since programs
//!   that rely on more than MPI-IO promises would notice.
//!
//! Invariants: bytes that are buffered or on their way are at most `prefetch_bytes`; what arrives for a version
//! that is void is thrown away.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use advise::hints::ReadAhead as Style;
use advise::predict::Reach;
use kernels::SharedBytesMut;
use layout::{FileSpan, View};
use parking_lot::{Condvar, Mutex};
use wire::message::ahead::{Collective, ReadAhead};
use wire::message::file::DropView;
use wire::message::mapping::Upcoming;
use wire::{FileId, Rights};

use crate::access::memory::Memory;
use crate::access::phases::Phases;
use crate::access::request::{How, Request};
use crate::error::{Result, Trouble};
use crate::file::File;
use crate::file::handle::Handle;
use crate::file::nonblocking;
use crate::file::view::HandleView;
use crate::hints::Hints;
use crate::session::Session;
use crate::session::lane::Lane;

/// Buffer of a handle unless hints say otherwise.
const MOST_BYTES: u64 = 8 << 20;
/// Reach of predictions, in bytes.
const REACH: Range<u64> = 256 << 10..4 << 20;
/// Bytes of one read ahead, at most: a reader waits for no more than that.
const PIECE: u64 = 1 << 20;
/// How long a reader waits for bytes that are on their way before it asks for them itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the buffer of a handle came to. See [`File::prefetch_statistics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefetchStatistics {
    /// Bytes that were read ahead.
    pub prefetched_bytes: u64,
    /// Those of them that were asked for.
    pub hit_bytes: u64,
    /// Reads that found all of their bytes in the buffer, or on their way.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Bytes that were thrown away unused.
    pub wasted_bytes: u64,
    /// Times that the buffer was void: writes, sync, a new view.
    pub voided: u64,
    /// Ranges that servers were told about.
    pub announced: u64,
}

/// What servers are told about a view when they get to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    depth: u64,
    collective: Collective,
    bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            depth: u64::MAX,
            collective: Collective::Nothing,
            bytes: 0,
        }
    }
}

impl Settings {
    fn of(hints: &Hints, style: Style) -> Settings {
        let is_off = hints
            .get("prefetch")
            .is_some_and(|word| word.trim() == "off");
        let depth = match style {
            _ if is_off => Some(0),
            Style::Off => Some(0),
            _ => hints.number("prefetch_depth"),
        };
        let collective = match hints.get("collective_prefetch").map(str::trim) {
            _ if is_off => Collective::Nothing,
            Some("disk") => Collective::Disk,
            Some("packets") => Collective::Packets,
            Some("exchanged") => Collective::Exchanged,
            _ => Collective::Nothing,
        };
        Settings {
            depth: depth.unwrap_or(u64::MAX),
            collective,
            bytes: hints.number("prefetch_bytes").unwrap_or(0),
        }
    }

    fn request(self, view: u64, upcoming: Option<Upcoming>) -> ReadAhead {
        ReadAhead {
            view,
            depth: self.depth,
            upcoming,
            collective: self.collective,
            bytes: self.bytes,
        }
    }
}

/// Bytes that were read ahead.
#[derive(Debug)]
struct Segment {
    start: u64,
    bytes: Vec<u8>,
    used: u64,
}

impl Segment {
    fn holds(&self, range: &Range<u64>) -> bool {
        self.start <= range.start && range.end <= self.start + self.bytes.len() as u64
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Whether the handle has a buffer.
    is_on: AtomicBool,
    settings: Mutex<Settings>,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State {
    reach: Reach,
    /// Raised whenever the buffer becomes void.
    version: u64,
    most_bytes: u64,
    segments: VecDeque<Segment>,
    /// Ranges on their way.
    coming: Vec<Range<u64>>,
    /// Memory for the next ones.
    spare: Vec<Vec<u8>>,
    counts: PrefetchStatistics,
}

impl Default for Ahead {
    fn default() -> Self {
        Ahead {
            is_on: AtomicBool::new(false),
            settings: Mutex::default(),
            state: Mutex::new(State {
                reach: Reach::new(REACH),
                version: 0,
                most_bytes: MOST_BYTES,
                segments: VecDeque::new(),
                coming: Vec::new(),
                spare: Vec::new(),
                counts: PrefetchStatistics::default(),
            }),
            arrived: Condvar::new(),
        }
    }
}

impl State {
    fn held_bytes(&self) -> u64 {
        let buffered: u64 = self.segments.iter().map(|s| s.bytes.len() as u64).sum();
        let coming: u64 = self.coming.iter().map(|r| r.end - r.start).sum();
        buffered + coming
    }

    fn retire(&mut self, segment: Segment) {
        let unused = segment.bytes.len() as u64 - segment.used;
        self.counts.wasted_bytes += unused;
        if self.spare.len() < 4 {
            self.spare.push(segment.bytes);
        }
    }

    fn void(&mut self) {
        self.version += 1;
        self.counts.voided += 1;
        self.drop_all();
    }

    fn drop_all(&mut self) {
        while let Some(segment) = self.segments.pop_front() {
            self.retire(segment);
        }
        self.reach.forget();
    }

    fn is_there(&self, range: &Range<u64>) -> bool {
        self.segments.iter().any(|s| s.holds(range))
            || self
                .coming
                .iter()
                .any(|c| c.start <= range.start && range.end <= c.end)
    }

    /// Cuts ranges into pieces that fit the buffer and are not there.
    fn take_on(&mut self, ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
        let mut begun = Vec::new();
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let piece = PIECE.min(self.most_bytes / 4).max(1);
                let piece = at..range.end.min(at.saturating_add(piece));
                at = piece.end;
                let len = piece.end - piece.start;
                if self.is_there(&piece) {
                    continue;
                }
                while self.held_bytes() + len > self.most_bytes {
                    // The oldest that was used goes first; what waits to be used is not driven out.
                    let Some(i) = self.segments.iter().position(|s| s.used > 0) else {
                        return begun;
                    };
                    let old = self.segments.remove(i).expect("found above");
                    self.retire(old);
                }
                self.coming.push(piece.clone());
                begun.push(piece);
            }
        }
        begun
    }
}

impl Ahead {
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn void(&self) {
        self.state.lock().void();
        self.arrived.notify_all();
    }

    /// Copies from the buffer; whether all of it was there, or came in time.
    fn take(&self, offset: u64, into: SharedBytesMut<'_>) -> bool {
        let len = into.len();
        let range = offset..offset.saturating_add(len as u64);
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state.lock();
        loop {
            if let Some(i) = state.segments.iter().position(|s| s.holds(&range)) {
                let segment = &mut state.segments[i];
                let from = (offset - segment.start) as usize;
                into.copy_from(segment.bytes[from..from + len].into());
                let end = segment.start + segment.bytes.len() as u64;
                segment.used = (segment.used + len as u64).min(segment.bytes.len() as u64);
                if range.end == end {
                    let old = state.segments.remove(i).expect("found above");
                    state.retire(old);
                }
                state.counts.hits += 1;
                state.counts.hit_bytes += len as u64;
                return true;
            }
            let is_coming =
                (state.coming.iter()).any(|c| c.start <= range.start && range.end <= c.end);
            let left = deadline.saturating_duration_since(Instant::now());
            if !is_coming || left.is_zero() {
                state.counts.misses += 1;
                return false;
            }
            self.arrived.wait_for(&mut state, left);
        }
    }

    /// A read was made: what to read now, and for which version.
    fn observe(&self, lo: u64, hi: u64) -> (Vec<Range<u64>>, u64) {
        let mut state = self.state.lock();
        let ahead = state.reach.observe(lo, hi);
        if ahead.is_void {
            // Wrong: what was read for it is in the way.
            while let Some(segment) = state.segments.pop_front() {
                state.retire(segment);
            }
        }
        let ranges = state.take_on(ahead.ranges);
        (ranges, state.version)
    }

    /// Memory for a read.
    fn memory(&self, len: u64) -> Vec<u8> {
        let mut bytes = self.state.lock().spare.pop().unwrap_or_default();
        bytes.resize(len as usize, 0);
        bytes
    }

    /// A range has come, with so many bytes of it, or has not.
    pub(crate) fn arrive(&self, range: &Range<u64>, version: u64, mut bytes: Vec<u8>, came: u64) {
        let mut state = self.state.lock();
        if let Some(i) = state.coming.iter().position(|c| c == range) {
            state.coming.swap_remove(i);
        }
        bytes.truncate(came as usize);
        let segment = Segment {
            start: range.start,
            bytes,
            used: 0,
        };
        state.counts.prefetched_bytes += came;
        match version == state.version && came > 0 {
            true => state.segments.push_back(segment),
            false => state.retire(segment),
        }
        drop(state);
        self.arrived.notify_all();
    }
}

impl Handle {
    /// Takes what hints say about reading ahead.
    pub(crate) fn set_ahead(&self, hints: &Hints) {
        let style = hints
            .get("access_style")
            .map(advise::hints::AccessStyle::parse);
        let style = style.and_then(std::result::Result::ok).unwrap_or_default();
        let settings = Settings::of(hints, style.read_ahead());
        let is_on = hints
            .get("prefetch")
            .is_some_and(|word| word.trim() == "on");
        let ahead = &self.ahead;
        {
            let mut state = ahead.state.lock();
            let depth = (settings.depth != u64::MAX).then_some(settings.depth);
            state.reach.set_depth(depth);
            state.most_bytes = match settings.bytes {
                0 => MOST_BYTES,
                bytes => bytes,
            };
            // What is planned fits beside what is being used.
            let most = (state.most_bytes / 2).min(REACH.end);
            state.reach.set_bounds(REACH.start.min(most)..most);
            state.void();
        }
        if is_on {
            self.session.open_files.uses_ahead();
        }
        ahead.is_on.store(is_on, Ordering::Relaxed);
        let before = std::mem::replace(&mut *ahead.settings.lock(), settings);
        if before != settings {
            // Servers hear of it when they get to know the views again.
            self.views.current().take_known();
            self.views.whole.take_known();
        }
    }

    /// What a server is told about a view that it has just got to know.
    pub(crate) fn settings_for(&self, view: u64) -> Option<ReadAhead> {
        let settings = *self.ahead.settings.lock();
        (settings != Settings::default()).then(|| settings.request(view, None))
    }

    /// This process has changed the file, or is about to, or must not see what it saw before.
    pub(crate) fn void_ahead(&self) {
        self.session.void_ahead(self.identity.file);
    }

    /// What this handle has buffered is void.
    pub(crate) fn void_own_ahead(&self) {
        if self.ahead.is_on() {
            self.ahead.void();
        }
    }

    /// Tells the servers that have bytes of a range; those that cannot be told do as ever.
    fn announce(&self, lane: &mut Lane, seen: &HandleView, range: &Range<u64>) {
        let bytes = seen.view.bytes();
        let last = range.end.checked_sub(1).and_then(|last| bytes.select(last));
        let Some(first) = bytes.select(range.start) else {
            return;
        };
        let plan = seen.plan(&self.known.state());
        let end = last.map_or(falls::MAX_OFFSET, |last| last + 1);
        let end = end.min(self.known.size().size.max(first));
        let mut slots = Vec::new();
        if first < end {
            plan.parts(FileSpan::from_raw(first..end), &mut 0, |slot, _| {
                slots.extend(slot)
            });
        }
        slots.sort_unstable();
        slots.dedup();
        let upcoming = Upcoming {
            offset: range.start,
            size: range.end - range.start,
        };
        for slot in slots {
            let place = plan.places[slot];
            let settings = *self.ahead.settings.lock();
            let told = self.ask_once(lane, seen, place, |view| {
                settings.request(view, Some(upcoming))
            });
            match told {
                Ok(()) => self.ahead.state.lock().counts.announced += 1,
                Err(Trouble::Refused(..)) => {}
                Err(_) => lane.drop_pipe(place.server),
            }
        }
    }
}

impl Session {
    /// Voids the buffers of all handles of a file.
    pub(crate) fn void_ahead(&self, file: FileId) {
        if !self.open_files.has_ahead() {
            return;
        }
        let open: Vec<_> = {
            let files = self.open_files.handles.lock();
            files.iter().filter_map(|open| open.upgrade()).collect()
        };
        for open in open.iter().filter(|open| open.identity.file == file) {
            open.void_own_ahead();
        }
    }
}

impl File {
    /// Says what is going to be read, in bytes of the handle's view. Disk servers load it while nobody waits;
    /// a handle with `prefetch=on` reads it into its buffer. Whether it comes true changes nothing but time.
    pub fn will_read(&self, range: Range<u64>) -> Result<()> {
        self.check_right(Rights::READ)?;
        if range.start >= range.end {
            return Ok(());
        }
        let gate = self.beside();
        let seen = self.views.current();
        self.session.with_lane(|lane| {
            self.announce(lane, &seen, &range);
            Ok(())
        })?;
        drop(gate);
        if self.may_read_ahead() {
            let (ranges, version) = {
                let mut state = self.ahead.state.lock();
                (state.take_on(Some(range)), state.version)
            };
            self.begin_reads(ranges, version);
        }
        Ok(())
    }

    /// Says what will be read through a view that is going to be set.
    pub fn will_read_view(&self, view: &View, range: Range<u64>) -> Result<()> {
        self.check_right(Rights::READ)?;
        if range.start >= range.end {
            return Ok(());
        }
        let seen = HandleView::new(&self.session, view);
        let _gate = self.beside();
        self.session.with_lane(|lane| {
            self.announce(lane, &seen, &range);
            for server in seen.take_known() {
                if let Some(index) = lane.find(server) {
                    let number = self.session.number();
                    let dropped = lane.pipe(index).ask(
                        number,
                        &DropView {
                            view: seen.number,
                            maps: 0,
                        },
                    );
                    if !matches!(dropped, Ok(_) | Err(Trouble::Refused(..))) {
                        lane.drop_pipe(server);
                    }
                }
            }
            Ok(())
        })
    }

    /// What the buffer of this handle came to. Sends nothing.
    pub fn prefetch_statistics(&self) -> PrefetchStatistics {
        self.ahead.state.lock().counts
    }

    fn may_read_ahead(&self) -> bool {
        self.ahead.is_on() && !self.is_atomic() && self.gateway.is_none()
    }

    /// Reads from the buffer, if all of it is there.
    pub(crate) fn read_buffered(&self, offset: u64, into: SharedBytesMut<'_>) -> bool {
        let len = into.len() as u64;
        if len == 0 || !self.may_read_ahead() || !self.ahead.take(offset, into) {
            return false;
        }
        self.keep_phases(Phases {
            requested: len,
            moved: len,
            ..Phases::default()
        });
        self.read_was_made(offset, len);
        true
    }

    /// After a read of the handle: begins to read what comes next.
    pub(crate) fn read_was_made(&self, offset: u64, len: u64) {
        if !self.may_read_ahead() || len == 0 || self.phases.lock().is_direct {
            return;
        }
        let (ranges, version) = self.ahead.observe(offset, offset.saturating_add(len));
        self.begin_reads(ranges, version);
    }

    fn begin_reads(&self, ranges: Vec<Range<u64>>, version: u64) {
        for range in ranges {
            let bytes = self.ahead.memory(range.end - range.start);
            nonblocking::read_ahead(self, range, version, bytes);
        }
    }

    /// Reads a range for the buffer; how many bytes came.
    pub(crate) fn fetch_now(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.check_right(Rights::READ)?;
        self.send_behind();
        let _gate = self.beside();
        let seen = self.views.current();
        let how = How {
            is_ahead: true,
            ..How::default()
        };
        let request = Request::of(&seen, offset, Memory::of(into)).with(how);
        self.session.with_lane(|lane| self.access(lane, request))
    }
}
