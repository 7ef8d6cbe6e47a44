//! What the members of a team give each other: in a redistribution in memory, and where they regroup the bytes of a
//! collective access.
//!
//! ```text
//!  redistribution   source of member a  --meets-->  target of member b      in the order of the array
//!  two phases       |-- domain of rank 0 --|-- domain of rank 1 --| ..      domains ascend, round after round
//! ```
//!
//! Members never tell each other offsets: each knows all views, and counts along.
//!
//! Invariants
//! - Domains of all rounds and ranks are apart and together the hull.
//! - Of a byte that several members hold the one of the lowest rank is taken.
//!
//! Left to others: packing, exchanging, waiting for members.

use kernels::Share;
use layout::{FileOffset, FileSpan, View, ViewOffset, ViewSpan};

/// Domains end at multiples of this where they are longer.
const DOMAIN_UNIT: u64 = 64 << 10;

/// What one member of a redistribution gives to and takes from every member, by rank.
#[derive(Debug)]
pub struct MemberShares {
    array: FileSpan,
    give: Vec<Share>,
    take: Vec<Share>,
    /// Bytes of all sources, by rank.
    sources: Vec<u64>,
    /// Bytes of all targets together.
    target_bytes: u64,
    is_ordered: bool,
    /// Whether what comes from a member lies in long runs on both sides, by rank.
    has_long_runs: Vec<bool>,
}

/// Runs are long from so many bytes on.
const LONG_RUN: u64 = 1 << 10;
/// Runs that are looked at to say so.
const SAMPLE: u64 = 8;

impl MemberShares {
    /// For a member with these parts of an array; `members` are source and target of all, by rank.
    pub fn new<'a>(
        array: FileSpan,
        source: &View,
        target: &View,
        members: impl Iterator<Item = (&'a View, &'a View)>,
    ) -> MemberShares {
        let members: Vec<(&View, &View)> = members.collect();
        let shares = members.iter().map(|(theirs, wanted)| {
            let give = Share::new(source.bytes(), wanted.bytes());
            (give, Share::new(theirs.bytes(), target.bytes()))
        });
        let (give, take): (Vec<Share>, Vec<Share>) = shares.unzip();
        let end = array.raw().end;
        let sources: Vec<&View> = members.iter().map(|(theirs, _)| *theirs).collect();
        MemberShares {
            array,
            is_ordered: has_common(array, &sources, &take),
            has_long_runs: take
                .iter()
                .map(|share| has_long_runs(share, array))
                .collect(),
            give,
            take,
            sources: sources.iter().map(|view| view.len_within(end)).collect(),
            target_bytes: members
                .iter()
                .map(|(_, wanted)| wanted.len_within(end))
                .sum(),
        }
    }

    /// Whether several members may hold a byte that this one wants, so that the order of storing counts.
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Whether what comes from a member lies in long runs on both sides.
    pub fn has_long_runs(&self, rank: usize) -> bool {
        self.has_long_runs[rank]
    }

    /// Bytes of the source of a member.
    pub fn source_bytes(&self, rank: usize) -> u64 {
        self.sources[rank]
    }

    /// Bytes of the targets of all members together.
    pub fn all_target_bytes(&self) -> u64 {
        self.target_bytes
    }

    /// The bytes of the array.
    pub fn array(&self) -> FileSpan {
        self.array
    }

    /// What this member's source (left) has in common with the target of each, by rank.
    pub fn give(&self) -> &[Share] {
        &self.give
    }

    /// What the source of each has in common with this member's target (right), with its rank, in the order in which it
    /// is stored: of a byte that several hold the lowest rank's comes last.
    pub fn take(&self) -> impl Iterator<Item = (usize, &Share)> {
        self.take.iter().enumerate().rev()
    }

    /// What the source of a member has in common with this member's target (right).
    pub fn taken(&self, rank: usize) -> &Share {
        &self.take[rank]
    }

    /// Bytes that go to a member.
    pub fn given_bytes(&self, rank: usize) -> u64 {
        self.give[rank].count(self.array.raw())
    }

    /// Bytes that come from a member.
    pub fn taken_bytes(&self, rank: usize) -> u64 {
        self.take[rank].count(self.array.raw())
    }
}

