//! What a disk store with a ledger holds after its process was killed: at every step everything that was acknowledged,
//! synced or not; and after a power cut, which no ledger survives, everything that was synced.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use random::Random;

use super::twin::{Fault, Loss, Twin};
use super::{DiskOptions, DiskSpec, DiskStore, Origin};
use crate::conformance::{identity, pattern};
use crate::ledger::twin::KeeperTwin;
use crate::{Grant, Ledger, Pool, PoolOptions, Store, Subfile};

const STAMP: &[u8] = b"test";
const FILES: usize = 2;
/// Moments of one operation that are looked at.
const MOMENTS: usize = 10;

fn options(limit_bytes: u64) -> PoolOptions {
    PoolOptions {
        keep_warm_bytes: 1 << 20,
        segment_bytes: 4 << 20,
        segments: 64,
        ..PoolOptions::for_limit(limit_bytes)
    }
}

fn start(pool: Pool, disk: &Twin, ledger: Option<Ledger>) -> crate::Result<DiskStore> {
    let origin = Origin {
        options: DiskOptions { open_files: 1 },
        ledger,
        ..Origin::default()
    };
    DiskStore::start(pool, vec![DiskSpec::new(disk.clone())], origin)
}

/// A process that adopts what one left that was killed.
fn adopt(moment: &Moment, limit_bytes: u64) -> DiskStore {
    moment.disk.restart(Loss::Nothing);
    let keeper = &moment.keeper;
    let ledger = Ledger::adopt(keeper.ledger(), keeper.keeping(), STAMP).unwrap();
    let pool = Pool::adopt(options(limit_bytes), ledger.clone(), keeper.segments()).unwrap();
    let store = start(pool, &moment.disk, Some(ledger)).unwrap();
    store.clear_ahead();
    store
}

/// Disk and memory as a kill would leave them.
struct Moment {
    disk: Twin,
    keeper: KeeperTwin,
}

/// A subfile as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    bytes: Vec<u8>,
    note: Vec<u8>,
}

impl Model {
    fn at(&self, place: usize) -> u8 {
        self.bytes.get(place).copied().unwrap_or(0)
    }
}

/// How much of an operation may be there when the process was killed in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// All or nothing.
    Whole,
    /// Each byte is as it was, or as it should become.
    Bytewise,
}

struct World {
    disk: Twin,
    keeper: KeeperTwin,
    store: DiskStore,
    limit_bytes: u64,
    models: Vec<Option<Model>>,
    moments: Arc<Mutex<Vec<Moment>>>,
}

impl World {
    fn new(limit_bytes: u64) -> World {
        let (disk, keeper) = (Twin::new(), KeeperTwin::new());
        let ledger = Ledger::new(keeper.keeping(), STAMP).unwrap();
        let pool = Pool::with_ledger(options(limit_bytes), ledger.clone());
        let store = start(pool, &disk, Some(ledger.clone())).unwrap();
        let moments = Arc::new(Mutex::new(Vec::new()));
        let (shots, of) = (Arc::clone(&moments), (disk.clone(), keeper.clone()));
        ledger.watch(move || {
            let mut shots = shots.lock();
            if shots.len() < MOMENTS {
                shots.push(Moment {
                    disk: of.0.fork(),
                    keeper: of.1.copy(),
                });
            }
        });
        let (shots, of) = (Arc::clone(&moments), keeper.clone());
        disk.watch(move |disk| {
            let mut shots = shots.lock();
            if shots.len() < MOMENTS {
                shots.push(Moment {
                    disk: disk.clone(),
                    keeper: of.copy(),
                });
            }
        });
        World {
            disk,
            keeper,
            store,
            limit_bytes,
            models: vec![None; FILES],
            moments,
        }
    }

    fn now(&self) -> Moment {
        Moment {
            disk: self.disk.fork(),
            keeper: self.keeper.copy(),
        }
    }

