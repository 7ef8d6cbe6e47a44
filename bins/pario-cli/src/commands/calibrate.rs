//! `pario calibrate`: measures this machine and its way to the servers, and keeps the result with the
//! service for everybody on this host. Owns what is said about it; measuring is in `calibrate`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use client::{Calibration, Client, FitIs, Parameter, Time};
use serde_json::{Map, Value, json};
use store::{FileIo, direct_io};

use super::connection::{self, refused};
use super::names::shown;
use super::{Error, output};
use calibrate::network::Pair;
use calibrate::{Fit, local, network};

/// Arguments of `pario calibrate`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario calibrate
  pario calibrate --if-stale
  pario calibrate --show
  pario calibrate --local --json
  pario calibrate --disk /data/pario/io0    whether direct I/O pays there; kept for the next start")]
pub(crate) struct Arguments {
    /// Only if nothing is kept for this host, or what is kept no longer predicts
    #[arg(long, conflicts_with_all = ["local", "show"])]
    if_stale: bool,

    /// Only copies in memory; no service is asked and nothing is kept
    #[arg(long)]
    local: bool,

    /// Measure a directory of data files alone: through the page cache, and past it (O_DIRECT). What pays is kept in the directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["if_stale", "local", "show"])]
    disk: Option<PathBuf>,

