//! The published models are what their authors printed.

mod copy;
mod read;
