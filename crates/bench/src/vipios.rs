//! `pario bench vipios`: the experiments of ViPIOS (E1 to E9 of its report) as ratios.
//!
//! ```text
//!  E1|E6 / memory|disk / read / MB=8|60 / s=1..4    four clients, one server per host; `one`: against one server
//!  E2|E3 / const|grow / PATH / read / n=2..8        a client and a server per host; E2 uses its own, E3 its neighbour's
//!  E4 / host|ns / read / MB=2                       against a local read plus a bare transfer of the same bytes
//!  E5 / PATH / read / MB=8                          bytes beside their clients, against plain reads
//!  E7 / write|read / MB=16|40|100                   four processes over MPI-IO, against ROMIO
//!  E8 / redistribute|sparse / PATH / write|read     views against data sieving
//!  E9 / memory|disk / whole|cut / read / b=BYTES    buffers of the server from 5 MB to 1 KB; `b=256K`: against 256 KB
//! ```
//!
//! Links between hosts have a rate, so that the network and not the processors of this machine is the
//! bottleneck, as it was there. Column `near` is the share of the bytes that clients found on their own host, and
//! `source` is what the report says, as a ratio of the same kind.

use std::cell::RefCell;

use clap::Args;
use console::{Error, output};
use serde_json::{Value, json};
use testkit::hosts::Hosts;

use super::contest::Outcome;
use super::flags::Turns;
use super::mpi::{self, Mpi};
use super::mpiio;
use super::parallel::{Job, OPS, Statistic, Way, homes};
use super::site::{ServiceSpec, SharedFile, Site, Store, hosts, spread, wanted};
use super::workers::{Path, Rounds, Team, paths, rounds_of, whole};
use super::{Row, Sheet, digits};

/// Arguments of `pario bench vipios`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Only these experiments, such as E1,E4
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,

    /// Sizes in kB instead of MB, to see that everything runs
    #[arg(long)]
    tiny: bool,

    /// Rate of each link between hosts, in Mbit/s; twice that for the 60 MB of E6
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,

    #[command(flatten)]
    turns: Turns,

    /// Also E6 on disks, and E3 with eight hosts
    #[arg(long)]
    full: bool,
}

/// Clients of E1, E5 and E6.
const CLIENTS: usize = 4;
/// Most servers of E1 and E6.
const SERVERS: usize = 4;
/// Speed-ups of the source at 1, 2, 3 and 4 servers.
const SOURCE_8: [f64; SERVERS] = [1.0, 1.70, 1.83, 2.70];
const SOURCE_60: [f64; SERVERS] = [1.0, 1.76, 1.77, 3.25];
/// Buffer sizes of E9 in KiB, with the seconds of the source's Table 8.6.
const BUFFERS: [(u64, f64); 13] = [
    (5120, 1.92),
    (2560, 1.95),
    (1024, 1.84),
    (512, 1.78),
    (256, 1.71),
    (128, 1.73),
    (64, 1.92),
    (32, 2.28),
    (16, 2.74),
    (8, 4.06),
    (4, 8.21),
    (2, 16.73),
    (1, 29.25),
];

