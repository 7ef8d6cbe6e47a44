//! `TakeLayout`: a file is served with what the metadata manager says now, after its layout was replaced at once.
//!
//! That happens as long as the file is empty; everything else moves window by window (`moving`).

use wire::{FileId, Status};

use crate::files::Files;
use crate::owner::Owner;
use crate::refused::Refused;

/// Serves [`TakeLayout`](wire::message::cluster::TakeLayout).
pub(crate) fn take_layout(files: &Files, owner: &Owner, file: FileId) -> Result<(), Refused> {
    let entry = files.entry(file);
    files.void_maps(&entry)?;
    entry.forget();
    match files.refresh(&entry) {
        Ok(known) => owner.layout_is(file, known.layout()),
        Err(refused) if refused.status == Status::NotFound => owner.removed(file),
        Err(refused) => return Err(refused),
    }
    Ok(())
}
