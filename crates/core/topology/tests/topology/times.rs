//! Times of packets over the empty network (specification 1, 5.2).

use crate::common::{adjacency, fat_tree, leaf_spine, make};
use anabranch_topology::Topology;
use anabranch_units::{Rate, Time};
use proptest::prelude::*;

fn tree(tiers: u64, rate: u64, switch_latency: Time) -> Topology {
    let latency = switch_latency.ps();
    make("fat-tree", &format!("tiers={tiers} radix=4 link_rate={rate}Gbps switch_latency={latency}ps")).unwrap()
}

/// Specification 1: a round trip over h links takes h * (4160 + 64) bytes on the wire and 2h us of propagation; times
/// the rate, over 4160 B, rounded up. The list of specification 5.2 (28/42, 52/78, 100/150, 196/295) is of the same
/// quotients rounded to the nearest: 28.10 / 42.15, 52.14 / 78.21, 100.22 / 150.32, 196.37 / 294.55.
#[test]
fn base_rtt_and_bdp_of_fat_trees() {
    for (gbps, two, three) in [
        (100, (28, 29), (42, 43)),
        (200, (52, 53), (78, 79)),
        (400, (100, 101), (150, 151)),
        (800, (196, 197), (295, 295)),
    ] {
        for (tiers, links, (nearest, rounded_up)) in [(2, 4, two), (3, 6, three)] {
            let fabric = tree(tiers, gbps, Time::ZERO);
            let ps_per_byte = 8000 / gbps;
            let rtt = links * (4160 + 64) * ps_per_byte + 2 * links * 1_000_000;
            let summary = fabric.summary(4160, 64);
            assert_eq!(summary.base_rtt, Time::from_ps(rtt), "{gbps} Gb/s, {tiers} tiers");
            assert_eq!(fabric.max_base_rtt(4160, 64), Time::from_ps(rtt));
            assert_eq!(summary.bdp_bytes, rtt / ps_per_byte);
            assert_eq!(fabric.bdp(4160, 64), rtt / ps_per_byte);
            assert_eq!(summary.bdp_packets, rounded_up, "{gbps} Gb/s, {tiers} tiers");
            assert_eq!((summary.bdp_bytes + 4160 / 2) / 4160, nearest, "{gbps} Gb/s, {tiers} tiers");
        }
    }
}

#[test]
fn switch_latency_counts_once_per_switch() {
    let latency = Time::from_ns(300);
    // (tiers, hosts of the pair, switches passed in one direction)
    for (tiers, pair, switches) in [(2, (0, 1), 1), (2, (0, 7), 3), (3, (0, 1), 1), (3, (0, 2), 3), (3, (0, 15), 5)] {
        let (slow, fast) = (tree(tiers, 400, latency), tree(tiers, 400, Time::ZERO));
        let path = slow.base_path(pair.0, pair.1);
        assert_eq!(path.len() as u64, switches + 1);
        assert_eq!(slow.one_way(&path, 4160), fast.one_way(&path, 4160) + latency * switches);
        let rtt = |topology: &Topology| topology.base_rtt(pair.0, pair.1, 4160, 64);
        assert_eq!(rtt(&slow), rtt(&fast) + latency * (2 * switches));
        let train = |topology: &Topology| topology.train_arrival(&path, 10, 4160, 100);
        assert_eq!(train(&slow), train(&fast) + latency * switches);
    }
}

#[test]
fn different_links_add_up() {
    let keys = "leaves=2 spines=1 hosts_per_leaf=1 link_rate=400Gbps host_link_rate=100Gbps link_delay=2us host_link_delay=500ns";
    let fabric = make("leaf-spine", keys).unwrap();
    // Two links of 80 ps per byte and 500 ns, two of 20 ps per byte and 2 us, in both directions.
    let rtt = 2 * (80 + 20) * (1000 + 64) + 2 * 2 * (500_000 + 2_000_000);
    assert_eq!(fabric.base_rtt(0, 1, 1000, 64), Time::from_ps(rtt));
    assert_eq!(fabric.max_base_rtt(1000, 64), Time::from_ps(rtt));
    assert_eq!((fabric.nic_rate(), fabric.bdp(1000, 64)), (Rate::gbps(100), rtt / 80));
}

