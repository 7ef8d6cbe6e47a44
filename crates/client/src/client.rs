//! The client: one session with a service, and everything that goes by path names.
//!
//! Paths are any UTF-8 with `/` between names; one without `/` in front is taken from the root.

use std::collections::VecDeque;
use std::sync::Arc;

use layout::View;
use parking_lot::Mutex;
use wire::message::Bytes;
use wire::message::backup::{Backup, BackupPart};
use wire::message::catalogue::*;
use wire::message::file::{Discard, DiskList, ListDisks, ListSubfiles, SubfileEntry, SubfileName};
use wire::message::mapping::BuddyIs;
use wire::message::session::{Counter, GetSupervisor, Shutdown, Statistics};
use wire::message::trees::RemoveTree;
use wire::url::ServiceUrl;
use wire::{ClientId, ServerId, Status};

use crate::access::direct::DirectStatistics;
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::handle::Handle;
use crate::file::options::{OpenOptions, file_mode_mask, named_values};
use crate::session::Session;
use crate::session::connect::{ConnectOptions, Connector};
use crate::session::stamped::{ListedPart, PartOf};

/// Subfiles of a server that one answer lists.
const SUBFILES_AT_A_TIME: u64 = 4096;

/// What [`Client::stat`] shows; the size is the latest, not only the durable one.
pub type Metadata = Attributes;
/// What [`Client::layout`] shows.
pub type FileLayout = LayoutAnswer;

/// Names asked for at a time.
const LISTING: u32 = 1000;

/// How often attributes are asked for, with a size of which the owner has to be asked by the client, until they are of one moment.
const MOST_LOOKS: usize = 4;

/// Whether attributes can be asked for once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    /// They can.
    Again,
    /// What is found now is told.
    Last,
}

/// A session with a service. Clones are the same session; it ends with the last clone and the last
/// file. After a fork a child gets errors from it and sends nothing.
///
/// A client that was cut off for longer than its lease counts as dead: what it does next is refused with
/// [`Status::Fenced`], and so is everything with files that it had open, their next
/// sync and close included if they had written anything. Whatever the client opens after that it opens as a
/// new client, with a new number.
#[derive(Clone, Debug)]
pub struct Client {
    current: Arc<Mutex<Arc<Session>>>,
}

impl Client {
    /// Connects to a running service.
    pub fn connect(url: &ServiceUrl, options: ConnectOptions) -> Result<Client> {
        match url {
            ServiceUrl::At(endpoint) => Client::connect_with(Arc::new(endpoint.clone()), options),
            ServiceUrl::Protected(endpoint, names) => {
                let options = options.with_tls(names)?;
                Client::connect_with(Arc::new(endpoint.clone()), options)
            }
            other => Err(Error::argument(
                "url",
                format!("'{other}' names no running service; give unix:PATH or tcp:HOST:PORT"),
            )),
        }
    }

    /// Connects to whatever the connector says, now and whenever the connection has to be made again.
    pub fn connect_with(connector: Arc<dyn Connector>, options: ConnectOptions) -> Result<Client> {
        let has_wish = options.buddy.is_some();
        let client = Client::of(Session::connect(connector, options)?);
        if has_wish {
            // A server that is not there is told now, not by the first access.
            client.buddy()?;
        }
        Ok(client)
    }

    pub(crate) fn of(session: Arc<Session>) -> Client {
        Client {
            current: Arc::new(Mutex::new(session)),
        }
    }

    /// The session; a new one if the service counts the last one as dead. Where none can be made the last one
    /// says why nothing goes on.
    pub(crate) fn session(&self) -> Arc<Session> {
        let mut current = self.current.lock();
        if current.is_dead()
            && let Ok(new) = current.again()
        {
            *current = new;
        }
        Arc::clone(&current)
    }

    /// The number of this client in the service.
    pub fn id(&self) -> ClientId {
        self.session().client
    }

    /// Frames sent so far: all, and those that ask for or carry bytes of files.
    pub fn messages_sent(&self) -> (u64, u64) {
        self.session().sent()
    }

    /// What was counted about accesses that went directly to the memory of servers on this host.
    pub fn direct_statistics(&self) -> DirectStatistics {
        self.session().open_files.sharing.statistics()
    }

