//! A toy service on a Unix socket and on a port of the loopback, and the client's side of an
//! introduction.
//!
//! The service tells the test what happens to it, and waits where the test wants it to: tests wait
//! for events, never for time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serving::{
    Exchange, Keys, Limits, Outcome, Peer, Proven, Running, Secret, Service, proof, start,
    this_process,
};
use wire::ask::AskError;
use wire::link::{Link, Listener};
use wire::message::catalogue::{Check, Count, Members};
use wire::message::cluster::{AskEnd, EndIs};
use wire::message::session::*;
use wire::message::{Bytes, Refusal, Request};
use wire::url::Endpoint;
use wire::{ClientId, ServerId, Status};

/// Longer than anything takes.
pub(crate) const WAIT: Duration = Duration::from_secs(30);

/// What happens to the service.
#[derive(Debug)]
pub(crate) enum Event {
    /// A peer introduced itself; whether it has proven the secret.
    Hello(Peer, Hello, bool),
    /// A handler waits for the gate.
    Waits,
    /// A connection has ended.
    Ended(u64),
}

#[derive(Debug)]
pub(crate) struct Toy {
    events: Mutex<Sender<Event>>,
    is_open: Mutex<bool>,
    opened: Condvar,
    limits: Limits,
}

/// Bytes of the long answer of a toy.
pub(crate) const LONG_ANSWER: usize = 3 << 20;

impl Toy {
    fn tell(&self, event: Event) {
        // A test that has ended listens no more.
        let _ = self.events.lock().unwrap().send(event);
    }

    /// Lets everybody go on who waits, now and later.
    pub(crate) fn open_gate(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn wait_at_gate(&self) {
        self.tell(Event::Waits);
        let closed = self.is_open.lock().unwrap();
        let _open = self
            .opened
            .wait_timeout_while(closed, WAIT, |open| !*open)
            .unwrap();
    }
}

/// What servers of a toy with a secret have to know.
pub(crate) const SERVER_SECRET: &[u8] = b"what only servers know";

/// A process number of clients whose introduction waits at the gate.
pub(crate) const SLOW: u64 = u64::MAX;

impl Service for Toy {
    type Session = u64;

    fn hello(
        &self,
        peer: &Peer,
        hello: &Hello,
        proven: &Proven,
    ) -> Result<(u64, Welcome), (Status, Refusal)> {
        self.tell(Event::Hello(peer.clone(), hello.clone(), proven.secret));
        if hello.process.pid == SLOW {
            self.wait_at_gate();
        }
        match hello.role {
            Role::Client { client, .. } => Ok((client.0, welcome(client.0))),
            Role::NewClient => Ok((0, welcome(0))),
            _ => Err((
                Status::PermissionDenied,
                Refusal::new("servers are not served"),
            )),
        }
    }

    fn handle(&self, _: &mut u64, exchange: &mut Exchange) -> Outcome {
        match exchange.header().kind {
            Ping::KIND => exchange.answer(&()),
            // Takes a part of the payload and says how much it left.
            Statistics::KIND => {
                let mut part = [0; 100];
                if exchange.payload_left() >= 100 {
                    exchange.receive_payload(&mut part)?;
                }
                let left = Counter {
                    name: "payload_left".into(),
                    value: exchange.payload_left(),
                };
                exchange.answer(&vec![left])
            }
            // Says nothing, and leaves the payload where it is.
            Count::KIND => Ok(()),
            AskEnd::KIND => {
                self.wait_at_gate();
                exchange.answer(&EndIs {
                    epoch: 2,
                    end: 3,
                    grows: false,
                })
            }
            Members::KIND => panic!("as the test wants it"),
            Check::KIND => exchange.send(Status::Ok, 0, &vec![0; LONG_ANSWER], &[]),
            GetSupervisor::KIND => {
                exchange.refuse(Status::QuotaExceeded, &Refusal::new("as the test wants it"))
            }
            _ => exchange.refuse(Status::Unsupported, &Refusal::new("not by a toy")),
        }
    }

    fn ended(&self, session: u64) {
        self.tell(Event::Ended(session));
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn user(&self, session: &u64) -> Option<u32> {
        u32::try_from(*session).ok()
    }
}

pub(crate) fn welcome(client: u64) -> Welcome {
    Welcome {
        client: ClientId(client),
        session: Bytes(vec![1, 2, 3]),
        server: ServerId(9),
        incarnation: 4,
        rendezvous_bytes: 65536,
        message_bytes: 1 << 22,
        proof: Bytes::default(),
    }
}

/// A service that runs, on both kinds of sockets.
pub(crate) struct Served {
    pub(crate) running: Running<Toy>,
    pub(crate) events: Receiver<Event>,
    socket: PathBuf,
}

impl Served {
    pub(crate) fn start(secret: Option<&[u8]>) -> Served {
        Served::start_with(secret, Limits::default())
    }

