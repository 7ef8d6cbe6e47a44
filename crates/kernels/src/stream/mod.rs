//! Owns [`Stream`]: the bytes of a periodic set as one ascending stream, gathered from and
//! scattered to memory by ranges of stream positions. One side of such a copy is always packed.
//!
//! ```text
//!  periodic set {0-1, 4} every 6 from 1 on     stream position
//!
//!  offset  0 1 2 3 4 5 6 7 8 9 ...
//!            a b     c   d e     f   ..        a b c d e f ..
//!            0 1     2   3 4     5             0 1 2 3 4 5
//! ```
//!
//! A stream is compiled once and then asked for any range: whoever sends and whoever receives
//! count along the same bytes and exchange no offsets. The period is the outermost loop, so a
//! range of a million periods is one run of the loops and not a million calls.
//!
//! Invariants:
//! * stream byte j lies at `select(j)`, and what is copied for a range of positions lies between
//!   the first and the last of them. Those two are compared with the memory once per call;
//!   nothing inside checks again;
//! * blocks that touch are one block, also across the border of two periods, so that everything
//!   (or what is left of a set once its blocks join) is a single copy;
//! * no call allocates.
//!
//! Cost: compiling takes time and memory in proportion to the nodes as written. A call
//! takes O(depth x log fan-out) to find the first and the last byte, and runs in between with
//! the kernels of the crate, as fast as a [`Program`](crate::Program) compiled for that very range.
//!
//! Measured with `examples/stream_rates.rs` on two shared cores, gathers that touch 384 KiB, GB/s of
//! the stream and of the program: 8 bytes every 16, 32.5 and 32.6; every 64, 12.8 and 12.8; every
//! 512, 13.5 and 14.1; every 4096, 2.7 and 2.6; rows of 16 such blocks, 33.3 and 33.5; blocks of 8, 4
//! and 12 in periods of 64, 7.5 and 3.5; irregular segments of 8, 12.9 and 10.5; 1 MiB in one run, 46.9
//! and 46.9. Finding the ends costs some 15 ns a call: 64 bytes in eight blocks take 26 ns and 11.
//!
//! Two streams of equal length are copied into each other by [`Stream::copy_to`], byte j of one to byte
//! j of the other, with gaps on both sides and nothing in between.
//!
//! Left to others: copies with gaps on both sides that are compiled as one (`program`), memory in any
//! order (`nest`), and writing past the caches: a packet is sent or was received, and so is wanted in
//! the cache.

mod between;
mod compile;
mod run;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use falls::{MAX_OFFSET, Periodic};

use crate::nest::Span;
use crate::program::{BoundsError, Side};
use crate::shared::{SharedBytes, SharedBytesMut};
use compile::{Group, Stretch};
use run::{At, Fill, Gather, Motion, PastGather, PastScatter, Scatter};

/// The bytes of a periodic set in ascending order, numbered from 0.
///
/// ```text
///  offset  0 . 2 . 4 . 6 . 8 . 10        set {0-1, 4} every 6, from 1 on
///  memory  - a b - - c - d e - - f
///            0 1     2   3 4     5       position in the stream
/// ```
///
/// ```
/// use falls::{MAX_OFFSET, Periodic};
/// use kernels::Stream;
/// let stream = Stream::new(&Periodic::new(1, 6, "{(0,1),(4,4)}".parse()?)?);
/// let mut packet = [0; 4];
/// stream.gather(1..5, b"-ab--c-de--f"[..].into(), 0, &mut packet)?;
/// assert_eq!(&packet, b"bcde");
///
/// let mut memory = *b"............";
/// stream.scatter(1..5, &packet, memory[..].as_mut().into(), 0)?;
/// assert_eq!(&memory, b"..b..c.de...");
/// assert_eq!(stream.contiguous(3..5), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    /// The set, simplified.
    element: Periodic,
    /// Where the compiled period begins, modulo 2^64: before the displacement if the set was
    /// turned to join the end of one period to the beginning of the next.
    origin: u64,
    /// Compiled bytes before byte 0 of the stream.
    lead: u64,
    /// Periods until 63 bits are full.
    periods: Arc<Group>,
}

impl Stream {
    /// Compiles a periodic set.
    pub fn new(periodic: &Periodic) -> Stream {
        let (displacement, period) = (periodic.displacement(), periodic.period());
        // The same bytes in the same period: a valid set again.
        let element = Periodic::new(displacement, period, periodic.set().simplify())
            .unwrap_or_else(|_| periodic.clone());
        let (mut origin, mut lead) = (displacement, 0);
        let mut set = element.set().clone();
        let turn = seam(&element);
        // One period fits always: it is no longer than 63 bits.
        let mut count = compile::periods(period, 0).unwrap_or(1);
        // What is turned begins up to a period before the displacement, and ends that much earlier.
        if turn > 0
            && let Some(more) = compile::periods(period, 1)
            && let Ok(fixed) = Periodic::new(0, period, set.clone())
            && let Some(turned) = fixed.align(turn)
        {
            lead = set.size() - set.rank(turn);
            origin = displacement.wrapping_add(turn).wrapping_sub(period);
            set = turned.set().simplify();
            count = more;
        }
        Stream {
            periods: Arc::new(compile::endless(&set, period, count)),
            element,
            origin,
            lead,
        }
    }

