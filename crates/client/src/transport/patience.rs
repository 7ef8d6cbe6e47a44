//! How long and how often something is tried again.
//!
//! Two limits, because two things are waited for: a server that cannot be reached, and one that says
//! it is busy. The first is shared by all operations of the session (`outage`): one that finds a server that was
//! away for as long already tries once more and fails. Pauses begin at a millisecond and double to a tenth of a second; they end by the
//! system's own timer, nothing spins. The third limit counts repairs (a layout fetched, a view
//! registered again) and only keeps a contradicting service from being asked for ever.

use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};

use crate::transport::outage::{Outages, Peer};

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
const MOST_REPAIRS: u32 = 64;

/// What is left of the patience of one operation.
#[derive(Debug)]
pub(crate) struct Patience {
    timeout: Duration,
    busy_timeout: Duration,
    broken_until: Option<Instant>,
    busy_until: Option<Instant>,
    /// Peers that were tried again although they were given up.
    repeated: Vec<Peer>,
    pause: Duration,
    repairs: u32,
    /// Servers for which a capability or a handle was renewed.
    renewed: Vec<u64>,
}

impl Patience {
    /// With a server that cannot be reached, and with one that says it is busy.
    pub(crate) fn new(timeout: Duration, busy_timeout: Duration) -> Patience {
        Patience {
            timeout,
            busy_timeout,
            broken_until: None,
            busy_until: None,
            repeated: Vec::new(),
            pause: FIRST_PAUSE,
            repairs: 0,
            renewed: Vec::new(),
        }
    }

    /// Pauses before a peer that could not be reached is tried again; false when the time since it was last
    /// reached is over.
    pub(crate) fn away(&mut self, outages: &Outages, peer: Peer) -> bool {
        let now = Instant::now();
        let since = outages.failed(peer, now);
        let own = *self.broken_until.get_or_insert(now + self.timeout);
        let is_first = !self.repeated.contains(&peer);
        if is_first {
            self.repeated.push(peer);
        }
        let is_over = outages.is_given_up(peer, now);
        if !is_over && self.wait(now, own.min(since + self.timeout)) {
            return true;
        }
        outages.give_up(peer, now);
        // What failed may have been a connection of earlier: only a new one tells.
        is_first
    }

    /// Pauses before something that failed with a server that is there is tried again; false when the time
    /// is over.
    pub(crate) fn broken(&mut self) -> bool {
        let now = Instant::now();
        let until = *self.broken_until.get_or_insert(now + self.timeout);
        self.wait(now, until)
    }

    /// Pauses before a busy server is asked again; false when the time is over.
    pub(crate) fn busy(&mut self) -> bool {
        let now = Instant::now();
        let until = *self.busy_until.get_or_insert(now + self.busy_timeout);
        self.wait(now, until)
    }

    /// Counts a repair; false when there were too many.
    pub(crate) fn repaired(&mut self) -> bool {
        self.repairs += 1;
        self.repairs <= MOST_REPAIRS
    }

    /// Whether a capability or handle may be renewed because of this server: once.
    pub(crate) fn renewed(&mut self, server: u64) -> bool {
        let is_first = !self.renewed.contains(&server);
        self.renewed.push(server);
        is_first
    }

    fn wait(&mut self, now: Instant, until: Instant) -> bool {
        if now >= until {
            return false;
        }
        let pause = self.pause.min(until - now);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        pause_for(pause);
        true
    }
}

pub(crate) fn pause_for(pause: Duration) {
    let time = Timespec {
        tv_sec: pause.as_secs() as i64,
        tv_nsec: i64::from(pause.subsec_nanos()),
    };
    // An interrupted pause is a short one.
    let _ = poll(&mut [], Some(&time));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_with_one_who_is_away_is_shared() {
        let (timeout, busy) = (Duration::from_millis(20), Duration::from_secs(1));
        let outages = Outages::default();
        let mut first = Patience::new(timeout, busy);
        let started = Instant::now();
        while first.away(&outages, Some(1)) {}
        assert!(started.elapsed() >= timeout);
        // A caller that comes now tries once more, at once, and the other server still has its time.
        let timeout = Duration::from_secs(3600);
        let mut second = Patience::new(timeout, busy);
        assert!(second.away(&outages, Some(1)));
        assert!(!second.away(&outages, Some(1)));
        assert!(second.away(&outages, Some(2)));
        assert!(second.away(&outages, Some(2)));
        outages.ended(Some(1));
        assert!(second.away(&outages, Some(1)));
    }
}
