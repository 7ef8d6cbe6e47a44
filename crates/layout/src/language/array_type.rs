//! The notation of arrays: `f64[4096,4096]`, `bytes(12)[100]`, `f32[6,8]:fortran`.
//!
//! ```text
//! array = type "[" [ extent { "," extent } ] "]" [ ":" ( "c" | "fortran" ) ]
//! type  = "f64" | "i32" | ... | "bytes" "(" size ")"
//! ```

use std::str::FromStr;

use super::scanner::{LayoutParseError, Scanner};
use crate::array::{ArrayType, ElementType, Order};

impl FromStr for ArrayType {
    type Err = LayoutParseError;

    fn from_str(text: &str) -> Result<Self, LayoutParseError> {
        let mut scanner = Scanner::new(text)?;
        let element = element_type(&mut scanner)?;
        let place = scanner.place();
        scanner.expect('[', "before the extents, as in f64[6,8]")?;
        let extents = match scanner.take(']') {
            true => Vec::new(),
            false => scanner.numbers(']', "an extent")?,
        };
        let order = order(&mut scanner)?.unwrap_or_default();
        scanner.end("the array")?;
        ArrayType::new(element, extents, order).map_err(|e| scanner.error_at(place, e.to_string()))
    }
}

fn element_type(scanner: &mut Scanner) -> Result<ElementType, LayoutParseError> {
    let word = scanner.peek_word();
    if scanner.take_word("bytes") {
        scanner.expect('(', "and the size of an entry, as in bytes(12)")?;
        let size = scanner.size("the size of an entry")?;
        scanner.expect(')', "after the size")?;
        return Ok(ElementType::Bytes(size));
    }
    match ElementType::NAMED.iter().find(|(name, _)| *name == word) {
        Some((_, element)) => {
            scanner.skip_word();
            Ok(*element)
        }
        None => Err(scanner.expected("an element type such as f64, i32, u8, c64 or bytes(12)")),
    }
}

/// `:c` or `:fortran`, if it is next.
pub(super) fn order(scanner: &mut Scanner) -> Result<Option<Order>, LayoutParseError> {
    if !scanner.take(':') {
        return Ok(None);
    }
    if scanner.take_word("fortran") {
        Ok(Some(Order::Fortran))
    } else if scanner.take_word("c") {
        Ok(Some(Order::C))
    } else {
        Err(scanner.expected("the order: c or fortran"))
    }
}
