//! A service in threads of the test: a metadata manager and I/O servers that keep everything in one
//! table, byte by byte, and do what a script says.
//!
//! Slow and simple on purpose: which bytes lie where is found by asking the layout for each byte, so
//! it is an oracle for what the client derives. Scripts refuse, break or hold the next accesses.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use layout::{FileOffset, Layout, Partition, Pattern, View, ViewOffset};
use wire::frame::Header;
use wire::link::{Link, Listener};
use wire::message::access::{ANNOUNCED, Access, AccessAnswer, DATA, GO, GROW, READ, WRITE};
use wire::message::catalogue as cat;
use wire::message::file::*;
use wire::message::session::*;
use wire::message::{self, Bytes, Field, Refusal, Request};
use wire::url::Endpoint;
use wire::{
    ClientId, FileId, HandleId, LayoutState, Piece, Place, Reader, ServerId, Status, Time, describe,
};

/// What happens to the next access at a server.
#[derive(Clone, Debug)]
pub enum Trick {
    /// Refuse it.
    Refuse(Status),
    /// Close the connection instead of answering.
    Hang,
    /// Wait for [`Toy::release`] before answering.
    Hold,
    /// Swap the layout of the file and say so.
    Relayout(String),
    /// Truncate the file to this size first, in a new epoch, and say so.
    Truncate(u64),
    /// Do it.
    Serve,
}

#[derive(Debug, Clone)]
struct Node {
    id: u64,
    array: Option<String>,
    text: String,
    state: LayoutState,
    size: u64,
    epoch: u64,
    reserved: u64,
    bytes: BTreeMap<u64, u8>,
}

#[derive(Debug, Default)]
pub struct World {
    servers: u64,
    dir: PathBuf,
    files: BTreeMap<String, Node>,
    next_id: u64,
    next_client: u64,
    handles: HashMap<u64, u64>,
    next_handle: u64,
    manager_start: u64,
    views: HashMap<(u64, u64), (u64, View)>,
    parts: HashMap<u64, (u64, u64, Vec<u8>)>,
    pointers: HashMap<u64, u64>,
    pub tricks: HashMap<u64, VecDeque<Trick>>,
    /// Kinds of the frames that came, by server.
    pub seen: HashMap<u64, Vec<u16>>,
    held: u64,
    released: u64,
    message_bytes: u64,
    rendezvous_bytes: u64,
    dead: Vec<u64>,
    lease: u64,
    locked: bool,
    use_locks: bool,
    /// The boot of the host of each server; all are of 0 at first.
    pub boots: HashMap<u64, u64>,
    /// Kinds of frames, other than accesses, that are refused for as long as they stand here.
    pub refused: HashMap<u16, Status>,
    /// The next frame of this kind waits for [`Toy::release`].
    pub holds: Option<u16>,
}

/// The running service.
pub struct Toy {
    pub world: Arc<(Mutex<World>, Condvar)>,
    pub dir: PathBuf,
}

impl Toy {
    pub fn start(servers: u64) -> Toy {
        Toy::with_limits(servers, 64 << 10, 16 << 10)
    }

    pub fn with_limits(servers: u64, message_bytes: u64, rendezvous_bytes: u64) -> Toy {
        static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("pario-toy-{}-{n}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let world = World {
            servers,
            dir: dir.clone(),
            next_id: 1,
            next_client: 1,
            next_handle: 1,
            manager_start: 1,
            message_bytes,
            rendezvous_bytes,
            lease: 1,
            ..World::default()
        };
        let world = Arc::new((Mutex::new(world), Condvar::new()));
        for server in 0..=servers {
            listen(&world, &dir, server);
        }
        Toy { world, dir }
    }

    pub fn url(&self) -> client::ServiceUrl {
        client::ServiceUrl::At(endpoint(&self.dir, 0))
    }

