//! Dragonfly and Slim Fly as graphs, against the numbers of specification 9.1, 10.1, 10.2 and 10.3.

use crate::common::{
    adjacency, arranged, cables, description, dragonfly, file, hops_from, live_links, make, neighbours, node, slim_fly,
};
use anabranch_topology::{LinkClass, LinkOverride, NodeId, Routes, Topology, partition};
use anabranch_units::{Rate, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// Switch hops from these switches to all.
fn hops(topology: &Topology, sources: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    let live = live_links(topology, &[]);
    sources.flat_map(move |from| hops_from(&live, node(topology, from)).into_values())
}

fn diameter(topology: &Topology, sources: impl Iterator<Item = u32>) -> u32 {
    hops(topology, sources).max().unwrap()
}

#[test]
fn dragonfly_of_the_paper() {
    let it = make("dragonfly", "").unwrap();
    assert_eq!((it.switches(), it.hosts), (264, 1056));
    assert_eq!([LinkClass::Host, LinkClass::Local, LinkClass::Global].map(|c| cables(&it, c)), [1056, 924, 528]);
    assert!((0..264).all(|s| it.out_links(NodeId(1056 + s)).len() == 15), "15 ports per switch");
    assert_eq!(diameter(&it, 0..264), 3);
    assert_eq!(it.groups.iter().collect::<BTreeSet<_>>().len(), 33);
    for host in 0..1056 {
        let switch = it.edge_switch(host);
        assert_eq!(switch, NodeId(1056 + host / 4), "host h on switch h div p");
        assert_eq!(it.group_of_switch(switch), Some(host / 4 / 8), "group = switch div a");
    }
    assert_eq!((it.group_of_switch(NodeId(0)), it.uplinks.len()), (None, 0));
    // Specification 9.1, "relative": link j of switch i of group g, k = i*h + j, leads to group g + k + 1 and to switch
    // (G - (k + 1) - 1) div h there.
    let near = neighbours(&it);
    for (g, i, j) in (0..33).flat_map(|g| (0..8).flat_map(move |i| (0..4).map(move |j| (g, i, j)))) {
        let k = i * 4 + j;
        assert!(near[g * 8 + i].contains(&(((g + k + 1) % 33 * 8 + (33 - (k + 1) - 1) / 4) as u32)));
    }
    let summary = it.summary(4160, 64);
    assert_eq!((summary.diameter_links, summary.diameter_switch_hops), (5, 3));
    let total: u64 = hops(&it, 0..264).map(u64::from).sum();
    assert_eq!(summary.average_switch_hops, total as f64 / (264.0 * 263.0));
}

#[test]
fn every_arrangement_has_one_link_between_any_two_groups() {
    for arrangement in ["relative", "absolute", "palmtree", "circulant"] {
        for (a, h, groups) in
            [(8, 4, 33), (8, 4, 20), (8, 4, 1), (8, 4, 2), (3, 3, 10), (1, 4, 5), (4, 1, 5), (4, 1, 4)]
        {
            let it = arranged(a, h, groups, arrangement);
            let near = neighbours(&it);
            let mut between: BTreeMap<(u32, u32), u32> = BTreeMap::new();
            for (from, others) in (0u32..).zip(&near) {
                let other_groups = others.iter().filter(|o| **o / a as u32 != from / a as u32);
                assert!(other_groups.clone().count() as u64 <= h);
                assert_eq!((others.len() - other_groups.clone().count()) as u64, a - 1, "fully meshed");
                for other in other_groups {
                    *between.entry((from / a as u32, other / a as u32)).or_insert(0) += 1;
                }
            }
            assert_eq!(between.len() as u64, groups * (groups - 1), "{arrangement} {a} {h} {groups}");
            assert!(between.values().all(|links| *links == 1));
            assert!(diameter(&it, 0..it.switches()) <= 3);
        }
    }
}

#[test]
fn rates_delays_and_names() {
    let keys = "global_link_rate=200Gbps host_link_rate=100Gbps host_link_delay=7ns local_link_delay=11ns";
    let it = make("dragonfly", keys).unwrap();
    for link in &it.links {
        let expected = match link.class {
            LinkClass::Host => (100, 7),
            LinkClass::Local => (400, 11),
            _ => (200, 500),
        };
        assert_eq!((link.rate, link.delay), (Rate::gbps(expected.0), Time::from_ns(expected.1)));
    }
    assert_eq!(it.switch_latency, Time::from_ns(500));
    assert_eq!(it.node_named("sw4.7"), Ok(NodeId(1056 + 4 * 8 + 7)));
    for link in it.link_ids() {
        assert_eq!(it.link_named(&it.link_name(link)), Ok(vec![link]));
        assert!(it.link_named(&it.cable_name(link)).unwrap().contains(&link));
    }
    let error = it.link_named("sw0.0-sw0.9").unwrap_err();
    assert!(error.message.contains("did you mean `sw0.0-sw0."), "{error}");
    let mut it = slim_fly(5, 1);
    let change = LinkOverride { class: Some("global".into()), delay: Some(Time::from_us(1)), ..Default::default() };
    assert_eq!(it.apply(&change), Ok(2 * 50 * 5 / 2), "q global links at each of 2 q^2 switches");
}

/// Specification 10.1: 2 q^2 switches of degree (3q - delta) / 2, diameter 2.
#[test]
fn slim_flies_of_all_small_sizes() {
    for q in [3u32, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 32] {
        let it = slim_fly(q.into(), 1);
        let near = neighbours(&it);
        let degree = match q % 4 {
            1 => (3 * q - 1) / 2,
            3 => (3 * q).div_ceil(2),
            _ => 3 * q / 2,
        };
        assert_eq!(near.len() as u32, 2 * q * q);
        assert!(near.iter().all(|n| n.len() as u32 == degree), "degree at q = {q}");
        let step = if q < 13 { 1 } else { 7 };
        assert_eq!(diameter(&it, (0..2 * q * q).step_by(step)), 2, "diameter at q = {q}");
        // q global links each (specification 10.3), a group being q switches in a row.
        for (switch, others) in (0u32..).zip(&near) {
            assert_eq!(others.iter().filter(|o| **o / q != switch / q).count() as u32, q);
        }
    }
}

/// Specification 10.2, 10.3.
#[test]
fn slim_fly_of_the_paper() {
    let it = make("slim-fly", "").unwrap();
    assert_eq!((it.switches(), it.hosts), (162, 1134));
    assert_eq!([LinkClass::Host, LinkClass::Local, LinkClass::Global].map(|c| cables(&it, c)), [1134, 324, 729]);
    assert!((0..162).all(|s| it.out_links(NodeId(1134 + s)).len() == 20), "20 ports per switch");
    let groups: BTreeSet<u32> = it.groups.iter().copied().collect();
    assert_eq!(groups.len(), 18);
    for switch in 0..162 {
        assert_eq!(it.group_of_switch(NodeId(1134 + switch)), Some(switch / 9));
        let links = it.out_links(NodeId(1134 + switch)).iter();
        let (mut local, mut global) = (0, 0);
        for link in links.map(|l| it.link(*l)).filter(|l| l.to.0 >= 1134) {
            let (count, delay) = if link.class == LinkClass::Local { (&mut local, 25) } else { (&mut global, 500) };
            *count += 1;
            assert_eq!(link.delay, Time::from_ns(delay));
        }
        assert_eq!((local, global), (4, 9));
    }
    // Ordered pairs: 2106 adjacent; at distance 2 one shortest path for 23,328 and two for 648. Average (2106 + 2 *
    // 23,976) / 26,082 = 1.919.
    let summary = it.summary(4160, 64);
    let paths: Vec<_> = summary.paths.iter().map(|p| (p.switch_hops, p.paths, p.pairs)).collect();
    assert_eq!(paths, [(1, 1, 2106), (2, 1, 23_328), (2, 2, 648)]);
    assert!((summary.average_switch_hops - 1.919).abs() < 0.0005, "{}", summary.average_switch_hops);
    assert_eq!(summary.diameter_switch_hops, 2);
}

/// A group is in one part, so that only global links, the longest, lead out of a part.
#[test]
fn parts_are_whole_groups() {
    for it in [dragonfly(4, 8, 4), slim_fly(9, 7)] {
        for parts in [2, 3, 8] {
            let owner = partition(&it, parts);
            for link in &it.links {
                assert!(link.class == LinkClass::Global || owner[link.from.0 as usize] == owner[link.to.0 as usize]);
            }
            assert_eq!(owner.iter().collect::<BTreeSet<_>>().len(), parts);
        }
    }
}

/// Specification 14.2: the same fabrics from htsim's files.
#[test]
fn htsim_files_of_groups() {
    let rest = "Switch_latency_ns 500\nLink_speed_global_Gbps 400\nLink_speed_local_Gbps 400\nLink_speed_host_Gbps 400\n\
                Link_latency_global_ns 500\nLink_latency_local_ns 25\nLink_latency_host_ns 25\n";
    let read = |text: &str| file("htsim-topo", text);
    let it = read(&format!("# a Dragonfly\np 4\na 8\nh 4\n{rest}")).unwrap();
    assert_eq!(description(&it), description(&dragonfly(4, 8, 4)));
    assert_eq!((it.groups.len(), it.guidance), (264, dragonfly(4, 8, 4).guidance));
    let it = read(&format!("p 7\nq 9\n{rest}")).unwrap();
    assert_eq!(description(&it), description(&slim_fly(9, 7)));
    let changed =
        read("p 1\nq 5\nLink_latency_global_ns 800\nLink_speed_local_Gbps 200\nSwitch_latency_ns 0\n").unwrap();
    assert_eq!(changed.switch_latency, Time::ZERO);
    assert!(changed.links.iter().all(|l| l.class != LinkClass::Global || l.delay == Time::from_ns(800)));
    assert!(changed.links.iter().all(|l| l.class != LinkClass::Local || l.rate == Rate::gbps(200)));
}

/// Specification 14.2: a line per switch with its neighbours of larger numbers; the graph comes back as it was.
#[test]
fn adjacency_lists_of_groups() {
    for it in [dragonfly(2, 4, 2), slim_fly(5, 3)] {
        let near = neighbours(&it);
        let line = |(switch, others): (u32, &BTreeSet<u32>)| {
            let others = others.iter().filter(|o| **o > switch).map(|o| format!(" {o}"));
            format!("{switch}{}\n", others.collect::<String>())
        };
        let text: String = (0..).zip(&near).map(line).collect();
        let read = adjacency(&text, u64::from(it.hosts / it.switches()));
        assert_eq!((neighbours(&read), read.hosts), (near, it.hosts));
        assert!(read.guide().is_none() && read.groups.is_empty());
    }
}

/// Specification 9.3, 10.5: 40,200 hosts at 4,020 switches, 37,004 at 1,682. The limit is on the time of an optimised build.
#[test]
fn tables_of_forty_thousand_endpoints() {
    let most = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 10 });
    for (build, switches, hosts, diameter) in
        [((|| dragonfly(10, 20, 10)) as fn() -> Topology, 4020, 40_200, 3), (|| slim_fly(29, 22), 1682, 37_004, 2)]
    {
        let start = Instant::now();
        let it = build();
        assert_eq!((it.switches(), it.hosts), (switches, hosts));
        let routes = Routes::shortest(&it, &[]);
        let guide = it.guide().unwrap();
        let summary = it.summary(4160, 64);
        assert!(start.elapsed() < 4 * most);
        assert_eq!((routes.unreachable(), summary.diameter_switch_hops), (0, diameter));
        assert!(guide.minimal(it.edge_switch(0), it.edge_switch(hosts - 1)).is_some());
    }
}
