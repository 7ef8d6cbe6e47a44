//! `pario run`: a command, or a script of several, with a service around it: the one that PARIO_URL names,
//! or servers of its own that end with it.
//!
//! The command finds the service through its environment, and MPI programs in it the MPI-IO library (`preload`). Its exit code is passed on, and signals
//! are passed on to it; those that a terminal sends to everybody are not sent twice. Files are moved in
//! before it starts and out after it has ended, whatever its end was.

use console::notation::size_argument;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use clap::Args;
use client::{Client, ConnectOptions, ServiceUrl};
use job::identity::{JOB, JOB_DIR, JOB_HOST, JOB_MANAGER, JOB_SECRET};
use job::stage::{Stage, StagingTotals, Watcher};
use job::{Job, Process, StartedHolder};
use layout::ByteSize;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::names::shown;
use super::output::{counted, note};
use super::schema::Schema;
use super::{Error, ExitWith, connection, output, preload};
use crate::progress::{self, Display, Progress};

/// Set for the holder of a job that has processes on other hosts.
pub(crate) const NETWORK: &str = "PARIO_JOB_NETWORK";

/// Arguments of `pario run`.
#[derive(Args, Clone)]
#[command(after_help = "\
Without PARIO_URL, or with --job, servers are started for the command and end with it: temporary
data at memory speed, from one program of a script to the next. They keep nothing on a disk
unless --spill, --backing or --stage-out say so.

--stage-in and --stage-out take DIR_OR_FILE[:PATH] and may be given several times; without PATH it is
/NAME. What cannot be staged out is named, and pario run fails even if the command did not.

MPI programs find the files of Pario as pario:PATH in MPI_File_open, without recompilation; with
PARIO_MPIIO=all every file they open through MPI is one, with PARIO_MPIIO=off none.

--schema FILE starts what an application schema of ViPIOS lists, lines \"HOST NUMBER PROGRAM\": vip_serv
stands for I/O servers of the job, all others are clients; without vip_serv they use the service that is there.

--backing DIR puts the job in front of a directory: files are fetched from it when they are first
opened, written back to it, and evicted from memory when that is short.

Examples:
  pario run -- mpiexec -n 4 ./simulate
  pario run --stage-in input --stage-out results -- sh -c 'mpiexec -n 4 ./a && mpiexec -n 4 ./b'
  pario run --servers 4 --memory 8GiB --spill /local/scratch -- ./pipeline.sh
  pario run --prepare job.pario -- mpiexec -n 4 ./simulate
  pario run --backing /project/data -- ./analyse
  pario run --schema application.schema")]
pub(crate) struct Arguments {
    /// Start servers for the command, whatever PARIO_URL says
    #[arg(long)]
    job: bool,

    /// I/O servers of the job [default: one per processor, 4 at most]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    servers: Option<u16>,

    /// Memory of these servers together [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    memory: Option<u64>,

    /// A local directory for what does not fit into memory
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,

    /// Move this in before the command starts
    #[arg(long, value_name = "DIR_OR_FILE[:PATH]", value_parser = Stage::parse)]
    stage_in: Vec<Stage>,

    /// Move this out after the command has ended
    #[arg(long, value_name = "DIR_OR_FILE[:PATH]", value_parser = Stage::parse)]
    stage_out: Vec<Stage>,

    /// Prepare this job file before the command starts, after --stage-in
    #[arg(long, value_name = "JOBFILE")]
    prepare: Option<PathBuf>,

    /// A directory to fetch files from and write them back to
    #[arg(long, value_name = "DIR")]
    backing: Option<PathBuf>,

    /// Let processes on other hosts take part [default: as the batch system says]
    #[arg(long)]
    network: bool,

    /// If something cannot be staged out, keep the servers for so many seconds
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep_seconds: u64,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON about the run when it is over
    #[arg(long)]
    json: bool,

    /// Start the programs of this application schema in place of a command
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "servers"])]
    schema: Option<PathBuf>,

    /// The command and its arguments
    #[arg(
        required_unless_present = "schema",
        trailing_var_arg = true,
        value_name = "COMMAND"
    )]
    command: Vec<std::ffi::OsString>,
}

