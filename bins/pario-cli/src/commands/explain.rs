//! `pario explain`: the plan between two layouts, before any byte moves.
//!
//! Prints who sends how much to whom and in how many pieces, the seven measures with the matching
//! degree. Nothing here depends on the size of the data; what is counted run by run
//! (lazy meetings) is sampled and marked as such. For stored files `explain_access` adds what an access
//! costs each way it can be done.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

use advise::cost::Op;
use clap::Args;
use layout::ArrayType;
use plan::{Measures, Part, Placement, Plan, Transfer};
use serde_json::{Value, json};

use super::explain_access::{self, Question};
use super::layout::{subtitle, svg_grid};
use super::output::{self, bytes, counted, exact_bytes, shortened};
use super::stored_layout::StoredFile;
use super::{Error, input};
use crate::draw::svg::{Drawing, Style};
use crate::draw::{Grid, text};
use console::notation;
use console::subject::{Elements, Owner, Subject};

/// Arguments of `pario explain`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario explain --from '(block, *) onto 4' --to '(*, block) onto 4' --array 'f64[4096,4096]'
  pario explain --from 'striped(64KiB) over 4' --to 'striped(1MiB) over 4' --bytes 1GiB
  pario explain --view '(block, *) onto 4 [1]' --to '(*, block) onto 4' --array 'f64[6,8]'
  pario explain /results/matrix --view '(block, *) onto 4'
  pario explain /results/matrix --view '(*, block) onto 4 [2]' --op write
  pario explain /results/matrix --view '(*, block) onto 4' --analyze
  pario explain /results/matrix --view '(*, cyclic) onto 4' --together --analyze")]
pub(crate) struct Arguments {
    /// The path of a stored file, instead of --to: the bytes go to or come from its subfiles
    #[arg(value_name = "PATH", conflicts_with_all = ["from", "to", "array", "bytes"])]
    path: Option<String>,

    /// The layout the bytes are in
    #[arg(long, value_name = "LAYOUT", required_unless_present_any = ["view", "path"])]
    from: Option<String>,

    /// What processes see, instead of --from: each element of this layout is a view; a trailing
    /// [K] picks one
    #[arg(long, value_name = "LAYOUT", conflicts_with = "from")]
    view: Option<String>,

    /// The layout the bytes go to
    #[arg(long, value_name = "LAYOUT", required_unless_present = "path")]
    to: Option<String>,

    /// What is done through the views of a stored file
    #[arg(long, value_name = "OP", requires = "path", default_value = "read", value_parser = ["read", "write"])]
    op: String,

    /// Run the access to a stored file, too, each element a process, and print predicted beside
    /// measured; writes need --analyze-writes
    #[arg(long, requires = "path")]
    analyze: bool,

    /// With --op write: write back, while nobody else writes, the bytes that the same views read
    #[arg(long, requires = "analyze")]
    analyze_writes: bool,

    /// The processes are a team that accesses the file collectively, instead of each for itself
    #[arg(long, requires = "path")]
    together: bool,

    /// Predict as if servers had nothing of the file in memory
    #[arg(long, requires = "path", conflicts_with = "analyze")]
    cold: bool,

    #[command(flatten)]
    space: input::Space,

    /// Number the target elements so that the fewest bytes move
    #[arg(long, conflicts_with = "view")]
    relabel: bool,

    /// Most transfers listed in the text
    #[arg(
        long,
        value_name = "N",
        default_value = "16",
        allow_hyphen_values = true
    )]
    transfers: String,

    /// Write a picture to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// What is explained.
struct Explained {
    source: Subject,
    target: Subject,
    plan: Plan,
    plan_us: f64,
    measures: Measures,
    /// The best placement of the targets; only between partitions.
    placement: Option<Placement>,
    /// Whether the targets were renumbered by it.
    relabelled: bool,
}

/// Most pairs of elements that a plan is printed for; each takes about a kilobyte.
const MAX_PAIRS: usize = 1 << 20;

impl Arguments {
    /// The array, whether it stands for a plain file, and how a stored file is cut.
    fn space(&self) -> Result<(ArrayType, bool, Option<Subject>), Error> {
        if let Some(path) = &self.path {
            if self.view.is_none() {
                return Err(
                    "give what processes see of the file, as in --view '(block, *) onto 4'".into(),
                );
            }
            let subject = StoredFile::ask(path, None)?.subject()?;
            return Ok((subject.array.clone(), subject.is_file, Some(subject)));
        }
        match self.space.array()? {
            Some((array, is_file)) => Ok((array, is_file, None)),
            None => Err("give the array the layouts are for, as in --array 'f64[6,8]', or a plain file, as in --bytes 1MiB".into()),
        }
    }
}

