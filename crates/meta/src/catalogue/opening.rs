//! Opening and closing.
//!
//! A handle is a right to use a file that was checked when it was opened, and is checked again whenever a new
//! capability is asked for it: when the old one expires, or when the catalogue was started again. So what a change of
//! mode or owner takes away is gone when the capability expires. The owner of a file keeps what he has open: he
//! could give himself every right. Handles are counted per client, and all of a client's end when it dies.
//! A file without a name, or one that is to be deleted on close, goes with its last handle.
//!
//! After a restart of the catalogue its clients [reopen](Batch::reopen) what they had;
//! [`Batch::end_recovery`] says that a client that is not back by now is not coming, and removes the files
//! that nobody has open any more.

use super::access::{Caller, Permission, demand};
use super::handles::Handle;
use super::hints::for_handle;
use super::layouts::LayoutInfo;
use super::path::resolve;
use super::record::{Body, decode, file_node, find_node, key, put_node};
use super::rows::Rows;
use super::{Attributes, Batch, Identity};
use crate::error::MetaError;
use crate::{ClientId, FileId, HandleId, Rights};
use control::capability::Capability;
use control::settled::Farewell;
use wire::message::catalogue::OpenOptions;
use wire::message::hints::GivenHint;
use wire::put_number;

/// A handle with what the client needs to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedFile {
    /// The handle.
    pub handle: HandleId,
    /// Whose it is.
    pub client: ClientId,
    /// What it is for.
    pub rights: Rights,
    /// The file.
    pub file: FileId,
    /// Whether it was created by this.
    pub is_new: bool,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its layout.
    pub layout: LayoutInfo,
    /// Hints kept with it and above it that count for the handle.
    pub hints: Vec<GivenHint>,
}

impl OpenedFile {
    /// What the client may show to I/O servers until then; it says no more than the handle does.
    pub fn capability(&self, expires_ms: u64) -> Capability {
        Capability {
            file: self.file,
            generation: self.attributes.generation,
            rights: self.rights,
            client: self.client,
            expires_ms,
        }
    }
}

