//! Real runs of every scheme: record sizes, ranks per server, speed of disks, on one host and over slow links.
//!
//! * `real/host/memory/read/e=64/P=4/I=2/mb_ddio`: servers in memory, sockets of the host;
//! * `real/host/disk=200/..`: disks that do 200 MB/s, with memory for a quarter of the file, at least 8 MiB;
//! * `real/far/..`: the ranks on one host, the servers on others, links of 1 Gbit/s, memory or disks of 50 MB/s.
//!
//! Every server has as many bytes as `--bytes` says, a quarter of that where links are slow and disks are not.
//! A row's ratio `independent` is its rate by that of independent accesses in the same turns. `auto` is what the
//! cost model chose, in `chosen`. Pieces of the plain scheme are messages, so it runs from 512 bytes on.

use serde_json::{Value, json};

use crate::Row;
use crate::sheet::Sheet;
use crate::site::{Site, Wanted, spread};
use crate::workers::{Path, Team};
use console::Error;
use testkit::hosts::Hosts;

const MB: f64 = 1e6;
const TURNS: u64 = 7;
/// Where a turn takes milliseconds: what others do on the machine then meets only some of them.
const SHORT_TURNS: u64 = 35;
const RANKS: u64 = 4;
/// Records shorter than this do not travel one by one.
const LEAST_RECORD: u64 = 512;
/// Memory of a server on a disk, at least.
const LEAST_MEMORY: u64 = 8 << 20;
const SCHEMES: [&str; 7] = [
    "independent",
    "two_phase",
    "ddio",
    "pb_ddio",
    "mb_ddio",
    "two_phase_ddio",
    "auto",
];

/// Where bytes are kept, and how fast that is.
#[derive(Clone, Copy)]
enum Store {
    Memory,
    /// Megabytes per second.
    Disk(u64),
}

impl Store {
    fn word(self) -> String {
        match self {
            Store::Memory => "memory".into(),
            Store::Disk(rate) => format!("disk={rate}"),
        }
    }

    fn wanted(self, servers: usize, bytes: u64) -> Wanted {
        match self {
            Store::Memory => Wanted::memory(servers, 4 * bytes),
            Store::Disk(rate) => Wanted {
                memory: (bytes / servers as u64 / 4).max(LEAST_MEMORY),
                options: ["--disk-rate".into(), (rate * 1_000_000).to_string()].into(),
                ..Wanted::disk(servers)
            },
        }
    }
}

struct Cell {
    place: &'static str,
    store: Store,
    writes: bool,
    record: u64,
    servers: usize,
    bytes: u64,
}

impl Cell {
    fn name(&self) -> String {
        format!(
            "real/{}/{}/{}/e={}/P={RANKS}/I={}",
            self.place,
            self.store.word(),
            if self.writes { "write" } else { "read" },
            self.record,
            self.servers
        )
    }

    fn schemes(&self) -> Vec<&'static str> {
        let all = SCHEMES.iter().copied();
        all.filter(|scheme| *scheme != "ddio" || self.record >= LEAST_RECORD)
            .collect()
    }
}

pub(super) fn add(sheet: &mut Sheet, bytes: u64, turns: Option<u64>) -> Result<(), Error> {
    let mut cells = Vec::new();
    for store in [Store::Memory, Store::Disk(800), Store::Disk(200)] {
        for servers in [1, 2] {
            for record in [8, 64, 1024, 65536] {
                cells.push(Cell {
                    place: "host",
                    store,
                    writes: false,
                    record,
                    servers,
                    bytes: bytes * servers as u64,
                });
            }
            cells.push(Cell {
                place: "host",
                store,
                writes: true,
                record: 64,
                servers,
                bytes: bytes * servers as u64,
            });
        }
    }
    for store in [Store::Memory, Store::Disk(50)] {
        for (record, writes) in [(8, false), (1024, false), (64, true)] {
            cells.push(Cell {
                place: "far",
                store,
                writes,
                record,
                servers: 2,
                // Disks are to be read, not what is kept of them.
                bytes: match store {
                    Store::Memory => bytes / 4,
                    Store::Disk(_) => 2 * bytes,
                },
            });
        }
    }
    for cell in &cells {
        let usual = match (cell.place, cell.store) {
            ("host", Store::Memory) => SHORT_TURNS,
            _ => TURNS,
        };
        add_cell(sheet, cell, turns.unwrap_or(usual))?;
    }
    Ok(())
}

fn add_cell(sheet: &mut Sheet, cell: &Cell, turns: u64) -> Result<(), Error> {
    let name = cell.name();
    let mut run = cell.schemes();
    run.retain(|scheme| sheet.wants(&format!("{name}/{scheme}")));
    if run.is_empty() {
        return Ok(());
    }
    let hosts = match cell.place {
        "far" => match Hosts::with_rates(&vec![Some(1000); cell.servers + 1]) {
            Ok(hosts) => Some(hosts),
            Err(why) => {
                eprintln!("{name} is left out: {why}");
                return Ok(());
            }
        },
        _ => None,
    };
    let spread = hosts
        .as_ref()
        .map(|hosts| spread(hosts, 1, (1..=cell.servers).collect()));
    let site = Site::start(
        &cell.store.wanted(cell.servers, cell.bytes),
        spread.as_ref(),
    )?;
    let on = hosts.as_ref().map(|hosts| (hosts, &[0usize][..]));
    let mut team = Team::start(&site, 1, Path::Socket, on)?;
    let round = team.all(|_| {
        json!({
            "do": "ranks",
            "ranks": RANKS,
            "record": cell.record,
            "bytes": cell.bytes,
            "writes": cell.writes,
            "turns": turns,
            "layout": format!("striped(1048576) over {}", cell.servers),
            "schemes": run,
        })
    })?;
    let none = Vec::new();
    let schemes = round.answers[0]["schemes"].as_array().unwrap_or(&none);
    let best = |scheme: &Value| -> (f64, f64) {
        let turns = scheme["turns"].as_array().unwrap_or(&none);
        let mut turns: Vec<f64> = turns.iter().filter_map(Value::as_f64).collect();
        turns.sort_by(f64::total_cmp);
        let first = turns.first().copied().unwrap_or(f64::INFINITY);
        (first, turns.get(turns.len() / 2).copied().unwrap_or(first))
    };
    let alone = schemes
        .iter()
        .find(|s| s["scheme"] == "independent")
        .map(best);
    for scheme in schemes {
        let word = scheme["scheme"].as_str().unwrap_or_default();
        let (ns, median) = best(scheme);
        let mut columns = serde_json::Map::new();
        columns.insert("packets".into(), scheme["packets"].clone());
        if word == "auto" {
            columns.insert("chosen".into(), scheme["chosen"]["how"].clone());
            columns.insert(
                "predicted_s".into(),
                scheme["chosen"]["predicted_s"].clone(),
            );
            // Every scheme with the seconds that were predicted for it.
            let all = scheme["chosen"]["alternatives"].clone();
            columns.insert("alternatives".into(), all);
        }
        sheet.add(format!("{name}/{word}"), |case| Row {
            case,
            value: cell.bytes as f64 / ns * 1e9 / MB,
            unit: "MB/s",
            spread: median / ns - 1.0,
            first: None,
            columns,
            ratios: alone
                .map(|(alone, _)| ("independent", alone / ns))
                .into_iter()
                .collect(),
        })?;
    }
    Ok(())
}
