//! Checks for scripts: `--strict` and `--assert` end with exit code 1.

#[allow(dead_code)]
mod common;

use common::{Folder, code, stderr};

/// Two flows of 1 MB at 400 Gbit/s, of which 10 us let none finish.
const CUT: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n\
    [[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\n[run]\ntime_limit = \"10us\"\n";

#[test]
fn strict_refuses_unfinished_flows() {
    let folder = Folder::new("strict");
    folder.file("cut.toml", CUT);
    for (number, words) in [
        &["run", "cut.toml"][..],
        &["compare", "cut.toml", "--schemes", "ecmp,prime"],
        &["sweep", "cut.toml", "--over", "topology.link_delay=1us,2us", "--schemes", "ecmp,prime"],
    ]
    .into_iter()
    .enumerate()
    {
        let run = |strict: &[&str], out: &str| {
            folder.run(&[words, &["--progress", "never", "--out", &format!("{out}{number}")], strict].concat())
        };
        assert_eq!(code(&run(&[], "lax")), 0, "{words:?}");
        let strict = run(&["--strict"], "strict");
        assert_eq!(code(&strict), 1, "{words:?}: {}", stderr(&strict));
        assert!(stderr(&strict).contains("--strict: flows did not finish:"), "{}", stderr(&strict));
        // The results are those without the option.
        assert!(folder.0.join(format!("strict{number}/report.html")).exists());
    }
    let finished = folder.run(&["run", "tiny", "--strict", "--progress", "never", "--out", "tiny"]);
    assert_eq!(code(&finished), 0, "{}", stderr(&finished));
}

#[test]
fn assertions_about_a_comparison() {
    let folder = Folder::new("assert");
    let compare = |assertions: &[&str]| {
        let mut words = vec!["compare", "tiny", "--schemes", "ecmp,prime", "--progress", "never", "--out", "out"];
        assertions.iter().for_each(|assertion| words.extend(["--assert", assertion]));
        folder.run(&words)
    };
    // A slowdown is at least 1.
    let holds = compare(&["prime.slowdown_p99 >= 1", "prime.slowdown_mean <= prime.slowdown_max"]);
    assert_eq!(code(&holds), 0, "{}", stderr(&holds));
    assert!(stderr(&holds).contains("assertion holds: prime.slowdown_p99 >= 1: prime.slowdown_p99 is "));
    let fails = compare(&["prime.slowdown_p99 >= 1", "prime.slowdown_p99 < 1"]);
    assert_eq!(code(&fails), 1, "{}", stderr(&fails));
    for words in ["assertion fails: prime.slowdown_p99 < 1: ", "--assert: 1 of 2 do not hold"] {
        assert!(stderr(&fails).contains(words), "{words}: {}", stderr(&fails));
    }
}

#[test]
fn invalid_assertions_are_refused_before_any_run() {
    let folder = Folder::new("assert-wrong");
    for (assertion, words) in [
        ("prmie.slowdown_p99 < 2", "did you mean `prime`?"),
        ("prime.slowdwon_p99 < 2", "did you mean `slowdown_p99`?"),
        ("prime.slowdown_p99", "found no operator"),
    ] {
        let output = folder.run(&["compare", "tiny", "--schemes", "ecmp,prime", "--assert", assertion, "--out", "out"]);
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains(words), "{words}: {}", stderr(&output));
        assert!(!folder.0.join("out").exists());
    }
}
