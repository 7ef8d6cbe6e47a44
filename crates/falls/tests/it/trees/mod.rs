//! Random sets and elements for property tests, and the runner that makes them repeatable.
//!
//! Trees are grown from gaps and lengths, never from absolute offsets: every draw is well formed and
//! every step of shrinking is too. Depth to 4, small widths, leaves at uneven depths, as in the
//! evidence of the specification. The runner takes one fixed seed unless `PROPTEST_RNG_SEED` names
//! another, and `PROPTEST_CASES` cases when that is set; a failure prints the seed.
#![allow(dead_code)] // every test binary uses its own part

use std::fmt;

use falls::bytes_naive::{bytes_naive, element_bytes_naive};
use falls::{Falls, FallsSet, Periodic, Segment};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

const SEED: u64 = 0x0f41_1500;

/// Runs `test` on `cases` draws (or `PROPTEST_CASES`), always the same ones for one seed.
#[track_caller]
pub(crate) fn check<S: Strategy>(
    cases: u32,
    strategy: S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let mut config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => SEED,
    };
    config.rng_seed = RngSeed::Fixed(seed);
    match TestRunner::new(config).run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(why, value)) => {
            panic!("{why}\nsmallest case: {value:?}\nseen with PROPTEST_RNG_SEED={seed}")
        }
        Err(error) => panic!("{error} (PROPTEST_RNG_SEED={seed})"),
    }
}

/// A set that shows itself in the notation.
#[derive(Clone)]
pub(crate) struct Tree(pub FallsSet);

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An element that shows itself in the notation.
#[derive(Clone)]
pub(crate) struct Element(pub Periodic);

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = &self.0;
        write!(
            f,
            "displacement {} period {} {}",
            p.displacement(),
            p.period(),
            p.set()
        )
    }
}

#[derive(Clone, Debug)]
struct Sprout {
    gap: u64,
    len: u64,
    hole: u64,
    count: u64,
    inner: Vec<Sprout>,
}

fn grow(sprouts: &[Sprout]) -> FallsSet {
    let mut at = 0;
    let mut members = Vec::new();
    for s in sprouts {
        let inner = (!s.inner.is_empty()).then(|| grow(&s.inner));
        let len = inner.as_ref().map_or(s.len, |set| set.end() + s.len - 1);
        let (start, stride) = (at + s.gap, len + s.hole);
        let falls = match inner {
            None => Falls::family(start, len, stride, s.count),
            Some(set) => Falls::nested(start, len, stride, s.count, set),
        };
        let falls = falls.expect("gaps and lengths give well-formed trees");
        at = falls.end();
        members.push(falls);
    }
    FallsSet::new(members).expect("gaps and lengths give well-formed trees")
}

fn sprouts(depth: u32, fewest: usize, most: usize) -> BoxedStrategy<Vec<Sprout>> {
    let inner = if depth <= 1 {
        Just(Vec::new()).boxed()
    } else {
        prop_oneof![
            2 => Just(Vec::new()),
            3 => sprouts(depth - 1, 1, 2),
        ]
        .boxed()
    };
    let gap = prop_oneof![2 => Just(0u64), 3 => 1..4u64];
    let hole = prop_oneof![1 => Just(0u64), 3 => 1..5u64];
    let one =
        (gap, 1..4u64, hole, 1..4u64, inner).prop_map(|(gap, len, hole, count, inner)| Sprout {
            gap,
            len,
            hole,
            count,
            inner,
        });
    prop::collection::vec(one, fewest..=most).boxed()
}

/// A set of depth at most `depth`; the empty set among them.
pub(crate) fn tree_to(depth: u32) -> impl Strategy<Value = Tree> {
    sprouts(depth, 0, 3).prop_map(|s| Tree(grow(&s)))
}

/// A set of depth at most 4.
pub(crate) fn tree() -> impl Strategy<Value = Tree> {
    tree_to(4)
}

/// An element of depth at most `depth`, with any displacement and room at the end of its period.
pub(crate) fn element_to(depth: u32) -> impl Strategy<Value = Element> {
    let room = prop_oneof![2 => Just(0u64), 3 => 0..9u64];
    let displacement = prop_oneof![1 => Just(0u64), 2 => 0..60u64];
    (tree_to(depth), room, displacement).prop_map(|(set, room, displacement)| {
        let period = (set.0.end() + room).max(1);
        Element(Periodic::new(displacement, period, set.0).expect("the period holds the set"))
    })
}

/// An element of depth at most 4.
pub(crate) fn element() -> impl Strategy<Value = Element> {
    element_to(4)
}

/// How one dimension of an array is dealt out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deal {
    pub(crate) block: u64,
    pub(crate) processors: u64,
}

/// A block-cyclic distribution of a two-dimensional array of bytes, rows contiguous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    pub(crate) by_row: Deal,
    pub(crate) by_column: Deal,
}

impl Grid {
    /// The bytes of every processor, brute force.
    pub(crate) fn owners_naive(&self) -> Vec<Vec<u64>> {
        let Deal {
            processors: across, ..
        } = self.by_column;
        let mut owned = vec![Vec::new(); (self.by_row.processors * across) as usize];
        for row in 0..self.rows {
            for column in 0..self.columns {
                let p = row / self.by_row.block % self.by_row.processors;
                let q = column / self.by_column.block % across;
                owned[(p * across + q) as usize].push(row * self.columns + column);
            }
        }
        owned
    }

    /// Every processor's element: rows outside, columns inside, ragged edges as members.
    pub(crate) fn elements(&self) -> Vec<Periodic> {
        let period = self.rows * self.columns;
        let mut out = Vec::new();
        for p in 0..self.by_row.processors {
            for q in 0..self.by_column.processors {
                let inside =
                    self.by_column
                        .part(q, self.columns, &FallsSet::segment(0, 1).unwrap(), 1);
                let set = self.by_row.part(p, self.rows, &inside, self.columns);
                out.push(Periodic::new(0, period, set).unwrap());
            }
        }
        out
    }
}

