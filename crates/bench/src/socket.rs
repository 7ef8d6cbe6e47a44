//! `pario bench socket`: contiguous accesses of one client to one I/O server in memory, against the
//! same bytes over bare sockets.
//!
//! ```text
//!  unix|tcp|tls / read|write / b=BYTES      ratio `socket`: bare time / Pario's time, of the same run
//! ```
//!
//! The bare side of TLS is TCP: what certificates and encryption cost is the difference to the case over TCP.
//!
//! The bare side is a process too: for a write it receives b bytes into warm memory and answers with
//! one byte, for a read it gets one byte and sends b bytes from warm memory. Both sides take turns;
//! values are medians, because on a shared machine the best of a turn with two processes is luck.
//! Both sides are also placed alike, because a wake-up on another core takes three times as long as one
//! on the same: up to 64 KiB client and servers share a core, where a bare round trip is cheapest, and
//! above that the client has one core and the servers another. Column `cores` says so; it is absent
//! where processes cannot be placed (one core, or no `taskset`).
//! Writes are also measured with the announcement forced and forbidden, which shows whether the
//! threshold in force is a sensible one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use clap::Args;
use client::{Client, ConnectOptions, File, Hints, OpenOptions, ServerId};
use console::{Error, output, refused};
use serde_json::json;

use super::contest::{Contestant, Effort, Outcome, contest};
use super::site::{self, ListeningChild, ServiceSpec, Site, Transport};
use super::{Row, Sheet, digits};

/// Sizes of accesses.
const SIZES: [usize; 5] = [4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20];
const TRANSPORTS: [Transport; 3] = [Transport::Unix, Transport::Tcp, Transport::Tls];
/// The file that is read and written.
const PATH: &str = "/socket";
/// Memory of the server.
const MEMORY: u64 = 256 << 20;

/// Arguments of `pario bench socket`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Be the bare side, listening here
    #[arg(long, hide = true, value_name = "URL")]
    bare: Option<String>,

    /// Do one pass of one case against this service and print its rate
    #[arg(long, hide = true, value_name = "CASE", requires = "service")]
    first_pass: Option<String>,

    #[arg(long, hide = true, value_name = "URL")]
    service: Option<String>,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

/// One case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    transport: Transport,
    direction: Direction,
    bytes: usize,
}

impl Case {
    fn name(&self) -> String {
        let direction = match self.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        let (transport, bytes) = (self.transport.word(), self.bytes);
        format!("{transport}/{direction}/b={bytes}")
    }

    /// Cores that client and servers are placed on.
    fn cores(&self) -> usize {
        if self.bytes <= 64 << 10 { 1 } else { 2 }
    }

    fn all() -> impl Iterator<Item = Case> {
        TRANSPORTS.into_iter().flat_map(|transport| {
            let directions = [Direction::Read, Direction::Write];
            directions.into_iter().flat_map(move |direction| {
                SIZES.into_iter().map(move |bytes| Case {
                    transport,
                    direction,
                    bytes,
                })
            })
        })
    }
}

/// Runs the benchmark; no report if this is one of its other processes. Quickly there is no fresh process per case.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    if let Some(url) = &arguments.bare {
        return serve_bare(url);
    }
    if let (Some(name), Some(url)) = (&arguments.first_pass, &arguments.service) {
        return output::print(&format!("{}\n", first_pass(name, url)?));
    }
    let effort = match sheet.is_quick() {
        true => Effort::new(7, 1e6),
        false => Effort::new(15, 1e7),
    };
    sheet.begin("socket", "GB/s", format!("median of {}", effort.turns));
    for transport in TRANSPORTS {
        let cases: Vec<Case> = Case::all()
            .filter(|case| case.transport == transport && sheet.wants(&case.name()))
            .collect();
        if cases.is_empty() {
            continue;
        }
        let wanted = ServiceSpec {
            transport,
            memory: MEMORY,
            ..ServiceSpec::memory(1, 0)
        };
        let service = Site::start(&wanted, None)?;
        let at = transport.address(&service.scratch(""), "bare.sock");
        let bare = bare(Command::new(super::this_program()?), &at)?;
        for case in cases {
            let mut servers = service.server_pids();
            servers.push(bare.pid());
            let cores = place(case.cores(), &servers);
            let mut row = measure(&case, effort, &service, &bare.url)?;
            if !sheet.is_quick() {
                let (name, url) = (case.name(), service.url());
                row.first = super::first_pass(&["socket", "--first-pass", &name, "--service", url]);
            }
            if let Some(cores) = cores {
                row.set("cores", cores);
            }
            sheet.push(row)?;
        }
    }
    match sheet.rows.is_empty() {
        true => Err("--filter: no case has such a name; they are like unix/read/b=4096".into()),
        false => Ok(()),
    }
}

