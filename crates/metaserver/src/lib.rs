//! The metadata manager: the catalogue behind a socket.
//!
//! Owns sessions of clients, membership of I/O servers, capabilities, and the coordination of
//! re-layouts. What is durable is the affair of `meta`; file data never comes here.
#![forbid(unsafe_code)]
