//! `reproduce`: what scripts see of it without running anything.

mod common;

use common::{Folder, assert_has, code, json, stderr};

#[test]
fn everything_that_is_kept_is_listed_and_checked() {
    let folder = Folder::new("reproduce-list");
    let listed = json(&folder.run(&["reproduce", "all", "--list", "--format", "json"]));
    assert_has(&listed, &["studies", "figures", "claims"]);
    for claim in listed["claims"].as_array().unwrap() {
        assert_has(claim, &["paper", "claim", "says", "studies", "metric", "ours"]);
        assert!(claim["figure"].is_string() || claim["section"].is_string(), "{claim}");
    }
    assert!(folder.entries(".").is_empty(), "nothing is written");
}

#[test]
fn without_runs_every_claim_is_not_run_and_what_is_missing_is_told() {
    let folder = Folder::new("reproduce-none");
    let answer = json(&folder.run(&["reproduce", "hopper", "--no-run", "--out", "out", "--format", "json"]));
    assert_has(&answer, &["scale", "claims", "runs", "missing", "failed", "interrupted", "directory"]);
    assert_eq!(answer["missing"], answer["runs"]);
    for claim in answer["claims"].as_array().unwrap() {
        assert_eq!(claim["verdict"], "not run", "{claim}");
        assert_has(claim, &["published", "ours", "sizes", "seeds"]);
    }
    assert!(
        folder.entries("out").contains(&"reproduce".to_string())
            && !folder.entries("out").contains(&"runs".to_string())
    );
}

#[test]
fn what_is_not_there_names_the_nearest() {
    let folder = Folder::new("reproduce-wrong");
    for (arguments, words) in [
        (&["reproduce", "hoper"][..], "did you mean `hopper`?"),
        (&["reproduce", "hopper", "no-such-figure-at-all"][..], "no figure or claim"),
        (&["reproduce", "hopper", "--only", "no-such-study"][..], "no study"),
        (&["reproduce", "hopper", "--no-run", "--write-docs=nowhere"][..], "holds no `claims` and `docs`"),
    ] {
        let output = folder.run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
    assert!(folder.entries(".").is_empty(), "nothing is written");
}
