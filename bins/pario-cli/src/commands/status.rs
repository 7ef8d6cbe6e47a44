//! `pario status`: what a service is made of and how it is doing. Owns the table and its JSON; the
//! numbers are the servers' own.
//!
//! All servers are asked at once, each for a bounded time, so one that hangs costs a few seconds and is
//! shown as silent.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use client::{
    BuddyIs, Client, Counter, Counts, DiskEntry, DiskState, FailedServer, Member, MemberState,
    MoveIs, StoreKind,
};
use serde_json::{Map, Value, json};

use super::attributes::exact_time;
use super::names::shown;
use super::output::{bytes, counted};
use super::{Error, moving, output};
use crate::service::contact;
use crate::service::state::{State, Trouble};
use crate::service::target::Target;

/// Arguments of `pario status`.
#[derive(Args)]
#[command(after_help = "\
States of servers:
  alive    takes part
  draining takes part, gets nothing new and hands over what it has
  silent   takes part, but did not answer in time
  dead     was lost; what it had in memory is gone, what it had on disk comes back with it
  left     has gone on purpose

A server of `pario up` that dies is started again for ever, at most 30 s apart; below the table stands how often
it died and when it is tried next.

The incarnation is a number that no two starts of servers share. `requests`, `read` and `written`
count from the start of the server; `buffers` are those in use now; writes longer than `announced`
are announced before they are sent. Memory that is `ready` was got from the system ahead of need: new
bytes are written there faster. It follows what was written lately, and files get it when there is no other.

Examples:
  pario status
  pario status --json | jq '.servers[].used_bytes'
  PARIO_URL=tcp:node1:4711 pario status")]
pub(crate) struct Arguments {
    /// The directory of the service [default: what PARIO_URL names, else .pario]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Shows a service.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let target = Target::find(arguments.dir.as_deref())?;
    let client = contact::connect(&target)?;
    let status = Status::gather(&target, &client)?;
    if arguments.json {
        return output::print(&format!("{:#}\n", status.to_json()));
    }
    output::print(&status.to_text())
}

type Counters = BTreeMap<String, u64>;

/// Who connects clients, dispatches what administrators want and answers for names: one process, in every configuration.
const CONTROLLER: &str = "metadata manager";

struct Status {
    url: String,
    is_service: bool,
    uptime: Option<u64>,
    counts: Counts,
    meta: Counters,
    servers: Vec<Server>,
    /// Servers that take no new subfiles because a disk failed.
    failed: Vec<FailedServer>,
    /// The server that a client from here begins with; none while no server is connected.
    buddy: Option<BuddyIs>,
    /// Hosts from which costs were measured that no longer predict.
    stale: Vec<String>,
    /// Files that are being moved.
    moves: Vec<MoveIs>,
    /// Servers that have died and do not serve yet, as their supervisor says.
    troubles: Vec<Trouble>,
}

struct Server {
    member: Member,
    /// What it has counted; nothing if it was not asked, or why it did not answer.
    counters: Option<Result<Counters, String>>,
    /// Its disks that failed or are missing, as far as it tells the user.
    disks: Vec<DiskEntry>,
}

