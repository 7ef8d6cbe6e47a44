//! `pario bench matrix`: the experiment of the paper on mapping functions. A matrix of N x N bytes, four
//! processes that each have a block of rows, and files partitioned by columns, blocks or rows.
//!
//! ```text
//!  c|b|r / memory|disk / direct|socket / write|read / N=SIZE
//!    memcpy         the same processes copy as many bytes between two buffers of their own
//!    pwrite-tmpfs   they write (read) their quarter of a plain file in memory, in one call
//!    pwrite-ext4    the same below the temporary directory
//!  access / memory / direct / read|write / b=4096
//!    memcpy-call    one process, a copy of that size behind a function call, at the same places
//! ```
//!
//! Four I/O servers, one subfile each. All sides are warm, take turns, and repeat an access a number of
//! times per turn; what was read and what was written is compared with what has to be there. `first` is
//! the first access of fresh processes. The columns are those of the paper, of the slowest process:
//! intersecting view and subfiles, paid once (`t_i`), finding the bytes of an access (`t_m`),
//! gathering or scattering at the client (`t_g`), the whole access (`t_w`), the network (`t_n`), and
//! scattering or gathering at the servers (`t_s`), in microseconds; `contention` is the largest number of
//! processes that need one server. By direct access the client does all copying, which is `t_g`.

use std::cell::RefCell;

use clap::Args;
use serde_json::{Map, Value, json};

use super::contest::{Contestant, Effort, Outcome, contest};
use super::flags::{Filter, ReportTo};
use super::site::{SharedFile, Site, Store, Wanted};
use super::table::{Lines, Table};
use super::workers::{Path, Rounds, Team, paths};
use super::{Report, Row, machine};
use console::Error;

const PROCESSES: usize = 4;
const SIZES: [u64; 4] = [256, 1024, 4096, 16384];
/// Bytes of a small access.
const SMALL: u64 = 4096;

/// Arguments of `pario bench matrix`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) report: ReportTo,

    #[command(flatten)]
    filter: Filter,

    /// Sizes N of the matrix, separated by commas
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_values_t = SIZES)]
    pub(crate) sizes: Vec<u64>,

    /// Shorter turns
    #[arg(long)]
    pub(crate) quick: bool,
}

/// How the file is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Physical {
    Columns,
    Blocks,
    Rows,
}

impl Physical {
    const ALL: [Physical; 3] = [Physical::Columns, Physical::Blocks, Physical::Rows];

    fn word(self) -> &'static str {
        match self {
            Physical::Columns => "c",
            Physical::Blocks => "b",
            Physical::Rows => "r",
        }
    }

    fn layout(self) -> &'static str {
        match self {
            Physical::Columns => "(*, block) onto 4",
            Physical::Blocks => "(block, block) onto 2x2",
            Physical::Rows => "(block, *) onto 4",
        }
    }
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments) -> Result<Report, Error> {
    for &n in &arguments.sizes {
        if n == 0 || n > 65536 || !n.is_multiple_of(4) {
            return Err(format!("--sizes: {n} is not a multiple of 4 up to 65536").into());
        }
    }
    let (turns, turn_ns) = match arguments.quick {
        true => (7, 5e6),
        false => (9, 3e7),
    };
    let effort = Effort { turns, turn_ns };
    let mut facts = machine::facts();
    facts.insert("statistic".to_owned(), json!(format!("best of {turns}")));
    let aside = arguments.report.is_on_stdout();
    let mut table = Table::new(aside, "GB/s");
    let mut rows = Vec::new();
    let paths = paths()?;
    if !paths.contains(&Path::Direct) {
        Lines { aside }.write("direct access is off or did not come about: its rows are absent")?;
    }
    for store in [Store::Memory, Store::Disk] {
        for &path in &paths {
            for &n in &arguments.sizes {
                for physical in Physical::ALL {
                    let name = |op: &str| {
                        let (p, s, w) = (physical.word(), store.word(), path.word());
                        format!("{p}/{s}/{w}/{op}/N={n}")
                    };
                    let ops: Vec<&str> = ["write", "read"]
                        .into_iter()
                        .filter(|op| arguments.filter.wants(&name(op)))
                        .collect();
                    if ops.is_empty() {
                        continue;
                    }
                    let field = Field::new(store, path, physical, n)?;
                    for op in ops {
                        let row = field.measure(&name(op), op, effort)?;
                        table.row(&row)?;
                        rows.push(row);
                    }
                }
            }
        }
    }
    if paths.contains(&Path::Direct) {
        for op in ["read", "write"] {
            let case = format!("access/memory/direct/{op}/b={SMALL}");
            if arguments.filter.wants(&case) {
                let row = small(&case, op, effort)?;
                table.row(&row)?;
                rows.push(row);
            }
        }
    }
    for line in goals(&rows) {
        Lines { aside }.write(&line)?;
    }
    Ok(Report {
        bench: "matrix",
        machine: facts,
        rows,
    })
}

