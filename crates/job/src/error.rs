//! Why the servers of a job cannot be used, each with what to do about it.
//!
//! Everything that goes wrong once a connection stands is the client's [`client::Error`].

use std::io;
use std::path::PathBuf;

use client::Status;

/// A refusal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable or an argument is wrong.
    #[error("{name}: {text}")]
    Argument {
        /// Which.
        name: String,
        /// What would be right.
        text: String,
    },
    /// A rank without a launcher.
    #[error(
        "job: the environment is that of an MPI rank, but no launcher is among the \
         processes that started this one; run it under `pario run`, or unset the \
         variables of MPI"
    )]
    NoLauncher,
    /// The job has processes on several hosts, which do not know of each other.
    #[error(
        "job: this job has processes on several hosts, which have to find each other; set \
         PARIO_JOB_DIR to a directory that all of them see, or start it with `pario run \
         --network`"
    )]
    SeveralHosts,
    /// The job's servers are on another host only.
    #[error(
        "job: the servers of this job can be reached on the host of its `pario run` only; \
         start it with `pario run --network`, or set PARIO_JOB_DIR to a directory that all \
         hosts see"
    )]
    OtherHost,
    /// The holder has ended or died.
    #[error(
        "job: the process that held the servers of {job} has ended, and what they held is \
         lost; start the job again"
    )]
    Gone {
        /// The job.
        job: String,
    },
    /// The holder cannot be started, or ended before it served.
    #[error("job: the servers of {job} cannot be started: {why}")]
    Start {
        /// The job.
        job: String,
        /// Why.
        why: String,
    },
    /// Nobody said in time where the servers are.
    #[error(
        "job: nobody said within {waited} s where the servers of {job} are; try again, or \
         give them more time with PARIO_TIMEOUT"
    )]
    NoAnswer {
        /// The job.
        job: String,
        /// Seconds.
        waited: u64,
    },
    /// No servers of this job are there, and none were to be started.
    #[error(
        "job: {job} has no servers yet; the first program that stores something starts \
         them, and `pario run` does before its command"
    )]
    NotRunning {
        /// The job.
        job: String,
    },
    /// Something could not be moved in or out.
    #[error("{0}")]
    Stage(String),
    /// A file or directory of this host.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// The connection does not come about, or an operation fails.
    #[error(transparent)]
    Client(#[from] client::Error),
}

impl Error {
    /// The code of the one table.
    pub fn status(&self) -> Status {
        match self {
            Error::Argument { .. } => Status::InvalidArgument,
            Error::Gone { .. } => Status::Lost,
            Error::NoAnswer { .. } => Status::TimedOut,
            Error::Io(_, e) => e.into(),
            Error::Client(e) => e.status(),
            Error::NoLauncher | Error::SeveralHosts | Error::OtherHost => Status::Unreachable,
            Error::Start { .. } | Error::NotRunning { .. } => Status::Unreachable,
            Error::Stage(_) => Status::Io,
        }
    }
}
