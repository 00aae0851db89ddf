//! Links and times that a fault resolves to, link overrides, and partitions.

use crate::common::{adjacency, edges, fat_tree, leaf_spine, refused, switches};
use anabranch_testkit::set_keys;
use anabranch_topology::{Fault, FaultAction, FaultParameters, LinkId, LinkOverride, NodeId, Topology, partition};
use anabranch_units::{Rate, Time};
use proptest::prelude::*;

fn fault(keys: &str) -> FaultParameters {
    let mut fault = FaultParameters::default();
    set_keys(&mut fault, keys);
    fault
}

fn one(fault: &FaultParameters, topology: &Topology) -> Fault {
    let mut found = fault.resolve(topology, 0, 1).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn link_names(topology: &Topology, links: &[LinkId]) -> Vec<String> {
    links.iter().map(|l| topology.link_name(*l)).collect()
}

fn between(topology: &Topology) -> usize {
    topology.links.iter().filter(|l| l.from.0 >= topology.hosts && l.to.0 >= topology.hosts).count()
}

#[test]
fn links_by_name() {
    let tree = fat_tree(2, 4);
    let links = "links=[leaf1-spine0,spine1->leaf2,spine0-leaf1]";
    let of = |keys: &str| {
        let found = one(&fault(&format!("{links} {keys}")), &tree);
        // Both directions of the cable once, one direction of the other, in the order of the links.
        assert_eq!(link_names(&tree, &found.links), ["leaf1->spine0", "spine0->leaf1", "spine1->leaf2"]);
        (found.at, found.action, found.data_only, found.detect_at)
    };
    assert_eq!(of("kind=link-down at=3us"), (Time::from_us(3), FaultAction::Down, false, None));
    let up = of("kind=link-up at=3us affects=data detect_after=5us");
    assert_eq!(up, (Time::from_us(3), FaultAction::Up, true, Some(Time::from_us(8))));
    let host = one(&fault("kind=link-down links=[host3-leaf1]"), &tree);
    assert_eq!(link_names(&tree, &host.links), ["host3->leaf1", "leaf1->host3"]);
}

#[test]
fn switches_by_name() {
    let tree = fat_tree(3, 4);
    let found = one(&fault("kind=switch-down switches=[agg1,leaf7]"), &tree);
    assert_eq!(found.action, FaultAction::Down);
    let of = [tree.node_named("agg1").unwrap(), tree.node_named("leaf7").unwrap()];
    // Every link that touches one of them, those to hosts included: 2 switches, 4 ports, 2 directions.
    let expected: Vec<LinkId> =
        tree.link_ids().filter(|l| of.contains(&tree.link(*l).from) || of.contains(&tree.link(*l).to)).collect();
    assert_eq!((found.links.len(), found.links), (16, expected));
}

/// Spritz §V-D: 2 % of the directed links between switches; here of cables too. Hosts' links never.
#[test]
fn a_fraction_counts_links_between_switches() {
    let tree = fat_tree(3, 8);
    // 2 * 128 cables between switches, 512 directed links.
    assert_eq!(between(&tree), 512);
    for (fraction, cables, directed) in [(0.02, 5, 10), (0.05, 13, 26), (0.5, 128, 256), (1.0, 256, 512), (0.001, 0, 1)]
    {
        let found = one(&fault(&format!("kind=link-down fraction={fraction}")), &tree).links;
        assert_eq!(found.len(), 2 * cables, "{fraction} of 256 cables");
        assert!(found.iter().all(|l| found.contains(&l.reverse())), "both directions");
        let found = one(&fault(&format!("kind=link-down fraction={fraction} directed=true")), &tree).links;
        assert_eq!(found.len(), directed, "{fraction} of 512 directions");
        assert!(found.windows(2).all(|w| w[0] < w[1]), "ascending, each once");
        assert!(found.iter().map(|l| tree.link(*l)).all(|link| link.from.0.min(link.to.0) >= tree.hosts));
    }
}

#[test]
fn every_cable_may_be_chosen_and_about_equally_often() {
    // 6 cables, one chosen for each of 6000 seeds: 1000 each, standard deviation sqrt(6000 * 1/6 * 5/6) = 29.
    let fabric = leaf_spine(3, 2, 1, 1);
    let one_of = fault("kind=link-down count=1");
    let mut chosen = vec![0u32; fabric.links.len()];
    for seed in 0..6000 {
        let found = one_of.resolve(&fabric, 0, seed).unwrap();
        assert_eq!(found[0].links.len(), 2);
        chosen[found[0].links[0].0 as usize] += 1;
    }
    let chosen: Vec<u32> = chosen.into_iter().filter(|c| *c > 0).collect();
    assert_eq!(chosen.len(), 6);
    assert!(chosen.iter().all(|c| c.abs_diff(1000) < 5 * 29), "{chosen:?}");
}

#[test]
fn the_choice_depends_on_seed_and_number_alone() {
    let tree = fat_tree(2, 16);
    let links = |keys: &str, index, seed| fault(keys).resolve(&tree, index, seed).unwrap()[0].links.clone();
    let down = "kind=link-down fraction=0.25";
    let first = links(down, 0, 7);
    assert_eq!(first, links(down, 0, 7));
    // 32 of 128 cables: the same ones by chance once in 10^30.
    assert_ne!(first, links(down, 1, 7));
    assert_ne!(first, links(down, 0, 8));
    // Kind, time and affected packets do not change the choice: a later link-up of the same number would restore the same links.
    assert_eq!(first, links("kind=packet-loss fraction=0.25 loss=0.5 at=9us affects=data", 0, 7));
    assert_eq!(first, links("kind=link-down count=32", 0, 7));
}

#[test]
fn degraded_links() {
    let mut fabric = leaf_spine(2, 2, 2, 1);
    let half = fault("kind=link-degrade links=[leaf0-spine0,leaf1->spine1] factor=0.5");
    let found = one(&fault("kind=link-degrade links=[leaf0-spine0,leaf1->spine1] rate=25Gbps"), &fabric);
    assert_eq!(found.action, FaultAction::Degrade(Rate::gbps(25)));
    assert_eq!(link_names(&fabric, &found.links), ["leaf0->spine0", "spine0->leaf0", "leaf1->spine1"]);
    assert_eq!(one(&half, &fabric).action, FaultAction::Degrade(Rate::gbps(50)));
    // Links of several rates: a fault for each rate, slowest first, every link in one of them.
    fabric.links[found.links[0].0 as usize].rate = Rate::gbps(40);
    let several = half.resolve(&fabric, 0, 1).unwrap();
    let rows: Vec<_> = several.iter().map(|f| (f.action, link_names(&fabric, &f.links).join(" "))).collect();
    let degrade = |gbps| FaultAction::Degrade(Rate::gbps(gbps));
    let expected = [(degrade(20), "leaf0->spine0".into()), (degrade(50), "spine0->leaf0 leaf1->spine1".into())];
    assert_eq!(rows, expected);
}

#[test]
fn faults_of_packets() {
    let fabric = leaf_spine(2, 2, 2, 1);
    for (keys, action) in [
        ("kind=packet-loss loss=0.01", FaultAction::Loss { per_billion: 10_000_000 }),
        ("kind=packet-loss loss=1.0", FaultAction::Loss { per_billion: 1_000_000_000 }),
        ("kind=packet-loss loss=1e-9", FaultAction::Loss { per_billion: 1 }),
        ("kind=packet-loss loss=0.000123", FaultAction::Loss { per_billion: 123_000 }),
        ("kind=packet-corruption corruption=0.25", FaultAction::Corrupt { per_billion: 250_000_000 }),
        ("kind=packet-duplication duplication=1.0", FaultAction::Duplicate { per_billion: 1_000_000_000 }),
        (
            "kind=packet-delay delay=5ms jitter=1ms",
            FaultAction::Delay { delay: Time::from_ms(5), jitter: Time::from_ms(1) },
        ),
    ] {
        let found = one(&fault(&format!("{keys} links=[leaf0->spine1]")), &fabric);
        assert_eq!((found.action, found.links.len()), (action, 1));
    }
}

#[test]
fn flapping_links_go_down_and_come_back() {
    let fabric = leaf_spine(2, 2, 2, 1);
    let us = Time::from_us;
    let keys = "kind=link-flap at=10us period=100us down_for=30us flaps=3 links=[leaf0-spine1]";
    let flap = fault(&format!("{keys} detect_after=5us"));
    let found = flap.resolve(&fabric, 0, 1).unwrap();
    let times: Vec<_> = found.iter().map(|f| (f.at, f.action, f.detect_at)).collect();
    let expected = [10, 110, 210].into_iter().flat_map(|at| {
        [(us(at), FaultAction::Down, Some(us(at + 5))), (us(at + 30), FaultAction::Up, Some(us(at + 35)))]
    });
    assert_eq!(times, expected.collect::<Vec<_>>());
    assert!(found.iter().all(|f| link_names(&fabric, &f.links) == ["leaf0->spine1", "spine1->leaf0"]));
    assert_eq!((flap.table_changes(), fault(keys).table_changes()), (6, 0));
}

#[test]
fn invalid_faults_are_refused() {
    let tree = fat_tree(2, 4);
    for [keys, key, said] in refused("faults") {
        let wrong = fault(&keys.replace("LINK", "links=[leaf0-spine0]"));
        let error = wrong.resolve(&tree, 0, 1).expect_err(&keys);
        assert_eq!(error.key.as_deref().unwrap_or_default(), key, "{keys}: {error}");
        assert!(error.message.contains(&said), "{keys}: `{said}` in: {error}");
    }
}

#[test]
fn overrides() {
    let mut fabric = leaf_spine(2, 2, 3, 1);
    let before = fabric.links.clone();
    let change = |link: Option<&str>, class: Option<&str>, rate: Option<u64>, delay: Option<u64>| LinkOverride {
        link: link.map(String::from),
        class: class.map(String::from),
        rate: rate.map(Rate::gbps),
        delay: delay.map(Time::from_us),
    };
    assert_eq!(fabric.apply(&change(Some("leaf0->spine1"), None, Some(10), None)), Ok(1));
    assert_eq!(fabric.apply(&change(Some("leaf1-spine1"), None, None, Some(7))), Ok(2));
    assert_eq!(fabric.apply(&change(None, Some("host"), Some(25), Some(0))), Ok(12));
    for (id, (new, old)) in fabric.link_ids().zip(fabric.links.iter().zip(&before)) {
        let expected = match fabric.link_name(id).as_str() {
            "leaf0->spine1" => (Rate::gbps(10), old.delay),
            "leaf1->spine1" | "spine1->leaf1" => (old.rate, Time::from_us(7)),
            name if name.contains("host") => (Rate::gbps(25), Time::ZERO),
            _ => (old.rate, old.delay),
        };
        assert_eq!((new.rate, new.delay, new.from, new.to), (expected.0, expected.1, old.from, old.to));
    }
    assert_eq!(fabric.apply(&change(None, Some("tier0-1"), None, Some(2))), Ok(8));
    let changed = fabric.links.clone();
    for (wrong, key, said) in [
        (change(None, None, Some(1), None), None, "`link` or `class`"),
        (change(Some("leaf0-spine0"), Some("host"), Some(1), None), Some("link"), "not both"),
        (change(Some("leaf0-spine0"), None, None, None), None, "`rate` or `delay`"),
        (change(Some("leaf0-spne0"), None, Some(1), None), Some("link"), "did you mean `leaf0-spine0`"),
        (change(None, Some("tier0-2"), Some(1), None), Some("class"), "it has host, tier0-1 (did you mean `tier0-1`?)"),
        (change(None, Some("host"), Some(0), None), Some("rate"), "1Mbps"),
        (change(None, Some("host"), Some(1), Some(1_000_001)), Some("delay"), "at most 1s"),
    ] {
        let error = fabric.apply(&wrong).unwrap_err();
        assert_eq!(error.key.as_deref(), key, "{error}");
        assert!(error.message.contains(said), "`{said}` in: {error}");
        assert_eq!(fabric.links, changed, "a mistake changes nothing");
    }
}

fn pod(tree: &Topology, tiers: u64, radix: u32, switch: NodeId) -> Option<u32> {
    let number = |prefix: &str| tree.node(switch).name.strip_prefix(prefix).map(|n| n.parse::<u32>().unwrap());
    match tiers {
        2 => number("leaf"),
        _ => number("leaf").or(number("agg")).map(|n| n / (radix / 2)),
    }
}

#[test]
fn parts_keep_pods_together_and_are_balanced() {
    for (tiers, radix) in [(2, 8), (2, 16), (3, 4), (3, 8), (3, 12)] {
        let tree = fat_tree(tiers, radix);
        for parts in 1..=8 {
            let owner = partition(&tree, parts);
            assert_eq!(owner.len(), tree.nodes.len());
            assert!(owner.iter().all(|o| (*o as usize) < parts));
            for host in 0..tree.hosts {
                assert_eq!(owner[host as usize], owner[tree.edge_switch(host).0 as usize]);
            }
            let mut pods = vec![None; radix as usize];
            let mut top = vec![0usize; parts];
            for switch in switches(&tree) {
                let own = owner[switch.0 as usize];
                match pod(&tree, tiers, radix as u32, switch) {
                    Some(pod) => assert_eq!(*pods[pod as usize].get_or_insert(own), own, "pod {pod} is split"),
                    None => top[own as usize] += 1,
                }
            }
            let mut sizes = vec![0usize; parts];
            pods.iter().for_each(|p| sizes[p.unwrap() as usize] += 1);
            for counts in [sizes, top] {
                let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
                assert!(most - least <= 1, "{counts:?} of {parts} parts at {tiers} tiers, radix {radix}");
            }
            assert_eq!(owner, partition(&tree, parts), "always the same");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn parts_of_a_ring(switches in 3..40u32, hosts in 1..4u64, parts in 1..9usize) {
        let mut text = format!("0 1 {}\n", switches - 1);
        text.extend((1..switches - 1).map(|s| format!("{s} {}\n", s + 1)));
        let ring = adjacency(&text, hosts);
        let owner = partition(&ring, parts);
        let mut sizes = vec![0usize; parts];
        edges(&ring).iter().for_each(|s| sizes[owner[s.0 as usize] as usize] += 1);
        prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{:?}", sizes);
        for host in 0..ring.hosts {
            prop_assert_eq!(owner[host as usize], owner[ring.edge_switch(host).0 as usize]);
        }
    }

    #[test]
    fn resolved_links_are_sorted_and_of_the_size_asked_for(
        (leaves, spines, parallel) in (1..6u64, 1..6u64, 1..3u64),
        share in 0.0..1.0f64,
        directed: bool,
        (index, seed) in (0..9usize, any::<u64>()),
    ) {
        let fabric = leaf_spine(leaves, spines, 2, parallel);
        let pool = leaves * spines * parallel * if directed { 2 } else { 1 };
        let count = 1 + (share * (pool - 1) as f64) as u64;
        let down = fault(&format!("kind=link-down count={count} directed={directed}"));
        let found = &down.resolve(&fabric, index, seed).unwrap()[0].links;
        prop_assert_eq!(found.len() as u64, if directed { count } else { 2 * count });
        prop_assert!(found.windows(2).all(|w| w[0] < w[1]));
    }
}

#[test]
fn unknown_names_state_what_there_is() {
    // Radix 8 in three tiers: 32 leaves, 32 aggregation switches, (8/2)^2 = 16 cores, 128 hosts.
    let tree = fat_tree(3, 8);
    let message = |keys: &str| fault(keys).resolve(&tree, 0, 1).unwrap_err().message;
    let found = message("kind=switch-down switches=[spine0]");
    assert!(found.contains("leaf0 to leaf31, agg0 to agg31, core0 to core15; hosts are host0 to host127"), "{found}");
    let link = |name: &str| message(&format!("kind=link-down links=[{name}]"));
    let found = link("leaf0-spine0");
    assert!(found.contains("no node `spine0`") && found.contains("core0 to core15"), "{found}");
    // Core 0 has no cable to a leaf.
    let found = link("leaf0-core0");
    assert!(found.contains("the links of leaf0 lead to host0 to host3, agg0 to agg3"), "{found}");
}
