//! What the tests of several crates share: repeatable property tests and the golden cases.
//!
//! Nothing that ships depends on this crate. It panics where a test should fail.
#![forbid(unsafe_code)]

pub mod golden;
pub mod laws;
