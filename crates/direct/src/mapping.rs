//! A shared mapping of a sealed memfd, or of a file of one user's processes, and atomics in it.
//!
//! Invariants: the file has the length of the mapping for as long as it lives (sealed by its maker,
//! checked by the process that receives it), so no access to the mapping can fault; every atomic handed out
//! lies inside and is aligned.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64};

use kernels::{MapFor, SharedBytes};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::Advice;

/// What every shared file of Pario is sealed with.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// A mapped memfd.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    is_writable: bool,
    /// The process that has it: a child does not.
    pid: u32,
}

// SAFETY: the mapping is memory owned by this value until drop; it is used through atomics and raw
// copies only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all of a file, which must have `len` bytes for ever.
    pub(crate) fn new(file: BorrowedFd<'_>, len: u64, is_writable: bool) -> io::Result<Mapping> {
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
        let seals = rustix::fs::fcntl_get_seals(file)
            .map_err(|_| invalid("the descriptor is not a memory file"))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(invalid(
                "the shared memory could be cut off under its users",
            ));
        }
        let stat = rustix::fs::fstat(file)?;
        if len == 0 || u64::try_from(stat.st_size).ok() != Some(len) {
            return Err(invalid(
                "the shared memory has another length than was said",
            ));
        }
        Mapping::map(file, len, is_writable)
    }

    /// Maps a file of `len` bytes whose users trust each other not to cut it off.
    pub(crate) fn map(file: BorrowedFd<'_>, len: u64, is_writable: bool) -> io::Result<Mapping> {
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
        let len = usize::try_from(len).map_err(|_| invalid("too long for this machine"))?;
        let wanted = match is_writable {
            true => MapFor::Writing,
            false => MapFor::Reading,
        };
        let base = kernels::map_shared(file, len, wanted)?;
        // A child shares nothing: it is refused by a server that asks who it is, and must not hold memory.
        // SAFETY: the advice changes what a fork copies, not what is here.
        let _ = unsafe { rustix::mm::madvise(base.as_ptr().cast(), len, Advice::LinuxDontFork) };
        Ok(Mapping {
            base,
            len,
            is_writable,
            pid: std::process::id(),
        })
    }

    /// A new sealed file of `len` zero bytes that only its owner may open, and its mapping.
    pub(crate) fn create(name: &std::ffi::CStr, len: u64) -> io::Result<(OwnedFd, Mapping)> {
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::ftruncate(&file, len)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        let mapping = Mapping::new(file.as_fd(), len, true)?;
        Ok((file, mapping))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// The address of a range inside.
    pub(crate) fn address(&self, at: usize, len: usize) -> NonNull<u8> {
        let inside = at.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(inside, "range {at}+{len} outside {} shared bytes", self.len);
        // SAFETY: the range was found inside the mapping.
        unsafe { self.base.add(at) }
    }

    /// An atomic at a byte that is a multiple of 8.
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8));
        let address = self.address(at, 8);
        // SAFETY: inside the mapping, aligned (mappings begin at a page), and accessed as an atomic by
        // everybody. A read-only mapping is only loaded from: writers are in types of the server.
        unsafe { &*address.as_ptr().cast::<AtomicU64>() }
    }

    /// A word of 32 bits.
    pub(crate) fn half_word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4));
        let address = self.address(at, 4);
        // SAFETY: as for `word`.
        unsafe { &*address.as_ptr().cast::<AtomicU32>() }
    }

    /// Whether the page of a byte is mapped by this process. Where the kernel does not say, it is taken to be.
    pub(crate) fn is_present(&self, at: usize) -> bool {
        static PAGES: OnceLock<Option<OwnedFd>> = OnceLock::new();
        const PRESENT: u64 = 1 << 63;
        let open = || {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            rustix::fs::open("/proc/self/pagemap", flags, Mode::empty()).ok()
        };
        let Some(pages) = PAGES.get_or_init(open) else {
            return true;
        };
        // SAFETY: asks for a number.
        let page_bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
        let page = self.address(at, 1).as_ptr() as usize / page_bytes.unwrap_or(4096);
        let mut entry = [0; 8];
        match rustix::io::pread(pages, &mut entry, page as u64 * 8) {
            Ok(8) => u64::from_ne_bytes(entry) & PRESENT != 0,
            _ => true,
        }
    }

    /// Tells the kernel about a range; failure is of no consequence to what is stored.
    pub(crate) fn advise(&self, at: usize, len: usize, advice: Advice) -> io::Result<()> {
        let address = self.address(at, len);
        // SAFETY: the range is inside our mapping; the advices used here change no bytes.
        unsafe { rustix::mm::madvise(address.as_ptr().cast(), len, advice) }.map_err(Into::into)
    }
}

/// Reads a byte of every page, so that what is not in memory comes before a copy has to wait for it.
pub(crate) fn touch(bytes: SharedBytes<'_>) {
    const STEP: usize = 4096;
    for at in (0..bytes.len()).step_by(STEP) {
        // SAFETY: inside the bytes, which can be read, as their maker promises.
        unsafe { bytes.as_ptr().add(at).read_volatile() };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if std::process::id() != self.pid {
            // In a child something else may be there by now.
            return;
        }
        // SAFETY: the mapping is ours alone and nothing borrowed from it is left.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A second descriptor of a memory file that allows reading only. Another user cannot open it again
/// for writing, because the mode forbids it.
pub(crate) fn read_only(file: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use rustix::mm::{MapFlags, ProtFlags};

    use super::*;

    /// The range is free in a child, and the child may have put something else there.
    #[test]
    fn a_child_that_drops_a_mapping_keeps_what_it_has_mapped_since() {
        let (_file, mapping) = Mapping::create(c"test", 1 << 16).unwrap();
        let (base, len) = (mapping.base.as_ptr().cast(), mapping.len);
        // SAFETY: the child makes system calls only, allocates nothing and ends with `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: refused if something is mapped there.
            let own = unsafe { rustix::mm::mmap_anonymous(base, len, protection, flags) };
            drop(mapping);
            // SAFETY: an unmapped range is an error of the call.
            let is_there = unsafe { libc::msync(base, len, libc::MS_ASYNC) } == 0;
            let code = match (own, is_there) {
                (Err(_), _) => 2,
                (Ok(_), false) => 1,
                (Ok(_), true) => 0,
            };
            // SAFETY: nothing of the parent is run.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        assert_eq!(libc::WEXITSTATUS(status), 0);
    }
}
