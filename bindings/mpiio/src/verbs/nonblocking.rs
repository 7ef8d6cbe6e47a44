//! Access that begins now and is completed by a request.
//!
//! Arguments are checked and pointers move at the call. See the table of the standard for which functions these are.

use crate::entry::{Call, Outcome};
use crate::ffi::{Address, HandleOut, Word};
use crate::operation::{Direction, Operation, Start};
use crate::requests;

/// One access of this process alone.
fn alone(
    call: &Call,
    direction: Direction,
    start: Start,
    memory: (Address, i64, Word),
    request: HandleOut,
) -> Outcome {
    request.set(call.host.abi.request_null);
    let operation = Operation::prepare(call, direction, start, memory, false)?;
    requests::start(call, operation, request)
}

/// One access of all processes.
fn together(
    call: &Call,
    direction: Direction,
    start: Start,
    memory: (Address, i64, Word),
    request: HandleOut,
) -> Outcome {
    request.set(call.host.abi.request_null);
    call.file.check_no_split()?;
    match Operation::prepare(call, direction, start, memory, true) {
        Ok(operation) => requests::start(call, operation, request),
        Err(failure) => {
            requests::take_part_with_nothing(Operation::nothing(call, direction));
            Err(failure)
        }
    }
}

/// The functions of one kind: name, who, which way, from where.
macro_rules! accesses {
    ($($name:ident $who:ident $direction:ident $start:ident;)*) => {$(
        #[doc = concat!("`MPI_File_", stringify!($name), "`.")]
        pub(crate) fn $name(
            call: &Call,
            buf: Address,
            count: i64,
            datatype: Word,
            request: HandleOut,
        ) -> Outcome {
            $who(call, Direction::$direction, Start::$start, (buf, count, datatype), request)
        }
    )*};
}

/// Calls that take an offset.
macro_rules! explicit {
    ($($name:ident $who:ident $direction:ident;)*) => {$(
        #[doc = concat!("`MPI_File_", stringify!($name), "`.")]
        pub(crate) fn $name(
            call: &Call,
            offset: i64,
            buf: Address,
            count: i64,
            datatype: Word,
            request: HandleOut,
        ) -> Outcome {
            let start = Start::Explicit(offset);
            $who(call, Direction::$direction, start, (buf, count, datatype), request)
        }
    )*};
}

explicit! {
    iread_at alone Read;
    iread_at_all together Read;
    iwrite_at alone Write;
    iwrite_at_all together Write;
}

accesses! {
    iread alone Read Individual;
    iread_all together Read Individual;
    iwrite alone Write Individual;
    iwrite_all together Write Individual;
    iread_shared alone Read Shared;
    iwrite_shared alone Write Shared;
}
