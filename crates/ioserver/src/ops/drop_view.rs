//! `DropView`: a client needs a view no more.
//!
//! With the last handle of a file it needs no maps of it either: the space ahead of what it has stored goes back.
//!
//! The answer has the verifiers of now, by which the client knows what became of its bytes. Left to others: registering
//! (`set_view`).

use wire::message::file::{DropView, Verifiers};

use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`DropView`].
pub(crate) fn drop_view(
    files: &Files,
    session: &Session,
    request: &DropView,
) -> Result<Verifiers, Refused> {
    let file = session.client.drop_view(request.view)?;
    if let (Some(file), 1..) = (file, request.maps) {
        files.close_maps(&session.client, file, request.maps);
    }
    Ok(files.identity.verifiers)
}