    fn step(&mut self, k: usize, random: &mut Random) -> Progress {
        let Some(mut model) = self.models[k].take() else {
            self.store.create(&identity(k as u64)).unwrap();
            self.models[k] = Some(Model::default());
            return Progress::Whole;
        };
        let subfile = self.store.open(identity(k as u64).id).unwrap();
        let place = random.index(400_000);
        let most = *random.pick(&[100, 5000, 150_000]);
        let len = 1 + random.index(most);
        let range = place as u64..(place + len) as u64;
        let bytes = pattern(place as u64, len, random.below(1000));
        let write = |model: &mut Model| {
            let end = model.bytes.len().max(place + len);
            model.bytes.resize(end, 0);
            model.bytes[place..place + len].copy_from_slice(&bytes);
        };
        let mut progress = Progress::Whole;
        let operation = random.index(20);
        eprintln!("operation {operation} of subfile {k} at {range:?}"); // shown only when a test fails
        match operation {
            0..=4 => {
                subfile.write_at(range.start, &bytes).unwrap();
                write(&mut model);
                progress = Progress::Bytewise;
            }
            5 => {
                let mut grant = Grant::new();
                subfile.grant(range, &mut grant).unwrap();
                drop(grant);
            }
            6 | 7 => {
                subfile.truncate(place as u64).unwrap();
                model.bytes.resize(place, 0);
            }
            8 | 9 => {
                subfile.punch(range).unwrap();
                let end = (place + len).min(model.bytes.len());
                if place < end {
                    model.bytes[place..end].fill(0);
                }
                progress = Progress::Bytewise;
            }
            10 => {
                subfile.preallocate(range).unwrap();
                let end = model.bytes.len().max(place + len);
                model.bytes.resize(end, 0);
            }
            11 | 12 => {
                store_directly(&*subfile, &range, &bytes);
                // Where it is not unmapped, the client may go on.
                if self.limit_bytes < 8 << 20 || random.index(2) == 0 {
                    unmap(&*subfile);
                }
                write(&mut model);
                progress = Progress::Bytewise;
            }
            13 => {
                model.note = random.bytes(20);
                subfile.set_note(&model.note).unwrap();
            }
            14 => subfile.sync().unwrap(),
            15 => subfile.flush().unwrap(),
            16 => {
                let budget = 1 + random.below(200_000);
                self.store.write_back(budget).unwrap();
            }
            17 => {
                self.store.evict();
            }
            18 => {
                unmap(&*subfile);
                subfile.trim();
            }
            _ => {
                drop(subfile);
                self.store.remove(identity(k as u64).id).unwrap();
                return Progress::Whole;
            }
        }
        self.models[k] = Some(model);
        progress
    }
}

/// A client with a map stores, and the server hears how far.
fn store_directly(subfile: &dyn Subfile, range: &Range<u64>, bytes: &[u8]) {
    subfile.reserve(range.clone()).unwrap();
    let mapped = subfile.extents(range.clone(), 100, 1).unwrap();
    for location in &mapped {
        assert!(subfile.let_store(location.offset, 1));
        let lo = location.offset.max(range.start);
        let hi = (location.offset + location.len).min(range.end);
        let part = &bytes[(lo - range.start) as usize..(hi - range.start) as usize];
        let at = location.segment_offset + lo - location.offset;
        let segment = location.segment.descriptor();
        assert_eq!(rustix::io::pwrite(segment, part, at).unwrap(), part.len());
    }
    subfile.stored_to(range.end).unwrap();
}

/// The server collects what clients have stored, and takes their maps.
fn unmap(subfile: &dyn Subfile) {
    subfile.mark_written(0..subfile.len()).unwrap();
    subfile.unmap(10);
}

fn read(subfile: &dyn Subfile, range: Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0xee; (range.end - range.start) as usize];
    subfile.read_at(range.start, &mut bytes).unwrap();
    bytes
}

fn found(store: &DiskStore, k: usize) -> Option<Model> {
    let subfile = store.open(identity(k as u64).id).ok()?;
    let len = subfile.len();
    let behind = read(&*subfile, len..len + 200_000);
    assert!(behind.iter().all(|&byte| byte == 0), "behind the length");
    Some(Model {
        bytes: read(&*subfile, 0..len),
        note: subfile.identity().note,
    })
}

