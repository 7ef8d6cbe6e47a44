//! Direct access: the client side of memory that servers of this host share.
//!
//! ```text
//!  access  ->  parts per server  ->  are they mapped?  -- yes -->  claim, copy, end   (no message)
//!                                      | no
//!                                      +--> by message as always; then perhaps ask for maps
//! ```
//!
//! A server is *attached* once per session ([`attached`]); where bytes of a file are is kept per open
//! file ([`maps`]); an access copies straight between the user's memory and the extents ([`transfer`]);
//! short accesses that lie in one run find it in a small cache ([`quick`]).
//!
//! Invariants
//! - Nothing here can fail an access: whatever says no sends it the message way, which repairs
//!   layout, epoch and connections, and reports errors.
//! - No claim is held across a system call, a lock or a wait.
//! - An access that counts ended all its claims, and every server of it was alive afterwards.
//! - A warm access sends nothing and allocates nothing.
//!
//! Left to others: the memory and its protocol (the crate `direct`), the message way (`access`).

pub(crate) mod attached;
pub(crate) mod maps;
pub(crate) mod quick;
pub(crate) mod transfer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use wire::Place;

use crate::access::direct::attached::Attached;
use crate::session::Session;
use crate::session::lane::Lane;

/// What a session has counted about direct accesses. Short accesses that lie in one run are
/// counted, not timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectStatistics {
    /// Servers whose memory is shared at present.
    pub attached: u64,
    /// Reads that went directly.
    pub reads: u64,
    /// Writes that went directly.
    pub writes: u64,
    /// Bytes of those reads.
    pub read_bytes: u64,
    /// Bytes of those writes.
    pub written_bytes: u64,
    /// Times a server was asked where bytes are.
    pub maps_asked: u64,
    /// Claims that were taken back while bytes were copied.
    pub revoked: u64,
    /// Accesses that went by message although they might have gone directly: not mapped, no longer
    /// current, revoked, or no slot free.
    pub fallbacks: u64,
    /// Calls that mapped shared memory before it was read or stored into again. Mappings stay when files are closed.
    pub populate_calls: u64,
    /// Bytes of those reads and writes that moved without mapping their memory, since the server had none ready.
    pub unmapped_bytes: u64,
}

/// [`DirectStatistics`] while they are counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    reads: AtomicU64,
    writes: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    maps_asked: AtomicU64,
    revoked: AtomicU64,
    fallbacks: AtomicU64,
}

impl Counters {
    #[inline]
    pub(crate) fn read(&self, bytes: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn wrote(&self, bytes: u64) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn asked(&self) {
        self.maps_asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn revoked(&self) {
        self.revoked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn fell_back(&self) {
        self.fallbacks.fetch_add(1, Ordering::Relaxed);
    }
}

/// How the process of a server has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// What was in its memory is gone.
    WithMemory,
    /// A keeper has its memory.
    MemoryKept,
}

/// A server, as far as sharing its memory is concerned.
#[derive(Debug)]
enum Neighbour {
    On(Arc<Attached>),
    /// This start of it does not share, or sharing has failed.
    Off {
        incarnation: u64,
    },
    /// The kernel said that the process of this start has died.
    Died {
        incarnation: u64,
        /// Its memory may be there at its next start.
        is_kept: bool,
    },
}

/// What a session knows about servers that share memory.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// Few, so a list.
    servers: Mutex<Vec<(u64, Neighbour)>>,
    /// Held while a server is being attached.
    attaching: Mutex<()>,
    pub(crate) counters: Counters,
}

impl Sharing {
    pub(crate) fn statistics(&self) -> DirectStatistics {
        let c = &self.counters;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let servers = self.servers.lock();
        let is_on =
            |known: &&(u64, Neighbour)| matches!(&known.1, Neighbour::On(a) if a.is_alive());
        let touches = |known: &(u64, Neighbour)| match &known.1 {
            Neighbour::On(attached) => Some(attached.touches.counts()),
            _ => None,
        };
        let touches: Vec<_> = servers.iter().filter_map(touches).collect();
        DirectStatistics {
            populate_calls: touches.iter().map(|t| t.populate_calls).sum(),
            unmapped_bytes: touches.iter().map(|t| t.written_bytes + t.read_bytes).sum(),
            attached: servers.iter().filter(is_on).count() as u64,
            reads: of(&c.reads),
            writes: of(&c.writes),
            read_bytes: of(&c.read_bytes),
            written_bytes: of(&c.written_bytes),
            maps_asked: of(&c.maps_asked),
            revoked: of(&c.revoked),
            fallbacks: of(&c.fallbacks),
        }
    }

