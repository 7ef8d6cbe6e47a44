//! Collective read-ahead: the same bytes in all four forms, whatever is predicted and whoever writes in between.
//!
//! Four ranks read a file segment by segment through interleaved views, as servers direct it; what servers
//! prepared and what became of it is counted by them.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use client::{Client, File, Hints, OpenOptions, Places, SharedBytes, SharedBytesMut, Team};
use ioserver::StoreOptions;
use store::{DiskRequest, WatchedDisk, Watcher};

use crate::service::{Service, pattern, socket};

const RANKS: usize = 4;
const UNIT: u64 = 256;
/// Bytes of a rank in a segment.
const PART: u64 = 32 << 10;
const FORMS: [&str; 4] = ["none", "disk", "packets", "exchanged"];

/// Disk servers with an empty memory and a file of so many segments, or memory servers.
fn begin(on_disk: bool, segments: u64) -> (Service, Vec<u8>) {
    let mut service = Service::start(if on_disk { 0 } else { 3 });
    if on_disk {
        start_disks(&mut service, 0);
    }
    let bytes = pattern((segments * PART) as usize * RANKS, 9);
    let client = service.connect_how(false);
    let options = OpenOptions::new()
        .read()
        .write()
        .create()
        .layout("striped(12288) over 3");
    let file = client.open("/f", &options).unwrap();
    file.write_at(0, &bytes).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    drop(client);
    if on_disk {
        for server in service.servers.drain(..) {
            server.stop();
        }
        start_disks(&mut service, 1);
    }
    (service, bytes)
}

fn start_disks(service: &mut Service, start: usize) {
    for i in 0..3 {
        let dir = service.dir.join(format!("disk-{i}"));
        std::fs::create_dir_all(&dir).unwrap();
        let store = StoreOptions::Disk {
            dirs: vec![dir],
            memory_limit_bytes: 16 << 20,
        };
        let meta = client::Endpoint::Unix(service.dir.join("meta"));
        let listen = client::Endpoint::Unix(service.dir.join(format!("d{start}-{i}")));
        let options = ioserver::Options::new(meta, listen, store);
        service.servers.push(ioserver::start(options).unwrap());
    }
}

fn counted(service: &Service, name: &str) -> u64 {
    let all = service.servers.iter().flat_map(|s| s.statistics());
    all.filter(|c| c.name == name).map(|c| c.value).sum()
}

fn until(service: &Service, name: &str, least: u64) {
    let (never, condition) = (std::sync::Mutex::new(()), std::sync::Condvar::new());
    for _ in 0..6000 {
        if counted(service, name) >= least {
            return;
        }
        let guard = never.lock().unwrap();
        let pause = std::time::Duration::from_millis(5);
        drop(condition.wait_timeout(guard, pause).unwrap());
    }
    panic!("{name} is {} and not {least}", counted(service, name));
}

/// Runs the ranks of a program, each with a client of its own.
fn run(service: &Service, form: &str, bytes: &str, program: impl Fn(&Client, &File, &Team) + Sync) {
    std::thread::scope(|scope| {
        for team in Team::threads(RANKS) {
            let program = &program;
            scope.spawn(move || {
                let client = service.connect_how(false);
                let options = OpenOptions::new().read().write();
                let file = client.open_together(&team, "/f", &options).unwrap();
                let mut hints = Hints::new();
                hints.set("strategy", "mb_ddio").unwrap();
                hints.set("ddio_block_size", "4096").unwrap();
                hints.set("ddio_blocks", "4").unwrap();
                hints.set("collective_prefetch", form).unwrap();
                hints.set("prefetch_bytes", bytes).unwrap();
                file.set_hints_together(&team, &hints).unwrap();
                let view = format!("striped({UNIT}) over {RANKS} [{}]", team.rank());
                file.set_view_text_together(&team, &view).unwrap();
                program(&client, &file, &team);
                team.barrier().unwrap();
            });
        }
    });
}

