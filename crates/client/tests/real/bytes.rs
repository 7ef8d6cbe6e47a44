//! Bytes through real servers: every layout under every view, ends, holes, openings, death.
//!
//! The model is a plain vector of bytes.

use std::time::{Duration, Instant};

use client::{File, OpenOptions, Status, View};
use layout::ViewOffset;

use crate::service::{Service, create, pattern};

const LAYOUTS: &[(&str, &str)] = &[
    ("u16[6,8]", "(block, *) onto 3"),
    ("u16[6,8]", "(cyclic(2), block(3)) onto 2x3"),
    ("u16[6,8]", "chunks(4,3) over 3"),
    ("u16[6,8]", "chunks(2,2)"),
    ("", "striped(5) over 3"),
    ("", "blocks(4: 0,1,1,0,2)"),
    ("", "vesta(4, 3)"),
    ("", "falls{(0,0,3,4); (1,2,3,4)} period 12"),
    ("", "whole"),
];

const VIEWS: &[(&str, &str)] = &[
    ("u16[6,8]", "(*, cyclic) onto 3 [0]"),
    ("u16[6,8]", "slice[1:6:2, 2:7]"),
    ("", "striped(7) over 2 [1]"),
    ("", "strided(3, 4: 3x9) period 40"),
    ("", "whole"),
];

fn places(view: &View, range: std::ops::Range<u64>) -> Vec<usize> {
    range
        .map(|k| view.view_to_file(ViewOffset(k)).unwrap().0 as usize)
        .collect()
}

fn write(file: &File, model: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    assert_eq!(file.write_at(offset, bytes).unwrap(), bytes.len());
    let range = offset..offset + bytes.len() as u64;
    for (x, byte) in places(&file.view(), range).into_iter().zip(bytes) {
        if model.len() <= x {
            model.resize(x + 1, 0);
        }
        model[x] = *byte;
    }
}

fn read(file: &File, model: &[u8], offset: u64, len: usize) {
    let mut buffer = vec![0xee; len];
    let n = file.read_at(offset, &mut buffer).unwrap();
    let shown = file.view().len_within(model.len() as u64);
    assert_eq!(n as u64, shown.saturating_sub(offset).min(len as u64));
    let expected: Vec<u8> = places(&file.view(), offset..offset + n as u64)
        .into_iter()
        .map(|x| model[x])
        .collect();
    assert!(buffer[..n] == expected[..], "{n} bytes at {offset}");
    assert!(buffer[n..].iter().all(|b| *b == 0xee), "nothing behind");
}

#[test]
fn every_layout_under_every_view_is_a_plain_file() {
    for servers in [1, 3, 4] {
        let service = Service::start(servers);
        let (client, other) = (service.connect(), service.connect());
        for (l, (array, layout)) in LAYOUTS.iter().enumerate() {
            for (v, (needs, view)) in VIEWS.iter().enumerate() {
                if !needs.is_empty() && needs != array {
                    continue;
                }
                let path = format!("/{l}-{v}");
                let file = create(&client, &path, array, layout);
                let mut model = Vec::new();
                file.set_view_text_at(v as u64, view).unwrap();
                write(&file, &mut model, 3, &pattern(29, l));
                write(&file, &mut model, 90, &pattern(700, l + v));
                write(&file, &mut model, 0, &pattern(1, v));
                for (offset, len) in [(0, 1), (2, 40), (0, 2000), (789, 9), (5000, 3)] {
                    read(&file, &model, offset, len);
                }
                let seen = other.open(&path, &OpenOptions::new().read()).unwrap();
                read(&seen, &model, 0, model.len() + 10);
                file.close().unwrap();
                client.unlink_unless_open(&path).unwrap_err();
                seen.close().unwrap();
                client.unlink_unless_open(&path).unwrap();
            }
        }
    }
}

