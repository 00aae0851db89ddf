//! Faults, time limits, triggers and measurements in whole runs, which also check conservation.

use crate::{common::*, fastest::Fastest};
use anabranch_backend::{Measure, Setup};
use anabranch_lb::{Call, CallEvent, registry::HostParameters};
use anabranch_outcome::{FlowStatus, RunResult};
use anabranch_settings::{Auto, Never};
use anabranch_topology::{Affects, FaultKind, FaultParameters};
use anabranch_units::{Rate, Time};
use anabranch_workload::{Start, Trigger, TriggerId, TriggerKind};
use proptest::prelude::*;

#[test]
fn degraded_link_slows_later_packets() {
    // Ten packets; at 300 ns the host's link falls to 200 Gb/s. Packets 0 to 3 start at 0, 83.2, 166.4, 249.6 ns;
    // packets 4 to 9 take 166.4 ns each and pace the rest of the path.
    let mut fault = link_fault(FaultKind::LinkDegrade, Time::from_ns(300), "host0->leaf0");
    fault.rate = Some(Rate::gbps(200));
    let setup = with_fault(unconstrained(setup(two_leaves(), flows(&[(0, 2, 10 * 4096, 0)]), "ecmp")), fault);
    let rx = 4 * WIRE + 6 * 2 * WIRE + 3 * WIRE + 4 * DELAY;
    assert_eq!(run(&setup).flows[0].fct_rx, Some(Time::from_ps(rx)));
}

/// Rates of the two paths, and the path of every packet: path 1 of two equal ones, path 0 once a degradation of path 1 is detected
/// at 5 us, path 1 again once the cut of path 0 is detected at 15 us. A scheme that does not read them receives none.
#[test]
fn rates_of_paths_change_once_detected() {
    let graph = topology("leaf-spine", "leaves=2 spines=2 hosts_per_leaf=1 link_rate=400Gbps link_delay=1us");
    let mut slow = link_fault(FaultKind::LinkDegrade, Time::from_us(2), "spine1->leaf1");
    (slow.rate, slow.detect_after) = (Some(Rate::gbps(100)), Never::Value(Time::from_us(3)));
    let mut cut = link_fault(FaultKind::LinkDown, Time::from_us(12), "leaf0->spine0");
    cut.detect_after = Never::Value(Time::from_us(3));
    let setup = with_fault(with_fault(setup(graph, flows(&[(0, 1, 300 * 4096, 0)]), "co-prime"), slow), cut);
    let traced = |host: HostParameters| {
        let mut setup = setup.clone();
        setup.load_balancers[0].host = host;
        (setup.measure.trace_flows, setup.measure.trace_scheme, setup.measure.trace_limit) = (vec![0], true, u64::MAX);
        run(&setup).watched.schemes.iter().map(|row| row.call.clone()).collect::<Vec<_>>()
    };
    let calls = traced(HostParameters::external::<Fastest>());
    let gbps = |rates: &[Rate]| rates.iter().map(|rate| rate.0 / 1_000_000_000).collect::<Vec<_>>();
    let told = |call: &Call| match &call.event {
        CallEvent::Open(flow) => Some((call.time, gbps(flow.info().paths.rates))),
        CallEvent::RatesChanged(rates) => Some((call.time, gbps(rates))),
        _ => None,
    };
    let at = Time::from_us;
    let expected = [(at(0), vec![400, 400]), (at(5), vec![400, 100]), (at(15), vec![0, 100])];
    assert_eq!(calls.iter().filter_map(told).collect::<Vec<_>>(), expected);
    for call in calls.iter().filter(|call| call.psn().is_some() && call.word() == "send") {
        let path = if (at(5)..at(15)).contains(&call.time) { 0 } else { 1 };
        assert_eq!(call.tag(), Some(path), "{call:?}");
    }
    let others = traced(HostParameters::named("co-prime").unwrap());
    assert!(!others.iter().any(|call| matches!(call.event, CallEvent::RatesChanged(_))));
    // The degradation is no change of paths for it: one call, for the cut.
    assert_eq!(others.iter().filter(|call| call.word() == "paths").count(), 1);
}

