//! Why a call failed.
//!
//! What another process could not do is told with its number, in its words.

/// What goes wrong with parallel files.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An argument is wrong.
    #[error("{name}: {text}")]
    Argument {
        /// Which.
        name: &'static str,
        /// What would be right.
        text: String,
    },
    /// No such file is open.
    #[error("parallel file {0} is not open; PIO_open gives the number of one that is")]
    NotOpen(u32),
    /// The memory or the exchange below it.
    #[error("{0}")]
    Memory(#[from] dsm::Error),
    /// The service refuses something to the calling process.
    #[error("{0}")]
    Client(#[from] client::Error),
    /// A process could not do its part.
    #[error("process {process}: {text}")]
    Process {
        /// The first that could not.
        process: usize,
        /// What the operating system would call it.
        errno: i32,
        /// Why.
        text: String,
    },
    /// A process has no parallel files any more.
    #[error("process {process} has ended its parallel files; let all end them after a barrier")]
    Ended {
        /// Which.
        process: usize,
    },
}

/// The outcome of a call.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn argument(name: &'static str, text: impl Into<String>) -> Error {
        Error::Argument {
            name,
            text: text.into(),
        }
    }

    /// What the operating system would call it.
    pub fn errno(&self) -> i32 {
        let status = match self {
            Error::Argument { .. } => client::Status::InvalidArgument,
            Error::NotOpen(_) => client::Status::BadHandle,
            Error::Memory(_) | Error::Ended { .. } => client::Status::Io,
            Error::Client(error) => return error.errno(),
            Error::Process { errno, .. } => return *errno,
        };
        status.errno()
    }
}