/// Runs a command with a service.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    if let Some(path) = &arguments.schema {
        let schema = Schema::read(path)?;
        let has_servers = schema.servers > 0;
        return run(&Arguments {
            schema: None,
            command: schema.command(),
            job: arguments.job || has_servers,
            servers: has_servers.then_some(schema.servers),
            ..arguments.clone()
        });
    }
    if arguments.is_own_job()? {
        return arguments.as_job();
    }
    arguments.on_service()
}

impl Arguments {
    /// Whether servers are started for the command.
    fn is_own_job(&self) -> Result<bool, Error> {
        let named = connection::named();
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|text| !text.is_empty());
        let has_job = [JOB, "SLURM_JOB_ID", "PBS_JOBID"].into_iter().any(is_set);
        let is_own = self.job
            || match &named {
                None => true,
                Some((role, text)) => match text.parse::<ServiceUrl>() {
                    Ok(ServiceUrl::Job) => !has_job,
                    Ok(_) => false,
                    Err(e) => return Err(format!("{role}: {e}").into()),
                },
            };
        if is_own {
            return Ok(true);
        }
        for (option, is_given) in [
            ("--servers", self.servers.is_some()),
            ("--memory", self.memory.is_some()),
            ("--spill", self.spill.is_some()),
            ("--backing", self.backing.is_some()),
            ("--network", self.network),
        ] {
            if is_given {
                let (role, text) = named.unwrap_or(("PARIO_URL", String::new()));
                return Err(format!(
                    "{option} is for servers of its own, and {role} names the service {}; add --job, \
                     or leave {option} away",
                    shown(&text)
                )
                .into());
            }
        }
        Ok(false)
    }

    fn on_service(&self) -> Result<(), Error> {
        let (stage_in, stage_out) = self.stages()?;
        let started = Instant::now();
        let client = connection::connect()?;
        let moved_in = self.move_in(&client, &stage_in)?;
        let mut command = self.command();
        if let Some((_, url)) = connection::named() {
            command.env("PARIO_URL", url);
        }
        let status = self.run_command(command, None)?;
        let (moved_out, failures) = self.move_out(&client, &stage_out, status);
        self.report(started, None, status, moved_in, moved_out, &failures, false)
    }

    fn as_job(&self) -> Result<(), Error> {
        let (stage_in, stage_out) = self.stages()?;
        let begun = Instant::now();
        let job = Job::of_this_run();
        let environment = self.environment(&job)?;
        let has_network = self.network || job.has_hosts || std::env::var_os(JOB_DIR).is_some();
        let started = job::start(&job, &mut |command| {
            command.envs(environment.iter().map(|(name, value)| (name, value)));
            for name in ["PARIO_STAGE_IN", "PARIO_STAGE_OUT", JOB_MANAGER, JOB_SECRET] {
                command.env_remove(name);
            }
            if has_network {
                command.env(NETWORK, "1");
            }
        })?;
        let mut started = started.ok_or("a job of this name is there already; try again")?;
        let outcome = self.with_servers(&job, &mut started, &environment, &stage_in, &stage_out);
        // Also after a failure: the holder is told, and waited for, so that nothing is left.
        let kept = end(&mut started);
        let (status, moved_in, moved_out, failures) = outcome?;
        self.report(
            begun,
            Some(&job),
            status,
            moved_in,
            moved_out,
            &failures,
            !kept,
        )
    }

    fn with_servers(
        &self,
        job: &Job,
        started: &mut StartedHolder,
        environment: &[(String, std::ffi::OsString)],
        stage_in: &[Stage],
        stage_out: &[Stage],
    ) -> Result<(ExitStatus, Totals, Totals, Vec<String>), Error> {
        let url = ServiceUrl::At(started.endpoint.clone());
        let mut options = ConnectOptions::default();
        if let Some((_, secret)) = &started.network {
            // Servers of other hosts ask for it.
            options.keys.user = Some(serving::Secret::new(secret.as_bytes()));
        }
        let client = Client::connect(&url, options)?;
        let moved_in = self.move_in(&client, stage_in)?;
        let mut command = self.command();
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command
            .env("PARIO_URL", "job:")
            .env(JOB, &job.key)
            .env(JOB_HOST, serving::local_host());
        if let Some((manager, secret)) = &started.network {
            command
                .env(JOB_MANAGER, manager.to_string())
                .env(JOB_SECRET, secret);
            if std::env::var_os("OMPI_MCA_mca_base_env_list").is_none() {
                // Open MPI takes nothing along to other hosts unless it is told.
                let mut names = vec!["PARIO_URL", "PARIO_PROGRAM", "LD_PRELOAD"];
                names.extend([JOB, JOB_HOST, JOB_MANAGER, JOB_SECRET]);
                names.extend(environment.iter().map(|(name, _)| name.as_str()));
                command.env("OMPI_MCA_mca_base_env_list", names.join(";"));
            }
        }
        let status = self.run_command(command, Some(&mut started.child))?;
        let (moved_out, failures) = self.move_out(&client, stage_out, status);
        if !failures.is_empty() && self.keep_seconds > 0 {
            note(&format!(
                "pario: the servers stay for {} s; fetch what is missing with PARIO_URL={} pario get \
                 PATH",
                self.keep_seconds, started.endpoint
            ));
            let patience = Duration::from_secs(self.keep_seconds);
            let signals = take_signals()?;
            // A signal ends the wait like the time does.
            wait_for(&[&signals], Some(patience))?;
        }
        Ok((status, moved_in, moved_out, failures))
    }

    /// What the holders of the job are told, on this host and on others.
    fn environment(&self, job: &Job) -> Result<Vec<(String, std::ffi::OsString)>, Error> {
        let mut list: Vec<(String, std::ffi::OsString)> = Vec::new();
        let mut add = |name: &str, value: std::ffi::OsString| list.push((name.into(), value));
        if let Some(servers) = self.servers {
            add("PARIO_SERVERS", servers.to_string().into());
        }
        if let Some(memory) = self.memory {
            add("PARIO_MEMORY", ByteSize(memory).to_string().into());
        }
        for (name, option, dir) in [
            ("PARIO_SPILL", "--spill", &self.spill),
            ("PARIO_BACKING", "--backing", &self.backing),
        ] {
            let Some(dir) = dir else { continue };
            if !dir.is_dir() {
                let dir = shown(&dir.display().to_string());
                return Err(format!("{option}: {dir} is no directory; make it first").into());
            }
            add(name, std::path::absolute(dir)?.into());
        }
        if job.has_hosts && !self.quiet && std::env::var_os(JOB_DIR).is_none() {
            note("pario: the job has several hosts; they are served over the network");
        }
        Ok(list)
    }

    /// What the command line and the environment say.
    fn stages(&self) -> Result<(Vec<Stage>, Vec<Stage>), Error> {
        let named = |name: &str| -> Result<Vec<Stage>, Error> {
            let text = std::env::var(name).unwrap_or_default();
            let parts = text.split(',').filter(|part| !part.is_empty());
            parts
                .map(|part| Stage::parse(part).map_err(|e| format!("{name}: {e}").into()))
                .collect()
        };
        let mut stage_in = self.stage_in.clone();
        stage_in.extend(named("PARIO_STAGE_IN")?);
        let mut stage_out = self.stage_out.clone();
        stage_out.extend(named("PARIO_STAGE_OUT")?);
        if let Some(path) = &self.prepare {
            super::prepare::read(path)?;
        }
        for stage in &stage_in {
            // Before servers are started for nothing.
            std::fs::metadata(&stage.local)
                .map_err(|e| format!("--stage-in: cannot read {}: {e}", local(stage)))?;
        }
        Ok((stage_in, stage_out))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        // This process moves files; servers of other hosts must not.
        for name in ["PARIO_STAGE_IN", "PARIO_STAGE_OUT"] {
            command.env_remove(name);
        }
        preload::load(&mut command);
        if std::env::var_os("PARIO_PROGRAM").is_none()
            && let Ok(here) = std::env::current_exe()
        {
            command.env("PARIO_PROGRAM", here);
        }
        command
    }

    /// Runs the command to its end.
    fn run_command(
        &self,
        mut command: Command,
        holder: Option<&mut Child>,
    ) -> Result<ExitStatus, Error> {
        let mut child = command.spawn().map_err(|e| {
            let name = shown(&self.command[0].to_string_lossy());
            format!("cannot run {name}: {e}")
        })?;
        let signals = take_signals()?;
        let ended = pidfd(&child)?;
        let mut holder = match holder {
            Some(child) => Some((pidfd(child)?, child.id())),
            None => None,
        };
        loop {
            let mut fds: Vec<&dyn AsFd> = vec![&signals, &ended];
            if let Some((handle, _)) = &holder {
                fds.push(handle);
            }
            let ready = wait_for(&fds, None)?;
            if ready[0] {
                pass_on(&signals, &child)?;
            }
            // A killed process serves nobody from its first moment on and is over when its last thread is: the command
            // may have noticed and ended in between.
            let is_dead = |pid: u32| ready[1] && Process::with_number(pid).is_none();
            if let Some((_, pid)) = holder
                && (ready.get(2) == Some(&true) || is_dead(pid))
            {
                note(
                    "pario: the servers of this job have died, and what they held is lost; the \
                     command goes on without them",
                );
                holder = None;
            }
            if ready[1] {
                return Ok(child.wait()?);
            }
        }
    }

    fn move_in(&self, client: &Client, stages: &[Stage]) -> Result<Totals, Error> {
        let (mut totals, display) = (Totals::default(), Display::unless(self.quiet));
        for stage in stages {
            let mut watched = ProgressLine::begin(&local(stage), display);
            let moved = stage.move_in(client, &mut watched).map_err(|e| {
                let what = shown(&e.to_string());
                format!("--stage-in: {what}; the command was not started")
            })?;
            totals.add(
                moved,
                watched,
                &format!("staged in {}", local(stage)),
                display,
            );
        }
        if let Some(path) = &self.prepare {
            let job = super::prepare::read(path)?;
            let preparation = super::prepare::carry_out(client, &job, display)
                .map_err(|e| format!("--prepare: {e}; the command was not started"))?;
            if !self.quiet {
                super::prepare::tell(&preparation);
            }
        }
        Ok(totals)
    }

    fn move_out(
        &self,
        client: &Client,
        stages: &[Stage],
        status: ExitStatus,
    ) -> (Totals, Vec<String>) {
        let (mut totals, display) = (Totals::default(), Display::unless(self.quiet));
        let mut failures = Vec::new();
        if !stages.is_empty() && !status.success() && !self.quiet {
            note(&format!(
                "pario: the command {}; what it left is staged out",
                ending(status)
            ));
        }
        for stage in stages {
            let mut watched = ProgressLine::begin(&local(stage), display);
            let (moved, failed) = stage.move_out(client, &mut watched);
            totals.add(
                moved,
                watched,
                &format!("staged out {}", local(stage)),
                display,
            );
            for failure in &failed {
                note(&format!("pario: not staged out: {}", shown(failure)));
            }
            failures.extend(failed);
        }
        (totals, failures)
    }

    #[allow(clippy::too_many_arguments)]
    fn report(
        &self,
        begun: Instant,
        job: Option<&Job>,
        status: ExitStatus,
        moved_in: Totals,
        moved_out: Totals,
        failures: &[String],
        has_lost: bool,
    ) -> Result<(), Error> {
        let code = exit_code(status);
        if self.json {
            let facts = json!({
                "job": job.map(|job| &job.key),
                "exit_code": code,
                "seconds": begun.elapsed().as_secs_f64(),
                "stage_in": moved_in.to_json(),
                "stage_out": moved_out.to_json(),
                "not_staged_out": failures,
            });
            output::print(&format!("{facts:#}\n"))?;
        }
        if code != 0 {
            return Err(ExitWith(code).into());
        }
        if !failures.is_empty() {
            let lost = match job {
                Some(_) => "gone with the job",
                None => "in the service still",
            };
            return Err(format!(
                "{} not be staged out and {} {lost}; make room or choose another directory with \
                 --stage-out",
                counted(failures.len() as u64, "file could", "files could"),
                if failures.len() == 1 { "is" } else { "are" }
            )
            .into());
        }
        match has_lost {
            true => Err(
                "the job has ended, but not all of its files are kept; the lines above say \
                         which"
                    .into(),
            ),
            false => Ok(()),
        }
    }
}

