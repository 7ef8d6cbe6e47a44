//! A segment of a server, mapped by a client once and kept.
//!
//! A page is mapped before its first use, with its whole unit at once. Which units were is remembered, so a warm access costs a load.
//!
//! *Scarce* memory is the exception: the server had none ready and has only committed it, so its pages are neither cleared nor mapped
//! by anybody. It is first stored into, as a run, through the descriptor: the kernel copies without clearing and maps nothing. Long
//! runs go on that way, reads too, until that has cost as much as mapping would have; then it is mapped.
//!
//! Measured (microseconds per MiB, 1 MiB at a time, Linux 6.18, 2 cores of an AMD EPYC; `examples/first_touch.rs`):
//!
//! | | committed only | ready | mapped |
//! |---|---|---|---|
//! | stored through the descriptor | 79 to 107 | 114 | 71 to 85 |
//! | stored through the mapping | 415 to 530 | 120 to 140 | 35 to 55 |
//! | read through the descriptor, the mapping | | 75, 107 | 75, 32 |
//! | for comparison: `pwrite` of new pages on tmpfs | 285 to 331 | | |
//!
//! With 4 KiB at a time: stored through the descriptor 133, the mapping 200 where pages are ready, tmpfs 373. To map pages that are there,
//! `MADV_POPULATE_READ` costs 64 to 118 (84 to 123 in steps of 64 KiB), `MADV_POPULATE_WRITE` 185 (240), page by page 238, `MAP_POPULATE` 80:
//! a fault for reading maps the pages around it, and where the file is memory it maps them for writing too.
//!
//! Invariants
//! - A range is handed out only from inside the mapping. Which ranges may be touched, and
//!   when, is said by maps and claims, not here.
//! - Both ways reach the same pages. Which is taken changes the cost only.
//! - A process whose files may not be long stores through the mapping: the kernel would end it otherwise.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use kernels::{SharedBytes, SharedBytesMut};
use rustix::mm::Advice;
use rustix::process::{Resource, getrlimit};

use crate::mapping::{self, Mapping};

/// Bytes that are made ready at a time; the smallest extent.
pub const UNIT_BYTES: u64 = 64 << 10;

/// Units that are made ready at a time where they follow one that is.
const UNITS_AHEAD: u64 = 4;
/// Bytes of a unit that are remembered as used through the descriptor or not.
const PAGE: u64 = UNIT_BYTES / u16::BITS as u64;
/// Shorter runs are mapped when they are used for the second time.
const SHORT: u64 = 16 << 10;
/// Scarce memory is mapped after so many uses of a page through the descriptor: a use costs 40 more than a copy, mapping 118.
const MOST_USES: u32 = 3;
/// Parts of the word of a unit: pages used lately, how often all of it was, and whether it is scarce.
const ONE_USE: u32 = 1 << 16;
const USES: u32 = 0xff << 16;
const SCARCE: u32 = 1 << 31;
/// Descriptors of segments that a process keeps; what it opens itself must find room.
const MOST_DESCRIPTORS: usize = 128;

static DESCRIPTORS: AtomicUsize = AtomicUsize::new(0);

/// A mapped segment.
#[derive(Debug)]
pub struct MappedSegment {
    mapping: Mapping,
    /// To use pages that are not mapped; not for reading only, which scarce memory is not handed out for.
    file: Option<KeptFile>,
    /// One bit per unit that was made ready.
    ready: Box<[AtomicU64]>,
    /// A word per unit: what was done to it through the descriptor.
    used: Words,
    touches: Arc<Touches>,
}

/// A word for each of many units, of which few are ever set: memory comes with the first one near it.
#[derive(Debug)]
struct Words(Box<[OnceLock<Box<[AtomicU32]>>]>);

/// Units whose words come together.
const WORDS: u64 = 256;

impl Words {
    fn new(units: u64) -> Words {
        Words(
            (0..units.div_ceil(WORDS))
                .map(|_| OnceLock::new())
                .collect(),
        )
    }

