//! Workloads for Dragonfly and Slim Fly on the networks of Spritz, and a collective that runs.

use anabranch_backend::Setup;
use anabranch_scenario::{Scenario, ScenarioError, Tree};
use anabranch_workload::{Flow, Start};
use std::{collections::BTreeSet, path::Path};

/// 33 groups of 8 switches of 4 hosts: 1056 hosts.
const DRAGONFLY: &str = "kind = \"dragonfly\"";
/// q = 9: 162 switches of 7 hosts, 1134 hosts.
const SLIM_FLY: &str = "kind = \"slim-fly\"";

fn setup(topology: &str, workloads: &str) -> Result<Setup, ScenarioError> {
    let text = format!("[topology]\n{topology}\n{workloads}");
    Scenario::read(Tree::parse("test.toml", &text)?, "test", Path::new(""))?.setup(1)
}

fn flows<'a>(setup: &'a Setup, name: &str) -> Vec<&'a Flow> {
    let number = setup.flows.workloads.iter().position(|w| w.name == name).unwrap();
    setup.flows.flows.iter().filter(|flow| usize::from(flow.workload) == number).collect()
}

#[test]
fn adversarial_traffic_of_a_dragonfly_goes_five_groups_further() {
    let setup = setup(DRAGONFLY, "[[workload]]\nkind = \"adversarial\"\n").unwrap();
    let flows = flows(&setup, "adversarial");
    // Specification 12.3: host h to (h + 5 * 32) mod 1056, all 1056 flows of 4 MiB.
    assert_eq!(flows.len(), 1056);
    assert!(flows.iter().all(|flow| flow.dst == (flow.src + 160) % 1056 && flow.size == 4_194_304));
}

#[test]
fn adversarial_traffic_of_a_slim_fly_is_two_hops_away() {
    let setup = setup(SLIM_FLY, "[[workload]]\nkind = \"adversarial\"\n").unwrap();
    let flows = flows(&setup, "adversarial");
    let hosts: BTreeSet<u32> = flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect();
    // Every host occurs once at most; most of them occur.
    assert_eq!(hosts.len(), 2 * flows.len());
    assert!(hosts.len() as u32 > setup.topology.hosts / 2);
    let neighbours = |host: u32| {
        let switch = setup.topology.edge_switch(host);
        setup.topology.out_links(switch).iter().map(|link| setup.topology.link(*link).to).collect::<BTreeSet<_>>()
    };
    for flow in flows {
        let to = setup.topology.edge_switch(flow.dst);
        assert!(!neighbours(flow.src).contains(&to) && !neighbours(flow.src).is_disjoint(&neighbours(flow.dst)));
    }
}

#[test]
fn the_microbenchmark_fills_the_links_to_the_gateways() {
    let workload = "[[workload]]\nkind = \"microbenchmark\"\nsource_group = 3\ndestination_group = 20\n";
    let setup = setup(DRAGONFLY, workload).unwrap();
    let monitored = flows(&setup, "microbenchmark");
    assert_eq!((monitored.len(), monitored[0].src / 32, monitored[0].dst / 32), (1, 3, 20));
    let background = flows(&setup, "microbenchmark-background");
    // 33 groups without D and 3 others; in each 7 switches of 4 hosts send; not the monitored sender.
    assert_eq!(background.len(), 29 * 7 * 4 - 1);
    let groups: BTreeSet<u32> = background.iter().map(|flow| flow.src / 32).collect();
    assert_eq!(groups.len(), 29);
    let guide = setup.topology.guide().unwrap();
    for flow in background {
        let (gateway, _) = guide.gateway(flow.src / 32, 20).unwrap();
        // To the gateway or through it: it is the first stop of the default path.
        let (from, to) = (setup.topology.edge_switch(flow.src), setup.topology.edge_switch(flow.dst));
        assert_ne!(from, gateway);
        assert_eq!(setup.topology.link(guide.minimal(from, to).unwrap()).to, gateway);
        assert_ne!(flow.dst / 32, 20);
        assert_eq!(flow.start, Start::At(anabranch_units::Time::ZERO));
    }
}

#[test]
fn unsupported_topologies_name_requirements() {
    for (kind, allowed) in [("adversarial", "\"dragonfly\" or \"slim-fly\""), ("microbenchmark", "\"dragonfly\"")] {
        let error = setup("kind = \"fat-tree\"\nradix = 4", &format!("[[workload]]\nkind = \"{kind}\"\n")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("[[workload]] 1: `kind`") && text.contains(allowed), "{text}");
        assert_eq!(error.line_column(), Some((5, 8)), "{text}");
    }
}

