//! Holding the servers of a job on a host: what `pario hold-job` does.
//!
//! From the lock to the last file removed: the servers are started, files are moved in, the note says
//! that clients are served; then the job's processes are waited for, files are moved out or written
//! back, and everything is taken down.
//!
//! The holder of the first host ends when no process of the job is left there and nobody is
//! connected any more, or when its leader ends; holders of other hosts end with the first one, and
//! keep a session there as long as they have processes of the job, so that it waits for them.
//! A signal ends a holder in order.

use std::fs;
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use client::{Client, ConnectOptions};
use ioserver::{IoServer, StoreOptions};
use layout::ByteSize;
use lockfile::LockFile;
use metaserver::MetaServer;
use serving::{Keys, Secret};
use wire::link::Link;
use wire::url::Endpoint;

use crate::backing::Directory;
use crate::error::Error;
use crate::identity::{Job, Span};
use crate::life::living;
use crate::options::Options;
use crate::place::{Note, Place, Stage, make_private, write_private};
use crate::process::{Process, WakeCause, wait};
use crate::rendezvous::HostRole;
use crate::spawn::{HELD, READY};
use crate::stage::{StagingTotals, Watcher, all_files};

/// Between two looks at who is connected, when no process of the job is left here.
const LOOK: Duration = Duration::from_millis(20);
/// Clients that outlive their launcher have so much time.
const FAREWELL: Duration = Duration::from_secs(5);
/// Between two looks whether the first host is there.
const REACH: Duration = Duration::from_millis(500);
/// With a backing directory writers wait so long for others to be evicted.
const ROOM: Duration = Duration::from_secs(30);
/// Most names in a warning.
const NAMED: usize = 5;

/// How holding ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Another process holds the servers of this job.
    HeldByOther,
    /// The job is over, and all that was to be kept is kept.
    Over,
    /// The job is over, and something could not be moved out; it was said.
    Lost,
}

/// Holds the servers of a job until it is over. `told` is a pipe into which something is written when it
/// has to end, by the thread that has `tell`; `say` hears one line when clients are served.
pub fn hold(
    job: &Job,
    options: &Options,
    told: &PipeReader,
    tell: PipeWriter,
    say: &mut dyn FnMut(&str),
) -> Result<Outcome, Error> {
    let place = Place::of(job)?;
    let Some(lock) = place.hold()? else {
        say(HELD);
        return Ok(Outcome::HeldByOther);
    };
    let mut holder = Holder {
        job,
        options,
        note: Note {
            holder: Process::this(),
            stage: Stage::Starting,
            endpoint: None,
            has_secret: false,
            span: job.span.clone(),
            spill: None,
        },
        place,
        part: HostRole::Alone,
        servers: None,
        lock: Some(lock),
    };
    holder.start(tell)?;
    let Some(servers) = &holder.servers else {
        return Ok(Outcome::Over);
    };
    let client = servers.client.clone().filter(|_| servers.meta.is_some());
    if let Some(client) = client
        && !options.stage_in.is_empty()
    {
        holder.note.stage = Stage::Staging;
        holder.place.write_note(&holder.note)?;
        for stage in &options.stage_in {
            let mut lines = Lines::new("staging in");
            let moved = stage.move_in(&client, &mut lines)?;
            said("staged in", moved, &stage.local.display().to_string());
        }
    }
    holder.note.stage = Stage::Ready;
    holder.place.write_note(&holder.note)?;
    say(&holder.ready_line());
    holder.until_over(told)?;
    Ok(holder.end())
}

struct Holder<'a> {
    job: &'a Job,
    options: &'a Options,
    place: Place,
    note: Note,
    part: HostRole,
    servers: Option<Servers>,
    lock: Option<LockFile>,
}

struct Servers {
    meta: Option<Arc<MetaServer>>,
    /// Waits for a request to end.
    waiting: Option<JoinHandle<()>>,
    io: Vec<IoServer>,
    /// Where clients of this host find the manager.
    manager: Endpoint,
    /// Where those of other hosts do.
    outside: Option<Endpoint>,
    /// This process as a client; given up when others need not wait for this host.
    client: Option<Client>,
    backing: Option<Arc<Directory>>,
}

