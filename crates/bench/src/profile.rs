//! `pario bench profile`: what recording the use of a file costs an access.
//!
//! ```text
//!  direct|socket / read|write / b=BYTES     value: time of an access while it is recorded; `off`: the same without
//! ```
//!
//! Handles of one file in one process take turns, all but one of them with the hint `profile=off`. Accesses are at
//! places that do not follow each other. Column `extra_ns` is what recording adds, `noise_ns` what a second handle
//! that does not record differs by from the first: less than that is not seen. Turns are short and many, so that what
//! the machine does meanwhile meets all alike.
//!
//! Where an access takes microseconds, nanoseconds more are not seen in its time. So the counting is measured alone
//! too, as accesses do it, after so many bytes were copied, which drives the counters out of the nearest caches:
//! `alone_ns`, and `alone_percent` of the access without recording.

use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

use advise::profile::Recorder;
use clap::Args;
use console::Error;
use serde_json::json;

use super::contest::Effort;
use super::site::{ServiceSpec, Site};
use super::workers::{Rounds, Team, paths, rounds_of, whole};
use super::{Row, Sheet, digits};

/// Arguments of `pario bench profile`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Sizes of accesses
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "8,64,512,4096,65536,1048576", value_parser = clap::value_parser!(u64).range(1..=16 << 20))]
    sizes: Vec<u64>,

    /// Turns per contestant, at least 7 [default: 151, with --quick 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(7..))]
    turns: Option<u64>,

    /// Least milliseconds of a turn
    #[arg(long, value_name = "MS", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    turn_ms: u64,
}

/// Bytes of the file that is accessed.
const FILE: u64 = 16 << 20;

/// Accesses whose recording is measured alone.
const ALONE: usize = 4001;

/// What counting one access of so many bytes takes, in nanoseconds: the mean of the middle half of single ones less that
/// of nothing. A mean, since clocks go in steps that are as long.
fn alone(op: &str, bytes: u64) -> f64 {
    let writes = op == "write";
    let recorder = Recorder::default();
    let slot = recorder.slot(1);
    let source = vec![1u8; FILE as usize];
    let mut target = vec![2u8; bytes as usize];
    let mut times = [Vec::with_capacity(ALONE), Vec::with_capacity(ALONE)];
    let places = FILE / bytes;
    for i in 0..2 * ALONE {
        let at = random::mix(i as u64) % places * bytes;
        target.copy_from_slice(black_box(&source[at as usize..(at + bytes) as usize]));
        black_box(&mut target);
        let started = Instant::now();
        if i % 2 == 0 {
            let recorder = black_box(&recorder);
            recorder.moved(slot, black_box(writes), bytes);
            black_box(recorder.record(writes, at, bytes));
        }
        times[i % 2].push(started.elapsed().as_nanos() as f64);
    }
    let [with, without] = times.map(|mut list| {
        list.sort_by(f64::total_cmp);
        let middle = &list[ALONE / 4..ALONE - ALONE / 4];
        middle.iter().sum::<f64>() / middle.len() as f64
    });
    with - without
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let turns = arguments
        .turns
        .unwrap_or(if sheet.is_quick() { 15 } else { 151 });
    let statistic = format!("best of {turns} turns; columns with `median`: their median");
    sheet.begin("profile", "ns", statistic);
    for path in paths()? {
        let site = Site::start(&ServiceSpec::memory(1, 2 * FILE), None)?;
        let mut team = Team::start(&site, 1, path, None)?;
        team.parts(&format!("u8[{FILE}]"), 3, whole)?;
        for (name, profile) in [("on", "on"), ("off", "off"), ("double", "off")] {
            team.every(
                &json!({ "do": "open", "name": name, "path": "/f", "create": true,
                                "layout": "whole", "profile": profile }),
            )?;
            team.write(name)?;
        }
        let team = RefCell::new(team);
        for op in ["read", "write"] {
            for &bytes in &arguments.sizes {
                // What is written carries a stamp that the other handles do not know of.
                {
                    let mut team = team.borrow_mut();
                    let stamp = team.stamp();
                    for name in ["on", "off", "double"] {
                        team.every(&json!({ "do": "write", "name": name, "stamp": stamp }))?;
                    }
                }
                let order = |name: &str| json!({ "do": "repeat", "what": op, "name": name, "bytes": bytes, "times": 1 });
                let mut rounds = [
                    Rounds::pario(&team, order("on")),
                    Rounds::yardstick(&team, order("off")),
                    Rounds::yardstick(&team, order("double")),
                ];
                let effort = Effort::new(turns as usize, arguments.turn_ms as f64 * 1e6);
                let outcomes = rounds_of(effort, &mut rounds)?;
                let on = outcomes[0].ok_or("the recorded access did not run")?;
                let case = format!("{}/{op}/b={bytes}", path.word());
                let mut row = Row::new(case, on.best, "ns").spread(on.spread());
                if let Some(off) = outcomes[1] {
                    row.ratios.push(("off", off.best / on.best));
                    let counted = alone(op, bytes);
                    let mut more = |name: &str, ns: f64| row.set(name, digits(ns, 2));
                    more("extra_ns", on.best - off.best);
                    more("extra_median_ns", on.median - off.median);
                    more("alone_ns", counted);
                    more("alone_percent", 100.0 * counted / off.best);
                    if let Some(double) = outcomes[2] {
                        more("noise_ns", double.best - off.best);
                        more("noise_median_ns", double.median - off.median);
                    }
                }
                sheet.push(row)?;
            }
        }
    }
    Ok(())
}
