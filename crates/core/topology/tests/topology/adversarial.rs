//! Adversarial pairs of a Slim Fly (specification 12.3).

use crate::common::{dragonfly, fat_tree, neighbours, slim_fly};
use anabranch_topology::{LinkId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn pairs_of_the_slim_fly_of_the_paper() {
    let it = slim_fly(9, 7);
    let near = neighbours(&it);
    let guide = it.guide().unwrap();
    for seed in 1..=3 {
        let pairs = it.adversarial_pairs(seed);
        assert_eq!(pairs, it.adversarial_pairs(seed));
        let hosts: BTreeSet<u32> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        assert_eq!(hosts.len(), 2 * pairs.len(), "every host is used once");
        let switch = |host: u32| host / 7;
        let switches: BTreeSet<_> = pairs.iter().map(|(a, b)| (switch(*a), switch(*b))).collect();
        assert_eq!(switches.len(), pairs.len(), "every flow has its own pair of switches");
        let mut load: BTreeMap<LinkId, u32> = BTreeMap::new();
        for (a, b) in &switches {
            assert!(a != b && !near[*a as usize].contains(b), "two hops apart");
            let [from, to] = [a, b].map(|s| NodeId(1134 + s));
            let first = guide.minimal(from, to).unwrap();
            *load.entry(guide.minimal(it.link(first).to, to).unwrap()).or_insert(0) += 1;
        }
        assert!(load.values().all(|flows| *flows <= 7), "at most p flows end over one link");
        // The file of specification 12.3 has 567 flows, half of the hosts, and 24 links with 7 flows.
        assert!(pairs.len() > 540 && pairs.len() <= 567, "{} flows", pairs.len());
        let full = load.values().filter(|flows| **flows == 7).count();
        assert!((12..=81).contains(&full), "{full} links are full");
    }
    assert_ne!(it.adversarial_pairs(1), it.adversarial_pairs(2));
}

#[test]
fn other_fabrics() {
    assert!(fat_tree(2, 4).adversarial_pairs(1).is_empty());
    let it = dragonfly(2, 4, 2);
    let pairs = it.adversarial_pairs(1);
    let hosts: BTreeSet<u32> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    assert_eq!(hosts.len(), 2 * pairs.len());
    assert!(!pairs.is_empty());
}
