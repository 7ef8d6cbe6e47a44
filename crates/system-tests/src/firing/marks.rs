//! What the bytes of a file may be, in memory and in a ledger that outlives the process.
//!
//! A byte is written with one of a few tags and its value follows from tag and place, so what it may be is a set
//! of tags: a bit each. A write is entered before it is begun, and what it replaces is struck out when it is
//! certain: after the access where nothing dies but clients, after a sync where disks lose what was not synced.
//! So whoever takes the place of a worker that was killed knows from the ledger what it must find.

use std::collections::VecDeque;
use std::fs::{File as PlainFile, OpenOptions as PlainOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use client::{File, View};

use super::SHARED;
use crate::plain_file::ranges;
use crate::seed::pattern_byte;

/// Tags of bytes.
pub(super) const TAGS: u64 = 8;
/// Instead of a tag: never written, or cut off since.
const HOLE: u8 = 15;
/// Instead of a tag: any value, until it is written again.
const ANYTHING: u8 = 14;
/// Bytes of a ledger before those of the places: the least and the greatest size.
const HEAD: u64 = 16;

/// What every byte of a file may be.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// By place: a bit per tag.
    may_be: Vec<u16>,
    /// By place: the tag of the last write.
    is: Vec<u8>,
}

impl Marks {
    fn reach(&mut self, end: u64) {
        let end = end as usize;
        if self.is.len() < end {
            self.is.resize(end, HOLE);
            self.may_be.resize(end, 1 << HOLE);
        }
    }

    fn len(&self) -> u64 {
        self.is.len() as u64
    }

    fn put(&mut self, x: u64, tag: u8) {
        self.is[x as usize] = tag;
        self.may_be[x as usize] |= 1 << tag;
    }

    /// These bytes are as they were written last.
    fn settle(&mut self, range: Range<u64>) {
        let range = range.start as usize..range.end as usize;
        for (may_be, is) in self.may_be[range.clone()].iter_mut().zip(&self.is[range]) {
            *may_be = 1 << is;
        }
    }

    /// What a byte is, if nothing died.
    pub(super) fn byte(&self, x: u64) -> u8 {
        match self.is.get(x as usize) {
            None | Some(&HOLE) => 0,
            Some(&tag) => pattern_byte(u64::from(tag), x),
        }
    }

    /// What is wrong with a byte that was read.
    pub(super) fn wrong(&self, x: u64, byte: u8, is_calm: bool) -> Option<String> {
        if byte == self.byte(x) {
            return None;
        }
        let may_be = self.may_be.get(x as usize).copied().unwrap_or(1 << HOLE);
        let mut others = (0..16).filter(|tag| may_be & 1 << tag != 0);
        let is_other = others.any(|tag| match tag {
            HOLE => byte == 0,
            ANYTHING => true,
            tag => byte == pattern_byte(u64::from(tag), x),
        });
        if is_other && !is_calm {
            return None;
        }
        let tags: Vec<u64> = (0..TAGS).filter(|t| pattern_byte(*t, x) == byte).collect();
        Some(format!(
            "file byte {x} is {byte} (tags {tags:?}), expected {} (tag {}, may be {may_be:#x})",
            self.byte(x),
            self.is.get(x as usize).copied().unwrap_or(HOLE),
        ))
    }
}

/// What somebody has left: marks, and the least and the greatest size.
type Inherited = (Marks, (u64, u64));

/// Marks and sizes in a plain file.
#[derive(Debug)]
pub(super) struct Ledger(PlainFile);

impl Ledger {
    /// Opens or makes one; what it holds of an earlier process.
    pub(super) fn open(path: &Path) -> std::io::Result<(Ledger, Option<Inherited>)> {
        let mut options = PlainOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(path)?;
        let len = file.metadata()?.len();
        if len < HEAD {
            return Ok((Ledger(file), None));
        }
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let number = |at: usize| {
            let bytes = bytes[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        let sizes = (number(0), number(8));
        let may_be: Vec<u16> = bytes[HEAD as usize..]
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        let is = may_be.iter().map(|set| set.trailing_zeros().min(15) as u8);
        let is = is.collect();
        Ok((Ledger(file), Some((Marks { may_be, is }, sizes))))
    }

    fn keep(&self, marks: &Marks, range: Range<u64>, sizes: (u64, u64)) {
        let mut head = [0; HEAD as usize];
        head[..8].copy_from_slice(&sizes.0.to_le_bytes());
        head[8..].copy_from_slice(&sizes.1.to_le_bytes());
        let sets = &marks.may_be[range.start as usize..range.end as usize];
        let bytes: Vec<u8> = sets.iter().flat_map(|set| set.to_le_bytes()).collect();
        let kept = self.0.write_all_at(&head, 0);
        let kept = kept.and_then(|()| self.0.write_all_at(&bytes, HEAD + 2 * range.start));
        kept.expect("a ledger that can be written");
    }
}

/// A file and what it must hold.
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) file: File,
    pub(super) view: View,
    pub(super) marks: Marks,
    pub(super) ledger: Ledger,
    pub(super) size: u64,
    /// What the size may be after a kill.
    pub(super) sizes: (u64, u64),
    /// Kills when it was last known exactly.
    pub(super) base: u64,
    /// Somebody who is dead has used it before.
    pub(super) is_inherited: bool,
    /// The last changes, to be told when something is wrong.
    pub(super) recent: VecDeque<String>,
}

