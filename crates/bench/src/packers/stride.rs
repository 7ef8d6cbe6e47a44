//! Owns where packets go in a buffer: the cache-conflict-free stride of section 3.8 of the
//! redistribution source (theorem 4.1 and equation 4.1 there).
//!
//! Packets that are filled in turn at equal distances fight for the same cache sets if the
//! distance divides the cache; a distance whose multiples all fall on different blocks of the
//! cache avoids that:
//!
//! ```text
//!   LCM(stride, cache) >= stride * packets      (both in cache blocks)
//! ```

use kernels::{LINE, cache_sizes};

/// A cache as the rule sees it: a number of blocks of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheLevel {
    /// Bytes per way times ways: how many bytes apart two addresses are that compete.
    pub(crate) bytes: u64,
    /// Bytes per block.
    pub(crate) block: u64,
}

impl CacheLevel {
    /// The second cache of this machine.
    pub(crate) fn second() -> CacheLevel {
        CacheLevel {
            bytes: cache_sizes().l2 as u64,
            block: LINE as u64,
        }
    }

    fn blocks(self) -> u64 {
        (self.bytes / self.block).max(1)
    }
}

/// A distance between packet starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketStride {
    /// Bytes from one packet start to the next, at least the packet.
    pub(crate) bytes: u64,
    /// Block size that the rule reckoned with (equation 4.1).
    pub(crate) logical_block: u64,
}

/// Equation 4.1: copies of `copy_bytes` that span blocks count as blocks of
/// `2^ceil(log2(ceil(n / b) + 1)) * b` bytes; copies within a block count as blocks.
pub(crate) fn logical_block(copy_bytes: u64, block: u64) -> u64 {
    if copy_bytes <= block {
        return block;
    }
    (copy_bytes.div_ceil(block) + 1).next_power_of_two() * block
}

/// The smallest stride, in whole blocks, that holds a packet of `packet_bytes` and lets the
/// starts of `packets` packets fall on different blocks of the cache, for copies of
/// `copy_bytes` each. Where the cache has fewer (logical) blocks than there are packets no such
/// stride exists and extra misses are unavoidable; then the smallest block is used as if the
/// cache were large enough.
pub(crate) fn cache_optimal_stride(
    packet_bytes: u64,
    packets: u64,
    copy_bytes: u64,
    cache: CacheLevel,
) -> PacketStride {
    let mut block = logical_block(copy_bytes, cache.block);
    while block > cache.block && cache.bytes / block < packets {
        block /= 2;
    }
    let blocks = CacheLevel { block, ..cache }.blocks();
    let reachable = packets.min(blocks);
    let mut stride = packet_bytes.div_ceil(block).max(1);
    // LCM(s, B) >= s * P  <=>  B / gcd(s, B) >= P: at most a few steps, since any s prime to B
    // will do.
    while blocks / gcd(stride, blocks) < reachable {
        stride += 1;
    }
    PacketStride {
        bytes: stride * block,
        logical_block: block,
    }
}

pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_and_blocks_are_those_of_the_source() {
        let blocks = [8, 64, 65, 256].map(|copy| logical_block(copy, 64));
        assert_eq!(blocks, [64, 64, 256, 512]);
        // 8192 blocks, 64 packets of 512 blocks: 513 blocks apart.
        let cache = CacheLevel {
            bytes: 8192 * 32,
            block: 32,
        };
        assert_eq!(cache_optimal_stride(512 * 32, 64, 8, cache).bytes, 513 * 32);
    }
}
