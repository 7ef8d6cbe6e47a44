//! Profiles of files: what clients and I/O servers hand over, merged and made durable.
//!
//! ```text
//!  client     PutProfile  -> rank, nearest server -> merged per file -> durable a moment later, many files at once
//!  I/O server ReportUse   -> kept aside per client until that client is gone, or records by itself
//! ```
//!
//! Invariants
//! - What was handed over shows in every answer at once; it is durable after [`SETTLE`], at the end of this process,
//!   and when much of it waits. A crash loses what was counted since, and nothing else.
//! - Clients that record are believed; what servers saw of them is dropped, so that nothing counts twice.
//!
//! Left to others: what a profile means (`advise`), what follows from it (`auto_layout`).

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use advise::profile::Profile;
use parking_lot::{Mutex, MutexGuard};
use wire::message::Bytes;
use wire::message::profile::*;
use wire::{ClientId, FileId, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session};

/// How long what was handed over waits for more.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);
/// So many files with something new are made durable at once.
const MOST_WAITING: usize = 256;
/// Files of clients that do not record, in all.
const MOST_ASIDE: usize = 1024;
/// Servers have told of a client by then.
const LINGER: Duration = Duration::from_secs(2);
/// Clients that are known to record by themselves.
const MOST_RECORDING: usize = 1 << 14;

#[derive(Debug, Default)]
struct Table {
    /// Not durable yet.
    waiting: HashMap<FileId, Profile>,
    is_scheduled: bool,
    /// Ranks of clients without one, by application: the order of arrival.
    arrivals: HashMap<String, BTreeMap<u64, ClientId>>,
    /// Clients that record by themselves, or did: servers tell of views after their client is gone. At most
    /// [`MOST_RECORDING`], the latest; a living one that is dropped for others comes back with what it hands over next.
    recording: BTreeSet<ClientId>,
    /// What servers saw of others.
    aside: HashMap<(ClientId, FileId), Profile>,
    /// Others that are gone and keep their rank for [`LINGER`], as all servers have to count them under the same.
    departed: VecDeque<(Instant, ClientId)>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Profiles(Mutex<Table>);

impl Profiles {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

impl Table {
    /// The rank of a client in an application: the one it has, or the least that no living client has.
    fn rank(&mut self, application: &str, client: ClientId) -> u64 {
        let ranks = self.arrivals.entry(application.to_owned()).or_default();
        if let Some((rank, _)) = ranks.iter().find(|(_, c)| **c == client) {
            return *rank;
        }
        let rank = (0..).zip(ranks.keys()).find(|(i, rank)| i != *rank);
        let rank = rank.map_or(ranks.len() as u64, |(i, _)| i);
        ranks.insert(rank, client);
        rank
    }

    /// Ranks of clients that were gone long before `now` can be given again.
    fn forget_departed(&mut self, now: Instant) {
        while let Some((since, client)) = self.departed.front().copied()
            && now.duration_since(since) > LINGER
        {
            self.departed.pop_front();
            self.free_rank(client);
        }
    }

    fn free_rank(&mut self, client: ClientId) {
        for ranks in self.arrivals.values_mut() {
            ranks.retain(|_, c| *c != client);
        }
        self.arrivals.retain(|_, ranks| !ranks.is_empty());
    }

    fn add(&mut self, file: FileId, profile: &Profile) {
        self.waiting.entry(file).or_default().merge(profile);
    }
}

fn load(profile: &Bytes) -> Result<Profile, Refused> {
    Profile::load(&profile.0)
        .map_err(|e| Refused::new(Status::InvalidArgument, format!("profile: {e}")))
}

impl Manager {
    pub(crate) fn put_profile(&self, session: &mut Session, r: PutProfile) -> Result<(), Refused> {
        let client = session.client()?;
        let given = load(&r.profile)?;
        let file = self
            .change(session, move |b, caller| b.opened(caller, r.handle))?
            .attributes
            .file;
        let near = self.clients.buddy(client).map(|server| server.0);
        let mut table = self.profiles.lock();
        table.recording.insert(client);
        if table.recording.len() > MOST_RECORDING {
            table.recording.pop_first();
        }
        table.aside.retain(|(c, _), _| *c != client);
        let profile = given.of_process(near, |application| match r.rank {
            Some(rank) => rank,
            None => table.rank(application, client),
        });
        table.add(file, &profile);
        drop(table);
        self.schedule_profiles();
        Ok(())
    }

    pub(crate) fn report_use(&self, session: &mut Session, r: ReportUse) -> Result<(), Refused> {
        session.demand_server()?;
        let mut table = self.profiles.lock();
        let now = Instant::now();
        table.forget_departed(now);
        for seen in &r.seen {
            if table.recording.contains(&seen.client) {
                continue;
            }
            let profile = load(&seen.profile)?;
            let near = self.clients.buddy(seen.client).map(|server| server.0);
            let profile = profile.of_process(near, |name| table.rank(name, seen.client));
            let is_gone = !self.clients.has(seen.client);
            if is_gone && table.departed.iter().all(|(_, c)| *c != seen.client) {
                table.departed.push_back((now, seen.client));
            }
            if is_gone || table.aside.len() >= MOST_ASIDE {
                table.add(seen.file, &profile);
                continue;
            }
            let aside = table.aside.entry((seen.client, seen.file));
            aside.or_default().merge(&profile);
        }
        drop(table);
        self.schedule_profiles();
        Ok(())
    }

