//! `MPI_Pack` and `MPI_Unpack` of datatypes that the program made, on the kernels of Pario, with `PARIO_MPI_PACK=on`.
//!
//! ```text
//!  not asked for         the host's own function, at the cost of one load
//!  predefined, solid     the host's: nothing is to be won
//!  with long double      the host's: some do not move the bytes that a value of 80 bits leaves unused
//!  not ascending         the host's: one of them takes neighbours in descending order for one block
//!  made, first time      the host's; it is seen whether it takes the type at all, and whether the bytes are ours
//!  made, afterwards      Places::pack, Places::unpack
//! ```
//!
//! Invariants
//! - Bytes and positions are the host's: `MPI_Pack_size` is never taken over, and what one of the two packs the other unpacks.
//! - Whatever is out of order (a short buffer, a negative count, a handle that cannot be read) goes to the host, whose error
//!   the program gets.
//! - A type of which the host was not seen to move the same bytes is the host's for ever.
//!
//! `MPI_Pack_external` and its relatives stay the host's.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use client::{Places, SharedBytes, SharedBytesMut};

use crate::datatype::{self, ElementPlaces, HostPacks, Kind, Type};
use crate::entries::HostFiles;
use crate::entry;
use crate::ffi::{Address, CountOut, Word};
use crate::host::{self, Host};
use crate::service;

/// Says `on` or `off`.
const SWITCH: &str = "PARIO_MPI_PACK";

/// Whether packing is taken over, as the environment said when it was asked for first.
static TAKEN: AtomicU8 = AtomicU8::new(UNASKED);
const UNASKED: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

/// Calls that ran on the kernels.
static DONE: AtomicU64 = AtomicU64::new(0);

/// The host's own functions, while packing is left to them.
#[inline(always)]
pub(crate) fn while_left_to_host() -> Option<&'static HostFiles> {
    match TAKEN.load(Ordering::Relaxed) {
        ON => None,
        OFF => Some(&host::get()?.files),
        _ => ask(),
    }
}

#[cold]
fn ask() -> Option<&'static HostFiles> {
    let value = std::env::var(SWITCH).unwrap_or_default();
    let taken = match value.trim() {
        "on" => ON,
        "" | "off" => OFF,
        _ => {
            service::listen();
            tracing::warn!("{SWITCH} is '{value}'; give on or off. The MPI library packs");
            OFF
        }
    };
    TAKEN.store(taken, Ordering::Relaxed);
    match taken {
        ON => None,
        _ => Some(&host::get()?.files),
    }
}

/// Calls of `MPI_Pack` and `MPI_Unpack` that ran on the kernels of Pario, in this process; see `pario_mpi.h`.
#[unsafe(no_mangle)]
extern "C" fn pario_pack_count() -> i64 {
    DONE.load(Ordering::Relaxed) as i64
}

/// What both calls say.
struct PackCall {
    /// The program's memory, and what lies there.
    memory: Address,
    count: i64,
    datatype: Word,
    /// The packed side: where it begins, its bytes, and where in it.
    packed: Address,
    room: i64,
    position: CountOut,
    comm: Word,
}

/// `MPI_Pack`.
pub(crate) fn pack(
    inbuf: Address,
    incount: i64,
    datatype: Word,
    outbuf: Address,
    outsize: i64,
    position: CountOut,
    comm: Word,
) -> c_int {
    let call = PackCall {
        memory: inbuf,
        count: incount,
        datatype,
        packed: outbuf,
        room: outsize,
        position,
        comm,
    };
    let theirs = |host: &Host| {
        let (files, small) = (&host.files, c_int::try_from);
        // SAFETY: the arguments are the caller's.
        let of_small = |place| unsafe {
            let (count, room) = (small(incount).ok()?, small(outsize).ok()?);
            Some(files.Pack?(
                inbuf, count, datatype, outbuf, room, place, comm,
            ))
        };
        match (position, files.Pack_c) {
            (CountOut::Small(place), _) => of_small(place),
            (CountOut::Large(place), Some(f)) => {
                // SAFETY: the same.
                Some(unsafe { f(inbuf, incount, datatype, outbuf, outsize, place, comm) })
            }
            (CountOut::Large(_), None) => position.through_small(of_small),
        }
    };
    call.run("MPI_Pack", theirs, |of, memory, packed| {
        let memory = memory.as_shared();
        // SAFETY: the program gives so much room, and nobody else uses it during the call.
        let packed = unsafe { std::slice::from_raw_parts_mut(packed.0.cast::<u8>(), packed.1) };
        of.pack(memory, 0, 0, packed)
    })
}

