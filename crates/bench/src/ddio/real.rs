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
use crate::contest::Outcome;
use crate::sheet::Sheet;
use crate::site::{ServiceSpec, Site, spread};
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

    fn wanted(self, servers: usize, bytes: u64) -> ServiceSpec {
        match self {
            Store::Memory => ServiceSpec::memory(servers, 4 * bytes),
            Store::Disk(rate) => ServiceSpec {
                memory: (bytes / servers as u64 / 4).max(LEAST_MEMORY),
                options: ["--disk-rate".into(), (rate * 1_000_000).to_string()].into(),
                ..ServiceSpec::disk(servers)
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
            let records = [8, 64, 1024, 65536].map(|record| (record, false));
            for (record, writes) in records.into_iter().chain([(64, true)]) {
                cells.push(Cell {
                    place: "host",
                    store,
                    writes,
                    record,
                    servers,
                    bytes: bytes * servers as u64,
                });
            }
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
    let best = |scheme: &Value| {
        let turns = scheme["turns"].as_array().unwrap_or(&none);
        Outcome::of(turns.iter().filter_map(Value::as_f64).collect())
    };
    let alone = schemes
        .iter()
        .find(|s| s["scheme"] == "independent")
        .and_then(best);
    for scheme in schemes {
        let word = scheme["scheme"].as_str().unwrap_or_default();
        let Some(outcome) = best(scheme) else {
            continue;
        };
        let value = cell.bytes as f64 / outcome.best * 1e9 / MB;
        let mut row = Row::new(format!("{name}/{word}"), value, "MB/s")
            .spread(outcome.spread())
            .ratios(alone.map(|alone| ("independent", alone.best / outcome.best)))
            .column("packets", scheme["packets"].clone());
        if word == "auto" {
            let chosen = &scheme["chosen"];
            row.set("chosen", chosen["how"].clone());
            row.set("predicted_s", chosen["predicted_s"].clone());
            // Every scheme with the seconds that were predicted for it.
            row.set("alternatives", chosen["alternatives"].clone());
        }
        sheet.push(row)?;
    }
    Ok(())
}
