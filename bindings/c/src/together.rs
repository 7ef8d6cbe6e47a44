//! Reading and writing together: all members of a team call, each at an offset of its own view.
//!
//! Invariants
//! - A member whose memory is refused takes part all the same, with nothing: nobody waits for it.
//! - Operations of a team run in the order of the calls, those beside the program too.

use std::ffi::c_int;
use std::sync::Arc;

use client::{Direction, Memory, Places, SharedBytes, SharedBytesMut};

use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Address, ConstAddress, Out};
use crate::open::OpenFile;
use crate::patterns::Pattern;
use crate::requests::{OperationMark, Request, Subject, begin};
use crate::table::Handle;
use crate::teams::Member;

/// Takes part in an access of the team with no memory, so that nobody waits for this member.
fn refuse(
    file: &OpenFile,
    member: &Member,
    offset: u64,
    direction: Direction,
    why: Failure,
) -> Outcome<u64> {
    let places = Places::bytes(1);
    // One byte where there is none: refused, as any other memory that is wrong.
    let said = match direction {
        Direction::Write => {
            let none = SharedBytes::from_slice(&[]);
            file.file
                .write_at_all(&member.team, offset, none, 0, &places)
        }
        Direction::Read => {
            let none = SharedBytesMut::from_slice(&mut []);
            file.file
                .read_at_all(&member.team, offset, none, 0, &places)
        }
    };
    said.map_or(Err(why.clone()), |_| Err(why))
}

/// Reads or writes with the team.
fn access(
    file: &OpenFile,
    member: &Member,
    offset: u64,
    direction: Direction,
    memory: Outcome<Memory<'_>>,
) -> Outcome<u64> {
    match memory {
        Ok(memory) => Ok(file.file.access_at_all(&member.team, offset, memory)? as u64),
        Err(why) => refuse(file, member, offset, direction, why),
    }
}

/// Runs an access in the caller's thread.
fn now(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    moved: Out<u64>,
    work: impl FnOnce(&OpenFile, &Member) -> Outcome<u64>,
) -> Outcome {
    moved.set(0);
    let (opened, member) = (file.get()?, team.get()?);
    member.wait();
    moved.set(work(&opened, &member)?);
    Ok(())
}

/// Runs an access beside the program.
fn beside(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    request: Out<Handle<Request>>,
    work: impl FnOnce(&OpenFile, &Member) -> Outcome<u64> + Send + 'static,
) -> Outcome {
    request.required("request")?.set(Handle::NULL);
    let member = team.get()?;
    let (opened, counted) = file.with(|opened| {
        let counted = OperationMark::new(Subject::File(Arc::clone(opened)), Some(&member));
        Ok((Arc::clone(opened), counted))
    })?;
    let mine = Arc::clone(&member);
    let work = Box::new(move || work(&opened, &mine));
    begin(request, file.owner()?, counted, &member.queue, work)
}

/// Reads together.
#[unsafe(no_mangle)]
extern "C" fn pario_read_at_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    offset: u64,
    buffer: Address,
    bytes: usize,
    moved: Out<u64>,
) -> c_int {
    answer("pario_read_at_all", || {
        now(file, team, moved, |opened, member| {
            let places = Places::bytes(bytes as u64);
            let memory = buffer.target("buffer", bytes);
            let memory = memory.and_then(|m| Ok(Memory::target(m, 0, &places)?));
            access(opened, member, offset, Direction::Read, memory)
        })
    })
}

/// Writes together.
#[unsafe(no_mangle)]
extern "C" fn pario_write_at_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    offset: u64,
    buffer: ConstAddress,
    bytes: usize,
    moved: Out<u64>,
) -> c_int {
    answer("pario_write_at_all", || {
        now(file, team, moved, |opened, member| {
            let places = Places::bytes(bytes as u64);
            let memory = buffer.source("buffer", bytes);
            let memory = memory.and_then(|m| Ok(Memory::source(m, 0, &places)?));
            access(opened, member, offset, Direction::Write, memory)
        })
    })
}

/// Reads together into memory that a pattern describes.
#[unsafe(no_mangle)]
extern "C" fn pario_read_pattern_at_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    offset: u64,
    base: Address,
    pattern: Handle<Pattern>,
    count: u64,
    moved: Out<u64>,
) -> c_int {
    answer("pario_read_pattern_at_all", || {
        now(file, team, moved, |opened, member| {
            let places = pattern.get().and_then(|pattern| pattern.places(count));
            let memory = places.as_ref().map_err(Failure::clone);
            let memory = memory.and_then(|places| places.target(base));
            access(opened, member, offset, Direction::Read, memory)
        })
    })
}

/// Writes together from memory that a pattern describes.
#[unsafe(no_mangle)]
extern "C" fn pario_write_pattern_at_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    offset: u64,
    base: ConstAddress,
    pattern: Handle<Pattern>,
    count: u64,
    moved: Out<u64>,
) -> c_int {
    answer("pario_write_pattern_at_all", || {
        now(file, team, moved, |opened, member| {
            let places = pattern.get().and_then(|pattern| pattern.places(count));
            let memory = places.as_ref().map_err(Failure::clone);
            let memory = memory.and_then(|places| places.source(base));
            access(opened, member, offset, Direction::Write, memory)
        })
    })
}

/// Begins to read together.
#[unsafe(no_mangle)]
extern "C" fn pario_iread_at_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    offset: u64,
    buffer: Address,
    bytes: usize,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iread_at_all", || {
        beside(file, team, request, move |opened, member| {
            let places = Places::bytes(bytes as u64);
            let memory = buffer.target("buffer", bytes);
            let memory = memory.and_then(|m| Ok(Memory::target(m, 0, &places)?));
            access(opened, member, offset, Direction::Read, memory)
        })
    })
}

/// Begins to write together.
#[unsafe(no_mangle)]
extern "C" fn pario_iwrite_at_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    offset: u64,
    buffer: ConstAddress,
    bytes: usize,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iwrite_at_all", || {
        beside(file, team, request, move |opened, member| {
            let places = Places::bytes(bytes as u64);
            let memory = buffer.source("buffer", bytes);
            let memory = memory.and_then(|m| Ok(Memory::source(m, 0, &places)?));
            access(opened, member, offset, Direction::Write, memory)
        })
    })
}

/// Begins to read together into memory that a pattern describes.
#[unsafe(no_mangle)]
extern "C" fn pario_iread_pattern_at_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    offset: u64,
    base: Address,
    pattern: Handle<Pattern>,
    count: u64,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iread_pattern_at_all", || {
        let places = pattern.get().and_then(|pattern| pattern.places(count));
        beside(file, team, request, move |opened, member| {
            let memory = places.as_ref().map_err(Failure::clone);
            let memory = memory.and_then(|places| places.target(base));
            access(opened, member, offset, Direction::Read, memory)
        })
    })
}

/// Begins to write together from memory that a pattern describes.
#[unsafe(no_mangle)]
extern "C" fn pario_iwrite_pattern_at_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    offset: u64,
    base: ConstAddress,
    pattern: Handle<Pattern>,
    count: u64,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_iwrite_pattern_at_all", || {
        let places = pattern.get().and_then(|pattern| pattern.places(count));
        beside(file, team, request, move |opened, member| {
            let memory = places.as_ref().map_err(Failure::clone);
            let memory = memory.and_then(|places| places.source(base));
            access(opened, member, offset, Direction::Write, memory)
        })
    })
}