impl Batch<'_> {
    /// Opens a file.
    pub fn open(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        options: &OpenOptions,
    ) -> Result<OpenedFile, MetaError> {
        self.one(|b| b.open_now(caller, path, options))
    }

    fn open_now(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        options: &OpenOptions,
    ) -> Result<OpenedFile, MetaError> {
        if options.append && !options.rights.allow(Rights::WRITE) {
            return Err(MetaError::argument(
                "append",
                "needs the file to be opened for writing",
            ));
        }
        let created = match &options.create {
            Some(create) => Some(self.create_now(caller, path, create)?),
            None => None,
        };
        let is_new = created.as_ref().is_some_and(|c| c.is_new);
        let file = match created {
            Some(created) => created.file,
            None => resolve(&self.rows, caller.credentials, path)?.0,
        };
        let node = super::record::node(&self.rows, file)?;
        if node.is_directory() {
            return Err(MetaError::IsDirectory(path.to_owned()));
        }
        // The client that creates a file may use it, whatever mode it gave.
        if !is_new {
            for (right, permission) in [
                (Rights::READ, Permission::Read),
                (Rights::WRITE, Permission::Write),
            ] {
                if options.rights.allow(right) {
                    demand(&node, caller.credentials, permission, path)?;
                }
            }
        }
        let is_joined = self.demand_unique(file, options.unique)?;
        if options.unique.is_some() && !is_joined {
            self.demand_closed(file)?;
        }
        if options.delete_on_close {
            self.mark_delete_on_close(caller, file, path)?;
        }
        let attributes = super::attributes::attributes(&self.rows, file)?;
        let layout = super::layouts::layout_info(&self.rows, file)?;
        let handle = self.handles.add(Handle {
            client: caller.client,
            user: caller.credentials.user,
            file,
            rights: options.rights,
            unique: options.unique,
        })?;
        Ok(OpenedFile {
            handle,
            client: caller.client,
            rights: options.rights,
            file,
            is_new,
            attributes,
            layout,
            hints: for_handle(&self.rows, file)?,
        })
    }

    /// Refuses if others have the file for themselves alone; whether this opening belongs to those who have.
    fn demand_unique(&self, file: FileId, unique: Option<u64>) -> Result<bool, MetaError> {
        let mut is_joined = false;
        for (_, handle) in self.handles.of_file(file) {
            match handle.unique {
                None => {}
                Some(number) if number != 0 && unique == Some(number) => is_joined = true,
                Some(_) => {
                    let how = "somebody has it open for himself alone";
                    return Err(MetaError::InUse { file, how });
                }
            }
        }
        Ok(is_joined)
    }

    /// Deleting needs what unlinking needs, now and not at the time of closing.
    fn mark_delete_on_close(
        &mut self,
        caller: &Caller<'_>,
        file: FileId,
        path: &str,
    ) -> Result<(), MetaError> {
        let (mut node, mut body) = file_node(&self.rows, file)?;
        let directory = super::record::node(&self.rows, node.parent)?;
        super::access::demand_removal(&directory, &node, caller.credentials, path)?;
        body.delete_on_close = true;
        node.body = Body::File(body);
        put_node(&mut self.rows, file, &node);
        self.rows.put(key::transient(file), Vec::new());
        Ok(())
    }

    /// Opens a file for a request that may come again: it is done once.
    pub fn open_once(
        &mut self,
        caller: &Caller<'_>,
        identity: Identity,
        path: &str,
        options: &OpenOptions,
    ) -> Result<OpenedFile, MetaError> {
        let how = (options.rights, options.unique);
        self.opened_once(caller, identity, how, |b| b.open(caller, path, options))
    }

    /// [`Batch::reopen`] for a request that may come again: it is done once.
    pub fn reopen_once(
        &mut self,
        caller: &Caller<'_>,
        identity: Identity,
        file: FileId,
        (rights, unique): (Rights, Option<u64>),
    ) -> Result<OpenedFile, MetaError> {
        self.opened_once(caller, identity, (rights, unique), |b| {
            b.reopen(caller, file, rights, unique)
        })
    }

    /// Opens once; a second request finds the handle of the first.
    fn opened_once(
        &mut self,
        caller: &Caller<'_>,
        identity: Identity,
        (rights, unique): (Rights, Option<u64>),
        open: impl FnOnce(&mut Self) -> Result<OpenedFile, MetaError>,
    ) -> Result<OpenedFile, MetaError> {
        self.once(
            identity,
            |b| {
                let opened = open(b)?;
                let mut note = Vec::new();
                for number in [opened.file.0, u64::from(opened.is_new), opened.handle.0] {
                    put_number(&mut note, number);
                }
                Ok((opened, note))
            },
            |b, note| {
                let (file, is_new, handle) = decode(&key::answers(), note, |r| {
                    Ok((FileId(r.number()?), r.number()? != 0, HandleId(r.number()?)))
                })?;
                let mut opened = match b.handles.get(caller.client, handle) {
                    Some(_) => b.opened(caller, handle)?,
                    // The catalogue was started again, or the client has closed it since.
                    None => b.reopen(caller, file, rights, unique)?,
                };
                opened.is_new = is_new;
                opened.hints = for_handle(&b.rows, file)?;
                Ok(opened)
            },
        )
    }

    /// A client that outlived the catalogue opens a file again that it had open. Its capability,
    /// whose seal and expiry the server has checked, says which and how; whether the client may still do that
    /// is asked again. A client
    /// that computes for long comes late; then only files that lost their last name are gone.
    pub fn reopen(
        &mut self,
        caller: &Caller<'_>,
        file: FileId,
        rights: Rights,
        unique: Option<u64>,
    ) -> Result<OpenedFile, MetaError> {
        self.one(|b| {
            b.demand_still(caller, file, rights)?;
            b.demand_unique(file, unique)?;
            let attributes = super::attributes::attributes(&b.rows, file)?;
            let layout = super::layouts::layout_info(&b.rows, file)?;
            let handle = b.handles.add(Handle {
                client: caller.client,
                user: caller.credentials.user,
                file,
                rights,
                unique,
            })?;
            Ok(OpenedFile {
                handle,
                client: caller.client,
                rights,
                file,
                is_new: false,
                attributes,
                layout,
                hints: for_handle(&b.rows, file)?,
            })
        })
    }

    /// An open file as it is now, for the client that has the handle.
    pub fn opened(
        &mut self,
        caller: &Caller<'_>,
        handle: HandleId,
    ) -> Result<OpenedFile, MetaError> {
        self.one(|b| {
            let open = b
                .handles
                .get(caller.client, handle)
                .ok_or(MetaError::BadHandle(handle))?;
            Ok(OpenedFile {
                handle,
                client: caller.client,
                rights: open.rights,
                file: open.file,
                is_new: false,
                attributes: super::attributes::attributes(&b.rows, open.file)?,
                layout: super::layouts::layout_info(&b.rows, open.file)?,
                hints: Vec::new(),
            })
        })
    }

    /// An open file for a new capability, if its user may still do what the handle is for.
    pub fn renewed(
        &mut self,
        caller: &Caller<'_>,
        handle: HandleId,
    ) -> Result<OpenedFile, MetaError> {
        let opened = self.opened(caller, handle)?;
        self.demand_still(caller, opened.file, opened.rights)?;
        Ok(opened)
    }

    /// Refuses whom the mode of a file no longer lets do what he was once let do. Its owner could let himself.
    fn demand_still(
        &self,
        caller: &Caller<'_>,
        file: FileId,
        rights: Rights,
    ) -> Result<(), MetaError> {
        let (node, _) = file_node(&self.rows, file)?;
        if caller.credentials.user == node.owner {
            return Ok(());
        }
        for (right, permission) in [
            (Rights::READ, Permission::Read),
            (Rights::WRITE, Permission::Write),
        ] {
            if rights.allow(right) {
                demand(&node, caller.credentials, permission, &node.name)?;
            }
        }
        Ok(())
    }

    /// Closes a handle, of which nobody knows whether all that it wrote is counted. Returns whether the file went with it.
    pub fn close(&mut self, caller: &Caller<'_>, handle: HandleId) -> Result<bool, MetaError> {
        self.close_as(caller, handle, Farewell::InDoubt)
    }

    /// Closes a handle. Returns whether the file went with it.
    pub fn close_as(
        &mut self,
        caller: &Caller<'_>,
        handle: HandleId,
        how: Farewell,
    ) -> Result<bool, MetaError> {
        self.one(|b| {
            let open = b
                .handles
                .get(caller.client, handle)
                .ok_or(MetaError::BadHandle(handle))?;
            let last = b.handles.of_file(open.file).count() == 1;
            let goes = last && !b.handles.recovering && b.is_transient(open.file)?;
            if goes {
                b.remove_transient(open.file)?;
            }
            // A truncate that is under way changes the size yet.
            let is_cut = file_node(&b.rows, open.file)
                .is_ok_and(|(_, body)| body.truncate_to.is_some() || body.size_before.is_some());
            b.handles
                .remove(handle, if is_cut { Farewell::InDoubt } else { how });
            Ok(goes)
        })
    }

    /// Closes everything that a client had open, because it has died or gone. Returns how many
    /// handles that were.
    pub fn release(&mut self, client: ClientId) -> Result<usize, MetaError> {
        self.one(|b| {
            let handles = b.handles.of_client(client);
            let mut files: Vec<FileId> = handles
                .iter()
                .filter_map(|&h| b.handles.get(client, h).map(|open| open.file))
                .collect();
            files.sort_unstable();
            files.dedup();
            for file in files {
                let used_by_others = b.handles.of_file(file).any(|(_, h)| h.client != client);
                if !used_by_others && !b.handles.recovering && b.is_transient(file)? {
                    b.remove_transient(file)?;
                }
            }
            for &handle in &handles {
                b.handles.remove(handle, Farewell::InDoubt);
            }
            b.forget_answers(client);
            Ok(handles.len())
        })
    }

    /// A client that has not opened its handles again is not coming back. Returns how many files went.
    pub fn end_recovery(&mut self) -> Result<usize, MetaError> {
        self.one(|b| {
            if !b.handles.recovering {
                return Ok(0);
            }
            let mut transients = Vec::new();
            b.rows.for_each(&key::transients(), &mut |key, _| {
                transients.extend(key::number(key, 0).map(FileId));
                Ok(())
            })?;
            let mut gone = 0;
            for file in transients {
                if !b.handles.is_open(file) {
                    b.remove_transient(file)?;
                    gone += 1;
                }
            }
            b.handles.end_recovery();
            Ok(gone)
        })
    }

    fn is_transient(&self, file: FileId) -> Result<bool, MetaError> {
        Ok(self.rows.get(&key::transient(file))?.is_some())
    }

    /// Removes a file that nobody has open, with its name if it still has one.
    fn remove_transient(&mut self, file: FileId) -> Result<(), MetaError> {
        let Some(node) = find_node(&self.rows, file)? else {
            self.rows.remove(key::transient(file));
            return Ok(());
        };
        if node.file().is_some_and(|body| !body.unlinked) {
            self.rows.remove(key::entry(node.parent, &node.name));
        }
        self.remove_file(file)
    }

    /// The file of a handle that allows `rights`.
    pub(crate) fn demand_handle(
        &self,
        caller: &Caller<'_>,
        handle: HandleId,
        rights: Rights,
    ) -> Result<FileId, MetaError> {
        let open = self
            .handles
            .get(caller.client, handle)
            .ok_or(MetaError::BadHandle(handle))?;
        if open.rights.allow(rights) {
            Ok(open.file)
        } else {
            let lacks = if rights.allow(Rights::WRITE) {
                "writing"
            } else {
                "reading"
            };
            Err(MetaError::HandleLacks(handle, lacks))
        }
    }
}
