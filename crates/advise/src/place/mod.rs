//! Which server holds which block, from the sets of processes' servers that access it: the planners of source 003.
//!
//! ```text
//!  block      0    1    2    3    4    5     6
//!  accessed   0    01   01   1    01   -     12
//!  seed       0    0    1    1    0    2     1      exclusive: there; shared by the same set: in turn; nobody: where least is
//!  balanced   0    1    1    1    0    2     2      the same fetches, the smallest largest load
//! ```
//!
//! | planner | rule |
//! |---|---|
//! | [`seed`] | R1, R2, D6 and D7 of the source, to the block |
//! | [`balanced`] | optimal semi-matching inside the accessor sets: no fetch more, the smallest largest load |
//! | [`cost`] | smallest time of the slowest node plus that of all fetches; may leave the sets |
//! | [`clustered`] | as `seed`, but shared blocks are dealt in runs of so many, so that neighbours stay together |
//!
//! Invariants
//! - Total and deterministic; blocks in ascending order, ties to the lowest node.
//! - A node is a number below `nodes`; sets are ascending and without repetition, and nodes beyond are left out.
//! - Planning again what is planned already moves nothing ([`balanced`] begins with what is there if that is as good).
//!
//! Sections 1.5, 2.2, 3.4 and 6.6 of the specification of source 003.

mod matching;

use std::collections::BTreeMap;

use matching::Matching;

/// Nodes that access each block.
pub type Accessors = [Vec<usize>];

/// Blocks of each node.
///
/// ```
/// assert_eq!(advise::place::loads(&[0, 2, 0], 3), [2, 0, 1]);
/// ```
pub fn loads(place: &[usize], nodes: usize) -> Vec<u64> {
    let mut loads = vec![0; nodes];
    for &node in place {
        loads[node] += 1;
    }
    loads
}

/// Transfers of a block to a node that does not hold it.
///
/// ```
/// use advise::place::fetches;
/// let accessors = [vec![0], vec![0, 1], vec![]];
/// assert_eq!(fetches(&accessors, &[0, 1, 1]), 1);
/// assert_eq!(fetches(&accessors, &[1, 2, 0]), 3);
/// ```
pub fn fetches(accessors: &Accessors, place: &[usize]) -> u64 {
    let one = |(set, node): (&Vec<usize>, &usize)| set.iter().filter(|n| *n != node).count() as u64;
    accessors.iter().zip(place).map(one).sum()
}

/// The node with the smallest load, the lowest of equals.
fn least(loads: &[u64]) -> usize {
    let least = loads
        .iter()
        .enumerate()
        .min_by_key(|(node, load)| (**load, *node));
    least.map_or(0, |(node, _)| node)
}

/// Deals blocks of one set in runs of `run` neighbours in the list.
fn deal(accessors: &Accessors, nodes: usize, run: usize) -> Vec<usize> {
    let mut place = vec![usize::MAX; accessors.len()];
    let mut groups: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
    for (block, set) in accessors.iter().enumerate() {
        groups.entry(set).or_default().push(block);
    }
    for (set, blocks) in groups {
        let set: Vec<usize> = set.iter().copied().filter(|n| *n < nodes).collect();
        if set.is_empty() {
            continue;
        }
        for (i, block) in blocks.into_iter().enumerate() {
            place[block] = set[i / run.max(1) % set.len()];
        }
    }
    let placed: Vec<usize> = place.iter().copied().filter(|n| *n < nodes).collect();
    let mut loads = loads(&placed, nodes);
    for node in place.iter_mut().filter(|n| **n == usize::MAX) {
        *node = least(&loads);
        loads[*node] += 1;
    }
    place
}

/// R1, R2, D6, D7: a block of one node goes there; blocks of the same set of nodes are dealt to these in turn; blocks of
/// nobody go, last, where the load is least.
///
/// ```
/// use advise::place::seed;
/// let accessors = [vec![0], vec![0, 1], vec![0, 1], vec![1], vec![0, 1], vec![], vec![1, 2]];
/// assert_eq!(seed(&accessors, 3), [0, 0, 1, 1, 0, 2, 1]);
/// ```
pub fn seed(accessors: &Accessors, nodes: usize) -> Vec<usize> {
    deal(accessors, nodes, 1)
}

/// As [`seed`], with shared blocks dealt in runs of `run`.
pub fn clustered(accessors: &Accessors, nodes: usize, run: usize) -> Vec<usize> {
    deal(accessors, nodes, run)
}

