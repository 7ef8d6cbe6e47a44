//! Who cannot be reached at present, and since when.
//!
//! All operations of a session share this knowledge, so the limit for a server that cannot be reached is
//! one limit, however many questions of however many calls run into it:
//!
//! ```text
//!  attempts     x  x   x    x     x        x  x           o
//!  outage       |--------- timeout --------|  given up    |  over
//!  calls        wait and try again            fail at once
//! ```
//!
//! Invariants
//! - Who answers is not away: a connection that could be made ends the outage.
//! - Even one who was given up is tried once per question, so that it is found when it comes back.
//! - What was not tried for a while begins anew, with all the patience there is.
//!
//! Left to others: how long is waited and how often is tried (`patience`), making connections (`session`).

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// What a session talks to: an I/O server, or the metadata manager, which has no number.
pub(crate) type Peer = Option<u64>;

/// After this time without an attempt nothing is known any more. Longer than what members of a team may wait for each
/// other in turn, or each of them would begin anew when the others have given up.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// How long a connection to a peer that was given up may take.
const SHORT_LIMIT: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Outage {
    peer: Peer,
    since: Instant,
    /// When it was tried last.
    tried: Instant,
    is_given_up: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// Few, so a list.
    list: Mutex<Vec<Outage>>,
}

impl Outages {
    /// An attempt has failed; since when they do.
    pub(crate) fn failed(&self, peer: Peer, now: Instant) -> Instant {
        self.note(peer, now, |_| {})
    }

    /// Nobody waits for this peer any more until it is reached again.
    pub(crate) fn give_up(&self, peer: Peer, now: Instant) {
        self.note(peer, now, |outage| {
            if !outage.is_given_up {
                tracing::warn!(server = peer, "server given up until it is reached again");
            }
            outage.is_given_up = true;
        });
    }

    fn note(&self, peer: Peer, now: Instant, change: impl FnOnce(&mut Outage)) -> Instant {
        let mut list = self.list.lock();
        list.retain(|o| now.saturating_duration_since(o.tried) < FORGOTTEN_AFTER);
        let at = match list.iter().position(|o| o.peer == peer) {
            Some(at) => at,
            None => {
                tracing::warn!(server = peer, "server cannot be reached: trying again");
                list.push(Outage {
                    peer,
                    since: now,
                    tried: now,
                    is_given_up: false,
                });
                list.len() - 1
            }
        };
        let outage = &mut list[at];
        outage.tried = outage.tried.max(now);
        change(outage);
        outage.since
    }

    /// It was reached.
    pub(crate) fn ended(&self, peer: Peer) {
        let is_over = |o: &mut Outage| o.peer == peer;
        for outage in self.list.lock().extract_if(.., is_over) {
            let (seconds, server) = (outage.since.elapsed().as_secs(), peer);
            tracing::info!(server, seconds, "server reached again");
        }
    }

    /// Whether it is not waited for at present.
    pub(crate) fn is_given_up(&self, peer: Peer, now: Instant) -> bool {
        self.list.lock().iter().any(|o| {
            o.peer == peer
                && o.is_given_up
                && now.saturating_duration_since(o.tried) < FORGOTTEN_AFTER
        })
    }

    /// How long making a connection may take.
    pub(crate) fn limit(&self, peer: Peer, usual: Duration) -> Duration {
        match self.is_given_up(peer, Instant::now()) {
            true => usual.min(SHORT_LIMIT),
            false => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_outage_begins_with_the_first_failure_and_ends_with_a_connection() {
        let outages = Outages::default();
        let start = Instant::now();
        assert_eq!(outages.failed(Some(1), start), start);
        assert_eq!(outages.failed(Some(1), start + SECOND), start);
        // Each has its own.
        assert_eq!(outages.failed(None, start + SECOND), start + SECOND);
        assert!(!outages.is_given_up(Some(1), start));
        outages.give_up(Some(1), start + SECOND * 2);
        assert!(outages.is_given_up(Some(1), start + SECOND * 3));
        assert!(!outages.is_given_up(None, start + SECOND * 3));
        outages.ended(Some(1));
        assert!(!outages.is_given_up(Some(1), start + SECOND * 3));
        let again = start + SECOND * 4;
        assert_eq!(outages.failed(Some(1), again), again);
    }

    #[test]
    fn who_was_not_tried_for_a_while_is_waited_for_again() {
        let outages = Outages::default();
        let start = Instant::now();
        outages.give_up(None, start);
        let later = start + FORGOTTEN_AFTER;
        assert!(!outages.is_given_up(None, later));
        assert_eq!(outages.failed(None, later), later);
        // Tried again and again it stays given up.
        outages.give_up(None, later);
        for i in 0..90 {
            outages.failed(None, later + SECOND * i);
            assert!(outages.is_given_up(None, later + SECOND * i), "{i}");
        }
    }

    #[test]
    fn connections_to_whom_was_given_up_are_tried_for_a_short_time() {
        let outages = Outages::default();
        assert_eq!(outages.limit(Some(3), SECOND * 10), SECOND * 10);
        outages.give_up(Some(3), Instant::now());
        assert_eq!(outages.limit(Some(3), SECOND * 10), SHORT_LIMIT);
        assert_eq!(outages.limit(Some(4), SECOND * 10), SECOND * 10);
    }
}
