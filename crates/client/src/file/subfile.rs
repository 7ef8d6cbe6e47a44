//! A subfile opened as a file of its own: the bytes that one element of the layout has, with a local pointer.
//!
//! ```text
//!  file      0 1 2 3 4 5 6 7 8 9 ...      layout: cyclic(2) onto 2
//!  subfile 1     0 1     2 3   ...        a view of the element; offsets are those in the subfile
//! ```
//!
//! The handle is one like any other, in the epochs of the file: others read and write the file meanwhile and see what is
//! written here. Only its view is fixed. The metadata manager describes subfiles to operators of the service and to nobody else.
//!
//! Invariants
//! - Nothing is read or written under another partition than the one that the subfile was opened in. While the file moves to another,
//!   and after that, every access is refused; a file whose subfiles only change their servers is followed.

use layout::Partition;
use wire::message::catalogue::{GetSubfile, SubfileIs};
use wire::{LayoutState, Place, Status};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::handle::Handle;
use crate::file::options::OpenOptions;

/// Which subfile a handle is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subfile {
    /// Its number, from 0 on.
    pub index: u64,
    /// Subfiles of the file.
    pub count: u64,
    /// The layout it belongs to, counted up by every change.
    pub generation: u64,
    /// The servers that hold it.
    pub places: Vec<Place>,
    partition: Partition,
}

impl Subfile {
    /// Whether a layout state still has it as it is.
    fn is_in(&self, state: &LayoutState) -> bool {
        let mut pieces = state.pieces.iter();
        pieces.all(|piece| piece.partition == self.partition)
    }
}

impl Handle {
    /// Refuses an access of a subfile that is no longer one of the file's.
    pub(crate) fn check_subfile(&self, state: &LayoutState) -> Result<()> {
        let Some(subfile) = self.subfile.get() else {
            return Ok(());
        };
        match subfile.is_in(state) {
            true => Ok(()),
            false => Err(gone(&self.identity.path, subfile, state)),
        }
    }

    /// Refuses what is the file's as a whole.
    pub(crate) fn check_whole(&self, what: &'static str) -> Result<()> {
        match self.subfile.get() {
            None => Ok(()),
            Some(subfile) => {
                let text = format!(
                    "is not for subfile {} alone; open {} as a file",
                    subfile.index, self.identity.path
                );
                Err(Error::argument(what, text))
            }
        }
    }
}

fn gone(path: &str, subfile: &Subfile, state: &LayoutState) -> Error {
    let newest = state.pieces.iter().map(|piece| piece.generation).max();
    let text = format!(
        "subfile {} of {path} belongs to generation {} of its layout, and the file is at {}; open it again",
        subfile.index,
        subfile.generation,
        newest.unwrap_or_default()
    );
    Error::Refused {
        status: Status::StaleLayout,
        text,
        server: None,
    }
}

impl Client {
    /// Opens one subfile of a file as a file: its bytes, in their order, from 0 on. For operators of the service (root, and the user
    /// who runs it): nothing else tells where bytes of a file lie.
    ///
    /// Reading, writing and seeking are as for files. When the file has got another layout every access is refused with
    /// [`Status::StaleLayout`]; what moves only from server to server is followed.
    pub fn open_subfile(&self, path: &str, index: u64, options: &OpenOptions) -> Result<File> {
        if options.create || options.append || options.delete_on_close {
            let text = "a subfile is opened for reading, writing or both, and nothing else";
            return Err(Error::argument("options", text));
        }
        let file = self.open(path, options)?;
        let handle = file.handle();
        let told: SubfileIs = file.session.manager(|| GetSubfile { handle, index })?;
        let state = file.layout();
        let partition = match &state.pieces[..] {
            [piece] if piece.generation == told.generation => piece.partition.clone(),
            // It has moved since it was opened.
            _ => {
                file.session.with_lane(|lane| file.fetch_state(lane))?;
                let state = file.layout();
                let piece = state
                    .pieces
                    .iter()
                    .find(|p| p.generation == told.generation);
                let moved = || Error::Refused {
                    status: Status::Busy,
                    text: format!("{path} is being given another layout; wait for its end"),
                    server: None,
                };
                piece.ok_or_else(moved)?.partition.clone()
            }
        };
        file.set_view(&told.view)?;
        let _ = file.subfile.set(Box::new(Subfile {
            index,
            count: told.count,
            generation: told.generation,
            places: told.places,
            partition,
        }));
        file.check_subfile(&file.layout())?;
        Ok(file)
    }
}

impl File {
    /// Which subfile it is, if it was opened as one.
    pub fn subfile(&self) -> Option<&Subfile> {
        self.0.subfile.get().map(|subfile| &**subfile)
    }

    /// Bytes of the view in the file as it is now: the length of the subfile, for one.
    pub fn view_len(&self) -> Result<u64> {
        let size = self.size()?;
        Ok(self.view().len_within(size))
    }
}
