//! Fitting `a / n^b + c` to measurements, by the direct search of Hooke and Jeeves.
//!
//! The search needs no derivatives: it tries a step up and down in every direction, repeats a move that
//! helped, and halves the steps when nothing helps. For a given `b` the best `a` and `c` follow from two
//! linear equations, so only `b` is searched for; the search over all three together ends in the same
//! place and takes a hundred times as long on values of such different size.

use crate::cost::Curve;

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
