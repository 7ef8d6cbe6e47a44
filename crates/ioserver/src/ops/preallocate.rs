//! `Preallocate`: space for the bytes of a file up to a size, in the subfiles that are here.
//!
//! Refused before anything is allocated where it cannot fit: a disk is not filled up to find out that it is too small.

use wire::message::file::Preallocate;
use wire::{Rights, Status};

use crate::files::{AccessTerms, Files, OwnSubfile};
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::Session;

/// Serves [`Preallocate`].
pub(crate) fn preallocate(
    files: &Files,
    owner: &Owner,
    session: &Session,
    request: &Preallocate,
) -> Result<(), Refused> {
    let _busy = session.client.begin()?;
    let storage = &*files.storage;
    let view = session.client.view(request.view)?;
    view.demand(request.view, Rights::WRITE)?;
    if request.size > falls::MAX_OFFSET {
        let text = format!("size: {} is beyond {}", request.size, falls::MAX_OFFSET);
        return Err(Refused::new(Status::InvalidArgument, text));
    }
    let known = files.known(&view.entry)?;
    let planned = AccessTerms {
        version: known.version(),
        epoch: request.epoch,
        ..AccessTerms::default()
    };
    let (_running, known, _) = files.enter(owner, &view.entry, &planned)?;
    // A disk is not filled up to find out that it is too small.
    let (capacity, _) = storage.stored.room();
    let wanted = |own: &OwnSubfile| own.bytes.rank(request.size);
    let wanted = known.own.iter().map(wanted).fold(0, u64::saturating_add);
    if wanted > capacity {
        let text = format!(
            "size: {wanted} bytes of it come to this server, which has room for {capacity}"
        );
        return Err(Refused::new(Status::NoSpace, text));
    }
    for own in &known.own {
        known.check_place(own, &files.identity)?;
        for range in &known.layout().pieces[own.piece].ranges {
            let rank = |at: u64| own.bytes.rank(at.min(request.size));
            let part = rank(range.start)..rank(range.end);
            if !part.is_empty() {
                storage.with_room(|| {
                    let subfile = known.make(own, storage)?;
                    subfile.preallocate(part.clone())
                })?;
            }
        }
    }
    Ok(())
}
