//! One access: which bytes of the view, which memory, which way, alone or together.
//!
//! An operation is made by the thread of the program that calls MPI, with everything that has to be asked of
//! the host; then it can be run by any thread.

use std::sync::Arc;

use client::Team;

use crate::entry::Outcome;
use crate::memory::Memory;
use crate::open_file::OpenFile;
use crate::view::CurrentView;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// An access that is ready to run.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) view: Arc<CurrentView>,
    pub(crate) direction: Direction,
    /// Where it begins, in bytes of the view.
    pub(crate) at: u64,
    pub(crate) memory: Memory,
    /// Whether all members of the team take part.
    pub(crate) is_collective: bool,
}

impl Operation {
    /// Moves the bytes; how many of the program's were moved. `team` is the member that waits the way this thread has to.
    pub(crate) fn run(&self, _team: &Team) -> Outcome<u64> {
        let file = &self.file.file;
        let places = self.memory.places();
        let moved = match (self.direction, self.is_collective) {
            (Direction::Read, false) => {
                let (target, origin) = self.memory.target();
                file.read_at_memory(self.at, target, origin, places)?
            }
            (Direction::Read, true) => {
                let (target, origin) = self.memory.target();
                file.read_at_memory(self.at, target, origin, places)?
            }
            (Direction::Write, false) => {
                let (source, origin) = self.memory.source();
                file.write_at_memory(self.at, source, origin, places)?
            }
            (Direction::Write, true) => {
                let (source, origin) = self.memory.source();
                file.write_at_memory(self.at, source, origin, places)?
            }
        };
        Ok(moved as u64)
    }
}
