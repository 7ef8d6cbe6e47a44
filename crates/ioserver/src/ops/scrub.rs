//! `Scrub`: whether the bytes of a file are here as they were written. Nothing is changed; a client that may read a file
//! may scrub it.

use wire::Rights;
use wire::message::file::{Scrub, ScrubAnswer};

use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`Scrub`].
pub(crate) fn scrub(
    files: &Files,
    session: &Session,
    request: &Scrub,
) -> Result<ScrubAnswer, Refused> {
    let view = session.client.view(request.view)?;
    view.demand(request.view, Rights::READ)?;
    let known = files.known(&view.entry)?;
    let mut found = ScrubAnswer {
        blocks: 0,
        damaged: 0,
    };
    for own in &known.own {
        if let Some(subfile) = known.find(own, &files.storage.stored)? {
            let scrub = subfile.scrub()?;
            found.blocks += scrub.blocks;
            found.damaged += scrub.damaged.len() as u64;
        }
    }
    Ok(found)
}
