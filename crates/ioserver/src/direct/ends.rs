//! Ends: how far clients have stored into subfiles, as they say in their pages.
//!
//! ```text
//!  client   claim, end raised, store, end of claim            claim, end raised, store .......
//!  server                              fold: length raised       fold: length raised
//! ```
//!
//! A client that may store into a subfile has a word in its page for it, and raises it before it stores. The server *folds* the words
//! into the lengths of the subfiles before the owner of the file, a sync, a move or a revocation looks at these.
//!
//! Invariants
//! - Nothing is handed out for storing without a word, and no word is given while the owner of the file does not know
//!   that this server may grow it.
//! - A word counts as far as its client was handed extents to store into.
//! - A word belongs to its subfile until its client has no map of the file. It goes to another subfile only when no
//!   thread of the client is left that was revoked and may still raise it.
//!
//! Left to others: when to fold, and asking before a size is told (`owner::gather`).

use std::collections::HashMap;
use std::sync::Arc;

use ::direct::{ENDS, ServerPage};
use store::{Subfile, SubfileId};

use super::attached::AttachedClient;
use super::{Direct, FileMaps};
use crate::files::FileEntry;
use crate::kept::FormerWord;

/// The words of a page that belong to no subfile.
#[derive(Debug, Default)]
pub(super) struct FreeEnds {
    /// From here on none was ever used.
    next: u32,
    given_back: Vec<u32>,
    /// Given back while a thread of the client may still have raised them.
    waiting: Vec<u32>,
}

impl FreeEnds {
    fn take(&mut self, page: &ServerPage) -> Option<u32> {
        if self.given_back.is_empty() && !page.has_revoked() {
            self.given_back.append(&mut self.waiting);
        }
        let word = self.given_back.pop().or_else(|| {
            let word = self.next;
            (word < ENDS).then(|| {
                self.next += 1;
                word
            })
        })?;
        page.clear_end(word);
        Some(word)
    }

    fn give_back(&mut self, words: impl Iterator<Item = u32>, page: &ServerPage) {
        match page.has_revoked() {
            true => self.waiting.extend(words),
            false => self.given_back.extend(words),
        }
    }
}

/// The words of a file and a client.
pub(super) struct ClientEnds {
    attached: Arc<AttachedClient>,
    subfiles: HashMap<SubfileId, EndWord>,
}

struct EndWord {
    subfile: Arc<dyn Subfile>,
    word: u32,
    /// Where the last extent ends that the client may store into.
    granted: u64,
}

impl EndWord {
    /// What the next start has to know.
    fn record(&self, attached: &AttachedClient, subfile: SubfileId) -> FormerWord {
        FormerWord {
            page: attached.number,
            word: self.word,
            subfile,
            granted: self.granted,
        }
    }
}

/// Extents of a subfile up to `end` are about to be handed out for storing.
pub(super) struct HandedEnd {
    pub(super) id: SubfileId,
    pub(super) subfile: Arc<dyn Subfile>,
    pub(super) end: u64,
}

impl FileMaps {
    /// Raises the lengths of subfiles to what clients say.
    pub(super) fn fold(&self) {
        for ClientEnds { attached, subfiles } in self.ends.values() {
            for EndWord {
                subfile,
                word,
                granted,
            } in subfiles.values()
            {
                let end = attached.page.end(*word).min(*granted);
                if end > 0 {
                    // Only a subfile that is gone refuses.
                    let _ = subfile.stored_to(end);
                }
            }
        }
    }

    /// Gives back the words of clients without maps. No thread may be waiting for their claims.
    pub(super) fn free_ends(&mut self) {
        let clients = &self.clients;
        let gone = self.ends.extract_if(|n, _| !clients.contains_key(n));
        for (_, ClientEnds { attached, subfiles }) in gone {
            let words: Vec<u32> = subfiles.into_values().map(|s| s.word).collect();
            attached.records.gives_words(attached.number, &words);
            let mut free = attached.ends.lock();
            free.give_back(words.into_iter(), &attached.page);
        }
    }
}

impl Direct {
    /// The words with which a client says how far it stores into subfiles, made for those that have none. `None` if the owner
    /// of the file does not expect growth here, or the map was revoked; a subfile for which no word is free is left out.
    pub(super) fn take_ends(
        &self,
        of: &FileEntry,
        attached: &Arc<AttachedClient>,
        handed: impl Iterator<Item = HandedEnd>,
    ) -> Option<HashMap<SubfileId, u32>> {
        let mut state = self.state.lock();
        // Under the lock, see `fold_for_owner`.
        if !of.is_announced() {
            return None;
        }
        let maps = state.files.get_mut(&of.id())?;
        if !maps.clients.contains_key(&attached.number) {
            return None;
        }
        let of_client = maps
            .ends
            .entry(attached.number)
            .or_insert_with(|| ClientEnds {
                attached: Arc::clone(attached),
                subfiles: HashMap::new(),
            });
        let mut free = attached.ends.lock();
        let mut words = HashMap::new();
        let mut records = Vec::new();
        for HandedEnd { id, subfile, end } in handed {
            let known = of_client.subfiles.get_mut(&id);
            let word = match known {
                Some(known) => {
                    if end > known.granted {
                        known.granted = end;
                        records.push(known.record(attached, id));
                    }
                    known.word
                }
                None => {
                    let Some(word) = free.take(&attached.page) else {
                        continue;
                    };
                    let end = EndWord {
                        subfile,
                        word,
                        granted: end,
                    };
                    records.push(end.record(attached, id));
                    of_client.subfiles.insert(id, end);
                    word
                }
            };
            words.insert(id, word);
        }
        // Before the client hears of them.
        attached.records.takes_words(&records);
        Some(words)
    }

    /// Raises the lengths of the subfiles of a file to what clients have stored, for the owner of the file; whether they may
    /// grow further without a report. If not, this server announces itself anew before that.
    pub(crate) fn fold_for_owner(&self, of: &FileEntry) -> bool {
        let state = self.state.lock();
        let maps = state.files.get(&of.id());
        if let Some(maps) = maps {
            self.count(maps.collect());
        }
        let has_words = maps.is_some_and(|maps| !maps.ends.is_empty());
        // One that was written to by message is likely to be again.
        let grows = of.take_grew() || has_words;
        if !grows {
            of.forget_announcement();
        }
        grows
    }
}
