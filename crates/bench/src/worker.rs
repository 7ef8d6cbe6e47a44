//! A client process of a benchmark: does what it is told, one line of JSON at a time, and ends with its
//! input. It waits for its next order in a read, so nothing spins between them.
//!
//! ```text
//! in   {"do": "part", "array": A, "view": V, "salt": S}       what it writes and reads
//!      {"do": "open", "name": K, "path": P, "layout": L, ..}  a file of the service
//!      {"do": "plain", "name": K, "path": P, "at": N}         or a part of a file of the host
//!      {"do": "write"|"read"|"check", "name": K, ..}          timed; a read is compared byte by byte
//!      {"do": "repeat", "what": "read"|.., "times": N, ..}    timed together; as one order, or as
//!      {"do": "prepare"|"timed"|"compare", ..}                three, so that all begin prepared
//!      {"do": "latency", ..}, {"do": "files", ..}             many small ones
//!      {"do": "tree", "op": O, ..}                            a step with many files (`many_files`)
//!      {"do": "ranks", ..}                                    collective accesses of threads
//!      {"do": "fresh", "step": S, ..}                         a share of a new file
//! out  {"start": NS, "end": NS, "wrong": N, ..}               or {"error": TEXT}
//! ```
//!
//! Times are of the system's clock, which all processes of a host share, so that the process that gives the
//! orders takes the span from the first start to the last end. What is prepared and compared lies
//! outside of it.

use std::collections::HashMap;
use std::fs::{self, OpenOptions as FileOptions};
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use client::{Client, ConnectOptions, Endpoint, File, Hints, Mapping, OpenOptions, StoreKind};
use layout::ArrayType;
use serde_json::{Value, json};

use super::content::{self, WorkerBytes};
use super::fresh::Share;
use super::many_files::Step;
use super::ranks::Run;
use super::site;
use super::socket::Socket;
use console::Error;
use console::refused;

/// Arguments of `pario-bench worker`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// The service
    #[arg(long, value_name = "URL")]
    service: Option<String>,
}

/// Bytes compared at a time where a whole file is.
const CHUNK: usize = 4 << 20;

/// Obeys until the input ends.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let mut worker = Worker {
        service: arguments.service.clone(),
        ..Worker::default()
    };
    if let Some(url) = &arguments.service {
        let options = ConnectOptions::from_env().map_err(refused)?;
        worker.client = Some(site::connect(url, options)?);
    }
    console::driven::obey(|line| worker.obey(line))
}

#[derive(Default)]
struct Worker {
    service: Option<String>,
    client: Option<Client>,
    /// A client that talks through one server, where an order wants one.
    through_one: Option<Client>,
    array: Option<ArrayType>,
    view: String,
    salt: u32,
    source: Vec<u8>,
    target: Vec<u8>,
    files: HashMap<String, WorkerFile>,
    sockets: HashMap<String, Socket>,
    share: Option<Share>,
}

/// A file that can be accessed.
struct WorkerFile {
    access: Access,
    /// Of the last write.
    stamp: u32,
    /// Servers of this host.
    near: Vec<u64>,
}

enum Access {
    /// Of the service, by its path.
    Pario(File, Client, String),
    /// Of the host, of which this process has one contiguous part, from this place on.
    Plain(fs::File, u64),
}

impl WorkerFile {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        match &self.access {
            Access::Pario(file, ..) => moved_all(file.write_at(at, bytes), bytes.len()),
            Access::Plain(file, from) => Ok(file.write_all_at(bytes, from + at)?),
        }
    }

    fn read_at(&self, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let len = bytes.len();
        match &self.access {
            Access::Pario(file, ..) => moved_all(file.read_at(at, bytes), len),
            Access::Plain(file, from) => Ok(file.read_exact_at(bytes, from + at)?),
        }
    }

    /// Messages with bytes that its client has sent.
    fn messages(&self) -> u64 {
        match &self.access {
            Access::Pario(_, client, _) => client.messages_sent().1,
            Access::Plain(..) => 0,
        }
    }

    /// An answer about an access, with what it took beside time.
    fn answer(&self, mut answer: Value, messages_before: u64) -> Value {
        if let Access::Pario(file, ..) = &self.access {
            answer["messages"] = json!(self.messages() - messages_before);
            answer["phases"] = phases(file);
            let servers = file.last_access().servers;
            let near = servers.iter().filter(|s| self.near.contains(&s.server));
            answer["near"] = json!(near.map(|s| s.bytes).sum::<u64>());
        }
        answer
    }
}

