//! Real runs of chapter 6: four forms of collective prefetch, with computation between the reads.
//!
//! ```text
//!  real/host/e=256/random/buffer=1024KiB/PB-PRE    one host, disks of 200 MB/s, exponential time to compute
//!  real/net/e=8/whole/buffer=2048KiB/PBX-PRE       servers behind links of 1 Gbit/s, disks of 50 MB/s
//! ```
//!
//! Ranks are threads of one process, each with a client of its own, and read a file segment by segment through
//! interleaved records. A turn reads some segments one after the other; forms take turns, five times, each
//! where the one before ended. What counts is the time from request to satisfaction, as in the thesis,
//! without the first requests of a turn, which nobody can foresee. `none` is the ratio to no prefetch in the
//! same run.
//!
//! `random` computes for an exponential time whose mean is that of a read without prefetch, `equal` for just that
//! long, `whole` for four times that. `half` is `whole` with a buffer for half of a segment.
//!
//! `predicted` is the same ratio by the idea of the source: a read takes what it takes when all is in memory (`floor_ms`, measured after the
//! same computations; `awake_ms` is the same without any), and of the rest
//! what was neither hidden behind the computation nor had room in the buffer. `total` is the time of computing and reading without prefetch
//! by that with it; it cannot exceed (compute + io) / max(compute, io).

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use client::{Client, ConnectOptions, Hints, OpenOptions, Places, SharedBytesMut, Team};
use serde_json::{Value, json};

use crate::contest::Outcome;
use crate::sheet::Sheet;
use crate::site::{ServiceSpec, Site, Store, spread};
use crate::{Row, digits};
use console::Error;
use testkit::hosts::Hosts;

const RANKS: usize = 4;
const SERVERS: usize = 2;
const TURNS: usize = 5;
/// Turns with all in memory.
const FLOOR_TURNS: usize = 3;
const SEGMENT: u64 = 4 << 20;
const SEGMENTS: u64 = 48;
/// Segments of a turn, and how many of them are not measured: servers foresee nothing before they have seen a few.
const READS: u64 = 16;
const FIRST: u64 = 4;
const MBIT: u64 = 1000;
/// Six times as much is read between two reads of a byte.
const MEMORY: u64 = SEGMENT * SEGMENTS / SERVERS as u64 / 6;
const FORMS: [(&str, &str); 4] = [
    ("NO-PRE", "none"),
    ("DISK-PRE", "disk"),
    ("PB-PRE", "packets"),
    ("PBX-PRE", "exchanged"),
];

/// Where the processes are, and how fast the disks.
#[derive(Clone, Copy)]
struct Scene {
    place: &'static str,
    disk_mb_s: u64,
}

/// Record bytes, workload, bytes of the buffer of a server.
fn settings(sheet: &Sheet) -> Vec<(u64, &'static str, u64)> {
    // What a server has of a segment.
    let whole = SEGMENT / SERVERS as u64;
    if sheet.step(2) == 2 {
        return vec![(8, "equal", whole)];
    }
    let mut list = Vec::new();
    for record in [8, 256] {
        for buffer in [whole / 8, whole / 2, whole] {
            list.push((record, "random", buffer));
        }
        list.push((record, "equal", whole));
        list.push((record, "whole", whole));
        list.push((record, "half", whole / 2));
    }
    list
}

/// By the idea of the source, the mean time of a read: the part that is not in the buffer, or for which there was no
/// time, comes from the disk.
fn predicted(none: f64, floor: f64, room: f64, computes: &[f64]) -> f64 {
    let disk = (none - floor).max(0.0);
    let times = computes.iter().map(|compute| {
        let hidden = compute.min(disk * room);
        floor + disk - hidden
    });
    times.sum::<f64>() / computes.len() as f64
}

pub(super) fn add(sheet: &mut Sheet) -> Result<(), Error> {
    let host = Scene {
        place: "host",
        disk_mb_s: 200,
    };
    on_site(sheet, host, None)?;
    let net = Scene {
        place: "net",
        disk_mb_s: 50,
    };
    if !is_wanted(sheet, net) {
        return Ok(());
    }
    // The servers have slow links; that of the ranks is as fast as all of theirs together.
    let mut rates = vec![Some(MBIT); SERVERS];
    rates.extend([Some(MBIT * SERVERS as u64), None]);
    match Hosts::with_rates(&rates) {
        Ok(hosts) => on_site(sheet, net, Some(&hosts)),
        Err(why) => {
            eprintln!("real/net is left out: {why}");
            Ok(())
        }
    }
}

fn case(scene: Scene, (record, workload, buffer): (u64, &str, u64), form: &str) -> String {
    format!(
        "real/{}/e={record}/{workload}/buffer={}KiB/{form}",
        scene.place,
        buffer >> 10
    )
}

