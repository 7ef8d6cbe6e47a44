//! A connection that carries frames.
//!
//! Blocking, in the caller's thread. A frame leaves in one vectored write (two small writes would
//! wait for each other's acknowledgement), and payloads are received straight into the memory they
//! are meant for. The control buffer belongs to the link and is reused, so a steady exchange
//! allocates nothing. A link may read ahead: then a small request takes one call of the system, and
//! a caller that receives payloads by itself begins with what was read already.
//!
//! Left to others: what frames mean, retries, who may connect.

use std::io::{self, IoSlice, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};

use crate::frame::{
    CONTINUED, FrameError, HEADER_BYTES, Header, MAX_CONTROL_BYTES, MAX_LONG_CONTROL_BYTES,
};
use crate::seal::{SEAL_BYTES, Seal};
use crate::status::Status;
use crate::url::Endpoint;

/// Why a frame could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The peer closed the connection between two frames.
    #[error("the peer closed the connection")]
    Closed,
    /// The connection failed, or broke inside a frame.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// What came is not a frame of this protocol.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A payload does not fit its seal; what follows it is in step.
    #[error("bytes were damaged on the way")]
    Damaged,
}

impl LinkError {
    /// The status that tells a caller what happened.
    pub fn status(&self) -> Status {
        match self {
            LinkError::Closed => Status::Unreachable,
            LinkError::Io(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                Status::TimedOut
            }
            LinkError::Io(_) => Status::Unreachable,
            LinkError::Frame(e) => e.status(),
            LinkError::Damaged => Status::Damaged,
        }
    }
}

/// A host that has not been heard of for so long is gone, unless the caller says otherwise.
pub const SILENCE: Duration = Duration::from_secs(15);

/// A control part above this is long: the peer has to send it in time, if the link has a patience.
const LONG_BYTES: u32 = 64 << 10;

/// Slices that one call of the kernel takes.
const MOST_SLICES: usize = 1024;

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    /// One end of a pair of sockets; a thread passes on what goes through it.
    Relayed(UnixStream, Arc<Relay>),
}

impl Stream {
    fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Unix(s) => Stream::Unix(s.try_clone()?),
            Stream::Tcp(s) => Stream::Tcp(s.try_clone()?),
            Stream::Relayed(s, relay) => Stream::Relayed(s.try_clone()?, Arc::clone(relay)),
        })
    }

    fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        match self {
            Stream::Unix(s) | Stream::Relayed(s, _) => s.shutdown(how),
            Stream::Tcp(s) => s.shutdown(how),
        }
    }
}

/// What a link knows about the thread that passes its bytes on: who is at the far end, and why that failed.
#[derive(Debug)]
pub struct Relay {
    peer: PeerName,
    trouble: Mutex<Option<io::Error>>,
}

impl Relay {
    /// Between a link and this peer.
    pub fn new(peer: PeerName) -> Relay {
        Relay {
            peer,
            trouble: Mutex::default(),
        }
    }

    /// Why nothing more will come; before the sockets are ended.
    pub fn fail(&self, error: io::Error) {
        *self.trouble.lock() = Some(error);
    }

    /// What a reader gets in place of the end of the stream, if that was no orderly one.
    fn end(&self) -> io::Result<usize> {
        let trouble = self.trouble.lock();
        match &*trouble {
            Some(e) => Err(io::Error::new(e.kind(), e.to_string())),
            None => Ok(0),
        }
    }
}

/// What the kernel says about the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerName {
    /// A process of this host.
    Unix {
        /// Its number.
        pid: u64,
        /// Its user.
        user: u32,
        /// Its group.
        group: u32,
    },
    /// An address.
    Tcp {
        /// Of the peer.
        peer: SocketAddr,
        /// Of this end.
        here: SocketAddr,
    },
}

/// One connection.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    control: Vec<u8>,
    /// Bytes that were read before they were asked for; empty if that is not done.
    inbox: Box<[u8]>,
    held: Range<usize>,
    /// When reading has to be over, whatever trickles in until then.
    deadline: Option<Instant>,
    /// How long the peer may take for each part of a long message.
    patience: Option<Duration>,
    /// Descriptors that came with what was received, if any are expected.
    descriptors: Option<Vec<OwnedFd>>,
}

