//! Traces of flows and captures of links.

use crate::common::*;
use anabranch_backend::{Measure, Setup};
use anabranch_outcome::{PacketKind, RunResult, TraceEvent, TraceRow};
use anabranch_settings::Never;
use anabranch_topology::{FaultKind, FaultParameters};
use anabranch_units::Time;

const ROOM: u64 = 10_000_000;

fn watched(setup: &Setup) -> Setup {
    let measure = Measure {
        trace_flows: (0..setup.flows.flows.len() as u32).collect(),
        trace_scheme: true,
        trace_limit: ROOM,
        capture_links: setup.topology.link_ids().collect(),
        capture_limit: ROOM,
        ..setup.measure.clone()
    };
    Setup { measure, ..setup.clone() }
}

fn four_hosts() -> anabranch_topology::Topology {
    let keys = "leaves=2 spines=1 hosts_per_leaf=4 link_rate=400Gbps link_delay=1us";
    topology("leaf-spine", keys)
}

/// Row as text: time, event, packet, link, when and before what it joined.
fn words(result: &RunResult, row: &TraceRow) -> String {
    let link = &result.links[row.link as usize];
    let joined = row.joined.map_or("-".into(), |time| time.ps().to_string());
    let queue = row.queue_bytes.map_or("-".into(), |bytes| bytes.to_string());
    let (event, packet) = (row.event.word(), row.packet.word());
    format!("{} {event} {packet} {}->{} {joined} {queue}", row.time.ps(), link.from, link.to)
}

/// 4096 + 64 B take 83.2 ns on a link and 64 B 1.28 ns; a link delays by 1 us. Store and forward.
#[test]
fn a_packet_and_its_acknowledgement() {
    let result = run(&watched(&setup(four_hosts(), flows(&[(0, 4, 4096, 0)]), "ecmp")));
    let (data, ack) = (1_083_200, 1_001_280);
    let up = ["host0->leaf0", "leaf0->spine0", "spine0->leaf1", "leaf1->host4"];
    let down = ["host4->leaf1", "leaf1->spine0", "spine0->leaf0", "leaf0->host0"];
    let mut expected = vec![];
    for (start, step, packet, links) in [(0, data, "data", up), (4 * data, ack, "ack", down)] {
        for (hop, link) in links.iter().enumerate() {
            let time = start + step * hop as u64;
            expected.push(match hop {
                0 => format!("{time} send {packet} {link} - -"),
                _ => format!("{time} hop {packet} {link} {time} 0"),
            });
        }
        expected.push(format!("{} receive {packet} {} - -", start + 4 * step, links[3]));
    }
    // Reception of the data and transmission of its acknowledgement have the same time.
    let mut found: Vec<String> = result.watched.trace.iter().map(|row| words(&result, row)).collect();
    for rows in [&mut found, &mut expected] {
        rows.sort_by_key(|text| {
            text.split_once(' ').map(|(time, rest)| (time.parse::<u64>().unwrap(), rest.to_string()))
        });
    }
    assert_eq!(found, expected);
    assert!(result.watched.trace.iter().filter(|row| row.packet == PacketKind::Ack).all(|r| r.acked_below == Some(1)));
    assert!(!result.watched.trace_cut);
}

/// Three hosts send a packet each to a fourth: one leaves its leaf at once, the next waits with none before it, the
/// last finds one waiting.
#[test]
fn waiting_packets_are_recorded() {
    let result =
        run(&watched(&setup(four_hosts(), flows(&[(0, 3, 4096, 0), (1, 3, 4096, 0), (2, 3, 4096, 0)]), "ecmp")));
    let hops = result.watched.trace.iter().filter(|row| row.event == TraceEvent::Hop && row.packet == PacketKind::Data);
    let times: Vec<_> = hops.map(|r| (r.time.ps(), r.joined.unwrap().ps(), r.queue_bytes.unwrap())).collect();
    let (joined, wire) = (1_083_200, 83_200);
    assert_eq!(times, [(joined, joined, 0), (joined + wire, joined, 0), (joined + 2 * wire, joined, 4160)]);
}

