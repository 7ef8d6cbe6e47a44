//! Direct access: what clients are given, and that bytes are the same on both ways.
//!
//! How it is taken back is in `direct_revoke`.

use layout::View;
use wire::ask::AskError;
use wire::message::Bytes;
use wire::message::catalogue::{Open, OpenOptions};
use wire::message::direct::{Attach, Map, SubfileRange};
use wire::message::file::DropView;
use wire::url::Endpoint;
use wire::{Rights, Status};

use crate::rig::{Client, File, Rig, pattern};
use crate::sharer::Sharer;

pub(crate) fn whole() -> View {
    View::whole_file()
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, AskError>) -> Status {
    match answer {
        Err(AskError::Refused(status, _)) => status,
        other => panic!("not refused: {other:?}"),
    }
}

/// One file with a view 1 over all of it, and somebody who shares memory with its first server.
pub(crate) fn begin(rig: &Rig, path: &str, layout: &str) -> (Client, File, Sharer) {
    let mut client = rig.client();
    let file = client.open(path, None, Some(layout));
    client.set_view(&file, 1, &whole());
    let sharer = Sharer::attach(&mut client, rig.number(0)).unwrap();
    (client, file, sharer)
}

/// Writes many bytes to the first subfile, directly.
fn fill(rig: &Rig, client: &mut Client, file: &File, view: u64, len: u64, byte: u8) {
    let mut sharer = Sharer::attach(client, rig.number(0)).unwrap();
    for at in (0..len).step_by(1 << 20) {
        let mapped = sharer
            .map(file, view, true, &[(0, at, at + (1 << 20))])
            .unwrap();
        assert!(sharer.write(&mapped, 0, at, &vec![byte; 1 << 20]));
    }
}

fn open_for(client: &mut Client, path: &str, rights: Rights) -> File {
    let request = Open {
        path: path.into(),
        options: OpenOptions {
            rights,
            ..OpenOptions::default()
        },
    };
    let opened: wire::message::catalogue::OpenAnswer = client.ask_manager(&request).unwrap();
    File {
        id: opened.attributes.file,
        state: opened.layout.clone(),
        opened,
        epoch: 0,
        number: 0,
    }
}

#[test]
fn bytes_are_the_same_through_maps_and_by_message() {
    let rig = Rig::new(1);
    let (mut client, file, mut sharer) = begin(&rig, "/f", "striped(1000) over 2");
    let data = pattern(300_000, 1);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    let mapped = sharer
        .map(&file, 1, false, &[(0, 0, 150_000), (1, 0, 150_000)])
        .unwrap();
    assert!(!mapped.segments.is_empty() && mapped.gone.is_empty());
    let of_subfile = |s: u64| -> Vec<u8> {
        let own = (0..300_000).filter(|x| x / 1000 % 2 == s);
        own.map(|x: u64| data[x as usize]).collect()
    };
    for subfile in 0..2 {
        let read = sharer.read(&mapped, subfile, 0, 150_000).unwrap();
        assert!(read == of_subfile(u64::from(subfile)));
    }
    // Storing, in what is there and in what is made for it.
    let mapped = sharer
        .map(&file, 1, true, &[(1, 100_000, 400_000)])
        .unwrap();
    assert!(sharer.write(&mapped, 1, 100_000, &[7; 300_000]));
    let (back, _) = client.read(&file, 1, &whole(), 0, 800_000).unwrap();
    for (x, &byte) in back.iter().enumerate() {
        let (subfile, offset) = (x / 1000 % 2, x / 2000 * 1000 + x % 1000);
        let expected = match subfile {
            1 if (100_000..400_000).contains(&offset) => 7,
            _ => data.get(x).copied().unwrap_or(0),
        };
        assert_eq!(byte, expected, "byte {x}");
    }
    // A second connection is given the same page and the segments again.
    let mut second = Sharer::attach(&mut client, rig.number(0)).unwrap();
    let again = second.map(&file, 1, false, &[(1, 0, 10)]).unwrap();
    assert_eq!(again.entry, mapped.entry);
    assert!(!again.segments.is_empty());
    let claim = sharer.claim(&mapped, false);
    assert!(second.read(&again, 1, 100_000, 5).unwrap() == [7; 5]);
    assert!(claim.end());
    assert_eq!(rig.count(0, "direct_clients"), 1);
    assert_eq!(rig.count(0, "direct_entries"), 1);
    assert!(rig.count(0, "direct_maps") >= 3);
    assert!(rig.count(0, "direct_mapped_extents") >= 3);
}

