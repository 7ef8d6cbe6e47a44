//! Parallel files: members of a team as threads over a directory that the test serves, and as real processes.
//!
//! Statements of the source are in the names (`docs/statements.md`).

mod faults;
mod files;
mod learning;
mod matrix;
mod members;
mod processes;
mod sor;
