//! Packets between a server and its keeper: a verb, a text, at most one descriptor.
//!
//! | verb | from | text | descriptor | answered by |
//! |---|---|---|---|---|
//! | `T` take | server, first | | | `W`, then one `D` for each that is kept; or `H`, `R` |
//! | `L` look | anybody of the user, first | | | `G` |
//! | `E` end | server, or first if no server is served | | | `Y`; or `H` |
//! | `K` keep | server | name | yes | `Y`, or `R` |
//! | `F` forget | server | name | | nothing |
//! | `W` welcome | keeper | how many follow | | |
//! | `D` kept descriptor | keeper | name | yes | |
//! | `G` glance | keeper | own process, process that is served or 0, descriptors, bytes | | |
//! | `H` held | keeper | process that is served | | |
//! | `R` refused | keeper | why | | |
//! | `Y` done | keeper | | | |
//!
//! Sockets keep the borders of packets, so there is no framing.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

/// Longest text.
pub(crate) const MOST_TEXT: usize = 200;

pub(crate) const TAKE: u8 = b'T';
pub(crate) const LOOK: u8 = b'L';
pub(crate) const END: u8 = b'E';
pub(crate) const KEEP: u8 = b'K';
pub(crate) const FORGET: u8 = b'F';
pub(crate) const WELCOME: u8 = b'W';
pub(crate) const DESCRIPTOR: u8 = b'D';
pub(crate) const GLANCE: u8 = b'G';
pub(crate) const HELD: u8 = b'H';
pub(crate) const REFUSED: u8 = b'R';
pub(crate) const DONE: u8 = b'Y';

/// One that came.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) verb: u8,
    pub(crate) text: String,
    pub(crate) descriptor: Option<OwnedFd>,
}

/// Sends one.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    verb: u8,
    text: &str,
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    if text.len() > MOST_TEXT {
        let why = format!("a name or text has at most {MOST_TEXT} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let slices = [
        IoSlice::new(std::slice::from_ref(&verb)),
        IoSlice::new(text.as_bytes()),
    ];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let list: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !list.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&list));
    }
    loop {
        match rustix::net::sendmsg(socket, &slices, &mut ancillary, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            done => return done.map(|_| ()).map_err(Into::into),
        }
    }
}

/// Receives one; `None` when the other side has closed the connection.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Packet>> {
    let mut bytes = [0; 1 + MOST_TEXT];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(socket, &mut slices, &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            done => break done?,
        }
    };
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.contains(ReturnFlags::TRUNC) || descriptors.len() > 1 {
        return Err(invalid("a packet that is too long"));
    }
    let text = std::str::from_utf8(&bytes[1..received.bytes]);
    Ok(Some(Packet {
        verb: bytes[0],
        text: text
            .map_err(|_| invalid("a packet that is no text"))?
            .to_owned(),
        descriptor: descriptors.pop(),
    }))
}

/// A socket for packets.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    let made = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    );
    Ok(made?)
}

/// A directory, to name a socket in it whose path would be too long for the kernel.
pub(crate) fn open_directory(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(dir, flags, Mode::empty())?)
}

/// The address of the socket in a directory.
pub(crate) fn address(directory: &OwnedFd) -> io::Result<SocketAddrUnix> {
    use std::os::fd::AsRawFd;
    let number = directory.as_fd().as_raw_fd();
    Ok(SocketAddrUnix::new(format!(
        "/proc/self/fd/{number}/{}",
        crate::SOCKET
    ))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let made = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        );
        made.unwrap()
    }

    #[test]
    fn packets_keep_their_borders_and_their_descriptors() {
        let (one, other) = pair();
        send(one.as_fd(), KEEP, "segment-1", Some(one.as_fd())).unwrap();
        send(one.as_fd(), FORGET, "", None).unwrap();
        drop(one);
        let first = receive(other.as_fd()).unwrap().unwrap();
        assert_eq!((first.verb, &first.text[..]), (KEEP, "segment-1"));
        assert!(first.descriptor.is_some());
        let second = receive(other.as_fd()).unwrap().unwrap();
        assert_eq!((second.verb, &second.text[..]), (FORGET, ""));
        assert!(second.descriptor.is_none());
        drop(first);
        assert!(receive(other.as_fd()).unwrap().is_none());
    }

    #[test]
    fn texts_have_a_limit_on_either_side() {
        let (one, other) = pair();
        let long = "x".repeat(MOST_TEXT + 1);
        assert!(send(one.as_fd(), KEEP, &long, None).is_err());
        rustix::net::send(&one, long.as_bytes(), SendFlags::empty()).unwrap();
        rustix::net::send(&one, long.as_bytes(), SendFlags::empty()).unwrap();
        receive(other.as_fd()).unwrap().unwrap();
        rustix::net::send(&one, &[b'x'; 2 * MOST_TEXT], SendFlags::empty()).unwrap();
        receive(other.as_fd()).unwrap().unwrap();
        assert!(receive(other.as_fd()).is_err());
    }
}
