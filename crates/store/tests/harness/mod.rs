//! Stores as the suite wants them: fresh, and able to die and come back.
//!
//! Directories of real files are temporary and removed with the harness.

#![allow(dead_code)] // each test file uses some of it

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use store::conformance::Harness;
use store::disk::twin::{Loss, Twin};
use store::{Directory, DiskOptions, DiskSpec, DiskStore, MemoryStore, Pool, PoolOptions, Store};

/// A pool with small segments, so that tests cross their borders.
pub(crate) fn pool(limit_bytes: u64) -> Pool {
    Pool::new(PoolOptions {
        limit_bytes,
        keep_warm_bytes: limit_bytes / 4,
        segment_bytes: 8 << 20,
        segments: 64,
        ..PoolOptions::for_limit(limit_bytes)
    })
}

pub(crate) struct MemoryHarness(MemoryStore);

impl MemoryHarness {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        MemoryHarness(MemoryStore::new(pool(limit_bytes)))
    }
}

impl Harness for MemoryHarness {
    fn store(&self) -> &dyn Store {
        &self.0
    }
}

/// A temporary directory.
pub(crate) struct Temporary(pub PathBuf);

impl Temporary {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pario-store-{}-{n}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A disk store on real files. A restart drops it, which closes nothing: as if it was killed.
pub(crate) struct RealHarness {
    store: Option<DiskStore>,
    limit_bytes: u64,
    directory: Temporary,
}

impl RealHarness {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        let directory = Temporary::new();
        let mut harness = RealHarness {
            store: None,
            limit_bytes,
            directory,
        };
        harness.start();
        harness
    }

    fn start(&mut self) {
        let disks = ["a", "b"]
            .map(|name| DiskSpec::new(Directory::new(self.directory.0.join(name)).unwrap()));
        let options = DiskOptions { open_files: 2 };
        let store = DiskStore::new(pool(self.limit_bytes), disks.into(), options);
        self.store = Some(store.unwrap());
    }
}

impl Harness for RealHarness {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        self.start();
    }

    fn evict(&self) {
        self.store.as_ref().unwrap().evict();
    }
}

/// A disk store on a twin.
pub(crate) struct TwinHarness {
    pub twin: Twin,
    store: Option<DiskStore>,
    limit_bytes: u64,
}

impl TwinHarness {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        let twin = Twin::new();
        let store = Some(twin_store(&twin, limit_bytes));
        TwinHarness {
            twin,
            store,
            limit_bytes,
        }
    }
}

pub(crate) fn twin_store(twin: &Twin, limit_bytes: u64) -> DiskStore {
    try_twin_store(twin, limit_bytes).unwrap()
}

/// A store on a disk that may fail.
pub(crate) fn try_twin_store(twin: &Twin, limit_bytes: u64) -> store::Result<DiskStore> {
    let disks = vec![DiskSpec::new(twin.clone())];
    DiskStore::new(pool(limit_bytes), disks, DiskOptions::default())
}

impl Harness for TwinHarness {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        self.twin.restart(Loss::Nothing);
        self.store = Some(twin_store(&self.twin, self.limit_bytes));
    }

    fn evict(&self) {
        self.store.as_ref().unwrap().evict();
    }
}
