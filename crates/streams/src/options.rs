//! How a stream file is opened: rights, sizes of blocks, and a mode for those who insist on one.
//!
//! What is left open is chosen from the first writes, the number of VPs and members, and a limit on memory (T-02 to T-07, X-11).

use client::{Error, OpenOptions, Result};

use crate::root::{MAX_POINTERS, MAX_SUPERBLOCK, MIN_SUPERBLOCK};

/// What an opening is for: the modes of C's `fopen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `r`: reading what is there.
    Read,
    /// `r+`: reading and writing what is there.
    Update,
    /// `w`: writing, from nothing on.
    Write,
    /// `w+`: reading and writing, from nothing on.
    WriteUpdate,
    /// `a`: writing behind the end of each stream.
    Append,
    /// `a+`: reading, and writing behind the end of each stream.
    AppendUpdate,
}

impl Access {
    /// From the text that `fopen` takes; a `b` means nothing.
    pub fn of_text(text: &str) -> Result<Access> {
        match &text.replace('b', "")[..] {
            "r" => Ok(Access::Read),
            "r+" => Ok(Access::Update),
            "w" => Ok(Access::Write),
            "w+" => Ok(Access::WriteUpdate),
            "a" => Ok(Access::Append),
            "a+" => Ok(Access::AppendUpdate),
            _ => Err(Error::Argument {
                name: "access",
                text: format!("`{text}`; give r, r+, w, w+, a or a+"),
            }),
        }
    }

    pub(crate) fn can_read(self) -> bool {
        !matches!(self, Access::Write | Access::Append)
    }

    pub(crate) fn can_write(self) -> bool {
        self != Access::Read
    }

    pub(crate) fn appends(self) -> bool {
        matches!(self, Access::Append | Access::AppendUpdate)
    }

    pub(crate) fn starts_empty(self) -> bool {
        matches!(self, Access::Write | Access::WriteUpdate)
    }

    /// What files below are opened for: blocks that are changed in part are read first.
    pub(crate) fn open_options(self) -> OpenOptions {
        let options = OpenOptions::new().read();
        match self {
            Access::Read => options,
            Access::Update => options.write(),
            _ => options.write().create(),
        }
    }
}

/// How the bytes of streams go to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// No buffering: an array transfer between variable and file.
    Nb,
    /// Collective buffering: buffers of all VPs fill and empty together.
    Cb,
    /// Independent buffering: every VP for itself.
    Ib,
}

impl Mode {
    /// `NB`, `CB` or `IB`.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Nb => "NB",
            Mode::Cb => "CB",
            Mode::Ib => "IB",
        }
    }
}

/// How a stream file is opened; what is left open is chosen from the first writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    pub(crate) access: Access,
    pub(crate) nb_block: Option<u64>,
    pub(crate) cb_block: Option<u64>,
    pub(crate) ib_block: Option<u64>,
    pub(crate) pointers: u64,
    pub(crate) superblock: Option<u64>,
    pub(crate) read_buffers: usize,
    pub(crate) memory: u64,
    pub(crate) least: Mode,
    pub(crate) pad: u8,
    pub(crate) layout: Option<String>,
}

impl StreamOptions {
    /// For this access, and everything else as the stream finds best.
    pub fn new(access: Access) -> StreamOptions {
        StreamOptions {
            access,
            nb_block: None,
            cb_block: None,
            ib_block: None,
            pointers: 6,
            superblock: None,
            read_buffers: 8,
            memory: 64 << 20,
            least: Mode::Nb,
            pad: 0,
            layout: None,
        }
    }

    /// Bytes of a block of a file that says nothing about it, such as one of another program; else the first operation says it.
    pub fn nb_block(mut self, bytes: u64) -> Self {
        self.nb_block = Some(bytes);
        self
    }

    /// Bytes of a block of collective buffering in new files.
    pub fn cb_block(mut self, bytes: u64) -> Self {
        self.cb_block = Some(bytes);
        self
    }

    /// Bytes of a block of independent buffering in new files.
    pub fn ib_block(mut self, bytes: u64) -> Self {
        self.ib_block = Some(bytes);
        self
    }

    /// Pointers of a directory entry in new files: 2, 6, 14, ..., two less than a power of two. 6 unless given.
    pub fn pointers(mut self, count: u64) -> Self {
        self.pointers = count;
        self
    }

