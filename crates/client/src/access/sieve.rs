//! Data sieving, as a strategy that can be forced: whole windows of the file instead of the bytes of
//! the view.
//!
//! ```text
//!  view     ..xx....xx....xx....xx..     read   lock the window, read it, copy the wanted pieces out of it
//!           |---window---|---window---|  write  lock the window, hold it at the servers, read it, copy the pieces
//!                                              in, write it back
//! ```
//!
//! What systems do that know no views at their servers (ROMIO, and MEMFS before its view
//! distribution), kept to measure against. A window spans from the first to the last wanted byte in
//! it and is never longer than the hints `ind_rd_buffer_size` and `ind_wr_buffer_size` say.
//!
//! Invariants
//! - The bytes are those of the normal way, also beside clients that write in the holes, whichever way: a window
//!   that is written back is held at all servers of the file from its read to its write, so nobody else gets in,
//!   by message or directly. Sieving writers take turns by locks before that, so that holders do not meet.
//! - A window is held through one connection per server, and with the end of that the hold is over; a write whose hold
//!   was lost is an error.
//! - Nothing beyond the last wanted byte is written, so the file grows as it would otherwise.
//!
//! Left to others: atomic mode, which has locks of its own and does not sieve.

use std::ops::Range;

use control::moves::crash_point;
use kernels::{SharedBytes, SharedBytesMut};
use wire::message::Bytes;
use wire::message::directed::{HoldRange, LetGo};
use wire::message::file::{Admit, Unlock};
use wire::{Place, ServerId, Status};

use crate::access::file_range;
use crate::access::memory::{Direction, Memory, Run};
use crate::access::phases::Phases;
use crate::access::request::Request;
use crate::collective::strategy::Strategy;
use crate::error::{Result, Trouble};
use crate::file::File;
use crate::file::atomic::{LockMode, MOST_ADMISSIONS, RangeLock};
use crate::file::view::{HandleView, is_whole};
use crate::session::lane::Lane;

/// Window of reads unless the hints say otherwise, as in ROMIO.
const READ_WINDOW: u64 = 4 << 20;
/// Window of writes unless the hints say otherwise, as in ROMIO.
const WRITE_WINDOW: u64 = 512 << 10;

impl File {
    /// The strategy of this handle.
    pub fn strategy(&self) -> Strategy {
        match self.settings.is_sieving() {
            true => Strategy::Sieving,
            false => match self.settings.forced() {
                None | Some(Strategy::Sieving) => Strategy::Views,
                Some(forced) => forced,
            },
        }
    }

    /// Whether an access through this view is to be sieved; a write without holes is at least locked.
    pub(crate) fn is_sieved(&self, seen: &HandleView, direction: Direction) -> bool {
        self.is_sieving() && (direction.is_write() || !is_whole(&seen.view))
    }

    /// Whether writes are to be sieved.
    pub(crate) fn is_sieving(&self) -> bool {
        self.settings.is_sieving() && !self.is_atomic()
    }

    /// Moves the bytes of a request window by window, and adds to the phases how it went.
    pub(crate) fn sieve(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        lo: u64,
        run: Run<'_>,
        phases: &mut Phases,
    ) -> Result<usize> {
        match run {
            Run::From(bytes) => self.write_sieved(lane, seen, lo, bytes, phases),
            Run::Into(into) => self.read_sieved(lane, seen, lo, into, phases),
        }
    }

    fn window_bytes(&self, hint: &str, otherwise: u64) -> u64 {
        let given = self.settings.hints.lock().number(hint);
        given.unwrap_or(otherwise).max(1)
    }

