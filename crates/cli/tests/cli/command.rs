//! The program as users and scripts see it: exit codes, outputs, files.

use crate::common::{Folder, assert_contains, assert_has, assert_output, code, json, stderr, stdout};
use anabranch_testkit::send_signal;
use serde_json::Value;
use std::{path::Path, process::Stdio};

#[test]
fn run_writes_contract_files_and_prints_summary() {
    let folder = Folder::new("run");
    let output = folder.line("run tiny --out out --format json --threads 1 --seed 7");
    let summary = json(&output);
    assert_eq!((summary["scheme"].as_str(), summary["seed"].as_u64()), (Some("prime"), Some(7)));
    assert_eq!((summary["flows"]["total"].as_u64(), summary["flows"]["finished"].as_u64()), (Some(8), Some(8)));
    assert_eq!(summary["fingerprint"].as_str().map(str::len), Some(16));
    // Eight flows of 64 KiB are 16 packets each.
    assert_eq!(summary["counters"]["data_packets"].as_u64(), Some(128));
    assert_eq!(folder.json_file("out/summary.json"), summary);
    let files = folder.entries("out");
    for file in
        ["flows.csv", "flows.parquet", "links.csv", "links.parquet", "manifest.json", "report.html", "summary.json"]
    {
        assert!(files.contains(&file.to_string()), "no {file} in {files:?}");
    }
    let is_hidden = |name: &&String| name.starts_with('.') && ![".claims", ".writing"].contains(&name.as_str());
    assert_eq!(files.iter().find(is_hidden), None, "{files:?}");
    let manifest = folder.json_file("out/manifest.json");
    assert_has(&manifest, &["version", "commit", "scenario", "scenario_hash", "seeds", "threads", "machine", "wall_s"]);
    assert_eq!(folder.rows("out/flows.csv").len(), 8);
    folder.file("again.toml", manifest["scenario"].as_str().unwrap());
    let again = folder.json("run again.toml --out again");
    assert_eq!(again["fingerprint"], summary["fingerprint"]);
}

/// A ring all-reduce of 4 ranks sends 6 messages one after the other. NCCL's bus bandwidth is 2 * 3/4 of the buffer over the
/// time (nccl-tests, PERFORMANCE.md).
#[test]
fn collective_is_reported_with_its_completion_and_bus_bandwidth() {
    let folder = Folder::new("collective");
    let text = "name = \"ring\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
        link_rate = \"400Gbps\"\n[[workload]]\nkind = \"collective\"\nname = \"ring\"\nsize = \"4MiB\"\n";
    folder.file("ring.toml", text);
    let summary = folder.json("run ring.toml --out out");
    let of = &summary["collectives"][0];
    assert_eq!((of["collective"].as_str(), of["ranks"].as_u64()), (Some("ring-allreduce"), Some(4)));
    assert_eq!((of["bytes"].as_u64(), of["rounds"].as_u64()), (Some(4 << 20), Some(1)));
    let done = of["completion_s"].as_f64().unwrap();
    assert!((done * 1e6 - summary["completion_us"].as_f64().unwrap()).abs() < 1e-6);
    // Six messages of 1 MiB at 400 Gbit/s are 126 us at least.
    assert!(done > 6.0 * 8.0 * f64::from(1 << 20) / 400e9, "{done}");
    let bus = of["bus_bandwidth_bps"].as_f64().unwrap();
    assert!((bus * done / (1.5 * 8.0 * f64::from(4 << 20)) - 1.0).abs() < 1e-9, "{bus}");
    let shown = stdout(&folder.line("run ring.toml --out again"));
    assert!(shown.contains("Gbit/s") && shown.contains("Bus bandwidth: NCCL's definition"), "{shown}");
    // A comparison ranks by completion.
    folder.line("compare ring.toml --schemes ecmp,prime --seeds 2 --out both");
    assert_eq!(folder.json_file("both/comparison.json")["main_metric"], "completion");
}

/// More threads than any machine of ours has cores: one warning.
#[test]
fn threads_beyond_the_cores_are_a_warning() {
    let folder = Folder::new("threads-beyond");
    for (threads, count) in [("1024", 1), ("1", 0)] {
        let output = folder.ok(&["compare", "tiny", "--threads", threads, "--out", threads]);
        let warning = "warning: --threads: found 1024, this process may use ";
        assert_eq!(stderr(&output).matches(warning).count(), count, "{}", stderr(&output));
    }
}

