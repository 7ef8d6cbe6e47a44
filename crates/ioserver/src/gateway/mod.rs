//! The gateway: a client's whole request, split here, each part served by the server that has it.
//!
//! ```text
//!  client --- whole request ---> this server (1) own part: store
//!                                            (2) the rest: one directed request per owner, all at once
//!         <-- everything -------             (3) put together, and which server to use next
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `split` | which bytes of a request lie where, and how they are packed |
//! | `foes` | connections to other servers, with the views of clients registered there |
//! | `drive` | requests under way to several servers, none waited for alone |
//! | `stage` | memory that requests are put together in |
//! | `choose` | which server the client should use next |
//!
//! Invariants
//! - Only a request of a client is split. What another server sends is served here or refused, so nothing
//!   goes round, and one request causes at most one request per other server of the file. The owners of all
//!   bytes stand in the layout state, so no server is ever asked by broadcast.
//! - A foe gets the request under the client's own capability, and counts it as running for the client: rights
//!   are checked and the dead are fenced where the bytes are.
//! - No thread waits for one server while another could wait for it: foes are polled together, and what
//!   foes need (buffers, gates) is never held here while they are waited for.
//! - A request fails as a whole, with one refusal that names who failed.
//!
//! Sections 3.1 and 1.7 of the specification of source 004, 2.8 (M3b, M4, M5) of source 001.

mod choose;
mod drive;
mod foes;
mod split;
mod stage;

pub(crate) use choose::{History, choose_server};
pub(crate) use foes::Foes;
pub(crate) use split::Split;
pub(crate) use stage::{Stage, Stages};

use std::sync::Arc;
use std::time::Instant;

use serving::Exchange;
use wire::link::LinkError;
use wire::message::access::{ANNOUNCED, Access, AccessAnswer, GROW, READ, THROUGH, WRITE};
use wire::message::mapping::{Whole, WholeAnswer};
use wire::{Rights, Status};

use crate::access::{
    Expense, Fault, OpenAccess, admit, find_parts, nanos, read, receive_announced, write,
    wrong_payload,
};
use crate::bounded::Search;
use crate::context::{Cluster, Storage};
use crate::files::Files;
use crate::ops::with_asker;
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::Session;
use crate::statistics::{Statistics, add};
use crate::views::RegisteredView;
use drive::{Forward, drive, push_all};

/// Requests up to this are put together in memory of the connection.
const SMALL: u64 = 64 << 10;

/// Whether a request reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// What happened to a request that was done.
struct Outcomes {
    internal: u64,
    between: u64,
    own: u64,
    /// Servers that have taken bytes, with their starts and verifiers.
    written: Vec<(u64, u64, u64)>,
}

/// Serves a whole request.
pub(crate) fn serve(
    files: &Files,
    owner: &Owner,
    session: &mut Session,
    exchange: &mut Exchange,
    kind: Kind,
) -> Result<(), Fault> {
    let flags = exchange.header().flags;
    // The frame of an announced payload takes the place of the request.
    let mut control = std::mem::take(&mut session.scratch.control);
    control.clear();
    control.extend_from_slice(exchange.control());
    let mut own_stage = std::mem::take(&mut session.scratch.stage);
    let result = serve_decoded(
        files,
        owner,
        session,
        exchange,
        &control,
        (kind, flags),
        &mut own_stage,
    );
    session.scratch.control = control;
    session.scratch.stage = own_stage;
    session.scratch.grant.abandon();
    session.scratch.pins.clear();
    if let Err(Fault::Link(_)) = result {
        add(&files.storage.statistics.whole_broken, 1);
    }
    result
}

