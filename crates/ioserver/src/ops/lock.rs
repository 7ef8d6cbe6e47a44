//! `Lock`: waits for a range of a file. A lock whose answer cannot be sent is released at once.
//!
//! A client that waits listens meanwhile for those that hold the range. It is not counted as running: a client that waits for a lock does nothing that a fence would have to wait for.

use control::locks::Mode;
use serving::Exchange;
use wire::message::file::Lock;

use super::goodbye::Silences;
use super::with_asker;
use crate::access::Fault;
use crate::owner::Asker;
use crate::sessions::Session;

/// Serves [`Lock`].
pub(crate) fn lock(
    silences: &Silences<'_>,
    session: &mut Session,
    exchange: &mut Exchange,
    request: &Lock,
) -> Result<(), Fault> {
    let owner = &**silences.owner;
    drop(session.client.begin()?);
    let view = session.client.view(request.view)?;
    let mode = match request.is_exclusive {
        true => Mode::Exclusive,
        false => Mode::Shared,
    };
    let (number, range) = (request.request, request.lo..request.hi);
    session.locks.push(number);
    let locked = with_asker(owner, session, &view, |owner, asker| {
        let asker = Asker {
            waits_for: &|holders| silences.look(holders),
            ..*asker
        };
        owner.lock(&asker, request.handle, number, range, mode)
    });
    if let Err(refused) = locked {
        session.locks.retain(|&n| n != number);
        return Err(refused.into());
    }
    let sent = exchange.answer(&());
    if sent.is_err() {
        let _ = with_asker(owner, session, &view, |owner, asker| {
            owner.unlock(asker, number)
        });
    }
    Ok(sent?)
}
