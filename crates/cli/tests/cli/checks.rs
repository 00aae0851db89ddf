//! Checks for scripts: `--strict` and `--assert` end with exit code 1.

use crate::common::{Folder, assert_output, code, stderr, stdout};
use serde_json::Value;

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
        assert_output(&run(&["--strict"], "strict"), 1, &["--strict: flows did not finish:"]);
        // The results are those without the option.
        assert!(folder.0.join(format!("strict{number}/report.html")).exists());
    }
    folder.ok("run tiny --strict --progress never --out tiny");
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
    assert_output(&holds, 0, &["assertion holds: prime.slowdown_p99 >= 1: prime.slowdown_p99 is "]);
    let fails = compare(&["prime.slowdown_p99 >= 1", "prime.slowdown_p99 < 1"]);
    assert_output(&fails, 1, &["assertion fails: prime.slowdown_p99 < 1: ", "--assert: 1 of 2 do not hold"]);
}

/// A window of a quarter makes every flow slower than before: each of its times is a regression, in a `JUnit` file too, unless the
/// allowed share exceeds it. The same runs are none.
#[test]
fn regressions_since_earlier_results() {
    let folder = Folder::new("regression");
    let compare = "compare tiny --schemes ecmp,ops --progress never --seeds";
    folder.ok(&format!("{compare} 3 --out before"));
    let now = |rest: &str| folder.line(&format!("{compare} {rest}"));
    assert_output(&now("3 --out same --against before --fail-on-regression 0.1% --junit same.xml"), 0, &[]);
    assert!(folder.read("same.xml").contains("failures=\"0\""));
    let slower =
        now("3 --set transport.window=16KiB --out slower --against before --fail-on-regression 5% --junit slower.xml");
    assert_output(&slower, 1, &["regression: ops.permutation.slowdown_p99: ", "; significant over 3 seeds"]);
    assert_output(&slower, 1, &["--fail-on-regression: "]);
    let xml = folder.read("slower.xml");
    let case = "<testcase classname=\"ops.permutation\" name=\"slowdown_p99\"><failure message=\"";
    assert!(xml.contains(case) && xml.ends_with("</testsuites>\n"), "{xml}");
    // The reverse is faster, and one seed is no test.
    assert_eq!(code(&now("3 --out faster --against slower --fail-on-regression 5%")), 0);
    let few = now("1 --set transport.window=16KiB --out few --against before --fail-on-regression 5%");
    assert!(code(&few) == 1 && stderr(&few).contains("one seed is too few for a test"), "{}", stderr(&few));
    for (wrong, words) in [
        ("--fail-on-regression 5%", "--against"),
        ("--junit x.xml", "found no check to write"),
        ("--against before --fail-on-regression 7", "expected a share above 0"),
    ] {
        assert_output(&now(&format!("3 --out wrong {wrong}")), 2, &[words]);
        assert!(!folder.0.join("wrong").exists() && !folder.0.join("x.xml").exists());
    }
}

/// Sixteen flows that settle: skipped, with a status and without a fingerprint; short ones end before.
#[test]
fn steady_state_is_skipped_where_there_is_one() {
    let folder = Folder::new("skip");
    folder.file(
        "skip.toml",
        "[topology]\nkind = \"fat-tree\"\ntiers = 2\nradix = 8\n[load_balancer]\nscheme = \"prime\"\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"64MiB\"\n[run]\nskip = \"steady\"\n",
    );
    let output = folder.ends("run skip.toml --out run --format json", 0, &["`run.skip` skipped 7"]);
    let summary: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&summary["status"], &summary["fingerprint"]), (&"skipped".into(), &Value::Null));
    assert!(summary["skipped_s"].as_f64().unwrap() > 0.7 * summary["simulated_s"].as_f64().unwrap());
    assert!(summary["conservation"].is_null() && summary["counters"]["data_packets"].is_null());
    folder.ok("verify run");
    let full = "run skip.toml --set workload.0.size=4MiB --out full --format json";
    let output = folder.ends(full, 0, &["not steady, simulated in full"]);
    let summary: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(summary["status"] == "finished" && summary["skipped_s"] == 0.0 && summary["fingerprint"].is_string());
    let both = "check skip.toml --set measure.attribution=true";
    folder.refused(both, &["`skip`: found \"steady\" together with measure.attribution"]);
}

/// Four links of 1 us at 400 Gb/s, 83.2 ns out and 1.28 ns back on each: 8337.92 ns or 416,896 B. These are 101 packets of 4160 B,
/// and an acknowledgement covers 4: 436,800 B fill the path.
#[test]
fn check_warns_once_of_a_window_that_cannot_fill_a_path() {
    let folder = Folder::new("short-window");
    let warned = |window: &str| {
        let output = folder.ok(&["check", "permutation-128", "--set", &format!("transport.window={window}")]);
        let text = stderr(&output);
        text.lines().filter(|line| line.contains("`window`: ")).map(String::from).collect::<Vec<_>>()
    };
    let warning = "`window`: 100000B cannot fill a path of 416896B (its BDP) with an acknowledgement per 4 packets; \"436800B\" can";
    let lines = warned("100kB");
    assert!(lines.len() == 1 && lines[0].ends_with(warning), "{lines:?}");
    for window in ["1.5bdp", "436800B", "auto"] {
        assert!(warned(window).is_empty(), "{window}");
    }
}
