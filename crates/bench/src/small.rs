//! `pario bench small`: how long small accesses take, and how many files a second can be made, opened,
//! asked about and removed.
//!
//! ```text
//!  memory|disk / socket|direct / read|write / b=BYTES     value: median time; p90, p99, p99.9 in the columns
//!  files / create|open|stat|delete / c=PROCESSES          value: files per second
//!  files / create|stat|read|.. / own|shared / bytes=B / c=PROCESSES / durable|job    the same, see `many_files`
//! ```
//!
//! Accesses are at places drawn at random in a file of 16 MiB; what is read is compared with what was
//! written there last. Yardsticks are pread and pwrite, and the same calls for files, on tmpfs and on the disk
//! (ext4 where the temporary directory is). A row is the median over turns.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use client::ConnectOptions;
use console::{Error, refused};
use serde_json::{Value, json};

use super::contest::Outcome;
use super::flags::Turns;
use super::many_files;
use super::site::{ServiceSpec, SharedDirectory, SharedFile, Site, Store, connect, wanted};
use super::workers::{Path, Team, paths, whole};
use super::{Row, Sheet, digits};

/// Arguments of `pario bench small`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Sizes of accesses
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "64,512,4096", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    sizes: Vec<u64>,

    /// Accesses per turn [default: 2000, with --full 20000, with --quick 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Files in all [default: 10000, with --quick 400]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(28..=999_999))]
    files: Option<u64>,

    #[command(flatten)]
    turns: Turns,

    /// More accesses per turn
    #[arg(long)]
    full: bool,
}

/// Bytes of the file that is accessed.
const FILE: u64 = 16 << 20;
/// Processes that handle files.
const PROCESSES: [usize; 2] = [1, 4];

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let statistic = format!("median of {}", arguments.turns.turns);
    sheet.begin("small", "us", statistic);
    for path in paths()? {
        for store in [Store::Memory, Store::Disk] {
            arguments.latencies(store, path, sheet)?;
        }
    }
    sheet.unit("files/s");
    arguments.many_files(sheet)?;
    let files = arguments.files.unwrap_or(match sheet.is_quick() {
        true => 400,
        false => 2000,
    });
    many_files::run(files, arguments.turns.turns, sheet)
}

/// Percentiles of one turn, in nanoseconds: 50, 90, 99, 99.9.
type Percentiles = [f64; 4];

fn percentiles(answer: &Value) -> Option<Percentiles> {
    let list = answer["ns"].as_array()?;
    let mut all = [0.0; 4];
    for (to, from) in all.iter_mut().zip(list) {
        *to = from.as_f64()?;
    }
    Some(all)
}

