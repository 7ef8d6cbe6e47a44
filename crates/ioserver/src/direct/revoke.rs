//! Taking maps back: raise the epoch, wait a little for those who copy, replace what they may store into.
//!
//! The caller of [`Files::take_back`] has closed the gate of the file and drained it. What happens
//! outside a gate ([`Files::detach`]) moves nothing unless a writer is stuck, and then closes it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::direct::Active;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use store::{Aside, SubfileId};
use wire::{ClientId, FileId};

use super::attached::AttachedClient;
use super::quarantine::{QuarantinedMemory, may_store};
use super::{Attachment, Direct, FileMaps, Mapper};
use crate::files::Files;
use crate::files::{FileEntry, LocalState};
use crate::refused::Refused;
use crate::sessions::Client;
use crate::statistics::add;

/// Between two looks at claims, at first and at most.
pub(super) const FIRST_PAUSE: Duration = Duration::from_micros(20);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(4);

/// Bytes that a client may store into, per subfile: ascending, disjoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Stores(BTreeMap<SubfileId, Vec<Range<u64>>>);

impl Stores {
    /// One range more.
    pub(super) fn insert(&mut self, id: SubfileId, range: Range<u64>) {
        let list = self.0.entry(id).or_default();
        // Those that touch it become one with it.
        let first = list.partition_point(|r| r.end < range.start);
        let end = list.partition_point(|r| r.start <= range.end);
        let start = list.get(first).filter(|_| first < end);
        let start = start.map_or(range.start, |r| r.start.min(range.start));
        let last = end.checked_sub(1).filter(|&i| i >= first);
        let stop = last.map_or(range.end, |i| list[i].end.max(range.end));
        list.splice(first..end, std::iter::once(start..stop));
    }

