//! Closed forms, exact to the picosecond; the arithmetic is next to each.

use crate::common::*;
use anabranch_backend::{Scheduling, Setup};
use anabranch_topology::{FaultKind, FaultParameters};
use anabranch_units::Time;

/// Pairs of hosts with the number of links between them. Radix 4: two hosts per leaf; with 3 tiers two leaves per pod.
fn pairs(tiers: i64) -> Vec<(u32, u32, u64)> {
    match tiers {
        2 => vec![(0, 1, 2), (0, 2, 4), (0, 7, 4)],
        _ => vec![(0, 1, 2), (0, 2, 4), (0, 4, 6), (0, 15, 6)],
    }
}

#[test]
fn one_packet_over_every_number_of_hops() {
    for tiers in [2, 3] {
        for (src, dst, links) in pairs(tiers) {
            for scheme in ["ecmp", "ops", "reps", "ar", "prime"] {
                let result = run(&setup(fat_tree(tiers, 4), flows(&[(src, dst, 4096, 0)]), scheme));
                // Store and forward: each link takes the wire time and its delay; then the ACK likewise.
                let rx = links * (WIRE + DELAY);
                let flow = &result.flows[0];
                assert_eq!(flow.fct_rx, Some(Time::from_ps(rx)), "{tiers} tiers, {src} to {dst}, {scheme}");
                assert_eq!(flow.fct_ack, Some(Time::from_ps(rx + links * (ACK + DELAY))));
                assert_eq!((flow.ideal_rx, flow.ideal_ack), (flow.fct_rx.unwrap(), flow.fct_ack.unwrap()));
                assert_eq!(result.packet_hops.unwrap(), 2 * links);
                assert_eq!(result.simulated, flow.fct_ack.unwrap());
            }
        }
    }
}

#[test]
fn switch_latency_counts_once_per_switch() {
    let keys = "leaves=2 spines=2 hosts_per_leaf=2 link_rate=400Gbps link_delay=1us switch_latency=500ns";
    let result = run(&setup(topology("leaf-spine", keys), flows(&[(0, 3, 100, 0)]), "ecmp"));
    // 100 + 64 B over four links and three switches.
    let rx = 4 * (164 * 20 + DELAY) + 3 * 500_000;
    assert_eq!(result.flows[0].fct_rx, Some(Time::from_ps(rx)));
    assert_eq!(result.flows[0].fct_ack, Some(Time::from_ps(rx + 4 * (ACK + DELAY) + 3 * 500_000)));
}

#[test]
fn train_follows_first_packet_at_line_rate() {
    for tiers in [2, 3] {
        for (src, dst, links) in pairs(tiers) {
            for packets in [2, 3, 100, 1000] {
                for scheme in ["ecmp", "ops", "prime", "ar"] {
                    let size = packets * 4096;
                    let result = run(&setup(fat_tree(tiers, 4), flows(&[(src, dst, size, 0)]), scheme));
                    // The window of 1.5 BDP never closes on an empty network: packet k is sent after k wire times.
                    let rx = (packets - 1) * WIRE + links * (WIRE + DELAY);
                    let flow = &result.flows[0];
                    assert_eq!(flow.fct_rx, Some(Time::from_ps(rx)), "{packets} packets, {links} links, {scheme}");
                    assert_eq!(flow.fct_rx, Some(flow.ideal_rx));
                    assert_eq!(result.counters.retransmitted.unwrap() + result.counters.trimmed.unwrap(), 0);
                }
            }
        }
    }
}

#[test]
fn incast_drains_at_the_rate_of_the_last_link() {
    for (tiers, links) in [(2u64, 4u64), (3, 6)] {
        let topology = fat_tree(tiers as i64, 8);
        let per_leaf = 4;
        for senders in [2u32, 5, 12] {
            let first = if tiers == 2 { per_leaf } else { per_leaf * 4 };
            let packets = 50;
            let list: Vec<_> = (0..senders).map(|i| (first + i, 0, packets * 4096, 0)).collect();
            let result = run(&unconstrained(setup(topology.clone(), flows(&list), "ops")));
            // The first packets reach the last switch after links - 1 hops; from then on its port never idles.
            let last = (links - 1) * (WIRE + DELAY) + u64::from(senders) * packets * WIRE + DELAY;
            let max = result.flows.iter().map(|f| f.fct_rx.unwrap()).max().unwrap();
            assert_eq!(max, Time::from_ps(last), "{senders} senders, {tiers} tiers");
        }
    }
}

