//! Asking I/O servers: connections that the metadata manager makes, under a number of its own.
//!
//! Every question has a time limit, except those that a server may work on for long; these end with
//! the server, whose death cuts their connections. Connections are kept for the next question, so that one that belongs to a
//! request of a client costs neither a connection nor a thread. All questions can be asked twice.

use std::collections::HashMap;
use std::thread;
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
        let began = Instant::now();
        let begin = |(member, request): &(&Member, &R)| {
            let (mut link, is_kept) = match self.idle_links.take(member) {
                Some(link) => (link, true),
                None => (self.connect(member)?, false),
            };
            match link.begin(*request, Some(limit)) {
                Err(e) if !is_kept => Err(e),
                // What a kept one has against it shows below.
                _ => Ok((link, is_kept)),
            }
        };
        let begun: Vec<_> = serving::waiting(|| asked.iter().map(begin).collect());
        let end = |(begun, (member, request)): (Result<(ServerLink, bool), _>, &(&Member, &R))| {
            let (mut link, is_kept) = begun?;
            let mut answer = link.end::<R>();
            // It was closed while nobody used it; one that is slow is not asked once more.
            if is_kept
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

    /// Asks all members the same at once; several of them each in a thread of its own, since some may have to be connected to.
    pub(crate) fn ask_all<R: Request + Sync>(
        &self,
        members: &[Member],
        request: &R,
        limit: Duration,
    ) -> Vec<Result<R::Answer, ServerError>>
    where
        R::Answer: Send,
    {
        for_all(members, |member| {
            let asked = [(member, request)];
            let mut answers = self.ask_each(&asked, limit);
            answers.pop().expect("one was asked")
        })
    }
}

/// Does the same with all members at once, each in a thread of its own. One that gets none is told
/// as a failure of that member.
pub(crate) fn for_all<T: Send>(
    members: &[Member],
    work: impl Fn(&Member) -> Result<T, ServerError> + Sync,
) -> Vec<Result<T, ServerError>> {
    if let [member] = members {
        return vec![work(member)];
    }
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = members
            .iter()
            .map(|member| {
                thread::Builder::new()
                    .name(format!("ask {}", member.server.0))
                    .spawn_scoped(scope, move || work(member))
            })
            .collect();
        threads
            .into_iter()
            .zip(members)
            .map(|(thread, member)| {
                let failed =
                    |text: String| Err(ServerError::new(member.server, Status::NoMemory, text));
                match thread {
                    Ok(thread) => thread
                        .join()
                        .unwrap_or_else(|_| failed("asking it failed".into())),
                    Err(e) => failed(format!("no thread to ask it: {e}")),
                }
            })
            .collect()
    })
}
