//! Who is connected: clients with their views, connections with what they are busy with.
//!
//! All connections of a client are one session: they share its views and its quota. A fenced client is
//! refused for ever; its connections are ended, which also ends what waits for its bytes.
//!
//! Left to others: what the death of a client means for its locks.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};
use serving::{PerUser, Taken};
use store::{Grant, Pins};
use wire::describe::Assembly;
use wire::{ClientId, FileId, ServerId, Status};

use crate::access::Part;
use crate::buffers::Borrower;
use crate::context::Identity;
use crate::direct::{Attachment, GivenSegments};
use crate::fenced::FencedClients;
use crate::limits::Limits;
use crate::moving::LentSegments;
use crate::ops::{Hold, Permit};
use crate::refused::Refused;
use crate::seen_uses::SeenUses;
use crate::views::RegisteredView;

/// Descriptions of one client that may be on their way in parts at a time.
const ASSEMBLIES: usize = 16;
/// An access without progress for so long ends its connection.
pub(crate) const STUCK: Duration = Duration::from_secs(60);
/// How fast the slowest peer is that may hold what others wait for, and how long it may pause.
const SLOW_BYTES_PER_S: u64 = 256 << 10;
const SLOW_WAIT_MS: u64 = 2_000;
/// How long a fence waits for what runs after the connections were ended.
const FENCE: Duration = Duration::from_secs(20);

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A client, working for a user.
    Client { client: ClientId, user: u32 },
    /// Another server, or the metadata manager.
    Server(ServerId),
}

/// A description of which parts are missing.
pub(crate) struct PendingView {
    pub(crate) file: FileId,
    pub(crate) permit: Permit,
    pub(crate) announced: u64,
    pub(crate) assembly: Assembly,
}

/// What the descriptions of a client take, finished or not.
#[derive(Default)]
struct Described {
    bytes: u64,
    /// What that is of the shares of its user: how many, and how many bytes.
    of_user: Option<[Taken; 2]>,
}

/// What all clients of a user have at most.
struct UserShares {
    views: Arc<PerUser>,
    view_bytes: Arc<PerUser>,
}

impl UserShares {
    fn new(limits: &Limits) -> Self {
        let of_user = |most: usize| most.saturating_mul(serving::CLIENTS_OF_A_USER);
        let bytes = usize::try_from(limits.view_bytes).unwrap_or(usize::MAX);
        UserShares {
            views: PerUser::new("views", "--views", of_user(limits.views)),
            view_bytes: PerUser::new("bytes of views", "--view-bytes", of_user(bytes)),
        }
    }

    /// Nothing yet, for a client.
    fn join(&self, user: u32) -> Option<[Taken; 2]> {
        let none = |share: &Arc<PerUser>| share.take_many(user, 0).ok();
        Some([none(&self.views)?, none(&self.view_bytes)?])
    }
}

/// One client, over all its connections.
pub(crate) struct Client {
    pub(crate) id: ClientId,
    views: RwLock<HashMap<u64, Arc<RegisteredView>>>,
    pending: Mutex<HashMap<u64, PendingView>>,
    described: Mutex<Described>,
    most_views: usize,
    most_view_bytes: u64,
    is_fenced: AtomicBool,
    running: AtomicU64,
    idle: Condvar,
    waiting: Mutex<()>,
    pub(crate) said_goodbye: AtomicBool,
    /// Requests that have come, of any kind.
    pub(crate) requests: AtomicU64,
    /// Its process is on this host, so its death is seen there.
    pub(crate) is_watched: AtomicBool,
    /// The memory it shares with this server.
    pub(crate) attached: Mutex<Attachment>,
    /// Held while that is taken back.
    pub(crate) detaching: Mutex<()>,
    /// Held while a map is made for it, or given up.
    pub(crate) mapping: Mutex<()>,
}

impl Client {
    fn new(id: ClientId, limits: &Limits, of_user: Option<[Taken; 2]>) -> Self {
        Client {
            id,
            most_views: limits.views,
            most_view_bytes: limits.view_bytes,
            views: RwLock::default(),
            pending: Mutex::default(),
            described: Mutex::new(Described { bytes: 0, of_user }),
            is_fenced: AtomicBool::new(false),
            running: AtomicU64::new(0),
            idle: Condvar::new(),
            waiting: Mutex::default(),
            said_goodbye: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            is_watched: AtomicBool::new(false),
            attached: Mutex::default(),
            detaching: Mutex::default(),
            mapping: Mutex::default(),
        }
    }