#[test]
fn unequal_rates_store_and_forward() {
    // 25 Gb/s hosts (320 ps per byte), 10 Gb/s uplinks (800 ps per byte).
    let keys = "leaves=2 spines=1 hosts_per_leaf=1 link_rate=10Gbps host_link_rate=25Gbps link_delay=1us";
    let result = run(&unconstrained(setup(topology("leaf-spine", keys), flows(&[(0, 1, 10 * 4096, 0)]), "ecmp")));
    // The slowest link paces the train: 10 packets of 4160 * 800 ps there, one 25G link before, 10G and 25G after.
    let rx = 4160 * 320 + 10 * 4160 * 800 + 4160 * 800 + 4160 * 320 + 4 * DELAY;
    assert_eq!(result.flows[0].fct_rx, Some(Time::from_ps(rx)));
    assert_eq!(result.flows[0].ideal_rx, Time::from_ps(rx));
}

#[test]
fn an_ideal_of_transmission_alone_has_no_propagation() {
    // 25 Gb/s hosts, 10 Gb/s uplinks: 10 packets of 4160 B at 800 ps per byte; 100 B more are a packet of 164 B. Under one
    // leaf the hosts' 320 ps per byte count.
    let keys = "leaves=2 spines=1 hosts_per_leaf=2 link_rate=10Gbps host_link_rate=25Gbps link_delay=1us";
    let pairs = [(0, 2, 10 * 4096 + 100, 0), (0, 1, 4096, 0)];
    let mut setup = setup(topology("leaf-spine", keys), flows(&pairs), "ecmp");
    set_keys(&mut setup.fabric, "ideal_fct=transmission");
    let result = run(&setup);
    let ideal = |flow: usize| (result.flows[flow].ideal_rx.ps(), result.flows[flow].ideal_ack.ps());
    // Flows of one sender are in the order of their receivers.
    assert_eq!(ideal(0), (4160 * 320, 4160 * 320));
    assert_eq!(ideal(1), ((10 * 4160 + 164) * 800, (10 * 4160 + 164) * 800));
}

#[test]
fn limits_of_a_slowed_link_may_fall_with_its_rate() {
    // Four hosts send 150 packets each over one uplink at a quarter of its rate. Its queue has 400,000 B: 96 packets; at a
    // quarter 100,000 B: 24 packets.
    for (slowed_limits, packets) in [("keep", 96u64), ("scale", 24)] {
        let keys = "leaves=2 spines=1 hosts_per_leaf=4 link_rate=400Gbps link_delay=1us";
        let list: Vec<_> = (0..4).map(|host| (host, host + 4, 150 * 4096, 0)).collect();
        let mut setup = unconstrained(setup(topology("leaf-spine", keys), flows(&list), "ecmp"));
        set_keys(&mut setup.fabric, &format!("queue_limit=400000B slowed_limits={slowed_limits}"));
        let fault = FaultParameters { factor: 0.25, ..link_fault(FaultKind::LinkDegrade, Time::ZERO, "leaf0-spine0") };
        let result = run(&with_fault(setup, fault));
        let row = result.links.iter().find(|row| row.from == "leaf0" && row.to == "spine0").unwrap();
        assert_eq!(row.queue.max_bytes, Some(packets * 4160), "{slowed_limits}");
    }
}

#[test]
fn a_rate_that_does_not_divide_loses_no_time() {
    // 300 Gb/s: 26.67 ps per byte. 3000 packets of 4160 B on the first link take exactly 3000 * 4160 * 80 / 3 ps.
    let keys = "leaves=2 spines=1 hosts_per_leaf=1 link_rate=300Gbps link_delay=1us";
    let result = run(&unconstrained(setup(topology("leaf-spine", keys), flows(&[(0, 1, 3000 * 4096, 0)]), "ecmp")));
    let first_link = 3000 * 4160 * 80 / 3;
    // Then three more links, each 110,933.33 ps of wire time, rounded by at most one picosecond each.
    let rx = result.flows[0].fct_rx.unwrap().ps();
    let expected = first_link + 3 * 110_933 + 4 * DELAY;
    assert!(rx.abs_diff(expected) <= 4, "{rx} {expected}");
}

#[test]
fn two_flows_share_a_nic_packet_by_packet() {
    // Both start at 0. Flow 0 starts first, finds the NIC idle, sends and is queued again before flow 1 joins.
    let list = [(0, 2, 10 * 4096, 0), (0, 3, 10 * 4096, 0)];
    let result = run(&setup(fat_tree(2, 4), flows(&list), "ecmp"));
    let one_way = 4 * (WIRE + DELAY);
    // So flow 0 sends at 0, 1, 3, 5, ..., 17 wire times and flow 1 at 2, 4, ..., 18, 19: each spans 17.
    for flow in &result.flows {
        assert_eq!(flow.fct_rx, Some(Time::from_ps(17 * WIRE + one_way)));
    }
    assert_eq!(result.simulated, Time::from_ps(19 * WIRE + one_way + 4 * (ACK + DELAY)));
}

