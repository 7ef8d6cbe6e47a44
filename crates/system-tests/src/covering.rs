//! Covering arrays: few cases in which every two values of two factors occur together.
//!
//! Greedy: each row begins with a pair that no row has yet, and takes for every other factor the value
//! that adds most new pairs; of several such rows the best is kept. Some pairs may be excluded; a
//! row never holds one of them. The result depends on nothing but the arguments.

use crate::seed::Random;

/// Values of factors, by index.
pub type Row = Vec<usize>;

/// Rows tried for each that is kept.
const TRIES: usize = 4;

/// Which pairs are there already.
struct Pairs {
    sizes: Vec<usize>,
    /// First bit of the pairs of two factors, by both.
    starts: Vec<Vec<usize>>,
    open: Vec<bool>,
    left: usize,
}

impl Pairs {
    fn new(sizes: &[usize], may: &dyn Fn((usize, usize), (usize, usize)) -> bool) -> Pairs {
        let mut starts = vec![vec![0; sizes.len()]; sizes.len()];
        let mut open = Vec::new();
        for a in 0..sizes.len() {
            for b in a + 1..sizes.len() {
                starts[a][b] = open.len();
                for va in 0..sizes[a] {
                    open.extend((0..sizes[b]).map(|vb| may((a, va), (b, vb))));
                }
            }
        }
        Pairs {
            sizes: sizes.to_vec(),
            starts,
            left: open.iter().filter(|o| **o).count(),
            open,
        }
    }

    fn index(&self, (a, va): (usize, usize), (b, vb): (usize, usize)) -> usize {
        match a < b {
            true => self.starts[a][b] + va * self.sizes[b] + vb,
            false => self.starts[b][a] + vb * self.sizes[a] + va,
        }
    }

    /// Whether the pair is still missing.
    fn is_open(&self, one: (usize, usize), other: (usize, usize)) -> bool {
        self.open[self.index(one, other)]
    }

    fn missing_at(&self, index: usize) -> ((usize, usize), (usize, usize)) {
        for a in 0..self.sizes.len() {
            for b in a + 1..self.sizes.len() {
                let first = self.starts[a][b];
                if (first..first + self.sizes[a] * self.sizes[b]).contains(&index) {
                    let at = index - first;
                    return ((a, at / self.sizes[b]), (b, at % self.sizes[b]));
                }
            }
        }
        unreachable!("an index of a pair")
    }

    fn take(&mut self, row: &Row) {
        for a in 0..row.len() {
            for b in a + 1..row.len() {
                let index = self.index((a, row[a]), (b, row[b]));
                if std::mem::take(&mut self.open[index]) {
                    self.left -= 1;
                }
            }
        }
    }
}

/// Rows in which every pair of values occurs that `may` allows. `sizes` are the numbers of values.
///
/// Exclusions have to leave a value for every factor whatever the others are; a row that cannot be
/// completed is a mistake of the caller.
pub fn covering(
    sizes: &[usize],
    may: impl Fn((usize, usize), (usize, usize)) -> bool,
    seed: u64,
) -> Vec<Row> {
    assert!(sizes.len() >= 2 && sizes.iter().all(|n| *n > 0));
    let mut random = Random::new(seed);
    let mut pairs = Pairs::new(sizes, &may);
    let mut rows = Vec::new();
    while pairs.left > 0 {
        let mut best: Option<(usize, Row)> = None;
        for _ in 0..TRIES {
            let Some((gain, row)) = one(&pairs, &may, &mut random) else {
                continue;
            };
            if best.as_ref().is_none_or(|(most, _)| gain > *most) {
                best = Some((gain, row));
            }
        }
        let (_, row) = best.expect("exclusions leave a value for every factor");
        pairs.take(&row);
        rows.push(row);
    }
    rows
}

/// One row that begins with a missing pair, and how many missing pairs it has.
fn one(
    pairs: &Pairs,
    may: &dyn Fn((usize, usize), (usize, usize)) -> bool,
    random: &mut Random,
) -> Option<(usize, Row)> {
    // The first missing pair behind any place: good enough, and found fast.
    let from = random.index(pairs.open.len());
    let (behind, before) = (&pairs.open[from..], &pairs.open[..from]);
    let first = behind.iter().position(|o| *o).map(|at| from + at);
    let first = first.or_else(|| before.iter().position(|o| *o))?;
    let (one, other) = pairs.missing_at(first);
    let mut chosen = vec![one, other];
    let mut gain = 1;
    let mut rest: Vec<usize> = (0..pairs.sizes.len())
        .filter(|f| *f != one.0 && *f != other.0)
        .collect();
    random.shuffle(&mut rest);
    for factor in rest {
        let start = random.index(pairs.sizes[factor]);
        let mut best: Option<(usize, usize)> = None;
        for step in 0..pairs.sizes[factor] {
            let value = (start + step) % pairs.sizes[factor];
            if !chosen.iter().all(|c| may_both(may, *c, (factor, value))) {
                continue;
            }
            let new = chosen
                .iter()
                .filter(|c| pairs.is_open(**c, (factor, value)))
                .count();
            if best.is_none_or(|(most, _)| new > most) {
                best = Some((new, value));
            }
        }
        let (new, value) = best?;
        gain += new;
        chosen.push((factor, value));
    }
    chosen.sort_unstable();
    Some((gain, chosen.into_iter().map(|(_, value)| value).collect()))
}

fn may_both(
    may: &dyn Fn((usize, usize), (usize, usize)) -> bool,
    one: (usize, usize),
    other: (usize, usize),
) -> bool {
    match one.0 < other.0 {
        true => may(one, other),
        false => may(other, one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// All pairs of all rows, by brute force.
    fn pairs_of(rows: &[Row]) -> HashSet<((usize, usize), (usize, usize))> {
        let mut found = HashSet::new();
        for row in rows {
            for a in 0..row.len() {
                for b in a + 1..row.len() {
                    found.insert(((a, row[a]), (b, row[b])));
                }
            }
        }
        found
    }

    fn check(sizes: &[usize], may: impl Fn((usize, usize), (usize, usize)) -> bool, most: usize) {
        for seed in [1, 2, 77] {
            let rows = covering(sizes, &may, seed);
            let found = pairs_of(&rows);
            for a in 0..sizes.len() {
                for b in a + 1..sizes.len() {
                    for va in 0..sizes[a] {
                        for vb in 0..sizes[b] {
                            let pair = ((a, va), (b, vb));
                            assert_eq!(found.contains(&pair), may(pair.0, pair.1), "{pair:?}");
                        }
                    }
                }
            }
            assert!(rows.len() <= most, "{} rows for {sizes:?}", rows.len());
            assert_eq!(rows, covering(sizes, &may, seed), "repeatable");
        }
    }

    #[test]
    fn all_pairs_are_covered_by_few_rows() {
        check(&[2, 2], |_, _| true, 4);
        check(&[3, 1, 4], |_, _| true, 14);
        check(&[2; 10], |_, _| true, 12);
        check(&[5, 2, 3, 34, 34, 9], |_, _| true, 1400);
    }

    #[test]
    fn excluded_pairs_never_occur() {
        // Value 1 of factor 0 goes only with value 1 of factor 1 and value 0 of factor 2.
        let may = |a: (usize, usize), b: (usize, usize)| match (a, b) {
            ((0, 1), (1, v)) => v == 1,
            ((0, 1), (2, v)) => v == 0,
            _ => true,
        };
        check(&[2, 2, 3, 5], may, 20);
    }
}