/// The file that an order speaks of.
fn opened<'a>(
    files: &'a mut HashMap<String, WorkerFile>,
    order: &Order,
) -> Result<&'a mut WorkerFile, Error> {
    let name = order.text("name")?;
    let found = files.get_mut(name);
    Ok(found.ok_or_else(|| format!("'{name}' is not open"))?)
}

/// An order.
struct Order(Value);

impl Order {
    fn text(&self, name: &str) -> Result<&str, Error> {
        let found = self.0[name].as_str();
        Ok(found.ok_or_else(|| format!("the order has no '{name}'"))?)
    }

    fn number(&self, name: &str) -> Result<u64, Error> {
        let found = self.0[name].as_u64();
        Ok(found.ok_or_else(|| format!("the order has no '{name}'"))?)
    }

    fn is(&self, name: &str) -> bool {
        self.0[name].as_bool() == Some(true)
    }
}

/// Nanoseconds that all processes of the host agree on.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |t| t.as_nanos() as u64)
}

fn done(start: u64, wrong: u64) -> Value {
    json!({ "start": start, "end": now(), "wrong": wrong })
}

impl Worker {
    fn obey(&mut self, line: &str) -> Result<Value, Error> {
        let order = Order(serde_json::from_str(line).map_err(|e| format!("no order: {e}"))?);
        match order.text("do")? {
            "ready" => Ok(json!({ "wrong": 0 })),
            "part" => self.part(&order),
            "open" => self.open(&order),
            "write" | "plain-write" => self.write(&order),
            "read" | "plain-read" => self.read(&order),
            "check" => self.check(&order),
            "close" => self.close(&order),
            "copy" => self.copy(),
            "repeat" => self.repeat(&order),
            "prepare" => self.prepare(&order),
            "timed" => self.timed(&order),
            "compare" => self.compare(&order),
            "plain" => self.open_plain(&order),
            "exchange" => self.exchange(&order),
            "latency" => self.latency(&order),
            "files" => self.many_files(&order),
            "tree" => {
                let step = Step::of(&order.0)?;
                let (start, wrong) = match order.is("plain") {
                    true => step.run_plain()?,
                    false => step.run(self.client()?)?,
                };
                Ok(done(start, wrong))
            }
            "ranks" => self.ranks(&order),
            "fresh" => self.fresh(&order),
            other => Err(format!("do: '{other}' is not known").into()),
        }
    }

    fn client(&self) -> Result<&Client, Error> {
        Ok(self.client.as_ref().ok_or("not connected")?)
    }

    /// Collective accesses of ranks that are threads of this process.
    fn ranks(&self, order: &Order) -> Result<Value, Error> {
        let schemes = order.0["schemes"].as_array().ok_or("no schemes")?;
        Run {
            service: self.service.as_ref().ok_or("not connected")?,
            ranks: order.number("ranks")? as usize,
            record: order.number("record")?,
            bytes: order.number("bytes")?,
            writes: order.is("writes"),
            turns: order.number("turns")? as usize,
            layout: order.text("layout")?,
            schemes: schemes.iter().filter_map(Value::as_str).collect(),
        }
        .run()
    }

