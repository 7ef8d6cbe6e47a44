//! `pario profile`: what was observed of the use of a file: who accessed what, how much, in which sizes and order. Owns
//! the table, its JSON, and what is drawn: of every process the bytes that it used. The profile comes from the
//! service, templates from files of this host.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use advise::profile::blocks::{AccessMap, Process};
use advise::profile::template::Template;
use advise::profile::{Entry, Key, Order, Profile, SIZES, Tally};
use clap::Args;
use client::{Client, FileProfile, Kind};
use falls::FallsSet;
use layout::{ArrayType, ElementType, FileOffset, View};
use serde_json::{Map, Value, json};

use super::connection::{self, refused};
use super::layout::picture_file;
use super::names::{absolute, shown};
use super::output::{bytes, counted, shortened};
use super::{Error, output};
use crate::draw::text;
use console::subject::{Elements, Subject};

/// Arguments of `pario profile`.
#[derive(Args)]
#[command(after_help = "\
Clients record how they use a file and hand it over when they close or sync it. A template is
such a record with the shape of its file: import it to let another file begin with it, also
when the program has another number of processes.

Examples:
  pario profile /results/matrix
  pario profile /results/matrix --json
  pario profile /results/matrix --svg picture.svg
  pario profile /results/matrix --export sor.template
  pario profile /results/next --import sor.template --processes 8")]
pub(crate) struct Arguments {
    /// The file
    path: String,

    /// Forget what was observed
    #[arg(long, conflicts_with_all = ["export", "import", "svg"])]
    clear: bool,

    /// Write it as a template to this file
    #[arg(long, value_name = "FILE", conflicts_with = "import")]
    export: Option<PathBuf>,

    /// Take the template in this file in place of what was observed
    #[arg(long, value_name = "FILE")]
    import: Option<PathBuf>,

    /// With --import: the number of processes that the program will have
    #[arg(long, value_name = "N", requires = "import", value_parser = clap::value_parser!(u64).range(1..=4096))]
    processes: Option<u64>,

    /// Write a picture to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Most entries in the table.
const LISTED: usize = 32;
/// Blocks by which sharing is counted, about.
const BLOCKS: u64 = 256;

/// A stored file and what is known about its use.
pub(crate) struct ObservedFile {
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) array: Option<ArrayType>,
    pub(crate) layout: String,
    pub(crate) found: FileProfile,
}

impl ObservedFile {
    /// Asks the service.
    pub(crate) fn ask(client: &Client, path: &str) -> Result<ObservedFile, Error> {
        let attributes = client.stat(path).map_err(refused)?;
        let path = absolute(path);
        if attributes.kind == Kind::Directory {
            let shown = shown(&path);
            return Err(
                format!("{shown} is a directory, which has no profile; name a file").into(),
            );
        }
        let array = attributes
            .array
            .as_deref()
            .and_then(|text| text.parse().ok());
        Ok(ObservedFile {
            found: client.profile(&path).map_err(refused)?,
            path,
            size: attributes.size,
            array: array.filter(|a: &ArrayType| a.bytes() > 0),
            layout: attributes.layout.unwrap_or_default(),
        })
    }

    /// Bytes that views are looked at: those of the array if the file is shorter.
    pub(crate) fn bytes(&self) -> u64 {
        self.array
            .as_ref()
            .map_or(self.size, |a| self.size.max(a.bytes()))
    }

    fn profile(&self) -> &Profile {
        &self.found.profile
    }
}

/// Shows or changes the profile of a file.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    let path = &arguments.path;
    let observed = ObservedFile::ask(&client, path)?;
    let name = shown(&observed.path);
    if arguments.clear {
        client.clear_profile(path).map_err(refused)?;
        return output::print(&format!("{name}: forgot what was observed\n"));
    }
    if let Some(from) = &arguments.import {
        return import(&client, &observed, from, arguments.processes.unwrap_or(0));
    }
    if let Some(to) = &arguments.export {
        if observed.profile().is_empty() {
            return Err(format!("{name}: nothing was observed yet; run the program first").into());
        }
        let template = Template {
            array: observed
                .array
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            file_bytes: observed.size,
            profile: observed.profile().clone(),
        };
        std::fs::write(to, template.save())
            .map_err(|e| format!("--export: {}: {e}", to.display()))?;
        return output::print(&format!("{name}: template written to {}\n", to.display()));
    }
    if let Some(to) = &arguments.svg {
        output::write_file(to, &picture_file(&observed.subject()?))?;
    }
    match arguments.json {
        true => output::print(&format!("{:#}\n", observed.to_json())),
        false => output::print(&observed.to_text()?),
    }
}

