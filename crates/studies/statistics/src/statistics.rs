//! Quantiles, means over seeds with confidence intervals, paired differences between schemes.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Probability that a confidence interval covers the true mean.
pub const CONFIDENCE: f64 = 0.95;
/// Significance level: a paired difference is significant if chance alone produces one as large less often than this.
pub const SIGNIFICANCE: f64 = 0.05;

/// Returns the `q`-quantile (`q` from 0 to 1) of values in ascending order; `None` if there are no values.
///
/// Between order statistics it interpolates linearly (Hyndman and Fan's type 7, the default of R and NumPy).
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let part = position - below as f64;
    Some(sorted[below] + part * (sorted[above] - sorted[below]))
}

/// Returns the same quantile of `all` values of which only the smallest, `sorted`, are known; `None` beyond those.
pub fn censored_quantile(sorted: &[f64], all: usize, q: f64) -> Option<f64> {
    let [last, last_known] = [all, sorted.len()].map(|len| len.saturating_sub(1) as f64);
    match q.clamp(0.0, 1.0) * last {
        _ if sorted.len() >= all => quantile(sorted, q),
        position if position > last_known => None,
        position => quantile(sorted, if last_known > 0.0 { position / last_known } else { 0.0 }),
    }
}

/// Returns the arithmetic mean; `None` if there are no values. It is exact if all values are equal.
pub fn mean(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    Some(first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64)
}

/// Returns the sample standard deviation (divided by n - 1); `None` below two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Returns the completion time over the ideal one.
///
/// No simulated flow is below 1, except in the recorded model, whose formula counts one packet too many. A real network can be
/// faster than its model, and a rank of a job can come later than alone.
pub fn slowdown(fct_ps: u64, ideal_ps: u64) -> f64 {
    if ideal_ps == 0 { 1.0 } else { fct_ps as f64 / ideal_ps as f64 }
}

/// Summary statistics of a set of values; every field is `None` if there are no values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

impl Distribution {
    /// Computes the statistics of `values` in any order; sorts them.
    pub fn of(values: &mut [f64]) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at = |q| quantile(values, q);
        Distribution { mean: mean(values), p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1.0) }
    }
}

/// A mean over seeds with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student's t); `None` below two seeds.
    pub half_width: Option<f64>,
    pub seeds: usize,
}

impl Estimate {
    /// Computes the estimate of one value per seed; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let half_width = standard_deviation(values)
            .map(|deviation| t_value(values.len() - 1) * deviation / (values.len() as f64).sqrt());
        Some(Estimate { mean: mean(values)?, half_width, seeds: values.len() })
    }
    /// Returns the lower and upper limit of the interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half_width.map(|half| (self.mean - half, self.mean + half))
    }
}

/// Returns the two-sided 95 % point of Student's t distribution.
fn t_value(degrees_of_freedom: usize) -> f64 {
    t_quantile(degrees_of_freedom, 0.5 + CONFIDENCE / 2.0)
}

/// Returns a quantile of Student's t distribution.
pub fn t_quantile(degrees_of_freedom: usize, probability: f64) -> f64 {
    student(degrees_of_freedom).map_or(f64::NAN, |t| t.inverse_cdf(probability))
}

/// Returns the two-sided p-value of Student's t.
pub fn two_sided(t: f64, degrees_of_freedom: usize) -> f64 {
    student(degrees_of_freedom).map_or(1.0, |student| (2.0 * student.cdf(-t.abs())).min(1.0))
}

fn student(degrees_of_freedom: usize) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).ok()
}

/// Minimum number of pairs for a test. Two have one degree of freedom, and t would have to exceed 12.7.
pub const MIN_PAIRS: usize = 3;

/// Spread below this share of the values is attributed to rounding.
const ROUNDING: f64 = 1e-12;

/// Result of a paired t-test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test {
    /// Fewer than [`MIN_PAIRS`] seeds that both ran.
    TooFew,
    /// The two are equal at every seed.
    Equal,
    /// They differ by the same amount at every seed, so there is no variance to test against.
    Constant,
    /// The two-sided p-value, without correction.
    P(f64),
}

