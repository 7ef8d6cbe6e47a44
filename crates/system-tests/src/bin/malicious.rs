//! A client that keeps to no rule, in a process of its own, driven by lines on its input.
//!
//! ```text
//!  open SLOT PATH r|rw   opens, registers view SLOT and attaches to the file's server
//!  map SLOT              asks for maps as the client library would, and keeps what comes
//!  reopen                tries to get more out of descriptors than they were given with
//!  spy TAG               looks for the beginning of a file with the pattern of a tag in all memory it was
//!                        ever given; how often it is there
//!  punch                 takes the memory out from under segments that it may write
//!  hostile N             asks for maps that make no sense, N of them drawn
//!  hold                  claims all slots for what it has maps of, and never ends a claim
//!  forge END             fills its page with drawn words, over and over, until a file END exists, and
//!                        asks for maps again in between
//! ```
//!
//! Like a worker it answers every line with one, `ok ...` or `error ...`. What it finds allowed and should
//! not be is an error. It writes into its page with `pwrite`, so it needs no unsafe code.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use direct::MappedSegment;
use rustix::fs::{FallocateFlags, Mode, SealFlags, SeekFrom};
use system_tests::raw::{Raw, version_of};
use system_tests::{Random, pattern};
use wire::ask::AskError;
use wire::message::Bytes;
use wire::message::catalogue::{CreateOptions, Members, Open, OpenAnswer, OpenOptions};
use wire::message::direct::{Attach, Map, MapAnswer, SubfileRange};
use wire::{Rights, Status};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a page is like: so many slots, so far apart. A claim is a word of these fields.
const SLOTS: u64 = 64;
const SLOT_BYTES: u64 = 64;
const WRITES: u64 = 1 << 63;
const EPOCH_BITS: u32 = 40;

fn main() {
    let url = std::env::args().nth(1).expect("usage: malicious URL");
    let manager = url.parse().expect("an address");
    let mut malicious = Malicious {
        manager: Raw::client(&manager),
        server: None,
        shared: None,
        files: BTreeMap::new(),
        segments: Vec::new(),
    };
    say(Ok(std::process::id().to_string()));
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let fields: Vec<&str> = line.split('\t').collect();
        say(malicious.run(&fields));
    }
}

fn say(answer: Result<String, Failure>) {
    let line = match answer {
        Ok(text) => format!("ok {text}"),
        Err(error) => format!("error {error}"),
    };
    let _ = writeln!(std::io::stdout(), "{}", line.replace('\n', " "));
}

struct Known {
    path: String,
    opened: OpenAnswer,
    version: Vec<u8>,
    writes: bool,
    mapped: Option<MapAnswer>,
}

struct Malicious {
    manager: Raw,
    server: Option<Raw>,
    shared: Option<Shared>,
    files: BTreeMap<u64, Known>,
    /// Descriptor, bytes, whether it allows writing.
    segments: Vec<(OwnedFd, u64, bool)>,
}

struct Shared {
    table: OwnedFd,
    table_bytes: u64,
    page: File,
    page_bytes: u64,
}

impl Malicious {
    fn run(&mut self, fields: &[&str]) -> Result<String, Failure> {
        let text = |i: usize| fields.get(i).copied().ok_or("a field is missing");
        match fields[0] {
            "open" => self.open(text(1)?.parse()?, text(2)?, text(3)? == "rw"),
            "map" => self.map(text(1)?.parse()?),
            "reopen" => self.reopen(),
            "spy" => self.spy(text(1)?.parse()?),
            "punch" => self.punch(),
            "hostile" => self.hostile(text(1)?.parse()?),
            "forge" => self.forge(text(1)?.as_ref()),
            "hold" => self.hold(),
            other => Err(format!("no such line: {other}").into()),
        }
    }

    fn server(&mut self) -> Result<&mut Raw, Failure> {
        self.server.as_mut().ok_or_else(|| "open first".into())
    }