    /// A client is gone: what servers saw of it counts, unless it has recorded by itself.
    pub(crate) fn profile_client_gone(&self, client: ClientId) {
        let mut table = self.profiles.lock();
        let now = Instant::now();
        table.forget_departed(now);
        match table.recording.contains(&client) {
            true => table.free_rank(client),
            false => table.departed.push_back((now, client)),
        }
        let files: Vec<FileId> = table
            .aside
            .keys()
            .filter(|(c, _)| *c == client)
            .map(|(_, file)| *file)
            .collect();
        for file in files {
            if let Some(profile) = table.aside.remove(&(client, file)) {
                table.add(file, &profile);
            }
        }
        drop(table);
        self.schedule_profiles();
    }

    /// Sees to it that what waits becomes durable.
    fn schedule_profiles(&self) {
        let mut table = self.profiles.lock();
        if table.waiting.is_empty() || table.is_scheduled && table.waiting.len() < MOST_WAITING {
            return;
        }
        let wait = match table.waiting.len() < MOST_WAITING {
            true => SETTLE,
            false => Duration::ZERO,
        };
        table.is_scheduled = true;
        drop(table);
        let this = self.this();
        self.timer.after(wait, move || {
            if let Some(manager) = this.upgrade() {
                manager.keep_profiles();
            }
        });
    }

    /// Makes durable what waits, and lets files be judged that have something new.
    pub(crate) fn keep_profiles(&self) {
        let waiting = {
            let mut table = self.profiles.lock();
            table.is_scheduled = false;
            std::mem::take(&mut table.waiting)
        };
        if waiting.is_empty() {
            return;
        }
        let files: Vec<FileId> = waiting.keys().copied().collect();
        // A store that failed has told the clients that wait; these are statistics.
        let _ = self.committer.run(move |b| {
            for (file, profile) in &waiting {
                b.merge_profile(*file, profile)?;
            }
            Ok(())
        });
        self.judge_layouts(&files);
    }

    pub(crate) fn get_profile(
        &self,
        session: &mut Session,
        r: GetProfile,
    ) -> Result<ProfileIs, Refused> {
        let snapshot = self.read(session)?;
        let (file, mut kept) = snapshot.profile(&session.credentials, &r.path)?;
        if let Some(waiting) = self.profiles.lock().waiting.get(&file) {
            kept.profile.merge(waiting);
        }
        let profile = match kept.profile.is_empty() {
            true => Vec::new(),
            false => kept.profile.save(),
        };
        Ok(ProfileIs {
            file,
            profile: Bytes(profile),
            auto_layout: self.auto_layout(file).to_string(),
            moves: kept.auto.moves,
            suggestion: kept.auto.suggestion,
            why: kept.auto.why,
        })
    }

    pub(crate) fn set_profile(&self, session: &mut Session, r: SetProfile) -> Result<(), Refused> {
        let profile = match r.change {
            ProfileChange::Clear => Profile::default(),
            _ => load(&r.profile)?,
        };
        let change = r.change;
        let file = self.change_once(session, move |b, caller| {
            b.set_profile(caller, &r.path, change, &profile)
        })?;
        if change != ProfileChange::Merge {
            self.profiles.lock().waiting.remove(&file);
        }
        if change != ProfileChange::Clear {
            self.judge_layouts(&[file]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_arrival_and_are_given_again_when_their_client_is_gone() {
        let mut table = Table::default();
        let clients: Vec<ClientId> = (10..14).map(ClientId).collect();
        for (i, client) in clients.iter().enumerate() {
            assert_eq!(table.rank("sor", *client), i as u64);
            assert_eq!(table.rank("sor", *client), i as u64, "the same again");
        }
        assert_eq!(table.rank("other", ClientId(99)), 0);
        table.arrivals.get_mut("sor").unwrap().remove(&1);
        assert_eq!(table.rank("sor", ClientId(50)), 1);
        assert_eq!(table.rank("sor", ClientId(51)), 4);
    }

    #[test]
    fn a_client_that_is_gone_keeps_its_rank_for_a_while() {
        let mut table = Table::default();
        let gone = Instant::now();
        assert_eq!(table.rank("unnamed", ClientId(7)), 0);
        table.departed.push_back((gone, ClientId(7)));
        table.forget_departed(gone + LINGER);
        assert_eq!(table.rank("unnamed", ClientId(7)), 0);
        assert_eq!(table.rank("unnamed", ClientId(8)), 1);
        table.forget_departed(gone + 2 * LINGER);
        assert_eq!(table.rank("unnamed", ClientId(9)), 0);
        assert!(table.departed.is_empty());
    }
}
