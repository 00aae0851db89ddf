//! A run with real packets reports if it was machine-bound.

use crate::common::{
    code, stderr, stdout,
    testbed::{AT_200_MBPS, Bed, has_no_testbed, scenario},
};
use anabranch_testkit::turn;
use serde_json::Value;
use std::{
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::Duration,
};

/// Of two flows from leaf to leaf, which take 2 s each.
const WIRE: &str = "labels = 16\nfind_labels = \"paths\"\nleast_timeout = \"100ms\"";

/// Runs it, with every process of it stopped for 30 ms of each 100 ms where it `stalls`; `None` where there can be no testbed.
fn run(bed: &Bed, megabits: u64, stalls: bool) -> Option<(Value, String, String)> {
    let bytes = megabits * 250_000;
    bed.folder.file("flows.csv", &format!("src,dst,size_bytes,start_ps\n0,2,{bytes},0\n1,3,{bytes},0\n"));
    bed.folder.file("two.toml", &scenario(2, 2, AT_200_MBPS, WIRE));
    let rate = format!("wire.rate={megabits}Mbps");
    let words = ["testbed", "run", "two.toml", "--set", &rate, "--out", "out", "--replace", "--progress", "never"];
    let mut command = bed.command(&words);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The run is in namespaces, below a process that waits for it and leads its own group.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let signal = |name: &str| {
        let Some(inside) =
            std::fs::read_to_string(&children).ok().and_then(|all| all.split(' ').next().map(String::from))
        else {
            return;
        };
        // The shell's built-in: a minimal machine has no such program.
        let kill = format!("kill {name} -{inside}");
        drop(Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status())
    };
    while stalls && child.try_wait().unwrap().is_none() {
        signal("-STOP");
        std::thread::sleep(Duration::from_millis(30));
        signal("-CONT");
        std::thread::sleep(Duration::from_millis(70));
    }
    let output = child.wait_with_output().unwrap();
    if has_no_testbed(&output) {
        return None;
    }
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let manifest = bed.folder.json_file("out/manifest.json");
    let load = bed.folder.json_file("out/summary.json")["machine_load"].clone();
    let bound = load["bound"].as_bool().unwrap();
    assert_eq!(manifest["machine_bound"].as_array().map_or(0, Vec::len), usize::from(bound), "{manifest}");
    Some((load, stdout(&output).replace('\n', " "), stderr(&output)))
}

fn share(load: &Value, key: &str) -> f64 {
    load[key].as_f64().unwrap()
}

#[test]
fn stopped_endpoints_are_machine_bound() {
    let _turn = turn();
    let bed = Bed::new("machine-bound", &[]);
    let Some((load, message, warned)) = run(&bed, 180, true) else { return };
    // Stopped for 30 % of the time, and late by at most the planned duration.
    assert!((0.1..0.9).contains(&share(&load, "late_share")), "{load}");
    assert!((0.1..0.9).contains(&share(&load, "offered_share")), "{load}");
    assert_eq!(load["bound"].as_bool(), Some(true));
    assert!(
        message.contains("MACHINE-BOUND") && warned.contains("Machine-bound: hosts offered"),
        "{message}\n{warned}"
    );
    let rates = ["asked_bps", "offered_bps", "achieved_bps"].map(|key| share(&load, key));
    assert!(rates[0] > rates[1] * 1.05 && (rates[2] / rates[1] - 1.0).abs() < 0.05, "{rates:?}");
}

#[test]
fn light_run_is_not_machine_bound() {
    let _turn = turn();
    let bed = Bed::new("machine-free", &[]);
    for _ in 0..3 {
        let Some((load, message, warned)) = run(&bed, 180, false) else { return };
        println!("{load}");
        if load["bound"].as_bool() == Some(false) {
            assert!(share(&load, "offered_share") >= 0.95 && share(&load, "late_share") <= 0.02, "{load}");
            assert!(message.contains("not machine-bound") && !warned.contains("Machine-bound"), "{message}\n{warned}");
            // 180 Mbit/s are requested, headers included.
            assert!((0.9..1.02).contains(&(share(&load, "asked_bps") / 180e6)), "{load}");
            return;
        }
    }
    bed.skip_machine_bound();
}
