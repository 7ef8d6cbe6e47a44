//! What an earlier process of a disk store had in memory only: what its ledger says, and how it becomes dirty again.
//!
//! Invariants
//! - A subfile of the ledger that the disks have not was being removed: what is on record of it goes. One whose disk was declared lost goes with
//!   a warning. One that cannot be opened for another reason, or may be on a disk that is missing, fails the start, so that nothing is lost
//!   without a word.
//! - What is adopted is on record as it was until it is written back, so that a process that is killed while it adopts, or right
//!   after, leaves it to the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::store::Core;
use crate::error::{Error, Result};
use crate::identity::SubfileId;
use crate::ledger::account::Account;
use crate::ledger::entries::{ExtentEntry, StoreKind, SubfileEntry};
use crate::ledger::{Batch, Ledger, refuse};
use crate::pool::{Extent, Pool};

/// The ledger of a disk store.
#[derive(Debug)]
pub(super) struct Record {
    ledger: Ledger,
    /// The number that the next subfile has there.
    next: AtomicU64,
    /// What was found in it, until it is taken over.
    legacies: Mutex<BTreeMap<SubfileId, Legacy>>,
}

/// What an earlier process had of one subfile.
#[derive(Debug)]
pub(crate) struct Legacy {
    pub(super) entry: SubfileEntry,
    pub(super) extents: Vec<ExtentEntry>,
    pub(super) account: Account,
}

impl Record {
    /// Reads what an earlier process had, which may be nothing.
    pub(super) fn new(ledger: Ledger, pool: &Pool) -> Result<Record> {
        let next = AtomicU64::new(ledger.next_subfile()?);
        let mut extents: HashMap<u64, Vec<ExtentEntry>> = HashMap::new();
        for entry in ledger.extents()? {
            extents.entry(entry.subfile).or_default().push(entry);
        }
        let mut legacies: BTreeMap<SubfileId, Legacy> = BTreeMap::new();
        for entry in ledger.subfiles(StoreKind::Disk)? {
            let legacy = Legacy {
                extents: extents.remove(&entry.number).unwrap_or_default(),
                account: Account::adopted(ledger.clone(), StoreKind::Disk, entry.number),
                entry,
            };
            // One that was made again while the one before was being removed: the younger counts.
            if let Some(older) = legacies.insert(legacy.entry.identity.id, legacy) {
                older.discard(&ledger, pool)?;
            }
        }
        let others = ledger.subfiles(StoreKind::Memory)?;
        let others: BTreeSet<u64> = others.into_iter().map(|entry| entry.number).collect();
        if extents.keys().any(|number| !others.contains(number)) {
            return Err(refuse("has an extent of an unknown subfile"));
        }
        Ok(Record {
            ledger,
            next,
            legacies: Mutex::new(legacies),
        })
    }
}

impl Legacy {
    /// Gives up what is on record of a subfile, and its memory.
    fn discard(self, ledger: &Ledger, pool: &Pool) -> Result<()> {
        drop(self.claim(ledger, pool)?);
        Ok(())
    }

    /// Does the same, and leaves the memory unused as long as this process lives: clients of an earlier one may still store there.
    fn abandon(self, ledger: &Ledger, pool: &Pool) -> Result<()> {
        std::mem::forget(self.claim(ledger, pool)?);
        Ok(())
    }

    fn claim(self, ledger: &Ledger, pool: &Pool) -> Result<Vec<Arc<Extent>>> {
        let mut batch = Batch::new();
        let claimed = self.extents.iter().map(|entry| {
            batch.remove_extent(entry.subfile, entry.start);
            pool.claim(entry.memory)
        });
        let claimed: Vec<_> = claimed.collect::<Result<_>>()?;
        batch.remove_subfile(self.entry.number);
        ledger.write(&batch);
        Ok(claimed)
    }
}

impl Core {
    /// Where the blocks of a subfile that is opened are put on record; nowhere as long as an earlier process has some there.
    pub(super) fn account_for(&self, id: SubfileId) -> Option<Account> {
        let record = self.record.as_ref()?;
        if record.legacies.lock().contains_key(&id) {
            return None;
        }
        let number = record.next.fetch_add(1, Ordering::Relaxed);
        Some(Account::new(record.ledger.clone(), StoreKind::Disk, number))
    }

    /// What an earlier process had of a subfile, once.
    pub(super) fn take_legacy(&self, id: SubfileId) -> Option<Legacy> {
        self.record.as_ref()?.legacies.lock().remove(&id)
    }

    /// Opens all subfiles of which an earlier process had something in memory only.
    pub(super) fn adopt_all(self: &Arc<Self>) -> Result<()> {
        let Some(record) = &self.record else {
            return Ok(());
        };
        let ids: Vec<SubfileId> = record.legacies.lock().keys().copied().collect();
        for id in ids {
            match self.held(id, None) {
                Ok(_) => {}
                Err(Error::NotFound(_)) if !self.set.missing().is_empty() => {
                    let missing: Vec<String> =
                        self.set.missing().iter().map(ToString::to_string).collect();
                    let why = format!("it may be on one of these: {}", missing.join("; "));
                    return Err(Error::DiskMissing { id, why });
                }
                Err(Error::Lost { why, .. }) => {
                    if let Some(legacy) = self.take_legacy(id) {
                        let memory: u64 = legacy.extents.iter().map(|e| e.memory.len).sum();
                        tracing::warn!(%id, memory, why, "what was written and not synced is lost with its disk");
                        legacy.abandon(&record.ledger, &self.pool)?;
                    }
                }
                Err(Error::NotFound(_)) => {
                    if let Some(legacy) = self.take_legacy(id) {
                        legacy.discard(&record.ledger, &self.pool)?;
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
