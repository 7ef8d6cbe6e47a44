//! The services behind the files: one connection of the process to each, and which names are ours.
//!
//! | name | ours | path in Pario |
//! |---|---|---|
//! | `pario:NAME` | always | `/NAME` |
//! | below a mount of Pario | always | the rest of the path, at the service that the mount names |
//! | any other | with `PARIO_MPIIO=all` | made absolute, without a prefix such as `ufs:` |
//!
//! With `PARIO_MPIIO=off` none is. Of those that are ours only by `all`, one that Pario does not have and the file system has is
//! the MPI library's, unless it is opened to be created: inputs lie where they lay.
//!
//! Invariants
//! - A process has one connection per service; a child that was forked off makes its own.
//!
//! Left to others: who decides for all processes (`roll_call`).

use std::ffi::{CStr, OsStr, c_void};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use client::{Client, ConnectOptions, ServiceUrl};
use parking_lot::Mutex;

use crate::entry::Outcome;
use crate::failure::{Class, Failure};

/// Prefixes that name a kind of file system to the libraries of MPI.
const PREFIXES: &[&str] = &[
    "ufs:",
    "nfs:",
    "testfs:",
    "xfs:",
    "panfs:",
    "lustre:",
    "gpfs:",
    "pvfs2:",
    "daos:",
    "ime:",
    "quobyte:",
    "unify:",
    "unifyfs:",
    "plfs:",
    "pnfs:",
    "hfs:",
    "piofs:",
    "zoidfs:",
    "gridftp:",
    "bg:",
    "bglockless:",
    "ntfs:",
];

/// The kind of file system that a mount of Pario is, as the kernel names it.
const MOUNT_KIND: &str = "fuse.pario";

/// How long a call waits for a service that cannot be reached, unless `PARIO_TIMEOUT` says otherwise: a program that
/// handles errors hears of them within seconds, and a server that is started again is there by then.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file of ours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    /// The service; that of `PARIO_URL` if nothing.
    url: Option<String>,
    /// The path there.
    pub(crate) path: String,
    /// Whether directories above it are made as well, since the program made them elsewhere.
    pub(crate) makes_parents: bool,
}

/// Which files are taken from the MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakenFiles {
    /// Those that are named as Pario's.
    Named,
    Everything,
    Nothing,
}

impl TakenFiles {
    /// What a value of `PARIO_MPIIO` means; nothing for one that means nothing.
    fn of(value: &str) -> Option<TakenFiles> {
        match value.trim() {
            "" | "names" => Some(TakenFiles::Named),
            "all" => Some(TakenFiles::Everything),
            "off" => Some(TakenFiles::Nothing),
            _ => None,
        }
    }

    /// As the environment says. A value that cannot be read is told once.
    fn here() -> TakenFiles {
        let value = std::env::var("PARIO_MPIIO").unwrap_or_default();
        TakenFiles::of(&value).unwrap_or_else(|| {
            static TOLD: std::sync::Once = std::sync::Once::new();
            TOLD.call_once(|| {
                listen();
                tracing::warn!("PARIO_MPIIO is '{value}'; give all, names or off. Files named pario:... are taken");
            });
            TakenFiles::Named
        })
    }
}

impl Target {
    /// The file that a name means, if it is ours.
    pub(crate) fn of(name: &str) -> Option<Target> {
        let mounts = || fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        match TakenFiles::here() {
            TakenFiles::Nothing => None,
            taken => Target::found(name, taken, mounts),
        }
    }

    fn found(name: &str, taken: TakenFiles, mounts: impl FnOnce() -> String) -> Option<Target> {
        if let Some(path) = name.strip_prefix("pario:") {
            return Some(Target {
                url: None,
                path: path.to_owned(),
                makes_parents: false,
            });
        }
        if name.is_empty() {
            return None;
        }
        let prefix = PREFIXES.iter().find(|prefix| name.starts_with(**prefix));
        let name = prefix.map_or(name, |prefix| &name[prefix.len()..]);
        let table = mounts();
        if table.contains(MOUNT_KIND)
            && let Some(found) = below_mount(&absolute(name), &table)
        {
            return Some(found);
        }
        (taken == TakenFiles::Everything).then(|| Target {
            url: None,
            path: absolute(name).to_string_lossy().into_owned(),
            makes_parents: true,
        })
    }

    /// A number for it, the same in all processes that mean the same.
    pub(crate) fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let path = self.path.trim_start_matches('/');
        (&self.url, path).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether it is ours only because all are, Pario does not have it, and the file system has.
    pub(crate) fn is_of_host(&self) -> bool {
        let is_missing = |client: Client| matches!(client.stat(&self.path), Err(e) if e.status() == client::Status::NotFound);
        // A service that cannot be reached is an error of the opening, not a reason to look elsewhere.
        self.makes_parents
            && fs::symlink_metadata(&self.path).is_ok()
            && self.client().is_ok_and(is_missing)
    }

    /// The connection to its service.
    pub(crate) fn client(&self) -> Outcome<Client> {
        client_of(self.url.as_deref())
    }
}

/// The path without `.` and `..`, from the root on. Links are left alone: the file need not be there.
fn absolute(name: &str) -> PathBuf {
    let base = match name.starts_with('/') {
        true => PathBuf::from("/"),
        false => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
    };
    let mut path = PathBuf::from("/");
    for part in base.join(name).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::ParentDir => {
                path.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    path
}

/// The file that a path below a mount of Pario means.
fn below_mount(path: &Path, mounts: &str) -> Option<Target> {
    // The last mount that covers the path is the one that is seen.
    let mut found = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(source), Some(place), Some(kind)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if let Ok(rest) = path.strip_prefix(unescaped(place)) {
            let target = || Target {
                url: Some(unescaped(source)),
                path: Path::new("/").join(rest).to_string_lossy().into_owned(),
                makes_parents: false,
            };
            found = Some((kind == MOUNT_KIND).then(target));
        }
    }
    found.flatten()
}

