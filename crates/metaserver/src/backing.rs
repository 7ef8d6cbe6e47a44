//! Something behind the catalogue: names that it lacks may be found there, and bytes may have to be
//! fetched before a file is opened.
//!
//! The manager asks a [`Backing`] around requests that go by path; what it does with that is its
//! affair (in a job it is a directory, see the crate `job`). It works as a client of this very
//! manager, whose requests are not asked about again.
//!
//! Invariants
//! - Without a backing every request goes straight to the catalogue.
//! - A file is opened only after [`Backing::opening`] has returned for it; a file that is refused as in
//!   use because the backing held it in that moment is tried again.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wire::message::catalogue::*;
use wire::message::cluster::{Report, ReportAnswer, ReportSize};
use wire::message::hints::{GetHints, SetHints};
use wire::message::profile::{GetProfile, SetProfile};
use wire::message::session::Credentials;
use wire::message::trees::RemoveTree;
use wire::{ClientId, FileId, Rights, SizeState, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session};

/// So long a new file waits for room.
const ROOM: Duration = Duration::from_secs(30);

/// Why a backing cannot give what it has.
pub type BackingError = (Status, String);

/// What stands behind a catalogue. Called from the threads of connections, several at once.
pub trait Backing: Send + Sync + fmt::Debug {
    /// Whether this client is the backing itself.
    fn is_own(&self, client: ClientId) -> bool;

    /// The catalogue lacks this path. Puts it there if it exists behind.
    fn missing(&self, path: &str) -> Result<(), BackingError>;

    /// A directory is about to be listed. Puts all names there that exist behind.
    fn listing(&self, path: &str) -> Result<(), BackingError>;

    /// A file is about to be opened. Returns when its bytes are there.
    fn opening(&self, file: FileId, path: &str, for_writing: bool) -> Result<(), BackingError>;

    /// How often it has held a file for itself, whichever clients want to open it then.
    fn holds(&self, file: FileId) -> u64;

    /// Bytes of a file may have been written, and a client has synced or closed it.
    fn written(&self, file: FileId);

    /// A client has gone with whatever it had open.
    fn client_gone(&self);

    /// A file or directory has lost its name.
    fn removed(&self, path: &str);

    /// A file or directory has another name.
    fn renamed(&self, from: &str, to: &str);

    /// A directory was made.
    fn made_directory(&self, path: &str, mode: u32);

    /// A server has so much room in all, and so much of it is taken.
    fn room(&self, capacity_bytes: u64, used_bytes: u64);

    /// A new file finds no server with room. Begins to make some, and returns after a moment.
    fn make_room(&self);
}

fn failed((status, text): BackingError) -> Refused {
    Refused::new(status, text)
}

impl Manager {
    /// The backing, unless it asks itself, or the request was done when it came before: then the names behind may be
    /// others by now.
    fn behind(&self, session: &Session) -> Option<&Arc<dyn Backing>> {
        let backing = self.backing.as_ref()?;
        let asked = session.asked().ok()?;
        let was_done = || {
            let snapshot = self.snapshot().ok()?;
            snapshot.note_of(asked).ok()?
        };
        let is_new = !asked.is_repeated || was_done().is_none();
        (!backing.is_own(asked.client) && is_new).then_some(backing)
    }

    /// Lets the backing put a path into the catalogue that is not there.
    fn look_for(&self, backing: &Arc<dyn Backing>, path: &str) -> Result<Option<FileId>, Refused> {
        let found = |manager: &Manager| -> Result<Option<Attributes>, Refused> {
            match manager.snapshot()?.stat(&Credentials::ROOT, path) {
                Ok(found) => Ok(Some(found)),
                // What is wrong with the path, the request itself says.
                Err(_) => Ok(None),
            }
        };
        let mut attributes = found(self)?;
        if attributes.is_none() {
            backing.missing(path).map_err(failed)?;
            attributes = found(self)?;
        }
        let is_file = |a: &Attributes| a.kind == Kind::File;
        Ok(attributes.filter(is_file).map(|a| a.file))
    }

    pub(crate) fn open_backed(
        &self,
        session: &mut Session,
        r: Open,
    ) -> Result<OpenAnswer, Refused> {
        let Some(backing) = self.behind(session).cloned() else {
            return self.open(session, r);
        };
        let for_writing = r.options.rights.allow(Rights::WRITE);
        let deadline = Instant::now() + ROOM;
        loop {
            let file = self.look_for(&backing, &r.path)?;
            if let Some(file) = file
                && (for_writing || r.options.rights.allow(Rights::READ))
            {
                backing
                    .opening(file, &r.path, for_writing)
                    .map_err(failed)?;
            }
            let holds = |file: Option<FileId>| file.map(|file| backing.holds(file));
            let before = holds(file);
            match self.open(session, r.clone()) {
                Err(e) if e.0 == Status::InUse && holds(file) != before => {}
                Err(e) if e.0 == Status::NoSpace && Instant::now() < deadline => {
                    backing.make_room();
                }
                Ok(opened) => {
                    if opened.is_new {
                        backing
                            .opening(opened.attributes.file, &r.path, for_writing)
                            .map_err(failed)?;
                    }
                    return Ok(opened);
                }
                Err(e) => return Err(e),
            }
        }
    }

