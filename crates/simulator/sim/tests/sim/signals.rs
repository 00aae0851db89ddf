//! Signals of links in data packets (`fabric.csig`) against closed forms, and the paths over a named link.

use crate::common::*;
use anabranch_backend::{LoadBalancer, Setup};
use anabranch_lb::{
    CallEvent, LinkLoad, LinkSignal, Tag,
    registry::{ALIASES, PacketScope, resolve},
};
use anabranch_outcome::{PacketKind, TraceEvent};
use anabranch_settings::Raw;
use anabranch_topology::{LinkOverride, NodeId, NodeKind, Topology};
use anabranch_units::Rate;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn signalled(mut setup: Setup, kind: &str) -> Setup {
    set_keys(&mut setup.fabric, &format!("csig={kind}"));
    setup.load_balancers[0].host.parameters_mut().set("signal", &Raw::Text("csig".into())).unwrap();
    setup
}

/// Runs a setup and returns what its senders received, in order.
fn signals(mut setup: Setup) -> Vec<(Tag, LinkSignal)> {
    let flows = setup.flows.number_of_flows() as u32;
    (setup.measure.trace_flows, setup.measure.trace_scheme) = ((0..flows).collect(), true);
    setup.measure.trace_limit = u64::MAX;
    let of = |event: &CallEvent| if let CallEvent::Signal(tag, signal) = event { Some((*tag, *signal)) } else { None };
    run(&setup).watched.schemes.iter().filter_map(|row| of(&row.call.event)).collect()
}

