//! No load balancer beats the bounds: every pair of schemes on ready-made scenarios cut short.

use anabranch_bound::{beaten, bounds, reference_setup};
use anabranch_lb::registry::ALIASES;
use anabranch_scenario::{SIMULATOR, library};

/// Runs every scheme that suits the scenario; returns their number.
fn check(name: &str, changes: &[&str]) -> usize {
    let first = crate::common::setup(name, changes, 1);
    let bounds = bounds(&first, true);
    assert!(!bounds.limits.is_empty(), "{name}");
    let mut ran = 0;
    for alias in ALIASES {
        let changes: Vec<String> =
            changes.iter().map(ToString::to_string).chain([format!("load_balancer.scheme={}", alias.name)]).collect();
        let Ok(scenario) = library::load(name, &changes, Some(1)) else { continue };
        let Ok(setup) = scenario.setup(1) else { continue };
        if scenario.check(&setup, &SIMULATOR).is_err() {
            continue;
        }
        let Ok(result) = anabranch_sim::run(&setup, 1, &mut |_| true) else { continue };
        ran += 1;
        if let Some(text) = beaten(&setup, &bounds, &result.flows) {
            panic!("{name}, {}: {text}", alias.name);
        }
    }
    ran
}

#[test]
fn on_a_tree_with_slow_cables() {
    assert!(check("first-run", &["topology.radix=8", "workload.0.size=256KiB"]) >= 10);
}

#[test]
fn on_planes() {
    let slow =
        "topology.link=[{link=\"host1-p2.leaf0\", rate=\"30Gbps\"}, {link=\"p1.leaf0-p1.spine1\", rate=\"20Gbps\"}]";
    for changes in [vec!["topology.planes=4"], vec!["topology.planes=4", slow]] {
        let changes = [vec!["topology.radix=8", "workload.0.size=256KiB"], changes].concat();
        assert!(check("first-run", &changes) >= 10);
    }
}

#[test]
fn under_incast() {
    assert!(check("incast", &["topology.radix=8", "workload.0.senders=12", "workload.0.size=128KiB"]) >= 10);
}

#[test]
fn on_open_traffic_by_either_clock() {
    for kind in ["rx", "ack"] {
        let clock = format!("fabric.fct_kind={kind}");
        assert!(check("web-search-128", &["topology.radix=8", "workload.0.duration=100us", &clock]) >= 10);
    }
}

#[test]
fn over_guided_paths() {
    assert!(
        check(
            "spritz-permutation-dragonfly",
            &["topology.p=2", "topology.a=4", "topology.h=2", "workload.0.size=64KiB"]
        ) >= 5
    );
    assert!(check("spritz-adversarial-slim-fly", &["topology.q=5", "topology.p=2", "workload.0.size=64KiB"]) >= 5);
}

#[test]
fn of_flows_that_wait_for_each_other() {
    let changes = [
        "topology.p=2",
        "topology.a=4",
        "topology.h=2",
        "workload.0.ranks=16",
        "workload.0.message_size=64KiB",
        "workload.1.size=64KiB",
    ];
    assert!(check("spritz-allreduce-ring-dragonfly", &changes) >= 5);
    assert!(check("all-to-all", &["topology.radix=4", "workload.0.size=16KiB"]) >= 5);
}

#[test]
fn over_a_lossless_fabric() {
    assert!(check("permutation-roce", &["workload.0.size=128KiB"]) >= 5);
}

/// The reference is another fabric and may beat nothing that the hosts' links bound.
#[test]
fn the_reference_keeps_flows_and_hosts() {
    let setup = crate::common::setup("first-run", &["topology.radix=8", "workload.0.size=256KiB"], 1);
    let reference = reference_setup(&setup);
    assert_eq!(setup.flows, reference.flows);
    for link in setup.topology.link_ids() {
        let (ours, other) = (setup.topology.link(link), reference.topology.link(link));
        let inner = ours.from.0 >= setup.topology.hosts && ours.to.0 >= setup.topology.hosts;
        assert_eq!(other.rate.0, ours.rate.0 * if inner { 16 } else { 1 });
    }
    // 100 Gb/s of a slow cable become 1.6 Tb/s.
    assert!(reference.faults.iter().all(|fault| format!("{:?}", fault.action).contains("1600000000000")));
    let result = anabranch_sim::run(&reference, 1, &mut |_| true).expect("a run");
    assert_eq!(beaten(&reference, &bounds(&reference, true), &result.flows), None);
}
