//! `pario bench strided`: a cube of 4-byte integers, cut into blocks in three dimensions, written and
//! read by one process per block (the thesis' second experiment).
//!
//! ```text
//!  host|ns / view|striped|sieve|thesis / socket|direct / write|read / N=EDGE / c=CLIENTS / s=SERVERS
//! ```
//!
//! `view` keeps one subfile per process, `striped` stripes of 64 KiB, both through views; `sieve` is
//! striping with data sieving and locks, `thesis` the same through one server per client, round robin, which is
//! what the thesis measured against. Ratios `sieve` and `thesis` are how many times faster a row is than
//! these, `striped` and `view` the same against the others, `contiguous` against the same bytes in
//! one run per process. On `ns` clients and servers are on hosts of their own, whose links have a rate;
//! ratio `link` is the share of what the links of the servers carry.

use clap::Args;
use console::{Error, output};

use super::flags::Runs;
use super::parallel::{Job, Measurement, OPS, Statistic, Way, free_memory};
use super::site::{ServiceSpec, Site, hosts, spread};
use super::workers::{Path, paths};
use super::{Row, Sheet};

/// Arguments of `pario bench strided`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Integers per edge of the cube [default: 128,256,512, with --full 1024 too, with --quick 64]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(2..=2048))]
    edges: Vec<u64>,

    /// Blocks per dimension; their product is the number of processes
    #[arg(long, value_name = "AxBxC", default_value = "2x2x2", value_parser = grid)]
    grid: [u64; 3],

    /// I/O servers
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    servers: u64,

    #[command(flatten)]
    runs: Runs,

    /// Also 4096 MiB, and 64 MiB between hosts; takes half an hour
    #[arg(long)]
    full: bool,
}

fn grid(text: &str) -> Result<[u64; 3], String> {
    let parts: Vec<u64> = text.split('x').filter_map(|p| p.parse().ok()).collect();
    match <[u64; 3]>::try_from(parts) {
        Ok(grid) if (1..=64).contains(&grid.iter().product::<u64>()) && !grid.contains(&0) => {
            Ok(grid)
        }
        _ => Err("give three numbers such as 2x2x2, at most 64 blocks in all".into()),
    }
}

/// Edge of the cube that is measured between hosts: 8 MiB, with `--full` 64 MiB.
const BETWEEN_HOSTS: [u64; 2] = [128, 256];
/// Beyond this many bytes what takes the most memory is left out.
const LARGE: u64 = 2 << 30;

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    sheet.begin("strided", "GB/s", arguments.runs.statistic());
    let edges: &[u64] = match &arguments.edges[..] {
        [] if sheet.is_quick() => &[64],
        [] if arguments.full => &[128, 256, 512, 1024],
        [] => &[128, 256, 512],
        given => given,
    };
    for path in paths()? {
        for &edge in edges {
            arguments.on_one_host(edge, path, sheet)?;
        }
    }
    if arguments.runs.no_hosts {
        return Ok(());
    }
    let most = BETWEEN_HOSTS[usize::from(arguments.full)];
    let edge = edges.iter().copied().filter(|&e| e <= most).max();
    arguments.between_hosts(edge.unwrap_or(edges[0]), sheet)
}

impl Arguments {
    fn clients(&self) -> usize {
        self.grid.iter().product::<u64>() as usize
    }

    fn blocks(&self) -> String {
        let [a, b, c] = self.grid;
        format!("(block, block, block) onto {a}x{b}x{c}")
    }

    fn ways(&self) -> Vec<Way> {
        let sieve = Way {
            file: "striped",
            strategy: "sieving",
            ..Way::new("sieve", "striped(64KiB)")
        };
        let thesis = Way {
            name: "thesis",
            through_one_server: true,
            ..sieve.clone()
        };
        vec![
            Way::new("view", self.blocks()),
            Way::new("striped", "striped(64KiB)"),
            sieve,
            thesis,
        ]
    }

