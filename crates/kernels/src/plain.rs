//! Owns [`copy_plain`], the nest a programmer writes by hand: nested loops in the order given
//! and one `memcpy` of run-time length per block. Benchmarks compare programs with it under the
//! name `loop`; nothing else uses it.

use crate::nest::{Body, Nest, Span};
use crate::program::{BoundsError, Side};
use crate::shared::{SharedBytes, SharedBytesMut};

/// Runs nests as plain loops.
pub fn copy_plain(nests: &[Nest], source: &[u8], target: &mut [u8]) -> Result<(), BoundsError> {
    copy_plain_shared(nests, source.into(), target.into())
}

/// Runs nests as plain loops from one shared range to another.
pub fn copy_plain_shared(
    nests: &[Nest],
    source: SharedBytes,
    mut target: SharedBytesMut,
) -> Result<(), BoundsError> {
    let inside = |side, span: Span, len: usize| {
        if span.start < 0 || span.end.unsigned_abs() > len as u64 {
            return Err(BoundsError { side, span, len });
        }
        Ok(())
    };
    for nest in nests {
        inside(Side::Source, nest.source_span(), source.len())?;
        inside(Side::Target, nest.target_span(), target.len())?;
    }
    for nest in nests {
        // SAFETY: the spans of the nest lie in the ranges, which their constructors promise to
        // be valid and apart.
        unsafe { plain(nest, source.as_ptr(), target.as_mut_ptr()) };
    }
    Ok(())
}

unsafe fn plain(nest: &Nest, source: *const u8, target: *mut u8) {
    let mut from = source.wrapping_offset(nest.source() as isize);
    let mut to = target.wrapping_offset(nest.target() as isize);
    let (source_stride, target_stride) =
        (nest.source_stride() as isize, nest.target_stride() as isize);
    match nest.body() {
        Body::Bytes(len) => {
            // Opaque, so that the compiler cannot specialise what the programmer did not.
            let len = std::hint::black_box(*len as usize);
            for _ in 0..nest.count() {
                // SAFETY: the block lies in the span of the nest.
                unsafe { to.copy_from_nonoverlapping(from, len) };
                from = from.wrapping_offset(source_stride);
                to = to.wrapping_offset(target_stride);
            }
        }
        Body::Nested(children) => {
            for _ in 0..nest.count() {
                for child in children.iter() {
                    // SAFETY: the child lies in the span of the nest.
                    unsafe { plain(child, from, to) };
                }
                from = from.wrapping_offset(source_stride);
                to = to.wrapping_offset(target_stride);
            }
        }
    }
}
