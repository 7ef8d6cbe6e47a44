//! An open file as all its threads share it: layout state, size, capability, views, and how to repair
//! what a server complains about.
//!
//! Invariants
//! - The size known here is never above the file's in the same epoch; who needs more asks the owner.
//! - State and plan are hints: servers say when they are old, and say it before they serve anything.
//! - No lock is held while a server or the metadata manager is asked, except the gate, which is made
//!   for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use advise::mapping::Strategy as Mapping;
use layout::{ArrayType, View};
use parking_lot::{Condvar, Mutex, RwLock};
use wire::message::catalogue::{Close, GetState, Opened, RenewCapability, Reopen};
use wire::message::file::*;
use wire::message::{Bytes, Request, decode};
use wire::{FileId, HandleId, LayoutState, Place, Reader, Rights, ServerId, Status};

use crate::access::ahead::Ahead;
use crate::access::direct::maps::{Maps, Misses};
use crate::access::direct::quick::Quick;
use crate::access::gateway::Gateway;
use crate::access::phases::Phases;
use crate::collective::Together;
use crate::collective::strategy::Strategy;
use crate::error::{Error, Result, Trouble};
use crate::file::options::OpenOptions;
use crate::file::pointers::Pointers;
use crate::file::unsynced::Unsynced;
use crate::file::view::HandleView;
use crate::hints::Hints;
use crate::hints::heard::Heard;
use crate::profile::recording::Recording;
use crate::transport::lane::Lane;
use crate::transport::patience::Patience;
use crate::transport::pipe::Pipe;
use crate::transport::session::Session;

/// Answers of servers with a newer layout state between two questions for it, by message.
const NEWER_PER_QUESTION: u64 = 16;

/// What the metadata manager knows the handle by.
#[derive(Clone, Debug)]
struct Key {
    handle: HandleId,
    capability: Bytes,
}

/// What an atomic handle was given by the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) number: u64,
    pub(crate) use_locks: bool,
}

/// Counts non-blocking operations under way.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    count: Mutex<u64>,
    is_none: Condvar,
}

impl Pending {
    pub(crate) fn begin(&self) {
        *self.count.lock() += 1;
    }

    pub(crate) fn end(&self) {
        *self.count.lock() -= 1;
        self.is_none.notify_all();
    }

    /// Waits until there are none.
    pub(crate) fn wait(&self) {
        let mut count = self.count.lock();
        while *count > 0 {
            self.is_none.wait(&mut count);
        }
    }
}

/// What hints say about the handle, ready for use.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The hints that count.
    pub(crate) hints: Mutex<Hints>,
    /// All hints.
    pub(crate) heard: Mutex<Heard>,
    /// `message_bytes` and `rendezvous_bytes` plus one of the hints; 0 is not given.
    limits: (AtomicU64, AtomicU64),
    /// Whether accesses may go directly.
    is_direct: AtomicBool,
    /// Whether the strategy is [`Strategy::Sieving`].
    pub(crate) is_sieving: AtomicBool,
}

/// What the direct way has learned about the file.
#[derive(Debug, Default)]
pub(crate) struct DirectWay {
    /// Where bytes are in shared memory.
    pub(crate) maps: Mutex<Arc<Maps>>,
    pub(crate) misses: Mutex<Misses>,
    /// Runs for short accesses.
    pub(crate) quick: Quick,
}

/// An open file as all its threads share it; users have it as a [`File`](crate::File).
#[derive(Debug)]
pub struct Handle {
    pub(crate) session: Arc<Session>,
    pub(crate) path: String,
    pub(crate) file: FileId,
    pub(crate) rights: Rights,
    pub(crate) is_new: bool,
    pub(crate) is_append: bool,
    unique: Option<u64>,
    pub(crate) array: Option<ArrayType>,
    key: Mutex<Key>,
    state: Mutex<Arc<LayoutState>>,
    /// Answers of servers that had a newer layout state.
    newer: AtomicU64,
    size: Mutex<SizeIs>,
    /// The file as it is; owners are asked through it, and appends written.
    pub(crate) whole: Arc<HandleView>,
    pub(crate) seen: Mutex<Arc<HandleView>>,
    /// Views that were replaced while an access used them.
    retired: Mutex<Vec<Arc<HandleView>>>,
    /// Held by accesses, and alone by a call that changes view or mode.
    pub(crate) gate: RwLock<()>,
    pub(crate) lease: Mutex<Option<Lease>>,
    pub(crate) pointers: Pointers,
    pub(crate) settings: Settings,
    pub(crate) direct: DirectWay,
    pub(crate) phases: Mutex<Phases>,
    /// What was read before it was asked for.
    pub(crate) ahead: Ahead,
    /// How the handle was used.
    pub(crate) recording: Recording,
    /// What the team that opened it has agreed on, and what collective accesses came to.
    pub(crate) together: Together,
    /// For a client that talks through one server.
    pub(crate) gateway: Option<Gateway>,
    /// Where bytes are that this handle has written and not synced.
    pub(crate) unsynced: Unsynced,
    /// Non-blocking operations under way.
    pub(crate) pending: Arc<Pending>,
    is_closed: AtomicBool,
    /// Whether the views of its first opening are known to be its layout.
    pub(crate) is_by_views: AtomicBool,
}

