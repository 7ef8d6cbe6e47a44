//! What outlives the process of this server: memory with its keeper, and the ledger that says what is in it.
//!
//! ```text
//!   open        keeper reached or started -> ledger of the process before, or a new one
//!   adopt       descriptors -> pool -> store -> clients of the process before are settled -> as if it had never been away
//!   any doubt   nothing is adopted: a new memory life begins, and clients hear of the loss by the verifier
//!   end         in order: the keeper ends, and the memory with it
//! ```
//!
//! Kinds of the ledger from 64 on are this crate's; keys are big endian, values little endian:
//!
//! | kind | key | value |
//! |---|---|---|
//! | 64 start | | incarnation of the last start that served with this memory (8) |
//! | 65 applied truncate | file (8) | epoch (8) |
//! | 66 entry of the control table | entry (4) | file (8) |
//! | 67 end word | page (8), word (4) | file (8), generation (8), index (4), granted (8) |
//! | 68 starts in which a sync of the disks failed | | count (8) |
//! | 69 life that a start handed on which had brought everything to its disks | | life (8) |
//! | 70 adoptions that began and did not end | | count (8) |
//!
//! Invariants
//! - A page, the process of its client and the table are with the keeper before a client gets them.
//! - A word is in the ledger before its client gets it, and leaves it after it was folded.
//! - An adoption that dies in the middle is done again from the beginning; after two of them the memory is given up. One that is refused
//!   in order, because of a disk that is missing, is none of them.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use control::crash::crash_point;
use keeper::{Keeper, KeeperOptions, KeptDescriptor};
use store::ledger::{Batch, LEDGER_NAME, Ledger};
use store::{DiskStore, Keeping, MemoryStore, Pool, PoolOptions, Store, SubfileId};
use wire::FileId;

use crate::direct::{FormerClients, QuarantinedMemory};

const START: u8 = 64;
const APPLIED: u8 = 65;
const ENTRY: u8 = 66;
const WORD: u8 = 67;
const FAILED_SYNCS: u8 = 68;
const HANDED_ON: u8 = 69;
const ATTEMPTS: u8 = 70;

/// Adoptions that may die in the middle before the memory is given up.
const MOST_ATTEMPTS: u64 = 2;

/// The name of the control table at the keeper.
const TABLE: &str = "table";
/// What names of pages and processes begin with.
const PAGE: &str = "page-";
const PROCESS: &str = "process-";
const SEGMENT: &str = "segment-";

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// An end word of a page of the process before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormerWord {
    pub(crate) page: u64,
    pub(crate) word: u32,
    pub(crate) subfile: SubfileId,
    pub(crate) granted: u64,
}

impl FormerWord {
    fn key(page: u64, word: u32) -> [u8; 12] {
        let mut key = [0; 12];
        key[..8].copy_from_slice(&page.to_be_bytes());
        key[8..].copy_from_slice(&word.to_be_bytes());
        key
    }

    fn value(&self) -> [u8; 28] {
        let mut value = [0; 28];
        value[..8].copy_from_slice(&self.subfile.file.to_le_bytes());
        value[8..16].copy_from_slice(&self.subfile.generation.to_le_bytes());
        value[16..20].copy_from_slice(&self.subfile.index.to_le_bytes());
        value[20..].copy_from_slice(&self.granted.to_le_bytes());
        value
    }

    fn read(key: &[u8], value: &[u8]) -> Option<FormerWord> {
        let (page, word) = key.split_at_checked(8)?;
        let (file, rest) = value.split_at_checked(8)?;
        let (generation, rest) = rest.split_at_checked(8)?;
        let (index, granted) = rest.split_at_checked(4)?;
        Some(FormerWord {
            page: u64::from_be_bytes(page.try_into().ok()?),
            word: u32::from_be_bytes(word.try_into().ok()?),
            subfile: SubfileId {
                file: number(file)?,
                generation: number(generation)?,
                index: u32::from_le_bytes(index.try_into().ok()?),
            },
            granted: number(granted)?,
        })
    }
}

/// The records of this crate in the ledger; of a server without one they go nowhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(Option<Ledger>);

impl Records {
    pub(crate) fn of(ledger: Ledger) -> Records {
        Records(Some(ledger))
    }