    /// A registered view.
    pub(crate) fn view(&self, number: u64) -> Result<Arc<RegisteredView>, Refused> {
        let views = self.views.read();
        views.get(&number).cloned().ok_or_else(|| {
            Refused::new(
                Status::UnknownView,
                format!("view {number} is not registered here; register it and repeat"),
            )
        })
    }

    /// Registered views.
    pub(crate) fn view_count(&self) -> usize {
        self.views.read().len()
    }

    /// Sets bytes of the quota aside.
    pub(crate) fn take_quota(&self, bytes: u64) -> Result<(), Refused> {
        let views = self.view_count();
        if views >= self.most_views {
            return Err(Refused::new(
                Status::QuotaExceeded,
                format!(
                    "{views} views are registered, as many as a client may have; drop some, or start the server with \
                     more --views"
                ),
            ));
        }
        let most = self.most_view_bytes;
        let mut described = self.described.lock();
        let used = described.bytes;
        let Some(sum) = used.checked_add(bytes).filter(|&sum| sum <= most) else {
            return Err(Refused::new(
                Status::QuotaExceeded,
                format!(
                    "description of {bytes} bytes: {used} of {most} bytes are in use; drop views first, or start the \
                     server with more --view-bytes"
                ),
            ));
        };
        if let Some([count, of_user]) = &mut described.of_user {
            let refused = |(status, refusal)| Refused { status, refusal };
            count.grow(1).map_err(refused)?;
            of_user.grow(bytes as usize).map_err(|no| {
                count.shrink(1);
                refused(no)
            })?;
        }
        described.bytes = sum;
        Ok(())
    }

    fn give_quota(&self, bytes: u64) {
        let mut described = self.described.lock();
        described.bytes -= bytes;
        if let Some([count, of_user]) = &mut described.of_user {
            count.shrink(1);
            of_user.shrink(bytes as usize);
        }
    }

    /// Binds a number to a view whose quota was taken.
    pub(crate) fn register(&self, number: u64, view: RegisteredView) {
        let mut views = self.views.write();
        let before = views.insert(number, Arc::new(view));
        drop(views);
        if let Some(before) = before {
            self.give_quota(before.description_bytes());
        }
    }

    /// Forgets a view, or one that is on its way; its file.
    pub(crate) fn drop_view(&self, number: u64) -> Result<Option<FileId>, Refused> {
        let pending = self.take_pending(number);
        if let Some(pending) = &pending {
            self.give_quota(pending.announced);
        }
        let mut views = self.views.write();
        let found = views.remove(&number);
        drop(views);
        match found {
            Some(view) => {
                self.give_quota(view.description_bytes());
                Ok(Some(view.file))
            }
            None if pending.is_some() => Ok(None),
            None => self.view(number).map(|_| None),
        }
    }

    /// Keeps a description whose parts are still to come; its quota was taken.
    pub(crate) fn put_pending(&self, number: u64, pending: PendingView) -> Result<(), Refused> {
        let mut all = self.pending.lock();
        if all.len() >= ASSEMBLIES && !all.contains_key(&number) {
            drop(all);
            self.give_quota(pending.announced);
            return Err(Refused::new(
                Status::QuotaExceeded,
                format!("{ASSEMBLIES} descriptions are on their way already; finish one first"),
            ));
        }
        if let Some(before) = all.insert(number, pending) {
            drop(all);
            self.give_quota(before.announced);
        }
        Ok(())
    }

    /// Takes a description that is on its way.
    pub(crate) fn take_pending(&self, number: u64) -> Option<PendingView> {
        self.pending.lock().remove(&number)
    }

    /// A description turned out to be none.
    pub(crate) fn give_up(&self, bytes: u64) {
        self.give_quota(bytes);
    }

    /// Counts an access of the client, unless it is fenced.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Busy, Refused> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let busy = Busy(Arc::clone(self));
        if self.is_fenced.load(Ordering::SeqCst) {
            return Err(fenced(self.id));
        }
        Ok(busy)
    }
}

/// What a fenced client gets.
pub(crate) fn fenced(client: ClientId) -> Refused {
    let text = format!(
        "{client} was not heard of for longer than its lease and counts as dead: its locks were given to \
         others; open the file again, and write again what was not synced"
    );
    Refused::new(Status::Fenced, text)
}

