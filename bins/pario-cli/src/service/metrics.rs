//! Numbers of a server over HTTP: `/metrics` in the text format of Prometheus, `/healthz` for those who look after services.
//!
//! Owns the listener, the little of HTTP that is needed, and how counters are written. What is counted is the server's; names of
//! files, users and hosts are not told.
//!
//! Invariants
//! - One thread answers one question after the other. A peer that is slow is given up after [`PATIENCE`], so it delays others and
//!   never the server.
//! - A question is read up to [`LONGEST_QUESTION`] and answered, whatever it is; the connection ends with the answer.
//! - What the server counted since its start ends with `_total`; what it has at this moment does not.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use wire::message::session::Counter;

use crate::commands::Error;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a question that are read; what follows its first line does not matter.
const LONGEST_QUESTION: usize = 8 << 10;

/// Numbers that are what a server has at this moment; all others only grow.
const AT_THIS_MOMENT: [&str; 52] = [
    "server",
    "incarnation",
    "connections",
    "clients",
    "views",
    "subfiles",
    "capacity_bytes",
    "used_bytes",
    "memory_bytes",
    "memory_limit_bytes",
    "dirty_bytes",
    "ahead_bytes",
    "rendezvous_bytes",
    "message_bytes",
    "buffer_bytes",
    "buffers",
    "buffers_lent",
    "buffers_lent_most",
    "memory_is_kept",
    "memory_was_adopted",
    "memory_was_given_up",
    "memory_lacks_keeper",
    "writes_behind",
    "disks",
    "disks_failed",
    "disks_missing",
    "disks_direct",
    "directed_most_bytes",
    "prefetch_most_bytes",
    "starts",
    "uptime_seconds",
    "most_operations_at_once",
    "handles",
    "is_recovering",
    "members_alive",
    "moves",
    "files",
    "directories",
    "removals",
    "trees",
    "tree_names",
    "tree_directories",
    "large_pages",
    "warm_bytes",
    "ready_bytes",
    "reserve_bytes",
    "reserve_wanted_bytes",
    "direct_clients",
    "direct_entries",
    "direct_marked_extents",
    "direct_quarantined_bytes",
    "owned_files",
];

/// Numbers that mean that an operator has to look: what to say if they are not 0.
const TROUBLES: [(&str, &str); 2] = [
    ("disks_failed", "a disk has failed"),
    ("disks_missing", "a disk is missing"),
];

/// Where numbers are asked for.
pub(crate) struct MetricsListener(TcpListener);

impl MetricsListener {
    /// Takes the address.
    pub(crate) fn bind(address: SocketAddr) -> Result<MetricsListener, Error> {
        match TcpListener::bind(address) {
            Ok(listener) => Ok(MetricsListener(listener)),
            Err(e) => Err(format!("--metrics {address}: {e}; give another address").into()),
        }
    }

    /// Answers until the process ends, with what `report` tells of a server that plays `role`.
    pub(crate) fn tell(
        self,
        role: &'static str,
        report: impl Fn() -> Option<Vec<Counter>> + Send + 'static,
    ) -> Result<(), Error> {
        let address = self.0.local_addr().map_err(|e| format!("--metrics: {e}"))?;
        let answer = move || {
            for stream in self.0.incoming().flatten() {
                // A peer that goes away while it is told loses only its answer.
                if let Err(error) = serve(stream, role, &report) {
                    tracing::debug!(%error, "a question about numbers was not answered");
                }
            }
        };
        std::thread::Builder::new()
            .name("pario-metrics".into())
            .spawn(answer)
            .map_err(|e| format!("--metrics: no thread: {e}"))?;
        tracing::info!(%address, "numbers are told at http://{address}/metrics");
        Ok(())
    }
}

