//! Writes that no sync has made safe yet, and how a handle finds out that they were lost.
//!
//! Every answer to a write carries a *verifier*, a number of the server that changes when it loses bytes that were
//! written and not synced. The handle notes each number with its server, whichever way the bytes went (by
//! message, through a gateway, directed by servers, stored directly); sync and close compare with the numbers of now.
//!
//! Invariants
//! - A number is noted before the write returns. Short direct writes note theirs when their run is learnt, and learn it anew
//!   after each sync.
//! - A note stays until a sync that began after it has ended well, or has reported the loss. Syncs of one handle that run at
//!   the same time all hear of it.
//! - A rank of a team notes the bytes that other ranks have sent for it: the round that ends a write in two phases tells.
//! - A loss is reported once per handle; after that the handle is as good as new, like a file after `fsync` failed.
//!
//! Left to others: who loses what (`ioserver`, `verifier`), making things durable.

use std::time::Instant;

use parking_lot::Mutex;
use wire::message::file::{self, Sync, Verifiers, Verify};
use wire::{DecodeError, Place, Reader, ServerId, put_number};

use crate::error::{Error, Result};
use crate::file::handle::Handle;
use crate::session::lane::Lane;

/// What a sync has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncReport {
    /// Whether the bytes survive the death of the servers and of their hosts.
    pub is_durable: bool,
}

/// Bytes at one server.
#[derive(Clone, Copy, Debug)]
struct Note {
    server: u64,
    /// The start of the server that took them.
    start: u64,
    verifier: u64,
    /// When the first of them were written.
    since: Instant,
    /// The number of the last note about them.
    note: u64,
}

#[derive(Debug, Default)]
struct Notes {
    /// Few: one per server and life of it.
    list: Vec<Note>,
    count: u64,
}

/// Where bytes are that a handle has written and not synced.
#[derive(Debug, Default)]
pub(crate) struct Unsynced(Mutex<Notes>);

impl Unsynced {
    /// A server has taken bytes.
    pub(crate) fn wrote(&self, server: u64, start: u64, verifier: u64) {
        let Notes { list, count } = &mut *self.0.lock();
        *count += 1;
        let is_same = |w: &&mut Note| (w.server, w.verifier) == (server, verifier);
        match list.iter_mut().find(is_same) {
            Some(written) => written.note = *count,
            None => {
                // Few, in every one of many open files.
                list.reserve_exact(1);
                list.push(Note {
                    server,
                    start,
                    verifier,
                    since: Instant::now(),
                    note: *count,
                });
            }
        }
    }

    /// Whether everything was synced.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().list.is_empty()
    }

    /// The number of the last note.
    pub(crate) fn last_note(&self) -> u64 {
        self.0.lock().count
    }

    /// What was noted after a note: server, start and verifier, for other ranks whose bytes they are.
    pub(crate) fn put_since(&self, note: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for written in self.0.lock().list.iter().filter(|w| w.note > note) {
            for n in [written.server, written.start, written.verifier] {
                put_number(&mut out, n);
            }
        }
        out
    }

    /// Notes what another rank has said of bytes that it has sent for this one.
    pub(crate) fn take_from(&self, said: &[u8]) -> std::result::Result<(), DecodeError> {
        let mut r = Reader::new(said);
        while r.left() > 0 {
            self.wrote(r.number()?, r.number()?, r.number()?);
        }
        Ok(())
    }

    fn all(&self) -> Vec<Note> {
        self.0.lock().list.clone()
    }

    /// A sync that began then has settled these. What was noted since stays.
    fn settle(&self, settled: &[Note], began: Instant) {
        self.0.lock().list.retain_mut(|written| {
            let is_same = |s: &&Note| (s.server, s.verifier) == (written.server, written.verifier);
            let Some(before) = settled.iter().find(is_same) else {
                return true;
            };
            let is_new = before.note < written.note;
            if is_new {
                written.since = written.since.max(began);
            }
            is_new
        });
    }
}

impl Handle {
    /// Makes everything durable where it can be. Bytes that were acknowledged and are lost are
    /// reported, once: the program has to write them again.
    pub(crate) fn sync_servers(&self, lane: &mut Lane) -> Result<SyncReport> {
        let (began, before) = (Instant::now(), self.unsynced.all());
        // Short direct writes do not note where they went. Those that are under way end before the
        // servers are asked; later ones are noted again.
        self.direct.quick.clear();
        let mut is_durable = true;
        let mut heard = Vec::new();
        let synced = self.ask_all(
            lane,
            &self.views.whole,
            |view| Sync { view },
            |server, synced: file::SyncAnswer| {
                is_durable &= synced.is_durable;
                heard.push((server, synced.verifiers));
            },
        );
        synced?;
        let lost = before.iter().copied().filter(|written| {
            let now = find(&heard, written.server);
            // One that has nothing of the file any more was not asked: what it had was taken along, unless it was lost
            // before.
            let now = now.or_else(|| self.verifiers_now(lane, written.server));
            match now {
                Some(now) => !now.keep(written.verifier),
                None => self
                    .session
                    .has_lost_start(lane, written.server, written.start),
            }
        });
        let lost = lost.collect();
        self.unsynced.settle(&before, began);
        report(lost)?;
        Ok(SyncReport { is_durable })
    }

