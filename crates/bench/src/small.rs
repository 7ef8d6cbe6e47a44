//! `pario bench small`: how long small accesses take, and how many files a second can be made, opened,
//! asked about and removed.
//!
//! ```text
//!  memory|disk / socket|direct / read|write / b=BYTES     value: median time; p90, p99, p99.9 in the columns
//!  files / create|open|stat|delete / c=PROCESSES          value: files per second
//! ```
//!
//! Accesses are at places drawn at random in a file of 16 MiB; what is read is compared with what was
//! written there last. Yardsticks are pread and pwrite, and the same calls for files, on tmpfs and on the disk
//! (ext4 where the temporary directory is). A row is the median over turns.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::flags::ReportTo;
use super::site::{SharedFile, Site, Store, Wanted};
use super::table::Table;
use super::workers::{Path, Team, paths};
use super::{Report, Row, machine};
use console::Error;

/// Arguments of `pario bench small`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) report: ReportTo,

    /// Sizes of accesses
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "64,512,4096", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    sizes: Vec<u64>,

    /// Accesses per turn [default: 2000, with --full 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Files in all
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(28..=999_999))]
    files: u64,

    /// Turns per contestant, at least 7
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u64).range(7..))]
    turns: u64,

    /// More accesses per turn
    #[arg(long)]
    full: bool,
}

/// Bytes of the file that is accessed.
const FILE: u64 = 16 << 20;
/// Processes that handle files.
const PROCESSES: [usize; 2] = [1, 4];

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments) -> Result<Report, Error> {
    let mut machine = machine::facts();
    machine.insert(
        "statistic".into(),
        json!(format!("median of {}", arguments.turns)),
    );
    let aside = arguments.report.is_on_stdout();
    let mut rows = Vec::new();
    let mut table = Table::new(aside, "us");
    for path in paths()? {
        for store in [Store::Memory, Store::Disk] {
            for row in arguments.latencies(store, path)? {
                table.row(&row)?;
                rows.push(row);
            }
        }
    }
    let mut table = Table::new(aside, "files/s");
    for row in arguments.many_files()? {
        table.row(&row)?;
        rows.push(row);
    }
    Ok(Report {
        bench: "small",
        machine,
        rows,
    })
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

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list.get(list.len() / 2).copied().unwrap_or(0.0)
}

fn least(list: &[f64]) -> f64 {
    list.iter().copied().fold(f64::INFINITY, f64::min)
}

impl Arguments {
    fn turns(&self) -> u64 {
        self.turns.max(7)
    }