    /// The set of the stream, simplified.
    pub fn periodic(&self) -> &Periodic {
        &self.element
    }

    /// Bytes from one repetition to the next, holes included.
    pub fn period(&self) -> u64 {
        self.element.period()
    }

    /// Stream bytes in one repetition; 0 for the empty stream.
    pub fn bytes_per_period(&self) -> u64 {
        self.element.size()
    }

    /// Number of stream bytes below offset `x`.
    pub fn rank(&self, x: u64) -> u64 {
        self.element.rank(x)
    }

    /// Offset of stream byte `position`; `None` when the stream is empty or the offset reaches
    /// `2^63 - 1`.
    pub fn select(&self, position: u64) -> Option<u64> {
        self.element.select(position)
    }

    /// Where the bytes of a range of positions begin, if they lie in one run. An empty range
    /// lies where its byte would; `None` also beyond the last offset.
    pub fn contiguous(&self, range: Range<u64>) -> Option<u64> {
        let first = self.select(range.start)?;
        if range.end <= range.start {
            return Some(first);
        }
        let last = self.select(range.end - 1)?;
        (last - first == range.end - 1 - range.start).then_some(first)
    }

    /// Copies the bytes of a range of positions into a packet:
    /// `packed[i] = source[select(range.start + i) - base]`. A packet longer than the range keeps
    /// its rest.
    pub fn gather(
        &self,
        range: Range<u64>,
        source: SharedBytes<'_>,
        base: u64,
        packed: &mut [u8],
    ) -> Result<(), BoundsError> {
        self.gather_shared(range, source, base, packed.into())
    }

    /// As [`Stream::gather`], into shared memory.
    pub fn gather_shared(
        &self,
        range: Range<u64>,
        source: SharedBytes<'_>,
        base: u64,
        packed: SharedBytesMut<'_>,
    ) -> Result<(), BoundsError> {
        self.gather_as::<false>(range, source, base, packed)
    }

    fn gather_as<const PAST: bool>(
        &self,
        range: Range<u64>,
        source: SharedBytes<'_>,
        base: u64,
        mut packed: SharedBytesMut<'_>,
    ) -> Result<(), BoundsError> {
        check_packed(&range, Side::Target, packed.len())?;
        let first = self.check(&range, Side::Source, source.len(), base)?;
        // SAFETY: both spans lie in the ranges, which their constructors promise to be valid
        // and apart. `Gather` only reads the spread side.
        unsafe {
            let at = At::new(source.as_ptr().cast_mut(), packed.as_mut_ptr());
            match PAST {
                true => self.run::<PastGather>(range, first, base, at),
                false => self.run::<Gather>(range, first, base, at),
            }
        }
        Ok(())
    }

    /// Copies a packet to the places of a range of positions:
    /// `target[select(range.start + i) - base] = packed[i]`. Bytes between them stay as they are.
    pub fn scatter(
        &self,
        range: Range<u64>,
        packed: &[u8],
        target: SharedBytesMut<'_>,
        base: u64,
    ) -> Result<(), BoundsError> {
        self.scatter_shared(range, packed.into(), target, base)
    }

    /// As [`Stream::scatter`], from shared memory.
    pub fn scatter_shared(
        &self,
        range: Range<u64>,
        packed: SharedBytes<'_>,
        target: SharedBytesMut<'_>,
        base: u64,
    ) -> Result<(), BoundsError> {
        self.scatter_as::<false>(range, packed, target, base)
    }

    fn scatter_as<const PAST: bool>(
        &self,
        range: Range<u64>,
        packed: SharedBytes<'_>,
        mut target: SharedBytesMut<'_>,
        base: u64,
    ) -> Result<(), BoundsError> {
        check_packed(&range, Side::Source, packed.len())?;
        let first = self.check(&range, Side::Target, target.len(), base)?;
        // SAFETY: as in `gather_shared`. `Scatter` only reads the packed side.
        unsafe {
            let at = At::new(target.as_mut_ptr(), packed.as_ptr().cast_mut());
            match PAST {
                true => self.run::<PastScatter>(range, first, base, at),
                false => self.run::<Scatter>(range, first, base, at),
            }
        }
        Ok(())
    }

