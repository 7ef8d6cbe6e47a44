//! Several hosts on one machine: network namespaces around a switch, whose links may have a rate, and whose
//! ports can be pulled out.
//!
//! ```text
//!   host 0 --eth0 (tbf)----+
//!   host 1 --eth0 (tbf)----+-- sw, in a namespace of its own; a tbf towards each host too
//!   host 2 --eth0 ------ / +     a cable that was cut loses packets and tells nobody
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
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Bytes that may leave a link at once.
const BURST: u64 = 64 << 10;
/// Bytes that may wait for a link.
const QUEUE: u64 = 64 << 20;

/// A namespace, for as long as the value lives.
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
        if let Some(output) = child.stdout.take() {
            // It says something or ends.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let namespace = Namespace { child, input };
        match line.trim() {
            "ready" => Ok(namespace),
            _ => Err("unshare --net is refused; it needs root".into()),
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.pid()));
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
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(text.lines().next().unwrap_or("a command fails").into())
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
    /// So many hosts on links without a limit; if they cannot be made, why.
    pub fn new(count: usize) -> Result<Hosts, String> {
        Hosts::with_rates(&vec![None; count])
    }

    /// As many hosts as there are rates, in Mbit/s; `None` is a link without a limit. If they cannot be
    /// made, why.
    pub fn with_rates(rates: &[Option<u64>]) -> Result<Hosts, String> {
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
                Hosts::address(index),
                limit("eth0")
            ))?;
            hosts.push(host);
        }
        Ok(Hosts { hosts, switch })
    }

    /// The address of a host.
    pub fn address(host: usize) -> String {
        format!("10.77.{}.{}", host / 200, host % 200 + 1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_reach_each_other_and_leave_nothing_behind() {
        let hosts = match Hosts::with_rates(&[None, Some(100)]) {
            Ok(hosts) => hosts,
            Err(why) => {
                // Where there is no root there are none, and it is said.
                assert!(!why.is_empty());
                return;
            }
        };
        let pids: Vec<u32> = hosts.hosts.iter().map(Namespace::pid).collect();
        let mut server = hosts
            .command(0, Path::new("sh"))
            .args(["-c", "cat /proc/net/dev; ip -4 addr show dev eth0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut text = String::new();
        let mut output = server.stdout.take().expect("piped");
        std::io::Read::read_to_string(&mut output, &mut text).expect("text");
        server.wait().expect("it ends");
        assert!(
            text.contains("eth0") && text.contains(&Hosts::address(0)),
            "{text}"
        );
        let limits = hosts
            .command(1, Path::new("tc"))
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
            assert!(!Path::new(&format!("/proc/{pid}/ns/net")).exists());
        }
    }
}
