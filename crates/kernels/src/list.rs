//! Owns [`List`], the operation for irregular siblings: a flat array of pieces, run in order.
//!
//! Two forms: pieces of one length (16 bytes each, the copy specialised for that length) and
//! pieces of any lengths (24 bytes each, the copy chosen per piece). Millions of pieces are
//! fine; what is regular should arrive as loops instead, which take no memory per piece.

use std::fmt;
use std::ops::Range;

use crate::inner::{self, copy_any};

/// One irregular piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) source: isize,
    pub(crate) target: isize,
    pub(crate) len: usize,
}

/// Where one piece of a known length goes.
pub(crate) type Place = (isize, isize);

/// Copies pieces of one length.
pub(crate) type UniformFn = unsafe fn(&[Place], *const u8, *mut u8, usize);

#[derive(Clone, Debug)]
pub(crate) enum List {
    Uniform {
        len: usize,
        places: Box<[Place]>,
        copy: UniformFn,
    },
    Mixed {
        pieces: Box<[Piece]>,
        bytes: u64,
    },
}

impl List {
    pub(crate) fn new(pieces: Vec<Piece>) -> List {
        let len = pieces[0].len;
        if pieces.iter().all(|piece| piece.len == len) {
            let places = pieces
                .iter()
                .map(|piece| (piece.source, piece.target))
                .collect();
            List::Uniform {
                len,
                places,
                copy: inner::uniform_copy(len),
            }
        } else {
            let bytes = pieces.iter().map(|piece| piece.len as u64).sum();
            List::Mixed {
                pieces: pieces.into(),
                bytes,
            }
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            List::Uniform { len, places, .. } => *len as u64 * places.len() as u64,
            List::Mixed { bytes, .. } => *bytes,
        }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            List::Uniform { places, .. } => places.len(),
            List::Mixed { pieces, .. } => pieces.len(),
        }
    }

    /// Copies the pieces of an index range, in order.
    ///
    /// # Safety
    /// Every piece lies in memory valid for reads from `source` and for writes from `target`,
    /// and the two do not overlap.
    pub(crate) unsafe fn run(&self, source: *const u8, target: *mut u8, range: Range<usize>) {
        match self {
            // SAFETY: the caller's promise, for fewer pieces.
            List::Uniform { len, places, copy } => unsafe {
                copy(&places[range], source, target, *len);
            },
            List::Mixed { pieces, .. } => {
                for piece in &pieces[range] {
                    let from = source.wrapping_offset(piece.source);
                    let to = target.wrapping_offset(piece.target);
                    // SAFETY: the caller's promise, for this piece.
                    unsafe { copy_any(from, to, piece.len) };
                }
            }
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            List::Uniform { len, places, .. } => {
                write!(f, "list of {} x {len} bytes", places.len())
            }
            List::Mixed { pieces, bytes } => {
                write!(f, "list of {} pieces, {bytes} bytes", pieces.len())
            }
        }
    }
}
