//! An open file: views, pointers, and the operations of users.
//!
//! Skeleton: the signatures others build on; bodies follow.

use std::io::SeekFrom;
use std::sync::{Arc, Mutex};

use layout::{Sequence, View};
use wire::message::catalogue::Opened;
use wire::message::file::Synced;
use wire::{FileId, HandleId, LayoutState, Rights, Status};

use crate::error::{Error, Result, Trouble};
use crate::hints::Hints;
use crate::nonblocking::{Buffer, Request};
use crate::open_options::OpenOptions;
use crate::phases::Phases;
use crate::pipe::Pipe;
use crate::session::{Session, lock};

fn not_yet<T>() -> Result<T> {
    Err(Error::Refused {
        status: Status::Unsupported,
        text: "not built yet".into(),
        server: None,
    })
}

/// What threads and handles of an open file share.
#[derive(Debug)]
pub(crate) struct Open {
    session: Arc<Session>,
    opened: Opened,
    hints: Mutex<Hints>,
}

impl Open {
    pub(crate) fn new(
        session: &Arc<Session>,
        _path: String,
        options: &OpenOptions,
        opened: Opened,
    ) -> Result<Arc<Open>> {
        Ok(Arc::new(Open {
            session: session.clone(),
            opened,
            hints: Mutex::new(options.hints.clone()),
        }))
    }

    pub(crate) fn reopen(&self, _pipe: &mut Pipe) -> std::result::Result<(), Trouble> {
        Ok(())
    }
}

/// An open file. Threads may share it; it is closed when the last clone of the handle is dropped, or
/// by [`File::close`], which reports errors.
#[derive(Clone, Debug)]
pub struct File {
    open: Arc<Open>,
}

impl File {
    pub(crate) fn new(open: Arc<Open>) -> File {
        File { open }
    }

    pub(crate) fn begin(&self, _options: &OpenOptions) -> Result<()> {
        self.open.session.check()
    }

    /// The file's number.
    pub fn id(&self) -> FileId {
        self.open.opened.attributes.file
    }

    /// The handle, as the metadata manager knows it at present.
    pub fn handle(&self) -> HandleId {
        self.open.opened.handle
    }

    /// What the handle is for.
    pub fn rights(&self) -> Rights {
        self.open.opened.rights
    }

    /// Whether the file was created by this opening.
    pub fn is_new(&self) -> bool {
        self.open.opened.is_new
    }

    /// The array the file holds, if its creator said so.
    pub fn array(&self) -> Option<&layout::ArrayType> {
        None
    }

    /// Where the bytes of the file are, as last heard.
    pub fn layout(&self) -> Arc<LayoutState> {
        Arc::new(self.open.opened.layout.clone())
    }

    /// Sets the view of this handle. Its cost does not depend on the size of the file.
    pub fn set_view(&self, _view: &View) -> Result<()> {
        not_yet()
    }

    /// Sets a view in the layout language, applied to the file's array or to plain bytes, from the
    /// first byte of the file on: `(block, *) onto 4 [2]`, `slice[0:10, 3]`.
    pub fn set_view_text(&self, _text: &str) -> Result<()> {
        not_yet()
    }

    /// The same from another byte on.
    pub fn set_view_text_at(&self, _displacement: u64, _text: &str) -> Result<()> {
        not_yet()
    }

    /// The view of this handle.
    pub fn view(&self) -> View {
        View::whole_file()
    }

    /// Reads at an offset in view bytes; less than asked for only at the end of the file.
    pub fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> Result<usize> {
        not_yet()
    }

    /// Writes at an offset in view bytes. With [`OpenOptions::append`] it goes to the end instead.
    pub fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<usize> {
        not_yet()
    }

    /// Reads into described memory: byte j goes to `memory[origin + places.select(j)]`.
    pub fn read_at_memory(
        &self,
        _offset: u64,
        _memory: &mut [u8],
        _origin: usize,
        _places: &Sequence,
    ) -> Result<usize> {
        not_yet()
    }

