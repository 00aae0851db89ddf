//! Verified collectives over queue pairs of our own libibverbs (`crates/network/wire/tests/fake_verbs.c`).
//! Tests that need a C compiler and libibverbs-dev run with `--ignored`.

use crate::{
    common::{self, Test, is_invalid_usage, others_report_the_failure, own_name, plugin, waits_for_a_suspended_rank},
    fake::Machine,
};
use anabranch_collective::{
    plan::{CollectiveKind, KINDS},
    plugin::{Plugin, VERSIONS},
    rank::Element,
    run::{Outcome, Settings},
};
use nccl_net_anabranch::handle::{Authentication, Carrier, Handle};
use std::{
    net::TcpListener,
    process::{Command, Output},
    time::{Duration, Instant},
};

fn settings(machine: &Machine, kind: CollectiveKind, ranks: usize) -> Settings {
    let mut variables = machine.variables();
    for (name, value) in [("ANABRANCH_RATE", "200Mbps"), ("ANABRANCH_GIVE_UP", "3s")] {
        variables.push((name.into(), value.into()));
    }
    common::settings(kind, ranks, variables)
}

/// Chunks of 64 KiB and 256 KiB in flight.
fn reliable(machine: &Machine, kind: CollectiveKind, ranks: usize, fault: &str) -> Settings {
    let mut of = settings(machine, kind, ranks);
    of.variables.retain(|(name, _)| name != "ANABRANCH_DATAPATH");
    for (name, value) in [
        ("ANABRANCH_DATAPATH", "rc"),
        ("ANABRANCH_SCHEME", "qp-spray"),
        ("ANABRANCH_SET", "wire.chunk=64KiB;wire.chunks_under_way=4;wire.calibrations=2"),
        ("FAKE_FAULT", fault),
    ] {
        of.variables.push((name.into(), value.into()));
    }
    of
}

/// Hardware writes to and reads from the ranks' memory, which alone is registered: the library aborts at an access beside it.
fn every_collective_over_reliable_queue_pairs() {
    let machine = Machine::with_library("reliable");
    for (number, (_, kind)) in KINDS.iter().enumerate() {
        let abi = Some(VERSIONS[number % VERSIONS.len()]);
        fine(&Settings { abi, ..reliable(&machine, *kind, 2 + number % 3, "") });
    }
}

/// The queue pairs of a label die, or their acknowledgements do, once 8 MB have left a rank, in the second round: other labels carry the rest, each byte once.
fn queue_pairs_fail() {
    for fault in ["dead", "deaf"] {
        let machine = Machine::with_library(fault);
        let of = Settings { bytes: 4 << 20, ..reliable(&machine, CollectiveKind::Ring, 3, fault) };
        let outcome = fine(&Settings { rows: true, ..of });
        let counters = outcome.rounds.iter().flat_map(|round| &round.rows).filter_map(|row| row.counters);
        let timeouts: u64 = counters.map(|counters| counters.timeouts).sum();
        assert!(fault == "deaf" || timeouts > 0, "{timeouts} chunks failed");
    }
}

fn a_rank_of_reliable_queue_pairs_is_killed() {
    let machine = Machine::with_library("killed-rc");
    let of = Settings { bytes: 24 << 20, ..reliable(&machine, CollectiveKind::Ring, 3, "") };
    others_report_the_failure(of, Duration::from_millis(200));
}

fn suspended_rank_of_reliable_queue_pairs() {
    let machine = Machine::with_library("still-rc");
    let of = Settings { bytes: 4 << 20, ..reliable(&machine, CollectiveKind::Ring, 3, "") };
    waits_for_a_suspended_rank(of, Duration::from_millis(20));
}

fn fine(settings: &Settings) -> Outcome {
    let outcome = common::fine(settings);
    // The device reports 25 Gbit/s, and its interface nothing.
    assert_eq!((outcome.device.0.as_str(), outcome.device.1), ("fake0", 25_000), "{}", settings.kind.name());
    outcome
}

fn every_collective() {
    let machine = Machine::with_library("collectives");
    let ranks = [2, 3, 4];
    for (number, (_, kind)) in KINDS.iter().enumerate() {
        let at = number % VERSIONS.len();
        let element = if number.is_multiple_of(2) { Element::Float } else { Element::Int };
        let of = Settings { abi: Some(VERSIONS[at]), element, ..settings(&machine, *kind, ranks[number % 3]) };
        assert_eq!(fine(&of).abi, VERSIONS[at]);
    }
}

/// One of 53 messages is lost, including ACKs and connection requests and replies.
fn messages_are_lost() {
    let machine = Machine::with_library("lossy");
    let mut of = settings(&machine, CollectiveKind::Ring, 3);
    of.variables.push(("FAKE_FAULT".into(), "lossy".into()));
    let outcome = fine(&Settings { rows: true, ..of });
    let counters = outcome.rounds[0].rows.iter().filter_map(|row| row.counters);
    // Each rank sends 1 MiB times two times two thirds: 1,444 packets of 968 B, some of them retransmitted.
    let (packets, again) =
        counters.fold((0, 0), |sum, counters| (sum.0 + counters.packets, sum.1 + counters.retransmitted));
    assert!(packets > 3 * 1444 && again > packets / 200, "{again} of {packets}");
}

