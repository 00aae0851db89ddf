//! The mode of execution and the measurements do not affect results. The soak (`anabranch-soak`) draws such runs at random.

use crate::common::*;
use anabranch_backend::{Measure, Setup};
use anabranch_settings::Never;
use anabranch_topology::{FaultKind, FaultParameters, LinkId};
use anabranch_units::Time;

/// Regression: samples advanced NICs such that probes queued there lost their time stamp.
#[test]
fn measuring_does_not_change_what_is_measured() {
    let topology = leaf_spine_128();
    let links: Vec<LinkId> = (0..topology.hosts).map(|host| topology.host_uplink(host)).collect();
    let flows = random_flows(&topology, 600, 2_000_000, 200_000_000, 5);
    let plain = roce_setup(topology, flows, "hopper", Profile::Irn);
    let measure = Measure { series_links: links, series_interval: Time::from_us(1), ..Measure::default() };
    let measured = Setup { measure, ..plain.clone() };
    let (plain, measured) = (run(&plain), run(&measured));
    assert!(plain.counters.probes.unwrap() > 100, "{}", plain.counters.probes.unwrap());
    assert_eq!(plain.counters.probes.unwrap(), measured.counters.probes.unwrap());
    assert_eq!(plain.fingerprint, measured.fingerprint);
    assert_eq!(measured.series.len(), 128);
}

/// Regression: host schemes were notified of dead paths before earlier transmissions of their NICs had been processed.
#[test]
fn detected_faults_take_effect_at_their_time() {
    for scheme in ["prime", "co-prime", "reps"] {
        let topology = fat_tree(2, 8);
        let flows = permutation(&topology, 1 << 20, 3);
        let mut setup = setup(topology, flows, scheme);
        for (kind, at) in [(FaultKind::LinkDown, 7), (FaultKind::LinkUp, 19)] {
            let fault = FaultParameters {
                kind,
                at: Time::from_us(at),
                links: vec!["leaf0-spine1".into(), "leaf2-spine3".into()],
                detect_after: Never::Value(Time::from_ns(2_345)),
                ..FaultParameters::default()
            };
            setup = with_fault(setup, fault);
        }
        run_in_every_mode(&setup, scheme);
    }
}

/// A marking rule that samples queues between the events of a port marks the same packets however ports are advanced.
#[test]
fn sampled_queues_are_exact() {
    for (classes, mark_at) in [(1, "dequeue"), (2, "dequeue"), (1, "enqueue")] {
        let topology = fat_tree(2, 8);
        let flows = permutation(&topology, 1 << 20, 1);
        let mut setup = setup(topology, flows, "ops");
        setup.fabric.classes = (0..classes).map(|class| format!("class {class}")).collect();
        set_keys(&mut setup.fabric, &format!("marking=pi ecn_mark_at={mark_at}"));
        let result = run_in_every_mode(&setup, mark_at);
        assert!(result.links.iter().any(|link| link.ecn_marks > Some(0)));
    }
}
