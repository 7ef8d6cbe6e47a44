//! What the store writes into the ledger: kinds, keys and values. Down to the byte in `docs/formats/ledger.md`.
//!
//! Keys are big endian, so that entries of a subfile come one behind the other and ascend.
//!
//! Invariant: what is read was written by this version of the store; anything else is refused, and nothing is adopted then.

use super::format::refuse;
use super::{Batch, Ledger};
use crate::blocks::Blocks;
use crate::error::Result;
use crate::identity::{Domain, Identity, NOTE_BYTES, SubfileId};
use crate::pool::{CHUNK, Extent, UNIT};

/// A segment: its domain, if it has one.
const SEGMENT: u8 = 1;
/// A subfile by its number in this ledger: in which store, who it is.
const SUBFILE: u8 = 2;
/// Its length, if that is not 0.
const LENGTH: u8 = 3;
/// An extent of it, by its first byte: where it is, and which of its blocks count.
const EXTENT: u8 = 4;
/// Memory that a client may store into although no subfile has it any more.
const ASIDE: u8 = 5;
/// The number of the next segment: none is given twice.
const NEXT_SEGMENT: u8 = 6;

/// Which store a subfile belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Memory,
    Disk,
}

/// A piece of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) segment: u64,
    pub(crate) at: u64,
    pub(crate) len: u64,
}

impl Memory {
    pub(crate) fn of(extent: &Extent) -> Memory {
        Memory {
            segment: extent.segment().id(),
            at: extent.segment_offset(),
            len: extent.len(),
        }
    }

    fn key(self) -> [u8; 16] {
        pair(self.segment, self.at)
    }

    fn encode(self) -> [u8; 17] {
        let mut bytes = [0; 17];
        bytes[..8].copy_from_slice(&self.segment.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.at.to_le_bytes());
        bytes[16] = (self.len / UNIT).trailing_zeros() as u8;
        bytes
    }

    fn new(segment: u64, at: u64, class: u8) -> Result<Memory> {
        let len = UNIT.checked_shl(class.into()).unwrap_or(u64::MAX);
        match len <= CHUNK && at.is_multiple_of(len) {
            true => Ok(Memory { segment, at, len }),
            false => Err(refuse("has an extent at an impossible place")),
        }
    }
}

/// An extent of a subfile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtentEntry {
    /// Number of the subfile.
    pub(crate) subfile: u64,
    /// Its first byte there.
    pub(crate) start: u64,
    pub(crate) memory: Memory,
    /// The blocks that count; `None` if all of them do.
    pub(crate) blocks: Option<Blocks>,
}

/// A subfile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubfileEntry {
    pub(crate) number: u64,
    pub(crate) identity: Identity,
    pub(crate) len: Option<u64>,
}

impl Batch {
    pub(crate) fn set_segment(&mut self, id: u64, domain: Option<Domain>) {
        match domain {
            None => self.set(SEGMENT, &id.to_be_bytes(), &[]),
            Some(domain) => self.set(SEGMENT, &id.to_be_bytes(), &domain_bytes(&domain)),
        }
    }

    pub(crate) fn remove_segment(&mut self, id: u64) {
        self.remove(SEGMENT, &id.to_be_bytes());
    }

    pub(crate) fn set_next_segment(&mut self, id: u64) {
        self.set(NEXT_SEGMENT, &[], &id.to_le_bytes());
    }

    pub(crate) fn set_subfile(&mut self, number: u64, kind: StoreKind, identity: &Identity) {
        let id = &identity.id;
        let mut value = Vec::with_capacity(64 + identity.note.len());
        value.push(match kind {
            StoreKind::Memory => 0,
            StoreKind::Disk => 1,
        });
        value.extend_from_slice(&id.file.to_le_bytes());
        value.extend_from_slice(&id.generation.to_le_bytes());
        value.extend_from_slice(&id.index.to_le_bytes());
        value.extend_from_slice(&identity.incarnation.to_le_bytes());
        value.extend_from_slice(&domain_bytes(&identity.domain));
        value.extend_from_slice(&identity.note);
        self.set(SUBFILE, &number.to_be_bytes(), &value);
    }

    /// Removes a subfile and its length.
    pub(crate) fn remove_subfile(&mut self, number: u64) {
        self.remove(SUBFILE, &number.to_be_bytes());
        self.remove(LENGTH, &number.to_be_bytes());
    }

    pub(crate) fn set_length(&mut self, number: u64, len: u64) {
        self.set(LENGTH, &number.to_be_bytes(), &len.to_le_bytes());
    }

    /// An extent all of whose bytes count.
    pub(crate) fn set_extent(&mut self, number: u64, start: u64, memory: Memory) {
        self.set(EXTENT, &pair(number, start), &memory.encode());
    }

    /// An extent some of whose blocks count.
    pub(crate) fn set_blocks(&mut self, number: u64, start: u64, memory: Memory, blocks: &Blocks) {
        let mut value = [0; 17 + Blocks::BYTES];
        value[..17].copy_from_slice(&memory.encode());
        let words = blocks.to_bytes();
        value[17..].copy_from_slice(&words);
        let used = 17 + memory.len.div_ceil(crate::BLOCK * 8) as usize;
        self.set(EXTENT, &pair(number, start), &value[..used]);
    }