impl Status {
    fn gather(target: &Target, client: &Client) -> Result<Status, Error> {
        let meta = by_name(client.meta_statistics()?);
        let (url, started) = match target {
            Target::Service(url, state) => (url.to_string(), state.as_ref().map(|s| s.started)),
            Target::Directory(dir) => (format!("dir:{}", dir.display()), None),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let by_state = started.and_then(|t| Some(now.ok()?.as_secs().saturating_sub(t)));
        let is_service = matches!(target, Target::Service(..));
        let told = State::told_by(client);
        let by_counter = meta.get("uptime_seconds").copied();
        Ok(Status {
            url,
            is_service,
            uptime: by_state.or(by_counter).filter(|_| is_service),
            counts: client.counts()?,
            servers: ask_all(client, client.members()?),
            failed: client.failed_servers()?,
            buddy: client.buddy().ok(),
            stale: stale(client),
            // One that cannot tell has none.
            moves: client.moves().unwrap_or_default(),
            troubles: told.map_or_else(Vec::new, |state| state.troubles),
            meta,
        })
    }

    /// Clients without the one that asks.
    fn clients(&self) -> u64 {
        self.meta.get("clients").map_or(0, |n| n.saturating_sub(1))
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name:<9} {value}");
        };
        line(
            "service",
            match self.is_service {
                true => self.url.clone(),
                false => format!("none; {} is served by those who use it", self.url),
            },
        );
        if let Some(seconds) = self.uptime {
            line("up", duration(seconds));
        }
        if self.is_service {
            line("clients", self.clients().to_string());
            if let Some(buddy) = &self.buddy {
                let near = match buddy.is_same_host {
                    true => "on this host".into(),
                    false => format!("distance {}", buddy.distance),
                };
                line("buddy", format!("server {}, {near}", buddy.server.0));
            }
        }
        line(
            "roles",
            format!("{CONTROLLER}: system, connection and directory controller"),
        );
        let Counts {
            files,
            directories,
            removals,
            restored_from_s: _,
            trees,
            tree_names,
            tree_directories,
        } = self.counts;
        let waiting = match removals {
            0 => String::new(),
            n => format!(", {} not yet done", counted(n, "removal", "removals")),
        };
        line(
            "files",
            format!(
                "{files} in {}{waiting}",
                counted(directories, "directory", "directories")
            ),
        );
        if trees > 0 {
            line(
                "removing",
                format!(
                    "{}: {} gone, {} to clear at least",
                    counted(trees, "tree", "trees"),
                    counted(tree_names, "name", "names"),
                    counted(tree_directories, "directory", "directories")
                ),
            );
        }
        if !self.stale.is_empty() {
            let hosts: Vec<String> = self.stale.iter().map(|host| shown(host)).collect();
            line(
                "stale",
                format!(
                    "calibration is stale: run `pario calibrate --if-stale` on {}",
                    hosts.join(", ")
                ),
            );
        }
        for (i, is) in self.moves.iter().enumerate() {
            let name = if i == 0 { "moves" } else { "" };
            line(name, moving::described(path_of(is), &is.progress));
        }
        text.push('\n');
        text += &table(&self.rows());
        for server in &self.servers {
            if let Some(memory) = server.memory() {
                let _ = writeln!(text, "server {} memory: {memory}", server.member.server.0);
            }
            if let Some(kept) = server.kept() {
                let _ = writeln!(text, "server {} memory: {kept}", server.member.server.0);
            }
            if let Some(writes) = server.writes() {
                let _ = writeln!(text, "server {} writes: {writes}", server.member.server.0);
            }
            if let Some(cache) = server.cache() {
                let _ = writeln!(text, "server {} cache: {cache}", server.member.server.0);
            }
            if let Some(Err(why)) = &server.counters {
                let _ = writeln!(
                    text,
                    "server {} does not answer: {why}",
                    server.member.server.0
                );
            }
        }
        for server in &self.servers {
            for line in server.disk_lines().into_iter().chain(server.direct_line()) {
                let _ = writeln!(text, "{line}");
            }
        }
        for trouble in &self.troubles {
            let _ = writeln!(text, "{}; {}", trouble.what(), trouble.next());
        }
        for failed in &self.failed {
            let by = if failed.is_hint {
                ", as a program says"
            } else {
                ""
            };
            let server = failed.server.0;
            let _ = writeln!(
                text,
                "server {server} takes no new subfiles: {}{by}; mended, `pario hint --clear-failed \
                 {server}`",
                shown(&failed.why)
            );
        }
        text
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let heading = [
            "server",
            "state",
            "incarnation",
            "store",
            "used",
            "total",
            "subfiles",
            "requests",
            "read",
            "written",
            "buffers",
            "announced",
            "address",
        ];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for server in &self.servers {
            let member = &server.member;
            let counter = |name: &str| server.counter(name);
            let number = |n: Option<u64>| n.map_or("-".into(), |n| n.to_string());
            let size = |n: Option<u64>| n.map_or("-".into(), bytes);
            rows.push(vec![
                member.server.0.to_string(),
                server.state().into(),
                member.incarnation.to_string(),
                store(member.store).into(),
                bytes(server.used()),
                size(Some(server.capacity()).filter(|&n| n > 0)),
                number(counter("subfiles")),
                number(counter("requests")),
                size(counter("read_bytes")),
                size(counter("written_bytes")),
                server.buffers(),
                size(counter("rendezvous_bytes")),
                member.address.clone(),
            ]);
        }
        rows
    }

    fn to_json(&self) -> Value {
        let servers: Vec<Value> = self.servers.iter().map(Server::to_json).collect();
        let moves = self.moves.iter();
        let moves: Vec<Value> = moves
            .map(|is| moving::to_json(path_of(is), &is.progress))
            .collect();
        json!({
            "url": self.url,
            "is_service": self.is_service,
            "uptime_seconds": self.uptime,
            "clients": self.clients(),
            "files": self.counts.files,
            "directories": self.counts.directories,
            "removals": self.counts.removals,
            "trees": self.counts.trees,
            "tree_names": self.counts.tree_names,
            "tree_directories": self.counts.tree_directories,
            "meta": numbers(&self.meta),
            "roles": json!({
                "system_controller": CONTROLLER,
                "connection_controller": CONTROLLER,
                "directory_controller": CONTROLLER,
            }),
            "buddy": self.buddy.as_ref().map(|b| json!({
                "server": b.server.0,
                "is_same_host": b.is_same_host,
                "distance": b.distance,
                "clients": b.clients,
            })),
            "stale_calibrations": self.stale,
            "moves": moves,
            "servers": servers,
            "troubles": self.troubles.iter().map(Trouble::to_json).collect::<Vec<_>>(),
            "failed": self.failed.iter().map(|f| json!({
                "server": f.server.0,
                "why": f.why,
                "is_hint": f.is_hint,
                "since": exact_time(f.since),
            })).collect::<Vec<_>>(),
            "hints": json!({
                "given": self.meta.get("hints_given"),
                "used": self.meta.get("hints_used"),
                "overridden": self.meta.get("hints_overridden"),
                "ignored": self.meta.get("hints_ignored"),
            }),
        })
    }
}

