//! `pario mv`: gives a file or directory of the service another name, or puts it into a directory.
//! No byte moves.

use clap::Args;
use client::Kind;

use super::Error;
use super::connection::{self, refused};
use super::names::{join, last, shown};

/// Arguments of `pario mv`.
#[derive(Args)]
#[command(after_help = "\
A file that has the name is replaced at once: nobody sees the name missing. Onto a directory means
into it; a slash at the end says that a directory is meant.

Examples:
  pario mv /results/new /results/matrix
  pario mv /results/matrix /archive/")]
pub(crate) struct Arguments {
    /// What gets another name
    from: String,

    /// The name it gets, or the directory it goes into
    to: String,
}

/// Renames.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    let Some(name) = last(&arguments.from) else {
        return Err(format!(
            "'{}' has no name that could be changed; name a file or directory below the root",
            shown(&arguments.from)
        )
        .into());
    };
    let into = matches!(client.attributes(&arguments.to), Ok(a) if a.kind == Kind::Directory);
    let to = match into {
        true => join(&arguments.to, name),
        false => arguments.to.clone(),
    };
    client.rename(&arguments.from, &to).map_err(refused)
}
