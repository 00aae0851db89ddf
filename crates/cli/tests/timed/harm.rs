//! Links that lose, corrupt, duplicate and delay packets, flapping links, and signals to commands on a testbed.

use crate::common::{
    Row, code, json, stderr, stdout,
    testbed::{Bed, refused, scenario},
};
use anabranch_testkit::turn;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

/// Of a flow of 10 MB between two hosts: 2442 packets of 4096 B.
const SECTIONS: &str = r#"
[fabric]
queue_limit = "300kB"
trimming = false
[transport]
kind = "uet"
mtu = "4096B"
window = "131072B"
ack_every = 1
"#;

type PortRows = Vec<(String, f64, f64)>;

fn bed(name: &str, spines: u32, faults: &str) -> Bed {
    let scenario = scenario(spines, 1, SECTIONS, "labels = 8\nleast_timeout = \"20ms\"") + faults;
    Bed::new(name, &[("flows.csv", "src,dst,size_bytes,start_ps\n0,1,10000000,0\n"), ("harm.toml", &scenario)])
}

/// The summary of a run and, by port, packets and drops; `None` where it cannot be here, which is a skip.
fn carried(bed: &Bed) -> Option<(Value, PortRows)> {
    let output = bed.run_real(&["testbed", "run", "harm.toml", "--out", "out", "--replace", "--progress", "never"])?;
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    // Without its program a port that went down cannot count its drops.
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    let port = |row: Row| (format!("{}->{}", row["from"], row["to"]), number(&row["packets"]), number(&row["drops"]));
    let ports = bed.folder.rows("out/links.csv").into_iter().map(port).collect();
    Some((bed.folder.json_file("out/summary.json"), ports))
}

#[test]
fn exec_forwards_signals_and_exit_codes() {
    let _turn = turn();
    let bed = bed("exec-signals", 1, "");
    if bed.up("harm.toml", &[]).is_none() {
        return;
    }
    let ends = |script: &str, signal: Option<&str>| {
        // The test runner may ignore signals (nohup), which a shell cannot trap then.
        let words = ["testbed", "exec", "host0", "--", "env", "--default-signal", "sh", "-c", script];
        let mut command = bed.command(&words);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        if let Some(signal) = signal {
            anabranch_testkit::send_signal(child.id(), signal);
        }
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        (child.wait().unwrap().code(), rest.join(" "))
    };
    let waits = "while :; do sleep 0.02; done";
    for signal in ["TERM", "HUP", "INT", "USR1"] {
        let traps = format!("trap 'echo got; exit 7' {signal}; echo ready; {waits}");
        assert_eq!(ends(&traps, Some(signal)), (Some(7), "got".into()), "{signal}");
    }
    // 128 plus the signal, for a command without a handler: 15, 1, 2, 3.
    for (signal, number) in [("TERM", 15), ("HUP", 1), ("INT", 2), ("QUIT", 3)] {
        let sleeps = "echo ready; exec sleep 600";
        assert_eq!(ends(sleeps, Some(signal)).0, Some(128 + number), "{signal}");
    }
    // The whole process group ends, or the pipe would stay open.
    assert_eq!(ends("sleep 600 & echo ready; wait", Some("TERM")).0, Some(143));
    assert_eq!(ends("echo ready; exit 3", None).0, Some(3));
    assert_eq!(ends("echo ready; kill -9 $$", None).0, Some(137));
    let here = bed.done(&["testbed", "exec", "host0", "--", "pwd"]);
    assert_eq!(stdout(&here).trim(), bed.folder.0.to_str().unwrap());
    let fails = bed.run(&["testbed", "exec", "host0", "--", "no-such-program"]);
    assert_eq!(code(&fails), 127, "{}", stderr(&fails));
    refused(&bed.run(&["testbed", "exec", "host9", "--", "true"]), &["no `host9`", "host1"]);
}

fn paths(bed: &Bed) -> (Vec<f64>, usize) {
    let program = env!("CARGO_BIN_EXE_anabranch");
    let words = ["testbed", "exec", "host0", "--", program, "paths", "--to", "10.2.1.2:7000", "--format", "json"];
    let found = json(&bed.done(&words));
    let labels = found["labels"].as_array().unwrap();
    let last = |label: &Value| {
        let hops = label["hops"].as_array().unwrap();
        hops.iter().find(|hop| hop["is_end"] == true).map(|hop| hop["round_trip_us"].as_f64().unwrap())
    };
    let times: Vec<f64> = labels.iter().filter_map(last).collect();
    let silent = labels.len() - times.len();
    (times, silent)
}

