//! The regular segments: block j of VP v lies at `base + (j * V + v) * block`, so that a block of all VPs is one array, and one
//! collective transfer moves it (M-01, M-02).
//!
//! ```text
//!  file:     | v0 v1 v2 v3 | v0 v1 v2 v3 | ...      block 0, block 1 of all VPs
//!  member:   |    v1 v2    |                        its view of a block
//! ```
//!
//! A whole block whose VPs have it in memory at a constant stride goes straight between memory and file, whichever segment it is in
//! (X-02); what is shorter goes through one buffer for each VP, all of which fill and empty together.
//!
//! Invariants
//! - All members have the same block in their buffers, up to the same byte.
//! - Bytes of a block beyond the end of the streams are zeros when it is written.

use client::{Memory, Places, Result};

use crate::root::Regular;
use crate::stream::Stream;
use crate::variable::Strides;

/// Which of the two segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Nb,
    Cb,
}

/// One block of every VP of the member in memory.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// Which it is.
    block: Option<(Which, u64)>,
    /// Whether the file does not have all of it.
    is_dirty: bool,
    bytes: Vec<u8>,
}

/// Copies `len` bytes for each of `count` VPs from one stride to another.
fn copy_strided(
    target: &mut [u8],
    (target_first, target_stride): (usize, usize),
    source: &[u8],
    (source_first, source_stride): (usize, usize),
    (count, len): (usize, usize),
) {
    fn fixed<const N: usize>(
        target: &mut [u8],
        target_stride: usize,
        source: &[u8],
        source_stride: usize,
        count: usize,
    ) {
        let pairs = target
            .chunks_mut(target_stride)
            .zip(source.chunks(source_stride));
        for (to, from) in pairs.take(count) {
            to[..N].copy_from_slice(&from[..N]);
        }
    }
    if count == 0 || len == 0 {
        return;
    }
    let (target, source) = (&mut target[target_first..], &source[source_first..]);
    match len {
        4 => fixed::<4>(target, target_stride, source, source_stride, count),
        8 => fixed::<8>(target, target_stride, source, source_stride, count),
        16 => fixed::<16>(target, target_stride, source, source_stride, count),
        32 => fixed::<32>(target, target_stride, source, source_stride, count),
        _ => {
            for i in 0..count {
                let (to, from) = (i * target_stride, i * source_stride);
                target[to..to + len].copy_from_slice(&source[from..from + len]);
            }
        }
    }
}

impl Stream {
    pub(crate) fn segment(&self, which: Which) -> Regular {
        match which {
            Which::Nb => self.nb,
            Which::Cb => self.cb,
        }
    }

    fn segment_mut(&mut self, which: Which) -> &mut Regular {
        match which {
            Which::Nb => &mut self.nb,
            Which::Cb => &mut self.cb,
        }
    }

    /// Where memory of the first VP begins; a member without VPs may have none.
    fn first_byte(&self, place: Strides, skip: usize) -> usize {
        match self.emulation.count() {
            0 => 0,
            _ => place.first + skip,
        }
    }

    /// Makes the blocks of a segment those that the view shows, together with the other members.
    fn show(&mut self, segment: Regular) -> Result<()> {
        let wanted = (segment.base, segment.block);
        if self.shown != Some(wanted) {
            let view = self.emulation.view(segment.base, segment.block)?;
            self.shaped.set_view_together(&self.team, &view)?;
            self.shown = Some(wanted);
        }
        Ok(())
    }

    /// Where the bytes of a block of this member begin in the view.
    fn view_offset(&self, segment: Regular, block: u64) -> u64 {
        block * self.emulation.count() as u64 * segment.block
    }

    /// Writes a block of all VPs from memory, all members together.
    fn put_block(
        &mut self,
        segment: Regular,
        block: u64,
        bytes: &[u8],
        (first, places): (usize, &Places),
    ) -> Result<()> {
        self.show(segment)?;
        self.pages.forget_copies();
        self.statistics.transfers += 1;
        let at = self.view_offset(segment, block);
        let memory = Memory::source(bytes.into(), first, places)?;
        self.shaped.access_at_all(&self.team, at, memory)?;
        Ok(())
    }

    /// Reads a block of all VPs into memory, all members together. What the file does not have is the pad.
    fn get_block(
        &mut self,
        segment: Regular,
        block: u64,
        bytes: &mut [u8],
        (first, places): (usize, &Places),
    ) -> Result<()> {
        self.show(segment)?;
        self.statistics.transfers += 1;
        let at = self.view_offset(segment, block);
        let memory = Memory::target((&mut *bytes).into(), first, places)?;
        let read = self.shaped.access_at_all(&self.team, at, memory)? as u64;
        if read < places.size() {
            let rest = vec![self.root.pad; (places.size() - read) as usize];
            places.unpack(&rest, bytes.into(), first, read)?;
        }
        Ok(())
    }