impl Arguments {
    /// What is asked about the access to a stored file.
    fn question(&self) -> Result<Question, Error> {
        let op = match self.op.as_str() {
            "write" => Op::Write,
            _ => Op::Read,
        };
        if op == Op::Write && self.analyze && !self.analyze_writes {
            return Err(
                "--analyze: writes of others that come between would be undone; \
                        add --analyze-writes if nobody else writes the file"
                    .into(),
            );
        }
        Ok(Question {
            op,
            is_cold: self.cold,
            together: self.together,
            analyze: self.analyze,
        })
    }
}

/// Explains a redistribution or an access.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let (array, is_file, stored) = arguments.space()?;
    let most = notation::number("--transfers", &arguments.transfers)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let placed = |subject: Subject| Subject { is_file, ..subject };
    let target = match stored {
        Some(subject) => subject,
        None => {
            let to = arguments.to.as_deref().unwrap_or_default();
            placed(notation::partition("--to", to, &array)?)
        }
    };
    let source = placed(match (&arguments.view, &arguments.from) {
        (Some(view), _) => notation::views("--view", view, &array)?,
        (None, from) => notation::partition("--from", from.as_deref().unwrap_or_default(), &array)?,
    });
    let access = match (&arguments.path, &source.elements) {
        (Some(path), Elements::Views(views)) => {
            let question = arguments.question()?;
            let answer = explain_access::answer(path, views, source.bytes(), question)?;
            Some(answer)
        }
        _ => None,
    };
    let explained = explain(source, target, arguments.relabel)?;
    if let Some(path) = &arguments.svg {
        output::write_file(path, &explained.svg())?;
    }
    if arguments.json {
        let mut value = explained.to_json();
        if let Some(access) = &access {
            access.add_to(&mut value);
        }
        return output::print(&format!("{value:#}\n"));
    }
    let mut text = explained.to_text(most);
    if let Some(access) = &access {
        text += &access.to_text();
    }
    output::print(&text)
}

fn explain(source: Subject, target: Subject, relabel: bool) -> Result<Explained, Error> {
    let len = source.bytes();
    let Elements::Partition(to) = &target.elements else {
        unreachable!("read as a partition")
    };
    let begin = Instant::now();
    let plan = match &source.elements {
        Elements::Partition(from) => Plan::between_within(from, to, len, MAX_PAIRS)?,
        Elements::Views(views) => Plan::for_views(views, to, len),
    };
    let plan_us = begin.elapsed().as_secs_f64() * 1e6;
    let placement = match &source.elements {
        Elements::Partition(_) => Some(plan.placement()),
        Elements::Views(_) => None,
    };
    let measures = plan.measures();
    let (plan, relabelled) = match &placement {
        Some(placement) if relabel => (plan.relabelled(placement), true),
        _ => (plan, false),
    };
    Ok(Explained {
        measures,
        source,
        target,
        plan,
        plan_us,
        placement,
        relabelled,
    })
}

/// Where a transfer's bytes lie: in the file, in the source, in the target.
fn places(transfer: &Transfer) -> Option<[String; 3]> {
    if !transfer.meeting().is_symbolic() {
        return None;
    }
    let joint = transfer.joint();
    let sets = [joint.file_set(), joint.left_set(), joint.right_set()];
    Some(sets.map(|set| set.simplify().to_string()))
}

impl Explained {
    fn is_access(&self) -> bool {
        matches!(self.source.elements, Elements::Views(_))
    }

