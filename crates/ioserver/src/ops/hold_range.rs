//! `HoldRange`: ranges of a file that one connection holds: no other reads or writes there from the answer on, by message or
//! through shared memory, until the range is let go of or the connection ends.
//!
//! What a sieved write needs between reading a window and writing it back. Built on the fences of the gate, like
//! the windows of a move; an access that meets one waits a little and is told to repeat.
//!
//! Invariants
//! - Ranges of two holders do not meet: the second is told to repeat.
//! - What is held does not move. A move waits for holders, at every server of the file, before it fences; and
//!   a client that wants to hold a range which is fenced or has moved since it looked is told to repeat. So the servers that
//!   a client has asked are those of the range until it lets go.
//! - What other servers forward for the client that holds a range gets in: its requests may go through one of them.
//! - A hold ends with its connection, so a client that dies keeps no one out. One that stands still loses its
//!   connections when another has waited for it for two seconds; it finds that out before it writes.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::message::directed::HoldRange;
use wire::{FileId, Rights, Status};

use crate::files::{Entrance, Files};
use crate::owner::Owner;
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

/// A number for a range that is held, that of no other.
pub(super) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Serves [`HoldRange`].
pub(crate) fn hold_range(
    files: &Files,
    owner: &Owner,
    session: &mut Session,
    request: &HoldRange,
) -> Result<u64, Refused> {
    let _busy = session.client.begin()?;
    let view = session.client.view(request.view)?;
    view.demand(request.view, Rights::WRITE)?;
    if request.lo >= request.hi || request.hi > falls::MAX_OFFSET {
        let text = format!("{}..{} is no range of a file", request.lo, request.hi);
        return Err(Refused::new(Status::InvalidArgument, text));
    }
    if session.holds.len() >= MOST {
        let text = format!("{MOST} ranges are held on this connection; let go of one first");
        return Err(Refused::new(Status::QuotaExceeded, text));
    }
    let entry = &view.entry;
    files.known(entry)?;
    let number = next_number();
    let range = request.lo..request.hi;
    let mut looks = 0;
    loop {
        match entry.hold(number, session.client.id, &range, &request.version.0) {
            Entrance::In(()) => break,
            Entrance::No(refused) => return Err(refused),
            Entrance::Behind if looks < 3 => {
                looks += 1;
                files.refresh(entry)?;
            }
            Entrance::New if looks < 3 => {
                looks += 1;
                files.be_taken(owner, entry)?;
            }
            Entrance::Behind | Entrance::New => {
                let text = "the metadata manager does not know the state of the request yet";
                return Err(Refused::new(Status::Busy, text));
            }
        }
    }
    files.direct.show(entry);
    let held = entry
        .drain_ranges(std::slice::from_ref(&range), &files.hurry())
        .and_then(|()| files.stop_claims(entry));
    if let Err(refused) = held {
        release(files, view.file, number);
        return Err(refused);
    }
    session.holds.push(Hold {
        file: view.file,
        number,
    });
    Ok(number)
}

/// Lets others in again.
pub(crate) fn release(files: &Files, file: FileId, number: u64) {
    if let Some(entry) = files.get(file) {
        entry.fence(number, &[]);
        files.direct.show(&entry);
    }
}