    fn rows(
        &self,
        measured: &Measurement,
        contiguous: Option<&Measurement>,
        (place, path, edge): (&str, Path, u64),
        statistic: Statistic,
    ) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        for way in ["view", "striped", "sieve", "thesis"] {
            for op in OPS {
                let (c, s, path) = (self.clients(), self.servers, path.word());
                let case = format!("{place}/{way}/{path}/{op}/N={edge}/c={c}/s={s}");
                let plain = match op {
                    "write" => "pwrite-tmpfs",
                    _ => "pread-tmpfs",
                };
                let all = ["view", "striped", "sieve", "thesis", "memcpy", plain];
                let others: Vec<&'static str> = all.into_iter().filter(|o| *o != way).collect();
                let mut row = measured.row(case, way, op, statistic, &others)?;
                if let Some(other) = contiguous.and_then(|m| m.outcome(&format!("contiguous/{op}")))
                    && !matches!(way, "sieve" | "thesis")
                {
                    let ns = measured.bytes as f64 / row.value;
                    row.ratios.push(("contiguous", statistic.of(other) / ns));
                }
                rows.push(row);
            }
        }
        Ok(rows)
    }

    fn on_one_host(&self, edge: u64, path: Path, sheet: &mut Sheet) -> Result<(), Error> {
        let bytes = edge.pow(3) * 4;
        let is_large = bytes >= LARGE;
        // Source and target of the clients, two files, and the plain one.
        let needed = bytes * if is_large { 4 } else { 6 } + (1 << 30);
        if free_memory() < needed {
            let (needed, free) = (needed >> 20, free_memory() >> 20);
            output::note(&format!(
                "N={edge} is left out: it needs {needed} MiB of memory, and {free} MiB are free"
            ));
            return Ok(());
        }
        let servers = self.servers as usize;
        let site = Site::start(&ServiceSpec::memory(servers, bytes * 3), None)?;
        let view = |rank: usize| format!("{} [{rank}]", self.blocks());
        let job = Job {
            path,
            with_memory: !is_large,
            ..self.job(&site, edge, &view)
        };
        let measured = job.run()?;
        drop(site);
        let contiguous = match is_large {
            true => None,
            false => Some(self.contiguous(bytes, path)?),
        };
        let rows = self.rows(
            &measured,
            contiguous.as_ref(),
            ("host", path, edge),
            Statistic::Best,
        )?;
        sheet.extend(rows)
    }

    /// The cube in all ways, by every process its block.
    fn job<'a>(&self, site: &'a Site, edge: u64, view: &'a dyn Fn(usize) -> String) -> Job<'a> {
        let (array, effort) = (
            format!("i32[{edge},{edge},{edge}]"),
            self.runs.turns.effort(),
        );
        Job::new(site, self.clients(), array, view, self.ways(), effort)
    }

    /// As many bytes, one run per process, one subfile per process.
    fn contiguous(&self, bytes: u64, path: Path) -> Result<Measurement, Error> {
        let servers = self.servers as usize;
        let site = Site::start(&ServiceSpec::memory(servers, bytes), None)?;
        let layout = format!("(block) onto {}", self.clients());
        let view = |rank: usize| format!("{layout} [{rank}]");
        let job = Job {
            path,
            array: format!("u8[{bytes}]"),
            ways: vec![Way::new("contiguous", layout.clone())],
            ..self.job(&site, 0, &view)
        };
        job.run()
    }

    fn between_hosts(&self, edge: u64, sheet: &mut Sheet) -> Result<(), Error> {
        let (servers, clients) = (self.servers as usize, self.clients());
        let hosts = match hosts(servers + clients, Some(self.runs.rate)) {
            Ok(hosts) => hosts,
            Err(why) => {
                output::note(&format!("rows between hosts are absent: {why}"));
                return Ok(());
            }
        };
        let spread = spread(&hosts, servers + clients, (0..servers).collect());
        let places: Vec<usize> = (servers..servers + clients).collect();
        let bytes = edge.pow(3) * 4;
        let site = Site::start(&ServiceSpec::memory(servers, bytes * 3), Some(&spread))?;
        let view = |rank: usize| format!("{} [{rank}]", self.blocks());
        let job = Job {
            on: Some((&hosts, &places)),
            ..self.job(&site, edge, &view)
        };
        let measured = job.run()?;
        let of = ("ns", Path::Socket, edge);
        let mut rows = self.rows(&measured, None, of, Statistic::Median)?;
        let links = servers.min(clients) as f64 * self.runs.rate as f64 / 8e3;
        for row in &mut rows {
            row.ratios.push(("link", row.value / links));
            row.set("mbit", self.runs.rate);
        }
        sheet.extend(rows)
    }
}