/// Places this process and the servers on one core, or on one each; how many, if that was possible.
fn place(cores: usize, servers: &[u32]) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mut usable = ALLOWED.get_or_init(|| allowed(&status)).iter();
    let here = *usable.next()?;
    let there = *usable.next()?;
    let there = if cores == 1 { here } else { there };
    let pin = |core: u64, pid: u32| {
        let done = Command::new("taskset")
            .args(["-a", "-c", "-p", &core.to_string(), &pid.to_string()])
            .output();
        done.is_ok_and(|output| output.status.success())
            .then_some(())
    };
    for &pid in servers {
        pin(there, pid)?;
    }
    pin(here, std::process::id())?;
    Some(cores)
}

/// The cores that this process was given, before it placed itself.
static ALLOWED: OnceLock<Vec<u64>> = OnceLock::new();

/// The list of cores in the status of a process, such as `0-3,8`.
fn allowed(status: &str) -> Vec<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let ranges = line.unwrap_or("").trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u64>().ok()?..=last.parse::<u64>().ok()?)
    });
    ranges.flatten().take(2).collect()
}

fn measure(case: &Case, effort: Effort, service: &Site, bare: &str) -> Result<Row, Error> {
    let client = connect(service.url())?;
    let mut pario = Accesses::open(&client, case, None)?;
    let mut inline = Accesses::open(&client, case, Some(u64::MAX))?;
    let mut announced = Accesses::open(&client, case, Some(0))?;
    let mut socket = Bare::connect(bare, case)?;
    pario.fill()?;
    let mut contestants: Vec<&mut dyn Contestant> = vec![&mut pario, &mut socket];
    if case.direction == Direction::Write {
        contestants.extend([&mut inline as &mut dyn Contestant, &mut announced]);
    }
    let outcomes = contest(effort, &mut contestants);
    let failures = [&pario.failed, &inline.failed, &announced.failed];
    if let Some(error) = failures.into_iter().flatten().next() {
        return Err(format!("{}: {error}", case.name()).into());
    }
    let Some(reached) = outcomes[0] else {
        return Err(format!("{}: it did not run", case.name()).into());
    };
    let of = |index: usize| outcomes.get(index).copied().flatten();
    let us = |outcome: Outcome| digits(outcome.median / 1e3, 2);
    let socket = of(1).map(|bare| ("socket", bare.median / reached.median));
    let mut row = Row::new(case.name(), case.bytes as f64 / reached.median, "GB/s")
        .spread(reached.spread())
        .ratios(socket)
        .column("us", us(reached));
    for (name, index) in [("socket_us", 1), ("inline_us", 2), ("announced_us", 3)] {
        if let Some(outcome) = of(index) {
            row.set(name, us(outcome));
        }
    }
    pario.count(&client, row)
}

fn connect(url: &str) -> Result<Client, Error> {
    // Sockets are what is measured, also between processes of one host.
    let options = ConnectOptions::from_env().map_err(refused)?;
    site::connect(url, options.with_direct(false))
}

/// Pario's side: the same access again and again.
struct Accesses {
    file: File,
    direction: Direction,
    memory: Vec<u8>,
    failed: Option<String>,
}

