//! How well two layouts match, in numbers.
//!
//! The seven measures of part 10 of the specification, and one between 0 and 1 made of them, the
//! *matching degree* that the Clusterfile paper leaves as future work. All follow from the
//! intersections; no data is touched. docs/adr/0004-matching-degree.md says why it is what it is.

use falls::{FallsSet, Joint};

use crate::plan::Plan;
use crate::transfer::{Part, Transfer};

/// Bytes that move between memory and cache together.
const LINE_BYTES: u64 = 64;
/// Bytes that an entry of the address translation covers.
const PAGE_BYTES: u64 = 4096;
/// Lines that a run touches on both sides beyond those its bytes fill, at a random alignment.
const EDGE_LINES: f64 = 2.0 * (1.0 - 1.0 / LINE_BYTES as f64);
/// What starting one more run costs, in bytes copied meanwhile: less than a nanosecond of a loop.
const RUN_BYTES: f64 = 8.0;
/// What of an excess line is paid for; a part of them is in a cache or being fetched anyway.
const LINE_SHARE: f64 = 0.3;
/// What one more pair costs, in bytes copied meanwhile: a line on either side.
const PAIR_BYTES: f64 = 128.0;
/// A lazy meeting is looked at in so many stretches of the window ...
const STRETCHES: u64 = 64;
/// ... and in each so many runs are counted before the rest of it is extrapolated.
const RUNS_PER_STRETCH: u64 = 256;

/// The measures of a plan over its window.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// Pairs of elements that meet.
    pub pairs: u64,
    /// Pairs per target element: how many sources each target hears from.
    pub contention: f64,
    /// Pairs per source element: how many targets each source talks to.
    pub fan_out: f64,
    /// Runs contiguous in file, source and target at once.
    pub runs: u64,
    /// Runs contiguous in source and target, wherever they lie in the file: what one copy moves.
    /// Equal layouts have one per element, however often the file changes hands.
    pub copy_runs: u64,
    /// Those of the joint runs that only a cursor finds, because their meeting is lazy.
    pub lazy_runs: u64,
    /// Bytes per run.
    pub mean_run: f64,
    /// Share of the runs that a perfect match would not have.
    pub fragmentation: f64,
    /// Mean over the sources of the largest share of their bytes that one target has.
    pub locality: f64,
    /// Bytes in all pairs.
    pub bytes: u64,
    /// Fewest runs any match of so many elements has: the larger number of non-empty elements.
    pub least_runs: u64,
    /// Cache lines touched on both sides, pair by pair, beyond those of a perfect match.
    pub excess_lines: f64,
    /// Whether all numbers are exact; lazy meetings with very many runs are extrapolated.
    pub exact: bool,
}

impl Measures {
    /// 1 for a perfect match, towards 0 the more of the work is not copying payload.
    ///
    /// `bytes / (bytes + run overhead + unused parts of cache lines + pair overhead)`: the share of
    /// useful bytes in the bytes a machine could have copied in the time the plan takes.
    pub fn matching_degree(&self) -> f64 {
        if self.bytes == 0 {
            return 1.0;
        }
        let bytes = self.bytes as f64;
        let runs = self.copy_runs.saturating_sub(self.least_runs) as f64 * RUN_BYTES;
        let lines = self.excess_lines * LINE_BYTES as f64 * LINE_SHARE;
        let pairs = self.pairs.saturating_sub(self.least_runs) as f64 * PAIR_BYTES;
        bytes / (bytes + runs + lines + pairs)
    }
}

impl Plan {
    /// The measures of this plan.
    pub fn measures(&self) -> Measures {
        let window = self.window_bytes();
        let mut total = Totals::default();
        let mut best_share = vec![0u64; self.sources().len()];
        for transfer in self.transfers() {
            let bytes = total.add(transfer);
            if let Part::Element(i) = transfer.source() {
                best_share[i] = best_share[i].max(bytes);
            }
        }
        let sizes = |set: falls::Periodic| set.rank(window.end) - set.rank(window.start);
        let source_sizes: Vec<u64> = self.sources().elements().map(sizes).collect();
        let full_sources = source_sizes.iter().filter(|&&s| s > 0).count();
        let full_targets = self
            .targets()
            .elements()
            .map(sizes)
            .filter(|&s| s > 0)
            .count();
        let shares = best_share
            .iter()
            .zip(&source_sizes)
            .filter(|(_, size)| **size > 0);
        let share_sum: f64 = shares.map(|(&best, &size)| best as f64 / size as f64).sum();
        let least_runs = full_sources.max(full_targets) as u64;
        let per = |n: usize| {
            if n == 0 {
                0.0
            } else {
                total.pairs as f64 / n as f64
            }
        };
        Measures {
            pairs: total.pairs,
            contention: per(self.targets().len()),
            fan_out: per(self.sources().len()),
            runs: total.runs,
            copy_runs: total.copy_runs,
            lazy_runs: total.lazy_runs,
            mean_run: if total.runs == 0 {
                0.0
            } else {
                total.bytes as f64 / total.runs as f64
            },
            fragmentation: if total.runs == 0 {
                0.0
            } else {
                (1.0 - least_runs as f64 / total.runs as f64).max(0.0)
            },
            locality: if full_sources == 0 {
                0.0
            } else {
                share_sum / full_sources as f64
            },
            bytes: total.bytes,
            least_runs,
            excess_lines: (total.excess_lines - least_runs as f64 * EDGE_LINES).max(0.0),
            exact: !total.sampled,
        }
    }
}

