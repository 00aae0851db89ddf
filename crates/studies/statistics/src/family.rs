//! Tests of schemes against a baseline: a family of k - 1 tests per metric and workload, blocked over seeds where the
//! variances allow it.

use crate::{
    CONFIDENCE, MIN_PAIRS, PairedDifference, SIGNIFICANCE, Sequential, Test, holm, intervals::level_of, mean,
    seeds_needed, standard_deviation, statistics::two_sided, t_quantile,
};
use serde::Serialize;

anabranch_settings::worded! {
    /// How a scheme was tested against the baseline, or why it was not.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Method {
        /// t-test with the error of the randomised block design: seeds are blocks.
        Blocked = "blocked",
        /// t-test of the differences seed by seed.
        Paired = "paired",
        /// One side has one value at every seed, and every value of the other is beyond it.
        Separated = "separated",
        /// The two are equal at every seed.
        Equal = "equal",
        /// They differ by the same amount at every seed.
        Constant = "constant",
        /// Fewer than [`MIN_PAIRS`] seeds.
        FewSeeds = "few-seeds",
        /// Its flows did not all finish.
        Censored = "censored",
        /// Those of the baseline did not all finish.
        BaselineCensored = "baseline-censored",
    }
}

/// A scheme against the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// Mean of (value - baseline) over the seeds that both have.
    pub difference: f64,
    /// Its 95 % confidence interval, for itself alone.
    pub interval: Option<(f64, f64)>,
    pub method: Method,
    /// Two-sided p-value, for itself alone.
    pub p_value: Option<f64>,
    /// The p-value after Holm's correction over the family.
    pub p_holm: Option<f64>,
    /// `true` if the two differ at 5 %; `None` without a test.
    pub differs: Option<bool>,
    /// `true` if the interval at the level of the family is within the share that [`Sequential`] regards as too small to
    /// matter.
    pub is_small: Option<bool>,
    /// Seeds that would decide, if the difference and the variance are those observed; `None` where it is decided.
    pub seeds_needed: Option<usize>,
}

/// Spread of a difference per seed, and its degrees of freedom.
#[derive(Clone, Copy)]
struct Spread {
    variance: f64,
    freedom: usize,
}

/// Largest excess of the differences' own variance over the pooled one.
const MAX_EXCESS: f64 = 1.1;

/// Returns the variance of a difference of two schemes in a block design, if the variances allow pooling. `values` holds
/// per scheme, the baseline first, its value at every seed.
///
/// The residual mean square of the additive model has (k - 1)(n - 1) degrees of freedom. It is the error of every
/// difference only if all differences of two schemes have one variance (sphericity, Huynh and Feldt 1970). The estimate
/// of Greenhouse and Geisser (1959), epsilon, is 1 then, and less for unequal variances. Pooling requires that its
/// observed value is at least what equal variances give on average: E[tr(S^2) / tr(S)^2] = (v + p + 1) / (p v + 2) for a
/// Wishart matrix S of p = k - 1 dimensions and v = n - 1 degrees of freedom, on which the test of John (1971) rests.
/// The variances of the differences from the baseline must not exceed the pooled one by more than a tenth on average.
fn pooled(values: &[&[f64]]) -> Option<Spread> {
    let (schemes, seeds) = (values.len(), values.first()?.len());
    if schemes < 3 || seeds < MIN_PAIRS {
        return None;
    }
    let of_seed: Vec<f64> =
        (0..seeds).map(|at| mean(&values.iter().map(|own| own[at]).collect::<Vec<_>>())).collect::<Option<_>>()?;
    let grand = mean(&of_seed)?;
    let residuals: Vec<Vec<f64>> = values
        .iter()
        .map(|own| {
            let average = mean(own)?;
            Some(own.iter().zip(&of_seed).map(|(value, seed)| value - average - seed + grand).collect())
        })
        .collect::<Option<_>>()?;
    // Sums of products of residuals have the trace of the contrasts' covariance matrix, and the same trace of its square.
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let trace: f64 = residuals.iter().map(|own| product(own, own)).sum();
    let squares: f64 = residuals.iter().flat_map(|a| residuals.iter().map(|b| product(a, b).powi(2))).sum();
    let (p, v) = ((schemes - 1) as f64, (seeds - 1) as f64);
    let variance = 2.0 * trace / (p * v);
    if variance.is_nan() || variance <= 0.0 || squares / (trace * trace) > (v + p + 1.0) / (p * v + 2.0) {
        return None;
    }
    let own = |scheme: &&[f64]| {
        let differences: Vec<f64> = scheme.iter().zip(values[0]).map(|(a, b)| a - b).collect();
        standard_deviation(&differences).map(|deviation| deviation * deviation)
    };
    let average = mean(&values[1..].iter().map(own).collect::<Option<Vec<_>>>()?)?;
    (average <= MAX_EXCESS * variance).then_some(Spread { variance, freedom: (schemes - 1) * (seeds - 1) })
}

