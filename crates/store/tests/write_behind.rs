//! What a disk store owes: bytes in memory only that cannot be written, and bytes that clients may store at any time.
//!
//! On the twin disk, whose room is set. Left to others: faults at every step (`faults`), and who is told by a server.

mod harness;

use harness::twin_store;
use store::conformance::{identity, pattern};
use store::disk::twin::{Loss, Twin};
use store::{DiskStore, Error, Resource, Store, Subfile};

const MIB: u64 = 1 << 20;
const MEMORY: u64 = 64 << 20;

/// Leaves so much room on the disk.
fn leave(twin: &Twin, store: &DiskStore, bytes: u64) {
    twin.set_capacity(Some(1 << 40));
    let used = (1 << 40) - store.usage().disk_free_bytes;
    twin.set_capacity(Some(used + bytes));
}

fn is_full<T>(done: Result<T, Error>) -> bool {
    matches!(
        done,
        Err(Error::NoSpace {
            resource: Resource::Disk,
            ..
        })
    )
}

fn content(subfile: &dyn Subfile, len: u64) -> Vec<u8> {
    let mut bytes = vec![0xee; len as usize];
    subfile.read_at(0, &mut bytes).unwrap();
    bytes
}

/// A subfile with a MiB that is synced and eight that no disk has room for.
fn owing(twin: &Twin) -> (DiskStore, std::sync::Arc<dyn Subfile>) {
    let store = twin_store(twin, MEMORY);
    let subfile = store.create(&identity(1)).unwrap();
    subfile.write_at(0, &pattern(0, MIB as usize, 1)).unwrap();
    subfile.sync().unwrap();
    leave(twin, &store, 2 * MIB);
    let more = pattern(0, 8 * MIB as usize, 2);
    subfile.write_at(MIB, &more).unwrap();
    assert!(is_full(store.write_back(u64::MAX)));
    (store, subfile)
}

#[test]
fn what_no_disk_has_room_for_fails_every_sync_and_every_write() {
    let twin = Twin::new();
    let (store, subfile) = owing(&twin);
    for _ in 0..2 {
        assert!(is_full(subfile.sync()));
        assert!(is_full(subfile.write_at(0, b"more")));
        assert!(is_full(subfile.reserve(9 * MIB..10 * MIB)));
    }
    let memory = store.usage().memory_bytes;
    assert!(is_full(subfile.write_at(20 * MIB, &[1; 4096])));
    assert_eq!(store.usage().memory_bytes, memory, "what is owed grows");
    // What was answered is read; what was synced stays, whatever dies.
    let read = content(&*subfile, 9 * MIB);
    assert!(read[..MIB as usize] == pattern(0, MIB as usize, 1));
    assert!(read[MIB as usize..] == pattern(0, 8 * MIB as usize, 2));
    drop((subfile, store));
    twin.restart(Loss::Everything);
    twin.set_capacity(None);
    let store = twin_store(&twin, MEMORY);
    let subfile = store.open(identity(1).id).unwrap();
    assert!(content(&*subfile, MIB) == pattern(0, MIB as usize, 1));
}

#[test]
fn room_on_the_disk_pays_what_is_owed() {
    let twin = Twin::new();
    let (_store, subfile) = owing(&twin);
    twin.set_capacity(None);
    subfile.write_at(9 * MIB, b"more").unwrap();
    subfile.sync().unwrap();
    let read = content(&*subfile, 9 * MIB);
    assert!(read[MIB as usize..] == pattern(0, 8 * MIB as usize, 2));
}

#[test]
fn cutting_releases_what_is_owed() {
    let twin = Twin::new();
    let (store, subfile) = owing(&twin);
    subfile.truncate(MIB).unwrap();
    assert_eq!(store.usage().dirty_bytes, 0);
    subfile.sync().unwrap();
    subfile.write_at(MIB, b"more").unwrap();
    subfile.sync().unwrap();
    let read = content(&*subfile, MIB + 4);
    assert!(
        read[..MIB as usize] == pattern(0, MIB as usize, 1) && read[MIB as usize..] == *b"more"
    );
}

#[test]
fn removing_releases_what_is_owed() {
    let twin = Twin::new();
    let (store, subfile) = owing(&twin);
    store.remove(identity(1).id).unwrap();
    drop(subfile);
    assert_eq!(store.usage().dirty_bytes, 0);
    assert_eq!(store.usage().memory_bytes, 0);
    let next = store.create(&identity(2)).unwrap();
    next.write_at(0, b"other").unwrap();
    next.sync().unwrap();
}

#[test]
fn what_clients_may_store_into_counts_until_they_may_no_more() {
    let twin = Twin::new();
    let store = twin_store(&twin, MEMORY);
    let subfile = store.create(&identity(1)).unwrap();
    subfile.reserve(0..4 * MIB).unwrap();
    assert_eq!(store.exposed_bytes(), 0, "nobody may store yet");
    let found = subfile.extents(0..4 * MIB, 100, 1).unwrap();
    assert!(found.iter().all(|l| subfile.let_store(l.offset, 1)));
    assert_eq!(store.exposed_bytes(), 4 * MIB);
    // Marked and written back, it may be stored into again at any time.
    subfile.stored_to(MIB).unwrap();
    subfile.mark_written(0..MIB).unwrap();
    assert_eq!(store.exposed_bytes(), 4 * MIB);
    assert_eq!(store.dirty_bytes(), MIB);
    subfile.unmap(u64::MAX);
    assert_eq!(store.exposed_bytes(), MIB, "what is dirty");
    subfile.sync().unwrap();
    assert_eq!(store.exposed_bytes(), 0);
    subfile.write_at(0, &[1; 4096]).unwrap();
    assert_eq!(store.exposed_bytes(), 4096);
    subfile.truncate(0).unwrap();
    assert_eq!(store.exposed_bytes(), 0);
}

#[test]
fn disks_are_short_of_what_is_promised_and_not_written() {
    let twin = Twin::new();
    let store = twin_store(&twin, MEMORY);
    let subfile = store.create(&identity(1)).unwrap();
    twin.set_capacity(Some(64 * MIB));
    assert!(!store.is_short_of(16 * MIB));
    assert!(store.is_short_of(63 * MIB));
    subfile
        .write_at(0, &pattern(0, 48 * MIB as usize, 3))
        .unwrap();
    assert!(store.is_short_of(16 * MIB), "48 of 64 MiB are promised");
    subfile.truncate(0).unwrap();
    assert!(!store.is_short_of(16 * MIB));
}

#[test]
fn regrown_bytes_are_zero_without_a_look_at_the_disk() {
    let twin = Twin::new();
    let store = twin_store(&twin, MEMORY);
    let subfile = store.create(&identity(1)).unwrap();
    subfile
        .write_at(0, &pattern(0, 4 * MIB as usize, 4))
        .unwrap();
    subfile.sync().unwrap();
    subfile.truncate(100).unwrap();
    store.evict();
    subfile.write_at(3 * MIB, b"far").unwrap();
    let mut wanted = vec![0; 3 * MIB as usize + 3];
    wanted[..100].copy_from_slice(&pattern(0, 4 * MIB as usize, 4)[..100]);
    wanted[3 * MIB as usize..].copy_from_slice(b"far");
    assert!(content(&*subfile, 3 * MIB + 3) == wanted);
    subfile.sync().unwrap();
    drop((subfile, store));
    twin.restart(Loss::Everything);
    let store = twin_store(&twin, MEMORY);
    let subfile = store.open(identity(1).id).unwrap();
    assert!(content(&*subfile, 3 * MIB + 3) == wanted);
}