/// Hosts whose calibrations are stale; none if they cannot be asked for.
fn stale(client: &Client) -> Vec<String> {
    let kept = client.calibrations(None).unwrap_or_default();
    let mut hosts: Vec<String> = kept
        .into_iter()
        .filter(|c| c.is_stale)
        .map(|c| c.from)
        .collect();
    hosts.dedup();
    hosts
}

impl Server {
    fn state(&self) -> &'static str {
        match (self.member.state, &self.counters) {
            (MemberState::Alive, Some(Err(_))) => "silent",
            (MemberState::Alive, _) if self.member.is_draining => "draining",
            (MemberState::Alive, _) => "alive",
            (MemberState::Dead, _) => "dead",
            (MemberState::Left, _) => "left",
        }
    }

    fn counter(&self, name: &str) -> Option<u64> {
        self.counters.as_ref()?.as_ref().ok()?.get(name).copied()
    }

    /// Asks which disks failed or are missing, if any did; operators alone are told.
    fn ask_disks(&mut self, client: &Client) {
        let count = |name: &str| self.counter(name).unwrap_or(0);
        if count("disks_failed") + count("disks_missing") == 0 {
            return;
        }
        let told = client.disks(self.member.server);
        let bad = |disk: &DiskEntry| matches!(disk.state, DiskState::Missing | DiskState::Failed);
        self.disks = told.map_or_else(|_| Vec::new(), |list| list.disks);
        self.disks.retain(bad);
    }

    /// What it says itself, which is newer than what it last reported.
    fn used(&self) -> u64 {
        self.counter("used_bytes").unwrap_or(self.member.used_bytes)
    }

    fn capacity(&self) -> u64 {
        self.counter("capacity_bytes")
            .unwrap_or(self.member.capacity_bytes)
    }

    /// The memory that waits for new bytes.
    fn memory(&self) -> Option<String> {
        let pages = match self.counter("large_pages")? {
            0 => "usual",
            _ => "large",
        };
        Some(format!(
            "{} ready for new bytes, {} of it for any directory; {pages} pages",
            bytes(self.counter("ready_bytes")?),
            bytes(self.counter("reserve_bytes")?),
        ))
    }

    /// Whether memory that is all there is outlives the process, and what became of that of the one before.
    fn kept(&self) -> Option<&'static str> {
        if self.member.store != StoreKind::Memory || self.counters.is_none() {
            return None;
        }
        let before = |name: &str| self.counter(name) == Some(1);
        Some(match self.counter("memory_is_kept")? {
            0 => "is not kept at the moment; a death of the server loses it",
            _ if before("memory_was_given_up") => {
                "is kept; that of the process before could not be adopted and is lost"
            }
            _ if before("memory_was_adopted") => "is kept, and is that of the process before",
            _ => "is kept should the server die",
        })
    }

    /// When a server on disks answers a write, and whether what it answered from memory is safe from the death of its process.
    fn writes(&self) -> Option<&'static str> {
        let is = |name: &str, value: u64| self.counter(name) == Some(value);
        Some(match self.counter("writes_behind")? {
            0 if is("memory_lacks_keeper", 1) => {
                "through, although behind was asked for: no keeper could be started"
            }
            0 => "through",
            _ if is("memory_is_kept", 0) => {
                "behind, without a keeper at the moment; a death of the server loses what was not synced"
            }
            _ => "behind",
        })
    }

    /// What the cache of a disk server has done, once anybody has read from it.
    fn cache(&self) -> Option<String> {
        let counter = |name: &str| self.counter(name).unwrap_or(0);
        let (hits, misses) = (counter("cache_hit_bytes"), counter("cache_miss_bytes"));
        if self.member.store != StoreKind::Disk || hits + misses == 0 {
            return None;
        }
        let mut text = format!(
            "{:.1} % of {} were in memory, {} evicted",
            100.0 * hits as f64 / (hits + misses) as f64,
            bytes(hits + misses),
            bytes(counter("cache_evicted_bytes")),
        );
        let ahead = counter("ahead_bytes");
        if ahead > 0 {
            let _ = write!(
                text,
                ", {} read ahead ({} of it used, {} not used)",
                bytes(ahead),
                bytes(counter("ahead_hit_bytes")),
                bytes(counter("ahead_wasted_bytes")),
            );
        }
        Some(text)
    }

    /// Buffers in use, of all.
    fn buffers(&self) -> String {
        match (self.counter("buffers_lent"), self.counter("buffers")) {
            (Some(lent), Some(all)) => format!("{lent}/{all}"),
            _ => "-".into(),
        }
    }

    /// Disks that do not serve: each by its name, or how many there are for a user who may not know more.
    fn disk_lines(&self) -> Vec<String> {
        let server = self.member.server.0;
        if self.disks.is_empty() {
            let count = |name: &str| self.counter(name).unwrap_or(0);
            let all = count("disks") + count("disks_missing");
            let kinds = [("disks_failed", "failed"), ("disks_missing", "are missing")];
            let counts = kinds.map(|(name, what)| (count(name), what));
            let some = counts.into_iter().filter(|(count, _)| *count > 0);
            return some
                .map(|(count, what)| format!("server {server}: {count} of {all} disks {what}"))
                .collect();
        }
        let line = |disk: &DiskEntry| {
            let what = match disk.state {
                DiskState::Missing => format!("is missing: {}", shown(&disk.why)),
                _ => "failed".into(),
            };
            let place = shown(&disk.place);
            format!("server {server}: disk {:016x} in {place} {what}", disk.id)
        };
        self.disks.iter().map(line).collect()
    }

    /// Disks that are used past the page cache, as `pario calibrate --disk` has found that it pays.
    fn direct_line(&self) -> Option<String> {
        let direct = self.counter("disks_direct").filter(|&n| n > 0)?;
        let all = self.counter("disks").unwrap_or(direct);
        let server = self.member.server.0;
        Some(format!(
            "server {server}: {direct} of {all} disks with direct I/O"
        ))
    }

    fn to_json(&self) -> Value {
        let member = &self.member;
        let mut value = json!({
            "server": member.server.0,
            "state": self.state(),
            "is_draining": member.is_draining,
            "incarnation": member.incarnation,
            "kept_since": member.kept_since,
            "store": store(member.store),
            "used_bytes": self.used(),
            "capacity_bytes": Some(self.capacity()).filter(|&n| n > 0),
            "distance": member.distance,
            "address": member.address,
        });
        match &self.counters {
            Some(Ok(counters)) => value["counters"] = numbers(counters),
            Some(Err(why)) => value["error"] = json!(why),
            None => {}
        }
        if !self.disks.is_empty() {
            let disk = |disk: &DiskEntry| {
                json!({
                    "id": format!("{:016x}", disk.id),
                    "place": disk.place,
                    "state": if disk.state == DiskState::Missing { "missing" } else { "failed" },
                    "why": disk.why,
                })
            };
            value["bad_disks"] = self.disks.iter().map(disk).collect();
        }
        value
    }
}

