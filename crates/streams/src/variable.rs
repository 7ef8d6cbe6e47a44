//! Parallel variables as operations see them: where in memory the bytes of each VP are (L-03, L-04, L-17).
//!
//! All elements of a variable lie together, one after the other. A member of a parallel array, or a field of a structure, has
//! a stride that is larger than its bytes.

use client::{Error, Result};

/// Bytes of every VP of a member, to be written.
#[derive(Clone, Copy, Debug)]
pub struct Variable<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) place: Strides,
}

/// Room for bytes of every VP of a member, to be read into.
#[derive(Debug)]
pub struct VariableMut<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) place: Strides,
}

/// Where the bytes of VPs begin: those of VP i at `first + i * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strides {
    pub(crate) first: usize,
    /// 0: as many bytes as every VP has.
    pub(crate) stride: usize,
}

/// Whether there is anything between the bytes of VPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Density {
    Dense,
    Strided,
}

impl Strides {
    const DENSE: Strides = Strides {
        first: 0,
        stride: 0,
    };

    /// With the stride of a dense variable filled in; or why memory does not have the bytes of so many VPs.
    pub(crate) fn resolve(self, count: usize, bytes: usize, len: usize) -> Result<Strides> {
        let stride = if self.stride == 0 { bytes } else { self.stride };
        let needed = match count {
            0 => Some(0),
            _ => (count - 1)
                .checked_mul(stride)
                .and_then(|all| all.checked_add(self.first)?.checked_add(bytes)),
        };
        let is_dense = self == Strides::DENSE;
        match needed {
            Some(needed) if needed == len || !is_dense && needed <= len => {}
            _ => {
                return Err(Error::Argument {
                    name: "variable",
                    text: format!(
                        "{len} bytes of memory, but {count} VPs of {bytes} bytes each, {stride} apart, take {}",
                        needed.map_or("more than there is".to_owned(), |n| n.to_string())
                    ),
                });
            }
        }
        if stride < bytes {
            return Err(Error::Argument {
                name: "stride",
                text: format!("{stride}, but every VP has {bytes} bytes; give that or more"),
            });
        }
        Ok(Strides {
            first: self.first,
            stride,
        })
    }

    pub(crate) fn of(self, local: usize) -> usize {
        self.first + local * self.stride
    }

    /// Whether the bytes of VPs touch each other.
    pub(crate) fn density(self, bytes: usize) -> Density {
        match self.stride == bytes {
            true => Density::Dense,
            false => Density::Strided,
        }
    }
}

impl<'a> Variable<'a> {
    /// Bytes of VPs, `stride` apart, the first at `first`.
    pub fn strided(bytes: &'a [u8], first: usize, stride: usize) -> Variable<'a> {
        let place = Strides { first, stride };
        Variable { bytes, place }
    }
}

impl<'a> VariableMut<'a> {
    /// Room of VPs, `stride` apart, the first at `first`.
    pub fn strided(bytes: &'a mut [u8], first: usize, stride: usize) -> VariableMut<'a> {
        let place = Strides { first, stride };
        VariableMut { bytes, place }
    }
}

impl<'a> From<&'a [u8]> for Variable<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        let place = Strides::DENSE;
        Variable { bytes, place }
    }
}

impl<'a> From<&'a Vec<u8>> for Variable<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Variable::from(&bytes[..])
    }
}

impl<'a> From<&'a mut [u8]> for VariableMut<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        let place = Strides::DENSE;
        VariableMut { bytes, place }
    }
}

impl<'a> From<&'a mut Vec<u8>> for VariableMut<'a> {
    fn from(bytes: &'a mut Vec<u8>) -> Self {
        VariableMut::from(&mut bytes[..])
    }
}