    /// Reads window by window; short only at the end of the file.
    fn read_sieved(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        lo: u64,
        mut into: SharedBytesMut<'_>,
        phases: &mut Phases,
    ) -> Result<usize> {
        let size = self.ask_size(lane)?.size;
        let shown = seen.view.len_within(size).saturating_sub(lo);
        let n = shown.min(into.len() as u64);
        if n == 0 {
            return Ok(0);
        }
        let most = self.window_bytes("ind_rd_buffer_size", READ_WINDOW);
        let mut window = std::mem::take(&mut lane.work.packed);
        let mut done = 0;
        let whole = self.views.whole.clone();
        let result = self.windows(seen, lo, n, most, |file| {
            // A window is read as it was before or after a write of another, never in between.
            let lock = self.lock_window(lane, &whole, &file, LockMode::Shared)?;
            let request = lock.request;
            let found = self.fetch(lane, &file, &mut window, phases);
            let unlocked = self.ask_owner(lane, &whole, |view| Unlock { view, request });
            let found = found?;
            unlocked?;
            for piece in seen.view.bytes().segments(file.start..found) {
                let at = (piece.start() - file.start) as usize;
                let len = piece.len() as usize;
                let target = into.reborrow().range(done..done + len);
                let target = target.expect("no more than was asked for");
                target.copy_from(window[at..at + len].into());
                done += len;
            }
            // Cut off by another client meanwhile: short, as at any end.
            Ok(found == file.end)
        });
        lane.work.packed = window;
        result.map(|()| done)
    }

