//! How values become bytes and bytes become values again, for messages among processes.
//!
//! Little endian, lists with their length in front. A reader gets nothing from bytes that end early, so that a broken
//! message is refused and never guessed at.

/// Bytes of a message that are still to be read.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the front.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(front)
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A value that travels.
pub trait Code: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads a value, or nothing where the bytes are none.
    fn take(from: &mut Reader<'_>) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Code for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut Reader<'_>) -> Option<$number> {
                let bytes = from.bytes(size_of::<$number>())?;
                Some(<$number>::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

impl<T: Code> Code for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        let len = u32::try_from(self.len()).expect("a list of a message is short");
        len.put(out);
        for item in self {
            item.put(out);
        }
    }

    fn take(from: &mut Reader<'_>) -> Option<Vec<T>> {
        let len = u32::take(from)?;
        // A length is believed only as far as bytes follow.
        let mut list = Vec::new();
        for _ in 0..len {
            list.push(T::take(from)?);
        }
        Some(list)
    }
}

impl<A: Code, B: Code> Code for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Option<(A, B)> {
        Some((A::take(from)?, B::take(from)?))
    }
}

impl<A: Code, B: Code, C: Code> Code for (A, B, C) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Option<(A, B, C)> {
        Some((A::take(from)?, B::take(from)?, C::take(from)?))
    }
}

/// The contents of a page, copied as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PageBytes(pub Vec<u8>);

impl Code for PageBytes {
    fn put(&self, out: &mut Vec<u8>) {
        u32::try_from(self.0.len())
            .expect("a page is short")
            .put(out);
        out.extend_from_slice(&self.0);
    }

    fn take(from: &mut Reader<'_>) -> Option<PageBytes> {
        let len = u32::take(from)?;
        from.bytes(usize::try_from(len).ok()?)
            .map(|bytes| PageBytes(bytes.to_vec()))
    }
}
