//! `Unlock`: gives back a lock. The end of the connection does not release it once more.
//!
//! Left to others: taking locks (`lock`), and those of clients that are gone (`goodbye`).

use wire::message::file::Unlock;

use super::ask_owner;
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`Unlock`].
pub(crate) fn unlock(owner: &Owner, session: &mut Session, request: Unlock) -> Result<(), Refused> {
    session.locks.retain(|&number| number != request.request);
    ask_owner(owner, session, request, |owner, asker, request| {
        owner.unlock(asker, request.request)
    })
}
