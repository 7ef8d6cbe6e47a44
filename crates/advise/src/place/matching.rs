//! Blocks matched with nodes of limited room: as many as can be at a node that accesses them.
//!
//! Augmenting paths, one block at a time; what is left over goes where there is room. O(blocks x edges) at worst.

use super::Accessors;

pub(super) struct Matching<'a> {
    accessors: &'a Accessors,
    room: &'a [usize],
    /// Blocks of each node.
    held: Vec<Vec<usize>>,
}

impl<'a> Matching<'a> {
    pub(super) fn new(accessors: &'a Accessors, room: &'a [usize]) -> Self {
        let mut matching = Matching {
            accessors,
            room,
            held: vec![Vec::new(); room.len()],
        };
        for block in 0..accessors.len() {
            let mut seen = vec![false; room.len()];
            matching.find_home(block, &mut seen);
        }
        matching
    }

    /// A home inside its set, others pushed along if need be.
    fn find_home(&mut self, block: usize, seen: &mut [bool]) -> bool {
        let nodes = self.room.len();
        let set = &self.accessors[block];
        for &node in set.iter().filter(|n| **n < nodes) {
            if seen[node] {
                continue;
            }
            seen[node] = true;
            if self.held[node].len() < self.room[node] {
                self.held[node].push(block);
                return true;
            }
            for i in 0..self.held[node].len() {
                let other = self.held[node][i];
                if self.find_home(other, seen) {
                    self.held[node][i] = block;
                    return true;
                }
            }
        }
        false
    }

    /// The node of every block; there is room for all.
    pub(super) fn place(mut self) -> Vec<usize> {
        let mut place = vec![usize::MAX; self.accessors.len()];
        for (node, blocks) in self.held.iter().enumerate() {
            for block in blocks {
                place[*block] = node;
            }
        }
        for (block, node) in place
            .iter_mut()
            .enumerate()
            .filter(|(_, n)| **n == usize::MAX)
        {
            // Evenly: where most room is left.
            let left = |n: &usize| self.room[*n] - self.held[*n].len();
            let to = (0..self.room.len()).max_by_key(|n| (left(n), std::cmp::Reverse(*n)));
            *node = to.unwrap_or(0);
            self.held[*node].push(block);
        }
        place
    }
}
