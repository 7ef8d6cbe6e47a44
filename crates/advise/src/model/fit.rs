//! Fitting `a / n^b + c` to measurements, by the direct search of Hooke and Jeeves.
//!
//! The search needs no derivatives: it tries a step up and down in every direction, repeats a move that
//! helped, and halves the steps when nothing helps. For a given `b` the best `a` and `c` follow from two
//! linear equations, so only `b` is searched for; the search over all three together ends in the same
//! place and takes a hundred times as long on values of such different size.

use super::accuracy::Accuracy;
use crate::cost::{Curve, Excess, Walk};

/// The smallest value that a direct search from `start` finds, and where.
///
/// Ends when every step is below `least` or after `most` evaluations.
pub fn hooke_jeeves<const N: usize>(
    f: impl Fn(&[f64; N]) -> f64,
    start: [f64; N],
    first_step: [f64; N],
    least: f64,
    most: usize,
) -> ([f64; N], f64) {
    let value_of = |x: &[f64; N]| {
        let value = f(x);
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let explore = |from: [f64; N], value: f64, step: &[f64; N], used: &mut usize| {
        let (mut best, mut least_value) = (from, value);
        for i in 0..N {
            for sign in [1.0, -1.0] {
                let mut tried = best;
                tried[i] += sign * step[i];
                *used += 1;
                let v = value_of(&tried);
                if v < least_value {
                    (best, least_value) = (tried, v);
                    break;
                }
            }
        }
        (best, least_value)
    };
    let (mut base, mut step, mut used) = (start, first_step, 1);
    let mut value = value_of(&base);
    while used < most && step.iter().any(|s| s.abs() > least) {
        let (mut next, mut next_value) = explore(base, value, &step, &mut used);
        if next_value >= value {
            step.iter_mut().for_each(|s| *s /= 2.0);
            continue;
        }
        while next_value < value && used < most {
            // The same move once more, and what helps around there.
            let mut ahead = next;
            for i in 0..N {
                ahead[i] = 2.0 * next[i] - base[i];
            }
            (base, value) = (next, next_value);
            used += 1;
            let ahead_value = value_of(&ahead);
            (next, next_value) = explore(ahead, ahead_value, &step, &mut used);
        }
    }
    (base, value)
}

/// The curve through points (bytes of a piece, seconds per byte) with the least squared relative error,
/// `a` and `c` not negative, `b` from 0.1 to 4. One point gives a constant, none nothing.
///
/// ```
/// use advise::{cost::Curve, model::fit::fit_curve};
/// let known = Curve { a: 1.58, b: 1.32, c: 0.066 };
/// let points = [8.0, 40.0, 1024.0].map(|n| (n, known.at(n)));
/// let found = fit_curve(&points).unwrap();
/// assert!((found.b - 1.32).abs() < 1e-6 && (found.a - 1.58).abs() < 1e-5);
/// ```
pub fn fit_curve(points: &[(f64, f64)]) -> Option<Curve> {
    let usable = |p: &&(f64, f64)| p.0 >= 1.0 && p.1 > 0.0 && p.0.is_finite() && p.1.is_finite();
    let points: Vec<(f64, f64)> = points.iter().filter(usable).copied().collect();
    points.first()?;
    let error_of = |b: f64| {
        if !(0.1..=4.0).contains(&b) {
            return f64::INFINITY;
        }
        let curve = with_exponent(&points, b);
        let relative = points.iter().map(|&(n, y)| (curve.at(n) - y) / y);
        relative.map(|e| e * e).sum()
    };
    // Several starts: the error is not convex where noise is.
    let starts = [0.3, 0.7, 1.0, 1.5, 2.2, 3.0];
    let found =
        starts.map(|b| hooke_jeeves(|x: &[f64; 1]| error_of(x[0]), [b], [0.2], 1e-10, 2000));
    let best = found.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(with_exponent(&points, best.0[0]))
}

/// The best `a` and `c` for a given `b`, weighted so that relative errors count.
fn with_exponent(points: &[(f64, f64)], b: f64) -> Curve {
    let (mut sxx, mut sx, mut s1, mut sxy, mut sy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(n, y) in points {
        let (x, w) = (n.powf(-b), 1.0 / (y * y));
        sxx += w * x * x;
        sx += w * x;
        s1 += w;
        sxy += w * x * y;
        sy += w * y;
    }
    let determinant = sxx * s1 - sx * sx;
    let (mut a, mut c) = match determinant.abs() > 1e-14 * sxx * s1 {
        true => (
            (sxy * s1 - sx * sy) / determinant,
            (sxx * sy - sx * sxy) / determinant,
        ),
        false => (0.0, sy / s1),
    };
    if a < 0.0 {
        (a, c) = (0.0, sy / s1);
    } else if c < 0.0 {
        (a, c) = (sxy / sxx, 0.0);
    }
    Curve { a, b, c }
}

/// Factors, none negative, with which the columns of each row add up to its value, such that too much by a
/// factor is as bad as too little by it. Rows whose value is not above 0 are left out; without any, all
/// factors are 0.
///
/// ```
/// use advise::model::fit::least_squares;
/// let rows = [([1.0, 10.0], 25.0), ([1.0, 20.0], 45.0), ([1.0, 50.0], 105.0)];
/// let [latency, per_byte] = least_squares(&rows);
/// assert!((latency - 5.0).abs() < 1e-6 && (per_byte - 2.0).abs() < 1e-6);
/// ```
pub fn least_squares<const N: usize>(rows: &[([f64; N], f64)]) -> [f64; N] {
    let usable = |y: f64| y > 0.0 && y.is_finite();
    let rows: Vec<&([f64; N], f64)> = rows.iter().filter(|(_, y)| usable(*y)).collect();
    let sum = |x: &[f64; N], f: &[f64; N]| x.iter().zip(f).map(|(a, b)| a * b).sum::<f64>();
    let mut found = [0.0; N];
    // Weighted by what was measured alone, small predictions would be cheap: (p - y)^2 / y^2 is at most 1
    // below and without bounds above. Dividing by p y instead, with p of the round before, is even.
    for round in 0..12 {
        let weighted: Vec<([f64; N], f64, f64)> = rows
            .iter()
            .map(|(x, y)| {
                let p = match round {
                    0 => *y,
                    _ => sum(x, &found).max(0.05 * y),
                };
                (*x, *y, 1.0 / (p * y))
            })
            .collect();
        found = weighted_squares(&weighted, found);
    }
    found
}

/// Every row as [`least_squares`] of all others predicts it, as pairs (value, predicted).
pub fn least_squares_left_out<const N: usize>(rows: &[([f64; N], f64)]) -> Vec<(f64, f64)> {
    let one = |i: usize| {
        let others = [&rows[..i], &rows[i + 1..]].concat();
        let factors = least_squares(&others);
        let (x, y) = &rows[i];
        (*y, x.iter().zip(factors).map(|(a, b)| a * b).sum())
    };
    (0..rows.len()).map(one).collect()
}

/// Non-negative least squares: one factor after the other at its best until nothing moves.
fn weighted_squares<const N: usize>(rows: &[([f64; N], f64, f64)], from: [f64; N]) -> [f64; N] {
    let (mut products, mut right) = ([[0.0; N]; N], [0.0; N]);
    for (x, y, w) in rows {
        for i in 0..N {
            right[i] += w * x[i] * y;
            for j in 0..N {
                products[i][j] += w * x[i] * x[j];
            }
        }
    }
    let mut found = from;
    for _ in 0..5_000 {
        let mut moved = 0.0f64;
        for i in 0..N {
            let own = products[i][i];
            if own == 0.0 || !own.is_finite() {
                found[i] = 0.0;
                continue;
            }
            let others: f64 = (0..N)
                .filter(|&j| j != i)
                .map(|j| products[i][j] * found[j])
                .sum();
            let best = ((right[i] - others) / own).max(0.0);
            moved = moved.max((best - found[i]).abs() * own.sqrt());
            found[i] = best;
        }
        if moved < 1e-12 {
            break;
        }
    }
    found
}

/// A measured walk: bytes copied in pieces of `n`, what else was paid for, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalkSample {
    /// Bytes of a piece.
    pub n: f64,
    /// Bytes in all.
    pub bytes: f64,
    /// Transfers that they were.
    pub transfers: f64,
    /// Lines, pages and far bytes.
    pub excess: Excess,
    /// Seconds.
    pub seconds: f64,
}

/// A curve with what lines, pages and far bytes cost beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalkFit {
    /// Seconds per byte near by.
    pub curve: Curve,
    /// What lines, pages and far bytes cost; sizes of caches as given.
    pub walk: Walk,
    /// Before the first byte of a transfer.
    pub start_s: f64,
    /// Agreement with what it was made of.
    pub accuracy: Accuracy,
}

