//! Owns [`Subject`]: an array with a layout on it, as commands draw, explain and move it.
//!
//! The elements are a partition or views. Views may have holes and overlap; for a picture both
//! answer the same question, who owns these bytes.

use falls::{Budget, FallsSet, Overlay, Periodic};
use layout::{ArrayType, FileOffset, Partition, View};

/// Who owns the bytes of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody.
    Nobody,
    /// One element owns them all.
    One(usize),
    /// Several elements, or one that owns a part; the first of them.
    Several(usize),
}

/// What lies on the array.
#[derive(Clone, Debug)]
pub(crate) enum Elements {
    Partition(Partition),
    Views(Vec<View>),
}

/// An array and the layout on it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The layout in its notation.
    pub(crate) text: String,
    pub(crate) array: ArrayType,
    /// Whether the array stands for a plain file of so many bytes.
    pub(crate) is_file: bool,
    pub(crate) elements: Elements,
}

/// Steps to look for owners in before all elements are tried one by one.
const BUDGET: Budget = Budget(1 << 22);

impl Subject {
    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        match &self.elements {
            Elements::Partition(partition) => partition.len(),
            Elements::Views(views) => views.len(),
        }
    }

    /// Bytes of the array: the part of the file that is looked at.
    pub(crate) fn bytes(&self) -> u64 {
        self.array.bytes()
    }

    /// Bytes from one repetition of the layout to the next.
    pub(crate) fn period(&self) -> u64 {
        match &self.elements {
            Elements::Partition(partition) => partition.pattern().period(),
            Elements::Views(views) => views.first().map_or(0, |view| view.bytes().period()),
        }
    }

    /// One element as it repeats through the file.
    pub(crate) fn element(&self, number: usize) -> Periodic {
        match &self.elements {
            Elements::Partition(partition) => partition.subfile(number),
            Elements::Views(views) => views[number].bytes().clone(),
        }
    }

    /// The bytes of the array that an element owns.
    pub(crate) fn share(&self, number: usize) -> FallsSet {
        self.element(number).window(0..self.bytes()).simplify()
    }

    /// Who owns the bytes of a set inside the array.
    pub(crate) fn owner(&self, set: &FallsSet) -> Owner {
        let Some(hull) = set.hull() else {
            return Owner::Nobody;
        };
        let found = match &self.elements {
            Elements::Partition(partition) if set.size() == hull.end - hull.start => {
                partition.elements_meeting(FileOffset(hull.start)..FileOffset(hull.end))
            }
            Elements::Partition(partition) => owners_of(set, partition),
            Elements::Views(_) => self.owners_by_trial(set),
        };
        match found[..] {
            [] => Owner::Nobody,
            [one] if self.owns_all(one, set) => Owner::One(one),
            [first, ..] => Owner::Several(first),
        }
    }

    fn owns_all(&self, number: usize, set: &FallsSet) -> bool {
        match &self.elements {
            // Nobody else has any of them, and every byte has an owner.
            Elements::Partition(partition) if partition.displacement().0 == 0 => true,
            _ => self.share(number).intersect(set).size() == set.size(),
        }
    }

    fn owners_by_trial(&self, set: &FallsSet) -> Vec<usize> {
        (0..self.len())
            .filter(|&e| !self.share(e).intersect(set).is_empty())
            .collect()
    }
}

/// Elements of a partition that own a byte of the set.
fn owners_of(set: &FallsSet, partition: &Partition) -> Vec<usize> {
    let end = set.end();
    let found = Overlay::new(std::slice::from_ref(set))
        .ok()
        .and_then(|alone| {
            let owners = partition.pattern().owners();
            let placed = (partition.displacement().0, partition.pattern().period());
            alone.pairs((0, end), owners, placed, 0..end, BUDGET)
        });
    match found {
        Some(pairs) => pairs.into_iter().map(|(_, element)| element).collect(),
        None => (0..partition.len())
            .filter(|&e| {
                !partition
                    .subfile(e)
                    .window(0..end)
                    .intersect(set)
                    .is_empty()
            })
            .collect(),
    }
}
