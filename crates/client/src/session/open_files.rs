//! What the open files of a client have in common, beside its connections: which they are, threads for their operations, the
//! memory that servers share with them.
//!
//! Left to others: connections and questions (`session`), single files (`file`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use wire::message::mapping::BuddyIs;

use crate::access::direct::Sharing;
use crate::error::Trouble;
use crate::file::handle::Handle;
use crate::file::nonblocking;
use crate::profile::calibration::Calibrated;
use crate::transport::jobs::Jobs;
use crate::transport::pipe::Pipe;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct OpenFiles {
    /// Files that are open, so that they can be opened again.
    pub(crate) handles: Mutex<Vec<Weak<Handle>>>,
    /// Whether any handle ever had a buffer for what is read ahead.
    has_ahead: AtomicBool,
    /// Whether any handle ever collected writes.
    has_behind: AtomicBool,
    /// Held while a shared pointer or the end of a file is asked for: these questions carry numbers
    /// that have to arrive in order.
    pub(crate) ordered: Mutex<()>,
    /// How many handles take part in a shared pointer, by file and group.
    pub(crate) groups: Mutex<HashMap<(u64, u64), u64>>,
    /// Threads for non-blocking operations.
    pub(crate) workers: Jobs<'static>,
    /// Servers that share memory with this client.
    pub(crate) sharing: Sharing,
    /// The server to begin with, once it was asked for.
    pub(crate) buddy: Mutex<Option<BuddyIs>>,
    /// What things cost from here.
    pub(crate) calibrated: Calibrated,
}

impl Default for OpenFiles {
    fn default() -> OpenFiles {
        OpenFiles {
            handles: Mutex::default(),
            has_ahead: AtomicBool::new(false),
            has_behind: AtomicBool::new(false),
            ordered: Mutex::default(),
            groups: Mutex::default(),
            workers: nonblocking::workers(),
            sharing: Sharing::default(),
            buddy: Mutex::default(),
            calibrated: Calibrated::default(),
        }
    }
}

impl OpenFiles {
    /// Opens all files again at a metadata manager that was restarted.
    pub(crate) fn reopen(&self, manager: &mut Pipe) -> Result<(), Trouble> {
        let open = |files: &[Weak<Handle>]| files.iter().filter_map(Weak::upgrade).collect();
        let files: Vec<Arc<Handle>> = open(&self.handles.lock());
        files.iter().try_for_each(|file| file.reopen(manager))
    }

    /// Whether another handle of the same file is open.
    pub(crate) fn has_another(&self, handle: &Handle) -> bool {
        // The last of them may end with this list, outside of the lock.
        let open: Vec<Arc<Handle>> = {
            let handles = self.handles.lock();
            handles.iter().filter_map(Weak::upgrade).collect()
        };
        open.iter().any(|other| {
            !std::ptr::eq(&**other, handle)
                && other.identity.file == handle.identity.file
                && !other.life.is_closed()
        })
    }

    pub(crate) fn has_ahead(&self) -> bool {
        self.has_ahead.load(Ordering::Relaxed)
    }

    pub(crate) fn has_behind(&self) -> bool {
        self.has_behind.load(Ordering::Relaxed)
    }

    pub(crate) fn uses_behind(&self) {
        self.has_behind.store(true, Ordering::Relaxed);
    }

    pub(crate) fn uses_ahead(&self) {
        self.has_ahead.store(true, Ordering::Relaxed);
    }
}
