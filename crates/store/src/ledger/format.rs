//! The bytes of a ledger: header, words, batches, changes. Down to the byte in `docs/formats/ledger.md`.
//!
//! Invariants
//! - Every bit that counts is covered: the header and each batch by a CRC-32C, each word by a check of its own. A batch also
//!   checks where it lies and in which life it was written.
//! - What is decoded was found inside the bytes that it was decoded from.

use crate::disk::crc32c;
use crate::error::{Error, Result};

/// The header is one page.
pub(super) const PAGE: u64 = 4096;
/// Where the first area begins.
pub(super) const AREA_AT: u64 = PAGE;
/// Bytes before the body of a batch.
pub(super) const PREFIX: u64 = 8;
/// Most bytes of a key.
pub const MAX_KEY: usize = 30;
/// Most bytes of a value.
pub const MAX_VALUE: usize = REMOVED as usize - 1;
/// In the place of the area that counts: none does.
pub(super) const VOID: u64 = 2;

const MAGIC: &[u8; 8] = b"PARIOLED";
const VERSION: u16 = 1;
/// In the place of the length of a value: the entry is removed.
const REMOVED: u16 = u16::MAX;

const STAMP_AT: usize = 64;
const MAX_STAMP: usize = 1024;
/// The part of the header that never changes.
const STILL: usize = 2048;

/// Words hold numbers of so many bits, and a check above them.
const WORD_BITS: u32 = 40;

/// An error about a ledger that is not adopted.
pub(crate) fn refuse(why: impl Into<String>) -> Error {
    Error::Format {
        name: super::LEDGER_NAME.to_owned(),
        why: why.into(),
    }
}

/// The part of the header that never changes, without the stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) life: u64,
    pub(super) area_bytes: u64,
}

impl Header {
    pub(super) fn encode(&self, stamp: &[u8]) -> Result<Vec<u8>> {
        if stamp.len() > MAX_STAMP {
            let why = format!("{} bytes; at most {MAX_STAMP} fit", stamp.len());
            return Err(Error::argument("stamp", why));
        }
        let mut page = vec![0; PAGE as usize];
        page[0..8].copy_from_slice(MAGIC);
        page[8..10].copy_from_slice(&VERSION.to_le_bytes());
        page[10..12].copy_from_slice(&(stamp.len() as u16).to_le_bytes());
        page[16..24].copy_from_slice(&self.life.to_le_bytes());
        page[24..32].copy_from_slice(&self.area_bytes.to_le_bytes());
        page[STAMP_AT..STAMP_AT + stamp.len()].copy_from_slice(stamp);
        let crc = crc32c(&page[..STILL]);
        page[12..16].copy_from_slice(&crc.to_le_bytes());
        Ok(page)
    }

    pub(super) fn decode(page: &[u8], stamp: &[u8]) -> Result<Header> {
        if &page[0..8] != MAGIC {
            return Err(refuse("is no ledger"));
        }
        let version = u16_at(page, 8);
        if version != VERSION {
            let why = format!("has version {version}; this program reads {VERSION}");
            return Err(refuse(why));
        }
        let mut still = page[..STILL].to_vec();
        still[12..16].fill(0);
        if crc32c(&still).to_le_bytes() != page[12..16] {
            return Err(refuse("has a damaged header"));
        }
        let found = STAMP_AT..STAMP_AT + usize::from(u16_at(page, 10));
        if page[..STILL].get(found) != Some(stamp) {
            return Err(refuse(
                "belongs to another server, or to another boot of this host",
            ));
        }
        let area_bytes = u64_at(page, 24);
        let is_right = area_bytes.is_multiple_of(PAGE) && (1..1 << WORD_BITS).contains(&area_bytes);
        if !is_right {
            return Err(refuse("has areas of an impossible size"));
        }
        Ok(Header {
            life: u64_at(page, 16),
            area_bytes,
        })
    }
}

/// A word of the header that changes by one store.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// The area that counts.
    Area,
    /// Bytes of an area that count.
    Head(u64),
}

impl Word {
    /// Where it is.
    pub(super) fn at(self) -> u64 {
        match self {
            Word::Area => 2048,
            Word::Head(area) => 2056 + area * 8,
        }
    }

    /// A number with the check that belongs to this word and life.
    pub(super) fn seal(self, value: u64, life: u64) -> u64 {
        debug_assert!(value < 1 << WORD_BITS);
        let check = random::mix(life ^ random::mix(value ^ self.at() << WORD_BITS));
        check >> WORD_BITS << WORD_BITS | value
    }

    /// The number, if its check is right.
    pub(super) fn open(self, word: u64, life: u64) -> Option<u64> {
        let value = word & ((1 << WORD_BITS) - 1);
        (self.seal(value, life) == word).then_some(value)
    }
}

