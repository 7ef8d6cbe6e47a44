//! A service whose processes are started anew one after the other while programs write, read and look up files: nothing fails, nothing is
//! lost, and what is there in memory stays.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use client::{Client, OpenOptions};
use serde_json::Value;

use crate::scratch::{Scratch, connect, pids};

const BLOCK: usize = 64 << 10;
const BLOCKS: u64 = 16;

/// Writes blocks and reads them again, until it is over; how many.
fn write_and_read(client: &Client, path: &str, is_over: &AtomicBool, count: &AtomicU64) {
    let options = OpenOptions::new().read().write().create();
    let options = options.layout("striped(16KiB) over 2");
    let file = client.open(path, &options).expect("opened");
    let mut last = [None; BLOCKS as usize];
    let mut bytes = vec![0; BLOCK];
    let mut round = 0u64;
    while !is_over.load(Ordering::SeqCst) {
        let block = round % BLOCKS;
        let at = block * BLOCK as u64;
        let mark = (round % 251) as u8;
        assert_eq!(
            file.write_at(at, &vec![mark; BLOCK]).expect("written"),
            BLOCK
        );
        if round.is_multiple_of(7) {
            file.sync().expect("synced");
        }
        last[block as usize] = Some(mark);
        let other = (round * 5) % BLOCKS;
        if let Some(mark) = last[other as usize] {
            let read = file
                .read_at(other * BLOCK as u64, &mut bytes)
                .expect("read");
            assert_eq!(read, BLOCK);
            assert!(
                bytes.iter().all(|&byte| byte == mark),
                "block {other} in round {round}"
            );
        }
        count.fetch_add(1, Ordering::SeqCst);
        round += 1;
    }
    file.sync().expect("synced");
    file.close().expect("closed");
}

/// Makes, looks up and removes names, until it is over.
fn name(client: &Client, is_over: &AtomicBool, count: &AtomicU64) {
    let mut round = 0;
    while !is_over.load(Ordering::SeqCst) {
        let path = format!("/names/{round}");
        client.create(&path, &OpenOptions::new()).expect("made");
        assert_eq!(client.attributes(&path).expect("found").size, 0);
        client.unlink(&path).expect("removed");
        count.fetch_add(1, Ordering::SeqCst);
        round += 1;
    }
}

/// Ends the load also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[track_caller]
fn restart_under_load(scratch: &Scratch, store: &[&str]) {
    let up = scratch.up(&[&["--servers", "2"], store].concat());
    let url = up["url"].as_str().expect("a URL");
    connect(url).mkdir("/names", None).expect("made");
    let is_over = AtomicBool::new(false);
    let counts = [0; 3].map(AtomicU64::new);
    let told: Value = std::thread::scope(|scope| {
        let (is_over, counts) = (&is_over, &counts);
        let over = Over(is_over);
        let mut load = Vec::new();
        for (index, count) in counts[..2].iter().enumerate() {
            let path = format!("/file-{index}");
            load.push(scope.spawn(move || write_and_read(&connect(url), &path, is_over, count)));
        }
        load.push(scope.spawn(move || name(&connect(url), is_over, &counts[2])));
        let told = scratch.json(&["restart", "--json"]);
        // All go on behind it.
        let before = counts.each_ref().map(|count| count.load(Ordering::SeqCst));
        for (count, before) in counts.iter().zip(before) {
            crate::scratch::wait_until("the load goes on", || {
                (count.load(Ordering::SeqCst) > before + 10).then_some(())
            });
        }
        drop(over);
        for thread in load {
            thread.join().expect("nothing fails");
        }
        told
    });
    let processes = told["processes"].as_array().expect("processes");
    let names: Vec<&str> = processes
        .iter()
        .filter_map(|p| p["process"].as_str())
        .collect();
    assert_eq!(
        names,
        ["I/O server 0", "I/O server 1", "the metadata manager"]
    );
    let now: Value = serde_json::from_str(
        &std::fs::read_to_string(scratch.path(".pario/service.json")).expect("a note"),
    )
    .expect("JSON");
    let (before, now) = (pids(&up), pids(&now));
    assert_eq!(before[0], now[0], "the supervisor stays");
    for (before, now) in before.iter().zip(&now).skip(1) {
        assert_ne!(before, now, "{told}");
    }
    assert_eq!(scratch.json(&["doctor", "--json"])["is_well"], true);
    scratch.text(&["down"]);
}

#[test]
fn rolling_restart_on_disks_is_a_pause() {
    let scratch = Scratch::new("rolling");
    restart_under_load(&scratch, &["--store", "disk"]);
}

#[test]
fn rolling_restart_in_memory_keeps_what_is_there() {
    let scratch = Scratch::new("rolling-memory");
    restart_under_load(&scratch, &["--store", "memory", "--memory", "64MiB"]);
}

#[test]
fn restart_says_what_it_cannot_do() {
    let scratch = Scratch::new("no-restart");
    let refusal = scratch.refused(&["restart"]);
    assert!(refusal.contains("no service runs in .pario"), "{refusal}");
    let (_meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
    let refusal = scratch.refused(&["--url", &url, "restart"]);
    assert!(
        refusal.contains("`pario up` has started on this host"),
        "{refusal}"
    );
}
