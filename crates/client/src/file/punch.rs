//! Punching: a range of a file becomes zero and gives its space back.
//!
//! A punch counts as a write of zeros that stays inside the file: it is ordered with other accesses as a write is, a handle in atomic mode takes
//! a lock for it, and what it has done is lost with a server unless it is synced, which `sync` then says.
//!
//! Left to others: which servers are asked, repairs (`handle`), what a server does with it (`ioserver`, `ops/punch`).

use std::ops::Range;

use wire::Rights;
use wire::message::Bytes;
use wire::message::file::{Punch, PunchAnswer};

use crate::access::memory::Direction;
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::handle::Handle;
use crate::session::lane::Lane;

impl File {
    /// Makes a range of the file zero, in bytes of the file whatever the view is, and gives back the space that lies in it. The size
    /// stays; what lies behind it is left alone. Durable with the next [`File::sync`], as a write is.
    ///
    /// Space goes back in the units of the stores, on disks with the next sync; what is left of a unit at either end is
    /// stored as zeros.
    pub fn punch(&self, range: Range<u64>) -> Result<()> {
        self.check_right(Rights::WRITE)?;
        let Range { start, end } = range;
        if start > end || end > falls::MAX_OFFSET {
            let wrong = format!("{start}..{end} must ascend and end at 2^63 - 1 at most");
            return Err(Error::argument("range", wrong));
        }
        self.send_behind();
        if start == end {
            return Ok(());
        }
        let whole = &self.views.whole;
        if !self.is_atomic() {
            let _gate = self.beside();
            return self
                .session
                .with_lane(|lane| self.punch_servers(lane, &range, 0));
        }
        let _gate = self.alone();
        let seen = self.views.current();
        self.session.with_lane(|lane| {
            // Others have to know that this handle writes outside of its view.
            self.admit(lane, whole)?;
            let done = self.guarded(
                lane,
                whole,
                (start, end - start),
                Direction::Write,
                |lane, how| self.punch_servers(lane, &range, how.lease),
            );
            let back = self.admit(lane, &seen);
            done.and(back)
        })
    }
}

impl Handle {
    /// Has all servers of the file clear their part of a range.
    fn punch_servers(&self, lane: &mut Lane, range: &Range<u64>, number: u64) -> Result<()> {
        let whole = &self.views.whole;
        self.void_ahead();
        let make = |view| {
            let state = self.known.state();
            Punch {
                view,
                lo: range.start,
                hi: range.end,
                epoch: self.known.size().epoch,
                number,
                is_through: self.settings.writes_through(),
                version: Bytes(whole.plan(&state).version.clone()),
            }
        };
        let note = |server, punched: PunchAnswer| {
            // A server that had nothing of the range has nothing to lose.
            if punched.verifier != 0 {
                self.unsynced.wrote(server, punched.start, punched.verifier);
            }
        };
        let punched = self.ask_all(lane, whole, make, note);
        self.void_ahead();
        punched
    }
}
