//! Which bytes of an access lie in which subfile, and in which order they travel.
//!
//! This is the one place that knows the order of bytes. Client and server never tell each other offsets: both
//! walk the same [`Pieces`] over the same file span, and count along.
//!
//! ```text
//!  layout state     piece 0: generation 4 governs [200,600)       piece 1: generation 5 governs [0,200) and [600,..)
//!  access           [100,700)
//!  order of bytes   piece 0  [200,600)  subfile 0, 1, 2 ..   piece 1  [100,200)  subfile 0, 1 ..   [600,700)  subfile 0, 1 ..
//! ```
//!
//! - [`Pieces`] says who may have bytes of a span: pieces in order, of each its ranges, of each the subfiles by index.
//! - [`Shares`] holds what a view and each subfile have in common, compiled by [`kernels`] when first asked for.
//! - [`AccessPlan`] joins the two: the [`Part`]s of an access, cut and clipped.
//!
//! Invariants
//! - A byte of the file has one [`Home`] in a layout state.
//! - Inside a part bytes ascend in the file. A part is never empty.
//! - While a file moves its ranges change with every step; shares belong to a generation, and are compiled once.
//!
//! Left to others: which server has a subfile, how bytes travel, how long a search may take.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use falls::Periodic;
use kernels::Share;
use layout::{FileOffset, FileSpan, Partition};

/// One generation of a layout, and what it governs of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The generation.
    pub generation: u64,
    /// The spans of the file that it governs, ascending and apart.
    pub ranges: Vec<FileSpan>,
    /// Its subfiles.
    pub partition: Partition,
}

/// The pieces of a layout state, in the order in which their bytes travel. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces(Arc<[Piece]>);

/// A subfile, inside one range of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Home {
    /// The number of the piece.
    pub piece: usize,
    /// Which of its ranges.
    pub range: usize,
    /// The index of the subfile in its partition.
    pub subfile: usize,
}

/// Bytes of an access that have one home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where they are.
    pub home: Home,
    /// The span that they were counted in.
    pub file: FileSpan,
    /// How many they are.
    pub bytes: u64,
}

impl Pieces {
    /// Pieces whose ranges are apart and together cover the file.
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Pieces {
        Pieces(pieces.into_iter().collect())
    }

    /// The file as if it lay in one subfile.
    pub fn undivided() -> Pieces {
        let byte = falls::FallsSet::segment(0, 1).expect("one byte");
        let pattern = layout::Pattern::new(1, vec![byte]).expect("one element");
        Pieces::new([Piece {
            generation: 0,
            ranges: Vec::from([FileSpan::from_raw(0..falls::MAX_OFFSET)]),
            partition: Partition::from_start(pattern),
        }])
    }

    /// The pieces by number.
    pub fn list(&self) -> &[Piece] {
        &self.0
    }

