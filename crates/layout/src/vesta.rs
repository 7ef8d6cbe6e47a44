//! Vesta files: cells side by side, each a column of basic striping units, and their partitions
//! into groups.
//!
//! A Vesta file is two-dimensional. Its *cells* stand side by side (one per physical partition);
//! each is a column of *basic striping units* (BSUs) of fixed size that grows downwards. Here the
//! file is the line of rows: unit `u` of cell `c` starts at `(u * cells + c) * unit_bytes`, so cell
//! `c` is a stripe. A partition cuts the plane by four numbers: `Vbs` units high and `Hbs` cells wide
//! blocks are dealt round robin to `Vn` groups vertically and `Hn` groups horizontally.
//!
//! ```text
//! 4 cells, Vbs = 2, Vn = 2, Hbs = 1, Hn = 2        cell  0 1 2 3
//!                                                  unit 0  0 1 0 1
//!                                                       1  0 1 0 1
//!                                                       2  2 3 2 3
//!                                                       3  2 3 2 3   and so on
//! ```
//!
//! Section 8.8 of the specification: two cyclic dimensions of 8.2. The vertical dimension has no
//! end, so the period is one round of it. Bytes of a group are in file order, row by row.

use falls::FallsSet;

use crate::array::{ArrayType, ElementType, Elements, Order, product};
use crate::distribution::Distribution;
use crate::error::LayoutError;
use crate::hpf::{Grid, Hpf, HpfElements};
use crate::stripe::{Servers, Stripe};

/// The plane of a Vesta file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VestaFile {
    unit_bytes: u64,
    cells: u64,
}

/// How a Vesta file is cut into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VestaCut {
    /// `Vbs`: height of a block in units.
    pub vertical_block: u64,
    /// `Vn`: groups dealt to vertically.
    pub vertical_groups: u64,
    /// `Hbs`: width of a block in cells.
    pub horizontal_block: u64,
    /// `Hn`: groups dealt to horizontally.
    pub horizontal_groups: u64,
}

impl VestaFile {
    /// A file of `cells` cells with units of `unit_bytes` bytes.
    pub fn new(unit_bytes: u64, cells: u64) -> Result<Self, LayoutError> {
        for (argument, value) in [("unit_bytes", unit_bytes), ("cells", cells)] {
            at_least_one(argument, value)?;
        }
        product([unit_bytes, cells], "cells")?;
        Ok(VestaFile { unit_bytes, cells })
    }

    /// Bytes of a basic striping unit.
    pub fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// Number of cells.
    pub fn cell_count(&self) -> u64 {
        self.cells
    }

    /// The cells themselves, as elements.
    pub fn cells(&self) -> Result<Stripe, LayoutError> {
        Stripe::new(self.unit_bytes, Servers::first(self.cells, 0)?)
    }

    /// The file cut into groups.
    ///
    /// ```
    /// use layout::{VestaCut, VestaFile};
    /// let file = VestaFile::new(1, 4).unwrap();
    /// let cut = VestaCut { vertical_block: 2, vertical_groups: 2, horizontal_block: 1, horizontal_groups: 2 };
    /// let groups = file.cut(cut).unwrap();
    /// assert_eq!((groups.count(), groups.period()), (4, 16));
    /// assert_eq!(groups.group(1, 0).unwrap().to_string(), "{(8,8,2,4)}");
    /// ```
    pub fn cut(&self, cut: VestaCut) -> Result<VestaGroups, LayoutError> {
        for (argument, value) in [
            ("vertical_block", cut.vertical_block),
            ("vertical_groups", cut.vertical_groups),
            ("horizontal_block", cut.horizontal_block),
            ("horizontal_groups", cut.horizontal_groups),
        ] {
            at_least_one(argument, value)?;
        }
        let rows = product([cut.vertical_block, cut.vertical_groups], "vertical_block")?;
        let plane = ArrayType::new(
            ElementType::Bytes(self.unit_bytes),
            [rows, self.cells],
            Order::C,
        )?;
        let blocks = [
            Distribution::CyclicOf(cut.vertical_block),
            Distribution::CyclicOf(cut.horizontal_block),
        ];
        let grid = Grid::new([cut.vertical_groups, cut.horizontal_groups], Order::C)?;
        Ok(VestaGroups {
            elements: Hpf::new(blocks, grid)?.on(&plane)?,
            across: cut.horizontal_groups,
        })
    }
}

fn at_least_one(argument: &str, value: u64) -> Result<(), LayoutError> {
    if value == 0 {
        return Err(LayoutError::argument(argument, "0; give at least 1"));
    }
    Ok(())
}

/// The groups of a Vesta file, each computed when it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VestaGroups {
    elements: HpfElements,
    across: u64,
}

impl VestaGroups {
    /// Bytes of one vertical round over all cells.
    pub fn period(&self) -> u64 {
        self.elements.period()
    }

    /// Number of groups.
    pub fn count(&self) -> u64 {
        self.elements.count()
    }

    /// The group at these vertical and horizontal positions.
    pub fn group(&self, vertical: u64, horizontal: u64) -> Result<FallsSet, LayoutError> {
        if horizontal >= self.across {
            return Err(LayoutError::argument(
                "horizontal",
                format!("{horizontal} of {} groups", self.across),
            ));
        }
        let index = vertical.checked_mul(self.across);
        let index = index.and_then(|i| i.checked_add(horizontal));
        self.elements.element(index.unwrap_or(u64::MAX))
    }

    /// Group number `index`, the horizontal position varying fastest.
    pub fn element(&self, index: u64) -> Result<FallsSet, LayoutError> {
        self.elements.element(index)
    }

    /// All groups, the horizontal position varying fastest.
    pub fn elements(&self) -> Result<Elements, LayoutError> {
        self.elements.elements()
    }
}