    pub(crate) fn remove_extent(&mut self, number: u64, start: u64) {
        self.remove(EXTENT, &pair(number, start));
    }

    pub(crate) fn set_aside(&mut self, memory: Memory) {
        let class = (memory.len / UNIT).trailing_zeros() as u8;
        self.set(ASIDE, &memory.key(), &[class]);
    }

    pub(crate) fn remove_aside(&mut self, memory: Memory) {
        self.remove(ASIDE, &memory.key());
    }
}

impl Ledger {
    /// All segments with their domains.
    pub(crate) fn segments(&self) -> Result<Vec<(u64, Option<Domain>)>> {
        let entries = self.entries(SEGMENT).into_iter().map(|(key, value)| {
            let mut value = Reader(&value);
            let domain = match value.is_at_end() {
                true => None,
                false => Some(value.domain()?),
            };
            value.end()?;
            Ok((number_of(&key)?, domain))
        });
        entries.collect()
    }

    pub(crate) fn next_segment(&self) -> Result<u64> {
        match self.get(NEXT_SEGMENT, &[]) {
            Some(value) => Reader(&value).u64(),
            None => Ok(0),
        }
    }

    /// All subfiles of a store.
    pub(crate) fn subfiles(&self, kind: StoreKind) -> Result<Vec<SubfileEntry>> {
        let mut found = Vec::new();
        for (key, value) in self.entries(SUBFILE) {
            let mut value = Reader(&value);
            let of = match value.u8()? {
                0 => StoreKind::Memory,
                1 => StoreKind::Disk,
                _ => return Err(refuse("has a subfile of an unknown store")),
            };
            let id = SubfileId {
                file: value.u64()?,
                generation: value.u64()?,
                index: value.u32()?,
            };
            let (incarnation, domain) = (value.u64()?, value.domain()?);
            let identity = Identity {
                id,
                domain,
                incarnation,
                note: value.rest(NOTE_BYTES)?,
            };
            if of == kind {
                let len = match self.get(LENGTH, &key) {
                    Some(len) => Some(Reader(&len).u64()?),
                    None => None,
                };
                found.push(SubfileEntry {
                    number: number_of(&key)?,
                    identity,
                    len,
                });
            }
        }
        Ok(found)
    }

    /// The number that the next subfile gets.
    pub(crate) fn next_subfile(&self) -> Result<u64> {
        match self.entries(SUBFILE).last() {
            Some((key, _)) => Ok(number_of(key)? + 1),
            None => Ok(0),
        }
    }

    /// All extents, ascending by subfile and place.
    pub(crate) fn extents(&self) -> Result<Vec<ExtentEntry>> {
        let entries = self.entries(EXTENT).into_iter().map(|(key, value)| {
            let (subfile, start) = pair_of(&key)?;
            let mut value = Reader(&value);
            let memory = Memory::new(value.u64()?, value.u64()?, value.u8()?)?;
            let blocks = match value.is_at_end() {
                true => None,
                false => Some(Blocks::of_bytes(&value.rest(Blocks::BYTES)?)),
            };
            if !start.is_multiple_of(memory.len) {
                return Err(refuse("has an extent at an impossible place"));
            }
            Ok(ExtentEntry {
                subfile,
                start,
                memory,
                blocks,
            })
        });
        entries.collect()
    }

    /// Memory that clients may still store into.
    pub(crate) fn asides(&self) -> Result<Vec<Memory>> {
        let entries = self.entries(ASIDE).into_iter().map(|(key, value)| {
            let (segment, at) = pair_of(&key)?;
            Memory::new(segment, at, Reader(&value).u8()?)
        });
        entries.collect()
    }
}

fn pair(first: u64, second: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&first.to_be_bytes());
    key[8..].copy_from_slice(&second.to_be_bytes());
    key
}

fn pair_of(key: &[u8]) -> Result<(u64, u64)> {
    let (first, second) = key.split_at_checked(8).ok_or_else(|| refuse(SHORT))?;
    Ok((number_of(first)?, number_of(second)?))
}

fn number_of(key: &[u8]) -> Result<u64> {
    let bytes = key.try_into().map_err(|_| refuse(SHORT))?;
    Ok(u64::from_be_bytes(bytes))
}

fn domain_bytes(domain: &Domain) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&domain.owner.to_le_bytes());
    bytes[4..8].copy_from_slice(&domain.group.to_le_bytes());
    bytes[8..12].copy_from_slice(&domain.mode.to_le_bytes());
    bytes[12..].copy_from_slice(&domain.directory.to_le_bytes());
    bytes
}

const SHORT: &str = "has an entry of a wrong length";

/// Takes a value apart.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk().ok_or_else(|| refuse(SHORT))?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8> {
        Ok(self.take::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn domain(&mut self) -> Result<Domain> {
        Ok(Domain {
            owner: self.u32()?,
            group: self.u32()?,
            mode: self.u32()?,
            directory: self.u64()?,
        })
    }

    fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn end(&self) -> Result<()> {
        match self.is_at_end() {
            true => Ok(()),
            false => Err(refuse(SHORT)),
        }
    }

    fn rest(&mut self, most: usize) -> Result<Vec<u8>> {
        match self.0.len() <= most {
            true => Ok(std::mem::take(&mut self.0).to_vec()),
            false => Err(refuse(SHORT)),
        }
    }
}
