//! Invariants of every registered scheme under random events on several slots. New schemes are covered automatically.

use crate::{
    Call, Candidates, Decision, Delivery, Effects, Feedback, FlowInfo, GuidedPath, GuidedPaths, HostScheme, LinkSignal,
    Loss, MAX_STATE, Outgoing, PacketView, PathSpace, Record, StateColumn, SwitchHeader, SwitchInfo, SwitchScheme,
    host::testing::flow,
    registry::{Host, HostParameters, PacketScope, SchemeCapabilities, SwitchParameters, TagKind},
    replay,
    switch::testing::{LEAF, Queues, data},
};
use anabranch_units::Time;
use proptest::{prelude::*, strategy::ValueTree};
use std::sync::Arc;

const SLOTS: u32 = 4;
const SHAPES: [&[u32]; 5] = [&[], &[8], &[4, 4], &[3, 5], &[1, 2, 3]];

#[derive(Clone, Debug)]
enum Event {
    Open { slot: u32, shape: usize, key: u64, dead: u32 },
    Close { slot: u32 },
    Select { slot: u32, free: u32 },
    Ack { slot: u32, tag: u32, ecn: bool, rtt: Option<u64>, cumulative: u64, more: u64 },
    Nack { slot: u32, tag: u32, cause: Loss },
    Signal { slot: u32, tag: u32, bits: u16 },
    Timeout { slot: u32, tag: u32 },
    Paths { slot: u32, dead: u32 },
    Ports { slot: u32, down: u32 },
    Poll { slot: u32 },
    Reply { slot: u32, tag: u32, rtt: u64, ecn: bool },
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let slot = 0..SLOTS;
    let tag = prop_oneof![8 => 0u32..64, 1 => any::<u32>()];
    let cause = prop::sample::select(vec![Loss::Trimmed, Loss::TrimmedAtLastHop, Loss::Gap, Loss::Refused]);
    let ack = (0..SLOTS, tag.clone(), any::<bool>(), prop::option::of(0..100_000_000u64), 0..500u64, 0..100u64);
    prop_oneof![
        2 => (slot.clone(), 0..SHAPES.len(), any::<u64>(), any::<u32>())
            .prop_map(|(slot, shape, key, dead)| Event::Open { slot, shape, key, dead }),
        1 => slot.clone().prop_map(|slot| Event::Close { slot }),
        20 => (slot.clone(), any::<u32>()).prop_map(|(slot, free)| Event::Select { slot, free }),
        10 => ack.prop_map(|(slot, tag, ecn, rtt, cumulative, more)| Event::Ack { slot, tag, ecn, rtt, cumulative, more }),
        5 => (slot.clone(), tag.clone(), cause).prop_map(|(slot, tag, cause)| Event::Nack { slot, tag, cause }),
        2 => (slot.clone(), tag.clone(), any::<u16>()).prop_map(|(slot, tag, bits)| Event::Signal { slot, tag, bits }),
        2 => (slot.clone(), tag.clone()).prop_map(|(slot, tag)| Event::Timeout { slot, tag }),
        1 => (slot.clone(), any::<u32>()).prop_map(|(slot, dead)| Event::Paths { slot, dead }),
        1 => (slot.clone(), 0u32..16).prop_map(|(slot, down)| Event::Ports { slot, down }),
        4 => slot.clone().prop_map(|slot| Event::Poll { slot }),
        4 => (slot.clone(), tag.clone(), 0..100_000_000u64, any::<bool>())
            .prop_map(|(slot, tag, rtt, ecn)| Event::Reply { slot, tag, rtt, ecn }),
        4 => prop_oneof![0..20_000_000u64, 0..20_000_000_000u64].prop_map(Event::Wait),
    ]
}

fn guided_paths() -> GuidedPaths {
    GuidedPaths::new([691, 1274, 1274, 1274, 1491, 1491, 1491].iter().enumerate().map(|(i, &ns)| GuidedPath {
        ev: (i as u16) << 8 | 3,
        kind: i as u8 / 2,
        minimal: i == 0,
        latency: Time::from_ns(ns),
        propagation: Time::from_ns(ns / 2),
        hops: 2,
    }))
}

fn dead_list(shape: &[u32], bits: u32) -> Vec<bool> {
    if bits.is_multiple_of(3) || shape.is_empty() {
        Vec::new()
    } else {
        (0..shape.iter().product()).map(|p| bits >> (p % 32) & 1 == 1).collect()
    }
}

