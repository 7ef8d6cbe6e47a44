//! The algebra of nested FALLS from outside: laws, statements, golden cases, what it allocates.
//! One program: each further one would be linked, and optimised, for itself.

mod allocation;
mod exhaustive;
mod extremes;
mod harness;
mod harness_runs;
mod invariants;
mod laws;
mod laws_of_meetings;
mod statements;
mod trees;
mod vectors;