#[test]
fn a_workload_may_have_its_own_congestion_control() {
    let text = "[fabric]\nprofile = \"spritz\"\n[transport.nscc]\ntarget_delay = 0.6\n[[workload]]\nkind = \"microbenchmark\"\npart = \"monitored\"\n\
        [[workload]]\nkind = \"microbenchmark\"\npart = \"background\"\nname = \"jam\"\nsplit_share = 0.5\n\
        congestion_control = \"nscc\"\n";
    let setup = setup(DRAGONFLY, text).unwrap();
    let names: Vec<&str> = setup.flows.workloads.iter().map(|workload| workload.name.as_str()).collect();
    let own: Vec<(&str, &str)> = setup
        .own_transports
        .iter()
        .map(|(workload, transport)| (names[*workload as usize], transport.control().name))
        .collect();
    // Both parts of the split have it, the monitored flow the profile's.
    assert_eq!(own, [("jam", "nscc"), ("jam-split", "nscc")]);
    assert_eq!(setup.transport.control().name, "dctcp");
    let scenario = |text: &str| {
        let text = format!("[topology]\n{DRAGONFLY}\n{text}");
        Scenario::read(Tree::parse("test.toml", &text).unwrap(), "test", Path::new(""))
    };
    // What is written out has the tables of both, so that it reads back the same.
    let written = scenario(text).unwrap().to_toml();
    assert!(written.contains("[transport.dctcp]") && written.contains("target_delay = 0.6"), "{written}");
    let again = Scenario::read(Tree::parse("again.toml", &written).unwrap(), "again", Path::new("")).unwrap();
    assert_eq!(again.setup(1).unwrap().own_transports, setup.own_transports);
    let error = scenario(&text.replace("= \"nscc\"", "= \"nsc\"")).unwrap_err().to_string();
    assert!(error.contains("[[workload]] 2: `congestion_control`: found \"nsc\""), "{error}");
    assert!(error.contains("did you mean `nscc`?"), "{error}");
}

/// Returns the warnings about a word on a network of 32 hosts.
fn warnings_of(workloads: &str, word: &str) -> Vec<String> {
    let text = format!("[topology]\nkind = \"fat-tree\"\nradix = 8\ntiers = 2\n{workloads}");
    let scenario = Scenario::read(Tree::parse("test.toml", &text).unwrap(), "test", Path::new("")).unwrap();
    let setup = scenario.setup(1).unwrap();
    let all = scenario.foresight(&setup, &anabranch_scenario::backend::SIMULATOR);
    all.into_iter().filter(|warning| warning.contains(word)).collect()
}

fn warnings(workloads: &str) -> Vec<String> {
    warnings_of(workloads, "overlap")
}

#[test]
fn jobs_that_keep_rows_are_named() {
    let kept = |workload: &str, more: &str| {
        let text =
            format!("[measure]\nflow_rows = \"without-jobs\"\n{more}\n[[workload]]\n{workload}\nname = \"mine\"\n");
        warnings_of(&text, "keeps rows")
    };
    let servers = "[servers]\ngpus = 4\nnics = 4\n";
    let collective = |more: &str| format!("kind = \"collective\"\nranks = 8\ngroups = 2\n{more}");
    for (workload, more, reason) in [
        (collective("algorithm = \"expert-all-to-all\"\nskew = 1.0"), "", "with `skew` each group and repetition"),
        (collective("algorithm = \"all-to-all\"\norder = \"random\""), "", "with `order = \"random\"` each group"),
        (collective("split_share = 0.5"), "", "a `split_share` is drawn from all flows"),
        (collective(""), servers, "with [servers] messages become flows of two networks"),
        ("kind = \"training-rounds\"".into(), "", "each message of training-rounds has a size of its own"),
    ] {
        let found = kept(&workload, more);
        assert_eq!(found.len(), 1, "{workload}: {found:?}");
        let begin = "[[workload]] 1: `measure.flow_rows = \"without-jobs\"`: the job `mine` keeps rows of its flows: ";
        assert!(found[0].contains(begin) && found[0].contains(reason), "{found:?}");
        assert!(found[0].starts_with("test.toml:"), "{found:?}");
    }
    for workload in [
        collective(""),
        collective("algorithm = \"expert-all-to-all\""),
        "kind = \"training-step\"\nranks = 8".into(),
        "kind = \"permutation\"".into(),
    ] {
        assert_eq!(kept(&workload, ""), Vec::<String>::new());
    }
}

#[test]
fn jobs_on_the_same_hosts_are_warned_about() {
    let two = |more: &str| {
        format!(
            "[[workload]]\nkind = \"collective\"\nname = \"a\"\nranks = 8\n\n\
             [[workload]]\nkind = \"all-to-all\"\nname = \"b\"\nranks = 4\n{more}"
        )
    };
    let found = warnings(&two(""));
    assert_eq!(found.len(), 1, "{found:?}");
    let part = "test.toml:10: [[workload]] 2: the jobs `a` and `b` both run on 4 hosts (0 to 3)";
    assert!(found[0].contains(part) && found[0].contains("`overlap = true`"), "{found:?}");
    assert_eq!(warnings(&two("overlap = true\n")), Vec::<String>::new());
    let apart = "[[workload]]\nkind = \"collective\"\nranks = 8\n\n\
                 [[workload]]\nkind = \"collective\"\nranks = 8\nhosts = \"rest\"\n";
    assert_eq!(warnings(apart), Vec::<String>::new());
}
