//! Changing names: create, mkdir, unlink, rmdir, rename.
//!
//! A file has one name. A client that removes it while the file is open takes the name only; the bytes go
//! with the last close. Bytes are removed by the servers that hold them: a removal waits in the
//! catalogue until the server has confirmed it, over restarts of both.

use wire::message::catalogue::{CreateAnswer, CreateOptions, UnlinkHow};
use wire::{LayoutState, Place};

use super::Batch;
use super::access::{
    Caller, MODE_BITS, Permission, SET_GROUP, demand, demand_change, demand_removal, denied,
};
use super::member::{find_member, places_of};
use super::path::{PathEnd, locate};
use super::record::{
    Body, Counter, FileBody, Node, ROOT, count_down, count_up, file_node, key, layout_state, node,
    put_distribution, put_entry, put_layout_state, put_node, put_removal,
};
use super::rows::Rows;
use crate::error::MetaError;
use crate::{FileId, ServerId};

impl Batch<'_> {
    /// Creates a file, or finds it if that is allowed.
    pub fn create(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        options: &CreateOptions,
    ) -> Result<CreateAnswer, MetaError> {
        self.one(|b| b.create_now(caller, path, options))
    }

    pub(crate) fn create_now(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        options: &CreateOptions,
    ) -> Result<CreateAnswer, MetaError> {
        let at = locate(&self.rows, caller.credentials, path)?;
        if let Some(file) = at.child {
            if options.exclusive {
                return Err(MetaError::Exists(path.to_owned()));
            }
            if node(&self.rows, file)?.is_directory() {
                return Err(MetaError::IsDirectory(path.to_owned()));
            }
            if at.demands_directory {
                return Err(MetaError::NotDirectory(path.to_owned()));
            }
            return Ok(CreateAnswer {
                file,
                is_new: false,
            });
        }
        if at.demands_directory {
            return Err(MetaError::IsDirectory(path.to_owned()));
        }
        let (spec, expected) = (&options.layout, &options.expected);
        let hinted = self.choose_hinted(at.directory, spec, expected, &options.hints)?;
        let chosen = hinted.chosen.clone();
        let distribution = chosen.distribution();
        let text = chosen.text.clone();
        let piece = self.piece(chosen, 1)?;
        let state = LayoutState::new(piece.places[0][0], piece);
        let body = Body::File(FileBody {
            array: hinted.array.clone(),
            layout: text,
            next_layout: None,
            next_generation: 2,
            size: 0,
            epoch: 0,
            truncate_to: None,
            size_before: None,
            unlinked: false,
            delete_on_close: false,
        });
        let file = self.add(caller, &at, path, options.mode, body)?;
        put_layout_state(&mut self.rows, file, &state);
        put_distribution(&mut self.rows, file, &distribution);
        self.keep_uses(file, hinted);
        self.keep_values(file, &options.values)?;
        count_up(&mut self.rows, Counter::Files)?;
        Ok(CreateAnswer { file, is_new: true })
    }

    /// Creates a directory.
    pub fn mkdir(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        mode: u32,
    ) -> Result<FileId, MetaError> {
        self.one(|b| {
            let at = locate(&b.rows, caller.credentials, path)?;
            if at.child.is_some() {
                return Err(MetaError::Exists(path.to_owned()));
            }
            let inherited = at.directory_node.mode & SET_GROUP;
            let file = b.add(caller, &at, path, mode | inherited, Body::Directory)?;
            count_up(&mut b.rows, Counter::Directories)?;
            Ok(file)
        })
    }

    /// A new node under a name that is free.
    fn add(
        &mut self,
        caller: &Caller<'_>,
        at: &PathEnd<'_>,
        path: &str,
        mode: u32,
        body: Body,
    ) -> Result<FileId, MetaError> {
        let who = caller.credentials;
        demand_change(&at.directory_node, who, path)?;
        let file = FileId(count_up(&mut self.rows, Counter::NextFile)?);
        let inherits = at.directory_node.mode & SET_GROUP != 0;
        let new = Node {
            parent: at.directory,
            name: at.name.to_owned(),
            owner: who.user,
            group: if inherits {
                at.directory_node.group
            } else {
                who.group
            },
            mode: mode & MODE_BITS,
            accessed: caller.now,
            modified: caller.now,
            changed: caller.now,
            body,
        };
        put_node(&mut self.rows, file, &new);
        put_entry(&mut self.rows, at.directory, at.name, file);
        self.touch(caller, at.directory)?;
        Ok(file)
    }

    /// The entries of a directory have changed.
    pub(crate) fn touch(
        &mut self,
        caller: &Caller<'_>,
        directory: FileId,
    ) -> Result<(), MetaError> {
        let mut node = node(&self.rows, directory)?;
        node.modified = caller.now;
        node.changed = caller.now;
        put_node(&mut self.rows, directory, &node);
        Ok(())
    }

    /// Removes the name of a file, and the file if nobody has it open.
    pub fn unlink(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        how: UnlinkHow,
    ) -> Result<FileId, MetaError> {
        self.one(|b| {
            let at = locate(&b.rows, caller.credentials, path)?;
            let file = at
                .child
                .ok_or_else(|| MetaError::NotFound(path.to_owned()))?;
            let target = node(&b.rows, file)?;
            if target.is_directory() {
                return Err(MetaError::IsDirectory(path.to_owned()));
            }
            if at.demands_directory {
                return Err(MetaError::NotDirectory(path.to_owned()));
            }
            demand_removal(&at.directory_node, &target, caller.credentials, path)?;
            if how == UnlinkHow::UnlessOpen {
                b.demand_closed(file)?;
            }
            b.take_name(caller, file)?;
            b.touch(caller, at.directory)?;
            Ok(file)
        })
    }

    /// Refuses while a client has, or may have, the file open.
    pub(crate) fn demand_closed(&self, file: FileId) -> Result<(), MetaError> {
        if self.handles.is_open(file) {
            let how = "somebody has it open";
            return Err(MetaError::InUse { file, how });
        }
        if self.handles.may_be_open(file) {
            return Err(MetaError::Busy("clients are still coming back"));
        }
        Ok(())
    }

    /// Takes a file's name; the file goes too unless it is open.
    pub(crate) fn take_name(&mut self, caller: &Caller<'_>, file: FileId) -> Result<(), MetaError> {
        let (mut node, mut body) = file_node(&self.rows, file)?;
        self.rows.remove(key::entry(node.parent, &node.name));
        if !self.handles.may_be_open(file) {
            return self.remove_file(file);
        }
        body.unlinked = true;
        node.changed = caller.now;
        node.body = Body::File(body);
        put_node(&mut self.rows, file, &node);
        self.rows.put(key::transient(file), Vec::new());
        Ok(())
    }

    /// Removes a file that has no name any more; its bytes wait for their servers.
    pub(crate) fn remove_file(&mut self, file: FileId) -> Result<(), MetaError> {
        let state = layout_state(&self.rows, file)?;
        self.remove_bytes(file, &state)?;
        let mut kept = Vec::new();
        for prefix in [key::views_of(file), key::values_of(file)] {
            self.rows.for_each(&prefix, &mut |key, _| {
                kept.push(key.to_vec());
                Ok(())
            })?;
        }
        for key in kept {
            self.rows.remove(key);
        }
        self.rows.remove(key::layout(file));
        self.rows.remove(key::distribution(file));
        self.rows.remove(key::moving(file));
        self.rows.remove(key::profile(file));
        self.rows.remove(key::hints(file));
        self.rows.remove(key::node(file));
        self.rows.remove(key::transient(file));
        count_down(&mut self.rows, Counter::Files)
    }

    /// Puts all places of a layout state on the lists of their servers, unless they are lost.
    pub(crate) fn remove_bytes(
        &mut self,
        file: FileId,
        state: &LayoutState,
    ) -> Result<(), MetaError> {
        for (store, place) in places_of(state) {
            self.remove_stored(file, store, place, &[])?;
        }
        Ok(())
    }

    /// Puts subfiles on the list of a server, or all that are stored under a generation, unless they are lost.
    pub(crate) fn remove_stored(
        &mut self,
        file: FileId,
        store: u64,
        place: Place,
        subfiles: &[u32],
    ) -> Result<(), MetaError> {
        let member = find_member(&self.rows, ServerId(place.server))?;
        if member.is_some_and(|m| m.keeps(place.incarnation)) {
            put_removal(&mut self.rows, file, store, place, subfiles)?;
        }
        Ok(())
    }

    /// Removes an empty directory.
    pub fn rmdir(&mut self, caller: &Caller<'_>, path: &str) -> Result<(), MetaError> {
        self.one(|b| {
            let at = locate(&b.rows, caller.credentials, path)?;
            let directory = at
                .child
                .ok_or_else(|| MetaError::NotFound(path.to_owned()))?;
            let target = node(&b.rows, directory)?;
            if !target.is_directory() {
                return Err(MetaError::NotDirectory(path.to_owned()));
            }
            demand_removal(&at.directory_node, &target, caller.credentials, path)?;
            b.demand_empty(directory, path)?;
            b.rows.remove(key::entry(at.directory, at.name));
            b.rows.remove(key::node(directory));
            b.rows.remove(key::hints(directory));
            count_down(&mut b.rows, Counter::Directories)?;
            b.touch(caller, at.directory)
        })
    }

    fn demand_empty(&self, directory: FileId, path: &str) -> Result<(), MetaError> {
        if self
            .rows
            .scan(&key::entries_of(directory), None, 1)?
            .is_empty()
        {
            Ok(())
        } else {
            Err(MetaError::NotEmpty(path.to_owned()))
        }
    }

    /// Gives a file or directory another name. What has that name is replaced in the same instant:
    /// a file by a file, an empty directory by a directory.
    pub fn rename(&mut self, caller: &Caller<'_>, from: &str, to: &str) -> Result<(), MetaError> {
        self.one(|b| b.rename_now(caller, from, to))
    }

    fn rename_now(&mut self, caller: &Caller<'_>, from: &str, to: &str) -> Result<(), MetaError> {
        let who = caller.credentials;
        let source = locate(&self.rows, who, from)?;
        let target = locate(&self.rows, who, to)?;
        let file = source
            .child
            .ok_or_else(|| MetaError::NotFound(from.to_owned()))?;
        let mut moved = node(&self.rows, file)?;
        if !moved.is_directory() {
            for (at, path) in [(&source, from), (&target, to)] {
                if at.demands_directory {
                    return Err(MetaError::NotDirectory(path.to_owned()));
                }
            }
        }
        demand_removal(&source.directory_node, &moved, who, from)?;
        demand_change(&target.directory_node, who, to)?;
        if moved.is_directory() {
            if self.is_inside(target.directory, file)? {
                return Err(MetaError::argument(
                    "to",
                    format!("`{to}` is inside `{from}`"),
                ));
            }
            // Its entry `..` changes, which is writing to it.
            if source.directory != target.directory {
                demand(&moved, who, Permission::Write, from)
                    .map_err(|_| denied(from, "write permission on the directory that moves"))?;
            }
        }
        if let Some(replaced) = target.child {
            if replaced == file {
                return Ok(());
            }
            let old = node(&self.rows, replaced)?;
            demand_removal(&target.directory_node, &old, who, to)?;
            match (moved.is_directory(), old.is_directory()) {
                (true, false) => return Err(MetaError::NotDirectory(to.to_owned())),
                (false, true) => return Err(MetaError::IsDirectory(to.to_owned())),
                (true, true) => {
                    self.demand_empty(replaced, to)?;
                    self.rows.remove(key::node(replaced));
                    self.rows.remove(key::hints(replaced));
                    count_down(&mut self.rows, Counter::Directories)?;
                }
                (false, false) => self.take_name(caller, replaced)?,
            }
        }
        self.rows.remove(key::entry(source.directory, source.name));
        put_entry(&mut self.rows, target.directory, target.name, file);
        moved.parent = target.directory;
        moved.name = target.name.to_owned();
        moved.changed = caller.now;
        put_node(&mut self.rows, file, &moved);
        self.touch(caller, source.directory)?;
        self.touch(caller, target.directory)
    }

    /// Whether `directory` is `ancestor` or below it.
    fn is_inside(&self, mut directory: FileId, ancestor: FileId) -> Result<bool, MetaError> {
        while directory != ancestor {
            if directory == ROOT {
                return Ok(false);
            }
            directory = node(&self.rows, directory)?.parent;
        }
        Ok(true)
    }
}
