//! How a file is opened: the options of the client, with the path, in one chain.
//!
//! Nothing is checked here; the file that comes out is the client's own [`File`].

use client::{Client, File, Hints, OpenOptions, Result, Team};

/// How a file is opened. Says nothing yet about rights: begin with [`read`](OpenFile::read), [`write`](OpenFile::write) or
/// [`append`](OpenFile::append).
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct OpenFile<'a> {
    client: &'a Client,
    path: String,
    options: OpenOptions,
}

/// Methods of [`OpenOptions`] with the same name and meaning.
macro_rules! options {
    ($($(#[doc = $doc:literal])* $name:ident($($argument:ident: $of:ty),*);)*) => {$(
        $(#[doc = $doc])*
        pub fn $name(self, $($argument: $of),*) -> Self {
            self.with(|options| options.$name($($argument),*))
        }
    )*};
}

impl<'a> OpenFile<'a> {
    pub(crate) fn new(client: &'a Client, path: &str) -> OpenFile<'a> {
        OpenFile {
            client,
            path: path.into(),
            options: OpenOptions::new(),
        }
    }

    /// Changes the options of the client, also those that have no method here.
    pub fn with(self, change: impl FnOnce(OpenOptions) -> OpenOptions) -> Self {
        OpenFile {
            options: change(self.options),
            ..self
        }
    }

    options! {
        /// For reading.
        read();
        /// For writing.
        write();
        /// For writing, every write at the end of the file.
        append();
        /// Created if it is not there.
        create();
        /// Permission bits of a new file before the process's mask is applied; 0o666 if not given.
        mode(mode: u32);
        /// What a new file holds, such as `f64[4096,4096]`; plain bytes if not given.
        array(array: &str);
        /// How a new file is cut, such as `(block, *) onto 4` or `striped(1MiB) over 4`.
        layout(layout: &str);
        /// With these hints.
        hints(hints: Hints);
        /// Reads and writes of several processes do not mix.
        atomic();
        /// Removed with its last handle.
        delete_on_close();
    }

    /// Created, and refused if it is there.
    pub fn new_only(self) -> Self {
        self.with(OpenOptions::exclusive)
    }

    /// Opens it.
    pub fn open(self) -> Result<File> {
        self.client.open(&self.path, &self.options)
    }

    /// Opens it together with the other members of a team, which all give the same path and options.
    pub fn open_together(self, team: &Team) -> Result<File> {
        self.client.open_together(team, &self.path, &self.options)
    }
}
