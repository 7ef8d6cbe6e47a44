//! `pario bench advise`: whether advice is good, and whether the cost model ranks strategies as measurement does.
//!
//! ```text
//!  layout/WORKLOAD/read|write    advised layout against the best of all candidates, all taking turns; `best`: above
//!                                0.83 is within 1.2 times its time
//!  ways/WORKLOAD/read            direct, by message, sieved on one layout: columns say what was predicted and measured
//!  sor/servers=N                 row bands with halos, one host per server: share of bytes at the nearest server
//!                                before and after one observed run, `advise --apply`, and with a template on another file
//! ```
//!
//! A workload is observed once on the layout that a file gets without knowledge. Candidates are the best of every
//! kind by the model and others spread over its ranking. Every layout is a file of its own with the same bytes, and
//! what is read is compared.

use std::cell::RefCell;
use std::path::PathBuf;

use advise::cost::{Access, Home, Machine, Op, Process, StoreKind, Way, alternatives};
use advise::recommend::{Advice, Kind};
use clap::Args;
use client::{Client, ConnectOptions, FileAdvice};
use layout::{ArrayType, FileOffset, Layout, View};
use serde_json::{Map, Value, json};

use super::contest::{Contestant, Effort, Outcome, contest};
use super::hosts::Hosts;
use super::site::{Site, Spread, Wanted};
use super::table::Table;
use super::workers::{Path, Team};
use super::{Report, Row, machine};
use crate::calibrate::{local, network};
use crate::commands::connection::refused;
use crate::commands::{Error, output};

/// Arguments of `pario bench advise`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Write the report as JSON to this file; without a file to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Only workloads, or kinds of rows (layout, ways, sor), whose names contain one of these
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,

    /// Small arrays, to see that everything runs
    #[arg(long)]
    tiny: bool,

    /// Turns per contestant, at least 7
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u64).range(7..))]
    turns: u64,
}

/// Processes and servers of the workloads on one host.
const RANKS: usize = 4;
const SERVERS: usize = 4;
/// Candidates that are measured.
const MOST_CANDIDATES: usize = 9;
/// Predictions that differ by less are a tie.
const TIE: f64 = 0.10;

