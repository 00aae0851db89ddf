//! Sweeps, variants, reruns: output, files, and killed processes.

use crate::common::{Folder, assert_contains, assert_has, assert_output, code, json, stderr, stdout};
use anabranch_results::Frame;
use anabranch_testkit::words;
use serde_json::Value;
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

fn small() -> Vec<&'static str> {
    words("sweep tiny --over workload.0.size=32KiB,64KiB --schemes ecmp,prime --seeds 2 --out out --format json")
}

fn starts(folder: &Folder) -> usize {
    std::fs::read_to_string(folder.0.join("out/starts.log")).map_or(0, |text| text.lines().count())
}

/// Asserts that every visible run is complete: its tables can be read and have the summary's number of flows.
fn assert_whole(folder: &Folder) -> usize {
    let runs = folder.entries("out/runs");
    for run in &runs {
        let path = folder.0.join("out/runs").join(run);
        let summary = folder.json_file(&format!("out/runs/{run}/summary.json"));
        let flows = Frame::read(&path, "flows", &["seed"]).unwrap().unwrap();
        assert_eq!(Some(flows.rows() as u64), summary["flows"]["total"].as_u64(), "{run}");
        assert!(Frame::read(&path, "links", &["seed", "bytes"]).unwrap().is_some(), "{run}");
    }
    runs.len()
}

