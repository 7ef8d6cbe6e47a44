//! Reading numbers, strings and lists from bytes that nobody vouches for.
//!
//! Numbers are variable-length (seven bits a byte, least significant first, at most ten bytes, the
//! shortest form only), so a description has one encoding. Lengths are checked against what is left
//! before anything is allocated: a list of n items needs at least n bytes.

use falls::FallsError;
use layout::LayoutError;

/// Why bytes were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end too early.
    #[error("the message ends too early")]
    Truncated,
    /// Bytes are left over.
    #[error("{0} bytes are left over")]
    Trailing(usize),
    /// A number has more than 64 bits or a longer form than it needs.
    #[error("a number is not in its shortest form")]
    BadNumber,
    /// A tag or flag has no meaning.
    #[error("tag {0} has no meaning")]
    BadTag(u64),
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    BadText,
    /// More than the receiver takes.
    #[error("the description is too large")]
    TooLarge,
    /// Nested deeper than the receiver takes.
    #[error("the description is nested too deeply")]
    TooDeep,
    /// The set is not well formed.
    #[error("a set is not well formed: {0}")]
    Set(#[from] FallsError),
    /// The elements are no partition.
    #[error("a layout is not valid: {0}")]
    Layout(#[from] LayoutError),
}

/// A cursor over received bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    /// Bytes not read yet.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Refuses bytes that are left over.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Trailing(self.bytes.len()))
        }
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self
            .bytes
            .split_at_checked(n)
            .ok_or(DecodeError::Truncated)?;
        self.bytes = rest;
        Ok(head)
    }

    /// The next number.
    pub fn number(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for i in 0..10 {
            let (&byte, rest) = self.bytes.split_first().ok_or(DecodeError::Truncated)?;
            self.bytes = rest;
            let bits = u64::from(byte & 0x7f);
            if (i == 9 && bits > 1) || (i > 0 && byte == 0) {
                return Err(DecodeError::BadNumber);
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::BadNumber)
    }

    /// The length of a list whose items take at least `least` bytes each.
    pub fn length(&mut self, least: usize) -> Result<usize, DecodeError> {
        let n = usize::try_from(self.number()?).map_err(|_| DecodeError::TooLarge)?;
        match n.checked_mul(least.max(1)) {
            Some(bytes) if bytes <= self.left() => Ok(n),
            _ => Err(DecodeError::Truncated),
        }
    }

    /// A text with its length in front.
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        let n = self.length(1)?;
        std::str::from_utf8(self.take(n)?).map_err(|_| DecodeError::BadText)
    }
}

/// Appends a number.
pub fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        for value in [0, 1, 127, 128, 300, 1 << 32, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, value);
            let mut r = Reader::new(&out);
            assert_eq!(r.number(), Ok(value));
            assert_eq!(r.finish(), Ok(()));
        }
        assert_eq!(
            Reader::new(&[0x80, 0x00]).number(),
            Err(DecodeError::BadNumber)
        );
        assert_eq!(
            Reader::new(&[0xff; 10]).number(),
            Err(DecodeError::BadNumber)
        );
        assert_eq!(Reader::new(&[0x80]).number(), Err(DecodeError::Truncated));
    }

    #[test]
    fn lengths_are_paid_for() {
        let mut out = Vec::new();
        put_number(&mut out, 1 << 40);
        assert_eq!(Reader::new(&out).length(1), Err(DecodeError::Truncated));
        assert_eq!(Reader::new(&[2, b'a']).text(), Err(DecodeError::Truncated));
        assert_eq!(
            Reader::new(&[2, 0xc3, 0x28]).text(),
            Err(DecodeError::BadText)
        );
    }
}
