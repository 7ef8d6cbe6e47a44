//! Representations that the program registers, and calling its functions.
//!
//! A conversion function gets values side by side in `filebuf` and lays them out in (or takes them from)
//! `userbuf` as the datatype says; `count` counts values of the type map and `position` is the first of
//! them (MPI 4.1, 15.5.3).

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::datatype::Element;
use crate::entry::Outcome;
use crate::failure::{Class, Failure};
use crate::ffi::Word;
use crate::operation::Direction;
use parking_lot::Mutex;

type Convert = unsafe extern "C" fn(*mut c_void, Word, c_int, *mut c_void, i64, Word) -> c_int;
type ConvertLarge = unsafe extern "C" fn(*mut c_void, Word, i64, *mut c_void, i64, Word) -> c_int;
type Extent = unsafe extern "C" fn(Word, *mut i64, Word) -> c_int;

/// A representation of the program.
#[derive(Debug)]
pub(crate) struct ProgramRepresentation {
    pub(crate) name: String,
    /// Null for values as in memory.
    read: usize,
    write: usize,
    extent: usize,
    state: Word,
    /// Whether its functions count in 64 bits.
    is_large: bool,
    /// Bytes of elements that were asked for.
    sizes: Mutex<HashMap<Word, u64>>,
}

static ALL: Mutex<Vec<Arc<ProgramRepresentation>>> = Mutex::new(Vec::new());

/// The representation that was registered under a name.
pub(super) fn find(name: &str) -> Option<Arc<ProgramRepresentation>> {
    let all = ALL.lock();
    all.iter().find(|known| known.name == name).cloned()
}

/// Registers a representation.
pub(crate) fn register(
    name: &str,
    (read, write, extent): (usize, usize, usize),
    state: Word,
    is_large: bool,
) -> Outcome {
    let mut all = ALL.lock();
    let is_taken = ["native", "internal", "external32"].contains(&name)
        || all.iter().any(|known| known.name == name);
    if is_taken {
        return Err(Failure::new(
            Class::DupDatarep,
            format!("there is a data representation '{name}' already; give another name"),
        ));
    }
    if extent == 0 && (read, write) != (0, 0) {
        return Err(Failure::new(
            Class::Arg,
            "dtype_file_extent_fn is null; give a function that tells the sizes of values",
        ));
    }
    all.push(Arc::new(ProgramRepresentation {
        name: name.to_owned(),
        read,
        write,
        extent,
        state,
        is_large,
        sizes: Mutex::default(),
    }));
    Ok(())
}

impl ProgramRepresentation {
    /// Whether a function of the program has to be called for values.
    pub(crate) fn is_converting(&self) -> bool {
        (self.read, self.write) != (0, 0)
    }

    /// Whether values are read as they are.
    pub(crate) fn reads_as_it_is(&self) -> bool {
        self.read == 0
    }

    /// Whether values are written as they are.
    pub(crate) fn writes_as_it_is(&self) -> bool {
        self.write == 0
    }

    /// Bytes of an element in the file. Called by threads of the program.
    pub(crate) fn size_of(&self, element: &Element) -> Outcome<u64> {
        if !self.is_converting() {
            return Ok(element.size());
        }
        if let Some(size) = self.sizes.lock().get(&element.handle) {
            return Ok(*size);
        }
        let mut extent = 0i64;
        // SAFETY: the program registered the address as a function of this type, and this is its thread.
        let code = unsafe {
            let ask: Extent = std::mem::transmute(self.extent);
            ask(element.handle, &raw mut extent, self.state)
        };
        let size = match (code, u64::try_from(extent)) {
            (0, Ok(size)) if size > 0 => size,
            _ => {
                let text = format!(
                    "the extent function of '{}' answered {extent} bytes with code {code}",
                    self.name
                );
                return Err(Failure::new(Class::Conversion, text));
            }
        };
        self.sizes.lock().insert(element.handle, size);
        Ok(size)
    }

    /// Makes values in memory of values of the file, or the other way: calls a function of the program, several times if
    /// the values are more than it can count.
    pub(crate) fn convert(
        &self,
        direction: Direction,
        user: usize,
        datatype: Word,
        items: u64,
        file: *mut u8,
        bytes_before: &dyn Fn(u64) -> u64,
    ) -> Outcome {
        let function = match direction {
            Direction::Read => self.read,
            Direction::Write => self.write,
        };
        let user = user as *mut c_void;
        let most = match self.is_large {
            true => i64::MAX as u64,
            false => c_int::MAX as u64,
        };
        let mut position = 0;
        while position < items {
            let count = (items - position).min(most);
            let from = file.wrapping_add(bytes_before(position) as usize).cast();
            let at = position as i64;
            // SAFETY: the program registered the address as a function of this type, and this is its thread; the
            // buffer of the file holds the values from `position` on.
            let code = unsafe {
                if self.is_large {
                    let call: ConvertLarge = std::mem::transmute(function);
                    call(user, datatype, count as i64, from, at, self.state)
                } else {
                    let call: Convert = std::mem::transmute(function);
                    call(user, datatype, count as c_int, from, at, self.state)
                }
            };
            if code != 0 {
                let text = format!(
                    "the conversion function of '{}' failed with code {code}",
                    self.name
                );
                return Err(Failure::new(Class::Conversion, text));
            }
            position += count;
        }
        Ok(())
    }
}
