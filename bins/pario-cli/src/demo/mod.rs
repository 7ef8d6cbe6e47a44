//! The demo of the service: a matrix that four processes write and four others read through other
//! views, and the phases of the paper's Tables 1 and 2, on real processes.
//!
//! Owns the order of things and the text; a process of it is in `worker`, the bytes in `matrix`. Any
//! wrong byte is a failure.

mod matrix;
mod worker;

use std::process::Command;
use std::time::Instant;

use clap::{Args, Subcommand};
use console::driven::Group;
use console::site::{ServiceSpec, Site};
use layout::ArrayType;
use serde_json::{Value, json};

use crate::commands::{Error, output};
use matrix::Cut;

/// Arguments of `pario demo`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    part: DemoProcess,
}

#[derive(Subcommand)]
enum DemoProcess {
    /// Start a service in memory, use it from eight processes, stop it
    Service(Service),
    /// Be one of the processes
    Worker(worker::Arguments),
}

#[derive(Args)]
struct Service {
    /// Rows and columns of the matrix of f64 that is written and read
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..=16384))]
    side: u64,

    /// Rows and columns of the byte matrices of the tables
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "256,512,1024,2048", value_parser = clap::value_parser!(u64).range(4..=16384))]
    tables: Vec<u64>,

    /// Accesses per row of the tables
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
}

/// Servers and processes on each side, as in the paper.
const COUNT: u64 = 4;
/// Memory of each server.
const MEMORY: u64 = 1 << 30;

/// Runs the demo, or one of its processes.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    match &arguments.part {
        DemoProcess::Service(service) => service.run(),
        DemoProcess::Worker(arguments) => worker::run(arguments),
    }
}

impl Service {
    fn run(&self) -> Result<(), Error> {
        let start = Instant::now();
        let wanted = ServiceSpec {
            memory: MEMORY,
            ..ServiceSpec::memory(COUNT as usize, 0)
        };
        let service = Site::start(&wanted, None)?;
        say(&format!(
            "A metadata manager and {COUNT} I/O servers in memory serve after {:.0} ms.\n",
            start.elapsed().as_secs_f64() * 1e3
        ))?;
        let mut writers = team(service.url())?;
        let mut readers = team(service.url())?;
        self.matrix(&mut writers, &mut readers)?;
        self.tables(&mut writers, &mut readers)?;
        drop((writers, readers));
        drop(service);
        say("All processes have ended.")
    }

    /// Written by rows, read by columns and by squares.
    fn matrix(&self, writers: &mut Group, readers: &mut Group) -> Result<(), Error> {
        let array: ArrayType = format!("f64[{0},{0}]", self.side).parse()?;
        let layout = Cut::Squares.layout();
        say(&format!(
            "{array} ({:.1} MiB), stored as {layout}:",
            array.bytes() as f64 / f64::from(1 << 20)
        ))?;
        let steps = [
            ("write", "processes write", Cut::Rows),
            ("read", "others read", Cut::Columns),
            ("read", "others read", Cut::Squares),
            ("read", "others read", Cut::Rows),
        ];
        for (what, words, cut) in steps {
            let team = match what {
                "write" => &mut *writers,
                _ => &mut *readers,
            };
            let answers = team.all(|rank| {
                json!({ "do": what, "path": "/matrix", "array": array.to_string(),
                        "layout": layout, "cut": cut.letter(), "rank": rank })
            })?;
            let slowest = answers.iter().filter_map(|a| a["seconds"].as_f64());
            let slowest = slowest.fold(0.0, f64::max);
            say(&format!(
                "  {COUNT} {words:<16} {:<14} {:>8.1} ms  {:>6.2} GB/s  {}",
                cut.words(),
                slowest * 1e3,
                array.bytes() as f64 / slowest.max(1e-9) / 1e9,
                match what {
                    "read" => "every byte right",
                    _ => "first touch of the memory included",
                }
            ))?;
        }
        say("")
    }

