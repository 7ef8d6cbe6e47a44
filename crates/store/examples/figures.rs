//! Figures quoted in comments: the ledger, fresh and recycled extents, checksums by block size, write-back.
//!
//! `cargo run --release -p store --example figures [DIRECTORY]`. Best of seven, yardsticks in the same run.

use std::hint::black_box;
use std::time::Instant;

use store::conformance::identity;
use store::ledger::twin::KeeperTwin;
use store::{
    Batch, Directory, DiskOptions, DiskSpec, DiskStore, Ledger, MemoryStore, Pool, PoolOptions,
    Store,
};

fn best(bytes: usize, mut run: impl FnMut()) -> f64 {
    let took = (0..7).map(|_| {
        let began = Instant::now();
        run();
        began.elapsed().as_secs_f64()
    });
    bytes as f64 / took.fold(f64::MAX, f64::min) / 1e9
}

/// Nanoseconds of one of `count` steps.
fn nanoseconds(count: usize, run: impl FnMut()) -> f64 {
    1.0 / best(count, run)
}

/// What a change of the ledger costs, and a short write that makes a subfile longer, with a ledger and without.
fn ledger() {
    const COUNT: usize = 200_000;
    let keeper = KeeperTwin::new();
    let ledger = Ledger::new(keeper.keeping(), b"figures").expect("ledger");
    let mut batch = Batch::new();
    let change = nanoseconds(COUNT, || {
        for i in 0..COUNT as u64 {
            batch.clear();
            batch.set(70, &(i % 100_000).to_be_bytes(), &i.to_le_bytes());
            ledger.write(&batch);
        }
    });
    println!("ledger: a change         {change:6.0} ns, 100 000 entries");
    let options = PoolOptions::default();
    let plain = MemoryStore::new(Pool::new(options));
    let pool = Pool::with_ledger(options, ledger.clone());
    let kept = MemoryStore::with_ledger(pool, ledger);
    for (name, store) in [("without", plain), ("with", kept)] {
        let subfile = store.create(&identity(1)).expect("create");
        subfile.preallocate(0..64 << 20).expect("space");
        let bytes = [7; 64];
        let grow = nanoseconds(COUNT, || {
            subfile.truncate(0).expect("truncate");
            subfile.reserve(0..64 << 20).expect("space");
            for i in 0..COUNT as u64 {
                subfile.write_at(i * 64, &bytes).expect("write");
            }
        });
        let again = nanoseconds(COUNT, || {
            for i in 0..COUNT as u64 {
                subfile.write_at(i * 64, &bytes).expect("write");
            }
        });
        println!(
            "{name:7} a ledger: a write of 64 bytes that grows {grow:6.0} ns, again {again:6.0} ns"
        );
    }
}

fn main() {
    ledger();
    let size = 64 << 20;
    let source = vec![7u8; size];
    let mut target = vec![1u8; size];
    let memcpy = best(size, || {
        target.copy_from_slice(black_box(&source));
        black_box(&target);
    });
    println!("memcpy 64 MiB            {memcpy:6.2} GB/s");

    for (name, keep_warm_bytes) in [("fresh extents", 0), ("recycled extents", 256 << 20)] {
        let pool = Pool::new(PoolOptions {
            keep_warm_bytes,
            ..PoolOptions::default()
        });
        let store = MemoryStore::new(pool);
        let subfile = store.create(&identity(1)).expect("create");
        subfile.write_at(0, &source).expect("write");
        let rate = best(size, || {
            subfile.truncate(0).expect("truncate");
            subfile.write_at(0, &source).expect("write");
        });
        println!(
            "write, {name:17} {rate:6.2} GB/s  {:.2} of memcpy",
            rate / memcpy
        );
        let rate = best(size, || subfile.write_at(0, &source).expect("write"));
        println!(
            "  the same in place      {rate:6.2} GB/s  {:.2} of memcpy",
            rate / memcpy
        );
        let rate = best(size, || subfile.read_at(0, &mut target).expect("read"));
        println!(
            "  read                   {rate:6.2} GB/s  {:.2} of memcpy",
            rate / memcpy
        );
    }

    let cached = &source[..1 << 20];
    for block in [4096, 16_384, 65_536] {
        let rate = best(64 << 20, || {
            for _ in 0..64 {
                for part in cached.chunks(block) {
                    let algorithm = crc_fast::CrcAlgorithm::Crc32Iscsi;
                    black_box(crc_fast::checksum(algorithm, black_box(part)));
                }
            }
        });
        println!("CRC-32C, {:2} KiB blocks   {rate:6.2} GB/s", block / 1024);
    }

    let Some(directory) = std::env::args().nth(1) else {
        return;
    };
    let path = std::path::Path::new(&directory);
    let plain = path.join("plain");
    let file = std::fs::File::create(&plain).expect("create");
    for sync in [false, true] {
        let rate = best(size, || {
            for (k, part) in source.chunks(1 << 20).enumerate() {
                let at = (k << 20) as u64;
                std::os::unix::fs::FileExt::write_all_at(&file, part, at).expect("write");
            }
            if sync {
                file.sync_data().expect("sync");
            }
        });
        println!("plain pwrite, sync {sync:5} {rate:6.2} GB/s");
    }
    std::fs::remove_file(&plain).expect("remove");
    let disk = Directory::new(path.join("store")).expect("directory");
    let pool = Pool::new(PoolOptions::default());
    let disks = vec![DiskSpec::new(disk)];
    let store = DiskStore::new(pool, disks, DiskOptions::default()).expect("store");
    let subfile = store.create(&identity(1)).expect("create");
    let mut times = [f64::MAX; 3];
    for _ in 0..7 {
        let mut lap = Instant::now();
        let mut took = |k: usize| {
            times[k] = times[k].min(lap.elapsed().as_secs_f64());
            lap = Instant::now();
        };
        subfile.write_at(0, &source).expect("write");
        took(0);
        subfile.flush().expect("flush");
        took(1);
        subfile.sync().expect("sync");
        took(2);
    }
    let rate = |time: f64| size as f64 / time / 1e9;
    println!("disk store: write        {:6.2} GB/s", rate(times[0]));
    println!("disk store: write back   {:6.2} GB/s", rate(times[1]));
    println!(
        "disk store: with sync    {:6.2} GB/s",
        rate(times[1] + times[2])
    );
    let load = best(size, || {
        store.evict();
        subfile.read_at(0, &mut target).expect("read");
    });
    println!("disk store: cold read    {load:6.2} GB/s (page cache, verified)");
    store.remove(identity(1).id).expect("remove");
}
