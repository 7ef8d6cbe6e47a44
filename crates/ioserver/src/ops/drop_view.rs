//! `DropView`: a client needs a view no more.
//!
//! The answer has the verifiers of now, by which the client knows what became of its bytes. Left to others: registering
//! (`set_view`).

use wire::message::file::{DropView, Verifiers};

use crate::context::Identity;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`DropView`].
pub(crate) fn drop_view(
    identity: &Identity,
    session: &Session,
    request: &DropView,
) -> Result<Verifiers, Refused> {
    session.client.drop_view(request.view)?;
    Ok(identity.verifiers)
}
