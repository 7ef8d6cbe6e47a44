//! Profiles: what handles record comes to the file, whichever way the bytes go, and stays there.
//!
//! Compared with what the test itself did.

use advise::profile::Order;
use client::{Client, ConnectOptions, Endpoint, OpenOptions, ServiceUrl, Team};

use crate::service::{Service, create, pattern};

fn connect(service: &Service, options: ConnectOptions) -> Client {
    let url = ServiceUrl::At(Endpoint::Unix(service.dir.join("meta")));
    Client::connect(&url, options).unwrap()
}

/// The accesses of a program: long and short ones, directly and by message, through two views.
fn program(service: &Service, options: ConnectOptions, path: &str) -> (u64, u64, u64) {
    let client = connect(service, options);
    let file = create(&client, path, "u8[512,512]", "(block, *) onto 2");
    let bytes = pattern(512 * 512, 3);
    file.write_at(0, &bytes).unwrap();
    file.set_view_text("(*, block) onto 4 [1]").unwrap();
    let mut buffer = vec![0; 64];
    let (mut reads, mut read) = (0, 0);
    for _ in 0..3 {
        for at in (0..512 * 128).step_by(64) {
            read += file.read_at(at, &mut buffer).unwrap() as u64;
            reads += 1;
        }
    }
    file.close().unwrap();
    (512 * 512, reads, read)
}

#[test]
fn what_was_done_is_recorded_whichever_way_it_went() {
    let service = Service::start(2);
    for direct in [true, false] {
        let path = format!("/f{direct}");
        let options = ConnectOptions::default()
            .with_direct(direct)
            .with_application("sweep");
        let (written, reads, read) = program(&service, options, &path);
        let client = service.connect();
        let found = client.profile(&path).unwrap();
        let total = found.profile.total();
        assert_eq!((total.written.bytes, total.written.count()), (written, 1));
        assert_eq!((total.read.bytes, total.read.count()), (read, reads));
        assert_eq!(total.read.sizes[7], reads, "64 bytes each");
        assert_eq!(total.read.orders[Order::Sequential as usize], reads - 2);
        let by_server: u64 = total.servers.iter().map(|s| s.read).sum();
        assert_eq!(by_server, read, "every byte came from a server");
        assert!(
            total
                .near_share()
                .is_some_and(|share| share > 0.2 && share < 0.8)
        );
        let entries = found.profile.entries();
        assert_eq!(entries.len(), 2, "one for each view");
        let (key, entry) = entries
            .iter()
            .find(|(_, e)| !e.read.is_empty())
            .expect("the view");
        assert_eq!((key.application.as_str(), key.rank), ("sweep", 0));
        assert_eq!(entry.text, "(*, block) onto 4 [1]");
        assert_eq!(entry.view.len_within(512 * 512), 512 * 128);
        assert_eq!(entry.read.hull, (0, 512 * 128));
    }
}

