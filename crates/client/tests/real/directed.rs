//! Collective accesses that servers direct: which requests, packets and accesses of the store they cost, and that
//! they move the same bytes as every other way.
//!
//! Counted at the servers and, for the order of the store, at a disk that writes down what it has to do.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use client::{
    Collective, File, Hints, MoveOptions, OpenOptions, Places, Reason, SharedBytes, Team,
};
use ioserver::StoreOptions;
use store::{DiskRequest, WatchedDisk, Watcher};

use crate::collective::in_threads;
use crate::service::{Service, connect_at, socket};

/// Bytes at most that a table of checksums takes between the blocks of two groups.
const TABLE: u64 = 16 << 10;

/// Bytes of a group of blocks in a data file.
const GROUP: u64 = 1 << 20;

/// What was done with the data files of a disk.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<(String, DiskRequest)>>);

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<(String, DiskRequest)>> {
        self.0.lock().unwrap()
    }
}

impl Watcher for Log {
    fn asked(&self, file: &str, what: DiskRequest) -> io::Result<()> {
        self.lock().push((file.to_owned(), what));
        Ok(())
    }
}

/// A service with one server on a disk that is watched; call it again with the same directory for another start.
fn start_watched(service: &mut Service, log: &Arc<Log>) {
    let store = StoreOptions::Disk {
        dirs: vec![service.dir.join("disk")],
        memory_limit_bytes: 64 << 20,
    };
    let listen = socket(&service.dir, "io");
    let mut options = ioserver::Options::new(socket(&service.dir, "meta"), listen, store);
    options.write_through = true;
    let server = ioserver::start_on(options, |directory| {
        Arc::new(WatchedDisk::by(Arc::new(directory), Arc::clone(log)))
    });
    service.servers.push(server.unwrap());
}

fn byte(at: u64) -> u8 {
    (at * 7 + (at >> 8) * 13 + 5) as u8
}

/// Hints for a strategy with blocks of so many bytes, so many per packet.
fn hints(strategy: &str, block: u64, blocks: u64) -> Hints {
    Hints::new()
        .with("strategy", strategy)
        .unwrap()
        .with("ddio_block_size", &block.to_string())
        .unwrap()
        .with("ddio_blocks", &blocks.to_string())
        .unwrap()
}

/// Opens a file together, with a view of its own for each rank and these hints.
fn open(
    client: &client::Client,
    team: &Team,
    path: &str,
    array: Option<&str>,
    layout: &str,
    view: &str,
    hints: &Hints,
) -> File {
    let mut options = OpenOptions::new().read().write().create().layout(layout);
    if let Some(array) = array {
        options = options.array(array);
    }
    let file = client.open_together(team, path, &options).unwrap();
    file.set_hints_together(team, hints).unwrap();
    file.set_view_text_together(team, view).unwrap();
    file
}

/// Writes every byte of this rank in a file of so many bytes.
fn write_all(file: &File, team: &Team, size: u64, salt: u64) {
    let view = file.view();
    let len = view.len_within(size);
    let bytes: Vec<u8> = (0..len)
        .map(|k| byte(view.bytes().select(k).unwrap() + salt))
        .collect();
    let source = SharedBytes::from_slice(&bytes);
    let n = file.write_at_all(team, 0, source, 0, &Places::bytes(len));
    assert_eq!(n, Ok(len as usize));
}

/// Reads every byte of this rank, and a few more, and compares them.
fn read_all(file: &File, team: &Team, size: u64, salt: u64) {
    let view = file.view();
    let len = view.len_within(size);
    let mut bytes = vec![0xee; len as usize + 10];
    let places = Places::bytes(bytes.len() as u64);
    let n = file.read_at_all(team, 0, bytes[..].as_mut().into(), 0, &places);
    assert_eq!(n, Ok(len as usize));
    for k in 0..len {
        let at = view.bytes().select(k).unwrap();
        assert_eq!(bytes[k as usize], byte(at + salt), "byte {at} of the file");
    }
    assert!(bytes[len as usize..].iter().all(|b| *b == 0xee));
}

fn counter(service: &Service, server: usize, name: &str) -> u64 {
    let list = service.servers[server].statistics();
    let found = list.iter().find(|counter| counter.name == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).value
}

