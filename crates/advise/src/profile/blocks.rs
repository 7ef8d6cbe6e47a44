//! Which processes accessed which blocks of the file: the access map of source 003, derived from views.
//!
//! ```text
//!  block        0    1    2    3    4
//!  process 0    x    x    x                 0, 1, 3, 4 exclusive, 2 shared by {0, 1}
//!  process 1              x    x    x
//! ```
//!
//! A view with holes counts in every block that has a byte of it; with how many bytes is kept. What an entry touched of
//! its view comes from its tallies. Cost: a rank query per entry and block that it touches, nothing by the bytes.

use std::ops::Range;

use falls::Periodic;

use super::record::{Entry, Profile};
use super::tally::Tally;

/// A process of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The program.
    pub application: String,
    /// The process.
    pub rank: u64,
    /// The server it is nearest to.
    pub nearest: Option<u64>,
    /// Bytes that it moved.
    pub bytes: u64,
}

/// The part of a file that a process accessed in one way.
#[derive(Clone, Debug)]
pub struct Use {
    /// Which process, by its place in [`AccessMap::processes`].
    pub process: usize,
    /// Whether it wrote.
    pub writes: bool,
    /// The view.
    pub view: Periodic,
    /// What was touched, in file bytes: every byte of the view in one of these ranges.
    pub ranges: Vec<Range<u64>>,
    /// Different bytes among them.
    pub bytes: u64,
    /// How often each of them was moved, on average.
    pub times: f64,
    /// Accesses.
    pub count: u64,
    /// How the accesses lie to each other.
    pub orders: [u64; 4],
}

impl Use {
    /// How many bytes of a file range it has.
    pub fn bytes_in(&self, range: Range<u64>) -> u64 {
        let count = |part: Range<u64>| self.view.rank(part.end) - self.view.rank(part.start);
        self.ranges
            .iter()
            .map(|r| r.start.max(range.start)..r.end.min(range.end))
            .filter(|part| part.start < part.end)
            .map(count)
            .sum()
    }

    /// Bytes moved in all.
    pub fn moved(&self) -> f64 {
        self.bytes as f64 * self.times
    }
}

/// File ranges of what a tally touched of a view, below the end of the file.
fn file_ranges(view: &Periodic, tally: &Tally, file_bytes: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for part in tally.ranges() {
        let Some(start) = view.select(part.start) else {
            continue;
        };
        let end = view
            .select(part.end - 1)
            .map_or(file_bytes, |last| last + 1);
        let end = end.min(file_bytes);
        if start >= end {
            continue;
        }
        match ranges.last_mut() {
            // Parts of the view that follow each other with a hole between them have one range.
            Some(last) if view.next_byte(last.end).is_none_or(|next| next >= start) => {
                last.end = end
            }
            _ => ranges.push(start..end),
        }
    }
    ranges
}

/// Processes and what each of them used.
#[derive(Clone, Debug, Default)]
pub struct AccessMap {
    /// By application and rank.
    pub processes: Vec<Process>,
    /// What they used, reads and writes apart.
    pub uses: Vec<Use>,
    /// Bytes of the file.
    pub file_bytes: u64,
}

impl AccessMap {
    /// What a profile says about a file of so many bytes.
    pub fn new(profile: &Profile, file_bytes: u64) -> AccessMap {
        let mut map = AccessMap {
            file_bytes,
            ..AccessMap::default()
        };
        for (key, entry) in profile.entries() {
            let at = map
                .processes
                .iter()
                .rposition(|p| p.application == key.application && p.rank == key.rank);
            let process = at.unwrap_or_else(|| {
                map.processes.push(Process {
                    application: key.application.clone(),
                    rank: key.rank,
                    nearest: None,
                    bytes: 0,
                });
                map.processes.len() - 1
            });
            let one = &mut map.processes[process];
            // The view that moved more decides.
            if entry.bytes() >= one.bytes || one.nearest.is_none() {
                one.nearest = entry.nearest().or(one.nearest);
            }
            one.bytes = one.bytes.saturating_add(entry.bytes());
            map.add(process, entry);
        }
        map
    }

