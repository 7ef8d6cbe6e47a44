//! Fitting the terms of [`crate::cost`] to measured times, and how well they fit.
//!
//! Left to others: measuring (`pario calibrate`).

pub mod accuracy;
pub mod fit;
