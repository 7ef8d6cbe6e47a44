//! How a program ends: with 0, or with one line on standard error that says what went wrong and what can be
//! done about it. A bug is one line too, without its insides.
//!
//! Exit codes: 0 on success, 1 on failure, 2 on wrong usage, or that of a command which the program ran.

use std::panic::PanicHookInfo;
use std::process::ExitCode;

use client::Status;

use crate::names::shown;
use crate::output::note;

/// What a command may fail with; the message is all the user sees.
pub type Error = Box<dyn std::error::Error>;

/// The command has failed and has said so already, on standard output where its user looks for it.
#[derive(Debug, thiserror::Error)]
#[error("reported")]
pub struct ReportedFailure;

/// The program ends with this code, which is that of a command it ran.
#[derive(Debug, thiserror::Error)]
#[error("the command ended with code {0}")]
pub struct ExitWith(pub u8);

/// Runs a program to its end.
pub fn end(run: impl FnOnce() -> Result<(), Error> + std::panic::UnwindSafe) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| note(&bug_report(panic))));
    match std::panic::catch_unwind(run) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) if error.is::<ReportedFailure>() => ExitCode::FAILURE,
        Ok(Err(error)) if error.is::<ExitWith>() => {
            let with = error.downcast_ref::<ExitWith>();
            with.map_or(ExitCode::FAILURE, |with| ExitCode::from(with.0))
        }
        Ok(Err(error)) => {
            note(&format!("pario: {error}"));
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// A bug in one line, without its insides.
fn bug_report(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or(payload.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no details").replace('\n', " ");
    let place = panic.location().map_or(String::new(), |place| {
        format!(" at {}:{}", place.file(), place.line())
    });
    format!(
        "pario: this is a bug in pario ({text}{place}); please report it with the command you gave"
    )
}

/// A refusal in one line, with what to do about it.
pub fn refused(error: client::Error) -> Error {
    let text = error.to_string();
    let remedy = match error.status() {
        // It says more than its status does.
        _ if text.contains("; ") => None,
        Status::NotFound => Some("look for it with `pario ls`"),
        Status::Exists => Some("choose another name, or remove it with `pario rm`"),
        Status::NotDirectory => {
            Some("only directories have names below them; look with `pario ls`")
        }
        Status::IsDirectory => Some("name a file"),
        Status::NotEmpty => Some("remove it with all that is in it with `pario rm -r`"),
        Status::PermissionDenied => Some("ask its owner; `pario stat` shows who that is"),
        Status::InUse => Some("try again when others have closed it"),
        Status::Busy | Status::TimedOut => Some("try again"),
        Status::NoSpace | Status::NoMemory => Some("remove files, or add a server"),
        Status::Unauthenticated => Some("name the file with the service's secret in PARIO_SECRET"),
        Status::Lost | Status::Corrupt => Some("store the file again; `pario doctor` shows more"),
        Status::Unreachable => Some("look with `pario status`"),
        Status::InvalidArgument => Some("give another one"),
        Status::Io | Status::Internal => Some("look into the log of the service"),
        _ => None,
    };
    match remedy {
        Some(remedy) => format!("{}; {remedy}", shown(&text)).into(),
        None => shown(&text).into(),
    }
}
