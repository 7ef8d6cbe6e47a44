//! Vector time: how far each process has come, as far as a process knows, and the little sets of it that pages keep.
//!
//! Interval `x` of process `q` is *covered* by a time whose entry of `q` is at least `x`. An interval happened before another
//! exactly if the other's time covers it.

use crate::codec::{Code, Reader};

/// The latest interval of each process that is known: one entry per process.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VectorTime(Vec<u32>);

impl VectorTime {
    /// Nothing has happened anywhere.
    pub fn zero(processes: usize) -> VectorTime {
        VectorTime(vec![0; processes])
    }

    /// How many processes there are.
    pub(crate) fn len(&self) -> u16 {
        self.0.len() as u16
    }

    /// The latest interval of a process.
    pub fn of(&self, process: u16) -> u32 {
        self.0[usize::from(process)]
    }

    /// Notes a later interval of a process.
    pub fn set(&mut self, process: u16, index: u32) {
        self.0[usize::from(process)] = index;
    }

    /// Whether everything that `other` knows is known here.
    pub fn covers(&self, other: &VectorTime) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .all(|(here, there)| here >= there)
    }

    /// Takes over what `other` knows.
    pub fn raise(&mut self, other: &VectorTime) {
        for (here, there) in self.0.iter_mut().zip(&other.0) {
            *here = (*here).max(*there);
        }
    }

    /// Keeps what both know.
    pub fn lower(&mut self, other: &VectorTime) {
        for (here, there) in self.0.iter_mut().zip(&other.0) {
            *here = (*here).min(*there);
        }
    }

    /// A number that grows with every step of time, so that ordering by it never contradicts what happened before what.
    pub fn weight(&self) -> u64 {
        self.0.iter().map(|index| u64::from(*index)).sum()
    }
}

impl Code for VectorTime {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Option<VectorTime> {
        Code::take(from).map(VectorTime)
    }
}

/// Intervals of few processes: those a copy of a page contains, or lacks.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Versions(Vec<(u16, u32)>);

impl Versions {
    /// The latest interval of a process, 0 if none.
    pub fn of(&self, process: u16) -> u32 {
        let found = self.0.iter().find(|(other, _)| *other == process);
        found.map_or(0, |(_, index)| *index)
    }

    /// Notes an interval of a process, if it is later than what is noted.
    pub fn raise(&mut self, process: u16, index: u32) {
        match self.0.iter_mut().find(|(other, _)| *other == process) {
            Some((_, known)) => *known = (*known).max(index),
            None if index > 0 => self.0.push((process, index)),
            None => {}
        }
    }

    /// Whether all of `other` is contained.
    pub fn covers(&self, other: &Versions) -> bool {
        other
            .0
            .iter()
            .all(|(process, index)| self.of(*process) >= *index)
    }

    /// Every process with its latest interval.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u32)> {
        self.0.iter().copied()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Code for Versions {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Option<Versions> {
        Code::take(from).map(Versions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_cover_what_happened_before_and_weigh_more() {
        let mut early = VectorTime::zero(3);
        early.set(1, 4);
        let mut late = early.clone();
        late.set(0, 1);
        assert!(late.covers(&early) && !early.covers(&late));
        assert!(late.weight() > early.weight());
        early.set(2, 9);
        assert!(!late.covers(&early));
        let mut both = late.clone();
        both.raise(&early);
        assert!(both.covers(&late) && both.covers(&early));
        both.lower(&late);
        assert_eq!(both, late);
    }

    #[test]
    fn versions_keep_the_latest() {
        let mut have = Versions::default();
        have.raise(3, 5);
        have.raise(3, 2);
        have.raise(1, 0);
        assert_eq!(have.iter().collect::<Vec<_>>(), [(3, 5)]);
        let mut need = have.clone();
        assert!(have.covers(&need));
        need.raise(1, 1);
        assert!(!have.covers(&need) && need.covers(&have));
    }
}
