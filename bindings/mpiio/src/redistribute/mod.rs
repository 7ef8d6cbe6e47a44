//! Redistribution in memory for MPI programs: `pario_redistribute` and the calls for block-cyclic matrices.
//!
//! These are functions of Pario, not of MPI: programs that use them include `pario_mpi.h` and are linked with this
//! library, or find it preloaded. The plan is the client's ([`client::Redistribution`]); here datatypes become views
//! and a communicator becomes a team.
//!
//! All processes of the communicator take part. They exchange through memory where they share a host, and through
//! MPI otherwise.

mod blacs;
mod block_cyclic;
mod exchange;

use std::ffi::{c_int, c_void};

use client::{
    GivesMemory, PartMemory, Parts, Places, Redistribution, SharedBytes, SharedBytesMut,
    SourcePlace, View,
};
use parking_lot::Mutex;

use block_cyclic::{Dimension, LocalPart, Submatrix};

use crate::datatype;
use crate::entry::{self, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{Address, Word};
use crate::host::{self, Host};

/// Runs a function that reports by its answer alone: communicators have handlers for MPI's own functions only.
fn answer(function: impl FnOnce(&'static Host) -> Outcome) -> c_int {
    entry::guarded(|| match host::get() {
        None => 16,
        Some(host) => match function(host) {
            Ok(()) => 0,
            Err(failure) => crate::failure::remember(host, "pario_redistribute", "", &failure),
        },
    })
}

/// A datatype as a part of an array: the bytes it shows, and how long the array is.
fn part_of(host: &Host, handle: Word) -> Outcome<(View, u64)> {
    datatype::of(host, handle)?.part()
}

/// Runs together, with a plan that is made if there is none yet.
fn redistribute(
    host: &'static Host,
    comm: Word,
    mine: Outcome<((View, u64), (View, u64))>,
    source: SourcePlace,
    mut memory: ProgramMemory,
) -> Outcome {
    let plans = exchange::plans(host, comm)?;
    let parts = match &mine {
        Ok((source, target)) => Ok(Parts {
            source: source.0.clone(),
            target: target.0.clone(),
            len: source.1.max(target.1),
        }),
        // A process whose arguments are wrong says so, and nobody waits for it.
        Err(failure) => Err(client::Error::Refused {
            status: client::Status::InvalidArgument,
            text: failure.text.clone(),
            server: None,
        }),
    };
    let done = plans.run(parts, source, &mut memory);
    mine?;
    Ok(done?)
}

/// Memory of the program: where parts begin, and the most that is there.
struct ProgramMemory {
    /// Nothing where the source is in the same memory as the target.
    from: Option<(Address, u64)>,
    to: (Address, u64),
}

/// As much as the datatype of a part describes.
const AS_DESCRIBED: u64 = u64::MAX;

impl GivesMemory for ProgramMemory {
    fn memory(&mut self, plan: &Redistribution) -> PartMemory<'_> {
        let (source, target) = (plan.source_bytes(), plan.target_bytes());
        let (to, room) = self.to;
        match self.from {
            Some((from, most)) => PartMemory::Between(
                shared(from, source.min(most)),
                shared_mut(to, target.min(room)),
            ),
            None => PartMemory::InPlace(shared_mut(to, source.max(target).min(room))),
        }
    }
}

/// Memory of the program, from where a part begins.
fn shared<'a>(address: Address, len: u64) -> SharedBytes<'a> {
    // SAFETY: the program gives memory for the part that its datatype describes.
    unsafe { SharedBytes::new(address.0.cast_const().cast(), len as usize) }
}

fn shared_mut<'a>(address: Address, len: u64) -> SharedBytesMut<'a> {
    // SAFETY: the same.
    unsafe { SharedBytesMut::new(address.0.cast(), len as usize) }
}

/// The part of `source` in `buf` becomes the part of `target`. Parts are packed, in the order of the array; `buf`
/// has room for the longer one.
#[unsafe(no_mangle)]
extern "C" fn pario_redistribute(buf: Address, source: Word, target: Word, comm: Word) -> c_int {
    answer(|host| {
        let mine = part_of(host, host::trimmed(source))
            .and_then(|source| Ok((source, part_of(host, host::trimmed(target))?)));
        redistribute(
            host,
            host::trimmed(comm),
            mine,
            SourcePlace::AsTarget,
            ProgramMemory {
                from: None,
                to: (buf, AS_DESCRIBED),
            },
        )
    })
}

/// Redistributes from one buffer to another.
#[unsafe(no_mangle)]
extern "C" fn pario_redistribute_to(
    from: Address,
    source: Word,
    to: Address,
    target: Word,
    comm: Word,
) -> c_int {
    answer(|host| {
        let mine = part_of(host, host::trimmed(source))
            .and_then(|source| Ok((source, part_of(host, host::trimmed(target))?)));
        let source = SourcePlace::Apart(from.0.cast_const().cast());
        let memory = ProgramMemory {
            from: Some((from, AS_DESCRIBED)),
            to: (to, AS_DESCRIBED),
        };
        redistribute(host, host::trimmed(comm), mine, source, memory)
    })
}

/// Memory that processes of this host read in place; see `pario_mpi.h`.
#[unsafe(no_mangle)]
extern "C" fn pario_alloc(bytes: usize, memory: crate::ffi::Out<*mut c_void>) -> c_int {
    answer(|_| {
        let allocated = client::allocate_common(bytes).map_err(|error| {
            let text = format!("{bytes} bytes of shared memory cannot be had: {error}");
            Failure::new(Class::NoSpace, text)
        })?;
        memory.set(allocated.as_ptr().cast());
        Ok(())
    })
}

/// Gives such memory back.
#[unsafe(no_mangle)]
extern "C" fn pario_free(memory: Address) -> c_int {
    answer(
        |_| match memory.0.is_null() || client::free_common(memory.0.cast_const().cast()) {
            true => Ok(()),
            false => Err(Failure::new(
                Class::Arg,
                "the address is not what pario_alloc gave; give back what it gave, once",
            )),
        },
    )
}

/// Fortran: `call pario_redistribute(buf, source, target, comm, ierror)`.
#[unsafe(no_mangle)]
extern "C" fn pario_redistribute_(
    buf: Address,
    source: *const c_int,
    target: *const c_int,
    comm: *const c_int,
    ierror: crate::ffi::Out<c_int>,
) {
    ierror.set(match from_fortran(source, target, comm) {
        Some((source, target, comm)) => pario_redistribute(buf, source, target, comm),
        None => NO_MPI,
    });
}

/// Fortran: `call pario_redistribute_to(from, source, to, target, comm, ierror)`.
#[unsafe(no_mangle)]
extern "C" fn pario_redistribute_to_(
    from: Address,
    source: *const c_int,
    to: Address,
    target: *const c_int,
    comm: *const c_int,
    ierror: crate::ffi::Out<c_int>,
) {
    ierror.set(match from_fortran(source, target, comm) {
        Some((source, target, comm)) => pario_redistribute_to(from, source, to, target, comm),
        None => NO_MPI,
    });
}

/// What Fortran hears where there is no MPI library.
const NO_MPI: c_int = 16;

/// Two types and a communicator of Fortran as those of C; nothing without an MPI library.
fn from_fortran(
    source: *const c_int,
    target: *const c_int,
    comm: *const c_int,
) -> Option<(Word, Word, Word)> {
    let host = host::get()?;
    let [source, target, comm] = [source, target, comm].map(blacs::number);
    let [source, target] = [source, target].map(|datatype| host.type_from_fortran(datatype));
    Some((source, target, host.comm_from_fortran(comm)))
}

/// A process's place in a grid of processes; not in it if a coordinate is negative.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Grid {
    rows: c_int,
    columns: c_int,
    row: c_int,
    column: c_int,
}

