//! `Allocation`: the space that the subfiles of a file take here.
//!
//! Of this server alone; the client adds up what all servers of the file say. Left to others: making space
//! (`preallocate`).

use wire::message::file::Allocation;

use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`Allocation`].
pub(crate) fn allocated(
    files: &Files,
    session: &Session,
    request: &Allocation,
) -> Result<u64, Refused> {
    let view = session.client.view(request.view)?;
    let known = files.known(&view.entry)?;
    // What clients have stored directly counts as far as they say that they have.
    files.direct.collect(view.file);
    let mut sum = 0;
    for own in &known.own {
        if let Some(subfile) = known.find(own, &files.storage.stored)? {
            sum += subfile.allocated()?;
        }
    }
    Ok(sum)
}
