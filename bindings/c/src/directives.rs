//! HPF: layouts of directives and of run-time descriptors, and the memory of a process that has the whole array.
//!
//! Left to others: what directives mean (`layout`), values that only the program knows, which it writes into their text.

use std::ffi::c_int;

use layout::mpi::Datatype;
use layout::{Directives, RunTimeDescriptor};

use crate::entry::{Failure, answer};
use crate::ffi::{List, Out, Text};
use crate::layouts::{LayoutValue, apply};
use crate::patterns::Pattern;
use crate::structs::TextOut;
use crate::table::Handle;

/// The layout of an array by HPF directives.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_directives(
    text: Text,
    array: Text,
    dimensions: usize,
    extents: List<u64>,
    processes: u64,
    layout: Out<Handle<LayoutValue>>,
) -> c_int {
    answer("pario_layout_directives", || {
        layout.required("layout")?.set(Handle::NULL);
        let refuse = |e: layout::DirectiveError| Failure::argument("text", e.to_string());
        let directives = Directives::parse(&text.required("text")?).map_err(refuse)?;
        let extents = extents.get("extents", dimensions)?;
        let processes = Some(processes).filter(|n| *n > 0);
        let made = directives.layout(&array.required("array")?, &extents, processes);
        let value = LayoutValue(made.map_err(refuse)?);
        layout.set(Handle::enter(value, Handle::NULL)?);
        Ok(())
    })
}

/// The layout of an array by the run-time descriptor of an HPF compiler, and the array.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_run_time(
    descriptor: List<c_int>,
    count: usize,
    layout: Out<Handle<LayoutValue>>,
    array: TextOut,
) -> c_int {
    answer("pario_layout_run_time", || {
        layout.required("layout")?.set(Handle::NULL);
        array.required("array")?.set(std::ptr::null_mut());
        let values = descriptor.get("descriptor", count)?;
        let values: Vec<i64> = values.into_iter().map(i64::from).collect();
        let made = RunTimeDescriptor::parse(&values)?;
        array.set_text(&made.array().to_string())?;
        layout.set(Handle::enter(LayoutValue(made.layout()), Handle::NULL)?);
        Ok(())
    })
}

/// Extents of what an element of a layout has of an array.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_extents(
    layout: Handle<LayoutValue>,
    element: u64,
    array: Text,
    dimensions: usize,
    extents: Out<u64>,
) -> c_int {
    answer("pario_layout_extents", || {
        let applied = apply(&layout.get()?.0, array)?;
        let found = applied.extents(element)?.ok_or_else(|| {
            Failure::argument(
                "layout",
                "has elements that are no part of a grid of indices",
            )
        })?;
        if found.len() != dimensions {
            let text = format!("is {dimensions}; the array has {}", found.len());
            return Err(Failure::argument("dimensions", text));
        }
        extents.required("extents")?;
        for (index, extent) in found.into_iter().enumerate() {
            extents.set_at(index, extent);
        }
        Ok(())
    })
}

/// What an element of a layout has of an array that lies whole in memory, in the order of the element's bytes.
#[unsafe(no_mangle)]
extern "C" fn pario_pattern_of_layout(
    layout: Handle<LayoutValue>,
    element: u64,
    array: Text,
    pattern: Out<Handle<Pattern>>,
) -> c_int {
    answer("pario_pattern_of_layout", || {
        pattern.required("pattern")?.set(Handle::NULL);
        let applied = apply(&layout.get()?.0, array)?;
        let datatype = Datatype::from_set(0, &applied.element(element)?)?;
        pattern.set(Pattern::enter(datatype)?);
        Ok(())
    })
}
