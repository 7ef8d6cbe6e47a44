//! How a team accesses a file: which way, and how many blocks go into one packet where servers direct.
//!
//! One packet per block and rank is little work for memory and much for the network; more blocks per packet
//! cost memory at the server (two rounds of them) and make the first packet late. The number follows from
//! what a message and a byte cost here, as measured.

use crate::cost::{DirectedWay, Machine, Prediction, Way};

/// Another way than independent accesses has to be better by this to be taken: predictions are not exact.
const MARGIN: f64 = 0.9;
/// Ways whose times differ by less are equal, and the one with the fewest messages is taken.
pub const EQUAL: f64 = 1.02;

/// What the members of a team can do with the same bytes as independent accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// All members reach all servers directly: then nothing else is taken.
    pub go_directly: bool,
    /// Members can regroup bytes among themselves.
    pub regroup: bool,
    /// Servers can be told what all members want.
    pub are_directed: bool,
}

impl Abilities {
    /// One that does all accesses for itself.
    pub fn alone(go_directly: bool) -> Abilities {
        Abilities {
            go_directly,
            regroup: false,
            are_directed: false,
        }
    }

    /// Whether a way can be taken.
    pub fn allow(self, way: Way) -> bool {
        match way {
            Way::TwoPhase => self.regroup,
            Way::DiskDirected(DirectedWay::TwoPhase) => self.regroup && self.are_directed,
            Way::DiskDirected(_) => self.are_directed,
            _ => true,
        }
    }
}

/// The way that is taken: of those that are possible the fastest, if it is clearly faster than every member for itself.
/// `predictions` are in the order of [`alternatives`](crate::cost::alternatives).
pub fn pick(predictions: &[Prediction], can: Abilities) -> Option<&Prediction> {
    let direct = predictions.iter().find(|p| p.way == Way::Direct);
    if let Some(direct) = direct.filter(|_| can.go_directly) {
        return Some(direct);
    }
    let by_message = |p: &&Prediction| matches!(p.way, Way::Message | Way::Packed);
    let alone = predictions.iter().find(by_message);
    let limit = alone.map_or(f64::INFINITY, |p| p.seconds * MARGIN);
    let is_considered = |way: Way| match way {
        // Piece by piece is for comparison.
        Way::DiskDirected(DirectedWay::Piece) => false,
        Way::TwoPhase | Way::DiskDirected(_) => can.allow(way),
        _ => false,
    };
    let better = || {
        let considered = predictions.iter().filter(|p| is_considered(p.way));
        considered.filter(|p| p.seconds < limit)
    };
    let least = better().map(|p| p.seconds).fold(f64::INFINITY, f64::min);
    let fewest = better()
        .filter(|p| p.seconds <= least * EQUAL)
        .min_by_key(|p| p.messages);
    fewest.or(alone)
}

/// Messages of a round may cost this part of what its bytes cost.
const MESSAGES_PART: f64 = 1.0 / 16.0;
/// Bytes of a round at most: two of them are in memory at a time.
const ROUND_BYTES: u64 = 4 << 20;

/// Blocks of a round for so many ranks: the fewest with which messages cost little beside bytes.
///
/// ```
/// use advise::collective::blocks_per_round;
/// use advise::cost::Machine;
/// let usual = blocks_per_round(&Machine::HOST, 4, 65536);
/// let mut slow = Machine::HOST;
/// slow.near.message_s *= 4.0;
/// assert!(usual > 1 && blocks_per_round(&slow, 4, 65536) > usual);
/// assert_eq!(blocks_per_round(&slow, 1000, 65536), (4 << 20) / 65536);
/// ```
pub fn blocks_per_round(machine: &Machine, ranks: u64, block_bytes: u64) -> u64 {
    let link = &machine.near;
    let block_bytes = block_bytes.max(1);
    let messages_s = ranks.max(1) as f64 * link.message_s;
    let block_s = block_bytes as f64 * (link.byte_s + machine.pack.c);
    let wanted = (messages_s / (block_s * MESSAGES_PART)).ceil();
    let most = (ROUND_BYTES / block_bytes).max(1);
    (wanted.max(1.0) as u64).min(most)
}
