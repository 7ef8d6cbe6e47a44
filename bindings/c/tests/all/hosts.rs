//! Streams of a team whose processes stand on two hosts, as the servers do: everything between them goes over TCP.
//!
//! Left to others: what the program shows (`programs/particles.c`), and how hosts are made (`testkit::hosts`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use system_tests::server::Server;
use system_tests::{TempDir, programs};
use testkit::hosts::Hosts;

use crate::build::compile;

/// Starts a server on a host, with secrets of the test.
fn serve(hosts: &Hosts, host: usize, dir: &Path, arguments: &[&str]) -> Server {
    let name = format!("server-{}-{host}", arguments[0]);
    let mut server = Server::new(&name, dir.join(format!("{name}.log")));
    let mut command = hosts.command(host, &programs::pario());
    command
        .arg("serve")
        .args(arguments)
        .args(["--listen", &format!("tcp:{}:0", Hosts::address(host))])
        .args(["--secret", "secret", "--server-secret", "secret.servers"])
        .current_dir(dir);
    let started = server.try_start(&mut command);
    if let Err(why) = started {
        panic!("{why}\n{}", server.log());
    }
    server
}

/// Starts a member on a host.
fn member(hosts: &Hosts, host: usize, dir: &Path, program: &Path, arguments: &[&str]) -> Child {
    let mut command: Command = hosts.command(host, Path::new("/usr/bin/timeout"));
    command
        .arg("100")
        .arg(program)
        .args(arguments)
        .env("PARIO_SECRET", dir.join("secret"))
        .stdout(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn particles_are_written_and_read_by_processes_on_two_hosts() {
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(why) => return testkit::skipped(&why),
    };
    let dir = TempDir::new();
    for name in ["secret", "secret.servers"] {
        let path = dir.join(name);
        fs::write(&path, format!("the {name} of these tests, long enough")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let program = compile("gcc", "c11", "particles.c");
    let meta = ["meta", "--dir", "meta", "--trust-uids", "0.0.0.0/0"];
    let meta = serve(&hosts, 0, dir.path(), &meta);
    let url = meta.endpoint().to_string();
    let io = ["io", "--meta", &url, "--memory", "64MiB"];
    let servers = [0, 1].map(|host| serve(&hosts, host, dir.path(), &io));
    for (side, size) in [("writes", "2"), ("reads", "3")] {
        let members: Vec<Child> = (0..size.parse().unwrap())
            .map(|rank: usize| {
                let arguments = [&url, side, &rank.to_string(), size];
                member(&hosts, rank % 2, dir.path(), &program, &arguments)
            })
            .collect();
        let mut printed = String::new();
        for (rank, child) in members.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{side}, rank {rank}");
            printed += &String::from_utf8_lossy(&output.stdout);
        }
        assert_eq!(printed, "all is well\n", "{side}");
    }
    drop((servers, meta));
    fs::remove_file(&program).unwrap();
}
