//! `pario doctor`: does everything that a service has fit together? Owns the list of findings, each
//! with what to do. What can be repaired is `repair`'s, and changed only where that is asked for; rebuilding files is `rebuild`'s.
//!
//! The catalogue checks itself; here it is compared with what the servers say they have. Both may
//! change meanwhile, so what looks wrong is looked at twice before it is reported.
//!
//! Cost: every name once, every subfile once; memory in proportion to both. `--scrub` reads every
//! byte on every disk.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use client::{
    Client, Counter, Counts, DiskState, FileId, Kind, Member, MemberState, OpenOptions, ServerId,
    Severity, Status, StoreKind, SubfileEntry, SubfileName, SubfileState,
};
use serde_json::{Value, json};
use wire::LayoutState;
use wire::url::Endpoint;

use super::output::counted;
use super::repair::{self, Leftovers, Repair, RepairOutcome};
use super::{Error, ReportedFailure, output, rebuild};
use crate::service::contact;
use crate::service::state::State;
use crate::service::target::Target;

/// Arguments of `pario doctor`.
#[derive(Args)]
#[command(after_help = "\
Looks at the catalogue, the members, every server's subfiles, removals that wait, the sockets and
the permissions of the directory. Exit code 0 when all is well, 1 with a list of findings, each
with what to do about it. Nothing is changed without --repair; what that would do stands beside each finding that it can
mend, and code 0 says that it has mended all.

Kinds of findings:
  broken    the catalogue contradicts itself: a bug or a damaged disk
  lost      bytes were in the memory of a server that is gone
  server    a server is missing or does not answer
  disk      a disk of a server is missing, or failed; bytes were on a disk that is gone
  conflict  several data files say that they are the same subfile; none is served
  aside     data files that were put into quarantine; nothing there is used or removed
  orphan    a server keeps bytes that no file has; --repair puts them aside on their disk, or removes them with --remove
  changed   a file was removed or moved since the backup that the catalogue was restored from: its bytes are not where it says
  damaged   bytes on a disk do not fit their checksums (--scrub)
  waiting   removals that could not be done yet
  files     sockets or permissions in the directory of the service

Examples:
  pario doctor
  pario doctor --scrub --json
  pario doctor --repair                                     mend what can be mended
  pario doctor --repair --remove                            and give the space of orphans back
  pario doctor --rebuild --from old/io-0 --from old/io-1    files of a service whose catalogue is lost")]
pub(crate) struct Arguments {
    /// Read everything and compare it with its checksums
    #[arg(long)]
    scrub: bool,

    /// Mend what can be mended: bytes that no file has are put aside
    #[arg(long, conflicts_with = "rebuild")]
    repair: bool,

    /// With --repair: remove bytes that no file has, instead of putting them aside
    #[arg(long, requires = "repair")]
    remove: bool,

    /// The directory of the service [default: what PARIO_URL names, else .pario]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Rebuild the files of a service whose catalogue is lost, out of the directories of its I/O servers, in the service that
    /// PARIO_URL names
    #[arg(long, requires = "from", conflicts_with_all = ["scrub", "dir"])]
    rebuild: bool,

    /// With --rebuild: the directories of one old I/O server, with commas between them; once for each server
    #[arg(long, value_name = "DIRS", requires = "rebuild")]
    pub(super) from: Vec<String>,

    /// Print JSON instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// How long servers that are there may take to remove what they were told to, and between two looks.
const REMOVING: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);

/// Something that is not as it should be.
#[derive(Clone, Debug)]
struct Ailment {
    kind: &'static str,
    what: String,
    remedy: String,
    /// What can be done by itself, and what became of it.
    repair: Option<(Repair, RepairOutcome)>,
}

