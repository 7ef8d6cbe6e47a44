//! Real runs of chapter 6: four forms of collective prefetch, with computation between the reads.
//!
//! ```text
//!  real/host/e=256/random/buffer=2048KiB/PB-PRE    one host, disk servers, exponential time to compute
//!  real/net/e=8/whole/buffer=4096KiB/PBX-PRE       a namespace per server and one for the ranks, 1 Gbit/s
//! ```
//!
//! Ranks are threads of one process, each with a client of its own, and read a file segment by segment through
//! interleaved records. A turn reads the whole file once; forms take turns, seven times. What counts is the
//! time from request to satisfaction, as in the thesis, and `none` is the ratio to no prefetch in the same
//! run. `random` computes for an exponential time with the mean of a read without prefetch; `whole` and `half`
//! compute until all, or the half that the buffer holds, is ready.

use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use client::{Client, ConnectOptions, Hints, OpenOptions, Places, SharedBytesMut, Team};
use serde_json::{Map, Value, json};

use crate::bench::Row;
use crate::bench::hosts::Hosts;
use crate::bench::sheet::Sheet;
use crate::bench::site::{Site, Spread, Store, Wanted};
use crate::commands::Error;

const RANKS: usize = 4;
const SERVERS: usize = 2;
const TURNS: usize = 7;
const SEGMENT: u64 = 4 << 20;
const SEGMENTS: u64 = 48;
const MBIT: u64 = 1000;
const FORMS: [(&str, &str); 4] = [
    ("NO-PRE", "none"),
    ("DISK-PRE", "disk"),
    ("PB-PRE", "packets"),
    ("PBX-PRE", "exchanged"),
];

/// Record bytes, workload, bytes of the buffer of a server.
fn settings() -> Vec<(u64, &'static str, u64)> {
    let mut list = Vec::new();
    for record in [8, 256] {
        for buffer in [SEGMENT / 8, SEGMENT / 2, SEGMENT] {
            list.push((record, "random", buffer));
        }
        list.push((record, "whole", SEGMENT));
        list.push((record, "half", SEGMENT / 4));
    }
    list
}

pub(super) fn add(sheet: &mut Sheet) -> Result<(), Error> {
    on_site(sheet, "host", None)?;
    if !sheet.wants("real/net") {
        return Ok(());
    }
    let mut rates = vec![Some(MBIT); SERVERS + 1];
    rates.push(None);
    match Hosts::new(&rates) {
        Ok(hosts) => on_site(sheet, "net", Some(&hosts)),
        Err(why) => {
            eprintln!("real/net is left out: {why}");
            Ok(())
        }
    }
}

fn on_site(sheet: &mut Sheet, place: &str, hosts: Option<&Hosts>) -> Result<(), Error> {
    let case = |record: u64, workload: &str, buffer: u64, form: &str| {
        format!(
            "real/{place}/e={record}/{workload}/buffer={}KiB/{form}",
            buffer >> 10
        )
    };
    let is_wanted = |(record, workload, buffer): &(u64, &str, u64)| {
        FORMS
            .iter()
            .any(|(form, _)| sheet.wants(&case(*record, workload, *buffer, form)))
    };
    let wanted: Vec<_> = settings().into_iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let spread = hosts.map(|hosts| Spread {
        hosts,
        meta: SERVERS + 1,
        servers: (0..SERVERS).collect(),
    });
    let site = Wanted {
        store: Store::Disk,
        // A third of the file: most of it comes from the data files again in every turn.
        memory: SEGMENT * SEGMENTS / SERVERS as u64 / 3,
        ..Wanted::disk(SERVERS)
    };
    let site = Site::start(&site, spread.as_ref())?;
    for (record, workload, buffer) in wanted {
        let order = json!({
            "url": site.url(), "record": record, "workload": workload, "buffer": buffer,
        });
        let program = std::env::current_exe()
            .map_err(|e| format!("cannot find the program that is running: {e}"))?;
        let mut command = match hosts {
            Some(hosts) => hosts.command(SERVERS, &program),
            None => Command::new(&program),
        };
        command.args(["bench", "prefetch", "--inside", &order.to_string()]);
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
            let list = found[form]["seconds"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let mut list: Vec<f64> = list.iter().filter_map(Value::as_f64).collect();
            list.sort_by(f64::total_cmp);
            list
        };
        let rate = |seconds: f64| SEGMENT as f64 / seconds / (1 << 20) as f64;
        let none = times("NO-PRE");
        for (form, _) in FORMS {
            let list = times(form);
            sheet.add(case(record, workload, buffer, form), |case| {
                let median = list[list.len() / 2];
                let mut columns = Map::new();
                columns.insert("prefetched_of_bytes".into(), found[form]["share"].clone());
                columns.insert("compute_ms".into(), found["compute_ms"].clone());
                Row {
                    case,
                    value: rate(median),
                    unit: "MB/s",
                    spread: (list[list.len() - 1] - list[0]) / median,
                    first: None,
                    columns,
                    ratios: vec![("none", none[none.len() / 2] / median)],
                }
            })?;
        }
    }
    Ok(())
}

/// Waits without doing anything: the time that a program computes.
fn compute(time: Duration) {
    let (never, condition) = (Mutex::new(()), Condvar::new());
    let until = Instant::now() + time;
    let mut guard = never.lock().unwrap_or_else(|e| e.into_inner());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        guard = condition
            .wait_timeout(guard, left)
            .unwrap_or_else(|e| e.into_inner())
            .0;
    }
}

/// Exponential times with a mean of 1, the same ones in every run.
fn exponential(number: u64) -> f64 {
    let mixed = number
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(31)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let unit = ((mixed >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    -unit.ln()
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
    // One turn of a form: mean seconds of a read at rank 0, and bytes prefetched.
    let turn = |form: &str, wait: &(dyn Fn(u64) -> Duration + Sync)| -> Result<(f64, u64), Error> {
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
                        for number in 0..SEGMENTS {
                            compute(wait(number));
                            team.barrier()?;
                            let started = Instant::now();
                            let into = SharedBytesMut::from_slice(&mut memory);
                            handle.read_at_all(&team, number * part, into, 0, &places)?;
                            team.barrier()?;
                            sum += started.elapsed().as_secs_f64();
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
        Ok((total / SEGMENTS as f64, prefetched))
    };
    // How long a read takes without prefetch, twice: the first turn is to warm up.
    turn("none", &|_| Duration::ZERO)?;
    let (mean, _) = turn("none", &|_| Duration::ZERO)?;
    let mean = match workload.as_str() {
        "random" => mean,
        _ => 4.0 * mean,
    };
    let wait = |number: u64| -> Duration {
        let factor = match workload.as_str() {
            "random" => exponential(number + 1),
            _ => 1.0,
        };
        Duration::from_secs_f64(mean * factor)
    };
    let mut found = json!({ "compute_ms": (mean * 1e5).round() / 100.0 });
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); FORMS.len()];
    let mut bytes = vec![0u64; FORMS.len()];
    for _ in 0..TURNS {
        for (i, (_, form)) in FORMS.iter().enumerate() {
            let (mean, prefetched) = turn(form, &wait)?;
            seconds[i].push(mean);
            bytes[i] += prefetched;
        }
    }
    for (i, (word, _)) in FORMS.iter().enumerate() {
        let all = SEGMENT * SEGMENTS * TURNS as u64;
        let share = (1000.0 * bytes[i] as f64 / all as f64).round() / 1000.0;
        found[*word] = json!({ "seconds": seconds[i], "share": share });
    }
    println!("{found}");
    Ok(())
}
