//! Faults at every step: the n-th operation of the disk fails, is short, finds no space, or is the
//! last before the power goes; then the store is opened again and compared with a model.
//!
//! The model keeps, for every block, all versions it had since the last sync and since the last
//! flush. After a power cut a block must be one of the former, after the death of the process one of
//! the latter. Anything else is garbage, whatever it looks like; zeros where no version was zero too.

mod harness;

use std::sync::Arc;

use harness::{try_twin_store, twin_store};
use store::conformance::{identity, pattern};
use store::disk::twin::{Fault, Loss, Random, Twin};
use store::{Error, Store, Subfile};

const BLOCK: usize = 4096;
const MEMORY: u64 = 16 << 20;
/// Two groups: the second one begins at 1 MiB.
const BLOCKS: usize = 272;

/// One thing a server does with a subfile.
#[derive(Clone, Debug)]
enum Step {
    Write(usize, usize, u64),
    Punch(usize, usize),
    Truncate(usize),
    Flush,
    Sync,
    Evict,
    /// Close the store and open it again, in the same process.
    Reopen,
}

/// Versions of the whole subfile since a point in time; the first is from that point.
#[derive(Clone, Default)]
struct History(Vec<Vec<u8>>);

#[derive(Clone)]
struct Model {
    now: Vec<u8>,
    since_sync: History,
    since_flush: History,
    /// Whether anything of the subfile must be there at all.
    was_synced: bool,
}

impl Model {
    fn new() -> Self {
        Model {
            now: Vec::new(),
            since_sync: History(vec![Vec::new()]),
            since_flush: History(vec![Vec::new()]),
            was_synced: false,
        }
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Write(at, len, salt) => {
                self.now.resize(self.now.len().max(at + len), 0);
                self.now[at..at + len].copy_from_slice(&pattern(at as u64, len, salt));
            }
            Step::Punch(at, len) => {
                let end = (at + len).min(self.now.len());
                if at < end {
                    self.now[at..end].fill(0);
                }
            }
            Step::Truncate(len) => self.now.resize(len, 0),
            Step::Flush | Step::Sync | Step::Evict | Step::Reopen => return,
        }
        self.since_sync.0.push(self.now.clone());
        self.since_flush.0.push(self.now.clone());
    }

    /// A flush or sync has succeeded.
    fn settle(&mut self, step: &Step) {
        if matches!(step, Step::Sync | Step::Reopen) {
            self.since_sync = History(vec![self.now.clone()]);
            self.was_synced = true;
        }
        if matches!(step, Step::Sync | Step::Flush | Step::Reopen) {
            self.since_flush = History(vec![self.now.clone()]);
        }
    }
}

impl History {
    /// Whether a subfile could have this content: a length it had, and blocks it had.
    fn explain(&self, found: &[u8]) -> Result<(), String> {
        if !self.0.iter().any(|v| v.len() == found.len()) {
            let had: Vec<usize> = self.0.iter().map(Vec::len).collect();
            return Err(format!("length {}; had {had:?}", found.len()));
        }
        for (k, block) in found.chunks(BLOCK).enumerate() {
            let at = k * BLOCK;
            let fits = |version: &Vec<u8>| {
                (0..block.len()).all(|i| block[i] == version.get(at + i).copied().unwrap_or(0))
            };
            if !self.0.iter().any(fits) {
                let zeros = block.iter().filter(|&&b| b == 0).count();
                return Err(format!("block {k} was never so ({zeros} zeros)"));
            }
        }
        Ok(())
    }
}

fn run(store: &store::DiskStore, subfile: &Arc<dyn Subfile>, step: &Step) -> Result<(), Error> {
    match *step {
        Step::Write(at, len, salt) => subfile.write_at(at as u64, &pattern(at as u64, len, salt)),
        Step::Punch(at, len) => subfile.punch(at as u64..(at + len) as u64),
        Step::Truncate(len) => subfile.truncate(len as u64),
        Step::Flush => subfile.flush(),
        Step::Sync => subfile.sync(),
        Step::Evict => {
            store.evict();
            Ok(())
        }
        Step::Reopen => store.close(),
    }
}

fn content(subfile: &dyn Subfile) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0xee; subfile.len() as usize];
    subfile.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// A story of about twenty steps: fresh blocks, overwrites of synced and of unsynced ones, several in
