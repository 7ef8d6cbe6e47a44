//! Memory of the program as an operation sees it: an address, a datatype, a count.
//!
//! It may be handed to a thread of ours: MPI demands that the program leaves the buffer alone until the
//! operation is complete.

use client::{Places, SharedBytes, SharedBytesMut};

use crate::datatype::Type;
use crate::entry::Outcome;
use crate::failure::{Class, Failure};
use crate::ffi::Address;

/// A described buffer of the program.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Where offset 0 of the description is.
    address: usize,
    places: Places,
}

impl Memory {
    /// `count` elements of a type at an address.
    pub(crate) fn new(address: Address, count: i64, datatype: &Type) -> Outcome<Memory> {
        let count = u64::try_from(count)
            .map_err(|_| Failure::new(Class::Count, format!("count is {count}; give 0 or more")))?;
        let places = Places::new(&datatype.native.to_sequence_of(count)?);
        Ok(Memory {
            address: address.number(),
            places,
        })
    }

    /// No bytes.
    pub(crate) fn nothing() -> Memory {
        Memory {
            address: 0,
            places: Places::bytes(0),
        }
    }

    /// Bytes in all.
    pub(crate) fn size(&self) -> u64 {
        self.places.size()
    }

    /// How the bytes lie.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// The memory from its lowest byte on, and where offset 0 is in it.
    fn base(&self) -> (usize, usize, usize) {
        let hull = self.places.hull().unwrap_or(0..0);
        let low = hull.start.min(0);
        let len = (hull.end - low).max(0) as usize;
        let base = self.address.wrapping_add_signed(low as isize);
        (base, len, low.unsigned_abs() as usize)
    }

    /// For writing files from it.
    pub(crate) fn source(&self) -> (SharedBytes<'_>, usize) {
        let (base, len, origin) = self.base();
        // SAFETY: the program gave a buffer that holds what the datatype describes, and leaves it alone until the
        // operation is complete.
        (unsafe { SharedBytes::new(base as *const u8, len) }, origin)
    }

    /// For reading files into it.
    pub(crate) fn target(&self) -> (SharedBytesMut<'_>, usize) {
        let (base, len, origin) = self.base();
        // SAFETY: the same; nobody else uses the bytes that are described.
        (unsafe { SharedBytesMut::new(base as *mut u8, len) }, origin)
    }
}