    pub(crate) fn close_backed(
        &self,
        session: &mut Session,
        r: Close,
    ) -> Result<CloseAnswer, Refused> {
        let Some(backing) = self.behind(session).cloned() else {
            return self.close(session, r);
        };
        let handle = r.handle;
        let opened = self.change(session, move |b, caller| b.opened(caller, handle));
        let closed = self.close(session, r)?;
        if let Ok(opened) = opened
            && opened.rights.allow(Rights::WRITE)
        {
            backing.written(opened.file);
        }
        Ok(closed)
    }

    pub(crate) fn report_size_backed(
        &self,
        session: &mut Session,
        r: ReportSize,
    ) -> Result<SizeState, Refused> {
        let file = r.file;
        let state = self.report_size(session, r)?;
        if let Some(backing) = &self.backing {
            backing.written(file);
        }
        Ok(state)
    }

    pub(crate) fn report_backed(
        &self,
        session: &mut Session,
        r: Report,
    ) -> Result<ReportAnswer, Refused> {
        if let Some(backing) = &self.backing {
            backing.room(r.capacity_bytes, r.used_bytes);
        }
        self.report(session, r)
    }

    pub(crate) fn list_backed(&self, session: &mut Session, r: List) -> Result<Listing, Refused> {
        if let Some(backing) = self.behind(session).cloned() {
            self.look_for(&backing, &r.path)?;
            if r.after.is_none() {
                backing.listing(&r.path).map_err(failed)?;
            }
        }
        self.list(session, r)
    }

    pub(crate) fn mkdir_backed(&self, session: &mut Session, r: Mkdir) -> Result<(), Refused> {
        let Some(backing) = self.behind(session).cloned() else {
            return self.mkdir(session, r);
        };
        self.look_for(&backing, &r.path)?;
        let (path, mode) = (r.path.clone(), r.mode);
        self.mkdir(session, r)?;
        backing.made_directory(&path, mode);
        Ok(())
    }

    pub(crate) fn unlink_backed(&self, session: &mut Session, r: Unlink) -> Result<(), Refused> {
        let Some(backing) = self.behind(session).cloned() else {
            return self.unlink(session, r);
        };
        self.look_for(&backing, &r.path)?;
        let path = r.path.clone();
        self.unlink(session, r)?;
        backing.removed(&path);
        Ok(())
    }

    pub(crate) fn rmdir_backed(&self, session: &mut Session, r: Rmdir) -> Result<(), Refused> {
        let Some(backing) = self.behind(session).cloned() else {
            return self.rmdir(session, r);
        };
        self.look_for(&backing, &r.path)?;
        backing.listing(&r.path).map_err(failed)?;
        let path = r.path.clone();
        self.rmdir(session, r)?;
        backing.removed(&path);
        Ok(())
    }

    pub(crate) fn remove_tree_backed(
        &self,
        session: &mut Session,
        r: RemoveTree,
    ) -> Result<(), Refused> {
        match self.behind(session) {
            None => self.remove_tree(session, r),
            Some(_) => Err(Refused::new(
                Status::Unsupported,
                "names of this service lie in a directory behind it, too; remove what is in the directory one by one",
            )),
        }
    }

    pub(crate) fn rename_backed(&self, session: &mut Session, r: Rename) -> Result<(), Refused> {
        let Some(backing) = self.behind(session).cloned() else {
            return self.rename(session, r);
        };
        for path in [&r.from, &r.to] {
            self.look_for(&backing, path)?;
        }
        let (from, to) = (r.from.clone(), r.to.clone());
        self.rename(session, r)?;
        backing.renamed(&from, &to);
        Ok(())
    }

    /// A request about one path.
    pub(crate) fn backed<R: AboutPath, T>(
        &self,
        session: &mut Session,
        r: R,
        run: fn(&Manager, &mut Session, R) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        if let Some(backing) = self.behind(session).cloned() {
            self.look_for(&backing, r.path())?;
        }
        run(self, session, r)
    }
}

/// A request with a path.
pub(crate) trait AboutPath {
    fn path(&self) -> &str;
}

macro_rules! about_path {
    ($($request:ident)*) => {$(
        impl AboutPath for $request {
            fn path(&self) -> &str {
                &self.path
            }
        }
    )*};
}

about_path! { Create Stat Chmod Chown Utimes SetLayout GetLayout PutView GetView RemoveView ListViews ChangeValues GetValues ChangeArray Relayout SetHints GetHints GetProfile SetProfile }