#[test]
fn default_directory_has_scenario_name() {
    let folder = Folder::new("default");
    let output = folder.ok("run tiny");
    let runs = folder.entries("results");
    assert!(runs.len() == 1 && runs[0].starts_with("tiny-"), "{runs:?}");
    assert!(stderr(&output).contains(&runs[0]), "{}", stderr(&output));
    assert!(stdout(&output).contains("slowdown") && stdout(&output).contains("Fingerprint"), "{}", stdout(&output));
}

#[test]
fn comparison_is_relative_to_baseline_and_reuses_runs() {
    let folder = Folder::new("compare");
    let arguments =
        ["compare", "tiny", "--schemes", "ecmp,ops,prime", "--seeds", "2", "--out", "out", "--format", "json"];
    let first = json(&folder.run(&arguments));
    assert_has(&first, &["scenario", "schemes", "seeds", "baseline", "comparison", "runs", "directory"]);
    assert_eq!(first["baseline"].as_str(), Some("ecmp"));
    assert_eq!(first["runs"].as_array().map(Vec::len), Some(6));
    assert_eq!(first["reused_runs"].as_u64(), Some(0));
    let files = folder.entries("out");
    for file in ["comparison.csv", "manifest.json", "report.html", "runs"] {
        assert!(files.contains(&file.to_string()), "no {file} in {files:?}");
    }
    let rows = folder.rows("out/comparison.csv");
    for scheme in ["ecmp", "ops", "prime"] {
        assert!(rows.iter().any(|row| row["scheme"] == scheme), "no {scheme} in {rows:?}");
    }
    let second = json(&folder.run(&arguments));
    assert_eq!(second["reused_runs"].as_u64(), Some(6));
    let fingerprints =
        |v: &Value| v["runs"].as_array().unwrap().iter().map(|r| r["fingerprint"].clone()).collect::<Vec<_>>();
    assert_eq!(fingerprints(&first), fingerprints(&second));
    // With one more seed only the missing runs execute; with other flows all do.
    let more = ["compare", "tiny", "--schemes", "ecmp,ops,prime", "--seeds", "3", "--out", "out", "--format", "json"];
    assert_eq!(json(&folder.run(&more))["reused_runs"].as_u64(), Some(6));
    let other = [&arguments[..], &["--set", "workload.0.size=32KiB"]].concat();
    folder.refused(&other, &["contains runs of another scenario: Permutation on eight hosts", "--replace", "--out"]);
    assert!(!folder.exists("out/earlier-runs"), "nothing is touched unasked");
    let other = [&other[..], &["--replace"]].concat();
    assert_eq!(json(&folder.run(&other))["reused_runs"].as_u64(), Some(0));
    let again = [&arguments[..], &["--set", "workload.0.size=32KiB", "--again"]].concat();
    assert_eq!(json(&folder.run(&again))["reused_runs"].as_u64(), Some(0));
    // The nine runs of the other scenario are kept, but have no names.
    let is_run = |name: &&String| name.len() == 16;
    assert_eq!(folder.entries("out/runs").iter().filter(is_run).count(), 9 + 6);
    assert_eq!(folder.entries("out/runs/prime"), ["seed1", "seed2"]);
    // Links of others stay, in the directory of a run and beside names.
    let link = |at: &str| std::os::unix::fs::symlink("../mine", folder.0.join(at)).unwrap();
    let key = folder.entries("out/runs").into_iter().find(|name| name.len() == 16).unwrap();
    let mine = [format!("out/runs/{key}/mine"), "out/runs/prime/mine".to_string()];
    mine.iter().for_each(|at| link(at));
    let third = [&more[..], &["--set", "workload.0.size=64KiB", "--replace"]].concat();
    assert_eq!(json(&folder.run(&third))["reused_runs"].as_u64(), Some(9));
    assert!(mine.iter().all(|at| folder.0.join(at).is_symlink()), "{mine:?}");
}

