//! Attributes: stat, list, chmod, chown, utimes, and what there is in all.
//!
//! Access times are kept but not updated by reading: that would make every read a write here.
//! Sizes are the durable ones; the owner of an open file knows the latest.

use super::access::{Caller, MODE_BITS, Permission, allows, demand, demand_owner, denied};
use control::stamps::Subject;

use super::path::{resolve, resolve_on};
use super::record::{Counter, Node, counter, key, node, put_node, read_entry};
use super::remove_tree::tree_remains;
use super::rows::Rows;
use super::stamped::Trail;
use super::{Batch, Credentials, Snapshot};
use crate::error::MetaError;
use crate::{FileId, Time};
use wire::message::catalogue::{Attributes, Counts, Entry, Kind, Listing, SetTime};

impl Node {
    pub(crate) fn kind(&self) -> Kind {
        if self.is_directory() {
            Kind::Directory
        } else {
            Kind::File
        }
    }
}

pub(crate) fn attributes(rows: &dyn Rows, file: FileId) -> Result<Attributes, MetaError> {
    let node = node(rows, file)?;
    let body = node.file();
    Ok(Attributes {
        file,
        kind: node.kind(),
        owner: node.owner,
        group: node.group,
        mode: node.mode,
        accessed: node.accessed,
        modified: node.modified,
        changed: node.changed,
        size: body.map_or(0, |b| b.size_before.unwrap_or(b.size)),
        epoch: body.map_or(0, |b| {
            b.epoch.saturating_sub(b.size_before.is_some().into())
        }),
        truncate_to: body.and_then(|b| b.truncate_to),
        array: body.and_then(|b| b.array.clone()),
        layout: body.map(|b| b.layout.clone()),
        generation: body.map_or(0, |b| b.next_generation.saturating_sub(1)),
        is_linked: body.is_none_or(|b| !b.unlinked),
        delete_on_close: body.is_some_and(|b| b.delete_on_close),
    })
}

impl Snapshot {
    /// The attributes of a path.
    pub fn stat(&self, who: &Credentials, path: &str) -> Result<Attributes, MetaError> {
        self.stat_on(who, path, &mut Trail::default())
    }

    /// The attributes of a path, and what they depend on; of a path that does not exist, what that depends on.
    pub fn stat_on(
        &self,
        who: &Credentials,
        path: &str,
        trail: &mut Trail,
    ) -> Result<Attributes, MetaError> {
        let (file, _) = resolve_on(&self.rows, who, path, trail)?;
        trail.saw(Subject::Node(file));
        attributes(&self.rows, file)
    }

    /// The attributes of a number that the caller got by opening.
    pub fn stat_file(&self, file: FileId) -> Result<Attributes, MetaError> {
        self.stat_file_on(file, &mut Trail::default())
    }

    /// The attributes of a number, and what they depend on.
    pub fn stat_file_on(&self, file: FileId, trail: &mut Trail) -> Result<Attributes, MetaError> {
        trail.saw(Subject::Node(file));
        attributes(&self.rows, file)
    }

    /// Up to `limit` entries of a directory, behind the name `after`.
    pub fn list(
        &self,
        who: &Credentials,
        path: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Listing, MetaError> {
        self.list_on(who, path, after, limit, &mut Trail::default())
    }

    /// [`Snapshot::list`], and what that depends on.
    pub fn list_on(
        &self,
        who: &Credentials,
        path: &str,
        after: Option<&str>,
        limit: usize,
        trail: &mut Trail,
    ) -> Result<Listing, MetaError> {
        let (directory, node) = resolve_on(&self.rows, who, path, trail)?;
        if !node.is_directory() {
            return Err(MetaError::NotDirectory(path.to_owned()));
        }
        trail.saw(Subject::Access(directory));
        demand(&node, who, Permission::Read, path)?;
        trail.saw(Subject::Entries(directory));
        let after = after.map(|name| key::entry(directory, name));
        let prefix = key::entries_of(directory);
        let mut found = self
            .rows
            .scan(&prefix, after.as_deref(), limit.saturating_add(1))?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let entries = found
            .iter()
            .map(|(key, bytes)| {
                let file = read_entry(key, bytes)?;
                Ok(Entry {
                    name: key::name(key, 1).unwrap_or_default().to_owned(),
                    file,
                    kind: super::record::node(&self.rows, file)?.kind(),
                    attributes: None,
                })
            })
            .collect::<Result<_, MetaError>>()?;
        Ok(Listing {
            entries,
            has_more,
            stamped: None,
        })
    }

    /// What there is in all.
    pub fn counts(&self) -> Result<Counts, MetaError> {
        let mut removals = 0;
        self.rows.for_each(&key::removals(), &mut |_, _| {
            removals += 1;
            Ok(())
        })?;
        let left = tree_remains(&self.rows)?;
        Ok(Counts {
            trees: left.trees,
            tree_names: left.names,
            tree_directories: left.directories,
            files: counter(&self.rows, Counter::Files)?,
            directories: counter(&self.rows, Counter::Directories)?,
            removals,
            restored_from_s: self.restored_from_s()?,
        })
    }
}

impl Batch<'_> {
    /// Sets the permission bits.
    pub fn chmod(&mut self, caller: &Caller<'_>, path: &str, mode: u32) -> Result<(), MetaError> {
        self.one(|b| {
            let (file, mut node) = resolve(&b.rows, caller.credentials, path)?;
            demand_owner(&node, caller.credentials, path)?;
            node.mode = mode & MODE_BITS;
            node.changed = caller.now;
            put_node(&mut b.rows, file, &node);
            Ok(())
        })
    }

    /// Sets owner and group, each if given. Giving a file away is for root; its owner may give it to
    /// a group that he is in.
    pub fn chown(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        owner: Option<u32>,
        group: Option<u32>,
    ) -> Result<(), MetaError> {
        self.one(|b| {
            let who = caller.credentials;
            let (file, mut node) = resolve(&b.rows, who, path)?;
            demand_owner(&node, who, path)?;
            if !who.is_root() && owner.is_some_and(|o| o != node.owner) {
                return Err(denied(path, "to be root to change the owner"));
            }
            if !who.is_root() && group.is_some_and(|g| g != node.group && !who.is_in(g)) {
                return Err(denied(path, "to be in the new group"));
            }
            node.owner = owner.unwrap_or(node.owner);
            node.group = group.unwrap_or(node.group);
            node.changed = caller.now;
            put_node(&mut b.rows, file, &node);
            Ok(())
        })
    }

    /// Sets the times of access and modification.
    pub fn utimes(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        accessed: SetTime,
        modified: SetTime,
    ) -> Result<(), MetaError> {
        self.one(|b| {
            let who = caller.credentials;
            let (file, mut node) = resolve(&b.rows, who, path)?;
            let explicit = [accessed, modified]
                .iter()
                .any(|t| matches!(t, SetTime::To(_)));
            if explicit || !allows(&node, who, Permission::Write) {
                demand_owner(&node, who, path)?;
            }
            let pick = |set: SetTime, old: Time| match set {
                SetTime::Keep => old,
                SetTime::Now => caller.now,
                SetTime::To(time) => time,
            };
            node.accessed = pick(accessed, node.accessed);
            node.modified = pick(modified, node.modified);
            node.changed = caller.now;
            put_node(&mut b.rows, file, &node);
            Ok(())
        })
    }
}
