//! One module per subcommand.

pub(crate) mod bench;

/// What a command may fail with; the message is all the user sees.
pub(crate) type Error = Box<dyn std::error::Error>;
