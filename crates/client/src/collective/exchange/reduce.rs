//! Reductions: numbers of all members become one list of numbers, entry by entry.
//!
//! Entries are combined in the order of ranks, so all members get the same result to the last bit. Short lists go to
//! everybody and are combined there; of long ones each member combines its share, and the shares are gathered.

use crate::collective::team::Team;
use crate::error::{Error, Result};

/// Bytes of all members up to which everybody gets everything.
const SHORT_BYTES: usize = 64 << 10;

/// What is made of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Their sum; one that does not fit is an error.
    Sum,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// The bits that both have.
    And,
    /// The bits that either has.
    Or,
}

/// Numbers that can be [reduced](Team::all_reduce): `u64`, `i64` and `f64`.
pub trait Number: Copy + Send + Sync + private::Seal {
    #[doc(hidden)]
    fn bits(self) -> u64;
    #[doc(hidden)]
    fn of_bits(bits: u64) -> Self;
    #[doc(hidden)]
    fn combine(self, other: Self, how: Reduction) -> Option<Self>;
}

mod private {
    pub trait Seal {}
    impl Seal for u64 {}
    impl Seal for i64 {}
    impl Seal for f64 {}
}

macro_rules! whole_numbers {
    ($($name:ty),*) => {$(
        impl Number for $name {
            fn bits(self) -> u64 {
                self as u64
            }

            fn of_bits(bits: u64) -> Self {
                bits as $name
            }

            fn combine(self, other: Self, how: Reduction) -> Option<Self> {
                match how {
                    Reduction::Sum => self.checked_add(other),
                    Reduction::Min => Some(self.min(other)),
                    Reduction::Max => Some(self.max(other)),
                    Reduction::And => Some(self & other),
                    Reduction::Or => Some(self | other),
                }
            }
        }
    )*};
}

whole_numbers!(u64, i64);

impl Number for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }

    fn of_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }

    fn combine(self, other: Self, how: Reduction) -> Option<Self> {
        match how {
            Reduction::Sum => Some(self + other),
            Reduction::Min => Some(self.min(other)),
            Reduction::Max => Some(self.max(other)),
            Reduction::And | Reduction::Or => None,
        }
    }
}

fn put<T: Number>(values: &[T]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.bits().to_le_bytes())
        .collect()
}

fn read<T: Number>(bytes: &[u8]) -> impl Iterator<Item = T> {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|bytes| T::of_bits(u64::from_le_bytes(*bytes)))
}

/// Combines lists of all members, in the order of ranks.
fn fold<T: Number>(all: &[Vec<u8>], how: Reduction) -> Result<Vec<T>> {
    let mut values: Vec<T> = read(&all[0]).collect();
    for (rank, bytes) in all.iter().enumerate().skip(1) {
        if bytes.len() != all[0].len() {
            let text = format!("rank {rank} has another number of them than rank 0");
            return Err(Error::argument("values", text));
        }
        for (value, other) in values.iter_mut().zip(read(bytes)) {
            *value = value.combine(other, how).ok_or_else(|| {
                Error::argument(
                    "values",
                    format!("{how:?} of them does not exist or does not fit"),
                )
            })?;
        }
    }
    Ok(values)
}

impl Team {
    /// Combines the values of all members entry by entry; all get the result, the same to the last bit.
    ///
    /// ```
    /// use client::{Reduction, Team};
    /// let team = Team::threads(3);
    /// std::thread::scope(|scope| {
    ///     for member in &team {
    ///         scope.spawn(move || {
    ///             let mine = [member.rank() as u64, 10];
    ///             assert_eq!(member.all_reduce(&mine, Reduction::Sum).unwrap(), [3, 30]);
    ///             assert_eq!(member.all_reduce(&mine, Reduction::Max).unwrap(), [2, 10]);
    ///         });
    ///     }
    /// });
    /// ```
    pub fn all_reduce<T: Number>(&self, values: &[T], how: Reduction) -> Result<Vec<T>> {
        let size = self.size();
        if values.len() * 8 * size <= SHORT_BYTES {
            return fold(&self.agree(Ok(put(values)))?, how);
        }
        let bytes = put(values);
        let share = values.len().div_ceil(size) * 8;
        let cut = |rank: usize| (rank * share).min(bytes.len());
        let parts: Vec<&[u8]> = (0..size).map(|r| &bytes[cut(r)..cut(r + 1)]).collect();
        let mine = fold::<T>(&self.exchange(&parts)?, how);
        let all = self.agree(mine.map(|mine| put(&mine)))?;
        Ok(all.iter().flat_map(|bytes| read(bytes)).collect())
    }

    /// Combines the values of all members entry by entry, at one of them.
    pub fn reduce<T: Number>(
        &self,
        root: usize,
        values: &[T],
        how: Reduction,
    ) -> Result<Option<Vec<T>>> {
        let all = self.gather(root, &put(values))?;
        all.map(|all| fold(&all, how)).transpose()
    }
}
