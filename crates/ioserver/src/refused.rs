//! Why a request is not done: a status, a sentence, and what the status defines as detail.
//!
//! Handlers return it; the dispatch turns it into an answer and counts it. Nothing here decides.

use store::{Error, Resource};
use wire::ask::AskError;
use wire::message::{self, Bytes, Field, Refusal};
use wire::{DecodeError, Status};

/// A refusal on its way to the client or server that asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What a program acts on.
    pub status: Status,
    /// What a person reads, and the detail.
    pub refusal: Refusal,
}

impl Refused {
    /// Without detail.
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        Refused {
            status,
            refusal: Refusal::new(text),
        }
    }

    /// With a message as detail.
    pub fn with_detail<T: Field>(status: Status, text: impl Into<String>, detail: &T) -> Self {
        let mut bytes = Vec::new();
        message::encode(detail, &mut bytes);
        Refused {
            status,
            refusal: Refusal {
                text: text.into(),
                detail: Bytes(bytes),
            },
        }
    }
}

impl From<DecodeError> for Refused {
    fn from(error: DecodeError) -> Self {
        Refused::new(
            Status::Malformed,
            format!("the request cannot be read: {error}"),
        )
    }
}

impl From<kernels::BoundsError> for Refused {
    fn from(error: kernels::BoundsError) -> Self {
        Refused::new(Status::Internal, error.to_string())
    }
}

impl From<AskError> for Refused {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Refused(status, refusal) => Refused { status, refusal },
            other => Refused::new(other.status(), other.to_string()),
        }
    }
}

impl From<Refused> for AskError {
    fn from(refused: Refused) -> Self {
        AskError::Refused(refused.status, refused.refusal)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let status = match &error {
            // It was removed under an access that began before: a client that repeats it learns where the bytes are, or
            // that there is no such file.
            Error::NotFound(_) => Status::Busy,
            Error::Argument { .. } => Status::InvalidArgument,
            Error::NoSpace {
                resource: Resource::Disk,
                ..
            } => Status::NoSpace,
            Error::NoSpace { .. } => Status::NoMemory,
            Error::Corrupt { .. } | Error::Format { .. } | Error::Unfinished { .. } => {
                Status::Corrupt
            }
            Error::Busy { .. } => Status::InUse,
            Error::Stale => Status::Busy,
            Error::Exists(_) => Status::Internal,
            // Synced once and gone.
            Error::Lost { .. } => Status::Lost,
            Error::Conflict { .. } => Status::Corrupt,
            Error::DiskFailed { .. }
            | Error::DiskMissing { .. }
            | Error::Disks(_)
            | Error::Io { .. } => Status::Io,
        };
        Refused::new(status, error.to_string())
    }
}
