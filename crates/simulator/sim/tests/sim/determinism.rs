//! The same fingerprint for any number of threads, for lazy and eager ports, and twice in a row.

use crate::common::*;
use anabranch_backend::Setup;
use anabranch_settings::{Parameters, Raw};
use proptest::prelude::*;

const SCHEMES: [&str; 12] =
    ["ecmp", "ops", "reps", "bitmap", "mixed", "plb", "flowbender", "ar", "drill", "rr", "co-prime", "prime"];

fn fingerprints(setup: &Setup) -> Vec<(Option<u64>, u64)> {
    let threads = [1, 2, 3].map(|threads| {
        let result = anabranch_sim::run(setup, threads, &mut |_| true).expect("a run");
        (result.fingerprint, result.packet_hops.unwrap())
    });
    let eager = [1, 2].map(|threads| {
        let result = run_eager(setup, threads);
        (result.fingerprint, result.packet_hops.unwrap())
    });
    let again = run(setup);
    threads.into_iter().chain(eager).chain([(again.fingerprint, again.packet_hops.unwrap())]).collect()
}

fn assert_one(setup: &Setup, what: &str) {
    let all = fingerprints(setup);
    assert!(all.iter().all(|f| *f == all[0]), "{what}: 1, 2, 3 threads, eager 1, 2, again: {all:x?}");
}

#[test]
fn permutation_under_every_scheme() {
    for tiers in [2, 3] {
        let topology = fat_tree(tiers, 8);
        for scheme in SCHEMES {
            assert_one(&setup(topology.clone(), permutation(&topology, 200 * 4096, 3), scheme), scheme);
        }
    }
}

#[test]
fn incast_with_trimming() {
    let topology = fat_tree(2, 8);
    let list: Vec<_> = (4..32).map(|h| (h, 0, 100 * 4096, u64::from(h % 3) * 1000)).collect();
    for (scheme, trim) in [("prime", "arrival"), ("reps", "coin"), ("ar", "arrival")] {
        let mut setup = setup(topology.clone(), flows(&list), scheme);
        setup.fabric.set("trim", &text(trim)).unwrap();
        setup.fabric.set("queue_limit", &text("0.3bdp")).unwrap();
        assert!(run(&setup).counters.trimmed.unwrap() > 0);
        assert_one(&setup, scheme);
    }
}

#[test]
fn drop_tail_with_timeouts() {
    let topology = fat_tree(2, 8);
    let list: Vec<_> = (4..20).map(|h| (h, 0, 100 * 4096, 0)).collect();
    let mut setup = setup(topology, flows(&list), "ops");
    setup.fabric.set("trimming", &Raw::Bool(false)).unwrap();
    setup.fabric.set("queue_limit", &text("0.2bdp")).unwrap();
    let result = run(&setup);
    assert!(result.counters.dropped.unwrap() > 0 && result.counters.timeouts.unwrap() > 0, "{:?}", result.counters);
    assert_one(&setup, "drop tail");
}

#[test]
fn several_classes() {
    let topology = fat_tree(2, 8);
    for scheduling in ["strict", "wrr"] {
        let mut flows = permutation(&topology, 100 * 4096, 5);
        flows.flows.iter_mut().step_by(3).for_each(|f| f.class = 1);
        let mut setup = setup(topology.clone(), flows, "ecmp");
        setup.fabric.set("classes", &Raw::List(vec![text("a"), text("b")])).unwrap();
        setup.fabric.set("class_weights", &Raw::List(vec![Raw::Int(7), Raw::Int(3)])).unwrap();
        setup.fabric.set("scheduling", &text(scheduling)).unwrap();
        assert_one(&setup, scheduling);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Several classes at each NIC, at any rate: most have no whole number of picoseconds per byte.
    #[test]
    fn classes_of_nics(
        mbps in 100i64..900_000, delay_ns in 10i64..2_000, weights in prop::collection::vec(1i64..100, 2..5),
        is_wrr in any::<bool>(), transport in 0usize..4, number in 2usize..80, most in 64u64..60_000,
        span in 1u64..40_000_000, seed in any::<u64>(),
    ) {
        let keys = [
            ("leaves", Raw::Int(2)),
            ("spines", Raw::Int(2)),
            ("hosts_per_leaf", Raw::Int(2)),
            ("link_rate", text(&format!("{mbps}Mbps"))),
            ("link_delay", text(&format!("{delay_ns}ns"))),
        ];
        let fabric = topology("leaf-spine", &keys);
        let mut flows = random_flows(&fabric, number, most, span, seed);
        flows.flows.iter_mut().enumerate().for_each(|(i, flow)| flow.class = (i % weights.len()) as u8);
        let mut setup = match transport {
            0 => setup(fabric, flows, "ops"),
            1 => unconstrained(setup(fabric, flows, "ecmp")),
            2 => roce_setup(fabric, flows, "ecmp", Profile::Lossless),
            _ => roce_setup(fabric, flows, "flowbender", Profile::Irn),
        };
        // Pauses often.
        setup.fabric.set("pfc_alpha", &Raw::Float(0.001)).unwrap();
        let names = (0..weights.len()).map(|class| text(&format!("class{class}"))).collect();
        setup.fabric.set("classes", &Raw::List(names)).unwrap();
        setup.fabric.set("class_weights", &Raw::List(weights.into_iter().map(Raw::Int).collect())).unwrap();
        setup.fabric.set("scheduling", &text(if is_wrr { "wrr" } else { "strict" })).unwrap();
        let rows = |result: &anabranch_outcome::RunResult| format!("{:?} {:?}", result.fingerprint, result.flows);
        let lazy = rows(&run(&setup));
        prop_assert_eq!(&lazy, &rows(&run_eager(&setup, 1)));
        prop_assert_eq!(&lazy, &rows(&anabranch_sim::run(&setup, 2, &mut |_| true).unwrap()));
    }
}

#[test]
fn roce_under_every_scheme() {
    let trees = [
        topology("leaf-spine", &[("leaves", Raw::Int(4)), ("spines", Raw::Int(4)), ("hosts_per_leaf", Raw::Int(6))]),
        fat_tree(3, 4),
    ];
    for tree in trees {
        let flows = random_flows(&tree, 150, 200_000, 30_000_000, 5);
        let schemes =
            ["ecmp", "ops", "flowbender", "letflow", "conga", "conweave", "drill", "hopper", "hf2t", "qp-spray"];
        for scheme in schemes {
            for profile in [Profile::Irn, Profile::Lossless, Profile::ConweaveIrn, Profile::ConweaveLossless] {
                let mut setup = roce_setup(tree.clone(), flows.clone(), scheme, profile);
                if profile == Profile::Irn {
                    roce(&mut setup).set("recovery", &text("irn-extended")).unwrap();
                }
                assert_one(&setup, &format!("{scheme} on {profile:?}"));
            }
        }
    }
}

#[test]
fn other_congestion_controls() {
    let tree = fat_tree(2, 8);
    let flows = random_flows(&tree, 100, 300_000, 30_000_000, 6);
    for (control, recovery) in [("swift", "irn"), ("tcp-like", "go-back-n"), ("none", "irn-extended")] {
        let mut setup = roce_setup(tree.clone(), flows.clone(), "hopper", Profile::Irn);
        roce(&mut setup).set("congestion_control", &text(control)).unwrap();
        roce(&mut setup).set("recovery", &text(recovery)).unwrap();
        assert_one(&setup, control);
    }
}
