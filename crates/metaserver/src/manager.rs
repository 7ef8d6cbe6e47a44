//! The service itself: who may connect, as whom, and which request goes where.
//!
//! Whom a client works for is said by the kernel where it knows. On TCP of this host the kernel knows only
//! the user, so a client that has proven itself adds its groups; root may speak for others, since it could become
//! them. A certificate says it under TLS, wherever a client is. Of a client elsewhere the secret proves only that it belongs to the service: it works for the user
//! whom the administrator named for such clients, unless he trusts their network to say who its users are
//! (`trust`).

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use control::capability::{
    ClusterKey, NamedBy, SessionUser, seals_equal, server_seal, session, verify_session,
};
use control::crash::{crash_point, panic_point};
use control::settled::SettledSizes;
use identity::{Channel, Holder, Keys};
use meta::MetaError;
use meta::catalogue::{Batch, Caller, Identity, Snapshot};
use parking_lot::{Condvar, Mutex};
use serving::{AuditLog, Exchange, Outcome, Peer, Proven, RequestSummary, Service, Watch};
use wire::frame::{MAX_CONTROL_BYTES, MAX_LONG_CONTROL_BYTES, REPEATED};
use wire::link::LinkError;
use wire::message::backup::Backup;
use wire::message::calibration::{GetCalibrations, PutCalibration};
use wire::message::catalogue::*;
use wire::message::cluster::*;
use wire::message::hints::{ClearFailed, DiskFailed, GetHints, ListFailed, SetHints};
use wire::message::mapping::{Assign, Buddy};
use wire::message::profile::{GetProfile, PutProfile, ReportUse, SetProfile};
use wire::message::session::{
    Credentials, GetSupervisor, Goodbye, Hello, Ping, Role, Shutdown, Statistics, Welcome,
};
use wire::message::stamps::{AttachStamps, AwaitRecalls};
use wire::message::team::{Gather, LeaveTeam, WatchTeam};
use wire::message::trees::RemoveTree;
use wire::message::{self, Bytes, Field, Refusal, Request};
use wire::{ClientId, ServerId, Status, Time};

use crate::audited::waits_for_others;
use crate::auto_layout::Judging;
use crate::backing::Backing;
use crate::backups::Backups;
use crate::clients::Clients;
use crate::committer::{Committer, Refused};
use crate::mapping::Whereabouts;
use crate::members::Membership;
use crate::profiles::Profiles;
use crate::relayout::Moves;
use crate::servers::{Connectors, IdleLinks};
use crate::stamps::Stamps;
use crate::statistics::Requests;
use crate::teams::Teams;
use crate::timer::Timer;
use crate::trees::TreeSweeper;
use crate::trust::Trust;

/// How long I/O servers may take to end when everything ends.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(30);

/// The metadata manager.
pub(crate) struct Manager {
    pub(crate) this: Weak<Manager>,
    pub(crate) key: ClusterKey,
    /// What this process shows to others, and wants to be shown.
    pub(crate) keys: Keys,
    /// Who is believed, and who the others are.
    pub(crate) trust: Trust,
    /// What stands behind the catalogue.
    pub(crate) backing: Option<Arc<dyn Backing>>,
    /// Where the supervisor writes down what it knows.
    pub(crate) supervisor_note: Option<PathBuf>,
    /// Who runs it.
    pub(crate) user: u32,
    /// This host, as processes name it.
    pub(crate) host: String,
    /// Which start of the catalogue this is.
    pub(crate) starts: u64,
    /// When this start was.
    pub(crate) since: Instant,
    pub(crate) capability_ms: u64,
    pub(crate) member_timeout: Duration,
    /// How long the host of a client may be silent.
    pub(crate) client_silence: Duration,
    /// How long a client elsewhere may be without a connection.
    pub(crate) client_grace: Duration,
    pub(crate) connection_limits: serving::Limits,
    pub(crate) connections: Arc<serving::PerUser>,
    pub(crate) committer: Committer,
    pub(crate) clients: Arc<Clients>,
    pub(crate) next_client: AtomicU64,
    /// Numbers of what the manager asks itself: each request has its own, as those of clients do.
    pub(crate) next_own_request: AtomicU64,
    pub(crate) members: Membership,
    pub(crate) moves: Moves,
    pub(crate) teams: Teams,
    /// What was observed of files.
    pub(crate) profiles: Profiles,
    /// Files that are to be judged by their profiles.
    pub(crate) judging: Mutex<Judging>,
    /// Assigns servers in turn, over all files and clients.
    pub(crate) round_robin: Mutex<advise::mapping::RoundRobin>,
    pub(crate) timer: Timer,
    /// Trees that were removed.
    pub(crate) trees: TreeSweeper,
    /// Threads that connect to servers for those who ask several.
    pub(crate) connectors: Connectors,
    pub(crate) watch: Watch,
    /// Which files have the size that the catalogue has.
    pub(crate) settled: Arc<Mutex<SettledSizes>>,
    /// When what clients were told was changed; nothing if it may change without a commit.
    pub(crate) stamps: Option<Arc<Stamps>>,
    /// Answers that were looked for once more, since what had been found was not of one moment.
    pub(crate) looks_again: AtomicU64,
    /// Connections to servers, for the next question.
    pub(crate) idle_links: IdleLinks,
    /// Backups that are being fetched.
    pub(crate) backups: Backups,
    pub(crate) requests: Requests,
    /// From when on a request is slow and told in the log.
    pub(crate) slow: Option<Duration>,
    /// Where actions of administrators are put on record.
    pub(crate) audit: Option<AuditLog>,
    /// How many were.
    pub(crate) noted: AtomicU64,
    pub(crate) is_ending: AtomicBool,
    pub(crate) asked_to_end: Mutex<bool>,
    pub(crate) ended: Condvar,
}

