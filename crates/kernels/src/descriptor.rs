//! Owns transfers between sockets and shared memory: [`receive_exact`] and [`send_all`].
//!
//! Other processes may write shared memory at any time, so it can not be lent to the readers
//! and writers of the standard library, which want slices. The system may write and read it
//! through raw pointers, and takes many places at once.
//!
//! ```text
//!   socket   hhhhaaaaaabbbb      send_all(fd, head h, pieces a and b)
//!            \__/\____/\__/
//!                a      b        receive_exact(fd, targets a and b)
//! ```
//!
//! Invariants: all or an error; an interrupted or partial call of the system goes on where it
//! stopped. No call allocates: places are handed over at most [`BATCH`] at a time. A peer that
//! has gone is an error and never a signal.
//!
//! Left to others: timeouts and modes of sockets. A socket that would block, or whose timeout
//! has passed, is the error that the system says; how much was moved before is then unknown,
//! and the connection of no further use.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::shared::{SharedBytes, SharedBytesMut};

/// Most places handed to the system at once; far below its own limit of 1024.
const BATCH: usize = 64;

/// Where a transfer through a list of places stands.
#[derive(Clone, Copy, Default)]
struct Progress {
    place: usize,
    byte: usize,
}

impl Progress {
    /// Goes on by `bytes` bytes through places of these lengths.
    fn advance(&mut self, mut bytes: usize, len: impl Fn(usize) -> usize) {
        while bytes > 0 {
            let rest = len(self.place) - self.byte;
            if bytes < rest {
                self.byte += bytes;
                return;
            }
            bytes -= rest;
            *self = Progress {
                place: self.place + 1,
                byte: 0,
            };
        }
    }

    /// The next places that have bytes left, `BATCH` at most; their number.
    fn batch(
        mut self,
        places: usize,
        place: impl Fn(usize) -> (*mut u8, usize),
        out: &mut [libc::iovec; BATCH],
    ) -> usize {
        let mut filled = 0;
        while self.place < places && filled < BATCH {
            let (start, len) = place(self.place);
            if len > self.byte {
                out[filled] = libc::iovec {
                    iov_base: start.wrapping_add(self.byte).cast(),
                    iov_len: len - self.byte,
                };
                filled += 1;
            }
            self = Progress {
                place: self.place + 1,
                byte: 0,
            };
        }
        filled
    }
}

/// A place of no bytes.
const NOWHERE: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// A message of these places, without address and ancillary data.
fn message(places: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: the header is numbers and pointers; zero is a value of all of them.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = places.as_mut_ptr();
    header.msg_iovlen = places.len();
    header
}

/// The outcome of a call of the system; 0 bytes if it was interrupted.
fn outcome(moved: isize, at_end: io::ErrorKind) -> io::Result<usize> {
    match usize::try_from(moved) {
        Ok(0) => Err(at_end.into()),
        Ok(bytes) => Ok(bytes),
        Err(_) => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                Ok(0)
            } else {
                Err(error)
            }
        }
    }
}

/// Fills all targets from a stream socket, in order. A peer that closes before that is
/// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof).
///
/// ```
/// use std::io::Write;
/// use std::os::fd::AsFd;
/// use std::os::unix::net::UnixStream;
/// let (mut near, far) = UnixStream::pair()?;
/// near.write_all(b"headbody")?;
/// let (mut head, mut body) = ([0; 4], [0; 4]);
/// let mut targets = [head[..].as_mut().into(), body[..].as_mut().into()];
/// kernels::receive_exact(far.as_fd(), &mut targets)?;
/// assert_eq!((&head, &body), (b"head", b"body"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn receive_exact(fd: BorrowedFd<'_>, targets: &mut [SharedBytesMut<'_>]) -> io::Result<()> {
    receive_after(fd, &[], targets, &mut []).map(drop)
}

