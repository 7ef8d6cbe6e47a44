//! Servers that live with a job: who starts them, what they serve, and that nothing of them is left.
//!
//! Programs are `rank` in its roles, started by themselves, by a shell, by `pario run` and by both MPI
//! launchers. Every test has a directory of its own for the servers (`PARIO_RUN_DIR`), and ends with the
//! proof that it is gone and that no holder runs, unless it is about the usual directory.

mod backing;
mod crashes;
mod hosts;
mod life;
mod memory;
mod modes;
mod run;
mod staging;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use system_tests::programs::{pario, rank};
use system_tests::{TempDir, until};

/// The launchers of two MPI libraries.
const LAUNCHERS: [&str; 2] = ["mpiexec.mpich", "mpiexec.openmpi"];

/// A place for one test: servers below it, files beside them.
struct Site {
    temp: TempDir,
}

impl Site {
    fn new() -> Site {
        Site {
            temp: TempDir::new(),
        }
    }

    fn run_dir(&self) -> PathBuf {
        self.temp.join("run")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.temp.join(name)
    }

    /// A program in the environment of this site.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let is_ours = ["PARIO_", "SLURM_", "PBS_", "PMI", "OMPI_"];
            if is_ours.iter().any(|prefix| name.starts_with(prefix)) && name != "PARIO_KEEP" {
                command.env_remove(name);
            }
        }
        command
            .env("PARIO_RUN_DIR", self.run_dir())
            .env("PARIO_PROGRAM", pario())
            .env("PARIO_SERVERS", "2")
            .env("PARIO_MEMORY", "128MiB")
            .env("RANK", rank())
            .env("PARIO", pario())
            .current_dir(self.temp.path());
        command
    }

    /// A program whose service is its job.
    fn job(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.command(program);
        command.env("PARIO_URL", "job:");
        command
    }

    /// `pario run OPTIONS -- sh -c SCRIPT`.
    fn run(&self, options: &[&str], script: &str) -> Command {
        let mut command = self.command(pario());
        command.arg("run").args(options);
        command.args(["--", "sh", "-c", script]);
        command
    }

    /// Processes that hold servers below this site.
    fn holders(&self) -> Vec<u32> {
        holders_with("PARIO_RUN_DIR", &self.run_dir().display().to_string())
    }

    /// Waits until no process and no file is left.
    #[track_caller]
    fn is_empty(&self) {
        until("the end of the holder", || self.holders().is_empty());
        until("the end of its files", || !self.run_dir().exists());
    }
}

/// `mpiexec -n COUNT`, which as root has to be told that this is meant.
fn launcher(name: &str, site: &Site, count: usize) -> Command {
    let mut command = site.job(name);
    if name == "mpiexec.openmpi" {
        command.args(["--allow-run-as-root", "--oversubscribe"]);
        // Not a path that root and others share.
        command.env("TMPDIR", site.temp.path());
    }
    command.args(["-n", &count.to_string()]);
    command
}

/// Holders with a variable in their environment.
fn holders_with(name: &str, value: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_holder = String::from_utf8_lossy(&command).contains("\0hold-job\0");
        is_holder && environment(*pid).get(name).map(String::as_str) == Some(value)
    })
    .collect()
}

fn environment(pid: u32) -> HashMap<String, String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let pairs = text.split('\0').filter_map(|entry| entry.split_once('='));
    pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

/// Runs a command to its end, which has to be a good one; what it said.
#[track_caller]
fn good(command: &mut Command) -> String {
    let output = ended(command);
    let text = said(&output);
    assert!(output.status.success(), "{command:?}: {text}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command to its end.
#[track_caller]
fn ended(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output();
    output.unwrap_or_else(|e| panic!("{command:?}: {e}; see `make setup`"))
}

/// Everything that was said, errors last.
fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Running {
    #[track_caller]
    fn start(command: &mut Command) -> Running {
        let child = command.stdin(Stdio::null()).spawn();
        Running(child.unwrap_or_else(|e| panic!("{command:?}: {e}; see `make setup`")))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// `kill -9`.
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal.
#[track_caller]
fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Ends a process that has outlived its job, unless it has ended by itself.
fn kill_if_there(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Waits until a file has so many lines; they are written as a whole.
#[track_caller]
fn lines_of(path: &Path, count: usize) -> Vec<String> {
    let read = || -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    until("lines of a program", || read().len() >= count);
    read()
}
