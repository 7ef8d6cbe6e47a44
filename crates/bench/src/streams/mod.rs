//! `pario bench streams`: data-parallel streams in their three modes, against each other and against the ways the source rejects
//! (chapter 3 of the data-parallel source; tables 3.2 and 3.3, figures 3.7 and 3.10).
//!
//! ```text
//!  fig3.7/STORE/write|read/c=BYTES/s=SERVERS/NB|NB-masked|...|CB|IB|IB-other    modes; c: bytes of a VP per call
//!  table3.2|table3.3/STORE/s=SERVERS/b=BLOCK                                 IB by block size
//!  sweep/.../cb=|k=|buffers=                                                 block of CB, pointers, buffers for reading
//!  rejected/c=BYTES/B-01 ... C-03, cells                                     file models of 2.5, 2.6 and 2.11
//!  latency/NB|CB|IB                                                          until an asynchronous call returns, by VP
//! ```
//!
//! A row is the rate of all VPs together, from opening to closing, which syncs. Its ratios are against NB of the same turns
//! (and against IB for IB under another distribution); `ci95` is the half of the 95 % interval of the mean, relative to it.
//! `NB-masked` has a mask that is true for all, so that every call finds its mode by an exchange; `NB-sized` has sizes of each VP too,
//! which are all looked at.
//! Ways that are slow by nature do a part of the work, and are counted with the time of all of it.

mod goals;
mod lab;
mod rejected;

use std::time::Instant;

use clap::Args;
use console::{Error, refused};
use streams::{Access, Mode, StreamOptions, StreamQueue};

use super::contest::Outcome;
use super::flags::Turns;
use super::report::{Row, digits};
use super::sheet::Sheet;
use super::site::Store;
use lab::{Check, Lab, Trial, Way};

/// Arguments of `pario bench streams`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Virtual processors [default: 65536, with --quick 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(64..=1 << 24))]
    vps: Option<u64>,

    /// Members of the team, which are threads
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    members: u64,

    /// Servers
    #[arg(long, value_name = "S,...", value_delimiter = ',', default_value = "1,2,3,4", value_parser = clap::value_parser!(u64).range(1..=16))]
    servers: Vec<u64>,

    /// Where servers keep their bytes: memory, disk
    #[arg(long, value_name = "S,...", value_delimiter = ',', default_value = "memory,disk", value_parser = store_of)]
    stores: Vec<Store>,

    #[command(flatten)]
    turns: Turns,
}

/// Bytes of every VP in all: 64 doubles.
const BYTES: usize = 512;

/// Table 3.2 and table 3.3 of the source: percent of the rate with blocks of 64 bytes, by servers and block.
const PRINTED: [(&str, [[u32; 3]; 4]); 2] = [
    (
        "table3.2",
        [[85, 62, 45], [81, 65, 37], [83, 62, 39], [90, 72, 49]],
    ),
    (
        "table3.3",
        [[99, 81, 63], [81, 85, 59], [84, 70, 53], [94, 83, 63]],
    ),
];

fn store_of(text: &str) -> Result<Store, String> {
    [Store::Memory, Store::Disk]
        .into_iter()
        .find(|store| word(*store) == text)
        .ok_or_else(|| "give memory or disk".into())
}

fn word(store: Store) -> &'static str {
    match store {
        Store::Memory => "memory",
        Store::Disk => "disk",
    }
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let turns = arguments.turns.turns;
    sheet.begin(
        "streams",
        "MB/s",
        format!("mean of {turns}, with the 95 % interval"),
    );
    let vps = arguments
        .vps
        .unwrap_or(if sheet.is_quick() { 16_384 } else { 65_536 });
    sheet.fact("vps", vps);
    sheet.fact("members", arguments.members);
    for &store in &arguments.stores {
        for &servers in &arguments.servers {
            if sheet.is_quick() && servers != arguments.servers[0] {
                continue;
            }
            let lab = Lab::start(store, servers as usize, vps, arguments.members as usize)?;
            modes(&lab, turns, sheet)?;
            table(&lab, turns, sheet)?;
            if servers == arguments.servers[0] {
                sweep(&lab, turns, sheet)?;
            }
            if servers == arguments.servers[0] && store == Store::Memory {
                rejected::run(&lab, turns, sheet)?;
                sheet.unit("ns");
                latency(&lab, turns, sheet)?;
                sheet.unit("MB/s");
            }
        }
    }
    goals::print(&sheet.rows);
    Ok(())
}