impl Link {
    /// Connects, giving up after `timeout`.
    pub fn connect(endpoint: &Endpoint, timeout: Duration) -> io::Result<Link> {
        match endpoint {
            Endpoint::Unix(path) => Ok(Link::unix(connect_unix(path, timeout)?)),
            Endpoint::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, timeout) {
                        Ok(stream) => return Link::tcp(stream),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    fn unix(stream: UnixStream) -> Link {
        Link {
            stream: Stream::Unix(stream),
            control: Vec::new(),
            inbox: Box::default(),
            held: 0..0,
            deadline: None,
            patience: None,
            descriptors: None,
        }
    }

    fn tcp(stream: TcpStream) -> io::Result<Link> {
        stream.set_nodelay(true)?;
        let link = Link {
            stream: Stream::Tcp(stream),
            control: Vec::new(),
            inbox: Box::default(),
            held: 0..0,
            deadline: None,
            patience: None,
            descriptors: None,
        };
        link.end_when_silent(SILENCE)?;
        Ok(link)
    }

    /// Ends the connection, as if the peer had reset it, when the peer's host has not been heard of for so
    /// long: its kernel is asked when there is nothing else to say, and has to take what is sent. Linux also
    /// ends one whose window stays shut for so long, although the kernel of the peer answers: a process that takes
    /// nothing of what is sent to it loses its connection, and repeats what it did over the next one. One to which
    /// nothing is sent may take its time. Nothing is asked of this host, which tells of the deaths of its
    /// processes.
    pub fn end_when_silent(&self, limit: Duration) -> io::Result<()> {
        use rustix::net::sockopt;
        let Stream::Tcp(s) = &self.stream else {
            return Ok(());
        };
        let Ok(PeerName::Tcp { peer, here }) = self.peer() else {
            return Ok(()); // It has ended already.
        };
        let peer = peer.ip().to_canonical();
        if peer.is_loopback() || peer == here.ip().to_canonical() {
            return Ok(());
        }
        // Three questions without an answer fit into the limit.
        let pause = Duration::from_secs((limit.as_secs() / 4).max(1));
        sockopt::set_socket_keepalive(s, true)?;
        sockopt::set_tcp_keepidle(s, pause)?;
        sockopt::set_tcp_keepintvl(s, pause)?;
        sockopt::set_tcp_keepcnt(s, 3)?;
        let limit_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        Ok(sockopt::set_tcp_user_timeout(s, limit_ms)?)
    }

    /// A link whose bytes a thread passes on.
    pub fn relayed(stream: UnixStream, relay: Arc<Relay>) -> Link {
        Link {
            stream: Stream::Relayed(stream, relay),
            control: Vec::new(),
            inbox: Box::default(),
            held: 0..0,
            deadline: None,
            patience: None,
            descriptors: None,
        }
    }

    /// Whether a thread passes its bytes on.
    pub fn is_relayed(&self) -> bool {
        matches!(self.stream, Stream::Relayed(..))
    }

    /// The TCP stream, for a thread that passes bytes on; nothing was read ahead.
    pub fn into_tcp(self) -> io::Result<TcpStream> {
        match self.stream {
            Stream::Tcp(s) if self.held.is_empty() => Ok(s),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Reads up to so many bytes ahead from now on. A caller that receives through [`AsFd`] then begins with
    /// [`Link::ahead`].
    pub fn read_ahead(&mut self, bytes: usize) {
        if self.held.is_empty() {
            self.inbox = vec![0; bytes].into_boxed_slice();
            self.held = 0..0;
        }
    }

    /// Keeps descriptors that come with frames from now on; only a Unix socket carries any.
    pub fn expect_descriptors(&mut self) {
        self.descriptors.get_or_insert_with(Vec::new);
    }

    /// The descriptors that have come.
    pub fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        self.descriptors
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Sends a frame without payload and descriptors with it.
    pub fn send_with_descriptors(
        &mut self,
        header: Header,
        control: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), LinkError> {
        if descriptors.is_empty() {
            return self.send(header, control, &[]);
        }
        if !matches!(self.stream, Stream::Unix(_)) {
            let text = "descriptors travel over Unix sockets only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text).into());
        }
        let header = Header {
            control_bytes: u32::try_from(control.len()).map_err(|_| FrameError::TooLarge)?,
            payload_bytes: 0,
            ..header
        };
        header.check_bounds()?;
        let sealed = header.encode(control);
        let mut slices = [IoSlice::new(&sealed), IoSlice::new(control)];
        let sent = crate::descriptors::send(self.as_fd(), &slices, descriptors)?;
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, sent);
        Ok(self.write_all(rest)?)
    }

    /// What was read ahead.
    pub fn ahead(&self) -> &[u8] {
        &self.inbox[self.held.clone()]
    }

    /// Takes bytes from the front of [`Link::ahead`].
    pub fn take_ahead(&mut self, bytes: usize) {
        self.held.start = (self.held.start + bytes).min(self.held.end);
    }

    /// Whether it leads through a network.
    pub fn is_tcp(&self) -> bool {
        matches!(self.stream, Stream::Tcp(_))
    }

    /// Who is at the other end, as far as the kernel knows.
    pub fn peer(&self) -> io::Result<PeerName> {
        match &self.stream {
            Stream::Unix(s) => {
                let found = rustix::net::sockopt::socket_peercred(s)?;
                Ok(PeerName::Unix {
                    pid: found.pid.as_raw_nonzero().get() as u64,
                    user: found.uid.as_raw(),
                    group: found.gid.as_raw(),
                })
            }
            Stream::Tcp(s) => Ok(PeerName::Tcp {
                peer: s.peer_addr()?,
                here: s.local_addr()?,
            }),
            Stream::Relayed(_, relay) => Ok(relay.peer),
        }
    }

    /// Longest time a read or write may take; `None` waits for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Unix(s) | Stream::Relayed(s, _) => s
                .set_read_timeout(timeout)
                .and_then(|()| s.set_write_timeout(timeout)),
            Stream::Tcp(s) => s
                .set_read_timeout(timeout)
                .and_then(|()| s.set_write_timeout(timeout)),
        }
    }

    /// From now on waits for a message for ever, but for each part of a long one, and for the peer to take anything of what is sent,
    /// only so long. Costs nothing while messages are short.
    pub fn set_patience(&mut self, patience: Duration) -> io::Result<()> {
        self.patience = Some(patience);
        self.set_timeout(Some(patience))?;
        self.set_read_timeout(None)
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Unix(s) | Stream::Relayed(s, _) => s.set_read_timeout(timeout),
            Stream::Tcp(s) => s.set_read_timeout(timeout),
        }
    }

