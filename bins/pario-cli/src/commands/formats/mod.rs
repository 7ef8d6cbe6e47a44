//! Files of arrays that other programs write: which format a name means, and what its arrays hold.
//!
//! `.npy`, `.npz` whose members are not compressed, Zarr arrays without compression and raw bytes are read and written here. HDF5 and everything that is
//! compressed go through the Python package (`python`), which has the libraries for it.
//!
//! Left to others: moving bytes (`transfer`), arguments and texts (`import`, `export`).

pub(crate) mod entries;
pub(crate) mod literal;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod python;
pub(crate) mod regions;
pub(crate) mod zarr;

use std::path::{Path, PathBuf};

use super::Error;

/// The formats that `pario import` and `pario export` know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One array of numpy.
    Npy,
    /// Several arrays of numpy, by name.
    Npz,
    /// A directory of chunks.
    Zarr,
    /// A file, and the dataset in it.
    Hdf5 { file: PathBuf, dataset: String },
    /// Entries and nothing else.
    Raw,
}

/// Endings of HDF5 files; what follows the colon is the dataset.
const HDF5: [&str; 4] = [".h5", ".hdf5", ".he5", ".nc"];

impl Format {
    /// What the name of a file says, unless the user does.
    pub(crate) fn of(path: &Path, said: Option<&str>) -> Result<Format, Error> {
        let text = path.to_string_lossy();
        let hdf5 = HDF5.iter().find_map(|ending| {
            let (head, tail) = text.split_once(&format!("{ending}:"))?;
            Some(Format::Hdf5 {
                file: format!("{head}{ending}").into(),
                dataset: tail.trim_start_matches(':').to_owned(),
            })
        });
        let is_plain_hdf5 = || HDF5.iter().any(|ending| text.ends_with(ending));
        let without_dataset = || -> Error {
            format!("{text}: an HDF5 file has many datasets; name one, as in {text}:/data").into()
        };
        match said {
            Some("npy") => Ok(Format::Npy),
            Some("npz") => Ok(Format::Npz),
            Some("zarr") => Ok(Format::Zarr),
            Some("raw") => Ok(Format::Raw),
            Some("hdf5") => hdf5.ok_or_else(without_dataset),
            Some(other) => Err(format!(
                "--format: '{other}' is unknown; give npy, npz, zarr, hdf5 or raw"
            )
            .into()),
            None if text.ends_with(".npy") => Ok(Format::Npy),
            None if text.ends_with(".npz") => Ok(Format::Npz),
            None if hdf5.is_some() => hdf5.ok_or_else(without_dataset),
            None if is_plain_hdf5() => Err(without_dataset()),
            None if text.trim_end_matches('/').ends_with(".zarr") || zarr::is_array(path) => {
                Ok(Format::Zarr)
            }
            None => Ok(Format::Raw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_format() {
        let of = |text: &str| Format::of(Path::new(text), None);
        assert_eq!(of("a/b.npy").ok(), Some(Format::Npy));
        assert_eq!(of("b.npz").ok(), Some(Format::Npz));
        assert_eq!(of("b.zarr/").ok(), Some(Format::Zarr));
        assert_eq!(of("b.bin").ok(), Some(Format::Raw));
        let hdf5 = Format::Hdf5 {
            file: "x/b.h5".into(),
            dataset: "/group/data".into(),
        };
        assert_eq!(of("x/b.h5:/group/data").ok(), Some(hdf5));
        let error = of("b.h5").err().map(|e| e.to_string());
        assert!(error.is_some_and(|e| e.contains("name one, as in b.h5:/data")));
        let error = Format::of(Path::new("x"), Some("xls")).err();
        assert!(error.is_some_and(|e| e.to_string().contains("--format: 'xls'")));
    }
}
