//! Writes that no sync has made safe yet, and how a handle finds out that they were lost.
//!
//! Every answer to a write carries a *verifier*, a number of the server that changes when it loses bytes that were
//! written and not synced. The handle notes each number with its server, whichever way the bytes went (by
//! message, through a gateway, directed by servers, stored directly); sync and close compare with the numbers of now.
//!
//! Invariants
//! - A number is noted before the write returns. Short direct writes note theirs when their run is learnt, and learn it anew
//!   after each sync.
//! - What a sync takes over and does not finish is noted again.
//! - A loss is reported once per handle; after that the handle is as good as new, like a file after `fsync` failed.
//!
//! Left to others: who loses what (`ioserver`, `verifier`), making things durable.

use std::time::Instant;

use parking_lot::Mutex;
use wire::message::file::{self, Sync, Verifiers, Verify};
use wire::{Place, ServerId};

use crate::error::{Error, Result};
use crate::file::handle::Handle;
use crate::transport::lane::Lane;

/// What a sync has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Whether the bytes survive the death of the servers and of their hosts.
    pub is_durable: bool,
}

/// Bytes at one server.
#[derive(Clone, Copy, Debug)]
struct Written {
    server: u64,
    /// The start of the server that took them.
    start: u64,
    verifier: u64,
    /// When the first of them were written.
    since: Instant,
}

/// Where bytes are that a handle has written and not synced. Few entries: one per server and life of it.
#[derive(Debug, Default)]
pub(crate) struct Unsynced(Mutex<Vec<Written>>);

impl Unsynced {
    /// A server has taken bytes.
    pub(crate) fn wrote(&self, server: u64, start: u64, verifier: u64) {
        let mut list = self.0.lock();
        let is_same = |w: &Written| w.server == server && w.verifier == verifier;
        if !list.iter().any(is_same) {
            list.push(Written {
                server,
                start,
                verifier,
                since: Instant::now(),
            });
        }
    }

    /// Whether everything was synced.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    fn take(&self) -> Vec<Written> {
        std::mem::take(&mut *self.0.lock())
    }

    /// They are still not synced.
    fn put_back(&self, before: Vec<Written>) {
        let mut list = self.0.lock();
        let later = std::mem::replace(&mut *list, before);
        for written in later {
            let is_same =
                |w: &Written| (w.server, w.verifier) == (written.server, written.verifier);
            if !list.iter().any(is_same) {
                list.push(written);
            }
        }
    }
}

impl Handle {
    /// Makes everything durable where it can be. Bytes that were acknowledged and are lost are
    /// reported, once: whoever wrote them has to do it again.
    pub(crate) fn sync_servers(&self, lane: &mut Lane) -> Result<Synced> {
        let before = self.unsynced.take();
        // Short direct writes do not note where they went. Those that are under way end before the
        // servers are asked; later ones are noted again.
        self.direct.quick.clear();
        let mut is_durable = true;
        let mut heard = Vec::new();
        let synced = self.ask_all(
            lane,
            &self.whole,
            |view| Sync { view },
            |server, synced: file::SyncAnswer| {
                is_durable &= synced.is_durable;
                heard.push((server, synced.verifiers));
            },
        );
        if let Err(error) = synced {
            self.unsynced.put_back(before);
            return Err(error);
        }
        let lost = before.into_iter().filter(|written| {
            let now = find(&heard, written.server);
            // One that has nothing of the file any more was not asked: what it had was taken along, unless it was lost
            // before.
            let now = now.or_else(|| self.verifiers_now(lane, written.server));
            match now {
                Some(now) => !now.keep(written.verifier),
                None => {
                    let start = self.session.incarnation_now(lane, written.server);
                    start.is_some_and(|start| start != written.start)
                }
            }
        });
        report(lost.collect())?;
        Ok(Synced { is_durable })
    }

    /// Reports what is known to be lost, with what servers have said just now. One that cannot be asked is not waited for:
    /// it may come back with the bytes.
    pub(crate) fn compare_at_close(
        &self,
        lane: &mut Lane,
        heard: &[(u64, Verifiers)],
    ) -> Result<()> {
        let before = self.unsynced.take();
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

fn report(lost: Vec<Written>) -> Result<()> {
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

    #[test]
    fn all_lives_of_a_server_are_noted_and_the_oldest_time_stays() {
        let unsynced = Unsynced::default();
        for (server, verifier) in [(1, 10), (2, 10), (1, 10), (1, 11), (2, 10)] {
            unsynced.wrote(server, 5, verifier);
        }
        let before = unsynced.take();
        let seen = |list: &[Written]| -> Vec<(u64, u64)> {
            list.iter().map(|w| (w.server, w.verifier)).collect()
        };
        assert_eq!(seen(&before), [(1, 10), (2, 10), (1, 11)]);
        assert!(unsynced.take().is_empty());
        // A sync that failed, and writes that were made meanwhile.
        unsynced.wrote(2, 5, 10);
        unsynced.wrote(2, 6, 12);
        let since = before[1].since;
        unsynced.put_back(before);
        let all = unsynced.take();
        assert_eq!(seen(&all), [(1, 10), (2, 10), (1, 11), (2, 12)]);
        assert_eq!(all[1].since, since);
    }

    #[test]
    fn loss_names_each_server_once() {
        let written = |server, verifier| Written {
            server,
            start: 1,
            verifier,
            since: Instant::now(),
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
