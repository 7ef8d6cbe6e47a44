//! `ListSubfiles`: what the store has, for operators.
//!
//! Nothing is changed. A long list goes in several answers, each after the last name of the one before.

use wire::FileId;
use wire::message::file::{ListSubfiles, SubfileEntry, SubfileList, SubfileState};

use crate::refused::Refused;
use crate::sessions::Session;
use crate::stored::SubfileStore;

/// Most subfiles in one answer.
const LISTED_MOST: u64 = 4096;

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