/// A round takes a second at 200 Mbit/s at least.
fn a_rank_is_killed() {
    let machine = Machine::with_library("killed");
    let of = Settings { bytes: 24 << 20, ..settings(&machine, CollectiveKind::Ring, 3) };
    others_report_the_failure(of, Duration::from_millis(200));
}

/// A round takes 200 ms at least.
fn suspended_rank_does_not_stop_the_job() {
    let machine = Machine::with_library("still");
    let of = Settings { bytes: 4 << 20, ..settings(&machine, CollectiveKind::Ring, 3) };
    waits_for_a_suspended_rank(of, Duration::from_millis(20));
}

fn ranks_of_two_datapaths() {
    let machine = Machine::with_library("two");
    let place = |datapath: &str| ["env".into(), format!("ANABRANCH_DATAPATH={datapath}").into()].to_vec();
    let mut of = settings(&machine, CollectiveKind::Pairs, 2);
    of.variables.retain(|(name, _)| name != "ANABRANCH_DATAPATH");
    of.variables.push(("ANABRANCH_MTU".into(), "968B".into()));
    of.places = vec![place("udp"), place("uc")];
    is_invalid_usage(&of);
    // `auto` is verbs where there is a device, and both agree.
    of.places = vec![place("auto"), place("uc")];
    fine(&of);
    of.places = vec![place("rc"), place("uc")];
    is_invalid_usage(&of);
}

fn again(task: &str, variables: &[(String, String)], arguments: &[&str]) -> Output {
    let variables = variables.iter().map(|(name, value)| (name, value));
    Command::new(own_name()).arg(task).args(arguments).envs(variables).output().expect("a process")
}

