//! The record of a file: entries by application, rank and view, and what they come to in all.
//!
//! **Bounded and mergeable.** Of all keys that were ever recorded the [`MOST_ENTRIES`] with the least hash are kept. The
//! least of a union are the least of the least of its parts, so it does not matter in which order records are merged, and
//! an entry that is among them was among them in every part that had it: its counters are complete. What is kept of
//! more than that is a sample in which every key has the same chance; the totals have all.

use std::collections::BTreeMap;

use layout::View;

use super::tally::Tally;
use super::travel;

/// Entries of a profile.
pub const MOST_ENTRIES: usize = 512;
/// Servers that an entry, and a profile, tell apart.
pub const MOST_SERVERS: usize = 16;
/// Longest description of a view; a longer one is kept as the blocks that it lies in.
pub const MOST_VIEW_BYTES: usize = 512;
/// Longest name of an application.
pub(super) const MOST_NAME_BYTES: usize = 48;
/// Longest text of a view.
pub(super) const MOST_TEXT_BYTES: usize = 96;
/// No profile is longer, so that it fits into a message.
pub const MOST_BYTES: usize = (1 << 20) - 4096;

/// Whose accesses, through which view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The program.
    pub application: String,
    /// The process: its rank, or its place in the order of arrival.
    pub rank: u64,
    /// The fingerprint of the view.
    pub view: u64,
}

impl Key {
    /// What entries are kept by when there are too many.
    fn turn(&self) -> u64 {
        let mut hash = travel::fingerprint(self.application.as_bytes());
        for n in [self.rank, self.view] {
            hash = (hash ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        hash
    }
}

/// Bytes of a process by server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerUse {
    /// The server.
    pub server: u64,
    /// Bytes read from it.
    pub read: u64,
    /// Bytes written to it.
    pub written: u64,
    /// Bytes read from it while it was the nearest one.
    pub own_read: u64,
    /// Bytes written to it while it was the nearest one.
    pub own_written: u64,
    /// Bytes moved from and to any server while this was the nearest one.
    pub near: u64,
}

impl ServerUse {
    fn merge(&mut self, other: &ServerUse) {
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.own_read = self.own_read.saturating_add(other.own_read);
        self.own_written = self.own_written.saturating_add(other.own_written);
        self.near = self.near.saturating_add(other.near);
    }

    fn halve(&mut self) {
        self.read /= 2;
        self.written /= 2;
        self.own_read /= 2;
        self.own_written /= 2;
        self.near /= 2;
    }
}

/// Adds up what two lists say about the same server; the least numbers stay.
fn merge_servers(list: &mut Vec<ServerUse>, other: &[ServerUse]) {
    for one in other {
        match list.binary_search_by_key(&one.server, |u| u.server) {
            Ok(i) => list[i].merge(one),
            Err(i) => list.insert(i, *one),
        }
    }
    list.truncate(MOST_SERVERS);
}

/// What one process did through one view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The view, in the bytes of the file.
    pub view: View,
    /// Whether the view is only the blocks in which the real one lies, which was too long to keep.
    pub is_coarse: bool,
    /// The view as it was written, such as `(block, *) onto 4 [2]`, if it was.
    pub text: String,
    /// Processes of the application, as far as is known.
    pub processes: u64,
    /// How often counters were handed over.
    pub reports: u64,
    /// Reads.
    pub read: Tally,
    /// Writes.
    pub written: Tally,
    /// Bytes by server, ascending by number.
    pub servers: Vec<ServerUse>,
}

impl Entry {
    /// Nothing done through a view yet. A view whose description is too long is made coarse, as far as the file goes.
    pub fn new(view: &View, text: &str, file_bytes: u64) -> Entry {
        let (view, is_coarse) = travel::bounded_view(view, file_bytes);
        let text = if text.len() <= MOST_TEXT_BYTES {
            text
        } else {
            ""
        };
        Entry {
            view,
            is_coarse,
            text: text.to_owned(),
            processes: 0,
            reports: 1,
            read: Tally::default(),
            written: Tally::default(),
            servers: Vec::new(),
        }
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read.bytes.saturating_add(self.written.bytes)
    }

    /// The server that the process was nearest to while it moved most of its bytes.
    pub fn nearest(&self) -> Option<u64> {
        let near = self.servers.iter().filter(|u| u.near > 0);
        near.max_by_key(|u| (u.near, std::cmp::Reverse(u.server)))
            .map(|u| u.server)
    }

    /// Counts all bytes so far for this server as the nearest one.
    fn set_nearest(&mut self, near: Option<u64>) {
        let moved: u64 = self
            .servers
            .iter()
            .map(|u| u.read.saturating_add(u.written))
            .sum();
        for used in &mut self.servers {
            let is_near = near == Some(used.server);
            used.own_read = if is_near { used.read } else { 0 };
            used.own_written = if is_near { used.written } else { 0 };
            used.near = if is_near { moved } else { 0 };
        }
        if let Some(server) = near.filter(|_| moved > 0)
            && self.servers.iter().all(|u| u.server != server)
        {
            let near = ServerUse {
                server,
                near: moved,
                ..ServerUse::default()
            };
            merge_servers(&mut self.servers, &[near]);
        }
    }

    fn merge(&mut self, other: &Entry) {
        // Views of one fingerprint are the same but for a collision, in which any fixed choice will do.
        let mine = (self.is_coarse, travel::view_bytes(&self.view));
        let theirs = (other.is_coarse, travel::view_bytes(&other.view));
        if theirs < mine {
            self.view = other.view.clone();
            self.is_coarse = other.is_coarse;
        }
        if self.text.is_empty() || (!other.text.is_empty() && other.text < self.text) {
            self.text.clone_from(&other.text);
        }
        self.processes = self.processes.max(other.processes);
        self.reports = self.reports.saturating_add(other.reports);
        self.read.merge(&other.read);
        self.written.merge(&other.written);
        merge_servers(&mut self.servers, &other.servers);
    }
}

