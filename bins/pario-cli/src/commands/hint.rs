//! `pario hint`: hints that are kept with a file or directory. Owns the table of what is given, by whom,
//! what counts, and what was used when the file was created; also clears servers whose disk failed.

use std::fmt::Write;

use advise::hints::{TABLE, known, split_pair};
use clap::Args;
use client::{Client, HintOutcome, HintReport, Hints, KeptHints, Source, Verdict};
use serde_json::{Map, Value, json};

use super::connection::{self, refused};
use super::names::{absolute, shown};
use super::{Error, output};

/// Arguments of `pario hint`.
#[derive(Args)]
#[command(after_help = "\
Hints of a directory hold for all files that are made below it; of several the one of the stronger source
counts: dynamic > program > connect > compiler (PARIO_HINTS) > file > directory, nearest first > profile >
rule. `pario hint` keeps those of files and directories, which only their owner and root may.
A hint never changes what programs read and write, and one that cannot be used is passed over.

Examples:
  pario hint /data striping_unit=64KiB access_style=read_once,sequential
  pario hint /data/matrix auto_layout=suggest
  pario hint /data/matrix                 what is given, what counts, what was used
  pario hint --unset striping_unit /data
  pario hint --table                      all names and what they mean
  pario hint --clear-failed 2             server 2 takes new subfiles again")]
pub(crate) struct Arguments {
    /// File or directory
    #[arg(required_unless_present_any = ["table", "clear_failed"])]
    path: Option<String>,

    /// Hints to keep
    #[arg(value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// A name whose hint is removed; may be given several times
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,

    /// Show all names that have a meaning
    #[arg(long, conflicts_with_all = ["path", "clear_failed"])]
    table: bool,

    /// Let a server take new subfiles again after its disk was mended
    #[arg(long, value_name = "SERVER", conflicts_with = "path")]
    clear_failed: Option<u64>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Sets or shows hints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    if arguments.table {
        return show_table(arguments.json);
    }
    if let Some(server) = arguments.clear_failed {
        let client = connection::connect_to_existing()?;
        return client
            .clear_failed(client::ServerId(server))
            .map_err(refused);
    }
    let mut hints = Hints::new();
    for text in &arguments.set {
        let (name, value) = split_pair(text).ok_or_else(|| {
            let text = shown(text);
            format!("'{text}' is no hint; write NAME=VALUE, as in striping_unit=64KiB")
        })?;
        hints.set(name, value).map_err(refused)?;
    }
    let path = absolute(arguments.path.as_deref().unwrap_or_default());
    let client = connection::connect_to_existing()?;
    if !hints.is_empty() || !arguments.unset.is_empty() {
        client
            .set_hints(&path, &hints, &arguments.unset)
            .map_err(refused)?;
        if !arguments.json {
            return Ok(());
        }
    }
    let kept = client.hints(&path).map_err(refused)?;
    if arguments.json {
        let mut all = to_json(&kept);
        all["path"] = json!(path);
        return output::print(&format!("{all:#}\n"));
    }
    output::print(&to_text(&path, &kept))
}

fn show_table(is_json: bool) -> Result<(), Error> {
    if is_json {
        let row = |k: &advise::hints::HintMeaning| {
            json!({"name": k.name, "kind": k.kind.word(), "life": k.life.word(), "what": k.what,
                   "is_of_creation": k.is_of_creation})
        };
        let rows: Vec<Value> = TABLE.iter().map(row).collect();
        return output::print(&format!("{:#}\n", Value::Array(rows)));
    }
    let mut text = String::new();
    for k in TABLE {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<20} {:<14} {:<7} {}",
            k.name,
            k.kind.word(),
            k.life.word(),
            k.what
        );
    }
    output::print(&text)
}

/// What became of a hint, in one word and with the reason.
fn state(kept: &KeptHints, verdict: &Verdict) -> (&'static str, String) {
    match verdict {
        Verdict::Counts => ("counts", String::new()),
        Verdict::Overridden(by) => {
            let by = &kept.standing.hints[*by].0;
            (
                "overridden",
                format!("by {} {}", by.source.word(), by.place),
            )
        }
        Verdict::Ignored(why) => ("ignored", why.clone()),
        Verdict::Unknown => ("unknown", "kept".into()),
    }
}

fn outcome(outcome: HintOutcome) -> &'static str {
    match outcome {
        HintOutcome::Used => "used",
        HintOutcome::Idle => "idle",
        HintOutcome::Overridden => "overridden",
        HintOutcome::Ignored => "ignored",
        HintOutcome::Unknown => "unknown",
    }
}

fn to_text(path: &str, kept: &KeptHints) -> String {
    let mut rows: Vec<[String; 5]> = Vec::new();
    let place = |source: Source, place: &str| match place.is_empty() {
        true => source.word().to_owned(),
        false => format!("{} {}", source.word(), shown(place)),
    };
    for (given, verdict) in &kept.standing.hints {
        let (word, why) = state(kept, verdict);
        rows.push([
            given.name.clone(),
            shown(&given.value),
            place(given.source, &given.place),
            word.to_owned(),
            shown(&why),
        ]);
    }
    let mut text = String::new();
    if rows.is_empty() {
        let _ = writeln!(text, "no hints are kept with {} or above it", shown(path));
    } else {
        let heading = ["hint", "value", "source", "state", ""].map(str::to_owned);
        rows.insert(0, heading);
        text += &lines(&rows);
    }
    if !kept.uses.is_empty() {
        text += "\nwhen it was created\n";
        let uses = kept.uses.iter().map(|used| {
            [
                used.name.clone(),
                shown(&used.value),
                place(used.source, &used.place),
                outcome(used.outcome).to_owned(),
                shown(&used.why),
            ]
        });
        text += &lines(&uses.collect::<Vec<_>>());
    }
    if !kept.distribution.is_empty() {
        let _ = writeln!(text, "\nchosen  {}", shown(&kept.distribution));
    }
    text
}

fn lines(rows: &[[String; 5]]) -> String {
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (entry, width) in row.iter().zip(widths.iter().chain([&0])) {
            let _ = write!(line, "{entry:<width$}  ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn report_json(used: &HintReport) -> Value {
    json!({
        "name": used.name,
        "value": used.value,
        "source": used.source.word(),
        "place": used.place,
        "precedence": used.source.precedence(),
        "outcome": outcome(used.outcome),
        "why": used.why,
    })
}

/// Everything about the hints of a file or directory.
pub(crate) fn to_json(kept: &KeptHints) -> Value {
    let given = kept.standing.hints.iter().map(|(given, verdict)| {
        let (word, why) = state(kept, verdict);
        let known = known(&given.name);
        json!({
            "name": given.name,
            "value": given.value,
            "source": given.source.word(),
            "place": given.place,
            "precedence": given.source.precedence(),
            "kind": known.map(|k| k.kind.word()),
            "life": known.map(|k| k.life.word()),
            "state": word,
            "why": why,
        })
    });
    let effective = kept.standing.counting().map(|(name, given)| {
        let value =
            json!({"value": given.value, "source": given.source.word(), "place": given.place});
        (name.to_owned(), value)
    });
    json!({
        "hints": given.collect::<Vec<_>>(),
        "effective": Value::Object(effective.collect::<Map<_, _>>()),
        "at_creation": kept.uses.iter().map(report_json).collect::<Vec<_>>(),
        "distribution": kept.distribution,
    })
}

/// The hints of a path, for `pario stat`.
pub(crate) fn of_path(client: &Client, path: &str) -> Result<KeptHints, Error> {
    client.hints(path).map_err(refused)
}
