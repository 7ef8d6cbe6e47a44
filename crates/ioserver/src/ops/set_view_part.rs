//! `SetViewPart`: more of the description of a view; with the last part the view is registered.
//!
//! A part that does not fit ends the description, and gives back its quota. Left to others: the first part
//! (`set_view`).

use wire::Status;
use wire::message::file::SetViewPart;

use super::set_view::register;
use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`SetViewPart`].
pub(crate) fn set_view_part(
    files: &Files,
    session: &Session,
    request: &SetViewPart,
) -> Result<(), Refused> {
    let client = &session.client;
    let Some(mut pending) = client.take_pending(request.view) else {
        let text = format!("view {} has no description on its way", request.view);
        return Err(Refused::new(Status::UnknownView, text));
    };
    if let Err(e) = pending.assembly.add(&request.part.0) {
        client.give_up(pending.announced);
        return Err(e.into());
    }
    match pending.assembly.complete().map(<[u8]>::to_vec) {
        Some(description) => register(
            files,
            session,
            request.view,
            pending.file,
            &pending.permit,
            description,
        ),
        None => client.put_pending(request.view, pending),
    }
}