/// What a file's use came to in all, whatever is kept of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Reads.
    pub read: Tally,
    /// Writes.
    pub written: Tally,
    /// Bytes by server, ascending by number.
    pub servers: Vec<ServerUse>,
    /// Hand-overs.
    pub reports: u64,
}

impl Summary {
    /// Of the bytes that processes read whose nearest server is known, the part that came from it.
    pub fn near_share(&self) -> Option<f64> {
        let sum = |of: fn(&ServerUse) -> u64| -> u64 { self.servers.iter().map(of).sum() };
        let near = sum(|u| u.near);
        let own = sum(|u| u.own_read + u.own_written);
        (near > 0).then(|| own as f64 / near as f64)
    }
}

/// How a file was used.
///
/// ```
/// use advise::profile::{Entry, Profile};
/// use layout::View;
/// let mut entry = Entry::new(&View::whole_file(), "", 1 << 20);
/// entry.read.bytes = 100;
/// entry.read.sizes[7] = 1;
/// let mut profile = Profile::default();
/// profile.add("sor", 0, entry.clone());
/// profile.add("sor", 1, entry);
/// assert_eq!(profile.total().read.bytes, 200);
/// let again = Profile::load(&profile.save()).unwrap();
/// assert_eq!(again, profile);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By turn, so that the last one goes when there are too many.
    entries: BTreeMap<(u64, Key), Entry>,
    total: Summary,
}

impl Profile {
    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What a process did. The name of the application is cut if it is too long.
    pub fn add(&mut self, application: &str, rank: u64, entry: Entry) {
        let mut end = application.len().min(MOST_NAME_BYTES);
        while !application.is_char_boundary(end) {
            end -= 1;
        }
        let key = Key {
            application: application[..end].to_owned(),
            rank,
            view: travel::fingerprint(&travel::view_bytes(&entry.view)),
        };
        self.total.read.merge(&entry.read);
        self.total.written.merge(&entry.written);
        self.total.reports = self.total.reports.saturating_add(entry.reports);
        merge_servers(&mut self.total.servers, &entry.servers);
        self.insert(key, entry);
    }

    pub(super) fn insert(&mut self, key: Key, entry: Entry) {
        let at = (key.turn(), key);
        match self.entries.get_mut(&at) {
            Some(there) => there.merge(&entry),
            None => drop(self.entries.insert(at, entry)),
        }
        if self.entries.len() > MOST_ENTRIES {
            self.entries.pop_last();
        }
    }

    pub(super) fn set_total(&mut self, total: Summary) {
        self.total = total;
    }

    /// Adds what another record says. Associative and commutative.
    pub fn merge(&mut self, other: &Profile) {
        let total = &other.total;
        self.total.read.merge(&total.read);
        self.total.written.merge(&total.written);
        self.total.reports = self.total.reports.saturating_add(total.reports);
        merge_servers(&mut self.total.servers, &total.servers);
        for ((_, key), entry) in &other.entries {
            self.insert(key.clone(), entry.clone());
        }
    }

    /// This record for one process whose rank in each application, and whose nearest server, are known by now.
    pub fn of_process(&self, near: Option<u64>, mut rank: impl FnMut(&str) -> u64) -> Profile {
        let mut known = Profile::default();
        for (key, entry) in self.entries() {
            let mut entry = entry.clone();
            entry.set_nearest(near);
            known.add(&key.application, rank(&key.application), entry);
        }
        known
    }

    /// Half of everything that is counted, so that what comes next weighs more than what was.
    pub fn age(&mut self) {
        self.total.read.halve();
        self.total.written.halve();
        self.total.servers.iter_mut().for_each(ServerUse::halve);
        for entry in self.entries.values_mut() {
            entry.read.halve();
            entry.written.halve();
            entry.servers.iter_mut().for_each(ServerUse::halve);
        }
    }

    /// What it comes to in all.
    pub fn total(&self) -> &Summary {
        &self.total
    }

    /// How many entries are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entries with their keys, by application, rank and view.
    pub fn entries(&self) -> Vec<(&Key, &Entry)> {
        self.first_entries(self.entries.len())
    }

    /// Those that stay the longest.
    pub(super) fn first_entries(&self, count: usize) -> Vec<(&Key, &Entry)> {
        let entries = self.entries.iter().take(count);
        let mut list: Vec<(&Key, &Entry)> = entries.map(|((_, k), e)| (k, e)).collect();
        list.sort_unstable_by_key(|(key, _)| *key);
        list
    }

    /// Names of the applications, each once.
    pub fn applications(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .entries
            .keys()
            .map(|(_, key)| key.application.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// How many processes an application has: what it says, and at least as many as were seen.
    pub fn processes(&self, application: &str) -> u64 {
        let of = self
            .entries
            .iter()
            .filter(|((_, k), _)| k.application == application);
        of.map(|((_, key), entry)| entry.processes.max(key.rank.saturating_add(1)))
            .max()
            .unwrap_or(0)
    }

    /// The part of all bytes that is in entries: 1 unless there were too many.
    pub fn kept_share(&self) -> f64 {
        let all = self.total.read.bytes as f64 + self.total.written.bytes as f64;
        let kept: f64 = self.entries.values().map(|e| e.bytes() as f64).sum();
        if all > 0.0 {
            (kept / all).min(1.0)
        } else {
            1.0
        }
    }
}