impl Deal {
    /// The part of processor `p` on a dimension of `extent`: section 8.2 of the specification.
    fn part(&self, p: u64, extent: u64, unit: &FallsSet, size: u64) -> FallsSet {
        let cycle = self.block * self.processors;
        let start = p * self.block;
        if start >= extent {
            return FallsSet::empty();
        }
        let full = (extent - start) / cycle + u64::from((extent - start) % cycle >= self.block);
        let tail = start + full * cycle;
        let block = |len: u64| unit.repeat(len, size).unwrap();
        let mut parts = Vec::new();
        if full > 0 {
            let regular = block(self.block).repeat(full, cycle * size).unwrap();
            parts.push(regular.shift(start * size).unwrap());
        }
        if tail < extent {
            parts.push(block(extent - tail).shift(tail * size).unwrap());
        }
        FallsSet::concat(&parts).unwrap().simplify()
    }
}

/// Two block-cyclic distributions of one array: the pairs on which the printed algorithm loses
/// file order.
pub(crate) fn grid_pair() -> impl Strategy<Value = (Grid, Grid)> {
    let deal = || (1..4u64, 1..4u64).prop_map(|(block, processors)| Deal { block, processors });
    (1..10u64, 1..10u64, deal(), deal(), deal(), deal()).prop_map(|(rows, columns, a, b, c, d)| {
        let grid = |by_row, by_column| Grid {
            rows,
            columns,
            by_row,
            by_column,
        };
        (grid(a, b), grid(c, d))
    })
}

/// Sets that partition `0..period`: owners dealt to random stretches of a pattern that repeats.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) period: u64,
    pub(crate) sets: Vec<Tree>,
}

pub(crate) fn parts() -> impl Strategy<Value = Parts> {
    let stretch = (1..5u64, 0..4usize);
    (prop::collection::vec(stretch, 1..7), 1..5u64, 1..3u64).prop_map(
        |(stretches, times, twice)| {
            let one: u64 = stretches.iter().map(|s| s.0).sum();
            let labels = stretches.iter().map(|s| s.1).max().unwrap_or(0) + 1;
            let sets = (0..labels).map(|label| {
                let mut at = 0;
                let mut own = Vec::new();
                for &(len, owner) in &stretches {
                    if owner == label {
                        own.push(Segment::new(at, len).unwrap());
                    }
                    at += len;
                }
                let set = FallsSet::from_segments(&own).unwrap();
                Tree(
                    set.repeat(times, one)
                        .unwrap()
                        .repeat(twice, one * times)
                        .unwrap(),
                )
            });
            Parts {
                period: one * times * twice,
                sets: sets.collect(),
            }
        },
    )
}

impl Parts {
    pub(crate) fn sets(&self) -> Vec<FallsSet> {
        self.sets.iter().map(|t| t.0.clone()).collect()
    }

    pub(crate) fn elements(&self, displacement: u64) -> Vec<Periodic> {
        let element = |t: &Tree| Periodic::new(displacement, self.period, t.0.clone()).unwrap();
        self.sets.iter().map(element).collect()
    }
}

/// Bytes as maximal half-open runs.
pub(crate) fn runs_naive(bytes: &[u64]) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for &x in bytes {
        match out.last_mut() {
            Some(run) if run.1 == x => run.1 = x + 1,
            _ => out.push((x, x + 1)),
        }
    }
    out
}

/// The segments of a set as half-open runs.
pub(crate) fn runs_of(segments: impl Iterator<Item = Segment>) -> Vec<(u64, u64)> {
    segments.map(|s| (s.start(), s.end())).collect()
}

/// Bytes in both ascending lists.
pub(crate) fn both_naive(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter()
        .copied()
        .filter(|x| b.binary_search(x).is_ok())
        .collect()
}

/// Every rule of being well formed, checked from outside: rebuilding the tree by the validating
/// constructors gives the same tree.
pub(crate) fn well_formed(set: &FallsSet) -> Result<(), TestCaseError> {
    prop_assert_eq!(&rebuilt(set)?, set);
    let bytes = bytes_naive(set);
    prop_assert!(bytes.windows(2).all(|w| w[0] < w[1]), "order of {}", set);
    prop_assert_eq!(bytes.len() as u64, set.size(), "size of {}", set);
    Ok(())
}

fn rebuilt(set: &FallsSet) -> Result<FallsSet, TestCaseError> {
    let refused = |e: falls::FallsError| TestCaseError::fail(format!("{e} in {set}"));
    let mut members = Vec::new();
    for n in set.nodes() {
        let falls = match n.inner {
            None => Falls::family(n.start, n.len, n.stride, n.count),
            Some(inner) => Falls::nested(n.start, n.len, n.stride, n.count, rebuilt(inner)?),
        };
        members.push(falls.map_err(refused)?);
    }
    FallsSet::new(members).map_err(refused)
}

/// What a meeting must say inside `0..limit`: file byte, position on the left, on the right.
pub(crate) fn meeting_naive(left: &Periodic, right: &Periodic, limit: u64) -> Vec<(u64, u64, u64)> {
    let (a, b) = (
        element_bytes_naive(left, limit),
        element_bytes_naive(right, limit),
    );
    let mut out = Vec::new();
    let mut j = 0;
    for (i, &x) in a.iter().enumerate() {
        while j < b.len() && b[j] < x {
            j += 1;
        }
        if j < b.len() && b[j] == x {
            out.push((x, i as u64, j as u64));
        }
    }
    out
}