#[derive(Default)]
struct Totals {
    pairs: u64,
    runs: u64,
    copy_runs: u64,
    lazy_runs: u64,
    bytes: u64,
    excess_lines: f64,
    sampled: bool,
}

/// What one end of a transfer walks over, as that end numbers its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndCounts {
    /// Contiguous pieces.
    pub runs: u64,
    /// Lines of 64 bytes touched, at a random alignment.
    pub lines: f64,
    /// Pages of 4 KiB touched, at a random alignment.
    pub pages: f64,
}

impl EndCounts {
    fn of(set: &FallsSet) -> Self {
        EndCounts {
            runs: set.run_count(),
            lines: set.granules_touched(LINE_BYTES),
            pages: set.granules_touched(PAGE_BYTES),
        }
    }

    /// Of pieces that lie far apart, as those of a lazy meeting do more often than not.
    fn apart(runs: u64, bytes: u64) -> Self {
        let touched =
            |granule: u64| runs as f64 + (bytes.saturating_sub(runs)) as f64 / granule as f64;
        EndCounts {
            runs,
            lines: touched(LINE_BYTES),
            pages: touched(PAGE_BYTES),
        }
    }

    fn scaled(&self, factor: f64) -> Self {
        EndCounts {
            runs: (self.runs as f64 * factor).round() as u64,
            lines: self.lines * factor,
            pages: self.pages * factor,
        }
    }
}

/// What is counted of one transfer, in O(nodes) where its meeting is symbolic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Bytes.
    pub bytes: u64,
    /// Runs contiguous in file, source and target at once.
    pub runs: u64,
    /// Runs contiguous in source and target.
    pub copy_runs: u64,
    /// The source's end.
    pub source: EndCounts,
    /// The target's end.
    pub target: EndCounts,
    /// Lines touched on both sides beyond those the bytes fill.
    lines: f64,
    /// Whether the end of the window was extrapolated.
    pub sampled: bool,
}

impl Counts {
    pub(crate) fn of(transfer: &Transfer) -> Self {
        match transfer.meeting().is_symbolic() {
            true => symbolic(transfer),
            false => sampled(transfer),
        }
    }
}

impl Totals {
    /// Adds one transfer and returns its bytes.
    fn add(&mut self, transfer: &Transfer) -> u64 {
        let counted = *transfer.counted();
        if !transfer.meeting().is_symbolic() {
            self.lazy_runs = self.lazy_runs.saturating_add(counted.runs);
        }
        self.pairs += 1;
        self.bytes = self.bytes.saturating_add(counted.bytes);
        self.runs = self.runs.saturating_add(counted.runs);
        self.copy_runs = self.copy_runs.saturating_add(counted.copy_runs);
        self.excess_lines += counted.lines;
        self.sampled |= counted.sampled;
        counted.bytes
    }
}

fn symbolic(transfer: &Transfer) -> Counts {
    let joint = transfer.joint();
    let bytes = joint.size();
    let needed = bytes as f64 / LINE_BYTES as f64;
    let source = EndCounts::of(&joint.left_set());
    let target = EndCounts::of(&joint.right_set());
    Counts {
        bytes,
        runs: joint.file_set().run_count(),
        copy_runs: copies(&joint).map_or(0, |copies| copies.count),
        source,
        target,
        lines: source.lines + target.lines - 2.0 * needed,
        sampled: false,
    }
}

/// Copy runs of a tree and where they begin and end, as (source, target) offsets.
struct Copies {
    count: u64,
    start: (u64, u64),
    end: (u64, u64),
}

/// `None` for an empty tree. O(nodes): where one repetition ends exactly where the next begins, on
/// both sides, the last run of the one and the first of the other are one.
fn copies(joint: &Joint) -> Option<Copies> {
    let mut all: Option<Copies> = None;
    for node in joint.nodes() {
        let inner = node.inner.as_ref().and_then(copies).unwrap_or(Copies {
            count: 1,
            start: (0, 0),
            end: (node.unit, node.unit),
        });
        let reach = (inner.end.0 - inner.start.0, inner.end.1 - inner.start.1);
        let joins = reach == (node.left_stride, node.right_stride);
        let steps = node.count - 1;
        let next = Copies {
            count: node.count * inner.count - if joins { steps } else { 0 },
            start: (node.left + inner.start.0, node.right + inner.start.1),
            end: (
                node.left + steps * node.left_stride + inner.end.0,
                node.right + steps * node.right_stride + inner.end.1,
            ),
        };
        all = Some(match all {
            None => next,
            Some(before) => Copies {
                count: before.count + next.count - u64::from(before.end == next.start),
                start: before.start,
                end: next.end,
            },
        });
    }
    all
}

