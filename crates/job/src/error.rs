//! Why the servers of a job cannot be used, each with what to do about it.
//!
//! Everything that goes wrong once a connection stands is the client's [`client::Error`].

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A refusal.
#[derive(Debug)]
pub enum Error {
    /// A variable or an argument is wrong.
    Argument {
        /// Which.
        name: String,
        /// What would be right.
        text: String,
    },
    /// A rank without a launcher.
    NoLauncher,
    /// The job has processes on several hosts, which do not know of each other.
    SeveralHosts,
    /// The job's servers are on another host only.
    OtherHost,
    /// The holder has ended or died.
    Gone {
        /// The job.
        job: String,
    },
    /// The holder cannot be started, or ended before it served.
    Start {
        /// The job.
        job: String,
        /// Why.
        why: String,
    },
    /// Nobody said in time where the servers are.
    NoAnswer {
        /// The job.
        job: String,
        /// Seconds.
        waited: u64,
    },
    /// No servers of this job are there, and none were to be started.
    NotRunning {
        /// The job.
        job: String,
    },
    /// Something could not be moved in or out.
    Stage(String),
    /// A file or directory of this host.
    Io(PathBuf, io::Error),
    /// The connection does not come about, or an operation fails.
    Client(client::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Argument { name, text } => write!(f, "{name}: {text}"),
            Error::NoLauncher => f.write_str(
                "job: the environment is that of an MPI rank, but no launcher is among the \
                 processes that started this one; run it under `pario run`, or unset the \
                 variables of MPI",
            ),
            Error::SeveralHosts => f.write_str(
                "job: this job has processes on several hosts, which have to find each other; set \
                 PARIO_JOB_DIR to a directory that all of them see, or start it with `pario run \
                 --network`",
            ),
            Error::OtherHost => f.write_str(
                "job: the servers of this job can be reached on the host of its `pario run` only; \
                 start it with `pario run --network`, or set PARIO_JOB_DIR to a directory that all \
                 hosts see",
            ),
            Error::Gone { job } => write!(
                f,
                "job: the process that held the servers of {job} has ended, and what they held is \
                 lost; start the job again"
            ),
            Error::Start { job, why } => {
                write!(f, "job: the servers of {job} cannot be started: {why}")
            }
            Error::NoAnswer { job, waited } => write!(
                f,
                "job: nobody said within {waited} s where the servers of {job} are; try again, or \
                 give them more time with PARIO_TIMEOUT"
            ),
            Error::NotRunning { job } => write!(
                f,
                "job: {job} has no servers yet; the first program that stores something starts \
                 them, and `pario run` does before its command"
            ),
            Error::Stage(text) => f.write_str(text),
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
