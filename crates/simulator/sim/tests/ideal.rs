//! Ideal times follow the forwarding tables of the intact graph and equal those of a search per pair, with any faults.

mod common;
use anabranch_settings::{Never, Raw};
use anabranch_topology::{FaultKind, FaultParameters, LinkId, LinkOverride, Topology, TopologyParameters};
use anabranch_units::{Rate, Time};
use common::*;
use proptest::prelude::*;

fn count(keys: &[(&str, u64)]) -> Vec<(String, Raw)> {
    keys.iter().map(|&(key, value)| (key.to_string(), Raw::Int(value as i64))).collect()
}

/// Every kind of tree, graphs without tiers, and guided ones, which keep their searches.
fn any_topology() -> impl Strategy<Value = Topology> {
    let named = |kind: &'static str, keys: Vec<(String, Raw)>| {
        let keys: Vec<(&str, Raw)> = keys.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        topology(kind, &keys)
    };
    let tree = move |kind, keys: &[(&str, u64)]| named(kind, count(keys));
    prop_oneof![
        4 => (2..7u64, 1..6u64, 1..4u64, 1..4u64).prop_map(move |(leaves, spines, hosts, parallel)| {
            let keys = [("leaves", leaves), ("spines", spines), ("hosts_per_leaf", hosts), ("links_per_spine", parallel)];
            tree("leaf-spine", &keys)
        }),
        4 => (2..4u64, 1..4u64, 1..4u64).prop_map(move |(tiers, half, over)| {
            tree("fat-tree", &[("tiers", tiers), ("radix", 2 * half), ("oversubscription", over)])
        }),
        2 => (3..12u32, 1..3u64).prop_map(|(switches, hosts)| ring(switches, hosts)),
        1 => (1..3u64, 2..4u64, 1..3u64).prop_map(move |(p, a, h)| tree("dragonfly", &[("p", p), ("a", a), ("h", h)])),
    ]
}

fn ring(switches: u32, hosts: u64) -> Topology {
    let line = |s| match s {
        0 => format!("0 1 {}\n", switches - 1),
        s if s + 1 < switches => format!("{s} {}\n", s + 1),
        s => format!("{s}\n"),
    };
    let text: String = (0..switches).map(line).collect();
    let mut parameters = TopologyParameters::named("file").unwrap();
    let keys = [("path", common::text("ring")), ("format", common::text("adjacency"))];
    for (key, value) in keys.into_iter().chain([("hosts_per_switch", Raw::Int(hosts as i64))]) {
        parameters.parameters_mut().set(key, &value).unwrap();
    }
    parameters.build(&|_| Ok(text.clone())).unwrap()
}

/// Cable, failure time, repair time, detection delay.
type Failure = (usize, u64, Option<u64>, Option<u64>);

fn failures() -> impl Strategy<Value = Vec<Failure>> {
    let some = || proptest::option::of(0..20u64);
    proptest::collection::vec((any::<usize>(), prop_oneof![Just(0), 0..30u64], some(), some()), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn ideal_times_are_those_of_a_search_per_pair(
        mut graph in any_topology(), failures in failures(), slow in any::<usize>(), seed in any::<u64>()
    ) {
        // One cable differs, so that another one of the shortest paths has other times.
        let cables: Vec<LinkId> =
            graph.link_ids().step_by(2).filter(|l| graph.link(*l).from.0 >= graph.hosts).collect();
        if let Some(link) = cables.get(slow % cables.len().max(1)) {
            let change = LinkOverride {
                link: Some(graph.cable_name(*link)),
                rate: Some(Rate::gbps(40)),
                delay: Some(Time::from_ns(1777)),
                ..LinkOverride::default()
            };
            graph.apply(&change).unwrap();
        }
        let set = random_flows(&graph, 30, 20_000, 20_000_000, seed);
        let mut setup = setup(graph.clone(), set, "ecmp");
        setup.limits.time_limit = Time::from_us(60);
        for (cable, at, back, noticed) in failures {
            let Some(link) = cables.get(cable % cables.len().max(1)) else { continue };
            let detect_after = noticed.map_or(Never::Never, |after| Never::Value(Time::from_us(after)));
            let links = vec![graph.cable_name(*link)];
            let down = FaultParameters {
                kind: FaultKind::LinkDown,
                at: Time::from_us(at),
                links: links.clone(),
                detect_after,
                ..FaultParameters::default()
            };
            let up = back.map(|after| FaultParameters {
                kind: FaultKind::LinkUp,
                at: Time::from_us(at + after + 1),
                links,
                detect_after,
                ..FaultParameters::default()
            });
            for fault in [Some(down), up].into_iter().flatten() {
                let number = setup.faults.len();
                setup.faults.extend(fault.resolve(&graph, number, 1).unwrap());
            }
        }
        let result = run(&setup);
        let (mtu, header) = (setup.transport.mtu(), setup.transport.header());
        for row in &result.flows {
            let path = graph.base_path(row.src, row.dst);
            let back: Vec<LinkId> = path.iter().rev().map(|link| link.reverse()).collect();
            let full = row.size_bytes.div_ceil(mtu).max(1) - 1;
            let rx = graph.train_arrival(&path, full, mtu + header, row.size_bytes - full * mtu + header);
            prop_assert_eq!(row.ideal_rx, rx, "host{} to host{}", row.src, row.dst);
            prop_assert_eq!(row.ideal_ack, rx + graph.train_arrival(&back, 0, 0, setup.transport.ack_size()));
        }
    }
}
