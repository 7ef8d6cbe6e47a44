//! The bytes of a data file: where things lie, headers and group tables, encoded and decoded.
//!
//! ```text
//! 0        4096     8192                                  one group per MiB of subfile
//! | header | header | table | table | 256 blocks, side 0 | 256 blocks, side 1 | table | table | ...
//! ```
//!
//! Everything that can change has two places, so that a new version never overwrites the last
//! durable one. Which of the two counts is decided by numbers inside checksummed pages; the rules
//! are in [`super::file`], the byte-exact description in `docs/formats/disk-store.md`.
//!
//! Decoding accepts any bytes and gives a typed refusal.

use crate::blocks::BLOCK;
use crate::identity::{Domain, Identity, MAX_LEN, NOTE_BYTES, SubfileId};

/// Version this code writes and the only one it reads.
pub(crate) const VERSION: u16 = 1;
/// Bytes of a header and of a table.
pub(crate) const PAGE: usize = 4096;
/// Blocks of a group.
pub(crate) const GROUP_BLOCKS: usize = 256;
/// Subfile bytes of a group.
pub(crate) const GROUP_BYTES: u64 = GROUP_BLOCKS as u64 * BLOCK;

const HEADER_MAGIC: &[u8; 8] = b"PARIOSUB";
const TABLE_MAGIC: &[u8; 8] = b"PARIOGRP";
/// Two tables and two places for each block.
const GROUP_STRIDE: u64 = 2 * PAGE as u64 + 2 * GROUP_BYTES;
const FIRST_GROUP: u64 = 2 * PAGE as u64;
/// Groups that fit a 63-bit data file.
pub(crate) const MAX_GROUPS: u64 = (i64::MAX as u64 - FIRST_GROUP) / GROUP_STRIDE;

/// One of two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Zero,
    One,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Zero => Side::One,
            Side::One => Side::Zero,
        }
    }

    pub(crate) fn index(self) -> u64 {
        match self {
            Side::Zero => 0,
            Side::One => 1,
        }
    }
}

/// Where a header is.
pub(crate) fn header_at(side: Side) -> u64 {
    side.index() * PAGE as u64
}

/// Where a table of a group is.
pub(crate) fn table_at(group: u64, side: Side) -> u64 {
    FIRST_GROUP + group * GROUP_STRIDE + side.index() * PAGE as u64
}

/// Where a block of a group is.
pub(crate) fn block_at(group: u64, index: usize, side: Side) -> u64 {
    table_at(group, Side::Zero)
        + 2 * PAGE as u64
        + side.index() * GROUP_BYTES
        + index as u64 * BLOCK
}

/// The group that an offset of the data file belongs to; `None` for the headers.
pub(crate) fn group_of(file_offset: u64) -> Option<u64> {
    Some(file_offset.checked_sub(FIRST_GROUP)? / GROUP_STRIDE)
}

/// CRC-32C.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Checksum of a block: CRC-32C of its bytes, exclusive-or a number made of the data file's tag and
/// the block's number, so that a block that was written to the wrong place does not match.
pub(crate) fn block_crc(tag: u64, block: u64, bytes: &[u8]) -> u32 {
    debug_assert_eq!(bytes.len() as u64, BLOCK);
    let place =
        (tag ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    crc32c(bytes) ^ (place >> 32) as u32
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) identity: Identity,
    /// Random number of the data file, repeated in its tables and mixed into its checksums.
    pub(crate) tag: u64,
    /// Grows with every header written.
    pub(crate) revision: u64,
    /// Epoch that tables and length belong to: `committed`, or one more.
    pub(crate) epoch: u64,
    /// Last epoch known to be durable.
    pub(crate) committed: u64,
    /// Length of the subfile.
    pub(crate) len: u64,
    /// How often the subfile was moved to another disk; the highest complete copy counts.
    pub(crate) copy: u64,
    /// Tables may be newer than this header says: recovery has to look.
    pub(crate) is_open: bool,
}

/// Why a page is no header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// Nothing was ever written there.
    Blank,
    /// Another program's, or damaged.
    Damaged,
    /// A version this code does not know.
    Version(u16),
}

/// No header, epoch or copy is counted so far: what is higher is damage, and what is counted on from there does not
/// overflow.
const MOST: u64 = 1 << 62;
const OPEN_FLAG: u32 = 1;
const NOTE_AT: usize = 128;