    fn change(&self, fill: impl FnOnce(&mut Batch)) {
        if let Some(ledger) = &self.0 {
            let mut batch = Batch::new();
            fill(&mut batch);
            ledger.write(&batch);
        }
    }

    /// Truncates that were applied to the memory.
    pub(crate) fn applied(&self) -> Vec<(FileId, u64)> {
        let found = self.0.as_ref().map(|ledger| ledger.entries(APPLIED));
        let read = |(key, value): (Vec<u8>, Vec<u8>)| {
            let file = u64::from_be_bytes(key.try_into().ok()?);
            Some((FileId(file), number(&value)?))
        };
        found
            .unwrap_or_default()
            .into_iter()
            .filter_map(read)
            .collect()
    }

    pub(crate) fn applies(&self, file: FileId, epoch: u64) {
        self.change(|batch| batch.set(APPLIED, &file.0.to_be_bytes(), &epoch.to_le_bytes()));
    }

    pub(crate) fn applied_no_more(&self, file: FileId) {
        self.change(|batch| batch.remove(APPLIED, &file.0.to_be_bytes()));
    }

    /// In how many starts with this memory a sync of the disks behind it has failed.
    pub(crate) fn failed_syncs(&self) -> u64 {
        let found = self
            .0
            .as_ref()
            .and_then(|ledger| ledger.get(FAILED_SYNCS, &[]));
        found.and_then(|value| number(&value)).unwrap_or(0)
    }

    pub(crate) fn syncs_failed(&self, starts: u64) {
        self.change(|batch| batch.set(FAILED_SYNCS, &[], &starts.to_le_bytes()));
    }

    /// An entry of the control table belongs to a file.
    pub(crate) fn takes_entry(&self, entry: u32, file: FileId) {
        self.change(|batch| batch.set(ENTRY, &entry.to_be_bytes(), &file.0.to_le_bytes()));
    }

    pub(crate) fn gives_entry(&self, entry: u32) {
        self.change(|batch| batch.remove(ENTRY, &entry.to_be_bytes()));
    }

    /// Words belong to subfiles, as far as extents were granted.
    pub(crate) fn takes_words(&self, words: &[FormerWord]) {
        if words.is_empty() {
            return;
        }
        self.change(|batch| {
            for word in words {
                batch.set(WORD, &FormerWord::key(word.page, word.word), &word.value());
            }
        });
    }

    pub(crate) fn gives_words(&self, page: u64, words: &[u32]) {
        if words.is_empty() {
            return;
        }
        self.change(|batch| {
            for word in words {
                batch.remove(WORD, &FormerWord::key(page, *word));
            }
        });
    }

    /// Has the keeper keep the table before a client gets it.
    pub(crate) fn keep_table(&self, table: &::direct::ServerTable) -> std::io::Result<()> {
        match &self.0 {
            Some(ledger) => {
                table.set_kept();
                ledger.keeping().keep(TABLE, table.file())
            }
            None => Ok(()),
        }
    }

    /// Has it keep the page of a client and the descriptor of its process.
    pub(crate) fn keep_client(
        &self,
        number: u64,
        page: std::os::fd::BorrowedFd<'_>,
        process: std::os::fd::BorrowedFd<'_>,
    ) -> std::io::Result<()> {
        let Some(ledger) = &self.0 else {
            return Ok(());
        };
        ledger
            .keeping()
            .keep(&format!("{PROCESS}{number}"), process)?;
        ledger.keeping().keep(&format!("{PAGE}{number}"), page)
    }

    pub(crate) fn forget_client(&self, number: u64) {
        if let Some(ledger) = &self.0 {
            ledger.keeping().forget(&format!("{PAGE}{number}"));
            ledger.keeping().forget(&format!("{PROCESS}{number}"));
        }
    }
}

/// A page of the process before, with the process of its client.
pub(crate) struct FormerPage {
    pub(crate) number: u64,
    pub(crate) page: OwnedFd,
    pub(crate) process: OwnedFd,
}

/// What the process before has left.
#[derive(Default)]
struct FormerLife {
    segments: Vec<(u64, OwnedFd)>,
    table: Option<OwnedFd>,
    pages: Vec<FormerPage>,
}