    /// The ranges of all pieces that meet a span, each with its numbers and cut to the span, in order.
    fn ranges_within(&self, file: FileSpan) -> impl Iterator<Item = (usize, usize, FileSpan)> + '_ {
        self.0.iter().enumerate().flat_map(move |(p, piece)| {
            let first = piece.ranges.partition_point(|r| r.end <= file.start);
            let met = piece.ranges.iter().enumerate().skip(first);
            met.map(move |(r, range)| (p, r, range.within(file)))
                .take_while(|(_, _, met)| !met.is_empty())
        })
    }

    /// Visits all homes that may have bytes of a span, in the order in which bytes travel, each with the part of the
    /// span that its range governs. Ends at the first visit that fails.
    ///
    /// ```
    /// use layout::{FileSpan, Partition, Pattern};
    /// use plan::access::{Piece, Pieces};
    /// let halves = Pattern::new(8, vec!["{(0,3)}".parse()?, "{(4,7)}".parse()?])?;
    /// let piece = |generation, ranges: [std::ops::Range<u64>; 1]| Piece {
    ///     generation,
    ///     ranges: ranges.map(FileSpan::from_raw).to_vec(),
    ///     partition: Partition::from_start(halves.clone()),
    /// };
    /// let pieces = Pieces::new(vec![piece(4, [8..u64::MAX]), piece(5, [0..8])]);
    /// let mut order = Vec::new();
    /// pieces.visit(FileSpan::from_raw(6..10), |home, file| order.push((home.piece, home.subfile, file.raw())));
    /// assert_eq!(order, [(0, 0, 8..10), (0, 1, 8..10), (1, 0, 6..8), (1, 1, 6..8)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_visit<E>(
        &self,
        file: FileSpan,
        mut visit: impl FnMut(Home, FileSpan) -> Result<(), E>,
    ) -> Result<(), E> {
        for (piece, range, met) in self.ranges_within(file) {
            let mut visited = Ok(());
            let partition = &self.0[piece].partition;
            partition.visit_meeting(met.start..met.end, |subfile| {
                if visited.is_ok() {
                    let home = Home {
                        piece,
                        range,
                        subfile,
                    };
                    visited = visit(home, met);
                }
            });
            visited?;
        }
        Ok(())
    }

    /// [`Pieces::try_visit`] where no visit fails.
    pub fn visit(&self, file: FileSpan, mut visit: impl FnMut(Home, FileSpan)) {
        let visited: Result<(), Infallible> = self.try_visit(file, |home, met| {
            visit(home, met);
            Ok(())
        });
        match visited {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Whether an access to a span has its bytes in the same order under both states. Bytes that have the same home
    /// are not enough: a range that begins inside of the span changes the order of what travels.
    pub fn is_same_within(&self, other: &Pieces, file: FileSpan) -> bool {
        let met = self.ranges_within(file).zip(other.ranges_within(file));
        let mut is_same = met.map(|((p, _, mine), (q, _, theirs))| {
            (self.0[p].generation, mine) == (other.0[q].generation, theirs)
        });
        is_same.all(|same| same)
            && self.ranges_within(file).count() == other.ranges_within(file).count()
    }
}

/// Places for shares that are made together.
const CHUNK: usize = 64;

/// Shares by subfile, each compiled when first asked for.
type Row = Arc<[OnceLock<Box<Share>>]>;

fn row(len: usize) -> Row {
    (0..len).map(|_| OnceLock::new()).collect()
}

/// The shares of one piece by subfile. Most views meet few of many subfiles, so places for many are made in chunks; a
/// program may have a thousand files of a few subfiles open, so there are no more than subfiles.
#[derive(Clone, Debug)]
struct Table {
    generation: u64,
    places: Places,
}

#[derive(Clone, Debug)]
enum Places {
    Few(Row),
    Many(Arc<[OnceLock<Row>]>),
}

impl Table {
    fn new(piece: &Piece) -> Table {
        let places = match piece.partition.len() {
            few @ ..=CHUNK => Places::Few(row(few)),
            many => {
                let chunks = many.div_ceil(CHUNK);
                Places::Many((0..chunks).map(|_| OnceLock::new()).collect())
            }
        };
        Table {
            generation: piece.generation,
            places,
        }
    }

    fn get(&self, subfile: usize) -> Option<&Share> {
        let place = match &self.places {
            Places::Few(row) => &row[subfile],
            Places::Many(chunks) => &chunks[subfile / CHUNK].get()?[subfile % CHUNK],
        };
        place.get().map(|share| &**share)
    }

    fn get_or_make(&self, view: &Periodic, partition: &Partition, subfile: usize) -> &Share {
        let place = match &self.places {
            Places::Few(row) => &row[subfile],
            Places::Many(chunks) => {
                &chunks[subfile / CHUNK].get_or_init(|| row(CHUNK))[subfile % CHUNK]
            }
        };
        place.get_or_init(|| Box::new(Share::new(view, &partition.subfile(subfile))))
    }
}

/// What a view has in common with the subfiles of a layout state: left is the view, right the subfile.
///
/// Compiling one costs time by the size of both descriptions, whatever the size of the file.
#[derive(Clone, Debug)]
pub struct Shares {
    view: Periodic,
    pieces: Pieces,
    tables: Box<[Table]>,
}

impl Shares {
    /// The shares of a view. Those of generations that `last`, which is of the same view, has too are taken over.
    pub fn new(view: &Periodic, pieces: &Pieces, last: Option<&Shares>) -> Shares {
        let table = |piece: &Piece| {
            // A generation of a file has one partition.
            let mut known = last.iter().flat_map(|last| &last.tables);
            let known = known.find(|table| table.generation == piece.generation);
            known.map_or_else(|| Table::new(piece), Table::clone)
        };
        Shares {
            view: view.clone(),
            pieces: pieces.clone(),
            tables: pieces.0.iter().map(table).collect(),
        }
    }

    /// The bytes of the view.
    pub fn view(&self) -> &Periodic {
        &self.view
    }

    /// With a subfile of a piece; compiled when first asked for.
    ///
    /// # Panics
    /// If there is no such subfile.
    pub fn with(&self, piece: usize, subfile: usize) -> &Share {
        let partition = &self.pieces.0[piece].partition;
        self.tables[piece].get_or_make(&self.view, partition, subfile)
    }

    /// With a subfile of a piece, if it was asked for before.
    pub fn compiled(&self, piece: usize, subfile: usize) -> Option<&Share> {
        self.tables[piece].get(subfile)
    }

    /// Number of subfiles of a piece; 0 if there is no such piece.
    pub fn subfiles(&self, piece: usize) -> usize {
        self.pieces.0.get(piece).map_or(0, |p| p.partition.len())
    }
}

/// The parts of accesses through one view under one layout state.
#[derive(Clone, Debug)]
pub struct AccessPlan {
    pieces: Pieces,
    shares: Arc<Shares>,
}

impl AccessPlan {
    /// Joins the pieces of a state and the shares of a view with them.
    pub fn new(pieces: Pieces, shares: Arc<Shares>) -> AccessPlan {
        AccessPlan { pieces, shares }
    }

    /// The pieces of the state.
    pub fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// The shares of the view.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// The share that a part belongs to.
    pub fn share(&self, part: &Part) -> &Share {
        self.shares.with(part.home.piece, part.home.subfile)
    }

    /// The span around a part in which the bytes of its subfile have the same home.
    pub fn range(&self, part: &Part) -> FileSpan {
        self.pieces.0[part.home.piece].ranges[part.home.range]
    }

    /// Hands out the parts of a span in the order in which bytes travel. `count` says how many bytes of a span the
    /// view has in a home, or why it does not search for them.
    pub fn try_parts<E>(
        &self,
        file: FileSpan,
        mut count: impl FnMut(Home, FileSpan) -> Result<u64, E>,
        mut take: impl FnMut(Part),
    ) -> Result<(), E> {
        self.pieces.try_visit(file, |home, file| {
            let bytes = count(home, file)?;
            if bytes > 0 {
                take(Part { home, file, bytes });
            }
            Ok(())
        })
    }

    /// Hands out the parts of a span in the order in which bytes travel, however long they take to count.
    pub fn parts(&self, file: FileSpan, take: impl FnMut(Part)) {
        let count = |home: Home, file: FileSpan| {
            let share = self.shares.with(home.piece, home.subfile);
            Ok::<u64, Infallible>(share.count(file.raw()))
        };
        let Ok(()) = self.try_parts(file, count, take);
    }

    /// The part inside of a span; `None` if it has no byte there.
    pub fn clip(&self, part: &Part, file: FileSpan) -> Option<Part> {
        let met = part.file.within(file);
        if met == part.file {
            return Some(*part);
        }
        if met.is_empty() {
            return None;
        }
        let bytes = self.share(part).count(met.raw());
        (bytes > 0).then_some(Part {
            file: met,
            bytes,
            ..*part
        })
    }

    /// The longest beginning of a span in which these parts have no more than `most` bytes.
    pub fn cut(&self, parts: &[Part], file: FileSpan, most: u64) -> FileSpan {
        let until = |end| FileSpan::new(file.start, end);
        if let [part] = parts {
            // Bytes of the share outside the span of the part belong to another one.
            let met = part.file.within(file);
            let share = self.share(part);
            return match met.is_empty() || share.count(met.raw()) <= most {
                true => file,
                false => until(FileOffset(share.after(met.raw(), most))),
            };
        }
        let count = |end: u64| -> u64 {
            let file = until(FileOffset(end));
            let clipped = parts.iter().filter_map(|part| self.clip(part, file));
            clipped.map(|part| part.bytes).sum()
        };
        let (mut good, mut bad) = (file.start.0, file.end.0 + 1);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if count(middle) <= most {
                good = middle;
            } else {
                bad = middle;
            }
        }
        until(FileOffset(good))
    }

    /// The first byte of these parts in a span.
    pub fn first(&self, parts: &[Part], file: FileSpan) -> Option<FileOffset> {
        let first = |part: &Part| {
            let met = part.file.within(file);
            let byte = (!met.is_empty()).then(|| self.share(part).first(met.raw()));
            byte.flatten().map(FileOffset)
        };
        parts.iter().filter_map(first).min()
    }
}

#[cfg(test)]
mod tests;
