//! Values that programs keep with a file under names: what the numbers in it mean, who made it, from what.
//!
//! A user who may write the file may change them; one who may read it may read them. They go with the file and keep their
//! place when it is renamed, moved to another layout or cut. The catalogue does not look into them.
//!
//! Invariants
//! - A change is done as a whole or not at all, and so is a creation with values.
//! - All values of a file fit into one answer: their number, each and all together are bounded.

use super::access::{Caller, Permission};
use super::path::check_name;
use super::record::key;
use super::rows::Rows;
use super::views::file_at;
use super::{Batch, Credentials, NamedValue, Snapshot};
use crate::FileId;
use crate::error::MetaError;
use wire::message::Bytes;

/// Most values of a file.
pub const MAX_VALUES: usize = 1024;

/// Longest value.
pub const MAX_VALUE_BYTES: usize = 64 << 10;

/// Most bytes of all values of a file, with their names.
pub const MAX_VALUES_BYTES: usize = 512 << 10;

fn values(rows: &dyn Rows, file: FileId) -> Result<Vec<NamedValue>, MetaError> {
    let mut found = Vec::new();
    rows.for_each(&key::values_of(file), &mut |key, bytes| {
        found.push(NamedValue {
            name: key::name(key, 1).unwrap_or_default().to_owned(),
            value: Bytes(bytes.to_vec()),
        });
        Ok(())
    })?;
    Ok(found)
}

impl Batch<'_> {
    /// Keeps values with a file and removes others.
    pub fn change_values(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        put: &[NamedValue],
        remove: &[String],
    ) -> Result<(), MetaError> {
        self.one(|b| {
            let file = file_at(&b.rows, caller.credentials, path, Permission::Write)?;
            for name in remove {
                b.rows.remove(key::value(file, name));
            }
            b.keep_values(file, put)
        })
    }

    /// Keeps values with a file; those of the same name are replaced.
    pub(crate) fn keep_values(
        &mut self,
        file: FileId,
        put: &[NamedValue],
    ) -> Result<(), MetaError> {
        if put.is_empty() {
            return Ok(());
        }
        for NamedValue { name, value } in put {
            check_name("value", name)?;
            if value.0.len() > MAX_VALUE_BYTES {
                return Err(MetaError::argument(
                    "value",
                    format!(
                        "{name} has {} bytes; at most {MAX_VALUE_BYTES}, keep what is longer in a file of its own",
                        value.0.len()
                    ),
                ));
            }
            self.rows.put(key::value(file, name), value.0.clone());
        }
        let all = values(&self.rows, file)?;
        let bytes: usize = all.iter().map(|v| v.name.len() + v.value.0.len()).sum();
        if all.len() > MAX_VALUES || bytes > MAX_VALUES_BYTES {
            return Err(MetaError::argument(
                "values",
                format!(
                    "the file would keep {} of {bytes} bytes in all; at most {MAX_VALUES} of {MAX_VALUES_BYTES} bytes",
                    all.len()
                ),
            ));
        }
        Ok(())
    }
}

impl Snapshot {
    /// All values that are kept with a file, by ascending names.
    pub fn values(&self, who: &Credentials, path: &str) -> Result<Vec<NamedValue>, MetaError> {
        let file = file_at(&self.rows, who, path, Permission::Read)?;
        values(&self.rows, file)
    }
}
