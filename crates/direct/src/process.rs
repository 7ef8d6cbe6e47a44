//! Whether this is still the process that it was: a forked child is another one.
//!
//! A page that the kernel wipes in a child answers with one load, where asking for the process
//! number is a system call.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

const PAGE_BYTES: usize = 4096;

/// The process that made it.
#[derive(Debug)]
pub struct Process {
    /// A page of its own; `None` where the kernel cannot wipe it.
    page: Option<NonNull<AtomicU64>>,
    pid: u32,
}

// SAFETY: the page holds one atomic and belongs to this value.
unsafe impl Send for Process {}
// SAFETY: as above.
unsafe impl Sync for Process {}

impl Process {
    /// The calling process.
    pub fn this() -> Process {
        let pid = std::process::id();
        Process {
            page: wiped_in_children(),
            pid,
        }
    }

    /// A process that is not this one, as a child holds its parent's.
    pub fn another() -> Process {
        Process {
            page: None,
            pid: std::os::unix::process::parent_id(),
        }
    }

    /// Whether the caller is that process, not a child of it.
    #[inline]
    pub fn is_this(&self) -> bool {
        match self.page {
            // SAFETY: the page is mapped until drop and accessed as an atomic only.
            Some(page) => unsafe { page.as_ref() }.load(Ordering::Relaxed) == 1,
            None => std::process::id() == self.pid,
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

fn wiped_in_children() -> Option<NonNull<AtomicU64>> {
    // SAFETY: a new anonymous mapping touches no existing memory.
    let page = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            PAGE_BYTES,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }
    .ok()?;
    // SAFETY: the whole of our own mapping.
    let wiped = unsafe { rustix::mm::madvise(page, PAGE_BYTES, Advice::LinuxWipeOnFork) };
    let word = NonNull::new(page.cast::<AtomicU64>())?;
    if wiped.is_err() {
        // SAFETY: made above, used by nobody.
        let _ = unsafe { rustix::mm::munmap(page, PAGE_BYTES) };
        return None;
    }
    // SAFETY: mapped, aligned, zero.
    unsafe { word.as_ref() }.store(1, Ordering::Relaxed);
    Some(word)
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(page) = self.page {
            // SAFETY: the mapping is ours and nothing borrowed from it is left.
            let _ = unsafe { rustix::mm::munmap(page.as_ptr().cast(), PAGE_BYTES) };
        }
    }
}