/// Takes turns, the first of which warms up and is not counted: seconds of each trial.
fn take_turns(lab: &Lab, trials: &[Trial<'_>], turns: u64) -> Result<Vec<Vec<f64>>, Error> {
    let mut times = vec![Vec::new(); trials.len()];
    for turn in 0..=turns {
        for (trial, times) in trials.iter().zip(&mut times) {
            let check = match turn {
                0 => Check::Contents,
                _ => Check::Nothing,
            };
            let seconds = lab.time(trial, check).map_err(refused)?;
            if turn > 0 {
                times.push(seconds);
            }
        }
    }
    Ok(times)
}

/// The mean, and half the interval in which it lies in 95 of 100 cases, relative to it.
fn mean(times: &[f64]) -> (f64, f64) {
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let squares = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>();
    let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
    (mean, 1.96 * deviation / count.sqrt() / mean)
}

/// Rows of trials. Ratios are of medians: the trial against those that are named.
fn rows(
    lab: &Lab,
    case: &str,
    trials: &[Trial<'_>],
    against: &[&'static str],
    turns: u64,
    sheet: &mut Sheet,
) -> Result<(), Error> {
    let wanted = |trial: &Trial<'_>| sheet.wants(&format!("{case}/{}", trial.name));
    if !trials.iter().any(wanted) {
        return Ok(());
    }
    let times = take_turns(lab, trials, turns)?;
    let median = |times: &[f64]| Outcome::of(times.to_vec()).map_or(0.0, |o| o.median);
    for (trial, own) in trials.iter().zip(&times) {
        let (seconds, interval) = mean(own);
        let rate = lab.bytes() as f64 / seconds / 1e6;
        let mut row = Row::new(format!("{case}/{}", trial.name), rate, "MB/s");
        for (other, theirs) in trials.iter().zip(&times) {
            if against.contains(&other.name) && other.name != trial.name {
                row.ratios.push((other.name, median(theirs) / median(own)));
            }
        }
        row.set("ci95", digits(interval, 3));
        sheet.push(row)?;
    }
    Ok(())
}

/// Figures 3.7 and 3.10, and what finding the mode costs.
fn modes(lab: &Lab, turns: u64, sheet: &mut Sheet) -> Result<(), Error> {
    let (store, servers) = (word(lab.store), lab.servers);
    for call in [8, BYTES] {
        let write = |name, least, way| Trial::write(name, "/modes", lab.options(least), call, way);
        let trials = [
            write("NB", Mode::Nb, Way::Scalar),
            write("NB-masked", Mode::Nb, Way::Masked),
            write("NB-sized", Mode::Nb, Way::Sized),
            write("CB", Mode::Cb, Way::Scalar),
            write("IB", Mode::Ib, Way::Scalar),
        ];
        let case = format!("fig3.7/{store}/write/c={call}/s={servers}");
        rows(lab, &case, &trials, &["NB"], turns, sheet)?;
        for (path, least) in [("/nb", Mode::Nb), ("/cb", Mode::Cb), ("/ib", Mode::Ib)] {
            let trial = Trial::write("", path, lab.options(least), call, Way::Scalar);
            lab.time(&trial, Check::Nothing).map_err(refused)?;
        }
        let read = |name, path, way| Trial::read(name, path, call, way);
        let trials = [
            read("NB", "/nb", Way::Scalar),
            read("NB-masked", "/nb", Way::Masked),
            read("NB-sized", "/nb", Way::Sized),
            read("CB", "/cb", Way::Scalar),
            read("IB", "/ib", Way::Scalar),
            read("IB-other", "/ib", Way::Cyclic),
            read("NB-other", "/nb", Way::Cyclic),
        ];
        let case = format!("fig3.10/{store}/read/c={call}/s={servers}");
        rows(lab, &case, &trials, &["NB", "IB"], turns, sheet)?;
    }
    Ok(())
}

/// Tables 3.2 and 3.3: IB by block size, each against blocks of 64 bytes.
fn table(lab: &Lab, turns: u64, sheet: &mut Sheet) -> Result<(), Error> {
    let (store, servers) = (word(lab.store), lab.servers);
    let blocks = [("b=64", 64u64), ("b=32", 32), ("b=16", 16), ("b=8", 8)];
    let paths = ["/b64", "/b32", "/b16", "/b8"];
    let of_block = |block| lab.options(Mode::Ib).ib_block(block);
    for (index, (name, printed)) in PRINTED.iter().enumerate() {
        let trials: Vec<Trial<'_>> = blocks
            .iter()
            .zip(paths)
            .map(|((name, block), path)| match index {
                0 => Trial::write(name, path, of_block(*block), 8, Way::Scalar),
                _ => Trial::read(name, path, 8, Way::Scalar),
            })
            .collect();
        let before = sheet.rows.len();
        let case = format!("{name}/{store}/s={servers}");
        if index == 1 {
            for (path, (_, block)) in paths.iter().zip(&blocks) {
                let trial = Trial::write("", path, of_block(*block), 8, Way::Scalar);
                lab.time(&trial, Check::Nothing).map_err(refused)?;
            }
        }
        rows(lab, &case, &trials, &["b=64"], turns, sheet)?;
        let of_source = servers.checked_sub(1).and_then(|at| printed.get(at));
        for ((block, _), percent) in blocks[1..].iter().zip(of_source.into_iter().flatten()) {
            let new = sheet.rows[before..].iter_mut();
            for row in new.filter(|row| row.case.ends_with(&format!("/{block}"))) {
                row.set("printed", f64::from(*percent) / 100.0);
            }
        }
    }
    Ok(())
}

/// The other settings of statement 92.
fn sweep(lab: &Lab, turns: u64, sheet: &mut Sheet) -> Result<(), Error> {
    let store = word(lab.store);
    let of_cb = |bytes| lab.options(Mode::Cb).cb_block(bytes);
    let trials = [
        Trial::write("cb=8", "/sweep", of_cb(8), 8, Way::Scalar),
        Trial::write("cb=32", "/sweep", of_cb(32), 8, Way::Scalar),
    ];
    rows(
        lab,
        &format!("sweep/{store}/write"),
        &trials,
        &["cb=8"],
        turns,
        sheet,
    )?;
    let of_pointers = |count| lab.options(Mode::Ib).ib_block(64).pointers(count);
    let pointers = [("k=2", "/k2", 2), ("k=6", "/k6", 6), ("k=14", "/k14", 14)];
    let write = |(name, path, count): (&'static str, &'static str, u64)| {
        Trial::write(name, path, of_pointers(count), 8, Way::Scalar)
    };
    rows(
        lab,
        &format!("sweep/{store}/write"),
        &pointers.map(write),
        &["k=2"],
        turns,
        sheet,
    )?;
    for trial in pointers.map(write) {
        lab.time(&trial, Check::Nothing).map_err(refused)?;
    }
    let read = |(name, path, _): (&'static str, &'static str, u64)| {
        Trial::read(name, path, 8, Way::Scalar)
    };
    rows(
        lab,
        &format!("sweep/{store}/read"),
        &pointers.map(read),
        &["k=2"],
        turns,
        sheet,
    )?;
    let buffers = [("buffers=2", 2), ("buffers=8", 8), ("buffers=64", 64)];
    let trials = buffers.map(|(name, count)| {
        let options = StreamOptions::new(Access::Read).read_buffers(count);
        Trial::read(name, "/k6", 8, Way::Elemental).with(options)
    });
    rows(
        lab,
        &format!("sweep/{store}/read"),
        &trials,
        &["buffers=2"],
        turns,
        sheet,
    )
}

/// How long asynchronous writes keep the program, by VP.
fn latency(lab: &Lab, turns: u64, sheet: &mut Sheet) -> Result<(), Error> {
    // Microseconds of the source.
    for (name, least, printed) in [
        ("NB", Mode::Nb, 0.000_839),
        ("CB", Mode::Cb, 0.086),
        ("IB", Mode::Ib, 6.55),
    ] {
        let case = format!("latency/{name}");
        if !sheet.wants(&case) {
            continue;
        }
        let (mut asked, mut done) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            let spent = lab.members(|team| {
                let stream = lab.open(team, "/later", &lab.options(least), Way::Scalar)?;
                let count = stream.emulation().count();
                let queue = StreamQueue::new(stream);
                let mut memory = vec![7; count * 8];
                let (mut asked, mut done) = (0.0, 0.0);
                for _ in 0..16 {
                    let begin = Instant::now();
                    let request = queue.write(streams::Context::everywhere(), memory, 8);
                    asked += begin.elapsed().as_nanos() as f64;
                    memory = request.wait()?;
                    done += begin.elapsed().as_nanos() as f64;
                }
                queue.finish()?.close()?;
                let vps = (16 * count.max(1)) as f64;
                Ok((asked / vps, done / vps))
            });
            let spent = spent.map_err(refused)?;
            let most = |of: fn(&(f64, f64)) -> f64| spent.iter().map(of).fold(0.0, f64::max);
            asked.push(most(|pair| pair.0));
            done.push(most(|pair| pair.1));
        }
        let (Some(asked), Some(done)) = (Outcome::of(asked), Outcome::of(done)) else {
            continue;
        };
        let mut row = Row::new(case, asked.median, "ns").spread(asked.spread());
        row.set("done_ns", digits(done.median, 2));
        row.set("printed_ns", printed * 1e3);
        sheet.push(row)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_mean() {
        let (seconds, interval) = mean(&[2.0, 4.0, 6.0, 8.0]);
        assert_eq!(seconds, 5.0);
        // The standard deviation is 2.582, that of the mean half of it.
        assert!((interval - 1.96 * 1.291 / 5.0).abs() < 1e-3, "{interval}");
    }
}
