//! The dispatch: which function answers which kind of request, and who may send it.
//!
//! Who may send a kind stands in the table of kinds (`wire::message::KINDS`); which function does it stands in one table
//! here, and a kind of the first without a row in the second does not compile. A row has one of two forms: what `answer`s
//! returns an answer or a [`Refused`]; what `serve`s answers by itself, since bytes or descriptors go with it, and
//! returns what kept it from that. Refusals are sent and counted in one place.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};
use serving::{
    AuditEntry, AuditLog, Exchange, Outcome, Peer, PerUser, Proven, RequestSummary, Service,
};
use wire::message::access::{READ, WHOLE, WRITE};
use wire::message::ahead::{Confirm, Deposit, ReadAhead};
use wire::message::cluster::{
    Announce, ApplyTruncate, AskEnd, AskNumber, AskSizes, Fence, FenceWindows, Lend, PullWindows,
    Redomain, TakeLayout, TakePointers, TakeServer, Tell,
};
use wire::message::direct::{Attach, Map};
use wire::message::directed::{Follow, HoldRange, Lead, LetGo, Packet};
use wire::message::file::{
    Admit, Allocation, Discard, DropView, FinishAppend, Grow, JoinPointer, KeepAhead, LeaveAtomic,
    LeavePointer, ListDisks, ListSubfiles, Lock, MovePointer, Preallocate, Punch, Release, Reserve,
    Scrub, SetView, SetViewPart, Size, Sync, Truncate, Unlock, Verify,
};
use wire::message::hints::{ClearFailed, MakeBuffers};
use wire::message::mapping::ChooseServer;
use wire::message::session::{Beat, Goodbye, Hello, Ping, Prove, Shutdown, Statistics, Welcome};
use wire::message::{Bytes, KINDS, Kind, Receiver, Refusal, Request, Sender};
use wire::{ServerId, Status};

use crate::access::{Fault, read, write};
use crate::ahead;
use crate::direct::{attach, map};
use crate::directed::{self, Operations};
use crate::files::Files;
use crate::gateway;
use crate::moving;
use crate::ops::{self, Departures, ask_owner};
use crate::owner::Owner;
use crate::refused::Refused;
use crate::sessions::{Session, Who};
use crate::statistics::add;
use crate::summary;

/// What is served: the files of this server, the owner's role, and the collective accesses that are directed here.
pub(crate) struct IoService {
    pub(crate) files: Arc<Files>,
    pub(crate) owner: Arc<Owner>,
    pub(crate) operations: Arc<Operations>,
    departures: Departures,
    connections: Arc<PerUser>,
    /// How long the host of a client elsewhere may be silent.
    client_silence: Duration,
    /// From when on a request is slow and told in the log.
    slow: Option<Duration>,
    /// Where actions of administrators are put on record.
    audit: Option<AuditLog>,
    is_ending: Mutex<bool>,
    ended: Condvar,
}

/// Serves a request whose function returns the answer.
fn answer<R: Request>(
    exchange: &mut Exchange,
    run: impl FnOnce(R) -> Result<R::Answer, Refused>,
) -> Result<(), Fault> {
    let request = exchange.request::<R>().map_err(Refused::from)?;
    Ok(exchange.answer(&run(request)?)?)
}

/// Serves a request whose function answers by itself.
fn serve<R: Request>(
    exchange: &mut Exchange,
    run: impl FnOnce(R, &mut Exchange) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let request = exchange.request::<R>().map_err(Refused::from)?;
    run(request, exchange)
}

/// Finds the row of the kind that has come. Rows for accesses to bytes, which have no struct, come first.
macro_rules! dispatch {
    ($exchange:ident;
     bytes { $($number:ident => $access:expr;)* }
     requests { $($form:ident $request:ident => $run:expr;)* }) => {{
        const _: () = assert!(are_all_served(&[$($request::KIND),*]), "rows for all kinds");
        match $exchange.header().kind {
            $($number => $access,)*
            $($request::KIND => $form::<$request>($exchange, $run),)*
            _ => Err(unknown().into()),
        }
    }};
}

