//! `Shutdown`: an operator ends the server. What is in memory becomes durable first, as far as that is possible.
//!
//! Left to others: whether the client may ask for it, and the end itself, after the answer (`service`).

use crate::files::Files;
use crate::owner::Owner;
use crate::refused::Refused;

/// Serves [`Shutdown`](wire::message::session::Shutdown), as far as the answer says how it went.
pub(crate) fn shutdown(files: &Files, owner: &Owner) -> Result<(), Refused> {
    owner.flush_dirty_sizes();
    Ok(files.storage.stored.close()?)
}
