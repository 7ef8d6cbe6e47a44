//! What hints say about a handle, ready for use: limits of messages, strategy, whether accesses go directly and writes into data files.
//!
//! Left to others: which hints count (`hints`), what follows from a change (`handle`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::collective::strategy::Strategy;
use crate::hints::handle_hints::HandleHints;
use crate::hints::{Hints, is_on};
use crate::session::connect::ConnectOptions;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Settings {
    /// The hints that count.
    pub(crate) hints: Mutex<Hints>,
    /// All hints.
    pub(crate) heard: Mutex<HandleHints>,
    /// `message_bytes` and `rendezvous_bytes` plus one of the hints; 0 is not given.
    limits: (AtomicU64, AtomicU64),
    is_direct: AtomicBool,
    is_sieving: AtomicBool,
    writes_through: AtomicBool,
    /// What the connection asks for, where hints do not.
    general: Strategy,
}

impl Settings {
    pub(crate) fn new(options: &ConnectOptions, heard: HandleHints) -> Settings {
        Settings {
            hints: Mutex::default(),
            heard: Mutex::new(heard),
            limits: Default::default(),
            is_direct: AtomicBool::new(options.direct),
            is_sieving: AtomicBool::new(options.strategy == Strategy::Sieving),
            writes_through: AtomicBool::default(),
            general: options.strategy,
        }
    }

    /// Takes hints; those that count from now on.
    pub(crate) fn take(&self, hints: &Hints, options: &ConnectOptions) -> Hints {
        let counting = self.heard.lock().take(hints);
        let mut kept = self.hints.lock();
        *kept = counting;
        let message = kept.number("message_bytes").unwrap_or(0);
        let rendezvous = kept
            .number("rendezvous_bytes")
            .map_or(0, |n| n.saturating_add(1));
        self.limits.0.store(message, Ordering::Relaxed);
        self.limits.1.store(rendezvous, Ordering::Relaxed);
        if let Some(is_on) = kept.get("direct").and_then(is_on) {
            let is_direct = is_on && options.direct;
            self.is_direct.store(is_direct, Ordering::Relaxed);
        }
        let is_through = kept.get("write_through").and_then(is_on) == Some(true);
        self.writes_through.store(is_through, Ordering::Relaxed);
        if let Some(strategy) = kept.get("strategy").and_then(Strategy::of) {
            let is_sieving = strategy == Strategy::Sieving;
            self.is_sieving.store(is_sieving, Ordering::Relaxed);
        }
        kept.clone()
    }

    /// The strategy that was asked for, if any was. A handle that writes through makes its collective accesses alone: what servers direct
    /// is answered as they answer others.
    pub(crate) fn forced(&self) -> Option<Strategy> {
        if self.writes_through() {
            return Some(Strategy::Views);
        }
        let hint = self.hints.lock().get("strategy").and_then(Strategy::of);
        hint.or(Some(self.general).filter(|strategy| *strategy != Strategy::default()))
    }

    /// Whether accesses may go directly to servers of this host.
    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct.load(Ordering::Relaxed)
    }

    /// Whether the strategy is [`Strategy::Sieving`].
    pub(crate) fn is_sieving(&self) -> bool {
        self.is_sieving.load(Ordering::Relaxed)
    }

    /// Whether a write returns when its bytes are in the data files of servers with disks, whatever these do otherwise.
    pub(crate) fn writes_through(&self) -> bool {
        self.writes_through.load(Ordering::Relaxed)
    }

    /// Bytes of a message, 0 if the server's own count, and bytes from which on a write is announced.
    pub(crate) fn limits(&self) -> (u64, Option<u64>) {
        let rendezvous = self.limits.1.load(Ordering::Relaxed);
        let message = self.limits.0.load(Ordering::Relaxed);
        (message, rendezvous.checked_sub(1))
    }
}
