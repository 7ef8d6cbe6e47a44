//! The transfers between every pair of elements that meet.
//!
//! Pairs are found by walking the owner trees of both sides ([`falls::Overlay::pairs`]), so a plan
//! between partitions of 100,000 elements looks only at neighbours. Views are met one by one, since
//! they may overlap each other.

use std::ops::Range;
use std::sync::Arc;

use falls::{Budget, FallsSet, Flaw, MAX_OFFSET, Meeting, Overlay, Periodic};
use layout::{FileOffset, Partition, View};

use crate::placement::Placement;
use crate::transfer::{Part, Transfer};

/// Who sends what to whom for the bytes of a window of the file.
#[derive(Clone, Debug)]
pub struct Plan {
    sources: Side,
    targets: Side,
    window: Range<u64>,
    transfers: Vec<Transfer>,
}

/// Steps the search for pairs may take: a few for every pair there could be, since trying each of
/// them is what happens when the steps run out.
fn pair_budget(sources: usize, targets: usize) -> Budget {
    let pairs = (sources as u64).saturating_mul(targets as u64);
    Budget((1 << 16) + pairs.saturating_mul(8).min(1 << 26))
}

/// The elements of one side of a plan, by number.
///
/// A partition of many elements is kept as it is; elements are made when asked for, so that a plan
/// for one view does not pay for all subfiles.
#[derive(Clone, Debug)]
pub enum Side {
    /// The subfiles of a partition.
    Partition(Partition),
    /// Views, or elements in an order of their own.
    Listed(Arc<[Periodic]>),
}

impl Side {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Side::Partition(p) => p.len(),
            Side::Listed(list) => list.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `i` as a set of file bytes.
    ///
    /// # Panics
    /// If `i` is not below [`Side::len`].
    pub fn element(&self, i: usize) -> Periodic {
        match self {
            Side::Partition(p) => p.subfile(i),
            Side::Listed(list) => list[i].clone(),
        }
    }

    /// All elements in the order of their numbers.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = Periodic> + '_ {
        (0..self.len()).map(|i| self.element(i))
    }
}

impl Plan {
    /// Redistribution: the first `file_len` bytes move from one partition to another.
    ///
    /// Bytes before a displacement are that side's header and move too.
    ///
    /// ```
    /// use layout::{Partition, Pattern};
    /// use plan::Plan;
    /// let set = |s: &str| s.parse::<falls::FallsSet>().unwrap();
    /// let rows = Pattern::new(16, vec![set("{(0,7)}"), set("{(8,15)}")]).unwrap();
    /// let columns = Pattern::new(16, vec![set("{(0,1,4,4)}"), set("{(2,3,4,4)}")]).unwrap();
    /// let plan = Plan::between(&Partition::from_start(rows), &Partition::from_start(columns), 16);
    /// assert_eq!(plan.transfers().len(), 4);
    /// assert_eq!(plan.volume(), 16);
    /// ```
    pub fn between(source: &Partition, target: &Partition, file_len: u64) -> Plan {
        Plan::between_within(source, target, file_len, usize::MAX).expect("no limit")
    }

    /// [`Plan::between`], refused when more than `most` pairs of elements meet, or could meet where
    /// they cannot be told apart without trying each.
    pub fn between_within(
        source: &Partition,
        target: &Partition,
        file_len: u64,
        most: usize,
    ) -> Result<Plan, TooManyPairs> {
        let window = 0..file_len.min(MAX_OFFSET);
        let sources = Side::Partition(source.clone());
        let targets = Side::Partition(target.clone());
        let mut transfers = Vec::new();
        let (source_header, target_header) = (header(source), header(target));
        if let Some(a) = &source_header {
            if let Some(b) = &target_header {
                push(&mut transfers, Part::Header, a, Part::Header, b, &window);
            }
            for (j, b) in targets.elements().enumerate() {
                push(
                    &mut transfers,
                    Part::Header,
                    a,
                    Part::Element(j),
                    &b,
                    &window,
                );
            }
        }
        if let Some(b) = &target_header {
            for (i, a) in sources.elements().enumerate() {
                push(
                    &mut transfers,
                    Part::Element(i),
                    &a,
                    Part::Header,
                    b,
                    &window,
                );
            }
        }
        for (i, j) in pairs(source, target, &window, most)? {
            push(
                &mut transfers,
                Part::Element(i),
                &sources.element(i),
                Part::Element(j),
                &targets.element(j),
                &window,
            );
        }
        transfers.sort_by_key(|t| (t.source(), t.target()));
        Ok(Plan {
            sources,
            targets,
            window,
            transfers,
        })
    }

