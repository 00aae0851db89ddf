//! Links and times that a fault resolves to, link overrides, and partitions.

use crate::common::{adjacency, edges, fat_tree, leaf_spine, switches};
use anabranch_settings::Never;
use anabranch_topology::{
    Affects, Fault, FaultAction, FaultKind, FaultParameters, LinkId, LinkOverride, NodeId, Topology, partition,
};
use anabranch_units::{Rate, Time};
use proptest::prelude::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| n.to_string()).collect()
}

fn fault(kind: FaultKind) -> FaultParameters {
    FaultParameters { kind, ..Default::default() }
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
    let links = names(&["leaf1-spine0", "spine1->leaf2", "spine0-leaf1"]);
    let down = FaultParameters { links, at: Time::from_us(3), ..fault(FaultKind::LinkDown) };
    let found = one(&down, &tree);
    assert_eq!(
        (found.at, found.action, found.data_only, found.detect_at),
        (Time::from_us(3), FaultAction::Down, false, None)
    );
    // Both directions of the cable once, one direction of the other, in the order of the links.
    assert_eq!(link_names(&tree, &found.links), ["leaf1->spine0", "spine0->leaf1", "spine1->leaf2"]);
    let up = FaultParameters {
        kind: FaultKind::LinkUp,
        affects: Affects::Data,
        detect_after: Never::Value(Time::from_us(5)),
        ..down.clone()
    };
    let found = one(&up, &tree);
    assert_eq!((found.action, found.data_only, found.detect_at), (FaultAction::Up, true, Some(Time::from_us(8))));
    let late = FaultParameters { at: Time::from_us(1), detect_after: Never::Value(Time::MAX), ..down };
    assert_eq!(one(&late, &tree).detect_at, Some(Time::MAX));
    let host = FaultParameters { links: names(&["host3-leaf1"]), ..fault(FaultKind::LinkDown) };
    assert_eq!(link_names(&tree, &one(&host, &tree).links), ["host3->leaf1", "leaf1->host3"]);
}

#[test]
fn switches_by_name() {
    let tree = fat_tree(3, 4);
    let down = FaultParameters { switches: names(&["agg1", "leaf7"]), ..fault(FaultKind::SwitchDown) };
    let found = one(&down, &tree);
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
    let links = between(&tree);
    // 2 * 128 cables between switches, 512 directed links.
    assert_eq!(links, 512);
    for (fraction, cables, directed) in [(0.02, 5, 10), (0.05, 13, 26), (0.5, 128, 256), (1.0, 256, 512), (0.001, 0, 1)]
    {
        let whole = FaultParameters { fraction, ..fault(FaultKind::LinkDown) };
        let found = one(&whole, &tree).links;
        assert_eq!(found.len(), 2 * cables, "{fraction} of 256 cables");
        assert!(found.iter().all(|l| found.contains(&l.reverse())), "both directions");
        let half = FaultParameters { directed: true, ..whole };
        let found = one(&half, &tree).links;
        assert_eq!(found.len(), directed, "{fraction} of 512 directions");
        assert!(found.windows(2).all(|w| w[0] < w[1]), "ascending, each once");
        for link in found {
            let link = tree.link(link);
            assert!(link.from.0 >= tree.hosts && link.to.0 >= tree.hosts);
        }
    }
}

#[test]
fn every_cable_may_be_chosen_and_about_equally_often() {
    // 6 cables, one chosen for each of 6000 seeds: 1000 each, standard deviation sqrt(6000 * 1/6 * 5/6) = 29.
    let fabric = leaf_spine(3, 2, 1, 1);
    let one_of = FaultParameters { count: 1, ..fault(FaultKind::LinkDown) };
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
    let down = FaultParameters { fraction: 0.25, ..fault(FaultKind::LinkDown) };
    let links = |f: &FaultParameters, index, seed| f.resolve(&tree, index, seed).unwrap()[0].links.clone();
    let first = links(&down, 0, 7);
    assert_eq!(first, links(&down, 0, 7));
    // 32 of 128 cables: the same ones by chance once in 10^30.
    assert_ne!(first, links(&down, 1, 7));
    assert_ne!(first, links(&down, 0, 8));
    // Kind, time and affected packets do not change the choice: a later link-up of the same number would restore the same links.
    let other = FaultParameters {
        kind: FaultKind::PacketLoss,
        loss: 0.5,
        at: Time::from_us(9),
        affects: Affects::Data,
        ..down.clone()
    };
    assert_eq!(first, links(&other, 0, 7));
    assert_eq!(first, links(&FaultParameters { fraction: 0.0, count: 32, ..down }, 0, 7));
}

