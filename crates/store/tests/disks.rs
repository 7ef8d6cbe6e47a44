//! Disks that belong together: one is missing, empty, another server's or back; data files that are gone or there twice;
//! and subfiles that take long to open.

mod harness;

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use harness::pool;
use store::conformance::{identity, pattern};
use store::disk::twin::{Fault, Loss, Twin};
use store::{
    DiskId, DiskOptions, DiskRequest, DiskSpec, DiskStore, Error, Origin, Result, Standing, Store,
    WatchedDisk, Watcher,
};

const MEMORY: u64 = 16 << 20;

fn open(twins: &[&Twin]) -> Result<DiskStore> {
    start(twins, Origin::default())
}

fn start(twins: &[&Twin], origin: Origin) -> Result<DiskStore> {
    let specs = twins.iter().map(|t| DiskSpec::new((*t).clone())).collect();
    DiskStore::start(pool(MEMORY), specs, origin)
}

fn bytes(file: u64) -> Vec<u8> {
    pattern(0, 9000, file)
}

/// A store on two disks with six synced subfiles.
fn filled() -> [Twin; 2] {
    let twins = [Twin::named("/a"), Twin::named("/b")];
    let store = open(&[&twins[0], &twins[1]]).unwrap();
    for file in 1..=6 {
        let subfile = store.create(&identity(file)).unwrap();
        subfile.write_at(0, &bytes(file)).unwrap();
        subfile.sync().unwrap();
    }
    let counts = store.counts();
    assert_eq!(counts, [3, 3], "new subfiles are spread");
    drop(store);
    twins.iter().for_each(|t| t.restart(Loss::Everything));
    twins
}

fn read(store: &DiskStore, file: u64) -> Result<Vec<u8>> {
    let subfile = store.open(identity(file).id)?;
    let mut found = vec![0; subfile.len() as usize];
    subfile.read_at(0, &mut found)?;
    Ok(found)
}

/// Files that can be read, as they were written; all others must be refused by `is_right`.
#[track_caller]
fn readable(store: &DiskStore, is_right: impl Fn(&Error) -> bool) -> Vec<u64> {
    let mut good = Vec::new();
    for file in 1..=6 {
        match read(store, file) {
            Ok(found) => {
                assert!(found == bytes(file), "file {file} has other bytes");
                good.push(file);
            }
            Err(e) => assert!(is_right(&e), "file {file}: {e}"),
        }
    }
    good
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::DiskMissing { .. })
}

#[test]
fn either_disk_may_be_missing_and_what_is_on_it_is_refused() {
    let twins = filled();
    for gone in 0..2 {
        let forks = [twins[0].fork(), twins[1].fork()];
        let empty = Twin::named(["/a", "/b"][gone]);
        let mut given = [&forks[0], &forks[1]];
        given[gone] = &empty;
        let store = open(&given).unwrap();
        let missing = store.disks().missing();
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0].place, ["/a", "/b"][gone]);
        assert_eq!(readable(&store, is_missing).len(), 3);
        // Neither is a second copy made, nor is anything removed.
        for file in 1..=6 {
            if store.open(identity(file).id).is_err() {
                assert!(is_missing(
                    &store.create(&identity(file)).map(drop).unwrap_err()
                ));
                assert!(is_missing(&store.remove(identity(file).id).unwrap_err()));
            }
        }
        // One that was never written is nowhere, and can be made.
        assert!(matches!(
            store.open(identity(7).id),
            Err(Error::NotFound(_))
        ));
        store.create(&identity(7)).unwrap().sync().unwrap();
        let standing: Vec<Standing> = store.look(None, 100).iter().map(|l| l.standing).collect();
        let count = |is| standing.iter().filter(|s| **s == is).count();
        assert_eq!((count(Standing::Here), count(Standing::Missing)), (4, 3));
        assert_eq!(store.look(Some(identity(5).id), 1)[0].id, identity(6).id);
        drop(store);
        assert!(
            empty.bytes("disk").is_none(),
            "something was written in its place"
        );
        // And all is there again when the disk is.
        forks.iter().for_each(|t| t.restart(Loss::Everything));
        let store = open(&[&forks[0], &forks[1]]).unwrap();
        assert_eq!(readable(&store, |_| false).len(), 6);
        assert!(store.disks().missing().is_empty());
    }
}

