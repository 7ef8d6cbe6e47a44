//! `pario bench relayout`: a stored file changes its layout, while no client uses it and while one does.
//!
//! ```text
//!  FROM / TO / memory|disk       rows, cols, block: parts of an array    stripe64K ...: stripes
//!                                cyclic8: runs of 8 bytes                here, there: other servers
//! ```
//!
//! The value is the rate of the move as its user sees it: from asking for it to hearing that it is done, in
//! memory that was used before. `memcpy` is a plain copy of as many bytes and `kernel` the copy between the two
//! layouts in plain memory, both by as many threads as there are servers; `pwrite-fsync` writes a plain file
//! until it is on the disk. `foreground` is what a client that reads and writes 64 KiB at a time keeps of its
//! throughput during the move. Turns of all alternate. After the last turn every byte is compared.
//!
//! The file has 256 MiB unless `--megabytes` says otherwise: yardsticks are rates of copies, and what a move costs
//! whatever its size (some two milliseconds of commits and messages) shall not hide its rate. Both
//! yardsticks copy from and to huge pages that were used before, with as many threads as there are servers.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use client::{Client, ConnectOptions, File, MoveState, OpenOptions};
use console::{Error, notation, refused};
use layout::Partition;
use plan::Plan;

use super::claims::{self, Claim};
use super::contest::Outcome;
use super::flags::Turns;
use super::redistribution::{FlatCopy, Redistribution, partition, value_of};
use super::site::{self, ServiceSpec, Site, Store};
use super::{Row, Sheet, rounded};

/// Arguments of `pario bench relayout`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Only cases whose name contains one of these
    #[arg(value_name = "CASE")]
    cases: Vec<String>,

    /// Size of the file in MiB, a multiple of 8 [default: 256, with --quick 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(8..=16384))]
    megabytes: Option<u64>,

    /// I/O servers, an even number
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..=64))]
    servers: u64,

    #[command(flatten)]
    turns: Turns,

    /// Leave out what is measured beside a busy client
    #[arg(long)]
    no_foreground: bool,
}

/// What a layout is called in cases, and its text for so many servers.
fn text_of(word: &str, servers: u64) -> String {
    let half = servers / 2;
    let list = |from: u64| {
        let numbers: Vec<String> = (from..from + half).map(|n| n.to_string()).collect();
        format!("striped(1MiB) over [{}]", numbers.join(","))
    };
    match word {
        "rows" => format!("(block, *) onto {servers}"),
        "cols" => format!("(*, block) onto {servers}"),
        "block" => format!("(block, *) onto {servers}"),
        "here" => list(0),
        "there" => list(half),
        "cyclic8" => format!("striped(8) over {servers}"),
        word => {
            let size = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
            let size = size.replace('K', "KiB").replace('M', "MiB");
            format!("striped({size}) over {servers}")
        }
    }
}

/// Pairs of layouts; each is measured both ways.
const PAIRS: [(&str, &str); 7] = [
    ("rows", "cols"),
    ("stripe64K", "stripe1M"),
    ("stripe256K", "stripe1M"),
    ("block", "cyclic4K"),
    ("block", "cyclic64K"),
    ("block", "cyclic8"),
    ("here", "there"),
];

/// Columns of the array in bytes: a row of `cols` is long enough to be a long run.
const COLUMNS: u64 = 32 << 10;
/// What the busy client reads or writes at a time.
const PIECE: usize = 64 << 10;
/// How long it is measured without a move.
const ALONE: Duration = Duration::from_millis(150);
/// Between two questions how far a move is.
const LOOK: Duration = Duration::from_micros(300);

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let usual = if sheet.is_quick() { 16 } else { 256 };
    let megabytes = arguments.megabytes.unwrap_or(usual);
    if !megabytes.is_multiple_of(8) || !arguments.servers.is_multiple_of(2) {
        return Err("--megabytes has to be a multiple of 8, --servers an even number".into());
    }
    let statistic = format!("best of {}; foreground: median", arguments.turns.turns);
    sheet.begin("relayout", "GB/s", statistic);
    for store in [Store::Memory, Store::Disk] {
        for pair in PAIRS {
            let names = [(pair.0, pair.1), (pair.1, pair.0)]
                .map(|(from, to)| format!("{from}/{to}/{}", store.word()));
            let is_wanted = |name: &String| {
                let cases = &arguments.cases;
                sheet.wants(name) && (cases.is_empty() || cases.iter().any(|c| name.contains(c)))
            };
            if !names.iter().any(is_wanted) {
                continue;
            }
            let mut rows = measure(arguments, pair, store, megabytes << 20)?;
            rows.retain(|row| is_wanted(&row.case));
            sheet.extend(rows)?;
        }
    }
    claims::print(&goals(&sheet.rows));
    Ok(())
}

