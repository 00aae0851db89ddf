//! Topology files (specification 14.2, 14.3): their graphs, their errors, and no panic for any text.

use crate::common::{adjacency, description, edges, fat_tree, file, make, parameters, refused};
use anabranch_settings::{Raw, Setting};
use anabranch_topology::{FileFormat, LinkClass, NodeKind};
use proptest::prelude::*;

/// Two leaves (ids 4 and 5) with two hosts each, two spines (ids 6 and 7).
const SAMPLE: &str = "\
8 4 8
4 5 6 7
0 4 100Gbps 1000ns 0
1 4 100Gbps 1000ns 0
2 5 100Gbps 1000ns 0
3 5 100Gbps 1000ns 0.000000
4 6 400Gbps 2us 0
4 7 400Gbps 2us 0
5 6 400Gbps 2us 0
7 5 400Gbps 2us 0
";

#[test]
fn a_small_conweave_file() {
    let keys = "leaves=2 spines=2 hosts_per_leaf=2 link_rate=400Gbps host_link_rate=100Gbps link_delay=2us host_link_delay=1us";
    let built = make("leaf-spine", keys).unwrap();
    assert_eq!(description(&file("conweave", SAMPLE).unwrap()), description(&built));
}

#[test]
fn conweave_ids_may_come_in_any_order() {
    // Switches 0 and 1 are the leaves, 5 the spine; hosts are 2, 3, 4 and become host0, host1, host2.
    let text = "# a comment\n6 3 5\n\n5 0\n1\n2 0 1Gbps 1us 0 # here too\n1 3 1Gbps 1us 0\n4 1 1Gbps 1us 0\n5 0 1Gbps 1us 0\n1 5 1Gbps 1us 0\n";
    let fabric = file("conweave", text).unwrap();
    let names: Vec<&str> = fabric.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["host0", "host1", "host2", "leaf0", "leaf1", "spine0"]);
    let at: Vec<&str> = (0..3).map(|h| fabric.node(fabric.edge_switch(h)).name.as_str()).collect();
    assert_eq!(at, ["leaf0", "leaf1", "leaf1"]);
    assert_eq!((fabric.cable_name(fabric.host_uplink(1)), fabric.uplinks.clone()), ("host1-leaf1".into(), vec![1]));
}

#[test]
fn conweave_links_inside_a_tier_leave_no_tiers() {
    let text = "4 2 3\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n3 2 1Gbps 1us 0\n";
    let fabric = file("conweave", text).unwrap();
    assert!(fabric.uplinks.is_empty());
    let link = fabric.link_named("leaf0-leaf1").unwrap()[0];
    assert_eq!(fabric.link(link).class, LinkClass::Local);
}

#[test]
fn conweave_files_may_end_with_remarks() {
    let text = format!("{SAMPLE}\nFirst line: nodes, switches, links\nsrc0 dst0 rate delay error_rate\n");
    assert_eq!(description(&file("conweave", &text).unwrap()), description(&file("conweave", SAMPLE).unwrap()));
}

/// Tiers are distances from the hosts: a fat tree of three tiers written as a list of cables gives the same fat tree.
#[test]
fn a_fat_tree_as_a_list_of_cables() {
    let tree = fat_tree(3, 4);
    let switches: Vec<String> = (tree.hosts..tree.hosts + tree.switches()).map(|s| s.to_string()).collect();
    let mut text =
        format!("{} {} {}\n{}\n", tree.nodes.len(), tree.switches(), tree.links.len() / 2, switches.join(" "));
    for link in tree.links.iter().step_by(2) {
        text += &format!("{} {} {} {} 0\n", link.to.0, link.from.0, link.rate, link.delay);
    }
    assert_eq!(description(&file("conweave", &text).unwrap()), description(&tree));
}

/// ConWeave's own fabric: 128 hosts at 100 Gb/s, 8 leaves, 8 spines, 2 to 1.
#[test]
fn the_conweave_fabric() {
    let text = include_str!("../../../../studies/study/tests/recorded/leaf_spine_128_100G_OS2.txt");
    let fabric = file("conweave", text).unwrap();
    let hopper = make("leaf-spine", "").unwrap();
    assert_eq!((fabric.nodes.len(), fabric.links.len()), (144, 2 * 192));
    assert_eq!(fabric.oversubscription(), 2.0);
    assert_eq!(description(&fabric), description(&hopper));
}

/// Tiers are (rate in Gb/s, ports down, ports up, delay in ns).
fn topo(nodes: u64, podsize: Option<u64>, tiers: &[(u64, u64, u64, u64)]) -> String {
    let mut text = format!("Nodes {nodes}\nTiers {}\n", tiers.len());
    text.extend(podsize.map(|p| format!("Podsize {p}\n")));
    for (number, (rate, down, up, delay)) in tiers.iter().enumerate() {
        text += &format!(
            "\nTier {number}\nDownlink_speed_Gbps {rate}\nRadix_Down {down}\nRadix_Up {up}\nDownlink_Latency_ns {delay}\n"
        );
    }
    text
}

