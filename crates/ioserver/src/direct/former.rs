//! Clients of the process that served before this one, which was killed: they may still copy.
//!
//! ```text
//!  revoke   all epochs of the old table raised -> claims in old pages waited for, then revoked
//!  settle   memory that revoked writers may store into is replaced -> end words raise lengths
//! ```
//!
//! A client finds by the liveness word of the old table that the process is dead: what it copied does not count, and it
//! repeats by message. So nothing is owed to it but this: what was acknowledged before is there, with its length; and a thread that
//! stands still in the middle of a store and goes on later stores where nobody reads.
//!
//! Invariants
//! - No length is read before the words were folded, and no word is folded before its client was waited for.
//! - What a writer that was revoked may store into is no file's when this is over.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::direct::{Active, FormerTable};
use store::{Aside, Store};

use super::attached::AttachedClient;
use super::quarantine::{QuarantinedMemory, may_store};
use super::revoke::{FIRST_PAUSE, LONGEST_PAUSE, poll_for_death};
use crate::kept::{FormerPage, FormerWord, Records};

/// One of them.
struct FormerClient {
    attached: Arc<AttachedClient>,
    /// Slots that this or the process before has revoked from a writer that has not noticed.
    slots: Vec<usize>,
    /// The entries of these slots; `None` if the process before revoked one, whose entry nobody knows.
    entries: Option<Vec<u32>>,
}

/// See the [module](self).
pub(crate) struct FormerClients(Vec<FormerClient>);

impl FormerClients {
    /// Makes all maps void and waits for those who copy, as a revocation does.
    pub(crate) fn revoke(
        table: Option<OwnedFd>,
        pages: Vec<FormerPage>,
        records: &Records,
        claim_wait: Duration,
    ) -> io::Result<FormerClients> {
        if let Some(table) = table {
            FormerTable::map(table.as_fd())?.raise_all();
        }
        let mut watched: Vec<(Arc<AttachedClient>, Vec<Active>)> = Vec::new();
        for page in pages {
            let attached = Arc::new(AttachedClient::adopt(page, records.clone())?);
            let claims = attached.page.all_claims().collect();
            watched.push((attached, claims));
        }
        let deadline = Instant::now() + claim_wait;
        let mut pause = FIRST_PAUSE;
        loop {
            let mut copying = Vec::new();
            for (attached, claims) in &mut watched {
                claims.retain(|claim| attached.page.is_active(claim));
                if !claims.is_empty() && !attached.is_dead() {
                    copying.push(attached.process());
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if copying.is_empty() || left.is_zero() {
                break;
            }
            poll_for_death(copying.into_iter(), pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        let clients = watched.into_iter().map(|(attached, claims)| {
            let before: Vec<usize> = attached.page.revoked_slots().collect();
            let mut entries = before.is_empty().then(Vec::new);
            let mut slots = before;
            for claim in claims.iter().filter(|claim| attached.page.revoke(claim)) {
                if claim.writes() {
                    slots.push(claim.slot());
                    if let Some(entries) = &mut entries {
                        entries.push(claim.entry());
                    }
                }
            }
            FormerClient {
                attached,
                slots,
                entries,
            }
        });
        Ok(FormerClients(clients.collect()))
    }

    /// Takes away what revoked writers may store into, and raises lengths to what clients have said. `aside` is what was taken
    /// away by the process before.
    pub(crate) fn settle(
        self,
        store: &dyn Store,
        mut aside: Aside,
        words: &[FormerWord],
        files: &HashMap<u32, u64>,
    ) -> store::Result<Option<QuarantinedMemory>> {
        let open = |id| match store.open(id) {
            Ok(subfile) => Ok(Some(subfile)),
            // Removed since, or on a disk that was declared lost.
            Err(store::Error::NotFound(_) | store::Error::Lost { .. }) => Ok(None),
            Err(e) => Err(e),
        };
        let mut writers = Vec::new();
        for FormerClient {
            attached,
            slots,
            entries,
        } in &self.0
        {
            if !may_store(attached, slots) {
                continue;
            }
            // An entry that belongs to no file any more was voided before: nobody stores through it. One that this process cannot
            // tell may be any.
            let is_meant = |file: u64| {
                entries.as_ref().is_none_or(|entries| {
                    let mut of = entries.iter();
                    of.any(|entry| files.get(entry).is_none_or(|&f| f == file))
                })
            };
            let of_page = words.iter().filter(|w| w.page == attached.number);
            for word in of_page.filter(|w| is_meant(w.subfile.file)) {
                if let Some(subfile) = open(word.subfile)? {
                    subfile.set_aside(0..word.granted, u64::MAX, &mut aside)?;
                }
            }
            writers.push((Arc::clone(attached), slots.clone()));
        }
        let pages: HashMap<u64, &Arc<AttachedClient>> = self
            .0
            .iter()
            .map(|client| (client.attached.number, &client.attached))
            .collect();
        for word in words {
            // A page that is not there was forgotten after its words were folded.
            let Some(attached) = pages.get(&word.page) else {
                continue;
            };
            let end = match word.word < ::direct::ENDS {
                true => attached.page.end(word.word).min(word.granted),
                false => 0,
            };
            if end > 0
                && let Some(subfile) = open(word.subfile)?
            {
                subfile.stored_to(end)?;
            }
        }
        match writers.is_empty() {
            true => Ok(None),
            false => Ok(Some(QuarantinedMemory::new(writers, aside))),
        }
    }
}