/// What was moved in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    moved: StagingTotals,
    time: Duration,
}

impl Totals {
    fn add(&mut self, moved: StagingTotals, watched: ProgressLine, what: &str, display: Display) {
        let (_, time) = watched.0.so_far();
        drop(watched);
        self.moved.files += moved.files;
        self.moved.bytes += moved.bytes;
        self.time += time;
        if display == Display::Shown {
            let files = counted(moved.files, "file", "files");
            let rate = progress::summary(moved.bytes, time);
            note(&format!("pario: {what}: {files}, {rate}"));
        }
    }

    fn to_json(self) -> Value {
        json!({
            "files": self.moved.files,
            "bytes": self.moved.bytes,
            "seconds": self.time.as_secs_f64(),
        })
    }
}

/// A line on the terminal.
pub(crate) struct ProgressLine(Progress);

impl ProgressLine {
    pub(crate) fn begin(label: &str, display: Display) -> ProgressLine {
        ProgressLine(Progress::begin(label, None, display))
    }
}

impl Watcher for ProgressLine {
    fn total(&mut self, bytes: u64) {
        self.0.set_total(Some(bytes));
    }

    fn file(&mut self, name: &str) {
        self.0.set_label(&shown(name));
    }

    fn moved(&mut self, bytes: u64) {
        self.0.add(bytes);
    }
}