impl Accesses {
    fn open(client: &Client, case: &Case, rendezvous: Option<u64>) -> Result<Accesses, Error> {
        let mut hints = Hints::new();
        if let Some(bytes) = rendezvous {
            hints
                .set("rendezvous_bytes", &bytes.to_string())
                .map_err(refused)?;
        }
        let options = OpenOptions::new().read().write().create().hints(hints);
        let options = options.layout("striped(64MiB) over 1");
        let file = client.open(PATH, &options).map_err(refused)?;
        let memory = (0..case.bytes).map(|i| (i % 251) as u8).collect();
        Ok(Accesses {
            file,
            direction: case.direction,
            memory,
            failed: None,
        })
    }

    /// Makes sure that there is something to read.
    fn fill(&mut self) -> Result<(), Error> {
        self.file.write_at(0, &self.memory).map_err(refused)?;
        Ok(())
    }

    fn access(&mut self) -> client::Result<usize> {
        match self.direction {
            Direction::Read => self.file.read_at(0, &mut self.memory),
            Direction::Write => self.file.write_at(0, &self.memory),
        }
    }

    /// What one more access takes, counted on both sides, as columns.
    fn count(&mut self, client: &Client, row: Row) -> Result<Row, Error> {
        let servers = client.members().map_err(refused)?;
        let server = servers.first().ok_or("the service has no server")?.server;
        let before = counters(client, server)?;
        self.access().map_err(refused)?;
        let after = counters(client, server)?;
        let phases = self.file.last_access();
        let more = |name: &str| after(name).saturating_sub(before(name));
        let row = row
            .column("threshold", after("rendezvous_bytes"))
            .column("messages", phases.messages())
            .column("rounds", more("rounds"));
        Ok(match self.direction {
            Direction::Write => row.column("announced", more("announced_writes")),
            Direction::Read => row,
        })
    }
}

fn counters(client: &Client, server: ServerId) -> Result<impl Fn(&str) -> u64 + use<>, Error> {
    let list = client.server_statistics(server).map_err(refused)?;
    Ok(move |name: &str| list.iter().find(|c| c.name == name).map_or(0, |c| c.value))
}

impl Contestant for Accesses {
    fn turn(&mut self, passes: u64) -> Option<f64> {
        let start = Instant::now();
        for _ in 0..passes {
            match self.access() {
                Ok(n) if n == self.memory.len() => {}
                Ok(n) => self.failed = Some(format!("{n} bytes were moved")),
                Err(error) => self.failed = Some(error.to_string()),
            }
            if self.failed.is_some() {
                return None;
            }
        }
        Some(start.elapsed().as_nanos() as f64)
    }
}

fn first_pass(name: &str, url: &str) -> Result<f64, Error> {
    let case = Case::all().find(|case| case.name() == name);
    let case = case.ok_or("no such case")?;
    let client = connect(url)?;
    let mut pario = Accesses::open(&client, &case, None)?;
    let start = Instant::now();
    let n = pario.access().map_err(refused)?;
    Ok(n as f64 / start.elapsed().as_nanos() as f64)
}

/// A bare socket.
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Connects to the bare side and agrees on what follows, so that the exchanges themselves are bare.
    pub(crate) fn connect(url: &str, is_write: bool, bytes: usize) -> Result<Socket, Error> {
        let mut socket = match url.split_once(':') {
            Some(("unix", path)) => Socket::Unix(UnixStream::connect(path)?),
            Some((_, address)) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
            None => return Err(format!("{url}: no address").into()),
        };
        let mut terms = [0; 9];
        terms[0] = u8::from(is_write);
        terms[1..].copy_from_slice(&(bytes as u64).to_le_bytes());
        socket.send(&terms)?;
        Ok(socket)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Socket::Unix(s) => s.write_all(bytes),
            Socket::Tcp(s) => s.write_all(bytes),
        }
    }

    pub(crate) fn receive(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        match self {
            Socket::Unix(s) => s.read_exact(bytes),
            Socket::Tcp(s) => s.read_exact(bytes),
        }
    }
}

/// The bare side's client.
struct Bare {
    socket: Socket,
    direction: Direction,
    memory: Vec<u8>,
}

impl Bare {
    fn connect(url: &str, case: &Case) -> Result<Bare, Error> {
        let is_write = case.direction == Direction::Write;
        Ok(Bare {
            socket: Socket::connect(url, is_write, case.bytes)?,
            direction: case.direction,
            memory: vec![1; case.bytes],
        })
    }