/// [`receive_exact`], and a tail behind it, where the first bytes were received `ahead` already; how many of them had room.
///
/// ```
/// use std::io::Write;
/// use std::os::fd::AsFd;
/// use std::os::unix::net::UnixStream;
/// let (mut near, far) = UnixStream::pair()?;
/// near.write_all(b"odytail")?;
/// let (mut head, mut body, mut tail) = ([0; 4], [0; 4], [0; 4]);
/// let mut targets = [head[..].as_mut().into(), body[..].as_mut().into()];
/// assert_eq!(kernels::receive_after(far.as_fd(), b"headb", &mut targets, &mut tail)?, 5);
/// assert_eq!((&head, &body, &tail), (b"head", b"body", b"tail"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn receive_after(
    fd: BorrowedFd<'_>,
    ahead: &[u8],
    targets: &mut [SharedBytesMut<'_>],
    tail: &mut [u8],
) -> io::Result<usize> {
    let tail = (tail.as_mut_ptr(), tail.len());
    let place = |index: usize| match targets.get(index) {
        Some(target) => (target.ptr(), target.len()),
        None => tail,
    };
    let mut batch = [NOWHERE; BATCH];
    let mut progress = Progress::default();
    let mut taken = 0;
    for (start, len) in (0..=targets.len()).map(place) {
        let n = len.min(ahead.len() - taken);
        // SAFETY: n bytes are in both, and a place is borrowed alone, so it is not `ahead`.
        unsafe { start.copy_from_nonoverlapping(ahead[taken..].as_ptr(), n) };
        taken += n;
        if taken == ahead.len() {
            break;
        }
    }
    progress.advance(taken, |index| place(index).1);
    loop {
        let filled = progress.batch(targets.len() + 1, place, &mut batch);
        if filled == 0 {
            return Ok(taken);
        }
        let mut header = message(&mut batch[..filled]);
        // SAFETY: the places are parts of the targets, which their constructors promise to be
        // valid for writes, and of the tail; all are borrowed alone.
        let moved = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, libc::MSG_WAITALL) };
        let bytes = outcome(moved, io::ErrorKind::UnexpectedEof)?;
        progress.advance(bytes, |index| place(index).1);
    }
}

/// Receives what one call of the system gives, from target to target, at most 64 of them: all of them if it waits, else what
/// is there. 0 bytes are the end of the stream.
///
/// ```
/// use std::io::Write;
/// use std::os::fd::AsFd;
/// use std::os::unix::net::UnixStream;
/// let (mut near, far) = UnixStream::pair()?;
/// near.write_all(b"some")?;
/// let (mut first, mut second) = ([0; 3], [0; 8]);
/// let mut targets = [first[..].as_mut().into(), second[..].as_mut().into()];
/// assert_eq!(kernels::receive_part(far.as_fd(), &mut targets, false)?, 4);
/// assert!(kernels::receive_part(far.as_fd(), &mut targets, false).is_err());
/// assert_eq!((&first, &second[..2]), (b"som", &b"e\0"[..]));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn receive_part(
    fd: BorrowedFd<'_>,
    targets: &mut [SharedBytesMut<'_>],
    waits: bool,
) -> io::Result<usize> {
    let flags = match waits {
        true => libc::MSG_WAITALL,
        false => libc::MSG_DONTWAIT,
    };
    let mut batch = [NOWHERE; BATCH];
    let place = |index: usize| (targets[index].ptr(), targets[index].len());
    let filled = Progress::default().batch(targets.len(), place, &mut batch);
    let mut header = message(&mut batch[..filled]);
    // SAFETY: the constructors of the targets promise memory that is valid for writes, and they are borrowed alone.
    let moved = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, flags) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Sends what one call of the system takes of some pieces, at most 64 of them; how many bytes. A peer that has gone is
