//! How a file is opened or created: a builder, and what the metadata manager is asked for it.
//!
//! Nothing is checked here that the metadata manager checks anyway.

use wire::message::Bytes;
use wire::message::catalogue as messages;
use wire::message::hints::GivenHint;
use wire::{Rights, ServerId};

use crate::error::{Error, Result};
use crate::hints::Hints;

/// How [`Client::open`](crate::Client::open) opens a file. Starts with nothing: say at least
/// [`read`](OpenOptions::read) or [`write`](OpenOptions::write).
///
/// ```
/// use client::OpenOptions;
/// let options = OpenOptions::new().read().write().create().array("f64[4096,4096]").layout("(block, *) onto 4");
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) append: bool,
    pub(crate) create: bool,
    pub(crate) exclusive: bool,
    pub(crate) unique: bool,
    /// Handles with the same number are one opening; 0 is nobody else's.
    pub(crate) unique_number: u64,
    pub(crate) delete_on_close: bool,
    pub(crate) mode: Option<u32>,
    pub(crate) array: Option<String>,
    pub(crate) layout: Option<String>,
    pub(crate) expected: messages::Expectation,
    pub(crate) atomic: bool,
    pub(crate) hints: Hints,
    pub(crate) pointer_group: Option<u64>,
    pub(crate) values: Vec<(String, Vec<u8>)>,
}

impl OpenOptions {
    /// Nothing yet.
    pub fn new() -> Self {
        OpenOptions::default()
    }

    /// For reading.
    pub fn read(mut self) -> Self {
        self.read = true;
        self
    }

    /// For writing.
    pub fn write(mut self) -> Self {
        self.write = true;
        self
    }

    /// For writing, every write at the end of the file.
    pub fn append(mut self) -> Self {
        self.write = true;
        self.append = true;
        self
    }

    /// Created if it is not there.
    pub fn create(mut self) -> Self {
        self.create = true;
        self
    }

    /// Created, and refused if it is there.
    pub fn exclusive(mut self) -> Self {
        self.create = true;
        self.exclusive = true;
        self
    }

    /// Refused if anybody has it open; others are refused while it is open.
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Removed with its last handle.
    pub fn delete_on_close(mut self) -> Self {
        self.delete_on_close = true;
        self
    }

    /// Permission bits of a new file before the process's mask is applied; 0o666 if not given.
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// What a new file holds, such as `f64[4096,4096]`.
    pub fn array(mut self, array: impl Into<String>) -> Self {
        self.array = Some(array.into());
        self
    }

    /// How a new file is cut, such as `(block, *) onto 4`.
    pub fn layout(mut self, layout: impl Into<String>) -> Self {
        self.layout = Some(layout.into());
        self
    }

    /// A value that a new file keeps under a name from the beginning.
    pub fn value(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.values.push((name.into(), value.into()));
        self
    }

    /// In atomic mode from the beginning.
    pub fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }

    /// With these hints.
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// Takes part in a shared pointer: all handles of the file with the same number have one.
    pub fn shared_pointer(mut self, group: u64) -> Self {
        self.pointer_group = Some(group);
        self
    }

    /// How many bytes a new file will have. Without a layout it is placed by that. From 64 KiB on its servers take the space: if they
    /// have not so much the file is not created; what is not written when this handle is closed goes back. The size stays 0.
    pub fn expected_size(mut self, bytes: u64) -> Self {
        self.expected.size = Some(bytes);
        self
    }

    /// How many processes will use a new file.
    pub fn expected_clients(mut self, clients: u64) -> Self {
        self.expected.clients = Some(clients);
        self
    }

    /// How many bytes an access of a new file will have.
    pub fn expected_access(mut self, bytes: u64) -> Self {
        self.expected.access_bytes = Some(bytes);
        self
    }

    /// The server that a new file should be near to, if one is enough for it.
    pub fn near(mut self, server: ServerId) -> Self {
        self.expected.near = Some(server);
        self
    }

    pub(crate) fn rights(&self) -> Rights {
        let read = if self.read {
            Rights::READ
        } else {
            Rights::NONE
        };
        let write = if self.write {
            Rights::WRITE
        } else {
            Rights::NONE
        };
        read | write
    }

    /// How the file is had alone, if at all.
    pub(crate) fn unique_number(&self) -> Option<u64> {
        self.unique.then_some(self.unique_number)
    }

    /// What the metadata manager is asked, when hints go with it.
    pub(crate) fn to_message(&self, hints: Vec<GivenHint>) -> Result<messages::OpenOptions> {
        let create = self.create.then(|| messages::CreateOptions {
            mode: self.mode.unwrap_or(0o666) & !file_mode_mask(),
            exclusive: self.exclusive,
            layout: messages::LayoutSpec {
                array: self.array.clone(),
                layout: self.layout.clone(),
            },
            expected: self.expected.clone(),
            hints,
            values: named_values(&self.values),
        });
        if let Some(mode) = self.mode.filter(|m| *m > 0o7777) {
            return Err(Error::argument(
                "mode",
                format!("{mode:o} has more than the twelve permission bits"),
            ));
        }
        Ok(messages::OpenOptions {
            rights: self.rights(),
            create,
            append: self.append,
            unique: self.unique_number(),
            delete_on_close: self.delete_on_close,
        })
    }
}

/// Values with their names, as they travel.
pub(crate) fn named_values(values: &[(String, Vec<u8>)]) -> Vec<messages::NamedValue> {
    let named = |(name, value): &(String, Vec<u8>)| messages::NamedValue {
        name: name.clone(),
        value: Bytes(value.clone()),
    };
    values.iter().map(named).collect()
}

/// The process's mask for new files, as the kernel shows it; asking for it otherwise would change it.
pub(crate) fn file_mode_mask() -> u32 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|l| l.strip_prefix("Umask:"))?;
            u32::from_str_radix(line.trim(), 8).ok()
        })
        .unwrap_or(0o022)
}
