//! What travels on a connection between two members.
//!
//! ```text
//!  hello   0        8      12      16                 48                80
//!          | magic  | from |  to   | random           | seal            |   once, in front
//!  frame   0      1           2     4       8               16          24
//!          | kind | operation | 0   | check | tag or round  | length    |   then its bytes
//! ```
//!
//! Numbers are little-endian. The seal is over both ranks and the random bytes, under the secret of the meeting; the check
//! is the CRC-32C of the bytes over plain TCP, else 0.

use control::capability::{seal, seals_equal};

use super::peer::{Stream, check};

pub(super) const HELLO_BYTES: usize = 80;
pub(super) const HEAD_BYTES: usize = 24;
const MAGIC: &[u8; 8] = b"pario-t1";

/// The longest message, so that a wrong length is not taken for one.
const MOST_BYTES: u64 = 1 << 40;

/// The longest reason of a goodbye.
pub(super) const REASON_BYTES: usize = 4096;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message with a tag.
    Message = 1,
    /// A part of a collective operation; the tag is its round.
    Part = 2,
    /// The member leaves; the bytes say why, if the team is broken.
    Goodbye = 3,
}

/// Collective operations, which members must not mix up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    None = 0,
    Allgather = 1,
    Exchange = 2,
    Broadcast = 3,
    Gather = 4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) operation: u8,
    pub(super) check: u32,
    pub(super) tag: u64,
    pub(super) len: u64,
}

impl Head {
    /// In front of the parts, on a connection.
    pub(super) fn new(
        kind: Kind,
        operation: Operation,
        tag: u64,
        parts: &[&[u8]],
        on: &Stream,
    ) -> Head {
        Head {
            kind,
            operation: operation as u8,
            check: if on.is_checked() { check(parts) } else { 0 },
            tag,
            len: parts.iter().map(|part| part.len() as u64).sum(),
        }
    }

    pub(super) fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut out = [0; HEAD_BYTES];
        out[0] = self.kind as u8;
        out[1] = self.operation;
        out[4..8].copy_from_slice(&self.check.to_le_bytes());
        out[8..16].copy_from_slice(&self.tag.to_le_bytes());
        out[16..].copy_from_slice(&self.len.to_le_bytes());
        out
    }

    /// Nothing if these bytes are no head.
    pub(super) fn decode(bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        let kind = match bytes[0] {
            1 => Kind::Message,
            2 => Kind::Part,
            3 => Kind::Goodbye,
            _ => return None,
        };
        let head = Head {
            kind,
            operation: bytes[1],
            check: u32::from_le_bytes(*bytes[4..].first_chunk()?),
            tag: u64::from_le_bytes(*bytes[8..].first_chunk()?),
            len: u64::from_le_bytes(*bytes[16..].first_chunk()?),
        };
        let most = match kind {
            Kind::Goodbye => REASON_BYTES as u64,
            _ => MOST_BYTES,
        };
        (head.len <= most && head.encode() == *bytes).then_some(head)
    }
}

/// What a member says first to another.
pub(super) fn hello(secret: &[u8; 32], from: usize, to: usize) -> [u8; HELLO_BYTES] {
    let mut out = [0; HELLO_BYTES];
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&(from as u32).to_le_bytes());
    out[12..16].copy_from_slice(&(to as u32).to_le_bytes());
    out[16..48].copy_from_slice(&identity::random());
    let (said, sealed) = out.split_at_mut(48);
    sealed.copy_from_slice(&seal(secret, &[said]));
    out
}

/// Which member of `size` says hello to rank `to`; nothing if it is none.
pub(super) fn caller(secret: &[u8; 32], bytes: &[u8], to: usize, size: usize) -> Option<usize> {
    let (said, sealed) = bytes.split_at_checked(48)?;
    let number = |at: usize| Some(u32::from_le_bytes(*said[at..].first_chunk()?) as usize);
    let is_ours = said.starts_with(MAGIC) && number(12) == Some(to);
    let from = number(8).filter(|&from| is_ours && from < size && from != to)?;
    seals_equal(sealed, &seal(secret, &[said])).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_hellos_are_read_back_and_nothing_else_is() {
        let head = Head {
            kind: Kind::Message,
            operation: Operation::None as u8,
            check: 7,
            tag: u64::MAX,
            len: 1 << 33,
        };
        let bytes = head.encode();
        assert_eq!(Head::decode(&bytes), Some(head));
        for (at, value) in [(0, 0), (0, 9), (2, 1), (3, 1), (23, 1)] {
            let mut wrong = bytes;
            wrong[at] = value;
            assert_eq!(Head::decode(&wrong), None, "byte {at}");
        }
        let said = hello(&[1; 32], 2, 5);
        assert_eq!(caller(&[1; 32], &said, 5, 6), Some(2));
        assert_eq!(caller(&[2; 32], &said, 5, 6), None);
        assert_eq!(caller(&[1; 32], &said, 4, 6), None);
        assert_eq!(caller(&[1; 32], &said, 5, 2), None);
        for at in 0..HELLO_BYTES {
            let mut wrong = said;
            wrong[at] ^= 1;
            assert_eq!(caller(&[1; 32], &wrong, 5, 6), None, "byte {at}");
        }
    }
}