/// Examines a service.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    if arguments.rebuild {
        return rebuild::run(arguments);
    }
    let target = Target::find(arguments.dir.as_deref())?;
    let client = contact::connect(&target)?;
    let mut examination = Examination {
        client,
        findings: Vec::new(),
        files: BTreeMap::new(),
        sized: BTreeSet::new(),
        layouts: RefCell::default(),
        restored_from_s: 0,
        seen: ExaminedCounts::default(),
    };
    let leftovers = match arguments.remove {
        true => Leftovers::Removed,
        false => Leftovers::Aside,
    };
    examination.run(&target, arguments.scrub)?;
    if arguments.repair {
        examination.repair(leftovers);
    }
    let Examination { findings, seen, .. } = examination;
    if arguments.json {
        output::print(&format!("{:#}\n", to_json(&findings, &seen, leftovers)))?;
    } else {
        output::print(&to_text(&findings, &seen, leftovers))?;
    }
    match findings.iter().all(Ailment::is_mended) {
        true => Ok(()),
        false => Err(ReportedFailure.into()),
    }
}

/// What was looked at.
#[derive(Debug, Default)]
struct ExaminedCounts {
    files: u64,
    directories: u64,
    servers: u64,
    subfiles: u64,
    /// Files with a size but without a byte on any server: holes.
    hollow: Vec<String>,
    /// Servers whose hosts give no large pages to shared memory.
    with_small_pages: Vec<ServerId>,
    scrubbed_blocks: Option<u64>,
}

struct Examination {
    client: Client,
    findings: Vec<Ailment>,
    /// Paths of all files that have one.
    files: BTreeMap<FileId, String>,
    /// Those of them that are not empty.
    sized: BTreeSet<FileId>,
    /// Layouts of files, as they were when they were looked at last.
    layouts: RefCell<BTreeMap<FileId, Option<LayoutState>>>,
    /// When the backup was made that the catalogue was restored from; 0 if it never was.
    restored_from_s: u64,
    seen: ExaminedCounts,
}

impl Examination {
    fn run(&mut self, target: &Target, scrub: bool) -> Result<(), Error> {
        let members = self.client.members()?;
        self.seen.servers = members.len() as u64;
        // Before the names: a file that is made meanwhile is then known, not an orphan.
        let kept = self.ask_servers(&members);
        self.walk()?;
        self.catalogue()?;
        self.look_at_members(&members);
        self.look_at_keepers(&members);
        self.disks(&members, &kept);
        self.look_at_troubles();
        self.restored_from_s = self.client.counts()?.restored_from_s;
        self.orphans(&members, &kept)?;
        self.hollow(&members, &kept);
        self.pages(&members);
        self.removals(&members)?;
        self.places(target, &members);
        if scrub {
            self.scrub()?;
        }
        Ok(())
    }

