//! Hints of all sources together: which count, what they do, and that none of them changes a byte.
//!
//! Disks and servers that failed or are full are here too, since hints say so and placement obeys.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{
    Client, CompilerHints, ConnectOptions, Endpoint, File, HintOutcome, HintReport, Hints,
    OpenOptions, ServerId, ServiceUrl, Source, Status,
};
use ioserver::StoreOptions;

use crate::service::{Service, TIMEOUT, pattern};

fn hints(list: &[(&str, &str)]) -> Hints {
    let mut hints = Hints::new();
    for (name, value) in list {
        hints.set(name, value).unwrap();
    }
    hints
}

fn rw() -> OpenOptions {
    OpenOptions::new().read().write().create()
}

fn connect_with(service: &Service, options: ConnectOptions) -> Client {
    let url = ServiceUrl::At(Endpoint::Unix(service.dir.join("meta")));
    Client::connect(&url, options.with_timeout(TIMEOUT)).unwrap()
}

#[track_caller]
fn report_of(file: &File, name: &str, source: Source) -> HintReport {
    let report = file.hint_report().unwrap();
    let found = report.iter().find(|r| r.name == name && r.source == source);
    found
        .unwrap_or_else(|| panic!("no {name} in {report:?}"))
        .clone()
}

fn servers_of(client: &Client, path: &str) -> Vec<u64> {
    let state = client.layout(path).unwrap().state;
    let places = state.pieces[0].places.iter().flatten();
    let mut servers: Vec<u64> = places.map(|p| p.server).collect();
    servers.sort_unstable();
    servers.dedup();
    servers
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }
}

/// Values that fit, that lie, and that make no sense at all.
const ANY: &[(&str, &[&str])] = &[
    ("array", &["u8[64]", "f64[1000,1000]", "u8[3,5]:fortran"]),
    (
        "layout",
        &[
            "(block, *) onto 3",
            "striped(7) over 2",
            "chunks(5,5) over 3",
            "whole",
        ],
    ),
    (
        "layout",
        &["striped(1KiB) over [0,7]", "(cyclic) onto 70000"],
    ),
    ("striping_unit", &["1", "4096", "9223372036854775807", "0"]),
    ("striping_factor", &["1", "3", "50", "18446744073709551615"]),
    ("striping_start", &["0", "2", "99"]),
    ("server_list", &["0", "2,1", "7", "[0,9]"]),
    ("file_alignment", &["1", "4096", "18446744073709551615"]),
    ("expected_size", &["0", "100", "18446744073709551615"]),
    ("expected_clients", &["1", "1000000"]),
    ("expected_access", &["1", "1GiB"]),
    ("near_server", &["0", "88"]),
    (
        "access_style",
        &[
            "read_once",
            "random,sequential",
            "reverse_sequential",
            "write_once,read_mostly",
        ],
    ),
    ("prefetch_depth", &["0", "1", "1000000"]),
    ("upcoming", &["0:100", "9000000000:4096", "1:1,2:2"]),
    (
        "upcoming_view",
        &["striped(3) over 2 [1]", "(block) onto 4 [0]", "whole"],
    ),
    ("auto_layout", &["off", "suggest"]),
    ("message_bytes", &["4096", "1GiB"]),
    ("rendezvous_bytes", &["0", "1GiB"]),
    ("direct", &["on", "off"]),
    ("strategy", &["views", "two_phase", "sieving"]),
    ("cb_buffer_size", &["1", "4096"]),
    ("ind_wr_buffer_size", &["3", "100000"]),
    ("disk_failed", &["55"]),
    ("unheard_of", &["", "x"]),
];

