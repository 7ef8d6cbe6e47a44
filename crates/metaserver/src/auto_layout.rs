//! Layouts that follow the use of a file by themselves: `auto_layout=off|suggest|apply`, a hint of a file or of a
//! directory for the files in it.
//!
//! ```text
//!  profile has something new -> enough of it? -> advice -> worth it? -> suggest: kept with the file
//!                                                                    -> apply: re-layout, online
//! ```
//!
//! Invariants
//! - One file is judged at a time, in a thread of its own; nobody waits for it.
//! - A file is judged again only when a quarter more bytes were counted than the last time, or a server of it is full.
//! - What was decided and why is kept with the profile and shown by `pario profile`.
//!
//! Left to others: the profile (`profiles`), what would be better and when it is worth a move (`advise::recommend`), the
//! move (`relayout`).

use std::collections::BTreeSet;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use advise::cost::{Machine, StoreKind as Store};
use advise::recommend::{AdviceList, Question, Server, decide, recommend};
use layout::ArrayType;
use meta::catalogue::{KeptProfile, Member, MemberState, StoreKind};
use wire::FileId;
use wire::message::catalogue::{MoveOptions, Relayout};

use crate::committer::Refused;
use crate::manager::Manager;
use crate::mapping::Whereabouts;

/// Longest search.
const MOST_SEARCH: Duration = Duration::from_millis(500);
/// So many layouts are looked at all the same: on a busy host the time may be over before the first.
const LEAST_LOOKS: u32 = 32;
/// Calibrations that are looked at.
const MOST_CALIBRATIONS: usize = 64;
/// A server with less room left than one in so many is full.
const FULL: u64 = 20;
/// A server whose load is so many times that of the average, and not small, is overloaded.
const OVERLOADED: u64 = 4;
const LEAST_LOAD: u64 = 64 << 20;

/// What is done with advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AutoLayout {
    /// Nothing.
    Off,
    /// It is kept with the file.
    Suggest,
    /// The file is moved.
    Apply,
}

impl fmt::Display for AutoLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AutoLayout::Off => "off",
            AutoLayout::Suggest => "suggest",
            AutoLayout::Apply => "apply",
        })
    }
}

/// Files that wait to be judged. What is said of a file while another one is judged is not forgotten.
#[derive(Debug, Default)]
pub(crate) struct Judging {
    waiting: BTreeSet<FileId>,
    is_running: bool,
}

impl Judging {
    /// Has files wait; whether the caller has to begin to judge.
    fn begin(&mut self, files: Vec<FileId>) -> bool {
        self.waiting.extend(files);
        !std::mem::replace(&mut self.is_running, true)
    }

    /// The next file that waits; nothing, and nobody judges any more, if there is none.
    fn next(&mut self) -> Option<FileId> {
        let next = self.waiting.pop_first();
        self.is_running = next.is_some();
        next
    }
}

/// What a file is judged by.
struct Judged {
    advised: AdviceList,
    /// Whether a server of the present layout has to be relieved.
    is_pressed: bool,
}

impl Manager {
    /// What is wanted for a file.
    pub(crate) fn auto_layout(&self, file: FileId) -> AutoLayout {
        let found = self
            .snapshot()
            .and_then(|s| Ok(s.hint(file, "auto_layout")?));
        match found
            .ok()
            .flatten()
            .as_ref()
            .map(|given| given.value.as_str())
        {
            Some("apply") => AutoLayout::Apply,
            Some("suggest") => AutoLayout::Suggest,
            _ => AutoLayout::Off,
        }
    }

    /// Looks at files whose profile has something new.
    pub(crate) fn judge_layouts(&self, files: &[FileId]) {
        let wanted: Vec<FileId> = files
            .iter()
            .copied()
            .filter(|file| self.auto_layout(*file) != AutoLayout::Off)
            .collect();
        if wanted.is_empty() || self.is_ending() {
            return;
        }
        let Some(this) = self.this().upgrade() else {
            return;
        };
        if !self.judging.lock().begin(wanted) {
            return;
        }
        let spawned = thread::Builder::new().name("advise".into()).spawn(move || {
            while let Some(file) = this.next_to_judge() {
                // A file that cannot be judged now is judged when there is something new.
                let _ = this.judge_layout(file);
            }
        });
        if spawned.is_err() {
            *self.judging.lock() = Judging::default();
        }
    }

    /// The next file that waits, unless the manager ends.
    fn next_to_judge(&self) -> Option<FileId> {
        let mut judging = self.judging.lock();
        if self.is_ending() {
            judging.waiting.clear();
        }
        judging.next()
    }

    fn judge_layout(&self, file: FileId) -> Result<(), Refused> {
        let snapshot = self.snapshot()?;
        let KeptProfile { profile, mut auto } = snapshot.profile_of(file)?;
        let total = profile.total();
        let bytes = total.read.bytes.saturating_add(total.written.bytes);
        let is_new = bytes > auto.judged_bytes.saturating_add(auto.judged_bytes / 4);
        if profile.is_empty() || self.moves.is_moving(file) {
            return Ok(());
        }
        let Some(judged) = self.judge(&snapshot, file, &profile, is_new)? else {
            return Ok(());
        };
        let decision = decide(&judged.advised, auto.moves, judged.is_pressed);
        let mode = self.auto_layout(file);
        auto.judged_bytes = bytes;
        auto.regret_us = (decision.regret_s * 1e6) as u64;
        auto.suggestion = decision.layout.clone().unwrap_or_default();
        auto.why = decision.why;
        let path = snapshot.path_of(file)?;
        drop(snapshot);
        let applied = match (mode, decision.layout, path) {
            (AutoLayout::Apply, Some(layout), Some(path)) if decision.is_worth_it => {
                let mut session = self.own_session();
                let moved = self.relayout(&mut session, move_to(path, layout));
                match moved {
                    Ok(_) => true,
                    Err(refused) => {
                        auto.why = format!("{}; not moved: {refused}", auto.why);
                        false
                    }
                }
            }
            _ => false,
        };
        if applied {
            auto.moves += 1;
            auto.suggestion.clear();
            auto.judged_bytes = bytes / 2;
        }
        self.committer.run(move |b| {
            if applied {
                b.age_profile(file)?;
            }
            Ok(b.set_auto_state(file, &auto)?)
        })
    }

