//! Memory of a process that other processes of its user read in place: arrays of programs that are redistributed.
//!
//! The process allocates it as a sealed memory file, and tells others a [`Loan`]: its process number is known to them, the
//! descriptor and the identity of the file are in the telling. They map it for reading through `/proc`, where the kernel
//! lets them, and go another way where it does not.
//!
//! Invariants
//! - An allocation has a number that no other of this process ever has.
//! - What is mapped is the file that was told: its device and number are compared, and its length is sealed.
//! - A mapping that another process has lives on when the allocation goes.
//!
//! Left to others: who reads what, and when nobody reads any more (`assembly`).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use kernels::{SharedBytes, SharedBytesMut};
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use rustix::mm::Advice;

use crate::mapping::Mapping;

/// What a process tells of an address in its common memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loan {
    /// The number of the allocation; 0 if there is none.
    pub(crate) id: u64,
    /// Where the address lies in it.
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) descriptor: u64,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Loan {
    /// Words that it is told in.
    pub(crate) const WORDS: usize = 6;

    pub(crate) fn words(self) -> [u64; Loan::WORDS] {
        [
            self.id,
            self.at,
            self.len,
            self.descriptor,
            self.device,
            self.inode,
        ]
    }

    pub(crate) fn of_words(words: [u64; Loan::WORDS]) -> Loan {
        let [id, at, len, descriptor, device, inode] = words;
        Loan {
            id,
            at,
            len,
            descriptor,
            device,
            inode,
        }
    }

    /// Whether the address is in common memory at all.
    pub fn is_some(&self) -> bool {
        self.id != 0
    }
}

#[derive(Debug)]
struct Common {
    /// Open for as long as others may ask for it.
    _file: OwnedFd,
    mapping: Mapping,
    lent: Loan,
    /// The process that has it: a child has none.
    pid: u32,
}

/// Allocations of this process by address.
static COMMONS: Mutex<BTreeMap<usize, Common>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Allocates zeros. What is returned is valid until [`free_common`].
pub fn allocate_common(len: usize) -> io::Result<NonNull<u8>> {
    let (file, mapping) = Mapping::create(c"pario-common", len.max(1) as u64)?;
    // Fewer pages to find; where the system has none of them nothing changes.
    let _ = mapping.advise(0, mapping.len(), Advice::LinuxHugepage);
    // It is the program's memory: its children see it as they see other shared memory.
    let _ = mapping.advise(0, mapping.len(), Advice::LinuxDoFork);
    let stat = rustix::fs::fstat(&file)?;
    let address = mapping.address(0, 1);
    let lent = Loan {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        at: 0,
        len: mapping.len() as u64,
        descriptor: u64::try_from(file.as_raw_fd()).unwrap_or(u64::MAX),
        device: stat.st_dev,
        inode: stat.st_ino,
    };
    let common = Common {
        _file: file,
        mapping,
        lent,
        pid: std::process::id(),
    };
    COMMONS.lock().insert(address.as_ptr() as usize, common);
    Ok(address)
}

/// Gives memory back; whether it was allocated here and begins there.
pub fn free_common(address: *const u8) -> bool {
    let mut commons = COMMONS.lock();
    let is_there = commons.contains_key(&(address as usize));
    let freed = commons.remove(&(address as usize));
    drop(commons);
    drop(freed);
    is_there
}

/// What to tell of an address; [`Loan::is_some`] says whether it is in common memory.
pub fn lent_at(address: *const u8) -> Loan {
    let address = address as usize;
    let commons = COMMONS.lock();
    let below = commons.range(..=address).next_back();
    let found = below.filter(|(start, common)| {
        address - **start < common.mapping.len() && common.pid == std::process::id()
    });
    match found {
        Some((start, common)) => Loan {
            at: (address - start) as u64,
            ..common.lent
        },
        None => Loan::default(),
    }
}

/// An allocation that lives as long as the value.
#[derive(Debug)]
pub struct CommonBytes {
    address: NonNull<u8>,
    len: usize,
}

// SAFETY: the value is the only way to its memory in this process.
unsafe impl Send for CommonBytes {}

impl CommonBytes {
    /// So many zeros.
    pub fn new(len: usize) -> io::Result<CommonBytes> {
        let address = allocate_common(len)?;
        Ok(CommonBytes { address, len })
    }

    /// All of them.
    pub fn bytes_mut(&mut self) -> SharedBytesMut<'_> {
        // SAFETY: allocated with this length, and lent with the value alone.
        unsafe { SharedBytesMut::new(self.address.as_ptr(), self.len) }
    }
}

impl Drop for CommonBytes {
    fn drop(&mut self) {
        free_common(self.address.as_ptr());
    }
}

/// Memory of another process, mapped for reading.
#[derive(Debug)]
pub(crate) struct BorrowedMemory {
    mapping: Mapping,
}

impl BorrowedMemory {
    /// Maps what process `pid` has told. Refused where the kernel does, and where the descriptor is another file by now.
    pub(crate) fn map(pid: u64, lent: &Loan) -> io::Result<BorrowedMemory> {
        let path = format!("/proc/{pid}/fd/{}", lent.descriptor);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if (stat.st_dev, stat.st_ino) != (lent.device, lent.inode) {
            return Err(io::Error::other("the descriptor is another file by now"));
        }
        let mapping = Mapping::new(file.as_fd(), lent.len, false)?;
        // All pages now, in one call: a fault for each costs more than the copy.
        let _ = mapping.advise(0, mapping.len(), Advice::LinuxPopulateRead);
        Ok(BorrowedMemory { mapping })
    }

    /// What lies from the told address on.
    pub(crate) fn bytes(&self, at: u64) -> SharedBytes<'_> {
        let at = usize::try_from(at).map_or(self.mapping.len(), |at| at.min(self.mapping.len()));
        let len = self.mapping.len() - at;
        let address = self.mapping.address(at, len);
        // SAFETY: inside the mapping, which lives as long as what is returned; the process that has it writes it.
        unsafe { SharedBytes::new(address.as_ptr(), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_its_allocation_until_that_is_freed() {
        let first = allocate_common(10_000).expect("memory");
        let second = allocate_common(5_000).expect("memory");
        let inside = first.as_ptr().wrapping_add(9_999);
        let lent = lent_at(inside);
        assert!(lent.is_some());
        assert_eq!((lent.at, lent.len), (9_999, 10_000));
        assert_eq!(Loan::of_words(lent.words()), lent);
        assert!(!lent_at(first.as_ptr().wrapping_add(10_000)).is_some());
        assert_ne!(lent_at(second.as_ptr()).id, lent.id);
        // SAFETY: allocated above, and used by nobody else.
        unsafe { inside.write(7) };
        let mapped = BorrowedMemory::map(u64::from(std::process::id()), &lent).expect("mapped");
        let mut seen = [0];
        kernels::SharedBytesMut::from_slice(&mut seen).copy_from(mapped.bytes(lent.at));
        assert_eq!(seen, [7]);
        assert!(free_common(first.as_ptr()));
        assert!(!free_common(first.as_ptr()));
        assert!(!lent_at(inside).is_some());
        let gone = BorrowedMemory::map(u64::from(std::process::id()), &lent);
        assert!(gone.is_err(), "its descriptor is closed or another file");
        assert!(free_common(second.as_ptr()));
    }
}
