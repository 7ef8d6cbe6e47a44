//! One memfd of fixed virtual size, sealed at birth and mapped once: the only unsafe code here.
//!
//! Invariants
//! - The length never changes (`F_SEAL_SHRINK`, `F_SEAL_GROW`, `F_SEAL_SEAL`), so the mapping stays
//!   valid for as long as the segment lives, also when a client has the descriptor.
//! - Mode is 0600: a memfd is born 0777, and a descriptor that was passed read-only could be
//!   reopened for writing by another user.
//! - No reference to the mapped bytes is ever formed, except to atomic words; they are copied through raw pointers, since
//!   other processes may write them at any time.
//!
//! Space is committed before anybody touches it, so running out of memory
//! is an error code here and never a signal in the process that stores first. Space is given back by
//! `punch`; the address range stays.
//!
//! Measured (microseconds per MiB of small pages, one thread, best of three, Linux 6.18, 2 cores of an AMD EPYC; the sizes of steps
//! from 64 KiB to 64 MiB differ by less than the noise): to commit new pages `fallocate` 220 to 260, `MADV_POPULATE_WRITE` 620 to 740, touching
//! 530. `fallocate` neither clears nor maps. A client that then stores through the descriptor clears nothing
//! either: 79 to 107, so both together cost what `pwrite` of new pages costs on tmpfs, 285 to 331, and only the
//! smaller part is on the path of the write. Storing through a mapping of pages that were only committed costs 415 to 530, of
//! pages that were cleared 120 to 140, of pages that are mapped 35 to 55. Zeroing warm memory costs 11, punching 155.
//!
//! With large pages (`shmem_enabled` is `advise`): `MADV_POPULATE_WRITE` of whole chunks 37, mapping them in the client 1, a copy 33;
//! `fallocate` does not ask for large pages, and costs what it did. With `always` `fallocate` costs 1 and `pwrite` 35.
//!
//! Where the host gives none by itself (`never`, the usual), the kernel still joins the pages of a chunk to a large one when it is asked to
//! (`MADV_COLLAPSE`, since 6.1), also if only one of them is there: 63 to 71 for a chunk without memory, cleared and mapped, where small pages cost
//! 590 to 600 in the same run. Mapping it in the client costs 1 (115 to 120), a first copy through a new mapping 60 to 70 (320 to 350), punching it 3 (180).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use kernels::{MapFor, SharedBytes, SharedBytesMut};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::Advice;

use crate::error::{Error, Result};

/// A mapped, sealed memfd.
#[derive(Debug)]
pub struct Segment {
    id: u64,
    fd: OwnedFd,
    base: NonNull<u8>,
    len: u64,
    pages: Pages,
}

/// Ranges from so many bytes on are mapped as a whole before they are zeroed.
const MAPPED_FIRST: u64 = 64 << 10;

/// The length of a segment is for ever.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// A large page, where the host allows them.
const HUGE: u64 = 2 << 20;

/// Inside the first page of a chunk, however large pages are.
const FIRST_PAGE: u64 = 4096;

/// The pages that a segment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Of the usual size.
    Small,
    /// Large ones, which the host gives to those who ask, as far as it has them.
    Huge,
    /// Large ones, which the kernel joins for this process where the host gives none, as far as it can.
    Joined,
}

/// What the host says about large pages of shared memory.
const SHMEM_ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

impl Pages {
    /// Large ones if the host gives them to shared memory that asks for them, or the kernel joins small ones.
    pub fn of_host() -> Pages {
        static OF_HOST: OnceLock<Pages> = OnceLock::new();
        *OF_HOST.get_or_init(|| {
            let said = std::fs::read_to_string(SHMEM_ENABLED).unwrap_or_default();
            match Pages::of_setting(&said) {
                Pages::Small if Pages::can_be_joined() => Pages::Joined,
                pages => pages,
            }
        })
    }

    /// Whether they are large, as far as possible.
    pub fn are_large(self) -> bool {
        self != Pages::Small
    }

    /// Tries it. A kernel that is short of large pages at this moment may refuse once.
    fn can_be_joined() -> bool {
        let joins = |_| {
            let segment = Segment::new(0, HUGE, Pages::Joined);
            segment.is_ok_and(|segment| segment.join(0, HUGE).is_ok())
        };
        (0..3).any(joins)
    }

