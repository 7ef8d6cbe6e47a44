//! Zarr arrays of version 3 and 2 without compression: what their metadata says, and where their chunks are.
//!
//! Chunks are whole at the edges too. One that is not there is full of the fill value.

use std::fs;
use std::path::{Path, PathBuf};

use layout::{ElementType, Order};
use serde_json::{Value, json};

use super::entries::EntryType;
use super::npy::Head;
use crate::commands::Error;

/// Whether a directory is an array.
pub(crate) fn is_array(path: &Path) -> bool {
    path.join("zarr.json").is_file() || path.join(".zarray").is_file()
}

/// What the metadata says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(crate) head: Head,
    pub(crate) chunks: Vec<u64>,
    /// One entry.
    pub(crate) fill: Vec<u8>,
    /// Before the indices of a chunk.
    prefix: &'static str,
    separator: char,
    version: u8,
    /// Attributes of the array.
    pub(crate) attributes: Value,
}

/// Metadata that says something which is left to the Python package.
#[derive(Debug)]
pub(crate) enum GridError {
    /// It cannot be read.
    Damaged(String),
    /// Its chunks are compressed, filtered, sharded or of a type that only Zarr has.
    NotPlain(String),
}

const NAMES: [(&str, ElementType); 14] = [
    ("bool", ElementType::Bool),
    ("uint8", ElementType::U8),
    ("uint16", ElementType::U16),
    ("uint32", ElementType::U32),
    ("uint64", ElementType::U64),
    ("int8", ElementType::I8),
    ("int16", ElementType::I16),
    ("int32", ElementType::I32),
    ("int64", ElementType::I64),
    ("float16", ElementType::F16),
    ("float32", ElementType::F32),
    ("float64", ElementType::F64),
    ("complex64", ElementType::C64),
    ("complex128", ElementType::C128),
];

impl Grid {
    /// Reads the metadata of a directory.
    pub(crate) fn read(path: &Path) -> Result<Grid, GridError> {
        let parsed = |name: &str| -> Result<Value, GridError> {
            let text = fs::read(path.join(name));
            let text = text.map_err(|e| GridError::Damaged(format!("{name}: {e}")))?;
            serde_json::from_slice(&text).map_err(|e| GridError::Damaged(format!("{name}: {e}")))
        };
        if path.join("zarr.json").is_file() {
            return third(&parsed("zarr.json")?);
        }
        let attributes = match path.join(".zattrs").is_file() {
            true => parsed(".zattrs")?,
            false => json!({}),
        };
        second(&parsed(".zarray")?, attributes)
    }

    /// One of version 3 for an array of the service.
    pub(crate) fn new(head: Head, chunks: Vec<u64>, attributes: Value) -> Result<Grid, Error> {
        let element = head.entries.element;
        if head.entries.said.is_some() || !NAMES.iter().any(|(_, e)| *e == element) {
            return Err(format!(
                "entries of type {} have no name in Zarr that this program writes",
                head.entries.numpy()
            )
            .into());
        }
        Ok(Grid {
            fill: vec![0; element.size() as usize],
            head,
            chunks,
            prefix: "c",
            separator: '/',
            version: 3,
            attributes,
        })
    }

    /// As version 3 has it.
    pub(crate) fn metadata(&self) -> Value {
        let element = self.head.entries.element;
        let name = NAMES.iter().find(|(_, e)| *e == element);
        let mut codecs = Vec::new();
        if self.head.order == Order::Fortran && self.chunks.len() > 1 {
            let order: Vec<usize> = (0..self.chunks.len()).rev().collect();
            codecs.push(json!({ "name": "transpose", "configuration": { "order": order } }));
        }
        codecs.push(match element.size() {
            1 => json!({ "name": "bytes" }),
            _ => json!({ "name": "bytes", "configuration": { "endian": "little" } }),
        });
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.head.shape,
            "data_type": name.map(|(name, _)| *name),
            "chunk_grid": {
                "name": "regular", "configuration": { "chunk_shape": self.chunks },
            },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
            "fill_value": match element {
                ElementType::Bool => json!(false),
                ElementType::C64 | ElementType::C128 => json!([0.0, 0.0]),
                ElementType::F16 | ElementType::F32 | ElementType::F64 => json!(0.0),
                _ => json!(0),
            },
            "codecs": codecs,
            "attributes": self.attributes,
        })
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk_bytes(&self) -> Result<usize, Error> {
        let size = self.head.entries.element.size();
        let all = self.chunks.iter().copied().try_fold(size, u64::checked_mul);
        let all = all
            .filter(|&n| n <= 1 << 40)
            .and_then(|n| usize::try_from(n).ok());
        all.ok_or_else(|| "its chunks are larger than memory".into())
    }

    /// All chunks by their indices.
    pub(crate) fn all(&self) -> impl Iterator<Item = Vec<u64>> + use<> {
        let pairs = self.head.shape.iter().zip(&self.chunks);
        let counts: Vec<u64> = pairs.map(|(n, c)| n.div_ceil(*c)).collect();
        let total: u64 = counts.iter().product();
        (0..total).map(move |number| {
            let mut rest = number;
            let mut at: Vec<u64> = counts
                .iter()
                .rev()
                .map(|&count| {
                    let index = rest % count;
                    rest /= count;
                    index
                })
                .collect();
            at.reverse();
            at
        })
    }

    /// What a chunk has of the array.
    pub(crate) fn region(&self, at: &[u64]) -> Vec<super::regions::Span> {
        let all = at.iter().zip(&self.chunks).zip(&self.head.shape);
        all.map(|((&index, &chunk), &extent)| {
            let first = index * chunk;
            (first, chunk.min(extent - first))
        })
        .collect()
    }

    /// Where a chunk is.
    pub(crate) fn file(&self, root: &Path, at: &[u64]) -> PathBuf {
        let indices: Vec<String> = at.iter().map(u64::to_string).collect();
        let indices = indices.join(&self.separator.to_string());
        let key = match (self.version, self.prefix, indices.is_empty()) {
            (2, _, true) => "0".into(),
            (_, "", _) => indices,
            (_, prefix, true) => prefix.into(),
            (_, prefix, false) => format!("{prefix}{}{indices}", self.separator),
        };
        root.join(key)
    }
}

