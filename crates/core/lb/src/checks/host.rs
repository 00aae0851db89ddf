//! Random events of host schemes, on several slots.

use super::{Broken, Check, CountingAllocator, Finding, differs, draw, ensure, watched};
use crate::{
    Decision, Feedback, FlowInfo, GuidedPath, GuidedPaths, HostScheme, LinkSignal, Loss, Outgoing, PathSpace,
    host::testing::flow,
    registry::{Host, HostParameters, SchemeCapabilities, TagKind},
};
use anabranch_random::Stream;
use anabranch_units::{Rate, Time};
use std::{cell::Cell, ops::Range, sync::Arc, time::Duration};

const SLOTS: u32 = 4;
const SHAPES: [&[u32]; 5] = [&[], &[8], &[4, 4], &[3, 5], &[1, 2, 3]];

#[derive(Clone, Debug)]
enum Event {
    Open { slot: u32, shape: usize, key: u64, dead: u32 },
    Close { slot: u32 },
    Select { slot: u32, free: u32 },
    Ack { slot: u32, tag: u32, ecn: bool, rtt: Option<u64>, cumulative: u64, more: u64, selective: u64 },
    Signal { slot: u32, tag: u32, bits: u16 },
    Nack { slot: u32, tag: u32, cause: Loss },
    Timeout { slot: u32, tag: u32 },
    Paths { slot: u32, dead: u32 },
    Ports { slot: u32, down: u32 },
    Poll { slot: u32 },
    Reply { slot: u32, tag: u32, rtt: u64, ecn: bool },
    Wait(u64),
}

/// Draws an event. Tags are mostly of few values, so that they are those of packets.
fn event(draws: &mut Stream) -> Event {
    let slot = draws.below(SLOTS.into()) as u32;
    let tag = if draws.chance(8, 9) { draws.below(64) as u32 } else { draws.bits() as u32 };
    let causes = [Loss::Trimmed, Loss::TrimmedAtLastHop, Loss::Gap, Loss::Refused];
    match draws.below(56) {
        0..2 => Event::Open {
            slot,
            shape: draws.below(SHAPES.len() as u64) as usize,
            key: draws.bits(),
            dead: draws.bits() as u32,
        },
        2 => Event::Close { slot },
        3..23 => Event::Select { slot, free: draws.bits() as u32 },
        23..33 => Event::Ack {
            slot,
            tag,
            ecn: draws.chance(1, 2),
            rtt: draws.chance(1, 2).then(|| draws.below(100_000_000)),
            cumulative: draws.below(500),
            more: draws.below(100),
            selective: draws.bits() & draws.bits(),
        },
        33..38 => Event::Nack { slot, tag, cause: causes[draws.below(4) as usize] },
        38..40 => Event::Timeout { slot, tag },
        40 => Event::Paths { slot, dead: draws.bits() as u32 },
        41 => Event::Ports { slot, down: draws.below(16) as u32 },
        42..46 => Event::Poll { slot },
        46..50 => Event::Reply { slot, tag, rtt: draws.below(100_000_000), ecn: draws.chance(1, 2) },
        50..52 => Event::Wait(draws.below(20_000_000)),
        52..54 => Event::Signal { slot, tag, bits: draws.bits() as u16 },
        _ => Event::Wait(draws.below(20_000_000_000)),
    }
}

