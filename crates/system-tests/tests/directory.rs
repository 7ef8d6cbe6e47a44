//! Processes that share a directory without a service.
//!
//! Other processes are `neighbour`, each in one of its roles.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Client, ConnectOptions, OpenOptions};
use embedded::{Error, Options};
use system_tests::TempDir;
use system_tests::files::whole;
use wire::url::ServiceUrl;

fn connect(dir: &Path, servers: usize) -> Client {
    let options = Options {
        servers,
        ..Options::default()
    };
    let url = ServiceUrl::Directory(dir.to_owned());
    embedded::connect(&url, ConnectOptions::default(), &options).unwrap()
}

/// Another process in a role; killed when dropped.
struct Other(Child, BufReader<std::process::ChildStdout>);

impl Other {
    fn start(role: &str, dir: &Path) -> Other {
        Other::with(role, dir, &mut |_| {})
    }

    /// Starts a process in an environment of its own.
    fn with(role: &str, dir: &Path, change: &mut dyn FnMut(&mut Command)) -> Other {
        let mut command = Command::new(env!("CARGO_BIN_EXE_neighbour"));
        change(&mut command);
        let mut child = command
            .arg(role)
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Other(child, out)
    }

    /// Waits for a line that begins so; what follows.
    fn expect(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.1.read_line(&mut line).unwrap() > 0, "no '{word}'");
            if let Some((_, rest)) = line.trim().split_once(word) {
                return rest.trim().to_owned();
            }
        }
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        let mut rest = String::new();
        self.1.read_to_string(&mut rest).unwrap();
        assert!(self.0.wait().unwrap().success(), "{rest}");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn files_outlive_the_process_that_wrote_them() {
    let temp = TempDir::new();
    let bytes = whole(0, 300_000, 1);
    {
        let client = connect(temp.path(), 3);
        let options = OpenOptions::new().read().write().create();
        let file = client
            .open("/a", &options.layout("striped(4KiB) over 3"))
            .unwrap();
        file.write_at(0, &bytes).unwrap();
        file.close().unwrap();
    }
    assert!(
        !temp.path().join("holder").exists(),
        "the holder took its leave"
    );
    // The same directory without saying how many servers: those that have bytes are started.
    let client = connect(temp.path(), 0);
    assert_eq!(client.members().unwrap().len(), 3);
    let file = client.open("/a", &OpenOptions::new().read()).unwrap();
    let mut back = vec![0; bytes.len() + 10];
    assert_eq!(file.read_at(0, &mut back).unwrap(), bytes.len());
    assert_eq!(back[..bytes.len()], bytes);
}

#[test]
fn two_clients_of_one_process_share_the_servers() {
    let temp = TempDir::new();
    let first = connect(temp.path(), 1);
    let second = connect(temp.path(), 1);
    first.mkdir("/d", None).unwrap();
    drop(first);
    second.mkdir("/d/e", None).unwrap();
    assert_eq!(second.members().unwrap().len(), 1);
}

#[test]
fn whoever_holds_the_directory_serves_the_rest() {
    let temp = TempDir::new();
    let mut holder = Other::start("hold", temp.path());
    holder.expect("ready");
    let client = connect(temp.path(), 1);
    let note = fs::read_to_string(temp.path().join("holder")).unwrap();
    assert!(!note.contains(&format!("pid: {}\n", std::process::id())));
    let file = client
        .open("/x", &OpenOptions::new().read().write().create())
        .unwrap();
    file.write_at(0, b"hello").unwrap();
    // When it goes on purpose, this process takes over in the middle of everything.
    holder.end();
    file.write_at(5, b" there").unwrap();
    let mut back = [0; 11];
    assert_eq!(file.read_at(0, &mut back).unwrap(), 11);
    assert_eq!(&back, b"hello there");
    let note = fs::read_to_string(temp.path().join("holder")).unwrap();
    assert!(note.contains(&format!("pid: {}\n", std::process::id())));
}

