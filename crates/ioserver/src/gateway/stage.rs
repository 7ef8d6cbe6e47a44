//! Memory in which whole requests are put together: a bounded number of stages, lent first come first served.
//!
//! A stage holds one message in view order and its parts as packets, so it is at most twice a message.
//! A thread that waits for one holds nothing that a stage's holder could need. Short requests use a stage of
//! their connection and never wait.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::split::Routes;
use crate::buffers::{Borrower, BufferLoan, Buffers};
use parking_lot::Mutex;

/// Stages beyond this do not make a server faster.
const MOST: u64 = 8;

/// Memory of one request.
#[derive(Default)]
pub(crate) struct Stage {
    /// In view order.
    pub(crate) memory: Vec<u8>,
    pub(crate) routes: Routes,
}

impl Stage {
    /// Memory for so many bytes.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        if self.memory.len() < len {
            self.memory.resize(len, 0);
        }
        &mut self.memory[..len]
    }
}

/// The stages of a server.
pub(crate) struct Stages {
    /// Tickets: the order of arrival is kept by a pool of buffers without bytes.
    turns: Buffers,
    free: Mutex<Vec<Stage>>,
}

/// A stage that goes back when dropped.
pub(crate) struct StageLoan<'a> {
    stages: &'a Stages,
    stage: Option<Stage>,
    _turn: BufferLoan<'a>,
}

impl Stages {
    /// As many as fit twice a message into `total_bytes`; at least one.
    pub(crate) fn new(message_bytes: u64, total_bytes: u64, patience: Duration) -> Stages {
        let count = (total_bytes / message_bytes.saturating_mul(2).max(1)).clamp(1, MOST);
        Stages {
            turns: Buffers::new(1, count, patience),
            free: Mutex::default(),
        }
    }

    /// A stage, when it is this caller's turn.
    pub(crate) fn borrow(&self, borrower: &Borrower) -> StageLoan<'_> {
        let (turn, _) = self.turns.borrow(borrower);
        let stage = self.free.lock().pop().unwrap_or_default();
        StageLoan {
            stages: self,
            stage: Some(stage),
            _turn: turn,
        }
    }
}

impl Drop for StageLoan<'_> {
    fn drop(&mut self) {
        self.stages.free.lock().extend(self.stage.take());
    }
}

impl Deref for StageLoan<'_> {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        self.stage.as_ref().expect("until it is dropped")
    }
}

impl DerefMut for StageLoan<'_> {
    fn deref_mut(&mut self) -> &mut Stage {
        self.stage.as_mut().expect("until it is dropped")
    }
}