impl FormerLife {
    /// By their names; the ledger apart.
    fn of(found: Vec<KeptDescriptor>) -> Result<(FormerLife, Option<OwnedFd>), String> {
        let mut life = FormerLife::default();
        let (mut pages, mut processes) = (Vec::new(), std::collections::HashMap::new());
        let mut ledger = None;
        for KeptDescriptor { name, descriptor } in found {
            let numbered = |prefix: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
            if name == LEDGER_NAME {
                ledger = Some(descriptor);
            } else if name == TABLE {
                life.table = Some(descriptor);
            } else if let Some(id) = numbered(SEGMENT) {
                life.segments.push((id, descriptor));
            } else if let Some(number) = numbered(PAGE) {
                pages.push((number, descriptor));
            } else if let Some(number) = numbered(PROCESS) {
                processes.insert(number, descriptor);
            } else {
                return Err(format!("{name:?} is kept, which this server does not know"));
            }
        }
        // The process is kept before the page, and forgotten after it.
        for (number, page) in pages {
            let process = processes.remove(&number);
            let process = process.ok_or_else(|| format!("page {number} has no process"))?;
            life.pages.push(FormerPage {
                number,
                page,
                process,
            });
        }
        Ok((life, ledger))
    }
}

/// How this start came to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryBirth {
    /// It is new, and nothing was there before.
    New,
    /// It is that of the process before.
    Adopted,
    /// It is new, and what was there before was given up.
    GivenUp,
}

/// The memory of a server with a keeper.
pub(crate) struct KeptMemory {
    keeper: Arc<Keeper>,
    ledger: Ledger,
    birth: MemoryBirth,
    stamp: Vec<u8>,
    former: Option<FormerLife>,
}

/// A store whose memory outlives its process.
pub(crate) trait KeptStore: Store {
    /// It is known how far clients of the process before had stored, and nobody has maps: what lies ahead of the lengths counts no more.
    fn clear(&self) -> store::Result<()>;
}

impl KeptStore for MemoryStore {
    fn clear(&self) -> store::Result<()> {
        for identity in self.list()? {
            self.open(identity.id)?.trim();
        }
        self.clear_ahead();
        Ok(())
    }
}

impl KeptStore for DiskStore {
    fn clear(&self) -> store::Result<()> {
        self.clear_ahead();
        Ok(())
    }
}

/// A store, and those who may still store into memory that was taken from them.
pub(crate) struct OpenedMemory<S> {
    pub(crate) pool: Pool,
    pub(crate) store: S,
    pub(crate) quarantined: Option<QuarantinedMemory>,
    /// Above the numbers of all pages of the process before.
    pub(crate) next_page: u64,
}

impl KeptMemory {
    /// Reaches the keeper or starts one, and looks what the process before has left with it.
    pub(crate) fn open(options: &KeeperOptions, stamp: &[u8]) -> Result<KeptMemory, OpenError> {
        let (keeper, found) = Keeper::connect(options.clone())?;
        let keeper = Arc::new(keeper);
        let former = (!found.is_empty()).then(|| FormerLife::of(found));
        let adopted = former.map(|former| -> Result<(FormerLife, Ledger), String> {
            let (life, ledger) = former?;
            let ledger = ledger.ok_or("there is no ledger")?;
            let keeping = Arc::clone(&keeper) as Arc<dyn Keeping>;
            let ledger = Ledger::adopt(ledger, keeping, stamp).map_err(|e| e.to_string())?;
            let attempts = ledger.get(ATTEMPTS, &[]);
            let attempts = attempts.and_then(|value| number(&value)).unwrap_or(0);
            if attempts >= MOST_ATTEMPTS {
                return Err(format!(
                    "{attempts} processes have died while they adopted it"
                ));
            }
            let mut batch = Batch::new();
            batch.set(ATTEMPTS, &[], &(attempts + 1).to_le_bytes());
            ledger.write(&batch);
            Ok((life, ledger))
        });
        let (former, ledger, birth) = match adopted {
            Some(Ok((life, ledger))) => (Some(life), ledger, MemoryBirth::Adopted),
            Some(Err(why)) => {
                tell_loss(&why);
                (None, new_ledger(&keeper, stamp)?, MemoryBirth::GivenUp)
            }
            None => (None, new_ledger(&keeper, stamp)?, MemoryBirth::New),
        };
        Ok(KeptMemory {
            keeper,
            ledger,
            birth,
            stamp: stamp.to_vec(),
            former,
        })
    }

