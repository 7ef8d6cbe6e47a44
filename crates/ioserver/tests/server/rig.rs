//! A metadata manager and I/O servers in the test's process, and a raw client.
//!
//! The client finds out byte by byte which subfile a byte of its view belongs to, so it is an oracle
//! for what servers compute by shares.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use identity::Secret;
use ioserver::{IoServer, Options, StoreOptions};
use layout::{FileOffset, View, ViewOffset};
use metaserver::MetaServer;
use testkit::TempDir;
use wire::ask::AskError;
use wire::frame::Header;
use wire::link::{Link, LinkError};
use wire::message::access::{ANNOUNCED, Access, AccessAnswer, DATA, GO, GROW, READ, WRITE};
use wire::message::catalogue::{
    CreateOptions, LayoutSpec, Member, Members, Open, OpenAnswer, OpenOptions,
};
use wire::message::file::SetView;
use wire::message::session::{Credentials, Hello, Prove, Role, Welcome};
use wire::message::{Bytes, Request};
use wire::url::Endpoint;
use wire::{FileId, LayoutState, Rights, ServerId, Status, describe};

const WAIT: Duration = Duration::from_secs(20);

/// A service.
pub(crate) struct Rig {
    pub(crate) servers: Vec<Option<IoServer>>,
    pub(crate) meta: Option<MetaServer>,
    pub(crate) meta_endpoint: Endpoint,
    pub(crate) dir: TempDir,
}

pub(crate) fn memory(limit_bytes: u64) -> StoreOptions {
    StoreOptions::Memory { limit_bytes }
}

impl Rig {
    pub(crate) fn new(count: usize) -> Rig {
        Rig::with(count, |_| {})
    }

    pub(crate) fn with(count: usize, change: impl Fn(&mut Options)) -> Rig {
        let dir = TempDir::new();
        let endpoint = Endpoint::Unix(dir.path().join("meta.sock"));
        let meta = Some(start_meta(dir.path(), &endpoint));
        let mut rig = Rig {
            servers: Vec::new(),
            meta,
            meta_endpoint: endpoint,
            dir,
        };
        for i in 0..count {
            let server = rig.start_server(i, &change);
            rig.servers.push(Some(server));
        }
        rig
    }

    /// One server with one disk and so much memory before it.
    pub(crate) fn on_disk(memory_limit_bytes: u64, write_through: bool) -> Rig {
        let mut rig = Rig::new(0);
        let dir = rig.dir.path().join("disk-0");
        std::fs::create_dir_all(&dir).unwrap();
        let server = rig.start_server(0, |o| {
            o.store = ioserver::StoreOptions::Disk {
                dirs: vec![dir.clone()],
                memory_limit_bytes,
            };
            o.write_through = write_through;
        });
        rig.servers.push(Some(server));
        rig
    }

    pub(crate) fn start_server(&self, i: usize, change: impl Fn(&mut Options)) -> IoServer {
        let socket = Endpoint::Unix(self.dir.path().join(format!("io-{i}.sock")));
        let mut options = Options::new(self.meta_endpoint.clone(), socket, memory(256 << 20));
        change(&mut options);
        ioserver::start(options).unwrap()
    }

    pub(crate) fn disk(&self, i: usize) -> StoreOptions {
        StoreOptions::Disk {
            dirs: vec![self.dir.path().join(format!("disk-{i}"))],
            memory_limit_bytes: 64 << 20,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.meta_endpoint)
    }

    /// A connection to a server as another server of the cluster.
    pub(crate) fn connect_as_server(&self, server: ServerId, to: usize) -> Link {
        let key = std::fs::read(self.dir.path().join("meta/key")).unwrap();
        let key = control::capability::ClusterKey::new(key.try_into().unwrap());
        let seal = control::capability::server_seal(&key, server);
        let seal = Bytes(seal.to_vec());
        let role = Role::Server { server, seal };
        self.client().connect(self.number(to), role).unwrap().0
    }

