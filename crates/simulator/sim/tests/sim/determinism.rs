//! The same fingerprint for any number of threads, for lazy and eager ports, and twice in a row.

use crate::common::*;
use anabranch_backend::Setup;
use proptest::prelude::*;

const SCHEMES: [&str; 12] =
    ["ecmp", "ops", "reps", "bitmap", "mixed", "plb", "flowbender", "ar", "drill", "rr", "co-prime", "prime"];

fn assert_one(setup: &Setup, what: &str) {
    run_in_every_mode(setup, what);
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
        set_keys(&mut setup.fabric, &format!("trim={trim} queue_limit=0.3bdp"));
        assert!(run(&setup).counters.trimmed.unwrap() > 0);
        assert_one(&setup, scheme);
    }
}

#[test]
fn drop_tail_with_timeouts() {
    let topology = fat_tree(2, 8);
    let list: Vec<_> = (4..20).map(|h| (h, 0, 100 * 4096, 0)).collect();
    let mut setup = setup(topology, flows(&list), "ops");
    set_keys(&mut setup.fabric, "trimming=false queue_limit=0.2bdp");
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
        set_keys(&mut setup.fabric, &format!("classes=[a,b] class_weights=[7,3] scheduling={scheduling}"));
        assert_one(&setup, scheduling);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Several classes at each NIC, at any rate: most have no whole number of picoseconds per byte.
    #[test]
    fn classes_of_nics(
        mbps in 100i64..900_000, delay_ns in 10i64..2_000, weights in prop::collection::vec(1u64..100, 2..5),
        is_wrr in any::<bool>(), transport in 0usize..4, number in 2usize..80, most in 64u64..60_000,
        span in 1u64..40_000_000, seed in any::<u64>(),
    ) {
        let keys = format!("leaves=2 spines=2 hosts_per_leaf=2 link_rate={mbps}Mbps link_delay={delay_ns}ns");
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
        set_keys(&mut setup.fabric, "pfc_alpha=0.001");
        setup.fabric.classes = (0..weights.len()).map(|class| format!("class{class}")).collect();
        setup.fabric.class_weights = weights;
        set_keys(&mut setup.fabric, if is_wrr { "scheduling=wrr" } else { "scheduling=strict" });
        let rows = |result: &anabranch_outcome::RunResult| format!("{:?} {:?}", result.fingerprint, result.flows);
        let lazy = rows(&run(&setup));
        prop_assert_eq!(&lazy, &rows(&run_eager(&setup, 1)));
        prop_assert_eq!(&lazy, &rows(&run_on(&setup, 2)));
    }
}

#[test]
fn roce_under_every_scheme() {
    let trees = [topology("leaf-spine", "leaves=4 spines=4 hosts_per_leaf=6"), fat_tree(3, 4)];
    for tree in trees {
        let flows = random_flows(&tree, 150, 200_000, 30_000_000, 5);
        let schemes =
            ["ecmp", "ops", "flowbender", "letflow", "conga", "conweave", "drill", "hopper", "hf2t", "qp-spray"];
        for scheme in schemes {
            for profile in [Profile::Irn, Profile::Lossless, Profile::ConweaveIrn, Profile::ConweaveLossless] {
                let mut setup = roce_setup(tree.clone(), flows.clone(), scheme, profile);
                if profile == Profile::Irn {
                    set_keys(roce(&mut setup), "recovery=irn-extended");
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
        set_keys(roce(&mut setup), &format!("congestion_control={control} recovery={recovery}"));
        assert_one(&setup, control);
    }
}
