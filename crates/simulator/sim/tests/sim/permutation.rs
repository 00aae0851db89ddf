//! PRIME comes near the serialisation bound of a permutation.

use crate::common::*;
use anabranch_units::Time;

/// Arrival of the last packet of a flow at line rate.
fn bound(size: u64, links: u64) -> Time {
    let packets = size / 4096;
    Time::from_ps(packets * 83_200 + (links - 1) * 83_200 + links * 1_000_000)
}

/// 8 MiB on 128 hosts at 400 Gb/s: 2048 packets of 83.2 ns, three more hops, four links of 1 us: 174.64 us.
#[test]
#[ignore = "slow without optimisation: about 10 s in release"]
fn prime_is_within_two_percent_of_the_bound_and_ahead_of_ops_and_reps() {
    let topology = fat_tree(2, 16);
    let size = 8 << 20;
    let bound = bound(size, 4);
    assert_eq!(bound, Time::from_ps(174_643_200));
    let worst = |scheme: &str, seed: u64| {
        let result = run(&setup(topology.clone(), permutation(&topology, size, seed), scheme));
        result.flows.iter().map(|f| f.fct_rx.unwrap()).max().unwrap()
    };
    for seed in [1, 2, 3] {
        let prime = worst("prime", seed);
        assert!(prime.ps() <= bound.ps() / 100 * 102, "seed {seed}: {prime} against {bound}");
        assert!(prime < worst("ops", seed) && prime < worst("reps", seed), "seed {seed}: {prime}");
    }
}
