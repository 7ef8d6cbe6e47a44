//! What differs between MPI libraries: constants, width of handles, size of a status.
//!
//! The numbers are in `standard/constants.table`. Open MPI's handles are addresses of its globals and are
//! looked up in the library that was found.

use std::ffi::CStr;

use crate::ffi::Word;

/// A number that an ABI does not have.
pub(crate) const ABSENT: i64 = i64::MIN;

/// A handle that an ABI does not have.
pub(crate) const ABSENT_HANDLE: usize = usize::MAX;

include!(concat!(env!("OUT_DIR"), "/constants.rs"));

/// The family of the host's binary interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// libmpi.so.12, libmpich.so.12 and relatives: handles are 32-bit numbers.
    Mpich,
    /// libmpi.so.40: handles are addresses.
    OpenMpi,
    /// libmpi_abi.so: handles are small numbers in pointers.
    Standard,
}

/// One ABI: its family and its constants.
#[derive(Debug)]
pub(crate) struct Abi {
    pub(crate) family: Family,
    pub(crate) constants: Constants,
}

impl Abi {
    /// Whether handles are 32 bits wide in memory.
    pub(crate) fn is_narrow(&self) -> bool {
        self.family == Family::Mpich
    }

    /// Bytes of one handle in an array.
    pub(crate) fn handle_bytes(&self) -> usize {
        if self.is_narrow() { 4 } else { 8 }
    }

    /// Bytes of one status in an array.
    pub(crate) fn status_bytes(&self) -> usize {
        match self.family {
            Family::Mpich => 20,
            Family::OpenMpi => 24,
            Family::Standard => 32,
        }
    }

    /// Where MPI_ERROR is in a status.
    pub(crate) fn status_error_offset(&self) -> usize {
        match self.family {
            Family::Mpich => 16,
            Family::OpenMpi | Family::Standard => 8,
        }
    }
}

impl std::ops::Deref for Abi {
    type Target = Constants;

    fn deref(&self) -> &Constants {
        &self.constants
    }
}
