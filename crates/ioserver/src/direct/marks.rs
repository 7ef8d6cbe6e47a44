//! Marks: which extents clients may have stored into, for stores that write extents to a disk.
//!
//! ```text
//!  client   claim, mark, store, end            claim, mark, store ............, end
//!  server                        take, copy           take, claim seen: set again, copy
//! ```
//!
//! Invariants
//! - An extent of such a store is handed out for storing with a mark of its own in the page of the
//!   client, or for reading only.
//! - A mark is taken and its extent made dirty under the lock of the state. So a sync finds what
//!   was stored before in one of the two.
//! - Marks are taken before ends are folded, and extents made dirty after: a claim that began and ended meanwhile is in both or in neither.
//! - A mark that is taken while a claim that may store is under way is set again at once: that claim may
//!   have marked before and store later. A claim that begins later marks by itself, and the stores of one
//!   that ended are there to be copied.
//! - A mark belongs to its extent until its client has no map of the file and no claim of it is left.
//!   After that it is a bit that means nothing.
//!
//! Left to others: copying out (`store`), and when (`sync`, write-back, revocation).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::direct::MARKS;
use store::{Location, MAX_LEN, Subfile, SubfileId};
use wire::FileId;
use wire::message::direct::READ_ONLY;

use super::attached::AttachedClient;
use super::{Direct, FileMaps};
use crate::statistics::add;

/// The marks of a page that belong to no extent.
#[derive(Debug)]
pub(super) struct FreeMarks {
    /// From here on none was ever used.
    next: u32,
    end: u32,
    given_back: Vec<u32>,
}

impl FreeMarks {
    pub(super) fn new() -> FreeMarks {
        FreeMarks {
            next: 0,
            end: MARKS,
            given_back: Vec::new(),
        }
    }

    fn take(&mut self) -> Option<u32> {
        self.given_back.pop().or_else(|| {
            let mark = self.next;
            (mark < self.end).then(|| {
                self.next += 1;
                mark
            })
        })
    }
}

/// The marked extents of a file and a client.
pub(super) struct ClientMarks {
    attached: Arc<AttachedClient>,
    subfiles: HashMap<SubfileId, SubfileMarks>,
}

struct SubfileMarks {
    subfile: Arc<dyn Subfile>,
    /// By first byte: bytes, and the mark.
    extents: BTreeMap<u64, (u64, u32)>,
}

impl ClientMarks {
    fn give_back(self) {
        let mut free = self.attached.marks.lock();
        let marks = self.subfiles.into_values().flat_map(|s| s.extents);
        free.given_back.extend(marks.map(|(_, (_, mark))| mark));
    }
}

/// Extents of a subfile that are about to be handed out.
pub(super) struct HandedExtent<'a> {
    pub(super) id: SubfileId,
    pub(super) subfile: &'a Arc<dyn Subfile>,
    pub(super) location: &'a Location,
    /// Whether the client asked for it, or it lies beside.
    pub(super) is_asked: bool,
}

/// Which extents get a mark that have none.
#[derive(Clone, Copy, Debug)]
pub(super) enum NewMarks {
    /// None.
    None,
    /// Those that were asked for, and of the others as many bytes.
    Within(u64),
}

/// How many marks were taken, and how many of them set again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarkCount {
    pub(crate) taken: u64,
    pub(crate) again: u64,
}

impl FileMaps {
    /// Counts how far clients have stored, and makes dirty what they may have stored into.
    pub(super) fn collect(&self) -> MarkCount {
        let mut collected = MarkCount::default();
        let mut stored = Vec::new();
        for ClientMarks { attached, subfiles } in self.marks.values() {
            let page = &attached.page;
            let mut taken = Vec::new();
            for SubfileMarks { subfile, extents } in subfiles.values() {
                for (&start, &(len, mark)) in extents {
                    if page.has_mark(mark) && page.take_mark(mark) {
                        taken.push((subfile, start..(start + len).min(MAX_LEN), mark));
                    }
                }
            }
            // After all were taken, see above.
            let is_storing = !taken.is_empty() && page.has_writer(self.entry);
            collected.taken += taken.len() as u64;
            for (subfile, range, mark) in taken {
                if is_storing {
                    page.set_mark(mark);
                    collected.again += 1;
                }
                stored.push((subfile, range));
            }
        }
        // Now, not before: of a claim that ended since, the marks were taken, and what it stored is behind the length until its end is folded.
        self.fold();
        for (subfile, range) in stored {
            // Only a subfile that is gone refuses.
            let _ = subfile.mark_written(range);
        }
        collected
    }

    /// Gives back what belongs to clients without maps in their pages. No thread may be waiting for their claims.
    pub(super) fn free_words(&mut self) {
        self.free_marks();
        self.free_ends();
    }

    fn free_marks(&mut self) {
        let clients = &self.clients;
        let gone = self.marks.extract_if(|n, _| !clients.contains_key(n));
        gone.for_each(|(_, marks)| marks.give_back());
    }

    /// How many extents have a mark.
    pub(super) fn marked(&self) -> u64 {
        let of = |m: &ClientMarks| m.subfiles.values().map(|s| s.extents.len()).sum::<usize>();
        self.marks.values().map(|m| of(m) as u64).sum()
    }
}

