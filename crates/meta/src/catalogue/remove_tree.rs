//! Removing a directory with everything below it.
//!
//! The name goes in one commit, and with it every name below: from then on there is no path to them. What they were the names of
//! goes afterwards, some at a time ([`Batch::clear_trees`]), so that a tree of a million files holds nobody up. Until then the
//! catalogue has a row for the tree, and one for each directory of it that was met and not emptied yet; a row is all that a start after a
//! crash needs to go on.
//!
//! ```text
//!  /a/b/{c/{1,2},d}   b is removed: no entry in a, row (b, b)
//!                     some of b is cleared: no entries c and d in b, d is gone, row (b, c)
//!                     c is cleared: 1 and 2 are gone, then c with its row; then b with its row
//! ```
//!
//! Invariants
//! - A user who may not remove each name below one by one may not remove the tree. That is found out in a snapshot, which may take long; the
//!   commit makes sure that no directory has changed since.
//! - Files that are open go with their last handle, as if their names had been removed one by one.

use super::access::{Caller, Permission, demand, demand_change, demand_removal};
use super::path::{PathEnd, locate};
use super::record::{Counter, count_down, decode, key, node, read_entry};
use super::rows::Rows;
use super::{Batch, Credentials, Snapshot};
use crate::error::MetaError;
use crate::{FileId, Time};

/// Names that are taken from a directory at a time.
const NAMES: usize = 256;

/// The directories of a tree, as they were when a user was found to be allowed to remove it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeSurvey(Vec<(FileId, Time)>);

/// Trees that were removed and are not cleared yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeRemains {
    pub(crate) trees: u64,
    /// Names below them that are gone.
    pub(crate) names: u64,
    /// Directories of them that were met and are not empty yet.
    pub(crate) directories: u64,
}

fn row(names: u64) -> Vec<u8> {
    let mut out = Vec::new();
    wire::put_number(&mut out, names);
    out
}

/// Reads the row of a tree, or of a directory below: how many names of the tree are gone.
pub(super) fn read_row(key: &[u8], bytes: &[u8]) -> Result<u64, MetaError> {
    decode(key, bytes, |r| r.number())
}

/// The directory of a row, which has no name any more.
pub(super) fn directory_of(key: &[u8]) -> Option<FileId> {
    key::number(key, 1).map(FileId)
}

/// The directory that a caller wants to remove with all that is in it.
fn find_tree<'p>(
    rows: &dyn Rows,
    who: &Credentials,
    path: &'p str,
) -> Result<(FileId, PathEnd<'p>), MetaError> {
    let at = locate(rows, who, path)?;
    let directory = at
        .child
        .ok_or_else(|| MetaError::NotFound(path.to_owned()))?;
    let target = node(rows, directory)?;
    if !target.is_directory() {
        return Err(MetaError::NotDirectory(path.to_owned()));
    }
    demand_removal(&at.directory_node, &target, who, path)?;
    Ok((directory, at))
}

impl Snapshot {
    /// Finds out whether a user may remove a directory and everything below it. Takes as long as there are names; root may do it
    /// without a look.
    pub fn survey_tree(&self, who: &Credentials, path: &str) -> Result<TreeSurvey, MetaError> {
        let rows = &self.rows;
        let (directory, _) = find_tree(rows, who, path)?;
        let mut survey = TreeSurvey::default();
        if who.is_root() {
            return Ok(survey);
        }
        let mut left = vec![directory];
        while let Some(directory) = left.pop() {
            let here = node(rows, directory)?;
            survey.0.push((directory, here.changed));
            let mut is_empty = true;
            rows.for_each(&key::entries_of(directory), &mut |key, bytes| {
                let file = read_entry(key, bytes)?;
                if is_empty {
                    demand(&here, who, Permission::Read, path)?;
                    demand_change(&here, who, path)?;
                    is_empty = false;
                }
                let entry = node(rows, file)?;
                demand_removal(&here, &entry, who, path)?;
                if entry.is_directory() {
                    left.push(file);
                }
                Ok(())
            })?;
        }
        Ok(survey)
    }
}

/// How far trees have been cleared.
pub(crate) fn tree_remains(rows: &dyn Rows) -> Result<TreeRemains, MetaError> {
    let mut left = TreeRemains::default();
    let mut root = None;
    rows.for_each(&key::trees(), &mut |key, bytes| {
        let of = key::number(key, 0);
        left.trees += u64::from(root != of);
        root = of;
        left.directories += 1;
        left.names += read_row(key, bytes)?;
        Ok(())
    })?;
    Ok(left)
}

impl Batch<'_> {
    /// Removes the name of a directory, and with it all names below. If a directory of it has changed since the survey this is
    /// [`MetaError::Busy`], and there has to be another one.
    pub fn remove_tree(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        survey: &TreeSurvey,
    ) -> Result<(), MetaError> {
        self.one(|b| {
            let (directory, at) = find_tree(&b.rows, caller.credentials, path)?;
            if !caller.credentials.is_root() {
                let is_same = |(directory, changed): &(FileId, Time)| {
                    node(&b.rows, *directory).is_ok_and(|now| now.changed == *changed)
                };
                if survey.0.first().map(|(first, _)| *first) != Some(directory)
                    || !survey.0.iter().all(is_same)
                {
                    return Err(MetaError::Busy("directories of the tree change"));
                }
            }
            b.rows.remove(key::entry(at.directory, at.name));
            b.rows.put(key::tree(directory, directory), row(0));
            b.touch(caller, at.directory)
        })
    }

    /// Clears some of what trees that were removed still have; whether there is more.
    pub fn clear_trees(&mut self, now: Time) -> Result<bool, MetaError> {
        self.one(|b| b.clear_now(now))
    }

    fn clear_now(&mut self, now: Time) -> Result<bool, MetaError> {
        let first = self.rows.scan(&key::trees(), None, 1)?;
        let Some(root) = first.first().and_then(|(key, _)| key::number(key, 0)) else {
            return Ok(false);
        };
        let root = FileId(root);
        // Directories that were met before others are: there are never more rows than one directory has.
        let of_tree = self.rows.scan(&key::directories_of_tree(root), None, 2)?;
        let is_below = |row: &&(Vec<u8>, Vec<u8>)| directory_of(&row.0) != Some(root);
        let next = of_tree.iter().find(is_below).or(of_tree.first());
        let Some(directory) = next.and_then(|(key, _)| directory_of(key)) else {
            return Ok(false);
        };
        let entries = self.rows.scan(&key::entries_of(directory), None, NAMES)?;
        let caller = Caller {
            client: crate::ClientId(0),
            credentials: &Credentials::ROOT,
            now,
        };
        for (entry, bytes) in &entries {
            let file = read_entry(entry, bytes)?;
            let below = node(&self.rows, file)?;
            if below.is_directory() {
                self.rows.remove(entry.clone());
                self.rows.put(key::tree(root, file), row(0));
            } else {
                self.take_name(&caller, file)?;
            }
        }
        // The row of the tree itself counts, so it goes last.
        let is_done = match directory == root {
            true => entries.is_empty(),
            false => entries.len() < NAMES,
        };
        let own = key::tree(root, root);
        if let Some(bytes) = self.rows.get(&own)? {
            let names = read_row(&own, &bytes)? + entries.len() as u64;
            self.rows.put(own, row(names));
        }
        if is_done {
            self.rows.remove(key::node(directory));
            self.rows.remove(key::hints(directory));
            self.rows.remove(key::tree(root, directory));
            count_down(&mut self.rows, Counter::Directories)?;
        }
        Ok(!self.rows.scan(&key::trees(), None, 1)?.is_empty())
    }
}