/// As whom a connection speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    /// A client.
    Client(ClientId),
    /// A server that has not joined.
    NewServer,
    /// A server of the cluster.
    Server(ServerId),
    /// A server on the connection that it joined on.
    Member {
        /// Which.
        server: ServerId,
        /// Which start of it.
        incarnation: u64,
        /// Which connection.
        token: u64,
    },
}

/// One connection.
pub(crate) struct Session {
    pub(crate) who: Who,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) whereabouts: Whereabouts,
    /// What keys travel in.
    pub(crate) channel: Channel,
    /// Whether the connection carries descriptors.
    pub(crate) is_on_socket: bool,
    asked: Asked,
    manager: Weak<Manager>,
    /// Its place among the connections of its user.
    _taken: Option<serving::Taken>,
}

/// The request under way.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    number: u64,
    kind: u16,
    is_repeated: bool,
}

impl Session {
    /// The client, for requests that only clients make.
    pub(crate) fn client(&self) -> Result<ClientId, Refused> {
        match self.who {
            Who::Client(client) => Ok(client),
            _ => Err(denied("only clients ask that")),
        }
    }

    /// What makes the request under way known again when it comes twice.
    pub(crate) fn asked(&self) -> Result<Identity, Refused> {
        Ok(Identity {
            client: self.client()?,
            number: self.asked.number,
            kind: self.asked.kind,
            is_repeated: self.asked.is_repeated,
        })
    }

    /// The server, for requests that only servers of the cluster make.
    pub(crate) fn demand_server(&self) -> Result<ServerId, Refused> {
        match self.who {
            Who::Server(server) | Who::Member { server, .. } => Ok(server),
            _ => Err(denied("only servers of the cluster ask that")),
        }
    }
}

impl Manager {
    /// A session of the manager itself for one request, which may do everything. Its client has the number that nobody is given.
    pub(crate) fn own_session(&self) -> Session {
        let client = ClientId(self.starts << 32);
        self.client_connected(client, None);
        Session {
            who: Who::Client(client),
            credentials: Arc::new(Credentials::ROOT),
            whereabouts: Whereabouts::default(),
            channel: Channel::private(),
            is_on_socket: false,
            asked: Asked {
                number: self.next_own_request.fetch_add(1, Ordering::Relaxed),
                ..Asked::default()
            },
            manager: self.this(),
            _taken: None,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(manager) = self.manager.upgrade() else {
            return;
        };
        match self.who {
            Who::Client(client) => manager.client_disconnected(client),
            Who::Member { server, token, .. } => manager.member_gone(server, token),
            Who::NewServer | Who::Server(_) => {}
        }
    }
}

fn denied(text: impl Into<String>) -> Refused {
    Refused::new(Status::PermissionDenied, text)
}

/// The time, for attributes.
pub(crate) fn now() -> Time {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

impl Manager {
    /// For callbacks and threads, which must not keep it alive.
    pub(crate) fn this(&self) -> Weak<Manager> {
        Weak::clone(&self.this)
    }

    /// Whether connections end because this process does.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// The state of the catalogue.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Refused> {
        self.committer.snapshot()
    }

    /// The state of the catalogue, for a client that is alive.
    pub(crate) fn read(&self, session: &Session) -> Result<Snapshot, Refused> {
        let client = session.client()?;
        if !self.clients.has(client) {
            return Err(fenced(client));
        }
        self.snapshot()
    }

    /// Does what a request asks once, however often it comes.
    pub(crate) fn change_once<T: Field + Send + 'static>(
        &self,
        session: &Session,
        work: impl Fn(&mut Batch<'_>, &Caller<'_>) -> Result<T, MetaError> + Send + Sync + 'static,
    ) -> Result<T, Refused> {
        let asked = session.asked()?;
        self.change(session, move |b, caller| {
            b.once(
                asked,
                |b| {
                    let value = work(b, caller)?;
                    let mut note = Vec::new();
                    value.put(&mut note);
                    Ok((value, note))
                },
                |_, note| {
                    message::decode(note).map_err(|why| MetaError::Corrupt {
                        row: "the answer to an earlier request".into(),
                        why,
                    })
                },
            )
        })
    }