/// Whether the kinds that have a row here are those that the table of kinds sends to I/O servers.
const fn are_all_served(rows: &[u16]) -> bool {
    let mut at = 0;
    while at < KINDS.len() {
        let kind = &KINDS[at];
        let is_for_manager = matches!(kind.to, Receiver::Manager);
        // Parts of a conversation that another kind begins.
        let is_inside = matches!(kind.number, Hello::KIND | Prove::KIND | Packet::KIND);
        let mut row = 0;
        while row < rows.len() && rows[row] != kind.number {
            row += 1;
        }
        if (row < rows.len()) == (is_for_manager || is_inside) {
            return false;
        }
        at += 1;
    }
    true
}

impl IoService {
    pub(crate) fn new(
        files: Arc<Files>,
        owner: Arc<Owner>,
        operations: Arc<Operations>,
        departures: Departures,
        client_silence: Duration,
    ) -> Self {
        let most = files.storage.limits.connections.connections_per_user;
        IoService {
            files,
            owner,
            operations,
            departures,
            connections: PerUser::new("connections", "--connections-per-user", most),
            client_silence,
            slow: None,
            audit: None,
            is_ending: Mutex::new(false),
            ended: Condvar::new(),
        }
    }

    /// With what it tells those who look after it.
    pub(crate) fn telling(self, slow: Option<Duration>, audit: Option<AuditLog>) -> Self {
        IoService {
            slow,
            audit,
            ..self
        }
    }

    /// Puts an action of an administrator on record that was done or refused.
    fn noted<T>(
        &self,
        session: &Session,
        action: &str,
        arguments: Value,
        result: Result<T, Refused>,
    ) -> Result<T, Refused> {
        if let (Some(audit), Who::Client { client, user }) = (&self.audit, session.who) {
            audit.note(&AuditEntry {
                by: &self.files.identity.server.to_string(),
                action,
                user,
                client: Some(client.0),
                arguments,
                refusal: result.as_ref().err().map(|r| r.refusal.text.clone()),
            });
        }
        result
    }

    /// The server is to end.
    pub(crate) fn end(&self) {
        *self.is_ending.lock() = true;
        self.ended.notify_all();
    }

    /// Waits until the server is to end.
    pub(crate) fn wait(&self) {
        let mut ending = self.is_ending.lock();
        self.ended.wait_while(&mut ending, |ending| !*ending);
    }

    /// Answers that something was not done, and counts it.
    fn refuse(&self, exchange: &mut Exchange, mut refused: Refused) -> Outcome {
        let storage = &self.files.storage;
        if let (Status::NoMemory, Some(remedy)) = (refused.status, &storage.when_full) {
            refused.status = Status::NoSpace;
            refused.refusal.text = format!("{}; {remedy}", refused.refusal.text);
        }
        storage.statistics.refused(refused.status);
        exchange.refuse(refused.status, &refused.refusal)
    }

    /// Serves [`Shutdown`]: the server ends when it has answered, also if something could not be made durable.
    fn shut_down(&self, session: &Session, exchange: &mut Exchange) -> Result<(), Fault> {
        let allowed = session.demand_operator();
        self.noted(session, "shutdown", json!({}), allowed)?;
        let done = match ops::shutdown(&self.files, &self.owner) {
            Ok(()) => exchange.answer(&()),
            Err(refused) => self.refuse(exchange, refused),
        };
        self.end();
        Ok(done?)
    }

