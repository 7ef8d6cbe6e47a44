//! The handles of an open array, one for every part in use at a time.
//!
//! A view belongs to a handle, so a part has a handle to itself as long as it lives; then the next part gets it. An array
//! opens as many handles as it had parts at once.
//!
//! Invariants
//! - A handle is lent to one part at a time.
//! - All handles are of the same file; a path that names another one by now is refused.
//! - A handle that has written is synced by the next sync of the array, also when its part is gone: only the handle that wrote
//!   bytes hears that they were lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use client::{Client, Error, File, FileId, OpenOptions, Result, Status, SyncReport};

/// Writes of a handle, counted, and how many of them are synced. Syncs of the same time all see what none of them has
/// ended.
#[derive(Debug, Default)]
struct Writes {
    begun: AtomicU64,
    synced: AtomicU64,
}

impl Writes {
    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::AcqRel);
    }

    /// How many a sync that begins now will have settled; `None` if all are.
    fn to_sync(&self) -> Option<u64> {
        let begun = self.begun.load(Ordering::Acquire);
        (begun > self.synced.load(Ordering::Acquire)).then_some(begun)
    }

    /// A sync has settled so many.
    fn settle(&self, count: u64) {
        self.synced.fetch_max(count, Ordering::AcqRel);
    }
}

/// One handle, and what it has written since its last sync.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) file: File,
    writes: Writes,
}

/// All handles of an array.
#[derive(Debug)]
pub(crate) struct Handles {
    client: Client,
    path: String,
    options: OpenOptions,
    file: FileId,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    all: Vec<Arc<Handle>>,
    idle: Vec<Arc<Handle>>,
    is_closed: bool,
}

impl Handles {
    /// Begins with an open file; `options` open it again.
    pub(crate) fn new(client: &Client, path: &str, options: OpenOptions, file: File) -> Self {
        let id = file.id();
        let first = Arc::new(Handle::new(file));
        Handles {
            client: client.clone(),
            path: path.into(),
            options,
            file: id,
            state: Mutex::new(State {
                all: vec![Arc::clone(&first)],
                idle: vec![first],
                is_closed: false,
            }),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// A handle for one part.
    pub(crate) fn lend(self: &Arc<Self>) -> Result<LentHandle> {
        let idle = {
            let mut state = self.state.lock();
            if state.is_closed {
                return Err(Error::Closed);
            }
            state.idle.pop()
        };
        let handle = match idle {
            Some(handle) => handle,
            None => self.open_another()?,
        };
        Ok(LentHandle {
            handles: Arc::clone(self),
            handle,
        })
    }

    fn open_another(&self) -> Result<Arc<Handle>> {
        let file = self.client.open(&self.path, &self.options)?;
        if file.id() != self.file {
            return Err(Error::Refused {
                status: Status::NotFound,
                text: format!("{} is another file by now; open the array again", self.path),
                server: None,
            });
        }
        let handle = Arc::new(Handle::new(file));
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Error::Closed);
        }
        state.all.push(Arc::clone(&handle));
        Ok(handle)
    }

    /// Makes everything written durable. All handles are tried; a loss counts before any other error, else the first.
    pub(crate) fn sync(&self) -> Result<SyncReport> {
        let all = self.state.lock().all.clone();
        let mut report = SyncReport { is_durable: true };
        let wrote = all
            .iter()
            .filter(|handle| handle.writes.to_sync().is_some());
        let synced: Vec<Result<SyncReport>> = wrote.map(|handle| handle.sync()).collect();
        if let (true, Some(first)) = (synced.is_empty(), all.first()) {
            // What others have written counts too.
            return first.sync();
        }
        loss_first(synced, |one| report.is_durable &= one.is_durable)?;
        Ok(report)
    }

    /// Closes all handles, those of parts included. A loss counts before any other error, else the first.
    pub(crate) fn close(&self) -> Result<()> {
        let all = {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.idle.clear();
            std::mem::take(&mut state.all)
        };
        let closed = all.iter().map(|handle| handle.file.close());
        // None is left open because another one failed.
        loss_first(closed.collect(), drop)
    }
}

impl Handle {
    fn new(file: File) -> Self {
        Handle {
            file,
            writes: Writes::default(),
        }
    }

    /// The file, for a write.
    pub(crate) fn to_write(&self) -> &File {
        self.writes.begin();
        &self.file
    }

    fn sync(&self) -> Result<SyncReport> {
        // A write that comes meanwhile is for the next sync.
        let settled = self.writes.to_sync();
        let report = self.file.sync()?;
        self.writes.settle(settled.unwrap_or(0));
        Ok(report)
    }
}

/// Hands out what went well; then a loss of bytes before any other failure, else the first one.
fn loss_first<T>(results: Vec<Result<T>>, take: impl FnMut(T)) -> Result<()> {
    let is_loss = |result: &Result<T>| matches!(result, Err(Error::LostWrites { .. }));
    let (lost, others): (Vec<_>, Vec<_>) = results.into_iter().partition(is_loss);
    let all: Result<Vec<T>> = lost.into_iter().chain(others).collect();
    all.map(|all| all.into_iter().for_each(take))
}

/// A handle that goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct LentHandle {
    handles: Arc<Handles>,
    handle: Arc<Handle>,
}

impl std::ops::Deref for LentHandle {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for LentHandle {
    fn drop(&mut self) {
        let mut state = self.handles.state.lock();
        if !state.is_closed {
            state.idle.push(Arc::clone(&self.handle));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_of_one_time_all_see_what_was_written_before() {
        let writes = Writes::default();
        assert_eq!(writes.to_sync(), None);
        writes.begin();
        let first = writes.to_sync();
        assert_eq!((first, writes.to_sync()), (Some(1), Some(1)));
        // What is written while a sync runs is for the next one.
        writes.begin();
        writes.settle(1);
        assert_eq!(writes.to_sync(), Some(2));
        writes.settle(2);
        writes.settle(1);
        assert_eq!(writes.to_sync(), None);
    }

    #[test]
    fn a_loss_counts_before_any_other_error() {
        let lost = || Error::LostWrites {
            servers: Vec::new(),
            since_seconds: 1,
        };
        let mut taken = 0;
        let results = vec![Ok(1), Err(Error::Closed), Err(lost()), Ok(2)];
        assert_eq!(loss_first(results, |n: i32| taken += n), Err(lost()));
        assert_eq!(
            loss_first(vec![Ok(1), Err(Error::Closed)], drop),
            Err(Error::Closed)
        );
        assert_eq!(loss_first(vec![Ok(1), Ok(2)], |n: i32| taken += n), Ok(()));
        assert_eq!(taken, 3);
    }
}
