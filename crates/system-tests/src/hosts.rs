//! Several hosts on one machine: network namespaces around a switch whose ports can be pulled out.
//!
//! ```text
//!   host 0 --eth0-----+
//!   host 1 --eth0-----+-- sw, in a namespace of its own
//!   host 2 --eth0-- / +     a cable that was cut loses packets and tells nobody
//! ```
//!
//! A namespace has no name: a process holds it, and that process ends with its input, so nothing is left
//! when a test ends, in whatever way. Made by `unshare`, `nsenter` and `ip`, which needs root.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

#[derive(Debug)]
struct Namespace {
    child: Child,
    input: Option<ChildStdin>,
}

impl Namespace {
    fn new() -> Result<Namespace, String> {
        let mut child = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo ready && exec cat >/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("unshare: {e}"))?;
        let input = child.stdin.take();
        let mut line = String::new();
        // It says something or ends.
        let _ = BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line);
        let namespace = Namespace { child, input };
        match line.trim() {
            "ready" => Ok(namespace),
            _ => Err("unshare --net is refused; it needs root".into()),
        }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.child.id()));
        command.arg(program);
        command
    }

    /// Runs a few lines of shell inside.
    fn run(&self, script: &str) -> Result<(), String> {
        let output = self
            .command(Path::new("sh"))
            .args(["-e", "-c", script])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("nsenter: {e}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Hosts {
    hosts: Vec<Namespace>,
    switch: Namespace,
}

impl Hosts {
    /// So many hosts; if they cannot be made, why.
    pub fn new(count: usize) -> Result<Hosts, String> {
        let switch = Namespace::new()?;
        switch.run("ip link add name sw type bridge && ip link set dev sw up")?;
        let mut hosts = Vec::new();
        for index in 0..count {
            let host = Namespace::new()?;
            switch.run(&format!(
                "ip link add name p{index} type veth peer name eth0 netns {}\n\
                 ip link set dev p{index} master sw up",
                host.child.id()
            ))?;
            host.run(&format!(
                "ip link set dev lo up\nip addr add {}/16 dev eth0\nip link set dev eth0 up",
                Hosts::address(index)
            ))?;
            hosts.push(host);
        }
        Ok(Hosts { hosts, switch })
    }

    /// The address of a host.
    pub fn address(host: usize) -> String {
        format!("10.78.0.{}", host + 1)
    }

    /// A command that runs on a host.
    pub fn command(&self, host: usize, program: &Path) -> Command {
        self.hosts[host].command(program)
    }

    /// Pulls the cable of a host out of the switch: packets are lost on the way, and nobody is told.
    #[track_caller]
    pub fn cut(&self, host: usize) {
        let done = self
            .switch
            .run(&format!("ip link set dev p{host} nomaster"));
        done.expect("a port of the switch");
    }

    /// Puts it back.
    #[track_caller]
    pub fn mend(&self, host: usize) {
        let done = self
            .switch
            .run(&format!("ip link set dev p{host} master sw"));
        done.expect("a port of the switch");
    }
}
