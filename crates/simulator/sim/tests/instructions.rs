//! Instructions per packet-hop, counted by valgrind: a figure of speed that is independent of other load.
//!
//! The difference between runs with flows of one size and of twice that size excludes building, starting and ending.
//! Growth beyond [`TOLERANCE`] over the figures of `instructions.toml` fails. `ANABRANCH_ATTRIBUTION` counts with
//! delays attributed. A program of its own: CI builds it alone, in the profile `dist`.
//!
//! ```text
//! cargo test --profile dist -p anabranch-sim --test instructions -- --ignored --nocapture
//! ANABRANCH_ATTRIBUTION=1 cargo test --profile dist -p anabranch-sim --test instructions -- --ignored --nocapture
//! ANABRANCH_RECORD=1 cargo test --profile dist -p anabranch-sim --test instructions -- --ignored --nocapture
//! ```

#[allow(dead_code)]
mod common;
use anabranch_backend::Setup;
use anabranch_topology::Topology;
use common::*;
use std::{collections::BTreeMap, env, fs, path::Path, process::Command};

/// Maximum relative difference from the figure on record.
const TOLERANCE: f64 = 0.05;

struct Case {
    name: &'static str,
    bytes: u64,
    setup: fn(u64) -> Setup,
}

const CASES: &[Case] = &[
    Case { name: "prime-32", bytes: 1 << 20, setup: |bytes| uet_permutation(fat_tree(2, 8), bytes, "prime") },
    Case {
        name: "prime-32-external",
        bytes: 1 << 20,
        setup: |bytes| as_external(uet_permutation(fat_tree(2, 8), bytes, "prime")),
    },
    Case { name: "braid-32", bytes: 1 << 20, setup: |bytes| uet_permutation(fat_tree(2, 8), bytes, "braid") },
    Case { name: "prime-128", bytes: 1 << 18, setup: |bytes| uet_permutation(fat_tree(2, 16), bytes, "prime") },
    Case { name: "reps-3-tiers-54", bytes: 1 << 19, setup: |bytes| uet_permutation(fat_tree(3, 6), bytes, "reps") },
    Case { name: "mrc-3-tiers-54", bytes: 1 << 19, setup: |bytes| uet_permutation(fat_tree(3, 6), bytes, "mrc") },
    Case { name: "spritz-spray-72", bytes: 1 << 19, setup: |bytes| dragonfly(bytes, "spritz-spray-w") },
    Case { name: "minimal-72", bytes: 1 << 19, setup: |bytes| dragonfly(bytes, "minimal") },
    Case { name: "roce-pfc-32", bytes: 1 << 18, setup: |bytes| roce_permutation(bytes, Profile::Lossless) },
    Case { name: "roce-irn-32", bytes: 1 << 18, setup: |bytes| roce_permutation(bytes, Profile::Irn) },
];

fn uet_permutation(topology: Topology, bytes: u64, scheme: &str) -> Setup {
    let flows = permutation(&topology, bytes, 1);
    setup(topology, flows, scheme)
}

fn dragonfly(bytes: u64, scheme: &str) -> Setup {
    let topology = topology("dragonfly", "p=2 a=4 h=2");
    let flows = permutation(&topology, bytes, 1);
    spritz(topology, flows, scheme)
}

fn roce_permutation(bytes: u64, profile: Profile) -> Setup {
    let keys = "leaves=4 spines=8 hosts_per_leaf=8";
    let leaf_spine = topology("leaf-spine", keys);
    let flows = permutation(&leaf_spine, bytes, 1);
    let mut setup = roce_setup(leaf_spine, flows, "ecmp", profile);
    // Falling rates would stretch the run without effect on the figure.
    set_keys(roce(&mut setup), "congestion_control=none");
    setup
}

/// Runs the case that the environment selects as `NAME FACTOR`.
#[test]
#[ignore = "runs under valgrind"]
fn simulate() {
    let Ok(asked) = env::var("ANABRANCH_COUNT") else { return };
    let (name, factor) = asked.split_once(' ').expect("a name and a factor");
    let case = CASES.iter().find(|case| case.name == name).expect("a case");
    let mut setup = (case.setup)(case.bytes * factor.parse::<u64>().expect("a factor"));
    setup.measure.attribution = env::var_os("ANABRANCH_ATTRIBUTION").is_some();
    let result = run(&setup);
    println!("packet_hops {}", result.packet_hops.unwrap());
}

/// Instructions and packet-hops of a run in its own process.
fn count(case: &Case, factor: u64) -> (u64, u64) {
    let own = env::current_exe().expect("this very file");
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(own)
        .args(["simulate", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env("ANABRANCH_COUNT", format!("{} {factor}", case.name))
        .output()
        .expect("valgrind, which `apt-get install valgrind` brings");
    let (out, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {log}\n{out}", case.name);
    let after = |text: &str, mark: &str| -> u64 {
        let (_, rest) = text.split_once(mark).unwrap_or_else(|| panic!("no `{mark}` in {text}"));
        let digits = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == ',');
        digits.filter(char::is_ascii_digit).collect::<String>().parse().expect("a number")
    };
    (after(&log, "refs:"), after(&out, "packet_hops"))
}

fn read(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(name, figure)| (name.trim().to_string(), figure.trim().parse().expect("a number"))).collect()
}

#[test]
#[ignore = "needs valgrind and the profile dist"]
fn instructions_per_packet_hop() {
    if cfg!(debug_assertions) {
        return anabranch_testkit::skip("figures are those of optimised code", "test with --profile dist");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.toml");
    let text = fs::read_to_string(&path).expect("the figures on record");
    let mut figures = read(&text);
    let recording = env::var_os("ANABRANCH_RECORD").is_some();
    let mut grown = Vec::new();
    for case in CASES {
        let ((less, few), (more, many)) = (count(case, 1), count(case, 2));
        let figure = (more - less) as f64 / (many - few) as f64;
        let recorded = figures.insert(case.name.into(), figure);
        let change = recorded.map_or(f64::INFINITY, |recorded| figure / recorded - 1.0);
        println!("{}: {figure:.1} instructions per packet-hop, {:+.1} %", case.name, 100.0 * change);
        if change > TOLERANCE {
            grown.push(case.name);
        } else if change < -TOLERANCE {
            println!("  fewer than on record: record the new figure so that it stays");
        }
    }
    // The goal of MRC beside REPS, on the same network.
    assert!(figures["mrc-3-tiers-54"] <= 1.2 * figures["reps-3-tiers-54"]);
    if recording {
        let comments = text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n"));
        let known = figures.iter().filter(|(name, _)| CASES.iter().any(|case| case.name == name.as_str()));
        let lines = known.map(|(name, figure)| format!("{name} = {figure:.1}\n"));
        fs::write(&path, comments.chain(lines).collect::<String>()).expect("a file to write");
        return;
    }
    assert!(
        grown.is_empty(),
        "more instructions per packet-hop than on record: {grown:?}; where that is meant, record the new figures with \
         ANABRANCH_RECORD=1 and commit them with the reason"
    );
}

#[test]
fn every_case_is_on_record() {
    let text = include_str!("instructions.toml");
    let names: Vec<String> = read(text).into_keys().collect();
    let mut cases: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    cases.sort_unstable();
    assert_eq!(names, cases);
}