#[test]
fn nothing_a_write_returned_for_is_lost_when_the_holder_is_killed() {
    let temp = TempDir::new();
    let mut holder = Other::start("hold", temp.path());
    holder.expect("ready");
    let mut writer = Other::start("write", temp.path());
    // The writer counts aloud what returned; the holder dies somewhere in between, twice.
    for _ in 0..20 {
        writer.expect("wrote");
    }
    holder.kill();
    for _ in 0..20 {
        writer.expect("wrote");
    }
    let count: usize = writer.expect("wrote").parse().unwrap();
    writer.kill();
    let client = connect(temp.path(), 1);
    let file = client.open("/log", &OpenOptions::new().read()).unwrap();
    let mut back = vec![0; 1000];
    for i in 0..=count {
        let n = file.read_at(i as u64 * 1000, &mut back).unwrap();
        assert_eq!((n, &back), (1000, &whole(0, 1000, i as u64)), "record {i}");
    }
    let findings = client.check().unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn three_processes_that_come_and_go_never_lose_each_other() {
    let temp = TempDir::new();
    let mut others: Vec<Other> = (0..3)
        .map(|_| Other::start("append", temp.path()))
        .collect();
    for _ in 0..3 {
        for other in &mut others {
            other.expect("appended");
        }
    }
    // One of them serves; whoever it is, the others go on.
    let note = fs::read_to_string(temp.path().join("holder")).unwrap();
    let pid: u32 = note
        .lines()
        .find_map(|l| l.strip_prefix("pid: "))
        .unwrap()
        .parse()
        .unwrap();
    let at = others.iter().position(|o| o.0.id() == pid).unwrap();
    others.remove(at).kill();
    for _ in 0..5 {
        for other in &mut others {
            other.expect("appended");
        }
    }
    for other in others {
        other.end();
    }
}

#[test]
fn child_of_a_dead_holder_keeps_nobody_out() {
    let temp = TempDir::new();
    // It goes on as its own child: the parent, which served, is gone, its descriptors are not.
    let mut holder = Other::start("daemon", temp.path());
    holder.expect("ready");
    holder.0.wait().unwrap();
    let started = Instant::now();
    let client = connect(temp.path(), 1);
    let file = client.open("/kept", &OpenOptions::new().read()).unwrap();
    let mut back = [0; 4];
    assert_eq!(file.read_at(0, &mut back).unwrap(), 4);
    assert_eq!(&back, b"kept");
    // The child stays for as long as this test wants it to.
    assert!(started.elapsed() < Duration::from_secs(60));
    // The child found that its handles belong to the parent.
    assert_eq!(holder.expect("child:"), "forked");
}

#[test]
fn other_host_is_refused_with_the_remedy() {
    let temp = TempDir::new();
    fs::write(
        temp.path().join("holder"),
        "pid: 1\nhost: elsewhere\nhost name: node-of-another-name\nendpoint: unix:/nowhere\n",
    )
    .unwrap();
    let url = ServiceUrl::Directory(temp.path().to_owned());
    let refused = embedded::connect(&url, ConnectOptions::default(), &Options::default());
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::OtherHost { .. }));
    let text = error.to_string();
    for word in ["node-of-another-name", "pario up", "PARIO_URL"] {
        assert!(text.contains(word), "{text}");
    }
}

/// What launchers leave in the environment of a rank is enough: no MPI is needed to see who holds.
#[test]
fn ranks_of_an_mpi_job_do_not_hold_the_directory_themselves() {
    let temp = TempDir::new();
    let mut ranks: Vec<Other> = ["0", "1"]
        .map(|rank| {
            Other::with("append", temp.path(), &mut |command| {
                command
                    .env("PMI_RANK", rank)
                    .env("PARIO_PROGRAM", system_tests::programs::pario());
            })
        })
        .into();
    for rank in &mut ranks {
        rank.expect("appended");
    }
    let note = fs::read_to_string(temp.path().join("holder")).unwrap();
    let pid = note.lines().find_map(|l| l.strip_prefix("pid: ")).unwrap();
    let pid: u32 = pid.parse().unwrap();
    assert!(ranks.iter().all(|rank| rank.0.id() != pid));
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(command.contains("\0hold\0"), "{command}");
    // It serves on when a rank is done, and for a later program.
    ranks.remove(0).end();
    ranks[0].expect("appended");
    ranks.remove(0).end();
    let client = connect(temp.path(), 1);
    assert_eq!(client.stat("/journal").unwrap().size, 2 * 9 * 5000);
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::TERM).unwrap();
}

/// The servers of a directory live in a program: they too get memory before files need it.
#[test]
fn servers_of_a_directory_have_memory_ready() {
    let temp = TempDir::new();
    let client = connect(temp.path(), 1);
    let member = client.members().unwrap().remove(0);
    let count = |name: &str| {
        let counters = client.server_statistics(member.server).unwrap();
        counters.iter().find(|c| c.name == name).unwrap().value
    };
    assert!(count("reserve_wanted_bytes") > 0);
    system_tests::until("memory is ready", || {
        count("reserve_bytes") >= count("reserve_wanted_bytes")
    });
    let (ready, fresh) = (count("extents_ready"), count("extents_fresh"));
    let file = OpenOptions::new().write().create();
    let file = client.open("/f", &file).unwrap();
    file.write_at(0, &vec![7; 1 << 20]).unwrap();
    assert!(count("extents_ready") > ready);
    assert_eq!(count("extents_fresh"), fresh);
}
