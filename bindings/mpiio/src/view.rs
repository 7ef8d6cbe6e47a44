//! The view of a handle: displacement, etype, filetype, representation.

use std::sync::Arc;

use client::View;

use crate::datatype::Type;
use crate::ffi::Word;

/// What a process sees of a file through a handle.
#[derive(Debug)]
pub(crate) struct CurrentView {
    pub(crate) displacement: i64,
    pub(crate) etype: Arc<Type>,
    pub(crate) filetype: Arc<Type>,
    /// Handles to give to whoever asks for the view.
    pub(crate) etype_handle: Word,
    pub(crate) filetype_handle: Word,
    pub(crate) representation: String,
    /// Bytes of an etype in the file.
    pub(crate) etype_bytes: u64,
    /// The bytes of the file that it shows.
    pub(crate) bytes: View,
}