    /// The phases of the paper's tables.
    fn tables(&self, writers: &mut Group, readers: &mut Group) -> Result<(), Error> {
        say(&format!(
            "\
Each of {COUNT} processes writes its part of an N x N byte matrix through its view (log), all at once,
stored in three ways (phys): column blocks (c), square blocks (b), row blocks (r). The first three rows
of an N are the paper's; in the fourth the servers scatter. Times in us, medians of {} accesses, means
over the processes: t_i intersect (once per view), t_m map, t_g gather (0: sent as it lies), t_w first
byte sent to last answer; cont. = processes that send to one server; t_n network = t_w less scattering
and waiting; t_s scatter at a server (0: received where it belongs). memcpy and pwrite (tmpfs) move the
same bytes in the same turns; gain = rate in % of the first row.
",
            self.repeat
        ))?;
        say(&format!(
            "{:>5} {:>4} {:>3} | {:>7} {:>6} {:>7} {:>8} | {:>6} {:>8} {:>7} | {:>8} {:>8} | {:>7} {:>7}",
            "N",
            "phys",
            "log",
            "t_i",
            "t_m",
            "t_g",
            "t_w",
            "cont.",
            "t_n",
            "t_s",
            "memcpy",
            "pwrite",
            "MB/s",
            "gain %"
        ))?;
        for &side in &self.tables {
            let array = format!("u8[{side},{side}]");
            let mut slowest = None;
            let paper = Cut::ALL.map(|cut| (cut, Cut::Rows));
            for (cut, seen) in paper.into_iter().chain([(Cut::Rows, Cut::Columns)]) {
                let path = format!("/table-{side}-{}-{}", cut.letter(), seen.letter());
                let order = |what: &str, cut_of_view: Cut, rank: usize| {
                    json!({ "do": what, "path": path, "array": array, "layout": cut.layout(),
                            "cut": cut_of_view.letter(), "rank": rank, "repeat": self.repeat })
                };
                let answers = writers.all(|rank| order("write", seen, rank))?;
                readers.all(|rank| order("read", Cut::Squares, rank))?;
                let mean = |name: &str| {
                    let sum: f64 = answers.iter().filter_map(|a| a[name].as_f64()).sum();
                    sum / answers.len() as f64
                };
                let rate = mean("bytes") / mean("total").max(1e-9);
                let gain = rate / *slowest.get_or_insert(rate) * 100.0;
                say(&format!(
                    "{side:>5} {:>4} {:>3} | {:>7.1} {:>6.1} {:>7.0} {:>8.0} | {:>6.1} {:>8.0} {:>7.0} | {:>8.0} {:>8.0} | {rate:>7.0} {gain:>7.0}",
                    cut.letter(),
                    seen.letter(),
                    mean("t_i"),
                    mean("t_m"),
                    mean("t_g"),
                    mean("t_w"),
                    contention(&answers),
                    mean("t_n"),
                    mean("t_s"),
                    mean("memcpy"),
                    mean("pwrite"),
                ))?;
            }
        }
        say("\nEvery file was read back by 2 x 2 blocks: every byte right.")
    }
}

fn say(text: &str) -> Result<(), Error> {
    output::print(&format!("{text}\n"))
}

/// Mean number of processes that send to one server.
fn contention(answers: &[Value]) -> f64 {
    let mut senders: Vec<(u64, u64)> = Vec::new();
    let sent = answers
        .iter()
        .filter_map(|answer| answer["servers"].as_array());
    for server in sent.flatten().filter_map(Value::as_u64) {
        match senders.iter_mut().find(|(s, _)| *s == server) {
            Some((_, count)) => *count += 1,
            None => senders.push((server, 1)),
        }
    }
    let sum: u64 = senders.iter().map(|(_, count)| count).sum();
    sum as f64 / senders.len().max(1) as f64
}

/// Processes that work at the same time.
fn team(url: &str) -> Result<Group, Error> {
    let program = std::env::current_exe()
        .map_err(|e| format!("cannot find the program that is running: {e}"))?;
    let mut team = Group::default();
    for _ in 0..COUNT {
        let mut command = Command::new(&program);
        command.args(["demo", "worker", "--service", url]);
        team.add(command)?;
    }
    Ok(team)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contention_is_the_mean_over_servers() {
        let answers = [
            json!({ "servers": [1, 2, 3, 4] }),
            json!({ "servers": [1, 2] }),
        ];
        assert_eq!(contention(&answers), 1.5);
        assert_eq!(contention(&[]), 0.0);
    }
}