/// Every block at a node that accesses it, with the smallest largest load; loads are relative to the speeds of the nodes,
/// all alike if none are given. `before` is kept if it is as good.
pub fn balanced(
    accessors: &Accessors,
    nodes: usize,
    speeds: &[f64],
    before: Option<&[usize]>,
) -> Vec<usize> {
    let speed = |node: usize| {
        speeds
            .get(node)
            .copied()
            .filter(|s| *s > 0.0)
            .unwrap_or(1.0)
    };
    let may = |block: usize, node: usize| {
        let set = &accessors[block];
        set.contains(&node) || set.iter().all(|n| *n >= nodes)
    };
    let fits = |place: &&[usize]| {
        place.len() == accessors.len()
            && place
                .iter()
                .enumerate()
                .all(|(b, n)| *n < nodes && may(b, *n))
    };
    let mut place = match before.filter(fits) {
        Some(before) => before.to_vec(),
        None => seed(accessors, nodes),
    };
    let mut blocks: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (block, node) in place.iter().enumerate() {
        blocks[*node].push(block);
    }
    // Cost-reducing paths: from a loaded node over blocks that could be elsewhere to one that has room.
    loop {
        let time = |load: usize, node: usize| load as f64 / speed(node);
        let mut order: Vec<usize> = (0..nodes).collect();
        order.sort_by(|a, b| time(blocks[*b].len(), *b).total_cmp(&time(blocks[*a].len(), *a)));
        let path = order.into_iter().find_map(|from| {
            let now = time(blocks[from].len(), from);
            reducing_path(&blocks, from, &may, |to| {
                time(blocks[to].len() + 1, to) < now - 1e-9
            })
        });
        let Some(path) = path else {
            return place;
        };
        for (block, from, to) in path {
            blocks[from].retain(|b| *b != block);
            let at = blocks[to].partition_point(|b| *b < block);
            blocks[to].insert(at, block);
            place[block] = to;
        }
    }
}

/// Moves (block, from, to) that take one block away from `from` and give one to a node that has room.
fn reducing_path(
    blocks: &[Vec<usize>],
    from: usize,
    may: &dyn Fn(usize, usize) -> bool,
    has_room: impl Fn(usize) -> bool,
) -> Option<Vec<(usize, usize, usize)>> {
    let nodes = blocks.len();
    let mut came: Vec<Option<(usize, usize)>> = vec![None; nodes];
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for to in 0..nodes {
            if to == from || came[to].is_some() {
                continue;
            }
            let Some(block) = blocks[node].iter().copied().find(|b| may(*b, to)) else {
                continue;
            };
            came[to] = Some((block, node));
            if has_room(to) {
                let mut path = Vec::new();
                let mut at = to;
                while at != from {
                    let (block, before) = came[at].expect("visited");
                    path.push((block, before, at));
                    at = before;
                }
                return Some(path);
            }
            queue.push_back(to);
        }
    }
    None
}

/// What time goes into.
#[derive(Clone, Debug, PartialEq)]
pub struct Speeds {
    /// Seconds for a block at each node; nodes beyond the list take as long as the last, or one second.
    pub block_s: Vec<f64>,
    /// Seconds for one fetch.
    pub fetch_s: f64,
}

impl Speeds {
    fn block_s(&self, node: usize) -> f64 {
        let last = self.block_s.last().copied().unwrap_or(1.0);
        self.block_s.get(node).copied().unwrap_or(last).max(1e-12)
    }

    /// Time of the slowest node plus that of all fetches.
    pub fn seconds(&self, accessors: &Accessors, place: &[usize], nodes: usize) -> f64 {
        let loads = loads(place, nodes);
        let node = |(node, load): (usize, &u64)| *load as f64 * self.block_s(node);
        let slowest = loads.iter().enumerate().map(node).fold(0.0, f64::max);
        slowest + fetches(accessors, place) as f64 * self.fetch_s
    }
}

/// The smallest time of the slowest node plus that of all fetches. Exact: for every time that a node can take, the most
/// blocks are kept inside their sets, the others go where there is room.
///
/// ```
/// use advise::place::{Speeds, cost, loads};
/// let mut accessors = vec![vec![0]; 6];
/// accessors.extend(vec![vec![0, 1]; 4]);
/// let with = |fetch_s| loads(&cost(&accessors, 3, &Speeds { block_s: vec![1.0], fetch_s }), 3);
/// assert_eq!(with(10.0), [6, 4, 0], "a fetch is dear: inside the sets");
/// assert_eq!(with(0.1), [4, 4, 2], "cheap: two blocks leave them");
/// ```
pub fn cost(accessors: &Accessors, nodes: usize, speeds: &Speeds) -> Vec<usize> {
    let mut best = balanced(
        accessors,
        nodes,
        &(0..nodes)
            .map(|n| 1.0 / speeds.block_s(n))
            .collect::<Vec<_>>(),
        None,
    );
    let mut best_s = speeds.seconds(accessors, &best, nodes);
    // Times at which the slowest node could end.
    let count = accessors.len();
    let mut times: Vec<f64> = (0..nodes)
        .flat_map(|n| (1..=count).map(move |k| (n, k)))
        .map(|(n, k)| k as f64 * speeds.block_s(n))
        .filter(|t| *t < best_s)
        .collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    for time in times {
        let room: Vec<usize> = (0..nodes)
            .map(|n| ((time / speeds.block_s(n) + 1e-9) as usize).min(count))
            .collect();
        if room.iter().sum::<usize>() < count {
            continue;
        }
        let place = Matching::new(accessors, &room).place();
        let seconds = speeds.seconds(accessors, &place, nodes);
        if seconds < best_s - 1e-12 {
            (best, best_s) = (place, seconds);
        }
    }
    best
}