impl WalkFit {
    /// Seconds that a walk takes.
    pub fn predict(&self, walk: &WalkSample) -> f64 {
        walk.transfers * self.start_s
            + walk.bytes * self.curve.at(walk.n)
            + self.walk.excess_s(&walk.excess)
    }
}

/// What walks are predicted to take by fits that have not seen their piece length, as pairs (measured,
/// predicted): what a fit is worth for other lengths. Lengths are left out in `folds` parts, all walks of one
/// together; the shortest and the longest stay, since nobody asks beyond them.
pub fn left_out(walks: &[WalkSample], sizes: &Walk, folds: usize) -> Vec<(f64, f64)> {
    let mut lengths: Vec<f64> = walks.iter().map(|w| w.n).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup();
    let inner = lengths.get(1..lengths.len().saturating_sub(1));
    let inner = inner.unwrap_or_default();
    let mut pairs = Vec::new();
    for fold in 0..folds.max(1) {
        let is_out = |w: &&WalkSample| {
            let at = inner.iter().position(|n| *n == w.n);
            at.is_some_and(|i| i % folds.max(1) == fold)
        };
        let (out, kept): (Vec<&WalkSample>, Vec<&WalkSample>) = walks.iter().partition(is_out);
        let kept: Vec<WalkSample> = kept.into_iter().copied().collect();
        if let Some(fit) = fit_walk(&kept, sizes) {
            pairs.extend(out.into_iter().map(|w| (w.seconds, fit.predict(w))));
        }
    }
    pairs
}

