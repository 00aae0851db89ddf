//! Source-guided paths against specification 8.1, 9.2 to 9.5, 10.4 and 10.5, and against an enumeration.

use crate::common::{arranged, dragonfly, fat_tree, make, neighbours, node, pairs, parameters, slim_fly, walk};
use anabranch_random::Stream;
use anabranch_topology::{
    BasePaths, Guidance, LinkClass, LinkId, LinkOverride, NodeId, PathType, Topology, guided_table_bytes,
};
use anabranch_units::{Rate, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Spritz, Table I: latency in tenths of a nanosecond by (local, global).
const TABLE_I: [((u8, u8), u64); 15] = [
    ((1, 0), 1082),
    ((2, 0), 2164),
    ((0, 1), 5832),
    ((1, 1), 6914),
    ((2, 1), 7996),
    ((0, 2), 11664),
    ((1, 2), 12746),
    ((2, 2), 13828),
    ((3, 2), 14910),
    ((3, 0), 3246),
    ((4, 0), 4328),
    ((3, 1), 9078),
    ((0, 3), 17496),
    ((1, 3), 18578),
    ((0, 4), 23328),
];

fn switches_of(topology: &Topology, from: NodeId, links: &[LinkId]) -> Vec<u32> {
    let mut at = from;
    let mut all = vec![from.0 - topology.hosts];
    for link in links {
        assert_eq!(topology.link(*link).from, at, "links follow each other");
        at = topology.link(*link).to;
        all.push(at.0 - topology.hosts);
    }
    all
}

/// Specification 10.4: two free hops, then over the smallest common neighbour; simple.
fn slim_fly_paths(near: &[BTreeSet<u32>], s: u32, t: u32) -> BTreeSet<Vec<u32>> {
    let adjacent = |a: u32, b: u32| near[a as usize].contains(&b);
    let mut found = BTreeSet::new();
    for &a in &near[s as usize] {
        if a == t {
            found.insert(vec![s, t]);
            continue;
        }
        for &b in &near[a as usize] {
            let mut path = vec![s, a, b];
            if b != t {
                if !adjacent(b, t) {
                    path.push(*near[b as usize].intersection(&near[t as usize]).next().unwrap());
                }
                path.push(t);
            }
            if path.iter().collect::<BTreeSet<_>>().len() == path.len() {
                found.insert(path);
            }
        }
    }
    found
}

/// Specification 8.1: over a switch of the group, or over any global link of the group and then the one link to the
/// destination's group.
fn dragonfly_paths(near: &[BTreeSet<u32>], a: u32, s: u32, t: u32) -> BTreeSet<Vec<u32>> {
    let group = |x: u32| x / a;
    let members = |g: u32| g * a..(g + 1) * a;
    let default = |x: u32| -> Vec<u32> {
        if group(x) == group(t) {
            return vec![x, t];
        }
        let mut ends = members(group(x)).flat_map(|u| near[u as usize].iter().map(move |v| (u, *v)));
        let (u, v) = ends.find(|(_, v)| group(*v) == group(t)).unwrap();
        vec![x, u, v, t]
    };
    let starts: Vec<Vec<u32>> = if group(s) == group(t) {
        members(group(s)).filter(|v| *v != s).map(|v| vec![s, v]).collect()
    } else {
        let out = members(group(s)).flat_map(|u| near[u as usize].iter().map(move |v| (u, *v)));
        out.filter(|(_, v)| group(*v) != group(s)).map(|(u, v)| vec![s, u, v]).collect()
    };
    let whole = |mut start: Vec<u32>| {
        let last = start[start.len() - 1];
        start.extend(default(last));
        start.dedup();
        start
    };
    starts.into_iter().map(whole).collect()
}

fn check_against(
    topology: &Topology,
    step: usize,
    expected: impl Fn(&[BTreeSet<u32>], u32, u32) -> BTreeSet<Vec<u32>>,
) {
    let guide = topology.guide().unwrap();
    let near = neighbours(topology);
    for (from, to) in pairs(topology, step) {
        let paths = guide.paths(topology, from, to, 4160);
        let found: BTreeSet<Vec<u32>> = paths.iter().map(|p| switches_of(topology, from, p.links())).collect();
        assert_eq!(found.len(), paths.len(), "no path twice");
        assert_eq!(found, expected(&near, from.0 - topology.hosts, to.0 - topology.hosts));
        assert!(paths.is_sorted_by_key(|p| (p.latency, p.ev)));
        for path in &paths {
            let links = path.links().iter().map(|l| topology.link(*l));
            let local = links.clone().filter(|l| l.class == LinkClass::Local).count() as u8;
            assert_eq!((path.kind.local, path.kind.local + path.kind.global), (local, path.links().len() as u8));
            assert_eq!(path.propagation, links.map(|l| l.delay).sum());
            assert!(guide.guidance().category(path.kind).is_some());
        }
    }
}

#[test]
fn paths_are_those_of_the_specification() {
    check_against(&dragonfly(1, 4, 2), 1, |near, s, t| dragonfly_paths(near, 4, s, t));
    check_against(&dragonfly(1, 3, 3), 1, |near, s, t| dragonfly_paths(near, 3, s, t));
    check_against(&dragonfly(4, 8, 4), 97, |near, s, t| dragonfly_paths(near, 8, s, t));
    for arrangement in ["absolute", "palmtree", "circulant"] {
        check_against(&arranged(4, 2, 9, arrangement), 1, |near, s, t| dragonfly_paths(near, 4, s, t));
        check_against(&arranged(4, 2, 6, arrangement), 1, |near, s, t| dragonfly_paths(near, 4, s, t));
    }
    for (q, step) in [(3, 1), (4, 1), (5, 1), (7, 5), (9, 97)] {
        check_against(&slim_fly(q, 1), step, slim_fly_paths);
    }
    for (rows, columns, step) in [(1, 4, 1), (2, 2, 1), (4, 3, 1), (5, 5, 1), (8, 8, 97)] {
        check_against(&make("hyperx", &format!("rows={rows} columns={columns} p=1")).unwrap(), step, slim_fly_paths);
    }
}

/// Two free hops, then to the neighbour of the smallest number that is one link nearer, until there; simple.
fn graph_paths(near: &[BTreeSet<u32>], s: u32, t: u32) -> BTreeSet<Vec<u32>> {
    fn within(near: &[BTreeSet<u32>], at: u32, t: u32, links: u32) -> bool {
        at == t || links > 0 && near[at as usize].iter().any(|next| within(near, *next, t, links - 1))
    }
    let distance = |at: u32| (0..).find(|links| within(near, at, t, *links)).unwrap();
    let mut found = BTreeSet::new();
    for &a in &near[s as usize] {
        let starts: Vec<Vec<u32>> =
            if a == t { vec![vec![s, a]] } else { near[a as usize].iter().map(|&b| vec![s, a, b]).collect() };
        for mut path in starts {
            while path[path.len() - 1] != t {
                let at = path[path.len() - 1];
                path.push(*near[at as usize].iter().find(|next| distance(**next) < distance(at)).unwrap());
            }
            if path.iter().collect::<BTreeSet<_>>().len() == path.len() {
                found.insert(path);
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// A drawn graph has the paths of an enumeration, or is refused with its diameter.
    #[test]
    fn paths_of_a_graph_are_those_enumerated(switches in 2u32..14, links in prop::collection::vec((0u32..14, 0u32..14), 0..30)) {
        let ring = (0..switches - 1).map(|s| (s, s + 1));
        let drawn = links.into_iter().map(|(a, b)| (a % switches, b % switches)).filter(|(a, b)| a != b);
        let edges: BTreeSet<(u32, u32)> = ring.chain(drawn).map(|(a, b)| (a.min(b), a.max(b))).collect();
        let text: String = edges.iter().map(|(a, b)| format!("{a} {b}\n")).collect();
        let keys = "path=graph.adjlist guided=true";
        match parameters("file", keys).build(&|_| Ok(text.clone())) {
            Ok(graph) => check_against(&graph, 1, graph_paths),
            Err(error) => {
                let plain = parameters("file", "path=graph.adjlist").build(&|_| Ok(text.clone())).unwrap();
                let near = neighbours(&plain);
                let farthest = |s: u32| {
                    let (mut seen, mut links) = (BTreeSet::from([s]), 0);
                    while seen.len() < switches as usize {
                        seen = seen.iter().flat_map(|at| near[*at as usize].iter().copied().chain([*at])).collect();
                        links += 1;
                    }
                    links
                };
                let far = (0..switches).map(farthest).max().unwrap();
                let expected = format!("two switches are {far} links apart");
                prop_assert!(far > 3 && error.to_string().contains(&expected), "{error}");
            }
        }
    }
}

/// Every path of both fabrics of the paper: Table I to the tenth of a nanosecond.
#[test]
fn latencies_of_table_one() {
    let table: BTreeMap<_, _> = TABLE_I.into_iter().collect();
    let mut seen = BTreeSet::new();
    for it in [dragonfly(4, 8, 4), slim_fly(9, 7)] {
        let guide = it.guide().unwrap();
        for (from, to) in pairs(&it, 7) {
            for path in guide.paths(&it, from, to, 4160) {
                let kind = (path.kind.local, path.kind.global);
                assert_eq!(path.latency, Time::from_ps(table[&kind] * 100), "{kind:?}");
                seen.insert(kind);
            }
        }
        let latency = |t: &PathType| table[&(t.local, t.global)];
        assert!(guide.guidance().types().is_sorted_by_key(latency), "categories are in the order of Table I");
    }
    assert_eq!(seen.len(), 15);
}

/// Specification 9.2.
#[test]
fn counts_of_the_dragonfly() {
    let it = dragonfly(4, 8, 4);
    let guided = it.summary(4160, 64).guided.unwrap();
    let counts: BTreeMap<_, _> = guided.types.iter().map(|t| ((t.kind.local, t.kind.global), t.paths)).collect();
    let expected = [
        ((1, 0), 1848),
        ((2, 0), 11_088),
        ((0, 1), 1056),
        ((1, 1), 14_784),
        ((2, 1), 51_744),
        ((0, 2), 3168),
        ((1, 2), 73_920),
        ((2, 2), 569_184),
        ((3, 2), 1_448_832),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    assert_eq!((guided.sources, guided.fewest, guided.most), (264, 7, 32));
    let guide = it.guide().unwrap();
    for (from, to) in pairs(&it, 13) {
        let paths = guide.paths(&it, from, to, 4160);
        let same = it.group_of_switch(from) == it.group_of_switch(to);
        assert_eq!(paths.len(), if same { 7 } else { 32 });
        let minimal: Vec<PathType> = paths.iter().filter(|p| p.minimal).map(|p| p.kind).collect();
        assert_eq!(minimal.len(), 1, "exactly one minimal path");
        assert!(paths[0].minimal && minimal[0].global == u8::from(!same));
        assert_eq!(minimal[0].local == 1 && same, same);
    }
}

/// Specification 10.4.
#[test]
fn counts_of_the_slim_fly() {
    let it = slim_fly(9, 7);
    let near = neighbours(&it);
    let guide = it.guide().unwrap();
    let mut range: BTreeMap<bool, (usize, usize)> = BTreeMap::new();
    for (from, to) in pairs(&it, 1) {
        let adjacent = near[(from.0 - it.hosts) as usize].contains(&(to.0 - it.hosts));
        let paths = guide.paths(&it, from, to, 4160);
        let range = range.entry(adjacent).or_insert((usize::MAX, 0));
        *range = (range.0.min(paths.len()), range.1.max(paths.len()));
        // The direct path, else one or two over common neighbours.
        let minimal = paths.iter().filter(|p| p.minimal).count();
        let common = near[(from.0 - it.hosts) as usize].intersection(&near[(to.0 - it.hosts) as usize]).count();
        assert_eq!(minimal, if adjacent { 1 } else { common });
        assert!(paths.iter().all(|p| p.ev[0] < 13 && p.ev[1] < 13));
    }
    assert_eq!(range, BTreeMap::from([(true, (132, 141)), (false, (136, 148))]));
    let guided = it.summary(4160, 64).guided.unwrap();
    let types: BTreeSet<_> = guided.types.iter().map(|t| (t.kind.local, t.kind.global)).collect();
    let all = TABLE_I.into_iter().map(|(kind, _)| kind);
    assert_eq!(types, all.filter(|kind| *kind != (3, 2)).collect());
    assert_eq!((guided.fewest, guided.most, guided.sources), (132, 148, 162));
    assert_eq!(Guidance::SlimFly.types().len(), 14);
    assert_eq!(Guidance::SlimFly.category(PathType { local: 3, global: 2 }), None);
}

/// Specification 9.5: 7313.80 ns, 365,690 B, 88 packets; 7604.32 ns, 380,216 B, 92 packets.
#[test]
fn round_trips_of_table_two() {
    for (it, ps, bytes, packets) in
        [(dragonfly(4, 8, 4), 7_313_800, 365_690, 88), (slim_fly(9, 7), 7_604_320, 380_216, 92)]
    {
        assert_eq!(it.guided_base_rtt(4160, 64), Some(Time::from_ps(ps)));
        assert_eq!(it.window_bdp(4160, 64), bytes);
        let guided = it.summary(4160, 64).guided.unwrap();
        assert_eq!((guided.base_rtt, guided.bdp_bytes, guided.bdp_packets), (Time::from_ps(ps), bytes, packets));
    }
    assert_eq!(fat_tree(2, 4).guided_base_rtt(4160, 64), None);
    assert_eq!(fat_tree(2, 4).summary(4160, 64).guided, None);
}

/// The longest round trip of small fabrics with links of all kinds equals the maximum over every path.
#[test]
fn round_trips_where_links_differ() {
    for mut it in [dragonfly(2, 3, 2), slim_fly(4, 2)] {
        let mut stream = Stream::keyed(5, 1, "delays");
        for link in it.links.iter_mut().filter(|l| l.class != LinkClass::Host) {
            link.delay = Time::from_ps(stream.below(1_000_000));
        }
        let host = LinkOverride { class: Some("host".into()), rate: Some(Rate::gbps(100)), ..Default::default() };
        it.apply(&host).unwrap();
        let guide = it.guide().unwrap();
        let (mut data, mut ack) = (Time::ZERO, Time::ZERO);
        for (from, to) in pairs(&it, 1) {
            let paths = guide.paths(&it, from, to, 4160);
            data = paths.iter().map(|p| it.one_way(p.links(), 4160)).max().unwrap().max(data);
            ack = it.one_way(&walk(&it, &guide, from, to), 64).max(ack);
        }
        // Two host links per direction at 80 ps per byte with 25 ns, one switch latency for the first switch.
        let hosts = 2 * 80 * (4160 + 64) + 4 * 25_000 + 2 * 500_000;
        assert_eq!(it.guided_base_rtt(4160, 64), Some(data + ack + Time::from_ps(hosts)));
    }
}

#[test]
fn default_paths() {
    for it in [dragonfly(1, 4, 2), arranged(4, 2, 5, "absolute"), slim_fly(5, 1), slim_fly(8, 1)] {
        let guide = it.guide().unwrap();
        let near = neighbours(&it);
        for (from, to) in pairs(&it, 1) {
            let path = switches_of(&it, from, &walk(&it, &guide, from, to));
            let [s, t] = [from, to].map(|n| n.0 - it.hosts);
            let expected = match guide.guidance() {
                Guidance::SlimFly | Guidance::Graph if near[s as usize].contains(&t) => vec![s, t],
                Guidance::SlimFly | Guidance::Graph => {
                    vec![s, *near[s as usize].intersection(&near[t as usize]).next().unwrap(), t]
                }
                Guidance::Dragonfly => {
                    let of = |paths: BTreeSet<Vec<u32>>| {
                        let crossings = |p: &Vec<u32>| p.windows(2).filter(|w| w[0] / 4 != w[1] / 4).count();
                        paths.into_iter().min_by_key(|p| (crossings(p), p.len())).unwrap()
                    };
                    of(dragonfly_paths(&near, 4, s, t))
                }
            };
            assert_eq!(path, expected);
        }
        assert_eq!(guide.minimal(node(&it, 3), node(&it, 3)), None);
    }
}

/// Specification 9.3, 10.5: 2.30 MiB and 8.52 MiB.
#[test]
fn memory_of_tables() {
    // 4019 * 200 * 3 and 1681 * 1771 * 3 over 1,048,576.
    let mib = |bytes: u64| (bytes as f64 / 1_048_576.0 * 100.0).round() / 100.0;
    assert_eq!((guided_table_bytes(4020, 200), mib(guided_table_bytes(4020, 200))), (2_411_400, 2.30));
    assert_eq!((guided_table_bytes(1682, 1771), mib(guided_table_bytes(1682, 1771))), (8_931_153, 8.52));
    let guided = dragonfly(10, 20, 10).summary(4160, 64).guided.unwrap();
    assert_eq!((guided.most, guided.fewest, guided.table_bytes), (200, 19, 2_411_400));
    // Specification 10.5: the bound is 43 * 42 = 1806 prefixes and the direct path; the maximum is 1778.
    let guided = slim_fly(29, 22).summary(4160, 64).guided.unwrap();
    assert!(guided.most <= 1778 && guided.fewest < guided.most, "{}", guided.most);
    let it = slim_fly(29, 1);
    let guide = it.guide().unwrap();
    let counts = pairs(&it, 9973).map(|(from, to)| guide.paths(&it, from, to, 4160).len());
    assert_eq!(counts.max(), Some(1778));
}

/// The base path is the ideal: no guided path is faster, and one is equally fast.
#[test]
fn base_paths_are_the_fastest() {
    for it in [dragonfly(1, 4, 2), slim_fly(5, 1), dragonfly(4, 8, 4), slim_fly(9, 7)] {
        let guide = it.guide().unwrap();
        let per_switch = it.hosts / it.switches();
        let mut base_paths = BasePaths::default();
        for (from, to) in pairs(&it, 1 + it.switches() as usize / 10) {
            let [src, dst] = [from, to].map(|n| (n.0 - it.hosts) * per_switch);
            let base = it.base_path(src, dst);
            assert_eq!(base_paths.path(&it, src, dst), base);
            let between = it.one_way(&base[1..base.len() - 1], 4160);
            let fastest = guide.paths(&it, from, to, 4160).iter().map(|p| it.one_way(p.links(), 4160)).min();
            assert_eq!(fastest, Some(between));
        }
        // Default paths of local, global, local or two global links: 2299.6 or 2166.4 ns for 4160 B, 2053.84 or 2002.56
        // for 64 B; host links and last switches (83.2 + 1.28 + 2 * 25) * 2 + 1000 ns.
        let both_ways = match guide.guidance() {
            Guidance::Dragonfly => 2_299_600 + 2_053_840,
            Guidance::SlimFly | Guidance::Graph => 2_166_400 + 2_002_560,
        };
        assert_eq!(it.max_base_rtt(4160, 64), Time::from_ps(both_ways + 2 * (83_200 + 1280 + 50_000) + 1_000_000));
    }
}

/// One source has more paths than are examined one by one (4,802 switches of 73 ports: 25 million). The longest is as long as
/// on small ones (specification 9.5: 7604.32 ns).
#[test]
fn base_rtt_of_a_large_slim_fly() {
    assert_eq!(slim_fly(49, 1).guided_base_rtt(4160, 64), Some(Time::from_ps(7_604_320)));
}
