//! `pario prepare`: what a job file says, done before the job starts; and what is there of it. Owns the table
//! and its JSON; what is done is in crate `job`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use client::Client;
use job::prepare::{JobFile, Preparation, PreparedEntry};
use serde_json::{Value, json};

use super::names::shown;
use super::output::{bytes, counted, note};
use super::run::ProgressLine;
use super::{Error, connection, output};
use crate::progress::Display;

/// Arguments of `pario prepare`.
#[derive(Args)]
#[command(after_help = "\
A job file has sections: [job], [directory /PATH] and [file /PATH], with name = value lines below.

  [job]
  buffers = 16MiB                  staging buffers of every server, taken now
  [directory /results]
  striping_unit = 256KiB           a hint, kept with the directory
  [file /input/matrix]
  array  = f64[4096,4096]
  layout = (block, *) onto 4
  source = matrix.raw              a file of this host, beside the job file
  access_style = read_once         a hint, kept with the file
  [file /results/out]
  size = 64MiB                     space is taken now; what was not written reads as zeros
  load = off                       not into the memory of servers with disks

What is there already as it should be is left alone: after a failure run it again.

Examples:
  pario prepare job.pario
  pario prepare --status job.pario
  pario run --prepare job.pario -- mpiexec -n 4 ./simulate")]
pub(crate) struct Arguments {
    /// The job file
    job_file: PathBuf,

    /// Show what is there and what is missing, and do nothing
    #[arg(long)]
    status: bool,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Prepares a job.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let job = read(&arguments.job_file)?;
    let preparation = match arguments.status {
        true => {
            let client = connection::connect_to_existing()?;
            job.status(&client).map_err(say)?
        }
        false => carry_out(
            &connection::connect()?,
            &job,
            Display::unless(arguments.quiet),
        )?,
    };
    if arguments.json {
        let mut all = to_json(&preparation);
        all["job_file"] = json!(arguments.job_file.display().to_string());
        return output::print(&format!("{all:#}\n"));
    }
    output::print(&to_text(&preparation))
}

/// Reads and checks a job file.
pub(crate) fn read(path: &std::path::Path) -> Result<JobFile, Error> {
    JobFile::read(path).map_err(say)
}

/// Does what is not done yet, with a line on the terminal.
pub(crate) fn carry_out(
    client: &Client,
    job: &JobFile,
    display: Display,
) -> Result<Preparation, Error> {
    let mut watched = ProgressLine::begin("prepare", display);
    job.carry_out(client, &mut watched).map_err(say)
}

fn say(error: job::Error) -> Error {
    shown(&error.to_string()).into()
}

/// One line about what was prepared.
pub(crate) fn tell(preparation: &Preparation) {
    let stored: u64 = preparation.entries.iter().map(|e| e.stored_bytes).sum();
    let count = preparation.entries.len() as u64;
    let entries = counted(count, "file or directory", "files and directories");
    note(&format!(
        "pario: prepared {entries}, {} stored",
        bytes(stored)
    ));
}

fn state(entry: &PreparedEntry) -> String {
    match (entry.missing.is_empty(), entry.done.is_empty()) {
        (true, true) => "ready".into(),
        (true, false) => format!("ready; made now: {}", entry.done.join(", ")),
        (false, _) => format!("missing: {}", entry.missing.join(", ")),
    }
}

fn to_text(preparation: &Preparation) -> String {
    let mut text = String::new();
    for entry in &preparation.entries {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}  {}", shown(&entry.path), state(entry));
        if !entry.is_directory && !entry.layout.is_empty() {
            let _ = writeln!(
                text,
                "    {}, {} allocated, {}",
                bytes(entry.size),
                bytes(entry.allocated_bytes),
                shown(&entry.layout)
            );
        }
        for (name, value) in &entry.hints {
            let _ = writeln!(text, "    {name} = {}", shown(value));
        }
    }
    for server in &preparation.servers {
        let _ = writeln!(
            text,
            "server {}: {} in memory, {} of buffers",
            server.server,
            bytes(server.memory_bytes),
            bytes(server.buffer_bytes)
        );
    }
    for missing in &preparation.missing {
        let _ = writeln!(text, "missing: {missing}");
    }
    text
}

/// Everything, for JSON.
pub(crate) fn to_json(preparation: &Preparation) -> Value {
    let entries = preparation.entries.iter().map(|entry| {
        json!({
            "path": entry.path,
            "line": entry.line,
            "kind": if entry.is_directory { "directory" } else { "file" },
            "is_ready": entry.missing.is_empty(),
            "done": entry.done,
            "missing": entry.missing,
            "layout": entry.layout,
            "distribution": entry.distribution,
            "size": entry.size,
            "allocated_bytes": entry.allocated_bytes,
            "stored_bytes": entry.stored_bytes,
            "loaded_bytes": entry.loaded_bytes,
            "hints": entry.hints.iter().map(|(n, v)| (n.clone(), json!(v))).collect::<serde_json::Map<_, _>>(),
        })
    });
    let servers = preparation.servers.iter().map(|s| {
        json!({"server": s.server, "memory_bytes": s.memory_bytes, "buffer_bytes": s.buffer_bytes})
    });
    json!({
        "is_ready": preparation.is_ready(),
        "entries": entries.collect::<Vec<_>>(),
        "servers": servers.collect::<Vec<_>>(),
        "missing": preparation.missing,
    })
}
