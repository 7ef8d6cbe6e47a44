//! `pario layout`: how a layout cuts up an array, or a stored file is cut, as a picture and a table, as
//! JSON, or as SVG. Owns the table of a layout and what is said around the picture; the picture
//! itself is in `draw`, and what is known about a stored file in `stored_layout`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use layout::Layout;
use serde_json::{Value, json};

use super::output::{self, bytes, counted, exact_bytes, shortened};
use super::stored_layout::StoredFile;
use super::{Error, input};
use crate::draw::svg::{Drawing, Style};
use crate::draw::{Grid, Room, text};
use console::notation;
use console::subject::Subject;

/// Arguments of `pario layout`.
#[derive(Args)]
#[command(after_help = "\
With --array or --bytes the argument is a layout, else the path of a stored file: then the
table shows which server has which subfile, in which incarnation (start) of it.

Examples:
  pario layout /results/matrix
  pario layout '(block, *) onto 4' --array 'f64[6,8]'
  pario layout '(block, cyclic(64)) onto 2x4' --array 'f32[4096,4096]' --svg picture.svg
  pario layout 'striped(64KiB) over 4 from 2' --bytes 1MiB --json")]
pub(crate) struct Arguments {
    /// The PATH of a stored file, or a layout such as '(block, *) onto 4' with --array or --bytes
    #[arg(value_name = "LAYOUT|PATH")]
    layout: String,

    #[command(flatten)]
    space: input::Space,

    /// Take the elements as views, which may have holes and overlap
    #[arg(long)]
    view: bool,

    /// Show one element only, with its FALLS in full
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    element: Option<String>,

    /// Write a picture to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Most elements in the table.
const LISTED: usize = 16;

/// Draws a layout.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let Some((array, is_file)) = arguments.space.array()? else {
        return arguments.show_stored();
    };
    let (role, layout) = ("layout", &arguments.layout);
    let subject = match &arguments.element {
        Some(k) => notation::element(role, layout, &array, notation::number("--element", k)?)?,
        None if arguments.view => notation::views(role, layout, &array)?,
        None => notation::subject(role, layout, &array)?,
    };
    let subject = Subject { is_file, ..subject };
    if let Some(path) = &arguments.svg {
        output::write_file(path, &svg(&subject))?;
    }
    if arguments.json {
        return output::print(&format!("{:#}\n", to_json(&subject)));
    }
    output::print(&as_text(&subject))
}

impl Arguments {
    fn show_stored(&self) -> Result<(), Error> {
        let path = &self.layout;
        // A path from the root is a path; elsewhere what reads as a layout is one.
        if !path.starts_with('/')
            && (path.contains(['(', '{', '[']) || path.parse::<Layout>().is_ok())
        {
            return Err(input::no_space(path));
        }
        if self.view {
            return Err("--view is for layouts with --array; a stored file is partitioned".into());
        }
        let element = self.element.as_deref();
        let element = element
            .map(|k| notation::number("--element", k))
            .transpose()?;
        let stored = StoredFile::ask(path, element)?;
        let subject = stored.subject()?;
        if let Some(path) = &self.svg {
            output::write_file(path, &svg(&subject))?;
        }
        match self.json {
            true => output::print(&format!("{:#}\n", stored.to_json())),
            false => output::print(&stored.to_text(&subject)),
        }
    }
}

/// `(block, *) onto 4 on f64[6,8]: 384 B in 4 elements`.
fn headline(subject: &Subject) -> String {
    let elements = counted(subject.total, "element", "elements");
    let size = exact_bytes(subject.bytes());
    match subject.is_file {
        true => format!("{} on a file of {size} in {elements}", subject.title()),
        false => format!(
            "{} on {}: {size} in {elements}",
            subject.title(),
            subject.array
        ),
    }
}

fn as_text(subject: &Subject) -> String {
    let mut text = headline(subject);
    if subject.period() != subject.bytes() {
        let _ = write!(text, ", repeating every {}", bytes(subject.period()));
    }
    text += "\n\n";
    text += &text::picture(subject);
    text.push('\n');
    text += &table(subject);
    text
}