/// The difference between two schemes that ran the same seeds, seed by seed (paired t-test).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedDifference {
    /// Mean of (value - baseline) over seeds, with its interval.
    pub difference: Estimate,
    pub test: Test,
}

impl PairedDifference {
    /// Computes the difference of pairs (value, baseline value), one per seed; `None` if there are none.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(value, baseline)| value - baseline).collect();
        let difference = Estimate::of(&differences)?;
        let largest = pairs.iter().flat_map(|pair| [pair.0.abs(), pair.1.abs()]).fold(0.0, f64::max);
        let deviation = standard_deviation(&differences).unwrap_or(0.0);
        let test = match deviation > ROUNDING * largest {
            _ if differences.len() < MIN_PAIRS => Test::TooFew,
            false if difference.mean.abs() <= ROUNDING * largest => Test::Equal,
            false => Test::Constant,
            true => {
                let t = difference.mean / (deviation / (differences.len() as f64).sqrt());
                Test::P(two_sided(t, differences.len() - 1))
            }
        };
        Some(PairedDifference { difference, test })
    }
    /// Returns the p-value without correction; `None` if there is no test.
    pub fn p_value(&self) -> Option<f64> {
        if let Test::P(p) = self.test { Some(p) } else { None }
    }
}

/// Adjusts p-values of one family (Holm 1979, step-down), in their order: the probability of calling any equal pair
/// different stays at the level that they are compared with.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut least = 0.0f64;
    for (rank, &at) in order.iter().enumerate() {
        least = least.max((p_values[at] * (p_values.len() - rank) as f64).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b} within {tolerance}");
    }

    #[test]
    fn quantiles_interpolate_linearly() {
        // Positions (n - 1) q of 10, 20, 30, 40: 1.5 -> 25; 0.75 -> 17.5; 2.97 -> 30 + 0.97 * 10.
        let sorted = [10.0, 20.0, 30.0, 40.0];
        assert_eq!(quantile(&sorted, 0.5), Some(25.0));
        assert_eq!(quantile(&sorted, 0.25), Some(17.5));
        close(quantile(&sorted, 0.99).unwrap(), 39.7, 1e-12);
        assert_eq!(quantile(&sorted, 0.0), Some(10.0));
        assert_eq!(quantile(&sorted, 1.0), Some(40.0));
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    /// Five values, of which 10, 20 and 30 are known: positions 4 q of all five.
    #[test]
    fn quantiles_end_where_values_are_unknown() {
        let known = [10.0, 20.0, 30.0];
        assert_eq!(
            [0.0, 0.25, 0.375, 0.5].map(|q| censored_quantile(&known, 5, q)),
            [10.0, 20.0, 25.0, 30.0].map(Some)
        );
        assert_eq!([0.51, 0.99, 1.0].map(|q| censored_quantile(&known, 5, q)), [None; 3]);
        assert_eq!(censored_quantile(&known, 3, 0.75), quantile(&known, 0.75));
        assert_eq!([0.0, 0.1].map(|q| censored_quantile(&[7.0], 3, q)), [Some(7.0), None]);
        assert_eq!(censored_quantile(&[], 3, 0.0), None);
    }

    #[test]
    fn distribution_of_first_hundred_numbers() {
        // 1..=101: position 100 q, value 1 + 100 q.
        let mut values: Vec<f64> = (1..=101).rev().map(f64::from).collect();
        let d = Distribution::of(&mut values);
        assert_eq!(
            (d.mean, d.p50, d.p95, d.p99, d.max),
            (Some(51.0), Some(51.0), Some(96.0), Some(100.0), Some(101.0))
        );
        assert_eq!(Distribution::of(&mut []), Distribution::default());
    }

    #[test]
    fn slowdown_is_not_cut() {
        assert_eq!([slowdown(150, 100), slowdown(99, 100), slowdown(99, 0)], [1.5, 0.99, 1.0]);
    }

    #[test]
    fn t_values_are_the_published_ones() {
        // Two-sided 95 %, from textbook tables.
        for (freedom, published) in
            [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (19, 2.093), (29, 2.045), (120, 1.980)]
        {
            close(t_value(freedom), published, 5e-4);
        }
    }

    #[test]
    fn interval_of_five_seeds() {
        // Mean 3, squared deviations 4 + 1 + 0 + 1 + 4 = 10, variance 10 / 4, standard error sqrt(2.5 / 5) = 0.70711.
        let e = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((e.mean, e.seeds), (3.0, 5));
        close(e.half_width.unwrap(), 2.776_445 * 0.5_f64.sqrt(), 1e-5);
        let (low, high) = e.interval().unwrap();
        close(low + high, 6.0, 1e-12);
    }

    #[test]
    fn one_seed_has_no_interval() {
        let e = Estimate::of(&[4.0]).unwrap();
        assert_eq!((e.mean, e.half_width, e.interval()), (4.0, None, None));
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(PairedDifference::of(&[(4.0, 5.0)]).unwrap().test, Test::TooFew);
    }

    #[test]
    fn students_sleep_data() {
        // Student (1908), hours of sleep gained with two drugs, ten patients: t = -4.0621, p = 0.00283 (as in R's t.test).
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<_> = first.into_iter().zip(second).collect();
        let d = PairedDifference::of(&pairs).unwrap();
        close(d.difference.mean, -1.58, 1e-12);
        close(d.p_value().unwrap(), 0.002833, 1e-6);
        let (low, high) = d.difference.interval().unwrap();
        close(low, -2.459_886, 1e-5);
        close(high, -0.700_114, 1e-5);
    }

    #[test]
    fn two_seeds_give_no_test() {
        assert_eq!(PairedDifference::of(&[(2.0, 1.0), (3.1, 2.0)]).unwrap().test, Test::TooFew);
        assert!(PairedDifference::of(&[(2.0, 1.0), (3.1, 2.0), (4.0, 3.0)]).unwrap().p_value().is_some());
    }

    #[test]
    fn without_variance_there_is_no_p_value() {
        // The same difference at every seed, up to rounding: 0.3 - 0.1 is not 0.2.
        let constant = [(0.3, 0.1), (1.2, 1.0), (2.2, 2.0)];
        assert_eq!(PairedDifference::of(&constant).unwrap().test, Test::Constant);
        assert_eq!(PairedDifference::of(&constant).unwrap().p_value(), None);
        assert_eq!(PairedDifference::of(&[(2.0, 2.0), (3.0, 3.0), (4.0, 4.0)]).unwrap().test, Test::Equal);
        // The sum of ten times 0.1 is not 1, yet equal values must have no spread.
        assert_eq!(Estimate::of(&[0.1; 10]), Some(Estimate { mean: 0.1, half_width: Some(0.0), seeds: 10 }));
    }

    proptest! {
        /// At least floor((n-1) q) + 1 values are not above a quantile.
        #[test]
        fn quantiles_lie_between_order_statistics(mut values in prop::collection::vec(-1e6f64..1e6, 1..200), q in 0.0f64..=1.0) {
            values.sort_unstable_by(f64::total_cmp);
            let found = quantile(&values, q).unwrap();
            let position = q * (values.len() - 1) as f64;
            prop_assert!(values[position.floor() as usize] <= found + 1e-6);
            prop_assert!(values[position.ceil() as usize] >= found - 1e-6);
        }

        /// Swapping value and baseline changes the sign of the difference and preserves the p-value.
        #[test]
        fn pairing_is_antisymmetric(pairs in prop::collection::vec((0.0f64..100.0, 0.0f64..100.0), 2..30)) {
            let swapped: Vec<_> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let (one, other) = (PairedDifference::of(&pairs).unwrap(), PairedDifference::of(&swapped).unwrap());
            prop_assert!((one.difference.mean + other.difference.mean).abs() < 1e-9);
            prop_assert!((one.p_value().unwrap_or(2.0) - other.p_value().unwrap_or(2.0)).abs() < 1e-9);
        }
    }
}