    fn open(&mut self, slot: u64, path: &str, writes: bool) -> Result<String, Failure> {
        let create = CreateOptions {
            mode: 0o644,
            ..CreateOptions::default()
        };
        let opened = self.manager.ask(&Open {
            path: path.into(),
            options: OpenOptions {
                rights: if writes { Rights::BOTH } else { Rights::READ },
                create: writes.then_some(create),
                ..OpenOptions::default()
            },
        })?;
        if self.server.is_none() {
            let members = self.manager.ask(&Members {})?;
            let owner = opened.layout.owner.server;
            let member = members.iter().find(|m| m.server.0 == owner);
            let address = member.ok_or("no owner")?.address.parse()?;
            let mut server = self.manager.beside(&address);
            server.link.expect_descriptors();
            let answer = server.ask(&Attach {})?;
            let [table, page] = <[OwnedFd; 2]>::try_from(server.link.take_descriptors())
                .map_err(|_| "not two descriptors")?;
            self.shared = Some(Shared {
                table,
                table_bytes: answer.table_bytes,
                page: page.into(),
                page_bytes: answer.page_bytes,
            });
            self.server = Some(server);
        }
        self.server()?.set_view(slot, &opened)?;
        let known = Known {
            path: path.into(),
            version: version_of(&opened),
            opened,
            writes,
            mapped: None,
        };
        self.files.insert(slot, known);
        Ok(String::new())
    }

    /// A request that makes sense.
    fn request(&self, slot: u64) -> Result<Map, Failure> {
        let known = self.files.get(&slot).ok_or("open it first")?;
        Ok(Map {
            view: slot,
            version: Bytes(known.version.clone()),
            epoch: known.opened.attributes.epoch,
            writes: known.writes,
            ranges: vec![SubfileRange {
                store: known.opened.layout.pieces[0].generation,
                subfile: 0,
                start: 0,
                end: 1 << 20,
            }],
        })
    }

    fn map(&mut self, slot: u64) -> Result<String, Failure> {
        let request = self.request(slot)?;
        let mapped = self.ask(&request)?;
        let extents = mapped.extents.len();
        let known = self.files.get_mut(&slot).ok_or("open it first")?;
        known.mapped = Some(mapped);
        Ok(extents.to_string())
    }

    fn ask(&mut self, request: &Map) -> Result<MapAnswer, Failure> {
        let server = self.server()?;
        let mapped = server.ask(request)?;
        let files = server.link.take_descriptors();
        for (file, is) in files.into_iter().zip(&mapped.segments) {
            self.segments.push((file, is.bytes, is.is_writable));
        }
        Ok(mapped)
    }

    fn shared(&self) -> Result<&Shared, Failure> {
        self.shared.as_ref().ok_or_else(|| "open first".into())
    }

    /// Everything that would make more of a descriptor than was given.
    fn reopen(&self) -> Result<String, Failure> {
        let mut attempts = Attempts::default();
        let shared = self.shared()?;
        attempts.try_to_write("table", &shared.table, shared.table_bytes);
        attempts.try_to_change("table", &shared.table, shared.table_bytes);
        attempts.try_to_change("page", &shared.page, shared.page_bytes);
        let mut read_only = 0;
        for (segment, bytes, is_writable) in &self.segments {
            if !is_writable {
                read_only += 1;
                attempts.try_to_write("segment", segment, *bytes);
            }
            attempts.try_to_change("segment", segment, *bytes);
        }
        if read_only == 0 {
            return Err("no segment is for reading only".into());
        }
        match attempts.allowed.is_empty() {
            true => Ok(format!("{:?}", attempts.refused)),
            false => Err(format!("allowed: {:?}", attempts.allowed).into()),
        }
    }

    /// Extents begin at pages, and files in extents of their own.
    fn spy(&self, tag: u64) -> Result<String, Failure> {
        let wanted = pattern(&client::View::whole_file(), 0, 64, tag);
        let mut page = vec![0; wanted.len()];
        let mut count = 0;
        for (segment, _, _) in &self.segments {
            let mut at = 0;
            // Where there is no memory there is nothing to see.
            while let Ok(data) = rustix::fs::seek(segment, SeekFrom::Data(at)) {
                rustix::io::pread(segment, &mut page, data)?;
                count += u64::from(page == wanted);
                at = (data / 4096 + 1) * 4096;
            }
        }
        Ok(count.to_string())
    }

