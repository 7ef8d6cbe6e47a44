//! Commands about stored files as users run them: every test starts a service of real processes, runs
//! the built program against it, and compares bytes and texts.
//!
//! Left to others: what servers do when they die (`system-tests`).

mod bad_input;
mod bytes;
mod formats;
mod hints;
mod layouts;
mod moving;
mod names;
mod prediction;
mod profile;
mod rebuild;
mod streams;
mod subfiles;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A service of its own, and a directory for files of this host. Both end with the test.
struct Service {
    dir: PathBuf,
}

impl Service {
    /// Three I/O servers that keep bytes in memory.
    fn start() -> Service {
        Service::start_on("memory")
    }

    /// Three I/O servers with this store.
    fn start_on(store: &str) -> Service {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Sockets need short paths, which the build directory does not promise.
        let name = format!("pario-files-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        // What a process of the same number left behind is of no use to anybody.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("local")).expect("a directory");
        let service = Service { dir };
        service.up(store);
        service
    }

    fn up(&self, store: &str) {
        let output = self
            .pario(&["up", "--detach", "--servers", "3", "--store", store])
            .args(["--memory", "256MiB", "--dir"])
            .arg(self.dir.join("service"))
            .output()
            .expect("pario starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    }

    /// A file of this host.
    fn local(&self, name: &str) -> PathBuf {
        self.dir.join("local").join(name)
    }

    /// A local path as an argument.
    fn local_text(&self, name: &str) -> String {
        let path = self.local(name);
        path.to_str().expect("a readable path").to_owned()
    }

    /// A file of this host with these bytes.
    fn write(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.local(name), bytes).expect("written");
        self.local_text(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.local(name)).expect("read")
    }

    /// The program, in the directory of local files.
    fn pario(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pario"));
        let url = format!("unix:{}/service/meta.sock", self.dir.display());
        command
            .args(arguments)
            .env("PARIO_URL", url)
            .env("RUST_BACKTRACE", "1")
            .env_remove("PARIO_SECRET")
            .env_remove("COLUMNS")
            .current_dir(self.dir.join("local"))
            .stdin(Stdio::null());
        command
    }

    /// Standard output of a run that succeeds and says nothing on standard error.
    #[track_caller]
    fn bytes_of(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.pario(arguments).output().expect("pario starts");
        succeeded(arguments, output)
    }

    /// Runs a command with bytes on standard input; what it prints.
    #[track_caller]
    fn bytes_with_input(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = self
            .pario(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pario starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let output = std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output().expect("pario ends")
        });
        succeeded(arguments, output)
    }

    #[track_caller]
    fn text_of(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.bytes_of(arguments)).expect("text")
    }

    #[track_caller]
    fn json_of(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.text_of(arguments)).expect("JSON")
    }

    /// A run that prints nothing at all.
    #[track_caller]
    fn silent(&self, arguments: &[&str]) {
        assert_eq!(self.text_of(arguments), "", "{arguments:?}");
    }

    /// The one line of a run that fails; it begins with `pario: ` and has all words.
    #[track_caller]
    fn refused(&self, arguments: &[&str], words: &[&str]) -> String {
        let output = self.pario(arguments).output().expect("pario starts");
        let errors = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{arguments:?}: {errors}");
        assert!(errors.starts_with("pario: "), "{arguments:?}: {errors}");
        assert!(!errors.contains("bug in pario"), "{arguments:?}: {errors}");
        for word in words {
            let lower = errors.to_lowercase();
            let found = lower.contains(&word.to_lowercase());
            assert!(found, "{arguments:?}: no '{word}' in: {errors}");
        }
        errors
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let ended = self
            .pario(&["down", "--dir"])
            .arg(self.dir.join("service"))
            .output();
        if let Ok(output) = ended
            && !output.status.success()
        {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[track_caller]
fn succeeded(arguments: &[&str], output: Output) -> Vec<u8> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    // Where a move takes more than a few seconds it is told now and then how far it is.
    let is_progress = |line: &&str| line.ends_with(" left") || line.ends_with("/s");
    let rest: Vec<&str> = errors.lines().filter(|line| !is_progress(line)).collect();
    assert_eq!(rest, [""; 0], "{arguments:?}");
    output.stdout
}

/// Bytes that tell their place, and do not repeat with any stripe.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    random::Random::new(seed).bytes(len)
}

/// Space that a local file takes.
fn space_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).expect("there").blocks() * 512
}
