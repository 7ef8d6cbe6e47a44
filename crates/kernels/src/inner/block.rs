//! One block: copies of a length known when compiling, of a small length in a known class, and
//! of any length.
//!
//! Small lengths that are no power of two are two overlapping copies of the largest power below
//! (`0..H` and `len-H..len`), so a class of lengths `H..=2H` needs no branch. Lists have the common sums of
//! powers of two as lengths of their own, as `strided` has.

use super::long::{LONG, copy_long};
use crate::list::{Place, UniformFn};

/// Copies exactly `B` bytes: a load and a store or two.
///
/// # Safety
/// `B` bytes are readable at `source`, writable at `target`, and do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_const<const B: usize>(source: *const u8, target: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { target.copy_from_nonoverlapping(source, B) };
}

/// Copies `len` bytes, `H <= len <= 2 * H`, as two overlapping halves. Both loads come first,
/// which keeps them independent of the stores.
///
/// # Safety
/// As [`copy_const`], for `len` bytes.
#[inline(always)]
pub(crate) unsafe fn copy_class<const H: usize>(source: *const u8, target: *mut u8, len: usize) {
    debug_assert!(H <= len && len <= 2 * H);
    // SAFETY: both halves lie within the block, since H <= len.
    unsafe {
        let head = source.cast::<[u8; H]>().read_unaligned();
        let tail = source.add(len - H).cast::<[u8; H]>().read_unaligned();
        target.cast::<[u8; H]>().write_unaligned(head);
        target.add(len - H).cast::<[u8; H]>().write_unaligned(tail);
    }
}

/// Copies a block whose length is not known in advance.
///
/// # Safety
/// As [`copy_const`], for `len` bytes.
#[inline(always)]
pub(crate) unsafe fn copy_any(source: *const u8, target: *mut u8, len: usize) {
    // SAFETY: the caller's promise; each arm copies `len` bytes.
    unsafe {
        match len {
            0 => {}
            1 => copy_const::<1>(source, target),
            2..=4 => copy_class::<2>(source, target, len),
            5..=8 => copy_class::<4>(source, target, len),
            9..=16 => copy_class::<8>(source, target, len),
            17..=32 => copy_class::<16>(source, target, len),
            33..=64 => copy_class::<32>(source, target, len),
            65..LONG => target.copy_from_nonoverlapping(source, len),
            _ => copy_long(source, target, len),
        }
    }
}

/// How far ahead a list prefetches its sources: far enough to cover a miss to memory, near
/// enough to stay in the first cache.
const AHEAD: usize = 16;

macro_rules! uniform {
    ($name:ident, $limit:ident, |$source:ident, $target:ident, $len:ident| $copy:expr) => {
        unsafe fn $name<const $limit: usize>(
            places: &[Place],
            source: *const u8,
            target: *mut u8,
            $len: usize,
        ) {
            let _ = $len;
            for (index, place) in places.iter().enumerate() {
                if let Some(next) = places.get(index + AHEAD) {
                    prefetch(source.wrapping_offset(next.0));
                }
                let $source = source.wrapping_offset(place.0);
                let $target = target.wrapping_offset(place.1);
                // SAFETY: the caller of a `UniformFn` promises every place.
                unsafe { $copy };
            }
        }
    };
}

uniform!(uniform_const, B, |source, target, len| copy_const::<B>(
    source, target
));
uniform!(uniform_class, H, |source, target, len| copy_class::<H>(
    source, target, len
));
uniform!(uniform_long, H, |source, target, len| copy_any(
    source, target, len
));

/// The copy for a list of blocks of this length.
pub(crate) fn uniform_copy(len: usize) -> UniformFn {
    match len {
        1 => uniform_const::<1>,
        2 => uniform_const::<2>,
        4 => uniform_const::<4>,
        8 => uniform_const::<8>,
        16 => uniform_const::<16>,
        32 => uniform_const::<32>,
        64 => uniform_const::<64>,
        12 => uniform_const::<12>,
        20 => uniform_const::<20>,
        24 => uniform_const::<24>,
        40 => uniform_const::<40>,
        48 => uniform_const::<48>,
        56 => uniform_const::<56>,
        3 => uniform_class::<2>,
        5..=7 => uniform_class::<4>,
        9..=15 => uniform_class::<8>,
        17..=31 => uniform_class::<16>,
        33..=63 => uniform_class::<32>,
        65..=128 => uniform_class::<64>,
        _ => uniform_long::<0>,
    }
}

/// Asks for a line to be brought near. A hint: any address is allowed.
#[inline(always)]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for a line to be brought into the second cache. A hint: any address is allowed.
#[inline(always)]
pub(crate) fn prefetch_far(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