#[test]
fn sweep_writes_table_figures_page_and_parquet() {
    let folder = Folder::new("sweep");
    let first = json(&folder.run(&small()));
    assert_has(&first, &["scenario", "over", "schemes", "seeds", "baseline", "runs", "sweep", "directory"]);
    assert_eq!((first["runs"].as_u64(), first["reused_runs"].as_u64()), (Some(8), Some(0)));
    assert_eq!((assert_whole(&folder), starts(&folder)), (8, 8));
    for file in ["plan.json", "sweep.csv", "runs.csv", "manifest.json", "report.html", "flows.parquet", "links.parquet"]
    {
        assert!(folder.0.join("out").join(file).exists(), "no {file}");
    }
    for file in ["sweep_curves.svg", "sweep_curves.png", "sweep_curves.csv"] {
        assert!(folder.0.join("out/figures").join(file).exists(), "no {file}");
    }
    // Two points, two load balancers, every metric.
    let table = folder.rows("out/sweep.csv");
    let of = |size: &str, scheme: &str| {
        table
            .iter()
            .find(|row| row["workload.0.size"] == size && row["scheme"] == scheme && row["metric"] == "fct_mean")
            .unwrap_or_else(|| panic!("no {size}, {scheme}"))
    };
    assert_eq!(of("32KiB", "ecmp")["seeds"], "2");
    let mean = |size: &str| of(size, "prime")["mean"].parse::<f64>().unwrap();
    assert!(mean("64KiB") > mean("32KiB"), "larger flows take longer");
    // A run of a sweep equals that of `run`.
    let listed = folder.rows("out/runs.csv");
    assert_eq!(listed.len(), 8);
    let alone = folder.json(
        "run tiny --set workload.0.size=32KiB --set \
        load_balancer.scheme=ecmp --seed 2 --out alone",
    );
    let same =
        listed.iter().find(|row| row["workload.0.size"] == "32KiB" && row["scheme"] == "ecmp" && row["seed"] == "2");
    let same = same.unwrap();
    assert_eq!((same["status"].as_str(), same["attempts"].as_str()), ("finished", "1"));
    assert_eq!(Some(same["fingerprint"].as_str()), alone["fingerprint"].as_str());
    assert_eq!(same["fct_p99"].parse::<f64>().unwrap(), alone["fct_us"]["p99"].as_f64().unwrap());
    // Rows of all runs, eight flows each, with their run.
    let all = Frame::read(&folder.0.join("out"), "flows", &["seed", "fct_rx_ps"]).unwrap().unwrap();
    assert_eq!(all.rows(), 8 * 8);
    let seeds: Vec<u64> = all.integers("seed").iter().map(|seed| seed.unwrap()).collect();
    assert_eq!((seeds.iter().filter(|s| **s == 1).count(), seeds.iter().filter(|s| **s == 2).count()), (32, 32));
    let manifest = folder.json_file("out/manifest.json");
    for of_a_run in ["threads", "wall_s", "machine", "statuses"] {
        assert!(manifest.get(of_a_run).is_none(), "{of_a_run} of a sweep");
    }
    let columns = |file: &str| -> Vec<String> {
        let files = manifest["files"].as_array().unwrap();
        let entry = files.iter().find(|entry| entry["name"] == file).unwrap_or_else(|| panic!("no {file}"));
        entry["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(columns("flows.parquet")[..3], ["workload.0.size", "entry", "run"]);
    assert_eq!(columns("runs.csv")[..4], ["workload.0.size", "scheme", "seed", "run"]);

    // Repeating it runs and writes nothing.
    let stamp = |file: &str| std::fs::metadata(folder.0.join("out").join(file)).unwrap().modified().unwrap();
    let before = (stamp("report.html"), stamp("flows.parquet"), stamp("plan.json"));
    assert_eq!(json(&folder.run(&small()))["reused_runs"].as_u64(), Some(8));
    assert_eq!((stamp("report.html"), stamp("flows.parquet"), stamp("plan.json")), before);
    let more: Vec<&str> = small()
        .iter()
        .map(|word| match *word {
            "workload.0.size=32KiB,64KiB" => "workload.0.size=32KiB,64KiB,128KiB",
            "2" => "3",
            other => other,
        })
        .collect();
    let grown = json(&folder.run(&more));
    assert_eq!((grown["runs"].as_u64(), grown["reused_runs"].as_u64()), (Some(18), Some(8)));
    assert_eq!(starts(&folder), 18);
    assert_eq!(json(&folder.run(&[&more[..], &["--again"]].concat()))["reused_runs"].as_u64(), Some(0));
    assert_eq!((assert_whole(&folder), starts(&folder)), (18, 36));
    assert!(folder.entries("out/.writing").is_empty() && folder.entries("out/.claims").is_empty());
    std::fs::remove_file(folder.0.join("out/report.html")).unwrap();
    folder.json("report out");
    let page = folder.read("out/report.html");
    let told = [
        "What was run",
        "Bytes per message",
        "ecmp (baseline), prime",
        "<dt>Seeds</dt><dd>1\u{2013}3",
        "Bytes per message [KiB]",
    ];
    for part in ["sweep of 3 points", "workload.0.size", "32KiB, 64KiB, 128KiB", "<svg"].into_iter().chain(told) {
        assert!(page.contains(part), "no {part:?} in the page");
    }
}

/// Two of six points have results of one scheme alone, one has none: the page names the seeds that lack, the figure
/// breaks the line and draws no zero.
#[test]
fn a_page_of_part_of_a_sweep_names_what_is_missing() {
    let folder = Folder::new("partial-sweep");
    let arguments = words(
        "sweep tiny --over workload.0.size=32KiB..128KiB:32KiB --schemes ecmp,prime --seeds 2 --out out --format json",
    );
    json(&folder.run(&arguments));
    let runs = folder.rows("out/runs.csv");
    for run in &runs {
        let [size, scheme, seed] = ["workload.0.size", "scheme", "seed"].map(|key| run[key].as_str());
        if size == "64KiB" || (size == "96KiB" && scheme == "prime" && seed == "2") {
            std::fs::remove_dir_all(folder.0.join("out/runs").join(&run["run"])).unwrap();
        }
    }
    folder.json("report out");
    let page = folder.read("out/report.html");
    for line in [
        "11 of 16 finished, 5 missing",
        "size = 64KiB: ecmp: seeds 1\u{2013}2 not run.",
        "size = 64KiB: prime: seeds 1\u{2013}2 not run.",
        "size = 96KiB: prime: seed 2 not run.",
        "hollow: seeds missing or flows unfinished",
    ] {
        assert!(page.contains(line), "no {line:?} in the page");
    }
    assert!(!page.contains("<li>size = 32KiB: "), "a complete point is not listed");
    let drawn = folder.rows("out/figures/sweep_curves.csv");
    assert!(drawn.iter().all(|row| row["workload.0.size"] != "64KiB" && row["mean"].parse::<f64>().unwrap() > 0.0));
    let partial: Vec<_> = drawn.iter().filter(|row| row["seeds"] == "1").collect();
    assert!(!partial.is_empty());
    // The schemes of a point are compared over the seeds that all of them have.
    assert!(partial.iter().all(|row| row["workload.0.size"] == "96KiB"), "{partial:?}");
    assert!(["ecmp", "prime"].iter().all(|scheme| partial.iter().any(|row| row["scheme"] == *scheme)));
    // Where one scheme alone has results, it is not the seeds that are too few.
    for run in runs.iter().filter(|run| run["scheme"] == "prime") {
        let _ = std::fs::remove_dir_all(folder.0.join("out/runs").join(&run["run"]));
    }
    folder.json("report out");
    let page = folder.read("out/report.html");
    assert!(page.contains("Nothing to compare: ecmp alone has results so far") && !page.contains("Too few seeds"));
}

#[test]
fn two_keys_draw_a_heat_map_and_zip_pairs_values() {
    let folder = Folder::new("two-keys");
    let arguments = words(
        "sweep tiny --over workload.0.size=32KiB..64KiB:32KiB --over \
        topology.link_rate=100Gbps,400Gbps --schemes ecmp,prime --out out --format json",
    );
    let grid = json(&folder.run(&arguments));
    // Two by two points, two load balancers, the two seeds of the scenario's own [compare].
    assert_eq!(grid["runs"].as_u64(), Some(16));
    let cells = folder.rows("out/figures/sweep_heat.csv");
    assert_eq!(cells.len(), 4 * 2, "a cell per point and load balancer");
    let zip = json(&folder.run(&[&arguments[..], &["--zip"]].concat()));
    assert_eq!((zip["runs"].as_u64(), zip["reused_runs"].as_u64()), (Some(8), Some(8)), "two of the four points");
    assert!(!folder.exists("out/figures/sweep_heat.csv"), "a zip is no map");
    // The grid is still there: tables and figures are of the last command.
    assert_eq!(json(&folder.run(&arguments))["reused_runs"].as_u64(), Some(16));
    assert!(folder.exists("out/figures/sweep_heat.csv"));
    folder.refused(
        &[&arguments[..], &["--set", "name=other", "--set", "workload.0.name=w"]].concat(),
        &["another scenario", "--replace"],
    );
}

#[test]
fn sweep_file_fills_store_in_shares() {
    let folder = Folder::new("file");
    folder.file("study.toml", "[sweep]\nscenario = \"tiny\"\nmode = \"grid\"\nschemes = [\"ecmp\", \"prime\"]\nseeds = 2\n\n[sweep.over]\nworkload.0.size = [\"32KiB\", \"64KiB\"]\n");
    let list = folder.json("sweep study.toml --out out --list");
    let hashes: Vec<&str> = list["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(hashes.len(), 8);
    assert!(!folder.exists("out"), "a list writes nothing");
    let table = stdout(&folder.line("sweep study.toml --out out --list"));
    assert!(table.contains(hashes[0]) && table.contains("missing"), "{table}");
    // After both shares all runs exist, and the last share has drawn the figures.
    let task = |task: &str| folder.json(&["sweep", "study.toml", "--out", "out", "--task", task]);
    let first = task("1/2");
    assert_eq!((first["missing"].as_u64(), first["sweep"].is_null()), (Some(4), true));
    assert!(!folder.exists("out/report.html"), "figures once, at the end");
    assert_eq!(task("2/2")["missing"].as_u64(), Some(0));
    assert!(folder.exists("out/report.html"));
    let mut found = folder.entries("out/runs");
    let mut listed: Vec<String> = hashes.iter().map(ToString::to_string).collect();
    found.sort();
    listed.sort();
    assert_eq!(found, listed);
    assert_eq!(json(&folder.run(&small()))["reused_runs"].as_u64(), Some(8));
}

#[test]
fn a_key_without_effect_on_any_scheme_is_noted() {
    let folder = Folder::new("sweep-without-effect");
    folder.ends("sweep tiny --schemes ecmp --over load_balancer.prime.p_ecn=8,16 --dry-run", 0, &["changes nothing"]);
}

#[test]
fn dry_run_measures_one_run_and_writes_nothing() {
    let folder = Folder::new("dry");
    let dry = json(&folder.run(&[&small()[..], &["--dry-run"]].concat()));
    assert_has(&dry, &["points", "runs", "missing", "measured.seconds", "measured.run", "side_by_side", "seconds"]);
    assert_eq!((dry["points"].as_u64(), dry["runs"].as_u64(), dry["missing"].as_u64()), (Some(2), Some(8), Some(8)));
    assert!(folder.entries(".").is_empty());
    let text = stdout(&folder.line("sweep tiny --over topology.radix=4,8 --dry-run"));
    assert_contains(&text, &["2 points, 8 runs, 0 of them done", "Measured: radix = 8, prime, seed 2", "in parallel"]);
}

fn long() -> Vec<&'static str> {
    words(
        "sweep tiny --set workload.0.size=256MiB --over topology.link_delay=1us,2us,3us --schemes \
        ecmp,ops --seeds 1 --threads 1 --out out",
    )
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !there() {
        assert!(began.elapsed() < Duration::from_secs(120), "waited two minutes for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn processes_share_a_store_and_start_each_run_once() {
    let folder = Folder::new("together");
    let start = || folder.command(&long()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (one, two) = (start(), start());
    for child in [one, two] {
        assert_output(&child.wait_with_output().unwrap(), 0, &[]);
    }
    assert_eq!((assert_whole(&folder), starts(&folder)), (6, 6));
    assert!(folder.exists("out/report.html"));
    assert!(folder.entries("out/.writing").is_empty() && folder.entries("out/.claims").is_empty());
    let processes = folder.read("out/starts.log");
    let mut ids: Vec<&str> = processes.lines().map(|line| line.split(' ').nth(2).unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2, "both did some of it");
}

#[test]
fn killed_process_loses_only_its_run() {
    let folder = Folder::new("killed");
    let mut child = folder.command(&long()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the second run", || starts(&folder) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let done = assert_whole(&folder);
    assert!(done < 6 && !folder.exists("out/report.html"));
    let begun = starts(&folder);
    folder.ok(&long());
    assert_eq!((assert_whole(&folder), starts(&folder)), (6, begun + 6 - done), "one start more, for the run killed");
    assert_eq!(begun - done, 1);
    let attempts: Vec<String> = folder.rows("out/runs.csv").iter().map(|row| row["attempts"].clone()).collect();
    assert_eq!(attempts.iter().filter(|attempts| *attempts == "2").count(), 1, "{attempts:?}");
    assert!(folder.entries("out/.writing").is_empty() && folder.entries("out/.claims").is_empty());
    // An interrupted process leaves nothing of its current run.
    let folder = Folder::new("interrupted");
    let child = folder.command(&long()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the second run", || starts(&folder) >= 2);
    std::thread::sleep(Duration::from_millis(100));
    anabranch_testkit::send_signal(child.id(), "INT");
    assert_output(&child.wait_with_output().unwrap(), 130, &[]);
    assert!(assert_whole(&folder) < 6);
    assert!(folder.entries("out/.writing").is_empty());
}

#[test]
fn run_that_crashes_three_times_is_marked_failed() {
    let folder = Folder::new("thrice");
    let list = json(&folder.run(&[&small()[..], &["--list"]].concat()));
    let run = list["runs"][0]["run"].as_str().unwrap().to_string();
    // Remains of three killed processes.
    anabranch_results::create_store(&folder.0.join("out"), "0", &[]).unwrap();
    std::fs::create_dir_all(folder.0.join("out/.claims")).unwrap();
    std::fs::write(folder.0.join("out/.claims").join(&run), "x a 1 1\nx a 2 2\nx a 3 3\n").unwrap();
    let output = folder.ends(&small(), 3, &["killed 3 times"]);
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(result["failed"].as_array().map(Vec::len), Some(1));
    assert_eq!(assert_whole(&folder), 7, "the others are done");
    let failed = folder.json_file(&format!("out/failed/{run}.json"));
    assert_eq!(failed["attempts"].as_u64(), Some(3));
    let page = folder.read("out/report.html");
    assert!(page.contains("Failed: "), "the page says so");
    assert_eq!((code(&folder.run(&small())), starts(&folder)), (3, 7));
    folder.ok(&[&small()[..], &["--again=failed"]].concat());
    assert_eq!((assert_whole(&folder), starts(&folder)), (8, 8));
}

/// File system of `size` at `path`, unmounted on drop; `None` where this process may not mount.
#[cfg(target_os = "linux")]
struct Small(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl Small {
    fn new(path: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let output =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(path).output();
        output.is_ok_and(|output| output.status.success()).then(|| Small(path.to_path_buf()))
    }
    fn remount(&self, option: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{option}")]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }
}

#[cfg(target_os = "linux")]
impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_or_read_only_disk_leaves_complete_runs_to_continue() {
    let folder = Folder::new("disk");
    let Some(disk) = Small::new(&folder.0.join("out"), "200k") else {
        anabranch_testkit::skip("only root may mount the small disk that this test fills", "run as root");
        return;
    };
    folder.refused(&small(), &["No space left"]);
    let done = assert_whole(&folder);
    assert!((1..8).contains(&done), "{done} runs fit on it");
    assert!(folder.entries("out/.writing").is_empty() && folder.entries("out/failed").is_empty());
    disk.remount("ro");
    folder.refused(&small(), &["Read-only file system"]);
    folder.refused("compare tiny --out out/compare", &["Read-only file system"]);
    disk.remount("rw,size=64M");
    let result = json(&folder.run(&small()));
    assert_eq!(result["reused_runs"].as_u64(), Some(done as u64));
    assert_eq!(assert_whole(&folder), 8);
}

#[test]
fn variants_compare_with_load_balancers() {
    let folder = Folder::new("variants");
    let compared = folder.json(
        "compare tiny --schemes ecmp,prime --variant \
        short=load_balancer.prime.p_ecn=2;transport.ack_every=1 --seeds 2 --out out",
    );
    assert_eq!(compared["schemes"], serde_json::json!(["ecmp", "prime", "short"]));
    let run =
        |scheme: &str| folder.json_file(&format!("out/runs/{scheme}/seed1/manifest.json"))["scenario"].to_string();
    assert!(run("short").contains("p_ecn = 2") && run("short").contains("ack_every = 1"), "{}", run("short"));
    assert!(run("short").contains("scheme = \\\"prime\\\"") && !run("prime").contains("p_ecn = 2"));
    // One ACK per packet: 128 packets; `prime` acknowledges several at once.
    let acks =
        |scheme: &str| folder.json_file(&format!("out/runs/{scheme}/seed1/summary.json"))["counters"]["acks"].as_u64();
    assert!(acks("short") > acks("prime"));
    // All three share one file, distinguished by `entry`: 3 entries, 2 seeds, 8 flows.
    let all = Frame::read(&folder.0.join("out"), "flows", &["seed"]).unwrap().unwrap();
    assert_eq!(all.rows(), 3 * 2 * 8);
    let again = folder.json("rerun out");
    assert_eq!((again["same"].as_bool(), again["runs"].as_array().map(Vec::len)), (Some(true), Some(6)));
    let one = folder.json("rerun out short/seed2 --threads 2");
    assert_eq!((one["same"].as_bool(), one["runs"].as_array().map(Vec::len)), (Some(true), Some(1)));
    // A result that its scenario does not give is detected.
    let path = folder.0.join("out/runs/prime/seed1/summary.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let recorded = folder.json_file("out/runs/prime/seed1/summary.json")["fingerprint"].as_str().unwrap().to_string();
    std::fs::write(&path, text.replace(&recorded, "0123456789abcdef")).unwrap();
    let output = folder.ends("rerun out", 1, &[]);
    assert!(stdout(&output).contains("DIFFERS") && stderr(&output).contains("1 of 6"), "{}", stderr(&output));
    // In a sweep, with the scenario's own [compare] where no load balancer is named.
    let swept = folder.json(
        "sweep tiny --over workload.0.size=32KiB,64KiB --variant \
        short=load_balancer.prime.p_ecn=2 --seeds 1 --out swept",
    );
    assert_eq!(swept["schemes"], serde_json::json!(["ecmp", "prime", "short"]));
    assert_eq!(swept["runs"], 6);
    let hash = folder.entries("swept/runs")[0].clone();
    assert_eq!(json(&folder.run(&["rerun", "swept", &hash[..6], "--format", "json"]))["same"].as_bool(), Some(true));
}

/// Two comparisons and a sweep in one directory share the runs: none is done twice.
#[test]
fn comparisons_and_sweeps_share_a_directory() {
    let folder = Folder::new("at-once");
    let compare = words("compare tiny --schemes ecmp,ops --seeds 4 --set workload.0.size=1MiB --out out --threads 1");
    let both = [(); 2].map(|()| folder.command(&compare).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    for child in both {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    assert_eq!(starts(&folder), 8);
    let table = || folder.bytes("out/comparison.csv");
    let first = table();
    // The scenario's own link delay is 1 us: half of the points are there.
    let sweep = "sweep tiny --over topology.link_delay=500ns,1us --schemes ecmp,ops --seeds 4 --set workload.0.size=1MiB --out out";
    folder.ends(sweep, 0, &["8 of 16 runs were already finished"]);
    assert!(folder.exists("out/sweep.csv") && !folder.exists("out/comparison.csv"));
    let output = folder.run(&[&compare[..], &["--format", "json"]].concat());
    assert_eq!(json(&output)["reused_runs"].as_u64(), Some(8));
    assert!(table() == first && !folder.exists("out/sweep.csv"));
    for command in ["verify", "rerun"] {
        folder.ok(&[command, "out"]);
    }
}

/// As another process of the same study sees it between the making of the store and of its plan.
#[test]
fn a_store_without_a_plan_is_one_that_begins() {
    let sweep = words("sweep tiny --over topology.link_delay=500ns,1us --schemes ecmp --seeds 1 --out out");
    for command in [sweep, words("compare tiny --schemes ecmp,ops --seeds 1 --out out")] {
        let folder = Folder::new("begun");
        anabranch_results::create_store(&folder.0.join("out"), "0", &[]).unwrap();
        let output = folder.run(&command);
        assert_eq!((code(&output), starts(&folder)), (0, 2), "{}", stderr(&output));
        // What earlier versions wrote is refused, before anything is written.
        std::fs::remove_dir_all(folder.0.join("out")).unwrap();
        anabranch_results::create_store(&folder.0.join("out"), "0", &[("sweep.json", "the plan")]).unwrap();
        let before = folder.entries("out");
        folder.refused(&command, &["earlier layout"]);
        assert_eq!(folder.entries("out"), before);
    }
}

/// Commands that begin at the same time in one directory all end well, and it shows one of them whole.
#[test]
fn commands_at_once_in_one_directory() {
    let commands = [
        "run tiny",
        "run tiny",
        "run tiny --seed 2",
        "compare tiny --schemes ecmp,ops --seeds 2 --threads 1",
        "sweep tiny --over topology.link_delay=500ns,1us --schemes ecmp --seeds 2 --threads 1",
    ];
    for (one, other) in [(0, 1), (0, 2), (0, 3), (3, 0), (2, 4), (4, 3)] {
        let folder = Folder::new("together");
        let begin = |number: usize| {
            let line = format!("{} --out out", commands[number]);
            folder.command(&words(&line)).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        for child in [begin(one), begin(other)] {
            let output = child.wait_with_output().unwrap();
            assert_eq!(code(&output), 0, "{one} {other}: {}", stderr(&output));
        }
        folder.ok(&["verify", "out"]);
        folder.ok(&["rerun", "out"]);
    }
}

/// A damaged run is named and done again; a file of the user's named like a plan makes no store of its directory.
#[test]
fn damaged_runs_and_foreign_plans() {
    let folder = Folder::new("damaged-run");
    folder.file("plan.json", "mine");
    let run = || folder.run(&words("run tiny --out runs/out"));
    assert_eq!(code(&run()), 0);
    let names = folder.entries("runs/out/runs");
    let key = names.iter().find(|name| anabranch_results::is_key(name)).unwrap();
    std::fs::write(folder.0.join("runs/out/runs").join(key).join("links.csv"), "").unwrap();
    let again = run();
    assert!(code(&again) == 0 && stderr(&again).contains("the run is done again"), "{}", stderr(&again));
    folder.ok(&["verify", "runs/out"]);
}

/// Bounds belong to a scenario: they are not held against another's numbers in the same directory.
#[test]
fn bounds_go_with_their_scenario() {
    let folder = Folder::new("bounds-go");
    let compare = "compare tiny --schemes ecmp,prime --seeds 2 --out out";
    folder.json(&format!("{compare} --bound"));
    let has_bound = || folder.rows("out/comparison.csv").iter().any(|row| !row["over_bound"].is_empty());
    assert!(has_bound());
    folder.json(&format!("{compare} --set workload.0.size=16KiB --replace"));
    assert!(!has_bound());
}

/// A run, comparisons and sweeps of one scenario add to one directory, in any order, and each shows its own part.
#[test]
fn every_command_adds_to_a_directory() {
    let folder = Folder::new("adds");
    let reused = |command: &str| json(&folder.run(&words(command)))["reused_runs"].as_u64();
    let commands = [
        ("run tiny --seed 2 --set load_balancer.scheme=ops", "summary.json"),
        ("compare tiny --schemes ecmp,ops --seeds 2", "comparison.csv"),
        ("sweep tiny --over topology.link_delay=500ns,1us --schemes ecmp,ops --seeds 2", "sweep.csv"),
    ];
    let runs = || folder.entries("out/runs").into_iter().filter(|name| anabranch_results::is_key(name)).count();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let _ = std::fs::remove_dir_all(folder.0.join("out"));
        for (command, table) in order.map(|number| commands[number]) {
            let there = if folder.exists("out") { runs() } else { 0 };
            let found = reused(&format!("{command} --out out --format json"));
            let added = (runs() - there) as u64;
            assert!(found.is_none_or(|found| found + added == if table == "sweep.csv" { 8 } else { 4 }), "{order:?}");
            for (_, other) in commands {
                assert_eq!(folder.0.join("out").join(other).exists(), other == table, "{order:?}: {other}");
            }
            folder.ok(&["verify", "out"]);
            folder.ok(&["rerun", "out"]);
        }
        assert_eq!(runs(), 8, "{order:?}: none twice");
    }
    // The same row of the run, wherever it was done.
    folder.json("run tiny --seed 2 --set load_balancer.scheme=ops --out out");
    folder.json("run tiny --seed 2 --set load_balancer.scheme=ops --out alone");
    let flows = |out: &str| std::fs::read(folder.0.join(out).join("flows.parquet")).unwrap();
    assert!(flows("out") == flows("alone"));
}

#[test]
fn quiet_prints_only_results_and_errors() {
    let folder = Folder::new("quiet");
    let output = folder.line("run tiny --set run.time_limit=3us --out out --quiet");
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    assert!(stdout(&output).contains("Fingerprint"));
    folder.ends("run tiny --set run.time_limit=3us --out loud", 0, &["time limit"]);
    assert!(folder.read("loud/flows.csv").contains("unfinished"));
    folder.refused("-q run tyni", &["did you mean `tiny`?"]);
}

#[test]
fn init_writes_a_scenario_that_checks() {
    let folder = Folder::new("init");
    folder.ok("init --all");
    let text = folder.read("scenario.toml");
    // Every section of the contract, and documented parameters.
    for part in [
        "[topology]",
        "[fabric]",
        "[transport]",
        "[load_balancer]",
        "[[workload]]",
        "[[fault]]",
        "[run]",
        "[compare]",
        "# ecn_kmin",
        "## ",
    ] {
        assert!(text.contains(part), "no {part:?}");
    }
    folder.ok("check scenario.toml");
    folder.refused("init", &[]);
    folder.ok("init --all --replace");
    assert_eq!(stdout(&folder.line("init --all -")), text);
    // Without options it is a page, and the same scenario.
    folder.ok("init short.toml");
    assert_eq!(folder.read("short.toml").lines().count(), 25);
    let hash = |file: &str| folder.json(&["check", file])["hash"].clone();
    assert_eq!(hash("short.toml"), hash("scenario.toml"));
    // A ready-made scenario as it is.
    folder.ok("init --from incast incast.toml");
    let ready = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/incast.toml");
    assert_eq!(folder.read("incast.toml"), std::fs::read_to_string(ready).unwrap());
    folder.refused("init --from incats x.toml", &["unknown ready-made scenario `incats`; the nearest are incast"]);
    assert!(!folder.exists("x.toml"));
}

/// Four switches in a ring with traffic across it and buffers so small that pauses form a cycle: a deadlock with every seed tried.
/// Buffers for all data in flight would avoid pauses.
fn ring(folder: &Folder, more: &str) {
    let cables = "0 4\n1 5\n2 6\n3 7\n4 5\n5 6\n6 7\n7 4\n".replace('\n', " 100Gbps 1000ns 0\n");
    folder.file("ring.topo", &format!("8 4 8\n4 5 6 7\n{cables}"));
    let flows: String = (0..4 * 24).map(|i| format!("{},{},2000000,0\n", i / 24, (i / 24 + 2) % 4)).collect();
    folder.file("ring.csv", &format!("src,dst,size_bytes,start_ps\n{flows}"));
    folder.file(
        "ring.toml",
        &format!(
            "[topology]\nkind = \"file\"\nformat = \"conweave\"\npath = \"ring.topo\"\n\
             [fabric]\nprofile = \"roce-lossless\"\nshared_buffer = \"300kB\"\necn = false\n\
             [transport]\nkind = \"roce\"\ncongestion_control = \"none\"\nrto = \"never\"\n\
             [load_balancer]\nscheme = \"ops\"\n\
             [[workload]]\nkind = \"file\"\nformat = \"csv\"\npath = \"ring.csv\"\n{more}"
        ),
    );
}

#[test]
fn run_that_can_never_finish_stalls() {
    let folder = Folder::new("stalled");
    // A dead spine that no forwarding table learns of: flows of ECMP that hash over it time out for ever.
    let dead = "[[fault]]\nkind = \"switch-down\"\nswitches = [\"spine0\"]\n";
    folder.file("dead.toml", &format!("{}\n{dead}", include_str!("../../../../scenarios/tiny.toml")));
    let stalls = ["no open flow has received a byte since", "run.stall_after"];
    let output = folder.ends("run dead.toml --set load_balancer.scheme=ecmp --out run --format json", 4, &stalls);
    let summary: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(summary["status"], "stalled");
    let (last, end) = (summary["last_progress_s"].as_f64().unwrap(), summary["simulated_s"].as_f64().unwrap());
    assert!(last < end && end < 0.1, "{last} s, {end} s: long before the time limit of a second");
    assert!(summary["flows"]["unfinished"].as_u64().unwrap() > 0 && summary["conservation"]["holds"] == true);
    folder.ok("rerun run");
    folder.ok("run dead.toml --out never --format json --set load_balancer.scheme=ecmp \
           --set run.stall_after=never --set run.time_limit=20ms");
    assert_eq!(folder.json_file("never/summary.json")["status"], "time-limit");
}

/// A deadlock is an outcome: exit code 4 of a single run, a row's status in a comparison. Results have the cycle.
#[test]
fn deadlock_is_a_status() {
    let folder = Folder::new("deadlock");
    ring(&folder, "");
    let output = folder.ends("run ring.toml --out run --format json", 4, &["ended as a PFC deadlock"]);
    let summary: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(summary, folder.json_file("run/summary.json"), "the results are there");
    assert_eq!((summary["status"].as_str(), summary["deadlock"].as_array().map(Vec::len)), (Some("deadlock"), Some(4)));
    assert!(summary["flows"]["unfinished"].as_u64().unwrap() > 0 && summary["conservation"]["holds"] == true);
    let manifest = folder.json_file("run/manifest.json");
    assert_eq!(manifest["statuses"]["ops/seed1"], "deadlock");
    assert_eq!(manifest["deadlocks"]["ops/seed1"], summary["deadlock"]);
    let report = folder.read("run/report.html");
    assert!(report.contains("ended as a PFC deadlock"), "the page says so");
    folder.ok("rerun run");
    folder.ok("sweep ring.toml --over fabric.shared_buffer=300kB,256MB --schemes ops --seeds 2 --out out");
    let standing: Vec<String> = folder.rows("out/runs.csv").iter().map(|row| row["status"].clone()).collect();
    assert_eq!(standing, ["deadlock", "deadlock", "finished", "finished"]);
    let compare = "compare ring.toml --schemes ops --variant roomy=fabric.shared_buffer=256MB --seeds 2 --out compared";
    folder.ends(compare, 0, &["ops, seed 1: The run ended as a PFC deadlock"]);
    for row in folder.rows("compared/comparison.csv") {
        let expected = if row["scheme"] == "ops" { "deadlock" } else { "finished" };
        assert_eq!(row["status"], expected, "{row:?}");
    }
    assert_eq!(folder.json_file("compared/manifest.json")["statuses"]["roomy/seed2"], "finished");
}

#[test]
fn failed_run_does_not_stop_others_and_is_reported() {
    let folder = Folder::new("failed");
    // A fault from the start on fails the runs of this backend.
    ring(&folder, "[[fault]]\nkind = \"packet-loss\"\nfraction = 1.0\nloss = 0.3\n");
    let arguments =
        words("sweep ring.toml --backend sleep --over fault.0.at=0us,900ms --schemes ops --seeds 2 --out out");
    let output = folder.run_with_sleep(&arguments);
    assert_output(&output, 3, &["2 of 4 runs failed", "at = 0us, ops, seed 1: the run could not go on"]);
    assert_output(&output, 3, &["to see it again: anabranch run ring.toml"]);
    assert_eq!((assert_whole(&folder), folder.entries("out/failed").len()), (2, 2));
    let standing: Vec<String> = folder.rows("out/runs.csv").iter().map(|row| row["status"].clone()).collect();
    assert_eq!(standing, ["failed", "failed", "finished", "finished"]);
    // A failed run is repeated with --again only, and fails again.
    assert_eq!((code(&folder.run_with_sleep(&arguments)), starts(&folder)), (3, 4));
    let again = folder.run_with_sleep(&[&arguments[..], &["--again=failed"]].concat());
    assert_eq!((code(&again), starts(&folder)), (3, 6));
    let output = folder.run_with_sleep(&words(
        "compare ring.toml --backend sleep --schemes ops \
        --variant late=fault.0.at=900ms --seeds 2 --out compared --format json",
    ));
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((result["failed"].as_array().map(Vec::len), result["interrupted"].as_bool()), (Some(2), Some(false)));
    let names = folder.entries("compared/runs").into_iter().filter(|name| name.len() != 16);
    assert_eq!(names.collect::<Vec<_>>(), ["late"]);
    let failed = folder.entries("compared/failed");
    assert_eq!(failed.len(), 2);
    let failure = folder.json_file(&format!("compared/failed/{}", failed[0]));
    assert!(failure["error"].as_str().unwrap().contains("a fault woke it"), "{failure}");
}

/// A sweep ends with its lowest point and the keys that had no effect: on links that no packet waits at nothing is marked.
#[test]
fn a_sweep_concludes() {
    let folder = Folder::new("sweep-concludes");
    let line = "sweep tiny --over fabric.ecn_kmin=0.2bdp,0.3bdp --over workload.0.size=8KiB,64KiB --schemes ecmp,ops --seeds 3 --out out";
    let text = stdout(&folder.line(line)).replace('\n', " ");
    assert_contains(
        &text,
        &[
            "`fabric.ecn_kmin` changed nothing: runs that differ in it alone are equal. What it governs hardly happened: 0 ECN marks in",
        ],
    );
    assert!(!text.contains("`workload.0.size`"), "{text}");
    // Four points by two schemes.
    assert!(text.contains("Best: ") && text.contains("of the 7 others (paired t-tests"), "{text}");
    let page = folder.read("out/report.html");
    assert!(page.contains("<code>fabric.ecn_kmin</code> changed nothing"));
    // Of values without a run nothing is known.
    folder.line("sweep tiny --over fabric.ecn_kmin=0.2bdp,0.3bdp --schemes ecmp --seeds 1 --task 1/2 --out part");
    folder.line("report part");
    assert!(!folder.read("part/report.html").contains("changed nothing"));
}
