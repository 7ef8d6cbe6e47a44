//! What a handle is: the file it was opened for, what it may do, and what the metadata manager knows it by.
//!
//! A manager that was restarted opens the file again, under another number, or refuses. A refusal stays until a later start
//! opens the file: every use is told.

use layout::ArrayType;
use parking_lot::Mutex;
use wire::message::Bytes;
use wire::message::catalogue::{OpenAnswer, Reopen};
use wire::{FileId, HandleId, Rights, Status};

use crate::error::{Error, Result};
use crate::file::options::OpenOptions;

/// What the metadata manager knows the handle by.
#[derive(Debug)]
struct Key {
    handle: HandleId,
    capability: Bytes,
    /// Why the present start of the manager has not opened the file again.
    refusal: Option<Box<Error>>,
}

impl Key {
    fn of(opened: &OpenAnswer) -> Key {
        Key {
            handle: opened.handle,
            capability: opened.capability.clone(),
            refusal: None,
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) path: String,
    pub(crate) file: FileId,
    pub(crate) rights: Rights,
    /// Whether the file was created by this opening.
    pub(crate) is_new: bool,
    pub(crate) is_append: bool,
    pub(crate) array: Option<ArrayType>,
    unique: Option<u64>,
    key: Mutex<Key>,
}

impl Identity {
    pub(crate) fn new(
        path: String,
        options: &OpenOptions,
        opened: &OpenAnswer,
    ) -> Result<Identity> {
        let array = opened.attributes.array.as_deref();
        let array: Option<ArrayType> = array.map(str::parse).transpose()?;
        Ok(Identity {
            path,
            file: opened.attributes.file,
            rights: opened.rights,
            is_new: opened.is_new,
            is_append: options.append,
            array: array.filter(|a| a.bytes() > 0),
            unique: options.unique_number(),
            key: Mutex::new(Key::of(opened)),
        })
    }

    /// Says why the manager has not opened the file again, if it has not.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.key.lock().refusal {
            Some(refusal) => Err((**refusal).clone()),
            None => Ok(()),
        }
    }

    /// Refuses what the file was not opened for.
    pub(crate) fn check_right(&self, right: Rights) -> Result<()> {
        if self.rights.allow(right) {
            return Ok(());
        }
        Err(Error::Refused {
            status: Status::PermissionDenied,
            text: format!(
                "{} was opened for {}; open it for {right}",
                self.path, self.rights
            ),
            server: None,
        })
    }

    pub(crate) fn handle(&self) -> HandleId {
        self.key.lock().handle
    }

    pub(crate) fn capability(&self) -> Bytes {
        self.key.lock().capability.clone()
    }

    /// The manager has given another capability.
    pub(crate) fn renew(&self, capability: Bytes) {
        self.key.lock().capability = capability;
    }

    /// What a manager that was restarted is asked.
    pub(crate) fn reopening(&self) -> Reopen {
        Reopen {
            capability: self.capability(),
            unique: self.unique,
        }
    }

    /// The manager has opened the file again.
    pub(crate) fn reopened(&self, opened: &OpenAnswer) {
        *self.key.lock() = Key::of(opened);
    }

    /// The manager has not.
    pub(crate) fn refuse(&self, refusal: Error) {
        self.key.lock().refusal = Some(Box::new(refusal));
    }
}