    fn add(&mut self, process: usize, entry: &Entry) {
        for (writes, tally) in [(false, &entry.read), (true, &entry.written)] {
            if tally.bytes == 0 {
                continue;
            }
            let view = entry.view.bytes().clone();
            let mut one = Use {
                process,
                writes,
                ranges: file_ranges(&view, tally, self.file_bytes),
                view,
                bytes: 0,
                times: 0.0,
                count: tally.count(),
                orders: tally.orders,
            };
            one.bytes = one.bytes_in(0..self.file_bytes);
            if one.bytes == 0 {
                continue;
            }
            one.times = tally.bytes as f64 / one.bytes as f64;
            self.uses.push(one);
        }
    }

    /// Bytes moved in all.
    pub fn moved(&self) -> f64 {
        self.uses.iter().map(Use::moved).sum()
    }

    /// For each block of the file the processes that accessed it, ascending, each with the bytes it moved there.
    pub fn blocks(&self, block: u64) -> Vec<Vec<(usize, f64)>> {
        let count = self.file_bytes.div_ceil(block.max(1));
        let mut blocks: Vec<Vec<(usize, f64)>> = vec![Vec::new(); count as usize];
        for one in &self.uses {
            for range in &one.ranges {
                let mut at = range.start;
                while let Some(next) = one.view.next_byte(at).filter(|next| *next < range.end) {
                    let index = next / block;
                    let end = ((index + 1) * block).min(range.end);
                    let bytes = one.view.rank(end) - one.view.rank(next);
                    let moved = bytes as f64 * one.times;
                    let list = &mut blocks[index as usize];
                    match list.iter_mut().find(|(p, _)| *p == one.process) {
                        Some((_, sum)) => *sum += moved,
                        None => list.push((one.process, moved)),
                    }
                    at = end;
                }
            }
        }
        for list in &mut blocks {
            list.sort_unstable_by_key(|(p, _)| *p);
        }
        blocks
    }

    /// How many blocks nobody, one process, and several processes accessed.
    pub fn sharing(&self, block: u64) -> (u64, u64, u64) {
        let mut counts = (0, 0, 0);
        for list in self.blocks(block) {
            match list.len() {
                0 => counts.0 += 1,
                1 => counts.1 += 1,
                _ => counts.2 += 1,
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::super::Recorder;
    use super::*;
    use layout::View;

    /// Source 003, table 3.2: SOR in row bands with one halo row on each side; 4-byte elements, 4 KiB blocks.
    #[test]
    fn bands_with_halos_give_the_published_numbers_of_shared_blocks() {
        for (element, nodes, blocks, one, two) in [
            (4, 2, 1954, 1951, 3),
            (4, 4, 1954, 1945, 9),
            (4, 8, 1954, 1934, 20),
            (8, 4, 3907, 3892, 15),
            (8, 8, 3907, 3873, 34),
        ] {
            let (rows, row) = (2000_u64, 1000 * element);
            let mut profile = Profile::default();
            for rank in 0..nodes {
                let first = (rank * rows / nodes).saturating_sub(1) * row;
                let end = ((rank + 1) * rows / nodes + 1).min(rows) * row;
                let recorder = Recorder::default();
                recorder.record(false, first, end - first);
                let mut entry = Entry::new(&View::whole_file(), "", rows * row);
                [entry.read, entry.written] = recorder.take();
                profile.add("sor", rank, entry);
            }
            let map = AccessMap::new(&profile, rows * row);
            let sharing = map.sharing(4096);
            assert_eq!(sharing, (0, one, two), "{element} B, {nodes} nodes");
            assert_eq!(one + two, blocks);
        }
    }
}
