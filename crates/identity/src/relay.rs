//! The thread behind a connection that is protected by TLS.
//!
//! Everything above writes frames and payloads to a descriptor, often with calls of the kernel that know nothing
//! of TLS. So a protected connection is a pair of sockets: one end is the link, the other end is pumped by a
//! thread through rustls onto the TCP stream.
//!
//! ```text
//!  link == socket pair == relay thread (rustls) == TCP
//! ```
//!
//! Invariants
//! - Nothing spins: the thread sleeps in `poll` unless bytes can move.
//! - Bytes that wait are bounded: nothing is read from one side while the other side takes nothing.
//! - An end goes through: a half-close, a close and a failure on one side become the same on the other, and what was
//!   written before arrives before.
//! - Bytes that were not sealed by the peer never reach the link.
//!
//! Cost: one thread and 256 KiB per connection; two more copies and the sealing.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use rustls::Connection;
use wire::link::Relay;

/// Bytes read at once from either side.
const CHUNK: usize = 128 << 10;
/// Bytes that rustls may hold on their way out.
const OUT_LIMIT: usize = 256 << 10;
/// A peer that takes nothing for so long after the link was closed gets no farewell.
const FAREWELL: Duration = Duration::from_secs(10);

/// Starts the thread for a connection whose handshake is done; the end for the link.
pub(crate) fn start(
    mut tls: Connection,
    tcp: TcpStream,
    relay: Arc<Relay>,
) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    tcp.set_nonblocking(true)?;
    tls.set_buffer_limit(Some(OUT_LIMIT));
    let mut pump = Pump {
        tls,
        tcp,
        link: ours,
        inbound: Inbound::default(),
        plain: Vec::with_capacity(CHUNK),
        plain_at: 0,
        scratch: vec![0; CHUNK],
        link_ended: false,
        peer_ended: false,
        link_told: false,
        is_deaf: false,
    };
    thread::Builder::new()
        .name("tls".into())
        .stack_size(256 << 10)
        .spawn(move || {
            if let Err(error) = pump.run() {
                relay.fail(error);
            }
            let _ = pump.link.shutdown(Shutdown::Both);
            let _ = pump.tcp.shutdown(Shutdown::Both);
        })?;
    Ok(theirs)
}

/// Bytes from the network that rustls has not seen yet.
#[derive(Default)]
struct Inbound {
    bytes: Vec<u8>,
    at: usize,
}

struct Pump {
    tls: Connection,
    tcp: TcpStream,
    link: UnixStream,
    inbound: Inbound,
    /// For the link.
    plain: Vec<u8>,
    plain_at: usize,
    scratch: Vec<u8>,
    /// The link sends nothing more.
    link_ended: bool,
    /// The peer sends nothing more.
    peer_ended: bool,
    /// The link knows that.
    link_told: bool,
    /// The peer takes nothing more.
    is_deaf: bool,
}

impl Pump {
    fn run(&mut self) -> io::Result<()> {
        let moved = self.pump();
        if moved.is_err() {
            // The peer is told why, if it still listens.
            let _ = self.tls.write_tls(&mut Quiet(&self.tcp));
        }
        moved
    }

    fn pump(&mut self) -> io::Result<()> {
        // The link is closed.
        let mut is_gone = false;
        let mut can = (true, true);
        // What the peer sent right behind the handshake was read with it.
        self.open()?;
        loop {
            if (can.0 || is_gone) && !self.link_ended {
                self.take_from_link()?;
            }
            self.give_to_peer();
            self.take_from_peer(can.1)?;
            self.give_to_link(is_gone);
            let is_flushed = !self.wants_write();
            if self.link_ended && is_flushed && (is_gone || self.link_told) {
                return Ok(());
            }
            let has_inbound = self.inbound.at < self.inbound.bytes.len();
            let is_left = is_gone && !self.link_ended && is_flushed;
            if is_left || (has_inbound && !self.has_plain() && !self.peer_ended) {
                can = (false, false);
                continue;
            }
            let mut of_link = PollFlags::empty();
            let mut of_peer = PollFlags::empty();
            if !self.link_ended && is_flushed {
                of_link |= PollFlags::IN;
            }
            if !is_flushed {
                of_peer |= PollFlags::OUT;
            }
            if self.has_plain() {
                of_link |= PollFlags::OUT;
            } else if !self.peer_ended {
                of_peer |= PollFlags::IN;
            }
            // The link is always watched for its death, and after that not at all; the network only for what
            // is wanted of it, since it would not cease to say that it has ended.
            let mut fds = Vec::with_capacity(2);
            let link_at = (!is_gone).then(|| {
                fds.push(PollFd::from_borrowed_fd(self.link.as_fd(), of_link));
                fds.len() - 1
            });
            let peer_at = (!of_peer.is_empty()).then(|| {
                fds.push(PollFd::from_borrowed_fd(self.tcp.as_fd(), of_peer));
                fds.len() - 1
            });
            let limit = Timespec {
                tv_sec: FAREWELL.as_secs() as i64,
                tv_nsec: 0,
            };
            match poll(&mut fds, is_gone.then_some(&limit)) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            let heard = |at: Option<usize>| at.map_or(PollFlags::empty(), |at| fds[at].revents());
            let (link, peer) = (heard(link_at), heard(peer_at));
            can = (!link.is_empty(), !peer.is_empty());
            // What it wrote before is still there to be read; what was meant for it is not wanted.
            is_gone |= link.intersects(PollFlags::HUP | PollFlags::ERR);
        }
    }