    /// Memory that it may write it may also give back.
    fn punch(&self) -> Result<String, Failure> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let mut count = 0;
        for (segment, bytes, _) in self.segments.iter().filter(|s| s.2) {
            rustix::fs::fallocate(segment, flags, 0, *bytes)?;
            count += 1;
        }
        let shared = self.shared()?;
        rustix::fs::fallocate(&shared.page, flags, 0, shared.page_bytes)?;
        Ok(count.to_string())
    }

    fn hostile(&mut self, count: u64) -> Result<String, Failure> {
        let mut answers: BTreeMap<String, u64> = BTreeMap::new();
        let slots: Vec<u64> = self.files.keys().copied().collect();
        let range = |subfile, start, end| SubfileRange {
            store: 1,
            subfile,
            start,
            end,
        };
        let mut requests = Vec::new();
        for &slot in &slots {
            let good = self.request(slot)?;
            let with = |change: &dyn Fn(&mut Map)| {
                let mut request = good.clone();
                change(&mut request);
                request
            };
            requests.extend([
                with(&|r| r.view = 77),
                with(&|r| r.view = u64::MAX),
                with(&|r| r.writes = !r.writes),
                with(&|r| r.epoch = u64::MAX),
                with(&|r| r.version = Bytes(vec![0xff; 40])),
                with(&|r| r.version = Bytes(Vec::new())),
                with(&|r| r.ranges = vec![range(0, 9, 3)]),
                with(&|r| r.ranges = vec![range(u32::MAX, 0, 10)]),
                with(&|r| r.ranges = vec![range(0, 0, u64::MAX)]),
                with(&|r| r.ranges = vec![range(0, u64::MAX - 1, u64::MAX)]),
                with(&|r| r.ranges = vec![range(0, 1 << 50, (1 << 50) + 4096)]),
                with(&|r| r.ranges = (0..5000).map(|i| range(0, i, i + 1)).collect()),
                with(&|r| r.ranges = (0..4096).map(|_| range(0, 0, 4096)).collect()),
                with(&|r| r.ranges = Vec::new()),
            ]);
        }
        let mut random = Random::of_run(60);
        for _ in 0..count {
            let mut request = self.request(slots[random.index(slots.len())])?;
            let drawn = |random: &mut Random| {
                let bits = random.below(64);
                random.draw() >> bits
            };
            request.ranges = (0..random.below(20))
                .map(|_| {
                    let (start, len) = (drawn(&mut random), drawn(&mut random));
                    range(random.below(2) as u32, start, start.wrapping_add(len))
                })
                .collect();
            // Who may write may fill the memory of a server; that is another test's.
            request.writes = false;
            requests.push(request);
        }
        for request in &requests {
            let server = self.server()?;
            let answer = match server.ask(request) {
                Ok(_) => "taken".to_owned(),
                Err(AskError::Refused(status, _)) => format!("{status:?}"),
                Err(other) => return Err(format!("{request:?}: {other}").into()),
            };
            drop(server.link.take_descriptors());
            *answers.entry(answer).or_default() += 1;
        }
        for wanted in [
            Status::UnknownView,
            Status::InvalidArgument,
            Status::PermissionDenied,
        ] {
            if !answers.contains_key(&format!("{wanted:?}")) {
                return Err(format!("nothing was {wanted:?}: {answers:?}").into());
            }
        }
        Ok(format!("{answers:?}"))
    }

    fn forge(&mut self, end: &Path) -> Result<String, Failure> {
        let mut random = Random::of_run(61);
        let paths: Vec<(u64, String, bool)> = self
            .files
            .iter()
            .map(|(slot, known)| (*slot, known.path.clone(), known.writes))
            .collect();
        let mut count = 0u64;
        while !end.exists() {
            if count.is_multiple_of(500) {
                // Maps were taken back, and layouts are others; it may be too early to ask again.
                for (slot, path, writes) in &paths {
                    let _ = self
                        .open(*slot, path, *writes)
                        .and_then(|_| self.map(*slot));
                }
            }
            let shared = self.shared()?;
            let at = random.below(shared.page_bytes / 8) * 8;
            let mut words: Vec<u8> = Vec::new();
            for _ in 0..random.within(1..64) {
                let word = match random.below(4) {
                    0 => u64::MAX,
                    1 => self.claim(&mut random)?,
                    _ => random.draw(),
                };
                words.extend(word.to_le_bytes());
            }
            words.truncate((shared.page_bytes - at) as usize);
            shared.page.write_all_at(&words, at)?;
            count += 1;
        }
        Ok(count.to_string())
    }

    /// A claim of a file that it knows, or of one that it does not.
    fn claim(&self, random: &mut Random) -> Result<u64, Failure> {
        let known: Vec<u64> = self.entries().collect();
        let entry = match random.below(2) {
            0 if !known.is_empty() => known[random.index(known.len())],
            _ => random.below(64),
        };
        self.claim_of(entry)
    }

    fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        let mapped = self
            .files
            .values()
            .filter_map(|known| known.mapped.as_ref());
        mapped.map(|mapped| u64::from(mapped.entry))
    }

    /// A claim of an entry, of the newest epoch: whatever is revoked later, it is.
    fn claim_of(&self, entry: u64) -> Result<u64, Failure> {
        let table = File::from(self.shared()?.table.try_clone()?);
        let mut epoch = [0; 8];
        table.read_exact_at(&mut epoch, 64 + entry * 64)?;
        Ok(word(entry, u64::from_le_bytes(epoch)))
    }

    fn hold(&self) -> Result<String, Failure> {
        let mapped = self
            .files
            .values()
            .filter_map(|known| known.mapped.as_ref());
        let words: Vec<u64> = mapped.map(|m| word(m.entry.into(), m.epoch)).collect();
        if words.is_empty() {
            return Err("no maps".into());
        }
        for slot in 0..SLOTS {
            let word = words[slot as usize % words.len()].to_le_bytes();
            self.shared()?.page.write_all_at(&word, slot * SLOT_BYTES)?;
        }
        Ok(words.len().to_string())
    }
}