#[test]
fn the_first_map_has_the_whole_file_and_runs_are_merged() {
    let rig = Rig::new(1);
    let (mut client, file, _) = begin(&rig, "/f", "striped(1GiB) over 1");
    fill(&rig, &mut client, &file, 1, 9 << 20, 3);
    let mut other = rig.client();
    let file = other.open("/f", None, None);
    other.set_view(&file, 1, &whole());
    let mut sharer = Sharer::attach(&mut other, rig.number(0)).unwrap();
    let mapped = sharer
        .map(&file, 1, false, &[(0, 5 << 20, (5 << 20) + 1)])
        .unwrap();
    let bytes: u64 = mapped.extents.iter().map(|e| e.len).sum();
    assert!(bytes >= 9 << 20);
    assert!(mapped.extents.len() <= 9, "{} runs", mapped.extents.len());
    let ascends = |w: &[wire::message::direct::MappedExtent]| w[0].offset + w[0].len <= w[1].offset;
    assert!(mapped.extents.windows(2).all(ascends));
    assert!(sharer.read(&mapped, 0, 0, 1 << 10).unwrap() == [3; 1 << 10]);
    // A later one of the same epoch only adds; what was given is not given again.
    let again = sharer.map(&file, 1, false, &[(0, 0, 1)]).unwrap();
    assert_eq!((again.entry, again.epoch), (mapped.entry, mapped.epoch));
    assert!(again.segments.is_empty());
    assert!(again.extents.len() <= mapped.extents.len());
}

#[test]
fn rights_of_the_view_are_the_rights_of_the_map() {
    let rig = Rig::new(1);
    let (mut client, file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    client.write(&file, 1, &whole(), 0, &[1; 1000]).unwrap();
    let reading = open_for(&mut client, "/f", Rights::READ);
    client.set_view(&reading, 2, &whole());
    let writing = open_for(&mut client, "/f", Rights::WRITE);
    client.set_view(&writing, 3, &whole());
    let all = [(0, 0, 1000)];
    // The sharer maps what it gets and tries to map it for writing too.
    let mapped = sharer.map(&reading, 2, false, &all).unwrap();
    assert!(mapped.segments.iter().all(|s| !s.is_writable));
    assert_eq!(sharer.read(&mapped, 0, 0, 3).unwrap(), [1; 3]);
    let denied = sharer.map(&reading, 2, true, &all);
    assert_eq!(refused(denied), Status::PermissionDenied);
    let denied = sharer.map(&writing, 3, false, &all);
    assert_eq!(refused(denied), Status::PermissionDenied);
    // Who may write gets the same segment again, for writing.
    let mapped = sharer.map(&writing, 3, true, &all).unwrap();
    assert!(mapped.segments.len() == 1 && mapped.segments[0].is_writable);
    assert!(sharer.write(&mapped, 0, 10, &[9; 10]));
    let (back, _) = client.read(&file, 1, &whole(), 0, 30).unwrap();
    assert_eq!(back[..], [[1; 10], [9; 10], [1; 10]].concat());
    client
        .ask(rig.number(0), &DropView { view: 3, maps: 0 })
        .unwrap();
    let unknown = sharer.map(&writing, 3, true, &all);
    assert_eq!(refused(unknown), Status::UnknownView);
}

#[test]
fn memory_is_shared_over_unix_sockets_by_servers_that_want_to() {
    let rig = Rig::with(1, |o| {
        o.listen = Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: 0,
        };
    });
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(1MiB) over 1"));
    client.set_view(&file, 1, &whole());
    let server = rig.number(0);
    assert_eq!(refused(client.ask(server, &Attach {})), Status::Unsupported);
    let rig = Rig::with(1, |o| o.direct = false);
    let mut client = rig.client();
    assert_eq!(
        refused(client.ask(rig.number(0), &Attach {})),
        Status::Unsupported
    );
    assert_eq!(rig.count(0, "direct_clients"), 0);
}

