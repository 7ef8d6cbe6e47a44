//! An open file as all its threads share it: its parts by name, and how to repair what a server complains about.
//!
//! ```text
//!  identity   path, file, rights; what the metadata manager knows it by     settings   hints, ready for use
//!  known      layout state and size, as last heard                          direct     the direct way's own
//!  views      the one in use, the whole file                                unsynced   where bytes are that may be lost
//!  life       accesses under way, closing                                   ...
//! ```
//!
//! Invariants
//! - No lock is held while a server or the metadata manager is asked, except the gate, which is made
//!   for that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use advise::mapping::Strategy as Mapping;
use layout::{FileSpan, View};
use parking_lot::Mutex;
use wire::message::catalogue::{Close, GetState, OpenAnswer, RenewCapability};
use wire::message::file::*;
use wire::message::{Bytes, Request, decode};
use wire::{HandleId, LayoutState, Place, Reader, Rights, ServerId, Status};

use crate::access::ahead::Ahead;
use crate::access::behind::Behind;
use crate::access::direct::maps::{Maps, Misses};
use crate::access::direct::quick::Quick;
use crate::access::gateway::Gateway;
use crate::access::memory::Direction;
use crate::access::phases::Phases;
use crate::collective::Together;
use crate::error::{Error, Result, Trouble};
use crate::file::identity::Identity;
use crate::file::known::KnownState;
use crate::file::life::Life;
use crate::file::options::OpenOptions;
use crate::file::pointers::Pointers;
use crate::file::settings::Settings;
use crate::file::subfile::Subfile;
use crate::file::unsynced::Unsynced;
use crate::file::view::{HandleView, Views};
use crate::hints::Hints;
use crate::hints::handle_hints::HandleHints;
use crate::profile::recording::Recording;
use crate::session::Session;
use crate::session::lane::Lane;
use crate::transport::patience::Patience;
use crate::transport::pipe::Pipe;

/// What an atomic handle was given by the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) number: u64,
    pub(crate) use_locks: bool,
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
    pub(crate) identity: Identity,
    pub(crate) known: KnownState,
    pub(crate) views: Views,
    pub(crate) life: Life,
    /// In atomic mode.
    pub(crate) lease: Mutex<Option<Lease>>,
    pub(crate) pointers: Pointers,
    pub(crate) settings: Settings,
    pub(crate) direct: DirectWay,
    /// How the last access went.
    pub(crate) phases: Mutex<Phases>,
    /// What was read before it was asked for.
    pub(crate) ahead: Ahead,
    /// What was written and not sent.
    pub(crate) behind: Behind,
    /// How the handle was used.
    pub(crate) recording: Recording,
    /// What the team that opened it has agreed on, and what collective accesses came to.
    pub(crate) together: Together,
    /// For a client that talks through one server.
    pub(crate) gateway: Option<Gateway>,
    /// Where bytes are that this handle has written and not synced.
    pub(crate) unsynced: Unsynced,
    /// Which subfile it is, if it was opened as one; hardly any is.
    pub(crate) subfile: OnceLock<Box<Subfile>>,
    /// Bytes of the file for which its servers have taken space for this handle.
    pub(crate) space: AtomicU64,
}