#[test]
fn profiles_are_merged_over_ranks_and_runs_and_outlive_the_manager() {
    let mut service = Service::start(2);
    let options = || ConnectOptions::default().with_application("bands");
    let creator = connect(&service, options().with_profile(false));
    let file = create(&creator, "/f", "u8[64,1024]", "striped(4KiB) over 2");
    file.write_at(0, &pattern(64 << 10, 1)).unwrap();
    file.close().unwrap();
    for _run in 0..2 {
        let mut members = Team::threads(4);
        std::thread::scope(|scope| {
            for member in members.drain(..) {
                let client = connect(&service, options());
                scope.spawn(move || {
                    let open = OpenOptions::new().read();
                    let file = client.open_together(&member, "/f", &open).unwrap();
                    let text = format!("(block, *) onto 4 [{}]", member.rank());
                    file.set_view_text_together(&member, &text).unwrap();
                    let mut buffer = vec![0; 16 << 10];
                    file.read_at(0, &mut buffer).unwrap();
                    file.close().unwrap();
                });
            }
        });
    }
    let check = |client: &Client| {
        let profile = client.profile("/f").unwrap().profile;
        // What the creator wrote was not recorded by itself.
        assert_eq!(profile.total().read.bytes, 2 * (64 << 10));
        let entries = profile.entries();
        let ranks: Vec<u64> = entries
            .iter()
            .filter(|(key, _)| key.application == "bands")
            .map(|(key, _)| key.rank)
            .collect();
        assert_eq!(ranks, [0, 1, 2, 3]);
        for (_, entry) in entries.iter().filter(|(key, _)| key.application == "bands") {
            assert_eq!((entry.read.count(), entry.processes), (2, 4));
        }
        let origin = profile.origin("bands", Some(&"u8[64,1024]".parse().unwrap()), 64 << 10);
        assert_eq!(origin.unwrap().layout.to_string(), "(block, *) onto 4");
        profile
    };
    let client = service.connect();
    let before = check(&client);
    drop(client);
    // A restart of the metadata manager keeps it.
    service.manager = None;
    service.start_manager();
    let client = service.connect();
    assert_eq!(check(&client), before);
    // Given to another file, added, and cleared.
    create(&client, "/g", "u8[64,1024]", "striped(4KiB) over 2");
    client.replace_profile("/g", &before).unwrap();
    assert_eq!(client.profile("/g").unwrap().profile, before);
    client.merge_profile("/g", &before).unwrap();
    let twice = client.profile("/g").unwrap().profile;
    assert_eq!(twice.total().read.bytes, 4 * (64 << 10));
    client.clear_profile("/g").unwrap();
    assert!(client.profile("/g").unwrap().profile.is_empty());
    // It goes with the file.
    client.unlink("/f").unwrap();
    assert!(client.profile("/f").is_err());
    let findings = client.check().unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn recording_can_be_switched_off() {
    let service = Service::start(1);
    let client = connect(&service, ConnectOptions::default());
    let hints = client::Hints::new().with("profile", "off").unwrap();
    let options = OpenOptions::new().read().write().create().hints(hints);
    let file = client.open("/f", &options).unwrap();
    file.write_at(0, &[1; 100]).unwrap();
    file.close().unwrap();
    assert!(client.profile("/f").unwrap().profile.is_empty());
}

/// Servers tell what they saw by message of clients that record nothing, once these are gone.
#[test]
fn servers_record_clients_that_do_not() {
    let service = Service::start(2);
    let watcher = service.connect();
    let silent = ConnectOptions::default()
        .with_profile(false)
        .with_direct(false);
    let client = connect(&service, silent);
    let file = create(&client, "/f", "u8[64,64]", "(block, *) onto 2");
    file.write_at(0, &pattern(4096, 1)).unwrap();
    file.set_view_text("(*, block) onto 2 [1]").unwrap();
    let mut buffer = vec![0; 2048];
    file.read_at(0, &mut buffer).unwrap();
    file.close().unwrap();
    drop(file);
    drop(client);
    until("the servers have told", || {
        let total = watcher.profile("/f").unwrap().profile.total().clone();
        (total.read.bytes, total.written.bytes) == (2048, 4096)
    });
    let profile = watcher.profile("/f").unwrap().profile;
    assert_eq!(profile.applications(), ["unnamed"]);
    let views: Vec<u64> = profile
        .entries()
        .iter()
        .filter(|(_, e)| !e.read.is_empty())
        .map(|(_, e)| e.view.len_within(4096))
        .collect();
    assert_eq!(views, [2048], "through the view that was set");
}

/// What a client has recorded counts once, although servers tell what they saw of it after it is gone.
#[test]
fn clients_that_record_count_once_after_their_end() {
    let service = Service::start(2);
    let watcher = service.connect();
    let run = |application: &str, is_recording: bool| {
        let options = ConnectOptions::default()
            .with_application(application)
            .with_profile(is_recording)
            .with_direct(false);
        let client = connect(&service, options);
        let open = OpenOptions::new().read().write().create();
        let file = client.open("/f", &open).unwrap();
        file.write_at(0, &pattern(100_000, 1)).unwrap();
        file.close().unwrap();
    };
    run("told", true);
    // Servers tell in order of their reports: when this one has come, so has what they saw of the first.
    run("silent", false);
    let bytes = || watcher.profile("/f").unwrap().profile.total().written.bytes;
    until("the servers have told of the silent one", || {
        bytes() >= 200_000
    });
    assert_eq!(bytes(), 200_000);
    let profile = watcher.profile("/f").unwrap().profile;
    assert_eq!(profile.applications(), ["told", "unnamed"]);
}

/// Waits until something is so; the service does it by itself.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "never: {what}");
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
}

