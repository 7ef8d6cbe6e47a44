//! `Discard`: takes a subfile away that no file has, for operators.
//!
//! Left to others: whether a file has it, and what becomes of its data file (`files`).

use wire::message::file::Discard;

use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`Discard`].
pub(crate) fn discard(
    files: &Files,
    session: &Session,
    request: &Discard,
) -> Result<String, Refused> {
    session.demand_operator()?;
    files.discard(request)
}
