//! Which bytes of a view lie at which server, under one layout state.
//!
//! A [`Plan`] belongs to one view and one state. The share of each subfile (what view and subfile
//! have in common) is computed when the subfile is first met and kept; its cost does not depend on
//! the size of the file. An access then asks each share for its bytes in a file range. While a file moves its
//! state changes with every round, and the plans of one generation have their shares in common.
//!
//! Order of the parts, which is the order of bytes in messages: pieces, their ranges, subfiles by index.
//!
//! Left to others: connections, sending, what a server answers.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use kernels::Share;
use layout::{FileOffset, Partition, View};
use wire::{LayoutState, Place};

/// The stored bytes of a subfile: the generation they carry, and the index.
pub(crate) type Stored = (u64, u32);

/// Bytes of one subfile in a file range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    piece: usize,
    /// Which range of the piece.
    range: usize,
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
    /// The step of the state.
    pub(crate) step: u64,
    /// The servers of the file; an index into it is a *slot*.
    pub(crate) places: Vec<Place>,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    generation: u64,
    ranges: Vec<Range<u64>>,
    partition: Partition,
    subfiles: Vec<Subfile>,
    shares: Shares,
}

/// By subfile.
type Shares = Arc<[OnceLock<Box<Share>>]>;

#[derive(Debug)]
struct Subfile {
    /// `None` if nobody holds it.
    slot: Option<usize>,
    /// The generation that its stored bytes carry.
    stored: u64,
}

