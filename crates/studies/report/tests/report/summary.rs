//! `summary.json` against manual calculations.

use crate::{
    common,
    common::{flow, meta, result, unfinish},
};
use anabranch_outcome::FlowStatus;
use anabranch_results::{CollectiveMeta, FctKind, Summary, WorkloadMeta};
use anabranch_units::Time;
use serde_json::Value;

fn at_us(us: u64) -> Time {
    Time::from_us(us)
}

#[test]
fn without_flows_statistics_are_null() {
    let json = serde_json::to_value(common::summary(&result(vec![]), &meta("prime", 1))).unwrap();
    assert_eq!(json["fct_us"]["p99"], Value::Null);
    assert_eq!(json["slowdown"]["mean"], Value::Null);
    assert_eq!(json["fct_ratio_max"], Value::Null);
    assert_eq!(json["flows"]["total"], 0);
    assert_eq!(json["fingerprint"], "feed000000000001");
    // 4,000,000 packet-hops in two seconds.
    assert_eq!(json["packet_hops_per_s"], 2e6);
}

#[test]
fn statistics_by_hand() {
    // 300,000 B: ideal 300,000 * 20 ps + 4 us = 10 us. Slowdowns 1 to 5: FCTs 10 to 50 us.
    let flows = (0..5).map(|i| flow(i, 300_000, at_us(u64::from(i)), f64::from(i + 1))).collect();
    let s = common::summary(&result(flows), &meta("prime", 1));
    assert_eq!((s.all.fct_us.mean, s.all.fct_us.p50, s.all.fct_us.max), (Some(30.0), Some(30.0), Some(50.0)));
    // Position 4 * 0.95 = 3.8: 40 + 0.8 * 10.
    assert!((s.all.fct_us.p95.unwrap() - 48.0).abs() < 1e-9);
    assert!((s.all.slowdown.p99.unwrap() - 4.96).abs() < 1e-9);
    assert_eq!(s.all.fct_ratio_max, Some(5.0));
    assert_eq!(s.out_of_order_share(), Some(45.0 / 900.0));
    assert_eq!(serde_json::from_str::<Summary>(&serde_json::to_string(&s).unwrap()).unwrap(), s);
}

#[test]
fn packets_per_ack_matches_hand_count() {
    // 900 arrivals; 310 ACKs and NACKs, of which 10 are the NACKs of ten headers: 900 / 300.
    let mut run = result(vec![flow(0, 300_000, at_us(0), 1.0)]);
    run.counters.acks = Some(310);
    run.conservation.as_mut().unwrap().headers.delivered = 10;
    let summary = common::summary(&run, &meta("prime", 1));
    assert_eq!((summary.packets_per_ack(), summary.counters.packets_per_ack), (Some(3.0), Some(3.0)));
    run.counters.acks = Some(0);
    let summary = common::summary(&run, &meta("prime", 1));
    assert_eq!((summary.packets_per_ack(), summary.counters.packets_per_ack), (None, None));
}

#[test]
fn completion_at_acknowledgement_is_used_on_request() {
    // Ideal to the last acknowledgement: 10 + 4 us; FCT 20 + 4 us.
    let mut meta = meta("prime", 1);
    meta.fct_kind = FctKind::Ack;
    let mut received = flow(1, 300_000, at_us(0), 2.0);
    (received.fct_ack, received.status) = (None, FlowStatus::Received);
    let s = common::summary(&result(vec![flow(0, 300_000, at_us(0), 2.0), received]), &meta);
    assert_eq!(s.all.fct_us.max, Some(24.0));
    assert_eq!(s.all.slowdown.max, Some(24.0 / 14.0));
    assert_eq!((s.all.flows.finished, s.all.flows.unfinished), (1, 1));
}

#[test]
fn unfinished_flows_are_counted_with_a_warning() {
    let mut flows: Vec<_> = (0..4).map(|i| flow(i, 300_000, at_us(0), 2.0)).collect();
    unfinish(&mut flows[1]);
    (flows[2].start, flows[2].fct_rx, flows[2].fct_ack, flows[2].status) = (None, None, None, FlowStatus::NotStarted);
    let s = common::summary(&result(flows), &meta("prime", 1));
    let counts = s.all.flows;
    assert_eq!((counts.total, counts.finished, counts.unfinished), (4, 2, 2));
    assert_eq!((counts.measured, counts.measured_unfinished), (2, 2));
    assert_eq!(s.all.fct_us.mean, Some(20.0));
    // The slowest flow is unknown while some have not finished.
    assert_eq!(s.all.fct_ratio_max, None);
    assert!(s.warnings().iter().any(|w| w.starts_with("2 of 4 measured flows did not finish")), "{:?}", s.warnings());
}

