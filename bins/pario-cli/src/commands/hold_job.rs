//! `pario hold-job`: holds the servers of a job on this host, which its first process starts it for. Ends
//! with the job, or when told to.
//!
//! Says one line on standard output and nothing more: that it serves and where, that another process
//! does, or why it cannot.

use std::io::{Write, pipe};

use clap::Args;
use job::identity::Span;
use job::{Job, Outcome, Process};

use super::{Error, ReportedFailure, output, serve};
use crate::service::inherited::close_inherited;
use crate::service::signals;

/// Arguments of `pario hold-job`.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("span").args(["leader", "ranks_of", "marked", "elsewhere"]).required(true)))]
pub(crate) struct Arguments {
    /// The name of the job on this host
    #[arg(long)]
    key: String,

    /// The name of the job on all hosts
    #[arg(long)]
    shared_key: String,

    /// The process that the job lasts as long as: number and start
    #[arg(long, value_parser = process)]
    leader: Option<Process>,

    /// The process whose ranks the job lasts as long as
    #[arg(long, value_parser = process)]
    ranks_of: Option<Process>,

    /// What processes of the job have in their environment
    #[arg(long, value_name = "NAME=VALUE")]
    marked: Option<String>,

    /// The job lasts as long as another host says
    #[arg(long)]
    elsewhere: bool,

    /// The job is one mpiexec or process only
    #[arg(long)]
    single: bool,

    /// The job is that of a `pario run`
    #[arg(long)]
    run: bool,

    /// The job has processes on several hosts
    #[arg(long)]
    several_hosts: bool,
}

fn process(text: &str) -> Result<Process, String> {
    let parse = || {
        let (pid, started) = text.split_once(' ')?;
        Some(Process {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        })
    };
    parse().ok_or_else(|| "is no process; give its number and its start".into())
}

/// Holds until the job is over.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    close_inherited();
    let outcome = hold(arguments);
    match outcome {
        Ok(Outcome::Lost) => Err(ReportedFailure.into()),
        Ok(_) => Ok(()),
        Err(error) => {
            // The process that started it says it in its own words.
            let text = error.to_string().replace('\n', " ");
            output::print(&format!("failed {text}\n"))?;
            Err(ReportedFailure.into())
        }
    }
}

fn hold(arguments: &Arguments) -> Result<Outcome, Error> {
    signals::block()?;
    let span = match arguments {
        Arguments {
            leader: Some(leader),
            ..
        } => Span::Leader(*leader),
        Arguments {
            ranks_of: Some(launcher),
            ..
        } => Span::Ranks(*launcher),
        Arguments {
            marked: Some(mark), ..
        } => {
            let (name, value) = mark.split_once('=').ok_or("--marked: give NAME=VALUE")?;
            Span::Marked(name.into(), value.into())
        }
        _ => Span::Elsewhere,
    };
    let job = Job {
        key: arguments.key.clone(),
        shared_key: arguments.shared_key.clone(),
        span,
        is_single: arguments.single,
        is_run: arguments.run,
        has_hosts: arguments.several_hosts,
    };
    let mut options = job::Options::from_env()?;
    options.has_network = std::env::var_os(super::run::NETWORK).is_some();
    let (told, mut tell) = pipe()?;
    let asked = tell.try_clone()?;
    signals::watch(move |_| tell.write_all(b"x").is_ok())?;
    serve::raise_open_files();
    let held = job::hold(&job, &options, &told, asked, &mut |line| {
        // Nobody who reads is no failure: others find the note.
        let _ = output::print(&format!("{line}\n"));
    });
    Ok(held?)
}