#[test]
fn seed004_s42_lying_hints_change_no_byte() {
    let service = Service::start(3);
    let plain = service.connect();
    let mut dice = Dice(42);
    for round in 0..30 {
        let mut draw = |count: usize, is_static: bool| {
            let mut drawn = Hints::new();
            for _ in 0..count {
                let (name, values) = ANY[dice.roll(ANY.len())];
                let is_dynamic = matches!(name, "upcoming" | "upcoming_view" | "disk_failed");
                if !(is_static && is_dynamic) {
                    // What the program's own call refuses, others may still say.
                    let _ = drawn.set(name, values[dice.roll(values.len())]);
                }
            }
            drawn
        };
        let directory = format!("/d{round}");
        plain.mkdir(&directory, None).unwrap();
        plain.set_hints(&directory, &draw(4, true), &[]).unwrap();
        let mut text = String::from("[*]\n");
        for (name, value) in draw(4, true).iter() {
            text += &format!("{name} = {value}\n");
        }
        text += "striping_unit = nonsense\ndisk_failed = 0\n";
        let mut options = ConnectOptions::default().with_hints(draw(2, true)).unwrap();
        options.compiler_hints = Arc::new(CompilerHints::parse("c", &text).unwrap());
        let client = connect_with(&service, options);
        let (at_open, later) = (draw(6, false), draw(6, false));
        let path = format!("{directory}/f");
        let file = client.open(&path, &rw().hints(at_open)).unwrap();
        let mut model = Vec::new();
        for step in 0..12 {
            let at = dice.roll(40_000);
            let bytes = pattern(1 + dice.roll(9000), round * 100 + step);
            assert_eq!(file.write_at(at as u64, &bytes).unwrap(), bytes.len());
            if model.len() < at + bytes.len() {
                model.resize(at + bytes.len(), 0);
            }
            model[at..at + bytes.len()].copy_from_slice(&bytes);
            if step == 5 {
                file.set_hints(&later).unwrap();
            }
            let from = dice.roll(model.len() + 100);
            let mut got = vec![7; 1 + dice.roll(20_000)];
            let n = file.read_at(from as u64, &mut got).unwrap();
            let end = (from + got.len()).min(model.len());
            let wanted = model.get(from..end).unwrap_or_default();
            assert_eq!(&got[..n], wanted, "round {round} step {step}");
        }
        assert_eq!(file.size().unwrap(), model.len() as u64, "round {round}");
        file.sync().unwrap();
        let mut got = vec![7; model.len() + 1];
        let other = plain.open(&path, &OpenOptions::new().read()).unwrap();
        assert_eq!(other.read_at(0, &mut got).unwrap(), model.len());
        assert!(got[..model.len()] == model, "round {round}");
        for r in file.hint_report().unwrap() {
            assert!(!r.why.is_empty(), "{r:?}");
        }
    }
    assert_eq!(plain.failed_servers().unwrap(), []);
}