#[test]
fn running_testbed_loses_and_delays_on_request() {
    let _turn = turn();
    let bed = bed("harm-stands", 1, "");
    if bed.up("harm.toml", &[]).is_none() || bed.run_real(&["testbed", "fault", "loss", "leaf0-spine0", "0"]).is_none()
    {
        return;
    }
    let port = |name: &str| {
        let status = json(&bed.done(&["testbed", "status", "--format", "json"]));
        let ports = status["ports"].as_array().unwrap().clone();
        ports.into_iter().find(|port| port["port"] == name).unwrap()["counters"].clone()
    };
    let fault = |words: &[&str]| bed.done(&[&["testbed", "fault"], words].concat());
    // A separate process delays packets in both directions and ends with its interface.
    fault(&["delay", "leaf0-spine0", "20ms", "--jitter", "1ms"]);
    let (times, silent) = paths(&bed);
    assert!(silent == 0 && times.iter().all(|time| *time >= 38_000.0), "{times:?}");
    fault(&["delay", "leaf0->spine0", "0"]);
    let (times, _) = paths(&bed);
    assert!(times.iter().all(|time| *time >= 19_000.0), "one direction still is: {times:?}");
    assert!(times.iter().any(|time| *time < 38_000.0), "{times:?}");
    fault(&["mend", "leaf0-spine0"]);
    assert!(paths(&bed).0.iter().any(|time| *time < 19_000.0));
    // All packets of one direction are lost and counted there.
    fault(&["loss", "leaf0->spine0", "100%"]);
    let (times, silent) = paths(&bed);
    assert!(times.is_empty() && silent > 0, "{times:?}");
    assert!(port("leaf0->spine0")["lost"].as_u64().unwrap() >= silent as u64);
    assert_eq!(port("spine0->leaf0")["lost"].as_u64(), Some(0));
    fault(&["mend", "spine0"]);
    assert_eq!(paths(&bed).1, 0);
    fault(&["duplicate", "leaf0-spine0", "1"]);
    paths(&bed);
    assert!(port("leaf0->spine0")["duplicated"].as_u64().unwrap() > 0);
    let wrong = |words: &[&str], message: &[&str]| refused(&bed.run(&[&["testbed", "fault"], words].concat()), message);
    wrong(&["loss", "leaf0-spine0", "150%"], &["`150%`", "0.01 or 1%"]);
    wrong(&["corrupt", "leaf0-spine0"], &["found nothing", "share"]);
    wrong(&["delay", "leaf0-spine0", "20 apples"], &["`20 apples`", "5ms"]);
    wrong(&["delay", "leaf0-spine0", "5ms", "--jitter", "6ms"], &["--jitter", "up to the delay"]);
    wrong(&["loss", "leaf0-spine0", "0.1", "--jitter", "6ms"], &["--jitter", "fault delay"]);
    wrong(&["cut", "leaf0-spine0", "0.1"], &["`0.1`", "take no value"]);
    wrong(&["slow", "leaf0-spine0"], &["found nothing", "20Mbps"]);
    wrong(&["loss", "leaf0->host1", "0.1"], &["no cable"]);
}

/// Returns `true` if a count is within five standard deviations of a share of `of`.
fn is_share(count: f64, of: f64, share: f64) -> bool {
    (count - of * share).abs() <= 5.0 * (of * share * (1.0 - share)).sqrt()
}

#[test]
fn harmed_packets_are_recovered_and_counted() {
    let _turn = turn();
    let fault = |keys: &str| format!("[[fault]]\nlinks = [\"leaf0-spine0\"]\n{keys}\n");
    let lossy = fault("kind = \"packet-loss\"\nloss = 0.03");
    let all = [
        fault("kind = \"packet-corruption\"\ncorruption = 0.03"),
        fault("kind = \"packet-duplication\"\nduplication = 0.2"),
        fault("kind = \"packet-delay\"\ndelay = \"2ms\"\njitter = \"500us\""),
    ];
    for (name, faults, share) in [("loss", lossy, 0.03), ("damage, copies, delay", all.concat(), 0.0)] {
        let bed = bed("harm-run", 1, &faults);
        let Some((summary, ports)) = carried(&bed) else { return };
        // The receiver compares every byte and drops duplicates.
        assert_eq!(summary["flows"]["finished"].as_u64(), Some(1), "{name}");
        for (port, packets, drops) in &ports {
            let faulted_at = port == "leaf0->spine0" || port == "spine0->leaf0";
            assert!(
                is_share(*drops, *packets, if faulted_at { share } else { 0.0 }),
                "{name}: {port}: {drops} of {packets}"
            );
        }
        // 73 of 2442 packets are affected, plus or minus five deviations of 8.4; lost ACKs may add timeouts.
        let again = summary["counters"]["retransmitted"].as_f64().unwrap();
        println!("{name}: {again} retransmitted, {} s", summary["fct_us"]["max"]);
        assert!((31.0..400.0).contains(&again), "{name}: {again}");
    }
}

#[test]
fn flapping_link_delays_by_its_down_time() {
    let _turn = turn();
    let flaps = "[[fault]]\nkind = \"link-flap\"\nat = \"100ms\"\nperiod = \"300ms\"\ndown_for = \"150ms\"\nflaps = 2\n\
                 links = [\"leaf0-spine0\"]\n";
    let bed = bed("harm-flaps", 1, flaps);
    let Some((summary, _)) = carried(&bed) else { return };
    assert_eq!(summary["flows"]["finished"].as_u64(), Some(1));
    // 10 MB at 180 Mbit/s take 0.456 s with headers, plus 0.3 s while the only path is down.
    let seconds = summary["fct_us"]["max"].as_f64().unwrap() / 1e6;
    assert!((0.74..20.0).contains(&seconds), "{seconds}");
}
