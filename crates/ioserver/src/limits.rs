//! What one client or one user may take of a server.
//!
//! The defaults are far above what programs need; a client that meets one is told its name and the option that moves it.

use std::time::Duration;

/// Bounds of what peers can make a server do and keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections.
    pub connections: serving::Limits,
    /// Most views that a client has registered.
    pub views: usize,
    /// Most bytes that describe them.
    pub view_bytes: u64,
    /// Most locks, handles in atomic mode, places behind the end and shared pointers that a client has in one file.
    pub locks: usize,
    /// Steps that a request may take to find its bytes, besides those that its bytes and its view pay for.
    pub search_steps: u64,
    /// How long a request waits for a staging buffer before peers lose their connections that hold one and neither
    /// send nor take bytes.
    pub buffer_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: serving::Limits::default(),
            views: 1 << 14,
            view_bytes: 16 << 20,
            locks: 1 << 14,
            search_steps: 1 << 20,
            buffer_wait: Duration::from_secs(10),
        }
    }
}