    /// What a setting like `always within_size [advise] never deny force` means.
    fn of_setting(said: &str) -> Pages {
        let chosen = said.split('[').nth(1).and_then(|s| s.split(']').next());
        match chosen {
            Some("always" | "within_size" | "advise" | "force") => Pages::Huge,
            _ => Pages::Small,
        }
    }
}

// SAFETY: the mapping is plain memory owned by this value until drop; all access goes through raw
// pointer copies that are allowed to race with other processes anyway.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// A new segment of `len` bytes of address space and no memory.
    pub(crate) fn new(id: u64, len: u64, pages: Pages) -> Result<Self> {
        let failed = |doing| {
            move |e: rustix::io::Errno| Error::Io {
                doing,
                source: e.into(),
            }
        };
        let fd = rustix::fs::memfd_create(
            c"pario-segment",
            MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
        )
        .map_err(failed("creating a segment"))?;
        rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)
            .map_err(failed("restricting a segment"))?;
        rustix::fs::ftruncate(&fd, len).map_err(failed("sizing a segment"))?;
        rustix::fs::fcntl_add_seals(&fd, SEALS).map_err(failed("sealing a segment"))?;
        Segment::map(id, fd, len, pages)
    }

    /// A segment that another process has made, or this one before. Its length must be sealed: nobody may take memory
    /// away that is mapped here.
    pub(crate) fn adopt(id: u64, fd: OwnedFd, pages: Pages) -> Result<Self> {
        let refuse = |why: &str| Error::Format {
            name: format!("segment {id}"),
            why: why.to_owned(),
        };
        let stat =
            rustix::fs::fstat(&fd).map_err(|e| Error::io("looking at a segment", e.into(), 0))?;
        // Only memfds know seals.
        let seals = rustix::fs::fcntl_get_seals(&fd)
            .map_err(|_| refuse("is no memory that can be sealed"))?;
        if !seals.contains(SEALS) {
            return Err(refuse("is not sealed: its length could change"));
        }
        match u64::try_from(stat.st_size) {
            Ok(len) if len > 0 => Segment::map(id, fd, len, pages),
            _ => Err(refuse("has no length")),
        }
    }

    fn map(id: u64, fd: OwnedFd, len: u64, pages: Pages) -> Result<Self> {
        let mapped = kernels::map_shared(fd.as_fd(), size(len), MapFor::Writing);
        let base = mapped.map_err(|source| Error::Io {
            doing: "mapping a segment",
            source,
        })?;
        if pages == Pages::Huge {
            let at = base.as_ptr().cast();
            // A host that has none after all gives small ones.
            // SAFETY: the range is the new mapping; the advice changes no bytes.
            let _ = unsafe { rustix::mm::madvise(at, size(len), Advice::LinuxHugepage) };
        }
        Ok(Segment {
            id,
            fd,
            base,
            len,
            pages,
        })
    }

    /// Its number, unique within the pool.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Bytes of address space.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never: a segment has address space.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The descriptor, for those who may write.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A descriptor of its own that allows reading only. Other users cannot reopen it for writing,
    /// because the mode forbids it.
    pub fn read_only_descriptor(&self) -> Result<OwnedFd> {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|e| {
            Error::Io {
                doing: "reopening a segment for reading",
                source: e.into(),
            }
        })
    }

    /// Commits memory for a range, so that touching it can no longer fail; what had none is zero. Which pages it has: whole chunks that
    /// have no memory get large ones, which are mapped here then.
    pub(crate) fn commit(&self, at: u64, len: u64) -> std::io::Result<Pages> {
        let is_whole = at.is_multiple_of(HUGE) && len.is_multiple_of(HUGE);
        match self.pages {
            Pages::Huge if is_whole => {
                // By way of the mapping: only there the kernel knows that large pages are wanted.
                match self.populate(at, len) {
                    // Kernels before 5.14 do not know the advice.
                    Err(rustix::io::Errno::INVAL) => {}
                    done => return Ok(done.map(|()| self.pages)?),
                }
            }
            Pages::Joined if is_whole => {
                // Where the kernel has no large page left, small ones do.
                let mut chunks = (at..at + len).step_by(size(HUGE));
                if chunks.all(|chunk| self.join(chunk, HUGE).is_ok()) {
                    return Ok(self.pages);
                }
            }
            _ => {}
        }
        rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), at, len)?;
        Ok(Pages::Small)
    }

    /// Has the kernel make a large page of a chunk. It needs one page to begin with.
    fn join(&self, at: u64, len: u64) -> std::io::Result<()> {
        self.populate(at, FIRST_PAGE)?;
        let start = self.address(at, len);
        // SAFETY: the range is inside our mapping, and joining its pages changes no bytes.
        match unsafe { libc::madvise(start.as_ptr().cast(), size(len), libc::MADV_COLLAPSE) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    /// Gives a range memory that is zero, and maps it.
    fn populate(&self, at: u64, len: u64) -> rustix::io::Result<()> {
        let (start, advice) = (self.address(at, len), Advice::LinuxPopulateWrite);
        // SAFETY: the range is inside our mapping, and populating changes no bytes.
        unsafe { rustix::mm::madvise(start.as_ptr().cast(), size(len), advice) }
    }

    /// Clears and maps what was committed, so that others map it for little.
    pub(crate) fn clear(&self, at: u64, len: u64) {
        // Where the kernel does not know the advice, pages are cleared when they are touched.
        let _ = self.populate(at, len);
    }

    /// Gives the memory of a range back; it reads as zeros afterwards.
    pub(crate) fn punch(&self, at: u64, len: u64) -> std::io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.fd, flags, at, len).map_err(Into::into)
    }

    /// Sets a range to zero.
    pub(crate) fn zero(&self, at: u64, len: u64) {
        let start = self.address(at, len);
        if len >= MAPPED_FIRST {
            // Pages that only clients have used so far come one by one otherwise. Where the kernel does not know the
            // advice, they do.
            // SAFETY: the range is inside our mapping, and populating changes no bytes.
            let _ = unsafe {
                let advice = Advice::LinuxPopulateRead;
                rustix::mm::madvise(start.as_ptr().cast(), size(len), advice)
            };
        }
        // SAFETY: the range is inside our mapping, which is writable for our whole life.
        unsafe { std::ptr::write_bytes(start.as_ptr(), 0, size(len)) }
    }

    /// Copies `source` into the segment.
    pub(crate) fn copy_in(&self, at: u64, source: &[u8]) {
        let start = self.address(at, source.len() as u64);
        // SAFETY: the range is inside our mapping, and no slice of safe code lies in it.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), start.as_ptr(), source.len()) }
    }

    /// Copies bytes of the segment out.
    pub(crate) fn copy_out(&self, at: u64, target: &mut [u8]) {
        let start = self.address(at, target.len() as u64);
        // SAFETY: the range is inside our mapping, and no slice of safe code lies in it.
        unsafe { std::ptr::copy_nonoverlapping(start.as_ptr(), target.as_mut_ptr(), target.len()) }
    }

    /// Stores a word, after everything that was stored before it.
    pub(crate) fn publish(&self, at: u64, word: u64) {
        self.word(at).store(word.to_le(), Ordering::Release);
    }

    /// Loads a word, and sees everything that was stored before it.
    pub(crate) fn look(&self, at: u64) -> u64 {
        u64::from_le(self.word(at).load(Ordering::Acquire))
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        assert!(at.is_multiple_of(8), "a word at {at}");
        let start = self.address(at, 8);
        // SAFETY: inside our mapping, which outlives the borrow; aligned, since the mapping is to pages; an atomic may be
        // changed by others.
        unsafe { AtomicU64::from_ptr(start.as_ptr().cast()) }
    }

    /// Copies a range of a segment, this one or another, to a range of the same length that does not
    /// overlap it.
    pub(crate) fn copy_within_process(&self, at: u64, other: &Segment, other_at: u64, len: u64) {
        let target = self.address(at, len);
        let source = other.address(other_at, len);
        // SAFETY: both ranges are inside mappings that live, and no slice of safe code lies in them. They
        // do not overlap: extents do not. Another process may store meanwhile; the copy is a mixture then.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), target.as_ptr(), size(len)) }
    }

    /// A range to copy from with the kernels.
    pub(crate) fn bytes(&self, at: u64, len: u64) -> SharedBytes<'_> {
        let start = self.address(at, len);
        // SAFETY: the range is inside our mapping, which outlives the borrow of `self`. A client that
        // copies overlapping ranges at once, here or in another process, gets a mixture of bytes.
        unsafe { SharedBytes::new(start.as_ptr(), size(len)) }
    }

    /// A range to copy into with the kernels.
    pub(crate) fn bytes_mut(&self, at: u64, len: u64) -> SharedBytesMut<'_> {
        let start = self.address(at, len);
        // SAFETY: as for `bytes`; no reference to the memory exists, so none is aliased.
        unsafe { SharedBytesMut::new(start.as_ptr(), size(len)) }
    }

    fn address(&self, at: u64, len: u64) -> NonNull<u8> {
        let inside = at.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(inside, "range {at}+{len} outside segment of {}", self.len);
        // SAFETY: the range was found inside the mapping.
        unsafe { self.base.add(size(at)) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone and nothing borrowed from `self` is left. Failure
        // leaves address space mapped, which harms nobody.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), size(self.len)) };
    }
}

