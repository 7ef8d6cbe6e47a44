//! The parser of the layout language. The grammar stands in the [module above](super).
//!
//! One function per rule. What a constructor refuses is reported at the place where the refused
//! part begins.

use std::str::FromStr;

use falls::FallsSet;

use super::array_type::order;
use super::print::DIMENSION_NAMES;
use super::scanner::{LayoutParseError, Scanner};
use super::{Layout, LayoutForm};
use crate::align::{Alignment, TemplateAxis};
use crate::array::{MAX_DIMENSIONS, Order, check_element};
use crate::block_map::BlockMap;
use crate::chunks::{ChunkAxis, ChunkGrid};
use crate::distribution::Distribution;
use crate::error::LayoutError;
use crate::galley::{NestedStride, StridedRequest};
use crate::hpf::{Grid, Hpf};
use crate::owner_runs::OwnerRuns;
use crate::slice::{Slice, SliceAxis};
use crate::stripe::{Servers, Stripe};
use crate::vesta::{VestaCut, VestaFile};

/// Most levels of a strided request; its tree may be as deep.
const MAX_LEVELS: usize = 64;

/// What to give for a number that may not be 0.
const AT_LEAST_1: &str = "at least 1";

type Parsed<T> = Result<T, LayoutParseError>;

impl FromStr for Layout {
    type Err = LayoutParseError;

    fn from_str(text: &str) -> Parsed<Self> {
        let mut s = Scanner::new(text)?;
        let form = form(&mut s)?;
        let mut layout = Layout::from(form);
        if s.take_word("at") {
            let place = s.place();
            s.expect('[', "and the server of each element, as in at [2,0,1]")?;
            let servers = s.numbers(']', "the number of a server")?;
            layout = at(&s, place, layout.with_places(servers))?;
        }
        if s.take('[') {
            let place = s.place();
            let element = s.number("the number of an element")?;
            if let Some(count) = layout.form.count() {
                at(&s, place, check_element(element, count))?;
            }
            layout.picked = Some(element);
            s.expect(']', "after the number of the element")?;
        }
        s.end("the layout")?;
        Ok(layout)
    }
}

/// A refusal of a constructor, pointed at a place.
fn at<T>(s: &Scanner, place: usize, result: Result<T, LayoutError>) -> Parsed<T> {
    result.map_err(|e| s.error_at(place, e.to_string()))
}

fn form(s: &mut Scanner) -> Parsed<LayoutForm> {
    if s.peek() == Some('(') {
        return Ok(LayoutForm::Hpf(hpf(s)?));
    }
    let place = s.place();
    match s.peek_word().as_str() {
        "align" => alignment(s, place).map(LayoutForm::Aligned),
        "striped" => striped(s, place).map(LayoutForm::Striped),
        "chunks" => chunks(s),
        "blocks" => blocks(s, place).map(LayoutForm::Blocks),
        "vesta" => vesta(s, place),
        "slice" => slice(s).map(LayoutForm::Slice),
        "strided" => strided(s, place),
        "falls" => falls_sets(s),
        "whole" => {
            s.skip_word();
            Ok(LayoutForm::Whole)
        }
        _ => Err(s.expected(
            "a layout: (...) onto ..., align, striped, chunks, blocks, vesta, slice, strided, falls or whole",
        )),
    }
}

/// Takes items separated by commas up to `close`; `one` takes an item. None is fine.
fn list<T>(
    s: &mut Scanner,
    close: char,
    most: usize,
    mut one: impl FnMut(&mut Scanner) -> Parsed<T>,
) -> Parsed<Vec<T>> {
    let mut items = Vec::new();
    if s.take(close) {
        return Ok(items);
    }
    loop {
        let place = s.place();
        if items.len() == most {
            return Err(s.error_at(place, format!("more than {most} entries")));
        }
        items.push(one(s)?);
        if s.take(',') {
            continue;
        }
        s.expect(close, "or ','")?;
        return Ok(items);
    }
}

