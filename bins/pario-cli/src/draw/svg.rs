//! Grids as SVG: coloured cells with numbers, a title, a legend.
//!
//! Text is set in the reader's sans-serif font and measured by a mean width, so nothing depends on
//! fonts of this machine. Small slices have square cells; merged ones are drawn to scale.

use std::fmt::Write;

use super::palette::{self, Colour};
use super::{Band, Grid};
use console::subject::Owner;

/// Room for a grid in user units.
const GRID: f64 = 520.0;
/// Cells are at most so large.
const CELL: f64 = 44.0;
/// Mean width of a character relative to the font size.
const CHARACTER: f64 = 0.56;

/// A drawing that grows by pieces placed on it.
pub(crate) struct Drawing {
    body: String,
    width: f64,
    height: f64,
}

impl Drawing {
    /// An empty drawing.
    pub(crate) fn new() -> Drawing {
        Drawing {
            body: String::new(),
            width: 0.0,
            height: 0.0,
        }
    }

    fn reach(&mut self, x: f64, y: f64) {
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    /// The right end of what was drawn.
    pub(crate) fn right(&self) -> f64 {
        self.width
    }

    /// The lower end of what was drawn.
    pub(crate) fn bottom(&self) -> f64 {
        self.height
    }

    fn rect(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), fill: &str) {
        let _ = writeln!(
            self.body,
            r#"  <rect x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}" fill="{fill}"/>"#
        );
        self.reach(x + w, y + h);
    }

    /// Writes a text with its left, middle or right end at x and its baseline at y.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), style: Style, text: &str) {
        let Style {
            size,
            anchor,
            fill,
            bold,
        } = style;
        let weight = if bold { r#" font-weight="600""# } else { "" };
        let _ = writeln!(
            self.body,
            r#"  <text x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"{weight}>{}</text>"#,
            escaped(text)
        );
        let len = text.chars().count() as f64 * size * CHARACTER;
        self.reach(
            x + match anchor {
                "start" => len,
                "middle" => len / 2.0,
                _ => 0.0,
            },
            y + size * 0.3,
        );
    }

    /// Places a grid with its upper left corner, labels included, at `at`; returns the opposite
    /// corner.
    pub(crate) fn grid(&mut self, at: (f64, f64), grid: &Grid) -> (f64, f64) {
        let label = Style::label();
        let rows = if grid.has_rows { &grid.rows[..] } else { &[] };
        let side = rows.iter().map(|b| row_label(b).chars().count()).max();
        let left = at.0 + side.map_or(0.0, |n| n as f64 * label.size * CHARACTER + 8.0);
        let top = at.1 + label.size + 6.0;
        let columns = Axis::new(&grid.columns);
        let rows_axis = match grid.has_rows {
            true => Axis::new(&grid.rows),
            false => Axis::single(),
        };
        for (i, band) in grid.columns.iter().enumerate() {
            let (x, w) = columns.place(i);
            let text = column_label(band);
            if text.chars().count() as f64 * label.size * CHARACTER <= w - 2.0 {
                let middle = (left + x + w / 2.0, top - 5.0);
                self.text(middle, label.anchored("middle"), &text);
            }
        }
        for (j, band) in grid.rows.iter().enumerate() {
            let (y, h) = rows_axis.place(j);
            if grid.has_rows && h >= label.size * 0.9 {
                let end = (left - 6.0, top + y + h / 2.0 + label.size * 0.35);
                self.text(end, label.anchored("end"), &row_label(band));
            }
            for (i, cell) in grid.cells[j].iter().enumerate() {
                let (x, w) = columns.place(i);
                self.cell((left + x, top + y), (w, h), *cell);
            }
        }
        let (w, h) = (columns.total(), rows_axis.total());
        let _ = writeln!(
            self.body,
            r##"  <rect x="{left:.1}" y="{top:.1}" width="{w:.1}" height="{h:.1}" fill="none" stroke="#333333" stroke-width="1.2"/>"##
        );
        self.reach(left + w, top + h);
        (left + w, top + h)
    }

