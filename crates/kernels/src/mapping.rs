//! Owns the way in which a file is mapped so that large pages of it can be mapped as such.
//!
//! ```text
//!  reserved  |........|==== the file, from a multiple of 2 MiB on ====|....|     what is left at both ends is given back
//! ```
//!
//! The kernel maps a large page with one fault and one entry where file and address agree in their place within it. Of files in
//! memory it chooses such addresses by itself only where the host gives large pages, so it is told one.
//!
//! Left to others: that the file stays as long as its mapping, and unmapping.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};

/// A large page.
const HUGE: usize = 2 << 20;

/// What a mapping is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapFor {
    /// Stores into it end the process.
    Reading,
    /// Reading and writing.
    Writing,
}

/// Maps the first `len` bytes of a file for all that map it; from 2 MiB on at a multiple of that.
pub fn map_shared(file: BorrowedFd<'_>, len: usize, wanted: MapFor) -> io::Result<NonNull<u8>> {
    let protection = match wanted {
        MapFor::Reading => libc::PROT_READ,
        MapFor::Writing => libc::PROT_READ | libc::PROT_WRITE,
    };
    let map = |at: *mut libc::c_void, flags| {
        // SAFETY: at an address of the system's choice, or in place of a reservation that this call has made and nobody else
        // knows.
        let mapped = unsafe { libc::mmap(at, len, protection, flags, file.as_raw_fd(), 0) };
        taken(mapped)
    };
    if len < HUGE {
        return map(null_mut(), libc::MAP_SHARED);
    }
    let too_long = || io::Error::from(io::ErrorKind::OutOfMemory);
    let reserved = len.checked_add(HUGE).ok_or_else(too_long)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a mapping at an address of the system's choice touches no other memory.
    let reservation = unsafe { libc::mmap(null_mut(), reserved, libc::PROT_NONE, flags, -1, 0) };
    let reservation = taken(reservation)?.as_ptr();
    let ahead = reservation.align_offset(HUGE);
    let start = reservation.wrapping_add(ahead);
    let mapped = map(start.cast(), libc::MAP_SHARED | libc::MAP_FIXED);
    let free = |at: *mut u8, bytes: usize| {
        if bytes > 0 {
            // SAFETY: a part of the reservation that nothing has taken the place of.
            unsafe { libc::munmap(at.cast(), bytes) };
        }
    };
    match mapped {
        Ok(_) => {
            free(reservation, ahead);
            // The file's last page is mapped as a whole.
            let end = start.wrapping_add(len);
            let end = end.wrapping_add(end.align_offset(page_bytes()));
            let left = reservation.wrapping_add(reserved) as usize - end as usize;
            free(end, left);
        }
        Err(_) => free(reservation, reserved),
    }
    mapped
}

fn taken(mapped: *mut libc::c_void) -> io::Result<NonNull<u8>> {
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(mapped.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

fn page_bytes() -> usize {
    // SAFETY: asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    fn file(len: usize) -> File {
        let name = std::env::temp_dir().join(format!("pario-mapping-{}-{len}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&name)
            .unwrap();
        std::fs::remove_file(name).unwrap();
        file.set_len(len as u64).unwrap();
        file
    }

    /// Which ranges are mapped, as the kernel says.
    fn ranges() -> Vec<(usize, usize)> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let range = |line: &str| {
            let (start, end) = line.split_once(' ')?.0.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some((number(start)?, number(end)?))
        };
        maps.lines().filter_map(range).collect()
    }

    #[test]
    fn long_files_begin_at_a_large_page_and_nothing_else_is_kept() {
        for len in [4096, HUGE - 1, HUGE, HUGE + 5000, 5 * HUGE] {
            let file = file(len);
            let start = map_shared(file.as_fd(), len, MapFor::Writing).unwrap();
            let at = start.as_ptr() as usize;
            assert!(len < HUGE || at.is_multiple_of(HUGE), "{len}");
            // SAFETY: the first and the last byte of the mapping.
            unsafe {
                start.as_ptr().write_volatile(1);
                start.as_ptr().add(len - 1).write_volatile(2);
            }
            let end = at + len.next_multiple_of(page_bytes());
            let mapped = ranges();
            assert!(mapped.contains(&(at, end)), "{len}: {mapped:x?}");
            // SAFETY: the mapping made above.
            unsafe { libc::munmap(start.as_ptr().cast(), len) };
            assert!(!ranges().contains(&(at, end)), "{len}");
        }
    }

    #[test]
    fn what_cannot_be_mapped_leaves_nothing() {
        let read_only = File::open("/proc/self/exe").unwrap();
        let before = ranges().len();
        for _ in 0..100 {
            map_shared(read_only.as_fd(), 4 * HUGE, MapFor::Writing).unwrap_err();
        }
        assert!(ranges().len() < before + 50, "reservations are left");
    }
}