    fn load(&self, unit: u64) -> u32 {
        let near = self.0[(unit / WORDS) as usize].get();
        near.map_or(0, |near| {
            near[(unit % WORDS) as usize].load(Ordering::Relaxed)
        })
    }

    fn store(&self, unit: u64, word: u32) {
        let near = &self.0[(unit / WORDS) as usize];
        if word == 0 && near.get().is_none() {
            return;
        }
        let near = near.get_or_init(|| (0..WORDS).map(|_| AtomicU32::new(0)).collect());
        near[(unit % WORDS) as usize].store(word, Ordering::Relaxed);
    }
}

/// What a run is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Bytes are stored into it.
    Store,
    /// Bytes are read from it.
    Load,
}

/// A run of a segment that is used.
#[derive(Clone, Copy, Debug)]
struct Run {
    at: u64,
    len: u64,
    use_: Use,
}

/// A descriptor that is counted.
#[derive(Debug)]
struct KeptFile(OwnedFd);

impl Drop for KeptFile {
    fn drop(&mut self) {
        DESCRIPTORS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts what is done at first touches of segments.
#[derive(Debug, Default)]
pub struct Touches {
    populated: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
}

impl Touches {
    /// What was done so far.
    pub fn counts(&self) -> TouchCounts {
        TouchCounts {
            populate_calls: self.populated.load(Ordering::Relaxed),
            written_bytes: self.written.load(Ordering::Relaxed),
            read_bytes: self.read.load(Ordering::Relaxed),
        }
    }
}

/// What was done at first touches of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TouchCounts {
    /// Calls that mapped units.
    pub populate_calls: u64,
    /// Bytes stored through the descriptor.
    pub written_bytes: u64,
    /// Bytes read through it.
    pub read_bytes: u64,
}

impl MappedSegment {
    /// Maps what the server sent.
    pub fn map(file: BorrowedFd<'_>, len: u64, is_writable: bool) -> io::Result<MappedSegment> {
        MappedSegment::map_counted(file, len, is_writable, Arc::default())
    }

    /// Maps what the server sent, and counts together with other segments.
    pub fn map_counted(
        file: BorrowedFd<'_>,
        len: u64,
        is_writable: bool,
        touches: Arc<Touches>,
    ) -> io::Result<MappedSegment> {
        let longest = getrlimit(Resource::Fsize).current;
        let mut segment = MappedSegment::map_where(file, len, is_writable, longest)?;
        segment.touches = touches;
        Ok(segment)
    }

