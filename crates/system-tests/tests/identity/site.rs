//! A service whose servers stand on hosts of their own, and commands that run on any of them.
//!
//! Files with secrets are readable by their owner only, as servers demand; nothing of the caller's
//! environment reaches a process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use system_tests::TempDir;
use system_tests::programs;
use system_tests::server::Server;
use system_tests::worker::Worker;
use testkit::hosts::Hosts;

/// See the [module](self).
pub(crate) struct Site {
    // Dropped in this order: servers before the hosts they run on, the directory last.
    servers: Vec<Server>,
    pub(crate) hosts: Hosts,
    pub(crate) dir: TempDir,
}

impl Site {
    /// Hosts without anything on them; nothing where they cannot be made, which is said.
    pub(crate) fn new(hosts: usize) -> Option<Site> {
        match Hosts::new(hosts) {
            Ok(hosts) => Some(Site {
                servers: Vec::new(),
                hosts,
                dir: TempDir::new(),
            }),
            Err(why) => {
                testkit::skipped(&why);
                None
            }
        }
    }

    /// A file with a secret.
    pub(crate) fn secret(&self, name: &str) -> PathBuf {
        let path = self.dir.join(name);
        if !path.exists() {
            fs::write(&path, format!("the {name} of these tests, long enough")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        path
    }

    /// A program on a host, with nothing of the environment that it would heed.
    pub(crate) fn on(&self, host: usize, program: &Path) -> Command {
        let mut command = self.hosts.command(host, program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PARIO_") {
                command.env_remove(name);
            }
        }
        command.current_dir(self.dir.path());
        command
    }

    /// `pario` on a host.
    pub(crate) fn pario(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = self.on(host, &programs::pario());
        command.args(arguments);
        command
    }

    /// Starts a server on a host; where it listens.
    pub(crate) fn start(&mut self, host: usize, arguments: &[&str]) -> String {
        self.try_start(host, arguments).unwrap()
    }

    /// Starts a server, which may fail.
    pub(crate) fn try_start(&mut self, host: usize, arguments: &[&str]) -> Result<String, String> {
        self.try_start_with(host, arguments, &[])
    }

    /// Starts a server with further variables, which may fail.
    pub(crate) fn try_start_with(
        &mut self,
        host: usize,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<String, String> {
        let name = format!("server-{}", self.servers.len());
        let mut server = Server::new(&name, self.dir.join(format!("{name}.log")));
        let listen = format!("tcp:{}:0", Hosts::address(host));
        let mut command = self.pario(host, &["serve"]);
        command.args(arguments).args(["--listen", &listen]);
        command.envs(variables.iter().copied());
        let started = server.try_start(&mut command);
        let log = server.log();
        started.map_err(|why| format!("{why}\n{log}"))?;
        let url = server.endpoint().to_string();
        self.servers.push(server);
        Ok(url)
    }

    /// A client on a host.
    pub(crate) fn client(&self, host: usize, url: &str, secret: &Path) -> Worker {
        let mut command = self.on(host, &programs::worker());
        command.arg(url).env("PARIO_SECRET", secret);
        command.env("PARIO_TIMEOUT", "2");
        let mut worker = Worker::of(&mut command);
        worker.answered();
        worker
    }
}

/// What a command said that had to succeed.
#[track_caller]
pub(crate) fn good(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command said that had to fail.
#[track_caller]
pub(crate) fn bad(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{command:?}: {}", said(&output));
    said(&output)
}

fn said(output: &Output) -> String {
    let both = [&output.stdout, &output.stderr];
    both.map(|text| String::from_utf8_lossy(text).into_owned())
        .concat()
}