/// `MPI_Unpack`.
pub(crate) fn unpack(
    inbuf: Address,
    insize: i64,
    position: CountOut,
    outbuf: Address,
    outcount: i64,
    datatype: Word,
    comm: Word,
) -> c_int {
    let call = PackCall {
        memory: outbuf,
        count: outcount,
        datatype,
        packed: inbuf,
        room: insize,
        position,
        comm,
    };
    let theirs = |host: &Host| {
        let (files, small) = (&host.files, c_int::try_from);
        // SAFETY: the arguments are the caller's.
        let of_small = |place| unsafe {
            let (room, count) = (small(insize).ok()?, small(outcount).ok()?);
            Some(files.Unpack?(
                inbuf, room, place, outbuf, count, datatype, comm,
            ))
        };
        match (position, files.Unpack_c) {
            (CountOut::Small(place), _) => of_small(place),
            (CountOut::Large(place), Some(f)) => {
                // SAFETY: the same.
                Some(unsafe { f(inbuf, insize, place, outbuf, outcount, datatype, comm) })
            }
            (CountOut::Large(_), None) => position.through_small(of_small),
        }
    };
    call.run("MPI_Unpack", theirs, |of, memory, packed| {
        // SAFETY: the program gives so many bytes, and nobody writes them during the call.
        let packed = unsafe { std::slice::from_raw_parts(packed.0.cast::<u8>(), packed.1) };
        of.unpack(packed, memory, 0, 0)
    })
}

impl PackCall {
    /// Does it here if it can be done, else has the host do it.
    fn run(
        &self,
        name: &'static str,
        theirs: impl FnOnce(&Host) -> Option<c_int>,
        ours: impl FnOnce(&Places, SharedBytesMut<'_>, (*mut c_void, usize)) -> client::Result<()>,
    ) -> c_int {
        let Some(found) = host::get().and_then(|host| self.plain(host)) else {
            return entry::theirs(name, theirs);
        };
        match found.of.host_packs() {
            HostPacks::Plainly => {
                let len = found.bytes as usize;
                let packed = (self.packed.0.wrapping_byte_add(found.before as usize), len);
                // SAFETY: the program gives memory that holds what the datatype describes, and leaves it alone during the call.
                let memory = unsafe { SharedBytesMut::new(found.lowest.cast(), found.reach) };
                let after = found.before + found.bytes;
                if ours(&found.places, memory, packed).is_ok() && self.position.set(after) {
                    DONE.fetch_add(1, Ordering::Relaxed);
                    return 0;
                }
                entry::theirs(name, theirs)
            }
            HostPacks::Otherwise => entry::theirs(name, theirs),
            HostPacks::Unseen => {
                let code = entry::theirs(name, theirs);
                if code == 0 {
                    found.of.saw_host_pack(match self.is_as_ours(&found) {
                        true => HostPacks::Plainly,
                        false => HostPacks::Otherwise,
                    });
                }
                code
            }
        }
    }

    /// Whether what the host has moved is what would have been moved here: both sides are there now.
    fn is_as_ours(&self, found: &PackPlaces) -> bool {
        if self.position.get() != Some(found.before + found.bytes) {
            return false;
        }
        let packed = self.packed.0.wrapping_byte_add(found.before as usize);
        // SAFETY: the host has used these bytes in this call, which is the program's.
        let packed =
            unsafe { std::slice::from_raw_parts(packed.cast::<u8>(), found.bytes as usize) };
        let mut piece = [0; 4096];
        packed.chunks(piece.len()).enumerate().all(|(i, theirs)| {
            // SAFETY: the same.
            let memory = unsafe { SharedBytes::new(found.lowest.cast(), found.reach) };
            let ours = &mut piece[..theirs.len()];
            let from = (i * 4096) as u64;
            found.places.pack(memory, 0, from, ours).is_ok() && ours == theirs
        })
    }

    /// What is to be moved, if all arguments are in order and the type is one that is worth it.
    fn plain(&self, host: &Host) -> Option<PackPlaces> {
        let before = self.position.get()?;
        let is_usual = self.count > 0 && before >= 0 && self.comm != host.abi.comm_null;
        if !is_usual || self.packed.0.is_null() {
            return None;
        }
        let of = datatype::made_again(host, self.datatype).ok()??;
        // Of values of 80 bits some MPIs move ten bytes and leave the six behind them alone.
        let has_padding = of.elements().iter().any(|(e, _)| e.kind == Kind::Extended);
        if of.is_solid() || of.size() == 0 || has_padding {
            return None;
        }
        let bytes = i64::try_from(of.size()).ok()?.checked_mul(self.count)?;
        if before.checked_add(bytes)? > self.room {
            return None;
        }
        let ElementPlaces { low, places } = of.placed(self.count.unsigned_abs()).ok()?;
        if !places.is_ascending() {
            return None;
        }
        let reach = usize::try_from(places.hull()?.end).ok()?;
        Some(PackPlaces {
            lowest: self.memory.0.wrapping_byte_offset(low as isize),
            reach,
            places,
            of,
            bytes,
            before,
        })
    }
}

/// What is to be moved.
struct PackPlaces {
    of: Arc<Type>,
    places: Places,
    /// The lowest byte of the memory, and how many from there on hold all.
    lowest: *mut c_void,
    reach: usize,
    /// On the packed side: how many, and the position before.
    bytes: i64,
    before: i64,
}
