//! Parts as arrays of `ndarray`: shapes in and out, memory of any strides (feature `ndarray`).
//!
//! Memory that lies in the order of the array is read and written where it is; any other is packed on the way.

use client::{Error, Result};
use layout::Order;
use ndarray::{
    Array, ArrayBase, ArrayD, ArrayViewMutD, Data, DataMut, Dimension, IxDyn, ShapeBuilder,
};

use crate::element::Element;
use crate::part::{Part, shown};

impl<T: Element> Part<T> {
    /// The values as an array of the shape of the part.
    ///
    /// ```no_run
    /// # fn main() -> pario::Result<()> {
    /// # let pario = pario::connect_default()?;
    /// let matrix = pario.read_array::<f64>("/matrix")?;
    /// let corner = matrix.region(&[0..10, 0..20])?.read_ndarray()?;
    /// assert_eq!(corner.shape(), [10, 20]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_ndarray(&self) -> Result<ArrayD<T>> {
        let extents: Vec<usize> = self.shape().iter().map(|n| *n as usize).collect();
        let shape = IxDyn(&extents).set_f(self.order() == Order::Fortran);
        let values = self.read()?;
        Ok(Array::from_shape_vec(shape, values).expect("a part has the entries of its shape"))
    }

    /// Reads into an array or a view of the shape of the part, of any strides.
    pub fn read_into_ndarray<S, D>(&self, values: &mut ArrayBase<S, D>) -> Result<()>
    where
        S: DataMut<Elem = T>,
        D: Dimension,
    {
        self.check_shape(values.shape())?;
        let mut values = values.view_mut().into_dyn();
        if let Some(values) = self.in_order_mut(&mut values).as_slice_mut() {
            return self.read_into(values);
        }
        values.assign(&self.read_ndarray()?);
        Ok(())
    }

    /// Writes an array or a view of the shape of the part, of any strides.
    pub fn write_ndarray<S, D>(&self, values: &ArrayBase<S, D>) -> Result<()>
    where
        S: Data<Elem = T>,
        D: Dimension,
    {
        self.check_shape(values.shape())?;
        let values = match self.order() {
            Order::C => values.view().into_dyn(),
            Order::Fortran => values.view().into_dyn().reversed_axes(),
        };
        match values.as_slice() {
            Some(values) => self.write(values),
            None => self.write(&values.iter().copied().collect::<Vec<T>>()),
        }
    }

    /// The view whose entries in its own order are those of the file.
    fn in_order_mut<'a>(&self, values: &'a mut ArrayViewMutD<'_, T>) -> ArrayViewMutD<'a, T> {
        match self.order() {
            Order::C => values.view_mut(),
            Order::Fortran => values.view_mut().reversed_axes(),
        }
    }

    fn check_shape(&self, given: &[usize]) -> Result<()> {
        let is_same = given.len() == self.shape().len()
            && given.iter().zip(self.shape()).all(|(a, b)| *a as u64 == *b);
        if is_same {
            return Ok(());
        }
        Err(Error::Argument {
            name: "values",
            text: format!(
                "an array of {}, but the part is one of {}; give that shape",
                shown(given),
                shown(self.shape())
            ),
        })
    }
}
