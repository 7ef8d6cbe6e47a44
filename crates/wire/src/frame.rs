//! Frames: a fixed header, a control part, a payload.
//!
//! ```text
//!  0        4       6       8       10      12          16         24          32        36    40
//!  | "PARI" | vers. | kind  | status| flags | control len| request  | payload len| crc    | pad |
//!  control bytes (described by the kind), then payload bytes (file data, in ascending file order)
//! ```
//!
//! Little endian. The checksum (CRC-32C) covers the header without itself and the control part, so
//! that a damaged length or description is noticed before it is believed; file data has its own
//! checksums where it is stored, and on its way over a network ([`crate::seal`]). Lengths are bounded before anything is read or allocated.

use crc_fast::{CrcAlgorithm, Digest};

use crate::status::Status;

/// Version of framing and messages.
pub const VERSION: u16 = 5;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 40;
/// Longest control part of one frame.
pub const MAX_CONTROL_BYTES: u32 = 1 << 20;
/// Longest control part of a message in several frames: layouts with irregular patterns have long descriptions.
pub const MAX_LONG_CONTROL_BYTES: usize = 64 << 20;
/// Longest payload of one frame; longer accesses run in rounds.
pub const MAX_PAYLOAD_BYTES: u64 = 1 << 30;

/// The control part goes on in the next frame, which has the same kind and request. Only the last frame has a payload.
pub const CONTINUED: u16 = 1 << 14;
/// In requests to the metadata manager: it was sent before under the same number, over a connection that broke.
pub const REPEATED: u16 = 1 << 15;

const MAGIC: [u8; 4] = *b"PARI";
const CRC_AT: usize = 32;

/// The fixed part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the control part means; requests and answers share the number.
    pub kind: u16,
    /// Outcome, in answers.
    pub status: Status,
    /// Bits that the kind defines, and [`SEALED`](crate::seal::SEALED).
    pub flags: u16,
    /// Ties an answer to its request.
    pub request: u64,
    /// Bytes of the control part.
    pub control_bytes: u32,
    /// Bytes of the payload, without its seal.
    pub payload_bytes: u64,
}

/// Why a header was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not a frame at all.
    #[error("the peer does not speak this protocol")]
    NotPario,
    /// Another version; carries it.
    #[error("the peer speaks version {0} of the protocol, this is version {VERSION}")]
    Version(u16),
    /// A length above its bound.
    #[error("the frame is larger than allowed")]
    TooLarge,
    /// A status this version does not know.
    #[error("status {0} is unknown")]
    UnknownStatus(u16),
    /// Padding that is not zero.
    #[error("reserved bytes are not zero")]
    Reserved,
    /// The checksum does not match.
    #[error("the checksum of the frame does not match")]
    Checksum,
}

impl FrameError {
    /// The status with which to answer.
    pub fn status(self) -> Status {
        match self {
            FrameError::Version(_) => Status::WrongVersion,
            FrameError::TooLarge => Status::TooLarge,
            _ => Status::Malformed,
        }
    }
}

impl Header {
    /// Whether a seal follows the payload.
    pub fn is_sealed(&self) -> bool {
        self.flags & crate::seal::SEALED != 0 && self.payload_bytes > 0
    }

