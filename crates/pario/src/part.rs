//! [`Part`]: some entries of an array, to be read and written as one slice of values.
//!
//! A part is a view in the file with a handle of its own, and its values lie in the order of the array. Entries that nobody
//! has written yet are 0.
//!
//! Invariants
//! - A view cuts no entry.
//! - A buffer has exactly as many values as the part has entries; another one is refused before anything is read or written.
//! - A member of a team that is refused for its arguments takes part in the access of the others, so that nobody waits.

use std::marker::PhantomData;

use client::{Error, Places, Result, SharedBytes, SharedBytesMut, Team};
use layout::{ArrayType, Layout, Order};

use crate::element::Element;
use crate::handles::LentHandle;

/// Some entries of an array. Threads may share it.
///
/// As a member of a team ([`Part::join`]) all its reads and writes are collective: all members call the same ones in the same
/// order.
#[derive(Debug)]
pub struct Part<T> {
    handle: LentHandle,
    layout: Layout,
    shape: Vec<u64>,
    order: Order,
    /// Entries.
    len: usize,
    /// Bytes of the whole array.
    array_bytes: u64,
    team: Option<Team>,
    of: PhantomData<fn() -> T>,
}

impl<T: Element> Part<T> {
    pub(crate) fn new(handle: LentHandle, array: &ArrayType, layout: &Layout) -> Result<Part<T>> {
        let wrong = |text| Error::Argument { name: "part", text };
        let applied = layout.on_array(array)?;
        if applied.count() != 1 {
            return Err(wrong(format!(
                "`{layout}` has {} elements; pick one, as in `{layout} [0]`",
                applied.count()
            )));
        }
        let mut entries = 0;
        if array.bytes() > 0 {
            handle.file.set_view_text(&layout.to_string())?;
            let view = handle.file.view();
            if !view.has_whole_units(T::TYPE.size()) {
                return Err(wrong(format!(
                    "`{layout}` cuts entries of {array}; give lengths and distances that are multiples of {} bytes",
                    T::TYPE.size()
                )));
            }
            entries = view.len_within(array.bytes()) / T::TYPE.size();
        }
        let len = usize::try_from(entries)
            .map_err(|_| wrong(format!("{entries} entries are more than memory can have")))?;
        Ok(Part {
            handle,
            layout: layout.clone(),
            shape: applied.extents(0)?.unwrap_or_else(|| vec![entries]),
            order: array.order(),
            len,
            array_bytes: array.bytes(),
            team: None,
            of: PhantomData,
        })
    }

    /// What it is a part of the array by, in the layout language.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Entries along every dimension; their number alone if it is no choice of indices in every dimension, such as a stripe.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Which index varies fastest in its values.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no entries, like the parts of a distribution over more ranks than there are rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Becomes a member of a team: from now on its reads and writes are collective. All members call it, each with its own
    /// part of the same array. If nothing is written yet and the layout was left to the service, the parts of the members become
    /// the subfiles of the array.
    pub fn join(mut self, team: &Team) -> Result<Part<T>> {
        self.agree(team)?;
        self.team = Some(team.clone());
        Ok(self)
    }

    /// The values, in the order of the array.
    pub fn read(&self) -> Result<Vec<T>> {
        let mut values = vec![T::ZERO; self.len];
        self.read_into(&mut values)?;
        Ok(values)
    }

    /// Reads into memory that the program has.
    pub fn read_into(&self, values: &mut [T]) -> Result<()> {
        match &self.team {
            Some(team) => self.read_all(team, values),
            None => {
                self.check_length(values.len())?;
                T::fill(values, |bytes| self.handle.file.read_at(0, bytes))
            }
        }
    }

    /// Writes the values, in the order of the array.
    pub fn write(&self, values: &[T]) -> Result<()> {
        match &self.team {
            Some(team) => self.write_all(team, values),
            None => {
                self.check_length(values.len())?;
                let bytes = T::bytes(values);
                self.handle.to_write().write_at(0, bytes).map(drop)
            }
        }
    }

    /// Reads while all other members of a team read, each its own part. For more than one access of the same parts
    /// [`Part::join`] costs less: members agree once.
    pub fn read_together(&self, team: &Team) -> Result<Vec<T>> {
        let mut values = vec![T::ZERO; self.len];
        self.read_into_together(team, &mut values)?;
        Ok(values)
    }

    /// Reads into memory that the program has, while all other members of a team read.
    pub fn read_into_together(&self, team: &Team, values: &mut [T]) -> Result<()> {
        self.agree(team)?;
        self.read_all(team, values)
    }

    /// Writes while all other members of a team write, each its own part.
    pub fn write_together(&self, team: &Team, values: &[T]) -> Result<()> {
        self.agree(team)?;
        self.write_all(team, values)
    }

    /// Sets the view together with the team, which settles how they access the file.
    fn agree(&self, team: &Team) -> Result<()> {
        let file = &self.handle.file;
        match self.array_bytes {
            // An array without bytes has no views but the whole file.
            0 => file.set_view_together(team, &client::View::whole_file()),
            _ => file.set_view_text_together(team, &self.layout.to_string()),
        }
    }

    fn read_all(&self, team: &Team, values: &mut [T]) -> Result<()> {
        let right = self.check_length(values.len());
        // With no memory at all this member is refused while the others read each for itself.
        let values = match right {
            Ok(()) => values,
            Err(_) => &mut [],
        };
        let read = T::fill(values, |bytes| {
            let memory = SharedBytesMut::from_slice(bytes);
            let file = &self.handle.file;
            file.read_at_all(team, 0, memory, 0, &self.places())
        });
        right.and(read)
    }

    fn write_all(&self, team: &Team, values: &[T]) -> Result<()> {
        let right = self.check_length(values.len());
        let values = match right {
            Ok(()) => values,
            Err(_) => &[],
        };
        let memory = SharedBytes::from_slice(T::bytes(values));
        let file = self.handle.to_write();
        let written = file.write_at_all(team, 0, memory, 0, &self.places());
        right.and(written.map(drop))
    }

    /// Memory in one run.
    fn places(&self) -> Places {
        Places::bytes(self.len as u64 * T::TYPE.size())
    }

    fn check_length(&self, given: usize) -> Result<()> {
        if given == self.len {
            return Ok(());
        }
        Err(Error::Argument {
            name: "values",
            text: format!(
                "{given}, but the part has {} entries ({}); give as many",
                self.len,
                shown(&self.shape)
            ),
        })
    }
}

/// A shape in words, as in `4 x 8`.
pub(crate) fn shown<N: ToString>(shape: &[N]) -> String {
    let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
    extents.join(" x ")
}
