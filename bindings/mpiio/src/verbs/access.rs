//! Blocking access with explicit offsets and the individual pointer, alone and together.
//!
//! See the table of the standard for which functions these are.

use crate::entry::{Call, Outcome};
use crate::ffi::{Address, StatusOut, Word};
use crate::operation::{Direction, Operation, Start};
use crate::requests;

/// One access of this process alone.
pub(super) fn alone(
    call: &Call,
    direction: Direction,
    start: Start,
    memory: (Address, i64, Word),
    status: StatusOut,
) -> Outcome {
    let moved = Operation::alone(call, direction, start, memory)?;
    call.host.set_status(status, moved)
}

/// One access of all processes.
pub(super) fn together(
    call: &Call,
    direction: Direction,
    start: Start,
    memory: (Address, i64, Word),
    status: StatusOut,
) -> Outcome {
    call.file.check_no_split()?;
    requests::take_turn(&call.file);
    let prepared = Operation::prepare(call, direction, start, memory);
    let operation = match prepared {
        Ok(operation) => operation,
        Err(failure) => {
            // The others must not wait for this process; what they report is theirs.
            let _ = Operation::nothing(call, direction).run(&call.file.driven);
            return Err(failure);
        }
    };
    let moved = operation.run(&call.file.driven)?;
    call.host.set_status(status, moved)
}

/// The functions of one kind, by the type of their last argument: name, who, which way, from where.
macro_rules! accesses {
    ($last:ty: $($name:ident $who:ident $direction:ident $start:ident;)*) => {$(
        #[doc = concat!("`MPI_File_", stringify!($name), "`.")]
        pub(crate) fn $name(
            call: &Call,
            buf: Address,
            count: i64,
            datatype: Word,
            last: $last,
        ) -> Outcome {
            $who(call, Direction::$direction, Start::$start, (buf, count, datatype), last)
        }
    )*};
}
pub(super) use accesses;

/// Calls that take an offset.
macro_rules! explicit {
    ($last:ty: $($name:ident $who:ident $direction:ident;)*) => {$(
        #[doc = concat!("`MPI_File_", stringify!($name), "`.")]
        pub(crate) fn $name(
            call: &Call,
            offset: i64,
            buf: Address,
            count: i64,
            datatype: Word,
            last: $last,
        ) -> Outcome {
            let start = Start::Explicit(offset);
            $who(call, Direction::$direction, start, (buf, count, datatype), last)
        }
    )*};
}
pub(super) use explicit;

explicit! { StatusOut:
    read_at alone Read;
    read_at_all together Read;
    write_at alone Write;
    write_at_all together Write;
}

accesses! { StatusOut:
    read alone Read Individual;
    read_all together Read Individual;
    write alone Write Individual;
    write_all together Write Individual;
}