/// What processes do.
struct Workload {
    name: &'static str,
    /// With `N` for the extent.
    array: &'static str,
    /// Views of rank `K`, one phase after the other.
    views: &'static [&'static str],
    op: &'static str,
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "rows",
        array: "f32[N,N]",
        views: &["(block, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "columns",
        array: "f32[N,N]",
        views: &["(*, block) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "blocks",
        array: "f32[N,N]",
        views: &["(block, block) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "rows-written",
        array: "f32[N,N]",
        views: &["(block, *) onto 4 [K]"],
        op: "write",
    },
    Workload {
        name: "columns-written",
        array: "f32[N,N]",
        views: &["(*, block) onto 4 [K]"],
        op: "write",
    },
    Workload {
        name: "blocks-written",
        array: "f32[N,N]",
        views: &["(block, block) onto 2x2 [K]"],
        op: "write",
    },
    Workload {
        name: "planes-i",
        array: "f32[M,M,M]",
        views: &["(block, *, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "planes-j",
        array: "f32[M,M,M]",
        views: &["(*, block, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "planes-k",
        array: "f32[M,M,M]",
        views: &["(*, *, block) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "pencils-ij",
        array: "f32[M,M,M]",
        views: &["(block, block, *) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "pencils-ik",
        array: "f32[M,M,M]",
        views: &["(block, *, block) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "pencils-jk",
        array: "f32[M,M,M]",
        views: &["(*, block, block) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "cyclic-rows",
        array: "f32[N,N]",
        views: &["(cyclic, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "cyclic-columns",
        array: "f32[N,N]",
        views: &["(*, cyclic(16)) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "block-cyclic",
        array: "f32[N,N]",
        views: &["(cyclic(8), cyclic(64)) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "block-cyclic-written",
        array: "f32[N,N]",
        views: &["(cyclic(16), cyclic(64)) onto 2x2 [K]"],
        op: "write",
    },
    Workload {
        name: "nested-strides",
        array: "f32[N,N]",
        views: &["(cyclic(4), cyclic(32)) onto 4x1 [K]"],
        op: "read",
    },
    Workload {
        name: "strided-bytes",
        array: "f32[N,N]",
        views: &["striped(4KiB) over 4 [K]"],
        op: "read",
    },
    Workload {
        name: "irregular",
        array: "f32[N,N]",
        views: &["blocks(16KiB: IRREGULAR) over 4 [K]"],
        op: "read",
    },
    Workload {
        name: "uneven",
        array: "f32[N,N]",
        views: &["(gen_block(UNEVEN), *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "rows-and-columns",
        array: "f32[N,N]",
        views: &["(block, *) onto 4 [K]", "(*, block) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "blocks-and-rows",
        array: "f32[N,N]",
        views: &["(block, block) onto 2x2 [K]", "(block, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "everything",
        array: "f32[N,N]",
        views: &["whole [0]"],
        op: "read",
    },
];

impl Workload {
    fn array(&self, tiny: bool) -> String {
        let (n, m) = if tiny { ("256", "40") } else { ("2048", "160") };
        self.array.replace('N', n).replace('M', m)
    }

    fn view(&self, phase: usize, rank: usize, tiny: bool) -> String {
        let n: u64 = if tiny { 256 } else { 2048 };
        let uneven = format!("{},{},{},{}", n / 2, n / 4, n / 8, n / 8);
        let view = self.views[phase];
        let view = match view.contains("IRREGULAR") {
            true => view.replace("IRREGULAR", &irregular(n * n * 4 / (16 << 10))),
            false => view.to_owned(),
        };
        view.replace("UNEVEN", &uneven)
            .replace("[K]", &format!("[{rank}]"))
    }
}

/// Owners in no order, the same every time.
fn irregular(blocks: u64) -> String {
    let mut state = 12345_u64;
    let owners = (0..blocks.max(4)).map(|i| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        // Everybody has one.
        if i < 4 { i } else { state >> 62 }
    });
    owners.map(|o| o.to_string()).collect::<Vec<_>>().join(",")
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments) -> Result<Report, Error> {
    let mut machine = machine::facts();
    machine.insert(
        "statistic".into(),
        json!(format!("best of {}", arguments.turns)),
    );
    let aside = arguments.json.as_deref() == Some(std::path::Path::new("-"));
    let mut run = Run {
        arguments,
        table: Table::new(aside, "GB/s"),
        rows: Vec::new(),
        agreed: (0, 0),
        machine: match arguments.tiny {
            true => Machine::HOST,
            false => calibrated()?,
        },
    };
    let is_wanted = |kind: &str, name: &str| {
        let only = &arguments.only;
        only.is_empty()
            || only
                .iter()
                .any(|o| kind.contains(o.as_str()) || name.contains(o.as_str()))
    };
    for workload in WORKLOADS {
        if is_wanted("layout", workload.name) {
            run.layouts(workload)?;
        }
    }
    for workload in WORKLOADS
        .iter()
        .filter(|w| w.op == "read" && w.views.len() == 1)
    {
        if is_wanted("ways", workload.name) {
            run.ways(workload)?;
        }
    }
    if is_wanted("sor", "sor") {
        match Hosts::new(&[None]) {
            Ok(_) => run.sor()?,
            Err(why) => output::note(&format!("the row between hosts is absent: {why}")),
        }
    }
    let within: Vec<f64> = run.rows.iter().filter_map(|r| r.ratio("best")).collect();
    if !within.is_empty() {
        let good = within.iter().filter(|r| **r >= 1.0 / 1.2).count();
        output::note(&format!(
            "advised within 1.2x of the best: {good} of {} workloads",
            within.len()
        ));
    }
    if run.agreed.1 > 0 {
        output::note(&format!(
            "strategies ranked as measured: {} of {} pairs",
            run.agreed.0, run.agreed.1
        ));
    }
    Ok(Report {
        bench: "advise",
        machine,
        rows: run.rows,
    })
}

struct Run<'a> {
    arguments: &'a Arguments,
    table: Table,
    rows: Vec<Row>,
    /// Pairs of strategies that were ranked as measured, and all.
    agreed: (u64, u64),
    /// What things cost here.
    machine: Machine,
}

/// What things cost on this host, with servers as the workloads have them.
fn calibrated() -> Result<Machine, Error> {
    let site = Site::start(&Wanted::memory(SERVERS, 256 << 20), None)?;
    let client = connect(&site)?;
    let mut machine = local::measure()?.machine;
    network::measure(&client, &mut machine)?;
    Ok(machine)
}

/// A layout that is measured: a file that all teams have open.
struct Measured<'a> {
    teams: &'a [RefCell<Team>],
    name: String,
    op: &'static str,
}

impl Contestant for Measured<'_> {
    fn turn(&mut self, passes: u64) -> Option<f64> {
        let mut sum = 0.0;
        for _ in 0..passes {
            for team in self.teams {
                let mut team = team.borrow_mut();
                let stamp = team.stamp();
                let order = json!({ "do": self.op, "name": self.name, "stamp": stamp });
                match team.every(&order) {
                    Ok(round) => sum += round.ns.max(1.0),
                    Err(error) => {
                        output::note(&format!("{}: {error}", self.name));
                        return None;
                    }
                }
            }
        }
        Some(sum)
    }
}

fn connect(site: &Site) -> Result<Client, Error> {
    let mut options = ConnectOptions::default().with_profile(false);
    if let Some(secret) = &site.secret {
        options = options.with_secret_file(secret).map_err(refused)?;
    }
    let url = site.url().parse().map_err(|e| format!("{e}"))?;
    Client::connect(&url, options).map_err(refused)
}

fn row(case: String, bytes: u64, outcome: Outcome) -> Row {
    Row {
        case,
        value: bytes as f64 / outcome.best,
        unit: "GB/s",
        spread: outcome.spread(),
        first: None,
        columns: Map::new(),
        ratios: Vec::new(),
    }
}

/// The best of every kind, and others spread over the ranking.
fn to_measure(advice: &FileAdvice) -> Vec<Advice> {
    let ranked = &advice.advised.ranked;
    let mut chosen: Vec<&Advice> = ranked.first().into_iter().collect();
    let kinds = [
        Kind::Current,
        Kind::Rule,
        Kind::Views,
        Kind::Grid,
        Kind::Blocks,
        Kind::Striped,
        Kind::Cyclic,
    ];
    for kind in kinds {
        chosen.extend(ranked.iter().find(|a| a.kind == kind));
    }
    for i in 1..4 {
        chosen.extend(ranked.get(i * ranked.len() / 4));
    }
    let mut found: Vec<Advice> = Vec::new();
    for advice in chosen {
        // What cannot be written in a line of the table of a service is of no use to anybody.
        if found.iter().all(|f| f.layout != advice.layout) && found.len() < MOST_CANDIDATES {
            found.push(advice.clone());
        }
    }
    found
}

impl Run<'_> {
    fn push(&mut self, row: Row) -> Result<(), Error> {
        self.table.row(&row)?;
        self.rows.push(row);
        Ok(())
    }

    fn effort(&self) -> Effort {
        Effort {
            turns: self.arguments.turns as usize,
            turn_ns: if self.arguments.tiny { 0.0 } else { 5e6 },
        }
    }

    /// Teams, one for each phase of a workload, with their parts.
    fn teams(
        &self,
        site: &Site,
        workload: &Workload,
        path: Path,
        ranks: usize,
    ) -> Result<(Vec<RefCell<Team>>, u64), Error> {
        let tiny = self.arguments.tiny;
        let mut teams = Vec::new();
        let mut bytes = 0;
        for phase in 0..workload.views.len() {
            let mut team = Team::start(site, ranks, path, None)?;
            let round = team.all(|rank| {
                json!({ "do": "part", "array": workload.array(tiny), "view": workload.view(phase, rank, tiny), "salt": 5 })
            })?;
            bytes += round
                .answers
                .iter()
                .filter_map(|a| a["bytes"].as_u64())
                .sum::<u64>();
            teams.push(RefCell::new(team));
        }
        Ok((teams, bytes))
    }

    /// Lets all teams write and open a file with a layout.
    fn file(
        &self,
        teams: &[RefCell<Team>],
        name: &str,
        layout: &str,
        hint: Option<&str>,
    ) -> Result<(), Error> {
        let path = format!("/{name}");
        for (i, team) in teams.iter().enumerate() {
            let mut team = team.borrow_mut();
            let mut order = json!({ "do": "open", "name": name, "path": path, "layout": layout, "create": i == 0 });
            if let Some(strategy) = hint {
                order["strategy"] = json!(strategy);
            }
            if i == 0 {
                // One creates, the others find it.
                team.all(|rank| match rank {
                    0 => order.clone(),
                    _ => json!({ "do": "ready" }),
                })?;
            }
            order["create"] = json!(false);
            team.every(&order)?;
            team.every(&json!({ "do": "write", "name": name, "stamp": 0 }))?;
        }
        Ok(())
    }

    fn layouts(&mut self, workload: &Workload) -> Result<(), Error> {
        let tiny = self.arguments.tiny;
        let array = workload.array(tiny);
        let shape: ArrayType = array.parse()?;
        let site = Site::start(
            &Wanted::memory(SERVERS, shape.bytes() * (MOST_CANDIDATES as u64 + 3)),
            None,
        )?;
        let client = connect(&site)?;
        // Observed once, on what it would have without knowledge.
        let first = match shape.dimensions() {
            3 => format!("(block, *, *) onto {SERVERS}"),
            _ => format!("(block, *) onto {SERVERS}"),
        };
        let (observers, _) = self.teams(&site, workload, Path::Direct, RANKS)?;
        self.file(&observers, "observed", &first, None)?;
        for team in &observers {
            let mut team = team.borrow_mut();
            team.every(&json!({ "do": "close", "name": "observed" }))?;
        }
        client.clear_profile("/observed").map_err(refused)?;
        for team in &observers {
            let mut team = team.borrow_mut();
            team.every(&json!({ "do": "open", "name": "observed", "path": "/observed", "layout": "", "create": false }))?;
            let stamp = team.stamp();
            team.every(&json!({ "do": workload.op, "name": "observed", "stamp": stamp }))?;
            team.every(&json!({ "do": "close", "name": "observed" }))?;
        }
        drop(observers);
        let advice = client
            .advise_on(
                "/observed",
                Some(std::time::Duration::from_secs(5)),
                &self.machine,
            )
            .map_err(refused)?;
        let candidates = to_measure(&advice);
        let (teams, bytes) = self.teams(&site, workload, Path::Direct, RANKS)?;
        for (i, candidate) in candidates.iter().enumerate() {
            self.file(&teams, &format!("f{i}"), &candidate.layout, None)?;
        }
        let mut measured: Vec<Measured<'_>> = (0..candidates.len())
            .map(|i| Measured {
                teams: &teams,
                name: format!("f{i}"),
                op: workload.op,
            })
            .collect();
        let mut contestants: Vec<&mut dyn Contestant> = measured
            .iter_mut()
            .map(|m| m as &mut dyn Contestant)
            .collect();
        let outcomes = contest(self.effort(), &mut contestants);
        let times: Vec<f64> = outcomes
            .iter()
            .map(|o| o.map_or(f64::INFINITY, |o| o.best))
            .collect();
        let advised = outcomes[0].ok_or("the advised layout did not run")?;
        let best = times.iter().copied().fold(f64::INFINITY, f64::min);
        let at = times.iter().position(|t| *t == best).unwrap_or(0);
        let mut row = row(
            format!("layout/{}/{}", workload.name, workload.op),
            bytes,
            advised,
        );
        row.ratios.push(("best", best / advised.best));
        let current = candidates.iter().position(|c| c.kind == Kind::Current);
        if let Some(current) = current.and_then(|i| outcomes[i]) {
            row.ratios.push(("current", current.best / advised.best));
        }
        row.columns
            .insert("advised".into(), json!(short(&candidates[0].layout)));
        row.columns
            .insert("best".into(), json!(short(&candidates[at].layout)));
        row.columns
            .insert("candidates".into(), json!(candidates.len()));
        row.columns
            .insert("judged".into(), json!(advice.advised.judged));
        row.columns.insert(
            "searched_ms".into(),
            json!((advice.searched.as_secs_f64() * 1e4).round() / 10.0),
        );
        let list: Vec<Value> = candidates
            .iter()
            .zip(&times)
            .map(|(c, t)| json!({"layout": short(&c.layout), "predicted_us": (c.seconds * 1e6).round(), "measured_us": (t / 1e3).round()}))
            .collect();
        row.columns.insert("measured".into(), json!(list));
        self.push(row)
    }

    /// Direct, by message and sieved on one layout.
    fn ways(&mut self, workload: &Workload) -> Result<(), Error> {
        let tiny = self.arguments.tiny;
        let array: ArrayType = workload.array(tiny).parse()?;
        let layout = match array.dimensions() {
            3 => format!("(block, *, *) onto {SERVERS}"),
            _ => format!("(block, *) onto {SERVERS}"),
        };
        let site = Site::start(&Wanted::memory(SERVERS, array.bytes() * 4), None)?;
        let (direct, bytes) = self.teams(&site, workload, Path::Direct, RANKS)?;
        let (socket, _) = self.teams(&site, workload, Path::Socket, RANKS)?;
        self.file(&direct, "direct", &layout, None)?;
        self.file(&socket, "message", &layout, None)?;
        let mut measured = vec![
            Measured {
                teams: &direct,
                name: "direct".into(),
                op: "read",
            },
            Measured {
                teams: &socket,
                name: "message".into(),
                op: "read",
            },
        ];
        // Only views with gaps are sieved.
        let applied: Layout = layout.parse()?;
        let partition = {
            let elements = applied.on_array(&array)?.elements()?;
            layout::Partition::from_start(layout::Pattern::new(elements.period, elements.sets)?)
        };
        let views: Vec<View> = (0..RANKS)
            .map(|rank| {
                let view: Layout = workload.view(0, rank, tiny).parse()?;
                let applied = match view.on_array(&array) {
                    Ok(applied) => applied,
                    Err(_) => view.on_bytes()?,
                };
                Ok(View::new(
                    FileOffset(0),
                    applied.period(),
                    applied.element(0)?,
                )?)
            })
            .collect::<Result<_, Error>>()?;
        let processes: Vec<Process> = views
            .iter()
            .map(|view| Process {
                hi: view.len_within(array.bytes()),
                view: view.clone(),
                lo: 0,
                near: Some(0),
            })
            .collect();
        let homes: Vec<usize> = (0..partition.len()).collect();
        let hosts = vec![0; SERVERS];
        let home = Home {
            partition: &partition,
            servers: &homes,
            server_count: SERVERS,
            hosts: &hosts,
        };
        let access = Access {
            op: Op::Read,
            processes: &processes,
            is_collective: false,
            store: StoreKind::Memory,
        };
        let ways = alternatives(&self.machine, &access, &home);
        let predicted =
            |is_it: fn(&Way) -> bool| ways.iter().find(|p| is_it(&p.way)).map(|p| p.seconds);
        let mut said = vec![
            predicted(|w| matches!(w, Way::Direct)),
            predicted(|w| matches!(w, Way::Message | Way::Packed)),
        ];
        if let Some(sieved) = predicted(|w| matches!(w, Way::Sieved { .. })) {
            self.file(&socket, "sieved", &layout, Some("sieving"))?;
            measured.push(Measured {
                teams: &socket,
                name: "sieved".into(),
                op: "read",
            });
            said.push(Some(sieved));
        }
        let mut contestants: Vec<&mut dyn Contestant> = measured
            .iter_mut()
            .map(|m| m as &mut dyn Contestant)
            .collect();
        let outcomes = contest(self.effort(), &mut contestants);
        let names: Vec<String> = measured.iter().map(|m| m.name.clone()).collect();
        let (mut agreed, mut pairs) = (0, 0);
        for i in 0..names.len() {
            for j in i + 1..names.len() {
                let (Some(a), Some(b)) = (said[i], said[j]) else {
                    continue;
                };
                let (Some(x), Some(y)) = (outcomes[i], outcomes[j]) else {
                    continue;
                };
                pairs += 1;
                let is_tie = (a - b).abs() <= TIE * a.max(b);
                if is_tie || (a < b) == (x.best < y.best) {
                    agreed += 1;
                }
            }
        }
        self.agreed.0 += agreed;
        self.agreed.1 += pairs;
        let best = outcomes
            .iter()
            .flatten()
            .map(|o| o.best)
            .fold(f64::INFINITY, f64::min);
        let first = outcomes[0].ok_or("direct access did not run")?;
        let mut row = row(format!("ways/{}/read", workload.name), bytes, first);
        row.ratios
            .push(("agrees", agreed as f64 / (pairs as f64).max(1.0)));
        row.ratios.push(("fastest", best / first.best));
        for (i, name) in names.iter().enumerate() {
            let us = |s: f64| (s * 1e6).round();
            row.columns
                .insert(format!("{name}_predicted_us"), json!(said[i].map(us)));
            row.columns.insert(
                format!("{name}_us"),
                json!(outcomes[i].map(|o| (o.best / 1e3).round())),
            );
        }
        row.columns.insert("pairs".into(), json!(pairs));
        self.push(row)
    }
}

/// Layouts can be long.
fn short(layout: &str) -> String {
    crate::subject::cut_in_the_middle(layout, 60)
}

/// Hosts of the loop of source 003.
const NODES: usize = 4;

impl Run<'_> {
    /// SOR: every node reads its band of rows and one row more on each side, again and again.
    fn sor(&mut self) -> Result<(), Error> {
        let (rows, columns) = if self.arguments.tiny {
            (200_u64, 512_u64)
        } else {
            (2000, 1000)
        };
        let rate = Some(if self.arguments.tiny { 1000 } else { 400 });
        let mut rates = vec![rate; NODES];
        rates.push(None);
        let hosts = Hosts::new(&rates)?;
        let spread = Spread {
            hosts: &hosts,
            meta: NODES,
            servers: (0..NODES).collect(),
        };
        let array = format!("f32[{rows},{columns}]");
        let bytes = rows * columns * 4;
        let site = Site::start(&Wanted::memory(NODES, bytes * 8), Some(&spread))?;
        let cli = Inside {
            hosts: &hosts,
            site: &site,
        };
        let places: Vec<usize> = (0..NODES).collect();
        let band = |rank: usize| {
            let (rank, n) = (rank as u64, NODES as u64);
            let first = (rank * rows / n).saturating_sub(1);
            let end = ((rank + 1) * rows / n + 1).min(rows);
            format!("slice[{first}:{end}, :]")
        };
        let start = || -> Result<Team, Error> {
            let mut team = Team::start(&site, NODES, Path::Socket, Some((&hosts, &places)))?;
            team.all(
                |rank| json!({ "do": "part", "array": array, "view": band(rank), "salt": 5 }),
            )?;
            Ok(team)
        };
        let open = |team: &mut Team, file: &str, layout: &str, create: bool| -> Result<(), Error> {
            let order = |create: bool| json!({ "do": "open", "name": file, "path": format!("/{file}"), "layout": layout, "create": create });
            if create {
                team.all(|rank| {
                    if rank == 0 {
                        order(true)
                    } else {
                        json!({ "do": "ready" })
                    }
                })?;
            }
            team.every(&order(false))?;
            Ok(())
        };
        // A run of a few rounds, and the share of its bytes that is at the nearest server.
        let observe = |team: &mut Team, file: &str| -> Result<f64, Error> {
            let path = format!("/{file}");
            team.every(&json!({ "do": "close", "name": file }))?;
            cli.pario(&["profile", &path, "--clear"])?;
            open(team, file, "", false)?;
            for _ in 0..3 {
                team.every(&json!({ "do": "read", "name": file }))?;
            }
            team.every(&json!({ "do": "close", "name": file }))?;
            let found: Value = serde_json::from_str(&cli.pario(&["profile", &path, "--json"])?)?;
            open(team, file, "", false)?;
            Ok(found["near_share"].as_f64().unwrap_or(0.0))
        };
        let apply = |file: &str| -> Result<String, Error> {
            let path = format!("/{file}");
            let said = cli.pario(&["advise", &path, "--apply", "--force", "--json"])?;
            let found: Value = serde_json::from_str(&said)?;
            Ok(found["moved"].as_str().unwrap_or("not moved").to_owned())
        };
        let mut team = start()?;
        let interleaved = format!("striped(4KiB) over {NODES}");
        for file in ["sor", "before", "other"] {
            open(&mut team, file, &interleaved, true)?;
            team.every(&json!({ "do": "write", "name": file, "stamp": 0 }))?;
        }
        let before = observe(&mut team, "sor")?;
        let template = site.scratch("sor.template").display().to_string();
        cli.pario(&["profile", "/sor", "--export", &template])?;
        // One observed run is enough to move it.
        let layout = apply("sor")?;
        let after = observe(&mut team, "sor")?;
        // The template of the first file, for another that nobody has learned anything about.
        cli.pario(&["profile", "/other", "--import", &template])?;
        apply("other")?;
        let templated = observe(&mut team, "other")?;
        let teams = [RefCell::new(team)];
        let mut measured = [
            Measured {
                teams: &teams,
                name: "sor".into(),
                op: "read",
            },
            Measured {
                teams: &teams,
                name: "before".into(),
                op: "read",
            },
        ];
        let mut contestants: Vec<&mut dyn Contestant> = measured
            .iter_mut()
            .map(|m| m as &mut dyn Contestant)
            .collect();
        let effort = Effort {
            turn_ns: 0.0,
            ..self.effort()
        };
        let outcomes = contest(effort, &mut contestants);
        let (now, then) = (
            outcomes[0].ok_or("it did not run")?,
            outcomes[1].ok_or("it did not run")?,
        );
        let mut row = row(format!("sor/servers={NODES}"), bytes, now);
        row.ratios.push(("before", then.best / now.best));
        let three = |share: f64| (share * 1000.0).round() / 1000.0;
        row.columns
            .insert("near_before".into(), json!(three(before)));
        row.columns.insert("near_after".into(), json!(three(after)));
        row.columns
            .insert("near_template".into(), json!(three(templated)));
        row.columns.insert("layout".into(), json!(short(&layout)));
        self.push(row)
    }
}

/// Commands on the host of the metadata manager: this one reaches none of them.
struct Inside<'a> {
    hosts: &'a Hosts,
    site: &'a Site,
}

impl Inside<'_> {
    fn pario(&self, arguments: &[&str]) -> Result<String, Error> {
        let program = std::env::current_exe()?;
        let mut command = self.hosts.command(NODES, &program);
        command.args(["--url", self.site.url()]).args(arguments);
        if let Some(secret) = &self.site.secret {
            command.env("PARIO_SECRET", secret);
        }
        let output = command.stdin(std::process::Stdio::null()).output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("pario {}: {}", arguments.join(" "), said.trim()).into())
    }
}
