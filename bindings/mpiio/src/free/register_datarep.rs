//! `MPI_Register_datarep`: representations that a program brings along.
//!
//! They are registered here and, as far as it takes them, with the host, whose own files may use them. MPICH
//! takes none that converts.

use std::ffi::c_int;

use crate::abi::Family;
use crate::datarep;
use crate::entry;
use crate::failure::{Class, Failure};
use crate::ffi::{Text, Word};

/// `MPI_Register_datarep`.
pub(crate) fn register_datarep(
    is_large: bool,
    datarep: Text,
    read: Word,
    write: Word,
    extent: Word,
    state: Word,
) -> c_int {
    let name = match is_large {
        true => "MPI_Register_datarep_c",
        false => "MPI_Register_datarep",
    };
    entry::of_no_file(name, "", |host| {
        let text = datarep
            .get()
            .filter(|text| !text.is_empty())
            .ok_or_else(|| Failure::new(Class::Arg, "datarep is empty; give a name"))?;
        let room = host.abi.max_datarep_string as usize;
        if text.len() >= room {
            let text = format!(
                "datarep has {} characters; give at most {}",
                text.len(),
                room - 1
            );
            return Err(Failure::new(Class::Arg, text));
        }
        datarep::register(&text, (read.0, write.0, extent.0), state, is_large)?;
        let is_plain = (read.0, write.0) == (0, 0);
        let function = match is_large {
            true => host.files.Register_datarep_c,
            false => host.files.Register_datarep,
        };
        if is_plain || host.abi.family == Family::OpenMpi {
            // What the host makes of it concerns files of the host.
            // SAFETY: the arguments are the caller's.
            let _ = function.map(|f| unsafe { f(datarep, read, write, extent, state) });
        }
        Ok(0)
    })
}
