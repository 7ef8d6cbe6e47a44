//! How single fields of messages are written, and the macros that make messages of fields.
//!
//! Numbers are variable-length, texts and lists have their length in front, an option is a flag and
//! its value, a choice is its number. A message is its fields in order, without names: what a
//! receiver does not know it cannot skip, so every change of a message is a new protocol version.

use crate::describe;
use crate::layout_state::{LayoutState, Place};
use crate::reader::{DecodeError, Reader, put_number};
use crate::{ClientId, FileId, HandleId, Rights, ServerId, SizeState, Time};

/// Something that can stand in a message.
pub trait Field: Sized {
    /// Fewest bytes that one takes; bounds what a list may allocate.
    const LEAST: usize = 1;

    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads it.
    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// Bytes without a meaning here: seals, notes, descriptions that are validated elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes(pub Vec<u8>);

impl Field for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.0.len() as u64);
        out.extend_from_slice(&self.0);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.length(1)?;
        Ok(Bytes(r.take(n)?.to_vec()))
    }
}

impl Field for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, *self);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.number()
    }
}

impl Field for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(*self));
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        u32::try_from(r.number()?).map_err(|_| DecodeError::BadNumber)
    }
}

impl Field for bool {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(*self));
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.number()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::BadTag(other)),
        }
    }
}

impl Field for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.len() as u64);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.text().map(str::to_owned)
    }
}

impl Field for () {
    const LEAST: usize = 0;

    fn put(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        bool::read(r)?.then(|| T::read(r)).transpose()
    }
}

impl<T: Field> Field for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.len() as u64);
        for item in self {
            item.put(out);
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.length(T::LEAST)?;
        // An item may take more memory than bytes: the list grows as items are read.
        let mut list = Vec::new();
        for _ in 0..n {
            list.push(T::read(r)?);
        }
        Ok(list)
    }
}

macro_rules! numbers {
    ($($name:ident),*) => {$(
        impl Field for $name {
            fn put(&self, out: &mut Vec<u8>) {
                put_number(out, self.0);
            }

            fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.number().map($name)
            }
        }
    )*};
}

numbers!(FileId, ClientId, HandleId, ServerId);

impl Field for Time {
    /// Small in both directions from 1970: the sign is the lowest bit.
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, ((self.0 << 1) ^ (self.0 >> 63)) as u64);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.number()?;
        Ok(Time((n >> 1) as i64 ^ -((n & 1) as i64)))
    }
}

impl Field for Rights {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.bits()));
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.number()?;
        u8::try_from(n)
            .ok()
            .and_then(Rights::from_bits)
            .ok_or(DecodeError::BadTag(n))
    }
}

impl Field for Place {
    const LEAST: usize = 2;

    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.server);
        put_number(out, self.incarnation);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Place {
            server: r.number()?,
            incarnation: r.number()?,
        })
    }
}

impl Field for LayoutState {
    fn put(&self, out: &mut Vec<u8>) {
        LayoutState::put(self, out);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        LayoutState::read(r)
    }
}

impl Field for layout::View {
    fn put(&self, out: &mut Vec<u8>) {
        describe::put_view(out, self);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        describe::view(r)
    }
}

record! {
    for SizeState { size: u64, epoch: u64, truncate_to: Option<u64> }
}
