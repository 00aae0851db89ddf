//! `anabranch bound` and `compare --bound`: flows without a path, references below the bound, notes, narrow terminals.

use crate::common::{Folder, code, stderr, stdout};

const SCENARIO: &str = r#"
name = "four leaves"
[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 2
link_rate = "400Gbps"
link_delay = "1us"
[load_balancer]
scheme = "ecmp"
[[workload]]
kind = "permutation"
size = "64KiB"
scope = "other-leaf"
"#;

const CUT: &str = r#"
[[fault]]
kind = "link-down"
detect_after = "0us"
links = ["leaf1-spine0", "leaf1-spine1"]
"#;

fn folder(name: &str, text: &str) -> Folder {
    let folder = Folder::new(name);
    folder.file("s.toml", text);
    folder
}

/// Returns standard output as one line, and standard error.
fn printed(folder: &Folder, arguments: &[&str]) -> (String, String) {
    let output = folder.ok(arguments);
    (stdout(&output).split_whitespace().collect::<Vec<_>>().join(" "), stderr(&output))
}

#[test]
fn flows_without_a_path_are_named_instead_of_a_bound() {
    let folder = folder("cut", &format!("{SCENARIO}{CUT}"));
    let (text, _) = printed(&folder, &["bound", "s.toml", "--seeds", "2"]);
    // Two flows leave leaf1, two go to it. The cut cables are those of leaf1 alone.
    assert!(text.contains("bound: 4 of 8 flows have no path, first host0 (leaf0) to host"), "{text}");
    assert!(text.contains("where spine0->leaf1, spine1->leaf1 are down throughout"), "{text}");
    assert!(text.contains("no bound exists, since they never finish"), "{text}");
    assert!(text.contains("fct_max us n/a flows without a path"), "{text}");
    for wrong in ["First among the links", "a flow alone", "leaf0->spine0"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    let found = folder.json("bound s.toml --seeds 2");
    let limits = found["limits"].as_array().unwrap();
    assert!(!limits.is_empty());
    for limit in limits {
        assert!(limit["bound"].is_null() && limit["by"] == "flows without a path", "{limit}");
    }
    let cut = found["unreachable"].as_array().unwrap();
    let seeds: Vec<u64> = cut.iter().map(|cut| cut["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [1, 2]);
    assert_eq!((cut[0]["flows"].as_u64(), cut[0]["of"].as_u64()), (Some(4), Some(8)));
    assert_eq!(cut[0]["pairs"][0]["dst_leaf"], "leaf1");
    assert!(found["loose"][0].as_str().unwrap().contains("no bound exists"), "{found}");
    // A comparison reports it in one line for any number of seeds.
    let compare = ["compare", "s.toml", "--bound", "--schemes", "ecmp,packet-random", "--seeds", "3", "--out", "out"];
    let (text, _) = printed(&folder, &compare);
    assert_eq!(text.matches("flows have no path").count(), 1, "{text}");
    assert_eq!(text.matches("no bound exists").count(), 1, "{text}");
}

#[test]
fn comparison_keeps_columns_of_bounds_and_notes_are_no_warnings() {
    let folder = folder("kept", SCENARIO);
    let compare = ["compare", "s.toml", "--bound", "--schemes", "ecmp,packet-random", "--seeds", "2", "--out", "out"];
    for columns in ["80", "120"] {
        let output = folder.command(&compare).env("COLUMNS", columns).output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let (table, _) =
            stdout(&output).split_once("\n\nwhole network").map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
        let words: Vec<&str> = table.split_whitespace().collect();
        assert!(words.contains(&"bound") && words.contains(&"reference"), "{table}");
        assert!(!stdout(&output).contains("over bound or reference"), "{table}");
        let notes = stderr(&output);
        if columns == "80" {
            assert!(notes.lines().any(|line| line.starts_with("bounds and reference of seed 1: ")), "{notes}");
        }
        assert!(!notes.contains("warning"), "{notes}");
    }
    let limits = folder.json_file("out/limits.json");
    for row in limits["rows"].as_array().unwrap() {
        let is_slowdown = row["metric"].as_str().unwrap().starts_with("slowdown");
        assert!(!is_slowdown || row["bound"].as_f64().is_none_or(|bound| bound >= 1.0), "{row}");
    }
}

#[test]
fn reference_below_the_bound_is_ruled_out() {
    // Eight hosts per leaf behind two uplinks: the bound is four times the time of a flow, and the reference has no such limit.
    let text = SCENARIO.replace("hosts_per_leaf = 2", "hosts_per_leaf = 8").replace("64KiB", "1MiB");
    let folder = folder("below", &text);
    let (text, _) = printed(&folder, &["bound", "s.toml", "--reference"]);
    let line = "no load balancer on this fabric reaches it, and what is left to gain ends at the bound";
    assert!(text.contains("reference below the bound: fct_mean, fct_max") && text.contains(line), "{text}");
    // At full rate the reference is a little below, by its shorter wire times, and so are its slowdowns, which are not cut at 1.
    folder.file("full.toml", SCENARIO);
    let (text, _) = printed(&folder, &["bound", "full.toml", "--reference"]);
    let (_, named) = text.split_once("reference below the bound: ").unwrap();
    let (named, _) = named.split_once(';').unwrap();
    assert_eq!(named, "fct_mean, fct_max, slowdown_mean, slowdown_max, fct_ratio_max, completion", "{text}");
}
