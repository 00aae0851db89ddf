//! Probes of host schemes (Hopper): real packets that wait with the data and are answered in the control class.

use crate::{
    ids::{HostId, PacketId, Slot},
    packet::{Kind, Packet},
    partition::Partition,
};
use anabranch_lb::{HostScheme, Probe};
use anabranch_units::Time;

/// What probes cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeCounters {
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
}

impl Partition<'_> {
    /// Sends what the scheme of the flow in `slot` wants to explore.
    #[inline]
    pub(super) fn send_probes(&mut self, host: HostId, slot: Slot, now: u64) {
        let flow = &self.hosts.senders[slot.at()];
        let (balancer, scheme_slot, time) = (flow.balancer, flow.scheme_slot, Time::from_ps(now));
        while let Some(probe) = self.hosts.scheme(host, balancer).poll_probe(time, scheme_slot) {
            self.send_probe(host, slot, probe, now);
        }
    }

    #[cold]
    fn send_probe(&mut self, host: HostId, slot: Slot, probe: Probe, now: u64) {
        let plan = self.plan;
        let flow = &self.hosts.senders[slot.at()];
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
        self.hosts.probes.sent += 1;
        self.hosts.probes.bytes += u64::from(packet.size);
        self.ports.books.born(&packet);
        let id = self.ports.packets.insert(packet);
        self.ports.queue(plan.nic(host), id, now);
    }

    /// A probe has reached the flow's receiver.
    pub(super) fn probe_arrival(&mut self, host: HostId, id: PacketId, packet: &Packet, now: u64) {
        let reply = Packet { head: packet.head, payload: packet.payload, ..self.reply(packet, Kind::ProbeReply) };
        self.send_control(host, id, reply, now);
    }

    /// The answer to a probe is back. The scheme hears what a full packet would have measured.
    pub(super) fn probe_reply_arrival(&mut self, host: HostId, packet: &Packet, now: u64) {
        let slot = self.hosts.sender_of[packet.flow as usize];
        let Some(flow) = self.hosts.senders.get(slot.at()) else { return };
        let (plan, balancer, scheme_slot) = (self.plan, flow.balancer, flow.scheme_slot);
        let path = self.hosts.base_paths.path(plan.topology, flow.src.0, flow.dst.0);
        let probe = u64::from(packet.payload) + u64::from(plan.data_overhead);
        let longer = plan.topology.one_way(path, plan.wire_mtu) - plan.topology.one_way(path, probe);
        let rtt = Time::from_ps(now - packet.head.wide(0)) + longer;
        self.advance_nic(host, self.ports.before(now));
        self.hosts.scheme(host, balancer).on_probe_reply(Time::from_ps(now), scheme_slot, packet.tag, rtt);
        self.wake_nic(host, now);
    }
}
