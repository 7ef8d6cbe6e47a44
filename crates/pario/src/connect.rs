//! Connecting: to a service, to a directory without one, or to the servers of the job, by one name.
//!
//! What a URL means is read by `wire`, who is started for it is decided by `embedded` and `job`, whose errors become
//! the one error type of this crate.

use client::{ConnectOptions, Error, Result, ServiceUrl};
use embedded::Options as DirectoryOptions;

use crate::Pario;

/// Connects to what a URL names.
///
/// | URL | what is connected to |
/// |---|---|
/// | `dir:PATH` | a directory; the processes that use it serve it, no service is needed |
/// | `job:` | servers that live with the job; the program `pario` has to be on the `PATH` |
/// | `unix:PATH` | a service on this host |
/// | `tcp:HOST:PORT` | a service on a network; `?ca=FILE&cert=FILE&key=FILE` for TLS |
///
/// Everything else, such as secrets and time limits, is as the environment says.
///
/// ```
/// let error = pario::connect("matrix.raw").unwrap_err();
/// assert!(error.to_string().starts_with("url: "));
/// ```
pub fn connect(url: &str) -> Result<Pario> {
    connect_with(
        url,
        ConnectOptions::from_env()?,
        &DirectoryOptions::from_env(),
    )
}

/// Connects to what `PARIO_URL` names; to the directory `.pario` if it names nothing.
pub fn connect_default() -> Result<Pario> {
    Ok(Pario::of(embedded::connect_here()?))
}

/// Connects with options of the program instead of those of the environment. Those for directories count where this process
/// comes to serve one.
pub fn connect_with(
    url: &str,
    connection: ConnectOptions,
    directory: &DirectoryOptions,
) -> Result<Pario> {
    let url: ServiceUrl = url.parse().map_err(|e| Error::Argument {
        name: "url",
        text: format!("{e}; give dir:PATH, job:, unix:PATH or tcp:HOST:PORT"),
    })?;
    let client = embedded::connect(&url, connection, directory)?;
    Ok(Pario::of(client))
}