/// Runs all ranks through a write and a read; `between` runs before, between and after at rank 0 alone.
fn write_then_read(
    service: &Service,
    ranks: usize,
    view: impl Fn(usize) -> String + Sync,
    layout: &str,
    size: u64,
    hints: &Hints,
    between: impl Fn(usize) + Sync,
) {
    in_threads(service, ranks, false, |client, team| {
        let path = format!("/{}-{size}", hints.get("strategy").unwrap());
        let file = open(client, team, &path, None, layout, &view(team.rank()), hints);
        for step in 0..3 {
            team.barrier().unwrap();
            if team.rank() == 0 {
                between(step);
            }
            team.barrier().unwrap();
            match step {
                0 => write_all(&file, team, size, 0),
                1 => read_all(&file, team, size, 0),
                _ => {}
            }
        }
        let how = file.last_access().collective.unwrap();
        assert_eq!(how.word(), hints.get("strategy").unwrap());
    });
}

fn cyclic(record: u64, ranks: usize) -> impl Fn(usize) -> String + Sync {
    move |rank| format!("striped({record}) over {ranks} [{rank}]")
}

const DIRECTED: [&str; 4] = ["ddio", "pb_ddio", "mb_ddio", "two_phase_ddio"];

#[test]
fn seed002_s61_one_request_per_operation_and_server_carries_the_distribution() {
    let service = Service::start(3);
    let names = ["directed_operations", "directed_ranks", "reads", "writes"];
    for strategy in ["pb_ddio", "mb_ddio"] {
        let seen = Mutex::new(Vec::new());
        let look = |_| {
            let count = |server: usize| names.map(|name| counter(&service, server, name));
            seen.lock().unwrap().push([count(0), count(1), count(2)]);
        };
        let hints = hints(strategy, 4096, 4);
        let layout = "striped(5000) over 3";
        write_then_read(&service, 4, cyclic(100, 4), layout, 200_000, &hints, look);
        let seen = seen.into_inner().unwrap();
        for (before, after) in [(0, 1), (1, 2)] {
            for (server, (old, new)) in seen[before].iter().zip(&seen[after]).enumerate() {
                let change: Vec<u64> = new.iter().zip(old).map(|(new, old)| new - old).collect();
                // One request with the distribution, four ranks that take part, nothing for itself.
                assert_eq!(change, [1, 4, 0, 0], "server {server} in {strategy}");
            }
        }
    }
}

#[test]
fn seed002_s62_blocks_are_accessed_in_the_order_of_the_disk_and_once() {
    let size = 40 * 65536 + 777;
    for strategy in ["pb_ddio", "mb_ddio", "two_phase_ddio"] {
        let log = Arc::new(Log::default());
        let mut service = Service::start(0);
        start_watched(&mut service, &log);
        let hints = hints(strategy, 65536, 4);
        write_then_read(
            &service,
            3,
            cyclic(1000, 3),
            "striped(65536) over 1",
            size,
            &hints,
            |_| {},
        );
        // Another start has nothing in its cache.
        service.servers.pop().unwrap().stop();
        start_watched(&mut service, &log);
        log.lock().clear();
        in_threads(&service, 3, false, |client, team| {
            let path = format!("/{strategy}-{size}");
            let view = cyclic(1000, 3)(team.rank());
            let file = open(
                client,
                team,
                &path,
                None,
                "striped(65536) over 1",
                &view,
                &hints,
            );
            team.barrier().unwrap();
            if team.rank() == 0 {
                log.lock().clear();
            }
            team.barrier().unwrap();
            read_all(&file, team, size, 0);
            assert!(file.last_access().collective.unwrap().is_directed());
        });
        let log = log.lock();
        let reads: Vec<(u64, u64)> = log
            .iter()
            .filter_map(|(_, did)| match did {
                // Tables of checksums are shorter than what they are for.
                DiskRequest::Read(offset, len) if *len >= 16 << 10 => Some((*offset, *len)),
                _ => None,
            })
            .collect();
        let sum: u64 = reads.iter().map(|(_, len)| len).sum();
        assert!(
            reads.len() >= 10 && sum >= size - (16 << 10),
            "{strategy}: {reads:?}"
        );
        for pair in reads.windows(2) {
            let ((a, len), (b, _)) = (pair[0], pair[1]);
            assert!(
                a + len <= b,
                "{strategy}: {pair:?} ascend and do not overlap"
            );
        }
    }
}

