//! Beyond the list of candidates: every block map where there are few, else neighbours of what is best so far.
//!
//! A neighbour of a striped layout has stripes half or twice as long, or one server more or less; of a grid another
//! order of its factors; of dealt rows runs half or twice as long; of a block map one block elsewhere, those first that
//! the most loaded server holds. Steepest descent from the best, then from the second best; no randomness.

use layout::{Distribution, Hpf, Layout, LayoutForm};

use super::candidates::{block_bytes, candidate, map_layout, striped};
use super::{Judge, Kind, Question};
use crate::profile::blocks::AccessMap;

/// Most block maps that are all tried.
const FEW_MAPS: u64 = 800;
/// Rounds of improvement.
const ROUNDS: usize = 8;
/// Blocks that are tried elsewhere in a round.
const MOST_BLOCKS: usize = 16;

pub(super) fn beyond(question: &Question<'_>, map: &AccessMap, judge: &mut Judge<'_>) {
    let nodes = question.open_servers().len();
    let block = match question.file_bytes {
        // Few blocks, so that all maps can be tried.
        small @ ..=65536 => small.div_ceil(6).max(1),
        _ => block_bytes(question),
    };
    let blocks = question.file_bytes.div_ceil(block);
    let all = u32::try_from(blocks)
        .ok()
        .and_then(|b| (nodes as u64).checked_pow(b));
    if let Some(all) = all.filter(|all| *all <= FEW_MAPS) {
        for number in 0..all {
            let mut left = number;
            let owners: Vec<usize> = (0..blocks)
                .map(|_| {
                    let owner = (left % nodes as u64) as usize;
                    left /= nodes as u64;
                    owner
                })
                .collect();
            let layout = map_layout(block, &owners, nodes);
            let Some(found) = layout.and_then(|l| candidate(question, map, Kind::Search, l)) else {
                continue;
            };
            if !judge.may(found) {
                return;
            }
        }
    }
    for _ in 0..ROUNDS {
        let Some((best, advice)) = judge.best().cloned() else {
            return;
        };
        for layout in neighbours(question, &best.layout) {
            let Some(found) = candidate(question, map, Kind::Search, layout) else {
                continue;
            };
            if !judge.may(found) {
                return;
            }
        }
        let improved = judge
            .best()
            .is_some_and(|(_, now)| now.seconds < advice.seconds * 0.999);
        if !improved {
            return;
        }
    }
}

fn neighbours(question: &Question<'_>, layout: &Layout) -> Vec<Layout> {
    let servers = question.open_servers().len() as u64;
    match layout.form() {
        LayoutForm::Striped(stripe) => {
            let (block, width) = (stripe.block(), stripe.count());
            let mut found = Vec::new();
            for block in [block / 2, block.saturating_mul(2), block * 3 / 2] {
                found.extend(striped(block.max(512), width));
            }
            for width in [width + 1, width.saturating_sub(1)] {
                if (1..=servers).contains(&width) {
                    found.extend(striped(block, width));
                }
            }
            found
        }
        LayoutForm::Hpf(hpf) => grids_around(hpf),
        LayoutForm::Blocks(map) => {
            // Neighbouring blocks of different owners first: borders are where a map is wrong.
            let owners: Vec<usize> = owners_of(map);
            let borders: Vec<usize> = (1..owners.len())
                .filter(|i| owners[*i] != owners[i - 1])
                .collect();
            let mut found = Vec::new();
            for at in borders.into_iter().take(MOST_BLOCKS) {
                for (to, from) in [(at, at - 1), (at - 1, at)] {
                    let mut moved = owners.clone();
                    moved[to] = owners[from];
                    found.extend(map_layout(map.block(), &moved, map.count() as usize));
                }
            }
            found
        }
        _ => Vec::new(),
    }
}

fn owners_of(map: &layout::BlockMap) -> Vec<usize> {
    let mut owners = vec![0; map.owners().len() as usize];
    for run in map.owners().runs() {
        for at in run.start..run.start + run.len {
            owners[at as usize] = run.owner as usize;
        }
    }
    owners
}

/// Other orders of the factors, and runs half or twice as long.
fn grids_around(hpf: &Hpf) -> Vec<Layout> {
    let mut found = Vec::new();
    let grid = hpf.grid();
    let extents = grid.extents();
    for i in 0..extents.len() {
        for j in i + 1..extents.len() {
            let mut other = extents.to_vec();
            other.swap(i, j);
            let grid = layout::Grid::new(other, grid.order());
            let made = grid.and_then(|grid| Hpf::new(hpf.distributions().to_vec(), grid));
            found.extend(made.ok());
        }
    }
    for (d, distribution) in hpf.distributions().iter().enumerate() {
        let lengths = match distribution {
            Distribution::Cyclic => vec![2, 4],
            Distribution::CyclicOf(k) => vec![(k / 2).max(1), k * 2],
            _ => continue,
        };
        for k in lengths {
            let mut cut = hpf.distributions().to_vec();
            cut[d] = Distribution::CyclicOf(k);
            found.extend(Hpf::new(cut, grid.clone()).ok());
        }
    }
    found
        .into_iter()
        .map(|hpf| Layout::from(LayoutForm::Hpf(hpf)))
        .collect()
}