fn numbers(said: &Value) -> Result<Vec<u64>, GridError> {
    let all = said.as_array().map(|all| all.iter().map(Value::as_u64));
    all.and_then(Iterator::collect)
        .ok_or_else(|| GridError::Damaged(format!("{said} where lengths should be")))
}

fn third(said: &Value) -> Result<Grid, GridError> {
    if said["node_type"] != "array" {
        return Err(GridError::Damaged(
            "it is a group; name one of its arrays".into(),
        ));
    }
    let shape = numbers(&said["shape"])?;
    let not_plain = |what: &Value| Err(GridError::NotPlain(what.to_string()));
    let name = said["data_type"].as_str();
    let Some((_, element)) = NAMES.iter().find(|(known, _)| Some(*known) == name) else {
        return not_plain(&said["data_type"]);
    };
    if said["chunk_grid"]["name"] != "regular" {
        return not_plain(&said["chunk_grid"]);
    }
    let mut order = Order::C;
    let reversed: Vec<usize> = (0..shape.len()).rev().collect();
    let codecs = said["codecs"].as_array().cloned().unwrap_or_default();
    for codec in &codecs {
        match codec["name"].as_str() {
            Some("transpose") if codec["configuration"]["order"] == json!(reversed) => {
                order = Order::Fortran;
            }
            Some("bytes") if codec["configuration"]["endian"] != "big" => {}
            _ => return not_plain(codec),
        }
    }
    let encoding = &said["chunk_key_encoding"];
    let configured = encoding["configuration"]["separator"].as_str();
    let (prefix, usual) = match encoding["name"].as_str() {
        Some("v2") => ("", "."),
        _ => ("c", "/"),
    };
    let separator = configured.unwrap_or(usual).chars().next().unwrap_or('/');
    grid(Grid {
        fill: fill_of(*element, &said["fill_value"])?,
        head: Head {
            entries: EntryType {
                element: *element,
                said: None,
            },
            order,
            shape,
        },
        chunks: numbers(&said["chunk_grid"]["configuration"]["chunk_shape"])?,
        prefix,
        separator,
        version: if prefix.is_empty() { 2 } else { 3 },
        attributes: said["attributes"].clone(),
    })
}

fn second(said: &Value, attributes: Value) -> Result<Grid, GridError> {
    let filters = said["filters"].as_array();
    if !said["compressor"].is_null() || filters.is_some_and(|all| !all.is_empty()) {
        let what = format!(
            "compressor {}, filters {}",
            said["compressor"], said["filters"]
        );
        return Err(GridError::NotPlain(what));
    }
    let entries = EntryType::of_numpy(&said["dtype"]);
    let entries = entries.map_err(|e| GridError::Damaged(e.to_string()))?;
    let fill = match (&entries.said, &said["fill_value"]) {
        (_, Value::Null) => vec![0; entries.element.size() as usize],
        (None, value) => fill_of(entries.element, value)?,
        (Some(_), Value::Number(n)) if n.as_f64() == Some(0.0) => {
            vec![0; entries.element.size() as usize]
        }
        (Some(kind), value) => {
            return Err(GridError::NotPlain(format!(
                "fill value {value} of type {kind}"
            )));
        }
    };
    let separator = said["dimension_separator"].as_str().unwrap_or(".");
    grid(Grid {
        fill,
        head: Head {
            entries,
            order: match said["order"].as_str() {
                Some("F") => Order::Fortran,
                _ => Order::C,
            },
            shape: numbers(&said["shape"])?,
        },
        chunks: numbers(&said["chunks"])?,
        prefix: "",
        separator: separator.chars().next().unwrap_or('.'),
        version: 2,
        attributes,
    })
}

