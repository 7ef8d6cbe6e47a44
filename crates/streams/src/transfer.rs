//! Collective reading and writing: the mode of every part is found, and the part done in it (3.1 of the specification).
//!
//! ```text
//!  not everywhere, sizes per VP, elemental calls since  ->  one exchange: do the rules hold for all?
//!       no, or VPs are at places of their own           ->  IB
//!       yes ->  segment at the position  ->  NB: dense, whole blocks of the NB segment
//!                                            CB: all else in NB and CB segments, and behind them
//!                                            IB: the independent segment
//! ```
//!
//! Whether members have to exchange anything is known to all of them without one: that a context is everywhere, that sizes are scalar
//! and that an elemental function was called are facts of the program, not of data. So a program that only does what the fast
//! modes allow exchanges nothing for finding its mode. Where accesses of the file below exchange anyway, members agree first, so
//! that an error of one is told to all before anybody waits.

use client::{Error, Result};

use crate::agreement::{ANY, Regularity};
use crate::context::Context;
use crate::fetch::{Piece, To};
use crate::independent::{Source, Who};
use crate::options::Mode;
use crate::regular::Which;
use crate::stream::{At, Stream, Use};
use crate::variable::{Density, Strides, Variable, VariableMut};

/// A number for every VP of a member: the same for all, or one each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counts {
    /// This for all.
    Uniform(u64),
    /// These, in the order of the VPs; 0 for those that are not active.
    Each(Vec<u64>),
}

impl Counts {
    /// That of the VP at a place.
    pub fn of(&self, local: usize) -> u64 {
        match self {
            Counts::Uniform(n) => *n,
            Counts::Each(all) => all.get(local).copied().unwrap_or(0),
        }
    }
}

/// How many bytes VPs read or write.
#[derive(Clone, Copy)]
pub(crate) enum Sizes<'a> {
    Scalar(usize),
    Each(&'a [usize]),
}

impl Sizes<'_> {
    fn of(self, local: usize) -> usize {
        match self {
            Sizes::Scalar(n) => n,
            Sizes::Each(all) => all[local],
        }
    }

    fn most(self) -> usize {
        match self {
            Sizes::Scalar(n) => n,
            Sizes::Each(all) => all.iter().copied().max().unwrap_or(0),
        }
    }
}

/// Whether all numbers are the same, found some at a time.
fn are_alike(all: &[usize]) -> bool {
    let first = all.first().copied().unwrap_or(0);
    let mut parts = all.chunks(1024);
    parts.all(|part| part.iter().fold(true, |alike, n| alike & (*n == first)))
}

/// Room for zeros of every VP.
const ZEROS: u64 = 4096;

