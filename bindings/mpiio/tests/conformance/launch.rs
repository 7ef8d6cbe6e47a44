//! Runs a program under `mpiexec` with the library preloaded, and looks at what it printed.
//!
//! Every run has a time limit; a program that hangs is ended with all its ranks. MPICH runs with a
//! library that yields, since there may be more ranks than processors.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use system_tests::{Service, ServiceOptions, TempDir, pause, programs as binaries};

use crate::mpi::Mpi;
use crate::programs;

/// Who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A service of its own.
    Service,
    /// Servers that live as long as `pario run`.
    Job,
    /// A directory, held by a process that the ranks start.
    Embedded,
}

/// A place where programs run: a directory, and a service where the mode has one.
pub(crate) struct Site {
    mode: Mode,
    service: Option<Service>,
    dir: TempDir,
}

impl Site {
    /// Makes one.
    pub(crate) fn new(mode: Mode) -> Site {
        let service = (mode == Mode::Service).then(|| ServiceOptions::new(2).start());
        let dir = TempDir::new();
        Site { mode, service, dir }
    }

    /// The service, if it has one.
    pub(crate) fn service(&mut self) -> &mut Service {
        self.service.as_mut().expect("a site with a service")
    }

    /// A folder of its own.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A run of a program, to be completed by the caller.
    pub(crate) fn run(&self, mpi: Mpi, ranks: usize, program: impl Into<PathBuf>) -> Launch<'_> {
        Launch {
            site: self,
            mpi,
            ranks,
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            preloaded: true,
            backing: None,
            limit: Duration::from_secs(120),
        }
    }
}

/// A program that is about to run.
pub(crate) struct Launch<'a> {
    site: &'a Site,
    mpi: Mpi,
    ranks: usize,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    preloaded: bool,
    backing: Option<PathBuf>,
    limit: Duration,
}

impl Launch<'_> {
    /// With an argument.
    pub(crate) fn argument(mut self, argument: impl AsRef<Path>) -> Self {
        let argument = argument.as_ref().to_str().expect("a name in UTF-8");
        self.arguments.push(argument.into());
        self
    }

    /// With a variable for the ranks.
    pub(crate) fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Over the MPI's own implementation.
    pub(crate) fn without_pario(mut self) -> Self {
        self.preloaded = false;
        self
    }

    /// With a directory behind the job.
    pub(crate) fn backing(mut self, dir: &Path) -> Self {
        assert_eq!(
            self.site.mode,
            Mode::Job,
            "a service has no directory behind it"
        );
        self.backing = Some(dir.into());
        self
    }

    /// With another limit.
    pub(crate) fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    fn command(&self) -> Command {
        let mpiexec = self.mpi.mpiexec(self.ranks);
        let mut command = if self.site.mode == Mode::Job && self.preloaded {
            let mut command = Command::new(binaries::pario());
            command.args(["run", "--servers", "2", "--memory", "512MiB"]);
            if let Some(dir) = &self.backing {
                command.arg("--backing").arg(dir);
            }
            command
                .arg("--")
                .arg(mpiexec.get_program())
                .args(mpiexec.get_args());
            command.env_remove("PARIO_URL");
            for (name, value) in mpiexec.get_envs() {
                command.env(name, value.expect("a value"));
            }
            command
        } else {
            let url = match (&self.site.service, self.site.mode) {
                (Some(service), _) => service.url().to_string(),
                (None, _) => format!("dir:{}", self.site.dir.join("files").display()),
            };
            let mut command = mpiexec;
            command.env("PARIO_URL", url);
            command
        };
        command.env("PARIO_PROGRAM", binaries::pario());
        command.env_remove("PARIO_SECRET").env_remove("PARIO_JOB");
        command.current_dir(self.site.dir());
        // Of the ranks only: neither library is for the launcher.
        let mut preload = Vec::new();
        if self.mpi.is_mpich() {
            preload.push(programs::yielding());
        }
        if self.preloaded {
            preload.push(programs::library());
        }
        let preload: Vec<_> = preload.iter().map(|p| p.display().to_string()).collect();
        command.arg("env");
        if !preload.is_empty() {
            command.arg(format!("LD_PRELOAD={}", preload.join(":")));
        }
        for (name, value) in &self.environment {
            command.arg(format!("{name}={value}"));
        }
        command.arg(&self.program).args(&self.arguments);
        command
    }

    /// Starts it.
    pub(crate) fn start(self) -> RunningProgram {
        let mut command = self.command();
        let file = self.site.dir.join(format!("output-{}", self.mpi.name()));
        let output = File::create(&file).expect("a file for the output");
        command.stdout(output.try_clone().expect("the same file"));
        command.stderr(output).stdin(std::process::Stdio::null());
        command.process_group(0);
        let child = command.spawn();
        let child = child.unwrap_or_else(|e| panic!("{command:?}: {e}; scripts/setup installs it"));
        let what = format!("{command:?}");
        RunningProgram {
            child,
            file,
            what,
            end: Instant::now() + self.limit,
        }
    }

    /// Runs it to its end.
    pub(crate) fn output(self) -> Output {
        self.start().output()
    }

    /// Runs a program of cases: all of them hold, and there is one at least.
    #[track_caller]
    pub(crate) fn holds(self) {
        let output = self.output();
        let passed = output.lines("ok ").count();
        let fine = output.status.success() && passed > 0 && output.lines("FAIL").count() == 0;
        assert!(fine, "{output}");
    }
}

