//! Probes of host schemes (Hopper) wait with the data; their replies travel in the control class.

use super::{nic::Nics, sender::Senders};
use crate::{
    context::Ctx,
    ids::{HostId, Slot},
    packet::{Kind, MARKED, Packet},
    plan::Plan,
};
use anabranch_lb::Probe;
use anabranch_units::Time;

impl Senders {
    /// Passes the scheme the round-trip time that a full packet would have measured.
    pub(super) fn on_probe_reply(&mut self, nics: &mut Nics, cx: &mut Ctx<'_>, host: HostId, packet: &Packet) {
        let slot = self.slots.get(packet.flow);
        let Some(flow) = nics.flows.get(slot.at()) else { return };
        let plan = cx.plan;
        let path = self.base_paths.path(plan.topology, flow.of.src.0, flow.of.dst.0);
        let probe = u64::from(packet.payload) + u64::from(plan.data_overhead);
        let longer = plan.topology.one_way(path, plan.wire_mtu) - plan.topology.one_way(path, probe);
        let rtt = Time::from_ps(cx.now - packet.head.wide(0)) + longer;
        nics.catch_up(cx, host);
        let Some(flow) = nics.flows.get_mut(slot.at()) else { return };
        let pairs = pairs(plan, flow.of.balancer);
        flow.of.pairs -= pairs;
        cx.nics.close(host, pairs);
        let scheme = nics.schemes[host.at()][usize::from(flow.of.balancer)].scheme_mut();
        if flow.on_probe_reply(scheme, Time::from_ps(cx.now), packet.tag, rtt, packet.flags & MARKED != 0) {
            nics.resume(cx, slot);
        }
        nics.trace_values(cx, slot);
        explore(nics, cx, host, slot);
        nics.arm_timer(cx, slot);
        nics.wake(cx, host);
    }
}

fn pairs(plan: &Plan<'_>, balancer: u8) -> u32 {
    u32::from(plan.balancers[usize::from(balancer)].host.capabilities().probes_are_queue_pairs())
}

/// Sends the probes that the scheme of the flow in `slot` requests.
#[inline]
pub(super) fn explore(nics: &mut Nics, cx: &mut Ctx<'_>, host: HostId, slot: Slot) {
    if cx.plan.probes[usize::from(nics.flows[slot.at()].of.balancer)] {
        poll(nics, cx, host, slot);
    }
}

#[inline(never)]
fn poll(nics: &mut Nics, cx: &mut Ctx<'_>, host: HostId, slot: Slot) {
    loop {
        let flow = &mut nics.flows[slot.at()];
        let scheme = nics.schemes[host.at()][usize::from(flow.of.balancer)].scheme_mut();
        let Some(probe) = flow.poll_probe(scheme, Time::from_ps(cx.now)) else { return };
        send(nics, cx, host, slot, probe);
    }
}

#[cold]
fn send(nics: &mut Nics, cx: &mut Ctx<'_>, host: HostId, slot: Slot, probe: Probe) {
    let plan = cx.plan;
    let flow = &mut nics.flows[slot.at()].of;
    let pairs = pairs(plan, flow.balancer);
    flow.pairs += pairs;
    flow.max_pairs = flow.max_pairs.max(flow.pairs);
    cx.nics.open(host, pairs);
    let payload = u64::from(probe.bytes).clamp(1, plan.wire_mtu - u64::from(plan.data_overhead)) as u16;
    let packet = Packet {
        flow: flow.flow.0,
        tag: probe.tag,
        src: flow.src.0,
        dst: flow.dst.0,
        size: payload + plan.data_overhead,
        payload,
        kind: Kind::Probe,
        class: flow.class,
        balancer: flow.balancer,
        ..Packet::default()
    };
    nics.counters.probes += 1;
    nics.counters.probe_bytes += u64::from(packet.size);
    let id = cx.ports.create(packet);
    let port = match plan.planes {
        1 => plan.nic(host),
        _ => plan.nic_in(host, nics.plane_of_own(cx, host, &packet, None)),
    };
    // An idle port starts it now.
    if plan.planes > 1 {
        cx.ports.idle_until(port, cx.now);
    }
    cx.ports.queue(port, id, cx.now);
}
