//! A peer that speaks the protocol by hand, and so can do what the client library never would.
//!
//! It introduces itself as any process it likes (believed over TCP on the loopback), keeps using
//! sessions, views and capabilities as long as it wants, and stops in the middle of frames.

use std::os::fd::AsFd;
use std::time::Duration;

use client::Endpoint;
use identity::this_process;
use wire::ask::AskError;
use wire::frame::Header;
use wire::link::{Link, LinkError};
use wire::message::access::{Access, DATA, READ, WRITE};
use wire::message::catalogue::{CreateOptions, Open, OpenAnswer, OpenOptions};
use wire::message::file::SetView;
use wire::message::session::{Credentials, Hello, Process, Prove, Role, Welcome};
use wire::message::{Bytes, Refusal, Request, decode};
use wire::{ClientId, Rights, Status};

/// Longest time anything of it may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
#[derive(Debug)]
pub struct Raw {
    /// The connection itself.
    pub link: Link,
    /// What the server said first.
    pub welcome: Welcome,
    number: u64,
    out: Vec<u8>,
}

impl Raw {
    /// Connects to a server as somebody, in the name of a process.
    pub fn connect(endpoint: &Endpoint, role: Role, process: Process) -> Result<Raw, AskError> {
        let mut link = Link::connect(endpoint, PATIENCE).map_err(LinkError::Io)?;
        link.set_timeout(Some(PATIENCE)).map_err(LinkError::Io)?;
        let mut out = Vec::new();
        let hello = Hello {
            role,
            process,
            credentials: Credentials::ROOT,
            nonce: Default::default(),
        };
        let welcome = match link.ask(1, &hello, &mut out) {
            Err(AskError::Refused(Status::Unauthenticated, refusal))
                if !refusal.detail.0.is_empty() =>
            {
                let path = std::env::var_os("PARIO_SECRET").unwrap_or_default();
                let secret = identity::Secret::read(path.as_ref()).map_err(LinkError::Io)?;
                let proof = identity::proof(&secret, &refusal.detail.0, &hello);
                let proof = Bytes(proof.to_vec());
                link.ask(2, &Prove { proof }, &mut out)?
            }
            answer => answer?,
        };
        Ok(Raw {
            link,
            welcome,
            number: 1,
            out,
        })
    }

    /// A new client of the metadata manager, in the name of this process.
    #[track_caller]
    pub fn client(manager: &Endpoint) -> Raw {
        Raw::connect(manager, Role::NewClient, this_process()).expect("a session")
    }

    /// As whom other servers know it.
    pub fn role(&self) -> Role {
        Role::Client {
            client: self.welcome.client,
            session: self.welcome.session.clone(),
        }
    }

    /// Its number.
    pub fn id(&self) -> ClientId {
        self.welcome.client
    }

    /// A connection of the same client to another server.
    #[track_caller]
    pub fn beside(&self, server: &Endpoint) -> Raw {
        Raw::connect(server, self.role(), this_process()).expect("a connection")
    }

    /// Asks, and waits for the answer.
    pub fn ask<R: Request>(&mut self, request: &R) -> Result<R::Answer, AskError> {
        self.number += 1;
        self.link.ask(self.number, request, &mut self.out)
    }

    /// Creates or opens a file for reading and writing, as the metadata manager.
    #[track_caller]
    pub fn open(&mut self, path: &str) -> OpenAnswer {
        let create = CreateOptions {
            mode: 0o600,
            ..CreateOptions::default()
        };
        let open = Open {
            path: path.into(),
            options: OpenOptions {
                rights: Rights::BOTH,
                create: Some(create),
                ..OpenOptions::default()
            },
        };
        self.ask(&open).expect("an open file")
    }

    /// Registers the whole file under a number.
    pub fn set_view(&mut self, view: u64, opened: &OpenAnswer) -> Result<(), AskError> {
        self.set_view_with(view, opened, opened.capability.clone())
    }

