//! Handles of Fortran, which are integers, as handles of the host.
//!
//! Where handles are numbers they are the same numbers. Elsewhere the host has functions, which return a handle instead of
//! an error code and so are no [`Calls`](super::Calls).

use std::ffi::{CStr, c_int};

use super::{Host, find};
use crate::ffi::Word;

impl Host {
    /// A datatype.
    pub(crate) fn type_from_fortran(&self, handle: c_int) -> Word {
        self.handle_of_fortran(
            handle,
            &[c"PMPI_Type_f2c", c"PMPI_Type_fromint"],
            self.abi.datatype_null,
        )
    }

    /// A communicator.
    pub(crate) fn comm_from_fortran(&self, handle: c_int) -> Word {
        self.handle_of_fortran(
            handle,
            &[c"PMPI_Comm_f2c", c"PMPI_Comm_fromint"],
            self.abi.comm_null,
        )
    }

    fn handle_of_fortran(&self, handle: c_int, names: &[&CStr], null: Word) -> Word {
        if self.abi.is_narrow() {
            return Word(handle as u32 as usize);
        }
        let Some(function) = names
            .iter()
            .find_map(|name| find::function(&self.path, name))
        else {
            return null;
        };
        // SAFETY: both functions take an integer and return a handle, which is a word here.
        unsafe {
            let function: unsafe extern "C" fn(c_int) -> Word = std::mem::transmute(function);
            function(handle)
        }
    }
}