    /// The number of a server in the service.
    pub(crate) fn number(&self, server: usize) -> u64 {
        self.servers[server].as_ref().unwrap().server().0
    }

    pub(crate) fn count(&self, server: usize, name: &str) -> u64 {
        let list = self.servers[server].as_ref().unwrap().statistics();
        list.iter().find(|c| c.name == name).map_or(0, |c| c.value)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let panics: u64 = self.servers.iter().flatten().map(IoServer::panics).sum();
        for server in self.servers.drain(..).flatten() {
            server.stop();
        }
        if let Some(meta) = self.meta.take() {
            meta.stop();
        }
        // Whoever sent what made a handler panic saw a connection end, as with any other error.
        if !std::thread::panicking() {
            assert_eq!(panics, 0, "handlers of servers panicked");
        }
    }
}

pub(crate) fn start_meta(dir: &Path, endpoint: &Endpoint) -> MetaServer {
    let mut options = metaserver::Options::new(dir.join("meta"));
    options.listen = vec![endpoint.clone()];
    metaserver::start(options).unwrap()
}

fn hello(endpoint: &Endpoint, role: Role) -> Result<(Link, Welcome), AskError> {
    let mut link = Link::connect(endpoint, WAIT).map_err(LinkError::Io)?;
    link.set_timeout(Some(WAIT)).unwrap();
    let hello = Hello {
        role,
        process: identity::this_process(),
        credentials: Credentials::ROOT,
        nonce: Default::default(),
    };
    let welcome = link.ask(1, &hello, &mut Vec::new())?;
    Ok((link, welcome))
}

/// A client with one lane.
pub(crate) struct Client {
    pub(crate) meta: Link,
    pub(crate) welcome: Welcome,
    pub(crate) lanes: BTreeMap<u64, Link>,
    pub(crate) out: Vec<u8>,
    pub(crate) flags: u16,
    /// Requests to the manager so far: one that has the number of another is that one, sent again.
    asked: u64,
}

impl Client {
    pub(crate) fn new(endpoint: &Endpoint) -> Client {
        let (meta, welcome) = hello(endpoint, Role::NewClient).unwrap();
        Client::of(meta, welcome)
    }

    /// A client of another user, who knows the secret.
    pub(crate) fn of_user(endpoint: &Endpoint, secret: &Secret, user: u32) -> Client {
        let mut link = Link::connect(endpoint, WAIT).unwrap();
        link.set_timeout(Some(WAIT)).unwrap();
        let hello = Hello {
            role: Role::NewClient,
            process: identity::this_process(),
            credentials: Credentials::new(user, user),
            nonce: Bytes(vec![5; 32]),
        };
        let challenge = match link.ask(1, &hello, &mut Vec::new()) {
            Err(AskError::Refused(Status::Unauthenticated, refusal)) => refusal.detail,
            other => panic!("no challenge but {other:?}"),
        };
        let proof = identity::proof(secret, &challenge.0, &hello);
        let proof = Bytes(proof.to_vec());
        let welcome = link.ask(2, &Prove { proof }, &mut Vec::new()).unwrap();
        Client::of(link, welcome)
    }

    fn of(meta: Link, welcome: Welcome) -> Client {
        Client {
            meta,
            welcome,
            lanes: BTreeMap::new(),
            out: Vec::new(),
            flags: 0,
            asked: 2,
        }
    }

    pub(crate) fn ask_manager<R: Request>(&mut self, request: &R) -> Result<R::Answer, AskError> {
        self.asked += 1;
        self.meta.ask(self.asked, request, &mut self.out)
    }

    pub(crate) fn role(&self) -> Role {
        Role::Client {
            client: self.welcome.client,
            session: self.welcome.session.clone(),
        }
    }

    pub(crate) fn members(&mut self) -> Vec<Member> {
        self.ask_manager(&Members {}).unwrap()
    }