/// A program that runs.
pub(crate) struct RunningProgram {
    child: Child,
    file: PathBuf,
    what: String,
    end: Instant,
}

impl RunningProgram {
    /// What it has printed until now.
    pub(crate) fn said(&self) -> String {
        let bytes = fs::read(&self.file).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn output(mut self) -> Output {
        loop {
            if let Some(status) = self.child.try_wait().expect("the state of a child") {
                return Output {
                    status,
                    what: std::mem::take(&mut self.what),
                    text: self.said(),
                };
            }
            let (what, said) = (&self.what, self.said());
            assert!(Instant::now() < self.end, "not in time: {what}\n{said}");
            pause(Duration::from_millis(20));
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let Some(group) = Pid::from_raw(self.child.id() as i32) else {
            return;
        };
        if matches!(self.child.try_wait(), Ok(None)) {
            // The launcher knows its ranks, which may be in groups of their own: it goes first.
            let _ = kill_process_group(group, Signal::TERM);
            let end = Instant::now() + Duration::from_secs(5);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
                pause(Duration::from_millis(20));
            }
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// What a program has printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Output {
    /// How it ended.
    pub(crate) status: ExitStatus,
    what: String,
    /// Standard output and standard error.
    pub(crate) text: String,
}

impl Output {
    /// Lines that begin so.
    pub(crate) fn lines(&self, beginning: &str) -> impl Iterator<Item = &str> {
        let lines = self.text.lines();
        lines.filter(move |line| line.starts_with(beginning))
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}\n{}", self.what, self.status, self.text)
    }
}

/// Runs cases of a program with some ranks over a service, under each MPI of this run.
#[track_caller]
pub(crate) fn cases_hold(program: &str, cases: &str, ranks: usize) {
    cases_hold_in(Mode::Service, program, cases, ranks);
}

/// Runs cases of a program, whichever service there is, and demands that all hold.
#[track_caller]
pub(crate) fn cases_hold_in(mode: Mode, program: &str, cases: &str, ranks: usize) {
    let site = Site::new(mode);
    for mpi in Mpi::selected() {
        let program = programs::c(mpi, program);
        let run = site.run(mpi, ranks, program).argument(cases);
        run.variable("CONFORMANCE_RANKS", ranks.to_string()).holds();
    }
}