    fn latencies(&self, store: Store, path: Path) -> Result<Vec<Row>, Error> {
        let wanted = match store {
            Store::Memory => Wanted::memory(1, FILE),
            Store::Disk => Wanted::disk(1),
        };
        let site = Site::start(&wanted, None)?;
        let part =
            json!({ "do": "part", "array": format!("u8[{FILE}]"), "view": "whole", "salt": 3 });
        let open = json!({ "do": "open", "name": "pario", "path": "/small", "create": true, "layout": "whole" });
        let mut team = Team::start(&site, 1, path, None)?;
        team.every(&part)?;
        team.every(&open)?;
        team.every(&json!({ "do": "write", "name": "pario", "stamp": 0 }))?;
        let shared = SharedFile::in_memory("small");
        let mut yardsticks: Vec<(&'static str, &'static str, &'static str)> = Vec::new();
        let disk = site.scratch("plain");
        let mut begin = |name: &str, file: &std::path::Path| {
            let plain = json!({ "do": "plain", "name": name, "path": file, "at": 0 });
            let write = json!({ "do": "plain-write", "name": name, "stamp": 0 });
            team.every(&plain).and_then(|_| team.every(&write)).is_ok()
        };
        if shared.as_ref().is_some_and(|file| begin("tmpfs", &file.0)) {
            yardsticks.push(("tmpfs", "pread-tmpfs", "pwrite-tmpfs"));
        }
        if begin("ext4", &disk) {
            yardsticks.push(("ext4", "pread-ext4", "pwrite-ext4"));
        }
        // Open already: without a name it goes with the process, whatever happens.
        drop(shared);
        let count = self.count.unwrap_or(if self.full { 20_000 } else { 2000 });
        let mut rows = Vec::new();
        for op in ["read", "write"] {
            for &bytes in &self.sizes {
                let order = |name: &str, count: u64, seed: u64| {
                    json!({ "do": "latency", "name": name, "op": op, "bytes": bytes,
                            "count": count, "seed": seed })
                };
                // The first access of a process that has just opened the file; what it wrote is put right.
                let mut fresh = Team::start(&site, 1, path, None)?;
                fresh.every(&part)?;
                fresh.every(&open)?;
                let round = fresh.every(&order("pario", 1, 77))?;
                let first = round.answers.first().and_then(percentiles);
                drop(fresh);
                team.every(&json!({ "do": "write", "name": "pario", "stamp": 0 }))?;
                let mut mine: Vec<Percentiles> = Vec::new();
                let mut messages = 0;
                let mut theirs: Vec<Option<Vec<f64>>> = vec![Some(Vec::new()); yardsticks.len()];
                for turn in 0..=self.turns() {
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
                    team.every(&json!({ "do": "read", "name": "pario" }))?;
                }
                let of = |which: usize| median(mine.iter().map(|all| all[which]).collect());
                let half = of(0);
                let best = least(&mine.iter().map(|all| all[0]).collect::<Vec<f64>>());
                let us = |ns: f64| json!((ns / 10.0).round() / 100.0);
                let mut columns = Map::new();
                for (name, which) in [("p90", 1), ("p99", 2), ("p99.9", 3)] {
                    columns.insert(name.into(), us(of(which)));
                }
                let per = messages as f64 / count as f64;
                columns.insert("messages".into(), json!((per * 100.0).round() / 100.0));
                let ratios = yardsticks.iter().zip(theirs).filter_map(|(names, list)| {
                    let name = if op == "read" { names.1 } else { names.2 };
                    Some((name, median(list?) / half))
                });
                rows.push(Row {
                    case: format!("{}/{}/{op}/b={bytes}", store.word(), path.word()),
                    value: half / 1e3,
                    unit: "us",
                    spread: half / best - 1.0,
                    first: first.map(|all| all[0] / 1e3),
                    columns,
                    ratios: ratios.collect(),
                });
            }
        }
        Ok(rows)
    }

    /// All files exist at the same time; each turn handles its share of them.
    fn many_files(&self) -> Result<Vec<Row>, Error> {
        let site = Site::start(&Wanted::memory(2, 1 << 20), None)?;
        let mut rows = Vec::new();
        for processes in PROCESSES {
            let mut team = Team::start(&site, processes, Path::Socket, None)?;
            let disk = site.scratch(&format!("files-{processes}"));
            let shared = PathBuf::from("/dev/shm").join(format!(
                "pario-bench-{}-files-{processes}",
                std::process::id()
            ));
            let _gone = Removed(shared.clone());
            let made = |folder: &PathBuf| fs::create_dir_all(folder).is_ok();
            let mut yardsticks: Vec<(&'static str, PathBuf, bool)> = Vec::new();
            for (name, folder) in [("tmpfs", shared), ("ext4", disk)] {
                if made(&folder) {
                    yardsticks.push((name, folder, true));
                }
            }
            let folder = format!("/files-{processes}");
            mkdir(&site, &folder)?;
            // Turns, and a first one of a fresh process.
            let share = (self.files / (self.turns() + 1) / processes as u64).max(1);
            for op in ["create", "open", "stat", "delete"] {
                let mut mine = Vec::new();
                let mut theirs: Vec<Vec<f64>> = vec![Vec::new(); yardsticks.len()];
                let mut first = None;
                for turn in 0..=self.turns() {
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
                let ns = median(mine.clone());
                let ratios =
                    yardsticks
                        .iter()
                        .zip(theirs)
                        .filter_map(|((name, _, works), list)| {
                            works.then(|| (*name, median(list) / ns))
                        });
                let files = (share * processes as u64) as f64;
                let mut columns = Map::new();
                let all = share * processes as u64 * (self.turns() + 1);
                columns.insert("files".into(), json!(all));
                rows.push(Row {
                    case: format!("files/{op}/c={processes}"),
                    value: files * 1e9 / ns,
                    unit: "files/s",
                    spread: ns / least(&mine) - 1.0,
                    first,
                    columns,
                    ratios: ratios.collect(),
                });
                let expected = if op == "delete" { 0 } else { all };
                let found = count(&site, &folder)?;
                if found != expected {
                    return Err(
                        format!("{folder} has {found} files after {op}, not {expected}").into(),
                    );
                }
            }
        }
        Ok(rows)
    }
}

fn connect(site: &Site) -> Result<client::Client, Error> {
    let url = site
        .url()
        .parse()
        .map_err(|e| format!("{}: {e}", site.url()))?;
    let client = client::Client::connect(&url, client::ConnectOptions::default());
    client.map_err(console::refused)
}

fn mkdir(site: &Site, folder: &str) -> Result<(), Error> {
    let made = connect(site)?.mkdir(folder, None);
    made.map_err(console::refused)
}

fn count(site: &Site, folder: &str) -> Result<u64, Error> {
    let listed = connect(site)?.list(folder);
    let listed = listed.map_err(console::refused)?;
    Ok(listed.count() as u64)
}

/// A directory of the host that is removed with the value.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // Nobody can do more about what cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}
