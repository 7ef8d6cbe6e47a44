//! From one stream to another: byte j of a range of positions lies at `select(j)` of either.
//!
//! Both sides are walked block by block, and blocks that follow each other at a stride go to one
//! kernel: those of one length on both sides, and those that lie in a longer block of the other side.
//! What is left is copied one common piece at a time. Stepping to the next block of a stride is an
//! addition; leaving it costs a descent into the loops, some 15 ns.
//!
//! ```text
//!  source  |==  ==  ==  ==    ==  ==|        target  |== == == ==|======|
//!           one kernel: 4 blocks of 2                             one kernel: 2 blocks into a run
//! ```

use std::ops::Range;

use super::Stream;
use super::compile::Stretch;
use crate::inner::block::copy_any;
use crate::inner::stream::{copy_past, past};
use crate::inner::strided::strided;
use crate::program::{BoundsError, Dim, Side};
use crate::shared::{SharedBytes, SharedBytesMut};

impl Stream {
    /// Copies the bytes of a range of positions to the places that `target` gives the same positions:
    /// `to[target.select(j) - to_base] = from[self.select(j) - from_base]`.
    ///
    /// ```
    /// use falls::Periodic;
    /// use kernels::Stream;
    /// let pairs = Stream::new(&Periodic::new(0, 4, "{(0,1)}".parse()?)?);
    /// let odd = Stream::new(&Periodic::new(0, 2, "{(1,1)}".parse()?)?);
    /// let mut memory = *b"........";
    /// pairs.copy_to(0..4, b"ab..cd.."[..].into(), 0, &odd, memory[..].as_mut().into(), 0)?;
    /// assert_eq!(&memory, b".a.b.c.d");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy_to(
        &self,
        range: Range<u64>,
        from: SharedBytes<'_>,
        from_base: u64,
        target: &Stream,
        to: SharedBytesMut<'_>,
        to_base: u64,
    ) -> Result<(), BoundsError> {
        self.copy_as::<false>(range, from, from_base, target, to, to_base)
    }

    /// As [`Stream::copy_to`], as part of a job so large that its targets have left the caches before anybody
    /// reads them: they are written past them.
    pub fn copy_past(
        &self,
        range: Range<u64>,
        from: SharedBytes<'_>,
        from_base: u64,
        target: &Stream,
        to: SharedBytesMut<'_>,
        to_base: u64,
    ) -> Result<(), BoundsError> {
        self.copy_as::<true>(range, from, from_base, target, to, to_base)
    }

    /// Whether a copy to `target` moves at least so many bytes with one kernel, at a position or after the block that
    /// it lies in.
    pub(crate) fn reaches(&self, target: &Stream, position: u64, bytes: u64) -> bool {
        let mut source = Walk::new(self, position, 0);
        let mut target = Walk::new(target, position, 0);
        let reach = |source: &Walk<'_>, target: &Walk<'_>| {
            let (blocks, len, _) = row(source, target, u64::MAX);
            (blocks * len).max(source.at.rest.min(target.at.rest))
        };
        let block = source.at.rest.min(target.at.rest);
        if reach(&source, &target) >= bytes {
            return true;
        }
        source.step(block);
        target.step(block);
        reach(&source, &target) >= bytes
    }

    fn copy_as<const PAST: bool>(
        &self,
        range: Range<u64>,
        from: SharedBytes<'_>,
        from_base: u64,
        target: &Stream,
        mut to: SharedBytesMut<'_>,
        to_base: u64,
    ) -> Result<(), BoundsError> {
        let source_ends = self.check(&range, Side::Source, from.len(), from_base)?;
        let target_ends = target.check(&range, Side::Target, to.len(), to_base)?;
        let (Some(source_ends), Some(target_ends)) = (source_ends, target_ends) else {
            return Ok(());
        };
        let len = range.end - range.start;
        let is_run = |ends: (u64, u64)| ends.1 - ends.0 == len - 1;
        if is_run(target_ends) {
            let start = (target_ends.0 - to_base) as usize;
            let packed = to
                .range(start..start + len as usize)
                .expect("checked above");
            return self.gather_as::<PAST>(range, from, from_base, packed);
        }
        if is_run(source_ends) {
            let start = (source_ends.0 - from_base) as usize;
            let packed = from
                .range(start..start + len as usize)
                .expect("checked above");
            return target.scatter_as::<PAST>(range, packed, to, to_base);
        }
        // SAFETY: both ends of the range were found inside the memories, and places ascend. The
        // constructors of the memories promise that they are valid and apart.
        unsafe {
            copy_between::<PAST>(
                Walk::new(self, range.start, from_base),
                Walk::new(target, range.start, to_base),
                len,
                from.as_ptr(),
                to.as_mut_ptr(),
            );
        }
        Ok(())
    }
}

