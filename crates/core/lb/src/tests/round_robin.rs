//! Properties of the multi-part round robin of CO-PRIME and PRIME (PRIME §III-B, §III-D).

use crate::{
    Feedback, FlowInfo, HostScheme, Tag,
    host::testing::{flow, send},
    registry::{Host, HostParameters},
};
use anabranch_units::Time;
use proptest::prelude::*;

fn open(scheme: &str, seed: u64, host: u64, key: u64, uplinks: &[u32]) -> Host {
    let mut host = HostParameters::named(scheme).unwrap().build(seed, host);
    host.open(Time::ZERO, 0, &FlowInfo { key, connection: key, ..flow(uplinks) });
    host
}

fn sends(host: &mut Host, count: u32) -> Vec<Tag> {
    (0..count).map(|_| send(host)).collect()
}

fn bits(size: u32) -> u32 {
    size.next_power_of_two().trailing_zeros()
}

proptest! {
    #[test]
    fn passes_are_exact(
        scheme in prop_oneof![Just("co-prime"), Just("prime")],
        uplinks in prop::collection::vec(1u32..9, 1..4),
        seed in any::<u64>(),
    ) {
        let paths: u32 = uplinks.iter().product();
        prop_assume!(paths > 1);
        let mut host = open(scheme, seed, 1, 2, &uplinks);
        for _ in 0..5 {
            let tags = sends(&mut host, paths);
            let mut sorted = tags.clone();
            sorted.sort();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), paths as usize);
            // Part i changes only every U0 * ... * U(i-1) packets, and runs through its uplinks once per U0 * ... * Ui.
            let (mut shift, mut step) = (0, 1usize);
            for &size in &uplinks {
                let values: Vec<u32> = tags.iter().map(|tag| tag >> shift & ((1 << bits(size)) - 1)).collect();
                for run in values.chunks(step * size as usize) {
                    let mut seen = Vec::new();
                    for same in run.chunks(step) {
                        prop_assert!(same.iter().all(|v| *v == same[0]));
                        seen.push(same[0]);
                    }
                    seen.sort();
                    prop_assert_eq!(seen, (0..size).collect::<Vec<_>>());
                }
                shift += bits(size);
                step *= size as usize;
            }
            prop_assert!(tags.iter().all(|tag| tag >> shift == 0));
        }
    }

    #[test]
    fn prime_without_signals_is_co_prime(uplinks in prop::collection::vec(1u32..9, 1..4), seed in any::<u64>()) {
        let count = 3 * uplinks.iter().product::<u32>() + 120;
        prop_assert_eq!(
            sends(&mut open("prime", seed, 1, 2, &uplinks), count),
            sends(&mut open("co-prime", seed, 1, 2, &uplinks), count)
        );
    }
}

#[test]
fn orders_differ_by_host_flow_seed_and_pass() {
    // Two of the 16! orders are equal with probability 5e-14.
    let order = |seed, host, key| sends(&mut open("co-prime", seed, host, key, &[16]), 32);
    let base = order(1, 1, 1);
    for other in [order(2, 1, 1), order(1, 2, 1), order(1, 1, 2)] {
        assert_ne!(base[..16], other[..16]);
    }
    assert_ne!(base[..16], base[16..], "reshuffled after a pass");
    assert_eq!(base, order(1, 1, 1));
}

#[test]
fn every_uplink_comes_first_equally_often() {
    // 8000 passes, 7 degrees of freedom: 24.3 is exceeded with probability 0.001.
    let mut host = open("co-prime", 3, 1, 1, &[8]);
    let mut first = [0u32; 8];
    for pass in sends(&mut host, 64_000).chunks(8) {
        first[pass[0] as usize] += 1;
    }
    let chi: f64 = first.iter().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi < 24.3, "{first:?}");
}

#[test]
fn all_but_one_penalised_leaves_one() {
    // 4096 paths; all but path 17 get a NACK (100 packets). For 100 packets only path 17 is free.
    let mut host = open("prime", 1, 1, 1, &[64, 64]);
    sends(&mut host, 100);
    for tag in (0..4096).filter(|&tag| tag != 17) {
        host.on_nack(Time::ZERO, 0, tag);
    }
    assert_eq!(sends(&mut host, 100), vec![17; 100]);
    let after = sends(&mut host, 100);
    assert!(after.iter().filter(|&&tag| tag == 17).count() <= 2, "{after:?}");
}

#[test]
fn foreign_feedback_is_ignored() {
    let mut host = open("prime", 1, 1, 1, &[6]);
    let mut same = open("prime", 1, 1, 1, &[6]);
    for tag in [6, 7, 8, u32::MAX] {
        host.on_nack(Time::ZERO, 0, tag);
        let feedback = Feedback { tag, ecn: true, packets: 1, bytes: 1, ..Feedback::default() };
        host.on_ack(Time::ZERO, 0, &feedback);
    }
    assert_eq!(sends(&mut host, 300), sends(&mut same, 300));
}