#[test]
fn the_warm_up_counts_from_the_first_flow() {
    // The first flow starts at 100 us; with 50 us of warm-up, flows that start at 150 us or later are measured.
    let starts = [100, 149, 150, 200];
    let flows = starts.iter().zip(0..).map(|(&us, i)| flow(i, 300_000, at_us(us), f64::from(i + 1))).collect();
    let mut meta = meta("prime", 1);
    meta.warmup = at_us(50);
    let s = common::summary(&result(flows), &meta);
    assert_eq!((s.all.flows.total, s.all.flows.finished, s.all.flows.measured), (4, 4, 2));
    assert_eq!((s.all.slowdown.mean, s.all.slowdown.max), (Some(3.5), Some(4.0)));
    assert_eq!(s.warmup_s, 50e-6);
}

#[test]
fn unmeasured_workloads_have_separate_statistics() {
    let mut meta = meta("prime", 1);
    meta.workloads = [("web", true), ("background", false), ("idle", true)]
        .map(|(name, measured)| WorkloadMeta { name: name.to_string(), measured, ..WorkloadMeta::default() })
        .to_vec();
    let mut background = flow(1, 300_000, at_us(0), 9.0);
    background.workload = 1;
    let mut open = flow(2, 300_000, at_us(0), 1.0);
    open.workload = 1;
    unfinish(&mut open);
    let s = common::summary(&result(vec![flow(0, 300_000, at_us(0), 2.0), background, open]), &meta);
    assert_eq!((s.all.flows.total, s.all.flows.measured, s.all.flows.unfinished), (3, 1, 1));
    assert_eq!(s.all.slowdown.max, Some(2.0));
    let of = |name: &str| &s.workloads[name];
    assert_eq!((of("background").slowdown.max, of("background").measured), (Some(9.0), false));
    assert_eq!(of("background").flows.measured_unfinished, 1);
    assert_eq!((of("idle").flows.total, of("idle").slowdown.p50), (0, None));
    assert!(s.warnings()[0].starts_with("1 of 3 flows did not finish; none of them is in"), "{:?}", s.warnings());
}

#[test]
fn violated_conservation_is_a_warning() {
    let mut result = result(vec![flow(0, 1000, at_us(0), 1.0)]);
    result.conservation.as_mut().unwrap().data_packets.delivered -= 1;
    let s = common::summary(&result, &meta("prime", 1));
    assert!(!s.conservation.unwrap().holds);
    assert!(s.warnings().iter().any(|w| w.contains("conservation")));
}

/// A ring all-reduce of 1 MB over 4 ranks that takes 60 us: 2 * 3/4 * 8 Mbit / 60 us = 200 Gbit/s.
#[test]
fn a_collective_has_a_completion_time_and_a_bus_bandwidth() {
    let mut meta = meta("prime", 1);
    let ring = CollectiveMeta {
        name: "ring-allreduce".into(),
        ranks: 4,
        bytes: Some(1_000_000),
        rounds: Some(1),
        bus_factor: 1.5,
    };
    meta.workloads[0] = WorkloadMeta { is_job: true, collective: Some(ring), ..meta.workloads[0].clone() };
    let timed = |id: u32, start: u64, fct: u64| {
        let mut flow = flow(id, 250_000, at_us(start), 1.0);
        (flow.fct_rx, flow.fct_ack) = (Some(at_us(fct - 4)), Some(at_us(fct)));
        flow
    };
    let rows = result(vec![timed(0, 10, 20), timed(1, 40, 30)]);
    let s = common::summary(&rows, &meta);
    let of = &s.collectives[0];
    assert_eq!((of.workload.as_str(), of.rounds, of.abi), ("web", 1, None));
    assert!((of.completion_s.unwrap() - 60e-6).abs() < 1e-15);
    assert!((of.bus_bandwidth_bps.unwrap() - 200e9).abs() < 1.0);
    // An open flow: not done, and no bandwidth.
    let mut open = rows;
    unfinish(&mut open.flows[1]);
    let of = common::summary(&open, &meta).collectives.remove(0);
    assert_eq!((of.completion_s, of.bus_bandwidth_bps, of.rounds), (None, None, 0));
}
