//! The program of workers that use files while these move from layout to layout: everything they read is
//! compared with what it must be.
//!
//! ```text
//!  own      one worker: reads, writes, appends, sizes, views, atomic mode, whatever comes
//!  shared   each worker its element of a partition that has nothing to do with the layouts
//!  log      all append records; where each was put is remembered
//!  atomic   all write and read the same bytes at once in atomic mode; nobody sees two writes mixed
//! ```
//!
//! What a byte may be is a set of tags (`marks`): one as long as nothing dies, and those since the last sync when a
//! disk server was killed. Kills of servers are counted in a file by whoever kills, before he does; the number
//! is odd while one may happen at any time. A worker that is killed leaves ledgers, and whoever takes its place
//! begins by comparing the files with them.
//!
//! Workers end when a file exists that the test makes, and leave behind what must be there
//! ([`Left`]). One that has found something wrong says so in a file as well ([`failure`]): it may be killed
//! before anybody asks it.

mod marks;
mod records;
mod torn;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::{Client, File, Hints, MoveOptions, OpenOptions, Status, View};

use crate::layouts::{LOGICAL, views_of};
use crate::plain_file::ranges;
use crate::random_layout::of_bytes;
use crate::seed::{Random, pattern, pattern_byte};
use crate::waiting::{LIMIT, pause};
use marks::{Ledger, TAGS, Target};
use records::Records;
use torn::Torn;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Bytes of the shared file.
pub const SHARED: u64 = 150_000;
/// Most bytes of a file of one's own.
const MOST: u64 = 120_000;
/// What is written and read in atomic mode.
const ATOMIC: (u64, usize) = (777, 5000);
/// Instead of a number of kills: what the file holds has to be looked at.
const UNKNOWN: u64 = u64::MAX - 1;
/// Accesses of other files between two of the log.
const PER_RECORD: u64 = 12;
/// Turns between two moves that a worker asks for itself.
const PER_MOVE: u64 = 700;

/// What a worker is told.
#[derive(Clone, Debug)]
pub struct Orders {
    /// Paths begin with this.
    pub dir: String,
    /// Which worker it is.
    pub me: u64,
    /// Of how many.
    pub all: u64,
    /// Where its random numbers begin.
    pub seed: u64,
    /// Ends the program when it exists.
    pub stop: PathBuf,
    /// Where kills are counted, if servers are killed that may lose bytes.
    pub kills: Option<PathBuf>,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fired {
    /// Accesses that were compared.
    pub accesses: u64,
    /// Syncs that returned.
    pub syncs: u64,
    /// How often everything was written again after a kill.
    pub settled: u64,
    /// Moves of its own file that it has asked for.
    pub moves: u64,
}

/// What must be in the files when all is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// All bytes of the worker's own file.
    pub own: Vec<u8>,
    /// Bytes of its element of the shared file.
    pub shared: Vec<u8>,
    /// Records of the log: where, and their number.
    pub log: Vec<(u64, u64)>,
}

/// What a worker found wrong, if it did.
pub fn failure(stop: &Path, me: u64) -> Option<String> {
    std::fs::read_to_string(Left::path(stop, "failed", me)).ok()
}

impl Left {
    fn path(stop: &Path, what: &str, me: u64) -> PathBuf {
        stop.with_extension(format!("{what}-{me}"))
    }

    fn write(&self, stop: &Path, me: u64) -> std::io::Result<()> {
        std::fs::write(Left::path(stop, "own", me), &self.own)?;
        std::fs::write(Left::path(stop, "shared", me), &self.shared)?;
        let line = |(at, number): &(u64, u64)| format!("{at} {number}\n");
        let log: String = self.log.iter().map(line).collect();
        std::fs::write(Left::path(stop, "log", me), log)
    }

