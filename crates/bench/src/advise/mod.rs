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
//! kind by the model and others spread over its ranking. Every layout has several files of its own with the same bytes,
//! one turn each, and the median of all turns counts; what is read is compared. The advised layout takes part twice:
//! `again`, the time of its double over its own, is what two contestants that are alike differ by.

use std::cell::RefCell;

use advise::cost::{Access, Home, Machine, Op, Process, StoreKind, Way, alternatives};
use advise::recommend::{Advice, Kind};
use calibrate::{local, network};
use clap::Args;
use client::{Client, ConnectOptions, FileAdvice};
use console::{Error, output, refused};
use layout::{ArrayType, FileOffset, Layout, View};
use serde_json::{Value, json};
use testkit::hosts::Hosts;

mod sor;
mod workloads;

use super::contest::{Contestant, Effort, contest_of};
use super::site::{self, ServiceSpec, Site};
use super::workers::{Path, Team};
use super::{Row, Sheet, digits};
use workloads::{WORKLOADS, Workload};

/// Arguments of `pario bench advise`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Only rows whose kind (layout, ways, sor) and workload contain one of these: ways, planes, ways/planes-k
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,

    /// Small arrays, to see that everything runs
    #[arg(long)]
    tiny: bool,

    /// Turns per contestant, at least 7 [default: 21, with --quick 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(7..))]
    turns: Option<u64>,
}

/// Processes and servers of the workloads on one host.
const RANKS: usize = 4;
const SERVERS: usize = 4;
/// Candidates that are measured.
const MOST_CANDIDATES: usize = 9;
/// Files of every layout. Where the pages of one happen to lie makes a difference of up to a fifth between files
/// that are laid out alike.
const FILES: usize = 3;
/// Predictions that differ by less are a tie.
const TIE: f64 = 0.10;

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let turns = arguments
        .turns
        .unwrap_or(if sheet.is_quick() { 7 } else { 21 });
    let statistic =
        format!("layouts: median of {turns} turns on {FILES} files each; strategies: best");
    sheet.begin("advise", "GB/s", statistic);
    let is_tiny = arguments.tiny || sheet.is_quick();
    let mut run = Run {
        is_tiny,
        effort: Effort::new(turns as usize, if is_tiny { 0.0 } else { 1e7 }),
        agreed: (0, 0),
        machine: match is_tiny {
            true => Machine::HOST,
            false => calibrated()?,
        },
        sheet,
    };
    let is_wanted = |kind: &str, name: &str| {
        let (only, name) = (&arguments.only, format!("{kind}/{name}"));
        only.is_empty() || only.iter().any(|o| name.contains(o.as_str()))
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
        match Hosts::with_rates(&[None]) {
            Ok(_) => run.sor()?,
            Err(why) => output::note(&format!("the row between hosts is absent: {why}")),
        }
    }
    let within: Vec<f64> = run
        .sheet
        .rows
        .iter()
        .filter_map(|r| r.ratio("best"))
        .collect();
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
    Ok(())
}

struct Run<'a> {
    is_tiny: bool,
    effort: Effort,
    sheet: &'a mut Sheet,
    /// Pairs of strategies that were ranked as measured, and all.
    agreed: (u64, u64),
    /// What things cost here.
    machine: Machine,
}

/// What things cost on this host, with servers as the workloads have them.
fn calibrated() -> Result<Machine, Error> {
    let site = Site::start(&ServiceSpec::memory(SERVERS, 256 << 20), None)?;
    let client = connect(&site)?;
    let mut machine = local::measure()?.machine;
    network::measure(&client, &mut machine)?;
    Ok(machine)
}

/// A layout that is measured: files that all teams have open, one turn each.
struct MeasuredLayout<'a> {
    teams: &'a [RefCell<Team>],
    names: Vec<String>,
    op: &'static str,
    /// Whose turn it is.
    next: usize,
}

impl<'a> MeasuredLayout<'a> {
    fn new(teams: &'a [RefCell<Team>], names: Vec<String>, op: &'static str) -> MeasuredLayout<'a> {
        MeasuredLayout {
            teams,
            names,
            op,
            next: 0,
        }
    }
}

impl Contestant for MeasuredLayout<'_> {
    fn turn(&mut self, passes: u64) -> Option<f64> {
        let mut sum = 0.0;
        // A single pass warms up for the turn that follows, on the same file.
        self.next += usize::from(passes == 1);
        let name = self.names[self.next % self.names.len()].clone();
        for team in self.teams {
            let mut team = team.borrow_mut();
            let mut order =
                json!({ "what": self.op, "name": name, "stamp": team.stamp(), "times": passes });
            // One after the other for all: there are more processes than processors, and who still prepares
            // or already compares would do so in the time of those who access.
            for step in ["prepare", "timed", "compare"] {
                order["do"] = json!(step);
                match team.every(&order) {
                    Ok(round) => sum += round.ns,
                    Err(error) => {
                        output::note(&format!("{name}: {error}"));
                        return None;
                    }
                }
            }
        }
        Some(sum.max(1.0))
    }
}

