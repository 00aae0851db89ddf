//! Host scheme `mrc` in a simulated fabric: dead and slow links, a switch that dies, ports, against closed forms.

use crate::common::*;
use anabranch_backend::{FabricParameters, Setup};
use anabranch_outcome::{PacketKind, RunResult, TraceEvent, TraceRow};
use anabranch_topology::{FaultKind, NodeId, Topology};
use anabranch_transport::{TransportParameters, uet::UetTransport};
use anabranch_units::Time;

/// Planes of 100 Gb/s with links of 1 us.
fn fabric(leaves: u32, spines: u32, hosts: u32, planes: u32) -> Topology {
    let rate = 100 * planes;
    let keys = format!(
        "leaves={leaves} spines={spines} hosts_per_leaf={hosts} planes={planes} link_rate={rate}Gbps link_delay=1us"
    );
    topology("leaf-spine", &keys)
}

/// The profile `mrc`, with every packet traced.
fn deployed(topology: &Topology, list: &[(u32, u32, u64, u64)], scheme: &str, keys: &str) -> Setup {
    let mut setup = setup(topology.clone(), flows(list), scheme);
    setup.fabric = FabricParameters::mrc();
    setup.transport = TransportParameters::Uet(UetTransport::mrc());
    set_keys(setup.load_balancers[0].host.parameters_mut(), keys);
    setup.measure.trace_flows = (0..list.len() as u32).collect();
    setup.measure.trace_limit = 100_000_000;
    setup
}

/// Time of a full packet and of its acknowledgement over four links of 100 Gb/s, and the packets of `planes` such planes in it.
fn base_rtt(planes: u64) -> (u64, f64) {
    let rtt = 4 * (4 * WIRE + DELAY) + 4 * (4 * ACK + DELAY);
    (rtt, planes as f64 * rtt as f64 / (4 * WIRE) as f64)
}

fn of_flow(result: &RunResult, flow: u32) -> impl Iterator<Item = &TraceRow> + Clone {
    assert!(!result.watched.trace_cut);
    result.watched.trace.iter().filter(move |row| row.flow_id == flow)
}

/// Returns the data packets that a host has sent to each plane.
fn sent(topology: &Topology, result: &RunResult, host: u32) -> Vec<usize> {
    let port = |plane| {
        let ends = (&topology.node(NodeId(host)).name, &topology.node(topology.edge_switch_in(host, plane)).name);
        result.links.iter().position(|link| (&link.from, &link.to) == ends).expect("a port") as u32
    };
    let is_data = |row: &&TraceRow| row.event == TraceEvent::Send && row.packet == PacketKind::Data;
    let of = |port| result.watched.trace.iter().filter(is_data).filter(|row| row.link == port).count();
    (0..topology.planes).map(port).map(of).collect()
}

const DEAD: &str = "p0.leaf0->p0.spine1";

/// Two planes of four uplinks, eight active values, no backups: a link that dies takes of every queue pair what it sends there in
/// two base round trips, an eighth of 2 BDP, and two packets for the spacing of SACKs. Then it carries probes alone; after its return
/// three of them bring the value back.
#[test]
fn a_dead_link_costs_two_round_trips_of_its_value() {
    // Two hosts load the other seven uplinks to 4 / 7: queues make no packet late.
    let topology = fabric(2, 4, 2, 2);
    let list: Vec<_> = (0..2).map(|host| (host, 2 + host, 32 << 20, 0)).collect();
    let (down, up) = (Time::from_us(100), Time::from_us(600));
    let setup = deployed(&topology, &list, "mrc", "active=8 backup=0 min_active=2");
    let setup = with_fault(setup, link_fault(FaultKind::LinkDown, down, DEAD));
    let setup = with_fault(setup, link_fault(FaultKind::LinkUp, up, DEAD));
    let result = run(&setup);
    let (_, bdp) = base_rtt(2);
    let dead = result.links.iter().position(|link| format!("{}->{}", link.from, link.to) == DEAD).unwrap() as u32;
    for flow in 0..2 {
        let rows = || of_flow(&result, flow);
        let lost = rows().filter(|row| row.event == TraceEvent::Loss && row.packet == PacketKind::Data).count();
        assert!(lost > 0 && lost as f64 <= 2.0 * bdp / 8.0 + 2.0, "{lost} of {bdp}");
        let withdrawn: Vec<_> = rows().filter(|row| row.event == TraceEvent::ValueWithdrawn).collect();
        let [out] = withdrawn[..] else { panic!("{withdrawn:?}") };
        let back = rows().find(|row| row.event == TraceEvent::ValueGood && row.tag == out.tag && row.time > out.time);
        let back = back.expect("a value that returns").time;
        let while_out = |row: &&TraceRow| row.tag == out.tag && row.time > out.time && row.time < back;
        let is_ours = |row: &&TraceRow| row.event == TraceEvent::Send && row.packet != PacketKind::ProbeReply;
        let sent = rows().filter(is_ours).filter(while_out);
        assert!(sent.clone().count() > 3 && sent.clone().all(|row| row.packet == PacketKind::Probe));
        let passed =
            rows().filter(|row| row.link == dead && row.packet == PacketKind::Probe && row.event == TraceEvent::Hop);
        assert_eq!(passed.filter(while_out).filter(|row| row.time >= up).count(), 3);
        assert!(rows().any(|row| row.link == dead && row.packet == PacketKind::Data && row.time > back));
    }
}