#[test]
fn long_accesses_run_in_rounds() {
    let service = Service::start(3);
    let client = service.connect_how(false);
    let file = create(&client, "/f", "", "striped(4KiB) over 3");
    let bytes = pattern(3 << 20, 0);
    file.write_at(5, &bytes).unwrap();
    assert!(file.last_access().messages() > 12);
    let mut back = vec![0; 3 << 20];
    assert_eq!(file.read_at(5, &mut back).unwrap(), 3 << 20);
    assert!(back == bytes);
    file.set_view_text("striped(100) over 2 [1]").unwrap();
    file.write_at(0, &bytes[..1 << 20]).unwrap();
    assert_eq!(file.read_at(0, &mut back[..1 << 20]).unwrap(), 1 << 20);
    assert!(back[..1 << 20] == bytes[..1 << 20]);
}

/// Long runs of the user's memory go as they are, short ones are packed and spread in several steps of a message; both in
/// one message where a view has both.
#[test]
fn long_and_short_runs_of_long_messages_arrive_where_they_belong() {
    let service = Service::start_with(3, |_| {});
    let client = service.connect_how(false);
    let both = "falls{(0,2999); (3000,49999); (50000,69999)} period 70000";
    let layouts = [
        "striped(3000) over 3",
        "striped(20000) over 3",
        "striped(64KiB) over 2",
        both,
    ];
    for (n, layout) in layouts.into_iter().enumerate() {
        for (v, view) in [
            "whole",
            "striped(7) over 3 [1]",
            "striped(50000) over 2 [0]",
        ]
        .into_iter()
        .enumerate()
        {
            let file = create(&client, &format!("/{n}-{v}"), "", layout);
            file.set_view_text_at(v as u64, view).unwrap();
            let mut model = Vec::new();
            write(&file, &mut model, 11, &pattern(2_500_000, n + v));
            read(&file, &model, 0, 2_600_000);
            read(&file, &model, 1_234_567, 700_001);
            write(&file, &mut model, 777_777, &pattern(1_000_003, n));
            read(&file, &model, 3, 2_500_000);
        }
    }
}

#[test]
fn ends_and_holes_are_the_same_for_all_clients() {
    let service = Service::start(3);
    let (a, b) = (service.connect(), service.connect());
    let file = create(&a, "/f", "", "striped(10) over 3");
    let other = b.open("/f", &OpenOptions::new().read().write()).unwrap();
    let mut model = Vec::new();
    write(&file, &mut model, 500, &pattern(50, 0));
    read(&other, &model, 0, 600);
    other.resize(37).unwrap();
    model.truncate(37);
    read(&file, &model, 0, 600);
    write(&file, &mut model, 100, &pattern(9, 1));
    read(&other, &model, 0, 600);
    assert_eq!(other.size().unwrap(), 109);
    other.preallocate(200).unwrap();
    model.resize(200, 0);
    read(&file, &model, 90, 300);
    assert!(!file.sync().unwrap().is_durable, "memory is not");
}

#[test]
fn seed001_s14_open_close_delete_read_write_and_resize_as_mpi_has_them() {
    let service = Service::start(2);
    let client = service.connect();
    let nothing = client.open("/f", &OpenOptions::new().read()).unwrap_err();
    assert_eq!(nothing.status(), Status::NotFound);
    let exclusive = OpenOptions::new().write().exclusive();
    let file = client.open("/f", &exclusive).unwrap();
    assert!(file.is_new());
    let taken = client.open("/f", &exclusive).unwrap_err();
    assert_eq!(taken.status(), Status::Exists);
    let unique = OpenOptions::new().read().unique();
    assert_eq!(
        client.open("/f", &unique).unwrap_err().status(),
        Status::InUse
    );
    file.write(&pattern(100, 0)).unwrap();
    file.resize(50).unwrap();
    assert_eq!(file.size().unwrap(), 50);
    // Unlinked while open: still there for those who have it.
    client.unlink("/f").unwrap();
    assert!(client.attributes("/f").is_err());
    file.write_at(0, &[9]).unwrap();
    assert_eq!(file.size().unwrap(), 50);
    file.close().unwrap();
    let options = OpenOptions::new().read().write().create().delete_on_close();
    let file = client.open("/g", &options).unwrap();
    file.write(&[1]).unwrap();
    let alone = client.open("/g", &unique).unwrap_err();
    assert_eq!(alone.status(), Status::InUse);
    file.close().unwrap();
    assert_eq!(
        client.attributes("/g").unwrap_err().status(),
        Status::NotFound
    );
    assert_eq!(client.unlink("/g").unwrap_err().status(), Status::NotFound);
}

