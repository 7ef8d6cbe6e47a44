//! Data representations: what values look like in a file.
//!
//! | name | sizes | bytes |
//! |---|---|---|
//! | `native` | of memory | as in memory |
//! | `internal` | of memory | as in memory: all hosts of a service have one architecture |
//! | `external32` | of the standard's table | big-endian, IEEE 754 |
//! | registered | what the program's function says | what the program's functions make of them |
//!
//! Invariants
//! - Functions of the program are called by threads of the program only.
//! - A value that does not fit its width in the file is an error, never cut off.
//!
//! Left to others: which bytes of the view they are (`view`), and when they are converted (`memory`).

mod external32;
mod quad;
mod registered;

use std::sync::Arc;

use crate::datatype::{Element, Type};
use crate::entry::Outcome;
use crate::failure::{Class, Failure};

pub(crate) use external32::{from_external, to_external};
pub(crate) use registered::{ProgramRepresentation, register};

/// How values are written down.
#[derive(Clone, Debug)]
pub(crate) enum Representation {
    Native,
    Internal,
    External32,
    Registered(Arc<ProgramRepresentation>),
}

impl Representation {
    /// The representation of a name.
    pub(crate) fn find(name: &str) -> Outcome<Representation> {
        match name {
            "native" => Ok(Representation::Native),
            "internal" => Ok(Representation::Internal),
            "external32" => Ok(Representation::External32),
            name => match registered::find(name) {
                Some(registered) => Ok(Representation::Registered(registered)),
                None => Err(Failure::new(
                    Class::UnsupportedDatarep,
                    format!(
                        "there is no data representation '{name}'; give native, internal, external32 or one that was registered"
                    ),
                )),
            },
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Representation::Native => "native",
            Representation::Internal => "internal",
            Representation::External32 => "external32",
            Representation::Registered(registered) => &registered.name,
        }
    }

    /// Whether bytes in the file are others than those in memory.
    pub(crate) fn is_converting(&self) -> bool {
        match self {
            Representation::Native | Representation::Internal => false,
            Representation::External32 => true,
            Representation::Registered(registered) => registered.is_converting(),
        }
    }

    /// Bytes of an element in the file.
    pub(crate) fn size_of(&self, element: &Element) -> Outcome<u64> {
        match self {
            Representation::Native | Representation::Internal => Ok(element.size()),
            Representation::External32 => Ok(element.external_size()),
            Representation::Registered(registered) => registered.size_of(element),
        }
    }

    /// A type as it is in the file.
    pub(crate) fn in_file(&self, datatype: &Type) -> Outcome<layout::mpi::Datatype> {
        match self.is_converting() {
            false => Ok(datatype.native.clone()),
            true => datatype.in_file(&|element| self.size_of(element)),
        }
    }

    /// Bytes in the file of a number of elements of a type.
    pub(crate) fn bytes_of(&self, datatype: &Type, count: u64) -> Outcome<u64> {
        let mut each = 0u64;
        for (element, often) in datatype.elements() {
            each = self
                .size_of(element)?
                .checked_mul(*often)
                .and_then(|bytes| bytes.checked_add(each))
                .ok_or_else(too_large)?;
        }
        each.checked_mul(count).ok_or_else(too_large)
    }
}

fn too_large() -> Failure {
    Failure::new(
        Class::Count,
        "count and datatype reach over 2^63 bytes of the file; give fewer",
    )
}