    /// What was noted of a request when it came before; refused if that is not known any more.
    pub(crate) fn asked_before(&self, asked: Identity) -> Result<Option<Vec<u8>>, Refused> {
        self.committer.run(move |b| Ok(b.note_of(asked)?))
    }

    /// Changes the catalogue for a client, if it is still alive when its turn comes.
    pub(crate) fn change<T: Send + 'static>(
        &self,
        session: &Session,
        work: impl Fn(&mut Batch<'_>, &Caller<'_>) -> Result<T, MetaError> + Send + Sync + 'static,
    ) -> Result<T, Refused> {
        let client = session.client()?;
        let clients = Arc::clone(&self.clients);
        let credentials = Arc::clone(&session.credentials);
        let now = now();
        let done = self.committer.run(move |batch| {
            if !clients.has(client) {
                return Err(fenced(client));
            }
            let caller = Caller {
                client,
                credentials: &credentials,
                now,
            };
            let done = work(batch, &caller)?;
            panic_point("commit");
            Ok(done)
        });
        crash_point("manager_after_commit");
        done
    }

    /// Refuses everybody but root and the user who runs this.
    pub(crate) fn demand_operator(&self, session: &Session) -> Result<(), Refused> {
        session.client()?;
        let user = session.credentials.user;
        if user == 0 || user == self.user {
            return Ok(());
        }
        let hint = match user == self.trust.others.user {
            true => {
                "; clients on other hosts work for that user unless the service trusts their \
                     network (--trust-uids NETWORK)"
            }
            false => "",
        };
        Err(denied(format!(
            "user {user}: only root and user {}, who runs the service, may do that{hint}",
            self.user
        )))
    }

    /// Whom a client works for.
    fn credentials(
        &self,
        peer: &Peer,
        hello: &Hello,
        proven: &Proven,
    ) -> Result<Credentials, Refused> {
        let claimed = &hello.credentials;
        match &proven.holder {
            Some(Holder::User { credentials, .. }) => return Ok(credentials.clone()),
            Some(Holder::Server) => {
                let text = "the certificate is that of a server; clients show one of a user (`pario cert user`)";
                return Err(denied(text));
            }
            None => {}
        }
        match &peer.credentials {
            Some(known) if peer.pid.is_some() => Ok(known.clone()),
            Some(known) if !proven.secret => Ok(known.clone()),
            Some(known) if known.is_root() || known.user == claimed.user => Ok(claimed.clone()),
            Some(known) => Err(denied(format!(
                "user {} cannot connect as user {}",
                known.user, claimed.user
            ))),
            None if proven.secret => self.trust.of(peer, claimed).cloned().ok_or_else(|| {
                Refused::new(
                    Status::Unauthenticated,
                    "the kernel of this host does not say whose connection this is; connect again, or through the \
                     Unix socket, or let the service trust the address (--trust-uids NETWORK)",
                )
            }),
            None => Err(Refused::new(
                Status::Unauthenticated,
                "nobody knows who connects; start the service with a secret and give it to its \
                 clients (PARIO_SECRET)",
            )),
        }
    }

    /// Who says whom a client works for.
    fn named_by(&self, peer: &Peer, proven: &Proven) -> NamedBy {
        match peer.credentials.is_some() || self.trust.believes(peer) {
            _ if proven.holder.is_some() => NamedBy::Certificate,
            true => NamedBy::Host,
            false => NamedBy::Administrator,
        }
    }

    /// Refuses those who are servers only by their own word.
    fn demand_proven_server(&self, peer: &Peer, proven: &Proven) -> Result<(), Refused> {
        if let Some(holder) = &proven.holder
            && *holder != Holder::Server
        {
            let text = format!("the certificate is that of {holder}; servers show one of a server");
            return Err(denied(text));
        }
        let known = peer.credentials.as_ref().map(|c| c.user);
        if proven.is_server() || known.is_some_and(|user| user == 0 || user == self.user) {
            return Ok(());
        }
        Err(denied(format!(
            "servers are started by root or by user {} on this host, and elsewhere with the secret of \
             servers; give its file to the metadata manager and to them (--server-secret, \
             PARIO_SERVER_SECRET)",
            self.user
        )))
    }

    /// The process to watch for a client, if it is on this host.
    fn process_of(&self, peer: &Peer, hello: &Hello) -> Option<u64> {
        let claimed = &hello.process;
        let is_here = peer.is_local && claimed.host == self.host;
        peer.pid
            .or(is_here.then_some(claimed.pid))
            .filter(|&pid| pid != 0)
    }

    fn introduce(
        &self,
        peer: &Peer,
        hello: &Hello,
        proven: &Proven,
    ) -> Result<(Session, Welcome), Refused> {
        let mut seal = Vec::new();
        let (who, credentials) = match &hello.role {
            Role::NewClient => {
                let credentials = self.credentials(peer, hello, proven)?;
                let count = self.next_client.fetch_add(1, Ordering::Relaxed);
                let client = ClientId((self.starts << 32) + count);
                let of = SessionUser {
                    user: credentials.user,
                    named_by: self.named_by(peer, proven),
                };
                seal = session(&self.key, client, of);
                (Who::Client(client), credentials)
            }
            Role::Client { client, session } => {
                let sealed = verify_session(&self.key, *client, &session.0);
                let SessionUser { user, .. } = sealed.ok_or_else(|| {
                    Refused::new(
                        Status::Unauthenticated,
                        "the session was not sealed by this cluster; connect as a new client",
                    )
                })?;
                // Of this start, so it was here; of an earlier one, so it may come back.
                if client.0 >> 32 == self.starts && !self.clients.has(*client) {
                    return Err(fenced(*client));
                }
                let credentials = self.credentials(peer, hello, proven)?;
                if credentials.user != user {
                    return Err(denied(format!(
                        "user {}: the session is that of user {user}",
                        credentials.user
                    )));
                }
                seal.clone_from(&session.0);
                (Who::Client(*client), credentials)
            }
            Role::NewServer => {
                self.demand_proven_server(peer, proven)?;
                (Who::NewServer, Credentials::ROOT)
            }
            Role::Server { server, seal } => {
                if !seals_equal(&seal.0, &server_seal(&self.key, *server)) {
                    return Err(Refused::new(
                        Status::Unauthenticated,
                        format!("{server}: the seal is not that of this cluster"),
                    ));
                }
                // A seal can be overheard; where it can, it is not enough.
                self.demand_proven_server(peer, proven)?;
                (Who::Server(*server), Credentials::ROOT)
            }
        };
        let whereabouts = Whereabouts {
            host: hello.process.host.clone(),
            address: peer.address.filter(|ip| !ip.is_loopback()),
        };
        let mut taken = None;
        let client = match who {
            Who::Client(client) => {
                let found = self.connections.take(credentials.user);
                taken = Some(found.map_err(|(status, refusal)| Refused(status, refusal))?);
                self.client_connected(client, self.process_of(peer, hello));
                // Without servers there is none yet; it is chosen when the client asks.
                let _ = self.choose_buddy(client, &whereabouts, None);
                client
            }
            _ => ClientId(0),
        };
        let welcome = Welcome {
            client,
            session: Bytes(seal),
            server: ServerId::MANAGER,
            incarnation: self.starts,
            // No payloads come here.
            rendezvous_bytes: 0,
            message_bytes: u64::from(MAX_CONTROL_BYTES),
            proof: Bytes::default(),
        };
        let session = Session {
            who,
            credentials: Arc::new(credentials),
            whereabouts,
            channel: proven.channel.clone(),
            is_on_socket: peer.pid.is_some(),
            asked: Asked::default(),
            manager: self.this(),
            _taken: taken,
        };
        Ok((session, welcome))
    }

    /// Tells all I/O servers to end.
    fn shutdown(&self, session: &mut Session, _: Shutdown) -> Result<(), Refused> {
        self.demand_operator(session)?;
        let mut members = self.snapshot()?.members()?;
        members.retain(|m| self.members.has(m.server, m.incarnation));
        // One that does not answer is dead or will notice that this process is.
        self.ask_all(&members, &Shutdown {}, SHUTDOWN_LIMIT);
        Ok(())
    }

    /// What the supervisor of this process has written down, for programs that show or end the service.
    fn supervisor(
        &self,
        session: &mut Session,
        _: GetSupervisor,
    ) -> Result<Option<String>, Refused> {
        session.client()?;
        let note = self.supervisor_note.as_deref();
        // While it is being replaced, or when it is gone, there is nothing to tell.
        let text = note.and_then(|path| std::fs::read_to_string(path).ok());
        Ok(text.filter(|text| text.len() <= MAX_CONTROL_BYTES as usize / 2))
    }

    fn goodbye(&self, session: &mut Session, _: Goodbye) -> Result<(), Refused> {
        match session.who {
            Who::Client(client) => self.client_gone(client),
            Who::Member { server, token, .. } => self.member_left(server, token),
            Who::NewServer | Who::Server(_) => {}
        }
        Ok(())
    }

    /// Lets [`crate::MetaServer::wait`] return.
    pub(crate) fn end(&self) {
        *self.asked_to_end.lock() = true;
        self.ended.notify_all();
    }

    /// Decodes a request, lets it be done, and answers.
    fn reply<R: Request>(
        &self,
        session: &mut Session,
        exchange: &mut Exchange,
        work: impl FnOnce(&Manager, &mut Session, R) -> Result<R::Answer, Refused>,
    ) -> Outcome {
        let result = exchange
            .request::<R>()
            .map_err(|e| Refused::new(Status::Malformed, format!("{}: {e}", R::NAME)))
            .and_then(|request| work(self, session, request));
        self.note(session, (R::KIND, exchange.control()), &result);
        respond(exchange, result)
    }
}

