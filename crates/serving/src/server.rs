//! Accepting connections and running their threads until the server is told to stop.
//!
//! What a connection is about is the [`Service`]'s affair; here it is made, introduced and ended.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use wire::Status;
use wire::link::{Link, LinkError, Listener};
use wire::message::session::{Hello, Prove, Role, Welcome};
use wire::message::{self, Bytes, Refusal, Request};
use wire::url::Endpoint;

use identity::{Channel, Holder, Keys, TlsError, proof, proof_of_server, random};

use crate::connection::{Exchange, Outcome};
use crate::limits::{BEYOND, Limits, PerUser, full};
use crate::peer::Peer;
use crate::seldom::Seldom;
use crate::slow::{RequestSummary, Stopwatch};

/// A connection that says nothing sensible for so long is closed.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// When there are too many connections that have not introduced themselves, one that has kept the server waiting for so long gives
/// way.
const STRANGER_TIME: Duration = Duration::from_millis(250);
/// A connection that was told why it ends has so long to read it.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(10);

/// What a peer has proven on its connection.
#[derive(Clone, Debug, Default)]
pub struct Proven {
    /// That it knows the secret of its role.
    pub secret: bool,
    /// Whose certificate it has.
    pub holder: Option<Holder>,
    /// What keys travel in on this connection.
    pub channel: Channel,
}

impl Proven {
    /// That it is a server: by its secret, if it came in that role, or by its certificate.
    pub fn is_server(&self) -> bool {
        match &self.holder {
            Some(holder) => *holder == Holder::Server,
            None => self.secret,
        }
    }
}

/// What a server does with its connections.
pub trait Service: Send + Sync + 'static {
    /// What it keeps per connection.
    type Session: Send;

    /// A peer introduces itself. What it claims may be believed only as far as the kernel says it, or it
    /// has proven it.
    fn hello(
        &self,
        peer: &Peer,
        hello: &Hello,
        proven: &Proven,
    ) -> Result<(Self::Session, Welcome), (Status, Refusal)>;

    /// A request. The handler answers through the exchange; an error closes the connection.
    fn handle(&self, session: &mut Self::Session, exchange: &mut Exchange) -> Outcome;

    /// How long the host of a peer may be silent before its connection counts as ended.
    fn silence(&self) -> Duration {
        wire::link::SILENCE
    }

    /// The connection has ended.
    fn ended(&self, session: Self::Session);

    /// The user whom a connection works for; servers work for none.
    fn user(&self, _session: &Self::Session) -> Option<u32> {
        None
    }

    /// From when on a request of a kind is slow and told in the log; nothing if it never is.
    fn slow(&self, _kind: u16) -> Option<Duration> {
        None
    }

    /// Whether a request of a kind takes as long as others like: a server that ends does not wait for it.
    fn waits_for_others(&self, _kind: u16) -> bool {
        false
    }

    /// What a request is about, for the log of slow ones. Asked for before it is handled, and only if slow ones are told.
    fn summary(&self, _session: &Self::Session, _exchange: &Exchange) -> RequestSummary {
        RequestSummary::default()
    }

    /// How many connections there may be. Those of one user are the service's affair, which knows him
    /// ([`PerUser`]).
    fn limits(&self) -> Limits {
        Limits::default()
    }
}

struct Shared<S> {
    service: Arc<S>,
    keys: Keys,
    is_stopping: AtomicBool,
    /// Clients are told to come again.
    is_draining: AtomicBool,
    connections: Arc<Connections>,
    next: AtomicU64,
    panics: AtomicU64,
    limits: Limits,
    /// What long messages take.
    long_messages: Arc<PerUser>,
}

/// Apart from the service, so that a thread lets go of that before it says that it has ended: a thread that
/// stops a server may rely on it that nobody else holds the service then.
#[derive(Default)]
struct Connections {
    open: Mutex<Open>,
    /// One has ended, or has introduced itself.
    changed: Condvar,
}

