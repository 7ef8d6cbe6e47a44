//! `external32`: big-endian two's complement and IEEE 754, as wide as the standard's table says.
//!
//! Values are converted side by side, many of one kind in a call. One that does not fit its width is an error that
//! names it. Left to others: how wide values are (`datatype::Element`), x87 numbers (`quad`).

use super::quad;
use crate::datatype::{Element, Kind};
use crate::entry::Outcome;
use crate::failure::{Class, Failure};

/// Converts values of one kind from memory; both hold the same number of elements.
pub(crate) fn to_external(element: &Element, memory: &[u8], file: &mut [u8]) -> Outcome {
    let (from, to) = (element.width.into(), element.external_width.into());
    let pairs = memory.chunks_exact(from).zip(file.chunks_exact_mut(to));
    match element.kind {
        Kind::Bytes => file.copy_from_slice(memory),
        Kind::Float | Kind::Signed | Kind::Unsigned if from == to => swap(from, memory, file),
        Kind::Signed | Kind::Unsigned | Kind::Wide => {
            for (value, place) in pairs {
                let number = wide(value.iter().rev(), element.kind);
                narrow(number, place.iter_mut().rev(), element.kind)
                    .ok_or_else(|| does_not_fit(number, to))?;
            }
        }
        Kind::Logical => {
            for (value, place) in pairs {
                place.fill(0);
                place[to - 1] = u8::from(value.iter().any(|byte| *byte != 0));
            }
        }
        Kind::Extended => {
            for (value, place) in pairs {
                let number = value[..10].try_into().expect("10 bytes");
                place.copy_from_slice(&quad::from_extended(number).to_be_bytes());
            }
        }
        Kind::Float => {
            for (value, place) in pairs {
                put_float(float(value.to_vec())?, place)?;
                place.reverse();
            }
        }
    }
    Ok(())
}

/// Converts values of one kind to memory; both hold the same number of elements.
pub(crate) fn from_external(element: &Element, file: &[u8], memory: &mut [u8]) -> Outcome {
    let (from, to) = (element.external_width.into(), element.width.into());
    let pairs = file.chunks_exact(from).zip(memory.chunks_exact_mut(to));
    match element.kind {
        Kind::Bytes => memory.copy_from_slice(file),
        Kind::Float | Kind::Signed | Kind::Unsigned if from == to => swap(from, file, memory),
        Kind::Signed | Kind::Unsigned | Kind::Wide => {
            for (value, place) in pairs {
                let number = wide(value.iter(), element.kind);
                narrow(number, place.iter_mut(), element.kind)
                    .ok_or_else(|| does_not_fit(number, to))?;
            }
        }
        Kind::Logical => {
            for (value, place) in pairs {
                place.fill(0);
                place[0] = u8::from(value.iter().any(|byte| *byte != 0));
            }
        }
        Kind::Extended => {
            for (value, place) in pairs {
                let number = u128::from_be_bytes(value.try_into().expect("16 bytes"));
                place.fill(0);
                place[..10].copy_from_slice(&quad::to_extended(number));
            }
        }
        Kind::Float => {
            for (value, place) in pairs {
                let value = value.iter().rev().copied().collect();
                put_float(float(value)?, place)?;
            }
        }
    }
    Ok(())
}

/// Turns the bytes of every value around.
fn swap(width: usize, from: &[u8], to: &mut [u8]) {
    /// Widths that are known when this is compiled become byte swaps of registers.
    fn fixed<const N: usize>(from: &[u8], to: &mut [u8]) {
        for (value, place) in from.chunks_exact(N).zip(to.chunks_exact_mut(N)) {
            let mut value: [u8; N] = value.try_into().expect("N bytes");
            value.reverse();
            place.copy_from_slice(&value);
        }
    }
    match width {
        1 => to.copy_from_slice(from),
        2 => fixed::<2>(from, to),
        4 => fixed::<4>(from, to),
        8 => fixed::<8>(from, to),
        16 => fixed::<16>(from, to),
        _ => {
            for (value, place) in from.chunks_exact(width).zip(to.chunks_exact_mut(width)) {
                for (byte, at) in value.iter().rev().zip(place) {
                    *at = *byte;
                }
            }
        }
    }
}

/// A number of up to 16 bytes, most significant first.
fn wide<'a>(bytes: impl Iterator<Item = &'a u8>, kind: Kind) -> i128 {
    let mut number = 0i128;
    for (i, byte) in bytes.enumerate() {
        if i == 0 && kind == Kind::Signed && byte & 0x80 != 0 {
            number = -1;
        }
        number = number << 8 | i128::from(*byte);
    }
    number
}

/// Stores a number, least significant byte first; nothing if it does not fit.
fn narrow<'a>(
    number: i128,
    bytes: impl ExactSizeIterator<Item = &'a mut u8>,
    kind: Kind,
) -> Option<()> {
    let mut rest = number;
    let mut last = 0;
    for byte in bytes {
        last = rest as u8;
        *byte = last;
        rest >>= 8;
    }
    let fits = match kind {
        Kind::Signed => rest == if last & 0x80 != 0 { -1 } else { 0 },
        _ => rest == 0,
    };
    fits.then_some(())
}

/// A float of 4 or 8 bytes, least significant first.
fn float(bytes: Vec<u8>) -> Outcome<f64> {
    match bytes.len() {
        4 => Ok(f32::from_le_bytes(bytes.try_into().expect("4 bytes")).into()),
        8 => Ok(f64::from_le_bytes(bytes.try_into().expect("8 bytes"))),
        width => Err(no_float(width)),
    }
}

