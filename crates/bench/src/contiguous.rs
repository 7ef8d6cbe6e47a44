//! `pario bench contiguous`: one shared file, of which every process has one contiguous part (the
//! thesis' first experiment).
//!
//! ```text
//!  host|ns / view|striped / socket|direct / write|read / MB=SIZE / c=CLIENTS / s=SERVERS
//!  ns/open|ns/matching=X / ...       links without a limit; clients beside the servers
//! ```
//!
//! `view` keeps one subfile per process, `striped` stripes of 64 KiB. Clients are not always a multiple
//! of the servers. On `ns` clients and servers are on hosts of their own whose links have a rate; ratio
//! `link` is the share of what the slower side's links carry together. `disk-fsync` and `disk-cold`
//! are a file on the local disk, written until it is there, and read past the host's cache: remote memory
//! against a local disk. In the `matching` rows every host has a client and a server, and the layout
//! decides which share X of a client's bytes its own server has; column `near` is the share that clients
//! have found there.

use clap::Args;
use console::{Error, output};
use testkit::hosts::Hosts;

use super::flags::Runs;
use super::parallel::{Job, OPS, Statistic, Way, free_memory, homes};
use super::site::{ServiceSpec, Site, hosts, spread};
use super::workers::{Path, paths};
use super::{Sheet, digits};

/// Arguments of `pario bench contiguous`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Sizes of the file in MB [default: 64,256, with --full 600, 1200 and 2400 too, with --quick 16]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=65536))]
    megabytes: Vec<u64>,

    /// Processes and servers, as in 4x4,5x3
    #[arg(long, value_name = "CxS,...", value_delimiter = ',', default_value = "4x4,5x3", value_parser = pair)]
    counts: Vec<(usize, usize)>,

    /// Servers between hosts, with four processes
    #[arg(long, value_name = "S,...", value_delimiter = ',', default_value = "1,2,4", value_parser = clap::value_parser!(u64).range(1..=16))]
    servers: Vec<u64>,

    /// Size of the file between hosts, in MB
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=65536))]
    between: u64,

    #[command(flatten)]
    runs: Runs,

    /// Also 0.6, 1.2 and 2.4 GB
    #[arg(long)]
    full: bool,
}

fn pair(text: &str) -> Result<(usize, usize), String> {
    let parsed = text
        .split_once('x')
        .and_then(|(c, s)| Some((c.parse().ok()?, s.parse().ok()?)));
    match parsed {
        Some((c, s)) if (1..=64).contains(&c) && (1..=64).contains(&s) => Ok((c, s)),
        _ => Err("give processes and servers, such as 5x3, at most 64 each".into()),
    }
}

/// Processes between hosts.
const CLIENTS: usize = 4;

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    sheet.begin("contiguous", "GB/s", arguments.runs.statistic());
    let sizes: &[u64] = match &arguments.megabytes[..] {
        [] if sheet.is_quick() => &[16],
        [] if arguments.full => &[64, 256, 600, 1200, 2400],
        [] => &[64, 256],
        given => given,
    };
    for path in paths()? {
        for &megabytes in sizes {
            for &counts in &arguments.counts {
                arguments.on_one_host(megabytes, counts, path, sheet)?;
            }
        }
    }
    match arguments.runs.no_hosts {
        true => Ok(()),
        false => arguments.between_hosts(sheet),
    }
}

fn parts(clients: usize) -> String {
    format!("(block) onto {clients}")
}

fn ways(clients: usize) -> Vec<Way> {
    vec![
        Way::new("view", parts(clients)),
        Way::new("striped", "striped(64KiB)"),
    ]
}

impl Arguments {
    fn on_one_host(
        &self,
        megabytes: u64,
        (clients, servers): (usize, usize),
        path: Path,
        sheet: &mut Sheet,
    ) -> Result<(), Error> {
        let bytes = megabytes * 1_000_000;
        let needed = bytes * 5 + (1 << 30);
        if free_memory() < needed {
            let (needed, free) = (needed >> 20, free_memory() >> 20);
            output::note(&format!(
                "MB={megabytes} is left out: it needs {needed} MiB of memory, and {free} MiB are free"
            ));
            return Ok(());
        }
        let site = Site::start(&ServiceSpec::memory(servers, bytes * 2), None)?;
        let view = |rank: usize| format!("{} [{rank}]", parts(clients));
        let job = Job {
            path,
            with_memory: true,
            with_disk: megabytes <= 64,
            ..self.job(&site, clients, bytes, &view)
        };
        let measured = job.run()?;
        for way in ["view", "striped"] {
            for op in OPS {
                let path = path.word();
                let case = format!("host/{way}/{path}/{op}/MB={megabytes}/c={clients}/s={servers}");
                let against: &[&'static str] = match op {
                    "write" => &["memcpy", "pwrite-tmpfs", "disk-fsync"],
                    _ => &["memcpy", "pread-tmpfs", "disk-cold"],
                };
                sheet.push(measured.row(case, way, op, Statistic::Best, against)?)?;
            }
        }
        Ok(())
    }

