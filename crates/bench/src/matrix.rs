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
use console::Error;
use serde_json::{Value, json};

use super::claims::{self, Claim};
use super::contest::{Effort, ratios};
use super::site::{ServiceSpec, SharedFile, Site, Store, wanted};
use super::workers::{Path, Rounds, Team, paths, rounds_of, whole};
use super::{Row, Sheet};

const PROCESSES: usize = 4;
const SIZES: [u64; 4] = [256, 1024, 4096, 16384];
/// Bytes of a small access.
const SMALL: u64 = 4096;

/// Arguments of `pario bench matrix`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Sizes N of the matrix, separated by commas [default: 256,1024,4096,16384, with --quick 256,1024]
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    sizes: Vec<u64>,
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
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let sizes = match &arguments.sizes[..] {
        [] if sheet.is_quick() => &SIZES[..2],
        [] => &SIZES,
        given => given,
    };
    for &n in sizes {
        if n == 0 || n > 65536 || !n.is_multiple_of(4) {
            return Err(format!("--sizes: {n} is not a multiple of 4 up to 65536").into());
        }
    }
    let effort = match sheet.is_quick() {
        true => Effort::new(7, 5e6),
        false => Effort::new(9, 3e7),
    };
    sheet.begin("matrix", "GB/s", format!("best of {}", effort.turns));
    let paths = paths()?;
    if !paths.contains(&Path::Direct) {
        sheet.say("direct access is off or did not come about: its rows are absent")?;
    }
    for store in [Store::Memory, Store::Disk] {
        for &path in &paths {
            for &n in sizes {
                for physical in Physical::ALL {
                    let name = |op: &str| {
                        let (p, s, w) = (physical.word(), store.word(), path.word());
                        format!("{p}/{s}/{w}/{op}/N={n}")
                    };
                    let ops: Vec<&str> = ["write", "read"]
                        .into_iter()
                        .filter(|op| sheet.wants(&name(op)))
                        .collect();
                    if ops.is_empty() {
                        continue;
                    }
                    let field = Field::new(store, path, physical, n)?;
                    for op in ops {
                        sheet.push(field.measure(&name(op), op, effort)?)?;
                    }
                }
            }
        }
    }
    if paths.contains(&Path::Direct) {
        for op in ["read", "write"] {
            let case = format!("access/memory/direct/{op}/b={SMALL}");
            if sheet.wants(&case) {
                sheet.push(small(&case, op, effort)?)?;
            }
        }
    }
    claims::print(&goals(&sheet.rows));
    Ok(())
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
        let site = Site::start(&wanted(store, PROCESSES, n * n), None)?;
        let mut team = Team::start(&site, PROCESSES, path, None)?;
        parts(&mut team, n)?;
        team.create("m", "/m", physical.layout())?;
        let tmpfs = SharedFile::in_memory("matrix");
        let ext4 = site.scratch("plain");
        let quarter = n * n / PROCESSES as u64;
        for (name, path) in [
            ("tmpfs", tmpfs.as_ref().map(|f| &f.0)),
            ("ext4", Some(&ext4)),
        ] {
            if let Some(path) = path {
                let at = |rank: usize| quarter * rank as u64;
                if !team.plain(name, path, at) {
                    return Err(format!("{} cannot be opened", path.display()).into());
                }
            }
        }
        // What is measured was written before: sizes and extents are there. The first access also knows
        // its servers and what views cost; a short direct one later does not.
        let begun = team.write("m")?;
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
        let mut rounds = vec![
            Rounds::pario(&self.team, order(op, "m")),
            Rounds::yardstick(&self.team, order("copy", "")),
        ];
        let mut names = vec!["memcpy"];
        for (name, file) in [("pwrite-tmpfs", "tmpfs"), ("pwrite-ext4", "ext4")] {
            if file == "ext4" || self.has_tmpfs {
                rounds.push(Rounds::yardstick(&self.team, order(&plain, file)));
                names.push(name);
            }
        }
        let outcomes = rounds_of(effort, &mut rounds)?;
        let own = outcomes[0].ok_or_else(|| format!("{case}: could not be measured"))?;
        let mut team = self.team.borrow_mut();
        // One more, for its phases.
        let last = match op {
            "write" => team.write("m")?,
            _ => team.read("m")?,
        };
        let bytes = self.n * self.n;
        let mut row = Row::rate(case, bytes, own)
            .first(first.map(|ns| bytes as f64 / ns))
            .ratios(ratios(names, &outcomes))
            .column("t_i_us", self.intersected_ns as f64 / 1e3)
            .column("contention", self.contention)
            .column("messages", last.messages);
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
            row.set(column, (slowest(&last.answers, key) as f64 / 1e3).round());
        }
        Ok(row)
    }

    /// The first access of fresh processes, each with everything that a program does before it.
    fn first(&self, op: &str, stamp: u32) -> Result<Option<f64>, Error> {
        let mut team = Team::start(&self.site, PROCESSES, self.path, None)?;
        parts(&mut team, self.n)?;
        team.every(&json!({"do": "open", "name": "m", "path": "/m", "stamp": stamp}))?;
        let round = team.every(&json!({"do": op, "name": "m", "stamp": stamp}))?;
        Ok((round.ns > 0.0).then_some(round.ns))
    }
}

