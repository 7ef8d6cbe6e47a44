//! Access that begins now and is completed by a request.
//!
//! Arguments are checked and pointers move at the call. See the table of the standard for which functions these are.

use super::access::{accesses, explicit};
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
    let operation = Operation::prepare_alone(call, direction, start, memory)?;
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
    match Operation::prepare(call, direction, start, memory) {
        Ok(operation) => requests::start(call, operation, request),
        Err(failure) => {
            requests::take_part_with_nothing(Operation::nothing(call, direction));
            Err(failure)
        }
    }
}

explicit! { HandleOut:
    iread_at alone Read;
    iread_at_all together Read;
    iwrite_at alone Write;
    iwrite_at_all together Write;
}

accesses! { HandleOut:
    iread alone Read Individual;
    iread_all together Read Individual;
    iwrite alone Write Individual;
    iwrite_all together Write Individual;
    iread_shared alone Read Shared;
    iwrite_shared alone Write Shared;
}