#[test]
fn unsynced_subfile_on_a_disk_that_is_missing_is_not_a_hole() {
    let twins = filled();
    let store = open(&[&twins[0], &twins[1]]).unwrap();
    let begun: Vec<u64> = (10..14).collect();
    for file in &begun {
        let subfile = store.create(&identity(*file)).unwrap();
        subfile.write_at(0, b"acknowledged").unwrap();
        subfile.flush().unwrap();
    }
    drop(store);
    // The process died, the page cache did not; then one disk is gone.
    twins.iter().for_each(|t| t.restart(Loss::Nothing));
    let store = open(&[&twins[0], &Twin::named("/b")]).unwrap();
    let refused = begun
        .iter()
        .filter(|f| read(&store, **f).is_err_and(|e| is_missing(&e)));
    assert_eq!(refused.count(), 2);
}

#[test]
fn two_missing_disks_leave_doubt_about_what_was_never_seen() {
    let twins = [Twin::named("/a"), Twin::named("/b"), Twin::named("/c")];
    let all = [&twins[0], &twins[1], &twins[2]];
    drop(open(&all).unwrap());
    twins.iter().for_each(|t| t.restart(Loss::Nothing));
    let origin = || Origin {
        last_start: Some(5),
        ..Origin::default()
    };
    let store = start(&[&twins[0]], origin()).unwrap();
    assert_eq!(store.disks().missing().len(), 2);
    let id = identity(1).id;
    assert!(is_missing(&store.open_bound(id, 5).map(drop).unwrap_err()));
    // What was bound when they were gone already cannot be there.
    let new = store.open_bound(id, 6).map(drop).unwrap_err();
    assert!(matches!(new, Error::NotFound(_)), "{new}");
    let lost: Vec<DiskId> = store.disks().missing().iter().map(|m| m.id).collect();
    drop(store);
    twins[0].restart(Loss::Nothing);
    // Declared lost together: the doubt stays.
    let forget = Origin {
        forget: lost,
        ..origin()
    };
    drop(start(&[&twins[0]], forget).unwrap());
    twins[0].restart(Loss::Everything);
    let store = start(&[&twins[0]], origin()).unwrap();
    assert!(store.disks().missing().is_empty());
    let error = store.open_bound(id, 5).map(drop).unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
}

#[test]
fn disk_of_another_store_and_a_copied_one_are_refused() {
    let (ours, theirs) = (filled(), filled());
    let refused = open(&[&ours[0], &theirs[1]]).unwrap_err().to_string();
    assert!(refused.contains("another server"), "{refused}");
    let copy = ours[0].fork();
    let refused = open(&[&ours[0], &copy, &ours[1]]).unwrap_err().to_string();
    assert!(refused.contains("copy"), "{refused}");
    // Damage is told, whatever it is.
    let hurt = ours[1].fork();
    hurt.flip_bit("disk", 30, 0);
    let refused = open(&[&ours[0], &hurt]).unwrap_err().to_string();
    assert!(refused.contains("damaged"), "{refused}");
}

