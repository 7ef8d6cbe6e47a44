//! `MPI_File_*` beside any MPI: files of Pario for MPI programs that know nothing of it.
//!
//! ```text
//!  program, HDF5, mpi4py, Fortran wrappers of the host
//!        |  MPI_File_x, PMPI_File_x, both with _c           (standard/prototypes.table -> entries)
//!        v
//!     entry: whose handle is it?  -- not ours -->  the host's own function, untouched
//!        |  ours
//!        v
//!     verbs  ->  operation  ->  client                       the host is asked for types, infos, groups, errors
//! ```
//!
//! One library serves every ABI: the MPI of the process is found at run time (`host`), and what
//! differs between libraries (constants, width of handles, status) is in `abi`.
//!
//! | module | owns |
//! |---|---|
//! | `entries`, `entry`, `ffi`, `verbs`, `free` | from an entry point to the function that does it, `MPI_Pack` among them |
//! | `host`, `abi` | the MPI of the process, and what differs between libraries |
//! | `table`, `open_file`, `view`, `datarep` | handles of ours, and what MPI keeps with them |
//! | `operation`, `memory`, `datatype` | one access, its memory, and views that do not ascend |
//! | `requests`, `queue`, `progress` | what goes on while the program does, and waiting for it |
//! | `service`, `roll_call`, `info` | services behind files, the processes that open one, and hints |
//! | `redistribute` | redistribution in memory |
//! | `failure`, `finalize` | errors in the classes of MPI, and its end |
//!
//! Invariants
//! - A handle of ours is a real handle of the host, opened on /dev/null by this process alone. Handlers,
//!   Fortran numbers and everything else that is done with a handle elsewhere are the host's affair.
//! - Only threads of the program call the host, and only inside a call that they made to MPI themselves.
//! - No panic and no signal of ours reaches the program.
//! - Files that are not ours take the way they would take without this library.
#![allow(unsafe_code)] // the C interface; see the SAFETY notes

mod abi;
mod datarep;
mod datatype;
mod entries;
mod entry;
mod failure;
mod ffi;
mod finalize;
mod free;
mod host;
mod info;
mod memory;
mod open_file;
mod operation;
mod progress;
mod queue;
mod redistribute;
mod requests;
mod roll_call;
mod service;
mod table;
mod verbs;
mod view;
