//! The layout language: one notation for layouts, views and arrays.
//!
//! Owns the parser, the printer and the [`ArrayType`](crate::ArrayType) notation.

mod array_type;
mod scanner;

pub use scanner::{LayoutParseError, MAX_TEXT};
