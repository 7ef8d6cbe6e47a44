//! Grids and bars as text: owner numbers in columns, at most [`WIDTH`] characters wide and [`ROWS`]
//! lines high. What the signs mean is said below the picture, and only if they occur.

use std::fmt::Write;

use falls::FallsSet;

use super::{Band, Grid, Room};
use console::subject::{Owner, Subject};

/// Widest line.
pub(crate) const WIDTH: usize = 80;
/// Most rows of a grid.
pub(crate) const ROWS: usize = 24;
/// Most slices of an array with more than two dimensions.
const SLICES: u64 = 4;

/// The picture of a layout on its array: a grid, slices, or a bar for a plain file.
pub(crate) fn picture(subject: &Subject) -> String {
    if subject.bytes() == 0 {
        return "  (the array has no bytes)\n".to_owned();
    }
    if subject.is_file {
        return bar(subject);
    }
    let extents = subject.array.extents();
    let leading = &extents[..extents.len().saturating_sub(2)];
    // The product is at most the size of the array.
    let slices: u64 = leading.iter().product();
    let mut text = String::new();
    let rows = if slices > 1 { ROWS / 3 } else { ROWS };
    let mut remarks = Remarks::default();
    for number in 0..slices.min(SLICES) {
        let prefix = coordinates(leading, number);
        let grid = Grid::new(subject, &prefix, room(subject, WIDTH, rows));
        if !prefix.is_empty() {
            let fixed: String = prefix.iter().map(|i| format!("{i},")).collect();
            let _ = writeln!(text, "  [{fixed}*,*]");
        }
        for line in lines(&grid) {
            let _ = writeln!(text, "  {line}");
        }
        remarks.add(&grid);
    }
    if slices > SLICES {
        let _ = writeln!(text, "  … {} more slices", slices - SLICES);
    }
    text + &remarks.text(subject.picked)
}

/// What the reader has to be told about the grids shown.
#[derive(Default)]
pub(crate) struct Remarks {
    merged: bool,
    several: bool,
    holes: bool,
}

impl Remarks {
    pub(crate) fn add(&mut self, grid: &Grid) {
        self.merged |= grid.is_merged();
        self.several |= grid.has_several();
        self.holes |= grid.has_holes();
    }

    pub(crate) fn text(&self, only: Option<usize>) -> String {
        let mut text = String::new();
        if self.merged {
            text += "  (neighbours with equal owners are drawn once; columns are labelled by their first index)\n";
        }
        if self.several {
            text += &several_line(only);
        }
        if self.holes {
            text += holes_line(only);
        }
        text
    }
}

fn several_line(only: Option<usize>) -> String {
    match only {
        None => "  + several elements\n".to_owned(),
        Some(element) => format!("  + in part element {element}\n"),
    }
}

fn holes_line(only: Option<usize>) -> &'static str {
    match only {
        None => "  . no element\n",
        Some(_) => "  . other elements, or none\n",
    }
}

