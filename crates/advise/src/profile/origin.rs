//! Which element of which distribution a view is, and what becomes of it when the program has another number of
//! processes.
//!
//! ```text
//!  view of rank 2 of 4  =  element 2 of "(block, *) onto 4"      on 6 processes: elements of "(block, *) onto 6"
//!  no distribution known   ranks are stretched: rank k of 4 becomes the ranks from k*6/4 on, which share its view
//! ```
//!
//! A view that was given as text says what it is. Others are compared with what the constructors give for the array of
//! the file and the number of processes: every grid over which they can be spread, `block` and `cyclic(k)` along each
//! dimension; a contiguous part of plain bytes is compared with `block`. What fits for all processes of an application
//! counts, nothing else.

use falls::FallsSet;
use layout::{
    ArrayType, Distribution, Grid, Hpf, Layout, LayoutForm, Order, Servers, Stripe, View,
};

use super::record::{Entry, Profile};
use super::tally::Tally;

/// Most grids that are tried for one application.
const MOST_TRIES: usize = 512;

/// The distribution of an application: rank k has element k.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The layout whose elements the views are.
    pub layout: Layout,
}

impl Origin {
    /// The origin for another number of processes, where that can be said.
    ///
    /// ```
    /// use advise::profile::origin::Origin;
    /// let on = |text: &str, n| {
    ///     let origin = Origin { layout: text.parse().unwrap() };
    ///     origin.for_processes(n).map(|o| o.layout.to_string())
    /// };
    /// assert_eq!(on("(block, *) onto 4", 6).as_deref(), Some("(block, *) onto 6"));
    /// assert_eq!(on("(block, cyclic(8)) onto 2x2", 6).as_deref(), Some("(block, cyclic(8)) onto 3x2"));
    /// assert_eq!(on("striped(1KiB) over 4", 3).as_deref(), Some("striped(1KiB) over 3"));
    /// assert_eq!(on("whole", 3), None);
    /// ```
    pub fn for_processes(&self, processes: u64) -> Option<Origin> {
        let form = match self.layout.form() {
            LayoutForm::Hpf(hpf) => {
                let distributions = hpf.distributions().iter().map(|d| match d {
                    // Lengths and lists belong to one number of processes.
                    Distribution::BlockOf(_) | Distribution::GenBlock(_) => Distribution::Block,
                    other => other.clone(),
                });
                let distributions: Vec<Distribution> = distributions.collect();
                if distributions
                    .iter()
                    .any(|d| matches!(d, Distribution::Indirect(_)))
                {
                    return None;
                }
                let dimensions = distributions.iter().filter(|d| d.is_distributed()).count();
                let grid = Grid::new(even_grid(processes, dimensions), hpf.grid().order()).ok()?;
                LayoutForm::Hpf(Hpf::new(distributions, grid).ok()?)
            }
            LayoutForm::Striped(stripe) => {
                let servers = Servers::first(processes, 0).ok()?;
                LayoutForm::Striped(Stripe::new(stripe.block(), servers).ok()?)
            }
            _ => return None,
        };
        Some(Origin {
            layout: form.into(),
        })
    }

    /// The view of a rank.
    pub fn view(&self, array: Option<&ArrayType>, file_bytes: u64, rank: u64) -> Option<View> {
        let applied = match (array, self.layout.form()) {
            (Some(array), _) => self.layout.on_array(array).ok()?,
            // Parts of plain bytes are those of an array of bytes.
            (None, LayoutForm::Hpf(_)) => self.layout.on_array(&plain(file_bytes)?).ok()?,
            (None, _) => self.layout.on_bytes().ok()?,
        };
        let set = applied.element(rank).ok()?;
        View::new(layout::FileOffset(0), applied.period(), set).ok()
    }
}

fn plain(bytes: u64) -> Option<ArrayType> {
    format!("u8[{bytes}]").parse().ok()
}

/// Factors of `n`, as equal as can be, the largest first.
pub fn even_grid(n: u64, dimensions: usize) -> Vec<u64> {
    grids(n, dimensions)
        .into_iter()
        .map(|mut grid| {
            grid.sort_unstable_by(|a, b| b.cmp(a));
            grid
        })
        .min_by_key(|grid| grid.first().copied().unwrap_or(1) - grid.last().copied().unwrap_or(1))
        .unwrap_or_else(|| vec![n])
}

/// All ways to write `n` as a product of so many factors, in order.
pub fn grids(n: u64, dimensions: usize) -> Vec<Vec<u64>> {
    match dimensions {
        0 => match n {
            1 => vec![Vec::new()],
            _ => Vec::new(),
        },
        1 => vec![vec![n]],
        _ => (1..=n)
            .filter(|first| n.is_multiple_of(*first))
            .flat_map(|first| {
                grids(n / first, dimensions - 1)
                    .into_iter()
                    .map(move |mut rest| {
                        rest.insert(0, first);
                        rest
                    })
            })
            .collect(),
    }
}

