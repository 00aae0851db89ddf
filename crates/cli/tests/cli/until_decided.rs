//! `compare --until-decided`.

use crate::{
    common,
    common::{Folder, code, json},
};

const SCENARIO: &str = r#"
name = "collisions"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
[[workload]]
kind = "permutation"
scope = "other-leaf"
size = "256KiB"
"#;

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.file("collisions.toml", SCENARIO);
    folder
}

const COMPARE: &[&str] = &["compare", "collisions.toml", "--schemes", "ecmp,ops,rr", "--out", "out"];

fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    COMPARE.iter().chain(options).copied().collect()
}

#[test]
fn seeds_are_added_until_differences_are_decided() {
    let folder = folder("decided");
    let options = with(&["--until-decided", "1%", "--max-seeds", "20", "--format", "json"]);
    let first = folder.run(&options);
    let result = json(&first);
    let plan = &result["until_decided"];
    // Half as many again each time: 5, 5 + 3, 8 + 4, 12 + 6, then the maximum.
    assert_eq!(plan["looks"], serde_json::json!([5, 8, 12, 18, 20]));
    let seeds = result["seeds"].as_array().unwrap().len();
    assert!(plan["looks"].as_array().unwrap().contains(&seeds.into()), "{seeds}");
    assert!(plan["undecided"].as_array().unwrap().is_empty() || seeds == 20);
    assert_eq!(folder.entries("out/runs/ecmp").len(), seeds, "no seed is run beyond the last test");
    assert_eq!(&folder.json_file("out/manifest.json")["until_decided"]["looks"], &plan["looks"]);
    // The page is drawn from the same plan: reports and repetitions give the same p-values.
    let rows = folder.bytes("out/comparison.csv");
    folder.ok("report out");
    assert_eq!(folder.bytes("out/comparison.csv"), rows);
    let page = folder.read("out/report.html");
    assert!(page.contains("Seeds were added until every difference was significant or surely within 1 %, up to 20"));
    let again = folder.run(&options);
    assert_eq!(json(&again)["reused_runs"], 3 * seeds);
    assert_eq!(folder.bytes("out/comparison.csv"), rows);
    // The p-value is the least of all tests so far, each corrected: no smaller than that of the same numbers of seeds, fixed.
    let looks = plan["looks"].as_array().unwrap().iter().map(|look| look.as_u64().unwrap() as usize);
    let fixed: Vec<Vec<common::Row>> = looks
        .take_while(|look| *look <= seeds)
        .map(|look| {
            let fixed = Folder::new(&format!("fixed-{look}"));
            fixed.file("collisions.toml", SCENARIO);
            assert_eq!(code(&fixed.run(&with(&["--seeds", &look.to_string()]))), 0);
            fixed.rows("out/comparison.csv")
        })
        .collect();
    for (row, own) in folder.rows("out/comparison.csv").iter().enumerate() {
        let p = |row: &common::Row| row["p_holm"].parse::<f64>().ok();
        let least = fixed.iter().filter_map(|rows| p(&rows[row])).min_by(f64::total_cmp);
        assert!(p(own).zip(least).is_none_or(|(own, least)| own >= least), "{own:?} {least:?}");
        assert_eq!(own["mean"], fixed.last().unwrap()[row]["mean"]);
    }
    // Another plan in the same directory.
    folder.refused(
        &with(&["--until-decided", "1%", "--max-seeds", "30"]),
        &["--until-decided 1% --seeds 5 --max-seeds 20"],
    );
}
