//! The service that a command about stored files talks to: the one that `--url` or `PARIO_URL`
//! names, else the directory `.pario`.
//! Its refusals reach the user in the words of `console`.

use std::sync::OnceLock;

use client::{Client, ConnectOptions, ServiceUrl};

use super::Error;
use super::names::shown;
use crate::service::target::Target;

pub(crate) use console::refused;

/// What `--url` says.
static NAMED: OnceLock<String> = OnceLock::new();

/// Takes over `--url`, which is before all commands.
pub(crate) fn name(url: Option<String>) {
    if let Some(url) = url {
        // Set once, before any command runs.
        let _ = NAMED.set(url);
    }
}

/// What names the service, and its name: nothing if nobody does.
pub(crate) fn named() -> Option<(&'static str, String)> {
    if let Some(url) = NAMED.get() {
        return Some(("--url", url.clone()));
    }
    let variable = std::env::var_os("PARIO_URL").filter(|text| !text.is_empty())?;
    Some(("PARIO_URL", variable.to_string_lossy().into_owned()))
}

/// Connects, to store something: a directory that is not there is made.
pub(crate) fn connect() -> Result<Client, Error> {
    if is_job() {
        return connect_to_job();
    }
    connect_to(&Target::find(None)?)
}

/// Connects, to do something with what is there: a directory has to exist.
pub(crate) fn connect_to_existing() -> Result<Client, Error> {
    if is_job() {
        return connect_to_job();
    }
    let target = Target::find(None)?;
    match &target {
        Target::Directory(dir) if !dir.is_dir() => Err(format!(
            "there is no service, and nothing is stored in {}; name a service with --url or \
             PARIO_URL, start one with `pario up`, or store a first file with `pario put`",
            shown(&dir.display().to_string())
        )
        .into()),
        _ => connect_to(&target),
    }
}

/// Whether the servers of the job are meant.
pub(crate) fn is_job() -> bool {
    named().is_some_and(|(_, text)| text.parse() == Ok(ServiceUrl::Job))
}

/// Connects to the servers of the job, which the first who needs them starts.
fn connect_to_job() -> Result<Client, Error> {
    let options = ConnectOptions::from_env().map_err(refused)?;
    job::connect(options).map_err(|error| match error {
        job::Error::Client(error) => refused(error),
        other => shown(&other.to_string()).into(),
    })
}

/// With the certificates that the URL names.
pub(crate) fn with_url_files(options: ConnectOptions) -> Result<ConnectOptions, client::Error> {
    match named().map(|(_, text)| text.parse()) {
        Some(Ok(ServiceUrl::Protected(_, names))) => options.with_tls(&names),
        _ => Ok(options),
    }
}

fn connect_to(target: &Target) -> Result<Client, Error> {
    let options = ConnectOptions::from_env().and_then(with_url_files);
    let mut options = options.map_err(refused)?;
    let url = match target {
        Target::Directory(dir) => ServiceUrl::Directory(dir.clone()),
        Target::Service(endpoint, state) => {
            // Where the service runs on this host its secret is known.
            let secret = state.as_ref().and_then(|state| state.secret.as_deref());
            if let (None, Some(path)) = (&options.keys.user, secret) {
                options = options.with_secret_file(path).map_err(refused)?;
            }
            ServiceUrl::At(endpoint.clone())
        }
    };
    let served = embedded::Options::from_env();
    embedded::connect(&url, options, &served).map_err(|error| match error {
        embedded::Error::Client(error) => refused(error),
        other => shown(&other.to_string()).into(),
    })
}
