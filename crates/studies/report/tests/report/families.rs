//! Tests against the baseline, intervals with a bound, and numbers of seeds, against scipy and statsmodels. The expected
//! numbers are the output of scipy 1.17.1, statsmodels 0.15.0 and NumPy 2.4.6 (`pip install scipy statsmodels`):
//!
//! ```text
//! python3 - <<'PY'
//! import numpy as np
//! from scipy import stats
//! from statsmodels.stats.anova import AnovaRM
//! from statsmodels.stats.multitest import multipletests
//! from statsmodels.stats.power import TTestPower
//! import pandas as pd
//! x = {"ecmp": [7.44, 8.06, 7.25, 6.95, 6.69, 7.37], "letflow": [7.39, 7.90, 7.20, 7.09, 6.71, 7.16],
//!      "reps": [7.40, 7.82, 6.95, 6.84, 6.52, 7.11], "prime": [7.45, 7.97, 7.33, 7.13, 6.76, 7.49]}
//! rows = [(s, j, v) for s, vs in x.items() for j, v in enumerate(vs)]
//! table = AnovaRM(pd.DataFrame(rows, columns=["s", "j", "v"]), "v", "j", within=["s"]).fit().anova_table
//! a = np.array(list(x.values())); k, n = a.shape
//! r = a - a.mean(1, keepdims=True) - a.mean(0, keepdims=True) + a.mean()
//! mse, df = (r**2).sum() / ((k - 1) * (n - 1)), (k - 1) * (n - 1)
//! print(mse, df, table["Den DF"].iloc[0], n * ((a.mean(1) - a.mean())**2).sum() / (k - 1) / table["F Value"].iloc[0])
//! se = np.sqrt(2 * mse / n)
//! d = a[1:].mean(1) - a[0].mean()
//! p = 2 * stats.t.sf(abs(d) / se, df)
//! print(p, multipletests(p, 0.05, "holm")[1], [stats.t.interval(0.95, df, m, se) for m in d])
//! for v, bound in (([3.1, 9.8, 1.4, 2.0, 2.4], 1), ([0, 656, 12, 90, 3], 0)):
//!     v = np.array(v); m, h = v.mean(), stats.t.ppf(0.975, len(v) - 1) * stats.sem(v); g = m - bound
//!     print(m, bound + g * np.exp(-h / g), bound + g * np.exp(h / g), m - h)
//! m, h = 0.2, 0.1; print([stats.logistic.cdf(stats.logistic.ppf(m) + s * h / (m * (1 - m))) for s in (-1, 1)])
//! for d, level in ((1.0, 0.05), (0.5, 0.05), (0.2, 0.05), (0.5, 0.05 / 4)):
//!     print(d, level, TTestPower().solve_power(effect_size=d, alpha=level, power=0.8))
//! PY
//! ```

use crate::{
    common,
    common::{flow, large_flow as summary, meta, result, slowdowns_compared as compared, unfinish},
};
use anabranch_report::{ALL, Comparison, Sweep, headlines};
use anabranch_results::{Axis, Plan, Summary};
use anabranch_statistics::{Estimate, Method, Range, seeds_needed};
use anabranch_units::Time;

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1e-3), "{found} is not {expected}");
}

const ALIKE: [(&str, &[f64]); 4] = [
    ("ecmp", &[7.44, 8.06, 7.25, 6.95, 6.69, 7.37]),
    ("letflow", &[7.39, 7.90, 7.20, 7.09, 6.71, 7.16]),
    ("reps", &[7.40, 7.82, 6.95, 6.84, 6.52, 7.11]),
    ("prime", &[7.45, 7.97, 7.33, 7.13, 6.76, 7.49]),
];

