//! Direct access when something dies, stands still, is taken away or lies: servers and clients are
//! processes of their own, and the faults are real ones.
//!
//! What has to be true: nobody crashes or hangs who is not the victim, whoever changes a file is held
//! up for less than a second, no byte is wrong, nothing stays behind (descriptors, mappings, memory).
//!
//! Faults come at times that a printed seed chooses. Forking with open files needs unsafe code and is
//! tested in `crates/direct/tests/fork.rs`.

mod client_killed;
mod full_disk;
mod malicious;
mod many_files;
mod server_killed;
mod shaken;
mod silent;
mod statistics;
mod stopped;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use client::{Client, File};
use system_tests::pounding::rounds_of;
use system_tests::{Random, Service, ServiceOptions, Worker, pause, until};

const MIB: u64 = 1 << 20;

/// How long a change of a file may take whatever its users do. It is to be below a second; what is
/// above is this machine's load. Whoever waits for a client that is stopped or does not let go waits for as long as
/// the test, so that is far above.
const BOUND: Duration = Duration::from_secs(20);

/// A service with direct access, also where this run is told to go by message.
fn start(options: ServiceOptions) -> Service {
    let mut options = options.direct(true);
    let on = ("PARIO_DIRECT".into(), "1".into());
    options.environment.push(on);
    options.start()
}

/// So many memory servers.
fn service(servers: usize) -> Service {
    start(ServiceOptions::new(servers))
}

/// A file that does not exist until a test wants workers to stop pounding.
fn stop_file(service: &Service, name: &str) -> PathBuf {
    service.dir().join(format!("stop-{name}"))
}

/// Waits until a worker that pounds has done so several times from now on.
#[track_caller]
fn goes_on(worker: &Worker, stop: &std::path::Path) {
    let before = rounds_of(stop, worker.pid());
    until("a worker that goes on", || {
        rounds_of(stop, worker.pid()) > before + 1
    });
}

fn make(path: &PathBuf) {
    std::fs::write(path, "").expect("a file");
}

fn pound(how: &str, offset: u64, len: u64, tag: u64, stop: &std::path::Path) -> String {
    format!(
        "pound\t0\t{how}\t{offset}\t{len}\t{tag}\t{}",
        stop.display()
    )
}

/// Runs something, says how long it took, and holds it to the bound.
#[track_caller]
fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = run();
    let took = started.elapsed();
    eprintln!("{what}: {took:.0?}");
    assert!(took < BOUND, "{what} took {took:?}");
    result
}

/// Waits up to so many microseconds, so that a fault comes at any time.
fn some_time(random: &mut Random, most_us: u64) {
    pause(Duration::from_micros(random.below(most_us + 1)));
}

fn print_seed() {
    eprintln!("PARIO_SEED={:#x}", system_tests::seed::seed());
}

/// The I/O servers that a file has bytes at, the one that knows its size included.
fn servers_of(file: &File) -> Vec<u64> {
    let state = file.layout();
    let places = state.pieces[0].places.iter().flatten();
    let mut all: Vec<u64> = places.map(|p| p.server).collect();
    all.push(state.owner.server);
    all.sort_unstable();
    all.dedup();
    all
}

/// What a worker has counted about direct accesses: attached, reads, writes, revoked, fallbacks.
#[track_caller]
fn direct_counts(worker: &mut Worker) -> [u64; 5] {
    let said = worker.ask("direct");
    let mut numbers = said.split(' ').map(|n| n.parse().expect("a number"));
    std::array::from_fn(|_| numbers.next().expect("five numbers"))
}

fn sum(service: &Service, client: &Client, name: &str) -> u64 {
    service.counters(client, name).iter().sum()
}
