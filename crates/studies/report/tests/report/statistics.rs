//! Statistics against independent packages. The expected numbers are the output of scipy 1.17.1, statsmodels 0.15.0 and NumPy
//! 2.4.6 (`pip install scipy statsmodels`) for the data below:
//!
//! ```text
//! python3 - <<'PY'
//! from itertools import combinations
//! import numpy as np
//! from scipy import stats
//! from statsmodels.stats.multitest import multipletests
//! x = {"ecmp": [7.31, 6.98, 8.12, 7.77, 7.05, 7.64], "letflow": [5.02, 5.41, 5.33, 4.87, 5.90, 5.12],
//!      "reps": [3.11, 3.02, 3.35, 3.21, 2.98, 3.17], "prime": [3.05, 3.06, 3.29, 3.12, 3.01, 3.16]}
//! pairs = list(combinations(x, 2))
//! tests = [stats.ttest_rel(x[a], x[b]) for a, b in pairs]
//! print(multipletests([t.pvalue for t in tests], 0.05, "holm")[1])
//! for pair, t in zip(pairs, tests): print(pair, t.pvalue, t.confidence_interval(0.95))
//! for k, v in x.items():
//!     print(k, np.mean(v), np.std(v, ddof=1), stats.t.interval(0.95, 5, np.mean(v), stats.sem(v)), np.quantile(v, [.5, .95, .99]))
//! print(multipletests([t.pvalue for t in tests[:3]], 0.05, "holm")[1])
//! print(multipletests([0.01, 0.04, 0.03, 0.005, 0.9, 0.0499], 0.05, "holm")[1])
//! PY
//! ```

use crate::common::slowdowns_compared;
use anabranch_report::ALL;
use anabranch_statistics::{Estimate, PairedDifference, holm, quantile, standard_deviation};

const ECMP: [f64; 6] = [7.31, 6.98, 8.12, 7.77, 7.05, 7.64];
const LETFLOW: [f64; 6] = [5.02, 5.41, 5.33, 4.87, 5.90, 5.12];
const REPS: [f64; 6] = [3.11, 3.02, 3.35, 3.21, 2.98, 3.17];
const PRIME: [f64; 6] = [3.05, 3.06, 3.29, 3.12, 3.01, 3.16];

/// Data of a pair, its p-value, interval of its mean difference, and p-value after Holm's correction.
type Row = ([f64; 6], [f64; 6], f64, (f64, f64), f64);

const PAIRS: [Row; 6] = [
    (ECMP, LETFLOW, 0.0005846616125078733, (1.4690382841521266, 2.9376283825145397), 0.0011693232250157466),
    (ECMP, REPS, 4.110442805444141e-07, (4.0107872265649025, 4.665879440101763), 2.4662656832664847e-06),
    (ECMP, PRIME, 7.44057798650143e-07, (3.9922028760864157, 4.734463790580249), 3.720288993250715e-06),
    (LETFLOW, REPS, 8.34683104725143e-05, (1.6619966435447064, 2.608003356455293), 0.0002504049314175429),
    (LETFLOW, PRIME, 4.793540301891685e-05, (1.7330460380073394, 2.586953961992661), 0.0001917416120756674),
    (REPS, PRIME, 0.30173671041983363, (-0.030827608844221668, 0.08082760884422163), 0.30173671041983363),
];

/// Checks equality to eight significant digits; both packages approximate the tail of a t distribution.
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-8 * expected.abs().max(1e-3), "{found} is not {expected}");
}

#[test]
fn paired_t_tests_match_scipy() {
    for (first, second, p, (low, high), _) in PAIRS {
        let pairs: Vec<(f64, f64)> = first.into_iter().zip(second).collect();
        let found = PairedDifference::of(&pairs).unwrap();
        close(found.p_value().unwrap(), p);
        let interval = found.difference.interval().unwrap();
        close(interval.0, low);
        close(interval.1, high);
    }
}

#[test]
fn holm_correction_matches_statsmodels() {
    let found = holm(&PAIRS.map(|pair| pair.2));
    found.iter().zip(PAIRS).for_each(|(found, pair)| close(*found, pair.4));
    let found = holm(&[0.01, 0.04, 0.03, 0.005, 0.9, 0.0499]);
    found.iter().zip([0.05, 0.12, 0.12, 0.03, 0.9, 0.12]).for_each(|(found, expected)| close(*found, expected));
}

#[test]
fn intervals_and_quantiles_match_scipy_and_numpy() {
    let of_reps = [3.1399999999999997, 3.315, 3.343];
    let expected = [
        (ECMP, 7.478333333333333, 0.44341477948605457, (7.012998060484048, 7.943668606182618), [7.475, 8.0325, 8.1025]),
        (LETFLOW, 5.275, 0.3646779401060614, (4.892293972568846, 5.657706027431154), [5.225, 5.7775, 5.8755]),
        (REPS, 3.1400000000000006, 0.13475904422338417, (2.998579056193662, 3.281420943806339), of_reps),
        (PRIME, 3.115, 0.1009455298663592, (3.009064163270058, 3.2209358367299417), [3.09, 3.2575, 3.2835]),
    ];
    for (values, mean, deviation, (low, high), quantiles) in expected {
        let found = Estimate::of(&values).unwrap();
        close(found.mean, mean);
        close(standard_deviation(&values).unwrap(), deviation);
        close(found.interval().unwrap().0, low);
        close(found.interval().unwrap().1, high);
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        for (q, expected) in [0.5, 0.95, 0.99].into_iter().zip(quantiles) {
            close(quantile(&sorted, q).unwrap(), expected);
        }
    }
}

/// The same data as runs of one flow each, up to the rounding of flow times to picoseconds.
#[test]
fn comparison_matches_its_data() {
    let comparison = slowdowns_compared(&[("ecmp", &ECMP), ("letflow", &LETFLOW), ("reps", &REPS), ("prime", &PRIME)]);
    let row = |scheme| comparison.row(ALL, scheme, "slowdown_p99").unwrap();
    for (scheme, p, adjusted) in [
        ("letflow", 0.0005846616125078733, 0.0005846616125078733),
        ("reps", 4.110442805444141e-07, 1.2331328416332423e-06),
        ("prime", 7.44057798650143e-07, 1.488115597300286e-06),
    ] {
        let near =
            |found: Option<f64>, expected: f64| assert!((found.unwrap() / expected - 1.0).abs() < 1e-5, "{scheme}");
        near(row(scheme).p_value, p);
        near(row(scheme).p_holm, adjusted);
    }
    // reps and prime do not differ significantly (p = 0.30); every other pair does.
    let found = ["ecmp", "letflow", "reps", "prime"].map(|name| (row(name).group.as_str(), row(name).leading));
    assert_eq!(found, [("c", Some(false)), ("b", Some(false)), ("a", Some(true)), ("a", Some(true))]);
}
