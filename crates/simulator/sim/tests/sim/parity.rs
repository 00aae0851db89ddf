//! The simulator and the wire run the same schemes: a fresh scheme returns the same, and a flow without network feedback
//! sends the same tags over both, in the same time.

#[path = "../../../../network/wire/tests/wire/common/mod.rs"]
mod wire;

use crate::common::*;
use anabranch_backend::Setup;
use anabranch_endpoint::{Settings, header};
use anabranch_lb::{
    Call, CallEvent, Decision, Record,
    registry::{HostParameters, SwitchParameters, TagKind},
    replay,
};
use anabranch_outcome::{PacketKind, RunResult, TraceEvent, TraceRow};
use anabranch_random::Stream;
use anabranch_settings::Auto;
use anabranch_topology::NodeId;
use anabranch_transport::{TransportParameters, uet::UetTransport};
use anabranch_units::{Bytes, BytesOrBdp, Rate, Time};
use anabranch_wire::memory::Link;

/// The switch side for a host scheme's tags.
fn partner(tags: TagKind) -> &'static str {
    match tags {
        TagKind::Entropy => "ecmp",
        TagKind::MultiPart => "ev-index",
        TagKind::Guided => "source-guided",
        TagKind::Category => "coarse-guided",
    }
}

/// Choices of switches are those of the packets that join their ports.
#[test]
fn switches_choose_for_the_packets_of_the_trace() {
    for switch in SwitchParameters::each().into_iter().filter(|switch| !switch.state().is_empty()) {
        let pair = format!("ecmp+{}", switch.name());
        let graph = fat_tree(2, 8);
        let flows = permutation(&graph, 100_000, 1);
        let (calls, result) = calls(&mut setup(graph, flows, &pair));
        let hop = |row: &&TraceRow| (row.packet, row.event) == (PacketKind::Data, TraceEvent::Hop);
        let hops =
            result.watched.trace.iter().filter(hop).map(|row| (row.joined, row.flow_id, row.psn, row.tag, row.link));
        let hops = sorted(hops);
        assert!(!calls.is_empty(), "{pair}");
        for call in calls {
            let CallEvent::Forward(psn, tag, link) = call.event else { panic!("{call:?}") };
            assert!(
                hops.binary_search(&(Some(call.time), call.flow, Some(psn), tag, link)).is_ok(),
                "{pair}: {call:?}"
            );
        }
    }
}

fn sent(row: &&TraceRow) -> bool {
    (row.packet, row.event) == (PacketKind::Data, TraceEvent::Send)
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort();
    items
}

/// Returns the calls of the schemes of all flows, and the result.
fn calls(setup: &mut Setup) -> (Vec<Call>, RunResult) {
    setup.measure.trace_flows = (0..setup.flows.flows.len() as u32).collect();
    (setup.measure.trace_scheme, setup.measure.trace_limit) = (true, u64::MAX);
    let result = run(setup);
    (result.watched.schemes.iter().map(|row| row.call.clone()).collect(), result)
}

#[test]
fn decisions_follow_from_calls_and_seed() {
    for host in HostParameters::each() {
        if host.capabilities().leaves_choice_to_switches() {
            continue;
        }
        let tags = host.capabilities().tags();
        let pair = format!("{}+{}", host.name(), partner(tags));
        let guided = matches!(tags, TagKind::Guided | TagKind::Category);
        let graph = if guided { topology("dragonfly", "p=2 a=4 h=2") } else { fat_tree(2, 8) };
        let flows = permutation(&graph, 300_000, 1);
        let transport = if guided { UetTransport::spritz() } else { UetTransport::default() };
        let mut setup = Setup { transport: TransportParameters::Uet(transport), ..setup(graph, flows, &pair) };
        let (calls, result) = calls(&mut setup);
        // 300 kB are 74 packets, of 32 hosts at least.
        assert!(calls.len() >= 32 * 74, "{pair}: {}", calls.len());
        assert_eq!(replay(&calls, |_, host| setup.load_balancers[0].host.build(setup.seed, host)), Ok(()), "{pair}");
        // The choices are the packets of the trace: times, flows, PSNs and tags.
        let sent = result.watched.trace.iter().filter(sent).map(|row| (row.time, row.flow_id, row.psn, row.tag));
        let chosen = calls.iter().filter(|call| call.word().starts_with("send"));
        let chosen = chosen.map(|call| (call.time, call.flow, call.psn(), call.tag().unwrap()));
        assert_eq!(sorted(chosen), sorted(sent), "{pair}");
    }
}

const MTU: u64 = 1000;
const PACKETS: u64 = 200;
/// Headers of our datagrams, UDP, IPv4 and Ethernet.
const HEADER: u64 = header::DATA_HEADER as u64 + 42;
const HOP: Time = Time::from_us(1);