impl Target {
    /// The step of the layout state that the client knows, and what governs what.
    pub(super) fn state(&self) -> String {
        let state = self.file.layout();
        let of = |p: &wire::Piece| format!("generation {} of {:?}", p.generation, p.ranges);
        let pieces: Vec<String> = state.pieces.iter().map(of).collect();
        format!("step {}: {}", state.step, pieces.join("; "))
    }

    /// Where bytes of a read belong that are not those of their places: the first few runs.
    pub(super) fn whose(&self, at: u64, bytes: &[u8]) -> String {
        let places: Vec<u64> = ranges(&self.view, at, bytes.len() as u64)
            .into_iter()
            .flatten()
            .collect();
        let is_of_place = |i: usize| (0..TAGS).any(|t| pattern_byte(t, places[i]) == bytes[i]);
        let mut out = Vec::new();
        let mut i = 0;
        while i < bytes.len() && out.len() < 8 {
            if bytes[i] == self.marks.byte(places[i]) || is_of_place(i) {
                i += 1;
                continue;
            }
            let zeros = bytes[i..].iter().take_while(|b| **b == 0).count();
            if zeros > 3 {
                out.push(format!("{} and {} more are zero", places[i], zeros - 1));
                i += zeros;
                continue;
            }
            // As long as one tag and one distance explain it.
            let most = (bytes.len() - i).min(200);
            let same = |tag: u64, x: u64| {
                let is =
                    |k: &usize| pattern_byte(tag, places[i + k] - places[i] + x) == bytes[i + k];
                (0..most).take_while(is).count()
            };
            let all = (0..TAGS).flat_map(|tag| (0..SHARED).map(move |x| (tag, x)));
            let best = all.map(|(tag, x)| (same(tag, x), tag, x)).max();
            let (n, tag, x) = best.unwrap_or_default();
            out.push(format!(
                "{} bytes from {} are those of {x} with tag {tag}",
                n, places[i]
            ));
            i += n.max(1);
        }
        out.join(", ")
    }

    fn keep(&self, range: Range<u64>) {
        self.ledger.keep(&self.marks, range, self.sizes);
    }

    fn remember(&mut self, text: String) {
        if self.recent.len() == 6 {
            self.recent.pop_front();
        }
        self.recent.push_back(text);
    }

    /// A write is about to be made.
    pub(super) fn note(&mut self, at: u64, len: u64, tag: u8) {
        self.remember(format!("tag {tag} to view bytes {at}..{}", at + len));
        let before = self.marks.len();
        let ranges = ranges(&self.view, at, len);
        for range in ranges.iter().cloned() {
            self.marks.reach(range.end);
            self.size = self.size.max(range.end);
            self.sizes.1 = self.sizes.1.max(range.end);
            range.for_each(|x| self.marks.put(x, tag));
        }
        if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
            self.keep(first.start.min(before)..last.end);
        }
    }

    /// A write was made, and nothing but this process can die.
    pub(super) fn sure(&mut self, at: u64, len: u64) {
        self.sizes = (self.size, self.size);
        let ranges = ranges(&self.view, at, len);
        for range in ranges.iter().cloned() {
            self.marks.settle(range);
        }
        if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
            self.keep(first.start..last.end);
        }
    }

    /// Everything is as it was written last, and stays so.
    pub(super) fn settle(&mut self) {
        self.sizes = (self.size, self.size);
        self.marks.settle(0..self.marks.len());
        self.keep(0..self.marks.len());
    }

    /// An append went elsewhere after a kill: its bytes do not follow their place.
    pub(super) fn note_anything(&mut self, at: u64, len: u64) {
        let before = self.marks.len();
        self.marks.reach(at + len);
        self.sizes.1 = self.sizes.1.max(at + len);
        for x in at..at + len {
            self.marks.put(x, ANYTHING);
        }
        self.keep(at.min(before)..at + len);
    }

    /// The file ends here after something died: behind it is nothing, whatever was written there.
    pub(super) fn ends_at(&mut self, size: u64) {
        self.size = size;
        for x in size..self.marks.len() {
            self.marks.put(x, HOLE);
        }
    }

    /// The size is about to be set.
    pub(super) fn note_size(&mut self, to: u64) {
        self.remember(format!("size {to}"));
        let before = self.marks.len();
        self.marks.reach(to);
        for x in to..self.marks.len() {
            self.marks.put(x, HOLE);
        }
        self.size = to;
        self.sizes = (self.sizes.0.min(to), self.sizes.1.max(to));
        self.keep(to.min(before)..self.marks.len());
    }
}