fn connect(site: &Site) -> Result<Client, Error> {
    let mut options = ConnectOptions::default().with_profile(false);
    if let Some(secret) = &site.secret {
        options = options.with_secret_file(secret).map_err(refused)?;
    }
    site::connect(site.url(), options)
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
    /// Teams, one for each phase of a workload, with their parts.
    fn teams(
        &self,
        site: &Site,
        workload: &Workload,
        path: Path,
        ranks: usize,
    ) -> Result<(Vec<RefCell<Team>>, u64), Error> {
        let tiny = self.is_tiny;
        let mut teams = Vec::new();
        let mut bytes = 0;
        for phase in 0..workload.views.len() {
            let mut team = Team::start(site, ranks, path, None)?;
            let view = |rank| workload.view(phase, rank, tiny);
            bytes += team
                .parts(&workload.array(tiny), 5, view)?
                .iter()
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
            team.fill(name)?;
        }
        Ok(())
    }

    fn layouts(&mut self, workload: &Workload) -> Result<(), Error> {
        let tiny = self.is_tiny;
        let array = workload.array(tiny);
        let shape: ArrayType = array.parse()?;
        let site = Site::start(
            &ServiceSpec::memory(
                SERVERS,
                shape.bytes() * (FILES * (MOST_CANDIDATES + 1) + 2) as u64,
            ),
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
            team.open("observed", "/observed", "")?;
            match workload.op {
                "write" => team.write("observed")?,
                _ => team.read("observed")?,
            };
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
        // The advised layout once more, as files of its own: what two that are alike differ by is noise.
        let double = candidates.len();
        let layouts = candidates.iter().chain(candidates.first());
        let mut names = vec![Vec::new(); double + 1];
        let layouts: Vec<&str> = layouts.map(|c| c.layout.as_str()).collect();
        for file in 0..FILES {
            for (i, layout) in layouts.iter().enumerate() {
                let name = format!("f{i}-{file}");
                self.file(&teams, &name, layout, None)?;
                names[i].push(name);
            }
        }
        let one = |names| MeasuredLayout::new(&teams, names, workload.op);
        let mut measured: Vec<MeasuredLayout<'_>> = names.into_iter().map(one).collect();
        let outcomes = contest_of(self.effort, &mut measured);
        let times: Vec<f64> = outcomes[..double]
            .iter()
            .map(|o| o.map_or(f64::INFINITY, |o| o.median))
            .collect();
        let advised = outcomes[0].ok_or("the advised layout did not run")?;
        let again = outcomes[double].ok_or("the advised layout did not run twice")?;
        let best = times.iter().copied().fold(f64::INFINITY, f64::min);
        let at = times.iter().position(|t| *t == best).unwrap_or(0);
        let case = format!("layout/{}/{}", workload.name, workload.op);
        let mut row = Row::rate(case, bytes, advised);
        row.value = bytes as f64 / advised.median;
        row.ratios.push(("best", best / advised.median));
        let current = candidates.iter().position(|c| c.kind == Kind::Current);
        if let Some(current) = current.and_then(|i| outcomes[i]) {
            row.ratios
                .push(("current", current.median / advised.median));
        }
        row.ratios.push(("again", again.median / advised.median));
        row.set("advised", short(&candidates[0].layout));
        row.set("best", short(&candidates[at].layout));
        row.set("candidates", candidates.len());
        row.set("judged", json!(advice.advised.judged));
        let searched = advice.searched.as_secs_f64();
        row.set("searched_ms", digits(searched * 1e3, 1));
        let list: Vec<Value> = candidates
            .iter()
            .zip(&times)
            .map(|(c, t)| json!({"layout": short(&c.layout), "predicted_us": us(c.seconds), "measured_us": us(t / 1e9)}))
            .collect();
        row.set("measured", list);
        self.sheet.push(row)
    }

    /// Direct, by message and sieved on one layout.
    fn ways(&mut self, workload: &Workload) -> Result<(), Error> {
        let tiny = self.is_tiny;
        let array: ArrayType = workload.array(tiny).parse()?;
        let layout = match array.dimensions() {
            3 => format!("(block, *, *) onto {SERVERS}"),
            _ => format!("(block, *) onto {SERVERS}"),
        };
        let site = Site::start(&ServiceSpec::memory(SERVERS, array.bytes() * 4), None)?;
        let (direct, bytes) = self.teams(&site, workload, Path::Direct, RANKS)?;
        let (socket, _) = self.teams(&site, workload, Path::Socket, RANKS)?;
        self.file(&direct, "direct", &layout, None)?;
        self.file(&socket, "message", &layout, None)?;
        let mut measured = vec![
            MeasuredLayout::new(&direct, vec!["direct".into()], "read"),
            MeasuredLayout::new(&socket, vec!["message".into()], "read"),
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
            measured.push(MeasuredLayout::new(&socket, vec!["sieved".into()], "read"));
            said.push(Some(sieved));
        }
        let outcomes = contest_of(self.effort, &mut measured);
        let names: Vec<String> = measured.iter().map(|m| m.names[0].clone()).collect();
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
        let mut row = Row::rate(format!("ways/{}/read", workload.name), bytes, first);
        row.ratios
            .push(("agrees", agreed as f64 / (pairs as f64).max(1.0)));
        row.ratios.push(("fastest", best / first.best));
        for (i, name) in names.iter().enumerate() {
            row.set(&format!("{name}_predicted_us"), json!(said[i].map(us)));
            let measured = outcomes[i].map(|o| us(o.best / 1e9));
            row.set(&format!("{name}_us"), json!(measured));
        }
        row.set("pairs", pairs);
        self.sheet.push(row)
    }
}

/// Microseconds, to a nanosecond.
fn us(seconds: f64) -> f64 {
    digits(seconds * 1e6, 3)
}

/// Layouts can be long.
fn short(layout: &str) -> String {
    console::subject::cut_in_the_middle(layout, 60)
}