/// Probability that of two schemes alike one has the same value at all `seeds` and the other only values beyond it.
///
/// With q the probability of that value it is at most 2 (q (1 - q))^n, for sides that are independent or rise together.
pub fn separated_p(pairs: &[(f64, f64)]) -> Option<f64> {
    let beyond = |constant: &dyn Fn(&(f64, f64)) -> f64, other: &dyn Fn(&(f64, f64)) -> f64| {
        let value = constant(&pairs[0]);
        pairs.iter().all(|pair| constant(pair) == value)
            && (pairs.iter().all(|pair| other(pair) > value) || pairs.iter().all(|pair| other(pair) < value))
    };
    let found = pairs.len() >= MIN_PAIRS && (beyond(&|p| p.0, &|p| p.1) || beyond(&|p| p.1, &|p| p.0));
    found.then(|| 2.0 * 0.25f64.powi(i32::try_from(pairs.len()).unwrap_or(i32::MAX)))
}

struct Single {
    difference: f64,
    method: Method,
    p: Option<f64>,
    spread: Option<Spread>,
    seeds: usize,
    /// Interval of the mean of the differences.
    interval: Option<(f64, f64)>,
}

/// Tests a scheme against the baseline for itself alone. `pooled`: the variance of all, where it allows pooling.
fn single(pairs: &[(f64, f64)], pooled: Option<Spread>) -> Option<Single> {
    let paired = PairedDifference::of(pairs)?;
    let difference = paired.difference.mean;
    let seeds = pairs.len();
    let interval = paired.difference.interval();
    let without = |method| Some(Single { difference, method, p: None, spread: None, seeds, interval });
    match paired.test {
        Test::TooFew => return without(Method::FewSeeds),
        Test::Equal => return without(Method::Equal),
        Test::Constant => return without(Method::Constant),
        Test::P(_) => {}
    }
    let deviation = standard_deviation(&pairs.iter().map(|(a, b)| a - b).collect::<Vec<_>>())?;
    let own = Spread { variance: deviation * deviation, freedom: seeds - 1 };
    let (method, spread) = pooled.map_or((Method::Paired, own), |spread| (Method::Blocked, spread));
    let p = two_sided(difference / (spread.variance / seeds as f64).sqrt(), spread.freedom);
    let (method, p) = match separated_p(pairs) {
        Some(separated) if separated < p => (Method::Separated, separated),
        _ => (method, p),
    };
    Some(Single { difference, method, p: Some(p), spread: Some(spread), seeds, interval })
}