fn hpf(s: &mut Scanner) -> Parsed<Hpf> {
    s.expect('(', "before the distributions")?;
    let placed = list(s, ')', MAX_DIMENSIONS, |s| {
        Ok((s.place(), distribution(s)?))
    })?;
    let distributed: Vec<_> = placed.iter().filter(|(_, d)| d.is_distributed()).collect();
    let mut place = s.place();
    let grid = if s.take_word("onto") {
        place = s.place();
        let extents = grid_extents(s)?;
        let mut grid_order = order(s)?;
        if grid_order.is_none() && s.take_word("fortran") {
            grid_order = Some(Order::Fortran);
        }
        at(s, place, Grid::new(extents, grid_order.unwrap_or_default()))?
    } else if distributed.is_empty() {
        at(s, place, Grid::new([], Order::C))?
    } else {
        return Err(s.expected("'onto' and the processor grid, as in onto 2x4"));
    };
    for ((place, distribution), &processors) in distributed.iter().zip(grid.extents()) {
        // What the grid alone decides; the extents come with the array.
        match distribution {
            Distribution::GenBlock(lengths) => {
                at(s, *place, distribution.check(lengths.total(), processors))?;
            }
            Distribution::Indirect(map) => {
                at(s, *place, distribution.check(map.len(), processors))?;
            }
            _ => {}
        }
    }
    let distributions: Vec<Distribution> = placed.into_iter().map(|(_, d)| d).collect();
    at(s, place, Hpf::new(distributions, grid))
}

fn grid_extents(s: &mut Scanner) -> Parsed<Vec<u64>> {
    let mut extents = Vec::new();
    loop {
        let place = s.place();
        if extents.len() == MAX_DIMENSIONS {
            return Err(s.error_at(place, format!("more than {MAX_DIMENSIONS} dimensions")));
        }
        let role = "a number of processors";
        s.refuse_negative(role, AT_LEAST_1)?;
        extents.push(s.number(role)?);
        if !(s.take('x') || s.take('X')) {
            return Ok(extents);
        }
    }
}

fn distribution(s: &mut Scanner) -> Parsed<Distribution> {
    if s.take('*') {
        return Ok(Distribution::Collapsed);
    }
    let word = s.peek_word();
    if !["block", "cyclic", "gen_block", "indirect"].contains(&word.as_str()) {
        return Err(s.expected("a distribution: *, block, cyclic, gen_block or indirect"));
    }
    s.skip_word();
    let role = "a block length";
    match word.as_str() {
        "block" => Ok(argument(s, role)?.map_or(Distribution::Block, Distribution::BlockOf)),
        "cyclic" => Ok(argument(s, role)?.map_or(Distribution::Cyclic, Distribution::CyclicOf)),
        "gen_block" => {
            s.expect('(', "and one length per processor")?;
            let place = s.place();
            let lengths = s.numbers(')', "a length")?;
            at(s, place, Distribution::gen_block(&lengths))
        }
        _ => {
            s.expect('(', "and one processor per index")?;
            Ok(Distribution::Indirect(owner_runs(s)?))
        }
    }
}

/// A number of at least 1 in parentheses, if there is one.
fn argument(s: &mut Scanner, role: &str) -> Parsed<Option<u64>> {
    if !s.take('(') {
        return Ok(None);
    }
    let value = positive(s, role)?;
    s.expect(')', &format!("after {role}"))?;
    Ok(Some(value))
}

fn positive(s: &mut Scanner, role: &str) -> Parsed<u64> {
    let place = s.place();
    s.refuse_negative(role, AT_LEAST_1)?;
    match s.number(role)? {
        0 => Err(s.error_at(place, format!("{role} is 0; give {AT_LEAST_1}"))),
        value => Ok(value),
    }
}

/// Owners up to the closing parenthesis, which is taken.
fn owner_runs(s: &mut Scanner) -> Parsed<OwnerRuns> {
    let place = s.place();
    let runs = match s.take(')') {
        true => Vec::new(),
        false => s.repeats(')', "the number of an owner")?,
    };
    at(s, place, OwnerRuns::from_runs(&runs))
}

fn alignment(s: &mut Scanner, place: usize) -> Parsed<Alignment> {
    s.skip_word();
    s.expect('(', "and where the array lies in the template")?;
    let axes = list(s, ')', MAX_DIMENSIONS, template_axis)?;
    if !s.take_word("template") {
        return Err(s.expected("'template' and its extents, as in template(100,64)"));
    }
    s.expect('(', "before the extents")?;
    let template = list(s, ')', MAX_DIMENSIONS, |s| s.number("an extent"))?;
    if s.peek() != Some('(') {
        return Err(s.expected("the distribution of the template, as in (block) onto 4"));
    }
    let onto = hpf(s)?;
    at(s, place, Alignment::new(template, onto, axes))
}