    /// One step of a share of a new file.
    fn fresh(&mut self, order: &Order) -> Result<Value, Error> {
        if order.text("step")? == "deal" {
            self.share = Some(Share::deal(&order.0)?);
            return Ok(json!({ "wrong": 0 }));
        }
        let client = self.client.as_ref().ok_or("not connected")?;
        let share = self.share.as_mut().ok_or("nothing was dealt out")?;
        share.step(&order.0, client)
    }

    /// Round robin, as the thesis' system had it.
    fn through_one(&mut self) -> Result<&Client, Error> {
        if self.through_one.is_none() {
            let url = self.service.as_ref().ok_or("not connected")?;
            let options = ConnectOptions::from_env().map_err(refused)?;
            let options = options.with_mapping(Mapping::RoundRobin);
            self.through_one = Some(site::connect(url, options)?);
        }
        Ok(self.through_one.as_ref().ok_or("not connected")?)
    }

    fn part(&mut self, order: &Order) -> Result<Value, Error> {
        let array: ArrayType = order.text("array")?.parse()?;
        let salt = order.number("salt")? as u32;
        let view = order.text("view")?.to_owned();
        let part = WorkerBytes::new(&array, &view, salt)?;
        self.source = part.fill();
        self.target = vec![0; self.source.len()];
        (self.array, self.view, self.salt) = (Some(array), view, salt);
        Ok(json!({ "wrong": 0, "bytes": self.source.len() }))
    }

    fn open(&mut self, order: &Order) -> Result<Value, Error> {
        let (name, path) = (order.text("name")?, order.text("path")?);
        let array = self.array.as_ref().ok_or("no part was given")?.to_string();
        let mut hints = Hints::new();
        for hint in [
            "profile",
            "strategy",
            "ind_rd_buffer_size",
            "ind_wr_buffer_size",
        ] {
            if let Some(value) = order.0[hint].as_str() {
                hints.set(hint, value).map_err(refused)?;
            }
        }
        let mut options = OpenOptions::new().read().write().hints(hints);
        if order.is("create") {
            options = options.create().array(&array).layout(order.text("layout")?);
        }
        let client = match order.is("through_one_server") {
            true => self.through_one()?,
            false => self.client()?,
        };
        let client = client.clone();
        let file = client.open(path, &options).map_err(refused)?;
        file.set_view_text(&self.view).map_err(refused)?;
        let state = file.layout();
        let places = state.pieces.first().map(|piece| {
            let first = |list: &Vec<client::Place>| list.first().map_or(0, |p| p.server);
            piece.places.iter().map(first).collect::<Vec<u64>>()
        });
        let servers = self.client()?.members().map_err(refused)?;
        let near = servers.iter().filter(|member| is_of_host(&member.address));
        let opened = WorkerFile {
            access: Access::Pario(file, client, path.to_owned()),
            stamp: order.number("stamp").unwrap_or(0) as u32,
            near: near.map(|member| member.server.0).collect(),
        };
        self.files.insert(name.to_owned(), opened);
        let first = servers.iter().map(|member| member.server.0).min();
        let on_disk = servers.iter().filter(|m| m.store == StoreKind::Disk);
        let disks = on_disk.count();
        Ok(json!({ "wrong": 0, "places": places, "first_server": first, "disks": disks }))
    }

    /// With `sync` the bytes of a plain file are on the disk when the time ends.
    fn write(&mut self, order: &Order) -> Result<Value, Error> {
        let stamp = order.number("stamp")? as u32;
        content::stamp(&mut self.source, stamp);
        let opened = opened(&mut self.files, order)?;
        opened.stamp = stamp;
        let before = opened.messages();
        let start = now();
        opened.write_at(0, &self.source)?;
        if let (Access::Plain(file, _), true) = (&opened.access, order.is("sync")) {
            file.sync_data()?;
        }
        Ok(opened.answer(done(start, 0), before))
    }

