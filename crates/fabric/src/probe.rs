//! Probes of host schemes (Hopper): real packets that wait with the data and are answered in the control class.

use crate::{
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
    pub(crate) fn send_probes(&mut self, host: u32, slot: u32, now: u64) {
        let flow = &self.senders[slot as usize];
        let (balancer, scheme_slot) = (flow.balancer, flow.scheme_slot);
        let time = Time::from_ps(now);
        while let Some(probe) = self.hosts[host as usize].scheme(balancer).scheme.poll_probe(time, scheme_slot) {
            self.send_probe(host, slot, probe, now);
        }
    }

    #[cold]
    fn send_probe(&mut self, host: u32, slot: u32, probe: Probe, now: u64) {
        let plan = self.plan;
        let flow = &self.senders[slot as usize];
        let payload = u64::from(probe.bytes).clamp(1, plan.wire_mtu - u64::from(plan.data_overhead)) as u16;
        let packet = Packet {
            flow: flow.flow,
            tag: probe.tag,
            src: flow.src,
            dst: flow.dst,
            size: payload + plan.data_overhead,
            payload,
            kind: Kind::Probe,
            class: flow.class,
            balancer: flow.balancer,
            ..Packet::default()
        };
        self.probes.sent += 1;
        self.probes.bytes += u64::from(packet.size);
        self.injected[3].add(&packet);
        let id = self.wires.packets.insert(packet);
        self.wires.join_queue(plan, plan.host_up[host as usize], id, now);
    }

    /// A probe has reached the flow's receiver.
    pub(crate) fn probe_arrival(&mut self, host: u32, id: u32, packet: &Packet, now: u64) {
        let reply = Packet { head: packet.head, payload: packet.payload, ..self.reply(packet, Kind::ProbeReply) };
        self.send_control(host, id, reply, now);
    }

    /// The answer to a probe is back. The scheme hears what a full packet would have measured.
    pub(crate) fn probe_reply_arrival(&mut self, host: u32, packet: &Packet, now: u64) {
        let Some(flow) = self.senders.get(self.sender_of[packet.flow as usize] as usize) else { return };
        let (plan, balancer, scheme_slot) = (self.plan, flow.balancer, flow.scheme_slot);
        let path = self.base_paths.path(&plan.topology, flow.src, flow.dst);
        let probe = u64::from(packet.payload) + u64::from(plan.data_overhead);
        let longer = plan.topology.one_way(path, plan.wire_mtu) - plan.topology.one_way(path, probe);
        let rtt = Time::from_ps(now - packet.head.wide(0)) + longer;
        self.nic_catch_up(host, self.wires.before(now));
        let scheme = &mut self.hosts[host as usize].scheme(balancer).scheme;
        scheme.on_probe_reply(Time::from_ps(now), scheme_slot, packet.tag, rtt);
        self.nic_kick(host, now);
    }
}