/// A matrix or submatrix as ScaLAPACK describes it: 1-based first element and a descriptor of nine numbers.
#[derive(Clone, Copy, Debug)]
struct DescribedMatrix {
    first: (c_int, c_int),
    descriptor: *const c_int,
    grid: Grid,
}

impl DescribedMatrix {
    /// What this process has of it.
    fn part(&self, rows: c_int, columns: c_int, element: i64) -> Outcome<LocalPart> {
        if self.grid.row < 0 || self.grid.column < 0 {
            let nothing = layout::FileOffset(0);
            let nothing = View::new(nothing, 1, falls::FallsSet::empty())?;
            return Ok(LocalPart {
                view: nothing,
                places: Places::bytes(0),
            });
        }
        if self.descriptor.is_null() {
            return Err(Failure::new(Class::Arg, "a descriptor is missing"));
        }
        // SAFETY: the program gives a descriptor of nine integers.
        let numbers: [c_int; 9] = unsafe { self.descriptor.cast::<[c_int; 9]>().read_unaligned() };
        let [_kind, _context, m, n, mb, nb, rsrc, csrc, lld] = numbers.map(i64::from);
        let dimension = |size, block, source, processes: c_int, mine: c_int| Dimension {
            size,
            block,
            source,
            processes: processes.into(),
            mine: mine.into(),
        };
        let sub = Submatrix {
            rows: dimension(m, mb, rsrc, self.grid.rows, self.grid.row),
            columns: dimension(n, nb, csrc, self.grid.columns, self.grid.column),
            leading: lld,
            at: (i64::from(self.first.0) - 1, i64::from(self.first.1) - 1),
        };
        sub.part(rows.into(), columns.into(), element)
    }
}

