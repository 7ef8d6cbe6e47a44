//! How well one number predicts another: rank correlation, and fits that never saw the point they
//! are judged by.
//!
//! All three work on pairs (predictor, outcome) and say nothing about which predictor is right, only
//! how much of the variation of the outcome it explains. The outcome is taken as a logarithm by
//! the caller where ratios matter more than differences.

/// Spearman's rank correlation; ties share their mean rank. 0 when one side is constant.
pub(crate) fn spearman(x: &[f64], y: &[f64]) -> f64 {
    pearson(&ranks(x), &ranks(y))
}

fn pearson(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (mean(x), mean(y));
    let (mut sxy, mut sxx, mut syy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(y) {
        sxy += (a - mx) * (b - my);
        sxx += (a - mx) * (a - mx);
        syy += (b - my) * (b - my);
    }
    if sxx == 0.0 || syy == 0.0 {
        return 0.0;
    }
    sxy / (sxx * syy).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut i = 0;
    while i < order.len() {
        let mut j = i;
        while j + 1 < order.len() && values[order[j + 1]] == values[order[i]] {
            j += 1;
        }
        for &index in &order[i..=j] {
            ranks[index] = (i + j) as f64 / 2.0;
        }
        i = j + 1;
    }
    ranks
}

/// Share of the variation of `y` that a straight line in `x` explains, each point predicted by a
/// line through all others. Negative when the mean of the others predicts better.
pub(crate) fn linear_r2(x: &[f64], y: &[f64]) -> f64 {
    left_out_r2(x, y, |x, y, at| {
        let (mx, my) = (mean(x), mean(y));
        let sxx: f64 = x.iter().map(|a| (a - mx) * (a - mx)).sum();
        let sxy: f64 = x.iter().zip(y).map(|(a, b)| (a - mx) * (b - my)).sum();
        if sxx == 0.0 {
            my
        } else {
            my + sxy / sxx * (at - mx)
        }
    })
}

/// As [`linear_r2`] for the best rising curve, whatever its shape.
pub(crate) fn rising_r2(x: &[f64], y: &[f64]) -> f64 {
    left_out_r2(x, y, rising)
}

/// Neighbouring points with one prediction.
struct Pool {
    first: f64,
    last: f64,
    sum: f64,
    points: f64,
}

impl Pool {
    fn height(&self) -> f64 {
        self.sum / self.points
    }
}

/// Predicts the outcome at `at` by the rising step function nearest to the points, straight lines
/// between steps.
fn rising(x: &[f64], y: &[f64], at: f64) -> f64 {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
    let mut pools: Vec<Pool> = Vec::new();
    for &i in &order {
        let mut pool = Pool {
            first: x[i],
            last: x[i],
            sum: y[i],
            points: 1.0,
        };
        // Neighbours in the wrong order, or at the same place, become one.
        while let Some(before) = pools.pop() {
            if before.height() < pool.height() && before.last < pool.first {
                pools.push(before);
                break;
            }
            pool.first = before.first;
            pool.sum += before.sum;
            pool.points += before.points;
        }
        pools.push(pool);
    }
    let after = pools.partition_point(|pool| pool.last < at);
    let before = after.checked_sub(1).map(|i| &pools[i]);
    match (before, pools.get(after)) {
        (None, None) => 0.0,
        (_, Some(pool)) if pool.first <= at => pool.height(),
        (Some(pool), None) | (None, Some(pool)) => pool.height(),
        (Some(a), Some(b)) => {
            a.height() + (b.height() - a.height()) * (at - a.last) / (b.first - a.last)
        }
    }
}

fn left_out_r2(x: &[f64], y: &[f64], predict: impl Fn(&[f64], &[f64], f64) -> f64) -> f64 {
    let without = |values: &[f64], i: usize| [&values[..i], &values[i + 1..]].concat();
    let (mut missed, mut varied) = (0.0, 0.0);
    for i in 0..x.len() {
        let (xs, ys) = (without(x, i), without(y, i));
        let (error, spread) = (y[i] - predict(&xs, &ys, x[i]), y[i] - mean(&ys));
        missed += error * error;
        varied += spread * spread;
    }
    if varied == 0.0 {
        0.0
    } else {
        1.0 - missed / varied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn rank_correlation_sees_order_only() {
        let x = [1.0, 2.0, 3.0, 4.0];
        close(spearman(&x, &[1.0, 10.0, 11.0, 1000.0]), 1.0);
        close(spearman(&x, &[4.0, 3.0, 2.0, 1.0]), -1.0);
        close(spearman(&x, &[5.0; 4]), 0.0);
        // Ties share their mean rank: ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3.
        close(
            spearman(&[1.0, 2.0, 2.0, 3.0], &x),
            4.5 / (4.5f64 * 5.0).sqrt(),
        );
    }

    #[test]
    fn a_line_is_explained_by_a_line_and_noise_by_nothing() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let line: Vec<f64> = x.iter().map(|x| 3.0 - 2.0 * x).collect();
        close(linear_r2(&x, &line), 1.0);
        let alternating: Vec<f64> = x.iter().map(|x| f64::from(*x as i32 % 2)).collect();
        assert!(linear_r2(&x, &alternating) < 0.05);
        assert!(rising_r2(&x, &alternating) < 0.05);
    }

    #[test]
    fn a_rising_curve_bends_where_a_line_cannot() {
        let x: Vec<f64> = (0..40).map(f64::from).collect();
        let step: Vec<f64> = x
            .iter()
            .map(|&x| if x < 30.0 { 0.0 } else { 10.0 })
            .collect();
        assert!(rising_r2(&x, &step) > 0.9);
        assert!(linear_r2(&x, &step) < 0.7);
        close(rising(&[1.0, 3.0], &[0.0, 4.0], 2.0), 2.0);
        close(rising(&[1.0, 2.0, 3.0], &[5.0, 1.0, 6.0], 1.5), 3.0);
        close(rising(&[1.0, 1.0], &[2.0, 4.0], 9.0), 3.0);
    }
}
