//! Pairs of hosts against every path and every cut: capacity, flow over time, fastest and longest path, for any names.

use crate::common::{fat_tree, leaf_spine};
use anabranch_topology::{LinkId, Pairs, Topology};
use anabranch_units::{Rate, Serialiser, Time};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PACKET: u64 = 4160;

/// Gives every directed link a rate and a delay of `draws`.
fn uneven(mut topology: Topology, draws: &[(u64, u64)]) -> Topology {
    for (link, (rate, delay)) in topology.links.iter_mut().zip(draws.iter().cycle()) {
        (link.rate, link.delay) = (Rate::gbps(*rate), Time::from_ns(*delay));
    }
    topology
}

fn draws() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((prop_oneof![Just(10u64), Just(40), Just(100), 1..900u64], 0..5_000u64), 97)
}

/// Returns every shortest path between the edge switches of two hosts.
fn all_paths(topology: &Topology, src: u32, dst: u32) -> Vec<Vec<LinkId>> {
    let all = topology.paths(&topology.routes(), src, dst, usize::MAX);
    all.into_iter().map(|path| path[1..path.len() - 1].to_vec()).collect()
}

/// Returns the smallest of all cuts between the edge switches.
fn smallest_cut(topology: &Topology, paths: &[Vec<LinkId>], from: u32, to: u32) -> u64 {
    let links: BTreeSet<LinkId> = paths.iter().flatten().copied().collect();
    let ends = |link: &LinkId| (topology.link(*link).from.0, topology.link(*link).to.0);
    let inner: Vec<u32> =
        links.iter().map(|link| ends(link).1).filter(|at| *at != to).collect::<BTreeSet<_>>().into_iter().collect();
    let cut = |chosen: u32| {
        let has =
            |at: u32| at == from || inner.iter().position(|own| *own == at).is_some_and(|bit| chosen >> bit & 1 == 1);
        let crosses = |link: &&LinkId| has(ends(link).0) && !has(ends(link).1);
        links.iter().filter(crosses).map(|link| topology.link(*link).rate.0).sum()
    };
    (0..1 << inner.len()).map(cut).min().unwrap()
}

fn hosts_rate(topology: &Topology, src: u32, dst: u32) -> u64 {
    let (up, down) = (topology.host_uplink(src), topology.host_uplink(dst).reverse());
    topology.link(up).rate.0.min(topology.link(down).rate.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn pairs_are_those_of_all_paths_and_cuts(
        tree in prop_oneof![
            (2..4u64, 1..6u64, 1..3u64, 1..4u64).prop_map(|(l, s, h, p)| leaf_spine(l, s, h, p)),
            (2..4u64, 1..3u64).prop_map(|(tiers, half)| fat_tree(tiers, 2 * half)),
        ],
        draws in draws(), are_alike in any::<bool>(), ends in any::<(u32, u32)>(),
    ) {
        let topology = if are_alike { uneven(tree, &draws[..1]) } else { uneven(tree, &draws) };
        let (src, dst) = (ends.0 % topology.hosts, ends.1 % topology.hosts);
        let (from, to) = (topology.edge_switch(src), topology.edge_switch(dst));
        let paths = all_paths(&topology, src, dst);
        let mut pairs = Pairs::new(&topology, PACKET);
        let cut = if from == to { u64::MAX } else { smallest_cut(&topology, &paths, from.0, to.0) };
        prop_assert_eq!(pairs.capacity(&topology, src, dst).0, hosts_rate(&topology, src, dst).min(cut));
        let round_trips = || paths.iter().map(|path| {
            let ends = [topology.host_uplink(src)].into_iter().chain(path.iter().copied());
            topology.rtt(&ends.chain([topology.host_uplink(dst).reverse()]).collect::<Vec<_>>(), PACKET, 64)
        });
        let expected = (round_trips().min().unwrap(), round_trips().max().unwrap());
        prop_assert_eq!(pairs.round_trips(&topology, src, dst, PACKET, 64), expected);
        // The largest of the fabric is that of any pair, over any of its paths, however they are numbered.
        let hosts = || (0..topology.hosts).flat_map(|src| (0..topology.hosts).map(move |dst| (src, dst)));
        let of_pairs = hosts().filter(|(src, dst)| src != dst).map(|(src, dst)| pairs.round_trips(&topology, src, dst, PACKET, 64).1);
        prop_assert_eq!(topology.max_base_rtt(PACKET, 64), of_pairs.max().unwrap_or_default());
        let delay = |path: &[LinkId]| path.iter().map(|link| topology.link(*link).delay + topology.switch_latency).sum::<Time>();
        let wire = |path: &[LinkId]| path.iter().map(|link| Serialiser::new(topology.link(*link).rate).serialise(PACKET)).sum::<Time>();
        let pair = pairs.between(&topology, src, dst, 0);
        prop_assert_eq!(pair.is_only, paths.len() == 1);
        prop_assert_eq!(pair.delay, paths.iter().map(|path| delay(path)).min().unwrap());
        let fastest = paths.iter().map(|path| delay(path) + wire(path)).min().unwrap();
        prop_assert_eq!(delay(pair.path) + wire(pair.path), fastest);
    }

    /// Over spines with a cable each, paths share nothing: each delivers its slowest rate from its delay on.
    #[test]
    fn flow_over_time_of_disjoint_paths_is_their_sum(spines in 2..9u64, draws in draws(), turn in 1..8usize, at in 0..30_000u64) {
        let mut topology = uneven(leaf_spine(2, spines, 1, 1), &draws);
        for host in 0..2 {
            let up = topology.host_uplink(host);
            [up, up.reverse()].into_iter().for_each(|link| topology.links[link.0 as usize].rate = Rate::gbps(100_000));
        }
        let at = Time::from_ns(at);
        let delivered = |rate: u64, delay: Time| u128::from(rate) * u128::from(at.saturating_sub(delay).ps());
        let paths = all_paths(&topology, 0, 1);
        let ends = |path: &[LinkId]| {
            let links = || path.iter().map(|link| topology.link(*link));
            (links().map(|link| link.rate.0).min().unwrap(), links().map(|link| link.delay + topology.switch_latency).sum())
        };
        let expected: u128 = paths.iter().map(|path| ends(path)).map(|(rate, delay)| delivered(rate, delay)).sum();
        let steps = Pairs::new(&topology, PACKET).between(&topology, 0, 1, 0).steps.to_vec();
        prop_assert_eq!(steps.iter().map(|step| delivered(step.rate.0, step.delay)).sum::<u128>(), expected);
        // The cables of the spines take turns.
        let mut turned = topology.clone();
        for (path, other) in paths.iter().zip(paths.iter().cycle().skip(turn)) {
            for (link, other) in path.iter().zip(other) {
                let of = topology.link(*link);
                (turned.links[other.0 as usize].rate, turned.links[other.0 as usize].delay) = (of.rate, of.delay);
            }
        }
        prop_assert_eq!(Pairs::new(&turned, PACKET).between(&turned, 0, 1, 0).steps.to_vec(), steps);
    }
}
