//! The first question about a file: what is durable about it, and what its servers say.
//!
//! If the file was made while this very start of the server owned it, and was never let go, then
//! everything that happened to it is known here and the durable size is the size. Otherwise there
//! was an owner before: the servers are asked for their ends and lease numbers. A truncate that is
//! pending is applied in both cases, before a client is told a size that depends on it.
//!
//! One thread loads; others who ask about the file wait for it.
//!
//! What ends it: a layout state that names another owner, however it comes to be known here (a move ends, the
//! metadata manager refuses what only the owner may ask, a file has been handed over for long, this server is about to
//! own the file once more). Whatever is known of a file belongs to one uninterrupted time as its owner.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use std::sync::Arc;
use std::time::{Duration, Instant};

use control::locks::{self, LockManager};
use control::pointers::SharedPointers;
use control::sizes::{self, SizeOwner};

use wire::message::cluster::{FileStateIs, PointerIs, TakeServerAnswer};
use wire::{ClientId, FileId, LayoutState, Reader, ServerId, Status};

use super::file::{OwnedFile, Part, Phase};
use super::work::Work;
use super::{Owner, Refused, refuse};

/// After so long a file that is handed over may be owned elsewhere without the manager having said so.
const HANDING_OVER: Duration = Duration::from_secs(2);

/// Ends the loading of a file even if the thread panics.
struct LoadGuard<'a> {
    owner: &'a Owner,
    file: &'a Arc<OwnedFile>,
}

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        if matches!(self.file.lock().phase, Phase::Loading) {
            let why = refuse::<()>(Status::Internal, "loading the file failed; try again");
            self.owner.drop_file(self.file, why.unwrap_err());
        }
    }
}

/// The servers of a file, with the starts of them that the layout names.
fn parts(layout: &LayoutState) -> BTreeMap<ServerId, Part> {
    let mut parts: BTreeMap<ServerId, Part> = BTreeMap::new();
    let places = layout.pieces.iter().flat_map(|p| p.places.iter().flatten());
    for place in places {
        let part = parts.entry(ServerId(place.server)).or_default();
        part.incarnations.insert(place.incarnation);
    }
    parts
}

impl Owner {
    /// A file by its number, loaded if need be.
    pub(super) fn file(&self, id: FileId) -> Result<Arc<OwnedFile>, Refused> {
        let mut is_new = false;
        let file = Arc::clone(self.files.lock().entry(id).or_insert_with(|| {
            is_new = true;
            Arc::new(OwnedFile::new(id))
        }));
        if is_new {
            let loading = LoadGuard {
                owner: self,
                file: &file,
            };
            let loaded = self.load(&file);
            if let Err(refused) = &loaded {
                self.drop_file(&file, refused.clone());
            }
            drop(loading);
            let work = loaded?;
            self.drive(&file, work);
            return Ok(file);
        }
        let state = file.wait_loaded();
        if let Phase::Over(refused) = &state.phase {
            return Err(refused.clone());
        }
        drop(state);
        Ok(file)
    }

    fn load(&self, file: &OwnedFile) -> Result<Vec<Work>, Refused> {
        let FileStateIs { layout, size, .. } = self.cluster.file_state(file.id)?;
        self.demand_owned(file.id, &layout)?;
        // A layout that was changed may have had another owner, whose leases the servers remember.
        let is_first = layout.step == 1;
        let is_known = is_first
            && layout.owner.incarnation == self.cluster.incarnation()
            && !self.let_go.lock().contains(&file.id);
        let told = self.take_inherited(file)?;
        let mut work = Vec::new();
        let mut state = file.lock();
        state.step = layout.step;
        state.servers = parts(&layout);
        let servers: Vec<ServerId> = state.servers.keys().copied().collect();
        let (sizes, size_effects);
        let mut lock_effects = Vec::new();
        if is_known {
            (sizes, size_effects) = SizeOwner::known(size, servers.iter().copied());
            state.locks = LockManager::new(servers);
        } else {
            (sizes, size_effects) = SizeOwner::restarted(size, servers.iter().copied());
            let era = locks::era(layout.step, self.cluster.incarnation());
            (state.locks, lock_effects) = LockManager::restarted(servers, era);
        }
        state.sizes = sizes;
        if let Some(told) = told {
            state.pointers = SharedPointers::inherited(&told);
            // Those who died on the way were told of to the owner before.
            let members: BTreeSet<ClientId> = state.pointers.members().collect();
            for client in members {
                match self.is_dead(client) {
                    true => state.pointers.died(client),
                    false => drop(state.clients.insert(client)),
                }
            }
        }
        for effect in size_effects {
            match effect {
                sizes::Effect::Apply { epoch, to, servers } => {
                    work.push(Work::Apply { epoch, to, servers });
                }
                sizes::Effect::AskEnds(servers) => work.push(Work::AskEnds(servers)),
                sizes::Effect::Finish { epoch } => {
                    state.unfinished = Some(epoch);
                    work.push(Work::Finish { epoch });
                }
                _ => {}
            }
        }
        for effect in lock_effects {
            match effect {
                locks::Effect::AskNumber(servers) => work.push(Work::AskNumber(servers)),
                locks::Effect::Tell { number, servers } => {
                    work.push(Work::Tell { number, servers });
                }
                _ => {}
            }
        }
        // Servers that are known to be dead or to have lost the bytes are not asked.
        state.members_are(&self.members.lock(), &self.counters, &mut work);
        for item in &mut work {
            for (server, part) in &state.servers {
                if part.is_gone {
                    item.forget(*server);
                }
            }
        }
        state.phase = Phase::Ready;
        file.changed.notify_all();
        Ok(work)
    }

