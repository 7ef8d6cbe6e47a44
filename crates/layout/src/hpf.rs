//! HPF `DISTRIBUTE`: a distribution for every dimension, onto a grid of processors.
//!
//! Only distributed dimensions take a dimension of the grid, in their order. The number of a
//! processor runs through the grid in C order (the last coordinate fastest, as in MPI's `darray`)
//! or Fortran order (the first fastest, as in HPF); array order and grid order are independent.
//! Sections 8.1 and 8.2 of the specification.
//!
//! ```text
//! u8[4,4]  (block, cyclic) onto 2x2        0 1 0 1
//!                                          0 1 0 1
//!                                          2 3 2 3
//!                                          2 3 2 3
//! ```
//!
//! Elements are disjoint and cover the array. Processors without indices have empty elements.

use std::fmt;

use falls::FallsSet;

use crate::array::{
    ArrayType, Elements, MAX_DIMENSIONS, Order, check_element, check_listable, counted, product,
};
use crate::distribution::Distribution;
use crate::error::LayoutError;

/// An n-dimensional grid of processors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    extents: Vec<u64>,
    order: Order,
    count: u64,
}

impl Grid {
    /// A grid of these extents, each at least 1; without dimensions it is one processor.
    pub fn new(extents: impl Into<Vec<u64>>, order: Order) -> Result<Self, LayoutError> {
        let extents = extents.into();
        if extents.len() > MAX_DIMENSIONS {
            return Err(LayoutError::argument(
                "grid",
                format!(
                    "{} dimensions; give at most {MAX_DIMENSIONS}",
                    extents.len()
                ),
            ));
        }
        if extents.contains(&0) {
            return Err(LayoutError::argument(
                "grid",
                "has a dimension of 0 processors; give at least 1",
            ));
        }
        let count = product(extents.iter().copied(), "grid")?;
        // Along a line both orders are the same.
        let order = if extents.len() < 2 { Order::C } else { order };
        Ok(Grid {
            extents,
            order,
            count,
        })
    }

    /// Processors along every dimension.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Which coordinate varies fastest in the numbers of the processors.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Number of processors.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Coordinates of processor `rank < count`.
    ///
    /// ```
    /// use layout::{Grid, Order};
    /// let grid = |order| Grid::new([2, 3], order).unwrap();
    /// assert_eq!(grid(Order::C).coordinates(1), [0, 1]);
    /// assert_eq!(grid(Order::Fortran).coordinates(1), [1, 0]);
    /// ```
    pub fn coordinates(&self, rank: u64) -> Vec<u64> {
        let mut coordinates = vec![0; self.extents.len()];
        let mut rest = rank;
        for d in self.order.fastest_first(self.extents.len()) {
            coordinates[d] = rest % self.extents[d];
            rest /= self.extents[d];
        }
        coordinates
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.extents.is_empty() {
            return f.write_str("1");
        }
        for (d, extent) in self.extents.iter().enumerate() {
            write!(f, "{}{extent}", if d == 0 { "" } else { "x" })?;
        }
        match self.order {
            Order::C => Ok(()),
            Order::Fortran => f.write_str(":fortran"),
        }
    }
}

/// A distribution for every dimension of an array and the grid they go onto.
///
/// ```
/// use layout::{Distribution, Grid, Hpf, Order};
/// let rows = Hpf::new([Distribution::Block, Distribution::Collapsed], Grid::new([3], Order::C).unwrap()).unwrap();
/// let elements = rows.on(&"f64[6,8]".parse().unwrap()).unwrap().elements().unwrap();
/// assert_eq!(elements.period, 384);
/// assert_eq!(elements.sets[1].to_string(), "{(128,255,-,1)}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hpf {
    distributions: Vec<Distribution>,
    grid: Grid,
}

impl Hpf {
    /// Pairs distributions with a grid that has one dimension for each distributed one.
    pub fn new(
        distributions: impl Into<Vec<Distribution>>,
        grid: Grid,
    ) -> Result<Self, LayoutError> {
        let distributions = distributions.into();
        if distributions.len() > MAX_DIMENSIONS {
            return Err(LayoutError::argument(
                "distributions",
                format!(
                    "{} dimensions; give at most {MAX_DIMENSIONS}",
                    distributions.len()
                ),
            ));
        }
        let distributed = distributions.iter().filter(|d| d.is_distributed()).count();
        // Nothing distributed: one processor has all, however that is written.
        let grid = if distributed == 0 && grid.count() == 1 {
            Grid::new([], Order::C)?
        } else {
            grid
        };
        if distributed != grid.extents().len() {
            return Err(LayoutError::argument(
                "grid",
                format!(
                    "{} for {distributed} distributed; give one for each that is not `*`",
                    counted(grid.extents().len(), "dimension")
                ),
            ));
        }
        Ok(Hpf {
            distributions,
            grid,
        })
    }

