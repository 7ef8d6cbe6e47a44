//! [`Emulation`]: which virtual processors each member of a team emulates.
//!
//! A distribution is text of the layout language, applied to the shape: `(block, *)`, `(cyclic)`, `(block, cyclic(4)) onto 2x2`.
//! A member has its VPs in ascending order, and its parallel variables have one element for each of them in that order.
//!
//! Invariants
//! - Every VP has exactly one member.
//! - Nothing is listed: VPs of a member are a set of the algebra, whatever their number.

use client::{Error, Result, Team, View};
use falls::FallsSet;
use layout::{FileOffset, Layout};

use crate::shape::Shape;

/// The VPs of a member, and how they are found. Clones are cheap.
///
/// ```
/// use streams::{Emulation, Shape};
/// let shape = Shape::new(&[10])?;
/// let second = Emulation::of_rank(&shape, "(cyclic)", 1, 3)?;
/// assert_eq!((second.count(), second.vp(0), second.vp(2)), (3, 1, 7));
/// assert_eq!(second.local(7), Some(2));
/// assert_eq!(second.local(8), None);
/// # Ok::<(), client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Emulation {
    shape: Shape,
    /// As it was given; what is recorded in files.
    distribution: String,
    layout: Layout,
    rank: u64,
    size: u64,
    vps: FallsSet,
    count: usize,
}

impl Emulation {
    /// The VPs of a member of a team.
    pub fn new(shape: &Shape, distribution: &str, team: &Team) -> Result<Emulation> {
        Emulation::of_rank(shape, distribution, team.rank(), team.size())
    }

    /// A block of VPs for every member, as even as can be along the first dimension.
    pub fn block(shape: &Shape, team: &Team) -> Result<Emulation> {
        Emulation::new(shape, &block_text(shape), team)
    }

    /// The VPs of one rank of so many.
    pub fn of_rank(
        shape: &Shape,
        distribution: &str,
        rank: usize,
        size: usize,
    ) -> Result<Emulation> {
        let text = match distribution.contains("onto") || distribution.contains(" over ") {
            true => distribution.to_owned(),
            false => format!("{distribution} onto {}", grid(distribution, size)),
        };
        let layout: Layout = text.parse()?;
        let applied = layout.on_array(&shape.array(1)?)?;
        if applied.count() != size as u64 || applied.period() != shape.count() {
            return Err(Error::Argument {
                name: "distribution",
                text: format!(
                    "`{text}` deals {} VPs to {}, but the shape {shape} has {} and the team {size} members",
                    applied.period(),
                    applied.count(),
                    shape.count()
                ),
            });
        }
        let vps = applied.element(rank as u64)?;
        let count = usize::try_from(vps.size()).unwrap_or(usize::MAX);
        Ok(Emulation {
            shape: shape.clone(),
            distribution: distribution.to_owned(),
            layout,
            rank: rank as u64,
            size: size as u64,
            vps,
            count,
        })
    }

    /// All VPs there are.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How VPs are dealt to members.
    pub fn distribution(&self) -> &str {
        &self.distribution
    }

    /// VPs of this member.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The most VPs that a member has if they are dealt evenly; the same at all members.
    pub(crate) fn share(&self) -> u64 {
        self.shape.count().div_ceil(self.size).max(1)
    }

    /// The number of the VP at a place among those of this member.
    pub fn vp(&self, local: usize) -> u64 {
        self.vps.select(local as u64).unwrap_or(u64::MAX)
    }

    /// The place of a VP among those of this member, if it is one of them.
    pub fn local(&self, vp: u64) -> Option<usize> {
        let local = self.vps.rank(vp);
        (self.vps.select(local) == Some(vp)).then_some(local as usize)
    }

    /// VPs of this member below a number.
    pub(crate) fn below(&self, vp: u64) -> usize {
        self.vps.rank(vp) as usize
    }

    /// Places and numbers of its VPs that follow each other, from a place on: the first number, and how many.
    pub(crate) fn run(&self, local: usize) -> (u64, usize) {
        let first = self.vp(local);
        // Numbers ascend, so the last place that still is `first + distance` is found by doubling, then by halving.
        let (mut some, mut many) = (local, self.count - 1);
        let mut distance = 1;
        while some < many {
            let next = (local + distance).min(self.count - 1);
            if self.vp(next) - first != (next - local) as u64 {
                many = next - 1;
                break;
            }
            (some, distance) = (next, distance * 2);
        }
        while some < many {
            let middle = some + (many - some).div_ceil(2);
            match self.vp(middle) - first == (middle - local) as u64 {
                true => some = middle,
                false => many = middle - 1,
            }
        }
        (first, some - local + 1)
    }

    /// The bytes of this member's VPs in a file that has a block of each VP, again and again, from `base` on.
    pub(crate) fn view(&self, base: u64, block_bytes: u64) -> Result<View> {
        let array = self.shape.array(block_bytes)?;
        let set = self.layout.on_array(&array)?.element(self.rank)?;
        Ok(View::new(FileOffset(base), array.bytes(), set)?)
    }
}

/// `(block, *, *)`, with as many dimensions as the shape.
fn block_text(shape: &Shape) -> String {
    let rest = ", *".repeat(shape.extents().len() - 1);
    format!("(block{rest})")
}

/// The grid that members form if the distribution names none: all of them along the first dimension that is cut.
fn grid(distribution: &str, size: usize) -> String {
    let cut = distribution
        .split(',')
        .filter(|dimension| !dimension.contains('*'))
        .count();
    let ones = "x1".repeat(cut.saturating_sub(1));
    format!("{size}{ones}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vp_has_one_member() {
        for (extents, distribution) in [
            (&[10][..], "(block)"),
            (&[10], "(cyclic)"),
            (&[11], "(cyclic(3))"),
            (&[5, 7], "(block, *)"),
            (&[5, 7], "(*, cyclic)"),
            (&[5, 7], "(block, cyclic)"),
            (&[2, 3, 4], "(block, *, cyclic(2))"),
        ] {
            let shape = Shape::new(extents).unwrap();
            for size in 1..=4 {
                let mut seen = vec![0; shape.count() as usize];
                for rank in 0..size {
                    let own = Emulation::of_rank(&shape, distribution, rank, size).unwrap();
                    let mut local = 0;
                    while local < own.count() {
                        let (first, count) = own.run(local);
                        for at in 0..count {
                            let vp = first + at as u64;
                            assert_eq!((own.vp(local + at), own.local(vp)), (vp, Some(local + at)));
                            seen[vp as usize] += 1;
                        }
                        local += count;
                        assert!(local == own.count() || own.vp(local) != first + count as u64);
                    }
                }
                assert!(seen.iter().all(|n| *n == 1), "{distribution} of {size}");
            }
        }
    }

    #[test]
    fn a_distribution_for_another_team_is_refused() {
        let shape = Shape::new(&[8]).unwrap();
        let error = Emulation::of_rank(&shape, "(block) onto 4", 0, 3).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("distribution: ") && text.contains("3 members"),
            "{text}"
        );
    }
}
