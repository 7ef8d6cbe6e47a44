//! Accesses noticed by mprotect and SIGSEGV, for hosts that forbid userfaultfd.
//!
//! The handler runs in the thread that touched the page. It does nothing but note the fault in a slot, write that into a socket and wait on the slot: protocol work is for the
//! thread that reads the socket. Faults elsewhere get the action that was there before. A system call on a page that is not there fails
//! with `EFAULT`, and a mapping has a limit of pages with different permissions (`vm.max_map_count`).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use rustix::io::Result;
use rustix::mm::{MprotectFlags, mprotect};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::region::PAGE_BYTES;
use crate::page::{Access, Permission};

/// Mappings of one process.
const MAPPINGS: usize = 16;
/// Threads of one process that may wait at a time.
const SLOTS: usize = 256;

/// Kinds of accesses in what the handler writes.
const LOADS: usize = 1;
const STORES: usize = 2;

const FREE: u32 = 0;
const WAITS: u32 = 1;
const GOES_ON: u32 = 2;
const IN_VAIN: u32 = 3;

/// A mapping as the handler sees it.
struct Entry {
    start: AtomicUsize,
    len: AtomicUsize,
    writer: AtomicI32,
}

static ENTRIES: [Entry; MAPPINGS] = [const {
    Entry {
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        writer: AtomicI32::new(-1),
    }
}; MAPPINGS];
static STATES: [AtomicU32; SLOTS] = [const { AtomicU32::new(FREE) }; SLOTS];
static TAKEN: Mutex<()> = Mutex::new(());
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// One mapping whose faults come here.
#[derive(Debug)]
pub(super) struct Protection {
    entry: usize,
    start: usize,
    reader: OwnedFd,
    _writer: OwnedFd,
}

impl Protection {
    pub(super) fn new(start: usize, len: usize) -> Result<Protection> {
        let (reader, writer) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let _taken = TAKEN
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let free = ENTRIES
            .iter()
            .position(|entry| entry.len.load(Ordering::Acquire) == 0);
        let entry = free.ok_or(rustix::io::Errno::NFILE)?;
        ENTRIES[entry].start.store(start, Ordering::Relaxed);
        ENTRIES[entry]
            .writer
            .store(writer.as_raw_fd(), Ordering::Relaxed);
        ENTRIES[entry].len.store(len, Ordering::Release);
        install();
        Ok(Protection {
            entry,
            start,
            reader,
            _writer: writer,
        })
    }

    /// Readable when a thread waits.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Accesses that wait: slot, page and kind if it is known. Called when the descriptor is readable.
    pub(super) fn faults(&self, allows: impl Fn(u32) -> Permission) -> Vec<(u32, u32, Access)> {
        let mut bytes = [0; 16 * 16];
        let len = rustix::io::read(&self.reader, &mut bytes).unwrap_or(0);
        let number = |bytes: &[u8]| usize::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let fault = |bytes: &[u8]| {
            let page = ((number(&bytes[8..]) - self.start) / PAGE_BYTES) as u32;
            let kind = match number(&bytes[..8]) >> 32 {
                LOADS => Access::Read,
                STORES => Access::Write,
                // A store to a page that allowed nothing is told so by its second fault.
                _ if allows(page) == Permission::Nothing => Access::Read,
                _ => Access::Write,
            };
            (number(&bytes[..8]) as u32, page, kind)
        };
        bytes[..len].chunks_exact(16).map(fault).collect()
    }

    pub(super) fn allow(&self, address: usize, what: Permission) {
        let flags = match what {
            Permission::Nothing => MprotectFlags::empty(),
            Permission::Reading => MprotectFlags::READ,
            Permission::Writing => MprotectFlags::READ | MprotectFlags::WRITE,
        };
        let place = std::ptr::without_provenance_mut(address);
        // SAFETY: a page of this mapping, which nothing accesses but through raw pointers, and whose faults are handled here.
        let outcome = unsafe { mprotect(place, PAGE_BYTES, flags) };
        outcome
            .expect("mprotect: more pages with different permissions than vm.max_map_count allows");
    }