impl Header {
    pub(crate) fn encode(&self) -> Box<[u8; PAGE]> {
        let mut page = Box::new([0u8; PAGE]);
        let mut out = Writer(&mut page[..]);
        out.put(0, HEADER_MAGIC);
        out.put(8, &VERSION.to_le_bytes());
        out.put(10, &[BLOCK.trailing_zeros() as u8]);
        out.put(11, &[GROUP_BLOCKS.trailing_zeros() as u8]);
        out.put(12, &(u32::from(self.is_open) * OPEN_FLAG).to_le_bytes());
        out.put(16, &self.revision.to_le_bytes());
        out.put(24, &self.epoch.to_le_bytes());
        out.put(32, &self.committed.to_le_bytes());
        out.put(40, &self.len.to_le_bytes());
        out.put(48, &self.tag.to_le_bytes());
        let Identity { id, domain, .. } = &self.identity;
        out.put(56, &id.file.to_le_bytes());
        out.put(64, &id.generation.to_le_bytes());
        out.put(72, &id.index.to_le_bytes());
        out.put(76, &domain.owner.to_le_bytes());
        out.put(80, &domain.group.to_le_bytes());
        out.put(84, &domain.mode.to_le_bytes());
        out.put(88, &domain.directory.to_le_bytes());
        out.put(96, &self.identity.incarnation.to_le_bytes());
        out.put(104, &self.copy.to_le_bytes());
        out.put(112, &(self.identity.note.len() as u32).to_le_bytes());
        out.put(NOTE_AT, &self.identity.note);
        let crc = crc32c(&page[..]);
        page[116..120].copy_from_slice(&crc.to_le_bytes());
        page
    }

    pub(crate) fn decode(page: &[u8; PAGE]) -> Result<Header, BadHeader> {
        if page.iter().all(|&b| b == 0) {
            return Err(BadHeader::Blank);
        }
        let read = Reader(page);
        if page[..8] != HEADER_MAGIC[..] || !read.crc_matches(116) {
            return Err(BadHeader::Damaged);
        }
        let version = read.u16(8);
        if version != VERSION {
            return Err(BadHeader::Version(version));
        }
        let note_len = read.u32(112) as usize;
        let shape = (page[10], page[11]);
        let known = (
            BLOCK.trailing_zeros() as u8,
            GROUP_BLOCKS.trailing_zeros() as u8,
        );
        if note_len > NOTE_BYTES || shape != known {
            return Err(BadHeader::Damaged);
        }
        let (revision, epoch, committed) = (read.u64(16), read.u64(24), read.u64(32));
        let (len, copy) = (read.u64(40), read.u64(104));
        let is_sound = committed <= epoch
            && epoch - committed <= 1
            && len <= MAX_LEN
            && [revision, epoch, copy].iter().all(|&n| n < MOST);
        if !is_sound {
            return Err(BadHeader::Damaged);
        }
        Ok(Header {
            identity: Identity {
                id: SubfileId {
                    file: read.u64(56),
                    generation: read.u64(64),
                    index: read.u32(72),
                },
                domain: Domain {
                    owner: read.u32(76),
                    group: read.u32(80),
                    mode: read.u32(84),
                    directory: read.u64(88),
                },
                incarnation: read.u64(96),
                note: page[NOTE_AT..NOTE_AT + note_len].to_vec(),
            },
            tag: read.u64(48),
            revision,
            epoch,
            committed,
            len,
            copy,
            is_open: read.u32(12) & OPEN_FLAG != 0,
        })
    }
}

/// One bit per block of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupBits([u64; GROUP_BLOCKS / 64]);

impl GroupBits {
    pub(crate) const ALL: GroupBits = GroupBits([u64::MAX; GROUP_BLOCKS / 64]);

