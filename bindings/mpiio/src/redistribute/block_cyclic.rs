//! Block-cyclic matrices as ScaLAPACK has them: which elements of a submatrix a process holds, and where.
//!
//! Row `g` of the matrix (from 0) belongs to process row `(g / mb + rsrc) mod nprow`; columns alike. A process keeps its
//! rows and columns in ascending order, column after column, `lld` elements apart.
//!
//! Left to others: moving anything.

use client::{Places, View};
use falls::{FallsSet, Periodic};
use layout::mpi::{Datatype, FileView};

use crate::entry::Outcome;
use crate::failure::{Class, Failure};

/// One dimension of a distribution, as one process sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    /// Elements of the matrix.
    pub(super) size: i64,
    /// Elements of a block.
    pub(super) block: i64,
    /// The process that has the first block.
    pub(super) source: i64,
    /// Processes.
    pub(super) processes: i64,
    /// This one.
    pub(super) mine: i64,
}

impl Dimension {
    fn check(&self, name: &str) -> Outcome {
        let is_good = self.size >= 0
            && self.block >= 1
            && self.processes >= 1
            && (0..self.processes).contains(&self.source)
            && (0..self.processes).contains(&self.mine);
        if is_good {
            return Ok(());
        }
        Err(Failure::new(
            Class::Arg,
            format!("the {name} are not a distribution: {self:?}"),
        ))
    }

    /// How many of the first `count` elements are this process's (`numroc`).
    fn owned_below(&self, count: i64) -> i64 {
        let turn = (self.mine - self.source).rem_euclid(self.processes);
        let whole = count / self.block;
        let rounds = whole / self.processes * self.block;
        rounds
            + match (whole % self.processes).cmp(&turn) {
                std::cmp::Ordering::Greater => self.block,
                std::cmp::Ordering::Equal => count % self.block,
                std::cmp::Ordering::Less => 0,
            }
    }

    /// The elements from `first` on, `count` of them, that are this process's, as a set in elements of the matrix.
    fn owned(&self, first: i64, count: i64) -> Outcome<FallsSet> {
        let turn = (self.mine - self.source).rem_euclid(self.processes);
        let block = FallsSet::segment((turn * self.block) as u64, self.block as u64)
            .map_err(|e| Failure::new(Class::Arg, e.to_string()))?;
        let round = (self.processes * self.block) as u64;
        let all =
            Periodic::new(0, round, block).map_err(|e| Failure::new(Class::Arg, e.to_string()))?;
        Ok(all.window(first as u64..(first + count) as u64))
    }
}

/// A submatrix of a distributed matrix, as one process has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submatrix {
    pub(super) rows: Dimension,
    pub(super) columns: Dimension,
    /// Elements from one column to the next in memory.
    pub(super) leading: i64,
    /// First row and column, from 0.
    pub(super) at: (i64, i64),
}

/// A part of a submatrix.
#[derive(Debug)]
pub(super) struct LocalPart {
    /// Which bytes of the submatrix, column after column.
    pub(super) view: View,
    /// Where they lie in the local matrix, in bytes.
    pub(super) places: Places,
}

impl Submatrix {
    /// What this process has of `rows` x `columns` elements of so many bytes.
    pub(super) fn part(&self, rows: i64, columns: i64, element: i64) -> Outcome<LocalPart> {
        self.rows.check("rows")?;
        self.columns.check("columns")?;
        let (row, column) = self.at;
        let fits = row >= 0
            && column >= 0
            && row
                .checked_add(rows)
                .is_some_and(|end| end <= self.rows.size)
            && column
                .checked_add(columns)
                .is_some_and(|end| end <= self.columns.size);
        if !fits {
            return Err(Failure::new(
                Class::Arg,
                format!(
                    "{rows} x {columns} elements from ({}, {}) on leave the matrix of {} x {}",
                    row + 1,
                    column + 1,
                    self.rows.size,
                    self.columns.size
                ),
            ));
        }
        let local = |d: &Dimension, first: i64, count: i64| {
            let before = d.owned_below(first);
            (before, d.owned_below(first + count) - before)
        };
        let (first_row, own_rows) = local(&self.rows, row, rows);
        let (first_column, own_columns) = local(&self.columns, column, columns);
        if own_rows > 0 && self.leading < self.rows.owned_below(self.rows.size) {
            return Err(Failure::new(
                Class::Arg,
                format!(
                    "the leading dimension {} is less than the local rows",
                    self.leading
                ),
            ));
        }
        let bytes = Datatype::basic(element)?;
        // The rows of one column, relative to the submatrix; then the columns of those.
        let own = Datatype::from_set(-row, &self.rows.owned(row, rows)?)?;
        let in_column = match own_rows {
            0 => Datatype::basic(0)?,
            _ => scaled(&own, element)?,
        };
        let in_column = Datatype::resized(0, rows * element, &in_column)?;
        let own = self.columns.owned(column, columns)?;
        let runs: Vec<(i64, i64)> = own
            .segments(0..falls::MAX_OFFSET)
            .map(|s| (s.start() as i64 - column, s.len() as i64))
            .collect();
        let displacements: Vec<i64> = runs.iter().map(|r| r.0).collect();
        let lengths: Vec<i64> = runs.iter().map(|r| r.1).collect();
        let all = Datatype::indexed(&lengths, &displacements, &in_column)?;
        let all = Datatype::resized(0, (rows * columns * element).max(1), &all)?;
        let view = FileView::new(0, &Datatype::basic(1)?, &all)?.to_periodic()?;
        let memory = Datatype::hvector(own_columns, own_rows, self.leading * element, &bytes)?;
        let at = (first_column * self.leading + first_row) * element;
        let memory = match own_rows * own_columns {
            0 => Datatype::basic(0)?,
            _ => Datatype::hindexed(&[1], &[at], &memory)?,
        };
        Ok(LocalPart {
            view: View::from(view),
            places: Places::new(&memory.to_sequence()),
        })
    }
}

