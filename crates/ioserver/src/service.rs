//! The dispatch: who may connect, and which function answers which kind of request.
//!
//! Handlers return an answer or a [`Refused`]; this module sends either. Accesses to bytes answer by
//! themselves.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use control::capability::{seals_equal, server_seal, verify_session};
use control::locks::Mode;
use serving::{Exchange, Holder, Outcome, Peer, PerUser, Proven, Service, Watch, this_process};
use wire::message::access::{READ, WHOLE, WRITE};
use wire::message::ahead::{Confirm, Deposit, ReadAhead};
use wire::message::cluster::{
    ApplyTruncate, AskEnd, AskNumber, Fence, FenceWindows, Frozen, Lend, PointerIs, PullWindows,
    Redomain, TakePointers, TakeServer, Tell, Thaw,
};
use wire::message::direct::{Attach, Map};
use wire::message::directed::{Follow, HoldRange, Lead, LetGo};
use wire::message::file::{
    Admit, Allocated, Appended, DropView, Grow, JoinPointer, LeaveAtomic, LeavePointer, ListDisks,
    ListSubfiles, Lock, MovePointer, Preallocate, Release, Reserve, Scrub, Scrubbed, SetView,
    SetViewPart, Size, SubfileEntry, SubfileList, SubfileState, Sync, Synced, ThroughView,
    Truncate, Unlock, Verify,
};
use wire::message::hints::{ClearFailed, MakeBuffers};
use wire::message::mapping::ChooseServer;
use wire::message::session::{
    Counter, Goodbye, Hello, Ping, Process, Role, Shutdown, Statistics, Welcome,
};
use wire::message::{Bytes, Field, Refusal, Request};
use wire::{ClientId, FileId, Rights, Status};

use crate::access::{read, write};
use crate::ahead;
use crate::context::Context;
use crate::direct::{attach, map};
use crate::directed;
use crate::gateway;
use crate::holds;
use crate::moving;
use crate::owner::{Asker, Owner};
use crate::refused::Refused;
use crate::sessions::{Session, Who};
use crate::set_view;
use crate::statistics::{add, counter};
use crate::views::Registered;

/// Most subfiles in one answer.
const LISTED_MOST: u64 = 4096;

/// What is served.
pub(crate) struct IoService {
    pub(crate) context: Arc<Context>,
    pub(crate) owner: Arc<Owner>,
    watch: Watch,
    host: Process,
    connections: Arc<PerUser>,
}

impl IoService {
    pub(crate) fn new(context: Arc<Context>, owner: Arc<Owner>) -> std::io::Result<Self> {
        let most = context.limits.connections.connections_per_user;
        Ok(IoService {
            connections: PerUser::new("connections", "--connections-per-user", most),
            context,
            owner,
            watch: Watch::start()?,
            host: this_process(),
        })
    }

