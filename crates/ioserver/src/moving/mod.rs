//! The part of a server in moving a file: fencing windows, fetching its bytes of them, lending its memory.
//!
//! ```text
//!  FenceWindows   learn the state -> fence -> give space back -> accesses and claims in the windows end
//!  PullWindows    bytes of the windows from the servers of the first piece into own subfiles of the second
//!  Lend           where own bytes of the windows are in memory, for a server of this host that pulls
//! ```
//!
//! Invariants
//! - One round after the other: a request of an earlier round that comes late is refused, and a fence waits for
//!   a pull that still runs. So nothing of an abandoned round is stored after the next one has begun.
//! - What is pulled belongs to no piece before the state says so, and all of a window is written or cleared: what an
//!   earlier attempt has left is never read.
//! - Lent memory stays where it is until the next round.
//! - A truncate waits for a pull, and a pull of a state from before it is refused.
//!
//! Left to others: which windows when (`metaserver`), states (`control::moves`), the gate (`files`).

mod lend;
mod pull;

use std::ops::Range;
use std::sync::atomic::Ordering;

use store::Pins;
use wire::message::cluster::{ByteRange, FenceAnswer, FenceWindows, SizeAtRest};
use wire::{FileId, Status};

use crate::context::Storage;
use crate::files::{FileEntry, Files, LocalState, MOVE};
use crate::owner::Owner;
use crate::refused::Refused;

pub(crate) use lend::{Lenders, LentSegments, lend};
pub(crate) use pull::pull_windows;

/// What a server keeps of a move of one file.
#[derive(Default)]
pub(crate) struct MoveRecord {
    /// Accesses that were told.
    accesses: u64,
}

/// What was lent in a round.
#[derive(Default)]
pub(crate) struct Loans {
    round: u64,
    pins: Vec<Pins>,
}

fn ranges(list: &[ByteRange]) -> Vec<Range<u64>> {
    control::moves::normal(list.iter().map(|r| r.start..r.end).collect())
}

/// Kills this process if a test wants it to die here: `PARIO_CRASH_AT` is the name of the point, with `:n` for the
/// n-th time.
pub(crate) fn crash_point(name: &str) {
    control::moves::crash_point(name);
}

fn other_round(file: FileId) -> Refused {
    Refused::new(
        Status::StaleLayout,
        format!("another round of the move of {file} has begun"),
    )
}

/// Serves [`FenceWindows`].
pub(crate) fn fence_windows(
    files: &Files,
    owner: &Owner,
    r: &FenceWindows,
) -> Result<FenceAnswer, Refused> {
    let entry = files.entry(r.file);
    crash_point("server_before_fence");
    // Waits for a pull of the round before.
    let mut moving = entry.moving.lock();
    if r.round <= entry.round.load(Ordering::SeqCst) {
        return Err(other_round(r.file));
    }
    let before = entry.known();
    let is_found = learn(files, &entry, r)?;
    if !is_found {
        owner.removed(r.file);
        files.applied.forget(r.file);
        let text = format!("{} was removed", r.file);
        return Err(Refused::new(Status::NotFound, text));
    }
    entry.round.store(r.round, Ordering::SeqCst);
    *entry.lending.lock() = Loans {
        round: r.round,
        pins: Vec::new(),
    };
    let windows = ranges(&r.windows);
    let hold_wait = files.hold_wait;
    let mut fenced = entry.fence_for_move(&windows, hold_wait);
    if let Some(client) = entry.slow_holder(&windows, hold_wait)
        && fenced.is_err()
    {
        files.sessions.disconnect(client);
        fenced = entry.fence_for_move(&windows, hold_wait);
    }
    files.direct.show(&entry);
    fenced?;
    if !r.frees.is_empty() {
        crash_point("server_before_free");
        free(&files.storage, &entry, &ranges(&r.frees));
    }
    if let Some(before) = before {
        free_rest(&files.storage, &entry, &before);
    }
    let mut accesses = 0;
    if !windows.is_empty() {
        let fenced = entry
            .drain_ranges(&windows, &files.hurry())
            .and_then(|()| files.stop_claims(&entry));
        if r.asks_size {
            // A move begins: what is ahead of the bytes does not move.
            files.direct.give_back_ahead(r.file);
        }
        match fenced {
            Ok(claims) => accesses += claims,
            Err(refused) => {
                entry.fence(MOVE, &[]);
                files.direct.show(&entry);
                return Err(refused);
            }
        }
    }
    if r.is_settling
        && let Some(known) = entry.known()
    {
        owner.layout_is(r.file, known.layout());
        // The owner was told before.
        entry.taken(&known);
        files.direct.show(&entry);
    }
    let size = match r.asks_size || r.hands_over {
        true => size_at_rest(files, owner, r)?,
        false => SizeAtRest {
            size: 0,
            epoch: 0,
            end: 0,
        },
    };
    let is_owner = |known: std::sync::Arc<crate::files::LocalState>| {
        known.owner().server == files.identity.server.0
    };
    let pointers = match r.hands_over && entry.known().is_some_and(is_owner) {
        true => owner.pointers_to_hand_over(r.file)?,
        false => Vec::new(),
    };
    let now = entry.accesses.load(Ordering::Relaxed);
    accesses += now - std::mem::replace(&mut moving.accesses, now);
    crash_point("server_after_fence");
    Ok(FenceAnswer {
        accesses,
        size,
        pointers,
    })
}

