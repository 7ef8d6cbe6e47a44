//! Reading what many VPs want at once, wherever it lies: pieces are put in the order of the file and read in large windows, so
//! that another distribution than the writer's costs reads, not requests.

use std::ops::Range;

use client::{File, Result};

use crate::pages::Pages;

/// Longest window that is read at once.
const WINDOW: u64 = 1 << 20;
/// Bytes that nobody wants and that are read nevertheless, to save a request.
const GAP: u64 = 64 << 10;
/// Pieces that are collected before they are read.
pub(crate) const PIECES: usize = 1 << 14;

/// Bytes of the file, and where they go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) len: usize,
    pub(crate) to: To,
}

/// Where the bytes of a piece go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    /// To this byte of the variable.
    Variable(usize),
    /// To this byte of the buffers.
    Buffer(usize),
}

/// Pieces that are wanted, and what is copied from buffers when they are there.
#[derive(Debug, Default)]
pub(crate) struct Fetch {
    pieces: Vec<Piece>,
    /// From buffers to the variable.
    then: Vec<(Range<usize>, usize)>,
    window: Vec<u8>,
    /// Whether pages have something that the file does not have.
    has_unwritten: bool,
    /// Requests that read.
    pub(crate) reads: u64,
}

impl Fetch {
    pub(crate) fn want(&mut self, piece: Piece) {
        self.pieces.push(piece);
    }

    pub(crate) fn copy_then(&mut self, buffer: Range<usize>, variable: usize) {
        self.then.push((buffer, variable));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pieces.len() >= PIECES
    }

    /// Reads all that is wanted. Beyond the end of the file there are zeros.
    pub(crate) fn run(
        &mut self,
        file: &File,
        pages: &mut Pages,
        variable: &mut [u8],
        buffers: &mut [u8],
    ) -> Result<()> {
        let mut pieces = std::mem::take(&mut self.pieces);
        if !pieces.is_sorted_by_key(|piece| piece.address) {
            pieces.sort_unstable_by_key(|piece| piece.address);
        }
        self.has_unwritten = pages.has_unwritten();
        let done = self.run_sorted(&pieces, file, pages, variable, buffers);
        pieces.clear();
        self.pieces = pieces;
        let then = std::mem::take(&mut self.then);
        done?;
        for (from, to) in &then {
            variable[*to..*to + from.len()].copy_from_slice(&buffers[from.clone()]);
        }
        self.then = then;
        self.then.clear();
        Ok(())
    }

    fn run_sorted(
        &mut self,
        mut pieces: &[Piece],
        file: &File,
        pages: &mut Pages,
        variable: &mut [u8],
        buffers: &mut [u8],
    ) -> Result<()> {
        while let Some(first) = pieces.first() {
            let mut end = first.address + first.len as u64;
            let fits = |piece: &&Piece| {
                let reach = piece.address + piece.len as u64;
                let fits = piece.address <= end + GAP && reach - first.address <= WINDOW;
                end = end.max(if fits { reach } else { end });
                fits
            };
            let count = pieces[1..].iter().take_while(fits).count() + 1;
            let (now, rest) = pieces.split_at(count);
            self.read_window(first.address..end, now, file, pages, variable, buffers)?;
            pieces = rest;
        }
        Ok(())
    }

    fn read_window(
        &mut self,
        window: Range<u64>,
        pieces: &[Piece],
        file: &File,
        pages: &mut Pages,
        variable: &mut [u8],
        buffers: &mut [u8],
    ) -> Result<()> {
        let len = (window.end - window.start) as usize;
        if self.window.len() < len {
            self.window.resize(len, 0);
        }
        let bytes = &mut self.window[..len];
        let read = file.read_at(window.start, bytes)?;
        bytes[read..].fill(pages.pad);
        self.reads += 1;
        for piece in pieces {
            let into = match piece.to {
                To::Variable(at) => &mut variable[at..at + piece.len],
                To::Buffer(at) => &mut buffers[at..at + piece.len],
            };
            let at = (piece.address - window.start) as usize;
            into.copy_from_slice(&bytes[at..at + piece.len]);
            if self.has_unwritten {
                overlay(pages, piece.address, into);
            }
        }
        Ok(())
    }
}

/// Replaces bytes that are in memory and not in the file yet.
fn overlay(pages: &mut Pages, address: u64, into: &mut [u8]) {
    let mut done = 0;
    while done < into.len() {
        let at = address + done as u64;
        let n = pages.left_on_page(at).min(into.len() - done);
        if let Some(bytes) = pages.unwritten(at) {
            into[done..done + n].copy_from_slice(&bytes[..n]);
        }
        done += n;
    }
}