fn parts(team: &mut Team, n: u64) -> Result<Vec<u64>, Error> {
    let view = |rank: usize| format!("(block, *) onto {PROCESSES} [{rank}]");
    team.parts(&format!("u8[{n},{n}]"), 11, view)
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
    let site = Site::start(&ServiceSpec::memory(1, 16 << 20), None)?;
    let mut team = Team::start(&site, 1, Path::Direct, None)?;
    // Small enough for the caches, where a copy is fastest and everything around it shows most.
    team.parts("u8[262144]", 3, whole)?;
    team.make("m", "/m", "whole")?;
    team.write("m")?;
    let team = RefCell::new(team);
    let order = |what: &str| json!({"do": "repeat", "what": what, "name": "m", "bytes": SMALL});
    let mut rounds = [
        Rounds::pario(&team, order(op)),
        Rounds::yardstick(&team, order("copy")),
    ];
    let outcomes = rounds_of(effort, &mut rounds)?;
    let own = outcomes[0].ok_or_else(|| format!("{case}: could not be measured"))?;
    let last = team.borrow_mut().read("m")?;
    Ok(Row::rate(case, SMALL, own)
        .ratios(ratios(["memcpy-call"], &outcomes))
        .column("ns", own.best.round())
        .column("messages", last.messages))
}

/// What the rows should reach, and which do.
fn goals(rows: &[Row]) -> [Claim; 4] {
    let size = |row: &Row| -> u64 {
        let last = row.case.rsplit('/').next().unwrap_or_default();
        let size = last.strip_prefix("N=").map(str::parse);
        size.and_then(Result::ok).unwrap_or(0)
    };
    let is_goal = |row: &Row, physical: &str| {
        let is_direct = row.case.contains("/memory/direct/") && size(row) >= 4096;
        is_direct && row.case.starts_with(physical)
    };
    let matching =
        |name: &'static str| move |row: &Row| is_goal(row, "r/").then(|| row.ratio(name)).flatten();
    let columns = |row: &Row| {
        let other = format!("r{}", row.case.strip_prefix('c')?);
        let other = rows.iter().find(|r| r.case == other)?;
        is_goal(row, "c/").then(|| row.value / other.value)
    };
    [
        Claim::of(
            "matching partition, at least 0.8 of memcpy",
            0.8,
            rows,
            matching("memcpy"),
        ),
        Claim::of(
            "matching partition, at least 1.5 of pwrite on tmpfs",
            1.5,
            rows,
            matching("pwrite-tmpfs"),
        ),
        Claim::of(
            "column partition, at least 0.5 of the matching one",
            0.5,
            rows,
            columns,
        ),
        Claim::of("4 KiB, within 2 of a copy and a call", 0.5, rows, |row| {
            row.ratio("memcpy-call")
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, value: f64, ratio: f64) -> Row {
        Row::new(case, value, "GB/s").ratios([("memcpy", ratio)])
    }

    #[test]
    fn goals_speak_of_direct_access_to_large_matrices_in_memory() {
        let rows = [
            row("r/memory/direct/read/N=4096", 10.0, 0.9),
            row("c/memory/direct/read/N=4096", 4.0, 0.4),
            row("r/memory/direct/read/N=256", 1.0, 0.1),
            row("r/memory/socket/read/N=4096", 1.0, 0.1),
        ];
        let claims = goals(&rows);
        let found = claims.each_ref().map(|claim| {
            let found = claim.verdict();
            found.map(|(met, all, worst)| (met, all, worst.1))
        });
        assert_eq!(found, [Some((1, 1, 0.9)), None, Some((0, 1, 0.4)), None]);
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