#[derive(Default)]
struct Open {
    /// A second handle on every open connection, to end it from outside.
    links: HashMap<u64, Link>,
    /// Whether each of them is in the middle of a request that is waited for.
    busy: HashMap<u64, Arc<AtomicBool>>,
    /// Those that have not introduced themselves, the oldest first, and since when.
    strangers: BTreeMap<u64, Instant>,
}

impl Open {
    /// The oldest stranger that has kept the server waiting: nothing came that is still to be read.
    fn overdue(&self) -> Option<u64> {
        let old = self.strangers.iter();
        let mut old = old.take_while(|(_, since)| since.elapsed() >= STRANGER_TIME);
        let is_silent = |number: &u64| self.links.get(number).is_none_or(|link| !link.has_input());
        old.find(|(number, _)| is_silent(number))
            .map(|(number, _)| *number)
    }
}

impl Connections {
    fn introduced(&self, number: u64) {
        self.open.lock().strangers.remove(&number);
        self.changed.notify_all();
    }

    /// Waits until one more stranger finds room, because another has introduced itself or gone; one that is overdue is ended.
    fn admit_stranger(&self, open: &mut MutexGuard<'_, Open>, most: usize, is_over: &AtomicBool) {
        while open.strangers.len() >= most && !is_over.load(Ordering::SeqCst) {
            match open.overdue() {
                Some(number) => {
                    open.strangers.remove(&number);
                    if let Some(link) = open.links.get(&number) {
                        link.shutdown();
                    }
                }
                None => {
                    let _ = self.changed.wait_for(open, STRANGER_TIME / 10);
                }
            }
        }
    }
}

/// A server that runs.
pub struct Running<S> {
    shared: Arc<Shared<S>>,
    endpoints: Vec<Endpoint>,
    accepting: Mutex<Vec<(Arc<Listener>, JoinHandle<()>)>>,
}

impl<S> std::fmt::Debug for Running<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

/// Serves all listeners, each with a thread that accepts. With a secret for a role, peers of that role on TCP
/// have to prove that they know it.
pub fn start<S: Service>(
    service: Arc<S>,
    listeners: Vec<Listener>,
    keys: Keys,
) -> io::Result<Running<S>> {
    let limits = service.limits();
    let shared = Arc::new(Shared {
        limits,
        long_messages: PerUser::shared(
            "bytes of long messages",
            "--long-message-bytes",
            limits.long_message_bytes,
        ),
        service,
        keys,
        is_stopping: AtomicBool::new(false),
        is_draining: AtomicBool::new(false),
        connections: Arc::default(),
        next: AtomicU64::new(1),
        panics: AtomicU64::new(0),
    });
    let endpoints = listeners
        .iter()
        .map(Listener::endpoint)
        .collect::<io::Result<_>>()?;
    let running = Running {
        shared,
        endpoints,
        accepting: Mutex::new(Vec::new()),
    };
    for listener in listeners.into_iter().map(Arc::new) {
        let (shared, theirs) = (Arc::clone(&running.shared), Arc::clone(&listener));
        let spawned = thread::Builder::new()
            .name("accept".into())
            .spawn(move || accept(&shared, &theirs));
        match spawned {
            Ok(thread) => running.accepting.lock().push((listener, thread)),
            Err(error) => {
                running.stop(Duration::ZERO);
                return Err(error);
            }
        }
    }
    Ok(running)
}

impl<S: Service> Running<S> {
    /// Where it listens.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Its service.
    pub fn service(&self) -> &Arc<S> {
        &self.shared.service
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.shared.connections.open.lock().links.len()
    }

    /// Handlers that panicked; each is a bug.
    pub fn panics(&self) -> u64 {
        self.shared.panics.load(Ordering::Relaxed)
    }

