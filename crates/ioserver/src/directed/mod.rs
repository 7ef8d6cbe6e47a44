//! Collective accesses that this server directs: one request for all ranks, its blocks in the order of the
//! store, and transfers to and from the connections of the ranks.
//!
//! ```text
//!  store thread      blocks 0..M | blocks M..2M | ...      one round ahead
//!  rank connections        packets of round 0 | packets of round 1 | ...    each its own thread
//! ```
//!
//! Rank 0 brings the distribution and its connection's thread runs the store's side beside its own transfers;
//! the other ranks' threads join by the number of the operation.
//!
//! Left to others: choosing between this and independent accesses (the client), growing the file (rank 0).

mod blocks;
mod distribution;
mod exchange;
mod operation;
mod prefetch;
mod transfer;

pub(crate) use operation::Operations;
pub(crate) use prefetch::Watch;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use serving::Exchange;
use wire::link::LinkError;
use wire::message::directed::{DirectedAnswer, Follow, Lead};
use wire::{ClientId, Rights, Status};

use crate::access::Fault;
use crate::context::Storage;
use crate::files::{AccessTerms, Files};
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::{Session, Sessions, Who};
use crate::statistics::add;
use crate::views::RegisteredView;
use blocks::Blocks;
use distribution::Distribution;
use operation::{Operation, Plan, Waiter};
use transfer::Transfer;

/// Bytes of a round, at most.
const ROUND_BYTES: u64 = 16 << 20;

/// Serves the request of rank 0.
pub(crate) fn lead(
    operations: &Operations,
    files: &Files,
    owner: &Owner,
    session: &mut Session,
    exchange: &mut Exchange,
    lead: &Lead,
) -> Result<(), Fault> {
    let started = Instant::now();
    let Who::Client {
        client: leader,
        user,
    } = session.who
    else {
        let text = "servers lead no collective access";
        return Err(Refused::new(Status::PermissionDenied, text).into());
    };
    let operation = operations.lead(leader, user, lead.operation)?;
    let begun = begin(operations, files, owner, session, &operation, lead);
    if let Err(refused) = &begun {
        operation.fail(refused.clone());
    }
    operations.tell();
    let (view, plan) = begun?;
    add(&files.storage.statistics.directed, 1);
    let blocks = Blocks {
        files,
        owner,
        entry: &view.entry,
        operation: &operation,
        plan: &plan,
        version: &lead.version.0,
        epoch: lead.epoch,
    };
    let rank = (plan.distribution.ranks[0].has_bytes).then_some(0);
    let prefetch = &operations.prefetch;
    let ready = match lead.writes {
        true => None,
        false => {
            let wanted = view.reading.wanted();
            let known = &plan.distribution.known;
            prefetch.take(&view.entry, known, lead, wanted)
        }
    };
    let result = thread::scope(|scope| {
        let spawned = thread::Builder::new()
            .name("blocks of a collective access".into())
            .spawn_scoped(scope, || blocks.run(ready));
        if let Err(error) = spawned {
            operation.fail(Refused::new(Status::NoMemory, format!("a thread: {error}")));
        }
        run(files, session, exchange, &operation, &view, &plan, rank)
    });
    let storage = &files.storage;
    let result = end(storage, session, exchange, &operation, result, started);
    match operation.is_failed() {
        false => {
            operations.forget(leader, lead.operation);
            let wanted = view.reading.wanted();
            if !lead.writes && wanted.is_collective() {
                prefetch.observe(&view.entry, lead, wanted);
            }
        }
        true => operation.clear(),
    }
    result
}

/// Serves the request of another rank.
pub(crate) fn follow(
    operations: &Operations,
    files: &Files,
    session: &mut Session,
    exchange: &mut Exchange,
    follow: &Follow,
) -> Result<(), Fault> {
    let started = Instant::now();
    // A client that is no member of it learns nothing and changes nothing.
    let (operation, plan) = be_member(operations, &files.sessions, session, follow)?;
    let joined = join(session, &operation, &plan, follow);
    if let Err(refused) = &joined {
        operation.fail(refused.clone());
    }
    let view = joined?;
    let rank = follow.rank as usize;
    let rank = (plan.distribution.ranks[rank].has_bytes).then_some(rank);
    let result = run(files, session, exchange, &operation, &view, &plan, rank);
    let storage = &files.storage;
    end(storage, session, exchange, &operation, result, started)
}

fn right(writes: bool) -> Rights {
    match writes {
        true => Rights::WRITE,
        false => Rights::READ,
    }
}

fn check_right(view: &RegisteredView, number: u64, writes: bool) -> Result<(), Refused> {
    if view.works_for.is_some() {
        let text = format!("view {number} is of a server; ranks are clients");
        return Err(Refused::new(Status::PermissionDenied, text));
    }
    view.demand(number, right(writes))
}