/// Setups that together mark, trim, drop, lose, pause, probe, reorder and change paths.
fn setups() -> Vec<(&'static str, Setup)> {
    let fault = |setup: Setup, kind, loss, links: &[&str]| {
        let links = links.iter().map(ToString::to_string).collect();
        let at = Time::from_us(7);
        let known = Never::Value(Time::from_us(9));
        let detect_after = if kind == FaultKind::LinkDown { known } else { Never::Never };
        with_fault(setup, FaultParameters { kind, loss, at, links, detect_after, ..FaultParameters::default() })
    };
    let incast = || {
        let senders: Vec<_> = (0..24).map(|src| (src, 31, 200_000, u64::from(src) * 1000)).collect();
        flows(&senders)
    };
    let small = || fat_tree(2, 8);
    let some = ["leaf0-spine1", "leaf1-spine0"];
    let all = ["leaf0-spine0", "leaf0-spine1", "leaf0-spine2", "leaf0-spine3"];
    let mut coin = setup(small(), incast(), "prime");
    set_keys(&mut coin.fabric, "trim=coin");
    let mut dropping = setup(small(), incast(), "reps");
    set_keys(&mut dropping.fabric, "trimming=false");
    let guided = topology("dragonfly", "p=2 a=4 h=2");
    let random = |seed| random_flows(&leaf_spine_128(), 60, 300_000, 20_000_000, seed);
    let many = |most| random_flows(&small(), 60, most, 20_000_000, 4);
    let across = permutation(&guided, 100_000, 1);
    vec![
        ("coin", coin),
        ("dropping", dropping),
        ("enqueue", {
            let mut setup = setup(small(), incast(), "ops");
            set_keys(&mut setup.fabric, "ecn_mark_at=enqueue");
            setup
        }),
        ("down", fault(setup(small(), many(400_000), "prime"), FaultKind::LinkDown, 0.0, &some)),
        ("loss", fault(setup(small(), many(400_000), "reps"), FaultKind::PacketLoss, 0.05, &some)),
        ("cut off", {
            let mut setup = fault(setup(small(), many(400_000), "ops"), FaultKind::LinkDown, 0.0, &all);
            setup.limits.time_limit = Time::from_us(100);
            setup
        }),
        ("hopper", roce_setup(leaf_spine_128(), random(5), "hopper", Profile::Irn)),
        ("pfc", roce_setup(small(), incast(), "ecmp", Profile::Lossless)),
        ("conweave", roce_setup(leaf_spine_128(), random(6), "conweave", Profile::ConweaveIrn)),
        ("recorded-pfc", roce_setup(leaf_spine_128(), random(7), "conweave", Profile::ConweaveLossless)),
        ("guided", spritz(guided, across, "spritz-spray-w")),
        ("limit", {
            let mut setup = setup(small(), incast(), "prime");
            setup.limits.until_all_done = false;
            setup.limits.time_limit = Time::from_ps(31_415_926);
            setup
        }),
    ]
}

#[test]
fn tracing_is_passive_and_deterministic() {
    for (name, setup) in setups() {
        let plain = run(&setup);
        let setup = watched(&setup);
        let first = run(&setup);
        assert!(first.watched.trace.len() > 1000, "{name}: {} rows", first.watched.trace.len());
        assert_eq!(plain.fingerprint, first.fingerprint, "{name}");
        for how in modes() {
            let other = run_as(&setup, how);
            assert_eq!(first.fingerprint, other.fingerprint, "{name}, {how:?}");
            assert!(first.watched == other.watched, "{name}, {how:?}");
        }
    }
}

