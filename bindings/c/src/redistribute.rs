//! Redistribution in memory: an array that a team has in one distribution goes into another, without a file.
//!
//! A plan is made once by all members and run as often as they like. Parts are packed in memory, in the order of the array.
//! Names are beside those of `pario_mpi.h`, whose functions have MPI datatypes and communicators.

use std::ffi::{c_int, c_void};

use client::{Redistribution, allocate_common, free_common};

use crate::entry::{Failure, answer};
use crate::ffi::{Address, ConstAddress, Out};
use crate::table::Handle;
use crate::teams::Member;
use crate::views::ViewValue;

/// A plan of the program.
#[derive(Debug)]
pub(crate) struct Plan(Redistribution);

/// Plans what all members have and want of an array of so many bytes.
#[unsafe(no_mangle)]
extern "C" fn pario_team_plan(
    team: Handle<Member>,
    source: Handle<ViewValue>,
    target: Handle<ViewValue>,
    array_bytes: u64,
    plan: Out<Handle<Plan>>,
) -> c_int {
    answer("pario_team_plan", || {
        plan.required("plan")?.set(Handle::NULL);
        let (member, source, target) = (team.get()?, source.get()?, target.get()?);
        member.wait();
        let made = Redistribution::new(&member.team, &source.0, &target.0, array_bytes)?;
        plan.set(Handle::enter(Plan(made), team.owner()?)?);
        Ok(())
    })
}

/// Bytes of this member's part before and after.
#[unsafe(no_mangle)]
extern "C" fn pario_plan_bytes(
    plan: Handle<Plan>,
    source_bytes: Out<u64>,
    target_bytes: Out<u64>,
) -> c_int {
    answer("pario_plan_bytes", || {
        let plan = plan.get()?;
        source_bytes.set(plan.0.source_bytes());
        target_bytes.set(plan.0.target_bytes());
        Ok(())
    })
}

/// Redistributes from one memory to another; all members call.
#[unsafe(no_mangle)]
extern "C" fn pario_plan_run(
    plan: Handle<Plan>,
    from: ConstAddress,
    from_bytes: usize,
    to: Address,
    to_bytes: usize,
) -> c_int {
    answer("pario_plan_run", || {
        let plan = plan.get()?;
        let memory = from.source("from", from_bytes);
        let memory = memory.and_then(|from| Ok((from, to.target("to", to_bytes)?)));
        match memory {
            Ok((from, to)) => Ok(plan.0.run(from, to)?),
            Err(why) => {
                // With no memory it is refused, and the others hear of it.
                let (none, nowhere) = (&[][..], &mut [][..]);
                let _ = plan.0.run(none.into(), nowhere.into());
                Err(why)
            }
        }
    })
}

/// Redistributes in place: source before, target after, with room for the longer one; all members call.
#[unsafe(no_mangle)]
extern "C" fn pario_plan_run_in_place(plan: Handle<Plan>, memory: Address, bytes: usize) -> c_int {
    answer("pario_plan_run_in_place", || {
        let plan = plan.get()?;
        match memory.target("memory", bytes) {
            Ok(memory) => Ok(plan.0.run_in_place(memory)?),
            Err(why) => {
                let nowhere = &mut [][..];
                let _ = plan.0.run_in_place(nowhere.into());
                Err(why)
            }
        }
    })
}

/// Ends a plan.
#[unsafe(no_mangle)]
extern "C" fn pario_plan_free(plan: Handle<Plan>) -> c_int {
    answer("pario_plan_free", || plan.close().map(drop))
}

/// Memory that other processes of the same user and host read in place when it is redistributed.
#[unsafe(no_mangle)]
extern "C" fn pario_memory_new(bytes: usize, memory: Out<*mut c_void>) -> c_int {
    answer("pario_memory_new", || {
        memory.required("memory")?.set(std::ptr::null_mut());
        if bytes > isize::MAX as usize {
            return Err(Failure::argument("bytes", "are more than memory has"));
        }
        let made = allocate_common(bytes)
            .map_err(|e| Failure::new(client::Status::NoMemory, format!("{bytes} bytes: {e}")))?;
        memory.set(made.as_ptr().cast());
        Ok(())
    })
}

/// Gives back memory of `pario_memory_new`; a null pointer is fine.
#[unsafe(no_mangle)]
extern "C" fn pario_memory_free(memory: Address) -> c_int {
    answer("pario_memory_free", || {
        let address = memory.pointer().cast::<u8>().cast_const();
        match address.is_null() || free_common(address) {
            true => Ok(()),
            false => Err(Failure::argument(
                "memory",
                "was not given by pario_memory_new",
            )),
        }
    })
}