/// A claim to write.
fn word(entry: u64, epoch: u64) -> u64 {
    WRITES | (entry + 1) << EPOCH_BITS | (epoch & ((1 << EPOCH_BITS) - 1))
}

#[derive(Default)]
struct Attempts {
    refused: BTreeMap<String, u64>,
    allowed: Vec<String>,
}

impl Attempts {
    fn note<T>(&mut self, what: String, result: std::io::Result<T>) {
        match result {
            Ok(_) => self.allowed.push(what),
            Err(error) => {
                let why = format!("{what}: {:?}", error.kind());
                *self.refused.entry(why).or_default() += 1;
            }
        }
    }

    /// Of a descriptor for reading only.
    fn try_to_write(&mut self, name: &str, file: &OwnedFd, bytes: u64) {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let open = |read| File::options().read(read).write(true).open(&path);
        for (how, opened) in [("both", open(true)), ("writing", open(false))] {
            let is_denied = matches!(&opened, Err(e) if e.raw_os_error() == Some(13));
            if !is_denied {
                self.allowed.push(format!("{name} for {how}: {opened:?}"));
            }
            self.note(format!("{name}: open for {how}"), opened);
        }
        let mapped = MappedSegment::map(file.as_fd(), bytes, true);
        self.note(format!("{name}: map for writing"), mapped);
        let stored = rustix::io::pwrite(file, &[0xee; 8], 0).map_err(Into::into);
        self.note(format!("{name}: store"), stored);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punched = rustix::fs::fallocate(file, flags, 0, 4096).map_err(Into::into);
        self.note(format!("{name}: punch"), punched);
    }

    /// Of any.
    fn try_to_change(&mut self, name: &str, file: impl AsFd, bytes: u64) {
        let file = file.as_fd();
        for len in [0, bytes - 4096, bytes * 2] {
            let cut = rustix::fs::ftruncate(file, len).map_err(Into::into);
            self.note(format!("{name}: another length"), cut);
        }
        let sealed = rustix::fs::fcntl_add_seals(file, SealFlags::WRITE).map_err(Into::into);
        self.note(format!("{name}: seal"), sealed);
        let mode = Mode::from_raw_mode(0o666);
        let opened = rustix::fs::fchmod(file, mode).map_err(Into::into);
        self.note(format!("{name}: mode"), opened);
        let user = rustix::process::getuid();
        let owned = rustix::fs::fchown(file, Some(user), None).map_err(Into::into);
        self.note(format!("{name}: owner"), owned);
    }
}