/// Kind and key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    kind: u8,
    len: u8,
    bytes: [u8; MAX_KEY],
}

impl Key {
    pub(super) fn new(kind: u8, key: &[u8]) -> Key {
        let mut bytes = [0; MAX_KEY];
        bytes[..key.len()].copy_from_slice(key);
        Key {
            kind,
            len: key.len() as u8,
            bytes,
        }
    }

    pub(super) fn kind(&self) -> u8 {
        self.kind
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Changes that are made together or not at all. It keeps its capacity when it is cleared.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The body, without its padding except when it is written.
    bytes: Vec<u8>,
}

impl Batch {
    /// No change.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Whether there is no change.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Gives an entry a value, whether there is one or not.
    ///
    /// # Panics
    /// If the kind is 0, the key longer than [`MAX_KEY`] or the value longer than [`MAX_VALUE`].
    pub fn set(&mut self, kind: u8, key: &[u8], value: &[u8]) {
        assert!(value.len() <= MAX_VALUE, "a value of {} bytes", value.len());
        self.begin(kind, key, value.len() as u16);
        self.bytes.extend_from_slice(value);
    }

    /// Removes an entry, if there is one.
    ///
    /// # Panics
    /// If the kind is 0 or the key longer than [`MAX_KEY`].
    pub fn remove(&mut self, kind: u8, key: &[u8]) {
        self.begin(kind, key, REMOVED);
    }

    fn begin(&mut self, kind: u8, key: &[u8], value: u16) {
        assert!(kind > 0, "kind 0 marks the end of a batch");
        assert!(key.len() <= MAX_KEY, "a key of {} bytes", key.len());
        let [low, high] = value.to_le_bytes();
        self.bytes
            .extend_from_slice(&[kind, key.len() as u8, low, high]);
        self.bytes.extend_from_slice(key);
    }

    /// Its changes, without padding.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that it takes in a journal.
    pub(super) fn encoded_len(&self) -> u64 {
        PREFIX + (self.bytes.len() as u64).next_multiple_of(8)
    }

    /// Its bytes, for a place in a journal of a life.
    pub(super) fn encode(&self, at: u64, life: u64, target: &mut Vec<u8>) {
        target.clear();
        target.resize(PREFIX as usize, 0);
        target.extend_from_slice(&self.bytes);
        target.resize(self.encoded_len() as usize, 0);
        let prefix = prefix(&target[PREFIX as usize..], at, life);
        target[..PREFIX as usize].copy_from_slice(&prefix);
    }
}

/// What stands before a padded body at a place.
pub(super) fn prefix(body: &[u8], at: u64, life: u64) -> [u8; PREFIX as usize] {
    let len = body.len() as u32;
    let place = random::mix(life ^ random::mix(at ^ u64::from(len) << WORD_BITS));
    let crc = crc32c(body) ^ (place >> 32) as u32;
    let mut bytes = [0; PREFIX as usize];
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    bytes[4..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// How long the body behind a prefix is.
pub(super) fn body_len(prefix: &[u8; PREFIX as usize]) -> u64 {
    u64::from(u32_at(prefix, 0))
}

/// Bytes that a change takes.
pub(super) fn change_len(key: usize, value: u16) -> u64 {
    4 + key as u64 + u64::from(value)
}

/// A change, as it is found in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) key: Key,
    /// Where its value is in the body, and its length; `None` if the entry is removed.
    pub(super) value: Option<(usize, u16)>,
}

/// The changes of a body, with or without padding; `None` once, for what is none.
pub(super) fn changes(body: &[u8]) -> impl Iterator<Item = Option<Change>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &body[at..];
        if rest.len() < 8 && rest.iter().all(|&byte| byte == 0) {
            return None;
        }
        let found = read_change(rest);
        at = match &found {
            Some((_, len)) => at + len,
            None => body.len(),
        };
        let begin = at;
        Some(found.map(|(mut change, len)| {
            if let Some((offset, _)) = &mut change.value {
                *offset += begin - len;
            }
            change
        }))
    })
}

/// The change at the begin of some bytes, and how many of them it takes.
fn read_change(bytes: &[u8]) -> Option<(Change, usize)> {
    let (&[kind, key_len, low, high], rest) = bytes.split_first_chunk::<4>()?;
    let key = rest.get(..usize::from(key_len))?;
    if kind == 0 || key.len() > MAX_KEY {
        return None;
    }
    let begin = 4 + key.len();
    let value = match u16::from_le_bytes([low, high]) {
        REMOVED => None,
        len => Some((begin, len)),
    };
    let end = begin + value.map_or(0, |(_, len)| usize::from(len));
    let key = Key::new(kind, key);
    (end <= bytes.len()).then_some((Change { key, value }, end))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
