//! A scenario printed with every default reads back as the same scenario; every ready-made one is valid.

use anabranch_lb::registry::ALIASES;
use anabranch_scenario::{Scenario, Tree, library::READY_MADE, load};
use anabranch_study::{ComparePlan, Request};
use proptest::prelude::*;
use std::path::Path;

fn read(text: &str) -> Scenario {
    Scenario::read(Tree::parse("test.toml", text).unwrap(), "test", Path::new("")).unwrap()
}

#[test]
fn every_ready_made_scenario_is_valid_and_reads_back() {
    for ready in READY_MADE {
        let scenario = load(ready.name, &[], None).unwrap_or_else(|e| panic!("{}: {e}", ready.name));
        assert!(!ready.title().is_empty() && !ready.shows().is_empty(), "{}", ready.name);
        assert_eq!(scenario.warnings(), Vec::<String>::new(), "{}", ready.name);
        scenario.setup(scenario.seed).unwrap_or_else(|e| panic!("{}: {e}", ready.name));
        let text = scenario.to_toml();
        let again = read(&text);
        assert_eq!(again.to_toml(), text, "{}", ready.name);
        assert_eq!(again.hash(), scenario.hash(), "{}", ready.name);
        let plan = ComparePlan::new(&scenario, &Request::default()).unwrap_or_else(|e| panic!("{}: {e}", ready.name));
        assert!(plan.jobs.len() >= 2, "{}", ready.name);
    }
}

/// Settings that a name fixes, that another excludes, or that only some pairs have.
const SETTINGS: [&str; 14] = [
    "load_balancer.prime={ signal = \"csig\" }",
    "load_balancer.prime={ signal = \"csig\", values = \"guided\" }",
    "load_balancer.prime={ scope = \"host\" }",
    "load_balancer.prime={ history = \"part\", values = \"guided\" }",
    "load_balancer.mrc={ values = \"hashed\" }",
    "load_balancer.mrc={ active = 8, min_active = 4 }",
    "load_balancer.ev-index={ remap = \"skip\" }",
    "load_balancer.ugal={ knowledge = \"global\" }",
    "load_balancer.source-guided={ weights = \"uniform\" }",
    "load_balancer.flicr={ weights = \"latency\" }",
    "load_balancer.letflow={ flowlet_timeout = \"25us\" }",
    "fabric.csig=\"delay\"",
    "fabric.csig=\"utilisation\"",
    "fabric.reply_paths=\"scheme\"",
];

const NETWORKS: [&str; 3] = [
    "topology={ kind = \"fat-tree\", tiers = 2, radix = 4 }",
    "topology={ kind = \"fat-tree\", tiers = 3, radix = 4 }",
    "topology={ kind = \"dragonfly\", p = 2, a = 4, h = 2 }",
];

/// A scenario with names of load balancers, if it can be run.
fn named(network: &str, names: [&str; 3], settings: &[&str]) -> Option<Scenario> {
    let [scheme, other, compared] = names;
    let workload = |of: &str| format!("{{ kind = \"permutation\", size = \"20kB\", load_balancer = \"{of}\" }}");
    let changes = [
        network.to_string(),
        format!("workload=[{}, {}]", workload(scheme), workload(other)),
        format!("load_balancer.scheme={scheme}"),
        format!("compare.schemes=[\"{compared}\", \"{scheme}\"]"),
    ];
    let changes: Vec<String> = changes.into_iter().chain(settings.iter().map(|all| (*all).to_string())).collect();
    let scenario = load("tiny", &changes, None).ok()?;
    let topology = scenario.topology().unwrap();
    let runs = scenario.setup(1).is_ok() && scenario.check_scheme(&topology, compared).is_ok();
    runs.then_some(scenario)
}

