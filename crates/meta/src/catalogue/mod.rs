//! The durable half: names, attributes, layouts, views, sizes, members.
//!
//! A [`Catalogue`] is opened on a file or on any [`StorageBackend`]. Changes are made in a
//! [`Batch`], one transaction for as many operations as are waiting (group commit); reads come from
//! a [`Snapshot`]. Operations stand in the modules by what they change.
//!
//! Invariants
//! - [`Catalogue::transact`] returns after the transaction is durable. Results inside it may be
//!   told to clients only then.
//! - An operation that fails changes nothing; the other operations of its batch are not affected.
//! - When the store fails, nothing is acknowledged any more until the catalogue is opened again.
//! - File numbers, generations, incarnations and handles are never used twice.
//! - No clock is read: times come with the [`Caller`].
//!
//! Cost: a batch is one or two `fsync`; an operation reads and writes a handful of rows, whatever
//! the size of the file. Only layouts with irregular patterns have large rows.
//!
//! The format is `docs/formats/catalogue.md`.

mod access;
mod answered;
mod any_row;
mod attributes;
pub mod backup;
mod calibration;
mod change_array;
mod check;
mod choose_layout;
mod handles;
mod hints;
mod image;
mod layouts;
mod member;
mod names;
mod opening;
mod path;
mod prepared;
mod profiles;
mod record;
mod relayout;
mod remove_tree;
mod rewritten;
mod rows;
mod size;
mod stamped;
mod usage;
mod values;
mod version1;
mod views;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use control::settled::SettledSizes;
use control::stamps::StampKeeper;
use parking_lot::Mutex;
use redb::Database;
pub use redb::StorageBackend;

pub use access::Caller;
pub use answered::{Identity, WINDOW};
pub use any_row::read_row;
pub use check::Finding;
pub use choose_layout::MAX_SUBFILES;
pub use handles::OpenLimits;
pub use layouts::{CutByViews, LaidOutByViews, LayoutInfo};
pub use opening::OpenedFile;
pub use path::{MAX_NAME_BYTES, MAX_PATH_BYTES};
pub use prepared::{LayoutMeanings, LayoutQuestion};
pub use profiles::{AutoState, KeptProfile};
pub use record::MoveRecord;
pub use relayout::{MoveTarget, PartAt};
pub use remove_tree::TreeSurvey;
pub use stamped::Trail;

pub use usage::HintCounts;
pub use values::{MAX_VALUE_BYTES, MAX_VALUES, MAX_VALUES_BYTES};
pub use views::MAX_VIEW_BYTES;
pub use wire::message::catalogue::{
    ArrayIs, Attributes, Counts, CreateAnswer, CreateOptions, Entry, Expectation, Kind, LayoutSpec,
    Listing, Member, MemberState, NamedValue, NamedView, OpenOptions, SetTime, Severity, StoreKind,
    UnlinkHow,
};
pub use wire::message::cluster::{Join, Removal};
pub use wire::message::session::Credentials;

use crate::error::MetaError;
use crate::{ClientId, FileId, Time};
use answered::AnswerWindows;
use handles::Handles;
use record::{Body, Counter, Node, ROOT, count_up, counter, decode, key, put_node, set_counter};
use rewritten::RewritingDisk;
use rows::{Rows, RowsSnapshot, RowsTransaction, Transaction};
use usage::Usage;

/// Version of the format that this program writes; it reads this one and all before.
pub const VERSION: u64 = 6;

const MAGIC: &str = "pario catalogue";

/// Everything the service knows about its files.
#[derive(Debug)]
pub struct Catalogue {
    db: Arc<Database>,
    handles: Handles,
    answered: AnswerWindows,
    usage: Usage,
    /// Told of everything that changes, before and after it can be seen.
    stamping: Option<Arc<dyn StampKeeper>>,
    commits: u64,
    /// The store failed; what is durable is not known until it is opened again.
    failed: Option<MetaError>,
}

impl Catalogue {
    /// Opens the catalogue in a file, which is created if it does not exist. Another process that
    /// has it open is respected.
    pub fn open(path: &Path) -> Result<Self, MetaError> {
        let (image, new) = image::Image::open(path)?;
        let catalogue = Catalogue::open_on(image)?;
        new.map_or(Ok(()), image::NewImage::finish)?;
        Ok(catalogue)
    }

    /// Opens the catalogue on a disk of the caller's choice.
    pub fn open_on(backend: impl StorageBackend) -> Result<Self, MetaError> {
        let is_doubtful = Arc::new(AtomicBool::new(false));
        let disk = RewritingDisk::new(backend, Arc::clone(&is_doubtful));
        let mut builder = Database::builder();
        // Called before anything is written, if the last process did not close it.
        builder.set_repair_callback(move |_| is_doubtful.store(true, Ordering::Release));
        Catalogue::start(builder.create_with_backend(disk)?)
    }

