//! Serving a directory: the lock, the servers, the note.
//!
//! A process holds a directory once, however many clients it makes; the servers stop with the last of
//! them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ioserver::IoServer;
use lockfile::{LockError, LockFile};
use metaserver::MetaServer;
use nix::sys::signal::{SigSet, SigmaskHow};
use parking_lot::Mutex;
use wire::url::Endpoint;

use crate::connect::Options;
use crate::directory::{Directory, Note, host_name};
use crate::error::Error;

/// A directory that this process serves.
#[derive(Debug)]
pub(crate) struct Holder {
    dir: Directory,
    process: u32,
    endpoint: Endpoint,
    servers: Option<(MetaServer, Vec<IoServer>)>,
    lock: Option<LockFile>,
}

/// Holders by directory, each with the process that made the entry.
type HolderTable = HashMap<Directory, (u32, Weak<Holder>)>;

/// Directories that this process serves. What a parent serves is not ours.
static HELD: Mutex<Option<HolderTable>> = Mutex::new(None);

impl Holder {
    /// Serves a directory, or finds that this process serves it already; `None` if another does.
    pub(crate) fn take(dir: &Directory, options: &Options) -> Result<Option<Arc<Holder>>, Error> {
        let mut held = HELD.lock();
        let held = held.get_or_insert_default();
        let process = std::process::id();
        if let Some((owner, holder)) = held.get(dir)
            && *owner == process
            && let Some(holder) = holder.upgrade()
        {
            return Ok(Some(holder));
        }
        let lock = match LockFile::acquire(&dir.lock()) {
            Ok(lock) => lock,
            Err(LockError::Held(_)) => return Ok(None),
            Err(LockError::Io(path, e)) => return Err(Error::Io(path, e)),
        };
        let here = serving::this_process();
        if let Some(note) = dir.read_note()
            && note.host != here.host
            && note.host_name != host_name()
        {
            return Err(Error::OtherHost {
                dir: dir.path().to_owned(),
                host: note.host_name,
            });
        }
        let (endpoint, servers) = with_signals_blocked(|| start(dir, options))?;
        let note = Note {
            pid: here.pid,
            host: here.host,
            host_name: host_name(),
            endpoint: endpoint.clone(),
        };
        let holder = Arc::new(Holder {
            dir: dir.clone(),
            process,
            endpoint,
            servers: Some(servers),
            lock: Some(lock),
        });
        dir.write_note(&note)
            .map_err(|e| Error::Io(dir.path().to_owned(), e))?;
        held.insert(dir.clone(), (process, Arc::downgrade(&holder)));
        Ok(Some(holder))
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Clients that are connected.
    pub(crate) fn clients(&self) -> usize {
        self.servers.as_ref().map_or(0, |(meta, _)| meta.clients())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A child has the parent's memory, not its threads: nothing runs that could be stopped.
            std::mem::forget(self.servers.take());
            std::mem::forget(self.lock.take());
            return;
        }
        if let Some((meta, io)) = self.servers.take() {
            for server in io {
                server.stop();
            }
            meta.stop();
        }
        self.dir.remove_note();
        drop(self.lock.take());
    }
}

type Servers = (Endpoint, (MetaServer, Vec<IoServer>));

fn start(dir: &Directory, options: &Options) -> Result<Servers, Error> {
    let failed = |why: String| Error::Start {
        dir: dir.path().to_owned(),
        why,
    };
    let sockets = dir.sockets()?;
    let listen = Endpoint::Unix(sockets.join("meta.sock"));
    let meta = metaserver::start(metaserver::Options {
        listen: vec![listen.clone()],
        ..metaserver::Options::new(dir.meta())
    })
    .map_err(|e| failed(e.to_string()))?;
    let count = dir.servers_found().max(options.servers).max(1);
    let mut io = Vec::with_capacity(count);
    for index in 0..count {
        let socket = Endpoint::Unix(sockets.join(format!("io-{index}.sock")));
        let store = ioserver::StoreOptions::Disk {
            dirs: vec![dir.io(index)],
            memory_limit_bytes: options.memory_bytes,
        };
        // A service that was killed may have left what it had not written back; nothing else is kept.
        let keeper = ioserver::KeeperOptions::one_in(dir.io(index));
        let server = ioserver::start(ioserver::Options {
            write_through: true,
            keeper: Some(keeper),
            ..ioserver::Options::new(listen.clone(), socket, store)
        })
        .map_err(|e| failed(e.to_string()))?;
        io.push(server);
    }
    Ok((listen, (meta, io)))
}

/// Threads that are started inside have all signals blocked.
fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let result = work();
    if let Ok(before) = before {
        // Setting a mask that was in force a moment ago cannot fail.
        let _ = before.thread_set_mask();
    }
    result
}