    /// Whether bytes have come that nobody has read, or the end of the connection.
    pub fn has_input(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        !self.held.is_empty() || poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
    }

    /// A second handle on the same connection, for a thread that only sends or only receives.
    pub fn try_clone(&self) -> io::Result<Link> {
        Ok(Link {
            stream: self.stream.try_clone()?,
            control: Vec::new(),
            inbox: Box::default(),
            held: 0..0,
            deadline: None,
            patience: None,
            descriptors: None,
        })
    }

    /// Ends both directions; a peer or thread that waits on it wakes up.
    pub fn shutdown(&self) {
        // A connection that is already gone is as ended as it can be.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Sends nothing more, and drops what the peer still sends until it has closed too or the time is
    /// over. A connection closed with bytes unread takes the last answer with it.
    pub fn finish(&mut self, patience: Duration) {
        let ended = self.stream.shutdown(std::net::Shutdown::Write);
        self.deadline = Some(Instant::now() + patience);
        let mut sink = [0; 16 << 10];
        let mut is_open = ended.is_ok();
        while is_open {
            is_open = match self.read(&mut sink) {
                Ok(n) => n > 0,
                Err(e) => e.kind() == io::ErrorKind::Interrupted,
            };
        }
        self.deadline = None;
    }

    /// Sends a frame. Lengths in the header are taken from the parts.
    pub fn send(
        &mut self,
        header: Header,
        control: &[u8],
        payload: &[&[u8]],
    ) -> Result<(), LinkError> {
        let mut control = control;
        if control.len() > MAX_LONG_CONTROL_BYTES {
            return Err(FrameError::TooLarge.into());
        }
        while control.len() > MAX_CONTROL_BYTES as usize {
            let (part, rest) = control.split_at(MAX_CONTROL_BYTES as usize);
            let header = Header {
                flags: header.flags | CONTINUED,
                control_bytes: MAX_CONTROL_BYTES,
                payload_bytes: 0,
                ..header
            };
            let sealed = header.encode(part);
            self.write_all(&mut [IoSlice::new(&sealed), IoSlice::new(part)])?;
            control = rest;
        }
        let header = Header {
            control_bytes: u32::try_from(control.len()).map_err(|_| FrameError::TooLarge)?,
            payload_bytes: payload.iter().map(|p| p.len() as u64).sum(),
            ..header
        };
        header.check_bounds()?;
        let sealed = header.encode(control);
        let fixed = [&sealed[..], control];
        if header.is_sealed() {
            let mut seal = Seal::new();
            payload.iter().for_each(|piece| seal.add(*piece));
            let seal = seal.bytes();
            let all = fixed.iter().chain(payload).copied().chain([&seal[..]]);
            let mut slices: Vec<IoSlice<'_>> = all.map(IoSlice::new).collect();
            return Ok(self.write_all(&mut slices)?);
        }
        // Small payloads of many pieces are rare; the two slices of a plain frame need no list.
        match payload {
            [] => self.write_all(&mut [IoSlice::new(fixed[0]), IoSlice::new(fixed[1])])?,
            [one] => self.write_all(&mut [
                IoSlice::new(fixed[0]),
                IoSlice::new(fixed[1]),
                IoSlice::new(one),
            ])?,
            many => {
                let all = fixed.iter().chain(many);
                let mut slices: Vec<IoSlice<'_>> = all.map(|p| IoSlice::new(p)).collect();
                self.write_all(&mut slices)?;
            }
        }
        Ok(())
    }

    /// [`Link::receive`] of a frame that has to be there after `patience`, however slowly it trickles in.
    /// That is also the timeout from then on.
    pub fn receive_within(&mut self, patience: Duration) -> Result<(Header, &[u8]), LinkError> {
        self.deadline = Some(Instant::now() + patience);
        let header = self.receive_frame(0);
        self.deadline = None;
        self.set_timeout(Some(patience))?;
        Ok((header?, &self.control))
    }

    /// Receives header and control part, in as many frames as that takes. The payload is still to be received or skipped.
    pub fn receive(&mut self) -> Result<(Header, &[u8]), LinkError> {
        self.receive_if(|| true)
    }

    /// [`Link::receive`] that asks before each part of a long message behind the first whether there is room for it. If not, the
    /// control part is received and dropped, so that the connection is in step.
    pub fn receive_if(
        &mut self,
        admit: impl FnMut() -> bool,
    ) -> Result<(Header, &[u8]), LinkError> {
        if self.control.capacity() >= 2 * MAX_CONTROL_BYTES as usize {
            // Of a long message, which is rare: a connection does not keep its memory.
            self.control = Vec::new();
        }
        let header = self.receive_parts(admit);
        if self.deadline.take().is_some() {
            self.set_read_timeout(None)?;
        }
        Ok((header?, &self.control))
    }

    fn receive_parts(&mut self, mut admit: impl FnMut() -> bool) -> Result<Header, LinkError> {
        let mut header = self.receive_frame(0)?;
        let (mut came, mut is_admitted) = (0, true);
        while header.flags & CONTINUED != 0 {
            came += header.control_bytes as usize;
            is_admitted = is_admitted && admit();
            self.hurry();
            let next = self.receive_frame(if is_admitted { came } else { 0 })?;
            if (next.kind, next.request) != (header.kind, header.request) {
                return Err(FrameError::Reserved.into());
            }
            if came + next.control_bytes as usize > MAX_LONG_CONTROL_BYTES {
                return Err(FrameError::TooLarge.into());
            }
            header = next;
        }
        if !is_admitted {
            self.control.clear();
        }
        Ok(header)
    }

    /// The peer has to send the next part in time.
    fn hurry(&mut self) {
        self.deadline = self.patience.map(|patience| Instant::now() + patience);
    }

    /// The control part that was received last, which is then no longer here.
    pub fn take_control(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.control)
    }

