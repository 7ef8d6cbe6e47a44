//! `pario layout`: how a layout cuts up an array, as a picture and a table, as JSON, or as SVG. Owns
//! the table and what is said around the picture; the picture itself is in `draw`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::output::{self, bytes, counted, shortened};
use super::{Error, input};
use crate::draw::svg::{Drawing, Style};
use crate::draw::{Grid, Room, text};
use crate::notation;
use crate::subject::Subject;

/// Arguments of `pario layout`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario layout '(block, *) onto 4' --array 'f64[6,8]'
  pario layout '(block, cyclic(64)) onto 2x4' --array 'f32[4096,4096]' --svg picture.svg
  pario layout 'striped(64KiB) over 4 from 2' --bytes 1MiB --json")]
pub(crate) struct Arguments {
    /// A layout, such as '(block, *) onto 4'; without --array or --bytes the PATH of a stored file
    #[arg(value_name = "LAYOUT|PATH")]
    layout: String,

    #[command(flatten)]
    space: input::Space,

    /// Take the elements as views, which may have holes and overlap
    #[arg(long)]
    view: bool,

    /// Show one element only, with its FALLS in full
    #[arg(long, value_name = "K")]
    element: Option<usize>,

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
        return Err(input::no_service(&arguments.layout));
    };
    let read = if arguments.view {
        notation::views
    } else {
        notation::subject
    };
    let subject = Subject {
        is_file,
        ..read("layout", &arguments.layout, &array)?
    };
    let count = subject.len();
    if let Some(k) = arguments.element.filter(|&k| k >= count) {
        return Err(format!(
            "there is no element {k}: elements are numbered 0 to {}",
            count.saturating_sub(1)
        )
        .into());
    }
    if let Some(path) = &arguments.svg {
        output::write_file(path, &svg(&subject, arguments.element))?;
    }
    if arguments.json {
        return output::print(&format!("{:#}\n", to_json(&subject, arguments.element)));
    }
    output::print(&as_text(&subject, arguments.element))
}

/// `(block, *) onto 4 on f64[6,8]: 384 B in 4 elements`.
fn headline(subject: &Subject) -> String {
    let elements = counted(subject.len() as u64, "element", "elements");
    let size = bytes(subject.bytes());
    match subject.is_file {
        true => format!("{} on a file of {size} in {elements}", subject.text),
        false => format!(
            "{} on {}: {size} in {elements}",
            subject.text, subject.array
        ),
    }
}

fn as_text(subject: &Subject, only: Option<usize>) -> String {
    let mut text = headline(subject);
    if subject.period() != subject.bytes() {
        let _ = write!(text, ", repeating every {}", bytes(subject.period()));
    }
    text += "\n\n";
    text += &text::picture(subject, only);
    text.push('\n');
    text += &table(subject, only);
    text
}

fn chosen(subject: &Subject, only: Option<usize>, most: usize) -> std::ops::Range<usize> {
    match only {
        Some(k) => k..k + 1,
        None => 0..subject.len().min(most),
    }
}

fn table(subject: &Subject, only: Option<usize>) -> String {
    let mut text = format!(
        "  {:>7} {:>12} {:>6} {:>9}  falls\n",
        "element", "bytes", "share", "runs"
    );
    for element in chosen(subject, only, LISTED) {
        let set = subject.share(element);
        let falls = subject.element(element).set().simplify().to_string();
        let falls = if only.is_some() {
            falls
        } else {
            shortened(&falls, 39)
        };
        let share = 100.0 * set.size() as f64 / subject.bytes().max(1) as f64;
        let line = format!(
            "  {element:>7} {:>12} {share:>5.1}% {:>9}  {falls}",
            set.size(),
            set.run_count()
        );
        let _ = writeln!(text, "{line}");
    }
    if only.is_none() && subject.len() > LISTED {
        let _ = writeln!(
            text,
            "  … {} (--element K shows one, --json all)",
            counted(
                (subject.len() - LISTED) as u64,
                "more element",
                "more elements"
            )
        );
    }
    text
}

fn to_json(subject: &Subject, only: Option<usize>) -> Value {
    let elements: Vec<Value> = chosen(subject, only, usize::MAX)
        .map(|element| {
            let set = subject.share(element);
            let falls = subject.element(element).set().simplify();
            json!({
                "element": element,
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
pub(crate) fn svg_grid(subject: &Subject, only: Option<usize>) -> Grid {
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
    let grid = Grid::new(subject, &prefix, room);
    match only {
        Some(element) => grid.only(element),
        None => grid,
    }
}

fn svg(subject: &Subject, only: Option<usize>) -> String {
    let mut drawing = Drawing::new();
    drawing.text((24.0, 40.0), Style::title(), &subject.text);
    drawing.text((24.0, 62.0), Style::body(), &subtitle(subject));
    if subject.bytes() > 0 {
        drawing.grid((24.0, 82.0), &svg_grid(subject, only));
    }
    let lines: Vec<(Option<usize>, String)> = chosen(subject, only, LISTED)
        .map(|element| {
            let set = subject.share(element);
            let share = 100.0 * set.size() as f64 / subject.bytes().max(1) as f64;
            let runs = counted(set.run_count(), "run", "runs");
            let line = format!("{element}: {}, {share:.1}%, {runs}", bytes(set.size()));
            (Some(element), line)
        })
        .chain(
            (only.is_none() && subject.len() > LISTED)
                .then(|| (None, format!("… {} more", subject.len() - LISTED))),
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
