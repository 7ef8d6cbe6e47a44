//! Which process has which block: as accesses of an earlier run say, else as the file lies on the servers.
//!
//! ```text
//!  layout     block -> subfile -> server -> the process nearest to it (several: their blocks of it one after the other)
//!  accesses   block -> by the published rules, or another planner
//! ```

use advise::place;
use client::LayoutState;
use dsm::{HomeRun, PAGE_BYTES};
use layout::FileOffset;

use crate::accesses::Accesses;

/// How blocks are placed by who accessed them.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Planner {
    /// By the rules of the source: a block of one process goes there, blocks of the same processes are dealt to these.
    #[default]
    Seed,
    /// At a process that accesses it, with the smallest largest load.
    Balanced,
    /// As the source has it, but dealt in runs.
    Clustered {
        /// Blocks of a run.
        run: usize,
    },
    /// The least time of the slowest process plus that of all fetches.
    Cost(place::Speeds),
}

impl Planner {
    /// The process of each block.
    pub fn place(&self, accesses: &Accesses) -> Vec<usize> {
        let (accessors, processes) = (accesses.accessors(), accesses.processes());
        match self {
            Planner::Seed => place::seed(&accessors, processes),
            Planner::Balanced => place::balanced(&accessors, processes, &[], None),
            Planner::Clustered { run } => place::clustered(&accessors, processes, *run),
            Planner::Cost(speeds) => place::cost(&accessors, processes, speeds),
        }
    }
}

/// The process of each block of a file as it lies on servers; `nearest` has the server of each process, where one is known.
pub(crate) fn of_layout(state: &LayoutState, blocks: u64, nearest: &[Option<u64>]) -> Vec<usize> {
    let server_of = |block: u64| {
        let at = block * PAGE_BYTES as u64;
        let piece = state
            .pieces
            .iter()
            .find(|piece| piece.ranges.iter().any(|range| range.contains(&at)))?;
        let (subfile, _) = piece.partition.owner(FileOffset(at))?;
        let place = piece.places.get(subfile)?.first()?;
        Some((subfile, place.server))
    };
    let places: Vec<Option<(usize, u64)>> = (0..blocks).map(server_of).collect();
    let mut left: std::collections::BTreeMap<Option<(usize, u64)>, (usize, usize)> =
        std::collections::BTreeMap::new();
    for place in &places {
        left.entry(*place).or_default().1 += 1;
    }
    let one = |place: &Option<(usize, u64)>| {
        let (before, count) = left.get_mut(place).expect("it was counted");
        let near: Vec<usize> = match place {
            Some((_, server)) => (0..nearest.len())
                .filter(|process| nearest[*process] == Some(*server))
                .collect(),
            None => Vec::new(),
        };
        let at = *before;
        *before += 1;
        match (near.len(), place) {
            // Nobody is near: subfiles are dealt to all.
            (0, Some((subfile, _))) => subfile % nearest.len(),
            (0, None) => at * nearest.len() / *count,
            (several, _) => near[at * several / *count],
        }
    };
    places.iter().map(one).collect()
}

/// Neighbours with one home as runs.
pub(crate) fn runs_of(owners: &[usize]) -> Vec<HomeRun> {
    let mut runs: Vec<HomeRun> = Vec::new();
    for owner in owners {
        let home = u16::try_from(*owner).expect("fewer than 65536 processes");
        match runs.last_mut() {
            Some((count, last)) if *last == home => *count += 1,
            _ => runs.push((1, home)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(text: &str) -> LayoutState {
        let layout: layout::Layout = text.parse().expect("a layout");
        let applied = layout.on_bytes().expect("of plain bytes");
        let elements = applied.elements().expect("elements");
        let pattern = layout::Pattern::new(elements.period, elements.sets).expect("a pattern");
        let partition = layout::Partition::from_start(pattern);
        let places = layout
            .places()
            .map(<[u64]>::to_vec)
            .unwrap_or_else(|| (0..partition.len() as u64).collect());
        let place = |server: &u64| client::Place {
            server: *server,
            incarnation: 1,
        };
        let owner = place(&0);
        LayoutState {
            owner,
            step: 1,
            pieces: vec![client::Piece::whole(
                1,
                partition,
                places.iter().map(|server| vec![place(server)]).collect(),
            )],
        }
    }

    #[test]
    fn blocks_are_at_the_process_that_is_nearest_to_their_server() {
        let state = state("blocks(4KiB: 0,1,2,0,1,2,0,0) at [5,6,7]");
        let three = [Some(7), Some(6), Some(5)];
        assert_eq!(of_layout(&state, 8, &three), [2, 1, 0, 2, 1, 0, 2, 2]);
        // Two are near one server: they have its blocks one after the other.
        let four = [Some(5), Some(6), Some(7), Some(5)];
        assert_eq!(of_layout(&state, 8, &four), [0, 1, 2, 0, 1, 2, 3, 3]);
        // Nobody is near.
        assert_eq!(
            of_layout(&state, 8, &[None, None]),
            [0, 1, 0, 0, 1, 0, 0, 0]
        );
        assert_eq!(runs_of(&[0, 0, 1, 0]), [(2, 0), (1, 1), (1, 0)]);
    }
}