    /// Receives a frame whose control part goes behind `kept` bytes of earlier ones.
    fn receive_frame(&mut self, kept: usize) -> Result<Header, LinkError> {
        let mut bytes = [0; HEADER_BYTES];
        self.read_first(&mut bytes)?;
        let header = Header::decode(&bytes)?;
        let len = kept + header.control_bytes as usize;
        // A message in parts has whole ones but for the last, and no payload before it.
        let is_continued = header.flags & CONTINUED != 0;
        let is_whole = header.control_bytes == MAX_CONTROL_BYTES && header.payload_bytes == 0;
        if len > MAX_LONG_CONTROL_BYTES || is_continued && !is_whole {
            return Err(FrameError::TooLarge.into());
        }
        if kept == 0 && header.control_bytes > LONG_BYTES && self.patience.is_some() {
            self.hurry();
        }
        let mut control = std::mem::take(&mut self.control);
        control.resize(len, 0);
        let read = self.read_exact(&mut control[kept..]);
        self.control = control;
        read?;
        Header::verify(&bytes, &self.control[kept..])?;
        Ok(header)
    }

    /// Receives a whole payload, and its seal if it has one.
    pub fn receive_sealed(&mut self, header: &Header, into: &mut [u8]) -> Result<(), LinkError> {
        self.read_exact(into)?;
        if header.is_sealed() {
            let mut came = [0; SEAL_BYTES];
            self.read_exact(&mut came)?;
            let mut seal = Seal::new();
            seal.add(&*into);
            if !seal.fits(came) {
                return Err(LinkError::Damaged);
            }
        }
        Ok(())
    }

