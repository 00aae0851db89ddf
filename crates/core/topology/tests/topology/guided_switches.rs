//! Forwarding by entropy values (specification 8.1).

use crate::common::{arranged, dragonfly, node, pairs, slim_fly};
use anabranch_topology::{Guide, LinkClass, LinkId, NodeId, Topology};
use anabranch_units::Time;

fn forward(topology: &Topology, guide: &Guide, from: NodeId, to: NodeId, ev: [u16; 2]) -> Vec<LinkId> {
    let (mut at, mut links, mut local) = (from, Vec::new(), false);
    while let Some(link) = guide.next(at, links.len() as u8, local, ev, to) {
        assert_eq!(topology.link(link).from, at);
        links.push(link);
        local = topology.link(link).class == LinkClass::Local;
        at = topology.link(link).to;
        assert!(links.len() <= 5, "{from:?} {to:?} {ev:?}");
    }
    assert_eq!(at, to);
    links
}

#[test]
fn switches_follow_entropy_values() {
    let follow = |it: &Topology, step: usize| {
        let guide = it.guide().unwrap();
        for (from, to) in pairs(it, step) {
            for path in guide.paths(it, from, to, 4160) {
                assert_eq!(forward(it, &guide, from, to, path.ev), path.links());
                let ports = it.uplinks_of(from).count() as u16;
                let first = it.uplinks_of(from).nth(path.ev[0].into()).unwrap();
                assert_eq!(first, path.links()[0], "EV1 is the number of a switch-facing port");
                assert_eq!(forward(it, &guide, from, to, [path.ev[0] + ports, path.ev[1]]), path.links(), "modulo");
            }
        }
    };
    for it in [dragonfly(1, 4, 2), arranged(3, 2, 4, "circulant"), slim_fly(4, 1), slim_fly(5, 1)] {
        follow(&it, 1);
        // If a second switch lacks global links, the path is not in the list.
        let guide = it.guide().unwrap();
        for (from, to) in pairs(&it, 3) {
            for ev in (0..24).flat_map(|a| (0..24).map(move |b| [a, b])) {
                forward(&it, &guide, from, to, ev);
            }
        }
    }
    follow(&dragonfly(4, 8, 4), 101);
    follow(&slim_fly(9, 7), 101);
    follow(&dragonfly(10, 20, 10), 1_000_003);
    follow(&slim_fly(29, 22), 1_000_003);
}

/// On a Dragonfly a part that names a port of the wrong kind still selects one of the right kind.
#[test]
fn entropy_values_of_the_wrong_kind() {
    let it = dragonfly(1, 4, 2);
    let guide = it.guide().unwrap();
    for ev in 0..50 {
        let within = forward(&it, &guide, node(&it, 0), node(&it, 1), [ev, ev]);
        assert!(within.iter().all(|l| it.link(*l).class == LinkClass::Local) && within.len() <= 2);
        let across = forward(&it, &guide, node(&it, 0), node(&it, 30), [ev, ev]);
        let first_two: Vec<LinkClass> = across.iter().take(2).map(|l| it.link(*l).class).collect();
        assert_ne!(first_two, [LinkClass::Local; 2], "the second hop of a guided path is not local again");
    }
}

#[test]
fn a_switch_and_itself() {
    for it in [dragonfly(1, 4, 2), slim_fly(5, 1)] {
        let guide = it.guide().unwrap();
        let at = node(&it, 7);
        let [path] = guide.paths(&it, at, at, 4160)[..] else { panic!("one path") };
        assert_eq!((path.ev, path.latency, path.links()), ([0, 0], Time::ZERO, &[][..]));
        assert_eq!(guide.next(at, 0, false, [1, 1], at), None);
    }
}

#[test]
fn gateways() {
    let it = dragonfly(4, 8, 4);
    let guide = it.guide().unwrap();
    for (from, to) in (0..33).flat_map(|a| (0..33).map(move |b| (a, b))) {
        let found = guide.gateway(from, to);
        assert_eq!(found.is_some(), from != to);
        if let Some((u, v)) = found {
            assert_eq!((it.group_of_switch(u), it.group_of_switch(v)), (Some(from), Some(to)));
            assert_eq!(guide.gateway(to, from), Some((v, u)));
            // "Relative": group g's port to + ... leads k = to - from - 1 (mod 33), of switch k div 4.
            assert_eq!(u.0 - it.hosts, from * 8 + (to + 33 - from - 1) % 33 / 4);
        }
    }
    assert_eq!((guide.gateway(0, 33), slim_fly(5, 1).guide().unwrap().gateway(0, 1)), (None, None));
}
