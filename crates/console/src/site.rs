//! Services that live as long as a value: a metadata manager and I/O servers in processes of their own, on this
//! host or spread over several, for benchmarks and the demo, which leave nothing behind.
//!
//! Their files are in a temporary directory. The processes end with the value, and also when this process is
//! killed: they follow it as workers follow their supervisor. On this host they are reached by Unix sockets, TCP or TLS with
//! certificates of their own, between hosts by TCP with a secret of their own. The metadata manager has a host of its own there, so that only
//! data waits for links.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::Error;
use job::Process;

/// The flag with which a server is told whom it follows: a process number.
pub const SUPERVISED: &str = "--supervised-by";

/// A program of this installation: beside the one that runs, else on the path.
pub fn program(name: &str) -> PathBuf {
    let here = std::env::current_exe().ok();
    let beside = here.map(|here| here.with_file_name(name));
    let beside = beside.filter(|program| program.is_file());
    beside.unwrap_or_else(|| name.into())
}

/// How clients and servers are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Sockets of the host.
    Unix,
    /// Its own network.
    Tcp,
    /// Its own network, under TLS.
    Tls,
}

impl Transport {
    /// As it stands in names of cases.
    pub fn word(self) -> &'static str {
        match self {
            Transport::Unix => "unix",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
        }
    }

    /// Where something listens that is called `name`.
    pub fn address(self, dir: &Path, name: &str) -> String {
        match self {
            Transport::Unix => format!("unix:{}", dir.join(name).display()),
            Transport::Tcp | Transport::Tls => "tcp:127.0.0.1:0".to_owned(),
        }
    }
}

/// A directory that is removed with the value.
#[derive(Debug)]
pub struct ScratchDir(
    /// Where it is.
    pub PathBuf,
);

impl ScratchDir {
    /// A new one, for this user only.
    pub fn new() -> Result<ScratchDir, Error> {
        ScratchDir::below(&std::env::temp_dir())
    }

