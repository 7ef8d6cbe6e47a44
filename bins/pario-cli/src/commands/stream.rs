//! `pario stream`: files with one stream of bytes for each virtual processor of a data-parallel program.
//!
//! What is known about such a file and how its bytes are found is in `streams`; here are arguments and texts.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use client::Client;
use serde_json::json;
use streams::{Report, Shape};

use super::connection::{self, refused};
use super::names::{absolute, shown};
use super::{Error, output};

/// Arguments of `pario stream`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what shape and block a file of another program has
    Meta(Meta),
    /// Write the streams of a file as a plain array that any program can read
    Nb(Nb),
    /// Print the bytes of one stream
    Dump(Dump),
    /// Show shape, segments and lengths of the streams
    Info(Look),
    /// Show which rule put each part into its mode, and look for damage
    Check(Look),
}

#[derive(Args)]
#[command(after_help = "\
The bytes of the file stay as they are: block after block of every VP, row by row.

Examples:
  pario stream meta /results/field --shape 256,128 --block 8
  pario stream meta /results/field --shape 32768 --block 64 --distribution '(cyclic)' --pad 0")]
struct Meta {
    /// The file
    path: String,

    /// How VPs are arranged, such as 256,128
    #[arg(long)]
    shape: String,

    /// Bytes that each VP has at a time
    #[arg(long)]
    block: u64,

    /// How VPs are dealt to processes, in the layout language
    #[arg(long)]
    distribution: Option<String>,

    /// Byte that is read where the file ends within a row of blocks
    #[arg(long)]
    pad: Option<u8>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Every stream is written as long as the longest, with the pad behind its end.

Examples:
  pario stream nb /results/particles /results/particles.array
  pario stream nb /results/particles /results/particles.array --block 8 --pad 255")]
struct Nb {
    /// The stream file
    path: String,

    /// The plain array
    target: String,

    /// Bytes of each VP at a time [default: a whole stream, if all of them take up to 64 MiB]
    #[arg(long)]
    block: Option<u64>,

    /// Byte behind the end of a stream
    #[arg(long, default_value_t = 0)]
    pad: u8,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  pario stream dump /logs/debug --vp 17
  pario stream dump /results/particles --vp 0 | od -t f8")]
struct Dump {
    /// The stream file
    path: String,

    /// The number of the VP, counted row by row from 0
    #[arg(long)]
    vp: u64,