fn events(seed: u64, purpose: &str, most: u64) -> Vec<Event> {
    let mut draws = draw(seed, purpose);
    (0..1 + draws.below(most)).map(|_| event(&mut draws)).collect()
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

/// Returns the host's decisions, probes included, and the number of probes.
fn play(
    host: &mut Host,
    of: &dyn SchemeCapabilities,
    events: &[Event],
    at: &Cell<usize>,
) -> Result<(Vec<Decision>, usize), Finding> {
    let (tags, heeds) = (of.tags(), of.tags() == TagKind::MultiPart && of.heeds_ports());
    let guided = Arc::new(guided_paths());
    let echo = |tag: u32| if tags == TagKind::Guided { guided.tag(tag % guided.len()) } else { tag };
    let (mut now, mut decisions) = (Time::ZERO, Vec::new());
    let mut sent_last = [0; SLOTS as usize];
    let mut probes: Vec<Vec<u32>> = vec![Vec::new(); SLOTS as usize];
    let mut sent = 0;
    let mut shapes: [Option<&'static [u32]>; SLOTS as usize] = [None; SLOTS as usize];
    for (i, event) in events.iter().enumerate() {
        at.set(i);
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
                let bdp_packets = key % 40;
                // With order in the network and without.
                let early_packets = [0, u64::MAX][(key / 2 % 2) as usize];
                let flow = FlowInfo {
                    key,
                    connection: key,
                    bdp_packets,
                    early_packets,
                    dst,
                    size,
                    packets,
                    paths,
                    ..flow(&[])
                };
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
                    let space = || format!("plane {plane} of {tag} without space: {free_ports:b}");
                    ensure(free_ports >> plane & 1 == 1, Check::Interface, space)?;
                }
                exists(decision, tags, shape)?;
                decisions.push(decision);
            }
            Event::Ack { slot, tag, ecn, rtt, cumulative, more, selective } => {
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
                    selective,
                    selective_from: cumulative + more / 2,
                };
                host.on_ack(now, slot, &feedback);
            }
            Event::Signal { slot, tag, bits } => host.on_signal(now, slot, echo(tag), LinkSignal(bits)),
            Event::Nack { slot, tag, cause } => host.on_loss(now, slot, echo(tag), cause),
            Event::Timeout { slot, tag } => host.on_timeout(now, slot, echo(tag)),
            Event::Paths { slot, dead } => {
                let dead = dead_list(shapes[slot as usize].unwrap_or(&[]), dead);
                host.on_paths_changed(now, slot, &dead);
                let rates: Vec<Rate> = dead.iter().map(|dead| Rate(u64::from(!dead))).collect();
                host.on_rates_changed(now, slot, &rates);
            }
            Event::Ports { slot, down } => host.on_ports_changed(now, slot, down & 3, down >> 2),
            Event::Poll { slot } => {
                let mut polled = 0;
                while let Some(probe) = host.poll_probe(now, slot) {
                    polled += 1;
                    let probes_at_once = || format!("{polled} probes at once, {probe:?}");
                    ensure(polled <= MAX_PROBES && probe.bytes > 0, Check::Interface, probes_at_once)?;
                    let decision = Decision::Send(probe.tag);
                    exists(decision, tags, shapes[slot as usize].unwrap_or(&[]))?;
                    decisions.push(decision);
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
    Ok((decisions, sent))
}

/// Checks that the path of a decision is there.
fn exists(decision: Decision, tags: TagKind, shape: &[u32]) -> Result<(), Finding> {
    let (Decision::Send(tag) | Decision::SendWithAckRequest(tag)) = decision else { return Ok(()) };
    let is_there = match tags {
        TagKind::Entropy | TagKind::Category => true,
        TagKind::Guided => {
            let paths = guided_paths();
            tag == 0 || (0..paths.len()).any(|i| paths.tag(i) == tag)
        }
        TagKind::MultiPart => {
            let mut rest = tag;
            let parts = shape.iter().all(|&size| {
                let bits = size.next_power_of_two().trailing_zeros();
                let part = rest & ((1 << bits) - 1);
                rest >>= bits;
                part < size
            });
            parts && rest == 0
        }
    };
    ensure(is_there, Check::PathExists, || format!("tag {tag} leads nowhere among {tags:?} of {shape:?}"))
}

/// Checks a host scheme with events of these seeds.
///
/// # Errors
/// The first check that fails, with its seed.
///
/// # Panics
/// If [`CountingAllocator`] is not the program's allocator.
pub fn host(parameters: &HostParameters, seeds: Range<u64>) -> Result<(), Broken> {
    assert!(
        CountingAllocator::is_used(),
        "allocations are not counted: declare a CountingAllocator as global allocator"
    );
    let of = parameters.capabilities();
    let run = |seed| {
        watched((parameters.name(), seed), |at| {
            play(&mut parameters.build(seed, 1), of, &events(seed, "events", 300), at).map(|(decisions, _)| decisions)
        })
    };
    let first = seeds.clone().map(run).collect::<Result<Vec<_>, _>>()?;
    // Time for a clock of milliseconds to proceed.
    std::thread::sleep(Duration::from_millis(2));
    for (seed, first) in seeds.clone().zip(first) {
        // Beside another host, whose events come first.
        watched((parameters.name(), seed), |at| {
            play(&mut parameters.build(seed, 2), of, &events(seed, "others", 50), at)
        })?;
        let again = run(seed)?;
        watched((parameters.name(), seed), |_| differs(&first, &again))?;
    }
    for seed in seeds.take(3) {
        watched((parameters.name(), seed), |at| memory(&mut parameters.build(seed, 1), of, at))?;
    }
    Ok(())
}

/// Packets of the flow that counts allocations: the first half fills what a scheme keeps.
const PACKETS: u64 = 8192;
/// Flows after each other of which nothing may remain, likewise.
const FLOWS: u64 = 2048;

/// Checks that neither packets nor flows cost memory.
fn memory(host: &mut Host, of: &dyn SchemeCapabilities, at: &Cell<usize>) -> Result<(), Finding> {
    let guided = Arc::new(guided_paths());
    let shape: &[u32] = if of.tags() == TagKind::MultiPart { &[4, 4] } else { &[8] };
    let paths = PathSpace { uplinks: shape, guided: Some(&guided), ..PathSpace::default() };
    let mut now = Time::ZERO;
    let mut packet = |host: &mut Host, psn: u64| {
        now += Time::from_ns(100);
        let tag = match host.select(now, 0, &Outgoing { psn, eligible_at: now, ..Outgoing::first(4096) }) {
            Decision::Send(tag) | Decision::SendWithAckRequest(tag) => tag,
            Decision::Hold(until) => {
                now = now.max(until);
                return;
            }
            Decision::Wait => 0,
        };
        let ecn = psn.is_multiple_of(16);
        let (cumulative, next_psn, rtt) = (psn + 1, psn + 65, Some(Time::from_us(10 + psn % 3)));
        let feedback =
            Feedback { tag, ecn, rtt, psn, packets: 1, bytes: 4096, cumulative, next_psn, ..Feedback::default() };
        host.on_ack(now, 0, &feedback);
        if psn % 64 == 1 {
            host.on_loss(now, 0, tag, Loss::Trimmed);
        }
        if psn % 512 == 2 {
            host.on_timeout(now, 0, tag);
        }
        while let Some(probe) = host.poll_probe(now, 0) {
            host.on_probe_reply(now, 0, probe.tag, Time::from_us(11), false);
        }
    };
    let info =
        |key: u64| FlowInfo { key, connection: key, dst: (key % 3) as u32, packets: PACKETS, paths, ..flow(&[]) };
    host.open(Time::ZERO, 0, &info(1));
    (0..PACKETS / 2).for_each(|psn| packet(host, psn));
    let before = CountingAllocator::allocations();
    (PACKETS / 2..PACKETS).for_each(|psn| packet(host, psn));
    let more = CountingAllocator::allocations() - before;
    at.set(PACKETS as usize);
    ensure(more == 0, Check::NoAllocation, || format!("{more} allocations for {} packets", PACKETS / 2))?;
    host.close(0);
    let mut flows = |from: u64| {
        for key in from..from + FLOWS {
            host.open(Time::ZERO, 0, &info(key));
            (0..4).for_each(|psn| packet(host, psn));
            host.close(0);
        }
        CountingAllocator::bytes()
    };
    let (before, after) = (flows(2), flows(2 + FLOWS));
    let what = || format!("{} B more after {FLOWS} flows that closed", after - before);
    ensure(after - before < FLOWS as i64, Check::NoLeak, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, MAX_STATE, Record, StateColumn, checks::variants, replay};
    use std::collections::BTreeSet;

    #[test]
    fn every_host_scheme_passes() {
        for scheme in HostParameters::each() {
            for parameters in variants(&scheme) {
                host(&parameters, 0..150).unwrap_or_else(|broken| panic!("{broken}"));
            }
        }
    }

    /// Returns the calls of a host whose slots are open throughout.
    fn recorded(parameters: &HostParameters, seed: u64) -> Vec<Call> {
        let opened = (0..SLOTS).map(|slot| Event::Open { slot, shape: 3, key: slot.into(), dead: 0 });
        let drawn = events(seed, "recorded", 300).into_iter();
        let events: Vec<Event> = opened.chain(drawn.filter(|event| !matches!(event, Event::Close { .. }))).collect();
        let record = Record::default();
        let mut host = record.wrap(parameters.build(seed, 1), parameters.name(), 1);
        play(&mut host, parameters.capabilities(), &events, &Cell::new(0)).unwrap();
        record.take()
    }

    /// A fresh scheme repeats the recorded calls; no scheme has values beside the columns that it declares; and random events
    /// reach every column, and the probes of schemes that probe.
    #[test]
    fn records_repeat_and_reach_every_column() {
        let (mut probing, mut known) = (BTreeSet::new(), BTreeSet::new());
        for parameters in HostParameters::each().iter().flat_map(variants) {
            for seed in 0..100 {
                let calls = recorded(&parameters, seed);
                assert_eq!(replay(&calls, |_, host| parameters.build(seed, host)), Ok(()));
                let has = |at: usize| calls.iter().any(|call| call.state.get(at).is_some());
                let (own, beside) = (0..parameters.state().len(), parameters.state().len()..MAX_STATE);
                assert!(!beside.into_iter().any(has), "{}", parameters.name());
                known.extend(own.filter(|at| has(*at)).map(|at| (parameters.name(), at)));
                if calls.iter().any(|call| call.word() == "probe") {
                    probing.insert(parameters.name());
                }
            }
        }
        for parameters in HostParameters::each() {
            for (at, StateColumn { name, .. }) in parameters.state().iter().enumerate() {
                assert!(known.contains(&(parameters.name(), at)), "{}: nothing in `{name}`", parameters.name());
            }
        }
        assert!(probing.contains("hopper") && probing.contains("mrc"), "{probing:?}");
    }
}