    /// A new one in a directory, for this user only.
    pub fn below(parent: &Path) -> Result<ScratchDir, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pario-{}-{number}", std::process::id());
        let path = parent.join(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(ScratchDir(path))
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // What cannot be removed stays behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How long a process may take to end before it is ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// A child process that has said where it listens, and ends with the value.
#[derive(Debug)]
pub struct ListeningChild {
    child: Child,
    /// Where it listens.
    pub url: String,
}

impl ListeningChild {
    /// Starts a program of Pario, perhaps on another host; it says `{"listening": URL}` when it is ready.
    pub fn start(
        mut command: Command,
        arguments: &[&str],
        log: Option<&Path>,
    ) -> Result<ListeningChild, Error> {
        let errors = match log {
            Some(path) => fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(|e| format!("cannot write {}: {e}", path.display()))?
                .into(),
            None => Stdio::inherit(),
        };
        let mut child = command
            .args(arguments)
            .env_remove("PARIO_SECRET")
            .env_remove("PARIO_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("cannot start pario {}: {e}", arguments.join(" ")))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.as_mut() {
            // It says something or ends, within its own limits.
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let started = ListeningChild {
            child,
            url: said["listening"].as_str().unwrap_or("").to_owned(),
        };
        if started.url.is_empty() {
            let why = said["error"].as_str().unwrap_or("it said nothing");
            let what = arguments.join(" ");
            return Err(format!("`pario {what}` does not serve: {why}").into());
        }
        Ok(started)
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ListeningChild {
    fn drop(&mut self) {
        if let Some(process) = Process::with_number(self.child.id()) {
            process.terminate();
            process.wait_for_end(PATIENCE);
        }
        // Does nothing to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// In the memory of the servers.
    Memory,
    /// In files below the temporary directory.
    Disk,
}

impl Store {
    /// As it stands in names of cases.
    pub fn word(self) -> &'static str {
        match self {
            Store::Memory => "memory",
            Store::Disk => "disk",
        }
    }
}

/// What a service consists of.
#[derive(Clone, Debug)]
pub struct ServiceSpec {
    /// I/O servers.
    pub servers: usize,
    /// Where they keep bytes.
    pub store: Store,
    /// How they are reached on this host.
    pub transport: Transport,
    /// Of each server, in bytes.
    pub memory: u64,
    /// More arguments of each server.
    pub options: Vec<String>,
    /// What its directory is made in; nothing for the temporary directory.
    pub parent: Option<PathBuf>,
}

impl ServiceSpec {
    /// Servers in memory that together hold so many bytes, and then some: extents are not always full.
    pub fn memory(servers: usize, bytes: u64) -> ServiceSpec {
        ServiceSpec {
            servers,
            store: Store::Memory,
            transport: Transport::Unix,
            memory: (bytes / servers as u64) * 5 / 4 + (128 << 20),
            options: Vec::new(),
            parent: None,
        }
    }

    /// Servers on disks below the temporary directory.
    pub fn disk(servers: usize) -> ServiceSpec {
        ServiceSpec {
            store: Store::Disk,
            ..ServiceSpec::memory(servers, 1 << 30)
        }
    }
}

/// A command that runs a program on a host.
pub type OnHost<'a> = Box<dyn Fn(usize, &Path) -> Command + 'a>;

/// Where the processes of a service are, if they are not on this host.
pub struct Spread<'a> {
    /// Leads to a host.
    pub command: OnHost<'a>,
    /// The address of a host.
    pub address: fn(usize) -> String,
    /// The host of the metadata manager.
    pub meta: usize,
    /// The host of each server.
    pub servers: Vec<usize>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Site {
    // Dropped in this order: the servers before the manager, the directory last.
    servers: Vec<ListeningChild>,
    _meta: ListeningChild,
    url: String,
    /// What clients on other hosts need.
    pub secret: Option<PathBuf>,
    dir: ScratchDir,
}

impl Site {
    /// Starts a service; returns when all servers are members.
    pub fn start(wanted: &ServiceSpec, spread: Option<&Spread<'_>>) -> Result<Site, Error> {
        let program = program("pario");
        let dir = match &wanted.parent {
            Some(parent) => ScratchDir::below(parent)?,
            None => ScratchDir::new()?,
        };
        let log = dir.0.join("log");
        let secret = match spread {
            Some(_) => {
                make_secret(&dir, "secret.servers")?;
                Some(make_secret(&dir, "secret")?)
            }
            None => None,
        };
        let on = |host: Option<usize>| match (spread, host) {
            (Some(spread), Some(host)) => (spread.command)(host, &program),
            _ => Command::new(&program),
        };
        let at = |name: &str, host: Option<usize>| match (spread, host) {
            (Some(spread), Some(host)) => format!("tcp:{}:0", (spread.address)(host)),
            _ => wanted.transport.address(&dir.0, name),
        };
        let certificates = match wanted.transport {
            Transport::Tls => Some(make_certificates(&program, &dir)?),
            Transport::Unix | Transport::Tcp => None,
        };
        let this = std::process::id().to_string();
        let common = |arguments: &mut Vec<String>, listen: String| {
            arguments.extend(["--listen".into(), listen, SUPERVISED.into(), this.clone()]);
            if let Some(path) = &secret {
                arguments.extend(["--secret".into(), path.display().to_string()]);
                let of_servers = path.with_extension("servers").display().to_string();
                arguments.extend(["--server-secret".into(), of_servers]);
            }
            if let Some(made) = &certificates {
                arguments.extend(made.of_server.iter().cloned());
            }
        };
        let start = |host: Option<usize>, arguments: Vec<String>| {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            ListeningChild::start(on(host), &arguments, Some(&log))
        };
        let host = spread.map(|spread| spread.meta);
        let catalogue = dir.0.join("meta").display().to_string();
        let mut arguments: Vec<String> = ["serve", "meta", "--dir", &catalogue]
            .map(Into::into)
            .to_vec();
        if spread.is_some() {
            arguments.extend(["--trust-uids".into(), "0.0.0.0/0".into()]);
        }
        common(&mut arguments, at("meta.sock", host));
        let meta = start(host, arguments)?;
        let mut servers = Vec::new();
        for index in 0..wanted.servers {
            let host = spread.map(|spread| spread.servers[index]);
            let memory = wanted.memory.to_string();
            let mut arguments: Vec<String> =
                ["serve", "io", "--meta", &meta.url, "--memory", &memory]
                    .map(Into::into)
                    .to_vec();
            if wanted.store == Store::Disk {
                let disk = dir.0.join(format!("disk-{index}")).display().to_string();
                arguments.extend(["--disk".into(), disk]);
            }
            arguments.extend(wanted.options.iter().cloned());
            common(&mut arguments, at(&format!("io-{index}.sock"), host));
            servers.push(start(host, arguments)?);
        }
        let of_client = certificates.map(|made| made.of_client);
        Ok(Site {
            servers,
            url: format!("{}{}", meta.url, of_client.unwrap_or_default()),
            _meta: meta,
            secret,
            dir,
        })
    }

    /// The process numbers of its I/O servers.
    pub fn server_pids(&self) -> Vec<u32> {
        self.servers.iter().map(ListeningChild::pid).collect()
    }

    /// Where clients connect.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where its I/O servers listen.
    pub fn server_urls(&self) -> Vec<&str> {
        self.servers.iter().map(|s| s.url.as_str()).collect()
    }

    /// A file name in the directory of the service, which goes with it.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.dir.0.join(name)
    }
}

/// Who has which certificate.
struct Certificates {
    /// Options of the servers.
    of_server: Vec<String>,
    /// The end of the address by which clients connect.
    of_client: String,
}

/// Makes an authority and certificates for the servers of this host and for root.
fn make_certificates(program: &Path, dir: &ScratchDir) -> Result<Certificates, Error> {
    let path = |name: &str| dir.0.join(name).display().to_string();
    let (authority, server, user) = (path("ca"), path("server"), path("user"));
    let by = ["--authority", &authority];
    let commands: [Vec<&str>; 3] = [
        vec!["authority", "--dir", &authority],
        [&["server"][..], &by, &["127.0.0.1", "--out", &server]].concat(),
        [
            &["user"][..],
            &by,
            &["root", "--uid", "0", "--gid", "0", "--out", &user],
        ]
        .concat(),
    ];
    for arguments in commands {
        let made = Command::new(program).arg("cert").args(&arguments).output();
        let made = made.map_err(|e| format!("cannot start {}: {e}", program.display()))?;
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr);
            return Err(format!("`pario cert {}`: {why}", arguments.join(" ")).into());
        }
    }
    let files = [
        ("ca", "ca.pem"),
        ("cert", "server.pem"),
        ("key", "server.key"),
    ];
    let of_server =
        files.map(|(option, file)| [format!("--tls-{option}"), format!("{server}/{file}")]);
    Ok(Certificates {
        of_server: of_server.concat(),
        of_client: format!("?ca={user}/ca.pem&cert={user}/root.pem&key={user}/root.key"),
    })
}

fn make_secret(dir: &ScratchDir, name: &str) -> Result<PathBuf, Error> {
    use std::io::{Read, Write};
    let path = dir.0.join(name);
    let mut bytes = [0u8; 24];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}
