//! How many blocks go into one packet of a collective access that servers direct.
//!
//! One packet per block and rank is little work for memory and much for the network; more blocks per packet
//! cost memory at the server (two rounds of them) and make the first packet late. The number follows from
//! what a message and a byte cost here, as measured.

use crate::cost::Machine;

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