/// Answers; what does not fit into a frame is refused.
fn respond<A: Field>(exchange: &mut Exchange, result: Result<A, Refused>) -> Outcome {
    match result {
        Ok(answer) => {
            let mut out = Vec::new();
            answer.put(&mut out);
            if out.len() > MAX_LONG_CONTROL_BYTES {
                let text = format!(
                    "the answer has {} bytes, at most {MAX_LONG_CONTROL_BYTES} travel",
                    out.len()
                );
                return exchange.refuse(Status::TooLarge, &Refusal::new(text));
            }
            exchange.send(Status::Ok, 0, &out, &[])
        }
        Err(Refused(status, refusal)) => exchange.refuse(status, &refusal),
    }
}

fn fenced(client: ClientId) -> Refused {
    let text = format!(
        "{client} was not heard of for longer than its lease and counts as dead: its files were closed and \
         its locks given to others; open the files again, and write again what was not synced"
    );
    Refused::new(Status::Fenced, text)
}

impl Service for Manager {
    type Session = Session;

    fn hello(
        &self,
        peer: &Peer,
        hello: &Hello,
        proven: &Proven,
    ) -> Result<(Session, Welcome), (Status, Refusal)> {
        self.introduce(peer, hello, proven)
            .map_err(|Refused(status, refusal)| (status, refusal))
    }

