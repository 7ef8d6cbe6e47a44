//! The layout state of a file: which bytes are where.
//!
//! A list of pieces, one today and two during a re-layout; each says which file ranges it governs,
//! its generation, the partition, and for every subfile the places that hold it (one today, replicas
//! later). The version (generations, start of the re-layout, frontiers) travels in every request, so
//! that a server can tell whether a byte of it changed its home since it was planned.

use std::ops::Range;

use layout::Partition;

use crate::describe;
use crate::reader::{DecodeError, Reader, put_number};

/// A server and the start of it that holds the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Number of the server in the service.
    pub server: u64,
    /// Which start of it; memory of an earlier one is lost.
    pub incarnation: u64,
}

/// One generation of the layout and the bytes it governs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// File ranges, ascending and disjoint; an open end is `u64::MAX`.
    pub ranges: Vec<Range<u64>>,
    /// Number of the layout, counted up by every change.
    pub generation: u64,
    /// How the file is cut into subfiles.
    pub partition: Partition,
    /// Places by subfile; at least one each.
    pub places: Vec<Vec<Place>>,
}

/// What two sides compare to know whether they plan with the same layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateVersion {
    /// Generations of the pieces, in order.
    pub generations: Vec<u64>,
    /// File size at the start of a re-layout under way; 0 otherwise.
    pub relayout_start: u64,
    /// How far each lane of it has come.
    pub frontiers: Vec<u64>,
}

/// Where all bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutState {
    /// The server that keeps size, locks and shared pointers of the file.
    pub owner: Place,
    /// Pieces, one per generation in use.
    pub pieces: Vec<Piece>,
    /// File size at the start of a re-layout under way; 0 otherwise.
    pub relayout_start: u64,
    /// How far each lane of it has come.
    pub frontiers: Vec<u64>,
}

/// At most two generations at a time; lists are bounded against nonsense, not against use.
const MAX_PIECES: usize = 2;

impl LayoutState {
    /// The version of this state.
    pub fn version(&self) -> StateVersion {
        StateVersion {
            generations: self.pieces.iter().map(|p| p.generation).collect(),
            relayout_start: self.relayout_start,
            frontiers: self.frontiers.clone(),
        }
    }

    /// Appends the state.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_place(out, self.owner);
        put_number(out, self.relayout_start);
        put_numbers(out, &self.frontiers);
        put_number(out, self.pieces.len() as u64);
        for piece in &self.pieces {
            put_number(out, piece.generation);
            put_number(out, piece.ranges.len() as u64);
            for range in &piece.ranges {
                put_number(out, range.start);
                put_number(out, range.end);
            }
            describe::put_partition(out, &piece.partition);
            for places in &piece.places {
                put_number(out, places.len() as u64);
                for &place in places {
                    put_place(out, place);
                }
            }
        }
    }

    /// Reads a state and checks it.
    pub fn read(r: &mut Reader<'_>) -> Result<LayoutState, DecodeError> {
        let owner = place(r)?;
        let relayout_start = r.number()?;
        let frontiers = numbers(r)?;
        let count = r.length(1)?;
        if count == 0 || count > MAX_PIECES {
            return Err(DecodeError::BadTag(count as u64));
        }
        let mut pieces = Vec::with_capacity(count);
        for _ in 0..count {
            let generation = r.number()?;
            let mut ranges = Vec::new();
            let mut end = 0;
            for _ in 0..r.length(2)? {
                let range = r.number()?..r.number()?;
                if range.start < end || range.end <= range.start {
                    return Err(DecodeError::BadNumber);
                }
                end = range.end;
                ranges.push(range);
            }
            let partition = describe::partition(r)?;
            let mut places = Vec::with_capacity(partition.len());
            for _ in 0..partition.len() {
                let mut list = Vec::new();
                for _ in 0..r.length(2)? {
                    list.push(place(r)?);
                }
                // Who holds a state may take the first place of every subfile.
                if list.is_empty() {
                    return Err(DecodeError::BadTag(0));
                }
                places.push(list);
            }
            pieces.push(Piece {
                ranges,
                generation,
                partition,
                places,
            });
        }
        Ok(LayoutState {
            owner,
            pieces,
            relayout_start,
            frontiers,
        })
    }
}

impl StateVersion {
    /// Appends the version.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_numbers(out, &self.generations);
        put_number(out, self.relayout_start);
        put_numbers(out, &self.frontiers);
    }

    /// Reads a version.
    pub fn read(r: &mut Reader<'_>) -> Result<StateVersion, DecodeError> {
        Ok(StateVersion {
            generations: numbers(r)?,
            relayout_start: r.number()?,
            frontiers: numbers(r)?,
        })
    }

    /// Reads over a version and keeps nothing, for whoever only compares its bytes.
    pub fn skip(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        skip_numbers(r)?;
        r.number()?;
        skip_numbers(r)
    }
}

fn put_place(out: &mut Vec<u8>, place: Place) {
    put_number(out, place.server);
    put_number(out, place.incarnation);
}

fn place(r: &mut Reader<'_>) -> Result<Place, DecodeError> {
    Ok(Place {
        server: r.number()?,
        incarnation: r.number()?,
    })
}

fn put_numbers(out: &mut Vec<u8>, list: &[u64]) {
    put_number(out, list.len() as u64);
    for &n in list {
        put_number(out, n);
    }
}

fn numbers(r: &mut Reader<'_>) -> Result<Vec<u64>, DecodeError> {
    let n = r.length(1)?;
    (0..n).map(|_| r.number()).collect()
}

fn skip_numbers(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    for _ in 0..r.length(1)? {
        r.number()?;
    }
    Ok(())
}
