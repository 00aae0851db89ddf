//! Recorded runs of the ConWeave ns-3 model on the same flows. Two small ones are kept in `recorded/`; the others are no part of the
//! project: the environment variable `ANABRANCH_RECORDED` names their folder (`conweave-ns3`, with `calibration/` in it).

use anabranch_scenario::{Scenario, Tree};
use anabranch_testkit::skip;
use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// Returns the folder of the cases that are kept with the tests.
fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// Returns the folder of all recorded runs; `None` where there is none, after reporting a skipped test.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("ANABRANCH_RECORDED").map(PathBuf::from);
    let there = folder.filter(|folder| folder.join("calibration").is_dir());
    if there.is_none() {
        skip("the folder of the recorded runs is missing", "set ANABRANCH_RECORDED to it");
    }
    there
}

/// (src, dst, size) and completion times in nanoseconds, sorted.
type Times = BTreeMap<(u32, u32, u64), Vec<u64>>;

fn run(folder: &Path, flows: &str, profile: &str, scheme: &str, seed: u64) -> anabranch_outcome::RunResult {
    let text = format!(
        "[topology]\nkind = \"file\"\npath = \"leaf_spine_128_100G_OS2.txt\"\nformat = \"conweave\"\n[fabric]\nprofile = \
         \"conweave-ns3-{profile}\"\n[load_balancer]\nscheme = \"{scheme}\"\n[[workload]]\nkind = \"file\"\npath = \
         \"{flows}\"\nformat = \"conweave\"\n"
    );
    let tree = Tree::parse("recorded.toml", &text).expect("a tree");
    let setup = Scenario::read(tree, "recorded", folder).and_then(|scenario| scenario.setup(seed)).expect("a setup");
    anabranch_sim::run(&setup, 1, &mut |_| true).expect("a run")
}

fn ours(folder: &Path, flows: &str, profile: &str, scheme: &str, seed: u64) -> Times {
    let mut times = Times::new();
    for flow in &run(folder, flows, profile, scheme, seed).flows {
        let fct = flow.fct_ack.expect("a finished flow").ps() / 1000;
        times.entry((flow.src, flow.dst, flow.size_bytes)).or_default().push(fct);
    }
    times.values_mut().for_each(|list| list.sort_unstable());
    times
}

fn theirs(folder: &Path, file: &str) -> Times {
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
    let Some(folder) = folder() else { return };
    for profile in ["irn", "lossless"] {
        let recorded = theirs(&folder, &format!("calibration/single_{profile}_fecmp.fct"));
        assert_eq!(ours(&folder, "calibration/single.txt", profile, "ecmp", 1), recorded, "{profile}");
    }
}

#[test]
#[ignore = "needs the recorded runs: ANABRANCH_RECORDED"]
fn permutation_takes_recorded_paths() {
    let Some(folder) = folder() else { return };
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

/// One recorded run is one draw of the marked packets and of the order of arrivals. Its mean and largest times must be in the range of
/// our runs, which for twenty seeds is about two standard deviations to either side. A tolerance of a thousandth, since a range has no
/// tail.
fn assert_within_seed_range(folder: &Path, case: &str, profile: &str, scheme: &str, suffix: &str, seeds: u64) {
    let recorded = all(&theirs(folder, &format!("calibration/{case}_{profile}_{suffix}.fct")));
    let runs: Vec<Vec<f64>> =
        (1..=seeds).map(|seed| all(&ours(folder, &format!("calibration/{case}.txt"), profile, scheme, seed))).collect();
    let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    for (what, of) in [("mean", &mean as &dyn Fn(&[f64]) -> f64), ("largest", &largest)] {
        let values: Vec<f64> = runs.iter().map(|run| of(run)).collect();
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let (most, there) = (largest(&values), of(&recorded));
        let inside = (0.999 * least..=1.001 * most).contains(&there);
        assert!(inside, "{case} {profile} {scheme}, {what}: {there} is not between {least} and {most}");
    }
}

#[test]
fn kept_pair_is_within_seed_range() {
    for profile in ["irn", "lossless"] {
        assert_within_seed_range(&kept(), "pair", profile, "ecmp", "fecmp", 64);
    }
}

#[test]
fn kept_incast_is_within_seed_range() {
    for profile in ["irn", "lossless"] {
        assert_within_seed_range(&kept(), "incast16", profile, "ecmp", "fecmp", 32);
    }
}

#[test]
#[ignore = "needs the recorded runs: ANABRANCH_RECORDED"]
fn mean_and_max_times_are_within_seed_range() {
    let Some(folder) = folder() else { return };
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
        assert_within_seed_range(&folder, case, profile, scheme, suffix, seeds);
    }
}

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("a text in gzip");
    text
}

