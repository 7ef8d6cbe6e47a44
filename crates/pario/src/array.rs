//! [`Array`]: an open file that holds an n-dimensional array, with the type of its entries.
//!
//! Parts of it are described in the layout language or as regions of indices; reading and writing is theirs ([`Part`]).

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use client::{
    Client, Error, File, FileLayout, MoveOptions, OpenOptions, Relayout, Result, SyncReport,
};
use layout::{ArrayType, Layout, LayoutForm, Order, Slice};

use crate::axis::Region;
use crate::element::Element;
use crate::handles::Handles;
use crate::part::Part;

/// An open array. Clones are the same opening, threads may share it; it is closed with the last clone and the last part, or
/// by [`Array::close`], which reports errors.
pub struct Array<T> {
    handles: Arc<Handles>,
    array: Arc<ArrayType>,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        Array {
            handles: Arc::clone(&self.handles),
            array: Arc::clone(&self.array),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({}: {})", self.handles.path(), self.array)
    }
}

impl<T: Element> Array<T> {
    pub(crate) fn open(client: &Client, path: &str, options: OpenOptions) -> Result<Array<T>> {
        let file = client.open(path, &options)?;
        Array::of_file(client, path, options, file)
    }

    /// The array of an open file, if its entries are of this type.
    pub(crate) fn of_file(
        client: &Client,
        path: &str,
        options: OpenOptions,
        file: File,
    ) -> Result<Array<T>> {
        let array = match file.array() {
            Some(array) if array.element() == T::TYPE => Arc::new(array.clone()),
            Some(array) => {
                return Err(Error::Argument {
                    name: "element type",
                    text: format!(
                        "{path} holds {array}, not entries of {}; open it as an array of {}",
                        T::TYPE,
                        array.element()
                    ),
                });
            }
            None => {
                return Err(Error::Argument {
                    name: "path",
                    text: format!("{path} holds plain bytes and no array; open it as a file"),
                });
            }
        };
        Ok(Array {
            handles: Arc::new(Handles::new(client, path, options, file)),
            array,
            of: PhantomData,
        })
    }

    /// The path it was opened by; it may have another by now.
    pub fn path(&self) -> &str {
        self.handles.path()
    }

    /// The extent of every dimension.
    pub fn shape(&self) -> &[u64] {
        self.array.extents()
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.array.extents().iter().product()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which index varies fastest in the file, and so in what is read and written.
    pub fn order(&self) -> Order {
        self.array.order()
    }

    /// Type of entries, extents and order, as in `f64[4096,4096]`.
    pub fn array_type(&self) -> &ArrayType {
        &self.array
    }

    /// How it is laid out, which servers have it, and why.
    pub fn layout(&self) -> Result<FileLayout> {
        self.handles.client().layout(self.path())
    }

    /// A part in the layout language: one element of a layout, such as `(*, block) onto 4 [2]`, `slice[0:10:2, 3]`, or
    /// `whole`.
    ///
    /// As long as the part lives it has a handle of the file to itself; the first parts at a time open them, later
    /// ones get them.
    pub fn part(&self, text: &str) -> Result<Part<T>> {
        self.part_by(text.parse()?)
    }

    /// Element `index` of a layout: with `(*, block) onto 4` and a rank, the columns of that rank.
    pub fn part_of(&self, layout: &str, index: usize) -> Result<Part<T>> {
        let layout: Layout = layout.parse()?;
        self.part_by(layout.pick(index as u64)?)
    }

    /// A region: for every dimension a range, every so many indices of a range, or one index.
    ///
    /// ```no_run
    /// # fn main() -> pario::Result<()> {
    /// # let pario = pario::connect_default()?;
    /// # let matrix = pario.open_array::<f64>("/matrix")?;
    /// let corner = matrix.region(&[0..10, 3..4])?.read()?;
    /// let column = matrix.region((.., 7))?.read()?;
    /// let every_other_row = matrix.region((pario::Axis::from(0..10).step_by(2), ..))?.read()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn region(&self, region: impl Region) -> Result<Part<T>> {
        let (axes, shape) = (region.axes(), self.shape());
        if axes.len() != shape.len() {
            return Err(Error::Argument {
                name: "region",
                text: format!(
                    "{} dimensions for an array of {}; give one range for each, `..` where all indices are meant",
                    axes.len(),
                    shape.len()
                ),
            });
        }
        let axes = axes.into_iter().zip(shape).enumerate();
        let axes = axes.map(|(d, (axis, extent))| axis.slice_axis(d, *extent));
        let slice = Slice::new(axes.collect::<Result<Vec<_>>>()?);
        self.part_by(LayoutForm::Slice(slice).into())
    }

    /// The whole array as one part.
    pub fn whole(&self) -> Result<Part<T>> {
        self.part_by(LayoutForm::Whole.into())
    }

    /// All entries, in the order of the array.
    pub fn read(&self) -> Result<Vec<T>> {
        self.whole()?.read()
    }

    /// Writes all entries, in the order of the array.
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.whole()?.write(values)
    }

    fn part_by(&self, layout: Layout) -> Result<Part<T>> {
        Part::new(self.handles.lend()?, &self.array, &layout)
    }

    /// Begins to move the array into another layout; it is used as ever meanwhile. [`Relayout::wait`] waits for the end,
    /// [`Relayout::progress`] tells how far it is.
    pub fn relayout(&self, layout: &str) -> Result<Relayout> {
        self.relayout_with(layout, &MoveOptions::default())
    }

    /// Begins to move the array, no faster than the options say, or in little space.
    pub fn relayout_with(&self, layout: &str, options: &MoveOptions) -> Result<Relayout> {
        let client = self.handles.client();
        client.relayout_with(self.path(), layout, options)
    }

    /// Makes everything written through this opening durable, where the stores can; says whether they can. Bytes that were
    /// lost with a server before they were durable are reported, once, as
    /// [`Error::LostWrites`].
    pub fn sync(&self) -> Result<SyncReport> {
        self.handles.sync()
    }

    /// Closes it, and the parts taken of it. Nothing is made durable by that.
    pub fn close(&self) -> Result<()> {
        self.handles.close()
    }
}
