//! One module per subcommand, and what they share: input, and from `console` output and the error. Commands turn arguments
//! into calls of the libraries and results into text, and decide nothing else.

pub(crate) mod advise;
pub(crate) mod attributes;
pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod cat;
pub(crate) mod cert;
pub(crate) mod completions;
pub(crate) mod connection;
pub(crate) mod create;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod drain;
pub(crate) mod du;
pub(crate) mod explain;
pub(crate) mod explain_access;
pub(crate) mod get;
pub(crate) mod hint;
pub(crate) mod hold;
pub(crate) mod hold_job;
pub(crate) mod input;
pub(crate) mod keys;
pub(crate) mod laid_out;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod ls;
pub(crate) mod manual;
pub(crate) mod mkdir;
pub(crate) mod moving;
pub(crate) mod mv;
pub(crate) mod prepare;
pub(crate) mod profile;
pub(crate) mod put;
pub(crate) mod rebalance;
pub(crate) mod relayout;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stat;
pub(crate) mod status;
pub(crate) mod stored_layout;
pub(crate) mod stream;
pub(crate) mod transfer;
pub(crate) mod up;

pub(crate) use console::failure::{Error, ExitWith, ReportedFailure};
pub(crate) use console::{names, output, preload};
