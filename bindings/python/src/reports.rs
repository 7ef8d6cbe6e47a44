//! What is known of a file as dictionaries: its layout, its profile, advice, and where the bytes of a region lie.
//!
//! The words are those of the commands' `--json` and of the C interface. Counting the pieces of an irregular region has a
//! bound; beyond it the report says that it was not counted.

use std::collections::BTreeMap;

use client::{FileAdvice, FileLayout, FileProfile, View};
use falls::{Meeting, Steps};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::value;

/// Subfiles up to which a region is explained.
const MOST_SUBFILES: usize = 1 << 16;

/// Steps that counting the pieces of a region may take.
const MOST_STEPS: u64 = 1 << 20;

/// How a file is cut, which servers have which subfile, and why.
pub(crate) fn layout<'py>(py: Python<'py>, found: &FileLayout) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    report.set_item("array", found.array.clone())?;
    report.set_item("layout", &found.text)?;
    report.set_item("distribution", &found.distribution)?;
    let mut pieces = Vec::new();
    for piece in &found.state.pieces {
        let one = PyDict::new(py);
        let servers = piece.places.iter();
        let servers = servers.map(|list| list.iter().map(|p| p.server).collect::<Vec<u64>>());
        let ranges = piece.ranges.iter().map(|r| (r.start, r.end));
        let sets = (0..piece.places.len()).map(|k| piece.partition.subfile(k));
        one.set_item("generation", piece.generation)?;
        one.set_item("ranges", ranges.collect::<Vec<_>>())?;
        one.set_item("subfiles", piece.places.len())?;
        one.set_item("servers", servers.collect::<Vec<_>>())?;
        one.set_item("period", piece.partition.pattern().period())?;
        one.set_item(
            "sets",
            sets.map(|s| s.set().simplify().to_string())
                .collect::<Vec<_>>(),
        )?;
        pieces.push(one);
    }
    report.set_item("pieces", pieces)?;
    let lost = found.lost.iter().map(|p| p.server);
    report.set_item("lost", lost.collect::<Vec<_>>())?;
    Ok(report)
}

/// What was observed of the use of a file.
pub(crate) fn profile<'py>(py: Python<'py>, found: &FileProfile) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    let total = found.profile.total();
    let mut entries = Vec::new();
    for (key, entry) in found.profile.entries() {
        let one = PyDict::new(py);
        let view = entry.view.bytes();
        one.set_item("application", &key.application)?;
        one.set_item("rank", key.rank)?;
        one.set_item("processes", entry.processes)?;
        one.set_item("view", view.set().to_string())?;
        one.set_item("displacement", view.displacement())?;
        one.set_item("period", view.period())?;
        one.set_item("text", entry.text.clone())?;
        one.set_item("reads", entry.read.count())?;
        one.set_item("read_bytes", entry.read.bytes)?;
        one.set_item("writes", entry.written.count())?;
        one.set_item("written_bytes", entry.written.bytes)?;
        entries.push(one);
    }
    report.set_item("entries", entries)?;
    report.set_item("reads", total.read.count())?;
    report.set_item("read_bytes", total.read.bytes)?;
    report.set_item("writes", total.written.count())?;
    report.set_item("written_bytes", total.written.bytes)?;
    report.set_item("moves", found.moves)?;
    report.set_item("suggestion", &found.suggestion)?;
    report.set_item("why", &found.why)?;
    Ok(report)
}

/// Layouts that would suit what was observed, best first.
pub(crate) fn advice<'py>(py: Python<'py>, advice: &FileAdvice) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    let mut ranked = Vec::new();
    for a in &advice.advised.ranked {
        let one = PyDict::new(py);
        one.set_item("layout", a.layout.clone())?;
        one.set_item("kind", a.kind.word())?;
        one.set_item("predicted_s", a.seconds)?;
        one.set_item("predicted_gain", a.gain_s)?;
        one.set_item("move_cost_s", a.move_s)?;
        ranked.push(one);
    }
    report.set_item("layout", &advice.layout)?;
    report.set_item("file_bytes", advice.bytes)?;
    report.set_item("judged", advice.advised.judged)?;
    report.set_item("cut_short", advice.advised.is_cut_short)?;
    report.set_item("compromise", advice.advised.compromise.clone())?;
    report.set_item("ranked", ranked)?;
    Ok(report)
}

/// Which servers an access of the bytes of a view reaches, and how many bytes and runs each subfile has of it.
pub(crate) fn explained<'py>(
    py: Python<'py>,
    found: &FileLayout,
    view: &View,
    end: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let pieces = &found.state.pieces;
    let count: usize = pieces.iter().map(|piece| piece.places.len()).sum();
    if count > MOST_SUBFILES {
        return Err(value(format!(
            "the file has {count} subfiles; {MOST_SUBFILES} are explained at most"
        )));
    }
    let report = PyDict::new(py);
    let mut subfiles = Vec::new();
    let mut by_server: BTreeMap<u64, u64> = BTreeMap::new();
    let mut is_counted = true;
    let mut steps = Steps::new(MOST_STEPS);
    for piece in pieces {
        for (number, places) in piece.places.iter().enumerate() {
            let meeting = Meeting::new(view.bytes(), &piece.partition.subfile(number));
            let mut inside = piece
                .ranges
                .iter()
                .map(|r| r.start.min(end)..r.end.min(end));
            let bytes = inside.try_fold(0, |sum, range| {
                let counted = meeting.count_at_most(range, u64::MAX, &mut steps);
                counted.map(|bytes| sum + bytes)
            });
            let Ok(bytes) = bytes else {
                is_counted = false;
                continue;
            };
            let server = places.first().map_or(0, |place| place.server);
            if bytes > 0 {
                *by_server.entry(server).or_default() += bytes;
                let one = PyDict::new(py);
                one.set_item("generation", piece.generation)?;
                one.set_item("subfile", number)?;
                one.set_item("server", server)?;
                one.set_item("bytes", bytes)?;
                subfiles.push(one);
            }
        }
    }
    report.set_item("layout", &found.text)?;
    report.set_item("view", view.bytes().set().to_string())?;
    report.set_item("view_bytes", view.len_within(end))?;
    report.set_item("counted", is_counted)?;
    report.set_item("servers", by_server)?;
    report.set_item("subfiles", subfiles)?;
    Ok(report)
}
