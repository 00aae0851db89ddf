//! Confidence intervals of means with a bounded range, and the number of seeds that decides a difference.

use crate::{Estimate, SIGNIFICANCE, t_quantile};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// At least this: a slowdown is at least 1, a count or a time at least 0.
    AtLeast(f64),
    /// From 0 to 1.
    Share,
}

impl Estimate {
    /// Returns the 95 % confidence interval of the mean within `range`: Student's t interval for the logarithm of
    /// the excess over the bound, of a share for its logit, by the delta method. For a small spread it is the interval
    /// of [`Estimate::interval`].
    pub fn interval_in(&self, range: Range) -> Option<(f64, f64)> {
        let half = self.half_width?;
        let mean = self.mean;
        match range {
            _ if half == 0.0 => Some((mean, mean)),
            Range::AtLeast(bound) if mean > bound => {
                let excess = mean - bound;
                let factor = (half / excess).exp();
                Some((bound + excess / factor, bound + excess * factor))
            }
            Range::Share if mean > 0.0 && mean < 1.0 => {
                let factor = (half / (mean * (1.0 - mean))).exp();
                let logistic = |odds: f64| if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 };
                let odds = mean / (1.0 - mean);
                Some((logistic(odds / factor), logistic(odds * factor)))
            }
            // A mean at or beyond its bound with a spread: the range does not hold for these values.
            Range::AtLeast(_) | Range::Share => self.interval(),
        }
    }
}

/// Probability with which as many seeds as [`seeds_needed`] decide a difference.
pub const POWER: f64 = 0.8;

/// Seeds above this number are not worth naming.
pub const MAX_SEEDS_NEEDED: usize = 10_000;

/// Returns the number of seeds at which a two-sided t-test at `level` finds `difference` with a probability of [`POWER`].
///
/// A seed's difference has `variance`, and n seeds give `freedom(n)` degrees of freedom. The result is the least n with
/// n >= variance (t(1 - level/2) + t(power))^2 / difference^2 (Snedecor and Cochran, Statistical Methods, 6.14). `None`
/// where there is no variance or difference, or above 10,000.
pub fn seeds_needed(difference: f64, variance: f64, level: f64, freedom: impl Fn(usize) -> usize) -> Option<usize> {
    if !(difference != 0.0 && variance > 0.0 && difference.is_finite() && variance.is_finite()) {
        return None;
    }
    let suffice = |seeds: usize| {
        let freedom = freedom(seeds);
        let sum = t_quantile(freedom, 1.0 - level / 2.0) + t_quantile(freedom, POWER);
        seeds as f64 >= variance * sum * sum / (difference * difference)
    };
    if !suffice(MAX_SEEDS_NEEDED) {
        return None;
    }
    let (mut low, mut high) = (1, MAX_SEEDS_NEEDED);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if suffice(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Level of one test in a family of `tests`, at which the first of Holm's steps decides.
pub fn level_of(tests: usize) -> f64 {
    SIGNIFICANCE / tests.max(1) as f64
}

/// Returns the number of seeds in words: `about 12 seeds`.
pub fn about_seeds(seeds: Option<usize>) -> String {
    seeds.map_or_else(|| format!("more than {MAX_SEEDS_NEEDED} seeds"), |seeds| format!("about {seeds} seeds"))
}