    /// Writes window by window, each read first unless it is wanted as a whole.
    fn write_sieved(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        lo: u64,
        bytes: SharedBytes<'_>,
        phases: &mut Phases,
    ) -> Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let most = self.window_bytes("ind_wr_buffer_size", WRITE_WINDOW);
        let mut window = std::mem::take(&mut lane.work.packed);
        let mut done = 0;
        let result = self.windows(seen, lo, bytes.len() as u64, most, |file| {
            let mut patience = self.session.patience();
            let wanted: u64 = seen
                .view
                .bytes()
                .segments(file.clone())
                .map(|piece| piece.len())
                .sum();
            let part = bytes.range(done..done + wanted as usize);
            let part = part.expect("no more than was asked for");
            loop {
                let written = self.write_window(lane, seen, &file, part, &mut window, phases);
                let has_lost_hold = lane.holds_nothing();
                match written {
                    // Others may have written what was read.
                    Err(_) if has_lost_hold && patience.busy() => {}
                    Err(error) => return Err(error),
                    Ok(()) => break,
                }
            }
            done += part.len();
            Ok(true)
        });
        lane.work.packed = window;
        result.map(|()| done)
    }

    /// Writes one window: the bytes of a view in a file range.
    fn write_window(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        file: &Range<u64>,
        bytes: SharedBytes<'_>,
        window: &mut Vec<u8>,
        phases: &mut Phases,
    ) -> Result<()> {
        let whole = self.views.whole.clone();
        let len = (file.end - file.start) as usize;
        // Also a window without holes: it may be a hole in that of another client.
        let lock = self.lock_window(lane, &whole, file, LockMode::Exclusive)?;
        let request = lock.request;
        let mut held = Vec::new();
        let replaced = if bytes.len() == len {
            let request = Request::of(&whole, file.start, Memory::of(Run::From(bytes)));
            self.access_counting(lane, request, phases)
        } else {
            let is_held = self.hold_window(lane, &whole, file, &mut held);
            let fetched = is_held.and_then(|()| self.fetch(lane, file, window, phases));
            fetched.and_then(|_| {
                let mut done = 0;
                for piece in seen.view.bytes().segments(file.clone()) {
                    let at = (piece.start() - file.start) as usize;
                    let len = piece.len() as usize;
                    let source = bytes.range(done..done + len).expect("as many bytes");
                    SharedBytesMut::from_slice(&mut window[at..at + len]).copy_from(source);
                    done += len;
                }
                let request = Request::of(&whole, file.start, Memory::of(&window[..len]));
                crash_point("client_in_sieve");
                self.access_counting(lane, request, phases)
            })
        };
        let has_lost_hold = lane.holds_nothing();
        let let_go = self.let_go(lane, &whole, &held);
        let unlocked = self.ask_owner(lane, &whole, |view| Unlock { view, request });
        if has_lost_hold {
            lane.lost_hold();
        }
        replaced?;
        let_go?;
        unlocked
    }

    /// Locks a window. The owner of the file grants locks to handles that it has admitted; to be so
    /// with the whole file makes every other sieving handle one whose accesses may conflict.
    fn lock_window(
        &self,
        lane: &mut Lane,
        whole: &HandleView,
        file: &Range<u64>,
        mode: LockMode,
    ) -> Result<RangeLock> {
        let mut left = MOST_ADMISSIONS;
        loop {
            match self.lock_range(lane, whole, file.clone(), mode) {
                Err(error) if error.status() == Status::StaleLease && left > 0 => {
                    left -= 1;
                    self.ask_owner(lane, whole, |view| Admit {
                        view,
                        handle: self.handle_id(),
                    })?;
                }
                other => return other,
            }
        }
    }

    /// Keeps everybody else out of a window, at all servers of the file. What was held when it failed is in
    /// the list too.
    fn hold_window(
        &self,
        lane: &mut Lane,
        whole: &HandleView,
        file: &Range<u64>,
        held: &mut Vec<(Place, u64)>,
    ) -> Result<()> {
        let mut patience = self.session.patience();
        loop {
            let Err((place, trouble)) = self.hold_once(lane, whole, file, held) else {
                return Ok(());
            };
            // Nobody waits for what a move has fenced that waits for what he holds.
            let _ = self.let_go(lane, whole, held);
            held.clear();
            lane.holds_nothing();
            self.repair(lane, whole, place, trouble, &mut patience)?;
        }
    }

    /// Asks all servers once; the one that did not agree, and why.
    fn hold_once(
        &self,
        lane: &mut Lane,
        whole: &HandleView,
        file: &Range<u64>,
        held: &mut Vec<(Place, u64)>,
    ) -> std::result::Result<(), (Place, Trouble)> {
        let plan = whole.plan(&self.known.state());
        let mut places = plan.places.clone();
        // All clients in the same order, so that no two wait for each other.
        places.sort_unstable_by_key(|place| place.server);
        for place in places {
            let hold = |view| HoldRange {
                view,
                lo: file.start,
                hi: file.end,
                version: Bytes(plan.version.clone()),
            };
            let number = self.ask_once(lane, whole, place, hold);
            let number = number.map_err(|trouble| (place, trouble))?;
            held.push((place, number));
            lane.holds_at(place.server);
        }
        Ok(())
    }

    /// Lets others in again. A server that knows nothing of it has let them in before.
    fn let_go(&self, lane: &mut Lane, whole: &HandleView, held: &[(Place, u64)]) -> Result<()> {
        let mut result = Ok(());
        for (place, number) in held {
            let number = *number;
            let done = self.ask_once(lane, whole, *place, |view| LetGo { view, number });
            if let Err(trouble) = done {
                let server = ServerId(place.server);
                let address = self.session.address(place.server);
                result = Err(trouble.into_error(Some(server), &address));
            }
        }
        result
    }

    /// Reads a window as it is in the file; what lies beyond the end is zero. Returns where the bytes
    /// of the file end in it.
    fn fetch(
        &self,
        lane: &mut Lane,
        file: &Range<u64>,
        window: &mut Vec<u8>,
        phases: &mut Phases,
    ) -> Result<u64> {
        let len = (file.end - file.start) as usize;
        if window.len() < len {
            window.resize(len, 0);
        }
        let whole = self.views.whole.clone();
        let into = &mut window[..len];
        let request = Request::of(&whole, file.start, Memory::of(&mut *into));
        let found = self.access_counting(lane, request, phases)?;
        into[found..].fill(0);
        Ok(file.start + found as u64)
    }

    /// Hands out the windows of an access, ascending, until `take` says that it is enough.
    fn windows(
        &self,
        seen: &HandleView,
        lo: u64,
        len: u64,
        most: u64,
        mut take: impl FnMut(Range<u64>) -> Result<bool>,
    ) -> Result<()> {
        let bytes = seen.view.bytes();
        let span = file_range(seen, lo, len)?.raw();
        let mut start = span.start;
        while start < span.end {
            let end = start.saturating_add(most).min(span.end);
            // Ends behind the last wanted byte: what follows belongs to the next, or to nobody.
            let last = bytes.select(bytes.rank(end) - 1).expect("a byte before");
            if !take(start..last + 1)? {
                return Ok(());
            }
            match bytes.next_byte(end) {
                Some(next) => start = next,
                None => break,
            }
        }
        Ok(())
    }
}
