//! Stamps of answers: for how long a client of this host may go on believing what it was told about names and attributes.
//!
//! ```text
//!  change    begin: slots odd -> commit -> end: slots even, number of the commit
//!  answer    last commit -> snapshot -> all that it depends on -> what stands in the slots; given out if none is later
//! ```
//!
//! Clients on this host map the slots and compare; nobody is told anything, so nobody is waited for. Clients elsewhere are told of
//! slots that they were given stamps of, and the commit waits until they have heard, or until they believe nothing any more by
//! themselves; a start that follows one that told them waits for that too (`elsewhere`). Where there is a directory behind the catalogue nothing has stamps: names change there without a commit here.
//!
//! Left to others: what the numbers mean (`control::stamps`), who is told what (`control::recalls`), the memory (`direct`), what
//! depends on what (`meta`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use control::recalls::{LYING_MS, Recalls, VALID_MS};
use control::stamps::{SLOTS, StampKeeper, changed, changing, is_before};
use direct::StampPage;
use meta::catalogue::Trail;
use parking_lot::{Condvar, Mutex};
use serving::{Exchange, Outcome};
use wire::Status;
use wire::message::stamps::{AttachStamps, AwaitRecalls, RecallsAre, Stamp, StampList, StampsAre};

use crate::committer::Refused;
use crate::elsewhere::Mark;
use crate::manager::{Manager, Session};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Stamps {
    page: StampPage,
    start: u64,
    since: Instant,
    recalls: Mutex<Recalls>,
    /// Clients elsewhere may believe what was told by this start or the one before.
    mark: Mark,
    /// Until when they may believe what the one before has told them.
    before_until_ms: u64,
    /// Commits that went on because a client had not heard for so long that it believes nothing any more.
    pub(crate) not_heard: AtomicU64,
    /// There is something to tell, or a client has heard something.
    called: Condvar,
}

impl StampKeeper for Stamps {
    fn begin(&self, slots: &[u32]) {
        let number = self.page.last() + 1;
        for slot in slots {
            self.page.set(*slot, changing(number));
        }
        self.wait_for_clients_elsewhere(slots, changing(number));
    }

    fn end(&self, slots: &[u32]) {
        let number = self.page.last() + 1;
        for slot in slots {
            self.page.set(*slot, changed(number));
        }
        self.page.set_last(number);
    }
}

impl Stamps {
    /// Those of a start of the catalogue, after the one before has ended.
    pub(crate) fn new(start: u64, mark: Mark) -> std::io::Result<Stamps> {
        let page = StampPage::new(SLOTS, start)?;
        let before_until_ms = match mark.is_there() {
            true => VALID_MS,
            false => 0,
        };
        Ok(Stamps {
            mark,
            before_until_ms,
            page,
            start,
            since: Instant::now(),
            recalls: Mutex::new(Recalls::new(start)),
            not_heard: AtomicU64::new(0),
            called: Condvar::new(),
        })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Waits until nobody elsewhere believes anything of these slots.
    fn wait_for_clients_elsewhere(&self, slots: &[u32], stamp: u64) {
        let mut recalls = self.recalls.lock();
        while self.now_ms() < self.before_until_ms {
            let until = self.since + Duration::from_millis(self.before_until_ms);
            self.called.wait_until(&mut recalls, until);
        }
        let awaited = recalls.change(slots, stamp, self.now_ms());
        if awaited.is_empty() {
            return;
        }
        self.called.notify_all();
        while let Some(until_ms) = recalls.waits_until(&awaited, self.now_ms()) {
            let until = self.since + Duration::from_millis(until_ms);
            let holders = recalls.holders();
            self.called.wait_until(&mut recalls, until);
            let is_late = recalls.waits_until(&awaited, self.now_ms()).is_none()
                && recalls.holders() < holders;
            self.not_heard
                .fetch_add(u64::from(is_late), Ordering::Relaxed);
        }
    }

    /// The manager ends, its process may go on: nothing that it has told is believed by clients of this host.
    pub(crate) fn end(&self) {
        let number = self.page.last() + 1;
        for slot in 0..SLOTS {
            self.page.set(slot, changing(number));
        }
        let now_ms = self.now_ms();
        let mut recalls = self.recalls.lock();
        // Drops those who believe nothing any more.
        recalls.change(&[], changing(number), now_ms);
        if now_ms >= self.before_until_ms && recalls.holders() == 0 {
            self.mark.remove();
        }
    }

    /// Stamps of an answer that was read after this commit could be seen; nothing if it may not be so any more.
    fn of(&self, moment: u64, trail: Trail, session: &Session) -> Option<StampList> {
        let slots = trail.slots()?;
        if !session.is_on_socket {
            let client = session.client().ok()?;
            let now_ms = self.now_ms();
            if !self.mark.put() || !self.recalls.lock().hold(client, &slots, now_ms) {
                return None;
            }
        }
        let stamps = slots.into_iter().map(|slot| {
            let stamp = self.page.stamp(slot);
            is_before(stamp, moment).then_some(Stamp { slot, stamp })
        });
        let stamps = stamps.collect::<Option<Vec<Stamp>>>()?;
        let start = self.start;
        Some(StampList { start, stamps })
    }
}

/// When an answer was begun, for its stamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(Option<u64>);

impl Manager {
    /// Now; to be asked before anything of an answer is read.
    pub(crate) fn stamps_moment(&self) -> Moment {
        Moment(self.stamps.as_ref().map(|stamps| stamps.page.last()))
    }

