//! Results over time: `results`, `compare --against`, `view --record`.

use crate::common::{Folder, assert_output, code, json, stderr, stdout};
use serde_json::Value;
use std::fs;

fn compare(folder: &Folder, out: &str, more: &[&str]) -> std::process::Output {
    let words = ["compare", "tiny", "--schemes", "ecmp,ops", "--seeds", "3", "--progress", "never", "--out", out];
    folder.run(&[&words[..], more].concat())
}

#[test]
fn results_are_listed_with_an_index_page() {
    let folder = Folder::new("results");
    folder.ok("run tiny --out results/one --progress never");
    assert_eq!(code(&compare(&folder, "results/deep/two", &[])), 0);
    let listed = folder.json("results results");
    let all = listed["results"].as_array().unwrap();
    let paths: Vec<&str> = all.iter().map(|of| of["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["deep/two", "one"], "runs within a comparison are part of it");
    assert_eq!(all[0]["schemes"], serde_json::json!(["ecmp", "ops"]));
    assert_eq!((all[0]["seeds"].as_array().unwrap().len(), all[0]["status"].as_str()), (3, Some("finished")));
    assert_eq!(all[0]["version"], env!("CARGO_PKG_VERSION"));
    assert!(!all[0]["headline"].as_str().unwrap().is_empty() && all[1]["headline"].as_str().unwrap().contains("p99"));
    let page = folder.read("results/index.html");
    assert!(page.contains("href=\"deep/two/report.html\"") && page.contains("href=\"one/report.html\""));
    // An index page is written again; a foreign one stays.
    folder.ok("results results");
    folder.file("results/index.html", "mine");
    folder.refused("results results", &[]);
    assert_eq!(folder.read("results/index.html"), "mine");
    folder.ok("results results --index all.html");
    // Nothing is added to a result.
    let output = folder.line("results results/one");
    assert_eq!((code(&output), folder.exists("results/one/index.html")), (0, false));
    assert!(stdout(&output).contains("finished"));
    // A damaged one is named, and the others are listed.
    folder.file("results/one/manifest.json", "{");
    let output = folder.line("results results --index all.html --format json");
    assert!(stderr(&output).contains("results/one"), "{}", stderr(&output));
    assert_eq!(json(&output)["results"].as_array().unwrap().len(), 1);
    fs::create_dir(folder.0.join("empty")).unwrap();
    folder.refused("results empty", &["no results in empty"]);
}

/// Removes seal and digests from the manifests below `path`, as versions before them wrote, with another version.
fn age(folder: &Folder, path: &str) {
    for name in folder.entries(path) {
        let below = format!("{path}/{name}");
        if folder.0.join(&below).is_dir() {
            age(folder, &below);
        } else if name == "summary.json" {
            let mut summary = folder.json_file(&below);
            summary["queues"]["max_bytes"] = Value::Null;
            folder.file(&below, &summary.to_string());
        }
    }
    if folder.0.join(path).join("manifest.json").exists() {
        folder.reseal(path, &|manifest| {
            manifest["version"] = "0.0.9".into();
            manifest["runs"] = serde_json::json!({});
        });
    }
}

#[test]
fn changes_since_an_earlier_comparison() {
    let folder = Folder::new("against");
    assert_eq!(code(&compare(&folder, "old", &[])), 0);
    let same = compare(&folder, "new", &["--against", "old"]);
    assert_eq!(code(&same), 0, "{}", stderr(&same));
    assert!(stdout(&same).contains("Since old: equal, same fingerprint for every run."), "{}", stdout(&same));
    // Shorter packets: another time, and the setting is named. Flows stay the same.
    let slow = ["--set", "transport.mtu=1024B", "--against", "old"];
    assert_output(&compare(&folder, "slow", &slow), 0, &["settings changed: transport.mtu"]);
    let result = json(&compare(&folder, "slow", &[&slow[..], &["--format", "json"]].concat()));
    let rows = result["against"]["rows"].as_array().unwrap();
    for row in rows.iter().filter(|row| row["metric"] == "fct_mean" && row["workload"] == "all") {
        let of = |key: &str| row[key].as_f64().unwrap();
        assert!((of("now") - of("before") - of("difference")).abs() < 1e-9, "{row}");
        assert!(of("difference_ci95_low") <= of("difference") && of("difference") <= of("difference_ci95_high"));
        assert_ne!(row["change"], "same-fingerprint");
    }
    // What is not comparable is refused before any run.
    for (more, words) in [
        (
            &["--set", "topology.link_rate=10Gbps", "--against", "old"][..],
            &["its flows differ", "topology.link_rate"][..],
        ),
        (&["--against", "nowhere"], &["nowhere: directory does not exist"]),
        (&["--against", "."], &["it has no results"]),
        (&["--seed", "50", "--against", "old"], &["no seed is in both", "1 to 3"]),
    ] {
        assert_output(&compare(&folder, "refused", more), 2, words);
        assert!(!folder.exists("refused"));
    }
    assert_output(&compare(&folder, "old", &["--against", "old"]), 2, &["directory of this comparison"]);
    // Results of an older version are read; what they lack is named.
    age(&folder, "old");
    assert_output(&compare(&folder, "new", &["--against", "old"]), 0, &["of version 0.0.9, lack max_queue"]);
}

#[test]
fn a_view_is_recorded_again() {
    let folder = Folder::new("record");
    assert_eq!(code(&compare(&folder, "out", &[])), 0);
    let before = folder.bytes("out/runs/ops/seed2/flows.csv");
    folder.ok("view out");
    let view = || folder.read("out/view.html");
    let bare = view().len();
    let output = folder.line("view out --record --schemes ops,ecmp --seed 2");
    let text = stderr(&output);
    assert_eq!(code(&output), 0, "{text}");
    for scheme in ["ops", "ecmp"] {
        let summary = folder.json_file(&format!("out/runs/{scheme}/seed2/summary.json"));
        let fingerprint = summary["fingerprint"].as_str().unwrap();
        assert!(text.contains(&format!("{scheme}, seed 2: run again")) && text.contains(fingerprint), "{text}");
    }
    assert!(view().len() > bare, "series and traces take space");
    // The slowest flow of each workload is traced, and the first that did not finish.
    let scenario = "name = \"two\"\nseed = 1\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
        [load_balancer]\nscheme = \"ecmp\"\n[[workload]]\nname = \"a\"\nkind = \"permutation\"\nscope = \"other-leaf\"\n\
        size = \"64KiB\"\n[[workload]]\nname = \"b\"\nkind = \"incast\"\nsenders = 2\nsize = \"32KiB\"\n";
    fs::write(folder.0.join("two.toml"), scenario).unwrap();
    folder.ok("run two.toml --out two --progress never");
    let text = stderr(&folder.line("view two --schemes ecmp --record"));
    let rows = anabranch_testkit::rows(&folder.read("two/flows.csv"));
    let slowest = |workload: &str| {
        let own = rows.iter().filter(|row| row["workload"] == workload);
        let by = |row: &&std::collections::BTreeMap<String, String>| row["slowdown"].parse::<f64>().unwrap();
        own.max_by(|a, b| by(a).total_cmp(&by(b)).then(b["flow_id"].cmp(&a["flow_id"]))).unwrap()["flow_id"].clone()
    };
    let mut traced = ["a", "b"].map(slowest).map(|flow| flow.parse::<u32>().unwrap());
    traced.sort_unstable();
    let words = format!("a trace of flows {}, {}", traced[0], traced[1]);
    assert!(text.contains(&words), "{words}: {text}");
    // Results stay as they were, and their seals hold.
    assert_eq!(folder.bytes("out/runs/ops/seed2/flows.csv"), before);
    folder.ok("verify out");
    // A run with both is shown as it is.
    let set = ["--set", "measure.series_links=[\"*\"]", "--set", "measure.trace_flows=[\"0\"]"];
    folder.ok(&[&["run", "tiny", "--out", "full", "--progress", "never"], &set[..]].concat());
    folder.ends("view full --record", 0, &["it is not run again"]);
}