    fn source_word(&self) -> &'static str {
        if self.is_access() { "view" } else { "source" }
    }

    fn space(&self) -> String {
        let size = bytes(self.source.bytes());
        match self.source.is_file {
            true => format!("a file of {size}"),
            false => format!("{} ({size})", self.source.array),
        }
    }

    fn headline(&self) -> String {
        let (from, to) = (self.source.title(), self.target.title());
        match self.is_access() {
            true => format!("{}, seen as {from}, stored as {to}", self.space()),
            false => format!("{} from {from} to {to}", self.space()),
        }
    }

    fn to_text(&self, most: usize) -> String {
        let mut text = format!("{}\n\n", self.headline());
        if let Some(grids) = self.grids() {
            text += &grids;
            text.push('\n');
        }
        text += &self.matrix();
        text += &self.transfers(most);
        text.push('\n');
        text += &self.summary();
        text
    }

    /// The two grids side by side, for arrays.
    fn grids(&self) -> Option<String> {
        if self.source.is_file || self.source.array.dimensions() == 0 {
            return None;
        }
        let (source, target) = (self.grid(&self.source), self.grid(&self.target));
        let target = self.renumbered(target);
        let titles = match self.is_access() {
            true => ("views", "subfiles"),
            false => ("from", "to"),
        };
        let mut picture = text::side_by_side((titles.0, &source), (titles.1, &target));
        let mut remarks = text::Remarks::default();
        remarks.add(&source);
        remarks.add(&target);
        // The target is whole: its cells with several owners need the general remark.
        let only = self.source.picked.filter(|_| !target.has_several());
        picture += &remarks.text(only);
        Some(picture)
    }

    fn grid(&self, subject: &Subject) -> Grid {
        let prefix = vec![0; subject.array.dimensions().saturating_sub(2)];
        Grid::new(
            subject,
            &prefix,
            text::room(subject, text::WIDTH / 2 - 4, 12),
        )
    }

    /// The target grid with the numbers that the plan uses.
    fn renumbered(&self, mut grid: Grid) -> Grid {
        if let (true, Some(placement)) = (self.relabelled, &self.placement) {
            for cell in grid.cells.iter_mut().flatten().flatten() {
                if let Owner::One(element) | Owner::Several(element) = cell {
                    *element = placement.node_of(*element);
                }
            }
        }
        grid
    }

    /// Bytes by source and target, if there are few of both.
    fn volumes(&self, most: usize) -> Option<Vec<Vec<u64>>> {
        let (sources, targets) = (self.plan.sources().len(), self.plan.targets().len());
        if sources > most || targets > most {
            return None;
        }
        let mut table = vec![vec![0; targets]; sources];
        for transfer in self.plan.transfers() {
            if let (Part::Element(i), Part::Element(j)) = (transfer.source(), transfer.target()) {
                table[i][j] = transfer.bytes();
            }
        }
        Some(table)
    }

    fn matrix(&self) -> String {
        let Some(table) = self.volumes(8) else {
            return String::new();
        };
        let widest = |show: fn(u64) -> String| {
            let widths = table.iter().flatten().map(|&value| show(value).len());
            widths.fold(3, usize::max)
        };
        // Numbers in full while the lines stay short; --json always has them.
        let full: fn(u64) -> String = |value| value.to_string();
        let fits = 10 + self.plan.targets().len() * (widest(full) + 1) <= text::WIDTH;
        let show = if fits { full } else { bytes };
        let width = widest(show);
        let mut text = format!(
            "  bytes by {} (down) and target (across)\n",
            self.source_word()
        );
        let mut head = " ".repeat(10);
        for j in 0..self.plan.targets().len() {
            let _ = write!(head, " {j:>width$}");
        }
        let _ = writeln!(text, "{head}");
        for (i, row) in table.iter().enumerate() {
            let _ = write!(text, "  {:>7} |", self.source.number(i));
            for &value in row {
                match value {
                    0 => text += &format!(" {:>width$}", "."),
                    _ => text += &format!(" {:>width$}", show(value)),
                }
            }
            text.push('\n');
        }
        text.push('\n');
        text
    }

    /// The source of a transfer by its number in the layout.
    fn source_part(&self, transfer: &Transfer) -> Part {
        match transfer.source() {
            Part::Header => Part::Header,
            Part::Element(position) => Part::Element(self.source.number(position)),
        }
    }

    fn transfers(&self, most: usize) -> String {
        let all = self.plan.transfers();
        let shown = &all[..all.len().min(most)];
        let rows: Vec<(String, u64, u64, [String; 3])> = shown
            .iter()
            .map(|t| {
                let ends = format!("{} -> {}", self.source_part(t), t.target());
                let sets = places(t).unwrap_or_else(|| {
                    [
                        if t.is_exact() {
                            "found by cursors".to_owned()
                        } else {
                            "found by cursors, estimated".to_owned()
                        },
                        "-".to_owned(),
                        "-".to_owned(),
                    ]
                });
                (
                    ends,
                    t.bytes(),
                    t.run_count(),
                    sets.map(|set| shortened(&set, 28)),
                )
            })
            .collect();
        let heads = [
            "in the file",
            &format!("in the {}", self.source_word()),
            "in the target",
        ];
        let width = |k: usize| {
            let sets = rows.iter().map(|row| row.3[k].chars().count());
            sets.max().unwrap_or(0).max(heads[k].len())
        };
        let (a, b, c) = (width(0), width(1), width(2));
        let e = rows.iter().map(|row| row.0.len()).fold(12, usize::max);
        let most_of = |numbers: &mut dyn Iterator<Item = u64>, least: usize| {
            let digits = numbers.map(|number| number.to_string().len());
            digits.fold(least, usize::max)
        };
        let v = most_of(&mut rows.iter().map(|row| row.1), 10);
        let r = most_of(&mut rows.iter().map(|row| row.2), 8);
        let mut text = String::new();
        let mut line = |ends: &str, bytes: &str, runs: &str, sets: [&str; 3]| {
            let [x, y, z] = sets;
            let line = format!("  {ends:<e$} {bytes:>v$} {runs:>r$}  {x:<a$}  {y:<b$}  {z:<c$}");
            let _ = writeln!(text, "{}", line.trim_end());
        };
        line("transfer", "bytes", "runs", heads.map(|h| h));
        for (ends, bytes, runs, sets) in &rows {
            let sets = [&sets[0][..], &sets[1], &sets[2]];
            line(ends, &bytes.to_string(), &runs.to_string(), sets);
        }
        if let rest @ [_, ..] = &all[shown.len()..] {
            let volume: u64 = rest.iter().map(Transfer::bytes).sum();
            let more = counted(rest.len() as u64, "more transfer", "more transfers");
            let _ = writeln!(
                text,
                "  … {more} with {} (--transfers N lists more, --json all)",
                bytes(volume)
            );
        }
        text
    }

    fn summary(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:<16} {value}");
        };
        let (plan, m) = (&self.plan, &self.measures);
        let share = |part: u64| 100.0 * part as f64 / plan.volume().max(1) as f64;
        line("volume", exact_bytes(plan.volume()));
        match &self.placement {
            None => line(
                "messages",
                format!("{}, one per transfer", plan.transfers().len()),
            ),
            Some(placement) => {
                let stays = plan.transfers().len() - plan.messages();
                line(
                    "messages",
                    format!(
                        "{} ({} on their node)",
                        plan.messages(),
                        counted(stays as u64, "transfer stays", "transfers stay")
                    ),
                );
                let kept = plan.volume() - plan.moved_bytes();
                let moves = |kept: u64| {
                    let moved = plan.volume() - kept;
                    format!(
                        "{} stay ({:.1}%), {} move ({:.1}%)",
                        bytes(kept),
                        share(kept),
                        bytes(moved),
                        share(moved)
                    )
                };
                line("bytes", moves(kept));
                if self.relabelled {
                    line("relabelled", node_list(placement));
                } else if placement.kept_bytes() > kept {
                    let best = moves(placement.kept_bytes());
                    line("best placement", format!("{best}; --relabel takes it"));
                    line("", node_list(placement));
                } else {
                    line("best placement", "as numbered".to_owned());
                }
            }
        }
        let sampled = if m.exact { "" } else { " (extrapolated)" };
        line("pairs", m.pairs.to_string());
        line(
            "contention",
            format!("{:.2} pairs per target", m.contention),
        );
        line(
            "fan-out",
            format!("{:.2} pairs per {}", m.fan_out, self.source_word()),
        );
        line("joint runs", format!("{}{sampled}", m.runs));
        if m.copy_runs != m.runs {
            let of_copies = format!("{} contiguous in source and target", m.copy_runs);
            line("copy runs", format!("{of_copies}{sampled}"));
        }
        line("mean run", format!("{:.1} bytes", m.mean_run));
        line("fragmentation", format!("{:.4}", m.fragmentation));
        line("locality", format!("{:.4}", m.locality));
        line("matching degree", format!("{:.4}", m.matching_degree()));
        line("planned in", format!("{:.1} us", self.plan_us));
        text
    }

    fn to_json(&self) -> Value {
        let (plan, m) = (&self.plan, &self.measures);
        let end = |part: Part| match part {
            Part::Header => json!("header"),
            Part::Element(element) => json!(element),
        };
        let transfers: Vec<Value> = plan
            .transfers()
            .iter()
            .map(|t| {
                let sets = places(t);
                let set = |k: usize| sets.as_ref().map(|sets| sets[k].clone());
                json!({
                    "source": end(self.source_part(t)),
                    "target": end(t.target()),
                    "bytes": t.bytes(),
                    "runs": t.run_count(),
                    "exact": t.is_exact(),
                    "symbolic": t.meeting().is_symbolic(),
                    "in_file": set(0),
                    "in_source": set(1),
                    "in_target": set(2),
                })
            })
            .collect();
        let kept = plan.volume() - plan.moved_bytes();
        let mut value = json!({
            (if self.is_access() { "view" } else { "from" }): self.source.text,
            "to": self.target.text,
            "array": self.source.array.to_string(),
            "bytes": self.source.bytes(),
            "volume": plan.volume(),
            "transfers": transfers,
            "measures": {
                "pairs": m.pairs,
                "contention": m.contention,
                "fan_out": m.fan_out,
                "joint_runs": m.runs,
                "copy_runs": m.copy_runs,
                "mean_run": m.mean_run,
                "fragmentation": m.fragmentation,
                "locality": m.locality,
                "exact": m.exact,
            },
            "matching_degree": m.matching_degree(),
            "plan_us": self.plan_us,
        });
        if let Some(placement) = &self.placement {
            value["messages"] = json!(plan.messages());
            value["stay_bytes"] = json!(kept);
            value["move_bytes"] = json!(plan.moved_bytes());
            value["relabelled"] = json!(self.relabelled);
            value["placement"] = json!({
                "nodes": placement.nodes(),
                "stay_bytes": placement.kept_bytes(),
                "move_bytes": plan.volume() - placement.kept_bytes(),
                "exact": placement.is_exact(),
            });
        } else {
            value["messages"] = json!(plan.transfers().len());
        }
        value
    }

    fn svg(&self) -> String {
        let mut drawing = Drawing::new();
        let (source, target) = (svg_grid(&self.source), svg_grid(&self.target));
        let arrow = format!("{}  →  {}", self.source.title(), self.target.title());
        drawing.text((24.0, 40.0), Style::title(), &arrow);
        let degree = format!(
            "{}, {} in {}, {} joint runs, matching degree {:.3}",
            subtitle(&self.source),
            bytes(self.plan.volume()),
            counted(self.plan.transfers().len() as u64, "transfer", "transfers"),
            self.measures.runs,
            self.measures.matching_degree()
        );
        drawing.text((24.0, 62.0), Style::body(), &degree);
        let heads = match self.is_access() {
            true => ("seen as", "stored as"),
            false => ("from", "to"),
        };
        let titled =
            |drawing: &mut Drawing, x: f64, y: f64, word: &str, subject: &Subject, grid: &Grid| {
                let line = format!("{word} {}", subject.title());
                drawing.text((x, y + 14.0), Style::body(), &line);
                drawing.grid((x, y + 26.0), grid)
            };
        let (first_right, first_bottom) =
            titled(&mut drawing, 24.0, 84.0, heads.0, &self.source, &source);
        let title_right =
            24.0 + (heads.0.len() + self.source.title().chars().count() + 1) as f64 * 8.0;
        let side = self.source.array.dimensions() > 1;
        let (x, y) = match side {
            true => (first_right.max(title_right) + 40.0, 84.0),
            false => (24.0, first_bottom + 20.0),
        };
        let target = self.renumbered(target);
        let (_, second_bottom) = titled(&mut drawing, x, y, heads.1, &self.target, &target);
        let mut below = first_bottom.max(second_bottom) + 32.0;
        if let Some(table) = self.volumes(40) {
            drawing.text(
                (24.0, below),
                Style::body(),
                "bytes that go from each source to each target",
            );
            below += 12.0;
            let titles = (self.source_word(), "target");
            drawing.matrix((24.0, below), titles, self.source.number(0), &table);
        }
        drawing.finish(&self.headline())
    }
}

/// `target 0 on node 2, ...`, the first few.
fn node_list(placement: &Placement) -> String {
    let nodes = placement.nodes();
    let moved: Vec<String> = nodes
        .iter()
        .enumerate()
        .filter(|(element, node)| element != *node)
        .map(|(element, node)| format!("{element} on node {node}"))
        .collect();
    let shown = moved.len().min(6);
    let mut text = match moved.is_empty() {
        true => "every target keeps its number".to_owned(),
        false => format!("target {}", moved[..shown].join(", ")),
    };
    if moved.len() > shown {
        let _ = write!(text, ", … {} more", moved.len() - shown);
    }
    text
}
