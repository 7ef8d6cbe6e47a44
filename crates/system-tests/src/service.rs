//! A service of real processes in a directory of its own: one metadata manager, several I/O servers.
//!
//! Servers keep their places over restarts: directory, number, and with TCP the port of the metadata
//! manager (I/O servers take another free one, as they may). Started one after the other, so that I/O
//! server `i` is the `i`-th that joined. Dropping it kills all and removes the directory; if the test
//! fails the logs are printed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use client::{Client, ConnectOptions, Endpoint, MemberState, ServerId, ServiceUrl};
use rustix::process::{Pid, Signal, kill_process};

use crate::programs;
use crate::server::Server;
use crate::waiting::until;
use testkit::TempDir;

/// Where servers keep bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Store {
    /// In memory.
    Memory,
    /// On disk.
    Disk,
}

/// How processes reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// Unix sockets.
    Unix,
    /// TCP on the loopback.
    Tcp,
    /// TCP on the loopback, with a secret.
    TcpSecret,
}

/// Who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Processes of their own.
    Service,
    /// The processes that use the directory.
    Embedded,
}

/// What a service is like.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceOptions {
    /// Number of I/O servers.
    pub servers: usize,
    /// Where they keep bytes.
    pub store: Store,
    /// How they are reached.
    pub transport: Transport,
    /// Memory of each, such as `64MiB`.
    pub memory: String,
    /// Further arguments of `pario serve io`.
    pub io_arguments: Vec<String>,
    /// Further arguments of `pario serve meta`.
    pub meta_arguments: Vec<String>,
    /// Further variables of all of them.
    pub environment: Vec<(String, String)>,
    /// Whether clients copy directly where they can, or send everything by message.
    pub direct: bool,
    /// Where the directories of its servers lie; beside their sockets if nothing is said.
    pub directories: Option<PathBuf>,
}

/// Whether clients of this run copy directly where they can: not with `PARIO_DIRECT=0`.
pub fn is_direct() -> bool {
    said_direct().unwrap_or(true)
}

/// What `PARIO_DIRECT` says, if it says anything.
pub fn said_direct() -> Option<bool> {
    let said = std::env::var("PARIO_DIRECT").ok();
    said.filter(|text| !text.is_empty()).map(|text| text != "0")
}

impl ServiceOptions {
    /// So many I/O servers in memory, over Unix sockets.
    pub fn new(servers: usize) -> ServiceOptions {
        ServiceOptions {
            servers,
            store: Store::Memory,
            transport: Transport::Unix,
            memory: "256MiB".into(),
            io_arguments: Vec::new(),
            meta_arguments: Vec::new(),
            environment: Vec::new(),
            direct: is_direct(),
            directories: None,
        }
    }

    /// With the directories of all servers in another place, such as a disk of its own.
    pub fn directories(mut self, place: impl Into<PathBuf>) -> ServiceOptions {
        self.directories = Some(place.into());
        self
    }

    /// With clients that copy directly where they can, or not.
    pub fn direct(mut self, direct: bool) -> ServiceOptions {
        self.direct = direct;
        self
    }

    /// With bytes on disk.
    pub fn disk(mut self) -> ServiceOptions {
        self.store = Store::Disk;
        self
    }

    /// With another store.
    pub fn store(mut self, store: Store) -> ServiceOptions {
        self.store = store;
        self
    }

    /// Reached otherwise.
    pub fn transport(mut self, transport: Transport) -> ServiceOptions {
        self.transport = transport;
        self
    }

    /// With so much memory for each I/O server.
    pub fn memory(mut self, size: &str) -> ServiceOptions {
        self.memory = size.into();
        self
    }

    /// With further arguments of `pario serve io`.
    pub fn io_arguments<const N: usize>(mut self, arguments: [&str; N]) -> ServiceOptions {
        self.io_arguments.extend(arguments.map(String::from));
        self
    }

    /// With further arguments of `pario serve meta`.
    pub fn meta_arguments<const N: usize>(mut self, arguments: [&str; N]) -> ServiceOptions {
        self.meta_arguments.extend(arguments.map(String::from));
        self
    }

    /// Starts it.
    pub fn start(self) -> Service {
        Service::start(self)
    }
}

