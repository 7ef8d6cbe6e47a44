//! Space for a new file of an expected size, before it is written.
//!
//! It belongs to the handle that has created the file: when that is closed, or its client has gone, what was not written goes back. An
//! argument of `open` holds, or the file is not created; a hint gets what there is, and its report says if that was nothing.
//!
//! Left to others: asking a server again that has registered the handle anew (`handle`), how servers keep space.

use std::sync::atomic::Ordering;

use wire::Rights;
use wire::message::catalogue::{Stat, Unlink, UnlinkHow};
use wire::message::file::KeepAhead;

use crate::error::{Error, Result};
use crate::file::options::OpenOptions;
use crate::file::{File, check_size};

/// Fewest bytes for which servers are asked: less is one piece of memory at most, which the first write takes.
const LEAST: u64 = 64 << 10;
/// What it is called, as argument and as hint.
const NAME: &str = "expected_size";

impl File {
    /// Takes space for a file that was created just now, as its creator expects. If what was demanded cannot be had the file is
    /// removed again.
    pub(crate) fn take_expected(&self, options: &OpenOptions) -> Result<()> {
        if !self.identity.is_new || !self.identity.rights.allow(Rights::WRITE) {
            return Ok(());
        }
        let hinted = self.settings.hints.lock().number(NAME);
        let (size, is_demanded) = match (options.expected.size, hinted) {
            (Some(size), _) => (size, true),
            (None, Some(size)) => (size, false),
            (None, None) => return Ok(()),
        };
        if size < LEAST {
            return Ok(());
        }
        match self.take_space(size) {
            Ok(()) => {
                let what = format!("space for {size} bytes is taken");
                self.settings.heard.lock().acted(NAME, Ok(what));
                Ok(())
            }
            Err(error) if is_demanded => {
                self.undo_creation();
                Err(told(size, error))
            }
            Err(error) => {
                let why = format!("no space was taken: {error}");
                self.settings.heard.lock().acted(NAME, Err(why));
                Ok(())
            }
        }
    }

    fn take_space(&self, size: u64) -> Result<()> {
        check_size(size)?;
        self.session.with_lane(|lane| {
            let make = |view| KeepAhead {
                view,
                epoch: self.known.size().epoch,
                size,
            };
            self.ask_all(lane, &self.views.whole, make, |_, ()| {})
        })?;
        self.space.store(size, Ordering::Relaxed);
        Ok(())
    }

    /// The file was cut anew before it had bytes. The handle goes on with what space there is.
    pub(crate) fn take_space_again(&self) {
        let size = self.space.load(Ordering::Relaxed);
        if size > 0
            && let Err(error) = self.take_space(size)
        {
            tracing::debug!(path = self.identity.path, %error, "no space is taken");
        }
    }

    /// Nothing was written, and no program was told of the file. A client that has found it meanwhile keeps it.
    fn undo_creation(&self) {
        let path = &self.identity.path;
        let undone = self.finish().and_then(|()| {
            let look = || Stat {
                path: path.clone(),
                with_latest_size: true,
                wants_stamps: false,
            };
            let found = self.session.manager(look)?.found;
            let is_this = |at: &wire::message::catalogue::StatEntry| {
                at.attributes.file == self.identity.file && at.attributes.size == 0
            };
            if !found.as_ref().is_some_and(is_this) {
                return Ok(());
            }
            self.session.manager(|| Unlink {
                path: path.clone(),
                how: UnlinkHow::UnlessOpen,
            })
        });
        if let Err(error) = undone {
            tracing::debug!(path, %error, "an empty file stays");
        }
    }
}

/// The refusal, with what was asked for.
fn told(size: u64, error: Error) -> Error {
    match error {
        Error::Refused {
            status,
            text,
            server,
        } => Error::Refused {
            status,
            text: format!(
                "{NAME}: there is no space for {size} bytes: {text}; expect less, or make room"
            ),
            server,
        },
        other => other,
    }
}