impl Stream {
    /// Writes `bytes` of every active VP (`fwrite` with scalar sizes, A-04).
    pub fn write<'a>(
        &mut self,
        context: &Context,
        variable: impl Into<Variable<'a>>,
        bytes: usize,
    ) -> Result<()> {
        let variable = variable.into();
        self.write_sizes(context, variable, Sizes::Scalar(bytes))
    }

    /// Writes so many bytes of each active VP (A-03). VPs of a dense variable share its memory evenly.
    pub fn write_each<'a>(
        &mut self,
        context: &Context,
        variable: impl Into<Variable<'a>>,
        sizes: &[usize],
    ) -> Result<()> {
        let variable = variable.into();
        self.write_sizes(context, variable, Sizes::Each(sizes))
    }

    /// Reads up to `bytes` for every active VP (`fread` with scalar sizes, A-06). Less is read at the end of a stream only; memory
    /// behind what was read is as it was.
    pub fn read<'a>(
        &mut self,
        context: &Context,
        variable: impl Into<VariableMut<'a>>,
        bytes: usize,
    ) -> Result<Counts> {
        let variable = variable.into();
        self.read_sizes(context, variable, Sizes::Scalar(bytes))
    }

    /// Reads up to so many bytes for each active VP (A-05). VPs of a dense variable share its memory evenly.
    pub fn read_each<'a>(
        &mut self,
        context: &Context,
        variable: impl Into<VariableMut<'a>>,
        sizes: &[usize],
    ) -> Result<Counts> {
        let variable = variable.into();
        self.read_sizes(context, variable, Sizes::Each(sizes))
    }

    /// Where the bytes of VPs are in memory, if everything about the call is right.
    fn place(
        &self,
        what: Use,
        context: &Context,
        sizes: Sizes<'_>,
        (place, len): (Strides, usize),
    ) -> Result<Strides> {
        self.check(what)?;
        self.check_context(context)?;
        let count = self.emulation.count();
        let Sizes::Each(all) = sizes else {
            return place.resolve(count, sizes.most(), len);
        };
        if all.len() != count {
            return Err(Error::Argument {
                name: "sizes",
                text: format!("{} sizes, but this member has {count} VPs", all.len()),
            });
        }
        let place = match place.stride {
            0 => Strides {
                first: place.first,
                stride: (len / count.max(1)).max(1),
            },
            _ => place,
        };
        place.resolve(count, sizes.most(), len)
    }

    /// Finds whether all VPs go together, and with how many bytes each; exchanges something only where that is in doubt.
    pub(crate) fn decide(
        &mut self,
        context: &Context,
        sizes: Sizes<'_>,
        checked: Result<()>,
    ) -> Result<Option<usize>> {
        let is_scalar = matches!(sizes, Sizes::Scalar(_));
        let is_known = self.at == At::Each
            || context.is_everywhere() && is_scalar && !self.shaped.is_exchanging();
        if is_known && !self.is_doubtful {
            checked?;
            return Ok(match self.at {
                At::Each => None,
                At::Uniform { .. } => Some(sizes.most()),
            });
        }
        let count = self.emulation.count();
        let is_same = match sizes {
            Sizes::Scalar(_) => true,
            Sizes::Each(all) => are_alike(all),
        };
        let is_together = self.at != At::Each && is_same && context.has_all(count);
        let regularity = match is_together {
            true => Regularity::Regular,
            false => Regularity::Independent,
        };
        let bytes = match (count, is_scalar) {
            (0, false) => ANY,
            _ => sizes.most() as u64,
        };
        let verdict = self.agree(checked.map(|()| (regularity, bytes)))?;
        Ok(match verdict.is_regular {
            Regularity::Regular => Some(verdict.bytes as usize),
            Regularity::Independent => None,
        })
    }

    fn write_sizes(
        &mut self,
        context: &Context,
        variable: Variable<'_>,
        sizes: Sizes<'_>,
    ) -> Result<()> {
        let len = variable.bytes.len();
        let place = self.place(Use::Write, context, sizes, (variable.place, len));
        let together = self.decide(
            context,
            sizes,
            place.as_ref().map(drop).map_err(Clone::clone),
        )?;
        let memory = (variable.bytes, place?);
        let done = match together {
            Some(bytes) => self.write_together(memory, bytes),
            None => self.write_apart(context, memory, sizes, 0),
        };
        self.keep_failure(done)
    }

    /// Writes as many bytes of every VP, from the position that all have.
    pub(crate) fn write_together(&mut self, memory: (&[u8], Strides), bytes: usize) -> Result<()> {
        let At::Uniform { mut position, .. } = self.at else {
            unreachable!("positions are uniform");
        };
        if bytes == 0 {
            return Ok(());
        }
        if self.is_unread() {
            self.begin_plain(bytes as u64)?;
        }
        if self.options.access.appends() {
            position = self.uniform_len();
        }
        let density = memory.1.density(bytes);
        let mut done = 0;
        while done < bytes {
            let left = bytes - done;
            if position >= self.uniform_len() && self.has_independent() {
                self.set_position(position);
                self.become_each()?;
                let context = Context::everywhere();
                return self.write_apart(&context, memory, Sizes::Scalar(bytes), done);
            }
            if position > self.uniform_len() {
                self.fill_gap(position, left, density)?;
            }
            let (which, at, n) = self.next_part(position, left, density);
            let segment = self.segment(which);
            let is_nb = which == Which::Nb
                && density == Density::Dense
                && n as u64 == segment.block
                && at.is_multiple_of(segment.block);
            match is_nb {
                true => self.statistics.nb += 1,
                false => self.statistics.cb += 1,
            }
            self.write_regular(which, at, memory, (done, n))?;
            (position, done) = (position + n as u64, done + n);
        }
        self.written = if bytes > 0 {
            bytes as u64
        } else {
            self.written
        };
        self.set_position(position);
        Ok(())
    }

    fn set_position(&mut self, position: u64) {
        self.at = At::Uniform {
            position,
            is_ended: false,
        };
    }

    /// The segment of a position, the offset in it, and how many of the bytes go there. Behind the end a segment is begun.
    fn next_part(&mut self, position: u64, left: usize, density: Density) -> (Which, u64, usize) {
        let within = |end: u64| left.min(usize::try_from(end - position).unwrap_or(usize::MAX));
        if position < self.nb.len {
            return (Which::Nb, position, within(self.nb.len));
        }
        let at = position - self.nb.len;
        if position < self.uniform_len() {
            return (Which::Cb, at, within(self.uniform_len()));
        }
        let bytes = left as u64;
        if self.cb.block == 0 {
            let may = self.options.least == Mode::Nb && density == Density::Dense;
            if may && self.nb.block == 0 {
                self.nb.block = bytes;
            }
            if may && self.nb.block == bytes {
                return (Which::Nb, position, left);
            }
            self.begin_cb(bytes);
        }
        (Which::Cb, at, left)
    }

    /// Begins the CB segment behind the NB segment.
    fn begin_cb(&mut self, bytes: u64) {
        let vps = self.all_vps();
        let end = self.nb.end(vps).unwrap_or(0);
        self.cb.base = end.next_multiple_of(4096);
        self.cb.block = self.options.choose_cb(self.emulation.share(), bytes);
    }

    /// Writes zeros between the end of the streams and a position behind it (G-17).
    fn fill_gap(&mut self, position: u64, next: usize, density: Density) -> Result<()> {
        let gap = position - self.uniform_len();
        let in_nb = self.cb.block == 0
            && density == Density::Dense
            && self.nb.block == next as u64
            && gap.is_multiple_of(self.nb.block);
        if self.cb.block == 0 && !in_nb {
            self.begin_cb(next as u64);
        }
        let (which, most) = match in_nb {
            true => (Which::Nb, self.nb.block),
            false => (Which::Cb, ZEROS),
        };
        let zeros = vec![0; (most.min(gap) as usize) * self.emulation.count()];
        while self.uniform_len() < position {
            let n = (position - self.uniform_len()).min(most) as usize;
            let place = Strides {
                first: 0,
                stride: n,
            };
            let at = self.segment(which).len;
            self.write_regular(which, at, (&zeros, place), (0, n))?;
        }
        Ok(())
    }

    /// Takes a file of another program as one NB segment of such blocks.
    pub(crate) fn begin_plain(&mut self, bytes: u64) -> Result<()> {
        let block = self.options.nb_block.unwrap_or(bytes);
        let size = self.raw.size()?;
        let row = self
            .all_vps()
            .checked_mul(block)
            .ok_or_else(|| Error::Argument {
                name: "nb_block",
                text: format!(
                    "{block} bytes for each of {} VPs are too many",
                    self.all_vps()
                ),
            })?;
        if self.options.access.can_write() && !size.is_multiple_of(row) {
            return Err(Error::Argument {
                name: "nb_block",
                text: format!(
                    "{} has {size} bytes, no multiple of {} VPs of {block} bytes; say with nb_block how long blocks are, or open it for reading",
                    self.path,
                    self.all_vps()
                ),
            });
        }
        self.nb.block = block;
        self.nb.len = size.div_ceil(row) * block;
        Ok(())
    }

    /// Writes for every active VP by itself; `skip` bytes of each are written already.
    fn write_apart(
        &mut self,
        context: &Context,
        (memory, place): (&[u8], Strides),
        sizes: Sizes<'_>,
        skip: usize,
    ) -> Result<()> {
        self.become_each()?;
        let hint = match sizes {
            Sizes::Scalar(n) => n as u64,
            Sizes::Each(_) => 0,
        };
        self.begin_independent(self.independent_block(hint))?;
        self.statistics.ib += 1;
        let mut run = (0, 0, 0);
        for local in context.active(self.emulation.count()) {
            let bytes = &memory[place.of(local)..][skip..sizes.of(local)];
            if self.write_buffered(local, bytes) {
                continue;
            }
            let who = self.who_in(&mut run, local);
            self.write_vp(who, bytes)?;
        }
        Ok(())
    }

    /// Writes bytes of one VP if nothing has to be done but to copy them into its buffer; whether it was so.
    fn write_buffered(&mut self, local: usize, bytes: &[u8]) -> bool {
        let uniform = self.uniform_len();
        let (Some(ib), Some(vp)) = (&mut self.ib, self.vps.get_mut(local)) else {
            return false;
        };
        let position = match self.options.access.appends() {
            true => uniform + vp.len,
            false => vp.position,
        };
        let Some(at) = position.checked_sub(uniform) else {
            return false;
        };
        if bytes.is_empty() || !ib.write_buffered(local, vp, (at, bytes)) {
            return false;
        }
        vp.position = position + bytes.len() as u64;
        vp.flags.is_ended = false;
        true
    }

    /// Reads bytes of one VP if all of them are in its buffer; whether they were.
    fn read_buffered(&mut self, local: usize, into: &mut [u8]) -> bool {
        let uniform = self.uniform_len();
        let (Some(ib), Some(vp)) = (&self.ib, self.vps.get_mut(local)) else {
            return false;
        };
        let at = vp.position.checked_sub(uniform);
        let found = at.and_then(|at| ib.buffered(local, vp, at, into.len()));
        let Some(range) = found.filter(|range| !range.is_empty()) else {
            return false;
        };
        into.copy_from_slice(&ib.buffers[range]);
        vp.position += into.len() as u64;
        vp.flags.is_ended = false;
        true
    }

    /// The VP at a place; places are asked for in ascending order.
    fn who_in(&self, run: &mut (usize, u64, usize), local: usize) -> Who {
        if local >= run.0 + run.2 {
            let (first, count) = self.emulation.run(local);
            *run = (local, first, count);
        }
        Who {
            local,
            number: run.1 + (local - run.0) as u64,
        }
    }

    /// Writes bytes of one VP where it is.
    pub(crate) fn write_vp(&mut self, who: Who, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let uniform = self.uniform_len();
        let appends = self.options.access.appends();
        let vp = &mut self.vps[who.local];
        if appends {
            vp.position = uniform + vp.len;
        }
        let (mut at, mut bytes) = (vp.position, bytes);
        while at < uniform && !bytes.is_empty() {
            let (address, left) = self.regular_address(who.number, at);
            let n = bytes.len().min(left as usize);
            self.pages.write_across(&self.raw, address, &bytes[..n])?;
            (at, bytes) = (at + n as u64, &bytes[n..]);
        }
        let Stream {
            vps,
            ib: segment,
            pages,
            raw,
            ..
        } = self;
        let vp = &mut vps[who.local];
        if !bytes.is_empty() {
            let Some(segment) = segment else {
                unreachable!("the segment was begun");
            };
            segment.write(raw, pages, who, vp, (at - uniform, bytes))?;
        }
        vp.position = at + bytes.len() as u64;
        vp.flags.is_ended = false;
        Ok(())
    }

    fn read_sizes(
        &mut self,
        context: &Context,
        variable: VariableMut<'_>,
        sizes: Sizes<'_>,
    ) -> Result<Counts> {
        let VariableMut { bytes, place } = variable;
        let place = self.place(Use::Read, context, sizes, (place, bytes.len()));
        let together = self.decide(
            context,
            sizes,
            place.as_ref().map(drop).map_err(Clone::clone),
        )?;
        let place = place?;
        let done = match together {
            Some(n) => self.read_together((bytes, place), n),
            None => self.read_apart(context, (bytes, place), sizes, 0),
        };
        self.keep_failure(done)
    }

    /// Reads as many bytes for every VP, from the position that all have.
    fn read_together(
        &mut self,
        (memory, place): (&mut [u8], Strides),
        bytes: usize,
    ) -> Result<Counts> {
        let At::Uniform { mut position, .. } = self.at else {
            unreachable!("positions are uniform");
        };
        if self.is_unread() && bytes > 0 {
            self.begin_plain(bytes as u64)?;
        }
        let density = place.density(bytes);
        let mut done = 0;
        while done < bytes {
            let left = bytes - done;
            if position >= self.uniform_len() {
                self.set_position(position);
                if self.has_independent() {
                    self.become_each()?;
                    let context = Context::everywhere();
                    return self.read_apart(&context, (memory, place), Sizes::Scalar(bytes), done);
                }
                self.at = At::Uniform {
                    position,
                    is_ended: true,
                };
                return Ok(Counts::Uniform(done as u64));
            }
            let (which, at, n) = self.next_part(position, left, density);
            let segment = self.segment(which);
            let is_nb = which == Which::Nb
                && density == Density::Dense
                && n as u64 == segment.block
                && at.is_multiple_of(segment.block);
            match is_nb {
                true => self.statistics.nb += 1,
                false => self.statistics.cb += 1,
            }
            self.read_regular(which, at, (&mut *memory, place), (done, n))?;
            (position, done) = (position + n as u64, done + n);
        }
        self.set_position(position);
        Ok(Counts::Uniform(done as u64))
    }

    /// Reads for every active VP by itself; `skip` bytes of each are read already.
    fn read_apart(
        &mut self,
        context: &Context,
        (memory, place): (&mut [u8], Strides),
        sizes: Sizes<'_>,
        skip: usize,
    ) -> Result<Counts> {
        self.become_each()?;
        self.statistics.ib += 1;
        let mut counts = vec![0; self.emulation.count()];
        let mut run = (0, 0, 0);
        for local in context.active(self.emulation.count()) {
            let (from, most) = (place.of(local) + skip, sizes.of(local) - skip);
            if self.read_buffered(local, &mut memory[from..from + most]) {
                counts[local] = (most + skip) as u64;
                continue;
            }
            let who = self.who_in(&mut run, local);
            let n = self.want(who, memory, from, most)?;
            counts[local] = (n + skip) as u64;
            if self.fetch.is_full() {
                self.run_fetch(memory)?;
            }
        }
        self.run_fetch(memory)?;
        Ok(Counts::Each(counts))
    }

    fn run_fetch(&mut self, memory: &mut [u8]) -> Result<()> {
        let Stream {
            fetch,
            raw,
            pages,
            ib,
            ..
        } = self;
        let none: &mut [u8] = &mut [];
        let buffers = ib.as_mut().map_or(none, |ib| &mut ib.buffers[..]);
        fetch.run(raw, pages, memory, buffers)
    }

    /// Has bytes of one VP come to a place in memory with the next fetch, and counts them as read.
    fn want(&mut self, who: Who, memory: &mut [u8], mut to: usize, bytes: usize) -> Result<usize> {
        let uniform = self.uniform_len();
        let vp = self.vps[who.local];
        let end = uniform + vp.len;
        let n = bytes.min(end.saturating_sub(vp.position) as usize);
        let mut at = vp.position;
        let stop = at + n as u64;
        while at < stop.min(uniform) {
            let (address, left) = self.regular_address(who.number, at);
            let len = left.min(stop - at) as usize;
            self.fetch.want(Piece {
                address,
                len,
                to: To::Variable(to),
            });
            (at, to) = (at + len as u64, to + len);
        }
        let Stream {
            vps,
            ib,
            pages,
            raw,
            fetch,
            ..
        } = self;
        let vp = &mut vps[who.local];
        if let Some(ib) = ib {
            while at < stop {
                let most = (stop - at) as usize;
                let (len, source) = ib.find(raw, pages, who, vp, (at - uniform, most))?;
                match source {
                    Source::Buffer(range) => {
                        // At once: a later block may take the buffer.
                        memory[to..to + len].copy_from_slice(&ib.buffers[range]);
                    }
                    Source::File(address) => fetch.want(Piece {
                        address,
                        len,
                        to: To::Variable(to),
                    }),
                    Source::Load(address, load, wanted) => {
                        fetch.want(Piece {
                            address,
                            len: load.len(),
                            to: To::Buffer(load.start),
                        });
                        fetch.copy_then(wanted, to);
                    }
                }
                (at, to) = (at + len as u64, to + len);
            }
        }
        vp.position = stop;
        vp.flags.is_ended = n < bytes;
        Ok(n)
    }

    /// Reads bytes of one VP where it is; how many there were.
    pub(crate) fn read_vp(&mut self, who: Who, into: &mut [u8]) -> Result<usize> {
        let uniform = self.uniform_len();
        let vp = self.vps[who.local];
        let end = uniform + vp.len;
        let n = into.len().min(end.saturating_sub(vp.position) as usize);
        let (mut at, mut rest) = (vp.position, &mut into[..n]);
        while at < uniform && !rest.is_empty() {
            let (address, left) = self.regular_address(who.number, at);
            let len = rest.len().min(left as usize);
            let (now, later) = rest.split_at_mut(len);
            self.pages.read(&self.raw, address, now)?;
            (at, rest) = (at + len as u64, later);
        }
        let Stream {
            vps,
            ib,
            pages,
            raw,
            ..
        } = self;
        let vp = &mut vps[who.local];
        if let (Some(ib), false) = (ib, rest.is_empty()) {
            ib.read(raw, pages, who, vp, (at - uniform, rest))?;
        }
        vp.position += n as u64;
        vp.flags.is_ended = n < into.len();
        Ok(n)
    }
}
