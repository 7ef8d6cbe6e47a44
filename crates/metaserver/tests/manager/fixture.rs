//! A directory with a manager in it, and clients and servers that are hardly more than a link.
//!
//! Conditions are waited for by asking again after a short pause, so no test sleeps; a condition that never comes fails after [`PATIENCE`].

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use metaserver::{Endpoint, Keys, MetaServer, Options, Secret};
use serving::{proof, this_process};
use wire::ask::AskError;
use wire::frame::{Header, REPEATED};
use wire::link::Link;
use wire::message::catalogue::*;
use wire::message::cluster::{Join, JoinAnswer, Report, ReportAnswer};
use wire::message::session::{Credentials, Hello, Prove, Role, Statistics, Welcome};
use wire::message::{Bytes, Request};
use wire::{ClientId, HandleId, Rights, ServerId, Status};

pub(crate) const ALICE: u32 = 1001;
pub(crate) const BOB: u32 = 1002;

/// Longest time that any condition may take to come true.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than a test stands still on a busy machine: what has to be done within a time of the manager is.
pub(crate) const IN_TIME: Duration = Duration::from_secs(8);

/// Between two questions.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

/// A directory that goes with the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pario-meta-{name}-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A manager on this directory, with a Unix socket and a TCP port that asks for the secret.
    pub(crate) fn options(&self) -> Options {
        Options {
            listen: vec![self.socket(), "tcp:127.0.0.1:0".parse().unwrap()],
            keys: keys(),
            recovery: Duration::from_millis(300),
            remembering: IN_TIME,
            // Members of most tests never report, on machines that may be slow.
            member_timeout: Duration::from_secs(600),
            ..Options::new(self.0.join("meta"))
        }
    }

    pub(crate) fn socket(&self) -> Endpoint {
        Endpoint::Unix(self.0.join("meta.sock"))
    }

    pub(crate) fn start(&self) -> MetaServer {
        metaserver::start(self.options()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Users know one, servers the other.
pub(crate) fn keys() -> Keys {
    Keys {
        user: Some(secret()),
        server: Some(server_secret()),
        tls: None,
    }
}

pub(crate) fn server_secret() -> Secret {
    Secret::new(b"what only servers of these tests know")
}

pub(crate) fn secret() -> Secret {
    Secret::new(b"what the tests share")
}

/// A connection that asks.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) link: Link,
    pub(crate) welcome: Welcome,
    out: Vec<u8>,
}

impl Asker {
    pub(crate) fn hello(endpoint: &Endpoint, hello: &Hello) -> Result<Asker, AskError> {
        let mut link = Link::connect(endpoint, PATIENCE).unwrap();
        link.set_timeout(Some(PATIENCE)).unwrap();
        let mut out = Vec::new();
        let welcome = match link.ask(1, hello, &mut out) {
            Err(AskError::Refused(Status::Unauthenticated, refusal))
                if !refusal.detail.0.is_empty() =>
            {
                let proof = proof(&secret(), &refusal.detail.0, hello);
                let prove = Prove {
                    proof: Bytes(proof.to_vec()),
                };
                link.ask(2, &prove, &mut out)?
            }
            answer => answer?,
        };
        Ok(Asker { link, welcome, out })
    }

    pub(crate) fn as_role(endpoint: &Endpoint, role: Role) -> Result<Asker, AskError> {
        Asker::hello(endpoint, &hello(role, Credentials::ROOT))
    }

    /// A new client on a Unix socket: this process, this user.
    pub(crate) fn client(endpoint: &Endpoint) -> Asker {
        Asker::as_role(endpoint, Role::NewClient).unwrap()
    }

    /// A new client of another user, who knows the secret.
    pub(crate) fn user(manager: &MetaServer, user: u32) -> Asker {
        let hello = hello(Role::NewClient, Credentials::new(user, user));
        Asker::hello(&manager.endpoints()[1], &hello).unwrap()
    }

    /// Another connection of the same session.
    pub(crate) fn again(&self, endpoint: &Endpoint) -> Result<Asker, AskError> {
        Asker::as_role(endpoint, self.role())
    }

    pub(crate) fn role(&self) -> Role {
        Role::Client {
            client: self.welcome.client,
            session: self.welcome.session.clone(),
        }
    }

    pub(crate) fn id(&self) -> ClientId {
        self.welcome.client
    }

    pub(crate) fn try_ask<R: Request>(&mut self, request: &R) -> Result<R::Answer, AskError> {
        // No two requests of a session have one number, over whichever connection they go.
        static NEXT: AtomicU64 = AtomicU64::new(1 << 20);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.link.ask(number, request, &mut self.out)
    }

    /// Asks under a number of the caller's choice; what was sent before says so.
    pub(crate) fn try_ask_as<R: Request>(
        &mut self,
        number: u64,
        is_repeated: bool,
        request: &R,
    ) -> Result<R::Answer, AskError> {
        wire::message::encode(request, &mut self.out);
        let header = Header {
            kind: R::KIND,
            status: Status::Ok,
            flags: if is_repeated { REPEATED } else { 0 },
            request: number,
            control_bytes: 0,
            payload_bytes: 0,
        };
        self.link.send(header, &self.out, &[])?;
        self.link.take_answer::<R>(number)
    }

    #[track_caller]
    pub(crate) fn ask<R: Request>(&mut self, request: &R) -> R::Answer {
        match self.try_ask(request) {
            Ok(answer) => answer,
            Err(e) => panic!("{}: {} ({e})", R::NAME, e.status()),
        }
    }

    /// Is refused with this status and a text.
    #[track_caller]
    pub(crate) fn refused<R: Request>(&mut self, request: &R, status: Status) -> String
    where
        R::Answer: std::fmt::Debug,
    {
        match self.try_ask(request) {
            Err(AskError::Refused(given, refusal)) => {
                assert_eq!(given, status, "{}: {}", R::NAME, refusal.text);
                assert!(!refusal.text.is_empty());
                refusal.text
            }
            other => panic!("{}: {other:?}", R::NAME),
        }
    }

    pub(crate) fn create(&mut self, path: &str) -> CreateAnswer {
        self.ask(&create(path))
    }

    pub(crate) fn open(&mut self, path: &str, rights: Rights) -> OpenAnswer {
        self.ask(&open(path, rights))
    }

    pub(crate) fn statistic(&mut self, name: &str) -> u64 {
        let counters = self.ask(&Statistics {});
        counters
            .iter()
            .find(|c| c.name == name)
            .map_or(0, |c| c.value)
    }

    /// Asks until the answer is the right one, and returns that.
    #[track_caller]
    pub(crate) fn wait<R: Request>(
        &mut self,
        request: &R,
        is_right: impl Fn(&Result<R::Answer, AskError>) -> bool,
    ) -> Result<R::Answer, AskError>
    where
        R::Answer: std::fmt::Debug,
    {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.try_ask(request);
            if is_right(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{}: {answer:?}", R::NAME);
            std::thread::park_timeout(PAUSE);
        }
    }

    #[track_caller]
    pub(crate) fn wait_for_statistic(&mut self, name: &str, value: u64) {
        let _ = self.wait(&Statistics {}, |counters| {
            let counters = counters.as_ref().unwrap();
            let found = counters.iter().find(|c| c.name == name);
            found.map_or(0, |c| c.value) == value
        });
    }
}

pub(crate) fn hello(role: Role, credentials: Credentials) -> Hello {
    Hello {
        role,
        process: this_process(),
        credentials,
        nonce: Bytes(vec![5; 32]),
    }
}

pub(crate) fn create(path: &str) -> Create {
    Create {
        path: path.into(),
        options: CreateOptions {
            mode: 0o644,
            ..CreateOptions::default()
        },
    }
}

pub(crate) fn open(path: &str, rights: Rights) -> Open {
    Open {
        path: path.into(),
        options: OpenOptions {
            rights,
            ..OpenOptions::default()
        },
    }
}

pub(crate) fn stat(path: &str) -> Stat {
    Stat {
        path: path.into(),
        with_latest_size: false,
        wants_stamps: false,
    }
}

/// What a stat has found.
pub(crate) fn stat_found(answer: StatAnswer) -> StatEntry {
    answer.found.expect("there, or refused")
}

pub(crate) fn close(handle: HandleId) -> Close {
    Close {
        handle,
        is_counted: false,
    }
}

/// What an I/O server in memory says that listens at `address`: no other one does, so that is who it is.
pub(crate) fn join(address: &str) -> Join {
    let identity = control::capability::seal(b"server of a test", &[address.as_bytes()]);
    Join {
        server: None,
        resumes: None,
        continues: None,
        address: address.into(),
        local: None,
        store: StoreKind::Memory,
        capacity_bytes: 0,
        used_bytes: 0,
        distance: 0,
        identity: Bytes(identity.to_vec()),
    }
}

/// A member: its connection and what it was told.
pub(crate) struct Joiner {
    pub(crate) asker: Asker,
    pub(crate) joined: JoinAnswer,
}

impl Joiner {
    pub(crate) fn new(endpoint: &Endpoint) -> Joiner {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Joiner::with(endpoint, join(&format!("unix:/nowhere/{number}.sock")))
    }

    pub(crate) fn with(endpoint: &Endpoint, join: Join) -> Joiner {
        let mut asker = Asker::as_role(endpoint, Role::NewServer).unwrap();
        let joined = asker.ask(&join);
        Joiner { asker, joined }
    }

    pub(crate) fn server(&self) -> ServerId {
        self.joined.member.server
    }

    pub(crate) fn report(&mut self) -> ReportAnswer {
        self.asker.ask(&report())
    }

    /// The role of the server on connections that it makes.
    pub(crate) fn role(&self) -> Role {
        let key: [u8; 32] = self.joined.key.0[..].try_into().unwrap();
        let key = control::capability::ClusterKey::new(key);
        let server = self.server();
        Role::Server {
            server,
            seal: Bytes(control::capability::server_seal(&key, server).to_vec()),
        }
    }
}

pub(crate) fn report() -> Report {
    Report {
        capacity_bytes: 0,
        used_bytes: 0,
        load: 0,
        removed: Vec::new(),
    }
}

/// A manager with some members that take subfiles.
pub(crate) fn with_members(name: &str, count: usize) -> (Scratch, MetaServer, Vec<Joiner>) {
    let scratch = Scratch::new(name);
    let manager = scratch.start();
    let members = (0..count).map(|_| Joiner::new(&scratch.socket())).collect();
    (scratch, manager, members)
}