/// Three active values per plane, one of which is withdrawn. A backup of the plane takes its place; without one the plane has
/// two of five turns, where its ports are not full.
#[test]
fn backups_keep_the_shares_of_planes_equal() {
    let topology = fabric(2, 4, 4, 2);
    for (keys, share) in
        [("active=6 backup=2", 0.5), ("active=6 backup=0", 0.4), ("active=6 backup=0 planes=equal", 0.5)]
    {
        // A host has the dead link among its values with a probability of 3 / 4.
        let list: Vec<_> = (0..4).map(|host| (host, 4 + host, 8 << 20, 0)).collect();
        let mut setup = deployed(&topology, &list, "mrc", keys);
        set_keys(uet(&mut setup), "congestion_control=none window=0.5bdp");
        let setup = with_fault(setup, link_fault(FaultKind::LinkDown, Time::ZERO, DEAD));
        let result = run(&setup);
        for host in 0..4 {
            let hit = of_flow(&result, host).any(|row| row.event == TraceEvent::ValueWithdrawn);
            let expected = if hit { share } else { 0.5 };
            let sent = sent(&topology, &result, host);
            let found = sent[0] as f64 / (sent[0] + sent[1]) as f64;
            assert!((found - expected).abs() < 0.01, "{keys}, host {host}: {found}, not {expected}");
        }
    }
}

/// The receiver's port fails: its peer is notified, so that at most one flight of the plane, a window over eight ports, is lost; and no
/// other value than those of the plane is withdrawn.
#[test]
fn a_port_of_the_receiver_is_masked_by_its_message() {
    let topology = fabric(2, 2, 2, 8);
    let setup = deployed(&topology, &[(0, 2, 16 << 20, 0)], "mrc", "");
    let setup = with_fault(setup, link_fault(FaultKind::LinkDown, Time::from_us(40), "host2-p5.leaf1"));
    let result = run(&setup);
    let lost = |packet| of_flow(&result, 0).filter(|row| row.event == TraceEvent::Loss && row.packet == packet).count();
    let flight = 1.5 * base_rtt(1).1;
    let data = lost(PacketKind::Data);
    assert!(data > 0 && data as f64 <= flight + 1.0, "{data} of {flight}");
    let planes = of_flow(&result, 0).filter(|row| row.event == TraceEvent::ValueWithdrawn).map(|row| row.tag % 8);
    assert!(planes.clone().all(|plane| plane == 5));
}

/// A switch above the leaves dies. Of the queue pairs between leaves that share has it among their values, which is active / P of
/// R / 2 in its plane, each independently: four planes, R = 32, 16 active values are 4 / 16 = 25 %, as many as 128 values with R = 256.
#[test]
fn a_dead_switch_hits_the_queue_pairs_that_have_it() {
    let topology = fabric(4, 16, 8, 4);
    let pairs = 400u32;
    // 64 packets each, four rotations, one after the other from each host: nothing else is lost.
    let list: Vec<_> = (0..pairs)
        .map(|pair| {
            (pair % 32, (pair % 32 + 8 * (1 + pair / 32 % 3)) % 32, 64 * 4096, u64::from(pair / 32) * 40_000_000)
        })
        .collect();
    let mut fault = link_fault(FaultKind::SwitchDown, Time::ZERO, "");
    (fault.links, fault.switches) = (vec![], vec!["p2.spine7".into()]);
    let setup = with_fault(deployed(&topology, &list, "mrc", "active=16 backup=0"), fault);
    let result = run(&setup);
    assert_eq!(result.counters.trimmed, Some(0));
    let is_lost = |row: &TraceRow| row.event == TraceEvent::Loss && row.packet == PacketKind::Data;
    let hit = (0..pairs).filter(|pair| of_flow(&result, *pair).any(is_lost)).count() as f64;
    // The binomial has a mean of 100 and a deviation of the root of 400 x 0.25 x 0.75, 8.7: four of them.
    assert!((hit - 100.0).abs() < 4.0 * 8.7, "{hit} of {pairs}");
    assert!(result.flows.iter().all(|flow| flow.fct_rx.is_some()));
}