/// That both are busy at the very same moment is shown frame by frame in the tests of the I/O server. Here it happens by
/// itself, sooner or later: on one processor that others use, too, an operation may go step by step.
#[test]
fn seed002_s63_steps_of_store_and_network_overlap_in_both_directions() {
    const MOST_OPERATIONS: u32 = 40;
    let service = Service::start(1);
    let hints = hints("pb_ddio", 65536, 1);
    let mut overlaps = [0; 2];
    for _ in 0..MOST_OPERATIONS {
        let seen = Mutex::new(Vec::new());
        let look = |_| {
            let overlaps = counter(&service, 0, "directed_overlaps");
            let rounds = counter(&service, 0, "directed_rounds");
            seen.lock().unwrap().push((overlaps, rounds));
        };
        write_then_read(
            &service,
            4,
            cyclic(512, 4),
            "striped(65536) over 1",
            16 << 20,
            &hints,
            look,
        );
        let seen = seen.into_inner().unwrap();
        for (direction, pair) in seen.windows(2).enumerate() {
            overlaps[direction] += pair[1].0 - pair[0].0;
            assert_eq!(pair[1].1 - pair[0].1, 256, "rounds");
        }
        if overlaps.iter().all(|count| *count > 0) {
            return;
        }
    }
    // One buffer would give none.
    panic!("rounds that overlapped, written and read: {overlaps:?}");
}

#[test]
fn seed002_s64_all_schemes_move_the_same_bytes_for_all_distributions() {
    let service = Service::start(3);
    let ranks = 4;
    // 1-D block and cyclic, 2-D block-none, block-cyclic and cyclic-cyclic; nothing divides.
    let arrays = [
        ("f64[1237]", "(block) onto 4"),
        ("f64[1237]", "(cyclic) onto 4"),
        ("f64[1237]", "(cyclic(5)) onto 4"),
        ("u32[61,47]", "(block, *) onto 4"),
        ("u32[61,47]", "(block, cyclic) onto 2x2"),
        ("u32[61,47]", "(cyclic, cyclic(3)) onto 2x2"),
    ];
    let layouts = [
        "striped(3000) over 3",
        "(cyclic(7)) onto 2",
        "(cyclic, *) onto 3",
    ];
    for (number, (array, view)) in arrays.iter().enumerate() {
        let layout = match array.contains(',') {
            true => layouts[2],
            false => layouts[number % 2],
        };
        let size: u64 = if array.contains(',') {
            61 * 47 * 4
        } else {
            1237 * 8
        };
        for strategy in ["independent", "two_phase"].iter().chain(&DIRECTED) {
            for (block, blocks) in [(512, 1), (1000, 3)] {
                let hints = hints(strategy, block, blocks);
                in_threads(&service, ranks, false, |client, team| {
                    let path = format!("/{number}-{strategy}-{block}");
                    let view = format!("{view} [{}]", team.rank());
                    let file = open(client, team, &path, Some(array), layout, &view, &hints);
                    write_all(&file, team, size, number as u64);
                    team.barrier().unwrap();
                    if team.rank() == 0 {
                        let mut whole = vec![0; size as usize + 3];
                        let reader = client.open(&path, &OpenOptions::new().read()).unwrap();
                        assert_eq!(reader.read_at(0, &mut whole), Ok(size as usize));
                        let good = (0..size).all(|k| whole[k as usize] == byte(k + number as u64));
                        assert!(good, "{array} {view} {strategy} {block}");
                    }
                    read_all(&file, team, size, number as u64);
                });
            }
        }
    }
}

/// Packets of the write and of the read, and rounds and blocks of the read.
fn cost(
    service: &Service,
    view: impl Fn(usize) -> String + Sync,
    size: u64,
    hints: &Hints,
) -> [u64; 4] {
    let seen = Mutex::new(Vec::new());
    let look = |_| {
        let names = ["directed_packets", "directed_rounds", "directed_blocks"];
        seen.lock()
            .unwrap()
            .push(names.map(|name| counter(service, 0, name)));
    };
    write_then_read(service, 4, view, "striped(65536) over 1", size, hints, look);
    let seen = seen.into_inner().unwrap();
    let change = |i: usize| seen[2][i] - seen[1][i];
    [seen[1][0] - seen[0][0], change(0), change(1), change(2)]
}