    pub fn lock(&self) -> MutexGuard<'_, World> {
        self.world.0.lock().unwrap()
    }

    /// Appends tricks for the next accesses at a server.
    pub fn script(&self, server: u64, tricks: &[Trick]) {
        let mut world = self.lock();
        world
            .tricks
            .entry(server)
            .or_default()
            .extend(tricks.iter().cloned());
    }

    /// Waits until so many accesses are held.
    pub fn wait_held(&self, count: u64) {
        let mut world = self.lock();
        while world.held < count {
            world = self.world.1.wait(world).unwrap();
        }
    }

    /// Lets held accesses go on.
    pub fn release(&self) {
        let mut world = self.lock();
        world.released = world.held;
        self.world.1.notify_all();
    }

    /// Frames of these kinds that servers other than the manager got so far.
    pub fn count(&self, kinds: &[u16]) -> usize {
        let world = self.lock();
        let all = world.seen.iter().filter(|(server, _)| **server > 0);
        all.flat_map(|(_, list)| list)
            .filter(|kind| kinds.contains(kind))
            .count()
    }

    /// Frames of any kind, the manager's too.
    pub fn count_all(&self) -> usize {
        self.lock().seen.values().map(Vec::len).sum()
    }

    /// The file's bytes as they are stored.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let world = self.lock();
        let node = &world.files[path];
        let mut all = vec![0; node.size as usize];
        for (&at, &byte) in &node.bytes {
            if at < node.size {
                all[at as usize] = byte;
            }
        }
        all
    }

    /// A server that is never there again.
    pub fn kill(&self, server: u64) {
        let mut world = self.lock();
        world.dead.push(server);
        std::fs::remove_file(world.dir.join(format!("{server}.sock"))).unwrap();
    }

    /// Forgets everything volatile: views, and handles of the manager.
    pub fn restart(&self) {
        let mut world = self.lock();
        world.views.clear();
        world.handles.clear();
        world.manager_start += 1;
        let all: Vec<u64> = (0..=world.servers).collect();
        for server in all {
            world
                .tricks
                .entry(server)
                .or_default()
                .push_back(Trick::Hang);
        }
    }

    pub fn set_locks(&self, use_locks: bool) {
        let mut world = self.lock();
        world.use_locks = use_locks;
        world.lease += 1;
    }
}

impl Drop for Toy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn endpoint(dir: &std::path::Path, server: u64) -> Endpoint {
    Endpoint::Unix(dir.join(format!("{server}.sock")))
}

fn listen(world: &Arc<(Mutex<World>, Condvar)>, dir: &std::path::Path, server: u64) {
    let listener = Listener::bind(&endpoint(dir, server)).unwrap();
    let world = world.clone();
    std::thread::spawn(move || {
        while let Ok(link) = listener.accept() {
            let world = world.clone();
            std::thread::spawn(move || {
                let mut peer = Peer {
                    world,
                    server,
                    link,
                    client: 0,
                };
                while peer.serve().is_some() {}
            });
        }
    });
}

struct Peer {
    world: Arc<(Mutex<World>, Condvar)>,
    server: u64,
    link: Link,
    client: u64,
}

type Refused = (Status, Refusal);

fn no(status: Status) -> Refused {
    (status, Refusal::new(format!("the script says {status}")))
}

