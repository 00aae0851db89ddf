//! Thresholds by tier, the last hop, receiver credit and the errors of queue pairs, as deployed fabrics have them.

use crate::common::*;
use anabranch_backend::{FabricParameters, Setup};
use anabranch_outcome::{LinkRow, RunResult};
use anabranch_topology::FaultKind;
use anabranch_transport::{
    Network, TransportParameters,
    uet::{UetConfig, UetTransport},
};
use anabranch_units::{Rate, Time};

fn nscc(setup: &mut Setup, keys: &str) {
    let TransportParameters::Uet(transport) = &mut setup.transport else { panic!("a setup with uet") };
    set_keys(transport.cc.parameters_mut("nscc").expect("a control"), keys);
}

/// Host 0 receives from `senders` under another leaf, over this number of spines.
fn incast(senders: u32, spines: u32, size: u64, scheme: &str) -> Setup {
    let keys = format!("leaves=2 spines={spines} hosts_per_leaf={senders} link_rate=400Gbps link_delay=1us");
    let list: Vec<_> = (0..senders).map(|sender| (senders + sender, 0, size, 0)).collect();
    setup(topology("leaf-spine", &keys), flows(&list), scheme)
}

/// Host 0 receives from `senders` under its own leaf: only its port is congested.
fn local_incast(senders: u32, size: u64) -> Setup {
    let keys = format!("leaves=2 spines=1 hosts_per_leaf={} link_rate=400Gbps link_delay=1us", senders + 1);
    let list: Vec<_> = (1..=senders).map(|sender| (sender, 0, size, 0)).collect();
    setup(topology("leaf-spine", &keys), flows(&list), "ops")
}

fn switches<'a>(result: &'a RunResult, from: &str, to: &str) -> Vec<&'a LinkRow> {
    result.links.iter().filter(|link| link.from.starts_with(from) && link.to.starts_with(to)).collect()
}

/// Four hosts send as fast as they can over two uplinks to one: packets wait at leaf 1, at the spines and at the last hop.
#[test]
fn limits_and_marks_follow_the_tier_of_the_port() {
    let mut setup = incast(4, 2, 4 << 20, "ops");
    set_keys(uet(&mut setup), "congestion_control=none window=100MB");
    set_keys(&mut setup.fabric, "queue_limit_by_tier=[300kB,200kB,100kB] ecn_by_tier=[false,true,false]");
    set_keys(&mut setup.fabric, "ecn_kmin_by_tier=[10kB,150kB] ecn_kmax_by_tier=[10kB,160kB]");
    let result = run_in_every_mode(&setup, "tiers");
    let packet = 4160;
    for (from, to, limit, marks) in
        [("leaf0", "host0", 300_000, false), ("leaf1", "spine", 200_000, true), ("spine", "leaf0", 100_000, false)]
    {
        for link in switches(&result, from, to) {
            let held = link.queue.max_bytes.unwrap();
            // The two spines send to leaf 0 as fast as they receive.
            assert!(from == "spine" || (limit - packet..=limit).contains(&held), "{from}: {held}");
            assert!(held <= limit && (link.ecn_marks > Some(0)) == marks, "{from}: {held}, {:?}", link.ecn_marks);
        }
    }
    // One value for all is the list of one value.
    let (mut all, mut one) = (incast(4, 2, 1 << 20, "ops"), incast(4, 2, 1 << 20, "ops"));
    set_keys(&mut all.fabric, "queue_limit=150kB ecn_kmin=20kB ecn_kmax=30kB");
    set_keys(&mut one.fabric, "queue_limit_by_tier=[150kB] ecn_kmin_by_tier=[20kB] ecn_kmax_by_tier=[30kB]");
    assert_eq!(run(&all).fingerprint, run(&one).fingerprint);
}

/// Switches that mark no trims at the last hop: a host that ignores those takes them as any others.
#[test]
fn unmarked_trims_of_the_last_hop_are_like_any_other() {
    let of = |rule: &str, marks: bool| {
        let mut setup = incast(4, 4, 4 << 20, "prime");
        set_keys(uet(&mut setup), &format!("last_hop_trims={rule}"));
        set_keys(&mut setup.fabric, &format!("mark_last_hop_trims={marks}"));
        let result = run(&setup);
        assert!(switches(&result, "leaf0", "host0")[0].trims > Some(0));
        result.fingerprint
    };
    assert_eq!((of("ignore", false), of("blame", false)), (of("blame", true), of("blame", true)));
    assert_ne!(of("ignore", true), of("blame", true));
}

