//! Which server a client should use next for a file, as far as this server can say.
//!
//! The history of a client's accesses belongs to one view of it: another view begins another one. It is kept
//! where the client talks to, and when the client is sent elsewhere it travels with it, so the next server
//! goes on where this one stopped (D-21).
//!
//! Left to others: predicting (`advise::predict`), matching (`advise::mapping`), acting on the answer (the
//! client, from its next operation on).

use advise::predict::Predictor;
use parking_lot::Mutex;
use wire::ServerId;
use wire::message::Bytes;
use wire::message::mapping::{Choose, ChooseServer, ServerChoice, Upcoming, Whole};

use super::Split;
use crate::bounded::Search;
use crate::context::Storage;
use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::{Connection, Session};
use crate::statistics::add;
use crate::views::RegisteredView;

/// What a client accessed through one view.
#[derive(Default)]
pub(crate) struct History(Mutex<Predictor>);

impl History {
    /// Takes a history that comes with the client, in place of what is here.
    fn bring(&self, bytes: &[u8]) {
        if let Some(predictor) = Predictor::import(bytes) {
            *self.0.lock() = predictor;
        }
    }
}

/// After an operation of a client: the server for its next one if it is another, and the history for it.
pub(super) fn after(
    storage: &Storage,
    view: &RegisteredView,
    split: &Split,
    connection: &Connection,
    whole: &Whole<'_>,
    ends: Upcoming,
) -> (Option<u64>, Vec<u8>) {
    if whole.by == Choose::Keep {
        return (None, Vec::new());
    }
    view.history.bring(whole.history);
    view.history.0.lock().observe(ends.offset, ends.size);
    let (by, size) = (whole.by, whole.size);
    let chosen = best(storage, view, split, connection, by, size, whole.upcoming);
    leave(storage, view, chosen)
}

/// The server for an answer, if the client is to leave this one.
fn leave(storage: &Storage, view: &RegisteredView, chosen: Option<u64>) -> (Option<u64>, Vec<u8>) {
    match chosen.filter(|server| *server != storage.identity.server.0) {
        Some(server) => {
            add(&storage.statistics.remapped, 1);
            (Some(server), view.history.0.lock().export())
        }
        None => (None, Vec::new()),
    }
}

/// The server with most of the bytes that are expected next; `None` if nothing is.
fn best(
    storage: &Storage,
    view: &RegisteredView,
    split: &Split,
    connection: &Connection,
    by: Choose,
    size: u64,
    upcoming: Option<Upcoming>,
) -> Option<u64> {
    let expected = match (by, upcoming) {
        (Choose::Keep, _) => None,
        // What a client says counts more than what it did.
        (_, Some(said)) => Some((said.offset, said.size)),
        (Choose::ByHint, None) => None,
        (Choose::ByHistory, None) => {
            let next = view.history.0.lock().next_in(&view.view, size);
            next.map(|next| (next.offset, next.size))
        }
    };
    let (offset, len) = expected?;
    // No client has to move the bytes that a hint names, so nothing else pays for the search.
    let steps = storage.limits.search_steps;
    let mut searching = Search::new(steps, 0, view.description_bytes(), Some(connection));
    split
        .matching(view, offset, len, &mut searching)?
        .choose(Some(storage.identity.server.0))
}

/// Answers a client that has opened a file, set a view, or knows what it will access.
pub(crate) fn choose_server(
    files: &Files,
    session: &Session,
    request: &ChooseServer,
) -> Result<ServerChoice, Refused> {
    let storage = &*files.storage;
    let view = session.client.view(request.view)?;
    let known = files.known(&view.entry)?;
    let split = Split::new(&view, &known);
    view.history.bring(&request.history.0);
    // Straight after a view was set a hint strategy begins like a predicted one: with its first byte.
    let by = match (request.by, request.upcoming) {
        (Choose::ByHint, None) => Choose::ByHistory,
        (by, _) => by,
    };
    let (connection, size) = (&*session.connection, request.size);
    let chosen = best(
        storage,
        &view,
        &split,
        connection,
        by,
        size,
        request.upcoming,
    );
    let (next, history) = leave(storage, &view, chosen);
    Ok(ServerChoice {
        server: next.map_or(storage.identity.server, ServerId),
        history: Bytes(history),
    })
}