/// An access of a client that runs.
pub(crate) struct Busy(Arc<Client>);

impl Drop for Busy {
    fn drop(&mut self) {
        let client = &self.0;
        if client.running.fetch_sub(1, Ordering::SeqCst) == 1
            && client.is_fenced.load(Ordering::SeqCst)
        {
            drop(client.waiting.lock());
            client.idle.notify_all();
        }
    }
}

/// One connection, as others see it.
#[derive(Default)]
pub(crate) struct Connection {
    socket: OnceLock<OwnedFd>,
    client: u64,
    /// The file it accesses, with 1 added; 0 while it waits for a request.
    file: AtomicU64,
    /// When it last made progress, in milliseconds since the server started.
    progress_ms: AtomicU64,
    /// When its peer should have sent or taken what is waited for; 0 while the server itself is busy.
    due_ms: AtomicU64,
    clock: Clock,
}

/// Milliseconds since the server started.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Default for Clock {
    fn default() -> Self {
        Clock(Instant::now())
    }
}

impl Clock {
    fn now_ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Connection {
    /// Remembers the socket, so that others can end the connection.
    pub(crate) fn know(&self, socket: BorrowedFd<'_>) {
        if self.socket.get().is_none()
            && let Ok(second) = socket.try_clone_to_owned()
        {
            let _ = self.socket.set(second);
        }
    }

    /// Ends both directions; the thread that serves it wakes up.
    pub(crate) fn end(&self) {
        if let Some(socket) = self.socket.get() {
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
    }

    /// Whether the peer has not closed it.
    pub(crate) fn is_open(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(socket) = self.socket.get() else {
            return true;
        };
        let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::RDHUP)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        !matches!(poll(&mut fds, Some(&now)), Ok(n) if n > 0 && fds[0].revents().intersects(gone))
    }

    /// The server waits until the peer has sent or taken so many bytes, and holds something meanwhile that others may
    /// need. A peer at the end of a slow line has the time for that.
    pub(crate) fn waits_for(&self, bytes: u64) -> Due<'_> {
        let time = SLOW_WAIT_MS + bytes * 1000 / SLOW_BYTES_PER_S;
        let due = self.clock.now_ms() + time;
        self.due_ms.store(due, Ordering::Relaxed);
        Due(self)
    }

    /// Whether the peer has let the server wait for longer than that.
    pub(crate) fn is_overdue(&self) -> bool {
        let due = self.due_ms.load(Ordering::Relaxed);
        due != 0 && self.clock.now_ms() > due
    }

    /// How long until the peer is overdue; nothing if it is not waited for.
    fn overdue_in(&self) -> Option<Duration> {
        let due = self.due_ms.load(Ordering::Relaxed);
        let left = due.saturating_sub(self.clock.now_ms());
        (due != 0).then(|| Duration::from_millis(left))
    }

    /// It is busy with a file, or still is.
    pub(crate) fn busy_with(&self, file: FileId) {
        let now = self.clock.now_ms();
        self.progress_ms.store(now, Ordering::Relaxed);
        self.file.store(file.0.wrapping_add(1), Ordering::Release);
    }

    /// It waits for the next request.
    pub(crate) fn idle(&self) {
        self.file.store(0, Ordering::Release);
    }
}

/// As long as it lives a peer is waited for.
pub(crate) struct Due<'a>(&'a Connection);

impl Drop for Due<'_> {
    fn drop(&mut self) {
        self.0.due_ms.store(0, Ordering::Relaxed);
    }
}

/// What one access uses and leaves for the next: nothing is allocated in the steady state.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) grant: Grant,
    pub(crate) pins: Pins,
    pub(crate) parts: Vec<Part>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) out: Vec<u8>,
    /// The request of a gateway, and memory for short ones.
    pub(crate) control: Vec<u8>,
    pub(crate) stage: crate::gateway::Stage,
}

/// What a connection keeps.
pub(crate) struct Session {
    pub(crate) who: Who,
    pub(crate) client: Arc<Client>,
    pub(crate) connection: Arc<Connection>,
    number: u64,
    /// Locks that were asked for on this connection.
    pub(crate) locks: Vec<u64>,
    pub(crate) scratch: Scratch,
    /// The process at the other end of a Unix socket.
    pub(crate) process: Option<u64>,
    /// Its place among the connections of its user.
    pub(crate) taken: Option<Taken>,
    /// Ranges that are held through this connection.
    pub(crate) holds: Vec<Hold>,
    /// Segments that went over this connection.
    pub(crate) given: GivenSegments,
    /// Segments that were lent over this connection to a server that pulls.
    pub(crate) lent: LentSegments,
}

