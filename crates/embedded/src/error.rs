//! Why a directory cannot be used, each with what to do about it.
//!
//! Everything that goes wrong once a connection stands is the client's [`client::Error`].

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A refusal.
#[derive(Debug)]
pub enum Error {
    /// A process on another host serves the directory, or has not taken its leave.
    OtherHost {
        /// The directory.
        dir: PathBuf,
        /// The host, as it calls itself.
        host: String,
    },
    /// Another process serves the directory.
    Held {
        /// The directory.
        dir: PathBuf,
        /// Its number, if it has left a note.
        pid: Option<u64>,
    },
    /// The directory is held, but its holder does not answer.
    NoAnswer {
        /// The directory.
        dir: PathBuf,
        /// How long it was tried.
        waited: Duration,
        /// The last attempt's failure.
        why: String,
    },
    /// The servers do not start.
    Start {
        /// The directory.
        dir: PathBuf,
        /// Why.
        why: String,
    },
    /// The program that is to hold the directory cannot be run.
    Spawn(String),
    /// The servers of the job cannot be used.
    Job(job::Error),
    /// Files of the directory cannot be read or written.
    Io(PathBuf, io::Error),
    /// The connection does not come about.
    Client(client::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OtherHost { dir, host } => write!(
                f,
                "{} is used on host {host}; one host at a time serves a directory. Start a service \
                 there (`pario up --dir {0} --listen tcp:HOST:PORT --secret FILE`) and name it in \
                 PARIO_URL; if nothing on {host} uses it any more, remove {0}/holder",
                dir.display()
            ),
            Error::Held { dir, pid } => {
                match pid {
                    Some(pid) => write!(f, "process {pid} uses {}", dir.display())?,
                    None => write!(f, "another process uses {}", dir.display())?,
                }
                f.write_str(" without a service; wait until it ends, or use another directory")
            }
            Error::NoAnswer { dir, waited, why } => write!(
                f,
                "the process that serves {} did not answer within {} s ({why}); see {0}/holder",
                dir.display(),
                waited.as_secs()
            ),
            Error::Start { dir, why } => write!(f, "{} cannot be served: {why}", dir.display()),
            Error::Spawn(why) => write!(
                f,
                "under MPI a process of its own holds the directory, and it cannot be started: \
                 {why}; put `pario` on the PATH or name it in PARIO_PROGRAM"
            ),
            Error::Job(e) => e.fmt(f),
            Error::Io(path, e) => write!(f, "{}: {e}", path.display()),
            Error::Client(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<client::Error> for Error {
    fn from(error: client::Error) -> Self {
        Error::Client(error)
    }
}

impl From<job::Error> for Error {
    fn from(error: job::Error) -> Self {
        match error {
            job::Error::Client(error) => Error::Client(error),
            other => Error::Job(other),
        }
    }
}
