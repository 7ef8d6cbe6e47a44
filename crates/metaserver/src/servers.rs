//! Asking I/O servers: connections that the metadata manager makes, under a number of its own.
//!
//! Every question has a time limit, except those that a server may work on for long; these end with
//! the server, whose death cuts their connections. Connections are kept for the next question, and where several servers have to be
//! connected to, threads that are always there do that: no question starts a thread. All questions can be asked twice.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use control::capability::server_seal;
use meta::catalogue::Member;
use parking_lot::Mutex;
use wire::ask::{AskError, decode_answer};
use wire::frame::Header;
use wire::link::{Link, LinkError};
use wire::message::session::{Credentials, Role};
use wire::message::{Bytes, Request, encode};
use wire::url::Endpoint;
use wire::{ServerId, Status};

use crate::manager::Manager;

/// How long a connection and an introduction may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Connections to a server that are kept.
const IDLE: usize = 8;
/// Threads that connect.
const CONNECTORS: usize = 4;

/// Why a server did not answer.
#[derive(Debug, thiserror::Error)]
#[error("{server}: {text}")]
pub(crate) struct ServerError {
    server: ServerId,
    status: Status,
    text: String,
    is_broken: bool,
}

impl ServerError {
    pub(crate) fn new(server: ServerId, status: Status, text: impl Into<String>) -> Self {
        ServerError {
            server,
            status,
            text: text.into(),
            is_broken: false,
        }
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// Whether its connection is of no further use.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn of(server: ServerId, error: &AskError) -> Self {
        ServerError {
            is_broken: !matches!(error, AskError::Refused(..)),
            ..ServerError::new(server, error.status(), error.to_string())
        }
    }
}

/// A connection to an I/O server.
#[derive(Debug)]
pub(crate) struct ServerLink {
    server: ServerId,
    link: Link,
    number: u64,
    out: Vec<u8>,
}

impl ServerLink {
    /// A second handle on the connection, to end it from outside.
    pub(crate) fn second(&self) -> Option<Link> {
        self.link.try_clone().ok()
    }

    /// Sends a question, for a caller that asks several servers before it waits for any.
    pub(crate) fn begin<R: Request>(
        &mut self,
        request: &R,
        limit: Option<Duration>,
    ) -> Result<(), ServerError> {
        let failed = |e: LinkError| ServerError::of(self.server, &AskError::Link(e));
        self.number += 1;
        self.link.set_timeout(limit).map_err(|e| failed(e.into()))?;
        encode(request, &mut self.out);
        let header = Header {
            kind: R::KIND,
            status: Status::Ok,
            flags: 0,
            request: self.number,
            control_bytes: 0,
            payload_bytes: 0,
        };
        self.link.send(header, &self.out, &[]).map_err(failed)
    }

    /// The answer to what was sent last.
    pub(crate) fn end<R: Request>(&mut self) -> Result<R::Answer, ServerError> {
        let server = self.server;
        let received = self.link.receive();
        let (header, control) =
            received.map_err(|e| ServerError::of(server, &AskError::Link(e)))?;
        decode_answer(header.status, control).map_err(|e| ServerError::of(server, &e))
    }

    /// Asks and waits; without a limit it waits until the connection ends.
    pub(crate) fn ask<R: Request>(
        &mut self,
        request: &R,
        limit: Option<Duration>,
    ) -> Result<R::Answer, ServerError> {
        let failed = |e: AskError| ServerError::of(self.server, &e);
        self.number += 1;
        self.link
            .set_timeout(limit)
            .map_err(|e| failed(AskError::Link(e.into())))?;
        self.link
            .ask(self.number, request, &mut self.out)
            .map_err(failed)
    }
}

/// Connections that nobody uses now, by server, with the start of it that they lead to.
#[derive(Debug, Default)]
pub(crate) struct IdleLinks(Mutex<HashMap<ServerId, (u64, Vec<ServerLink>)>>);

