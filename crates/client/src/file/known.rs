//! What a handle has last heard of its file: layout state and size.
//!
//! Invariants
//! - The size known here is never above the file's in the same epoch; a caller that needs more asks the owner.
//! - The layout state is a hint: servers say when it is old, before they serve anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use wire::LayoutState;
use wire::message::catalogue::OpenAnswer;
use wire::message::file::SizeIs;

/// Answers of servers with a newer layout state between two questions for it, by message.
const NEWER_PER_QUESTION: u64 = 16;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct KnownState {
    state: Mutex<Arc<LayoutState>>,
    /// Answers of servers that had a newer layout state.
    newer: AtomicU64,
    size: Mutex<SizeIs>,
    /// Whether the views of its first opening are known to be its layout.
    pub(crate) is_by_views: AtomicBool,
}

impl KnownState {
    pub(crate) fn new(opened: OpenAnswer) -> KnownState {
        let attributes = &opened.attributes;
        let size = SizeIs {
            size: attributes.size,
            epoch: attributes.epoch,
        };
        KnownState {
            state: Mutex::new(Arc::new(opened.layout)),
            newer: AtomicU64::new(0),
            size: Mutex::new(size),
            is_by_views: AtomicBool::new(false),
        }
    }

    pub(crate) fn state(&self) -> Arc<LayoutState> {
        self.state.lock().clone()
    }

    /// Takes note of the layout state; whether it is newer than the one known.
    pub(crate) fn take_state(&self, state: LayoutState) -> bool {
        let mut known = self.state.lock();
        let is_newer = state.step > known.step;
        // Of the same step it says where a server is that was started again.
        if is_newer || state.step == known.step && **known != state {
            *known = Arc::new(state);
        }
        is_newer
    }

    /// A server has a newer layout state; whether so many have said so that it is asked for.
    pub(crate) fn is_time_to_ask(&self) -> bool {
        let count = self.newer.fetch_add(1, Ordering::Relaxed);
        count.is_multiple_of(NEWER_PER_QUESTION)
    }

    pub(crate) fn size(&self) -> SizeIs {
        self.size.lock().clone()
    }

    /// Takes what the owner says.
    pub(crate) fn heard_size(&self, heard: SizeIs) -> SizeIs {
        let mut known = self.size.lock();
        if heard.epoch > known.epoch || (heard.epoch == known.epoch && heard.size > known.size) {
            *known = heard;
        }
        known.clone()
    }

    /// A write of this epoch has ended here, and the owner knows.
    pub(crate) fn grown(&self, epoch: u64, end: u64) {
        let mut known = self.size.lock();
        if known.epoch == epoch {
            known.size = known.size.max(end);
        }
    }
}
