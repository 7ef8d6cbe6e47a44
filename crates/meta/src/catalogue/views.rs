//! Views kept with a file under a name.
//!
//! A user who may write the file may keep and remove views; one who may read it may use them. They go
//! with the file. The text is kept as written, beside what it selects.

use wire::message::Field;

use super::access::{Caller, Permission, demand};
use super::path::{check_name, resolve};
use super::record::{decode, key};

use super::rows::Rows;
use super::{Batch, Credentials, NamedView, Snapshot};
use crate::FileId;
use crate::error::MetaError;

/// Longest description of a kept view.
pub const MAX_VIEW_BYTES: usize = 16 << 20;

/// The file of a path, if the caller may do that with it.
pub(crate) fn file_at(
    rows: &dyn Rows,
    who: &Credentials,
    path: &str,
    permission: Permission,
) -> Result<FileId, MetaError> {
    let (file, node) = resolve(rows, who, path)?;
    if node.is_directory() {
        return Err(MetaError::IsDirectory(path.to_owned()));
    }
    demand(&node, who, permission, path)?;
    Ok(file)
}

impl Batch<'_> {
    /// Keeps a view; one of the same name is replaced.
    pub fn put_view(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        name: &str,
        view: &NamedView,
    ) -> Result<(), MetaError> {
        self.one(|b| {
            let file = file_at(&b.rows, caller.credentials, path, Permission::Write)?;
            check_name("view", name)?;
            let mut out = Vec::new();
            view.put(&mut out);
            if out.len() > MAX_VIEW_BYTES {
                return Err(MetaError::TooLarge("the description of the view"));
            }
            b.rows.put(key::view(file, name), out);
            Ok(())
        })
    }

    /// Removes a view.
    pub fn remove_view(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        name: &str,
    ) -> Result<(), MetaError> {
        self.one(|b| {
            let file = file_at(&b.rows, caller.credentials, path, Permission::Write)?;
            let key = key::view(file, name);
            if b.rows.get(&key)?.is_none() {
                return Err(MetaError::NoView(name.to_owned()));
            }
            b.rows.remove(key);
            Ok(())
        })
    }
}

impl Snapshot {
    /// A view by its name.
    pub fn view(&self, who: &Credentials, path: &str, name: &str) -> Result<NamedView, MetaError> {
        let file = file_at(&self.rows, who, path, Permission::Read)?;
        let key = key::view(file, name);
        match self.rows.get(&key)? {
            Some(bytes) => decode(&key, &bytes, NamedView::read),
            None => Err(MetaError::NoView(name.to_owned())),
        }
    }

    /// Up to `limit` names of views with their texts, behind the name `after`.
    pub fn views(
        &self,
        who: &Credentials,
        path: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, String)>, MetaError> {
        let file = file_at(&self.rows, who, path, Permission::Read)?;
        let after = after.map(|name| key::view(file, name));
        self.rows
            .scan(&key::views_of(file), after.as_deref(), limit)?
            .iter()
            .map(|(key, bytes)| {
                let view = decode(key, bytes, NamedView::read)?;
                Ok((key::name(key, 1).unwrap_or_default().to_owned(), view.text))
            })
            .collect()
    }
}
