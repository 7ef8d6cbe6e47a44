//! The layout state of a file: which bytes are where.
//!
//! A list of pieces, one usually and two during a re-layout; each says which file ranges it governs,
//! its generation, the partition, and for every subfile the places that hold it (one today, replicas
//! later) and under which generation its bytes are stored. During a re-layout the first piece governs
//! what has still to move, the second one all the rest; so the ranges alone say how far it has come.
//!
//! Every durable change of a state raises its *step*. The step travels in every request, so that a server
//! can tell whether a byte of it changed its home since it was planned. Generations cannot order states:
//! a move that was cancelled ends in the older one.

use std::ops::Range;

use layout::{FileSpan, Partition};

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
    /// By subfile, the generation under which its bytes are stored. Usually all are the generation of the
    /// piece; where only places have changed, subfiles that stay keep their bytes and their number.
    pub stores: Vec<u64>,
    /// How the file is cut into subfiles.
    pub partition: Partition,
    /// Places by subfile; at least one each.
    pub places: Vec<Vec<Place>>,
}

/// What two sides compare to know whether they plan with the same layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateVersion {
    /// Counts the durable changes of the state.
    pub step: u64,
}

/// Where all bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutState {
    /// The server that keeps size, locks and shared pointers of the file.
    pub owner: Place,
    /// Raised by every durable change; 1 when the file is made.
    pub step: u64,
    /// Pieces, one per generation in use.
    pub pieces: Vec<Piece>,
}

/// At most two generations at a time; lists are bounded against nonsense, not against use.
const MAX_PIECES: usize = 2;

impl Piece {
    /// A piece that governs everything, whose bytes are stored under its own generation.
    pub fn whole(generation: u64, partition: Partition, places: Vec<Vec<Place>>) -> Piece {
        Piece {
            ranges: std::iter::once(0..u64::MAX).collect(),
            generation,
            stores: vec![generation; partition.len()],
            partition,
            places,
        }
    }
}

impl LayoutState {
    /// The first state of a file.
    pub fn new(owner: Place, piece: Piece) -> LayoutState {
        LayoutState {
            owner,
            step: 1,
            pieces: vec![piece],
        }
    }

    /// The version of this state.
    pub fn version(&self) -> StateVersion {
        StateVersion { step: self.step }
    }

    /// What it says about the order of bytes, without the servers.
    pub fn plan_pieces(&self) -> plan::access::Pieces {
        let piece = |piece: &Piece| plan::access::Piece {
            generation: piece.generation,
            ranges: piece
                .ranges
                .iter()
                .cloned()
                .map(FileSpan::from_raw)
                .collect(),
            partition: piece.partition.clone(),
        };
        plan::access::Pieces::new(self.pieces.iter().map(piece))
    }

    /// Appends the state.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_place(out, self.owner);
        put_number(out, self.step);
        put_number(out, self.pieces.len() as u64);
        for piece in &self.pieces {
            put_number(out, piece.generation);
            put_number(out, piece.ranges.len() as u64);
            for range in &piece.ranges {
                put_number(out, range.start);
                put_number(out, range.end);
            }
            describe::put_partition(out, &piece.partition);
            for (places, &store) in piece.places.iter().zip(&piece.stores) {
                put_number(out, store);
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
        let step = r.number()?;
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
            let mut stores = Vec::with_capacity(partition.len());
            for _ in 0..partition.len() {
                stores.push(r.number()?);
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
                stores,
                partition,
                places,
            });
        }
        Ok(LayoutState {
            owner,
            step,
            pieces,
        })
    }
}

impl StateVersion {
    /// Appends the version.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.step);
    }

    /// Reads a version.
    pub fn read(r: &mut Reader<'_>) -> Result<StateVersion, DecodeError> {
        Ok(StateVersion { step: r.number()? })
    }

    /// Reads over a version and keeps nothing, for readers that only compare its bytes.
    pub fn skip(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        r.number().map(drop)
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
