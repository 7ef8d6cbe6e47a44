//! The C interface of Pario: `pario.h`, and `pario_tmk.h` for programs written for TreadMarks.
//!
//! ```text
//!  program in C, C++ or whatever calls C
//!        |  pario_x(handles, plain values)                    include/pario.h
//!        v
//!     entry: keeps panics in, makes codes and texts of errors
//!        |   table: what does the handle stand for?
//!        v
//!     one file per group of verbs  ->  client
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `entry`, `ffi`, `structs` | from an entry point to what it does: errors, arguments (both of `border`), structs |
//! | `table` | handles and what they stand for |
//! | `connect`, `names` | clients, and everything that goes by path names |
//! | `open`, `settings` | open files: opening, size, sync, modes, hints |
//! | `access`, `requests` | reading and writing, at once or beside the program |
//! | `patterns`, `views`, `layouts` | descriptions of memory, of views and of partitions |
//! | `directives` | layouts of HPF, and memory that holds a whole array |
//! | `teams`, `together`, `redistribute` | teams, what they do together, arrays between their memories |
//! | `channels` | arrays that go from one program to another |
//! | `streams`, `elemental` | a stream for every virtual processor, by all at once and by one alone |
//! | `tmk` | programs written for TreadMarks, and parallel files under their memory |
//! | `relayout`, `reports` | moving files, and what is told about them |
//!
//! Invariants
//! - No panic reaches the program, and no handle it gives, whatever it is, is followed as a pointer.
//! - Nothing is exported that `pario.map` does not list.
//! - A call that fails has stored null where it would have stored a handle or a text.
#![allow(unsafe_code)] // the C interface; see the SAFETY notes

mod access;
mod channels;
mod connect;
mod directives;
mod elemental;
mod entry;
mod ffi;
mod layouts;
mod names;
mod open;
mod patterns;
mod redistribute;
mod relayout;
mod reports;
mod requests;
mod settings;
mod streams;
#[allow(non_camel_case_types)] // the names of C
mod structs;
mod table;
mod teams;
mod tmk;
mod together;
mod views;
