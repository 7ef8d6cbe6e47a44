//! Rates of direct access on this machine: short accesses in one thread, and the mapping paper's
//! matrices by four processes, each against a copy in memory.
//!
//! `cargo run --release -p client --example direct_rates`. The servers run in threads of the program,
//! which starts itself again as the four processes. Numbers for people; nothing is asserted.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use client::{Client, ConnectOptions, Endpoint, File, OpenOptions, ServiceUrl};
use ioserver::StoreOptions;

const PROCESSES: usize = 4;

fn socket(dir: &Path, name: &str) -> Endpoint {
    Endpoint::Unix(dir.join(name))
}

fn connect(dir: &Path) -> Client {
    let url = ServiceUrl::At(socket(dir, "meta"));
    Client::connect(&url, ConnectOptions::from_env().unwrap()).unwrap()
}

fn open(client: &Client, path: &str, array: &str, layout: &str) -> File {
    let options = OpenOptions::new()
        .read()
        .write()
        .create()
        .array(array)
        .layout(layout);
    client.open(path, &options).unwrap()
}

/// Nanoseconds of one call: the least of some rounds.
fn time(rounds: usize, calls: usize, mut call: impl FnMut(usize)) -> f64 {
    let rounds = (0..rounds).map(|_| {
        let started = Instant::now();
        for i in 0..calls {
            call(i);
        }
        started.elapsed().as_nanos() as f64 / calls as f64
    });
    rounds.fold(f64::MAX, f64::min)
}

#[inline(never)]
fn copy(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

fn short(dir: &Path) {
    let client = connect(dir);
    let file = open(&client, "/short", "u8[1048576]", "whole");
    file.write_at(0, &vec![1; 1 << 20]).unwrap();
    println!("short accesses, ns:  copy   read  write");
    for len in [64, 512, 4096, 16384] {
        let mut buffer = vec![1u8; len];
        let mut other = vec![1u8; 1 << 20];
        let places = (1 << 20) / len - 1;
        let at = |i: usize| i % places.min(8) * len;
        for i in 0..100 {
            file.read_at(at(i) as u64, &mut buffer).unwrap();
            file.write_at(at(i) as u64, &buffer).unwrap();
        }
        let copied = time(20, 20_000, |i| {
            let from = at(i);
            copy(&buffer, &mut other[from..from + len]);
        });
        let read = time(20, 20_000, |i| {
            file.read_at(at(i) as u64, &mut buffer).unwrap();
        });
        let written = time(20, 20_000, |i| {
            file.write_at(at(i) as u64, &buffer).unwrap();
        });
        println!("{len:>17} {copied:>7.0} {read:>6.0} {written:>6.0}");
    }
    println!("{:?}", client.direct_statistics());
}

/// One of the processes: a line says what to do, a line says how long it took.
fn work(dir: &Path, rank: usize) {
    let client = connect(dir);
    let mut lines = std::io::stdin().lines();
    while let Some(Ok(line)) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        let (n, layout) = (words[0].parse::<usize>().unwrap(), words[1]);
        let bytes = n * n / PROCESSES;
        let mut buffer = vec![rank as u8; bytes];
        let mut other = vec![0u8; bytes];
        let array = format!("u8[{n},{n}]");
        let layout_text = match layout {
            "r" => "(block,*) onto 4",
            "c" => "(*,block) onto 4",
            _ => "(block,block) onto 2x2",
        };
        let file = open(&client, &format!("/m{layout}{n}"), &array, layout_text);
        file.set_view_text(&format!("(block,*) onto 4 [{rank}]"))
            .unwrap();
        let rounds = ((512 << 20) / bytes).clamp(4, 200);
        let mut step = |name: &str, run: &mut dyn FnMut()| {
            for _ in 0..3 {
                run();
            }
            println!("{name} ready");
            std::io::stdout().flush().unwrap();
            lines.next().unwrap().unwrap();
            let started = Instant::now();
            for _ in 0..rounds {
                run();
            }
            let ns = started.elapsed().as_nanos() as f64 / rounds as f64;
            println!("{ns}");
            std::io::stdout().flush().unwrap();
        };
        step("memcpy", &mut || copy(&buffer, &mut other));
        step("write", &mut || {
            file.write_at(0, &buffer).unwrap();
        });
        assert!(file.last_access().is_direct || !ConnectOptions::from_env().unwrap().direct);
        step("read", &mut || {
            file.read_at(0, &mut buffer).unwrap();
        });
        file.close().unwrap();
        println!("done");
    }
}

struct Worker {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Worker {
    fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    fn hear(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

fn matrices(dir: &Path) {
    let mut workers: Vec<Worker> = (0..PROCESSES)
        .map(|rank| {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .arg(dir)
                .arg(rank.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            Worker { child, lines }
        })
        .collect();
    println!("four processes, GB/s:       memcpy   write    read");
    for n in [4096, 8192, 16384] {
        for layout in ["r", "b", "c"] {
            workers
                .iter_mut()
                .for_each(|w| w.tell(&format!("{n} {layout}")));
            let mut rates = Vec::new();
            for _ in 0..3 {
                for w in &mut workers {
                    w.hear();
                }
                workers.iter_mut().for_each(|w| w.tell("go"));
                let times = workers.iter_mut().map(|w| w.hear().parse::<f64>().unwrap());
                rates.push((n * n) as f64 / times.fold(0.0, f64::max));
            }
            workers
                .iter_mut()
                .for_each(|w| assert_eq!(w.hear(), "done"));
            println!(
                "{layout} N={n:<6}               {:>7.1} {:>7.1} {:>7.1}",
                rates[0], rates[1], rates[2]
            );
        }
    }
    for mut worker in workers {
        drop(worker.child.stdin.take());
        worker.child.wait().unwrap();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [dir, rank] = &arguments[..] {
        return work(Path::new(dir), rank.parse().unwrap());
    }
    let dir: PathBuf = std::env::temp_dir().join(format!("pario-rates-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut options = metaserver::Options::new(dir.join("catalogue"));
    options.listen = vec![socket(&dir, "meta")];
    let manager = metaserver::start(options).unwrap();
    let servers: Vec<ioserver::IoServer> = (0..4)
        .map(|i| {
            let store = StoreOptions::Memory {
                limit_bytes: 2 << 30,
            };
            let listen = socket(&dir, &format!("io{i}"));
            let options = ioserver::Options::new(socket(&dir, "meta"), listen, store);
            ioserver::start(options).unwrap()
        })
        .collect();
    short(&dir);
    matrices(&dir);
    for server in servers {
        server.stop();
    }
    drop(manager);
    let _ = std::fs::remove_dir_all(&dir);
}
