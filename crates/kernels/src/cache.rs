//! Owns what the crate knows about the memory hierarchy of the machine it runs on: cache sizes
//! and the line, read once from the processor. Everything else takes them from here.
//!
//! A machine that does not answer is given 32 KiB, 512 KiB and 8 MiB with 64-byte lines. The
//! sizes choose between algorithms that are all correct; they never affect results.

use std::sync::OnceLock;

/// Bytes per cache line assumed throughout; true of every processor the crate is tuned for.
pub const LINE: usize = 64;

/// Sizes of the data caches, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// First level, per core.
    pub l1: usize,
    /// Second level, per core.
    pub l2: usize,
    /// Last level, usually shared.
    pub l3: usize,
}

const UNKNOWN: CacheSizes = CacheSizes {
    l1: 32 << 10,
    l2: 512 << 10,
    l3: 8 << 20,
};

/// The caches of this machine.
pub fn cache_sizes() -> CacheSizes {
    static SIZES: OnceLock<CacheSizes> = OnceLock::new();
    *SIZES.get_or_init(detect)
}

/// Jobs that write at least this many bytes stream past the caches: three eighths of the last
/// level. Repeated copies of 8000-byte runs on a machine with 32 MiB, streamed and not, in GB/s:
/// 28 and 35 at 6 MiB, 28 and 24 at 10, 27 and 16 at 14, 27 and 14 at 16. The line is drawn above
/// where they cross, since whoever reads the target next finds it in the cache if not streamed.
pub(crate) fn streaming_threshold() -> usize {
    cache_sizes().l3 / 8 * 3
}

/// Whether a job that writes so many bytes does better past the caches.
pub fn writes_past(bytes: u64) -> bool {
    bytes >= streaming_threshold() as u64
}

#[cfg(target_arch = "x86_64")]
fn detect() -> CacheSizes {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // The intrinsics are unsafe in older toolchains and safe in newer ones.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the cpuid instruction; leaves beyond the reported
    // maximum are not read.
    let read = |leaf, sub| unsafe { __cpuid_count(leaf, sub) };
    #[allow(unused_unsafe)]
    // SAFETY: as above.
    let max = |leaf| unsafe { __cpuid(leaf) }.eax;
    // Deterministic cache parameters: leaf 4 on Intel, 0x8000_001d on AMD, same layout.
    let amd = max(0x8000_0000) >= 0x8000_001d && read(0x8000_0001, 0).ecx & (1 << 22) != 0;
    let leaf = if amd { 0x8000_001d } else { 4 };
    let mut sizes = CacheSizes {
        l1: 0,
        l2: 0,
        l3: 0,
    };
    if amd || max(0) >= 4 {
        for sub in 0..8 {
            let answer = read(leaf, sub);
            let kind = answer.eax & 31;
            if kind == 0 {
                break;
            }
            let ways = (answer.ebx >> 22) as usize + 1;
            let partitions = ((answer.ebx >> 12) & 0x3ff) as usize + 1;
            let line = (answer.ebx & 0xfff) as usize + 1;
            let sets = answer.ecx as usize + 1;
            let bytes = ways * partitions * line * sets;
            match ((answer.eax >> 5) & 7, kind) {
                (1, 1 | 3) => sizes.l1 = bytes,
                (2, 1 | 3) => sizes.l2 = bytes,
                (3, 1 | 3) => sizes.l3 = bytes,
                _ => {}
            }
        }
    }
    let or = |value, unknown| if value == 0 { unknown } else { value };
    CacheSizes {
        l1: or(sizes.l1, UNKNOWN.l1),
        l2: or(sizes.l2, UNKNOWN.l2),
        l3: or(sizes.l3, or(sizes.l2, UNKNOWN.l3)),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> CacheSizes {
    UNKNOWN
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_plausible_and_ordered() {
        let sizes = super::cache_sizes();
        assert!(sizes.l1 >= 8 << 10, "{sizes:?}");
        assert!(sizes.l1 <= sizes.l2 && sizes.l2 <= sizes.l3, "{sizes:?}");
    }
}
