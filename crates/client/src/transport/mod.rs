//! Between a client and its service: connections, which server is away and for how long, how often something is tried
//! again, threads beside the caller.
//!
//! Nothing here knows files, views or what is asked. What all threads of a client have in common is a `session`.

pub(crate) mod jobs;
pub(crate) mod outage;
pub(crate) mod patience;
pub(crate) mod pipe;