    /// One distribution per dimension.
    pub fn distributions(&self) -> &[Distribution] {
        &self.distributions
    }

    /// The processors.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Applies it to an array.
    pub fn on(&self, array: &ArrayType) -> Result<HpfElements, LayoutError> {
        if self.distributions.len() != array.dimensions() {
            return Err(LayoutError::argument(
                "distributions",
                format!(
                    "{} for an array of {}; give one for each, `*` where it is not distributed",
                    self.distributions.len(),
                    counted(array.dimensions(), "dimension")
                ),
            ));
        }
        let mut processors = self.grid.extents().iter();
        for (d, distribution) in self.distributions.iter().enumerate() {
            let along = match distribution.is_distributed() {
                true => processors.next().copied().unwrap_or(1),
                false => 1,
            };
            distribution
                .check(array.extents()[d], along)
                .map_err(|e| LayoutError::argument(format!("distributions[{d}]"), e.detail()))?;
        }
        Ok(HpfElements {
            hpf: self.clone(),
            array: array.clone(),
        })
    }

    /// What every coordinate owns of every dimension: `sets[d][c]`, one set for `*`.
    pub(crate) fn owned_by_all(&self, extents: &[u64]) -> Result<Vec<Vec<FallsSet>>, LayoutError> {
        let mut along = self.grid.extents().iter();
        let mut sets = Vec::with_capacity(extents.len());
        for (distribution, &extent) in self.distributions.iter().zip(extents) {
            let processors = match distribution.is_distributed() {
                true => along.next().copied().unwrap_or(1),
                false => 1,
            };
            let owned = (0..processors).map(|c| distribution.owned(extent, processors, c));
            sets.push(owned.collect::<Result<_, _>>()?);
        }
        Ok(sets)
    }

    /// The coordinate of `rank` along every dimension, 0 for `*`.
    pub(crate) fn coordinates(&self, rank: u64) -> impl Iterator<Item = usize> + '_ {
        let mut along = self.grid.coordinates(rank).into_iter();
        self.distributions
            .iter()
            .map(move |d| match d.is_distributed() {
                true => along.next().unwrap_or(0) as usize,
                false => 0,
            })
    }

    /// What coordinates own of every dimension, for the dimensions of extents `extents`.
    pub(crate) fn owned(
        &self,
        extents: &[u64],
        coordinates: &[u64],
    ) -> Result<Vec<FallsSet>, LayoutError> {
        let mut along = coordinates.iter().zip(self.grid.extents());
        let mut sets = Vec::with_capacity(extents.len());
        for (distribution, &extent) in self.distributions.iter().zip(extents) {
            let (coordinate, processors) = match distribution.is_distributed() {
                true => along.next().map_or((0, 1), |(&c, &p)| (c, p)),
                false => (0, 1),
            };
            sets.push(distribution.owned(extent, processors, coordinate)?);
        }
        Ok(sets)
    }
}

/// The elements of a distributed array, each computed when it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HpfElements {
    hpf: Hpf,
    array: ArrayType,
}

impl HpfElements {
    /// Bytes of the array.
    pub fn period(&self) -> u64 {
        self.array.bytes()
    }

    /// Number of processors.
    pub fn count(&self) -> u64 {
        self.hpf.grid.count()
    }

    /// What processor `rank` owns.
    pub fn element(&self, rank: u64) -> Result<FallsSet, LayoutError> {
        self.array.cross(&self.indices(rank)?)
    }

    /// How many indices processor `rank` owns of every dimension.
    pub fn extents(&self, rank: u64) -> Result<Vec<u64>, LayoutError> {
        Ok(self.indices(rank)?.iter().map(FallsSet::size).collect())
    }

    /// The indices of every dimension that processor `rank` owns, each as a set.
    fn indices(&self, rank: u64) -> Result<Vec<FallsSet>, LayoutError> {
        check_element(rank, self.count())?;
        let coordinates = self.hpf.grid.coordinates(rank);
        self.hpf.owned(self.array.extents(), &coordinates)
    }

    /// What every processor owns.
    pub fn elements(&self) -> Result<Elements, LayoutError> {
        check_listable(self.count())?;
        let owned = self.hpf.owned_by_all(self.array.extents())?;
        Elements::collect(self.period(), self.count(), |rank| {
            let coordinates = self.hpf.coordinates(rank);
            let indices: Vec<FallsSet> = coordinates
                .zip(&owned)
                .map(|(c, sets)| sets[c].clone())
                .collect();
            self.array.cross(&indices)
        })
    }
}
