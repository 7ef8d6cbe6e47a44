//! Between the 80-bit numbers of x87 and IEEE 754 binary128.
//!
//! ```text
//!  x87      sign 1 | exponent 15 | integer bit 1 | fraction 63       10 of 16 bytes, little-endian
//!  quad     sign 1 | exponent 15 |                 fraction 112      16 bytes
//! ```
//!
//! Both have the same exponent, so every number of x87 is a quad, exactly. The way back rounds to nearest,
//! ties to even. Bit patterns that x87 itself calls invalid become a NaN.

const EXPONENT: u16 = 0x7fff;
const INTEGER: u64 = 1 << 63;
/// Bits that a quad has beyond x87's fraction.
const MORE: u32 = 49;
const QUIET: u128 = 1 << 111;

/// The quad of an x87 number as it lies in memory.
pub(super) fn from_extended(bytes: [u8; 10]) -> u128 {
    let mantissa = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    let top = u16::from_le_bytes([bytes[8], bytes[9]]);
    let sign = u128::from(top >> 15) << 127;
    let exponent = top & EXPONENT;
    let has_integer = mantissa & INTEGER != 0;
    let fraction = u128::from(mantissa & !INTEGER) << MORE;
    let with = |exponent: u16| sign | u128::from(exponent) << 112 | fraction;
    match (exponent, has_integer) {
        // A denormal with the integer bit is the normal number of the next exponent.
        (0, true) => with(1),
        (0, false) | (1.., true) => with(exponent),
        (1.., false) => sign | u128::from(EXPONENT) << 112 | QUIET,
    }
}

/// The x87 number nearest to a quad, as it lies in memory.
pub(super) fn to_extended(quad: u128) -> [u8; 10] {
    let sign = ((quad >> 127) as u16) << 15;
    let mut exponent = (quad >> 112) as u16 & EXPONENT;
    let fraction = quad & ((1 << 112) - 1);
    let mut mantissa = (fraction >> MORE) as u64;
    if exponent == EXPONENT {
        if fraction != 0 {
            // A NaN stays one, whichever bits it had.
            mantissa |= 1 << 62;
        }
        mantissa |= INTEGER;
    } else {
        if exponent > 0 {
            mantissa |= INTEGER;
        }
        let rest = fraction & ((1 << MORE) - 1);
        let half = 1u128 << (MORE - 1);
        if rest > half || rest == half && mantissa & 1 == 1 {
            match mantissa.checked_add(1) {
                Some(next) => {
                    mantissa = next;
                    if exponent == 0 && mantissa & INTEGER != 0 {
                        exponent = 1;
                    }
                }
                None => {
                    mantissa = INTEGER;
                    exponent += 1;
                }
            }
        }
    }
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&mantissa.to_le_bytes());
    bytes[8..].copy_from_slice(&(sign | exponent).to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(top: u16, mantissa: u64) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&mantissa.to_le_bytes());
        bytes[8..].copy_from_slice(&top.to_le_bytes());
        bytes
    }

    #[test]
    fn known_numbers_become_the_quads_of_the_standard() {
        for (number, quad) in [
            (extended(0, 0), 0),
            (extended(0x8000, 0), 1 << 127),
            (extended(0x3fff, 1 << 63), 0x3fff << 112),
            (extended(0xbfff, 0xc << 60), 0xbfff_8000 << 96),
            (extended(0x7fff, 1 << 63), 0x7fff << 112),
            // The smallest denormal of x87 is a denormal of quad.
            (extended(0, 1), 1 << 49),
            // The largest number.
            (
                extended(0x7ffe, u64::MAX),
                (0x7ffe << 112) | (((1u128 << 63) - 1) << 49),
            ),
            // pi
            (
                extended(0x4000, 0xc90f_daa2_2168_c235),
                0x4000_921f_b544_42d1_846a_0000_0000_0000,
            ),
        ] {
            assert_eq!(from_extended(number), quad, "{number:x?}");
            assert_eq!(to_extended(quad), number, "{quad:x}");
        }
    }

    #[test]
    fn every_number_of_x87_comes_back() {
        let mut random = random::Random::new(1);
        let mut next = || random.draw();
        for _ in 0..20_000 {
            let top = next() as u16;
            let mantissa = match top & EXPONENT {
                0 => next() & !INTEGER,
                _ => next() | INTEGER,
            };
            let number = extended(top, mantissa);
            let back = to_extended(from_extended(number));
            if top & EXPONENT == EXPONENT {
                assert_eq!(back[8..], number[8..]);
            } else {
                assert_eq!(back, number, "{top:x} {mantissa:x}");
            }
        }
    }

    #[test]
    fn what_lies_between_two_numbers_goes_to_the_nearest_even_one() {
        let one = 0x3fff_u128 << 112;
        let step = 1u128 << MORE;
        let half = step / 2;
        let mantissa = |quad| u64::from_le_bytes(to_extended(quad)[..8].try_into().unwrap());
        assert_eq!(mantissa(one + half), 1 << 63, "a tie goes to the even one");
        assert_eq!(mantissa(one + half + 1), (1 << 63) + 1);
        assert_eq!(mantissa(one + step + half), (1 << 63) + 2);
        // All ones carry into the exponent, and from the largest number to infinity.
        let below_two = one | ((1 << 112) - 1);
        assert_eq!(to_extended(below_two), extended(0x4000, 1 << 63));
        let largest = (0x7ffe_u128 << 112) | ((1 << 112) - 1);
        assert_eq!(to_extended(largest), extended(0x7fff, 1 << 63));
        // The largest denormal becomes the smallest normal number.
        assert_eq!(to_extended((1 << 112) - 1), extended(1, 1 << 63));
    }

    #[test]
    fn nan_and_invalid_patterns_are_nan() {
        let is_nan = |quad: u128| {
            (quad >> 112) as u16 & EXPONENT == EXPONENT && quad & ((1 << 112) - 1) != 0
        };
        assert!(is_nan(from_extended(extended(0x7fff, 3 << 62))));
        assert!(is_nan(from_extended(extended(0x4000, 1))), "unnormal");
        assert!(
            is_nan(from_extended(extended(0x7fff, 0))),
            "infinity without its bit"
        );
        // A NaN whose bits are all below x87's fraction is still none of infinity.
        let back = to_extended((0x7fff << 112) | 1);
        assert_eq!(back, extended(0x7fff, 3 << 62));
        assert_eq!(
            from_extended(extended(0, 1 << 63)),
            1 << 112,
            "pseudo-denormal"
        );
    }
}
