//! A server of connections from outside, with a toy service behind it.
//! One program: each further one would be linked, and optimised, for itself.

mod bounded;
mod conversation;
mod introduction;
mod toy;
mod watch;
