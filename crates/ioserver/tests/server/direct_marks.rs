//! Direct writes on a disk server that does not write through: marks, and what survives.
//!
//! What is on disk at a moment is seen in a copy of the disk's directory, opened as after a death.

use std::path::Path;
use std::sync::Arc;

use store::{Directory, DiskOptions, DiskSpec, DiskStore, Pool, PoolOptions, Store, SubfileId};
use wire::message::direct::{MapAnswer, MappedExtent, READ_ONLY};
use wire::message::file::{Grow, Sync, Truncate};

use crate::direct::{begin, whole};
use crate::direct_process::Player;
use crate::life::until;
use testkit::TempDir;

use crate::rig::{Client, File, Rig, pattern, request_number};
use crate::sharer::Sharer;

const LAYOUT: &str = "striped(1MiB) over 1";

fn spilling(memory_bytes: u64) -> Rig {
    Rig::on_disk(memory_bytes, false)
}

fn grow(client: &mut Client, file: &File, end: u64) {
    grow_view(client, file, end, 1);
}

fn grow_view(client: &mut Client, file: &File, end: u64, view: u64) {
    let grow = Grow {
        view,
        epoch: file.epoch,
        end,
    };
    client.ask(file.state.owner.server, &grow).unwrap();
}

fn sync(client: &mut Client, file: &File) {
    let synced = client
        .ask(file.state.owner.server, &Sync { view: 1 })
        .unwrap();
    assert!(synced.is_durable);
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Length and first bytes of the only subfile of a file, as they would be if the server died now.
fn after_death(rig: &Rig, file: &File, len: u64) -> (u64, Vec<u8>) {
    let image = TempDir::new();
    copy_dir(&rig.dir.path().join("disk-0"), image.path());
    let disk = DiskSpec::new(Directory::new(image.path()).unwrap());
    let pool = Pool::new(PoolOptions::default());
    let store = DiskStore::new(pool, vec![disk], DiskOptions::default()).unwrap();
    let of_file = |id: &SubfileId| id.file == file.id.0;
    let found = store.list().unwrap().into_iter().map(|i| i.id);
    let found: Vec<SubfileId> = found.filter(of_file).collect();
    let subfile: Arc<dyn store::Subfile> = store.open(found[0]).unwrap();
    assert!(subfile.scrub().unwrap().damaged.is_empty());
    let mut bytes = vec![0; len as usize];
    subfile.read_at(0, &mut bytes).unwrap();
    (subfile.len(), bytes)
}

fn map(sharer: &mut Sharer, file: &File, start: u64, end: u64) -> MapAnswer {
    sharer.map(file, 1, true, &[(0, start, end)]).unwrap()
}

/// Whether the server lets the client store into a range that it asked for.
fn may_store(mapped: &MapAnswer, start: u64, end: u64) -> bool {
    let asked = |e: &&MappedExtent| e.offset < end && start < e.offset + e.len;
    let mut asked = mapped.extents.iter().filter(asked);
    asked.all(|extent| extent.mark != READ_ONLY)
}

#[test]
fn synced_direct_writes_survive_the_death_of_the_server() {
    let rig = spilling(64 << 20);
    let (mut client, file, mut sharer) = begin(&rig, "/f", LAYOUT);
    let data = pattern(300_000, 5);
    let mapped = map(&mut sharer, &file, 0, 300_000);
    assert!(mapped.segments.iter().all(|s| s.is_writable));
    let mut marks: Vec<u32> = mapped.extents.iter().map(|e| e.mark).collect();
    assert!(marks.iter().all(|&m| m != 0 && m != READ_ONLY));
    marks.sort_unstable();
    marks.dedup();
    assert_eq!(marks.len(), mapped.extents.len(), "a mark per extent");
    assert!(sharer.write(&mapped, 0, 0, &data));
    grow(&mut client, &file, 300_000);
    sync(&mut client, &file);
    assert_eq!(after_death(&rig, &file, 300_000), (300_000, data.clone()));
    // Behind what was asked for, in the same extent: the store learns the length when it looks.
    assert!(sharer.write(&mapped, 0, 300_000, &[9; 10_000]));
    assert!(sharer.write(&mapped, 0, 5, &[8; 5]));
    sync(&mut client, &file);
    let (len, bytes) = after_death(&rig, &file, 310_001);
    assert_eq!(len, 310_000);
    assert!(bytes[..5] == data[..5] && bytes[5..10] == [8; 5] && bytes[10..300_000] == data[10..]);
    assert!(bytes[300_000..310_000].iter().all(|&b| b == 9) && bytes[310_000] == 0);
    assert!(sharer.is_current(&mapped), "nobody had to take it back");
    // Nothing was stored since, so nothing is written.
    let before = rig.count(0, "direct_marks_taken");
    sync(&mut client, &file);
    assert_eq!(rig.count(0, "direct_marks_taken"), before);
}

#[test]
fn a_writer_under_way_at_a_sync_is_found_by_the_next() {
    let rig = spilling(64 << 20);
    let (mut client, file, mut sharer) = begin(&rig, "/f", LAYOUT);
    let mapped = map(&mut sharer, &file, 0, 100_000);
    grow(&mut client, &file, 100_000);
    let claim = sharer.claim(&mapped, true);
    assert!(sharer.is_current(&mapped));
    sharer.mark(&mapped, 0, 0..100_000);
    sharer.raise_end(&mapped, 0, 100_000);
    sharer.store(&mapped, 0, 0, &[1; 50_000]);
    sync(&mut client, &file);
    assert!(rig.count(0, "direct_marks_set_again") >= 1);
    let (_, bytes) = after_death(&rig, &file, 100_000);
    assert!(bytes[..50_000].iter().all(|&b| b == 1));
    // It has marked already and does not mark again.
    sharer.store(&mapped, 0, 50_000, &[2; 50_000]);
    assert!(claim.end());
    sync(&mut client, &file);
    let (_, bytes) = after_death(&rig, &file, 100_000);
    assert!(bytes[..50_000].iter().all(|&b| b == 1) && bytes[50_000..].iter().all(|&b| b == 2));
}

#[test]
fn what_is_written_directly_beyond_the_memory_is_spilled() {
    const STEP: u64 = 512 << 10;
    const LEN: u64 = 12 << 20;
    let rig = spilling(4 << 20);
    let (mut client, file, mut sharer) = begin(&rig, "/f", LAYOUT);
    let data = pattern(LEN, 7);
    for round in [0, 1] {
        for at in (0..LEN).step_by(STEP as usize) {
            let part = &data[at as usize..(at + STEP) as usize];
            let part: Vec<u8> = part.iter().map(|b| b ^ round).collect();
            // The server may be writing back just these extents, or take them for others: a client asks again.
            until(|| {
                let mapped = map(&mut sharer, &file, at, at + STEP);
                may_store(&mapped, at, at + STEP) && sharer.write(&mapped, 0, at, &part)
            });
            grow(&mut client, &file, LEN);
        }
        for at in (0..LEN).step_by(1 << 20) {
            let to = at + (1 << 20);
            let (back, _) = client.read(&file, 1, &whole(), at, to).unwrap();
            let part = data[at as usize..to as usize].iter();
            assert!(part.map(|b| b ^ round).eq(back), "{round} {at}");
        }
    }
    assert!(rig.count(0, "direct_revocations") >= 2);
    assert_eq!(rig.count(0, "direct_claims_revoked"), 0);
    sync(&mut client, &file);
    let (len, bytes) = after_death(&rig, &file, LEN);
    assert!(len == LEN && bytes.iter().zip(&data).all(|(b, d)| *b == d ^ 1));
}

/// Writes so much to another file that nothing else stays in memory.
fn press(client: &mut Client) {
    let other = client.open("/other", None, Some(LAYOUT));
    client.set_view(&other, 2, &whole());
    for at in 0..6 {
        let data = vec![3; 1 << 20];
        let at = at << 20;
        client.write(&other, 2, &whole(), at, &data).unwrap();
    }
}

#[test]
fn a_writer_that_is_stuck_keeps_its_memory_when_room_is_needed() {
    let rig = spilling(4 << 20);
    let (mut client, mut file, mut sharer) = begin(&rig, "/f", LAYOUT);
    let mapped = map(&mut sharer, &file, 0, 1 << 20);
    assert!(sharer.write(&mapped, 0, 0, &[5; 1 << 20]));
    grow(&mut client, &file, 1 << 20);
    let claim = sharer.claim(&mapped, true);
    // Others map so much that there is nothing else to evict.
    let (owner, other, mut second) = begin(&rig, "/other", LAYOUT);
    for at in (0..6 << 20).step_by(1 << 20) {
        let mapped = map(&mut second, &other, at, at + (1 << 20));
        assert!(second.write(&mapped, 0, at, &[3; 1 << 20]), "{at}");
    }
    assert!(!sharer.is_current(&mapped));
    assert_eq!(rig.count(0, "direct_claims_revoked"), 1);
    // What it stores late is in its own file, or nowhere; nobody else gets this memory.
    sharer.store(&mapped, 0, 0, &[6; 1000]);
    let other = client.open("/other", None, None);
    client.set_view(&other, 2, &whole());
    grow_view(&mut client, &other, 6 << 20, 2);
    for at in (0..6 << 20).step_by(1 << 20) {
        let to = at + (1 << 20);
        let (back, _) = client.read(&other, 2, &whole(), at, to).unwrap();
        assert!(back.iter().all(|&b| b == 3), "{at}");
    }
    let (back, _) = client.read(&file, 1, &whole(), 0, 1 << 20).unwrap();
    assert!(back[1000..].iter().all(|&b| b == 5));
    // A truncate replaces it.
    let cut = Truncate {
        view: 1,
        handle: file.opened.handle,
        to: 1 << 19,
        request: request_number(),
    };
    file.epoch = client.ask(file.state.owner.server, &cut).unwrap().epoch;
    sharer.store(&mapped, 0, 0, &[7; 1 << 20]);
    assert!(!claim.end(), "it was revoked");
    let (back, _) = client.read(&file, 1, &whole(), 0, 1 << 19).unwrap();
    assert!(back[1000..].iter().all(|&b| b == 5) && back[..1000].iter().all(|&b| b != 7));
    // Nothing of it is marked, and nothing kept from others any more.
    drop((owner, second));
    until(|| rig.count(0, "direct_marked_extents") == 0);
    until(|| rig.count(0, "direct_quarantined_bytes") == 0);
}

#[test]
fn bytes_of_a_client_that_is_gone_are_kept() {
    let rig = spilling(4 << 20);
    let (mut client, file, mut sharer) = begin(&rig, "/f", LAYOUT);
    let data = pattern(1 << 20, 4);
    let mapped = map(&mut sharer, &file, 0, 1 << 20);
    assert!(sharer.write(&mapped, 0, 0, &data));
    grow(&mut client, &file, 1 << 20);
    assert!(rig.count(0, "direct_marked_extents") > 0);
    client.lanes.clear();
    sharer.link.shutdown();
    until(|| rig.count(0, "direct_clients") == 0 && rig.count(0, "direct_marked_extents") == 0);
    let mut other = rig.client();
    press(&mut other);
    let file = other.open("/f", None, None);
    other.set_view(&file, 1, &whole());
    let (back, _) = other.read(&file, 1, &whole(), 0, 1 << 20).unwrap();
    assert!(back == data);
}

#[test]
fn bytes_of_a_process_that_was_killed_are_kept() {
    let rig = spilling(4 << 20);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4MiB) over 1"));
    client.set_view(&file, 1, &whole());
    let data = pattern(1 << 20, 4);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    // It has stored all of it, and is killed before it ends its claim.
    drop(Player::start(&rig));
    until(|| rig.count(0, "direct_clients") == 0 && rig.count(0, "direct_marked_extents") == 0);
    press(&mut client);
    let (back, _) = client.read(&file, 1, &whole(), 0, 1 << 20).unwrap();
    assert!(back.iter().all(|&b| b == 0xaa));
}