/// The rows agree with the independent counters.
#[test]
fn rows_and_packets_match_counters() {
    let mut seen = std::collections::BTreeSet::new();
    for (name, setup) in setups() {
        let result = run(&watched(&setup));
        let rows = |event| result.watched.trace.iter().filter(move |row: &&TraceRow| row.event == event);
        let counters = &result.counters;
        seen.extend(result.watched.trace.iter().map(|row| row.event.word()));
        seen.extend(result.watched.trace.iter().map(|row| row.packet.word()));
        assert_eq!(rows(TraceEvent::Mark).count() as u64, counters.ecn_marked.unwrap(), "{name}");
        assert_eq!(rows(TraceEvent::Trim).count() as u64, counters.trimmed.unwrap(), "{name}");
        assert_eq!(rows(TraceEvent::PathChange).count() as u64, counters.path_switches.unwrap(), "{name}");
        let lost = [TraceEvent::Drop, TraceEvent::Loss, TraceEvent::NoRoute].map(|event| rows(event).count() as u64);
        assert_eq!(lost.iter().sum::<u64>(), counters.dropped.unwrap(), "{name}");
        let data = rows(TraceEvent::Send).filter(|row| row.packet == PacketKind::Data);
        assert_eq!(data.clone().count() as u64, counters.data_packets.unwrap(), "{name}");
        assert_eq!(data.filter(|row| row.retransmission).count() as u64, counters.retransmitted.unwrap(), "{name}");
        let arrived = rows(TraceEvent::Receive).filter(|row| row.packet == PacketKind::Data).count() as u64;
        assert_eq!(arrived, result.conservation.unwrap().data_packets.delivered, "{name}");
        let mut marks = vec![0; result.links.len()];
        rows(TraceEvent::Mark).for_each(|row| marks[row.link as usize] += 1);
        assert_eq!(result.watched.captures.len(), result.links.len());
        for (number, (capture, link)) in result.watched.captures.iter().zip(&result.links).enumerate() {
            let started =
                result.watched.trace.iter().filter(|row| {
                    row.link as usize == number && matches!(row.event, TraceEvent::Send | TraceEvent::Hop)
                });
            let pauses = capture.packets.iter().filter(|packet| packet.kind == PacketKind::Pause).count();
            seen.extend((pauses > 0).then_some("pause"));
            assert_eq!((started.count() + pauses) as u64, link.packets, "{name}: {}->{}", link.from, link.to);
            assert_eq!(capture.packets.len() as u64, link.packets, "{name}: {}->{}", link.from, link.to);
            let bytes: u64 = capture.packets.iter().map(|packet| u64::from(packet.size_bytes)).sum();
            assert_eq!(bytes, link.bytes, "{name}: {}->{}", link.from, link.to);
            assert!(capture.packets.is_sorted_by_key(|packet| packet.time));
            assert_eq!(marks[number], link.ecn_marks.unwrap(), "{name}: {}->{}", link.from, link.to);
        }
    }
    let words = "ack data drop header hop loss mark nack no-way path-change pause probe probe-reply receive send \
                 switch-control trim";
    assert_eq!(seen.into_iter().collect::<Vec<_>>().join(" "), words);
}

#[test]
fn a_few_flows_are_a_part_of_all() {
    for (name, setup) in setups() {
        let whole = run(&watched(&setup)).watched.clone();
        let some = Measure { trace_flows: vec![3, 11], trace_scheme: true, trace_limit: ROOM, ..Measure::default() };
        let few = run(&Setup { measure: some, ..setup }).watched.clone();
        let expected: Vec<TraceRow> = whole.trace.into_iter().filter(|row| [3, 11].contains(&row.flow_id)).collect();
        let schemes = whole.schemes.into_iter().filter(|row| [3, 11].contains(&row.call.flow)).collect::<Vec<_>>();
        assert!(few.schemes == schemes, "{name}");
        assert!(!expected.is_empty() && few.captures.is_empty(), "{name}");
        assert!(few.trace == expected, "{name}");
    }
}

#[test]
fn limit_keeps_first_rows() {
    let (_, setup) = setups().swap_remove(0);
    let whole = watched(&setup);
    let (all, calls) = (run(&whole).watched.trace.clone(), run(&whole).watched.schemes.clone());
    for limit in [1, 1000, all.len() as u64 / 2, all.len() as u64 - 1, all.len() as u64] {
        let measure = Measure { trace_limit: limit, ..whole.measure.clone() };
        let short = Setup { measure, ..setup.clone() };
        for threads in [1, 2, 3] {
            let found = run_on(&short, threads).watched.clone();
            assert_eq!(found.trace_cut, limit < all.len() as u64);
            assert!(found.trace == all[..limit as usize], "{limit} rows, {threads} threads");
            assert_eq!(found.schemes_cut, limit < calls.len() as u64);
            let calls = &calls[..calls.len().min(limit as usize)];
            assert!(found.schemes == calls, "{limit} calls, {threads} threads");
        }
    }
}

#[test]
fn a_capture_that_is_too_large_is_refused() {
    let (_, setup) = setups().swap_remove(0);
    let measure = Measure { capture_limit: 10, ..watched(&setup).measure };
    let error = refused(&Setup { measure, ..setup });
    assert!(matches!(error, anabranch_backend::RunError::Setup(_)), "{error}");
    assert!(error.to_string().contains("more than 10 packets"), "{error}");
}
