//! A process of the demo: does what it is told, one line of JSON at a time.
//!
//! ```text
//! in   {"do": "write"|"read", "path": P, "array": A, "layout": L, "cut": C, "rank": K, "repeat": N}
//! out  {"seconds": S, "bytes": B, "wrong": W, "t_i": .., ..., "servers": [..]}   or {"error": TEXT}
//! ```
//!
//! `write` writes its part N times, in turns with memcpy and pwrite of the same bytes; `read` reads its
//! part and compares every byte. Times are medians in microseconds; what happens once is from the
//! first access. Ends with its input.

use std::fs::{self, OpenOptions as FileOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use client::{Client, ConnectOptions, OpenOptions, Phases};
use console::refused;
use layout::ArrayType;
use serde_json::{Value, json};

use super::matrix::{Cut, MatrixPart};
use crate::commands::Error;

/// Arguments of a process of the demo.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The service
    #[arg(long, value_name = "URL")]
    service: String,
}

/// Obeys until the input ends.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let url = arguments.service.parse();
    let url = url.map_err(|e| format!("--service: {e}"))?;
    let options = ConnectOptions::from_env().map_err(refused)?;
    let client = embedded::connect(&url, options, &embedded::Options::from_env())?;
    console::driven::obey(|line| obey(&client, line))
}

fn obey(client: &Client, line: &str) -> Result<Value, Error> {
    let told: Value = serde_json::from_str(line).map_err(|e| format!("no command: {e}"))?;
    let text = |name: &str| {
        let found = told[name].as_str();
        found.ok_or_else(|| format!("the command has no '{name}'"))
    };
    let array: ArrayType = text("array")?.parse().map_err(|e| format!("array: {e}"))?;
    let cut = Cut::of(text("cut")?).ok_or("cut: r, c or b")?;
    let rank = told["rank"].as_u64().unwrap_or(0);
    let part = MatrixPart::new(&array, cut, rank)?;
    let view = format!("{} [{rank}]", cut.layout());
    let (path, layout) = (text("path")?, text("layout")?);
    let options = OpenOptions::new().read().write().create();
    let options = options.array(array.to_string()).layout(layout);
    let file = client.open(path, &options).map_err(refused)?;
    file.set_view_text(&view).map_err(refused)?;
    let repeat = told["repeat"].as_u64().unwrap_or(1).max(1);
    let answer = match text("do")? {
        "write" => write(&file, &part, repeat)?,
        "read" => read(&file, &part)?,
        other => return Err(format!("do: '{other}' is not known").into()),
    };
    file.close().map_err(refused)?;
    Ok(answer)
}

fn read(file: &client::File, part: &MatrixPart) -> Result<Value, Error> {
    let mut found = vec![0; part.bytes()];
    let start = Instant::now();
    let n = file.read_at(0, &mut found).map_err(refused)?;
    let seconds = start.elapsed().as_secs_f64();
    let wrong = part.wrong(&found[..n]);
    Ok(json!({ "seconds": seconds, "bytes": part.bytes(), "wrong": wrong }))
}

fn write(file: &client::File, part: &MatrixPart, repeat: u64) -> Result<Value, Error> {
    let bytes = part.fill();
    let mut copy = vec![0; bytes.len()];
    let plain = PlainFile::new()?;
    let mut times = Times::default();
    let mut first = Phases::default();
    let mut first_seconds = 0.0;
    let mut last = Phases::default();
    for turn in 0..=repeat {
        let start = Instant::now();
        file.write_at(0, &bytes).map_err(refused)?;
        let seconds = start.elapsed().as_secs_f64();
        last = file.last_access();
        let start = Instant::now();
        copy.copy_from_slice(std::hint::black_box(&bytes));
        std::hint::black_box(&mut copy);
        let memcpy = micros(start);
        let start = Instant::now();
        plain.0.write_all_at(&bytes, 0)?;
        let pwrite = micros(start);
        if turn == 0 {
            // Pages are touched for the first time and views are registered.
            (first, first_seconds) = (last.clone(), seconds);
            continue;
        }
        times.add("total", seconds * 1e6);
        times.add("t_m", last.map_ns as f64 / 1e3);
        times.add("t_g", last.gather_ns as f64 / 1e3);
        times.add("t_w", last.send_to_last_answer_ns as f64 / 1e3);
        let at_servers = last.servers.iter().map(|s| s.copied_ns + s.waited_ns);
        let network = last.send_to_last_answer_ns;
        let network = network.saturating_sub(at_servers.max().unwrap_or(0));
        times.add("t_n", network as f64 / 1e3);
        let scattered: u64 = last.servers.iter().map(|s| s.copied_ns).sum();
        let servers = last.servers.len().max(1) as f64;
        times.add("t_s", scattered as f64 / 1e3 / servers);
        times.add("memcpy", memcpy);
        times.add("pwrite", pwrite);
    }
    let servers: Vec<u64> = last.servers.iter().map(|s| s.server).collect();
    let mut answer = times.medians();
    answer["seconds"] = json!(first_seconds);
    answer["bytes"] = json!(bytes.len());
    answer["wrong"] = json!(0);
    answer["t_i"] = json!(first.intersect_ns as f64 / 1e3);
    answer["messages"] = json!(last.messages());
    answer["servers"] = json!(servers);
    Ok(answer)
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / 1e3
}

/// Named series of times.
#[derive(Default)]
struct Times(Vec<(&'static str, Vec<f64>)>);

impl Times {
    fn add(&mut self, name: &'static str, value: f64) {
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some((_, list)) => list.push(value),
            None => self.0.push((name, vec![value])),
        }
    }

    fn medians(mut self) -> Value {
        let mut all = json!({});
        for (name, list) in &mut self.0 {
            list.sort_by(f64::total_cmp);
            all[*name] = json!(list[list.len() / 2]);
        }
        all
    }
}

/// A file in memory, for `pwrite`; removed at once, so nothing is left behind.
struct PlainFile(fs::File);

impl PlainFile {
    fn new() -> Result<PlainFile, Error> {
        let shared = Path::new("/dev/shm");
        let dir = match shared.is_dir() {
            true => PathBuf::from(shared),
            false => std::env::temp_dir(),
        };
        let path = dir.join(format!("pario-demo-{}", std::process::id()));
        let file = FileOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        fs::remove_file(&path)?;
        Ok(PlainFile(file))
    }
}