/// Tiers of which the first is taken as planes.
fn planes(shape: &[u32]) -> u32 {
    if shape.len() > 1 { shape[0] } else { 1 }
}

const MAX_PROBES: usize = 64;

/// Returns the host's decisions, with the shape of each flow, and the number of probes, each a decision to send.
fn play(host: &mut Host, of: &dyn SchemeCapabilities, events: &[Event]) -> (Vec<(Decision, &'static [u32])>, usize) {
    let (tags, heeds) = (of.tags(), of.tags() == TagKind::MultiPart && of.heeds_ports());
    let guided = Arc::new(guided_paths());
    let echo = |tag: u32| if tags == TagKind::Guided { guided.tag(tag % guided.len()) } else { tag };
    let (mut now, mut decisions) = (Time::ZERO, Vec::new());
    let mut sent_last = [0; SLOTS as usize];
    let mut probes: Vec<Vec<u32>> = vec![Vec::new(); SLOTS as usize];
    let mut sent = 0;
    let mut shapes: [Option<&'static [u32]>; SLOTS as usize] = [None; SLOTS as usize];
    for (i, event) in events.iter().enumerate() {
        match *event {
            Event::Open { slot, shape, key, dead } => {
                let uplinks = SHAPES[shape];
                shapes[slot as usize] = Some(uplinks);
                let dead = dead_list(uplinks, dead);
                let paths = PathSpace {
                    uplinks,
                    dead: &dead,
                    guided: (key % 5 != 0).then_some(&guided),
                    planes: planes(uplinks),
                    ..PathSpace::default()
                };
                let (dst, size, packets) = ((key % 3) as u32, 1 << 16, 16);
                let flow =
                    FlowInfo { key, connection: key, bdp_packets: key % 40, dst, size, packets, paths, ..flow(&[]) };
                host.open(now, slot, &flow);
            }
            Event::Close { slot } => {
                host.close(slot);
                shapes[slot as usize] = None;
            }
            Event::Select { slot, free } => {
                let free_ports = if free % 3 == 0 { u32::MAX } else { free };
                let packet =
                    Outgoing { psn: i as u64, retransmission: i % 7 == 0, free_ports, ..Outgoing::first(4096) };
                let decision = host.select(now, slot, &packet);
                if let Decision::Send(tag) | Decision::SendWithAckRequest(tag) = decision {
                    sent_last[slot as usize] = tag;
                }
                let shape = shapes[slot as usize].unwrap_or(&[]);
                if let (Decision::Send(tag), true) = (decision, heeds && planes(shape) > 1) {
                    let plane = tag & (planes(shape).next_power_of_two() - 1);
                    assert!(free_ports >> plane & 1 == 1, "plane {plane} of {tag} without space: {free_ports:b}");
                }
                decisions.push((decision, shape));
            }
            Event::Ack { slot, tag, ecn, rtt, cumulative, more } => {
                let rtt = rtt.map(Time::from_ps);
                // Mostly of the path in use: schemes that judge it ignore all others.
                let tag = if tag % 4 > 0 { sent_last[slot as usize] } else { echo(tag) };
                let feedback = Feedback {
                    tag,
                    ecn,
                    rtt,
                    psn: cumulative,
                    packets: 1,
                    bytes: 4096,
                    cumulative,
                    next_psn: cumulative + more,
                };
                host.on_ack(now, slot, &feedback);
            }
            Event::Nack { slot, tag, cause } => host.on_loss(now, slot, echo(tag), cause),
            Event::Signal { slot, tag, bits } => host.on_signal(slot, echo(tag), LinkSignal(bits)),
            Event::Timeout { slot, tag } => host.on_timeout(now, slot, echo(tag)),
            Event::Paths { slot, dead } => {
                let dead = dead_list(shapes[slot as usize].unwrap_or(&[]), dead);
                host.on_paths_changed(now, slot, &dead);
            }
            Event::Ports { slot, down } => host.on_ports_changed(now, slot, down & 3, down >> 2),
            Event::Poll { slot } => {
                let mut polled = 0;
                while let Some(probe) = host.poll_probe(now, slot) {
                    polled += 1;
                    assert!(polled <= MAX_PROBES && probe.bytes > 0, "{polled} probes at once, {probe:?}");
                    decisions.push((Decision::Send(probe.tag), shapes[slot as usize].unwrap_or(&[])));
                    probes[slot as usize].push(probe.tag);
                    sent += 1;
                }
            }
            Event::Reply { slot, tag, rtt, ecn } => {
                // Of a probe in flight if there is one; else of an earlier flow in this slot, or noise.
                let tag = probes[slot as usize].pop().unwrap_or_else(|| echo(tag));
                host.on_probe_reply(now, slot, tag, Time::from_ps(rtt), ecn);
            }
            Event::Wait(ps) => now += Time::from_ps(ps),
        }
    }
    (decisions, sent)
}

/// Returns the calls of a host whose slots are open throughout.
fn recorded(parameters: &HostParameters, seed: u64, events: &[Event]) -> Vec<Call> {
    let opened = (0..SLOTS).map(|slot| Event::Open { slot, shape: 3, key: slot.into(), dead: 0 });
    let events: Vec<Event> =
        opened.chain(events.iter().filter(|event| !matches!(event, Event::Close { .. })).cloned()).collect();
    let record = Record::default();
    let mut host = record.wrap(parameters.build(seed, 1), parameters.name(), 1);
    play(&mut host, parameters.capabilities(), &events);
    record.take()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn hosts(events in prop::collection::vec(event(), 1..300), others in prop::collection::vec(event(), 1..50), seed: u64) {
        for about in HostParameters::ALL {
            for parameters in super::variants::<HostParameters>(about.name) {
                let tags = parameters.capabilities().tags();
                let of = parameters.capabilities();
                let decisions = play(&mut parameters.build(seed, 1), of, &events).0;
                for (decision, shape) in &decisions {
                    if let (Decision::Send(tag), TagKind::Guided) = (decision, tags) {
                        let paths = guided_paths();
                        prop_assert!(*tag == 0 || (0..paths.len()).any(|i| paths.tag(i) == *tag), "{}: {tag}", about.name);
                    }
                    let (Decision::Send(tag), TagKind::MultiPart) = (decision, tags) else { continue };
                    let mut rest = *tag;
                    for &size in *shape {
                        let bits = size.next_power_of_two().trailing_zeros();
                        prop_assert!(rest & ((1 << bits) - 1) < size, "{}: {tag} of {shape:?}", about.name);
                        rest >>= bits;
                    }
                    prop_assert_eq!(rest, 0, "{}: {} of {:?}", about.name, tag, shape);
                }
                // The same again, and beside another host whose events run first.
                let mut other = parameters.build(seed, 2);
                play(&mut other, of, &others);
                prop_assert_eq!(&play(&mut parameters.build(seed, 1), of, &events).0, &decisions, "{}", about.name);
            }
        }
    }

    /// A fresh scheme repeats the recorded calls, and no scheme has values beside the columns that it declares.
    #[test]
    fn records(events in prop::collection::vec(event(), 1..300), seed: u64) {
        for about in HostParameters::ALL {
            for parameters in super::variants::<HostParameters>(about.name) {
                let calls = recorded(&parameters, seed, &events);
                prop_assert_eq!(replay(&calls, |_, host| parameters.build(seed, host)), Ok(()));
                let beside = |call: &Call| (parameters.state().len()..MAX_STATE).any(|at| call.state.get(at).is_some());
                prop_assert!(!calls.iter().any(beside), "{}", about.name);
            }
        }
    }

    #[test]
    fn switches(
        packets in prop::collection::vec((any::<u64>(), any::<u32>(), any::<bool>(), 0u32..3, 2u32..9), 1..200),
        lengths in prop::collection::vec(0u64..4, 8),
        seed: u64,
    ) {
        let info = SwitchInfo { groups: 3, uplinks: vec![8], ..LEAF };
        let position: Vec<u16> = (0..8).collect();
        for about in SwitchParameters::ALL {
            let parameters = SwitchParameters::named(about.name).unwrap();
            let run = || {
                let mut switch = parameters.build(seed, &info);
                let (mut chosen, mut seen) = (Vec::new(), parameters.state().is_empty());
                for (i, &(flow, tag, control, group, count)) in packets.iter().enumerate() {
                    if i == 100 {
                        switch.on_routes_changed(3);
                    }
                    let packet = PacketView { control, ..data(flow, tag) };
                    let positions = &position[..count as usize];
                    let candidates = Candidates { count, group, position: positions, port: positions, uplinks: 8 };
                    let mut header = SwitchHeader::default();
                    let mut queues = Queues::new(&lengths);
                    let now = Time::from_us(i as u64);
                    let index = switch.forward(now, &packet, &mut header, &candidates, &mut queues);
                    assert!(index < count, "{}: {index} of {count}", about.name);
                    let state = switch.state(now, &packet, &header);
                    assert!((parameters.state().len()..MAX_STATE).all(|at| state.get(at).is_none()), "{}", about.name);
                    seen |= control || state.get(0).is_some();
                    assert!(queues.reads.iter().all(|&reads| reads <= 1), "{}: a queue read twice", about.name);
                    chosen.push(index);
                }
                assert!(seen, "{} declares a state that it does not have", about.name);
                chosen
            };
            prop_assert_eq!(run(), run(), "{}", about.name);
        }
    }

    #[test]
    fn switches_at_every_hop(
        events in prop::collection::vec((0u32..5, 0u64..6, any::<[u32; 5]>(), any::<bool>(), 0u64..300), 1..300),
        seed: u64,
        lossless: bool,
        reference in prop::option::of(any::<u32>()),
        shape in 0..SHAPES.len(),
    ) {
        let uplinks = SHAPES[shape];
        let (position, zero): (Vec<u16>, [u16; 8]) = ((0..8).collect(), [0; 8]);
        for name in SwitchParameters::names(|switch| switch.capabilities().packet_scope() == PacketScope::EveryHop) {
            for tier in 0..2 {
                let (murmur3, udp_ports) = (reference, reference.is_some());
                let (groups, uplinks) = (3, uplinks.to_vec());
                let info = SwitchInfo { tier, murmur3, udp_ports, lossless, groups, uplinks, ..LEAF };
                let mut switch = SwitchParameters::named(name).unwrap().build(seed, &info);
                let (mut now, mut header, mut waiting) = (Time::ZERO, SwitchHeader::default(), Vec::<u32>::new());
                for &(what, flow, noise, own, us) in &events {
                    now += Time::from_us(us);
                    let leaves = if own { (0, 1) } else { (2, 0) };
                    let packet = PacketView { marked: own, src_leaf: leaves.0, dst_leaf: leaves.1, ..data(flow, 0) };
                    let mut given = if own { header } else { SwitchHeader(noise) };
                    let mut out = Effects::default();
                    match what {
                        0 | 1 => {
                            let count = noise[0] % 8 + 1;
                            let positions = if noise[1] % 4 == 0 { &zero[..] } else { &position[..] };
                            let (position, port) = (&positions[..count as usize], &position[..count as usize]);
                            let candidates = Candidates { count, group: 0, position, port, uplinks: 8 };
                            let index = switch.forward(now, &packet, &mut given, &candidates, &mut Queues::new(&[0, 1, 2, 3, 4, 5, 6, 7]));
                            prop_assert!(index < count, "{}: {index} of {count}", name);
                            header = given;
                        }
                        2 => if let Delivery::Hold(queue) = switch.deliver(now, &packet, &given, &mut out) {
                            prop_assert!(queue as usize <= waiting.len(), "{}: queues are not dense", name);
                            waiting.resize(waiting.len().max(queue as usize + 1), 0);
                            waiting[queue as usize] += 1;
                        },
                        3 => switch.on_control(now, &packet, &given, &mut out),
                        _ => switch.on_timer(now, noise[0] % 8, &mut out),
                    }
                    prop_assert!(what == 2 || out.reply.is_empty(), "{}: a reply to nothing", name);
                    prop_assert!(out.wake.iter().all(|&(time, _)| time >= now), "{}", name);
                    for queue in out.release {
                        prop_assert!(waiting[queue as usize] > 0, "{}: nothing waits in {queue}", name);
                        waiting[queue as usize] = 0;
                    }
                }
            }
        }
    }
}

/// Random events reach probes and replies, so that the tests above cover a scheme that probes (at least Hopper), and every
/// column of every scheme.
#[test]
fn random_events_reach_probes_and_columns() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let lists = prop::collection::vec(event(), 200..300);
    let (mut probing, mut known) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for _ in 0..100 {
        let events = lists.new_tree(&mut runner).unwrap().current();
        for parameters in HostParameters::ALL.iter().flat_map(|about| super::variants::<HostParameters>(about.name)) {
            let calls = recorded(&parameters, 1, &events);
            if calls.iter().any(|call| call.word() == "probe") {
                probing.insert(parameters.name());
            }
            let columns = (0..parameters.state().len()).filter(|at| calls.iter().any(|c| c.state.get(*at).is_some()));
            known.extend(columns.map(|at| (parameters.name(), at)));
        }
    }
    assert!(probing.contains("hopper"), "{probing:?}");
    for parameters in HostParameters::each() {
        for (at, StateColumn { name, .. }) in parameters.state().iter().enumerate() {
            assert!(known.contains(&(parameters.name(), at)), "{}: nothing in `{name}`", parameters.name());
        }
    }
}