fn wanted(sheet: &Sheet, scene: Scene) -> Vec<(u64, &'static str, u64)> {
    let is_wanted = |setting: &(u64, &'static str, u64)| {
        let mut forms = FORMS.iter();
        forms.any(|(form, _)| sheet.wants(&case(scene, *setting, form)))
    };
    let all = settings(sheet).into_iter();
    all.filter(is_wanted).collect()
}

fn is_wanted(sheet: &Sheet, scene: Scene) -> bool {
    !wanted(sheet, scene).is_empty()
}

fn on_site(sheet: &mut Sheet, scene: Scene, hosts: Option<&Hosts>) -> Result<(), Error> {
    let wanted = wanted(sheet, scene);
    if wanted.is_empty() {
        return Ok(());
    }
    let spread = hosts.map(|hosts| spread(hosts, SERVERS + 1, (0..SERVERS).collect()));
    let rate = scene.disk_mb_s * 1_000_000;
    let site = ServiceSpec {
        store: Store::Disk,
        memory: MEMORY,
        options: ["--disk-rate".into(), rate.to_string()].into(),
        ..ServiceSpec::disk(SERVERS)
    };
    let site = Site::start(&site, spread.as_ref())?;
    for (record, workload, buffer) in wanted {
        let order = json!({
            "url": site.url(), "record": record, "workload": workload, "buffer": buffer,
        });
        let program = crate::this_program()?;
        let mut command = match hosts {
            Some(hosts) => hosts.command(SERVERS, &program),
            None => Command::new(&program),
        };
        command.args(["prefetch", "--inside", &order.to_string()]);
        command
            .env("PARIO_DIRECT", "0")
            .env_remove("PARIO_STRATEGY");
        match &site.secret {
            Some(path) => command.env("PARIO_SECRET", path),
            None => command.env_remove("PARIO_SECRET"),
        };
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| format!("cannot start a process: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().next().unwrap_or_default();
        let found: Value = serde_json::from_str(line)
            .map_err(|e| format!("the ranks of {workload} e={record} failed: {e}"))?;
        let times = |form: &str| -> Vec<f64> {
            let list = found[form]["seconds"].as_array();
            list.into_iter()
                .flatten()
                .filter_map(Value::as_f64)
                .collect()
        };
        let rate = |seconds: f64| SEGMENT as f64 / seconds / 1e6;
        let number = |name: &str| found[name].as_f64().unwrap_or(0.0);
        let (compute, floor) = (number("compute_ms") / 1e3, number("floor_ms") / 1e3);
        let computes: Vec<f64> = (FIRST..READS)
            .map(|n| compute * factor(workload, n))
            .collect();
        let mean = computes.iter().sum::<f64>() / computes.len() as f64;
        let room = (buffer * SERVERS as u64) as f64 / SEGMENT as f64;
        let none = Outcome::of(times("NO-PRE"))
            .ok_or("nothing was measured")?
            .median;
        for (form, _) in FORMS {
            let list = times(form);
            let outcome = Outcome::of(list.clone()).ok_or("nothing was measured")?;
            let (median, most) = (outcome.median, list.into_iter().fold(0.0, f64::max));
            let case = case(scene, (record, workload, buffer), form);
            let mut row = Row::new(case, rate(median), "MB/s")
                .spread((most - outcome.best) / median)
                .ratios([("none", none / median)])
                .column("prefetched_of_bytes", found[form]["share"].clone());
            for name in ["compute_ms", "floor_ms", "awake_ms"] {
                row.set(name, found[name].clone());
            }
            if form != "NO-PRE" {
                let ideal = predicted(none, floor, room.min(1.0), &computes);
                row.set("predicted", digits(none / ideal, 2));
                row.set("total", digits((mean + none) / (mean + median), 2));
            }
            sheet.push(row)?;
        }
    }
    Ok(())
}

/// Waits without doing anything: the time that a program computes.
fn compute(time: Duration) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
}

/// How long a program computes before a read, by the mean.
fn factor(workload: &str, number: u64) -> f64 {
    match workload {
        // The same ones in every run.
        "random" => random::Random::new(number).exponential(1.0),
        _ => 1.0,
    }
}

