//! Which bytes of a view lie at which server, under one layout state.
//!
//! A [`Plan`] belongs to one view and one state. The share of each subfile (what view and subfile
//! have in common) is computed when the subfile is first met and kept; its cost does not depend on
//! the size of the file. An access then asks each share for its bytes in a file range.
//!
//! Left to others: connections, sending, what a server answers.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use kernels::Share;
use layout::{FileOffset, Partition, View};
use wire::{LayoutState, Place};

/// Bytes of one subfile in a file range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    piece: usize,
    subfile: usize,
    file: Range<u64>,
    pub(crate) bytes: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) state: Arc<LayoutState>,
    view: View,
    /// The encoded version, as it travels.
    pub(crate) version: Vec<u8>,
    /// The servers of the file; an index into it is a *slot*.
    pub(crate) places: Vec<Place>,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    ranges: Vec<Range<u64>>,
    partition: Partition,
    subfiles: Vec<Subfile>,
}

#[derive(Debug)]
struct Subfile {
    /// `None` if nobody holds it.
    slot: Option<usize>,
    share: OnceLock<Box<Share>>,
}

impl Plan {
    pub(crate) fn new(state: &Arc<LayoutState>, view: &View) -> Plan {
        let mut places: Vec<Place> = Vec::new();
        let mut by_server = std::collections::HashMap::new();
        let pieces = state.pieces.iter().map(|piece| Piece {
            ranges: piece.ranges.clone(),
            partition: piece.partition.clone(),
            subfiles: piece
                .places
                .iter()
                .map(|list| Subfile {
                    slot: list.first().map(|place| {
                        *by_server.entry(place.server).or_insert_with(|| {
                            places.push(*place);
                            places.len() - 1
                        })
                    }),
                    share: OnceLock::new(),
                })
                .collect(),
        });
        let pieces = pieces.collect();
        let mut version = Vec::new();
        state.version().put(&mut version);
        Plan {
            state: state.clone(),
            view: view.clone(),
            version,
            places,
            pieces,
        }
    }

    /// For a client that sends whole requests to one server: as if that server had the file in one piece.
    /// The version is that of the state, which the server splits by.
    pub(crate) fn through(state: &Arc<LayoutState>, view: &View, place: Place) -> Plan {
        let everything = falls::FallsSet::segment(0, 1).expect("one byte");
        let pattern = layout::Pattern::new(1, vec![everything]).expect("one element");
        let mut version = Vec::new();
        state.version().put(&mut version);
        Plan {
            state: state.clone(),
            view: view.clone(),
            version,
            places: vec![place],
            pieces: vec![Piece {
                ranges: Vec::from([Range {
                    start: 0,
                    end: falls::MAX_OFFSET,
                }]),
                partition: Partition::from_start(pattern),
                subfiles: vec![Subfile {
                    slot: Some(0),
                    share: OnceLock::new(),
                }],
            }],
        }
    }

    fn share(&self, piece: usize, subfile: usize, intersect_ns: &mut u64) -> &Share {
        let piece = &self.pieces[piece];
        piece.subfiles[subfile].share.get_or_init(|| {
            let started = Instant::now();
            let share = Share::new(self.view.bytes(), &piece.partition.subfile(subfile));
            *intersect_ns += started.elapsed().as_nanos() as u64;
            Box::new(share)
        })
    }

    /// The share of a part.
    pub(crate) fn share_of(&self, part: &Part) -> &Share {
        self.share(part.piece, part.subfile, &mut 0)
    }

    /// Whether all bytes are in one generation: no re-layout is under way.
    pub(crate) fn is_settled(&self) -> bool {
        self.pieces.len() == 1
    }

    /// Hands every part of a file range to `take` with the slot of its server, in ascending order of
    /// the subfiles; bytes that nobody holds have no slot.
    pub(crate) fn parts(
        &self,
        file: Range<u64>,
        intersect_ns: &mut u64,
        mut take: impl FnMut(Option<usize>, Part),
    ) {
        for (p, piece) in self.pieces.iter().enumerate() {
            for range in &piece.ranges {
                let range = range.start.max(file.start)..range.end.min(file.end);
                if range.is_empty() {
                    continue;
                }
                let mut meet = |subfile: usize| {
                    let bytes = self.share(p, subfile, intersect_ns).count(range.clone());
                    if bytes > 0 {
                        let part = Part {
                            piece: p,
                            subfile,
                            file: range.clone(),
                            bytes,
                        };
                        take(piece.subfiles[subfile].slot, part);
                    }
                };
                let meeting = FileOffset(range.start)..FileOffset(range.end);
                piece.partition.visit_meeting(meeting, &mut meet);
            }
        }
    }

    /// The part within a file range that may be shorter; `None` if it has no byte there.
    pub(crate) fn clip(&self, part: &Part, file: &Range<u64>) -> Option<Part> {
        let range = part.file.start.max(file.start)..part.file.end.min(file.end);
        if range == part.file {
            return Some(part.clone());
        }
        if range.is_empty() {
            return None;
        }
        let bytes = self.share_of(part).count(range.clone());
        (bytes > 0).then_some(Part {
            file: range,
            bytes,
            ..*part
        })
    }

    /// One past the last file byte of the longest beginning of `file` in which these parts have no
    /// more than `most` bytes.
    pub(crate) fn cut(&self, parts: &[Part], file: Range<u64>, most: u64) -> u64 {
        if let [part] = parts {
            return self.share_of(part).after(file, most);
        }
        let count = |end: u64| -> u64 {
            let range = file.start..end;
            let clipped = parts.iter().filter_map(|part| self.clip(part, &range));
            clipped.map(|part| part.bytes).sum()
        };
        let (mut good, mut bad) = (file.start, file.end + 1);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if count(middle) <= most {
                good = middle;
            } else {
                bad = middle;
            }
        }
        good
    }

    /// First file byte of these parts in a range.
    pub(crate) fn first(&self, parts: &[Part], file: Range<u64>) -> Option<u64> {
        parts
            .iter()
            .filter_map(|part| {
                let range = part.file.start.max(file.start)..part.file.end.min(file.end);
                (!range.is_empty())
                    .then(|| self.share_of(part).first(range))
                    .flatten()
            })
            .min()
    }
}

impl Part {
    /// Index of the subfile in its layout.
    pub(crate) fn subfile(&self) -> u32 {
        self.subfile as u32
    }

    /// The file range it was counted in.
    pub(crate) fn file(&self) -> Range<u64> {
        self.file.clone()
    }
}
