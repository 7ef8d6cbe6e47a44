//! `KeepAhead`: space for a file that a client is about to write, in the subfiles that are here.
//!
//! Nothing of the file changes, least of all its size. The space belongs to the view that it was asked for with
//! ([`TakenSpace`]). Refused before anything is taken where it cannot fit: a disk is not filled up to find out that it is too small.

use wire::message::file::KeepAhead;
use wire::{Rights, Status};

use crate::files::{AccessTerms, Files, OwnSubfile};
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::Session;
use crate::taken_space::TakenSpace;

/// Serves [`KeepAhead`].
pub(crate) fn keep_ahead(
    files: &Files,
    owner: &Owner,
    session: &Session,
    request: &KeepAhead,
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
    let bytes = |own: &OwnSubfile| own.bytes.rank(request.size);
    let wanted = known.own.iter().map(bytes).fold(0, u64::saturating_add);
    let (capacity, used) = storage.stored.room();
    if wanted > capacity {
        return Err(too_much(wanted, capacity));
    }
    let mut taken = TakenSpace::new(&storage.space_takers);
    for own in &known.own {
        known.check_place(own, &files.identity)?;
        let end = bytes(own);
        if end == 0 {
            continue;
        }
        let id = known.id(own);
        let kept = storage.with_room(|| {
            let subfile = known.make(own, storage)?;
            taken.take(id, subfile, end)
        });
        match kept {
            Err(store::Error::NoSpace { .. }) => {
                return Err(too_much(wanted, capacity.saturating_sub(used)));
            }
            other => other?,
        }
    }
    // What the view had taken before goes back after it.
    *view.space.lock() = Some(taken);
    Ok(())
}

fn too_much(wanted: u64, has: u64) -> Refused {
    let text = format!("{wanted} bytes of the file come to this server, which has room for {has}");
    Refused::new(Status::NoSpace, text)
}
