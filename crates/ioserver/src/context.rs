//! What all parts of a server share: who it is, its store, its files, and the way to others.
//!
//! [`Others`] is the same as the owner of files sees it. What servers ask of each other about a file
//! (cut, how far, fence, tell) is answered by plain functions here, so a server asks itself without a
//! socket.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use control::capability::ClusterKey;
use wire::ask::AskError;
use wire::message::Request;
use wire::message::catalogue::{Member, MemberState};
use wire::message::cluster::{
    ApplyTruncate, AskEnd, AskNumber, BeginTruncate, EndIs, Fence, FileState, FileStateIs,
    FinishTruncate, Removal, ReportSize, TakeServer, Tell,
};
use wire::message::file::Verifiers;
use wire::{FileId, LayoutState, ServerId, SizeState, Status, Time};

use crate::ahead::Ahead;
use crate::applied::Applied;
use crate::buffers::Buffers;
use crate::direct::Direct;
use crate::directed::Operations;
use crate::files::{Entering, FileEntry, Files, Known, Planned, Running, lock};
use crate::gateway::{Foes, Stages};
use crate::limits::Limits;
use crate::links::{Links, Peers, no_member};
use crate::moving::Lenders;
use crate::owner::{Cluster, Owner};
use crate::refused::Refused;
use crate::seen_uses::SeenUses;
use crate::sessions::Sessions;
use crate::statistics::{Statistics, add};
use crate::stored::Stored;
use crate::verifier;

/// How long a write waits for room before it is refused, and a question for its member.
const ROOM: Duration = Duration::from_secs(1);

/// When the next report to the metadata manager is due.
#[derive(Default)]
struct Reports {
    is_wanted: bool,
    is_stopping: bool,
    done: u64,
}

/// Everything that the parts of a server share.
pub(crate) struct Context {
    pub(crate) key: ClusterKey,
    pub(crate) server: ServerId,
    pub(crate) incarnation: AtomicU64,
    pub(crate) kept_since: AtomicU64,
    pub(crate) stored: Stored,
    pub(crate) files: Files,
    pub(crate) applied: Applied,
    pub(crate) sessions: Sessions,
    pub(crate) buffers: Buffers,
    pub(crate) ahead: Ahead,
    pub(crate) statistics: Statistics,
    /// What was seen of clients, for the profiles of files.
    pub(crate) seen_uses: Arc<SeenUses>,
    /// Collective accesses that are directed here.
    pub(crate) operations: Operations,
    pub(crate) manager: Links,
    pub(crate) peers: Peers,
    pub(crate) foes: Foes,
    pub(crate) lenders: Lenders,
    pub(crate) stages: Stages,
    pub(crate) members: Mutex<Arc<Vec<Member>>>,
    /// The owner of files here, which holds this.
    pub(crate) owner: OnceLock<Weak<Owner>>,
    pub(crate) rendezvous_bytes: u64,
    pub(crate) message_bytes: u64,
    pub(crate) limits: Limits,
    pub(crate) write_through: bool,
    /// What bytes live and die with that are not synced.
    pub(crate) verifiers: Verifiers,
    pub(crate) direct: Direct,
    pub(crate) when_full: Option<String>,
    /// How long a client may hold a range that others wait for.
    pub(crate) hold_wait: Duration,
    /// How long the host of a client elsewhere may be silent.
    pub(crate) client_silence: Duration,
    /// How long a client elsewhere may be without a connection.
    pub(crate) client_grace: Duration,
    room_wait: Duration,
    reports: Mutex<Reports>,
    reported: Condvar,
    ending: Mutex<bool>,
    ended: Condvar,
}

/// What a new context is made of.
pub(crate) struct Parts {
    pub(crate) key: ClusterKey,
    pub(crate) member: Member,
    pub(crate) members: Vec<Member>,
    pub(crate) stored: Stored,
    pub(crate) applied: Applied,
    pub(crate) buffers: Buffers,
    pub(crate) stages: Stages,
    pub(crate) manager: Links,
    pub(crate) peers: Peers,
    pub(crate) rendezvous_bytes: u64,
    pub(crate) message_bytes: u64,
    pub(crate) limits: Limits,
    pub(crate) write_through: bool,
    pub(crate) direct: bool,
    pub(crate) claim_wait: Duration,
    pub(crate) hold_wait: Duration,
    /// How long the host of a client elsewhere may be silent.
    pub(crate) client_silence: Duration,
    /// How long a client elsewhere may be without a connection.
    pub(crate) client_grace: Duration,
    pub(crate) room_wait: Duration,
    pub(crate) when_full: Option<String>,
}