#[test]
fn hostile_maps_are_refused_or_clipped() {
    let rig = Rig::new(2);
    let (mut client, file, mut sharer) = begin(&rig, "/f", "striped(64KiB) over 2");
    let here = (0..2)
        .find(|&s| file.state.pieces[0].places[s as usize][0].server == rig.number(0))
        .unwrap();
    // Before an attach nothing is mapped.
    let mut version = Vec::new();
    file.state.version().put(&mut version);
    let request = |ranges: Vec<SubfileRange>| Map {
        view: 1,
        version: Bytes(version.clone()),
        epoch: 0,
        writes: true,
        ranges,
    };
    let range = |subfile, start, end| SubfileRange {
        store: file.state.pieces[0].generation,
        subfile,
        start,
        end,
    };
    let mut other = rig.client();
    let early = other.ask(rig.number(0), &request(vec![]));
    assert_eq!(refused(early), Status::Unsupported);
    let wrong = [
        vec![range(1 - here, 0, 10)],
        vec![range(77, 0, 10)],
        vec![range(u32::MAX, 0, 10)],
        vec![range(here, 10, 0)],
        vec![range(here, 0, u64::MAX)],
        vec![range(here, u64::MAX, u64::MAX)],
        (0..5000).map(|_| range(here, 0, 1)).collect(),
    ];
    for ranges in wrong {
        assert_eq!(
            refused(sharer.ask(&request(ranges))),
            Status::InvalidArgument
        );
    }
    // A terabyte is not made; a part of it is.
    let before = rig.count(0, "memory_bytes");
    let mapped = sharer.ask(&request(vec![range(here, 0, 1 << 40)])).unwrap();
    let made: u64 = mapped.extents.iter().map(|e| e.len).sum();
    assert_eq!(made, 64 << 20);
    assert!(rig.count(0, "memory_bytes") - before <= 64 << 20);
    // More than there is room for is refused, and nothing of it is kept.
    let before = rig.count(0, "memory_bytes");
    let far = (1..5).map(|k| range(here, k << 30, (k << 30) + (100 << 20)));
    let full = sharer.ask(&request(far.collect()));
    assert_eq!(refused(full), Status::NoMemory);
    assert!(rig.count(0, "memory_bytes") <= before + ((3 * 64) << 20));
    // A wrong version or epoch is refused as for any access.
    let mut stale = request(vec![range(here, 0, 10)]);
    stale.epoch = 5;
    assert!(sharer.ask(&stale).is_err());
    let mut garbled = request(vec![range(here, 0, 10)]);
    garbled.version = Bytes(vec![0xff; 100]);
    assert!(sharer.ask(&garbled).is_err());
    // The service is as before.
    client.write(&file, 1, &whole(), 0, &[5; 10]).unwrap();
    let empty = sharer.ask(&request(vec![])).unwrap();
    assert!(empty.extents.is_empty());
}

