//! The stated size of a topology, which the memory guard reads, is the size of what is built.

use crate::common::edges;
use anabranch_settings::Auto;
use anabranch_topology::{
    Arrangement, ClosParameters, DragonflyParameters, FatTreeParameters, FileFormat, FileParameters,
    LeafSpineParameters, RailOnlyParameters, RailOptimisedParameters, Scale, SlimFlyParameters, Topology,
    TopologyParameters,
};
use anabranch_units::{Rate, Time};
use proptest::{prelude::*, strategy::ValueTree};

fn counted(topology: &Topology) -> Scale {
    Scale {
        hosts: topology.hosts.into(),
        switches: topology.nodes.len() as u64 - u64::from(topology.hosts),
        leaves: edges(topology).len() as u64,
        cables: topology.links.len() as u64 / 2,
        guide_bytes: topology.guide().map_or(0, |guide| guide.table_bytes()),
    }
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![60 => (1..800u64).prop_map(Rate::gbps), 1 => Just(Rate(1))]
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![60 => (0..5000u64).prop_map(Time::from_ns), 1 => Just(Time::from_ms(1001))]
}

fn count(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![90 => 1..=most, 1 => Just(0), 1 => Just(u64::MAX), 1 => Just(70_000)]
}

fn leaf_spine() -> impl Strategy<Value = TopologyParameters> {
    let sizes = (count(12), count(9), count(7), count(4));
    let links = (rate(), proptest::option::of(rate()), time(), proptest::option::of(time()), time());
    (sizes, links).prop_map(|((leaves, spines, hosts_per_leaf, links_per_spine), links)| {
        let (link_rate, host_link_rate, link_delay, host_link_delay, switch_latency) = links;
        TopologyParameters::LeafSpine(LeafSpineParameters {
            leaves,
            spines,
            hosts_per_leaf,
            links_per_spine,
            link_rate,
            host_link_rate,
            link_delay,
            host_link_delay,
            switch_latency,
        })
    })
}

fn fat_tree() -> impl Strategy<Value = TopologyParameters> {
    let tiers = prop_oneof![10 => 2..4u64, 1 => 0..6u64];
    let sizes = (tiers, count(9), any::<bool>(), count(8));
    let links = (rate(), proptest::option::of(rate()), time(), proptest::option::of(time()), time());
    (sizes, links).prop_map(|((tiers, half, odd, oversubscription), links)| {
        let (link_rate, host_link_rate, link_delay, host_link_delay, switch_latency) = links;
        TopologyParameters::FatTree(FatTreeParameters {
            tiers,
            radix: half.saturating_mul(2) - u64::from(odd && half % 8 == 3),
            oversubscription,
            link_rate,
            host_link_rate,
            link_delay,
            host_link_delay,
            switch_latency,
        })
    })
}

type Cabling = ((Rate, Option<Rate>, Option<Rate>, Option<Rate>), (Time, Time, Time, Time));

fn cabling() -> impl Strategy<Value = Cabling> {
    let maybe = || proptest::option::of(rate());
    ((rate(), maybe(), maybe(), maybe()), (time(), time(), time(), time()))
}

fn dragonfly() -> impl Strategy<Value = TopologyParameters> {
    let groups = prop_oneof![Just(Auto::Auto), count(20).prop_map(Auto::Value)];
    let arrangement = prop_oneof![
        Just(Arrangement::Relative),
        Just(Arrangement::Absolute),
        Just(Arrangement::Palmtree),
        Just(Arrangement::Circulant)
    ];
    (count(5), count(8), count(4), groups, arrangement, cabling()).prop_map(|(p, a, h, groups, arrangement, links)| {
        let ((link_rate, host_link_rate, local_link_rate, global_link_rate), delays) = links;
        let (host_link_delay, local_link_delay, global_link_delay, switch_latency) = delays;
        TopologyParameters::Dragonfly(DragonflyParameters {
            p,
            a,
            h,
            groups,
            arrangement,
            link_rate,
            host_link_rate,
            local_link_rate,
            global_link_rate,
            host_link_delay,
            local_link_delay,
            global_link_delay,
            switch_latency,
        })
    })
}

