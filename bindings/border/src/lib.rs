//! What the C interfaces have in common: `pario.h` and `vipios.h`.
//!
//! ```text
//!  program in C  --arguments-->  ffi  --values-->  entry: runs the work, keeps panics in
//!       ^                                            |
//!       +------ code, and a text per thread ---------+
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `ffi` | arguments: pointers, lists, texts, structs of options |
//! | `entry` | failures: their codes, and their texts for each thread |
//! | `process` | what a process has, which a child that was forked off has not |
//!
//! Invariants
//! - No panic reaches the program.
//! - Nothing here is exported to C: each interface has functions of its own.
#![allow(unsafe_code)] // pointers of C; see the SAFETY notes

pub mod entry;
pub mod ffi;
pub mod process;