#[test]
fn the_family_against_the_baseline_is_blocked_over_seeds() {
    let comparison = compared(&ALIKE);
    for (scheme, p, adjusted, (low, high)) in [
        ("letflow", 0.27754584, 0.39731522, (-0.149_402_230_282, 0.046_068_896_949)),
        ("reps", 0.00100382, 0.00301145, (-0.284_402_230_282, -0.088_931_103_051)),
        ("prime", 0.19865761, 0.39731522, (-0.036_068_896_949, 0.159_402_230_282)),
    ] {
        let row = comparison.row(ALL, scheme, "slowdown_p99").unwrap();
        assert_eq!(row.test, Some(Method::Blocked));
        // Flow times round to picoseconds.
        let near = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() - expected).abs() < 2e-5, "{found:?} {expected}")
        };
        near(row.p_value, p);
        near(row.p_holm, adjusted);
        near(row.difference_ci95_low, low);
        near(row.difference_ci95_high, high);
        assert_eq!(row.significant, Some(scheme == "reps"));
        assert_eq!(row.seeds_needed.is_some(), scheme != "reps");
    }
    let text = comparison.to_text(200);
    let tests = "tests against ecmp: t-tests blocked over seeds with the pooled error (15 degrees of freedom), Holm's correction over the 3 comparisons, 5 %";
    assert!(text.contains(tests), "{text}");
    assert!(text.contains("letflow needs about ") && !text.contains("reps needs"), "{text}");
}

/// `stats.ttest_rel` of the same packages; the spread of ecmp is ten times that of the others.
#[test]
fn unequal_variances_are_not_pooled() {
    let ecmp: &[f64] = &[7.31, 6.98, 8.12, 7.77, 7.05, 9.64];
    let comparison = compared(&[
        ("ecmp", ecmp),
        ("letflow", &[5.02, 5.41, 5.33, 4.87, 5.90, 5.12]),
        ("reps", &[3.11, 3.02, 3.35, 3.21, 2.98, 3.17]),
    ]);
    for (scheme, p, adjusted) in
        [("letflow", 0.0033719107722049147, 0.0033719107722049147), ("reps", 6.356644014355423e-05, 0.00012713288)]
    {
        let row = comparison.row(ALL, scheme, "slowdown_p99").unwrap();
        assert_eq!(row.test, Some(Method::Paired));
        assert!((row.p_value.unwrap() / p - 1.0).abs() < 1e-4 && (row.p_holm.unwrap() / adjusted - 1.0).abs() < 1e-4);
    }
    assert!(comparison.to_text(200).contains("paired t-tests, since the variances differ too much to pool"));
}

#[test]
fn an_interval_does_not_leave_the_range_of_its_quantity() {
    for (values, range, low, high) in [
        ([3.1, 9.8, 1.4, 2.0, 2.4], Range::AtLeast(1.0), 1.5754943750692096, 14.045479374315564),
        ([0.0, 656.0, 12.0, 90.0, 3.0], Range::AtLeast(0.0), 14.996057439896372, 1544.7286790440617),
    ] {
        let estimate = Estimate::of(&values).unwrap();
        let found = estimate.interval_in(range).unwrap();
        close(found.0, low);
        close(found.1, high);
        assert!(estimate.interval().unwrap().0 < 0.0, "Student's interval on the plain scale leaves the range");
    }
    let share = Estimate { mean: 0.2, half_width: Some(0.1), seeds: 5 };
    let found = share.interval_in(Range::Share).unwrap();
    close(found.0, 0.11802217732215327);
    close(found.1, 0.31836531239220817);
    // In a comparison: slowdown p99 of the first values above.
    let comparison = compared(&[("ecmp", &[3.1, 9.8, 1.4, 2.0, 2.4]), ("prime", &[1.0, 1.0, 1.01, 1.0, 1.0])]);
    for row in &comparison.rows {
        let least = if row.metric.starts_with("slowdown") || row.metric == "fct_ratio_max" { 1.0 } else { 0.0 };
        assert!(row.ci95_low.is_none_or(|low| low >= least), "{row:?}");
    }
    let row = comparison.row(ALL, "ecmp", "slowdown_p99").unwrap();
    assert!((row.ci95_low.unwrap() - 1.5754944).abs() < 1e-4, "{row:?}");
    assert!(comparison.to_text(100).contains("3.740 \u{2212}2.2/+10"), "{}", comparison.to_text(100));
}

/// The solution of statsmodels takes the noncentral t distribution; ours is the usual approximation.
#[test]
fn seeds_needed_are_those_of_statsmodels() {
    for (effect, level, expected) in [
        (1.0, 0.05, 9.93785094105438),
        (0.5, 0.05, 33.36713118431779),
        (0.2, 0.05, 198.150820955562),
        (0.5, 0.0125, 47.75843252952455),
    ] {
        let found = seeds_needed(effect, 1.0, level, |seeds| seeds - 1).unwrap() as f64;
        assert!(found >= expected - 1.0 && found <= expected + 1.0, "{effect} at {level}: {found}, {expected}");
    }
    assert_eq!(seeds_needed(0.0, 1.0, 0.05, |seeds| seeds - 1), None);
    assert_eq!(seeds_needed(1e-6, 1.0, 0.05, |seeds| seeds - 1), None);
}