    /// What a worker left behind.
    #[track_caller]
    pub fn read(stop: &Path, me: u64) -> Left {
        let of = |what| std::fs::read(Left::path(stop, what, me)).expect("what a worker left");
        let log = String::from_utf8(of("log")).expect("text");
        let record = |line: &str| {
            let (at, number) = line.split_once(' ').expect("two numbers");
            (at.parse().expect("a place"), number.parse().expect("one"))
        };
        Left {
            own: of("own"),
            shared: of("shared"),
            log: log.lines().map(record).collect(),
        }
    }
}

/// The element of a worker in the shared file.
pub fn element(seed: u64, me: u64, all: u64) -> View {
    let stripe = Random::new(seed).within(11..400);
    views_of(None, 0, &format!("striped({stripe}) over {all}")).swap_remove(me as usize)
}

/// Record `number` of a worker in the log.
pub fn record(me: u64, number: u64) -> Vec<u8> {
    let len = 40 + (me * 31 + number * 17) % 300;
    let mut bytes: Vec<u8> = (0..len)
        .map(|x| pattern_byte(1000 + me * 7919 + number, x))
        .collect();
    bytes[..8].copy_from_slice(&(number + 1).to_le_bytes());
    bytes[8] = me as u8 + 1;
    bytes
}

struct Worker<'a> {
    client: &'a Client,
    orders: &'a Orders,
    random: Random,
    fired: Fired,
    started: Instant,
}

/// Uses files until told to stop.
pub fn fire(client: &Client, orders: &Orders) -> Result<Fired, Failure> {
    let mut worker = Worker {
        client,
        orders,
        random: Random::new(orders.seed),
        fired: Fired::default(),
        started: Instant::now(),
    };
    let left = worker.run().inspect_err(|error| {
        // Before anybody hears of it.
        let path = Left::path(&orders.stop, "failed", orders.me);
        // Whole, whoever reads it.
        let new = Left::path(&orders.stop, "failing", orders.me);
        let written = std::fs::write(&new, error.to_string());
        let _ = written.and_then(|()| std::fs::rename(&new, &path));
    })?;
    left.write(&orders.stop, orders.me)?;
    Ok(worker.fired)
}

