//! Owns [`Grid`]: who owns which entries of a 2-D slice of an array.
//!
//! Where every row and column fits, each entry has its cell. Where not, neighbouring rows (columns)
//! with the same owners form one *band*; a cell then stands for a block of entries, and says so
//! when they have several owners. Bands are found by doubling and halving along a few lines of
//! the array, O(log extent) questions each, so a picture of 2^40 entries is as quick as one of 40.
//!
//! ```text
//! (block, *) onto 4 of f64[4096,4096]          0-1023 | 0
//!                                           1024-2047 | 1
//!                                           2048-3071 | 2
//!                                           3072-4095 | 3
//! ```

use std::ops::Range;

use falls::FallsSet;

use console::subject::{Owner, Subject};

/// Neighbouring rows or columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Band {
    /// These indices, drawn as one.
    Shown(Range<u64>),
    /// These indices are left out.
    Elided(Range<u64>),
}

impl Band {
    /// The indices.
    pub(crate) fn range(&self) -> &Range<u64> {
        match self {
            Band::Shown(range) | Band::Elided(range) => range,
        }
    }

    /// Whether it stands for indices that are not drawn.
    pub(crate) fn is_elided(&self) -> bool {
        matches!(self, Band::Elided(_))
    }

    fn len(&self) -> u64 {
        self.range().end - self.range().start
    }
}

/// How many rows and columns there is room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// Owners of a slice, band by band.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// Bands of the last but one dimension; one band for arrays with one dimension.
    pub(crate) rows: Vec<Band>,
    /// Bands of the last dimension.
    pub(crate) columns: Vec<Band>,
    /// Owners by row and column; `None` where a band is elided.
    pub(crate) cells: Vec<Vec<Option<Owner>>>,
    /// Whether the array has a dimension for the rows.
    pub(crate) has_rows: bool,
}

impl Grid {
    /// The slice of the last two dimensions at `prefix`, which fixes all others. The array has at
    /// least one dimension and one byte.
    pub(crate) fn new(subject: &Subject, prefix: &[u64], room: Room) -> Grid {
        let slice = Slice { subject, prefix };
        let (row_extent, column_extent) = slice.extents();
        // Lines through a picked element, which may be a small part of the array.
        let marks = subject.marks();
        let lines = |extent: u64, from_last: usize| {
            let mut lines = vec![0, extent / 2, extent - 1];
            lines.extend(marks.iter().filter_map(|m| m.iter().nth_back(from_last)));
            lines.sort_unstable();
            lines.dedup();
            lines
        };
        let rows = bands(
            row_extent,
            room.rows,
            &lines(column_extent, 0),
            |band, line| slice.owner(band, line..line + 1),
        );
        let columns = bands(
            column_extent,
            room.columns,
            &lines(row_extent, 1),
            |band, line| slice.owner(line..line + 1, band),
        );
        let cells = rows
            .iter()
            .map(|row| {
                let cell = |column: &Band| match (row, column) {
                    (Band::Shown(r), Band::Shown(c)) => Some(slice.owner(r.clone(), c.clone())),
                    _ => None,
                };
                columns.iter().map(cell).collect()
            })
            .collect();
        Grid {
            rows,
            columns,
            cells,
            has_rows: subject.array.dimensions() > 1,
        }
    }

    /// Whether some band stands for more than one index.
    pub(crate) fn is_merged(&self) -> bool {
        let merged = |band: &Band| !band.is_elided() && band.len() > 1;
        (self.has_rows && self.rows.iter().any(merged)) || self.columns.iter().any(merged)
    }

    /// Whether some cell has several owners.
    pub(crate) fn has_several(&self) -> bool {
        self.any(|owner| matches!(owner, Owner::Several(_)))
    }

    /// Whether some cell has no owner.
    pub(crate) fn has_holes(&self) -> bool {
        self.any(|owner| owner == Owner::Nobody)
    }

    fn any(&self, wanted: impl Fn(Owner) -> bool) -> bool {
        self.cells.iter().flatten().flatten().any(|&o| wanted(o))
    }
}

/// The last two dimensions at fixed indices of all others.
struct Slice<'a> {
    subject: &'a Subject,
    prefix: &'a [u64],
}

impl Slice<'_> {
    fn extents(&self) -> (u64, u64) {
        match self.subject.array.extents() {
            [] => (1, 1),
            [columns] => (1, *columns),
            [.., rows, columns] => (*rows, *columns),
        }
    }

    fn owner(&self, rows: Range<u64>, columns: Range<u64>) -> Owner {
        let array = &self.subject.array;
        let mut ranges: Vec<Range<u64>> = self.prefix.iter().map(|&i| i..i + 1).collect();
        if array.dimensions() > 1 {
            ranges.push(rows);
        }
        if array.dimensions() > 0 {
            ranges.push(columns);
        }
        let sets: Result<Vec<FallsSet>, _> = ranges
            .into_iter()
            .map(|r| FallsSet::segment(r.start, r.end - r.start))
            .collect();
        let block = sets.ok().and_then(|sets| array.cross(&sets).ok());
        self.subject.owner(&block.unwrap_or_default())
    }
}

