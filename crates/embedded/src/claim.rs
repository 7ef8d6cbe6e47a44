//! Keeping a directory for servers that run in processes of their own: what `pario up` does.
//!
//! A process that uses the directory meanwhile, as `dir:PATH` or by default, finds the note and connects to
//! that service instead of serving the directory himself.

use std::path::Path;

use lockfile::{LockError, LockFile};
use wire::url::Endpoint;

use crate::directory::{Directory, Note, host_name};
use crate::error::Error;

/// A directory that nobody else serves while this exists.
#[derive(Debug)]
pub struct Claim {
    dir: Directory,
    lock: Option<LockFile>,
}

impl Claim {
    /// Takes a directory, which is made if it is not there; refused if another process serves it.
    pub fn take(path: &Path) -> Result<Claim, Error> {
        let dir = Directory::open(path)?;
        let note = dir.read_note();
        match LockFile::acquire(&dir.lock()) {
            Ok(lock) => {
                let claim = Claim {
                    dir,
                    lock: Some(lock),
                };
                let is_elsewhere = |note: &Note| {
                    note.host != serving::this_process().host && note.host_name != host_name()
                };
                match note.filter(is_elsewhere) {
                    Some(note) => Err(Error::OtherHost {
                        dir: claim.dir.path().to_owned(),
                        host: note.host_name,
                    }),
                    None => Ok(claim),
                }
            }
            Err(LockError::Held(_)) => Err(Error::Held {
                dir: dir.path().to_owned(),
                pid: note.map(|note| note.pid),
            }),
            Err(LockError::Io(path, e)) => Err(Error::Io(path, e)),
        }
    }

    /// Says where the directory is served.
    pub fn announce(&self, endpoint: &Endpoint) -> Result<(), Error> {
        let here = serving::this_process();
        let note = Note {
            pid: here.pid,
            host: here.host,
            host_name: host_name(),
            endpoint: endpoint.clone(),
        };
        self.dir
            .write_note(&note)
            .map_err(|e| Error::Io(self.dir.path().to_owned(), e))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.dir.remove_note();
        drop(self.lock.take());
    }
}
