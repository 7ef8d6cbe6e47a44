//! Keepers and servers as processes that are killed: what the next one gets, who is refused, and when a keeper ends.
//!
//! Left to others: what an I/O server makes of what it gets (`system-tests`).

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use testkit::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_keeper-twin");
const BOUND: Duration = Duration::from_secs(20);

/// A server that uses a keeper.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The first line it said.
    found: String,
}

impl Server {
    fn start(dir: &Path) -> Server {
        Server::with_patience(dir, 60)
    }

    fn with_patience(dir: &Path, seconds: u64) -> Server {
        let mut child = Command::new(PROGRAM)
            .arg("serve")
            .arg(dir)
            .arg(seconds.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let found = line(&mut output);
        Server {
            child,
            input,
            output,
            found,
        }
    }

    fn say(&mut self, text: &str) -> String {
        writeln!(self.input, "{text}").unwrap();
        line(&mut self.output)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn line(from: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// The keeper of a directory, as the kernel knows it.
fn process(dir: &Path) -> Pid {
    Pid::from_raw(keeper::look(dir).unwrap().process.cast_signed()).unwrap()
}

/// Waits for something that another process does.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {BOUND:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// A keeper whose server was killed is a child of nobody who waits, here: its number may stay for a while.
fn is_gone(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let is_zombie = stat.is_ok_and(|s| s.rsplit(") ").next().is_some_and(|s| s.starts_with('Z')));
    is_zombie || test_kill_process(pid).is_err()
}

#[test]
fn next_start_of_a_killed_server_gets_every_descriptor() {
    let dir = TempDir::new();
    let mut server = Server::start(dir.path());
    assert_eq!(server.found, "[]");
    for i in 0..300 {
        assert_eq!(server.say(&format!("keep n{i:03} text{i}")), "done");
    }
    server.say("forget n007");
    server.say("keep n008 other");
    let keeper = process(dir.path());
    server.kill();
    let mut next = Server::start(dir.path());
    let texts = (0..300).filter(|i| *i != 7).map(|i| match i {
        8 => "n008=other".to_owned(),
        _ => format!("n{i:03}=text{i}"),
    });
    let wanted: Vec<String> = texts.collect();
    assert_eq!(next.found, format!("[{}]", wanted.join(" ")));
    assert_eq!(process(dir.path()), keeper, "the same keeper");
    // What the next one adds is there for the one after it.
    next.say("keep later one");
    next.kill();
    let mut last = Server::start(dir.path());
    assert!(last.found.starts_with("[later=one n000"), "{}", last.found);
    assert_eq!(last.say("end"), "done");
    until("the keeper ends in order", || is_gone(keeper));
    assert!(!dir.path().join(keeper::SOCKET).exists());
    last.kill();
}

#[test]
fn second_server_is_refused_and_told_so_while_the_first_lives() {
    let dir = TempDir::new();
    let mut server = Server::start(dir.path());
    server.say("keep a one");
    // It has nothing mapped any more, but it lives.
    kill_process(pid(&server.child), Signal::STOP).unwrap();
    let second = Server::start(dir.path());
    let holder = server.child.id();
    assert!(
        second.found.contains(&format!("serves process {holder}"))
            && second.found.contains("end that server"),
        "{}",
        second.found
    );
    match keeper::end(dir.path()) {
        Err(keeper::Error::Held(_, pid)) => assert_eq!(pid, holder),
        other => panic!("{other:?}"),
    }
    let glance = keeper::look(dir.path()).unwrap();
    assert_eq!((glance.serves, glance.descriptors), (Some(holder), 1));
    assert!(glance.bytes >= 3, "{glance:?}");
    // Once it is over, the memory is the next one's.
    server.kill();
    let third = Server::start(dir.path());
    assert_eq!(third.found, "[a=one]");
    third.kill();
    keeper::end(dir.path()).unwrap();
    assert!(matches!(
        keeper::look(dir.path()),
        Err(keeper::Error::None(_))
    ));
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

#[test]
fn server_that_comes_while_the_one_before_dies_waits_for_its_end() {
    let dir = TempDir::new();
    let mut server = Server::start(dir.path());
    server.say("keep a one");
    std::thread::scope(|scope| {
        let next = scope.spawn(|| Server::start(dir.path()));
        // It asks, is told who is served, and waits for that process.
        std::thread::park_timeout(Duration::from_millis(50));
        server.kill();
        let next = next.join().unwrap();
        assert_eq!(next.found, "[a=one]");
        next.kill();
    });
    keeper::end(dir.path()).unwrap();
}

#[test]
fn process_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        testkit::skipped("another user takes root");
        return;
    }
    let dir = TempDir::new();
    let server = Server::start(dir.path());
    // The modes of files are not what keeps others out here.
    use std::os::unix::fs::PermissionsExt;
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(dir.path(), 0o777);
    open(&dir.path().join(keeper::SOCKET), 0o777);
    let program = dir.path().join("program");
    std::fs::copy(PROGRAM, &program).unwrap();
    open(&program, 0o755);
    let stranger = Command::new(&program)
        .arg("look")
        .arg(dir.path())
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&stranger.stdout);
    assert!(said.contains("it is a process of user 0"), "{said}");
    // One that does not look whom it talks to is told by the keeper.
    let raw = Command::new("python3")
        .arg("-c")
        .arg("import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\ns.connect(sys.argv[1])\nprint(s.recv(300).decode())")
        .arg(dir.path().join(keeper::SOCKET))
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&raw.stdout);
    assert!(
        said.contains("not of user 65534"),
        "{said} {:?}",
        raw.stderr
    );
    server.kill();
    keeper::end(dir.path()).unwrap();
}

#[test]
fn keeper_without_a_server_ends_by_itself_and_with_its_directory() {
    let dir = TempDir::new();
    let server = Server::with_patience(dir.path(), 1);
    let keeper = process(dir.path());
    // As long as its server lives it stays.
    std::thread::park_timeout(Duration::from_millis(1300));
    assert!(!is_gone(keeper));
    server.kill();
    until("the keeper has waited long enough", || is_gone(keeper));
    let server = Server::start(dir.path());
    assert_eq!(server.found, "[]");
    let keeper = process(dir.path());
    server.kill();
    assert!(!is_gone(keeper));
    std::fs::remove_file(dir.path().join(keeper::SOCKET)).unwrap();
    until("its directory is gone", || is_gone(keeper));
}

#[test]
fn death_of_the_keeper_is_noticed_and_repaired() {
    let dir = TempDir::new();
    let mut server = Server::start(dir.path());
    server.say("keep a one");
    server.say("keep b two");
    for round in 0..3 {
        let keeper = process(dir.path());
        kill_process(keeper, Signal::KILL).unwrap();
        // Whether it has noticed or not.
        assert_eq!(server.say(&format!("keep c{round} later")), "done");
        until("another keeper", || {
            keeper::look(dir.path()).is_ok_and(|g| g.descriptors == 3 + round && g.serves.is_some())
        });
        until("it is back", || server.say("away") == "false");
        assert!(is_gone(keeper), "the one before was waited for");
        assert_ne!(process(dir.path()), keeper);
    }
    server.kill();
    let next = Server::start(dir.path());
    assert_eq!(next.found, "[a=one b=two c0=later c1=later c2=later]");
    next.kill();
    keeper::end(dir.path()).unwrap();
}

#[test]
fn keeper_is_of_no_group_that_its_server_is_in() {
    let dir = TempDir::new();
    let server = Server::start(dir.path());
    let keeper = process(dir.path());
    let session = rustix::process::getsid(Some(keeper)).unwrap();
    assert_eq!(session, keeper, "a session of its own");
    assert_eq!(rustix::process::getpgid(Some(keeper)).unwrap(), keeper);
    server.kill();
    keeper::end(dir.path()).unwrap();
}