    /// Answers that something was not done, and counts it.
    pub(crate) fn refuse(&self, exchange: &mut Exchange, mut refused: Refused) -> Outcome {
        if let (Status::NoMemory, Some(remedy)) = (refused.status, &self.context.when_full) {
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
    ) -> Outcome
    where
        R::Answer: Field,
    {
        let result = match exchange.request::<R>() {
            Ok(request) => run(request),
            Err(e) => Err(Refused::from(e)),
        };
        match result {
            Ok(answer) => exchange.answer(&answer),
            Err(refused) => self.refuse(exchange, refused),
        }
    }

    /// Runs something of the owner for whoever asks through a view.
    pub(crate) fn with_asker<T>(
        &self,
        session: &Session,
        view: &Registered,
        run: impl FnOnce(&Owner, &Asker<'_>) -> Result<T, (Status, Refusal)>,
    ) -> Result<T, Refused> {
        if session.is_server() {
            return Err(Refused::new(
                Status::PermissionDenied,
                "servers do not ask the owner through views",
            ));
        }
        let connection = &session.connection;
        let is_connected = || connection.is_open();
        let asker = Asker {
            client: session.client.id,
            file: view.file,
            rights: view.rights,
            view: &view.view,
            is_connected: &is_connected,
        };
        Ok(run(&self.owner, &asker)?)
    }

    /// A request to the owner of a file.
    fn owned<R: ThroughView>(
        &self,
        session: &Session,
        exchange: &mut Exchange,
        run: impl FnOnce(&Owner, &Asker<'_>, R) -> Result<R::Answer, (Status, Refusal)>,
    ) -> Outcome {
        self.answer::<R>(exchange, |request| {
            let _busy = session.client.begin()?;
            let view = session.client.view(request.view())?;
            self.with_asker(session, &view, |owner, asker| run(owner, asker, request))
        })
    }

    fn owner_request(&self, s: &mut Session, e: &mut Exchange) -> Outcome {
        match e.header().kind {
            Size::KIND => self.owned(s, e, |o, a, _: Size| o.size(a)),
            Grow::KIND => self.owned(s, e, |o, a, r: Grow| o.grow(a, r.epoch, r.end)),
            Truncate::KIND => self.owned(s, e, |o, a, r: Truncate| {
                o.truncate(a, r.handle, r.to, r.request)
            }),
            Release::KIND => self.owned(s, e, |o, a, _: Release| o.release(a)),
            Reserve::KIND => self.owned(s, e, |o, a, r: Reserve| o.reserve(a, r.request, r.len)),
            Appended::KIND => self.owned(s, e, |o, a, r: Appended| {
                o.appended(a, r.request, r.epoch, r.end)
            }),
            JoinPointer::KIND => self.owned(s, e, |o, a, r: JoinPointer| {
                o.join_pointer(a, r.group, r.position)
            }),
            LeavePointer::KIND => {
                self.owned(s, e, |o, a, r: LeavePointer| o.leave_pointer(a, r.group))
            }
            MovePointer::KIND => self.owned(s, e, |o, a, r: MovePointer| {
                o.move_pointer(a, r.group, r.request, r.how, r.amount)
            }),
            Admit::KIND => self.owned(s, e, |o, a, r: Admit| o.admit(a, r.handle)),
            LeaveAtomic::KIND => {
                self.owned(s, e, |o, a, r: LeaveAtomic| o.leave_atomic(a, r.handle))
            }
            Lock::KIND => self.lock(s, e),
            Unlock::KIND => {
                if let Ok(request) = e.request::<Unlock>() {
                    s.locks.retain(|&r| r != request.request);
                }
                self.owned(s, e, |o, a, r: Unlock| o.unlock(a, r.request))
            }
            _ => self.refuse(
                e,
                Refused::new(Status::Unsupported, "an I/O server has no answer to this"),
            ),
        }
    }

    /// Waits for a lock. One whose answer cannot be sent is released at once. It is not counted as
    /// running: who waits for a lock does nothing that a fence would have to wait for.
    fn lock(&self, session: &mut Session, exchange: &mut Exchange) -> Outcome {
        let result = exchange.request::<Lock>().map_err(Refused::from);
        let result = result.and_then(|r| {
            drop(session.client.begin()?);
            let view = session.client.view(r.view)?;
            let mode = if r.is_exclusive {
                Mode::Exclusive
            } else {
                Mode::Shared
            };
            session.locks.push(r.request);
            let locked = self.with_asker(session, &view, |owner, asker| {
                owner.lock(asker, r.handle, r.request, r.lo..r.hi, mode)
            });
            if locked.is_err() {
                session.locks.retain(|&n| n != r.request);
            }
            locked.map(|()| (r, view))
        });
        match result {
            Ok((request, view)) => {
                let sent = exchange.answer(&());
                if sent.is_err() {
                    let _ = self.with_asker(session, &view, |owner, asker| {
                        owner.unlock(asker, request.request)
                    });
                }
                sent
            }
            Err(refused) => self.refuse(exchange, refused),
        }
    }

    /// A request of another server.
    fn server_request(&self, session: &mut Session, exchange: &mut Exchange) -> Outcome {
        if let Err(refused) = session.demand_server() {
            return self.refuse(exchange, refused);
        }
        let context = &self.context;
        add(&context.statistics.server_requests, 1);
        match exchange.header().kind {
            ApplyTruncate::KIND => {
                self.answer(exchange, |r: ApplyTruncate| context.apply_truncate(&r))
            }
            AskEnd::KIND => self.answer(exchange, |r: AskEnd| context.ask_end(r.file)),
            Fence::KIND => self.answer(exchange, |r: Fence| context.fence(r.client)),
            Tell::KIND => self.answer(exchange, |r: Tell| context.tell(&r)),
            AskNumber::KIND => {
                self.answer(exchange, |r: AskNumber| Ok(context.entry(r.file).number()))
            }
            Thaw::KIND => self.answer(exchange, |r: Thaw| thaw(context, &self.owner, r.file)),
            FenceWindows::KIND => {
                self.answer(exchange, |r: FenceWindows| moving::fence_windows(self, &r))
            }
            PullWindows::KIND => {
                self.answer(exchange, |r: PullWindows| moving::pull_windows(context, &r))
            }
            Lend::KIND => moving::lend(self, session, exchange),
            TakePointers::KIND => self.answer(exchange, |r: TakePointers| {
                self.owner.take_pointers(r.file, r.pointers);
                Ok(())
            }),
            TakeServer::KIND => {
                let server = match session.who {
                    Who::Server(server) => server,
                    Who::Client { .. } => context.server,
                };
                self.answer(exchange, |r: TakeServer| {
                    Ok(self.owner.take_server(r.file, server, r.start)?)
                })
            }
            Redomain::KIND => self.answer(exchange, |r: Redomain| context.redomain(r.file)),
            _ => self.refuse(
                exchange,
                Refused::new(Status::Unsupported, "an I/O server has no answer to this"),
            ),
        }
    }

    /// Packets of collective reads to come.
    fn exchange_request(&self, session: &Session, exchange: &mut Exchange) -> Outcome {
        if let Err(refused) = session.demand_server() {
            return self.refuse(exchange, refused);
        }
        let context = &self.context;
        let prefetch = &context.operations.prefetch;
        match exchange.header().kind {
            Deposit::KIND => self.answer(exchange, |r: Deposit| Ok(prefetch.deposit(context, r))),
            _ => self.answer(exchange, |r: Confirm| Ok(prefetch.deposits.confirm(&r))),
        }
    }

    /// How big a file is that nobody changes: exactly, if another server is to own it from now on.
    pub(crate) fn size_at_rest(&self, file: FileId, hands_over: bool) -> Result<Frozen, Refused> {
        let context = &self.context;
        let entry = context.entry(file);
        let known = context.known(&entry)?;
        let end = context.ask_end(file)?.end;
        let mut frozen = Frozen {
            size: 0,
            epoch: 0,
            end,
        };
        if known.owner().server == context.server.0 {
            let size = match hands_over {
                true => self.owner.size_of_frozen(file)?,
                false => self.owner.size_now(file)?,
            };
            (frozen.size, frozen.epoch) = (size.size, size.epoch);
        }
        Ok(frozen)
    }

    /// The shared pointers of a file that another server is to own.
    pub(crate) fn pointers_at_rest(&self, file: FileId) -> Result<Vec<PointerIs>, Refused> {
        Ok(self.owner.pointers_of_frozen(file)?)
    }

    fn sync(&self, session: &Session, request: &Sync) -> Result<Synced, Refused> {
        let _busy = session.client.begin()?;
        let context = &self.context;
        let view = session.client.view(request.view)?;
        let known = context.known(&view.entry)?;
        context.direct.collect(view.file);
        for own in &known.own {
            let incarnation = context.incarnation();
            known.check_place(own, context.kept_since(), incarnation)?;
            if let Some(subfile) = known.find(own, &context.stored)? {
                match subfile.sync_bytes() {
                    // Moved away meanwhile, and durable before that was.
                    Err(store::Error::NotFound(_)) => {}
                    synced => synced?,
                }
            }
        }
        // That they exist, once for all of them.
        context.stored.store().settle()?;
        if known.owner().server == context.server.0 {
            self.with_asker(session, &view, |owner, asker| owner.release(asker))?;
        }
        Ok(Synced {
            is_durable: context.stored.is_durable(),
            verifiers: context.verifiers,
        })
    }

    fn preallocate(&self, session: &Session, request: &Preallocate) -> Result<(), Refused> {
        let _busy = session.client.begin()?;
        let context = &self.context;
        let view = session.client.view(request.view)?;
        if !view.rights.allow(Rights::WRITE) {
            return Err(Refused::new(
                Status::PermissionDenied,
                format!("view {} does not allow to write", request.view),
            ));
        }
        if request.size > falls::MAX_OFFSET {
            return Err(Refused::new(
                Status::InvalidArgument,
                format!("size: {} is beyond {}", request.size, falls::MAX_OFFSET),
            ));
        }
        let known = context.known(&view.entry)?;
        let mut version = Vec::new();
        known.layout().version().put(&mut version);
        let planned = crate::files::Planned {
            version: &version,
            file: None,
            holder: 0,
            works_for: None,
            epoch: request.epoch,
            number: 0,
            is_server: false,
            only_reads: false,
        };
        let (_running, known, _) = context.enter(&view.entry, &planned)?;
        // A disk is not filled up to find out that it is too small.
        let (capacity, _) = context.stored.room();
        let wanted = |own: &crate::files::Own| own.bytes.rank(request.size);
        let wanted = known.own.iter().map(wanted).fold(0, u64::saturating_add);
        if wanted > capacity {
            return Err(Refused::new(
                Status::NoSpace,
                format!(
                    "size: {wanted} bytes of it come to this server, which has room for {capacity}"
                ),
            ));
        }
        for own in &known.own {
            let incarnation = context.incarnation();
            known.check_place(own, context.kept_since(), incarnation)?;
            for range in &known.layout().pieces[own.piece].ranges {
                let rank = |at: u64| own.bytes.rank(at.min(request.size));
                let part = rank(range.start)..rank(range.end);
                if !part.is_empty() {
                    context.with_room(|| {
                        let subfile = known.make(own, &context.stored, incarnation)?;
                        subfile.preallocate(part.clone())
                    })?;
                }
            }
        }
        Ok(())
    }

    fn allocated(&self, session: &Session, request: &Allocated) -> Result<u64, Refused> {
        let context = &self.context;
        let view = session.client.view(request.view)?;
        let known = context.known(&view.entry)?;
        let mut sum = 0;
        for own in &known.own {
            if let Some(subfile) = known.find(own, &context.stored)? {
                sum += subfile.allocated()?;
            }
        }
        Ok(sum)
    }

    fn scrub(&self, session: &Session, request: &Scrub) -> Result<Scrubbed, Refused> {
        let context = &self.context;
        let view = session.client.view(request.view)?;
        if !view.rights.allow(Rights::READ) {
            return Err(Refused::new(
                Status::PermissionDenied,
                format!("view {} does not allow to read", request.view),
            ));
        }
        let known = context.known(&view.entry)?;
        let mut found = Scrubbed {
            blocks: 0,
            damaged: 0,
        };
        for own in &known.own {
            if let Some(subfile) = known.find(own, &context.stored)? {
                let scrub = subfile.scrub()?;
                found.blocks += scrub.blocks;
                found.damaged += scrub.damaged.len() as u64;
            }
        }
        Ok(found)
    }

    fn list_subfiles(
        &self,
        session: &Session,
        request: &ListSubfiles,
    ) -> Result<SubfileList, Refused> {
        session.demand_operator()?;
        let after = request.after.as_ref().map(|name| store::SubfileId {
            file: name.file.0,
            generation: name.generation,
            index: name.index,
        });
        let most = request.most.clamp(1, LISTED_MOST) as usize;
        let looked = self.context.stored.look(after, most + 1);
        let has_more = looked.len() > most;
        let entry = |looked: store::Looked| SubfileEntry {
            file: FileId(looked.id.file),
            generation: looked.id.generation,
            index: looked.id.index,
            len: looked.len,
            allocated_bytes: looked.allocated_bytes,
            state: match looked.standing {
                store::Standing::Here => SubfileState::Here,
                store::Standing::Missing => SubfileState::Missing,
                store::Standing::Lost => SubfileState::Lost,
                store::Standing::Conflict => SubfileState::Conflict,
            },
        };
        Ok(SubfileList {
            entries: looked.into_iter().take(most).map(entry).collect(),
            has_more,
        })
    }

    /// Everything that was counted.
    pub(crate) fn statistics(&self) -> Vec<Counter> {
        let context = &self.context;
        let mut list = context.statistics.list();
        let (connections, clients, views) = context.sessions.counts();
        let usage = context.stored.store().usage();
        let (capacity, used) = context.stored.room();
        let (most_lent, buffers) = context.buffers.most_lent();
        let asked = |counter: &std::sync::atomic::AtomicU64| {
            counter.load(std::sync::atomic::Ordering::Relaxed)
        };
        list.extend([
            counter("server", context.server.0),
            counter("incarnation", context.incarnation()),
            counter("connections", connections as u64),
            counter("clients", clients as u64),
            counter("views", views as u64),
            counter("subfiles", context.stored.count() as u64),
            counter("capacity_bytes", capacity),
            counter("used_bytes", used),
            counter("memory_bytes", usage.memory_bytes),
            counter("memory_limit_bytes", usage.memory_limit_bytes),
            counter("dirty_bytes", usage.dirty_bytes),
            counter("cache_hit_bytes", usage.cache.hit_bytes),
            counter("cache_miss_bytes", usage.cache.miss_bytes),
            counter("cache_evicted_bytes", usage.cache.evicted_bytes),
            counter("cache_returned_extents", usage.cache.returned),
            counter("ahead_bytes", usage.cache.ahead_bytes),
            counter("ahead_hit_bytes", usage.cache.ahead_hit_bytes),
            counter("ahead_wasted_bytes", usage.cache.ahead_wasted_bytes),
            counter("written_back_bytes", usage.cache.written_bytes),
            counter("rendezvous_bytes", context.rendezvous_bytes),
            counter("message_bytes", context.message_bytes),
            counter("buffer_bytes", context.buffers.buffer_bytes() as u64),
            counter("buffers", buffers as u64),
            counter("buffers_made_bytes", context.buffers.made_bytes()),
            counter("buffers_lent", context.buffers.lent() as u64),
            counter("buffers_lent_most", most_lent as u64),
            counter("requests_to_servers", asked(&context.peers.asked)),
            counter("requests_to_manager", asked(&context.manager.asked)),
        ]);
        let (disks, failed) = context.stored.disks();
        if disks > 0 {
            let missing = context.stored.missing().len() as u64;
            list.extend([
                counter("disks", disks),
                counter("disks_failed", failed),
                counter("disks_missing", missing),
            ]);
        }
        list.extend(context.direct.statistics());
        list.extend(self.owner.statistics());
        list
    }

    /// A client has died, unless it has a connection when the `grace` is over: it is fenced here, and
    /// the owner gives back what it held.
    fn client_died(
        owner: &Weak<Owner>,
        context: &Weak<Context>,
        client: ClientId,
        grace: Option<Duration>,
    ) {
        let (owner, context) = (Weak::clone(owner), Weak::clone(context));
        let spawned = thread::Builder::new()
            .name(format!("death of {client}"))
            .spawn(move || {
                if let Some(grace) = grace {
                    crate::start::wait(grace);
                }
                let (Some(owner), Some(context)) = (owner.upgrade(), context.upgrade()) else {
                    return;
                };
                if grace.is_none() || !context.sessions.is_connected(client) {
                    let _ = context.fence(client);
                    owner.client_died(client);
                }
            });
        drop(spawned);
    }
}

impl Service for IoService {
    type Session = Session;

    fn hello(
        &self,
        peer: &Peer,
        hello: &Hello,
        proven: &Proven,
    ) -> Result<(Session, Welcome), (Status, Refusal)> {
        let context = &self.context;
        let no = |text: &str| (Status::Unauthenticated, Refusal::new(text));
        let who = match &hello.role {
            Role::Client { client, session } => {
                match verify_session(&context.key, *client, &session.0) {
                    Some(user) => Who::Client {
                        client: *client,
                        user,
                    },
                    None => return Err(no("the session was not sealed by this cluster")),
                }
            }
            Role::Server { server, seal } => {
                if !seals_equal(&seal.0, &server_seal(&context.key, *server)) {
                    return Err(no("the seal is not the one of this cluster"));
                }
                // A seal can be overheard; where it can, it is not enough.
                let own = rustix::process::geteuid().as_raw();
                let known = peer.credentials.as_ref().map(|c| c.user);
                let is_user = matches!(proven.holder, Some(Holder::User { .. }));
                if is_user
                    || !proven.is_server() && !known.is_some_and(|user| user == 0 || user == own)
                {
                    return Err(no(
                        "servers on other hosts prove that they know the secret of servers; give its \
                         file to all of them (--server-secret, PARIO_SERVER_SECRET)",
                    ));
                }
                Who::Server(*server)
            }
            Role::NewClient | Role::NewServer => {
                return Err(no(
                    "get a session or join at the metadata manager first, then come here",
                ));
            }
        };
        // Before there is a session: who finds no room has not come, and so does not go.
        let taken = match who {
            Who::Client { user, .. } => Some(self.connections.take(user)?),
            Who::Server(_) => None,
        };
        let (mut session, is_first) = context
            .sessions
            .open(who, &context.limits)
            .map_err(|r| (r.status, r.refusal))?;
        // Known of Unix sockets only.
        session.process = peer.pid;
        session.taken = taken;
        if let (Who::Client { client, .. }, true) = (who, is_first) {
            let is_here = peer.is_local && hello.process.host == self.host.host;
            let pid = peer
                .pid
                .or((is_here && hello.process.pid != 0).then_some(hello.process.pid));
            if let Some(pid) = pid {
                let (owner, context) = (Arc::downgrade(&self.owner), Arc::downgrade(context));
                let died = move || IoService::client_died(&owner, &context, client, None);
                if self.watch.add(client.0, pid, died).is_ok() {
                    let watched = &session.client.is_watched;
                    watched.store(true, std::sync::atomic::Ordering::SeqCst);
                }
            }
        }
        let welcome = Welcome {
            client: session.client.id,
            session: Bytes::default(),
            server: context.server,
            incarnation: context.incarnation(),
            rendezvous_bytes: context.rendezvous_bytes,
            message_bytes: context.message_bytes,
            proof: Bytes::default(),
        };
        Ok((session, welcome))
    }

    fn handle(&self, session: &mut Session, exchange: &mut Exchange) -> Outcome {
        let context = &self.context;
        add(&context.statistics.requests, 1);
        session.connection.know(exchange.socket());
        match exchange.header().kind {
            READ => {
                let done = match exchange.header().flags & WHOLE {
                    0 => read::serve(self, session, exchange),
                    _ => gateway::serve(self, session, exchange, gateway::Kind::Read),
                };
                session.connection.idle();
                done
            }
            WRITE => {
                let done = match exchange.header().flags & WHOLE {
                    0 => write::serve(self, session, exchange),
                    _ => gateway::serve(self, session, exchange, gateway::Kind::Write),
                };
                session.connection.idle();
                done
            }
            Map::KIND => {
                let done = map(self, session, exchange);
                session.connection.idle();
                done
            }
            Lead::KIND => {
                let done = directed::lead(self, session, exchange);
                session.connection.idle();
                done
            }
            Follow::KIND => {
                let done = directed::follow(self, session, exchange);
                session.connection.idle();
                done
            }
            HoldRange::KIND => {
                self.answer(exchange, |r: HoldRange| holds::hold(context, session, &r))
            }
            LetGo::KIND => self.answer(exchange, |r: LetGo| holds::let_go(context, session, &r)),
            Attach::KIND => attach(self, session, exchange),
            Ping::KIND => self.answer(exchange, |_: Ping| Ok(())),
            SetView::KIND => self.answer(exchange, |r: SetView| {
                set_view::set_view(context, session, r)
            }),
            SetViewPart::KIND => self.answer(exchange, |r: SetViewPart| {
                set_view::set_view_part(context, session, &r)
            }),
            ChooseServer::KIND => self.answer(exchange, |r: ChooseServer| {
                gateway::choose_server(context, session, &r)
            }),
            ReadAhead::KIND => self.answer(exchange, |r: ReadAhead| {
                ahead::read_ahead(context, session, &r)
            }),
            DropView::KIND => self.answer(exchange, |r: DropView| {
                set_view::drop_view(context, session, &r)
            }),
            Verify::KIND => self.answer(exchange, |_: Verify| Ok(context.verifiers)),
            Sync::KIND => self.answer(exchange, |r: Sync| self.sync(session, &r)),
            Preallocate::KIND => {
                self.answer(exchange, |r: Preallocate| self.preallocate(session, &r))
            }
            Allocated::KIND => self.answer(exchange, |r: Allocated| self.allocated(session, &r)),
            Scrub::KIND => self.answer(exchange, |r: Scrub| self.scrub(session, &r)),
            ListSubfiles::KIND => {
                self.answer(exchange, |r: ListSubfiles| self.list_subfiles(session, &r))
            }
            ListDisks::KIND => self.answer(exchange, |_: ListDisks| {
                session.demand_operator()?;
                Ok(self.context.stored.disk_list())
            }),
            Statistics::KIND => self.answer(exchange, |_: Statistics| Ok(self.statistics())),
            Goodbye::KIND => self.answer(exchange, |_: Goodbye| {
                let said = &session.client.said_goodbye;
                said.store(true, std::sync::atomic::Ordering::SeqCst);
                if let Who::Client { client, .. } = session.who {
                    self.watch.remove(client.0);
                    self.owner.client_left(client);
                }
                Ok(())
            }),
            Shutdown::KIND => {
                let allowed = session.demand_operator();
                let done = self.answer(exchange, |_: Shutdown| {
                    allowed.clone()?;
                    self.owner.flush_dirty_sizes();
                    Ok(context.stored.close()?)
                });
                if allowed.is_ok() {
                    context.end();
                }
                done
            }
            MakeBuffers::KIND => {
                self.answer(exchange, |r: MakeBuffers| Ok(context.buffers.make(r.bytes)))
            }
            ClearFailed::KIND => {
                let allowed = session.demand_operator();
                self.answer(exchange, |_: ClearFailed| {
                    allowed.clone()?;
                    context.stored.restore_disks();
                    Ok(())
                })
            }
            Deposit::KIND | Confirm::KIND => self.exchange_request(session, exchange),
            0x46..=0x54 => self.server_request(session, exchange),
            _ => self.owner_request(session, exchange),
        }
    }

    fn silence(&self) -> Duration {
        self.context.client_silence
    }

    fn limits(&self) -> serving::Limits {
        self.context.limits.connections
    }

    fn ended(&self, session: Session) {
        for hold in &session.holds {
            holds::release(&self.context, hold.file, hold.number);
        }
        let is_last = self.context.sessions.close(&session);
        let Who::Client { client, .. } = session.who else {
            return;
        };
        self.owner.connection_ended(client, &session.locks);
        if !is_last {
            return;
        }
        // Writers that do not move are left to whoever needs the bytes.
        let _ = self.context.detach(&session.client);
        let said = &session.client.said_goodbye;
        if said.load(std::sync::atomic::Ordering::SeqCst) {
            self.watch.remove(client.0);
            self.owner.client_left(client);
        } else if !session
            .client
            .is_watched
            .load(std::sync::atomic::Ordering::SeqCst)
        {
            let (owner, context) = (Arc::downgrade(&self.owner), Arc::downgrade(&self.context));
            // Nobody can say whether it lives: a connection may break, and the next one come.
            IoService::client_died(&owner, &context, client, Some(self.context.client_grace));
        }
    }
}

/// Serves a file again, with what the metadata manager says now.
pub(crate) fn thaw(context: &Context, owner: &Owner, file: FileId) -> Result<(), Refused> {
    let entry = context.entry(file);
    // A layout is replaced at once as long as the file is empty.
    context.void_maps(&entry)?;
    entry.forget();
    match context.refresh(&entry) {
        Ok(known) => owner.layout_is(file, known.layout()),
        Err(refused) if refused.status == Status::NotFound => owner.removed(file),
        Err(refused) => return Err(refused),
    }
    Ok(())
}
