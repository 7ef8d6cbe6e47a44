//! `pario._native`: what the Python package needs of the client, and nothing that Python can say itself.
//!
//! Owns the border between Python's objects and the client: buffers become memory, indices become views, errors become
//! exceptions. What an index means, types of entries, attributes and everything that is convenience stand in the Python files
//! beside it (`bindings/python/python/pario`).
//!
//! | module | owns |
//! |---|---|
//! | `connection` | names, attributes, named values, layouts; opening files |
//! | `file` | accesses of an open file: regions, parts, bytes |
//! | `region` | indices and elements of layouts as views |
//! | `buffer` | memory of Python as memory of the client |
//! | `relayout`, `reports` | moving files, and what is told about them |
//! | `team` | teams and redistribution |
//! | `error` | exceptions |
//!
//! Invariants
//! - The interpreter is let go (`detach`) during every call that may wait.
//! - No memory of a program is touched after its buffer was given back.
//! - Nothing here panics on purpose; a panic becomes a Python exception.
//!
//! Follows `docs/adr/0046-python-arrays.md`.

mod buffer;
mod connection;
mod error;
mod file;
mod region;
mod relayout;
mod reports;
mod team;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// The layout that a text names, in normal form; refused with a mark under the character that is wrong.
#[pyfunction]
fn normal_layout(text: &str) -> PyResult<String> {
    let layout: layout::Layout = text
        .parse()
        .map_err(|e| error::value(format!("layout: {e}")))?;
    Ok(layout.to_string())
}

/// A layout on an array.
fn applied(text: &str, array: &str) -> PyResult<layout::Elements> {
    let wrong = |e: &dyn std::fmt::Display| error::value(format!("layout: {e}"));
    let layout: layout::Layout = text.parse().map_err(|e| wrong(&e))?;
    let array = region::array_of(array)?;
    let applied = layout.on_array(&array).map_err(|e| wrong(&e))?;
    applied.elements().map_err(|e| wrong(&e))
}

/// Bytes and sets of all elements of a layout of an array.
#[pyfunction]
fn layout_elements(text: &str, array: &str) -> PyResult<Vec<(u64, String)>> {
    let told = |set: &falls::FallsSet| (set.size(), set.to_string());
    Ok(applied(text, array)?.sets.iter().map(told).collect())
}

/// Which element of a layout of an array has each of these bytes; -1 for those that none has.
#[pyfunction]
fn owners(text: &str, array: &str, offsets: PyBuffer<u64>, py: Python<'_>) -> PyResult<Vec<i64>> {
    let elements = applied(text, array)?;
    let pattern = layout::Pattern::new(elements.period, elements.sets);
    let pattern = pattern.map_err(|e| error::value(format!("layout: {e}")))?;
    let partition = layout::Partition::from_start(pattern);
    let owner = |offset: u64| {
        let found = partition.owner(layout::FileOffset(offset));
        found.map_or(-1, |(element, _)| element as i64)
    };
    Ok(offsets.to_vec(py)?.into_iter().map(owner).collect())
}

/// Entries along every dimension of one element of a layout.
#[pyfunction]
fn part_shape(array: &str, layout: &str, index: u64) -> PyResult<Vec<u64>> {
    let array = region::array_of(array)?;
    Ok(region::Region::of_layout(&array, layout, index)?.shape())
}

/// Bytes of one entry.
#[pyfunction]
fn element_bytes(element: &str) -> PyResult<u64> {
    Ok(region::array_of(&format!("{element}[1]"))?.element().size())
}

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    static LISTEN: std::sync::Once = std::sync::Once::new();
    LISTEN.call_once(|| logging::listen(""));
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<file::File>()?;
    module.add_class::<relayout::Relayout>()?;
    module.add_class::<team::Team>()?;
    module.add_function(wrap_pyfunction!(normal_layout, module)?)?;
    module.add_class::<team::Redistribution>()?;
    module.add_function(wrap_pyfunction!(layout_elements, module)?)?;
    module.add_function(wrap_pyfunction!(owners, module)?)?;
    module.add_function(wrap_pyfunction!(part_shape, module)?)?;
    module.add_function(wrap_pyfunction!(element_bytes, module)?)?;
    Ok(())
}