/// What is printed is read as the same scenario: the same load balancers in its workloads and its comparison.
fn reads_back(scenario: &Scenario, compared: &str) {
    let text = scenario.to_toml();
    let again = Scenario::read(Tree::parse("test.toml", &text).unwrap(), "test", Path::new(""));
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let setup = again.setup(1).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!((again.to_toml(), again.hash()), (text.clone(), scenario.hash()));
    assert_eq!(again.warnings(), scenario.warnings(), "{text}");
    let own = scenario.setup(1).unwrap();
    assert_eq!(format!("{:?}", setup.load_balancers), format!("{:?}", own.load_balancers), "{text}");
    let balancer = |of: &Scenario| format!("{:?}", of.with_scheme(compared).unwrap().load_balancers.main);
    assert_eq!(balancer(&again), balancer(scenario), "{text}");
}

/// Every alias runs on one of the networks, and what is printed of it has its fingerprint.
#[test]
fn every_alias_is_printed_as_it_runs() {
    for alias in ALIASES {
        let of = |network: &&str| named(network, [alias.name; 3], &[]);
        let scenario = NETWORKS.iter().find_map(of).unwrap_or_else(|| panic!("{} runs nowhere", alias.name));
        reads_back(&scenario, alias.name);
        let fingerprint =
            |of: &Scenario| anabranch_sim::run(&of.setup(1).unwrap(), 1, &mut |_| true).unwrap().fingerprint;
        assert_eq!(fingerprint(&read(&scenario.to_toml())), fingerprint(&scenario), "{}", alias.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Any names side by side, with any settings: what can be run can be run as printed. No side is outside its limits, and its
    /// packets have space for what both need.
    #[test]
    fn names_are_printed_as_they_run(
        network in prop::sample::select(NETWORKS.to_vec()), main in 0..ALIASES.len(), other in 0..ALIASES.len(),
        compared in 0..ALIASES.len(), alike in any::<[bool; 2]>(),
        settings in prop::sample::subsequence(SETTINGS.to_vec(), 0..4),
    ) {
        let alike_of = |at: usize, is_alike: bool| {
            let same: Vec<_> = ALIASES.iter().filter(|alias| alias.host == ALIASES[main].host).collect();
            if is_alike { same[at % same.len()].name } else { ALIASES[at].name }
        };
        let names = [ALIASES[main].name, alike_of(other, alike[0]), alike_of(compared, alike[1])];
        if let Some(scenario) = named(network, names, &settings) {
            for balancer in scenario.setup(1).unwrap().load_balancers {
                prop_assert_eq!(balancer.host.check().and(balancer.switch.check()), Ok(()));
                prop_assert_eq!(anabranch_lb::registry::check_pair(&balancer.host, &balancer.switch), Ok(()));
            }
            reads_back(&scenario, names[2]);
        }
    }
}

#[test]
fn non_default_values_survive() {
    let changes = [
        "topology.link=[{ class = \"host\", rate = \"200Gbps\" }, { link = \"leaf0-spine1\", delay = \"2us\" }]",
        "fabric.classes=[\"a\", \"b\"]",
        "fabric.scheduling=wrr",
        "fabric.class_weights=[3, 1]",
        "fabric.queue_limit=100kB",
        "transport.congestion_control=smartt",
        "transport.rto=50us",
        "load_balancer.host=ops",
        "load_balancer.switch=drill",
        "load_balancer.prime.p_ecn=7",
        "workload.0.split_share=0.25",
        "workload.0.split_class=b",
        "workload.0.split_load_balancer=prime",
        "fault=[{ kind = \"link-degrade\", count = 1, factor = 0.5, at = \"3us\" }]",
        "measure.series_links=[\"leaf0->spine0\", \"tier0-1\"]",
        "measure.series_flows=[\"*:2\"]",
        "measure.series_scheme=true",
        "measure.trace_flows=[3, \"first:10\", \"permutation:4\"]",
        "run.until=20us",
        "name=\"quotes \\\" and \\\\ \"",
    ];
    let scenario = load("tiny", &changes.map(String::from), Some(9)).unwrap();
    let text = scenario.to_toml();
    let again = read(&text);
    assert_eq!((again.to_toml(), again.hash()), (text.clone(), scenario.hash()));
    assert_eq!((again.seed, again.scheme()), (9, "ops+drill"));
    for part in [
        "p_ecn = 7",
        "rto = \"50us\"",
        "class_weights = [3, 1]",
        "split_share = 0.25",
        "factor = 0.5",
        "until = \"20us\"",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let setup = again.setup(9).unwrap();
    assert_eq!(setup.load_balancers.iter().map(|b| b.name.as_str()).collect::<Vec<_>>(), ["ops+drill", "prime"]);
    assert_eq!(setup.flows.workloads.len(), 2);
    // A quarter of eight flows.
    assert_eq!(setup.flows.flows.iter().filter(|f| f.workload == 1 && f.class == 1).count(), 2);
}

#[test]
fn hash_covers_inputs_of_a_run() {
    let hash = |changes: &[&str]| {
        load("tiny", &changes.iter().map(|c| (*c).to_string()).collect::<Vec<_>>(), None).unwrap().hash()
    };
    let base = hash(&[]);
    assert_eq!(base, hash(&[]));
    // Different texts of the same scenario: an explicit default, parameters of an unused scheme, the settings of a comparison.
    for same in ["topology.link_delay=1000ns", "load_balancer.drill.d=3", "compare.seeds=7", "workload.0.measured=true"]
    {
        assert_eq!(hash(&[same]), base, "{same}");
    }
    for other in [
        "seed=2",
        "topology.link_delay=2us",
        "load_balancer.scheme=ecmp",
        "load_balancer.prime.p_ecn=3",
        "run.warmup=1us",
    ] {
        assert_ne!(hash(&[other]), base, "{other}");
    }
}

#[test]
fn files_count_by_their_content() {
    let folder = anabranch_testkit::folder();
    let flows = "src,dst,size_bytes,start_ps\n0,7,1000,0\n1,6,1000,0\n";
    std::fs::write(folder.join("flows.csv"), flows).unwrap();
    let text = "[topology]\nkind = \"fat-tree\"\nradix = 4\n[[workload]]\nkind = \"file\"\npath = \"flows.csv\"\n";
    let path = folder.join("scenario.toml");
    std::fs::write(&path, text).unwrap();
    let scenario = load(path.to_str().unwrap(), &[], None).unwrap();
    assert_eq!(scenario.setup(1).unwrap().flows.flows.len(), 2, "relative to the scenario's folder");
    let before = scenario.hash();
    assert_eq!(read(&scenario.to_toml()).hash(), before);
    std::fs::write(folder.join("flows.csv"), flows.replace("1000", "2000")).unwrap();
    assert_ne!(scenario.hash(), before);
}

#[test]
fn a_binary_schedule_is_read_from_its_file() {
    // Rank 0 sends 200 B to rank 1; the byte 200 alone is no UTF-8.
    let rank = |kind: u8, peer: u8| {
        let node = [&[0, 0, 0, 0, kind, peer, 0, 0, 0, 200][..], &[0; 29]].concat();
        [&[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..], &node].concat()
    };
    let table: Vec<u8> = [38u64, 38 + 51, 38 + 51, 38 + 102].iter().flat_map(|at| at.to_le_bytes()).collect();
    let schedule = [&4223u64.to_le_bytes()[..], &[2, 0, 0, 0, 1, 1], &table, &rank(1, 1), &rank(2, 0)].concat();
    let folder = anabranch_testkit::folder();
    std::fs::write(folder.join("schedule.bin"), schedule).unwrap();
    let text = "[topology]\nkind = \"fat-tree\"\nradix = 4\n[[workload]]\nkind = \"file\"\npath = \"schedule.bin\"\n";
    let path = folder.join("scenario.toml");
    std::fs::write(&path, format!("{text}format = \"goal\"\n")).unwrap();
    let scenario = load(path.to_str().unwrap(), &[], None).unwrap();
    let flows = scenario.setup(1).unwrap().flows.flows;
    assert_eq!(flows.iter().map(|f| (f.src, f.dst, f.size)).collect::<Vec<_>>(), [(0, 1, 200)]);
    assert_eq!(read(&scenario.to_toml()).hash(), scenario.hash());
    // Read as text, it is refused with a readable message.
    std::fs::write(&path, format!("{text}format = \"csv\"\n")).unwrap();
    let error = load(path.to_str().unwrap(), &[], None).unwrap().setup(1).unwrap_err().to_string();
    assert!(error.contains("schedule.bin:1: found bytes that are not text (UTF-8)"), "{error}");
}

#[test]
fn later_words_win_over_earlier_ones() {
    let scheme = |changes: &[&str]| {
        let changes: Vec<String> = changes.iter().map(|c| (*c).to_string()).collect();
        load("tiny", &changes, None).unwrap().scheme().to_string()
    };
    assert_eq!(scheme(&[]), "prime");
    assert_eq!(scheme(&["load_balancer.scheme=ops"]), "ops");
    assert_eq!(scheme(&["load_balancer.scheme=ops", "load_balancer.switch=ar"]), "ops+ar");
    assert_eq!(scheme(&["load_balancer.host=ops", "load_balancer.switch=ecmp"]), "ops");
    assert_eq!(scheme(&["load_balancer.host=ops", "load_balancer.switch=ar", "load_balancer.scheme=reps"]), "reps");
}

#[test]
fn load_balancers_of_a_comparison_share_flows() {
    let scenario = load("tiny", &["workload.0={ kind = \"poisson\", duration = \"20us\" }".into()], None).unwrap();
    let request = Request {
        schemes: vec!["ecmp".into(), "prime".into(), "ops+drill".into()],
        seeds: Some(2),
        ..Request::default()
    };
    let plan = ComparePlan::new(&scenario, &request).unwrap();
    assert_eq!((plan.jobs.len(), plan.baseline.as_str()), (6, "ecmp"));
    let flows: Vec<_> = plan.jobs.iter().map(|job| job.scenario.setup(job.seed).unwrap().flows.flows).collect();
    assert!(!flows[0].is_empty());
    for (job, own) in plan.jobs.iter().zip(&flows) {
        let first = if job.seed == plan.jobs[0].seed { &flows[0] } else { &flows[3] };
        assert_eq!(own, first, "{}", job.name);
    }
    assert_ne!(flows[0], flows[3], "seeds differ");
    let mut hashes: Vec<u64> = plan.jobs.iter().map(|job| job.scenario.hash()).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 6);
}

#[test]
fn comparisons_that_cannot_be() {
    let scenario = load("tiny", &[], None).unwrap();
    let error = |schemes: &[&str], seeds, baseline: Option<&str>| {
        let schemes = schemes.iter().map(|s| (*s).to_string()).collect();
        let request = Request { schemes, seeds, baseline: baseline.map(String::from), ..Request::default() };
        let error = ComparePlan::new(&scenario, &request).unwrap_err();
        format!("{error} {}", error.remedy().unwrap_or_default())
    };
    for (text, words) in [
        (error(&["ecmp", "prme"], None, None), &["`prme`", "did you mean `prime`?"][..]),
        (error(&["ecmp", "ecmp"], None, None), &["`ecmp` is given twice"]),
        (error(&["prime+ecmp"], None, None), &["use switch ev-index"]),
        (error(&["ecmp", "prime"], None, Some("prim")), &["`prim`", "ecmp, prime", "did you mean `prime`?"]),
        (error(&["ecmp"], Some(0), None), &["--seeds", "found 0"]),
    ] {
        anabranch_testkit::assert_contains(&text, words);
    }
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scenarios/tiny.toml")).unwrap();
    let without = read(&text[..text.find("[compare]").unwrap()]);
    let error = ComparePlan::new(&without, &Request::default()).unwrap_err();
    assert!(error.to_string().contains("nothing to compare"), "{error}");
}
