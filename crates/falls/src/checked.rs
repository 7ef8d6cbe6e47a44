//! Checked offset arithmetic: the one place where sums, products and least common multiples of
//! offsets are formed from values that may not fit.
//!
//! Every offset the crate stores is at most [`MAX_OFFSET`], so the sum of two of them fits `u64`
//! and plain operators are safe after construction. Constructors come through here.

use crate::error::{FallsError, Reason};

/// The largest exclusive end of anything the algebra describes: `2^63 - 1`.
///
/// Byte offsets therefore run from `0` to `2^63 - 2`, which fits the signed 64-bit offsets of POSIX
/// and MPI with room for "one past the last".
pub const MAX_OFFSET: u64 = i64::MAX as u64;

/// `a + b`, refused above [`MAX_OFFSET`].
pub(crate) fn add(a: u64, b: u64) -> Result<u64, FallsError> {
    match a.checked_add(b) {
        Some(sum) if sum <= MAX_OFFSET => Ok(sum),
        _ => Err(overflow(format_args!("{a} + {b}"))),
    }
}

/// `a * b`, refused above [`MAX_OFFSET`].
pub(crate) fn mul(a: u64, b: u64) -> Result<u64, FallsError> {
    match a.checked_mul(b) {
        Some(product) if product <= MAX_OFFSET => Ok(product),
        _ => Err(overflow(format_args!("{a} * {b}"))),
    }
}

/// Exclusive end of `count` blocks of `len` bytes, `stride` apart, the first at `start`.
pub(crate) fn end(start: u64, len: u64, stride: u64, count: u64) -> Result<u64, FallsError> {
    add(start, add(mul(count - 1, stride)?, len)?)
}

/// Least common multiple, `None` when it exceeds [`MAX_OFFSET`] or when either argument is 0.
pub fn lcm(a: u64, b: u64) -> Option<u64> {
    if a == 0 || b == 0 {
        return None;
    }
    (a / gcd(a, b)).checked_mul(b).filter(|&l| l <= MAX_OFFSET)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn overflow(what: std::fmt::Arguments<'_>) -> FallsError {
    FallsError::new(
        Reason::Overflow,
        format!("{what} exceeds 2^63 - 1; offsets and ends must stay below 2^63"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lcm_is_checked() {
        assert_eq!(lcm(4, 6), Some(12));
        assert_eq!(lcm(1, MAX_OFFSET), Some(MAX_OFFSET));
        assert_eq!(lcm((1 << 40) + 1, (1 << 41) + 1), None);
        assert_eq!(lcm(0, 3), None);
    }

    #[test]
    fn sums_and_products_stop_below_two_to_the_63() {
        assert_eq!(add(MAX_OFFSET - 1, 1).unwrap(), MAX_OFFSET);
        assert_eq!(add(MAX_OFFSET, 1).unwrap_err().reason(), Reason::Overflow);
        assert_eq!(
            mul(1 << 32, 1 << 31).unwrap_err().reason(),
            Reason::Overflow
        );
        assert_eq!(mul(u64::MAX, 2).unwrap_err().reason(), Reason::Overflow);
    }
}
