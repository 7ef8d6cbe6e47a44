//! `pario stat`: everything that is known about one file or directory of the service. The size is
//! the latest, from the server that owns the file.

use std::fmt::Write;

use clap::Args;
use client::Kind;
use serde_json::{Map, Value, json};

use super::Error;
use super::attributes::{self, People};
use super::connection::{self, refused};
use super::names::{absolute, shown};
use super::output::{self, exact_bytes};

/// Arguments of `pario stat`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario stat /results/matrix
  pario stat --json /results/matrix | jq .size")]
pub(crate) struct Arguments {
    /// File or directory
    path: String,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Shows a file or directory.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    let attributes = client.stat(&arguments.path).map_err(refused)?;
    let path = absolute(&arguments.path);
    let distribution = match attributes.kind {
        Kind::File => Some(client.layout(&path).map_err(refused)?.distribution),
        Kind::Directory => None,
    };
    let streams = match attributes.kind {
        Kind::File => streams::Stream::record(&client, &path).map_err(refused)?,
        Kind::Directory => None,
    };
    let kept = super::hint::of_path(&client, &path)?;
    let values = match attributes.kind {
        Kind::File => client.values(&path).map_err(refused)?,
        Kind::Directory => Vec::new(),
    };
    if arguments.json {
        let mut map = attributes::to_json(&attributes);
        if let Some(distribution) = &distribution {
            map.insert("distribution".to_owned(), json!(distribution));
        }
        if let Some(record) = &streams {
            map.insert("streams".to_owned(), json!(record.shape.extents()));
        }
        map.insert("hints".to_owned(), super::hint::to_json(&kept));
        map.insert("path".to_owned(), json!(path));
        let values = values.iter();
        let values: Map<String, Value> = values
            .map(|(name, value)| (name.clone(), json!(value_text(value))))
            .collect();
        map.insert("values".to_owned(), Value::Object(values));
        return output::print(&format!("{:#}\n", Value::Object(map)));
    }
    let people = People::of_this_host();
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<10} {value}");
    };
    line("path", &shown(&path));
    line("kind", attributes::kind(attributes.kind));
    if attributes.kind == Kind::File {
        line("size", &exact_bytes(attributes.size));
        line(
            "array",
            attributes.array.as_deref().unwrap_or("none, plain bytes"),
        );
        line("layout", attributes.layout.as_deref().unwrap_or("none"));
        line("chosen", distribution.as_deref().unwrap_or("not recorded"));
        if let Some(record) = &streams {
            line("streams", &format!("of VPs of shape {}", record.shape));
        }
        line("generation", &attributes.generation.to_string());
    }
    for (name, given) in kept.standing.counting() {
        let from = format!("{} ({} {})", given.value, given.source.word(), given.place);
        line("hint", &shown(&format!("{name} = {from}")));
    }
    for (name, value) in &values {
        line("value", &shown(&format!("{name} = {}", value_text(value))));
    }
    let mode = attributes::mode(attributes.kind, attributes.mode);
    line("mode", &format!("{:04o} {mode}", attributes.mode));
    line(
        "owner",
        &person(attributes.owner, &people.user(attributes.owner)),
    );
    line(
        "group",
        &person(attributes.group, &people.group(attributes.group)),
    );
    line("modified", &attributes::exact_time(attributes.modified));
    line("changed", &attributes::exact_time(attributes.changed));
    line("accessed", &attributes::exact_time(attributes.accessed));
    line("id", &attributes.file.0.to_string());
    output::print(&text)
}

/// A value that a program keeps with the file: as text, if it is one.
fn value_text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn person(number: u32, name: &str) -> String {
    match name.parse() == Ok(number) {
        true => name.to_owned(),
        false => format!("{number} {name}"),
    }
}
