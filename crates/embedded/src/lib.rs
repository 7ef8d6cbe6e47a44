//! No service: the processes that use a directory serve it themselves.
//!
//! Owns the lock of the directory, the servers of whoever holds it, and how the next one takes over.
#![forbid(unsafe_code)]