#[test]
fn lost_disk_is_lost_for_good_and_a_new_one_takes_its_place() {
    let twins = filled();
    let store = open(&[&twins[0], &Twin::named("/b")]).unwrap();
    let id = store.disks().missing()[0].id;
    drop(store);
    twins[0].restart(Loss::Everything);
    let present = open(&[&twins[0], &twins[1]]).unwrap();
    let origin = || Origin {
        forget: vec![id],
        ..Origin::default()
    };
    drop(present);
    twins.iter().for_each(|t| t.restart(Loss::Nothing));
    let refused = start(&[&twins[0], &twins[1]], origin()).unwrap_err();
    assert!(refused.to_string().contains("is there"), "{refused}");
    let fresh = Twin::named("/b");
    let store = start(&[&twins[0], &fresh], origin()).unwrap();
    let is_lost = |e: &Error| matches!(e, Error::Lost { .. });
    assert_eq!(readable(&store, is_lost).len(), 3);
    assert_eq!(store.disks().len(), 2);
    // A user who gives up the file can write it again under a new name.
    let gone = (1..=6).find(|f| read(&store, *f).is_err()).unwrap();
    store.remove(identity(gone).id).unwrap();
    drop(store);
    [&twins[0], &fresh]
        .iter()
        .for_each(|t| t.restart(Loss::Everything));
    let store = open(&[&twins[0], &fresh]).unwrap();
    assert_eq!(
        readable(&store, |e| is_lost(e) || matches!(e, Error::NotFound(_))).len(),
        3
    );
    drop(store);
    [&twins[0], &fresh]
        .iter()
        .for_each(|t| t.restart(Loss::Nothing));
    let refused = open(&[&twins[0], &fresh, &twins[1]]).unwrap_err();
    assert!(refused.to_string().contains("declared lost"), "{refused}");
}

#[test]
fn data_file_that_is_gone_is_lost_and_not_empty() {
    let twins = filled();
    let disk: &dyn store::Disk = &twins[0];
    let names = disk.names().unwrap();
    let name = names.iter().find(|n| n.ends_with(".sub")).unwrap();
    disk.remove(name).unwrap();
    disk.sync_names().unwrap();
    let store = open(&[&twins[0], &twins[1]]).unwrap();
    let is_lost = |e: &Error| matches!(e, Error::Lost { why, .. } if why.contains("/a"));
    assert_eq!(readable(&store, is_lost).len(), 5);
}

#[test]
fn directory_of_the_version_before_is_adopted() {
    let twins = filled();
    for twin in &twins {
        let disk: &dyn store::Disk = twin;
        disk.remove("disk").unwrap();
        disk.remove("subfiles").unwrap();
        disk.sync_names().unwrap();
    }
    let store = open(&[&twins[0], &twins[1]]).unwrap();
    assert_eq!(readable(&store, |_| false).len(), 6);
    drop(store);
    twins.iter().for_each(|t| t.restart(Loss::Everything));
    // From now on it is known what belongs to it.
    let store = open(&[&Twin::named("/a"), &twins[1]]).unwrap();
    assert_eq!(readable(&store, is_missing).len(), 3);
}

#[test]
fn beginning_is_interrupted_anywhere_and_goes_on() {
    for n in 1.. {
        let twins = [Twin::named("/a"), Twin::named("/b")];
        let before = twins[0].operations() + twins[1].operations();
        twins[0].plan(n, Fault::PowerCut);
        let first = open(&[&twins[0], &twins[1]]).is_ok();
        let is_complete = twins[0].operations() + twins[1].operations() - before < n;
        twins.iter().for_each(|t| t.restart(Loss::Random(n)));
        let store = open(&[&twins[0], &twins[1]]).unwrap_or_else(|e| panic!("operation {n}: {e}"));
        assert_eq!(store.disks().len(), 2, "operation {n}");
        store.create(&identity(1)).unwrap().sync().unwrap();
        if is_complete || first {
            break;
        }
    }
}

