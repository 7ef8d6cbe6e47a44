//! `pario ls`: what is in a directory of the service, one name per line.
//! Owns the columns of `-l`; how attributes read is in `attributes`.

use std::fmt::Write;

use clap::Args;
use client::{Client, Entry, Kind, Metadata};
use serde_json::{Map, Value, json};

use super::Error;
use super::attributes::{self, People};
use super::connection::{self, refused};
use super::names::{absolute, last, shown};
use super::output::{self, bytes};

/// Arguments of `pario ls`.
#[derive(Args)]
#[command(after_help = "\
Names of directories end in `/`. What a terminal would obey is escaped, as in a\\nb; --json has
names exactly. With -l sizes are those of the last close or sync; `pario stat` asks for the latest.

Examples:
  pario ls
  pario ls -l /results
  pario ls --json /results | jq -r '.entries[].name'")]
pub(crate) struct Arguments {
    /// Directory or file
    #[arg(default_value = "/")]
    path: String,

    /// Permissions, owner, group, size, time of the last change
    #[arg(short, long)]
    long: bool,

    /// Sizes in bytes, not in units
    #[arg(short, long)]
    bytes: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Lists.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    let entries = arguments.entries(&client)?;
    if arguments.json {
        let entries: Vec<Value> = entries.iter().map(to_json).collect();
        let path = absolute(&arguments.path);
        let listing = json!({ "path": path, "entries": entries });
        return output::print(&format!("{listing:#}\n"));
    }
    if arguments.long {
        return output::print(&arguments.table(&entries));
    }
    let mut text = String::new();
    for entry in &entries {
        text += &name(entry);
        text.push('\n');
    }
    output::print(&text)
}

impl Arguments {
    /// What is in the directory, or the file by itself.
    fn entries(&self, client: &Client) -> Result<Vec<Entry>, Error> {
        let attributes = client.attributes(&self.path).map_err(refused)?;
        if attributes.kind == Kind::File {
            // Latest size, where it is only one to ask for.
            let attributes = client.stat(&self.path).map_err(refused)?;
            return Ok(vec![Entry {
                name: last(&self.path).unwrap_or(&self.path).to_owned(),
                file: attributes.file,
                kind: attributes.kind,
                attributes: Some(attributes),
            }]);
        }
        let listed = match self.long || self.json {
            true => client.list_with_attributes(&self.path),
            false => client.list(&self.path),
        };
        let entries: client::Result<Vec<Entry>> = listed.map_err(refused)?.collect();
        entries.map_err(refused)
    }

    fn table(&self, entries: &[Entry]) -> String {
        let people = People::of_this_host();
        let size = |attributes: &Metadata| match (attributes.kind, self.bytes) {
            (Kind::Directory, _) => "-".to_owned(),
            (Kind::File, true) => attributes.size.to_string(),
            (Kind::File, false) => bytes(attributes.size),
        };
        let rows: Vec<[String; 6]> = entries
            .iter()
            .filter_map(|entry| {
                let attributes = entry.attributes.as_ref()?;
                Some([
                    attributes::mode(attributes.kind, attributes.mode),
                    people.user(attributes.owner),
                    people.group(attributes.group),
                    size(attributes),
                    attributes::time(attributes.modified),
                    name(entry),
                ])
            })
            .collect();
        let width = |k: usize| rows.iter().map(|row| row[k].len()).max().unwrap_or(0);
        let (owners, groups, sizes) = (width(1), width(2), width(3));
        let mut text = String::new();
        for [mode, owner, group, size, time, name] in &rows {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{mode} {owner:<owners$} {group:<groups$} {size:>sizes$} {time} {name}"
            );
        }
        text
    }
}

fn name(entry: &Entry) -> String {
    let end = match entry.kind {
        Kind::Directory => "/",
        Kind::File => "",
    };
    format!("{}{end}", shown(&entry.name))
}

fn to_json(entry: &Entry) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(entry.name));
    if let Some(attributes) = &entry.attributes {
        map.extend(attributes::to_json(attributes));
    }
    Value::Object(map)
}