impl IdleLinks {
    /// One to this start of a server.
    fn take(&self, member: &Member) -> Option<ServerLink> {
        let mut links = self.0.lock();
        let (incarnation, idle) = links.get_mut(&member.server)?;
        (*incarnation == member.incarnation).then(|| idle.pop())?
    }

    /// Keeps one; those to earlier starts lead nowhere any more.
    fn give(&self, member: &Member, link: ServerLink) {
        let mut links = self.0.lock();
        let (incarnation, idle) = links.entry(member.server).or_default();
        if *incarnation < member.incarnation {
            *incarnation = member.incarnation;
            idle.clear();
        }
        if *incarnation == member.incarnation && idle.len() < IDLE {
            idle.push(link);
        }
    }
}

impl Manager {
    /// Connects to a member and says who this is.
    pub(crate) fn connect(&self, member: &Member) -> Result<ServerLink, ServerError> {
        let server = member.server;
        let failed = |status, text: String| ServerError::new(server, status, text);
        let endpoint: Endpoint = member
            .address
            .parse()
            .map_err(|e| failed(Status::Unreachable, format!("address: {e}")))?;
        let role = Role::Server {
            server: ServerId::MANAGER,
            seal: Bytes(server_seal(&self.key, ServerId::MANAGER).to_vec()),
        };
        let own = Credentials::new(self.user, rustix::process::getegid().as_raw());
        let met = identity::connect(&endpoint, role, own, &self.keys, CONNECT_TIMEOUT)
            .map_err(|e| failed(e.status(), format!("{endpoint}: {e}")))?;
        Ok(ServerLink {
            server,
            link: met.link,
            number: 1,
            out: Vec::new(),
        })
    }

    /// Asks members at once, each something of its own, in the thread of the caller.
    pub(crate) fn ask_each<R: Request>(
        &self,
        asked: &[(&Member, &R)],
        limit: Duration,
    ) -> Vec<Result<R::Answer, ServerError>> {
        let link = |(member, _): &(&Member, &R)| match self.idle_links.take(member) {
            Some(link) => Ok((link, LinkOrigin::Idle)),
            None => Ok((self.connect(member)?, LinkOrigin::New)),
        };
        self.ask_through(asked, asked.iter().map(link), limit)
    }

    /// Asks all members the same at once. Those without a connection are connected to at once as well, by threads that are there.
    pub(crate) fn ask_all<R: Request>(
        &self,
        members: &[Member],
        request: &R,
        limit: Duration,
    ) -> Vec<Result<R::Answer, ServerError>> {
        let link = |member: &Member| match self.idle_links.take(member) {
            Some(link) => Ok(link),
            None => Err(self.begin_to_connect(member)),
        };
        let begun: Vec<_> = members.iter().map(link).collect();
        let links = begun
            .into_iter()
            .zip(members)
            .map(|(link, member)| match link {
                Ok(link) => Ok((link, LinkOrigin::Idle)),
                Err(coming) => {
                    let gone = || {
                        ServerError::new(member.server, Status::ShuttingDown, "the service ends")
                    };
                    let connected = coming.recv().unwrap_or_else(|_| Err(gone()));
                    connected.map(|link| (link, LinkOrigin::New))
                }
            });
        let asked: Vec<(&Member, &R)> = members.iter().map(|member| (member, request)).collect();
        self.ask_through(&asked, links, limit)
    }

    /// A connection that a thread makes.
    fn begin_to_connect(&self, member: &Member) -> Receiver<Result<ServerLink, ServerError>> {
        let (done, coming) = sync_channel(1);
        let (this, member) = (self.this(), member.clone());
        self.connectors.run(Box::new(move || {
            if let Some(manager) = this.upgrade() {
                // Who asked may have gone.
                let _ = done.send(manager.connect(&member));
            }
        }));
        coming
    }