fn has_long_runs(share: &Share, array: FileSpan) -> bool {
    let (mut runs, mut bytes) = (0, 0);
    share.each_run(array.raw(), |_, _, len| {
        runs += 1;
        bytes += len;
        runs < SAMPLE
    });
    bytes >= runs * LONG_RUN
}

/// Whether two sources that give something have a byte in common.
fn has_common(array: FileSpan, sources: &[&View], take: &[Share]) -> bool {
    let gives = |rank: &usize| take[*rank].count(array.raw()) > 0;
    let givers: Vec<usize> = (0..sources.len()).filter(gives).collect();
    let meets = |a: usize, b: usize| {
        let both = Share::new(sources[a].bytes(), sources[b].bytes());
        both.first(array.raw()).is_some()
    };
    let pairs = givers.iter().enumerate();
    pairs
        .flat_map(|(i, a)| givers[i + 1..].iter().map(move |b| (*a, *b)))
        .any(|(a, b)| meets(a, b))
}

/// Which rank accesses which bytes of the file where ranks regroup, in rounds.
///
/// ```
/// use layout::FileSpan;
/// use plan::exchange::Domains;
/// let domains = Domains::new(FileSpan::from_raw(10..31), 2, 8);
/// assert_eq!(domains.rounds(), 2);
/// let all = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(round, rank)| domains.domain(round, rank).raw());
/// assert_eq!(all, [10..18, 18..26, 26..31, 31..31]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Domains {
    hull: FileSpan,
    bytes: u64,
    ranks: u64,
}

impl Domains {
    /// As many equal domains as ranks, none longer than `most` in a round.
    ///
    /// # Panics
    /// If there are no ranks, or `most` is 0.
    pub fn new(hull: FileSpan, ranks: usize, most: u64) -> Domains {
        assert!(ranks > 0 && most > 0, "domains without ranks or bytes");
        let ranks = ranks as u64;
        let mut bytes = hull.bytes().div_ceil(ranks);
        if bytes > DOMAIN_UNIT {
            bytes = bytes.next_multiple_of(DOMAIN_UNIT);
        }
        let bytes = bytes.clamp(1, most);
        Domains { hull, bytes, ranks }
    }

    /// From the first to the last byte of all ranks.
    pub fn hull(&self) -> FileSpan {
        self.hull
    }

    /// Rounds until all bytes are accessed.
    pub fn rounds(&self) -> u64 {
        self.hull
            .bytes()
            .div_ceil(self.bytes.saturating_mul(self.ranks))
    }

    /// What a rank accesses in a round.
    pub fn domain(&self, round: u64, rank: usize) -> FileSpan {
        let number = round * self.ranks + rank as u64;
        let start = self.hull.start.0 + number.saturating_mul(self.bytes);
        let domain = start..start.saturating_add(self.bytes);
        let start = FileOffset(domain.start.min(self.hull.end.0));
        FileSpan::new(start, FileOffset(domain.end.min(self.hull.end.0)))
    }
}

/// The view bytes of an access that lie in a span of the file.
pub fn positions(view: &View, access: ViewSpan, file: FileSpan) -> ViewSpan {
    let rank = |at: FileOffset| ViewOffset(view.bytes().rank(at.0));
    let clip = |at| rank(at).clamp(access.start, access.end);
    ViewSpan::new(clip(file.start), clip(file.end))
}

/// From the first to the last byte of accesses.
pub fn hull(files: &[FileSpan]) -> FileSpan {
    let used = || files.iter().filter(|file| !file.is_empty());
    let start = used().map(|f| f.start).min().unwrap_or_default();
    FileSpan::new(start, used().map(|f| f.end).max().unwrap_or_default())
}

