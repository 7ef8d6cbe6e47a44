//! A client's session with a service: its number, its lanes, the members it knows.
//!
//! A *lane* is a set of connections (to the metadata manager and to servers) that one thread uses at
//! a time. Lanes are pooled: an operation takes one and gives it back; their number follows the
//! number of threads that were busy at once. Connections are made when they are first used.
//!
//! | part | what |
//! |---|---|
//! | `beats` | signs of life while a lock is held |
//! | `connect` | what a program says when it connects |
//! | `lane` | connections that one thread uses at a time |
//! | `open_files` | what the open files of a client have in common |
//! | `stamped` | what the metadata manager has said about names, for as long as it is so |
//!
//! Invariants
//! - Nothing is sent from a process other than the one that connected.
//! - Connections are closed only at the end, since a server far away may take the end of the last
//!   one for the death of the client.
//! - Every wait has a limit.

pub(crate) mod beats;
pub(crate) mod connect;
pub(crate) mod lane;
pub(crate) mod open_files;
pub(crate) mod stamped;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use ::direct::Process;
use parking_lot::Mutex;
use wire::link::Link;
use wire::message::Request;
use wire::message::catalogue::{Member, Members, StoreKind};
use wire::message::session::{Goodbye, Role, Welcome};
use wire::url::Endpoint;
use wire::{ClientId, Place, ServerId, Status};

use crate::error::{Error, Result, Trouble};
use crate::session::beats::Beats;
use crate::session::connect::{ConnectOptions, Connector};
use crate::session::lane::Lane;
use crate::session::open_files::OpenFiles;
use crate::session::stamped::StampedAnswers;
use crate::transport::outage::Outages;
use crate::transport::patience::Patience;
use crate::transport::pipe::{self, Pipe};

#[derive(Debug)]
pub(crate) struct Session {
    process: Process,
    /// This host, as local addresses of servers name it.
    pub(crate) host: String,
    pub(crate) options: ConnectOptions,
    connector: Arc<dyn Connector>,
    /// Who cannot be reached at present.
    pub(crate) outages: Outages,
    pub(crate) client: ClientId,
    role: Role,
    /// Which start of the metadata manager the handles are known to.
    manager_start: Mutex<u64>,
    /// Boxed, since they are taken and given for every access.
    #[allow(clippy::vec_box)]
    lanes: Mutex<Vec<Box<Lane>>>,
    /// What was last heard about servers, and whether it still seems to be right.
    members: Mutex<HashMap<u64, (Member, bool)>>,
    numbers: AtomicU64,
    pub(crate) open_files: OpenFiles,
    /// What is known about names.
    pub(crate) stamped: StampedAnswers,
    /// The shortest message that a server has wanted so far.
    message_bytes: AtomicU64,
    messages: AtomicU64,
    data_messages: AtomicU64,
    /// Owners of files at which something is held.
    pub(crate) beats: Arc<Beats>,
    /// A server has said that this client counts as dead.
    is_dead: AtomicBool,
}

impl Session {
    pub(crate) fn connect(
        connector: Arc<dyn Connector>,
        mut options: ConnectOptions,
    ) -> Result<Arc<Session>> {
        // A client that talks through one server does not touch the memory of others.
        options.direct &= options.mapping == advise::mapping::Strategy::Request;
        let mut patience = options.patience();
        let pipe = loop {
            match connect_manager(&*connector, &Role::NewClient, &options, None) {
                Ok(pipe) => break pipe,
                Err((Trouble::Broken(_), _)) if patience.broken() => {}
                Err((Trouble::Refused(Status::Busy | Status::ShuttingDown, _), _))
                    if patience.busy() => {}
                Err((trouble, address)) => return Err(trouble.into_error(None, &address)),
            }
        };
        let session = Session {
            process: Process::this(),
            host: identity::local_host(),
            client: pipe.welcome.client,
            role: Role::Client {
                client: pipe.welcome.client,
                session: pipe.welcome.session.clone(),
            },
            manager_start: Mutex::new(pipe.welcome.incarnation),
            options,
            connector,
            outages: Outages::default(),
            lanes: Mutex::new(vec![Box::new(Lane::with_manager(pipe))]),
            members: Mutex::default(),
            numbers: AtomicU64::new(1),
            open_files: OpenFiles::default(),
            stamped: StampedAnswers::default(),
            message_bytes: AtomicU64::new(u64::MAX),
            messages: AtomicU64::new(0),
            data_messages: AtomicU64::new(0),
            beats: Arc::default(),
            is_dead: AtomicBool::new(false),
        };
        Ok(Arc::new(session))
    }