/// Compares what a store has with what was before an operation on subfile `k` and what should be after it.
fn compare(
    store: &DiskStore,
    k: usize,
    before: &[Option<Model>],
    after: &[Option<Model>],
    progress: Progress,
) {
    for (n, (before, after)) in before.iter().zip(after).enumerate() {
        let found = found(store, n);
        if n != k {
            assert!(found == *before, "subfile {n}, nobody touched it");
        } else if found != *before && found != *after {
            let describe = |m: &Option<Model>| m.as_ref().map(|m| (m.bytes.len(), m.note.len()));
            let lens = [before, &found, after].map(describe);
            assert_eq!(
                progress,
                Progress::Bytewise,
                "{lens:?}: before, found, after"
            );
            let (before, after) = (before.as_ref().unwrap(), after.as_ref().unwrap());
            let found = found.expect("it is there");
            let lens = [before.bytes.len(), after.bytes.len()];
            assert!(lens.contains(&found.bytes.len()), "{lens:?}");
            let is_either = |i: &usize| [before.at(*i), after.at(*i)].contains(&found.at(*i));
            let strange = (0..found.bytes.len()).find(|i| !is_either(i));
            assert_eq!(strange, None, "neither the old byte nor the new one");
        }
    }
}

fn programs(limit_bytes: u64, seeds: Range<u64>, steps: usize) {
    let mut count = 0;
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut world = World::new(limit_bytes);
        world.moments.lock().clear();
        for step in 0..steps {
            let before = world.models.clone();
            let k = random.index(FILES);
            let progress = world.step(k, &mut random);
            let moments = std::mem::take(&mut *world.moments.lock());
            eprintln!("seed {seed} step {step}: {} moments", moments.len());
            let last = world.now();
            let store = adopt(&last, limit_bytes);
            compare(&store, k, &world.models, &world.models, Progress::Whole);
            // Killed again, as soon as it has adopted.
            drop(store);
            let store = adopt(&last, limit_bytes);
            compare(&store, k, &world.models, &world.models, Progress::Whole);
            for moment in &moments {
                let store = adopt(moment, limit_bytes);
                compare(&store, k, &before, &world.models, progress);
                count += 1;
            }
        }
    }
    assert!(count > 200, "{count}");
}

/// Kills the process at each ledger batch and each operation of the disk, of random programs.
#[test]
fn a_kill_at_any_step_leaves_everything_acknowledged() {
    programs(32 << 20, 1..4, 60);
}

/// Programs in so little memory that most operations evict and write back.
#[test]
fn a_kill_with_little_memory_leaves_everything_acknowledged() {
    programs(2 << 20, 11..14, 60);
}

/// Stores that follow each other, each killed: written back by a later one, it is on disk.
#[test]
fn lives_follow_each_other() {
    for seed in 1..=4 {
        let mut random = Random::new(50 + seed);
        let mut world = World::new(32 << 20);
        for life in 0..6 {
            for _ in 0..25 {
                let k = random.index(FILES);
                world.step(k, &mut random);
                world.moments.lock().clear();
            }
            let moment = world.now();
            world.store = adopt(&moment, world.limit_bytes);
            (world.disk, world.keeper) = (moment.disk, moment.keeper);
            for k in 0..FILES {
                assert!(
                    found(&world.store, k) == world.models[k],
                    "{seed} {life} {k}"
                );
            }
        }
        // When all is synced nothing is left on record, and a power cut takes nothing.
        for k in 0..FILES {
            if let Ok(subfile) = world.store.open(identity(k as u64).id) {
                unmap(&*subfile);
                subfile.sync().unwrap();
            }
        }
        let keeper = world.keeper.copy();
        let ledger = Ledger::adopt(keeper.ledger(), keeper.keeping(), STAMP).unwrap();
        assert_eq!(ledger.extents().unwrap(), []);
        assert_eq!(ledger.next_subfile().unwrap(), 0, "no subfile is on record");
        let disk = world.disk.fork();
        disk.restart(Loss::Everything);
        let store = start(Pool::new(options(32 << 20)), &disk, None).unwrap();
        for k in 0..FILES {
            assert!(
                found(&store, k) == world.models[k],
                "{seed} after a power cut"
            );
        }
    }
}