/// Tests each of `others` against `baseline`; both hold the values at the compared seeds. With `sequential`, tests after
/// fewer seeds count too, each at its share of the level.
pub fn against(
    baseline: &[Option<f64>],
    others: &[&[Option<f64>]],
    sequential: Option<&Sequential>,
) -> Vec<Option<Tested>> {
    let looks = looks(baseline.len(), sequential);
    let last = looks.len() - 1;
    let mut tests: Vec<Option<Single>> = vec![];
    let mut least: Vec<Option<f64>> = vec![None; others.len()];
    for (number, (seeds, weight)) in looks.iter().enumerate() {
        let own = singles(&baseline[..*seeds], &others.iter().map(|other| &other[..*seeds]).collect::<Vec<_>>());
        for (least, single) in least.iter_mut().zip(&own) {
            if let Some(p) = single.as_ref().and_then(|single| single.p) {
                let spent = (p / weight).min(1.0);
                *least = Some(least.map_or(spent, |least| least.min(spent)));
            }
        }
        if number == last {
            tests = own;
        }
    }
    let family: Vec<(usize, f64)> = tests
        .iter()
        .enumerate()
        .filter_map(|(at, single)| match single.as_ref()?.method {
            // Comparisons without variance are members of the family too: its size must not depend on the results.
            Method::Equal => Some((at, 1.0)),
            Method::Constant => Some((at, 0.0)),
            _ => Some((at, least[at]?)),
        })
        .collect();
    let mut adjusted = vec![None; tests.len()];
    let corrected = holm(&family.iter().map(|member| member.1).collect::<Vec<_>>());
    family.iter().zip(corrected).for_each(|((at, _), p)| adjusted[*at] = Some(p));
    let level = looks[last].1;
    let tested = |(at, single): (usize, Single)| {
        let p_holm = single.p.and(adjusted[at]);
        let differs = match single.method {
            Method::Equal => Some(false),
            Method::Constant => Some(true),
            _ => p_holm.map(|p| p < SIGNIFICANCE),
        };
        let spread = single.spread.filter(|_| differs == Some(false));
        let per_seed = spread.map_or(1, |spread| spread.freedom / (single.seeds - 1).max(1));
        let needed = |spread: Spread| {
            let freedom = |seeds: usize| per_seed * seeds.saturating_sub(1).max(1);
            seeds_needed(single.difference, spread.variance, level * level_of(family.len()), freedom)
                .map(|needed| needed.max(single.seeds + 1))
        };
        Tested {
            difference: single.difference,
            interval: interval(&single, level),
            is_small: sequential.and_then(|plan| {
                let limit = plan.share * mean(&baseline.iter().flatten().copied().collect::<Vec<_>>())?.abs();
                let (low, high) = interval(&single, level / family.len().max(1) as f64)?;
                Some(low > -limit && high < limit)
            }),
            method: single.method,
            p_value: single.p,
            p_holm,
            differs,
            seeds_needed: spread.and_then(needed),
        }
    };
    tests.into_iter().enumerate().map(|(at, single)| Some(tested((at, single?)))).collect()
}

/// Returns the interim tests of a comparison of `seeds` seeds; without a plan, the only one.
pub fn looks(seeds: usize, sequential: Option<&Sequential>) -> Vec<(usize, f64)> {
    sequential.map_or_else(|| vec![(seeds, 1.0)], |plan| plan.looks_in(seeds))
}

fn interval(single: &Single, level: f64) -> Option<(f64, f64)> {
    let difference = single.difference;
    let Some(spread) = single.spread else { return single.interval };
    let point = t_quantile(spread.freedom, 1.0 - (1.0 - CONFIDENCE) * level / 2.0);
    let half = point * (spread.variance / single.seeds as f64).sqrt();
    if single.method == Method::Separated {
        // The difference has the sign of every single one: its interval is that of a quantity above zero.
        let factor = (half / difference.abs()).exp();
        let ends = (difference / factor, difference * factor);
        return Some((ends.0.min(ends.1), ends.0.max(ends.1)));
    }
    Some((difference - half, difference + half))
}

fn singles(baseline: &[Option<f64>], others: &[&[Option<f64>]]) -> Vec<Option<Single>> {
    let whole = |values: &[Option<f64>]| values.iter().copied().collect::<Option<Vec<f64>>>();
    let measured = others.iter().filter(|other| other.iter().any(Option::is_some));
    let all: Option<Vec<Vec<f64>>> = std::iter::once(&baseline).chain(measured).map(|values| whole(values)).collect();
    let pooled = all.and_then(|all| pooled(&all.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    let of = |other: &&[Option<f64>]| {
        let pairs: Vec<(f64, f64)> = other.iter().zip(baseline).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
        single(&pairs, pooled)
    };
    others.iter().map(of).collect()
}