#[test]
fn seed004_s43_what_hints_did_is_told_with_the_reason() {
    let service = Service::start(3);
    let client = service.connect();
    let given = hints(&[
        ("expected_clients", "1"),
        ("expected_size", "4MiB"),
        ("server_list", "1,2"),
        ("access_style", "random"),
        ("striping_start", "1"),
        ("cb_nodes", "9"),
    ]);
    // Stripes are asked for, so what is expected decides nothing about them; it takes space.
    let file = client.open("/a", &rw().hints(given)).unwrap();
    let layout = client.layout("/a").unwrap();
    assert_eq!(layout.text, "striped(1MiB) over 2 from 1");
    assert!(
        layout
            .distribution
            .contains("the hint striping_start of program")
    );
    assert_eq!(servers_of(&client, "/a"), [1, 2]);
    let told = |name: &str| {
        let r = report_of(&file, name, Source::Program);
        (r.outcome, r.why)
    };
    assert_eq!(told("striping_start").0, HintOutcome::Used);
    assert_eq!(told("server_list").0, HintOutcome::Used);
    let (outcome, why) = told("expected_size");
    assert_eq!(outcome, HintOutcome::Used);
    assert!(why.contains("space for 4194304 bytes is taken"), "{why}");
    let (outcome, why) = told("access_style");
    assert_eq!(outcome, HintOutcome::Used);
    assert!(why.contains("nothing ahead"), "{why}");
    assert_eq!(told("cb_nodes").0, HintOutcome::Unknown);
    // A layout that cannot be had is passed over, and the next one counts.
    client.mkdir("/d", None).unwrap();
    let kept = hints(&[("layout", "striped(1KiB) over 3")]);
    client.set_hints("/d", &kept, &[]).unwrap();
    let wrong = hints(&[("layout", "(block, *) onto 2")]);
    let file = client.open("/d/b", &rw().hints(wrong)).unwrap();
    let layout = client.layout("/d/b").unwrap();
    assert_eq!(layout.text, "striped(1KiB) over 3");
    assert!(
        layout.distribution.contains("of directory /d"),
        "{}",
        layout.distribution
    );
    let r = report_of(&file, "layout", Source::Program);
    assert_eq!(r.outcome, HintOutcome::Ignored);
    assert!(r.why.contains("cuts an array"), "{}", r.why);
    let counters = client.meta_statistics().unwrap();
    let counter = |name: &str| counters.iter().find(|c| c.name == name).unwrap().value;
    assert_eq!(counter("hints_ignored"), 1);
    assert!(counter("hints_used") >= 3 && counter("hints_given") >= 8);
}

#[test]
fn seed004_s77_static_hints_come_at_any_time_and_dynamic_ones_in_a_run() {
    let service = Service::start(2);
    let plain = service.connect();
    plain.mkdir("/d", None).unwrap();
    // Before the start: on a directory and in the compiler's file. At connect. At run time.
    let kept = hints(&[("prefetch_depth", "1")]);
    plain.set_hints("/d", &kept, &[]).unwrap();
    let open = |options: ConnectOptions| {
        let client = connect_with(&service, options);
        client.open("/d/f", &rw()).unwrap()
    };
    let depth = |file: &File| file.hints().get("prefetch_depth").unwrap().to_owned();
    let file = open(ConnectOptions::default());
    assert_eq!(depth(&file), "1");
    let compiler = CompilerHints::parse("c", "[/d/*]\nprefetch_depth = 2\n").unwrap();
    let options = ConnectOptions::default().with_compiler_hints(compiler);
    assert_eq!(depth(&open(options.clone())), "2");
    let options = options
        .with_hints(hints(&[("prefetch_depth", "3")]))
        .unwrap();
    let file = open(options);
    assert_eq!(depth(&file), "3");
    file.set_hints(&hints(&[("prefetch_depth", "4")])).unwrap();
    assert_eq!(depth(&file), "4");
    // Dynamic ones: not before the start, not at connect, but now.
    let upcoming = hints(&[("upcoming", "0:4096")]);
    let error = plain.set_hints("/d", &upcoming, &[]).unwrap_err();
    assert!(error.to_string().contains("dynamic"), "{error}");
    let error = ConnectOptions::default()
        .with_hints(upcoming.clone())
        .unwrap_err();
    assert!(error.to_string().contains("dynamic"), "{error}");
    let text = "[*]\nupcoming = 0:4096\n";
    let compiler = CompilerHints::parse("c", text).unwrap();
    let early = open(ConnectOptions::default().with_compiler_hints(compiler));
    let r = report_of(&early, "upcoming", Source::Compiler);
    assert_eq!(r.outcome, HintOutcome::Ignored, "{}", r.why);
    file.set_hints(&upcoming).unwrap();
    let r = report_of(&file, "upcoming", Source::Dynamic);
    assert_eq!(
        (r.outcome, r.source),
        (HintOutcome::Used, Source::Dynamic),
        "{}",
        r.why
    );
    // A disk that failed says a program that has met it: one with a file there, opened for bytes.
    let all = servers_of(&plain, "/d/f");
    file.set_hints(&hints(&[("disk_failed", "77")])).unwrap();
    let r = report_of(&file, "disk_failed", Source::Dynamic);
    assert_eq!(r.outcome, HintOutcome::Ignored, "{}", r.why);
    assert_eq!(all, [0, 1]);
    assert!(CompilerHints::parse("c", "[x\n").is_err());
}

