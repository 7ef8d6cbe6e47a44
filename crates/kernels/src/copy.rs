//! Owns the entry points: a program, a source, a target. Bounds are checked here, once; all
//! that follows is unchecked.
//!
//! Each operation comes twice: on raw shared ranges (`*_shared`), and on slices as a thin safe
//! layer above. Gather and scatter are copies whose other side is contiguous; they have names
//! of their own because they also check that.

use crate::disjoint::Disjoint;
use crate::program::{BoundsError, Program};
use crate::run;
use crate::shared::{SharedBytes, SharedBytesMut};

/// Runs a program from one slice to another.
///
/// ```
/// use kernels::{copy, Nest, Program};
/// let swap = [Nest::block(0, 2, 2)?, Nest::block(2, 0, 2)?];
/// let mut target = [0; 4];
/// copy(&Program::compile(&swap), b"abcd", &mut target)?;
/// assert_eq!(&target, b"cdab");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn copy(program: &Program, source: &[u8], target: &mut [u8]) -> Result<(), BoundsError> {
    copy_shared(program, source.into(), target.into())
}

/// Runs a program from one shared range to another.
pub fn copy_shared(
    program: &Program,
    source: SharedBytes,
    mut target: SharedBytesMut,
) -> Result<(), BoundsError> {
    program.check(source.len(), target.len())?;
    // SAFETY: the spans lie in the ranges, which their constructors promise to be valid and
    // apart.
    unsafe { run::run(program, source.as_ptr(), target.as_mut_ptr()) };
    Ok(())
}

/// Runs the part of a program that moves the bytes of `window`, counted in the order the
/// program moves them. Windows that tile `0..program.bytes()` together do what [`copy`] does.
pub fn copy_window(
    program: &Program,
    source: SharedBytes,
    mut target: SharedBytesMut,
    window: std::ops::Range<u64>,
) -> Result<(), BoundsError> {
    program.check(source.len(), target.len())?;
    let window = window.start.min(program.bytes())..window.end.min(program.bytes());
    // SAFETY: as in `copy_shared`, for a part of the program.
    unsafe { run::run_window(program, source.as_ptr(), target.as_mut_ptr(), window) };
    Ok(())
}

/// A gather or scatter was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// A buffer is too small.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The side that should be contiguous has holes, or bytes moved more than once.
    #[error("the packed side of the program is not contiguous")]
    NotContiguous,
}

/// Runs a program whose target is contiguous: every target byte of its span is written once, as
/// far as the structure of the nests or the proof behind a joint shows.
pub fn gather(program: &Program, source: &[u8], packed: &mut [u8]) -> Result<(), PackError> {
    if !program.fills_target() {
        return Err(PackError::NotContiguous);
    }
    Ok(copy(program, source, packed)?)
}

/// Runs a program whose source is contiguous: as many bytes as its span holds are moved.
pub fn scatter(program: &Program, packed: &[u8], target: &mut [u8]) -> Result<(), PackError> {
    if program.source_span().len() != program.bytes() {
        return Err(PackError::NotContiguous);
    }
    Ok(copy(program, packed, target)?)
}

/// Runs a program on several threads, each moving an equal share of the bytes. `threads` is the
/// caller's decision; 0 and 1 start none. Small jobs are not worth a thread: below
/// [`BYTES_PER_THREAD`] per thread fewer are used.
pub fn copy_parallel(
    program: &Disjoint<Program>,
    source: &[u8],
    target: &mut [u8],
    threads: usize,
) -> Result<(), BoundsError> {
    copy_parallel_shared(program, source.into(), target.into(), threads)
}

/// Starting and joining a thread costs 20 to 60 microseconds, the time in which one thread
/// copies about this much.
pub const BYTES_PER_THREAD: u64 = 256 << 10;

/// As [`copy_parallel`], on shared ranges.
pub fn copy_parallel_shared(
    program: &Disjoint<Program>,
    source: SharedBytes,
    target: SharedBytesMut,
    threads: usize,
) -> Result<(), BoundsError> {
    let useful = program.bytes().div_ceil(BYTES_PER_THREAD).max(1);
    let threads = (threads.max(1) as u64).min(useful);
    copy_split(program, source, target, threads)
}

/// As above without the limit for small jobs: the tests use it on tiny ones.
pub(crate) fn copy_split(
    program: &Disjoint<Program>,
    source: SharedBytes,
    mut target: SharedBytesMut,
    threads: u64,
) -> Result<(), BoundsError> {
    if threads <= 1 {
        return copy_shared(program, source, target);
    }
    program.check(source.len(), target.len())?;
    let bytes = u128::from(program.bytes());
    let cut = |index: u64| (bytes * u128::from(index) / u128::from(threads)) as u64;
    let to = Writer(target.as_mut_ptr());
    std::thread::scope(|scope| {
        for index in 1..threads {
            let job = move || {
                // SAFETY: as in `copy_shared`; the proof of disjointness says that windows
                // write different bytes.
                unsafe {
                    run::run_window(
                        program,
                        source.as_ptr(),
                        to.get(),
                        cut(index)..cut(index + 1),
                    )
                };
            };
            if std::thread::Builder::new()
                .spawn_scoped(scope, job)
                .is_err()
            {
                // No thread to be had: do its share here.
                // SAFETY: as above.
                unsafe {
                    run::run_window(
                        program,
                        source.as_ptr(),
                        to.get(),
                        cut(index)..cut(index + 1),
                    )
                };
            }
        }
        // SAFETY: as above.
        unsafe { run::run_window(program, source.as_ptr(), to.get(), 0..cut(1)) };
    });
    Ok(())
}

/// A target pointer on its way to several threads.
#[derive(Clone, Copy)]
struct Writer(*mut u8);

impl Writer {
    fn get(self) -> *mut u8 {
        self.0
    }
}

// SAFETY: used only above, where a proof says that the threads write different bytes.
unsafe impl Send for Writer {}
