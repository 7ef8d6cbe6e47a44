//! One module per subcommand, and what they share: input, output, the error. Commands turn arguments
//! into calls of the libraries and results into text, and decide nothing else.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod input;
pub(crate) mod layout;
pub(crate) mod output;

/// What a command may fail with; the message is all the user sees.
pub(crate) type Error = Box<dyn std::error::Error>;
