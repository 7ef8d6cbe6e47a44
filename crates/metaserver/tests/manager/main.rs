//! The metadata manager over real sockets.
//!
//! A manager runs in the test's process, or in a child that is this binary started again when it has
//! to be killed. Clients and I/O servers are plain links that ask one question at a time.

mod credentials;
mod crowd;
mod fixture;
mod kill;
mod life;
mod limits;
mod members;
mod moments;
mod names;
mod relayout;
mod relayout_twice;
mod stamps;
mod strangers;
mod twice;
