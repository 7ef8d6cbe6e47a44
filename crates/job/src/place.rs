//! Where the servers of a job are on a host: a directory of the user and the job, with a note about
//! who holds it.
//!
//! ```text
//! RUN            /dev/shm/pario-UID, else below the temporary directory; PARIO_RUN_DIR names another
//! RUN/KEY.lock   held by the holder, from before RUN/KEY is made until it is removed
//! RUN/KEY.start  held by the process that starts the holder
//! RUN/KEY/note   who holds, how far he is, where he listens
//! RUN/KEY/...    sockets, the secret, the catalogue
//! ```
//!
//! RUN is in memory where that is possible, so nothing of a job reaches a disk unasked. Both
//! directories have mode 0700 and belong to the user, or are refused. Locks die with their process;
//! what a killed holder left is removed by the next holder of any job of that user, once the job it
//! belonged to is over.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lockfile::{LockError, LockFile};
use wire::url::Endpoint;

use crate::error::Error;
use crate::identity::{Job, Span};
use crate::life::is_over;
use crate::process::Process;

/// The directory of a job on this host.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    run: PathBuf,
    key: String,
}

/// How far a holder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Servers are being started.
    Starting,
    /// Files are being moved in.
    Staging,
    /// Clients are served.
    Ready,
}

/// Who holds the servers of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) holder: Process,
    pub(crate) stage: Stage,
    /// Where clients of this host find the metadata manager; nothing before that is known.
    pub(crate) endpoint: Option<Endpoint>,
    /// Whether there is a secret in the directory.
    pub(crate) has_secret: bool,
    pub(crate) span: Span,
    /// Where bytes are spilled to.
    pub(crate) spill: Option<PathBuf>,
}

impl Place {
    /// The place of a job; RUN is made if it is not there.
    pub(crate) fn of(job: &Job) -> Result<Place, Error> {
        Ok(Place {
            run: run_directory()?,
            key: job.key.clone(),
        })
    }

    /// The place of a job that is there already, with the note; nothing is made.
    pub(crate) fn look(job: &Job) -> Option<(Place, Note)> {
        let places = run_directories().into_iter().map(|run| Place {
            run,
            key: job.key.clone(),
        });
        let is_ours = |place: &Place| is_private(&place.run);
        places
            .filter(is_ours)
            .find_map(|place| place.read_note().map(|note| (place, note)))
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.run.join(&self.key)
    }

    pub(crate) fn make(&self) -> Result<(), Error> {
        make_private(&self.dir())
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub(crate) fn secret(&self) -> PathBuf {
        self.dir().join("secret")
    }

    fn note_path(&self) -> PathBuf {
        self.dir().join("note")
    }

    /// Takes the lock of the holder; nothing if another process has it.
    pub(crate) fn hold(&self) -> Result<Option<LockFile>, Error> {
        acquire(&self.run.join(format!("{}.lock", self.key)))
    }

    /// Takes the right to start a holder; nothing if another process has it.
    pub(crate) fn begin(&self) -> Result<Option<Beginning>, Error> {
        let path = self.run.join(format!("{}.start", self.key));
        let lock = acquire(&path)?;
        Ok(lock.map(|lock| Beginning { path, _lock: lock }))
    }

    /// The note of the process that holds, or held and died.
    pub(crate) fn read_note(&self) -> Option<Note> {
        Note::parse(&fs::read_to_string(self.note_path()).ok()?)
    }

    /// Leaves a note, whole or not at all.
    pub(crate) fn write_note(&self, note: &Note) -> Result<(), Error> {
        let new = self.dir().join("note.new");
        write_private(&new, note.text().as_bytes())
            .and_then(|()| fs::rename(&new, self.note_path()))
            .map_err(|e| Error::Io(self.note_path(), e))
    }

    /// Removes everything. The holder's lock is held, and given up afterwards.
    pub(crate) fn remove(&self) {
        // First the note, so that nobody finds what is going away.
        let _ = fs::remove_file(self.note_path());
        let _ = fs::remove_dir_all(self.dir());
        let _ = fs::remove_file(self.run.join(format!("{}.lock", self.key)));
        // The last job of a user leaves nothing; others keep the directory.
        let _ = fs::remove_dir(&self.run);
    }

    /// Removes what killed holders of other jobs left behind.
    pub(crate) fn sweep(&self) {
        let entries = fs::read_dir(&self.run).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(key) = name.strip_suffix(".start") {
                let other = Place {
                    run: self.run.clone(),
                    key: key.into(),
                };
                // Taking it and giving it back removes it.
                drop(other.begin());
                continue;
            }
            let Some(key) = name.strip_suffix(".lock").filter(|key| *key != self.key) else {
                continue;
            };
            let other = Place {
                run: self.run.clone(),
                key: key.into(),
            };
            let note = other.read_note();
            if note.as_ref().is_some_and(|note| !is_over(&note.span)) {
                continue;
            }
            if let Ok(Some(_lock)) = other.hold() {
                if let Some(spill) = note.and_then(|note| note.spill) {
                    let _ = fs::remove_dir_all(spill);
                }
                other.remove();
            }
        }
    }
}

/// The right to start a holder, with the file that stands for it.
#[derive(Debug)]
pub(crate) struct Beginning {
    path: PathBuf,
    _lock: LockFile,
}

impl Drop for Beginning {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if let Some(run) = self.path.parent() {
            // Where nothing was started nothing is left.
            let _ = fs::remove_dir(run);
        }
    }
}

