//! The calls of ViPIOS on Pario: `vipios.h`.
//!
//! ```text
//!  program written for ViPIOS
//!        |  ViPIOS_x(numbers, plain values, Access_Desc)      include/vipios.h
//!        v
//!     border: arguments, failures per thread
//!        |   state: what do the numbers of this process stand for?
//!        v
//!     one file per group of calls  ->  client
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `state`, `answer` | numbers of files and requests, connections; the two kinds of return values |
//! | `descriptor` | `Access_Desc` and `basic_block` as C lays them out, read into checked descriptors |
//! | `pattern` | a descriptor at a place of a file, ready for accesses |
//! | `connection`, `files` | connecting, opening, closing, removing, sizes |
//! | `access`, `requests` | reading and writing, at once or beside the program |
//! | `unix` | the same files by Unix-style calls |
//! | `systems` | which service a number stands for |
//! | `pointer` | the pointer, counts and the state of accesses |
//!
//! The source is the specification of ViPIOS, appendix A (2.1 and 2.2 of ours); what it has wrong is listed in the header.
//!
//! Invariants
//! - No panic reaches the program, and no number it gives, whatever it is, is followed.
//! - Nothing is exported that `vipios.map` does not list.
//! - A call that fails moves no pointer, and has stored -1 where it would have stored a number of a file or request.
#![allow(unsafe_code)] // the C interface; see the SAFETY notes

mod access;
mod answer;
mod connection;
mod descriptor;
mod files;
mod pattern;
mod pointer;
mod requests;
mod state;
mod systems;
mod unix;