/// A word of the table of mounts: the kernel writes blanks and the like as octal numbers.
fn unescaped(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 4);
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            None => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// A connection of this process.
struct Connection {
    process: u32,
    url: Option<String>,
    client: Client,
}

static CLIENTS: Mutex<Vec<Connection>> = Mutex::new(Vec::new());

/// Tells the program's user what `PARIO_LOG` asks for; by default what is out of order in this library alone.
pub(crate) fn listen() {
    static LISTENS: std::sync::Once = std::sync::Once::new();
    LISTENS.call_once(|| logging::listen("pario=warn"));
}

/// The connection to a service; made when it is first needed.
fn client_of(url: Option<&str>) -> Outcome<Client> {
    let process = std::process::id();
    let mut clients = CLIENTS.lock();
    let known = clients
        .iter()
        .find(|known| known.process == process && known.url.as_deref() == url);
    if let Some(known) = known {
        return Ok(known.client.clone());
    }
    listen();
    // Servers that have to be started are those of the same installation.
    if let Some(library) = library() {
        embedded::say_beside(library);
    }
    let unreachable = |text: String| Failure::new(Class::Io, text);
    let parsed: ServiceUrl = match url {
        None => embedded::url_here()?,
        Some(url) => url
            .parse()
            .map_err(|e| unreachable(format!("the mount names the service '{url}': {e}")))?,
    };
    let mut options = ConnectOptions::default();
    options.timeout = PATIENCE;
    let options = options.and_env()?;
    let client = embedded::connect(&parsed, options, &embedded::Options::from_env())?;
    clients.push(Connection {
        process,
        url: url.map(str::to_owned),
        client: client.clone(),
    });
    Ok(client)
}

/// Where this library lies.
fn library() -> Option<PathBuf> {
    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let inside = library as *const () as *const c_void;
    // SAFETY: any address may be asked for, and the answer goes to a place of its type.
    let is_found = unsafe { libc::dladdr(inside, &raw mut found) } != 0;
    if !is_found || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is terminated and lives while the library is loaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    fs::canonicalize(&path).ok()
}

/// Ends the connections of this process, so that the services hear a goodbye.
pub(crate) fn disconnect() {
    let clients = std::mem::take(&mut *CLIENTS.lock());
    for known in clients {
        if known.process != std::process::id() {
            // That of the parent: its goodbye is not this child's to say.
            std::mem::forget(known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_has_three_words() {
        assert_eq!(TakenFiles::of(""), Some(TakenFiles::Named));
        assert_eq!(TakenFiles::of(" all "), Some(TakenFiles::Everything));
        assert_eq!(TakenFiles::of("off"), Some(TakenFiles::Nothing));
        assert_eq!(TakenFiles::of("yes"), None);
    }

    fn found(
        name: &str,
        taken: TakenFiles,
        mounts: &str,
    ) -> Option<(Option<String>, String, bool)> {
        let target = Target::found(name, taken, || mounts.to_owned())?;
        Some((target.url, target.path, target.makes_parents))
    }

    #[test]
    fn names_with_our_prefix_are_ours_and_others_only_if_all_are() {
        assert_eq!(
            found("pario:a/b", TakenFiles::Named, ""),
            Some((None, "a/b".into(), false))
        );
        assert_eq!(found("/scratch/a", TakenFiles::Named, ""), None);
        assert_eq!(found("", TakenFiles::Everything, ""), None);
        for name in ["/scratch/./x/../a", "ufs:/scratch/a", "testfs:/scratch/a"] {
            let expected = Some((None, "/scratch/a".into(), true));
            assert_eq!(found(name, TakenFiles::Everything, ""), expected, "{name}");
        }
        let here = std::env::current_dir().unwrap();
        let expected = here.join("a").to_string_lossy().into_owned();
        assert_eq!(
            found("./a", TakenFiles::Everything, ""),
            Some((None, expected, true))
        );
    }

    #[test]
    fn paths_below_a_mount_belong_to_the_service_that_it_names() {
        let mounts = "/dev/sda / ext4 rw 0 0\n\
                      unix:/run/pario.sock /mnt/our\\040files fuse.pario rw 0 0\n\
                      tmpfs /mnt/our\\040files/tmp tmpfs rw 0 0\n";
        let service = Some("unix:/run/pario.sock".to_owned());
        assert_eq!(
            found("/mnt/our files/a/b", TakenFiles::Named, mounts),
            Some((service.clone(), "/a/b".into(), false))
        );
        assert_eq!(
            found("ufs:/mnt/our files/c", TakenFiles::Everything, mounts),
            Some((service, "/c".into(), false))
        );
        // Another file system lies over that part.
        assert_eq!(
            found("/mnt/our files/tmp/a", TakenFiles::Named, mounts),
            None
        );
        assert_eq!(
            found("/mnt/our filesystem", TakenFiles::Named, mounts),
            None
        );
    }

    #[test]
    fn the_same_file_has_one_number() {
        let number = |name| {
            Target::found(name, TakenFiles::Everything, String::new)
                .unwrap()
                .number()
        };
        assert_eq!(number("pario:/a"), number("pario:a"));
        assert_eq!(number("/tmp/x"), number("nfs:/tmp/./x"));
        assert_ne!(number("pario:a"), number("pario:b"));
    }
}
