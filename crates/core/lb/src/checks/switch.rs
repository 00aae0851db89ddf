//! Random packets at switch schemes: among next hops, at the first and last switch, and over small Dragonflies and the Petersen
//! graph, the smallest of diameter 2.

use super::{Broken, Check, CountingAllocator, Finding, differs, draw, ensure, watched};
use crate::{
    Candidates, Delivery, Effects, GuidedPath, GuidedPaths, GuidedSwitch, PacketView, SwitchHeader, SwitchInfo,
    SwitchScheme,
    registry::{PacketScope, Switch, SwitchParameters},
    switch::testing::{LEAF, Little, POSITIONS, Queues, data},
};
use anabranch_random::Stream;
use anabranch_units::Time;
use std::{cell::Cell, ops::Range};

const SHAPES: [&[u32]; 5] = [&[], &[8], &[4, 4], &[3, 5], &[1, 2, 3]];

/// Maximum links of a route: five on a Dragonfly (two chosen, three default), four on a graph of diameter 2; a
/// progressive choice may come one link later, and a detour over a third group takes one more local link at each side.
const MAX_LINKS: usize = 8;

/// Checks a switch scheme with events of these seeds.
///
/// # Errors
/// The first check that fails, with its seed.
///
/// # Panics
/// If [`CountingAllocator`] is not the program's allocator.
pub fn switch(parameters: &SwitchParameters, seeds: Range<u64>) -> Result<(), Broken> {
    assert!(
        CountingAllocator::is_used(),
        "allocations are not counted: declare a CountingAllocator as global allocator"
    );
    let scope = parameters.capabilities().packet_scope();
    for seed in seeds {
        let run = || {
            watched((parameters.name(), seed), |at| match scope {
                PacketScope::Guided => guided(parameters, seed, at),
                _ => among(parameters, seed, at),
            })
        };
        let (first, again) = (run()?, run()?);
        watched((parameters.name(), seed), |at| {
            differs(&first, &again)?;
            if scope == PacketScope::EveryHop { at_every_hop(parameters, seed, at) } else { Ok(()) }
        })?;
    }
    Ok(())
}

fn lengths(draws: &mut Stream) -> [u64; 8] {
    [0; 8].map(|_| draws.below(4))
}

/// Returns the choices among next hops. The second half of the packets, of the same flows, costs no memory.
fn among(parameters: &SwitchParameters, seed: u64, at: &Cell<usize>) -> Result<Vec<u32>, Finding> {
    const FLOWS: u64 = 16;
    let mut draws = draw(seed, "packets");
    let (info, lengths) = (SwitchInfo { groups: 3, uplinks: vec![8], ..LEAF }, lengths(&mut draws));
    let (packets, mut before) = (1 + draws.below(1024) as usize, 0);
    let (mut switch, mut chosen) = (parameters.build(seed, &info), Vec::with_capacity(packets));
    let (mut queues, keys) = (Queues::new(&lengths), [0; FLOWS as usize].map(|_| draws.bits()));
    for i in 0..packets {
        at.set(i);
        if i == packets / 2 {
            switch.on_routes_changed(3);
        }
        let (flow, tag) = (keys[draws.below(FLOWS) as usize], draws.bits() as u32);
        let packet = PacketView { control: draws.chance(1, 2), ..data(flow, tag) };
        let (group, count) = (draws.below(3) as u32, 2 + draws.below(7) as u32);
        let positions = &POSITIONS[..count as usize];
        let candidates = Candidates { count, group, position: positions, port: positions, uplinks: 8 };
        queues.reads.fill(0);
        let (mut header, now) = (SwitchHeader::default(), Time::from_us(i as u64));
        let index = switch.forward(now, &packet, &mut header, &candidates, &mut queues);
        ensure(index < count, Check::PathExists, || format!("next hop {index} of {count}"))?;
        let is_own = header == SwitchHeader::default() || parameters.capabilities().writes_header() && !packet.control;
        ensure(is_own, Check::Interface, || "a header is written that is not the scheme's".into())?;
        let once = queues.reads.iter().all(|&reads| reads <= 1);
        ensure(once, Check::Interface, || "a queue is read twice for a packet".into())?;
        let by_labels = switch.by_labels(tag, || packet, count, 8);
        let agrees = by_labels.is_none_or(|found| found == index);
        ensure(agrees, Check::Interface, || format!("`by_labels` gives {by_labels:?}, `forward` {index}"))?;
        chosen.push(index);
        if i == packets * 3 / 4 {
            before = CountingAllocator::allocations();
        }
    }
    let more = CountingAllocator::allocations() - before;
    ensure(packets < 512 || more == 0, Check::NoAllocation, || {
        format!("{more} allocations for {} packets", packets / 4)
    })?;
    Ok(chosen)
}

