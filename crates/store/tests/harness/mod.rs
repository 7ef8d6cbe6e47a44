//! Stores as the suite wants them: fresh, and able to die and come back.
//!
//! Directories of real files are temporary and removed with the harness.

#![allow(dead_code)] // each test file uses some of it

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use store::conformance::Harness;
use store::disk::twin::{Loss, Twin};
use store::ledger::twin::KeeperTwin;
use store::{
    Directory, DiskOptions, DiskSpec, DiskStore, Ledger, MemoryStore, Origin, Pool, PoolOptions,
    Store,
};

/// A pool with small segments, so that tests cross their borders.
pub(crate) fn pool(limit_bytes: u64) -> Pool {
    Pool::new(pool_options(limit_bytes))
}

pub(crate) fn pool_options(limit_bytes: u64) -> PoolOptions {
    PoolOptions {
        limit_bytes,
        keep_warm_bytes: limit_bytes / 4,
        segment_bytes: 8 << 20,
        segments: 64,
        ..PoolOptions::for_limit(limit_bytes)
    }
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

/// A memory store with a ledger. A kill leaves everything as it is, and adopts a copy of it.
pub(crate) struct KeptHarness {
    store: MemoryStore,
    keeper: KeeperTwin,
    limit_bytes: u64,
    /// Kills so far.
    pub kills: Arc<AtomicU64>,
}

const STAMP: &[u8] = b"conformance";

impl KeptHarness {
    pub(crate) fn new(limit_bytes: u64, kills: &Arc<AtomicU64>) -> Self {
        let keeper = KeeperTwin::new();
        let ledger = Ledger::new(keeper.keeping(), STAMP).unwrap();
        let pool = Pool::with_ledger(pool_options(limit_bytes), ledger.clone());
        KeptHarness {
            store: MemoryStore::with_ledger(pool, ledger),
            keeper,
            limit_bytes,
            kills: Arc::clone(kills),
        }
    }
}

impl Harness for KeptHarness {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn kill(&mut self) -> bool {
        let keeper = self.keeper.copy();
        let ledger = Ledger::adopt(keeper.ledger(), keeper.keeping(), STAMP).unwrap();
        let options = pool_options(self.limit_bytes);
        let pool = Pool::adopt(options, ledger.clone(), keeper.segments()).unwrap();
        let used = self.store.usage().memory_bytes;
        self.store = MemoryStore::adopt(pool, ledger).unwrap();
        self.store.clear_ahead();
        self.keeper = keeper;
        assert_eq!(self.store.usage().memory_bytes, used);
        self.kills.fetch_add(1, Ordering::Relaxed);
        true
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
    /// What its directories are like.
    kind: fn(Directory) -> Directory,
    pub frees: bool,
}

impl RealHarness {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        RealHarness::of(limit_bytes, |directory| directory)
    }

    /// On directories of another kind.
    pub(crate) fn of(limit_bytes: u64, kind: fn(Directory) -> Directory) -> Self {
        let directory = Temporary::new();
        let mut harness = RealHarness {
            store: None,
            limit_bytes,
            directory,
            kind,
            frees: true,
        };
        harness.start();
        harness
    }

    fn start(&mut self) {
        let disks = ["a", "b"].map(|name| {
            let directory = Directory::new(self.directory.0.join(name)).unwrap();
            DiskSpec::new((self.kind)(directory))
        });
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

    fn frees(&self) -> bool {
        self.frees
    }

    fn reserves(&self) -> bool {
        self.frees
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

/// A disk store on a twin, with a ledger: a kill leaves what is not written back to the next process.
pub(crate) struct KeptTwinHarness {
    twin: Twin,
    keeper: KeeperTwin,
    store: Option<DiskStore>,
    limit_bytes: u64,
    /// Kills so far.
    pub kills: Arc<AtomicU64>,
}

impl KeptTwinHarness {
    pub(crate) fn new(limit_bytes: u64, kills: &Arc<AtomicU64>) -> Self {
        let keeper = KeeperTwin::new();
        let ledger = Ledger::new(keeper.keeping(), STAMP).unwrap();
        let pool = Pool::with_ledger(pool_options(limit_bytes), ledger.clone());
        let mut harness = KeptTwinHarness {
            twin: Twin::new(),
            keeper,
            store: None,
            limit_bytes,
            kills: Arc::clone(kills),
        };
        harness.start(pool, ledger);
        harness
    }

    fn start(&mut self, pool: Pool, ledger: Ledger) {
        let origin = Origin {
            options: DiskOptions { open_files: 2 },
            ledger: Some(ledger),
            ..Origin::default()
        };
        let disks = vec![DiskSpec::new(self.twin.clone())];
        let store = DiskStore::start(pool, disks, origin).unwrap();
        store.clear_ahead();
        self.store = Some(store);
    }
}

impl Harness for KeptTwinHarness {
    /// It counts what was written.
    fn reserves(&self) -> bool {
        false
    }

    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.kill();
    }

    fn kill(&mut self) -> bool {
        self.keeper = self.keeper.copy();
        self.store = None;
        self.twin.restart(Loss::Nothing);
        let keeper = &self.keeper;
        let ledger = Ledger::adopt(keeper.ledger(), keeper.keeping(), STAMP).unwrap();
        let options = pool_options(self.limit_bytes);
        let pool = Pool::adopt(options, ledger.clone(), keeper.segments()).unwrap();
        self.start(pool, ledger);
        self.kills.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn evict(&self) {
        self.store.as_ref().unwrap().evict();
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
    /// It counts what was written.
    fn reserves(&self) -> bool {
        false
    }

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