/// Reads a segment and compares it.
fn segment(file: &File, team: &Team, number: u64, expected: &[u8]) {
    let mut memory = vec![0xee; PART as usize];
    let into = SharedBytesMut::from_slice(&mut memory);
    let at = number * PART;
    let n = file
        .read_at_all(team, at, into, 0, &Places::bytes(PART))
        .unwrap();
    let view = file.view();
    let shown = view.len_within(expected.len() as u64).saturating_sub(at);
    assert_eq!(n as u64, shown.min(PART));
    for (k, byte) in memory[..n].iter().enumerate() {
        let file_at = view.bytes().select(at + k as u64).unwrap() as usize;
        assert_eq!(*byte, expected[file_at], "segment {number} byte {k}");
    }
}

const BUFFER: u64 = 1 << 20;

/// Ranks wait until servers have prepared all they can.
fn rest(service: &Service, team: &Team, form: &str, least: u64) {
    team.barrier().unwrap();
    if team.rank() == 0 {
        match form {
            "disk" => until(service, "ahead_bytes", least),
            "packets" | "exchanged" => until(service, "prefetched_bytes", least),
            _ => {}
        }
    }
    team.barrier().unwrap();
}

#[test]
fn seed002_s75_a_segment_that_was_prepared_needs_no_disk_when_it_is_asked_for() {
    let whole = PART * RANKS as u64;
    for form in FORMS {
        let (service, bytes) = begin(true, 6);
        run(&service, form, &BUFFER.to_string(), |_, file, team| {
            segment(file, team, 0, &bytes);
            rest(&service, team, form, whole);
            let misses = counted(&service, "cache_miss_bytes");
            team.barrier().unwrap();
            segment(file, team, 1, &bytes);
            team.barrier().unwrap();
            // Preparing the one after it may have begun, in forms that pin what they read.
            let now = counted(&service, "cache_miss_bytes") - misses;
            match form {
                "none" => assert!(now >= whole, "{now}"),
                "disk" => assert_eq!(now, 0),
                _ => assert!(counted(&service, "prefetch_hit_bytes") >= whole),
            }
        });
        let packed = counted(&service, "prefetched_bytes");
        match form {
            "none" | "disk" => assert_eq!(packed, 0, "{form}"),
            _ => assert!(packed >= whole, "{form}: {packed}"),
        }
    }
}

/// Nothing comes behind the last segment, so that what is read from the disk is read for it.
#[test]
fn seed002_s75_packets_that_are_ready_are_sent_without_the_disk() {
    let whole = PART * RANKS as u64;
    for form in ["packets", "exchanged"] {
        let (service, bytes) = begin(true, 2);
        let names = ["cache_miss_bytes", "prefetch_hit_bytes", "directed_bytes"];
        run(&service, form, &BUFFER.to_string(), |_, file, team| {
            segment(file, team, 0, &bytes);
            rest(&service, team, form, whole);
            let before = names.map(|name| counted(&service, name));
            team.barrier().unwrap();
            segment(file, team, 1, &bytes);
            team.barrier().unwrap();
            let now = names.map(|name| counted(&service, name));
            let [missed, ready, sent] = std::array::from_fn(|i| now[i] - before[i]);
            assert_eq!(missed, 0, "{form}: bytes from the disk");
            assert_eq!(
                (ready, sent),
                (whole, whole),
                "{form}: all that is sent was packed before"
            );
        });
    }
}

/// Segments in no order, which no history tells: each rank says by a hint what it will read next.
#[test]
fn seed002_s74_the_next_segment_is_taken_from_hints() {
    let whole = PART * RANKS as u64;
    let order = [4, 1, 5, 2];
    for is_hinted in [true, false] {
        let (service, bytes) = begin(true, 6);
        run(&service, "none", &BUFFER.to_string(), |_, file, team| {
            for (turn, &number) in order.iter().enumerate() {
                if is_hinted {
                    let mut hints = file.hints();
                    let value = format!("{}:{PART}", number * PART);
                    hints.set("upcoming", &value).unwrap();
                    file.set_hints(&hints).unwrap();
                    rest(&service, team, "disk", whole * (turn as u64 + 1));
                }
                team.barrier().unwrap();
                let before = counted(&service, "cache_miss_bytes");
                team.barrier().unwrap();
                segment(file, team, number, &bytes);
                team.barrier().unwrap();
                let missed = counted(&service, "cache_miss_bytes") - before;
                match is_hinted {
                    true => assert_eq!(missed, 0, "segment {number}"),
                    false => assert!(missed >= whole, "segment {number}: {missed}"),
                }
            }
        });
        let loaded = counted(&service, "ahead_bytes");
        assert_eq!(loaded, if is_hinted { whole * 4 } else { 0 });
        assert_eq!(counted(&service, "prefetches"), 0, "nothing by history");
    }
}

