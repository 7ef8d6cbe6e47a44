//! What a request is about, for the log of slow ones: the file behind its view, its client, its bytes.
//!
//! Cost: one look into the views of the client. What cannot be read is refused in a moment, and is about nothing.

use serving::{Exchange, RequestSummary};
use wire::FileId;
use wire::message::access::{Access, READ, WHOLE, WRITE};
use wire::message::ahead::{Confirm, Deposit, ReadAhead};
use wire::message::cluster::{
    Announce, ApplyTruncate, AskEnd, AskNumber, FenceWindows, Lend, PullWindows, Redomain,
    TakeLayout, TakePointers, TakeServer, Tell,
};
use wire::message::direct::Map;
use wire::message::directed::{Follow, HoldRange, Lead, LetGo};
use wire::message::file::{
    Admit, Allocation, DropView, FinishAppend, Grow, JoinPointer, LeaveAtomic, LeavePointer, Lock,
    MovePointer, Preallocate, Punch, Release, Reserve, Scrub, SetView, Size, Sync, Truncate,
    Unlock,
};
use wire::message::mapping::{ChooseServer, Whole};
use wire::message::{Request, decode};

use crate::context::Identity;
use crate::sessions::{Session, Who};

/// Kinds that begin with a view.
const WITH_VIEW: [u16; 26] = [
    DropView::KIND,
    Size::KIND,
    Grow::KIND,
    Truncate::KIND,
    Preallocate::KIND,
    Punch::KIND,
    Sync::KIND,
    Release::KIND,
    Allocation::KIND,
    Reserve::KIND,
    FinishAppend::KIND,
    JoinPointer::KIND,
    LeavePointer::KIND,
    MovePointer::KIND,
    Admit::KIND,
    LeaveAtomic::KIND,
    Lock::KIND,
    Unlock::KIND,
    Scrub::KIND,
    ChooseServer::KIND,
    Map::KIND,
    Lead::KIND,
    Follow::KIND,
    HoldRange::KIND,
    LetGo::KIND,
    ReadAhead::KIND,
];

/// Kinds that begin with a file.
const WITH_FILE: [u16; 14] = [
    ApplyTruncate::KIND,
    Announce::KIND,
    AskEnd::KIND,
    Tell::KIND,
    AskNumber::KIND,
    TakeLayout::KIND,
    Redomain::KIND,
    FenceWindows::KIND,
    PullWindows::KIND,
    Lend::KIND,
    TakePointers::KIND,
    TakeServer::KIND,
    Deposit::KIND,
    Confirm::KIND,
];

/// See the [module](self).
pub(crate) fn of(identity: &Identity, session: &Session, exchange: &Exchange) -> RequestSummary {
    let (file, bytes) = subject(session, exchange);
    RequestSummary {
        server: identity.server.to_string(),
        file: file.map(|file| file.to_string()).unwrap_or_default(),
        client: match session.who {
            Who::Client { client, user } => Some((client.0, user)),
            Who::Server(_) => None,
        },
        bytes,
    }
}

/// The file, and the bytes that move.
fn subject(session: &Session, exchange: &Exchange) -> (Option<FileId>, u64) {
    let (header, control) = (exchange.header(), exchange.control());
    let number = || wire::Reader::new(control).number().ok();
    let (view, bytes) = match header.kind {
        READ | WRITE => {
            let access = match header.flags & WHOLE != 0 {
                true => Whole::decode(control).map(|whole| whole.access),
                false => Access::decode(control),
            };
            match access {
                Ok(access) => (Some(access.view), access.bytes),
                Err(_) => (None, 0),
            }
        }
        SetView::KIND => {
            let set = decode::<SetView>(control).ok();
            return (set.map(|set| set.file), 0);
        }
        kind if WITH_FILE.contains(&kind) => return (number().map(FileId), 0),
        kind if WITH_VIEW.contains(&kind) => (number(), 0),
        _ => (None, 0),
    };
    let view = view.and_then(|view| session.client.view(view).ok());
    (view.map(|view| view.file), bytes)
}