/// Times of one direction, in seconds, and shares.
#[derive(Default)]
struct Times {
    moves: Vec<f64>,
    memcpy: Vec<f64>,
    kernel: Vec<f64>,
    pwrite: Vec<f64>,
    /// Throughput during a move over that without.
    foreground: Vec<f64>,
    /// Moves beside a busy client.
    busy: Vec<f64>,
    first: f64,
}

fn measure(
    arguments: &Arguments,
    pair: (&str, &str),
    store: Store,
    bytes: u64,
) -> Result<Vec<Row>, Error> {
    let servers = arguments.servers;
    let mut wanted = ServiceSpec::memory(servers as usize, bytes * 4);
    wanted.store = store;
    let site = Site::start(&wanted, None)?;
    let client = connect(&site)?;
    let texts = [text_of(pair.0, servers), text_of(pair.1, servers)];
    let array = format!("u8[{},{COLUMNS}]", bytes / COLUMNS);
    let how = OpenOptions::new()
        .read()
        .write()
        .exclusive()
        .array(&array)
        .layout(&texts[0]);
    let file = client.open("/file", &how).map_err(refused)?;
    let content: Vec<u8> = (0..bytes).map(value_of).collect();
    file.write_at(0, &content).map_err(refused)?;
    file.sync().map_err(refused)?;
    let mut yardsticks = Yardsticks::new(&array, &texts, bytes, servers as usize)?;
    let mut both = [Times::default(), Times::default()];
    let plain = (store == Store::Disk).then(|| site.scratch("plain"));
    // Twice there and back, so that extents have been used on both sides.
    for round in 0..2 {
        for (i, times) in both.iter_mut().enumerate() {
            let took = move_to(&client, &texts[1 - i])?;
            if round == 0 {
                times.first = took;
            }
        }
    }
    for _ in 0..arguments.turns.turns {
        for (i, times) in both.iter_mut().enumerate() {
            times.moves.push(move_to(&client, &texts[1 - i])?);
            times.memcpy.push(yardsticks.memcpy());
            times.kernel.push(yardsticks.kernel(i)?);
            if let Some(path) = &plain {
                times.pwrite.push(pwrite(path, &content)?);
            }
        }
    }
    if !arguments.no_foreground {
        for _ in 0..arguments.turns.turns {
            for (i, times) in both.iter_mut().enumerate() {
                let (share, took) = beside(&site, &client, &texts[1 - i], &content)?;
                times.foreground.push(share);
                times.busy.push(took);
            }
        }
    }
    verify(&file, &content)?;
    file.close().map_err(refused)?;
    let rows = both.iter().enumerate().map(|(i, times)| {
        let words = [pair.0, pair.1];
        let case = format!("{}/{}/{}", words[i], words[1 - i], store.word());
        times.row(case, bytes)
    });
    rows.collect()
}

impl Times {
    fn row(&self, case: String, bytes: u64) -> Result<Row, Error> {
        let outcome = |list: &Vec<f64>| Outcome::of(list.clone());
        let own = outcome(&self.moves).ok_or("no time measured")?;
        let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
        let mut row = Row::new(case, rate(own.best), "GB/s")
            .spread(own.spread())
            .first(Some(rate(self.first)))
            .column("bytes", bytes);
        for (name, times) in [
            ("memcpy", &self.memcpy),
            ("kernel", &self.kernel),
            ("pwrite-fsync", &self.pwrite),
        ] {
            row.ratios
                .extend(outcome(times).map(|theirs| (name, theirs.best / own.best)));
        }
        let share = outcome(&self.foreground);
        row.ratios
            .extend(share.map(|share| ("foreground", share.median)));
        if let Some(busy) = outcome(&self.busy) {
            row.set("busy_gb_s", rounded(rate(busy.median)));
        }
        Ok(row)
    }
}

