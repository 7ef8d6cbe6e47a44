//! Hints: what a program gives in an info object, and what it is told is in force.
//!
//! Hints are advice: a value that makes no sense is passed over, never an error. Names of the standard and of
//! ROMIO that mean something here become hints of `client`; `pario_NAME` is the hint NAME of `client`.

use client::{Hints, OpenOptions};

use crate::entry::{Call, Outcome};
use crate::ffi::Word;
use crate::open_file::{OpenFile, lock};

/// The hints of `client` that a hint of a program means.
fn meaning(name: &str, value: &str) -> Option<(String, String)> {
    let same = |name: &str| Some((name.to_owned(), value.trim().to_owned()));
    match name {
        "striping_unit" | "striping_factor" | "ind_rd_buffer_size" | "ind_wr_buffer_size" => {
            same(name)
        }
        "nb_proc" => same("expected_clients"),
        "romio_ds_read" | "romio_ds_write" if is_enabled(value) => {
            Some(("strategy".into(), "sieving".into()))
        }
        "romio_cb_read" | "romio_cb_write" if is_enabled(value) => {
            Some(("strategy".into(), "two_phase".into()))
        }
        _ => same(name.strip_prefix("pario_")?),
    }
}

fn is_enabled(value: &str) -> bool {
    value.trim().eq_ignore_ascii_case("enable")
}

/// Those that mean something, as hints of `client`.
fn meant(pairs: &[(String, String)]) -> Hints {
    let mut hints = Hints::new();
    for (name, value) in pairs {
        if let Some((name, value)) = meaning(name, value) {
            // What `client` does not take is passed over.
            let _ = hints.set(&name, &value);
        }
    }
    hints
}

/// How a file is opened with these hints.
pub(crate) fn options(pairs: &[(String, String)], is_create: bool) -> OpenOptions {
    let options = OpenOptions::new().hints(meant(pairs));
    let mode = pairs.iter().find(|(name, _)| name == "file_perm");
    let mode = mode.and_then(|(_, value)| u32::from_str_radix(value.trim(), 8).ok());
    match mode.filter(|mode| is_create && *mode <= 0o777) {
        Some(mode) => options.mode(mode),
        None => options,
    }
}

/// Adds the hints of an info object to those of a file.
pub(crate) fn add(call: &Call, info: Word) -> Outcome {
    let new = call.host.info(info)?;
    call.file.file.set_hints(&meant(&new))?;
    let mut hints = lock(&call.file.hints);
    for (name, value) in new {
        hints.retain(|(known, _)| *known != name);
        hints.push((name, value));
    }
    Ok(())
}

/// What is in force for a file.
pub(crate) fn in_force(file: &OpenFile) -> Vec<(String, String)> {
    let mut pairs = lock(&file.hints).clone();
    pairs.retain(|(name, _)| name != "filename");
    pairs.push(("filename".into(), file.name.clone()));
    pairs
}
