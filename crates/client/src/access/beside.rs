//! Accesses beside the view of a handle: through a view of their own, in pieces that are one access, and inserting.
//!
//! ```text
//!  handle   its view                      read_at, write_at, ...
//!     |\__ side view                      access_through: as quick, if it is kept for the next access
//!      \__ ranges of the file, in any order, also one twice     access_ranges: what no view can show
//! ```
//!
//! For interfaces in which every call says what it sees of the file (ViPIOS access descriptors). Many calls at the same time see
//! through different views, which setting the view of the handle would not allow.
//!
//! Invariants
//! - In atomic mode an access is atomic whatever it goes through. The owner of a file knows the view that the handle was
//!   admitted with, so locks are taken there: it has to be the whole file.
//! - A side view is known to servers until the last copy of it is dropped and another one is made, or the file is closed.
//!
//! Such accesses are not sieved and not read ahead, and leave the profile of the file alone: all of these count by the view of
//! the handle.

use std::ops::Range;
use std::sync::Arc;

use layout::View;

use crate::access::file_range;
use crate::access::memory::{Direction, Memory, Run};
use crate::access::request::{How, Request};
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::view::{HandleView, is_whole};
use crate::session::lane::Lane;

/// Bytes that are moved in one go by what inserts.
const PORTION: u64 = 4 << 20;

/// A view beside that of the handle; made by [`File::side_view`]. Keep it for the next access.
#[derive(Clone, Debug)]
pub struct SideView {
    file: File,
    seen: Arc<HandleView>,
}

impl SideView {
    /// Reads or writes at an offset in bytes of this view, as the memory says; less than asked for only when reading at the end
    /// of the file.
    pub fn access_at(&self, offset: u64, memory: Memory<'_>) -> Result<usize> {
        self.file.access_through(&self.seen, offset, memory)
    }

    /// What it shows.
    pub fn view(&self) -> &View {
        &self.seen.view
    }
}

/// A range of the file on its way up, from its end on, so that nothing is overwritten that was not moved yet. What was read is
/// kept until it is written: an access that is repeated goes on, for what it had read is overwritten in part.
struct MovingUp {
    left: Range<u64>,
    by: u64,
    /// What was read of the end of the range.
    part: Vec<u8>,
}

impl MovingUp {
    fn new(range: Range<u64>, by: u64) -> MovingUp {
        MovingUp {
            left: range,
            by,
            part: Vec::new(),
        }
    }

    fn go(&mut self, file: &File, lane: &mut Lane, whole: &HandleView, how: How) -> Result<()> {
        while !self.left.is_empty() {
            if self.part.is_empty() {
                let len = PORTION.min(self.left.end - self.left.start);
                let mut part = vec![0; len as usize];
                let into = Memory::of(Run::Into((&mut part[..]).into()));
                let at = self.left.end - len;
                file.access(lane, Request::of(whole, at, into).with(how))?;
                self.part = part;
            }
            let start = self.left.end - self.part.len() as u64;
            let from = Memory::of(Run::From((&self.part[..]).into()));
            file.access(lane, Request::of(whole, start + self.by, from).with(how))?;
            self.left.end = start;
            self.part.clear();
        }
        Ok(())
    }
}

impl File {
    /// Makes a view beside that of the handle. Costs nothing until it is used.
    pub fn side_view(&self, view: &View) -> Result<SideView> {
        self.check()?;
        let seen = self.view_beside(view)?;
        let file = self.clone();
        Ok(SideView { file, seen })
    }

    fn access_through(
        &self,
        seen: &Arc<HandleView>,
        offset: u64,
        mut memory: Memory<'_>,
    ) -> Result<usize> {
        let direction = memory.direction();
        self.check_beside(direction)?;
        memory.check_overlap()?;
        if memory.is_empty() {
            return Ok(0);
        }
        let len = memory.len();
        let reach = file_range(seen, offset, len)?;
        self.guarded_beside(direction, reach.start.0..reach.end.0, |lane, how| {
            let request = Request::of(seen, offset, memory.first(len)).with(how);
            self.access(lane, request)
        })
    }