#[test]
fn seed002_s71_what_is_prepared_stays_within_the_buffer() {
    for form in ["packets", "exchanged"] {
        for buffer in [20_000u64, 50_000, BUFFER] {
            let (service, bytes) = begin(false, 8);
            run(&service, form, &buffer.to_string(), |_, file, team| {
                for number in 0..8 {
                    segment(file, team, number, &bytes);
                    rest(&service, team, form, (number < 7) as u64);
                }
            });
            for server in &service.servers {
                let all = server.statistics();
                let most = all
                    .iter()
                    .find(|c| c.name == "prefetch_most_bytes")
                    .unwrap();
                assert!(most.value <= buffer, "{form}: {} of {buffer}", most.value);
            }
            assert!(
                counted(&service, "prefetch_hit_bytes") > 0,
                "{form} {buffer}"
            );
        }
    }
}

#[test]
fn what_was_exchanged_leaves_the_buffer_to_other_forms() {
    // Just room for what a server has of a segment.
    let buffer = "50000";
    let (service, bytes) = begin(false, 8);
    run(&service, "exchanged", buffer, |_, file, team| {
        for number in 0..4 {
            segment(file, team, number, &bytes);
            rest(&service, team, "exchanged", 1);
        }
    });
    let before = counted(&service, "prefetched_bytes");
    run(&service, "packets", buffer, |_, file, team| {
        for number in 4..7 {
            segment(file, team, number, &bytes);
            let segments = number - 3;
            let whole = PART * RANKS as u64;
            rest(&service, team, "packets", before + segments * whole);
        }
    });
}

#[test]
fn seed002_s73_what_is_ready_is_sent_and_the_rest_read_as_ever() {
    let (service, bytes) = begin(false, 8);
    // Room for a part of a segment only.
    run(&service, "packets", "30000", |_, file, team| {
        for number in 0..8 {
            segment(file, team, number, &bytes);
            rest(&service, team, "packets", (number < 7) as u64);
        }
    });
    let hits = counted(&service, "prefetch_hit_bytes");
    let all = 7 * PART * RANKS as u64;
    assert!(hits > 0 && hits < all, "{hits} of {all}");
    // Asked for at once, whatever is ready by then.
    let (service, bytes) = begin(true, 24);
    run(&service, "packets", &BUFFER.to_string(), |_, file, team| {
        for number in 0..24 {
            segment(file, team, number, &bytes);
        }
    });
    let (began, wrong) = (
        counted(&service, "prefetches"),
        counted(&service, "prefetches_wrong"),
    );
    assert!(began > 0 && wrong == 0, "{began} {wrong}");
}

/// A disk that is slow to read what is behind the first segment, and does not begin with it before it is let.
#[derive(Debug, Default)]
struct Slow {
    has_come: AtomicBool,
    may_go: Mutex<bool>,
    changed: Condvar,
}

impl Slow {
    /// Longer than anything takes that lets it go.
    const LONGEST: Duration = Duration::from_secs(20);
    const EACH: Duration = Duration::from_millis(60);

