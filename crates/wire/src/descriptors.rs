//! Descriptors that travel with frames over a Unix socket.
//!
//! They belong to the frame whose first byte they come with. A link receives them only if it was
//! told to expect them; otherwise the kernel drops what comes.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// Most descriptors that come with one frame.
pub const MOST_DESCRIPTORS: usize = 64;

/// Sends bytes with descriptors; how many bytes went.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    slices: &[IoSlice<'_>],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    if descriptors.len() > MOST_DESCRIPTORS
        || !buffer.push(SendAncillaryMessage::ScmRights(descriptors))
    {
        let text = format!("at most {MOST_DESCRIPTORS} descriptors travel with a frame");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    loop {
        match rustix::net::sendmsg(socket, slices, &mut buffer, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

/// Receives bytes, and adds the descriptors that came with them.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(into)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(socket, &mut slices, &mut buffer, flags)?;
    for message in buffer.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(received.bytes)
}
