//! Regularity of a list of owners, found for all owners at once.
//!
//! Compressing what each owner has by itself gives sets that repeat at distances of their own; laid
//! over each other they may have no common period, and then nobody can check or search the
//! partition they form. Here the list itself is folded: a group of neighbouring runs that recurs
//! becomes one item, and the next pass sees the shorter list. All owners get their sets from the
//! same items, so their periods agree.
//!
//! ```text
//! runs    0 1 2 0 1 2 0 1 2 5      ->   (0 1 2) x 3, 5
//! ```
//!
//! What does not recur stays a list. Not minimal. Cost: a few steps per run and pass, at most
//! [`MAX_PASSES`] passes; comparisons stop at [`STEPS_PER_RUN`] per run, after which the list stays
//! as it is.

use std::collections::HashMap;

use falls::FallsSet;

use crate::array::simplified;
use crate::error::LayoutError;

const MAX_PASSES: usize = 6;
const STEPS_PER_RUN: u64 = 64;
/// How many of the next equal items are tried as the beginning of a repetition.
const TRIES: usize = 4;

/// What an item is made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Shape {
    Run { owner: u64, len: u64 },
    Group { parts: Box<[u32]>, times: u64 },
}

/// An item; equal items have one number.
#[derive(Debug)]
struct Symbol {
    shape: Shape,
    /// Positions it covers.
    len: u64,
}

/// A folded list of owners.
#[derive(Debug)]
pub(crate) struct OwnerTree {
    symbols: Vec<Symbol>,
    /// Start and symbol of every item, by owner; an item stands with each of its owners.
    items: HashMap<u64, Vec<(u64, u32)>>,
}

impl OwnerTree {
    /// Folds runs of (owner, positions); `None` when there is little to gain.
    pub(crate) fn new(runs: impl ExactSizeIterator<Item = (u64, u64)>) -> Option<Self> {
        let count = runs.len();
        let mut fold = Fold {
            symbols: Vec::new(),
            numbers: HashMap::new(),
            steps_left: STEPS_PER_RUN * count as u64,
        };
        let mut list: Vec<u32> = Vec::with_capacity(count);
        for (owner, len) in runs {
            list.push(fold.number(Shape::Run { owner, len })?);
        }
        for _ in 0..MAX_PASSES {
            let shorter = fold.pass(&list)?;
            if shorter.len() == list.len() {
                break;
            }
            list = shorter;
        }
        let parts = fold.symbols.iter().map(|s| match &s.shape {
            Shape::Run { .. } => 0,
            Shape::Group { parts, .. } => parts.len(),
        });
        let size = list.len() + parts.sum::<usize>();
        // A node takes a few times the memory of a list entry.
        if size >= count || (count > 64 && size * 2 > count) {
            return None;
        }
        Some(OwnerTree::index(fold.symbols, &list))
    }

    fn index(symbols: Vec<Symbol>, list: &[u32]) -> Self {
        let mut owners: Vec<Vec<u64>> = Vec::with_capacity(symbols.len());
        for symbol in &symbols {
            owners.push(match &symbol.shape {
                Shape::Run { owner, .. } => vec![*owner],
                Shape::Group { parts, .. } => {
                    // Parts come before their groups.
                    let inside = parts.iter().flat_map(|&p| &owners[p as usize]);
                    let mut inside: Vec<u64> = inside.copied().collect();
                    inside.sort_unstable();
                    inside.dedup();
                    inside
                }
            });
        }
        let mut items: HashMap<u64, Vec<(u64, u32)>> = HashMap::new();
        let mut start = 0;
        for &symbol in list {
            for &owner in &owners[symbol as usize] {
                items.entry(owner).or_default().push((start, symbol));
            }
            start += symbols[symbol as usize].len;
        }
        OwnerTree { symbols, items }
    }

