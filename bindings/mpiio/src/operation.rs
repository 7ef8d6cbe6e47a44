//! One access: which bytes of the view, which memory, which way, alone or together.
//!
//! An operation is made by the thread of the program that calls MPI, with everything that has to be asked of
//! the host ([`Operation::prepare`]); then it can be run by any thread.
//!
//! Invariants
//! - What is wrong with the arguments is found before a pointer moves.
//! - Pointers move when the operation is made, by what was asked for.
//! - A process whose arguments are wrong takes part in a collective operation with nothing
//!   ([`Operation::nothing`]), so that the others do not wait for it.

use std::sync::Arc;

pub(crate) use client::Direction;
use client::Team;

use crate::datatype;
use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{Address, Word};
use crate::memory::Memory;
use crate::open_file::OpenFile;
use crate::view::CurrentView;

/// Where an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At an offset in etypes of the view.
    Explicit(i64),
    /// At the pointer of this process.
    Individual,
    /// At the shared pointer, in the order in which processes come.
    Shared,
    /// At the shared pointer, in the order of ranks; all take part.
    Ordered,
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
    /// Makes a collective operation of the arguments of a call and moves the pointer that it uses. With
    /// [`Start::Ordered`] it waits for the others.
    pub(crate) fn prepare(
        call: &Call,
        direction: Direction,
        start: Start,
        (buf, count, datatype): (Address, i64, Word),
    ) -> Outcome<Operation> {
        let file = &call.file;
        let checked = Self::check(call, direction, start, (buf, count, datatype));
        if start == Start::Ordered {
            return Self::order(call, direction, checked);
        }
        let (view, memory) = checked?;
        let at = begin(file, &view, start, memory.size())?;
        Ok(Operation {
            file: Arc::clone(file),
            view,
            direction,
            at,
            memory,
            is_collective: true,
        })
    }

    /// An operation of this process alone.
    pub(crate) fn prepare_alone(
        call: &Call,
        direction: Direction,
        start: Start,
        memory: (Address, i64, Word),
    ) -> Outcome<Operation> {
        Ok(Operation {
            is_collective: false,
            ..Operation::prepare(call, direction, start, memory)?
        })
    }

    /// Makes an operation of this process alone and runs it at once; how many bytes of the program's were moved. Short
    /// accesses come this way: nothing is kept that the call does not need.
    #[inline]
    pub(crate) fn alone(
        call: &Call,
        direction: Direction,
        start: Start,
        memory: (Address, i64, Word),
    ) -> Outcome<u64> {
        let file = &call.file;
        let (view, memory) = Self::check(call, direction, start, memory)?;
        let at = begin(file, &view, start, memory.size())?;
        if view.scattered.is_none() {
            let moved = move_alone(file, direction, at, &memory)?;
            return memory.finish(moved);
        }
        let operation = Operation {
            file: Arc::clone(file),
            view,
            direction,
            at,
            memory,
            is_collective: false,
        };
        operation.run(&file.driven)
    }

    /// An operation without bytes.
    pub(crate) fn nothing(call: &Call, direction: Direction) -> Operation {
        Operation {
            file: Arc::clone(&call.file),
            view: call.file.current(),
            direction,
            at: 0,
            memory: Memory::nothing(),
            is_collective: true,
        }
    }

    /// What can be wrong before anything moves.
    fn check(
        call: &Call,
        direction: Direction,
        start: Start,
        (buf, count, datatype): (Address, i64, Word),
    ) -> Outcome<(Arc<CurrentView>, Memory)> {
        let file = &call.file;
        file.check_direction(direction)?;
        file.check_start(start)?;
        if count < 0 {
            let text = format!("count is {count}; give 0 or more");
            return Err(Failure::new(Class::Count, text));
        }
        let view = file.current();
        let handle = datatype;
        let datatype = datatype::lent(call.host, handle)?;
        let count = count.unsigned_abs();
        let memory = Memory::new(buf, count, &datatype, handle, &view, direction)?;
        // A division is dear, and bytes are the usual etype.
        if view.etype_bytes != 1 && !memory.size().is_multiple_of(view.etype_bytes) {
            return Err(Failure::new(
                Class::Io,
                format!(
                    "{} bytes are no whole number of etypes, which have {}; count and datatype have to fit the view",
                    memory.size(),
                    view.etype_bytes
                ),
            ));
        }
        if let Start::Explicit(offset) = start {
            view_offset(&view, offset)?;
        }
        Ok((view, memory))
    }

    /// Gives each rank its part behind the shared pointer.
    fn order(
        call: &Call,
        direction: Direction,
        checked: Outcome<(Arc<CurrentView>, Memory)>,
    ) -> Outcome<Operation> {
        let file = &call.file;
        let size = checked.as_ref().map_or(0, |(_, memory)| memory.size());
        let sizes = file.driven.allgather(&size.to_le_bytes())?;
        let sizes: Vec<u64> = sizes.iter().map(|bytes| number(bytes)).collect();
        let total = sizes.iter().sum();
        let moved = match file.driven.rank() {
            0 => file.file.advance_shared(total).map(Some),
            _ => Ok(None),
        };
        let said = match &moved {
            Ok(Some(at)) => at.to_le_bytes().to_vec(),
            Ok(None) | Err(_) => Vec::new(),
        };
        let all = file.driven.allgather(&said)?;
        let (view, memory) = checked?;
        moved?;
        if all[0].is_empty() {
            return Err(Failure::new(
                Class::Io,
                "rank 0 could not move the shared pointer",
            ));
        }
        let before: u64 = sizes[..file.driven.rank()].iter().sum();
        Ok(Operation {
            file: Arc::clone(file),
            view,
            direction,
            at: number(&all[0]) + before,
            memory,
            is_collective: true,
        })
    }

    /// Whether it has to run on the thread of the program: a conversion of the program's own takes part.
    pub(crate) fn needs_caller(&self) -> bool {
        self.memory.needs_caller()
    }

    /// Whether it waits for the other processes.
    pub(crate) fn needs_others(&self) -> bool {
        self.is_collective
            && self.view.is_together
            && self.file.team.size() > 1
            && self.file.file.is_exchanging()
    }

    /// Moves the bytes; how many of the program's were moved. `team` is the member that waits the way this thread has to.
    pub(crate) fn run(&self, team: &Team) -> Outcome<u64> {
        if let Some(view) = &self.view.scattered {
            let pieces = view.pieces(self.at..self.at + self.memory.size())?;
            let memory = self.memory.of_request(self.direction)?;
            let moved = self.file.file.access_in_pieces(pieces, memory)?;
            return self.memory.finish(moved);
        }
        let moved = match self.is_collective && self.view.is_together {
            true => {
                let memory = self.memory.of_request(self.direction)?;
                self.file.file.access_at_all(team, self.at, memory)? as u64
            }
            false => move_alone(&self.file, self.direction, self.at, &self.memory)?,
        };
        self.memory.finish(moved)
    }
}

