//! The page of one client at one server: slots, marks and ends.
//!
//! ```text
//! 0      slot 0 .. 63: one word each, 64 bytes apart
//! 4096   marks: one bit per extent that the client may store into
//! 12288  ends: one word per subfile that the client may store into
//! ```
//!
//! A slot's word is 0 (free), a claim (writes: 1 bit, entry + 1: 23 bits, epoch: 40 bits), or
//! [`REVOKED`]. Free to claim: the client. Claim to free: the client, which thereby learns that it
//! counts. Claim to revoked: the server. Revoked to free: the client, which thereby says that it no
//! longer touches what it had mapped.
//!
//! An end is how far the client has stored into a subfile, or is about to. The client raises it inside a claim, before it
//! stores, so a server that has waited for the claim, or learns of it by the claim's end, finds it. Only the server lowers it,
//! when the word goes to another subfile and no thread of the client can raise it any more.
//!
//! What is in the page is the client's word. A lie costs the liar: it is waited for and revoked, or not
//! waited for and its stores go to memory of files that it may write anyway.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::mapping::Mapping;

/// Threads of a client that can access one server directly at a time; others go by message.
pub const SLOTS: usize = 64;
/// Extents of one client that can be stored into directly at a time.
pub const MARKS: u32 = 1 << 16;

/// Subfiles of one client that can be stored into directly at a time.
pub const ENDS: u32 = 1 << 12;

const SLOT_BYTES: usize = 64;
const MARKS_AT: usize = SLOTS * SLOT_BYTES;
const ENDS_AT: usize = MARKS_AT + MARKS as usize / 8;
const PAGE_BYTES: usize = ENDS_AT + ENDS as usize * 8;

const FREE: u64 = 0;
const REVOKED: u64 = u64::MAX;
const WRITES: u64 = 1 << 63;
const EPOCH_BITS: u32 = 40;
const EPOCH: u64 = (1 << EPOCH_BITS) - 1;
const ENTRY: u64 = (1 << (63 - EPOCH_BITS)) - 1;

const _: () = assert!((crate::ENTRIES as u64) < ENTRY);

fn claim_word(entry: u32, epoch: u64, writes: bool) -> u64 {
    let write = if writes { WRITES } else { 0 };
    write | (u64::from(entry) + 1) << EPOCH_BITS | (epoch & EPOCH)
}

fn mark_at(mark: u32) -> (usize, u64) {
    assert!(mark < MARKS);
    (MARKS_AT + mark as usize / 64 * 8, 1 << (mark % 64))
}

fn end_at(end: u32) -> usize {
    assert!(end < ENDS);
    ENDS_AT + end as usize * 8
}

/// The page, as its client has it.
#[derive(Debug)]
pub struct ClientPage {
    mapping: Mapping,
}

/// A slot that is in use. Ends when dropped.
#[derive(Debug)]
pub struct Claim<'a> {
    slot: &'a AtomicU64,
    word: u64,
}

impl ClientPage {
    /// Maps what the server sent.
    pub fn map(file: BorrowedFd<'_>, len: u64) -> io::Result<ClientPage> {
        if len < PAGE_BYTES as u64 {
            let text = "the client page is too short";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mapping = Mapping::new(file, len, true)?;
        Ok(ClientPage { mapping })
    }

    /// Says that this thread copies from now on; `None` if all slots are in use. Whether the map is
    /// still good is asked of the table afterwards.
    #[inline]
    pub fn claim(&self, entry: u32, epoch: u64, writes: bool) -> Option<Claim<'_>> {
        let word = claim_word(entry, epoch, writes);
        let first = thread_slot();
        for i in 0..SLOTS {
            let slot = self.mapping.word((first + i) % SLOTS * SLOT_BYTES);
            let claimed = slot.compare_exchange(FREE, word, Ordering::SeqCst, Ordering::Relaxed);
            if claimed.is_ok() {
                return Some(Claim { slot, word });
            }
        }
        None
    }

    /// Says that an extent is about to be stored into. To be called inside a claim, before storing.
    #[inline]
    pub fn mark(&self, mark: u32) {
        let (at, bit) = mark_at(mark);
        let word = self.mapping.word(at);
        if word.load(Ordering::SeqCst) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Says that a subfile is about to be stored into up to `to`. To be called inside a claim, before storing.
    #[inline]
    pub fn raise_end(&self, end: u32, to: u64) {
        let word = self.mapping.word(end_at(end));
        if word.load(Ordering::SeqCst) < to {
            word.fetch_max(to, Ordering::SeqCst);
        }
    }
}

impl Claim<'_> {
    /// Ends it; whether it counts. If not, it was revoked: what was stored is nowhere, what was read is
    /// nothing, and the access has to be repeated by message.
    #[inline]
    #[must_use]
    pub fn end(self) -> bool {
        let counts = self.free();
        std::mem::forget(self);
        counts
    }

    #[inline]
    fn free(&self) -> bool {
        let freed =
            self.slot
                .compare_exchange(self.word, FREE, Ordering::SeqCst, Ordering::Relaxed);
        if freed.is_err() {
            self.slot.store(FREE, Ordering::SeqCst);
        }
        freed.is_ok()
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.free();
    }
}

/// Where this thread looks first: threads that stay keep their slots apart.
#[inline]
fn thread_slot() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static FIRST: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS;
    }
    FIRST.try_with(|first| *first).unwrap_or(0)
}

/// The page, as its server has it.
#[derive(Debug)]
pub struct ServerPage {
    file: OwnedFd,
    mapping: Mapping,
}

/// A claim that a server found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Active {
    slot: usize,
    word: u64,
}

