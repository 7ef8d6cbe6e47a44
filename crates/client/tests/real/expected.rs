//! Files whose creator says how large they will be: the space is theirs until they are closed, and nobody is told that there is space
//! where there is none.

use std::time::{Duration, Instant};

use client::{HintOutcome, Hints, OpenOptions, Status, Team};

use crate::service::{Service, pattern};

const MIB: u64 = 1 << 20;

fn rw() -> OpenOptions {
    OpenOptions::new().read().write().create()
}

/// Memory of all servers that is in use.
fn used(service: &Service) -> u64 {
    let of_one = |server: &ioserver::IoServer| {
        let counters = server.statistics();
        let found = counters.iter().find(|c| c.name == "memory_bytes");
        found.map_or(0, |c| c.value)
    };
    service.servers.iter().map(of_one).sum()
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: it never came true");
        std::thread::yield_now();
    }
}

#[test]
fn expected_space_belongs_to_the_file_until_it_is_closed() {
    let service = Service::start(2);
    for is_direct in [true, false] {
        let client = service.connect_how(is_direct);
        let path = format!("/{is_direct}");
        let options = rw().exclusive().layout("striped(1MiB) over 2");
        let file = client
            .open(&path, &options.clone().expected_size(32 * MIB))
            .unwrap();
        assert_eq!(file.size().unwrap(), 0);
        assert_eq!(file.allocated().unwrap(), 32 * MIB);
        assert!(used(&service) >= 32 * MIB);
        // What is left is not enough for others, and their files are not created.
        let other = service.connect_how(is_direct);
        let error = other
            .open("/other", &options.clone().expected_size(100 * MIB))
            .unwrap_err();
        assert_eq!(error.status(), Status::NoSpace, "{error}");
        let text = error.to_string();
        assert!(
            text.contains("expected_size") && text.contains("104857600"),
            "{text}"
        );
        assert_eq!(other.stat("/other").unwrap_err().status(), Status::NotFound);
        // They may fill up everything else, and the file still has its space.
        let greedy = other.open("/greedy", &options).unwrap();
        let piece = vec![7; MIB as usize];
        let fits = (0..128).take_while(|k| greedy.write_at(k * MIB, &piece).is_ok());
        let fits = fits.count() as u64;
        assert!((32..=96).contains(&fits), "{fits} MiB beside 32 of 128");
        let bytes = pattern(32 * MIB as usize, 3);
        file.write_at(0, &bytes).unwrap();
        let mut got = vec![0; bytes.len()];
        assert_eq!(file.read_at(0, &mut got).unwrap(), bytes.len());
        assert!(got == bytes);
        greedy.close().unwrap();
        other.unlink("/greedy").unwrap();
        file.close().unwrap();
        client.unlink(&path).unwrap();
        until("removal", || used(&service) == 0);
    }
}

#[test]
fn expected_space_that_was_not_written_goes_back() {
    let service = Service::start(2);
    let client = service.connect();
    let options = rw().layout("striped(1MiB) over 2").expected_size(64 * MIB);
    let file = client.open("/f", &options).unwrap();
    // Cut to nothing, it still is to become as large.
    file.resize(0).unwrap();
    assert_eq!(file.allocated().unwrap(), 64 * MIB);
    file.write_at(0, &pattern(3 * MIB as usize, 1)).unwrap();
    assert_eq!(file.size().unwrap(), 3 * MIB);
    file.close().unwrap();
    until("space", || used(&service) <= 8 * MIB);
    let file = client.open("/f", &OpenOptions::new().read()).unwrap();
    let mut got = vec![0; 4 * MIB as usize];
    assert_eq!(file.read_at(0, &mut got).unwrap(), 3 * MIB as usize);
    assert!(got[..3 * MIB as usize] == pattern(3 * MIB as usize, 1));
    // A file that is there is as large as it is.
    let again = client.open("/f", &options).unwrap();
    assert!(!again.is_new());
    assert!(used(&service) <= 8 * MIB);
}

#[test]
fn hint_about_space_that_there_is_not_is_reported_and_refuses_nothing() {
    let service = Service::start(1);
    let client = service.connect();
    let hints = |size: &str| Hints::new().with("expected_size", size).unwrap();
    let report = |path: &str, size: &str| {
        let file = client.open(path, &rw().hints(hints(size))).unwrap();
        file.write_at(0, b"all the same").unwrap();
        let report = file.hint_report().unwrap();
        let row = report
            .into_iter()
            .find(|r| r.name == "expected_size")
            .unwrap();
        (row.outcome, row.why)
    };
    let (outcome, why) = report("/small", "4MiB");
    assert_eq!(outcome, HintOutcome::Used);
    assert!(why.contains("space for 4194304 bytes is taken"), "{why}");
    let (_, why) = report("/large", "1GiB");
    assert!(
        why.contains("no space was taken") && why.contains("1073741824"),
        "{why}"
    );
}

#[test]
fn team_has_expected_space_also_in_a_layout_by_its_views() {
    let service = Service::start(2);
    let clients = [service.connect(), service.connect()];
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let members = Team::threads(2).into_iter().zip(&clients);
        let running = members.map(|(team, client)| {
            scope.spawn(move || {
                let options = rw().expected_size(1 << 40);
                let error = client.open_together(&team, "/far", &options).unwrap_err();
                assert_eq!(error.status(), Status::NoSpace, "{error}");
                let options = rw().expected_size(32 * MIB);
                let file = client.open_together(&team, "/f", &options).unwrap();
                let half = format!("striped(16MiB) over 2 [{}]", team.rank());
                file.set_view_text_together(&team, &half).unwrap();
                file
            })
        });
        let running: Vec<_> = running.collect();
        running.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(
        clients[0].stat("/far").unwrap_err().status(),
        Status::NotFound
    );
    assert_eq!(outcomes[0].allocated().unwrap(), 32 * MIB);
    drop(outcomes);
    until("space", || used(&service) == 0);
}
