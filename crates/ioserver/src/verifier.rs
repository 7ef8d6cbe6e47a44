//! Verifiers: what bytes live and die with between their write and their sync.
//!
//! A write is answered when its bytes are in the page cache of the host (a disk server that writes through) or in the memory of
//! the server. Either may be lost before a sync, and the server comes back under its number with older bytes. So every
//! answer to a write carries a number that changes when such bytes are lost, and a sync answers with the numbers of
//! now; the client compares (section 4.8 of RFC 7530 does the same with its write verifier).
//!
//! | bytes are in | the number changes with |
//! |---|---|
//! | the page cache | the boot of the host, and a start after one in which a sync [failed](crate::failed_syncs) |
//! | the memory of the server, also if it has disks and writes back later | the boot, and the memory life: that of the memory that a [keeper](crate::kept) keeps, and a start with it after one in which a sync failed; or the start of the server without a keeper. A server on disks that ended in order and had everything written back hands its life on to the next start |
//!
//! A host without a boot id cannot say that it kept anything: both are of the start then.

use std::hash::{BuildHasher, Hasher, RandomState};

use identity::boot;
use wire::message::file::Verifiers;

use crate::failed_syncs::FailedBefore;

/// What bytes in the memory of this start live with. `memory_life` is that of memory that a keeper keeps, or that an earlier start has brought
/// to the disks when it ended; without one memory lives as long as this process.
pub(crate) fn life_of_this_start(failed: FailedBefore, memory_life: Option<u64>) -> u64 {
    // Seeded by the system for every process and every instance.
    let random = || RandomState::new().build_hasher().finish();
    match (memory_life, failed.with_memory) {
        (None, _) => random(),
        (Some(life), 0) => life,
        // What had left the memory for the disks when a sync failed may have left the page cache too.
        (Some(life), failed) => number(&[&life.to_le_bytes(), b" failed ", &failed.to_le_bytes()]),
    }
}

/// The verifiers of this start.
pub(crate) fn of_this_start(failed: FailedBefore, life: u64) -> Verifiers {
    of(&boot(), failed.noted, life)
}

fn of(boot: &str, failed_syncs: Option<u64>, start: u64) -> Verifiers {
    let life = number(&[boot.as_bytes(), &start.to_le_bytes()]);
    let kept = match (boot.is_empty(), failed_syncs) {
        (false, Some(0)) => number(&[boot.as_bytes()]),
        (false, Some(count)) => number(&[boot.as_bytes(), b" failed ", &count.to_le_bytes()]),
        _ => life,
    };
    Verifiers { kept, life }
}

/// A number of bytes that is equal in every build and never 0 (FNV-1a).
fn number(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_cache_survives_a_start_and_nothing_survives_a_boot() {
        let first = of("boot a", Some(0), 1);
        let again = of("boot a", Some(0), 2);
        let rebooted = of("boot b", Some(0), 3);
        assert!(again.keep(first.kept) && !again.keep(first.life));
        assert!(!rebooted.keep(first.kept) && !rebooted.keep(first.life));
        assert!(first.keep(first.kept) && first.keep(first.life) && !first.keep(0));
    }

    #[test]
    fn page_cache_does_not_survive_a_start_after_a_failed_sync() {
        let first = of("boot a", Some(0), 1);
        let after = of("boot a", Some(1), 2);
        let unknown = of("boot a", None, 3);
        assert!(!after.keep(first.kept) && of("boot a", Some(1), 4).keep(after.kept));
        assert!(!unknown.keep(first.kept) && !unknown.keep(after.kept));
        assert!(!of("boot a", None, 5).keep(unknown.kept));
    }

    #[test]
    fn host_without_a_boot_id_keeps_nothing_over_a_start() {
        let (first, again) = (of("", Some(0), 1), of("", Some(0), 2));
        assert!(first.keep(first.kept) && !again.keep(first.kept));
        let failed = |with_memory| FailedBefore {
            noted: Some(0),
            with_memory,
        };
        let start = |memory_life, count| {
            let life = life_of_this_start(failed(count), memory_life);
            of_this_start(failed(count), life)
        };
        let (one, other) = (start(None, 0), start(None, 0));
        assert_ne!(one.life, other.life);
        assert_eq!(one.kept == other.kept, !boot().is_empty());
        let adopted = |life, count| start(Some(life), count).life;
        assert_eq!(adopted(7, 0), adopted(7, 0));
        assert_ne!(adopted(7, 0), adopted(8, 0));
        assert_eq!(adopted(7, 1), adopted(7, 1));
        assert_ne!(adopted(7, 1), adopted(7, 0));
        assert_ne!(adopted(7, 1), adopted(7, 2));
    }
}