    /// Both layouts, by every process its part.
    fn job<'a>(
        &self,
        site: &'a Site,
        clients: usize,
        bytes: u64,
        view: &'a dyn Fn(usize) -> String,
    ) -> Job<'a> {
        let (array, effort) = (format!("u8[{bytes}]"), self.runs.turns.effort());
        Job::new(site, clients, array, view, ways(clients), effort)
    }

    fn between_hosts(&self, sheet: &mut Sheet) -> Result<(), Error> {
        let cases = self
            .servers
            .iter()
            .map(|&s| (s as usize, Some(self.runs.rate)));
        // Without a limit once, with as many servers as there are clients.
        for (servers, rate) in cases.chain([(CLIENTS, None)]) {
            let hosts = match hosts(servers + CLIENTS, rate) {
                Ok(hosts) => hosts,
                Err(why) => {
                    output::note(&format!("rows between hosts are absent: {why}"));
                    return Ok(());
                }
            };
            self.remote(&hosts, servers, rate, sheet)?;
        }
        self.matching(sheet)
    }

    fn remote(
        &self,
        hosts: &Hosts,
        servers: usize,
        rate: Option<u64>,
        sheet: &mut Sheet,
    ) -> Result<(), Error> {
        let bytes = self.between * 1_000_000;
        let spread = spread(hosts, servers + CLIENTS, (0..servers).collect());
        let places: Vec<usize> = (servers..servers + CLIENTS).collect();
        let site = Site::start(&ServiceSpec::memory(servers, bytes * 2), Some(&spread))?;
        let view = |rank: usize| format!("{} [{rank}]", parts(CLIENTS));
        let job = Job {
            on: Some((hosts, &places)),
            with_disk: rate.is_none(),
            ..self.job(&site, CLIENTS, bytes, &view)
        };
        let measured = job.run()?;
        let place = match rate {
            Some(_) => "ns",
            None => "ns/open",
        };
        for way in ["view", "striped"] {
            for op in OPS {
                let megabytes = self.between;
                let case =
                    format!("{place}/{way}/socket/{op}/MB={megabytes}/c={CLIENTS}/s={servers}");
                let disk = match op {
                    "write" => "disk-fsync",
                    _ => "disk-cold",
                };
                let mut row = measured.row(case, way, op, Statistic::Median, &[disk])?;
                if let Some(rate) = rate {
                    let links = servers.min(CLIENTS) as f64 * rate as f64 / 8e3;
                    row.ratios.push(("link", row.value / links));
                    row.set("mbit", rate);
                }
                sheet.push(row)?;
            }
        }
        Ok(())
    }

    /// Clients beside the servers: the part of its bytes that a client finds on its own host is X.
    fn matching(&self, sheet: &mut Sheet) -> Result<(), Error> {
        let hosts = match hosts(CLIENTS, Some(self.runs.rate)) {
            Ok(hosts) => hosts,
            Err(why) => {
                output::note(&format!("matching rows are absent: {why}"));
                return Ok(());
            }
        };
        let spread = spread(&hosts, CLIENTS, (0..CLIENTS).collect());
        let len = self.between * 1_000_000 / CLIENTS as u64;
        let site = Site::start(
            &ServiceSpec::memory(CLIENTS, len * CLIENTS as u64 * 3),
            Some(&spread),
        )?;
        let mut whole = [None; 2];
        for (matching, shift) in [("1", 0), ("0.5", 1), ("0", 2)] {
            let name: &'static str = ["near", "half", "far"][shift as usize];
            let array = format!("u8[{}]", len * CLIENTS as u64);
            let way = Way::new(name, parts(CLIENTS));
            // Clients are put beside their bytes, wherever those are.
            let places = homes(&site, &hosts, &array, &way)?;
            let view = |rank: usize| {
                // Shifted by half a part and by a whole one; the last goes around.
                let from = (rank as u64 * len + shift * len / 2) % (len * CLIENTS as u64);
                let to = from + len;
                let end = len * CLIENTS as u64;
                match to <= end {
                    true => format!("slice[{from}:{to}]"),
                    false => format!(
                        "falls{{(0,{}),({from},{})}} period {end}",
                        to - end - 1,
                        end - 1
                    ),
                }
            };
            let job = Job {
                on: Some((&hosts, &places)),
                ways: vec![way],
                ..self.job(&site, CLIENTS, len * CLIENTS as u64, &view)
            };
            let measured = job.run()?;
            for (i, op) in OPS.into_iter().enumerate() {
                let megabytes = self.between;
                let case = format!(
                    "ns/matching={matching}/socket/{op}/MB={megabytes}/c={CLIENTS}/s={CLIENTS}"
                );
                let mut row = measured.row(case, name, op, Statistic::Median, &[])?;
                let all: f64 = *whole[i].get_or_insert(row.value);
                row.set("cost", digits(all / row.value, 2));
                row.set("near", digits(measured.near(name, op), 3));
                row.set("mbit", self.runs.rate);
                sheet.push(row)?;
            }
        }
        Ok(())
    }
}