impl Worker<'_> {
    /// Opens a file of the ground, which may have another name for a moment: made anew, another one would take its
    /// place.
    fn open(&self, name: &str) -> Result<File, client::Error> {
        let how = OpenOptions::new().read().write();
        let path = format!("{}/{name}", self.orders.dir);
        let end = Instant::now() + LIMIT;
        loop {
            match self.client.open(&path, &how) {
                Err(error) if error.status() == Status::NotFound && Instant::now() < end => {
                    pause(Duration::from_millis(2));
                }
                opened => return opened,
            }
        }
    }

    fn kills(&self) -> u64 {
        let counted = self.orders.kills.as_ref().and_then(|path| {
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().parse().ok()
        });
        counted.unwrap_or(0)
    }

    /// Whether nothing can have died since the target was known exactly. Asked after an access.
    fn is_calm(&self, target: &Target) -> bool {
        let kills = self.kills();
        kills.is_multiple_of(2) && kills == target.base
    }

    fn run(&mut self) -> Result<Left, Failure> {
        let Orders { me, all, .. } = *self.orders;
        let stop = &self.orders.stop;
        let start = |name, file, view| -> Result<Target, Failure> {
            let path = Left::path(stop, &format!("{name}-ledger"), me);
            let (ledger, before) = Ledger::open(&path)?;
            let is_inherited = before.is_some();
            let base = if is_inherited { UNKNOWN } else { u64::MAX };
            let (marks, sizes) = before.unwrap_or_default();
            Ok(Target {
                name,
                file,
                view,
                marks,
                ledger,
                size: sizes.1,
                sizes,
                base,
                is_inherited,
                recent: Default::default(),
            })
        };
        let own = self.patiently(|w| Ok(w.open(&format!("own-{me}"))?))?;
        let mut own = start("own", own, View::whole_file())?;
        let shared = self.patiently(|w| Ok(w.open("shared")?))?;
        // The seed of the partition is everybody's.
        let view = element(crate::seed::seed(), me, all);
        let mut shared = start("shared", shared, view)?;
        let log = self.patiently(|w| Ok(w.open("log")?))?;
        let atomic = self.patiently(|w| Ok(w.open("atomic")?))?;
        self.patiently(|_| Ok(atomic.set_atomic(true)?))?;
        if Torn::new(stop, me).is_begun() {
            self.write_atomic(&atomic)?;
        }
        self.begin(&mut own)?;
        self.begin(&mut shared)?;
        let path = Left::path(stop, "log-ledger", me);
        let mut records = Records::open(&path, self.kills())?;
        let mut turn = 0;
        while !self.orders.stop.exists() {
            turn += 1;
            self.own(&mut own)?;
            self.shared(&mut shared)?;
            if turn % PER_RECORD == 0 {
                self.log(&log, &mut records)?;
            }
            // What a disk has lost may be a part of a write.
            if turn % 5 == 0 && self.kills() == 0 {
                self.atomic(&atomic)?;
            }
            if self.random.below(PER_MOVE) == 0 {
                self.ask_for_move()?;
            }
        }
        self.finish(&mut own)?;
        self.finish(&mut shared)?;
        self.finish_log(&log, &mut records)?;
        let ranges = ranges(&shared.view, 0, shared.view.len_within(SHARED));
        let left = Left {
            own: (0..own.size).map(|x| own.marks.byte(x)).collect(),
            shared: ranges
                .into_iter()
                .flatten()
                .map(|x| shared.marks.byte(x))
                .collect(),
            log: records.into_durable(),
        };
        own.file.close()?;
        shared.file.close()?;
        log.close()?;
        atomic.close()?;
        Ok(left)
    }

    /// Repeats what fails because something died; what fails otherwise fails.
    fn patiently<T>(&self, mut run: impl FnMut(&Self) -> Result<T, Failure>) -> Result<T, Failure> {
        let end = Instant::now() + LIMIT;
        let mut calm_failures = 0;
        loop {
            let before = self.kills();
            match run(self) {
                Ok(done) => return Ok(done),
                Err(error) => {
                    let after = self.kills();
                    // What a kill leads to may come a little later than the kill, once.
                    calm_failures += u64::from(before == after && after.is_multiple_of(2));
                    let limit = if self.orders.kills.is_some() { 8 } else { 1 };
                    if calm_failures >= limit || Instant::now() > end {
                        return Err(error);
                    }
                    pause(Duration::from_millis(20));
                }
            }
        }
    }

    /// Writes all of a target from the beginning, and makes it durable. What somebody else has left there is
    /// compared first.
    fn begin(&mut self, target: &mut Target) -> Result<(), Failure> {
        if target.name == "own" && target.base == u64::MAX {
            target.size = self.random.within(1..MOST);
        }
        self.settle(target)
    }

    /// After a kill: what is there has to be something that was written; then everything is written again.
    fn settle(&mut self, target: &mut Target) -> Result<(), Failure> {
        let end = Instant::now() + LIMIT;
        loop {
            let kills = self.kills();
            if kills.is_multiple_of(2) {
                let tag = self.random.below(TAGS) as u8;
                match self.rewrite(target, tag) {
                    Ok(()) if self.kills() == kills => {
                        target.base = kills;
                        target.settle();
                        self.fired.settled += 1;
                        return Ok(());
                    }
                    Err(error) if self.orders.kills.is_none() => {
                        return Err(format!("{}: {error}", target.name).into());
                    }
                    Err(error) if error.is::<Wrong>() => return Err(error),
                    Err(error) if Instant::now() > end => {
                        return Err(format!("{}: does not settle: {error}", target.name).into());
                    }
                    _ => {}
                }
            }
            if self.orders.stop.exists() && Instant::now() > end {
                return Err(format!("{}: no calm to settle in", target.name).into());
            }
            pause(Duration::from_millis(5));
        }
    }

    fn rewrite(&mut self, target: &mut Target, tag: u8) -> Result<(), Failure> {
        let is_own = target.name == "own";
        if target.base != u64::MAX {
            target.file.set_view(&target.view)?;
            if is_own {
                let size = target.file.size()?;
                let (least, most) = target.sizes;
                if !(least..=most).contains(&size) {
                    let text = format!("own: size {size}, expected {least} to {most}");
                    return Err(Box::new(Wrong(text)));
                }
                target.ends_at(size);
            }
            if target.is_inherited {
                // What a dead client had under way has happened when this returns, or is refused.
                target
                    .file
                    .resize(if is_own { target.size } else { SHARED })?;
                target.is_inherited = false;
            }
            self.read(target, 0, u64::MAX, false)?;
        }
        let len = match is_own {
            true => {
                target.file.set_atomic(false)?;
                target.view = View::whole_file();
                target.size
            }
            false => target.view.len_within(SHARED),
        };
        target.file.set_view(&target.view)?;
        if is_own && target.base == u64::MAX {
            target.file.resize(0)?;
        }
        self.write(target, 0, len, tag)?;
        target.file.sync()?;
        self.fired.syncs += 1;
        Ok(())
    }

    fn write(&mut self, t: &mut Target, at: u64, len: u64, tag: u8) -> Result<(), Failure> {
        let bytes = pattern(&t.view, at, len as usize, u64::from(tag));
        t.note(at, len, tag);
        let n = t.file.write_at(at, &bytes)?;
        if n as u64 != len {
            return Err(Box::new(Wrong(format!("{n} of {len} bytes written"))));
        }
        if self.is_exact() {
            t.sure(at, len);
        }
        self.fired.accesses += 1;
        Ok(())
    }

    /// Whether nobody dies who could lose something.
    fn is_exact(&self) -> bool {
        self.orders.kills.is_none()
    }

    /// Reads and compares.
    fn read(&mut self, t: &Target, at: u64, len: u64, may_be_calm: bool) -> Result<(), Failure> {
        let size = if t.name == "own" { t.size } else { SHARED };
        let there = t.view.len_within(size).saturating_sub(at);
        let mut bytes = vec![0xee; len.min(there + 50) as usize];
        let n = t.file.read_at(at, &mut bytes)?;
        self.compare(t, at, &bytes[..n], there.min(len), may_be_calm)
    }

    fn compare(
        &mut self,
        t: &Target,
        at: u64,
        bytes: &[u8],
        wanted: u64,
        may_be_calm: bool,
    ) -> Result<(), Failure> {
        let is_calm = may_be_calm && self.is_calm(t);
        if is_calm && bytes.len() as u64 != wanted {
            let text = format!("{}: {} bytes read of {wanted}", t.name, bytes.len());
            return Err(Box::new(Wrong(text)));
        }
        let places = ranges(&t.view, at, bytes.len() as u64)
            .into_iter()
            .flatten();
        for (x, byte) in places.zip(bytes) {
            if let Some(wrong) = t.marks.wrong(x, *byte, is_calm) {
                let text = format!(
                    "{} of worker {} at view byte {at}, {} bytes: {wrong}; {}; {:?}, {}; {:?} since the start, \
                     last {:?}; now {}",
                    t.name,
                    self.orders.me,
                    bytes.len(),
                    t.whose(at, bytes),
                    t.file.last_access(),
                    t.state(),
                    self.started.elapsed(),
                    t.recent,
                    self.again(t),
                );
                return Err(Box::new(Wrong(text)));
            }
        }
        self.fired.accesses += 1;
        Ok(())
    }

    /// What a fresh handle finds wrong with all of a file: for whoever has to understand it.
    fn again(&self, t: &Target) -> String {
        let name = match t.name {
            "own" => format!("own-{}", self.orders.me),
            other => other.to_owned(),
        };
        let read = self.open(&name).and_then(|file| {
            let mut bytes = vec![0xee; file.size()? as usize];
            let n = file.read_at(0, &mut bytes)?;
            bytes.truncate(n);
            Ok(bytes)
        });
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => return format!("unreadable: {error}"),
        };
        let places = match t.name {
            "own" => std::iter::once(0..bytes.len() as u64).collect(),
            _ => ranges(&t.view, 0, t.view.len_within(SHARED)),
        };
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for x in places.into_iter().flatten() {
            if bytes.get(x as usize) == Some(&t.marks.byte(x)) {
                continue;
            }
            match runs.last_mut() {
                Some((_, end)) if *end == x => *end += 1,
                _ => runs.push((x, x + 1)),
            }
        }
        let count = runs.len();
        runs.truncate(12);
        format!("{} bytes, {count} wrong runs: {runs:?}", bytes.len())
    }

    /// What an access came to: errors are allowed when something died.
    fn judge(&mut self, target: &mut Target, result: Result<(), Failure>) -> Result<(), Failure> {
        // The metadata manager is killed too, and whoever needs it meanwhile is told that it is away. Nothing is lost
        // by that, but whether the access was done is not known.
        if let Err(error) = &result
            && self.orders.kills.is_some()
            && is_away(error)
        {
            target.base = UNKNOWN;
        }
        let is_calm = self.is_calm(target);
        match result {
            Err(error) if is_calm || error.is::<Wrong>() => {
                Err(format!("{}: {error}", target.name).into())
            }
            _ => {
                let kills = self.kills();
                if !is_calm && kills.is_multiple_of(2) {
                    self.settle(target)?;
                }
                Ok(())
            }
        }
    }

    fn own(&mut self, t: &mut Target) -> Result<(), Failure> {
        let done = self.own_step(t);
        self.judge(t, done)
    }

    fn own_step(&mut self, t: &mut Target) -> Result<(), Failure> {
        let tag = self.random.below(TAGS) as u8;
        let shown = t.view.len_within(t.size);
        let len = match self.random.below(4) {
            0 => self.random.within(1..64),
            1 => self.random.within(1..60_000),
            _ => self.random.within(1..5000),
        };
        let at = self.random.below(shown + 1);
        // Not too far behind the end.
        let room = t.view.len_within(MOST).saturating_sub(at).min(len);
        match self.random.below(16) {
            0..=4 if room > 0 => self.write(t, at, room, tag),
            5..=8 => self.read(t, at, len, true),
            9 if room > 0 => {
                // Short ones at one place, which go the shortest way.
                let len = room.min(200);
                for _ in 0..6 {
                    let tag = self.random.below(TAGS) as u8;
                    self.write(t, at, len, tag)?;
                    self.read(t, at, len, true)?;
                }
                Ok(())
            }
            10 => {
                if t.size > MOST || !self.is_calm(t) {
                    return Ok(());
                }
                let (expected, len) = (t.size, len.min(3000));
                let bytes = pattern(&View::whole_file(), expected, len as usize, u64::from(tag));
                let view = std::mem::replace(&mut t.view, View::whole_file());
                t.note(expected, len, tag);
                let found = t.file.append(&bytes);
                if found.is_ok() && self.is_exact() {
                    t.sure(expected, len);
                }
                t.view = view;
                let found = found?;
                if found != expected && self.is_calm(t) {
                    let text = format!("appended at {found}, expected {expected}");
                    return Err(Box::new(Wrong(text)));
                }
                if found != expected {
                    t.note_anything(found, len);
                }
                Ok(())
            }
            11 => {
                let to = match self.random.below(3) {
                    0 => self.random.below(MOST),
                    1 => t.size.saturating_sub(self.random.below(5000)),
                    _ => t.size / 2,
                };
                t.note_size(to);
                t.file.resize(to)?;
                if self.is_exact() {
                    t.settle();
                }
                Ok(())
            }
            12 | 13 => {
                let view = match self.random.below(3) {
                    0 => View::whole_file(),
                    _ => LOGICAL[self.random.index(LOGICAL.len())].view(),
                };
                t.file.set_view(&view)?;
                t.view = view;
                Ok(())
            }
            14 => {
                let is_atomic = self.random.below(3) == 0;
                Ok(t.file.set_atomic(is_atomic)?)
            }
            15 if self.random.below(3) == 0 => self.sync(t),
            _ if shown > 0 => {
                // Several at once.
                let n = (shown / 3).min(2000);
                let under_way: Vec<_> = (0..3)
                    .map(|i| t.file.read_at_nonblocking(i * n, vec![0xee; n as usize]))
                    .collect();
                for (i, request) in under_way.into_iter().enumerate() {
                    let (result, bytes) = request.wait();
                    let (read, bytes) = (result?, bytes.into_vec());
                    self.compare(t, i as u64 * n, &bytes[..read], n, true)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn sync(&mut self, t: &mut Target) -> Result<(), Failure> {
        let kills = self.kills();
        t.file.sync()?;
        self.fired.syncs += 1;
        // Of kills before it the sync has told.
        if kills == t.base && self.kills() == kills && kills.is_multiple_of(2) {
            t.settle();
        }
        Ok(())
    }

    fn shared(&mut self, t: &mut Target) -> Result<(), Failure> {
        let tag = self.random.below(TAGS) as u8;
        let shown = t.view.len_within(SHARED);
        let at = self.random.below(shown);
        let len = match self.random.below(3) {
            0 => self.random.within(1..100),
            1 => self.random.within(1..4000),
            _ => self.random.within(1..shown),
        };
        let len = len.min(shown - at);
        if self.random.below(12) == 0 {
            // Sieved writes read and write bytes of others too.
            let strategy = ["sieving", "views"][self.random.index(2)];
            let window = self.random.within(64..9000).to_string();
            let hints = Hints::new().with("strategy", strategy);
            let hints = hints.and_then(|hints| hints.with("ind_wr_buffer_size", &window));
            t.file.set_hints(&hints?)?;
        }
        let done = match self.random.below(8) {
            0..=2 => self.write(t, at, len, tag),
            3..=6 => self.read(t, at, len, true),
            _ => self.sync(t),
        };
        self.judge(t, done)
    }

    fn log(&mut self, log: &File, records: &mut Records) -> Result<(), Failure> {
        let before = self.kills();
        let number = records.begin()?;
        let appended = log.append(&record(self.orders.me, number));
        let is_calm = self.kills() == before && before.is_multiple_of(2);
        match appended {
            Ok(at) => records.acknowledge(at, number, self.is_exact())?,
            Err(error) if is_calm && before == records.base => {
                let error: Failure = error.into();
                if self.is_exact() || !is_away(&error) {
                    return Err(format!("log: {error}").into());
                }
            }
            Err(_) => {}
        }
        if number % 4 == 3 {
            let _ = self.sync_log(log, records);
        }
        Ok(())
    }

    /// What was appended between two calm syncs is safe.
    fn sync_log(&mut self, log: &File, records: &mut Records) -> Result<(), Failure> {
        let kills = self.kills();
        let synced = log.sync();
        let is_calm = self.kills() == kills && kills.is_multiple_of(2);
        if synced.is_ok() && is_calm && records.base == kills {
            records.synced()?;
        }
        if is_calm {
            // Records of before were perhaps lost, and perhaps overwritten.
            records.forget(kills);
        }
        synced?;
        self.fired.syncs += 1;
        Ok(())
    }

    fn finish_log(&mut self, log: &File, records: &mut Records) -> Result<(), Failure> {
        let end = Instant::now() + LIMIT;
        while let Err(error) = self.sync_log(log, records) {
            if Instant::now() > end || self.is_exact() {
                return Err(format!("log: {error}").into());
            }
            pause(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Has its own file moved by itself.
    fn ask_for_move(&mut self) -> Result<(), Failure> {
        let path = format!("{}/own-{}", self.orders.dir, self.orders.me);
        let layout = of_bytes(&mut self.random, 2);
        let options = MoveOptions {
            window_bytes: 1 << self.random.within(10..16),
            ..MoveOptions::default()
        };
        match self.client.relayout_with(&path, &layout, &options) {
            Ok(_) => self.fired.moves += 1,
            Err(error) => {
                // Others move or rename it too.
                let is_taken = matches!(error.status(), Status::Busy | Status::NotFound);
                if !is_taken && self.is_exact() {
                    return Err(format!("move of {path} to {layout}: {error}").into());
                }
            }
        }
        Ok(())
    }

    fn write_atomic(&mut self, file: &File) -> Result<(), Failure> {
        let (at, len) = ATOMIC;
        let bytes = pattern(&View::whole_file(), at, len, self.random.below(TAGS));
        let torn = Torn::new(&self.orders.stop, self.orders.me);
        torn.begin()?;
        match file.write_at(at, &bytes) {
            Ok(_) => {
                torn.end()?;
                self.fired.accesses += 1;
                Ok(())
            }
            Err(error) => self.excuse_atomic(error),
        }
    }

    fn atomic(&mut self, file: &File) -> Result<(), Failure> {
        let (at, len) = ATOMIC;
        let whole = View::whole_file();
        if self.random.below(2) == 0 {
            return self.write_atomic(file);
        }
        let torn = Torn::new(&self.orders.stop, self.orders.me);
        let healed = torn.healed();
        let mut bytes = vec![0xee; len];
        let n = match file.read_at(at, &mut bytes) {
            Ok(n) => n,
            Err(error) => return self.excuse_atomic(error),
        };
        if self.kills() > 0 {
            return Ok(());
        }
        let is_one = |tag: u64| pattern(&whole, at, len, tag) == bytes;
        let is_good = n == 0 || n == len && (0..TAGS).any(is_one);
        // A client that dies in a write leaves half of it.
        if !is_good && !torn.is_excused(self.orders.all, healed) {
            let first: Vec<u64> = (0..TAGS)
                .filter(|t| pattern_byte(*t, at) == bytes[0])
                .collect();
            let other = (0..n).find(|i| {
                let x = at + *i as u64;
                first.iter().all(|t| pattern_byte(*t, x) != bytes[*i])
            });
            let text = format!("atomic: {n} bytes are of two writes, {first:?} until {other:?}");
            return Err(Box::new(Wrong(text)));
        }
        self.fired.accesses += 1;
        Ok(())
    }

    /// The metadata manager may be away, and a server may just have been killed.
    fn excuse_atomic(&self, error: client::Error) -> Result<(), Failure> {
        let text = format!("atomic: {error}");
        let is_excused = !self.is_exact() && (self.kills() > 0 || is_away(&error.into()));
        if is_excused { Ok(()) } else { Err(text.into()) }
    }

    /// Everything exact and durable.
    fn finish(&mut self, target: &mut Target) -> Result<(), Failure> {
        let end = Instant::now() + LIMIT;
        loop {
            if !self.is_calm(target) {
                self.settle(target)?;
            }
            match self.sync(target) {
                Ok(()) if self.is_calm(target) => return Ok(()),
                Err(error) if self.is_calm(target) || Instant::now() > end => {
                    return Err(format!("{}: last sync: {error}", target.name).into());
                }
                _ => pause(Duration::from_millis(5)),
            }
        }
    }
}

/// Whether somebody could not be reached.
fn is_away(error: &Failure) -> bool {
    let known = error.downcast_ref::<client::Error>();
    known.is_some_and(|e| matches!(e.status(), Status::Unreachable | Status::TimedOut))
}

/// Bytes or sizes that cannot be, whatever died.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Wrong(String);