/// Takes a lock whose file may be removed by the process that gives it up.
pub(crate) fn acquire(path: &Path) -> Result<Option<LockFile>, Error> {
    loop {
        match LockFile::acquire(path) {
            Ok(lock) if lock.is_of(path) => return Ok(Some(lock)),
            // The file was removed between opening and locking: what is locked has no name any more.
            Ok(_) => {}
            Err(LockError::Held(_)) => return Ok(None),
            Err(LockError::Io(path, e)) => return Err(Error::Io(path, e)),
        }
    }
}

impl Note {
    fn text(&self) -> String {
        let stage = match self.stage {
            Stage::Starting => "starting",
            Stage::Staging => "staging",
            Stage::Ready => "ready",
        };
        let span = match &self.span {
            Span::Leader(p) => format!("leader {} {}", p.pid, p.started),
            Span::Ranks(p) => format!("ranks {} {}", p.pid, p.started),
            Span::Marked(name, value) => format!("marked {name} {value}"),
            Span::Elsewhere => "elsewhere".into(),
        };
        let mut text = format!(
            "holder: {} {}\nstage: {stage}\nspan: {span}\nsecret: {}\n",
            self.holder.pid, self.holder.started, self.has_secret
        );
        if let Some(endpoint) = &self.endpoint {
            text += &format!("endpoint: {endpoint}\n");
        }
        if let Some(spill) = &self.spill {
            text += &format!("spill: {}\n", spill.display());
        }
        text
    }

    fn parse(text: &str) -> Option<Note> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let process = |text: &str| {
            let (pid, started) = text.split_once(' ')?;
            Some(Process {
                pid: pid.parse().ok()?,
                started: started.parse().ok()?,
            })
        };
        let span = field("span")?;
        Some(Note {
            holder: process(field("holder")?)?,
            stage: match field("stage")? {
                "starting" => Stage::Starting,
                "staging" => Stage::Staging,
                "ready" => Stage::Ready,
                _ => return None,
            },
            endpoint: match field("endpoint") {
                Some(text) => Some(text.parse().ok()?),
                None => None,
            },
            has_secret: field("secret")? == "true",
            span: match span.split_once(' ') {
                Some(("leader", rest)) => Span::Leader(process(rest)?),
                Some(("ranks", rest)) => Span::Ranks(process(rest)?),
                Some(("marked", rest)) => {
                    let (name, value) = rest.split_once(' ')?;
                    Span::Marked(name.into(), value.into())
                }
                None if span == "elsewhere" => Span::Elsewhere,
                _ => return None,
            },
            spill: field("spill").map(PathBuf::from),
        })
    }
}

/// Where RUN may be, the best first.
fn run_directories() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os("PARIO_RUN_DIR").filter(|text| !text.is_empty()) {
        return vec![named.into()];
    }
    let name = format!("pario-{}", rustix::process::geteuid().as_raw());
    vec![
        Path::new("/dev/shm").join(&name),
        std::env::temp_dir().join(name),
    ]
}

/// RUN, made if it is not there.
fn run_directory() -> Result<PathBuf, Error> {
    let mut candidates = run_directories();
    let last = candidates.pop().unwrap_or_default();
    let good = candidates
        .into_iter()
        .find(|path| make_private(path).is_ok());
    match good {
        Some(path) => Ok(path),
        None => make_private(&last).map(|()| last),
    }
}

/// Makes a directory that only this user can look into; one that is there has to be such.
pub(crate) fn make_private(path: &Path) -> Result<(), Error> {
    let failed = |e: io::Error| Error::Io(path.to_owned(), e);
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
        _ => {}
    }
    if !is_private(path) {
        return Err(failed(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "is there, but not a directory that only you can use; remove it, or name another \
             one in PARIO_RUN_DIR",
        )));
    }
    Ok(())
}

/// Whether only this user can look into a directory.
fn is_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        let is_ours = found.uid() == rustix::process::geteuid().as_raw();
        found.is_dir() && is_ours && found.mode() & 0o077 == 0
    })
}

/// Writes a file that only this user can read.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    io::Write::write_all(&mut file, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_written_and_nonsense_is_none() {
        let holder = Process { pid: 7, started: 9 };
        let spans = [
            Span::Leader(holder),
            Span::Ranks(holder),
            Span::Marked("SLURM_JOB_ID".into(), "7 8".into()),
            Span::Elsewhere,
        ];
        for span in spans {
            let note = Note {
                holder,
                stage: Stage::Ready,
                endpoint: Some(Endpoint::Unix("/x/meta.sock".into())),
                has_secret: true,
                span,
                spill: Some("/scratch/x".into()),
            };
            assert_eq!(Note::parse(&note.text()), Some(note));
        }
        for nonsense in ["", "holder: x y\n", "holder: 1 2\nstage: ?\n"] {
            assert_eq!(Note::parse(nonsense), None);
        }
    }

    #[test]
    fn directories_of_others_and_open_ones_are_refused() {
        let temp = std::env::temp_dir().join(format!("pario-private-{}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&temp);
        make_private(&temp).unwrap();
        make_private(&temp).unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&temp, fs::Permissions::from_mode(0o755)).unwrap();
        let error = make_private(&temp).unwrap_err().to_string();
        assert!(error.contains("PARIO_RUN_DIR"), "{error}");
        let link = temp.join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        make_private(&link).unwrap_err();
        fs::remove_dir_all(temp).unwrap();
    }
}