/// one epoch, holes, truncation and growth, in two groups.
fn story(seed: u64) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut steps = vec![
        Step::Write(0, 6 * BLOCK, 1),
        Step::Sync,
        Step::Write(BLOCK + 100, 2 * BLOCK, 2),
        Step::Flush,
        Step::Write(BLOCK, BLOCK, 3),
        Step::Flush,
    ];
    for salt in 4..18 {
        // The middle is left out, so that files stay small and have a hole.
        let block = match random.index(3) {
            0 => BLOCKS - 17 + random.index(12),
            _ => random.index(12),
        };
        let at = block * BLOCK + random.index(2) * random.index(BLOCK);
        let len = 1 + random.index(3 * BLOCK);
        steps.push(match random.index(10) {
            0..=4 => Step::Write(at, len, salt),
            5 => Step::Punch(at, len),
            6 => Step::Truncate(at),
            7 => Step::Evict,
            8 => Step::Flush,
            _ => Step::Sync,
        });
        if random.index(2) == 0 {
            steps.push(Step::Flush);
        }
    }
    steps
}

/// Plays a story until it fails; the model then knows what may be found.
fn play(twin: &Twin, steps: &[Step]) -> (Model, bool) {
    let mut model = Model::new();
    let Ok(mut store) = try_twin_store(twin, MEMORY) else {
        return (model, false);
    };
    let Ok(mut subfile) = store.create(&identity(1)) else {
        return (model, false);
    };
    for step in steps {
        model.apply(step);
        if run(&store, &subfile, step).is_err() {
            return (model, true);
        }
        model.settle(step);
        if matches!(step, Step::Reopen) {
            drop((subfile, store));
            let Ok(opened) = try_twin_store(twin, MEMORY) else {
                return (model, true);
            };
            store = opened;
            match store.open(identity(1).id) {
                Ok(opened) => subfile = opened,
                Err(_) => return (model, true),
            }
        }
    }
    (model, true)
}

/// Opens what is left after a crash and compares.
fn inspect(twin: &Twin, model: &Model, loss: Loss, created: bool, what: &str) {
    let store = twin_store(twin, MEMORY);
    let must_exist = model.was_synced || (loss == Loss::Nothing && created);
    let subfile = match store.open(identity(1).id) {
        Ok(subfile) => subfile,
        Err(e) => {
            assert!(!must_exist, "{what}: {e}");
            return;
        }
    };
    let history = if loss == Loss::Nothing {
        &model.since_flush
    } else {
        &model.since_sync
    };
    let found = content(&*subfile).unwrap_or_else(|e| panic!("{what}: {e}"));
    if let Err(why) = history.explain(&found) {
        panic!("{what}: {why}");
    }
    let scrub = subfile.scrub().unwrap();
    assert!(scrub.damaged.is_empty(), "{what}: {scrub:?}");

    // What was found is found again after a second cut in the middle of new, unsynced writes.
    subfile.write_at(0, &pattern(0, 2 * BLOCK, 99)).unwrap();
    subfile.flush().unwrap();
    let mut later = found.clone();
    later.resize(later.len().max(2 * BLOCK), 0);
    later[..2 * BLOCK].copy_from_slice(&pattern(0, 2 * BLOCK, 99));
    drop((subfile, store));
    let fork = twin.fork();
    fork.restart(Loss::Random(twin.operations()));
    let store = twin_store(&fork, MEMORY);
    if model.was_synced {
        let subfile = store.open(identity(1).id).unwrap();
        let again = content(&*subfile).unwrap();
        let both = History(vec![found, later.clone()]);
        if let Err(why) = both.explain(&again) {
            panic!("{what}, second cut: {why}");
        }
        // And it goes on working: growth over whatever was behind the end shows zeros.
        let len = subfile.len() as usize;
        subfile.write_at(len as u64 + 9000, b"!").unwrap();
        subfile.sync().unwrap();
        let grown = content(&*subfile).unwrap();
        assert!(grown[len..len + 9000].iter().all(|&b| b == 0), "{what}");
    }
}

