//! Which layout would suit the use of a file: candidates, what each is predicted to cost, and a search beyond them.
//!
//! ```text
//!  profile -> phases (who moves what at the same time) --+
//!  current, striped, views, grids, block maps ----------+-> predicted seconds -> best first, with the cost of moving
//!                                     ^                  |
//!                                     +-- local search --+   until there is no time left
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `work` | the phases of what was observed, and what they cost in a layout |
//! | `candidates` | layouts that are worth a look, each with its reason |
//! | `near` | which server holds which subfile: near to the processes that use it |
//! | `decide` | whether a file is moved by itself |
//! | `search` | neighbours of good layouts, all block maps where there are few |
//!
//! Invariants
//! - Deterministic: the same question and the same number of steps give the same answer; there is no randomness.
//! - The layout that the rule without knowledge would choose, and the present one, are always judged: the first
//!   answer is never worse than they are by the model (statement 41 of source 004).
//! - The caller says before every step whether there is time for another.
//!
//! Left to others: gathering profiles, measuring the machine ([`cost`](crate::cost)), moving files.

mod auto;
mod candidates;
mod moving;
mod near;
mod search;
mod work;

use layout::{ArrayType, Layout, Partition, Pattern};

use crate::cost::{Home, Machine, StoreKind};
use crate::profile::Profile;
use crate::profile::blocks::AccessMap;

pub use auto::{Decision, decide};
pub use moving::move_seconds;
pub use work::{Phase, Work};

/// Less than this part of the time is no difference between two layouts.
pub const TIE: f64 = 0.02;

/// A server that could hold subfiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its number.
    pub number: u64,
    /// Its host; servers with the same number are on one.
    pub host: usize,
    /// Whether it is to get nothing more: it is full, overloaded, or leaves.
    pub is_shunned: bool,
}

/// What is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What was observed.
    pub profile: &'a Profile,
    /// The array of the file.
    pub array: Option<&'a ArrayType>,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The present layout as it is written.
    pub text: &'a str,
    /// The present layout.
    pub partition: &'a Partition,
    /// The server of each subfile, by its place in `servers`.
    pub homes: &'a [usize],
    /// Servers that take subfiles, ascending by number.
    pub servers: &'a [Server],
    /// Where bytes are kept.
    pub store: StoreKind,
    /// What things cost.
    pub machine: &'a Machine,
}

/// What a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The present layout.
    Current,
    /// What the rule for files without knowledge would choose.
    Rule,
    /// Blocks of one length in turn.
    Striped,
    /// The views of the processes.
    Views,
    /// Blocks of an array over a grid.
    Grid,
    /// Block-cyclic over a grid.
    Cyclic,
    /// Blocks that follow who uses them.
    Blocks,
    /// Found by searching beyond these.
    Search,
}

impl Kind {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Current => "current",
            Kind::Rule => "rule",
            Kind::Striped => "striped",
            Kind::Views => "views",
            Kind::Grid => "grid",
            Kind::Cyclic => "cyclic",
            Kind::Blocks => "blocks",
            Kind::Search => "search",
        }
    }
}

/// A layout with what it would come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The layout, with the servers of its subfiles where that matters.
    pub layout: String,
    /// What it is.
    pub kind: Kind,
    /// Predicted time of what was observed.
    pub seconds: f64,
    /// How much less that is than in the present layout; negative if it is more.
    pub gain_s: f64,
    /// Predicted time of moving the file there; 0 for the present layout.
    pub move_s: f64,
    /// Time of each phase.
    pub phases: Vec<f64>,
    /// The server of each subfile, by its place in the question.
    pub homes: Vec<usize>,
}

/// All advice.
#[derive(Clone, Debug, PartialEq)]
pub struct AdviceList {
    /// Best first; the present layout is among them.
    pub ranked: Vec<Advice>,
    /// Layouts that were judged.
    pub judged: u64,
    /// Whether time ran out before the search had ended.
    pub is_cut_short: bool,
    /// If no layout is the best for all phases: between what the first one is a compromise.
    pub compromise: Option<String>,
}

/// A layout on its servers.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) layout: Layout,
    pub(crate) kind: Kind,
    pub(crate) partition: Partition,
    pub(crate) homes: Vec<usize>,
}

impl Question<'_> {
    /// Servers that may get subfiles, by their places; all if none may.
    pub(crate) fn open_servers(&self) -> Vec<usize> {
        let open: Vec<usize> = (0..self.servers.len())
            .filter(|s| !self.servers[*s].is_shunned)
            .collect();
        match open.is_empty() {
            true => (0..self.servers.len()).collect(),
            false => open,
        }
    }

    pub(crate) fn hosts(&self) -> Vec<usize> {
        self.servers.iter().map(|s| s.host).collect()
    }

    /// What a layout is as a partition of the file.
    pub(crate) fn apply(&self, layout: &Layout) -> Option<Partition> {
        let applied = match self.array {
            Some(array) => layout.on_array(array).ok()?,
            None => layout.on_bytes().ok()?,
        };
        if applied.count() > 4096 {
            return None;
        }
        let elements = applied.elements().ok()?;
        let pattern = Pattern::new(elements.period, elements.sets).ok()?;
        Some(Partition::from_start(pattern))
    }

    pub(crate) fn home<'a>(
        &'a self,
        partition: &'a Partition,
        homes: &'a [usize],
        hosts: &'a [usize],
    ) -> Home<'a> {
        Home {
            partition,
            servers: homes,
            server_count: self.servers.len().max(1),
            hosts,
        }
    }
}

/// Windows by which the bytes of a lazy meeting are estimated, and bytes of each.
const WINDOWS: u64 = 16;
const WINDOW_BYTES: u64 = 64 << 10;