fn import(
    client: &Client,
    observed: &ObservedFile,
    from: &Path,
    processes: u64,
) -> Result<(), Error> {
    let given = from.display();
    let read = std::fs::read(from).map_err(|e| format!("--import: {given}: {e}"))?;
    let template = Template::load(&read).map_err(|e| format!("--import: {given}: {e}"))?;
    let profile = template
        .fit(observed.array.as_ref(), observed.bytes(), processes)
        .map_err(|e| format!("--import: {given}: {e}"))?;
    client
        .replace_profile(&observed.path, &profile)
        .map_err(refused)?;
    let entries = counted(profile.len() as u64, "entry", "entries");
    output::print(&format!(
        "{}: {entries} from {given}\n",
        shown(&observed.path)
    ))
}

/// `98% sequential, 2% random`.
fn orders(tally: &Tally) -> String {
    let count = tally.count().max(1) as f64;
    let mut parts: Vec<(u64, &str)> = Order::ALL
        .iter()
        .map(|o| (tally.orders[*o as usize], o.name()))
        .filter(|(n, _)| *n > 0)
        .collect();
    parts.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    let part = |(n, name): &(u64, &str)| format!("{:.0}% {name}", 100.0 * *n as f64 / count);
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// The word for the order that most accesses have.
fn main_order(entry: &Entry) -> &'static str {
    let sum = |o: &Order| entry.read.orders[*o as usize] + entry.written.orders[*o as usize];
    let most = Order::ALL.iter().max_by_key(|o| sum(o));
    most.map_or("", |o| o.name())
}

/// The sizes of accesses as a histogram.
fn histogram(text: &mut String, word: &str, tally: &Tally) {
    let most = tally.sizes.iter().max().copied().unwrap_or(0).max(1);
    for (class, n) in tally.sizes.iter().enumerate().filter(|(_, n)| **n > 0) {
        let from = match class {
            0 => 0,
            class => 1_u64 << (class - 1),
        };
        let below = match class + 1 {
            1 => String::new(),
            SIZES => "or more".to_owned(),
            _ => format!("to < {}", bytes(1_u64 << class)),
        };
        let bar = "#".repeat((n * 30).div_ceil(most) as usize);
        let _ = writeln!(
            text,
            "    {word:<6} {:>10} {below:<14} {n:>10}  {bar}",
            bytes(from)
        );
    }
}

fn tally_json(tally: &Tally) -> Value {
    let mut sizes = Map::new();
    for (class, n) in tally.sizes.iter().enumerate().filter(|(_, n)| **n > 0) {
        let from = if class == 0 { 0 } else { 1_u64 << (class - 1) };
        sizes.insert(from.to_string(), json!(n));
    }
    let mut orders = Map::new();
    for order in Order::ALL {
        orders.insert(order.name().into(), json!(tally.orders[order as usize]));
    }
    json!({
        "bytes": tally.bytes,
        "count": tally.count(),
        "sizes": sizes,
        "order": orders,
        "hull": [tally.hull.0, tally.hull.1],
    })
}

/// The view of an entry in the shortest words that say it.
fn view_text(entry: &Entry) -> String {
    let view = entry.view.bytes();
    let text = match (entry.text.as_str(), view.is_everything()) {
        ("", true) if view.displacement() == 0 => "the whole file".to_owned(),
        ("", _) => view.set().simplify().to_string(),
        (text, _) => text.to_owned(),
    };
    match entry.is_coarse {
        true => format!("about {text}"),
        false => text,
    }
}

