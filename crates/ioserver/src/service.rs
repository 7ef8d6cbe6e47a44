//! The dispatch: which function answers which kind of request, and who may send it.
//!
//! Who may send a kind stands in the table of kinds (`wire::message::KINDS`); what is answered by which function stands
//! here. Handlers return an answer or a [`Refused`]; this module sends either. Accesses to bytes and what comes with
//! descriptors answer by themselves.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serving::{Exchange, Outcome, Peer, PerUser, Proven, Service};
use wire::message::access::{READ, WHOLE, WRITE};
use wire::message::ahead::{Confirm, Deposit, ReadAhead};
use wire::message::cluster::{
    ApplyTruncate, AskEnd, AskNumber, Fence, FenceWindows, Lend, PullWindows, Redomain,
    TakePointers, TakeServer, Tell, Thaw,
};
use wire::message::direct::{Attach, Map};
use wire::message::directed::{Follow, HoldRange, Lead, LetGo};
use wire::message::file::{
    Admit, Allocated, Appended, DropView, Grow, JoinPointer, LeaveAtomic, LeavePointer, ListDisks,
    ListSubfiles, Lock, MovePointer, Preallocate, Release, Reserve, Scrub, SetView, SetViewPart,
    Size, Sync, Truncate, Unlock, Verify,
};
use wire::message::hints::{ClearFailed, MakeBuffers};
use wire::message::mapping::ChooseServer;
use wire::message::session::{Beat, Goodbye, Hello, Ping, Shutdown, Statistics, Welcome};
use wire::message::{Bytes, Kind, Receiver, Refusal, Request, Sender};
use wire::{ServerId, Status};

use crate::access::{read, write};
use crate::ahead;
use crate::context::Context;
use crate::direct::{attach, map};
use crate::directed;
use crate::gateway;
use crate::moving;
use crate::ops::{self, Departures, ask_owner};
use crate::refused::Refused;
use crate::sessions::{Session, Who};
use crate::statistics::add;

/// What is served.
pub(crate) struct IoService {
    pub(crate) context: Arc<Context>,
    pub(crate) departures: Departures,
    connections: Arc<PerUser>,
    /// How long the host of a client elsewhere may be silent.
    client_silence: Duration,
    is_ending: Mutex<bool>,
    ended: Condvar,
}

