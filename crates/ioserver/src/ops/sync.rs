//! `Sync`: what a client has written to the subfiles of a file here becomes durable, as far as the store can.
//!
//! The answer has the verifiers of now, by which the client knows whether bytes were lost since it wrote them.

use wire::message::file::{Sync, SyncAnswer};

use super::with_asker;
use crate::files::Files;
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`Sync`].
pub(crate) fn sync(
    files: &Files,
    owner: &Owner,
    session: &Session,
    request: &Sync,
) -> Result<SyncAnswer, Refused> {
    let _busy = session.client.begin()?;
    let (identity, stored) = (&files.identity, &files.storage.stored);
    let view = session.client.view(request.view)?;
    let known = files.known(&view.entry)?;
    files.direct.collect(view.file);
    for own in &known.own {
        known.check_place(own, identity)?;
        if let Some(subfile) = known.find(own, stored)? {
            match subfile.sync_bytes() {
                // Moved away meanwhile, and durable before that was.
                Err(store::Error::NotFound(_)) => {}
                synced => synced?,
            }
        }
    }
    // That they exist, once for all of them.
    stored.store().settle()?;
    if known.owner().server == identity.server.0 {
        with_asker(owner, session, &view, |owner, asker| owner.release(asker))?;
    }
    Ok(SyncAnswer {
        is_durable: stored.is_durable(),
        verifiers: identity.verifiers,
    })
}