    pub(crate) fn connect(&mut self, server: u64, role: Role) -> Result<(Link, Welcome), AskError> {
        let members = self.members();
        let member = members
            .iter()
            .find(|m| m.server == ServerId(server))
            .unwrap();
        hello(&member.address.parse().unwrap(), role)
    }

    /// Another connection of the client.
    pub(crate) fn connect_as_itself(&mut self, server: u64) -> Result<(Link, Welcome), AskError> {
        let role = self.role();
        self.connect(server, role)
    }

    pub(crate) fn lane(&mut self, server: u64) -> &mut Link {
        if !self.lanes.contains_key(&server) {
            let role = self.role();
            let (link, _) = self.connect(server, role).unwrap();
            self.lanes.insert(server, link);
        }
        self.lanes.get_mut(&server).unwrap()
    }

    pub(crate) fn ask<R: Request>(
        &mut self,
        server: u64,
        request: &R,
    ) -> Result<R::Answer, AskError> {
        self.lane(server).ask(7, request, &mut Vec::new())
    }

    pub(crate) fn open(&mut self, path: &str, array: Option<&str>, layout: Option<&str>) -> File {
        let request = Open {
            path: path.into(),
            options: OpenOptions {
                rights: Rights::BOTH,
                create: Some(CreateOptions {
                    mode: 0o600,
                    exclusive: false,
                    layout: LayoutSpec {
                        array: array.map(Into::into),
                        layout: layout.map(Into::into),
                    },
                    ..CreateOptions::default()
                }),
                ..OpenOptions::default()
            },
        };
        self.opened(&request)
    }

    /// A file that is there.
    pub(crate) fn open_for(&mut self, path: &str, rights: Rights) -> File {
        let options = OpenOptions {
            rights,
            ..OpenOptions::default()
        };
        let path = path.into();
        self.opened(&Open { path, options })
    }

    fn opened(&mut self, request: &Open) -> File {
        let opened: OpenAnswer = self.ask_manager(request).unwrap();
        File {
            id: opened.attributes.file,
            state: opened.layout.clone(),
            opened,
            epoch: 0,
            number: 0,
        }
    }

    /// Registers a view at every server of the file.
    pub(crate) fn set_view(&mut self, file: &File, number: u64, view: &View) {
        for server in file.servers() {
            self.set_view_at(server, file, number, view).unwrap();
        }
    }

    pub(crate) fn set_view_at(
        &mut self,
        server: u64,
        file: &File,
        number: u64,
        view: &View,
    ) -> Result<(), AskError> {
        let mut description = Vec::new();
        describe::put_view(&mut description, view);
        let request = SetView {
            view: number,
            file: file.id,
            capability: file.opened.capability.clone(),
            description_bytes: description.len() as u64,
            description: Bytes(description),
        };
        self.ask(server, &request)
    }

    /// Writes view bytes from `lo` on, to all servers.
    pub(crate) fn write(
        &mut self,
        file: &File,
        number: u64,
        view: &View,
        lo: u64,
        data: &[u8],
    ) -> Result<Vec<AccessAnswer>, (Status, String)> {
        let hi = lo + data.len() as u64;
        let mut done = Vec::new();
        for (server, positions) in file.parts(view, lo, hi) {
            let payload: Vec<u8> = positions.iter().map(|&k| data[k as usize]).collect();
            let access = file.access(number, lo, hi, payload.len() as u64);
            done.push(self.write_at(server, access, file, &payload)?);
        }
        Ok(done)
    }

    pub(crate) fn write_at(
        &mut self,
        server: u64,
        access: Access<'_>,
        file: &File,
        payload: &[u8],
    ) -> Result<AccessAnswer, (Status, String)> {
        let mut flags = self.flags;
        if server == file.state.owner.server {
            flags |= GROW;
        }
        let mut control = Vec::new();
        access.encode(&mut control);
        let link = self.lane(server);
        if flags & ANNOUNCED != 0 {
            link.send(header(WRITE, flags), &control, &[]).unwrap();
            let (answer, said) = link.receive().unwrap();
            if !answer.status.is_ok() {
                return Err(refusal(answer.status, said));
            }
            assert_eq!((answer.flags, said.len()), (GO, 0));
            link.send(header(DATA, 0), &[], &[payload]).unwrap();
        } else {
            link.send(header(WRITE, flags), &control, &[payload])
                .unwrap();
        }
        let (answer, said) = link.receive().unwrap();
        if !answer.status.is_ok() {
            return Err(refusal(answer.status, said));
        }
        Ok(AccessAnswer::decode(said).unwrap())
    }

