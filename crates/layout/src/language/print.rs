//! The canonical text of layouts: what the parser reads back as an equal value.
//!
//! Sizes take the largest unit that divides them, runs of owners their count, and what is the default
//! is left out. The grammar stands in the [module above](super).

use std::fmt;

use super::scanner::ByteSize;
use super::{Layout, LayoutForm};
use crate::align::{Alignment, TemplateAxis};
use crate::block_map::BlockMap;
use crate::chunks::{ChunkAxis, ChunkGrid};
use crate::distribution::Distribution;
use crate::hpf::Hpf;
use crate::owner_runs::OwnerRuns;
use crate::slice::{Slice, SliceAxis};
use crate::stripe::{Servers, Stripe};

/// Names of the first dimensions of an array; from the seventh on they are `i6`, `i7`, ...
pub(super) const DIMENSION_NAMES: &[&str] = &["i", "j", "k", "l", "m", "n"];

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            LayoutForm::Hpf(hpf) => hpf.fmt(f)?,
            LayoutForm::Aligned(alignment) => alignment.fmt(f)?,
            LayoutForm::Striped(stripe) => stripe.fmt(f)?,
            LayoutForm::Chunks(grid, None) => grid.fmt(f)?,
            LayoutForm::Chunks(grid, Some(servers)) => write!(f, "{grid} {servers}")?,
            LayoutForm::Blocks(map) => map.fmt(f)?,
            LayoutForm::Vesta(file, cut) => {
                let (unit, cells) = (ByteSize(file.unit_bytes()), file.cell_count());
                write!(f, "vesta({unit}, {cells}")?;
                if let Some(cut) = cut {
                    let rows = (cut.vertical_block, cut.vertical_groups);
                    let columns = (cut.horizontal_block, cut.horizontal_groups);
                    write!(f, ": {},{},{},{}", rows.0, rows.1, columns.0, columns.1)?;
                }
                f.write_str(")")?;
            }
            LayoutForm::Slice(slice) => slice.fmt(f)?,
            LayoutForm::Strided(request, period) => {
                write!(f, "strided({}, {}", request.start(), request.quantity())?;
                if !request.levels().is_empty() {
                    f.write_str(": ")?;
                    list(f, request.levels().iter(), ", ", |f, level| {
                        write!(f, "{}x{}", level.count, level.stride)
                    })?;
                }
                f.write_str(")")?;
                if *period != request.set().end() {
                    write!(f, " period {}", ByteSize(*period))?;
                }
            }
            LayoutForm::Falls { period, sets } => {
                f.write_str("falls{")?;
                list(f, sets.iter(), "; ", |f, set| {
                    let text = set.to_string();
                    f.write_str(&text[1..text.len() - 1]) // without its braces
                })?;
                f.write_str("}")?;
                if sets.iter().map(|s| s.end()).max() != Some(*period) {
                    write!(f, " period {}", ByteSize(*period))?;
                }
            }
            LayoutForm::Whole => f.write_str("whole")?,
        }
        if let Some(places) = &self.places {
            f.write_str(" at [")?;
            list(f, places.iter(), ",", |f, server| write!(f, "{server}"))?;
            f.write_str("]")?;
        }
        match self.picked {
            Some(element) => write!(f, "[{element}]"),
            None => Ok(()),
        }
    }
}

fn list<T>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = T>,
    between: &str,
    mut one: impl FnMut(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.enumerate() {
        if i > 0 {
            f.write_str(between)?;
        }
        one(f, item)?;
    }
    Ok(())
}

fn numbers(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = u64>) -> fmt::Result {
    list(f, items, ",", |f, n| write!(f, "{n}"))
}

fn owners(f: &mut fmt::Formatter<'_>, runs: &OwnerRuns) -> fmt::Result {
    list(f, runs.runs().into_iter(), ",", |f, run| match run.len {
        1 => write!(f, "{}", run.owner),
        len => write!(f, "{len}*{}", run.owner),
    })
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Collapsed => f.write_str("*"),
            Distribution::Block => f.write_str("block"),
            Distribution::BlockOf(n) => write!(f, "block({n})"),
            Distribution::Cyclic => f.write_str("cyclic"),
            Distribution::CyclicOf(n) => write!(f, "cyclic({n})"),
            Distribution::GenBlock(lengths) => {
                f.write_str("gen_block(")?;
                numbers(f, lengths.lengths())?;
                f.write_str(")")
            }
            Distribution::Indirect(map) => {
                f.write_str("indirect(")?;
                owners(f, map)?;
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Hpf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        list(f, self.distributions().iter(), ", ", |f, d| d.fmt(f))?;
        write!(f, ") onto {}", self.grid())
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("align(")?;
        list(f, self.axes().iter(), ", ", |f, axis| match *axis {
            TemplateAxis::At(index) => write!(f, "{index}"),
            TemplateAxis::Replicated => f.write_str("*"),
            TemplateAxis::Along {
                dimension,
                stride,
                offset,
            } => {
                if stride != 1 {
                    write!(f, "{stride}*")?;
                }
                match DIMENSION_NAMES.get(dimension) {
                    Some(name) => f.write_str(name)?,
                    None => write!(f, "i{dimension}")?,
                }
                match offset {
                    0 => Ok(()),
                    n => write!(f, "+{n}"),
                }
            }
        })?;
        f.write_str(") template(")?;
        numbers(f, self.template().iter().copied())?;
        write!(f, ") {}", self.onto())
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.list() {
            None => write!(f, "over {}", self.count())?,
            Some(list) => {
                f.write_str("over [")?;
                numbers(f, list.iter().copied())?;
                f.write_str("]")?;
            }
        }
        match self.start() {
            0 => Ok(()),
            n => write!(f, " from {n}"),
        }
    }
}

impl fmt::Display for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "striped({}) {}", ByteSize(self.block()), self.servers())
    }
}

impl fmt::Display for ChunkGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("chunks(")?;
        list(f, self.axes().iter(), ",", |f, axis| match axis {
            ChunkAxis::Regular(n) => write!(f, "{n}"),
            ChunkAxis::Lengths(lengths) => {
                f.write_str("[")?;
                numbers(f, lengths.lengths())?;
                f.write_str("]")
            }
        })?;
        f.write_str(")")
    }
}

impl fmt::Display for BlockMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blocks({}: ", ByteSize(self.block()))?;
        owners(f, self.owners())?;
        f.write_str(")")?;
        match self.count() == self.owners().owners() {
            true => Ok(()),
            false => write!(f, " over {}", self.count()),
        }
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("slice[")?;
        list(f, self.axes().iter(), ", ", |f, axis| match axis {
            SliceAxis::Indices(indices) => {
                f.write_str("[")?;
                numbers(f, indices.iter().copied())?;
                f.write_str("]")
            }
            SliceAxis::Range {
                start,
                stop: Some(stop),
                step: 1,
            } if start.checked_add(1) == Some(*stop) => write!(f, "{start}"),
            SliceAxis::Range { start, stop, step } => {
                if *start > 0 {
                    write!(f, "{start}")?;
                }
                f.write_str(":")?;
                if let Some(stop) = stop {
                    write!(f, "{stop}")?;
                }
                match step {
                    1 => Ok(()),
                    n => write!(f, ":{n}"),
                }
            }
        })?;
        f.write_str("]")
    }
}
