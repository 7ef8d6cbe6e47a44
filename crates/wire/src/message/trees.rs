//! Directories with everything below them.
//!
//! How far the manager has come with clearing what was removed is in [`Counts`](super::catalogue::Counts).

record! {
    /// Removes a directory with everything below it. Their names are gone with the answer; space follows.
    pub struct RemoveTree {
        /// Which.
        pub path: String,
    }
}