fn serve(
    mut stream: TcpStream,
    role: &str,
    report: impl Fn() -> Option<Vec<Counter>>,
) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let question = read_question(&mut stream)?;
    let (status, kind, body) = answer(&question, role, report);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if !question.starts_with("HEAD ") {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The head of a question, as far as it is read.
fn read_question(stream: &mut TcpStream) -> std::io::Result<String> {
    let (begin, mut bytes) = (Instant::now(), Vec::new());
    let mut part = [0; 1024];
    let is_whole = |bytes: &[u8]| bytes.windows(4).any(|four| four == b"\r\n\r\n");
    while bytes.len() < LONGEST_QUESTION && !is_whole(&bytes) {
        let left = PATIENCE.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => break,
            n => bytes.extend_from_slice(&part[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Status, type and text of an answer.
fn answer(
    question: &str,
    role: &str,
    report: impl Fn() -> Option<Vec<Counter>>,
) -> (&'static str, &'static str, String) {
    const PLAIN: &str = "text/plain; charset=utf-8";
    let mut words = question.split_whitespace();
    let (verb, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = path.split('?').next().unwrap_or("");
    if !matches!(verb, "GET" | "HEAD") {
        let text = "ask with GET: /metrics or /healthz\n";
        return ("405 Method Not Allowed", PLAIN, text.into());
    }
    match path {
        "/metrics" => match report() {
            Some(counters) => (
                "200 OK",
                "text/plain; version=0.0.4; charset=utf-8",
                exposition(role, &counters),
            ),
            None => (
                "503 Service Unavailable",
                PLAIN,
                "the server is ending\n".into(),
            ),
        },
        "/healthz" => {
            let troubles = match report() {
                Some(counters) => troubles(&counters),
                None => vec!["the server is ending, or cannot write".to_owned()],
            };
            match troubles.is_empty() {
                true => ("200 OK", PLAIN, "ok\n".into()),
                false => (
                    "503 Service Unavailable",
                    PLAIN,
                    format!("{}; look with `pario doctor`\n", troubles.join("; ")),
                ),
            }
        }
        _ => (
            "404 Not Found",
            PLAIN,
            "there are /metrics and /healthz\n".into(),
        ),
    }
}

/// What is wrong by these numbers.
fn troubles(counters: &[Counter]) -> Vec<String> {
    let has = |name: &str| counters.iter().any(|c| c.name == name && c.value > 0);
    let wrong = TROUBLES.iter().filter(|(name, _)| has(name));
    wrong.map(|(_, text)| (*text).to_owned()).collect()
}

/// Counters in the text format of Prometheus, those of one name together.
fn exposition(role: &str, counters: &[Counter]) -> String {
    let mut text = String::new();
    let mut before = String::new();
    for (name, label, counter) in in_families(counters) {
        let is_now = AT_THIS_MOMENT.contains(&counter.name.as_str());
        let (ending, kind) = if is_now {
            ("", "gauge")
        } else {
            ("_total", "counter")
        };
        let full = format!("pario_{role}_{name}{ending}");
        if full != before {
            let _ = writeln!(text, "# TYPE {full} {kind}");
        }
        let _ = writeln!(text, "{full}{label} {}", counter.value);
        before = full;
    }
    text
}

/// Each counter with the name of its family and its label: requests of a kind, and refusals with a status, are one family each.
fn in_families(counters: &[Counter]) -> Vec<(&str, String, &Counter)> {
    let families = [
        ("requests_", "requests_of_kind", "kind"),
        ("refused_", "refused", "status"),
    ];
    let own = [
        "requests_of_servers",
        "requests_to_servers",
        "requests_to_manager",
    ];
    let named = counters.iter().map(|counter| {
        let name = counter.name.as_str();
        let family = families.iter().find_map(|(prefix, family, label)| {
            let rest = name.strip_prefix(prefix).filter(|_| !own.contains(&name))?;
            Some((*family, format!("{{{label}=\"{rest}\"}}")))
        });
        let (name, label) = family.unwrap_or((name, String::new()));
        (name, label, counter)
    });
    let mut all: Vec<_> = named.collect();
    all.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> Vec<Counter> {
        let of = |(name, value): (&str, u64)| Counter {
            name: name.to_owned(),
            value,
        };
        let all = [
            ("requests_stat", 3),
            ("reads", 7),
            ("requests_to_manager", 2),
            ("dirty_bytes", 11),
            ("requests_create", 1),
            ("refused_not_found", 4),
        ];
        all.map(of).into()
    }

    #[test]
    fn families_stand_together_and_say_what_they_are() {
        let expected = "\
# TYPE pario_io_dirty_bytes gauge
pario_io_dirty_bytes 11
# TYPE pario_io_reads_total counter
pario_io_reads_total 7
# TYPE pario_io_refused_total counter
pario_io_refused_total{status=\"not_found\"} 4
# TYPE pario_io_requests_of_kind_total counter
pario_io_requests_of_kind_total{kind=\"create\"} 1
pario_io_requests_of_kind_total{kind=\"stat\"} 3
# TYPE pario_io_requests_to_manager_total counter
pario_io_requests_to_manager_total 2
";
        assert_eq!(exposition("io", &counters()), expected);
    }

    #[test]
    fn questions_are_answered_whatever_they_are() {
        let status = |question: &str| answer(question, "io", || Some(counters())).0;
        assert_eq!(status("GET /metrics HTTP/1.1\r\n\r\n"), "200 OK");
        assert_eq!(status("GET /metrics?x=1 HTTP/1.1\r\n\r\n"), "200 OK");
        assert_eq!(status("GET /healthz HTTP/1.0\r\n\r\n"), "200 OK");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(
            status("PUT /metrics HTTP/1.1\r\n\r\n"),
            "405 Method Not Allowed"
        );
        for nonsense in ["", "GET", "\u{fffd}\u{fffd}", "GET  \r\n"] {
            assert!(!status(nonsense).starts_with("200"), "{nonsense:?}");
        }
        let ending = answer("GET /healthz HTTP/1.1", "meta", || None);
        assert!(ending.0.starts_with("503"));
    }

    #[test]
    fn a_missing_disk_is_no_good_health() {
        let mut all = counters();
        all.push(Counter {
            name: "disks_missing".into(),
            value: 1,
        });
        let (status, _, text) = answer("GET /healthz HTTP/1.1", "io", || Some(all.clone()));
        assert!(
            status.starts_with("503") && text.contains("a disk is missing"),
            "{text}"
        );
    }
}
