//! What the tests of several crates share: repeatable property tests, the golden cases, and what to
//! do where a machine lacks something.
//!
//! Nothing that ships depends on this crate. It panics where a test should fail.
#![forbid(unsafe_code)]

pub mod golden;
pub mod hostile;
pub mod hosts;
pub mod laws;
pub mod skips;
pub mod temp_dir;

pub use skips::skipped;
pub use temp_dir::TempDir;
