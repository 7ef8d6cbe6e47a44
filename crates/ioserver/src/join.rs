//! Membership: joining at the metadata manager, reporting, and coming back after it was away.
//!
//! The connection of the join carries the reports; its end is the end of the membership as the
//! manager sees it. This side tries again until it is stopped, and goes on as the same start: its
//! bytes are still here. A server with disks leaves its number and start on each of them, or in its state directory,
//! before it serves.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use identity::{Acquainted, KEY_BYTES, Keys};
use wire::ask::AskError;
use wire::link::Link;
use wire::message::Bytes;
use wire::message::catalogue::{LocalAddress, Member, StoreKind};
use wire::message::cluster::{Join, JoinAnswer, Removal, Report};
use wire::message::hints::DiskFailed;
use wire::message::session::{Goodbye, Role};
use wire::url::Endpoint;
use wire::{ServerId, Status};

use crate::context::{Cluster, Reports, Storage};
use crate::files::Files;
use crate::links::introduce;
use crate::owner::Owner;
use crate::statistics::Load;

/// Between two reports.
const INTERVAL: Duration = Duration::from_millis(500);
/// Between two looks for sizes that have to be reported.
const FLUSH: Duration = Duration::from_secs(1);
/// Longest wait for the answer to a farewell.
const FAREWELL: Duration = Duration::from_millis(500);
/// Longest wait for the answer to a report.
const ANSWER: Duration = Duration::from_secs(10);
/// File in the state directory.
const NAME: &str = "server";
/// The file beside it that no other user can read.
const IDENTITY: &str = "identity";

/// What a server says about itself when it joins.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) manager: Endpoint,
    pub(crate) keys: Keys,
    /// What only this server knows.
    pub(crate) identity: [u8; KEY_BYTES],
    pub(crate) address: String,
    pub(crate) local: Option<LocalAddress>,
    pub(crate) store: StoreKind,
    pub(crate) distance: u64,
}

/// Stands before the life in the file of a start that has ended in order.
const ENDED: &str = "ended";

/// What a start has left in the state directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedStart {
    pub(crate) server: ServerId,
    pub(crate) incarnation: u64,
    /// If it ended in order with everything on its disks: what bytes in its memory lived with.
    pub(crate) life: Option<u64>,
}

/// The number and the latest start that these directories hold.
pub(crate) fn load_states(dirs: &[PathBuf]) -> Result<Option<SavedStart>, (PathBuf, io::Error)> {
    let mut latest: Option<SavedStart> = None;
    for dir in dirs {
        let found = load_state(dir).map_err(|e| (dir.clone(), e))?;
        let start = |saved: &SavedStart| saved.incarnation;
        if found.as_ref().map(start) > latest.as_ref().map(start) {
            latest = found;
        }
    }
    Ok(latest)
}

/// The number and start that a state directory holds.
fn load_state(dir: &Path) -> io::Result<Option<SavedStart>> {
    let text = match fs::read_to_string(dir.join(NAME)) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut words = text.split_whitespace();
    let found = (|| {
        let [name, version] = [words.next()?, words.next()?];
        let server = words.next()?.parse().ok()?;
        let incarnation = words.next()?.parse().ok()?;
        let life = match words.next() {
            Some(ENDED) => Some(words.next()?.parse().ok()?),
            _ => None,
        };
        let is_known = name == "pario-server" && version == "1";
        is_known.then_some(SavedStart {
            server: ServerId(server),
            incarnation,
            life,
        })
    })();
    match found {
        Some(found) => Ok(Some(found)),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{}: does not say which server this is; restore it, or remove it: the manager knows the server by its identity",
                dir.join(NAME).display()
            ),
        )),
    }
}

/// Leaves number and start in a state directory, durably.
pub(crate) fn save_state(dir: &Path, saved: SavedStart) -> io::Result<()> {
    let fresh = dir.join("server.new");
    let mut file = File::create(&fresh)?;
    write!(
        file,
        "pario-server 1 {} {}",
        saved.server.0, saved.incarnation
    )?;
    if let Some(life) = saved.life {
        write!(file, " {ENDED} {life}")?;
    }
    writeln!(file)?;
    file.sync_all()?;
    fs::rename(&fresh, dir.join(NAME))?;
    File::open(dir)?.sync_all()
}

/// What only this server knows.
#[derive(Debug)]
pub(crate) enum OwnIdentity {
    /// Made by an earlier start.
    Found([u8; KEY_BYTES]),
    /// Made by this one.
    Made([u8; KEY_BYTES]),
}

impl OwnIdentity {
    pub(crate) fn bytes(&self) -> [u8; KEY_BYTES] {
        let (OwnIdentity::Found(bytes) | OwnIdentity::Made(bytes)) = self;
        *bytes
    }
}