    fn waits_for_others(&self, kind: u16) -> bool {
        waits_for_others(kind)
    }

    fn slow(&self, kind: u16) -> Option<Duration> {
        self.slow.filter(|_| !waits_for_others(kind))
    }

    fn summary(&self, session: &Session, exchange: &Exchange) -> RequestSummary {
        self.summary_of(session, exchange)
    }

    fn limits(&self) -> serving::Limits {
        self.connection_limits
    }

    fn user(&self, session: &Session) -> Option<u32> {
        matches!(session.who, Who::Client(_)).then_some(session.credentials.user)
    }

    fn handle(&self, session: &mut Session, exchange: &mut Exchange) -> Outcome {
        let header = exchange.header();
        let kind = header.kind;
        session.asked = Asked {
            number: header.request,
            kind,
            is_repeated: header.flags & REPEATED != 0,
        };
        self.requests.count(kind);
        macro_rules! table {
            ($($request:ident => $work:expr;)*) => {
                match kind {
                    $($request::KIND => self.reply::<$request>(session, exchange, $work),)*
                    other => {
                        let text = format!("the metadata manager does not answer kind {other:#x}");
                        exchange.refuse(Status::Unsupported, &Refusal::new(text))
                    }
                }
            };
        }
        match kind {
            Join::KIND => {
                let socket = exchange.socket().try_clone_to_owned();
                let socket = socket.map_err(LinkError::Io)?;
                return self.reply::<Join>(session, exchange, |manager, session, request| {
                    manager.join(session, request, socket)
                });
            }
            AttachStamps::KIND => return self.attach_stamps(session, exchange),
            Shutdown::KIND => {
                let mut is_done = false;
                let outcome = self.reply::<Shutdown>(session, exchange, |m, session, request| {
                    m.shutdown(session, request)?;
                    is_done = true;
                    Ok(())
                });
                if is_done {
                    self.end();
                }
                return outcome;
            }
            _ => {}
        }
        table! {
            Ping => |_, _, _| Ok(());
            Goodbye => Manager::goodbye;
            Statistics => |manager, _, _| manager.statistics();
            GetSupervisor => Manager::supervisor;
            AwaitRecalls => Manager::await_recalls;

            Open => Manager::open_backed;
            Reopen => Manager::reopen;
            Close => Manager::close_backed;
            RenewCapability => Manager::renew_capability;
            Create => |m, s, r| m.backed(s, r, Manager::create);
            Mkdir => Manager::mkdir_backed;
            Unlink => Manager::unlink_backed;
            Rmdir => Manager::rmdir_backed;
            RemoveTree => Manager::remove_tree_backed;
            Rename => Manager::rename_backed;
            Stat => |m, s, r| m.backed(s, r, Manager::stat);
            List => Manager::list_backed;
            Chmod => |m, s, r| m.backed(s, r, Manager::chmod);
            Chown => |m, s, r| m.backed(s, r, Manager::chown);
            Utimes => |m, s, r| m.backed(s, r, Manager::utimes);
            SetLayout => |m, s, r| m.backed(s, r, Manager::set_layout);
            GetLayout => |m, s, r| m.backed(s, r, Manager::get_layout);
            GetState => Manager::get_state;
            GetSubfile => Manager::get_subfile;
            PutView => |m, s, r| m.backed(s, r, Manager::put_view);
            GetView => |m, s, r| m.backed(s, r, Manager::get_view);
            RemoveView => |m, s, r| m.backed(s, r, Manager::remove_view);
            ListViews => |m, s, r| m.backed(s, r, Manager::list_views);
            ChangeValues => |m, s, r| m.backed(s, r, Manager::change_values);
            GetValues => |m, s, r| m.backed(s, r, Manager::get_values);
            ChangeArray => |m, s, r| m.backed(s, r, Manager::change_array);
            Members => Manager::list_members;
            Count => Manager::count;
            Check => Manager::check;
            Backup => Manager::backup;
            PutCalibration => Manager::put_calibration;
            GetCalibrations => Manager::get_calibrations;
            Relayout => |m, s, r| m.backed(s, r, Manager::relayout);
            RelayoutProgress => Manager::relayout_progress;
            ControlRelayout => Manager::control_relayout;
            ListMoves => Manager::list_moves;
            Drain => Manager::drain;
            DrainProgress => Manager::drain_progress;
            Rebalance => Manager::rebalance;
            Gather => Manager::gather;
            LeaveTeam => Manager::leave_team;
            WatchTeam => Manager::watch_team;
            LayOutByViews => Manager::lay_out_by_views;
            SetHints => |m, s, r| m.backed(s, r, Manager::set_hints);
            GetHints => |m, s, r| m.backed(s, r, Manager::get_hints);
            DiskFailed => Manager::disk_failed;
            ClearFailed => Manager::clear_failed;
            ListFailed => Manager::list_failed;
            Assign => Manager::assign;
            Buddy => Manager::buddy;
            PutProfile => Manager::put_profile;
            GetProfile => |m, s, r| m.backed(s, r, Manager::get_profile);
            SetProfile => |m, s, r| m.backed(s, r, Manager::set_profile);
            ReportUse => Manager::report_use;

            Report => Manager::report_backed;
            FileState => Manager::file_state;
            ReportSize => Manager::report_size_backed;
            BeginTruncate => Manager::begin_truncate;
            FinishTruncate => Manager::finish_truncate;
        }
    }

    fn silence(&self) -> Duration {
        self.client_silence
    }

    fn ended(&self, session: Session) {
        // The session knows what to give back, also when it never got this far.
        drop(session);
    }
}