/// Tells the holder to end, and waits for it; whether it kept what it had to.
fn end(started: &mut StartedHolder) -> bool {
    if let Some(process) = job::Process::with_number(started.child.id()) {
        process.signal(rustix::process::Signal::TERM);
    }
    started.child.wait().is_ok_and(|status| status.success())
}

fn local(stage: &Stage) -> String {
    shown(&stage.local.display().to_string())
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|n| 128 + n));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn ending(status: ExitStatus) -> String {
    crate::service::worker::ending(Some(status))
}

fn forwarded() -> SigSet {
    use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2]
        .into_iter()
        .collect()
}

/// From now on signals are read, and end nothing by themselves. After the command was started, which
/// would have them blocked too.
fn take_signals() -> Result<SignalFd, Error> {
    let set = forwarded();
    set.thread_block()?;
    Ok(SignalFd::with_flags(
        &set,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?)
}

/// Sends the command what came for it. What the terminal sends, it sends to all of the group.
fn pass_on(signals: &SignalFd, child: &Child) -> Result<(), Error> {
    /// `SI_KERNEL`: from the terminal.
    const FROM_KERNEL: i32 = 0x80;
    while let Some(came) = signals.read_signal()? {
        let signal = i32::try_from(came.ssi_signo)
            .ok()
            .and_then(rustix::process::Signal::from_named_raw);
        if came.ssi_code == FROM_KERNEL {
            continue;
        }
        if let (Some(signal), Some(process)) = (signal, job::Process::with_number(child.id())) {
            process.signal(signal);
        }
    }
    Ok(())
}

fn pidfd(child: &Child) -> Result<OwnedFd, Error> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or("a process has no number")?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Which of these are ready; none when the time is over.
fn wait_for(fds: &[&dyn AsFd], patience: Option<Duration>) -> io::Result<Vec<bool>> {
    loop {
        let borrowed: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        let mut polled: Vec<PollFd<'_>> = borrowed
            .iter()
            .map(|fd| PollFd::new(fd, PollFlags::IN))
            .collect();
        let timeout = patience.and_then(|t| Timespec::try_from(t).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
            Ok(_) => return Ok(polled.iter().map(|p| !p.revents().is_empty()).collect()),
        }
    }
}