/// Stories that chance seldom tells: a block that was emptied in the epoch in which it is written
/// again, and a file that was closed before.
fn rare_stories() -> Vec<Vec<Step>> {
    let emptied = vec![
        Step::Write(0, 4 * BLOCK, 1),
        Step::Sync,
        Step::Write(0, 4 * BLOCK, 2),
        Step::Flush,
        Step::Punch(BLOCK, 2 * BLOCK),
        Step::Flush,
        Step::Write(0, 4 * BLOCK, 3),
        Step::Flush,
        Step::Truncate(BLOCK),
        Step::Flush,
        Step::Write(0, 4 * BLOCK, 4),
        Step::Flush,
    ];
    let closed = vec![
        Step::Write(0, 4 * BLOCK, 1),
        Step::Reopen,
        Step::Write(BLOCK, 2 * BLOCK, 2),
        Step::Flush,
        Step::Write(0, 3 * BLOCK, 3),
        Step::Sync,
        Step::Reopen,
        Step::Truncate(100),
        Step::Flush,
        Step::Write(2 * BLOCK, BLOCK, 4),
        Step::Reopen,
    ];
    vec![emptied, closed]
}

#[test]
fn crash_between_any_two_steps_keeps_what_was_synced() {
    let stories = (1..=4).map(story).chain(rare_stories());
    for (seed, steps) in (1..).zip(stories) {
        let calm = Twin::new();
        let (model, _) = play(&calm, &steps);
        let total = calm.operations();
        inspect(&calm, &model, Loss::Nothing, true, "no fault");
        for n in 1..=total + 1 {
            let twin = Twin::new();
            twin.plan(n, Fault::PowerCut);
            let (model, created) = play(&twin, &steps);
            let waiting = twin.waiting();
            let mut fates = vec![Loss::Nothing, Loss::Everything];
            fates.extend([0, 1, waiting / 2, waiting.saturating_sub(1)].map(Loss::After));
            fates.extend((0..3).map(|k| Loss::Random(seed * 10_000 + n * 10 + k)));
            for loss in fates {
                let fork = twin.fork();
                fork.restart(loss);
                let what = format!("seed {seed}, operation {n} of {total}, {loss:?}");
                inspect(&fork, &model, loss, created, &what);
            }
        }
    }
}

#[test]
fn crash_during_recovery_keeps_what_was_synced() {
    for seed in 1..=3 {
        let steps = story(seed);
        let calm = Twin::new();
        play(&calm, &steps);
        let total = calm.operations();
        for n in (total / 3..=total).step_by(7) {
            let twin = Twin::new();
            twin.plan(n, Fault::PowerCut);
            let (model, _) = play(&twin, &steps);
            twin.restart(Loss::Random(n));
            for m in 1.. {
                let fork = twin.fork();
                let before = fork.operations();
                fork.plan(m, Fault::PowerCut);
                {
                    let disks = vec![store::DiskSpec::new(fork.clone())];
                    let options = store::DiskOptions::default();
                    let store = store::DiskStore::new(harness::pool(MEMORY), disks, options);
                    let _ = store.and_then(|s| s.open(identity(1).id).map(|_| ()));
                }
                let is_complete = fork.operations() - before < m;
                for loss in [Loss::Everything, Loss::Random(m), Loss::After(1)] {
                    let fork = fork.fork();
                    fork.restart(loss);
                    let what =
                        format!("seed {seed}, operation {n}, then {m} of recovery, {loss:?}");
                    inspect(&fork, &model, loss, false, &what);
                }
                if is_complete {
                    break;
                }
            }
        }
    }
}

#[test]
fn failing_operation_is_reported_and_can_be_repeated() {
    for fault in [Fault::Error, Fault::Short, Fault::NoSpace] {
        for seed in 1..=2 {
            let steps = story(seed);
            let calm = Twin::new();
            play(&calm, &steps);
            for n in 1..=calm.operations() {
                repeat_after(
                    fault,
                    n,
                    &steps,
                    &format!("{fault:?}, seed {seed}, operation {n}"),
                );
            }
        }
    }
}