    /// Access: every view against a partition, all at once, one process each.
    ///
    /// Views may have holes and overlap. Bytes of a view before the displacement of the partition
    /// are on its header.
    pub fn for_views(views: &[View], target: &Partition, file_len: u64) -> Plan {
        let window = 0..file_len.min(MAX_OFFSET);
        let targets = Side::Partition(target.clone());
        let target_header = header(target);
        let mut transfers = Vec::new();
        for (i, view) in views.iter().enumerate() {
            let bytes = view.bytes();
            if let Some(b) = &target_header {
                push(
                    &mut transfers,
                    Part::Element(i),
                    bytes,
                    Part::Header,
                    b,
                    &window,
                );
            }
            for j in partners(bytes, target, &window) {
                push(
                    &mut transfers,
                    Part::Element(i),
                    bytes,
                    Part::Element(j),
                    &targets.element(j),
                    &window,
                );
            }
        }
        let sources = Side::Listed(views.iter().map(|v| v.bytes().clone()).collect());
        Plan {
            sources,
            targets,
            window,
            transfers,
        }
    }

    /// One access each: view `i` against a partition, but only the bytes of its own range.
    ///
    /// The window of the plan is the hull of all ranges; each transfer has that of its access.
    pub fn for_accesses(accesses: &[(View, Range<FileOffset>)], target: &Partition) -> Plan {
        let targets = Side::Partition(target.clone());
        let target_header = header(target);
        let mut transfers = Vec::new();
        let (mut first, mut end) = (u64::MAX, 0);
        for (i, (view, range)) in accesses.iter().enumerate() {
            let window = range.start.0..range.end.0.min(MAX_OFFSET);
            if window.start >= window.end {
                continue;
            }
            (first, end) = (first.min(window.start), end.max(window.end));
            let bytes = view.bytes();
            let source = Part::Element(i);
            if let Some(b) = &target_header {
                push(&mut transfers, source, bytes, Part::Header, b, &window);
            }
            for j in partners(bytes, target, &window) {
                let b = targets.element(j);
                push(&mut transfers, source, bytes, Part::Element(j), &b, &window);
            }
        }
        Plan {
            sources: Side::Listed(accesses.iter().map(|(v, _)| v.bytes().clone()).collect()),
            targets,
            window: first.min(end)..end,
            transfers,
        }
    }

    /// Transfers by (source, target); none is empty.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Source elements as sets of file bytes.
    pub fn sources(&self) -> &Side {
        &self.sources
    }

    /// Target elements as sets of file bytes.
    pub fn targets(&self) -> &Side {
        &self.targets
    }

    /// The part of the file the plan is for.
    pub fn window(&self) -> Range<FileOffset> {
        FileOffset(self.window.start)..FileOffset(self.window.end)
    }

    /// Bytes in all transfers, exact, at most `u64::MAX` (overlapping views may ask for more bytes than
    /// a file has).
    ///
    /// A partition and its header hold every byte once, so this is what the sources have in the
    /// window.
    pub fn volume(&self) -> u64 {
        match &self.sources {
            Side::Partition(_) => self.window.end - self.window.start,
            Side::Listed(views) => views
                .iter()
                .map(|v| v.rank(self.window.end) - v.rank(self.window.start))
                .fold(0, u64::saturating_add),
        }
    }

    /// Bytes that change their node when source `i` and target `i` share one.
    pub fn moved_bytes(&self) -> u64 {
        let moved = self.transfers.iter().filter(|t| t.source() != t.target());
        moved
            .map(Transfer::bytes)
            .fold(0, u64::saturating_add)
            .min(self.volume())
    }

    /// Messages needed when source `i` and target `i` share a node: one per transfer between
    /// different nodes.
    pub fn messages(&self) -> usize {
        self.transfers
            .iter()
            .filter(|t| t.source() != t.target())
            .count()
    }

    /// Distribution of target elements over the nodes of the sources that moves fewest bytes.
    pub fn placement(&self) -> Placement {
        Placement::best(self)
    }

