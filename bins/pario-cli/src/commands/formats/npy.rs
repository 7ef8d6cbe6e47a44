//! `.npy`: a head that says type, order and shape, and then the entries.
//!
//! Versions 1 to 3 are read; a head in ASCII is written as version 1, any other as version 3, as numpy does.

use std::io::{Error as IoError, ErrorKind, Read};

use layout::{ArrayType, Order};
use serde_json::Value;

use super::entries::EntryType;
use super::literal;
use crate::commands::Error;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bytes that the head is filled up to a multiple of.
const ALIGNMENT: usize = 64;
/// No head is longer: a type of a thousand fields takes a tenth.
const MOST_HEAD: usize = 1 << 20;

/// What the head of a file says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    pub(crate) entries: EntryType,
    pub(crate) order: Order,
    pub(crate) shape: Vec<u64>,
}

impl Head {
    /// Reads it, and no byte behind it.
    pub(crate) fn read(from: &mut impl Read) -> Result<Head, Error> {
        let mut start = [0; 8];
        from.read_exact(&mut start).map_err(|e| damaged(&e))?;
        if &start[..6] != MAGIC {
            return Err("it does not begin as a .npy file does".into());
        }
        let len = match start[6] {
            1 => {
                let mut len = [0; 2];
                from.read_exact(&mut len).map_err(|e| damaged(&e))?;
                usize::from(u16::from_le_bytes(len))
            }
            2 | 3 => {
                let mut len = [0; 4];
                from.read_exact(&mut len).map_err(|e| damaged(&e))?;
                u32::from_le_bytes(len) as usize
            }
            other => return Err(format!("version {other} of .npy is unknown").into()),
        };
        if len > MOST_HEAD {
            return Err(format!("its head would have {len} bytes").into());
        }
        let mut text = vec![0; len];
        from.read_exact(&mut text).map_err(|e| damaged(&e))?;
        let text = match start[6] {
            3 => String::from_utf8_lossy(&text).into_owned(),
            // Latin 1 before.
            _ => text.iter().map(|&b| char::from(b)).collect(),
        };
        Head::of_text(&text)
            .ok_or_else(|| -> Error { format!("its head cannot be read: {text}").into() })?
    }

    fn of_text(text: &str) -> Option<Result<Head, Error>> {
        let said = literal::parsed(text)?;
        let is_fortran = said.get("fortran_order")?.as_bool()?;
        let shape = said.get("shape")?.as_array()?.iter().map(Value::as_u64);
        let shape = shape.collect::<Option<Vec<u64>>>()?;
        let entries = EntryType::of_numpy(said.get("descr")?);
        Some(entries.map(|entries| Head {
            entries,
            order: match is_fortran {
                true => Order::Fortran,
                false => Order::C,
            },
            shape,
        }))
    }

    /// What a stored array would have.
    pub(crate) fn of_stored(array: &ArrayType, value: Option<&[u8]>) -> Result<Head, Error> {
        Ok(Head {
            entries: EntryType::of_stored(array.element(), value)?,
            order: array.order(),
            shape: array.extents().to_vec(),
        })
    }

    /// The array in the words of the service.
    pub(crate) fn array(&self) -> String {
        let extents: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let order = match self.order {
            Order::C => "",
            Order::Fortran => ":fortran",
        };
        format!("{}[{}]{order}", self.entries.element, extents.join(","))
    }

    /// Bytes of all entries.
    pub(crate) fn bytes(&self) -> Result<u64, Error> {
        let size = self.entries.element.size();
        let all = self.shape.iter().copied().try_fold(size, u64::checked_mul);
        all.ok_or_else(|| "its array has more bytes than can be counted".into())
    }

    /// As it stands in a file.
    pub(crate) fn written(&self) -> Vec<u8> {
        let shape = match self.shape.as_slice() {
            [one] => format!("({one},)"),
            all => {
                let all: Vec<String> = all.iter().map(u64::to_string).collect();
                format!("({})", all.join(", "))
            }
        };
        let order = match self.order {
            Order::C => "False",
            Order::Fortran => "True",
        };
        let descr = literal::type_literal(&self.entries.numpy());
        let mut text =
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
        // Version 3 has UTF-8, version 1 two bytes for the length.
        let version: u8 = match text.is_ascii() && text.len() < 60_000 {
            true => 1,
            false => 3,
        };
        let before = if version == 1 { 10 } else { 12 };
        let end = (before + text.len() + 1).next_multiple_of(ALIGNMENT);
        text.push_str(&" ".repeat(end - before - text.len() - 1));
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend((text.len() as u16).to_le_bytes()),
            _ => bytes.extend((text.len() as u32).to_le_bytes()),
        }
        bytes.extend(text.into_bytes());
        bytes
    }
}

fn damaged(error: &IoError) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => "it ends within its head".into(),
        _ => error.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn heads_come_back() {
        for (said, shape, order) in [
            (json!("<f8"), vec![3, 4], Order::C),
            (json!("<f8"), vec![], Order::C),
            (json!(">i2"), vec![7], Order::Fortran),
            (json!([["größe", "<i4"]]), vec![0, 2], Order::C),
        ] {
            let head = Head {
                entries: EntryType::of_numpy(&said).expect("a type"),
                order,
                shape,
            };
            let mut bytes = head.written();
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            bytes.extend(b"entries");
            let mut rest = bytes.as_slice();
            assert_eq!(Head::read(&mut rest).expect("a head"), head);
            assert_eq!(rest, b"entries", "no byte behind it is taken");
        }
    }

    #[test]
    fn what_is_no_head_is_refused() {
        let head = Head::of_stored(&"f64[3]".parse().expect("an array"), None);
        let good = head.expect("a head").written();
        for cut in 0..good.len() {
            Head::read(&mut &good[..cut]).expect_err("cut");
        }
        let mut other = good.clone();
        other[6] = 9;
        Head::read(&mut other.as_slice()).expect_err("an unknown version");
        Head::read(&mut b"PK\x03\x04 and so on".as_slice()).expect_err("no magic");
    }
}
