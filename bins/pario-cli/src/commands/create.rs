//! `pario create`: a file of the service without bytes, with the array it will hold and the layout it
//! is cut by.

use clap::Args;
use client::OpenOptions;
use serde_json::json;

use super::connection::{self, refused};
use super::laid_out::LaidOut;
use super::names::absolute;
use super::{Error, mkdir, output};
use console::notation;

/// Arguments of `pario create`.
#[derive(Args)]
#[command(after_help = "\
Without --layout an array is cut into blocks and plain bytes into stripes, over all servers. A file
that is there already is left as it is, unless --exclusive is given; one with another array or
layout than asked for is refused.

Examples:
  pario create /results/matrix --array 'f64[4096,4096]' --layout '(block, block) onto 2x2'
  pario create /results/log --layout 'striped(64KiB) over 4'
  pario create /results/lock --exclusive")]
pub(crate) struct Arguments {
    /// The file
    path: String,

    #[command(flatten)]
    laid_out: LaidOut,

    /// Grow the file to this size, such as 128MiB; it reads as zeros
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    size: Option<String>,

    /// Refuse if the file is there already
    #[arg(long)]
    exclusive: bool,

    /// Permission bits, as in 640 [default: 666 less the process's mask]
    #[arg(short, long, value_name = "BITS", value_parser = mkdir::permissions)]
    mode: Option<u32>,

    /// Print JSON about the file
    #[arg(long)]
    json: bool,
}

/// Creates a file.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    arguments.laid_out.check()?;
    let size = arguments.size.as_deref();
    let size = size
        .map(|text| notation::size("--size", text))
        .transpose()?;
    let client = connection::connect()?;
    let path = &arguments.path;
    let mut options = arguments.laid_out.apply(OpenOptions::new().create());
    if arguments.exclusive {
        options = options.exclusive();
    }
    if let Some(mode) = arguments.mode {
        options = options.mode(mode);
    }
    let is_new = client.create(path, &options).map_err(refused)?;
    if !is_new {
        arguments.laid_out.compare(&client, path)?;
    }
    if let Some(size) = size {
        let file = client
            .open(path, &OpenOptions::new().write())
            .map_err(refused)?;
        if file.size().map_err(refused)? < size {
            file.resize(size).map_err(refused)?;
        }
        file.close().map_err(refused)?;
    }
    if !arguments.json {
        return Ok(());
    }
    let found = client.stat(path).map_err(refused)?;
    let facts = json!({
        "path": absolute(path),
        "created": is_new,
        "array": found.array,
        "layout": found.layout,
        "size": found.size,
    });
    output::print(&format!("{facts:#}\n"))
}