    /// Creates a file without opening it; whether it is new.
    pub fn create(&self, path: &str, options: &OpenOptions) -> Result<bool> {
        let options = OpenOptions {
            create: true,
            ..options.clone()
        };
        let path = absolute(path);
        let hints = self.session().creation_hints(&path, &options.hints);
        let create = options.to_message(hints)?.create.expect("asked for");
        let created = self.session().manager(|| Create {
            path: path.clone(),
            options: create.clone(),
        })?;
        Ok(created.is_new)
    }

    /// Opens a file.
    pub fn open(&self, path: &str, options: &OpenOptions) -> Result<File> {
        let opened = self.open_raw(path, options)?;
        let file = File::new(opened);
        file.take_expected(options)?;
        file.begin(options)?;
        Ok(file)
    }

    fn open_raw(&self, path: &str, options: &OpenOptions) -> Result<Arc<Handle>> {
        self.open_raw_new(path, options, None)
    }

    /// Opens a file; whether it is new may be known better than from this opening.
    pub(crate) fn open_raw_new(
        &self,
        path: &str,
        options: &OpenOptions,
        is_new: Option<bool>,
    ) -> Result<Arc<Handle>> {
        let path = absolute(path);
        let hints = match options.create {
            true => self.session().creation_hints(&path, &options.hints),
            false => Vec::new(),
        };
        let message = options.to_message(hints)?;
        let opened = self.session().manager(|| Open {
            path: path.clone(),
            options: message.clone(),
        })?;
        let mut opened = opened;
        opened.is_new = is_new.unwrap_or(opened.is_new);
        let (file, handle) = (opened.attributes.file.0, opened.handle.0);
        tracing::debug!(path, file, handle, "file opened");
        Handle::new(&self.session(), path, options, opened)
    }

    /// An open file for questions about it, without rights on its bytes.
    fn open_for_questions(&self, path: &str) -> Result<File> {
        Ok(File::new(self.open_raw(path, &OpenOptions::new())?))
    }

    /// Removes the name of a file; its bytes go with the last handle.
    pub fn unlink(&self, path: &str) -> Result<()> {
        self.unlink_how(path, UnlinkHow::EvenIfOpen)
    }

    /// Removes a file unless a client has it open.
    pub fn unlink_unless_open(&self, path: &str) -> Result<()> {
        self.unlink_how(path, UnlinkHow::UnlessOpen)
    }

