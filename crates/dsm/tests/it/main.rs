//! Tests of the shared memory, by what they need: the machines alone, simulated processes, real memory.
//!
//! Statements of the source are in the names (`docs/statements.md`).

mod cluster;
mod files;
mod placement;
mod processes;
mod protocols;
mod real;
mod simulated;