    /// Measure nothing; show what is kept for all hosts
    #[arg(long, conflicts_with = "local")]
    show: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Calibrates, or shows what is kept.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    if let Some(dir) = &arguments.disk {
        return disk(dir, arguments);
    }
    if arguments.show {
        let client = connection::connect_to_existing()?;
        let kept = client.calibrations(None).map_err(refused)?;
        return print_kept(&kept, arguments.json);
    }
    let client = connect(arguments)?;
    if let (Some(client), true) = (&client, arguments.if_stale) {
        let from = client.host_name();
        let kept = client.calibrations(Some(&from)).map_err(refused)?;
        if is_good(client, &kept, &from)? {
            return match arguments.json {
                true => print_kept(&kept, true),
                false => output::print(
                    "what is kept still predicts: nothing was measured (`pario calibrate --show` prints it)\n",
                ),
            };
        }
    }
    let begin = Instant::now();
    let measured = local::measure()?;
    let mut machine = measured.machine;
    let pairs = match &client {
        Some(client) => network::measure(client, &mut machine)?,
        None => Vec::new(),
    };
    let mut kept = Vec::new();
    if let Some(client) = &client {
        for pair in &pairs {
            kept.push(calibration(client, &measured, pair));
        }
        // A host without servers has copies in memory all the same.
        if !pairs.iter().any(|pair| pair.is_near) {
            let own = Pair {
                to: client.host_name(),
                servers: 0,
                is_near: true,
                parameters: Vec::new(),
                fits: Vec::new(),
            };
            kept.push(calibration(client, &measured, &own));
        }
        for calibration in &kept {
            client.keep_calibration(calibration).map_err(refused)?;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    if arguments.json {
        let fits: Vec<&Fit> = measured.fits.iter().collect();
        let parameters: Map<String, Value> = machine
            .parameters()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let pairs: Vec<Value> = pairs.iter().map(pair_json).collect();
        let value = json!({
            "seconds": seconds, "parameters": parameters,
            "fits": fits.iter().map(|fit| fit_json(fit)).collect::<Vec<_>>(),
            "pairs": pairs, "is_kept": client.is_some(),
        });
        return output::print(&format!("{value:#}\n"));
    }
    output::print(&text(&measured, &pairs, client.as_ref(), seconds))
}

/// Bytes that a disk is measured with.
const DISK_BYTES: usize = 64 << 20;

/// Measures a directory both ways, and keeps in it which one pays.
fn disk(dir: &Path, arguments: &Arguments) -> Result<(), Error> {
    if !dir.is_dir() {
        return Err(format!("{} is no directory; name one of --dir", dir.display()).into());
    }
    let failed = |e: std::io::Error| Error::from(format!("{}: {e}", dir.display()));
    let begin = Instant::now();
    let rates = direct_io::compare(dir, DISK_BYTES, &|| begin.elapsed()).map_err(failed)?;
    let io = rates.pays();
    direct_io::keep(dir, io).map_err(failed)?;
    let pays = io == FileIo::Direct;
    if arguments.json {
        let facts = json!({
            "disk": dir.display().to_string(),
            "seconds": begin.elapsed().as_secs_f64(),
            "buffered": { "write_bytes_per_s": rates.buffered_write, "read_bytes_per_s": rates.buffered_read },
            "direct": { "write_bytes_per_s": rates.direct_write, "read_bytes_per_s": rates.direct_read },
            "direct_pays": pays,
        });
        return output::print(&format!("{facts:#}\n"));
    }
    let rate = |bytes: u64| match bytes {
        0 => "-".to_owned(),
        bytes => format!("{} MB/s", bytes / 1_000_000),
    };
    let verdict = match (pays, rates.direct_write) {
        (true, _) => "direct I/O pays: servers use it from their next start on",
        (false, 0) => "the file system knows no direct I/O",
        (false, _) => "direct I/O does not pay: servers go through the page cache",
    };
    output::print(&format!(
        "                 written, durable    read\npage cache       {:>16}    {}\ndirect I/O       {:>16}    {}\n{verdict}\n",
        rate(rates.buffered_write),
        rate(rates.buffered_read),
        rate(rates.direct_write),
        rate(rates.direct_read),
    ))
}

/// The service, unless only this machine is meant or nobody named one and none is there.
fn connect(arguments: &Arguments) -> Result<Option<Client>, Error> {
    if arguments.local {
        return Ok(None);
    }
    match connection::connect_to_existing() {
        Ok(client) => Ok(Some(client)),
        Err(_) if connection::named().is_none() && !arguments.if_stale => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether this host and every host of a server have a calibration that still predicts.
fn is_good(client: &Client, kept: &[Calibration], from: &str) -> Result<bool, Error> {
    let members = client.members().map_err(refused)?;
    let alive = members
        .iter()
        .filter(|m| m.state == client::MemberState::Alive);
    let mut hosts: Vec<String> = alive.map(|m| client.host_of(m)).collect();
    hosts.push(from.to_owned());
    let is_good = |host: &String| kept.iter().any(|c| c.to == *host && !c.is_stale);
    Ok(hosts.iter().all(is_good))
}

fn calibration(client: &Client, measured: &local::Local, pair: &Pair) -> Calibration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let copies: Vec<(&'static str, f64)> = match pair.is_near {
        true => {
            let names = ["pack.", "unpack.", "direct.", "walk.", "cores", "crowd"];
            let all = measured.machine.parameters().into_iter();
            all.filter(|(name, _)| names.iter().any(|n| name.starts_with(n)))
                .collect()
        }
        false => Vec::new(),
    };
    let parameter = |(name, value): (&str, f64)| Parameter {
        name: name.to_owned(),
        bits: value.to_bits(),
    };
    let fit = |fit: &Fit| FitIs {
        name: fit.name.to_owned(),
        r_squared_bits: fit.accuracy.r_squared.to_bits(),
        max_error_bits: fit.accuracy.max_error.to_bits(),
        // What is kept is the error to expect, not that of what was fitted.
        error_90_bits: fit.left_out.unwrap_or(fit.accuracy).error_90.to_bits(),
        count: fit.accuracy.count as u64,
    };
    let own = measured.fits.iter().filter(|_| pair.is_near);
    Calibration {
        from: client.host_name(),
        to: pair.to.clone(),
        taken: Time(now.map_or(0, |t| i64::try_from(t.as_nanos()).unwrap_or(i64::MAX))),
        is_stale: false,
        // Later ones of a name count.
        parameters: copies
            .into_iter()
            .chain(pair.parameters.iter().copied())
            .map(parameter)
            .collect(),
        fits: own.chain(&pair.fits).map(fit).collect(),
    }
}

fn text(measured: &local::Local, pairs: &[Pair], client: Option<&Client>, seconds: f64) -> String {
    let mut text = format!("measured in {seconds:.1} s\n\n");
    let mut table = |title: &str, fits: &[Fit]| {
        let _ = writeln!(text, "{title}");
        let _ = writeln!(
            text,
            "  {:<14} {:>6} {:>7} {:>7} {:>9}  what",
            "part", "R2", "max", "90 %", "left out"
        );
        for fit in fits {
            let a = &fit.accuracy;
            let numbers = match a.count {
                0 => format!("{:>6} {:>7} {:>7}", "-", "-", "-"),
                _ => format!(
                    "{:>6.3} {:>6.0}% {:>6.0}%",
                    a.r_squared,
                    100.0 * a.max_error,
                    100.0 * a.error_90
                ),
            };
            // Nine of ten that the fit has not seen stay within this.
            let left = match &fit.left_out {
                Some(left) => format!("{:.0}%", 100.0 * left.error_90),
                None => "-".to_owned(),
            };
            let _ = writeln!(
                text,
                "  {:<14} {numbers} {left:>9}  {}",
                fit.name, fit.shown
            );
        }
        text.push('\n');
    };
    table("copies in memory", &measured.fits);
    for pair in pairs {
        let servers = output::counted(pair.servers as u64, "server", "servers");
        let place = match pair.is_near {
            true => "this host".to_owned(),
            false => shown(&pair.to),
        };
        table(&format!("to {place}, {servers}"), &pair.fits);
    }
    text += match client {
        Some(_) => "kept with the service, for all processes of this host\n",
        None => "no service was asked: nothing is kept; name one with --url or PARIO_URL\n",
    };
    text
}

fn fit_json(fit: &Fit) -> Value {
    let a = &fit.accuracy;
    let cells: Vec<Value> = fit
        .cells
        .iter()
        .map(|c| json!({"what": c.what, "measured_s": c.measured_s, "predicted_s": c.predicted_s}))
        .collect();
    json!({"name": fit.name, "r_squared": a.r_squared, "max_error": a.max_error, "error_90": a.error_90, "count": a.count,
        "left_out_90": fit.left_out.map(|l| l.error_90), "left_out_count": fit.left_out.map(|l| l.count), "cells": cells})
}

fn pair_json(pair: &Pair) -> Value {
    let parameters: Map<String, Value> = pair
        .parameters
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let fits: Vec<Value> = pair.fits.iter().map(fit_json).collect();
    json!({"to": pair.to, "servers": pair.servers, "is_near": pair.is_near, "parameters": parameters, "fits": fits})
}

fn kept_json(c: &Calibration) -> Value {
    let parameters: Map<String, Value> = c
        .parameters
        .iter()
        .map(|p| (p.name.clone(), json!(f64::from_bits(p.bits))))
        .collect();
    let fits: Vec<Value> = c
        .fits
        .iter()
        .map(|f| {
            let of = f64::from_bits;
            json!({"name": f.name, "r_squared": of(f.r_squared_bits), "max_error": of(f.max_error_bits),
                "error_90": of(f.error_90_bits), "count": f.count})
        })
        .collect();
    json!({"from": c.from, "to": c.to, "taken_ns": c.taken.0, "is_stale": c.is_stale, "parameters": parameters, "fits": fits})
}

fn print_kept(kept: &[Calibration], json: bool) -> Result<(), Error> {
    if json {
        let list: Vec<Value> = kept.iter().map(kept_json).collect();
        return output::print(&format!("{:#}\n", json!({"kept": list})));
    }
    if kept.is_empty() {
        return output::print("nothing is kept; measure with `pario calibrate`\n");
    }
    let mut text = String::new();
    for c in kept {
        let state = match c.is_stale {
            true => {
                "calibration is stale: it no longer predicts; measure again with `pario calibrate --if-stale`"
            }
            false => "good",
        };
        let _ = writeln!(
            text,
            "{} -> {}, taken {}: {state}",
            shown(&c.from),
            shown(&c.to),
            super::attributes::exact_time(c.taken)
        );
        for p in &c.parameters {
            let _ = writeln!(text, "  {:<24} {:.4e}", p.name, f64::from_bits(p.bits));
        }
    }
    output::print(&text)
}