#[test]
fn htsim_trees() {
    for (text, tree) in [
        (topo(128, None, &[(400, 8, 8, 1000), (400, 16, 0, 1000)]), fat_tree(2, 16)),
        (topo(1024, Some(64), &[(400, 8, 8, 1000), (400, 8, 8, 1000), (400, 16, 0, 1000)]), fat_tree(3, 16)),
    ] {
        assert_eq!(description(&file("htsim-topo", &text).unwrap()), description(&tree));
    }
}

#[test]
fn htsim_rates_delays_latency_and_bundles() {
    let text = "nodes 16\nTIERS 2 # two\nTier 0\nDownlink_speed_Gbps 100.0\nRadix_Down 4\nRadix_Up 4\n\
        Downlink_Latency_ns 10\nSwitch_Latency_ns 250\nOversubscribed 1\nTier 1\nDownlink_speed_Gbps 200\n\
        Radix_Down 8\nDownlink_Latency_ns 500\nSwitch_Latency_ns 250\nBundle 2\n";
    let keys = "leaves=4 spines=2 hosts_per_leaf=4 links_per_spine=2 link_rate=200Gbps host_link_rate=100Gbps \
                link_delay=500ns host_link_delay=10ns switch_latency=250ns";
    let built = make("leaf-spine", keys).unwrap();
    assert_eq!(description(&file("htsim-topo", text).unwrap()), description(&built));
}

#[test]
fn an_adjacency_list() {
    // A square of switches with one diagonal, three hosts each.
    let square = adjacency("0 1 2 3\n1 2\n2 3\n3\n", 3);
    assert_eq!((square.hosts, square.switches(), square.links.len()), (12, 4, 2 * (12 + 5)));
    assert!(square.nodes[12..].iter().all(|n| n.kind == NodeKind::Switch { tier: 0 }));
    assert_eq!(square.nodes[15].name, "switch3");
    assert!(square.uplinks.is_empty());
    assert_eq!(edges(&square).len(), 4);
    assert!((0..12).all(|h| square.edge_switch(h).0 == 12 + h / 3));
    let local: Vec<String> = square
        .link_ids()
        .step_by(2)
        .filter(|l| square.link(*l).class == LinkClass::Local)
        .map(|l| square.cable_name(l))
        .collect();
    assert_eq!(local, ["switch0-switch1", "switch0-switch2", "switch0-switch3", "switch1-switch2", "switch2-switch3"]);
    let hops = |a: u32, b: u32| square.switch_distance(square.edge_switch(a), square.edge_switch(b));
    assert_eq!((hops(0, 1), hops(0, 3), hops(3, 11)), (0, 1, 2));
    assert_eq!(description(&adjacency("2 3\n1 2\n0 3 2 1\n", 3)), description(&square));
}