    /// Maps where files may be so long.
    fn map_where(
        file: BorrowedFd<'_>,
        len: u64,
        is_writable: bool,
        longest: Option<u64>,
    ) -> io::Result<MappedSegment> {
        let mapping = Mapping::new(file, len, is_writable)?;
        let units = len.div_ceil(UNIT_BYTES);
        let may_write = is_writable && longest.is_none_or(|longest| len <= longest);
        Ok(MappedSegment {
            mapping,
            file: may_write.then(|| keep(file)).flatten(),
            ready: (0..units.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            used: Words::new(units),
            touches: Arc::default(),
        })
    }

    /// Bytes of address space.
    pub fn len(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// Never: a segment has address space.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether it may be stored into.
    pub fn is_writable(&self) -> bool {
        self.mapping.is_writable()
    }

    /// Whether a range lies inside.
    pub fn holds(&self, at: u64, len: u64) -> bool {
        at.checked_add(len).is_some_and(|end| end <= self.len())
    }

    /// Maps the pages of a range that were not used yet. A range that is ready costs a load per unit.
    #[inline]
    pub fn make_ready(&self, at: u64, len: u64) {
        self.make_ready_within(at, len, at..at + len);
    }

    /// Maps the pages of a range that were not used yet; some behind it too, as far as `known` reaches, if those
    /// before it are in use already. All of `known` must have memory.
    #[inline]
    pub fn make_ready_within(&self, at: u64, len: u64, known: Range<u64>) {
        debug_assert!(self.holds(at, len));
        for unit in units(at, len) {
            if !self.is_ready(unit) {
                return self.make_rest_ready(unit..units(at, len).end, known);
            }
        }
    }

    /// Prepares [`MappedSegment::store`] or [`MappedSegment::load`] of a run: what of it goes through the mapping is mapped.
    #[inline]
    pub fn prepare_run(&self, at: u64, len: u64, known: Range<u64>, use_: Use) {
        debug_assert!(self.holds(at, len));
        for unit in units(at, len) {
            if !self.is_ready(unit) {
                return self.prepare_rest(Run { at, len, use_ }, known);
            }
        }
    }

    #[cold]
    fn prepare_rest(&self, run: Run, known: Range<u64>) {
        let Range { mut start, end } = units(run.at, run.len);
        while start < end {
            let next = self.same_way(start, run);
            if !self.goes_by_file(start, run) {
                self.make_rest_ready(start..next, known.clone());
            }
            start = next;
        }
    }

    /// Stores a run. False if the kernel has refused, and then anything may have been stored.
    #[inline]
    #[must_use]
    pub fn store(&self, at: u64, source: SharedBytes<'_>) -> bool {
        let len = source.len() as u64;
        for unit in units(at, len) {
            if !self.is_ready(unit) {
                return self.store_parts(at, source);
            }
        }
        self.bytes_mut(at, len).copy_from(source);
        true
    }

    #[cold]
    fn store_parts(&self, at: u64, source: SharedBytes<'_>) -> bool {
        let len = source.len() as u64;
        let run = Run {
            at,
            len,
            use_: Use::Store,
        };
        self.each_part(run, |by_file, from, to| {
            let part = source.range((from - at) as usize..(to - at) as usize);
            let part = part.expect("a part of it");
            match by_file {
                true => self.write(from, part),
                false => {
                    self.bytes_mut(from, to - from).copy_from(part);
                    true
                }
            }
        })
    }

    /// Reads a run. False if the kernel has refused.
    #[inline]
    #[must_use]
    pub fn load(&self, at: u64, target: SharedBytesMut<'_>) -> bool {
        let len = target.len() as u64;
        for unit in units(at, len) {
            if !self.is_ready(unit) {
                return self.load_parts(at, target);
            }
        }
        target.copy_from(self.bytes(at, len));
        true
    }

    #[cold]
    fn load_parts(&self, at: u64, mut target: SharedBytesMut<'_>) -> bool {
        let run = Run {
            at,
            len: target.len() as u64,
            use_: Use::Load,
        };
        self.each_part(run, |by_file, from, to| {
            let part = target.reborrow();
            let part = part.range((from - at) as usize..(to - at) as usize);
            let part = part.expect("a part of it");
            match by_file {
                true => self.read(from, part),
                false => {
                    part.copy_from(self.bytes(from, to - from));
                    true
                }
            }
        })
    }

    /// Hands out the parts of a run that go the same way, ascending; false when `take` says so.
    fn each_part(&self, run: Run, mut take: impl FnMut(bool, u64, u64) -> bool) -> bool {
        let (mut from, end) = (run.at, run.at + run.len);
        while from < end {
            let unit = from / UNIT_BYTES;
            let by_file = self.goes_by_file(unit, run);
            let next = self.same_way(unit, run);
            let to = end.min(next * UNIT_BYTES);
            if !take(by_file, from, to) {
                return false;
            }
            if by_file {
                (unit..next).for_each(|unit| self.note_use(unit, run));
            }
            from = to;
        }
        true
    }

    /// The first unit behind one that does not go the same way, or is behind the run.
    fn same_way(&self, unit: u64, run: Run) -> u64 {
        let by_file = self.goes_by_file(unit, run);
        let end = units(run.at, run.len).end;
        let mut rest = unit + 1..end;
        rest.find(|unit| self.goes_by_file(*unit, run) != by_file)
            .unwrap_or(end)
    }

    /// Writes through the descriptor.
    fn write(&self, mut at: u64, source: SharedBytes<'_>) -> bool {
        let Some(KeptFile(file)) = &self.file else {
            return false;
        };
        // Outside of the call: others that write to the segment wait for it, and should not for a disk.
        mapping::touch(source);
        let mut left = source;
        while !left.is_empty() {
            // SAFETY: the maker of the bytes promises that they can be read; the kernel copes if not.
            let written = unsafe {
                let bytes = left.as_ptr().cast();
                libc::pwrite(file.as_raw_fd(), bytes, left.len(), at as libc::off_t)
            };
            let Some(written) = moved(written) else {
                return false;
            };
            self.touches
                .written
                .fetch_add(written as u64, Ordering::Relaxed);
            at += written as u64;
            left = left.range(written..left.len()).expect("the rest");
        }
        true
    }

    /// Reads through the descriptor.
    fn read(&self, mut at: u64, target: SharedBytesMut<'_>) -> bool {
        let Some(KeptFile(file)) = &self.file else {
            return false;
        };
        let mut left = target;
        while !left.is_empty() {
            let len = left.len();
            // SAFETY: the maker of the bytes promises that they can be stored into; the kernel copes if not.
            let read = unsafe {
                let bytes = left.as_mut_ptr().cast();
                libc::pread(file.as_raw_fd(), bytes, len, at as libc::off_t)
            };
            let Some(read) = moved(read) else {
                return false;
            };
            self.touches.read.fetch_add(read as u64, Ordering::Relaxed);
            at += read as u64;
            left = left.range(read..len).expect("the rest");
        }
        true
    }

    /// Takes note of a range that comes in a map for writing. Units whose pages this process does not have any more
    /// count as new: the server has given their memory back since. New ones are scarce, if the server says so.
    pub fn note_map(&self, at: u64, len: u64, is_scarce: bool) {
        debug_assert!(self.holds(at, len));
        for unit in units(at, len) {
            let was_used = self.is_ready(unit);
            if was_used && !self.mapping.is_present((unit * UNIT_BYTES) as usize) {
                self.ready[(unit / 64) as usize].fetch_and(!(1 << (unit % 64)), Ordering::Relaxed);
                self.used.store(unit, 0);
            }
            if is_scarce && !self.is_ready(unit) {
                self.used.store(unit, SCARCE);
            }
        }
    }

    #[inline]
    fn is_ready(&self, unit: u64) -> bool {
        let word = self.ready[(unit / 64) as usize].load(Ordering::Relaxed);
        word & (1 << (unit % 64)) != 0
    }

    /// Whether the part of a run in a unit goes through the descriptor.
    fn goes_by_file(&self, unit: u64, run: Run) -> bool {
        let used = self.used.load(unit);
        if self.is_ready(unit) || used & SCARCE == 0 || self.file.is_none() {
            return false;
        }
        let is_first = used & pages(unit, run.at, run.len) == 0;
        match run.len < SHORT {
            true => is_first && run.use_ == Use::Store,
            false => is_first || used & USES < (MOST_USES - 1) * ONE_USE,
        }
    }

    /// Remembers a use through the descriptor. Pages that were used before begin a new round.
    fn note_use(&self, unit: u64, run: Run) {
        let pages = pages(unit, run.at, run.len);
        let used = self.used.load(unit);
        let now = match used & pages {
            0 => used | pages,
            _ => ((used & (USES | SCARCE)) + ONE_USE) | pages,
        };
        // Threads that are here at once lose a use, which costs nothing.
        self.used.store(unit, now);
    }

    /// Makes units ready, and some behind them.
    #[cold]
    fn make_rest_ready(&self, wanted: Range<u64>, known: Range<u64>) {
        let follows = wanted.start > 0 && self.is_ready(wanted.start - 1);
        // Whole units that are known; those at its ends are wanted, or not touched.
        let ahead = match follows {
            true => (wanted.start + UNITS_AHEAD).min(known.end / UNIT_BYTES),
            false => wanted.end,
        };
        let end = wanted.end.max(ahead);
        let mut unit = wanted.start;
        while unit < end {
            match self.is_ready(unit) {
                true => unit += 1,
                false => unit = self.make_ready_from(unit, end),
            }
        }
    }

    /// Makes the next units ready up to one that is; where it stopped.
    fn make_ready_from(&self, first: u64, end: u64) -> u64 {
        let next = (first..end)
            .find(|unit| self.is_ready(*unit))
            .unwrap_or(end);
        let at = first * UNIT_BYTES;
        let len = (next * UNIT_BYTES).min(self.len()) - at;
        // Pages of memory files that are mapped to be read can be written too, if the mapping can. Where the
        // kernel does not know the advice, the pages come one by one.
        let advice = Advice::LinuxPopulateRead;
        let _ = self.mapping.advise(at as usize, len as usize, advice);
        self.touches.populated.fetch_add(1, Ordering::Relaxed);
        for unit in first..next {
            self.ready[(unit / 64) as usize].fetch_or(1 << (unit % 64), Ordering::Relaxed);
        }
        next
    }

    /// A range to copy from.
    ///
    /// # Panics
    /// If it is not inside.
    #[inline]
    pub fn bytes(&self, at: u64, len: u64) -> SharedBytes<'_> {
        let address = self.mapping.address(at as usize, len as usize);
        // SAFETY: the range is inside the mapping, which outlives the borrow. A thread that copies
        // overlapping ranges at once, here or in another process, gets a mixture of bytes.
        unsafe { SharedBytes::new(address.as_ptr(), len as usize) }
    }

    /// A range to copy into.
    ///
    /// # Panics
    /// If it is not inside, or the segment is mapped for reading only.
    #[inline]
    pub fn bytes_mut(&self, at: u64, len: u64) -> SharedBytesMut<'_> {
        assert!(self.is_writable(), "mapped for reading only");
        let address = self.mapping.address(at as usize, len as usize);
        // SAFETY: as for `bytes`; no reference to the memory exists, so none is aliased.
        unsafe { SharedBytesMut::new(address.as_ptr(), len as usize) }
    }
}

/// A descriptor of our own, if the process has not too many.
fn keep(file: BorrowedFd<'_>) -> Option<KeptFile> {
    let count = DESCRIPTORS.fetch_add(1, Ordering::Relaxed);
    let kept = match count < MOST_DESCRIPTORS {
        true => file.try_clone_to_owned().ok(),
        false => None,
    };
    if kept.is_none() {
        DESCRIPTORS.fetch_sub(1, Ordering::Relaxed);
    }
    kept.map(KeptFile)
}

/// Units that a range meets.
#[inline]
fn units(at: u64, len: u64) -> Range<u64> {
    at / UNIT_BYTES..(at + len).div_ceil(UNIT_BYTES)
}

/// Pages of a unit that a range meets, a bit each.
fn pages(unit: u64, at: u64, len: u64) -> u32 {
    let base = unit * UNIT_BYTES;
    let first = at.saturating_sub(base) / PAGE;
    let end = (at + len - base).min(UNIT_BYTES).div_ceil(PAGE);
    let below = |page: u64| (1u32 << page) - 1;
    below(end) & !below(first)
}

/// What a call of the kernel says that it has moved; `None` if it has failed.
fn moved(result: isize) -> Option<usize> {
    match usize::try_from(result) {
        Ok(0) => None,
        Ok(moved) => Some(moved),
        Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Some(0),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::FallocateFlags;

    use super::*;

    const LEN: u64 = 4 << 20;

    struct Server {
        file: OwnedFd,
    }

    impl Server {
        /// Has committed all of it.
        fn new() -> Server {
            let (file, _) = Mapping::create(c"test", LEN).unwrap();
            let server = Server { file };
            server.commit(0, LEN);
            server
        }

        fn commit(&self, at: u64, len: u64) {
            rustix::fs::fallocate(&self.file, FallocateFlags::empty(), at, len).unwrap();
        }

        fn punch(&self, at: u64, len: u64) {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(&self.file, flags, at, len).unwrap();
        }

        fn map(&self) -> MappedSegment {
            MappedSegment::map_where(self.file.as_fd(), LEN, true, None).unwrap()
        }

        fn read(&self, at: u64, len: u64) -> Vec<u8> {
            let mut bytes = vec![1; len as usize];
            rustix::io::pread(&self.file, &mut bytes, at).unwrap();
            bytes
        }
    }

    fn store(segment: &MappedSegment, at: u64, bytes: &[u8]) {
        segment.prepare_run(at, bytes.len() as u64, 0..LEN, Use::Store);
        assert!(segment.store(at, bytes.into()));
    }

    fn load(segment: &MappedSegment, at: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![1; len as usize];
        segment.prepare_run(at, len, 0..LEN, Use::Load);
        assert!(segment.load(at, (&mut bytes[..]).into()));
        bytes
    }

    /// A segment that has come with a map.
    fn scarce(server: &Server) -> MappedSegment {
        let segment = server.map();
        segment.note_map(0, LEN, true);
        segment
    }

    #[test]
    fn memory_that_is_ready_is_mapped_at_once_and_then_never_again() {
        let server = Server::new();
        let segment = server.map();
        segment.note_map(0, LEN, false);
        for round in 1..4 {
            store(&segment, 0, &vec![round; 1 << 20]);
            assert!(load(&segment, 0, 1 << 20) == vec![round; 1 << 20]);
        }
        let counts = segment.touches.counts();
        assert_eq!((counts.populate_calls, counts.written_bytes), (1, 0));
        assert!(server.read(0, 1 << 20) == vec![3; 1 << 20]);
    }

    #[test]
    fn scarce_memory_is_first_used_through_the_descriptor_and_maps_nothing() {
        let server = Server::new();
        let segment = scarce(&server);
        let bytes = vec![7; (1 << 20) + 100];
        store(&segment, 12345, &bytes);
        let counts = segment.touches.counts();
        assert_eq!(counts.written_bytes, bytes.len() as u64);
        assert_eq!(counts.populate_calls, 0);
        assert_eq!(server.read(12345, bytes.len() as u64), bytes);
        assert_eq!(server.read(0, 12345), vec![0; 12345]);
    }

    #[test]
    fn scarce_memory_that_is_used_often_is_mapped() {
        let server = Server::new();
        let segment = scarce(&server);
        let len = 128 << 10;
        store(&segment, 0, &vec![1; len]);
        assert_eq!(load(&segment, 0, len as u64), vec![1; len]);
        store(&segment, 0, &vec![2; len]);
        let rent = segment.touches.counts();
        assert_eq!(rent.populate_calls, 0);
        assert_eq!(
            (rent.written_bytes, rent.read_bytes),
            (2 * len as u64, len as u64)
        );
        for round in 3..6 {
            store(&segment, 0, &vec![round; len]);
            assert_eq!(load(&segment, 0, len as u64), vec![round; len]);
        }
        let bought = segment.touches.counts();
        assert_eq!(bought.populate_calls, 1);
        assert_eq!(bought.written_bytes, rent.written_bytes);
        assert_eq!(server.read(0, len as u64), vec![5; len]);
    }

    #[test]
    fn short_runs_of_scarce_memory_are_mapped_when_they_come_again() {
        let server = Server::new();
        let segment = scarce(&server);
        for at in (0..256 << 10).step_by(4096) {
            store(&segment, at, &[at as u8 | 1; 4096]);
        }
        let counts = segment.touches.counts();
        assert_eq!(
            (counts.written_bytes, counts.populate_calls),
            (256 << 10, 0)
        );
        store(&segment, 0, &[9; 100]);
        assert_eq!(segment.touches.counts().populate_calls, 1);
        // Two runs that meet in a page: the second one is not the first there.
        store(&segment, 1 << 20, &[5; 5000]);
        store(&segment, (1 << 20) + 5000, &[6; 5000]);
        assert_eq!(segment.touches.counts().populate_calls, 2);
        assert_eq!(server.read((1 << 20) + 4998, 4), [5, 5, 6, 6]);
    }

    #[test]
    fn a_run_over_units_of_both_kinds_is_used_as_a_whole() {
        let server = Server::new();
        let segment = scarce(&server);
        segment.make_ready(2 * UNIT_BYTES, UNIT_BYTES);
        let bytes: Vec<u8> = (0..6 * UNIT_BYTES).map(|i| (i % 251) as u8).collect();
        store(&segment, 100, &bytes);
        assert_eq!(server.read(100, bytes.len() as u64), bytes);
        assert_eq!(segment.touches.counts().written_bytes, 5 * UNIT_BYTES);
        assert_eq!(load(&segment, 100, bytes.len() as u64), bytes);
        assert_eq!(segment.touches.counts().read_bytes, 5 * UNIT_BYTES);
    }

    #[test]
    fn memory_that_was_given_back_is_new_again() {
        let server = Server::new();
        let segment = server.map();
        let two = 2 * UNIT_BYTES;
        store(&segment, 0, &vec![1; two as usize]);
        let before = segment.touches.counts();
        segment.note_map(0, two, true);
        store(&segment, 0, &vec![3; two as usize]);
        assert_eq!(segment.touches.counts(), before, "it is still there");
        server.punch(0, UNIT_BYTES);
        server.commit(0, UNIT_BYTES);
        segment.note_map(0, two, true);
        store(&segment, 0, &vec![4; two as usize]);
        let after = segment.touches.counts();
        assert_eq!(after.written_bytes, UNIT_BYTES);
        assert_eq!(after.populate_calls, before.populate_calls);
        server.punch(UNIT_BYTES, UNIT_BYTES);
        server.commit(UNIT_BYTES, UNIT_BYTES);
        segment.note_map(0, two, false);
        store(&segment, UNIT_BYTES, &vec![5; UNIT_BYTES as usize]);
        let end = segment.touches.counts();
        assert_eq!(end.populate_calls, after.populate_calls + 1);
        assert_eq!(server.read(0, UNIT_BYTES), vec![4; UNIT_BYTES as usize]);
    }

    #[test]
    fn units_that_follow_are_mapped_together_and_none_behind_what_is_known() {
        let server = Server::new();
        server.punch(0, LEN);
        server.commit(0, 6 * UNIT_BYTES);
        let segment = server.map();
        let known = 0..6 * UNIT_BYTES;
        for unit in 0..6 {
            segment.make_ready_within(unit * UNIT_BYTES, 1, known.clone());
        }
        let counts = segment.touches.counts();
        assert_eq!(counts.populate_calls, 3, "1, 4 and 1 units");
        let memory = rustix::fs::fstat(&server.file).unwrap().st_blocks as u64 * 512;
        assert_eq!(memory, 6 * UNIT_BYTES, "nothing was brought into being");
    }

    #[test]
    fn a_process_whose_files_are_limited_stores_through_the_mapping() {
        let server = Server::new();
        let map = |longest| {
            let file = server.file.as_fd();
            let segment = MappedSegment::map_where(file, LEN, true, Some(longest)).unwrap();
            segment.note_map(0, LEN, true);
            segment
        };
        let segment = map(LEN - 1);
        store(&segment, 0, &[1; 8192]);
        assert_eq!(segment.touches.counts().written_bytes, 0);
        assert_eq!(server.read(0, 8192), [1; 8192]);
        let segment = map(LEN);
        store(&segment, 8192, &[1; 8192]);
        assert_eq!(segment.touches.counts().written_bytes, 8192);
    }

    #[test]
    fn pages_of_a_unit_are_those_that_a_range_meets() {
        assert_eq!(pages(0, 0, UNIT_BYTES), 0xffff);
        assert_eq!(pages(0, 0, 1), 1);
        assert_eq!(pages(0, 4095, 2), 0b11);
        assert_eq!(pages(1, 0, 2 * UNIT_BYTES), 0xffff);
        assert_eq!(pages(1, UNIT_BYTES + 8192, 4096), 0b100);
        assert_eq!(pages(0, UNIT_BYTES - 1, 2), 1 << 15);
    }
}