    /// This plan with target `j` called by the number of its node.
    ///
    /// Nodes that get no target have an empty one.
    ///
    /// ```
    /// use layout::{Partition, Pattern};
    /// use plan::Plan;
    /// let cut = |sets: &[&str]| {
    ///     let sets = sets.iter().map(|s| s.parse().unwrap()).collect();
    ///     Partition::from_start(Pattern::new(6, sets).unwrap())
    /// };
    /// let (thirds, whole) = (cut(&["{(0,1)}", "{(2,3)}", "{(4,5)}"]), cut(&["{(0,5)}"]));
    /// let plan = Plan::between(&whole, &thirds, 6);
    /// assert_eq!(plan.relabelled(&plan.placement()).targets().len(), 3);
    /// let plan = Plan::between(&thirds, &whole, 6);
    /// assert_eq!(plan.relabelled(&plan.placement()).volume(), 6);
    /// ```
    pub fn relabelled(&self, placement: &Placement) -> Plan {
        let nodes = placement.nodes().iter().max().map_or(0, |last| last + 1);
        let nobody = Periodic::new(0, 1, FallsSet::empty()).expect("an empty element is valid");
        let mut targets = vec![nobody; nodes.max(self.targets.len())];
        for (j, set) in self.targets.elements().enumerate() {
            targets[placement.node_of(j)] = set;
        }
        let mut transfers: Vec<Transfer> = self
            .transfers
            .iter()
            .map(|t| match t.target() {
                Part::Header => t.clone(),
                Part::Element(j) => t.retargeted(Part::Element(placement.node_of(j))),
            })
            .collect();
        transfers.sort_by_key(|t| (t.source(), t.target()));
        Plan {
            targets: Side::Listed(targets.into()),
            transfers,
            ..self.clone()
        }
    }

    pub(crate) fn window_bytes(&self) -> Range<u64> {
        self.window.clone()
    }
}

/// The bytes before the displacement as an element that never comes back.
fn header(partition: &Partition) -> Option<Periodic> {
    let len = partition.displacement().0;
    let set = FallsSet::segment(0, len).ok()?;
    Periodic::new(0, MAX_OFFSET, set).ok()
}

fn push(
    out: &mut Vec<Transfer>,
    source: Part,
    a: &Periodic,
    target: Part,
    b: &Periodic,
    window: &Range<u64>,
) {
    let meeting = Meeting::within(a, b, window.end);
    if meeting
        .next_byte(window.start)
        .is_some_and(|x| x < window.end)
    {
        out.push(Transfer::new(source, target, meeting, window.clone()));
    }
}

/// Element numbers that share a byte inside the window.
fn pairs(
    source: &Partition,
    target: &Partition,
    window: &Range<u64>,
    most: usize,
) -> Result<Vec<(usize, usize)>, TooManyPairs> {
    let steps = pair_budget(source.len(), target.len()).0;
    // Every pair found takes a step, so a search within twice the limit settles it.
    let budget = Budget(steps.min((most as u64).saturating_mul(2).saturating_add(1 << 16)));
    let found = source.pattern().owners().pairs(
        (source.displacement().0, source.pattern().period()),
        target.pattern().owners(),
        (target.displacement().0, target.pattern().period()),
        window.clone(),
        budget,
    );
    let found = match found {
        Some(found) => found,
        None if source.len().saturating_mul(target.len()) > most => {
            return Err(TooManyPairs { most });
        }
        None => {
            let all = 0..source.len();
            all.flat_map(|i| (0..target.len()).map(move |j| (i, j)))
                .collect()
        }
    };
    if found.len() > most {
        return Err(TooManyPairs { most });
    }
    Ok(found)
}

/// More pairs of elements meet than the caller wants to plan for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPairs {
    /// The limit that was given.
    pub most: usize,
}

impl std::fmt::Display for TooManyPairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "more than {} pairs of elements may meet; plan for fewer elements, or for one view",
            self.most
        )
    }
}

impl std::error::Error for TooManyPairs {}

/// Elements of a partition that a view meets inside the window.
fn partners(view: &Periodic, target: &Partition, window: &Range<u64>) -> Vec<usize> {
    let alone: Result<Overlay, Flaw> = Overlay::new(std::slice::from_ref(view.set()));
    let found = alone.ok().and_then(|overlay| {
        overlay.pairs(
            (view.displacement(), view.period()),
            target.pattern().owners(),
            (target.displacement().0, target.pattern().period()),
            window.clone(),
            pair_budget(1, target.len()),
        )
    });
    match found {
        Some(pairs) => pairs.into_iter().map(|(_, j)| j).collect(),
        None => (0..target.len()).collect(),
    }
}
