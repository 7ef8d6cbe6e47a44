//! Owns [`Subject`]: an array with a layout on it, as commands draw, explain and move it.
//!
//! The elements are a partition or views. Views may have holes and overlap; for a picture both
//! answer the same question, who owns these bytes.

use std::cell::OnceCell;

use falls::{Budget, FallsSet, Overlay, Periodic};
use layout::{ArrayType, FileOffset, Order, Partition, View};

/// Who owns the bytes of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody.
    Nobody,
    /// One element owns them all.
    One(usize),
    /// Several elements, or one that owns a part; the first of them.
    Several(usize),
}

/// What lies on the array.
#[derive(Clone, Debug)]
pub enum Elements {
    /// All bytes, each in one of them.
    Partition(Partition),
    /// What may have holes and overlap.
    Views(Vec<View>),
}

/// An array and the layout on it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The layout in its notation.
    pub text: String,
    /// What it lies on.
    pub array: ArrayType,
    /// Whether the array stands for a plain file of so many bytes.
    pub is_file: bool,
    /// What the layout makes of it.
    pub elements: Elements,
    /// The number of the only element, if one of the layout was picked.
    pub picked: Option<usize>,
    /// Number of elements that the layout has, picked or not.
    pub total: u64,
    /// What elements own of the array, each computed when asked for.
    pub shares: Vec<OnceCell<FallsSet>>,
    /// Owners of the bytes if views do not overlap.
    pub view_owners: OnceCell<Option<Overlay>>,
}

/// Steps to look for owners in before all elements are tried one by one.
const BUDGET: Budget = Budget(1 << 22);

/// Most characters of a layout in titles and errors.
pub const TITLE: usize = 120;

impl Subject {
    /// An array with all elements of a layout on it.
    pub fn new(text: String, array: &ArrayType, elements: Elements) -> Subject {
        let count = match &elements {
            Elements::Partition(partition) => partition.len(),
            Elements::Views(views) => views.len(),
        };
        Subject {
            text,
            array: array.clone(),
            is_file: false,
            elements,
            picked: None,
            total: count as u64,
            shares: vec![OnceCell::new(); count],
            view_owners: OnceCell::new(),
        }
    }

    /// The layout in its notation, cut in the middle if it is long.
    pub fn title(&self) -> String {
        cut_in_the_middle(&self.text, TITLE)
    }

    /// Number of elements that are there: one if it was picked.
    pub fn count(&self) -> usize {
        match &self.elements {
            Elements::Partition(partition) => partition.len(),
            Elements::Views(views) => views.len(),
        }
    }

    /// Bytes of the array: the part of the file that is looked at.
    pub fn bytes(&self) -> u64 {
        self.array.bytes()
    }

    /// Bytes from one repetition of the layout to the next.
    pub fn period(&self) -> u64 {
        match &self.elements {
            Elements::Partition(partition) => partition.pattern().period(),
            Elements::Views(views) => views.first().map_or(0, |view| view.bytes().period()),
        }
    }

    /// The number of an element in the layout, by its position here.
    pub fn number(&self, position: usize) -> usize {
        self.picked.unwrap_or(position)
    }

    /// The largest number of an element.
    pub fn last_number(&self) -> usize {
        self.number(self.count().saturating_sub(1))
    }

    /// Indices of the first and the last entry of a picked element.
    pub fn marks(&self) -> Vec<Vec<u64>> {
        let hull = self.picked.and_then(|_| self.share(0).hull());
        let indices = |byte: u64| {
            let mut rest = byte / self.array.element().size().max(1);
            let mut index = |&extent: &u64| {
                let index = rest % extent.max(1);
                rest /= extent.max(1);
                index
            };
            let extents = self.array.extents();
            match self.array.order() {
                Order::Fortran => extents.iter().map(&mut index).collect(),
                Order::C => {
                    let mut indices: Vec<u64> = extents.iter().rev().map(index).collect();
                    indices.reverse();
                    indices
                }
            }
        };
        hull.map_or(Vec::new(), |hull| {
            vec![indices(hull.start), indices(hull.end - 1)]
        })
    }

    /// One element as it repeats through the file.
    pub fn element(&self, position: usize) -> Periodic {
        match &self.elements {
            Elements::Partition(partition) => partition.subfile(position),
            Elements::Views(views) => views[position].bytes().clone(),
        }
    }

    /// The bytes of the array that an element owns.
    pub fn share(&self, position: usize) -> &FallsSet {
        let window = || self.element(position).window(0..self.bytes()).simplify();
        self.shares[position].get_or_init(window)
    }

    /// Who owns the bytes of a set inside the array, by the numbers of the layout.
    pub fn owner(&self, set: &FallsSet) -> Owner {
        let Some(hull) = set.hull() else {
            return Owner::Nobody;
        };
        let found = match &self.elements {
            Elements::Partition(partition) if set.size() == hull.end - hull.start => {
                partition.elements_meeting(FileOffset(hull.start)..FileOffset(hull.end))
            }
            Elements::Partition(partition) => self.owners_in(
                partition.pattern().owners(),
                partition.displacement().0,
                set,
            ),
            Elements::Views(_) => match self.view_owners() {
                Some(owners) => self.owners_in(owners, 0, set),
                None => self.owners_by_trial(set),
            },
        };
        match found[..] {
            [] => Owner::Nobody,
            [one] if self.owns_all(one, set) => Owner::One(self.number(one)),
            [first, ..] => Owner::Several(self.number(first)),
        }
    }

    fn owns_all(&self, position: usize, set: &FallsSet) -> bool {
        match &self.elements {
            // Nobody else has any of them, and every byte has an owner.
            Elements::Partition(partition) if partition.displacement().0 == 0 => true,
            _ => self.share(position).intersect(set).size() == set.size(),
        }
    }

    fn owners_by_trial(&self, set: &FallsSet) -> Vec<usize> {
        (0..self.count())
            .filter(|&e| {
                let share = self.share(e);
                share.start() < set.end()
                    && set.start() < share.end()
                    && !share.intersect(set).is_empty()
            })
            .collect()
    }

    /// Owners of the bytes of one period if the views do not overlap.
    fn view_owners(&self) -> Option<&Overlay> {
        let found = self.view_owners.get_or_init(|| {
            let sets: Vec<FallsSet> = (0..self.count())
                .map(|e| self.element(e).set().clone())
                .collect();
            Overlay::new(&sets).ok()
        });
        found.as_ref()
    }

    /// Elements that own a byte of the set, from the owners of one period.
    fn owners_in(&self, owners: &Overlay, displacement: u64, set: &FallsSet) -> Vec<usize> {
        let end = set.end();
        let found = Overlay::new(std::slice::from_ref(set))
            .ok()
            .and_then(|alone| {
                let placed = (displacement, self.period());
                alone.pairs((0, end), owners, placed, 0..end, BUDGET)
            });
        match found {
            Some(pairs) => pairs.into_iter().map(|(_, element)| element).collect(),
            None => self.owners_by_trial(set),
        }
    }
}

/// A text cut to `width` characters, an ellipsis in its middle if something was lost.
pub fn cut_in_the_middle(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(3);
    let head: String = text.chars().take(kept - kept / 2).collect();
    let tail: String = text.chars().skip(count - kept / 2).collect();
    format!("{head} … {tail}")
}
