//! The command `report`: contents of the page, and damaged results.

#[allow(dead_code)]
mod common;

use common::{Folder, code, stderr, stdout};
use std::fs;

const SCENARIO: &str = r#"
name = "two workloads"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
[[workload]]
kind = "permutation"
name = "bulk"
size = "256KiB"
[[workload]]
kind = "incast"
name = "burst"
senders = 3
receivers = 1
size = "16KiB"
[[fault]]
kind = "link-down"
links = ["leaf0-spine1"]
detect_after = "0us"
"#;

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.file("two.toml", SCENARIO);
    folder
}

fn succeeds(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(arguments);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn page_shows_scenario_and_results() {
    let folder = folder("page");
    let table = succeeds(&folder, &["compare", "two.toml", "--schemes", "ecmp,ops", "--seeds", "2", "--out", "out"]);
    assert!(table.contains("workload bulk") && table.contains("workload burst"), "{table}");
    assert!(table.contains("too few seeds to compare schemes"), "{table}");
    let page = || fs::read_to_string(folder.0.join("out/report.html")).unwrap().replace("&#x2f;", "/");
    for message in [
        "anabranch compare two.toml --schemes ecmp,ops --seeds 2 --out out",
        "8 hosts, 4 switches, 24 directed links",
        "seed 1: leaf0–spine1 (down at 0us)",
        "bulk: permutation",
        "burst: incast",
        "Too few seeds to rank the schemes",
    ] {
        assert!(page().contains(message), "{message}");
    }
    assert!(!page().contains("pooled"));
    let rows = fs::read_to_string(folder.0.join("out/runs/ecmp/seed1/links.csv")).unwrap();
    assert_eq!(rows.lines().filter(|line| line.contains("down at 0us")).count(), 2);
    succeeds(&folder, &["report", "out", "--all-flows"]);
    assert!(page().contains("all 2 workloads pooled"));
    succeeds(&folder, &["report", "out"]);
    assert!(!page().contains("pooled"));
}

#[test]
fn damaged_results_are_refused_and_kept() {
    let folder = folder("damaged");
    succeeds(&folder, &["run", "two.toml", "--out", "out"]);
    let flows = folder.0.join("out/flows.parquet");
    let bytes = fs::read(&flows).unwrap();
    fs::write(&flows, &bytes[..bytes.len() / 2]).unwrap();
    let before = fs::read(folder.0.join("out/report.html")).unwrap();
    let output = folder.run(&["report", "out"]);
    let message = stderr(&output);
    assert_eq!(code(&output), 2, "{message}");
    assert!(message.contains("flows.parquet"), "{message}");
    assert_eq!(fs::read(folder.0.join("out/report.html")).unwrap(), before);
}
