//! Faults of runs on a testbed: their times, their cost, refusals, and runs that lose a host.

use crate::common::{
    Folder, code, stderr, stderr_words,
    testbed::{Bed, has_no_testbed, refused, scenario},
};
use anabranch_testkit::turn;
use serde_json::Value;
use std::{
    process::{Output, Stdio},
    time::{Duration, Instant},
};

/// Of two flows of 5 MB from leaf to leaf, which take 0.23 s each at 180 Mbit/s.
const SECTIONS: &str = r#"
[fabric]
queue_limit = "300kB"
ecn_kmin = "60kB"
ecn_kmax = "180kB"
trimming = false
[transport]
kind = "uet"
mtu = "4096B"
window = "131072B"
ack_every = 1
"#;
const WIRE: &str = "labels = 16\nfind_labels = \"paths\"\nleast_timeout = \"20ms\"\ngive_up = \"1s\"";

fn bed(name: &str, faults: &str) -> Bed {
    let flows = "src,dst,size_bytes,start_ps\n0,2,5000000,0\n1,3,5000000,0\n";
    Bed::new(name, &[("flows.csv", flows), ("faults.toml", &(scenario(2, 2, SECTIONS, WIRE) + faults))])
}

/// A run on a testbed; `None` where it cannot be here, which is a skip.
fn run(bed: &Bed, more: &[&str]) -> Option<Output> {
    let words = ["run", "faults.toml", "--backend", "testbed", "--out", "out", "--replace", "--progress", "never"];
    bed.run_real(&[&words[..], more].concat())
}

fn summary(bed: &Bed) -> Value {
    bed.folder.json_file("out/summary.json")
}

fn links(bed: &Bed, column: &str) -> Vec<(String, String)> {
    let rows = bed.folder.rows("out/links.csv").into_iter();
    rows.map(|row| (format!("{}->{}", row["from"], row["to"]), row[column].clone())).collect()
}

fn link(bed: &Bed, port: &str, column: &str) -> String {
    links(bed, column).into_iter().find(|(of, _)| of == port).unwrap().1
}

const CUT: &str = "[[fault]]\nat = \"50ms\"\nlinks = [\"leaf0-spine0\"]\n";

#[test]
fn faults_take_effect_on_time_and_report_it() {
    let _turn = turn();
    let kinds = [
        ("kind = \"link-down\"\n", 2),
        ("kind = \"link-degrade\"\nrate = \"100Mbps\"\n", 2),
        ("kind = \"packet-loss\"\nloss = 0.01\n", 2),
        ("kind = \"packet-delay\"\ndelay = \"1ms\"\n", 2),
    ];
    for (kind, ports) in kinds {
        let bed = bed("faults-on-time", &format!("{CUT}{kind}"));
        // On an idle machine every kind of fault is late by less than a millisecond.
        let tries: Vec<f64> = (0..3)
            .map_while(|_| {
                let output = run(&bed, &[])?;
                assert_eq!(code(&output), 0, "{kind}: {}", stderr(&output));
                let summary = summary(&bed);
                let fault = &summary["faults"][0];
                let (planned, at) = (fault["planned_s"].as_f64().unwrap(), fault["took_effect_s"].as_f64().unwrap());
                assert_eq!((fault["fault"].as_u64(), planned), (Some(1), 0.05));
                assert_eq!(bed.folder.json_file("out/manifest.json")["faults"], summary["faults"]);
                let late = at - planned;
                assert!(late >= 0.0, "{kind}: {late}");
                // More than 5 ms late is a finding.
                assert_eq!(
                    stderr_words(&output).contains("took effect more than 5 ms late: [[fault]] 1"),
                    late > 0.005
                );
                // Rows have the measured time, to a microsecond.
                let text = link(&bed, "leaf0->spine0", "fault");
                let micros = (at * 1e6).floor();
                let time = text.rsplit(" at ").next().unwrap();
                let ms: f64 = time.trim_end_matches("ms").parse().unwrap_or_else(|_| panic!("{text}"));
                assert!((ms * 1e3 - micros).abs() < 1.5, "{text}, {at}");
                let faulted = links(&bed, "fault").into_iter().filter(|(_, text)| !text.is_empty()).count();
                assert_eq!(faulted, ports, "{kind}");
                println!("{kind:?}: {:.2} ms late", late * 1e3);
                (late > 0.005).then_some(late)
            })
            .collect();
        assert!(tries.len() < 3, "{kind}: three times late: {tries:?}");
    }
}