/// How many cells of a subject fit into lines of `width` characters.
pub(crate) fn room(subject: &Subject, width: usize, rows: usize) -> Room {
    let extents = subject.array.extents();
    let columns = extents.last().copied().unwrap_or(1);
    let row_labels = match extents {
        [.., rows, _] => 2 * digits(rows.saturating_sub(1)) + 1,
        _ => 1,
    };
    let owner = digits(subject.last_number() as u64);
    let fits = |cell: usize| (width.saturating_sub(row_labels + 5) / (cell + 1)).max(3);
    // Labels of single columns are as wide as the last index.
    let columns_fit = fits(owner.max(digits(columns.saturating_sub(1))));
    Room {
        rows,
        columns: columns_fit,
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// The indices of slice `number`, last dimension fastest.
fn coordinates(extents: &[u64], number: u64) -> Vec<u64> {
    let mut rest = number;
    let mut indices: Vec<u64> = extents
        .iter()
        .rev()
        .map(|&extent| {
            let index = rest % extent;
            rest /= extent;
            index
        })
        .collect();
    indices.reverse();
    indices
}

fn owner_label(owner: Option<Owner>) -> String {
    match owner {
        None => "…".to_owned(),
        Some(Owner::Nobody) => ".".to_owned(),
        Some(Owner::One(element)) => element.to_string(),
        Some(Owner::Several(_)) => "+".to_owned(),
    }
}

/// A grid line by line: column labels, then a line per row band.
pub(crate) fn lines(grid: &Grid) -> Vec<String> {
    let column_label = |band: &Band| match band {
        Band::Shown(range) => range.start.to_string(),
        Band::Elided(_) => "…".to_owned(),
    };
    let row_label = |band: &Band| match band {
        _ if !grid.has_rows => String::new(),
        Band::Elided(_) => "…".to_owned(),
        Band::Shown(range) if range.end - range.start == 1 => range.start.to_string(),
        Band::Shown(range) => format!("{}-{}", range.start, range.end - 1),
    };
    let widest = |labels: &mut dyn Iterator<Item = String>| {
        labels.map(|l| l.chars().count()).max().unwrap_or(1)
    };
    let side = widest(&mut grid.rows.iter().map(row_label));
    let cell = widest(&mut grid.columns.iter().map(column_label)).max(widest(
        &mut grid.cells.iter().flatten().map(|&o| owner_label(o)),
    ));
    let line = |label: String, bar: &str, cells: &mut dyn Iterator<Item = String>| {
        let mut line = format!("{label:>side$} {bar}");
        for text in cells {
            let _ = write!(line, " {text:>cell$}");
        }
        line
    };
    let mut out = vec![line(
        String::new(),
        " ",
        &mut grid.columns.iter().map(column_label),
    )];
    for (band, cells) in grid.rows.iter().zip(&grid.cells) {
        out.push(line(
            row_label(band),
            "|",
            &mut cells.iter().map(|&owner| owner_label(owner)),
        ));
    }
    out
}

/// Grids side by side, each below its title.
pub(crate) fn side_by_side(left: (&str, &Grid), right: (&str, &Grid)) -> String {
    let column = |(title, grid): (&str, &Grid)| {
        let mut column = vec![title.to_owned()];
        column.extend(lines(grid));
        column
    };
    let (left, right) = (column(left), column(right));
    let width = left.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for i in 0..left.len().max(right.len()) {
        let empty = String::new();
        let (l, r) = (
            left.get(i).unwrap_or(&empty),
            right.get(i).unwrap_or(&empty),
        );
        let line = format!("  {l:<width$}    {r}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// A plain file as a bar: one character for an equal share of its bytes.
fn bar(subject: &Subject) -> String {
    let (bytes, width) = (subject.bytes(), WIDTH as u64 - 4);
    // A number of characters that divides the file has no characters across borders.
    let even = (width / 2..=width).rev().find(|steps| bytes % steps == 0);
    let even = if bytes % 64 == 0 { Some(64) } else { even };
    let steps = even.unwrap_or(width).min(bytes);
    let border = |i: u64| (u128::from(bytes) * u128::from(i) / u128::from(steps)) as u64;
    let (mut line, mut several, mut holes) = (String::new(), false, false);
    for i in 0..steps {
        let (from, to) = (border(i), border(i + 1));
        let part = FallsSet::segment(from, to - from).unwrap_or_default();
        line.push(match subject.owner(&part) {
            Owner::One(e) => letter(e),
            Owner::Nobody => {
                holes = true;
                '.'
            }
            Owner::Several(_) => {
                several = true;
                '+'
            }
        });
    }
    let mut text = format!("  [{line}]\n  0{:>1$}\n", bytes, steps as usize + 1);
    if steps < bytes {
        let _ = writeln!(
            text,
            "  (one character stands for about {} bytes)",
            bytes / steps
        );
    }
    if subject.last_number() >= 10 {
        text += "  (a is element 10, A is element 36, # is above 61)\n";
    }
    if several {
        text += &several_line(subject.picked);
    }
    if holes {
        text += holes_line(subject.picked);
    }
    text
}

fn letter(element: usize) -> char {
    let letters = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    letters.get(element).map_or('#', |&byte| byte as char)
}
