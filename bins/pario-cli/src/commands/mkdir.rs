//! `pario mkdir`: makes directories of the service. With `-p` those above them as well, and one that is
//! there already is fine.

use clap::Args;

use super::Error;
use super::connection::{self, refused};

/// Arguments of `pario mkdir`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario mkdir /results
  pario mkdir -p /results/2026/november
  pario mkdir -m 700 /private")]
pub(crate) struct Arguments {
    /// Directories to make
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,

    /// Make those above too; what is there already is fine
    #[arg(short, long)]
    parents: bool,

    /// Permission bits, as in 750 [default: 777 less the process's mask]
    #[arg(short, long, value_name = "BITS", value_parser = permissions)]
    mode: Option<u32>,
}

/// Reads permission bits on the command line.
pub(crate) fn permissions(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(bits) if bits <= 0o7777 => Ok(bits),
        _ => Err("no permission bits; give octal digits such as 750".to_owned()),
    }
}

/// Makes directories.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect()?;
    for path in &arguments.paths {
        match arguments.parents {
            true => client.mkdir_all(path, arguments.mode),
            false => client.mkdir(path, arguments.mode),
        }
        .map_err(refused)?;
        if let Some(mode) = arguments.mode {
            // Said in full, so the process's mask takes nothing away.
            client.chmod(path, mode).map_err(refused)?;
        }
    }
    Ok(())
}