#[test]
fn view_shows_a_run_and_two_schemes() {
    let folder = Folder::new("view");
    folder.json("compare tiny --schemes ecmp,prime,ops --out both");
    let view = |arguments: &[&str]| {
        let result = json(&folder.run(&[&["view"], arguments, &["--format", "json"]].concat()));
        let page = folder.read(result["view"].as_str().unwrap());
        (result["view"].as_str().unwrap().to_string(), page.matches("<script type=\"text/plain\" data-run=").count())
    };
    assert_eq!(view(&["both"]), ("both/view.html".into(), 2));
    assert_eq!(view(&["both", "--schemes", "ops", "--out", "ops.html"]), ("ops.html".into(), 1));
    assert_eq!(view(&["both/runs/ecmp/seed1"]), ("both/runs/ecmp/seed1/view.html".into(), 1));
    assert_eq!(view(&["both/runs/ecmp/seed1", "both/runs/ops/seed1", "--out", "two.html"]), ("two.html".into(), 2));
    let report = folder.read("both/report.html");
    assert!(report.contains("href=\"view.html\">fabric view"));
}

#[test]
fn message_shows_line_and_position() {
    let folder = Folder::new("place");
    folder.file("x.toml", "[topology]\nkind = \"fat-tree\"\nradix = \"four\"\n[[workload]]\nkind = \"permutation\"\n");
    let message = stderr(&folder.line("check x.toml"));
    assert_contains(&message, &["x.toml:3:9", "radix = \"four\"", "found \"four\"", "whole number", "here"]);
}

#[test]
fn check_prints_a_scenario_that_checks() {
    let folder = Folder::new("check");
    let output = folder.ok("check first-run --set topology.radix=8");
    let text = stdout(&output);
    assert!(text.contains("radix = 8") && text.contains("switch_latency") && text.contains("p_nack"), "{text}");
    folder.file("printed.toml", &text);
    let hash = |name: &str, more: &[&str]| {
        let arguments = [&["check", name, "--format", "json"][..], more].concat();
        json(&folder.run(&arguments))["hash"].as_str().unwrap().to_string()
    };
    assert_eq!(hash("printed.toml", &[]), hash("first-run", &["--set", "topology.radix=8"]));
    folder.ends("check web-search-128 --set workload.0.load=1.5", 0, &["warning"]);
}

#[test]
fn everything_listed_can_be_explained() {
    let folder = Folder::new("explain");
    for (kind, known) in [
        ("schemes", &["prime", "ev-index", "ecmp"][..]),
        ("topologies", &["fat-tree", "leaf-spine", "file"]),
        ("transports", &["uet", "dctcp", "smartt", "nscc", "uet-lossy"]),
        ("workloads", &["poisson", "permutation", "incast", "all-to-all", "file", "web-search"]),
        ("scenarios", &["first-run", "permutation-8192", "testbed-incast"]),
        ("paper-scenarios", &["hopper-hadoop", "hf2t-web-search", "prime-mixed-wrr50", "spritz-bystanders"]),
    ] {
        let listed = folder.json(&["list", kind]);
        let names: Vec<&str> = listed[kind].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        for name in known {
            assert!(names.contains(name), "no {name} in {names:?}");
        }
        for name in names {
            let explained = folder.json(&["explain", name]);
            for part in explained["parts"].as_array().unwrap() {
                assert!(!part["meaning"].as_str().unwrap().is_empty(), "{name}");
                for parameter in part["parameters"].as_array().unwrap() {
                    assert_has(parameter, &["name", "meaning", "expected", "default", "source"]);
                    assert!(!parameter["source"].as_str().unwrap().is_empty(), "{name}: {parameter}");
                }
            }
        }
    }
    let text = stdout(&folder.line("explain prime"));
    assert_contains(&text, &["p_ecn = \"0.25bdp\"", "packets", "Default from", "switch side"]);
    // PRIME has fourteen keys: one of users, seven of experts, six readings.
    assert!(text.contains("More keys: --expert (7), --readings (6).") && !text.contains("    decay_on = "), "{text}");
    let text = stdout(&folder.line("explain prime --readings"));
    assert!(text.contains("decay_on = \"sent\"  (reading)") && text.contains("More keys: --expert (7)."), "{text}");
    assert!(stdout(&folder.line("explain decay_on")).contains("decay_on = "), "a key by name");
}

#[test]
fn readings_that_are_set_are_named() {
    let folder = Folder::new("readings");
    let set = ["--set", "load_balancer.prime.scope=host", "--set", "fabric.trim=arrival"];
    let named = "load_balancer.prime.scope = \"host\"";
    let check = stdout(&folder.run(&[&["check", "tiny"][..], &set].concat()));
    assert!(check.contains(&format!("# Readings set: {named}.\n")), "{check}");
    assert!(!stdout(&folder.line("check tiny")).contains("Readings set"));
    folder.ok(&[&["run", "tiny", "--out", "out"][..], &set].concat());
    assert_eq!(folder.json_file("out/manifest.json")["readings"][0].as_str(), Some(named));
    assert!(folder.read("out/report.html").contains("Readings set"));
}

