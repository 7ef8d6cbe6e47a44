//! Layouts: how a file or an array is cut into elements, by notation and by constructor.
//!
//! Whatever a constructor makes has a notation, which is what files are created and moved with.

use std::ffi::c_int;

use layout::{
    BlockMap, ChunkGrid, Distribution, Grid, Hpf, Layout, LayoutForm, OwnerRuns, Servers, Stripe,
};

use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{List, Out, Text};
use crate::open::order_of;
use crate::structs::{
    PARIO_BLOCK, PARIO_COLLAPSED, PARIO_CYCLIC, PARIO_GEN_BLOCK, PARIO_INDIRECT, TextOut,
    pario_distribution,
};
use crate::table::Handle;

/// A layout of the program.
#[derive(Debug)]
pub(crate) struct LayoutValue(pub(crate) Layout);

fn make(
    name: &'static str,
    layout: Out<Handle<LayoutValue>>,
    value: impl FnOnce() -> Outcome<Layout>,
) -> c_int {
    answer(name, || {
        layout.required("layout")?.set(Handle::NULL);
        layout.set(Handle::enter(LayoutValue(value()?), Handle::NULL)?);
        Ok(())
    })
}

/// A layout of its form; the notation has what the language checks.
fn of_form(form: LayoutForm) -> Outcome<Layout> {
    Ok(Layout::from(form))
}

/// Reads a layout in the layout language.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_parse(text: Text, layout: Out<Handle<LayoutValue>>) -> c_int {
    make("pario_layout_parse", layout, || {
        Ok(text.required("text")?.parse::<Layout>()?)
    })
}

fn distribution_of(given: &pario_distribution) -> Outcome<Distribution> {
    let list = || given.list.get("list", given.list_count);
    Ok(match (given.kind, given.block) {
        (PARIO_COLLAPSED, _) => Distribution::Collapsed,
        (PARIO_BLOCK, 0) => Distribution::Block,
        (PARIO_BLOCK, n) => Distribution::BlockOf(n),
        (PARIO_CYCLIC, 0) => Distribution::Cyclic,
        (PARIO_CYCLIC, n) => Distribution::CyclicOf(n),
        (PARIO_GEN_BLOCK, _) => Distribution::gen_block(&list()?)?,
        (PARIO_INDIRECT, _) => Distribution::indirect(&list()?),
        (other, _) => {
            let text = format!("is {other}; give PARIO_BLOCK, PARIO_CYCLIC or another of them");
            return Err(Failure::argument("kind", text));
        }
    })
}

/// Dimensions of an array dealt out over a grid of processors, as HPF does it.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_hpf(
    dimensions: usize,
    distributions: List<pario_distribution>,
    grid_dimensions: usize,
    grid: List<u64>,
    grid_order: c_int,
    layout: Out<Handle<LayoutValue>>,
) -> c_int {
    make("pario_layout_hpf", layout, || {
        let given = distributions.get("distributions", dimensions)?;
        let all: Outcome<Vec<Distribution>> = given.iter().map(distribution_of).collect();
        let grid = grid.get("grid", grid_dimensions)?;
        let grid = Grid::new(grid, order_of(grid_order)?)?;
        of_form(LayoutForm::Hpf(Hpf::new(all?, grid)?))
    })
}

/// Servers from a first one on, or those of a list.
fn servers_of(list: List<u64>, count: usize, start: u64) -> Outcome<Servers> {
    match list.is_null() {
        true => Ok(Servers::first(count as u64, start)?),
        false => Ok(Servers::listed(list.get("servers", count)?, start)?),
    }
}

/// Blocks of a file dealt out in turn.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_striped(
    block_bytes: u64,
    count: usize,
    servers: List<u64>,
    start: u64,
    layout: Out<Handle<LayoutValue>>,
) -> c_int {
    make("pario_layout_striped", layout, || {
        let servers = servers_of(servers, count, start)?;
        of_form(LayoutForm::Striped(Stripe::new(block_bytes, servers)?))
    })
}

/// Chunks of an array, each an element; or dealt out over servers if there are any.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_chunks(
    dimensions: usize,
    lengths: List<u64>,
    count: usize,
    servers: List<u64>,
    layout: Out<Handle<LayoutValue>>,
) -> c_int {
    make("pario_layout_chunks", layout, || {
        let lengths = lengths.get("lengths", dimensions)?;
        let servers = match count {
            0 => None,
            count => Some(servers_of(servers, count, 0)?),
        };
        of_form(LayoutForm::Chunks(ChunkGrid::regular(&lengths), servers))
    })
}

/// Blocks of a file, each with its element; the list begins again behind its end.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_blocks(
    block_bytes: u64,
    blocks: usize,
    elements: List<u64>,
    layout: Out<Handle<LayoutValue>>,
) -> c_int {
    make("pario_layout_blocks", layout, || {
        let owners = elements.get("elements", blocks)?;
        let count = owners.iter().max().map_or(0, |last| last.saturating_add(1));
        let map = BlockMap::new(block_bytes, OwnerRuns::new(&owners), count)?;
        of_form(LayoutForm::Blocks(map))
    })
}

/// One element of a layout, as views name it.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_pick(
    of: Handle<LayoutValue>,
    element: u64,
    layout: Out<Handle<LayoutValue>>,
) -> c_int {
    make("pario_layout_pick", layout, || {
        Ok(of.get()?.0.clone().pick(element)?)
    })
}

/// A layout with the server of each element.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_place(
    of: Handle<LayoutValue>,
    servers: List<u64>,
    count: usize,
    layout: Out<Handle<LayoutValue>>,
) -> c_int {
    make("pario_layout_place", layout, || {
        let servers = servers.get("servers", count)?;
        Ok(of.get()?.0.clone().with_places(servers)?)
    })
}

/// A layout in the layout language.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_text(layout: Handle<LayoutValue>, text: TextOut) -> c_int {
    answer("pario_layout_text", || {
        text.required("text")?.set(std::ptr::null_mut());
        text.set_text(&layout.get()?.0.to_string())
    })
}

/// Elements of a layout on an array, or on plain bytes if there is none.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_elements(
    layout: Handle<LayoutValue>,
    array: Text,
    elements: Out<u64>,
) -> c_int {
    answer("pario_layout_elements", || {
        let applied = apply(&layout.get()?.0, array)?;
        elements.required("elements")?.set(applied.count());
        Ok(())
    })
}

/// A layout applied to an array, or to plain bytes.
pub(crate) fn apply(layout: &Layout, array: Text) -> Outcome<layout::AppliedLayout> {
    match array.get("array")? {
        Some(text) => {
            let array = text
                .parse()
                .map_err(|e: layout::LayoutParseError| Failure::argument("array", e.to_string()))?;
            Ok(layout.on_array(&array)?)
        }
        None => Ok(layout.on_bytes()?),
    }
}

/// Ends a layout; what was made of it stays.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_free(layout: Handle<LayoutValue>) -> c_int {
    answer("pario_layout_free", || layout.close().map(drop))
}