/// A service under test.
#[derive(Debug)]
pub struct Service {
    meta: Server,
    io: Vec<Server>,
    options: ServiceOptions,
    // Last, so that it is removed after its users are gone.
    dir: TempDir,
}

impl Service {
    /// Starts all servers, and waits until they serve.
    #[track_caller]
    pub fn start(options: ServiceOptions) -> Service {
        let dir = TempDir::new();
        if options.transport == Transport::TcpSecret {
            let secret = "a secret of the system tests";
            write_private(&dir.join("secret"), secret);
            write_private(&dir.join("server-secret"), "another one, of servers");
        }
        let mut service = Service {
            meta: Server::new("meta", dir.join("meta.log")),
            io: (0..options.servers)
                .map(|i| Server::new(format!("io-{i}"), dir.join(format!("io-{i}.log"))))
                .collect(),
            options,
            dir,
        };
        service.start_meta();
        for i in 0..service.io.len() {
            service.start_io(i);
        }
        service
    }

    /// What it is like.
    pub fn options(&self) -> &ServiceOptions {
        &self.options
    }

    /// Sets a variable of all servers that are started from now on.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.options.environment.retain(|(known, _)| known != name);
        self.options.environment.push((name.into(), value.into()));
    }

    /// Its directory.
    pub fn dir(&self) -> &TempDir {
        &self.dir
    }

    /// What clients connect to.
    pub fn url(&self) -> ServiceUrl {
        ServiceUrl::At(self.meta.endpoint().clone())
    }

    /// The file with the secret, if it has one.
    pub fn secret(&self) -> Option<PathBuf> {
        (self.options.transport == Transport::TcpSecret).then(|| self.dir.join("secret"))
    }

    /// How clients connect.
    pub fn connect_options(&self) -> ConnectOptions {
        let options = ConnectOptions::default()
            .with_timeout(Duration::from_secs(30))
            .with_direct(self.options.direct);
        match self.secret() {
            Some(path) => options.with_secret_file(&path).expect("the secret"),
            None => options,
        }
    }

    /// A client in this process.
    #[track_caller]
    pub fn client(&self) -> Client {
        Client::connect(&self.url(), self.connect_options()).expect("a client")
    }

    /// A worker process with a client of its own.
    #[track_caller]
    pub fn worker(&self) -> crate::Worker {
        let (url, secret) = (self.url().to_string(), self.secret());
        let mut worker = crate::Worker::start_how(&url, secret.as_deref(), self.options.direct);
        worker.answered();
        worker
    }

    /// Several of them.
    #[track_caller]
    pub fn workers(&self, count: usize) -> crate::Workers {
        let (url, secret) = (self.url().to_string(), self.secret());
        crate::Workers::start_how(count, &url, secret.as_deref(), self.options.direct)
    }

    /// The metadata manager.
    pub fn meta(&mut self) -> &mut Server {
        &mut self.meta
    }

    /// An I/O server.
    pub fn io(&mut self, index: usize) -> &mut Server {
        &mut self.io[index]
    }

    /// Number of I/O servers.
    pub fn servers(&self) -> usize {
        self.io.len()
    }

    /// The number that an I/O server has in the service.
    #[track_caller]
    pub fn server_id(&self, index: usize) -> ServerId {
        self.id_for(&self.client(), index)
    }

    #[track_caller]
    fn id_for(&self, client: &Client, index: usize) -> ServerId {
        let address = self.io[index].endpoint().to_string();
        let members = client.members().expect("members");
        let found = members.iter().find(|m| m.address == address);
        found
            .unwrap_or_else(|| panic!("nobody joined as {address}: {members:?}"))
            .server
    }

    /// The I/O server that has a number in the service.
    #[track_caller]
    pub fn index_of(&self, server: ServerId) -> usize {
        let members = self.client().members().expect("members");
        let member = members.iter().find(|m| m.server == server);
        let address = &member.expect("a member").address;
        let found = self
            .io
            .iter()
            .position(|io| io.endpoint().to_string() == *address);
        found.unwrap_or_else(|| panic!("nobody listens on {address}"))
    }

    /// What an I/O server has counted under a name; 0 if it never did.
    #[track_caller]
    pub fn counter(&self, client: &Client, index: usize, name: &str) -> u64 {
        let id = self.id_for(client, index);
        let counters = client.server_statistics(id).expect("statistics");
        counters
            .iter()
            .find(|c| c.name == name)
            .map_or(0, |c| c.value)
    }

    /// A counter of all I/O servers, by index.
    #[track_caller]
    pub fn counters(&self, client: &Client, name: &str) -> Vec<u64> {
        (0..self.io.len())
            .map(|i| self.counter(client, i, name))
            .collect()
    }

    /// Waits until no I/O server has a subfile, and no removal is open.
    #[track_caller]
    pub fn wait_for_nothing(&self) {
        let client = self.client();
        let left = |index: usize| client.subfiles(self.server_id(index)).expect("subfiles");
        // A file that somebody had open when he died is removed when that is noticed.
        until("removals", || {
            client.counts().expect("counts").removals == 0
                && (0..self.io.len()).all(|index| left(index).is_empty())
        });
    }

    /// Waits until so many I/O servers take part.
    #[track_caller]
    pub fn wait_for_members(&self, alive: usize) {
        let client = self.client();
        until("members that take part", || {
            let members = client.members().unwrap_or_default();
            let count = members.iter().filter(|m| m.state == MemberState::Alive);
            count.count() == alive
        });
    }

    /// `kill -9` of the metadata manager.
    pub fn kill_meta(&mut self) {
        self.meta.kill();
    }

    /// `kill -9` of an I/O server.
    pub fn kill_io(&mut self, index: usize) {
        self.io[index].kill();
    }

    /// The keeper of a server, if there is one.
    pub fn keeper(&self, index: usize) -> Option<keeper::Glance> {
        let dir = match self.options.store {
            Store::Memory => self.directory(&format!("memory-{index}")),
            Store::Disk => self.disk(index),
        };
        keeper::look(&dir).ok()
    }

    /// `kill -9` of the keeper of a server.
    #[track_caller]
    pub fn kill_keeper(&self, index: usize) {
        let keeper = self.keeper(index).expect("a keeper");
        let pid = Pid::from_raw(keeper.process as i32).expect("a process number");
        kill_process(pid, Signal::KILL).expect("the keeper lives");
        until("the end of a keeper", || {
            self.keeper(index)
                .is_none_or(|now| now.process != keeper.process)
        });
    }

    /// `kill -9` of an I/O server and of its keeper: the memory is gone, as when the host dies.
    #[track_caller]
    pub fn kill_io_with_keeper(&mut self, index: usize) {
        // It would start another one.
        let stopped = self.io[index].pause();
        self.kill_keeper(index);
        self.io[index].kill();
        drop(stopped);
    }

    /// `kill -9` of all.
    pub fn kill_all(&mut self) {
        // All are dead before one of them is waited for, or notices.
        for server in self.io.iter_mut().chain([&mut self.meta]) {
            if server.is_running() {
                server.signal(Signal::KILL);
            }
        }
        for server in self.io.iter_mut().chain([&mut self.meta]) {
            server.kill();
        }
    }

    /// Ends all servers in order, each with a clean exit.
    #[track_caller]
    pub fn end_all(&mut self) {
        for server in self.io.iter_mut().chain([&mut self.meta]) {
            if server.is_running() {
                server.end();
            }
        }
    }

    /// Starts whatever does not run.
    #[track_caller]
    pub fn start_all(&mut self) {
        if !self.meta.is_running() {
            self.start_meta();
        }
        for i in 0..self.io.len() {
            if !self.io[i].is_running() {
                self.start_io(i);
            }
        }
    }

    /// Starts the metadata manager, where it was before if there was one.
    #[track_caller]
    pub fn start_meta(&mut self) {
        let mut command = self.meta_command();
        self.meta.start(&mut command);
    }

    /// Starts an I/O server.
    #[track_caller]
    pub fn start_io(&mut self, index: usize) {
        let mut command = self.io_command(index);
        self.io[index].start(&mut command);
    }

    /// Starts the metadata manager with a further variable.
    #[track_caller]
    pub fn start_meta_with(&mut self, name: &str, value: &str) {
        let mut command = self.meta_command();
        self.meta.start(command.env(name, value));
    }

    /// Starts an I/O server with a further variable.
    #[track_caller]
    pub fn start_io_with(&mut self, index: usize, name: &str, value: &str) {
        let mut command = self.io_command(index);
        self.io[index].start(command.env(name, value));
    }

    /// Adds an I/O server; its index.
    #[track_caller]
    pub fn add_io(&mut self) -> usize {
        let index = self.io.len();
        let log = self.dir.join(format!("io-{index}.log"));
        self.io.push(Server::new(format!("io-{index}"), log));
        self.start_io(index);
        index
    }

    /// The command line of the metadata manager.
    pub fn meta_command(&self) -> Command {
        let listen = match self.options.transport {
            Transport::Unix => format!("unix:{}", self.dir.join("meta.sock").display()),
            _ => match self.meta_port() {
                Some(port) => format!("tcp:127.0.0.1:{port}"),
                None => "tcp:127.0.0.1:0".into(),
            },
        };
        let mut command = self.serve("meta");
        command.arg("--dir").arg(self.directory("meta"));
        command.args(["--listen", &listen]);
        command.args(&self.options.meta_arguments);
        command
    }

    /// The command line of an I/O server.
    pub fn io_command(&self, index: usize) -> Command {
        let listen = match self.options.transport {
            Transport::Unix => {
                let socket = self.dir.join(format!("io-{index}.sock"));
                format!("unix:{}", socket.display())
            }
            _ => "tcp:127.0.0.1:0".into(),
        };
        let mut command = self.serve("io");
        command.args(["--meta", &self.meta.endpoint().to_string()]);
        command.args(["--listen", &listen]);
        command.args(["--memory", &self.options.memory]);
        match self.options.store {
            Store::Disk => command.arg("--disk").arg(self.disk(index)),
            Store::Memory => {
                let state = self.directory(&format!("memory-{index}"));
                command.arg("--state").arg(state)
            }
        };
        command.args(&self.options.io_arguments);
        command
    }

    /// The directory of a disk server.
    pub fn disk(&self, index: usize) -> PathBuf {
        self.directory(&format!("io-{index}"))
    }

    /// The directory of a server.
    fn directory(&self, name: &str) -> PathBuf {
        match &self.options.directories {
            Some(place) => place.join(name),
            None => self.dir.join(name),
        }
    }

    fn meta_port(&self) -> Option<u16> {
        match self.meta.last_endpoint()? {
            Endpoint::Tcp { port, .. } => Some(*port),
            Endpoint::Unix(_) => None,
        }
    }

    fn serve(&self, role: &str) -> Command {
        let mut command = Command::new(programs::pario());
        command.args(["serve", role]);
        command.env_remove("PARIO_URL").env_remove("PARIO_SECRET");
        command.current_dir(self.dir.path());
        if let Some(secret) = self.secret() {
            command.arg("--secret").arg(&secret);
            let of_servers = secret.with_file_name("server-secret");
            command.arg("--server-secret").arg(of_servers);
        }
        command.envs(self.options.environment.iter().cloned());
        command
    }

    /// The program `pario` with this service as `PARIO_URL`.
    pub fn pario(&self) -> Command {
        let mut command = Command::new(programs::pario());
        command.env("PARIO_URL", self.url().to_string());
        command.env_remove("PARIO_SECRET");
        if let Some(secret) = self.secret() {
            command.env("PARIO_SECRET", secret);
        }
        command.current_dir(self.dir.path());
        command
    }

    /// What all servers have said.
    pub fn logs(&self) -> String {
        let all = [&self.meta].into_iter().chain(&self.io);
        all.map(Server::log).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
        self.kill_all();
    }
}

/// Connects to whatever the URL names; a directory is served with so many I/O servers at least.
pub fn connect(
    url: &ServiceUrl,
    options: ConnectOptions,
    servers: usize,
) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
    match url {
        ServiceUrl::Directory(_) => {
            let how = embedded::Options {
                servers,
                ..embedded::Options::default()
            };
            Ok(embedded::connect(url, options, &how)?)
        }
        ServiceUrl::Job => Ok(embedded::connect(
            url,
            options,
            &embedded::Options::default(),
        )?),
        ServiceUrl::At(_) | ServiceUrl::Protected(..) => Ok(Client::connect(url, options)?),
    }
}

/// A file that only its owner can read, as servers want it.
pub fn write_private(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("a private file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("a private file");
}
