//! What the system tests share: services of real processes, and plain files to compare with.
//!
//! Nothing depends on it.
#![forbid(unsafe_code)]
