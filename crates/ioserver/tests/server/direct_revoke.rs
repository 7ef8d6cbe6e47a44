//! Direct access is taken back: by truncate, re-layout, removal, fences and death, from readers and
//! writers that end in time and from those that never do.

use std::time::Duration;

use wire::Status;
use wire::message::catalogue::{Close, MoveState, Relayout, RelayoutProgress, Unlink, UnlinkHow};
use wire::message::file::Truncate;

use crate::direct::{begin, refused, whole};
use crate::life::until;
use crate::rig::{Client, File, Rig, pattern, request_number};
use crate::sharer::Sharer;

/// Longer than anybody waits for an answer: whoever gets one has waited for nobody who does not move.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// A service that waits for claims until they end.
fn patient() -> Rig {
    Rig::with(1, |options| options.claim_wait = NEVER)
}

fn truncate(client: &mut Client, file: &mut File, to: u64) {
    let owner = file.state.owner.server;
    let cut = Truncate {
        view: 1,
        handle: file.opened.handle,
        to,
        request: request_number(),
    };
    let size = client.ask(owner, &cut).unwrap();
    file.epoch = size.epoch;
}

fn relayout(client: &mut Client, file: &mut File, layout: &str) {
    let request = Relayout {
        path: "/f".into(),
        layout: layout.into(),
        servers: Vec::new(),
        options: Default::default(),
    };
    client.ask_manager(&request).unwrap();
    until(|| {
        let asked = RelayoutProgress { file: file.id };
        let progress = client.ask_manager(&asked).unwrap();
        assert_ne!(progress.state, MoveState::Failed, "{progress:?}");
        progress.state == MoveState::Done
    });
    let epoch = file.epoch;
    *file = client.open("/f", None, None);
    file.epoch = epoch;
    client.set_view(file, 1, &whole());
}

fn remove(client: &mut Client, file: &File) {
    let unlink = Unlink {
        path: "/f".into(),
        how: UnlinkHow::EvenIfOpen,
    };
    client.ask_manager(&unlink).unwrap();
    let close = Close {
        handle: file.opened.handle,
        is_counted: false,
    };
    client.ask_manager(&close).unwrap();
}

fn grow(client: &mut Client, file: &File, end: u64) {
    let grow = wire::message::file::Grow {
        view: 1,
        epoch: file.epoch,
        end,
    };
    client.ask(file.state.owner.server, &grow).unwrap();
}

