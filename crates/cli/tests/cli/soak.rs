//! The command `anabranch soak`: cases, restrictions, output, exit codes.

use crate::common::{Folder, code, json, stderr, stdout};
use serde_json::Value;
use std::process::Stdio;

fn names(found: &Value, kind: &str) -> Vec<String> {
    found["drawn"][kind].as_object().map_or_else(Vec::new, |names| names.keys().cloned().collect())
}

#[test]
fn equal_seeds_draw_equal_cases() {
    let folder = Folder::new("soak-seed");
    let words = ["soak", "--seed", "7", "--cases", "4", "--format", "json"];
    let (first, again) = (folder.run(&words), folder.run(&words));
    assert_eq!(code(&first), 0, "{}", stderr(&first));
    let (first, again) = (json(&first), json(&again));
    assert_eq!(first["drawn"], again["drawn"]);
    assert_eq!((&first["cases"], &first["failed"], &first["seed"]), (&4.into(), &0.into(), &7.into()));
    assert_eq!(first["failures"], Value::Array(vec![]));
    assert!(folder.entries(".").is_empty(), "{:?}", folder.entries("."));
}

#[test]
fn schemes_and_topologies_restrict_cases() {
    let folder = Folder::new("soak-only");
    let found = |words: &[&str]| {
        let output = folder.ok(&[&["soak", "--seed", "3", "--cases", "2", "--format", "json"], words].concat());
        json(&output)
    };
    assert_eq!(names(&found(&["--scheme", "spritz-spray-w"]), "scheme"), ["spritz-spray-w"]);
    // A host or switch scheme includes all its pairs.
    let pairs = names(&found(&["--scheme", "letflow"]), "scheme");
    assert!(pairs.iter().all(|pair| pair.contains("letflow")), "{pairs:?}");
    assert_eq!(names(&found(&["--topology", "dragonfly", "--scheme", "ugal-l"]), "topology"), ["dragonfly"]);
    folder.file("graph.adj", "0 1 2\n1 2\n2\n");
    let of_file = found(&["--topology", "graph.adj"]);
    assert_eq!(names(&of_file, "topology"), ["file"]);
    // Of a whole scenario the topology is used, with a file beside it.
    std::fs::create_dir(folder.0.join("mine")).unwrap();
    folder.file("mine/graph.adj", "0 1 2\n1 2\n2\n");
    folder.file(
        "mine/my.toml",
        "[topology]\nkind = \"file\"\npath = \"graph.adj\"\nlink_rate = \"10Gbps\"\n[[topology.link]]\nclass = \"host\"\n\
         rate = \"7Gbps\"\n[load_balancer]\nscheme = \"ops\"\n",
    );
    assert_eq!(names(&found(&["--topology", "mine/my.toml"]), "topology"), ["file"]);
    assert_eq!(names(&found(&["--topology", "tiny"]), "topology").len(), 1);
}

#[test]
fn any_scenario_is_checked_in_every_mode() {
    let folder = Folder::new("soak-again");
    let output = folder.ok("soak --again tiny --format json");
    assert_eq!((&json(&output)["cases"], &json(&output)["failed"]), (&1.into(), &0.into()));
}

#[test]
fn interruption_keeps_found_failures() {
    let folder = Folder::new("soak-interrupt");
    let words = ["soak", "--minutes", "30", "--format", "json"];
    let child = folder.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    anabranch_testkit::send_signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(found["interrupted"].as_bool(), Some(true));
    assert!(found["seed"].is_u64());
}