    /// Registers a view with any capability.
    pub fn set_view_with(
        &mut self,
        view: u64,
        opened: &OpenAnswer,
        capability: Bytes,
    ) -> Result<(), AskError> {
        self.ask(&SetView {
            view,
            file: opened.attributes.file,
            capability,
            description_bytes: 0,
            description: Bytes::default(),
        })
    }

    /// Sends the header and control part of an access, and says that `payload` bytes follow.
    pub fn begin(
        &mut self,
        kind: u16,
        flags: u16,
        access: &Access<'_>,
        payload: u64,
    ) -> Result<(), LinkError> {
        let mut control = Vec::new();
        if kind != DATA {
            access.encode(&mut control);
        }
        self.number += u64::from(kind != DATA);
        let header = self.header(kind, flags, control.len(), payload);
        let mut bytes = header.encode(&control).to_vec();
        bytes.extend_from_slice(&control);
        self.send(&bytes)
    }

    /// A header as this peer would send it.
    pub fn header(&self, kind: u16, flags: u16, control: usize, payload: u64) -> Header {
        Header {
            kind,
            status: Status::Ok,
            flags,
            request: self.number,
            control_bytes: control as u32,
            payload_bytes: payload,
        }
    }

    /// Sends any bytes.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<(), LinkError> {
        while !bytes.is_empty() {
            match rustix::net::send(self.link.as_fd(), bytes, rustix::net::SendFlags::NOSIGNAL) {
                Ok(n) => bytes = &bytes[n..],
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(LinkError::Io(e.into())),
            }
        }
        Ok(())
    }

    /// The next answer: its header, and what was refused if it was. The payload stays.
    pub fn answer(&mut self) -> Result<(Header, Option<Refusal>), LinkError> {
        let (header, control) = self.link.receive()?;
        let refusal = (!header.status.is_ok()).then(|| decode(control).expect("a refusal"));
        Ok((header, refusal))
    }

    /// Writes bytes from view offset `lo` on, the whole range at this server; the status.
    pub fn write(&mut self, access: &Access<'_>, bytes: &[u8]) -> Result<Status, LinkError> {
        self.begin(WRITE, 0, access, bytes.len() as u64)?;
        self.send(bytes)?;
        Ok(self.answer()?.0.status)
    }

    /// Reads the same way; what came.
    pub fn read(&mut self, access: &Access<'_>) -> Result<Result<Vec<u8>, Status>, LinkError> {
        self.begin(READ, 0, access, 0)?;
        let (header, _) = self.answer()?;
        let mut bytes = vec![0; header.payload_bytes as usize];
        self.link.receive_payload(&mut bytes)?;
        Ok(match header.status {
            Status::Ok => Ok(bytes),
            status => Err(status),
        })
    }
}

/// A process that exists as long as it is wanted: whoever introduces himself with it dies with it.
#[derive(Debug)]
pub struct Body(std::process::Child);

impl Body {
    /// Starts one.
    #[track_caller]
    pub fn new() -> Body {
        let mut command = std::process::Command::new("sleep");
        Body(command.arg("600").spawn().expect("a process"))
    }

    /// How it introduces itself.
    pub fn process(&self) -> Process {
        Process {
            pid: u64::from(self.0.id()),
            ..this_process()
        }
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Default for Body {
    fn default() -> Self {
        Body::new()
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The encoded version of a layout state.
pub fn version_of(opened: &OpenAnswer) -> Vec<u8> {
    let mut version = Vec::new();
    opened.layout.version().put(&mut version);
    version
}

/// An access of `len` bytes that all lie at one server.
pub fn access<'a>(view: u64, lo: u64, len: u64, epoch: u64, version: &'a [u8]) -> Access<'a> {
    Access {
        view,
        lo,
        hi: lo + len,
        bytes: len,
        epoch,
        number: 0,
        end: 0,
        version,
    }
}