fn connect(site: &Site) -> Result<Client, Error> {
    let options = ConnectOptions::from_env().map_err(refused)?;
    site::connect(site.url(), options)
}

/// Moves the file; the seconds it took.
fn move_to(client: &Client, layout: &str) -> Result<f64, Error> {
    let started = Instant::now();
    let mut moving = client.relayout("/file", layout).map_err(refused)?;
    loop {
        let now = moving.progress().map_err(refused)?;
        match now.state {
            MoveState::Done => return Ok(started.elapsed().as_secs_f64()),
            state if state.is_over() || state == MoveState::Paused => {
                return Err(format!("the move ended as {state:?}: {}", now.failure).into());
            }
            // Nobody wakes this thread: servers do not call clients.
            _ => std::thread::park_timeout(LOOK),
        }
    }
}

/// A move beside a client that reads and writes: the share of its throughput that the client keeps, and the
/// seconds of the move.
fn beside(site: &Site, client: &Client, layout: &str, content: &[u8]) -> Result<(f64, f64), Error> {
    let other = connect(site)?;
    let is_over = AtomicBool::new(false);
    let count = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| pound(&other, content, &count, &is_over));
        let result = (|| {
            // Warm first: every piece has been read and written, so that its memory is mapped.
            let warm = Instant::now();
            let pieces = (content.len() / PIECE) as u64;
            while count.load(Ordering::Relaxed) < 2 * pieces && warm.elapsed() < 40 * ALONE {
                std::thread::park_timeout(LOOK);
            }
            let rate_of = |before: u64, time: Duration| {
                (count.load(Ordering::Relaxed) - before) as f64 / time.as_secs_f64()
            };
            let (before, started) = (count.load(Ordering::Relaxed), Instant::now());
            while started.elapsed() < ALONE {
                std::thread::park_timeout(ALONE.saturating_sub(started.elapsed()));
            }
            let alone = rate_of(before, started.elapsed());
            let (before, started) = (count.load(Ordering::Relaxed), Instant::now());
            let took = move_to(client, layout)?;
            let meanwhile = rate_of(before, started.elapsed());
            Ok((meanwhile / alone.max(1e-9), took))
        })();
        is_over.store(true, Ordering::Relaxed);
        let pounded: Result<(), String> = busy.join().unwrap_or(Err("the client panicked".into()));
        pounded?;
        result
    })
}

/// Reads and writes pieces until told to stop; what is written is what is there.
fn pound(
    client: &Client,
    content: &[u8],
    count: &AtomicU64,
    is_over: &AtomicBool,
) -> Result<(), String> {
    let how = OpenOptions::new().read().write();
    let file = client.open("/file", &how).map_err(|e| e.to_string())?;
    let mut buffer = vec![0; PIECE];
    let pieces = content.len() / PIECE;
    let mut i: usize = 0;
    while !is_over.load(Ordering::Relaxed) {
        let at = i.wrapping_mul(0x9e37_79b1) % pieces * PIECE;
        let piece = &content[at..at + PIECE];
        // Each piece in turns.
        if (i + i / pieces).is_multiple_of(2) {
            file.write_at(at as u64, piece).map_err(|e| e.to_string())?;
        } else {
            file.read_at(at as u64, &mut buffer)
                .map_err(|e| e.to_string())?;
            if buffer != piece {
                return Err(format!("bytes at {at} are not what was written"));
            }
        }
        i += 1;
        count.fetch_add(1, Ordering::Relaxed);
    }
    file.close().map_err(|e| e.to_string())
}

fn verify(file: &File, content: &[u8]) -> Result<(), Error> {
    let mut found = vec![0; content.len()];
    let n = file.read_at(0, &mut found).map_err(refused)?;
    if n == content.len() && found == content {
        return Ok(());
    }
    let at = found.iter().zip(content).position(|(a, b)| a != b);
    Err(
        format!("the file is wrong after its moves: {n} bytes, the first that differs is {at:?}")
            .into(),
    )
}

