//! `pario du`: the space that files take at the servers, beside the bytes they hold. Holes take none,
//! and servers take space in extents, so either can be the larger.

use std::fmt::Write;

use clap::Args;
use client::{Client, Kind};
use serde_json::{Value, json};

use super::Error;
use super::connection::{self, refused};
use super::names::{absolute, join, shown};
use super::output::{self, bytes, counted, note};

/// Arguments of `pario du`.
#[derive(Args)]
#[command(after_help = "\
Columns: space taken at all servers, size in bytes as seen by readers, path. A directory has
the sums of what is in it.

Examples:
  pario du
  pario du -s /results
  pario du -a --json /results | jq '.rows[] | select(.allocated_bytes > .size_bytes)'")]
pub(crate) struct Arguments {
    /// File or directory
    #[arg(default_value = "/")]
    path: String,

    /// Only the sum
    #[arg(short, long)]
    summarize: bool,

    /// Files, too, not only directories
    #[arg(short, long, conflicts_with = "summarize")]
    all: bool,

    /// Bytes, not units
    #[arg(short, long)]
    bytes: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Default)]
struct Space {
    allocated: u64,
    size: u64,
}

struct Row {
    path: String,
    kind: Kind,
    space: Space,
}

struct Walk<'a> {
    client: &'a Client,
    arguments: &'a Arguments,
    rows: Vec<Row>,
    silent: u64,
}

/// Adds up.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    let path = absolute(&arguments.path);
    let mut walk = Walk {
        client: &client,
        arguments,
        rows: Vec::new(),
        silent: 0,
    };
    let kind = client.attributes(&path).map_err(refused)?.kind;
    let space = match kind {
        Kind::Directory => walk.directory(&path)?,
        Kind::File => walk.file(&path),
    };
    if arguments.summarize || kind == Kind::File {
        walk.rows = vec![Row { path, kind, space }];
    }
    match arguments.json {
        true => output::print(&format!("{:#}\n", walk.to_json()))?,
        false => output::print(&walk.to_text())?,
    }
    match walk.silent {
        0 => Ok(()),
        n => Err(format!(
            "the sums are without {} that could not be looked at; `pario doctor` shows what is wrong",
            counted(n, "file", "files")
        )
        .into()),
    }
}

impl Walk<'_> {
    /// A directory after what is in it, as people expect of this command.
    fn directory(&mut self, path: &str) -> Result<Space, Error> {
        let mut sum = Space::default();
        for entry in self.client.list(path).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let below = join(path, &entry.name);
            let space = match entry.kind {
                Kind::Directory => self.directory(&below)?,
                Kind::File => self.file(&below),
            };
            sum.allocated = sum.allocated.saturating_add(space.allocated);
            sum.size = sum.size.saturating_add(space.size);
            if entry.kind == Kind::File && self.arguments.all {
                self.rows.push(Row {
                    path: below,
                    kind: Kind::File,
                    space,
                });
            }
        }
        self.rows.push(Row {
            path: path.to_owned(),
            kind: Kind::Directory,
            space: sum,
        });
        Ok(sum)
    }

    /// A file that lost a server keeps nobody from the rest.
    fn file(&mut self, path: &str) -> Space {
        let asked = || {
            let size = self.client.stat(path)?.size;
            let allocated = self.client.allocated(path)?;
            Ok(Space { allocated, size })
        };
        asked().unwrap_or_else(|error| {
            note(&format!("pario: {}: {}", shown(path), refused(error)));
            self.silent += 1;
            Space::default()
        })
    }

    fn to_text(&self) -> String {
        let size = |count: u64| match self.arguments.bytes {
            true => count.to_string(),
            false => bytes(count),
        };
        let rows: Vec<[String; 3]> = self
            .rows
            .iter()
            .map(|row| {
                let Space {
                    allocated,
                    size: bytes,
                } = row.space;
                [size(allocated), size(bytes), shown(&row.path)]
            })
            .collect();
        let width = |k: usize, head: &str| {
            let widths = rows.iter().map(|row| row[k].len());
            widths.max().unwrap_or(0).max(head.len())
        };
        let (a, b) = (width(0, "allocated"), width(1, "size"));
        let mut text = format!("{:>a$} {:>b$} path\n", "allocated", "size");
        for [allocated, size, path] in &rows {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{allocated:>a$} {size:>b$} {path}");
        }
        text
    }

    fn to_json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "path": row.path,
                    "kind": super::attributes::kind(row.kind),
                    "allocated_bytes": row.space.allocated,
                    "size_bytes": row.space.size,
                })
            })
            .collect();
        json!({ "rows": rows })
    }
}