    fn has_plain(&self) -> bool {
        self.plain_at < self.plain.len()
    }

    fn wants_write(&self) -> bool {
        self.tls.wants_write() && !self.is_deaf
    }

    /// Seals what the link has to say, as long as the peer takes what was said before.
    fn take_from_link(&mut self) -> io::Result<()> {
        if self.wants_write() {
            return Ok(());
        }
        match self.link.read(&mut self.scratch) {
            Ok(0) => self.link_ends(),
            Ok(n) => self.tls.writer().write_all(&self.scratch[..n])?,
            Err(e) if is_pause(&e) => {}
            // The link was closed with bytes unread.
            Err(_) => self.link_ends(),
        }
        Ok(())
    }

    fn link_ends(&mut self) {
        self.link_ended = true;
        self.tls.send_close_notify();
    }

    fn give_to_peer(&mut self) {
        while self.wants_write() {
            match self.tls.write_tls(&mut Quiet(&self.tcp)) {
                Ok(_) => {}
                Err(e) if is_pause(&e) => return,
                Err(_) => {
                    // It may have said why before it stopped to listen.
                    self.is_deaf = true;
                    self.link_ended = true;
                    return;
                }
            }
        }
        if self.link_ended {
            let _ = self.tcp.shutdown(Shutdown::Write);
        }
    }

    /// Opens what has come, for the link.
    fn take_from_peer(&mut self, is_ready: bool) -> io::Result<()> {
        if self.has_plain() {
            return Ok(());
        }
        self.plain.clear();
        self.plain_at = 0;
        let mut can_read = is_ready;
        while self.plain.len() < CHUNK && !self.peer_ended {
            if self.inbound.at < self.inbound.bytes.len() {
                let mut rest = &self.inbound.bytes[self.inbound.at..];
                let before = rest.len();
                self.tls.read_tls(&mut rest)?;
                self.inbound.at += before - rest.len();
                self.open()?;
                continue;
            }
            if !can_read {
                return Ok(());
            }
            self.inbound.bytes.resize(CHUNK, 0);
            self.inbound.at = 0;
            match self.tcp.read(&mut self.inbound.bytes) {
                Ok(n) if n > 0 => {
                    self.inbound.bytes.truncate(n);
                    can_read = n == CHUNK;
                }
                other => {
                    self.inbound.bytes.clear();
                    match other {
                        Err(e) if is_pause(&e) => return Ok(()),
                        Err(e) => return Err(e),
                        Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    }
                }
            }
        }
        Ok(())
    }

    /// Opens what rustls has read, for the link.
    fn open(&mut self) -> io::Result<()> {
        let state = self.tls.process_new_packets().map_err(refusal)?;
        let (waiting, has_closed) = (state.plaintext_bytes_to_read(), state.peer_has_closed());
        if waiting > 0 {
            let from = self.plain.len();
            self.plain.resize(from + waiting, 0);
            self.tls.reader().read_exact(&mut self.plain[from..])?;
        }
        self.peer_ended = has_closed;
        Ok(())
    }

    fn give_to_link(&mut self, is_gone: bool) {
        while self.has_plain() {
            let rest = &self.plain[self.plain_at..];
            match send(&self.link, rest, SendFlags::NOSIGNAL) {
                Ok(n) => self.plain_at += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !is_gone => return,
                // Nobody reads it any more.
                Err(_) => self.plain_at = self.plain.len(),
            }
        }
        if self.peer_ended && !self.link_told {
            self.link_told = true;
            let _ = self.link.shutdown(Shutdown::Write);
        }
    }
}

/// Writes to a socket without a signal, which the process of a client may not expect.
pub(crate) struct Quiet<'s>(pub(crate) &'s TcpStream);

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        Ok(sendmsg(self.0, parts, &mut nothing, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// An error that says what the peer did not like, or what was not to be liked about it.
fn refusal(error: rustls::Error) -> io::Error {
    let kind = match error {
        rustls::Error::AlertReceived(_) => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, crate::tls::in_words(&error))
}