fn template_axis(s: &mut Scanner) -> Parsed<TemplateAxis> {
    if s.take('*') {
        return Ok(TemplateAxis::Replicated);
    }
    let place = s.place();
    if s.peek() == Some('-') {
        return Err(s.error_at(
            place,
            "a negative stride; give 1 or more, and reverse the array in the caller",
        ));
    }
    let mut stride = 1;
    if s.peek().is_some_and(|c| c.is_ascii_digit()) {
        let number = s.number("a stride or an index")?;
        if !s.take('*') {
            return Ok(TemplateAxis::At(number));
        }
        if number == 0 {
            return Err(s.error_at(place, "a stride of 0; give 1 or more"));
        }
        stride = number;
    }
    let dimension = dimension(s)?;
    let offset = match s.take('+') {
        true => s.number("an offset")?,
        false => 0,
    };
    if s.peek() == Some('-') {
        return Err(s.expected("'+' and an offset of 0 or more"));
    }
    Ok(TemplateAxis::Along {
        dimension,
        stride,
        offset,
    })
}

/// `i`, `j`, ... `n`, or `i` and a number.
fn dimension(s: &mut Scanner) -> Parsed<usize> {
    let word = s.peek_word();
    let named = DIMENSION_NAMES.iter().position(|name| *name == word);
    let numbered = word.strip_prefix('i').and_then(|d| d.parse().ok());
    match named.or(numbered) {
        Some(dimension) if dimension < MAX_DIMENSIONS => {
            s.skip_word();
            Ok(dimension)
        }
        _ => Err(s.expected("a dimension of the array: i, j, k, l, m, n, or i6, i7, ...")),
    }
}

fn striped(s: &mut Scanner, place: usize) -> Parsed<Stripe> {
    s.skip_word();
    s.expect('(', "and the block size, as in striped(1MiB)")?;
    s.refuse_negative("the block size", AT_LEAST_1)?;
    let block = s.size("the block size")?;
    s.expect(')', "after the block size")?;
    match servers(s)? {
        Some(servers) => at(s, place, Stripe::new(block, servers)),
        None => Err(s.expected("'over' and the servers, as in over 4 or over [0,2,5]")),
    }
}

fn servers(s: &mut Scanner) -> Parsed<Option<Servers>> {
    if !s.take_word("over") {
        return Ok(None);
    }
    let place = s.place();
    let numbers = match s.take('[') {
        true => Err(s.numbers(']', "the number of a server")?),
        false => Ok(positive(s, "the number of servers")?),
    };
    let start = match s.take_word("from") {
        true => s.number("the index of the first server")?,
        false => 0,
    };
    let servers = match numbers {
        Ok(count) => Servers::first(count, start),
        Err(list) => Servers::listed(list, start),
    };
    at(s, place, servers).map(Some)
}

fn chunks(s: &mut Scanner) -> Parsed<LayoutForm> {
    s.skip_word();
    s.expect('(', "and one chunk length per dimension")?;
    let axes = list(s, ')', MAX_DIMENSIONS, |s| {
        if !s.take('[') {
            return Ok(ChunkAxis::Regular(positive(s, "a chunk length")?));
        }
        let place = s.place();
        let mut lengths = vec![positive(s, "a chunk length")?];
        while s.take(',') {
            lengths.push(positive(s, "a chunk length")?);
        }
        s.expect(']', "or ','")?;
        at(s, place, ChunkAxis::lengths(&lengths))
    })?;
    Ok(LayoutForm::Chunks(ChunkGrid::new(axes), servers(s)?))
}

fn blocks(s: &mut Scanner, place: usize) -> Parsed<BlockMap> {
    s.skip_word();
    s.expect('(', "and the block size, as in blocks(4KiB: 0,0,1)")?;
    s.refuse_negative("the block size", AT_LEAST_1)?;
    let block = s.size("the block size")?;
    s.expect(':', "before the owners of the blocks")?;
    let owners = owner_runs(s)?;
    let count = match s.take_word("over") {
        true => s.number("the number of elements")?,
        false => owners.owners(),
    };
    at(s, place, BlockMap::new(block, owners, count))
}

fn slice(s: &mut Scanner) -> Parsed<Slice> {
    s.skip_word();
    s.expect('[', "and one range per dimension, as in slice[0:10:2, 3:7]")?;
    Ok(Slice::new(list(s, ']', MAX_DIMENSIONS, slice_axis)?))
}

