//! Asking I/O servers: connections that the metadata manager makes, under a number of its own.
//!
//! Every question has a time limit, except those that a server may work on for long; these end with
//! the server, whose death cuts their connections.

use std::thread;
use std::time::Duration;

use control::capability::server_seal;
use meta::catalogue::Member;
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

    /// Asks all members the same at once, each on a connection of its own.
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
            self.connect(member)?.ask(request, Some(limit))
        })
    }
}

/// Does the same with all members at once, each in a thread of its own. One that gets none is told
/// as a failure of that member.
pub(crate) fn for_all<T: Send>(
    members: &[Member],
    work: impl Fn(&Member) -> Result<T, ServerError> + Sync,
) -> Vec<Result<T, ServerError>> {
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