impl Handle {
    pub(crate) fn new(
        session: &Arc<Session>,
        path: String,
        options: &OpenOptions,
        opened: Opened,
    ) -> Result<Arc<Handle>> {
        let attributes = &opened.attributes;
        let array = attributes.array.as_deref().map(str::parse).transpose()?;
        let size = SizeIs {
            size: attributes.size,
            epoch: attributes.epoch,
        };
        let whole = HandleView::new(session, &View::whole_file());
        let heard = Heard::at_open(session, &path, &opened.hints);
        let group = options
            .pointer_group
            .or_else(|| options.hints.number("shared_pointer_group"));
        let handle = Arc::new(Handle {
            session: session.clone(),
            path,
            file: attributes.file,
            rights: opened.rights,
            is_new: opened.is_new,
            is_append: options.append,
            unique: options.unique_number(),
            array: array.filter(|a: &ArrayType| a.bytes() > 0),
            key: Mutex::new(Key {
                handle: opened.handle,
                capability: opened.capability,
            }),
            state: Mutex::new(Arc::new(opened.layout)),
            size: Mutex::new(size),
            seen: Mutex::new(whole.clone()),
            whole,
            retired: Mutex::default(),
            gate: RwLock::default(),
            lease: Mutex::default(),
            pointers: Pointers::new(group),
            settings: Settings {
                hints: Mutex::default(),
                heard: Mutex::new(heard),
                limits: Default::default(),
                is_direct: AtomicBool::new(session.options.direct),
                is_sieving: AtomicBool::new(session.options.strategy == Strategy::Sieving),
            },
            direct: DirectWay::default(),
            phases: Mutex::default(),
            ahead: Ahead::default(),
            recording: Recording::new(session.options.profile, session.options.rank),
            together: Together::default(),
            gateway: match session.options.mapping {
                Mapping::Request => None,
                mapping => Some(Gateway::new(mapping)),
            },
            unsynced: Unsynced::default(),
            is_closed: AtomicBool::new(false),
            pending: Arc::default(),
            is_by_views: AtomicBool::new(false),
            newer: AtomicU64::new(0),
        });
        handle.take_hints(&options.hints);
        let mut files = session.files.lock();
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&handle));
        Ok(handle)
    }

    /// Refuses what a closed handle or a forked child asks for.
    pub(crate) fn check(&self) -> Result<()> {
        self.session.check()?;
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        Ok(())
    }

    /// Refuses an access of a closed handle, of a forked child, or without the right.
    pub(crate) fn check_right(&self, right: Rights) -> Result<()> {
        self.check()?;
        if self.rights.allow(right) {
            return Ok(());
        }
        Err(Error::Refused {
            status: Status::PermissionDenied,
            text: format!(
                "{} was opened for {}; open it for {right}",
                self.path, self.rights
            ),
            server: None,
        })
    }

    pub(crate) fn handle_id(&self) -> HandleId {
        self.key.lock().handle
    }

    fn capability(&self) -> Bytes {
        self.key.lock().capability.clone()
    }

    pub(crate) fn state(&self) -> Arc<LayoutState> {
        self.state.lock().clone()
    }

    /// The server that owns the file, whichever start of it: a new one asks the others what it has to
    /// know, also when its own bytes are lost.
    pub(crate) fn owner(&self) -> Place {
        Place {
            incarnation: 0,
            ..self.state().owner
        }
    }

    pub(crate) fn current(&self) -> Arc<HandleView> {
        self.seen.lock().clone()
    }

    pub(crate) fn take_hints(&self, hints: &Hints) {
        let counting = self.settings.heard.lock().take(hints);
        let mut kept = self.settings.hints.lock();
        *kept = counting;
        let message = kept.number("message_bytes").unwrap_or(0);
        let rendezvous = kept
            .number("rendezvous_bytes")
            .map_or(0, |n| n.saturating_add(1));
        self.settings.limits.0.store(message, Ordering::Relaxed);
        self.settings.limits.1.store(rendezvous, Ordering::Relaxed);
        if let Some(is_on) = kept.get("direct").and_then(crate::hints::is_on) {
            let is_direct = is_on && self.session.options.direct;
            self.settings.is_direct.store(is_direct, Ordering::Relaxed);
        }
        self.set_ahead(&kept);
        if let Some(is_on) = kept.get("profile").and_then(crate::hints::is_on) {
            self.recording.switch(is_on && self.session.options.profile);
        }
        // They may go another way from now on.
        self.direct.quick.clear();
        if let Some(strategy) = kept.get("strategy").and_then(Strategy::of) {
            self.settings
                .is_sieving
                .store(strategy == Strategy::Sieving, Ordering::Relaxed);
        }
    }

    /// The strategy that was asked for, if any was.
    pub(crate) fn forced(&self) -> Option<Strategy> {
        let hint = self
            .settings
            .hints
            .lock()
            .get("strategy")
            .and_then(Strategy::of);
        let general = Some(self.session.options.strategy);
        hint.or(general.filter(|strategy| *strategy != Strategy::default()))
    }

    /// Whether accesses may go directly to servers of this host.
    pub(crate) fn is_direct(&self) -> bool {
        self.settings.is_direct.load(Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn limits(&self) -> (u64, Option<u64>) {
        let rendezvous = self.settings.limits.1.load(Ordering::Relaxed);
        (
            self.settings.limits.0.load(Ordering::Relaxed),
            rendezvous.checked_sub(1),
        )
    }

    pub(crate) fn known_size(&self) -> SizeIs {
        self.size.lock().clone()
    }

    /// Takes what the owner says.
    pub(crate) fn heard_size(&self, heard: SizeIs) -> SizeIs {
        let mut known = self.size.lock();
        if heard.epoch > known.epoch || (heard.epoch == known.epoch && heard.size > known.size) {
            *known = heard;
        }
        known.clone()
    }

    /// A write of this epoch has ended here, and the owner knows.
    pub(crate) fn grown(&self, epoch: u64, end: u64) {
        let mut known = self.size.lock();
        if known.epoch == epoch {
            known.size = known.size.max(end);
        }
    }

    /// Asks the owner for the size.
    pub(crate) fn ask_size(&self, lane: &mut Lane) -> Result<SizeIs> {
        let heard = self.ask_owner(lane, &self.whole, |view| Size { view })?;
        Ok(self.heard_size(heard))
    }

    /// Tells the owner where a write has ended; false if the file was cut off meanwhile.
    pub(crate) fn grow(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        epoch: u64,
        end: u64,
    ) -> Result<bool> {
        self.tell_size(lane, seen, |view| Grow { view, epoch, end })
    }

    /// Tells the owner something about the size; false if the file was cut off meanwhile.
    pub(crate) fn tell_size<R: Request<Answer = SizeIs>>(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        make: impl Fn(u64) -> R,
    ) -> Result<bool> {
        let mut patience = Patience::new(&self.session.options);
        loop {
            let owner = self.owner();
            match self.ask_once(lane, seen, owner, &make) {
                Ok(heard) => {
                    self.heard_size(heard);
                    return Ok(true);
                }
                Err(trouble) => {
                    let is_cut = matches!(&trouble, Trouble::Refused(Status::StaleEpoch, _));
                    self.repair(lane, seen, owner, trouble, &mut patience)?;
                    if is_cut {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Makes sure that the lane is connected to a server and that it knows the view.
    pub(crate) fn ready(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        place: Place,
    ) -> std::result::Result<usize, Trouble> {
        let index = self.session.server_pipe(lane, place)?;
        if !seen.is_known_at(place.server) {
            let capability = self.capability();
            seen.register(&self.session, lane.pipe(index), self.file, capability)?;
            if let Some(settings) = self.settings_for(seen.number) {
                self.session.count_message();
                let number = self.session.number();
                match lane.pipe(index).ask(number, &settings) {
                    // A server that does not know how to read ahead serves all the same.
                    Ok(()) | Err(Trouble::Refused(..)) => {}
                    Err(trouble) => return Err(trouble),
                }
            }
        }
        Ok(index)
    }

    /// Asks a server about the file, once.
    pub(crate) fn ask_once<R: Request>(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        place: Place,
        make: impl FnOnce(u64) -> R,
    ) -> std::result::Result<R::Answer, Trouble> {
        let index = self.ready(lane, seen, place)?;
        self.session.count_message();
        lane.pipe(index)
            .ask(self.session.number(), &make(seen.number))
    }

    /// Asks the owner, and again where that helps. Only for what may be asked twice.
    pub(crate) fn ask_owner<R: Request>(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        make: impl Fn(u64) -> R,
    ) -> Result<R::Answer> {
        let mut patience = Patience::new(&self.session.options);
        loop {
            let owner = self.owner();
            match self.ask_once(lane, seen, owner, &make) {
                Ok(answer) => return Ok(answer),
                Err(trouble) => self.repair(lane, seen, owner, trouble, &mut patience)?,
            }
        }
    }

    /// Asks every server of the file (and the owner), all at once.
    pub(crate) fn ask_all<R: Request>(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        make: impl Fn(u64) -> R,
        mut take: impl FnMut(u64, R::Answer),
    ) -> Result<()> {
        let mut patience = Patience::new(&self.session.options);
        let mut left = self.places();
        while !left.is_empty() {
            let mut asked: Vec<(Place, std::result::Result<u64, Trouble>)> = Vec::new();
            for place in left.drain(..) {
                let sent = self.ready(lane, seen, place).and_then(|index| {
                    let number = self.session.number();
                    self.session.count_message();
                    lane.pipe(index)
                        .put(number, &make(seen.number))
                        .map(|()| number)
                });
                asked.push((place, sent));
            }
            let mut troubles = Vec::new();
            for (place, sent) in asked {
                let answer = sent.and_then(|number| match lane.find(place.server) {
                    Some(index) => lane.pipe(index).answer::<R>(number),
                    None => Err(Trouble::Broken("the connection failed".into())),
                });
                match answer {
                    Ok(answer) => take(place.server, answer),
                    Err(trouble) => troubles.push((place, trouble)),
                }
            }
            let before = self.state();
            for (place, trouble) in troubles {
                self.repair(lane, seen, place, trouble, &mut patience)?;
                left.push(place);
            }
            if !left.is_empty() && !Arc::ptr_eq(&before, &self.state()) {
                left = self.places();
            }
        }
        Ok(())
    }

    /// The servers of the file, the owner among them.
    pub(crate) fn places(&self) -> Vec<Place> {
        let state = self.state();
        let mut places = self.whole.plan(&state).places.clone();
        if !places.iter().any(|p| p.server == state.owner.server) {
            places.push(state.owner);
        }
        places
    }

    /// Whether an access goes in one message: one server, short enough, and nothing to be told to
    /// the owner after it.
    pub(crate) fn is_one_message(
        &self,
        seen: &HandleView,
        lo: u64,
        len: u64,
        is_write: bool,
    ) -> bool {
        let plan = seen.plan(&self.state());
        let ends = (
            seen.view.bytes().select(lo),
            seen.view.bytes().select(lo + len - 1),
        );
        let (Some(first), Some(last)) = ends else {
            return false;
        };
        let mut only = None;
        let mut is_one = true;
        plan.parts((first..last + 1).into(), &mut 0, |slot, _| {
            is_one &= slot.is_some() && (only.is_none() || only == slot);
            only = slot;
        });
        let must_grow = is_write && last >= self.known_size().size;
        let at_owner = only.is_some_and(|s| plan.places[s].server == plan.state.owner.server);
        let hint = self.limits().0;
        let most = match hint {
            0 => self.session.message_bytes(),
            hint => hint.min(self.session.message_bytes()),
        };
        is_one && len <= most && (!must_grow || (at_owner && self.grows_at_once()))
    }

    /// Does what makes a repetition worth trying, or says why nothing does.
    pub(crate) fn repair(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        place: Place,
        trouble: Trouble,
        patience: &mut Patience,
    ) -> Result<()> {
        let server = place.server;
        if !matches!(trouble, Trouble::Refused(..) | Trouble::Final(_)) {
            lane.drop_pipe(server);
        }
        let can_repeat = match &trouble {
            Trouble::Broken(_) if self.session.has_lost(place) => {
                let server = ServerId(server);
                return Err(Error::Lost { server });
            }
            Trouble::Broken(_) => {
                let can = patience.away(&self.session.outages, Some(server));
                self.session.forget_member(server);
                can
            }
            Trouble::Refused(status, refusal) => match status {
                Status::Busy | Status::ShuttingDown => patience.busy(),
                Status::Damaged => patience.repaired(),
                // A server behind the gateway is away, and may come back like any other.
                Status::Unreachable if self.gateway.is_some() => patience.broken(),
                Status::UnknownView => {
                    seen.forget(server);
                    patience.repaired()
                }
                Status::BadCapability | Status::ExpiredCapability if patience.renewed(server) => {
                    self.renew(lane)?;
                    seen.forget(server);
                    true
                }
                // A file that moves has a new state with every round; what was done is kept.
                Status::StaleLayout => {
                    self.heard_state(lane, &refusal.detail)? || patience.repaired()
                }
                Status::StaleEpoch => {
                    let before = self.known_size().epoch;
                    if let Ok(heard) = decode::<SizeIs>(&refusal.detail.0) {
                        self.heard_size(heard);
                    }
                    if self.known_size().epoch == before {
                        self.ask_size(lane)?;
                    }
                    patience.repaired()
                }
                Status::WrongIncarnation => {
                    lane.drop_pipe(server);
                    self.session.forget_member(server);
                    self.fetch_state(lane)?;
                    // A place that is gone for good is told when the connection is made.
                    patience.broken()
                }
                Status::BadHandle if patience.renewed(server) => {
                    self.session.refresh_handles(lane)?;
                    true
                }
                _ => false,
            },
            _ => false,
        };
        if can_repeat {
            tracing::debug!(file = self.file.0, server, ?trouble, "request repeated");
            return Ok(());
        }
        self.session.heard(&trouble);
        Err(trouble.into_error(Some(ServerId(server)), &self.session.address(server)))
    }

    /// Takes the layout state that came with a refusal, or asks for it; whether it is newer.
    fn heard_state(&self, lane: &mut Lane, detail: &Bytes) -> Result<bool> {
        let mut r = Reader::new(&detail.0);
        let read = LayoutState::read(&mut r).ok();
        if read.is_some_and(|state| self.have_state(state)) {
            return Ok(true);
        }
        let before = self.state().step;
        self.fetch_state(lane)?;
        Ok(self.state().step > before)
    }

    /// A server has a newer layout state, in which the bytes of an access are where they were. Whoever copies
    /// directly needs it for the next access, others when it is convenient. Nobody waits for it.
    pub(crate) fn learn_state(&self, lane: &mut Lane) {
        let count = self.newer.fetch_add(1, Ordering::Relaxed);
        if !self.is_direct() && !count.is_multiple_of(NEWER_PER_QUESTION) {
            return;
        }
        let handle = self.handle_id();
        let Ok(pipe) = self.session.manager_pipe(lane) else {
            return;
        };
        self.session.count_message();
        match pipe.ask(self.session.number(), &GetState { handle }) {
            Ok(state) => drop(self.have_state(state)),
            Err(Trouble::Refused(..)) => {}
            Err(_) => lane.manager = None,
        }
    }

    /// Asks the metadata manager for the layout state.
    pub(crate) fn fetch_state(&self, lane: &mut Lane) -> Result<()> {
        let state = self.session.manager_on(lane, || GetState {
            handle: self.handle_id(),
        })?;
        self.have_state(state);
        Ok(())
    }

    /// Takes note of the layout state; whether it is newer than the one known.
    pub(crate) fn have_state(&self, state: LayoutState) -> bool {
        let mut known = self.state.lock();
        let is_newer = state.step > known.step;
        // Of the same step it says where a server is that was started again.
        if is_newer || state.step == known.step && **known != state {
            *known = Arc::new(state);
        }
        is_newer
    }

    fn renew(&self, lane: &mut Lane) -> Result<()> {
        let capability = self.session.manager_on(lane, || RenewCapability {
            handle: self.handle_id(),
        })?;
        self.key.lock().capability = capability;
        Ok(())
    }

    /// Opens the file again at a metadata manager that was restarted.
    pub(crate) fn reopen(&self, pipe: &mut Pipe) -> std::result::Result<(), Trouble> {
        if self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let reopen = Reopen {
            capability: self.capability(),
            unique: self.unique,
        };
        self.session.count_message();
        match pipe.ask(self.session.number(), &reopen) {
            Ok(opened) => {
                *self.key.lock() = Key {
                    handle: opened.handle,
                    capability: opened.capability,
                };
                Ok(())
            }
            // This file is gone; others go on, and whoever uses it is told.
            Err(Trouble::Refused(..)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }

    /// Puts another view in place; the one before is dropped at its servers when nobody uses it.
    pub(crate) fn replace_view(&self, lane: &mut Lane, seen: Arc<HandleView>) {
        self.direct.quick.clear();
        self.turn_recording();
        self.recording.set_text("");
        let old = std::mem::replace(&mut *self.seen.lock(), seen);
        if !Arc::ptr_eq(&old, &self.whole) {
            self.retired.lock().push(old);
        }
        let mut unused = Vec::new();
        self.retired.lock().retain(|seen| {
            let is_used = Arc::strong_count(seen) > 1;
            if !is_used {
                unused.push(seen.clone());
            }
            is_used
        });
        for seen in unused {
            self.drop_view(lane, &seen);
        }
    }

    /// Lets servers forget a view; those that did with their verifiers. What they do not hear costs them a little
    /// memory until the end of the session.
    fn drop_view(&self, lane: &mut Lane, seen: &HandleView) -> Vec<(u64, Verifiers)> {
        let mut asked = Vec::new();
        for server in seen.take_known() {
            let Some(index) = lane.find(server) else {
                let place = Place {
                    server,
                    incarnation: 0,
                };
                if let Ok(index) = self.session.server_pipe(lane, place) {
                    asked.push((server, index));
                }
                continue;
            };
            asked.push((server, index));
        }
        let mut sent = Vec::new();
        for (server, index) in asked {
            let number = self.session.number();
            self.session.count_message();
            let request = DropView { view: seen.number };
            match lane.pipe(index).put(number, &request) {
                Ok(()) => sent.push((server, number)),
                Err(_) => sent.push((server, 0)),
            }
        }
        let mut heard = Vec::new();
        for (server, number) in sent {
            let answered = match lane.find(server) {
                Some(index) if number > 0 => lane.pipe(index).answer::<DropView>(number),
                _ => Err(Trouble::Late),
            };
            match answered {
                Ok(verifiers) => heard.push((server, verifiers)),
                Err(Trouble::Refused(..)) => {}
                Err(_) => lane.drop_pipe(server),
            }
        }
        heard
    }

    /// Closes it after its non-blocking operations; later calls do nothing.
    pub(crate) fn finish(&self) -> Result<()> {
        self.session.check()?;
        self.pending.wait();
        self.end()
    }

    fn end(&self) -> Result<()> {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let (file, handle) = (self.file.0, self.handle_id().0);
        tracing::debug!(path = self.path, file, handle, "file closed");
        // Accesses of other threads end before the file does.
        let _gate = self.gate.write();
        self.direct.quick.clear();
        *self.direct.maps.lock() = Arc::default();
        self.session.tell_drift();
        self.session.with_lane(|lane| {
            self.hand_over(lane);
            // The release compares, and forgets what was not synced.
            let is_synced = self.unsynced.is_empty();
            let released = self.release(lane);
            let closed = self.session.manager_on(lane, || Close {
                handle: self.handle_id(),
            });
            if self.session.is_dead() && is_synced {
                // The handle is closed already, and nothing that was written is in doubt.
                return Ok(());
            }
            match closed {
                // The manager was restarted, and knows neither the file nor the handle any more.
                Err(e) if e.status() == Status::BadHandle => {}
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            released
        })
    }

    /// Tells servers that this handle is done.
    fn release(&self, lane: &mut Lane) -> Result<()> {
        let seen = self.current();
        let owner = self.state().owner.server;
        let mut released = Ok(());
        if self.lease.lock().take().is_some() {
            released = self.ask_owner(lane, &seen, |view| LeaveAtomic {
                view,
                handle: self.handle_id(),
            });
        }
        if let Some(group) = self.leave_pointer() {
            let left = self.ask_owner(lane, &self.whole, |view| LeavePointer { view, group });
            released = released.and(left);
        }
        if self.rights.allow(Rights::WRITE)
            && (seen.is_known_at(owner) || self.whole.is_known_at(owner))
        {
            let known = match seen.is_known_at(owner) {
                true => &seen,
                false => &self.whole,
            };
            let told = self.ask_owner(lane, known, |view| Release { view });
            released = released.and(told);
        }
        let retired = std::mem::take(&mut *self.retired.lock());
        let mut heard = Vec::new();
        for seen in retired.iter().chain([&seen, &self.whole]) {
            heard.extend(self.drop_view(lane, seen));
        }
        released.and(self.compare_at_close(lane, &heard))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.session.is_ours() {
            // Whoever wants to hear of errors closes the file first. Nothing is under way: it would
            // hold the file.
            let _ = self.end();
        }
    }
}
