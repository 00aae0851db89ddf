//! Probes of host schemes (Hopper): real packets that wait with the data and are answered in the control class.

use crate::{
    ids::{HostId, PacketId, Slot},
    packet::{Kind, Packet},
    partition::Partition,
};
use anabranch_lb::Probe;
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
        let time = Time::from_ps(now);
        loop {
            let flow = &self.hosts.senders[slot.at()];
            let scheme = self.hosts.schemes[host.at()][usize::from(flow.of.balancer)].scheme_mut();
            let Some(probe) = flow.poll_probe(scheme, time) else { return };
            self.send_probe(host, slot, probe, now);
        }
    }

    #[cold]
    fn send_probe(&mut self, host: HostId, slot: Slot, probe: Probe, now: u64) {
        let plan = self.plan;
        let flow = &self.hosts.senders[slot.at()].of;
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
        let plan = self.plan;
        let path = self.hosts.base_paths.path(plan.topology, flow.of.src.0, flow.of.dst.0);
        let probe = u64::from(packet.payload) + u64::from(plan.data_overhead);
        let longer = plan.topology.one_way(path, plan.wire_mtu) - plan.topology.one_way(path, probe);
        let rtt = Time::from_ps(now - packet.head.wide(0)) + longer;
        self.advance_nic(host, self.ports.before(now));
        let Some(flow) = self.hosts.senders.get(slot.at()) else { return };
        let scheme = self.hosts.schemes[host.at()][usize::from(flow.of.balancer)].scheme_mut();
        flow.on_probe_reply(scheme, Time::from_ps(now), packet.tag, rtt);
        self.wake_nic(host, now);
    }
}
