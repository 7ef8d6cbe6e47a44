//! Rates of short writes and reads that go by message, over a Unix socket and over TCP of this host: as they come, and collected or
//! read ahead by the handle; beside a bare socket that carries the same bytes, and a file on tmpfs.
//!
//! `cargo run --release -p client --example message_rates`. Three servers run in threads of the program. Numbers for people; nothing is
//! asserted.

use std::fs::File as PlainFile;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use client::{Client, ConnectOptions, Endpoint, File, Hints, OpenOptions, ServiceUrl};
use ioserver::StoreOptions;

/// Accesses of one round.
const COUNT: u64 = 4000;
/// Rounds, of which the median counts.
const ROUNDS: usize = 5;

/// Microseconds of one access, the median of some rounds.
fn micros(mut round: impl FnMut(usize)) -> f64 {
    let mut all: Vec<f64> = (0..ROUNDS)
        .map(|k| {
            let started = Instant::now();
            round(k);
            started.elapsed().as_secs_f64() * 1e6 / COUNT as f64
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[ROUNDS / 2]
}

/// A request of so many bytes and an answer of 40, back and forth.
fn bare(mut here: impl Read + Write, mut there: impl Read + Write + Send, len: usize) -> f64 {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut bytes = vec![0; len];
            for _ in 0..COUNT * ROUNDS as u64 {
                there.read_exact(&mut bytes).expect("a request");
                there.write_all(&[0; 40]).expect("an answer");
            }
        });
        let (bytes, mut answer) = (vec![7; len], [0; 40]);
        micros(|_| {
            for _ in 0..COUNT {
                here.write_all(&bytes).expect("a request");
                here.read_exact(&mut answer).expect("an answer");
            }
        })
    })
}

/// How clients and servers are connected.
#[derive(Clone, Copy)]
enum Sockets {
    Unix,
    Tcp,
}

fn endpoint(dir: &Path, name: &str, sockets: Sockets) -> Endpoint {
    match sockets {
        Sockets::Unix => Endpoint::Unix(dir.join(name)),
        Sockets::Tcp => Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: 0,
        },
    }
}

/// Writes a file from its begin on, an access at a time, and syncs.
fn write_through(file: &File, len: usize) {
    let bytes = vec![7; len];
    for k in 0..COUNT {
        file.write_at(k * len as u64, &bytes).expect("written");
    }
    file.sync().expect("synced");
}

/// Reads it in the same accesses.
fn read_through(file: &File, len: usize) {
    let mut bytes = vec![0; len];
    for k in 0..COUNT {
        file.read_at(k * len as u64, &mut bytes).expect("read");
    }
}

fn measure(sockets: Sockets) {
    let way = match sockets {
        Sockets::Unix => "unix",
        Sockets::Tcp => "tcp ",
    };
    let dir = std::env::temp_dir().join(format!("pario-message-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let mut options = metaserver::Options::new(dir.join("catalogue"));
    options.listen = vec![endpoint(&dir, "meta", sockets)];
    let manager = metaserver::start(options).expect("a manager");
    let meta = manager.endpoints()[0].clone();
    let servers: Vec<_> = (0..3)
        .map(|k| {
            let store = StoreOptions::Memory {
                limit_bytes: 1 << 30,
            };
            let listen = endpoint(&dir, &format!("io{k}"), sockets);
            ioserver::start(ioserver::Options::new(meta.clone(), listen, store)).expect("a server")
        })
        .collect();
    let options = ConnectOptions::default().with_direct(false);
    let client = Client::connect(&ServiceUrl::At(meta), options).expect("a client");
    let collecting = Hints::new()
        .with("write_behind", "on")
        .and_then(|hints| hints.with("prefetch", "on"))
        .expect("hints");
    for len in [512, 4096] {
        for view in ["whole", "striped(512) over 4 [1]"] {
            let mut row = Vec::new();
            for hints in [Hints::new(), collecting.clone()] {
                let new = |k: usize| {
                    let path = format!(
                        "/{len}-{}-{}-{k}",
                        view.len(),
                        hints.get("prefetch").is_some()
                    );
                    let options = OpenOptions::new().read().write().create();
                    let options = options.layout("striped(64KiB) over 3");
                    let file = client.open(&path, &options).expect("made");
                    file.set_hints(&hints).expect("taken");
                    file.set_view_text(view).expect("set");
                    file
                };
                let files: Vec<File> = (0..ROUNDS).map(new).collect();
                let (before, _) = client.messages_sent();
                row.push(micros(|k| write_through(&files[k], len)));
                let sent = client.messages_sent().0 - before;
                row.push(sent as f64 / (COUNT * ROUNDS as u64) as f64);
                row.push(micros(|k| read_through(&files[k], len)));
            }
            let socket = match sockets {
                Sockets::Unix => {
                    let (here, there) = UnixStream::pair().expect("sockets");
                    bare(here, there, len)
                }
                Sockets::Tcp => {
                    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
                    let here = TcpStream::connect(listener.local_addr().expect("bound"));
                    let (here, there) =
                        (here.expect("connected"), listener.accept().expect("one").0);
                    here.set_nodelay(true).expect("set");
                    there.set_nodelay(true).expect("set");
                    bare(here, there, len)
                }
            };
            let plain = Path::new("/dev/shm").join(format!("pario-message-{}", std::process::id()));
            let file = PlainFile::create(&plain).expect("made");
            let bytes = vec![7; len];
            let tmpfs = micros(|_| {
                file.set_len(0).expect("cut");
                for k in 0..COUNT {
                    file.write_all_at(&bytes, k * len as u64).expect("written");
                }
            });
            let _ = std::fs::remove_file(plain);
            println!(
                "{way} {len:>5} {view:<24} {:7.2} {:9.3} {:7.2} | {:7.2} {:9.3} {:7.2} | {socket:7.2} {tmpfs:7.2}",
                row[0], row[1], row[2], row[3], row[4], row[5]
            );
        }
    }
    drop(client);
    for server in servers {
        server.stop();
    }
    drop(manager);
    let _ = std::fs::remove_dir_all(&dir);
}

fn main() {
    println!(
        "us per access                        as they come              | collected, read ahead     | bare socket, tmpfs"
    );
    println!(
        "way  bytes view                      write  messages    read |   write  messages    read |"
    );
    for sockets in [Sockets::Unix, Sockets::Tcp] {
        measure(sockets);
    }
}