#[test]
fn seed004_s78_hints_of_all_sources_stand_beside_each_other() {
    let service = Service::start(3);
    let plain = service.connect();
    plain.mkdir_all("/a/b", None).unwrap();
    let unit = |n: u64| hints(&[("striping_unit", &n.to_string())]);
    plain.set_hints("/", &unit(100), &[]).unwrap();
    plain
        .set_hints(
            "/a",
            &hints(&[("striping_unit", "200"), ("direct", "off")]),
            &[],
        )
        .unwrap();
    let of = |client: &Client, path: &str, options: OpenOptions| {
        client.create(path, &options).unwrap();
        client.layout(path).unwrap().text
    };
    assert_eq!(of(&plain, "/x", rw()), "striped(100) over 3");
    assert_eq!(of(&plain, "/a/b/x", rw()), "striped(200) over 3");
    plain.set_hints("/a/b", &unit(300), &[]).unwrap();
    assert_eq!(of(&plain, "/a/b/y", rw()), "striped(300) over 3");
    let compiler = CompilerHints::parse("c", "[/a/**]\nstriping_unit = 400\n").unwrap();
    let options = ConnectOptions::default().with_compiler_hints(compiler);
    let client = connect_with(&service, options.clone());
    assert_eq!(of(&client, "/a/b/z", rw()), "striped(400) over 3");
    let client = connect_with(&service, options.with_hints(unit(500)).unwrap());
    assert_eq!(of(&client, "/a/b/u", rw()), "striped(500) over 3");
    assert_eq!(
        of(&client, "/a/b/v", rw().hints(unit(600))),
        "striped(600) over 3"
    );
    // What a call itself says is no hint: it holds.
    let called = rw().hints(unit(600)).layout("whole");
    assert_eq!(of(&client, "/a/b/w", called), "whole");
    // All of it is visible, with source, place and what it lost to.
    let file = client.open("/a/b/n", &rw().hints(unit(600))).unwrap();
    for (source, place, outcome) in [
        (Source::Program, "", HintOutcome::Used),
        (Source::Connect, "", HintOutcome::Overridden),
        (Source::Compiler, "c:2", HintOutcome::Overridden),
        (Source::Directory, "/a/b", HintOutcome::Overridden),
    ] {
        let r = report_of(&file, "striping_unit", source);
        assert_eq!((r.place.as_str(), r.outcome), (place, outcome), "{r:?}");
    }
    assert_eq!(file.hints().get("direct"), Some("off"));
    plain
        .set_hints("/a/b/n", &hints(&[("direct", "on")]), &[])
        .unwrap();
    let again = client.open("/a/b/n", &rw()).unwrap();
    assert_eq!(again.hints().get("direct"), Some("on"));
    let kept = plain.hints("/a/b/n").unwrap();
    let counts = kept.standing.get("direct").unwrap();
    assert_eq!(
        (counts.source, counts.place.as_str()),
        (Source::File, "/a/b/n")
    );
    plain
        .set_hints("/a/b/n", &Hints::new(), &["direct".into()])
        .unwrap();
    let kept = plain.hints("/a/b/n").unwrap();
    assert_eq!(kept.standing.get("direct").unwrap().place, "/a");
}

