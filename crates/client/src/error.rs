//! Why an operation failed: one error type for the crate.
//!
//! Every error has a [`Status`] of the one table, and with it an errno and whether trying again may
//! help. Its text is one line that names what is wrong and what to do.

use wire::{DecodeError, ServerId, Status};

/// What operations of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// A server that failed its part of an access.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{server} at {address} failed ({status}: {text});")]
pub struct Failure {
    /// Which server.
    pub server: ServerId,
    /// Where it listens, as far as known.
    pub address: String,
    /// What happened.
    pub status: Status,
    /// In its words.
    pub text: String,
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is wrong; nothing was sent.
    #[error("{name}: {text}")]
    Argument {
        /// Which.
        name: &'static str,
        /// What would be right.
        text: String,
    },
    /// A server said no.
    #[error("{}{text}", .server.map_or(String::new(), |server| format!("{server}: ")))]
    Refused {
        /// Why, in the one table.
        status: Status,
        /// Why, in its words.
        text: String,
        /// Which I/O server; nothing for the metadata manager.
        server: Option<ServerId>,
    },
    /// A server could not be reached within the time limit.
    #[error("{}{}{address} cannot be reached ({cause}); look with `pario status`",
            .server.map_or("the metadata manager".into(), |server| server.to_string()),
            if .address.is_empty() { "" } else { " at " })]
    Unreachable {
        /// Which I/O server; nothing for the metadata manager.
        server: Option<ServerId>,
        /// Where it was looked for.
        address: String,
        /// What the last attempt ended with.
        cause: String,
    },
    /// The bytes were in the memory of a server that died.
    #[error("bytes of this file were in the memory of {server}, which died; write the file again")]
    Lost {
        /// The server.
        server: ServerId,
    },
    /// Bytes that this handle has written and not synced were lost: a server, or its host, was started again.
    #[error("bytes written to {} in the last {since_seconds} s were lost before they were synced: the server or \
             its host was started again; write them again",
            .servers.iter().map(ServerId::to_string).collect::<Vec<_>>().join(", "))]
    LostWrites {
        /// The servers.
        servers: Vec<ServerId>,
        /// So many seconds ago the first of the bytes was written, rounded up.
        since_seconds: u64,
    },
    /// A write was done in part: some servers failed.
    #[error("written in part, the first {confirmed} bytes are safe;{} write the rest again",
            .failures.iter().map(|failure| format!(" {failure}")).collect::<String>())]
    Partial {
        /// Bytes from the beginning of the write, in view space, that are all written.
        confirmed: u64,
        /// Who failed.
        failures: Vec<Failure>,
    },
    /// The connection broke while a change of names was under way; it may have been done.
    #[error(
        "{what} may or may not have been done: the connection broke, and repeating it found: {text}"
    )]
    Uncertain {
        /// Which change.
        what: &'static str,
        /// What the repetition found.
        text: String,
    },
    /// The handle was closed.
    #[error("the file is closed; open it again")]
    Closed,
    /// The handle belongs to the process that this one was forked from.
    #[error("the handle belongs to the parent process; connect again in the child after a fork")]
    Forked,
}

impl Error {
    pub(crate) fn argument(name: &'static str, text: impl Into<String>) -> Error {
        Error::Argument {
            name,
            text: text.into(),
        }
    }

    /// The code of the one table.
    pub fn status(&self) -> Status {
        match self {
            Error::Argument { .. } => Status::InvalidArgument,
            Error::Refused { status, .. } => *status,
            Error::Unreachable { .. } | Error::Uncertain { .. } => Status::Unreachable,
            Error::Lost { .. } | Error::LostWrites { .. } => Status::Lost,
            Error::Partial { failures, .. } => failures.first().map_or(Status::Io, |f| f.status),
            Error::Closed | Error::Forked => Status::BadHandle,
        }
    }

    /// What a POSIX program sees.
    pub fn errno(&self) -> i32 {
        self.status().errno()
    }

    /// Whether the same operation may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Uncertain { .. } => false,
            Error::Partial { failures, .. } => failures.iter().all(|f| may_help(f.status)),
            other => may_help(other.status()),
        }
    }
}

fn may_help(status: Status) -> bool {
    status.retry() != wire::status::Retry::Never
}

impl From<layout::LayoutError> for Error {
    fn from(error: layout::LayoutError) -> Self {
        Error::argument("layout", error.to_string())
    }
}

impl From<layout::LayoutParseError> for Error {
    fn from(error: layout::LayoutParseError) -> Self {
        Error::argument("layout", error.to_string())
    }
}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        let kind = std::io::Error::from_raw_os_error(error.errno()).kind();
        std::io::Error::new(kind, error)
    }
}

/// A question to one server that went wrong, before it is known who has to hear of it.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection failed or could not be made.
    Broken(String),
    /// The answer came not in time; the connection is given up.
    Late,
    /// The server said no; detail as the status defines it.
    Refused(Status, wire::message::Refusal),
    /// What came is no answer.
    Nonsense(String),
    /// Nothing can help.
    Final(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Final(error)
    }
}

impl From<DecodeError> for Trouble {
    fn from(error: DecodeError) -> Self {
        Trouble::Nonsense(format!("the answer cannot be read: {error}"))
    }
}

impl From<wire::ask::AskError> for Trouble {
    fn from(error: wire::ask::AskError) -> Self {
        use wire::ask::AskError;
        match error {
            AskError::Link(e) if e.status() == Status::TimedOut => Trouble::Late,
            AskError::Link(e) => Trouble::Broken(e.to_string()),
            AskError::Refused(status, refusal) => Trouble::Refused(status, refusal),
            AskError::Answer(e) => e.into(),
        }
    }
}

impl Trouble {
    /// The error for the caller that asked this server.
    pub(crate) fn into_error(self, server: Option<ServerId>, address: &str) -> Error {
        match self {
            Trouble::Final(error) => error,
            Trouble::Refused(status, refusal) => Error::Refused {
                status,
                text: refusal.text,
                server,
            },
            Trouble::Broken(cause) => Error::Unreachable {
                server,
                address: address.into(),
                cause,
            },
            Trouble::Late => Error::Unreachable {
                server,
                address: address.into(),
                cause: "no answer in time".into(),
            },
            Trouble::Nonsense(text) => Error::Refused {
                status: Status::Malformed,
                text,
                server,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_with_a_remedy() {
        let failure = Failure {
            server: ServerId(3),
            address: "unix:/x".into(),
            status: Status::NoSpace,
            text: "the disk is full".into(),
        };
        let partial = Error::Partial {
            confirmed: 7,
            failures: vec![failure],
        };
        assert_eq!(
            partial.to_string(),
            "written in part, the first 7 bytes are safe; server 3 at unix:/x failed (no space: \
             the disk is full); write the rest again"
        );
        assert_eq!((partial.errno(), partial.is_retryable()), (28, true));
        for error in [Error::Closed, Error::Forked, partial] {
            assert!(!error.to_string().contains('\n'));
            assert_ne!(error.errno(), 0);
        }
        assert!(!Error::Closed.is_retryable());
    }
}
