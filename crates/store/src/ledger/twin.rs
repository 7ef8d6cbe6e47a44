//! A keeper inside the process: the twin of a process that keeps descriptors, for tests.
//!
//! It can be *copied* at any moment, memory and all. A copy is what a keeper would hold had the process been killed then, while the
//! original goes on.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, Mode, SeekFrom};

use super::{Keeping, LEDGER_NAME};

/// Keeps descriptors. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct KeeperTwin {
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Debug, Default)]
struct Shelf {
    kept: BTreeMap<String, OwnedFd>,
    /// It takes nothing any more.
    is_closed: bool,
}

impl Keeping for KeeperTwin {
    fn keep(&self, name: &str, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let mut shelf = self.shelf.lock();
        if shelf.is_closed {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        let kept = descriptor.try_clone_to_owned()?;
        shelf.kept.insert(name.to_owned(), kept);
        Ok(())
    }

    fn forget(&self, name: &str) {
        self.shelf.lock().kept.remove(name);
    }
}

impl KeeperTwin {
    /// With nothing yet.
    pub fn new() -> KeeperTwin {
        KeeperTwin::default()
    }

    /// As a trait object.
    pub fn keeping(&self) -> Arc<dyn Keeping> {
        Arc::new(self.clone())
    }

    /// Refuses everything from now on.
    pub fn close(&self) {
        self.shelf.lock().is_closed = true;
    }

    /// The names of what it holds.
    pub fn names(&self) -> Vec<String> {
        self.shelf.lock().kept.keys().cloned().collect()
    }

    /// A descriptor that it holds.
    pub fn descriptor(&self, name: &str) -> Option<OwnedFd> {
        let shelf = self.shelf.lock();
        let kept = shelf.kept.get(name)?;
        Some(kept.try_clone().expect("another descriptor"))
    }

    /// The ledger that it holds.
    ///
    /// # Panics
    /// If it holds none.
    pub fn ledger(&self) -> OwnedFd {
        self.descriptor(LEDGER_NAME).expect("a ledger is kept")
    }

    /// The segments that it holds.
    pub fn segments(&self) -> Vec<(u64, OwnedFd)> {
        let number = |name: &String| name.strip_prefix("segment-")?.parse().ok();
        let numbers: Vec<u64> = self.names().iter().filter_map(number).collect();
        let held = |id| Some((id, self.descriptor(&super::segment_name(id))?));
        numbers.into_iter().filter_map(held).collect()
    }

    /// One with copies of all memory, as it is at this moment.
    pub fn copy(&self) -> KeeperTwin {
        let shelf = self.shelf.lock();
        let copies = shelf.kept.iter().map(|(name, kept)| {
            let copy = copy_memory(kept.as_fd()).expect("a copy of kept memory");
            (name.clone(), copy)
        });
        let shelf = Shelf {
            kept: copies.collect(),
            is_closed: false,
        };
        KeeperTwin {
            shelf: Arc::new(Mutex::new(shelf)),
        }
    }
}

/// A memfd with the same bytes, length and seals.
pub fn copy_memory(source: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let copy = rustix::fs::memfd_create(c"pario-copy", flags)?;
    rustix::fs::fchmod(&copy, Mode::RUSR | Mode::WUSR)?;
    let len = rustix::fs::fstat(source)?.st_size as u64;
    rustix::fs::ftruncate(&copy, len)?;
    let mut bytes = vec![0; 1 << 20];
    let mut at = 0;
    // Holes are left out. `NXIO`: there is nothing behind.
    while let Ok(data) = rustix::fs::seek(source, SeekFrom::Data(at)) {
        let end = rustix::fs::seek(source, SeekFrom::Hole(data))?;
        at = data;
        while at < end {
            let most = (end - at).min(bytes.len() as u64) as usize;
            let count = rustix::io::pread(source, &mut bytes[..most], at)?;
            let mut part = &bytes[..count];
            while !part.is_empty() {
                let written = rustix::io::pwrite(&copy, part, at)?;
                at += written as u64;
                part = &part[written..];
            }
        }
    }
    let seals = rustix::fs::fcntl_get_seals(source)?;
    rustix::fs::fcntl_add_seals(&copy, seals)?;
    Ok(copy)
}
