//! Several hosts on one machine: network namespaces around a switch, each link with a rate of its own.
//!
//! ```text
//!   host 0 --eth0 (tbf)----+
//!   host 1 --eth0 (tbf)----+-- sw, in a namespace of its own; a tbf towards each host too
//!   host 2 --eth0 ---------+
//! ```
//!
//! A namespace has no name: a process holds it, and that process ends with its input. So nothing is
//! left when this program ends, in whatever way: the last process inside takes the namespace along.
//! Made by `unshare`, `nsenter`, `ip` and `tc`, which needs root; without it there are no hosts, and the
//! reason is told.
//!
//! Queues are long, so that a full link delays and does not lose: a lost packet would cost a timer of
//! the kernel, which says nothing about anybody here.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Bytes that may leave a link at once.
const BURST: u64 = 64 << 10;
/// Bytes that may wait for a link.
const QUEUE: u64 = 64 << 20;

/// A namespace, for as long as the value lives.
#[derive(Debug)]
struct Namespace {
    child: Child,
    _input: Option<ChildStdin>,
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
        if let Some(output) = child.stdout.take() {
            // It says something or ends.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let namespace = Namespace {
            child,
            _input: input,
        };
        match line.trim() {
            "ready" => Ok(namespace),
            _ => Err("unshare --net is refused; it needs root".into()),
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn entry(&self) -> [String; 2] {
        let net = format!("--net=/proc/{}/ns/net", self.pid());
        ["nsenter".into(), net]
    }

    /// Runs a few lines of shell inside.
    fn run(&self, script: &str) -> Result<(), String> {
        let [program, net] = self.entry();
        let output = Command::new(program)
            .args([&net, "sh", "-e", "-c", script])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("nsenter: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(text.lines().next().unwrap_or("a command fails").into())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self._input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Hosts {
    hosts: Vec<Namespace>,
    _switch: Namespace,
}

impl Hosts {
    /// As many hosts as there are rates, in Mbit/s; `None` is a link without a limit. If they cannot be
    /// made, why.
    pub(crate) fn new(rates: &[Option<u64>]) -> Result<Hosts, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("network namespaces need root".into());
        }
        let switch = Namespace::new()?;
        switch.run("ip link add name sw type bridge && ip link set dev sw up")?;
        let mut hosts = Vec::new();
        for (index, rate) in rates.iter().enumerate() {
            let host = Namespace::new()?;
            let limit = |device: &str| match rate {
                Some(mbit) => format!(
                    "tc qdisc add dev {device} root tbf rate {mbit}mbit burst {BURST} limit {QUEUE}\n"
                ),
                None => String::new(),
            };
            let port = format!("p{index}");
            switch.run(&format!(
                "ip link add name {port} type veth peer name eth0 netns {}\n\
                 ip link set dev {port} master sw up\n{}",
                host.pid(),
                limit(&port)
            ))?;
            host.run(&format!(
                "ip link set dev lo up\nip addr add {}/16 dev eth0\nip link set dev eth0 up\n{}",
                address(index),
                limit("eth0")
            ))?;
            hosts.push(host);
        }
        Ok(Hosts {
            hosts,
            _switch: switch,
        })
    }

    /// A command that runs on a host.
    pub(crate) fn command(&self, host: usize, program: &std::path::Path) -> Command {
        let [enter, net] = self.hosts[host].entry();
        let mut command = Command::new(enter);
        command.arg(net).arg(program);
        command
    }
}

/// The address of a host.
pub(crate) fn address(host: usize) -> String {
    format!("10.77.{}.{}", host / 200, host % 200 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_reach_each_other_and_leave_nothing_behind() {
        let hosts = match Hosts::new(&[None, Some(100)]) {
            Ok(hosts) => hosts,
            Err(why) => {
                // Where there is no root there are none, and it is said.
                assert!(!why.is_empty());
                return;
            }
        };
        let pids: Vec<u32> = hosts.hosts.iter().map(Namespace::pid).collect();
        let mut server = hosts
            .command(0, std::path::Path::new("sh"))
            .args(["-c", "cat /proc/net/dev; ip -4 addr show dev eth0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut text = String::new();
        let mut output = server.stdout.take().expect("piped");
        std::io::Read::read_to_string(&mut output, &mut text).expect("text");
        server.wait().expect("it ends");
        assert!(
            text.contains("eth0") && text.contains(&address(0)),
            "{text}"
        );
        let limits = hosts
            .command(1, std::path::Path::new("tc"))
            .args(["qdisc", "show", "dev", "eth0"])
            .output()
            .expect("it runs");
        let limits = String::from_utf8_lossy(&limits.stdout).into_owned();
        assert!(
            limits.contains("tbf") && limits.contains("100Mbit"),
            "{limits}"
        );
        drop(hosts);
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}/ns/net")).exists());
        }
    }
}