#[test]
fn seed002_s65_packets_are_as_few_as_each_scheme_promises() {
    let service = Service::start(1);
    let (block, record, ranks) = (4096, 8, 4);
    let blocks = 10;
    let size = blocks * block;
    let of = |strategy, m| {
        cost(
            &service,
            cyclic(record, 4),
            size,
            &hints(strategy, block, m),
        )
    };
    // A packet per record, and as many questions for writes.
    let records = blocks * block / record;
    assert_eq!(of("ddio", 1)[..2], [2 * records, records]);
    assert_eq!(of("pb_ddio", 1)[..2], [ranks * blocks, ranks * blocks]);
    let rounds = blocks.div_ceil(4);
    assert_eq!(of("mb_ddio", 4)[..2], [ranks * rounds, ranks * rounds]);
    // Whole blocks to one rank each; the ranks exchange the rest among themselves.
    let [wrote, read, ..] = of("two_phase_ddio", 1);
    assert!(
        wrote <= blocks + ranks && read <= blocks + ranks,
        "{wrote} {read}"
    );
}

#[test]
fn seed002_s66_the_last_round_may_have_fewer_blocks() {
    let service = Service::start(1);
    for (blocks, m, rounds) in [(10, 4, 3), (8, 4, 2), (3, 4, 1), (5, 1, 5)] {
        let size = blocks * 4096 - 100;
        let hints = hints("mb_ddio", 4096, m);
        let seen = cost(&service, cyclic(64, 4), size, &hints);
        assert_eq!(seen[2..], [rounds, blocks], "{blocks} blocks by {m}");
    }
}

#[test]
fn seed002_s67_a_collective_write_is_allocated_ahead_in_long_stretches() {
    let size = 30 * 65536 + 5;
    let log = Arc::new(Log::default());
    let mut service = Service::start(0);
    start_watched(&mut service, &log);
    let hints = hints("mb_ddio", 65536, 2);
    let begins = Mutex::new(Vec::new());
    let look = |_| begins.lock().unwrap().push(log.lock().len());
    write_then_read(
        &service,
        3,
        cyclic(4000, 3),
        "striped(65536) over 1",
        size,
        &hints,
        look,
    );
    let begins = begins.into_inner().unwrap();
    let log = log.lock().clone();
    let done = &log[begins[0]..begins[1]];
    let writes = done
        .iter()
        .filter(|(_, did)| matches!(did, DiskRequest::Write(_, len) if *len >= 32 << 10));
    let places: Vec<(&str, u64, u64)> = writes
        .map(|(name, did)| match did {
            DiskRequest::Write(offset, len) => (&name[..], *offset, *len),
            _ => unreachable!(),
        })
        .collect();
    let name = places[0].0;
    assert!(places.iter().all(|(n, ..)| *n == name), "one data file");
    let first = done.iter().position(|(n, did)| {
        n == name && matches!(did, DiskRequest::Write(_, len) if *len >= 32 << 10)
    });
    let mut ahead: Vec<(u64, u64)> = Vec::new();
    for (n, did) in &done[..first.unwrap()] {
        if let DiskRequest::Reserve(offset, len) = did
            && n == name
        {
            match ahead.last_mut() {
                Some((start, end)) if (*start..=*end + TABLE).contains(offset) => {
                    *end = (*end).max(offset + len);
                }
                _ => ahead.push((*offset, offset + len)),
            }
        }
    }
    // Space for all of it is taken before the first block is written, in the longest stretches that a data
    // file has: its groups.
    let lens: Vec<u64> = ahead.iter().map(|(start, end)| end - start).collect();
    assert!(
        lens.iter().sum::<u64>() >= size,
        "{ahead:?} for {size} bytes"
    );
    assert!(
        lens[..lens.len() - 1].iter().all(|len| *len == GROUP),
        "{ahead:?}"
    );
    assert_eq!(lens.len() as u64, size.div_ceil(GROUP));
    for (_, at, n) in &places {
        let mut inside = ahead
            .iter()
            .filter(|(start, end)| at >= start && at + n <= *end);
        assert!(inside.next().is_some(), "{at} is inside it");
    }
    // In the order of the disk, block behind block.
    for pair in places.windows(2) {
        assert!(pair[0].1 + pair[0].2 <= pair[1].1, "{pair:?}");
    }
}

#[test]
fn seed002_s68_records_may_lie_across_blocks() {
    let service = Service::start(1);
    let (block, record, blocks) = (512, 12, 9);
    let size = block * blocks;
    let of = |strategy, m| {
        cost(
            &service,
            cyclic(record, 4),
            size,
            &hints(strategy, block, m),
        )
    };
    // A record that lies across two blocks is two pieces.
    let inner = (1..blocks).filter(|b| b * block % record != 0).count() as u64;
    let pieces = size.div_ceil(record) + inner;
    assert_eq!(of("ddio", 1)[..2], [2 * pieces, pieces]);
    assert_eq!(of("pb_ddio", 1)[1], 4 * blocks);
    of("mb_ddio", 3);
    of("two_phase_ddio", 2);
}