fn no_shares(count: usize) -> Shares {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl Plan {
    /// The plan for a state; `last` is one of the same view, from which shares are taken over.
    pub(crate) fn new(state: &Arc<LayoutState>, view: &View, last: Option<&Plan>) -> Plan {
        let mut places: Vec<Place> = Vec::new();
        let mut by_server = std::collections::HashMap::new();
        let shares = |piece: &wire::Piece| {
            // A generation of a file has one partition.
            let is_same = |p: &&Piece| p.generation == piece.generation;
            let known = last.and_then(|last| last.pieces.iter().find(is_same));
            known.map_or_else(|| no_shares(piece.places.len()), |p| p.shares.clone())
        };
        let pieces = state.pieces.iter().map(|piece| Piece {
            generation: piece.generation,
            shares: shares(piece),
            ranges: piece.ranges.clone(),
            partition: piece.partition.clone(),
            subfiles: piece
                .places
                .iter()
                .zip(&piece.stores)
                .map(|(list, &stored)| Subfile {
                    slot: list.first().map(|place| {
                        *by_server.entry(place.server).or_insert_with(|| {
                            places.push(*place);
                            places.len() - 1
                        })
                    }),
                    stored,
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
            step: state.step,
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
            step: state.step,
            places: vec![place],
            pieces: vec![Piece {
                generation: 0,
                shares: no_shares(1),
                ranges: Vec::from([Range {
                    start: 0,
                    end: falls::MAX_OFFSET,
                }]),
                partition: Partition::from_start(pattern),
                subfiles: vec![Subfile {
                    slot: Some(0),
                    stored: 0,
                }],
            }],
        }
    }

    fn share(&self, piece: usize, subfile: usize, intersect_ns: &mut u64) -> &Share {
        let piece = &self.pieces[piece];
        piece.shares[subfile].get_or_init(|| {
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

    /// Whose stored bytes a part is about.
    pub(crate) fn stored(&self, part: &Part) -> Stored {
        let stored = self.pieces[part.piece].subfiles[part.subfile].stored;
        (stored, part.subfile as u32)
    }

    /// Whether all bytes are in one generation: no re-layout is under way.
    pub(crate) fn is_settled(&self) -> bool {
        self.pieces.len() == 1
    }

    /// The share of a subfile of the first piece.
    pub(crate) fn share_at(&self, subfile: u32) -> Option<&Share> {
        let subfile = subfile as usize;
        let is_there = self.pieces.first()?.subfiles.len() > subfile;
        is_there.then(|| self.share(0, subfile, &mut 0))
    }

    /// The file range around a part in which its bytes have the same home under this state.
    pub(crate) fn range_of(&self, part: &Part) -> Range<u64> {
        self.pieces[part.piece].ranges[part.range].clone()
    }

    /// Hands every part of a file range to `take` with the slot of its server, in the order of the
    /// [module](self); bytes that nobody holds have no slot.
    pub(crate) fn parts(
        &self,
        file: Range<u64>,
        intersect_ns: &mut u64,
        mut take: impl FnMut(Option<usize>, Part),
    ) {
        for (p, piece) in self.pieces.iter().enumerate() {
            for (r, range) in piece.ranges.iter().enumerate() {
                let range = range.start.max(file.start)..range.end.min(file.end);
                if range.is_empty() {
                    continue;
                }
                let mut meet = |subfile: usize| {
                    let bytes = self.share(p, subfile, intersect_ns).count(range.clone());
                    if bytes > 0 {
                        let part = Part {
                            piece: p,
                            range: r,
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
            // Bytes of the share outside the range of the part belong to another one.
            let range = part.file.start.max(file.start)..part.file.end.min(file.end);
            let share = self.share_of(part);
            return match range.is_empty() || share.count(range.clone()) <= most {
                true => file.end,
                false => share.after(range, most),
            };
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
    /// The file range it was counted in.
    pub(crate) fn file(&self) -> Range<u64> {
        self.file.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::{ArrayType, Layout};

    fn piece(generation: u64, text: &str, ranges: &[Range<u64>], servers: &[u64]) -> wire::Piece {
        let layout: Layout = text.parse().unwrap();
        let array: ArrayType = "u8[12,10]".parse().unwrap();
        let elements = layout.on_array(&array).unwrap().elements().unwrap();
        let pattern = layout::Pattern::new(elements.period, elements.sets).unwrap();
        let partition = Partition::from_start(pattern);
        let place = |i: usize| Place {
            server: servers[i % servers.len()],
            incarnation: 1,
        };
        let places = (0..partition.len()).map(|i| vec![place(i)]).collect();
        wire::Piece {
            ranges: ranges.to_vec(),
            ..wire::Piece::whole(generation, partition, places)
        }
    }

    fn state(step: u64, frontier: u64) -> Arc<LayoutState> {
        let old = piece(
            1,
            "(block, *) onto 3",
            &[frontier..600, 700..900],
            &[1, 2, 3],
        );
        let new = piece(
            2,
            "(*, cyclic(3)) onto 2",
            &[0..frontier, 600..700, 900..u64::MAX],
            &[3, 4],
        );
        Arc::new(LayoutState {
            owner: old.places[0][0],
            step,
            pieces: vec![old, new],
        })
    }

    #[test]
    fn every_byte_of_a_file_that_moves_has_one_home() {
        let layout: Layout = "(cyclic(2), block) onto 2x2 [1]".parse().unwrap();
        let array: ArrayType = "u8[12,10]".parse().unwrap();
        let applied = layout.on_array(&array).unwrap();
        let view = View::new(FileOffset(5), applied.period(), applied.element(0).unwrap()).unwrap();
        let plan = Plan::new(&state(7, 130), &view, None);
        assert_eq!(plan.step, 7);
        for file in [0..1000, 100..140, 595..905, 130..131, 899..2000] {
            let mut parts = Vec::new();
            plan.parts(file.clone(), &mut 0, |slot, part| {
                parts.push((slot.unwrap(), part))
            });
            for x in file.clone().filter(|x| view.bytes().contains(*x)) {
                let mut homes = parts.iter().filter(|(_, part)| {
                    part.file().contains(&x) && plan.share_of(part).count(x..x + 1) == 1
                });
                let (slot, part) = homes
                    .next()
                    .unwrap_or_else(|| panic!("byte {x} has no home"));
                assert!(homes.next().is_none(), "byte {x} has two");
                assert!(plan.range_of(part).contains(&x));
                let is_old = (130..600).contains(&x) || (700..900).contains(&x);
                assert_eq!(plan.stored(part).0, if is_old { 1 } else { 2 });
                let server = plan.places[*slot].server;
                assert!(if is_old { server <= 3 } else { server >= 3 });
            }
            let bytes: u64 = parts.iter().map(|(_, part)| part.bytes).sum();
            let shown = view.bytes().rank(file.end) - view.bytes().rank(file.start);
            assert_eq!(bytes, shown);
            // Pieces, ranges, subfiles.
            let order = |p: &Part| (p.piece, p.range, p.subfile);
            assert!(parts.windows(2).all(|w| order(&w[0].1) < order(&w[1].1)));
        }
    }

    #[test]
    fn the_next_step_of_a_move_computes_nothing_again() {
        let view = View::whole_file();
        let first = Plan::new(&state(7, 130), &view, None);
        let mut spent = 0;
        first.parts(0..2000, &mut spent, |_, _| {});
        let next = Plan::new(&state(8, 400), &view, Some(&first));
        let mut spent = 0;
        next.parts(0..2000, &mut spent, |_, _| {});
        assert_eq!(spent, 0, "shares are those of before");
    }
}