fn repeat_after(fault: Fault, n: u64, steps: &[Step], what: &str) {
    let twin = Twin::new();
    let store = twin_store(&twin, MEMORY);
    twin.plan(n, fault);
    let mut model = Model::new();
    let create = || store.create(&identity(1));
    store.disks().restore(0);
    let subfile = create().or_else(|_| {
        store.disks().restore(0);
        create()
    });
    let subfile = subfile.unwrap_or_else(|e| panic!("{what}: {e}"));
    for step in steps {
        model.apply(step);
        let mut done = run(&store, &subfile, step);
        if done.is_err() {
            done = run(&store, &subfile, step); // the fault is gone
        }
        match done {
            Ok(()) => model.settle(step),
            Err(Error::DiskFailed { .. }) => {
                // A barrier failed. Reading goes on, as far as it is right.
                if let Ok(found) = content(&*subfile) {
                    assert!(found == model.now, "{what}: wrong bytes from a failed disk");
                }
                drop((subfile, store));
                twin.restart(Loss::Everything);
                inspect(&twin, &model, Loss::Everything, true, what);
                return;
            }
            Err(e) => panic!("{what}: {step:?}: {e}"),
        }
    }
    let found = content(&*subfile).or_else(|_| content(&*subfile)).unwrap();
    assert!(found == model.now, "{what}");
    match subfile.sync() {
        Ok(()) => model.settle(&Step::Sync),
        Err(Error::DiskFailed { .. }) => {}
        Err(_) => {
            subfile.sync().unwrap();
            model.settle(&Step::Sync);
        }
    }
    drop((subfile, store));
    twin.restart(Loss::Everything);
    inspect(&twin, &model, Loss::Everything, true, what);
}

/// A barrier fails, and with it the kernel forgets what it was given: the pages are clean and not durable. The next
/// process still reads them, or does not when they have left the page cache. What it finds is something that the subfile
/// was since its last sync, and what it then syncs has to survive the power cut that follows.
#[test]
fn what_a_later_process_syncs_after_a_failed_barrier_is_durable() {
    for death in [Loss::Nothing, Loss::Evicted] {
        let mut failed = 0;
        let mut gone = 0;
        let stories = (1..=3).map(story).chain(rare_stories());
        for (seed, steps) in (1..).zip(stories) {
            let calm = Twin::new();
            play(&calm, &steps);
            for n in 1..=calm.operations() {
                let twin = Twin::new();
                twin.plan(n, Fault::Error);
                let (model, _) = play(&twin, &steps);
                if twin.forgotten() == 0 {
                    continue; // no barrier that had anything to do
                }
                failed += 1;
                twin.restart(death);
                let what = format!("seed {seed}, barrier at operation {n}, {death:?}");
                let store = twin_store(&twin, MEMORY);
                let subfile = match store.open(identity(1).id) {
                    Ok(subfile) => subfile,
                    // Not even its header was written, or is known any more.
                    Err(e) => {
                        assert!(!model.was_synced, "{what}: {e}");
                        continue;
                    }
                };
                let found = content(&*subfile).unwrap_or_else(|e| panic!("{what}: {e}"));
                if let Err(why) = model.since_sync.explain(&found) {
                    panic!("{what}: {why}");
                }
                gone += u64::from(model.since_flush.explain(&found).is_err());
                subfile.sync().unwrap_or_else(|e| panic!("{what}: {e}"));
                drop((subfile, store));
                for loss in [Loss::Everything, Loss::Random(n), Loss::After(1)] {
                    let fork = twin.fork();
                    fork.restart(loss);
                    check_kept(&fork, &found, &format!("{what}, {loss:?}"));
                }
                // The same when the next process closes its files, so that nobody recovers them again.
                let store = twin_store(&twin, MEMORY);
                let subfile = store.open(identity(1).id).unwrap();
                drop(subfile);
                store.close().unwrap();
                drop(store);
                twin.restart(Loss::Everything);
                check_kept(&twin, &found, &format!("{what}, closed"));
            }
        }
        assert!(failed > 10, "only {failed} barriers failed");
        // Only what was forgotten can be gone, and then it is.
        assert_eq!(gone > 0, death == Loss::Evicted, "{gone} after {death:?}");
    }
}

/// What a recovery wrote may leave the page cache after its barrier has failed: the same process does not take what
/// it finds then for what was there.
#[test]
fn subfile_whose_recovery_failed_is_refused_until_the_next_start() {
    let twin = Twin::new();
    let store = twin_store(&twin, MEMORY);
    let subfile = store.create(&identity(1)).unwrap();
    subfile.write_at(0, b"kept").unwrap();
    subfile.flush().unwrap();
    drop((subfile, store));
    twin.restart(Loss::Nothing);
    let store = twin_store(&twin, MEMORY);
    twin.fail_next_sync();
    for _ in 0..2 {
        let refused = store.open(identity(1).id).map(drop).unwrap_err();
        assert!(matches!(refused, Error::DiskFailed { .. }), "{refused}");
    }
    drop(store);
    twin.restart(Loss::Nothing);
    let store = twin_store(&twin, MEMORY);
    let subfile = store.open(identity(1).id).unwrap();
    assert_eq!(content(&*subfile).unwrap(), b"kept");
}