#[test]
fn seed002_s69_the_model_picks_the_scheme_and_a_hint_overrides_it() {
    let service = Service::start(2);
    in_threads(&service, 4, false, |client, team| {
        let view = cyclic(8, 4)(team.rank());
        let none = Hints::new();
        let file = open(
            client,
            team,
            "/auto",
            None,
            "striped(65536) over 2",
            &view,
            &none,
        );
        write_all(&file, team, 1 << 20, 0);
        read_all(&file, team, 1 << 20, 0);
        let choice = file.last_choice().unwrap();
        assert_eq!(choice.reason, Reason::Predicted);
        assert!(choice.alternatives.len() >= 4, "{choice:?}");
        assert!(
            choice
                .alternatives
                .windows(2)
                .all(|pair| pair[0].1 <= pair[1].1)
        );
        let predicted = choice.predicted_s.unwrap();
        let alone = choice
            .alternatives
            .iter()
            .find(|a| a.0 == Collective::Independent)
            .unwrap();
        match choice.how {
            Collective::Independent => assert_eq!(predicted, alone.1),
            _ => assert!(predicted == choice.alternatives[0].1 && predicted < alone.1),
        }
        // The same kind of access again asks nobody.
        let before = file.collective_statistics().exchanges;
        read_all(&file, team, 1 << 20, 0);
        let again = file.last_choice().unwrap();
        assert_eq!(
            (again.how, again.predicted_s),
            (choice.how, choice.predicted_s)
        );
        assert!(file.collective_statistics().exchanges > before);
        for strategy in DIRECTED.iter().chain(&["two_phase", "independent"]) {
            let forced = Hints::new().with("strategy", strategy).unwrap();
            file.set_hints_together(team, &forced).unwrap();
            read_all(&file, team, 1 << 20, 0);
            let choice = file.last_choice().unwrap();
            assert_eq!(
                (choice.how.word(), choice.reason),
                (*strategy, Reason::Forced)
            );
        }
    });
}

#[test]
fn seed002_s70_memory_of_packets_and_blocks_is_bounded() {
    let block = 64 << 10;
    for (strategy, m, most) in [("pb_ddio", 1, 2), ("mb_ddio", 4, 8)] {
        let service = Service::start(1);
        write_then_read(
            &service,
            4,
            cyclic(24, 4),
            "striped(65536) over 1",
            4 << 20,
            &hints(strategy, block, m),
            |_| {},
        );
        let used = counter(&service, 0, "directed_most_bytes");
        assert!(used <= most * block, "{used} bytes of blocks in {strategy}");
        // One buffer of the pool per rank at most, for its packet.
        assert!(counter(&service, 0, "buffers_lent_most") <= 4);
        assert_eq!(counter(&service, 0, "buffers_lent"), 0);
    }
}

#[test]
fn seed004_s86_the_strategy_is_told_and_can_be_forced() {
    let service = Service::start(2);
    in_threads(&service, 3, false, |client, team| {
        let view = cyclic(700, 3)(team.rank());
        let none = Hints::new();
        let file = open(
            client,
            team,
            "/forced",
            None,
            "striped(5000) over 2",
            &view,
            &none,
        );
        let all = [
            "independent",
            "sieving",
            "two_phase",
            "ddio",
            "pb_ddio",
            "mb_ddio",
            "two_phase_ddio",
        ];
        for (number, strategy) in all.iter().enumerate() {
            let forced = Hints::new().with("strategy", strategy).unwrap();
            file.set_hints_together(team, &forced).unwrap();
            write_all(&file, team, 90_000, number as u64);
            team.barrier().unwrap();
            read_all(&file, team, 90_000, number as u64);
            team.barrier().unwrap();
            assert_eq!(file.last_access().collective.unwrap().word(), *strategy);
            assert_eq!(file.last_choice().unwrap().reason, Reason::Forced);
        }
        let done = file.collective_statistics();
        let counts = [
            done.independent,
            done.sieved,
            done.two_phase,
            done.ddio,
            done.pb_ddio,
            done.mb_ddio,
            done.two_phase_ddio,
        ];
        assert_eq!(counts, [2; 7]);
    });
}

