//! `Allocated`, `Scrub` and `ListSubfiles`: what the store has of a file, whether it is whole, and what is there at all.
//!
//! Nothing is changed. A client that may read a file may scrub it; lists of subfiles are for operators.

use wire::message::file::{
    Allocated, ListSubfiles, Scrub, Scrubbed, SubfileEntry, SubfileList, SubfileState,
};
use wire::{FileId, Rights};

use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::Session;
use crate::stored::SubfileStore;

/// Most subfiles in one answer.
const LISTED_MOST: u64 = 4096;

/// Serves [`Allocated`].
pub(crate) fn allocated(
    files: &Files,
    session: &Session,
    request: &Allocated,
) -> Result<u64, Refused> {
    let view = session.client.view(request.view)?;
    let known = files.known(&view.entry)?;
    let mut sum = 0;
    for own in &known.own {
        if let Some(subfile) = known.find(own, &files.storage.stored)? {
            sum += subfile.allocated()?;
        }
    }
    Ok(sum)
}

/// Serves [`Scrub`].
pub(crate) fn scrub(
    files: &Files,
    session: &Session,
    request: &Scrub,
) -> Result<Scrubbed, Refused> {
    let view = session.client.view(request.view)?;
    view.demand(request.view, Rights::READ)?;
    let known = files.known(&view.entry)?;
    let mut found = Scrubbed {
        blocks: 0,
        damaged: 0,
    };
    for own in &known.own {
        if let Some(subfile) = known.find(own, &files.storage.stored)? {
            let scrub = subfile.scrub()?;
            found.blocks += scrub.blocks;
            found.damaged += scrub.damaged.len() as u64;
        }
    }
    Ok(found)
}

/// Serves [`ListSubfiles`].
pub(crate) fn list_subfiles(
    stored: &SubfileStore,
    session: &Session,
    request: &ListSubfiles,
) -> Result<SubfileList, Refused> {
    session.demand_operator()?;
    let after = request.after.as_ref().map(|name| store::SubfileId {
        file: name.file.0,
        generation: name.generation,
        index: name.index,
    });
    let most = request.most.clamp(1, LISTED_MOST) as usize;
    let looked = stored.look(after, most + 1);
    let has_more = looked.len() > most;
    let entry = |looked: store::ListedSubfile| SubfileEntry {
        file: FileId(looked.id.file),
        generation: looked.id.generation,
        index: looked.id.index,
        len: looked.len,
        allocated_bytes: looked.allocated_bytes,
        state: match looked.standing {
            store::Standing::Here => SubfileState::Here,
            store::Standing::Missing => SubfileState::Missing,
            store::Standing::Lost => SubfileState::Lost,
            store::Standing::Conflict => SubfileState::Conflict,
        },
    };
    Ok(SubfileList {
        entries: looked.into_iter().take(most).map(entry).collect(),
        has_more,
    })
}
