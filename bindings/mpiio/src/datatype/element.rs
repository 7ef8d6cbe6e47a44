//! What a predefined datatype holds: one value, its width in memory, its width in `external32`.
//!
//! Widths in `external32` are those of the standard's table (MPI 4.1, 15.5.2): `long` has 4 bytes there, a wide
//! character 2, `long double` 16.

use crate::ffi::Word;

/// What the bytes of a value mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Nothing: they travel as they are.
    Bytes,
    Signed,
    Unsigned,
    /// IEEE 754 of its width.
    Float,
    /// The 80-bit format of x87, in 16 bytes.
    Extended,
    Logical,
    /// A wide character.
    Wide,
}

/// A predefined datatype of one value, or of two for complex numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Element {
    pub(crate) kind: Kind,
    /// Values in it: 2 for complex numbers.
    pub(crate) values: u8,
    /// Bytes of one value in memory.
    pub(crate) width: u8,
    /// Bytes of one value in `external32`.
    pub(crate) external_width: u8,
    /// The host's handle, for functions of the program that are asked about it.
    pub(crate) handle: Word,
}

impl Element {
    /// An element of `size` bytes by its name and kind in the table of constants; nothing if the table says
    /// otherwise.
    pub(crate) fn named(name: &str, kind: &str, size: u64, handle: Word) -> Option<Element> {
        let is_complex = kind == "complex";
        let values = if is_complex { 2 } else { 1 };
        let width = u8::try_from(size / u64::from(values)).ok()?;
        let is_long_double = name.contains("LONG_DOUBLE");
        let kind = match kind {
            "byte" => Kind::Bytes,
            "int" => Kind::Signed,
            "uint" => Kind::Unsigned,
            "float" | "complex" if is_long_double && width == 16 => Kind::Extended,
            "float" | "complex" => Kind::Float,
            "logical" => Kind::Logical,
            "wchar" => Kind::Wide,
            _ => return None,
        };
        let external_width = match name {
            "LONG" | "UNSIGNED_LONG" | "INTEGER" | "LOGICAL" | "REAL" | "COMPLEX" => 4,
            "DOUBLE_PRECISION" | "DOUBLE_COMPLEX" => 8,
            "WCHAR" => 2,
            "C_BOOL" | "CXX_BOOL" => 1,
            _ if is_long_double => 16,
            _ => width,
        };
        Some(Element {
            kind,
            values,
            width,
            external_width,
            handle,
        })
    }

    /// Bytes that mean nothing.
    pub(crate) fn bytes(size: u8, handle: Word) -> Element {
        Element {
            kind: Kind::Bytes,
            values: 1,
            width: size,
            external_width: size,
            handle,
        }
    }

    /// `MPI_Type_create_f90_real` and its relative for complex numbers. The limits of the standard for
    /// `external32` are those by which kinds of IEEE 754 are chosen in memory.
    pub(crate) fn f90_real(digits: i64, values: u8, size: u64, handle: Word) -> Option<Element> {
        let width = u8::try_from(size / u64::from(values)).ok()?;
        Some(Element {
            kind: match width == 16 && (0..=18).contains(&digits) {
                true => Kind::Extended,
                false => Kind::Float,
            },
            values,
            width,
            external_width: width,
            handle,
        })
    }

    /// `MPI_Type_create_f90_integer`.
    pub(crate) fn f90_integer(digits: i64, size: u64, handle: Word) -> Option<Element> {
        let external_width = match digits {
            ..=2 => 1,
            3..=4 => 2,
            5..=9 => 4,
            10..=18 => 8,
            _ => 16,
        };
        Some(Element {
            kind: Kind::Signed,
            values: 1,
            width: u8::try_from(size).ok()?,
            external_width,
            handle,
        })
    }

    /// Bytes in memory.
    pub(crate) fn size(&self) -> u64 {
        u64::from(self.width) * u64::from(self.values)
    }

    /// Bytes in `external32`.
    pub(crate) fn external_size(&self) -> u64 {
        u64::from(self.external_width) * u64::from(self.values)
    }

    /// Whether a filetype of this may be built of etypes of the other: the same kind of value, or bytes. Complex numbers
    /// are floats here.
    pub(crate) fn matches(&self, other: &Element) -> bool {
        let class = |kind| match kind {
            Kind::Unsigned => Kind::Signed,
            kind => kind,
        };
        self.kind == Kind::Bytes
            || other.kind == Kind::Bytes
            || (class(self.kind), self.width) == (class(other.kind), other.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(name: &str, kind: &str, size: u64) -> Element {
        Element::named(name, kind, size, Word(7)).unwrap()
    }

    #[test]
    fn widths_in_external32_are_those_of_the_standard() {
        for (name, kind, size, external) in [
            ("BYTE", "byte", 1, 1),
            ("WCHAR", "wchar", 4, 2),
            ("SHORT", "int", 2, 2),
            ("INT", "int", 4, 4),
            ("LONG", "int", 8, 4),
            ("UNSIGNED_LONG", "uint", 8, 4),
            ("LONG_LONG_INT", "int", 8, 8),
            ("AINT", "int", 8, 8),
            ("DOUBLE", "float", 8, 8),
            ("LONG_DOUBLE", "float", 16, 16),
            ("C_BOOL", "logical", 1, 1),
            ("LOGICAL", "logical", 4, 4),
            ("COMPLEX", "complex", 8, 8),
            ("C_LONG_DOUBLE_COMPLEX", "complex", 32, 32),
        ] {
            let element = element(name, kind, size);
            assert_eq!(element.size(), size, "{name}");
            assert_eq!(element.external_size(), external, "{name}");
        }
        assert_eq!(element("LONG_DOUBLE", "float", 16).kind, Kind::Extended);
        assert_eq!(element("REAL16", "float", 16).kind, Kind::Float);
        assert_eq!(
            Element::f90_integer(12, 8, Word(0)).unwrap().external_width,
            8
        );
        assert_eq!(
            Element::f90_real(6, 1, 4, Word(0)).unwrap().external_width,
            4
        );
        assert_eq!(
            Element::f90_real(15, 2, 16, Word(0))
                .unwrap()
                .external_size(),
            16
        );
        assert_eq!(
            Element::f90_real(18, 1, 16, Word(0)),
            Some(Element {
                kind: Kind::Extended,
                values: 1,
                width: 16,
                external_width: 16,
                handle: Word(0)
            })
        );
    }

    #[test]
    fn values_of_one_kind_match_and_bytes_match_all() {
        let int = element("INT", "int", 4);
        assert!(int.matches(&element("UNSIGNED", "uint", 4)));
        assert!(int.matches(&element("BYTE", "byte", 1)));
        assert!(!int.matches(&element("DOUBLE", "float", 8)));
        assert!(!int.matches(&element("FLOAT", "float", 4)));
        assert!(!int.matches(&element("LONG", "int", 8)));
        let complex = element("COMPLEX", "complex", 8);
        assert!(!complex.matches(&element("DOUBLE", "float", 8)));
        assert!(complex.matches(&element("FLOAT", "float", 4)));
    }
}