/// Where a walk along a stream stands.
struct Walk<'a> {
    stream: &'a Stream,
    position: u64,
    /// The stretch that begins here, with its offset counted from the base of the memory.
    at: Stretch,
    base: u64,
}

impl Walk<'_> {
    fn new(stream: &Stream, position: u64, base: u64) -> Walk<'_> {
        Walk {
            stream,
            position,
            at: stream.stretch(position, base),
            base,
        }
    }

    /// Whole blocks from here on at one stride.
    #[inline(always)]
    fn blocks(&self) -> u64 {
        if self.at.rest == self.at.len {
            self.at.more + 1
        } else {
            0
        }
    }

    /// Goes on within the block, or to the beginning of the next.
    #[inline(always)]
    fn step(&mut self, bytes: u64) {
        self.position += bytes;
        if bytes < self.at.rest {
            self.at.offset += bytes;
            self.at.rest -= bytes;
        } else if self.at.more > 0 {
            // The block may begin before the memory does; the next does not.
            self.at.offset += self.at.rest + (self.at.stride - self.at.len);
            self.at.rest = self.at.len;
            self.at.more -= 1;
        } else {
            self.at = self.stream.stretch(self.position, self.base);
        }
    }

    /// Goes on by whole blocks.
    #[inline(always)]
    fn leap(&mut self, blocks: u64) {
        self.position += blocks * self.at.len;
        if blocks <= self.at.more {
            self.at.offset += blocks * self.at.stride;
            self.at.more -= blocks;
        } else {
            self.at = self.stream.stretch(self.position, self.base);
        }
    }
}

/// Blocks that one kernel can move from here on, of at most `left` bytes: how many, how long, and their strides.
#[inline(always)]
fn row(source: &Walk<'_>, target: &Walk<'_>, left: u64) -> (u64, u64, (u64, u64)) {
    let (s, t) = (source.at, target.at);
    let (blocks, len, strides) = if s.len == t.len {
        let blocks = source.blocks().min(target.blocks());
        (blocks, s.len, (s.stride, t.stride))
    } else if s.len < t.len {
        let blocks = source.blocks().min(t.rest / s.len);
        (blocks, s.len, (s.stride, s.len))
    } else {
        let blocks = target.blocks().min(s.rest / t.len);
        (blocks, t.len, (t.len, t.stride))
    };
    (blocks.min(left / len), len, strides)
}

/// Moves `left` bytes.
///
/// # Safety
/// The next `left` bytes of both walks lie in memory that is valid for reading (`from`) and for writing
/// (`to`), and the two do not overlap.
unsafe fn copy_between<const PAST: bool>(
    mut source: Walk<'_>,
    mut target: Walk<'_>,
    mut left: u64,
    from: *const u8,
    to: *mut u8,
) {
    while left > 0 {
        let at = (
            from.wrapping_add(source.at.offset as usize),
            to.wrapping_add(target.at.offset as usize),
        );
        let (s, t) = (source.at, target.at);
        let (blocks, len, strides) = row(&source, &target, left);
        if blocks < 2 {
            let n = s.rest.min(t.rest).min(left);
            // SAFETY: one piece of both sides, by the caller's promise.
            unsafe {
                match PAST {
                    true => copy_past(at.0, at.1, n as usize),
                    false => copy_any(at.0, at.1, n as usize),
                }
            };
            left -= n;
            if left > 0 {
                source.step(n);
                target.step(n);
            }
            continue;
        }
        let row = Dim {
            count: blocks as usize,
            source: strides.0 as isize,
            target: strides.1 as isize,
        };
        let kernel = match PAST {
            true => past(len as usize, Dim::ONCE, row),
            false => None,
        };
        let kernel = kernel.unwrap_or_else(|| strided(len as usize));
        // SAFETY: whole blocks of both sides, by the caller's promise; the kernel is one for this row,
        // or the one for any strides and this length.
        unsafe { kernel(at.0, at.1, Dim::ONCE, row, len as usize) };
        left -= blocks * len;
        if left == 0 {
            return;
        }
        match s.len == t.len {
            true => {
                source.leap(blocks);
                target.leap(blocks);
            }
            false if s.len < t.len => {
                source.leap(blocks);
                target.step(blocks * len);
            }
            false => {
                source.step(blocks * len);
                target.leap(blocks);
            }
        }
    }
}
