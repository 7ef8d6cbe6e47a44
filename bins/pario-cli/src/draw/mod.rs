//! Owns pictures of layouts: the grid of owners, as text and as SVG.
//!
//! A picture never lists what is large: entries with the same owner are merged into bands, the
//! bands are found by search, and what does not fit is left out with an ellipsis.

pub(crate) mod grid;
pub(crate) mod palette;
pub(crate) mod svg;
pub(crate) mod text;

pub(crate) use grid::{Band, Grid, Room};
