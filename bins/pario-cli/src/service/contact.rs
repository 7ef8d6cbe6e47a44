//! Talking to the service a command is about, with limits that suit commands that show what is there:
//! a server that does not answer soon is shown as silent, not waited for.

use std::time::{Duration, Instant};

use client::{Client, ConnectOptions};
use wire::link::Link;
use wire::url::{Endpoint, ServiceUrl};

use super::state::State;
use super::target::Target;
use crate::commands::{Error, connection};

/// How long a server that cannot be reached is tried.
const REACH: Duration = Duration::from_secs(3);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(5);

/// Connects to a service, or serves a directory for as long as the client lives.
pub(crate) fn connect(target: &Target) -> Result<Client, Error> {
    let url = match target {
        Target::Service(endpoint, _) => ServiceUrl::At(endpoint.clone()),
        Target::Directory(dir) if dir.join("meta").is_dir() => ServiceUrl::Directory(dir.clone()),
        Target::Directory(dir) => {
            return Err(format!(
                "there is no service, and nothing is stored in {}; start one with `pario up`, or \
                 name one in PARIO_URL",
                dir.display()
            )
            .into());
        }
    };
    let mut options = connection::with_url_files(ConnectOptions::from_env()?)?;
    if connection::is_job() {
        options = job::find_running(options)?.1;
    }
    if let (None, Target::Service(_, Some(state))) = (&options.keys.user, target)
        && let Some(path) = &state.secret
    {
        options = options.with_secret_file(path)?;
    }
    options.timeout = options.timeout.min(REACH);
    options.busy_timeout = REACH;
    options.answer_timeout = ANSWER;
    let connected = embedded::connect(&url, options, &embedded::Options::from_env());
    connected.map_err(|error| match target {
        Target::Service(_, Some(state)) => with_troubles(error.to_string(), state).into(),
        _ => error.into(),
    })
}

/// Why nobody answers, with what the supervisor knows about it.
fn with_troubles(error: String, state: &State) -> String {
    let said = state.troubles.iter();
    said.fold(error, |text, trouble| {
        format!("{text}; {}; {}", trouble.what(), trouble.next())
    })
}

/// Waits until nobody listens at an address any more; false if the time is over before.
pub(crate) fn wait_for_silence(endpoint: &Endpoint, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        let Ok(mut link) = Link::connect(endpoint, left.min(REACH)) else {
            return true;
        };
        // A server that ends closes its connections; until then it has nothing to say to this one.
        if link.set_timeout(Some(left.min(REACH))).is_ok() {
            let _ = link.receive();
        }
    }
}
