//! What the entries of an array can be: the types that the layout language and Rust both have.
//! Values are bytes in the order of the machine; they are cast and never converted.

use client::Result;
use layout::ElementType;

use memory::Memory;

/// A type of entries.
///
/// | Rust | in a file |
/// |---|---|
/// | `u8`, `u16`, `u32`, `u64` | `u8` ... `u64` |
/// | `i8`, `i16`, `i32`, `i64` | `i8` ... `i64` |
/// | `f32`, `f64` | `f32`, `f64` |
/// | `bool` | `bool`, a byte of 0 or 1; any other byte is read as `true` |
/// | `[u8; N]` | `bytes(N)` |
/// | `Complex<f32>`, `Complex<f64>` | `c64`, `c128` (feature `complex`) |
///
/// Bytes are in the order of the machine, as every program on it writes them. `f16` has no type in Rust yet: a file with such
/// an array is read as bytes, through [`Pario::file`](crate::Pario::file). No other types can be added, since the catalogue
/// names what a file holds, and a value has to be good whatever its bytes are.
pub trait Element: Memory {
    /// What the catalogue calls it.
    const TYPE: ElementType;
}

pub(crate) mod memory {
    //! How values and bytes become each other. Private, so that [`Element`](super::Element) stays closed.
    //!
    //! Casts are those of `bytemuck`: no copies, no unsafe code here.

    use client::Result;

    /// Values that are bytes in memory.
    #[allow(unreachable_pub)] // it stands in the bounds of a public trait
    pub trait Memory: Copy + Send + Sync + std::fmt::Debug + 'static {
        /// The value whose bytes are all 0.
        const ZERO: Self;

        /// The bytes of values.
        fn bytes(values: &[Self]) -> &[u8];

        /// Lets `read` put bytes where values are to be; those behind the ones it has read become 0.
        fn fill(values: &mut [Self], read: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<()>;
    }
}

/// Reads, and clears what is behind the end of the file.
fn read_or_clear(bytes: &mut [u8], read: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<()> {
    let n = read(bytes)?;
    bytes[n..].fill(0);
    Ok(())
}

macro_rules! plain {
    ($([$($generic:tt)*] $of:ty = $element:expr, $zero:expr;)*) => {$(
        impl<$($generic)*> Memory for $of {
            const ZERO: Self = $zero;

            fn bytes(values: &[Self]) -> &[u8] {
                bytemuck::cast_slice(values)
            }

            fn fill(
                values: &mut [Self],
                read: impl FnOnce(&mut [u8]) -> Result<usize>,
            ) -> Result<()> {
                read_or_clear(bytemuck::cast_slice_mut(values), read)
            }
        }

        impl<$($generic)*> Element for $of {
            const TYPE: ElementType = $element;
        }
    )*};
}

plain! {
    [] u8 = ElementType::U8, 0;
    [] u16 = ElementType::U16, 0;
    [] u32 = ElementType::U32, 0;
    [] u64 = ElementType::U64, 0;
    [] i8 = ElementType::I8, 0;
    [] i16 = ElementType::I16, 0;
    [] i32 = ElementType::I32, 0;
    [] i64 = ElementType::I64, 0;
    [] f32 = ElementType::F32, 0.0;
    [] f64 = ElementType::F64, 0.0;
    [const N: usize] [u8; N] = ElementType::Bytes(N as u64), [0; N];
}

#[cfg(feature = "complex")]
plain! {
    [] num_complex::Complex<f32> = ElementType::C64, num_complex::Complex::new(0.0, 0.0);
    [] num_complex::Complex<f64> = ElementType::C128, num_complex::Complex::new(0.0, 0.0);
}

/// Not every byte is a `bool`, so they are read beside the values and looked at.
impl Memory for bool {
    const ZERO: Self = false;

    fn bytes(values: &[Self]) -> &[u8] {
        bytemuck::cast_slice(values)
    }

    fn fill(values: &mut [Self], read: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<()> {
        let mut bytes = vec![0; values.len()];
        read_or_clear(&mut bytes, read)?;
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value = byte != 0;
        }
        Ok(())
    }
}

impl Element for bool {
    const TYPE: ElementType = ElementType::Bool;
}