proptest! {
    /// A connected graph, written in any order with each edge in the line of one of its nodes, reads to the same topology.
    #[test]
    fn an_adjacency_list_in_any_order(
        parents in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
        more in prop::collection::vec((0u32..13, 0u32..13), 0..20),
        order in any::<u64>(),
    ) {
        let switches = parents.len() as u32 + 1;
        let tree = parents.iter().zip(1u32..).map(|(of, child)| (of.index(child as usize) as u32, child));
        let more = more.into_iter().filter(|(a, b)| a != b && *a.max(b) < switches).map(|(a, b)| (a.min(b), a.max(b)));
        let edges: std::collections::BTreeSet<(u32, u32)> = tree.chain(more).collect();
        let sorted: String = edges.iter().map(|(a, b)| format!("{a} {b}\n")).collect();
        let mut draws = anabranch_random::Stream::keyed(order, 0, "edges");
        let mut lines = std::collections::BTreeMap::<u32, Vec<u32>>::new();
        let mut shuffled: Vec<_> = edges.into_iter().collect();
        draws.shuffle(&mut shuffled);
        for (a, b) in shuffled {
            let (at, other) = if draws.chance(1, 2) { (a, b) } else { (b, a) };
            lines.entry(at).or_default().push(other);
        }
        let mut lines: Vec<String> = lines
            .into_iter()
            .map(|(at, others)| format!("{at} {}\n", others.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")))
            .collect();
        draws.shuffle(&mut lines);
        prop_assert_eq!(description(&adjacency(&lines.concat(), 2)), description(&adjacency(&sorted, 2)));
    }
}

#[test]
fn errors_of_files_say_where() {
    let two = topo(16, None, &[(400, 4, 4, 1000), (400, 4, 0, 1000)]);
    assert!(file("htsim-topo", &two).is_ok());
    let three = topo(16, Some(4), &[(400, 2, 2, 1000), (400, 2, 2, 1000), (400, 4, 0, 1000)]);
    assert_eq!(description(&file("htsim-topo", &three).unwrap()), description(&fat_tree(3, 4)));
    for (section, format, good) in [
        ("conweave", "conweave", SAMPLE),
        ("two tiers", "htsim-topo", &two),
        ("three tiers", "htsim-topo", &three),
        ("groups", "htsim-topo", ""),
        ("adjacency", "adjacency", ""),
    ] {
        for [from, to, words] in refused(section) {
            let text = if from.is_empty() { to.clone() } else { good.replacen(&from, &to, 1) };
            assert!(text != good || from == to, "{from}");
            let error = file(format, &text).expect_err(&to);
            assert!(section == "groups" || error.key.as_deref() == Some("path"), "{error}");
            assert!(error.message.starts_with("fabric.txt: "), "{error}");
            assert!(words.split(" | ").all(|said| error.message.contains(said)), "`{words}` in: {error}");
        }
    }
    // The limit is a million hosts, also if the nodes are fewer than twice that.
    let hosts: String = (1..1_500_000).map(|host| format!("{host} 0 1Gbps 1us 0\n")).collect();
    let error = file("conweave", &format!("1500000 1 1499999\n0\n{hosts}")).unwrap_err();
    assert!(error.message.contains("1499999 hosts; at most 1048576"), "{error}");
    for keys in ["hosts_per_switch=0", "hosts_per_switch=999999999999999"] {
        let read = parameters("file", &format!("path=g format=adjacency {keys}")).build(&|_| Ok("0 1\n".into()));
        assert!(read.unwrap_err().message.contains("hosts each"));
    }
    let slow = parameters("file", "path=g format=adjacency link_rate=1bps").build(&|_| Ok("0 1\n".into()));
    assert_eq!(slow.unwrap_err().key.as_deref(), Some("link_rate"));
}

#[test]
fn a_file_that_is_not_there() {
    let missing = parameters("file", "path=no.txt");
    let error = missing.build(&|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound))).unwrap_err();
    assert!(error.key.as_deref() == Some("path") && error.message.contains("`no.txt`"), "{error}");
    let error = parameters("file", "").build(&|_| panic!("nothing to read")).unwrap_err();
    assert!(error.key.as_deref() == Some("path") && error.message.contains("needs `path`"), "{error}");
}

#[test]
fn format_is_detected_from_the_content() {
    let found = |text: &str| parameters("file", "path=graph").build(&|_| Ok(text.to_string()));
    let tree = "# two tiers\nNodes 16\nTiers 2\nPodsize 16\nTier 0\nDownlink_speed_Gbps 400\nRadix_Down 4\nRadix_Up 4\n\
                Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 400\nRadix_Down 4\nDownlink_Latency_ns 1000\n";
    let lone = "2 1 1\n1\n0 1 100Gbps 1us 0\n";
    for (format, text) in [
        ("conweave", SAMPLE),
        ("conweave", lone),
        ("htsim-topo", tree),
        ("htsim-topo", "p 2\na 4\nh 2\n"),
        ("htsim-topo", "q 5\np 2\n"),
        // Three neighbours in a line are not the counts of ConWeave.
        ("adjacency", "# a triangle\n0 1 2\n1 2\n"),
        ("adjacency", "0 1\n"),
    ] {
        assert_eq!(FileFormat::of(text).map(|of| of.write()), Some(Raw::Text(format.into())), "{text}");
        match (found(text), file(format, text)) {
            (Ok(found), Ok(read)) => assert_eq!(description(&found), description(&read)),
            (found, read) => {
                assert_eq!(found.unwrap_err().message, read.unwrap_err().message.replace("fabric.txt", "graph"))
            }
        }
    }
    for (text, words) in
        [("0 1 3\n2 x 3\n", "line 2: a neighbour is `x`"), ("0 1\n1 -2\n", "line 2: a neighbour is `-2`")]
    {
        let error = parameters("file", "path=x.adjlist").build(&|_| Ok(text.to_string())).unwrap_err();
        assert!(error.message.contains(words) && error.message.contains("a whole number is needed"), "{error}");
    }
    for text in ["", "{\"nodes\": 3}\n", "src,dst\n0,1\n"] {
        let error = found(text).unwrap_err();
        assert_eq!(error.key.as_deref(), Some("format"), "{error}");
        assert!(error.message.contains("conweave") && error.message.contains("adjacency"), "{error}");
    }
}