#[test]
fn seed004_s79_a_disk_that_is_said_to_have_failed_takes_nothing_new() {
    let service = Service::start(3);
    let client = service.connect();
    let file = client.open("/old", &rw()).unwrap();
    let bytes = pattern(3 << 20, 1);
    file.write_at(0, &bytes).unwrap();
    // Whoever only asks questions has met no disk, nor has he whose file is elsewhere.
    let elsewhere = rw().layout("striped(1KiB) over [0,2]");
    let other = client.open("/elsewhere", &elsewhere).unwrap();
    let error = other.disk_failed(ServerId(1), "?").unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument, "{error}");
    file.set_hints(&hints(&[("disk_failed", "1")])).unwrap();
    let r = report_of(&file, "disk_failed", Source::Dynamic);
    assert_eq!(r.outcome, HintOutcome::Used, "{}", r.why);
    let failed = client.failed_servers().unwrap();
    assert_eq!(
        (failed.len(), failed[0].server, failed[0].is_hint),
        (1, ServerId(1), true)
    );
    for i in 0..6 {
        client.create(&format!("/new{i}"), &rw()).unwrap();
        assert_eq!(servers_of(&client, &format!("/new{i}")), [0, 2]);
    }
    let named = rw().layout("striped(1KiB) over [0,1]");
    let error = client.create("/named", &named).unwrap_err();
    assert!(error.to_string().contains("--clear-failed 1"), "{error}");
    let moved = client.relayout("/old", "striped(64KiB)").unwrap().wait();
    moved.unwrap();
    assert_eq!(servers_of(&client, "/old"), [0, 2]);
    // What was there still gives the right bytes.
    let mut got = vec![0; bytes.len()];
    assert_eq!(file.read_at(0, &mut got).unwrap(), bytes.len());
    assert!(got == bytes);
    client.clear_failed(ServerId(1)).unwrap();
    assert_eq!(client.failed_servers().unwrap(), []);
    client.create("/again", &rw()).unwrap();
    assert_eq!(servers_of(&client, "/again"), [0, 1, 2]);
}

/// Two servers with a disk each.
fn on_disks(dir: &Path) -> Service {
    let mut service = Service::start(0);
    for i in 0..2 {
        let disk = dir.join(format!("disk{i}"));
        std::fs::create_dir_all(&disk).unwrap();
        let store = StoreOptions::Disk {
            dirs: vec![disk],
            memory_limit_bytes: 64 << 20,
        };
        let at = |name: String| Endpoint::Unix(service.dir.join(name));
        let mut options = ioserver::Options::new(at("meta".into()), at(format!("io{i}")), store);
        options.state_dir = Some(dir.join(format!("state{i}")));
        std::fs::create_dir_all(dir.join(format!("state{i}"))).unwrap();
        service.servers.push(ioserver::start(options).unwrap());
    }
    service
}