#[test]
fn faults_do_not_delay_flows() {
    let _turn = turn();
    // Twenty changes of a rate from 10 ms on, a millisecond apart, while flows start.
    let fault = |number: u32| {
        format!(
            "[[fault]]\nat = \"{}ms\"\nkind = \"link-degrade\"\nrate = \"{}Mbps\"\nlinks = [\"leaf0-spine0\", \"leaf1-spine0\"]\n",
            10 + number,
            100 + number
        )
    };
    let faults: String = (0..20).map(fault).collect();
    let bed = bed("faults-beside-flows", &faults);
    let flows: String = (0..20).map(|n: u64| format!("{},2,1000,{}\n", n % 2, (10 + n) * 1_000_000_000)).collect();
    bed.folder.file("flows.csv", &format!("src,dst,size_bytes,start_ps\n{flows}"));
    let mut late = Vec::new();
    for _ in 0..3 {
        let Some(output) = run(&bed, &[]) else { return };
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let rows = bed.folder.rows("out/flows.csv");
        let starts: Vec<f64> = rows.iter().map(|row| row["start_ps"].parse::<f64>().unwrap() / 1e9).collect();
        let by = |(number, start): (usize, &f64)| start - (10 + number) as f64;
        let mut lateness: Vec<f64> = starts.iter().enumerate().map(by).collect();
        lateness.sort_unstable_by(f64::total_cmp);
        late.push(lateness[10]);
        println!("starts late by {:.2} ms in the middle, {:.2} at most", lateness[10], lateness[19]);
        // Each of these faults takes two processes more than a millisecond.
        if lateness[10] < 2.0 {
            return;
        }
    }
    panic!("late by {late:?} ms");
}

#[test]
fn losses_behind_a_cut_are_counted() {
    let _turn = turn();
    // The remote leaf does not notice: spine 0 has no route for its packets to leaf 1.
    let bed = bed("faults-drops", "[[fault]]\nat = \"50ms\"\nkind = \"link-down\"\nlinks = [\"leaf1-spine0\"]\n");
    let Some(output) = run(&bed, &["--set", "load_balancer.scheme=ops", "--set", "run.time_limit=300ms"]) else {
        return;
    };
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    if link(&bed, "spine0->leaf1", "drops").is_empty() {
        anabranch_testkit::skip("what a port loses that goes down is counted by a BPF program", "run as root");
        return;
    }
    let drops: u64 =
        link(&bed, "spine0->leaf1", "drops").parse().unwrap_or_else(|_| panic!("{:?}", links(&bed, "drops")));
    // Until they notice, half of what two hosts send into the cut is lost, at least the window of one path.
    let sent = |port: &str| link(&bed, port, "packets").parse::<u64>().unwrap();
    let through = sent("spine0->leaf1");
    let arrived = sent("leaf0->spine0");
    println!("{drops} dropped of {arrived} that came, {through} left");
    assert!(drops > 10, "{drops}");
    assert!(
        (arrived as i64 - through as i64 - drops as i64).abs() <= 5,
        "{arrived} came, {through} left, {drops} dropped"
    );
    assert!(summary(&bed)["counters"]["dropped"].as_u64().unwrap() >= drops);
}

#[test]
fn one_direction_of_a_cable_fails_alone() {
    let _turn = turn();
    let bed = bed("faults-one-way", "[[fault]]\nat = \"50ms\"\nkind = \"link-down\"\nlinks = [\"leaf0->spine0\"]\n");
    let Some(output) = run(&bed, &[]) else { return };
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(summary(&bed)["flows"]["finished"].as_u64(), Some(2));
    let drops = |port: &str| link(&bed, port, "drops").parse::<u64>().unwrap();
    println!("{} and {}", drops("leaf0->spine0"), drops("spine0->leaf0"));
    assert!(drops("leaf0->spine0") > 0, "what went that way is lost");
    assert_eq!(drops("spine0->leaf0"), 0, "the other direction carries answers");
    let marked: Vec<String> =
        links(&bed, "fault").into_iter().filter(|(_, text)| !text.is_empty()).map(|(port, _)| port).collect();
    assert_eq!(marked, ["leaf0->spine0"]);
}