impl Direct {
    /// What a client has to do before it stores into each of these extents, as
    /// [`wire::message::direct::MappedExtent::mark`] has it. Extents get marks as `new` says; those that have one
    /// keep it.
    pub(super) fn mark<'a>(
        &self,
        file: FileId,
        attached: &Arc<AttachedClient>,
        map: u64,
        new: NewMarks,
        list: impl Iterator<Item = HandedExtent<'a>>,
    ) -> Vec<u32> {
        let mut state = self.state.lock();
        let maps = state.files.get_mut(&file);
        // A client that was revoked meanwhile has a void map.
        let maps = maps.filter(|maps| maps.clients.contains_key(&attached.number));
        let Some(maps) = maps else {
            return list.map(|_| READ_ONLY).collect();
        };
        let of_client = maps
            .marks
            .entry(attached.number)
            .or_insert_with(|| ClientMarks {
                attached: Arc::clone(attached),
                subfiles: HashMap::new(),
            });
        let mut free = attached.marks.lock();
        let mut beside = match new {
            NewMarks::None => None,
            NewMarks::Within(bytes) => Some(bytes),
        };
        let mut mark_of = |handing: HandedExtent<'_>| {
            let Location { offset, len, .. } = *handing.location;
            let known = of_client.subfiles.get(&handing.id);
            let known = known.and_then(|s| s.extents.get(&offset));
            let (before, mark) = match known {
                Some(&(before, mark)) => (before, mark),
                None => {
                    let left = beside.as_mut()?;
                    if !handing.is_asked {
                        *left = left.checked_sub(len)?;
                    }
                    (0, free.take()?)
                }
            };
            if !handing.subfile.let_store(offset, map) {
                if known.is_none() {
                    free.given_back.push(mark);
                }
                return None;
            }
            let of_subfile = of_client.subfiles.entry(handing.id);
            let of_subfile = of_subfile.or_insert_with(|| SubfileMarks {
                subfile: Arc::clone(handing.subfile),
                extents: BTreeMap::new(),
            });
            let extent = (before.max(len), mark);
            of_subfile.extents.insert(offset, extent);
            Some(mark + 1)
        };
        list.map(|handing| mark_of(handing).unwrap_or(READ_ONLY))
            .collect()
    }

    /// Makes dirty what clients may have stored into a file: what they stored before this is called is
    /// in what the store writes next.
    pub(crate) fn collect(&self, file: FileId) {
        let state = self.state.lock();
        if let Some(maps) = state.files.get(&file) {
            self.count(maps.collect());
        }
    }

    /// Collects the marks of all files; whether anything may come of asking again soon.
    pub(crate) fn collect_all(&self) -> bool {
        let files: Vec<FileId> = {
            let state = self.state.lock();
            let marked = state
                .files
                .iter()
                .filter(|(_, maps)| !maps.marks.is_empty());
            marked.map(|(file, _)| *file).collect()
        };
        let mut is_busy = false;
        for file in files {
            // One by one, so that no thread waits long for the lock.
            let state = self.state.lock();
            if let Some(maps) = state.files.get(&file) {
                let collected = maps.collect();
                // A client that never ends its claim is no reason to write again and again.
                is_busy |= collected.taken > collected.again;
                self.count(collected);
            }
        }
        is_busy
    }

    pub(super) fn count(&self, collected: MarkCount) {
        add(&self.counters.marks_taken, collected.taken);
        add(&self.counters.marks_set_again, collected.again);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{Directory, DiskOptions, DiskSpec, DiskStore, Domain, Identity, Pool, PoolOptions};
    use store::{Store, UNIT};

    const ID: SubfileId = SubfileId {
        file: 1,
        generation: 1,
        index: 0,
    };

    #[test]
    fn without_marks_nothing_is_handed_out_for_storing_until_some_are_given_back() {
        let dir = std::env::temp_dir().join(format!("pario-marks-{}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let disk = DiskSpec::new(Directory::new(&dir).unwrap());
        let pool = Pool::new(PoolOptions::default());
        let store = DiskStore::new(pool, vec![disk], DiskOptions::default()).unwrap();
        let domain = Domain {
            owner: 1,
            group: 1,
            mode: 0o600,
            directory: 1,
        };
        let identity = Identity::new(ID, domain, 1);
        let subfile = store.create(&identity).unwrap();
        // Apart, so that they are extents of their own.
        for i in 0..4 {
            let start = i * 100 * UNIT;
            subfile.reserve(start..start + 1).unwrap();
        }
        subfile.stored_to(400 * UNIT).unwrap();
        let direct = Direct::new(true, std::time::Duration::from_secs(60));
        direct
            .table
            .get_or_init(|| ::direct::ServerTable::new().ok());
        let pid = u64::from(std::process::id());
        let attached =
            Arc::new(AttachedClient::new(1, pid, crate::kept::Records::default()).unwrap());
        attached.marks.lock().end = 3;
        let file = FileId(1);
        let ask = |range: std::ops::Range<u64>| {
            let (number, ..) = direct
                .register(&crate::files::FileEntry::new(file, 0, 1), &attached)
                .unwrap();
            let found = subfile.extents(range, 100, number).unwrap();
            let handing = found.iter().map(|location| HandedExtent {
                id: ID,
                subfile: &subfile,
                location,
                is_asked: true,
            });
            let new = NewMarks::Within(u64::MAX);
            let marks = direct.mark(file, &attached, number, new, handing);
            let all = std::iter::once((ID, Arc::clone(&subfile)));
            direct.note(file, &attached, super::super::Stores::default(), all);
            marks
        };
        assert_eq!(ask(0..MAX_LEN), [1, 2, 3, READ_ONLY]);
        assert_eq!(
            ask(0..MAX_LEN),
            [1, 2, 3, READ_ONLY],
            "those who have one keep it"
        );
        assert_eq!(ask(300 * UNIT..MAX_LEN), [READ_ONLY]);
        direct.end();
        let again = ask(300 * UNIT..MAX_LEN);
        assert!((1..=3).contains(&again[0]), "{again:?}");
        drop(store);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
