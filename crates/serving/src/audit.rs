//! Who did what and when: administrative actions, in a file that is only appended to.
//!
//! Owns the form of its lines (`docs/formats/audit.md`) and how they get there. Which actions are noted is decided where they are
//! done.
//!
//! Invariants
//! - A line is written with one call at the end of the file, so processes that share a file do not mix their lines, and is durable
//!   before the one who asked is answered.
//! - The file is opened for each line: an administrator who moves it away loses none, and the next line begins another one.
//! - What cannot be noted is told in the log as an error, and done nevertheless: a full disk must not keep an operator from draining it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Version of the lines.
pub const AUDIT_VERSION: u64 = 1;

/// The name of the file in the directory of a server or of a service.
pub const AUDIT_FILE: &str = "audit.jsonl";

/// A file for administrative actions.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
}

/// Something that an administrator asked for.
#[derive(Clone, Debug)]
pub struct AuditEntry<'a> {
    /// Who was asked: `manager`, `server 3`, or `command` for what a program does by itself.
    pub by: &'a str,
    /// What, in one word.
    pub action: &'a str,
    /// For which user.
    pub user: u32,
    /// Through which client, if one.
    pub client: Option<u64>,
    /// With which arguments.
    pub arguments: Value,
    /// Why it was refused; nothing if it was done.
    pub refusal: Option<String>,
}

impl AuditLog {
    /// A file that is made when there is something to note.
    pub fn at(path: impl Into<PathBuf>) -> AuditLog {
        AuditLog { path: path.into() }
    }

    /// A file that can be appended to; made if it does not exist.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<AuditLog> {
        let log = AuditLog::at(path);
        log.append(b"")?;
        Ok(log)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line.
    pub fn note(&self, entry: &AuditEntry<'_>) {
        let line = line(entry, SystemTime::now(), std::process::id());
        if let Err(error) = self.append(line.as_bytes()) {
            tracing::error!(
                %error,
                path = %self.path.display(),
                line = line.trim_end(),
                "an administrative action is not on record"
            );
        }
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)?;
        if line.is_empty() {
            return Ok(());
        }
        file.write_all(line)?;
        file.sync_data()
    }
}

fn line(entry: &AuditEntry<'_>, at: SystemTime, process: u32) -> String {
    let mut fields = json!({
        "version": AUDIT_VERSION,
        "time": utc_with_micros(at),
        "by": entry.by,
        "process": process,
        "action": entry.action,
        "user": entry.user,
        "client": entry.client,
        "arguments": entry.arguments,
        "outcome": if entry.refusal.is_some() { "refused" } else { "done" },
    });
    if let Some(why) = &entry.refusal {
        fields["why"] = json!(why);
    }
    format!("{fields}\n")
}

/// A time as in `2026-11-19T20:33:02.123456Z`.
fn utc_with_micros(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let whole = utc(since.as_secs());
    format!(
        "{}.{:06}Z",
        whole.trim_end_matches('Z'),
        since.subsec_micros()
    )
}

/// Seconds since 1970, as in `2026-11-19T20:33:02Z`.
pub fn utc(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a day since the beginning of 1970. Years begin in March here, so that leap days come last.
fn civil(days: u64) -> (u64, u64, u64) {
    const ERA_DAYS: u64 = 146_097; // 400 years
    let days = days + 719_468; // from March of the year 0
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        // As `date -u -d @N` says.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_120_382, "2026-11-19T20:33:02Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    #[test]
    fn line_has_the_form_of_the_page() {
        let entry = AuditEntry {
            by: "manager",
            action: "drain",
            user: 1000,
            client: Some(7),
            arguments: json!({ "server": 3 }),
            refusal: Some("no \"such\"\nserver".into()),
        };
        let at = UNIX_EPOCH + Duration::new(1_795_120_382, 123_456_789);
        let expected = concat!(
            r#"{"action":"drain","arguments":{"server":3},"by":"manager","client":7,"outcome":"refused","#,
            r#""process":42,"time":"2026-11-19T20:33:02.123456Z","user":1000,"version":1,"#,
            r#""why":"no \"such\"\nserver"}"#,
            "\n"
        );
        assert_eq!(line(&entry, at, 42), expected);
    }
}