/// Where an access begins, in bytes of the view. Moves the pointer that it uses.
#[inline]
fn begin(file: &OpenFile, view: &CurrentView, start: Start, bytes: u64) -> Outcome<u64> {
    match start {
        Start::Explicit(offset) => view_offset(view, offset),
        Start::Individual => {
            let offset = file.advance(bytes / view.etype_bytes);
            // What begins inside the file but ends beyond all offsets is refused by `client`.
            offset.checked_mul(view.etype_bytes).ok_or_else(too_far)
        }
        Start::Shared | Start::Ordered => Ok(file.file.advance_shared(bytes)?),
    }
}

/// Moves the bytes of an access of this process alone; how many of the view's.
#[inline]
fn move_alone(file: &OpenFile, direction: Direction, at: u64, memory: &Memory) -> Outcome<u64> {
    let moved = file.file.access_at(at, memory.of_request(direction)?)?;
    Ok(moved as u64)
}

/// A number that a rank told.
fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    let len = bytes.len().min(8);
    all[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(all)
}

/// An offset in etypes as bytes of the view.
pub(crate) fn view_offset(view: &CurrentView, offset: i64) -> Outcome<u64> {
    let etypes = u64::try_from(offset).map_err(|_| {
        Failure::new(
            Class::Arg,
            format!("offset is {offset}; give 0 or more etypes"),
        )
    })?;
    etypes.checked_mul(view.etype_bytes).ok_or_else(too_far)
}

fn too_far() -> Failure {
    Failure::new(Class::Arg, "the offset is beyond 2^63 - 1 bytes")
}
