//! One file that moves from layout to layout while it is used in a way of its own: collectively, by a client that
//! stood still for long, beside a server whose memory is lost.
//!
//! Random use is in `calm` and `crashes`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use client::{Client, ConnectOptions, Hints, MoveOptions, OpenOptions, Status, Team};
use system_tests::plain_file::assert_bytes;
use system_tests::pounding::rounds_of;
use system_tests::process::stop;
use system_tests::{ServiceOptions, pattern, pause, until};

use crate::choir::there_and_back;
use crate::{contents, seeded};

/// Bytes of the file.
const SIZE: usize = 90_000;
/// It goes from each of these to the next.
const LAYOUTS: [&str; 4] = [
    "striped(700) over 3",
    "striped(9000) over 2",
    "striped(64) over 3",
    "striped(30000) over 3",
];

/// Small windows: many rounds.
fn small() -> MoveOptions {
    MoveOptions {
        window_bytes: 4096,
        ..MoveOptions::default()
    }
}

/// Moves a file again and again until told to stop; how often it did.
fn keep_moving(client: &Client, path: &str, is_over: &AtomicBool, moves: &AtomicU64) {
    for layout in LAYOUTS.iter().skip(1).chain(&LAYOUTS[..1]).cycle() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let moving = client.relayout_with(path, layout, &small());
        let moving = moving.unwrap_or_else(|e| panic!("{path} to {layout}: {e}"));
        moving.wait().unwrap_or_else(|e| panic!("{path}: {e}"));
        moves.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends whoever looks at it, however a test ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// All ranks write and read the whole file together, each through its part.
fn together(client: &Client, team: &Team, strategy: &str, rounds: u64) {
    let hints = Hints::new().with("strategy", strategy).expect("a hint");
    let how = OpenOptions::new().read().write().hints(hints);
    let file = client.open_together(team, "/file", &how).expect("opened");
    let view = format!("striped(123) over {} [{}]", team.size(), team.rank());
    file.set_view_text_together(team, &view).expect("a view");
    for tag in 0..rounds {
        there_and_back(&file, team, SIZE as u64, tag, strategy);
    }
    file.close().expect("closed");
}

#[test]
fn collective_accesses_are_exact_while_the_file_moves() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    let new = OpenOptions::new().read().write().exclusive();
    let file = client
        .open("/file", &new.layout(LAYOUTS[0]))
        .expect("a new file");
    file.resize(SIZE as u64).expect("resized");
    file.close().expect("closed");
    let is_over = AtomicBool::new(false);
    let moves = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| keep_moving(&client, "/file", &is_over, &moves));
        let _over = Over(&is_over);
        for strategy in ["views", "two_phase", "ddio", "mb_ddio", "two_phase_ddio"] {
            let before = moves.load(Ordering::Relaxed);
            let teams = Team::threads(3);
            std::thread::scope(|ranks| {
                for team in &teams {
                    let client = service.client();
                    ranks.spawn(move || together(&client, team, strategy, 12));
                }
            });
            until("a move", || moves.load(Ordering::Relaxed) > before);
        }
    });
    let whole = client::View::whole_file();
    assert_bytes(
        &contents(&client, "/file"),
        &pattern(&whole, 0, SIZE, 11),
        "all",
    );
}

#[test]
fn a_client_that_stood_still_during_moves_writes_where_the_bytes_are_now() {
    let mut random = seeded(8);
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    let mut worker = service.worker();
    let how = system_tests::OpenHow::new("rwx").layout(Some(LAYOUTS[0]));
    worker.open(0, "/file", &how);
    worker.fill(0, 0, SIZE as u64, 1);
    for (i, layout) in LAYOUTS.iter().skip(1).enumerate() {
        let path = service.dir().join(format!("stop-{i}"));
        // In the middle of a copy, as often as not.
        let tag = i as u64 + 2;
        worker.send(&format!(
            "pound\t0\tw\t0\t{SIZE}\t{tag}\t{}",
            path.display()
        ));
        pause(Duration::from_micros(random.within(500..20_000)));
        let stopped = stop(worker.pid());
        let moving = client.relayout_with("/file", layout, &small());
        let moving = moving.expect("a move").wait();
        moving.expect("a move that ends though a client stands still");
        let before = rounds_of(&path, worker.pid());
        drop(stopped);
        // What it was in when it was stopped, and one that it begins now.
        until("writes of the client that stood still", || {
            rounds_of(&path, worker.pid()) > before + 1
        });
        std::fs::write(&path, "").expect("a file");
        worker.answered();
        let whole = client::View::whole_file();
        let expected = pattern(&whole, 0, SIZE, tag);
        assert_bytes(&contents(&client, "/file"), &expected, layout);
    }
}

#[test]
fn memory_that_is_lost_in_a_move_is_named_and_nothing_else_is() {
    // Nobody keeps it.
    let options = ServiceOptions::new(3).io_arguments(["--no-keeper"]);
    let mut service = options.start();
    let url = service.url();
    // Soon tired of one that is away, but not of one that is slow.
    let mut options = ConnectOptions::default();
    options.timeout = Duration::from_secs(2);
    let client = Client::connect(&url, options).expect("a client");
    let new = OpenOptions::new().read().write().exclusive();
    let whole = client::View::whole_file();
    let bytes = pattern(&whole, 0, SIZE, 3);
    let dead = service.server_id(2).0;
    // One that the server has bytes of, and one that it has not.
    let both = ["striped(700) over [0,1,2]", "striped(700) over [0,1]"];
    let files = ["/with", "/without"].map(|path| {
        let layout = both[usize::from(path == "/without")];
        let file = client
            .open(path, &new.clone().layout(layout))
            .expect("a new file");
        file.write_at(0, &bytes).expect("written");
        file
    });
    // It would take half a minute, so it is under way when the server dies.
    let slow = MoveOptions {
        limit_bytes: 3_000,
        ..small()
    };
    let mut moving = ["/with", "/without"].map(|path| {
        client
            .relayout_with(path, "striped(5000) over [1,0]", &slow)
            .expect("a move")
    });
    until("bytes that have moved", || {
        moving[0].progress().expect("progress").moved_bytes > 0
    });
    service.kill_io(2);
    // Every byte is right, or its server is named.
    let started = Instant::now();
    let (mut good, mut lost) = (0, 0);
    for at in (0..SIZE).step_by(3000) {
        let mut found = [0xee; 100];
        match files[0].read_at(at as u64, &mut found) {
            Ok(n) => {
                assert_bytes(&found[..n], &bytes[at..at + n], "bytes that are left");
                good += 1;
            }
            Err(error) => {
                let is_typed = matches!(
                    error.status(),
                    Status::Lost | Status::Unreachable | Status::TimedOut
                );
                let names = error
                    .to_string()
                    .contains(&client::ServerId(dead).to_string());
                assert!(is_typed && names, "at {at}: {error:?}");
                lost += 1;
            }
        }
        if started.elapsed() > Duration::from_secs(15) {
            break;
        }
    }
    assert!(good > 0 && lost > 0, "{good} good, {lost} lost");
    // The other file never notices.
    if let Err(error) = moving[1].limit(0) {
        // It is over already.
        assert_eq!(error.status(), Status::InvalidArgument, "{error}");
    }
    let [_, other] = moving;
    let end = other
        .wait()
        .expect("a move of a file that has lost nothing");
    assert!(end.failure.is_empty(), "{end:?}");
    assert_bytes(&contents(&client, "/without"), &bytes, "the other file");
}