    /// Bytes that independent buffering writes and reads at once in new files, a power of two.
    pub fn superblock(mut self, bytes: u64) -> Self {
        self.superblock = Some(bytes);
        self
    }

    /// Superblocks that are kept for reading.
    pub fn read_buffers(mut self, count: usize) -> Self {
        self.read_buffers = count;
        self
    }

    /// Bytes that the buffers of one member may take, about; block sizes that are chosen keep to it.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// The fastest mode that is taken; for comparisons. The streams have the same bytes.
    pub fn at_least(mut self, mode: Mode) -> Self {
        self.least = mode;
        self
    }

    /// What is read where a file of another program ends within a row of blocks; 0 unless given.
    pub fn pad(mut self, byte: u8) -> Self {
        self.pad = byte;
        self
    }

    /// How a new file is cut into subfiles, in the layout language.
    pub fn layout(mut self, layout: impl Into<String>) -> Self {
        self.layout = Some(layout.into());
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |name, text: String| Err(Error::Argument { name, text });
        let blocks = [
            ("nb_block", self.nb_block),
            ("cb_block", self.cb_block),
            ("ib_block", self.ib_block),
        ];
        for (name, block) in blocks {
            if block.is_some_and(|bytes| bytes == 0 || bytes > MOST_BLOCK) {
                return wrong(name, format!("give 1 to {MOST_BLOCK} bytes"));
            }
        }
        if !(self.pointers + 2).is_power_of_two() || !(2..=MAX_POINTERS).contains(&self.pointers) {
            return wrong(
                "pointers",
                format!("{}; give 2, 6, 14, ... up to {MAX_POINTERS}", self.pointers),
            );
        }
        if let Some(bytes) = self.superblock {
            let fits = bytes.is_power_of_two()
                && (MIN_SUPERBLOCK..=MAX_SUPERBLOCK).contains(&bytes)
                && self.ib_block.is_none_or(|block| block <= bytes);
            if !fits {
                return wrong(
                    "superblock",
                    format!(
                        "{bytes}; give a power of two of {MIN_SUPERBLOCK} to {MAX_SUPERBLOCK}, not less than a block"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Bytes that a block may have so that `vps` of them stay in memory.
    fn affordable(&self, vps: u64) -> u64 {
        let most = (self.memory / vps.max(1)).max(8);
        1 << most.ilog2()
    }

    /// Block of collective buffering: the first write, times a power of two until a member's transfer is worth its request.
    pub(crate) fn choose_cb(&self, vps: u64, written: u64) -> u64 {
        if let Some(block) = self.cb_block {
            return block;
        }
        let mut block = written.clamp(1, MOST_BLOCK);
        while block * vps < TRANSFER {
            block *= 2;
        }
        match block <= self.affordable(vps) || block * vps <= TRANSFER {
            true => block,
            false => self.affordable(vps),
        }
    }

    /// Block of independent buffering: a usual write, as a power of two.
    pub(crate) fn choose_ib(&self, vps: u64, written: u64) -> u64 {
        if let Some(block) = self.ib_block {
            return block;
        }
        let block = written.clamp(LEAST_IB, MOST_IB).next_power_of_two();
        block
            .min(self.affordable(vps))
            .min(self.superblock.unwrap_or(u64::MAX))
    }

    /// Superblock: a sixteenth of the buffers of a member, within limits.
    pub(crate) fn choose_superblock(&self, vps: u64, ib_block: u64) -> u64 {
        if let Some(bytes) = self.superblock {
            return bytes;
        }
        let sixteenth = (vps * ib_block / 16).clamp(1, 1 << 20).next_power_of_two();
        sixteenth
            .clamp(STRIPING_UNIT, 1 << 20)
            .max(ib_block.next_power_of_two())
    }
}

/// Longest block of any segment.
const MOST_BLOCK: u64 = 1 << 20;
/// Bytes of a member's transfer that are worth a request.
const TRANSFER: u64 = 64 << 10;
/// Blocks of independent buffering that are chosen.
const LEAST_IB: u64 = 64;
const MOST_IB: u64 = 4096;
/// Least superblock that is chosen; the source's unit of striping.
const STRIPING_UNIT: u64 = 32 << 10;
