//! One memory file, mapped twice: where the program loads and stores, and where the protocol does.
//!
//! The mapping of the program allows what the protocol says, page by page; the other allows everything. So contents of a page that may not be
//! touched stay, and are patched, sent and compared without a fault.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::protection::Protection;
use super::userfault::Userfault;
use crate::page::{PageMemory, Permission};

/// Bytes of a page of real memory.
pub const PAGE_BYTES: usize = 4096;

/// How accesses of the program are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// By userfaultfd, in a thread; system calls may use the memory.
    Userfault,
    /// By mprotect and SIGSEGV, for hosts that forbid the former; system calls on pages that are not there fail with `EFAULT`.
    Protection,
    /// By the calls that load and store. No page is ever protected.
    Software,
}

/// What enforces permissions.
#[derive(Debug)]
pub(super) enum Guard {
    Userfault(Userfault),
    Protection(Protection),
    Software,
}

/// The two mappings.
#[derive(Debug)]
pub(super) struct Region {
    program: NonNull<u8>,
    alias: NonNull<u8>,
    len: usize,
    pub(super) guard: Guard,
    _file: OwnedFd,
}

// SAFETY: the pointers are to mappings that live as long as the region, in which bytes are accessed through raw pointers and atomics only.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps so many pages, for the program at an address if one is given.
    pub(super) fn new(
        pages: u32,
        address: Option<usize>,
        backing: Backing,
    ) -> rustix::io::Result<Region> {
        let len = pages as usize * PAGE_BYTES;
        let file = memfd_create("pario-dsm", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, len as u64)?;
        let all = ProtFlags::READ | ProtFlags::WRITE;
        let first = if backing == Backing::Protection {
            ProtFlags::empty()
        } else {
            all
        };
        let (hint, flags) = match address {
            Some(address) => (
                std::ptr::without_provenance_mut(address),
                MapFlags::SHARED | MapFlags::FIXED_NOREPLACE,
            ),
            None => (std::ptr::null_mut(), MapFlags::SHARED),
        };
        // SAFETY: a new mapping; at a fixed address it replaces none.
        let program = unsafe { mmap(hint, len, first, flags, &file, 0) }?;
        // SAFETY: a new mapping at a place the kernel chooses.
        let alias = unsafe { mmap(std::ptr::null_mut(), len, all, MapFlags::SHARED, &file, 0) };
        let mut region = Region {
            program: NonNull::new(program.cast()).ok_or(rustix::io::Errno::NOMEM)?,
            // Dropping the region unmaps what it has; the first mapping twice is no mapping of another's.
            alias: NonNull::new(alias.unwrap_or(program).cast()).ok_or(rustix::io::Errno::NOMEM)?,
            len,
            guard: Guard::Software,
            _file: file,
        };
        alias?;
        let start = region.program.as_ptr() as usize;
        region.guard = match backing {
            Backing::Userfault => Guard::Userfault(Userfault::new(start, len)?),
            Backing::Protection => Guard::Protection(Protection::new(start, len)?),
            Backing::Software => Guard::Software,
        };
        Ok(region)
    }

    /// Where the program accesses a byte: its own mapping, or the other where every access is a call.
    pub(super) fn place(&self, at: usize) -> *mut u8 {
        assert!(
            at < self.len,
            "byte {at} of a shared memory of {} bytes",
            self.len
        );
        let base = if matches!(self.guard, Guard::Software) {
            self.alias
        } else {
            self.program
        };
        base.as_ptr().wrapping_add(at)
    }

    /// Lets threads go on that wait for a page.
    pub(super) fn wake(&self, what: u32) {
        match &self.guard {
            Guard::Userfault(userfault) => userfault.wake(self.address_of(what)),
            Guard::Protection(protection) => protection.wake(what as usize),
            Guard::Software => {}
        }
    }

    /// Ends threads that wait for a page in vain.
    pub(super) fn poison(&self, what: u32) {
        match &self.guard {
            Guard::Userfault(userfault) => userfault.poison(self.address_of(what)),
            Guard::Protection(protection) => protection.poison(what as usize),
            Guard::Software => {}
        }
    }

    fn address_of(&self, page: u32) -> usize {
        self.program.as_ptr() as usize + page as usize * PAGE_BYTES
    }

    fn alias_of(&self, page: u32, at: usize, len: usize) -> *mut u8 {
        let start = page as usize * PAGE_BYTES + at;
        assert!(
            at + len <= PAGE_BYTES && start + len <= self.len,
            "bytes outside of a page"
        );
        self.alias.as_ptr().wrapping_add(start)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // What notices accesses goes before what is accessed.
        self.guard = Guard::Software;
        for start in [self.program, self.alias] {
            // SAFETY: a mapping of this region, which nothing points to any more; unmapping what is unmapped does nothing.
            let _ = unsafe { munmap(start.as_ptr().cast(), self.len) };
        }
    }
}

/// The memory as a machine has it: the region, and what each page allows.
#[derive(Debug)]
pub(super) struct RegionPages {
    pub(super) region: Arc<Region>,
    now: Vec<Permission>,
}

impl RegionPages {
    pub(super) fn new(region: Arc<Region>, pages: u32) -> RegionPages {
        RegionPages {
            region,
            now: vec![Permission::Nothing; pages as usize],
        }
    }

    /// What a page allows.
    pub(super) fn allows(&self, page: u32) -> Permission {
        self.now[page as usize]
    }
}

impl PageMemory for RegionPages {
    fn allow(&mut self, page: u32, what: Permission) {
        let before = std::mem::replace(&mut self.now[page as usize], what);
        if before == what {
            return;
        }
        let address = self.region.address_of(page);
        match &self.region.guard {
            Guard::Userfault(userfault) => {
                if before == Permission::Nothing {
                    // A page is mapped from the memory file, so it has to be there.
                    let place = self.region.alias_of(page, 0, 1);
                    // SAFETY: a byte of the alias, which is always readable.
                    unsafe { place.read_volatile() };
                }
                userfault.allow(address, before, what);
            }
            Guard::Protection(protection) => protection.allow(address, what),
            Guard::Software => {}
        }
    }

    fn copy_out(&mut self, page: u32) -> Vec<u8> {
        let mut copy = vec![0; PAGE_BYTES];
        let place = self.region.alias_of(page, 0, PAGE_BYTES);
        // SAFETY: a page of the alias and as much memory of our own. The program may store into the page meanwhile, through another
        // mapping; bytes it is storing now are in no diff, for diffs are made of protected pages, and no load of a program without races depends on them.
        unsafe { std::ptr::copy_nonoverlapping(place, copy.as_mut_ptr(), PAGE_BYTES) };
        copy
    }

    fn store(&mut self, page: u32, at: usize, bytes: &[u8]) {
        let place = self.region.alias_of(page, at, bytes.len());
        // SAFETY: so many bytes of the alias; no byte beside them is written.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }
}