/// `stats.ttest_rel([656, 3, 2, 9, 40], [0] * 5)` has p = 0.33. That all are above zero where the other side has zero at
/// every seed has a probability of at most 2 / 4^5 = 0.00195 for sides alike.
#[test]
fn zero_against_many_is_significant() {
    let run = |scheme: &str, seed: u64, trimmed: u64| {
        let mut own = summary(scheme, seed, 2.0 + seed as f64 / 10.0);
        own.counters.totals.trimmed = Some(trimmed);
        own
    };
    let ecmp = [656, 3, 2, 9, 40].into_iter().zip(1..).map(|(trimmed, seed)| run("ecmp", seed, trimmed));
    let runs: Vec<Summary> = ecmp.chain((1..=5).map(|seed| run("prime", seed, 0))).collect();
    let comparison = Comparison::new(&runs, &["ecmp".to_string(), "prime".to_string()], "ecmp");
    let row = comparison.row(ALL, "prime", "trimmed").unwrap();
    assert_eq!((row.test, row.significant), (Some(Method::Separated), Some(true)));
    close(row.p_value.unwrap(), 2.0 / 1024.0);
    assert!(row.difference_ci95_high.unwrap() < 0.0, "the interval agrees: {row:?}");
    let ecmp = comparison.row(ALL, "ecmp", "trimmed").unwrap();
    assert_eq!((row.leading, ecmp.leading), (Some(true), Some(false)));
    // A value that both sides have separates nothing.
    let mut runs = runs;
    runs[0].counters.totals.trimmed = Some(0);
    let comparison = Comparison::new(&runs, &["ecmp".to_string(), "prime".to_string()], "ecmp");
    assert_eq!(comparison.row(ALL, "prime", "trimmed").unwrap().test, Some(Method::Paired));
}

#[test]
fn letters_stand_only_where_they_decide() {
    let comparison = compared(&[("ecmp", &[3.1, 9.8, 1.4, 2.0, 2.4]), ("prime", &[1.1, 5.0, 2.0, 1.2, 3.0])]);
    assert!(comparison.rows.iter().filter(|row| row.metric == "slowdown_p99").all(|row| row.group.is_empty()));
    let row = comparison.row(ALL, "prime", "slowdown_p99").unwrap();
    let (needed, text) = (row.seeds_needed.unwrap(), comparison.to_text(100));
    assert!(needed > 5, "{needed}");
    assert!(text.contains("no letters") && text.contains(&format!("prime needs about {needed} seeds")), "{text}");
    let said: Vec<String> = headlines(&comparison, false).into_iter().flat_map(|h| h.sentences).collect();
    assert!(said.iter().any(|sentence| sentence.contains(&format!("about {needed} seeds"))), "{said:?}");
}