impl ObservedFile {
    /// Who used what.
    pub(crate) fn map(&self) -> AccessMap {
        AccessMap::new(self.profile(), self.bytes())
    }

    fn block(&self) -> u64 {
        self.bytes().div_ceil(BLOCKS).next_power_of_two().max(4096)
    }

    /// Every process with the bytes that it used.
    fn subject(&self) -> Result<Subject, Error> {
        let map = self.map();
        let size = self.bytes();
        let mut views = Vec::new();
        for process in 0..map.processes.len() {
            let mut parts: Vec<FallsSet> = Vec::new();
            // Of several views the one that moved most is drawn.
            let mine = map.uses.iter().filter(|u| u.process == process);
            if let Some(most) = mine.max_by(|a, b| a.moved().total_cmp(&b.moved())) {
                parts.extend(most.ranges.iter().map(|r| most.view.window(r.clone())));
            }
            let set = FallsSet::concat(&parts)?;
            views.push(View::new(FileOffset(0), size.max(1), set)?);
        }
        let (array, is_file) = match &self.array {
            Some(array) => (array.clone(), false),
            None => (
                ArrayType::new(ElementType::U8, [size], layout::Order::C)?,
                true,
            ),
        };
        let title = format!("processes that use {}", self.path);
        Ok(Subject {
            is_file,
            ..Subject::new(title, &array, Elements::Views(views))
        })
    }

    fn to_text(&self) -> Result<String, Error> {
        let profile = self.profile();
        let name = shown(&self.path);
        if profile.is_empty() {
            return Ok(format!(
                "{name}: nothing was observed yet; programs hand over what they did when they close or sync the \
                 file (PARIO_PROFILE=0 keeps them from it)\n"
            ));
        }
        let total = profile.total();
        let mut out = String::new();
        let applications = profile.applications();
        let said: Vec<String> = applications
            .iter()
            .map(|a| {
                format!(
                    "{} ({})",
                    shown(a),
                    counted(profile.processes(a), "process", "processes")
                )
            })
            .collect();
        let _ = writeln!(out, "{name}: used by {}", said.join(", "));
        for (word, tally) in [("read", &total.read), ("written", &total.written)] {
            if !tally.is_empty() {
                let accesses = counted(tally.count(), "access", "accesses");
                let order = orders(tally);
                let _ = writeln!(
                    out,
                    "  {word} {} in {accesses}, {order}",
                    bytes(tally.bytes)
                );
            }
        }
        if let Some(share) = total.near_share() {
            let _ = writeln!(
                out,
                "  {:.1}% of the bytes at the server nearest to the process",
                100.0 * share
            );
        }
        if profile.kept_share() < 0.999 {
            let share = 100.0 * profile.kept_share();
            let _ = writeln!(
                out,
                "  a sample of the processes is kept, with {share:.0}% of the bytes"
            );
        }
        out.push('\n');
        histogram(&mut out, "reads", &total.read);
        histogram(&mut out, "writes", &total.written);
        out.push('\n');
        self.table(&mut out);
        for application in applications {
            let origin = profile.origin(application, self.array.as_ref(), self.bytes());
            if let Some(origin) = origin {
                let name = shown(application);
                let _ = writeln!(
                    out,
                    "  the views of {name} are the elements of {}",
                    origin.layout
                );
            }
        }
        let map = self.map();
        let block = self.block();
        let (nobody, one, several) = map.sharing(block);
        let _ = writeln!(
            out,
            "  blocks of {}: {one} exclusive, {several} shared, {nobody} unused\n",
            bytes(block)
        );
        if map.processes.len() > 1 || self.array.as_ref().is_some_and(|a| a.dimensions() == 2) {
            out += &text::picture(&self.subject()?);
            let number = |(i, p): (usize, &Process)| {
                format!("{i}: {} rank {}", shown(&p.application), p.rank)
            };
            let legend: Vec<String> = map
                .processes
                .iter()
                .enumerate()
                .take(12)
                .map(number)
                .collect();
            let more = if map.processes.len() > 12 {
                ", …"
            } else {
                ""
            };
            let _ = writeln!(out, "  {}{more}", legend.join(", "));
        }
        if self.found.auto_layout != "off" || !self.found.suggestion.is_empty() {
            let FileProfile {
                auto_layout,
                moves,
                suggestion,
                why,
                ..
            } = &self.found;
            let _ = writeln!(out, "  auto_layout={auto_layout}, moved {moves} times");
            if !suggestion.is_empty() {
                let _ = writeln!(out, "  suggested: {} ({})", shown(suggestion), shown(why));
            }
        }
        Ok(out)
    }

