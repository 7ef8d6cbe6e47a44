//! Work that a message may cause before bytes move: searching for bytes that a view shares with a subfile.
//!
//! A view of some dozen bytes may describe 2^60 runs, or meet a subfile once in a thousand years. Where the meeting
//! is symbolic that costs nothing. Where it is lazy the server walks it, so the walk is paid for: by the bytes that
//! the request moves, by the bytes that describe the view, and by a fixed number of steps
//! ([`Limits::search_steps`](crate::Limits)). Above that the request is refused.
//!
//! Invariants
//! - Counting comes first and is bounded; everything after it walks ranges that were counted, so costs no more than
//!   a few times as much.
//! - What is counted stops above what the request says, however much its range has.
//! - While it searches the server looks every few thousand steps whether the client is still there, in the middle of one
//!   search too; a client that is gone, fenced or hurried takes its request with it. So does a server that stops: it ends
//!   the connections.
//!
//! Left to others: what a refusal means to the client.

use std::ops::Range;

use falls::{OutOfSteps, Steps, Watch};
use kernels::Share;
use wire::Status;

use crate::refused::Refused;
use crate::sessions::Connection;

/// Steps that one byte of a request pays for.
const PER_BYTE: u64 = 16;
/// Steps that one byte of a description pays for: a list of members may be walked a few times.
const PER_DESCRIBED: u64 = 8;

impl Watch for Connection {
    fn goes_on(&self) -> bool {
        self.is_open()
    }
}

/// Steps of one request, and who it is for.
pub(crate) struct Search<'a> {
    steps: Steps<'a>,
    given: u64,
    connection: Option<&'a Connection>,
}

impl<'a> Search<'a> {
    /// For a request that moves so many bytes through a view of so many bytes; `base` is what every request has.
    pub(crate) fn new(
        base: u64,
        bytes: u64,
        described: u64,
        connection: Option<&'a Connection>,
    ) -> Search<'a> {
        let paid = bytes.saturating_mul(PER_BYTE);
        let paid = paid.saturating_add(described.saturating_mul(PER_DESCRIBED));
        let given = base.saturating_add(paid);
        // What one search looks at before it finds a byte is not paid for by the bytes behind it.
        let one = base.saturating_add(described.saturating_mul(2));
        let steps = Steps::new(given).with_search(one);
        Search {
            steps: match connection {
                Some(connection) => steps.watched(connection),
                None => steps,
            },
            given,
            connection,
        }
    }

    /// Why a search has ended that found nothing out.
    fn ended(&self) -> Refused {
        if self.connection.is_some_and(|c| !c.is_open()) {
            return gone();
        }
        Refused::new(
            Status::TooLarge,
            format!(
                "the view meets the layout of the file too irregularly: finding its bytes takes more than the {} \
                 steps that the request pays for; give the view a period that has a small common multiple with \
                 that of the layout, or start the server with more --search-steps",
                self.given
            ),
        )
    }

    /// Bytes of a share in a file range, or some number above `most`.
    pub(crate) fn count(
        &mut self,
        share: &Share,
        file: Range<u64>,
        most: u64,
    ) -> Result<u64, Refused> {
        if share.is_symbolic() {
            return Ok(share.count(file));
        }
        let mut runs = share.meeting().runs(file);
        let mut sum = 0u64;
        while sum <= most {
            match runs.next_within(&mut self.steps) {
                Ok(Some(run)) => sum = sum.saturating_add(run.len),
                Ok(None) => break,
                Err(OutOfSteps) => return Err(self.ended()),
            }
        }
        Ok(sum)
    }

    /// The first byte of a share in a file range.
    pub(crate) fn first(
        &mut self,
        share: &Share,
        file: Range<u64>,
    ) -> Result<Option<u64>, Refused> {
        if share.is_symbolic() {
            return Ok(share.first(file));
        }
        share
            .first_within(file, &mut self.steps)
            .map_err(|OutOfSteps| self.ended())
    }
}

fn gone() -> Refused {
    Refused::new(
        Status::Unreachable,
        "the connection ended while the bytes of the request were looked for",
    )
}

/// Between the windows of a long access: whether its client still waits for it.
pub(crate) struct Patience<'a> {
    connection: &'a Connection,
    until_look: u32,
}

impl<'a> Patience<'a> {
    /// Windows between two looks: a look is a call of the system, and most accesses have few windows.
    const EVERY: u32 = 64;

    pub(crate) fn new(connection: &'a Connection) -> Patience<'a> {
        Patience {
            connection,
            until_look: Patience::EVERY,
        }
    }

    /// One more window.
    pub(crate) fn window(&mut self) -> Result<(), Refused> {
        self.until_look -= 1;
        if self.until_look > 0 {
            return Ok(());
        }
        self.until_look = Patience::EVERY;
        match self.connection.is_open() {
            true => Ok(()),
            false => Err(gone()),
        }
    }
}
