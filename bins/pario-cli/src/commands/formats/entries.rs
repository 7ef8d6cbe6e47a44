//! Types of entries: what numpy calls them, and what the service does.
//!
//! What the service has no word for is kept as so many bytes, with the type of numpy beside it as the named value `pario.dtype`; the Python package
//! reads and writes the same (`bindings/python/python/pario/_dtypes.py`).

use layout::ElementType;
use serde_json::{Value, json};

use crate::commands::Error;

/// The named value that keeps a type which the service has no word for.
pub(crate) const DTYPE_VALUE: &str = "pario.dtype";

const NAMED: [(&str, ElementType); 14] = [
    ("b1", ElementType::Bool),
    ("u1", ElementType::U8),
    ("u2", ElementType::U16),
    ("u4", ElementType::U32),
    ("u8", ElementType::U64),
    ("i1", ElementType::I8),
    ("i2", ElementType::I16),
    ("i4", ElementType::I32),
    ("i8", ElementType::I64),
    ("f2", ElementType::F16),
    ("f4", ElementType::F32),
    ("f8", ElementType::F64),
    ("c8", ElementType::C64),
    ("c16", ElementType::C128),
];

/// Types of `ml_dtypes` that numpy itself has no letter for.
const SMALL: [&str; 2] = ["bfloat", "float8"];

/// What one entry is, for the service and for numpy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EntryType {
    pub(crate) element: ElementType,
    /// What is kept beside it.
    pub(crate) said: Option<Value>,
}

impl EntryType {
    /// From a type as numpy describes it: a text, or a list of fields.
    pub(crate) fn of_numpy(said: &Value) -> Result<EntryType, Error> {
        let size = size_of(said).ok_or_else(|| -> Error {
            format!("entries of type {said} have no fixed size that numpy could name").into()
        })?;
        let named = said.as_str().and_then(|text| {
            let bare = text.strip_prefix(['<', '|', '='])?;
            let found = NAMED.iter().find(|(name, _)| *name == bare)?;
            (found.1.size() == 1 || cfg!(target_endian = "little")).then_some(found.1)
        });
        Ok(match named {
            Some(element) => EntryType {
                element,
                said: None,
            },
            None => EntryType {
                element: ElementType::Bytes(size),
                said: Some(said.clone()),
            },
        })
    }

    /// From what the service keeps.
    pub(crate) fn of_stored(
        element: ElementType,
        value: Option<&[u8]>,
    ) -> Result<EntryType, Error> {
        let said = match value {
            None => None,
            Some(text) => Some(serde_json::from_slice(text).map_err(|error| -> Error {
                format!("the value {DTYPE_VALUE} of the file cannot be read: {error}").into()
            })?),
        };
        Ok(EntryType { element, said })
    }

    /// As numpy describes it in a file.
    pub(crate) fn numpy(&self) -> Value {
        let size = self.element.size();
        match &self.said {
            // As numpy itself writes the types of ml_dtypes.
            Some(Value::String(text)) if SMALL.iter().any(|small| text.starts_with(small)) => {
                json!(format!("<V{size}"))
            }
            Some(said) => said.clone(),
            None => {
                let named = NAMED.iter().find(|(_, element)| *element == self.element);
                let sign = if size == 1 { '|' } else { '<' };
                json!(named.map_or(format!("|V{size}"), |(name, _)| format!("{sign}{name}")))
            }
        }
    }
}

/// Bytes of an entry.
fn size_of(said: &Value) -> Option<u64> {
    match said {
        Value::String(text) => {
            let bare = text.trim_start_matches(['<', '>', '|', '=']);
            let mut chars = bare.chars();
            let kind = chars.next()?;
            let digits: String = chars.take_while(char::is_ascii_digit).collect();
            let size: u64 = digits.parse().ok()?;
            match kind {
                'b' | 'u' | 'i' | 'f' | 'c' | 'm' | 'M' | 'S' | 'a' | 'V' => Some(size),
                'U' => size.checked_mul(4),
                _ => None,
            }
        }
        Value::Array(fields) if !fields.is_empty() && fields.iter().all(Value::is_array) => {
            let mut sum: u64 = 0;
            for field in fields {
                let parts = field.as_array()?;
                let mut size = size_of(parts.get(1)?)?;
                if let Some(shape) = parts.get(2) {
                    size = size.checked_mul(count(shape)?)?;
                }
                sum = sum.checked_add(size)?;
            }
            Some(sum)
        }
        Value::Array(parts) if parts.len() == 2 => {
            size_of(&parts[0])?.checked_mul(count(&parts[1])?)
        }
        _ => None,
    }
}

fn count(shape: &Value) -> Option<u64> {
    match shape {
        Value::Array(extents) => extents
            .iter()
            .try_fold(1u64, |all, extent| all.checked_mul(extent.as_u64()?)),
        number => number.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_come_back() {
        for (said, element) in [
            (json!("<f8"), "f64"),
            (json!("|b1"), "bool"),
            (json!("<c16"), "c128"),
            (json!(">f8"), "bytes(8)"),
            (json!("<U5"), "bytes(20)"),
            (json!("<M8[ns]"), "bytes(8)"),
            (
                json!([["a", "<i4"], ["b", "<f8", [2, 3]], ["c", [["x", "|u1"]]]]),
                "bytes(53)",
            ),
        ] {
            let found = EntryType::of_numpy(&said).expect("a type");
            assert_eq!(found.element.to_string(), element);
            assert_eq!(found.numpy(), said);
            let text = found.said.as_ref().map(|v| v.to_string().into_bytes());
            let again = EntryType::of_stored(found.element, text.as_deref()).expect("a type");
            assert_eq!(again, found);
        }
        for bad in [json!("|O"), json!("O8"), json!("f"), json!(3), json!([])] {
            EntryType::of_numpy(&bad).expect_err("no size");
        }
        let small = EntryType::of_stored(ElementType::Bytes(2), Some(b"\"bfloat16\""));
        assert_eq!(small.expect("a type").numpy(), json!("<V2"));
    }
}
