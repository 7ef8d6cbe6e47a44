//! How an array is created: shape, layout, hints, and what becomes of one that is there already.
//!
//! Without another word an array that is there is opened if it has the same entries and shape, so that all processes of a
//! program can say the same; its layout and its bytes stay as they are.

use std::marker::PhantomData;

use client::{Client, Error, Hints, OpenOptions, Result, Status, Team};
use layout::{ArrayType, Order};

use crate::array::Array;
use crate::element::Element;

/// Times a file is removed because another process has created it again.
const MOST_REMOVALS: u32 = 16;

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExistingFile {
    /// It is opened, if it is the same array.
    Opened,
    /// It stays, and creating is refused.
    Kept,
    /// It is removed first.
    Replaced,
}

/// An array to be created.
#[derive(Clone, Debug)]
#[must_use = "nothing is created before `create`"]
pub struct CreateArray<'a, T> {
    client: &'a Client,
    path: String,
    shape: Vec<u64>,
    order: Order,
    hints: Hints,
    options: OpenOptions,
    existing: ExistingFile,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Element> CreateArray<'a, T> {
    pub(crate) fn new(client: &'a Client, path: &str, shape: &[u64]) -> Self {
        CreateArray {
            client,
            path: path.into(),
            shape: shape.to_vec(),
            order: Order::C,
            hints: Hints::new(),
            options: OpenOptions::new().read().write().create(),
            existing: ExistingFile::Opened,
            of: PhantomData,
        }
    }

    /// How it is cut into subfiles, such as `(block, *) onto 4`. Without it the service decides: by the views of a team that
    /// writes it first, else by its rule for files.
    pub fn layout(self, layout: &str) -> Self {
        self.with(|options| options.layout(layout))
    }

    /// In which order entries lie in the file, and so in what is read and written; the last index fastest if not said.
    pub fn order(self, order: Order) -> Self {
        CreateArray { order, ..self }
    }

    /// With these hints, which hold for all handles of this opening.
    pub fn hints(self, hints: Hints) -> Self {
        CreateArray { hints, ..self }
    }

    /// Permission bits before the process's mask is applied; 0o666 if not given.
    pub fn mode(self, mode: u32) -> Self {
        self.with(|options| options.mode(mode))
    }

    /// Refused if there is a file of this name.
    pub fn new_only(self) -> Self {
        CreateArray {
            existing: ExistingFile::Kept,
            ..self
        }
    }

    /// A file of this name is removed first. A program that has it open keeps it until it is closed.
    pub fn replace(self) -> Self {
        CreateArray {
            existing: ExistingFile::Replaced,
            ..self
        }
    }

    /// Changes the options of the client, also those that have no method here.
    pub fn with(self, change: impl FnOnce(OpenOptions) -> OpenOptions) -> Self {
        CreateArray {
            options: change(self.options),
            ..self
        }
    }

    /// Creates it, and opens it for reading and writing.
    pub fn create(self) -> Result<Array<T>> {
        let (array, options) = self.described()?;
        let mut attempts = 0;
        let file = loop {
            if self.existing == ExistingFile::Replaced {
                self.remove_existing()?;
            }
            match self.client.open(&self.path, &options) {
                Err(e)
                    if e.status() == Status::Exists
                        && self.existing == ExistingFile::Replaced
                        && attempts < MOST_REMOVALS =>
                {
                    attempts += 1;
                }
                other => break other?,
            }
        };
        let opened = Array::of_file(self.client, &self.path, self.to_open_again(), file)?;
        self.check(&array, opened)
    }

    /// Creates it once, together with the other members of a team, which all say the same.
    pub fn create_together(self, team: &Team) -> Result<Array<T>> {
        let (array, options) = self.described()?;
        // Rank 0 opens first.
        let removed = match (self.existing, team.rank()) {
            (ExistingFile::Replaced, 0) => self.remove_existing(),
            _ => Ok(()),
        };
        // What could not be removed is refused here, to all members.
        let opened = self.client.open_together(team, &self.path, &options);
        removed?;
        let file = opened?;
        let opened = Array::of_file(self.client, &self.path, self.to_open_again(), file)?;
        self.check(&array, opened)
    }

    /// The array as the catalogue has it, and how its file is created.
    fn described(&self) -> Result<(ArrayType, OpenOptions)> {
        let array = ArrayType::new(T::TYPE, self.shape.clone(), self.order);
        let array = array.map_err(|e| Error::Argument {
            name: "shape",
            text: e.detail().into(),
        })?;
        let options = self.options.clone().hints(self.hints.clone());
        let options = options.array(array.to_string());
        Ok(match self.existing {
            ExistingFile::Opened => (array, options),
            ExistingFile::Kept | ExistingFile::Replaced => (array, options.exclusive()),
        })
    }

    /// How later handles are opened.
    fn to_open_again(&self) -> OpenOptions {
        let options = OpenOptions::new().read().write();
        options.hints(self.hints.clone())
    }

    fn remove_existing(&self) -> Result<()> {
        match self.client.unlink(&self.path) {
            Err(e) if e.status() == Status::NotFound => Ok(()),
            other => other,
        }
    }

    /// Whether what is open is what was described.
    fn check(&self, wanted: &ArrayType, opened: Array<T>) -> Result<Array<T>> {
        let found = opened.array_type();
        if found == wanted {
            return Ok(opened);
        }
        Err(Error::Argument {
            name: "shape",
            text: format!(
                "{} is there already and holds {found}, not {wanted}; open it as it is, or create it with replace()",
                self.path
            ),
        })
    }
}