    fn start(db: Database) -> Result<Self, MetaError> {
        let transaction = Transaction::begin(&db)?;
        let mut writing = transaction.rows()?;
        let rows = &mut writing;
        {
            let format = key::format();
            match rows.get(&format)? {
                Some(bytes) => {
                    let (magic, version) = decode(&format, &bytes, |r| {
                        let magic = r.text()?.to_owned();
                        let version = r.number()?;
                        // Whatever a newer version adds behind is not judged here.
                        r.take(r.left())?;
                        Ok((magic, version))
                    })?;
                    if magic != MAGIC {
                        return Err(MetaError::NotACatalogue);
                    }
                    if version > VERSION {
                        return Err(MetaError::NewerFormat {
                            found: version,
                            known: VERSION,
                        });
                    }
                    if version < 2 {
                        version1::rewrite(rows)?;
                    }
                    // Versions 3, 5 and 6 added kinds of rows, version 4 changes one of them.
                    if version == 3 {
                        answered::rewrite_version3(rows)?;
                    }
                    if version < VERSION {
                        put_format(rows);
                    }
                }
                None if !rows.scan(&[], None, 1)?.is_empty() => {
                    return Err(MetaError::NotACatalogue);
                }
                None => create(rows),
            }
        }
        let start = count_up(rows, Counter::Starts)?;
        let answered = AnswerWindows::load(rows, start + 1)?;
        // The clients of an earlier start may have the files of that time open, and come back late.
        let first = match start {
            0 => ROOT,
            _ => FileId(counter(rows, Counter::NextFile)?),
        };
        let (changed, _) = writing.finish()?;
        transaction.end(changed)?;
        Ok(Catalogue {
            db: Arc::new(db),
            handles: Handles::new(start, start > 0, SettledSizes::new(first)),
            answered,
            usage: Usage::default(),
            stamping: None,
            commits: 0,
            failed: None,
        })
    }

    /// Runs operations in one transaction. When this returns without error they are durable, and
    /// what they returned may be told to the client that asked.
    pub fn transact<T>(&mut self, work: impl FnOnce(&mut Batch<'_>) -> T) -> Result<T, MetaError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.run(work);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    fn run<T>(&mut self, work: impl FnOnce(&mut Batch<'_>) -> T) -> Result<T, MetaError> {
        let transaction = Transaction::begin(&self.db)?;
        let (result, changed, mut slots) = {
            let mut batch = Batch {
                rows: transaction.rows()?,
                handles: &mut self.handles,
                answered: &mut self.answered,
                usage: &mut self.usage,
                prepared: None,
                wanted: None,
                failed: None,
            };
            batch.handles.mark();
            let result = work(&mut batch);
            batch.sweep_answers();
            match batch.failed {
                Some(error) => return Err(error),
                None => {
                    let (changed, slots) = batch.rows.finish()?;
                    (result, changed, slots)
                }
            }
        };
        slots.extend(self.handles.take_touched());
        let slots: Vec<u32> = slots.into_iter().collect();
        let stamping = self.stamping.as_ref().filter(|_| !slots.is_empty());
        if let Some(stamping) = stamping {
            stamping.begin(&slots);
        }
        // If this fails nothing is told any more, and what was told is not believed: the slots stay in change.
        transaction.end(changed)?;
        if let Some(stamping) = stamping {
            stamping.end(&slots);
        }
        self.commits += u64::from(changed);
        Ok(result)
    }

    /// Takes snapshots for other threads while this one changes the catalogue.
    pub fn reader(&self) -> Reader {
        Reader {
            db: Arc::clone(&self.db),
        }
    }

    /// How many transactions had anything to make durable since the catalogue was opened.
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// The present state, for reading; later changes do not show in it.
    pub fn snapshot(&self) -> Result<Snapshot, MetaError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        Ok(Snapshot {
            rows: RowsSnapshot::begin(&self.db)?,
        })
    }

    /// Lets clients and users have so many files open from now on.
    pub fn limit_open(&mut self, limits: OpenLimits) {
        self.handles.limits = limits;
    }

    /// Whether clients of the start before may still open their handles again.
    pub fn is_recovering(&self) -> bool {
        self.handles.recovering
    }

    /// Tells of all changes from now on.
    pub fn stamp_changes(&mut self, stamping: Arc<dyn StampKeeper>) {
        self.stamping = Some(stamping);
    }

    /// What became of hints since the catalogue was opened.
    pub fn hint_counts(&self) -> HintCounts {
        self.usage.hints()
    }

    /// Number of open handles.
    pub fn handle_count(&self) -> usize {
        self.handles.len()
    }

    /// Number of handles that a client has open.
    pub fn handles_of(&self, client: ClientId) -> usize {
        self.handles.of_client(client).len()
    }

    /// Which files have the size that the catalogue has.
    pub fn settled(&self) -> Arc<Mutex<SettledSizes>> {
        Arc::clone(&self.handles.settled)
    }

    /// How often the catalogue was started, this start included.
    pub fn starts(&self) -> Result<u64, MetaError> {
        counter(&RowsSnapshot::begin(&self.db)?, Counter::Starts)
    }
}

