//! `LetGo`: a connection gives back a range that it holds.
//!
//! Other accesses to it are let in again. Left to others: holding, and what ends a hold besides this (`hold_range`,
//! `goodbye`).

use wire::Status;
use wire::message::directed::LetGo;

use super::release;
use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`LetGo`].
pub(crate) fn let_go(files: &Files, session: &mut Session, request: &LetGo) -> Result<(), Refused> {
    let found = session
        .holds
        .iter()
        .position(|hold| hold.number == request.number);
    let Some(found) = found else {
        let text = format!("number {} is not held on this connection", request.number);
        return Err(Refused::new(Status::InvalidArgument, text));
    };
    let hold = session.holds.remove(found);
    release(files, hold.file, hold.number);
    Ok(())
}