#[test]
fn seed004_s79_a_disk_that_fails_gives_errors_and_takes_nothing_new() {
    let dir = std::env::temp_dir().join(format!("pario-failed-{}", std::process::id()));
    // Of a process with the same number that was killed.
    let _ = std::fs::remove_dir_all(&dir);
    let service = on_disks(&dir);
    let client = service.connect_how(false);
    let good = client
        .open("/good", &rw().layout("striped(1KiB) over [0]"))
        .unwrap();
    good.write_at(0, &pattern(5000, 1)).unwrap();
    good.sync().unwrap();
    // The disk of server 1 goes away.
    std::fs::rename(dir.join("disk1"), dir.join("gone")).unwrap();
    let file = client
        .open("/f", &rw().layout("striped(1KiB) over [0,1]"))
        .unwrap();
    let written = file
        .write_at(0, &pattern(5000, 2))
        .and_then(|_| file.sync().map(drop));
    let error = written.unwrap_err();
    assert_eq!(error.status(), Status::Io, "{error}");
    // The server says so itself, soon.
    let deadline = Instant::now() + Duration::from_secs(20);
    while client.failed_servers().unwrap().is_empty() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    let failed = client.failed_servers().unwrap();
    assert_eq!(
        (failed.len(), failed[0].server, failed[0].is_hint),
        (1, ServerId(1), false)
    );
    let new = client.open("/new", &rw()).unwrap();
    new.write_at(0, &pattern(9000, 3)).unwrap();
    new.sync().unwrap();
    assert_eq!(servers_of(&client, "/new"), [0]);
    let mut got = vec![0; 5000];
    good.read_at(0, &mut got).unwrap();
    assert_eq!(got, pattern(5000, 1));
    // Mended, and said so: it takes files again.
    std::fs::rename(dir.join("gone"), dir.join("disk1")).unwrap();
    client.clear_failed(ServerId(1)).unwrap();
    let again = client
        .open("/again", &rw().layout("striped(1KiB) over [1]"))
        .unwrap();
    again.write_at(0, &pattern(100, 4)).unwrap();
    again.sync().unwrap();
    drop((client, service));
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
fn seed004_s80_a_full_server_gets_nothing_new_and_its_file_moves_on() {
    let mut service = Service::start(0);
    for (i, limit_bytes) in [(0, 4 << 20), (1, 64 << 20)] {
        let at = |name: String| Endpoint::Unix(service.dir.join(name));
        let store = StoreOptions::Memory { limit_bytes };
        let mut options = ioserver::Options::new(at("meta".into()), at(format!("io{i}")), store);
        options.room_wait = Duration::from_millis(50);
        service.servers.push(ioserver::start(options).unwrap());
    }
    let client = service.connect_how(false);
    let file = client
        .open("/f", &rw().layout("striped(64KiB) over [0]"))
        .unwrap();
    let mut written = 0;
    let piece = 256 << 10;
    let error = loop {
        assert!(written < 8 << 20, "the server takes more than it has");
        match file.write_at(written as u64, &pattern(piece, written)) {
            Ok(n) => written += n,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error.status(), Status::NoSpace | Status::NoMemory),
        "{error}"
    );
    let check = |size: usize| {
        let mut got = vec![0; size];
        assert_eq!(file.read_at(0, &mut got).unwrap(), size);
        for at in (0..size).step_by(piece) {
            assert!(got[at..at + piece] == pattern(piece, at), "at {at}");
        }
    };
    check(written);
    // New files go elsewhere once the server has said how full it is.
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut i = 0;
    loop {
        let path = format!("/n{i}");
        client.create(&path, &rw()).unwrap();
        if servers_of(&client, &path) == [1] {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "new files still go to the full server"
        );
        i += 1;
    }
    // The file moves to where there is room, and the write is made good.
    client
        .relayout("/f", "striped(64KiB) over [1]")
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(
        file.write_at(written as u64, &pattern(piece, written))
            .unwrap(),
        piece
    );
    check(written + piece);
}

#[test]
fn seed004_s78_what_was_observed_is_the_weakest_hint() {
    let service = Service::start(2);
    let client = service.connect_how(false);
    let file = client.open("/f", &rw()).unwrap();
    file.write_at(0, &pattern(64 << 10, 1)).unwrap();
    for i in 0..200u64 {
        file.read_at(i % 64 * 1024, &mut [0; 1024]).unwrap();
    }
    file.close().unwrap();
    // What a handle has recorded is told when it is closed, or soon after.
    let deadline = Instant::now() + Duration::from_secs(20);
    let observed = loop {
        let again = client.open("/f", &rw()).unwrap();
        if let Some(style) = again.hints().get("access_style") {
            break style.to_owned();
        }
        assert!(Instant::now() < deadline, "nothing is observed");
        std::thread::yield_now();
    };
    assert!(observed.contains("sequential"), "{observed}");
    client
        .set_hints("/", &hints(&[("access_style", "random")]), &[])
        .unwrap();
    let again = client.open("/f", &rw()).unwrap();
    assert_eq!(again.hints().get("access_style"), Some("random"));
    let r = report_of(&again, "access_style", Source::Profile);
    assert_eq!(r.outcome, HintOutcome::Overridden, "{r:?}");
}
