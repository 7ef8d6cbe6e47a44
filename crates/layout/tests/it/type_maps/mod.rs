//! The oracle of the datatype tests: type maps written out byte by byte from the constructor calls,
//! and one check of everything a datatype says about itself against them.
#![allow(dead_code)] // every test binary uses its own part

use layout::mpi::{Constructor, Datatype, Distribute};
use layout::sequence::Overlap;
use layout::{LayoutError, LayoutErrorKind, Order};

/// A predefined type.
pub(crate) fn basic(size: i64) -> Datatype {
    Datatype::basic(size).unwrap()
}

/// A type map written out: every basic item with its displacement, and the explicit bounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Map {
    items: Vec<(i64, i64)>,
    lower: Vec<i64>,
    upper: Vec<i64>,
}

impl Map {
    fn lb(&self) -> i64 {
        let natural = self.items.iter().map(|i| i.0).min();
        self.lower.iter().copied().min().or(natural).unwrap_or(0)
    }

    fn ub(&self) -> i64 {
        let natural = self.items.iter().map(|i| i.0 + i.1).max();
        self.upper.iter().copied().max().or(natural).unwrap_or(0)
    }

    fn extent(&self) -> i64 {
        self.ub() - self.lb()
    }

    pub(crate) fn bytes(&self) -> Vec<i64> {
        self.items.iter().flat_map(|&(d, n)| d..d + n).collect()
    }

    /// Appends a copy of `old` at `at`.
    fn place(&mut self, old: &Map, at: i64) {
        self.items
            .extend(old.items.iter().map(|&(d, n)| (d + at, n)));
        self.lower.extend(old.lower.iter().map(|x| x + at));
        self.upper.extend(old.upper.iter().map(|x| x + at));
    }
}

/// Writes out the type map that the constructors describe.
pub(crate) fn map_naive(t: &Datatype) -> Map {
    let mut map = Map::default();
    let olds: Vec<Map> = t.constructor().olds().iter().map(map_naive).collect();
    let old = olds.first().cloned().unwrap_or_default();
    let ex = old.extent();
    match t.constructor() {
        Constructor::Basic { size } => map.items.push((0, *size)),
        Constructor::Contiguous { count, .. } => (0..*count).for_each(|i| map.place(&old, i * ex)),
        Constructor::Vector {
            count,
            blocklen,
            stride,
            ..
        } => {
            for i in 0..*count {
                (0..*blocklen).for_each(|j| map.place(&old, (i * stride + j) * ex));
            }
        }
        Constructor::Hvector {
            count,
            blocklen,
            stride,
            ..
        } => {
            for i in 0..*count {
                (0..*blocklen).for_each(|j| map.place(&old, i * stride + j * ex));
            }
        }
        Constructor::Indexed {
            blocklens, displs, ..
        } => {
            for (b, d) in blocklens.iter().zip(displs.iter()) {
                (0..*b).for_each(|j| map.place(&old, (d + j) * ex));
            }
        }
        Constructor::Hindexed {
            blocklens, displs, ..
        } => {
            for (b, d) in blocklens.iter().zip(displs.iter()) {
                (0..*b).for_each(|j| map.place(&old, d + j * ex));
            }
        }
        Constructor::IndexedBlock {
            blocklen, displs, ..
        } => {
            for d in displs.iter() {
                (0..*blocklen).for_each(|j| map.place(&old, (d + j) * ex));
            }
        }
        Constructor::HindexedBlock {
            blocklen, displs, ..
        } => {
            for d in displs.iter() {
                (0..*blocklen).for_each(|j| map.place(&old, d + j * ex));
            }
        }
        Constructor::Struct {
            blocklens, displs, ..
        } => {
            for ((b, d), old) in blocklens.iter().zip(displs.iter()).zip(&olds) {
                (0..*b).for_each(|j| map.place(old, d + j * old.extent()));
            }
        }
        Constructor::Subarray {
            sizes,
            subsizes,
            starts,
            order,
            ..
        } => {
            let inside = |index: &[i64]| {
                (0..index.len()).all(|d| (starts[d]..starts[d] + subsizes[d]).contains(&index[d]))
            };
            place_array(&mut map, &old, sizes, *order, &inside);
        }
        Constructor::Darray {
            size,
            rank,
            gsizes,
            distribs,
            psizes,
            order,
            ..
        } => {
            let (mut grid, mut rest) = (*size, *rank);
            let coords: Vec<i64> = psizes
                .iter()
                .map(|p| {
                    grid /= p;
                    let c = rest / grid;
                    rest %= grid;
                    c
                })
                .collect();
            let inside = |index: &[i64]| {
                (0..index.len())
                    .all(|d| owner(index[d], gsizes[d], distribs[d], psizes[d]) == coords[d])
            };
            place_array(&mut map, &old, gsizes, *order, &inside);
        }
        Constructor::Resized { lb, extent, .. } => {
            map.items = old.items;
            map.lower = vec![*lb];
            map.upper = vec![lb + extent];
        }
        Constructor::Dup { .. } => map = old,
    }
    map
}