impl Context {
    pub(crate) fn new(parts: Parts) -> Self {
        Context {
            key: parts.key,
            server: parts.member.server,
            incarnation: AtomicU64::new(parts.member.incarnation),
            kept_since: AtomicU64::new(parts.member.kept_since),
            stored: parts.stored,
            files: Files::default(),
            applied: parts.applied,
            sessions: Sessions::new(),
            buffers: parts.buffers,
            ahead: Ahead::default(),
            statistics: Statistics::default(),
            seen_uses: Arc::default(),
            operations: Operations::default(),
            manager: parts.manager,
            peers: parts.peers,
            foes: Foes::default(),
            lenders: Lenders::default(),
            stages: parts.stages,
            members: Mutex::new(Arc::new(parts.members)),
            owner: OnceLock::new(),
            rendezvous_bytes: parts.rendezvous_bytes,
            message_bytes: parts.message_bytes,
            limits: parts.limits,
            write_through: parts.write_through,
            verifiers: verifier::of_this_start(),
            direct: Direct::new(parts.direct, parts.claim_wait),
            when_full: parts.when_full,
            hold_wait: parts.hold_wait,
            client_silence: parts.client_silence,
            client_grace: parts.client_grace,
            room_wait: parts.room_wait,
            reports: Mutex::default(),
            reported: Condvar::new(),
            ending: Mutex::new(false),
            ended: Condvar::new(),
        }
    }