    /// Whether nothing that an answer depends on has changed since it was begun; not if that is not known.
    pub(crate) fn is_unchanged(&self, moment: Moment, trail: &Trail) -> bool {
        let (Some(stamps), Some(number)) = (&self.stamps, moment.0) else {
            return false;
        };
        trail.seen().is_some_and(|slots| {
            let mut slots = slots.iter();
            slots.all(|slot| is_before(stamps.page.stamp(*slot), number))
        })
    }

    /// Stamps of an answer that was begun at a moment; to be asked after all of it was read.
    pub(crate) fn stamped(
        &self,
        session: &Session,
        moment: Moment,
        trail: Trail,
    ) -> Option<StampList> {
        let stamps = self.stamps.as_ref()?;
        stamps.of(moment.0?, trail, session)
    }

    /// Serves [`AwaitRecalls`]: answers when something has changed, or after a while.
    pub(crate) fn await_recalls(
        &self,
        session: &mut Session,
        r: AwaitRecalls,
    ) -> Result<RecallsAre, Refused> {
        let client = session.client()?;
        let stamps = self.stamps.as_ref().ok_or_else(no_stamps)?;
        let mut recalls = stamps.recalls.lock();
        recalls.asked(client, r.heard, stamps.now_ms());
        stamps.called.notify_all();
        let until = Instant::now() + Duration::from_millis(LYING_MS);
        while !recalls.has_news(client) && !self.is_ending() {
            if stamps.called.wait_until(&mut recalls, until).timed_out() {
                break;
            }
        }
        let told = recalls.tell(client).ok_or_else(|| {
            // So late that it holds nothing any more: it begins anew.
            Refused::new(Status::Busy, "the answer comes too late; ask again")
        })?;
        let changed = told.slots.into_iter();
        Ok(RecallsAre {
            start: stamps.start,
            number: told.number,
            is_first: told.is_first,
            changed: changed.map(|(slot, stamp)| Stamp { slot, stamp }).collect(),
            valid_ms: VALID_MS,
        })
    }

    /// Serves [`AttachStamps`].
    pub(crate) fn attach_stamps(&self, session: &Session, exchange: &mut Exchange) -> Outcome {
        let shared = exchange.request::<AttachStamps>().map_err(|e| {
            let text = format!("AttachStamps: {e}");
            Refused::new(Status::Malformed, text)
        });
        let stamps = shared.and_then(|AttachStamps {}| {
            session.client()?;
            let stamps = self.stamps.as_ref().filter(|_| session.is_on_socket);
            stamps.ok_or_else(no_stamps)
        });
        match stamps {
            Ok(stamps) => {
                let bytes = stamps.page.len();
                exchange.answer_with_descriptors(&StampsAre { bytes }, &[stamps.page.descriptor()])
            }
            Err(Refused(status, refusal)) => exchange.refuse(status, &refusal),
        }
    }
}

fn no_stamps() -> Refused {
    Refused::new(
        Status::Unsupported,
        "stamps are shared with clients over a Unix socket, and there are none where a directory is behind the service; ask \
         again each time",
    )
}