    /// Receives the next bytes of the payload where they belong.
    pub fn receive_payload(&mut self, into: &mut [u8]) -> Result<(), LinkError> {
        Ok(self.read_exact(into)?)
    }

    /// Drops the next bytes of the payload.
    pub fn skip_payload(&mut self, mut bytes: u64) -> Result<(), LinkError> {
        if bytes == 0 {
            return Ok(());
        }
        let mut sink = [0; 16 << 10];
        while bytes > 0 {
            let n = bytes.min(sink.len() as u64) as usize;
            self.read_exact(&mut sink[..n])?;
            bytes -= n as u64;
        }
        Ok(())
    }

    /// Reads the start of a frame; the end of the connection before it is no failure.
    fn read_first(&mut self, bytes: &mut [u8]) -> Result<(), LinkError> {
        let mut done = 0;
        while done < bytes.len() {
            match self.read(&mut bytes[done..]) {
                Ok(0) if done == 0 => return Err(LinkError::Closed),
                Ok(0) => return Err(LinkError::Io(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn read_exact(&mut self, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            match self.read(&mut into[done..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.held.is_empty() {
            if into.len() >= self.inbox.len() {
                return self.read_socket(into);
            }
            let mut inbox = std::mem::take(&mut self.inbox);
            let read = self.read_socket(&mut inbox);
            self.inbox = inbox;
            self.held = 0..read?;
        }
        let n = into.len().min(self.held.len());
        into[..n].copy_from_slice(&self.ahead()[..n]);
        self.take_ahead(n);
        Ok(n)
    }

    /// Of at least one byte that is wanted, so that nothing is the end.
    fn read_socket(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.set_read_timeout(Some(left))?;
        }
        match (&mut self.stream, &mut self.descriptors) {
            (Stream::Unix(s), Some(list)) => crate::descriptors::receive(s.as_fd(), into, list),
            (Stream::Unix(s), None) => s.read(into),
            (Stream::Tcp(s), _) => s.read(into),
            (Stream::Relayed(s, relay), _) => match s.read(into) {
                Ok(0) => relay.end(),
                // The relay has ended before it took all that was written here, and knows better why.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => relay.end(),
                read => read,
            },
        }
    }

    fn write_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            let batch = &slices[..slices.len().min(MOST_SLICES)];
            // A peer that is gone is an error, not a signal to the program that this is part of.
            let flags = SendFlags::NOSIGNAL;
            let mut nothing = SendAncillaryBuffer::default();
            match rustix::net::sendmsg(self.as_fd(), batch, &mut nothing, flags) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => IoSlice::advance_slices(&mut slices, n),
                Err(Errno::INTR) => {}
                Err(e) => {
                    // The thread that passes the bytes on knows better why they are not taken.
                    if let Stream::Relayed(_, relay) = &self.stream {
                        relay.end()?;
                    }
                    return Err(e.into());
                }
            }
        }
        Ok(())
    }
}

/// Connects to a socket whose owner may be too busy to accept: without a limit of time the kernel
/// waits for a place in the queue of those who want to connect.
fn connect_unix(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(timeout))?;
    let address = SocketAddrUnix::new(path)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(e) => return Err(e.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_write_timeout(None)?;
    Ok(stream)
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Unix(s) | Stream::Relayed(s, _) => s.as_fd(),
            Stream::Tcp(s) => s.as_fd(),
        }
    }
}

/// How long the address of a process that ends may be in use: as long as the system takes to free its memory.
const ENDING: Duration = Duration::from_secs(2);

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket())
}