/// Members of a team that read a file by columns, again and again.
fn read_by_columns(service: &Service, path: &str, times: usize) {
    let mut members = Team::threads(4);
    std::thread::scope(|scope| {
        for member in members.drain(..) {
            let options = ConnectOptions::default()
                .with_application("columns")
                .with_direct(false);
            let client = connect(service, options);
            scope.spawn(move || {
                let open = OpenOptions::new().read();
                let file = client.open_together(&member, path, &open).unwrap();
                let text = format!("(*, cyclic) onto 4 [{}]", member.rank());
                file.set_view_text_together(&member, &text).unwrap();
                let mut buffer = vec![0; 512 * 128 * 4];
                for _ in 0..times {
                    assert_eq!(file.read_at(0, &mut buffer).unwrap(), buffer.len());
                }
                file.close().unwrap();
            });
        }
    });
}

/// Statement 40: with `auto_layout` a file moves by itself when that pays, and not again while nothing changes.
#[test]
fn seed004_s40_a_file_moves_by_itself_when_that_pays() {
    let service = Service::start(4);
    let client = service.connect();
    client.mkdir("/auto", None).unwrap();
    let hints = client::Hints::new().with("auto_layout", "apply").unwrap();
    client.set_hints("/auto", &hints, &[]).unwrap();
    let bytes = pattern(512 * 512 * 4, 7);
    for path in ["/auto/f", "/still"] {
        let file = create(&client, path, "f32[512,512]", "(block, *) onto 4");
        file.write_at(0, &bytes).unwrap();
        file.close().unwrap();
        client.clear_profile(path).unwrap();
        read_by_columns(&service, path, 100);
    }
    until("the file in the hinted directory moves", || {
        client.profile("/auto/f").unwrap().moves == 1
    });
    let found = client.profile("/auto/f").unwrap();
    assert_eq!(found.auto_layout, "apply");
    assert!(found.why.contains("saves"), "{}", found.why);
    let layout = |path: &str| client.layout(path).unwrap().text;
    until("it is in the other layout", || {
        layout("/auto/f") != "(block, *) onto 4"
    });
    assert_eq!(layout("/still"), "(block, *) onto 4");
    assert_eq!(client.profile("/still").unwrap().auto_layout, "off");
    // Its bytes are the same, and more of the same work moves it no more.
    let file = client.open("/auto/f", &OpenOptions::new().read()).unwrap();
    let mut read = vec![0; bytes.len()];
    assert_eq!(file.read_at(0, &mut read).unwrap(), bytes.len());
    assert!(read == bytes);
    file.close().unwrap();
    let there = layout("/auto/f");
    for _ in 0..3 {
        read_by_columns(&service, "/auto/f", 40);
    }
    let reports = client.profile("/auto/f").unwrap().profile.total().reports;
    assert!(reports >= 8);
    // The manager moves a second file too: its own requests are not taken for one that came twice.
    let file = create(&client, "/auto/g", "f32[512,512]", "(block, *) onto 4");
    file.write_at(0, &bytes).unwrap();
    file.close().unwrap();
    client.clear_profile("/auto/g").unwrap();
    read_by_columns(&service, "/auto/g", 100);
    until("the second file is in the other layout", || {
        layout("/auto/g") != "(block, *) onto 4"
    });
    // A suggestion is kept for a file that is not to be moved.
    let hints = client::Hints::new().with("auto_layout", "suggest").unwrap();
    client.set_hints("/still", &hints, &[]).unwrap();
    read_by_columns(&service, "/still", 100);
    until("a layout is suggested", || {
        !client.profile("/still").unwrap().suggestion.is_empty()
    });
    assert_eq!(layout("/still"), "(block, *) onto 4");
    assert_eq!(layout("/auto/f"), there);
    assert_eq!(client.profile("/auto/f").unwrap().moves, 1);
}