#[test]
fn packets_lost_on_a_dead_link_time_out_and_are_retransmitted() {
    let down = link_fault(FaultKind::LinkDown, Time::ZERO, "leaf0-spine0");
    let up = link_fault(FaultKind::LinkUp, Time::from_us(200), "leaf0-spine0");
    let mut setup = with_fault(with_fault(setup(two_leaves(), flows(&[(0, 2, 4096, 0)]), "ecmp"), down), up);
    set_keys(uet(&mut setup), "rto=50us");
    let result = run(&setup);
    // Sent at 0, 50, 100, 150 (reaches the dead link after 1.0832 us each time) and at 200 us, which passes.
    let one_way = 4 * (WIRE + DELAY);
    assert_eq!(result.flows[0].fct_rx, Some(Time::from_us(200) + Time::from_ps(one_way)));
    assert_eq!((result.counters.timeouts.unwrap(), result.counters.dropped.unwrap()), (4, 4));
    assert_eq!(result.conservation.unwrap().data_packets.dropped, 4);
}

#[test]
fn detection_removes_dead_link_from_tables() {
    let topology = fat_tree(2, 8);
    let set = permutation(&topology, 400 * 4096, 4);
    for scheme in ["ecmp", "ops", "prime", "reps"] {
        let fault =
            FaultParameters { count: 2, detect_after: Never::Value(Time::from_us(10)), ..FaultParameters::default() };
        let setup = with_fault(setup(topology.clone(), set.clone(), scheme), fault);
        let result = run(&setup);
        assert!(result.flows.iter().all(|f| f.fct_ack.is_some()), "{scheme}");
        for fault in &setup.faults {
            for link in &fault.links {
                let bytes = result.links[link.0 as usize].bytes;
                // Packets queued or sent within the first 10 us; a full share is 1.6 MB.
                assert!(bytes < 1_000_000, "{scheme}: {bytes} B over a dead link");
            }
        }
        run_in_every_mode(&setup, scheme);
    }
}

#[test]
fn load_of_dead_uplink_follows_remap() {
    // One of leaf 0's four uplinks is dead and removed from the tables. Its four hosts send 300 packets each to other
    // leaves. `mod` takes indices 0 to 3 modulo three: 0 and 3 share an uplink (shares 1/2, 1/4, 1/4). `skip` notifies
    // the hosts, which exclude the dead one: a third each. CO-PRIME is exact to one pass per flow.
    let topology = fat_tree(2, 8);
    let set = permutation(&topology, 300 * 4096, 4);
    let loads = |remap: &str| {
        let down = link_fault(FaultKind::LinkDown, Time::ZERO, "leaf0-spine1");
        let fault = FaultParameters { detect_after: Never::Value(Time::ZERO), ..down };
        let mut setup = with_fault(setup(topology.clone(), set.clone(), "co-prime"), fault);
        set_keys(setup.load_balancers[0].switch.parameters_mut(), &format!("remap={remap}"));
        let setup = unconstrained(setup);
        let result = run(&setup);
        let uplinks = result.links.iter().filter(|link| link.from == "leaf0" && link.direction == "up");
        // With the acknowledgements of other flows: 64 B for every four packets.
        let mut packets: Vec<u64> = uplinks.map(|link| link.bytes / 4160).collect();
        packets.sort_unstable();
        packets
    };
    for (remap, expected) in [("mod", [0, 300, 300, 600]), ("skip", [0, 400, 400, 400])] {
        let packets = loads(remap);
        let near = packets.iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= 8);
        assert!(near, "{remap}: {packets:?} packets, expected {expected:?}");
    }
}

