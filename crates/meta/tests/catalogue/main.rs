//! Tests of the catalogue from outside: by example, against a model, over crashes, over formats.
//!
//! One binary, so that the simulated disk is built once.
// Lists of ranges with one range are lists of ranges.
#![allow(clippy::single_range_in_vec_init)]

mod answered;
mod backup;
mod calibrations;
mod crash;
mod dump;
mod fixture;
mod format;
mod hints;
mod kill;
mod layouts;
mod members;
mod model;
mod moving;
mod names;
mod profiles;
mod rows;
mod simulated;
mod trees;
mod values;
