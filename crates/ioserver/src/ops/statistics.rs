//! `Statistics`: everything that a server has counted, and what it has at this moment.
//!
//! Names are stable: scripts and benchmarks read them.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::message::session::Counter;

use crate::files::Files;
use crate::kept::MemoryBirth;
use crate::owner::Owner;
use crate::statistics::counter;

/// Serves [`Statistics`](wire::message::session::Statistics).
pub(crate) fn statistics(files: &Files, owner: &Owner) -> Vec<Counter> {
    let (identity, cluster, storage) = (&files.identity, &files.cluster, &files.storage);
    let mut list = storage.statistics.list();
    let (connections, clients, views) = files.sessions.counts();
    let usage = storage.stored.store().usage();
    let (capacity, used) = storage.stored.room();
    let (most_lent, buffers) = storage.buffers.most_lent();
    let asked = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    list.extend([
        counter("server", identity.server.0),
        counter("incarnation", identity.incarnation()),
        counter("connections", connections as u64),
        counter("clients", clients as u64),
        counter("views", views as u64),
        counter("subfiles", storage.stored.count() as u64),
        counter("capacity_bytes", capacity),
        counter("used_bytes", used),
        counter("memory_bytes", usage.memory_bytes),
        counter("memory_limit_bytes", usage.memory_limit_bytes),
        counter("dirty_bytes", usage.dirty_bytes),
        counter("cache_hit_bytes", usage.cache.hit_bytes),
        counter("cache_miss_bytes", usage.cache.miss_bytes),
        counter("cache_evicted_bytes", usage.cache.evicted_bytes),
        counter("cache_returned_extents", usage.cache.returned),
        counter("ahead_bytes", usage.cache.ahead_bytes),
        counter("ahead_hit_bytes", usage.cache.ahead_hit_bytes),
        counter("ahead_wasted_bytes", usage.cache.ahead_wasted_bytes),
        counter("written_back_bytes", usage.cache.written_bytes),
        counter("rendezvous_bytes", storage.rendezvous_bytes),
        counter("message_bytes", storage.message_bytes),
        counter("buffer_bytes", storage.buffers.buffer_bytes() as u64),
        counter("buffers", buffers as u64),
        counter("buffers_made_bytes", storage.buffers.made_bytes()),
        counter("buffers_lent", storage.buffers.lent() as u64),
        counter("buffers_lent_most", most_lent as u64),
        counter("requests_to_servers", asked(&cluster.peers.asked)),
        counter("requests_to_manager", asked(&cluster.manager.asked)),
    ]);
    list.extend(storage.stored.memory.statistics());
    if let Some(kept) = &storage.kept {
        list.extend([
            counter("memory_is_kept", u64::from(kept.is_safe())),
            counter(
                "memory_was_adopted",
                u64::from(kept.birth() == MemoryBirth::Adopted),
            ),
            counter(
                "memory_was_given_up",
                u64::from(kept.birth() == MemoryBirth::GivenUp),
            ),
        ]);
    }
    if storage.lacks_keeper {
        list.push(counter("memory_lacks_keeper", 1));
    }
    let (disks, failed) = storage.stored.disks();
    if disks > 0 {
        list.push(counter("writes_behind", u64::from(!storage.write_through)));
        let missing = storage.stored.missing().len() as u64;
        list.extend([
            counter("disks", disks),
            counter("disks_failed", failed),
            counter("disks_missing", missing),
            counter("disks_direct", storage.stored.direct_disks()),
        ]);
    }
    list.extend(files.direct.statistics());
    list.extend(owner.statistics());
    list
}