/// A service with one file, and processes that use it.
struct Field {
    path: Path,
    n: u64,
    team: RefCell<Team>,
    has_tmpfs: bool,
    /// Intersecting view and subfiles, paid at the first access.
    intersected_ns: u64,
    /// The largest number of processes that need one server.
    contention: usize,
    site: Site,
}

impl Field {
    fn new(store: Store, path: Path, physical: Physical, n: u64) -> Result<Field, Error> {
        let wanted = match store {
            Store::Memory => Wanted::memory(PROCESSES, n * n),
            Store::Disk => Wanted::disk(PROCESSES),
        };
        let site = Site::start(&wanted, None)?;
        let mut team = Team::start(&site, PROCESSES, path, None)?;
        team.all(|rank| part(n, rank))?;
        let layout = physical.layout();
        let create = |create: bool| json!({"do": "open", "name": "m", "path": "/m", "create": create, "layout": layout});
        // One creates, the others find.
        for turn in 0..PROCESSES {
            team.all(|rank| match rank == turn {
                true => create(turn == 0),
                false => json!({"do": "ready"}),
            })?;
        }
        let tmpfs = SharedFile::in_memory("matrix");
        let ext4 = site.scratch("plain");
        let quarter = n * n / PROCESSES as u64;
        for (name, path) in [
            ("tmpfs", tmpfs.as_ref().map(|f| &f.0)),
            ("ext4", Some(&ext4)),
        ] {
            if let Some(path) = path {
                team.all(|rank| {
                    json!({"do": "plain", "name": name, "path": path, "at": quarter * rank as u64})
                })?;
            }
        }
        // What is measured was written before: sizes and extents are there. The first access also knows
        // its servers and what views cost; a short direct one later does not.
        let stamp = team.stamp();
        let begun = team.every(&json!({"do": "write", "name": "m", "stamp": stamp}))?;
        // All have them open: without names they go with the last of them, whatever happens.
        let _ = std::fs::remove_file(&ext4);
        Ok(Field {
            path,
            n,
            team: RefCell::new(team),
            has_tmpfs: tmpfs.is_some(),
            intersected_ns: slowest(&begun.answers, "intersect_ns"),
            contention: contention(&begun.answers),
            site,
        })
    }

