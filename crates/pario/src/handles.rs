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
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use client::{Client, Error, File, FileId, OpenOptions, Result, Status, Synced};

/// One handle, and whether it has written since its last sync.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) file: File,
    has_written: AtomicBool,
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

    /// Makes everything written durable. All handles are tried; the first error counts.
    pub(crate) fn sync(&self) -> Result<Synced> {
        let all = self.state.lock().all.clone();
        let mut synced = Synced { is_durable: true };
        let mut failed = None;
        let mut is_asked = false;
        let wrote = all.iter().filter(|handle| handle.has_written());
        for handle in wrote {
            is_asked = true;
            match handle.sync() {
                Ok(one) => synced.is_durable &= one.is_durable,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match (failed, all.first()) {
            (Some(error), _) => Err(error),
            // What others have written counts too.
            (None, Some(first)) if !is_asked => first.sync(),
            (None, _) => Ok(synced),
        }
    }

    /// Closes all handles, those of parts included. The first error counts.
    pub(crate) fn close(&self) -> Result<()> {
        let all = {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.idle.clear();
            std::mem::take(&mut state.all)
        };
        let closed = all.iter().map(|handle| handle.file.close());
        // None is left open because another one failed.
        let closed: Vec<Result<()>> = closed.collect();
        closed.into_iter().collect()
    }
}

impl Handle {
    fn new(file: File) -> Self {
        Handle {
            file,
            has_written: AtomicBool::new(false),
        }
    }

    /// The file, for a write.
    pub(crate) fn to_write(&self) -> &File {
        self.has_written.store(true, Ordering::Release);
        &self.file
    }

    fn has_written(&self) -> bool {
        self.has_written.load(Ordering::Acquire)
    }

    fn sync(&self) -> Result<Synced> {
        // A write that comes meanwhile is for the next sync.
        let had_written = self.has_written.swap(false, Ordering::AcqRel);
        let synced = self.file.sync();
        if synced.is_err() && had_written {
            self.has_written.store(true, Ordering::Release);
        }
        synced
    }
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
