//! The entry points of the C interface, made by `build.rs` from `standard/prototypes.table`.
//!
//! Each is there as `MPI_x` and as `PMPI_x`: the Fortran libraries of Open MPI call the second, those of
//! MPICH both.
#![allow(
    non_snake_case,
    clippy::missing_safety_doc,
    clippy::redundant_closure,
    clippy::too_many_arguments,
    clippy::undocumented_unsafe_blocks,
    clippy::useless_conversion,
    private_interfaces,
    unreachable_pub
)]

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::ffi::{Address, HandleOut, Out, StatusOut, Text, Word};

include!(concat!(env!("OUT_DIR"), "/prototypes.rs"));