    fn exchange(&mut self) -> std::io::Result<()> {
        match self.direction {
            Direction::Write => {
                self.socket.send(&self.memory)?;
                self.socket.receive(&mut [0])
            }
            Direction::Read => {
                self.socket.send(&[1])?;
                self.socket.receive(&mut self.memory)
            }
        }
    }
}

impl Contestant for Bare {
    fn turn(&mut self, passes: u64) -> Option<f64> {
        let start = Instant::now();
        for _ in 0..passes {
            self.exchange().ok()?;
        }
        Some(start.elapsed().as_nanos() as f64)
    }
}

/// Starts the bare side with a command that leads to this program.
pub(crate) fn bare(command: Command, at: &str) -> Result<ListeningChild, Error> {
    ListeningChild::start(command, &["socket", "--bare", at], None)
}

/// The bare side's server, one connection after the other, until it is ended.
fn serve_bare(url: &str) -> Result<(), Error> {
    enum Listener {
        Unix(UnixListener),
        Tcp(TcpListener),
    }
    let (listener, at) = match url.split_once(':') {
        Some(("unix", path)) => (Listener::Unix(UnixListener::bind(path)?), url.to_owned()),
        Some((_, address)) => {
            let listener = TcpListener::bind(address)?;
            let at = format!("tcp:{}", listener.local_addr()?);
            (Listener::Tcp(listener), at)
        }
        None => return Err(format!("{url}: no address").into()),
    };
    output::print(&format!("{}\n", json!({ "listening": at })))?;
    loop {
        let socket = match &listener {
            Listener::Unix(l) => Socket::Unix(l.accept()?.0),
            Listener::Tcp(l) => {
                let stream = l.accept()?.0;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
        };
        // The end of a connection is no failure.
        let _ = converse(socket);
    }
}

fn converse(mut socket: Socket) -> std::io::Result<()> {
    let mut terms = [0; 9];
    socket.receive(&mut terms)?;
    let [direction, length @ ..] = terms;
    let bytes = usize::try_from(u64::from_le_bytes(length)).unwrap_or(0);
    let mut memory = vec![1; bytes.min(SIZES[SIZES.len() - 1])];
    loop {
        if direction == 0 {
            socket.receive(&mut [0])?;
            socket.send(&memory)?;
        } else {
            socket.receive(&mut memory)?;
            socket.send(&[1])?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_the_names_of_the_issue() {
        let names: Vec<String> = Case::all().map(|case| case.name()).collect();
        assert_eq!(names.len(), 30);
        assert_eq!(names[0], "unix/read/b=4096");
        assert_eq!(names[19], "tcp/write/b=16777216");
        assert_eq!(names[29], "tls/write/b=16777216");
    }

    #[test]
    fn the_first_two_cores_are_read_from_the_status() {
        assert_eq!(allowed("Cpus_allowed_list:\t0-3,8\n"), [0, 1]);
        assert_eq!(allowed("x\nCpus_allowed_list:\t5,7-9\n"), [5, 7]);
        assert_eq!(allowed("Cpus_allowed_list:\t2\n"), [2]);
        assert!(allowed("nothing").is_empty());
    }

    #[test]
    fn bare_sides_exchange_whole_accesses() {
        for direction in [Direction::Read, Direction::Write] {
            let (near, far) = UnixStream::pair().expect("a pair of sockets");
            let server = std::thread::spawn(move || converse(Socket::Unix(far)));
            let mut terms = vec![u8::from(direction == Direction::Write)];
            terms.extend(5000u64.to_le_bytes());
            let mut bare = Bare {
                socket: Socket::Unix(near),
                direction,
                memory: vec![0; 5000],
            };
            bare.socket.send(&terms).expect("sent");
            assert!(bare.turn(3).is_some());
            let expected = u8::from(direction == Direction::Read);
            assert!(bare.memory.iter().all(|&byte| byte == expected));
            drop(bare);
            assert!(server.join().expect("no panic").is_err(), "it ends");
        }
    }
}