impl Session {
    /// Whether another server is at the other end.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.who, Who::Server(_))
    }

    /// Who borrows what others may need.
    pub(crate) fn borrower(&self) -> Borrower {
        Borrower::new(self.who, &self.connection)
    }

    /// The server at the other end, or this one.
    pub(crate) fn server(&self, here: &Identity) -> ServerId {
        match self.who {
            Who::Server(server) => server,
            Who::Client { .. } => here.server,
        }
    }

    /// Refuses all but root and the user who runs this server.
    pub(crate) fn demand_operator(&self) -> Result<(), Refused> {
        let own = rustix::process::geteuid().as_raw();
        match self.who {
            Who::Client { user, .. } if user != 0 && user != own => Err(Refused::new(
                Status::PermissionDenied,
                format!("this is for root and user {own}, who runs the server"),
            )),
            _ => Ok(()),
        }
    }
}

#[derive(Default)]
struct Table {
    clients: HashMap<ClientId, (Arc<Client>, usize)>,
    connections: HashMap<u64, Arc<Connection>>,
    /// Clients that other servers work for here at this moment.
    forwarded: HashMap<ClientId, Arc<Client>>,
    fenced: FencedClients,
    shares: Option<UserShares>,
    next: u64,
}

/// All clients that are connected.
#[derive(Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
    clock: Clock,
    /// What was seen of clients, for the profiles of files.
    pub(crate) seen_uses: Arc<SeenUses>,
}

impl Sessions {
    /// A connection of a client or server whose identity was proven; whether it is its first.
    pub(crate) fn open(&self, who: Who, limits: &Limits) -> Result<(Session, bool), Refused> {
        let mut table = self.table.lock();
        let (client, is_first) = match who {
            Who::Client { client, user } => {
                if table.fenced.contains(client) {
                    return Err(fenced(client));
                }
                let shares = table.shares.get_or_insert_with(|| UserShares::new(limits));
                let of_user = shares.join(user);
                let new = || (Arc::new(Client::new(client, limits, of_user)), 0);
                let entry = table.clients.entry(client).or_insert_with(new);
                entry.1 += 1;
                (Arc::clone(&entry.0), entry.1 == 1)
            }
            // Connections of servers have nothing in common.
            Who::Server(_) => (Arc::new(Client::new(ClientId(0), limits, None)), true),
        };
        table.next += 1;
        let number = table.next;
        let connection = Arc::new(Connection {
            client: client.id.0,
            clock: self.clock,
            ..Connection::default()
        });
        table.connections.insert(number, Arc::clone(&connection));
        drop(table);
        let session = Session {
            who,
            client,
            connection,
            number,
            locks: Vec::new(),
            scratch: Scratch::default(),
            process: None,
            taken: None,
            holds: Vec::new(),
            given: GivenSegments::default(),
            lent: LentSegments::default(),
        };
        Ok((session, is_first))
    }

    /// Counts an access of a client that another server asks for, unless the client is fenced.
    pub(crate) fn begin_for(&self, client: ClientId) -> Result<Busy, Refused> {
        let mut table = self.table.lock();
        if table.fenced.contains(client) {
            return Err(fenced(client));
        }
        if !table.forwarded.contains_key(&client) {
            // Those of whom nothing runs are not needed: a fence that comes later is found in the table.
            table
                .forwarded
                .retain(|_, c| c.running.load(Ordering::SeqCst) > 0);
        }
        let entry = table.forwarded.entry(client);
        entry
            .or_insert_with(|| Arc::new(Client::new(client, &Limits::default(), None)))
            .begin()
    }

    /// A connection has ended; whether it was the client's last.
    pub(crate) fn close(&self, session: &Session) -> bool {
        let mut table = self.table.lock();
        table.connections.remove(&session.number);
        let Some(entry) = table.clients.get_mut(&session.client.id) else {
            return session.is_server();
        };
        entry.1 -= 1;
        let is_last = entry.1 == 0;
        if is_last {
            tracing::info!(client = session.client.id.0, "client went");
            table.clients.remove(&session.client.id);
        }
        is_last
    }