    /// What the owner before has told for this load. One that began before the file was handed over once more, and goes on late, must
    /// not take it from the one that comes: it has been taken out of the table already.
    fn take_inherited(&self, file: &OwnedFile) -> Result<Option<Vec<PointerIs>>, Refused> {
        let mut inherited = self.inherited.lock();
        let is_there = |found: &Arc<OwnedFile>| std::ptr::eq(&**found, file);
        if !self.files.lock().get(&file.id).is_some_and(is_there) {
            return refuse(
                Status::Busy,
                "the file was handed over while it was looked at; repeat later",
            );
        }
        Ok(inherited.remove(&file.id))
    }

    fn demand_owned(&self, file: FileId, layout: &LayoutState) -> Result<(), Refused> {
        let here = self.cluster.own_server();
        if layout.owner.server == here.0 {
            return Ok(());
        }
        // A client that asks here knows a layout from before a move; the answer has the present one.
        let text = format!(
            "{file} is owned by server {}, not by {here}; ask there",
            layout.owner.server
        );
        Err(Refused::with_detail(Status::StaleLayout, text, layout))
    }

    /// Takes a file out of the table and ends what waits for it.
    fn drop_file(&self, file: &Arc<OwnedFile>, refused: Refused) {
        let mut files = self.files.lock();
        if files.get(&file.id).is_some_and(|f| Arc::ptr_eq(f, file)) {
            files.remove(&file.id);
        }
        drop(files);
        file.end(refused);
    }

    /// A file is no longer: its bytes are removed.
    pub fn removed(&self, file: FileId) {
        self.inherited.lock().remove(&file);
        let found = self.files.lock().get(&file).cloned();
        if let Some(found) = found {
            let refused = refuse::<()>(Status::NotFound, format!("{file} was removed"));
            self.drop_file(&found, refused.unwrap_err());
        }
    }

    /// The file is owned elsewhere from now on; all who wait here are told.
    pub(super) fn let_go(&self, file: FileId, refused: Refused) {
        self.let_go.lock().insert(file);
        let found = self.files.lock().get(&file).cloned();
        if let Some(found) = found {
            self.drop_file(&found, refused);
        }
    }

    /// Does the same with what was found here before the layout was looked at: the file may be this server's again since.
    fn let_go_of(&self, found: &Arc<OwnedFile>, refused: Refused) {
        self.let_go.lock().insert(found.id);
        self.drop_file(found, refused);
    }

    /// Heeds a refusal of the metadata manager that says who owns the file now.
    pub(super) fn heed<T>(&self, file: FileId, answer: &Result<T, Refused>) {
        if let Err(refused) = answer
            && refused.status == Status::StaleLayout
            && let Ok(layout) = LayoutState::read(&mut Reader::new(&refused.refusal.detail.0))
        {
            self.layout_is(file, &layout);
        }
    }

