//! What clients ask of the owner of a file, through a registered view: size, locks, pointers, places behind the end.
//!
//! A view number becomes an [`Asker`]; the owner's role (`owner`) does the rest, a function for each message.

use wire::Status;
use wire::message::file::ThroughView;

use crate::owner::{Asker, Owner};
use crate::refused::Refused;
use crate::sessions::{Session, Who};
use crate::views::RegisteredView;

/// Runs something of the owner's role for the client of a view.
pub(crate) fn with_asker<T>(
    owner: &Owner,
    session: &Session,
    view: &RegisteredView,
    run: impl FnOnce(&Owner, &Asker<'_>) -> Result<T, Refused>,
) -> Result<T, Refused> {
    let Who::Client { client, user } = session.who else {
        let text = "servers do not ask the owner through views";
        return Err(Refused::new(Status::PermissionDenied, text));
    };
    let is_connected = || session.connection.is_open();
    let asker = Asker {
        client,
        user,
        file: view.file,
        rights: view.rights,
        has_expired: view.has_expired(),
        view: &view.view,
        is_connected: &is_connected,
        waits_for: &|_| (),
    };
    run(owner, &asker)
}

/// Serves a request to the owner of a file.
pub(crate) fn ask_owner<R: ThroughView>(
    owner: &Owner,
    session: &Session,
    request: R,
    run: impl FnOnce(&Owner, &Asker<'_>, R) -> Result<R::Answer, Refused>,
) -> Result<R::Answer, Refused> {
    let _busy = session.client.begin()?;
    let view = session.client.view(request.view())?;
    with_asker(owner, session, &view, |owner, asker| {
        run(owner, asker, request)
    })
}