#[test]
fn two_data_files_of_one_subfile_are_never_removed() {
    // A move was interrupted: the later copy counts, the older one is put aside.
    let twins = [Twin::named("/a"), Twin::named("/b")];
    let both = [&twins[0], &twins[1]];
    let store = open(&both).unwrap();
    store.disks().declare(0, 900 << 20, 0);
    let subfile = store.create(&identity(1)).unwrap();
    subfile.write_at(0, &bytes(1)).unwrap();
    subfile.sync().unwrap();
    let name = "0000000000000001-1-0.sub";
    let old = twins[0].bytes(name).unwrap();
    twins[0].set_capacity(Some(1));
    subfile.write_at(100_000, &bytes(2)).unwrap();
    subfile.sync().unwrap();
    assert_eq!(store.disk_of(identity(1).id).unwrap(), 1);
    drop((subfile, store));
    twins.iter().for_each(|t| t.restart(Loss::Everything));
    twins[0].set_capacity(None);
    twins[0].put(name, &old);
    // Without the disk of the later one the older one is not served in its place.
    let (alone, empty) = (twins[0].fork(), Twin::named("/b"));
    let store = open(&[&alone, &empty]).unwrap();
    assert!(is_missing(
        &store.open(identity(1).id).map(drop).unwrap_err()
    ));
    drop(store);
    let store = open(&both).unwrap();
    assert_eq!(store.open(identity(1).id).unwrap().len(), 109_000);
    let aside = store.quarantined();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert_eq!(
        twins[0].bytes(&aside[0].path).unwrap(),
        old,
        "the bytes are kept"
    );
    drop(store);
    twins.iter().for_each(|t| t.restart(Loss::Nothing));
    // Two of the same age: neither is served, neither is touched.
    let newest = twins[1].bytes(name).unwrap();
    twins[0].put(name, &newest);
    let store = open(&both).unwrap();
    let refused = store.open(identity(1).id).map(drop).unwrap_err();
    assert!(
        matches!(&refused, Error::Conflict { why, .. } if why.contains("/a") && why.contains("/b"))
    );
    assert_eq!(store.conflicts().len(), 1);
    assert!(store.create(&identity(1)).is_err());
    assert!(twins.iter().all(|t| t.bytes(name).is_some()));
}

/// Holds up reads of a data file until it is told to let them go.
#[derive(Debug)]
struct Gate {
    name: String,
    reached: Mutex<Sender<()>>,
    open: Mutex<Receiver<()>>,
}

impl Watcher for Gate {
    fn asked(&self, file: &str, what: DiskRequest) -> io::Result<()> {
        // Headers are read at the start too; a table is read by recovery.
        if file == self.name && matches!(what, DiskRequest::Read(8192, _)) {
            let _ = self.reached.lock().unwrap().send(());
            let _ = self.open.lock().unwrap().recv();
        }
        Ok(())
    }
}

#[test]
fn recovery_of_one_subfile_keeps_nobody_else_waiting() {
    let twin = Twin::new();
    let store = open(&[&twin]).unwrap();
    for file in 1..=2 {
        let subfile = store.create(&identity(file)).unwrap();
        subfile.write_at(0, &bytes(file)).unwrap();
        subfile.sync().unwrap();
    }
    drop(store);
    twin.restart(Loss::Nothing);
    let (reached, is_reached) = channel();
    let (go, may_go) = channel();
    let gate = Gate {
        name: "0000000000000001-1-0.sub".to_owned(),
        reached: Mutex::new(reached),
        open: Mutex::new(may_go),
    };
    let disk = WatchedDisk::by(Arc::new(twin.clone()), Arc::new(gate));
    let specs = vec![DiskSpec::new(disk)];
    let store = DiskStore::new(pool(MEMORY), specs, DiskOptions::default()).unwrap();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| read(&store, 1).unwrap());
        is_reached.recv().unwrap();
        // It recovers now. Everything else goes on.
        assert!(read(&store, 2).unwrap() == bytes(2));
        store.create(&identity(3)).unwrap().sync().unwrap();
        assert_eq!(store.list().unwrap().len(), 3);
        let same = scope.spawn(|| read(&store, 1).unwrap());
        drop(go);
        assert!(slow.join().unwrap() == bytes(1));
        assert!(same.join().unwrap() == bytes(1));
    });
}