/// What only this server knows. It is made before the first join, so that a server that was cut off in the
/// middle of it is the same when it comes again, and lies in each of its directories, so that the loss of one does not make
/// it another. A server without a directory is a new one each time.
pub(crate) fn load_identity(dirs: &[PathBuf]) -> Result<OwnIdentity, (PathBuf, io::Error)> {
    let mut found = None;
    let mut without = Vec::new();
    for dir in dirs {
        match read_identity(dir).map_err(|e| (dir.clone(), e))? {
            Some(identity) => found = found.or(Some(OwnIdentity::Found(identity))),
            None => without.push(dir),
        }
    }
    let identity = found.unwrap_or_else(|| OwnIdentity::Made(identity::random()));
    for dir in without {
        save_identity(dir, &identity.bytes()).map_err(|e| (dir.clone(), e))?;
    }
    Ok(identity)
}

fn read_identity(dir: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let path = dir.join(IDENTITY);
    match identity::read_private(&path) {
        Ok(bytes) => bytes.try_into().map(Some).map_err(|_| {
            let text = format!(
                "{}: an identity has {KEY_BYTES} bytes; restore the file of this server",
                path.display()
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn save_identity(dir: &Path, identity: &[u8; KEY_BYTES]) -> io::Result<()> {
    let fresh = dir.join("identity.new");
    match fs::remove_file(&fresh) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(identity)?;
    file.sync_all()?;
    fs::rename(&fresh, dir.join(IDENTITY))?;
    File::open(dir)?.sync_all()
}

/// Connects to the manager and joins.
pub(crate) fn join(
    candidate: &Candidate,
    server: Option<ServerId>,
    resumes: Option<u64>,
    continues: Option<u64>,
    room: (u64, u64),
) -> Result<(Link, JoinAnswer), AskError> {
    let Acquainted {
        mut link, channel, ..
    } = introduce(
        &candidate.manager,
        Role::NewServer,
        &candidate.keys,
        Some(ANSWER),
    )?;
    let request = Join {
        server,
        resumes,
        continues,
        address: candidate.address.clone(),
        local: candidate.local.clone(),
        store: candidate.store,
        capacity_bytes: room.0,
        used_bytes: room.1,
        distance: candidate.distance,
        identity: Bytes(channel.wrap("identity", &candidate.identity)),
    };
    let mut joined = link.ask(1, &request, &mut Vec::new())?;
    let key = channel.unwrap("cluster", &joined.key.0);
    let key = key.ok_or(AskError::Answer(wire::DecodeError::BadNumber))?;
    joined.key = Bytes(key.to_vec());
    Ok((link, joined))
}

/// Whether joining again later may succeed.
pub(crate) fn may_succeed_later(error: &AskError) -> bool {
    match error {
        AskError::Link(_) => true,
        AskError::Refused(status, _) => matches!(
            status,
            Status::ShuttingDown | Status::Busy | Status::Unreachable | Status::TimedOut
        ),
        AskError::Answer(_) => false,
    }
}

/// Reports until the server stops.
pub(crate) fn stay(files: &Files, owner: &Arc<Owner>, candidate: &Candidate, link: Link) {
    let (cluster, storage) = (&files.cluster, &files.storage);
    let mut link = Some(link);
    let mut removed: Vec<Removal> = Vec::new();
    let mut pause = Duration::from_millis(20);
    let mut number = 1;
    let mut out = Vec::new();
    let mut load = Load::default();
    let mut interval = INTERVAL;
    let mut failures = Failures::default();
    let server = files.identity.server.0;
    while cluster.reports.wait_until_due(interval) {
        files.sessions.end_stuck();
        files.direct.sweep();
        storage.failed_syncs.leave_note();
        let Some(connected) = &mut link else {
            link = rejoin(files, owner, candidate);
            interval = if link.is_some() {
                tracing::info!(server, "metadata manager reached again");
                pause = Duration::from_millis(20);
                Duration::ZERO
            } else {
                pause = (pause * 2).min(Duration::from_secs(1));
                pause
            };
            continue;
        };
        let (capacity_bytes, used_bytes) = storage.stored.room();
        let report = Report {
            capacity_bytes,
            used_bytes,
            load: load.since(&storage.statistics),
            removed: std::mem::take(&mut removed),
        };
        number += 1;
        match connected.ask(number, &report, &mut out) {
            Ok(answer) => {
                number += 1;
                failures.tell(storage, connected, number, &mut out);
                if let Some(seen) = files.sessions.seen_uses.take() {
                    number += 1;
                    // What is lost is a statistic; a connection that is broken is noticed by the next report.
                    let _ = connected.ask(number, &seen, &mut out);
                }
                removed = files.remove(answer.removals, |file| owner.removed(file));
                members_are(cluster, owner, answer.members);
                // What was removed is confirmed at once.
                interval = if removed.is_empty() {
                    INTERVAL
                } else {
                    Duration::ZERO
                };
                cluster.reports.answered();
            }
            Err(error) => {
                tracing::warn!(server, %error, "metadata manager does not answer: joining again");
                // What this report confirmed is told again and found to be gone then.
                link = None;
                interval = Duration::ZERO;
            }
        }
    }
    if let Some(mut link) = link {
        // A manager that does not hear it notices the end of the connection.
        let _ = link.set_timeout(Some(FAREWELL));
        let _ = link.ask(number + 1, &Goodbye {}, &mut out);
    }
}

/// Reports sizes until the server stops. Not in the thread that [stays](stay): asking servers may take its time.
pub(crate) fn flush(reports: &Reports, owner: &Owner) {
    while reports.wait_unless_stopping(FLUSH) {
        owner.flush_dirty_sizes();
    }
}

/// Whether the disks of this server can be used.
#[derive(Debug, Default)]
struct Failures {
    is_told: bool,
}

impl Failures {
    /// Tells the manager when the last disk has failed, so that no new subfiles come here. Once they
    /// work again that is the administrator's to say.
    fn tell(&mut self, storage: &Storage, link: &mut Link, number: u64, out: &mut Vec<u8>) {
        let (disks, failed) = storage.stored.disks();
        let has_failed = disks > 0 && disks == failed;
        if has_failed && !self.is_told {
            tracing::error!(
                server = storage.identity.server.0,
                disks,
                "all disks have failed"
            );
            let failed = DiskFailed {
                handle: None,
                server: storage.identity.server,
                why: match disks {
                    1 => "reading or writing its disk failed".to_owned(),
                    _ => format!("reading or writing all its {disks} disks failed"),
                },
            };
            self.is_told = link.ask(number, &failed, out).is_ok();
        }
        self.is_told &= has_failed;
    }
}

fn members_are(cluster: &Arc<Cluster>, owner: &Arc<Owner>, members: Vec<Member>) {
    let without_room = |list: &[Member]| -> Vec<Member> {
        let plain = |m: &Member| Member {
            capacity_bytes: 0,
            used_bytes: 0,
            ..m.clone()
        };
        list.iter().map(plain).collect()
    };
    let before = cluster.replace_members(members);
    if without_room(&before) == without_room(&cluster.members()) {
        return;
    }
    // Asks servers that are back, which may take its time.
    let (cluster, owner) = (Arc::clone(cluster), Arc::clone(owner));
    let _ = std::thread::Builder::new()
        .name("members".into())
        .spawn(move || {
            // The latest, should another one have come meanwhile.
            owner.members_are(&cluster.members());
        });
}

/// Joins again as the same start; `None` if the manager is not there yet.
fn rejoin(files: &Files, owner: &Arc<Owner>, candidate: &Candidate) -> Option<Link> {
    let identity = &files.identity;
    let incarnation = identity.incarnation();
    let continues = Some(incarnation);
    let server = Some(identity.server);
    let resumes = (candidate.store == StoreKind::Disk).then_some(incarnation);
    let room = files.storage.stored.room();
    let rounds = files.all().into_iter().map(|entry| {
        let round = entry.round.load(Ordering::SeqCst);
        (entry, round)
    });
    let rounds: Vec<_> = rounds.collect();
    let handing_over = owner.handing_over();
    let (link, joined) = join(candidate, server, resumes, continues, room).ok()?;
    if joined.member.server != identity.server {
        return None;
    }
    identity.rejoined(&joined.member);
    members_are(&files.cluster, owner, joined.members);
    // The metadata manager counts nothing as fenced that was fenced before; what it fences from now on is.
    for (entry, round) in rounds {
        if entry.lift(round) {
            files.direct.show(&entry);
        }
    }
    for (file, since) in handing_over {
        // What fails is tried again when the owner looks at its files.
        let _ = owner.resume(file, since);
    }
    Some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server in memory syncs nothing else in its directory before it joins.
    #[test]
    fn power_takes_neither_identity_nor_number() {
        if let Some(why) = lossyfs::lacks() {
            testkit::skipped(&why);
            return;
        }
        let place = testkit::TempDir::new();
        let mut disk = lossyfs::Disk::mount(place.path()).unwrap();
        let dirs = [place.path().to_owned()];
        let made = load_identity(&dirs).unwrap();
        assert!(matches!(made, OwnIdentity::Made(_)), "{made:?}");
        disk.restart(lossyfs::Loss::Everything).unwrap();
        let found = load_identity(&dirs).unwrap();
        assert!(matches!(found, OwnIdentity::Found(_)), "{found:?}");
        assert_eq!(found.bytes(), made.bytes());
        let saved = SavedStart {
            server: ServerId(3),
            incarnation: 7,
            life: None,
        };
        save_state(&dirs[0], saved).unwrap();
        disk.restart(lossyfs::Loss::Everything).unwrap();
        assert_eq!(load_states(&dirs).unwrap(), Some(saved));
        let ended = SavedStart {
            life: Some(u64::MAX),
            ..saved
        };
        save_state(&dirs[0], ended).unwrap();
        assert_eq!(load_states(&dirs).unwrap(), Some(ended));
        // The next start has no life to hand on.
        save_state(&dirs[0], saved).unwrap();
        assert_eq!(load_states(&dirs).unwrap(), Some(saved));
    }
}