    /// With `cold` the host's cache of a plain file is dropped first, so that the bytes come from the disk.
    fn read(&mut self, order: &Order) -> Result<Value, Error> {
        self.target.fill(0xa5);
        let opened = opened(&mut self.files, order)?;
        if let (Access::Plain(file, at), true) = (&opened.access, order.is("cold")) {
            file.sync_data()?;
            let len = std::num::NonZeroU64::new(self.target.len() as u64);
            rustix::fs::fadvise(file, *at, len, rustix::fs::Advice::DontNeed)?;
        }
        let before = opened.messages();
        let start = now();
        opened.read_at(0, &mut self.target)?;
        let mut answer = done(start, 0);
        content::stamp(&mut self.source, opened.stamp);
        answer["wrong"] = json!(content::wrong(&self.target, &self.source));
        Ok(opened.answer(answer, before))
    }

    /// One access or copy a number of times, in pieces if `bytes` says so; what came last is
    /// compared outside of the time.
    fn repeat(&mut self, order: &Order) -> Result<Value, Error> {
        self.prepare(order)?;
        let mut answer = self.timed(order)?;
        answer["wrong"] = self.compare(order)?["wrong"].clone();
        Ok(answer)
    }

    /// What comes before the time of a repetition. An order of its own where there are more processes
    /// than processors: otherwise some prepare while the time of others runs.
    fn prepare(&mut self, order: &Order) -> Result<Value, Error> {
        let what = order.text("what")?;
        if !is_read(what) {
            content::stamp(&mut self.source, order.number("stamp")? as u32);
        }
        self.target.fill(0xa5);
        Ok(json!({ "wrong": 0 }))
    }

    /// The time of a repetition.
    fn timed(&mut self, order: &Order) -> Result<Value, Error> {
        let (what, times) = (order.text("what")?, order.number("times")?);
        let pieces = Pieces::of(order, self.source.len());
        let name = order.0["name"].as_str().unwrap_or_default();
        let file = self.files.get(name);
        let start = now();
        for i in 0..times {
            let at = pieces.at(i);
            let offset = at.start as u64;
            let (from, to) = (&self.source[at.clone()], &mut self.target[at]);
            match (what, file) {
                ("copy", _) => copied(from, to),
                ("write" | "plain-write", Some(file)) => file.write_at(offset, from)?,
                ("read" | "plain-read", Some(file)) => file.read_at(offset, to)?,
                _ => return Err(format!("'{name}' is not open, or '{what}' is not known").into()),
            }
        }
        Ok(done(start, 0))
    }

    /// What comes after the time of a repetition.
    fn compare(&mut self, order: &Order) -> Result<Value, Error> {
        let (what, times) = (order.text("what")?, order.number("times")?);
        let stamp = order.number("stamp")? as u32;
        let pieces = Pieces::of(order, self.source.len());
        let is_write = matches!(what, "write" | "plain-write");
        if is_write || is_read(what) {
            let opened = opened(&mut self.files, order)?;
            if is_write {
                opened.read_at(0, &mut self.target)?;
                opened.stamp = stamp;
            } else {
                content::stamp(&mut self.source, opened.stamp);
            }
        }
        let (source, target) = (&self.source, &self.target);
        // Pieces that were not among the repetitions have their old bytes.
        let covered = (0..times.min(pieces.count as u64)).map(|i| pieces.at(i));
        let wrong: u64 = match is_read(what) || pieces.count == 1 {
            true => covered
                .map(|at| content::wrong(&target[at.clone()], &source[at]))
                .sum(),
            false => 0,
        };
        Ok(json!({ "wrong": wrong }))
    }