impl Active {
    /// Whether it may store.
    pub fn writes(&self) -> bool {
        self.word & WRITES != 0
    }

    /// Which slot it is in.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The entry of its file, as the client says.
    pub fn entry(&self) -> u32 {
        // Below the number of entries, or of no file.
        ((self.word >> EPOCH_BITS & ENTRY) as u32).wrapping_sub(1)
    }
}

impl ServerPage {
    /// A new page, all slots free and no mark set.
    pub fn new() -> io::Result<ServerPage> {
        let (file, mapping) = Mapping::create(c"pario-page", PAGE_BYTES as u64)?;
        Ok(ServerPage { file, mapping })
    }

    /// The page that a server which is dead has made for a client.
    pub fn adopt(file: OwnedFd) -> io::Result<ServerPage> {
        let mapping = Mapping::new(file.as_fd(), PAGE_BYTES as u64, true)?;
        Ok(ServerPage { file, mapping })
    }

    /// For its client.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its bytes.
    pub fn len(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        false
    }

    fn slot(&self, slot: usize) -> &AtomicU64 {
        self.mapping.word(slot * SLOT_BYTES)
    }

    /// Claims of an entry that were made before `epoch`. To be asked after the epoch was raised; a claim
    /// that comes later sees the new epoch and does not copy.
    pub fn active(&self, entry: u32, epoch: u64) -> impl Iterator<Item = Active> + '_ {
        (0..SLOTS).filter_map(move |slot| {
            let word = self.slot(slot).load(Ordering::SeqCst);
            let is_claim = word != FREE && word != REVOKED;
            let of_entry = word >> EPOCH_BITS & ENTRY == u64::from(entry) + 1;
            // An epoch that is no older is of a thread that will look at the table and go away.
            let is_older = word & EPOCH != epoch & EPOCH;
            (is_claim && of_entry && is_older).then_some(Active { slot, word })
        })
    }

    /// Claims of an entry, whatever their epoch. To be asked after a fence; a claim that comes later sees it and
    /// does not copy.
    pub fn claims(&self, entry: u32) -> impl Iterator<Item = Active> + '_ {
        (0..SLOTS).filter_map(move |slot| {
            let word = self.slot(slot).load(Ordering::SeqCst);
            let is_claim = word != FREE && word != REVOKED;
            let of_entry = word >> EPOCH_BITS & ENTRY == u64::from(entry) + 1;
            (is_claim && of_entry).then_some(Active { slot, word })
        })
    }

    /// Claims of all entries. To be asked after all epochs of the table were raised; a claim that comes later sees that and
    /// does not copy.
    pub fn all_claims(&self) -> impl Iterator<Item = Active> + '_ {
        (0..SLOTS).filter_map(move |slot| {
            let word = self.slot(slot).load(Ordering::SeqCst);
            (word != FREE && word != REVOKED).then_some(Active { slot, word })
        })
    }

    /// Slots that were revoked and whose threads have not noticed yet.
    pub fn revoked_slots(&self) -> impl Iterator<Item = usize> + '_ {
        (0..SLOTS).filter(|&slot| self.is_revoked(slot))
    }

    /// Whether a claim has not ended yet.
    pub fn is_active(&self, claim: &Active) -> bool {
        self.slot(claim.slot).load(Ordering::SeqCst) == claim.word
    }

    /// Takes a claim back; `false` if it ended before, and counts.
    pub fn revoke(&self, claim: &Active) -> bool {
        let slot = self.slot(claim.slot);
        slot.compare_exchange(claim.word, REVOKED, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Whether the client has not noticed yet that a slot was revoked, and may still touch what it had
    /// mapped.
    pub fn is_revoked(&self, slot: usize) -> bool {
        self.slot(slot).load(Ordering::SeqCst) == REVOKED
    }

    /// Whether a claim of an entry that may store is under way, of whatever epoch, or one of any entry
    /// was revoked and not noticed yet.
    pub fn has_writer(&self, entry: u32) -> bool {
        (0..SLOTS).any(|slot| {
            let word = self.slot(slot).load(Ordering::SeqCst);
            let of_entry = word >> EPOCH_BITS & ENTRY == u64::from(entry) + 1;
            word == REVOKED || (word & WRITES != 0 && of_entry)
        })
    }

    /// Whether a claim of any entry was revoked and not noticed yet.
    pub fn has_revoked(&self) -> bool {
        (0..SLOTS).any(|slot| self.is_revoked(slot))
    }

    /// How far the client says that it has stored into the subfile of a word.
    pub fn end(&self, end: u32) -> u64 {
        self.mapping.word(end_at(end)).load(Ordering::SeqCst)
    }

    /// Takes a word for another subfile. No thread of the client may be about to raise it for the one before.
    pub fn clear_end(&self, end: u32) {
        self.mapping.word(end_at(end)).store(0, Ordering::SeqCst);
    }

    /// Clears a mark and says whether it was set. A thread that stores in a claim that begins later sets it
    /// again; one that is under way ([`ServerPage::has_writer`], asked afterwards) may not.
    pub fn take_mark(&self, mark: u32) -> bool {
        let (at, bit) = mark_at(mark);
        self.mapping.word(at).fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    /// Whether a mark is set.
    pub fn has_mark(&self, mark: u32) -> bool {
        let (at, bit) = mark_at(mark);
        self.mapping.word(at).load(Ordering::SeqCst) & bit != 0
    }

    /// Sets a mark again: what was copied out may lack a store.
    pub fn set_mark(&self, mark: u32) {
        let (at, bit) = mark_at(mark);
        self.mapping.word(at).fetch_or(bit, Ordering::SeqCst);
    }
}
