//! What one client or one user may take of a server.
//!
//! The defaults are far above what programs need; whoever meets one is told its name and the option that moves it.

/// Bounds of what peers can make a server do and keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps that a request may take to find its bytes, besides those that its bytes and its view pay for.
    pub search_steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            search_steps: 1 << 20,
        }
    }
}