impl Holder<'_> {
    fn start(&mut self, tell: PipeWriter) -> Result<(), Error> {
        // What a holder of the same name left that was killed.
        let _ = fs::remove_dir_all(self.place.dir());
        self.place.make()?;
        self.place.write_note(&self.note)?;
        self.place.sweep();
        self.part = HostRole::find(self.job, self.options)?;
        if let Some(secret) = self.part.secret() {
            let path = self.place.secret();
            write_private(&path, secret.as_bytes()).map_err(|e| Error::Io(path, e))?;
            self.note.has_secret = true;
        }
        if let Some(spill) = &self.options.spill {
            let user = rustix::process::geteuid().as_raw();
            let dir = spill.join(format!("pario-{user}-{}", self.job.key));
            self.note.spill = Some(dir.clone());
            self.place.write_note(&self.note)?;
            let _ = fs::remove_dir_all(&dir);
            make_private(&dir)?;
        }
        let servers = self.start_servers(tell)?;
        self.note.endpoint = Some(servers.manager.clone());
        let own: Vec<Endpoint> = servers.io.iter().map(|io| io.endpoint().clone()).collect();
        let outside = servers.outside.as_ref().unwrap_or(&servers.manager).clone();
        self.servers = Some(servers);
        self.part.write_down(&outside, &own)
    }

    fn start_servers(&self, tell: PipeWriter) -> Result<Servers, Error> {
        let failed = |why: String| Error::Start {
            job: self.job.key.clone(),
            why,
        };
        // All processes of a job work for one user; a process that has its secret may be any of them.
        let secret = self.part.secret().map(|text| Secret::new(text.as_bytes()));
        let keys = Keys {
            server: (self.part.secret()).map(|t| Secret::new(format!("{t} servers").as_bytes())),
            user: secret.clone(),
            tls: None,
        };
        let network = match self.part {
            HostRole::Alone => None,
            _ => Some(self.part.address(self.options)?),
        };
        let listen = |name: String| match &network {
            Some(host) => Endpoint::Tcp {
                host: host.clone(),
                port: 0,
            },
            None => Endpoint::Unix(self.place.socket(&name)),
        };
        let mut backing = None;
        let mut outside = None;
        let mut meta = None;
        let manager = match &self.part {
            HostRole::Further { manager, .. } => manager.clone(),
            HostRole::Alone | HostRole::First { .. } => {
                if let Some(dir) = &self.options.backing {
                    backing = Some(Arc::new(Directory::new(dir)));
                }
                let here = Endpoint::Unix(self.place.socket("meta.sock"));
                let mut endpoints = vec![here.clone()];
                if network.is_some() {
                    endpoints.push(listen(String::new()));
                }
                let server = metaserver::start(metaserver::Options {
                    listen: endpoints,
                    keys: keys.clone(),
                    trust: metaserver::Trust::everybody(),
                    backing: backing.clone().map(|b| b as Arc<dyn metaserver::Backing>),
                    ..metaserver::Options::new(self.place.dir().join("meta"))
                })
                .map_err(|e| failed(e.to_string()))?;
                let tcp = |e: &&Endpoint| matches!(e, Endpoint::Tcp { .. });
                outside = server.endpoints().iter().find(tcp).cloned();
                meta = Some(Arc::new(server));
                here
            }
        };
        let mut io = Vec::new();
        for index in 0..self.options.servers {
            let name = format!("io-{index}.sock");
            let mut options =
                ioserver::Options::new(manager.clone(), listen(name.clone()), self.store(index));
            options.listen_local = network.as_ref().map(|_| self.place.socket(&name));
            options.keys = keys.clone();
            // Nothing here is to survive the process.
            options.write_through = false;
            if self.options.backing.is_some() {
                options.room_wait = ROOM;
            }
            options.when_full = Some(self.when_full());
            io.push(ioserver::start(options).map_err(|e| failed(e.to_string()))?);
        }
        let connection = ConnectOptions::default();
        let connection = match secret.is_some() {
            true => connection.with_secret_file(&self.place.secret())?,
            false => connection,
        };
        let client = Client::connect_with(Arc::new(manager.clone()), connection.clone())?;
        if let Some(backing) = &backing {
            let own = Client::connect_with(Arc::new(manager.clone()), connection)?;
            backing.start(own)?;
        }
        let waiting = meta.clone().map(|meta| {
            std::thread::spawn(move || {
                meta.wait();
                let _ = { tell }.write_all(b"x");
            })
        });
        Ok(Servers {
            meta,
            waiting,
            io,
            manager,
            outside,
            client: Some(client),
            backing,
        })
    }

    fn store(&self, index: usize) -> StoreOptions {
        let limit_bytes = self.options.memory_of_one();
        match &self.note.spill {
            None => StoreOptions::Memory { limit_bytes },
            Some(dir) => StoreOptions::Disk {
                dirs: vec![dir.join(format!("io-{index}"))],
                memory_limit_bytes: limit_bytes,
            },
        }
    }

    fn when_full(&self) -> String {
        let has = ByteSize(self.options.memory_of_one());
        format!(
            "each server of this job has {has}: give them more with --memory (PARIO_MEMORY), name a \
             directory for the rest with --spill (PARIO_SPILL), or remove files"
        )
    }

    fn ready_line(&self) -> String {
        let Some(servers) = &self.servers else {
            return String::new();
        };
        let mut line = format!("{READY}{}", servers.manager);
        if let (Some(outside), Some(secret)) = (&servers.outside, self.part.secret()) {
            line += &format!("\t{outside}\t{secret}");
        }
        line
    }

    /// Waits for the end of the job.
    fn until_over(&mut self, told: &PipeReader) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::Io("/proc".into(), e);
        let told = told.as_fd();
        if let HostRole::Further { manager, .. } = &self.part {
            let manager = manager.clone();
            return self.until_first_ends(&manager, told).map_err(failed);
        }
        if let Span::Leader(leader) = self.job.span {
            return wait(&[leader], None, told, None).map(drop).map_err(failed);
        }
        let pause = match self.job.span {
            Span::Marked(..) => self.options.linger,
            _ => LOOK,
        };
        let launcher = match self.job.span {
            Span::Ranks(launcher) => Some(launcher),
            _ => None,
        };
        let mut alone_since: Option<Instant> = None;
        loop {
            let here = living(&self.job.span);
            if !here.is_empty() {
                alone_since = None;
                if wait(&here, launcher, told, None).map_err(failed)? == WakeCause::Told {
                    return Ok(());
                }
                continue;
            }
            let alone = alone_since.get_or_insert_with(Instant::now).elapsed();
            let has_launcher = launcher.is_none_or(Process::is_running);
            let is_used = self.sessions() > 0;
            let is_over = match is_used {
                true => !has_launcher && alone > FAREWELL,
                false => alone > pause || matches!(self.job.span, Span::Ranks(_)),
            };
            if is_over || wait(&[], None, told, Some(LOOK)).map_err(failed)? == WakeCause::Told {
                return Ok(());
            }
        }
    }

    /// Sessions of others.
    fn sessions(&self) -> usize {
        let Some(servers) = &self.servers else {
            return 0;
        };
        let own = 1 + usize::from(servers.backing.is_some());
        let all = servers.meta.as_ref().map_or(0, |meta| meta.clients());
        all.saturating_sub(own)
    }

    fn until_first_ends(
        &mut self,
        manager: &Endpoint,
        told: std::os::fd::BorrowedFd<'_>,
    ) -> std::io::Result<()> {
        let mut misses = 0;
        loop {
            let mut here = Vec::new();
            if let Some(servers) = &mut self.servers
                && servers.client.is_some()
            {
                here = living(&self.job.span);
                if here.is_empty() {
                    // The first host need not wait for this one any more.
                    servers.client = None;
                }
            }
            if wait(&here, None, told, Some(REACH))? == WakeCause::Told {
                return Ok(());
            }
            match Link::connect(manager, Duration::from_secs(1)) {
                Ok(_) => misses = 0,
                Err(_) if misses > 0 => return Ok(()),
                Err(_) => misses += 1,
            }
        }
    }

    /// Moves out what is to be kept, and takes everything down.
    fn end(mut self) -> Outcome {
        let mut failures = Vec::new();
        if let Some(servers) = &self.servers
            && servers.meta.is_some()
            && let Some(client) = &servers.client
        {
            for stage in &self.options.stage_out {
                let mut lines = Lines::new("staging out");
                let (moved, failed) = stage.move_out(client, &mut lines);
                said("staged out", moved, &stage.local.display().to_string());
                failures.extend(failed);
            }
            if let Some(backing) = &servers.backing {
                failures.extend(backing.finish());
            }
            for failure in &failures {
                tracing::error!("not kept: {failure}");
            }
            if self.job.is_single && servers.backing.is_none() {
                self.warn(client);
            }
        }
        self.take_down();
        match failures.is_empty() {
            true => Outcome::Over,
            false => Outcome::Lost,
        }
    }

    /// Says what goes with a job that nobody may have meant to be one.
    fn warn(&self, client: &Client) {
        let mut left = all_files(client);
        left.retain(|(path, _)| !self.options.stage_out.iter().any(|s| s.covers(path)));
        if left.is_empty() {
            return;
        }
        let bytes: u64 = left.iter().map(|(_, size)| size).sum();
        let mut names: Vec<&str> = left.iter().take(NAMED).map(|(p, _)| p.as_str()).collect();
        if left.len() > NAMED {
            names.push("...");
        }
        let what = match left.len() {
            1 => "a file that was not staged out and is lost".to_owned(),
            n => format!("{n} files that were not staged out and are lost"),
        };
        tracing::warn!(
            "the job has ended with {what} ({bytes} bytes): {}; name them in PARIO_STAGE_OUT, or \
             put `pario run` around all programs that use them",
            names.join(", ").escape_debug(),
        );
    }

    fn take_down(&mut self) {
        if let Some(servers) = self.servers.take() {
            drop(servers.client);
            drop(servers.backing);
            if self.note.spill.is_some() {
                // Stopping would write to disk what is removed in a moment; they end with the process.
                std::mem::forget(servers.io);
            } else {
                for server in servers.io {
                    server.stop();
                }
            }
            if let Some(meta) = servers.meta {
                meta.stopper()();
                if let Some(waiting) = servers.waiting {
                    let _ = waiting.join();
                }
                // The last one: it stops the manager.
                drop(meta);
            }
        }
        if let Some(spill) = &self.note.spill {
            let _ = fs::remove_dir_all(spill);
        }
        self.part.remove();
        self.place.remove();
        drop(self.lock.take());
    }
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        if self.lock.is_some() {
            self.take_down();
        }
    }
}

/// Says now and then how far a transfer is.
struct Lines {
    what: &'static str,
    total: u64,
    done: u64,
    said: Instant,
}

/// Between two lines.
const INTERVAL: Duration = Duration::from_secs(10);

impl Lines {
    fn new(what: &'static str) -> Lines {
        Lines {
            what,
            total: 0,
            done: 0,
            said: Instant::now(),
        }
    }
}

impl Watcher for Lines {
    fn total(&mut self, bytes: u64) {
        self.total = bytes;
    }

    fn file(&mut self, _: &str) {}

    fn moved(&mut self, bytes: u64) {
        self.done += bytes;
        if self.said.elapsed() > INTERVAL {
            self.said = Instant::now();
            let (done, total) = (self.done >> 20, self.total >> 20);
            tracing::info!("{}: {done} of {total} MiB", self.what);
        }
    }
}

fn said(what: &str, moved: StagingTotals, name: &str) {
    let StagingTotals { files, bytes } = moved;
    tracing::info!(files, bytes, "{what} {name}");
}