#[test]
fn topology_is_counted_and_its_paths_listed() {
    let folder = Folder::new("topology");
    // Radix 4 in three tiers: 16 hosts, 8 leaves, 8 aggregation and 4 core switches, diameter 6, (k/2)^2 = 4 paths
    // between pods, k/2 = 2 inside a pod.
    let three = ["topology", "tiny", "--set", "topology.tiers=3", "--format", "json"];
    let result = json(&folder.run(&[&three[..], &["--paths", "0", "host15"]].concat()));
    assert_eq!((result["hosts"].as_u64(), result["switches"].as_u64()), (Some(16), Some(20)));
    assert_eq!(result["diameter_links"].as_u64(), Some(6));
    assert_eq!(result["pair"]["paths"].as_array().map(Vec::len), Some(4));
    for path in result["pair"]["paths"].as_array().unwrap() {
        let nodes = path.as_array().unwrap();
        assert_eq!((nodes.len(), nodes[0].as_str(), nodes[6].as_str()), (7, Some("host0"), Some("host15")));
    }
    let counts: Vec<_> = result["paths"].as_array().unwrap().iter().map(|p| p["paths"].as_u64().unwrap()).collect();
    assert_eq!(counts, [2, 4]);
    folder.ok("topology tiny --export tiny.topo");
    let file = "topology={ kind = \"file\", format = \"conweave\", path = \"tiny.topo\" }";
    let text = folder.read("tiny.topo");
    assert_eq!(text.lines().next(), Some("14 6 16"));
    folder.file("from-file.toml", "[topology]\nkind = \"file\"\n[[workload]]\nkind = \"permutation\"\n");
    let imported = folder.json(&["topology", "from-file.toml", "--set", file]);
    assert_eq!((imported["hosts"].as_u64(), imported["switches"].as_u64()), (Some(8), Some(6)));
    assert_eq!(imported["base_rtt_ps"], folder.json("topology tiny")["base_rtt_ps"]);
}

#[test]
fn damaged_runs_of_a_comparison_are_repeated_or_reported() {
    let folder = Folder::new("compare-damaged");
    let arguments = ["compare", "tiny", "--schemes", "ecmp,ops", "--seeds", "1", "--out", "out", "--format", "json"];
    let first = json(&folder.run(&arguments));
    let fingerprints =
        |v: &Value| v["runs"].as_array().unwrap().iter().map(|run| run["fingerprint"].clone()).collect::<Vec<_>>();
    let own = folder.0.join("out/runs/ecmp/seed1");
    let read = |file: &str| std::fs::read(own.join(file)).unwrap();
    let half = |file: &str| std::fs::write(own.join(file), &read(file)[..read(file).len() / 2]).unwrap();
    let manifest = |from: &str, to: &str| {
        let text = String::from_utf8(read("manifest.json")).unwrap();
        assert!(text.contains(from), "no {from} in {text}");
        std::fs::write(own.join("manifest.json"), text.replace(from, to)).unwrap();
    };
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let damages: [(&str, &dyn Fn()); 5] = [
        ("summary cut", &|| half("summary.json")),
        ("summary gone", &|| std::fs::remove_file(own.join("summary.json")).unwrap()),
        ("manifest cut", &|| half("manifest.json")),
        ("another version", &|| manifest(&version, "\"version\": \"0.0.7\"")),
        ("another commit", &|| manifest("\"commit\": \"", "\"commit\": \"f")),
    ];
    for (what, damage) in damages {
        let rows = read("flows.csv");
        damage();
        let again = json(&folder.run(&arguments));
        assert_eq!(again["reused_runs"].as_u64(), Some(1), "{what}");
        assert_eq!(fingerprints(&again), fingerprints(&first), "{what}");
        assert!(read("flows.csv") == rows && folder.entries("out/runs/ecmp") == ["seed1"], "{what}");
    }
    // A directory without a trusted manifest is foreign, and kept.
    let key = std::fs::read_link(&own).unwrap().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(folder.entries("out/earlier-runs"), [key.clone(), format!("{key}-2"), format!("{key}-3")]);
    half("flows.parquet");
    let page = folder.bytes("out/report.html");
    folder.refused("report out", &[&key, "flows.parquet"]);
    assert!(folder.bytes("out/report.html") == page);
    let output = folder.run(&arguments);
    assert_contains(&stderr(&output), &["flows.parquet", "is run again"]);
    assert_eq!(json(&output)["reused_runs"].as_u64(), Some(1));
    assert_eq!(fingerprints(&json(&folder.run(&[&arguments[..], &["--again"]].concat()))), fingerprints(&first));
}