/// Fits a curve with its cache and translation terms; `None` without a measured walk.
pub fn fit_walk(walks: &[WalkSample], sizes: &Walk) -> Option<WalkFit> {
    walks.iter().find(|w| w.seconds > 0.0 && w.bytes > 0.0)?;
    let with_exponent = |b: f64| {
        let rows: Vec<([f64; 8], f64)> = walks
            .iter()
            .map(|w| {
                let x = [
                    w.bytes / w.n.max(1.0).powf(b),
                    w.bytes,
                    w.excess.lines,
                    w.excess.far_lines,
                    w.excess.pages,
                    w.excess.far_bytes,
                    w.transfers,
                    w.excess.odd_pieces,
                ];
                (x, w.seconds)
            })
            .collect();
        let [
            a,
            c,
            line_s,
            far_line_s,
            page_s,
            far_byte_s,
            start_s,
            odd_piece_s,
        ] = least_squares(&rows);
        let mut fit = WalkFit {
            curve: Curve { a, b, c },
            walk: Walk {
                line_s,
                far_line_s,
                page_s,
                far_byte_s,
                odd_piece_s,
                ..*sizes
            },
            start_s,
            accuracy: Accuracy::of(&[]),
        };
        let pairs: Vec<(f64, f64)> = walks.iter().map(|w| (w.seconds, fit.predict(w))).collect();
        fit.accuracy = Accuracy::of(&pairs);
        let relative = pairs.iter().filter(|(y, _)| *y > 0.0);
        let error: f64 = relative.map(|(y, p)| (p.max(1e-12) / y).ln().powi(2)).sum();
        (fit, error)
    };
    let error_of = |x: &[f64; 1]| match (0.3..=2.5).contains(&x[0]) {
        true => with_exponent(x[0]).1,
        false => f64::INFINITY,
    };
    let found = [0.6, 1.0, 1.5].map(|b| hooke_jeeves(error_of, [b], [0.1], 1e-4, 200));
    let best = found.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(with_exponent(best.0[0]).0)
}