    fn unlink_how(&self, path: &str, how: UnlinkHow) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| Unlink {
            path: path.clone(),
            how,
        })
    }

    /// Gives a file or directory another name; what has that name is replaced.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (absolute(from), absolute(to));
        self.session().manager(|| Rename {
            from: from.clone(),
            to: to.clone(),
        })
    }

    /// Creates a directory. The mode is what is left after the process's mask; 0o777 if not given.
    pub fn mkdir(&self, path: &str, mode: Option<u32>) -> Result<()> {
        let path = absolute(path);
        let mode = mode.unwrap_or(0o777) & !file_mode_mask();
        self.session().manager(|| Mkdir {
            path: path.clone(),
            mode,
        })
    }

    /// Creates a directory and those above it; one that exists is fine.
    pub fn mkdir_all(&self, path: &str, mode: Option<u32>) -> Result<()> {
        let path = absolute(path);
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
        for end in ends.chain([path.len()]) {
            let part = &path[..end];
            if part.is_empty() || part.ends_with('/') {
                continue;
            }
            match self.mkdir(part, mode) {
                Err(e) if e.status() == wire::Status::Exists => {
                    if self.attributes(part)?.kind != Kind::Directory {
                        return Err(e);
                    }
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, path: &str) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| Rmdir { path: path.clone() })
    }

    /// Removes a directory with everything below it, if each name below may be removed one by one; else nothing. The names are gone when
    /// this returns; space follows, as [`Client::counts`] tells. Files that are open go with their last handle. Where a directory lies behind the
    /// service, as that of a job, this is [`Status::Unsupported`].
    pub fn remove_tree(&self, path: &str) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| RemoveTree { path: path.clone() })
    }

    /// The names in a directory, ascending, fetched in parts while they are consumed.
    pub fn list(&self, path: &str) -> Result<Listing> {
        self.list_how(path, false)
    }

    /// The entries of a directory with their attributes. Sizes are the latest; of a file whose owner is away, the durable one.
    pub fn list_with_attributes(&self, path: &str) -> Result<Listing> {
        self.list_how(path, true)
    }

    fn list_how(&self, path: &str, with_attributes: bool) -> Result<Listing> {
        if with_attributes {
            self.session().send_all_behind();
        }
        let mut listed = Listing {
            client: self.clone(),
            path: absolute(path),
            with_attributes,
            entries: VecDeque::new(),
            after: None,
            has_more: true,
        };
        listed.fetch()?;
        Ok(listed)
    }

    /// Attributes as the catalogue has them; the size is the durable one.
    pub fn attributes(&self, path: &str) -> Result<Metadata> {
        let path = absolute(path);
        let session = self.session();
        session.check()?;
        if let Some(known) = session.stamped.found(&path) {
            return known.ok_or_else(|| not_found(&path));
        }
        let answer = session.manager(|| Stat {
            path: path.clone(),
            with_latest_size: false,
            wants_stamps: false,
        })?;
        let found = answer.found.ok_or_else(|| not_found(&path))?;
        Ok(found.attributes)
    }

    /// Attributes, with the latest size: one message at most, however many clients write to the file, and none if nothing has
    /// changed since this client was last told.
    pub fn stat(&self, path: &str) -> Result<Metadata> {
        let session = self.session();
        session.check()?;
        // The size counts what this process has written, also what it has not sent.
        session.send_all_behind();
        let path = absolute(path);
        if let Some(known) = session.stamped.found(&path) {
            return known.ok_or_else(|| not_found(&path));
        }
        for _ in 1..MOST_LOOKS {
            if let Some(attributes) = self.look_at(&session, &path, Looks::Again)? {
                return Ok(attributes);
            }
        }
        let last = self.look_at(&session, &path, Looks::Last)?;
        last.ok_or_else(|| not_found(&path))
    }

    /// Asks for attributes with the latest size; nothing if it has to be asked again, since what was found is not of one moment.
    fn look_at(
        &self,
        session: &Arc<Session>,
        path: &str,
        looks: Looks,
    ) -> Result<Option<Metadata>> {
        let asking = session.stamped.ask(session);
        let StatAnswer { found, stamped } = session.manager(|| Stat {
            path: path.to_owned(),
            with_latest_size: true,
            wants_stamps: asking.wants_stamps(),
        })?;
        if stamped.is_some() {
            let known = found.as_ref().map(|found| found.attributes.clone());
            session
                .stamped
                .keep_found(&asking, path.to_owned(), known, stamped);
        }
        let StatEntry {
            mut attributes,
            is_latest,
            ..
        } = found.ok_or_else(|| not_found(path))?;
        if attributes.kind == Kind::Directory || is_latest {
            return Ok(Some(attributes));
        }
        // Its owner is away or busy, and a client waits for it. A file that may not be opened still has attributes, with the size
        // at its last sync.
        let size = match self.open_for_questions(path) {
            Ok(file) if file.id() == attributes.file => file.size().ok(),
            // It has another name by now, or none.
            Ok(_) if looks == Looks::Again => return Ok(None),
            Err(e) if e.status() == Status::NotFound && looks == Looks::Again => return Ok(None),
            _ => None,
        };
        let Some(size) = size else {
            return Ok(Some(attributes));
        };
        // The owner has said what is so later than the rest.
        if looks == Looks::Again {
            let later = session.manager(|| Stat {
                path: path.to_owned(),
                with_latest_size: false,
                wants_stamps: false,
            });
            let of = |attributes: &Metadata| (attributes.file, attributes.changed);
            let later = later.ok().and_then(|answer| answer.found);
            if later.is_none_or(|later| of(&later.attributes) != of(&attributes)) {
                return Ok(None);
            }
        }
        attributes.size = size;
        Ok(Some(attributes))
    }

    /// Sets the permission bits.
    pub fn chmod(&self, path: &str, mode: u32) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| Chmod {
            path: path.clone(),
            mode,
        })
    }

    /// Gives a file or directory to another owner or group.
    pub fn chown(&self, path: &str, owner: Option<u32>, group: Option<u32>) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| Chown {
            path: path.clone(),
            owner,
            group,
        })
    }

    /// Sets the times of the last access and the last change.
    pub fn utimes(&self, path: &str, accessed: SetTime, modified: SetTime) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| Utimes {
            path: path.clone(),
            accessed,
            modified,
        })
    }

    /// How a file is laid out, and what of it is lost.
    pub fn layout(&self, path: &str) -> Result<FileLayout> {
        let path = absolute(path);
        self.session().manager(|| GetLayout { path: path.clone() })
    }

    /// Gives a file without bytes another layout.
    pub fn set_layout(&self, path: &str, spec: LayoutSpec) -> Result<()> {
        let path = absolute(path);
        self.session()
            .manager(|| SetLayout {
                path: path.clone(),
                spec: spec.clone(),
            })
            .map(drop)
    }

    /// Keeps a view with a file, under a name.
    pub fn put_view(&self, path: &str, name: &str, text: &str, view: &View) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| PutView {
            path: path.clone(),
            name: name.into(),
            view: NamedView {
                text: text.into(),
                view: view.clone(),
            },
        })
    }

    /// A view that is kept with a file.
    pub fn get_view(&self, path: &str, name: &str) -> Result<NamedView> {
        let path = absolute(path);
        self.session().manager(|| GetView {
            path: path.clone(),
            name: name.into(),
        })
    }

    /// Names and texts of all views that are kept with a file.
    pub fn list_views(&self, path: &str) -> Result<Vec<ViewName>> {
        let path = absolute(path);
        let mut all: Vec<ViewName> = Vec::new();
        loop {
            let part = self.session().manager(|| ListViews {
                path: path.clone(),
                after: all.last().map(|v| v.name.clone()),
                limit: LISTING,
            })?;
            let is_end = part.len() < LISTING as usize;
            all.extend(part);
            if is_end {
                return Ok(all);
            }
        }
    }

    /// Removes a view that is kept with a file.
    pub fn remove_view(&self, path: &str, name: &str) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| RemoveView {
            path: path.clone(),
            name: name.into(),
        })
    }

    /// Keeps values with a file under their names, and removes others: all of it or nothing. Values of the same name are
    /// replaced; removing what is not there is no mistake. They are durable when this returns.
    pub fn change_values(
        &self,
        path: &str,
        put: &[(String, Vec<u8>)],
        remove: &[String],
    ) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| ChangeValues {
            path: path.clone(),
            put: named_values(put),
            remove: remove.to_vec(),
        })
    }

    /// All values that are kept with a file, by ascending names.
    pub fn values(&self, path: &str) -> Result<Vec<(String, Vec<u8>)>> {
        let path = absolute(path);
        let values = self
            .session()
            .manager(|| GetValues { path: path.clone() })?;
        Ok(values.into_iter().map(|v| (v.name, v.value.0)).collect())
    }

    /// Gives the array of a file another extent along its slowest dimension, if it is still `from`. Of several
    /// callers that add records at the same time one succeeds; the others are told what the array is now and try again with
    /// that. No byte moves: a shorter array is cut by [`File::resize`].
    pub fn change_array(&self, path: &str, from: &str, to: &str) -> Result<ArrayIs> {
        let path = absolute(path);
        self.session().manager(|| ChangeArray {
            path: path.clone(),
            from: from.into(),
            to: to.into(),
        })
    }

    /// All servers that joined the service.
    pub fn members(&self) -> Result<Vec<Member>> {
        self.session()
            .with_lane(|lane| self.session().members(lane))
    }

    /// What there is in all.
    pub fn counts(&self) -> Result<Counts> {
        self.session().manager(|| Count {})
    }

    /// Looks for contradictions in the catalogue.
    pub fn check(&self) -> Result<Vec<Finding>> {
        self.session().manager(|| Check {})
    }

    /// Rows of the catalogue as it was at one moment, behind a key; none at the end. `backup` is 0 for the first, which finds that
    /// moment, and what it said for all others. For operators of the service.
    pub fn backup(&self, backup: u64, after: &[u8]) -> Result<BackupPart> {
        let after = Bytes(after.to_vec());
        self.session().manager(|| Backup {
            backup,
            after: after.clone(),
        })
    }

    /// The server that this client begins with: one of its host if there is any, else the nearest, else the
    /// one with the fewest clients; or the one of [`ConnectOptions::buddy`].
    pub fn buddy(&self) -> Result<BuddyIs> {
        self.session().with_lane(|lane| self.session().buddy(lane))
    }

    /// What the buddy of this client has counted since it started.
    pub fn buddy_statistics(&self) -> Result<Vec<Counter>> {
        self.server_statistics(self.buddy()?.server)
    }

    /// What an I/O server has counted since it started.
    pub fn server_statistics(&self, server: ServerId) -> Result<Vec<Counter>> {
        self.session().server(server, &Statistics {})
    }

    /// What the metadata manager has counted since it started.
    pub fn meta_statistics(&self) -> Result<Vec<Counter>> {
        self.session().manager(|| Statistics {})
    }

    /// What the supervisor of the service has written down about it; `None` if its servers were started one by
    /// one.
    pub fn supervisor(&self) -> Result<Option<String>> {
        self.session().manager(|| GetSupervisor {})
    }

    /// Space that a file takes at all its servers.
    pub fn allocated(&self, path: &str) -> Result<u64> {
        self.open_for_questions(path)?.allocated()
    }

    /// All subfiles of a server, asked for some at a time.
    pub fn subfiles(&self, server: ServerId) -> Result<Vec<SubfileEntry>> {
        let mut all: Vec<SubfileEntry> = Vec::new();
        loop {
            let after = all.last().map(|last| SubfileName {
                file: last.file,
                generation: last.generation,
                index: last.index,
            });
            let most = SUBFILES_AT_A_TIME;
            let some = self
                .session()
                .server(server, &ListSubfiles { after, most })?;
            let is_last = !some.has_more || some.entries.is_empty();
            all.extend(some.entries);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Has a server put a subfile aside that no file has, on the disk where it is; its place. For operators of the service.
    pub fn put_aside(&self, server: ServerId, subfile: SubfileName) -> Result<String> {
        let request = Discard {
            subfile,
            is_removed: false,
        };
        self.session().server(server, &request)
    }

    /// Has a server remove a subfile that no file has. For operators of the service.
    pub fn remove_subfile(&self, server: ServerId, subfile: SubfileName) -> Result<()> {
        let request = Discard {
            subfile,
            is_removed: true,
        };
        self.session().server(server, &request).map(drop)
    }

    /// The disks of a server, and what was put aside on them.
    pub fn disks(&self, server: ServerId) -> Result<DiskList> {
        self.session().server(server, &ListDisks {})
    }

    /// Ends the metadata manager, and with it the service.
    pub fn shutdown(&self) -> Result<()> {
        self.session().manager(|| Shutdown {})
    }

    /// Ends one I/O server.
    pub fn shutdown_server(&self, server: ServerId) -> Result<()> {
        self.session().server(server, &Shutdown {})
    }
}

/// The names in a directory, fetched in parts. See [`Client::list`].
#[derive(Debug)]
pub struct Listing {
    client: Client,
    path: String,
    with_attributes: bool,
    entries: VecDeque<Entry>,
    after: Option<String>,
    has_more: bool,
}

impl Listing {
    fn fetch(&mut self) -> Result<()> {
        let part = self.part()?;
        self.has_more = part.has_more && !part.entries.is_empty();
        if let Some(last) = part.entries.last() {
            self.after = Some(last.name.clone());
        }
        self.entries = match Arc::try_unwrap(part) {
            Ok(part) => part.entries.into(),
            Err(part) => part.entries.iter().cloned().collect(),
        };
        Ok(())
    }

    /// The next part, asked for unless it is known.
    fn part(&self) -> Result<Arc<ListedPart>> {
        let session = self.client.session();
        session.check()?;
        let part = PartOf {
            path: self.path.clone(),
            after: self.after.clone(),
            with_attributes: self.with_attributes,
        };
        if let Some(known) = session.stamped.listed(&part) {
            return Ok(known);
        }
        let asking = session.stamped.ask(&session);
        let answer = session.manager(|| List {
            path: part.path.clone(),
            after: part.after.clone(),
            limit: LISTING,
            with_attributes: part.with_attributes,
            wants_stamps: asking.wants_stamps(),
        })?;
        let listed = Arc::new(ListedPart {
            entries: answer.entries,
            has_more: answer.has_more,
        });
        let stamped = answer.stamped;
        session.stamped.keep_listed(&asking, part, &listed, stamped);
        Ok(listed)
    }
}

impl Iterator for Listing {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.entries.is_empty()
            && self.has_more
            && let Err(error) = self.fetch()
        {
            self.has_more = false;
            return Some(Err(error));
        }
        self.entries.pop_front().map(Ok)
    }
}

/// What the metadata manager says where nothing is.
fn not_found(path: &str) -> Error {
    Error::Refused {
        status: wire::Status::NotFound,
        text: format!("{path}: no such file or directory"),
        server: None,
    }
}

/// A path from the root on.
pub(crate) fn absolute(path: &str) -> String {
    match path.starts_with('/') {
        true => path.into(),
        false => format!("/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_from_the_root() {
        assert_eq!(absolute("a/b"), "/a/b");
        assert_eq!(absolute("/a"), "/a");
        assert_eq!(absolute(""), "/");
    }
}
