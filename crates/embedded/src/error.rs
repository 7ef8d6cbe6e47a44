//! Why a directory cannot be used, each with what to do about it.
//!
//! Everything that goes wrong once a connection stands is the client's [`client::Error`].

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use client::Status;

/// A refusal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A process on another host serves the directory, or has not taken its leave.
    #[error(
        "{dir} is used on host {host}; one host at a time serves a directory. Start a service \
         there (`pario up --dir {dir} --listen tcp:HOST:PORT --secret FILE`) and name it in \
         PARIO_URL; if nothing on {host} uses it any more, remove {dir}/holder"
    )]
    OtherHost {
        /// The directory.
        dir: PathBuf,
        /// The host, as it calls itself.
        host: String,
    },
    /// Another process serves the directory.
    #[error("{} uses {dir} without a service; wait until it ends, or use another directory",
            .pid.map_or("another process".into(), |pid| format!("process {pid}")))]
    Held {
        /// The directory.
        dir: PathBuf,
        /// Its number, if it has left a note.
        pid: Option<u64>,
    },
    /// The directory is held, but its holder does not answer.
    #[error("the process that serves {dir} did not answer within {} s ({why}); see {dir}/holder", .waited.as_secs())]
    NoAnswer {
        /// The directory.
        dir: PathBuf,
        /// How long it was tried.
        waited: Duration,
        /// The last attempt's failure.
        why: String,
    },
    /// The servers do not start.
    #[error("{dir} cannot be served: {why}")]
    Start {
        /// The directory.
        dir: PathBuf,
        /// Why.
        why: String,
    },
    /// The program that is to hold the directory cannot be run.
    #[error(
        "under MPI a process of its own holds the directory, and it cannot be started: \
         {0}; put `pario` on the PATH or name it in PARIO_PROGRAM"
    )]
    Spawn(String),
    /// The servers of the job cannot be used.
    #[error(transparent)]
    Job(job::Error),
    /// Files of the directory cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// The connection does not come about.
    #[error(transparent)]
    Client(#[from] client::Error),
}

impl From<job::Error> for Error {
    fn from(error: job::Error) -> Self {
        match error {
            job::Error::Client(error) => Error::Client(error),
            other => Error::Job(other),
        }
    }
}

impl Error {
    /// The code of the one table.
    pub fn status(&self) -> Status {
        match self {
            Error::OtherHost { .. } | Error::Held { .. } => Status::InUse,
            Error::NoAnswer { .. } => Status::TimedOut,
            Error::Start { .. } | Error::Spawn(_) => Status::Unreachable,
            Error::Job(e) => e.status(),
            Error::Io(_, e) => e.into(),
            Error::Client(e) => e.status(),
        }
    }
}

/// For those who know one error type only.
impl From<Error> for client::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Client(error) => error,
            other => client::Error::Refused {
                status: other.status(),
                text: other.to_string(),
                server: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_directories_and_jobs_become_those_of_clients_with_a_status() {
        let held = Error::Held {
            dir: "/data".into(),
            pid: Some(7),
        };
        let not_there = Error::Io("/data".into(), io::ErrorKind::NotFound.into());
        let gone = Error::Job(job::Error::Gone { job: "j".into() });
        let closed = Error::Client(client::Error::Closed);
        for (error, status) in [
            (held, Status::InUse),
            (not_there, Status::NotFound),
            (gone, Status::Lost),
            (closed, Status::BadHandle),
        ] {
            let (own, text) = (error.status(), error.to_string());
            let error = client::Error::from(error);
            assert_eq!((own, error.status()), (status, status));
            assert_eq!(error.to_string(), text);
        }
    }
}