/// Writes a plain file until it is on the disk; the seconds.
fn pwrite(path: &std::path::Path, content: &[u8]) -> Result<f64, Error> {
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let started = Instant::now();
    file.write_all_at(content, 0)?;
    file.sync_data()?;
    Ok(started.elapsed().as_secs_f64())
}

/// Copies in plain memory by so many threads.
struct Yardsticks {
    flat: FlatCopy,
    jobs: [Redistribution; 2],
    threads: usize,
}

impl Yardsticks {
    fn new(
        array: &str,
        texts: &[String; 2],
        bytes: u64,
        threads: usize,
    ) -> Result<Yardsticks, Error> {
        let array = notation::array(array)?;
        let (from, to) = (
            partition("layout", &texts[0], &array)?.1,
            partition("layout", &texts[1], &array)?.1,
        );
        let job = |from: &Partition, to: &Partition| -> Result<Redistribution, Error> {
            let mut job = Redistribution::new(&Plan::between(from, to, bytes))?;
            job.fill();
            job.run_on(threads)?;
            job.verify()?;
            Ok(job)
        };
        Ok(Yardsticks {
            flat: FlatCopy::new(bytes)?,
            jobs: [job(&from, &to)?, job(&to, &from)?],
            threads,
        })
    }

    fn memcpy(&mut self) -> f64 {
        let started = Instant::now();
        self.flat.run_on(self.threads);
        started.elapsed().as_secs_f64()
    }

    fn kernel(&mut self, direction: usize) -> Result<f64, Error> {
        let started = Instant::now();
        self.jobs[direction].run_on(self.threads)?;
        Ok(started.elapsed().as_secs_f64())
    }
}

/// Which goals hold in these rows.
fn goals(rows: &[Row]) -> [Claim; 3] {
    let in_memory = |row: &Row, is_short: bool, name: &str| {
        let is_meant = row.case.ends_with("/memory") && row.case.contains("cyclic8") == is_short;
        is_meant.then(|| row.ratio(name)).flatten()
    };
    [
        Claim::of(
            "in memory, runs of 4 KiB and more: at least 0.5 of memcpy",
            0.5,
            rows,
            |row| in_memory(row, false, "memcpy"),
        ),
        Claim::of(
            "in memory, shorter runs: at least 0.8 of the kernel",
            0.8,
            rows,
            |row| in_memory(row, true, "kernel"),
        ),
        Claim::of(
            "a busy client keeps at least half of its throughput",
            0.5,
            rows,
            |row| row.ratio("foreground"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_cases_are_layouts() {
        let array = notation::array("u8[256,32768]").expect("an array");
        for word in PAIRS.iter().flat_map(|pair| [pair.0, pair.1]) {
            let text = text_of(word, 2);
            let read = notation::partition("layout", &text, &array);
            assert!(read.is_ok(), "{word}: {text}");
        }
        assert_eq!(text_of("stripe64K", 4), "striped(64KiB) over 4");
        assert_eq!(text_of("there", 4), "striped(1MiB) over [2,3]");
    }

    #[test]
    fn goals_speak_of_their_cells() {
        let row = |case: &str, ratios: &[(&'static str, f64)]| {
            Row::new(case, 1.0, "GB/s").ratios(ratios.iter().copied())
        };
        let rows = [
            row("rows/cols/memory", &[("memcpy", 0.6), ("kernel", 0.5)]),
            row("block/cyclic8/memory", &[("memcpy", 0.1), ("kernel", 0.7)]),
            row("rows/cols/disk", &[("memcpy", 0.1), ("foreground", 0.9)]),
        ];
        let found = goals(&rows).map(|claim| {
            let found = claim.verdict();
            found.map(|(met, all, worst)| (met, all, worst.1))
        });
        let expected = [(1, 1, 0.6), (0, 1, 0.7), (1, 1, 0.9)];
        assert_eq!(found, expected.map(Some));
    }
}