/// [`BrokenPipe`](io::ErrorKind::BrokenPipe), without a signal.
///
/// ```
/// use std::os::fd::AsFd;
/// use std::os::unix::net::UnixStream;
/// let (near, _far) = UnixStream::pair()?;
/// let pieces = [b"some"[..].into(), b" more"[..].into()];
/// assert_eq!(kernels::send_part(near.as_fd(), &pieces, false)?, 9);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn send_part(fd: BorrowedFd<'_>, pieces: &[SharedBytes<'_>], waits: bool) -> io::Result<usize> {
    let mut batch = [NOWHERE; BATCH];
    let place = |index: usize| (pieces[index].as_ptr().cast_mut(), pieces[index].len());
    let filled = Progress::default().batch(pieces.len(), place, &mut batch);
    let header = message(&mut batch[..filled]);
    let flags = match waits {
        true => libc::MSG_NOSIGNAL,
        false => libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
    };
    // SAFETY: the places are the pieces, valid for reads by their constructors' promise; sending only reads them.
    let moved = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, flags) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Sends all of `head`, then all `pieces`, to a stream socket. A peer that has gone is
/// [`BrokenPipe`](io::ErrorKind::BrokenPipe), without a signal.
///
/// ```
/// use std::io::Read;
/// use std::os::fd::AsFd;
/// use std::os::unix::net::UnixStream;
/// let (near, mut far) = UnixStream::pair()?;
/// kernels::send_all(near.as_fd(), &[b"head"], &[b"body"[..].into()])?;
/// let mut seen = [0; 8];
/// far.read_exact(&mut seen)?;
/// assert_eq!(&seen, b"headbody");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn send_all(fd: BorrowedFd<'_>, head: &[&[u8]], pieces: &[SharedBytes<'_>]) -> io::Result<()> {
    send_all_and(fd, head, pieces, &[])
}