    fn find(&mut self, kind: &'static str, what: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Ailment {
            kind,
            what: what.into(),
            remedy: remedy.into(),
            repair: None,
        });
    }

    fn ask_servers(&mut self, members: &[Member]) -> BTreeMap<ServerId, Vec<SubfileEntry>> {
        let alive = members.iter().filter(|m| m.state == MemberState::Alive);
        let mut kept = BTreeMap::new();
        for member in alive {
            match self.client.subfiles(member.server) {
                Ok(list) => {
                    self.seen.subfiles += list.len() as u64;
                    kept.insert(member.server, list);
                }
                Err(error) => self.find(
                    "server",
                    format!("{} does not say what it has: {error}", member.server),
                    "look at it with `pario status`; restart it if it hangs",
                ),
            }
        }
        kept
    }

    /// Notes every file that has a name.
    fn walk(&mut self) -> Result<(), Error> {
        let mut directories = vec!["/".to_owned()];
        while let Some(directory) = directories.pop() {
            self.seen.directories += 1;
            let listed = match self.client.list_with_attributes(&directory) {
                Ok(listed) => listed,
                // Removed since it was listed.
                Err(e) if e.status() == Status::NotFound => continue,
                Err(e) => return Err(format!("{directory}: {e}").into()),
            };
            for entry in listed {
                let entry = entry.map_err(|e| format!("{directory}: {e}"))?;
                let path = format!("{}/{}", directory.trim_end_matches('/'), entry.name);
                match entry.kind {
                    Kind::Directory => directories.push(path),
                    Kind::File => {
                        self.seen.files += 1;
                        if entry.attributes.is_some_and(|a| a.size > 0) {
                            self.sized.insert(entry.file);
                        }
                        self.files.insert(entry.file, path);
                    }
                }
            }
        }
        Ok(())
    }

    fn catalogue(&mut self) -> Result<(), Error> {
        let findings = self.client.check().map_err(|error| match error.status() {
            Status::PermissionDenied => {
                format!("{error}; run it as the user who runs the service, or as root")
            }
            _ => error.to_string(),
        })?;
        for finding in findings {
            match finding.severity {
                Severity::Broken => self.find(
                    "broken",
                    finding.text,
                    "stop the service, keep a copy of its directory and report this",
                ),
                Severity::Lost => {
                    let what = self.with_path(&finding.text);
                    self.find(
                        "lost",
                        what,
                        "write the file again, or remove it; files that have to survive belong on \
                         disk servers",
                    );
                }
            }
        }
        Ok(())
    }

    /// A text that names a file by number (`file 17`), with its path beside it.
    fn with_path(&self, text: &str) -> String {
        let digits = text.split_once("file ").map(|(_, rest)| rest);
        let digits = digits.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        let file = digits.and_then(|digits| digits.parse().ok()).map(FileId);
        match file.and_then(|file| self.files.get(&file)) {
            Some(path) => format!("{text} ({path})"),
            None => text.to_owned(),
        }
    }

    fn look_at_members(&mut self, members: &[Member]) {
        if !members.iter().any(|m| m.state == MemberState::Alive) {
            self.find(
                "server",
                "no I/O server takes part; files can be named but neither written nor read",
                "start one with `pario serve io`, or the service with `pario up`",
            );
        }
        for member in members.iter().filter(|m| m.state == MemberState::Dead) {
            let (number, address) = (member.server, &member.address);
            match member.store {
                StoreKind::Disk => self.find(
                    "server",
                    format!("{number} at {address} is dead; files with bytes there cannot be read"),
                    "start it again on the same directories: its bytes are on its disks",
                ),
                StoreKind::Memory => self.find(
                    "server",
                    format!("{number} at {address} is dead, and what it had in memory is with its keeper, if that lives, or gone"),
                    "start it again within ten minutes, with the same --state; write again what is lost then",
                ),
            }
        }
    }

    /// Memory that should have a keeper and has none: it is away at the moment, or could not be started.
    fn look_at_keepers(&mut self, members: &[Member]) {
        for member in members.iter().filter(|m| m.state == MemberState::Alive) {
            let server = member.server;
            // One that does not answer is told elsewhere.
            let counters = self.client.server_statistics(server).unwrap_or_default();
            let is = |name: &str, value: u64| {
                let found = counters.iter().find(|c| c.name == name);
                found.is_some_and(|c| c.value == value)
            };
            let on_disks = member.store == StoreKind::Disk;
            if is("memory_is_kept", 0) {
                let loses = match on_disks {
                    true => "what was written and not synced",
                    false => "it",
                };
                self.find(
                    "server",
                    format!("the memory of {server} has no keeper at the moment; a death of the server would lose {loses}"),
                    "look again in a moment: the server starts another one; if it cannot, its log says why: mend that, \
                     and it is tried again every few seconds",
                );
            }
            if is("memory_lacks_keeper", 1) {
                let instead = match on_disks {
                    true => "it writes through instead of behind",
                    false => "a death of the server loses it",
                };
                self.find(
                    "server",
                    format!("no keeper could be started for the memory of {server}; {instead}"),
                    format!("its log says why; mend that and restart {server}"),
                );
            }
        }
    }

    /// What the supervisor says of servers that die again and again.
    fn look_at_troubles(&mut self) {
        let told = State::told_by(&self.client);
        for trouble in told.iter().flat_map(|state| &state.troubles) {
            self.find(
                "server",
                format!("{}; {}", trouble.what(), trouble.next()),
                "mend what it says, or look into the log of the service; the supervisor starts it again for ever",
            );
        }
    }

    /// Disks that are not as they should be, and what of files was on them.
    fn disks(&mut self, members: &[Member], kept: &BTreeMap<ServerId, Vec<SubfileEntry>>) {
        let with_disks = |m: &&Member| m.state == MemberState::Alive && m.store == StoreKind::Disk;
        for member in members.iter().filter(with_disks) {
            let server = member.server;
            let list = match self.client.disks(server) {
                Ok(list) => list,
                Err(error) => {
                    self.find(
                        "server",
                        format!("{server} does not say which disks it has: {error}"),
                        "look at it with `pario status`; restart it if it hangs",
                    );
                    continue;
                }
            };
            let of = |state: SubfileState| {
                let entries = kept.get(&server).into_iter().flatten();
                let entries = entries.filter(|e| e.state == state && self.is_served(server, e));
                let paths = entries.filter_map(|e| self.files.get(&e.file).cloned());
                paths.collect::<BTreeSet<String>>()
            };
            let (missing, lost) = (of(SubfileState::Missing), of(SubfileState::Lost));
            for disk in list.disks {
                let (id, place) = (disk.id, disk.place);
                match disk.state {
                    DiskState::Missing => self.find(
                        "disk",
                        format!(
                            "disk {id:016x} of {server} is missing in {place}: {}; {} cannot be read{}",
                            disk.why,
                            counted(missing.len() as u64, "file", "files"),
                            some_of(&missing),
                        ),
                        format!(
                            "mount it and restart {server}; if it is lost for good, restart {server} with \
                             --forget-disk {id:016x}"
                        ),
                    ),
                    DiskState::Failed => self.find(
                        "disk",
                        format!("reading or writing disk {id:016x} of {server} in {place} failed"),
                        "look after the disk; restart the server when it works again",
                    ),
                    DiskState::Used | DiskState::Lost => {}
                }
            }
            if !lost.is_empty() {
                self.find(
                    "lost",
                    format!(
                        "{} had bytes on {server} that are gone{}",
                        counted(lost.len() as u64, "file", "files"),
                        some_of(&lost),
                    ),
                    "put the data files back, or write the files again, or remove them",
                );
            }
            for text in list.conflicts {
                let what = format!("{server}: {text}");
                self.find(
                    "conflict",
                    what,
                    "compare the two; nothing is removed by itself",
                );
            }
            if !list.quarantined.is_empty() {
                let first: Vec<&str> = list.quarantined.iter().take(3).map(|p| &**p).collect();
                let more = if list.quarantined.len() > 3 {
                    ", ..."
                } else {
                    ""
                };
                self.find(
                    "aside",
                    format!(
                        "{server} has put {} aside: {}{more}",
                        counted(list.quarantined.len() as u64, "data file", "data files"),
                        first.join(", ")
                    ),
                    "older copies of what is served, or bytes that no file had; keep them until you are sure, then remove them",
                );
            }
        }
    }

    /// Whether bytes of a file are served from a subfile. One of an earlier layout was removed, and after a power cut its
    /// server may have the record of it without the note that it was.
    fn is_served(&self, server: ServerId, entry: &SubfileEntry) -> bool {
        if !self.files.contains_key(&entry.file) {
            return false;
        }
        // A file that cannot be asked for is better named in vain.
        let Some(state) = self.layout(entry.file) else {
            return true;
        };
        state.pieces.iter().any(|piece| {
            let index = entry.index as usize;
            let places = piece.places.get(index).into_iter().flatten();
            piece.stores.get(index) == Some(&entry.generation)
                && places.into_iter().any(|place| place.server == server.0)
        })
    }

    /// The layout of a file that has a name.
    fn layout(&self, file: FileId) -> Option<LayoutState> {
        let mut layouts = self.layouts.borrow_mut();
        let found = layouts.entry(file).or_insert_with(|| {
            let layout = self.client.layout(self.files.get(&file)?);
            layout.ok().map(|layout| layout.state)
        });
        found.clone()
    }

    /// Subfiles that no file has by what the catalogue knows, seen twice.
    fn orphans(
        &mut self,
        members: &[Member],
        kept: &BTreeMap<ServerId, Vec<SubfileEntry>>,
    ) -> Result<(), Error> {
        let suspects = kept
            .iter()
            .map(|(server, list)| (*server, self.strange(*server, list)));
        let suspects: BTreeMap<ServerId, BTreeMap<Subfile, u64>> = suspects
            .filter(|(_, suspects)| !suspects.is_empty())
            .collect();
        if suspects.is_empty() {
            return Ok(());
        }
        // Files that are open but have no name any more are known to the catalogue only.
        let counts = self.counts_without_removals(members)?;
        let nameless = counts.files.saturating_sub(self.seen.files);
        self.layouts.borrow_mut().clear();
        for (server, before) in suspects {
            let now = self.client.subfiles(server).unwrap_or_default();
            let mut still = self.strange(server, &now);
            still.retain(|subfile, _| before.contains_key(subfile));
            let files: BTreeSet<FileId> = still.keys().map(|s| s.0).collect();
            if files.len() as u64 <= nameless || counts.removals > 0 {
                // Open files without a name, or removals that are reported below.
                continue;
            }
            let named: Vec<String> = files.iter().take(5).map(ToString::to_string).collect();
            let more = if files.len() > 5 { ", ..." } else { "" };
            let remedy = match self.restored_from_s {
                0 => "harmless but for the space".to_owned(),
                at => format!(
                    "the catalogue was restored from a backup of {}; these are files made or moved since: `pario doctor \
                     --rebuild` brings new ones back from the directories of the servers",
                    serving::utc(at)
                ),
            };
            self.find(
                "orphan",
                format!(
                    "{server} keeps bytes of {} that the catalogue does not know ({}{more})",
                    counted(files.len() as u64, "file", "files"),
                    named.join(", ")
                ),
                remedy,
            );
            self.can_be_mended(Repair::Discard {
                server,
                len: still.values().sum(),
                subfiles: still.keys().map(name_of).collect(),
            });
        }
        Ok(())
    }

    /// What there is in all, if possible when servers have removed what they were told to: that is no orphan.
    fn counts_without_removals(&self, members: &[Member]) -> Result<Counts, Error> {
        let all_there = members.iter().all(|m| m.state == MemberState::Alive);
        let deadline = Instant::now() + REMOVING;
        loop {
            let counts = self.client.counts()?;
            if counts.removals == 0 || !all_there || Instant::now() > deadline {
                return Ok(counts);
            }
            std::thread::park_timeout(LOOK);
        }
    }

    /// Subfiles of a server that no file has, with their lengths.
    fn strange(&self, server: ServerId, list: &[SubfileEntry]) -> BTreeMap<Subfile, u64> {
        // What is not here takes no space.
        let here = list.iter().filter(|s| s.state == SubfileState::Here);
        let strange = here.filter(|s| !self.is_served(server, s));
        strange.map(|s| (subfile(s), s.len)).collect()
    }

    /// What was found last can be mended.
    fn can_be_mended(&mut self, repair: Repair) {
        if let Some(last) = self.findings.last_mut() {
            last.repair = Some((repair, RepairOutcome::NotTried));
        }
    }

    /// Mends what can be mended.
    fn repair(&mut self, leftovers: Leftovers) {
        for finding in &mut self.findings {
            if let Some((repair, repaired)) = &mut finding.repair {
                *repaired = match repair.carry_out(&self.client, leftovers) {
                    Ok(places) => RepairOutcome::Done(places),
                    Err(error) => RepairOutcome::Failed(error.to_string()),
                };
            }
        }
    }

    /// Notes servers that could have large pages. That is no flaw: the rest works the same.
    fn pages(&mut self, members: &[Member]) {
        let alive = members.iter().filter(|m| m.state == MemberState::Alive);
        for member in alive {
            let told = self.client.server_statistics(member.server);
            let pages = |counter: &Counter| counter.name == "large_pages" && counter.value == 0;
            if told.is_ok_and(|counters| counters.iter().any(pages)) {
                self.seen.with_small_pages.push(member.server);
            }
        }
    }

    /// Notes files without bytes, if all servers have said what they have.
    fn hollow(&mut self, members: &[Member], kept: &BTreeMap<ServerId, Vec<SubfileEntry>>) {
        if members.iter().any(|m| !kept.contains_key(&m.server)) {
            return;
        }
        let all = kept
            .iter()
            .flat_map(|(server, list)| list.iter().map(|e| (*server, e)));
        let served = all.filter(|(server, entry)| self.is_served(*server, entry));
        let with_bytes: BTreeSet<FileId> = served.map(|(_, entry)| entry.file).collect();
        let hollow = self.sized.iter().filter(|file| !with_bytes.contains(file));
        let hollow: Vec<String> = hollow.filter_map(|f| self.files.get(f).cloned()).collect();
        if self.restored_from_s == 0 {
            self.seen.hollow = hollow;
            return;
        }
        for path in hollow {
            let at = serving::utc(self.restored_from_s);
            self.find(
                "changed",
                format!("{path} has a size but no bytes on any server: it was removed or moved after {at}, or never had any"),
                "remove it, write it again, or bring it back with `pario doctor --rebuild` if its bytes are an orphan",
            );
        }
    }

    fn removals(&mut self, members: &[Member]) -> Result<(), Error> {
        let waiting = self.client.counts()?.removals;
        let is_dead = |m: &&Member| m.state != MemberState::Alive;
        // With all servers there, removals are on their way and no finding.
        if waiting > 0 && members.iter().find(is_dead).is_some() {
            self.find(
                "waiting",
                format!(
                    "{} for servers that do not take part",
                    counted(waiting, "removal waits", "removals wait")
                ),
                "done as soon as those servers are back",
            );
        }
        Ok(())
    }

    /// Sockets and permissions, as far as they are on this host.
    fn places(&mut self, target: &Target, members: &[Member]) {
        for member in members.iter().filter(|m| m.state == MemberState::Alive) {
            if let Ok(Endpoint::Unix(path)) = member.address.parse::<Endpoint>() {
                self.socket(&path, &member.server.to_string());
            }
        }
        let dir = match target {
            Target::Directory(dir) => Some(dir.clone()),
            Target::Service(Endpoint::Unix(path), state) => {
                self.socket(path, "the metadata manager");
                let parent = path.parent().map(Path::to_owned);
                parent.filter(|_| state.is_some())
            }
            Target::Service(..) => None,
        };
        let Some(dir) = dir else {
            return;
        };
        // What is in these may be read by the service only; the servers decide who else may.
        self.private(&dir.join("meta"), 0o077);
        self.private(&dir.join("meta/key"), 0o077);
        for index in 0..crate::service::supervisor::disk_servers_found(&dir) {
            let io = crate::service::supervisor::disk_dir(&dir, index);
            self.private(&io, 0o022);
        }
    }

    fn socket(&mut self, path: &Path, whose: &str) {
        let shown = path.display();
        match fs::metadata(path) {
            Ok(found) if found.file_type().is_socket() => {}
            Ok(_) => self.find(
                "files",
                format!("{shown} is no socket, but {whose} listens there"),
                format!("remove it and restart {whose}"),
            ),
            Err(error) => self.find(
                "files",
                format!("the socket of {whose} cannot be found at {shown}: {error}"),
                format!("restart {whose}; new clients cannot connect"),
            ),
        }
    }

    fn private(&mut self, path: &Path, forbidden: u32) {
        let Ok(found) = fs::metadata(path) else {
            return;
        };
        let mode = found.mode() & 0o777;
        if mode & forbidden != 0 {
            let shown = path.display();
            self.find(
                "files",
                format!("{shown} has mode {mode:o}: others get around the permissions of files"),
                format!("chmod {:o} {shown}", mode & !forbidden),
            );
        }
    }

    fn scrub(&mut self) -> Result<(), Error> {
        let mut blocks = 0;
        for path in self.files.values().cloned().collect::<Vec<_>>() {
            let file = match self.client.open(&path, &OpenOptions::new().read()) {
                Ok(file) => file,
                Err(e) if e.status() == Status::NotFound => continue,
                Err(e) => {
                    self.find(
                        "damaged",
                        format!("{path} cannot be opened: {e}"),
                        "run it as the user who runs the service, or as root",
                    );
                    continue;
                }
            };
            match file.scrub() {
                Ok(found) => {
                    blocks += found.blocks;
                    let damaged = found.damaged;
                    if damaged > 0 {
                        self.find(
                            "damaged",
                            format!(
                                "{} of {path} {} not fit the checksum",
                                counted(damaged, "block", "blocks"),
                                if damaged == 1 { "does" } else { "do" }
                            ),
                            "write these parts of the file again, and look after the disk",
                        );
                    }
                }
                // Reported by the catalogue already.
                Err(e) if e.status() == Status::Lost => {}
                Err(e) => self.find(
                    "damaged",
                    format!("{path} cannot be read: {e}"),
                    "restart the servers that are missing and look again",
                ),
            }
        }
        self.seen.scrubbed_blocks = Some(blocks);
        Ok(())
    }
}

