//! One array, a part of it for every client process, several ways to write and read it, and the same
//! bytes by yardsticks: what the benchmarks of whole files have in common.
//!
//! ```text
//!  fresh processes   write every way once   -> first passes of writes; the whole file is compared
//!  fresh processes   read every way once    -> first passes of reads; every part is compared
//!  the same          contest: write, read of each way, memcpy, plain files, in turns
//! ```
//!
//! Every read is compared with the last write, byte by byte. Ways may share a file if one only differs
//! in the strategy.

use std::cell::RefCell;
use std::fs;

use serde_json::{Value, json};

use super::contest::{Effort, Outcome};
use super::site::{SharedFile, Site};
use super::workers::{Path, Rounds, Team, rounds_of};
use super::{Row, digits};
use console::Error;
use testkit::hosts::Hosts;

/// Files up to this size are compared as a whole, by a process that did not write them all.
const WHOLE: u64 = 128 << 20;

/// One way to write and read the array.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// The file; several ways may have one.
    pub(crate) file: &'static str,
    pub(crate) layout: String,
    pub(crate) strategy: &'static str,
    /// Whether clients talk through one server each, which splits their requests.
    pub(crate) through_one_server: bool,
}

impl Way {
    /// Through views, in a file of its own.
    pub(crate) fn new(name: &'static str, layout: impl Into<String>) -> Way {
        Way {
            name,
            file: name,
            layout: layout.into(),
            strategy: "views",
            through_one_server: false,
        }
    }
}

/// What is done.
pub(crate) struct Job<'a> {
    pub(crate) site: &'a Site,
    /// Hosts of the clients, where there are several.
    pub(crate) on: Option<(&'a Hosts, &'a [usize])>,
    pub(crate) path: Path,
    pub(crate) clients: usize,
    pub(crate) array: String,
    /// The view of each client, in the layout language; no byte is seen by two.
    pub(crate) view: &'a dyn Fn(usize) -> String,
    pub(crate) ways: Vec<Way>,
    /// Against memcpy and files in the host's memory.
    pub(crate) with_memory: bool,
    /// Against files on the host's disk, with what it takes to reach it.
    pub(crate) with_disk: bool,
    pub(crate) effort: Effort,
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Measurement {
    /// Bytes of the array.
    pub(crate) bytes: u64,
    firsts: Vec<(String, f64)>,
    outcomes: Vec<(String, Option<Outcome>)>,
    passes: Passes,
    /// Servers that keep bytes on a disk.
    disks: u64,
}

type Outcomes = Vec<(String, Option<Outcome>)>;
/// What all clients do in one pass, beside the time that it takes.
type Passes = Vec<(String, Pass)>;

/// One pass of all clients.
#[derive(Clone, Copy, Debug)]
struct Pass {
    /// Messages with bytes: none where access is direct.
    messages: u64,
    /// Bytes that were at a server of the client's own host.
    near: u64,
}

/// Reading and writing.
pub(crate) const OPS: [&str; 2] = ["write", "read"];

impl<'a> Job<'a> {
    /// Processes that have parts of an array, on the host of the servers, without yardsticks.
    pub(crate) fn new(
        site: &'a Site,
        clients: usize,
        array: impl Into<String>,
        view: &'a dyn Fn(usize) -> String,
        ways: Vec<Way>,
        effort: Effort,
    ) -> Job<'a> {
        Job {
            site,
            on: None,
            path: Path::Socket,
            clients,
            array: array.into(),
            view,
            ways,
            with_memory: false,
            with_disk: false,
            effort,
        }
    }

    /// Does it.
    pub(crate) fn run(&self) -> Result<Measurement, Error> {
        let mut firsts = Vec::new();
        let mut writers = Team::start(self.site, self.clients, self.path, self.on)?;
        let lens = writers.parts(&self.array, 17, self.view)?;
        let array_bytes = self.array.parse::<layout::ArrayType>()?.bytes();
        for way in &self.ways {
            // The first makes the file, the others find it.
            let open = self.open(way, true);
            writers.every(&open)?;
            firsts.push((format!("{}/write", way.name), writers.fill(way.name)?.ns));
            let bytes: u64 = lens.iter().sum();
            if bytes <= WHOLE && bytes == array_bytes {
                let last = writers.len() - 1;
                let check = json!({ "do": "check", "name": way.name });
                writers.all(|rank| match rank == last {
                    true => check.clone(),
                    false => json!({ "do": "ready" }),
                })?;
            }
        }
        drop(writers);
        let mut team = Team::start(self.site, self.clients, self.path, self.on)?;
        team.parts(&self.array, 17, self.view)?;
        let mut disks = 0;
        for way in &self.ways {
            let opened = team.every(&self.open(way, false))?;
            disks = opened.answers[0]["disks"].as_u64().unwrap_or(0);
            firsts.push((format!("{}/read", way.name), team.read(way.name)?.ns));
        }
        let (outcomes, passes) = self.contest(team, &lens)?;
        Ok(Measurement {
            bytes: lens.iter().sum(),
            firsts,
            outcomes,
            passes,
            disks,
        })
    }

    fn open(&self, way: &Way, create: bool) -> Value {
        json!({ "do": "open", "name": way.name, "path": format!("/{}", way.file),
                "layout": way.layout, "strategy": way.strategy, "create": create,
                "through_one_server": way.through_one_server })
    }

    fn contest(&self, team: Team, lens: &[u64]) -> Result<(Outcomes, Passes), Error> {
        let mut team = team;
        let mut plain = Vec::new();
        let memory = self.with_memory.then(|| SharedFile::in_memory("part"));
        let memory = memory.flatten();
        let disk = self.site.scratch("plain");
        let at = |rank: usize| lens[..rank].iter().sum::<u64>();
        let mut open = |name: &str, path: &std::path::Path| team.plain(name, path, at);
        if memory.as_ref().is_some_and(|file| open("tmpfs", &file.0)) {
            plain.push((
                "pwrite-tmpfs",
                json!({ "do": "plain-write", "name": "tmpfs" }),
            ));
            plain.push((
                "pread-tmpfs",
                json!({ "do": "plain-read", "name": "tmpfs" }),
            ));
        }
        if self.with_disk && open("disk", &disk) {
            let write = json!({ "do": "plain-write", "name": "disk", "sync": true });
            let read = json!({ "do": "plain-read", "name": "disk", "cold": true });
            plain.extend([("disk-fsync", write), ("disk-cold", read)]);
        }
        // All have it open: without a name it goes with the last of them, whatever happens.
        drop(memory);
        let _ = fs::remove_file(&disk);
        if self.with_memory {
            plain.push(("memcpy", json!({ "do": "copy" })));
        }
        let team = RefCell::new(team);
        let mut names = Vec::new();
        let mut rounds = Vec::new();
        for way in &self.ways {
            for op in OPS {
                names.push(format!("{}/{op}", way.name));
                rounds.push(Rounds::pario(&team, json!({ "do": op, "name": way.name })));
            }
        }
        for (name, order) in plain {
            names.push(name.to_owned());
            rounds.push(Rounds::yardstick(&team, order));
        }
        let outcomes = rounds_of(self.effort, &mut rounds)?;
        drop(rounds);
        let mut team = team.into_inner();
        let mut passes = Vec::new();
        for way in &self.ways {
            for op in OPS {
                let round = match op {
                    "write" => team.write(way.name)?,
                    _ => team.read(way.name)?,
                };
                let pass = Pass {
                    messages: round.messages,
                    near: round.near,
                };
                passes.push((format!("{}/{op}", way.name), pass));
            }
        }
        Ok((names.into_iter().zip(outcomes).collect(), passes))
    }
}

