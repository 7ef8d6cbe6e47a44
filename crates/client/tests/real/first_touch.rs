//! Memory that is used for the first time: servers have it ready, clients do not map what was not, and what is
//! mapped stays mapped when files are closed.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use client::{File, OpenOptions};
use store::Pages;

use crate::service::{Service, create, pattern};

const MIB: usize = 1 << 20;

fn counter(service: &Service, name: &str) -> u64 {
    let counters = service.servers[0].statistics();
    let found = counters.into_iter().find(|c| c.name == name);
    found.expect("it is counted").value
}

/// Waits until the server has as much ready as it wants.
fn wait_until_ready(service: &Service) {
    let start = Instant::now();
    let is_there = || {
        let wanted = counter(service, "reserve_wanted_bytes");
        counter(service, "warm_bytes") == 0 && counter(service, "reserve_bytes") >= wanted
    };
    let (never, condition) = (Mutex::new(()), Condvar::new());
    while !is_there() {
        assert!(start.elapsed() < Duration::from_secs(20), "never ready");
        let pause = Duration::from_millis(2);
        drop(
            condition
                .wait_timeout(never.lock().unwrap(), pause)
                .unwrap(),
        );
    }
}

fn write_all(file: &File, mib: usize, seed: usize) {
    for i in 0..mib {
        let bytes = pattern(MIB, seed + i);
        assert_eq!(file.write_at((i * MIB) as u64, &bytes), Ok(MIB));
    }
}

fn check_all(file: &File, mib: usize, seed: usize) {
    let mut buffer = vec![0; MIB];
    for i in 0..mib {
        assert_eq!(file.read_at((i * MIB) as u64, &mut buffer), Ok(MIB));
        assert!(buffer == pattern(MIB, seed + i), "MiB {i}");
    }
}

#[test]
fn mappings_survive_closing_and_opening() {
    let service = Service::start(1);
    let client = service.connect();
    let file = create(&client, "/f", "", "whole");
    for round in 0..3 {
        write_all(&file, 8, round);
        check_all(&file, 8, round);
    }
    let warm = client.direct_statistics();
    assert!(warm.populate_calls > 0, "{warm:?}");
    file.close().unwrap();
    for round in 3..6 {
        let file = client
            .open("/f", &OpenOptions::new().read().write())
            .unwrap();
        check_all(&file, 8, round - 1);
        write_all(&file, 8, round);
        file.close().unwrap();
    }
    let after = client.direct_statistics();
    assert!(
        after.written_bytes >= warm.written_bytes + 20 * MIB as u64,
        "{after:?}"
    );
    assert_eq!(after.populate_calls, warm.populate_calls);
    assert_eq!(after.unmapped_bytes, warm.unmapped_bytes);
}

#[test]
fn memory_that_was_not_ready_is_written_without_mapping_it() {
    let service = Service::start_with(1, |options| options.pages = Pages::Small);
    let client = service.connect();
    let file = create(&client, "/f", "", "whole");
    // More at once than a server of this size has ready.
    let bytes = pattern(40 * MIB, 1);
    assert_eq!(file.write_at(0, &bytes), Ok(40 * MIB));
    let first = client.direct_statistics();
    assert!(first.unmapped_bytes >= 24 * MIB as u64, "{first:?}");
    let mut buffer = vec![0; 40 * MIB];
    assert_eq!(file.read_at(0, &mut buffer), Ok(40 * MIB));
    assert!(buffer == bytes);
}

#[test]
fn large_pages_are_mapped_also_when_they_were_not_ready() {
    let service = Service::start(1);
    if counter(&service, "large_pages") == 0 {
        return testkit::skipped("neither the host nor its kernel gives large pages");
    }
    let client = service.connect();
    let file = create(&client, "/f", "", "whole");
    let bytes = pattern(40 * MIB, 1);
    assert_eq!(file.write_at(0, &bytes), Ok(40 * MIB));
    let first = client.direct_statistics();
    // A kernel that has few of them left gives small ones.
    assert!(first.unmapped_bytes <= 20 * MIB as u64, "{first:?}");
    let mut buffer = vec![0; 40 * MIB];
    assert_eq!(file.read_at(0, &mut buffer), Ok(40 * MIB));
    assert!(buffer == bytes);
}

#[test]
fn what_one_process_stored_first_another_finds_and_overwrites() {
    let service = Service::start(2);
    let (a, b) = (service.connect(), service.connect());
    let plain = service.connect_how(false);
    // Neighbours share pages: neither overwrites what the other has stored there.
    let file_a = create(&a, "/f", "", "striped(64KiB) over 2");
    let file_b = b.open("/f", &OpenOptions::new().read().write()).unwrap();
    let len = 47_008;
    for i in 0..60usize {
        let file = if i % 2 == 0 { &file_a } else { &file_b };
        let bytes = pattern(len, i);
        assert_eq!(file.write_at((i * len) as u64, &bytes), Ok(len));
    }
    let reader = plain.open("/f", &OpenOptions::new().read()).unwrap();
    let mut buffer = vec![0; len];
    for i in 0..60usize {
        for file in [&file_a, &file_b, &reader] {
            assert_eq!(file.read_at((i * len) as u64, &mut buffer), Ok(len));
            assert!(buffer == pattern(len, i), "record {i}");
        }
    }
}

#[test]
fn a_new_file_finds_memory_ready_also_in_a_new_directory() {
    let service = Service::start(1);
    let client = service.connect();
    wait_until_ready(&service);
    assert!(counter(&service, "reserve_bytes") >= 4 * MIB as u64);
    for dir in ["/a", "/b"] {
        client.mkdir(dir, None).unwrap();
        let fresh = counter(&service, "extents_fresh");
        let ready = counter(&service, "extents_ready");
        let file = create(&client, &format!("{dir}/f"), "", "whole");
        // As much again is made ahead of it.
        write_all(&file, 2, 3);
        assert_eq!(counter(&service, "extents_fresh"), fresh, "{dir}");
        assert!(counter(&service, "extents_ready") > ready, "{dir}");
        check_all(&file, 2, 3);
        wait_until_ready(&service);
    }
}

#[test]
fn memory_of_a_removed_file_is_zero_in_the_next_one() {
    let service = Service::start(1);
    let client = service.connect();
    for round in 0..6 {
        let file = create(&client, "/f", "", "whole");
        // With a hole before it.
        let bytes = pattern(3 * MIB, round);
        assert_eq!(file.write_at(MIB as u64, &bytes), Ok(3 * MIB));
        let mut buffer = vec![1; 4 * MIB];
        assert_eq!(file.read_at(0, &mut buffer), Ok(4 * MIB));
        assert!(buffer[..MIB].iter().all(|b| *b == 0), "round {round}");
        assert!(buffer[MIB..] == bytes[..], "round {round}");
        file.resize((6 * MIB) as u64).unwrap();
        assert_eq!(file.read_at((4 * MIB) as u64, &mut buffer), Ok(2 * MIB));
        assert!(buffer[..2 * MIB].iter().all(|b| *b == 0), "round {round}");
        file.close().unwrap();
        client.unlink("/f").unwrap();
    }
}