/// The first of some paths, in brackets.
fn some_of(paths: &BTreeSet<String>) -> String {
    let first: Vec<&str> = paths.iter().take(3).map(|p| &**p).collect();
    let more = if paths.len() > 3 { ", ..." } else { "" };
    match first[..] {
        [] => String::new(),
        _ => format!(" ({}{more})", first.join(", ")),
    }
}

/// File, generation, index.
type Subfile = (FileId, u64, u32);

fn subfile(entry: &SubfileEntry) -> Subfile {
    (entry.file, entry.generation, entry.index)
}

fn name_of(&(file, generation, index): &Subfile) -> SubfileName {
    SubfileName {
        file,
        generation,
        index,
    }
}

impl Ailment {
    /// Whether it was one.
    fn is_mended(&self) -> bool {
        matches!(self.repair, Some((_, RepairOutcome::Done(_))))
    }
}

fn to_text(findings: &[Ailment], seen: &ExaminedCounts, leftovers: Leftovers) -> String {
    let mut text = String::new();
    for finding in findings {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<8} {}\n         -> {}",
            finding.kind, finding.what, finding.remedy
        );
        if let Some((repair, repaired)) = &finding.repair {
            let _ = writeln!(
                text,
                "         -> {}",
                repair::to_text(repair, repaired, leftovers)
            );
        }
    }
    let verdict = match findings.len() as u64 {
        0 => "all is well".to_owned(),
        n => counted(n, "finding", "findings"),
    };
    if let [first, others @ ..] = &seen.hollow[..] {
        let more = match others.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let _ = writeln!(
            text,
            "note     {first}{more}: a size but no bytes on any server; holes, nothing was ever \
             synced there"
        );
    }
    let scrubbed = match seen.scrubbed_blocks {
        Some(blocks) => format!(", {} read and compared", counted(blocks, "block", "blocks")),
        None => String::new(),
    };
    let _ = writeln!(
        text,
        "{verdict}: {} in {}, {} on {}{scrubbed}",
        counted(seen.files, "file", "files"),
        counted(seen.directories, "directory", "directories"),
        counted(seen.subfiles, "subfile", "subfiles"),
        counted(seen.servers, "server", "servers"),
    );
    if let [_, ..] = &seen.with_small_pages[..] {
        let count = seen.with_small_pages.len() as u64;
        let _ = writeln!(
            text,
            "note     {}: the host gives no large pages to shared memory, and its kernel joins none; with `advise` in \
             /sys/kernel/mm/transparent_hugepage/shmem_enabled before the servers start, getting new \
             memory costs about a sixth",
            counted(count, "server", "servers"),
        );
    }
    text
}

fn to_json(findings: &[Ailment], seen: &ExaminedCounts, leftovers: Leftovers) -> Value {
    let finding = |f: &Ailment| {
        let repair = f.repair.as_ref();
        let repair = repair.map(|(repair, done)| repair::to_json(repair, done, leftovers));
        json!({ "kind": f.kind, "what": f.what, "remedy": f.remedy, "repair": repair })
    };
    json!({
        "is_well": findings.is_empty(),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        "files": seen.files,
        "directories": seen.directories,
        "servers": seen.servers,
        "subfiles": seen.subfiles,
        "hollow": seen.hollow,
        "with_small_pages": seen.with_small_pages.iter().map(|s| s.0).collect::<Vec<_>>(),
        "scrubbed_blocks": seen.scrubbed_blocks,
    })
}