    pub(crate) fn start_with(secret: Option<&[u8]>, limits: Limits) -> Served {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "pario-serving-{}-{}.sock",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let socket = std::env::temp_dir().join(name);
        // Of this process alone: a port that is free again is nobody else's, who may get any port of the usual address.
        let [_, a, b, c] = std::process::id().to_be_bytes();
        let tcp = Endpoint::Tcp {
            host: format!("127.{a}.{b}.{c}"),
            port: 0,
        };
        let listeners = [Endpoint::Unix(socket.clone()), tcp];
        let listeners = listeners.map(|e| Listener::bind(&e).unwrap());
        let (sender, events) = channel();
        let toy = Toy {
            events: Mutex::new(sender),
            is_open: Mutex::new(false),
            opened: Condvar::new(),
            limits,
        };
        let keys = Keys {
            user: secret.map(Secret::new),
            server: Some(Secret::new(SERVER_SECRET)).filter(|_| secret.is_some()),
            tls: None,
        };
        let running = start(Arc::new(toy), listeners.into(), keys).unwrap();
        Served {
            running,
            events,
            socket,
        }
    }

    pub(crate) fn unix(&self) -> &Endpoint {
        &self.running.endpoints()[0]
    }

    pub(crate) fn tcp(&self) -> &Endpoint {
        &self.running.endpoints()[1]
    }

    pub(crate) fn both(&self) -> [Endpoint; 2] {
        [self.unix().clone(), self.tcp().clone()]
    }

    /// The next introduction.
    pub(crate) fn hello(&self) -> (Peer, Hello, bool) {
        loop {
            match self.events.recv_timeout(WAIT).unwrap() {
                Event::Hello(peer, hello, is_proven) => return (peer, hello, is_proven),
                Event::Waits | Event::Ended(_) => {}
            }
        }
    }

    /// The next end of a connection.
    pub(crate) fn ended(&self) -> u64 {
        loop {
            if let Event::Ended(session) = self.events.recv_timeout(WAIT).unwrap() {
                return session;
            }
        }
    }

    /// Until a handler waits at the gate.
    pub(crate) fn waits(&self) {
        while !matches!(self.events.recv_timeout(WAIT).unwrap(), Event::Waits) {}
    }

    /// A client comes, is served and goes: the service is alive.
    pub(crate) fn is_alive(&self) {
        for endpoint in self.both() {
            greeted(&endpoint, 1)
                .ask(9, &Ping {}, &mut Vec::new())
                .unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.running.service().open_gate();
        self.running.stop(WAIT);
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// An introduction as a client with this number, which proves nothing.
pub(crate) fn hello_of(client: u64) -> Hello {
    Hello {
        role: Role::Client {
            client: ClientId(client),
            session: Bytes::default(),
        },
        process: this_process(),
        credentials: Credentials::new(4711, 4712),
        nonce: Bytes(vec![3; 32]),
    }
}

pub(crate) fn connect(endpoint: &Endpoint) -> Link {
    let link = Link::connect(endpoint, WAIT).unwrap();
    link.set_timeout(Some(WAIT)).unwrap();
    link
}

/// A connection that was welcomed.
pub(crate) fn greeted(endpoint: &Endpoint, client: u64) -> Link {
    let mut link = connect(endpoint);
    let found = link.ask(1, &hello_of(client), &mut Vec::new()).unwrap();
    assert_eq!(found, welcome(client));
    link
}

/// Introduces itself and proves the secret: what the server says in the end.
pub(crate) fn prove(link: &mut Link, hello: &Hello, secret: &[u8]) -> Result<Welcome, AskError> {
    let challenge = challenge(link, hello);
    let proof = Bytes(proof(&Secret::new(secret), &challenge, hello).to_vec());
    link.ask(2, &Prove { proof }, &mut Vec::new())
}

/// Introduces itself and gets a challenge.
pub(crate) fn challenge(link: &mut Link, hello: &Hello) -> Vec<u8> {
    match link.ask(1, hello, &mut Vec::new()) {
        Err(AskError::Refused(Status::Unauthenticated, refusal)) => refusal.detail.0,
        other => panic!("no challenge but {other:?}"),
    }
}

/// The status and the text of a refusal.
pub(crate) fn refused<A: std::fmt::Debug>(answer: Result<A, AskError>) -> (Status, String) {
    match answer {
        Err(AskError::Refused(status, refusal)) => (status, refusal.text),
        other => panic!("not refused but {other:?}"),
    }
}