    /// The store in this memory: with everything that was in it, if it can be adopted.
    pub(crate) fn open_memory(
        &mut self,
        options: &PoolOptions,
        claim_wait: Duration,
    ) -> Result<OpenedMemory<MemoryStore>, OpenError> {
        if let Some(former) = self.former.take() {
            match self.adopt(former, options, claim_wait, MemoryStore::adopt) {
                Ok(opened) => return Ok(opened),
                Err(why) => {
                    tell_loss(&why);
                    self.ledger = new_ledger(&self.keeper, &self.stamp)?;
                    self.birth = MemoryBirth::GivenUp;
                }
            }
        }
        let pool = Pool::with_ledger(*options, self.ledger.clone());
        let store = MemoryStore::with_ledger(pool.clone(), self.ledger.clone());
        Ok(OpenedMemory {
            pool,
            store,
            quarantined: None,
            next_page: 0,
        })
    }

    /// The store on disks behind this memory, with everything that was in it and on no disk. Where that cannot be adopted, this start fails and
    /// leaves it as it is: the reason may be the disks, which can be repaired.
    pub(crate) fn open_disks(
        &mut self,
        options: &PoolOptions,
        claim_wait: Duration,
        start: impl FnOnce(Pool, Ledger) -> store::Result<DiskStore>,
    ) -> Result<OpenedMemory<DiskStore>, String> {
        if let Some(former) = self.former.take() {
            let adopted = self.adopt(former, options, claim_wait, start);
            if adopted.is_err() {
                // This process has not died of it.
                let mut batch = Batch::new();
                batch.remove(ATTEMPTS, &[]);
                self.ledger.write(&batch);
            }
            return adopted;
        }
        let pool = Pool::with_ledger(*options, self.ledger.clone());
        let store = start(pool.clone(), self.ledger.clone()).map_err(|e| e.to_string())?;
        Ok(OpenedMemory {
            pool,
            store,
            quarantined: None,
            next_page: 0,
        })
    }

    fn adopt<S: KeptStore>(
        &self,
        former: FormerLife,
        options: &PoolOptions,
        claim_wait: Duration,
        open: impl FnOnce(Pool, Ledger) -> store::Result<S>,
    ) -> Result<OpenedMemory<S>, String> {
        let said = |e: store::Error| e.to_string();
        let ledger = &self.ledger;
        let words = self.words()?;
        let files = self.files_of_entries()?;
        let pool = Pool::adopt(*options, ledger.clone(), former.segments).map_err(said)?;
        crash_point("adopt-pool");
        let store = open(pool.clone(), ledger.clone()).map_err(said)?;
        crash_point("adopt-store");
        let numbers: Vec<u64> = former.pages.iter().map(|page| page.number).collect();
        let clients = FormerClients::revoke(
            former.table,
            former.pages,
            &Records::of(ledger.clone()),
            claim_wait,
        );
        let clients = clients.map_err(|e| e.to_string())?;
        crash_point("adopt-revoked");
        let quarantined = clients.settle(&store, pool.take_aside(), &words, &files);
        let quarantined = quarantined.map_err(said)?;
        crash_point("adopt-folded");
        store.clear().map_err(said)?;
        crash_point("adopt-cleared");
        let mut batch = Batch::new();
        for word in &words {
            batch.remove(WORD, &FormerWord::key(word.page, word.word));
        }
        for entry in files.keys() {
            batch.remove(ENTRY, &entry.to_be_bytes());
        }
        batch.remove(ATTEMPTS, &[]);
        ledger.write(&batch);
        crash_point("adopt-done");
        self.keeper.forget(TABLE);
        tracing::info!(
            life = ledger.life(),
            "adopted the memory of the process before"
        );
        Ok(OpenedMemory {
            pool,
            store,
            quarantined,
            next_page: numbers.into_iter().max().map_or(0, |n| n + 1),
        })
    }

