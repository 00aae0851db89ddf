//! Forwarding by entropy values (specification 8.1).

use crate::common::{arranged, dragonfly, node, pairs, slim_fly, walk};
use anabranch_topology::{Guide, GuidedPath, LinkClass, LinkId, NodeId, Topology, virtual_channel};
use anabranch_units::Time;
use std::collections::{BTreeMap, BTreeSet};

fn forward(topology: &Topology, guide: &Guide, from: NodeId, to: NodeId, ev: [u16; 2]) -> Vec<LinkId> {
    let (mut at, mut links, mut local) = (from, Vec::new(), false);
    while let Some(link) = guide.next(at, links.len() as u8, local, ev, to) {
        assert_eq!(topology.link(link).from, at);
        links.push(link);
        local = topology.link(link).class == LinkClass::Local;
        at = topology.link(link).to;
        assert!(links.len() <= usize::from(guide.guidance().virtual_channels()), "{from:?} {to:?} {ev:?}");
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

/// Returns `true` if there is a cycle of links (with their virtual channels) that packets hold while they wait for the next.
fn has_cycle(topology: &Topology, channel: impl Fn(u8) -> u8) -> bool {
    let guide = topology.guide().unwrap();
    let mut waits: BTreeMap<(LinkId, u8), BTreeSet<(LinkId, u8)>> = BTreeMap::new();
    for (from, to) in pairs(topology, 1) {
        let default = walk(topology, &guide, from, to);
        let paths: Vec<GuidedPath> = guide.paths(topology, from, to, 4160);
        for links in paths.iter().map(GuidedPath::links).chain([&default[..]]) {
            let held: Vec<_> = (0..).zip(links).map(|(hop, link)| (*link, channel(hop))).collect();
            held.windows(2).for_each(|w| {
                waits.entry(w[0]).or_default().insert(w[1]);
            });
        }
    }
    // Links that wait for no other are removed repeatedly; the remaining ones are in cycles.
    let mut waited_for: BTreeMap<(LinkId, u8), Vec<(LinkId, u8)>> = BTreeMap::new();
    let mut open: BTreeMap<(LinkId, u8), usize> = waits.iter().map(|(held, next)| (*held, next.len())).collect();
    for (held, next) in &waits {
        next.iter().for_each(|n| waited_for.entry(*n).or_default().push(*held));
    }
    let mut free: Vec<_> = waited_for.keys().filter(|n| !waits.contains_key(n)).copied().collect();
    while let Some(done) = free.pop() {
        for held in waited_for.get(&done).into_iter().flatten() {
            let left = open.get_mut(held).unwrap();
            *left -= 1;
            if *left == 0 {
                open.remove(held);
                free.push(*held);
            }
        }
    }
    !open.is_empty()
}

#[test]
fn virtual_channels_prevent_deadlock() {
    for it in [dragonfly(1, 3, 1), dragonfly(1, 4, 2), slim_fly(3, 1), slim_fly(4, 1), slim_fly(5, 1)] {
        assert!(has_cycle(&it, |_| 0), "one channel is not enough");
        assert!(!has_cycle(&it, virtual_channel));
        let longest = it.guide().unwrap().guidance().types().iter().map(|t| t.local + t.global).max().unwrap();
        assert_eq!(virtual_channel(longest - 1) + 1, it.guide().unwrap().guidance().virtual_channels());
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