    fn measure(&self, case: &str, op: &str, effort: Effort) -> Result<Row, Error> {
        let bytes = (self.n * self.n) as f64;
        let mut columns = Map::new();
        let mut team = self.team.borrow_mut();
        let stamp = team.stamp();
        team.every(&json!({"do": "write", "name": "m", "stamp": stamp}))?;
        for name in ["tmpfs", "ext4"] {
            if name == "ext4" || self.has_tmpfs {
                team.every(&json!({"do": "plain-write", "name": name, "stamp": stamp}))?;
            }
        }
        let first = self.first(op, stamp)?;
        drop(team);
        let order = |what: &str, name: &str| json!({"do": "repeat", "what": what, "name": name});
        let plain = format!("plain-{op}");
        let mut pario = Rounds::pario(&self.team, order(op, "m"));
        let mut memcpy = Rounds::yardstick(&self.team, order("copy", ""));
        let mut tmpfs = Rounds::yardstick(&self.team, order(&plain, "tmpfs"));
        let mut ext4 = Rounds::yardstick(&self.team, order(&plain, "ext4"));
        let mut contestants: Vec<&mut dyn Contestant> = vec![&mut pario, &mut memcpy];
        let mut names = vec!["memcpy"];
        if self.has_tmpfs {
            contestants.push(&mut tmpfs);
            names.push("pwrite-tmpfs");
        }
        contestants.push(&mut ext4);
        names.push("pwrite-ext4");
        let outcomes = contest(effort, &mut contestants);
        let own = outcomes.first().copied().flatten();
        let mut team = self.team.borrow_mut();
        team.outcome()?;
        let own = own.ok_or_else(|| format!("{case}: could not be measured"))?;
        // One more, for its phases.
        let last = match op {
            "write" => {
                let stamp = team.stamp();
                team.every(&json!({"do": "write", "name": "m", "stamp": stamp}))?
            }
            _ => team.every(&json!({"do": "read", "name": "m"}))?,
        };
        let us = |ns: u64| json!((ns as f64 / 1e3).round());
        columns.insert("t_i_us".into(), json!(self.intersected_ns as f64 / 1e3));
        // A short direct access reads no clock: what it does not know is absent.
        let is_timed = slowest(&last.answers, "total_ns") > 0;
        let timed = [
            ("t_m_us", "map_ns"),
            ("t_g_us", "copy_ns"),
            ("t_w_us", "total_ns"),
            ("t_n_us", "network_ns"),
            ("t_s_us", "served_copy_ns"),
        ];
        for (column, key) in timed.into_iter().filter(|_| is_timed) {
            columns.insert(column.into(), us(slowest(&last.answers, key)));
        }
        columns.insert("contention".into(), json!(self.contention));
        columns.insert("messages".into(), json!(last.messages));
        let ratios = names
            .into_iter()
            .zip(&outcomes[1..])
            .filter_map(|(name, other)| Some((name, (*other)?.best / own.best)))
            .collect();
        Ok(Row {
            case: case.to_owned(),
            value: bytes / own.best,
            unit: "GB/s",
            spread: own.spread(),
            first: first.map(|ns| bytes / ns),
            columns,
            ratios,
        })
    }

    /// The first access of fresh processes, each with everything that a program does before it.
    fn first(&self, op: &str, stamp: u32) -> Result<Option<f64>, Error> {
        let mut team = Team::start(&self.site, PROCESSES, self.path, None)?;
        team.all(|rank| part(self.n, rank))?;
        team.every(&json!({"do": "open", "name": "m", "path": "/m", "stamp": stamp}))?;
        let round = team.every(&json!({"do": op, "name": "m", "stamp": stamp}))?;
        Ok((round.ns > 0.0).then_some(round.ns))
    }
}

fn part(n: u64, rank: usize) -> Value {
    let view = format!("(block, *) onto {PROCESSES} [{rank}]");
    json!({"do": "part", "array": format!("u8[{n},{n}]"), "view": view, "salt": 11})
}

fn slowest(answers: &[Value], key: &str) -> u64 {
    let all = answers.iter().filter_map(|a| a["phases"][key].as_u64());
    all.max().unwrap_or(0)
}

/// The largest number of processes that need one server.
fn contention(answers: &[Value]) -> usize {
    let servers = |answer: &Value| -> Vec<u64> {
        let list = answer["phases"]["servers"].as_array();
        list.map(|l| l.iter().filter_map(Value::as_u64).collect())
            .unwrap_or_default()
    };
    let all: Vec<u64> = answers.iter().flat_map(servers).collect();
    all.iter()
        .map(|server| all.iter().filter(|other| *other == server).count())
        .max()
        .unwrap_or(0)
}

/// Small accesses of one process, against copies of the same size at the same places.
fn small(case: &str, op: &str, effort: Effort) -> Result<Row, Error> {
    let site = Site::start(&Wanted::memory(1, 16 << 20), None)?;
    let mut team = Team::start(&site, 1, Path::Direct, None)?;
    // Small enough for the caches, where a copy is fastest and everything around it shows most.
    team.every(&json!({"do": "part", "array": "u8[262144]", "view": "whole", "salt": 3}))?;
    team.every(
        &json!({"do": "open", "name": "m", "path": "/m", "create": true, "layout": "whole"}),
    )?;
    let stamp = team.stamp();
    team.every(&json!({"do": "write", "name": "m", "stamp": stamp}))?;
    let team = RefCell::new(team);
    let order = |what: &str| json!({"do": "repeat", "what": what, "name": "m", "bytes": SMALL});
    let mut pario = Rounds::pario(&team, order(op));
    let mut memcpy = Rounds::yardstick(&team, order("copy"));
    let outcomes: Vec<Option<Outcome>> = contest(effort, &mut [&mut pario, &mut memcpy]);
    team.borrow().outcome()?;
    let own = outcomes[0].ok_or_else(|| format!("{case}: could not be measured"))?;
    let last = team
        .borrow_mut()
        .every(&json!({"do": "read", "name": "m"}))?;
    let mut columns = Map::new();
    columns.insert("ns".into(), json!(own.best.round()));
    columns.insert("messages".into(), json!(last.messages));
    let ratios = outcomes[1]
        .map(|other| ("memcpy-call", other.best / own.best))
        .into_iter();
    Ok(Row {
        case: case.to_owned(),
        value: SMALL as f64 / own.best,
        unit: "GB/s",
        spread: own.spread(),
        first: None,
        columns,
        ratios: ratios.collect(),
    })
}

