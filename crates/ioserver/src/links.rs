//! Connections from this server to others: made when needed, introduced, kept for the next question.
//!
//! A [`Links`] leads to one address. A question takes an idle connection or makes one; after an
//! answer it goes back. A connection that turned out dead is replaced once, unless the question may
//! have been done: all questions between servers can be asked twice.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use control::capability::{ClusterKey, server_seal};
use identity::{Acquainted, Keys};
use parking_lot::Mutex;
use wire::ask::AskError;
use wire::link::{Link, LinkError};
use wire::message::Request;
use wire::message::catalogue::Member;
use wire::message::file::{SetView, SetViewPart};
use wire::message::session::{Credentials, Role, Welcome};
use wire::message::{Bytes, Refusal};
use wire::url::Endpoint;
use wire::{FileId, ServerId, Status, describe};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait for an answer of a server; draining and syncing take their time.
const ANSWER: Duration = Duration::from_secs(60);
/// Idle connections that are kept.
const IDLE: usize = 8;

/// Connects and introduces this process in a role.
pub(crate) fn introduce(
    endpoint: &Endpoint,
    role: Role,
    keys: &Keys,
    answer: Option<Duration>,
) -> Result<Acquainted, AskError> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let own = Credentials::new(user, group);
    let met = identity::connect(endpoint, role, own, keys, CONNECT)?;
    met.link.set_timeout(answer).map_err(LinkError::Io)?;
    Ok(met)
}

struct Idle {
    link: Link,
    number: u64,
    out: Vec<u8>,
}

/// Connections to one address.
pub(crate) struct Links {
    endpoint: Endpoint,
    role: Role,
    keys: Keys,
    idle: Mutex<Vec<Idle>>,
    /// Questions asked, and bytes that came with the answers.
    pub(crate) asked: Arc<AtomicU64>,
}

impl Links {
    pub(crate) fn new(endpoint: Endpoint, role: Role, keys: Keys, asked: Arc<AtomicU64>) -> Self {
        Links {
            endpoint,
            role,
            keys,
            idle: Mutex::default(),
            asked,
        }
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask<R: Request>(&self, request: &R) -> Result<R::Answer, AskError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.with(|link, number, out| link.ask(number, request, out))
    }

    /// Lends a connection to a caller that asks several things or receives payloads.
    pub(crate) fn with<T>(
        &self,
        mut run: impl FnMut(&mut Link, u64, &mut Vec<u8>) -> Result<T, AskError>,
    ) -> Result<T, AskError> {
        loop {
            let found = self.idle.lock().pop();
            let is_fresh = found.is_none();
            let mut idle = match found {
                Some(idle) => idle,
                None => self.connect()?,
            };
            idle.number += 1;
            let number = idle.number;
            match serving::waiting(|| run(&mut idle.link, number, &mut idle.out)) {
                // It was closed while it was idle: others may be as well.
                Err(AskError::Link(LinkError::Closed | LinkError::Io(_))) if !is_fresh => {
                    self.idle.lock().clear();
                }
                Err(error @ (AskError::Link(_) | AskError::Answer(_))) => return Err(error),
                done => {
                    let mut list = self.idle.lock();
                    if list.len() < IDLE {
                        list.push(idle);
                    }
                    return done;
                }
            }
        }
    }

    fn connect(&self) -> Result<Idle, AskError> {
        let met = introduce(&self.endpoint, self.role.clone(), &self.keys, Some(ANSWER))?;
        Ok(Idle {
            link: met.link,
            number: 1,
            out: Vec::new(),
        })
    }
}

/// Connections to all members.
pub(crate) struct Peers {
    role: Role,
    keys: Keys,
    links: Mutex<HashMap<ServerId, (String, Arc<Links>)>>,
    /// Questions asked of other servers.
    pub(crate) asked: Arc<AtomicU64>,
}

impl Peers {
    pub(crate) fn new(server: ServerId, key: &ClusterKey, keys: Keys) -> Self {
        Peers {
            role: server_role(server, key),
            keys,
            links: Mutex::default(),
            asked: Arc::default(),
        }
    }

    /// A connection of its own to an address of a member.
    pub(crate) fn connect_at(&self, endpoint: &Endpoint) -> Result<(Link, Welcome), AskError> {
        let met = introduce(endpoint, self.role.clone(), &self.keys, Some(ANSWER))?;
        Ok((met.link, met.welcome))
    }

    /// A connection of its own to a member.
    pub(crate) fn connect(&self, member: &Member) -> Result<(Link, Welcome), AskError> {
        self.connect_at(&endpoint_of(member)?)
    }

    /// The connections to a member, at the address it has now.
    pub(crate) fn to(&self, member: &Member) -> Result<Arc<Links>, AskError> {
        let mut links = self.links.lock();
        if let Some((address, found)) = links.get(&member.server)
            && *address == member.address
        {
            return Ok(Arc::clone(found));
        }
        let endpoint = endpoint_of(member)?;
        let made = Arc::new(Links::new(
            endpoint,
            self.role.clone(),
            self.keys.clone(),
            Arc::clone(&self.asked),
        ));
        links.insert(member.server, (member.address.clone(), Arc::clone(&made)));
        Ok(made)
    }
}

fn endpoint_of(member: &Member) -> Result<Endpoint, AskError> {
    member.address.parse().map_err(|e| {
        let why = format!("the address of {}: {e}", member.server);
        AskError::Link(LinkError::Io(io::Error::new(
            io::ErrorKind::InvalidData,
            why,
        )))
    })
}

/// How this server introduces itself to members and to the metadata manager.
pub(crate) fn server_role(server: ServerId, key: &ClusterKey) -> Role {
    Role::Server {
        server,
        seal: Bytes(server_seal(key, server).to_vec()),
    }
}

/// What a question to a server that is no member gets.
pub(crate) fn no_member(server: ServerId) -> AskError {
    let text = format!("{server} is no member of the service at present");
    AskError::Refused(Status::Unreachable, Refusal::new(text))
}

/// Bytes of a description in one message.
const PART_BYTES: usize = 256 << 10;

/// Registers a view at another server, in parts if its description is long.
pub(crate) fn register_view(
    link: &mut Link,
    mut number: impl FnMut() -> u64,
    out: &mut Vec<u8>,
    view: u64,
    file: FileId,
    capability: &[u8],
    description: &[u8],
) -> Result<(), AskError> {
    let mut parts = describe::parts(description, PART_BYTES);
    let first = SetView {
        view,
        file,
        capability: Bytes(capability.to_vec()),
        description_bytes: description.len() as u64,
        description: Bytes(parts.next().unwrap_or_default().to_vec()),
    };
    link.ask(number(), &first, out)?;
    parts.try_for_each(|part| {
        let part = Bytes(part.to_vec());
        link.ask(number(), &SetViewPart { view, part }, out)
    })
}
