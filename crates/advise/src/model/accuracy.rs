//! How well predictions agree with what was measured (section 4.2 of the thesis).
//!
//! R squared is 1 for perfect predictions, 0 for those no better than the mean of what was measured, and
//! negative for worse ones. Errors are relative to the measured value.

/// Agreement of predictions and measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// `1 - residual sum of squares / total sum of squares`.
    pub r_squared: f64,
    /// Largest relative error, as a fraction.
    pub max_error: f64,
    /// The relative error that nine of ten stay within, as a fraction.
    pub error_90: f64,
    /// Pairs compared.
    pub count: usize,
}

impl Accuracy {
    /// Of pairs (measured, predicted). Pairs with a measured value of 0 or that are not finite are left
    /// out; of none, errors are 0 and R squared is 1.
    ///
    /// ```
    /// use advise::model::accuracy::Accuracy;
    /// let a = Accuracy::of(&[(1.0, 1.0), (2.0, 2.2), (4.0, 4.0)]);
    /// assert!((a.max_error - 0.1).abs() < 1e-12 && a.r_squared > 0.99);
    /// ```
    pub fn of(pairs: &[(f64, f64)]) -> Accuracy {
        let usable = |p: &&(f64, f64)| p.0 != 0.0 && p.0.is_finite() && p.1.is_finite();
        let pairs: Vec<(f64, f64)> = pairs.iter().filter(usable).copied().collect();
        let count = pairs.len();
        if count == 0 {
            return Accuracy {
                r_squared: 1.0,
                max_error: 0.0,
                error_90: 0.0,
                count,
            };
        }
        let mean = pairs.iter().map(|p| p.0).sum::<f64>() / count as f64;
        let total: f64 = pairs.iter().map(|p| (p.0 - mean).powi(2)).sum();
        let residual: f64 = pairs.iter().map(|p| (p.0 - p.1).powi(2)).sum();
        let mut errors: Vec<f64> = pairs.iter().map(|p| ((p.1 - p.0) / p.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        // The smallest error such that nine of ten are not larger.
        let rank = (count * 9).div_ceil(10).max(1);
        Accuracy {
            r_squared: match (total > 0.0, residual > 0.0) {
                (true, _) => 1.0 - residual / total,
                (false, false) => 1.0,
                // All measurements equal and not met: no share of a variation that is not there.
                (false, true) => 0.0,
            },
            max_error: errors[count - 1],
            error_90: errors[rank - 1],
            count,
        }
    }
}
