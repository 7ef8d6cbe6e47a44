//! Reading and writing at once: plain, through descriptors, and inserting.
//!
//! Left to others: what a descriptor shows (`pattern`), the pointer and how an access went (`state`).

use std::ffi::c_int;
use std::sync::Arc;

use border::entry::{Failure, Outcome};
use border::ffi::{Address, ConstAddress};
use client::{Direction, Status};

use crate::answer::{Number, code, not_negative, yes};
use crate::descriptor::Descriptor;
use crate::pattern::{Buffer, Pattern};
use crate::state::{Last, OpenFile, Position, file_of};

/// A count of bytes as memory has them.
fn bytes_of(name: &'static str, count: u64) -> Outcome<usize> {
    usize::try_from(count).map_err(|_| Failure::argument(name, "is more than memory has"))
}

/// Memory of an argument, to be read into or to be written.
pub(crate) trait Argument: Copy {
    fn buffer(self, count: u64) -> Outcome<Buffer>;
}

impl Argument for Address {
    fn buffer(self, count: u64) -> Outcome<Buffer> {
        Ok(Buffer::Into(self.target("buf", bytes_of("count", count)?)?))
    }
}

impl Argument for ConstAddress {
    fn buffer(self, count: u64) -> Outcome<Buffer> {
        Ok(Buffer::From(self.source("buf", bytes_of("count", count)?)?))
    }
}

/// What an access through a descriptor needs: the file, what is seen of it, and memory.
pub(crate) struct StructAccess {
    pub(crate) opened: Arc<OpenFile>,
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) buffer: Buffer,
    pub(crate) position: Position,
}

impl StructAccess {
    pub(crate) fn new<N: Number>(
        fid: c_int,
        buffer: impl Argument,
        len: N,
        desc: Descriptor<N>,
        offset: N,
        at: N,
    ) -> Outcome<StructAccess> {
        let opened = file_of(fid)?;
        let displacement = not_negative("offset", offset.into())?;
        let position = Position::of("at", at.into())?;
        let pattern = opened.pattern(displacement, desc.get()?)?;
        let len = match not_negative("len", len.into())? {
            0 => pattern.actual(),
            len => len,
        };
        Ok(StructAccess {
            buffer: buffer.buffer(len)?,
            opened,
            pattern,
            position,
        })
    }
}

fn plain(fid: c_int, buffer: impl Argument, count: i64, offset: i64) -> Outcome {
    let opened = file_of(fid)?;
    let buffer = buffer.buffer(not_negative("count", count)?)?;
    let position = Position::of("offset", offset)?;
    opened.access(position, &Pattern::WHOLE, buffer)
}

fn structured<N: Number>(
    fid: c_int,
    buffer: impl Argument,
    len: N,
    desc: Descriptor<N>,
    offset: N,
    at: N,
) -> Outcome {
    let access = StructAccess::new(fid, buffer, len, desc, offset, at)?;
    access
        .opened
        .access(access.position, &access.pattern, access.buffer)
}

fn insert(fid: c_int, buffer: ConstAddress, count: i64, offset: i64) -> Outcome {
    let opened = file_of(fid)?;
    let count = not_negative("count", count)?;
    let bytes = buffer.slice("buf", bytes_of("count", count)?)?;
    let outcome = match Position::of("offset", offset)? {
        Position::At(at) => opened.file.insert_at(at, bytes),
        Position::Pointer => {
            let mut pointer = opened.pointer.lock();
            let inserted = opened.file.insert_at(*pointer, bytes);
            if inserted.is_ok() {
                *pointer += count;
            }
            inserted
        }
    };
    let outcome = outcome.map(|()| count).map_err(Failure::from);
    *opened.last.lock() = Last::new(Direction::Write, count, &outcome);
    outcome.map(drop)
}

macro_rules! plain_calls {
    ($($(#[$doc:meta])* $name:ident($of:ty, $number:ty);)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(fid: c_int, buf: $of, count: $number, offset: $number) -> bool {
            yes(stringify!($name), || plain(fid, buf, count.into(), offset.into()))
        }
    )*};
}

plain_calls! {
    /// Reads bytes.
    ViPIOS_Read(Address, i32);
    /// Reads bytes.
    ViPIOS_Read64(Address, i64);
    /// Writes bytes.
    ViPIOS_Write(ConstAddress, i32);
    /// Writes bytes.
    ViPIOS_Write64(ConstAddress, i64);
}

macro_rules! struct_calls {
    ($($(#[$doc:meta])* $name:ident($of:ty, $number:ty);)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            fid: c_int,
            buf: $of,
            len: $number,
            desc: Descriptor<$number>,
            offset: $number,
            at: $number,
        ) -> c_int {
            code(stringify!($name), || structured(fid, buf, len, desc, offset, at))
        }
    )*};
}

struct_calls! {
    /// Reads bytes that a descriptor shows.
    ViPIOS_Read_struct(Address, i32);
    /// Reads bytes that a descriptor shows.
    ViPIOS_Read_struct64(Address, i64);
    /// Writes bytes that a descriptor shows.
    ViPIOS_Write_struct(ConstAddress, i32);
    /// Writes bytes that a descriptor shows.
    ViPIOS_Write_struct64(ConstAddress, i64);
}

/// Inserts bytes; what was there moves behind them.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Insert(fid: c_int, buf: ConstAddress, count: i32, offset: i32) -> c_int {
    code("ViPIOS_Insert", || {
        insert(fid, buf, count.into(), offset.into())
    })
}

/// Inserts bytes; what was there moves behind them.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Insert64(fid: c_int, buf: ConstAddress, count: i64, offset: i64) -> c_int {
    code("ViPIOS_Insert64", || insert(fid, buf, count, offset))
}

/// A request is not done.
pub(crate) fn not_done(number: c_int) -> Failure {
    let text = format!("request {number} is not done; wait for it");
    Failure::new(Status::Busy, text)
}
