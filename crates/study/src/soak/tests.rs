//! What is drawn.

use super::{Only, Tally, draw, scratch::Scratch};
use crate::scenario::PROFILES;
use anabranch_lb::registry::{HOST_SCHEMES, SWITCH_SCHEMES};
use anabranch_topology::TOPOLOGY_KINDS;
use anabranch_transport::TRANSPORTS;
use anabranch_workload::WORKLOAD_KINDS;

#[test]
fn cases_follow_from_seed_and_number() {
    let scratch = Scratch::new().expect("a temporary directory");
    let texts = |seed: u64| -> Vec<String> {
        (0..8).map(|n| draw::case(seed, n, &Only::default(), scratch.path()).expect("a case").text()).collect()
    };
    let (first, again, other) = (texts(7), texts(7), texts(8));
    assert_eq!(first, again);
    assert!(first.iter().zip(&other).all(|(a, b)| a != b), "two seeds give the same case");
    assert!(first.iter().all(|text| text.contains("time_limit = ")), "a case has no limit");
}

/// Cases in which every registered name is drawn.
const CASES: u64 = 500;

#[test]
fn every_registered_name_is_drawn() {
    let scratch = Scratch::new().expect("a temporary directory");
    let mut tally = Tally::default();
    for number in 0..CASES {
        if let Ok(draft) = draw::case(1, number, &Only::default(), scratch.path()) {
            tally.add(&draft);
        }
    }
    // Ranks of `nccl` are processes, which no simulation runs.
    let workloads = WORKLOAD_KINDS.iter().map(|about| about.name).filter(|name| *name != "nccl");
    let controls = TRANSPORTS.iter().flat_map(|about| about.controls.iter().map(|control| control.name));
    let wanted: Vec<(&str, Vec<&str>)> = vec![
        ("host_scheme", HOST_SCHEMES.iter().map(|about| about.name).collect()),
        ("switch_scheme", SWITCH_SCHEMES.iter().map(|about| about.name).collect()),
        ("topology", TOPOLOGY_KINDS.iter().map(|kind| kind.name).collect()),
        ("topology_format", vec!["adjacency", "conweave", "htsim-topo"]),
        ("transport", TRANSPORTS.iter().map(|about| about.name).collect()),
        ("congestion_control", controls.collect()),
        ("profile", PROFILES.iter().map(|profile| profile.name).collect()),
        ("recovery", vec!["irn", "irn-extended", "go-back-n"]),
        ("workload", workloads.collect()),
        ("workload_format", vec!["csv", "conweave", "htsim-cm", "goal"]),
        ("fault", vec!["link-down", "link-up", "link-degrade", "switch-down", "packet-loss"]),
        (
            "measurement",
            vec![
                "series_links",
                "series_flows",
                "series_scheme",
                "uplink_counts",
                "occupancy",
                "trace_flows",
                "captures",
            ],
        ),
    ];
    let missing: Vec<String> = wanted
        .iter()
        .flat_map(|(kind, names)| names.iter().map(move |name| (*kind, *name)))
        .filter(|(kind, name)| tally.count(kind, name) == 0)
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect();
    assert!(missing.is_empty(), "not in {CASES} cases: {missing:?}; drawn: {:#}", tally.json());
}