#[test]
fn interruption_keeps_finished_runs() {
    let folder = Folder::new("interrupt");
    // Long enough not to end by itself within the test.
    let size = "workload.0.size=16GiB";
    let arguments = ["run", "tiny", "--set", size, "--out", "out", "--threads", "1", "--format", "json"];
    let child = folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    send_signal(child.id(), "INT");
    assert_output(&child.wait_with_output().unwrap(), 130, &["interrupted"]);
    let summary = folder.json_file("out/summary.json");
    assert_eq!(summary["interrupted"].as_bool(), Some(true));
    assert!(Path::new(&folder.0.join("out/report.html")).exists());

    let arguments = ["compare", "tiny", "--schemes", "ecmp,prime", "--set", size, "--out", "compare", "--threads", "1"];
    let child = folder.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    send_signal(child.id(), "INT");
    assert_output(&child.wait_with_output().unwrap(), 130, &["interrupted"]);
    assert!(folder.exists("compare/plan.json"));
    let arguments = ["compare", "tiny", "--schemes", "ecmp,prime", "--out", "compare", "--format", "json"];
    assert_eq!(json(&folder.run(&arguments))["interrupted"].as_bool(), Some(false));
}

/// Building a fabric of 40,000 hosts does not poll for interruptions; one takes effect within 1.5 s all the same.
#[test]
fn interruption_while_building_takes_effect_soon() {
    let folder = Folder::new("interrupt-building");
    // The program is in memory from here on, and starts before the first signal.
    folder.line("--version");
    for (name, arguments) in [
        ("run", &["run", "spritz-40k-dragonfly", "--out", "out", "--progress", "never"][..]),
        ("compare", &["compare", "spritz-40k-dragonfly", "--schemes", "minimal,ecmp", "--out", "out"]),
        ("check", &["check", "spritz-40k-slim-fly"]),
    ] {
        // Early enough to hit the building phase of any build profile.
        for after in [30, 150] {
            let mut child = folder.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(after));
            send_signal(child.id(), "INT");
            let requested_at = std::time::Instant::now();
            let status = child.wait().unwrap();
            assert!(requested_at.elapsed().as_millis() < 1500, "{name}: {:?}", requested_at.elapsed());
            // Before the handler is installed, the signal ends the process. A check may finish within the grace period.
            let done = name == "check" && status.code() == Some(0);
            assert!(done || status.code().is_none_or(|code| code == 130), "{name} after {after} ms: {status}");
            let left = folder.entries("out");
            let begun = [".claims", ".writing", "failed", "manifest.json", "plan.json", "runs"];
            assert!(left.is_empty() || left == begun, "{name}: {left:?}");
        }
    }
}

#[test]
fn benchmark_ends_when_interrupted() {
    let folder = Folder::new("bench");
    let arguments = ["bench", "--repetitions", "100", "--format", "json"];
    let child = folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let requested_at = std::time::Instant::now();
    send_signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert!(requested_at.elapsed().as_secs_f64() < 1.0, "{:?}", requested_at.elapsed());
    assert_eq!((code(&output), stdout(&output)), (130, String::new()));
    assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
}

#[test]
fn benchmark_measures_requested_cases() {
    let folder = Folder::new("bench-case");
    let figures = folder.json("bench --case leaf-spine-roce-irn,permutation-128 --repetitions 1");
    let cases = figures["cases"].as_array().unwrap();
    let names: Vec<_> = cases.iter().map(|case| case["name"].as_str().unwrap()).collect();
    assert_eq!((names, figures["threads"].as_u64()), (vec!["permutation-128", "leaf-spine-roce-irn"], Some(1)));
    let keys = "ratio packet_hops_per_s first_event_s setup_hosts_per_s rows_written_per_cpu_s bytes_per_idle_host \
                bytes_per_packet_in_flight";
    for key in anabranch_testkit::words(keys) {
        assert!(cases.iter().all(|case| case[key].as_f64().unwrap() > 0.0), "{key}: {cases:?}");
    }
}
