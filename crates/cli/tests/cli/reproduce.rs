//! The command `reproduce` without runs.

use crate::{
    common,
    common::{Folder, assert_has, json, stderr},
};
use std::path::Path;

#[test]
fn all_studies_figures_and_claims_are_listed() {
    let folder = Folder::new("reproduce-list");
    let listed = folder.json("reproduce hf2t --list");
    assert_has(&listed, &["studies", "figures", "claims"]);
    for claim in listed["claims"].as_array().unwrap() {
        assert_has(claim, &["paper", "claim", "says", "studies", "metric", "ours"]);
        assert!(claim["figure"].is_string() || claim["section"].is_string(), "{claim}");
    }
    let one = folder.json("reproduce hopper fig8 --list");
    let ids = |list: &str, key: &str| -> Vec<String> {
        one[list].as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(ids("figures", "figure"), ["fig8"]);
    assert_eq!(ids("studies", "study"), ["alicloud"]);
    assert!(!ids("claims", "claim").is_empty() && ids("claims", "figure").iter().all(|figure| figure == "fig8"));
    assert!(folder.entries(".").is_empty(), "nothing is written");
}

#[test]
fn missing_runs_are_reported_per_claim() {
    let folder = Folder::new("reproduce-none");
    let result = folder.json("reproduce hf2t --no-run --out out");
    assert_has(&result, &["scale", "claims", "runs", "missing", "failed", "interrupted", "directory"]);
    assert_eq!(result["missing"], result["runs"]);
    for claim in result["claims"].as_array().unwrap() {
        assert_eq!(claim["verdict"], "not run", "{claim}");
        assert_has(claim, &["published", "ours", "sizes", "seeds"]);
    }
    assert!(folder.exists("out/reproduce") && !folder.exists("out/runs"));
}

/// A user's own claims are run, judged and drawn; an error is reported with file and line.
#[test]
fn own_claims_are_run_judged_and_drawn() {
    let folder = Folder::new("reproduce-own");
    std::fs::create_dir_all(folder.0.join("mine/prime")).unwrap();
    let text = r#"
[[study]]
id = "tiny"
scenario = "tiny"
schemes = ["ecmp", "prime"]
seeds = 3

[[figure]]
id = "fig1"
title = "Fig. 1"
study = "tiny"
metrics = ["fct_max", "links.bytes.sum[tier=host,direction=up]"]
x = "study"

[[claim]]
id = "ahead"
figure = "fig1"
says = "PRIME's slowest flow is ahead."
study = "tiny"
metric = "fct_max"
kind = "change"
a = "prime"
b = "ecmp"
published = "lower"
ours = ["load_balancer.prime.p_ecn"]
"#;
    folder.file("mine/prime/one.toml", text);
    let arguments =
        ["reproduce", "prime", "--claims", "mine", "--out", "out", "--format", "json", "--progress", "never"];
    let result = json(&folder.run(&arguments));
    assert_eq!((result["runs"].as_u64(), result["missing"].as_u64()), (Some(6), Some(0)));
    let claim = &result["claims"][0];
    // Any of them may be named.
    let verdict = claim["verdict"].as_str().unwrap();
    assert!(["reproduced", "not reproduced", "too few seeds to tell"].contains(&verdict), "{claim}");
    assert_eq!(claim["seeds"], 3);
    for file in ["claims.csv", "comparisons.csv", "rows/tiny.csv", "figures/fig1.svg", "figures/fig1.pdf"] {
        assert!(folder.0.join("out/reproduce/quick/prime").join(file).exists(), "no {file}");
    }
    let rows = folder.read("out/reproduce/quick/prime/rows/tiny.csv");
    assert_eq!(rows.lines().count(), 1 + 6, "a row per run: {rows}");
    let again = json(&folder.run(&arguments));
    assert_eq!(again["reused_runs"], 6);
    assert_eq!(again["claims"], result["claims"]);
    let planned = json(&folder.run(&[&arguments[..], &["--again", "--dry-run"]].concat()));
    assert_eq!((planned["repeated"].as_u64(), planned["missing"].as_u64()), (Some(6), Some(0)));
    let planned = folder.line("reproduce prime --claims mine --out out --again --dry-run --format table");
    assert!(!common::stdout(&planned).contains("-0.0"), "{}", common::stdout(&planned));
    assert!(stderr(&planned).contains("--again repeats 6 finished runs"), "{}", stderr(&planned));
    folder.ok("verify out");
    folder.file("mine/prime/two.toml", "[[claim]]\nid = \"x\"\nsectoin = \"1\"\n");
    folder.refused(&arguments, &["two.toml"]);
}

/// Runs that the local store lacks are not missing where the repository has their rows.
#[test]
fn an_empty_store_leaves_rows_and_their_cost() {
    let folder = Folder::new("reproduce-other-store");
    let claims = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../claims");
    for sub in
        ["docs", "claims/hf2t", "claims/hopper", "claims/prime", "claims/spritz", "claims/mrc", "claims/rows/hopper"]
    {
        std::fs::create_dir_all(folder.0.join("repository").join(sub)).unwrap();
    }
    for paper in ["hf2t", "hopper", "prime", "spritz", "mrc"] {
        let files = std::fs::read_dir(claims.join(paper)).unwrap().flatten();
        for file in files.filter(|file| file.path().is_file()) {
            let name = file.file_name().to_string_lossy().into_owned();
            folder.file(&format!("repository/claims/{paper}/{name}"), &std::fs::read_to_string(file.path()).unwrap());
        }
    }
    folder.file("repository/README.md", "");
    let rows = std::fs::read_to_string(claims.join("rows/hopper/testbed.quick.csv")).unwrap();
    folder.file("repository/claims/rows/hopper/testbed.quick.csv", &rows);
    folder.ok("reproduce hopper --no-run --out out --write-docs=repository");
    assert_eq!(folder.read("repository/claims/rows/hopper/testbed.quick.csv"), rows);
    let missing = folder.read("repository/claims/rows/hopper/not-run.csv");
    assert!(missing.contains("\nhadoop,quick,") && !missing.contains("\ntestbed,quick,"), "{missing}");
}

/// A figure of a study that has no quick scale.
#[test]
fn nothing_to_run_takes_no_time() {
    let said = ["0 runs, 0 missing", "about 0.00 CPU hours, 0 minutes"];
    Folder::new("reproduce-nothing").prints("reproduce hopper fig4-20ms --dry-run", 0, &said);
}
