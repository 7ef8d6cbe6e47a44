//! Owns [`PageBuffer`]: zeroed memory straight from the system, on pages of a stated size; and
//! [`SharedBuffer`], the same for memory that other processes map too.
//!
//! Page faults are dear (a buffer used once costs about twelve times a reused one on the
//! machines measured) and large strides live or die by the TLB, so whoever pools buffers or
//! measures copies has to say which pages they stand on. Huge pages are a request: the system
//! may refuse, and then small pages serve.
//!
//! Invariants: `len` bytes are valid and initialised until drop. A page buffer is private and its
//! start aligned to 2 MiB; a shared one is reached through [`SharedBytes`] only.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::ptr::NonNull;

use crate::shared::{SharedBytes, SharedBytesMut};

/// Size and alignment of a huge page.
const HUGE: usize = 2 << 20;

/// What pages a buffer stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The system's base pages, 4 KiB.
    Small,
    /// 2 MiB where the system has them to give.
    Huge,
}

/// Anonymous memory on pages of a stated size.
#[derive(Debug)]
pub struct PageBuffer {
    start: NonNull<u8>,
    len: usize,
    mapping: NonNull<u8>,
    mapped: usize,
}

// SAFETY: the buffer owns its mapping, as a boxed slice owns its allocation.
unsafe impl Send for PageBuffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for PageBuffer {}

impl PageBuffer {
    /// Maps `len` zero bytes. Nothing is touched: pages come with the first access.
    pub fn new(len: usize, pages: Pages) -> io::Result<PageBuffer> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let rounded = len
            .max(1)
            .checked_next_multiple_of(HUGE)
            .ok_or_else(too_large)?;
        let mapped = rounded.checked_add(HUGE).ok_or_else(too_large)?;
        // SAFETY: an anonymous private mapping at an address of the system's choice touches no
        // other memory.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = mapping.cast::<u8>();
        let start = mapping.wrapping_add(mapping.align_offset(HUGE));
        let advice = match pages {
            Pages::Small => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: the range lies in the mapping made above. A refusal leaves small pages.
        unsafe { libc::madvise(start.cast(), rounded, advice) };
        let (Some(start), Some(mapping)) = (NonNull::new(start), NonNull::new(mapping)) else {
            return Err(too_large());
        };
        Ok(PageBuffer {
            start,
            len,
            mapping,
            mapped,
        })
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this buffer's own and nothing borrows it any more.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` are mapped and zero or written since.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// Memory on the system's base pages that other processes of this user can map too, by its
/// path. Programs that are compared on such a buffer stand on the same pages: out of cache, how
/// the system happened to place them is worth a factor of two.
#[derive(Debug)]
pub struct SharedBuffer {
    start: NonNull<u8>,
    len: usize,
    mapped: usize,
    file: File,
}

impl SharedBuffer {
    /// Maps `len` zero bytes. Nothing is touched: pages come with the first access.
    pub fn new(len: usize) -> io::Result<SharedBuffer> {
        let mapped = len.max(1);
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"pario-buffer".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(mapped as u64)?;
        // SAFETY: a mapping at an address of the system's choice touches no other memory; the
        // file is as long as the mapping.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(mapping.cast::<u8>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(SharedBuffer {
            start,
            len,
            mapped,
            file,
        })
    }

    /// Where others find it for as long as it lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// The bytes to read.
    pub fn bytes(&self) -> SharedBytes<'_> {
        // SAFETY: `len` bytes from `start` are mapped as long as the buffer lives; writing from
        // this process needs the buffer to itself.
        unsafe { SharedBytes::new(self.start.as_ptr(), self.len) }
    }

    /// The bytes to write.
    pub fn bytes_mut(&mut self) -> SharedBytesMut<'_> {
        // SAFETY: as above, and the borrow is unique, so no source is in the same buffer.
        unsafe { SharedBytesMut::new(self.start.as_ptr(), self.len) }
    }
}

impl Drop for SharedBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this buffer's own and nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nest, Program, copy_shared};

    #[test]
    fn shared_buffers_are_seen_through_their_path() {
        let mut buffer = SharedBuffer::new(6).expect("mapped");
        let program = Program::compile(&[Nest::block(0, 1, 5).expect("valid")]);
        copy_shared(&program, b"bytes"[..].into(), buffer.bytes_mut()).expect("in bounds");
        assert_eq!(std::fs::read(buffer.path()).expect("read"), b"\0bytes");
        assert_eq!(buffer.bytes().len(), 6);
    }

    #[test]
    fn buffers_are_zeroed_aligned_and_writable() {
        for pages in [Pages::Small, Pages::Huge] {
            for len in [0, 1, 4097, HUGE + 1] {
                let mut buffer = PageBuffer::new(len, pages).expect("mapped");
                assert_eq!(buffer.len(), len);
                assert_eq!(buffer.as_ptr().align_offset(HUGE), 0);
                assert!(buffer.iter().all(|byte| *byte == 0));
                buffer.fill(7);
                assert!(buffer.iter().all(|byte| *byte == 7));
            }
        }
        assert!(PageBuffer::new(usize::MAX, Pages::Small).is_err());
    }
}