    /// Reads or writes ranges of the file one after the other, in whatever order they come, as one access. How many bytes were
    /// moved; reading ends with the first range that is short.
    pub fn access_ranges<I>(&self, ranges: I, mut memory: Memory<'_>) -> Result<u64>
    where
        I: Iterator<Item = Range<u64>> + Clone,
    {
        let direction = memory.direction();
        self.check_beside(direction)?;
        memory.check_overlap()?;
        let mut reach: Option<Range<u64>> = None;
        for range in ranges.clone().filter(|range| !range.is_empty()) {
            let reached = reach.get_or_insert(range.clone());
            *reached = reached.start.min(range.start)..reached.end.max(range.end);
        }
        let Some(reach) = reach.filter(|_| !memory.is_empty()) else {
            return Ok(0);
        };
        self.guarded_beside(direction, reach, |lane, how| {
            let mut moved = 0;
            for range in ranges.clone() {
                let len = (range.end - range.start).min(memory.len() - moved);
                if len == 0 {
                    continue;
                }
                let part = memory.part(moved, len);
                let request = Request::of(&self.views.whole, range.start, part).with(how);
                let n = self.access(lane, request)? as u64;
                moved += n;
                if n < len {
                    break;
                }
            }
            Ok(moved)
        })
    }

    /// Inserts bytes before byte `offset` of the file; what was there moves behind them. Bytes that are not there, up to
    /// the offset, become zeros. Moves all bytes behind the offset; in atomic mode nobody sees them on their way. A client that
    /// dies in between leaves some of them twice.
    pub fn insert_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check_beside(Direction::Read)?;
        self.check_beside(Direction::Write)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let by = bytes.len() as u64;
        let whole = self.views.whole.clone();
        let mut size = self.size()?;
        loop {
            let new_end = size.max(offset).checked_add(by);
            let new_end = new_end.filter(|end| *end <= falls::MAX_OFFSET);
            let new_end = new_end
                .ok_or_else(|| Error::argument("bytes", "would move the end beyond 2^63 - 1"))?;
            let mut moving = None;
            let done = self.guarded_beside(Direction::Write, offset..new_end, |lane, how| {
                let moving = match &mut moving {
                    Some(moving) => moving,
                    none => {
                        let now = self.ask_size(lane)?.size;
                        if now > size {
                            // Others have written behind what was locked.
                            return Ok(Err(now));
                        }
                        none.insert(MovingUp::new(offset..now, by))
                    }
                };
                moving.go(self, lane, &whole, how)?;
                let new = Memory::of(Run::From(bytes.into()));
                self.access(lane, Request::of(&whole, offset, new).with(how))?;
                Ok(Ok(()))
            })?;
            match done {
                Ok(()) => return Ok(()),
                Err(now) => size = now,
            }
        }
    }

    fn check_beside(&self, direction: Direction) -> Result<()> {
        self.check_right(direction.right())?;
        if direction.is_write() && self.identity.is_append {
            return Err(Error::argument(
                "view",
                "goes beside a handle that appends; open the file without appending",
            ));
        }
        if self.is_atomic() && !is_whole(&self.views.current().view) {
            return Err(Error::argument(
                "view",
                "goes beside an atomic handle that sees a part of the file; set its view to the whole file",
            ));
        }
        Ok(())
    }

    /// Runs an access to some bytes of the file as the mode of the handle wants it.
    fn guarded_beside<T>(
        &self,
        direction: Direction,
        reach: Range<u64>,
        run: impl FnMut(&mut Lane, How) -> Result<T>,
    ) -> Result<T> {
        self.send_behind();
        let _gate = self.beside();
        let whole = &self.views.whole;
        let span = (reach.start, reach.end - reach.start);
        self.session
            .with_lane(|lane| self.guarded(lane, whole, span, direction, run))
    }
}
