//! Accesses noticed by userfaultfd: the thread that touches a page waits in the kernel, and a thread of ours is told.
//!
//! The mapping of a memory file is registered for pages that are missing, present but not mapped, and write-protected. A page is made accessible by mapping it from the file
//! (`CONTINUE`), read-only in one step where only reading is allowed. Numbers and structures are those of the kernel's `userfaultfd.h`.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result, read};
use rustix::mm::{Advice, UserfaultfdFlags, madvise, userfaultfd};

use super::region::PAGE_BYTES;
use crate::page::{Access, Permission};

const API: u64 = 0xc018_aa3f;
const REGISTER: u64 = 0xc020_aa00;
const WAKE: u64 = 0x8010_aa02;
const WRITE_PROTECT: u64 = 0xc018_aa06;
const CONTINUE: u64 = 0xc020_aa07;
const POISON: u64 = 0xc020_aa08;

/// Write protection, on shared memory too; missing and unmapped pages of shared memory; poison.
const FEATURES: u64 = 1 | 1 << 5 | 1 << 10 | 1 << 12 | 1 << 14;
/// Missing, write-protected, present but not mapped.
const MODES: u64 = 1 | 2 | 4;
const EVENT_BYTES: usize = 32;
const FAULT: u8 = 0x12;

/// The descriptor.
#[derive(Debug)]
pub(super) struct Userfault {
    fd: OwnedFd,
    start: usize,
    len: usize,
}

impl Userfault {
    pub(super) fn new(start: usize, len: usize) -> Result<Userfault> {
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
        // SAFETY: the descriptor is kept here and used for the given mapping only.
        let fd = unsafe { userfaultfd(flags) }.or_else(|_| {
            // Without the right to see faults of the kernel: only user code may touch missing pages then.
            // SAFETY: as above.
            unsafe { userfaultfd(flags | UserfaultfdFlags::from_bits_retain(1)) }
        })?;
        let userfault = Userfault { fd, start, len };
        userfault.call(API, &mut [0xaa, FEATURES, 0])?;
        userfault.call(REGISTER, &mut [start as u64, len as u64, MODES, 0])?;
        Ok(userfault)
    }

    /// Readable when a thread waits.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn call(&self, number: u64, arguments: &mut [u64]) -> Result<()> {
        // SAFETY: each number goes with as many values as its structure has, all of 64 bits, and concerns the registered mapping only.
        let outcome =
            unsafe { libc::ioctl(self.fd.as_raw_fd(), number as _, arguments.as_mut_ptr()) };
        if outcome == -1 {
            return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
        }
        Ok(())
    }

    /// Accesses that wait: page and kind.
    pub(super) fn faults(&self) -> Vec<(u32, Access)> {
        let mut events = [0; EVENT_BYTES * 16];
        let len = read(&self.fd, &mut events).unwrap_or(0);
        let faults = events[..len]
            .chunks_exact(EVENT_BYTES)
            .filter(|event| event[0] == FAULT);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let fault = |event: &[u8]| {
            let (flags, address) = (number(&event[8..16]), number(&event[16..24]));
            let kind = if flags & 3 == 0 {
                Access::Read
            } else {
                Access::Write
            };
            let page = (address as usize - self.start) / PAGE_BYTES;
            (page as u32, kind)
        };
        faults.map(fault).collect()
    }

    /// Changes what a page allows.
    pub(super) fn allow(&self, address: usize, before: Permission, what: Permission) {
        let (address, len) = (address as u64, PAGE_BYTES as u64);
        let outcome = match (before, what) {
            (_, Permission::Nothing) => {
                assert!(
                    address as usize + PAGE_BYTES <= self.start + self.len,
                    "a page of another mapping"
                );
                let place = std::ptr::without_provenance_mut(address as usize);
                // SAFETY: a page of the registered mapping, which is shared: its contents stay in the memory file.
                unsafe { madvise(place, PAGE_BYTES, Advice::LinuxDontNeed) }
            }
            (Permission::Nothing, Permission::Reading) => {
                self.call(CONTINUE, &mut [address, len, 2, 0])
            }
            (Permission::Nothing, Permission::Writing) => {
                self.call(CONTINUE, &mut [address, len, 0, 0])
            }
            (_, Permission::Reading) => self.call(WRITE_PROTECT, &mut [address, len, 1]),
            (_, Permission::Writing) => self.call(WRITE_PROTECT, &mut [address, len, 0]),
        };
        // A page that is mapped already has the permission it was mapped with, and threads are woken in any case.
        assert!(
            matches!(outcome, Ok(()) | Err(Errno::EXIST)),
            "userfaultfd refuses {what:?} at {address:#x}: {outcome:?}"
        );
    }

    pub(super) fn wake(&self, address: usize) {
        self.call(WAKE, &mut [address as u64, PAGE_BYTES as u64])
            .expect("waking threads of a registered page");
    }

    /// A thread that touches the page gets SIGBUS; on kernels without poison it faults again.
    pub(super) fn poison(&self, address: usize) {
        if self
            .call(POISON, &mut [address as u64, PAGE_BYTES as u64, 0, 0])
            .is_err()
        {
            self.wake(address);
        }
    }
}