    /// Another session in place of one that counts as dead.
    pub(crate) fn again(&self) -> Result<Arc<Session>> {
        self.check()?;
        Session::connect(Arc::clone(&self.connector), self.options.clone())
    }

    /// Whether the service has declared this client dead. Nothing brings it back.
    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Acquire)
    }

    /// Remembers what a trouble says about the whole session.
    pub(crate) fn heard(&self, trouble: &Trouble) {
        if let Trouble::Refused(Status::Fenced, refusal) = trouble {
            tracing::warn!(why = refusal.text, "fenced: this client counts as dead");
            self.is_dead.store(true, Ordering::Release);
        }
    }

    /// Refuses to go on in a forked child.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_ours() {
            return Ok(());
        }
        Err(Error::Forked)
    }

    #[inline]
    pub(crate) fn is_ours(&self) -> bool {
        self.process.is_this()
    }

    /// A number that was not used before.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// For one operation.
    pub(crate) fn patience(&self) -> Patience {
        self.options.patience()
    }

    pub(crate) fn count_message(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_data(&self, messages: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
        self.data_messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// Frames sent so far: all, and those about bytes.
    pub(crate) fn sent(&self) -> (u64, u64) {
        (
            self.messages.load(Ordering::Relaxed),
            self.data_messages.load(Ordering::Relaxed),
        )
    }

    /// Takes a lane for one operation.
    pub(crate) fn lane(&self) -> Box<Lane> {
        self.lanes.lock().pop().unwrap_or_default()
    }

    /// Gives a lane back.
    pub(crate) fn give(&self, lane: Box<Lane>) {
        self.lanes.lock().push(lane);
    }

    /// Runs an operation with a lane of its own.
    pub(crate) fn with_lane<T>(&self, run: impl FnOnce(&mut Lane) -> Result<T>) -> Result<T> {
        self.check()?;
        let mut lane = self.lane();
        let result = run(&mut lane);
        self.give(lane);
        result
    }

    /// Asks the metadata manager. `make` is called for every attempt, since handles change when it
    /// was restarted. All attempts have one number: the manager knows a request again that it has done, and
    /// answers what it has answered.
    pub(crate) fn manager<R: Request>(&self, make: impl Fn() -> R) -> Result<R::Answer> {
        self.with_lane(|lane| self.manager_on(lane, make))
    }

    /// Asks the metadata manager on a lane that the caller has.
    pub(crate) fn manager_on<R: Request>(
        &self,
        lane: &mut Lane,
        make: impl Fn() -> R,
    ) -> Result<R::Answer> {
        let mut patience = self.patience();
        let mut was_sent = false;
        let mut number = self.number();
        loop {
            let pipe = match self.manager_pipe(lane) {
                Ok(pipe) => pipe,
                Err((Trouble::Broken(_), _)) if patience.away(&self.outages, None) => continue,
                Err((Trouble::Refused(Status::Busy | Status::ShuttingDown, _), _))
                    if patience.busy() =>
                {
                    continue;
                }
                Err((trouble, address)) => {
                    self.heard(&trouble);
                    return Err(trouble.into_error(None, &address));
                }
            };
            self.count_message();
            let answer = match was_sent {
                true => pipe.ask_again(number, &make()),
                false => pipe.ask(number, &make()),
            };
            let trouble = match answer {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            let address = pipe.address.clone();
            match trouble {
                Trouble::Broken(_) => {
                    was_sent = true;
                    lane.manager = None;
                    if patience.away(&self.outages, None) {
                        continue;
                    }
                }
                Trouble::Late | Trouble::Nonsense(_) => lane.manager = None,
                Trouble::Refused(Status::Busy | Status::ShuttingDown, _) if patience.busy() => {
                    continue;
                }
                Trouble::Refused(Status::Forgotten, ref refusal) if was_sent => {
                    return Err(Error::Uncertain {
                        what: R::NAME,
                        text: refusal.text.clone(),
                    });
                }
                // Other threads have overtaken it by far: it is as good under a new number.
                Trouble::Refused(Status::Forgotten, _) if patience.busy() => {
                    number = self.number();
                    continue;
                }
                _ => {}
            }
            self.heard(&trouble);
            return Err(trouble.into_error(None, &address));
        }
    }

    /// The lane's connection to the metadata manager; made, and handles opened again, if need be.
    pub(crate) fn manager_pipe<'l>(
        &self,
        lane: &'l mut Lane,
    ) -> std::result::Result<&'l mut Pipe, (Trouble, String)> {
        if lane.manager.as_ref().is_some_and(|pipe| !pipe.is_quiet()) {
            lane.manager = None;
        }
        if lane.manager.is_none() {
            let mut pipe = connect_manager(
                &*self.connector,
                &self.role,
                &self.options,
                Some(&self.outages),
            )?;
            let mut start = self.manager_start.lock();
            if *start != pipe.welcome.incarnation {
                // Another start of the manager: it knows the session by its seal, but no handles.
                if let Err(trouble) = self.open_files.reopen(&mut pipe) {
                    return Err((trouble, pipe.address.clone()));
                }
                *start = pipe.welcome.incarnation;
            }
            lane.manager = Some(pipe);
        }
        Ok(lane.manager.as_mut().expect("just made"))
    }

    /// Which start of the metadata manager was last connected to.
    pub(crate) fn manager_start(&self) -> u64 {
        *self.manager_start.lock()
    }

    /// Where the metadata manager listens now, if that can be told.
    pub(crate) fn manager_endpoint(&self) -> Option<Endpoint> {
        self.connector.endpoint().ok()
    }

    /// A connection to the metadata manager beside the lanes.
    pub(crate) fn manager_connection(&self) -> std::result::Result<Pipe, Trouble> {
        let (connector, outages) = (&*self.connector, Some(&self.outages));
        connect_manager(connector, &self.role, &self.options, outages).map_err(|e| e.0)
    }

    /// Makes sure that the metadata manager is there, as far as its connection says: no message is sent while that
    /// stands. One that is away is waited for.
    pub(crate) fn demand_manager(&self, lane: &mut Lane) -> Result<()> {
        let mut patience = self.patience();
        loop {
            match self.manager_pipe(lane) {
                Ok(_) => return Ok(()),
                Err((Trouble::Broken(_), _)) if patience.away(&self.outages, None) => {}
                Err((trouble, address)) => return Err(trouble.into_error(None, &address)),
            }
        }
    }

    /// Makes sure that handles are known to the present start of the metadata manager.
    pub(crate) fn refresh_handles(&self, lane: &mut Lane) -> Result<()> {
        match self.manager_pipe(lane) {
            Ok(_) => Ok(()),
            Err((trouble, address)) => Err(trouble.into_error(None, &address)),
        }
    }

    /// What is known about a server.
    fn member(&self, lane: &mut Lane, server: u64) -> std::result::Result<Member, Trouble> {
        if let Some((member, true)) = self.members.lock().get(&server) {
            return Ok(member.clone());
        }
        let found = self.members(lane)?;
        found
            .into_iter()
            .find(|m| m.server.0 == server)
            .ok_or_else(|| {
                Trouble::Final(Error::Refused {
                    status: Status::NotFound,
                    text: "no such server has joined the service".into(),
                    server: Some(ServerId(server)),
                })
            })
    }

    /// All members, asked afresh.
    pub(crate) fn members(&self, lane: &mut Lane) -> Result<Vec<Member>> {
        let found = self.manager_on(lane, || Members {})?;
        let mut known = self.members.lock();
        known.clear();
        known.extend(found.iter().map(|m| (m.server.0, (m.clone(), true))));
        Ok(found)
    }

    /// What is known about a server seems to be wrong; it is asked for again before it is used.
    pub(crate) fn forget_member(&self, server: u64) {
        if let Some((_, is_right)) = self.members.lock().get_mut(&server) {
            *is_right = false;
        }
    }

    /// Whether what a start of a server had in memory is gone, as far as the metadata manager knows. The server cannot be asked.
    pub(crate) fn has_lost_start(&self, lane: &mut Lane, server: u64, start: u64) -> bool {
        let Ok(members) = self.members(lane) else {
            return false;
        };
        let member = members.iter().find(|m| m.server.0 == server);
        member.is_some_and(|m| match m.store {
            // It says at each start which of the earlier ones it has the memory of.
            StoreKind::Memory => m.incarnation >= start && !m.keeps(start),
            // What it keeps is on its disks, and what was in memory only may not be.
            StoreKind::Disk => m.incarnation != start,
        })
    }

    /// Whether bytes at a place are gone for certain: they were in the memory of a process of this host
    /// that has died, and that had no keeper. Nobody has to wait for it to come back.
    pub(crate) fn has_lost(&self, place: Place) -> bool {
        let is_memory = self
            .members
            .lock()
            .get(&place.server)
            .is_some_and(|(m, _)| m.store == StoreKind::Memory);
        is_memory
            && self
                .open_files
                .sharing
                .has_died(place.server, place.incarnation)
    }

    /// Where a server keeps its bytes, if that was heard.
    pub(crate) fn store_of(&self, server: u64) -> Option<StoreKind> {
        self.members.lock().get(&server).map(|(m, _)| m.store)
    }

    /// Where a server was last known to listen.
    pub(crate) fn address(&self, server: u64) -> String {
        self.members
            .lock()
            .get(&server)
            .map_or_else(|| "an unknown address".into(), |(m, _)| m.address.clone())
    }

    /// Index of the lane's connection to the server of a place; made if need be.
    pub(crate) fn server_pipe(
        &self,
        lane: &mut Lane,
        place: Place,
    ) -> std::result::Result<usize, Trouble> {
        if let Some(index) = lane.find(place.server) {
            return Ok(index);
        }
        if lane.has_lost_hold() {
            return Err(Trouble::Final(Error::Refused {
                status: Status::Busy,
                text: "a range was held over a connection that is gone; read it again".into(),
                server: Some(ServerId(place.server)),
            }));
        }
        let member = self.member(lane, place.server)?;
        if place.incarnation != 0 && !member.keeps(place.incarnation) {
            // What is known may be older than the layout.
            self.forget_member(place.server);
            let member = self.member(lane, place.server)?;
            if !member.keeps(place.incarnation) && member.incarnation >= place.incarnation {
                return Err(Trouble::Final(Error::Lost {
                    server: member.server,
                }));
            }
        }
        let connect = |address: &str| {
            let endpoint: Endpoint = address
                .parse()
                .map_err(|e| Trouble::Nonsense(format!("the address of {}: {e}", member.server)))?;
            let peer = Some(place.server);
            let connected = Pipe::connect(
                &endpoint,
                &self.role,
                &self.options.keys,
                self.outages.limit(peer, self.options.connect_timeout),
                self.options.answer_timeout,
            );
            if matches!(connected, Err(Trouble::Late)) {
                self.outages.give_up(peer, Instant::now());
            }
            connected.map(|pipe| pipe.sealed(self.options.checksums))
        };
        let nearest = member.address_from(&self.host);
        let pipe = match connect(nearest) {
            // Another view of the file system may hide a socket of this host.
            Err(Trouble::Broken(_)) if nearest != member.address => connect(&member.address),
            other => other,
        };
        let pipe = match pipe {
            Ok(pipe) if pipe.welcome.server.0 == place.server => pipe,
            other => {
                self.forget_member(place.server);
                return Err(match other {
                    Ok(_) => Trouble::Broken("another server listens there".into()),
                    Err(trouble) => trouble,
                });
            }
        };
        self.outages.ended(Some(place.server));
        if pipe.welcome.incarnation > member.incarnation {
            self.forget_member(place.server);
            let member = self.member(lane, place.server)?;
            if place.incarnation != 0
                && member.incarnation >= pipe.welcome.incarnation
                && !member.keeps(place.incarnation)
            {
                return Err(Trouble::Final(Error::Lost {
                    server: member.server,
                }));
            }
        }
        self.message_bytes
            .fetch_min(pipe.welcome.message_bytes, Ordering::Relaxed);
        Ok(lane.add(place.server, pipe))
    }

    /// A connection of its own to a server, outside the lanes.
    pub(crate) fn introduce(
        &self,
        endpoint: &Endpoint,
    ) -> std::result::Result<(Link, Welcome), Trouble> {
        pipe::introduce(
            endpoint,
            &self.role,
            &self.options.keys,
            self.options.connect_timeout,
            self.options.answer_timeout,
        )
    }

    /// The longest payload that any server takes; a cautious guess while none was asked.
    pub(crate) fn message_bytes(&self) -> u64 {
        match self.message_bytes.load(Ordering::Relaxed) {
            u64::MAX => 4096,
            bytes => bytes,
        }
    }

    /// Asks an I/O server something that is not about a file.
    pub(crate) fn server<R: Request>(&self, server: ServerId, request: &R) -> Result<R::Answer> {
        self.with_lane(|lane| {
            let mut patience = self.patience();
            let place = Place {
                server: server.0,
                incarnation: 0,
            };
            loop {
                let trouble = match self.server_pipe(lane, place) {
                    Ok(index) => {
                        self.count_message();
                        match lane.pipe(index).ask(self.number(), request) {
                            Ok(answer) => return Ok(answer),
                            Err(trouble) => {
                                if !matches!(trouble, Trouble::Refused(..)) {
                                    lane.drop_pipe(server.0);
                                }
                                trouble
                            }
                        }
                    }
                    Err(trouble) => trouble,
                };
                match trouble {
                    Trouble::Broken(_) if patience.away(&self.outages, Some(server.0)) => {
                        self.forget_member(server.0);
                    }
                    Trouble::Refused(Status::Busy | Status::ShuttingDown, _) if patience.busy() => {
                    }
                    trouble => {
                        self.heard(&trouble);
                        return Err(trouble.into_error(Some(server), &self.address(server.0)));
                    }
                }
            }
        })
    }
}