#[test]
fn acks_with_their_own_entropy_value_avoid_a_dead_link() {
    // One uplink of each leaf is dead, undetected. Under `ar` a flow has one entropy value: its acknowledgements always
    // or never use the dead link. With fresh values three of four get through.
    let topology = fat_tree(2, 8);
    let set = permutation(&topology, 20 * 4096, 4);
    let unfinished = |entropy: &str| {
        let mut setup = setup(topology.clone(), set.clone(), "ar");
        for leaf in 0..8 {
            let down = link_fault(FaultKind::LinkDown, Time::ZERO, &format!("leaf{leaf}-spine1"));
            setup = with_fault(setup, FaultParameters { detect_after: Never::Never, ..down });
        }
        set_keys(uet(&mut setup), &format!("ack_entropy={entropy}"));
        setup.limits.time_limit = Time::from_ms(5);
        run(&setup).flows.iter().filter(|flow| flow.fct_ack.is_none()).count()
    };
    assert!(unfinished("echo") > 0);
    assert_eq!(unfinished("fresh"), 0);
}

#[test]
fn trims_at_the_last_hop_can_be_ignored() {
    // Four hosts of four leaves send to one: packets are trimmed only at the host's own port. No path causes it, and a
    // PRIME that ignores such trims sends the same as CO-PRIME.
    let topology = fat_tree(2, 8);
    let set = flows(&[4, 8, 12, 16].map(|src| (src, 0, 1 << 20, 0)));
    let result = |scheme: &str, trims: &str| {
        let mut setup = setup(topology.clone(), set.clone(), scheme);
        set_keys(&mut setup.fabric, "ecn=false");
        set_keys(uet(&mut setup), &format!("last_hop_trims={trims}"));
        run(&setup)
    };
    let oblivious = result("co-prime", "blame");
    let trims = |link: &&anabranch_outcome::LinkRow| link.trims.unwrap() > 0;
    let trimming: Vec<&str> = oblivious.links.iter().filter(trims).map(|link| link.to.as_str()).collect();
    assert_eq!(trimming, ["host0"]);
    assert_eq!(result("prime", "ignore").fingerprint, oblivious.fingerprint);
    assert_ne!(result("prime", "blame").fingerprint, oblivious.fingerprint);
}

#[test]
fn a_lossy_link_loses_its_share() {
    // 20,000 packets at 2 %: 400 expected, standard deviation 19.8; five of them is 99.
    let mut fault = link_fault(FaultKind::PacketLoss, Time::ZERO, "leaf0->spine0");
    fault.loss = 0.02;
    fault.affects = anabranch_topology::Affects::Data;
    let setup = with_fault(setup(two_leaves(), flows(&[(0, 2, 20_000 * 4096, 0)]), "ecmp"), fault);
    let result = run(&setup);
    assert!(result.counters.dropped.unwrap().abs_diff(408) < 110, "{:?}", result.counters);
    assert_eq!(result.counters.dropped.unwrap(), result.conservation.unwrap().data_packets.dropped);
    assert!(result.flows[0].fct_ack.is_some());
}

#[test]
fn time_limit_leaves_packets_in_flight() {
    let mut setup = setup(fat_tree(2, 8), permutation(&fat_tree(2, 8), 4 << 20, 1), "ops");
    setup.limits.time_limit = Time::from_us(20);
    let results = [1, 2, 3].map(|threads| run_on(&setup, threads));
    let first = &results[0];
    assert!(first.time_limit_struck && first.simulated == Time::from_us(20));
    assert!(first.conservation.unwrap().data_packets.in_flight > 0);
    assert!(first.flows.iter().all(|f| f.status == FlowStatus::Unfinished));
    for other in &results[1..] {
        assert_eq!((other.fingerprint, other.conservation), (first.fingerprint, first.conservation));
    }
}