    /// Writes bytes of all VPs into a segment, or at its end: `bytes` of each from `at` on, which lie `skip` bytes into each VP's
    /// part of the memory.
    pub(crate) fn write_regular(
        &mut self,
        which: Which,
        mut at: u64,
        (memory, place): (&[u8], Strides),
        (mut skip, mut bytes): (usize, usize),
    ) -> Result<()> {
        while bytes > 0 {
            let segment = self.segment(which);
            let (block, within) = (at / segment.block, (at % segment.block) as usize);
            let n = (segment.block as usize - within).min(bytes);
            let is_whole = n == segment.block as usize;
            if is_whole && self.buffered.block != Some((which, block)) {
                let places = self.places_of(n, place.stride)?;
                let first = self.first_byte(place, skip);
                self.put_block(segment, block, memory, (first, &places))?;
            } else {
                self.bring(which, block)?;
                let count = self.emulation.count();
                copy_strided(
                    &mut self.buffered.bytes,
                    (within, segment.block as usize),
                    memory,
                    (place.first + skip, place.stride),
                    (count, n),
                );
                self.buffered.is_dirty = true;
            }
            (at, skip, bytes) = (at + n as u64, skip + n, bytes - n);
            let segment = self.segment_mut(which);
            segment.len = segment.len.max(at);
            if at.is_multiple_of(segment.block) {
                self.put_buffers()?;
            }
        }
        Ok(())
    }

    /// Reads bytes of all VPs that are in a segment; see [`Stream::write_regular`].
    pub(crate) fn read_regular(
        &mut self,
        which: Which,
        mut at: u64,
        (memory, place): (&mut [u8], Strides),
        (mut skip, mut bytes): (usize, usize),
    ) -> Result<()> {
        while bytes > 0 {
            let segment = self.segment(which);
            let (block, within) = (at / segment.block, (at % segment.block) as usize);
            let n = (segment.block as usize - within).min(bytes);
            let is_whole = n == segment.block as usize;
            if is_whole && self.buffered.block != Some((which, block)) {
                let places = self.places_of(n, place.stride)?;
                let first = self.first_byte(place, skip);
                self.get_block(segment, block, memory, (first, &places))?;
            } else {
                self.bring(which, block)?;
                let count = self.emulation.count();
                copy_strided(
                    memory,
                    (place.first + skip, place.stride),
                    &self.buffered.bytes,
                    (within, segment.block as usize),
                    (count, n),
                );
            }
            (at, skip, bytes) = (at + n as u64, skip + n, bytes - n);
        }
        Ok(())
    }

    /// Has a block in the buffers, with zeros beyond the end of the streams.
    fn bring(&mut self, which: Which, block: u64) -> Result<()> {
        if self.buffered.block == Some((which, block)) {
            return Ok(());
        }
        self.put_buffers()?;
        let segment = self.segment(which);
        let (size, count) = (segment.block as usize, self.emulation.count());
        let valid = segment.len.saturating_sub(block * segment.block);
        let valid = valid.min(segment.block) as usize;
        let mut bytes = std::mem::take(&mut self.buffered.bytes);
        self.buffered.block = None;
        bytes.resize(size * count, 0);
        if valid > 0 {
            let places = Places::bytes(bytes.len() as u64);
            self.get_block(segment, block, &mut bytes, (0, &places))?;
        }
        if valid < size {
            for of_vp in bytes.chunks_exact_mut(size) {
                of_vp[valid..].fill(0);
            }
        }
        self.buffered.bytes = bytes;
        self.buffered.block = Some((which, block));
        Ok(())
    }

    /// Writes the buffers if the file does not have what is in them, all members together. They keep it.
    pub(crate) fn put_buffers(&mut self) -> Result<()> {
        let (Some((which, block)), true) = (self.buffered.block, self.buffered.is_dirty) else {
            return Ok(());
        };
        let bytes = std::mem::take(&mut self.buffered.bytes);
        let places = Places::bytes(bytes.len() as u64);
        let done = self.put_block(self.segment(which), block, &bytes, (0, &places));
        self.buffered.bytes = bytes;
        self.buffered.is_dirty = done.is_err();
        done
    }

    /// Writes this member's share of the buffers, without the others, and gives the buffers up: from now on VPs go each for itself.
    /// Every member's buffers have the same fill, so each can do that when it comes to it (3.3 of the specification).
    pub(crate) fn leave_buffers(&mut self) -> Result<()> {
        if let (Some((which, block)), true) = (self.buffered.block, self.buffered.is_dirty)
            && self.emulation.count() > 0
        {
            let segment = self.segment(which);
            let view = self.emulation.view(segment.base, segment.block)?;
            let at = self.view_offset(segment, block);
            let bytes = &self.buffered.bytes;
            self.through(&view, |file| file.write_at(at, bytes))?;
        }
        self.buffered = Buffers::default();
        Ok(())
    }

    /// The address of a byte of a VP's stream in a regular segment, and how many follow it there.
    pub(crate) fn regular_address(&self, number: u64, at: u64) -> (u64, u64) {
        let (segment, at) = match at < self.nb.len {
            true => (self.nb, at),
            false => (self.cb, at - self.nb.len),
        };
        let (block, within) = (at / segment.block, at % segment.block);
        let index = block * self.all_vps() + number;
        let left = (segment.block - within).min(segment.len - at);
        (segment.base + index * segment.block + within, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_copies_move_what_was_asked() {
        for len in 0..40 {
            let (count, from, to) = (5, len + 3, len + 1);
            let source: Vec<u8> = (0..=255).collect();
            let mut target = vec![0; 2 + count * to];
            copy_strided(&mut target, (2, to), &source, (1, from), (count, len));
            let mut expected = vec![0; 2 + count * to];
            for i in 0..count {
                for j in 0..len {
                    expected[2 + i * to + j] = source[1 + i * from + j];
                }
            }
            assert_eq!(target, expected);
        }
    }
}