    /// The header as bytes, sealed together with its control part.
    ///
    /// # Panics
    /// If `control` is not as long as the header says: a bug of the sender.
    pub fn encode(&self, control: &[u8]) -> [u8; HEADER_BYTES] {
        assert_eq!(
            control.len(),
            self.control_bytes as usize,
            "control part and header disagree"
        );
        let mut out = [0; HEADER_BYTES];
        out[0..4].copy_from_slice(&MAGIC);
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        out[6..8].copy_from_slice(&self.kind.to_le_bytes());
        out[8..10].copy_from_slice(&self.status.code().to_le_bytes());
        out[10..12].copy_from_slice(&self.flags.to_le_bytes());
        out[12..16].copy_from_slice(&self.control_bytes.to_le_bytes());
        out[16..24].copy_from_slice(&self.request.to_le_bytes());
        out[24..32].copy_from_slice(&self.payload_bytes.to_le_bytes());
        let crc = checksum(&out, control);
        out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Refuses lengths above their bounds.
    pub fn check_bounds(&self) -> Result<(), FrameError> {
        if self.control_bytes > MAX_CONTROL_BYTES || self.payload_bytes > MAX_PAYLOAD_BYTES {
            return Err(FrameError::TooLarge);
        }
        Ok(())
    }

    /// Reads and bounds a header. The control part is not known yet; [`Header::verify`] follows.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, FrameError> {
        if bytes[0..4] != MAGIC {
            return Err(FrameError::NotPario);
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let status = Status::from_code(half(8)).ok_or(FrameError::UnknownStatus(half(8)))?;
        let control_bytes = u32::from_le_bytes(bytes[12..16].try_into().expect("four"));
        let payload_bytes = word(24);
        if bytes[CRC_AT + 4..] != [0; 4] {
            return Err(FrameError::Reserved);
        }
        let header = Header {
            kind: half(6),
            status,
            flags: half(10),
            request: word(16),
            control_bytes,
            payload_bytes,
        };
        header.check_bounds()?;
        Ok(header)
    }

    /// Checks the seal over the header as received and its control part.
    pub fn verify(bytes: &[u8; HEADER_BYTES], control: &[u8]) -> Result<(), FrameError> {
        let stored = u32::from_le_bytes(bytes[CRC_AT..CRC_AT + 4].try_into().expect("four"));
        if checksum(bytes, control) == stored {
            Ok(())
        } else {
            Err(FrameError::Checksum)
        }
    }
}

fn checksum(header: &[u8; HEADER_BYTES], control: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&header[..CRC_AT]);
    digest.update(control);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Header = Header {
        kind: 0x0102,
        status: Status::StaleLayout,
        flags: 3,
        request: 0x1122_3344_5566_7788,
        control_bytes: 4,
        payload_bytes: 65536,
    };

    #[test]
    fn golden_header() {
        let bytes = SAMPLE.encode(b"abcd");
        let text: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            text,
            "5041524905000201110003000400000088776655443322110000010000000000\
             89a9f84500000000"
                .replace(char::is_whitespace, "")
        );
        assert_eq!(Header::decode(&bytes), Ok(SAMPLE));
        assert_eq!(Header::verify(&bytes, b"abcd"), Ok(()));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = SAMPLE.encode(b"abcd");
        for bit in 0..HEADER_BYTES * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            let seen = Header::decode(&bad).and_then(|_| Header::verify(&bad, b"abcd"));
            assert!(seen.is_err(), "bit {bit}");
        }
        assert_eq!(Header::verify(&bytes, b"abce"), Err(FrameError::Checksum));
    }

    #[test]
    fn bounds_are_checked_before_anything_is_read() {
        let mut bytes = SAMPLE.encode(b"abcd");
        bytes[12..16].copy_from_slice(&(MAX_CONTROL_BYTES + 1).to_le_bytes());
        assert_eq!(Header::decode(&bytes), Err(FrameError::TooLarge));
        let mut bytes = SAMPLE.encode(b"abcd");
        bytes[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Header::decode(&bytes), Err(FrameError::TooLarge));
        let mut bytes = SAMPLE.encode(b"abcd");
        bytes[4] = 9;
        assert_eq!(
            Header::decode(&bytes).unwrap_err().status(),
            Status::WrongVersion
        );
        assert_eq!(
            Header::decode(&[7; HEADER_BYTES]),
            Err(FrameError::NotPario)
        );
    }

    #[test]
    fn lengths_up_to_their_bounds_are_taken() {
        let header = |control_bytes, payload_bytes| Header {
            control_bytes,
            payload_bytes,
            ..SAMPLE
        };
        let (control, payload) = (MAX_CONTROL_BYTES, MAX_PAYLOAD_BYTES);
        assert_eq!(header(control, payload).check_bounds(), Ok(()));
        for above in [header(control + 1, 0), header(0, payload + 1)] {
            let refused = above.check_bounds().unwrap_err();
            assert_eq!(refused.status(), Status::TooLarge);
        }
    }
}
