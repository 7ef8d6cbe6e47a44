//! What goes through the Python package: HDF5, and everything that is compressed.
//!
//! The package and its libraries are looked for when they are needed. One that is not there is named, with what installs it.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::Command;

use crate::commands::Error;
use crate::commands::connection;

/// Says which package is missing instead of a trace.
const START: &str = "\
import sys
try:
    from pario.convert import main
except ModuleNotFoundError as error:
    sys.exit(f'pario: this format goes through Python, which has no package {error.name}: pip install {error.name}')
sys.exit(main(sys.argv[1:]))
";

/// Lets `pario.convert` do it, in the interpreter that `PARIO_PYTHON` names, or `python3`.
pub(crate) fn convert<A: AsRef<OsStr>>(arguments: &[A]) -> Result<(), Error> {
    let interpreter = std::env::var_os("PARIO_PYTHON").filter(|name| !name.is_empty());
    let interpreter = interpreter.unwrap_or_else(|| "python3".into());
    let mut command = Command::new(&interpreter);
    command.args(["-c", START]).args(arguments);
    if let Some((_, url)) = connection::named() {
        command.env("PARIO_URL", url);
    }
    let status = command.status().map_err(|error| -> Error {
        let name = interpreter.to_string_lossy();
        match error.kind() {
            ErrorKind::NotFound => format!(
                "this format goes through Python, and {name} is not there; install it, or name one \
                 that has the package pario with PARIO_PYTHON"
            )
            .into(),
            _ => format!("cannot start {name}: {error}").into(),
        }
    })?;
    match status.success() {
        true => Ok(()),
        // It has said why.
        false => Err(crate::commands::ReportedFailure.into()),
    }
}