    pub(super) fn add(&mut self, other: Stores) {
        for (id, ranges) in other.0 {
            for range in ranges {
                self.insert(id, range);
            }
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A writer that was revoked and may still store.
pub(super) struct StuckWriter {
    attached: Arc<AttachedClient>,
    slots: Vec<usize>,
    stores: Stores,
}

/// A client with claims that are looked at.
struct WatchedMapper {
    mapper: Mapper,
    claims: Vec<Active>,
}

impl Direct {
    /// Makes all maps of a file void and waits for those who copy, then collects their marks. Writers that
    /// did not end and may store on are returned; no other client touches the file's memory any more. It is
    /// over with [`Direct::finish`].
    fn revoke(&self, file: FileId) -> Option<Vec<StuckWriter>> {
        let table = self.table()?;
        let (mappers, mut stuck, entry, epoch) = {
            let mut state = self.state.lock();
            state.uses += 1;
            let before = state.uses;
            let maps = state.files.get_mut(&file)?;
            maps.revoking += 1;
            maps.void_before = before;
            let mappers: Vec<Mapper> = maps.clients.drain().map(|(_, m)| m).collect();
            let stuck = std::mem::take(&mut maps.unsettled);
            let epoch = table.raise(maps.entry);
            (mappers, stuck, maps.entry, epoch)
        };
        if !mappers.is_empty() {
            add(&self.counters.revocations, 1);
        }
        stuck.extend(self.wait_for(mappers, entry, epoch));
        stuck.retain(|s| may_store(&s.attached, &s.slots));
        self.collect(file);
        Some(stuck)
    }

    /// A revocation is over. Writers whose memory was not replaced are left for the next revocation; if
    /// there are none, extents can be evicted again.
    fn finish(&self, file: FileId, stuck: Vec<StuckWriter>) {
        let mut state = self.state.lock();
        let Some(maps) = state.files.get_mut(&file) else {
            return;
        };
        maps.revoking -= 1;
        maps.unsettled.extend(stuck);
        if maps.revoking > 0 || !maps.unsettled.is_empty() {
            return;
        }
        self.count(maps.collect());
        if maps.clients.is_empty() {
            self.let_go(maps);
            return;
        }
        let before = maps.void_before;
        maps.subfiles.values().for_each(|s| s.unmap(before));
        maps.free_words();
    }

    /// Makes all maps void, for the end of the server.
    pub(crate) fn end(&self) {
        let files: Vec<FileId> = self.state.lock().files.keys().copied().collect();
        for file in files {
            if let Some(stuck) = self.revoke(file) {
                self.finish(file, stuck);
            }
        }
    }

    /// Has the maps given up of the file that was mapped longest ago, so that its extents can be evicted;
    /// whether there was one.
    pub(crate) fn reclaim(&self) -> bool {
        let coldest = {
            let state = self.state.lock();
            let mapped = state.files.iter();
            let mapped = mapped.filter(|(_, maps)| {
                // Memory that a stuck writer stores into is not to be had this way.
                let mut stuck = maps.unsettled.iter();
                !maps.subfiles.is_empty()
                    && maps.revoking == 0
                    && !stuck.any(|s| may_store(&s.attached, &s.slots))
            });
            mapped
                .min_by_key(|(_, maps)| maps.used_at)
                .map(|(&file, _)| file)
        };
        let Some(file) = coldest else {
            return false;
        };
        if let Some(stuck) = self.revoke(file) {
            self.finish(file, stuck);
        }
        true
    }

    /// Has the maps given up of the file with the most space ahead of what is stored, which goes back; whether there was
    /// one.
    pub(crate) fn reclaim_ahead(&self) -> bool {
        let most = {
            let state = self.state.lock();
            let idle = state.files.iter().filter(|(_, maps)| {
                let mut stuck = maps.unsettled.iter();
                maps.revoking == 0 && !stuck.any(|s| may_store(&s.attached, &s.slots))
            });
            let most = idle
                .map(|(&file, maps)| (self.bytes_ahead(maps), file))
                .max();
            most.filter(|(bytes, _)| *bytes >= store::UNIT)
        };
        let Some((_, file)) = most else {
            return false;
        };
        if let Some(stuck) = self.revoke(file) {
            self.finish(file, stuck);
        }
        true
    }

    /// The number of the last map of a file that a client has.
    fn last_map(&self, file: FileId, client: &AttachedClient) -> Option<u64> {
        let state = self.state.lock();
        let mapper = state.files.get(&file)?.clients.get(&client.number)?;
        Some(mapper.last_map)
    }

    /// Gives back space ahead of what is stored of a file; its maps are taken back for that.
    pub(crate) fn give_back_ahead(&self, file: FileId) {
        let is_ahead = {
            let state = self.state.lock();
            let maps = state.files.get(&file);
            maps.is_some_and(|maps| self.bytes_ahead(maps) >= store::UNIT)
        };
        if is_ahead && let Some(stuck) = self.revoke(file) {
            self.finish(file, stuck);
        }
    }

    /// Space of a file ahead of what is stored.
    fn bytes_ahead(&self, maps: &FileMaps) -> u64 {
        let of = maps.subfiles.iter();
        of.map(|(id, s)| self.windows.bytes_ahead(id, s.len()))
            .sum()
    }

    /// Takes back the maps of one client, whose claims alone are looked at. Nothing may be moved afterwards. Maps of
    /// others stay good if the client copies nothing any more: `is_over` says that it left in order.
    fn revoke_client(&self, file: FileId, client: &AttachedClient, is_over: bool) -> bool {
        let Some(table) = self.table() else {
            return false;
        };
        let (mapper, entry, epoch) = {
            let mut state = self.state.lock();
            let Some(maps) = state.files.get_mut(&file) else {
                return false;
            };
            let Some(mapper) = maps.clients.remove(&client.number) else {
                return false;
            };
            maps.revoking += 1;
            let is_over = is_over || client.is_dead();
            let epoch = (!is_over).then(|| table.raise(maps.entry));
            (mapper, maps.entry, epoch)
        };
        let stuck = match epoch {
            Some(epoch) => {
                add(&self.counters.revocations, 1);
                self.wait_for(vec![mapper], entry, epoch)
            }
            None => Vec::new(),
        };
        let is_stuck = !stuck.is_empty();
        self.finish(file, stuck);
        is_stuck
    }

    /// Waits for claims that were made before `epoch`, then revokes them; the writers among these.
    fn wait_for(&self, mappers: Vec<Mapper>, entry: u32, epoch: u64) -> Vec<StuckWriter> {
        let mut watched: Vec<WatchedMapper> = mappers
            .into_iter()
            .map(|mapper| {
                let claims = mapper.attached.page.active(entry, epoch).collect();
                WatchedMapper { mapper, claims }
            })
            .collect();
        watched.retain(|w| !w.claims.is_empty());
        let found: usize = watched.iter().map(|w| w.claims.len()).sum();
        add(&self.counters.claims_waited, found as u64);
        let deadline = Instant::now() + self.claim_wait;
        let mut pause = FIRST_PAUSE;
        while !watched.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            wait_for_death(&watched, pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
            watched.retain_mut(|w| {
                let page = &w.mapper.attached.page;
                w.claims.retain(|claim| page.is_active(claim));
                !w.claims.is_empty() && !w.mapper.attached.is_dead()
            });
        }
        let mut stuck = Vec::new();
        for WatchedMapper { mapper, claims } in watched {
            let page = &mapper.attached.page;
            let revoked: Vec<Active> = claims.into_iter().filter(|c| page.revoke(c)).collect();
            add(&self.counters.claims_revoked, revoked.len() as u64);
            let writers = revoked.iter().filter(|c| c.writes());
            let slots: Vec<usize> = writers.map(Active::slot).collect();
            if !slots.is_empty() && !mapper.stores.is_empty() {
                stuck.push(StuckWriter {
                    attached: mapper.attached,
                    slots,
                    stores: mapper.stores,
                });
            }
        }
        stuck
    }
}

fn wait_for_death(watched: &[WatchedMapper], pause: Duration) {
    poll_for_death(watched.iter().map(|w| w.mapper.attached.process()), pause);
}

/// Waits until a process dies or the time is over. Nothing tells that a claim has ended.
pub(super) fn poll_for_death<'a>(processes: impl Iterator<Item = BorrowedFd<'a>>, pause: Duration) {
    let mut fds: Vec<PollFd<'_>> = processes
        .map(|process| PollFd::from_borrowed_fd(process, PollFlags::IN))
        .collect();
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(pause.subsec_nanos()),
    };
    let _ = poll(&mut fds, Some(&pause));
}

impl Direct {
    /// Waits for those who copy from or to a file at this moment, after its word says that none may begin; how
    /// many there were, and whether one did not end.
    fn wait_for_claims(&self, file: FileId) -> (u64, bool) {
        let (mappers, entry) = {
            let state = self.state.lock();
            let Some(maps) = state.files.get(&file) else {
                return (0, false);
            };
            let mappers: Vec<Arc<AttachedClient>> = maps
                .clients
                .values()
                .map(|mapper| Arc::clone(&mapper.attached))
                .collect();
            (mappers, maps.entry)
        };
        let mut watched: Vec<(Arc<AttachedClient>, Vec<Active>)> = mappers
            .into_iter()
            .map(|attached| {
                let claims = attached.page.claims(entry).collect();
                (attached, claims)
            })
            .collect();
        let found: usize = watched.iter().map(|(_, claims)| claims.len()).sum();
        add(&self.counters.claims_waited, found as u64);
        let deadline = Instant::now() + self.claim_wait;
        let mut pause = FIRST_PAUSE;
        loop {
            watched.retain_mut(|(attached, claims)| {
                claims.retain(|claim| attached.page.is_active(claim));
                !claims.is_empty() && !attached.is_dead()
            });
            if watched.is_empty() {
                return (found as u64, false);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return (found as u64, true);
            }
            poll_for_death(watched.iter().map(|(a, _)| a.process()), pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl Files {
    /// Keeps clients from copying by themselves what they may not after the word of a file has changed; returns when
    /// none does, with how many did. Maps stay good, unless a client does not end.
    pub(crate) fn stop_claims(&self, entry: &FileEntry) -> Result<u64, Refused> {
        self.direct.show(entry);
        let file = entry.id();
        let (found, is_stuck) = self.direct.wait_for_claims(file);
        if is_stuck {
            entry.alone(&self.hurry(), || self.take_back(file, |_| u64::MAX))?;
        }
        self.direct.collect(file);
        Ok(found)
    }

    /// Takes back all maps of a file whose gate is closed: when this returns no client stores into it by
    /// itself. Bytes of a subfile from `keep` on are not needed any more.
    pub(crate) fn take_back(
        &self,
        file: FileId,
        keep: impl Fn(SubfileId) -> u64,
    ) -> Result<(), Refused> {
        let direct = &self.direct;
        direct.sweep();
        let Some(stuck) = direct.revoke(file) else {
            return Ok(());
        };
        if stuck.is_empty() {
            direct.finish(file, stuck);
            return Ok(());
        }
        // Together: what one of them may store into, another may too.
        let mut stores = Stores::default();
        stuck.iter().for_each(|s| stores.add(s.stores.clone()));
        let mut aside = Aside::new();
        let replaced = stores.0.iter().try_for_each(|(&id, ranges)| {
            let subfile = match self.storage.stored.open(id) {
                Ok(subfile) => subfile,
                Err(store::Error::NotFound(_)) => return Ok(()),
                Err(e) => return Err(e),
            };
            let mut ranges = ranges.iter();
            ranges.try_for_each(|r| subfile.set_aside(r.clone(), keep(id), &mut aside))
        });
        add(&direct.counters.replaced_bytes, aside.copied_bytes());
        let writers = stuck
            .iter()
            .map(|s| (Arc::clone(&s.attached), s.slots.clone()))
            .collect();
        direct.put_aside(QuarantinedMemory::new(writers, aside));
        direct.finish(file, replaced.as_ref().map_or(stuck, |()| Vec::new()));
        if let Err(error) = replaced {
            let mut refused = Refused::from(error);
            refused.refusal.text = format!(
                "a client that does not move may still store into {file}, and its memory cannot be replaced: {}",
                refused.refusal.text
            );
            return Err(refused);
        }
        Ok(())
    }

    /// Makes the maps of a file void, if there are any, because its bytes are elsewhere now.
    pub(crate) fn void_maps(&self, entry: &FileEntry) -> Result<(), Refused> {
        let file = entry.id();
        if !self.direct.has_maps(file) {
            return Ok(());
        }
        entry.alone(&self.hurry(), || self.take_back(file, |_| u64::MAX))
    }

    /// Moves the bytes of a file to segments of its present domain, as far as they are in others.
    pub(crate) fn move_domain(&self, entry: &FileEntry, known: &LocalState) -> Result<(), Refused> {
        let domain = known.domain();
        let mut moving = Vec::new();
        for own in &known.own {
            let subfile = known.find(own, &self.storage.stored)?;
            moving.extend(subfile.filter(|s| s.identity().domain != domain));
        }
        if moving.is_empty() {
            return Ok(());
        }
        entry.alone(&self.hurry(), || {
            self.take_back(entry.id(), |_| u64::MAX)?;
            for subfile in &moving {
                self.storage.with_room(|| subfile.set_domain(domain))?;
            }
            Ok(())
        })
    }

    /// Asks whom a file belongs to now, and keeps its bytes accordingly.
    pub(crate) fn redomain(&self, file: FileId) -> Result<(), Refused> {
        let Some(entry) = self.get(file) else {
            // The first access learns it then.
            return Ok(());
        };
        let known = self.refresh_now(&entry)?;
        self.move_domain(&entry, &known)
    }

    /// Ends the sharing with a client: nothing of it is stored when this returns.
    pub(crate) fn detach(&self, client: &Client) -> Result<(), Refused> {
        let direct = &self.direct;
        // The second caller waits for what the first does.
        let _one = client.detaching.lock();
        let Some(attached) = direct.close(client) else {
            return Ok(());
        };
        let said = &client.said_goodbye;
        let is_over = said.load(std::sync::atomic::Ordering::SeqCst);
        let mut result = Ok(());
        for file in direct.files_of(&attached) {
            if direct.revoke_client(file, &attached, is_over) {
                let entry = self.entry(file);
                let replaced = entry.alone(&self.hurry(), || self.take_back(file, |_| u64::MAX));
                result = result.and(replaced);
            }
        }
        direct.sweep();
        result
    }

    /// A client needs its maps of a file no more, up to the one with this number: one that was made later is for another of
    /// its handles.
    pub(crate) fn close_maps(&self, client: &Client, file: FileId, number: u64) {
        let attached = match &*client.attached.lock() {
            Attachment::Open(attached, _) => Arc::clone(attached),
            _ => return,
        };
        // None is made between the look and the taking back.
        let _one = client.mapping.lock();
        if self.direct.last_map(file, &attached) == Some(number) {
            self.direct.revoke_client(file, &attached, true);
        }
    }

    /// Refuses a client from now on; returns when nothing of it runs or stores here.
    pub(crate) fn fence(&self, client: ClientId) -> Result<(), Refused> {
        let found = self.sessions.find(client);
        self.sessions.fence(client)?;
        found.map_or(Ok(()), |client| self.detach(&client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SubfileId = SubfileId {
        file: 1,
        generation: 1,
        index: 0,
    };

    #[test]
    fn ranges_that_touch_become_one() {
        let mut stores = Stores::default();
        for range in [10..20, 30..40, 50..60, 20..25, 0..5, 38..52, 0..1] {
            stores.insert(ID, range);
        }
        assert_eq!(stores.0[&ID], [0..5, 10..25, 30..60]);
        stores.insert(ID, 5..100);
        assert!(stores.0[&ID].iter().eq(std::iter::once(&(0..100))));
    }
}
