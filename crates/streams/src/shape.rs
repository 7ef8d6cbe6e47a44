//! [`Shape`]: how many virtual processors there are, and how they are arranged (L-02 of the specification).
//!
//! VPs are numbered row by row, the last index fastest. A shape of the program and that of a file are compared as wholes:
//! `[4][6]` and `[24]` have as many VPs and are not the same.

use std::fmt;
use std::str::FromStr;

use client::{Error, Result};
use layout::{ArrayType, ElementType, MAX_DIMENSIONS, Order};

/// The arrangement of virtual processors; reads and prints as `[256][128]`.
///
/// ```
/// let shape: streams::Shape = "[256][128]".parse()?;
/// assert_eq!((shape.count(), shape.extents()), (32768, &[256, 128][..]));
/// assert_eq!(shape.to_string(), "[256][128]");
/// assert_eq!("256,128".parse::<streams::Shape>()?, shape);
/// # Ok::<(), client::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    extents: Vec<u64>,
    count: u64,
}

impl Shape {
    /// A shape with these extents, the last of which varies fastest.
    pub fn new(extents: &[u64]) -> Result<Shape> {
        let wrong = |text: String| Error::Argument {
            name: "shape",
            text,
        };
        if extents.is_empty() || extents.len() > MAX_DIMENSIONS {
            return Err(wrong(format!(
                "{} dimensions; give 1 to {MAX_DIMENSIONS}",
                extents.len()
            )));
        }
        let count = extents.iter().try_fold(1u64, |all, e| all.checked_mul(*e));
        match count {
            Some(count) if count > 0 && count <= MAX_VPS => Ok(Shape {
                extents: extents.to_vec(),
                count,
            }),
            _ => Err(wrong(format!(
                "{extents:?} has no VP, or more than {MAX_VPS}; give extents of 1 and more"
            ))),
        }
    }

    /// Along every dimension.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// VPs in all.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The array in a file with one entry of so many bytes per VP.
    pub(crate) fn array(&self, block_bytes: u64) -> Result<ArrayType> {
        let element = ElementType::Bytes(block_bytes);
        Ok(ArrayType::new(element, self.extents.clone(), Order::C)?)
    }
}

/// Most VPs of a shape: their numbers fit 40 bits, and blocks of a GiB each still fit a file.
const MAX_VPS: u64 = 1 << 32;

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.extents.iter().try_for_each(|e| write!(f, "[{e}]"))
    }
}

impl FromStr for Shape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shape> {
        let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
        let parts = inner.split(',').flat_map(|part| part.split("]["));
        let extents: std::result::Result<Vec<u64>, _> =
            parts.map(|part| part.trim().parse()).collect();
        let extents = extents.map_err(|_| Error::Argument {
            name: "shape",
            text: format!("`{text}` is no shape; give extents, as in [256][128]"),
        })?;
        Shape::new(&extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_shape_is_refused() {
        for text in ["", "[]", "[0]", "[4][x]", "[4294967296][2]"] {
            let error = text.parse::<Shape>().unwrap_err().to_string();
            assert!(error.starts_with("shape: "), "{error}");
        }
    }
}