    /// Serves what its sender may send.
    fn request(&self, s: &mut Session, exchange: &mut Exchange) -> Result<(), Fault> {
        let (files, owner, operations) = (&*self.files, &*self.owner, &*self.operations);
        let (identity, storage) = (&*files.identity, &*files.storage);
        let is_whole = exchange.header().flags & WHOLE != 0;
        dispatch! { exchange;
        bytes {
            READ => match is_whole {
                false => read::serve(files, owner, s, exchange),
                true => gateway::serve(files, owner, s, exchange, gateway::Kind::Read),
            };
            WRITE => match is_whole {
                false => write::serve(files, owner, s, exchange),
                true => gateway::serve(files, owner, s, exchange, gateway::Kind::Write),
            };
        }
        requests {
            answer Ping => |_| Ok(());
            answer Verify => |_| Ok(identity.verifiers);
            answer Statistics => |_| Ok(ops::statistics(files, owner));
            answer Beat => |_| {
                add(&storage.statistics.beats, 1);
                Ok(self.departures.beat())
            };
            answer Goodbye => |_| {
                ops::goodbye(&self.departures, owner, s);
                Ok(())
            };
            serve Shutdown => |_, x| self.shut_down(s, x);

            answer SetView => |r| ops::set_view(files, s, r);
            answer SetViewPart => |r| ops::set_view_part(files, s, &r);
            answer DropView => |r| ops::drop_view(files, s, &r);
            answer ReadAhead => |r| ahead::read_ahead(files, s, &r);
            answer ChooseServer => |r| gateway::choose_server(files, s, &r);
            answer HoldRange => |r| ops::hold_range(files, owner, s, &r);
            answer LetGo => |r| ops::let_go(files, s, &r);
            answer Sync => |r| ops::sync(files, owner, s, &r);
            answer Preallocate => |r| ops::preallocate(files, owner, s, &r);
            answer KeepAhead => |r| ops::keep_ahead(files, owner, s, &r);
            answer Punch => |r| ops::punch(files, owner, s, &r);
            answer Allocation => |r| ops::allocated(files, s, &r);
            answer Scrub => |r| ops::scrub(files, s, &r);
            answer ListSubfiles => |r| ops::list_subfiles(&storage.stored, s, &r);
            answer Discard => |r| {
                let arguments = json!({
                    "file": r.subfile.file.0,
                    "generation": r.subfile.generation,
                    "subfile": r.subfile.index,
                    "is_removed": r.is_removed,
                });
                let done = ops::discard(files, s, &r);
                self.noted(s, "discard", arguments, done)
            };
            answer ListDisks => |_| ops::list_disks(&storage.stored, s);
            answer ClearFailed => |_| {
                let done = ops::clear_failed(&storage.stored, s);
                self.noted(s, "clear_failed", json!({}), done)
            };
            answer MakeBuffers => |r| Ok(storage.buffers.make(r.bytes));
            serve Attach => |_, x| attach(files, s, x);
            serve Map => |r, x| map(files, owner, s, x, &r);
            serve Lead => |r, x| directed::lead(operations, files, owner, s, x, &r);
            serve Follow => |r, x| directed::follow(operations, files, s, x, &r);

            answer Size => |r| ask_owner(owner, s, r, |o, a, _| o.size(a));
            answer Grow => |r| ask_owner(owner, s, r, |o, a, r| o.grow(a, r.epoch, r.end));
            answer Truncate => |r| ask_owner(owner, s, r, |o, a, r| o.truncate(a, r.handle, r.to, r.request));
            answer Release => |r| ask_owner(owner, s, r, |o, a, _| o.release(a));
            answer Reserve => |r| ask_owner(owner, s, r, |o, a, r| o.reserve(a, r.request, r.len));
            answer FinishAppend => |r| ask_owner(owner, s, r, |o, a, r| o.appended(a, r.request, r.epoch, r.end));
            answer JoinPointer => |r| ask_owner(owner, s, r, |o, a, r| o.join_pointer(a, r.group, r.position));
            answer LeavePointer => |r| ask_owner(owner, s, r, |o, a, r| o.leave_pointer(a, r.group));
            answer MovePointer => |r| ask_owner(owner, s, r, |o, a, r| {
                o.move_pointer(a, r.group, r.request, r.how, r.amount)
            });
            answer Admit => |r| ask_owner(owner, s, r, |o, a, r| o.admit(a, r.handle));
            answer LeaveAtomic => |r| ask_owner(owner, s, r, |o, a, r| o.leave_atomic(a, r.handle));
            serve Lock => |r, x| ops::lock(&self.departures.silences(&self.files, &self.owner), s, x, &r);
            answer Unlock => |r| ops::unlock(owner, s, r);

            answer ApplyTruncate => |r| files.apply_truncate(&r);
            answer AskSizes => |r| Ok(owner.sizes(&r.files));
            answer Announce => |r| owner.announced(r.file, s.server(identity));
            answer AskEnd => |r| files.ask_end(r.file);
            answer Fence => |r| files.fence(r.client);
            answer Tell => |r| files.tell(&r);
            answer AskNumber => |r| Ok(files.entry(r.file).number());
            answer TakeLayout => |r| ops::take_layout(files, owner, r.file);
            answer Redomain => |r| files.redomain(r.file);
            answer FenceWindows => |r| moving::fence_windows(files, owner, &r);
            answer PullWindows => |r| moving::pull_windows(files, owner, &r);
            serve Lend => |r, x| moving::lend(files, s, x, &r);
            answer TakePointers => |r| {
                owner.take_pointers(r.file, r.pointers);
                Ok(())
            };
            answer TakeServer => |r| owner.take_server(r.file, s.server(identity), r.start);
            answer Deposit => |r| Ok(operations.prefetch.deposit(&r));
            answer Confirm => |r| Ok(operations.prefetch.deposits.confirm(&r));
        }}
    }
}