/// Cuts `0..extent` into at most `room` bands. `owner(band, line)` is who owns a band on one line
/// across; bands end where the owner of some line changes.
fn bands(
    extent: u64,
    room: usize,
    lines: &[u64],
    owner: impl Fn(Range<u64>, u64) -> Owner,
) -> Vec<Band> {
    let room = room.max(3);
    if extent <= room as u64 {
        return (0..extent).map(|i| Band::Shown(i..i + 1)).collect();
    }
    let run = |from: u64, line: u64| {
        let first = owner(from..from + 1, line);
        // One entry with several owners is no start for a longer band.
        if matches!(first, Owner::Several(_)) {
            return 1;
        }
        let same = |len: u64| owner(from..from + len, line) == first;
        longest(extent - from, same)
    };
    let (mut list, mut at) = (Vec::new(), 0);
    while at < extent && list.len() < room {
        let len = lines.iter().map(|&line| run(at, line)).min().unwrap_or(1);
        list.push(Band::Shown(at..at + len));
        at += len;
    }
    if at < extent {
        // Room for the ellipsis and the last index.
        list.truncate(room - 2);
        let shown = list.last().map_or(0, |band| band.range().end);
        list.push(Band::Elided(shown..extent - 1));
        list.push(Band::Shown(extent - 1..extent));
    }
    list
}

/// The largest length up to `limit` for which `holds`, which holds for 1 and up to some length.
fn longest(limit: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let mut good = 1;
    while good < limit && holds((good * 2).min(limit)) {
        good = (good * 2).min(limit);
    }
    let mut bad = (good * 2).min(limit + 1);
    while good < limit && good + 1 < bad {
        let middle = good + (bad - good) / 2;
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;
    use console::notation;

    fn grid(layout: &str, array: &str, rows: usize, columns: usize) -> Grid {
        let array = notation::array(array).expect("an array");
        let subject = notation::subject("layout", layout, &array).expect("a layout");
        Grid::new(&subject, &[], Room { rows, columns })
    }

    #[test]
    fn the_longest_length_is_found_at_every_border() {
        for limit in 1..40 {
            for border in 1..=limit {
                assert_eq!(longest(limit, |len| len <= border), border);
            }
        }
    }

    #[test]
    fn small_arrays_have_a_cell_for_every_entry() {
        let grid = grid("(block, cyclic) onto 2x2", "u8[4,4]", 10, 10);
        let row = |a, b| {
            vec![
                Some(Owner::One(a)),
                Some(Owner::One(b)),
                Some(Owner::One(a)),
                Some(Owner::One(b)),
            ]
        };
        assert_eq!(grid.cells, [row(0, 1), row(0, 1), row(2, 3), row(2, 3)]);
        assert!(!grid.is_merged() && !grid.has_several());
    }

    #[test]
    fn bands_end_where_owners_change_however_large_the_array() {
        let grid = grid(
            "(block, cyclic(1000000)) onto 4x2",
            "u8[1000000000,3000000]",
            10,
            10,
        );
        let ends = |bands: &[Band]| bands.iter().map(|b| b.range().end).collect::<Vec<_>>();
        assert_eq!(
            ends(&grid.rows),
            [250_000_000, 500_000_000, 750_000_000, 1_000_000_000]
        );
        assert_eq!(ends(&grid.columns), [1_000_000, 2_000_000, 3_000_000]);
        assert_eq!(grid.cells[3][1], Some(Owner::One(7)));
        assert!(grid.is_merged());
    }

    #[test]
    fn what_does_not_fit_is_elided_and_the_last_index_is_kept() {
        let grid = grid("(cyclic) onto 3", "u8[100]", 1, 6);
        let shown = |i: u64| Band::Shown(i..i + 1);
        assert_eq!(
            grid.columns,
            [
                shown(0),
                shown(1),
                shown(2),
                shown(3),
                Band::Elided(4..99),
                shown(99)
            ]
        );
        assert_eq!(grid.cells[0][4], None);
        assert_eq!(grid.cells[0][5], Some(Owner::One(0)));
    }

    #[test]
    fn entries_across_a_border_have_several_owners() {
        let grid = grid("striped(12) over 2", "f64[4]", 1, 6);
        let expected = [
            Owner::One(0),
            Owner::Several(0),
            Owner::One(1),
            Owner::One(0),
        ];
        assert_eq!(grid.cells[0], expected.map(Some));
    }
}