    /// Reports what is known to be lost, with what servers have said just now. One that cannot be asked is not waited for:
    /// it may come back with the bytes.
    pub(crate) fn compare_at_close(
        &self,
        lane: &mut Lane,
        heard: &[(u64, Verifiers)],
    ) -> Result<()> {
        let before = self.unsynced.all();
        let lost = before.into_iter().filter(|written| {
            let now = find(heard, written.server);
            let now = now.or_else(|| self.verifiers_now(lane, written.server));
            now.is_some_and(|now| !now.keep(written.verifier))
        });
        report(lost.collect())
    }

    /// The verifiers of a server, if it can be asked.
    fn verifiers_now(&self, lane: &mut Lane, server: u64) -> Option<Verifiers> {
        let place = Place {
            server,
            incarnation: 0,
        };
        // A connection that was there may be to a start that is gone.
        for _ in 0..2 {
            let index = self.session.server_pipe(lane, place).ok()?;
            self.session.count_message();
            match lane.pipe(index).ask(self.session.number(), &Verify {}) {
                Ok(verifiers) => return Some(verifiers),
                Err(_) => {
                    lane.drop_pipe(server);
                    self.session.forget_member(server);
                }
            }
        }
        None
    }
}

fn find(heard: &[(u64, Verifiers)], server: u64) -> Option<Verifiers> {
    let found = heard.iter().find(|(s, _)| *s == server);
    found.map(|(_, verifiers)| *verifiers)
}

fn report(lost: Vec<Note>) -> Result<()> {
    let Some(first) = lost.iter().map(|w| w.since).min() else {
        return Ok(());
    };
    let mut servers: Vec<ServerId> = lost.iter().map(|w| ServerId(w.server)).collect();
    servers.sort();
    servers.dedup();
    tracing::warn!(?servers, "bytes were lost before they were synced");
    Err(Error::LostWrites {
        servers,
        since_seconds: first.elapsed().as_secs() + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(unsynced: &Unsynced) -> Vec<(u64, u64)> {
        let all = unsynced.all();
        all.iter().map(|w| (w.server, w.verifier)).collect()
    }

    #[test]
    fn all_lives_of_a_server_are_noted_until_a_sync_settles_them() {
        let unsynced = Unsynced::default();
        for (server, verifier) in [(1, 10), (2, 10), (1, 10), (1, 11), (2, 10)] {
            unsynced.wrote(server, 5, verifier);
        }
        let (began, before) = (Instant::now(), unsynced.all());
        assert_eq!(noted(&unsynced), [(1, 10), (2, 10), (1, 11)]);
        // Writes that are made while a sync runs; their time begins with it.
        unsynced.wrote(2, 5, 10);
        unsynced.wrote(2, 6, 12);
        unsynced.settle(&before, began);
        assert_eq!(noted(&unsynced), [(2, 10), (2, 12)]);
        assert_eq!(unsynced.all()[0].since, began);
        // Another sync of the same time has settled less.
        unsynced.settle(&before, began);
        assert_eq!(noted(&unsynced), [(2, 10), (2, 12)]);
        unsynced.settle(&unsynced.all(), began);
        assert!(unsynced.is_empty());
    }

    #[test]
    fn other_ranks_hear_of_what_was_noted_since() {
        let (sender, other) = (Unsynced::default(), Unsynced::default());
        sender.wrote(1, 5, 10);
        sender.wrote(2, 5, 10);
        let note = sender.last_note();
        sender.wrote(3, 6, u64::MAX);
        sender.wrote(1, 5, 10);
        let said = sender.put_since(note);
        other.take_from(&said).unwrap();
        assert_eq!(noted(&other), [(1, 10), (3, u64::MAX)]);
        assert_eq!(other.all()[1].start, 6);
        assert!(other.take_from(&said[..said.len() - 1]).is_err());
    }

    #[test]
    fn loss_names_each_server_once() {
        let written = |server, verifier| Note {
            server,
            start: 1,
            verifier,
            since: Instant::now(),
            note: 0,
        };
        assert_eq!(report(Vec::new()), Ok(()));
        let lost = report(vec![written(3, 1), written(0, 1), written(3, 2)]).unwrap_err();
        let text = lost.to_string();
        assert!(
            text.contains("server 0, server 3 in the last 1 s"),
            "{text}"
        );
        assert_eq!(lost.status(), wire::Status::Lost);
    }
}
