//! One module per subcommand, and what they share: input, output, the error. Commands turn arguments
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
pub(crate) mod mkdir;
pub(crate) mod moving;
pub(crate) mod mv;
pub(crate) mod names;
pub(crate) mod output;
pub(crate) mod preload;
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
pub(crate) mod transfer;
pub(crate) mod up;

/// What a command may fail with; the message is all the user sees.
pub(crate) type Error = Box<dyn std::error::Error>;

/// The command has failed and has said so already, on standard output where its user looks for it.
#[derive(Debug)]
pub(crate) struct Reported;

impl std::fmt::Display for Reported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("reported")
    }
}

impl std::error::Error for Reported {}

/// The program ends with this code, which is that of a command it ran.
#[derive(Debug)]
pub(crate) struct ExitWith(pub(crate) u8);

impl std::fmt::Display for ExitWith {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the command ended with code {}", self.0)
    }
}

impl std::error::Error for ExitWith {}
