//! Predefined datatypes by their handles.
//!
//! The table fills as they are first used: asking the host for all of them at once would mean asking about
//! some that it does not have, which ends the program in some libraries. A type that is in the table costs a
//! look-up without a lock, since small accesses pay for it: predefined types are never freed, so a place that
//! was taken stays as it is.

use std::sync::{Arc, OnceLock};

use super::{Element, Parts, Type};
use crate::abi::{ABSENT_HANDLE, TYPES};
use crate::entry::Outcome;
use crate::failure::Failure;
use crate::ffi::Word;
use crate::host::Host;
use layout::mpi::Datatype;

/// Places, twice as many as there are predefined types in any library. A power of two.
const PLACES: usize = 256;

static KNOWN: [OnceLock<(Word, Arc<Type>)>; PLACES] = [const { OnceLock::new() }; PLACES];

/// The places where a handle may be, beginning with the likeliest.
fn places(handle: Word) -> impl Iterator<Item = &'static OnceLock<(Word, Arc<Type>)>> {
    // Handles are addresses, or numbers that differ in their lowest bits.
    let spread = (handle.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    (0..PLACES).map(move |i| &KNOWN[(spread as usize + i) % PLACES])
}

/// A type that was used before.
#[inline]
pub(super) fn known(handle: Word) -> Option<&'static Arc<Type>> {
    for place in places(handle) {
        let (of, known) = place.get()?;
        if *of == handle {
            return Some(known);
        }
    }
    None
}

/// Name and kind of a handle in the table of constants.
fn row(host: &Host, handle: Word) -> Option<(&'static str, &'static str)> {
    if handle.0 == ABSENT_HANDLE {
        return None;
    }
    let found = TYPES.iter().find(|(_, of, _)| of(&host.abi) == handle);
    found.map(|(name, _, kind)| (*name, *kind))
}

/// Whether a handle is in the table of constants.
pub(super) fn is_named(host: &Host, handle: Word) -> bool {
    row(host, handle).is_some()
}

/// Enters a predefined type. One that the table of constants does not have is so many bytes.
pub(super) fn enter(host: &Host, handle: Word) -> Outcome<Arc<Type>> {
    let size = host.type_size(handle)?;
    let bounds = host.type_extent(handle)?;
    let read = match row(host, handle) {
        Some((_, kind)) if kind.contains('+') => {
            let mut parts = kind.split('+').filter_map(|name| element(host, name));
            match (parts.next(), parts.next()) {
                (Some(value), Some(index)) => Type::of_pair([value, index])?,
                _ => opaque(size, handle)?,
            }
        }
        Some((name, kind)) => match Element::named(name, kind, size, handle) {
            Some(element) => Type::of_element(element)?,
            None => opaque(size, handle)?,
        },
        None => opaque(size, handle)?,
    };
    let read = match read.size() == size {
        true => read,
        false => opaque(size, handle)?,
    };
    let read = Arc::new(read.with_bounds(bounds)?);
    for place in places(handle) {
        let (of, known) = place.get_or_init(|| (handle, Arc::clone(&read)));
        if *of == handle {
            return Ok(Arc::clone(known));
        }
    }
    // The table is full: it is read anew each time.
    Ok(read)
}

/// A part of a pair.
fn element(host: &Host, name: &str) -> Option<Element> {
    let (_, of, kind) = TYPES.iter().find(|(known, _, _)| *known == name)?;
    let handle = of(&host.abi);
    let size = host.type_size(handle).ok()?;
    Element::named(name, kind, size, handle)
}

/// So many bytes of which nothing is known.
fn opaque(size: u64, handle: Word) -> Outcome<Type> {
    let native =
        Datatype::basic(i64::try_from(size).map_err(|_| Failure::host_lacks("Type_size_x"))?)?;
    let element = Element::bytes(u8::try_from(size).unwrap_or(u8::MAX), handle);
    Ok(Type::new(native, true, Parts::Element(element)))
}
