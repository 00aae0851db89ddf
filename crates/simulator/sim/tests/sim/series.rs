//! Time series of ports, flows and load balancers, against arithmetic and the totals, for every mode of execution.

use crate::common::*;
use anabranch_backend::{Measure, Setup};
use anabranch_outcome::{FlowSample, RunResult};
use anabranch_topology::{FaultKind, LinkId};
use anabranch_units::Time;
use std::time::{Duration, Instant};

fn measured(setup: &Setup, interval: Time) -> Setup {
    let links = (0..setup.topology.links.len() as u32).map(LinkId).collect();
    let flows = (0..setup.flows.flows.len() as u32).collect();
    let measure = Measure {
        series_links: links,
        series_flows: flows,
        series_scheme: true,
        series_interval: interval,
        ..Measure::default()
    };
    Setup { measure, ..setup.clone() }
}

/// 200 flows over four transports and schemes, with trimming, PFC, drops and probes.
fn busy() -> Vec<(&'static str, Setup)> {
    let topology = fat_tree(2, 8);
    let flows = || random_flows(&topology, 200, 300_000, 40_000_000, 5);
    let roce = |scheme, profile| roce_setup(topology.clone(), flows(), scheme, profile);
    vec![
        ("prime", setup(topology.clone(), flows(), "prime")),
        ("ecmp with PFC", roce("ecmp", Profile::Lossless)),
        ("hopper", roce("hopper", Profile::Irn)),
        ("conweave", roce("conweave", Profile::ConweaveLossless)),
        ("hf2t", roce("hf2t+letflow", Profile::Lossless)),
    ]
}

#[test]
fn rows_are_the_same_in_every_mode_and_change_no_result() {
    for (name, plain) in busy() {
        let setup = measured(&plain, Time::from_ns(1_300));
        let unmeasured = run(&plain);
        let first = run(&setup);
        assert_eq!(first.fingerprint, unmeasured.fingerprint, "{name}");
        assert_eq!((first.simulated, first.counters), (unmeasured.simulated, unmeasured.counters), "{name}");
        for how in modes() {
            let other = run_as(&setup, how);
            assert_eq!(other.fingerprint, first.fingerprint, "{name} {how:?}");
            assert!(other.series == first.series, "{name} {how:?}: ports");
            assert!(other.flow_series == first.flow_series, "{name} {how:?}: flows");
            assert!(other.scheme_series == first.scheme_series, "{name} {how:?}: load balancers");
        }
    }
}

/// Runs on after the last packet, so that the last samples have all counts.
#[test]
fn the_last_samples_are_the_totals() {
    for (name, plain) in busy() {
        let mut setup = measured(&plain, Time::from_us(3));
        setup.limits.until_all_done = false;
        setup.limits.time_limit = Time::from_ms(3);
        let result = run(&setup);
        for (series, link) in result.series.iter().zip(&result.links) {
            assert_eq!((&series.from, &series.to, series.samples.len()), (&link.from, &link.to, 1_001));
            let last = series.samples.last().unwrap();
            assert_eq!((last.sent_bytes, last.sent_packets), (link.bytes, link.packets), "{name}");
            let counts = (last.ecn_marks, last.trims, last.drops, last.pauses);
            assert_eq!(
                counts,
                (link.ecn_marks.unwrap(), link.trims.unwrap(), link.drops.unwrap(), link.pauses.unwrap()),
                "{name}"
            );
            assert_eq!((last.queue_bytes, last.queue_packets, last.paused), (0, 0, false), "{name}");
            let most = series.samples.iter().map(|s| s.queue_bytes).max().unwrap();
            assert!(most <= link.queue.max_bytes.unwrap());
        }
        for (series, flow) in result.flow_series.iter().zip(&result.flows) {
            let last = series.samples.last().unwrap();
            assert_eq!(last.time, flow.start.unwrap() + flow.fct_ack.unwrap(), "{name} {}", flow.flow_id);
            assert_eq!((last.received_bytes, last.in_flight_bytes), (flow.size_bytes, 0));
            assert_eq!(last.retransmitted_packets, flow.metrics.retransmitted_packets.unwrap());
            assert_eq!(last.out_of_order_packets, flow.metrics.out_of_order_packets.unwrap());
            assert_eq!(last.path_switches, flow.metrics.path_switches.unwrap());
            assert!(
                series.samples.windows(2).all(|w| w[0].time <= w[1].time && w[0].sent_packets <= w[1].sent_packets)
            );
        }
        let sent = result.flow_series.iter().map(|series| series.samples.last().unwrap().sent_packets).sum::<u64>();
        assert_eq!(sent, result.counters.data_packets.unwrap(), "{name}");
        let last = result.scheme_series[0].samples.last().unwrap();
        assert_eq!((last.open_flows, last.finished_flows), (0, 200), "{name}");
        let counted = (last.path_switches, last.retransmitted_packets, last.flowlets, last.reroutes);
        let counters = &result.counters;
        let expected = (
            counters.path_switches.unwrap(),
            counters.retransmitted.unwrap(),
            counters.flowlets.unwrap(),
            counters.reroutes.unwrap(),
        );
        assert_eq!(counted, expected, "{name}");
        assert_eq!(last.added_delay.ps() / 1000, counters.added_delay_ns.unwrap(), "{name}");
    }
}

