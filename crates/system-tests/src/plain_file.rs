//! The byte model: a file as one sequence of bytes in memory, and what every access does to it.
//!
//! Deliberately simple: views are walked segment by segment, nothing is remembered between accesses.

use std::ops::Range;

use client::View;
use layout::ViewOffset;

/// What a file must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainFile {
    bytes: Vec<u8>,
}

impl PlainFile {
    /// Without bytes.
    pub fn new() -> PlainFile {
        PlainFile::default()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its size.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Sets the size; new bytes are zero.
    pub fn resize(&mut self, size: u64) {
        self.bytes.resize(size as usize, 0);
    }

    /// Appends; the offset.
    pub fn append(&mut self, bytes: &[u8]) -> u64 {
        let at = self.size();
        self.bytes.extend(bytes);
        at
    }

    /// Writes at an offset of a view.
    pub fn write(&mut self, view: &View, at: u64, bytes: &[u8]) {
        let mut rest = bytes;
        for range in ranges(view, at, bytes.len() as u64)
            .into_iter()
            .map(in_memory)
        {
            let (part, behind) = rest.split_at(range.len());
            if range.end > self.bytes.len() {
                self.bytes.resize(range.end, 0);
            }
            self.bytes[range].copy_from_slice(part);
            rest = behind;
        }
        assert!(rest.is_empty(), "the view has room for the bytes");
    }

    /// Reads at an offset of a view; fewer bytes than asked for at the end.
    pub fn read(&self, view: &View, at: u64, len: usize) -> Vec<u8> {
        let there = view.len_within(self.size()).saturating_sub(at);
        let mut bytes = Vec::with_capacity(len);
        for range in ranges(view, at, there.min(len as u64)) {
            bytes.extend(&self.bytes[in_memory(range)]);
        }
        bytes
    }

    /// All that a view shows of it.
    pub fn seen(&self, view: &View) -> Vec<u8> {
        self.read(view, 0, view.len_within(self.size()) as usize)
    }
}

fn in_memory(range: Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// The file ranges of a range of a view.
pub(crate) fn ranges(view: &View, at: u64, len: u64) -> Vec<Range<u64>> {
    if len == 0 {
        return Vec::new();
    }
    let range = view
        .file_range(ViewOffset(at)..ViewOffset(at + len))
        .expect("the view has these bytes");
    view.bytes()
        .segments(range.start.0..range.end.0)
        .map(|s| s.start()..s.end())
        .collect()
}

/// Compares, and says where the first difference is.
#[track_caller]
pub fn assert_bytes(found: &[u8], expected: &[u8], what: &str) {
    if found == expected {
        return;
    }
    assert_eq!(found.len(), expected.len(), "{what}: number of bytes");
    let at = found.iter().zip(expected).position(|(a, b)| a != b);
    let at = at.expect("they differ");
    let wrong = found.iter().zip(expected).filter(|(a, b)| a != b).count();
    let (found, expected) = (&found[at..], &expected[at..]);
    panic!(
        "{what}: {wrong} bytes differ, the first at {at}: {:?}..., expected {:?}...",
        &found[..found.len().min(8)],
        &expected[..expected.len().min(8)]
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::view_of;

    #[test]
    fn a_plain_file_is_written_and_read_through_views() {
        let mut file = PlainFile::new();
        let odd = view_of(None, 1, "falls{(1,1)} period 2");
        file.write(&odd, 0, b"abc"); // at 2, 4, 6
        assert_eq!(file.bytes(), b"\0\0a\0b\0c");
        assert_eq!(file.read(&odd, 1, 9), b"bc");
        file.resize(5);
        file.resize(7);
        assert_eq!(file.seen(&odd), b"ab\0");
        assert_eq!(file.append(b"xy"), 7);
        assert_eq!(file.seen(&View::whole_file()), b"\0\0a\0b\0\0xy");
        assert_eq!(file.read(&odd, 4, 3), b"");
    }
}
