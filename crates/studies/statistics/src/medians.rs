//! Medians over seeds, for values with a heavy tail: distribution-free intervals and a distribution-free test.

use super::{CONFIDENCE, MIN_PAIRS, Test, quantile};
use statrs::distribution::{Binomial, DiscreteCDF};

/// Returns the median with the interval between two order statistics that covers it with a probability of 95 % or more,
/// for any distribution; `None` without values.
///
/// The interval is from the k-th least to the k-th largest value with P(X < k) at most 2.5 % for X of B(n, 1/2). It
/// takes six values; fewer have an interval only if they are all equal.
pub fn median(values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let middle = quantile(&sorted, 0.5)?;
    // Between a number and infinity no interpolation is possible.
    let middle = if middle.is_nan() { f64::INFINITY } else { middle };
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let half = Binomial::new(0.5, sorted.len() as u64).ok()?;
    let ranks = (0..sorted.len() / 2).take_while(|below| half.cdf(*below as u64) <= tail).count();
    let interval = match ranks {
        _ if first == last && sorted.len() > 1 => Some((first, last)),
        0 => None,
        ranks => Some((sorted[ranks - 1], sorted[sorted.len() - ranks])),
    };
    Some((middle, interval))
}

/// Two-sided sign test of differences against a median of zero, without differences of zero. Fewer than six values
/// cannot be significant at 5 %.
pub fn sign_test(differences: &[f64]) -> Test {
    let Some((middle, Some((low, high)))) = median(differences) else { return Test::TooFew };
    if low == high && differences.iter().all(|difference| *difference == middle) {
        return match () {
            () if differences.len() < MIN_PAIRS => Test::TooFew,
            () if middle == 0.0 => Test::Equal,
            () => Test::Constant,
        };
    }
    let above = differences.iter().filter(|difference| **difference > 0.0).count() as u64;
    let below = differences.iter().filter(|difference| **difference < 0.0).count() as u64;
    if above + below == 0 {
        return Test::Equal;
    }
    Test::P(Binomial::new(0.5, above + below).map_or(1.0, |half| (2.0 * half.cdf(above.min(below))).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_between_order_statistics() {
        // B(6, 1/2): P(X < 1) = 1/64 = 1.6 %, P(X < 2) = 7/64: minimum and maximum. B(10, 1/2): P(X < 2) = 11/1024 =
        // 1.1 %, P(X < 3) = 56/1024 = 5.5 %: the second least and second largest.
        let values: Vec<f64> = (1..=6).map(f64::from).collect();
        assert_eq!(median(&values), Some((3.5, Some((1.0, 6.0)))));
        let values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert_eq!(median(&values), Some((5.5, Some((2.0, 9.0)))));
        // Five: P(X < 1) = 1/32 = 3.1 %.
        assert_eq!(median(&[5.0, 1.0, 2.0, 3.0, 4.0]), Some((3.0, None)));
        assert_eq!(median(&[2.0, 2.0, 2.0]), Some((2.0, Some((2.0, 2.0)))));
        assert_eq!(median(&[]), None);
        // A single value that never ends moves the median by one rank at most.
        let one = [1.0, 2.0, 3.0, 4.0, 5.0, f64::INFINITY];
        assert_eq!(median(&one), Some((3.5, Some((1.0, f64::INFINITY)))));
        assert_eq!(median(&[f64::INFINITY; 2]).map(|found| found.0), Some(f64::INFINITY));
    }

    #[test]
    fn signs() {
        // Nine of ten below: 2 (1 + 10) / 1024.
        let mut ten = [-1.0; 10];
        ten[3] = 50.0;
        let p = |differences: &[f64], expected: f64| match sign_test(differences) {
            Test::P(p) => assert!((p - expected).abs() < 1e-12, "{p} is not {expected}"),
            other => panic!("{other:?}"),
        };
        p(&ten, 22.0 / 1024.0);
        // All of six: 2 / 64; a zero does not count: 2 / 32.
        p(&[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0], 2.0 / 64.0);
        p(&[-1.0, -2.0, -3.0, -4.0, -5.0, 0.0], 2.0 / 32.0);
        assert_eq!(sign_test(&[-1.0, -2.0, -3.0]), Test::TooFew);
        assert_eq!((sign_test(&[-1.0; 3]), sign_test(&[-1.0; 2])), (Test::Constant, Test::TooFew));
        assert_eq!(sign_test(&[0.0; 6]), Test::Equal);
    }
}