/// Has the state of a step, by what has moved since or by asking; `false` if there is no such file.
fn learn(
    files: &Files,
    entry: &std::sync::Arc<FileEntry>,
    r: &FenceWindows,
) -> Result<bool, Refused> {
    if let Some(known) = entry.known()
        && known.step() == r.from
        && r.from < r.step
        && !r.moved.is_empty()
        && let Some(next) = control::moves::advance(known.layout(), &ranges(&r.moved))
        // What moved last is made durable together with the end of the move.
        && let Some(next) = match r.is_settling && next.step < r.step {
            true => control::moves::finish(&next),
            false => Some(next),
        }
        && next.step == r.step
    {
        entry.learn(known.with_layout(next), files.identity.server);
    }
    let mut known = entry.known();
    if known.as_ref().is_none_or(|k| k.step() < r.step) {
        known = match files.refresh_now(entry) {
            Ok(known) => Some(known),
            Err(refused) if refused.status == Status::NotFound => return Ok(false),
            Err(refused) => return Err(refused),
        };
    }
    match known.is_some_and(|known| known.step() == r.step) {
        true => Ok(true),
        false => Err(Refused::new(
            Status::StaleLayout,
            format!("{} is in another step of its move", r.file),
        )),
    }
}

/// How big a file is that nothing changes: exactly, if another server is to own it from now on.
fn size_at_rest(files: &Files, owner: &Owner, r: &FenceWindows) -> Result<SizeAtRest, Refused> {
    let known = files.known(&files.entry(r.file))?;
    let end = files.ask_end(r.file)?.end;
    let (size, epoch) = match known.owner().server == files.identity.server.0 {
        true => {
            let size = match r.hands_over {
                true => owner.size_to_hand_over(r.file)?,
                false => owner.size_at_rest(r.file)?,
            };
            (size.size, size.epoch)
        }
        false => (0, 0),
    };
    Ok(SizeAtRest { size, epoch, end })
}

/// When a move is over: gives back the space of what is not of the file any more. The metadata manager has it
/// removed by and by, but the next move may need the memory at once.
fn free_rest(storage: &Storage, entry: &FileEntry, before: &LocalState) {
    let Some(known) = entry.known() else {
        return;
    };
    let is_over = before.layout().pieces.len() == 2 && known.layout().pieces.len() == 1;
    if !is_over || storage.stored.is_durable() {
        return;
    }
    for own in before.of_piece(0).1 {
        if known.names(own.store, std::slice::from_ref(&own.index)) {
            continue;
        }
        if let Ok(Some(subfile)) = before.find(own, &storage.stored) {
            let _ = subfile.truncate(0);
        }
    }
}

/// Gives back the space of bytes that have moved away. What cannot be given back now goes at the end.
fn free(storage: &Storage, entry: &FileEntry, moved: &[Range<u64>]) {
    let Some(known) = entry.known() else {
        return;
    };
    let layout = known.layout();
    if layout.pieces.len() < 2 {
        return;
    }
    for own in known.of_piece(0).1.iter().filter(|own| !known.stays(own)) {
        let Ok(Some(subfile)) = known.find(own, &storage.stored) else {
            continue;
        };
        // Never what the piece governs, whatever was asked for.
        let everything = 0..u64::MAX;
        let gone =
            control::moves::without(std::slice::from_ref(&everything), &layout.pieces[0].ranges);
        let rank = |at: u64| own.bytes.rank(at.min(falls::MAX_OFFSET));
        for range in control::moves::without(moved, &layout.pieces[0].ranges) {
            // An extent in which the window before ended is given back as a whole only with all of it.
            let since = gone.iter().find(|g| g.contains(&range.start));
            let since = rank(since.map_or(range.start, |g| g.start));
            let start = rank(range.start);
            let start = since.max(start / store::CHUNK * store::CHUNK);
            let part = start..rank(range.end).min(subfile.len().max(start));
            // No client reads it before it is fetched again, which stores or clears all of it.
            if !part.is_empty() {
                let _ = subfile.release(part);
            }
        }
    }
}
