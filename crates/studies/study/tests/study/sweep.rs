//! Sweeps: points, runs, identity of runs, and the same tables however the sweep is executed.

use anabranch_scenario::{SIMULATOR, load};
use anabranch_study::{Again, ComparePlan, Observer, Options, Place, Progress, Request, Sweep, run_key, sweep::over};
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

fn request(schemes: &[&str], seeds: u64) -> Request {
    Request { schemes: schemes.iter().map(ToString::to_string).collect(), seeds: Some(seeds), ..Request::default() }
}

fn sweep(keys: &[&str], zip: bool, request: &Request) -> Sweep {
    let axes = keys.iter().map(|key| over::axis(key).unwrap()).collect();
    Sweep::new(load("tiny", &[], None).unwrap(), axes, zip, request).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_value_with_every_other_and_a_first_seed_everywhere_first() {
    let sweep = sweep(&["topology.radix=4,8", "workload.0.size=32KiB,64KiB"], false, &request(&["ecmp", "ops"], 2));
    assert_eq!((sweep.plan.points(), sweep.plan.runs.len(), sweep.order().len()), (4, 16, 16));
    let seeds: Vec<u64> = sweep.order().iter().map(|number| sweep.plan.runs[*number].seed).collect();
    assert_eq!(seeds, [vec![1; 8], vec![2; 8]].concat());
    assert_eq!(sweep.name(0), "radix = 4, size = 32KiB, ecmp, seed 1");
    let last = sweep.scenario(15).unwrap();
    assert_eq!((last.seed, last.scheme()), (2, "ops"));
    assert!(last.to_toml().contains("radix = 8") && last.to_toml().contains("size = \"64KiB\""));
    assert_eq!(run_key(&last, &SIMULATOR), sweep.plan.runs[15].run);
    let shares: Vec<usize> = (1..=3).flat_map(|k| sweep.share(Some((k, 3)))).collect();
    assert_eq!(shares.iter().collect::<BTreeSet<_>>().len(), 16);
    assert_eq!(shares.len(), 16);
}

#[test]
fn equal_points_share_a_run() {
    // A parameter of PRIME does not touch ECMP: three runs of PRIME and one of ECMP per seed.
    let sweep = sweep(&["load_balancer.prime.p_ecn=4,8,16"], false, &request(&["ecmp", "prime"], 2));
    assert_eq!((sweep.plan.runs.len(), sweep.order().len()), (12, 8));
    assert!(sweep.warnings().is_empty());
    let nothing = self::sweep(&["load_balancer.prime.p_ecn=4,8"], false, &request(&["ecmp"], 1));
    assert_eq!(nothing.warnings().len(), 1);
    // In a grid, neighbours along each key are compared.
    let keys = ["workload.0.size=32KiB,64KiB", "load_balancer.prime.p_ecn=4,8"];
    let mixed = self::sweep(&keys, false, &request(&["ecmp"], 1));
    let warnings = mixed.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("p_ecn"), "{warnings:?}");
}

#[test]
fn a_run_is_known_by_all_it_depends_on() {
    let folder = anabranch_testkit::folder();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).to_string_lossy().into_owned()
    };
    let flows = "src,dst,size_bytes,start_ps\n0,4,1000,0\n";
    write("a.csv", flows);
    let text = "[topology]\nkind = \"fat-tree\"\ntiers = 2\nradix = 4\n[[workload]]\nkind = \"file\"\nformat = \"csv\"\npath = \"a.csv\"\n";
    let path = write("x.toml", text);
    let key = |changes: &[&str], seed| {
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        run_key(&load(&path, &changes, seed).unwrap(), &SIMULATOR)
    };
    let plain = key(&[], None);
    assert_eq!(plain.len(), 16);
    assert_eq!(plain, key(&["seed=1"], None), "a default that is said");
    for other in [key(&[], Some(2)), key(&["load_balancer.scheme=ops"], None), key(&["topology.link_delay=2us"], None)]
    {
        assert_ne!(plain, other);
    }
    // The content of a file counts, not its name or directory.
    write("b.csv", flows);
    assert_eq!(plain, key(&["workload.0.path=b.csv"], None));
    write("b.csv", "src,dst,size_bytes,start_ps\n0,4,1001,0\n");
    assert_ne!(plain, key(&["workload.0.path=b.csv"], None));
}

#[test]
fn variants_are_the_scenario_with_other_settings() {
    let scenario = load("tiny", &[], None).unwrap();
    let request = Request {
        variants: vec!["slow=topology.link_rate=100Gbps; load_balancer.prime.p_ecn=3".into()],
        ..request(&["ecmp"], 1)
    };
    let plan = ComparePlan::new(&scenario, &request).unwrap();
    assert_eq!(plan.schemes, ["ecmp", "slow"]);
    let slow = &plan.jobs[1].scenario;
    assert_eq!((slow.scheme(), slow.seed), ("prime", 1));
    assert!(slow.to_toml().contains("link_rate = \"100Gbps\"") && slow.to_toml().contains("p_ecn = 3"));
    assert!(slow.origin().contains("--set topology.link_rate=100Gbps"), "{}", slow.origin());
    let request = Request { baseline: Some("slow".into()), ..request };
    assert_eq!(ComparePlan::new(&scenario, &request).unwrap().baseline, "slow");
}

#[test]
fn sweeps_have_at_most_a_million_runs() {
    let axes = || vec![over::axis("run.warmup=0us..200000us:1us").unwrap()];
    let scenario = load("tiny", &[], None).unwrap();
    let error = Sweep::new(scenario, axes(), false, &request(&["ecmp"], 10)).err().unwrap().to_string();
    assert!(error.contains("2000010 runs") && error.contains("1000000"), "{error}");
}

struct Patience(AtomicUsize);

impl Observer for Patience {
    fn started(&self, _: usize) {}
    fn note(&self, _: &str) {}
    fn progress(&self, _: usize, _: &Progress) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
    fn finished(&self, _: usize) {
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    }
    fn interrupted(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

#[test]
fn the_same_tables_in_one_go_interrupted_five_times_and_on_two_threads() {
    let root = anabranch_testkit::folder();
    let sweep = sweep(&["workload.0.size=16KiB,32KiB"], false, &request(&["ecmp", "prime"], 3));
    let execute = |name: &str, threads: usize, runs: usize| {
        let options = Options { threads, again: Again::No, replace: false, task: None };
        let patience = Patience(AtomicUsize::new(runs));
        sweep.execute(&Place::one(&root.join(name)), options, &patience).unwrap_or_else(|error| panic!("{error:?}"))
    };
    let all = usize::MAX;
    assert_eq!(execute("one", 1, all).missing, 0);
    assert_eq!(execute("two", 2, all).missing, 0);
    for part in 1..=5 {
        let swept = execute("parts", 1, 2);
        assert!(swept.interrupted && swept.table.is_none(), "part {part}");
        assert_eq!(swept.missing, 12 - 2 * part);
    }
    let last = execute("parts", 1, all);
    assert_eq!((last.reused, last.missing), (10, 0));
    for file in ["sweep.csv", "flows.parquet", "links.parquet", "figures/sweep_curves.svg"] {
        let bytes = |name: &str| std::fs::read(root.join(name).join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(bytes("one") == bytes("two") && bytes("one") == bytes("parts"), "{file}");
    }
}