#[test]
fn degraded_links() {
    let mut fabric = leaf_spine(2, 2, 2, 1);
    let links = names(&["leaf0-spine0", "leaf1->spine1"]);
    let to_rate = FaultParameters { links, rate: Some(Rate::gbps(25)), ..fault(FaultKind::LinkDegrade) };
    let found = one(&to_rate, &fabric);
    assert_eq!(found.action, FaultAction::Degrade(Rate::gbps(25)));
    assert_eq!(link_names(&fabric, &found.links), ["leaf0->spine0", "spine0->leaf0", "leaf1->spine1"]);
    let to_half = FaultParameters { rate: None, factor: 0.5, ..to_rate.clone() };
    assert_eq!(one(&to_half, &fabric).action, FaultAction::Degrade(Rate::gbps(50)));
    // Links of several rates: a fault for each rate, slowest first, every link in one of them.
    fabric.links[found.links[0].0 as usize].rate = Rate::gbps(40);
    let several = to_half.resolve(&fabric, 0, 1).unwrap();
    let rows: Vec<_> = several.iter().map(|f| (f.action, link_names(&fabric, &f.links))).collect();
    assert_eq!(
        rows,
        [
            (FaultAction::Degrade(Rate::gbps(20)), names(&["leaf0->spine0"])),
            (FaultAction::Degrade(Rate::gbps(50)), names(&["spine0->leaf0", "leaf1->spine1"])),
        ]
    );
}

#[test]
fn lossy_links() {
    let fabric = leaf_spine(2, 2, 2, 1);
    for (loss, per_billion) in [(0.01, 10_000_000), (1.0, 1_000_000_000), (1e-9, 1), (0.000_123, 123_000)] {
        let lossy = FaultParameters { loss, links: names(&["leaf0->spine1"]), ..fault(FaultKind::PacketLoss) };
        let found = one(&lossy, &fabric);
        assert_eq!((found.action, found.links.len()), (FaultAction::Loss { per_billion }, 1));
    }
}

#[test]
fn flapping_links_go_down_and_come_back() {
    let fabric = leaf_spine(2, 2, 2, 1);
    let us = Time::from_us;
    let flap = FaultParameters {
        at: us(10),
        period: us(100),
        down_for: us(30),
        flaps: 3,
        detect_after: Never::Value(us(5)),
        links: names(&["leaf0-spine1"]),
        ..fault(FaultKind::LinkFlap)
    };
    let found = flap.resolve(&fabric, 0, 1).unwrap();
    let times: Vec<_> = found.iter().map(|f| (f.at, f.action, f.detect_at)).collect();
    let expected = [10, 110, 210].into_iter().flat_map(|at| {
        [(us(at), FaultAction::Down, Some(us(at + 5))), (us(at + 30), FaultAction::Up, Some(us(at + 35)))]
    });
    assert_eq!(times, expected.collect::<Vec<_>>());
    assert!(found.iter().all(|f| link_names(&fabric, &f.links) == ["leaf0->spine1", "spine1->leaf0"]));
    assert_eq!(
        (flap.table_changes(), FaultParameters { detect_after: Never::Never, ..flap.clone() }.table_changes()),
        (6, 0)
    );
    for (wrong, key) in [
        (FaultParameters { flaps: 0, ..flap.clone() }, "flaps"),
        (FaultParameters { flaps: 10_001, ..flap.clone() }, "flaps"),
        (FaultParameters { period: Time::ZERO, ..flap.clone() }, "period"),
        (FaultParameters { down_for: us(100), ..flap.clone() }, "down_for"),
        (FaultParameters { down_for: Time::ZERO, ..flap.clone() }, "down_for"),
        (FaultParameters { period: Time::from_ps(u64::MAX / 2), ..flap.clone() }, "period"),
        (FaultParameters { kind: FaultKind::LinkDown, ..flap.clone() }, "period"),
    ] {
        assert_eq!(wrong.resolve(&fabric, 0, 1).unwrap_err().key.as_deref(), Some(key));
    }
}