/// The failure of a barrier is told, to be remembered beyond the process.
#[test]
fn failed_barriers_are_told_to_the_watcher_of_the_disk() {
    #[derive(Debug, Default)]
    struct Told(std::sync::atomic::AtomicU64);
    impl store::Watcher for Told {
        fn sync_failed(&self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let (twin, told) = (Twin::new(), Arc::new(Told::default()));
    let disk = Arc::new(store::WatchedDisk::by(
        Arc::new(twin.clone()),
        Arc::clone(&told),
    ));
    let disks = vec![store::DiskSpec::of(disk)];
    let options = store::DiskOptions::default();
    let store = store::DiskStore::new(harness::pool(MEMORY), disks, options).unwrap();
    let subfile = store.create(&identity(1)).unwrap();
    subfile.write_at(0, b"kept").unwrap();
    subfile.flush().unwrap();
    twin.fail_next_sync();
    assert!(subfile.sync().is_err());
    assert_eq!(told.0.load(std::sync::atomic::Ordering::Relaxed), 1);
}

/// And the power may go at any moment while the next process recovers and goes on.
#[test]
fn power_cut_while_a_later_process_recovers_from_a_failed_barrier() {
    for steps in [story(1), story(2)].into_iter().chain(rare_stories()) {
        let calm = Twin::new();
        play(&calm, &steps);
        for n in 1..=calm.operations() {
            let twin = Twin::new();
            twin.plan(n, Fault::Error);
            let (model, _) = play(&twin, &steps);
            if twin.forgotten() == 0 || !model.was_synced {
                continue;
            }
            twin.restart(Loss::Nothing);
            for m in 1.. {
                let fork = twin.fork();
                let before = fork.operations();
                fork.plan(m, Fault::PowerCut);
                if let Ok(store) = try_twin_store(&fork, MEMORY)
                    && let Ok(subfile) = store.open(identity(1).id)
                {
                    let _ = subfile.write_at(0, &pattern(0, BLOCK, 77));
                    let _ = subfile.flush();
                }
                let is_complete = fork.operations() - before < m;
                for loss in [Loss::Everything, Loss::After(0), Loss::Random(m)] {
                    let fork = fork.fork();
                    fork.restart(loss);
                    let what = format!("barrier at {n}, power cut at {m}, {loss:?}");
                    let store = twin_store(&fork, MEMORY);
                    let subfile = store.open(identity(1).id);
                    let subfile = subfile.unwrap_or_else(|e| panic!("{what}: {e}"));
                    let found = content(&*subfile).unwrap_or_else(|e| panic!("{what}: {e}"));
                    let mut history = model.since_sync.clone();
                    for version in history.0.clone() {
                        let mut over = version;
                        over.resize(over.len().max(BLOCK), 0);
                        over[..BLOCK].copy_from_slice(&pattern(0, BLOCK, 77));
                        history.0.push(over);
                    }
                    if let Err(why) = history.explain(&found) {
                        panic!("{what}: {why}");
                    }
                }
                if is_complete {
                    break;
                }
            }
        }
    }
}

/// A recovery fails in the middle, and the next one finds in the page cache what it did: erased places too.
#[test]
fn recovery_that_failed_is_done_again_from_the_beginning() {
    let mut failed = 0;
    for seed in 1..=3 {
        let steps = story(seed);
        let calm = Twin::new();
        play(&calm, &steps);
        let total = calm.operations();
        for n in (total / 3..=total).step_by(5) {
            let twin = Twin::new();
            twin.plan(n, Fault::PowerCut);
            play(&twin, &steps);
            twin.restart(Loss::Random(n));
            for m in 1.. {
                let fork = twin.fork();
                let before = fork.operations();
                fork.plan(m, Fault::Error);
                let opened = try_twin_store(&fork, MEMORY);
                let _ = opened.and_then(|s| s.open(identity(1).id).map(|_| ()));
                let is_complete = fork.operations() - before < m;
                if fork.forgotten() > 0 {
                    failed += 1;
                    fork.restart(Loss::Nothing);
                    let store = twin_store(&fork, MEMORY);
                    if let Ok(subfile) = store.open(identity(1).id) {
                        let found = content(&*subfile).unwrap();
                        subfile.sync().unwrap();
                        drop(subfile);
                        store.close().unwrap();
                        drop(store);
                        fork.sync_all();
                        fork.restart(Loss::Everything);
                        let what = format!("seed {seed}, cut at {n}, error at {m}");
                        check_kept(&fork, &found, &what);
                    }
                }
                if is_complete {
                    break;
                }
            }
        }
    }
    assert!(failed > 50, "only {failed} recoveries failed");
}

/// A torn table is erased, the barrier behind that fails, and the next process finds an erased place that the disk
/// knows nothing of.
#[test]
fn table_erased_by_a_recovery_that_failed_is_erased_again() {
    let name = "0000000000000001-1-0.sub";
    let made = Twin::new();
    let store = twin_store(&made, MEMORY);
    let subfile = store.create(&identity(1)).unwrap();
    let bytes = pattern(0, 3 * BLOCK, 1);
    subfile.write_at(0, &bytes).unwrap();
    subfile.sync().unwrap();
    drop((subfile, store));
    let mut image = made.bytes(name).unwrap();
    image[12288..12288 + 700].fill(0x77); // side one of the table
    for m in 1..40 {
        let twin = Twin::new();
        twin.put(name, &image);
        twin.plan(m, Fault::Error);
        let opened = try_twin_store(&twin, MEMORY);
        let _ = opened.and_then(|s| s.open(identity(1).id).map(|_| ()));
        twin.restart(Loss::Nothing);
        let store = twin_store(&twin, MEMORY);
        let subfile = store.open(identity(1).id).unwrap();
        subfile.sync().unwrap();
        drop(subfile);
        store.close().unwrap();
        drop(store);
        twin.sync_all();
        twin.restart(Loss::Everything);
        check_kept(&twin, &bytes, &format!("error at {m}"));
    }
}

fn check_kept(twin: &Twin, found: &[u8], what: &str) {
    let store = twin_store(twin, MEMORY);
    let subfile = store.open(identity(1).id);
    let subfile = subfile.unwrap_or_else(|e| panic!("{what}: {e}"));
    let again = content(&*subfile).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(again == found, "{what}: synced bytes are not there");
    let scrub = subfile.scrub().unwrap();
    assert!(scrub.damaged.is_empty(), "{what}: {scrub:?}");
}

#[test]
fn write_that_failed_and_then_died_leaves_what_was_flushed() {
    // The first fault leaves a block whose place may hold either version; the second one kills.
    for n in 1..20 {
        for m in 1..20 {
            let twin = Twin::new();
            let store = twin_store(&twin, MEMORY);
            let subfile = store.create(&identity(1)).unwrap();
            let mut model = Model::new();
            let mut go = |step: Step| {
                model.apply(&step);
                let done = run(&store, &subfile, &step);
                if done.is_ok() {
                    model.settle(&step);
                }
            };
            go(Step::Write(0, 2 * BLOCK, 1));
            go(Step::Sync);
            go(Step::Write(0, 2 * BLOCK, 2));
            go(Step::Flush);
            twin.plan(n, Fault::Error);
            go(Step::Write(0, 2 * BLOCK, 3));
            go(Step::Flush);
            twin.mend();
            twin.plan(m, Fault::PowerCut);
            go(Step::Write(0, 2 * BLOCK, 4));
            go(Step::Flush);
            drop((subfile, store));
            twin.restart(Loss::Nothing);
            let what = format!("error at {n}, death at {m}");
            inspect(&twin, &model, Loss::Nothing, true, &what);
        }
    }
}

#[test]
fn name_is_durable_after_the_first_sync_of_a_later_process() {
    let twin = Twin::new();
    let store = twin_store(&twin, MEMORY);
    let subfile = store.create(&identity(1)).unwrap();
    subfile.write_at(0, b"kept").unwrap();
    subfile.flush().unwrap();
    drop((subfile, store));
    twin.restart(Loss::Nothing);
    let store = twin_store(&twin, MEMORY);
    store.open(identity(1).id).unwrap().sync().unwrap();
    drop(store);
    twin.restart(Loss::Everything);
    let store = twin_store(&twin, MEMORY);
    let subfile = store.open(identity(1).id).unwrap();
    assert_eq!(content(&*subfile).unwrap(), b"kept");
}

#[test]
fn broken_disk_gives_errors_or_right_bytes() {
    let steps = story(3);
    let calm = Twin::new();
    play(&calm, &steps);
    for n in 1..=calm.operations() {
        let twin = Twin::new();
        twin.plan(n, Fault::Broken);
        let Ok(store) = try_twin_store(&twin, MEMORY) else {
            continue;
        };
        let mut model = Model::new();
        let Ok(subfile) = store.create(&identity(1)) else {
            continue;
        };
        for step in &steps {
            if run(&store, &subfile, step).is_err() {
                break;
            }
            model.apply(step);
            model.settle(step);
            store.evict();
            if let Ok(found) = content(&*subfile) {
                assert!(found == model.now, "operation {n}: wrong bytes");
            }
        }
    }
}

#[test]
fn flipped_bit_is_found_by_reading_and_by_scrubbing() {
    let twin = Twin::new();
    let store = twin_store(&twin, MEMORY);
    let subfile = store.create(&identity(1)).unwrap();
    let bytes = pattern(0, 20 * BLOCK, 1);
    subfile.write_at(0, &bytes).unwrap();
    subfile.sync().unwrap();
    // Overwritten, so that an older version of the block is still around and must not be taken.
    subfile.write_at(0, &pattern(0, 20 * BLOCK, 2)).unwrap();
    subfile.sync().unwrap();
    drop((subfile, store));
    let name = "0000000000000001-1-0.sub";
    let side_one = 16384 + (1 << 20);
    twin.flip_bit(name, side_one + 5 * BLOCK as u64 + 77, 3);
    twin.restart(Loss::Nothing);
    let store = twin_store(&twin, MEMORY);
    let subfile = store.open(identity(1).id).unwrap();
    let mut block = vec![0; BLOCK];
    let refused = subfile.read_at(5 * BLOCK as u64, &mut block).unwrap_err();
    let at = 5 * BLOCK as u64;
    assert!(
        matches!(refused, Error::Corrupt { offset, .. } if offset == at),
        "{refused}"
    );
    subfile.read_at(4 * BLOCK as u64, &mut block).unwrap();
    assert!(block == pattern(4 * BLOCK as u64, BLOCK, 2));
    let scrub = subfile.scrub().unwrap();
    assert_eq!((scrub.blocks, scrub.damaged), (20, vec![at]));
    // Overwriting the block as a whole mends it.
    subfile.write_at(at, &block).unwrap();
    subfile.sync().unwrap();
    assert!(subfile.scrub().unwrap().damaged.is_empty());
}

#[test]
fn damaged_table_is_an_error_and_never_an_older_version() {
    let twin = Twin::new();
    let store = twin_store(&twin, MEMORY);
    let subfile = store.create(&identity(1)).unwrap();
    for salt in 1..=2 {
        subfile.write_at(0, &pattern(0, 3 * BLOCK, salt)).unwrap();
        subfile.sync().unwrap();
    }
    drop(subfile);
    store.close().unwrap();
    drop(store);
    // Tables of group 0 are at 8192 and 12288; the second one is the newer.
    twin.flip_bit("0000000000000001-1-0.sub", 12288 + 200, 0);
    twin.restart(Loss::Nothing);
    let store = twin_store(&twin, MEMORY);
    let subfile = store.open(identity(1).id).unwrap();
    let refused = subfile.read_at(0, &mut [0; 10]).unwrap_err();
    assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
    assert_eq!(subfile.scrub().unwrap().damaged, [0]);
}

#[test]
fn second_process_on_a_directory_is_refused() {
    let twin = Twin::new();
    let first = twin_store(&twin, MEMORY);
    let again = || {
        let disks = vec![store::DiskSpec::new(twin.clone())];
        store::DiskStore::new(harness::pool(MEMORY), disks, store::DiskOptions::default())
    };
    assert!(matches!(again(), Err(Error::Busy { .. })));
    drop(first);
    assert!(again().is_ok());
    let directory = harness::Temporary::new();
    let real = || {
        let disks = vec![store::DiskSpec::new(
            store::Directory::new(&directory.0).unwrap(),
        )];
        store::DiskStore::new(harness::pool(MEMORY), disks, store::DiskOptions::default())
    };
    let first = real().unwrap();
    assert!(matches!(real(), Err(Error::Busy { .. })));
    drop(first);
    assert!(real().is_ok());
}