type TreeLinks = ((Rate, Option<Rate>, Option<Rate>), (Time, Option<Time>, Time));

fn tree_links() -> impl Strategy<Value = TreeLinks> {
    let maybe = || proptest::option::of(rate());
    ((rate(), maybe(), maybe()), (time(), proptest::option::of(time()), time()))
}

fn clos() -> impl Strategy<Value = TopologyParameters> {
    let sizes = (count(4), count(5), count(6), count(4), count(3), count(3), count(3));
    (sizes, tree_links()).prop_map(|(sizes, ((link_rate, host_link_rate, core_link_rate), delays))| {
        let (pods, leaves_per_pod, hosts_per_leaf, spines_per_pod, links_per_spine, above, links_per_core) = sizes;
        let (link_delay, host_link_delay, switch_latency) = delays;
        TopologyParameters::Clos(ClosParameters {
            pods,
            leaves_per_pod,
            hosts_per_leaf,
            spines_per_pod,
            links_per_spine,
            cores: spines_per_pod.saturating_mul(above),
            links_per_core,
            link_rate,
            host_link_rate,
            core_link_rate,
            link_delay,
            host_link_delay,
            switch_latency,
        })
    })
}

fn rail_optimised() -> impl Strategy<Value = TopologyParameters> {
    let cores = prop_oneof![2 => Just(0), 1 => count(3)];
    let sizes = (count(9), count(5), count(4), count(4), count(3), cores, count(3));
    (sizes, tree_links()).prop_map(|(sizes, ((link_rate, host_link_rate, core_link_rate), delays))| {
        let (servers, rails, servers_per_pod, spines, links_per_spine, above, links_per_core) = sizes;
        let (link_delay, host_link_delay, switch_latency) = delays;
        TopologyParameters::RailOptimised(RailOptimisedParameters {
            servers,
            rails,
            servers_per_pod,
            spines,
            links_per_spine,
            cores: spines.saturating_mul(above),
            links_per_core,
            link_rate,
            host_link_rate,
            core_link_rate,
            link_delay,
            host_link_delay,
            switch_latency,
        })
    })
}

fn rail_only() -> impl Strategy<Value = TopologyParameters> {
    let sizes = (count(9), count(5), count(9), prop_oneof![1 => Just(0), 4 => count(4)], count(3));
    (sizes, tree_links()).prop_map(|(sizes, ((link_rate, host_link_rate, _), delays))| {
        let (servers, rails, servers_per_pod, spines, links_per_spine) = sizes;
        let (link_delay, host_link_delay, switch_latency) = delays;
        TopologyParameters::RailOnly(RailOnlyParameters {
            servers,
            rails,
            servers_per_pod,
            spines,
            links_per_spine,
            link_rate,
            host_link_rate,
            link_delay,
            host_link_delay,
            switch_latency,
        })
    })
}

fn slim_fly() -> impl Strategy<Value = TopologyParameters> {
    let q = prop_oneof![9 => prop::sample::select(&[3u64, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19][..]), 1 => count(19)];
    (q, count(4), cabling()).prop_map(|(q, p, links)| {
        let ((link_rate, host_link_rate, local_link_rate, global_link_rate), delays) = links;
        let (host_link_delay, local_link_delay, global_link_delay, switch_latency) = delays;
        TopologyParameters::SlimFly(SlimFlyParameters {
            q,
            p,
            link_rate,
            host_link_rate,
            local_link_rate,
            global_link_rate,
            host_link_delay,
            local_link_delay,
            global_link_delay,
            switch_latency,
        })
    })
}