/// Data, control packets and timers at the switch of a sender or a receiver, and at another.
fn at_every_hop(parameters: &SwitchParameters, seed: u64, at: &Cell<usize>) -> Result<(), Finding> {
    let mut draws = draw(seed, "every hop");
    let reference = draws.chance(1, 2).then(|| draws.bits() as u32);
    let uplinks = SHAPES[draws.below(SHAPES.len() as u64) as usize];
    let lossless = draws.chance(1, 2);
    for tier in 0..2 {
        let (murmur3, udp_ports) = (reference, reference.is_some());
        let info = SwitchInfo { tier, murmur3, udp_ports, lossless, groups: 3, uplinks: uplinks.to_vec(), ..LEAF };
        let mut switch = parameters.build(seed, &info);
        let (mut now, mut header, mut waiting) = (Time::ZERO, SwitchHeader::default(), Vec::<u32>::new());
        for i in 0..1 + draws.below(300) as usize {
            at.set(i);
            let (what, flow, own) = (draws.below(5), draws.below(6), draws.chance(1, 2));
            let noise = [0; 5].map(|_| draws.bits() as u32);
            now += Time::from_us(draws.below(300));
            let leaves = if own { (0, 1) } else { (2, 0) };
            let packet = PacketView { marked: own, src_leaf: leaves.0, dst_leaf: leaves.1, ..data(flow, 0) };
            let mut given = if own { header } else { SwitchHeader(noise) };
            let mut out = Effects::default();
            match what {
                0 | 1 => {
                    let count = noise[0] % 8 + 1;
                    let positions = if noise[1] % 4 == 0 { &[0; 8] } else { &POSITIONS };
                    let (position, port) = (&positions[..count as usize], &POSITIONS[..count as usize]);
                    let candidates = Candidates { count, group: 0, position, port, uplinks: 8 };
                    let mut queues = Queues::new(&[0, 1, 2, 3, 4, 5, 6, 7]);
                    let index = switch.forward(now, &packet, &mut given, &candidates, &mut queues);
                    ensure(index < count, Check::PathExists, || format!("next hop {index} of {count}"))?;
                    header = given;
                }
                2 => {
                    if let Delivery::Hold(queue) = switch.deliver(now, &packet, &given, &mut out) {
                        let is_dense = queue as usize <= waiting.len();
                        ensure(is_dense, Check::Interface, || format!("queue {queue} of {}", waiting.len()))?;
                        waiting.resize(waiting.len().max(queue as usize + 1), 0);
                        waiting[queue as usize] += 1;
                    }
                }
                3 => switch.on_control(now, &packet, &given, &mut out),
                _ => switch.on_timer(now, noise[0] % 8, &mut out),
            }
            ensure(what == 2 || out.reply.is_empty(), Check::Interface, || "a reply to nothing".into())?;
            ensure(out.wake.iter().all(|&(time, _)| time >= now), Check::Interface, || "a timer in the past".into())?;
            for queue in out.release {
                let waits = waiting.get_mut(queue as usize).map(std::mem::take).unwrap_or(0);
                ensure(waits > 0, Check::Interface, || format!("nothing waits in queue {queue}"))?;
            }
        }
    }
    Ok(())
}

/// Returns the switches that packets pass.
fn guided(parameters: &SwitchParameters, seed: u64, at: &Cell<usize>) -> Result<Vec<u32>, Finding> {
    let mut draws = draw(seed, "guided");
    let shape = draws.below(4) as usize;
    let net = || [2, 3, 5].get(shape).map_or_else(Little::petersen, |size| Little::of((*size, 1), 0, 0));
    let switches = net().switches();
    let queue = |draws: &mut Stream| match draws.below(3) {
        0 => 0,
        1 => draws.below(100_000),
        _ => u64::MAX / 4,
    };
    let queues: Vec<u64> = (0..1 + draws.below(39)).map(|_| queue(&mut draws)).collect();
    let mut latency = 0;
    let paths = GuidedPaths::new((0..draws.below(12)).map(|_| {
        latency += 1 + draws.below(3);
        let (ev, kind, minimal) = (draws.bits() as u16, draws.below(9) as u8, draws.chance(1, 2));
        GuidedPath { ev, kind, minimal, latency: Time::from_ns(latency), propagation: Time::from_ns(latency), hops: 3 }
    }));
    let info = |number: u32| {
        let (ports, key) = (net().ports(number), u64::from(number) + 3);
        SwitchInfo { key, groups: 1, number, switches, ports, hop_delay: Time::from_ns(500), ..LEAF }
    };
    let mut schemes: Vec<Switch> = (0..switches).map(|number| parameters.build(seed, &info(number))).collect();
    let mut passed = Vec::new();
    for i in 0..1 + draws.below(60) {
        at.set(i as usize);
        let (flow, tag) = (draws.bits(), draws.bits() as u32);
        let (from, to) = (draws.below(switches.into()) as u32, draws.below(switches.into()) as u32);
        let packet = PacketView { src: from, dst: to, src_leaf: from, dst_leaf: to, ..data(flow, tag) };
        let (mut header, mut links) = (SwitchHeader::default(), 0);
        let (snapshots, queues, paths) = (queues.clone(), queues.clone(), paths.clone());
        let mut at = Little { here: from, to, queues, snapshots, paths, ..net() };
        while at.here != to {
            let port = schemes[at.here as usize].guide(Time::from_us(i), &packet, &mut header, &mut at);
            let ports = at.ports(at.here);
            ensure(port < ports, Check::PathExists, || format!("port {port} of {ports}"))?;
            at.here = at.peer(at.here, port);
            passed.push(at.here);
            links += 1;
            ensure(links <= MAX_LINKS, Check::PathExists, || format!("from {from} to {to} over {links} links"))?;
        }
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::variants;

    #[test]
    fn every_switch_scheme_passes() {
        let mut guided = 0;
        for scheme in SwitchParameters::each() {
            guided += u32::from(scheme.capabilities().packet_scope() == PacketScope::Guided);
            for parameters in variants(&scheme) {
                switch(&parameters, 0..150).unwrap_or_else(|broken| panic!("{broken}"));
            }
        }
        assert!(guided >= 5, "minimal, valiant, ugal, source-guided, coarse-guided");
    }
}