    fn let_go(&self) {
        *self.may_go.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn pause(&self, time: Duration, is_over: impl Fn(bool) -> bool) {
        let guard = self.may_go.lock().unwrap();
        let over = self
            .changed
            .wait_timeout_while(guard, time, |go| !is_over(*go));
        drop(over.unwrap());
    }
}

impl Watcher for Slow {
    fn asked(&self, _file: &str, what: DiskRequest) -> io::Result<()> {
        // A table of checksums may come before the bytes.
        if matches!(what, DiskRequest::Read(offset, _) if offset >= PART * RANKS as u64 + (16 << 10))
        {
            self.has_come.store(true, Ordering::SeqCst);
            self.pause(Self::LONGEST, |go| go);
            self.pause(Self::EACH, |_| false);
        }
        Ok(())
    }
}

/// A request that comes while the first of many rounds is in hand has that one, and no other: the rest is read for it.
#[test]
fn seed002_s73_a_request_has_the_round_in_hand_finished_and_no_other_begun() {
    let whole = PART * RANKS as u64;
    let mut service = Service::start(0);
    let slow = Arc::new(Slow::default());
    let bytes = pattern(2 * whole as usize, 9);
    for start in 0..2 {
        for server in service.servers.drain(..) {
            server.stop();
        }
        let store = StoreOptions::Disk {
            dirs: vec![service.dir.join("disk")],
            memory_limit_bytes: 16 << 20,
        };
        let listen = socket(&service.dir, &format!("io-{start}"));
        let options = ioserver::Options::new(socket(&service.dir, "meta"), listen, store);
        let server = ioserver::start_on(options, |directory| {
            Arc::new(WatchedDisk::by(Arc::new(directory), Arc::clone(&slow)))
        });
        service.servers.push(server.unwrap());
        if start == 0 {
            let client = service.connect_how(false);
            let options = OpenOptions::new().read().write().create();
            let file = client.open("/f", &options.layout("whole")).unwrap();
            file.write_at(0, &bytes).unwrap();
            file.sync().unwrap();
            file.close().unwrap();
        }
    }
    run(&service, "packets", &BUFFER.to_string(), |_, file, team| {
        segment(file, team, 0, &bytes);
        team.barrier().unwrap();
        if team.rank() > 0 {
            segment(file, team, 1, &bytes);
            return;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until(&service, "directed_operations", 2);
                // It is counted a moment before the preparation hears of it.
                slow.pause(Slow::EACH, |_| false);
                slow.let_go();
            });
            let begun = std::time::Instant::now();
            while !slow.has_come.load(Ordering::SeqCst) && begun.elapsed() < Slow::LONGEST {
                slow.pause(Duration::from_millis(1), |_| false);
            }
            segment(file, team, 1, &bytes);
        });
    });
    assert!(slow.has_come.load(Ordering::SeqCst), "nothing was prepared");
    let hits = counted(&service, "prefetch_hit_bytes");
    assert!(hits > 0 && hits < whole / 2, "{hits} of {whole}");
}

#[test]
fn seed002_s72_writes_and_wrong_predictions_void_what_was_prepared() {
    let whole = PART * RANKS as u64;
    for form in FORMS {
        let (service, bytes) = begin(false, 16);
        let model = std::sync::Mutex::new(bytes);
        run(&service, form, &BUFFER.to_string(), |client, file, team| {
            for number in 0..6 {
                let now = model.lock().unwrap().clone();
                segment(file, team, number, &now);
                // All servers have prepared the next one, which is written into then. Nothing is read from memory ahead.
                let prepared = if form == "disk" { 0 } else { whole };
                rest(&service, team, form, prepared * (number + 1));
                if team.rank() == 0 {
                    // Another handle, in the middle of what comes next.
                    let other = client.open("/f", &OpenOptions::new().write()).unwrap();
                    let at = (number + 1) * PART * RANKS as u64 + 777;
                    let new = pattern(5000, number as usize);
                    other.write_at(at, &new).unwrap();
                    let mut model = model.lock().unwrap();
                    model[at as usize..at as usize + 5000].copy_from_slice(&new);
                }
                team.barrier().unwrap();
            }
            // A jump: what was prepared is for somebody who does not come.
            let now = model.lock().unwrap().clone();
            for number in [12, 3, 9] {
                segment(file, team, number, &now);
                rest(&service, team, "none", 0);
            }
        });
        if form == "packets" || form == "exchanged" {
            assert!(counted(&service, "prefetches_void") > 0, "{form}");
            assert!(counted(&service, "prefetches_wrong") > 0, "{form}");
        }
    }
}

