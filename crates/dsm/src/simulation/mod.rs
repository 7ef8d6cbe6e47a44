//! Random programs on simulated processes: one seed decides the program, the order of its threads, and what becomes of every message.
//!
//! Each load of a simulated program is compared with one flat memory to which all stores go at once; the programs have no data races, so
//! both must agree at every load (DSM-1). Messages are reordered, delayed, repeated, encoded and decoded; a second thread of a process stores
//! while the first one's interval ends.

mod program;
mod world;

pub use program::{Operation, Program, Shape};
pub use world::{Outcome, World};