    /// What `owner` has, where one position is `step` bytes.
    pub(crate) fn set(&self, owner: u64, step: u64) -> Result<FallsSet, LayoutError> {
        let Some(items) = self.items.get(&owner) else {
            return Ok(FallsSet::empty());
        };
        let mut known = HashMap::new();
        let mut parts = Vec::with_capacity(items.len());
        for &(start, symbol) in items {
            parts.push(
                self.symbol_set(symbol, owner, step, &mut known)?
                    .shift(start * step)?,
            );
        }
        Ok(simplified(FallsSet::concat(&parts)?))
    }

    fn symbol_set(
        &self,
        symbol: u32,
        owner: u64,
        step: u64,
        known: &mut HashMap<u32, FallsSet>,
    ) -> Result<FallsSet, LayoutError> {
        if let Some(set) = known.get(&symbol) {
            return Ok(set.clone());
        }
        let set = match &self.symbols[symbol as usize].shape {
            Shape::Run { owner: own, len } if *own == owner => FallsSet::segment(0, len * step)?,
            Shape::Run { .. } => FallsSet::empty(),
            Shape::Group { parts, times } => {
                let (mut sets, mut start) = (Vec::new(), 0);
                for &part in parts {
                    let set = self.symbol_set(part, owner, step, known)?;
                    if !set.is_empty() {
                        sets.push(set.shift(start * step)?);
                    }
                    start += self.symbols[part as usize].len;
                }
                FallsSet::concat(&sets)?.repeat(*times, start * step)?
            }
        };
        known.insert(symbol, set.clone());
        Ok(set)
    }
}

struct Fold {
    symbols: Vec<Symbol>,
    numbers: HashMap<Shape, u32>,
    steps_left: u64,
}

impl Fold {
    /// The number of a shape, a new one if it is new; `None` when numbers run out.
    fn number(&mut self, shape: Shape) -> Option<u32> {
        if let Some(&number) = self.numbers.get(&shape) {
            return Some(number);
        }
        let number = u32::try_from(self.symbols.len()).ok()?;
        let len = match &shape {
            Shape::Run { len, .. } => *len,
            Shape::Group { parts, times } => {
                let one: u64 = parts.iter().map(|&p| self.symbols[p as usize].len).sum();
                one * times
            }
        };
        self.numbers.insert(shape.clone(), number);
        self.symbols.push(Symbol { shape, len });
        Some(number)
    }

    /// One pass: at each place take the group whose repetition removes most items.
    fn pass(&mut self, list: &[u32]) -> Option<Vec<u32>> {
        let next = next_equal(list);
        let mut out = Vec::with_capacity(list.len());
        let mut i = 0;
        while i < list.len() {
            let (mut group, mut times, mut other) = (0, 1, i);
            for _ in 0..TRIES {
                other = next[other];
                if other == usize::MAX {
                    break;
                }
                let found = self.repeats(list, i, other - i);
                if (found - 1) * (other - i) > (times - 1) * group {
                    (group, times) = (other - i, found);
                }
            }
            if (times - 1) * group < 2 {
                out.push(list[i]);
                i += 1;
                continue;
            }
            let parts = list[i..i + group].into();
            let times_found = times as u64;
            out.push(self.number(Shape::Group {
                parts,
                times: times_found,
            })?);
            i += group * times;
        }
        Some(out)
    }

    /// How often the `group` items at `i` occur in a row.
    fn repeats(&mut self, list: &[u32], i: usize, group: usize) -> usize {
        let mut same = 0;
        while i + group + same < list.len()
            && list[i + same] == list[i + group + same]
            && self.steps_left > 0
        {
            same += 1;
            self.steps_left -= 1;
        }
        1 + same / group
    }
}

/// Where the item at each place occurs next; `usize::MAX` where it does not.
fn next_equal(list: &[u32]) -> Vec<usize> {
    let mut seen: HashMap<u32, usize> = HashMap::new();
    let mut next = vec![usize::MAX; list.len()];
    for i in (0..list.len()).rev() {
        next[i] = seen.insert(list[i], i).unwrap_or(usize::MAX);
    }
    next
}