    fn judge(
        &self,
        snapshot: &meta::catalogue::Snapshot,
        file: FileId,
        profile: &advise::profile::Profile,
        is_new: bool,
    ) -> Result<Option<Judged>, Refused> {
        let attributes = snapshot.stat_file(file)?;
        let state = snapshot.layout(file)?.decode()?;
        let [piece] = &state.pieces[..] else {
            return Ok(None);
        };
        let loads = self.committer.run(|b| Ok(b.loads()))?;
        let mut members = snapshot.members()?;
        members
            .retain(|m| m.state == MemberState::Alive && self.members.has(m.server, m.incarnation));
        members.sort_by_key(|m| m.server);
        let mean = loads.iter().map(|(_, load)| load).sum::<u64>() / (loads.len() as u64).max(1);
        let whereabouts = self.members.whereabouts();
        let unknown = Whereabouts::default();
        let mut hosts: Vec<&Whereabouts> = Vec::new();
        let mut servers = Vec::new();
        for m in &members {
            let at = whereabouts
                .get(&(m.server, m.incarnation))
                .unwrap_or(&unknown);
            let known = hosts.iter().position(|h| *h == at || h.is_same_host(at));
            let host = known.unwrap_or_else(|| {
                hosts.push(at);
                hosts.len() - 1
            });
            let load = loads
                .iter()
                .find(|(s, _)| *s == m.server)
                .map_or(0, |(_, load)| *load);
            let is_overloaded = load >= LEAST_LOAD && load > mean.saturating_mul(OVERLOADED);
            servers.push(Server {
                number: m.server.0,
                host,
                is_shunned: is_full(m) || is_overloaded,
            });
        }
        let homes: Option<Vec<usize>> = piece
            .places
            .iter()
            .map(|list| servers.iter().position(|s| s.number == list[0].server))
            .collect();
        // A server of it is away: nothing is decided without it.
        let Some(homes) = homes else {
            return Ok(None);
        };
        let is_pressed =
            homes.iter().any(|h| servers[*h].is_shunned) && servers.iter().any(|s| !s.is_shunned);
        if !is_new && !is_pressed {
            return Ok(None);
        }
        let array: Option<ArrayType> = attributes.array.as_deref().and_then(|a| a.parse().ok());
        let array = array.filter(|a| a.bytes() > 0);
        let is_disk = members.iter().any(|m| m.store == StoreKind::Disk);
        let machine = machine_of(snapshot)?;
        let question = Question {
            profile,
            array: array.as_ref(),
            file_bytes: array
                .as_ref()
                .map_or(attributes.size, |a| attributes.size.max(a.bytes())),
            text: attributes.layout.as_deref().unwrap_or_default(),
            partition: &piece.partition,
            homes: &homes,
            servers: &servers,
            store: if is_disk { Store::Disk } else { Store::Memory },
            machine: &machine,
        };
        let end = Instant::now() + MOST_SEARCH;
        let mut looks = 0;
        let advised = recommend(&question, &mut || {
            looks += 1;
            looks <= LEAST_LOOKS || Instant::now() < end
        });
        Ok(Some(Judged {
            advised,
            is_pressed,
        }))
    }
}

/// The defaults with what was calibrated on hosts of the service; the latest counts. The way between hosts is taken from
/// calibrations between them.
fn machine_of(snapshot: &meta::catalogue::Snapshot) -> Result<Machine, Refused> {
    let mut rows = snapshot.calibrations(None, MOST_CALIBRATIONS)?;
    rows.sort_by_key(|row| row.taken);
    let mut machine = Machine::HOST;
    for row in &rows {
        for parameter in &row.parameters {
            if parameter.name.starts_with("far.") == (row.from != row.to) {
                machine.set(&parameter.name, f64::from_bits(parameter.bits));
            }
        }
    }
    Ok(machine)
}

fn is_full(member: &Member) -> bool {
    let left = member.capacity_bytes.saturating_sub(member.used_bytes);
    member.capacity_bytes > 0 && left < member.capacity_bytes / FULL
}

fn move_to(path: String, layout: String) -> Relayout {
    Relayout {
        path,
        layout,
        servers: Vec::new(),
        options: MoveOptions::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_comes_while_another_one_is_judged_is_judged_after_it() {
        let mut judging = Judging::default();
        assert!(judging.begin(vec![FileId(3)]), "the first one begins");
        assert_eq!(judging.next(), Some(FileId(3)));
        // In the middle of that: other files, and once more the same.
        for file in [7, 3, 7] {
            assert!(!judging.begin(vec![FileId(file)]), "somebody judges");
        }
        assert_eq!(judging.next(), Some(FileId(3)));
        assert_eq!(judging.next(), Some(FileId(7)));
        assert_eq!(judging.next(), None);
        assert!(judging.begin(vec![FileId(9)]), "nobody judges any more");
    }
}
