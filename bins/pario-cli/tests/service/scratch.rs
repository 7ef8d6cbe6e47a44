//! What the tests share: a directory that takes its processes with it, the program in it, processes
//! in the foreground, and waiting for conditions.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use client::{Client, ConnectOptions, ServiceUrl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Longest time that any condition may take to come true.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of one test. Services that run in it are killed when it goes.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Short, since sockets are in it.
        let name = format!("pario-{name}-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // What a process of the same number left behind is of no use to anybody.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Scratch(path.canonicalize().expect("it exists"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The program, run in this directory, with nothing of the caller's service in its environment.
    pub(crate) fn pario(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pario"));
        command.args(arguments).current_dir(&self.0);
        for name in [
            "PARIO_URL",
            "PARIO_SECRET",
            "PARIO_SERVERS",
            "PARIO_TIMEOUT",
            "PARIO_LOG",
        ] {
            command.env_remove(name);
        }
        command.env("RUST_BACKTRACE", "1");
        command
    }

    /// Standard output of a run that succeeds.
    #[track_caller]
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        text_of(self.pario(arguments))
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).expect("JSON")
    }

    /// What a run that fails says: one line without insides.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        refusal_of(self.pario(arguments), 1)
    }

    /// A service in the background.
    #[track_caller]
    pub(crate) fn up(&self, arguments: &[&str]) -> Value {
        self.json(&[&["up", "--detach", "--json"], arguments].concat())
    }

    /// A process in the foreground, and its first line.
    #[track_caller]
    pub(crate) fn start(&self, arguments: &[&str]) -> (Foreground, String) {
        let mut process = Foreground::new(self.pario(arguments));
        let line = process.line();
        (process, line)
    }

    /// A server in the foreground, and its URL.
    #[track_caller]
    pub(crate) fn serve(&self, arguments: &[&str]) -> (Foreground, String) {
        let (process, line) = self.start(&[&["serve"], arguments].concat());
        let url = line.strip_prefix("listening on ").map(str::to_owned);
        let url = url.unwrap_or_else(|| panic!("{line}: {}", process.errors()));
        (process, url)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for entry in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let Ok(text) = std::fs::read_to_string(entry.path().join("service.json")) else {
                continue;
            };
            let state: Value = serde_json::from_str(&text).unwrap_or_default();
            for pid in pids(&state) {
                end(pid);
            }
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The processes of a service, the supervisor first.
pub(crate) fn pids(state: &Value) -> Vec<u64> {
    let servers = state["servers"].as_array().cloned().unwrap_or_default();
    let all = [state["supervisor"].clone(), state["meta"].clone()];
    all.iter()
        .chain(&servers)
        .filter_map(|process| process["pid"].as_u64())
        .collect()
}

/// Kills a process of the program, and nothing else that may have its number by now.
fn end(pid: u64) {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    if program.is_some_and(|p| p.ends_with("pario")) {
        signal(pid, Signal::SIGKILL);
    }
}

pub(crate) fn signal(pid: u64, signal: Signal) {
    let _ = kill(Pid::from_raw(pid as i32), signal);
}

/// Whether a thread of a process runs: until the last one is over it has its locks and sockets.
pub(crate) fn is_running(pid: u64) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    threads.into_iter().flatten().flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.trim().chars().next());
        state.is_some_and(|s| !matches!(s, 'Z' | 'X'))
    })
}

#[track_caller]
pub(crate) fn text_of(mut command: Command) -> String {
    let output = command.output().expect("pario starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
pub(crate) fn refusal_of(mut command: Command, code: i32) -> String {
    let output = command.output().expect("pario starts");
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{command:?}: {errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{command:?}");
    for word in ["panick", "stack backtrace", "bug in pario"] {
        assert!(!errors.contains(word), "{command:?}: {errors}");
    }
    if code == 1 {
        assert!(errors.starts_with("pario: "), "{command:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{command:?}: {errors}");
    }
    errors
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn wait_until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A client of a service.
#[track_caller]
pub(crate) fn connect(url: &str) -> Client {
    let url: ServiceUrl = url.parse().expect("a URL");
    Client::connect(&url, ConnectOptions::default()).expect("a service")
}

/// A process that is killed when the test ends.
pub(crate) struct Foreground {
    child: Child,
    lines: Receiver<String>,
    errors: Arc<Mutex<String>>,
}

impl Foreground {
    pub(crate) fn new(mut command: Command) -> Foreground {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pario starts");
        let (sender, lines) = channel();
        let stdout = child.stdout.take().expect("a pipe");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let errors = Arc::new(Mutex::new(String::new()));
        let (theirs, stderr) = (Arc::clone(&errors), child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || {
            let mut stderr = BufReader::new(stderr);
            let mut line = Vec::new();
            while matches!(stderr.read_until(b'\n', &mut line), Ok(1..)) {
                let text = String::from_utf8_lossy(&line).into_owned();
                theirs.lock().expect("no panic").push_str(&text);
                line.clear();
            }
        });
        Foreground {
            child,
            lines,
            errors,
        }
    }

    pub(crate) fn pid(&self) -> u64 {
        u64::from(self.child.id())
    }

    /// What it has written to standard error so far.
    pub(crate) fn errors(&self) -> String {
        self.errors.lock().expect("no panic").clone()
    }

    /// The next line of standard output.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        self.lines
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("no line: {}", self.errors()))
    }

    pub(crate) fn signal(&self, which: Signal) {
        signal(self.pid(), which);
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait_until("the process ends", || {
            self.child.try_wait().expect("a child")
        })
    }

    /// Asks it to end, which it does with code 0.
    #[track_caller]
    pub(crate) fn terminate(&mut self) {
        self.signal(Signal::SIGTERM);
        let status = self.ended();
        assert_eq!(status.code(), Some(0), "{}", self.errors());
    }

    #[track_caller]
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.ended();
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file with a secret, readable by its owner only.
pub(crate) fn write_secret(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("private");
}

/// All that is left to read.
pub(crate) fn read_to_end(path: &Path) -> String {
    let mut text = String::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        let _ = file.read_to_string(&mut text);
    }
    text
}