fn transport() -> TransportParameters {
    let mut uet = UetTransport::default();
    (uet.uet.mtu, uet.uet.header, uet.uet.ack_size) = (Bytes(MTU), Bytes(HEADER), Bytes(HEADER));
    (uet.uet.window, uet.uet.ack_every) = (Auto::Value(BytesOrBdp::Bytes(1 << 20)), 1);
    set_keys(&mut uet.uet, "congestion_control=none");
    TransportParameters::Uet(uet)
}

fn tags(calls: &[Call]) -> Vec<u32> {
    let tag = |call: &Call| match call.event {
        CallEvent::Select(_, Decision::Send(tag) | Decision::SendWithAckRequest(tag)) => Some(tag),
        _ => None,
    };
    calls.iter().filter_map(tag).collect()
}

/// Tags and completion time of a flow between two hosts with eight paths, of `planes` planes.
fn simulated(scheme: &str, switch: &str, key: u64, planes: u32) -> (Vec<u32>, Time, u64) {
    let spines = 8 / planes;
    let keys = format!("leaves=2 spines={spines} hosts_per_leaf=1 link_rate=10Gbps link_delay=1us planes={planes}");
    let graph = topology("leaf-spine", &keys);
    let mut flows = flows(&[(0, 1, PACKETS * MTU, 0)]);
    (flows.flows[0].key, flows.flows[0].connection) = (key, key);
    let host_key = graph.key(NodeId(0));
    let mut setup = Setup { transport: transport(), ..setup(graph, flows, &format!("{scheme}+{switch}")) };
    // The host scheme `ecmp` leaves the choice to switches: its tag is in the trace.
    let (calls, result) = calls(&mut setup);
    let traced: Vec<u32> = result.watched.trace.iter().filter(sent).map(|row| row.tag).collect();
    let tags = if scheme == "ecmp" { traced } else { tags(&calls) };
    (tags, result.flows[0].fct_ack.unwrap(), host_key)
}

fn over_memory(scheme: &str, host_key: u64, planes: u32) -> (Vec<u32>, Time) {
    let settings = Settings {
        transport: transport(),
        scheme: HostParameters::named(scheme).unwrap(),
        host_key,
        rate: Rate::gbps(10),
        catch_up: Time::ZERO,
        labels: 8,
        planes,
        ..Settings::default()
    };
    // Four hops of 1 us; each of three switches stores and forwards.
    let wire = |bytes: u64| Rate::gbps(10).wire_time(bytes);
    let link = |bytes: u64| Link::new(Rate::gbps(10), HOP * 4 + wire(bytes) * 3);
    let record = Record::default();
    let mut pair = wire::Pair::new(1, &link(MTU + HEADER), [settings.clone(), settings]);
    for label in 0..8 {
        pair.network.set(1, 0, label, link(HEADER));
    }
    pair.open();
    pair.hosts[0].endpoint().0.record(&record);
    let start = pair.network.now();
    pair.send(0, 0, vec![1u8; (PACKETS * MTU) as usize]);
    assert!(pair.run(start + Time::from_us(100_000), &mut |pair| !pair.sent[0].is_empty()));
    (tags(&record.take()), pair.sent[0][0].2 - start)
}

#[test]
fn oblivious_schemes_send_the_same_tags_in_the_same_time() {
    let key = Stream::keyed(1, 0, "stream").bits();
    let full = Rate::gbps(10).wire_time(MTU + HEADER);
    for (scheme, switch) in
        [("ecmp", "ecmp"), ("ops", "ecmp"), ("rr", "ecmp"), ("co-prime", "ev-index"), ("qp-spray", "ecmp"), MRC]
    {
        let (theirs, simulated, host_key) = simulated(scheme, switch, key, 1);
        let (ours, measured) = over_memory(scheme, host_key, 1);
        assert_eq!(theirs.len(), PACKETS as usize, "{scheme}");
        assert_eq!(ours, theirs, "{scheme}");
        let apart = simulated.max(measured) - simulated.min(measured);
        assert!(apart < full, "{scheme}: {simulated} simulated, {measured} over memory");
    }
}

const MRC: (&str, &str) = ("mrc", "ev-index");

/// Values name the plane, the first part of a tag, on the wire as in the simulator.
#[test]
fn mrc_sends_the_same_values_over_planes() {
    let key = Stream::keyed(1, 0, "stream").bits();
    for planes in [2, 4] {
        let (theirs, _, host_key) = simulated(MRC.0, MRC.1, key, planes);
        let (ours, _) = over_memory(MRC.0, host_key, planes);
        assert_eq!(ours, theirs, "{planes} planes");
        // Planes take turns: 200 packets are as many in each.
        let of = |plane: u32| ours.iter().filter(|tag| **tag % planes == plane).count() as u64;
        assert!((0..planes).all(|plane| of(plane) == PACKETS / u64::from(planes)), "{ours:?}");
    }
}
