//! The client library: files, views, reads and writes for programs.
//!
//! Runs in the caller's threads. What servers do is known here only through `wire`.
#![forbid(unsafe_code)]
