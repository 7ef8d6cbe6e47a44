//! What lies in a directory, and the note about who serves it.
//!
//! The names are those that `pario up --dir` uses, so a directory can be served either way, one after
//! the other.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use wire::url::Endpoint;

use crate::error::Error;

/// Longest path of a socket that the kernel takes, less the longest name made here.
const MAX_SOCKET_DIR_BYTES: usize = 107 - "/io-999.sock".len();

/// A directory of files, made if it was not there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Directory {
    path: PathBuf,
}

/// Who serves a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Process number.
    pub(crate) pid: u64,
    /// Its host, as the kernel tells hosts apart.
    pub(crate) host: String,
    /// Its host, as people call it.
    pub(crate) host_name: String,
    /// Where it listens.
    pub(crate) endpoint: Endpoint,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Directory, Error> {
        let failed = |e: io::Error| Error::Io(path.to_owned(), e);
        lockfile::make_directory(path, 0o755).map_err(failed)?;
        Ok(Directory {
            path: path.canonicalize().map_err(failed)?,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    pub(crate) fn meta(&self) -> PathBuf {
        self.path.join("meta")
    }

    pub(crate) fn io(&self, index: usize) -> PathBuf {
        self.path.join(format!("io-{index}"))
    }

    /// Servers that have kept bytes here.
    pub(crate) fn servers_found(&self) -> usize {
        (0..).take_while(|&i| self.io(i).is_dir()).count()
    }

    /// Where the sockets go: into the directory, or where the kernel can address them.
    pub(crate) fn sockets(&self) -> Result<PathBuf, Error> {
        if self.path.as_os_str().len() <= MAX_SOCKET_DIR_BYTES {
            return Ok(self.path.clone());
        }
        let mut hasher = DefaultHasher::new();
        self.path.hash(&mut hasher);
        let user = rustix::process::geteuid().as_raw();
        let short = std::env::temp_dir().join(format!("pario-{user}-{:016x}", hasher.finish()));
        let failed = |e: io::Error| Error::Io(short.clone(), e);
        match fs::DirBuilder::new().mode(0o700).create(&short) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
            _ => {}
        }
        // Another user's directory of that name could hold that user's sockets.
        let found = fs::symlink_metadata(&short).map_err(failed)?;
        if !found.is_dir() || found.uid() != user {
            return Err(failed(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "exists and belongs to somebody else; set TMPDIR to a directory of your own",
            )));
        }
        Ok(short)
    }

    fn note_path(&self) -> PathBuf {
        self.path.join("holder")
    }

    /// The note of the process that serves, or served and died.
    pub(crate) fn read_note(&self) -> Option<Note> {
        let text = fs::read_to_string(self.note_path()).ok()?;
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                .map(str::to_owned)
        };
        Some(Note {
            pid: field("pid")?.parse().ok()?,
            host: field("host")?,
            host_name: field("host name")?,
            endpoint: field("endpoint")?.parse().ok()?,
        })
    }

    /// Leaves a note, whole or not at all.
    pub(crate) fn write_note(&self, note: &Note) -> io::Result<()> {
        let text = format!(
            "pid: {}\nhost: {}\nhost name: {}\nendpoint: {}\n",
            note.pid, note.host, note.host_name, note.endpoint
        );
        let new = self.path.join("holder.new");
        fs::write(&new, text)?;
        fs::rename(new, self.note_path())
    }

    pub(crate) fn remove_note(&self) {
        // One that is not there need not be removed.
        let _ = fs::remove_file(self.note_path());
    }
}

/// What this host calls itself.
pub(crate) fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_is_read_as_written_and_nonsense_is_none() {
        let temp = std::env::temp_dir().join(format!("pario-note-{}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&temp);
        let dir = Directory::open(&temp).unwrap();
        assert_eq!(dir.read_note(), None);
        let note = Note {
            pid: 77,
            host: "1-2-3 pid:[4026531836]".into(),
            host_name: "node7".into(),
            endpoint: Endpoint::Unix(temp.join("meta.sock")),
        };
        dir.write_note(&note).unwrap();
        assert_eq!(dir.read_note(), Some(note));
        fs::write(temp.join("holder"), "pid: x\n").unwrap();
        assert_eq!(dir.read_note(), None);
        fs::remove_dir_all(temp).unwrap();
    }

    #[test]
    fn sockets_of_a_deep_directory_are_elsewhere() {
        let temp = std::env::temp_dir().join(format!("pario-deep-{}", std::process::id()));
        let dir = Directory::open(&temp.join("d".repeat(120))).unwrap();
        let sockets = dir.sockets().unwrap();
        assert!(sockets.as_os_str().len() < MAX_SOCKET_DIR_BYTES);
        assert_eq!(sockets, dir.sockets().unwrap());
        fs::remove_dir_all(temp).unwrap();
        fs::remove_dir_all(sockets).unwrap();
    }
}