impl Arguments {
    fn latencies(&self, store: Store, path: Path, sheet: &mut Sheet) -> Result<(), Error> {
        let site = Site::start(&wanted(store, 1, FILE), None)?;
        let start = || -> Result<Team, Error> {
            let mut team = Team::start(&site, 1, path, None)?;
            team.parts(&format!("u8[{FILE}]"), 3, whole)?;
            team.make("pario", "/small", "whole")?;
            Ok(team)
        };
        let mut team = start()?;
        team.fill("pario")?;
        let shared = SharedFile::in_memory("small");
        let mut yardsticks: Vec<(&'static str, &'static str, &'static str)> = Vec::new();
        let disk = site.scratch("plain");
        let mut begin = |name: &str, file: &std::path::Path| {
            team.plain(name, file, |_| 0) && team.fill_plain(name)
        };
        if shared.as_ref().is_some_and(|file| begin("tmpfs", &file.0)) {
            yardsticks.push(("tmpfs", "pread-tmpfs", "pwrite-tmpfs"));
        }
        if begin("ext4", &disk) {
            yardsticks.push(("ext4", "pread-ext4", "pwrite-ext4"));
        }
        // Open already: without a name it goes with the process, whatever happens.
        drop(shared);
        let count = self.count.unwrap_or(match sheet.is_quick() {
            true => 200,
            false if self.full => 20_000,
            false => 2000,
        });
        for op in ["read", "write"] {
            for &bytes in &self.sizes {
                let order = |name: &str, count: u64, seed: u64| {
                    json!({ "do": "latency", "name": name, "op": op, "bytes": bytes,
                            "count": count, "seed": seed })
                };
                // The first access of a process that has just opened the file; what it wrote is put right.
                let mut fresh = start()?;
                let round = fresh.every(&order("pario", 1, 77))?;
                let first = round.answers.first().and_then(percentiles);
                drop(fresh);
                team.fill("pario")?;
                let mut mine: Vec<Percentiles> = Vec::new();
                let mut messages = 0;
                let mut theirs: Vec<Option<Vec<f64>>> = vec![Some(Vec::new()); yardsticks.len()];
                for turn in 0..=self.turns.turns {
                    let round = team.every(&order("pario", count, 77 + turn))?;
                    let found = round.answers.first().and_then(percentiles);
                    let found = found.ok_or("a process answers nonsense")?;
                    messages = round.messages;
                    if turn > 0 {
                        mine.push(found);
                    }
                    for (list, (name, _, _)) in theirs.iter_mut().zip(&yardsticks) {
                        // A place that was written in one file is another's too: all get the same.
                        let round = team.every(&order(name, count, 77 + turn));
                        let found = round.ok().and_then(|r| percentiles(r.answers.first()?));
                        match (found, list.as_mut()) {
                            (Some(all), Some(list)) if turn > 0 => list.push(all[0]),
                            (Some(_), _) => {}
                            (None, _) => *list = None,
                        }
                    }
                }
                if op == "write" {
                    // All of it: what was written, and what was not.
                    team.read("pario")?;
                }
                let of = |which: usize| Outcome::of(mine.iter().map(|all| all[which]).collect());
                let half = of(0).ok_or("no time measured")?;
                let ratios = yardsticks.iter().zip(theirs).filter_map(|(names, list)| {
                    let name = if op == "read" { names.1 } else { names.2 };
                    Some((name, Outcome::of(list?)?.median / half.median))
                });
                let case = format!("{}/{}/{op}/b={bytes}", store.word(), path.word());
                let mut row = Row::new(case, half.median / 1e3, "us")
                    .spread(half.spread())
                    .first(first.map(|all| all[0] / 1e3))
                    .ratios(ratios)
                    .column("messages", digits(messages as f64 / count as f64, 2));
                for (name, which) in [("p90", 1), ("p99", 2), ("p99.9", 3)] {
                    let found = of(which).map_or(0.0, |of| of.median);
                    row.set(name, digits(found / 1e3, 2));
                }
                sheet.push(row)?;
            }
        }
        Ok(())
    }

    /// All files exist at the same time; each turn handles its share of them.
    fn many_files(&self, sheet: &mut Sheet) -> Result<(), Error> {
        let site = Site::start(&ServiceSpec::memory(2, 1 << 20), None)?;
        let all = self
            .files
            .unwrap_or(if sheet.is_quick() { 400 } else { 10_000 });
        let client = connect(site.url(), ConnectOptions::default())?;
        for processes in PROCESSES {
            let mut team = Team::start(&site, processes, Path::Socket, None)?;
            let disk = site.scratch(&format!("files-{processes}"));
            let shared = SharedDirectory::in_memory(&format!("files-{processes}"));
            let mut yardsticks: Vec<(&'static str, PathBuf, bool)> = Vec::new();
            if let Some(shared) = &shared {
                yardsticks.push(("tmpfs", shared.0.clone(), true));
            }
            if fs::create_dir_all(&disk).is_ok() {
                yardsticks.push(("ext4", disk, true));
            }
            let folder = format!("/files-{processes}");
            client.mkdir(&folder, None).map_err(refused)?;
            // Turns, and a first one of a fresh process.
            let share = (all / (self.turns.turns + 1) / processes as u64).max(1);
            for op in ["create", "open", "stat", "delete"] {
                let mut mine = Vec::new();
                let mut theirs: Vec<Vec<f64>> = vec![Vec::new(); yardsticks.len()];
                let mut first = None;
                for turn in 0..=self.turns.turns {
                    let order = |rank: usize, folder: &str, plain: bool| {
                        let from = (turn * processes as u64 + rank as u64) * share;
                        json!({ "do": "files", "op": op, "folder": folder, "plain": plain,
                                "from": from, "count": share })
                    };
                    let files = (share * processes as u64) as f64;
                    let ns = team.all(|rank| order(rank, &folder, false))?.ns;
                    match turn {
                        0 => first = Some(files * 1e9 / ns.max(1.0)),
                        _ => mine.push(ns),
                    }
                    for (list, (_, folder, works)) in theirs.iter_mut().zip(&mut yardsticks) {
                        if !*works {
                            continue;
                        }
                        let folder = folder.display().to_string();
                        match team.all(|rank| order(rank, &folder, true)) {
                            Ok(round) if turn > 0 => list.push(round.ns),
                            Ok(_) => {}
                            Err(_) => *works = false,
                        }
                    }
                }
                let outcome = Outcome::of(mine).ok_or("no time measured")?;
                let ratios = yardsticks.iter().zip(theirs);
                let ratios = ratios.filter_map(|((name, _, works), list)| {
                    let theirs = Outcome::of(list).filter(|_| *works)?;
                    Some((*name, theirs.median / outcome.median))
                });
                let files = share * processes as u64;
                let all = files * (self.turns.turns + 1);
                let case = format!("files/{op}/c={processes}");
                let row = Row::new(case, files as f64 * 1e9 / outcome.median, "files/s");
                sheet.push(
                    row.spread(outcome.spread())
                        .first(first)
                        .ratios(ratios)
                        .column("files", all),
                )?;
                let expected = if op == "delete" { 0 } else { all };
                let found = client.list(&folder).map_err(refused)?.count() as u64;
                if found != expected {
                    let what = format!("{folder} has {found} files after {op}, not {expected}");
                    return Err(what.into());
                }
            }
        }
        Ok(())
    }
}
