//! How long a handle is used: accesses and non-blocking operations under way, and closing.
//!
//! Left to others: what a close tells servers and the metadata manager (`handle`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};

/// Non-blocking operations under way, counted.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    count: Mutex<u64>,
    is_none: Condvar,
}

impl Operations {
    pub(crate) fn begin(&self) {
        *self.count.lock() += 1;
    }

    pub(crate) fn end(&self) {
        *self.count.lock() -= 1;
        self.is_none.notify_all();
    }

    /// Waits until there are none.
    pub(crate) fn wait(&self) {
        let mut count = self.count.lock();
        while *count > 0 {
            self.is_none.wait(&mut count);
        }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// Held by accesses, and alone by a call that changes view or mode.
    pub(crate) gate: RwLock<()>,
    pub(crate) operations: Arc<Operations>,
    is_closed: AtomicBool,
}

impl Life {
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Closes it; whether it was before.
    pub(crate) fn close(&self) -> bool {
        self.is_closed.swap(true, Ordering::AcqRel)
    }
}
