//! `pario manual`: manual pages of all commands, written to a directory; what `make install` calls.
//! Generated from the command line itself, so they cannot fall behind.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use super::Error;

/// Arguments of `pario manual`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario manual ~/.local/share/man/man1
  pario manual . && man ./pario-up.1")]
pub(crate) struct Arguments {
    /// The directory for the pages, which is there
    directory: PathBuf,
}

/// Writes a page for each command: `pario.1`, `pario-up.1`, `pario-serve-io.1`.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let mut command = crate::Arguments::command();
    command.build();
    write(&command, "pario", &arguments.directory)
}

fn write(command: &Command, name: &str, directory: &Path) -> Result<(), Error> {
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    fs::write(&path, page).map_err(|e| {
        let path = path.display();
        format!("{path}: {e}; give a directory that is there")
    })?;
    let shown = |sub: &&Command| !sub.is_hide_set() && sub.get_name() != "help";
    for sub in command.get_subcommands().filter(shown) {
        write(sub, &format!("{name}-{}", sub.get_name()), directory)?;
    }
    Ok(())
}