/// Slowdowns over the recorded run's ideal times, sorted: of flows below one BDP (104,000 B) and of the others. Flows that start in the
/// first 5 ms do not count.
fn slowdowns(flows: impl Iterator<Item = (u64, f64, f64)>) -> [Vec<f64>; 3] {
    let mut classes = [vec![], vec![], vec![]];
    for (size, fct, ideal) in flows {
        let slowdown = (fct / ideal).max(1.0);
        classes[0].push(slowdown);
        classes[if size < 104_000 { 1 } else { 2 }].push(slowdown);
    }
    classes.iter_mut().for_each(|class| class.sort_by(f64::total_cmp));
    classes
}

/// 97,984 flows of `AliStorage2019` at 50 % load. The recorded run is one draw; the shares are what the mean of three seeds may differ.
#[test]
#[ignore = "slow, and needs the recorded runs: ANABRANCH_RECORDED"]
fn storage_traffic_has_recorded_slowdowns() {
    let Some(folder) = folder() else { return };
    let copy = anabranch_testkit::folder();
    std::fs::write(copy.join("flows.txt"), unpacked(&folder.join("ali_50_flows.txt.gz"))).expect("a writable folder");
    let fabric = "leaf_spine_128_100G_OS2.txt";
    std::fs::copy(folder.join(fabric), copy.join(fabric)).expect("the fabric");
    let text = unpacked(&folder.join("ali_50_irn_fecmp_fct.txt.gz"));
    let recorded: Vec<Vec<u64>> = text
        .lines()
        .map(|line| line.split_whitespace().map(|field| field.parse().expect("a number")).collect())
        .collect();
    let is_counted = |start: u64| start > 2_005_000_000;
    let counted = recorded.iter().filter(|fields| is_counted(fields[5]));
    let theirs = slowdowns(counted.map(|fields| (fields[4], fields[6] as f64, fields[7] as f64)));
    let ideal: BTreeMap<(u64, u64, u64), f64> =
        recorded.iter().map(|fields| ((fields[0], fields[1], fields[4]), fields[7] as f64)).collect();
    // Ours count from the first flow.
    let first = recorded.iter().map(|fields| fields[5]).min().expect("a flow");
    let ours = |seed| {
        let result = run(&copy, "flows.txt", "irn", "ecmp", seed);
        slowdowns(result.flows.iter().filter_map(|flow| {
            let start = first + flow.start.expect("a started flow").ps() / 1000;
            let fct = flow.fct_ack.expect("a finished flow").ps() as f64 / 1000.0;
            let flow_ideal = ideal[&(flow.src.into(), flow.dst.into(), flow.size_bytes)];
            is_counted(start).then_some((flow.size_bytes, fct, flow_ideal))
        }))
    };
    let runs = [1, 2, 3].map(ours);
    let quantile = |values: &[f64], share: f64| values[((values.len() - 1) as f64 * share) as usize];
    let statistics = |of: &[f64]| [mean(of), quantile(of, 0.5), quantile(of, 0.99)];
    for (class, name, shares) in [
        (0, "all", [0.01, 0.005, 0.03]),
        (1, "below one BDP", [0.01, 0.006, 0.05]),
        (2, "from one BDP on", [0.035, 0.05, 0.05]),
    ] {
        let there = statistics(&theirs[class]);
        let here = [0, 1, 2].map(|which| mean(&runs.each_ref().map(|run| statistics(&run[class])[which])));
        println!("{name}: mean, median, p99 {there:.3?} recorded, {here:.3?} ours");
        let close = there.iter().zip(here).zip(shares).all(|((there, here), share)| (here / there - 1.0).abs() < share);
        let alike = runs.iter().all(|run| run[class].len() == theirs[class].len());
        assert!(alike && close, "{name}: {there:.3?} recorded, {here:.3?} ours");
    }
}