#[test]
fn faults_of_real_links_only() {
    let fabric = leaf_spine(2, 2, 2, 1);
    let with = |kind| FaultParameters { links: names(&["leaf0->spine1"]), ..fault(kind) };
    let corrupt = FaultParameters { corruption: 0.25, ..with(FaultKind::PacketCorruption) };
    assert_eq!(one(&corrupt, &fabric).action, FaultAction::Corrupt { per_billion: 250_000_000 });
    let twice = FaultParameters { duplication: 1.0, ..with(FaultKind::PacketDuplication) };
    assert_eq!(one(&twice, &fabric).action, FaultAction::Duplicate { per_billion: 1_000_000_000 });
    let (delay, jitter) = (Time::from_us(5_000), Time::from_us(1_000));
    let late = FaultParameters { delay, jitter, ..with(FaultKind::PacketDelay) };
    assert_eq!(one(&late, &fabric).action, FaultAction::Delay { delay, jitter });
    for (wrong, key) in [
        (FaultParameters { corruption: 0.0, ..corrupt.clone() }, "corruption"),
        (FaultParameters { loss: 0.5, ..corrupt }, "loss"),
        (FaultParameters { duplication: 1.5, ..twice }, "duplication"),
        (FaultParameters { jitter: delay + Time::from_ps(1), ..late.clone() }, "jitter"),
        (FaultParameters { delay: Time::ZERO, ..late.clone() }, "delay"),
        (FaultParameters { detect_after: Never::Value(delay), ..late }, "detect_after"),
    ] {
        assert_eq!(wrong.resolve(&fabric, 0, 1).unwrap_err().key.as_deref(), Some(key));
    }
}

