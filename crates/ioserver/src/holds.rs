//! Ranges of a file that one connection holds: nobody else reads or writes there from the answer on, by message or
//! through shared memory, until the range is let go of or the connection ends.
//!
//! What a sieved write needs between reading a window and writing it back. Built on the fences of the gate, like
//! the windows of a move; an access that meets one waits a little and is told to repeat.
//!
//! Invariants
//! - Ranges of two holders do not meet: whoever comes second is told to repeat.
//! - What other servers forward for the client that holds a range gets in: its requests may go through one of them.
//! - A hold ends with its connection, so a client that dies keeps nobody out.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::message::directed::{HoldRange, LetGo};
use wire::{FileId, Rights, Status};

use crate::context::Context;
use crate::refused::Refused;
use crate::sessions::Session;

/// Ranges that one connection may hold at a time.
const MOST: usize = 64;

/// A range that a connection holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) file: FileId,
    pub(crate) number: u64,
}

/// The number under which a connection holds something of a file; 0 if it does not.
pub(crate) fn holder(session: &Session, file: FileId) -> u64 {
    let mut holds = session.holds.iter().rev();
    let found = holds.find(|hold| hold.file == file);
    found.map_or(0, |hold| hold.number)
}

/// Serves [`HoldRange`].
pub(crate) fn hold(
    context: &Context,
    session: &mut Session,
    request: &HoldRange,
) -> Result<u64, Refused> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let _busy = session.client.begin()?;
    let view = session.client.view(request.view)?;
    if !view.rights.allow(Rights::WRITE) {
        return Err(Refused::new(
            Status::PermissionDenied,
            format!("view {} does not allow to write", request.view),
        ));
    }
    if request.lo >= request.hi || request.hi > falls::MAX_OFFSET {
        return Err(Refused::new(
            Status::InvalidArgument,
            format!("{}..{} is no range of a file", request.lo, request.hi),
        ));
    }
    if session.holds.len() >= MOST {
        return Err(Refused::new(
            Status::QuotaExceeded,
            format!("{MOST} ranges are held on this connection; let go of one first"),
        ));
    }
    let entry = &view.entry;
    context.known(entry)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let ranges = vec![std::ops::Range {
        start: request.lo,
        end: request.hi,
    }];
    if !entry.fence_alone(number, session.client.id, ranges.clone()) {
        return Err(Refused::new(
            Status::Busy,
            format!(
                "bytes {}..{} are held by another client",
                request.lo, request.hi
            ),
        ));
    }
    context.direct.show(entry);
    let held = entry
        .drain_ranges(&ranges, &context.hurry())
        .and_then(|()| context.stop_claims(entry));
    if let Err(refused) = held {
        release(context, view.file, number);
        return Err(refused);
    }
    session.holds.push(Hold {
        file: view.file,
        number,
    });
    Ok(number)
}

/// Serves [`LetGo`].
pub(crate) fn let_go(
    context: &Context,
    session: &mut Session,
    request: &LetGo,
) -> Result<(), Refused> {
    let found = session
        .holds
        .iter()
        .position(|hold| hold.number == request.number);
    let Some(found) = found else {
        return Err(Refused::new(
            Status::InvalidArgument,
            format!("number {} is not held on this connection", request.number),
        ));
    };
    let hold = session.holds.remove(found);
    release(context, hold.file, hold.number);
    Ok(())
}

/// Lets others in again.
pub(crate) fn release(context: &Context, file: FileId, number: u64) {
    if let Some(entry) = context.files.get(file) {
        entry.fence(number, Vec::new());
        context.direct.show(&entry);
    }
}
