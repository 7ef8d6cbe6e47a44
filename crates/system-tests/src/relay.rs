//! A network that turns bits: a relay in front of a server, which reads frames and changes payloads on their way.
//!
//! Headers and control parts pass as they are; a seal behind a payload as well. What is changed is one bit in the middle of a
//! payload, in one direction, as often as the test says.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use wire::frame::{HEADER_BYTES, Header};
use wire::seal::SEAL_BYTES;

/// Payloads below this are left alone.
const SHORTEST: u64 = 512;

/// Where payloads go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the server: what is written.
    ToServer,
    /// From the server: what is read.
    FromServer,
}

#[derive(Debug, Default)]
struct State {
    target: Option<SocketAddr>,
    flips: Option<(Direction, u64)>,
    flipped: u64,
}

/// See the [module](self). Connections end with their peers.
#[derive(Clone, Debug)]
pub struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Relay {
    /// Listens; [`Relay::lead_to`] says where it leads.
    pub fn start() -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let relay = Relay {
            address: listener.local_addr().expect("an address"),
            state: Arc::default(),
        };
        let theirs = relay.clone();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let target = theirs.lock().target;
                if let Some(far) = target.and_then(|t| TcpStream::connect(t).ok()) {
                    theirs.join(near, far);
                }
            }
        });
        relay
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections from now on lead there.
    pub fn lead_to(&self, target: SocketAddr) {
        self.lock().target = Some(target);
    }

    /// Turns a bit in each of the next payloads.
    pub fn flip(&self, direction: Direction, times: u64) {
        self.lock().flips = Some((direction, times));
    }

    /// How many were turned.
    pub fn flipped(&self) -> u64 {
        self.lock().flipped
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, near: TcpStream, far: TcpStream) {
        let ends = near.try_clone().and_then(|n| Ok((n, far.try_clone()?)));
        let Ok((near_too, far_too)) = ends else {
            return;
        };
        for (from, to, direction) in [
            (near, far, Direction::ToServer),
            (far_too, near_too, Direction::FromServer),
        ] {
            let relay = self.clone();
            thread::spawn(move || {
                let _ = relay.pass(&from, &to, direction);
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    }

    /// Passes frames until an end closes.
    fn pass(
        &self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        direction: Direction,
    ) -> io::Result<()> {
        to.set_nodelay(true)?;
        let mut frame = Vec::new();
        loop {
            let mut head = [0; HEADER_BYTES];
            from.read_exact(&mut head)?;
            let header = Header::decode(&head).map_err(io::Error::other)?;
            let seal = if header.is_sealed() { SEAL_BYTES } else { 0 };
            let control = header.control_bytes as usize;
            frame.clear();
            frame.extend_from_slice(&head);
            frame.resize(
                HEADER_BYTES + control + header.payload_bytes as usize + seal,
                0,
            );
            from.read_exact(&mut frame[HEADER_BYTES..])?;
            if header.payload_bytes >= SHORTEST && self.is_due(direction) {
                let middle = HEADER_BYTES + control + header.payload_bytes as usize / 2;
                frame[middle] ^= 0x10;
            }
            to.write_all(&frame)?;
        }
    }

    fn is_due(&self, direction: Direction) -> bool {
        let mut state = self.lock();
        match &mut state.flips {
            Some((wanted, times)) if *wanted == direction && *times > 0 => {
                *times -= 1;
                state.flipped += 1;
                true
            }
            _ => false,
        }
    }
}