    /// Which start of the server this is.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Acquire)
    }

    /// The gate of a file.
    pub(crate) fn entry(&self, file: FileId) -> Arc<FileEntry> {
        self.files
            .entry(file, |file| (self.applied.epoch(file), self.incarnation()))
    }

    /// What is known about a file; the metadata manager is asked if nothing is.
    pub(crate) fn known(&self, entry: &Arc<FileEntry>) -> Result<Arc<Known>, Refused> {
        match entry.known() {
            Some(known) => Ok(known),
            None => self.refresh(entry),
        }
    }

    /// Asks the metadata manager about a file, and applies a truncate that this server has missed.
    pub(crate) fn refresh(&self, entry: &Arc<FileEntry>) -> Result<Arc<Known>, Refused> {
        let before = entry.known().map(|k| k.serial);
        let _one = entry.fetching();
        // Whoever held it before may have learnt what is needed.
        if let Some(known) = entry.known()
            && before.is_none_or(|serial| serial != known.serial)
        {
            return Ok(known);
        }
        self.ask_state(entry)
    }

    /// Asks about a file even if somebody else has just done so: what he was told may be older than the
    /// change that this is about.
    pub(crate) fn refresh_now(&self, entry: &Arc<FileEntry>) -> Result<Arc<Known>, Refused> {
        let _one = entry.fetching();
        self.ask_state(entry)
    }

    fn ask_state(&self, entry: &Arc<FileEntry>) -> Result<Arc<Known>, Refused> {
        let file = entry.id();
        let told = self.manager.ask(&FileState { file })?;
        let size = told.size;
        let before = entry.known();
        let is_void = match &before {
            None => true,
            Some(known) => must_void(known.layout(), &told.layout),
        };
        if is_void {
            self.void_maps(entry)?;
        }
        let known = entry.learn(told, self.server);
        self.direct.show(entry);
        if before.is_none_or(|k| k.domain() != known.domain()) {
            // What cannot be moved now goes by message until it is.
            let _ = self.move_domain(entry, &known);
        }
        match size.truncate_to {
            _ if size.epoch <= entry.epoch() => {}
            Some(to) => self.cut(entry, &known, size.epoch, to)?,
            // Everybody who had something to cut has done it.
            None => entry.raise_epoch(size.epoch, size.size),
        }
        Ok(known)
    }

    /// Lets an access in, after learning what is missing.
    pub(crate) fn enter(
        &self,
        entry: &Arc<FileEntry>,
        planned: &Planned<'_>,
    ) -> Result<(Running, Arc<Known>, bool), Refused> {
        for _ in 0..3 {
            match entry.enter(planned) {
                Entering::In(running, known, is_older) => return Ok((running, known, is_older)),
                Entering::No(refused) => {
                    let file = planned
                        .file
                        .as_ref()
                        .filter(|_| refused.status == Status::Busy);
                    let ranges = file.map(std::slice::from_ref);
                    let holder = ranges.and_then(|r| entry.slow_holder(r, self.hold_wait));
                    let Some(holder) = holder else {
                        return Err(refused);
                    };
                    self.sessions.disconnect(holder);
                }
                Entering::Behind => {
                    self.refresh(entry)?;
                }
                Entering::New => self.be_taken(entry)?,
            }
        }
        Err(Refused::new(
            Status::Busy,
            format!(
                "{}: the metadata manager does not know the state that the request was planned with yet",
                entry.id()
            ),
        ))
    }

    /// Has the owner of a file that moves here, or that an earlier start of this server had bytes of, take this server
    /// among those of the file; learns from it who is fenced and which lease numbers are refused.
    pub(crate) fn be_taken(&self, entry: &Arc<FileEntry>) -> Result<(), Refused> {
        let known = self.known(entry)?;
        let owner = ServerId(known.owner().server);
        let file = entry.id();
        let start = entry.untold_start(&known);
        let taken = match self.owner.get().and_then(Weak::upgrade) {
            Some(here) if owner == self.server => {
                here.take_server(file, owner, start).map_err(Refused::from)
            }
            _ => self
                .ask_member(owner, &TakeServer { file, start })
                .map_err(Refused::from),
        };
        let taken = match taken {
            Ok(taken) => taken,
            // It has another owner by now.
            Err(refused) if refused.status == Status::StaleLayout => {
                entry.forget();
                return Ok(());
            }
            Err(refused) => {
                let text = format!(
                    "{owner} owns {file} and does not know of this server yet: {}; repeat later",
                    refused.refusal.text
                );
                return Err(Refused::new(Status::Busy, text));
            }
        };
        // What runs of them was let in before they were refused; one of them may be who asks.
        let mut runs = false;
        for client in taken.fenced {
            runs |= !self.sessions.refuse(client);
        }
        if runs {
            let text =
                format!("{file}: accesses of clients that were declared dead end first; repeat");
            return Err(Refused::new(Status::Busy, text));
        }
        entry.taken(&known);
        entry.told(taken.number);
        self.direct.show(entry);
        Ok(())
    }

    /// Whether clients may store into extents by themselves.
    pub(crate) fn allows_direct_writes(&self) -> bool {
        // Where a write is answered when its bytes are safe, storing alone is no write.
        !self.stored.is_durable() || !self.write_through
    }

    /// What bytes live and die with that are written here now, until they are synced.
    pub(crate) fn verifier(&self) -> u64 {
        match self.stored.is_durable() && self.write_through {
            true => self.verifiers.kept,
            false => self.verifiers.life,
        }
    }

    pub(crate) fn hurry(&self) -> impl Fn(FileId) + '_ {
        |file| self.sessions.hurry(file)
    }

    fn cut(
        &self,
        entry: &Arc<FileEntry>,
        known: &Known,
        epoch: u64,
        to: u64,
    ) -> Result<(), Refused> {
        entry.truncate(epoch, to, &self.hurry(), || {
            let keep = |id: store::SubfileId| {
                let own = known.own_at(id.generation, id.index);
                own.map_or(u64::MAX, |own| own.bytes.rank(to))
            };
            self.take_back(entry.id(), keep)?;
            for own in &known.own {
                let Some(subfile) = known.find(own, &self.stored)? else {
                    continue;
                };
                let len = own.bytes.rank(to);
                if subfile.len() > len || entry.was_stored_directly() {
                    let cut = subfile.truncate(len);
                    let cut = cut.and_then(|()| match self.stored.is_durable() {
                        true => subfile.sync(),
                        false => Ok(()),
                    });
                    match cut {
                        // Removed meanwhile: there is nothing left to cut.
                        Err(store::Error::NotFound(_)) => {}
                        cut => cut?,
                    }
                }
            }
            let put = self.applied.put(entry.id(), epoch);
            put.map_err(|e| {
                Refused::new(
                    Status::Io,
                    format!("recording the truncate of {}: {e}", entry.id()),
                )
            })
        })
    }

    /// Cuts the subfiles of a file here.
    pub(crate) fn apply_truncate(&self, request: &ApplyTruncate) -> Result<(), Refused> {
        let entry = self.entry(request.file);
        let mut known = self.known(&entry)?;
        // What is cut off of a file that moves need not move any more.
        if known.layout().pieces.len() > 1 {
            known = self.refresh_now(&entry)?;
        }
        self.cut(&entry, &known, request.epoch, request.to)
    }

    /// How far the bytes of a file reach here, in one truncate epoch.
    pub(crate) fn ask_end(&self, file: FileId) -> Result<EndIs, Refused> {
        let entry = self.entry(file);
        let known = self.known(&entry)?;
        end_in_one_epoch(
            || entry.epoch(),
            || {
                self.direct.collect(file);
                self.end_now(&known)
            },
        )
    }

    /// How far the bytes of a file reach here at this moment.
    fn end_now(&self, known: &Known) -> Result<u64, Refused> {
        let mut end = 0;
        for own in &known.own {
            if known
                .check_place(own, self.kept_since(), self.incarnation())
                .is_err()
            {
                continue;
            }
            let len = known.find(own, &self.stored)?.map_or(0, |s| s.len());
            if let Some(last) = len.checked_sub(1).and_then(|k| own.bytes.select(k)) {
                end = end.max(last + 1);
            }
        }
        Ok(end)
    }

    /// The earliest start whose bytes are still here.
    pub(crate) fn kept_since(&self) -> u64 {
        self.kept_since.load(Ordering::Acquire)
    }

    /// Refuses lower lease numbers of a file.
    pub(crate) fn tell(&self, request: &Tell) -> Result<(), Refused> {
        self.entry(request.file).tell(request.number, &self.hurry())
    }

    /// Asks a member, or calls what would answer here.
    pub(crate) fn ask_member<R: Request>(
        &self,
        server: ServerId,
        request: &R,
    ) -> Result<R::Answer, AskError> {
        let member = self.member(server)?;
        self.peers.to(&member)?.ask(request)
    }

    /// A member that is there. One that joined since the last report is found by another report.
    pub(crate) fn member(&self, server: ServerId) -> Result<Member, AskError> {
        let find = || {
            let members = lock(&self.members);
            let found = members
                .iter()
                .find(|m| m.server == server && m.state != MemberState::Dead);
            found.cloned()
        };
        if let Some(member) = find() {
            return Ok(member);
        }
        self.report_now(ROOM);
        find().ok_or_else(|| no_member(server))
    }

    /// Removes bytes that nobody needs any more; those that were removed. `gone` hears of files that
    /// are no more.
    pub(crate) fn remove(&self, removals: Vec<Removal>, gone: impl Fn(FileId)) -> Vec<Removal> {
        let mut done = Vec::with_capacity(removals.len());
        for removal in removals {
            let (file, generation) = (removal.file, removal.generation);
            let entry = self.files.get(file);
            // What is fetched for the file right now is removed afterwards.
            let _still = match &entry {
                Some(entry) => match entry.moving.try_lock() {
                    Ok(moving) => Some(moving),
                    Err(std::sync::TryLockError::Poisoned(e)) => Some(e.into_inner()),
                    Err(std::sync::TryLockError::WouldBlock) => continue,
                },
                None => None,
            };
            if let Some(entry) = &entry
                && entry
                    .known()
                    .is_none_or(|k| k.names(generation, &removal.subfiles))
            {
                entry.forget();
                match self.refresh_now(entry) {
                    Err(refused) if refused.status == Status::NotFound => {
                        self.applied.forget(file);
                        gone(file);
                    }
                    // It is not to be removed as long as the file has it.
                    Ok(known) if known.names(generation, &removal.subfiles) => continue,
                    _ => {}
                }
            }
            let removed = self.remove_subfiles(file, generation, &removal.subfiles);
            drop(_still);
            drop(entry);
            if removed.is_ok() {
                add(&self.statistics.removals, 1);
                done.push(removal);
                self.files.drop_unused(file);
            }
        }
        done
    }

    /// Removes the subfiles of a generation. Those of one that clients may have mapped go when nobody
    /// can get a map of them.
    fn remove_subfiles(
        &self,
        file: FileId,
        generation: u64,
        subfiles: &[u32],
    ) -> Result<(), Refused> {
        let entry = self.files.get(file).filter(|_| self.direct.is_in_use());
        match entry {
            None => self.stored.remove(file, generation, subfiles)?,
            Some(entry) => {
                let is_gone = |id: store::SubfileId| {
                    let is_meant = subfiles.is_empty() || subfiles.contains(&id.index);
                    id.generation == generation && is_meant
                };
                let keep = |id| if is_gone(id) { 0 } else { u64::MAX };
                entry.alone(&self.hurry(), || {
                    self.take_back(file, keep)?;
                    Ok(self.stored.remove(file, generation, subfiles)?)
                })?;
                self.direct.forget(file);
            }
        }
        Ok(())
    }

    /// Does what can be done about a lack of room, until `try_again` has what it wants or the time
    /// is over.
    pub(crate) fn with_room<T>(
        &self,
        mut try_again: impl FnMut() -> store::Result<T>,
    ) -> store::Result<T> {
        let mut result = try_again();
        let deadline = Instant::now() + self.room_wait;
        while let Err(store::Error::NoSpace { .. }) = result {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            add(&self.statistics.room_waits, 1);
            self.report_now(left.min(Duration::from_millis(100)));
            let _ = self.stored.store().write_back(16 << 20);
            result = try_again();
        }
        result
    }

    /// Has a report sent at once and waits for its answer, or for the time to pass.
    pub(crate) fn report_now(&self, patience: Duration) {
        let mut reports = lock(&self.reports);
        let wanted = reports.done + 2; // one that is under way began too early
        reports.is_wanted = true;
        self.reported.notify_all();
        let deadline = Instant::now() + patience;
        while reports.done < wanted && !reports.is_stopping {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            if !reports.is_wanted {
                reports.is_wanted = true;
                self.reported.notify_all();
            }
            reports = self
                .reported
                .wait_timeout(reports, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits until the next report is due; `false` when the server stops.
    pub(crate) fn wait_for_report(&self, interval: Duration) -> bool {
        let reports = lock(&self.reports);
        let (mut reports, _) = self
            .reported
            .wait_timeout_while(reports, interval, |r| !r.is_wanted && !r.is_stopping)
            .unwrap_or_else(PoisonError::into_inner);
        reports.is_wanted = false;
        !reports.is_stopping
    }

    /// Waits so long; `false` when the server stops.
    pub(crate) fn wait_unless_stopping(&self, pause: Duration) -> bool {
        let reports = lock(&self.reports);
        let (reports, _) = self
            .reported
            .wait_timeout_while(reports, pause, |r| !r.is_stopping)
            .unwrap_or_else(PoisonError::into_inner);
        !reports.is_stopping
    }

    /// A report was answered.
    pub(crate) fn report_done(&self) {
        lock(&self.reports).done += 1;
        self.reported.notify_all();
    }

    /// Ends the thread that reports.
    pub(crate) fn stop_reports(&self) {
        lock(&self.reports).is_stopping = true;
        self.reported.notify_all();
    }

    /// The server is to end.
    pub(crate) fn end(&self) {
        *lock(&self.ending) = true;
        self.ended.notify_all();
    }

    /// Waits until the server is to end.
    pub(crate) fn wait(&self) {
        let ending = lock(&self.ending);
        let waited = self.ended.wait_while(ending, |ending| !*ending);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Whether maps of a file are void in a newer state: where bytes come back to a subfile whose space was given
/// back meanwhile, and where nothing is stored as it was.
fn must_void(older: &LayoutState, newer: &LayoutState) -> bool {
    let stores = |state: &LayoutState| -> Vec<u64> {
        let pieces = state.pieces.iter();
        pieces.flat_map(|p| p.stores.iter().copied()).collect()
    };
    let now = stores(newer);
    let comes_back = control::moves::is_cancelled(newer) && !control::moves::is_cancelled(older);
    comes_back || !stores(older).iter().any(|store| now.contains(store))
}

/// Looks how far bytes reach, again while a truncate is applied meanwhile. An end from before it that is told with the
/// epoch after it would bring the size back that was cut off; one from after it that is told with the epoch before it
/// would not be counted. While a truncate is being applied its epoch has not begun: whoever asks caps what he hears.
fn end_in_one_epoch(
    epoch: impl Fn() -> u64,
    mut end: impl FnMut() -> Result<u64, Refused>,
) -> Result<EndIs, Refused> {
    for _ in 0..8 {
        let before = epoch();
        let end = end()?;
        if epoch() == before {
            return Ok(EndIs { epoch: before, end });
        }
    }
    Err(Refused::new(
        Status::Busy,
        "the file is truncated again and again; repeat later",
    ))
}

/// The time, in nanoseconds since 1970.
pub(crate) fn now() -> Time {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// The others, for the owner of files.
pub(crate) struct Others(pub(crate) Arc<Context>);

type Tuple = (Status, wire::message::Refusal);

fn plain<T>(result: Result<T, Refused>) -> Result<T, Tuple> {
    result.map_err(|r| (r.status, r.refusal))
}

impl Others {
    fn ask_manager<R: Request>(&self, request: &R) -> Result<R::Answer, Tuple> {
        plain(self.0.manager.ask(request).map_err(Refused::from))
    }

    fn ask<R: Request>(
        &self,
        server: ServerId,
        request: &R,
        here: impl FnOnce(&Context) -> Result<R::Answer, Refused>,
    ) -> Result<R::Answer, Tuple> {
        if server == self.0.server {
            return plain(here(&self.0));
        }
        plain(self.0.ask_member(server, request).map_err(Refused::from))
    }
}

impl Cluster for Others {
    fn own_server(&self) -> ServerId {
        self.0.server
    }

    fn incarnation(&self) -> u64 {
        self.0.incarnation()
    }

    fn now(&self) -> Time {
        now()
    }

    fn file_state(&self, file: FileId) -> Result<FileStateIs, Tuple> {
        self.ask_manager(&FileState { file })
    }

    fn report_size(&self, request: &ReportSize) -> Result<SizeState, Tuple> {
        self.ask_manager(request)
    }

    fn begin_truncate(&self, request: &BeginTruncate) -> Result<SizeState, Tuple> {
        self.ask_manager(request)
    }

    fn finish_truncate(&self, request: &FinishTruncate) -> Result<SizeState, Tuple> {
        self.ask_manager(request)
    }

    fn apply_truncate(&self, server: ServerId, request: &ApplyTruncate) -> Result<(), Tuple> {
        self.ask(server, request, |context| context.apply_truncate(request))
    }

    fn ask_end(&self, server: ServerId, file: FileId) -> Result<EndIs, Tuple> {
        self.ask(server, &AskEnd { file }, |context| context.ask_end(file))
    }

    fn fence(&self, server: ServerId, request: &Fence) -> Result<(), Tuple> {
        self.ask(server, request, |context| context.fence(request.client))
    }

    fn tell(&self, server: ServerId, request: &Tell) -> Result<(), Tuple> {
        self.ask(server, request, |context| context.tell(request))
    }

    fn ask_number(&self, server: ServerId, file: FileId) -> Result<u64, Tuple> {
        self.ask(server, &AskNumber { file }, |context| {
            Ok(context.entry(file).number())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A truncate that is applied between two reads, whichever comes first.
    #[test]
    fn end_is_told_with_the_epoch_it_was_read_in() {
        let epoch = Cell::new(2);
        let mut looks = 0;
        // The bytes reach to 500 when they are looked at; then everything behind 10 is cut, and one grows to 25.
        let found = end_in_one_epoch(
            || epoch.get(),
            || {
                looks += 1;
                let end = if epoch.get() == 2 { 500 } else { 25 };
                epoch.set(3);
                Ok(end)
            },
        );
        let found = found.unwrap();
        assert_eq!((found.epoch, found.end, looks), (3, 25, 2));
        let never = end_in_one_epoch(
            || epoch.get(),
            || {
                epoch.set(epoch.get() + 1);
                Ok(500)
            },
        );
        assert_eq!(never.unwrap_err().status, Status::Busy);
    }
}