/// What an application's view of a rank is, in file bytes of one array.
fn used(entry: &Entry, array: &ArrayType) -> Option<FallsSet> {
    let bytes = array.bytes();
    let view = entry.view.bytes();
    if view.is_everything() && view.displacement() == 0 {
        // No view was set: what was touched in one piece counts.
        let mut hull: Option<(u64, u64)> = None;
        for tally in [&entry.read, &entry.written] {
            if !tally.is_empty() {
                let (low, high) = hull.unwrap_or(tally.hull);
                hull = Some((low.min(tally.hull.0), high.max(tally.hull.1)));
            }
        }
        let (low, high) = hull?;
        return FallsSet::segment(low, high.min(bytes).checked_sub(low)?).ok();
    }
    Some(view.window(0..bytes))
}

impl Profile {
    /// The entries of an application that moved most bytes, one for each rank below `processes`; `None` if one is missing.
    fn dominant(&self, application: &str, processes: u64) -> Option<Vec<&Entry>> {
        let mut found: Vec<Option<&Entry>> = vec![None; usize::try_from(processes).ok()?];
        for (key, entry) in self.entries() {
            if key.application != application {
                continue;
            }
            let there = found.get_mut(usize::try_from(key.rank).ok()?)?;
            if there.is_none_or(|e| entry.bytes() > e.bytes()) {
                *there = Some(entry);
            }
        }
        found.into_iter().collect()
    }

    /// The distribution whose elements are the views of an application, if there is one.
    pub fn origin(
        &self,
        application: &str,
        array: Option<&ArrayType>,
        file_bytes: u64,
    ) -> Option<Origin> {
        let processes = self.processes(application);
        if processes < 2 || processes > super::MOST_ENTRIES as u64 {
            return None;
        }
        let entries = self.dominant(application, processes)?;
        if let Some(origin) = by_text(&entries) {
            return Some(origin);
        }
        let plain_array = plain(file_bytes);
        let array = array.filter(|a| a.bytes() > 0).or(plain_array.as_ref())?;
        let sets: Vec<FallsSet> = entries
            .iter()
            .map(|e| used(e, array))
            .collect::<Option<_>>()?;
        candidates(array, &sets, processes)
            .into_iter()
            .find_map(|layout| {
                let applied = layout.on_array(array).ok()?;
                let fits = |(rank, set): (usize, &FallsSet)| {
                    applied
                        .element(rank as u64)
                        .is_ok_and(|e| e.same_bytes(set))
                };
                sets.iter()
                    .enumerate()
                    .all(fits)
                    .then_some(Origin { layout })
            })
    }

    /// What the record would be if each application had `processes` processes: elements of the same distribution where it
    /// is known; otherwise ranks are stretched, and several that come from one share its view.
    pub fn for_processes(
        &self,
        processes: u64,
        array: Option<&ArrayType>,
        file_bytes: u64,
    ) -> Profile {
        let mut derived = Profile::default();
        for application in self.applications() {
            let before = self.processes(application);
            if before == processes || before == 0 || processes == 0 {
                for (key, entry) in self.entries() {
                    if key.application == application {
                        derived.add(application, key.rank, entry.clone());
                    }
                }
                continue;
            }
            let origin = self
                .origin(application, array, file_bytes)
                .and_then(|origin| origin.for_processes(processes));
            match origin {
                Some(origin) => {
                    self.derive(
                        application,
                        &origin,
                        processes,
                        array,
                        file_bytes,
                        &mut derived,
                    );
                }
                None => self.stretch(application, processes, file_bytes, &mut derived),
            }
        }
        derived
    }

    /// Elements of a distribution, each with an equal part of what was moved.
    pub(super) fn derive(
        &self,
        application: &str,
        origin: &Origin,
        processes: u64,
        array: Option<&ArrayType>,
        file_bytes: u64,
        derived: &mut Profile,
    ) {
        let (mut read, mut written) = (Tally::default(), Tally::default());
        let mut servers = Vec::new();
        for (key, entry) in self.entries() {
            if key.application == application {
                read.merge(&entry.read);
                written.merge(&entry.written);
                servers.push((key.rank, entry.servers.clone()));
            }
        }
        let before = self.processes(application);
        for rank in 0..processes {
            let Some(view) = origin.view(array, file_bytes, rank) else {
                continue;
            };
            let text = origin.layout.clone().pick(rank).map(|l| l.to_string());
            let mut entry = Entry::new(&view, &text.unwrap_or_default(), file_bytes);
            entry.processes = processes;
            let bytes = view.len_within(file_bytes);
            entry.read = part(&read, processes, bytes);
            entry.written = part(&written, processes, bytes);
            // As near as the process was whose place it takes.
            let from = rank * before / processes;
            if let Some((_, used)) = servers.iter().find(|(r, _)| *r == from) {
                entry.servers.clone_from(used);
            }
            derived.add(application, rank, entry);
        }
    }

