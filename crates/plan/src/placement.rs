//! Where to put the elements of the new partition so that the fewest bytes move.
//!
//! Source element `i` lives on node `i`. Giving target `j` to node `p(j)` keeps the bytes that
//! source `p(j)` and target `j` share; the best one-to-one choice is an assignment problem. Up to
//! [`EXACT_UP_TO`] elements it is solved exactly (Hungarian method, O(n^3)); beyond, greedily by
//! falling volume, which is exact whenever every target has one dominant source.

use crate::plan::Plan;

/// Largest number of elements for which the assignment is optimal.
const EXACT_UP_TO: usize = 512;

/// A node for every target element, each node at most once while nodes last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    node_of: Vec<usize>,
    kept_bytes: u64,
    exact: bool,
}

impl Placement {
    /// Every target on the node of its own number.
    pub fn identity(plan: &Plan) -> Self {
        let kept = plan.volume() - plan.moved_bytes();
        Placement {
            node_of: (0..plan.targets().len()).collect(),
            kept_bytes: kept,
            exact: false,
        }
    }

    pub(crate) fn best(plan: &Plan) -> Self {
        let targets = plan.targets().len();
        let nodes = plan.sources().len().max(targets);
        let mut volumes: Vec<(usize, usize, u64)> = Vec::with_capacity(plan.transfers().len());
        for t in plan.transfers() {
            if let (Some(i), Some(j)) = (t.source().element(), t.target().element()) {
                volumes.push((i, j, t.bytes()));
            }
        }
        let exact = nodes <= EXACT_UP_TO;
        let node_of = if exact {
            assign(nodes, targets, &volumes)
        } else {
            greedy(nodes, targets, &volumes)
        };
        let kept_bytes = volumes
            .iter()
            .filter(|&&(i, j, _)| node_of[j] == i)
            .map(|&(_, _, v)| v)
            .sum();
        Placement {
            node_of,
            kept_bytes,
            exact,
        }
    }

    /// The node of target element `j`.
    ///
    /// # Panics
    /// If the plan it was made for has no such target.
    pub fn node_of(&self, j: usize) -> usize {
        self.node_of[j]
    }

    /// Nodes by target element.
    pub fn nodes(&self) -> &[usize] {
        &self.node_of
    }

    /// Bytes that stay where they are.
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Whether no other placement keeps more.
    pub fn is_exact(&self) -> bool {
        self.exact
    }
}

fn greedy(nodes: usize, targets: usize, volumes: &[(usize, usize, u64)]) -> Vec<usize> {
    let mut by_volume: Vec<_> = volumes.to_vec();
    by_volume.sort_by_key(|&(i, j, v)| (std::cmp::Reverse(v), i, j));
    let mut node_of = vec![usize::MAX; targets];
    let mut taken = vec![false; nodes];
    for (i, j, _) in by_volume {
        if node_of[j] == usize::MAX && !taken[i] {
            node_of[j] = i;
            taken[i] = true;
        }
    }
    // What is left keeps its own number where that is free.
    for j in 0..targets {
        if node_of[j] == usize::MAX && !taken[j] {
            node_of[j] = j;
            taken[j] = true;
        }
    }
    let mut free = (0..nodes)
        .filter(|&i| !taken[i])
        .collect::<Vec<_>>()
        .into_iter();
    for slot in node_of.iter_mut().filter(|n| **n == usize::MAX) {
        *slot = free.next().expect("at least as many nodes as targets");
    }
    node_of
}

/// Hungarian method with potentials: rows are targets, columns are nodes, cost is what would move.
fn assign(nodes: usize, targets: usize, volumes: &[(usize, usize, u64)]) -> Vec<usize> {
    let mut keep = vec![0u64; targets * nodes];
    for &(i, j, v) in volumes {
        keep[j * nodes + i] = v;
    }
    // Keeping a byte outweighs all own numbers together, which only break ties.
    let weight = targets as i128 + 1;
    let gain = |j: usize, i: usize| i128::from(keep[j * nodes + i]) * weight + i128::from(i == j);
    let (mut row_potential, mut column_potential) =
        (vec![0i128; targets + 1], vec![0i128; nodes + 1]);
    let mut row_of = vec![0usize; nodes + 1]; // 1-based rows, 0 is free
    for row in 1..=targets {
        let mut least = vec![i128::MAX; nodes + 1];
        let mut came_from = vec![0usize; nodes + 1];
        let mut used = vec![false; nodes + 1];
        row_of[0] = row;
        let mut column = 0;
        loop {
            used[column] = true;
            let at = row_of[column];
            let (mut delta, mut next) = (i128::MAX, 0);
            for c in 1..=nodes {
                if used[c] {
                    continue;
                }
                let reduced = -gain(at - 1, c - 1) - row_potential[at] - column_potential[c];
                if reduced < least[c] {
                    (least[c], came_from[c]) = (reduced, column);
                }
                if least[c] < delta {
                    (delta, next) = (least[c], c);
                }
            }
            for c in 0..=nodes {
                if used[c] {
                    row_potential[row_of[c]] += delta;
                    column_potential[c] -= delta;
                } else if least[c] < i128::MAX {
                    least[c] -= delta;
                }
            }
            column = next;
            if row_of[column] == 0 {
                break;
            }
        }
        while column != 0 {
            let before = came_from[column];
            row_of[column] = row_of[before];
            column = before;
        }
    }
    let mut node_of = vec![0; targets];
    for c in 1..=nodes {
        if row_of[c] > 0 {
            node_of[row_of[c] - 1] = c - 1;
        }
    }
    node_of
}