/// Whether accesses of so many bytes together leave no hole between them and have no byte in common. `are_apart` says
/// whether two of them have none in a span.
pub fn is_whole(
    files: &[FileSpan],
    bytes: u64,
    are_apart: impl Fn(usize, usize, FileSpan) -> bool,
) -> bool {
    let apart = |a: usize, b: usize| {
        let both = files[a].within(files[b]);
        both.is_empty() || are_apart(a, b, both)
    };
    bytes == hull(files).bytes()
        && (0..files.len()).all(|a| (a + 1..files.len()).all(|b| apart(a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `of`-th cell of three bytes from `which` on.
    fn dealt(which: u64, of: u64) -> View {
        let cell = falls::FallsSet::segment(3 * which, 3).unwrap();
        View::new(FileOffset(0), 3 * of, cell).unwrap()
    }

    #[test]
    fn every_byte_of_a_collective_access_has_one_domain_and_one_position() {
        let ranks = 3;
        let access = ViewSpan::from_raw(4..37);
        let views: Vec<View> = (0..ranks).map(|rank| dealt(rank, ranks)).collect();
        let file_of = |view: &View| view.file_range(access.start..access.end).unwrap().into();
        let files: Vec<FileSpan> = views.iter().map(file_of).collect();
        let hull = hull(&files);
        for most in [1, 7, 20, 1000] {
            let domains = Domains::new(hull, views.len(), most);
            let mut next = hull.start;
            let mut at = [access.start; 3];
            for (round, owner) in
                (0..domains.rounds()).flat_map(|r| (0..views.len()).map(move |o| (r, o)))
            {
                let domain = domains.domain(round, owner);
                assert_eq!(domain.start, next, "domains ascend without a gap");
                assert!(domain.bytes() <= most);
                next = domain.end;
                for (rank, view) in views.iter().enumerate() {
                    let found = positions(view, access, domain);
                    let naive = domain.raw().filter(|&x| {
                        let at = view.file_to_view(FileOffset(x));
                        at.is_some_and(|at| access.contains(at))
                    });
                    assert_eq!(found.bytes(), naive.count() as u64);
                    assert_eq!(found.start, at[rank]);
                    at[rank] = found.end;
                }
            }
            assert_eq!(next, hull.end);
            assert_eq!(at, [access.end; 3]);
        }
    }

    #[test]
    fn only_accesses_without_holes_and_common_bytes_are_whole() {
        let spans = |list: [std::ops::Range<u64>; 2]| list.map(FileSpan::from_raw);
        let never = |_, _, _: FileSpan| false;
        assert!(is_whole(&spans([0..5, 5..9]), 9, never));
        assert!(!is_whole(&spans([0..5, 6..9]), 8, never));
        // They cross, which only their views can tell apart.
        assert!(!is_whole(&spans([0..8, 1..9]), 9, never));
        let asked = |a, b, both: FileSpan| (a, b, both.raw()) == (0, 1, 1..8);
        assert!(is_whole(&spans([0..8, 1..9]), 9, asked));
        assert!(!is_whole(&spans([0..8, 1..9]), 16, asked));
    }

    #[test]
    fn a_redistribution_takes_every_byte_from_the_lowest_rank_that_holds_it() {
        let array = FileSpan::from_raw(0..36);
        // Both hold all; the targets are halves by cells.
        let (all, targets) = (View::whole_file(), [dealt(0, 2), dealt(1, 2)]);
        let members = || targets.iter().map(|target| (&all, target));
        let shares = MemberShares::new(array, &all, &targets[1], members());
        assert_eq!([0, 1].map(|rank| shares.given_bytes(rank)), [18, 18]);
        assert_eq!([0, 1].map(|rank| shares.taken_bytes(rank)), [18, 18]);
        let mut target = [0u8; 18];
        for (rank, share) in shares.take() {
            let packed = [rank as u8 + 1; 18];
            let target = kernels::SharedBytesMut::from_slice(&mut target);
            share
                .scatter_right(shares.array().raw(), &packed, target, 0)
                .unwrap();
        }
        assert_eq!(target, [1; 18]);
        assert!(shares.is_ordered(), "both hold what is wanted");
        assert_eq!([0, 1].map(|rank| shares.source_bytes(rank)), [36, 36]);
        assert_eq!(shares.all_target_bytes(), 36);
        let members = || targets.iter().map(|part| (part, &all));
        let apart = MemberShares::new(array, &targets[1], &all, members());
        assert!(!apart.is_ordered(), "every byte has one holder");
        assert!(!apart.has_long_runs(0), "cells have three bytes");
    }
}
