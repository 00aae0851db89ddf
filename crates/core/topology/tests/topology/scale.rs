//! The stated size of a topology, which the memory guard reads, is the size of what is built.

use crate::common::edges;
use anabranch_settings::ValueSchema;
use anabranch_testkit::try_set_keys;
use anabranch_topology::{Scale, Topology, TopologyParameters};
use proptest::{prelude::*, strategy::ValueTree};

fn counted(topology: &Topology) -> Scale {
    Scale {
        hosts: topology.hosts.into(),
        switches: topology.nodes.len() as u64 - u64::from(topology.hosts),
        leaves: edges(topology).len() as u64 / u64::from(topology.planes),
        cables: topology.links.len() as u64 / 2,
        guide_bytes: topology.guide().map_or(0, |guide| guide.table_bytes()),
    }
}

fn count(most: u64) -> BoxedStrategy<String> {
    let number = prop_oneof![90 => 1..=most, 1 => Just(0), 1 => Just(999_999_999_999_999), 1 => Just(70_000)];
    number.prop_map(|number| number.to_string()).boxed()
}

fn one_of(values: &[&str]) -> BoxedStrategy<String> {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    prop::sample::select(values).boxed()
}

/// Draws a value of a key of a kind: mostly valid, and for sizes that depend on one another often so.
fn value(key: &str, schema: &ValueSchema) -> BoxedStrategy<String> {
    match key {
        "planes" => one_of(&["1", "2", "4", "17"]),
        "q" => prop_oneof![9 => one_of(&["3", "4", "5", "7", "8", "9", "11", "13", "16", "17", "19"]), 1 => count(19)]
            .boxed(),
        "tiers" => prop_oneof![10 => one_of(&["2", "3"]), 1 => count(6)].boxed(),
        "radix" => prop_oneof![20 => (1..10u64).prop_map(|half| (2 * half).to_string()), 1 => count(9)].boxed(),
        // Cores are a multiple of the spines, which are 1 or 2 where there are cores.
        "spines_per_pod" => one_of(&["1", "2"]),
        "cores" => one_of(&["0", "2", "4", "6"]),
        "spines" => prop_oneof![8 => one_of(&["1", "2"]), 2 => count(4), 1 => Just("0".to_string())].boxed(),
        "groups" => prop_oneof![Just("auto".to_string()), count(20)].boxed(),
        _ if key.ends_with("_rate") => {
            prop_oneof![60 => (1..800u64).prop_map(|gbps| format!("{gbps}Gbps")), 1 => Just("1bps".to_string())].boxed()
        }
        _ if key.ends_with("_delay") || key == "switch_latency" => {
            prop_oneof![60 => (0..5000u64).prop_map(|ns| format!("{ns}ns")), 1 => Just("1001ms".to_string())].boxed()
        }
        _ => match schema {
            ValueSchema::Words(words) => one_of(words),
            _ => count(5),
        },
    }
}

const FILES: [&str; 5] = [
    "6 2 5\n4 5\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 1000ns 0\n2 5 100Gbps 1000ns 0\n3 5 100Gbps 1000ns 0\n4 5 100Gbps 1000ns 0\n",
    "p 2\na 4\nh 2\n",
    "p 3\nq 7\n",
    "Nodes 8\nTiers 2\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\n\
     Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000\n",
    "0 1\n1 2 3\n2 3\n",
];

/// Draws keys of a kind of the registry, any of its own, and the file that it names.
fn any_of(kind: &'static str) -> BoxedStrategy<(&'static str, String, &'static str)> {
    let mut parameters = TopologyParameters::named(kind).unwrap();
    let documented = parameters.parameters_mut().documentation();
    let keys: Vec<_> = documented.into_iter().filter(|key| !["path", "format"].contains(&key.name)).collect();
    let values: Vec<_> = keys
        .iter()
        .map(|key| (any::<bool>(), value(key.name, &key.schema)).prop_map(|(is_set, value)| is_set.then_some(value)))
        .collect();
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    (values, prop::sample::select(&FILES[..]))
        .prop_map(move |(values, file)| {
            let set = names.iter().zip(values).filter_map(|(name, value)| Some(format!("{name}={}", value?)));
            let of_file = (kind == "file").then(|| "path=fabric.txt".to_string());
            (kind, set.chain(of_file).collect::<Vec<_>>().join(" "), file)
        })
        .boxed()
}

/// Builds what was drawn, if it is possible.
fn built((kind, keys, file): &(&'static str, String, &'static str)) -> Option<(TopologyParameters, Topology)> {
    let mut parameters = TopologyParameters::named(kind).unwrap();
    try_set_keys(parameters.parameters_mut(), keys).ok()?;
    let topology = parameters.build(&|_| Ok((*file).to_string())).ok()?;
    Some((parameters, topology))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn stated_size_is_the_size_built(
        drawn in (0..TopologyParameters::ALL.len()).prop_flat_map(|number| any_of(TopologyParameters::ALL[number].name))
    ) {
        if let Some((parameters, topology)) = built(&drawn) {
            prop_assert_eq!(topology.scale(), counted(&topology));
            if parameters.name() != "file" {
                prop_assert_eq!(parameters.scale(), Some(counted(&topology)));
            }
        }
    }
}

/// The property above covers each kind only if many draws are valid.
#[test]
fn many_draws_are_possible() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for kind in TopologyParameters::ALL {
        let strategy = any_of(kind.name);
        let built = (0..100).filter(|_| built(&strategy.new_tree(&mut runner).unwrap().current()).is_some()).count();
        assert!(built > 30, "{}: {built} of 100", kind.name);
    }
}
