//! Files that a scenario names, given as the scenario: the message names their format, and the scenario it shows runs.

use anabranch_scenario::library;
use anabranch_testkit::folder;
use std::fs;

#[test]
fn other_files_are_reported_with_a_valid_scenario() {
    let folder = folder();
    let goal =
        "num_ranks 3\nrank 0 {\nl1: send 64b to 2 tag 0\n}\nrank 1 {\n}\nrank 2 {\nl1: recv 64b from 0 tag 0\n}\n";
    let conweave = "5 1 4\n4\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 4 100Gbps 1us 0\n3 4 100Gbps 1us 0\n";
    let tree = "Nodes 16\nTiers 2\nPodsize 16\nTier 0\nDownlink_speed_Gbps 400\nRadix_Down 4\nRadix_Up 4\n\
                Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 400\nRadix_Down 4\nDownlink_Latency_ns 1000\n";
    for (file, text, what, hosts, flows) in [
        ("jobs.cm", "Nodes 12\nConnections 2\n0->11 start 0 size 5\n1->6 start 0 size 5\n", "connection matrix", 12, 2),
        ("job.goal", goal, "GOAL", 3, 1),
        ("flows.csv", "src,dst,size_bytes,start_ps\n0,5,65536,0\n", "table of flows", 128, 1),
        ("flow.txt", "2\n0 5 3 65536 2.0\n1 6 3 1000000 2.0000025\n", "flow file of ConWeave", 7, 2),
        ("sizes.txt", "0 0\n1000 50\n2000 100\n", "distribution of flow sizes", 128, 0),
        ("net.txt", conweave, "topology of ConWeave", 4, 4),
        ("tree.topo", tree, "topology of htsim", 16, 16),
        ("fly.topo", "p 2\na 4\nh 2\n", "topology of htsim", 72, 72),
        ("ring.adjlist", "0 1 3\n1 2\n2 3\n", "adjacency list", 4, 4),
    ] {
        let path = folder.join(file);
        fs::write(&path, text).unwrap();
        let error = library::load(path.to_str().unwrap(), &[], None).expect_err(file);
        assert!(error.to_string().contains(what) && error.to_string().contains(file), "{file}: {error}");
        let help = error.remedy().unwrap();
        let (_, scenario) = help.split_once(":\n").unwrap();
        let beside = folder.join(format!("{file}.toml"));
        fs::write(&beside, scenario).unwrap();
        let scenario =
            library::load(beside.to_str().unwrap(), &[], None).unwrap_or_else(|e| panic!("{file}: {e}\n{help}"));
        let setup = scenario.setup(1).unwrap_or_else(|e| panic!("{file}: {e}\n{help}"));
        assert_eq!(setup.topology.hosts, hosts, "{file}");
        match flows {
            0 => assert!(!setup.flows.flows.is_empty(), "{file}"),
            flows => assert_eq!(setup.flows.flows.len(), flows, "{file}"),
        }
    }
    let path = folder.join("mistake.toml");
    fs::write(&path, "[topology]\nkind = fat-tree\n").unwrap();
    let error = library::load(path.to_str().unwrap(), &[], None).unwrap_err();
    assert!(error.to_string().contains("not valid TOML"), "{error}");
}