    /// Compares the whole file, as it is before any write was stamped.
    fn check(&mut self, order: &Order) -> Result<Value, Error> {
        let salt = self.salt;
        let bytes = self.array.as_ref().map_or(0, ArrayType::bytes);
        let Access::Pario(_, _, path) = &opened(&mut self.files, order)?.access else {
            return Err("only a file of the service is compared as a whole".into());
        };
        let path = path.clone();
        let file = self.client()?.open(&path, &OpenOptions::new().read());
        let file = file.map_err(refused)?;
        let start = now();
        let (mut found, mut expected) = (vec![0; CHUNK], vec![0; CHUNK]);
        let mut wrong = file.size().map_err(refused)?.abs_diff(bytes);
        let mut at = 0;
        while at < bytes {
            let n = (bytes - at).min(CHUNK as u64) as usize;
            let read = file.read_at(at, &mut found[..n]).map_err(refused)?;
            content::fill(&mut expected[..n], at, salt);
            wrong += content::wrong(&found[..read], &expected[..n]);
            at += n as u64;
        }
        Ok(done(start, wrong))
    }

    fn close(&mut self, order: &Order) -> Result<Value, Error> {
        let name = order.text("name")?;
        if let Some(WorkerFile {
            access: Access::Pario(file, ..),
            ..
        }) = self.files.remove(name)
        {
            file.close().map_err(refused)?;
        }
        Ok(json!({ "wrong": 0 }))
    }

    fn copy(&mut self) -> Result<Value, Error> {
        let start = now();
        self.target
            .copy_from_slice(std::hint::black_box(&self.source));
        std::hint::black_box(&mut self.target);
        Ok(done(start, 0))
    }

    fn open_plain(&mut self, order: &Order) -> Result<Value, Error> {
        let path = Path::new(order.text("path")?);
        let file = FileOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| format!("{}: {e}", path.display()))?;
        let opened = WorkerFile {
            access: Access::Plain(file, order.number("at")?),
            stamp: 0,
            near: Vec::new(),
        };
        self.files.insert(order.text("name")?.to_owned(), opened);
        Ok(json!({ "wrong": 0 }))
    }

    /// Asks the bare side of a link for as many bytes as the part has.
    fn exchange(&mut self, order: &Order) -> Result<Value, Error> {
        let url = order.text("url")?;
        if !self.sockets.contains_key(url) {
            let bare = Socket::connect(url, false, self.target.len())?;
            self.sockets.insert(url.to_owned(), bare);
        }
        let bare = self.sockets.get_mut(url).ok_or("no socket")?;
        let start = now();
        bare.send(&[1])?;
        bare.receive(&mut self.target)?;
        Ok(done(start, 0))
    }

    /// Many small accesses at places drawn at random; what is read is compared with what was written
    /// there last.
    fn latency(&mut self, order: &Order) -> Result<Value, Error> {
        let bytes = order.number("bytes")? as usize;
        let count = order.number("count")?;
        let is_write = order.text("op")? == "write";
        let mut random = random::Random::new(order.number("seed")?);
        let slots = (self.source.len() / bytes).max(1) as u64;
        let file = opened(&mut self.files, order)?;
        let before = file.messages();
        let mut times = Vec::with_capacity(count as usize);
        let mut wrong = 0;
        let start = now();
        for _ in 0..count {
            let at = random.below(slots) as usize * bytes;
            let piece = at..at + bytes;
            if is_write {
                let n = bytes.min(8);
                self.source[at..at + n].copy_from_slice(&random.draw().to_le_bytes()[..n]);
            }
            let memory = &mut self.target[piece.clone()];
            let began = Instant::now();
            match is_write {
                true => file.write_at(at as u64, &self.source[piece.clone()])?,
                false => file.read_at(at as u64, memory)?,
            }
            times.push(began.elapsed().as_nanos() as u64);
            if !is_write {
                wrong += content::wrong(&self.target[piece.clone()], &self.source[piece]);
            }
        }
        let mut answer = done(start, wrong);
        times.sort_unstable();
        let at = |share: f64| {
            let index = (times.len() as f64 * share) as usize;
            times.get(index.min(times.len() - 1)).copied()
        };
        if !times.is_empty() {
            answer["ns"] = json!([at(0.5), at(0.9), at(0.99), at(0.999)]);
        }
        answer["messages"] = json!(file.messages() - before);
        Ok(answer)
    }

    /// Creates, opens, asks about or removes files, here or in a directory of the host.
    fn many_files(&mut self, order: &Order) -> Result<Value, Error> {
        let folder = order.text("folder")?;
        let (from, count) = (order.number("from")?, order.number("count")?);
        let names: Vec<String> = (from..from + count)
            .map(|i| format!("{folder}/f{i:06}"))
            .collect();
        let op = order.text("op")?;
        if order.is("plain") {
            return plain_files(op, &names);
        }
        let client = self.client()?;
        let create = OpenOptions::new().write().exclusive();
        let read = OpenOptions::new().read();
        let mut wrong = 0;
        let start = now();
        for name in &names {
            match op {
                "create" => client.open(name, &create).and_then(|f| f.close()),
                "open" => client.open(name, &read).and_then(|f| f.close()),
                "stat" => client.stat(name).map(|found| wrong += found.size),
                "delete" => client.unlink(name),
                _ => return Err(format!("op: '{op}' is not known").into()),
            }
            .map_err(refused)?;
        }
        Ok(done(start, wrong))
    }
}