const CONWEAVE: &str = "6 2 5\n4 5\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 1000ns 0\n2 5 100Gbps 1000ns 0\n\
                        3 5 100Gbps 1000ns 0\n4 5 100Gbps 1000ns 0\n";
const HTSIM_DRAGONFLY: &str = "p 2\na 4\nh 2\n";
const HTSIM_SLIM_FLY: &str = "p 3\nq 7\n";
const HTSIM_TREE: &str = "Nodes 8\nTiers 2\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 2\n\
                          Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\n\
                          Downlink_Latency_ns 1000\n";

fn file() -> impl Strategy<Value = (TopologyParameters, String)> {
    let text = prop_oneof![
        Just(CONWEAVE.to_string()),
        Just(HTSIM_DRAGONFLY.to_string()),
        Just(HTSIM_SLIM_FLY.to_string()),
        Just(HTSIM_TREE.to_string()),
        (3..20u32).prop_map(|n| (0..n - 1).map(|s| format!("{s} {}\n", s + 1)).collect::<String>()),
    ];
    (text, count(5), rate(), time(), time()).prop_map(|(text, hosts_per_switch, link_rate, link_delay, latency)| {
        let parameters = FileParameters {
            path: "fabric.txt".into(),
            format: FileFormat::of(&text).map_or(Auto::Auto, Auto::Value),
            hosts_per_switch,
            link_rate,
            link_delay,
            switch_latency: latency,
        };
        (TopologyParameters::File(parameters), text)
    })
}

/// Draws parameters of a kind of the registry, with every option, and the file that they name.
fn any_of(kind: &str) -> BoxedStrategy<(TopologyParameters, String)> {
    let alone = |parameters| (parameters, String::new());
    match kind {
        "leaf-spine" => leaf_spine().prop_map(alone).boxed(),
        "fat-tree" => fat_tree().prop_map(alone).boxed(),
        "clos" => clos().prop_map(alone).boxed(),
        "rail-optimised" => rail_optimised().prop_map(alone).boxed(),
        "rail-only" => rail_only().prop_map(alone).boxed(),
        "dragonfly" => dragonfly().prop_map(alone).boxed(),
        "slim-fly" => slim_fly().prop_map(alone).boxed(),
        "file" => file().boxed(),
        other => panic!("no parameters are drawn for the kind {other}"),
    }
}

fn any_kind() -> impl Strategy<Value = (TopologyParameters, String)> {
    (0..TopologyParameters::ALL.len()).prop_flat_map(|number| any_of(TopologyParameters::ALL[number].name))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn stated_size_is_the_size_built((parameters, text) in any_kind()) {
        if let Ok(topology) = parameters.build(&|_| Ok(text.clone())) {
            prop_assert_eq!(topology.scale(), counted(&topology));
            if parameters.name() != "file" {
                prop_assert_eq!(parameters.scale(), Some(counted(&topology)));
            }
        }
    }
}

/// The property above covers each kind only if most draws are valid.
#[test]
fn most_draws_are_possible() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for kind in TopologyParameters::ALL {
        let strategy = any_of(kind.name);
        let built = (0..100).filter(|_| {
            let (parameters, text) = strategy.new_tree(&mut runner).unwrap().current();
            parameters.build(&|_| Ok(text.clone())).is_ok()
        });
        let built = built.count();
        assert!(built > 30, "{}: {built} of 100", kind.name);
    }
}

/// k = 24 has k^3 / 4 = 3456 hosts at one host per uplink, four times as many at four; k^2 / 2 leaves, as many
/// aggregation switches, k^2 / 4 cores.
#[test]
fn oversubscription_counts() {
    let parameters = FatTreeParameters { tiers: 3, radix: 24, oversubscription: 4, ..Default::default() };
    let scale = TopologyParameters::FatTree(parameters).scale().unwrap();
    assert_eq!((scale.hosts, scale.switches, scale.leaves), (13_824, 288 + 288 + 144, 288));
    assert_eq!(scale.cables, 13_824 + 3_456 + 3_456);
}