/// Lengths inside one address space fit a pointer; `kernels` refuses to build where they do not.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).expect("64-bit addresses")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_is_sealed_private_and_gives_memory_back() {
        let segment = Segment::new(3, 4 << 20, Pages::Small).unwrap();
        let stat = rustix::fs::fstat(segment.descriptor()).unwrap();
        assert_eq!(stat.st_mode & 0o777, 0o600);
        let seals = rustix::fs::fcntl_get_seals(segment.descriptor()).unwrap();
        assert_eq!(seals, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL);
        let memory = || rustix::fs::fstat(segment.descriptor()).unwrap().st_blocks * 512;
        assert_eq!(memory(), 0, "address space without memory");
        segment.commit(1 << 20, 1 << 16).unwrap();
        assert_eq!(memory(), 1 << 16);
        segment.copy_in(1 << 20, b"abc");
        let mut found = [0; 3];
        segment.copy_out(1 << 20, &mut found);
        assert_eq!(&found, b"abc");
        segment.punch(1 << 20, 1 << 16).unwrap();
        assert_eq!(memory(), 0);
        segment.copy_out(1 << 20, &mut found);
        assert_eq!(found, [0; 3]);
    }

    #[test]
    #[should_panic(expected = "outside segment")]
    fn range_outside_is_a_bug() {
        Segment::new(0, 2 << 20, Pages::Small)
            .unwrap()
            .zero(2 << 20, 1);
    }

    #[test]
    fn large_pages_are_taken_where_the_host_gives_them_to_who_asks() {
        let of = Pages::of_setting;
        assert_eq!(
            of("always within_size advise [never] deny force\n"),
            Pages::Small
        );
        assert_eq!(
            of("always within_size [advise] never deny force\n"),
            Pages::Huge
        );
        assert_eq!(
            of("[always] within_size advise never deny force\n"),
            Pages::Huge
        );
        assert_eq!(
            of("always within_size advise never [deny] force\n"),
            Pages::Small
        );
        assert_eq!(of(""), Pages::Small);
    }

    /// Large pages that are mapped into processes at all, of shared memory, as the kernel counts them.
    fn large_pages_of(segment: &Segment) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let start = format!("{:x}-", segment.base.as_ptr() as usize);
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&start));
        let found = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:"));
        let kibibytes = found.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kibibytes.unwrap_or(0) * 1024 / HUGE
    }

    #[test]
    fn pages_are_joined_where_the_kernel_can_and_are_zero() {
        let segment = Segment::new(0, 4 * HUGE, Pages::Joined).unwrap();
        // What it says is what the kernel counts, also where that joins none.
        let large = match segment.commit(HUGE, 2 * HUGE).unwrap() {
            Pages::Small => 0,
            _ => 2,
        };
        assert_eq!(large_pages_of(&segment), large);
        let mut bytes = vec![1; 2 * size(HUGE)];
        segment.copy_out(HUGE, &mut bytes);
        assert!(bytes.iter().all(|&byte| byte == 0));
        segment.copy_in(HUGE + 5, &[7; 100]);
        // A part of one that is given back is zero, and the rest is as it was.
        segment.copy_in(2 * HUGE - 4096, &[9; 4096]);
        segment.punch(HUGE + (1 << 20), 64 << 10).unwrap();
        segment.copy_out(HUGE, &mut bytes);
        assert!(bytes[5..105].iter().all(|&byte| byte == 7));
        assert!(
            bytes[size(HUGE) - 4096..size(HUGE)]
                .iter()
                .all(|&byte| byte == 9)
        );
        // What has no whole chunk gets small ones.
        assert_eq!(segment.commit(0, 64 << 10).unwrap(), Pages::Small);
        assert_eq!(segment.commit(64 << 10, HUGE).unwrap(), Pages::Small);
    }
}
