//! Layouts that are worth a look, from what was observed.
//!
//! | kind | from |
//! |---|---|
//! | rule | the scoring rule of striping with what the profile knows, and the rule for arrays |
//! | striped | lengths from 4 KiB to 16 MiB and that of a request, over one, half and all servers |
//! | views | the distribution whose elements the views of an application are; else the views themselves |
//! | grid | blocks of the array over every grid of as many processes as servers |
//! | cyclic | rows, columns or blocks dealt in turn |
//! | blocks | block maps that follow exclusive and shared blocks, by the planners of [`place`] |

use layout::{
    BlockMap, Distribution, Grid, Hpf, Layout, LayoutForm, Order, OwnerRuns, Servers, Stripe,
};

use super::{Candidate, Kind, Question, Work, near};
use crate::distribute::{Knowledge, ServerKnowledge, ViewRule, by_views, choose};
use crate::place;
use crate::profile::blocks::AccessMap;
use crate::profile::origin::grids;

/// Blocks of a map, about.
const BLOCKS: u64 = 256;
/// A block of a map has at least so many bytes.
const LEAST_BLOCK: u64 = 4 << 10;
/// Most subfiles of a layout that is proposed.
const MOST_SUBFILES: u64 = 256;

/// A candidate of a layout, placed near to who uses it.
pub(super) fn candidate(
    question: &Question<'_>,
    map: &AccessMap,
    kind: Kind,
    layout: Layout,
) -> Option<Candidate> {
    let partition = question.apply(&layout)?;
    if partition.len() as u64 > MOST_SUBFILES {
        return None;
    }
    let homes = near::homes(question, map, &partition);
    Some(Candidate {
        layout,
        kind,
        partition,
        homes,
    })
}

/// A striped layout over the first so many open servers.
pub(super) fn striped(block: u64, width: u64) -> Option<Layout> {
    let servers = Servers::first(width.max(1), 0).ok()?;
    Some(LayoutForm::Striped(Stripe::new(block.max(1), servers).ok()?).into())
}

/// What files get about which nothing is known, and what they get by the scoring rule of striping when the profile is.
pub(super) fn by_rule(question: &Question<'_>, map: &AccessMap) -> Vec<Candidate> {
    let open = question.open_servers();
    let mut found = Vec::new();
    let width = open.len() as u64;
    if let Some(array) = question.array.filter(|a| a.dimensions() > 0) {
        let slowest = match array.order() {
            Order::C => 0,
            Order::Fortran => array.dimensions() - 1,
        };
        let mut cut = vec![Distribution::Collapsed; array.dimensions()];
        cut[slowest] = Distribution::Block;
        let onto = width.min(array.extents()[slowest]).max(1);
        let layout = Grid::new([onto], Order::C)
            .and_then(|grid| Hpf::new(cut, grid))
            .map(|hpf| Layout::from(LayoutForm::Hpf(hpf)));
        found.extend(
            layout
                .ok()
                .and_then(|l| candidate(question, map, Kind::Rule, l)),
        );
    } else {
        let plain = striped(crate::distribute::STRIPE, width);
        found.extend(plain.and_then(|l| candidate(question, map, Kind::Rule, l)));
    }
    let accesses: u64 = map.uses.iter().map(|u| u.count).sum();
    let server = |s: &usize| ServerKnowledge {
        server: *s as u64,
        ..ServerKnowledge::default()
    };
    let known = Knowledge {
        servers: open.iter().map(server).collect(),
        size: Some(question.file_bytes),
        clients: Some(map.processes.len().max(1) as u64),
        access_bytes: (accesses > 0).then(|| (map.moved() / accesses as f64) as u64),
        near: None,
        ..Knowledge::default()
    };
    if let Some(choice) = choose(&known) {
        let striping = &choice.striping;
        let layout = striped(striping.block(), striping.servers().len() as u64);
        found.extend(layout.and_then(|l| candidate(question, map, Kind::Rule, l)));
    }
    found
}

/// All others, those first that most often are the best.
pub(super) fn all(question: &Question<'_>, map: &AccessMap, work: &Work) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |kind: Kind, layout: Option<Layout>| {
        found.extend(layout.and_then(|l| candidate(question, map, kind, l)));
    };
    let width = question.open_servers().len() as u64;
    for application in question.profile.applications() {
        let origin = question
            .profile
            .origin(application, question.array, question.file_bytes);
        if let Some(origin) = origin {
            if question.array.is_some() || !matches!(origin.layout.form(), LayoutForm::Hpf(_)) {
                add(Kind::Views, Some(origin.layout.clone()));
            }
            // As many subfiles as servers, if there are more processes.
            let fewer = origin.for_processes(width).map(|o| o.layout);
            if question.array.is_some() {
                add(Kind::Views, fewer);
            }
        }
    }
    for phase in &work.phases {
        add(Kind::Views, by_their_views(phase, width as usize));
    }
    for layout in block_maps(question, map) {
        add(Kind::Blocks, Some(layout));
    }
    for layout in grid_layouts(question, width) {
        add(Kind::Grid, Some(layout));
    }
    for phase in &work.phases {
        let request = phase.request_bytes;
        add(Kind::Striped, striped(request.clamp(512, 64 << 20), width));
    }
    for width in widths(width) {
        for shift in (12..=24).step_by(2) {
            add(Kind::Striped, striped(1 << shift, width));
        }
    }
    for layout in cyclic_layouts(question, width) {
        add(Kind::Cyclic, Some(layout));
    }
    found
}

