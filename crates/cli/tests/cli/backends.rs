//! Backends: selection, comparison, refusals; quantities that a backend does not measure are unknown in all outputs.

use crate::common::{Folder, assert_contains, assert_output, code, json, stderr, stdout, testbed::has_no_testbed};
use serde_json::Value;

#[test]
fn example_backend_compares_with_simulator() {
    let folder = Folder::new("backends-sleep");
    let words = ["compare", "tiny", "--schemes", "ecmp,ops", "--backend", "sim,sleep", "--out", "out"];
    let result = json(&folder.run_with_sleep(&[&words[..], &["--format", "json", "--progress", "never"]].concat()));
    let agreement = &result["agreement"];
    assert_eq!(agreement["backends"], serde_json::json!(["sim", "sleep"]));
    assert_eq!(agreement["metric"], "fct_mean");
    let rows = agreement["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["scheme"].as_str().unwrap()).collect::<Vec<_>>(), ["ecmp", "ops"]);
    for row in rows {
        assert_eq!((row["backend"].as_str(), row["seeds"].as_u64()), (Some("sleep"), Some(2)));
        // A thread sleeps longer than the microseconds requested.
        assert!(row["ratio"].as_f64().unwrap() > 1.0 && row["ratio_ci95_low"].as_f64().is_some(), "{row}");
    }
    // Nothing was sent, so counts are unknown, not 0.
    for explanation in agreement["explanations"].as_array().unwrap() {
        assert!(explanation["values"][0].is_number() || explanation["quantity"] == "probe bytes", "{explanation}");
        assert_eq!(explanation["values"][1], Value::Null, "{explanation}");
    }
    let run = "out/sleep/runs/ecmp/seed1";
    let read = |name: &str| folder.read(name);
    assert_eq!(read(&format!("{run}/links.csv")).lines().count(), 1, "no rows of links");
    let summary = folder.json_file(&format!("{run}/summary.json"));
    for unknown in ["/fingerprint", "/packet_hops", "/conservation", "/counters/dropped", "/queues/max_bytes"] {
        assert_eq!(summary.pointer(unknown), Some(&Value::Null), "{unknown}");
    }
    assert_eq!((summary["backend"].as_str(), summary["flows"]["finished"].as_u64()), (Some("sleep"), Some(8)));
    let page = read("out/report.html");
    assert_contains(&page, &["sim and sleep side by side", "What explains it", "sleep/report.html"]);
    assert!(read("out/agreement.csv").starts_with("scheme,reference_backend,backend,metric"));
    // Such results are sealed, drawn and reused like others.
    folder.json("verify out");
    std::fs::remove_file(folder.0.join("out/report.html")).unwrap();
    folder.ok("report out");
    assert!(folder.exists("out/report.html"));
    let again = folder.run_with_sleep(&words);
    assert_eq!(stderr(&again).matches("4 of 4 runs were already finished").count(), 2, "{}", stderr(&again));
    assert!(stdout(&again).contains("verdict"));
    // One store for both: a comparison on one of them finds its runs, and only simulations are repeated.
    let one = folder.run(&["compare", "tiny", "--schemes", "ecmp,ops", "--out", "out", "--format", "json"]);
    assert_eq!(json(&one)["reused_runs"].as_u64(), Some(4));
    assert!(!folder.exists("out/agreement.csv") && folder.exists("out/comparison.csv"));
    assert_output(&folder.run_with_sleep(&words), 0, &["results in out"]);
    let repeated = folder.run(&["rerun", "out"]);
    assert_output(&repeated, 0, &["4 runs with real packets are not repeated"]);
    folder.ok(&["verify", "out"]);
}

#[test]
fn strict_holds_on_every_backend() {
    let folder = Folder::new("backends-strict");
    let run = |more: &[&str]| {
        let words = ["run", "tiny", "--strict", "--backend", "sim,sleep", "--progress", "never"];
        folder.run_with_sleep(&[&words[..], more].concat())
    };
    assert_output(&run(&["--out", "all"]), 0, &["results in all"]);
    // No flow of `tiny` ends within 1 us of simulated time; those that sleep do.
    let open = run(&["--set", "run.until=1us", "--out", "open"]);
    assert_output(&open, 1, &["--strict: flows did not finish", "8 of 8 on sim"]);
    assert!(!stderr(&open).contains("on sleep:") || !stderr(&open).contains("of 8 on sleep"), "{}", stderr(&open));
}

#[test]
fn wire_settings_distinguish_runs() {
    let folder = Folder::new("backends-wire");
    let compare = |wire: &str| {
        let words = ["compare", "tiny", "--schemes", "ecmp", "--seeds", "1", "--backend", "sleep", "--out", "out"];
        let output = folder.run_with_sleep(&[&words[..], &["--set", wire, "--progress", "never"]].concat());
        (code(&output), stderr(&output))
    };
    assert_eq!(compare("wire.labels=8").0, 0, "8 is the default");
    assert!(compare("wire.labels=8").1.contains("1 of 1 runs were already finished"));
    let (exit, text) = compare("wire.labels=4");
    assert!(!text.contains("finished before"), "{exit}: {text}");
    // The same in a sweep, on a backend that reads the section.
    let words = ["sweep", "tiny", "--over", "wire.labels=4,8", "--schemes", "ecmp", "--seeds", "1", "--out", "swept"];
    assert_output(&folder.run(&words), 2, &["a simulation does not read `[wire]`", "--backend testbed"]);
    let swept = folder.run_with_sleep(&[&words[..], &["--backend", "sleep", "--progress", "never"]].concat());
    assert_output(&swept, 0, &[]);
    assert_eq!(std::fs::read_dir(folder.0.join("swept/runs")).unwrap().count(), 2);
}

/// A panic while results are written ends its run alone, as one in a simulation does, and leaves nothing half-written.
#[test]
fn a_panic_while_writing_is_a_failed_run() {
    let folder = Folder::new("backends-panic");
    let words = ["sweep", "tiny", "--over", "workload.0.size=13B,4KiB", "--schemes", "ecmp", "--seeds", "1"];
    let more = ["--threads", "1", "--backend", "sleep", "--progress", "never", "--out", "out"];
    let output = folder.run_with_sleep(&[&words[..], &more].concat());
    assert_output(&output, 3, &["does not fit in column"]);
    let count = |of: &str| std::fs::read_dir(folder.0.join(of)).unwrap().count();
    assert_eq!((count("out/runs"), count("out/failed"), count("out/.writing")), (1, 1, 0));
    let words = ["run", "tiny", "--set", "workload.0.size=13B", "--backend", "sleep", "--progress", "never", "--out"];
    let output = folder.run_with_sleep(&[&words[..], &["alone"]].concat());
    assert_output(&output, 3, &["panic", "to see it again"]);
    assert!(!folder.exists("alone"));
}

#[test]
fn verify_reports_a_missing_backend() {
    let folder = Folder::new("backends-verify");
    let words =
        ["compare", "tiny", "--schemes", "ecmp", "--backend", "sim,sleep", "--out", "out", "--progress", "never"];
    assert_eq!(code(&folder.run_with_sleep(&words)), 0);
    folder.ok("verify out");
    let page = folder.read("out/sleep/report.html");
    assert_contains(&page, &["on sleep", "How long packets waited was not measured"]);
    assert!(!page.contains("No packet waited"), "waits were not measured");
    // Runs of other settings on the same backend, then none.
    let words = ["compare", "tiny", "--schemes", "ecmp", "--seeds", "4", "--out", "other", "--progress", "never"];
    folder.ok(&words);
    std::fs::rename(folder.0.join("out/sim"), folder.0.join("sim")).unwrap();
    std::fs::rename(folder.0.join("other"), folder.0.join("out/sim")).unwrap();
    folder.prints("verify out", 1, &["its runs are not those"]);
    std::fs::remove_dir_all(folder.0.join("out/sim")).unwrap();
    folder.prints("verify out", 1, &["the tables were made of these results"]);
}

/// Every key that a testbed replaces is named, under any scheme; in the ready-made scenarios both backends run the same
/// but for the rate of the hosts.
#[test]
fn what_a_testbed_does_otherwise_is_named() {
    let folder = Folder::new("backends-unlike");
    let warning = |arguments: &[&str]| {
        let output = folder.run(&[&["check"], arguments, &["--backend", "testbed", "--format", "json"]].concat());
        let all: Vec<String> = serde_json::from_value(json(&output)["warnings"].clone()).unwrap();
        all.into_iter().find(|warning| warning.starts_with("backend `testbed`")).unwrap_or_default()
    };
    for scenario in ["hopper-testbed-small", "testbed-faults", "testbed-incast", "testbed-all-to-all"] {
        // Faults of one direction are for root.
        if scenario == "testbed-faults" && code(&folder.run(&["check", scenario, "--backend", "testbed"])) == 2 {
            continue;
        }
        for scheme in ["reps", "flowbender", "flowlet", "qp-spray", "prime", "hopper", "ecmp"] {
            let found = warning(&[scenario, "--set", &format!("load_balancer.scheme={scheme}")]);
            let rate = if scenario == "testbed-all-to-all" { ["97.5", "100"] } else { ["195", "200"] };
            let [there, here] = rate.map(|rate| format!("{rate}Mbps"));
            let expected =
                format!("backend `testbed`: hosts send at {there} there (`wire.rate`), {here} in a simulation");
            assert_eq!(found, expected, "{scenario} {scheme}");
        }
    }
    let sets = [
        ("fabric.flow_keys=connection", "each flow has a label of its own there (`fabric.flow_keys = \"stable\"`)"),
        ("fabric.ecn_mark_at=dequeue", "`fabric.ecn_mark_at` is enqueue there, dequeue in a simulation"),
        (
            "fabric.trimming=true",
            "no packet is trimmed there (`wire.trimming`), but in a simulation (`fabric.trimming`)",
        ),
        ("wire.ecn=false", "nothing is marked there (`wire.ecn`), but in a simulation (`fabric.ecn`)"),
        ("transport.rto=auto", "`transport.rto` is at least 200ms there (`wire.least_timeout`), auto in a simulation"),
        ("transport.rto_rule=fixed", "`transport.rto_rule` is measured there, fixed in a simulation"),
        ("transport.early_loss=never", "`transport.early_loss` is 100us there, never in a simulation"),
        ("transport.header=64B", "`transport.header` is 106B there, 64B in a simulation"),
        // 2 s at 195 Mbit/s in packets of 4202 B.
        ("load_balancer.prime.p_timeout=auto", "`load_balancer.prime.p_timeout` is 11601 there, auto in a simulation"),
    ];
    for (set, expected) in sets {
        let found = warning(&["hopper-testbed-small", "--set", "load_balancer.scheme=prime", "--set", set]);
        assert!(found.contains(expected), "{set}: {found}");
    }
}

#[test]
fn agree_fails_for_verdict_apart() {
    let folder = Folder::new("backends-agree");
    let words = ["agree", "tiny", "--schemes", "ecmp", "--seeds", "8", "--out", "out", "--progress", "never"];
    // 7 us on the simulator; threads sleep longer.
    assert_output(&folder.run_with_sleep(&words), 1, &["apart", "ecmp"]);
    let table = folder.read("out/agreement.csv");
    assert!(table.lines().nth(1).unwrap().ends_with(",apart"), "{table}");
}

#[test]
fn unsupported_keys_are_refused_by_name() {
    let folder = Folder::new("backends-refused");
    let small = "hopper-testbed-small";
    folder.ok("check hopper-testbed-small --backend sim");
    folder.ok("check hopper-testbed-small --backend sim,testbed");
    // Guided paths do not exist on a leaf-spine: refused before the first run of either backend.
    let words = ["compare", small, "--schemes", "ecmp,spritz-scout", "--backend", "sim,testbed", "--out", "out"];
    let refused = folder.run(&words);
    if !has_no_testbed(&refused) {
        assert_output(&refused, 2, &["spritz-scout"]);
        assert!(!folder.exists("out/sim/runs") && !folder.exists("out/testbed"));
    }
}

#[test]
fn sweep_on_two_backends_compares_every_point() {
    let folder = Folder::new("backends-sweep");
    let words = ["sweep", "tiny", "--over", "transport.ack_every=1,4", "--schemes", "ecmp", "--backend", "sim,sleep"];
    let result = json(&folder.run_with_sleep(&[&words[..], &["--out", "out", "--format", "json"]].concat()));
    let rows = result["agreement"]["rows"].as_array().unwrap();
    let schemes: Vec<&str> = rows.iter().map(|row| row["scheme"].as_str().unwrap()).collect();
    assert_eq!(schemes, ["ack_every = 1, ecmp", "ack_every = 4, ecmp"]);
    assert!(rows.iter().all(|row| row["seeds"] == 2 && row["ratio"].as_f64().unwrap() > 1.0), "{rows:?}");
    assert_eq!(folder.entries("out/sim/runs").len(), 4);
    let both = [folder.entries("out/sim/runs"), folder.entries("out/sleep/runs")].concat();
    assert_eq!(both.iter().collect::<std::collections::BTreeSet<_>>().len(), 8, "a run's name says its backend");
    folder.json("verify out");
    std::fs::remove_file(folder.0.join("out/agreement.csv")).unwrap();
    folder.ok("report out");
    let table = folder.read("out/agreement.csv");
    assert!(table.contains("\"ack_every = 4, ecmp\",sim,sleep"), "{table}");
}

#[test]
fn foreign_directory_is_unchanged() {
    let folder = Folder::new("backends-foreign");
    let words = ["compare", "tiny", "--schemes", "ecmp", "--backend", "sim,sleep", "--progress", "never", "--out"];
    for name in ["agreement.csv", "explanations.csv", "agreement.json", "report.html", "sim", "sleep"] {
        let out = format!("{name}-there");
        std::fs::create_dir(folder.0.join(&out)).unwrap();
        folder.file(&format!("{out}/{name}"), "mine");
        assert_output(&folder.run_with_sleep(&[&words[..], &[&out]].concat()), 2, &[]);
        assert_eq!(folder.entries(&out), [name], "{name}");
        assert_eq!(std::fs::read_to_string(folder.0.join(&out).join(name)).unwrap(), "mine");
    }
    folder.ok(&["run", "tiny", "--out", "one"]);
    assert_output(&folder.run_with_sleep(&[&words[..], &["one"]].concat()), 0, &["results in one"]);
    assert!(!folder.exists("one/summary.json") && folder.exists("one/agreement.csv"));
    std::fs::create_dir_all(folder.0.join("both/sim")).unwrap();
    folder.file("both/notes.txt", "mine");
    folder.file("both/sim/notes.txt", "mine");
    let again = [&words[..], &["both"]].concat();
    assert_eq!([code(&folder.run_with_sleep(&again)), code(&folder.run_with_sleep(&again))], [0, 0]);
    for name in ["both/notes.txt", "both/sim/notes.txt"] {
        assert_eq!(folder.read(name), "mine");
    }
}