/// Megabytes of E7, with the seconds of ROMIO divided by those of ViMPIOS in the source's Table 8.5 (means, recomputed).
const SOURCE_ROMIO: [(u64, f64); 3] = [(16, 0.047), (40, 0.37), (100, 0.40)];

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    const KNOWN: [&str; 9] = ["E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9"];
    if let Some(name) = arguments.only.iter().find(|n| !KNOWN.contains(&n.as_str())) {
        return Err(format!(
            "--only: there is no '{name}'; give one of {}",
            KNOWN.join(", ")
        )
        .into());
    }
    let statistic = format!("median of {}", arguments.turns.turns);
    sheet.begin("vipios", "GB/s", statistic);
    sheet.fact("mbit", arguments.rate);
    let mut run = Run {
        arguments,
        is_tiny: arguments.tiny || sheet.is_quick(),
        sheet,
        paths: paths()?,
    };
    let is_wanted =
        |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let between = |run: &mut Run<'_>, name: &str| match name {
        "E1" => {
            run.scaling("E1", Store::Memory, 8, SOURCE_8)?;
            run.scaling("E1", Store::Disk, 8, SOURCE_8)
        }
        "E6" => {
            run.scaling("E6", Store::Memory, 60, SOURCE_60)?;
            match arguments.full {
                true => run.scaling("E6", Store::Disk, 60, SOURCE_60),
                false => Ok(()),
            }
        }
        _ => run.neighbours(),
    };
    // One line, however many experiments need hosts.
    match Hosts::with_rates(&[None]) {
        Ok(_) => {
            for (name, also) in [("E1", "E1"), ("E2", "E3"), ("E6", "E6")] {
                if is_wanted(name) || is_wanted(also) {
                    between(&mut run, name)?;
                }
            }
        }
        Err(why) => output::note(&format!("rows between hosts are absent: {why}")),
    }
    if is_wanted("E4") {
        run.overhead()?;
    }
    if is_wanted("E5") {
        run.beside()?;
    }
    if is_wanted("E7") {
        run.over_mpi()?;
    }
    if is_wanted("E8") {
        run.redistribution()?;
    }
    if is_wanted("E9") {
        run.buffers(Store::Memory)?;
        run.buffers(Store::Disk)?;
    }
    Ok(())
}

struct Run<'a> {
    arguments: &'a Arguments,
    /// Sizes are in kB instead of MB.
    is_tiny: bool,
    sheet: &'a mut Sheet,
    paths: Vec<Path>,
}

/// A team with one file open, and what it found at its first access.
struct Reader {
    // Dropped in this order: clients before their service.
    team: RefCell<Team>,
    _site: Option<Site>,
    first_ns: f64,
    bytes: u64,
}

/// What a reader reads.
struct ReaderTask<'a> {
    array: String,
    layout: String,
    view: &'a dyn Fn(usize) -> String,
    path: Path,
    clients: usize,
    on: Option<(&'a Hosts, &'a [usize])>,
}

impl ReaderTask<'_> {
    /// Fresh processes write the file, others read it for the first time.
    fn begin(&self, site: &Site, file: &str) -> Result<Reader, Error> {
        let start = || -> Result<(Team, u64), Error> {
            let mut team = Team::start(site, self.clients, self.path, self.on)?;
            let bytes = team.parts(&self.array, 5, self.view)?.iter().sum();
            Ok((team, bytes))
        };
        let (mut writers, _) = start()?;
        writers.make("f", file, &self.layout)?;
        writers.fill("f")?;
        drop(writers);
        let (mut team, bytes) = start()?;
        team.open("f", file, &self.layout)?;
        let first_ns = team.read("f")?.ns;
        Ok(Reader {
            team: RefCell::new(team),
            _site: None,
            first_ns,
            bytes,
        })
    }
}

fn read() -> Value {
    json!({ "do": "read", "name": "f" })
}