    /// A client that has a connection.
    pub(crate) fn find(&self, client: ClientId) -> Option<Arc<Client>> {
        let table = self.table.lock();
        table
            .clients
            .get(&client)
            .map(|(found, _)| Arc::clone(found))
    }

    /// Whether a client has a connection.
    pub(crate) fn is_connected(&self, client: ClientId) -> bool {
        self.table.lock().clients.contains_key(&client)
    }

    /// How many requests of a client have come, if it has a connection.
    pub(crate) fn requests_of(&self, client: ClientId) -> Option<u64> {
        let found = self.find(client)?;
        Some(found.requests.load(Ordering::Relaxed))
    }

    /// Whether a client is refused.
    pub(crate) fn is_fenced(&self, client: ClientId) -> bool {
        self.table.lock().fenced.contains(client)
    }

    /// Ends the connections of a client that keeps others waiting: what it holds over them is free when they have
    /// ended. It may connect again.
    pub(crate) fn disconnect(&self, client: ClientId) {
        for connection in self.table.lock().connections.values() {
            if connection.client == client.0 {
                connection.end();
            }
        }
    }

    /// Refuses a client from now on; whether nothing of it runs.
    pub(crate) fn refuse(&self, client: ClientId) -> bool {
        let all = self.mark_fenced(client);
        all.iter().all(|c| c.running.load(Ordering::SeqCst) == 0)
    }

    /// Refuses a client and ends its connections; what it is known by here.
    fn mark_fenced(&self, client: ClientId) -> Vec<Arc<Client>> {
        tracing::info!(client = client.0, "client fenced");
        let mut table = self.table.lock();
        table.fenced.insert(client);
        let direct = table.clients.get(&client).map(|(c, _)| Arc::clone(c));
        let forwarded = table.forwarded.get(&client).map(Arc::clone);
        let all: Vec<Arc<Client>> = direct.into_iter().chain(forwarded).collect();
        for found in &all {
            found.is_fenced.store(true, Ordering::SeqCst);
        }
        for connection in table.connections.values() {
            if connection.client == client.0 {
                connection.end();
            }
        }
        all
    }

    /// Refuses a client from now on; returns when nothing of it runs.
    pub(crate) fn fence(&self, client: ClientId) -> Result<(), Refused> {
        let deadline = Instant::now() + FENCE;
        for found in self.mark_fenced(client) {
            let mut waiting = found.waiting.lock();
            while found.running.load(Ordering::SeqCst) > 0 {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    let text = format!("something of {client} still runs here");
                    return Err(Refused::new(Status::TimedOut, text));
                }
                found.idle.wait_for(&mut waiting, left);
            }
        }
        Ok(())
    }

    /// Ends the connections that are busy with a file.
    pub(crate) fn hurry(&self, file: FileId) {
        let wanted = file.0.wrapping_add(1);
        for connection in self.table.lock().connections.values() {
            if connection.file.load(Ordering::Acquire) == wanted {
                connection.end();
            }
        }
    }

    /// Ends connections whose peer neither sends nor takes bytes in the middle of an access.
    pub(crate) fn end_stuck(&self) {
        let now = self.clock.now_ms();
        let stuck = u64::try_from(STUCK.as_millis()).unwrap_or(u64::MAX);
        for connection in self.table.lock().connections.values() {
            let since = connection.progress_ms.load(Ordering::Relaxed);
            if connection.file.load(Ordering::Acquire) != 0 && now.saturating_sub(since) > stuck {
                tracing::warn!(
                    client = connection.client,
                    "client stands still: connection ended"
                );
                connection.end();
            }
        }
    }

    /// Ends connections whose peers are [overdue](Connection::waits_for): others need what is held for them.
    pub(crate) fn end_overdue(&self) {
        for connection in self.table.lock().connections.values() {
            if connection.is_overdue() {
                connection.end();
            }
        }
    }

    /// How long until all peers that are waited for now would be overdue.
    pub(crate) fn last_overdue_in(&self) -> Option<Duration> {
        let table = self.table.lock();
        let connections = table.connections.values();
        connections.filter_map(|c| c.overdue_in()).max()
    }

    /// Connections, clients, and their views.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let table = self.table.lock();
        let views = table.clients.values().map(|(c, _)| c.view_count()).sum();
        (table.connections.len(), table.clients.len(), views)
    }
}