#[test]
fn seed002_s76_exchanged_packets_come_in_one_message_per_rank_and_disk_builds_none() {
    let whole = PART * RANKS as u64;
    for form in FORMS {
        // A server that does not know yet what is read next takes no packet of another, which sends it by itself then:
        // where processors are scarce that may be so for one segment after the other.
        let segments = if form == "exchanged" { 160 } else { 10 };
        let (service, bytes) = begin(true, segments);
        let fewest = std::sync::Mutex::new(u64::MAX);
        run(&service, form, &BUFFER.to_string(), |_, file, team| {
            for number in 0..segments {
                let before = counted(&service, "directed_packets");
                // What was prepared too late for its segment counts too: from here on only what this one begins.
                let ready = counted(&service, "prefetched_bytes");
                team.barrier().unwrap();
                segment(file, team, number, &bytes);
                team.barrier().unwrap();
                let packets = counted(&service, "directed_packets") - before;
                {
                    let mut fewest = fewest.lock().unwrap();
                    *fewest = packets.min(*fewest);
                }
                let prepared = match form {
                    "disk" => whole * (number + 1).min(segments - 1),
                    _ if number + 1 == segments => ready,
                    _ => ready + whole,
                };
                rest(&service, team, form, prepared);
                // All have seen the same ones here.
                if number >= 9 && *fewest.lock().unwrap() == RANKS as u64 {
                    break;
                }
            }
        });
        let fewest = fewest.into_inner().unwrap();
        let exchanged = counted(&service, "prefetch_exchanged_bytes");
        match form {
            "exchanged" => {
                assert_eq!(fewest, RANKS as u64, "all of a rank in one message");
                assert!(exchanged >= whole, "{exchanged}");
            }
            _ => {
                assert!(fewest > RANKS as u64, "{form}: {fewest}");
                assert_eq!(exchanged, 0, "{form}");
            }
        }
        if form == "disk" {
            assert_eq!(counted(&service, "prefetched_bytes"), 0);
            assert!(counted(&service, "ahead_hit_bytes") > 0);
        }
    }
}

/// Numbers that look random, the same ones at all ranks.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

#[test]
fn seed002_s77_every_form_gives_the_bytes_of_none() {
    for (case, on_disk) in [(1, false), (2, true), (3, false)] {
        for form in FORMS {
            let (service, bytes) = begin(on_disk, 20);
            let model = std::sync::Mutex::new(bytes);
            let buffer = [30_000, BUFFER][case as usize % 2].to_string();
            run(&service, form, &buffer, |_, file, team| {
                let mut numbers = Numbers(case);
                let mut at = 0;
                for step in 0..40u64 {
                    match numbers.below(8) {
                        0 => at = numbers.below(20),
                        1 => {
                            // All ranks write a segment together, or one alone somewhere.
                            let to = numbers.below(20);
                            let is_alone = numbers.below(2) == 0;
                            let mine = pattern(PART as usize, step as usize + team.rank());
                            if is_alone && team.rank() == 1 {
                                file.write_at(to * PART, &mine).unwrap();
                            }
                            if !is_alone {
                                let source = SharedBytes::from_slice(&mine);
                                let places = Places::bytes(PART);
                                file.write_at_all(team, to * PART, source, 0, &places)
                                    .unwrap();
                            }
                            if !is_alone || team.rank() == 1 {
                                let view = file.view();
                                let mut model = model.lock().unwrap();
                                for (k, byte) in mine.iter().enumerate() {
                                    let at = view.bytes().select(to * PART + k as u64).unwrap();
                                    model[at as usize] = *byte;
                                }
                            }
                            team.barrier().unwrap();
                        }
                        _ => {
                            let now = model.lock().unwrap().clone();
                            segment(file, team, at % 20, &now);
                            at += 1;
                            team.barrier().unwrap();
                        }
                    }
                }
            });
        }
    }
}