/// Trimmed headers beyond `trimmed_limit` are dropped.
#[test]
fn trimmed_headers_have_a_limit() {
    let dropped = |limit: &str| {
        let mut setup = local_incast(8, 4 << 20);
        set_keys(uet(&mut setup), "congestion_control=none window=100MB");
        set_keys(&mut setup.fabric, &format!("queue_limit=100kB trimmed_class=0.001 trimmed_limit={limit}"));
        run(&setup).counters.dropped.unwrap()
    };
    assert_eq!(dropped("auto"), dropped("100kB"));
    assert!(dropped("1kB") > dropped("100kB"));
}

/// Long flows of `senders` hosts: 99 % of the port in all, each within four packets of an equal part of what any other got,
/// once the first round trip is over.
#[test]
fn receiver_credit_shares_the_port() {
    for (senders, control) in [(1, "rccc"), (4, "rccc"), (15, "rccc"), (15, "nscc")] {
        let mut setup = local_incast(senders, 100 << 20);
        set_keys(uet(&mut setup), &format!("congestion_control={control}"));
        nscc(&mut setup, "receiver_credit=true");
        // The window of a sender falls below its part otherwise: 15 windows are delay.
        set_keys(&mut setup.fabric, "ecn=false");
        (setup.limits.time_limit, setup.limits.until_all_done) = (Time::from_ms(1), true);
        setup.measure.series_flows = (0..senders).collect();
        setup.measure.series_interval = Time::from_us(100);
        let result = run(&setup);
        let sample = |flow: u32, at: u64| {
            let samples = &result.flow_series[flow as usize].samples;
            samples.iter().find(|sample| sample.time == Time::from_us(at)).unwrap()
        };
        let packets: Vec<_> =
            (0..senders).map(|flow| sample(flow, 900).sent_packets - sample(flow, 100).sent_packets).collect();
        // 800 us at 0.99 times 400 Gb/s are 39,600,000 B, 9519.2 packets of 4160 B.
        let sum: u64 = packets.iter().sum();
        assert!(sum.abs_diff(9519) <= 4 * u64::from(senders), "{senders} {control}: {sum}");
        let equal = sum / u64::from(senders);
        assert!(packets.iter().all(|packets| packets.abs_diff(equal) <= 4), "{senders} {control}: {packets:?}");
        let trims = |at| (0..senders).map(|flow| sample(flow, at).trim_notices).sum::<u64>();
        assert!(trims(900) == trims(100) && (trims(100) > 0) == (senders > 1), "{senders} {control}");
    }
}

/// Without marks only trims shrink the window of NSCC: with credit it stays.
#[test]
fn trims_at_the_last_hop_leave_the_window_with_credit() {
    let least = |credit: bool| {
        let mut setup = local_incast(15, 1 << 20);
        nscc(&mut setup, &format!("receiver_credit={credit}"));
        set_keys(&mut setup.fabric, "ecn=false");
        setup.measure.series_flows = (0..15).collect();
        setup.measure.series_interval = Time::from_us(1);
        let result = run(&setup);
        assert!(switches(&result, "leaf0", "host0")[0].trims > Some(0));
        let windows = |flow: &anabranch_outcome::FlowSeries| {
            flow.samples.iter().filter_map(|s| s.window_bytes).collect::<Vec<_>>()
        };
        let all: Vec<u64> = result.flow_series.iter().flat_map(windows).collect();
        (*all.iter().min().unwrap(), *all.iter().max().unwrap())
    };
    let (least_with, most) = least(true);
    assert_eq!(least_with, most);
    assert!(least(false).0 < most / 2);
}

