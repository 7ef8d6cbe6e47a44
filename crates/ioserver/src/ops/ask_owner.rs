//! What clients ask of the owner of a file, through a registered view: size, locks, pointers, places behind the end.
//!
//! A view number becomes an [`Asker`]; the owner's role does the rest. A lock whose answer cannot be sent is released
//! at once.

use std::collections::BTreeSet;

use control::locks::Mode;
use serving::{Exchange, Outcome};
use wire::message::Refusal;
use wire::message::file::{Lock, ThroughView};
use wire::{ClientId, Status};

use crate::owner::{Asker, Owner};
use crate::refused::Refused;
use crate::service::IoService;
use crate::sessions::Session;
use crate::views::RegisteredView;

/// Runs something of the owner's role for the client of a view.
pub(crate) fn with_asker<T>(
    owner: &Owner,
    session: &Session,
    view: &RegisteredView,
    run: impl FnOnce(&Owner, &Asker<'_>) -> Result<T, (Status, Refusal)>,
) -> Result<T, Refused> {
    if session.is_server() {
        let text = "servers do not ask the owner through views";
        return Err(Refused::new(Status::PermissionDenied, text));
    }
    let is_connected = || session.connection.is_open();
    let asker = Asker {
        client: session.client.id,
        file: view.file,
        rights: view.rights,
        view: &view.view,
        is_connected: &is_connected,
        waits_for: &|_| (),
    };
    Ok(run(owner, &asker)?)
}

/// Serves a request to the owner of a file.
pub(crate) fn ask_owner<R: ThroughView>(
    owner: &Owner,
    session: &Session,
    request: R,
    run: impl FnOnce(&Owner, &Asker<'_>, R) -> Result<R::Answer, (Status, Refusal)>,
) -> Result<R::Answer, Refused> {
    let _busy = session.client.begin()?;
    let view = session.client.view(request.view())?;
    with_asker(owner, session, &view, |owner, asker| {
        run(owner, asker, request)
    })
}

/// Serves [`Lock`]: waits for it, and listens meanwhile for those who hold it. It is not counted as running: a client that waits for a lock does nothing that a
/// fence would have to wait for.
pub(crate) fn lock(service: &IoService, session: &mut Session, exchange: &mut Exchange) -> Outcome {
    let owner = &service.context.owner;
    let result = exchange.request::<Lock>().map_err(Refused::from);
    let result = result.and_then(|r| {
        drop(session.client.begin()?);
        let view = session.client.view(r.view)?;
        let mode = match r.is_exclusive {
            true => Mode::Exclusive,
            false => Mode::Shared,
        };
        session.locks.push(r.request);
        let silences = service.departures.silences(&service.context);
        let waits_for = |holders: &BTreeSet<ClientId>| silences.look(holders);
        let locked = with_asker(owner, session, &view, |owner, asker| {
            let asker = Asker {
                waits_for: &waits_for,
                ..*asker
            };
            owner.lock(&asker, r.handle, r.request, r.lo..r.hi, mode)
        });
        if locked.is_err() {
            session.locks.retain(|&n| n != r.request);
        }
        locked.map(|()| (r, view))
    });
    match result {
        Ok((request, view)) => {
            let sent = exchange.answer(&());
            if sent.is_err() {
                let _ = with_asker(owner, session, &view, |owner, asker| {
                    owner.unlock(asker, request.request)
                });
            }
            sent
        }
        Err(refused) => service.refuse(exchange, refused),
    }
}
