//! Functions that belong to no file, or decide by themselves whose it is.
//!
//! Left to others: functions on a handle of ours (`verbs`).

mod close;
mod completion;
mod create_errhandler;
mod delete;
mod error_string;
mod open;
mod pack;
mod register_datarep;

pub(crate) use close::*;
pub(crate) use completion::*;
pub(crate) use create_errhandler::*;
pub(crate) use delete::*;
pub(crate) use error_string::*;
pub(crate) use open::*;
pub(crate) use pack::*;
pub(crate) use register_datarep::*;