    /// Refuses what clients ask from now on, so that they ask again when there is another start, and waits until what was asked
    /// before is answered, or the time is over; whether all of it was. Other servers are served as before.
    pub fn drain(&self, patience: Duration) -> bool {
        self.shared.is_draining.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + patience;
        let connections = &self.shared.connections;
        let mut open = connections.open.lock();
        while open.busy.values().any(|busy| busy.load(Ordering::SeqCst)) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            connections.changed.wait_for(&mut open, left);
        }
        true
    }

    /// Accepts nobody any more, ends all connections and waits until their threads are through
    /// with what they were doing, or the time is over.
    pub fn stop(&self, patience: Duration) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        for (listener, thread) in self.accepting.lock().drain(..) {
            listener.close();
            // It waits for nothing else, and no connection is new once it has ended.
            let _ = thread.join();
        }
        let mut open = self.shared.connections.open.lock();
        for link in open.links.values() {
            link.shutdown();
        }
        let deadline = Instant::now() + patience;
        while !open.links.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.shared.connections.changed.wait_for(&mut open, left);
        }
    }
}

fn accept<S: Service>(shared: &Arc<Shared<S>>, listener: &Listener) {
    let mut is_out = false;
    loop {
        let link = match listener.accept() {
            Ok(link) => link,
            // Out of descriptors, or a connection that was gone before it was accepted.
            Err(error) if !shared.is_stopping.load(Ordering::SeqCst) => {
                if !std::mem::replace(&mut is_out, true) {
                    tracing::warn!(%error, "connections are not accepted");
                }
                pause();
                continue;
            }
            Err(_) => return,
        };
        is_out = false;
        // One that is gone already is found to be when it is read from.
        let _ = link.end_when_silent(shared.service.silence());
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let Ok(second) = link.try_clone() else {
            continue;
        };
        {
            // Under the lock: the thread that stops the server ends what is in the table then.
            let connections = &shared.connections;
            let mut open = connections.open.lock();
            connections.admit_stranger(&mut open, shared.limits.strangers(), &shared.is_stopping);
            if shared.is_stopping.load(Ordering::SeqCst) {
                return;
            }
            if open.links.len() >= shared.limits.connections.saturating_add(BEYOND) {
                static UNHEARD: Seldom = Seldom::new();
                if let Some(left_out) = UNHEARD.line() {
                    tracing::warn!(
                        connections = open.links.len(),
                        left_out,
                        "limit met: connection closed unheard"
                    );
                }
                continue;
            }
            open.links.insert(number, second);
            open.strangers.insert(number, Instant::now());
        }
        let theirs = Arc::clone(shared);
        let spawned = thread::Builder::new()
            .name(format!("connection {number}"))
            .stack_size(512 << 10)
            .spawn(move || {
                if catch_unwind(AssertUnwindSafe(|| converse(&theirs, link, number))).is_err() {
                    theirs.panics.fetch_add(1, Ordering::Relaxed);
                }
                let connections = Arc::clone(&theirs.connections);
                drop(theirs);
                let mut open = connections.open.lock();
                open.strangers.remove(&number);
                open.busy.remove(&number);
                if let Some(second) = open.links.remove(&number) {
                    second.shutdown();
                }
                drop(open);
                connections.changed.notify_all();
            });
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for a connection");
            let mut open = shared.connections.open.lock();
            open.links.remove(&number);
            open.strangers.remove(&number);
        }
    }
}

/// Lets others give descriptors back; nothing tells when they have.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no condition to wait for"
)]
fn pause() {
    thread::sleep(Duration::from_millis(10));
}