/// Counts the runs of a lazy meeting if they are few; if not, in stretches spread over the window,
/// taking the rest of each stretch to be like its beginning.
fn sampled(transfer: &Transfer) -> Counts {
    let window = transfer.window();
    let (lo, hi) = (window.start.0, window.end.0);
    let all = Stretch::count(transfer, lo, hi, STRETCHES * RUNS_PER_STRETCH);
    if all.reached == hi {
        return all.counted(1.0, false);
    }
    let cut = |i: u64| lo + (u128::from(hi - lo) * u128::from(i) / u128::from(STRETCHES)) as u64;
    let mut total = Counts {
        bytes: 0,
        runs: 0,
        copy_runs: 0,
        source: EndCounts::apart(0, 0),
        target: EndCounts::apart(0, 0),
        lines: 0.0,
        sampled: true,
    };
    for i in 0..STRETCHES {
        let (from, to) = (cut(i), cut(i + 1));
        let part = Stretch::count(transfer, from, to, RUNS_PER_STRETCH);
        let seen = (part.reached - from).max(1);
        let part = part.counted((to - from) as f64 / seen as f64, true);
        total.bytes = total.bytes.saturating_add(part.bytes);
        total.runs = total.runs.saturating_add(part.runs);
        total.copy_runs = total.copy_runs.saturating_add(part.copy_runs);
        total.lines += part.lines;
        for (sum, part) in [
            (&mut total.source, part.source),
            (&mut total.target, part.target),
        ] {
            sum.runs = sum.runs.saturating_add(part.runs);
            sum.lines += part.lines;
            sum.pages += part.pages;
        }
    }
    total
}

/// The first runs of a part of the window.
struct Stretch {
    bytes: u64,
    runs: u64,
    copy_runs: u64,
    left_runs: u64,
    right_runs: u64,
    /// Where counting stopped: the end of the part, or of the last run.
    reached: u64,
}

impl Stretch {
    fn count(transfer: &Transfer, from: u64, to: u64, most: u64) -> Stretch {
        let mut part = Stretch {
            bytes: 0,
            runs: 0,
            copy_runs: 0,
            left_runs: 0,
            right_runs: 0,
            reached: to,
        };
        let mut end: Option<(u64, u64)> = None;
        for run in transfer.meeting().runs(from..to) {
            part.bytes += run.len;
            part.runs += 1;
            part.copy_runs += u64::from(end != Some((run.left, run.right)));
            part.left_runs += u64::from(end.is_none_or(|(left, _)| left != run.left));
            part.right_runs += u64::from(end.is_none_or(|(_, right)| right != run.right));
            end = Some((run.left + run.len, run.right + run.len));
            if part.runs == most {
                part.reached = run.file + run.len;
                break;
            }
        }
        part
    }

    fn counted(&self, factor: f64, sampled: bool) -> Counts {
        let scale = |n: u64| {
            if sampled {
                (n as f64 * factor).round() as u64
            } else {
                n
            }
        };
        Counts {
            bytes: scale(self.bytes),
            runs: scale(self.runs),
            copy_runs: scale(self.copy_runs),
            source: EndCounts::apart(self.left_runs, self.bytes).scaled(factor),
            target: EndCounts::apart(self.right_runs, self.bytes).scaled(factor),
            // Runs of a lazy meeting lie far apart more often than not: lines of their own.
            lines: scale(self.copy_runs) as f64 * EDGE_LINES,
            sampled,
        }
    }
}

#[cfg(test)]
mod tests {
    use falls::{Budget, Meeting, Periodic};

    use super::*;

    /// Copy runs by walking the joint runs.
    fn copies_naive(meeting: &Meeting, end: u64) -> u64 {
        let (mut count, mut last) = (0, None);
        for run in meeting.runs(0..end) {
            count += u64::from(last != Some((run.left, run.right)));
            last = Some((run.left + run.len, run.right + run.len));
        }
        count
    }

    #[test]
    fn copy_runs_are_counted_as_by_walking() {
        let sets = [
            "{(0,15)}",
            "{(0,3,8,2)}",
            "{(0,1,4,4)}",
            "{(2,3,4,4)}",
            "{(0,7,8,2,{(0,1),(4,5)})}",
            "{(0,0),(2,5),(9,9),(12,15)}",
            "{(1,14,-,1,{(0,0,2,7)})}",
        ];
        let element = |text: &str, period: u64| {
            Periodic::new(0, period, text.parse().unwrap()).expect("valid")
        };
        for a in sets {
            for b in sets {
                for (p, q, end) in [(16, 16, 16), (16, 16, 64), (16, 24, 96), (20, 16, 75)] {
                    let meeting = Meeting::new(&element(a, p), &element(b, q));
                    let counted = copies(&meeting.joint(0..end)).map_or(0, |c| c.count);
                    assert_eq!(
                        counted,
                        copies_naive(&meeting, end),
                        "{a} {b} {p} {q} {end}"
                    );
                    let lazy = Meeting::with_budget(&element(a, p), &element(b, q), Budget(0));
                    assert_eq!(copies_naive(&lazy, end), counted, "{a} {b} {p} {q} {end}");
                }
            }
        }
    }
}