/// A power cut: no ledger is adopted, and what was synced before is there.
#[test]
fn a_power_cut_takes_only_what_was_not_synced() {
    for seed in 1..=12 {
        let mut random = Random::new(200 + seed);
        let world = World::new(32 << 20);
        world
            .moments
            .lock()
            .extend((0..MOMENTS).map(|_| world.now()));
        let subfile = world.store.create(&identity(1)).unwrap();
        let kept = pattern(0, 300_000, seed);
        subfile.write_at(0, &kept).unwrap();
        subfile.sync().unwrap();
        // Not synced: each block is as it was synced, or as it was written or punched after.
        let mut after = kept.clone();
        for _ in 0..6 {
            let place = random.index(250_000);
            let bytes = pattern(place as u64, 1 + random.index(40_000), random.below(100));
            subfile.write_at(place as u64, &bytes).unwrap();
            after[place..place + bytes.len()].copy_from_slice(&bytes);
            if random.index(2) == 0 {
                subfile.flush().unwrap();
            }
        }
        let disk = world.disk.fork();
        disk.restart(Loss::Everything);
        let store = start(Pool::new(options(32 << 20)), &disk, None).unwrap();
        let found = found(&store, 1).unwrap();
        assert!(found.bytes == kept, "seed {seed}: what was synced");
        let disk = world.disk.fork();
        disk.restart(Loss::Random(seed));
        let store = start(Pool::new(options(32 << 20)), &disk, None).unwrap();
        let subfile = store.open(identity(1).id).unwrap();
        let found = read(&*subfile, 0..300_000);
        let blocks = found.chunks(4096).zip(kept.chunks(4096));
        let changed = blocks.filter(|(found, kept)| found != kept).count();
        let might = kept.chunks(4096).zip(after.chunks(4096));
        assert!(changed <= might.filter(|(kept, after)| kept != after).count());
        assert!(world.moments.lock().len() == MOMENTS);
    }
}

/// A write-back that fails at any of its operations, or finds no room, leaves on record what the disk may not have.
#[test]
fn what_could_not_be_written_back_is_adopted() {
    for fault in [Fault::Error, Fault::NoSpace, Fault::Broken] {
        let mut n = 0;
        loop {
            n += 1;
            let world = World::new(32 << 20);
            world
                .moments
                .lock()
                .extend((0..MOMENTS).map(|_| world.now()));
            let subfile = world.store.create(&identity(1)).unwrap();
            subfile.write_at(0, &pattern(0, 100_000, 1)).unwrap();
            subfile.flush().unwrap();
            let mut bytes = pattern(0, 300_000, 2);
            subfile.write_at(0, &bytes).unwrap();
            subfile.truncate(250_000).unwrap();
            bytes.truncate(250_000);
            // Longer than the header says, and in a second group.
            let far = pattern(0, 5000, 3);
            subfile.write_at(1_500_000, &far).unwrap();
            bytes.resize(1_500_000, 0);
            bytes.extend(&far);
            let before = world.disk.operations();
            world.disk.plan(n, fault);
            let done = subfile.flush();
            let is_met = world.disk.operations() - before >= n;
            // Memory is short meanwhile: what is on record stays.
            world.store.evict();
            world.disk.mend();
            subfile.write_at(2_000_000, b"later").unwrap();
            bytes.resize(2_000_000, 0);
            bytes.extend(b"later");
            let moment = world.now();
            let store = adopt(&moment, world.limit_bytes);
            let found = found(&store, 1).unwrap();
            assert!(found.bytes == bytes, "{fault:?} at operation {n}: {done:?}");
            if !is_met {
                done.unwrap();
                break;
            }
        }
        assert!(n > 3, "{n}");
    }
}