    fn words(&self) -> Result<Vec<FormerWord>, String> {
        let found = self.ledger.entries(WORD).into_iter();
        let read = found.map(|(key, value)| FormerWord::read(&key, &value));
        read.collect::<Option<_>>()
            .ok_or_else(|| "an end word that cannot be read".into())
    }

    fn files_of_entries(&self) -> Result<std::collections::HashMap<u32, u64>, String> {
        let found = self.ledger.entries(ENTRY).into_iter();
        let read = found.map(|(key, value)| {
            let entry = u32::from_be_bytes(key.try_into().ok()?);
            Some((entry, number(&value)?))
        });
        read.collect::<Option<_>>()
            .ok_or_else(|| "an entry of the control table that cannot be read".into())
    }

    /// The ledger, for what this crate writes into it.
    pub(crate) fn records(&self) -> Records {
        Records::of(self.ledger.clone())
    }

    /// What bytes in this memory live and die with: its life, or that of the start before, which has handed it on and left no memory.
    pub(crate) fn life(&self, handed_on: Option<u64>) -> u64 {
        if let (MemoryBirth::New, Some(life)) = (self.birth, handed_on) {
            let mut batch = Batch::new();
            batch.set(HANDED_ON, &[], &life.to_le_bytes());
            self.ledger.write(&batch);
        }
        let noted = self.ledger.get(HANDED_ON, &[]);
        let noted = noted.and_then(|value| number(&value));
        noted.unwrap_or_else(|| self.ledger.life())
    }

    /// How this start came to it.
    pub(crate) fn birth(&self) -> MemoryBirth {
        self.birth
    }

    /// The start that served with this memory before, if it is that of the process before.
    pub(crate) fn last_start(&self) -> Option<u64> {
        number(&self.ledger.get(START, &[])?)
    }

    /// Gives up memory of a start after which the disks were served without it: what is on them is newer.
    pub(crate) fn give_up_older_than(&mut self, last_start: u64) -> Result<(), OpenError> {
        let older = self.last_start().filter(|&start| start < last_start);
        let (Some(older), Some(_)) = (older, &self.former) else {
            return Ok(());
        };
        tell_loss(&format!(
            "it is of start {older}, and start {last_start} has served without it"
        ));
        self.former = None;
        self.ledger = new_ledger(&self.keeper, &self.stamp)?;
        self.birth = MemoryBirth::GivenUp;
        Ok(())
    }

    /// This start is about to serve with it.
    pub(crate) fn starts(&self, incarnation: u64) {
        let mut batch = Batch::new();
        batch.set(START, &[], &incarnation.to_le_bytes());
        self.ledger.write(&batch);
    }

    /// Nobody shall adopt this memory.
    pub(crate) fn give_up(&self) {
        self.ledger.give_up();
    }

    /// Whether the next start would find everything: the keeper is there, and the ledger has no gap.
    pub(crate) fn is_safe(&self) -> bool {
        !self.keeper.is_away() && !self.ledger.is_void()
    }

    /// Nothing is left to keep.
    pub(crate) fn end(&self) {
        self.keeper.end();
    }
}

fn tell_loss(why: &str) {
    tracing::warn!(
        why,
        "the memory of the process before cannot be adopted; what was in it is lost, and clients that wrote it hear of it"
    );
}

fn new_ledger(keeper: &Arc<Keeper>, stamp: &[u8]) -> Result<Ledger, OpenError> {
    keeper.forget_all();
    let keeping = Arc::clone(keeper) as Arc<dyn Keeping>;
    Ok(Ledger::new(keeping, stamp)?)
}

/// Why a server has no memory that is kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Keeper(#[from] keeper::Error),
    #[error("the ledger: {0}")]
    Ledger(#[from] store::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        let word = FormerWord {
            page: 7,
            word: 4095,
            subfile: SubfileId {
                file: u64::MAX,
                generation: 3,
                index: 9,
            },
            granted: 1 << 40,
        };
        let key = FormerWord::key(word.page, word.word);
        assert_eq!(FormerWord::read(&key, &word.value()), Some(word));
        assert_eq!(FormerWord::read(&key[..11], &word.value()), None);
        assert_eq!(FormerWord::read(&key, &word.value()[..27]), None);
    }
}