    fn cell(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), owner: Option<Owner>) {
        // Lines between cells, where there is room for any.
        let gap = if w.min(h) >= 6.0 { 1.0 } else { 0.0 };
        let size = ((w - gap).max(0.2), (h - gap).max(0.2));
        let (fill, ink, label) = match owner {
            None => return self.middle_text((x, y), (w, h), "#666666", "…"),
            Some(Owner::Nobody) => ("#ffffff".to_owned(), "#999999", String::new()),
            Some(Owner::One(element)) => {
                let colour = palette::of(element);
                (
                    palette::hex(colour),
                    palette::ink(colour),
                    element.to_string(),
                )
            }
            Some(Owner::Several(_)) => ("#d9d9d9".to_owned(), "#1a1a1a", "+".to_owned()),
        };
        self.rect((x, y), size, &fill);
        self.middle_text((x, y), (w, h), ink, &label);
    }

    fn middle_text(
        &mut self,
        (x, y): (f64, f64),
        (w, h): (f64, f64),
        ink: &'static str,
        text: &str,
    ) {
        let len = text.chars().count() as f64;
        let size = (h * 0.5)
            .min(w * 0.7 / (len * CHARACTER).max(0.1))
            .min(18.0);
        if text.is_empty() || size < 6.0 {
            return;
        }
        let style = Style {
            size: size.round(),
            anchor: "middle",
            fill: ink,
            bold: false,
        };
        self.text((x + w / 2.0, y + h / 2.0 + size * 0.35), style, text);
    }

    /// Coloured squares with a line of text each, from `at` downwards.
    pub(crate) fn legend(&mut self, at: (f64, f64), lines: &[(Option<usize>, String)]) {
        for (i, (element, text)) in lines.iter().enumerate() {
            let y = at.1 + i as f64 * 22.0;
            if let Some(element) = element {
                self.rect(
                    (at.0, y),
                    (14.0, 14.0),
                    &palette::hex(palette::of(*element)),
                );
            }
            self.text((at.0 + 22.0, y + 12.0), Style::body(), text);
        }
    }

    /// A table of numbers as shades: rows are sources, numbered from `first` on, columns targets.
    pub(crate) fn matrix(
        &mut self,
        at: (f64, f64),
        titles: (&str, &str),
        first: usize,
        values: &[Vec<u64>],
    ) {
        let count = values.len().max(values.first().map_or(0, Vec::len)).max(1);
        let side = (300.0 / count as f64).clamp(8.0, CELL * 1.4);
        let most = values.iter().flatten().copied().max().unwrap_or(1).max(1);
        let (left, top) = (at.0 + 34.0, at.1 + 36.0);
        let heads = format!("{} ↓   {} →", titles.0, titles.1);
        self.text((left, at.1 + 14.0), Style::label(), &heads);
        for (i, row) in values.iter().enumerate() {
            let y = top + i as f64 * side;
            if side >= 12.0 {
                let end = (left - 6.0, y + side / 2.0 + 4.0);
                self.text(
                    end,
                    Style::label().anchored("end"),
                    &(first + i).to_string(),
                );
            }
            for (j, &value) in row.iter().enumerate() {
                let x = left + j as f64 * side;
                if i == 0 && side >= 12.0 {
                    let middle = (x + side / 2.0, top - 6.0);
                    self.text(middle, Style::label().anchored("middle"), &j.to_string());
                }
                let share = value as f64 / most as f64;
                let shade: Colour = match value {
                    0 => (0xff, 0xff, 0xff),
                    _ => palette::mixed((0xe3, 0xee, 0xf7), (0x00, 0x5a, 0x96), share),
                };
                self.rect((x, y), (side - 1.0, side - 1.0), &palette::hex(shade));
                if value > 0 {
                    self.middle_text((x, y), (side, side), palette::ink(shade), &short(value));
                }
            }
        }
        let (w, h) = (
            values.first().map_or(0, Vec::len) as f64 * side,
            values.len() as f64 * side,
        );
        let _ = writeln!(
            self.body,
            r##"  <rect x="{left:.1}" y="{top:.1}" width="{w:.1}" height="{h:.1}" fill="none" stroke="#333333" stroke-width="1"/>"##
        );
    }

    /// The whole document.
    pub(crate) fn finish(self, title: &str) -> String {
        let (w, h) = (self.width + 24.0, self.height + 24.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" viewBox=\"0 0 {w:.0} {h:.0}\" \
             font-family=\"system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif\" role=\"img\">\n  \
             <title>{}</title>\n  <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }
}

/// How a text is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) size: f64,
    pub(crate) anchor: &'static str,
    pub(crate) fill: &'static str,
    pub(crate) bold: bool,
}

impl Style {
    /// The title of a picture.
    pub(crate) fn title() -> Style {
        Style {
            size: 20.0,
            anchor: "start",
            fill: "#1a1a1a",
            bold: true,
        }
    }

    /// Running text.
    pub(crate) fn body() -> Style {
        Style {
            size: 14.0,
            bold: false,
            ..Style::title()
        }
    }

    /// Labels of rows and columns.
    pub(crate) fn label() -> Style {
        Style {
            size: 12.0,
            fill: "#555555",
            bold: false,
            ..Style::title()
        }
    }

    fn anchored(self, anchor: &'static str) -> Style {
        Style { anchor, ..self }
    }
}

/// Where the bands of one axis lie.
struct Axis {
    borders: Vec<f64>,
}

impl Axis {
    /// Bands of one index each are equally wide; merged ones are drawn to scale unless some of
    /// them would vanish or were left out.
    fn new(bands: &[Band]) -> Axis {
        let lens: Vec<f64> = bands
            .iter()
            .map(|b| (b.range().end - b.range().start) as f64)
            .collect();
        let total: f64 = lens.iter().sum();
        let elided = bands.iter().any(Band::is_elided);
        let merged = lens.iter().any(|&len| len > 1.0);
        let scaled: Vec<f64> = lens.iter().map(|len| len / total * GRID).collect();
        let fits = scaled.iter().all(|&w| w >= 4.0);
        let widths: Vec<f64> = if merged && !elided && fits {
            scaled
        } else {
            let cell = (GRID / bands.len().max(1) as f64).min(CELL);
            vec![cell; bands.len()]
        };
        let mut borders = vec![0.0];
        for width in widths {
            borders.push(borders[borders.len() - 1] + width);
        }
        Axis { borders }
    }

    fn single() -> Axis {
        Axis {
            borders: vec![0.0, CELL],
        }
    }

    /// Start and length of one band.
    fn place(&self, i: usize) -> (f64, f64) {
        (self.borders[i], self.borders[i + 1] - self.borders[i])
    }

    fn total(&self) -> f64 {
        self.borders[self.borders.len() - 1]
    }
}

fn column_label(band: &Band) -> String {
    match band {
        Band::Elided(_) => "…".to_owned(),
        Band::Shown(range) if range.end - range.start == 1 => range.start.to_string(),
        Band::Shown(range) => format!("{}–{}", range.start, range.end - 1),
    }
}

fn row_label(band: &Band) -> String {
    column_label(band)
}

/// A number of bytes in few characters.
fn short(value: u64) -> String {
    let units = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    for (unit, shift) in units {
        if value >> shift >= 10 || (value >> shift >= 1 && value.is_multiple_of(1 << shift)) {
            return format!("{}{unit}", value >> shift);
        }
    }
    value.to_string()
}

/// Text as XML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