/// Puts a connection under TLS, if that is demanded; with whose certificate.
fn protect<S: Service>(shared: &Shared<S>, link: Link) -> Option<(Link, Option<Holder>)> {
    let is_tcp = matches!(link.peer(), Ok(wire::link::PeerName::Tcp { .. }));
    let Some(tls) = shared.keys.tls.as_ref().filter(|_| is_tcp) else {
        return Some((link, None));
    };
    match tls.accept(link, HELLO_TIMEOUT) {
        Ok((link, holder)) => Some((link, Some(holder))),
        Err(TlsError::Plain(link)) => {
            let text = "this service speaks TLS only; name the files of your certificate in PARIO_TLS_CA, \
                        PARIO_TLS_CERT and PARIO_TLS_KEY";
            let mut exchange = Exchange::new(*link);
            // Its question is read, so that its number is in the answer.
            let _ = exchange.next_within(HELLO_TIMEOUT);
            farewell(&mut exchange, Status::Unauthenticated, &Refusal::new(text));
            None
        }
        Err(TlsError::Io(error)) => {
            tracing::debug!(%error, "connection ended before TLS stood");
            None
        }
        Err(TlsError::Refused(why)) => {
            static REFUSED: Seldom = Seldom::new();
            if let Some(left_out) = REFUSED.line() {
                tracing::warn!(%why, left_out, "certificate refused");
            }
            None
        }
    }
}

fn converse<S: Service>(shared: &Shared<S>, link: Link, number: u64) {
    let Some((link, holder)) = protect(shared, link) else {
        return;
    };
    let mut exchange = Exchange::new(link);
    let Some(mut session) = introduce(shared, &mut exchange, holder) else {
        return;
    };
    shared.connections.introduced(number);
    let user = shared.service.user(&session);
    let busy = Arc::new(AtomicBool::new(false));
    let table = &shared.connections.open;
    table.lock().busy.insert(number, Arc::clone(&busy));
    exchange.pool = user.map(|user| (Arc::clone(&shared.long_messages), user));
    if exchange.link.set_patience(shared.limits.patience).is_err() {
        shared.service.ended(session);
        return;
    }
    // A panic in a handler is a bug, but what the session holds is given back all the same.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        loop {
            match exchange.next() {
                Ok(()) => {}
                Err(LinkError::Frame(e)) => return Some(e),
                Err(_) => return None,
            }
            let kind = exchange.header.kind;
            let watch = shared.service.slow(kind).map(|limit| {
                let summary = shared.service.summary(&session, &exchange);
                Stopwatch::start(limit, kind, summary)
            });
            let is_awaited = !shared.service.waits_for_others(kind);
            busy.store(is_awaited, Ordering::SeqCst);
            // After it has said so: either the one who drains sees it, or it sees that.
            let handled = match shared.is_draining.load(Ordering::SeqCst) && user.is_some() {
                false => shared.service.handle(&mut session, &mut exchange),
                true => {
                    let text = "the server is ending; ask again when it has been started again";
                    exchange.refuse(Status::ShuttingDown, &Refusal::new(text))
                }
            };
            busy.store(false, Ordering::SeqCst);
            if shared.is_draining.load(Ordering::SeqCst) {
                // Under the lock: who is about to wait has not looked yet, or waits.
                drop(table.lock());
                shared.connections.changed.notify_all();
            }
            if let Some(watch) = watch {
                watch.stop();
            }
            if handled.is_err() {
                return None;
            }
        }
    }));
    if ended.is_err() {
        shared.panics.fetch_add(1, Ordering::Relaxed);
    }
    shared.service.ended(session);
    if let Ok(Some(e)) = ended {
        farewell(&mut exchange, e.status(), &Refusal::new(e.to_string()));
    }
}

/// Says why the connection ends, and lets the peer read it.
fn farewell(exchange: &mut Exchange, status: Status, refusal: &Refusal) {
    let _ = exchange.link.set_timeout(Some(FAREWELL_TIMEOUT));
    if exchange.refuse(status, refusal).is_ok() {
        exchange.link.finish(FAREWELL_TIMEOUT);
    }
}

