//! The metadata header of the source, and what portions have to be: disjoint and together complete.
//!
//! ```text
//!  blocks of 7, at processes 0 1 2 2 0 0 1        process 0: 7 3 0 4 5     process 1: 7 2 1 6     process 2: 7 2 2 3
//! ```
//!
//! Figure 2 of the source. A file here says the same by its layout; headers are for looking, and for what comes from elsewhere.

/// One process's part of a parallel file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Blocks of the whole file.
    pub total: u64,
    /// Its blocks.
    pub blocks: Vec<u64>,
}

/// What is wrong with portions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortionError {
    /// The numbers are no header.
    #[error(
        "a header has the blocks of the file, the blocks of the portion, and as many block numbers; there are {0} numbers"
    )]
    NoHeader(usize),
    /// Portions of different files.
    #[error(
        "portion {portion} is of a file of {has} blocks, the first one of a file of {expected}"
    )]
    OtherTotal {
        /// Which.
        portion: usize,
        /// What it says.
        has: u64,
        /// What the first one says.
        expected: u64,
    },
    /// A block that the file does not have.
    #[error("portion {portion} has block {block}, but the file has {total}")]
    Foreign {
        /// Which.
        portion: usize,
        /// The block.
        block: u64,
        /// Blocks of the file.
        total: u64,
    },
    /// A block that two have.
    #[error("portions {first} and {second} have block {block}")]
    Duplicate {
        /// The block.
        block: u64,
        /// One.
        first: usize,
        /// The other.
        second: usize,
    },
    /// A block that nobody has.
    #[error("no portion has block {0}")]
    Missing(u64),
}

impl Portion {
    /// The header of the source: blocks of the file, blocks here, their numbers.
    ///
    /// ```
    /// use pio::Portion;
    /// let portion = Portion { total: 7, blocks: vec![0, 4, 5] };
    /// assert_eq!(portion.header(), [7, 3, 0, 4, 5]);
    /// assert_eq!(Portion::of_header(&[7, 3, 0, 4, 5]), Ok(portion));
    /// ```
    pub fn header(&self) -> Vec<u64> {
        let mut header = vec![self.total, self.blocks.len() as u64];
        header.extend(&self.blocks);
        header
    }

    /// What a header says.
    ///
    /// # Errors
    ///
    /// If the numbers are none.
    pub fn of_header(numbers: &[u64]) -> Result<Portion, PortionError> {
        match numbers {
            [total, count, blocks @ ..] if blocks.len() as u64 == *count => Ok(Portion {
                total: *total,
                blocks: blocks.to_vec(),
            }),
            _ => Err(PortionError::NoHeader(numbers.len())),
        }
    }
}

/// The portions of so many processes, where each block has an owner.
pub fn portions_of_owners(owners: &[usize], processes: usize) -> Vec<Portion> {
    let portion = |process: usize| Portion {
        total: owners.len() as u64,
        blocks: (0..owners.len() as u64)
            .filter(|block| owners[*block as usize] == process)
            .collect(),
    };
    (0..processes).map(portion).collect()
}

/// Who owns each block.
///
/// # Errors
///
/// If the portions are not disjoint, or not complete, or of different files.
pub fn owners_of_portions(portions: &[Portion]) -> Result<Vec<usize>, PortionError> {
    let total = portions.first().map_or(0, |portion| portion.total);
    let mut owners: Vec<Option<usize>> = vec![None; total as usize];
    for (at, portion) in portions.iter().enumerate() {
        if portion.total != total {
            return Err(PortionError::OtherTotal {
                portion: at,
                has: portion.total,
                expected: total,
            });
        }
        for block in &portion.blocks {
            let Some(owner) = owners.get_mut(*block as usize) else {
                return Err(PortionError::Foreign {
                    portion: at,
                    block: *block,
                    total,
                });
            };
            if let Some(first) = owner.replace(at) {
                return Err(PortionError::Duplicate {
                    block: *block,
                    first,
                    second: at,
                });
            }
        }
    }
    let missing = owners.iter().position(Option::is_none);
    match missing {
        Some(block) => Err(PortionError::Missing(block as u64)),
        None => Ok(owners.into_iter().flatten().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed003_pio01_headers_are_those_of_the_published_figure() {
        let owners = [0, 1, 2, 2, 0, 0, 1];
        let portions = portions_of_owners(&owners, 3);
        let headers: Vec<Vec<u64>> = portions.iter().map(Portion::header).collect();
        assert_eq!(
            headers,
            [vec![7, 3, 0, 4, 5], vec![7, 2, 1, 6], vec![7, 2, 2, 3]]
        );
        let again: Vec<Portion> = headers
            .iter()
            .map(|header| Portion::of_header(header).unwrap())
            .collect();
        assert_eq!(owners_of_portions(&again), Ok(owners.to_vec()));
        for torn in [&[7][..], &[7, 3, 0, 4], &[7, 2, 0, 4, 5]] {
            assert_eq!(
                Portion::of_header(torn),
                Err(PortionError::NoHeader(torn.len()))
            );
        }
    }

    #[test]
    fn seed003_pio02_portions_with_a_missing_a_double_or_a_foreign_block_are_refused() {
        let with = |headers: &[&[u64]]| {
            let portions: Vec<Portion> = headers
                .iter()
                .map(|header| Portion::of_header(header).unwrap())
                .collect();
            owners_of_portions(&portions)
        };
        assert_eq!(with(&[&[3, 2, 0, 2], &[3, 1, 1]]), Ok(vec![0, 1, 0]));
        assert_eq!(
            with(&[&[3, 1, 0], &[3, 1, 1]]),
            Err(PortionError::Missing(2))
        );
        assert_eq!(
            with(&[&[3, 2, 0, 2], &[3, 2, 1, 2]]),
            Err(PortionError::Duplicate {
                block: 2,
                first: 0,
                second: 1
            })
        );
        assert_eq!(
            with(&[&[2, 1, 0], &[2, 1, 2]]),
            Err(PortionError::Foreign {
                portion: 1,
                block: 2,
                total: 2
            })
        );
        assert_eq!(
            with(&[&[2, 1, 0], &[3, 1, 1]]),
            Err(PortionError::OtherTotal {
                portion: 1,
                has: 3,
                expected: 2
            })
        );
    }
}