fn table(subject: &Subject) -> String {
    let rows: Vec<[String; 5]> = (0..subject.count().min(LISTED))
        .map(|position| {
            let set = subject.share(position);
            let falls = subject.element(position).set().simplify().to_string();
            let falls = match subject.picked {
                Some(_) => falls,
                None => shortened(&falls, 39),
            };
            let share = 100.0 * set.size() as f64 / subject.bytes().max(1) as f64;
            [
                subject.number(position).to_string(),
                set.size().to_string(),
                format!("{share:.1}%"),
                set.run_count().to_string(),
                falls,
            ]
        })
        .collect();
    let width = |k: usize, least: usize| rows.iter().fold(least, |w, row| w.max(row[k].len()));
    let (a, b, c, d) = (width(0, 7), width(1, 12), width(2, 6), width(3, 9));
    let mut text = String::new();
    let head = ["element", "bytes", "share", "runs", "falls"].map(str::to_owned);
    for [element, bytes, share, runs, falls] in std::iter::once(&head).chain(&rows) {
        let _ = writeln!(
            text,
            "  {element:>a$} {bytes:>b$} {share:>c$} {runs:>d$}  {falls}"
        );
    }
    if subject.count() > LISTED {
        let more = (subject.count() - LISTED) as u64;
        let more = counted(more, "more element", "more elements");
        let _ = writeln!(text, "  … {more} (--element K shows one, --json all)");
    }
    text
}

fn to_json(subject: &Subject) -> Value {
    let elements: Vec<Value> = (0..subject.count())
        .map(|position| {
            let set = subject.share(position);
            let falls = subject.element(position).set().simplify();
            json!({
                "element": subject.number(position),
                "bytes": set.size(),
                "runs": set.run_count(),
                "nodes": falls.node_count(),
                "falls": falls.to_string(),
            })
        })
        .collect();
    json!({
        "layout": subject.text,
        "array": subject.array.to_string(),
        "bytes": subject.bytes(),
        "period": subject.period(),
        "elements": elements,
    })
}

/// The grid a picture shows: the last two dimensions, the others at 0.
pub(crate) fn svg_grid(subject: &Subject) -> Grid {
    let leading = subject.array.dimensions().saturating_sub(2);
    let prefix = vec![0; leading];
    // Every entry while they can be read, else a part that can.
    let fits = |extent: Option<&u64>| match extent {
        Some(41..) => 24,
        _ => 40,
    };
    let mut extents = subject.array.extents().iter().rev();
    let (columns, rows) = (fits(extents.next()), fits(extents.next()));
    let room = Room { rows, columns };
    Grid::new(subject, &prefix, room)
}

/// The picture of a subject as SVG.
pub(crate) fn picture_file(subject: &Subject) -> String {
    svg(subject)
}

fn svg(subject: &Subject) -> String {
    let mut drawing = Drawing::new();
    drawing.text((24.0, 40.0), Style::title(), &subject.title());
    drawing.text((24.0, 62.0), Style::body(), &subtitle(subject));
    if subject.bytes() > 0 {
        drawing.grid((24.0, 82.0), &svg_grid(subject));
    }
    let lines: Vec<(Option<usize>, String)> = (0..subject.count().min(LISTED))
        .map(|position| {
            let (element, set) = (subject.number(position), subject.share(position));
            let share = 100.0 * set.size() as f64 / subject.bytes().max(1) as f64;
            let runs = counted(set.run_count(), "run", "runs");
            let line = format!("{element}: {}, {share:.1}%, {runs}", bytes(set.size()));
            (Some(element), line)
        })
        .chain(
            (subject.count() > LISTED)
                .then(|| (None, format!("… {} more", subject.count() - LISTED))),
        )
        .collect();
    let wide = subject.array.dimensions() < 2;
    let at = match wide {
        true => (24.0, drawing.bottom() + 24.0),
        false => (drawing.right().max(300.0) + 28.0, 106.0),
    };
    drawing.legend(at, &lines);
    drawing.finish(&headline(subject))
}

/// What the picture shows of the array.
pub(crate) fn subtitle(subject: &Subject) -> String {
    let leading = subject.array.dimensions().saturating_sub(2);
    let slice = match leading {
        0 => String::new(),
        _ => format!(", slice [{}*,*]", "0,".repeat(leading)),
    };
    match subject.is_file {
        true => format!("a file of {}", bytes(subject.bytes())),
        false => format!("{}, {}{slice}", subject.array, bytes(subject.bytes())),
    }
}
