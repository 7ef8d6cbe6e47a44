//! Arguments that several commands share: the space a layout is put on, an array or a plain file.
//! Without either a stored file is meant.

use clap::Args;
use layout::ArrayType;

use super::Error;
use console::notation;
use console::subject::{TITLE, cut_in_the_middle};

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

/// The answer to a layout without the array it is for.
pub(crate) fn no_space(layout: &str) -> Error {
    let layout = cut_in_the_middle(layout, TITLE);
    format!(
        "'{layout}' is a layout without an array; give the array it is for, as in --array \
         'f64[6,8]', or the path of a stored file, as in /results/matrix"
    )
    .into()
}
