//! Being told to end: SIGTERM, SIGINT and SIGHUP, waited for like any other event.
//!
//! The signals are blocked in the first thread before there is a second one, so that no thread of a
//! server is ever interrupted by them; one thread waits. No handler runs anywhere.

use std::thread;

use nix::sys::signal::{SigSet, Signal};

use crate::commands::Error;

fn awaited() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]
        .into_iter()
        .collect()
}

/// Keeps the signals for [`watch`]. Call it before any thread is started.
pub(crate) fn block() -> Result<(), Error> {
    awaited()
        .thread_block()
        .map_err(|e| format!("cannot block signals: {e}").into())
}

/// Calls `tell` for every signal that comes, from a thread of its own, until it returns false.
pub(crate) fn watch(
    mut tell: impl FnMut(&'static str) -> bool + Send + 'static,
) -> Result<(), Error> {
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            while let Ok(signal) = awaited().wait() {
                if !tell(signal.as_str()) {
                    return;
                }
            }
        })
        .map_err(|e| format!("cannot start a thread: {e}"))?;
    Ok(())
}