#[test]
fn a_truncate_takes_maps_back_and_regrown_bytes_are_zero() {
    let rig = patient();
    let (mut client, mut file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    let mapped = sharer.map(&file, 1, true, &[(0, 0, 200_000)]).unwrap();
    assert!(sharer.write(&mapped, 0, 0, &[5; 200_000]));
    grow(&mut client, &file, 200_000);
    // Also behind what was asked for, in the same extent.
    assert!(sharer.write(&mapped, 0, 200_000, &[6; 20_000]));
    truncate(&mut client, &mut file, 100_000);
    assert!(!sharer.is_current(&mapped));
    assert!(!sharer.write(&mapped, 0, 0, &[9; 10]));
    grow(&mut client, &file, 300_000);
    let (back, _) = client.read(&file, 1, &whole(), 0, 300_000).unwrap();
    assert!(back[..100_000].iter().all(|&b| b == 5));
    assert!(back[100_000..].iter().all(|&b| b == 0));
    // A map of the truncate before this one is refused, and of this one is as good as ever.
    let late = File {
        epoch: 0,
        id: file.id,
        state: file.state.clone(),
        opened: file.opened.clone(),
        number: 0,
    };
    let stale = sharer.map(&late, 1, false, &[(0, 0, 10)]);
    assert_eq!(refused(stale), Status::StaleEpoch);
    let mapped = sharer.map(&file, 1, false, &[(0, 0, 10)]).unwrap();
    assert_eq!(sharer.read(&mapped, 0, 0, 10).unwrap(), [5; 10]);
    assert_eq!(rig.count(0, "direct_claims_revoked"), 0);
}

#[test]
fn claims_that_end_in_time_are_waited_for_and_count() {
    let rig = patient();
    let (mut client, mut file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    client.write(&file, 1, &whole(), 0, &[1; 1000]).unwrap();
    let mapped = sharer.map(&file, 1, true, &[(0, 0, 1000)]).unwrap();
    let writer = sharer.claim(&mapped, true);
    let reader = sharer.claim(&mapped, false);
    std::thread::scope(|scope| {
        let cutting = scope.spawn(|| truncate(&mut client, &mut file, 500));
        until(|| !sharer.is_current(&mapped));
        sharer.store(&mapped, 0, 0, &[2; 500]);
        assert!(writer.end(), "it ended before it was revoked");
        assert_eq!(sharer.load(&mapped, 0, 0, 3), [2; 3]);
        assert!(reader.end());
        cutting.join().unwrap();
    });
    let (back, _) = client.read(&file, 1, &whole(), 0, 1000).unwrap();
    assert!(back[..500].iter().all(|&b| b == 2) && back[500..].iter().all(|&b| b == 0));
    assert!(rig.count(0, "direct_claims_waited") >= 2);
    assert_eq!(rig.count(0, "direct_claims_revoked"), 0);
    assert_eq!(rig.count(0, "direct_replaced_bytes"), 0);
}

#[test]
fn a_reader_that_never_ends_is_revoked_and_costs_nothing() {
    let rig = Rig::new(1);
    let (mut client, mut file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    client.write(&file, 1, &whole(), 0, &[1; 1000]).unwrap();
    let mapped = sharer.map(&file, 1, false, &[(0, 0, 1000)]).unwrap();
    let reader = sharer.claim(&mapped, false);
    assert!(sharer.is_current(&mapped));
    truncate(&mut client, &mut file, 0);
    assert!(!reader.end(), "what it read is nothing");
    assert_eq!(rig.count(0, "direct_claims_revoked"), 1);
    assert_eq!(rig.count(0, "direct_quarantined_bytes"), 0);
}

/// A writer that does not move: what happens to the file meanwhile is not disturbed by it.
fn stuck_writer(act: impl FnOnce(&mut Client, &mut File), replaced_bytes: Option<u64>) {
    let rig = Rig::new(1);
    let (mut client, mut file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    let data = pattern(1 << 20, 3);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    grow(&mut client, &file, 1 << 20);
    let mapped = sharer.map(&file, 1, true, &[(0, 0, 1 << 20)]).unwrap();
    let writer = sharer.claim(&mapped, true);
    assert!(sharer.is_current(&mapped));
    act(&mut client, &mut file);
    // Late stores, as far as the mapping reaches.
    sharer.store(&mapped, 0, 0, &vec![0xaa; 1 << 20]);
    assert!(rig.count(0, "direct_quarantined_bytes") >= 1 << 20);
    let (size, epoch) = {
        let size = wire::message::file::Size { view: 1 };
        match client.ask(file.state.owner.server, &size) {
            Ok(size) => (size.size, size.epoch),
            Err(_) => (0, 0), // removed
        }
    };
    file.epoch = epoch;
    if size > 0 {
        let (back, _) = client.read(&file, 1, &whole(), 0, size).unwrap();
        assert!(back == data[..size as usize]);
        // Everybody else goes on as ever.
        let mut second = Sharer::attach(&mut client, rig.number(0)).unwrap();
        let again = second.map(&file, 1, true, &[(0, 0, size)]).unwrap();
        assert!(second.write(&again, 0, 0, &[1; 100]));
        sharer.store(&mapped, 0, 0, &[0xbb; 100]);
        let (back, _) = client.read(&file, 1, &whole(), 0, 100).unwrap();
        assert_eq!(back, [1; 100]);
    }
    // The old generation of a new layout goes with the next report.
    until(|| rig.count(0, "subfiles") <= 1);
    let used = rig.count(0, "memory_bytes");
    assert!(used <= 2 << 20, "{used}");
    assert!(!writer.end(), "it was revoked");
    // Noticed now: nothing is kept for it any more.
    until(|| rig.count(0, "direct_quarantined_bytes") == 0);
    assert_eq!(rig.count(0, "memory_bytes"), used);
    assert_eq!(rig.count(0, "direct_claims_revoked"), 1);
    if let Some(bytes) = replaced_bytes {
        assert_eq!(rig.count(0, "direct_replaced_bytes"), bytes);
    }
}

#[test]
fn a_writer_that_never_ends_is_cut_off_by_a_truncate() {
    stuck_writer(
        |client, file| {
            truncate(client, file, 300_000);
        },
        None,
    );
}

#[test]
fn a_truncate_to_nothing_copies_nothing() {
    stuck_writer(
        |client, file| {
            truncate(client, file, 0);
        },
        Some(0),
    );
}

#[test]
fn a_writer_that_never_ends_is_cut_off_by_a_new_layout() {
    stuck_writer(
        |client, file| relayout(client, file, "striped(4MiB) over 1"),
        None,
    );
}

#[test]
fn a_writer_that_never_ends_is_cut_off_by_another_mode() {
    stuck_writer(
        |client, _| {
            let chmod = wire::message::catalogue::Chmod {
                path: "/f".into(),
                mode: 0o640,
            };
            client.ask_manager(&chmod).unwrap();
        },
        None,
    );
}

#[test]
fn bytes_of_another_mode_owner_or_directory_are_in_other_segments() {
    use wire::message::catalogue::{Chmod, Chown, Mkdir, Rename};
    let rig = Rig::new(1);
    let (mut client, file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    let data = pattern(200_000, 9);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let mut check = |sharer: &mut Sharer| {
        let mapped = sharer.map(&file, 1, true, &[(0, 0, 200_000)]).unwrap();
        assert!(sharer.read(&mapped, 0, 0, 200_000).unwrap() == data);
        for extent in &mapped.extents {
            assert!(seen.insert(extent.segment), "a segment of another domain");
        }
        mapped
    };
    let mapped = check(&mut sharer);
    let chmod = Chmod {
        path: "/f".into(),
        mode: 0o644,
    };
    client.ask_manager(&chmod).unwrap();
    assert!(!sharer.is_current(&mapped), "when the change is answered");
    let mapped = check(&mut sharer);
    let chown = Chown {
        path: "/f".into(),
        owner: Some(1234),
        group: Some(1234),
    };
    client.ask_manager(&chown).unwrap();
    assert!(!sharer.is_current(&mapped));
    let mapped = check(&mut sharer);
    let mkdir = Mkdir {
        path: "/d".into(),
        mode: 0o755,
    };
    client.ask_manager(&mkdir).unwrap();
    let rename = Rename {
        from: "/f".into(),
        to: "/d/f".into(),
    };
    client.ask_manager(&rename).unwrap();
    assert!(!sharer.is_current(&mapped));
    let mapped = check(&mut sharer);
    // Another name in the same directory changes nothing.
    let rename = Rename {
        from: "/d/f".into(),
        to: "/d/g".into(),
    };
    client.ask_manager(&rename).unwrap();
    assert!(sharer.is_current(&mapped));
}

#[test]
fn a_writer_that_never_ends_is_cut_off_by_a_removal() {
    // The client that shares has the file open; it is gone when the last handle is closed.
    let rig = Rig::new(1);
    let (mut client, file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    client.write(&file, 1, &whole(), 0, &[1; 1 << 20]).unwrap();
    let mapped = sharer.map(&file, 1, true, &[(0, 0, 1 << 20)]).unwrap();
    let writer = sharer.claim(&mapped, true);
    remove(&mut client, &file);
    until(|| rig.count(0, "subfiles") == 0);
    assert_eq!(rig.count(0, "memory_bytes"), 0);
    assert!(rig.count(0, "direct_quarantined_bytes") >= 1 << 20);
    // Created again in the same place: the late store is not in it.
    let file = client.open("/f", None, Some("striped(1MiB) over 1"));
    client.set_view(&file, 1, &whole());
    client.write(&file, 1, &whole(), 0, &[2; 1 << 20]).unwrap();
    sharer.store(&mapped, 0, 0, &vec![0xaa; 1 << 20]);
    let (back, _) = client.read(&file, 1, &whole(), 0, 1 << 20).unwrap();
    assert!(back.iter().all(|&b| b == 2));
    assert!(!writer.end());
    until(|| rig.count(0, "direct_quarantined_bytes") == 0);
    assert_eq!(rig.count(0, "direct_replaced_bytes"), 0);
}

#[test]
fn no_map_slips_in_while_a_file_is_cut() {
    let rig = patient();
    let (mut client, mut file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    client.write(&file, 1, &whole(), 0, &[1; 1000]).unwrap();
    let mapped = sharer.map(&file, 1, true, &[(0, 0, 1000)]).unwrap();
    let mut second = Sharer::attach(&mut client, rig.number(0)).unwrap();
    let old = File {
        id: file.id,
        state: file.state.clone(),
        opened: file.opened.clone(),
        epoch: file.epoch,
        number: 0,
    };
    // While this claim is waited for, the gate is closed.
    let writer = sharer.claim(&mapped, true);
    std::thread::scope(|scope| {
        let cutting = scope.spawn(|| truncate(&mut client, &mut file, 0));
        until(|| !sharer.is_current(&mapped));
        let asked = rig.count(0, "requests");
        let late = scope.spawn(|| second.map(&old, 1, false, &[(0, 0, 10)]));
        until(|| rig.count(0, "requests") > asked);
        assert!(!cutting.is_finished());
        assert!(writer.end());
        cutting.join().unwrap();
        // It came in after the cut, or not at all if that took too long.
        let late = refused(late.join().unwrap());
        assert!(matches!(late, Status::StaleEpoch | Status::Busy), "{late}");
    });
    // The same with many: whatever map is current shows what is there.
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (rig, is_over) = (&rig, &is_over);
        let id = file.id;
        scope.spawn(move || {
            let mut other = rig.client();
            let mut file = other.open("/f", None, None);
            assert_eq!(file.id, id);
            other.set_view(&file, 1, &whole());
            let mut sharer = Sharer::attach(&mut other, rig.number(0)).unwrap();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                match sharer.map(&file, 1, true, &[(0, 0, 70_000)]) {
                    Ok(mapped) => {
                        // Stores behind a size of 0: gone with the next truncate.
                        let _ = sharer.write(&mapped, 0, 0, &[9; 70_000]);
                    }
                    Err(_) => file.epoch += 1,
                }
            }
        });
        for _ in 0..50 {
            truncate(&mut client, &mut file, 0);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    truncate(&mut client, &mut file, 0);
    let (back, _) = client.read(&file, 1, &whole(), 0, 70_000).unwrap();
    assert!(back.iter().all(|&b| b == 0));
}

#[test]
fn random_pages_delay_a_revocation_and_nothing_else() {
    let rig = Rig::new(1);
    let (mut client, mut file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    client.write(&file, 1, &whole(), 0, &[1; 1000]).unwrap();
    let mapped = sharer.map(&file, 1, true, &[(0, 0, 1000)]).unwrap();
    // Every word of the page, through a second mapping of it.
    let attach = wire::message::direct::Attach {};
    let attached = sharer.link.ask(3, &attach, &mut Vec::new()).unwrap();
    let page = sharer.link.take_descriptors().pop().unwrap();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..6u64 {
        let mut words = Vec::new();
        for at in 0..attached.page_bytes / 8 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Some are claims of this very file.
            let word = match (round + at / 8) % 3 {
                0 => 1 << 63 | (u64::from(mapped.entry) + 1) << 40 | (mapped.epoch + round),
                1 => random,
                _ => u64::MAX,
            };
            words.extend(word.to_le_bytes());
        }
        rustix::io::pwrite(&page, &words, 0).unwrap();
        truncate(&mut client, &mut file, 1000 + round);
        client
            .write(&file, 1, &whole(), 0, &[round as u8; 1000])
            .unwrap();
        let (back, _) = client.read(&file, 1, &whole(), 0, 1000).unwrap();
        assert!(back.iter().all(|&b| b == round as u8));
        let _ = sharer.map(&file, 1, true, &[(0, 0, 1000)]);
    }
    // Gone with its client.
    drop((sharer, client));
    until(|| rig.count(0, "direct_clients") == 0);
    let mut later = rig.client();
    let mut file = later.open("/f", None, None);
    file.epoch = 6;
    later.set_view(&file, 1, &whole());
    assert_eq!(later.read(&file, 1, &whole(), 0, 1).unwrap().0, [5]);
}

#[test]
fn a_client_without_connections_stores_nothing_any_more() {
    let rig = Rig::new(1);
    let (mut client, file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    let data = pattern(1 << 20, 4);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    let mapped = sharer.map(&file, 1, true, &[(0, 0, 1 << 20)]).unwrap();
    let writer = sharer.claim(&mapped, true);
    // Its process lives on, and so does what it has mapped.
    client.lanes.clear();
    sharer.link.shutdown();
    until(|| rig.count(0, "direct_clients") == 0 && rig.count(0, "direct_quarantined_bytes") > 0);
    assert!(!sharer.is_current(&mapped));
    sharer.store(&mapped, 0, 0, &vec![0xaa; 1 << 20]);
    let mut other = rig.client();
    let file = other.open("/f", None, None);
    other.set_view(&file, 1, &whole());
    let (back, _) = other.read(&file, 1, &whole(), 0, 1 << 20).unwrap();
    assert!(back == data);
    assert!(!writer.end());
    until(|| rig.count(0, "direct_quarantined_bytes") == 0);
}