/// The coordinate that owns index `i` of a dimension.
fn owner(i: i64, gsize: i64, distribute: Distribute, psize: i64) -> i64 {
    match distribute {
        Distribute::None => 0,
        Distribute::Block(darg) => i / darg.unwrap_or((gsize + psize - 1) / psize),
        Distribute::Cyclic(darg) => i / darg.unwrap_or(1) % psize,
    }
}

fn place_array(
    map: &mut Map,
    old: &Map,
    sizes: &[i64],
    order: Order,
    inside: &dyn Fn(&[i64]) -> bool,
) {
    let total: i64 = sizes.iter().product();
    for element in 0..total {
        let (mut index, mut rest) = (vec![0; sizes.len()], element);
        for step in 0..sizes.len() {
            let d = if order == Order::C {
                sizes.len() - 1 - step
            } else {
                step
            };
            index[d] = rest % sizes[d];
            rest /= sizes[d];
        }
        if inside(&index) {
            map.place(old, element * old.extent());
        }
    }
    map.lower = vec![0];
    map.upper = vec![total * old.extent()];
}

/// Every fact about a type against its written-out map.
pub(crate) fn check(t: &Datatype) {
    let map = map_naive(t);
    let bytes = map.bytes();
    let name = t.constructor().name();
    assert_eq!(t.size(), bytes.len() as u64, "{name} {t:?}");
    assert_eq!(
        (t.lb(), t.ub(), t.extent()),
        (map.lb(), map.ub(), map.extent()),
        "{name} {t:?}"
    );
    let low = bytes.iter().min().copied().unwrap_or(0);
    let reach = bytes.iter().max().map_or(0, |h| h + 1 - low);
    assert_eq!((t.true_lb(), t.true_extent()), (low, reach), "{name} {t:?}");
    assert_eq!(t.has_explicit_bounds(), !map.lower.is_empty());
    let sequence: Vec<i64> = t
        .to_sequence()
        .runs()
        .flat_map(|r| r.start..r.end())
        .collect();
    assert_eq!(sequence, bytes, "{name} {t:?}");
    let ascends = bytes.windows(2).all(|w| w[0] < w[1]);
    assert_eq!(t.is_monotone(), ascends, "{t:?}");
    let mut sorted = bytes.clone();
    sorted.sort_unstable();
    let twice = sorted.windows(2).any(|w| w[0] == w[1]);
    assert_eq!(t.overlap() == Overlap::Certain, twice, "{t:?}");
    assert_eq!(t.overlap() == Overlap::Never, !twice, "{t:?}");
    let dense = ascends && bytes.iter().copied().eq(map.lb()..map.ub());
    assert_eq!(t.has_holes(), !dense, "{t:?}");
    match t.to_set() {
        Ok((base, set)) => {
            assert!(ascends);
            let found: Vec<i64> = (0..set.size())
                .map(|k| base + set.select(k).unwrap() as i64)
                .collect();
            assert_eq!(found, bytes, "{t:?}");
            let back = Datatype::from_set(base, &set).unwrap();
            assert!(back.to_sequence().same_order(&t.to_sequence()), "{t:?}");
        }
        Err(e) => {
            assert!(!ascends);
            assert_eq!(e.kind(), &LayoutErrorKind::NotMonotone);
        }
    }
}

/// A legal darray from (extent, processes, choice of distribution) per dimension.
pub(crate) fn darray_of(
    dims: &[(i64, i64, u32)],
    rank: i64,
    order: Order,
    old: &Datatype,
) -> Result<Datatype, LayoutError> {
    let gsizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
    let distribs: Vec<Distribute> = dims
        .iter()
        .map(|&(g, p, choice)| match choice {
            0 | 1 => Distribute::None,
            2 | 3 => Distribute::Block(None),
            4 => Distribute::Block(Some((g + p - 1) / p + 1)),
            5 | 6 => Distribute::Cyclic(None),
            n => Distribute::Cyclic(Some(i64::from(n) - 5)),
        })
        .collect();
    let psizes: Vec<i64> = dims.iter().map(|d| if d.2 < 2 { 1 } else { d.1 }).collect();
    let size = psizes.iter().product();
    Datatype::darray(size, rank % size, &gsizes, &distribs, &psizes, order, old)
}
