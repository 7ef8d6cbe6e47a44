//! `pario bench`: starts `pario-bench`, which measures. It lies beside this program, or on the path.
//!
//! It takes the place of this process, so arguments, terminal, signals and exit code are its own.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use console::site;

use super::Error;

/// Arguments of `pario bench`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// The benchmark and its arguments; `pario bench --help` lists the benchmarks
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "BENCHMARK"
    )]
    arguments: Vec<OsString>,
}

/// Becomes the program that measures.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let program = site::program("pario-bench");
    let error = Command::new(&program).args(&arguments.arguments).exec();
    Err(match error.kind() {
        ErrorKind::NotFound => {
            "benchmarks are in a program of their own, `pario-bench`, which is neither beside \
            this one nor on the path; build it with `cargo build --release -p bench`"
                .into()
        }
        _ => format!("cannot start {}: {error}", program.display()).into(),
    })
}
