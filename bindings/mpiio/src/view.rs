//! The view of a handle: displacement, etype, filetype, representation.

use std::sync::Arc;

use client::View;

use crate::datatype::{self, Type};
use crate::entry::Outcome;
use crate::ffi::Word;
use crate::host::Host;

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

impl CurrentView {
    /// The whole file as bytes, which a file is opened with.
    pub(crate) fn whole(host: &Host) -> Outcome<CurrentView> {
        let byte = datatype::of(host, host.abi.byte)?;
        Ok(CurrentView {
            displacement: 0,
            etype: Arc::clone(&byte),
            filetype: byte,
            etype_handle: host.abi.byte,
            filetype_handle: host.abi.byte,
            representation: "native".into(),
            etype_bytes: 1,
            bytes: View::whole_file(),
        })
    }
}