/// Whether bytes come from the file.
fn is_read(what: &str) -> bool {
    matches!(what, "read" | "plain-read")
}

/// The pieces that repetitions access one after the other.
#[derive(Clone, Copy)]
struct Pieces {
    bytes: usize,
    count: usize,
}

impl Pieces {
    fn of(order: &Order, whole: usize) -> Pieces {
        let bytes = order.0["bytes"].as_u64().map_or(whole, |n| n as usize);
        let bytes = bytes.clamp(1, whole);
        Pieces {
            bytes,
            count: whole / bytes,
        }
    }

    /// Neighbours do not follow each other: what is read ahead for one is of no use to the next.
    fn at(&self, i: u64) -> std::ops::Range<usize> {
        let at = (i as usize).wrapping_mul(29) % self.count * self.bytes;
        at..at + self.bytes
    }
}

/// A copy behind a call, as an access is.
#[inline(never)]
fn copied(source: &[u8], target: &mut [u8]) {
    target.copy_from_slice(std::hint::black_box(source));
    std::hint::black_box(target);
}

fn moved_all(moved: client::Result<usize>, wanted: usize) -> Result<(), Error> {
    match moved.map_err(refused)? == wanted {
        true => Ok(()),
        false => Err("an access was short".into()),
    }
}

/// Whether the server that listens there is on this host: its address can be bound here.
fn is_of_host(address: &str) -> bool {
    match address.parse() {
        Ok(Endpoint::Unix(_)) => true,
        Ok(Endpoint::Tcp { host, .. }) => {
            let address = host.parse::<IpAddr>();
            address.is_ok_and(|address| UdpSocket::bind((address, 0)).is_ok())
        }
        Err(_) => false,
    }
}

/// How the last access of a handle went, in nanoseconds.
fn phases(file: &File) -> Value {
    let last = file.last_access();
    let servers: Vec<u64> = last.servers.iter().map(|s| s.server).collect();
    let copied = last.servers.iter().map(|s| s.copied_ns).max();
    json!({
        "intersect_ns": last.intersect_ns,
        "map_ns": last.map_ns,
        "copy_ns": last.gather_ns + last.scatter_ns,
        "total_ns": last.total_ns,
        "network_ns": last.network_ns(),
        "served_copy_ns": copied,
        "servers": servers,
    })
}

fn plain_files(op: &str, names: &[String]) -> Result<Value, Error> {
    let start = now();
    let mut wrong = 0;
    for name in names {
        let path = PathBuf::from(name);
        match op {
            "create" => {
                let mut options = FileOptions::new();
                drop(options.write(true).create_new(true).open(&path)?);
            }
            "open" => drop(fs::File::open(&path)?),
            "stat" => wrong += fs::metadata(&path)?.len(),
            "delete" => fs::remove_file(&path)?,
            _ => return Err(format!("op: '{op}' is not known").into()),
        }
    }
    Ok(done(start, wrong))
}