    /// Asks through connections; those that broke while nobody used them are made anew.
    fn ask_through<R: Request>(
        &self,
        asked: &[(&Member, &R)],
        links: impl Iterator<Item = Result<(ServerLink, LinkOrigin), ServerError>>,
        limit: Duration,
    ) -> Vec<Result<R::Answer, ServerError>> {
        let began = Instant::now();
        let begin = |(link, (_, request)): (Result<_, _>, &(&Member, &R))| {
            let (mut link, origin): (ServerLink, LinkOrigin) = link?;
            match link.begin(*request, Some(limit)) {
                Err(e) if origin == LinkOrigin::New => Err(e),
                // What a kept one has against it shows below.
                _ => Ok((link, origin)),
            }
        };
        let begun: Vec<_> = serving::waiting(|| links.zip(asked).map(begin).collect());
        let end =
            |(begun, (member, request)): (Result<(ServerLink, LinkOrigin), _>, &(&Member, &R))| {
                let (mut link, origin) = begun?;
                let mut answer = link.end::<R>();
                // It was closed while nobody used it; one that is slow is not asked once more.
                if origin == LinkOrigin::Idle
                    && answer.as_ref().is_err_and(ServerError::is_broken)
                    && began.elapsed() < limit / 2
                {
                    link = self.connect(member)?;
                    answer = link.ask(*request, Some(limit));
                }
                if !answer.as_ref().is_err_and(ServerError::is_broken) {
                    self.idle_links.give(member, link);
                }
                answer
            };
        serving::waiting(|| begun.into_iter().zip(asked).map(end).collect())
    }
}

/// Where a connection is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkOrigin {
    /// It was kept from an earlier question.
    Idle,
    /// It was made for this one.
    New,
}

type Task = Box<dyn FnOnce() + Send>;

/// Threads that connect to servers: some, however many questions there are.
pub(crate) struct Connectors {
    tasks: Mutex<Option<Sender<Task>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Connectors {
    pub(crate) fn start() -> std::io::Result<Connectors> {
        let (tasks, left) = channel::<Task>();
        let left = Arc::new(Mutex::new(left));
        let begin = |_| {
            let left = Arc::clone(&left);
            let thread = thread::Builder::new().name("connect".into());
            thread.spawn(move || {
                loop {
                    let next = left.lock().recv();
                    let Ok(task) = next else { return };
                    // One that panics is a bug, but the others are still to be done.
                    let _ = catch_unwind(AssertUnwindSafe(task));
                }
            })
        };
        let threads = (0..CONNECTORS).map(begin).collect::<std::io::Result<_>>()?;
        Ok(Connectors {
            tasks: Mutex::new(Some(tasks)),
            threads: Mutex::new(threads),
        })
    }

    fn run(&self, task: Task) {
        if let Some(tasks) = &*self.tasks.lock() {
            // They end after the last sender only.
            let _ = tasks.send(task);
        }
    }

    /// Ends the threads after what was given to them.
    pub(crate) fn stop(&self) {
        *self.tasks.lock() = None;
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn connectors_work_side_by_side_start_no_threads_and_outlive_a_bug() {
        let connectors = Connectors::start().unwrap();
        connectors.run(Box::new(|| panic!("a bug of a task")));
        let together = Arc::new(Barrier::new(CONNECTORS));
        let (done, seen) = channel();
        let tasks = 20 * CONNECTORS;
        for _ in 0..tasks {
            let (together, done) = (Arc::clone(&together), done.clone());
            connectors.run(Box::new(move || {
                together.wait();
                done.send(thread::current().id()).unwrap();
            }));
        }
        let seen: HashSet<_> = seen.iter().take(tasks).collect();
        assert_eq!(seen.len(), CONNECTORS);
        connectors.stop();
        // What comes late is dropped, and who waits for it hears that.
        let (done, late) = sync_channel::<()>(1);
        connectors.run(Box::new(move || done.send(()).unwrap_or_default()));
        assert!(late.recv().is_err());
    }
}