    /// Writes zeros to the places of a range of positions, as if scattering a packet of them:
    /// what a read finds where nothing was written.
    pub fn fill_zeros(
        &self,
        range: Range<u64>,
        mut target: SharedBytesMut<'_>,
        base: u64,
    ) -> Result<(), BoundsError> {
        let first = self.check(&range, Side::Target, target.len(), base)?;
        // SAFETY: as above; `Fill` does not touch the packed side.
        unsafe {
            let at = At::new(target.as_mut_ptr(), std::ptr::null_mut());
            self.run::<Fill>(range, first, base, at);
        }
        Ok(())
    }

    /// Checks that the bytes of a range lie in memory of `len` bytes that begins at offset
    /// `base`, and gives the offset of the first and of the last one; `None` for an empty range.
    fn check(
        &self,
        range: &Range<u64>,
        side: Side,
        len: usize,
        base: u64,
    ) -> Result<Option<(u64, u64)>, BoundsError> {
        if range.end <= range.start {
            return Ok(None);
        }
        let ends = self
            .place(range.start)
            .zip(self.place(range.end - 1))
            .filter(|&(first, last)| first >= base && last - base < len as u64);
        if ends.is_some() {
            return Ok(ends);
        }
        Err(self.refusal(range, side, len, base))
    }

    /// What [`Stream::select`] says, by the compiled periods.
    fn place(&self, position: u64) -> Option<u64> {
        let position = position.checked_add(self.lead)?;
        if position >= self.periods.bytes() {
            return None;
        }
        // From the lead on bytes lie at or after the displacement, so the sum is below 2^64 again.
        let offset = self.origin.wrapping_add(self.periods.place(position));
        (offset < MAX_OFFSET).then_some(offset)
    }

    /// Where the byte at a position lies, and how many follow it in its block, itself included.
    pub(crate) fn block(&self, position: u64) -> Option<(u64, u64)> {
        self.place(position)?;
        let stretch = self.stretch(position, 0);
        Some((stretch.offset, stretch.rest))
    }

    /// What follows a position that has a place, with offsets counted from `base`.
    fn stretch(&self, position: u64, base: u64) -> Stretch {
        let stretch = self.periods.stretch(position + self.lead);
        let offset = self.origin.wrapping_add(stretch.offset);
        Stretch {
            offset: offset.wrapping_sub(base),
            ..stretch
        }
    }

    #[cold]
    fn refusal(&self, range: &Range<u64>, side: Side, len: usize, base: u64) -> BoundsError {
        let place = |position| {
            let offset = self
                .select(position)
                .map_or(i128::from(i64::MAX), i128::from);
            (offset - i128::from(base)).clamp(i128::from(i64::MIN), i128::from(i64::MAX) - 1) as i64
        };
        let span = Span {
            start: place(range.start),
            end: place(range.end - 1) + 1,
        };
        BoundsError { side, span, len }
    }

    /// Moves the bytes of a range between the memory that begins at offset `base` and a packet.
    ///
    /// # Safety
    /// `ends` is what [`Stream::check`] said about the range and the memory `at.spread`; the
    /// packed side holds as many bytes as the range; the two do not overlap.
    unsafe fn run<M: Motion>(
        &self,
        range: Range<u64>,
        ends: Option<(u64, u64)>,
        base: u64,
        at: At,
    ) {
        let Some((first, last)) = ends else {
            return;
        };
        let len = range.end - range.start;
        if last - first == len - 1 {
            // SAFETY: one run, between the ends that were checked.
            unsafe { M::any(at.moved(first - base, 0), len as usize) };
            return;
        }
        // Both ends have places, so neither sum leaves the periods.
        let window = range.start + self.lead..range.end + self.lead;
        let start = self.origin.wrapping_sub(base);
        let at = at.moved(start, window.start.wrapping_neg());
        // SAFETY: the compiled periods ascend, and both ends of the window were checked by the
        // places the same periods give them; its bytes lie in the packet.
        unsafe { run::group_window::<M>(&self.periods, at, window) };
    }
}

/// Checks that a packet holds a range.
fn check_packed(range: &Range<u64>, side: Side, len: usize) -> Result<(), BoundsError> {
    let bytes = range.end.saturating_sub(range.start);
    if bytes <= len as u64 {
        return Ok(());
    }
    let end = i64::try_from(bytes).unwrap_or(i64::MAX);
    let span = Span { start: 0, end };
    Err(BoundsError { side, span, len })
}

/// Where in the period the last run begins, if it goes on in the next period; 0 if not.
///
/// ```text
///  |==  ==  ==|==  ==  ==|       |==  =  =|
///           ^                     ^ no
/// ```
fn seam(element: &Periodic) -> u64 {
    let (set, period) = (element.set(), element.period());
    if element.is_everything() || !set.contains(0) || !set.contains(period - 1) {
        return 0;
    }
    // The first offset from which on all bytes up to the end belong to the set.
    let (mut low, mut high) = (0, period - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if set.is_contiguous(middle..period) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