fn connect_manager(
    connector: &dyn Connector,
    role: &Role,
    options: &ConnectOptions,
    outages: Option<&Outages>,
) -> std::result::Result<Pipe, (Trouble, String)> {
    let endpoint = connector
        .endpoint()
        .map_err(|e| (e.into(), String::new()))?;
    let usual = options.connect_timeout;
    let connected = Pipe::connect(
        &endpoint,
        role,
        &options.keys,
        outages.map_or(usual, |outages| outages.limit(None, usual)),
        options.answer_timeout,
    );
    match (&connected, outages) {
        (Ok(_), Some(outages)) => outages.ended(None),
        (Err(Trouble::Late), Some(outages)) => outages.give_up(None, Instant::now()),
        _ => {}
    }
    connected.map_err(|trouble| (trouble, endpoint.to_string()))
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        // One farewell per server is enough: the connections are one session.
        let mut lanes = std::mem::take(&mut *self.lanes.lock());
        let mut told: Vec<Option<u64>> = Vec::new();
        for lane in &mut lanes {
            for (server, pipe) in lane.all_pipes() {
                if told.contains(&server) || !pipe.is_quiet() {
                    continue;
                }
                told.push(server);
                pipe.limit(std::time::Duration::from_secs(1));
                // A server that does not hear it notices the end of the connection.
                let _ = pipe.ask(u64::MAX, &Goodbye {});
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use wire::link::Listener;
    use wire::message::session::{Hello, Welcome};
    use wire::message::{self, Bytes};

    use super::*;
    use crate::client::Client;

    /// After a fork the process number is another one and everything else the same; a session with
    /// another number is what a child sees.
    #[test]
    fn a_forked_child_gets_an_error_and_sends_nothing() {
        let dir = std::env::temp_dir().join(format!("pario-fork-{}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("s");
        let listener = Listener::Unix(UnixListener::bind(&path).unwrap());
        let server = std::thread::spawn(move || {
            let mut link = listener.accept().unwrap();
            let (header, control) = link.receive().unwrap();
            message::decode::<Hello>(control).unwrap();
            let welcome = Welcome {
                client: ClientId(7),
                session: Bytes(vec![1]),
                server: ServerId(0),
                incarnation: 1,
                rendezvous_bytes: 1,
                message_bytes: 1,
                proof: Bytes::default(),
            };
            let mut out = Vec::new();
            message::encode(&welcome, &mut out);
            link.send(header, &out, &[]).unwrap();
            // Nothing more comes, not even a farewell, before the connection ends.
            assert!(matches!(link.receive(), Err(wire::link::LinkError::Closed)));
        });
        let session = Session::connect(Arc::new(Endpoint::Unix(path)), ConnectOptions::default());
        let mut session = Arc::into_inner(session.unwrap()).unwrap();
        session.process = Process::another();
        let client = Client::of(Arc::new(session));
        assert_eq!(client.members().unwrap_err(), Error::Forked);
        assert_eq!(client.unlink("/x").unwrap_err(), Error::Forked);
        assert!(
            client
                .mkdir("/x", None)
                .unwrap_err()
                .to_string()
                .contains("after a fork")
        );
        drop(client);
        server.join().unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
