//! Drop-in calls for `p?gemr2d` of ScaLAPACK: the same arguments, the grids asked of the BLACS of the program.
//!
//! The BLACS is found at run time, among the libraries of the program; a program that has contexts has it.

use std::ffi::{CStr, c_int, c_void};

use super::{DescribedMatrix, Grid, answer, copy_submatrix};
use crate::entry::Outcome;
use crate::failure::{Class, Failure};
use crate::ffi::{Address, Word};
use crate::host;

/// What is asked of the BLACS.
struct Blacs {
    gridinfo: unsafe extern "C" fn(c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int),
    get: unsafe extern "C" fn(c_int, c_int, *mut c_int),
    to_comm: unsafe extern "C" fn(c_int) -> Word,
}

/// The system handle of a context, in `Cblacs_get`.
const SYSTEM_HANDLE: c_int = 10;

fn symbol(name: &CStr) -> Outcome<*mut c_void> {
    // SAFETY: looks a name up among the loaded libraries.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if !found.is_null() {
        return Ok(found);
    }
    Err(Failure::new(
        Class::Other,
        format!(
            "{} is not there; link the program with ScaLAPACK, or call pario_gemr2d with the grids",
            name.to_string_lossy()
        ),
    ))
}

impl Blacs {
    fn find() -> Outcome<Blacs> {
        // SAFETY: the BLACS gives these functions these types.
        unsafe {
            Ok(Blacs {
                gridinfo: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int),
                >(symbol(c"Cblacs_gridinfo")?),
                get: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, c_int, *mut c_int),
                >(symbol(c"Cblacs_get")?),
                to_comm: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> Word>(
                    symbol(c"Cblacs2sys_handle")?,
                ),
            })
        }
    }

    fn grid(&self, context: c_int) -> Grid {
        let mut grid = Grid {
            rows: -1,
            columns: -1,
            row: -1,
            column: -1,
        };
        if context >= 0 {
            // SAFETY: four integers are filled in.
            unsafe {
                (self.gridinfo)(
                    context,
                    &raw mut grid.rows,
                    &raw mut grid.columns,
                    &raw mut grid.row,
                    &raw mut grid.column,
                );
            }
        }
        grid
    }

    fn comm(&self, context: c_int) -> Word {
        let mut handle = 0;
        // SAFETY: one integer is filled in, and is a handle that the second function knows.
        unsafe {
            (self.get)(context, SYSTEM_HANDLE, &raw mut handle);
            host::trimmed((self.to_comm)(handle))
        }
    }
}

/// The context of a descriptor.
fn context(descriptor: *const c_int) -> c_int {
    // SAFETY: the program gives a descriptor of nine integers; the second is the context.
    unsafe { descriptor.add(1).read_unaligned() }
}

/// An integer argument of Fortran.
pub(super) fn number(at: *const c_int) -> c_int {
    // SAFETY: Fortran passes addresses of integers.
    unsafe { at.read_unaligned() }
}

fn gemr2d(
    element: i64,
    (m, n): (c_int, c_int),
    (a, ia, ja, desca): (Address, c_int, c_int, *const c_int),
    (b, ib, jb, descb): (Address, c_int, c_int, *const c_int),
    context_of_all: c_int,
) -> c_int {
    answer(|host| {
        let blacs = Blacs::find()?;
        let described = |first, descriptor| DescribedMatrix {
            first,
            descriptor,
            grid: blacs.grid(context(descriptor)),
        };
        let (from, to) = (described((ia, ja), desca), described((ib, jb), descb));
        let comm = blacs.comm(context_of_all);
        copy_submatrix(host, comm, (m, n, element), (a, from), (b, to))
    })
}

macro_rules! drop_ins {
    ($($c:ident $fortran:ident $element:literal;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $c(
            m: c_int,
            n: c_int,
            a: Address,
            ia: c_int,
            ja: c_int,
            desca: *const c_int,
            b: Address,
            ib: c_int,
            jb: c_int,
            descb: *const c_int,
            context: c_int,
        ) -> c_int {
            gemr2d($element, (m, n), (a, ia, ja, desca), (b, ib, jb, descb), context)
        }

        #[unsafe(no_mangle)]
        extern "C" fn $fortran(
            m: *const c_int,
            n: *const c_int,
            a: Address,
            ia: *const c_int,
            ja: *const c_int,
            desca: *const c_int,
            b: Address,
            ib: *const c_int,
            jb: *const c_int,
            descb: *const c_int,
            context: *const c_int,
        ) {
            let [m, n, ia, ja, ib, jb, context] = [m, n, ia, ja, ib, jb, context].map(number);
            let answer = $c(m, n, a, ia, ja, desca, b, ib, jb, descb, context);
            if answer != 0 {
                // The routine it stands for has no way to say so either.
                eprintln!("pario: {}", crate::failure::last_text(answer).unwrap_or_default());
                std::process::abort();
            }
        }
    )*};
}

drop_ins! {
    pario_pigemr2d pario_pigemr2d_ 4;
    pario_psgemr2d pario_psgemr2d_ 4;
    pario_pdgemr2d pario_pdgemr2d_ 8;
    pario_pcgemr2d pario_pcgemr2d_ 8;
    pario_pzgemr2d pario_pzgemr2d_ 16;
}