/// Stores a float of 4 or 8 bytes, least significant first.
fn put_float(number: f64, place: &mut [u8]) -> Outcome {
    match place.len() {
        4 => place.copy_from_slice(&(number as f32).to_le_bytes()),
        8 => place.copy_from_slice(&number.to_le_bytes()),
        width => return Err(no_float(width)),
    }
    Ok(())
}

fn no_float(width: usize) -> Failure {
    Failure::new(
        Class::Conversion,
        format!("there is no conversion of floats of {width} bytes; use native"),
    )
}

fn does_not_fit(number: i128, width: usize) -> Failure {
    Failure::new(
        Class::Conversion,
        format!(
            "{number} does not fit the {width} bytes that its type has in external32; use a wider type, such as MPI_LONG_LONG for MPI_LONG"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::Word;

    fn element(name: &str, kind: &str, size: u64) -> Element {
        Element::named(name, kind, size, Word(0)).unwrap()
    }

    /// To the file and back; what the file holds.
    fn round(element: &Element, memory: &[u8]) -> Vec<u8> {
        let count = memory.len() as u64 / element.size();
        let mut file = vec![0xEE; (count * element.external_size()) as usize];
        to_external(element, memory, &mut file).unwrap();
        let mut back = vec![0xEE; memory.len()];
        from_external(element, &file, &mut back).unwrap();
        assert_eq!(back, memory, "{element:?}");
        file
    }

    #[test]
    fn seed004_s64_values_are_big_endian_and_come_back() {
        let int = element("INT", "int", 4);
        let memory = [0x0102_0304_i32, -2].map(i32::to_le_bytes).concat();
        let file = round(&int, &memory);
        assert_eq!(file, [1, 2, 3, 4, 0xff, 0xff, 0xff, 0xfe]);
        let long = element("LONG", "int", 8);
        let memory = [-3_i64, i64::from(i32::MAX)].map(i64::to_le_bytes).concat();
        let file = round(&long, &memory);
        assert_eq!(file, [0xff, 0xff, 0xff, 0xfd, 0x7f, 0xff, 0xff, 0xff]);
        let ulong = element("UNSIGNED_LONG", "uint", 8);
        round(&ulong, &u64::from(u32::MAX).to_le_bytes());
        let double = element("DOUBLE", "float", 8);
        assert_eq!(
            round(&double, &(-1.5_f64).to_le_bytes()),
            (-1.5_f64).to_be_bytes()
        );
        let complex = element("C_FLOAT_COMPLEX", "complex", 8);
        let memory = [1.0_f32, -2.0].map(f32::to_le_bytes).concat();
        let file = [1.0_f32, -2.0].map(f32::to_be_bytes).concat();
        assert_eq!(round(&complex, &memory), file);
        let wchar = element("WCHAR", "wchar", 4);
        assert_eq!(round(&wchar, &0x20ac_u32.to_le_bytes()), [0x20, 0xac]);
        let logical = element("LOGICAL", "logical", 4);
        assert_eq!(round(&logical, &[1, 0, 0, 0]), [0, 0, 0, 1]);
        assert_eq!(round(&element("C_BOOL", "logical", 1), &[1, 0]), [1, 0]);
        assert_eq!(round(&element("BYTE", "byte", 1), b"abc"), b"abc");
        let mut pi = [0; 16];
        pi[..8].copy_from_slice(&0xc90f_daa2_2168_c235_u64.to_le_bytes());
        pi[8..10].copy_from_slice(&0x4000_u16.to_le_bytes());
        let file = round(&element("LONG_DOUBLE", "float", 16), &pi);
        assert_eq!(
            file,
            0x4000_921f_b544_42d1_846a_0000_0000_0000_u128.to_be_bytes()
        );
        let int16 = element("INTEGER16", "int", 16);
        round(&int16, &(-5_i128).to_le_bytes());
    }

    #[test]
    fn values_that_do_not_fit_are_errors() {
        let long = element("LONG", "int", 8);
        for value in [i64::MAX, i64::MIN, 1 << 31, -(1 << 31) - 1] {
            let failed = to_external(&long, &value.to_le_bytes(), &mut [0; 4]);
            assert_eq!(failed.unwrap_err().class, Class::Conversion, "{value}");
        }
        to_external(&long, &(-(1_i64 << 31)).to_le_bytes(), &mut [0; 4]).unwrap();
        let ulong = element("UNSIGNED_LONG", "uint", 8);
        assert!(to_external(&ulong, &(1_u64 << 32).to_le_bytes(), &mut [0; 4]).is_err());
        let wchar = element("WCHAR", "wchar", 4);
        assert!(to_external(&wchar, &0x1f600_u32.to_le_bytes(), &mut [0; 2]).is_err());
    }

    #[test]
    fn all_bytes_of_a_logical_are_looked_at() {
        let logical = element("LOGICAL", "logical", 4);
        let mut memory = [9; 8];
        from_external(&logical, &[1, 0, 0, 0, 0, 0, 0, 0], &mut memory).unwrap();
        assert_eq!(memory, [1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn reals_that_are_wider_in_memory_become_those_of_the_table() {
        let real = element("REAL", "float", 8);
        let file = round(&real, &2.5_f64.to_le_bytes());
        assert_eq!(file, 2.5_f32.to_be_bytes());
    }
}