#[test]
fn trimmed_packet_is_retransmitted() {
    // A queue of four packets: trimming must occur.
    let list = flows(&[6, 7, 2, 3].map(|src| (src, 0, 64 * 4096, 0)));
    let mut setup = setup(fat_tree(2, 4), list, "ops");
    set_keys(&mut setup.fabric, "queue_limit=16640B");
    let result = run(&setup);
    let trimmed = result.counters.trimmed.unwrap();
    assert!(trimmed > 0);
    assert_eq!(trimmed, result.conservation.unwrap().headers.injected);
    assert!(result.counters.retransmitted.unwrap() >= trimmed.saturating_sub(result.counters.timeouts.unwrap()));
    assert!(result.flows.iter().all(|f| f.fct_ack.is_some()));
}

/// Two flows from host 0 to host 1: `urgent` packets of the first class from 5 us on, and `bulk` ones of the second from 0.
fn two_classes(scheduling: Scheduling, weights: Vec<u64>, urgent: u64, bulk: u64) -> Setup {
    let list = flows(&[(0, 1, bulk * 4096, 0), (0, 1, urgent * 4096, 5_000_000)]);
    let mut setup = unconstrained(setup(two_leaves(), list, "ecmp"));
    setup.flows.flows[0].class = 1;
    setup.fabric.classes = vec!["urgent".into(), "bulk".into()];
    (setup.fabric.scheduling, setup.fabric.class_weights) = (scheduling, weights);
    setup
}

/// At a NIC that obeys `strict`, urgent packets follow each other as if they were alone, regardless of what waits behind them.
#[test]
fn urgent_flow_of_a_nic_takes_the_time_it_takes_alone() {
    for (urgent, bulk) in [(1, 300), (100, 300), (333, 400), (500, 2000)] {
        let result = run(&two_classes(Scheduling::Strict, vec![], urgent, bulk));
        let alone = (urgent + 1) * WIRE + 2 * DELAY;
        assert_eq!(result.flows[1].fct_rx, Some(Time::from_ps(alone)), "{urgent} of {bulk}");
        // All bytes of both pass without a gap.
        assert_eq!(result.flows[0].fct_rx, Some(Time::from_ps((urgent + bulk + 1) * WIRE + 2 * DELAY)));
    }
}

/// At a NIC that obeys `wrr`, n packets of weight v beside w take n (v + w) / v packet times, give or take a turn.
#[test]
fn flows_of_a_nic_share_it_by_the_weights_of_their_classes() {
    for (v, w) in [(1, 1), (2, 1), (1, 3), (5, 2), (7, 4)] {
        let urgent = 420;
        let setup = two_classes(Scheduling::Wrr, vec![v, w], urgent, 420 * w / v + 100);
        let taken = run(&setup).flows[1].fct_rx.expect("it ends").ps();
        let expected = urgent * (v + w) * WIRE / v + WIRE + 2 * DELAY;
        assert!(taken.abs_diff(expected) <= 2 * (v + w) * WIRE, "{v}:{w}: {taken} and {expected} ps");
    }
}

/// Classes pay for bytes on the wire: n messages of 64 B, 128 B with their headers, pass beside full packets by the weights.
#[test]
fn small_messages_of_a_nic_pay_for_their_headers() {
    for (v, w) in [(1u64, 1), (1, 4), (3, 1)] {
        let messages = 2_000;
        let mut list = vec![(0, 1, (messages * 128 * w / v / 4160 + 200) * 4096, 0)];
        list.extend((0..messages).map(|_| (0, 1, 64, 5_000_000)));
        let mut setup = unconstrained(setup(two_leaves(), flows(&list), "ecmp"));
        setup.flows.flows[0].class = 1;
        setup.fabric.classes = vec!["small".into(), "bulk".into()];
        (setup.fabric.scheduling, setup.fabric.class_weights) = (Scheduling::Wrr, vec![v, w]);
        let result = run(&setup);
        let last = result.flows[1..].iter().map(|flow| flow.nic_wait.map_or(0, Time::ps)).max().expect("a message");
        assert!(result.flows[0].fct_rx > Some(Time::from_ps(5_000_000 + last)), "bulk until the end");
        let expected = messages * 128 * WIRE / 4160 * (v + w) / v;
        assert!(last.abs_diff(expected) <= 2 * (v + w) * WIRE, "{v}:{w}: {last} and {expected} ps");
    }
}

/// Messages of one packet that start at once leave one after the other: the i-th waits i wire times at its NIC, and its completion
/// time, from its first packet on, is that of a message alone.
#[test]
fn messages_of_one_host_wait_for_each_other() {
    for n in [1, 10, 1_000] {
        let list: Vec<_> = (0..n).map(|_| (0, 1, 4096, 0)).collect();
        let result = run(&unconstrained(setup(two_leaves(), flows(&list), "ecmp")));
        let mut waits: Vec<_> = result.flows.iter().map(|flow| flow.nic_wait.expect("it was sent").ps()).collect();
        waits.sort_unstable();
        assert_eq!(waits, (0..n).map(|i| i * WIRE).collect::<Vec<_>>());
        assert!(result.flows.iter().all(|flow| flow.fct_rx == Some(Time::from_ps(2 * (WIRE + DELAY)))));
    }
}