/// No call blocks, and each peer gets an error in time, if the accepting peer is silent or has another datapath.
fn unresponsive_peer_blocks_no_call() {
    let machine = Machine::with_library("silent");
    let mut variables = machine.variables();
    variables.push(("ANABRANCH_GIVE_UP".into(), "1s".into()));
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut handle = Handle {
        carrier: Carrier::Uc,
        at: silent.local_addr().expect("it"),
        others: [None; 7],
        labels: 4,
        payload: 960,
        key: 7,
        authentication: Authentication::Off,
    };
    let said = |output: &Output| {
        let (said, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (said.into_owned(), log.into_owned())
    };
    let connect = |handle: &Handle| {
        let hex: String = handle.write().iter().map(|byte| format!("{byte:02x}")).collect();
        said(&again("connect", &variables, &[&hex]))
    };
    let (code, log) = connect(&handle);
    let fields: Vec<&str> = code.split_whitespace().collect();
    let [code, calls, longest, all, closing] = fields[..] else { panic!("{code}, {log}") };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    assert_eq!(code, "ncclRemoteError", "{log}");
    // The longest call opens a device and allocates memory.
    assert!(number(calls) > 10_000 && number(longest) < 100_000, "{calls} calls, the longest took {longest} us");
    assert!((1_000_000..4_000_000).contains(&number(all)), "{all} us");
    // The last listener waits 100 ms for pending replies, and no longer for an unresponsive peer.
    assert!(number(closing) < 250_000, "{closing} us");
    assert_eq!(log.matches("did not reply").count(), 1, "{log}");
    assert!(log.contains("timed out after 1 s"), "{log}");
    handle.carrier = Carrier::Udp;
    let (code, log) = connect(&handle);
    assert!(code.starts_with("ncclInvalidUsage"), "{code}");
    assert!(log.contains("uses udp and this one uc") && log.contains("ANABRANCH_DATAPATH"), "{log}");
}

/// Connects until that fails. Prints the error, the number of calls, the duration of the longest, of all, and of
/// closing a listener meanwhile, in microseconds.
pub(crate) fn connect(hex: &str) {
    let plugin = Plugin::load(&plugin(), None).expect("a plugin");
    let mut handle = [0; 128];
    for (byte, at) in handle.iter_mut().zip(0..) {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("a byte");
    }
    let (_, listener) = plugin.listen(0).expect("a listener");
    let (began, mut calls, mut longest, mut closing) = (Instant::now(), 0u64, Duration::ZERO, Duration::ZERO);
    loop {
        if calls == 1 {
            let called = Instant::now();
            plugin.close_listener(listener).expect("closed");
            closing = called.elapsed();
        }
        let called = Instant::now();
        let answer = plugin.connect(0, &mut handle);
        (calls, longest) = (calls + 1, longest.max(called.elapsed()));
        match answer {
            Ok(None) => {}
            Ok(Some(_)) => panic!("connected"),
            Err(error) => {
                let code = error.to_string().rsplit(' ').next().expect("a code").to_string();
                let all = [longest, began.elapsed(), closing].map(|time| time.as_micros().to_string());
                println!("{code} {calls} {}", all.join(" "));
                return;
            }
        }
    }
}

/// `init` reports it in one line, and `auto` uses UDP.
fn without_a_device() {
    let machine = Machine::new("without");
    let load = |change: &[(&str, &str)]| {
        let mut variables = machine.variables();
        for (name, value) in change {
            variables.retain(|(known, _)| known != name);
            variables.push(((*name).into(), (*value).into()));
        }
        let output = again("load", &variables, &[]);
        (
            String::from_utf8_lossy(&output.stdout).trim().to_string(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let refused = |change: &[(&str, &str)], words: &[&str]| {
        let (code, log) = load(change);
        assert_eq!(code, "init: ncclInvalidUsage", "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
        let expected = ["ANABRANCH_DATAPATH=uc", "allowed are udp, uc, rc and auto"];
        assert!(words.iter().chain(&expected).all(|word| log.contains(word)), "{log}");
    };
    refused(&[("SYSFS_PATH", "/no/such/folder")], &["lo has no RDMA device"]);
    refused(&[("SYSFS_PATH", "/no/such/folder"), ("ANABRANCH_IFNAME", "^docker,virbr")], &["none of the interfaces"]);
    // The file is no library.
    std::fs::write(machine.folder().join("libibverbs.so.1"), "nothing").expect("a file");
    refused(&[], &["lo: ", "libibverbs1", "ibverbs-providers"]);
    let (device, log) = load(&[("ANABRANCH_DATAPATH", "auto"), ("NCCL_DEBUG", "INFO")]);
    assert_eq!(device, "lo", "{log}");
    assert!(log.contains("lo is used with UDP, since its RDMA device cannot be"), "{log}");
    let (device, _) = load(&[("ANABRANCH_DATAPATH", "auto"), ("SYSFS_PATH", "/no/such/folder")]);
    assert_eq!(device, "lo");
    let (code, log) = load(&[("ANABRANCH_DATAPATH", "us")]);
    assert_eq!(code, "init: ncclInvalidUsage");
    assert!(log.contains("did you mean `uc`?") && log.contains("udp, uc, rc or auto"), "{log}");
}

/// The second may not lock the memory of a peer: 256 receives of each of four labels and 128 sends, 1,024 B each, 1.2 MB.
fn devices_that_cannot_be_used() {
    let machine = Machine::with_library("no-device");
    for (name, value, word) in
        [("FAKE_DEVICES", "0", "there is no RDMA device"), ("FAKE_LOCKED", "1100000", "ulimit -l")]
    {
        let mut variables = machine.variables();
        variables.push((name.into(), value.into()));
        let output = again("load", &variables, &[]);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(String::from_utf8_lossy(&output.stdout).contains("init: ncclInvalidUsage"), "{log}");
        assert!(log.contains(word) && log.contains("allowed are udp, uc, rc and auto"), "{log}");
        variables.push(("ANABRANCH_DATAPATH".into(), "auto".into()));
        let output = again("load", &variables, &[]);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "lo", "{name}");
    }
    let mut variables = machine.variables();
    variables.push(("FAKE_LOCKED".into(), "1200000".into()));
    assert_eq!(String::from_utf8_lossy(&again("load", &variables, &[]).stdout).trim(), "fake0");
}

pub(crate) fn load() {
    match Plugin::load(&plugin(), None) {
        Ok(plugin) => println!("{}", plugin.properties(0).expect("a device").name),
        Err(error) => println!("{error}"),
    }
}

pub(crate) const TESTS: &[Test] = &[
    ("verbs::without_a_device", false, without_a_device),
    ("verbs::every_collective", true, every_collective),
    ("verbs::messages_are_lost", true, messages_are_lost),
    ("verbs::a_rank_is_killed", true, a_rank_is_killed),
    ("verbs::suspended_rank_does_not_stop_the_job", true, suspended_rank_does_not_stop_the_job),
    ("verbs::ranks_of_two_datapaths", true, ranks_of_two_datapaths),
    ("verbs::unresponsive_peer_blocks_no_call", true, unresponsive_peer_blocks_no_call),
    ("verbs::devices_that_cannot_be_used", true, devices_that_cannot_be_used),
    ("verbs::every_collective_over_reliable_queue_pairs", true, every_collective_over_reliable_queue_pairs),
    ("verbs::queue_pairs_fail", true, queue_pairs_fail),
    ("verbs::a_rank_of_reliable_queue_pairs_is_killed", true, a_rank_of_reliable_queue_pairs_is_killed),
    ("verbs::suspended_rank_of_reliable_queue_pairs", true, suspended_rank_of_reliable_queue_pairs),
];
