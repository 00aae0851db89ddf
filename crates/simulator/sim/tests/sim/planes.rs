//! NICs with a port per plane: closed forms, faults of ports and planes, and equal results in every mode.

use crate::common::*;
use anabranch_backend::Setup;
use anabranch_outcome::RunResult;
use anabranch_settings::Never;
use anabranch_topology::{FaultKind, FaultParameters, LinkId, NodeId, Topology};
use anabranch_units::{Rate, Time};
use proptest::prelude::*;

fn fabric(leaves: u64, spines: u64, hosts: u64, planes: u32) -> Topology {
    let keys = format!(
        "leaves={leaves} spines={spines} hosts_per_leaf={hosts} planes={planes} link_rate={}Gbps link_delay=1us",
        100 * planes
    );
    topology("leaf-spine", &keys)
}

/// Picoseconds of a full packet on a port of 100 Gb/s.
const PORT_WIRE: u64 = 4 * WIRE;

/// Time of `most` packets on the busiest of several ports, over four links in a row.
fn over_ports(most: u64) -> Time {
    Time::from_ps((most + 3) * PORT_WIRE + 4 * DELAY)
}

fn with_ports(mut setup: Setup, selector: &str) -> Setup {
    set_keys(&mut setup.fabric, &format!("nic_ports={selector}"));
    setup
}

fn down(link: &str) -> FaultParameters {
    link_fault(FaultKind::LinkDown, Time::ZERO, link)
}

/// Returns the packets that a host has sent to each plane.
fn sent(topology: &Topology, result: &RunResult, host: u32) -> Vec<u64> {
    let name = |node: NodeId| &topology.node(node).name;
    let of = |plane| {
        result
            .links
            .iter()
            .find(|row| row.from == *name(NodeId(host)) && row.to == *name(topology.edge_switch_in(host, plane)))
    };
    (0..topology.planes).map(|plane| of(plane).unwrap().packets).collect()
}

#[test]
fn a_lone_flow_has_the_time_of_its_packets_over_the_ports() {
    for (planes, packets) in [(1, 5), (2, 9), (4, 10), (8, 8), (8, 9), (16, 200)] {
        let topology = fabric(2, 1, 2, planes);
        let setup = unconstrained(setup(topology, flows(&[(0, 2, packets * 4096, 0)]), "ops"));
        let row = run(&setup).flows[0].clone();
        let expected = over_ports(packets.div_ceil(u64::from(planes)));
        assert_eq!((row.fct_rx, row.ideal_rx), (Some(expected), expected), "{packets} packets over {planes} ports");
    }
}

/// The last packet is short: behind a round of full packets it counts alone, else a full one determines the time.
#[test]
fn a_short_last_packet_counts_only_alone_in_its_round() {
    for (full, most) in [(8, 5 * PORT_WIRE + 564 * 80), (9, 6 * PORT_WIRE)] {
        let setup = unconstrained(setup(fabric(2, 1, 2, 4), flows(&[(0, 2, full * 4096 + 500, 0)]), "ops"));
        let row = run(&setup).flows[0].clone();
        let expected = Time::from_ps(most + 4 * DELAY);
        assert_eq!((row.fct_rx, row.ideal_rx), (Some(expected), expected), "{full} full packets");
    }
}

/// One port of eight down at one end leaves 7/8; different ones at sender and receiver 6/8, the same one 7/8; a leaf down 7/8 for
/// its hosts. No packet is lost, since sender and receiver are notified.
#[test]
fn ports_that_are_down_leave_their_part() {
    let (own, other, same) = ("host0-p2.leaf0", "host2-p5.leaf1", "host2-p2.leaf1");
    let mut leaf = down("");
    (leaf.kind, leaf.links, leaf.switches) = (FaultKind::SwitchDown, vec![], vec!["p3.leaf0".into()]);
    let cases = [
        (vec![down(own)], 7),
        (vec![down(other)], 7),
        (vec![down("host0->p2.leaf0")], 7),
        (vec![down("p2.leaf0->host0")], 7),
        (vec![down(own), down(other)], 6),
        (vec![down(own), down(same)], 7),
        (vec![leaf], 7),
        (vec![down("host0-p[0-3].leaf0".replace("[0-3]", "?").as_str())], 0),
    ];
    for (faults, left) in cases {
        for (scheme, selector) in [("ops", "free-port"), ("prime", "by-ev"), ("mrc", "by-ev")] {
            let topology = fabric(2, 2, 2, 8);
            let setup = with_ports(setup(topology.clone(), flows(&[(0, 2, 420 * 4096, 0)]), scheme), selector);
            let setup = faults.iter().cloned().fold(unconstrained(setup), with_fault);
            if left == 0 {
                // Without any port for ever nothing happens.
                let result = run(&setup);
                assert_eq!((result.flows[0].fct_rx, sent(&topology, &result, 0)), (None, vec![0; 8]));
                continue;
            }
            let result = run(&setup);
            let (row, sent) = (&result.flows[0], sent(&topology, &result, 0));
            assert_eq!(row.metrics.retransmitted_packets, Some(0), "{faults:?}");
            let used: Vec<u64> = sent.into_iter().filter(|packets| *packets > 0).collect();
            assert_eq!(used.len(), left, "{faults:?} with {scheme}");
            let share = 420 / left as u64;
            assert!(used.iter().all(|packets| packets.abs_diff(share) <= 2), "{faults:?} with {scheme}: {used:?}");
            let (least, fct) = (over_ports(share), row.fct_rx.unwrap());
            // The two spines of a plane may delay a packet of PRIME and MRC by another one.
            assert!(
                fct >= least && fct <= least + Time::from_ps(6 * PORT_WIRE),
                "{faults:?} with {scheme}: {fct}, not {least}"
            );
        }
    }
}

