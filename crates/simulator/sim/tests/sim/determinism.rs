//! The same fingerprint for any number of threads, for lazy and eager ports, and twice in a row.

use crate::common::*;
use anabranch_lb::registry::{ALIASES, PacketScope};
use proptest::prelude::*;

const SCHEMES: [&str; 12] =
    ["ecmp", "ops", "reps", "bitmap", "mixed", "plb", "flowbender", "ar", "drill", "rr", "co-prime", "prime"];

#[test]
fn permutation_under_every_scheme() {
    for tiers in [2, 3] {
        let topology = fat_tree(tiers, 8);
        for scheme in SCHEMES {
            run_in_every_mode(&setup(topology.clone(), permutation(&topology, 200 * 4096, 3), scheme), scheme);
        }
    }
}

/// The dispatch of schemes of other crates changes no result.
#[test]
fn every_scheme_as_one_of_another_crate() {
    let networks = [topology("dragonfly", "p=1 a=2 h=1"), fat_tree(2, 4)];
    for alias in ALIASES {
        let (_, switch) = anabranch_lb::registry::resolve(alias.name).unwrap();
        let is_guided = switch.capabilities().packet_scope() == PacketScope::Guided;
        let network = &networks[usize::from(!is_guided)];
        let ours = setup(network.clone(), permutation(network, 64 << 10, 3), alias.name);
        assert_eq!(run_on(&ours, 1).fingerprint, run_on(&as_external(ours), 2).fingerprint, "{}", alias.name);
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
                run_in_every_mode(&setup, &format!("{scheme} on {profile:?}"));
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
        run_in_every_mode(&setup, control);
    }
}