fn largest(topology: &Topology, data: u64, ack: u64) -> Time {
    let hosts = 0..topology.hosts;
    let pairs = hosts.clone().flat_map(|a| hosts.clone().map(move |b| (a, b))).filter(|(a, b)| a != b);
    let routes = topology.routes();
    let paths = pairs.flat_map(|(a, b)| topology.paths(&routes, a, b, usize::MAX));
    paths.map(|path| topology.rtt(&path, data, ack)).max().unwrap()
}

/// Draws rates with whole picoseconds per byte, in bits per second.
fn exact_rate() -> impl Strategy<Value = Rate> {
    // 8e12 / (1, 2, 4, 5, 8, 10, 16, 20, 25, 40, 80, 160, 800) b/s.
    prop::sample::select(vec![1u64, 2, 4, 5, 8, 10, 16, 20, 25, 40, 80, 160, 800])
        .prop_map(|ps_per_byte| Rate(8_000_000_000_000 / ps_per_byte))
}

/// A packet starts when it has wholly arrived and the one before it has left.
fn store_and_forward(topology: &Topology, path: &[anabranch_topology::LinkId], sizes: &[u64]) -> Time {
    let mut here: Vec<u64> = vec![0; sizes.len()];
    for link in path {
        let link = topology.link(*link);
        let ps_per_byte = 8_000_000_000_000 / link.rate.0;
        let mut free = 0;
        for (arrived, bytes) in here.iter_mut().zip(sizes) {
            free = free.max(*arrived) + bytes * ps_per_byte;
            let passed = if link.to.0 < topology.hosts { 0 } else { topology.switch_latency.ps() };
            *arrived = free + link.delay.ps() + passed;
        }
    }
    Time::from_ps(*here.last().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn trains_arrive_as_packet_by_packet(
        links in prop::collection::vec((exact_rate(), 0..3_000_000u64), 2..8),
        latency in 0..1_000_000u64,
        full in 0..40usize,
        full_bytes in 1..10_000u64,
        last_share in 1..=1000u64,
    ) {
        // A chain of switches with the counted hosts at its first and its last switch.
        let switches = links.len() - 1;
        let text: String = (0..switches).map(|s| if s + 1 < switches { format!("{s} {}\n", s + 1) } else { format!("{s}\n") }).collect();
        let mut chain = adjacency(&text, 2);
        chain.switch_latency = Time::from_ps(latency);
        let path = chain.base_path(0, chain.hosts - 1);
        prop_assert_eq!(path.len(), links.len());
        for (link, (rate, delay)) in path.iter().zip(&links) {
            let link = &mut chain.links[link.0 as usize];
            (link.rate, link.delay) = (*rate, Time::from_ps(*delay));
        }
        let last_bytes = (full_bytes * last_share / 1000).max(1);
        let mut sizes = vec![full_bytes; full];
        sizes.push(last_bytes);
        let expected = store_and_forward(&chain, &path, &sizes);
        prop_assert_eq!(chain.train_arrival(&path, full as u64, full_bytes, last_bytes), expected);
        prop_assert_eq!(chain.one_way(&path, full_bytes), store_and_forward(&chain, &path, &[full_bytes]));
    }

    #[test]
    fn the_largest_round_trip_is_that_of_all_pairs(
        parents in prop::collection::vec(any::<u32>(), 0..5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), exact_rate(), 0..3_000_000u64), 0..6),
        hosts in 2..4u64,
        which in 0..4u8,
        (data, ack) in (64..5000u64, 1..100u64),
    ) {
        let mut topology = match which {
            0 => leaf_spine(3, 2, hosts, 1),
            1 => fat_tree(3, 4),
            2 => fat_tree(2, 4),
            _ => {
                let mut text = String::from("0");
                let children = |of: u32| parents.iter().zip(1..).filter(move |(p, i)| *p % *i == of).map(|(_, i)| format!(" {i}"));
                text.extend(children(0));
                for switch in 1..=parents.len() as u32 {
                    text += &format!("\n{switch}");
                    text.extend(children(switch));
                }
                adjacency(&text, hosts)
            }
        };
        for (index, rate, delay) in changes {
            let links = topology.links.len();
            let link = &mut topology.links[index.index(links)];
            (link.rate, link.delay) = (rate, Time::from_ps(delay));
        }
        prop_assert_eq!(topology.max_base_rtt(data, ack), largest(&topology, data, ack));
    }
}
