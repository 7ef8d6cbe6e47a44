//! Listening to what the parts say: `PARIO_LOG`, and lines on standard error.
//!
//! Servers and clients tell what happens as events with levels and fields (`tracing`); they do not know who listens.
//! Programs and bindings listen, and none of the libraries does: what a Rust program hears of Pario is its own affair.
//!
//! ```text
//! PARIO_LOG=info                     all parts, from this level on
//! PARIO_LOG=warn,ioserver=debug      some parts from another level on
//! 2026-11-16T18:39:32.123456Z pario[4711]  INFO ioserver::sessions: client came client=client 4294967297
//! ```
//!
//! | level | what is told |
//! |---|---|
//! | `error` | something is lost, or does not work until somebody repairs it |
//! | `warn` | something is out of order that is being dealt with: a server away, a client dead, a limit met |
//! | `info` | what comes and goes: servers, clients, moves of files |
//! | `debug` | files opened and closed, requests refused and repeated |
//!
//! Invariants
//! - Nothing is told per access above `trace`, and `trace` is not part of what is released.
//! - A value that cannot be read is named in a line, and the usual counts: who misspells a part would wait for its lines in
//!   vain, but no server and no job fails for it.
#![forbid(unsafe_code)]

use std::fmt;
use std::io::Write;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The variable that says what is told.
pub const VARIABLE: &str = "PARIO_LOG";

/// Parts that may be named: those that say something.
const PARTS: [&str; 7] = [
    "client",
    "ioserver",
    "job",
    "metaserver",
    "pario",
    "serving",
    "store",
];

/// Writes to standard error what `PARIO_LOG` asks for, and `usual` if it asks for nothing that can be read; nothing at all if
/// that is empty.
///
/// # Panics
/// If `usual` cannot be read.
pub fn listen(usual: &str) {
    let said = std::env::var(VARIABLE).unwrap_or_default();
    let asked = Some(said.trim()).filter(|said| !said.is_empty());
    let read = asked.map(targets).transpose();
    let read = read.unwrap_or_else(|why| {
        // Nobody there is no failure.
        let _ = writeln!(std::io::stderr(), "pario: {why}");
        None
    });
    if read.is_none() && usual.is_empty() {
        return;
    }
    let targets = read.unwrap_or_else(|| targets(usual).expect("the usual can be read"));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_timer(Stamp);
    // Who has called this before is heard already.
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(targets)
        .try_init();
}

/// Reads what is to be told: a level, or parts with theirs.
fn targets(text: &str) -> Result<Targets, String> {
    let wrong = |what: &str| {
        format!(
            "{VARIABLE} is '{}': {what}; give error, warn, info, debug, trace or off, and PART=LEVEL for one of {}, \
             separated by commas",
            text.escape_debug(),
            PARTS.join(", ")
        )
    };
    let mut targets = Targets::new();
    for item in text.split(',').map(str::trim).filter(|i| !i.is_empty()) {
        let (part, level) = match item.split_once('=') {
            Some((part, level)) => (Some(part.trim()), level.trim()),
            None => (None, item),
        };
        let of_level = level.parse::<LevelFilter>();
        let level = of_level
            .ok()
            .filter(|_| !level.is_empty() && !level.starts_with(|c: char| c.is_ascii_digit()));
        let level =
            level.ok_or_else(|| wrong(&format!("'{}' is no level", item.escape_debug())))?;
        targets = match part {
            None => targets.with_default(level),
            Some(part) if PARTS.contains(&part.split("::").next().unwrap_or(part)) => {
                targets.with_target(part, level)
            }
            Some(part) => return Err(wrong(&format!("'{}' is no part", part.escape_debug()))),
        };
    }
    Ok(targets)
}

/// When, and which process: servers of a host share one standard error.
struct Stamp;

impl FormatTime for Stamp {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        SystemTime.format_time(out)?;
        write!(out, " pario[{}]", std::process::id())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn levels_and_parts_are_read() {
        let read = targets(" warn, ioserver=debug,client::transport=off").unwrap();
        assert!(read.would_enable("ioserver::sessions", &Level::DEBUG));
        assert!(!read.would_enable("metaserver", &Level::INFO));
        assert!(read.would_enable("client::file", &Level::WARN));
        assert!(!read.would_enable("client::transport::session", &Level::ERROR));
        assert!(!targets("").unwrap().would_enable("store", &Level::ERROR));
        assert!(targets("INFO").unwrap().would_enable("store", &Level::INFO));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, what) in [
            ("inof", "'inof' is no level"),
            ("iosever=debug", "'iosever' is no part"),
            ("ioserver=", "'ioserver=' is no level"),
            ("3", "'3' is no level"),
            ("warn,client=loud", "'client=loud' is no level"),
        ] {
            let error = targets(text).unwrap_err();
            let begin = format!("PARIO_LOG is '{text}': {what}; give error, warn,");
            assert!(error.starts_with(&begin), "{error}");
        }
    }
}
