//! The recorded runs of the ConWeave ns-3 model on the same flows. They are no part of the project: give their folder
//! (`conweave-ns3`, with `calibration/` in it) in the environment variable `ANABRANCH_RECORDED`.

use anabranch_scenario::{scenario::Scenario, tree::Tree};
use std::{collections::BTreeMap, path::PathBuf};

fn folder() -> PathBuf {
    std::env::var_os("ANABRANCH_RECORDED").expect("the folder of the recorded runs in ANABRANCH_RECORDED").into()
}

/// (src, dst, size) and completion times in nanoseconds, sorted.
type Times = BTreeMap<(u32, u32, u64), Vec<u64>>;

fn ours(folder: &std::path::Path, flows: &str, profile: &str, scheme: &str, seed: u64) -> Times {
    let text = format!(
        "[topology]\nkind = \"file\"\npath = \"leaf_spine_128_100G_OS2.txt\"\nformat = \"conweave\"\n[fabric]\nprofile = \
         \"conweave-ns3-{profile}\"\n[load_balancer]\nscheme = \"{scheme}\"\n[[workload]]\nkind = \"file\"\npath = \
         \"{flows}\"\nformat = \"conweave\"\n"
    );
    let tree = Tree::parse("recorded.toml", &text).expect("a tree");
    let setup = Scenario::read(tree, "recorded", folder).and_then(|scenario| scenario.setup(seed)).expect("a setup");
    let result = anabranch_sim::run(&setup, 1, &mut |_| true).expect("a run");
    let mut times = Times::new();
    for flow in &result.flows {
        let fct = flow.fct_ack.expect("a finished flow").ps() / 1000;
        times.entry((flow.src, flow.dst, flow.size_bytes)).or_default().push(fct);
    }
    times.values_mut().for_each(|list| list.sort_unstable());
    times
}

fn theirs(folder: &std::path::Path, file: &str) -> Times {
    let text = std::fs::read_to_string(folder.join(file)).expect("a recorded file");
    let mut times = Times::new();
    for line in text.lines() {
        let fields: Vec<u64> = line.split_whitespace().map(|field| field.parse().expect("a number")).collect();
        times.entry((fields[0] as u32, fields[1] as u32, fields[4])).or_default().push(fields[6]);
    }
    times.values_mut().for_each(|list| list.sort_unstable());
    times
}

fn all(times: &Times) -> Vec<f64> {
    times.values().flatten().map(|time| *time as f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
#[ignore = "needs the recorded runs: ANABRANCH_RECORDED"]
fn single_flows_are_equal_to_the_nanosecond() {
    let folder = folder();
    for profile in ["irn", "lossless"] {
        let recorded = theirs(&folder, &format!("calibration/single_{profile}_fecmp.fct"));
        assert_eq!(ours(&folder, "calibration/single.txt", profile, "ecmp", 1), recorded, "{profile}");
    }
}

#[test]
#[ignore = "needs the recorded runs: ANABRANCH_RECORDED"]
fn permutation_takes_recorded_paths() {
    let folder = folder();
    for profile in ["irn", "lossless"] {
        let recorded = theirs(&folder, &format!("calibration/perm_{profile}_fecmp.fct"));
        let here = ours(&folder, "calibration/perm.txt", profile, "ecmp", 1);
        let (x, y) = (all(&recorded), all(&here));
        // The assignment of flows to shared uplinks decides: marking is random, the paths are not.
        let (mx, my) = (mean(&x), mean(&y));
        let sum = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(&y).map(|(a, b)| f(a - mx, b - my)).sum::<f64>();
        let correlation = sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
        assert!(correlation > 0.8, "{profile}: {correlation}");
        // Flows that share no uplink finish in 93 to 97 us, and occasionally one of two that share one does.
        let alone = |times: &[f64]| times.iter().filter(|time| **time < 100_000.0).count();
        assert!(alone(&x).abs_diff(alone(&y)) <= 4, "{profile}: {} and {}", alone(&x), alone(&y));
    }
}

/// One recorded run is one draw of the marked packets and of the order of arrivals. It must be in the range of our runs, which
/// for twenty seeds is about two standard deviations to either side.
#[test]
#[ignore = "needs the recorded runs: ANABRANCH_RECORDED"]
fn mean_and_max_times_are_within_seed_range() {
    let folder = folder();
    for (case, profile, scheme, suffix, seeds) in [
        ("pair", "irn", "ecmp", "fecmp", 64),
        ("pair", "lossless", "ecmp", "fecmp", 64),
        ("incast16", "irn", "ecmp", "fecmp", 32),
        ("incast16", "lossless", "ecmp", "fecmp", 32),
        ("perm", "irn", "ecmp", "fecmp", 20),
        ("perm", "lossless", "ecmp", "fecmp", 20),
        ("perm", "irn", "conweave", "conweave", 20),
        ("perm", "lossless", "conweave", "conweave", 20),
        ("incast64", "irn", "ecmp", "fecmp", 20),
        ("incast64", "lossless", "ecmp", "fecmp", 12),
    ] {
        let recorded = all(&theirs(&folder, &format!("calibration/{case}_{profile}_{suffix}.fct")));
        let runs: Vec<Vec<f64>> = (1..=seeds)
            .map(|seed| all(&ours(&folder, &format!("calibration/{case}.txt"), profile, scheme, seed)))
            .collect();
        let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        for (what, of) in [("mean", &mean as &dyn Fn(&[f64]) -> f64), ("largest", &largest)] {
            let values: Vec<f64> = runs.iter().map(|run| of(run)).collect();
            let least = values.iter().copied().fold(f64::MAX, f64::min);
            let (most, there) = (largest(&values), of(&recorded));
            // A tolerance of a thousandth, since a range has no tail.
            let inside = (0.999 * least..=1.001 * most).contains(&there);
            assert!(inside, "{case} {profile} {scheme}, {what}: {there} is not between {least} and {most}");
        }
    }
}