fn put_format(rows: &mut RowsTransaction<'_>) {
    let mut format = Vec::new();
    record::put_text(&mut format, MAGIC);
    wire::put_number(&mut format, VERSION);
    rows.put(key::format(), format);
}

/// An empty catalogue: the format, and a root that everybody may use.
fn create(rows: &mut RowsTransaction<'_>) {
    put_format(rows);
    let root = Node {
        parent: ROOT,
        name: String::new(),
        owner: 0,
        group: 0,
        mode: 0o1777,
        accessed: Time(0),
        modified: Time(0),
        changed: Time(0),
        body: Body::Directory,
    };
    put_node(rows, ROOT, &root);
    set_counter(rows, Counter::NextFile, ROOT.0 + 1);
    set_counter(rows, Counter::Directories, 1);
}

/// Operations of one transaction.
///
/// Each either changes what it says or returns an error and changes nothing.
pub struct Batch<'c> {
    rows: RowsTransaction<'c>,
    handles: &'c mut Handles,
    answered: &'c mut AnswerWindows,
    usage: &'c mut Usage,
    prepared: Option<Arc<LayoutMeanings>>,
    wanted: Option<LayoutQuestion>,
    failed: Option<MetaError>,
}

/// A request ended in a panic: a bug. Nothing of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPanic;

impl std::fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").finish_non_exhaustive()
    }
}

impl Batch<'_> {
    /// Runs the operations of one request. If that panics, nothing of what they have changed is left, and the
    /// other requests of the transaction go on.
    pub fn request<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<T, RequestPanic> {
        self.handles.mark();
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        (self.prepared, self.wanted) = (None, self.wanted.take().filter(|_| done.is_ok()));
        match done {
            Ok(value) => {
                self.rows.discard();
                if let Err(error) = self.rows.settle() {
                    self.failed.get_or_insert(error);
                }
                Ok(value)
            }
            Err(_) => {
                self.rows.forget();
                self.handles.take_back();
                Err(RequestPanic)
            }
        }
    }

    /// From here to the end of the request layout texts mean what was found out before; others are not parsed but
    /// [wanted](Batch::take_wanted).
    pub fn prepare(&mut self, prepared: Arc<LayoutMeanings>) {
        self.prepared = Some(prepared);
    }

    /// The text whose meaning was missing in the last request, if one was.
    pub fn take_wanted(&mut self) -> Option<LayoutQuestion> {
        self.wanted.take()
    }

    /// One operation: its rows are kept if it succeeds.
    fn one<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, MetaError>,
    ) -> Result<T, MetaError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = work(self);
        match &result {
            Ok(_) => self.rows.keep(),
            Err(error) => {
                self.rows.discard();
                if error.is_fatal() {
                    self.failed = Some(error.clone());
                }
            }
        }
        result
    }
}

/// Takes snapshots. It does not know whether the store has failed since: the manager, which runs the
/// transactions does.
#[derive(Clone, Debug)]
pub struct Reader {
    db: Arc<Database>,
}

impl Reader {
    /// The state after the last transaction that is durable.
    pub fn snapshot(&self) -> Result<Snapshot, MetaError> {
        Ok(Snapshot {
            rows: RowsSnapshot::begin(&self.db)?,
        })
    }
}

/// A state of the catalogue, for reading.
#[derive(Debug)]
pub struct Snapshot {
    rows: RowsSnapshot,
}

impl Snapshot {
    /// The path of a file or directory; `None` when it has lost its name.
    pub fn path_of(&self, file: FileId) -> Result<Option<String>, MetaError> {
        path::path_of(&self.rows, file)
    }

    /// The directory that a file or directory is in, or was in when it still had a name; the root
    /// is in itself.
    pub fn parent_of(&self, file: FileId) -> Result<FileId, MetaError> {
        Ok(record::node(&self.rows, file)?.parent)
    }
}
