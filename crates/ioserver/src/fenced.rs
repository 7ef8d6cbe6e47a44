//! Clients that were declared dead here, for ever, in bounded memory.
//!
//! Numbers of clients ascend and are never given out twice, and sooner or later nearly all of them are dead, so they
//! are kept as ranges. Where there are too many ranges the oldest two become one: a client in between, older than
//! tens of thousands that have died since, counts as dead too. It hears so and connects as a new one; no client that was
//! fenced is ever let in.

use std::collections::BTreeMap;

use wire::ClientId;

/// Ranges that are kept.
const MOST: usize = 1 << 16;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct FencedClients {
    /// By first number, one past the last.
    ranges: BTreeMap<u64, u64>,
}

impl FencedClients {
    /// Whether a client is one of them.
    pub(crate) fn contains(&self, client: ClientId) -> bool {
        let before = self.ranges.range(..=client.0).next_back();
        before.is_some_and(|(_, end)| client.0 < *end)
    }

    /// One more; whether it is new.
    pub(crate) fn insert(&mut self, client: ClientId) -> bool {
        if self.contains(client) {
            return false;
        }
        let (mut start, mut end) = (client.0, client.0.saturating_add(1));
        if let Some(behind) = self.ranges.remove(&end) {
            end = behind;
        }
        let before = self.ranges.range(..start).next_back();
        if let Some((&first, _)) = before.filter(|(_, last)| **last == start) {
            start = first;
        }
        self.ranges.insert(start, end);
        while self.ranges.len() > MOST {
            let (first, _) = self.ranges.pop_first().expect("there are many");
            let (_, end) = self.ranges.pop_first().expect("there are many");
            self.ranges.insert(first, end);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dead_stay_dead_in_bounded_memory() {
        let mut fenced = FencedClients::default();
        for id in [5, 7, 6, 5, 9] {
            fenced.insert(ClientId(id));
        }
        assert_eq!(fenced.ranges, [(5, 8), (9, 10)].into());
        let dead = |id| fenced.contains(ClientId(id));
        assert!(!dead(4) && dead(5) && dead(7) && !dead(8) && dead(9) && !dead(10));
        let many = 2 * MOST as u64;
        for id in 0..many {
            fenced.insert(ClientId(100 + 2 * id));
        }
        assert!(fenced.ranges.len() <= MOST);
        assert!((0..many).all(|id| fenced.contains(ClientId(100 + 2 * id))));
        // Those who came late are told apart.
        assert!(!fenced.contains(ClientId(101 + 2 * (many - 2))));
        assert!(fenced.contains(ClientId(5)));
    }
}