impl Handle {
    pub(crate) fn new(
        session: &Arc<Session>,
        path: String,
        options: &OpenOptions,
        opened: OpenAnswer,
    ) -> Result<Arc<Handle>> {
        let whole = HandleView::new(session, &View::whole_file());
        let heard = HandleHints::at_open(session, &path, &opened.hints);
        let group = options
            .pointer_group
            .or_else(|| options.hints.number("shared_pointer_group"));
        let handle = Arc::new(Handle {
            session: session.clone(),
            identity: Identity::new(path, options, &opened)?,
            known: KnownState::new(opened),
            views: Views::new(whole),
            life: Life::default(),
            lease: Mutex::default(),
            pointers: Pointers::new(group),
            settings: Settings::new(&session.options, heard),
            direct: DirectWay::default(),
            phases: Mutex::default(),
            ahead: Ahead::default(),
            behind: Behind::default(),
            recording: Recording::new(session.options.profile, session.options.rank),
            together: Together::default(),
            gateway: match session.options.mapping {
                Mapping::Request => None,
                mapping => Some(Gateway::new(mapping)),
            },
            unsynced: Unsynced::default(),
            subfile: OnceLock::new(),
            space: AtomicU64::default(),
        });
        handle.take_hints(&options.hints);
        let mut files = session.open_files.handles.lock();
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&handle));
        Ok(handle)
    }

    /// Refuses what a closed handle, one that the manager did not open again, or a forked child asks for.
    pub(crate) fn check(&self) -> Result<()> {
        self.session.check()?;
        if self.life.is_closed() {
            return Err(Error::Closed);
        }
        self.identity.check()
    }

    /// Refuses an access of a handle that is not good any more, of a forked child, or without the right.
    pub(crate) fn check_right(&self, right: Rights) -> Result<()> {
        self.check()?;
        self.identity.check_right(right)
    }

    pub(crate) fn handle_id(&self) -> HandleId {
        self.identity.handle()
    }

    /// The server that owns the file, whichever start of it: a new one asks the others what it has to
    /// know, also when its own bytes are lost.
    pub(crate) fn owner(&self) -> Place {
        Place {
            incarnation: 0,
            ..self.known.state().owner
        }
    }

    pub(crate) fn take_hints(&self, hints: &Hints) {
        let kept = self.settings.take(hints, &self.session.options);
        self.set_ahead(&kept);
        self.set_behind(&kept);
        if let Some(is_on) = kept.get("profile").and_then(crate::hints::is_on) {
            self.recording.switch(is_on && self.session.options.profile);
        }
        // They may go another way from now on.
        self.direct.quick.clear();
    }

    /// Asks the owner for the size.
    pub(crate) fn ask_size(&self, lane: &mut Lane) -> Result<SizeIs> {
        let heard = self.ask_owner(lane, &self.views.whole, |view| Size { view })?;
        Ok(self.known.heard_size(heard))
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
        let mut patience = self.session.patience();
        loop {
            let owner = self.owner();
            match self.ask_once(lane, seen, owner, &make) {
                Ok(heard) => {
                    self.known.heard_size(heard);
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
            let capability = self.identity.capability();
            seen.register(
                &self.session,
                lane.pipe(index),
                self.identity.file,
                capability,
            )?;
            let size = self.space.load(Ordering::Relaxed);
            if size > 0 && seen.number == self.views.whole.number {
                // It was started again, or has become a server of the file.
                let request = KeepAhead {
                    view: seen.number,
                    epoch: self.known.size().epoch,
                    size,
                };
                self.offer(lane, index, &request)?;
            }
            if let Some(settings) = self.settings_for(seen.number) {
                // A server that does not know how to read ahead serves all the same.
                self.offer(lane, index, &settings)?;
            }
        }
        Ok(index)
    }

    /// Asks a server for what it may refuse.
    fn offer<R: Request<Answer = ()>>(
        &self,
        lane: &mut Lane,
        index: usize,
        request: &R,
    ) -> std::result::Result<(), Trouble> {
        self.session.count_message();
        match lane.pipe(index).ask(self.session.number(), request) {
            Ok(()) | Err(Trouble::Refused(..)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
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
        let mut patience = self.session.patience();
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
        let mut patience = self.session.patience();
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
            let before = self.known.state();
            for (place, trouble) in troubles {
                self.repair(lane, seen, place, trouble, &mut patience)?;
                left.push(place);
            }
            if !left.is_empty() && !Arc::ptr_eq(&before, &self.known.state()) {
                left = self.places();
            }
        }
        Ok(())
    }

    /// The servers of the file, the owner among them.
    pub(crate) fn places(&self) -> Vec<Place> {
        let state = self.known.state();
        let mut places = self.views.whole.plan(&state).places.clone();
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
        direction: Direction,
    ) -> bool {
        let most = match self.settings.limits().0 {
            0 => self.session.message_bytes(),
            hint => hint.min(self.session.message_bytes()),
        };
        if len > most {
            return false;
        }
        let plan = seen.plan(&self.known.state());
        let ends = (
            seen.view.bytes().select(lo),
            seen.view.bytes().select(lo + len - 1),
        );
        let (Some(first), Some(last)) = ends else {
            return false;
        };
        let mut only = None;
        let mut is_one = true;
        plan.parts(FileSpan::from_raw(first..last + 1), &mut 0, |slot, _| {
            is_one &= slot.is_some() && (only.is_none() || only == slot);
            only = slot;
        });
        let must_grow = direction.is_write() && last >= self.known.size().size;
        let at_owner = only.is_some_and(|s| plan.places[s].server == plan.state.owner.server);
        is_one && (!must_grow || (at_owner && self.grows_at_once()))
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
                    let before = self.known.size().epoch;
                    if let Ok(heard) = decode::<SizeIs>(&refusal.detail.0) {
                        self.known.heard_size(heard);
                    }
                    if self.known.size().epoch == before {
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
            tracing::debug!(
                file = self.identity.file.0,
                server,
                ?trouble,
                "request repeated"
            );
            return Ok(());
        }
        self.session.heard(&trouble);
        Err(trouble.into_error(Some(ServerId(server)), &self.session.address(server)))
    }

    /// Takes the layout state that came with a refusal, or asks for it; whether it is newer.
    fn heard_state(&self, lane: &mut Lane, detail: &Bytes) -> Result<bool> {
        let mut r = Reader::new(&detail.0);
        let read = LayoutState::read(&mut r).ok();
        if read.is_some_and(|state| self.known.take_state(state)) {
            return Ok(true);
        }
        let before = self.known.state().step;
        self.fetch_state(lane)?;
        Ok(self.known.state().step > before)
    }

    /// A server has a newer layout state, in which the bytes of an access are where they were. A client that copies
    /// directly needs it for the next access, others when it is convenient. Nothing waits for it.
    pub(crate) fn learn_state(&self, lane: &mut Lane) {
        let is_time = self.known.is_time_to_ask();
        if !self.settings.is_direct() && !is_time {
            return;
        }
        let handle = self.handle_id();
        let Ok(pipe) = self.session.manager_pipe(lane) else {
            return;
        };
        self.session.count_message();
        match pipe.ask(self.session.number(), &GetState { handle }) {
            Ok(state) => drop(self.known.take_state(state)),
            Err(Trouble::Refused(..)) => {}
            Err(_) => lane.manager = None,
        }
    }

    /// Asks the metadata manager for the layout state.
    pub(crate) fn fetch_state(&self, lane: &mut Lane) -> Result<()> {
        let state = self.session.manager_on(lane, || GetState {
            handle: self.handle_id(),
        })?;
        self.known.take_state(state);
        Ok(())
    }

    fn renew(&self, lane: &mut Lane) -> Result<()> {
        let capability = self.session.manager_on(lane, || RenewCapability {
            handle: self.handle_id(),
        })?;
        self.identity.renew(capability);
        Ok(())
    }

    /// Opens the file again at a metadata manager that was restarted.
    pub(crate) fn reopen(&self, pipe: &mut Pipe) -> std::result::Result<(), Trouble> {
        if self.life.is_closed() {
            return Ok(());
        }
        let reopen = self.identity.reopening();
        self.session.count_message();
        let trouble = match pipe.ask(self.session.number(), &reopen) {
            Ok(opened) => {
                self.identity.reopened(&opened);
                return Ok(());
            }
            Err(trouble) => trouble,
        };
        match &trouble {
            Trouble::Refused(Status::Busy | Status::ShuttingDown, _) => return Err(trouble),
            Trouble::Refused(..) => {}
            _ => return Err(trouble),
        }
        // Other files go on; the next use of this one is told, and its close.
        self.session.heard(&trouble);
        let error = trouble.into_error(None, &pipe.address);
        tracing::warn!(path = self.identity.path, %error, "the file was not opened again");
        self.identity.refuse(error);
        self.direct.quick.clear();
        Ok(())
    }

    /// Puts another view in place; the one before is dropped at its servers when nobody uses it.
    pub(crate) fn replace_view(&self, lane: &mut Lane, seen: Arc<HandleView>) {
        self.direct.quick.clear();
        self.turn_recording();
        self.recording.set_text("");
        let unused = self.views.replace(seen);
        for seen in unused {
            self.drop_view(lane, &seen, &Maps::default());
        }
    }

    /// Makes a view that is used beside the current one; servers forget those that nobody uses any more.
    pub(crate) fn view_beside(&self, view: &View) -> Result<Arc<HandleView>> {
        let seen = HandleView::new(&self.session, view);
        let unused = self.views.add_beside(seen.clone());
        if unused.iter().all(|seen| seen.is_unknown()) {
            return Ok(seen);
        }
        self.session.with_lane(|lane| {
            for unused in unused {
                self.drop_view(lane, &unused, &Maps::default());
            }
            Ok(seen)
        })
    }

    /// Lets servers forget a view, and maps that are needed no more; those that did with their verifiers. What they do not
    /// hear costs them a little memory until the end of the session.
    fn drop_view(&self, lane: &mut Lane, seen: &HandleView, maps: &Maps) -> Vec<(u64, Verifiers)> {
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
            let request = DropView {
                view: seen.number,
                maps: maps.server(server).map_or(0, |map| map.number),
            };
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
        self.life.operations.wait();
        self.end()
    }

    fn end(&self) -> Result<()> {
        if self.life.close() {
            return Ok(());
        }
        let (file, handle) = (self.identity.file.0, self.handle_id().0);
        tracing::debug!(path = self.identity.path, file, handle, "file closed");
        // Accesses of other threads end before the file does.
        let _gate = self.life.gate.write();
        self.send_own_behind();
        let sent = self.take_behind_failure();
        self.direct.quick.clear();
        let maps = std::mem::take(&mut *self.direct.maps.lock());
        // Another handle of the file may use what was mapped for this one. One that is opened from now on has maps of its own
        // with later numbers.
        let maps = match self.session.open_files.has_another(self) {
            true => Arc::default(),
            false => maps,
        };
        self.session.tell_drift();
        self.session.with_lane(|lane| {
            self.hand_over(lane);
            // The release compares, and forgets what was not synced.
            let is_synced = self.unsynced.is_empty();
            let (released, is_counted) = self.release(lane, &maps);
            let is_counted = is_counted && sent.is_ok();
            let closed = self.session.manager_on(lane, || Close {
                handle: self.handle_id(),
                is_counted,
            });
            if self.session.is_dead() && is_synced {
                // The handle is closed already, and nothing that was written is in doubt, unless it was not sent.
                return sent;
            }
            let closed = match closed {
                // The manager was restarted, and may have said why it does not know the handle.
                Err(e) if e.status() == Status::BadHandle => self.identity.check(),
                other => other.map(drop),
            };
            loss_first(sent.and(closed), released)
        })
    }

    /// Tells servers that this handle is done; whether the catalogue has counted everything that it wrote.
    fn release(&self, lane: &mut Lane, maps: &Maps) -> (Result<()>, bool) {
        let seen = self.views.current();
        let owner = self.known.state().owner.server;
        let mut released = Ok(());
        if self.lease.lock().take().is_some() {
            released = self.ask_owner(lane, &seen, |view| LeaveAtomic {
                view,
                handle: self.handle_id(),
            });
        }
        if let Some(group) = self.leave_pointer() {
            let left = self.ask_owner(lane, &self.views.whole, |view| LeavePointer { view, group });
            released = released.and(left);
        }
        let retired = self.views.take_retired();
        // A handle that no server has met has written nothing.
        let mut is_counted = self.unsynced.last_note() == 0
            && self.gateway.is_none()
            && retired
                .iter()
                .chain([&seen, &self.views.whole])
                .all(|seen| seen.is_unknown());
        if self.identity.rights.allow(Rights::WRITE)
            && (seen.is_known_at(owner) || self.views.whole.is_known_at(owner))
        {
            let known = match seen.is_known_at(owner) {
                true => &seen,
                false => &self.views.whole,
            };
            let told = self.ask_owner(lane, known, |view| Release { view });
            is_counted = told.is_ok();
            released = released.and(told);
        }
        let mut heard = Vec::new();
        for seen in retired.iter().chain([&seen, &self.views.whole]) {
            heard.extend(self.drop_view(lane, seen, maps));
        }
        (
            loss_first(released, self.compare_at_close(lane, &heard)),
            is_counted,
        )
    }
}

/// Both results of a close: a loss of bytes before any other failure, else the first one.
fn loss_first(first: Result<()>, second: Result<()>) -> Result<()> {
    match second {
        Err(Error::LostWrites { .. }) => second,
        _ => first.and(second),
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.session.is_ours() {
            // A program that wants to hear of errors closes the file first. Nothing is under way: it would
            // hold the file.
            let _ = self.end();
        }
    }
}
