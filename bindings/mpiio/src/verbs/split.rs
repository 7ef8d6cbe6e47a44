//! Split collective access: a call that begins and a call that ends.
//!
//! A handle has one at a time. A second begin, another collective call in between, an end without a begin
//! and an end of another kind are errors of class MPI_ERR_OTHER; a split that has begun stays as it is then.
//! Arguments are checked and pointers move at the begin. The buffer that the end names has to be that of the begin, which is
//! not checked, as elsewhere. See the table of the standard for which functions these are.

use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{Address, StatusOut, Word};
use crate::open_file::Split;
use crate::operation::{Direction, Operation, Start};
use crate::requests::{self, SplitOperation};

fn begin(
    call: &Call,
    name: &'static str,
    direction: Direction,
    start: Start,
    memory: (Address, i64, Word),
) -> Outcome {
    call.file.check_no_split()?;
    if start == Start::Ordered {
        // Ranks tell one another what they want: after all that was begun before.
        requests::take_turn(&call.file);
    }
    let operation = match Operation::prepare(call, direction, start, memory) {
        Ok(operation) => operation,
        Err(failure) => {
            requests::take_part_with_nothing(Operation::nothing(call, direction));
            return Err(failure);
        }
    };
    let running = SplitOperation::start(call, operation)?;
    *call.file.split.lock() = Some(Split { name, running });
    Ok(())
}

fn end(call: &Call, name: &'static str, status: StatusOut) -> Outcome {
    let running = {
        let mut split = call.file.split.lock();
        match &*split {
            Some(begun) if begun.name == name => split.take().map(|begun| begun.running),
            Some(begun) => {
                return Err(Failure::new(
                    Class::Other,
                    format!(
                        "MPI_File_{0}_begin was called, so it ends with MPI_File_{0}_end",
                        begun.name
                    ),
                ));
            }
            None => None,
        }
    };
    let Some(running) = running else {
        return Err(Failure::new(
            Class::Other,
            format!("no split collective operation has begun; call MPI_File_{name}_begin first"),
        ));
    };
    let moved = running.wait()?;
    call.host.set_status(status, moved)
}

/// The functions of one kind: name, its two calls, which way, from where.
macro_rules! accesses {
    ($($name:ident $begin:ident $end:ident $direction:ident $start:ident;)*) => {$(
        #[doc = concat!("`MPI_File_", stringify!($begin), "`.")]
        pub(crate) fn $begin(call: &Call, buf: Address, count: i64, datatype: Word) -> Outcome {
            let memory = (buf, count, datatype);
            begin(call, stringify!($name), Direction::$direction, Start::$start, memory)
        }

        #[doc = concat!("`MPI_File_", stringify!($end), "`.")]
        pub(crate) fn $end(call: &Call, _buf: Address, status: StatusOut) -> Outcome {
            end(call, stringify!($name), status)
        }
    )*};
}

/// Calls that take an offset.
macro_rules! explicit {
    ($($name:ident $begin:ident $end:ident $direction:ident;)*) => {$(
        #[doc = concat!("`MPI_File_", stringify!($begin), "`.")]
        pub(crate) fn $begin(
            call: &Call,
            offset: i64,
            buf: Address,
            count: i64,
            datatype: Word,
        ) -> Outcome {
            let (start, memory) = (Start::Explicit(offset), (buf, count, datatype));
            begin(call, stringify!($name), Direction::$direction, start, memory)
        }

        #[doc = concat!("`MPI_File_", stringify!($end), "`.")]
        pub(crate) fn $end(call: &Call, _buf: Address, status: StatusOut) -> Outcome {
            end(call, stringify!($name), status)
        }
    )*};
}

explicit! {
    read_at_all read_at_all_begin read_at_all_end Read;
    write_at_all write_at_all_begin write_at_all_end Write;
}

accesses! {
    read_all read_all_begin read_all_end Read Individual;
    write_all write_all_begin write_all_end Write Individual;
    read_ordered read_ordered_begin read_ordered_end Read Ordered;
    write_ordered write_ordered_begin write_ordered_end Write Ordered;
}
