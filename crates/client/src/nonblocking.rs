//! Operations that go on while their caller does something else.
//!
//! Skeleton: the types others build on.

use std::ops::Deref;
use std::sync::Arc;

use crate::error::Result;

/// Memory that a non-blocking operation holds until it is done.
#[derive(Clone, Debug)]
pub enum Buffer {
    /// Given away for the time of the operation.
    Owned(Vec<u8>),
    /// Shared with others who only read it.
    Shared(Arc<[u8]>),
}

impl Buffer {
    /// The bytes as a vector; copies only what is shared.
    pub fn into_vec(self) -> Vec<u8> {
        match self {
            Buffer::Owned(bytes) => bytes,
            Buffer::Shared(bytes) => bytes.to_vec(),
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Buffer::Owned(bytes) => bytes,
            Buffer::Shared(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Buffer::Owned(bytes)
    }
}

impl From<Arc<[u8]>> for Buffer {
    fn from(bytes: Arc<[u8]>) -> Self {
        Buffer::Shared(bytes)
    }
}

/// A non-blocking operation. Dropping it does not stop the operation.
#[derive(Debug)]
pub struct Request {
    result: Result<usize>,
    buffer: Buffer,
}

impl Request {
    pub(crate) fn done(result: Result<usize>, buffer: Buffer) -> Request {
        Request { result, buffer }
    }

    /// Whether it is done. Never waits.
    pub fn test(&self) -> bool {
        true
    }

    /// Waits until it is done: the bytes moved, and the buffer.
    pub fn wait(self) -> (Result<usize>, Buffer) {
        (self.result, self.buffer)
    }
}

/// Threads that run non-blocking operations.
#[derive(Debug, Default)]
pub(crate) struct Workers {}
