//! Relations between runs that hold for any numbers.

use crate::common::*;
use anabranch_backend::Setup;
use anabranch_outcome::RunResult;
use anabranch_units::Time;
use proptest::prelude::*;

fn times(result: &RunResult) -> Vec<(Time, Time)> {
    result.flows.iter().map(|f| (f.fct_rx.unwrap(), f.fct_ack.unwrap())).collect()
}

fn scaled(rate: &str, delay: &str, scheme: &str) -> Setup {
    let keys = format!("tiers=2 radix=8 link_rate={rate} link_delay={delay}");
    let topology = topology("fat-tree", &keys);
    let set = permutation(&topology, 300 * 4096, 11);
    let mut setup = setup(topology, set, scheme);
    // All other times would have to be scaled too; without congestion control there are none.
    set_keys(uet(&mut setup), "congestion_control=none rto=10ms");
    setup
}

#[test]
fn rates_times_k_and_delays_by_k_scale_all_times() {
    for scheme in ["ops", "reps", "prime", "ar"] {
        let slow = run(&scaled("100Gbps", "4us", scheme));
        let fast = run(&scaled("400Gbps", "1us", scheme));
        for (slow, fast) in times(&slow).into_iter().zip(times(&fast)) {
            assert_eq!(slow.0, fast.0 * 4, "{scheme}");
            assert_eq!(slow.1, fast.1 * 4, "{scheme}");
        }
    }
}

#[test]
fn symmetric_traffic_loads_links_symmetrically() {
    // Round-robin spraying: every uplink of a leaf carries the same packets to within one cycle per flow.
    let topology = fat_tree(2, 8);
    let set = permutation(&topology, 400 * 4096, 2);
    let result = run(&setup(topology, set, "co-prime"));
    let up: Vec<u64> =
        result.links.iter().filter(|l| l.direction == "up" && l.tier != "host").map(|l| l.bytes / 4160).collect();
    // Four flows of 400 packets per leaf over four uplinks, and control packets.
    for &packets in &up {
        assert!(packets.abs_diff(400) <= 4 + 10, "{up:?}");
    }
}

#[test]
fn unrelated_workload_changes_nothing() {
    // Flows among hosts 24..32 share no link with those among hosts 0..16: own leaves, own ports of the spines.
    let topology = fat_tree(2, 8);
    let inner: Vec<_> = (0..8).map(|h| (h, h + 8, 100 * 4096, 0)).collect();
    let alone = run(&setup(topology.clone(), flows(&inner), "ops"));
    let mut set = flows(&inner);
    let extra = flows(&(24..28).map(|h| (h, h + 4, 100 * 4096, 0)).collect::<Vec<_>>());
    set.flows.extend(extra.flows.into_iter().map(|mut f| {
        f.key = !f.key;
        f
    }));
    let both = run(&setup(topology, set, "ops"));
    assert_eq!(times(&alone)[..], times(&both)[..8]);
}

#[test]
fn half_the_load_is_no_worse_at_the_median() {
    let topology = fat_tree(2, 8);
    let median = |gap: u64| {
        let list: Vec<_> =
            (0..2000u64).map(|i| ((i * 7 % 32) as u32, ((i * 7 + 5 + i % 20) % 32) as u32, 40_960, i * gap)).collect();
        let list: Vec<_> = list.into_iter().filter(|f| f.0 != f.1).collect();
        let result = run(&setup(topology.clone(), flows(&list), "ops"));
        let mut all: Vec<_> = result.flows.iter().map(|f| f.fct_rx.unwrap().ps() * 1000 / f.ideal_rx.ps()).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    assert!(median(60_000) <= median(30_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Equal senders through one full queue, with any starts within four packets: of two, one retransmits as many packets as
    /// the other, to within half a percent and three packets. More, and go-back-N, differ by timeouts together or apart;
    /// none starves.
    #[test]
    fn equal_senders_lose_alike(
        senders in 2u32..5, phase in prop_oneof![Just(0u64), 0..4 * 4 * WIRE], gbps in prop_oneof![Just(100i64), 1..400i64],
        pooled: bool, lossy: bool, go_back: bool, seed: u64,
    ) {
        let keys = format!("leaves=1 spines=1 hosts_per_leaf={} link_rate={gbps}Gbps link_delay=500ns", senders + 1);
        let (packets, offset) = (if go_back { 200 } else { 2_000 }, |host: u32| u64::from(host) * phase % (4 * 4 * WIRE));
        let list: Vec<_> = (0..senders).map(|host| (host, senders, packets * 4096, offset(host))).collect();
        let mut setup = roce_setup(topology("leaf-spine", &keys), flows(&list), "ecmp", Profile::Irn);
        setup.seed = seed;
        let buffer = if pooled { "200kB" } else { "0B" };
        set_keys(&mut setup.fabric, &format!("shared_buffer={buffer} queue_limit=100kB"));
        (setup.fabric.ecn, setup.fabric.trimming) = (lossy, false);
        let recovery = if go_back { "go-back-n" } else { "irn" };
        set_keys(roce(&mut setup), &format!("window=1MB congestion_control=none recovery={recovery}"));
        let result = run(&setup);
        let lost: Vec<f64> = result.flows.iter().map(|flow| flow.metrics.retransmitted_packets.unwrap() as f64).collect();
        let mean = lost.iter().sum::<f64>() / lost.len() as f64;
        prop_assert!(mean > packets as f64 / 10.0, "{lost:?}");
        let allowed = if senders == 2 && !go_back { 0.005 * mean + 3.0 } else { mean / 2.0 };
        prop_assert!(lost.iter().all(|count| (count - mean).abs() <= allowed), "{lost:?}, {allowed}");
    }
}