/// A port of the receiver fails: with the message, at most what is on its way to it is lost; without it, an eighth of all
/// packets is until it returns.
#[test]
fn peers_that_do_not_know_lose_the_part_of_the_port() {
    let lost = |peer_detect| {
        let mut fault = link_fault(FaultKind::LinkDown, Time::from_us(40), "host2-p5.leaf1");
        fault.peer_detect = peer_detect;
        let setup = setup(fabric(2, 1, 2, 8), flows(&[(0, 2, 4000 * 4096, 0)]), "ops");
        let result = run(&with_fault(setup, fault));
        result.links.iter().map(|link| link.drops.unwrap_or(0)).sum::<u64>()
    };
    // A round trip of 12 us has 12 us / 333 ns = 36 packets per port under way; the ACKs behind them as many.
    let (known, unknown) = (lost(Never::Value(Time::ZERO)), lost(Never::Never));
    assert!(known <= 72, "{known}");
    assert!(unknown >= 4000 / 8 / 2, "{unknown}");
}

/// A port that returns is used again, and a NIC without any port goes on as soon as one returns.
#[test]
fn ports_return() {
    for links in ["host0-p1.leaf0", "host0-*"] {
        let flap = FaultParameters {
            kind: FaultKind::LinkFlap,
            at: Time::from_us(20),
            period: Time::from_us(40),
            down_for: Time::from_us(20),
            flaps: 3,
            links: vec![links.into()],
            ..FaultParameters::default()
        };
        let topology = fabric(2, 2, 2, 4);
        let setup = with_fault(setup(topology.clone(), flows(&[(0, 2, 2000 * 4096, 0)]), "ops"), flap);
        let result = run_in_every_mode(&setup, links);
        assert!(result.flows[0].fct_rx.is_some(), "{links}");
        let sent = sent(&topology, &result, 0);
        assert!(sent.iter().all(|packets| *packets > 100), "{links}: {sent:?}");
    }
}

/// ACKs leave by the plane of their packet: none crosses the port of a plane whose data path a fault has not touched.
#[test]
fn acknowledgements_keep_the_plane_of_their_packets() {
    let topology = fabric(2, 1, 1, 4);
    let setup = with_ports(setup(topology.clone(), flows(&[(0, 1, 400 * 4096, 0)]), "ecmp"), "by-ev");
    let result = run(&setup);
    let (there, back) = (sent(&topology, &result, 0), sent(&topology, &result, 1));
    let plane = there.iter().position(|packets| *packets > 0).unwrap();
    // ECMP has one value per flow.
    assert_eq!((there[plane], there.iter().sum::<u64>()), (400, 400));
    assert!(back[plane] > 0 && back.iter().sum::<u64>() == back[plane], "{back:?}");
}

