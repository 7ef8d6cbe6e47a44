//! What the functions of the standard do with a file of ours, one function each, grouped by kind.
//!
//! Arguments come as the program gave them; counts are 64 bits wide whichever form was called.

mod access;
mod attributes;
mod consistency;
mod nonblocking;
mod position;
mod shared;
mod size;
mod split;
mod view;

pub(crate) use access::*;
pub(crate) use attributes::*;
pub(crate) use consistency::*;
pub(crate) use nonblocking::*;
pub(crate) use position::*;
pub(crate) use shared::*;
pub(crate) use size::*;
pub(crate) use split::*;
pub(crate) use view::*;
