//! What the programs that people start have in common: `pario`, and `pario-bench` beside it.
//!
//! | module | owns |
//! |---|---|
//! | [`failure`] | how a program ends: one line on standard error and an exit code |
//! | [`output`] | writing to standard output, and numbers as people read them |
//! | [`names`] | names that are safe for a terminal |
//! | [`notation`], [`subject`] | arrays, layouts, views and sizes on the command line |
//! | [`driven`] | processes that are driven line by line |
//! | [`site`] | services that live as long as a value |
//! | [`preload`] | the MPI-IO library around a command |
//!
//! Left to others: what a program does.
#![forbid(unsafe_code)]

pub mod driven;
pub mod failure;
pub mod names;
pub mod notation;
pub mod output;
pub mod preload;
pub mod site;
pub mod subject;

pub use failure::{Error, refused};