fn serve_decoded(
    files: &Files,
    owner: &Owner,
    session: &mut Session,
    exchange: &mut Exchange,
    control: &[u8],
    (kind, flags): (Kind, u16),
    own_stage: &mut Stage,
) -> Result<(), Fault> {
    let started = Instant::now();
    let (storage, cluster) = (&*files.storage, &*files.cluster);
    if session.is_server() {
        return Err(Fault::Refused(Refused::new(
            Status::PermissionDenied,
            "a request between servers is not forwarded again; only clients send whole requests",
        )));
    }
    let whole = Whole::decode(control).map_err(Refused::from)?;
    let access = whole.access;
    if access.bytes != access.hi - access.lo {
        let text = format!(
            "bytes: a whole request of {} bytes says {}",
            access.hi - access.lo,
            access.bytes
        );
        return Err(Fault::Refused(Refused::new(Status::InvalidArgument, text)));
    }
    let rights = match kind {
        Kind::Read => Rights::READ,
        Kind::Write => Rights::WRITE,
    };
    let mut spent = Expense::default();
    let waiting = Instant::now();
    let mut lent = (access.bytes > SMALL).then(|| storage.stages.borrow(&session.borrower()));
    spent.waited += waiting.elapsed();
    let stage = match &mut lent {
        Some(lent) => &mut **lent,
        None => own_stage,
    };
    let mut opened = admit(files, owner, session, &access, rights, 0)?;
    if kind == Kind::Write {
        // A thread that waits for a stage need not wait for a client that stands still.
        let _due = session.connection.waits_for(access.bytes);
        receive(storage, exchange, &access, flags, stage)?;
    } else {
        exchange.skip_payload()?;
    }
    let view = Arc::clone(&opened.view);
    let split = Split::new(&view, &opened.known);
    let known = Arc::clone(&opened.known);
    let newer = opened.flags();
    let connection = &session.connection;
    let base = storage.limits.search_steps;
    let described = view.description_bytes();
    let mut searching = Search::new(base, access.bytes, described, Some(connection));
    split.routes(opened.file, access.bytes, &mut searching, &mut stage.routes)?;
    opened.bytes = stage.routes.bytes_of(storage.identity.server.0);
    find_parts(storage, connection, &opened, &mut session.scratch.parts)?;
    let whose = Whose {
        cluster,
        storage,
        split: &split,
        view: &view,
        // Foes get what was split here, so by the state it was split with.
        access: &Access {
            version: known.version(),
            ..access
        },
        flags: flags & THROUGH,
    };
    let outcomes = match kind {
        Kind::Read => read_all(session, opened, &whose, stage, &mut spent)?,
        Kind::Write => write_all(session, opened, &whose, stage, &mut spent)?,
    };
    if flags & GROW != 0 && kind == Kind::Write {
        with_asker(owner, session, &view, |owner, asker| {
            owner.grow(asker, access.epoch, access.end)
        })?;
    }
    count(&storage.statistics, kind, &access, &outcomes, spent.rounds);
    let (next, history) = match whole.ends {
        Some(ends) => {
            let connection = &session.connection;
            choose::after(storage, &view, &split, connection, &whole, ends)
        }
        None => (None, Vec::new()),
    };
    let routed = WholeAnswer {
        done: AccessAnswer {
            waited_ns: nanos(spent.waited),
            copied_ns: nanos(spent.copied),
            served_ns: nanos(started.elapsed()),
            rounds: spent.rounds,
            verifier: 0,
        },
        next,
        history: &history,
        internal: outcomes.internal,
        between: outcomes.between,
        own: outcomes.own,
        ..WholeAnswer::default()
    };
    let out = &mut session.scratch.out;
    routed.encode(&outcomes.written, out);
    let payload: &[&[u8]] = match kind {
        Kind::Read => &[&stage.memory[..access.bytes as usize]],
        Kind::Write => &[],
    };
    let _due = session.connection.waits_for(access.bytes);
    exchange.send(Status::Ok, newer, out, payload)?;
    Ok(())
}

/// What the parts of a request have in common.
struct Whose<'a> {
    cluster: &'a Cluster,
    storage: &'a Storage,
    split: &'a Split,
    view: &'a Arc<RegisteredView>,
    access: &'a Access<'a>,
    /// The flags of the request that count for every part of it.
    flags: u16,
}

/// Takes the payload of a write, after saying that there is room for one that was announced.
fn receive(
    storage: &Storage,
    exchange: &mut Exchange,
    access: &Access<'_>,
    flags: u16,
    stage: &mut Stage,
) -> Result<(), Fault> {
    if flags & ANNOUNCED != 0 {
        if exchange.payload_left() > 0 {
            return Err(wrong_payload(access.bytes, exchange.payload_left()));
        }
        add(&storage.statistics.announced, 1);
        receive_announced(exchange)?;
    }
    if exchange.payload_left() != access.bytes {
        return Err(wrong_payload(access.bytes, exchange.payload_left()));
    }
    Ok(exchange.receive_payload(stage.room(access.bytes as usize))?)
}

/// Begins a request at every foe that has a part.
fn forward_all<'s>(
    whose: &Whose<'_>,
    kind: Kind,
    stage: &'s mut Stage,
) -> (Option<&'s mut split::Route>, Vec<Forward<'s>>) {
    let own = whose.storage.identity.server.0;
    let mut mine = None;
    let mut forwards = Vec::new();
    for route in stage.routes.iter_mut() {
        if route.server == own {
            mine = Some(route);
            continue;
        }
        let wire_kind = match kind {
            Kind::Read => READ,
            Kind::Write => WRITE,
        };
        let begun = Forward::begin(whose, wire_kind, route);
        forwards.push(begun);
    }
    push_all(&mut forwards);
    (mine, forwards)
}