fn at(result: &RunResult, flow: usize, us: u64) -> FlowSample {
    *result.flow_series[flow].samples.iter().find(|sample| sample.time == Time::from_us(us)).expect("a sample")
}

/// 100 packets over four links of 400 Gb/s and 1 us.
#[test]
fn a_lone_flow_by_arithmetic() {
    let result = run(&measured(&setup(fat_tree(2, 4), flows(&[(0, 7, 100 * 4096, 0)]), "ecmp"), Time::from_us(1)));
    // No event before the start; then packets 0 to 12 start before 1 us (12 * 83.2 = 998.4 ns).
    assert!(result.flow_series[0].samples[0].time == Time::from_us(1), "open from 0 on, seen at 1 us");
    assert_eq!(at(&result, 0, 1).sent_packets, 13);
    assert_eq!(at(&result, 0, 1).paths, 1);
    // Packet k arrives at 4 * (1000 + 83.2) + 83.2 k ns: 0 to 8 before 5 us.
    assert_eq!(at(&result, 0, 4).received_bytes, 0);
    assert_eq!(at(&result, 0, 5).received_bytes, 9 * 4096);
    // The last of 100 packets starts at 8.2368 us; none since 9 us.
    assert_eq!((at(&result, 0, 9).sent_packets, at(&result, 0, 9).paths, at(&result, 0, 10).paths), (100, 1, 0));
    // 13 packets of 4160 B have been sent on the NIC and, from 1.0832 us on, by the leaf: 0 to 11 before 2 us (1083.2 +
    // 11 * 83.2 = 1998.4 ns).
    let sent = |from: &str, to: &str, us: usize| {
        let series = result.series.iter().find(|s| s.from == from && s.to == to).unwrap();
        series.samples[us].sent_bytes
    };
    assert_eq!(sent("host0", "leaf0", 1), 13 * 4160);
    assert_eq!(sent("leaf0", "spine0", 2) + sent("leaf0", "spine1", 2), 12 * 4160);
    // All over one of two uplinks, and acknowledgements back: twice the mean.
    let scheme = &result.scheme_series[0].samples;
    assert_eq!((scheme[1].uplink_imbalance, scheme[2].uplink_imbalance), (None, Some(2.0)));
    assert_eq!((scheme[1].open_flows, scheme[1].finished_flows), (1, 0));
}

/// Two senders to one receiver: the queue of 400 Gb/s grows by 50 kB per microsecond.
#[test]
fn a_queue_by_arithmetic() {
    let two = flows(&[(0, 2, 1 << 20, 0), (1, 2, 1 << 20, 0)]);
    let mut setup = setup(topology("leaf-spine", ""), two, "ecmp");
    setup.fabric.ecn = false;
    let setup = measured(&setup, Time::from_us(1));
    let result = run(&setup);
    let port = result.series.iter().find(|series| series.to == "host2").unwrap();
    let rate = result.links[0].rate_bps;
    let growth = port.samples[4].queue_bytes - port.samples[3].queue_bytes;
    assert!(growth.abs_diff(rate / 8 / 1_000_000) <= 2 * 4160, "{growth} B in a microsecond");
}

/// DCQCN starts at line rate and slows down behind a full port.
#[test]
fn rates_and_pauses_are_sampled() {
    let keys = "leaves=2 hosts_per_leaf=16";
    let incast: Vec<_> = (0..16).map(|src| (src, 20, 400_000, 0)).collect();
    let plain = roce_setup(topology("leaf-spine", keys), flows(&incast), "ecmp", Profile::Lossless);
    let result = run(&measured(&plain, Time::from_us(1)));
    let rates: Vec<u64> = result.flow_series[0].samples.iter().filter_map(|sample| sample.rate_bps).collect();
    assert_eq!(rates[0], result.links[0].rate_bps);
    assert!(rates.iter().min() < rates.first(), "{rates:?}");
    assert!(result.flow_series[0].samples.last().unwrap().marked_acks > 0);
    assert!(result.counters.pfc_pauses.unwrap() > 0);
    assert!(result.series.iter().any(|series| series.samples.iter().any(|sample| sample.paused)));
}

/// A fault a day after the last flow; the samples in between are empty.
#[test]
fn samples_do_not_wait_for_a_fault() {
    let fault = link_fault(FaultKind::LinkDown, Time::from_ms(86_400_000), "leaf0-spine0");
    let plain = with_fault(setup(fat_tree(2, 4), flows(&[(0, 7, 64 << 10, 0)]), "ecmp"), fault);
    let mut setup = measured(&plain, Time::from_us(1));
    setup.limits.time_limit = Time::from_ms(100_000_000);
    let begun = Instant::now();
    let result = anabranch_sim::run(&setup, 1, &mut |_| begun.elapsed() < Duration::from_secs(10)).unwrap();
    assert!(!result.interrupted, "still sampling after ten seconds, at {}", result.simulated);
}
