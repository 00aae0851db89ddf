//! Invariants of every guided switch scheme, on small Dragonflies and the Petersen graph, the smallest of diameter 2.

use crate::{
    GuidedPath, GuidedPaths, GuidedSwitch, PacketView, SwitchHeader, SwitchInfo, SwitchScheme,
    registry::{PacketScope, SwitchParameters},
    switch::testing::{LEAF, Little, data},
};
use anabranch_units::Time;
use proptest::prelude::*;

/// Maximum links of a route: five on a Dragonfly (two chosen, three default), four on a graph of diameter 2; a
/// progressive choice may come one link later, and a detour over a third group takes one more local link at each side.
const MAX_LINKS: usize = 8;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn packets_arrive(
        packets in prop::collection::vec((any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>()), 1..60),
        queues in prop::collection::vec(prop_oneof![Just(0u64), 0..100_000u64, Just(u64::MAX / 4)], 1..40),
        lists in prop::collection::vec((any::<u16>(), 0u8..9, any::<bool>(), 1u64..4), 0..12),
        shape in 0usize..4,
        seed: u64,
    ) {
        let net = || [2, 3, 5].get(shape).map_or_else(Little::petersen, |size| Little::of((*size, 1), 0, 0));
        let switches = net().switches();
        let mut latency = 0;
        let paths = GuidedPaths::new(lists.iter().map(|&(ev, kind, minimal, more)| {
            latency += more;
            GuidedPath { ev, kind, minimal, latency: Time::from_ns(latency), propagation: Time::from_ns(latency), hops: 3 }
        }));
        let guided = SwitchParameters::names(|switch| switch.capabilities().packet_scope() == PacketScope::Guided);
        prop_assert!(guided.len() >= 5, "minimal, valiant, ugal, source-guided, coarse-guided");
        for name in guided {
            for parameters in super::variants::<SwitchParameters>(name) {
                let run = || {
                    let info = |number: u32| {
                        let ports = net().ports(number);
                        let key = u64::from(number) + 3;
                        SwitchInfo { key, groups: 1, number, switches, ports, hop_delay: Time::from_ns(500), ..LEAF }
                    };
                    let mut schemes: Vec<_> = (0..switches).map(|number| parameters.build(seed, &info(number))).collect();
                    let mut ways = Vec::new();
                    for (i, &(flow, tag, from, to)) in packets.iter().enumerate() {
                        let (from, to) = (from % switches, to % switches);
                        let packet = PacketView { src: from, dst: to, src_leaf: from, dst_leaf: to, ..data(flow, tag) };
                        let (mut header, mut way) = (SwitchHeader::default(), vec![from]);
                        let (snapshots, queues, paths) = (queues.clone(), queues.clone(), paths.clone());
                        let mut at = Little { here: from, to, queues, snapshots, paths, ..net() };
                        while at.here != to {
                            let scheme = &mut schemes[at.here as usize];
                            let port = scheme.guide(Time::from_us(i as u64), &packet, &mut header, &mut at);
                            assert!(port < at.ports(at.here), "{}: port {port} of {}", name, at.ports(at.here));
                            at.here = at.peer(at.here, port);
                            way.push(at.here);
                            assert!(way.len() - 1 <= MAX_LINKS, "{}: from {from} to {to} over {way:?}", name);
                        }
                        ways.push(way);
                    }
                    ways
                };
                prop_assert_eq!(run(), run(), "{}", name);
            }
        }
    }
}