    /// Writes from described memory: byte j comes from `memory[origin + places.select(j)]`.
    pub fn write_at_memory(
        &self,
        _offset: u64,
        _memory: &[u8],
        _origin: usize,
        _places: &Sequence,
    ) -> Result<usize> {
        not_yet()
    }

    /// Reads at the pointer of this handle and moves it.
    pub fn read(&self, _buffer: &mut [u8]) -> Result<usize> {
        not_yet()
    }

    /// Writes at the pointer of this handle and moves it.
    pub fn write(&self, _bytes: &[u8]) -> Result<usize> {
        not_yet()
    }

    /// Moves the pointer of this handle, in view bytes. The end is that of the view in the file.
    pub fn seek(&self, _to: SeekFrom) -> Result<u64> {
        not_yet()
    }

    /// Where the pointer of this handle stands, in view bytes.
    pub fn position(&self) -> u64 {
        0
    }

    /// Reads at the shared pointer and moves it.
    pub fn read_shared(&self, _buffer: &mut [u8]) -> Result<usize> {
        not_yet()
    }

    /// Writes at the shared pointer and moves it.
    pub fn write_shared(&self, _bytes: &[u8]) -> Result<usize> {
        not_yet()
    }

    /// Moves the shared pointer, in view bytes; where it stands then.
    pub fn seek_shared(&self, _to: SeekFrom) -> Result<u64> {
        not_yet()
    }

    /// Where the shared pointer stands.
    pub fn position_shared(&self) -> Result<u64> {
        not_yet()
    }

    /// Writes behind the end of the file, wherever that is by then; the offset in the file.
    pub fn append(&self, _bytes: &[u8]) -> Result<u64> {
        not_yet()
    }

    /// Begins to read; the buffer comes back with the [`Request`].
    pub fn read_at_nonblocking(&self, _offset: u64, buffer: Vec<u8>) -> Request {
        Request::done(not_yet(), Buffer::Owned(buffer))
    }

    /// Begins to write; the buffer comes back with the [`Request`].
    pub fn write_at_nonblocking(&self, _offset: u64, bytes: impl Into<Buffer>) -> Request {
        Request::done(not_yet(), bytes.into())
    }

    /// The size of the file, from the server that owns it.
    pub fn size(&self) -> Result<u64> {
        not_yet()
    }

    /// Sets the size. What is cut off is gone; what is added reads as zeros.
    pub fn resize(&self, _size: u64) -> Result<()> {
        not_yet()
    }

    /// Commits space for the bytes below `size`, and grows the file to it if it is shorter.
    pub fn preallocate(&self, _size: u64) -> Result<()> {
        not_yet()
    }

    /// Makes everything written so far durable, where the stores can; says whether they can.
    pub fn sync(&self) -> Result<Synced> {
        not_yet()
    }

    /// Enters or leaves atomic mode.
    pub fn set_atomic(&self, _is_atomic: bool) -> Result<()> {
        not_yet()
    }

    /// Whether the handle is in atomic mode.
    pub fn is_atomic(&self) -> bool {
        false
    }

    /// The hints of this handle.
    pub fn hints(&self) -> Hints {
        lock(&self.open.hints).clone()
    }

    /// Adds hints, replacing those of the same name.
    pub fn set_hints(&self, hints: &Hints) -> Result<()> {
        lock(&self.open.hints).merge(hints);
        Ok(())
    }

    /// How the last access of this handle went. Sends nothing.
    pub fn last_access(&self) -> Phases {
        Phases::default()
    }

    /// Space that the file takes at all its servers.
    pub fn allocated(&self) -> Result<u64> {
        not_yet()
    }

    /// Compares everything that is stored of the file with its checksums: blocks read and damaged.
    pub fn scrub(&self) -> Result<(u64, u64)> {
        not_yet()
    }

    /// Closes the file. Everything fails after that; closing again does nothing.
    pub fn close(&self) -> Result<()> {
        Ok(())
    }
}
