//! An I/O server: subfiles behind a socket.
//!
//! Owns registered views, accesses to bytes, buffers, and the role of the owner of files (size, locks,
//! pointers). Path names never come here.
#![forbid(unsafe_code)]

pub mod owner;