fn introduce<S: Service>(
    shared: &Shared<S>,
    exchange: &mut Exchange,
    holder: Option<Holder>,
) -> Option<S::Session> {
    let peer = Peer::of(&exchange.link);
    let result = hello(shared, &peer, exchange, holder);
    match result {
        Ok((session, welcome)) => match exchange.answer(&welcome) {
            Ok(()) => Some(session),
            Err(_) => {
                shared.service.ended(session);
                None
            }
        },
        Err(Some((status, refusal))) => {
            static REFUSED: Seldom = Seldom::new();
            if let Some(left_out) = REFUSED.line() {
                tracing::info!(%status, why = refusal.text, left_out, "introduction refused");
            }
            farewell(exchange, status, &refusal);
            None
        }
        Err(None) => None,
    }
}

/// Why a connection is not served: what its peer is told, unless that is gone.
type Rejection = Option<(Status, Refusal)>;

fn hello<S: Service>(
    shared: &Shared<S>,
    peer: &Peer,
    exchange: &mut Exchange,
    holder: Option<Holder>,
) -> Result<(S::Session, Welcome), Rejection> {
    let hello: Hello = next_is(exchange, "the first message of a connection")?;
    let is_server = matches!(hello.role, Role::Server { .. } | Role::NewServer);
    if !is_server && shared.connections.open.lock().links.len() > shared.limits.connections {
        return Err(Some(full(&shared.limits)));
    }
    let is_unix = matches!(exchange.link.peer(), Ok(wire::link::PeerName::Unix { .. }));
    let needs_proof = !is_unix && holder.is_none();
    let secret = shared.keys.secret_for(&hello.role);
    let Some(secret) = secret.filter(|_| needs_proof) else {
        let proven = Proven {
            holder,
            ..Proven::default()
        };
        return shared.service.hello(peer, &hello, &proven).map_err(Some);
    };
    let challenge = random();
    let (whose, option) = match hello.role {
        Role::NewClient | Role::Client { .. } => ("the service", "PARIO_SECRET"),
        Role::NewServer | Role::Server { .. } => ("its servers", "PARIO_SERVER_SECRET"),
    };
    let refusal = Refusal {
        text: format!("prove that you know the secret of {whose} ({option})"),
        detail: Bytes(challenge.to_vec()),
    };
    exchange
        .refuse(Status::Unauthenticated, &refusal)
        .map_err(|_| None)?;
    let prove: Prove = next_is(exchange, "the answer to a challenge")?;
    if !control::capability::seals_equal(&prove.proof.0, &proof(secret, &challenge, &hello)) {
        let text = format!("the secret is not the one of {whose} ({option})");
        return Err(Some((Status::Unauthenticated, Refusal::new(text))));
    }
    let proven = Proven {
        secret: true,
        holder: None,
        channel: Channel::wrapped(secret, &challenge, &hello),
    };
    let (session, mut welcome) = shared.service.hello(peer, &hello, &proven).map_err(Some)?;
    welcome.proof = Bytes(proof_of_server(secret, &challenge, &hello).to_vec());
    Ok((session, welcome))
}

/// The next frame, which has to be an `R`; `what` it is, for those who sent something else.
fn next_is<R: Request>(exchange: &mut Exchange, what: &str) -> Result<R, Rejection> {
    match exchange.next_within(HELLO_TIMEOUT) {
        Ok(()) => {}
        Err(LinkError::Frame(e)) => return Err(Some((e.status(), Refusal::new(e.to_string())))),
        Err(_) => return Err(None),
    }
    if exchange.header.kind != R::KIND {
        let text = format!("{what} is {}", R::NAME);
        return Err(Some((Status::Malformed, Refusal::new(text))));
    }
    if exchange.header.payload_bytes > 0 {
        let text = format!("{} has no payload", R::NAME);
        return Err(Some((Status::Malformed, Refusal::new(text))));
    }
    message::decode(&exchange.control)
        .map_err(|e| Some((Status::Malformed, Refusal::new(e.to_string()))))
}