#[test]
fn segments_that_are_closed_are_named() {
    let rig = Rig::with(1, |o| o.store = crate::rig::memory(8 << 20));
    let (mut client, file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    fill(&rig, &mut client, &file, 1, 6 << 20, 1);
    let mapped = sharer.map(&file, 1, false, &[(0, 0, 1)]).unwrap();
    let given: Vec<u64> = mapped.segments.iter().map(|s| s.segment).collect();
    let unlink = wire::message::catalogue::Unlink {
        path: "/f".into(),
        how: wire::message::catalogue::UnlinkHow::EvenIfOpen,
    };
    client.ask_manager(&unlink).unwrap();
    let close = wire::message::catalogue::Close {
        handle: file.opened.handle,
        is_counted: false,
    };
    client.ask_manager(&close).unwrap();
    // The entry is given back after the bytes.
    crate::life::until(|| rig.count(0, "subfiles") == 0 && rig.count(0, "direct_entries") == 0);
    assert!(!sharer.is_current(&mapped));
    // A file of another domain needs the room.
    let make = wire::message::catalogue::Mkdir {
        path: "/d".into(),
        mode: 0o700,
    };
    client.ask_manager(&make).unwrap();
    let second = client.open("/d/g", None, Some("striped(1MiB) over 1"));
    client.set_view(&second, 2, &whole());
    fill(&rig, &mut client, &second, 2, 8 << 20, 2);
    // The segment ends with its last chunk, which the thread of the pool may still have at work.
    let mut gone = Vec::new();
    crate::life::until(|| {
        let mapped = sharer.map(&second, 2, false, &[(0, 0, 1)]).unwrap();
        assert_eq!(sharer.read(&mapped, 0, 0, 3).unwrap(), [2; 3]);
        gone.extend(mapped.gone);
        !gone.is_empty()
    });
    assert_eq!(gone, given);
}

#[test]
fn nothing_is_left_of_clients_that_are_gone() {
    let rig = Rig::new(1);
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let round = |rig: &Rig| {
        let (mut client, file, mut sharer) = begin(rig, "/f", "striped(1MiB) over 1");
        client.write(&file, 1, &whole(), 0, &[1; 100]).unwrap();
        let mapped = sharer.map(&file, 1, true, &[(0, 0, 100)]).unwrap();
        assert!(sharer.write(&mapped, 0, 0, &[2; 100]));
        let goodbye = wire::message::session::Goodbye {};
        client.ask(rig.number(0), &goodbye).unwrap();
        client.ask_manager(&goodbye).unwrap();
    };
    round(&rig);
    crate::life::until(|| rig.count(0, "clients") == 0 && rig.count(0, "direct_clients") == 0);
    let before = descriptors();
    for _ in 0..20 {
        round(&rig);
    }
    crate::life::until(|| rig.count(0, "clients") == 0 && rig.count(0, "direct_clients") == 0);
    // One for each client would be twenty. Servers that ask the metadata manager several things at once have some more
    // connections to it from then on.
    crate::life::until(|| descriptors() < before + 10);
}

/// A service with one disk and little memory that writes through.
fn disk_rig(memory_bytes: u64) -> Rig {
    Rig::on_disk(memory_bytes, true)
}

#[test]
fn a_disk_server_hands_out_what_is_in_memory_for_reading() {
    let rig = disk_rig(64 << 20);
    let (mut client, file, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    let data = pattern(300_000, 5);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    let mapped = sharer.map(&file, 1, false, &[(0, 0, 300_000)]).unwrap();
    assert!(mapped.segments.iter().all(|s| !s.is_writable));
    assert!(sharer.read(&mapped, 0, 0, 300_000).unwrap() == data);
    // Bytes that are written later are seen, and nobody else stores into this memory.
    client.write(&file, 1, &whole(), 1000, &[9; 500]).unwrap();
    assert_eq!(sharer.read(&mapped, 0, 1000, 500).unwrap(), [9; 500]);
    let denied = sharer.map(&file, 1, true, &[(0, 0, 300_000)]);
    assert_eq!(refused(denied), Status::Unsupported);
}

#[test]
fn mapped_extents_of_a_disk_server_are_evicted_after_their_maps_are_taken_back() {
    let rig = disk_rig(4 << 20);
    let (mut client, first, mut sharer) = begin(&rig, "/f", "striped(1MiB) over 1");
    let second = client.open("/g", None, Some("striped(1MiB) over 1"));
    client.set_view(&second, 2, &whole());
    let data = pattern(4 << 20, 5);
    client.write(&first, 1, &whole(), 0, &data).unwrap();
    let mapped = sharer.map(&first, 1, false, &[(0, 0, 4 << 20)]).unwrap();
    let bytes: u64 = mapped.extents.iter().map(|e| e.len).sum();
    assert!(bytes >= 4 << 20);
    // There is no room for this beside what is mapped.
    let other = pattern(1 << 20, 6);
    client.write(&second, 2, &whole(), 0, &other).unwrap();
    assert!(!sharer.is_current(&mapped));
    assert!(rig.count(0, "direct_revocations") >= 1);
    // Loaded again for whoever wants a part of it.
    let mapped = sharer
        .map(&first, 1, false, &[(0, 1 << 20, (1 << 20) + 10)])
        .unwrap();
    let found = sharer.read(&mapped, 0, 1 << 20, 10).unwrap();
    assert_eq!(found, data[1 << 20..(1 << 20) + 10]);
    let (back, _) = client.read(&second, 2, &whole(), 0, 1 << 20).unwrap();
    assert!(back == other);
    let (back, _) = client.read(&first, 1, &whole(), 0, 4 << 20).unwrap();
    assert!(back == data);
}
