//! Rates of writing new files, within what a server has ready and beyond it, again, and after opening again, beside the
//! same writes on tmpfs.
//!
//! `cargo run --release -p client --example new_files`. The server runs in threads of the program. Numbers for people; nothing
//! is asserted.

use std::fs::File as PlainFile;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use client::{Client, ConnectOptions, Endpoint, File, OpenOptions, ServiceUrl};
use ioserver::StoreOptions;

const MIB: usize = 1 << 20;

fn socket(dir: &Path, name: &str) -> Endpoint {
    Endpoint::Unix(dir.join(name))
}

/// MB/s of writing so many MiB, a piece at a time.
fn rate(mib: usize, piece: usize, mut write: impl FnMut(u64, &[u8])) -> f64 {
    let bytes = vec![7; piece];
    let started = Instant::now();
    for at in (0..mib * MIB).step_by(piece) {
        write(at as u64, &bytes);
    }
    (mib * MIB) as f64 / started.elapsed().as_secs_f64() / 1e6
}

/// Lets the server get ready.
fn settle(server: &ioserver::IoServer) {
    let count = |name: &str| {
        let counters = server.statistics();
        counters
            .into_iter()
            .find(|c| c.name == name)
            .map(|c| c.value)
    };
    let (never, condition) = (Mutex::new(()), Condvar::new());
    while count("reserve_bytes") < count("reserve_wanted_bytes") || count("warm_bytes") > Some(0) {
        let guard = never.lock().expect("nobody panics");
        let pause = Duration::from_millis(2);
        drop(condition.wait_timeout(guard, pause).expect("nobody panics"));
    }
}

fn main() {
    let dir: PathBuf = std::env::temp_dir().join(format!("pario-new-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let mut options = metaserver::Options::new(dir.join("catalogue"));
    options.listen = vec![socket(&dir, "meta")];
    let manager = metaserver::start(options).expect("a manager");
    let store = StoreOptions::Memory {
        limit_bytes: 2 << 30,
    };
    let options = ioserver::Options::new(socket(&dir, "meta"), socket(&dir, "io"), store);
    let server = ioserver::start(options).expect("a server");
    let url = ServiceUrl::At(socket(&dir, "meta"));
    let client = Client::connect(&url, ConnectOptions::default()).expect("a client");
    let new = OpenOptions::new().read().write().create();
    let old = OpenOptions::new().read().write();
    println!("MB/s        new  again  reopened   tmpfs new  again");
    for (name, mib, piece) in [
        ("inside", 48, MIB),
        ("inside", 48, 64 << 10),
        ("beyond", 512, MIB),
        ("beyond", 512, 64 << 10),
    ] {
        for round in 0..4 {
            settle(&server);
            let path = format!("/{name}-{piece}-{round}");
            let write = |file: &File| {
                rate(mib, piece, |at, bytes| {
                    file.write_at(at, bytes).expect("written");
                })
            };
            let file = client.open(&path, &new).expect("made");
            let (first, again) = (write(&file), write(&file));
            drop(file);
            let reopened = write(&client.open(&path, &old).expect("opened"));
            client.unlink(&path).expect("removed");
            let plain = Path::new("/dev/shm").join(format!("pario-new-{}", std::process::id()));
            let file = PlainFile::create(&plain).expect("made");
            let write = || {
                rate(mib, piece, |at, bytes| {
                    file.write_all_at(bytes, at).expect("written")
                })
            };
            let (plain_first, plain_again) = (write(), write());
            let _ = std::fs::remove_file(plain);
            println!(
                "{name} {:>4} KiB {first:6.0} {again:6.0} {reopened:9.0} {plain_first:11.0} {plain_again:6.0}",
                piece >> 10
            );
        }
    }
    println!("{:?}", client.direct_statistics());
    drop(client);
    server.stop();
    drop(manager);
    let _ = std::fs::remove_dir_all(&dir);
}
