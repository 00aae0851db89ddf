//! ECMP as balls in bins, and the resulting completion time of a permutation.

use crate::common::*;
use anabranch_backend::Measure;

#[test]
fn ecmp_flows_fall_on_uplinks_as_balls_into_bins() {
    // 16 leaves with 8 flows each over 8 uplinks, 40 seeds: 640 experiments of 8 balls into 8 bins.
    let topology = fat_tree(2, 16);
    let (mut empty, mut experiments, mut largest) = (0u64, 0u64, 0u64);
    for seed in 0..40 {
        let mut setup = setup(topology.clone(), permutation(&topology, 4096, 100 + seed), "ecmp");
        setup.seed = seed;
        setup.measure = Measure { uplink_counts: true, ..Measure::default() };
        let result = run(&setup);
        for leaf in 0..16 {
            let name = format!("leaf{leaf}");
            let mut bins = std::collections::BTreeMap::new();
            for count in result.uplink_counts.iter().filter(|c| c.from == name) {
                *bins.entry(count.to.clone()).or_insert(0u64) += count.packets;
            }
            assert_eq!(bins.values().sum::<u64>(), 8);
            experiments += 1;
            empty += 8 - bins.len() as u64;
            largest += bins.values().max().copied().unwrap();
        }
    }
    let (empty, largest) = (empty as f64 / experiments as f64, largest as f64 / experiments as f64);
    // Expected empty bins: 8 (7/8)^8 = 2.749; standard deviation of one experiment 0.83, of the mean of 640 0.033.
    assert!((empty - 2.749).abs() < 4.0 * 0.033, "{empty}");
    let expected = expected_largest_bin();
    assert!((largest - expected).abs() < 4.0 * 0.75 / 640f64.sqrt(), "{largest} {expected}");
}

/// Mean of the largest of 8 bins with 8 balls, over all partitions of 8 balls (multinomial weights).
fn expected_largest_bin() -> f64 {
    fn factorial(n: u64) -> f64 {
        (1..=n).map(|i| i as f64).product()
    }
    fn go(bins: u64, left: u64, largest: u64, weight: f64, sum: &mut f64) {
        if bins == 1 {
            *sum += weight / factorial(left) * largest.max(left) as f64;
            return;
        }
        for here in 0..=left {
            go(bins - 1, left - here, largest.max(here), weight / factorial(here), sum);
        }
    }
    let mut sum = 0.0;
    go(8, 8, 0, factorial(8) / 8f64.powi(8), &mut sum);
    sum
}
