//! The two ends of a connection between members: one only sends, the other only reads.
//!
//! A member that has something to say to another connects to it, so a pair that talks both ways has two connections, and
//! none has to be agreed on. Sockets never block here; who waits is `mesh`.

use std::io::{self, ErrorKind, IoSlice, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg, sockopt};
use wire::seal::Seal;

use super::frame::{HEAD_BYTES, HELLO_BYTES, Head};

/// Connections that may wait to be accepted: members of a large team may call one of them at once.
const BACKLOG: i32 = 4096;

/// Where a member listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// A name that only this host, or network namespace, knows.
    Here(Vec<u8>),
    Tcp(SocketAddr),
}

#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(super) fn connect(address: &Address, limit: Duration) -> io::Result<Stream> {
        let stream = match address {
            Address::Here(name) => Stream::Unix(UnixStream::connect_addr(
                &UnixAddress::from_abstract_name(name)?,
            )?),
            Address::Tcp(address) => Stream::Tcp(TcpStream::connect_timeout(address, limit)?),
        };
        stream.ready()
    }

    /// As it is used from here on.
    fn ready(self) -> io::Result<Stream> {
        match &self {
            Stream::Unix(s) => s.set_nonblocking(true)?,
            Stream::Tcp(s) => {
                s.set_nonblocking(true)?;
                s.set_nodelay(true)?;
                // A member that computes may read nothing for long; only its host has to answer.
                let pause = wire::link::SILENCE / 4;
                sockopt::set_socket_keepalive(s, true)?;
                sockopt::set_tcp_keepidle(s, pause)?;
                sockopt::set_tcp_keepintvl(s, pause)?;
                sockopt::set_tcp_keepcnt(s, 3)?;
            }
        }
        Ok(self)
    }

    /// Whether frames carry checksums: memory of one host needs none.
    pub(super) fn is_checked(&self) -> bool {
        matches!(self, Stream::Tcp(_))
    }

    /// Sends what there is room for, without a signal if nobody reads; how many bytes, 0 if there is no room.
    pub(super) fn send(&self, parts: &[&[u8]]) -> io::Result<usize> {
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut nothing = SendAncillaryBuffer::default();
        loop {
            match sendmsg(self, &slices, &mut nothing, SendFlags::NOSIGNAL) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(0),
                sent => return Ok(sent?),
            }
        }
    }

    /// Adds what has come to `bytes`, up to a length; whether it is that long now.
    fn fill(&self, bytes: &mut Vec<u8>, len: u64) -> io::Result<bool> {
        let left = len.saturating_sub(bytes.len() as u64);
        let read = match self {
            Stream::Unix(s) => s.take(left).read_to_end(bytes),
            Stream::Tcp(s) => s.take(left).read_to_end(bytes),
        };
        match read {
            Ok(_) if (bytes.len() as u64) < len => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(s) => s.as_fd(),
            Stream::Tcp(s) => s.as_fd(),
        }
    }
}

/// Where other members connect.
#[derive(Debug)]
pub(super) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens under a new name of this host.
    pub(super) fn here() -> io::Result<(Listener, Vec<u8>)> {
        let random: String = identity::random()[..16]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let name = format!("pario-team-{random}").into_bytes();
        let listener = UnixListener::bind_addr(&UnixAddress::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        Ok((Listener::Unix(listener), name))
    }

    /// Listens at any port of an address; which.
    pub(super) fn tcp(address: SocketAddr) -> io::Result<(Listener, u16)> {
        let listener = TcpListener::bind(address)?;
        rustix::net::listen(&listener, BACKLOG)?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok((Listener::Tcp(listener), port))
    }

    /// The next connection, if one waits. Processes of other users of this host are closed unheard.
    pub(super) fn accept(&self) -> io::Result<Option<Stream>> {
        loop {
            let stream = match self {
                Listener::Unix(l) => l.accept().map(|(s, _)| Stream::Unix(s)),
                Listener::Tcp(l) => l.accept().map(|(s, _)| Stream::Tcp(s)),
            };
            match stream {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                // One that has gone again.
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                Err(e) => return Err(e),
                Ok(stream) => {
                    let is_user = match &stream {
                        Stream::Unix(s) => sockopt::socket_peercred(s)
                            .is_ok_and(|peer| peer.uid == rustix::process::geteuid()),
                        Stream::Tcp(_) => true,
                    };
                    if is_user && let Ok(stream) = stream.ready() {
                        return Ok(Some(stream));
                    }
                }
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(l) => l.as_fd(),
            Listener::Tcp(l) => l.as_fd(),
        }
    }
}

/// The end that reads.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) stream: Stream,
    /// Who sends, once it has said so.
    pub(super) from: Option<usize>,
    head: Vec<u8>,
    /// The frame whose bytes are coming.
    pub(super) frame: Option<Head>,
    pub(super) bytes: Vec<u8>,
    /// Whether the bytes of its frame wait until they are asked for.
    pub(super) is_parked: bool,
}

/// What an inbound connection has.
#[derive(Debug)]
pub(super) enum Came {
    /// All of the first bytes.
    Hello(Vec<u8>),
    /// The head of a frame; its bytes come next.
    Head(Head),
    /// A whole frame.
    Frame(Head, Vec<u8>),
}

impl Inbound {
    pub(super) fn new(stream: Stream) -> Inbound {
        Inbound {
            stream,
            from: None,
            head: Vec::new(),
            frame: None,
            bytes: Vec::new(),
            is_parked: false,
        }
    }

    /// Reads on; what is complete now, or nothing if more has to come.
    pub(super) fn read(&mut self) -> io::Result<Option<Came>> {
        if self.from.is_none() {
            let is_whole = self.stream.fill(&mut self.head, HELLO_BYTES as u64)?;
            return Ok(is_whole.then(|| Came::Hello(std::mem::take(&mut self.head))));
        }
        let Some(head) = self.frame else {
            if !self.stream.fill(&mut self.head, HEAD_BYTES as u64)? {
                return Ok(None);
            }
            let head = self.head.first_chunk().and_then(Head::decode);
            self.head.clear();
            let head = head.ok_or_else(|| io::Error::other("sent what is no message"))?;
            self.frame = Some(head);
            return Ok(Some(Came::Head(head)));
        };
        if !self.stream.fill(&mut self.bytes, head.len)? {
            return Ok(None);
        }
        self.frame = None;
        let bytes = std::mem::take(&mut self.bytes);
        if self.stream.is_checked() && check(&[&bytes]) != head.check {
            return Err(io::Error::other("sent bytes that have changed on the way"));
        }
        Ok(Some(Came::Frame(head, bytes)))
    }
}

/// The checksum of the bytes of a frame.
pub(super) fn check(parts: &[&[u8]]) -> u32 {
    let mut seal = Seal::new();
    parts.iter().for_each(|part| seal.add(*part));
    u32::from_le_bytes(seal.bytes())
}

/// The end that sends.
#[derive(Debug)]
pub(super) struct Outbound {
    pub(super) stream: Stream,
    /// Whether a thread is in the middle of a frame.
    pub(super) is_busy: bool,
}