/// A set of elements as bytes: every offset and length times the size of an element.
fn scaled(of_elements: &Datatype, element: i64) -> Outcome<Datatype> {
    let runs: Vec<(i64, i64)> = of_elements
        .to_sequence()
        .runs()
        .map(|run| (run.start * element, run.len as i64 * element))
        .collect();
    let displacements: Vec<i64> = runs.iter().map(|r| r.0).collect();
    let lengths: Vec<i64> = runs.iter().map(|r| r.1).collect();
    Ok(Datatype::hindexed(
        &lengths,
        &displacements,
        &Datatype::basic(1)?,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Element by element, as the definition says.
    fn check(sub: Submatrix, rows: i64, columns: i64, element: i64) {
        let part = sub.part(rows, columns, element).expect("a part");
        let owns = |d: &Dimension, g: i64| (g / d.block + d.source) % d.processes == d.mine;
        let local = |d: &Dimension, g: i64| (0..g).filter(|x| owns(d, *x)).count() as i64;
        let mut expected = Vec::new();
        for j in 0..columns {
            for i in 0..rows {
                let (gi, gj) = (sub.at.0 + i, sub.at.1 + j);
                if owns(&sub.rows, gi) && owns(&sub.columns, gj) {
                    let file = (j * rows + i) * element;
                    let memory = local(&sub.columns, gj) * sub.leading + local(&sub.rows, gi);
                    expected.push((file, memory * element));
                }
            }
        }
        let total = (rows * columns * element) as u64;
        let shown: Vec<u64> = part
            .view
            .bytes()
            .segments(0..total)
            .flat_map(|s| s.start()..s.start() + s.len())
            .collect();
        let wanted: Vec<u64> = expected
            .iter()
            .flat_map(|(file, _)| (*file..*file + element).map(|x| x as u64))
            .collect();
        assert_eq!(shown, wanted, "{sub:?}");
        let size = part.places.hull().map_or(0, |h| h.end as usize);
        let memory: Vec<u8> = (0..size).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut packed = vec![0; wanted.len()];
        part.places
            .pack(client::SharedBytes::from_slice(&memory), 0, 0, &mut packed)
            .expect("packs");
        let wanted: Vec<u8> = expected
            .iter()
            .flat_map(|(_, at)| (*at..*at + element).map(|x| memory[x as usize]))
            .collect();
        assert_eq!(packed, wanted, "{sub:?}");
    }

    #[test]
    fn parts_of_submatrices_are_those_of_the_definition() {
        for (mb, nb) in [(1, 1), (2, 3), (4, 2)] {
            for (p, q) in [(1, 1), (2, 2), (3, 2)] {
                for (row, column) in [(0, 0), (1, 2), (5, 3)] {
                    for mine in 0..p * q {
                        let dimension = |size, block, processes: i64, mine| Dimension {
                            size,
                            block,
                            source: (processes - 1).min(1),
                            processes,
                            mine,
                        };
                        let sub = Submatrix {
                            rows: dimension(13, mb, p, mine / q),
                            columns: dimension(11, nb, q, mine % q),
                            leading: 14,
                            at: (row, column),
                        };
                        check(sub, 7, 8, 4);
                    }
                }
            }
        }
    }
}
