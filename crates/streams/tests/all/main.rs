//! Streams as programs meet them, over a directory that the test serves itself; members of teams are threads.
//!
//! `model` has one stream in memory for every VP, which is the oracle of the random programs.

mod apart;
mod crash;
mod errors;
mod examples;
mod model;
mod modes;
mod place;
mod random_programs;
mod segments;
mod text;