/// A socket that accepts connections.
#[derive(Debug)]
pub enum Listener {
    /// On this host.
    Unix(UnixListener),
    /// On a network.
    Tcp(TcpListener),
}

impl Listener {
    /// Listens. A Unix socket left behind by a dead process is replaced; a live one is refused, and so is any other file.
    ///
    /// A killed process gives its locks and its sockets back one after another, and its memory in between: its
    /// successor may be here first. So an address in use is tried again for two seconds before it is refused.
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing tells when another process has given its address back"
    )]
    pub fn bind(endpoint: &Endpoint) -> io::Result<Listener> {
        let deadline = Instant::now() + ENDING;
        loop {
            match Listener::try_bind(endpoint) {
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                    let is_other_file =
                        matches!(endpoint, Endpoint::Unix(path) if !is_socket(path));
                    if is_other_file || Instant::now() >= deadline {
                        return Err(e);
                    }
                    std::thread::sleep(ENDING / 100);
                }
                other => return other,
            }
        }
    }

    fn try_bind(endpoint: &Endpoint) -> io::Result<Listener> {
        match endpoint {
            Endpoint::Unix(path) => match UnixListener::bind(path) {
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                    if !is_socket(path) || UnixStream::connect(path).is_ok() {
                        return Err(e);
                    }
                    std::fs::remove_file(path)?;
                    UnixListener::bind(path).map(Listener::Unix)
                }
                other => other.map(Listener::Unix),
            },
            Endpoint::Tcp { host, port } => {
                TcpListener::bind((host.as_str(), *port)).map(Listener::Tcp)
            }
        }
    }

    /// Waits for the next connection.
    pub fn accept(&self) -> io::Result<Link> {
        match self {
            Listener::Unix(l) => Ok(Link::unix(l.accept()?.0)),
            Listener::Tcp(l) => Link::tcp(l.accept()?.0),
        }
    }

    /// Accepts nobody any more; a thread that waits in [`Listener::accept`] gets an error.
    pub fn close(&self) {
        let both = rustix::net::Shutdown::Both;
        // A listener that is closed already is as closed as it can be.
        let _ = match self {
            Listener::Unix(l) => rustix::net::shutdown(l, both),
            Listener::Tcp(l) => rustix::net::shutdown(l, both),
        };
    }

    /// Where it listens, with the port it was given.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        match self {
            Listener::Unix(l) => {
                let path = l
                    .local_addr()?
                    .as_pathname()
                    .map(Into::into)
                    .unwrap_or_default();
                Ok(Endpoint::Unix(path))
            }
            Listener::Tcp(l) => {
                let address = l.local_addr()?;
                Ok(Endpoint::Tcp {
                    host: address.ip().to_string(),
                    port: address.port(),
                })
            }
        }
    }
}
