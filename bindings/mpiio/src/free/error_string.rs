//! `MPI_Error_string`: the host's words, and ours behind them for what failed here last.
//!
//! Codes are classes, so one code has many causes: the text is that of the last failure of this thread with it.

use std::ffi::{c_char, c_int};

use crate::entry;
use crate::failure;
use crate::ffi::Out;
use crate::host;

/// `MPI_Error_string`.
pub(crate) fn error_string(code: c_int, text: Out<c_char>, length: Out<c_int>) -> c_int {
    let answer = entry::theirs("MPI_Error_string", |host| {
        // SAFETY: the arguments are the caller's.
        host.files
            .Error_string
            .map(|f| unsafe { f(code, text, length) })
    });
    if answer == 0
        && let (Some(host), Some(detail)) = (host::get(), failure::last_text(code))
    {
        let room = host.abi.max_error_string as usize;
        let used = length.get().max(0) as usize;
        let detail = format!(" ({detail})");
        if used + detail.len() < room {
            let rest = Out(text.0.wrapping_add(used));
            length.set((used + rest.set_text(&detail, room - used)) as c_int);
        } else {
            // What is wrong with which file says more than the name of the class.
            length.set(text.set_text(detail.trim(), room) as c_int);
        }
    }
    answer
}