/// Four hosts, and one at another leaf; the links on the way take 1 / `slow` of 400 Gb/s.
fn chain(slow: [u64; 3]) -> Topology {
    let mut chain = topology("leaf-spine", "leaves=2 spines=1 hosts_per_leaf=4 link_rate=400Gbps link_delay=1us");
    for (link, slow) in ["leaf0->spine0", "spine0->leaf1", "leaf1->host4"].into_iter().zip(slow) {
        let rate = Some(Rate(400_000_000_000 / slow));
        chain.apply(&LinkOverride { link: Some(link.into()), rate, ..Default::default() }).expect("a link");
    }
    chain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Four packets of w arrive at once. Packet i waits for i a w at a link that takes a w for each, behind which they are
    /// a w apart; at the next it waits for i (b - a) w, if b is above a, and so on.
    #[test]
    fn a_signal_is_the_longest_wait_and_its_place(slow in prop::array::uniform3(prop::sample::select(vec![1u64, 2, 4, 8]))) {
        let one_each: Vec<_> = (0..4).map(|host| (host, 4, 4096, 0)).collect();
        let setup = signalled(setup(chain(slow), flows(&one_each), "prime"), "delay");
        let mut found: Vec<u16> = signals(setup).iter().map(|(_, signal)| signal.0).collect();
        let (mut apart, mut expected) = (0, [LinkSignal::default(); 4]);
        for (slow, (stage, is_down)) in slow.into_iter().zip([(1, false), (1, true), (0, true)]) {
            for (i, signal) in expected.iter_mut().enumerate().skip(1) {
                let load = LinkLoad::Delay(i as u64 * slow.saturating_sub(apart) * WIRE);
                *signal = signal.or_higher(LinkSignal::new(load, stage, is_down));
            }
            apart = apart.max(slow);
        }
        found.sort_unstable();
        let mut expected = expected.map(|signal| signal.0);
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// PRIME that nothing penalises is CO-PRIME, in every part of every flow's time, also of flows under another scheme. None waits
    /// for a million round trips, no link is busy for more than all of the time, and no packet of these is lost.
    #[test]
    fn signals_that_penalise_nothing_change_nothing(
        transport in 0usize..4, kind in prop::sample::select(vec!["delay", "utilisation"]), tiers in 2i64..4,
        least in 1.000_001..2.0f64, two in any::<bool>(), number in 2usize..60, most in 5_000u64..400_000, seed in any::<u64>(),
    ) {
        let fabric = fat_tree(tiers, 4);
        let mut flows = random_flows(&fabric, number, most, 20_000_000, seed);
        if two {
            let hopper = anabranch_workload::WorkloadInfo { name: "hopper".into(), load_balancer: 1, ..flows.workloads[0].clone() };
            flows.workloads.push(hopper);
            flows.flows.iter_mut().for_each(|flow| flow.workload = (flow.key % 2) as u16);
        }
        let of = |scheme: &str| {
            let (fabric, flows) = (fabric.clone(), flows.clone());
            let mut setup = match transport {
                0 => setup(fabric, flows, scheme),
                1 => roce_setup(fabric, flows, scheme, Profile::Irn),
                2 => roce_setup(fabric, flows, scheme, Profile::Lossless),
                _ => unconstrained(setup(fabric, flows, scheme)),
            };
            set_keys(&mut setup.fabric, "queue_limit=100MB");
            let (host, switch) = resolve("hopper").unwrap();
            setup.load_balancers.extend(two.then(|| LoadBalancer { name: "hopper".into(), host, switch }));
            setup.measure.attribution = true;
            setup
        };
        let mut prime = signalled(of("prime"), kind);
        let least = if kind == "delay" { 1e6 } else { least };
        prime.load_balancers[0].host.parameters_mut().set("csig_least", &Raw::Float(least)).unwrap();
        let (own, plain) = (run(&prime), run(&of("co-prime")));
        let counters = &own.counters;
        prop_assert_eq!([counters.dropped, counters.trimmed, counters.timeouts], [Some(0); 3]);
        let parts = |result: &anabranch_outcome::RunResult| result.flows.iter().map(|flow| format!("{flow:?}")).collect::<Vec<_>>();
        prop_assert_eq!(parts(&own), parts(&plain));
        // Each byte leaves once, at 20 ps each, and what is retransmitted: with IRN what comes out of order.
        let (mtu, header) = (prime.transport.mtu(), prime.transport.header());
        for flow in &own.flows {
            let least = 20 * (flow.size_bytes + flow.size_bytes.div_ceil(mtu) * header);
            let again = 20 * flow.metrics.retransmitted_packets.unwrap() * (mtu + header);
            let part = flow.delays.unwrap().serialisation.ps();
            prop_assert!((least..=least + again).contains(&part), "{flow:?}: {part} of {least} and {again}");
        }
    }
}

/// No field of a packet is read as a signal where no switch writes one: of replies that guided switches route, the value that
/// guides them.
#[test]
fn schemes_that_read_no_signals_receive_none() {
    let topology = topology("dragonfly", "p=2 a=4 h=2");
    let list: Vec<_> = (0..24).map(|host| (host, (host + 31) % 72, 100_000, 0)).collect();
    let guided = ALIASES
        .iter()
        .filter(|alias| resolve(alias.name).unwrap().1.capabilities().packet_scope() == PacketScope::Guided);
    for alias in guided {
        let mut setup = spritz(topology.clone(), flows(&list), alias.name);
        set_keys(&mut setup.fabric, "reply_paths=scheme");
        assert_eq!(signals(setup), [], "{}", alias.name);
    }
}

/// Switches that route by the header that signals need.
#[test]
fn signals_and_source_routing_are_refused_together() {
    let topology = topology("dragonfly", "p=2 a=4 h=2");
    let error = refused(&signalled(setup(topology, flows(&[(0, 40, 4096, 0)]), "prime-guided"), "delay")).to_string();
    assert!(["`prime`", "signal = \"csig\"", "`source-guided`"].iter().all(|part| error.contains(part)), "{error}");
}

/// A host of 100 Gb/s: of each 10 us the link of 400 Gb/s is busy for 30 or 31 packets of 83.2 ns, that of 200 Gb/s for
/// as many of 166.4 ns.
#[test]
fn a_signal_is_the_highest_utilisation() {
    let mut chain = chain([1, 2, 1]);
    let rate = Some(Rate::gbps(100));
    chain.apply(&LinkOverride { link: Some("host0->leaf0".into()), rate, ..Default::default() }).expect("a link");
    let setup = signalled(setup(chain, flows(&[(0, 4, 4 << 20, 0)]), "prime"), "utilisation");
    let all = signals(setup);
    // One in four packets is acknowledged. The first window has none before it; 4 us on the way and as many back.
    let settled = &all[20..];
    assert!(settled.len() > 200);
    let of = |packets: u64| LinkSignal::new(LinkLoad::Utilisation(packets * 2 * WIRE, 10_000_000), 1, true);
    assert!(settled.iter().all(|(_, signal)| [of(30), of(31)].contains(signal)), "{settled:?}");
}

/// On trees without failures, packets over a link are those whose values have as many leading parts in common as the tier of the
/// link's upper end, and no others: so a signal needs no port.
#[test]
fn a_stage_names_the_paths_over_a_link() {
    let trees = [
        ("fat-tree", "tiers=2 radix=8"),
        ("fat-tree", "tiers=3 radix=6"),
        ("fat-tree", "tiers=3 radix=8 oversubscription=3"),
        ("leaf-spine", "leaves=3 spines=3 hosts_per_leaf=2 links_per_spine=2"),
    ];
    for (kind, keys) in trees {
        let topology = topology(kind, keys);
        let uplinks = topology.uplinks.clone();
        let tier = |node| match topology.node(node).kind {
            NodeKind::Host => 0,
            NodeKind::Switch { tier } => usize::from(tier),
        };
        let list: Vec<_> = (0..2).map(|host| (host, topology.hosts - 1 - host, 1 << 20, 0)).collect();
        let mut setup = setup(topology.clone(), flows(&list), "prime");
        (setup.measure.trace_flows, setup.measure.trace_limit) = (vec![0, 1], 10_000_000);
        let result = run(&setup);
        let shift = |part: usize| uplinks[..part].iter().map(|size| size.next_power_of_two().ilog2()).sum::<u32>();
        let mut over: BTreeMap<(u32, u32), BTreeSet<Tag>> = BTreeMap::new();
        let mut all = BTreeSet::new();
        for row in result.watched.trace.iter().filter(|row| row.packet == PacketKind::Data) {
            match row.event {
                TraceEvent::Send => _ = all.insert(row.tag),
                TraceEvent::Hop => _ = over.entry((row.flow_id, row.link)).or_default().insert(row.tag),
                _ => {}
            }
        }
        assert_eq!(all.len() as u32, uplinks.iter().product::<u32>());
        for ((_, link), found) in over {
            let ends = [&result.links[link as usize].from, &result.links[link as usize].to];
            let node = |name: &String| {
                (0..topology.hosts + topology.switches()).map(NodeId).find(|n| topology.node(*n).name == *name)
            };
            let stage = ends.into_iter().map(|name| tier(node(name).unwrap())).max().unwrap();
            let low = (1 << shift(stage)) - 1;
            let one = found.first().unwrap() & low;
            let expected: BTreeSet<Tag> = all.iter().copied().filter(|tag| tag & low == one).collect();
            assert_eq!(found, expected, "{kind} {keys}: {ends:?}");
        }
    }
}

/// Signals neither depend on threads, cells and timing, nor change anything where no scheme reads them.
#[test]
fn signals_are_the_same_in_every_mode() {
    let topology = fat_tree(3, 4);
    let mut list: Vec<_> = (1..16).map(|host| (host, 0, 200_000, 0)).collect();
    list.extend((0..16).map(|host| (host, (host + 5) % 16, 400_000, 1_000)));
    for (kind, attribution) in [("delay", false), ("utilisation", true)] {
        let mut plain = setup(topology.clone(), flows(&list), "prime");
        set_keys(plain.load_balancers[0].host.parameters_mut(), "history_after=0");
        plain.measure.attribution = attribution;
        let mut unread = plain.clone();
        set_keys(&mut unread.fabric, &format!("csig={kind}"));
        let own = run_in_every_mode(&signalled(plain.clone(), kind), kind).fingerprint;
        assert_eq!(run(&unread).fingerprint, run(&plain).fingerprint);
        assert_ne!(own, run(&plain).fingerprint, "penalties differ");
    }
    // The port to host 0 trims.
    let all = signals(signalled(setup(topology, flows(&list), "prime"), "delay"));
    let trimmed = all.iter().filter(|(_, signal)| signal.is_trim());
    let places: BTreeSet<_> = trimmed.map(|(_, signal)| (signal.stage(), signal.is_down())).collect();
    assert!(places.contains(&(0, true)), "{places:?}");
}