    fn table(&self, out: &mut String) {
        let entries = self.profile().entries();
        let row = |(key, entry): &(&Key, &Entry)| {
            let near = entry.nearest().map_or("-".to_owned(), |s| s.to_string());
            let tally = |t: &Tally| match t.is_empty() {
                true => "-".to_owned(),
                false => format!("{} / {}", bytes(t.bytes), t.count()),
            };
            [
                shortened(&shown(&key.application), 16),
                key.rank.to_string(),
                near,
                tally(&entry.read),
                tally(&entry.written),
                main_order(entry).to_owned(),
                shortened(&view_text(entry), 44),
            ]
        };
        let head = [
            "application",
            "rank",
            "near",
            "read / count",
            "written / count",
            "order",
            "view",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(entries.iter().take(LISTED).map(row));
        let width = |k: usize| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for r in &rows {
            let _ = write!(out, "  {:<w$}", r[0], w = widths[0]);
            for k in 1..5 {
                let _ = write!(out, "  {:>w$}", r[k], w = widths[k]);
            }
            let _ = writeln!(out, "  {:<w$}  {}", r[5], r[6], w = widths[5]);
        }
        if entries.len() > LISTED {
            let more = counted(
                (entries.len() - LISTED) as u64,
                "more entry",
                "more entries",
            );
            let _ = writeln!(out, "  … {more} (--json shows all)");
        }
    }

    fn to_json(&self) -> Value {
        let profile = self.profile();
        let total = profile.total();
        let entry = |(key, entry): &(&Key, &Entry)| {
            let view = entry.view.bytes();
            json!({
                "application": key.application,
                "rank": key.rank,
                "processes": entry.processes,
                "nearest": entry.nearest(),
                "view": view.set().to_string(),
                "displacement": view.displacement(),
                "period": view.period(),
                "text": entry.text,
                "coarse": entry.is_coarse,
                "reports": entry.reports,
                "read": tally_json(&entry.read),
                "written": tally_json(&entry.written),
            })
        };
        let servers: Vec<Value> = total
            .servers
            .iter()
            .map(|s| {
                json!({
                    "server": s.server,
                    "read": s.read,
                    "written": s.written,
                    "own_read": s.own_read,
                    "own_written": s.own_written,
                    "near": s.near,
                })
            })
            .collect();
        let origins: Vec<Value> = profile
            .applications()
            .iter()
            .map(|a| {
                let origin = profile.origin(a, self.array.as_ref(), self.bytes());
                json!({
                    "application": a,
                    "processes": profile.processes(a),
                    "distribution": origin.map(|o| o.layout.to_string()),
                })
            })
            .collect();
        let (nobody, one, several) = self.map().sharing(self.block());
        json!({
            "path": self.path,
            "array": self.array.as_ref().map(ToString::to_string),
            "bytes": self.size,
            "layout": self.layout,
            "reports": total.reports,
            "read": tally_json(&total.read),
            "written": tally_json(&total.written),
            "near_share": total.near_share(),
            "kept_share": profile.kept_share(),
            "servers": servers,
            "applications": origins,
            "blocks": {"bytes": self.block(), "exclusive": one, "shared": several, "unused": nobody},
            "entries": profile.entries().iter().map(entry).collect::<Vec<Value>>(),
            "auto_layout": {
                "mode": self.found.auto_layout,
                "moves": self.found.moves,
                "suggestion": self.found.suggestion,
                "why": self.found.why,
            },
        })
    }
}
