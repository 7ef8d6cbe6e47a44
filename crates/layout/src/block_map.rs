//! Block maps: the file is cut into blocks of one size, and a list says which element has each.
//!
//! The list covers one period; element `e` is the set of all blocks that name it, compressed where
//! they are regular and a compact list where they are not.
//!
//! ```text
//! blocks(4: 0,0,1,2,1)      |0...|0...|1...|2...|1...|
//! ```

use falls::{FallsSet, MAX_OFFSET};

use crate::array::{Elements, check_element};
use crate::error::LayoutError;
use crate::owner_runs::OwnerRuns;

/// Blocks of fixed size with an owner each.
///
/// ```
/// use layout::{BlockMap, OwnerRuns};
/// let map = BlockMap::new(4, OwnerRuns::new(&[0, 0, 1, 2, 1]), 3).unwrap();
/// assert_eq!(map.period(), 20);
/// assert_eq!(map.element(1).unwrap().to_string(), "{(8,11,-,1),(16,19,-,1)}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMap {
    block: u64,
    owners: OwnerRuns,
    count: u64,
}

impl BlockMap {
    /// Blocks of `block` bytes for `count` elements, of which some may have no block.
    pub fn new(block: u64, owners: OwnerRuns, count: u64) -> Result<Self, LayoutError> {
        if block == 0 {
            return Err(LayoutError::argument("block", "0 bytes; give at least 1"));
        }
        if owners.is_empty() {
            return Err(LayoutError::argument("owners", "none; give at least 1"));
        }
        if owners.owners() > count {
            return Err(LayoutError::argument(
                "owners",
                format!(
                    "a block names element {}, but there are {count}; they are numbered from 0",
                    owners.owners() - 1
                ),
            ));
        }
        let period = block.checked_mul(owners.len());
        if period.is_none_or(|p| p > MAX_OFFSET) {
            return Err(LayoutError::overflow("block"));
        }
        Ok(BlockMap {
            block,
            owners,
            count,
        })
    }

    /// Bytes of a block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// Who has each block.
    pub fn owners(&self) -> &OwnerRuns {
        &self.owners
    }

    /// All blocks of the list.
    pub fn period(&self) -> u64 {
        self.block * self.owners.len()
    }

    /// Number of elements.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What element `index` has of one period.
    pub fn element(&self, index: u64) -> Result<FallsSet, LayoutError> {
        check_element(index, self.count)?;
        self.owners.set(index, self.block)
    }

    /// What every element has.
    pub fn elements(&self) -> Result<Elements, LayoutError> {
        Elements::collect(self.period(), self.count, |i| self.element(i))
    }
}