    /// Whether a server shares its memory.
    pub(crate) fn has_near(&self) -> bool {
        let servers = self.servers.lock();
        let is_near = |(_, known): &(u64, Neighbour)| matches!(known, Neighbour::On(_));
        servers.iter().any(is_near)
    }

    /// Whether any was asked to.
    pub(crate) fn has_tried(&self) -> bool {
        !self.servers.lock().is_empty()
    }

    /// What is known about this start of a server; what was known about another is dropped.
    fn known(&self, server: u64, incarnation: u64) -> Option<Option<Arc<Attached>>> {
        let mut servers = self.servers.lock();
        let at = servers.iter().position(|(s, _)| *s == server)?;
        match &servers[at].1 {
            Neighbour::On(a) if a.incarnation == incarnation && a.is_alive() => {
                Some(Some(a.clone()))
            }
            Neighbour::Off { incarnation: i } | Neighbour::Died { incarnation: i, .. }
                if *i == incarnation =>
            {
                Some(None)
            }
            Neighbour::On(a) if a.incarnation == incarnation => {
                let is_kept = a.table.is_kept();
                servers[at].1 = Neighbour::Died {
                    incarnation,
                    is_kept,
                };
                Some(None)
            }
            _ => {
                servers.swap_remove(at);
                None
            }
        }
    }

    /// Whether the process that was this start of a server is known to be dead, and its memory with it.
    pub(crate) fn has_died(&self, server: u64, incarnation: u64) -> bool {
        self.death(server, incarnation) == Some(Death::WithMemory)
    }

    /// How the process that was this start of a server has died, if it is known to be dead.
    fn death(&self, server: u64, incarnation: u64) -> Option<Death> {
        let servers = self.servers.lock();
        let (_, known) = servers.iter().find(|(s, _)| *s == server)?;
        let (start, is_kept) = match known {
            Neighbour::On(a) if !a.is_alive() => (a.incarnation, a.table.is_kept()),
            Neighbour::Died {
                incarnation,
                is_kept,
            } => (*incarnation, *is_kept),
            _ => return None,
        };
        (start == incarnation).then_some(match is_kept {
            true => Death::MemoryKept,
            false => Death::WithMemory,
        })
    }

    fn keep(&self, server: u64, known: Neighbour) {
        let mut servers = self.servers.lock();
        servers.retain(|(s, _)| *s != server);
        servers.push((server, known));
    }

    /// Gives up sharing with this start of a server.
    pub(crate) fn switch_off(&self, server: u64, incarnation: u64) {
        let known = match self.death(server, incarnation) {
            Some(death) => Neighbour::Died {
                incarnation,
                is_kept: death == Death::MemoryKept,
            },
            None => Neighbour::Off { incarnation },
        };
        self.keep(server, known);
    }
}

impl Session {
    /// The shared memory of a server that the lane is connected to; attached if need be. `None` if it
    /// shares none, or another thread attaches it right now.
    pub(crate) fn attached(&self, lane: &Lane, place: Place) -> Option<Arc<Attached>> {
        let pipe = &lane.servers[lane.find(place.server)?].1;
        let incarnation = pipe.welcome.incarnation;
        if let Some(known) = self.open_files.sharing.known(place.server, incarnation) {
            return known;
        }
        let _alone = self.open_files.sharing.attaching.try_lock()?;
        if let Some(known) = self.open_files.sharing.known(place.server, incarnation) {
            return known;
        }
        match Attached::attach(self, place.server, incarnation, &pipe.address) {
            Some(attached) => {
                let attached = Arc::new(attached);
                self.open_files
                    .sharing
                    .keep(place.server, Neighbour::On(attached.clone()));
                Some(attached)
            }
            None => {
                self.open_files
                    .sharing
                    .switch_off(place.server, incarnation);
                None
            }
        }
    }
}
