//! Finding the servers of this process's job, and starting them if this process is the first.
//!
//! One process at a time starts a holder, the others wait for its note. A holder that has died is not
//! replaced while the job goes on: what it held is lost, and an empty place that looks like the old one
//! would be worse than an error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{Client, ConnectOptions, Connector};
use wire::url::Endpoint;

use crate::error::Error;
use crate::identity::{JOB_DIR, JOB_HOST, JOB_MANAGER, Job};
use crate::options::Options;
use crate::place::{Note, Place, Stage};
use crate::rendezvous::wait;
use crate::spawn;

/// Connects to the servers of this process's job.
pub fn connect(connection: ConnectOptions) -> Result<Client, Error> {
    let job = Job::find()?;
    let options = Options::from_env()?;
    let connector = InJob {
        place: Place::of(&job)?,
        patience: options.patience,
        job,
    };
    // The first time by hand, so that what is wrong is said in full.
    let note = connector.find()?;
    let connection = with_secret(connection, &connector.place, &note)?;
    Ok(Client::connect_with(Arc::new(connector), connection)?)
}

/// Where the servers of this process's job are, with the options to connect; they are not started.
pub fn find_running(connection: ConnectOptions) -> Result<(Endpoint, ConnectOptions), Error> {
    let job = Job::find()?;
    let found = Place::look(&job).filter(|(_, note)| note.holder.is_running());
    let found = found.and_then(|(place, note)| Some((note.endpoint.clone()?, place, note)));
    match found {
        Some((endpoint, place, note)) => Ok((endpoint, with_secret(connection, &place, &note)?)),
        None => Err(Error::NotRunning { job: job.key }),
    }
}

fn with_secret(
    mut connection: ConnectOptions,
    place: &Place,
    note: &Note,
) -> Result<ConnectOptions, Error> {
    // Certificates are those of another service.
    connection.keys.tls = None;
    match note.has_secret {
        true => Ok(connection.with_secret_file(&place.secret())?),
        false => Ok(connection),
    }
}

/// Finds the holder of a job, or starts it.
#[derive(Debug)]
struct InJob {
    place: Place,
    job: Job,
    patience: Duration,
}

impl InJob {
    fn find(&self) -> Result<Note, Error> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        let mut was_staging = false;
        loop {
            match self.place.read_note() {
                Some(note) if !note.holder.is_running() => {
                    // Ended in this moment and about to be removed, or killed.
                    if self.place.read_note().as_ref() == Some(&note) {
                        return Err(Error::Gone {
                            job: self.job.key.clone(),
                        });
                    }
                }
                Some(note) if note.stage == Stage::Ready && note.endpoint.is_some() => {
                    return Ok(note);
                }
                Some(note) => was_staging |= note.stage == Stage::Staging,
                None => self.begin()?,
            }
            // A holder that moves files in takes its time, and is seen to be alive.
            if start.elapsed() > self.patience && !was_staging {
                return Err(Error::NoAnswer {
                    job: self.job.key.clone(),
                    waited: start.elapsed().as_secs(),
                });
            }
            wait(pause);
            pause = (pause * 2).min(Duration::from_millis(25));
        }
    }

    /// Starts the holder, unless another process does.
    fn begin(&self) -> Result<(), Error> {
        if self.job.is_run {
            // `pario run` has started it on its host before it started anything else.
            let host = std::env::var(JOB_HOST).unwrap_or_default();
            if host == serving::local_host() {
                return Err(Error::Gone {
                    job: self.job.key.clone(),
                });
            }
            let is_named = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
            if !is_named(JOB_MANAGER) && !is_named(JOB_DIR) {
                return Err(Error::OtherHost);
            }
        }
        let Some(_beginning) = self.place.begin()? else {
            return Ok(());
        };
        if self.place.read_note().is_some() {
            return Ok(());
        }
        // The handle is given up: the holder outlives this process, or ends just after it.
        spawn::start(&self.job, &mut |_| {}).map(drop)
    }
}

impl Connector for InJob {
    fn endpoint(&self) -> Result<Endpoint, client::Error> {
        // Asked again because a connection broke: the holder is there, or all is lost.
        let note = self.place.read_note();
        match note.filter(|note| note.holder.is_running()) {
            Some(Note {
                endpoint: Some(endpoint),
                ..
            }) => Ok(endpoint),
            _ => Err(client::Error::Unreachable {
                server: None,
                address: String::new(),
                cause: Error::Gone {
                    job: self.job.key.clone(),
                }
                .to_string(),
            }),
        }
    }
}