impl Run<'_> {
    fn megabyte(&self) -> u64 {
        match self.is_tiny {
            true => 1000,
            false => 1_000_000,
        }
    }

    /// All readers in turns.
    fn contest_of<'r>(
        &self,
        readers: impl IntoIterator<Item = &'r Reader>,
    ) -> Result<Vec<Option<Outcome>>, Error> {
        let rounds = readers.into_iter();
        let rounds = rounds.map(|reader| Rounds::pario(&reader.team, read()));
        self.contest(&mut rounds.collect::<Vec<_>>())
    }

    fn contest(&self, rounds: &mut [Rounds<'_>]) -> Result<Vec<Option<Outcome>>, Error> {
        rounds_of(self.arguments.turns.effort(), rounds)
    }

    /// E1 and E6: the same file on 1 to 4 servers, all taking turns.
    fn scaling(
        &mut self,
        name: &str,
        store: Store,
        megabytes: u64,
        source: [f64; SERVERS],
    ) -> Result<(), Error> {
        // Seven times 60 MB on one link take a while.
        let rate = self.arguments.rate * if megabytes > 8 { 2 } else { 1 };
        let hosts = hosts(SERVERS + CLIENTS, Some(rate))?;
        let places: Vec<usize> = (SERVERS..SERVERS + CLIENTS).collect();
        let bytes = megabytes * self.megabyte();
        // Of small files too every server has a part.
        let stripes = match self.is_tiny {
            true => "striped(64)",
            false => "striped(64KiB)",
        };
        let mut readers = Vec::new();
        for servers in 1..=SERVERS {
            let spread = spread(&hosts, SERVERS + CLIENTS, (0..servers).collect());
            let site = Site::start(&wanted(store, servers, bytes), Some(&spread))?;
            let view = |rank: usize| format!("(block) onto {CLIENTS} [{rank}]");
            let reading = ReaderTask {
                array: format!("u8[{bytes}]"),
                layout: stripes.into(),
                view: &view,
                path: Path::Socket,
                clients: CLIENTS,
                on: Some((&hosts, &places)),
            };
            let reader = reading.begin(&site, "/f")?;
            let _site = Some(site);
            readers.push(Reader { _site, ..reader });
        }
        let outcomes = self.contest_of(&readers)?;
        let one = outcomes[0].ok_or("one server did not run")?.median;
        for (i, (reader, outcome)) in readers.iter().zip(&outcomes).enumerate() {
            let outcome = outcome.ok_or("it did not run")?;
            let servers = i + 1;
            let case = format!("{name}/{}/read/MB={megabytes}/s={servers}", store.word());
            let mut row = row(case, reader.bytes, outcome, reader.first_ns);
            let links = servers.min(CLIENTS) as f64 * rate as f64 / 8e3;
            row.ratios.push(("one", one / outcome.median));
            row.ratios.push(("link", row.value / links));
            row.set("source", source[i]);
            row.set("messages", reader.team.borrow_mut().read("f")?.messages);
            self.sheet.push(row)?;
        }
        Ok(())
    }

    /// E2 and E3: a client and a server on every host.
    fn neighbours(&mut self) -> Result<(), Error> {
        let counts: &[usize] = match self.arguments.full {
            true => &[2, 4, 8],
            false => &[2, 4],
        };
        for &n in counts {
            for (kind, megabytes) in [("const", 8), ("grow", 2 * n as u64)] {
                self.neighbours_of(n, kind, megabytes)?;
            }
        }
        Ok(())
    }

    fn neighbours_of(&mut self, n: usize, kind: &str, megabytes: u64) -> Result<(), Error> {
        let hosts = hosts(n, Some(self.arguments.rate))?;
        let bytes = megabytes * self.megabyte();
        let spread = spread(&hosts, n, (0..n).collect());
        let site = Site::start(&ServiceSpec::memory(n, bytes * 2), Some(&spread))?;
        let array = format!("u8[{bytes}]");
        let layout = format!("(block) onto {n}");
        let way = Way::new("f", layout.clone());
        let near = homes(&site, &hosts, &array, &way)?;
        let far: Vec<usize> = near.iter().map(|host| (host + 1) % n).collect();
        let view = |rank: usize| format!("{layout} [{rank}]");
        let mut readers = Vec::new();
        let paths = self.paths.clone();
        for (name, path, places) in
            paths
                .iter()
                .map(|path| ("E2", *path, &near))
                .chain([("E3", Path::Socket, &far)])
        {
            let reading = ReaderTask {
                array: array.clone(),
                layout: layout.clone(),
                view: &view,
                path,
                clients: n,
                on: Some((&hosts, places)),
            };
            let reader = reading.begin(&site, "/f")?;
            if path == Path::Direct && reader.team.borrow_mut().read("f")?.messages > 0 {
                output::note("E2 has no direct rows: between namespaces it goes by messages");
                continue;
            }
            readers.push((name, path, reader));
        }
        let outcomes = self.contest_of(readers.iter().map(|(_, _, reader)| reader))?;
        let elsewhere = outcomes.last().copied().flatten().ok_or("E3 did not run")?;
        for ((name, path, reader), outcome) in readers.iter().zip(&outcomes) {
            let outcome = outcome.ok_or("it did not run")?;
            let path = path.word();
            let case = format!("{name}/{kind}/{path}/read/MB={megabytes}/n={n}");
            let mut row = row(case, reader.bytes, outcome, reader.first_ns);
            let near = reader.team.borrow_mut().read("f")?.near;
            row.set("near", digits(near as f64 / reader.bytes as f64, 3));
            if *name == "E2" {
                row.ratios.push(("E3", elsewhere.median / outcome.median));
                // Same-node transfers were more than 30 times slower there.
                row.set("source", 0.03);
            } else {
                let links = n as f64 * self.arguments.rate as f64 / 8e3;
                row.ratios.push(("link", row.value / links));
            }
            self.sheet.push(row)?;
        }
        Ok(())
    }

    /// E4: a read through Pario against a local read plus a bare transfer.
    fn overhead(&mut self) -> Result<(), Error> {
        let bytes = 2 * self.megabyte();
        let program = super::this_program()?;
        let rate = Some(self.arguments.rate);
        let hosts = Hosts::with_rates(&[rate, rate, None]).ok();
        for place in ["host", "ns"] {
            let (site, bare, on);
            if place == "host" {
                site = Site::start(&ServiceSpec::disk(1), None)?;
                let at = format!("unix:{}", site.scratch("bare.sock").display());
                bare = super::socket::bare(std::process::Command::new(&program), &at)?;
                on = None;
            } else {
                let Some(hosts) = &hosts else { continue };
                let spread = spread(hosts, 2, vec![0]);
                site = Site::start(&ServiceSpec::disk(1), Some(&spread))?;
                let at = format!("tcp:{}:0", Hosts::address(0));
                let command = hosts.command(0, &program);
                bare = super::socket::bare(command, &at)?;
                on = Some((hosts, &[1usize][..]));
            }
            let reading = ReaderTask {
                array: format!("u8[{bytes}]"),
                layout: "whole".into(),
                view: &whole,
                path: Path::Socket,
                clients: 1,
                on,
            };
            let Reader {
                team,
                first_ns,
                bytes,
                ..
            } = reading.begin(&site, "/f")?;
            let mut team = team.into_inner();
            let plain = site.scratch("plain");
            if !team.plain("p", &plain, |_| 0) || !team.fill_plain("p") {
                return Err(format!("{} cannot be written", plain.display()).into());
            }
            let team = RefCell::new(team);
            let mut rounds = [
                Rounds::pario(&team, read()),
                Rounds::yardstick(&team, json!({ "do": "plain-read", "name": "p" })),
                Rounds::yardstick(&team, json!({ "do": "exchange", "url": bare.url })),
            ];
            let outcomes = self.contest(&mut rounds)?;
            let outcome = outcomes[0].ok_or("it did not run")?;
            let case = format!("E4/{place}/socket/read/MB=2");
            let mut row = row(case, bytes, outcome, first_ns);
            row.set("messages", team.borrow_mut().read("f")?.messages);
            if let (Some(read), Some(transfer)) = (outcomes[1], outcomes[2]) {
                let sum = read.median + transfer.median;
                row.ratios.push(("read+transfer", sum / outcome.median));
                let us = |outcome: Outcome| (outcome.median / 1e3).round();
                let overhead = (outcome.median / sum - 1.0) * 100.0;
                row.set("overhead_percent", digits(overhead, 1));
                row.set("read_us", us(read));
                row.set("transfer_us", us(transfer));
                row.set("source", 12);
            }
            self.sheet.push(row)?;
        }
        Ok(())
    }

    /// E5: every process reads bytes of its own host.
    fn beside(&mut self) -> Result<(), Error> {
        let bytes = 8 * self.megabyte();
        let len = bytes / CLIENTS as u64;
        for path in self.paths.clone() {
            for store in [Store::Memory, Store::Disk] {
                let site = Site::start(&wanted(store, CLIENTS, bytes), None)?;
                let layout = format!("(block) onto {CLIENTS}");
                let view = |rank: usize| format!("{layout} [{rank}]");
                let reading = ReaderTask {
                    array: format!("u8[{bytes}]"),
                    layout: layout.clone(),
                    view: &view,
                    path,
                    clients: CLIENTS,
                    on: None,
                };
                let Reader {
                    team,
                    first_ns,
                    bytes,
                    ..
                } = reading.begin(&site, "/f")?;
                let mut team = team.into_inner();
                let shared = SharedFile::in_memory("e5");
                let disk = site.scratch("plain");
                let files = [
                    ("pread-ext4", Some(disk)),
                    ("pread-tmpfs", shared.as_ref().map(|f| f.0.clone())),
                ];
                let mut names = Vec::new();
                for (name, file) in files {
                    let Some(file) = file else { continue };
                    let at = |rank: usize| rank as u64 * len;
                    if team.plain(name, &file, at) && team.fill_plain(name) {
                        names.push(name);
                    }
                }
                // Open already: without a name it goes with the processes, whatever happens.
                drop(shared);
                let team = RefCell::new(team);
                let mut rounds = vec![Rounds::pario(&team, read())];
                rounds.extend(names.iter().map(|name| {
                    Rounds::yardstick(&team, json!({ "do": "plain-read", "name": name }))
                }));
                let outcomes = self.contest(&mut rounds)?;
                let outcome = outcomes[0].ok_or("it did not run")?;
                let case = format!("E5/{}/{}/read/MB=8", store.word(), path.word());
                let mut row = row(case, bytes, outcome, first_ns);
                for (name, other) in names.into_iter().zip(&outcomes[1..]) {
                    if let Some(other) = other {
                        row.ratios.push((name, other.median / outcome.median));
                    }
                }
                // 0.49 s against 39.83 s by messages and 1.41 s through shared memory.
                let source = match path {
                    Path::Socket => 0.012,
                    Path::Direct => 0.35,
                };
                row.set("source", source);
                self.sheet.push(row)?;
            }
        }
        Ok(())
    }

    /// E7: a file written and read back over MPI-IO, against ROMIO.
    fn over_mpi(&mut self) -> Result<(), Error> {
        let program = match Mpi::Mpich.compile(&mpi::ARRAY) {
            Ok(program) => program,
            Err(why) => {
                output::note(&format!("rows of E7 are absent: {why}"));
                return Ok(());
            }
        };
        // An array of bytes with this edge has so many of them, but for a row.
        let edge = |mb: u64| ((mb * self.megabyte()) as f64).sqrt().round() as u32;
        let edges = SOURCE_ROMIO.map(|(mb, _)| edge(mb));
        let turns = self.arguments.turns.turns;
        let measured = mpiio::Arguments::rows_of_bytes(Mpi::Mpich, CLIENTS as u64, turns);
        let site = Site::start(&ServiceSpec::memory(CLIENTS, 1 << 30), None)?;
        let lines = measured.measure(&site, &edges, &program, ("romio", &[]))?;
        for ((mb, source), edge) in SOURCE_ROMIO.into_iter().zip(edges) {
            for op in ["write", "read"] {
                let of = |target: &str| {
                    lines.iter().find(|line| {
                        let (_, line_op, how, _, n) = &line.cell;
                        line_op == op && how == "indep" && *n == edge && line.target == target
                    })
                };
                let ours = of("pario").ok_or("E7: the program has not measured Pario")?;
                let bytes = f64::from(edge) * f64::from(edge);
                let rate = |seconds: f64| bytes / seconds / 1e9;
                let mut row = Row::new(format!("E7/{op}/MB={mb}"), rate(ours.median), "GB/s")
                    .first(Some(rate(ours.first)));
                for name in ["romio-tmpfs", "romio-ext4"] {
                    if let Some(theirs) = of(name) {
                        row.ratios.push((name, theirs.median / ours.median));
                    }
                }
                row.set("source", source);
                self.sheet.push(row)?;
            }
        }
        Ok(())
    }

    /// E8: what the source planned and could not measure.
    fn redistribution(&mut self) -> Result<(), Error> {
        let side = if self.is_tiny { 64 } else { 1024 };
        let squares = |rank: usize| format!("(cyclic, cyclic) onto 2x2 [{rank}]");
        // A sixteenth of the rows, and of each a piece.
        let sparse = |rank: usize| {
            let piece = side / 32;
            format!(
                "slice[{rank}:{side}:16, {}:{}]",
                rank * piece,
                (rank + 1) * piece
            )
        };
        let kinds: [(&str, &dyn Fn(usize) -> String); 2] =
            [("redistribute", &squares), ("sparse", &sparse)];
        for path in self.paths.clone() {
            for (kind, view) in kinds {
                let site = Site::start(&ServiceSpec::memory(4, 16 << 20), None)?;
                let layout = "(block, block) onto 2x2";
                let sieve = Way {
                    file: "views",
                    strategy: "sieving",
                    ..Way::new("sieve", layout)
                };
                let ways = vec![Way::new("views", layout), sieve];
                let effort = self.arguments.turns.effort();
                let job = Job {
                    path,
                    with_memory: true,
                    ..Job::new(&site, 4, format!("i32[{side},{side}]"), view, ways, effort)
                };
                let measured = job.run()?;
                for op in OPS {
                    let case = format!("E8/{kind}/{}/{op}/N={side}", path.word());
                    let against = ["sieve", "memcpy"];
                    let row = measured.row(case, "views", op, Statistic::Median, &against)?;
                    self.sheet.push(row)?;
                }
            }
        }
        Ok(())
    }

    /// E9: 5 MB through buffers of all sizes, all taking turns.
    fn buffers(&mut self, store: Store) -> Result<(), Error> {
        let rows = self.megabyte() / 1000;
        let cut = |_: usize| "(*, cyclic(8)) onto 2 [0]".to_owned();
        let kinds: [(&str, &dyn Fn(usize) -> String); 2] = [("whole", &whole), ("cut", &cut)];
        for (kind, view) in kinds {
            // The cut shows half of the array; both move 5 MB.
            let columns = if kind == "whole" { 5000 } else { 10_000 };
            let mut readers = Vec::new();
            for (kib, _) in BUFFERS {
                let mut wanted = wanted(store, 1, 64 << 20);
                wanted.options = ["--buffer".into(), (kib << 10).to_string()].to_vec();
                let site = Site::start(&wanted, None)?;
                let reading = ReaderTask {
                    array: format!("u8[{rows},{columns}]"),
                    layout: "whole".into(),
                    view,
                    path: Path::Socket,
                    clients: 1,
                    on: None,
                };
                let reader = reading.begin(&site, "/f")?;
                let _site = Some(site);
                readers.push(Reader { _site, ..reader });
            }
            let outcomes = self.contest_of(&readers)?;
            let middle = BUFFERS.iter().position(|(kib, _)| *kib == 256).unwrap_or(0);
            let middle_ns = outcomes[middle].ok_or("it did not run")?.median;
            for (i, (kib, seconds)) in BUFFERS.into_iter().enumerate() {
                let outcome = outcomes[i].ok_or("it did not run")?;
                let case = format!("E9/{}/{kind}/read/b={}", store.word(), kib << 10);
                let mut row = row(case, readers[i].bytes, outcome, readers[i].first_ns);
                row.ratios.push(("b=256K", middle_ns / outcome.median));
                let source = BUFFERS[middle].1 / seconds;
                row.set("source", digits(source, 3));
                self.sheet.push(row)?;
            }
        }
        Ok(())
    }
}

fn row(case: String, bytes: u64, outcome: Outcome, first_ns: f64) -> Row {
    Row::new(case, bytes as f64 / outcome.median, "GB/s")
        .spread(outcome.spread())
        .first(Some(bytes as f64 / first_ns.max(1.0)))
        .column("ms", digits(outcome.median / 1e6, 2))
}