#[test]
fn a_server_that_has_died_fails_all_ranks_and_holds_up_none() {
    for strategy in ["mb_ddio", "two_phase_ddio"] {
        let mut service = Service::start(2);
        let dir = service.dir.clone();
        let hints = hints(strategy, 4096, 2);
        let team = Team::threads(3);
        let before = std::sync::Barrier::new(4);
        let after = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for team in &team {
                let (dir, hints, before, after) = (&dir, &hints, &before, &after);
                scope.spawn(move || {
                    let client = connect_at(dir, false);
                    let view = cyclic(100, 3)(team.rank());
                    let file = open(
                        &client,
                        team,
                        "/f",
                        None,
                        "striped(5000) over 2",
                        &view,
                        hints,
                    );
                    write_all(&file, team, 60_000, 0);
                    before.wait();
                    after.wait();
                    let mut bytes = vec![0; 20_000];
                    let places = Places::bytes(20_000);
                    let read = file.read_at_all(team, 0, bytes[..].as_mut().into(), 0, &places);
                    assert!(read.is_err(), "rank {} in {strategy}", team.rank());
                });
            }
            before.wait();
            service.servers.pop().unwrap().stop();
            after.wait();
        });
    }
}

/// A file with two pieces is never directed: ranks that know it do not ask, and those that do not are refused and go for themselves. Bytes are
/// right throughout, and when the move is over servers direct again.
#[test]
fn a_file_that_is_given_another_layout_is_not_directed_until_that_is_over() {
    let service = Service::start(3);
    let size = 600_000;
    for strategy in DIRECTED {
        let path = format!("/moved-{strategy}");
        let hints = hints(strategy, 4096, 4);
        in_threads(&service, 3, false, |client, team| {
            let view = cyclic(3000, 3)(team.rank());
            let layout = "striped(5000) over 2";
            let file = open(client, team, &path, None, layout, &view, &hints);
            write_all(&file, team, size, 1);
            let directed = || counter_of_all(&service, "directed_operations");
            let how = || {
                let choice = file.last_choice().unwrap();
                (file.last_access().collective.unwrap(), choice.reason)
            };
            assert_eq!(how().1, Reason::Forced);
            team.barrier().unwrap();
            // A move that has begun and gets nowhere.
            let moving = (team.rank() == 0).then(|| {
                let slow = MoveOptions {
                    limit_bytes: 1,
                    ..MoveOptions::default()
                };
                let mut moving = client
                    .relayout_with(&path, "striped(7000) over 3", &slow)
                    .unwrap();
                moving.pause().unwrap();
                // Servers learn of it from whoever knows, at the latest.
                let other = service.connect();
                let all = other.open(&path, &OpenOptions::new().read()).unwrap();
                let read = all.read_at(0, &mut vec![0; 1 << 20]).unwrap();
                assert_eq!(read as u64, all.size().unwrap());
                moving
            });
            team.barrier().unwrap();
            let before = directed();
            team.barrier().unwrap();
            // Nobody has heard of it: servers refuse. Ranks that regroup then access their domains by themselves.
            read_all(&file, team, size, 1);
            let expected = match strategy {
                "two_phase_ddio" => (Collective::TwoPhaseDdio, Reason::Forced),
                _ => (Collective::Independent, Reason::Refused),
            };
            assert_eq!(how(), expected);
            // Then all know.
            team.barrier().unwrap();
            for salt in [2, 3] {
                write_all(&file, team, size, salt);
                assert_eq!(how(), (Collective::Independent, Reason::OtherLayout));
                team.barrier().unwrap();
                read_all(&file, team, size, salt);
                assert_eq!(how(), (Collective::Independent, Reason::OtherLayout));
                team.barrier().unwrap();
            }
            assert_eq!(directed(), before, "no server has directed anything");
            team.barrier().unwrap();
            if let Some(mut moving) = moving {
                moving.limit(0).unwrap();
                moving.resume().unwrap();
                moving.wait().unwrap();
            }
            team.barrier().unwrap();
            // Whoever has the state of before is refused once more; then servers direct again.
            let mut last = None;
            for _ in 0..3 {
                read_all(&file, team, size, 3);
                last = Some(how());
                team.barrier().unwrap();
            }
            let (how, reason) = last.unwrap();
            assert_eq!((how.word(), reason), (strategy, Reason::Forced));
        });
    }
}

fn counter_of_all(service: &Service, name: &str) -> u64 {
    (0..service.servers.len())
        .map(|server| counter(service, server, name))
        .sum()
}