/// Bytes of a meeting in a file range; estimated where counting would take time by the bytes.
pub(crate) fn common_bytes(meeting: &falls::Meeting, range: &std::ops::Range<u64>) -> u64 {
    let len = range.end.saturating_sub(range.start);
    if meeting.is_symbolic() || len <= WINDOWS * WINDOW_BYTES {
        return meeting.count(range.clone());
    }
    let window = |i: u64| {
        let start = range.start + (len - WINDOW_BYTES) / WINDOWS * i;
        meeting.count(start..start + WINDOW_BYTES)
    };
    let seen: u64 = (0..WINDOWS).map(window).sum();
    (u128::from(seen) * u128::from(len) / u128::from(WINDOWS * WINDOW_BYTES)) as u64
}

/// Ranks layouts. `more` is asked before each step whether there is time for it.
pub fn recommend(question: &Question<'_>, more: &mut dyn FnMut() -> bool) -> AdviceList {
    let map = AccessMap::new(question.profile, question.file_bytes);
    let work = Work::new(question, &map);
    let mut judge = Judge {
        question,
        work: &work,
        found: Vec::new(),
        judged: 0,
        is_cut_short: false,
        more,
    };
    judge.must(Candidate {
        layout: question
            .text
            .parse()
            .unwrap_or_else(|_| Layout::from(layout::LayoutForm::Whole)),
        kind: Kind::Current,
        partition: question.partition.clone(),
        homes: question.homes.to_vec(),
    });
    if question.servers.is_empty() || work.phases.is_empty() {
        return judge.finish();
    }
    for candidate in candidates::by_rule(question, &map) {
        judge.must(candidate);
    }
    for candidate in candidates::all(question, &map, &work) {
        if !judge.may(candidate) {
            break;
        }
    }
    search::beyond(question, &map, &mut judge);
    judge.finish()
}

/// Candidates while they are judged.
pub(crate) struct Judge<'a> {
    question: &'a Question<'a>,
    work: &'a Work,
    pub(crate) found: Vec<(Candidate, Advice)>,
    judged: u64,
    is_cut_short: bool,
    more: &'a mut dyn FnMut() -> bool,
}

impl Judge<'_> {
    /// Judges a candidate if there is time; false if there is none.
    pub(crate) fn may(&mut self, candidate: Candidate) -> bool {
        if !(self.more)() {
            self.is_cut_short = true;
            return false;
        }
        self.must(candidate);
        true
    }

    fn must(&mut self, candidate: Candidate) {
        let text = match candidate.kind {
            Kind::Current => self.question.text.to_owned(),
            _ => near::text(self.question, &candidate),
        };
        if self.found.iter().any(|(_, a)| a.layout == text) {
            return;
        }
        self.judged += 1;
        let phases = self
            .work
            .seconds(self.question, &candidate.partition, &candidate.homes);
        let seconds = phases.iter().sum();
        let advice = Advice {
            layout: text,
            kind: candidate.kind,
            seconds,
            gain_s: 0.0,
            move_s: 0.0,
            phases,
            homes: candidate.homes.clone(),
        };
        self.found.push((candidate, advice));
    }

    /// The best so far.
    pub(crate) fn best(&self) -> Option<&(Candidate, Advice)> {
        self.found
            .iter()
            .min_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds))
    }

    fn finish(self) -> AdviceList {
        let current = self.found[0].1.seconds;
        let mut ranked: Vec<Advice> = Vec::new();
        for (candidate, mut advice) in self.found {
            advice.gain_s = current - advice.seconds;
            if advice.kind != Kind::Current {
                advice.move_s = move_seconds(self.question, &candidate.partition, &candidate.homes);
            }
            ranked.push(advice);
        }
        // What is no difference is no reason to move, nor for the more intricate of two: a list of offsets is what
        // has no shorter name.
        let best = ranked
            .iter()
            .map(|a| a.seconds)
            .fold(f64::INFINITY, f64::min);
        let class = |a: &Advice| match a.seconds <= best * (1.0 + TIE) {
            true => (
                0,
                a.kind != Kind::Current && is_spelled_out(&a.layout),
                a.kind,
            ),
            false => (1, false, Kind::Current),
        };
        ranked.sort_by(|a, b| {
            class(a)
                .cmp(&class(b))
                .then(a.seconds.total_cmp(&b.seconds))
                .then(a.layout.len().cmp(&b.layout.len()))
        });
        let compromise = compromise(&ranked, &self.work.phases);
        AdviceList {
            ranked,
            judged: self.judged,
            is_cut_short: self.is_cut_short,
            compromise,
        }
    }
}

/// Whether a layout says where its bytes are one by one.
fn is_spelled_out(layout: &str) -> bool {
    layout.starts_with("falls{") || layout.starts_with("blocks(")
}

/// Phases that would each rather have another layout than the first.
fn compromise(ranked: &[Advice], phases: &[Phase]) -> Option<String> {
    let first = ranked.first()?;
    let mut wanted: Vec<String> = Vec::new();
    for (i, phase) in phases.iter().enumerate() {
        let best = ranked
            .iter()
            .min_by(|a, b| a.phases[i].total_cmp(&b.phases[i]))?;
        if best.phases[i] * (1.0 + 2.0 * TIE) < first.phases[i] {
            let layout = match best.layout.len() {
                0..=60 => best.layout.as_str(),
                _ => best.kind.word(),
            };
            let share = 100.0 * best.phases[i] / first.phases[i];
            wanted.push(format!(
                "{} would take {share:.0} % of its time in {layout}",
                phase.name(),
            ));
        }
    }
    (phases.len() > 1 && !wanted.is_empty()).then(|| {
        format!(
            "the first is a compromise with the least time in all: {}",
            wanted.join("; ")
        )
    })
}
