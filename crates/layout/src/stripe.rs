//! Striping: blocks of fixed size dealt round robin over servers.
//!
//! Section 8.7 of the specification. Servers are a subset in a given order; the first block goes to
//! the one at the start index. Element `j` is what `servers[j]` holds, whatever its number is.
//!
//! ```text
//! striped(4) over 3 from 1     blocks  |0...|1...|2...|3...|
//!                              servers   1    2    0    1
//! ```

use falls::FallsSet;

use crate::array::{Elements, check_element, product};
use crate::error::LayoutError;

/// Servers in order, and which of them takes the first block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Servers {
    chosen: Chosen,
    start: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Chosen {
    First(u64),
    Listed(Vec<u64>),
}

impl Servers {
    /// Servers 0 to `count - 1`.
    pub fn first(count: u64, start: u64) -> Result<Self, LayoutError> {
        Servers::build(Chosen::First(count), start)
    }

    /// These servers, in this order, each once.
    pub fn listed(numbers: impl Into<Vec<u64>>, start: u64) -> Result<Self, LayoutError> {
        let numbers = numbers.into();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|w| w[0] == w[1]) {
            return Err(LayoutError::argument(
                "servers",
                format!("server {} is listed twice; list each once", twice[0]),
            ));
        }
        Servers::build(Chosen::Listed(numbers), start)
    }

    fn build(chosen: Chosen, start: u64) -> Result<Self, LayoutError> {
        let servers = Servers { chosen, start };
        let count = servers.count();
        if count == 0 {
            return Err(LayoutError::argument("servers", "none; give at least 1"));
        }
        if start >= count {
            return Err(LayoutError::argument(
                "start",
                format!(
                    "index {start}, but the servers number {count}; indices run from 0 to {}",
                    count - 1
                ),
            ));
        }
        Ok(servers)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        match &self.chosen {
            Chosen::First(n) => *n,
            Chosen::Listed(list) => list.len() as u64,
        }
    }

    /// Index of the server that takes the first block.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Number of the server at `index < count`.
    pub fn number(&self, index: u64) -> u64 {
        match &self.chosen {
            Chosen::First(_) => index,
            Chosen::Listed(list) => list[index as usize],
        }
    }

    /// The list, when it is not simply the first so many.
    pub fn list(&self) -> Option<&[u64]> {
        match &self.chosen {
            Chosen::First(_) => None,
            Chosen::Listed(list) => Some(list),
        }
    }

    /// Number of the first block that goes to the server at `index < count`.
    pub(crate) fn first_block(&self, index: u64) -> u64 {
        if index >= self.start {
            index - self.start
        } else {
            self.count() - self.start + index
        }
    }
}

/// Blocks of `block` bytes dealt round robin.
///
/// ```
/// use layout::{Servers, Stripe};
/// let stripe = Stripe::new(4, Servers::listed([0, 2, 5], 1).unwrap()).unwrap();
/// assert_eq!(stripe.period(), 12);
/// assert_eq!(stripe.element(0).unwrap().to_string(), "{(8,11,-,1)}");  // server 0
/// assert_eq!(stripe.element(1).unwrap().to_string(), "{(0,3,-,1)}");   // server 2
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stripe {
    block: u64,
    servers: Servers,
}

impl Stripe {
    /// Stripes of `block` bytes, at least 1.
    pub fn new(block: u64, servers: Servers) -> Result<Self, LayoutError> {
        if block == 0 {
            return Err(LayoutError::argument("block", "0 bytes; give at least 1"));
        }
        product([block, servers.count()], "block")?;
        Ok(Stripe { block, servers })
    }

    /// Bytes of a block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// The servers.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// One block for every server.
    pub fn period(&self) -> u64 {
        self.block * self.servers.count()
    }

    /// Number of elements, one per server.
    pub fn count(&self) -> u64 {
        self.servers.count()
    }

    /// What the server at `index` holds of one period.
    pub fn element(&self, index: u64) -> Result<FallsSet, LayoutError> {
        check_element(index, self.count())?;
        let start = self.servers.first_block(index) * self.block;
        Ok(FallsSet::segment(start, self.block)?)
    }

    /// What every server holds.
    pub fn elements(&self) -> Result<Elements, LayoutError> {
        Elements::collect(self.period(), self.count(), |i| self.element(i))
    }
}
