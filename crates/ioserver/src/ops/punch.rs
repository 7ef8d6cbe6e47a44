//! `Punch`: a range of a file becomes zero, and its space goes back, in the subfiles that are here.
//!
//! The range is held while that is done, so that no move takes its bytes along half way; the gate of the file is closed, and maps of
//! clients are taken back: what they store into afterwards is what others read. How far a client has stored counts
//! before that is looked at: bytes behind the end are left alone, since they are zero.
//!
//! Invariants: lengths stay. A punch that is refused has changed nothing, or some bytes of the range.

use std::ops::Range;

use layout::FileSpan;
use wire::message::file::{Punch, PunchAnswer};
use wire::{Rights, Status};

use super::hold_range::next_number;
use super::holder;
use crate::files::{AccessTerms, Entrance, Files, LocalState};
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::Session;

/// Times it is tried again after something has come in between.
const TRIES: usize = 16;

/// Serves [`Punch`].
pub(crate) fn punch(
    files: &Files,
    owner: &Owner,
    session: &Session,
    request: &Punch,
) -> Result<PunchAnswer, Refused> {
    let _busy = session.client.begin()?;
    let view = session.client.view(request.view)?;
    view.demand(request.view, Rights::WRITE)?;
    if request.lo >= request.hi || request.hi > falls::MAX_OFFSET {
        let text = format!("{}..{} is no range of a file", request.lo, request.hi);
        return Err(Refused::new(Status::InvalidArgument, text));
    }
    let (entry, range) = (&view.entry, request.lo..request.hi);
    let planned = AccessTerms {
        version: &request.version.0,
        file: Some(range.clone()),
        holder: holder(session, view.file),
        epoch: request.epoch,
        number: request.number,
        ..AccessTerms::default()
    };
    session.connection.busy_with(view.file);
    // Before anything is stored, so that what dies meanwhile counts as lost.
    let mut answer = PunchAnswer {
        start: files.identity.incarnation(),
        verifier: files.storage.verifier(),
    };
    for _ in 0..TRIES {
        let (running, known, _) = files.enter(owner, entry, &planned)?;
        if !has_stored(files, &known, &range)? {
            answer.verifier = 0;
            return Ok(answer);
        }
        let number = next_number();
        match entry.hold(number, session.client.id, &range, known.version()) {
            Entrance::In(()) => {}
            Entrance::No(refused) => return Err(refused),
            Entrance::Behind | Entrance::New => continue,
        }
        drop(running);
        let done = entry.alone_with(&planned, &files.hurry(), || {
            files.take_back(entry.id(), |_| u64::MAX)?;
            clear(files, &known, request)
        });
        super::release(files, view.file, number);
        if done? {
            entry.wrote(&range);
            files.storage.stored.wrote();
            return Ok(answer);
        }
    }
    let text = format!("{} is truncated again and again; repeat", entry.id());
    Err(Refused::new(Status::Busy, text))
}

/// The subfiles that are here, each with its part of a range of the file.
fn visit_parts(
    known: &LocalState,
    range: &Range<u64>,
    mut visit: impl FnMut(usize, Range<u64>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    known.try_visit_own(FileSpan::from_raw(range.clone()), |slot, met| {
        let bytes = &known.own[slot].bytes;
        let part = bytes.rank(met.start.0)..bytes.rank(met.end.0);
        match part.is_empty() {
            true => Ok(()),
            false => visit(slot, part),
        }
    })
}

/// Whether a subfile with bytes of a range is stored here. Refused where bytes of it are lost.
fn has_stored(files: &Files, known: &LocalState, range: &Range<u64>) -> Result<bool, Refused> {
    let mut has = false;
    visit_parts(known, range, |slot, _| {
        let own = &known.own[slot];
        known.check_place(own, &files.identity)?;
        has |= known.find(own, &files.storage.stored)?.is_some();
        Ok(())
    })?;
    Ok(has)
}

/// Clears the range in the subfiles that are here.
fn clear(files: &Files, known: &LocalState, request: &Punch) -> Result<(), Refused> {
    let storage = &files.storage;
    visit_parts(known, &(request.lo..request.hi), |slot, part| {
        let Some(subfile) = known.find(&known.own[slot], &storage.stored)? else {
            return Ok(());
        };
        let part = part.start..part.end.min(subfile.len());
        if part.is_empty() {
            return Ok(());
        }
        storage.with_room(|| subfile.punch(part.clone()))?;
        if storage.write_through || request.is_through {
            subfile.flush()?;
        }
        Ok(())
    })
}