    /// Print JSON with the bytes as numbers
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  pario stream info /results/particles
  pario stream check --json /results/particles | jq .findings")]
struct Look {
    /// The stream file
    path: String,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Looks at stream files, and makes them of others and others of them.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    match &arguments.command {
        Command::Meta(meta) => describe(&client, meta),
        Command::Nb(nb) => convert(&client, nb),
        Command::Dump(dump) => print_stream(&client, dump),
        Command::Info(look) => show(&client, look, &info),
        Command::Check(look) => show(&client, look, &check),
    }
}

fn describe(client: &Client, meta: &Meta) -> Result<(), Error> {
    let shape: Shape = meta.shape.parse().map_err(refused)?;
    let rest = ", *".repeat(shape.extents().len() - 1);
    let usual = format!("(block{rest})");
    let distribution = meta.distribution.as_ref().unwrap_or(&usual);
    let block = (meta.block, meta.pad);
    streams::describe(client, &meta.path, &shape, distribution, block).map_err(refused)?;
    let path = absolute(&meta.path);
    output::print(&match meta.json {
        true => format!("{:#}\n", json!({ "path": path, "shape": shape.extents() })),
        false => format!("{} has streams of shape {shape}\n", shown(&path)),
    })
}

fn convert(client: &Client, nb: &Nb) -> Result<(), Error> {
    let how = (nb.block, nb.pad);
    let bytes = streams::convert(client, &nb.path, &nb.target, how).map_err(refused)?;
    let target = absolute(&nb.target);
    output::print(&match nb.json {
        true => format!("{:#}\n", json!({ "path": target, "bytes_per_vp": bytes })),
        false => format!("{} has {bytes} bytes of every VP\n", shown(&target)),
    })
}

fn print_stream(client: &Client, dump: &Dump) -> Result<(), Error> {
    let bytes = streams::read_stream(client, &dump.path, dump.vp).map_err(refused)?;
    if dump.json {
        let facts = json!({ "path": absolute(&dump.path), "vp": dump.vp, "bytes": bytes });
        return output::print(&format!("{facts}\n"));
    }
    std::io::stdout()
        .write_all(&bytes)
        .map_err(|e| format!("standard output: {e}; look where it goes").into())
}

fn show(client: &Client, look: &Look, text: &dyn Fn(&Report) -> String) -> Result<(), Error> {
    let report = Report::of_file(client, &look.path).map_err(refused)?;
    let path = absolute(&look.path);
    let is_whole = report.findings.is_empty();
    output::print(&match look.json {
        true => format!("{:#}\n", to_json(&path, &report)),
        false => format!("{:<13} {}\n{}", "path", shown(&path), text(&report)),
    })?;
    match is_whole {
        true => Ok(()),
        false => Err(format!(
            "{} is damaged; write it again, or copy what `pario stream dump` still reads",
            shown(&path)
        )
        .into()),
    }
}

fn to_json(path: &str, report: &Report) -> serde_json::Value {
    let parts = report.parts.iter().map(|part| {
        json!({
            "mode": part.mode.word(), "block": part.block, "bytes": part.bytes,
            "rule": part.rule, "remedy": part.remedy,
        })
    });
    json!({
        "path": path,
        "shape": report.shape.extents(),
        "distribution": report.distribution,
        "shortest": report.lengths.0,
        "longest": report.lengths.1,
        "is_plain_array": report.is_plain_array(),
        "parts": parts.collect::<Vec<_>>(),
        "findings": report.findings,
    })
}

fn info(report: &Report) -> String {
    let mut lines = vec![
        ("shape".to_owned(), report.shape.to_string()),
        ("VPs".to_owned(), report.shape.count().to_string()),
        ("distribution".to_owned(), report.distribution.clone()),
        (
            "stream bytes".to_owned(),
            match report.lengths {
                (low, high) if low == high => high.to_string(),
                (low, high) => format!("{low} to {high}"),
            },
        ),
    ];
    for part in &report.parts {
        let text = format!("{} bytes in blocks of {}", part.bytes, part.block);
        lines.push((part.mode.word().to_owned(), text));
    }
    let lines = lines
        .iter()
        .map(|(name, text)| format!("{name:<13} {text}\n"));
    lines.collect()
}

fn check(report: &Report) -> String {
    let mut text = String::new();
    for part in &report.parts {
        text += &format!(
            "{:<13} {} bytes: {}\n",
            part.mode.word(),
            part.bytes,
            part.rule
        );
        if !part.remedy.is_empty() {
            text += &format!("{:<13} to be faster, {}\n", "", part.remedy);
        }
    }
    if report.is_plain_array() {
        text += "The file is the plain array; any program can read it.\n";
    }
    for finding in &report.findings {
        text += &format!("{:<13} {finding}\n", "damaged");
    }
    text
}

/// How the name of the root ends that lies beside a stream file on this host.
pub(crate) const BESIDE: &str = ".pario-stream";

fn beside(local: &Path) -> PathBuf {
    let mut name: OsString = local.as_os_str().to_owned();
    name.push(BESIDE);
    PathBuf::from(name)
}

/// Keeps the root of a stream file beside its copy on this host. A copy of another file has none beside it.
pub(crate) fn fetch_root(client: &Client, path: &str, local: &Path) -> Result<(), Error> {
    let beside = beside(local);
    let done = match streams::root_text(client, path).map_err(refused)? {
        Some(text) => fs::write(&beside, text),
        None if beside.exists() => fs::remove_file(&beside),
        None => Ok(()),
    };
    done.map_err(|e| format!("{}: {e}; look at its directory", beside.display()).into())
}

/// Gives a stored file the root that lies beside it on this host, or none.
pub(crate) fn store_root(client: &Client, path: &str, local: &Path) -> Result<(), Error> {
    let text = fs::read_to_string(beside(local)).ok();
    streams::keep_root_text(client, path, text.as_deref()).map_err(refused)
}