/// Which of the repetitions counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    /// In memory, where everything that disturbs makes it slower.
    Best,
    /// On links with a rate, where the best is luck.
    Median,
}

impl Statistic {
    pub(crate) fn of(self, outcome: Outcome) -> f64 {
        match self {
            Statistic::Best => outcome.best,
            Statistic::Median => outcome.median,
        }
    }
}

impl Measurement {
    /// How long something took.
    pub(crate) fn outcome(&self, name: &str) -> Option<Outcome> {
        let found = self.outcomes.iter().find(|(n, _)| n == name);
        found.and_then(|(_, outcome)| *outcome)
    }

    /// A row about one way and direction, with the ratios against all that is named; a way stands for
    /// its access in the same direction.
    pub(crate) fn row(
        &self,
        case: String,
        way: &str,
        op: &str,
        statistic: Statistic,
        against: &[&'static str],
    ) -> Result<Row, Error> {
        let name = format!("{way}/{op}");
        let reached = self.outcome(&name);
        let reached = reached.ok_or_else(|| format!("{case}: it did not run"))?;
        let ns = statistic.of(reached);
        let ratios = against.iter().filter_map(|other| {
            let found = self
                .outcome(other)
                .or_else(|| self.outcome(&format!("{other}/{op}")))?;
            Some((*other, statistic.of(found) / ns))
        });
        let first = self.firsts.iter().find(|(n, _)| *n == name);
        let bytes = self.bytes as f64;
        let mut row = Row::new(case, bytes / ns, "GB/s")
            .spread(reached.spread())
            .first(first.map(|(_, ns)| bytes / ns.max(1.0)))
            .ratios(ratios)
            .column("ms", digits(ns / 1e6, 2));
        if let Some(pass) = self.pass(&name) {
            row.set("messages", pass.messages);
        }
        row.set("disks", self.disks);
        Ok(row)
    }

    fn pass(&self, name: &str) -> Option<Pass> {
        let found = self.passes.iter().find(|(n, _)| n == name);
        found.map(|(_, pass)| *pass)
    }

    /// The part of the bytes that clients found at a server of their own host.
    pub(crate) fn near(&self, way: &str, op: &str) -> f64 {
        let near = self.pass(&format!("{way}/{op}")).map_or(0, |p| p.near);
        near as f64 / self.bytes as f64
    }
}

/// Makes the file of a way in a service whose server i is on host i; the host of each of its subfiles.
pub(crate) fn homes(
    site: &Site,
    hosts: &Hosts,
    array: &str,
    way: &Way,
) -> Result<Vec<usize>, Error> {
    let mut team = Team::start(site, 1, Path::Socket, Some((hosts, &[0])))?;
    team.parts(array, 17, super::workers::whole)?;
    let round = team.make("made", &format!("/{}", way.file), &way.layout)?;
    let places = round.answers[0]["places"].as_array().cloned();
    let places: Vec<u64> = places.iter().flatten().filter_map(Value::as_u64).collect();
    // Servers are numbered as they join, one after the other.
    let first = round.answers[0]["first_server"].as_u64().unwrap_or(0);
    let count = site.server_urls().len() as u64;
    let homes = places.iter().map(|server| {
        let index = server.checked_sub(first).filter(|index| *index < count);
        index.map(|index| index as usize)
    });
    let homes: Option<Vec<usize>> = homes.collect();
    Ok(homes.ok_or("the servers are not numbered in the order of their start")?)
}

/// Memory of the host that is free to use, in bytes.
pub(crate) fn free_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