    /// Reads view bytes from all servers.
    pub(crate) fn read(
        &mut self,
        file: &File,
        number: u64,
        view: &View,
        lo: u64,
        hi: u64,
    ) -> Result<(Vec<u8>, Vec<AccessAnswer>), (Status, String)> {
        let mut data = vec![0xee; (hi - lo) as usize];
        let mut done = Vec::new();
        for (server, positions) in file.parts(view, lo, hi) {
            let access = file.access(number, lo, hi, positions.len() as u64);
            let mut control = Vec::new();
            access.encode(&mut control);
            let link = self.lane(server);
            link.send(header(READ, 0), &control, &[]).unwrap();
            let (answer, said) = link.receive().unwrap();
            if !answer.status.is_ok() {
                return Err(refusal(answer.status, said));
            }
            done.push(AccessAnswer::decode(said).unwrap());
            assert_eq!(answer.payload_bytes, positions.len() as u64);
            let mut payload = vec![0; positions.len()];
            link.receive_payload(&mut payload).unwrap();
            for (&k, byte) in positions.iter().zip(payload) {
                data[k as usize] = byte;
            }
        }
        Ok((data, done))
    }
}

pub(crate) fn header(kind: u16, flags: u16) -> Header {
    Header {
        kind,
        status: Status::Ok,
        flags,
        request: 9,
        control_bytes: 0,
        payload_bytes: 0,
    }
}

pub(crate) fn refusal(status: Status, control: &[u8]) -> (Status, String) {
    let refusal: wire::message::Refusal = wire::message::decode(control).unwrap();
    (status, refusal.text)
}

/// An open file.
pub(crate) struct File {
    pub(crate) id: FileId,
    pub(crate) state: LayoutState,
    pub(crate) opened: OpenAnswer,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
}

impl File {
    pub(crate) fn servers(&self) -> Vec<u64> {
        let mut list: Vec<u64> = self.state.pieces[0]
            .places
            .iter()
            .map(|p| p[0].server)
            .collect();
        list.push(self.state.owner.server);
        list.sort_unstable();
        list.dedup();
        list
    }

    /// Per server the positions (relative to `lo`) of its bytes, in the order of the payload.
    pub(crate) fn parts(&self, view: &View, lo: u64, hi: u64) -> BTreeMap<u64, Vec<u64>> {
        let piece = &self.state.pieces[0];
        let mut by_subfile: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for k in lo..hi {
            let x = view.view_to_file(ViewOffset(k)).unwrap();
            let (element, _) = piece.partition.owner(FileOffset(x.0)).unwrap();
            by_subfile.entry(element).or_default().push(k - lo);
        }
        let mut parts: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (element, positions) in by_subfile {
            let server = piece.places[element][0].server;
            parts.entry(server).or_default().extend(positions);
        }
        parts
    }

    pub(crate) fn access(&self, view: u64, lo: u64, hi: u64, bytes: u64) -> Access<'static> {
        let mut version = Vec::new();
        self.state.version().put(&mut version);
        Access {
            view,
            lo,
            hi,
            bytes,
            epoch: self.epoch,
            number: self.number,
            end: 0,
            version: version.leak(),
        }
    }
}

/// A number that no other request of a client has.
pub(crate) fn request_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 20);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn pattern(len: u64, salt: u64) -> Vec<u8> {
    (0..len)
        .map(|i| ((i * 131 + salt * 17 + (i >> 8)) % 251 + 1) as u8)
        .collect()
}