#[test]
fn a_server_that_ends_keeps_what_was_written_directly() {
    let mut rig = spilling(64 << 20);
    let (mut client, file, mut sharer) = begin(&rig, "/f", LAYOUT);
    let data = pattern(1 << 20, 4);
    let mapped = map(&mut sharer, &file, 0, 1 << 20);
    assert!(sharer.write(&mapped, 0, 0, &data));
    grow(&mut client, &file, 1 << 20);
    rig.servers[0].take().unwrap().stop();
    assert!(!sharer.is_current(&mapped));
    assert_eq!(after_death(&rig, &file, 1 << 20), (1 << 20, data));
}

#[test]
fn reading_maps_of_what_has_marks_keep_them_and_others_have_none() {
    let rig = spilling(64 << 20);
    let (mut client, file, mut sharer) = begin(&rig, "/f", LAYOUT);
    client.write(&file, 1, &whole(), 0, &[1; 1 << 20]).unwrap();
    let read = sharer.map(&file, 1, false, &[(0, 0, 1 << 20)]).unwrap();
    assert!(read.extents.iter().all(|e| e.mark == READ_ONLY));
    assert!(read.segments.iter().all(|s| !s.is_writable));
    let write = map(&mut sharer, &file, 0, 10);
    let first = write.extents[0].mark;
    assert!(first != 0 && first != READ_ONLY);
    let read = sharer.map(&file, 1, false, &[(0, 0, 1 << 20)]).unwrap();
    assert_eq!(read.extents[0].mark, first);
    // Another client has marks of its own, in a page of its own.
    let mut other = rig.client();
    let same = other.open("/f", None, None);
    other.set_view(&same, 1, &whole());
    let mut second = Sharer::attach(&mut other, rig.number(0)).unwrap();
    let theirs = map(&mut second, &same, 0, 10);
    assert!(second.write(&theirs, 0, 0, &[2; 10]));
    assert!(sharer.write(&write, 0, 10, &[3; 10]));
    sync(&mut client, &file);
    let (_, bytes) = after_death(&rig, &file, 20);
    assert_eq!((&bytes[..10], &bytes[10..]), (&[2; 10][..], &[3; 10][..]));
}