#[test]
fn seed001_s06_any_server_serves_any_client_and_any_file() {
    let service = Service::start(3);
    let clients: Vec<_> = (0..4).map(|_| service.connect()).collect();
    for i in 0..12 {
        let layout = ["whole", "striped(16) over 3", "striped(5) over 2"][i % 3];
        let file = create(&clients[i % 4], &format!("/{i}"), "", layout);
        file.write_at(0, &pattern(300, i)).unwrap();
    }
    for (c, client) in clients.iter().enumerate() {
        for i in 0..12 {
            let file = client
                .open(&format!("/{i}"), &OpenOptions::new().read())
                .unwrap();
            let mut back = [0; 300];
            assert_eq!(file.read_at(0, &mut back).unwrap(), 300);
            assert_eq!(back[..], pattern(300, i), "client {c}, file {i}");
        }
    }
    let used = service
        .servers
        .iter()
        .map(|s| clients[0].server_statistics(s.server()).unwrap().len());
    assert!(used.into_iter().all(|counters| counters > 0));
}

#[test]
fn a_server_that_stops_is_told_in_bounded_time() {
    let mut service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(10) over 3");
    file.write_at(0, &pattern(90, 0)).unwrap();
    let owner = file.layout().owner.server;
    let gone = service
        .servers
        .iter()
        .position(|s| s.server().0 != owner)
        .unwrap();
    let number = service.servers[gone].server();
    service.servers.remove(gone).stop();
    let started = Instant::now();
    let error = file.read_at(0, &mut [0; 90]).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(60), "no hang");
    assert!(
        matches!(error.status(), Status::Unreachable | Status::Lost),
        "{error}"
    );
    assert!(error.to_string().contains(&number.to_string()), "{error}");
    // Bytes of the others are served.
    let found = (0..9).filter(|i| file.read_at(i * 10, &mut [0; 10]) == Ok(10));
    assert_eq!(found.count(), 6);
}

#[test]
fn a_manager_that_restarts_is_found_again() {
    let mut service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(10) over 2");
    file.write_at(0, &pattern(90, 0)).unwrap();
    let handle = file.handle();
    service.manager = None;
    // Bytes need no manager.
    file.write_at(5, &pattern(90, 1)).unwrap();
    service.start_manager();
    assert_eq!(client.attributes("/f").unwrap().file, file.id());
    assert_ne!(file.handle(), handle, "opened again");
    file.resize(20).unwrap();
    assert_eq!(file.size().unwrap(), 20);
    file.close().unwrap();
    client.unlink("/f").unwrap();
}

#[test]
fn a_steady_access_allocates_nothing() {
    let service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(64) over 3");
    let mut buffer = pattern(60_000, 0);
    for (view, len) in [
        ("whole", 40),
        ("whole", 60_000),
        ("striped(8) over 3 [1]", 3000),
    ] {
        file.set_view_text(view).unwrap();
        for _ in 0..3 {
            file.write_at(5, &buffer[..len]).unwrap();
            file.read_at(5, &mut buffer[..len]).unwrap();
        }
        let info = allocation_counter::measure(|| {
            file.write_at(5, &buffer[..len]).unwrap();
            file.read_at(5, &mut buffer[..len]).unwrap();
        });
        assert_eq!(info.count_total, 0, "{len} bytes of {view}");
    }
}

#[test]
fn many_subfiles_are_found_without_trying_each() {
    // More than are tried in turn, at the client and at each server.
    let service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(10) over 300");
    let bytes = pattern(9000, 1);
    for (i, part) in bytes.chunks(977).enumerate() {
        file.write_at(i as u64 * 977, part).unwrap();
    }
    let mut back = vec![0; 9000];
    assert_eq!(file.read_at(0, &mut back).unwrap(), 9000);
    assert!(back == bytes);
    // Stripes 299 and 0 of the next round, which lie at the last and the first server.
    let mut seam = [0; 20];
    file.read_at(2990, &mut seam).unwrap();
    assert_eq!(seam, bytes[2990..3010]);
    assert_eq!(file.last_access().servers.len(), 2);
}