impl IoService {
    pub(crate) fn new(
        context: Arc<Context>,
        departures: Departures,
        client_silence: Duration,
    ) -> Self {
        let most = context.storage.limits.connections.connections_per_user;
        IoService {
            context,
            departures,
            connections: PerUser::new("connections", "--connections-per-user", most),
            client_silence,
            is_ending: Mutex::new(false),
            ended: Condvar::new(),
        }
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
    pub(crate) fn refuse(&self, exchange: &mut Exchange, mut refused: Refused) -> Outcome {
        let when_full = &self.context.storage.when_full;
        if let (Status::NoMemory, Some(remedy)) = (refused.status, when_full) {
            refused.status = Status::NoSpace;
            refused.refusal.text = format!("{}; {remedy}", refused.refusal.text);
        }
        self.context.statistics.refused(refused.status);
        exchange.refuse(refused.status, &refused.refusal)
    }

    fn answer<R: Request>(
        &self,
        exchange: &mut Exchange,
        run: impl FnOnce(R) -> Result<R::Answer, Refused>,
    ) -> Outcome {
        let result = exchange.request::<R>().map_err(Refused::from);
        match result.and_then(run) {
            Ok(answer) => exchange.answer(&answer),
            Err(refused) => self.refuse(exchange, refused),
        }
    }

    /// Serves an access to bytes.
    fn access(&self, session: &mut Session, exchange: &mut Exchange) -> Outcome {
        let is_whole = exchange.header().flags & WHOLE != 0;
        match (exchange.header().kind, is_whole) {
            (READ, false) => read::serve(self, session, exchange),
            (READ, true) => gateway::serve(self, session, exchange, gateway::Kind::Read),
            (_, false) => write::serve(self, session, exchange),
            (_, true) => gateway::serve(self, session, exchange, gateway::Kind::Write),
        }
    }

    /// Serves [`Shutdown`]: the server ends when it has answered, also if something could not be made durable.
    fn shut_down(&self, session: &Session, exchange: &mut Exchange) -> Outcome {
        let allowed = session.demand_operator();
        let is_allowed = allowed.is_ok();
        let done = self.answer(exchange, |_: Shutdown| {
            allowed?;
            self.context.owner.flush_dirty_sizes();
            Ok(self.context.storage.stored.close()?)
        });
        if is_allowed {
            self.end();
        }
        done
    }

    /// Serves a request of the table of kinds, whose sender may send it.
    fn request(&self, session: &mut Session, exchange: &mut Exchange) -> Outcome {
        let context = &*self.context;
        let (identity, cluster, storage) = (&context.identity, &context.cluster, &context.storage);
        let (files, owner, operations) = (&context.files, &context.owner, &context.operations);
        macro_rules! answers {
            ($($request:ident => $work:expr;)*) => {
                match exchange.header().kind {
                    $($request::KIND => self.answer::<$request>(exchange, $work),)*
                    _ => self.refuse(exchange, unknown()),
                }
            };
        }
        match exchange.header().kind {
            Attach::KIND => return attach(self, session, exchange),
            Map::KIND => return map(self, session, exchange),
            Lead::KIND => return directed::lead(self, session, exchange),
            Follow::KIND => return directed::follow(self, session, exchange),
            Lend::KIND => return moving::lend(self, session, exchange),
            Lock::KIND => return ops::lock(self, session, exchange),
            Shutdown::KIND => return self.shut_down(session, exchange),
            // Not released again when the connection ends.
            Unlock::KIND => {
                if let Ok(request) = exchange.request::<Unlock>() {
                    session.locks.retain(|&r| r != request.request);
                }
            }
            _ => {}
        }
        let s = session;
        answers! {
            Ping => |_| Ok(());
            Verify => |_| Ok(identity.verifiers);
            Statistics => |_| Ok(ops::statistics(&self.context));
            Beat => |_| {
                add(&context.statistics.beats, 1);
                Ok(self.departures.beat())
            };
            Goodbye => |_| {
                ops::goodbye(&self.departures, owner, s);
                Ok(())
            };

            SetView => |r| ops::set_view(files, storage, s, r);
            SetViewPart => |r| ops::set_view_part(files, s, &r);
            DropView => |r| ops::drop_view(identity, s, &r);
            ReadAhead => |r| ahead::read_ahead(files, storage, s, &r);
            ChooseServer => |r| gateway::choose_server(files, storage, s, &r);
            HoldRange => |r| ops::hold(files, owner, s, &r);
            LetGo => |r| ops::let_go(files, s, &r);
            Sync => |r| ops::sync(files, owner, s, &r);
            Preallocate => |r| ops::preallocate(files, owner, s, &r);
            Allocated => |r| ops::allocated(files, s, &r);
            Scrub => |r| ops::scrub(files, s, &r);
            ListSubfiles => |r| ops::list_subfiles(&storage.stored, s, &r);
            ListDisks => |_| {
                s.demand_operator()?;
                Ok(storage.stored.disk_list())
            };
            ClearFailed => |_| {
                s.demand_operator()?;
                storage.stored.restore_disks();
                Ok(())
            };
            MakeBuffers => |r| Ok(storage.buffers.make(r.bytes));

            Size => |r| ask_owner(owner, s, r, |o, a, _| o.size(a));
            Grow => |r| ask_owner(owner, s, r, |o, a, r| o.grow(a, r.epoch, r.end));
            Truncate => |r| ask_owner(owner, s, r, |o, a, r| o.truncate(a, r.handle, r.to, r.request));
            Release => |r| ask_owner(owner, s, r, |o, a, _| o.release(a));
            Reserve => |r| ask_owner(owner, s, r, |o, a, r| o.reserve(a, r.request, r.len));
            Appended => |r| ask_owner(owner, s, r, |o, a, r| o.appended(a, r.request, r.epoch, r.end));
            JoinPointer => |r| ask_owner(owner, s, r, |o, a, r| o.join_pointer(a, r.group, r.position));
            LeavePointer => |r| ask_owner(owner, s, r, |o, a, r| o.leave_pointer(a, r.group));
            MovePointer => |r| ask_owner(owner, s, r, |o, a, r| {
                o.move_pointer(a, r.group, r.request, r.how, r.amount)
            });
            Admit => |r| ask_owner(owner, s, r, |o, a, r| o.admit(a, r.handle));
            LeaveAtomic => |r| ask_owner(owner, s, r, |o, a, r| o.leave_atomic(a, r.handle));
            Unlock => |r| ask_owner(owner, s, r, |o, a, r| o.unlock(a, r.request));

            ApplyTruncate => |r| files.apply_truncate(&r);
            AskEnd => |r| files.ask_end(r.file);
            Fence => |r| files.fence(r.client);
            Tell => |r| files.tell(&r);
            AskNumber => |r| Ok(files.entry(r.file).number());
            Thaw => |r| ops::thaw(files, owner, r.file);
            Redomain => |r| files.redomain(r.file);
            FenceWindows => |r| moving::fence_windows(files, owner, &r);
            PullWindows => |r| moving::pull_windows(files, cluster, owner, &r);
            TakePointers => |r| {
                owner.take_pointers(r.file, r.pointers);
                Ok(())
            };
            TakeServer => |r| Ok(owner.take_server(r.file, s.server(identity), r.start)?);
            Deposit => |r| Ok(operations.prefetch.deposit(&r));
            Confirm => |r| Ok(operations.prefetch.deposits.confirm(&r));
        }
    }
}

fn unknown() -> Refused {
    Refused::new(Status::Unsupported, "an I/O server has no answer to this")
}

/// Whether a session may send a kind to an I/O server.
fn check_sender(session: &Session, kind: u16) -> Result<&'static Kind, Refused> {
    let known = Kind::of(kind).filter(|kind| kind.to != Receiver::Manager);
    let kind = known.ok_or_else(unknown)?;
    let denied = match (kind.from, session.who) {
        (Sender::Client | Sender::Rank, Who::Server(_)) => "this is for clients only",
        (Sender::Server | Sender::Manager, Who::Client { .. }) => {
            "this is for servers of the cluster only"
        }
        (Sender::Manager, Who::Server(server)) if server != ServerId::MANAGER => {
            "this is for the metadata manager only"
        }
        _ => return Ok(kind),
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
        let (identity, storage) = (&self.context.identity, &self.context.storage);
        let sessions = &self.context.sessions;
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
            self.departures.watch(&self.context, &session, peer, hello);
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
        let statistics = &self.context.statistics;
        add(&statistics.requests, 1);
        add(&session.client.requests, 1);
        session.connection.know(exchange.socket());
        let kind = exchange.header().kind;
        let done = match kind {
            READ | WRITE => self.access(session, exchange),
            _ => match check_sender(session, kind) {
                Ok(kind) => {
                    if matches!(kind.from, Sender::Server | Sender::Manager) {
                        add(&statistics.server_requests, 1);
                    }
                    self.request(session, exchange)
                }
                Err(refused) => self.refuse(exchange, refused),
            },
        };
        session.connection.idle();
        done
    }

    fn silence(&self) -> Duration {
        self.client_silence
    }

    fn limits(&self) -> serving::Limits {
        self.context.storage.limits.connections
    }

    fn ended(&self, session: Session) {
        self.departures.ended(&self.context, &session);
    }
}
