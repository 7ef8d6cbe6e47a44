//! What is set and asked of an open file: size, durability, atomic mode, hints.
//!
//! Sizes are in bytes of the file, whatever its view is.

use std::ffi::c_int;

use client::Hints;

use crate::connect::{Connection, hints_of};
use crate::entry::{Outcome, answer};
use crate::ffi::{List, Out, Text};
use crate::open::OpenFile;
use crate::structs::pario_hint;
use crate::table::Handle;
use crate::teams::Member;

/// The size of a file.
#[unsafe(no_mangle)]
extern "C" fn pario_size(file: Handle<OpenFile>, bytes: Out<u64>) -> c_int {
    answer("pario_size", || {
        bytes.required("bytes")?.set(file.get()?.file.size()?);
        Ok(())
    })
}

/// Sets the size; what is added reads as zeros.
#[unsafe(no_mangle)]
extern "C" fn pario_truncate(file: Handle<OpenFile>, bytes: u64) -> c_int {
    answer("pario_truncate", || Ok(file.get()?.file.resize(bytes)?))
}

/// Commits space for the bytes below a size, and grows the file to it.
#[unsafe(no_mangle)]
extern "C" fn pario_preallocate(file: Handle<OpenFile>, bytes: u64) -> c_int {
    answer("pario_preallocate", || {
        Ok(file.get()?.file.preallocate(bytes)?)
    })
}

/// Makes a range of the file zero and gives its space back.
#[unsafe(no_mangle)]
extern "C" fn pario_punch(file: Handle<OpenFile>, offset: u64, bytes: u64) -> c_int {
    answer("pario_punch", || {
        let end = offset.saturating_add(bytes);
        Ok(file.get()?.file.punch(offset..end)?)
    })
}

/// Space that a file takes at all its servers.
#[unsafe(no_mangle)]
extern "C" fn pario_allocated(file: Handle<OpenFile>, bytes: Out<u64>) -> c_int {
    answer("pario_allocated", || {
        bytes.required("bytes")?.set(file.get()?.file.allocated()?);
        Ok(())
    })
}

/// Makes what was written durable, where the stores can.
#[unsafe(no_mangle)]
extern "C" fn pario_sync(file: Handle<OpenFile>, is_durable: Out<c_int>) -> c_int {
    answer("pario_sync", || {
        let opened = file.get()?;
        opened.wait();
        let report = opened.file.sync()?;
        is_durable.set(c_int::from(report.is_durable));
        Ok(())
    })
}

/// Enters or leaves atomic mode: reads and writes of several processes do not mix.
#[unsafe(no_mangle)]
extern "C" fn pario_set_atomic(file: Handle<OpenFile>, is_atomic: c_int) -> c_int {
    answer("pario_set_atomic", || {
        let opened = file.get()?;
        opened.wait();
        Ok(opened.file.set_atomic(is_atomic != 0)?)
    })
}

/// Whether a file is in atomic mode.
#[unsafe(no_mangle)]
extern "C" fn pario_is_atomic(file: Handle<OpenFile>, is_atomic: Out<c_int>) -> c_int {
    answer("pario_is_atomic", || {
        let is = file.with(|opened| Ok(opened.file.is_atomic()))?;
        is_atomic.required("is_atomic")?.set(c_int::from(is));
        Ok(())
    })
}

fn set(
    file: Handle<OpenFile>,
    hints: List<pario_hint>,
    count: usize,
    set: impl FnOnce(&OpenFile, &Hints) -> Outcome,
) -> Outcome {
    let hints = hints_of(hints, count)?;
    let opened = file.get()?;
    opened.wait();
    set(&opened, &hints)
}

/// Adds hints to an open file.
#[unsafe(no_mangle)]
extern "C" fn pario_set_hints(
    file: Handle<OpenFile>,
    hints: List<pario_hint>,
    count: usize,
) -> c_int {
    answer("pario_set_hints", || {
        set(file, hints, count, |opened, hints| {
            Ok(opened.file.set_hints(hints)?)
        })
    })
}

/// Adds hints to a file that a team has open; all members give the same.
#[unsafe(no_mangle)]
extern "C" fn pario_set_hints_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    hints: List<pario_hint>,
    count: usize,
) -> c_int {
    answer("pario_set_hints_all", || {
        let member = team.get()?;
        member.wait();
        set(file, hints, count, |opened, hints| {
            Ok(opened.file.set_hints_together(&member.team, hints)?)
        })
    })
}

/// Keeps hints with a file or directory, for it and everything below.
#[unsafe(no_mangle)]
extern "C" fn pario_keep_hints(
    client: Handle<Connection>,
    path: Text,
    hints: List<pario_hint>,
    count: usize,
    unset: List<Text>,
    unset_count: usize,
) -> c_int {
    answer("pario_keep_hints", || {
        let client = client.get()?;
        let hints = hints_of(hints, count)?;
        let unset: Outcome<Vec<String>> = unset
            .get("unset", unset_count)?
            .into_iter()
            .map(|name| name.required("unset"))
            .collect();
        Ok(client
            .0
            .set_hints(&path.required("path")?, &hints, &unset?)?)
    })
}

/// Says what is going to be read, in bytes of the view.
#[unsafe(no_mangle)]
extern "C" fn pario_will_read(file: Handle<OpenFile>, offset: u64, bytes: u64) -> c_int {
    answer("pario_will_read", || {
        let end = offset.saturating_add(bytes);
        Ok(file.get()?.file.will_read(offset..end)?)
    })
}