fn unknown() -> Refused {
    Refused::new(Status::Unsupported, "an I/O server has no answer to this")
}

/// Whether a session may send a kind to an I/O server; who does.
fn check_sender(session: &Session, kind: u16) -> Result<Sender, Refused> {
    if matches!(kind, READ | WRITE) {
        return Ok(Sender::Anyone);
    }
    let known = Kind::of(kind).filter(|kind| kind.to != Receiver::Manager);
    let from = known.ok_or_else(unknown)?.from;
    let denied = match (from, session.who) {
        (Sender::Client | Sender::Rank, Who::Server(_)) => "this is for clients only",
        (Sender::Server | Sender::Manager, Who::Client { .. }) => {
            "this is for servers of the cluster only"
        }
        (Sender::Manager, Who::Server(server)) if server != ServerId::MANAGER => {
            "this is for the metadata manager only"
        }
        _ => return Ok(from),
    };
    Err(Refused::new(Status::PermissionDenied, denied))
}

impl Service for IoService {
    type Session = Session;

    fn hello(
        &self,
        peer: &Peer,
        hello: &Hello,
        proven: &Proven,
    ) -> Result<(Session, Welcome), (Status, Refusal)> {
        let (identity, storage) = (&self.files.identity, &self.files.storage);
        let sessions = &self.files.sessions;
        let who = ops::recognise(&identity.key, peer, hello, proven)?;
        // Before there is a session: a client that finds no room has not come, and so does not go.
        let taken = match who {
            Who::Client { user, .. } => Some(self.connections.take(user)?),
            Who::Server(_) => None,
        };
        let (mut session, is_first) = sessions
            .open(who, &storage.limits)
            .map_err(|r| (r.status, r.refusal))?;
        // Known of Unix sockets only.
        session.process = peer.pid;
        session.taken = taken;
        if let (true, Who::Client { client, user }) = (is_first, who) {
            tracing::info!(
                client = client.0,
                user,
                host = hello.process.host,
                "client came"
            );
            let (files, owner) = (&self.files, &self.owner);
            self.departures.watch(files, owner, &session, peer, hello);
        }
        let welcome = Welcome {
            client: session.client.id,
            session: Bytes::default(),
            server: identity.server,
            incarnation: identity.incarnation(),
            rendezvous_bytes: storage.rendezvous_bytes,
            message_bytes: storage.message_bytes,
            proof: Bytes::default(),
        };
        Ok((session, welcome))
    }

    fn handle(&self, session: &mut Session, exchange: &mut Exchange) -> Outcome {
        let statistics = &self.files.storage.statistics;
        add(&statistics.requests, 1);
        add(&session.client.requests, 1);
        session.connection.know(exchange.socket());
        let allowed = check_sender(session, exchange.header().kind);
        if let Ok(Sender::Server | Sender::Manager) = allowed {
            add(&statistics.server_requests, 1);
        }
        let done = match allowed {
            Ok(_) => self.request(session, exchange),
            Err(refused) => Err(refused.into()),
        };
        let done = match done {
            Ok(()) => Ok(()),
            Err(Fault::Refused(refused)) => self.refuse(exchange, refused),
            Err(Fault::Link(error)) => Err(error),
        };
        session.connection.idle();
        done
    }

    fn waits_for_others(&self, kind: u16) -> bool {
        // For locks, and for the other ranks of a team.
        matches!(kind, Lock::KIND | Lead::KIND | Follow::KIND | Packet::KIND)
    }

    fn slow(&self, _: u16) -> Option<Duration> {
        self.slow
    }

    fn summary(&self, session: &Session, exchange: &Exchange) -> RequestSummary {
        summary::of(&self.files.identity, session, exchange)
    }

    fn silence(&self) -> Duration {
        self.client_silence
    }

    fn limits(&self) -> serving::Limits {
        self.files.storage.limits.connections
    }

    fn user(&self, session: &Session) -> Option<u32> {
        match session.who {
            Who::Client { user, .. } => Some(user),
            Who::Server(_) => None,
        }
    }

    fn ended(&self, session: Session) {
        self.departures.ended(&self.files, &self.owner, &session);
    }
}