/// All hosts of a leaf of R = 8 ports send through it; one of the four uplinks in one of two planes is dead. PRIME uses all
/// live paths equally, so that it keeps 1 - 2 / (R P) = 7/8 of the rate.
#[test]
fn a_dead_uplink_costs_its_part_of_all_planes() {
    let topology = fabric(2, 4, 4, 2);
    let list: Vec<_> =
        (0..4).flat_map(|host| [(host, 4 + host, 4000 * 4096, 0), (4 + host, host, 4000 * 4096, 0)]).collect();
    let run_with = |dead: bool| {
        let mut setup = unconstrained(setup(topology.clone(), flows(&list), "prime"));
        let switch = &mut setup.load_balancers[0].switch;
        set_keys(switch.parameters_mut(), "remap=skip");
        if dead {
            let fault = FaultParameters { detect_after: Never::Value(Time::ZERO), ..down("p0.leaf0-p0.spine1") };
            setup = with_fault(setup, fault);
        }
        let last = run(&setup).flows.iter().filter_map(|row| row.fct_rx).max().unwrap();
        last.ps() as f64
    };
    let share = run_with(false) / run_with(true);
    assert!((0.86..0.89).contains(&share), "{share}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    /// Threads, splits, timings and delays of host links do not matter; no flow beats its ideal, which the run checks.
    #[test]
    fn results_do_not_depend_on_the_mode(
        planes in 1..9u32, scheme in prop::sample::select(vec!["ecmp", "ops", "prime", "co-prime", "reps", "ar", "flowbender", "hopper", "mrc"]),
        selector in prop::sample::select(vec!["auto", "by-ev", "free-port"]), host_delay in prop::sample::select(vec![0, 5, 300, 1000, 2000]),
        uneven in any::<bool>(), faults in prop::collection::vec((0..4u8, any::<u32>(), 0..60u64, 1..40u64), 0..4), seed in any::<u64>(),
    ) {
        let mut topology = topology("leaf-spine", &format!(
            "leaves=3 spines=2 hosts_per_leaf=2 planes={planes} link_rate={}Gbps host_link_delay={host_delay}ns switch_latency=100ns", planes * 50
        ));
        if uneven {
            let port = topology.host_uplink_in(1, planes - 1);
            (topology.links[port.0 as usize].rate, topology.links[port.0 as usize].delay) = (Rate::gbps(7), Time::from_ns(1234));
        }
        let set = random_flows(&topology, 30, 200_000, 20_000_000, seed);
        let mut setup = with_ports(setup(topology.clone(), set, scheme), selector);
        setup.limits.time_limit = Time::from_ms(3);
        setup.measure.attribution = true;
        for (kind, which, at, back) in faults {
            let host = which % topology.hosts;
            let port = topology.host_uplink_in(host, which / 7 % planes);
            let name = match kind {
                0 => topology.link_name(port),
                1 => topology.link_name(port.reverse()),
                2 => topology.cable_name(port),
                _ => topology.cable_name(LinkId(which % topology.links.len() as u32)),
            };
            let fault = |kind, at| link_fault(kind, Time::from_us(at), &name);
            let mut one = fault(FaultKind::LinkDown, at);
            if planes > 1 && which % 3 == 0 {
                (one.port_detect, one.peer_detect) = (Never::Value(Time::from_us(3)), Never::Never);
            }
            setup = with_fault(with_fault(setup, one), fault(FaultKind::LinkUp, at + back));
        }
        let result = run_in_every_mode(&setup, "planes");
        let five = run_on(&setup, 5);
        prop_assert_eq!(result.fingerprint, five.fingerprint);
    }
}

/// Receiver credit is 99 % of the ports of the receiver that are up.
#[test]
fn receiver_credit_is_that_of_the_ports_that_are_up() {
    for (down_ports, gbps) in [(0, 400), (1, 300), (3, 100)] {
        let long = |host| (host, 0, 100 << 20, 0);
        let mut setup = setup(fabric(1, 1, 4, 4), flows(&[long(1), long(2), long(3)]), "ops");
        set_keys(uet(&mut setup), "congestion_control=rccc");
        set_keys(&mut setup.fabric, "ecn=false");
        let mut setup =
            (0..down_ports).fold(setup, |setup, plane| with_fault(setup, down(&format!("host0-p{plane}.leaf0"))));
        (setup.limits.time_limit, setup.limits.until_all_done) = (Time::from_ms(1), true);
        setup.measure.series_flows = vec![0, 1, 2];
        setup.measure.series_interval = Time::from_us(100);
        let result = run(&setup);
        let sent = |at: u64| -> u64 {
            let of = |flow: &anabranch_outcome::FlowSeries| {
                flow.samples.iter().find(|sample| sample.time == Time::from_us(at)).unwrap().sent_packets
            };
            result.flow_series.iter().map(of).sum()
        };
        // 800 us at 0.99 of the rate: 9519.2 packets of 4160 B at 400 Gb/s.
        let expected = 9519 * gbps / 400;
        assert!(
            (sent(900) - sent(100)).abs_diff(expected) <= 12,
            "{down_ports}: {} of {expected}",
            sent(900) - sent(100)
        );
    }
}
