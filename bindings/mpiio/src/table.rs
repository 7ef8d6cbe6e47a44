//! Handles of ours and what is behind them.
//!
//! The table grows without limit. A handle that is not in it is the host's affair, also one of ours that was
//! closed: the host has closed it too.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ffi::Word;
use crate::open_file::OpenFile;
use parking_lot::RwLock;

static TABLE: RwLock<Option<Files>> = RwLock::new(None);

type Files = HashMap<usize, Arc<OpenFile>, BuildHasherDefault<Spread>>;

/// Spreads addresses, which nobody chooses to collide; the usual hash would cost as much as a small access.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// How many there are, so that programs without files of ours pay one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The file behind a handle, if it is ours.
pub(crate) fn find(handle: Word) -> Option<Arc<OpenFile>> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let table = TABLE.read();
    table.as_ref()?.get(&handle.0).cloned()
}

/// Enters a file.
pub(crate) fn enter(file: Arc<OpenFile>) {
    let mut table = TABLE.write();
    table.get_or_insert_default().insert(file.handle.0, file);
    COUNT.fetch_add(1, Ordering::Release);
}

/// Takes a file out.
pub(crate) fn remove(handle: Word) -> Option<Arc<OpenFile>> {
    let mut table = TABLE.write();
    let removed = table.as_mut()?.remove(&handle.0)?;
    COUNT.fetch_sub(1, Ordering::Release);
    Some(removed)
}

/// All that are open.
pub(crate) fn all() -> Vec<Arc<OpenFile>> {
    let table = TABLE.read();
    table.iter().flat_map(HashMap::values).cloned().collect()
}