/// [`send_all`], and a tail behind it.
///
/// ```
/// use std::io::Read;
/// use std::os::fd::AsFd;
/// use std::os::unix::net::UnixStream;
/// let (near, mut far) = UnixStream::pair()?;
/// kernels::send_all_and(near.as_fd(), &[b"head"], &[b"body"[..].into()], b"tail")?;
/// let mut seen = [0; 12];
/// far.read_exact(&mut seen)?;
/// assert_eq!(&seen, b"headbodytail");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn send_all_and(
    fd: BorrowedFd<'_>,
    head: &[&[u8]],
    pieces: &[SharedBytes<'_>],
    tail: &[u8],
) -> io::Result<()> {
    let place = |index: usize| match (head.get(index), index.checked_sub(head.len())) {
        (Some(part), _) => (part.as_ptr().cast_mut(), part.len()),
        (None, Some(index)) if index < pieces.len() => {
            let piece = pieces[index];
            (piece.as_ptr().cast_mut(), piece.len())
        }
        _ => (tail.as_ptr().cast_mut(), tail.len()),
    };
    let mut batch = [NOWHERE; BATCH];
    let mut progress = Progress::default();
    loop {
        let filled = progress.batch(head.len() + pieces.len() + 1, place, &mut batch);
        if filled == 0 {
            return Ok(());
        }
        let header = message(&mut batch[..filled]);
        // SAFETY: the places are parts of the head, of the pieces and of the tail, which are valid for reads;
        // the system only reads them.
        let moved = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
        let bytes = outcome(moved, io::ErrorKind::WriteZero)?;
        progress.advance(bytes, |index| place(index).1);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    fn pattern(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|i| ((i + seed) * 31 % 251) as u8).collect()
    }

    /// Makes partial transfers certain.
    fn shrink(socket: &UnixStream) {
        let size: libc::c_int = 2048;
        for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
            // SAFETY: the value is an int, as both options want.
            let done = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const size).cast(),
                    size_of::<libc::c_int>() as libc::socklen_t,
                )
            };
            assert_eq!(done, 0);
        }
    }

    /// Sends pieces of these lengths and receives them into targets of those.
    fn transfer(head: &[usize], pieces: &[usize], targets: &[usize]) {
        let (near, far) = UnixStream::pair().expect("pair");
        shrink(&near);
        shrink(&far);
        let parts = |lens: &[usize]| -> Vec<Vec<u8>> {
            lens.iter().map(|&len| pattern(len, len)).collect()
        };
        let (head, pieces) = (parts(head), parts(pieces));
        let sent: Vec<u8> = head.iter().chain(&pieces).flatten().copied().collect();
        assert_eq!(targets.iter().sum::<usize>(), sent.len());
        let mut received: Vec<Vec<u8>> = targets.iter().map(|&len| vec![0; len]).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let head: Vec<&[u8]> = head.iter().map(Vec::as_slice).collect();
                let pieces: Vec<SharedBytes> =
                    pieces.iter().map(|piece| piece[..].into()).collect();
                send_all(near.as_fd(), &head, &pieces).expect("sent");
            });
            let mut targets: Vec<SharedBytesMut> = received
                .iter_mut()
                .map(|target| target[..].as_mut().into())
                .collect();
            receive_exact(far.as_fd(), &mut targets).expect("received");
        });
        assert!(received.concat() == sent);
    }

    #[test]
    fn bytes_arrive_whole_however_they_are_cut() {
        transfer(&[], &[], &[]);
        transfer(&[0, 0], &[0], &[0, 0, 0]);
        transfer(&[12], &[5], &[17]);
        transfer(&[3, 0, 9], &[0, 100_000, 1, 0], &[1, 50_000, 0, 50_012]);
        // More places than one call takes, and more than the system takes.
        transfer(&[7], &[1000; 65], &[65_007]);
        transfer(&[1; 64], &[3; 1500], &[4564]);
        transfer(&[], &[3000], &[2; 1500]);
        transfer(
            &[64; 3],
            &[1 << 20; 3],
            &[1 << 18, (3 << 20) + 192 - (1 << 18)],
        );
    }

    #[test]
    fn the_end_in_the_middle_is_told() {
        let (mut near, far) = UnixStream::pair().expect("pair");
        near.write_all(b"half").expect("written");
        near.shutdown(Shutdown::Write).expect("shut");
        let (mut first, mut second) = ([0; 3], [0; 5]);
        let mut targets = [first[..].as_mut().into(), second[..].as_mut().into()];
        let error = receive_exact(far.as_fd(), &mut targets).expect_err("short");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!((&first, &second[..1]), (b"hal", &b"f"[..]));
        let error = receive_exact(far.as_fd(), &mut [first[..].as_mut().into()]);
        assert_eq!(
            error.expect_err("at the end").kind(),
            io::ErrorKind::UnexpectedEof
        );
        // Nothing more is wanted, so nothing is missing.
        receive_exact(far.as_fd(), &mut [first[..0].as_mut().into()]).expect("nothing");
    }

    #[test]
    fn a_peer_that_has_gone_is_an_error_and_no_signal() {
        let (near, far) = UnixStream::pair().expect("pair");
        drop(far);
        let error = send_all(near.as_fd(), &[b"head"], &[]).expect_err("gone");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn sockets_that_would_block_say_so() {
        let (mut near, mut far) = UnixStream::pair().expect("pair");
        near.write_all(b"half").expect("written");
        far.set_read_timeout(Some(Duration::from_millis(1)))
            .expect("set");
        let mut target = [0; 8];
        let error = receive_exact(far.as_fd(), &mut [target[..].as_mut().into()]);
        assert_eq!(
            error.expect_err("no more came").kind(),
            io::ErrorKind::WouldBlock
        );
        near.set_nonblocking(true).expect("set");
        let much = vec![1; 64 << 20];
        let error = send_all(near.as_fd(), &[], &[much[..].into()]).expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        far.set_nonblocking(true).expect("set");
        let mut sink = Vec::new();
        assert!(far.read_to_end(&mut sink).is_err());
        assert!(!sink.is_empty());
        let error = receive_exact(far.as_fd(), &mut [target[..].as_mut().into()]);
        assert_eq!(
            error.expect_err("nothing there").kind(),
            io::ErrorKind::WouldBlock
        );
    }

    #[test]
    fn what_is_no_socket_is_refused() {
        let file = std::fs::File::open("/dev/null").expect("open");
        assert!(send_all(file.as_fd(), &[b"x"], &[]).is_err());
        let mut byte = [0; 1];
        assert!(receive_exact(file.as_fd(), &mut [byte[..].as_mut().into()]).is_err());
    }
}