#[test]
fn a_trigger_starts_the_next_flow_after_its_latency() {
    // Flow 1 (2 -> 0) starts when flow 0's last byte is at host 2: same host, no latency. Flow 2 (3 -> 1) starts 1 us after the
    // sender of flow 1 has its last acknowledgement. Flow 1's packet waits until host 2 has sent the acknowledgement of flow 0.
    let mut set = flows(&[(0, 2, 4096, 0), (2, 0, 4096, 0), (3, 1, 4096, 0)]);
    let number = |src| set.flows.iter().position(|f| f.src == src).unwrap();
    let (a, b, c) = (number(0), number(2), number(3));
    set.triggers =
        vec![Trigger::new(TriggerKind::Oneshot, vec![b as u32]), Trigger::new(TriggerKind::Barrier(1), vec![c as u32])];
    set.flows[a].on_received = Some(TriggerId(0));
    set.flows[b].start = Start::On(TriggerId(0));
    set.flows[b].on_sent = Some(TriggerId(1));
    set.flows[c].start = Start::On(TriggerId(1));
    let setup = setup(two_leaves(), set, "ecmp");
    let one_way = 4 * (WIRE + DELAY);
    let back = 4 * (ACK + DELAY);
    let result = run_in_every_mode(&setup, "triggers");
    assert_eq!(result.flows[b].start, Some(Time::from_ps(one_way)));
    assert_eq!(result.flows[c].start, Some(Time::from_ps(one_way + ACK + one_way + back + 1_000_000)));
    assert!(result.flows.iter().all(|f| f.status == FlowStatus::Finished));
}

#[test]
fn second_activation_of_a_oneshot_is_an_input_error() {
    let mut set = flows(&[(0, 2, 4096, 0), (1, 3, 4096, 0), (2, 0, 4096, 0)]);
    set.triggers = vec![Trigger::new(TriggerKind::Oneshot, vec![2])];
    set.flows[0].on_received = Some(TriggerId(0));
    set.flows[1].on_received = Some(TriggerId(0));
    set.flows[2].start = Start::On(TriggerId(0));
    let error = refused(&setup(two_leaves(), set, "ecmp"));
    assert!(matches!(&error, anabranch_backend::RunError::Setup(m) if m.contains("oneshot trigger 0")), "{error}");
}

#[test]
fn series_and_uplink_counts_add_up() {
    let topology = fat_tree(2, 8);
    let mut setup = setup(topology.clone(), permutation(&topology, 100 * 4096, 1), "ops");
    setup.measure = Measure {
        series_links: topology.link_named("leaf0->spine1").unwrap(),
        series_interval: Time::from_us(1),
        uplink_counts: true,
        occupancy: true,
        ..Measure::default()
    };
    let [first, second] = [1, 2].map(|threads| run_on(&setup, threads));
    assert_eq!((&first.series, &first.uplink_counts), (&second.series, &second.uplink_counts));
    // Every packet of every flow passes one uplink of a leaf and one port of a spine; only the former is a choice.
    let counted: u64 = first.uplink_counts.iter().map(|c| c.packets).sum();
    assert_eq!(counted, first.counters.data_packets.unwrap());
    let series = &first.series[0];
    assert_eq!(series.samples.len() as u64, first.simulated.ps() / 1_000_000 + 1);
    assert!(series.samples.windows(2).all(|w| w[0].sent_bytes <= w[1].sent_bytes));
    for link in &first.links {
        let total: u64 = link.queue.occupancy.iter().map(|o| o.1).sum();
        assert_eq!(total, first.simulated.ps(), "{} {}", link.from, link.to);
        let mean = link.queue.occupancy.iter().map(|&(n, ps)| n as f64 * ps as f64).sum::<f64>() / total as f64;
        assert!((mean - link.queue.mean_packets.unwrap()).abs() < 1e-9, "{mean} {}", link.queue.mean_packets.unwrap());
    }
}

/// One packet over two cables of which the second is dead from the start.
fn dead_end(stall_after: Option<u64>) -> Setup {
    let down = link_fault(FaultKind::LinkDown, Time::ZERO, "leaf1-spine0");
    let down = FaultParameters { detect_after: Never::Never, ..down };
    let mut setup = with_fault(setup(two_leaves(), flows(&[(0, 2, 4096, 0)]), "ecmp"), down);
    set_keys(uet(&mut setup), "rto=100us");
    setup.limits.stall_after = stall_after;
    setup
}