fn slice_axis(s: &mut Scanner) -> Parsed<SliceAxis> {
    let place = s.place();
    if s.take('[') {
        let indices = match s.take(']') {
            true => Vec::new(),
            false => s.numbers(']', "an index")?,
        };
        return at(s, place, SliceAxis::indices(&indices));
    }
    let start = match s.peek() {
        Some(':') => 0,
        _ => s.number("an index")?,
    };
    if !s.take(':') {
        return at(s, place, SliceAxis::counted(start, 1, 1));
    }
    let stop = match s.peek() {
        Some(c) if c.is_ascii_digit() || c == '-' => Some(s.number("the end of a range")?),
        _ => None,
    };
    let mut step = 1;
    if s.take(':') {
        let place = s.place();
        let negative = s.take('-');
        step = match s.peek() {
            Some(c) if c.is_ascii_digit() => s.number("a step")? as i64, // below 2^63
            _ if negative => return Err(s.expected("a step")),
            _ => 1,
        };
        if negative || step == 0 {
            let signed = if negative { -step } else { step };
            return at(s, place, SliceAxis::range(start, stop, signed));
        }
    }
    at(s, place, SliceAxis::range(start, stop, step))
}

fn falls_sets(s: &mut Scanner) -> Parsed<LayoutForm> {
    s.skip_word();
    s.expect('{', "and the sets of the elements")?;
    let mut sets = Vec::new();
    for (place, text) in s.pieces_to_brace(';')? {
        let set: FallsSet = format!("{{{text}}}").parse().map_err(|e| {
            let e: falls::notation::ParseError = e;
            s.error_at(place + e.at().saturating_sub(1), e.message())
        })?;
        sets.push(set);
    }
    let period = period(s, sets.iter().map(FallsSet::end).max().unwrap_or(0))?;
    Ok(LayoutForm::Falls {
        period,
        sets: sets.into(),
    })
}

/// `period` and a length that holds what ends at `end`, which is the default.
fn period(s: &mut Scanner, end: u64) -> Parsed<u64> {
    if !s.take_word("period") {
        if end == 0 {
            return Err(s.expected("'period' and its length, since there are no bytes"));
        }
        return Ok(end);
    }
    let place = s.place();
    let least = end.max(1);
    s.refuse_negative("the period", &format!("{least} or more"))?;
    let period = s.size("the period")?;
    if period < least {
        let message = format!("the bytes end at {end}, beyond the period; give {least} or more");
        return Err(s.error_at(place, message));
    }
    Ok(period)
}

fn vesta(s: &mut Scanner, place: usize) -> Parsed<LayoutForm> {
    s.skip_word();
    s.expect('(', "and the size of a unit, as in vesta(4KiB, 8)")?;
    s.refuse_negative("the size of a unit", AT_LEAST_1)?;
    let unit_bytes = s.size("the size of a unit")?;
    s.expect(',', "and the number of cells")?;
    s.refuse_negative("the number of cells", AT_LEAST_1)?;
    let cells = s.number("the number of cells")?;
    let file = at(s, place, VestaFile::new(unit_bytes, cells))?;
    if s.take(')') {
        return Ok(LayoutForm::Vesta(file, None));
    }
    s.expect(':', "and the cut, or ')'")?;
    let place = s.place();
    let numbers = s.numbers(')', "a number of the cut: Vbs, Vn, Hbs, Hn")?;
    let &[
        vertical_block,
        vertical_groups,
        horizontal_block,
        horizontal_groups,
    ] = &numbers[..]
    else {
        let message = format!("{} numbers; give four: Vbs, Vn, Hbs, Hn", numbers.len());
        return Err(s.error_at(place, message));
    };
    let cut = VestaCut {
        vertical_block,
        vertical_groups,
        horizontal_block,
        horizontal_groups,
    };
    at(s, place, file.cut(cut))?;
    Ok(LayoutForm::Vesta(file, Some(cut)))
}

fn strided(s: &mut Scanner, place: usize) -> Parsed<LayoutForm> {
    s.skip_word();
    s.expect('(', "and the start, as in strided(0, 8: 4x32)")?;
    let start = s.size("the start")?;
    s.expect(',', "and the number of bytes at each place")?;
    let quantity = s.size("the number of bytes at each place")?;
    let levels = match s.take(':') {
        false => {
            s.expect(')', "or ':' and the levels")?;
            Vec::new()
        }
        true => list(s, ')', MAX_LEVELS, |s| {
            let count = s.number("a number of repetitions")?;
            if !(s.take('x') || s.take('X')) {
                return Err(s.expected("'x' and the stride"));
            }
            let stride = s.size("a stride")?;
            Ok(NestedStride { count, stride })
        })?,
    };
    let request = at(s, place, StridedRequest::new(start, quantity, &levels))?;
    let period = period(s, request.set().end())?;
    Ok(LayoutForm::Strided(request, period))
}
