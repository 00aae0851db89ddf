use super::{
    Draft, FailureKind, Restrictions, Tally,
    check::{Failure, OTHER_MODES, Verdict},
    draft, draw,
    kept::FailureStore,
};
use anabranch_lb::registry::{HostParameters, SwitchParameters};
use anabranch_scenario::PROFILES;
use anabranch_topology::TopologyParameters;
use anabranch_transport::TransportParameters;
use anabranch_workload::WorkloadParameters;

#[test]
fn cases_follow_from_seed_and_number() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let texts = |seed: u64| -> Vec<String> {
        (0..8).map(|n| draw::case(seed, n, &Restrictions::default(), scratch.path()).expect("a case").text()).collect()
    };
    let (first, again, other) = (texts(7), texts(7), texts(8));
    assert_eq!(first, again);
    assert!(first.iter().zip(&other).all(|(a, b)| a != b), "two seeds give the same case");
    assert!(first.iter().all(|text| text.contains("time_limit = ")), "a case has no limit");
}

/// Of 200 cases 25 have a seed of 64 random bits, and half of those exceed 2^63-1, which scenarios have as text.
#[test]
fn seeds_of_all_sizes_are_drawn() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let seeds: Vec<u64> = (0..200)
        .filter_map(|number| {
            draw::case(3, number, &Restrictions::default(), scratch.path()).ok()?.load(scratch.path()).ok()
        })
        .map(|(scenario, _)| scenario.seed)
        .collect();
    let count = |within: fn(u64) -> bool| seeds.iter().filter(|seed| within(**seed)).count();
    assert!(count(|seed| seed >= 1 << 63) >= 3, "{seeds:?}");
    assert!(count(|seed| (1001..1 << 63).contains(&seed)) >= 3, "{seeds:?}");
    assert!(count(|seed| seed <= 1000) >= 100, "{seeds:?}");
}

/// Number of cases that include every registered name.
const CASES: u64 = 500;

#[test]
fn every_registered_name_is_drawn() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let mut tally = Tally::default();
    for number in 0..CASES {
        if let Ok(draft) = draw::case(1, number, &Restrictions::default(), scratch.path()) {
            tally.add(&draft);
        }
    }
    // Ranks of `nccl` are processes, which a simulation cannot run.
    let workloads = WorkloadParameters::ALL.iter().map(|about| about.name).filter(|name| *name != "nccl");
    let transports = TransportParameters::each();
    let controls =
        transports.iter().flat_map(|transport| transport.controls().all().iter().map(|control| control.name));
    let wanted: Vec<(&str, Vec<&str>)> = vec![
        ("host_scheme", HostParameters::ALL.iter().map(|about| about.name).collect()),
        ("switch_scheme", SwitchParameters::ALL.iter().map(|about| about.name).collect()),
        ("topology", TopologyParameters::ALL.iter().map(|kind| kind.name).collect()),
        ("topology_format", vec!["adjacency", "conweave", "htsim-topo"]),
        ("transport", TransportParameters::ALL.iter().map(|about| about.name).collect()),
        ("congestion_control", controls.collect()),
        ("profile", PROFILES.iter().map(|profile| profile.name).collect()),
        ("recovery", vec!["irn", "irn-extended", "go-back-n"]),
        ("workload", workloads.collect()),
        ("workload_format", vec!["csv", "conweave", "htsim-cm", "goal"]),
        ("fault", vec!["link-down", "link-up", "link-degrade", "switch-down", "packet-loss"]),
        (
            "measurement",
            vec![
                "series_links",
                "series_flows",
                "series_scheme",
                "uplink_counts",
                "occupancy",
                "trace_flows",
                "trace_scheme",
                "captures",
            ],
        ),
    ];
    let missing: Vec<String> = wanted
        .iter()
        .flat_map(|(kind, names)| names.iter().map(move |name| (*kind, *name)))
        .filter(|(kind, name)| tally.count(kind, name) == 0)
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect();
    assert!(missing.is_empty(), "not in {CASES} cases: {missing:?}; drawn: {:#}", tally.json());
}

/// A planted failure: scenarios that lose packets at random differ on two threads.
fn planted(draft: &Draft) -> Verdict {
    let loses = draft.sections.iter().any(|section| section.get("loss").is_some());
    let mode = OTHER_MODES.iter().find(|mode| mode.how.threads == 2).copied().expect("a mode with two threads");
    match loses {
        true => Verdict::Failed(Failure { kind: FailureKind::Different, mode, text: "planted".into() }),
        false => Verdict::Passed,
    }
}

#[test]
fn failing_case_is_reduced_and_stored_with_commands() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let out = tempfile::tempdir().expect("a temporary directory");
    let drawn = (0..200)
        .map(|number| (number, draw::case(5, number, &Restrictions::default(), scratch.path()).expect("a case")));
    let (number, draft, failure) = drawn
        .filter_map(|(number, draft)| match planted(&draft) {
            Verdict::Failed(failure) => Some((number, draft, failure)),
            _ => None,
        })
        .next()
        .expect("a case that loses packets");
    let kept = FailureStore::new(&out.path().join("found")).expect("a free directory");
    let again = "anabranch soak --seed 5";
    let failed = kept
        .keep(number, &draft, failure, again, &scratch, &mut |draft, _| planted(draft))
        .expect("a directory to write");
    let at = failed.at.clone().expect("a directory");
    assert_eq!(at, out.path().join("found").join(format!("case-{number}")));
    // Such a scenario needs a topology, a workload, the fault and the limit of the run.
    let text = std::fs::read_to_string(at.join("scenario.toml")).expect("a scenario");
    let headers: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
    assert!(headers.contains(&"[[fault]]") && headers.len() <= 4, "{text}");
    assert!(text.len() < draft.text().len() + 600, "{text}");
    for threads in ["--threads 1", "--threads 2"] {
        assert!(
            failed.commands.iter().any(|command| command.starts_with("anabranch run") && command.contains(threads))
        );
        assert!(text.contains(threads), "{text}");
    }
    let (_, setup) = draft::read(&at.join("scenario.toml").to_string_lossy()).expect("a scenario that can be run");
    assert!(setup.topology.hosts > 1);
    let report = std::fs::read_to_string(at.join("failure.txt")).expect("a report");
    assert!(report.contains("planted") && report.contains(again), "{report}");
    draft::read(&at.join("as-drawn/scenario.toml").to_string_lossy()).expect("the scenario as it was drawn");
    // Failures are not written beside existing files.
    let message = FailureStore::new(&out.path().join("found")).err().expect("refused").to_string();
    assert!(message.contains("not empty"), "{message}");
}