fn grid(grid: Grid) -> Result<Grid, GridError> {
    if grid.chunks.len() != grid.head.shape.len() || grid.chunks.contains(&0) {
        return Err(GridError::Damaged(format!(
            "chunks {:?} of an array {:?}",
            grid.chunks, grid.head.shape
        )));
    }
    Ok(grid)
}

/// One entry with the fill value.
fn fill_of(element: ElementType, said: &Value) -> Result<Vec<u8>, GridError> {
    let wrong = || GridError::NotPlain(format!("fill value {said}"));
    let float = |said: &Value| match said.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        _ => said.as_f64(),
    };
    let size = element.size() as usize;
    if matches!(said, Value::Number(n) if n.as_f64() == Some(0.0)) || said == &Value::Bool(false) {
        return Ok(vec![0; size]);
    }
    let found = match element {
        ElementType::Bool => said.as_bool().map(|b| vec![u8::from(b)]),
        ElementType::F32 => float(said).map(|x| (x as f32).to_le_bytes().to_vec()),
        ElementType::F64 => float(said).map(|x| x.to_le_bytes().to_vec()),
        ElementType::C64 | ElementType::C128 => {
            let parts = said.as_array().filter(|parts| parts.len() == 2);
            let parts =
                parts.and_then(|parts| parts.iter().map(float).collect::<Option<Vec<f64>>>());
            parts.map(|parts| {
                let bytes = parts.iter().map(|&x| match element {
                    ElementType::C64 => (x as f32).to_le_bytes().to_vec(),
                    _ => x.to_le_bytes().to_vec(),
                });
                bytes.flatten().collect()
            })
        }
        ElementType::F16 | ElementType::Bytes(_) => None,
        _ => {
            let whole = said.as_i64().map(|n| n as u64).or_else(|| said.as_u64());
            whole.map(|n| n.to_le_bytes()[..size].to_vec())
        }
    };
    found.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(text: &str) -> Head {
        Head::of_stored(&text.parse().expect("an array"), None).expect("a head")
    }

    #[test]
    fn metadata_comes_back() {
        for (text, chunks) in [
            ("f64[10,7]", vec![4, 3]),
            ("i16[10,7]:fortran", vec![4, 3]),
            ("bool[5]", vec![2]),
            ("c64[]", vec![]),
        ] {
            let made = Grid::new(stored(text), chunks, json!({ "unit": "K" })).expect(text);
            assert_eq!(third(&made.metadata()).expect(text), made);
        }
        Grid::new(stored("bytes(3)[5]"), vec![2], json!({})).expect_err("no name");
    }

    #[test]
    fn chunks_are_found() {
        let grid = Grid::new(stored("f64[10,7]"), vec![4, 3], json!({})).expect("a grid");
        assert_eq!(grid.all().count(), 9);
        assert_eq!(grid.all().last(), Some(vec![2, 2]));
        assert_eq!(grid.region(&[2, 2]), [(8, 2), (6, 1)]);
        let root = Path::new("x");
        assert_eq!(grid.file(root, &[2, 1]), Path::new("x/c/2/1"));
        let said = json!({
            "zarr_format": 2, "shape": [10], "chunks": [4], "dtype": ">i4", "order": "C",
            "compressor": null, "filters": null, "fill_value": 0,
        });
        let old = second(&said, json!({})).expect("a grid");
        assert_eq!(old.file(root, &[2]), Path::new("x/2"));
        assert_eq!(old.head.entries.element, ElementType::Bytes(4));
        let none = Grid::new(stored("f64[]"), vec![], json!({})).expect("a grid");
        assert_eq!(none.file(root, &[]), Path::new("x/c"));
        assert_eq!(none.all().count(), 1);
    }

    #[test]
    fn what_is_compressed_is_left_to_others() {
        let mut said = Grid::new(stored("f64[10]"), vec![4], json!({}))
            .expect("a grid")
            .metadata();
        said["codecs"] = json!([{ "name": "bytes" }, { "name": "zstd" }]);
        assert!(matches!(third(&said), Err(GridError::NotPlain(_))));
        said["codecs"] = json!([{ "name": "bytes" }]);
        said["fill_value"] = json!("NaN");
        let fill = third(&said).expect("a grid").fill;
        assert!(f64::from_le_bytes(fill.try_into().expect("eight")).is_nan());
        said["chunk_grid"]["configuration"]["chunk_shape"] = json!([0]);
        assert!(matches!(third(&said), Err(GridError::Damaged(_))));
    }
}