    /// Ranks stretched or pressed together.
    fn stretch(&self, application: &str, processes: u64, file_bytes: u64, derived: &mut Profile) {
        let before = self.processes(application);
        for (key, entry) in self.entries() {
            if key.application != application {
                continue;
            }
            let first = (key.rank * processes).div_ceil(before);
            let end = ((key.rank + 1) * processes).div_ceil(before);
            if first >= end {
                // Several ranks become one, which then has the views of all.
                let mut entry = entry.clone();
                entry.processes = processes;
                derived.add(application, key.rank * processes / before, entry);
                continue;
            }
            let view = entry.view.bytes();
            for (place, rank) in (first..end).enumerate() {
                let share = |tally: &Tally| {
                    let (low, high) = tally.hull;
                    let (n, i) = (end - first, place as u64);
                    let cut = |i: u64| {
                        low + ((high - low) as u128 * u128::from(i) / u128::from(n)) as u64
                    };
                    let mut shared = part(tally, n, high - low);
                    shared.hull = (cut(i), cut(i + 1));
                    shared.touched = tally.touched;
                    shared
                };
                let mut one = Entry {
                    processes,
                    read: share(&entry.read),
                    written: share(&entry.written),
                    ..entry.clone()
                };
                if one.text.contains('[') {
                    one.text.clear();
                }
                debug_assert!(view.period() > 0 && file_bytes > 0);
                derived.add(application, rank, one);
            }
        }
    }
}

/// An equal part of what was counted, over all of a view of so many bytes.
fn part(tally: &Tally, of: u64, view_bytes: u64) -> Tally {
    if tally.is_empty() || view_bytes == 0 {
        return Tally::default();
    }
    let mut part = tally.clone();
    part.bytes = tally.bytes.div_ceil(of);
    for n in part.sizes.iter_mut().chain(&mut part.orders) {
        *n = n.div_ceil(of);
    }
    part.hull = (0, view_bytes);
    part.touched = super::tally::TouchedBlocks::default();
    part.touched.touch(0..view_bytes);
    part
}

/// All views were written as elements of one layout, each rank its own.
fn by_text(entries: &[&Entry]) -> Option<Origin> {
    let mut common: Option<Layout> = None;
    for (rank, entry) in entries.iter().enumerate() {
        let layout: Layout = entry.text.parse().ok()?;
        if layout.picked() != Some(rank as u64) {
            return None;
        }
        let layout = Layout::from(layout.form().clone());
        match &common {
            Some(one) if *one != layout => return None,
            _ => common = Some(layout),
        }
    }
    common.map(|layout| Origin { layout })
}

/// Layouts that the views could be elements of.
fn candidates(array: &ArrayType, sets: &[FallsSet], processes: u64) -> Vec<Layout> {
    let dimensions = array.dimensions();
    let mut found = Vec::new();
    // The first view's first run gives the only block length that `cyclic(k)` along the fastest dimension can have.
    let run = sets
        .first()
        .and_then(|set| set.segments(0..array.bytes()).next())
        .map_or(0, |s| s.len() / array.element().size().max(1));
    let kinds: Vec<Distribution> = {
        let mut kinds = vec![Distribution::Block, Distribution::Cyclic];
        if run > 1 {
            kinds.push(Distribution::CyclicOf(run));
            // Whole rows in one run: as many as fit.
            let row: u64 = array.extents().iter().skip(1).product();
            if row > 0 && run.is_multiple_of(row) && run / row > 1 {
                kinds.push(Distribution::CyclicOf(run / row));
            }
        }
        kinds
    };
    for distributed in 1_u32..1 << dimensions.min(4) {
        let along: Vec<usize> = (0..dimensions)
            .filter(|d| distributed >> d & 1 == 1)
            .collect();
        for grid in grids(processes, along.len()) {
            if along.len() > 1 && grid.contains(&1) {
                continue;
            }
            for choice in 0..kinds.len().pow(along.len() as u32) {
                let mut left = choice;
                let mut cut = vec![Distribution::Collapsed; dimensions];
                for d in &along {
                    cut[*d] = kinds[left % kinds.len()].clone();
                    left /= kinds.len();
                }
                for order in [Order::C, Order::Fortran] {
                    if order == Order::Fortran && along.len() < 2 {
                        continue;
                    }
                    let layout = Grid::new(grid.clone(), order)
                        .and_then(|grid| Hpf::new(cut.clone(), grid))
                        .map(|hpf| Layout::from(LayoutForm::Hpf(hpf)));
                    found.extend(layout.ok());
                    if found.len() >= MOST_TRIES {
                        return found;
                    }
                }
            }
        }
    }
    found
}