fn read_all(
    session: &mut Session,
    opened: OpenAccess,
    whose: &Whose<'_>,
    stage: &mut Stage,
    spent: &mut Expense,
) -> Result<Outcomes, Fault> {
    stage.room(whose.access.bytes as usize);
    let (mine, mut forwards) = forward_all(whose, Kind::Read, stage);
    let own = opened.bytes;
    let done = match mine {
        Some(route) => {
            let packet = route.room();
            read::read_packed(whose.storage, session, &opened, spent, packet)
        }
        None => Ok(()),
    };
    // A change of the file need not wait for foes here: each of them has a gate of its own.
    drop(opened);
    drive(&mut forwards);
    let outcomes = settle(whose, forwards, own, done)?;
    let copying = Instant::now();
    let Stage { memory, routes, .. } = stage;
    for route in routes.iter() {
        whose.split.scatter(route, memory, whose.access.lo)?;
    }
    spent.copied += copying.elapsed();
    Ok(outcomes)
}

fn write_all(
    session: &mut Session,
    opened: OpenAccess,
    whose: &Whose<'_>,
    stage: &mut Stage,
    spent: &mut Expense,
) -> Result<Outcomes, Fault> {
    let copying = Instant::now();
    let Stage { memory, routes, .. } = stage;
    for route in routes.iter_mut() {
        whose.split.gather(route, memory, whose.access.lo)?;
    }
    spent.copied += copying.elapsed();
    let (mine, mut forwards) = forward_all(whose, Kind::Write, stage);
    let own = opened.bytes;
    let done = match mine {
        Some(route) => {
            let packet = (route.packet(), whose.flags);
            write::write_packed(whose.storage, session, &opened, spent, packet)
        }
        None => Ok(()),
    };
    drop(opened);
    drive(&mut forwards);
    let mut outcomes = settle(whose, forwards, own, done)?;
    if own > 0 {
        let identity = &whose.storage.identity;
        let verifier = whose.storage.verifier();
        let here = (identity.server.0, identity.incarnation(), verifier);
        outcomes.written.push(here);
    }
    Ok(outcomes)
}

/// Gives connections back and makes one answer of all.
fn settle(
    whose: &Whose<'_>,
    forwards: Vec<Forward<'_>>,
    own: u64,
    done: Result<(), Fault>,
) -> Result<Outcomes, Fault> {
    let mut outcomes = Outcomes {
        internal: 0,
        between: 0,
        own,
        written: Vec::new(),
    };
    let mut failed: Vec<Refused> = Vec::new();
    for forward in forwards {
        outcomes.internal += u64::from(forward.was_sent());
        let (server, bytes) = (forward.server(), forward.bytes());
        match forward.end(whose.cluster) {
            Ok(ended) => {
                outcomes.between += bytes;
                if let Some((start, verifier)) = ended.written {
                    outcomes.written.push((server, start, verifier));
                }
            }
            Err(mut refused) => {
                refused.refusal.text = format!("server {server}: {}", refused.refusal.text);
                failed.push(refused);
            }
        }
    }
    let (identity, statistics) = (&whose.storage.identity, &whose.storage.statistics);
    add(&statistics.internal, outcomes.internal);
    add(&statistics.between_bytes, outcomes.between);
    match done {
        Ok(()) => {}
        Err(Fault::Refused(mut refused)) => {
            refused.refusal.text =
                format!("server {}: {}", identity.server.0, refused.refusal.text);
            failed.push(refused);
        }
        Err(link) => return Err(link),
    }
    match combine(failed) {
        None => Ok(outcomes),
        Some(refused) => Err(Fault::Refused(refused)),
    }
}

/// One refusal for all: the one that the client can do most about, with what the others say.
fn combine(mut failed: Vec<Refused>) -> Option<Refused> {
    let rank = |r: &Refused| match r.status {
        Status::StaleLayout => 0,
        Status::StaleEpoch => 1,
        Status::WrongIncarnation => 2,
        Status::StaleLease => 3,
        Status::ExpiredCapability | Status::BadCapability => 4,
        // What will not go away by itself comes before what may.
        Status::Busy | Status::ShuttingDown => 7,
        Status::Unreachable | Status::TimedOut => 6,
        _ => 5,
    };
    failed.sort_by_key(rank);
    let mut all = failed.into_iter();
    let mut first = all.next()?;
    for other in all {
        first.refusal.text = format!("{}; {}", first.refusal.text, other.refusal.text);
    }
    Some(first)
}

fn count(
    statistics: &Statistics,
    kind: Kind,
    access: &Access<'_>,
    outcomes: &Outcomes,
    rounds: u64,
) {
    statistics.served(kind == Kind::Write, outcomes.own, rounds);
    add(&statistics.whole, 1);
    add(&statistics.whole_bytes, access.bytes);
    add(&statistics.own_bytes, outcomes.own);
    // From the client here, and on to foes.
    add(&statistics.hops, 1 + u64::from(outcomes.internal > 0));
    let millionths = u128::from(outcomes.own) * 1_000_000 / u128::from(access.bytes);
    add(&statistics.matching_millionths, millionths as u64);
}

/// A connection that cannot be used any more, as a reason.
fn broken(error: &LinkError) -> Refused {
    Refused::new(Status::Unreachable, error.to_string())
}