/// One of eight uplinks has the share r of its rate, and may take r / (7 + r) of the packets: a half 1 / 15, a quarter 1 / 29. A value
/// that is marked on every use keeps 1 / 15: at a quarter the link trims. The penalties of PRIME with `auto` go on to grow.
#[test]
fn a_link_slower_than_half_stays_overloaded() {
    let keys = "leaves=2 spines=8 hosts_per_leaf=8 link_rate=400Gbps link_delay=1us";
    let topology = topology("leaf-spine", keys);
    let list: Vec<_> = (0..8).map(|host| (host, 8 + host, 16 << 20, 0)).collect();
    let of = |scheme: &str, keys: &str, factor: f64| {
        let mut setup = deployed(&topology, &list, scheme, keys);
        // Late packets are not lost here, so that no value is withdrawn for being slow.
        set_keys(uet(&mut setup), "rack=never");
        setup.measure.trace_flows.clear();
        let mut slow = link_fault(FaultKind::LinkDegrade, Time::ZERO, "leaf0->spine0");
        slow.factor = factor;
        let result = run(&with_fault(setup, slow));
        let up: Vec<_> =
            result.links.iter().filter(|link| link.from == "leaf0" && link.to.starts_with("spine")).collect();
        // A trimmed packet counts as well: its header is sent.
        let share = up[0].packets as f64 / up.iter().map(|link| link.packets).sum::<u64>() as f64;
        let last = result.flows.iter().filter_map(|flow| flow.fct_rx).max().unwrap();
        (share, up[0].trims.unwrap(), last)
    };
    let (half, quarter) = (of("mrc", "", 0.5), of("mrc", "", 0.25));
    assert!(half.0 > 1.0 / 15.0 && quarter.0 > 1.0 / 15.0, "{half:?} {quarter:?}");
    let auto = of("prime", "p_ecn=auto", 0.25);
    assert!(auto.0 < 1.0 / 15.0 && 2 * auto.1 < quarter.1 && auto.2 < quarter.2, "{quarter:?} {auto:?}");
}

/// A flow whose paths are all denied waits without any event; it goes on at the time at which they are allowed again, on any
/// number of threads. Without that the run ends as stalled, with the reason.
#[test]
fn denied_paths_hold_a_flow_until_they_are_allowed() {
    let topology = fabric(2, 2, 1, 1);
    let setup = deployed(&topology, &[(0, 1, 100 * 4096, 0)], "mrc", "");
    let deny = |kind, at| link_fault(kind, at, "leaf0-spine*");
    let denied = with_fault(setup, deny(FaultKind::PathDeny, Time::ZERO));
    let stalled = run(&denied);
    assert_eq!(stalled.flows[0].fct_rx, None);
    assert!(stalled.stall_reason.as_ref().is_some_and(|reason| reason.contains("no path left")));
    let allowed = with_fault(denied, deny(FaultKind::PathAllow, Time::from_us(50)));
    for threads in [1, 2] {
        let result = run_on(&allowed, threads);
        let sends = of_flow(&result, 0).filter(|row| row.event == TraceEvent::Send && row.packet == PacketKind::Data);
        assert_eq!(sends.map(|row| row.time).min(), Some(Time::from_us(50)));
        // 100 packets of the port, over four links in a row.
        let expected = Time::from_ps((100 + 3) * 4 * WIRE + 4 * DELAY);
        assert_eq!(result.flows[0].fct_rx, Some(expected));
    }
}

/// A denied port of a NIC carries nothing.
#[test]
fn a_denied_port_carries_nothing() {
    let topology = fabric(2, 4, 2, 4);
    for link in ["host0-p1.leaf0", "host2-p1.leaf1"] {
        let setup = deployed(&topology, &[(0, 2, 1 << 20, 0)], "mrc", "");
        let result = run(&with_fault(setup, link_fault(FaultKind::PathDeny, Time::ZERO, link)));
        let sent = sent(&topology, &result, 0);
        assert!(sent[1] == 0 && [0, 2, 3].iter().all(|plane| sent[*plane].abs_diff(256 / 3) <= 1), "{link}: {sent:?}");
    }
}
