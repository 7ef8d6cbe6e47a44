//! Space that clients have taken for files before they write them.
//!
//! It is bound to the registered view that it was asked for with, so it goes back when the handle is closed, when the client has
//! gone, and when a fence has thrown it out. What of it was written to stays, as part of the file.
//!
//! Invariant: a subfile keeps as much ahead as the one asks for who asks for most. Left to others: how a store keeps it
//! ([`Subfile::keep_ahead`]), and who may ask (`ops::keep_ahead`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use store::{Subfile, SubfileId};

/// How far each of those goes who take space of a subfile.
#[derive(Default)]
struct Ends(Mutex<HashMap<u64, u64>>);

impl Ends {
    fn furthest(ends: &HashMap<u64, u64>) -> u64 {
        ends.values().copied().max().unwrap_or(0)
    }
}

/// Who takes space, by subfile. Shared by all who do.
#[derive(Default)]
pub(crate) struct SpaceTakers(Mutex<HashMap<SubfileId, Arc<Ends>>>);

impl SpaceTakers {
    fn of(&self, id: SubfileId) -> Arc<Ends> {
        Arc::clone(self.0.lock().entry(id).or_default())
    }

    fn forget_unused(&self, id: SubfileId) {
        let mut all = self.0.lock();
        let is_unused = |ends: &Arc<Ends>| Arc::strong_count(ends) == 1 && ends.0.lock().is_empty();
        if all.get(&id).is_some_and(is_unused) {
            all.remove(&id);
        }
    }
}

/// Space that one view has taken. Dropped, it goes back as far as nobody else has taken it.
pub(crate) struct TakenSpace {
    takers: Arc<SpaceTakers>,
    number: u64,
    parts: Vec<(SubfileId, Arc<dyn Subfile>)>,
}

impl TakenSpace {
    /// Nothing yet.
    pub(crate) fn new(takers: &Arc<SpaceTakers>) -> TakenSpace {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        TakenSpace {
            takers: Arc::clone(takers),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            parts: Vec::new(),
        }
    }

    /// Takes all of a subfile below `end`.
    pub(crate) fn take(
        &mut self,
        id: SubfileId,
        subfile: &Arc<dyn Subfile>,
        end: u64,
    ) -> store::Result<()> {
        let ends = self.takers.of(id);
        let mut of_all = ends.0.lock();
        let taken = subfile.keep_ahead(end.max(Ends::furthest(&of_all)));
        if taken.is_ok() {
            of_all.insert(self.number, end);
            self.parts.push((id, Arc::clone(subfile)));
        }
        drop(of_all);
        drop(ends);
        self.takers.forget_unused(id);
        taken
    }
}

impl Drop for TakenSpace {
    fn drop(&mut self) {
        for (id, subfile) in self.parts.drain(..) {
            let ends = self.takers.of(id);
            let mut of_all = ends.0.lock();
            of_all.remove(&self.number);
            // One that was removed has nothing to give back.
            let _ = subfile.keep_ahead(Ends::furthest(&of_all));
            drop(of_all);
            drop(ends);
            self.takers.forget_unused(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use store::{Domain, Identity, MemoryStore, Pool, PoolOptions, Store};

    use super::*;

    #[test]
    fn space_of_the_one_who_asks_for_most_stays_until_all_have_gone() {
        let pool = Pool::new(PoolOptions::for_limit(16 << 20));
        let store = MemoryStore::new(pool);
        let id = SubfileId {
            file: 1,
            generation: 0,
            index: 0,
        };
        let identity = Identity::new(id, Domain::default(), 1);
        let subfile = store.create(&identity).unwrap();
        let takers = Arc::<SpaceTakers>::default();
        let mut first = TakenSpace::new(&takers);
        first.take(id, &subfile, 2 << 20).unwrap();
        let mut second = TakenSpace::new(&takers);
        second.take(id, &subfile, 6 << 20).unwrap();
        assert_eq!(subfile.allocated().unwrap(), 6 << 20);
        // More than there is changes nothing.
        let mut third = TakenSpace::new(&takers);
        third.take(id, &subfile, 64 << 20).unwrap_err();
        drop(third);
        drop(first);
        assert_eq!(subfile.allocated().unwrap(), 6 << 20);
        let mut first = TakenSpace::new(&takers);
        first.take(id, &subfile, 2 << 20).unwrap();
        drop(second);
        assert_eq!(subfile.allocated().unwrap(), 2 << 20);
        drop(first);
        assert_eq!(subfile.allocated().unwrap(), 0);
        assert!(takers.0.lock().is_empty());
    }
}
