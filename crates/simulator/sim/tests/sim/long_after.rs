//! Scheduled events long after the last flow must not prolong a run.

use crate::common::*;
use anabranch_topology::{FaultKind, FaultParameters};
use anabranch_units::Time;
use std::time::{Duration, Instant};

/// A fault a day after the last flow; the samples in between are empty.
#[test]
fn samples_do_not_wait_for_a_fault() {
    let topology = fat_tree(2, 4);
    let link = topology.link_named("leaf0->spine0").unwrap()[0];
    let fault = FaultParameters {
        kind: FaultKind::LinkDown,
        at: Time::from_ms(86_400_000),
        links: vec!["leaf0-spine0".into()],
        ..FaultParameters::default()
    };
    let mut it = setup(topology, flows(&[(0, 7, 64 << 10, 0)]), "ecmp");
    it.faults = fault.resolve(&it.topology, 0, 1).unwrap();
    it.measure.series_links = vec![link];
    it.measure.series_interval = Time::from_us(1);
    it.limits.time_limit = Time::from_ms(100_000_000);
    let begun = Instant::now();
    let result = anabranch_sim::run(&it, 1, &mut |_| begun.elapsed() < Duration::from_secs(10)).unwrap();
    assert!(!result.interrupted, "still sampling after ten seconds, at {}", result.simulated);
}