#[test]
fn run_without_progress_stalls() {
    // The flow starts at 0, and so does the fault: the run ends 20 timeouts of 100 us later.
    let stalled = run(&dead_end(Some(20)));
    assert_eq!((stalled.simulated, stalled.stalled_after), (Time::from_us(2000), Some(Time::ZERO)));
    assert!(!stalled.time_limit_struck && stalled.deadlock.is_empty());
    let never = run(&dead_end(None));
    assert!(never.time_limit_struck && never.stalled_after.is_none() && never.counters.timeouts > Some(3));
    assert_eq!(never.flows[0].status, FlowStatus::Unfinished);

    // A flow that starts later, elsewhere, is still ahead: 10 packets in its own leaf from 3.05 ms on, between two timeouts.
    let mut later = dead_end(Some(20));
    later.flows = flows(&[(0, 2, 4096, 0), (0, 1, 40960, 3_050_000_000)]);
    let last = run(&later);
    let received = last.flows[1].fct_rx.unwrap() + Time::from_us(3050);
    assert_eq!((last.stalled_after, last.simulated), (Some(received), received + Time::from_us(2000)));

    // The end of a fault at 5 ms is ahead too, and then the flow goes on.
    let mut mended = dead_end(Some(20));
    let up = link_fault(FaultKind::LinkUp, Time::from_ms(5), "leaf1-spine0");
    mended = with_fault(mended, FaultParameters { detect_after: Never::Never, ..up });
    let mended = run(&mended);
    assert!(mended.stalled_after.is_none() && mended.flows[0].fct_ack.is_some());
}

#[test]
fn stall_does_not_depend_on_threads() {
    let topology = fat_tree(2, 8);
    let down = link_fault(FaultKind::LinkDown, Time::from_us(30), "leaf0-spine1");
    let down = FaultParameters { detect_after: Never::Never, ..down };
    let mut setup = with_fault(setup(topology.clone(), permutation(&topology, 1 << 20, 4), "ecmp"), down);
    setup.limits.stall_after = Some(5);
    let results = [1, 2, 3, 5].map(|threads| run_on(&setup, threads));
    assert!(results[0].stalled_after.is_some());
    for result in &results[1..] {
        assert_eq!(
            (result.fingerprint, result.simulated, result.stalled_after, result.counters.timeouts),
            (results[0].fingerprint, results[0].simulated, results[0].stalled_after, results[0].counters.timeouts)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Without timeouts, flows that lose packets stay open when nothing is left to happen: the run ends as stalled with a reason,
    /// at the time of the last new byte or start.
    #[test]
    fn losses_without_timeouts_end_as_a_stall(
        loss in 1u64..1001, at in 0u64..60, link in 0usize..4, data_only in any::<bool>(), number in 1usize..40,
        most in 1u64..300_000, control in 0usize..3, scheme in 0usize..4, seed in any::<u64>(),
    ) {
        let fabric = two_leaves();
        let list = random_flows(&fabric, number, most, 50_000_000, seed);
        let scheme = ["ecmp", "ops", "flowbender", "letflow"][scheme];
        let mut setup = roce_setup(fabric, list, scheme, Profile::Lossless);
        let control = ["none", "dcqcn", "swift"][control];
        set_keys(roce(&mut setup), &format!("congestion_control={control}"));
        roce(&mut setup).rto = Auto::Value(Never::Never);
        // Pauses often; lost ones are never lifted.
        set_keys(&mut setup.fabric, "pfc_alpha=0.001");
        let affects = if data_only { Affects::Data } else { Affects::All };
        let link = ["leaf0-spine0", "leaf1-spine0", "host0-leaf0", "host3-leaf1"][link];
        let fault = link_fault(FaultKind::PacketLoss, Time::from_us(at), link);
        let setup = with_fault(setup, FaultParameters { loss: loss as f64 / 1000.0, affects, ..fault });
        let result = run(&setup);
        let is_open = result.flows.iter().any(|flow| flow.fct_ack.is_none());
        prop_assert_eq!(result.stall_reason.is_some(), is_open && result.deadlock.is_empty());
        prop_assert_eq!(result.stall_reason.is_some(), result.stalled_after.is_some());
        prop_assert!(!is_open || result.counters.dropped > Some(0));
        let end = |result: &RunResult| (result.stalled_after, result.stall_reason.clone(), result.fingerprint);
        prop_assert_eq!(end(&result), end(&run_eager(&setup, 2)));
    }
}
