//! Room in memory: what goes when a subfile needs it.
//!
//! Clean extents go first, in the order of the cache's policy; dirty ones are written back by the thread that needs the
//! room. If everything is in use, the caller is told.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::held::{Backing, HeldSubfile, Target};
use super::store::Core;
use crate::error::Result;
use crate::policy::Key;

/// How often those who have mapped extents are asked to give some up, for one request for room.
const RECLAIMS: u32 = 64;
/// How often write-backs of others are waited for, for one request for room.
const WAITS: u32 = 64;
/// One part in so many of memory is for what was read ahead, whatever else is in it.
const AHEAD_SHARE: u64 = 8;

impl Core {
    /// Frees memory: clean extents, oldest first; then dirty ones after writing them back. Says
    /// how many bytes. `own` is what the caller holds and nobody else can lock; what lies in `keep` of a
    /// subfile is what he makes room for.
    pub(crate) fn make_room(
        &self,
        wanted_bytes: u64,
        keep: (&HeldSubfile, &Range<u64>),
        mut own: Option<(&Arc<HeldSubfile>, &mut Backing)>,
    ) -> Result<u64> {
        if wanted_bytes == 0 {
            return Ok(0);
        }
        // In small batches: what is evicted without need may be wanted next.
        let limit = self.pool.options().limit_bytes;
        let wanted_bytes = wanted_bytes.min(limit / 4);
        let goal = wanted_bytes.max(limit / 128);
        let freed = self.evict_some(goal, keep);
        if freed >= wanted_bytes {
            return Ok(freed);
        }
        // An extent is free once all its blocks are written, so one round may free nothing.
        let mut reclaims = RECLAIMS;
        let mut waits = WAITS;
        loop {
            let (written, result) = self.write_back_some(goal, &mut own);
            let before = *self.writing.lock();
            let freed = freed + self.evict_some(goal, keep);
            if freed > 0 {
                return Ok(freed);
            }
            if written == 0 {
                // What others write back can go neither before nor twice, and may be all that can.
                if waits > 0 && self.writing.wait(before) {
                    waits -= 1;
                    continue;
                }
                let reclaim = self.reclaim.get().filter(|_| reclaims > 0);
                if !reclaim.is_some_and(|reclaim| reclaim()) {
                    return result.map(|()| 0);
                }
                reclaims -= 1;
            }
        }
    }

    /// Writes back about `goal` bytes of whatever can be locked; says how many.
    fn write_back_some(
        &self,
        goal: u64,
        own: &mut Option<(&Arc<HeldSubfile>, &mut Backing)>,
    ) -> (u64, Result<()>) {
        let mut written = 0;
        let mut result = Ok(());
        for held in self.open_subfiles() {
            if written >= goal {
                break;
            }
            let done = match own {
                Some((mine, backing)) if Arc::ptr_eq(mine, &held) => {
                    held.write_back(backing, goal - written, Target::System)
                }
                _ => match held.try_backing() {
                    Some(mut backing) => {
                        held.write_back(&mut backing, goal - written, Target::System)
                    }
                    None => continue,
                },
            };
            match done {
                Ok(bytes) => written += bytes,
                Err(e) => result = Err(e),
            }
        }
        (written, result)
    }

    /// Frees about `goal` bytes of what should go first and can.
    fn evict_some(&self, goal: u64, keep: (&HeldSubfile, &Range<u64>)) -> u64 {
        let number = keep.0.lock().table.number();
        let can_go = |key: &Key| Some(key.0) != number || !keep.1.contains(&key.1);
        let mut first = self.cache.first(goal.saturating_mul(2));
        first.retain(can_go);
        let freed = self.evict(&first, goal, HeldSubfile::evict);
        if freed >= goal {
            return freed;
        }
        // What stands first is in use or dirty.
        let mut order = self.cache.order();
        order.retain(can_go);
        freed + self.evict(&order, goal - freed, HeldSubfile::evict)
    }

    /// Frees room for what nobody has asked for yet: from what passes through memory, and not from what waits itself. What
    /// is used again and again is left alone, but for so much that one part in [`AHEAD_SHARE`] of memory can wait: where
    /// little passes through, nothing could be read ahead otherwise.
    pub(crate) fn make_room_ahead(&self, wanted_bytes: u64) -> u64 {
        let passing = self.cache.passing();
        let freed = self.evict(&passing, wanted_bytes, HeldSubfile::evict_used);
        let waiting = self.cache.usage().waiting_bytes();
        if freed >= wanted_bytes || waiting >= self.pool.usage().limit_bytes / AHEAD_SHARE {
            return freed;
        }
        let order = self.cache.order();
        freed + self.evict(&order, wanted_bytes - freed, HeldSubfile::evict_used)
    }

    pub(super) fn evict(
        &self,
        order: &[Key],
        goal: u64,
        evict: impl Fn(&HeldSubfile, u64) -> u64,
    ) -> u64 {
        if order.is_empty() {
            return 0;
        }
        let open: HashMap<u64, Arc<HeldSubfile>> = self
            .open_subfiles()
            .into_iter()
            .filter_map(|held| {
                let number = held.lock().table.number()?;
                Some((number, held))
            })
            .collect();
        let mut freed = 0;
        for (number, start) in order {
            if freed >= goal {
                break;
            }
            if let Some(held) = open.get(number) {
                freed += evict(held, *start);
            }
        }
        freed
    }
}
