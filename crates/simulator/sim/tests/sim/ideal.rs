//! Ideal times: no flow takes less, over any paths and with any faults; where links are alike they are those of one path.

use crate::common::*;
use anabranch_backend::FabricParameters;
use anabranch_settings::{Auto, Never};
use anabranch_topology::{FaultKind, FaultParameters, LinkId, LinkOverride, Topology, TopologyParameters};
use anabranch_units::{Bytes, BytesOrBdp, Rate, Time};
use proptest::prelude::*;

/// Every kind of tree, graphs without tiers, and guided ones, which keep their searches.
fn any_topology() -> impl Strategy<Value = Topology> {
    prop_oneof![
        4 => (2..7u64, 1..6u64, 1..4u64, 1..4u64).prop_map(|(leaves, spines, hosts, parallel)| topology(
            "leaf-spine",
            &format!("leaves={leaves} spines={spines} hosts_per_leaf={hosts} links_per_spine={parallel}"),
        )),
        4 => (2..4u64, 1..4u64, 1..4u64).prop_map(|(tiers, half, over)| {
            topology("fat-tree", &format!("tiers={tiers} radix={} oversubscription={over}", 2 * half))
        }),
        2 => (3..12u32, 1..3u64).prop_map(|(switches, hosts)| ring(switches, hosts)),
        1 => (1..3u64, 2..4u64, 1..3u64).prop_map(|(p, a, h)| topology("dragonfly", &format!("p={p} a={a} h={h}"))),
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
    set_keys(parameters.parameters_mut(), &format!("path=ring format=adjacency hosts_per_switch={hosts}"));
    parameters.build(&|_| Ok(text.clone())).unwrap()
}

/// Cable, failure time, repair time, detection delay.
type Failure = (usize, u64, Option<u64>, Option<u64>);

fn failures() -> impl Strategy<Value = Vec<Failure>> {
    let some = || proptest::option::of(0..20u64);
    proptest::collection::vec((any::<usize>(), prop_oneof![Just(0), 0..30u64], some(), some()), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_flow_beats_its_ideal_whatever_fails(
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
            let fault = |kind, at| FaultParameters { detect_after, ..link_fault(kind, at, &graph.cable_name(*link)) };
            let up = back.map(|after| fault(FaultKind::LinkUp, Time::from_us(at + after + 1)));
            let down = fault(FaultKind::LinkDown, Time::from_us(at));
            setup = [Some(down), up].into_iter().flatten().fold(setup, with_fault);
        }
        // A flow below its ideal fails the run.
        prop_assert_eq!(run(&setup).flows.len(), 30);
    }

    /// Over links of any rates and delays, by any path a scheme takes.
    #[test]
    fn no_flow_alone_beats_its_ideal(
        graph in any_topology(), draws in draws(), scheme in any::<prop::sample::Index>(), ends in any::<(u32, u32)>(),
        size in prop_oneof![1..300u64, 1..30_000u64, 1..300_000u64], (recorded, rounded) in any::<(bool, bool)>(), (delayless, alike) in any::<(bool, bool)>(),
    ) {
        let draws = draws.into_iter().take(if alike { 1 } else { 41 });
        let draws: Vec<_> = draws.map(|(rate, delay)| (rate, if delayless { 0 } else { delay })).collect();
        let is_guided = graph.guidance.is_some();
        let schemes: &[&str] = if is_guided { &["minimal", "valiant", "ugal-l", "ops-u"] } else { &["ecmp", "ops", "rr", "ar"] };
        let mut graph = graph;
        for (link, (rate, delay)) in graph.links.iter_mut().zip(draws.iter().cycle()) {
            (link.rate, link.delay) = (Rate::gbps(*rate), Time::from_ns(*delay));
        }
        let (src, dst) = (ends.0 % graph.hosts, ends.1 % graph.hosts);
        if src != dst && graph.is_connected(src, dst) {
            let set = flows(&[(src, dst, size, 0)]);
            let scheme = *scheme.get(schemes);
            let mut setup = match recorded && !is_guided {
                true => roce_setup(graph, set, scheme, Profile::ConweaveIrn),
                false => setup(graph, set, scheme),
            };
            // Headroom at any rate.
            if setup.fabric.shared_buffer.0 > 0 {
                setup.fabric.shared_buffer = Bytes(1 << 30);
            }
            if rounded {
                setup.fabric.recorded = true;
            }
            let row = &run(&setup).flows[0];
            prop_assert!(row.fct_rx.is_none_or(|fct| fct >= row.ideal_rx), "{:?} is below {}", row.fct_rx, row.ideal_rx);
        }
    }

    /// One rate and one delay: the arrival of a train of packets over any one shortest path. A short last packet of few may
    /// overtake the others over another path: as many links as there are packets, or more.
    #[test]
    fn ideals_of_equal_links_are_those_of_one_path(graph in any_topology(), rate in 1..900u64, delay in 0..3_000u64, seed in any::<u64>()) {
        let mut graph = graph;
        graph.links.iter_mut().for_each(|link| (link.rate, link.delay) = (Rate::gbps(rate), Time::from_ns(delay)));
        let mut setup = setup(graph.clone(), random_flows(&graph, 30, 200_000, 1_000_000, seed), "ops");
        setup.limits.time_limit = Time::from_us(1);
        setup.limits.until_all_done = false;
        let (mtu, header, ack) = (setup.transport.mtu(), setup.transport.header(), setup.transport.ack_size());
        for row in &run(&setup).flows {
            let path = graph.base_path(row.src, row.dst);
            let back: Vec<LinkId> = path.iter().rev().map(|link| link.reverse()).collect();
            let full = row.size_bytes.div_ceil(mtu).max(1) - 1;
            let last = row.size_bytes - full * mtu + header;
            let rx = graph.train_arrival(&path, full, mtu + header, last);
            if full == 0 || full >= path.len() as u64 {
                prop_assert_eq!(row.ideal_rx, rx, "host{} to host{}", row.src, row.dst);
                prop_assert_eq!(row.ideal_ack, rx + graph.train_arrival(&back, 0, 0, ack));
            } else {
                prop_assert!(row.ideal_rx <= rx && row.ideal_rx + Rate::gbps(rate).wire_time(last) >= rx);
            }
        }
    }

    /// NICs as fast as `spines` uplinks together, or less: packets in turn over all of them end within a packet per link.
    #[test]
    fn spraying_over_slow_uplinks_takes_the_ideal_time(spines in 2..9u64, share in 30..=100u64, packets in 1..200u64) {
        let mut graph = leaf_spine(spines, &|_| (100, 1_000));
        let nic = Rate::gbps(spines * share);
        for host in 0..graph.hosts {
            let up = graph.host_uplink(host);
            [up, up.reverse()].into_iter().for_each(|link| graph.links[link.0 as usize].rate = nic);
        }
        let mut setup = setup(graph, flows(&[(0, 1, packets * 4096, 0)]), "rr");
        uet(&mut setup).window = Auto::Value(BytesOrBdp::Bytes(1 << 28));
        let row = &run(&setup).flows[0];
        let (fct, slack) = (row.fct_rx.expect("a finished flow"), Rate::gbps(100).wire_time(4160) * 4);
        prop_assert!(row.ideal_rx <= fct && fct <= row.ideal_rx + slack, "{fct} for {}", row.ideal_rx);
        // 4160 B a packet at the NIC, and four links of 1 us: the arithmetic of a newcomer.
        let least = nic.wire_time(packets * 4160) + Time::from_us(4);
        prop_assert!(least <= row.ideal_rx && row.ideal_rx <= least + slack, "{} for {least}", row.ideal_rx);
    }

    /// Spines of which one is slow, or far: its number does not matter.
    #[test]
    fn ideals_do_not_depend_on_the_numbers_of_spines(draws in draws(), turn in 1..5u64, size in 1..2_000_000u64) {
        let of = |turn: u64| {
            let graph = leaf_spine(5, &|spine| draws[((spine + turn) % 5) as usize]);
            let mut setup = setup(graph, flows(&[(0, 1, size, 0), (1, 0, size, 1)]), "ops");
            setup.limits.time_limit = Time::from_ns(1);
            setup.limits.until_all_done = false;
            run(&setup).flows.iter().map(|row| (row.ideal_rx, row.ideal_ack)).collect::<Vec<_>>()
        };
        prop_assert_eq!(of(0), of(turn));
    }

    /// Without a note, a flow over the fastest spine alone takes the ideal time. Slow spines beside it need no note.
    #[test]
    fn ideals_without_a_note_are_exact(draws in draws(), spines in 1..6usize, packets in 1..200u64) {
        let of = |draws: &[(u64, u64)]| {
            let graph = leaf_spine(draws.len() as u64, &|spine| draws[spine as usize]);
            unconstrained(setup(graph, flows(&[(0, 1, packets * 4096, 0)]), "ecmp"))
        };
        let draws = &draws[..spines];
        let time = |(rate, delay): (u64, u64)| Rate::gbps(rate).wire_time(4160) + Time::from_ns(delay);
        let fastest = *draws.iter().min_by_key(|draw| time(**draw)).expect("a spine");
        let is_nearest = draws.iter().all(|draw| draw.1 >= fastest.1);
        let note = anabranch_backend::ideal_note(&of(draws));
        prop_assert_eq!(note.is_none(), spines == 1 || fastest.0 >= 400 && is_nearest, "{:?}", note);
        if note.is_none() {
            let ideal = run(&of(draws)).flows[0].ideal_rx;
            let alone = run(&of(&[fastest])).flows[0].fct_rx.expect("a finished flow");
            // Rates that do not divide round to picoseconds at each link.
            prop_assert!(alone.ps().abs_diff(ideal.ps()) <= 10, "{alone} for {ideal}");
        }
    }
}

/// Regression: 65 B take 5.2 ns at 100 Gb/s, or 5 where wire times are whole nanoseconds; a straight line between the times of
/// a full packet and of none over other links is longer.
#[test]
fn rounded_wire_times_do_not_beat_their_ideal() {
    let keys = "q=3 p=1 link_rate=100Gbps local_link_rate=10Gbps switch_latency=0us";
    let graph = topology("slim-fly", keys);
    let list: Vec<_> =
        (0..10).flat_map(|src| (0..10).map(move |dst| (src, dst, 1, 0))).filter(|f| f.0 != f.1).collect();
    let mut setup = setup(graph, flows(&list), "ecmp");
    (setup.fabric, setup.limits.time_limit) = (FabricParameters::conweave(true), Time::from_us(1));
    // A flow below its ideal fails the run.
    assert_eq!(run(&setup).flows.len(), 90);
}

fn draws() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((prop_oneof![Just(10u64), Just(40), Just(100), 1..900u64], 0..5_000u64), 41)
}

/// Two leaves with a host each of 400 Gb/s; `of` gives rate and delay of both cables of a spine.
fn leaf_spine(spines: u64, of: &dyn Fn(u64) -> (u64, u64)) -> Topology {
    let keys = format!("leaves=2 spines={spines} hosts_per_leaf=1");
    let mut graph = topology("leaf-spine", &keys);
    let first = graph.hosts + 2;
    for link in &mut graph.links {
        let spine = link.from.0.max(link.to.0).checked_sub(first);
        let (rate, delay) = spine.map_or((400, 1_000), |spine| of(spine.into()));
        (link.rate, link.delay) = (Rate::gbps(rate), Time::from_ns(delay));
    }
    graph.switch_latency = Time::ZERO;
    graph
}
