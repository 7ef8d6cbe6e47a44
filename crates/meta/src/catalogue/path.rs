//! Paths: how they are read, and how they lead to nodes.
//!
//! A path begins with `/` and has at most [`MAX_PATH_BYTES`]; a component is any UTF-8 without `/`
//! and NUL of at most [`MAX_NAME_BYTES`]. Names are compared byte for byte. Repeated slashes count
//! once, `.` stays, `..` goes up (from the root to the root), and a slash at the end demands a
//! directory. Every directory on the way needs search permission.

use control::stamps::Subject;

use super::Credentials;
use super::access::{Permission, demand};
use super::record::{Node, ROOT, find_entry, find_node, node};
use super::rows::Rows;
use super::stamped::Trail;
use crate::FileId;
use crate::error::MetaError;

/// Longest path.
pub const MAX_PATH_BYTES: usize = 4096;
/// Longest component.
pub const MAX_NAME_BYTES: usize = 255;

/// Where a name is, whether or not anything has it.
pub(crate) struct PathEnd<'p> {
    pub(crate) directory: FileId,
    pub(crate) directory_node: Node,
    pub(crate) name: &'p str,
    pub(crate) child: Option<FileId>,
    /// The path ended with a slash.
    pub(crate) demands_directory: bool,
}

/// Checks a path and splits it.
fn components(path: &str) -> Result<Vec<&str>, MetaError> {
    if !path.starts_with('/') {
        return Err(MetaError::argument(
            "path",
            format!("`{path}` does not begin with /"),
        ));
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(MetaError::argument(
            "path",
            format!("{} bytes; at most {MAX_PATH_BYTES}", path.len()),
        ));
    }
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    parts.iter().try_for_each(|part| check_name("path", part))?;
    Ok(parts)
}

/// Refuses what cannot be a name.
pub(crate) fn check_name(argument: &'static str, name: &str) -> Result<(), MetaError> {
    let detail = if name.is_empty() {
        "is empty".to_owned()
    } else if name.len() > MAX_NAME_BYTES {
        format!("a name of {} bytes; at most {MAX_NAME_BYTES}", name.len())
    } else if name.contains(['\0', '/']) {
        format!("{name:?} has a NUL or a slash in a name")
    } else {
        return Ok(());
    };
    Err(MetaError::argument(argument, detail))
}

fn walk(
    rows: &dyn Rows,
    who: &Credentials,
    parts: &[&str],
    path: &str,
    trail: &mut Trail,
) -> Result<(FileId, Node), MetaError> {
    let mut at = ROOT;
    let mut here = node(rows, ROOT)?;
    for part in parts {
        if !here.is_directory() {
            return Err(MetaError::NotDirectory(path.to_owned()));
        }
        trail.saw(Subject::Access(at));
        demand(&here, who, Permission::Execute, path)?;
        at = if *part == ".." {
            trail.saw_other();
            here.parent
        } else {
            trail.saw(Subject::Entry(at, part));
            find_entry(rows, at, part)?.ok_or_else(|| MetaError::NotFound(path.to_owned()))?
        };
        here = node(rows, at)?;
    }
    Ok((at, here))
}

/// What has this path.
pub(crate) fn resolve(
    rows: &dyn Rows,
    who: &Credentials,
    path: &str,
) -> Result<(FileId, Node), MetaError> {
    resolve_on(rows, who, path, &mut Trail::default())
}

/// What has this path, and what that depends on.
pub(crate) fn resolve_on(
    rows: &dyn Rows,
    who: &Credentials,
    path: &str,
    trail: &mut Trail,
) -> Result<(FileId, Node), MetaError> {
    let (file, node) = walk(rows, who, &components(path)?, path, trail)?;
    if path.ends_with('/') && !node.is_directory() {
        return Err(MetaError::NotDirectory(path.to_owned()));
    }
    Ok((file, node))
}

/// The directory in which the last component is or would be.
pub(crate) fn locate<'p>(
    rows: &dyn Rows,
    who: &Credentials,
    path: &'p str,
) -> Result<PathEnd<'p>, MetaError> {
    let parts = components(path)?;
    let last_is_dot = path.trim_end_matches('/').ends_with("/.");
    let Some((&name, above)) = parts
        .split_last()
        .filter(|(name, _)| **name != ".." && !last_is_dot)
    else {
        return Err(MetaError::argument(
            "path",
            format!("`{path}` does not end with a name"),
        ));
    };
    let (directory, directory_node) = walk(rows, who, above, path, &mut Trail::default())?;
    if !directory_node.is_directory() {
        return Err(MetaError::NotDirectory(path.to_owned()));
    }
    demand(&directory_node, who, Permission::Execute, path)?;
    Ok(PathEnd {
        child: find_entry(rows, directory, name)?,
        directory,
        directory_node,
        name,
        demands_directory: path.ends_with('/'),
    })
}

/// The path of a node, for messages and tools; `None` when it has lost its name.
pub(crate) fn path_of(rows: &dyn Rows, file: FileId) -> Result<Option<String>, MetaError> {
    let mut parts = Vec::new();
    let mut at = file;
    while at != ROOT {
        // What is below a directory that was removed has lost its name with it.
        let Some(here) = find_node(rows, at)? else {
            return match at == file {
                true => Err(MetaError::NoSuchFile(file)),
                false => Ok(None),
            };
        };
        if here.file().is_some_and(|f| f.unlinked) {
            return Ok(None);
        }
        at = here.parent;
        parts.push(here.name);
    }
    parts.reverse();
    Ok(Some(format!("/{}", parts.join("/"))))
}
