//! Starting the holder: a process of its own, which the job's processes only talk to.
//!
//! It says one line on its standard output: that it serves, or why it cannot. Standard error is the
//! one of the job: of the process or launcher that the job is, which waits for it like for the ranks, or
//! of the script whose programs come and go. A pipe of one of these programs it must not have: a process that
//! reads from it would wait for the end of the job.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use wire::url::Endpoint;

use crate::error::Error;
use crate::identity::{JOB, JOB_HOST, Job, RANK_MARKS, Span};
use crate::process::Process;
use crate::program;

/// Beginning of the line of a holder that serves.
pub(crate) const READY: &str = "ready ";
/// Beginning of the line of a holder that cannot.
pub(crate) const FAILED: &str = "failed ";
/// The line of a holder that came too late.
pub(crate) const HELD: &str = "held";

/// A holder that was started.
#[derive(Debug)]
pub struct StartedHolder {
    /// The process.
    pub child: Child,
    /// Where clients of this host find the metadata manager.
    pub endpoint: Endpoint,
    /// Where clients of other hosts find it, and what they have to know.
    pub network: Option<(Endpoint, String)>,
}

/// Starts a holder and waits until it serves; nothing if another process holds.
pub fn start(
    job: &Job,
    change: &mut dyn FnMut(&mut Command),
) -> Result<Option<StartedHolder>, Error> {
    let failed = |why: String| Error::Start {
        job: job.key.clone(),
        why,
    };
    let program = program::find();
    let mut command = Command::new(&program);
    command
        .arg("hold-job")
        .args(arguments(job))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors(job))
        // Signals to the job's group are not meant for it.
        .process_group(0);
    // With these it would count as a process of the job.
    for name in RANK_MARKS
        .iter()
        .chain(&[JOB, JOB_HOST, "SLURM_JOB_ID", "PBS_JOBID", "PARIO_URL"])
    {
        command.env_remove(name);
    }
    program::without_library(&mut command);
    change(&mut command);
    let mut child = command.spawn().map_err(|e| {
        failed(format!(
            "{}: {e}; put `pario` on the PATH or name it in PARIO_PROGRAM",
            program.display()
        ))
    })?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        // It says something or ends, within its own limits.
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    let line = line.trim_end();
    if let Some(said) = line.strip_prefix(READY) {
        let mut words = said.split('\t');
        let parse = |text: Option<&str>| text.and_then(|text| text.parse::<Endpoint>().ok());
        let endpoint = parse(words.next()).ok_or_else(|| failed(format!("it says '{said}'")))?;
        let network = parse(words.next()).zip(words.next().map(str::to_owned));
        return Ok(Some(StartedHolder {
            child,
            endpoint,
            network,
        }));
    }
    // It ends by itself after any other line, and is not left as a zombie.
    let status = child.wait();
    if line == HELD {
        return Ok(None);
    }
    Err(failed(match line.strip_prefix(FAILED) {
        // It speaks of the same job.
        Some(why) => why.strip_prefix("job: ").unwrap_or(why).to_owned(),
        None => format!(
            "the process that was to hold them ended without a word ({})",
            status.map_or("lost".into(), |s| s.to_string())
        ),
    }))
}

/// Where a holder says what it has to say at the end.
fn errors(job: &Job) -> Stdio {
    let own = match &job.span {
        Span::Leader(_) | Span::Ranks(_) => return Stdio::inherit(),
        Span::Marked(..) | Span::Elsewhere => std::io::stderr(),
    };
    if own.is_terminal() || rustix::fs::fstat(&own).is_ok_and(|found| is_regular(&found)) {
        return Stdio::inherit();
    }
    let Span::Marked(name, value) = &job.span else {
        return Stdio::null();
    };
    let mut script = None;
    let mut process = Process::this().parent();
    while let Some(found) = process {
        if found.variable(name).as_ref() == Some(value) {
            script = Some(found);
        }
        process = found.parent();
    }
    let path = script.map(|script| format!("/proc/{}/fd/2", script.pid));
    let opened = path.and_then(|path| OpenOptions::new().append(true).open(path).ok());
    opened.map_or_else(Stdio::null, Stdio::from)
}

fn is_regular(found: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(found.st_mode).is_file()
}

fn arguments(job: &Job) -> Vec<String> {
    let process = |p: &Process| format!("{} {}", p.pid, p.started);
    let (word, value) = match &job.span {
        Span::Leader(p) => ("--leader", process(p)),
        Span::Ranks(p) => ("--ranks-of", process(p)),
        Span::Marked(name, value) => ("--marked", format!("{name}={value}")),
        Span::Elsewhere => ("--elsewhere", String::new()),
    };
    let mut arguments = vec![
        "--key".into(),
        job.key.clone(),
        "--shared-key".into(),
        job.shared_key.clone(),
        word.into(),
    ];
    if !value.is_empty() {
        arguments.push(value);
    }
    for (flag, is_set) in [
        ("--single", job.is_single),
        ("--run", job.is_run),
        ("--several-hosts", job.has_hosts),
    ] {
        if is_set {
            arguments.push(flag.into());
        }
    }
    arguments
}