/// Copies a submatrix of `a` to a submatrix of `b`, whatever their blocks and grids are.
fn copy_submatrix(
    host: &'static Host,
    comm: Word,
    (rows, columns, element): (c_int, c_int, i64),
    (a, from): (Address, DescribedMatrix),
    (b, to): (Address, DescribedMatrix),
) -> Outcome {
    let parts = if rows < 0 || columns < 0 || element < 1 {
        let text = format!("{rows} x {columns} elements of {element} bytes are no matrix");
        Err(Failure::new(Class::Arg, text))
    } else {
        from.part(rows, columns, element)
            .and_then(|from| Ok((from, to.part(rows, columns, element)?)))
    };
    let len = i64::from(rows.max(0)) * i64::from(columns.max(0)) * element.max(0);
    let mine = match &parts {
        Ok((from, to)) => Ok((
            (from.view.clone(), len as u64),
            (to.view.clone(), len as u64),
        )),
        Err(failure) => Err(failure.clone()),
    };
    let reach = |places: &Places| places.hull().map_or(0, |hull| hull.end.max(0) as u64);
    // Not locked meanwhile: another thread may be in a call of another communicator.
    let (mut packed, mut came) = std::mem::take(&mut *BUFFERS.lock());
    if let Ok((from, to)) = &parts {
        packed.resize(from.places.size() as usize, 0);
        came.resize(to.places.size() as usize, 0);
        from.places
            .pack(shared(a, reach(&from.places)), 0, 0, &mut packed)?;
    }
    let source = SourcePlace::Apart(packed.as_ptr());
    let memory = ProgramMemory {
        from: Some((Address(packed.as_mut_ptr().cast()), packed.len() as u64)),
        to: (Address(came.as_mut_ptr().cast()), came.len() as u64),
    };
    redistribute(host, comm, mine, source, memory)?;
    if let Ok((_, to)) = &parts {
        to.places
            .unpack(&came, shared_mut(b, reach(&to.places)), 0, 0)?;
    }
    *BUFFERS.lock() = (packed, came);
    Ok(())
}

/// Submatrices as they are packed and as they come; kept, because new memory is dear.
static BUFFERS: Mutex<(Vec<u8>, Vec<u8>)> = Mutex::new((Vec::new(), Vec::new()));

/// Block-cyclic matrices between two grids; see `pario_mpi.h`.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the list of ScaLAPACK
extern "C" fn pario_gemr2d(
    m: c_int,
    n: c_int,
    element: usize,
    a: Address,
    ia: c_int,
    ja: c_int,
    desca: *const c_int,
    grid_a: *const Grid,
    b: Address,
    ib: c_int,
    jb: c_int,
    descb: *const c_int,
    grid_b: *const Grid,
    comm: Word,
) -> c_int {
    answer(|host| {
        if grid_a.is_null() || grid_b.is_null() {
            return Err(Failure::new(Class::Arg, "a grid is missing"));
        }
        // SAFETY: the program gives two grids.
        let (grid_a, grid_b) = unsafe { (*grid_a, *grid_b) };
        let from = DescribedMatrix {
            first: (ia, ja),
            descriptor: desca,
            grid: grid_a,
        };
        let to = DescribedMatrix {
            first: (ib, jb),
            descriptor: descb,
            grid: grid_b,
        };
        let shape = (m, n, i64::try_from(element).unwrap_or(0));
        copy_submatrix(host, host::trimmed(comm), shape, (a, from), (b, to))
    })
}
