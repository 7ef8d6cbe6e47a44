//! Beats: a client that holds a lock says that it lives, from a thread of its own.
//!
//! A caller may take its time under a lock, and the owner of the file hears nothing of it meanwhile. So there is a job per
//! owner at which something is held; it ends when it looks and nothing is held any more. The owner says how often it
//! wants to hear a beat.
//!
//! Invariants
//! - A client that holds nothing has no job and no thread; one that holds locks for moments wakes a thread twice a second.
//! - A beat is sent once; what does not arrive is followed by the next.
//!
//! Left to others: what silence means (the owner decides, and only while another client waits).

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use wire::Place;
use wire::message::session::Beat;

use crate::error::Trouble;
use crate::session::Session;
use crate::transport::jobs::Jobs;
use crate::transport::patience::pause_for;

/// Before the first beat, which says when the next one is due: a quarter of the shortest lease.
const FIRST: Duration = Duration::from_millis(500);
/// Between two beats at most, so that a job does not outlive what was held for long.
const MOST: Duration = Duration::from_secs(5);
/// Owners at which a client holds something at a time, each with its thread.
const MOST_OWNERS: usize = 64;

/// What is held, by owner.
#[derive(Debug)]
pub(crate) struct Beats {
    held: Mutex<HashMap<u64, Claims>>,
    jobs: Jobs<'static>,
}

/// What is held at one owner.
#[derive(Debug, Default)]
struct Claims {
    count: usize,
    has_job: bool,
}

impl Default for Beats {
    fn default() -> Beats {
        Beats {
            held: Mutex::default(),
            jobs: Jobs::new("pario-beat", MOST_OWNERS, || ()),
        }
    }
}

/// As long as it lives the owner hears of the client.
#[derive(Debug)]
pub(crate) struct Beating {
    beats: Arc<Beats>,
    owner: u64,
}

impl Beating {
    /// Something is held at an owner.
    pub(crate) fn begin(session: &Arc<Session>, owner: u64) -> Beating {
        let beats = &session.beats;
        let mut held = beats.held.lock();
        let claims = held.entry(owner).or_default();
        claims.count += 1;
        if !claims.has_job {
            let (theirs, of) = (Arc::clone(beats), Arc::downgrade(session));
            let job = Box::new(move || theirs.beat(&of, owner));
            // Without a thread the lock is good all the same, for as long as a lease.
            claims.has_job = beats.jobs.submit(job).is_ok();
        }
        Beating {
            beats: Arc::clone(beats),
            owner,
        }
    }
}

impl Drop for Beating {
    fn drop(&mut self) {
        if let Some(claims) = self.beats.held.lock().get_mut(&self.owner) {
            claims.count -= 1;
        }
    }
}

impl Beats {
    /// Beats until nothing is held.
    fn beat(&self, session: &Weak<Session>, owner: u64) {
        let mut pause = FIRST;
        loop {
            pause_for(pause);
            let mut held = self.held.lock();
            if held.get(&owner).is_none_or(|claims| claims.count == 0) {
                held.remove(&owner);
                return;
            }
            drop(held);
            let Some(session) = session.upgrade() else {
                return;
            };
            pause = match session.beat(owner) {
                Ok(again_ms) => Duration::from_millis(again_ms).clamp(FIRST, MOST),
                Err(Trouble::Refused(..)) => MOST,
                Err(_) => FIRST,
            };
        }
    }
}

impl Session {
    /// Sends one beat; the milliseconds to the next.
    fn beat(&self, owner: u64) -> Result<u64, Trouble> {
        let mut lane = self.lane();
        let place = Place {
            server: owner,
            incarnation: 0,
        };
        let answer = self.server_pipe(&mut lane, place).and_then(|index| {
            let pipe = lane.pipe(index);
            pipe.ask(self.number(), &Beat {})
        });
        if let Err(trouble) = &answer {
            self.heard(trouble);
            if !matches!(trouble, Trouble::Refused(..)) {
                lane.drop_pipe(owner);
            }
        }
        self.give(lane);
        answer
    }
}