impl Peer {
    fn serve(&mut self) -> Option<()> {
        let (header, control) = self.link.receive().ok()?;
        let control = control.to_vec();
        {
            let mut world = self.world.0.lock().unwrap();
            if world.dead.contains(&self.server) {
                return None;
            }
            world.seen.entry(self.server).or_default().push(header.kind);
            let is_access = matches!(header.kind, READ | WRITE);
            let tricks = world.tricks.entry(self.server).or_default();
            if !is_access && matches!(tricks.front(), Some(Trick::Hang)) {
                tricks.pop_front();
                return None;
            }
        }
        if matches!(header.kind, READ | WRITE) {
            return self.access(header, &control);
        }
        if self.lock().holds == Some(header.kind) {
            self.lock().holds = None;
            self.hold();
        }
        let refused = self.lock().refused.get(&header.kind).copied();
        if let Some(status) = refused {
            return self.refuse(header, status, Vec::new());
        }
        macro_rules! dispatch {
            ($($request:ty => $method:expr;)*) => {
                match header.kind {
                    $(<$request as Request>::KIND => {
                        let request: $request = message::decode(&control).unwrap();
                        #[allow(clippy::redundant_closure_call)]
                        let answer = ($method)(self, request);
                        self.answer::<<$request as Request>::Answer>(header, answer)
                    })*
                    kind => panic!("the toy knows no kind {kind:#x}"),
                }
            };
        }
        dispatch! {
            Hello => |p: &mut Peer, r| p.hello(r);
            Goodbye => |_: &mut Peer, _| Ok(());
            cat::Open => |p: &mut Peer, r| p.open(r);
            cat::Reopen => |p: &mut Peer, r: cat::Reopen| p.reopen(r);
            cat::Close => |p: &mut Peer, r: cat::Close| {
                let removed = p.lock().handles.remove(&r.handle.0);
                removed.map(|_| cat::CloseAnswer { is_removed: false }).ok_or(no(Status::BadHandle))
            };
            cat::GetState => |p: &mut Peer, r: cat::GetState| {
                let mut w = p.lock();
                let id = *w.handles.get(&r.handle.0).ok_or(no(Status::BadHandle))?;
                Ok(w.node(id).state.clone())
            };
            cat::RenewCapability => |p: &mut Peer, r: cat::RenewCapability| {
                let id = *p.lock().handles.get(&r.handle.0).ok_or(no(Status::BadHandle))?;
                Ok(Bytes(id.to_le_bytes().to_vec()))
            };
            cat::Members => |p: &mut Peer, _| Ok(p.members());
            wire::message::profile::PutProfile => |_: &mut Peer, _| Ok(());
            cat::Mkdir => |_: &mut Peer, _| Ok(());
            cat::Unlink => |p: &mut Peer, r: cat::Unlink| {
                p.lock().files.remove(&r.path).map(drop).ok_or(no(Status::NotFound))
            };
            SetView => |p: &mut Peer, r| p.set_view(r);
            SetViewPart => |p: &mut Peer, r: SetViewPart| {
                let mut w = p.lock();
                let (file, _, bytes) = w.parts.get_mut(&r.view).ok_or(no(Status::UnknownView))?;
                bytes.extend_from_slice(&r.part.0);
                let (file, bytes) = (*file, bytes.clone());
                w.try_view(p.server, r.view, file, &bytes);
                Ok(())
            };
            DropView => |p: &mut Peer, r: DropView| {
                let key = (p.server, r.view);
                p.lock().views.remove(&key).ok_or(no(Status::UnknownView))?;
                Ok(p.verifiers())
            };
            Size => |p: &mut Peer, r: Size| p.on_file(r.view, |n| n.size_is());
            Grow => |p: &mut Peer, r: Grow| p.on_file(r.view, |n| {
                if r.epoch != n.epoch {
                    return Err(no(Status::StaleEpoch));
                }
                n.size = n.size.max(r.end);
                Ok(n.size_is())
            }).and_then(|x| x);
            Truncate => |p: &mut Peer, r: Truncate| p.on_file(r.view, |n| {
                n.truncate(r.to);
                n.size_is()
            });
            Preallocate => |p: &mut Peer, r: Preallocate| p.on_file(r.view, |_| ());
            Punch => |p: &mut Peer, r: Punch| {
                let answer = PunchAnswer { start: 0, verifier: p.verifiers().life };
                p.on_file(r.view, |n| {
                    if r.epoch != n.epoch {
                        return Err(no(Status::StaleEpoch));
                    }
                    n.bytes.retain(|at, _| !(r.lo..r.hi).contains(at));
                    Ok(answer)
                }).and_then(|x| x)
            };
            Sync => |p: &mut Peer, r: Sync| {
                let verifiers = p.verifiers();
                p.on_file(r.view, |_| SyncAnswer { is_durable: false, verifiers })
            };
            Verify => |p: &mut Peer, _: Verify| Ok(p.verifiers());
            Release => |p: &mut Peer, r: Release| p.on_file(r.view, |_| ());
            Allocation => |p: &mut Peer, r: Allocation| p.on_file(r.view, |n| n.bytes.len() as u64);
            Reserve => |p: &mut Peer, r: Reserve| p.on_file(r.view, |n| {
                let offset = n.size.max(n.reserved);
                n.reserved = offset + r.len;
                ReserveAnswer { offset, epoch: n.epoch }
            });
            FinishAppend => |p: &mut Peer, r: FinishAppend| p.on_file(r.view, |n| {
                if r.epoch != n.epoch {
                    return Err(no(Status::StaleEpoch));
                }
                n.size = n.size.max(r.end);
                Ok(n.size_is())
            }).and_then(|x| x);
            JoinPointer => |p: &mut Peer, r: JoinPointer| {
                p.lock().pointers.entry(r.group).or_insert(r.position);
                Ok(())
            };
            LeavePointer => |_: &mut Peer, _: LeavePointer| Ok(());
            MovePointer => |p: &mut Peer, r: MovePointer| {
                let mut w = p.lock();
                let at = w.pointers.get_mut(&r.group).ok_or(no(Status::BadHandle))?;
                let before = *at;
                match r.how {
                    PointerMove::Add => *at += r.amount,
                    PointerMove::To => *at = r.amount,
                    PointerMove::Stay => {}
                }
                Ok(before)
            };
            Admit => |p: &mut Peer, _: Admit| {
                let w = p.lock();
                Ok(AdmitAnswer { number: w.lease, use_locks: w.use_locks })
            };
            LeaveAtomic => |_: &mut Peer, _: LeaveAtomic| Ok(());
            Lock => |p: &mut Peer, _: Lock| {
                let mut w = p.world.0.lock().unwrap();
                while w.locked {
                    w = p.world.1.wait(w).unwrap();
                }
                w.locked = true;
                Ok(())
            };
            Unlock => |p: &mut Peer, _: Unlock| {
                p.lock().locked = false;
                p.world.1.notify_all();
                Ok(())
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.0.lock().unwrap()
    }

    /// Waits for [`Toy::release`].
    fn hold(&self) {
        let mut world = self.lock();
        world.held += 1;
        let mine = world.held;
        self.world.1.notify_all();
        while world.released < mine {
            world = self.world.1.wait(world).unwrap();
        }
    }

    fn answer<A: Field>(&mut self, header: Header, answer: Result<A, Refused>) -> Option<()> {
        let mut out = Vec::new();
        let status = match answer {
            Ok(answer) => {
                message::encode(&answer, &mut out);
                Status::Ok
            }
            Err((status, refusal)) => {
                message::encode(&refusal, &mut out);
                status
            }
        };
        let header = Header {
            status,
            flags: 0,
            ..header
        };
        self.link.send(header, &out, &[]).ok()
    }

    fn hello(&mut self, hello: Hello) -> Result<Welcome, Refused> {
        let mut world = self.world.0.lock().unwrap();
        let client = match hello.role {
            Role::Client { client, session } => {
                assert_eq!(session.0, client.0.to_le_bytes());
                client.0
            }
            _ => {
                world.next_client += 1;
                world.next_client
            }
        };
        self.client = client;
        Ok(Welcome {
            client: ClientId(client),
            session: Bytes(client.to_le_bytes().to_vec()),
            server: ServerId(self.server),
            incarnation: match self.server {
                0 => world.manager_start,
                _ => 1,
            },
            rendezvous_bytes: world.rendezvous_bytes,
            message_bytes: world.message_bytes,
            proof: Bytes::default(),
        })
    }

    fn verifiers(&self) -> Verifiers {
        let boot = self.lock().boots.get(&self.server).copied().unwrap_or(0);
        Verifiers {
            kept: 100 + boot,
            life: 200 + boot,
        }
    }

    fn members(&self) -> Vec<cat::Member> {
        let world = self.lock();
        (1..=world.servers)
            .map(|server| cat::Member {
                server: ServerId(server),
                address: endpoint(&world.dir, server).to_string(),
                local: None,
                incarnation: 1,
                kept_since: 1,
                store: cat::StoreKind::Memory,
                capacity_bytes: 0,
                used_bytes: 0,
                distance: 0,
                state: cat::MemberState::Alive,
                is_draining: false,
            })
            .collect()
    }

    fn open(&mut self, open: cat::Open) -> Result<cat::OpenAnswer, Refused> {
        let mut world = self.world.0.lock().unwrap();
        let mut is_new = false;
        if !world.files.contains_key(&open.path) {
            let create = open.options.create.as_ref().ok_or(no(Status::NotFound))?;
            let id = world.next_id;
            world.next_id += 1;
            let array = create.layout.array.clone();
            let text = create.layout.layout.clone();
            let text = text.unwrap_or_else(|| format!("striped(8) over {}", world.servers));
            let state = world.lay_out(array.as_deref(), &text, 1);
            let node = Node {
                id,
                array,
                text,
                state,
                size: 0,
                epoch: 0,
                reserved: 0,
                bytes: BTreeMap::new(),
            };
            world.files.insert(open.path.clone(), node);
            is_new = true;
        }
        let id = world.files[&open.path].id;
        Ok(world.opened(id, open.options.rights, is_new))
    }

    fn reopen(&mut self, reopen: cat::Reopen) -> Result<cat::OpenAnswer, Refused> {
        let id = u64::from_le_bytes(reopen.capability.0.try_into().unwrap());
        Ok(self.lock().opened(id, wire::Rights::BOTH, false))
    }

    fn set_view(&mut self, set: SetView) -> Result<(), Refused> {
        let mut world = self.world.0.lock().unwrap();
        assert_eq!(set.capability.0, set.file.0.to_le_bytes());
        let entry = (set.file.0, set.description_bytes, set.description.0.clone());
        world.parts.insert(set.view, entry);
        world.try_view(self.server, set.view, set.file.0, &set.description.0);
        Ok(())
    }

    fn on_file<T>(&self, view: u64, run: impl FnOnce(&mut Node) -> T) -> Result<T, Refused> {
        let mut world = self.lock();
        let key = (self.server, view);
        let id = world.views.get(&key).ok_or(no(Status::UnknownView))?.0;
        Ok(run(world.node(id)))
    }

    fn refuse(&mut self, header: Header, status: Status, detail: Vec<u8>) -> Option<()> {
        let refusal = Refusal {
            text: format!("the script says {status}"),
            detail: Bytes(detail),
        };
        self.answer::<()>(header, Err((status, refusal)))
    }

    fn access(&mut self, header: Header, control: &[u8]) -> Option<()> {
        let access = Access::decode(control).unwrap();
        let is_announced = header.flags & ANNOUNCED != 0;
        let mut payload = vec![0; header.payload_bytes as usize];
        self.link.receive_payload(&mut payload).ok()?;
        let trick = {
            let mut world = self.lock();
            let tricks = world.tricks.entry(self.server).or_default();
            tricks.pop_front().unwrap_or(Trick::Serve)
        };
        match trick {
            Trick::Hang => return None,
            Trick::Refuse(status) => return self.refuse(header, status, Vec::new()),
            Trick::Hold => self.hold(),
            Trick::Relayout(text) => {
                let mut world = self.lock();
                let id = world.views[&(self.server, access.view)].0;
                let array = world.node(id).array.clone();
                let generation = world.node(id).state.pieces[0].generation + 1;
                let state = world.lay_out(array.as_deref(), &text, generation);
                world.node(id).state = state;
            }
            Trick::Truncate(to) => {
                let mut world = self.lock();
                let id = world.views[&(self.server, access.view)].0;
                world.node(id).truncate(to);
            }
            Trick::Serve => {}
        }
        // What the access covers here, byte by byte: file offsets in the order of the payload.
        let planned = {
            let mut world = self.lock();
            let known = world.views.get(&(self.server, access.view)).cloned();
            match known {
                None => Err((Status::UnknownView, Vec::new())),
                Some((id, view)) => {
                    let lease = world.lease;
                    let node = world.node(id);
                    let mut version = Vec::new();
                    node.state.version().put(&mut version);
                    if version != access.version {
                        let mut state = Vec::new();
                        node.state.put(&mut state);
                        Err((Status::StaleLayout, state))
                    } else if node.epoch != access.epoch {
                        Err((Status::StaleEpoch, Vec::new()))
                    } else if access.number != 0 && access.number != lease {
                        Err((Status::StaleLease, Vec::new()))
                    } else {
                        Ok((id, node.covered(self.server, &view, access.lo, access.hi)))
                    }
                }
            }
        };
        let (id, covered) = match planned {
            Err((status, detail)) => return self.refuse(header, status, detail),
            Ok(found) => found,
        };
        assert_eq!(covered.len() as u64, access.bytes, "both sides count alike");
        assert!(!covered.is_empty(), "nothing is asked for in vain");
        let mut out = Vec::new();
        let done = AccessAnswer {
            verifier: self.verifiers().kept,
            ..AccessAnswer::default()
        };
        done.encode(&mut out);
        if header.kind == READ {
            let bytes: Vec<u8> = {
                let mut world = self.lock();
                let node = world.node(id);
                let found = covered.iter().map(|x| node.bytes.get(x).copied());
                found.map(|b| b.unwrap_or(0)).collect()
            };
            return self.link.send(header, &out, &[&bytes]).ok();
        }
        let mut answer = header;
        if is_announced {
            let go = Header {
                flags: GO,
                ..header
            };
            self.link.send(go, &[], &[]).ok()?;
            let (data, _) = self.link.receive().ok()?;
            assert_eq!(data.kind, DATA);
            answer.kind = DATA;
            payload = vec![0; data.payload_bytes as usize];
            self.link.receive_payload(&mut payload).ok()?;
            let mut world = self.lock();
            world.seen.entry(self.server).or_default().push(DATA);
        }
        assert_eq!(payload.len(), covered.len());
        assert!(payload.len() as u64 <= self.lock().message_bytes);
        {
            let mut world = self.lock();
            let node = world.node(id);
            for (x, byte) in covered.iter().zip(&payload) {
                node.bytes.insert(*x, *byte);
            }
            if header.flags & GROW != 0 {
                assert_eq!(node.state.owner.server, self.server);
                node.size = node.size.max(access.end);
            }
        }
        answer.flags = 0;
        self.link.send(answer, &out, &[]).ok()
    }
}

impl Node {
    fn size_is(&self) -> SizeIs {
        SizeIs {
            size: self.size,
            epoch: self.epoch,
        }
    }

    fn truncate(&mut self, to: u64) {
        self.size = to;
        self.reserved = 0;
        self.epoch += 1;
        self.bytes.retain(|at, _| *at < to);
    }

    fn covered(&self, server: u64, view: &View, lo: u64, hi: u64) -> Vec<u64> {
        let piece = &self.state.pieces[0];
        let mut by_subfile: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for k in lo..hi {
            let x = view.view_to_file(ViewOffset(k)).unwrap();
            let (subfile, _) = piece.partition.owner(x).unwrap();
            if piece.places[subfile][0].server == server {
                by_subfile.entry(subfile).or_default().push(x.0);
            }
        }
        by_subfile.into_values().flatten().collect()
    }
}

impl World {
    fn node(&mut self, id: u64) -> &mut Node {
        self.files.values_mut().find(|n| n.id == id).unwrap()
    }

    fn opened(&mut self, id: u64, rights: wire::Rights, is_new: bool) -> cat::OpenAnswer {
        let handle = self.next_handle;
        self.next_handle += 1;
        self.handles.insert(handle, id);
        let node = self.node(id).clone();
        cat::OpenAnswer {
            handle: HandleId(handle),
            rights,
            is_new,
            attributes: cat::Attributes {
                file: FileId(id),
                kind: cat::Kind::File,
                owner: 0,
                group: 0,
                mode: 0o644,
                accessed: Time(0),
                modified: Time(0),
                changed: Time(0),
                size: node.size,
                epoch: node.epoch,
                truncate_to: None,
                array: node.array,
                layout: Some(node.text),
                generation: node.state.pieces[0].generation,
                is_linked: true,
                delete_on_close: false,
            },
            layout: node.state,
            capability: Bytes(id.to_le_bytes().to_vec()),
            hints: Vec::new(),
        }
    }

    fn lay_out(&self, array: Option<&str>, text: &str, generation: u64) -> LayoutState {
        let layout: Layout = text.parse().unwrap();
        let applied = match array {
            Some(array) => layout.on_array(&array.parse().unwrap()).unwrap(),
            None => layout.on_bytes().unwrap(),
        };
        let elements = (0..applied.count()).map(|i| applied.element(i).unwrap());
        let pattern = Pattern::new(applied.period(), elements.collect()).unwrap();
        let place = |i: u64| Place {
            server: 1 + i % self.servers,
            incarnation: 1,
        };
        LayoutState {
            owner: place(0),
            step: generation,
            pieces: vec![Piece::whole(
                generation,
                Partition::new(FileOffset(0), pattern).unwrap(),
                (0..applied.count()).map(|i| vec![place(i)]).collect(),
            )],
        }
    }

    fn try_view(&mut self, server: u64, number: u64, file: u64, bytes: &[u8]) {
        let announced = self.parts[&number].1;
        if bytes.len() as u64 == announced {
            let view = match announced {
                0 => View::whole_file(),
                _ => describe::view(&mut Reader::new(bytes)).unwrap(),
            };
            self.views.insert((server, number), (file, view));
        }
    }
}

impl World {
    /// Views that servers know.
    pub fn views_left(&self) -> usize {
        self.views.len()
    }
}

impl Toy {
    /// Accesses held so far.
    pub fn held(&self) -> u64 {
        self.lock().held
    }
}