fn widths(all: u64) -> Vec<u64> {
    let mut widths = vec![all, all.div_ceil(2), 1];
    widths.dedup();
    widths
}

/// The views of a phase as subfiles.
fn by_their_views(phase: &super::Phase, servers: usize) -> Option<Layout> {
    let rule = ViewRule {
        most_nodes: 1 << 12,
        most_subfiles: MOST_SUBFILES as usize,
        ..ViewRule::default()
    };
    let by = by_views(&phase.views, servers, &rule).ok()?;
    Some(
        LayoutForm::Falls {
            period: by.pattern.period(),
            sets: by.pattern.elements().into(),
        }
        .into(),
    )
}

/// Blocks of the array over every grid of so many servers.
fn grid_layouts(question: &Question<'_>, servers: u64) -> Vec<Layout> {
    let Some(array) = question.array.filter(|a| a.dimensions() > 0) else {
        return Vec::new();
    };
    let dimensions = array.dimensions().min(4);
    let mut found = Vec::new();
    for grid in grids(servers, dimensions) {
        let mut cut = vec![Distribution::Collapsed; array.dimensions()];
        let mut extents = Vec::new();
        for (d, n) in grid.iter().enumerate() {
            if *n > 1 && *n <= array.extents()[d] {
                cut[d] = Distribution::Block;
                extents.push(*n);
            }
        }
        if extents.iter().product::<u64>() != servers {
            continue;
        }
        let layout = Grid::new(extents, Order::C).and_then(|grid| Hpf::new(cut, grid));
        found.extend(layout.ok().map(|hpf| Layout::from(LayoutForm::Hpf(hpf))));
    }
    found
}

/// Rows, columns or blocks in turn.
fn cyclic_layouts(question: &Question<'_>, servers: u64) -> Vec<Layout> {
    let Some(array) = question.array.filter(|a| a.dimensions() > 0) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for d in 0..array.dimensions().min(4) {
        let extent = array.extents()[d];
        for k in [1, 8, 64] {
            if extent < 2 * k * servers.min(extent) || servers < 2 {
                continue;
            }
            let mut cut = vec![Distribution::Collapsed; array.dimensions()];
            cut[d] = match k {
                1 => Distribution::Cyclic,
                k => Distribution::CyclicOf(k),
            };
            let layout = Grid::new([servers], Order::C).and_then(|grid| Hpf::new(cut, grid));
            found.extend(layout.ok().map(|hpf| Layout::from(LayoutForm::Hpf(hpf))));
        }
    }
    found
}

/// Bytes of a block of a map: a whole number of rows if that is a good length.
pub(super) fn block_bytes(question: &Question<'_>) -> u64 {
    let about = question.file_bytes.div_ceil(BLOCKS).max(1);
    let row = question.array.and_then(|a| {
        let extents = a.extents();
        let row: u64 = extents.iter().skip(1).product();
        row.checked_mul(a.element().size()).filter(|r| *r > 0)
    });
    match row {
        Some(row) if row <= about.max(LEAST_BLOCK) * 4 => {
            about.max(LEAST_BLOCK).div_ceil(row) * row
        }
        _ => about.next_power_of_two().max(LEAST_BLOCK),
    }
}

/// Who accesses each block, as servers near to processes.
pub(super) fn accessors(question: &Question<'_>, map: &AccessMap, block: u64) -> Vec<Vec<usize>> {
    let open = question.open_servers();
    let node = |process: usize| {
        let nearest = map.processes[process].nearest;
        let at = nearest.and_then(|n| question.servers.iter().position(|s| s.number == n));
        match at.and_then(|at| open.iter().position(|s| *s == at)) {
            Some(node) if near::matters(question, map) => node,
            // Where nothing is near, processes are dealt to servers in turn.
            _ => process % open.len(),
        }
    };
    map.blocks(block)
        .iter()
        .map(|list| {
            let mut nodes: Vec<usize> = list.iter().map(|(p, _)| node(*p)).collect();
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        })
        .collect()
}

/// Maps of blocks onto open servers as layouts.
pub(super) fn map_layout(block: u64, owners: &[usize], count: usize) -> Option<Layout> {
    let owners: Vec<u64> = owners.iter().map(|o| *o as u64).collect();
    let map = BlockMap::new(block, OwnerRuns::new(&owners), count as u64).ok()?;
    Some(LayoutForm::Blocks(map).into())
}

fn block_maps(question: &Question<'_>, map: &AccessMap) -> Vec<Layout> {
    let nodes = question.open_servers().len();
    let block = block_bytes(question);
    if nodes < 2 || question.file_bytes.div_ceil(block) > 4 * BLOCKS {
        return Vec::new();
    }
    let accessors = accessors(question, map, block);
    let speeds = place::Speeds {
        block_s: vec![block as f64 * question.machine.direct.c],
        fetch_s: question.machine.far.message_s + block as f64 * question.machine.far.byte_s,
    };
    let plans = [
        place::seed(&accessors, nodes),
        place::balanced(&accessors, nodes, &[], None),
        place::cost(&accessors, nodes, &speeds),
        place::clustered(&accessors, nodes, 8),
    ];
    plans
        .iter()
        .filter_map(|owners| map_layout(block, owners, nodes))
        .collect()
}