/// The ranks: prints what they took as one line of JSON.
pub(super) fn inside(order: &str) -> Result<(), Error> {
    let order: Value = serde_json::from_str(order)?;
    let url: client::ServiceUrl = order["url"].as_str().unwrap_or_default().parse()?;
    let connect = || Client::connect(&url, ConnectOptions::from_env()?);
    let (record, buffer) = (
        order["record"].as_u64().unwrap_or(8),
        order["buffer"].as_u64().unwrap_or(SEGMENT),
    );
    let workload = order["workload"].as_str().unwrap_or("random").to_owned();
    let file = "/prefetch";
    {
        let options = OpenOptions::new().read().write().create();
        let layout = format!("striped(64KiB) over {SERVERS}");
        let handle = connect()?.open(file, &options.layout(&layout))?;
        if handle.size()? < SEGMENT * SEGMENTS {
            let bytes: Vec<u8> = (0..SEGMENT).map(|i| ((i * 31) >> 3) as u8).collect();
            for number in 0..SEGMENTS {
                handle.write_at(number * SEGMENT, &bytes)?;
            }
            handle.sync()?;
        }
    }
    let counted = |client: &Client| -> Result<u64, client::Error> {
        let mut sum = 0;
        for member in client.members()? {
            let list = client.server_statistics(member.server)?;
            let names = ["prefetched_bytes", "ahead_bytes"];
            let found = list.iter().filter(|c| names.contains(&c.name.as_str()));
            sum += found.map(|c| c.value).sum::<u64>();
        }
        Ok(sum)
    };
    // One turn of a form from a segment on, by a step: mean seconds of a read at rank 0 but the first ones, and bytes
    // prefetched.
    let turn = |form: &str,
                from: u64,
                step: u64,
                wait: &(dyn Fn(u64) -> Duration + Sync)|
     -> Result<(f64, u64), Error> {
        let before = counted(&connect()?)?;
        let total = std::thread::scope(|scope| -> Result<f64, client::Error> {
            let ranks: Vec<_> = Team::threads(RANKS)
                .into_iter()
                .map(|team| {
                    let connect = &connect;
                    scope.spawn(move || -> Result<f64, client::Error> {
                        let client = connect()?;
                        let options = OpenOptions::new().read();
                        let handle = client.open_together(&team, file, &options)?;
                        let mut hints = Hints::new();
                        hints.set("strategy", "mb_ddio")?;
                        hints.set("collective_prefetch", form)?;
                        hints.set("prefetch_bytes", &buffer.to_string())?;
                        handle.set_hints_together(&team, &hints)?;
                        let view = format!("striped({record}) over {RANKS} [{}]", team.rank());
                        handle.set_view_text_together(&team, &view)?;
                        let part = SEGMENT / RANKS as u64;
                        let mut memory = vec![0; part as usize];
                        let places = Places::bytes(part);
                        let mut sum = 0.0;
                        for number in 0..READS {
                            compute(wait(number));
                            team.barrier()?;
                            let started = Instant::now();
                            let into = SharedBytesMut::from_slice(&mut memory);
                            let segment = from + number * step;
                            handle.read_at_all(&team, segment * part, into, 0, &places)?;
                            team.barrier()?;
                            if number >= FIRST {
                                sum += started.elapsed().as_secs_f64();
                            }
                        }
                        handle.close()?;
                        Ok(sum)
                    })
                })
                .collect();
            let mut first = 0.0;
            for (rank, thread) in ranks.into_iter().enumerate() {
                let sum = thread.join().expect("a rank does not panic")?;
                if rank == 0 {
                    first = sum;
                }
            }
            Ok(first)
        })?;
        let prefetched = counted(&connect()?)? - before;
        Ok((total / (READS - FIRST) as f64, prefetched))
    };
    let at_once = |_: u64| Duration::ZERO;
    // The first turn is to warm up.
    turn("none", 0, 1, &at_once)?;
    let (mean, _) = turn("none", READS, 1, &at_once)?;
    let mean = match workload.as_str() {
        "random" | "equal" => mean,
        _ => 4.0 * mean,
    };
    let wait = |number: u64| Duration::from_secs_f64(mean * factor(&workload, number));
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); FORMS.len()];
    let mut bytes = vec![0u64; FORMS.len()];
    // There are three such parts of the file and four forms: none reads what it has read just before.
    let mut from = 0;
    for _ in 0..TURNS {
        for (i, (_, form)) in FORMS.iter().enumerate() {
            let (mean, prefetched) = turn(form, from, 1, &wait)?;
            from = (from + READS) % SEGMENTS;
            seconds[i].push(mean);
            bytes[i] += prefetched;
        }
    }
    // Last, since the servers keep it: with all in memory, one segment again and again. After the same pauses as
    // everything else, since ranks and servers that have slept wake up more slowly than those that have not; without
    // them for comparison.
    let median = |wait: &(dyn Fn(u64) -> Duration + Sync)| -> Result<f64, Error> {
        let mut times = Vec::new();
        for _ in 0..FLOOR_TURNS {
            times.push(turn("none", 0, 0, wait)?.0);
        }
        Ok(Outcome::of(times).map_or(0.0, |times| times.median))
    };
    let (floor, awake) = (median(&wait)?, median(&at_once)?);
    let in_ms = |seconds: f64| (seconds * 1e5).round() / 100.0;
    let mut found =
        json!({ "compute_ms": in_ms(mean), "floor_ms": in_ms(floor), "awake_ms": in_ms(awake) });
    for (i, (word, _)) in FORMS.iter().enumerate() {
        let all = SEGMENT * READS * TURNS as u64;
        let share = (1000.0 * bytes[i] as f64 / all as f64).round() / 1000.0;
        found[*word] = json!({ "seconds": seconds[i], "share": share });
    }
    println!("{found}");
    Ok(())
}
