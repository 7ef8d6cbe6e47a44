//! What was observed as phases: accesses of all processes of an application that happen at the same time.
//!
//! ```text
//!  application  rank 0: view a (reads), view b (writes)     phase 1: a of rank 0, c of rank 1 ...   reads
//!               rank 1: view c (reads), view d (writes)     phase 2: b of rank 0, d of rank 1 ...   writes
//! ```
//!
//! Processes of a data-parallel program go through their data in step: request i of each is under way together with
//! request i of the others. So a phase of many short requests is judged by a few steps of it, and one of long
//! requests as a whole. Phases, and applications, follow one another.

use crate::cost::{Access, Op, Process, Way, alternatives};
use crate::profile::blocks::{AccessMap, Use};

use super::Question;
use layout::{Partition, View};

/// What the model does not see (extents, address translation, neighbours in the cache) costs layouts that are unlike the
/// views up to this part more: where it sees no difference, measurement found the views ahead by about that much.
const MISMATCH: f64 = 0.15;
/// Steps by which a phase of many requests is judged.
const STEPS: u64 = 4;

/// Accesses that happen together.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Whose.
    pub application: String,
    /// Reading or writing.
    pub op: Op,
    /// Which of several views of the processes, by the bytes moved through it.
    pub index: usize,
    /// Requests that are judged, each of all processes, with how often each such request was made.
    pub steps: Vec<(Vec<Process>, f64)>,
    /// The first views, for candidates.
    pub views: Vec<View>,
    /// Bytes of a request, on average.
    pub request_bytes: u64,
    /// Bytes moved.
    pub moved: f64,
}

impl Phase {
    /// For people.
    pub fn name(&self) -> String {
        let op = match self.op {
            Op::Read => "reading",
            Op::Write => "writing",
        };
        match self.index {
            0 => format!("{op} by {}", self.application),
            i => format!("{op} by {} through view {}", self.application, i + 1),
        }
    }
}

/// All phases.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Applications by name, reads before writes.
    pub phases: Vec<Phase>,
}

/// The view offset of the byte at a part `t` of what was used, from 0 to 1.
fn offset_at(one: &Use, t: f64) -> u64 {
    let mut left = (one.bytes as f64 * t) as u64;
    for range in &one.ranges {
        let (from, to) = (one.view.rank(range.start), one.view.rank(range.end));
        if left < to - from {
            return from + left;
        }
        left -= to - from;
    }
    one.ranges
        .last()
        .map_or(0, |r| one.view.rank(r.end).saturating_sub(1))
}

impl Work {
    /// The phases of what was observed.
    pub fn of(question: &Question<'_>, map: &AccessMap) -> Work {
        Work::new(question, map)
    }

    pub(super) fn new(question: &Question<'_>, map: &AccessMap) -> Work {
        let mut phases = Vec::new();
        let mut names: Vec<&str> = map
            .processes
            .iter()
            .map(|p| p.application.as_str())
            .collect();
        names.dedup();
        for name in names {
            for op in [Op::Read, Op::Write] {
                // Uses of each process, the one that moved most first.
                let mut by_process: Vec<Vec<&Use>> = Vec::new();
                for (i, process) in map.processes.iter().enumerate() {
                    if process.application != name {
                        continue;
                    }
                    let is_it = |u: &&Use| u.process == i && u.writes == (op == Op::Write);
                    let mut uses: Vec<&Use> = map.uses.iter().filter(is_it).collect();
                    uses.sort_by(|a, b| b.moved().total_cmp(&a.moved()));
                    by_process.push(uses);
                }
                let most = by_process.iter().map(Vec::len).max().unwrap_or(0);
                for index in 0..most.min(4) {
                    let together: Vec<&Use> = by_process
                        .iter()
                        .filter_map(|uses| uses.get(index).copied())
                        .collect();
                    phases.extend(phase(question, map, name, op, index, &together));
                }
            }
        }
        Work { phases }
    }

    /// Time of each phase in a layout.
    pub fn seconds(
        &self,
        question: &Question<'_>,
        partition: &Partition,
        homes: &[usize],
    ) -> Vec<f64> {
        let hosts = question.hosts();
        let home = question.home(partition, homes, &hosts);
        let one = |phase: &Phase| {
            let step = |(processes, times): &(Vec<Process>, f64)| {
                let access = Access {
                    op: phase.op,
                    processes,
                    is_collective: false,
                    store: question.store,
                };
                let ways = alternatives(question.machine, &access, &home);
                // What clients do by themselves: directly where they can, else by message.
                let is_done = |w: &Way| matches!(w, Way::Direct | Way::Message | Way::Packed);
                let best = ways.iter().find(|p| is_done(&p.way)).or(ways.first());
                best.map_or(0.0, |p| {
                    p.seconds * (1.0 + MISMATCH * (1.0 - p.matching.clamp(0.0, 1.0)))
                }) * times
            };
            phase.steps.iter().map(step).sum()
        };
        self.phases.iter().map(one).collect()
    }
}

fn phase(
    question: &Question<'_>,
    map: &AccessMap,
    name: &str,
    op: Op,
    index: usize,
    together: &[&Use],
) -> Option<Phase> {
    let moved: f64 = together.iter().map(|u| u.moved()).sum();
    let count = together.iter().map(|u| u.count).max()?.max(1);
    let requests: u64 = together.iter().map(|u| u.count.max(1)).sum();
    let request_bytes = (moved / requests as f64).ceil().max(1.0) as u64;
    let near = |u: &Use| {
        let nearest = map.processes[u.process].nearest?;
        question.servers.iter().position(|s| s.number == nearest)
    };
    let view = |u: &Use| View::from(u.view.clone());
    let span = |u: &Use| {
        let first = u.ranges.first().map_or(0, |r| u.view.rank(r.start));
        let end = u.ranges.last().map_or(0, |r| u.view.rank(r.end));
        (first, end)
    };
    let is_long = together.iter().all(|u| {
        let own = u.moved() / u.count.max(1) as f64;
        own * 2.0 >= u.bytes as f64
    });
    let steps = match is_long {
        true => {
            let all = together.iter().map(|u| {
                let (lo, hi) = span(u);
                Process {
                    view: view(u),
                    lo,
                    hi,
                    near: near(u),
                }
            });
            let bytes: u64 = together.iter().map(|u| u.bytes).sum();
            vec![(all.collect(), moved / bytes.max(1) as f64)]
        }
        false => (0..STEPS)
            .map(|i| {
                let t = (i as f64 + 0.5) / STEPS as f64;
                let step = together.iter().map(|u| {
                    let own = (u.moved() / u.count.max(1) as f64).ceil().max(1.0) as u64;
                    let (first, end) = span(u);
                    // Requests begin at multiples of their length, as far as is known.
                    let at = offset_at(u, t);
                    let lo = first + (at - first) / own * own;
                    Process {
                        view: view(u),
                        lo,
                        hi: (lo + own).min(end).max(lo + 1),
                        near: near(u),
                    }
                });
                (step.collect(), count as f64 / STEPS as f64)
            })
            .collect(),
    };
    Some(Phase {
        application: name.to_owned(),
        op,
        index,
        steps,
        views: together.iter().map(|u| view(u)).collect(),
        request_bytes,
        moved,
    })
}