/// What the rows should reach, and which do.
fn goals(rows: &[Row]) -> Vec<String> {
    let words = |row: &Row| -> Vec<String> { row.case.split('/').map(Into::into).collect() };
    let size = |row: &Row| -> u64 {
        let last = words(row).pop().unwrap_or_default();
        last.strip_prefix("N=")
            .and_then(|n| n.parse().ok())
            .unwrap_or(0)
    };
    let is_goal = |row: &&Row| row.case.contains("/memory/direct/") && size(row) >= 4096;
    let mut lines = Vec::new();
    let mut say = |text: &str, cells: Vec<(String, f64)>, wanted: f64| {
        let met = cells.iter().filter(|(_, x)| *x >= wanted).count();
        if let Some((case, worst)) = cells.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
            let all = cells.len();
            lines.push(format!("{text}: {met} of {all}, worst {worst:.2} ({case})"));
        }
    };
    let of = |name: &'static str| {
        let matching = rows
            .iter()
            .filter(is_goal)
            .filter(|r| r.case.starts_with("r/"));
        matching
            .filter_map(|row| Some((row.case.clone(), row.ratio(name)?)))
            .collect::<Vec<_>>()
    };
    say(
        "matching partition, at least 0.8 of memcpy",
        of("memcpy"),
        0.8,
    );
    say(
        "matching partition, at least 1.5 of pwrite on tmpfs",
        of("pwrite-tmpfs"),
        1.5,
    );
    let columns = rows
        .iter()
        .filter(is_goal)
        .filter(|r| r.case.starts_with("c/"));
    let against = columns.filter_map(|row| {
        let other = format!("r{}", &row.case[1..]);
        let other = rows.iter().find(|r| r.case == other)?;
        Some((row.case.clone(), row.value / other.value))
    });
    say(
        "column partition, at least 0.5 of the matching one",
        against.collect(),
        0.5,
    );
    let small = rows.iter().filter(|row| row.case.starts_with("access/"));
    let small = small.filter_map(|row| Some((row.case.clone(), row.ratio("memcpy-call")?)));
    say("4 KiB, within 2 of a copy and a call", small.collect(), 0.5);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, value: f64, ratio: f64) -> Row {
        Row {
            case: case.into(),
            value,
            unit: "GB/s",
            spread: 0.0,
            first: None,
            columns: Map::new(),
            ratios: vec![("memcpy", ratio)],
        }
    }

    #[test]
    fn goals_speak_of_direct_access_to_large_matrices_in_memory() {
        let rows = [
            row("r/memory/direct/read/N=4096", 10.0, 0.9),
            row("c/memory/direct/read/N=4096", 4.0, 0.4),
            row("r/memory/direct/read/N=256", 1.0, 0.1),
            row("r/memory/socket/read/N=4096", 1.0, 0.1),
        ];
        let lines = goals(&rows);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("1 of 1, worst 0.90"), "{lines:?}");
        assert!(lines[1].contains("0 of 1, worst 0.40"), "{lines:?}");
    }

    #[test]
    fn contention_counts_processes_of_the_busiest_server() {
        let answer = |servers: &[u64]| json!({"phases": {"servers": servers}});
        assert_eq!(
            contention(&[answer(&[1, 2]), answer(&[2]), answer(&[3])]),
            2
        );
        assert_eq!(contention(&[]), 0);
    }
}