#[test]
fn invalid_faults_are_rejected() {
    let tree = fat_tree(2, 4);
    let by = |name: &str| FaultParameters { links: names(&[name]), ..fault(FaultKind::LinkDown) };
    let kind = |kind, other: FaultParameters| FaultParameters { kind, ..other };
    let down = || fault(FaultKind::LinkDown);
    let good = || by("leaf0-spine0");
    let cases = [
        (by("leaf0-spine7"), Some("links"), "did you mean `leaf0-spine"),
        (by("laef0-spine0"), Some("links"), "did you mean `leaf0-spine0`"),
        (by("leaf0->leaf1"), Some("links"), "there is no link `leaf0->leaf1`"),
        (by("leaf0-spine0#1"), Some("links"), "there is no link `leaf0-spine0#1`"),
        (by("leaf0-spine0#x"), Some("links"), "there is no link"),
        (by(""), Some("links"), "there is no link"),
        (FaultParameters { fraction: 1.01, ..down() }, Some("fraction"), "1.01"),
        (FaultParameters { fraction: -0.1, ..down() }, Some("fraction"), "-0.1"),
        (FaultParameters { fraction: f64::NAN, ..down() }, Some("fraction"), "NaN"),
        (FaultParameters { count: 9, ..down() }, Some("count"), "there are 8 links"),
        (FaultParameters { count: u64::MAX, directed: true, ..down() }, Some("count"), "there are 16 links"),
        (down(), None, "exactly one of"),
        (FaultParameters { count: 1, ..good() }, None, "exactly one of"),
        (FaultParameters { count: 1, fraction: 0.5, ..down() }, None, "exactly one of"),
        (FaultParameters { switches: names(&["leaf0"]), ..good() }, None, "exactly one of"),
        (fault(FaultKind::SwitchDown), None, "`switches`"),
        (kind(FaultKind::SwitchDown, good()), Some("switches"), "switch-down"),
        (FaultParameters { switches: names(&["leaf0"]), ..down() }, Some("switches"), "switch-down"),
        (
            FaultParameters { switches: names(&["leef0"]), ..fault(FaultKind::SwitchDown) },
            Some("switches"),
            "did you mean `leaf0`",
        ),
        (FaultParameters { switches: names(&["host0"]), ..fault(FaultKind::SwitchDown) }, Some("switches"), "`leaf0`"),
        (kind(FaultKind::PacketLoss, good()), Some("loss"), "`loss` is 0"),
        (FaultParameters { loss: 1.5, ..kind(FaultKind::PacketLoss, good()) }, Some("loss"), "1.5"),
        (FaultParameters { loss: f64::NAN, ..kind(FaultKind::PacketLoss, good()) }, Some("loss"), "NaN"),
        (kind(FaultKind::LinkDegrade, good()), Some("factor"), "`rate`, or `factor`"),
        (FaultParameters { factor: 1.5, ..kind(FaultKind::LinkDegrade, good()) }, Some("factor"), "at most 1"),
        (FaultParameters { factor: 1e-12, ..kind(FaultKind::LinkDegrade, good()) }, Some("factor"), "1Mbps"),
        (FaultParameters { rate: Some(Rate(0)), ..kind(FaultKind::LinkDegrade, good()) }, Some("rate"), "1Mbps"),
        (
            FaultParameters { rate: Some(Rate::gbps(1)), factor: 0.5, ..kind(FaultKind::LinkDegrade, good()) },
            Some("factor"),
            "not both",
        ),
        (
            FaultParameters {
                loss: 0.1,
                detect_after: Never::Value(Time::ZERO),
                ..kind(FaultKind::PacketLoss, good())
            },
            Some("detect_after"),
            "link-down",
        ),
        (
            FaultParameters {
                factor: 0.5,
                detect_after: Never::Value(Time::ZERO),
                ..kind(FaultKind::LinkDegrade, good())
            },
            Some("detect_after"),
            "link-down",
        ),
    ];
    for (wrong, key, said) in cases {
        let error = wrong.resolve(&tree, 0, 1).expect_err(said);
        assert_eq!(error.key.as_deref(), key, "{error}");
        assert!(error.message.contains(said), "`{said}` in: {error}");
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
        let down = FaultParameters { count, directed, ..fault(FaultKind::LinkDown) };
        let found = &down.resolve(&fabric, index, seed).unwrap()[0].links;
        prop_assert_eq!(found.len() as u64, if directed { count } else { 2 * count });
        prop_assert!(found.windows(2).all(|w| w[0] < w[1]));
    }
}

#[test]
fn unknown_names_state_what_there_is() {
    // Radix 8 in three tiers: 32 leaves, 32 aggregation switches, (8/2)^2 = 16 cores, 128 hosts.
    let tree = fat_tree(3, 8);
    let message = |fault: &FaultParameters| fault.resolve(&tree, 0, 1).unwrap_err().message;
    let down = FaultParameters { switches: names(&["spine0"]), ..fault(FaultKind::SwitchDown) };
    let found = message(&down);
    assert!(found.contains("leaf0 to leaf31, agg0 to agg31, core0 to core15; hosts are host0 to host127"), "{found}");
    let link = |name: &str| message(&FaultParameters { links: names(&[name]), ..fault(FaultKind::LinkDown) });
    let found = link("leaf0-spine0");
    assert!(found.contains("no node `spine0`") && found.contains("core0 to core15"), "{found}");
    // Core 0 has no cable to a leaf.
    let found = link("leaf0-core0");
    assert!(found.contains("the links of leaf0 lead to host0 to host3, agg0 to agg3"), "{found}");
}
