//! Seals: checksums of payloads on their way.
//!
//! ```text
//!  header (flag SEALED) | control | payload | CRC-32C of the payload, 4 bytes, little endian
//! ```
//!
//! A frame with a payload and the flag [`SEALED`] is followed by its seal, which its length does not count. A request with
//! the flag wants its answers sealed. Who asks decides, connection by connection: over TCP always unless told
//! otherwise, over Unix sockets, which are memory of the host, only if told.
//!
//! A seal that does not fit is [`Status::Damaged`](crate::Status::Damaged) or the error of a read; the connection is in step
//! and goes on, since lengths are sealed with the header. Bytes are safe from the memory of the sender to that of the receiver;
//! what happens in either memory before and after is not covered.

use kernels::{Crc32c, SharedBytes};

/// Flag of any frame: its payload is followed by a seal, and so are the payloads of answers to it.
pub const SEALED: u16 = 1 << 13;
/// Bytes of a seal.
pub const SEAL_BYTES: usize = 4;
/// Bytes that are looked at before they are sent, or after they have come: few enough to be in the second cache both times.
pub const LOOK_BYTES: usize = 512 << 10;

/// The checksum of a payload that is sent or received in parts.
///
/// ```
/// use wire::seal::Seal;
/// let (mut sent, mut received) = (Seal::new(), Seal::new());
/// sent.add(&b"some bytes"[..]);
/// received.add(&b"some "[..]);
/// received.add(&b"bytes"[..]);
/// assert!(received.fits(sent.bytes()));
/// received.add(&b"!"[..]);
/// assert!(!received.fits(sent.bytes()));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Seal(Crc32c);

impl Seal {
    /// Of no bytes.
    pub fn new() -> Self {
        Seal(Crc32c::new())
    }

    /// Adds the next bytes, as they are now.
    pub fn add<'a>(&mut self, bytes: impl Into<SharedBytes<'a>>) {
        self.0.add(bytes.into());
    }

    /// What follows the payload.
    pub fn bytes(&self) -> [u8; SEAL_BYTES] {
        self.0.value().to_le_bytes()
    }

    /// Whether this came behind the payload.
    pub fn fits(&self, came: [u8; SEAL_BYTES]) -> bool {
        self.bytes() == came
    }
}