    pub(super) fn wake(&self, slot: usize) {
        finish(slot, GOES_ON);
    }

    pub(super) fn poison(&self, slot: usize) {
        finish(slot, IN_VAIN);
    }
}

impl Drop for Protection {
    fn drop(&mut self) {
        ENTRIES[self.entry].len.store(0, Ordering::Release);
    }
}

fn finish(slot: usize, state: u32) {
    STATES[slot].store(state, Ordering::Release);
    // SAFETY: wakes who waits on a static word.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            STATES[slot].as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
}

fn install() {
    BEFORE.get_or_init(|| {
        // SAFETY: an action is plain data, for which zeros are valid.
        let (mut action, mut before): (libc::sigaction, libc::sigaction) =
            unsafe { std::mem::zeroed() };
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        // SAFETY: both structures live here; the handler calls nothing that a handler may not call.
        let outcome = unsafe { libc::sigaction(libc::SIGSEGV, &action, &mut before) };
        assert_eq!(outcome, 0, "a handler for SIGSEGV");
        before
    });
}

/// Notes the fault and waits, if it is in a mapping of ours; otherwise the action before is put back, and meets the fault again.
extern "C" fn handle(_signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid structure with the address of the fault.
    let address = unsafe { (*info).si_addr() } as usize;
    // SAFETY: the location of this thread's errno, which the interrupted code may still want.
    let (errno, kept) = unsafe { (libc::__errno_location(), *libc::__errno_location()) };
    let is_inside = |entry: &&Entry| {
        let len = entry.len.load(Ordering::Acquire);
        len > 0 && address.wrapping_sub(entry.start.load(Ordering::Relaxed)) < len
    };
    let Some(entry) = ENTRIES.iter().find(is_inside) else {
        return put_back();
    };
    let slot = loop {
        let free = (0..SLOTS).find(|slot| {
            let taken =
                STATES[*slot].compare_exchange(FREE, WAITS, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        });
        if let Some(slot) = free {
            break slot;
        }
        // SAFETY: gives the processor to the threads that hold the slots.
        unsafe { libc::sched_yield() };
    };
    let mut message = [0; 16];
    message[..8].copy_from_slice(&(slot | kind_of(context) << 32).to_le_bytes());
    message[8..].copy_from_slice(&address.to_le_bytes());
    // SAFETY: 16 bytes of this frame into a socket of ours, which has room for those of all slots.
    unsafe {
        libc::write(
            entry.writer.load(Ordering::Relaxed),
            message.as_ptr().cast(),
            message.len(),
        )
    };
    let state = &STATES[slot];
    while state.load(Ordering::Acquire) == WAITS {
        // SAFETY: waits on a static word while it says that the fault is not served.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                state.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                WAITS,
                std::ptr::null::<libc::timespec>(),
            )
        };
    }
    let is_served = state.swap(FREE, Ordering::AcqRel) == GOES_ON;
    // SAFETY: as read above.
    unsafe { *errno = kept };
    if !is_served {
        put_back();
    }
}

/// What the processor says the access was, where it says so.
#[cfg(target_arch = "x86_64")]
fn kind_of(context: *mut libc::c_void) -> usize {
    // SAFETY: the kernel gives a valid context of the interrupted thread.
    let error =
        unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
    if error & 2 == 0 { LOADS } else { STORES }
}

/// What the processor says the access was, where it says so.
#[cfg(not(target_arch = "x86_64"))]
fn kind_of(_context: *mut libc::c_void) -> usize {
    0
}

fn put_back() {
    if let Some(before) = BEFORE.get() {
        // SAFETY: the action that was there before, as the kernel gave it.
        unsafe { libc::sigaction(libc::SIGSEGV, before, std::ptr::null_mut()) };
    }
}