    /// A server has got a part of a file, or `start` of it follows an earlier one that had: it is taken among those of
    /// the file before this returns, so whatever changes from now on is told to it. What changed before is in the
    /// answer. A file that is loaded later is loaded with a server that is new to it; what an earlier start was told
    /// has to be known first.
    pub fn take_server(
        &self,
        file: FileId,
        server: ServerId,
        start: Option<u64>,
    ) -> Result<TakeServerAnswer, Refused> {
        let nothing = TakeServerAnswer {
            number: 0,
            fenced: Vec::new(),
        };
        if start.is_none() && !self.files.lock().contains_key(&file) {
            return Ok(nothing);
        }
        let FileStateIs { layout, .. } = self.cluster.file_state(file)?;
        self.layout_is(file, &layout);
        self.demand_owned(file, &layout)?;
        let found = self.file(file)?;
        let mut work = Vec::new();
        let told = {
            let mut state = found.lock();
            if let Some(start) = start {
                state.started_again(server, start, &self.counters, &mut work);
            }
            state.locks.told()
        };
        self.drive(&found, work);
        match told.or_else(|| found.lock().locks.told()) {
            Some((number, fenced)) => Ok(TakeServerAnswer { number, fenced }),
            None => refuse(
                Status::Busy,
                "the lease numbers of the file are being found out; try again",
            ),
        }
    }

    /// Files that are being handed over, and since when.
    pub(crate) fn handing_over(&self) -> Vec<(FileId, Instant)> {
        let files = self.files().into_iter();
        let since = |file: Arc<OwnedFile>| Some((file.id, file.lock().handing_over?));
        files.filter_map(since).collect()
    }

    /// The manager that had a file handed over is not there any more. If it is still owned here it goes on, unless that began
    /// once more. If the next manager does not say who owns it, it is asked again at the next look.
    pub(crate) fn resume(&self, file: FileId, since: Instant) -> Result<(), Refused> {
        let found = self.files.lock().get(&file).cloned();
        if let Some(found) = &found {
            found.lock().owed_resume = Some(since);
        }
        let FileStateIs { layout, .. } = match self.cluster.file_state(file) {
            Err(Refused {
                status: Status::NotFound,
                ..
            }) => {
                self.removed(file);
                return Ok(());
            }
            told => told?,
        };
        if let Err(refused) = self.demand_owned(file, &layout) {
            if let Some(found) = &found {
                self.let_go_of(found, refused);
            }
            return Ok(());
        }
        if let Some(found) = found {
            let mut state = found.lock();
            state.owed_resume = None;
            if state.handing_over == Some(since) {
                state.handing_over = None;
                state.has_told_pointers = false;
            }
        }
        Ok(())
    }

    /// Looks whether a file that has been handed over for long is owned elsewhere by now, and the manager could not say so; and
    /// whether one whose manager is gone goes on.
    pub(super) fn review_handing_over(&self, file: &Arc<OwnedFile>) {
        let (since, owed_resume) = {
            let state = file.lock();
            (state.handing_over, state.owed_resume)
        };
        if let Some(since) = owed_resume {
            // What fails is tried again the next time.
            let _ = self.resume(file.id, since);
            return;
        }
        if since.is_none_or(|since| since.elapsed() < HANDING_OVER) {
            return;
        }
        if let Ok(told) = self.cluster.file_state(file.id)
            && let Err(refused) = self.demand_owned(file.id, &told.layout)
        {
            self.let_go_of(file, refused);
        }
    }

    /// The layout of a file has changed, after a re-layout. Locks, pointers and sizes go on; if
    /// another server owns the file now, everything ends here.
    pub fn layout_is(&self, file: FileId, layout: &LayoutState) {
        let Some(found) = self.files.lock().get(&file).cloned() else {
            return;
        };
        {
            // What it loads may be older.
            let state = found.wait_loaded();
            if layout.step < state.step {
                return;
            }
        }
        if let Err(refused) = self.demand_owned(file, layout) {
            self.let_go_of(&found, refused);
            return;
        }
        let mut work = Vec::new();
        {
            let mut state = found.lock();
            if !matches!(state.phase, Phase::Ready) || layout.step < state.step {
                return;
            }
            state.step = layout.step;
            state.handing_over = None;
            state.has_told_pointers = false;
            let now = parts(layout);
            let gone: Vec<ServerId> = state.servers.keys().copied().collect();
            for server in gone.into_iter().filter(|s| !now.contains_key(s)) {
                state.server_lost(server, &self.counters, &mut work);
            }
            for (server, part) in now {
                match state.servers.entry(server) {
                    Entry::Occupied(mut old) => old.get_mut().incarnations = part.incarnations,
                    Entry::Vacant(place) => {
                        place.insert(part);
                        state.size_event(sizes::Event::ServerAdded(server), &mut work);
                        let added = locks::Event::ServerAdded(server);
                        state.lock_event(added, &self.counters, &mut work);
                    }
                }
            }
            state.members_are(&self.members.lock(), &self.counters, &mut work);
        }
        self.drive(&found, work);
    }
}
