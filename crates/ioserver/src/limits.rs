//! What one client or one user may take of a server.
//!
//! The defaults are far above what programs need; whoever meets one is told its name and the option that moves it.

use std::time::Duration;

/// Bounds of what peers can make a server do and keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps that a request may take to find its bytes, besides those that its bytes and its view pay for.
    pub search_steps: u64,
    /// How long a request waits for a staging buffer before peers lose their connections that hold one and neither
    /// send nor take bytes.
    pub buffer_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            search_steps: 1 << 20,
            buffer_wait: Duration::from_secs(10),
        }
    }
}
