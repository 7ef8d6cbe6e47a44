//! Between a client and its service: connections, who is away and for how long, how often something is tried again.
//!
//! Nothing here knows what is asked of a file. A [`lane::Lane`] is what one thread needs to talk to servers, a
//! [`session::Session`] what all threads of a client have in common.

pub(crate) mod beats;
pub(crate) mod connect;
pub(crate) mod jobs;
pub(crate) mod lane;
pub(crate) mod outage;
pub(crate) mod patience;
pub(crate) mod pipe;
pub(crate) mod session;
