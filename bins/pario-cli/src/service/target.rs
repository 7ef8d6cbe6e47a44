//! Which service a command is about: the one `--dir`, `--url` or `PARIO_URL` names, or the directory
//! `.pario` if none does.
//!
//! Nothing is created here, and nothing is connected to.

use std::path::{Path, PathBuf};

use client::ConnectOptions;
use wire::url::{Endpoint, ServiceUrl};

use super::state::State;
use crate::commands::{Error, connection};

/// The directory when nothing is named.
pub(crate) const DEFAULT_DIRECTORY: &str = ".pario";

/// What a command is about.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A service, with what is written down about it if that is on this host.
    Service(Endpoint, Option<Box<State>>),
    /// A directory in which no service runs.
    Directory(PathBuf),
}

impl Target {
    /// Finds out.
    pub(crate) fn find(dir: Option<&Path>) -> Result<Target, Error> {
        if let Some(dir) = dir {
            return Ok(Target::in_directory(dir));
        }
        let Some((role, text)) = connection::named() else {
            return Ok(Target::in_directory(Path::new(DEFAULT_DIRECTORY)));
        };
        match text.parse::<ServiceUrl>() {
            Ok(ServiceUrl::At(endpoint) | ServiceUrl::Protected(endpoint, _)) => {
                let state = state_of(&endpoint).map(Box::new);
                Ok(Target::Service(endpoint, state))
            }
            Ok(ServiceUrl::Directory(dir)) => Ok(Target::in_directory(&dir)),
            // A job that has no servers yet is none that could be shown or ended.
            Ok(ServiceUrl::Job) => {
                let (endpoint, _) = job::find_running(ConnectOptions::from_env()?)
                    .map_err(|e| format!("{role}: {e}"))?;
                Ok(Target::Service(endpoint, None))
            }
            Err(error) => Err(format!("{role}: {error}").into()),
        }
    }

    fn in_directory(dir: &Path) -> Target {
        match State::running(dir) {
            Some(state) => Target::Service(state.url.clone(), Some(Box::new(state))),
            None => Target::Directory(dir.to_owned()),
        }
    }
}

/// What is written down about the service behind a socket, which lies in its directory.
fn state_of(endpoint: &Endpoint) -> Option<State> {
    let Endpoint::Unix(path) = endpoint else {
        return None;
    };
    State::running(path.parent()?).filter(|state| {
        let Endpoint::Unix(theirs) = &state.url else {
            return false;
        };
        path.canonicalize()
            .is_ok_and(|here| Ok(here) == theirs.canonicalize().map_err(drop))
    })
}