/// Where a file is that moves; one without a name goes with its last handle.
fn path_of(is: &MoveIs) -> &str {
    match is.path.is_empty() {
        true => "a file without a name",
        false => &is.path,
    }
}

/// Asks every server that takes part, all at once.
fn ask_all(client: &Client, members: Vec<Member>) -> Vec<Server> {
    let ask = |member: &Member| {
        (member.state == MemberState::Alive).then(|| {
            let answer = client.server_statistics(member.server);
            answer.map(by_name).map_err(|error| error.to_string())
        })
    };
    std::thread::scope(|scope| {
        let asked: Vec<_> = members
            .iter()
            .map(|member| scope.spawn(|| ask(member)))
            .collect();
        let answers: Vec<_> = asked
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Some(Err("asking failed".into()))))
            .collect();
        let pairs = members.iter().cloned().zip(answers);
        pairs
            .map(|(member, counters)| {
                let mut server = Server {
                    member,
                    counters,
                    disks: Vec::new(),
                };
                server.ask_disks(client);
                server
            })
            .collect()
    })
}

fn by_name(counters: Vec<Counter>) -> Counters {
    counters.into_iter().map(|c| (c.name, c.value)).collect()
}

fn numbers(counters: &Counters) -> Value {
    let pairs = counters
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

pub(crate) fn store(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::Memory => "memory",
        StoreKind::Disk => "disk",
    }
}

/// Columns as wide as their widest entry, the last one ragged.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (entry, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{entry:<width$}  ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Seconds in the two largest units.
fn duration(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let largest = units.iter().position(|(_, len)| seconds >= *len);
    let Some(first) = largest else {
        return "0 s".into();
    };
    let (unit, len) = units[first];
    let mut text = format!("{} {unit}", seconds / len);
    if let Some((next, next_len)) = units.get(first + 1) {
        let rest = seconds % len / next_len;
        if rest > 0 {
            let _ = write!(text, " {rest} {next}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units_at_most() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (61, "1 min 1 s"),
            (3600, "1 h"),
            (3_700, "1 h 1 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn tables_line_up() {
        let row = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        assert_eq!(
            table(&[row("server", "x"), row("1", "yz")]),
            "server  x\n1       yz\n"
        );
    }
}
