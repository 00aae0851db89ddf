//! Relations between runs that hold for any numbers.

mod common;
use anabranch_backend::Setup;
use anabranch_outcome::RunResult;
use anabranch_settings::{Parameters, Raw};
use anabranch_units::Time;
use common::*;

fn times(result: &RunResult) -> Vec<(Time, Time)> {
    result.flows.iter().map(|f| (f.fct_rx.unwrap(), f.fct_ack.unwrap())).collect()
}

fn scaled(rate: &str, delay: &str, scheme: &str) -> Setup {
    let keys = [("tiers", Raw::Int(2)), ("radix", Raw::Int(8)), ("link_rate", text(rate)), ("link_delay", text(delay))];
    let topology = topology("fat-tree", &keys);
    let set = permutation(&topology, 300 * 4096, 11);
    let mut setup = setup(topology, set, scheme);
    // All other times would have to be scaled too; without congestion control there are none.
    uet(&mut setup).set("congestion_control", &text("none")).unwrap();
    uet(&mut setup).set("rto", &text("10ms")).unwrap();
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