/// Lost data, trims, grants and acknowledgements: every flow ends, in every mode alike.
#[test]
fn flows_with_credit_complete_despite_losses() {
    for scheme in ["ops", "reps", "prime"] {
        let topology = topology("leaf-spine", "leaves=3 spines=2 hosts_per_leaf=4 link_rate=400Gbps link_delay=1us");
        let set = random_flows(&topology, 60, 400_000, 20_000_000, 3);
        let mut setup = setup(topology, set, scheme);
        set_keys(uet(&mut setup), "congestion_control=rccc rto_rule=doubling rto_linear=3 max_psn_range=128");
        let mut loss = link_fault(FaultKind::PacketLoss, Time::ZERO, "leaf0-spine0");
        loss.loss = 0.05;
        let result = run_in_every_mode(&with_fault(setup, loss), scheme);
        assert!(result.flows.iter().all(|flow| flow.fct_ack.is_some()), "{scheme}");
        assert!(result.counters.timeouts > Some(0), "{scheme}");
    }
}

/// Round trips over slow links exceed the timeout. A NACK that acknowledges earlier packets ends the doubled one, which may be over
/// by then: its timer is due at once, in every mode.
#[test]
fn a_doubled_timeout_ends_with_a_nack_too() {
    for (a, b, to) in [(3, 9, 0), (3, 14, 5), (1, 2, 0), (15, 7, 12), (8, 9, 10), (4, 13, 2)] {
        let topology = topology("fat-tree", "tiers=3 radix=4 link_rate=1Gbps link_delay=1us");
        let mut setup = setup(topology, flows(&[(a, to, 32_768, 0), (b, to, 32_768, 0)]), "ecmp");
        setup.fabric = FabricParameters::mrc();
        set_keys(uet(&mut setup), "rto_rule=doubling rto_linear=1 rto=262144ns");
        let result = run_in_every_mode(&setup, "a NACK");
        assert!(result.flows.iter().all(|flow| flow.fct_ack.is_some()) && result.counters.timeouts > Some(0));
    }
}

/// 7 T, 2 T and 4 T after the packet left, its sender stops: T = 262.144 us, 13 T = 3.407872 ms.
#[test]
fn a_queue_pair_in_error_stalls_its_flow() {
    let mut setup = setup(two_leaves(), flows(&[(0, 2, 4096, 0), (1, 3, 4096, 0)]), "ecmp");
    set_keys(uet(&mut setup), "rto_rule=doubling rto_linear=7 rto_max_exponent=2 rto=262144ns");
    let mut loss = link_fault(FaultKind::PacketLoss, Time::ZERO, "leaf1->host2");
    loss.loss = 1.0;
    let result = run_in_every_mode(&with_fault(setup, loss), "an error");
    assert!(result.flows[0].fct_ack.is_none() && result.flows[1].fct_ack.is_some());
    assert_eq!((result.counters.timeouts, result.flows[0].metrics.retransmitted_packets), (Some(9), Some(8)));
    let reason = result.stall_reason.as_ref().expect("a reason");
    assert!(reason.contains("1 flows") && reason.contains("rto_max_exponent"), "{reason}");
}

/// A plane of 100 Gb/s with 8 us has 100 kB: marks from 20 to 80 kB, trims at 100 kB and at 150 kB at the last hop. Eight
/// such ports have windows of 1.2 MB.
#[test]
fn profiles_have_the_published_thresholds() {
    for (fabric, marks_at_last_hop) in [(FabricParameters::mrc(), false), (FabricParameters::uec(), true)] {
        for (tier, limit) in [(0, 150_000), (1, 100_000), (2, 100_000)] {
            let of = fabric.at_tier(tier);
            let found = [of.queue_limit, of.ecn_kmin, of.ecn_kmax, of.control_limit].map(|size| size.bytes(100_000));
            assert_eq!(found, [limit, 20_000, 80_000, 100_000]);
            assert_eq!(of.ecn, tier > 0 || marks_at_last_hop);
        }
    }
    let network = Network { base_rtt: Time::from_us(8), bdp: 800_000, trimming: true, ..Network::default() };
    let network = Network { longest: (network.base_rtt, network.bdp), nic_rate: Rate::gbps(800), ..network };
    let config = UetConfig::new(&UetTransport::mrc(), &network);
    assert_eq!((config.window, config.rto.ps(), config.max_psn_range), (1_200_000, 262_144_000, 1024));
    // T, 7 times linear, then 2 T.
    assert_eq!((config.doubling, config.ack_every), (Some((7, None)), 4));
    assert_eq!(UetConfig::new(&UetTransport::uec(), &network).doubling, Some((1, None)));
}