fn begin(
    operations: &Operations,
    files: &Files,
    owner: &Owner,
    session: &Session,
    operation: &Operation,
    lead: &Lead,
) -> Result<(Arc<RegisteredView>, Arc<Plan>), Refused> {
    let view = session.client.view(lead.view)?;
    check_right(&view, lead.view, lead.writes)?;
    let planned = AccessTerms {
        version: &lead.version.0,
        epoch: lead.epoch,
        only_reads: !lead.writes,
        ..AccessTerms::default()
    };
    let storage = &files.storage;
    let (_running, known, _) = files.enter(owner, &view.entry, &planned)?;
    if known.layout().pieces.len() != 1 {
        return Err(Refused::new(
            Status::Unsupported,
            "a file that is being given another layout is not accessed in the order of the store",
        ));
    }
    let limit = storage.stored.store().usage().memory_limit_bytes;
    let most = ROUND_BYTES.min(limit / 8);
    let (compiled, steps) = (&operations.compiled, storage.limits.search_steps);
    let connection = Some(&session.connection);
    let distribution = Distribution::new(compiled, &known, lead, most, steps, connection)?;
    if distribution.ranks[0].client != session.client.id {
        let text = "rank 0 itself brings the distribution";
        return Err(Refused::new(Status::PermissionDenied, text));
    }
    let plan = operation.begin(Plan::new(distribution, lead.writes, lead.by_record))?;
    Ok((view, plan))
}

/// Waits for the leader, and finds out whether the client is the rank that it says.
fn be_member(
    operations: &Operations,
    sessions: &Sessions,
    session: &Session,
    follow: &Follow,
) -> Result<(Arc<Operation>, Arc<Plan>), Refused> {
    let file = session.client.view(follow.view).map(|view| view.file).ok();
    let (leader, number) = (follow.leader, follow.operation);
    let operation = operations.wait_for(sessions, &session.connection, file, leader, number)?;
    let plan = operation.plan(session.client.id)?;
    let rank = usize::try_from(follow.rank).unwrap_or(usize::MAX);
    let (client, ranks) = (session.client.id, &plan.distribution.ranks);
    if ranks.get(rank).is_some_and(|here| here.client == client) {
        return Ok((operation, plan));
    }
    let refused = Refused::new(
        Status::PermissionDenied,
        format!("{client} is not rank {rank} of this operation"),
    );
    // A member that takes itself for another rank would do what no other expects.
    if ranks.iter().any(|here| here.client == client) {
        operation.fail(refused.clone());
    }
    Err(refused)
}

fn join(
    session: &Session,
    operation: &Operation,
    plan: &Plan,
    follow: &Follow,
) -> Result<Arc<RegisteredView>, Refused> {
    let view = session.client.view(follow.view)?;
    let rank = usize::try_from(follow.rank).unwrap_or(usize::MAX);
    if plan.distribution.known.file() != view.file {
        let text = format!("view {} is not of the file of this operation", follow.view);
        return Err(Refused::new(Status::InvalidArgument, text));
    }
    check_right(&view, follow.view, plan.writes)?;
    operation.join(rank)?;
    Ok(view)
}

/// The transfers of one rank, and waiting for the others.
fn run(
    files: &Files,
    session: &mut Session,
    exchange: &mut Exchange,
    operation: &Operation,
    view: &RegisteredView,
    plan: &Plan,
    rank: Option<usize>,
) -> Result<(), Fault> {
    let _busy = session.client.begin()?;
    let who = Waiter::Rank {
        connection: &session.connection,
        file: view.file,
    };
    session.connection.busy_with(view.file);
    if let Some(rank) = rank {
        operation.came(rank);
        add(&files.storage.statistics.directed_ranks, 1);
        let mut transfer = Transfer {
            storage: &files.storage,
            sessions: &files.sessions,
            operation,
            plan,
            rank,
            who: session.who,
            connection: &session.connection,
            file: view.file,
            out: &mut session.scratch.out,
        };
        match plan.writes {
            false => transfer.read(exchange, who)?,
            true => transfer.write(exchange, who)?,
        }
    }
    Ok(operation.wait_until_done(&files.sessions, who)?)
}

fn end(
    storage: &Storage,
    session: &Session,
    exchange: &mut Exchange,
    operation: &Operation,
    result: Result<(), Fault>,
    started: Instant,
) -> Result<(), Fault> {
    if let Err(fault) = result {
        operation.fail(match &fault {
            Fault::Refused(refused) => refused.clone(),
            Fault::Link(error) => gone(session.client.id, error),
        });
        add(&storage.statistics.directed_failed, 1);
        return Err(fault);
    }
    let done = DirectedAnswer {
        blocks: operation.blocks.load(Ordering::Relaxed),
        rounds: operation.rounds(),
        packets: operation.packets.load(Ordering::Relaxed),
        served_ns: crate::access::nanos(started.elapsed()),
        verifier: storage.verifier(),
    };
    Ok(exchange.answer(&done)?)
}

/// What the others hear when a rank is gone.
fn gone(client: ClientId, error: &LinkError) -> Refused {
    Refused::new(
        Status::Unreachable,
        format!("{client} went away in the middle of a collective access: {error}"),
    )
}

fn internal(error: &kernels::BoundsError) -> Fault {
    Fault::Link(LinkError::Io(io::Error::other(error.to_string())))
}