#[test]
fn switch_schemes_are_refused_before_the_first_run() {
    let bed = bed("faults-schemes", "");
    let words = ["compare", "faults.toml", "--backend", "testbed", "--schemes", "reps,conga", "--out", "out"];
    let compared = bed.run(&words);
    if !has_no_testbed(&compared) {
        refused(&compared, &["`conga`", "`flowlet`"]);
        assert!(!bed.folder.0.join("out/runs").exists());
    }
}

#[test]
fn disconnected_host_ends_only_its_flows() {
    let _turn = turn();
    let bed = bed("faults-lost-host", "[[fault]]\nat = \"50ms\"\nkind = \"link-down\"\nlinks = [\"host3-leaf1\"]\n");
    let Some(output) = run(&bed, &[]) else { return };
    let message = stderr_words(&output);
    assert_eq!(code(&output), 0, "{message}");
    assert!(
        // Warnings of what a testbed does otherwise name simulations.
        message.contains("Hosts lost each other: host1 and host3 (")
            && !message.replace("in a simulation", "").contains("simulation"),
        "{message}"
    );
    let summary = summary(&bed);
    assert_eq!((summary["flows"]["finished"].as_u64(), summary["status"].as_str()), (Some(1), Some("lost-peers")));
    assert_eq!(summary["lost_peers"][0]["hosts"], serde_json::json!(["host1", "host3"]));
    let flows = bed.folder.rows("out/flows.csv");
    assert_eq!(flows.iter().map(|row| row["status"].as_str()).collect::<Vec<_>>(), ["finished", "unfinished"]);
    // The port of the disconnected host has no program, so packets in its queue are not counted.
    assert_eq!(link(&bed, "host3->leaf1", "drops"), "");
}

#[test]
fn time_limit_ends_a_real_run() {
    let _turn = turn();
    let bed = bed("faults-limit", "");
    let Some(output) = run(&bed, &["--set", "run.time_limit=100ms"]) else { return };
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let summary = summary(&bed);
    assert_eq!((summary["status"].as_str(), summary["flows"]["finished"].as_u64()), (Some("time-limit"), Some(0)));
    let took = summary["simulated_s"].as_f64().unwrap();
    assert!((0.1..0.12).contains(&took), "{took}");
    // Bytes and time are sampled together; the token bucket passes a burst of 1 ms.
    for (port, share) in links(&bed, "utilisation") {
        assert!(share.parse::<f64>().unwrap() <= 1.0 + 0.001 / took + 0.01, "{port}: {share}");
    }
}

#[test]
fn signal_keeps_partial_results() {
    let _turn = turn();
    let bed = bed("faults-signals", "");
    bed.folder.file("flows.csv", "src,dst,size_bytes,start_ps\n0,2,5000000,0\n1,3,200000000,0\n");
    if run(&bed, &["--set", "run.time_limit=10ms"]).is_none() {
        return;
    }
    for signal in ["INT", "TERM"] {
        let words = ["run", "faults.toml", "--backend", "testbed", "--out", signal, "--progress", "never"];
        let mut command = bed.command(&words);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(4));
        assert!(child.try_wait().unwrap().is_none(), "9 s of traffic");
        // To the process and to its group, as `timeout` does: one interruption.
        anabranch_testkit::send_signal(child.id(), signal);
        anabranch_testkit::send_signal(child.id(), signal);
        let since = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert!(since.elapsed() < Duration::from_secs(4), "{signal}: {:?}", since.elapsed());
        let summary = bed.folder.json_file(&format!("{signal}/summary.json"));
        assert_eq!((summary["status"].as_str(), summary["interrupted"].as_bool()), (Some("interrupted"), Some(true)));
        assert_eq!(summary["flows"]["finished"].as_u64(), Some(1), "what was done is kept");
    }
}

#[test]
fn sigterm_keeps_partial_simulation_results() {
    let folder = Folder::new("sigterm-simulation");
    let words = ["run", "web-search-128", "--set", "workload.0.duration=60ms", "--out", "k", "--progress", "never"];
    let mut child = folder.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    assert!(child.try_wait().unwrap().is_none(), "it is over already");
    anabranch_testkit::send_signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.json_file("k/summary.json")["interrupted"].as_bool(), Some(true));
}