#[test]
fn nothing_is_compared_with_a_censored_side() {
    let censored = |scheme: &str, seed: u64| {
        let mut flows = vec![flow(0, 300_000, Time::ZERO, 1.5), flow(1, 300_000, Time::ZERO, 1.2)];
        unfinish(&mut flows[1]);
        common::summary(&result(flows), &meta(scheme, seed))
    };
    let runs = |baseline: &str| -> Vec<Summary> {
        (1..=5)
            .flat_map(|seed| {
                let wobble = seed as f64 / 10.0;
                let others = ["ecmp", "ops", "prime"].into_iter().filter(|scheme| *scheme != baseline).zip(1..);
                let others = others.map(|(scheme, at)| summary(scheme, seed, 2.0 + wobble * f64::from(at)));
                others.chain([censored(baseline, seed)]).collect::<Vec<_>>()
            })
            .collect()
    };
    let names = ["ecmp", "ops", "prime"].map(str::to_string);
    // One seed of one scheme is enough, and no metric is compared, counts of packets included.
    let mut one = runs("");
    one.retain(|run| !run.scheme.is_empty());
    let at = one.iter().position(|run| run.scheme == "prime" && run.seed == 4).unwrap();
    one[at] = censored("prime", 4);
    let comparison = Comparison::new(&one, &names, "ecmp");
    for row in comparison.rows.iter().filter(|row| row.scheme == "prime") {
        let compared = (row.ratio_to_baseline, row.difference, row.p_value, row.p_holm);
        assert_eq!(compared, (None, None, None, None), "{row:?}");
        assert!(row.group.is_empty() && !row.best && row.leading.is_none() && row.significant.is_none(), "{row:?}");
        assert_eq!(row.test, Some(Method::Censored));
    }
    assert!(comparison.row(ALL, "ops", "slowdown_p99").unwrap().difference.is_some(), "the others are compared");
    assert!(comparison.to_text(200).contains("! prime is not compared: 1 measured flow did not finish"));
    // The baseline: nothing is compared with it.
    let comparison = Comparison::new(&runs("ecmp"), &names, "ecmp");
    for row in &comparison.rows {
        assert_eq!((row.ratio_to_baseline, row.difference, row.p_value), (None, None, None), "{row:?}");
        assert_eq!(row.test, Some(if row.scheme == "ecmp" { Method::Censored } else { Method::BaselineCensored }));
    }
    let text = comparison.to_text(200);
    assert!(text.contains("it is the baseline, so no scheme has a ratio, a difference or a test"), "{text}");
    // The seeds suffice; what is missing is the baseline.
    assert!(!text.contains("too few seeds") && !text.contains("the figures of the others"), "{text}");
    let ops = comparison.row(ALL, "ops", "slowdown_p99").unwrap();
    assert_eq!(ops.leading, Some(true), "ops and prime are compared with each other");
    // What nothing is compared with is not the lowest of all.
    let mut pair = runs("ecmp");
    pair.retain(|run| run.scheme != "prime");
    let comparison = Comparison::new(&pair, &names[..2], "ecmp");
    let row = comparison.row(ALL, "ops", "slowdown_p99").unwrap();
    assert_eq!(row.leading, None, "{row:?}");
    // A network without progress.
    let mut stalled = runs("");
    stalled.retain(|run| !run.scheme.is_empty());
    stalled[0].status = Some(anabranch_results::RunStatus::Stalled);
    let scheme = stalled[0].scheme.clone();
    let comparison = Comparison::new(&stalled, &names, "ecmp");
    assert_eq!(comparison.row(ALL, &scheme, "slowdown_p99").unwrap().test, Some(Method::Censored));
    assert!(comparison.to_text(200).contains("(stalled)"));
}

/// Where a is lower than b at one point, and higher at another, by more than chance, the order flips; elsewhere it does not.
#[test]
fn order_of_schemes_that_flips_is_told() {
    const LOW: &[f64] = &[1.1, 1.2, 1.1, 1.3, 1.2];
    const HIGH: &[f64] = &[2.1, 2.3, 2.2, 2.2, 2.4];
    let conclusions = |points: [[&[f64]; 2]; 2]| {
        let folder = anabranch_testkit::folder();
        let axis = Axis { key: "workload.0.load".into(), values: vec!["0.3".into(), "0.8".into()], ..Axis::default() };
        let names = ["a", "b"].map(String::from);
        let plan = Plan { axes: vec![axis], entries: names.to_vec(), baseline: "a".into(), ..Plan::default() };
        std::fs::write(folder.join("plan.json"), serde_json::to_string(&plan).unwrap()).unwrap();
        let mut sweep = Sweep::read(&folder).unwrap().unwrap();
        sweep.comparisons = points.map(|[a, b]| Some(compared(&[("a", a), ("b", b)]))).to_vec();
        sweep.conclusions().join("\n")
    };
    let flips = conclusions([[LOW, HIGH], [HIGH, LOW]]);
    let told = "The order flips: a is significantly lower than b at load = 0.3, and higher at load = 0.8.";
    assert!(flips.contains(told), "{flips}");
    for same in [[[LOW, HIGH], [LOW, HIGH]], [[LOW, HIGH], [HIGH, HIGH]], [[LOW, LOW], [HIGH, LOW]]] {
        assert!(!conclusions(same).contains("flips"), "{same:?}");
    }
}
