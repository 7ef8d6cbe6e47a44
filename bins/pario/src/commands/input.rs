//! Arguments that several commands share: the space a layout is put on, an array or a plain file.
//! Without either a stored file is meant, which is refused until there is a service.

use clap::Args;
use layout::ArrayType;

use super::Error;
use crate::notation;
use crate::subject::{TITLE, cut_in_the_middle};

/// The array or file that a layout is for.
#[derive(Args, Clone, Debug)]
pub(crate) struct Space {
    /// The array, such as 'f64[6,8]' or 'f32[100,100]:fortran'
    #[arg(long, value_name = "ARRAY", conflicts_with = "bytes")]
    pub(crate) array: Option<String>,

    /// A plain file of this many bytes instead of an array, such as 1MiB
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) bytes: Option<String>,
}

impl Space {
    /// The array and whether it stands for a plain file; `None` if a stored file is meant.
    pub(crate) fn array(&self) -> Result<Option<(ArrayType, bool)>, Error> {
        Ok(match (&self.array, &self.bytes) {
            (Some(array), _) => Some((notation::array(array)?, false)),
            (None, Some(size)) => Some((notation::file(size)?, true)),
            (None, None) => None,
        })
    }
}

/// The answer to a PATH.
pub(crate) fn no_service(path: &str) -> Error {
    let path = cut_in_the_middle(path, TITLE);
    format!(
        "'{path}' would be the path of a stored file, and there is no service yet that stores files; \
         give the array a layout is for, as in --array 'f64[6,8]'"
    )
    .into()
}