    pub(crate) fn has(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    pub(crate) fn set(&mut self, index: usize, value: bool) {
        let bit = 1 << (index % 64);
        if value {
            self.0[index / 64] |= bit;
        } else {
            self.0[index / 64] &= !bit;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
}

/// What a table says about the blocks of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) epoch: u64,
    /// Blocks that hold data; the others are holes.
    pub(crate) present: GroupBits,
    /// Blocks on side one.
    pub(crate) side_one: GroupBits,
    /// Blocks for which `alternate` counts as well.
    pub(crate) has_alternate: GroupBits,
    /// Blocks that were emptied in this epoch: without a match they are holes, not what the
    /// committed table says.
    pub(crate) emptied: GroupBits,
    pub(crate) crc: [u32; GROUP_BLOCKS],
    pub(crate) alternate: [u32; GROUP_BLOCKS],
}

impl Table {
    pub(crate) fn empty() -> Self {
        Table {
            epoch: 0,
            present: GroupBits::default(),
            side_one: GroupBits::default(),
            has_alternate: GroupBits::default(),
            emptied: GroupBits::default(),
            crc: [0; GROUP_BLOCKS],
            alternate: [0; GROUP_BLOCKS],
        }
    }

    pub(crate) fn side(&self, index: usize) -> Side {
        if self.side_one.has(index) {
            Side::One
        } else {
            Side::Zero
        }
    }

    pub(crate) fn set_side(&mut self, index: usize, side: Side) {
        self.side_one.set(index, side == Side::One);
    }

    pub(crate) fn encode(&self, tag: u64, group: u64) -> Box<[u8; PAGE]> {
        let mut page = Box::new([0u8; PAGE]);
        let mut out = Writer(&mut page[..]);
        out.put(0, TABLE_MAGIC);
        out.put(8, &VERSION.to_le_bytes());
        out.put(16, &tag.to_le_bytes());
        out.put(24, &group.to_le_bytes());
        out.put(32, &self.epoch.to_le_bytes());
        let bits = [
            (64, &self.present),
            (96, &self.side_one),
            (128, &self.has_alternate),
            (160, &self.emptied),
        ];
        for (at, bits) in bits {
            for (i, word) in bits.0.iter().enumerate() {
                out.put(at + 8 * i, &word.to_le_bytes());
            }
        }
        for i in 0..GROUP_BLOCKS {
            out.put(192 + 4 * i, &self.crc[i].to_le_bytes());
            out.put(1216 + 4 * i, &self.alternate[i].to_le_bytes());
        }
        let crc = crc32c(&page[..]);
        page[40..44].copy_from_slice(&crc.to_le_bytes());
        page
    }

    /// The table, or `None` if the page does not hold one of this group of this file.
    pub(crate) fn decode(page: &[u8; PAGE], tag: u64, group: u64) -> Option<Table> {
        let read = Reader(page);
        let ours = page[..8] == TABLE_MAGIC[..]
            && read.u16(8) == VERSION
            && read.u64(16) == tag
            && read.u64(24) == group;
        if !ours || !read.crc_matches(40) {
            return None;
        }
        let bits = |at: usize| GroupBits(std::array::from_fn(|i| read.u64(at + 8 * i)));
        Some(Table {
            epoch: read.u64(32),
            present: bits(64),
            side_one: bits(96),
            has_alternate: bits(128),
            emptied: bits(160),
            crc: std::array::from_fn(|i| read.u32(192 + 4 * i)),
            alternate: std::array::from_fn(|i| read.u32(1216 + 4 * i)),
        })
    }
}

struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

struct Reader<'a>(&'a [u8; PAGE]);

impl Reader<'_> {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().expect("two bytes"))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Whether the page's CRC-32C, computed with the field at `at` as zero, is what stands there.
    fn crc_matches(&self, at: usize) -> bool {
        let mut page = *self.0;
        page[at..at + 4].fill(0);
        crc32c(&page) == self.u32(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let id = SubfileId {
            file: 7,
            generation: 2,
            index: 3,
        };
        let domain = Domain {
            owner: 10,
            group: 20,
            mode: 0o640,
            directory: 99,
        };
        let mut identity = Identity::new(id, domain, 5);
        identity.note = b"a note".to_vec();
        Header {
            identity,
            tag: 0x1234_5678_9abc_def0,
            revision: 4,
            epoch: 3,
            committed: 2,
            len: 1 << 40,
            copy: 1,
            is_open: true,
        }
    }

    #[test]
    fn known_checksum() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // A block's checksum depends on its place and on the file it is in.
        let block = [1u8; BLOCK as usize];
        assert_ne!(block_crc(1, 0, &block), block_crc(1, 1, &block));
        assert_ne!(block_crc(1, 0, &block), block_crc(2, 0, &block));
    }

    #[test]
    fn header_survives_encoding_and_refuses_every_flipped_bit() {
        let page = header().encode();
        assert_eq!(Header::decode(&page), Ok(header()));
        for bit in 0..200 * 8 {
            let mut bad = page.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&bad), Err(BadHeader::Damaged), "bit {bit}");
        }
        assert_eq!(Header::decode(&[0; PAGE]), Err(BadHeader::Blank));
    }

    #[test]
    fn later_version_is_named() {
        let mut page = header().encode();
        page[8] = 2;
        page[116..120].fill(0);
        let crc = crc32c(&page[..]);
        page[116..120].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Header::decode(&page), Err(BadHeader::Version(2)));
    }

    #[test]
    fn table_survives_encoding_and_knows_its_place() {
        let mut table = Table::empty();
        table.epoch = 9;
        table.present.set(255, true);
        table.set_side(255, Side::One);
        table.has_alternate.set(0, true);
        table.emptied.set(100, true);
        table.crc[255] = 0xdead_beef;
        table.alternate[0] = 7;
        let page = table.encode(5, 6);
        assert_eq!(Table::decode(&page, 5, 6), Some(table));
        assert_eq!(Table::decode(&page, 4, 6), None);
        assert_eq!(Table::decode(&page, 5, 7), None);
        let mut torn = page.clone();
        torn[512..].fill(0);
        assert_eq!(Table::decode(&torn, 5, 6), None);
    }

    #[test]
    fn places_do_not_overlap() {
        assert_eq!(table_at(0, Side::Zero), 8192);
        assert_eq!(block_at(0, 0, Side::Zero), 16384);
        assert_eq!(block_at(0, 0, Side::One), 16384 + GROUP_BYTES);
        let end = block_at(0, GROUP_BLOCKS - 1, Side::One) + BLOCK;
        assert_eq!(end, table_at(1, Side::Zero));
        assert_eq!(group_of(end - 1), Some(0));
        assert_eq!(group_of(end), Some(1));
        assert_eq!(group_of(8191), None);
    }
}
